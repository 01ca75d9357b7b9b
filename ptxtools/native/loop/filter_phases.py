"""Part of the service before events where lanes meet: threads that arrive at an mbarrier and that wait for it tell and
learn what they know (`structures.CLOCKS`), without the observer that keeps their clocks (`machine.filters.PHASES`).

`PHASES` begins at `phases`, with an mbarrier of the CTA of which all lanes %m are, its place %mb.offset and its word
%mb.found; it ends at `done`, `repeats` or `ask`. What it does is what `observe.race_phases` does of arrivals and waits
that are plainly right: the warp knows of the initialisation; who arrives knows all that the phase before has told; who
ends a phase has been told of all who have waited for the one before; no lane waits twice for one phase once the next
one has begun.
"""

from __future__ import annotations

from ptxtools.machine import filters
from ptxtools.machine.residents import GUARDED
from ptxtools.native.code.structures import OWNERS
from ptxtools.native.code.timed import PHASED, USE
from ptxtools.program.mbarrier import COUNT_MASK, EXPECTED_SHIFT, PENDING_SHIFT, PHASE_SHIFT, TX_MASK, TX_SHIFT
from ptxtools.program.program import LANES

from .filter_joins import ME, ROW

#: What `phased` answers.
ASK, DONE, UNCHANGED = range(3)
_NUMBERS = f"<{', '.join(f'i32 {lane}' for lane in range(LANES))}>"
#: What an observer may ask for beside that: what is looked at before.
_BEFORE = (
    filters.PHASES | filters.INITIALISED | filters.REPEATS
    | filters.WHOLE | filters.NAMED | filters.COUNTED | filters.UNIFORM
)  # fmt: skip

PHASES = f"""
phases:
  %phases.rule = and i32 %rule, {filters.PHASES}
  %phases.none = icmp eq i32 %phases.rule, 0
  br i1 %phases.none, label %repeats, label %phases.any
phases.any:
  %phases.others = and i32 %rule, {~_BEFORE}
  %phases.alone = icmp eq i32 %phases.others, 0
  br i1 %phases.alone, label %phases.what, label %ask
phases.what:
  %phases.slot = get meeting.wanted
  %phases.arrives = icmp slt i32 %phases.slot, 0
  br i1 %phases.arrives, label %phases.look, label %phases.wanted
phases.wanted:
  %phases.p = getelementptr i8, ptr %fp, i32 %phases.slot
  %phases.states = get meeting.states
  %phases.parities = icmp eq i32 %phases.states, 0
  br i1 %phases.parities, label %phases.by.parity, label %phases.by.state
phases.by.parity:
  %phases.given32 = load <32 x i32>, ptr %phases.p, align 64
  %phases.bit32 = and <32 x i32> %phases.given32, splat (i32 1)
  br label %phases.alike
phases.by.state:
  %phases.given64 = load <32 x i64>, ptr %phases.p, align 64
  %phases.bit64 = lshr <32 x i64> %phases.given64, splat (i64 {PHASE_SHIFT})
  %phases.bit = trunc <32 x i64> %phases.bit64 to <32 x i32>
  br label %phases.alike
phases.alike:
  %phases.bits = phi <32 x i32> [ %phases.bit32, %phases.by.parity ], [ %phases.bit, %phases.by.state ]
  %phases.leader = call i32 @llvm.cttz.i32(i32 %m, i1 true)
  %phases.first = extractelement <32 x i32> %phases.bits, i32 %phases.leader
  %phases.first.all = splat32 %phases.first
  %phases.same = icmp eq <32 x i32> %phases.bits, %phases.first.all
  %phases.same.bits = bits %phases.same
  %phases.same.own = and i32 %phases.same.bits, %m
  %phases.agree = icmp eq i32 %phases.same.own, %m
  br i1 %phases.agree, label %phases.look, label %ask
phases.look:
  %phases.parity = phi i32 [ -1, %phases.what ], [ %phases.first, %phases.alike ]
  %phases.event = get meeting.number
  %phases.found = call i32 @phased(ptr %ctx, ptr %warp, i64 %mb.offset, i64 %mb.found,
                                 i32 %m, i1 %all, i32 %phases.event, i32 %phases.parity)
  %phases.again = and i32 %rule, {filters.REPEATS}
  %phases.once = icmp eq i32 %phases.again, 0
  %phases.done = icmp eq i32 %phases.found, {DONE}
  br i1 %phases.done, label %phases.good, label %phases.left
phases.good:                                      ; what is told of an arrival, nobody may see before it
  %phases.pend = get warp.pend
  %phases.unshared = icmp eq i32 %phases.pend, NOWHERE
  %phases.slice = get ctx.slice
  %phases.time = icmp sge i32 %phases.slice, 0
  %phases.first.of.all = and i1 %phases.unshared, %phases.time
  %phases.waits = xor i1 %phases.arrives, true
  %phases.go = or i1 %phases.first.of.all, %phases.waits
  br i1 %phases.go, label %done, label %phases.at.once
phases.at.once:
  ret i32 SERVED_ON
phases.left:
  %phases.asks = icmp eq i32 %phases.found, {ASK}
  %phases.told = or i1 %phases.asks, %phases.once
  br i1 %phases.told, label %ask, label %repeats
"""

FUNCTIONS = f"""
; the time of a warp; 0: there are no more. Another one if it has told others this one, which is none of accesses
define internal i32 @clock_time(ptr %clock, ptr %moment) #1 {{
  %now = get moment.now of %moment
  %tick = get moment.tick of %moment
  %accesses = icmp ne i32 %now, 0
  %last = select i1 %accesses, i32 %now, i32 %tick
  %new = icmp eq i32 %last, 0
  br i1 %new, label %begin, label %end
begin:
  %latest = get clocks.latest of %clock
  %most = get clocks.most of %clock
  %next = add i64 %latest, 1
  %room = icmp ult i64 %next, %most
  br i1 %room, label %start, label %end
start:
  set clocks.latest, %next of %clock
  %next32 = trunc i64 %next to i32
  set moment.tick, %next32 of %moment
  set moment.own, %next32 of %moment
  %warps = get clocks.warps of %clock
  %count = get clocks.count of %clock
  %nobody = trunc i64 %count to i32
  %warp.p = getelementptr i32, ptr %warps, i64 %next
  store i32 %nobody, ptr %warp.p
  br label %end
end:
  %found = phi i32 [ %last, %0 ], [ 0, %begin ], [ %next32, %start ]
  ret i32 %found
}}

; whether all times of one row are at least those of another one, but for one place
define internal i1 @covers_row(ptr %row, ptr %told, i64 %count, i64 %me) #1 {{
  %me.p = getelementptr i32, ptr %row, i64 %me
  %kept = load i32, ptr %me.p
  store i32 -1, ptr %me.p
  %bytes = shl i64 %count, 2
  %whole = and i64 %bytes, -32
  br label %wide
wide:
  %at = phi i64 [ 0, %0 ], [ %at.next, %eight ]
  %less = phi <8 x i1> [ zeroinitializer, %0 ], [ %less.next, %eight ]
  %more = icmp ult i64 %at, %whole
  br i1 %more, label %eight, label %narrow
eight:
  %row.p = getelementptr i8, ptr %row, i64 %at
  %told.p = getelementptr i8, ptr %told, i64 %at
  %mine = load <8 x i32>, ptr %row.p, align 4
  %theirs = load <8 x i32>, ptr %told.p, align 4
  %lacks = icmp ult <8 x i32> %mine, %theirs
  %less.next = or <8 x i1> %less, %lacks
  %at.next = add i64 %at, 32
  br label %wide
narrow:
  %place = phi i64 [ %whole, %wide ], [ %place.next, %one ]
  %few = phi i1 [ false, %wide ], [ %few.next, %one ]
  %left = icmp ult i64 %place, %bytes
  br i1 %left, label %one, label %end
one:
  %one.row = getelementptr i8, ptr %row, i64 %place
  %one.told = getelementptr i8, ptr %told, i64 %place
  %one.mine = load i32, ptr %one.row
  %one.theirs = load i32, ptr %one.told
  %one.lacks = icmp ult i32 %one.mine, %one.theirs
  %few.next = or i1 %few, %one.lacks
  %place.next = add i64 %place, 4
  br label %narrow
end:
  store i32 %kept, ptr %me.p
  %less.bits = bitcast <8 x i1> %less to i8
  %many = icmp ne i8 %less.bits, 0
  %any = or i1 %many, %few
  %covers = xor i1 %any, true
  ret i1 %covers
}}

; lanes %m arrive at an mbarrier (%parity -1), or wait for its phase of a parity
define internal i32 @phased(ptr %ctx, ptr %warp, i64 %offset, i64 %found,
                            i32 %m, i1 %all, i32 %event, i32 %parity) #1 {{
  %clock.any = get ctx.clocks
  %owners.at = get ctx.owners
  %no.clocks = icmp eq ptr %clock.any, null
  %no.words = icmp eq i64 %owners.at, 0
  %none = or i1 %no.clocks, %no.words
  br i1 %none, label %unchanged, label %who
unchanged:
  ret i32 {UNCHANGED}
ask:
  ret i32 {ASK}
who:
{ME}{ROW}
  %shared = get cta.shared
  %shift = get clocks.shift of %clock
  %piece = lshr i64 %offset, %shift
  %piece.at = shl i64 %piece, 3
  %words = getelementptr i8, ptr %shared, i64 %owners.at
  %words.first = getelementptr i8, ptr %words, i64 {OWNERS.size}
  %word.p = getelementptr i8, ptr %words.first, i64 %piece.at
  %wrote = load i32, ptr %word.p
  %guarded = icmp eq i32 %wrote, {GUARDED - (1 << 32)}
  %index.p = getelementptr i32, ptr %word.p, i64 1
  %index = load i32, ptr %index.p
  %some = icmp ne i32 %index, 0
  %noted = and i1 %guarded, %some
  br i1 %noted, label %noted.here, label %unchanged
noted.here:
  %records = get clocks.phased of %clock
  %record.bytes = get clocks.phased_bytes of %clock
  %index64 = zext i32 %index to i64
  %record.at = mul i64 %index64, %record.bytes
  %record = getelementptr i8, ptr %records, i64 %record.at
  %told.rows = getelementptr i8, ptr %record, i64 {PHASED.size}
  %told.bytes = mul i64 %row.bytes, 3
  %uses = getelementptr i8, ptr %told.rows, i64 %told.bytes
  %use.at = mul i64 %id64, {USE.size}
  %use = getelementptr i8, ptr %uses, i64 %use.at
  %plain = get moment.plain of %moment
  %able = icmp eq i32 %plain, 2
  %on = get phased.on of %record
  %is.on = icmp ne i32 %on, 0
  %may = and i1 %able, %is.on
  br i1 %may, label %begun, label %refused
refused:
  %dirty = get phased.dirty of %record
  %clean = icmp eq i32 %dirty, 0
  br i1 %clean, label %unchanged, label %ask
begun:                                            ; does the warp know of the initialisation?
  %writer = get phased.writer of %record
  %written = get phased.written of %record
  %writer64 = zext i32 %writer to i64
  %writer.p = getelementptr i32, ptr %row, i64 %writer64
  %writer.known = load i32, ptr %writer.p
  %knows = icmp uge i32 %writer.known, %written
  br i1 %knows, label %phase, label %ask
phase:
  %number.before = get phased.number of %record
  %parity.before = and i32 %number.before, 1
  %parity.now64 = lshr i64 %found, {PHASE_SHIFT}
  %parity.now = trunc i64 %parity.now64 to i32
  %same = icmp eq i32 %parity.before, %parity.now
  br i1 %same, label %open, label %ends
ends:                                             ; whoever has waited for the phase before must be known
  %ended.slot = urem i32 %number.before, 3
  %ended.slot64 = zext i32 %ended.slot to i64
  %ended.at = mul i64 %ended.slot64, %row.bytes
  %ended = getelementptr i8, ptr %told.rows, i64 %ended.at
  br label %waiter
waiter:
  %w = phi i64 [ 0, %ends ], [ %w.next, %waiter.known ]
  %w.at = mul i64 %w, {USE.size}
  %w.use = getelementptr i8, ptr %uses, i64 %w.at
  %w.waited = get use.waited of %w.use
  %w.warp = add i64 %first, %w
  %w.p = getelementptr i32, ptr %ended, i64 %w.warp
  %w.told = load i32, ptr %w.p
  %w.good = icmp uge i32 %w.told, %w.waited
  br i1 %w.good, label %waiter.known, label %ask
waiter.known:
  %w.next = add i64 %w, 1
  %w.more = icmp ult i64 %w.next, %per
  br i1 %w.more, label %waiter, label %another
another:
  %another.number = add i32 %number.before, 1
  %another.slot = urem i32 %another.number, 3
  %another.slot64 = zext i32 %another.slot to i64
  %another.at = mul i64 %another.slot64, %row.bytes
  %another.row = getelementptr i8, ptr %told.rows, i64 %another.at
  call void @llvm.memcpy.p0.p0.i64(ptr align 4 %another.row, ptr align 4 %ended, i64 %row.bytes, i1 false)
  set phased.number, %another.number of %record
  set phased.dirty, 1 of %record
  br label %over
over:
  %o = phi i64 [ 0, %another ], [ %o.next, %over ]
  %o.at = mul i64 %o, {USE.size}
  %o.use = getelementptr i8, ptr %uses, i64 %o.at
  set use.waited, 0 of %o.use
  %o.next = add i64 %o, 1
  %o.more = icmp ult i64 %o.next, %per
  br i1 %o.more, label %over, label %open
open:
  %number = phi i32 [ %number.before, %phase ], [ %another.number, %over ]
  %last.number = add i32 %number, 2
  %last.slot = urem i32 %last.number, 3
  %last.slot64 = zext i32 %last.slot to i64
  %last.at = mul i64 %last.slot64, %row.bytes
  %last = getelementptr i8, ptr %told.rows, i64 %last.at
  %arrives = icmp slt i32 %parity, 0
  br i1 %arrives, label %arrive, label %wait
arrive:
  %covers = call i1 @covers_row(ptr %row, ptr %last, i64 %count, i64 %me)
  br i1 %covers, label %come, label %ask
come:
  %come.time = call i32 @clock_time(ptr %clock, ptr %moment)
  %come.late = icmp eq i32 %come.time, 0
  br i1 %come.late, label %ask, label %tell
tell:
  %cur.slot = urem i32 %number, 3
  %cur.slot64 = zext i32 %cur.slot to i64
  %cur.at = mul i64 %cur.slot64, %row.bytes
  %cur = getelementptr i8, ptr %told.rows, i64 %cur.at
  call void @join_rows(ptr %cur, ptr %row, i64 %count, i64 %me, i32 %come.time)
  set moment.now, 0 of %moment
  set moment.tick, 0 of %moment
  br label %use.noted
wait:
  %open.parity = and i32 %number, 1
  %complete = icmp ne i32 %open.parity, %parity
  %waited = get use.waited of %use
  %waited.at = get use.waited_at of %use
  %accessed = get moment.now of %moment
  %ticked = get moment.tick of %moment
  %accesses = icmp ne i32 %accessed, 0
  %now = select i1 %accesses, i32 %accessed, i32 %ticked
  br i1 %complete, label %passes, label %fails
fails:                                            ; it knows what that phase before told, or learns it
  %before.number = add i32 %number, 1
  %before.slot = urem i32 %before.number, 3
  %before.slot64 = zext i32 %before.slot to i64
  %before.at = mul i64 %before.slot64, %row.bytes
  %before = getelementptr i8, ptr %told.rows, i64 %before.at
  br label %go
passes:
  %unwaited = icmp eq i32 %waited, 0
  %waited.now = icmp eq i32 %waited, %now
  %waited.here = icmp eq i32 %waited.at, %event
  %waited.same = and i1 %waited.now, %waited.here
  %waited.good = or i1 %unwaited, %waited.same
  br i1 %waited.good, label %once, label %ask
once:                                             ; which lanes have waited for this phase
  %passed = get use.passed of %use
  %passed.lanes = get use.passed_lanes of %use
  %passed.at = get use.passed_at of %use
  %passing = add i32 %number, 1
  %passed.new = icmp ne i32 %passed, %passing
  %passed.here = icmp eq i32 %passed.at, %event
  %passed.old = select i1 %passed.new, i32 0, i32 %passed.lanes
  %passed.twice = and i32 %passed.old, %m
  %passed.once = icmp eq i32 %passed.twice, 0
  %pending.high = lshr i64 %found, {PENDING_SHIFT}
  %pending = and i64 %pending.high, {COUNT_MASK}
  %expected.high = lshr i64 %found, {EXPECTED_SHIFT}
  %expected = and i64 %expected.high, {COUNT_MASK}
  %bytes.high = lshr i64 %found, {TX_SHIFT}
  %bytes = and i64 %bytes.high, {TX_MASK}
  %nobody.came = icmp eq i64 %pending, %expected
  %no.bytes = icmp eq i64 %bytes, 0
  %fresh = and i1 %nobody.came, %no.bytes
  %passed.fine = or i1 %passed.once, %fresh
  %passed.known = and i1 %passed.fine, %passed.here
  %passed.good = or i1 %passed.new, %passed.known
  br i1 %passed.good, label %go, label %ask
go:
  %learns = phi ptr [ %before, %fails ], [ %last, %once ]
  %passed.now = phi i32 [ 0, %fails ], [ %m, %once ]
  %passed.kept = phi i32 [ 0, %fails ], [ %passed.old, %once ]
  %go.time = call i32 @clock_time(ptr %clock, ptr %moment)
  %go.late = icmp eq i32 %go.time, 0
  br i1 %go.late, label %ask, label %learn
learn:
  %joined = get moment.joined of %moment
  %took = get moment.took of %moment
  %joins = icmp ne i32 %joined, 0
  %first.took = icmp eq i32 %took, 0
  %snapshot = and i1 %joins, %first.took
  br i1 %snapshot, label %keep, label %take
keep:                                             ; what it knew at the barrier, which was a fence
  %fences = get clocks.fences of %clock
  %fence = getelementptr i8, ptr %fences, i64 %row.at
  call void @llvm.memcpy.p0.p0.i64(ptr align 4 %fence, ptr align 4 %row, i64 %row.bytes, i1 false)
  br label %take
take:
  %own.p = getelementptr i32, ptr %learns, i64 %me
  %own = load i32, ptr %own.p
  %own.all = select i1 %all, i32 %own, i32 0
  call void @join_rows(ptr %row, ptr %learns, i64 %count, i64 %me, i32 %own.all)
  %lanes.all = get clocks.lanes of %clock
  %lanes.at = mul i64 %me, {4 * LANES}
  %lanes.p = getelementptr i8, ptr %lanes.all, i64 %lanes.at
  %lanes.old = load <32 x i32>, ptr %lanes.p, align 4
  %lanes.own = splat32 %own
  %lanes.most = call <32 x i32> @llvm.umax.v32i32(<32 x i32> %lanes.old, <32 x i32> %lanes.own)
  %lanes.m = splat32 %m
  %lanes.shifted = lshr <32 x i32> %lanes.m, {_NUMBERS}
  %lanes.on = trunc <32 x i32> %lanes.shifted to <32 x i1>
  %lanes.new = select <32 x i1> %lanes.on, <32 x i32> %lanes.most, <32 x i32> %lanes.old
  store <32 x i32> %lanes.new, ptr %lanes.p, align 4
  set moment.took, 1 of %moment
  %failed = icmp eq i32 %passed.now, 0
  br i1 %failed, label %use.noted, label %waits
waits:
  set use.waited, %go.time of %use
  set use.waited_at, %event of %use
  %passed.lanes.now = or i32 %passed.kept, %passed.now
  %passed.number = add i32 %number, 1
  set use.passed, %passed.number of %use
  set use.passed_lanes, %passed.lanes.now of %use
  set use.passed_at, %event of %use
  br label %use.noted
use.noted:
  %time = phi i32 [ %come.time, %tell ], [ %go.time, %take ], [ %go.time, %waits ]
  %use.lanes = get use.lanes of %use
  %use.since = get use.since of %use
  %use.new = icmp eq i32 %use.lanes, 0
  %use.since.now = select i1 %use.new, i32 %time, i32 %use.since
  %use.lanes.now = or i32 %use.lanes, %m
  set use.time, %time of %use
  set use.where, %event of %use
  set use.lanes, %use.lanes.now of %use
  set use.since, %use.since.now of %use
  set moment.told, 1 of %moment
  set phased.dirty, 1 of %record
  ret i32 {DONE}
}}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""
