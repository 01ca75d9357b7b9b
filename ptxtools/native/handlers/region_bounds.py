"""Regions over several blocks that look at their accesses themselves (`native.code.chains`).

The record of one has in `extra` what the blocks count as whose ends it passes, in s2 what those cost of a slice, and in
s3 the last of them. Each group of accesses is to lie in one stretch that observers have nothing to say about: of those
that `ctx.bounded` has, the one its first lane is in. Where one of them keeps something of those bytes, a function looks
at it (`loop.filter_regions`). Anything else is a miss; where the slice would end in between, or
lanes wait at one of the blocks, the region is passed by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from ptxtools.native.code.emitter import splat
from ptxtools.native.code.structures import (
    COMPLETE,
    FLAGS_KEPT,
    FLAGS_SET,
    GROUP,
    KNOWN_OFFSET,
    KNOWN_ROWS,
    KNOWN_WHOLE,
    SPACE_GLOBAL,
    SPACE_SHARED,
    STRETCH,
)
from ptxtools.records import NamedTuple

from .parts import Window, half
from .patterns import SIDES

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ptxtools.native.code.emitter import Emitter
    from ptxtools.native.code.handler import Handler

    from .patterns import Pattern
    from .regions import Accesses, Place

_SPACES = {"global": SPACE_GLOBAL, "shared": SPACE_SHARED}
_FOUND, _GROUP = "[3 x i64]", f"[{GROUP.size} x i8]"
#: Flags of 16 words that are set.
_SET = splat("i32", FLAGS_SET)


class Rooms(NamedTuple):
    """Memory for one group of accesses. group: to describe it in; found: a stretch, as a function finds it; complete: a
    `structures.COMPLETE`, or null; known: a STRETCH from the last time, or zeros; "" where there is none."""

    group: str
    found: str
    complete: str = "null"
    known: str = ""


def rooms(h: Handler) -> Rooms:
    """For one group, at the start of a handler."""
    return Rooms(h.room(_GROUP), h.room(_FOUND))


def lasting_rooms(h: Handler, first: AbstractContextManager[None], number: int, *, whole: bool = False) -> Rooms:
    """For one group of a kernel in unison. first: emits at the start of the function; number: of the row of
    KNOWN_ROWS that is its own, if there are so many; whole: of those for CTAs that run as a whole."""
    e, group, found = h.code, h.room(_GROUP), h.room(_FOUND)
    with first:
        parts = KNOWN_ROWS - KNOWN_WHOLE
        if number >= (KNOWN_WHOLE if whole else parts):
            return Rooms(group, found, "%complete", _zeros(e, f"[{STRETCH.size} x i8]"))
        known = e.value(f"getelementptr i8, ptr %ctx, i64 {KNOWN_OFFSET + STRETCH.size * (parts * whole + number)}")
        return Rooms(group, found, "%complete", known)


def completion(e: Emitter, name: str) -> None:
    """A COMPLETE of which nothing is known, at the start of a function that runs one CTA."""
    _zeros(e, f"[{COMPLETE.size} x i8]", name)


def _zeros(e: Emitter, kind: str, name: str = "") -> str:
    room = e.value(f"alloca {kind}, align 64", name)
    e.line(f"store {kind} zeroinitializer, ptr {room}")
    return room


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


def find(accesses: Accesses, place: Place, address: str) -> None:
    """Find the window of a group, where an address (i64) is that it accesses first, and what observers keep of its
    bytes."""
    sorts = sorted({step.kind == "st" for step in accesses.steps_at(place)})
    window, rooms = accesses.windows[place[3]], accesses.rooms[place]
    accesses.stretches[place], accesses.kept[place] = stretch(accesses.handler, window, place[3], address, rooms, sorts)


def stretch(
    h: Handler, window: Window, space: str, address: str, rooms: Rooms, sorts: Sequence[bool]
) -> tuple[Window, str]:
    """The part of a state space's window that is in the stretches for reads, writes (a sort of True) or both which an
    address (i64) is in, and what observers keep of its bytes (i32); that of the last time, if the address is in it."""
    e, known = h.code, rooms.known
    if not known:
        found, kept, _ = _asked(h, window, space, address, rooms, sorts)
        return found, kept
    here, ask = e.label("known"), e.label("ask")
    inside = e.value(f"sub i64 {address}, {e.field('stretch.first', known)}")
    e.branch(e.value(f"icmp ult i64 {inside}, {e.field('stretch.size', known)}"), here, ask, likely=True)
    e.begin(ask)
    found, kept, flags = _asked(h, window, space, address, rooms, sorts)
    for name, value in (("first", found.base), ("size", found.size), ("flags", flags), ("kept", kept)):
        e.set_field(f"stretch.{name}", value, known)
    e.jump(here)
    e.begin(here)
    first = e.field("stretch.first", known)
    host = e.value(f"add i64 {e.value(f'sub i64 {window.host}, {window.base}')}, {first}")
    return Window(host, first, e.field("stretch.size", known)), e.field("stretch.kept", known)


def _asked(
    h: Handler, window: Window, space: str, address: str, rooms: Rooms, sorts: Sequence[bool]
) -> tuple[Window, str, str]:
    """As `stretch`, by asking; and where flags are."""
    kept, flags = "0", "0"
    for writes in sorts:
        window, more, flags = _narrowed(h, window, space, address, rooms, writes)
        kept = h.code.value(f"or i32 {kept}, {more}")
    return window, kept, flags


def _narrowed(
    h: Handler, window: Window, space: str, address: str, rooms: Rooms, writes: bool
) -> tuple[Window, str, str]:
    """The part of a state space's window, from a multiple of 4 on, that is in the stretches for reads or writes which
    an address is in; an empty one if it is in none. And what observers keep of its bytes, and where flags are."""
    e, number = h.code, 2 * _SPACES[space] + writes
    find = e.field("ctx.region_find")
    kept = e.value(f"call i32 {find}(ptr %ctx, i32 {number}, i64 {address}, ptr {rooms.found})")
    fields = [e.value(f"getelementptr i64, ptr {rooms.found}, i32 {field}") for field in range(3)]
    start, after, flags = (e.value(f"load i64, ptr {one}") for one in fields)
    above = e.call("llvm.umax.i64", "i64", [("i64", start), ("i64", window.base)])
    first = e.value(f"and i64 {e.value(f'add i64 {above}, 3')}, -4")
    end = e.call("llvm.umin.i64", "i64", [("i64", after), ("i64", e.value(f"add i64 {window.base}, {window.size}"))])
    size = e.call("llvm.usub.sat.i64", "i64", [("i64", end), ("i64", first)])
    host = e.value(f"add i64 {window.host}, {e.value(f'sub i64 {first}, {window.base}')}")
    return Window(host, first, size), kept, flags


def widen(accesses: Accesses, place: Place, nobody: str) -> None:
    """Where no lane makes the accesses of a group (i1), any place will do."""
    e, whole, found = accesses.code, accesses.windows[place[3]], accesses.stretches[place]
    pairs = (whole.host, found.host), (whole.base, found.base), (whole.size, found.size)
    chosen = [e.value(f"select i1 {nobody}, i64 {any_place}, i64 {here}") for any_place, here in pairs]
    accesses.stretches[place] = Window(*chosen)
    accesses.kept[place] = e.value(f"select i1 {nobody}, i32 0, i32 {accesses.kept[place]}")


def wanted(h: Handler, kept: str, space: str, rooms: Rooms) -> str:
    """What of that has to be looked at and noted: no flags of shared memory that are known to be set."""
    e = h.code
    if not rooms.known or space != "shared":
        return kept
    known = e.value(f"icmp ne i32 {e.field('complete.known', rooms.complete)}, 0")
    rest = e.value(f"and i32 {kept}, {~FLAGS_KEPT}")
    return e.value(f"select i1 {known}, i32 {rest}, i32 {kept}")


def describe(h: Handler, rooms: Rooms, pattern: Pattern, starts: list[str], fail: Callable[[str], None]) -> None:
    """Fill a `structures.GROUP` with where the lanes are, or fail where half of them are neither at words that follow
    each other nor at one word. starts: address of each half's first lane."""
    e, room = h.code, rooms.group
    e.set_field("group.complete", rooms.complete, room)
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


def ask(h: Handler, rooms: Rooms, function: str, space: str, imms: Iterable[int], *, writes: bool) -> str:
    """Call a function of `loop.filter_regions` for accesses at some distances from a group that is described; i1, what
    it says."""
    e, room, distances = h.code, rooms.group, sorted(imms)
    name = "distances_" + "_".join(str(one).replace("-", "m") for one in distances)
    e.set_field("group.number", str(2 * _SPACES[space] + writes), room)
    e.set_field("group.count", str(len(distances)), room)
    e.set_field("group.imms", e.constant_table(name, "i64", distances), room)
    answer = e.value(f"call i32 {e.field(f'ctx.{function}')}(ptr %ctx, ptr %warp, ptr {room})")
    return e.value(f"icmp ne i32 {answer}, 0")


def look(accesses: Accesses, place: Place, pattern: Pattern, starts: list[str], fits: str) -> None:
    """Let observers look at what they keep of a group's bytes, if they keep any; fits: i1, whether the group has the
    pattern, empty where it has."""
    h, e, rooms, least = accesses.handler, accesses.code, accesses.rooms[place], min(accesses.groups[place].imms)
    some, on = e.label("kept"), e.label("unkept")
    kept = wanted(h, accesses.kept[place], place[3], rooms)
    e.branch(e.value(f"icmp eq i32 {kept}, 0"), on, some)
    e.begin(some)
    if fits:
        accesses.maker.demand(fits)
    describe(h, rooms, pattern, starts, accesses.maker.demand)
    for writes in (False, True):
        imms = {one.imm - least for one in accesses.steps_at(place) if (one.kind == "st") == writes}
        if imms:
            accesses.maker.demand(ask(h, rooms, "region_kept", place[3], imms, writes=writes))
    e.jump(on)
    e.begin(on)


def note(accesses: Accesses, place: Place, imm: int, pattern: Pattern) -> None:
    """Behind a store: what it has written is noted, if observers keep flags of it."""
    h, e, rooms = accesses.handler, accesses.code, accesses.rooms[place]
    some, on = e.label("flagged"), e.label("noted")
    kept = wanted(h, accesses.kept[place], place[3], rooms)
    e.branch(e.value(f"icmp eq i32 {e.value(f'and i32 {kept}, {FLAGS_KEPT}')}, 0"), on, some)
    e.begin(some)
    if rooms.known and pattern.row:
        here, others = e.label("flags"), e.label("others")
        flags = e.field("stretch.flags", rooms.known)
        e.branch(e.value(f"icmp ne i64 {flags}, 0"), here, others, likely=True)
        e.begin(here)
        _set_rows(accesses, place, imm, pattern, flags)
        e.jump(on)
        e.begin(others)
    ask(h, rooms, "region_set", place[3], [imm - min(accesses.groups[place].imms)], writes=True)
    e.jump(on)
    e.begin(on)


def _set_rows(accesses: Accesses, place: Place, imm: int, pattern: Pattern, flags: str) -> None:
    """Set the flags of words in a row, in each half of the lanes."""
    e, group = accesses.code, accesses.groups[place]
    if place[3] == "shared":
        flags = e.value(f"add i64 {flags}, {accesses.windows['shared'].host}")
    lanes, name = e.value(f"bitcast i32 {pattern.active} to <32 x i1>"), "llvm.masked.store.v16i32.p0"
    e.declare(name, f"declare void @{name}(<16 x i32>, ptr, <16 x i1>)")
    for side in SIDES:
        back = e.value(f"zext i32 {e.value(f'shl i32 {pattern.column[side]}, 2')} to i64")
        first = e.value(f"sub i64 {e.value(f'add i64 {group.starts[side]}, {imm - min(group.imms)}')}, {back}")
        at = e.value(f"inttoptr i64 {e.value(f'add i64 {flags}, {first}')} to ptr")
        mine = half(accesses.handler, lanes, "i1", side)
        e.line(f"call void @{name}(<16 x i32> {_SET}, ptr align 1 {at}, <16 x i1> {mine})")
