"""Part of the service before an access: words that say when bytes were last written and read (`structures.CLOCKS`).

It begins at `clocked`, with %distance of the lanes %group in their stretch and %kept.base, where its words begin; and
ends at `passed` or `ask`. Of each piece of memory there are two words: the last write, and the last read or the last of
several reads. Both are a time, which belongs to one warp, above the lane. An access passes if its warp knows of the
write, and a write if it knows of the reads, too: then it takes their place. Words that several lanes change are read
again: only one of them finds what it has stored.
"""

from __future__ import annotations

from ptxtools.machine.residents import (
    ALL_LANES,
    CLOCK_SHIFT,
    GUARDED,
    MOST_TIMES,
    SEVERAL_CLUSTER,
    SEVERAL_CTA,
    SEVERAL_GRID,
    SEVERAL_WARPS,
)
from ptxtools.native.code.emitter import shuffled
from ptxtools.native.code.timed import MOMENT
from ptxtools.program.program import LANES

from .filter_flags import GATHER
from .filter_owners import SCATTER

_NUMBERS = f"<{', '.join(f'i32 {lane}' for lane in range(LANES))}>"
_LANE = (1 << CLOCK_SHIFT) - 1
#: Of lanes at pieces in a row: where their words are, the first and the second words of 32 pieces, and both together.
_IN_A_ROW = f"<{', '.join(f'i64 {8 * lane}' for lane in range(LANES))}>"
_FIRST, _SECOND = range(0, 2 * LANES, 2), range(1, 2 * LANES, 2)
_BOTH = tuple(each for lane in range(LANES) for each in (lane, LANES + lane))
_TIMES = MOST_TIMES - 1 << CLOCK_SHIFT  # what is guarded, too, gives one


def _words(pointers: str) -> str:
    return (
        f"call <32 x i32> @{GATHER}(<32 x ptr> align 4 {pointers}, <32 x i1> %clock.lanes, <32 x i32> zeroinitializer)"
    )


def _gather(name: str, base: str, index: str) -> str:
    """Words of a table, by 32-bit indices."""
    return f"""
  %{name}.index = zext <32 x i32> {index} to <32 x i64>
  %{name}.bytes = shl <32 x i64> %{name}.index, splat (i64 2)
  %{name}.base.at = ptrtoint ptr {base} to i64
  %{name}.base.all = splat64 %{name}.base.at
  %{name}.places = add <32 x i64> %{name}.bytes, %{name}.base.all
  %{name}.ptrs = inttoptr <32 x i64> %{name}.places to <32 x ptr>
  %{name} = {_words(f"%{name}.ptrs")}
"""


def _known(name: str) -> str:
    """Of the access in the word %name: its %name.time, its warp %name.warp, whether it is known, %name.known, or the
    lane's own, %name.mine."""
    return f"""
  %{name}.masked = and <32 x i32> %{name}, splat (i32 {_TIMES})
  %{name}.time = lshr <32 x i32> %{name}.masked, splat (i32 {CLOCK_SHIFT})
  %{name}.lead = extractelement <32 x i32> %{name}.time, i32 %lane
  %{name}.lead.all = splat32 %{name}.lead
  %{name}.alike = icmp eq <32 x i32> %{name}.time, %{name}.lead.all
  %{name}.alike.bits = bits %{name}.alike
  %{name}.alike.own = and i32 %{name}.alike.bits, %group
  %{name}.lead.alone = icmp eq i32 %{name}.alike.own, %group
  br i1 %{name}.lead.alone, label %{name}.by.one, label %{name}.perhaps
{name}.perhaps:                                    ; perhaps two, as where two warps have been
  %{name}.others = xor i32 %{name}.alike.own, %group
  %{name}.second.lane = call i32 @llvm.cttz.i32(i32 %{name}.others, i1 true)
  %{name}.second = extractelement <32 x i32> %{name}.time, i32 %{name}.second.lane
  %{name}.second.all = splat32 %{name}.second
  %{name}.seconds = icmp eq <32 x i32> %{name}.time, %{name}.second.all
  %{name}.seconds.bits = bits %{name}.seconds
  %{name}.seconds.own = and i32 %{name}.seconds.bits, %{name}.others
  %{name}.two = icmp eq i32 %{name}.seconds.own, %{name}.others
  br i1 %{name}.two, label %{name}.by.two, label %{name}.by.each
{name}.by.two:
  %{name}.two.64 = zext i32 %{name}.lead to i64
  %{name}.two.p = getelementptr i32, ptr %clock.warps, i64 %{name}.two.64
  %{name}.two.warp = load i32, ptr %{name}.two.p
  %{name}.two.warp.64 = zext i32 %{name}.two.warp to i64
  %{name}.two.until.p = getelementptr i32, ptr %clock.row, i64 %{name}.two.warp.64
  %{name}.two.until = load i32, ptr %{name}.two.until.p
  %{name}.second.64 = zext i32 %{name}.second to i64
  %{name}.second.p = getelementptr i32, ptr %clock.warps, i64 %{name}.second.64
  %{name}.second.warp = load i32, ptr %{name}.second.p
  %{name}.second.warp.64 = zext i32 %{name}.second.warp to i64
  %{name}.second.until.p = getelementptr i32, ptr %clock.row, i64 %{name}.second.warp.64
  %{name}.second.until = load i32, ptr %{name}.second.until.p
  %{name}.two.warp.all = splat32 %{name}.two.warp
  %{name}.second.warp.all = splat32 %{name}.second.warp
  %{name}.two.until.all = splat32 %{name}.two.until
  %{name}.second.until.all = splat32 %{name}.second.until
  %{name}.two.warps = select <32 x i1> %{name}.seconds,
                             <32 x i32> %{name}.second.warp.all, <32 x i32> %{name}.two.warp.all
  %{name}.two.untils = select <32 x i1> %{name}.seconds,
                              <32 x i32> %{name}.second.until.all, <32 x i32> %{name}.two.until.all
  br label %{name}.looked
{name}.by.one:                                    ; one time for all lanes
  %{name}.lead.64 = zext i32 %{name}.lead to i64
  %{name}.lead.p = getelementptr i32, ptr %clock.warps, i64 %{name}.lead.64
  %{name}.lead.warp = load i32, ptr %{name}.lead.p
  %{name}.lead.warp.64 = zext i32 %{name}.lead.warp to i64
  %{name}.lead.until.p = getelementptr i32, ptr %clock.row, i64 %{name}.lead.warp.64
  %{name}.lead.until = load i32, ptr %{name}.lead.until.p
  %{name}.warp.all = splat32 %{name}.lead.warp
  %{name}.until.all = splat32 %{name}.lead.until
  br label %{name}.looked
{name}.by.each:
{_gather(f"{name}.warps", "%clock.warps", f"%{name}.time")}{_gather(f"{name}.untils", "%clock.row", f"%{name}.warps")}
  br label %{name}.looked
{name}.looked:
  %{name}.warp = phi <32 x i32> [ %{name}.warp.all, %{name}.by.one ], [ %{name}.two.warps, %{name}.by.two ],
                              [ %{name}.warps, %{name}.by.each ]
  %{name}.until = phi <32 x i32> [ %{name}.until.all, %{name}.by.one ], [ %{name}.two.untils, %{name}.by.two ],
                               [ %{name}.untils, %{name}.by.each ]
  %{name}.known = icmp uge <32 x i32> %{name}.until, %{name}.time
  %{name}.lane = and <32 x i32> %{name}, splat (i32 {_LANE})
  %{name}.own.warp = icmp eq <32 x i32> %{name}.warp, %clock.me.all
  %{name}.lane.same = icmp eq <32 x i32> %{name}.lane, {_NUMBERS}
  %{name}.lane.any = icmp eq <32 x i32> %{name}.lane, splat (i32 {ALL_LANES})
  %{name}.lane.mine = or <32 x i1> %{name}.lane.same, %{name}.lane.any
  %{name}.mine = and <32 x i1> %{name}.own.warp, %{name}.lane.mine
"""


CLOCKS = f"""
clocked:                                          ; who am I, and what do I know
  %clock = get ctx.clocks
  %clock.warps = get clocks.warps of %clock
  %clock.rows = get clocks.known of %clock
  %clock.times = get clocks.times of %clock
  %clock.count = get clocks.count of %clock
  %clock.per = get clocks.per_cta of %clock
  %clock.cta.p = get warp.cta
  %clock.cta = get cta.id of %clock.cta.p
  %clock.first = mul i64 %clock.cta, %clock.per
  %clock.warp = get warp.id
  %clock.warp64 = zext i32 %clock.warp to i64
  %clock.me = add i64 %clock.first, %clock.warp64
  %clock.me32 = trunc i64 %clock.me to i32
  %clock.me.all = splat32 %clock.me32
  %clock.first32 = trunc i64 %clock.first to i32
  %clock.first.all = splat32 %clock.first32
  %clock.per32 = trunc i64 %clock.per to i32
  %clock.per.all = splat32 %clock.per32
  %clock.size = get ctx.cluster_size
  %clock.size64 = zext i32 %clock.size to i64
  %clock.rank = urem i64 %clock.cta, %clock.size64
  %clock.leader = sub i64 %clock.cta, %clock.rank
  %clock.cl.first = mul i64 %clock.leader, %clock.per
  %clock.cl.first32 = trunc i64 %clock.cl.first to i32
  %clock.cl.first.all = splat32 %clock.cl.first32
  %clock.cl.per = mul i32 %clock.size, %clock.per32
  %clock.cl.per.all = splat32 %clock.cl.per
  %clock.row.at = mul i64 %clock.me, %clock.count
  %clock.row.bytes = shl i64 %clock.row.at, 2
  %clock.row = getelementptr i8, ptr %clock.rows, i64 %clock.row.bytes
  %clock.moment.at = mul i64 %clock.me, {MOMENT.size}
  %clock.moment = getelementptr i8, ptr %clock.times, i64 %clock.moment.at
  %clock.last = get moment.now of %clock.moment
  %clock.new.time = icmp eq i32 %clock.last, 0
  br i1 %clock.new.time, label %clock.begin, label %clock.known
clock.begin:                                      ; the first access since others were told anything
  %clock.latest = get clocks.latest of %clock
  %clock.most = get clocks.most of %clock
  %clock.next = add i64 %clock.latest, 1
  %clock.room = icmp ult i64 %clock.next, %clock.most
  br i1 %clock.room, label %clock.start, label %ask
clock.start:
  set clocks.latest, %clock.next of %clock
  %clock.next32 = trunc i64 %clock.next to i32
  set moment.now, %clock.next32 of %clock.moment
  set moment.own, %clock.next32 of %clock.moment
  set moment.stirs, 1 of %clock.moment
  %clock.warp.bytes = shl i64 %clock.next, 2
  %clock.warp.p = getelementptr i8, ptr %clock.warps, i64 %clock.warp.bytes
  store i32 %clock.me32, ptr %clock.warp.p
  br label %clock.known
clock.known:
  %clock.now = phi i32 [ %clock.last, %clocked ], [ %clock.next32, %clock.start ], [ %clock.now, %piece.unknown ]
  %clock.until.cta = get moment.cta of %clock.moment
  %clock.until.cta.all = splat32 %clock.until.cta
  %clock.until.grid = get moment.grid of %clock.moment
  %clock.until.grid.all = splat32 %clock.until.grid
  %clock.until.cl = get moment.around of %clock.moment
  %clock.until.cl.all = splat32 %clock.until.cl
  %clock.high = shl i32 %clock.now, {CLOCK_SHIFT}
  %clock.high.all = splat32 %clock.high
  %clock.new = or <32 x i32> %clock.high.all, {_NUMBERS}
  %clock.new.cta = or <32 x i32> %clock.new, splat (i32 {SEVERAL_CTA})
  %clock.new.cl = or <32 x i32> %clock.new, splat (i32 {SEVERAL_CLUSTER})
  %clock.new.grid = or <32 x i32> %clock.new, splat (i32 {SEVERAL_GRID})
  %clock.shared = icmp eq i32 %in, SPACE_SHARED
  %clock.shift.global = get filter.global of %filter
  %clock.shift.shared = get filter.shared of %filter
  %clock.shift = select i1 %clock.shared, i32 %clock.shift.shared, i32 %clock.shift.global
  %clock.shift64 = zext i32 %clock.shift to i64
  %clock.shift.all = splat64 %clock.shift64
  %clock.grain = shl i64 1, %clock.shift64
  %clock.lanes = lanes %group
  %clock.changes = icmp ne i32 %writes, 0
  %clock.base.all = splat64 %kept.base
  br label %piece
piece:                                            ; one piece of each lane at a time
  %piece.at = phi i64 [ 0, %clock.known ], [ %piece.next, %piece.done ]
  %piece.all = splat64 %piece.at
  %piece.bytes = add <32 x i64> %distance, %piece.all
  %piece.number = lshr <32 x i64> %piece.bytes, %clock.shift.all
  %piece.offset = shl <32 x i64> %piece.number, splat (i64 3)
  %piece.places = add <32 x i64> %piece.offset, %clock.base.all
  %piece.ptrs = inttoptr <32 x i64> %piece.places to <32 x ptr>
  %piece.read.places = add <32 x i64> %piece.places, splat (i64 4)
  %piece.read.ptrs = inttoptr <32 x i64> %piece.read.places to <32 x ptr>
  %line.lead = extractelement <32 x i64> %piece.offset, i32 0
  %line.lead.all = splat64 %line.lead
  %line.offset = add <32 x i64> %line.lead.all, {_IN_A_ROW}
  %line.same = icmp eq <32 x i64> %piece.offset, %line.offset
  %line.bits = bits %line.same
  %line.own = and i32 %line.bits, %group
  %line = icmp eq i32 %line.own, -1
  %line.at = add i64 %kept.base, %line.lead
  %line.p = inttoptr i64 %line.at to ptr
  br i1 %line, label %line.load, label %apart.load
line.load:                                         ; all lanes, at pieces in a row
  %line.words = load <64 x i32>, ptr %line.p, align 4
  %line.write = {shuffled("<64 x i32>", _FIRST, "%line.words")}
  %line.read = {shuffled("<64 x i32>", _SECOND, "%line.words")}
  br label %piece.words
apart.load:
  %apart.write = {_words("%piece.ptrs")}
  %apart.read = {_words("%piece.read.ptrs")}
  br label %piece.words
piece.words:
  %write = phi <32 x i32> [ %line.write, %line.load ], [ %apart.write, %apart.load ]
  %read = phi <32 x i32> [ %line.read, %line.load ], [ %apart.read, %apart.load ]
{_known("write")}{_known("read")}
  %write.none = icmp eq <32 x i32> %write, zeroinitializer
  %write.either = or <32 x i1> %write.known, %write.mine
  %write.unguarded = icmp ne <32 x i32> %write, splat (i32 {GUARDED})
  %write.some.good = and <32 x i1> %write.either, %write.unguarded
  %write.good = or <32 x i1> %write.none, %write.some.good
  %read.none = icmp eq <32 x i32> %read, zeroinitializer
  %read.several.bits = and <32 x i32> %read, splat (i32 {SEVERAL_WARPS})
  %read.single = icmp eq <32 x i32> %read.several.bits, zeroinitializer
  %read.several = xor <32 x i1> %read.single, splat (i1 true)
  %read.either = or <32 x i1> %read.known, %read.mine
  %read.single.good = and <32 x i1> %read.single, %read.either
  %read.cta.bits = and <32 x i32> %read, splat (i32 {SEVERAL_CTA})
  %read.by.cta = icmp ne <32 x i32> %read.cta.bits, zeroinitializer
  %read.from = sub <32 x i32> %read.warp, %clock.first.all
  %read.near = icmp ult <32 x i32> %read.from, %clock.per.all
  %read.cta.near = and <32 x i1> %read.by.cta, %read.near
  %read.cta.known = icmp ule <32 x i32> %read.time, %clock.until.cta.all
  %read.cta.good = and <32 x i1> %read.cta.near, %read.cta.known
  %read.cl.from = sub <32 x i32> %read.warp, %clock.cl.first.all
  %read.cl.near = icmp ult <32 x i32> %read.cl.from, %clock.cl.per.all
  %read.grid.bits = and <32 x i32> %read, splat (i32 {SEVERAL_GRID})
  %read.no.grid = icmp eq <32 x i32> %read.grid.bits, zeroinitializer
  %read.cl.stays = and <32 x i1> %read.cl.near, %read.no.grid
  %read.cl.known = icmp ule <32 x i32> %read.time, %clock.until.cl.all
  %read.cl.both = and <32 x i1> %read.cl.stays, %read.cl.known
  %read.cl.good = and <32 x i1> %read.cl.both, %read.several
  %read.grid.known = icmp ule <32 x i32> %read.time, %clock.until.grid.all
  %read.single.none = or <32 x i1> %read.none, %read.single.good
  %read.grid.good = and <32 x i1> %read.several, %read.grid.known
  %read.near.good = or <32 x i1> %read.cta.good, %read.cl.good
  %read.several.good = or <32 x i1> %read.near.good, %read.grid.good
  %read.good = or <32 x i1> %read.single.none, %read.several.good
  %both.good = and <32 x i1> %write.good, %read.good
  %piece.good = select i1 %clock.changes, <32 x i1> %both.good, <32 x i1> %write.good
  %piece.bits = bits %piece.good
  %piece.own = and i32 %piece.bits, %group
  %piece.fine = icmp eq i32 %piece.own, %group
  br i1 %piece.fine, label %piece.new, label %piece.unknown
piece.unknown:                                    ; it may know more of its CTA than has been looked at
  %piece.more.known = call i1 @clock_until(ptr %clock, ptr %clock.row, ptr %clock.moment,
                                         i64 %clock.first, i64 %clock.per)
  br i1 %piece.more.known, label %clock.known, label %ask
piece.new:
  br i1 %clock.changes, label %piece.write, label %piece.read
piece.write:
  %piece.moved = icmp ne <32 x i32> %write, %clock.new
  %read.some = icmp ne <32 x i32> %read, zeroinitializer
  %piece.changed.any = or <32 x i1> %piece.moved, %read.some
  %piece.changed.bits = bits %piece.changed.any
  %piece.changed.own = and i32 %piece.changed.bits, %group
  %piece.changed.none = icmp eq i32 %piece.changed.own, 0
  br i1 %piece.changed.none, label %piece.done, label %piece.store
piece.store:
  br i1 %line, label %line.store, label %apart.store
line.store:
  %line.stored = {shuffled("<32 x i32>", _BOTH, "%clock.new", "zeroinitializer")}
  store <64 x i32> %line.stored, ptr %line.p, align 4
  br label %piece.done
apart.store:
  call void @{SCATTER}(<32 x i32> %clock.new, <32 x ptr> align 4 %piece.ptrs, <32 x i1> %clock.lanes)
  call void @{SCATTER}(<32 x i32> zeroinitializer, <32 x ptr> align 4 %piece.read.ptrs, <32 x i1> %clock.lanes)
  %piece.again = {_words("%piece.ptrs")}
  %piece.again.other = icmp ne <32 x i32> %piece.again, %clock.new
  %piece.again.bits = bits %piece.again.other
  %piece.again.own = and i32 %piece.again.bits, %group
  %piece.again.apart = icmp eq i32 %piece.again.own, 0
  br i1 %piece.again.apart, label %piece.done, label %piece.shared
piece.shared:                                     ; as it was before
  call void @{SCATTER}(<32 x i32> %write, <32 x ptr> align 4 %piece.ptrs, <32 x i1> %clock.lanes)
  call void @{SCATTER}(<32 x i32> %read, <32 x ptr> align 4 %piece.read.ptrs, <32 x i1> %clock.lanes)
  br label %ask
piece.read:
  %read.cta.stays = and <32 x i1> %read.single, %read.near
  %read.near.any = or <32 x i1> %read.cta.stays, %read.cta.near
  %read.joined.far = select <32 x i1> %read.cl.stays, <32 x i32> %clock.new.cl, <32 x i32> %clock.new.grid
  %read.joined = select <32 x i1> %read.near.any, <32 x i32> %clock.new.cta, <32 x i32> %read.joined.far
  %read.now = select <32 x i1> %read.good, <32 x i32> %clock.new, <32 x i32> %read.joined
  %read.moved = icmp ne <32 x i32> %read, %read.now
  %read.moved.bits = bits %read.moved
  %read.moved.own = and i32 %read.moved.bits, %group
  %read.steady = icmp eq i32 %read.moved.own, 0
  br i1 %read.steady, label %piece.done, label %piece.note
piece.note:
  br i1 %line, label %line.note, label %apart.note
line.note:
  %line.noted = {shuffled("<32 x i32>", _BOTH, "%write", "%read.now")}
  store <64 x i32> %line.noted, ptr %line.p, align 4
  br label %piece.done
apart.note:
  call void @{SCATTER}(<32 x i32> %read.now, <32 x ptr> align 4 %piece.read.ptrs, <32 x i1> %clock.lanes)
  %piece.noted.now = {_words("%piece.read.ptrs")}
  %piece.noted.other = icmp ne <32 x i32> %piece.noted.now, %read.now
  %piece.noted.on = and <32 x i1> %piece.noted.other, %clock.lanes
  %piece.noted.bits = bits %piece.noted.on
  %piece.noted.apart = icmp eq i32 %piece.noted.bits, 0
  br i1 %piece.noted.apart, label %piece.done, label %piece.several
piece.several:                                    ; lanes of this access read the same piece
  %piece.noted.grid.bits = and <32 x i32> %read.now, splat (i32 {SEVERAL_GRID})
  %piece.noted.grid = icmp ne <32 x i32> %piece.noted.grid.bits, zeroinitializer
  %piece.noted.cl.bits = and <32 x i32> %read.now, splat (i32 {SEVERAL_CLUSTER})
  %piece.noted.cl = icmp ne <32 x i32> %piece.noted.cl.bits, zeroinitializer
  %piece.noted.near = select <32 x i1> %piece.noted.cl, <32 x i32> %clock.new.cl, <32 x i32> %clock.new.cta
  %piece.noted.word = select <32 x i1> %piece.noted.grid, <32 x i32> %clock.new.grid, <32 x i32> %piece.noted.near
  call void @{SCATTER}(<32 x i32> %piece.noted.word, <32 x ptr> align 4 %piece.read.ptrs, <32 x i1> %piece.noted.on)
  br label %piece.done
piece.done:
  %piece.next = add i64 %piece.at, %clock.grain
  %piece.more = icmp ult i64 %piece.next, %size
  br i1 %piece.more, label %piece, label %passed
"""

#: Mbarriers tell what some warps know, not up to which time all of a CTA's are known.
FUNCTIONS = """
; look at later times than those up to which a warp knows its CTA; whether it knows any of these
define internal i1 @clock_until(ptr %clock, ptr %row, ptr %moment, i64 %first, i64 %per) #1 {
  %until = get moment.cta of %moment
  %until64 = zext i32 %until to i64
  %latest = get clocks.latest of %clock
  %warps = get clocks.warps of %clock
  br label %each
each:
  %time = phi i64 [ %until64, %0 ], [ %time.next, %look ], [ %time.next, %mine ]
  %time.next = add i64 %time, 1
  %more = icmp ule i64 %time.next, %latest
  br i1 %more, label %look, label %end
look:
  %warp.p = getelementptr i32, ptr %warps, i64 %time.next
  %warp = load i32, ptr %warp.p
  %warp64 = zext i32 %warp to i64
  %from = sub i64 %warp64, %first
  %near = icmp ult i64 %from, %per
  br i1 %near, label %mine, label %each
mine:
  %known.p = getelementptr i32, ptr %row, i64 %warp64
  %known = load i32, ptr %known.p
  %time32 = trunc i64 %time.next to i32
  %knows = icmp uge i32 %known, %time32
  br i1 %knows, label %each, label %end
end:
  %until.now = trunc i64 %time to i32
  set moment.cta, %until.now of %moment
  %later = icmp ugt i32 %until.now, %until
  ret i1 %later
}
"""
