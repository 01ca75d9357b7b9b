"""Regions over several blocks that look at their accesses themselves (`native.code.chains`).

The record of one has in `extra` what the blocks count as whose ends it passes, in s2 what those cost of a slice, and in
s3 the last of them. Each group of accesses is to lie in one stretch that observers have nothing to say about: of those
that `ctx.bounded` has, the one its first lane is in. Where one of them keeps something of those bytes, a function looks
at it (`loop.filter_regions`). Anything else is a miss; where the slice would end in between, or
lanes wait at one of the blocks, the region is passed by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ptxtools.native.code.structures import GROUP, SPACE_GLOBAL, SPACE_SHARED

from .parts import Window
from .patterns import SIDES

if TYPE_CHECKING:
    from ptxtools.native.code.emitter import Emitter
    from ptxtools.native.code.handler import Handler

    from .patterns import Pattern

_SPACES = {"global": SPACE_GLOBAL, "shared": SPACE_SHARED}
#: Memory for one group of accesses.
ROOM = f"[{GROUP.size} x i8]"

#: In front of the region, behind `region_misses.BEGIN`.
CHAIN = """
  %chain.cost = get rec.s2
  %chain.last = get rec.s3
  %chain.weight = get rec.extra
  %chain.slice = get ctx.slice
  %chain.left = sub i32 %chain.slice, %chain.cost
  %chain.time = icmp sge i32 %chain.left, 0
  %chain.pend = get warp.pend
  %chain.near = icmp ult i32 %chain.last, %chain.pend
  %chain.filter = get ctx.bounded
  %chain.known = icmp ne ptr %chain.filter, null
  %chain.soon = and i1 %chain.time, %chain.near
  %chain.ok = and i1 %chain.soon, %chain.known
  br i1 %chain.ok, label %chain, label %next, !prof !0
chain:
"""
#: Behind a region that does not go round: charge the ends that it has passed.
CHARGE = """
  %chain.running = call i32 @llvm.ctpop.i32(i32 %m)
  %chain.threads = mul i32 %chain.running, %chain.weight
  %chain.threads64 = zext i32 %chain.threads to i64
  %chain.count = get ctx.count
  %chain.count.new = add i64 %chain.count, %chain.threads64
  set ctx.slice, %chain.left
  set ctx.count, %chain.count.new
"""


def narrowed(h: Handler, window: Window, space: str, address: str, room: str, *, writes: bool) -> tuple[Window, str]:
    """The part of a state space's window, from a multiple of 4 on, that is in the stretches for reads or writes which an
    address (i64) is in; an empty one, or any other stretch, if it is in none. And an i32, what observers keep of its
    bytes. room: memory for two i64."""
    e = h.code
    find = e.field("ctx.region_find")
    number = 2 * _SPACES[space] + writes
    kept = e.value(f"call i32 {find}(ptr %ctx, i32 {number}, i64 {address}, ptr {room})")
    start = e.value(f"load i64, ptr {room}")
    after = e.value(f"load i64, ptr {e.value(f'getelementptr i64, ptr {room}, i32 1')}")
    above = e.call("llvm.umax.i64", "i64", [("i64", start), ("i64", window.base)])
    first = e.value(f"and i64 {e.value(f'add i64 {above}, 3')}, -4")
    end = e.call("llvm.umin.i64", "i64", [("i64", after), ("i64", e.value(f"add i64 {window.base}, {window.size}"))])
    size = e.call("llvm.usub.sat.i64", "i64", [("i64", end), ("i64", first)])
    host = e.value(f"add i64 {window.host}, {e.value(f'sub i64 {first}, {window.base}')}")
    return Window(host, first, size), kept


def describe(h: Handler, room: str, pattern: Pattern, starts: list[str], fail: Callable[[str], None]) -> None:
    """Fill a `structures.GROUP` with where the lanes are, or fail where half of them are neither at words that follow
    each other nor at one word. starts: address of each half's first lane."""
    e = h.code
    e.set_field("group.active", pattern.active, room)
    for side in SIDES:
        e.set_field(f"group.first{side}", starts[side], room)
        e.set_field(f"group.column{side}", pattern.column[side], room)
        point = str(int(pattern.point))
        if not pattern.point and not pattern.row:
            column = e.spread("i32", pattern.column[side], 16)
            order = ", ".join(f"i32 {number}" for number in range(16))
            mine = e.value(f"lshr i32 {pattern.active}, {16 * side}")
            others = e.value(f"xor i16 {e.value(f'trunc i32 {mine} to i16')}, -1")
            in_row, at_one = (
                _all(e, e.value(f"icmp eq <16 x i32> {words}, {wanted}"), others)
                for words, wanted in (
                    (e.value(f"add <16 x i32> {pattern.words[side]}, {column}"), f"<{order}>"),
                    (pattern.words[side], "zeroinitializer"),
                )
            )
            fail(e.value(f"or i1 {in_row}, {at_one}"))
            point = e.value(f"zext i1 {e.value(f'xor i1 {in_row}, true')} to i32")
        e.set_field(f"group.point{side}", point, room)


def _all(e: Emitter, flags: str, others: str) -> str:
    """i1: whether 16 flags hold, or those of `others` (i16)."""
    bits = e.value(f"or i16 {e.value(f'bitcast <16 x i1> {flags} to i16')}, {others}")
    return e.value(f"icmp eq i16 {bits}, -1")


def ask(h: Handler, room: str, function: str, space: str, imms: Iterable[int], *, writes: bool) -> str:
    """Call a function of `loop.filter_regions` for accesses at some distances from a group that is described; i1, what
    it says."""
    e, distances = h.code, sorted(imms)
    name = "distances_" + "_".join(str(one).replace("-", "m") for one in distances)
    e.set_field("group.number", str(2 * _SPACES[space] + writes), room)
    e.set_field("group.count", str(len(distances)), room)
    e.set_field("group.imms", e.constant_table(name, "i64", distances), room)
    answer = e.value(f"call i32 {e.field(f'ctx.{function}')}(ptr %ctx, ptr %warp, ptr {room})")
    return e.value(f"icmp ne i32 {answer}, 0")
