"""Handlers of short operations that a program does often, for code that is to be compiled quickly.

A function of one block keeps its values in registers, however quickly it is compiled: it has the operands and what is
computed of them, for one slice of the warp after the other. The results are arguments of another function, in which all
handlers go on whose results have the same type: that stores them in the lanes that run, and goes on with the next
record.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ptxtools.native.handlers import body_of
from ptxtools.program.operations import LANEWISE
from ptxtools.program.program import LANES, Op, Ref
from ptxtools.semantics.algebra import Value

from . import modes
from .algebra import LLVMAlgebra
from .emitter import Emitter, vector
from .handler import WHOLE
from .keys import OPERANDS_PER_RECORD, RECORD_BYTES, Operand, operand_offset, operands_of
from .notation import CONVENTION, SIGNATURE
from .slices import Slices

#: Lines of IR for all slices in such a handler at most.
_MOST_LINES = 80
#: What needs more than one block: branches, memory of its own, calls, vectors wider than those of others.
_MORE = re.compile(rf":$|= alloca |@(?!llvm\.)|{WHOLE.pattern}", re.MULTILINE)
#: What begins the names of the functions that store results.
_STORE = "straight."
_PREDICATE = "pred"


def is_short(lines: int, width: int) -> bool:
    """Whether an operation with so many lines for a slice is short enough."""
    return lines * (LANES // width) <= _MOST_LINES


def functions(emitter: Emitter, ops: dict[str, Op]) -> dict[str, str]:
    """The functions of some handlers by name, with those that they go on in."""
    found: dict[str, str] = {}
    if "avx2" not in emitter.features:  # all results are arguments in registers
        return found
    stores: dict[str, str] = {}
    for name, op in ops.items():
        results = [ref for ref in op.dst if ref is not None]
        if op.kind in LANEWISE and len(results) == 1 and len(operands_of(op)) <= OPERANDS_PER_RECORD:
            handler = _Straight(emitter, op)
            text = handler.function(name)
            if text:
                found[name] = text
                stores.setdefault(handler.behind, _store(emitter, handler.behind, handler.kind, handler.width))
    return found | stores


def _parameters(kinds: Sequence[str], names: Sequence[str]) -> str:
    return ", ".join(f"{kind} {name}" for kind, name in zip(kinds, names, strict=True))


def _types(kind: str, width: int) -> list[str]:
    """Of the arguments that results of a type are."""
    return ["i32"] if kind == _PREDICATE else [vector(kind, width)] * (LANES // width)


class _Straight(Slices):
    """An operation in such a function. kind: of its results; behind: the function that stores them."""

    kind, behind = "", ""

    def __init__(self, emitter: Emitter, op: Op) -> None:
        self._values: list[str] = []
        super().__init__(emitter, op)

    def _enter(self) -> None:
        self.code.begin("entry")

    def begin(self, width: int) -> None:
        self.width, self.first = width, "0"
        self.algebra = LLVMAlgebra(self.code, width, self._context)

    def shift(self) -> str:
        return self.first

    def function(self, name: str) -> str:
        """The function, or nothing if one block is not enough."""
        e, start = self.code, len(self.code.lines)
        for first in range(0, LANES, self.width):
            self.first = str(first)
            body_of(self.op.kind)(self)
            if not first and not is_short(len(e.lines) - start, self.width):
                e.take()
                return ""
        if not self._values or modes.changes(e.lines) or _MORE.search("\n".join(e.lines[1:])):
            e.take()
            return ""
        types, values = _types(self.kind, self.width), self._values
        if self.kind == _PREDICATE:
            values = [self._bits_of_warp()]
        self.behind = f"{_STORE}{self.kind}.{len(types)}"
        arguments = _parameters(types, values)
        e.line(f"musttail call {CONVENTION} void @{self.behind}({SIGNATURE}, {arguments})")
        e.line("ret void")
        unused = _parameters(types, [f"%unused.{n}" for n in range(len(types))])
        return f"define {CONVENTION} void @{name}({SIGNATURE}, {unused}) #0 {{\n{e.take()}\n}}\n"

    def _bits_of_warp(self) -> str:
        """The slices' bits as one word."""
        bits = self._values[0]
        for number, value in enumerate(self._values[1:], 1):
            bits = self.code.value(f"or i32 {bits}, {self.code.value(f'shl i32 {value}, {number * self.width}')}")
        return bits

    def go_on(self) -> None:
        pass

    def _store_predicate(self, ref: Ref, value: Value) -> None:
        self.kind = _PREDICATE
        self._values.append(self.bits(value))

    def results(self, values: Sequence[Value], *, full: bool | None = None) -> None:
        if all(ref is None or ref.type != "b128" for ref in self.op.dst):
            super().results(values, full=full)

    def _store(self, pairs: list[tuple[str, str, str]], full: bool | None) -> None:
        ((_, self.kind, value),) = pairs
        self._values.append(value)


def _store(emitter: Emitter, name: str, kind: str, width: int) -> str:
    """The function that stores results of a type."""
    e, types = emitter, _types(kind, width)
    values = [f"%result.{number}" for number in range(len(types))]
    e.begin("entry")
    lanes = e.guarded("%mask")
    slot = e.value(f"load i32, ptr {e.value(f'getelementptr i8, ptr %ip, i64 {operand_offset(Operand(0))}')}")
    pointer = e.value(f"getelementptr i8, ptr %fp, i32 {slot}")
    if kind == _PREDICATE:
        old = e.value(f"load i32, ptr {pointer}")
        change = e.value(f"and i32 {e.value(f'xor i32 {old}, {values[0]}')}, {lanes}")
        e.line(f"store i32 {e.value(f'xor i32 {old}, {change}')}, ptr {pointer}")
    else:
        for number, value in enumerate(values):
            some = e.value(f"trunc i32 {e.value(f'lshr i32 {lanes}, {number * width}')} to i{width}")
            flags = e.value(f"bitcast i{width} {some} to {vector('i1', width)}")
            where = e.value(f"getelementptr {kind}, ptr {pointer}, i64 {number * width}")
            e.store_masked(types[number], value, where, width * int(kind[1:]) // 8, flags)
    following = e.value(f"getelementptr i8, ptr %ip, i64 {RECORD_BYTES}")
    handler = e.value(f"load ptr, ptr {following}")
    frame = SIGNATURE.replace("%ip", following)
    nothing = _parameters(types, ["poison"] * len(types))
    e.line(f"musttail call {CONVENTION} void {handler}({frame}, {nothing})")
    e.line("ret void")
    arguments = _parameters(types, values)
    return f"define internal {CONVENTION} void @{name}({SIGNATURE}, {arguments}) #0 {{\n{e.take()}\n}}\n"
