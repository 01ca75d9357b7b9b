"""Stores of words in a row by half a warp each."""

from __future__ import annotations

from collections.abc import Sequence

from ptxtools.native.code.handler import Handler
from ptxtools.semantics.algebra import Value

from .parts import half
from .patterns import SIDES

_ROW = "<16 x i32>"


def store(h: Handler, pointers: Sequence[str], value: Value, active: str) -> None:
    """Store a word of each active lane (i32); pointers: host address (i64) of each half's first lane. A masked store
    waits for lines that are not at hand, so one of all lanes has no mask."""
    e, data = h.code, [half(h, value, "i32", side) for side in SIDES]
    places = [e.value(f"inttoptr i64 {pointer} to ptr") for pointer in pointers]
    whole, some, made = (e.label(hint) for hint in ("whole", "some", "made"))
    if active != "-1":
        e.branch(e.value(f"icmp eq i32 {active}, -1"), whole, some, likely=True)
        e.begin(whole)
    for side in SIDES:
        e.line(f"store {_ROW} {data[side]}, ptr {places[side]}, align 4")
    if active != "-1":
        e.jump(made)
        e.begin(some)
        lanes, name = e.value(f"bitcast i32 {active} to <32 x i1>"), "llvm.masked.store.v16i32.p0"
        e.declare(name, f"declare void @{name}({_ROW}, ptr, <16 x i1>)")
        for side in SIDES:
            mine = half(h, lanes, "i1", side)
            e.line(f"call void @{name}({_ROW} {data[side]}, ptr align 4 {places[side]}, <16 x i1> {mine})")
        e.jump(made)
        e.begin(made)
