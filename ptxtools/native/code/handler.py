"""Builds one handler: loads operand slots, lets the caller compute, stores results under the mask, goes on.

Names that every body may use: `%fp %ip %mask %ctx %warp` (the parameters), `%m` the lanes to run (an i32), `%lanes`
the same as `<32 x i1>`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ptxtools.program.program import LANES, Op, Ref
from ptxtools.records import replace
from ptxtools.semantics.algebra import Value

from . import modes
from .algebra import LLVMAlgebra
from .emitter import Emitter
from .keys import OPERANDS_PER_RECORD, RECORD_BYTES, Operand, operand_offset, operands_of
from .notation import header_of

ELEMENT = {"b16": "i16", "b32": "i32", "b64": "i64"}

#: Instructions of 512 bits that are asked for: they cannot be split where half of that is preferred.
WHOLE = re.compile(r"@llvm\.x86\.avx512\.([us]itofp\.round\.|\S*\.512\()|> asm ")
#: Lines of a body whose values do not fit in 16 registers.
_LONG = 100


def enter(code: Emitter, *, guarded: bool) -> None:
    """The beginning of a handler, which decides which lanes run."""
    code.expand("entry:")
    if guarded:
        code.expand("%m = guarded %mask\n%nobody = icmp eq i32 %m, 0\nbr i1 %nobody, label %next, label %body\nbody:")
    else:
        code.expand("%m = or i32 %mask, 0")
    code.expand("%lanes = lanes %m\n%full = icmp eq i32 %m, -1")


def leave(code: Emitter, name: str, attributes: str = "#0", closing: Sequence[str] = (), records: int = 1) -> str:
    """The end of a handler, which goes on behind its records; the finished function."""
    code.begin("next")
    for line in closing:
        code.line(line)
    following = code.value(f"getelementptr i8, ptr %ip, i64 {records * RECORD_BYTES}")
    code.goto("%fp", following, "%mask")
    body = code.take()
    return f"{header_of(f'@{name}', attributes_of(code, body, attributes))}\n{body}\n}}\n"


def attributes_of(code: Emitter, body: str, attributes: str = "#0", *, spills: bool = True) -> str:
    """Attributes of a function with this body; attributes: its group, unless it needs the widest vectors; spills:
    whether it may have more vectors than registers, rather than more addresses: one register is lost for that."""
    attributes = "#2" if WHOLE.search(body) else attributes
    attributes += " strictfp" if modes.LOAD in body else ""
    # LLVM aligns the stack for variables, but not for registers that it keeps there: vectors would lie across lines.
    return attributes + (' "stackrealign"' if spills and code.unmasked and body.count("\n") > _LONG else "")


def _distinct(refs: tuple[Ref | None, ...]) -> tuple[Ref | None, ...]:
    return tuple(ref and Ref(ref.slot, ref.type) for ref in refs)


class Handler:
    """One handler under construction."""

    def __init__(self, emitter: Emitter, op: Op) -> None:
        self.code = emitter
        # A register that stands at two places has one Ref; the handler serves operations where it has two.
        op = replace(op, dst=_distinct(op.dst), src=_distinct(op.src))
        self.op = op
        #: Ways that only save time are worth compiling, even quickly.
        self.often = not emitter.brief
        self.algebra = LLVMAlgebra(emitter, context=self._context)
        #: Attribute group of the function: "#2" for one that needs the machine's widest vectors.
        self.attributes = "#0"
        #: Names of the lanes to run: as an i32, as <32 x i1>, and whether they are all.
        self.running, self.lanes, self.full = "%m", "%lanes", "%full"
        #: Lines that run on every path before the next record.
        self.closing: list[str] = []
        self._pointers: dict[Operand, str] = {}
        self._operands = operands_of(op)
        self._enter()

    def _enter(self) -> None:
        """The function's beginning, up to where lanes run."""
        enter(self.code, guarded=self.op.guard is not None)

    def go_on(self) -> None:
        """End this path: go to the next record."""
        self.code.jump("next")

    def room(self, kind: str) -> str:
        """Memory on the stack for one value."""
        return self.code.value(f"alloca {kind}, align 64")

    def _context(self, name: str) -> str:
        return self.code.field(f"ctx.{name}")

    # --- operands -----------------------------------------------------------------------------------------------------

    def pointer(self, ref: Ref) -> str:
        """Address of a slot; must first be asked for where it dominates all later uses."""
        operand = next(Operand(i) for i, known in enumerate(self._operands) if known is ref)
        if operand not in self._pointers:
            where = self.code.value(f"getelementptr i8, ptr %ip, i64 {operand_offset(operand)}")
            slot = self.code.value(f"load i32, ptr {where}")
            self._pointers[operand] = self.code.value(f"getelementptr i8, ptr %fp, i32 {slot}")
        return self._pointers[operand]

    def upper(self, pointer: str) -> str:
        """Address of the high halves of a 128-bit slot."""
        return self.code.value(f"getelementptr <{LANES} x i64>, ptr {pointer}, i32 1")

    def content(self, ref: Ref) -> Value:
        """The content of a slot, in its storage class."""
        p = self.pointer(ref)
        if ref.type == "pred":
            bits = self.code.value(f"load i32, ptr {p}")
            return self.code.value(f"bitcast i32 {bits} to <32 x i1>")
        if ref.type == "b128":
            both = p, self.upper(p)
            return tuple(self.code.value(f"load <32 x i64>, ptr {half}, align 64") for half in both)
        return self.code.value(f"load <32 x {ELEMENT[ref.type]}>, ptr {p}, align 64")

    def source(self, position: int) -> Value:
        """Source operand as a value of its PTX type; a sink or missing operand is zero."""
        ref, t = self.op.src[position], self.op.src_types[position]
        if ref is None:
            return self.algebra.const(t, 0)
        return self.algebra.adapt(self.content(ref), ref.type, t)

    def sources(self) -> list[Value]:
        return [self.source(i) for i in range(len(self.op.src))]

    def lane(self, ref: Ref, index: str) -> str:
        """One lane of a slot, as a scalar."""
        element = ELEMENT[ref.type]
        p = self.code.value(f"getelementptr {element}, ptr {self.pointer(ref)}, i32 {index}")
        return self.code.value(f"load {element}, ptr {p}")

    def leader(self) -> str:
        """Number of the lowest lane to run."""
        return self.code.call("llvm.cttz.i32", "i32", [("i32", self.running), ("i1", "true")])

    # --- results ------------------------------------------------------------------------------------------------------

    def results(self, values: Sequence[Value], *, full: bool | None = None) -> None:
        """Widen to the destination slots, store under the mask, and go to the next record. full: whether all lanes are
        known to run."""
        pairs: list[tuple[str, str, str]] = []
        for ref, t, value in zip(self.op.dst, self.op.dst_types, values, strict=False):
            if ref is None:
                continue
            wide = self.algebra.widen(value, t, ref.type)
            if ref.type == "pred":
                self._store_predicate(ref, wide)
            elif ref.type == "b128":
                p = self.pointer(ref)
                pairs += [(p, "i64", wide[0]), (self.upper(p), "i64", wide[1])]
            else:
                pairs.append((self.pointer(ref), ELEMENT[ref.type], wide))
        if pairs:
            self._store(pairs, full)
        else:
            self.go_on()

    def _store_predicate(self, ref: Ref, value: Value) -> None:
        p = self.pointer(ref)
        new = self.code.value(f"bitcast <32 x i1> {value} to i32")
        old = self.code.value(f"load i32, ptr {p}")
        change = self.code.value(f"xor i32 {new}, {old}")
        mine = self.code.value(f"and i32 {change}, %m")
        merged = self.code.value(f"xor i32 {old}, {mine}")
        self.code.line(f"store i32 {merged}, ptr {p}")

    def _store(self, pairs: list[tuple[str, str, str]], full: bool | None) -> None:
        part = self.code.label("part")
        if full is None and self.code.brief:
            full = False
        if full is None:
            whole = self.code.label("whole")
            self.code.branch("%full", whole, part)
            self.code.begin(whole)
        if full is not False:
            for p, element, value in pairs:
                self.code.line(f"store <32 x {element}> {value}, ptr {p}, align 64")
            self.go_on()
        if full is None:
            self.code.begin(part)
        if full is not True:
            for p, element, value in pairs:
                if self.code.brief:
                    self.code.store_masked(f"<32 x {element}>", value, p, 64, "%lanes")
                    continue
                old = self.code.value(f"load <32 x {element}>, ptr {p}, align 64")
                new = self.code.value(f"select <32 x i1> %lanes, <32 x {element}> {value}, <32 x {element}> {old}")
                self.code.line(f"store <32 x {element}> {new}, ptr {p}, align 64")
            self.go_on()

    # --- ending -------------------------------------------------------------------------------------------------------

    def trap(self, code: str, lanes: str) -> None:
        """These lanes cannot go on; ends the path. `ctx.stop_address` may be set before."""
        self.code.expand(f"""
            set ctx.stop_code, {code}
            set ctx.stop_mask, {lanes}
            set ctx.stop_ip, %ip
            set ctx.stop_warp, %warp
            set ctx.stop_fp, %fp
            leave STATUS_TRAP
        """)

    def text(self, name: str) -> str:
        """The finished function."""
        records = 1 + max(0, len(self._operands) - 1) // OPERANDS_PER_RECORD
        return leave(self.code, name, self.attributes, self.closing, records)
