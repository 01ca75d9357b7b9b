"""Multicast objects over buffers of several devices, and the multimem operations on them (9.7.9.14).

All devices of a run share one address space, so that a device is the owner of a buffer and no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxtools.diagnostics import Cause, LaunchError
from ptxtools.machine.events import View, serves
from ptxtools.program.program import LANES
from ptxtools.records import dataclass
from ptxtools.semantics.atomic import OPERATIONS, combine
from ptxtools.semantics.types import bits_of
from ptxtools.sim.asynchronous.reductions import update_of

from .accesses import tell

Array: TypeAlias = npt.NDArray[Any]

#: Multicast addresses have this byte on top, where no other address has it; objects lie a terabyte apart.
_BASE, _STEP = 0x0400_0000_0000_0000, 1 << 40
_NARROW = {"e5m2": "float8_e5m2", "e4m3": "float8_e4m3fn"}


@dataclass(frozen=True, slots=True)
class Multicast:
    """One address for the same place in buffers of `size` bytes at several device addresses."""

    address: int
    size: int
    buffers: tuple[int, ...]


class Multicasts:
    """The multicast objects of a device set."""

    def __init__(self) -> None:
        self._known: list[Multicast] = []

    def add(self, buffers: Sequence[tuple[int, int]]) -> Multicast:
        """An object over buffers (address, bytes), which must be of one size. Raises `LaunchError`."""
        sizes = {size for _, size in buffers}
        if len(sizes) != 1:
            raise LaunchError(f"a multicast object requires buffers of the same size, not {sorted(sizes)} bytes")
        made = Multicast(_BASE + _STEP * len(self._known), sizes.pop(), tuple(address for address, _ in buffers))
        self._known.append(made)
        return made

    def find(self, address: int) -> Multicast | None:
        """The object that an address lies in."""
        number = (address - _BASE) // _STEP
        return self._known[number] if 0 <= number < len(self._known) else None


@serves("multimem")
def multimem(view: View) -> None:
    """Load and reduce over all buffers, store to all, or reduce into all."""
    opcode = view.op.opcode
    assert opcode is not None
    loads = opcode.name == "multimem.ld_reduce"
    types = view.op.dst_types if loads else view.op.src_types[1:]
    step = bits_of(types[0]) // 8
    size = step * len(types)
    action = "read" if loads else "atomic" if opcode.name == "multimem.red" else "write"
    addresses, lanes = view.addresses(), list(view.lanes())
    meant = [buffers(view, lane, int(addresses[lane]), size) for lane in lanes]
    places = [
        [view.memory(one, size, "global", lane=lane, write=not loads, align=size, told=False) for one in ones]
        for lane, ones in zip(lanes, meant, strict=True)
    ]
    for device in range(max(map(len, meant))):
        there = [(lane, ones[device]) for lane, ones in zip(lanes, meant, strict=True) if device < len(ones)]
        tell(view, "global", action, size, *zip(*there, strict=True))
    if loads:
        _load(view, places, step)
    else:
        _write(view, places, step, reduces=action == "atomic")


def buffers(view: View, lane: int, address: int, size: int) -> list[int]:
    """The addresses, one on each device, that a multicast address stands for. Raises `Trap`."""
    found = view.launch.device.runtime.multicasts.find(address)
    if found is None:
        raise view.trap(f"{address:#x} is not a multicast address", lane)
    offset = address - found.address
    if offset + size > found.size:
        reason = f"multimem access of {size} bytes at {address:#x} is out of bounds"
        raise view.trap(reason, lane, cause=Cause.OUT_OF_BOUNDS, space="global")
    return [base + offset for base in found.buffers]


def _load(view: View, places: list[list[memoryview]], step: int) -> None:
    lanes = list(view.lanes())
    for number, type_ in enumerate(view.op.dst_types):
        part = slice(number * step, (number + 1) * step)
        columns = [_words([place[device][part] for place in places]) for device in range(len(places[0]))]
        total = _reduced(view, type_, columns, wide=_accumulator(view))
        values = np.zeros(LANES, total.dtype)
        values[lanes] = total
        view.result(number, values)


def _write(view: View, places: list[list[memoryview]], step: int, *, reduces: bool) -> None:
    """Lanes one after another: several may have one address."""
    lanes = list(view.lanes())
    for number, type_ in enumerate(view.op.src_types[1:]):
        part = slice(number * step, (number + 1) * step)
        update = update_of(view, _operation(view), type_) if reduces else None
        for place, value in zip(places, view.source(1 + number)[lanes], strict=True):
            new = np.frombuffer(np.array(value, f"<u{step}").tobytes(), np.uint8)
            for target in place:
                if update is not None:
                    update(np.frombuffer(target[part], np.uint8), new)
                else:
                    target[part] = new.tobytes()


def _operation(view: View) -> str:
    opcode = view.op.opcode
    assert opcode is not None
    return next(name for name in OPERATIONS if opcode.has(name))


def _words(parts: list[memoryview]) -> Array:
    """Memory of each lane as one unsigned number, bytes in a register of 16 bits."""
    words = np.array([int.from_bytes(part, "little") for part in parts], np.uint64)
    return words.astype({1: np.uint16, 2: np.uint16, 4: np.uint32, 8: np.uint64}[len(parts[0])])


def _accumulator(view: View) -> str:
    """Type of intermediate sums where it is not the element's own."""
    opcode = view.op.opcode
    return (
        "f32" if opcode is not None and opcode.has("acc::f32") else "f16" if opcode and opcode.has("acc::f16") else ""
    )


def _reduced(view: View, type_: str, columns: list[Array], *, wide: str) -> Array:
    """Values of all devices reduced, in their order."""
    operation = _operation(view)
    element = type_.partition("x")[0]
    if element in _NARROW or (wide and operation == "add"):
        return _in_floats(element, operation, columns, wide)
    total = columns[0]
    for column in columns[1:]:
        total = combine(view.algebra, operation, type_, total, column)
    return total


def _in_floats(element: str, operation: str, columns: list[Array], wide: str) -> Array:
    """Elements of at most 16 bits through wider floats, rounded to nearest even; without a wider type, at each step."""
    import ml_dtypes

    names = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
    own = np.dtype(getattr(ml_dtypes, _NARROW[element]) if element in _NARROW else names[element])
    between = {"f32": np.dtype(np.float32), "f16": np.dtype(np.float16)}.get(wide, own)
    storage = columns[0].dtype
    raw = [np.ascontiguousarray(c).view(own).reshape(len(c), -1).astype(np.float32) for c in columns]
    total = raw[0]
    with np.errstate(all="ignore"):
        for part in raw[1:]:
            total = {"add": np.add, "min": np.fmin, "max": np.fmax}[operation](total, part)
            total = total.astype(between).astype(np.float32)
        packed: Array = total.astype(own).view(storage).reshape(len(columns[0]))
    return packed
