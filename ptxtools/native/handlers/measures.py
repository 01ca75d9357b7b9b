"""Measures of accesses: sectors of global memory that a warp touches, passes that it needs over shared banks.

`machine.measures` says what is measured, and is the same for arrays.
"""

from __future__ import annotations

from ptxtools.machine.measures import BANK_BYTES, BANKS, SECTOR_BYTES
from ptxtools.native.code.handler import Handler
from ptxtools.program.details import Measured
from ptxtools.program.program import SHARED_WINDOW

from . import counts
from .parts import Address

#: Bytes before the rows of counters to work in: sectors of the lanes, or words in each bank and most of each group.
ROOM = 256
_SHIFT = SECTOR_BYTES.bit_length() - 1


def measure(h: Handler) -> None:
    """Row of the detail += what the lanes' addresses say."""
    detail = h.op.of(Measured)
    e = h.code
    address = e.value(f"or <32 x i64> {Address(h).vector()}, zeroinitializer", "%a")
    if detail.lanes < 32:
        e.line(f"%first = and i32 %m, {(1 << detail.lanes) - 1}")
    else:
        e.line("%first = or i32 %m, 0")
    if h.op.space == "generic":
        window = SHARED_WINDOW >> 56 if detail.space == "shared" else 0
        e.line(f"%window = lshr <32 x i64> {address}, splat (i64 56)")
        e.line(f"%in = icmp eq <32 x i64> %window, splat (i64 {window})")
        e.expand("%in.bits = bits %in\n%mine = and i32 %in.bits, %first")
    else:
        e.line("%mine = or i32 %first, 0")
    e.expand("%nothing = icmp eq i32 %mine, 0\nbr i1 %nothing, label %next, label %some\nsome:")
    if detail.space == "global":
        _global(h, detail)
    else:
        _shared(h, detail)
    h.go_on()


# --- global memory ----------------------------------------------------------------------------------------------------

#: Each sector once, in the order of the lanes: of full warps with ascending addresses those that differ from the one
#: before, of others the first that is left, and then without all lanes at it.
_SECTORS = f"""
  %rows = get ctx.counters
  %places = getelementptr i8, ptr %rows, i32 -{ROOM}
  store <32 x i64> %sector, ptr %places, align 8
  %last = get ctx.cache_mask
  %cached = get ctx.cached
  %dirty = get ctx.dirty
  %everybody = icmp eq i32 %mine, -1
  br i1 %everybody, label %ordered, label %search
ordered:
  %up = icmp uge <32 x i64> %sector, %before
  %up.bits = bits %up
  %sorted = icmp eq i32 %up.bits, -1
  %new = icmp ne <32 x i64> %sector, %before
  %new.bits = bits %new
  %firsts = or i32 %new.bits, 1
  br i1 %sorted, label %step, label %search
step:
  %s.left = phi i32 [ %firsts, %ordered ], [ %s.next, %step ]
  %s.missed = phi i32 [ 0, %ordered ], [ %s.missed.next, %step ]
  %s.lane = call i32 @llvm.cttz.i32(i32 %s.left, i1 true)
  %s.p = getelementptr i64, ptr %places, i32 %s.lane
  %s.here = load i64, ptr %s.p
LOOK_UP(s)
  %s.less = sub i32 %s.left, 1
  %s.next = and i32 %s.left, %s.less
  %s.through = icmp eq i32 %s.next, 0
  br i1 %s.through, label %stepped, label %step
stepped:
  %stepped.count = call i32 @llvm.ctpop.i32(i32 %firsts)
  br label %known
search:
  br label %look
look:
  %l.left = phi i32 [ %mine, %search ], [ %l.next, %look ]
  %l.missed = phi i32 [ 0, %search ], [ %l.missed.next, %look ]
  %l.count = phi i32 [ 0, %search ], [ %l.count.next, %look ]
  %l.lane = call i32 @llvm.cttz.i32(i32 %l.left, i1 true)
  %l.p = getelementptr i64, ptr %places, i32 %l.lane
  %l.here = load i64, ptr %l.p
LOOK_UP(l)
  %l.count.next = add i32 %l.count, 1
  %here.all = splat64 %l.here
  %others = icmp ne <32 x i64> %sector, %here.all
  %others.bits = bits %others
  %l.next = and i32 %l.left, %others.bits
  %l.through = icmp eq i32 %l.next, 0
  br i1 %l.through, label %known, label %look
known:
  %count = phi i32 [ %stepped.count, %stepped ], [ %l.count.next, %look ]
  %missed = phi i32 [ %s.missed.next, %stepped ], [ %l.missed.next, %look ]
  %count64 = zext i32 %count to i64
  %missed64 = zext i32 %missed to i64
"""

#: Whether a sector is not in a table of the cache, where it is from now on; what is written is in both.
_LOOK_UP = """
  %{n}.number = trunc i64 %{n}.here to i32
  %{n}.at = and i32 %{n}.number, %last
  %{n}.place = getelementptr i32, ptr {table}, i32 %{n}.at
  %{n}.old = load i32, ptr %{n}.place
  store i32 %{n}.number, ptr %{n}.place
  %{n}.other = icmp ne i32 %{n}.old, %{n}.number
  %{n}.more = zext i1 %{n}.other to i32
  %{n}.missed.next = add i32 %{n}.missed, %{n}.more
"""
_ALSO_CACHED = """
  %{n}.copy = getelementptr i32, ptr %cached, i32 %{n}.at
  store i32 %{n}.number, ptr %{n}.copy
"""


def _global(h: Handler, detail: Measured) -> None:
    e = h.code
    e.declare("llvm.cttz.i32", "declare i32 @llvm.cttz.i32(i32, i1)")
    e.declare("llvm.ctpop.i32", "declare i32 @llvm.ctpop.i32(i32)")
    text = _SECTORS
    for n in "sl":
        look_up = _LOOK_UP.format(n=n, table="%dirty" if detail.writes else "%cached")
        text = text.replace(f"LOOK_UP({n})", look_up + (_ALSO_CACHED.format(n=n) if detail.writes else ""))
    sector = e.value(f"lshr <32 x i64> %a, splat (i64 {_SHIFT})", "%sector")
    e.shuffle("<32 x i64>", (max(0, lane - 1) for lane in range(32)), sector, name="%before")
    e.expand(text)
    counts.add(h, counts.row_of(h), ["1", counts.lanes_of(h, "%mine"), "%count64", "%missed64"])


# --- shared memory ----------------------------------------------------------------------------------------------------

#: Passes over the banks: one for each group of lanes in a stretch of words as wide as the banks; else one by one, each
#: word that makes its bank have more of them than any bank of its group before makes a pass more.
_PASSES = """
  %distance = sub <32 x i32> %unit, %base
  %near = icmp ult <32 x i32> %distance, splat (i32 {group})
  %near.bits = bits %near
  %near.mine = and i32 %near.bits, %mine
  %close = icmp eq i32 %near.mine, %mine           ; in a stretch of words as wide as the banks
  {least}
  br i1 %close, label %known, label %search
search:
  %numbers = load <32 x i32>, ptr @lane_numbers
  %in.group = and <32 x i32> %unit, splat (i32 {inside})
  %group = and <32 x i32> %numbers, splat (i32 {outside})
  %bank = or <32 x i32> %in.group, %group
  %rows = get ctx.counters
  %words = getelementptr i8, ptr %rows, i32 -64
  %most = getelementptr i8, ptr %rows, i32 -32
  store <32 x i8> zeroinitializer, ptr %words, align 8
  store <32 x i8> zeroinitializer, ptr %most, align 8
  br label %look
look:
  %left = phi i32 [ %mine, %search ], [ %left.next, %look ]
  %sum = phi i32 [ 0, %search ], [ %sum.next, %look ]
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %here = extractelement <32 x i32> %unit, i32 %lane
  %here.all = splat32 %here
  %my.group = extractelement <32 x i32> %group, i32 %lane
  %my.group.all = splat32 %my.group
  %same.word = icmp eq <32 x i32> %unit, %here.all
  %same.group = icmp eq <32 x i32> %group, %my.group.all
  %same = and <32 x i1> %same.word, %same.group
  %same.bits = bits %same
  %others = xor i32 %same.bits, -1
  %left.next = and i32 %left, %others
  %my.bank = extractelement <32 x i32> %bank, i32 %lane
  %word.p = getelementptr i8, ptr %words, i32 %my.bank
  %most.p = getelementptr i8, ptr %most, i32 %my.group
  %word.old = load i8, ptr %word.p
  %word.new = add i8 %word.old, 1
  store i8 %word.new, ptr %word.p
  %most.old = load i8, ptr %most.p
  %more = icmp ugt i8 %word.new, %most.old
  %most.new = select i1 %more, i8 %word.new, i8 %most.old
  store i8 %most.new, ptr %most.p
  %more32 = zext i1 %more to i32
  %sum.next = add i32 %sum, %more32
  %through = icmp eq i32 %left.next, 0
  br i1 %through, label %known, label %look
known:
  %passes = phi i32 [ %least, %some ], [ %sum.next, %look ]
  %passes64 = zext i32 %passes to i64
  %least64 = zext i32 %least to i64
"""


def _shared(h: Handler, detail: Measured) -> None:
    e = h.code
    e.declare("llvm.cttz.i32", "declare i32 @llvm.cttz.i32(i32, i1)")
    e.declare("llvm.ctpop.i32", "declare i32 @llvm.ctpop.i32(i32)")
    unit = max(BANK_BYTES, detail.size)
    group = BANKS * BANK_BYTES // unit
    wide = e.value(f"lshr <32 x i64> %a, splat (i64 {unit.bit_length() - 1})")
    words = e.value(f"trunc <32 x i64> {wide} to <32 x i32>", "%unit")
    e.shuffle("<32 x i32>", (lane // group * group for lane in range(32)), words, name="%base")
    least = ["%least.0 = or i32 0, 0"]
    for number in range(32 // group):
        lanes = ((1 << group) - 1) << (number * group)
        least += [
            f"%part.{number} = and i32 %mine, {lanes}", f"%any.{number} = icmp ne i32 %part.{number}, 0",
            f"%one.{number} = zext i1 %any.{number} to i32",
            f"%least.{number + 1} = add i32 %least.{number}, %one.{number}",
        ]  # fmt: skip
    least.append(f"%least = or i32 %least.{32 // group}, 0")
    e.expand(_PASSES.format(
        group=group, inside=group - 1, outside=-group,
        least="\n".join(least),
    ))  # fmt: skip
    counts.add(h, counts.row_of(h), ["1", counts.lanes_of(h, "%mine"), "%passes64", "%least64"])
