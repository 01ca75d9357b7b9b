"""Builds one handler: loads operand slots, lets the caller compute, stores results under the mask, goes on.

Names that every body may use: `%fp %ip %mask %ctx %warp` (the parameters), `%m` the lanes to run (an i32), `%lanes`
the same as `<32 x i1>`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ptxtools.program.program import Op, Ref
from ptxtools.semantics.algebra import Value

from . import modes
from .algebra import LLVMAlgebra
from .emitter import Emitter
from .keys import OPERANDS_PER_RECORD, RECORD_BYTES, operand_offset, operands_of
from .templates import CONVENTION, SIGNATURE, Template

ELEMENT = {"b16": "i16", "b32": "i32", "b64": "i64"}

#: Instructions of 512 bits that are asked for: they cannot be split where half of that is preferred.
_WHOLE = re.compile(r"@llvm\.x86\.avx512\.([us]itofp\.round\.|\S*\.512\()|> asm ")


def _distinct(refs: tuple[Ref | None, ...]) -> tuple[Ref | None, ...]:
    return tuple(ref and Ref(ref.slot, ref.type) for ref in refs)


class Handler:
    """One handler under construction."""

    def __init__(self, emitter: Emitter, op: Op) -> None:
        self.e = emitter
        # A register that stands at two places has one Ref; the handler serves operations where it has two.
        op = replace(op, dst=_distinct(op.dst), src=_distinct(op.src))
        self.op = op
        self.A = LLVMAlgebra(emitter, context=self._context)
        self._template = Template()
        self._labels = 0
        #: Attribute group of the function: "#2" for one that needs the machine's widest vectors.
        self.attributes = "#0"
        #: Lines that run on every path before the next record.
        self.closing: list[str] = []
        self._pointers: dict[int, str] = {}
        self._operands = operands_of(op)
        self.expand("entry:")
        if op.guard is not None:
            self.expand(
                "%m = guarded %mask\n%nobody = icmp eq i32 %m, 0\nbr i1 %nobody, label %next, label %body\nbody:"
            )
        else:
            self.expand("%m = or i32 %mask, 0")
        self.expand("%lanes = lanes %m\n%full = icmp eq i32 %m, -1")

    # --- emitting -----------------------------------------------------------------------------------------------------

    def expand(self, text: str) -> None:
        """Emit lines in the notation of `templates`."""
        for line in text.strip().splitlines():
            for emitted in self._template.expand(line.strip()).splitlines():
                self.e.line(emitted.strip())

    def field(self, name: str, base: str | None = None) -> str:
        """The value of a structure's field."""
        result = self.e.name()
        self.expand(f"{result} = get {name}" + (f" of {base}" if base else ""))
        return result

    def splat(self, bits: int, scalar: str) -> str:
        return self.A.broadcast(f"i{bits}", scalar)

    def label(self, hint: str = "l") -> str:
        """A fresh label name, not yet placed."""
        self._labels += 1
        return f"{hint}.{self._labels}"

    def place(self, label: str) -> None:
        self.e.line(f"{label}:")

    def branch(self, condition: str, yes: str, no: str, *, likely: bool = False) -> None:
        hint = ", !prof !0" if likely else ""
        self.e.line(f"br i1 {condition}, label %{yes}, label %{no}{hint}")

    def jump(self, label: str) -> None:
        self.e.line(f"br label %{label}")

    def go_on(self) -> None:
        """End this path: on to the next record."""
        self.jump("next")

    def _context(self, name: str) -> str:
        return self.field(f"ctx.{name}")

    # --- operands -----------------------------------------------------------------------------------------------------

    def pointer(self, ref: Ref) -> str:
        """Address of a slot; must first be asked for where it dominates all later uses."""
        place = next(i for i, known in enumerate(self._operands) if known is ref)
        if place not in self._pointers:
            where = self.e.value(f"getelementptr i8, ptr %ip, i64 {operand_offset(place)}")
            offset = self.e.value(f"load i32, ptr {where}")
            self._pointers[place] = self.e.value(f"getelementptr i8, ptr %fp, i32 {offset}")
        return self._pointers[place]

    def content(self, ref: Ref) -> Value:
        """What a slot holds, in its storage class."""
        p = self.pointer(ref)
        if ref.type == "pred":
            bits = self.e.value(f"load i32, ptr {p}")
            return self.e.value(f"bitcast i32 {bits} to <32 x i1>")
        if ref.type == "b128":
            q = self.e.value(f"getelementptr i8, ptr {p}, i64 256")
            return (
                self.e.value(f"load <32 x i64>, ptr {p}, align 64"),
                self.e.value(f"load <32 x i64>, ptr {q}, align 64"),
            )
        return self.e.value(f"load <32 x {ELEMENT[ref.type]}>, ptr {p}, align 64")

    def source(self, position: int) -> Value:
        """Source operand as a value of its PTX type; a sink or missing operand is zero."""
        ref, t = self.op.src[position], self.op.src_types[position]
        if ref is None:
            return self.A.const(t, 0)
        return self.A.adapt(self.content(ref), ref.type, t)

    def sources(self) -> list[Value]:
        return [self.source(i) for i in range(len(self.op.src))]

    def lane(self, ref: Ref, index: str) -> str:
        """One lane of a slot, as a scalar."""
        element = ELEMENT[ref.type]
        p = self.e.value(f"getelementptr {element}, ptr {self.pointer(ref)}, i32 {index}")
        return self.e.value(f"load {element}, ptr {p}")

    def leader(self) -> str:
        """Number of the lowest lane to run."""
        return self.e.call("llvm.cttz.i32", "i32", [("i32", "%m"), ("i1", "true")])

    # --- results ------------------------------------------------------------------------------------------------------

    def results(self, values: Sequence[Value], *, full: bool | None = None) -> None:
        """Widen to the destination slots, store under the mask, and go on. full: whether the mask is known full."""
        pairs: list[tuple[str, str, str]] = []
        for ref, t, value in zip(self.op.dst, self.op.dst_types, values, strict=False):
            if ref is None:
                continue
            wide = self.A.widen(value, t, ref.type)
            if ref.type == "pred":
                self._store_predicate(ref, wide)
            elif ref.type == "b128":
                p = self.pointer(ref)
                q = self.e.value(f"getelementptr i8, ptr {p}, i64 256")
                pairs += [(p, "i64", wide[0]), (q, "i64", wide[1])]
            else:
                pairs.append((self.pointer(ref), ELEMENT[ref.type], wide))
        if pairs:
            self._store(pairs, full)
        else:
            self.go_on()

    def _store_predicate(self, ref: Ref, value: Value) -> None:
        p = self.pointer(ref)
        new = self.e.value(f"bitcast <32 x i1> {value} to i32")
        old = self.e.value(f"load i32, ptr {p}")
        change = self.e.value(f"xor i32 {new}, {old}")
        mine = self.e.value(f"and i32 {change}, %m")
        merged = self.e.value(f"xor i32 {old}, {mine}")
        self.e.line(f"store i32 {merged}, ptr {p}")

    def _store(self, pairs: list[tuple[str, str, str]], full: bool | None) -> None:
        part = self.label("part")
        if full is None:
            whole = self.label("whole")
            self.branch("%full", whole, part)
            self.place(whole)
        if full is not False:
            for p, element, value in pairs:
                self.e.line(f"store <32 x {element}> {value}, ptr {p}, align 64")
            self.go_on()
        if full is None:
            self.place(part)
        if full is not True:
            for p, element, value in pairs:
                old = self.e.value(f"load <32 x {element}>, ptr {p}, align 64")
                new = self.e.value(f"select <32 x i1> %lanes, <32 x {element}> {value}, <32 x {element}> {old}")
                self.e.line(f"store <32 x {element}> {new}, ptr {p}, align 64")
            self.go_on()

    # --- ending -------------------------------------------------------------------------------------------------------

    def trap(self, code: str, lanes: str) -> None:
        """These lanes cannot go on; ends the path. `ctx.stop_address` may be set before."""
        self.expand(f"""
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
        self.place("next")
        for line in self.closing:
            self.e.line(line)
        self.expand(f"%ip.next = getelementptr i8, ptr %ip, i64 {records * RECORD_BYTES}\ngoto %fp, %ip.next, %mask")
        body = self.e.take()
        attributes = "#2" if _WHOLE.search(body) else self.attributes
        attributes += " strictfp" if modes.LOAD in body else ""
        return f"define {CONVENTION} void @{name}({SIGNATURE}) {attributes} {{\n{body}\n}}\n"
