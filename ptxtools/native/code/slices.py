"""Handlers in loops over slices of the warp, as long as a vector register: code for which LLVM takes half the time or
less, since it has to take vectors of 32 lanes apart, operation by operation.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxtools.program.operations import LANEWISE, PLAIN_ACCESSES
from ptxtools.program.program import LANES, Op, Ref
from ptxtools.semantics.algebra import Value
from ptxtools.semantics.types import bits_of

from . import modes
from .algebra import LLVMAlgebra
from .emitter import Emitter, vector
from .handler import ELEMENT, Handler

#: Kinds of operations whose handlers are made in loops: of those that compute each lane by itself, through a handler's
#: algebra and results alone, one loop is all; the others begin and end loops themselves.
SLICED = LANEWISE | PLAIN_ACCESSES
#: Lines in a block of a long loop.
_BLOCK = 16
_WORD = 32


def sliced(op: Op) -> bool:
    """Whether the handler of an operation is made in loops. Not those of loads of a word from global and shared memory:
    kernels do most of these, and by halves of a warp, whose addresses are in a row or the same."""
    if op.kind == "ld" and op.space in ("global", "shared") and len(op.dst_types) == 1:
        return bits_of(op.dst_types[0]) != _WORD
    return op.kind in SLICED


def width_of(emitter: Emitter, operands: Sequence[Ref]) -> int:
    """Lanes of a slice, for an operation with these slots."""
    wide = any(ref.type in ("b64", "b128") for ref in operands)
    return 16 if "avx512f" in emitter.features and not wide else 8


class Slices(Handler):
    """A handler whose values are those of one slice while it is in a loop."""

    def __init__(self, emitter: Emitter, op: Op) -> None:
        super().__init__(emitter, op)
        for ref in self._operands:
            self.pointer(ref)
        self._top = ""
        if op.kind in LANEWISE:
            self.begin(width_of(emitter, self._operands))

    # --- loops --------------------------------------------------------------------------------------------------------

    def begin(self, width: int) -> None:
        """Start a loop over slices of so many lanes."""
        e = self.code
        self.width, self.algebra = width, LLVMAlgebra(e, width, self._context)
        #: The first lane of the slice (i64); the lanes to run from there on.
        self.first, self.rest = e.name("first"), e.name("rest")
        self._before, self._top = self._block(), e.label("slice")
        e.jump(self._top)
        e.begin(self._top)
        self._phis = len(e.lines)
        e.lines += ["", ""]

    def again(self, after: str) -> None:
        """End of the body: continue with the next slice, or there."""
        self._divide()
        e, last = self.code, self._block()
        following, rest = e.value(f"add i64 {self.first}, {self.width}"), e.value(f"lshr i32 {self.rest}, {self.width}")
        e.lines[self._phis : self._phis + 2] = [
            f"  {self.first} = phi i64 [0, %{self._before}], [{following}, %{last}]",
            f"  {self.rest} = phi i32 [%m, %{self._before}], [{rest}, %{last}]",
        ]
        e.branch(e.value(f"icmp eq i64 {following}, {LANES}"), after, self._top)
        self._top = ""

    def _divide(self) -> None:
        """Cut a long body into blocks: LLVM looks far back for what it knows of a value, but in one block."""
        lines, begin = self.code.lines, self._phis + 2
        body = lines[begin:]
        if len(body) < 2 * _BLOCK or modes.changes(body) or any(line.endswith(":") for line in body):
            return
        for at in range(len(body) - len(body) % _BLOCK, 0, -_BLOCK):
            label = self.code.label("on")
            lines[begin + at : begin + at] = [f"  br label %{label}", f"{label}:"]

    def go_on(self) -> None:
        if self._top:
            self.again("next")
        else:
            super().go_on()

    def _block(self) -> str:
        """The label of the block that is being emitted."""
        return next(line[:-1] for line in reversed(self.code.lines) if line.endswith(":"))

    # --- one slice ----------------------------------------------------------------------------------------------------

    def at(self, pointer: str, element: str) -> str:
        """Address of the slice's lanes in an array of 32."""
        return self.code.value(f"getelementptr {element}, ptr {pointer}, i64 {self.first}")

    def shift(self) -> str:
        """Place of the slice's bits in an i32."""
        return self.code.value(f"trunc i64 {self.first} to i32")

    def flags(self, bits: str) -> Value:
        """The lowest bits of an i32, one for each lane of a slice."""
        few = self.code.value(f"trunc i32 {bits} to i{self.width}")
        return self.code.value(f"bitcast i{self.width} {few} to {vector('i1', self.width)}")

    def bits(self, flags: Value) -> str:
        """The inverse: an i32."""
        few = self.code.value(f"bitcast {vector('i1', self.width)} {flags} to i{self.width}")
        return self.code.value(f"zext i{self.width} {few} to i32")

    def content(self, ref: Ref) -> Value:
        p = self.pointer(ref)
        if ref.type == "pred":
            bits = self.code.value(f"load i32, ptr {p}")
            return self.flags(self.code.value(f"lshr i32 {bits}, {self.shift()}"))
        if ref.type == "b128":
            return tuple(self.load(half, "i64") for half in (p, self.upper(p)))
        return self.load(p, ELEMENT[ref.type])

    def load(self, pointer: str, element: str) -> Value:
        """The slice's lanes of an array of 32."""
        kind = vector(element, self.width)
        return self.code.value(f"load {kind}, ptr {self.at(pointer, element)}, align {self._align(element)}")

    def _align(self, element: str) -> int:
        return self.width * int(element[1:]) // 8

    def _store_predicate(self, ref: Ref, value: Value) -> None:
        self._merge(self.pointer(ref), self.bits(value))

    def _merge(self, p: str, bits: str) -> None:
        """Store the slice's bits of a predicate."""
        e, shift = self.code, self.shift()
        old = e.value(f"load i32, ptr {p}")
        change = e.value(f"xor i32 {bits}, {e.value(f'lshr i32 {old}, {shift}')}")
        mine = e.value(f"and i32 {e.value(f'and i32 {change}, {self.rest}')}, {(1 << self.width) - 1}")
        e.line(f"store i32 {e.value(f'xor i32 {old}, ' + e.value(f'shl i32 {mine}, {shift}'))}, ptr {p}")

    def _store(self, pairs: list[tuple[str, str, str]], full: bool | None) -> None:
        lanes = self.flags(self.rest)
        for p, element, value in pairs:
            where = self.at(p, element)
            self.code.store_masked(vector(element, self.width), value, where, self._align(element), lanes)
        self.go_on()

    def results(self, values: Sequence[Value], *, full: bool | None = None) -> None:
        """Store the slice; the end of the loop."""
        super().results(values, full=False)
