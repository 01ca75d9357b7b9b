"""Recordings: what is recorded, the file, and the comparison with what the reference engine computes.

A file is a NumPy archive of three arrays: `meta` (JSON), `inputs` and `outputs` (bytes). The JSON says which chip it
was and where in the bytes each array stands:

    sets      name -> [[offset, bytes of a value, count], …]: operands, one array for each
    forms     opcode -> {"set": name, "outputs": [[offset, bytes, count], …]}
    hashes    opcode -> {"pattern": …, "block": b, "first": n, "sums": [offset, 8, count]}: sums of blocks n, n + 1, …
    refused   opcode -> why the chip has no such form
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ptxtools import isa, semantics
from ptxtools.isa import Opcode
from ptxtools.semantics.types import word_bits
from tests.semantics.harness import all_opcodes, exhaustive, operands, run_numpy

from . import kernels
from .runners import Array, RefusedError, Runner

FORMAT = 1
#: Indices of a block of a hash recording, as a power of two: of all 2**32 indices, and of 2**16.
BLOCK, SMALL_BLOCK = 24, 16
#: Tuples for each form of a chapter; the others have `TUPLES`.
TUPLES, FEWER = 384, {"comparison": 64, "video": 128}
MODULE = 48  # kernels of one module
PLACE = tuple[int, int, int]

#: Forms of which no description tells all bits: they are compared within bounds elsewhere.
BOUNDED = ("tanh.approx.", "ex2.approx.f16", "ex2.approx.ftz.bf16", "rsqrt.approx.f64", "cvt.rs.")


def recorded_forms() -> list[Opcode]:
    """Every form whose result depends on its operands alone."""
    return [op for op in all_opcodes() if semantics.chapter_of(op) != "movement" or op.family == "prmt"]


def is_bounded(text: str) -> bool:
    """Whether our result is only known to lie near the chip's."""
    return text.startswith(BOUNDED)


# --- operands ---------------------------------------------------------------------------------------------------------


def memory_dtype(t: str) -> np.dtype[Any]:
    """Element type of a value in a kernel's arrays; of 128-bit values, half of it."""
    return np.dtype(f"u{min(8, kernels.memory_bytes(t))}")


def to_memory(t: str, value: Any) -> Array:
    """An operand of the semantics as a kernel's array."""
    if word_bits(t) == 128:
        return np.ascontiguousarray(np.stack(value, axis=1).reshape(-1))
    return np.ascontiguousarray(np.asarray(value).astype(memory_dtype(t)))


def from_memory(t: str, array: Array) -> Any:
    """The inverse of `to_memory`."""
    if word_bits(t) == 128:
        return (array[0::2].copy(), array[1::2].copy())
    return array != 0 if t == "pred" else array


def spread(t: str) -> Array:
    """Operands of an approximate f32 function: all magnitudes, every number around 1, the edges."""
    everywhere = (np.arange(1 << 16, dtype=np.uint64) * 65521).astype(np.uint32)
    near = np.arange(0x3F80_0000 - 2048, 0x3F80_0000 + 2048, dtype=np.uint32)
    edges = operands(t, 8192, np.random.default_rng(7))
    return np.concatenate([everywhere, near, edges])


def inputs_of(op: Opcode) -> tuple[str, list[Any]]:
    """Name of a form's set of operands, and the operands: a constant stands for itself."""
    shape = kernels.shape_of(op)
    chapter = semantics.chapter_of(op)
    count = FEWER.get(chapter, TUPLES)
    name = " ".join([*shape.inputs, str(count)])
    if chapter == "approximate" and len(shape.inputs) == 1:
        t = shape.inputs[0]
        if word_bits(t) == 32 and t == "f32":
            return f"{t} spread", [spread(t)]
        patterns = exhaustive(t)
        if patterns is not None:
            return f"{t} all", [patterns]
        name, count = f"{t} many", 8192
    rng = np.random.default_rng([ord(c) for c in name])
    return name, [shape.constants.get(i, operands(t, count, rng)) for i, t in enumerate(shape.inputs)]


# --- recording --------------------------------------------------------------------------------------------------------


@dataclass
class Recorder:
    """Runs forms on a machine and collects what came out."""

    runner: Runner
    block: int = BLOCK
    say: Callable[[str], None] = lambda _: None
    inputs: list[bytes] = field(default_factory=list)
    outputs: list[bytes] = field(default_factory=list)
    meta: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        r = self.runner
        self.meta = {
            "format": FORMAT, "chip": r.chip, "driver": r.driver, "target": r.target, "ptx": r.version,
            "sets": {}, "forms": {}, "hashes": {}, "refused": {},
        }  # fmt: skip

    def header(self) -> str:
        return f".version {self.runner.version}\n.target {self.runner.target}\n.address_size 64\n"

    def record(self, opcodes: Iterable[Opcode]) -> None:
        """Outputs of forms over their sets of operands."""
        todo = list(opcodes)
        for first in range(0, len(todo), MODULE):
            self._batch(todo[first : first + MODULE], self._run_form, kernels.form_kernel)
            self.say(f"{min(first + MODULE, len(todo))} of {len(todo)} forms")

    def hash(self, opcodes: Iterable[Opcode], blocks: range | None = None) -> None:
        """Hashes of forms whose inputs can be enumerated: of these blocks, or of all (as where there are 2**16)."""
        for op in opcodes:
            pattern = kernels.pattern_of(op)
            if pattern is None:
                continue

            def run(module: Any, kernel: str, op: Opcode, pattern: str = pattern) -> None:
                self._run_hash(module, kernel, op, pattern, blocks)

            block = SMALL_BLOCK if pattern == "half" else self.block
            self._batch([op], run, lambda op, name, p=pattern, b=block: kernels.hash_kernel(op, name, p, b))
            self.say(f"all inputs of {op.text}")

    def _batch(
        self, opcodes: list[Opcode], run: Callable[[Any, str, Opcode], None], write: Callable[[Opcode, str], str]
    ) -> None:
        """One module of several forms; if it is refused, its halves."""
        names = {f"k{number}": op for number, op in enumerate(opcodes)}
        try:
            module = self.runner.load(self.header() + "".join(write(op, name) for name, op in names.items()))
        except RefusedError as error:
            if len(opcodes) == 1:
                self.meta["refused"][opcodes[0].text] = str(error)
                return
            middle = len(opcodes) // 2
            self._batch(opcodes[:middle], run, write)
            self._batch(opcodes[middle:], run, write)
            return
        for name, op in names.items():
            run(module, name, op)
        self.runner.unload(module)

    def _run_form(self, module: Any, kernel: str, op: Opcode) -> None:
        shape = kernels.shape_of(op)
        name, values = inputs_of(op)
        arrays = [
            to_memory(t, value) for t, value in zip(shape.inputs, values, strict=True) if not isinstance(value, int)
        ]
        count = len(arrays[0]) // (2 if word_bits(shape.inputs[0]) == 128 else 1)
        if name not in self.meta["sets"]:
            self.meta["sets"][name] = [_put(self.inputs, array) for array in arrays]
        results = [np.zeros(count * max(1, word_bits(t) // 64), memory_dtype(t)) for t in shape.outputs]
        self.runner.run(module, kernel, -(-count // 128), 128, [*results, *arrays, count])
        self.meta["forms"][op.text] = {"set": name, "outputs": [_put(self.outputs, array) for array in results]}

    def _run_hash(self, module: Any, kernel: str, op: Opcode, pattern: str, blocks: range | None) -> None:
        block, total = (SMALL_BLOCK, 1) if pattern == "half" else (self.block, 1 << 32 - self.block)
        chosen = range(total) if pattern == "half" or blocks is None else blocks
        sums = np.zeros(total, np.uint64)
        self.runner.run(module, kernel, len(chosen) << block - kernels.CTA_SHIFT, 256, [sums, chosen.start << block])
        place = _put(self.outputs, sums[chosen.start : chosen.stop])
        self.meta["hashes"][op.text] = {"pattern": pattern, "block": block, "first": chosen.start, "sums": place}

    def save(self, path: Path) -> None:
        """Write the file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        meta = np.frombuffer(json.dumps(self.meta).encode(), np.uint8)
        blobs = {"inputs": b"".join(self.inputs), "outputs": b"".join(self.outputs)}
        np.savez_compressed(path, meta=meta, **{name: np.frombuffer(data, np.uint8) for name, data in blobs.items()})


def _put(pieces: list[bytes], array: Array) -> PLACE:
    offset = sum(map(len, pieces))
    pieces.append(array.tobytes())
    return (offset, array.itemsize, len(array))


# --- replaying --------------------------------------------------------------------------------------------------------


class Recording:
    """A file that was read. Raises ValueError if it is none of this format."""

    def __init__(self, path: Path) -> None:
        with np.load(path) as archive:
            self.meta: dict[str, Any] = json.loads(archive["meta"].tobytes())
            self._inputs, self._outputs = archive["inputs"].tobytes(), archive["outputs"].tobytes()
        if self.meta.get("format") != FORMAT:
            raise ValueError(f"{path}: format {self.meta.get('format')}, not {FORMAT}")

    @property
    def chip(self) -> str:
        return str(self.meta["chip"])

    def inputs(self, op: Opcode) -> list[Any]:
        """The operands that a form was run on; constants as ints."""
        shape = kernels.shape_of(op)
        places = iter(self.meta["sets"][self.meta["forms"][op.text]["set"]])
        return [
            shape.constants[i] if i in shape.constants else from_memory(t, _get(self._inputs, next(places)))
            for i, t in enumerate(shape.inputs)
        ]

    def outputs(self, op: Opcode) -> list[Any]:
        """What came out."""
        places = self.meta["forms"][op.text]["outputs"]
        types = kernels.shape_of(op).outputs
        return [from_memory(t, _get(self._outputs, place)) for t, place in zip(types, places, strict=True)]

    def sums(self, text: str) -> Array:
        """Hashes of a form's blocks."""
        return _get(self._outputs, self.meta["hashes"][text]["sums"])

    def hash_differences(self, runner: Runner, opcodes: Iterable[Opcode], blocks: range) -> Iterator[str]:
        """A line for each form whose hashes of these blocks (counted among the recorded ones) come out otherwise."""
        for op in opcodes:
            if op.text not in self.meta["hashes"] or is_bounded(op.text):
                continue
            entry = self.meta["hashes"][op.text]
            ours = Recorder(runner, entry["block"])
            ours.hash([op], range(entry["first"] + blocks.start, entry["first"] + blocks.stop))
            got = _get(b"".join(ours.outputs), ours.meta["hashes"][op.text]["sums"])
            want = self.sums(op.text)
            want = want if entry["pattern"] == "half" else want[blocks.start : blocks.stop]
            if not np.array_equal(want, got):
                yield f"{op.text}: {int((want != got).sum())} of {len(want)} blocks of inputs differ from {self.chip}"

    def differences(self, *, bounded: bool = False) -> Iterator[str]:
        """A line for each form where our semantics differ; `bounded`: those too whose bits are not known."""
        for text in self.meta["forms"]:
            if is_bounded(text) and not bounded:
                continue
            found = self._difference(isa.resolve(text))
            if found:
                yield found

    def _difference(self, op: Opcode) -> str | None:
        inputs = self.inputs(op)
        ours = run_numpy(op, inputs)
        for place, (want, got) in enumerate(zip(self.outputs(op), ours, strict=True)):
            pairs = list(zip(want, got, strict=True)) if isinstance(want, tuple) else [(want, got)]
            wrong = np.zeros(len(pairs[0][0]), bool)
            for there, here in pairs:
                wrong |= there != here
            if wrong.any():
                at = int(np.flatnonzero(wrong)[0])
                operands_there = ", ".join(_show(value, at) for value in inputs)
                chip, mine = _show(want, at), _show(got, at)
                return (
                    f"{op.text}({operands_there})[{place}]: {self.chip} {chip}, ours {mine};"
                    f" {int(wrong.sum())} of {len(wrong)}"
                )
        return None


def _get(data: bytes, place: PLACE) -> Array:
    offset, size, count = place
    return np.frombuffer(data, np.dtype(f"u{size}"), count, offset)


def _show(value: Any, at: int) -> str:
    if isinstance(value, tuple):
        return f"{int(value[1][at]) << 64 | int(value[0][at]):#x}"
    return hex(value if isinstance(value, int) else int(value[at]))


def recordings(folder: Path) -> list[Path]:
    """The files in a folder of recordings."""
    return sorted(folder.glob("*.npz"))
