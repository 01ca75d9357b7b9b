"""Runs semantics on both back ends over arrays of operands; lists every declared form."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from ptxtools import isa, semantics
from ptxtools.check.availability import Version, demands_of
from ptxtools.isa import Opcode
from ptxtools.isa.index import CHAPTERS
from ptxtools.isa.targets import FIRST_VERSION, version_text
from ptxtools.machine.arrays import NumpyAlgebra, quiet
from ptxtools.native.code import jit
from ptxtools.semantics.types import word_bits

LANES = 32
COVERED = ("integer", "extended", "floating", "half", "mixed", "comparison", "logic", "conversion", "video")
SECTIONS = ("9.7.1.", "9.7.2.", "9.7.3.", "9.7.4.", "9.7.5.", "9.7.6.", "9.7.7.", "9.7.8.", "9.7.9.", "9.7.18.")
MOVES = ("mov", "prmt", "cvta", "isspacep")

# What every x86-64 has; code for other CPUs has no such names.
BASELINE = {"64bit", "cmov", "cx8", "fxsr", "mmx", "sse", "sse2", "x87"}

Array = np.ndarray[Any, Any]


def opcodes_of(form: isa.Form) -> Iterator[Opcode]:
    """Every opcode that a syntax form spells."""
    choices = [(*element.values, None) if element.optional else element.values for element in form.elements]
    family = form.name.split(".", 1)[0]
    seen = set()
    for values in product(*choices):
        text = ".".join([family, *(value for value in values if value is not None)])
        opcode = isa.declared(text)
        if opcode is not None and opcode.form is form and opcode.text not in seen:
            seen.add(opcode.text)
            yield opcode


def families(chapters: Iterable[str]) -> list[str]:
    """Mnemonics (first words) that these chapters declare."""
    wanted = set(chapters)
    return sorted(family for family, names in CHAPTERS.items() if wanted & set(names))


#: What `semantics.chapter_of` says of all these.
COVERED_CHAPTERS = (
    "approximate", "comparison", "conversion", "extended", "floating", "half", "integer", "logic", "mixed", "movement",
    "video",
)  # fmt: skip


@cache
def all_opcodes() -> tuple[Opcode, ...]:
    """Every opcode with a meaning of the chapters whose meaning is lane values to lane values."""
    found: dict[str, Opcode] = {}
    for family in [*families(COVERED), *MOVES]:
        for form in isa.forms(family):
            if form.section.startswith(SECTIONS):
                found.update((opcode.text, opcode) for opcode in opcodes_of(form) if semantics.covers(opcode))
    return tuple(found.values())


def version_of(op: Opcode, target: str, least: Version = (9, 0)) -> str:
    """The PTX version that a module for a target declares to have the opcode: `least`, or the first that has it."""
    return version_text(
        max(least, *(demand.since(target) for demand in demands_of(op.requirements)), FIRST_VERSION[target])
    )


@dataclass(frozen=True)
class Signature:
    """Types of the values that a semantic function takes and gives."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def signature(op: Opcode) -> Signature:
    """From the opcode's required operands; vector operands count element by element."""
    inputs: list[str] = []
    outputs: list[str] = []
    for operand in op.operands:
        if operand.optional:
            continue
        types = [operand.type or "b64"] * max(1, operand.vector)
        (outputs if operand.role == "dst" else inputs).extend(types)
    if op.carry_in:
        inputs.append("pred")
    return Signature(tuple(inputs), tuple(outputs))


def dtype_of(t: str) -> type:
    return {1: np.bool_, 16: np.uint16, 32: np.uint32, 64: np.uint64}[word_bits(t)]


# --- running ----------------------------------------------------------------------------------------------------------


def run_numpy(op: Opcode, inputs: Sequence[Any], **options: Any) -> list[Any]:
    """Outputs of the reference algebra; 128-bit values are (low, high) pairs."""
    function = semantics.find(op)
    assert function is not None, op.text
    count = max(len(x[0]) if isinstance(x, tuple) else len(x) for x in inputs if not isinstance(x, int))
    algebra = NumpyAlgebra(context)
    with quiet():
        outputs = function(algebra, op, *inputs, **options)
    return [spread(output, count) for output in outputs]


def spread(value: Any, count: int) -> Any:
    if isinstance(value, tuple):
        return tuple(spread(part, count) for part in value)
    return np.broadcast_to(value, count)


CONTEXT = {"const_base": 0x7000_0000_0000, "const_size": 0x1_0000}


def context(name: str) -> int:
    return CONTEXT[name]


class Native:
    """Many semantic functions in one LLVM module, each looping over arrays: all lanes of a warp at a time; with the
    features of another CPU, whose vectors are shorter, half of them, which are still several vectors of every type."""

    def __init__(self, features: Iterable[str] | None = None, optimise: bool = False) -> None:
        import llvmlite.binding as llvm

        from ptxtools.native.code.emitter import Emitter

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        llvm.initialize_native_asmparser()
        host = {name for name, on in llvm.get_host_cpu_features().items() if on}
        self.features = host if features is None else set(features) | BASELINE & host
        self.lanes = LANES if features is None else LANES // 2
        self.emitter = Emitter(self.features)
        self.bodies: list[str] = []
        self.signatures: list[tuple[int, int]] = []
        self._numbers: dict[tuple[str, int, int], int] = {}
        self.optimise = optimise
        self._engine: Any = None

    def add(self, op: Opcode, inputs: Sequence[str], statics: dict[int, int] | None = None) -> int:
        """Compile an opcode; `statics`: inputs given as Python ints. Returns its number."""
        function = semantics.find(op)
        assert function is not None, op.text
        types: list[str] = []

        def body(algebra: Any, *values: Any) -> Sequence[Any]:
            outputs = function(algebra, op, *values)
            types.extend(self._output_types(op, outputs))
            return outputs

        return self.add_body(body, inputs, types, statics)

    def add_body(
        self,
        body: Callable[..., Sequence[Any]],
        inputs: Sequence[str],
        types: Sequence[str],
        statics: dict[int, int] | None = None,
    ) -> int:
        """Compile `body(algebra, *values)`; `types`: of what it returns."""
        from ptxtools.native.code.algebra import LLVMAlgebra

        emit = self.emitter
        algebra = LLVMAlgebra(emit, self.lanes, lambda name: str(CONTEXT[name]))
        values: list[Any] = []
        slots = iter(range(2 * len(inputs)))
        used = 0
        for i, t in enumerate(inputs):
            if statics and i in statics:
                values.append(statics[i])
                continue
            parts = []
            for _ in range(2 if word_bits(t) == 128 else 1):
                parts.append(self._load(t, next(slots)))
                used += 1
            values.append(parts[0] if len(parts) == 1 else tuple(parts))
        outputs = body(algebra, *values)
        stored = 0
        for output, t in zip(outputs, types, strict=True):
            for part in output if isinstance(output, tuple) else (output,):
                self._store(t, part, stored)
                stored += 1
        text, names = emit.take(), dict[str, str]()
        same = re.sub(r"%[a-z.]+\d+", lambda m: names.setdefault(m[0], f"%n{len(names)}"), text)
        number = self._numbers.setdefault((same, used, stored), len(self.bodies))
        if number == len(self.bodies):  # else another opcode has the same code, but for the names in it
            self.bodies.append(self._function(number, text))
            self.signatures.append((used, stored))
        return number

    @staticmethod
    def _output_types(op: Opcode, outputs: Sequence[Any]) -> list[str]:
        types = list(signature(op).outputs)
        if op.carry_out:
            types.append("pred")
        while len(types) < len(outputs):
            types.append("pred")
        return types[: len(outputs)]

    def _load(self, t: str, slot: int) -> str:
        emit, bits = self.emitter, word_bits(t)
        memory = 8 if bits == 1 else min(bits, 64)
        base = emit.value(f"getelementptr ptr, ptr %in, i64 {slot}")
        pointer = emit.value(f"load ptr, ptr {base}")
        address = emit.value(f"getelementptr i{memory}, ptr {pointer}, i64 %k")
        value = emit.value(f"load <{self.lanes} x i{memory}>, ptr {address}, align {memory // 8}")
        return emit.value(f"trunc <{self.lanes} x i8> {value} to <{self.lanes} x i1>") if bits == 1 else value

    def _store(self, t: str, value: str, slot: int) -> None:
        emit, bits = self.emitter, word_bits(t)
        memory = 8 if bits == 1 else min(bits, 64)
        if bits == 1:
            value = emit.value(f"zext <{self.lanes} x i1> {value} to <{self.lanes} x i8>")
        base = emit.value(f"getelementptr ptr, ptr %out, i64 {slot}")
        pointer = emit.value(f"load ptr, ptr {base}")
        address = emit.value(f"getelementptr i{memory}, ptr {pointer}, i64 %k")
        emit.line(f"store <{self.lanes} x i{memory}> {value}, ptr {address}, align {memory // 8}")

    def _function(self, number: int, body: str) -> str:
        from ptxtools.native.code import modes

        attributes = '"prefer-vector-width"="512" "min-legal-vector-width"="512"'
        attributes += " strictfp" if modes.LOAD in body else ""
        return f"""define void @f{number}(ptr noalias %in, ptr noalias %out, i64 %n) {attributes} {{
entry:
  br label %loop
loop:
  %k = phi i64 [0, %entry], [%next, %loop]
{body}
  %next = add i64 %k, {self.lanes}
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}}"""

    def compile(self) -> None:
        import llvmlite.binding as llvm

        text = "\n".join([*self.bodies, self.emitter.declarations])
        module = llvm.parse_assembly(text)
        module.verify()
        flags = ",".join(f"{'+' if on and name in self.features else '-'}{name}"
                         for name, on in llvm.get_host_cpu_features().items())  # fmt: skip
        cpu = llvm.get_host_cpu_name() if self.optimise else ""
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=cpu, features=flags, opt=1, jit=True, codemodel="jitdefault"
        )
        if self.optimise:
            jit.improve(module, machine)
        self.module, self.machine = module, machine
        self._engine = llvm.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()

    def run(self, number: int, inputs: Sequence[Any], outputs: Sequence[type]) -> list[Array]:
        """Call function `number`; 128-bit inputs are pairs of arrays. Lengths are multiples of 32."""
        if self._engine is None:
            self.compile()
        flat = [part for x in inputs for part in (x if isinstance(x, tuple) else (x,))]
        flat = [np.ascontiguousarray(x) for x in flat]
        count = len(flat[0])
        assert count % self.lanes == 0
        results = [np.zeros(count, np.uint8 if d is np.bool_ else d) for d in outputs]
        arguments = (ctypes.c_void_p * len(flat))(*[x.ctypes.data for x in flat])
        targets = (ctypes.c_void_p * len(results))(*[x.ctypes.data for x in results])
        address = self._engine.get_function_address(f"f{number}")
        ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(address)(arguments, targets, count)
        return [x.astype(np.bool_) if d is np.bool_ else x for x, d in zip(results, outputs, strict=True)]


# --- operands ---------------------------------------------------------------------------------------------------------


def edge_values(t: str) -> list[int]:
    """Patterns near every boundary of a type's word, integer and floating-point alike."""
    bits = word_bits(t)
    values = {0, 1, 2, 3, 5, 7, 8, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 0x8000, 0x7FF7, 0x7FFF, 0xFFFF}
    for i in range(0, bits, 3 if bits > 16 else 1):
        values |= {1 << i, (1 << i) - 1, (1 << i) + 1, -(1 << i), ~(1 << i)}
    layouts = {16: [(5, 10), (8, 7)], 32: [(8, 23)], 64: [(11, 52)]}[min(bits, 64)]
    for exponent, mantissa in layouts:
        top, bias = (1 << exponent) - 1, (1 << (exponent - 1)) - 1
        near = (-127, -126, -25, -24, -15, -14, -2, -1, 0, 1, 2, 15, 16, 31, 32, 63, 64, 127, -mantissa)
        for e in {0, 1, 2, top - 1, top, *(bias + distance for distance in near)}:
            if 0 <= e <= top:
                half = 1 << (mantissa - 1)
                for m in (0, 1, half - 1, half, half + 1, (1 << mantissa) - 1):
                    values |= {(e << mantissa) | m, (1 << (exponent + mantissa)) | (e << mantissa) | m}
    mask = (1 << bits) - 1
    return sorted({value & mask for value in values})


def operands(t: str, count: int, rng: np.random.Generator) -> Any:
    """`count` values of a type: edges, numbers near each other, small integers, random bits."""
    bits = word_bits(t)
    if bits == 1:
        return rng.integers(0, 2, count).astype(np.bool_)
    if bits == 128:
        return (operands("u64", count, rng), operands("u64", count, rng))
    d = dtype_of(t)
    edges = np.array(edge_values(t), d)
    pick = rng.integers(0, 10, count)
    values = rng.integers(0, 1 << min(bits, 63), count, dtype=np.uint64)
    values = (
        (values << np.uint64(1) | rng.integers(0, 2, count, dtype=np.uint64)).astype(d)
        if bits == 64
        else values.astype(d)
    )
    values = np.where(pick < 5, edges[rng.integers(0, len(edges), count)], values)
    values = np.where(pick == 5, rng.integers(0, 80, count).astype(d), values)
    if bits >= 32:
        values = np.where(pick >= 8, _reals(bits, count, rng), values)
    values = np.where(pick == 6, edges[rng.integers(0, len(edges), count)] ^ d(1), values)
    return _fit(t, values.astype(d))


def _reals(bits: int, count: int, rng: np.random.Generator) -> Array:
    """Ordinary numbers of neighbouring magnitudes, half of them with few significant bits."""
    real = rng.normal(size=count) * 2.0 ** rng.integers(-12, 12, count)
    short = np.round(real * 16) / 16
    real = np.where(rng.integers(0, 2, count) == 1, real, short)
    return real.astype(np.float32).view(np.uint32) if bits == 32 else real.view(np.uint64)


def _fit(t: str, values: Array) -> Array:
    algebra = NumpyAlgebra()
    return np.asarray(algebra.adapt(values, f"b{word_bits(t)}", t))


def exhaustive(t: str) -> Array | None:
    """Every pattern of a type of at most 16 bits."""
    if word_bits(t) != 16:
        return None
    return _fit(t, np.arange(1 << 16, dtype=np.uint16))
