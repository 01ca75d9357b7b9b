"""Turns and the barrier of warps that are whole (`unison`): what `loop.RUN_CTA` and `loop.barriers` do, in the same
order and with the same slices, but for what each warp has to remember."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.native.code.structures import STATUS_RETURNED

from . import next_cta

if TYPE_CHECKING:
    from .unison import Whole

RETURNED = STATUS_RETURNED

#: Type of a set of blocks, as many bits as there are (`Whole.kind_of`).
BLOCKS = "blocks"
#: ready, living, waiting, todo: sets of warps: that can run, that have not exited, that are at the barrier, that have
#: yet to run in this round. number: of the warp that runs; mask, pend, slice: of it; spent: what warps have used that
#: clock and left do not know of; block: where it goes on, and bit: that block as a set; apart: blocks at which other
#: lanes of it wait, %v.lanes has which; record: of the barrier it came to, as bytes from the first one; clean: no warp
#: has been touched since the CTA was begun.
VARIABLES = {
    "apart": BLOCKS, "bit": BLOCKS,
    "ready": "i32", "living": "i32", "waiting": "i32", "todo": "i32", "number": "i32",
    "mask": "i32", "pend": "i32", "slice": "i32", "block": "i32", "record": "i32",
    "count": "i64", "clock": "i64", "left": "i64", "spent": "i64", "outcome": "i32",
    "wide": "i32", "fresh": "i32", "lazy": "i32", "partly": "i32", "result": "i32", "high": "i32", "others": "i32",
    "keys": "i64", "clean": "i32",
}  # fmt: skip

_DECLARED = {
    "llvm.ctpop.i32": "declare i32 @llvm.ctpop.i32(i32)",
    "llvm.umin.i32": "declare i32 @llvm.umin.i32(i32, i32)",
}

#: Add what the warp has used of its slice to what they all have.
_SPENT = """
  %{name}.slice = load i32, ptr %v.slice
  %{name}.used32 = sub i32 %given, %{name}.slice
  %{name}.used = sext i32 %{name}.used32 to i64
  %{name}.spent = load i64, ptr %v.spent
  %{name}.spent.new = add i64 %{name}.spent, %{name}.used
  store i64 %{name}.spent.new, ptr %v.spent
"""

#: Account for that.
_SETTLED = """
  %{name}.spent = load i64, ptr %v.spent
  store i64 0, ptr %v.spent
  %{name}.clock = load i64, ptr %v.clock
  %{name}.clock.new = add i64 %{name}.clock, %{name}.spent
  store i64 %{name}.clock.new, ptr %v.clock
  %{name}.left = load i64, ptr %v.left
  %{name}.left.new = sub i64 %{name}.left, %{name}.spent
  store i64 %{name}.left.new, ptr %v.left
"""

#: Look at all warps: whole ones at the start of a block, or at the barrier. Else nothing is done.
_BEGIN = """
  %bytes = get ctx.warp_bytes
  %number.of = get ctx.warps
  %code = get ctx.code
  %code.at = ptrtoint ptr %code to i64
  %given64 = get ctx.warp_slice
  %given = trunc i64 %given64 to i32
  %before.pending = get cta.pending
  %foreign = and i32 %before.pending, {others}
  %quiet = icmp eq i32 %foreign, 0
  %passed = get rec.s0
  %tried = icmp eq i32 %passed, 0
  br i1 %tried, label %try, label %not.now, !prof !0
not.now:
  %passed.less = sub i32 %passed, 1
  set rec.s0, %passed.less
  br label %turns
turns:
  leave STATUS_TURNS
try:
  %all.gone = sub i32 32, %number.of
  %all.warps = lshr i32 -1, %all.gone
  %q.fresh = get cta.fresh
  set cta.fresh, 0
  %q.threads = get ctx.threads
  %q.part = and i32 %q.threads, 31
  %q.whole = icmp eq i32 %q.part, 0
  %q.is = icmp ne i32 %q.fresh, 0
  %q.plain = and i1 %q.whole, %q.is
  br i1 %q.plain, label %plain, label %slow
plain:                                            ; as it has just been started
  store [32 x i32] zeroinitializer, ptr %v.at, align 64
  br label %found
slow:
  br i1 %quiet, label %look, label %turns
look:
  %l.number = phi i32 [0, %slow], [%l.next, %l.on]
  %l.warp = phi ptr [%warps, %slow], [%l.warp.next, %l.on]
  %l.living = phi i32 [0, %slow], [%l.living.new, %l.on]
  %l.waiting = phi i32 [0, %slow], [%l.waiting.new, %l.on]
  %l.missing = phi i32 [0, %slow], [%l.missing.new, %l.on]
  %l.begun = phi i32 [0, %slow], [%l.begun.new, %l.on]
  %l.alive = get warp.alive of %l.warp
  %l.gone = icmp eq i32 %l.alive, 0
  %l.bit = shl i32 1, %l.number
  br i1 %l.gone, label %l.on, label %l.look
l.look:
  %l.ready = get warp.ready of %l.warp
  %l.group = get warp.group of %l.warp
  %l.block = get warp.group_block of %l.warp
  %l.parked = get warp.parked of %l.warp
  %l.rotate = get warp.rotate of %l.warp
  %l.odd = and i32 %l.block, 1
  %l.strange.1 = or i32 %l.odd, %l.parked
  %l.strange.2 = or i32 %l.strange.1, %l.rotate
  %l.differs = xor i32 %l.group, %l.alive
  %l.strange = or i32 %l.strange.2, %l.differs
  %l.plain = icmp eq i32 %l.strange, 0
  br i1 %l.plain, label %l.where, label %turns
l.where:
  %l.half = lshr i32 %l.block, 1
  %l.place = getelementptr i32, ptr %v.at, i32 %l.number
  store i32 %l.half, ptr %l.place
  %l.others = xor i32 %l.alive, -1
  %l.runs = icmp eq i32 %l.ready, %l.alive
  br i1 %l.runs, label %l.on, label %l.waits
l.waits:
  %l.lanes.p = item warp.waiting, {barrier} of %l.warp
  %l.lanes = load i32, ptr %l.lanes.p
  %l.asleep = icmp eq i32 %l.ready, 0
  %l.here = icmp eq i32 %l.lanes, %l.alive
  %l.both = and i1 %l.asleep, %l.here
  br i1 %l.both, label %l.remember, label %turns
l.remember:
  %l.ip = get warp.wait_ip of %l.warp
  %l.ip.at = ptrtoint ptr %l.ip to i64
  %l.offset64 = sub i64 %l.ip.at, %code.at
  %l.offset = trunc i64 %l.offset64 to i32
  %l.record = getelementptr i32, ptr %v.records, i32 %l.number
  store i32 %l.offset, ptr %l.record
  br label %l.on
l.on:
  %l.lives = phi i32 [0, %look], [%l.bit, %l.where], [%l.bit, %l.remember]
  %l.sleeps = phi i32 [0, %look], [0, %l.where], [%l.bit, %l.remember]
  %l.lacks = phi i32 [0, %look], [%l.others, %l.where], [%l.others, %l.remember]
  %l.place.at = phi i32 [0, %look], [%l.half, %l.where], [%l.half, %l.remember]
  %l.missing.new = or i32 %l.missing, %l.lacks
  %l.begun.new = or i32 %l.begun, %l.place.at
  %l.living.new = or i32 %l.living, %l.lives
  %l.waiting.new = or i32 %l.waiting, %l.sleeps
  %l.next = add i32 %l.number, 1
  %l.warp.next = getelementptr i8, ptr %l.warp, i64 %bytes
  %l.more = icmp ult i32 %l.next, %number.of
  br i1 %l.more, label %look, label %found
found:
  %b.fresh = phi i32 [1, %plain], [0, %l.on]
  %b.living = phi i32 [%all.warps, %plain], [%l.living.new, %l.on]
  %b.waiting = phi i32 [0, %plain], [%l.waiting.new, %l.on]
  %b.missing = phi i32 [0, %plain], [%l.missing.new, %l.on]
  %b.begun = phi i32 [0, %plain], [%l.begun.new, %l.on]
  store i32 %b.fresh, ptr %v.clean
  store i32 %b.living, ptr %v.living
  store i32 %b.waiting, ptr %v.waiting
  %l.wide = icmp eq i32 %b.missing, 0
  %l.wide32 = zext i1 %l.wide to i32
  store i32 %l.wide32, ptr %v.wide
  %l.moved = or i32 %b.begun, %b.waiting
  %l.fresh = icmp eq i32 %l.moved, 0
  %l.fresh32 = zext i1 %l.fresh to i32
  store i32 %l.fresh32, ptr %v.fresh
  %now.ready = xor i32 %b.living, %b.waiting
  store i32 %now.ready, ptr %v.ready
  %b.count = get ctx.count
  store i64 %b.count, ptr %v.count
  %b.clock = get ctx.clock
  store i64 %b.clock, ptr %v.clock
  %b.left = get ctx.cta_left
  store i64 %b.left, ptr %v.left
FOLLOWED
  %nobody.waits = icmp eq i32 %before.pending, 0
  br i1 %nobody.waits, label %turn, label %rouse
rouse:                                            ; those at the barrier are kept as a set from now on
  set cta.pending, 0
  %r.arrived = item cta.arrived, {barrier}
  store i32 0, ptr %r.arrived
  %r.waiting = item cta.waiting, {barrier}
  store i32 0, ptr %r.waiting
  br label %r.look
r.look:
  %r.todo = phi i32 [%b.waiting, %rouse], [%r.rest, %r.wake]
  %r.none = icmp eq i32 %r.todo, 0
  br i1 %r.none, label %turn, label %r.wake
r.wake:
  %r.number = call i32 @llvm.cttz.i32(i32 %r.todo, i1 true)
  %r.less = sub i32 %r.todo, 1
  %r.rest = and i32 %r.todo, %r.less
  %r.number64 = zext i32 %r.number to i64
  %r.offset = mul i64 %r.number64, %bytes
  %r.warp = getelementptr i8, ptr %warps, i64 %r.offset
  %r.alive = get warp.alive of %r.warp
  set warp.ready, %r.alive of %r.warp
  %r.lanes.p = item warp.waiting, {barrier} of %r.warp
  store i32 0, ptr %r.lanes.p
  br label %r.look
"""

_TURNS = """
turn:
  %t.ready = load i32, ptr %v.ready
  %t.some = icmp ne i32 %t.ready, 0
  br i1 %t.some, label %due, label %t.empty
t.empty:
  %t.living = load i32, ptr %v.living
  %t.gone = icmp eq i32 %t.living, 0
  br i1 %t.gone, label %gone, label %t.stuck
t.stuck:
  store i32 STATUS_TURNS, ptr %v.outcome
  br label %write
gone:
  %g.had = get rec.s1                             ; misses are made up for; other workers read this line, too
  %g.smooth = icmp eq i32 %g.had, 0
  br i1 %g.smooth, label %{after}, label %g.better
g.better:
  %g.less = lshr i32 %g.had, 1
  set rec.s1, %g.less
  br label %{after}
over:
  set cta.ready, 0
  store i32 STATUS_GONE, ptr %v.outcome
  br label %account
due:
  %t.alarm = get ctx.alarm
  %t.clock = load i64, ptr %v.clock
  %t.late = icmp sge i64 %t.clock, %t.alarm
  store i32 %t.ready, ptr %v.todo
  br i1 %t.late, label %alarm, label %{first}
alarm:
  store i32 STATUS_ALARM, ptr %v.outcome
  br label %write
round:
  %todo = load i32, ptr %v.todo
  %todo.number = call i32 @llvm.cttz.i32(i32 %todo, i1 true)
  %todo.less = sub i32 %todo, 1
  %todo.rest = and i32 %todo, %todo.less
  store i32 %todo.rest, ptr %v.todo
  store i32 %todo.number, ptr %v.number
  store i32 %given, ptr %v.slice
  br label %take
take:
  %number = load i32, ptr %v.number
  %number64 = zext i32 %number to i64
  %offset = mul i64 %number64, %bytes
  %warp = getelementptr i8, ptr %warps, i64 %offset
  %fp = getelementptr i8, ptr %warp, i64 WARP_BYTES
  %alive = get warp.alive
  store i32 %alive, ptr %v.mask
  store i32 NOWHERE, ptr %v.pend
  %at.p = getelementptr i32, ptr %v.at, i32 %number
  %at = load i32, ptr %at.p
  store i32 %at, ptr %v.block
  br label %{taken}
enter:
  %entered = load i32, ptr %v.block
  switch i32 %entered, label %nowhere [{targets}]
nowhere:
  unreachable
settle:                                           ; the group goes on at %v.block, later or beside others
  %s.slice = load i32, ptr %v.slice
  %s.over = icmp slt i32 %s.slice, 0
  %s.mask = load i32, ptr %v.mask
  %s.block = load i32, ptr %v.block
  br i1 %s.over, label %s.stop, label %s.mix
s.stop:
  %s.alive = get warp.alive
  %s.whole = icmp eq i32 %s.alive, %s.mask
  br i1 %s.whole, label %s.later, label %s.part
s.later:
  store i32 %s.block, ptr %at.p
  br label %next
s.part:
  set ctx.stop_warp, %warp
  store i32 STATUS_SLICED, ptr %v.outcome
  br label %write
s.mix:
  %s.lanes.p = getelementptr i32, ptr %v.lanes, i32 %s.block
  %s.lanes = load i32, ptr %s.lanes.p
  %s.lanes.new = or i32 %s.lanes, %s.mask
  store i32 %s.lanes.new, ptr %s.lanes.p
  %s.apart = load {blocks}, ptr %v.apart
  %s.bit = load {blocks}, ptr %v.bit
  %s.apart.new = or {blocks} %s.apart, %s.bit
  store {blocks} %s.apart.new, ptr %v.apart
  br label %dispatch
dispatch:                                         ; the lanes at the lowest block go on
  %d.apart = load {blocks}, ptr %v.apart
  %d.lowest = call {blocks} @llvm.cttz.{blocks}({blocks} %d.apart, i1 true)
  %d.less = sub {blocks} %d.apart, 1
  %d.rest = and {blocks} %d.apart, %d.less
  store {blocks} %d.rest, ptr %v.apart
  %d.block = trunc {blocks} %d.lowest to i32
  store i32 %d.block, ptr %v.block
  %d.lanes.p = getelementptr i32, ptr %v.lanes, i32 %d.block
  %d.mask = load i32, ptr %d.lanes.p
  store i32 0, ptr %d.lanes.p
  store i32 %d.mask, ptr %v.mask
  %d.next = call {blocks} @llvm.cttz.{blocks}({blocks} %d.rest, i1 false)
  %d.next32 = trunc {blocks} %d.next to i32
  %d.pend = shl i32 %d.next32, 1
  store i32 %d.pend, ptr %v.pend
  br label %enter
depart:                                           ; the group has exited
  %e.mask = load i32, ptr %v.mask
  %e.alive = get warp.alive
  %e.rest = xor i32 %e.alive, %e.mask
  set warp.alive, %e.rest
  set warp.ready, %e.rest
  %e.gone = call i32 @llvm.ctpop.i32(i32 %e.mask)
  %e.threads = get cta.alive
  %e.threads.new = sub i32 %e.threads, %e.gone
  set cta.alive, %e.threads.new
  %e.some = icmp ne i32 %e.rest, 0
  %e.wide = load i32, ptr %v.wide
  %e.wide.new = select i1 %e.some, i32 0, i32 %e.wide
  store i32 %e.wide.new, ptr %v.wide
  br i1 %e.some, label %dispatch, label %e.warp
e.warp:
  set warp.group, 0
  %e.bit = shl i32 1, %number
  %e.others = xor i32 %e.bit, -1
  %e.living = load i32, ptr %v.living
  %e.living.new = and i32 %e.living, %e.others
  store i32 %e.living.new, ptr %v.living
  %e.ready = load i32, ptr %v.ready
  %e.ready.new = and i32 %e.ready, %e.others
  store i32 %e.ready.new, ptr %v.ready
  %e.waiting = load i32, ptr %v.waiting
  %e.full = icmp eq i32 %e.waiting, %e.living.new
  br i1 %e.full, label %e.open, label %next
e.open:                                           ; all that are left wait
  store i32 %e.living.new, ptr %v.ready
  store i32 0, ptr %v.waiting
  br label %next
arrive:
  %a.block = load i32, ptr %v.block
  store i32 %a.block, ptr %at.p
  %a.bit = shl i32 1, %number
  %a.waiting = load i32, ptr %v.waiting
  %a.waiting.new = or i32 %a.waiting, %a.bit
  %a.living = load i32, ptr %v.living
  %a.full = icmp eq i32 %a.waiting.new, %a.living
  br i1 %a.full, label %a.open, label %a.wait
a.open:                                           ; the last one goes on
  store i32 %a.living, ptr %v.ready
  store i32 0, ptr %v.waiting
  br label %{opened}
a.time:
  %a.slice = load i32, ptr %v.slice
  %a.enough = icmp sge i32 %a.slice, 0
  br i1 %a.enough, label %enter, label %settle
a.wait:
  store i32 %a.waiting.new, ptr %v.waiting
  %a.record = load i32, ptr %v.record
  %a.record.p = getelementptr i32, ptr %v.records, i32 %number
  store i32 %a.record, ptr %a.record.p
  %a.ready = load i32, ptr %v.ready
  %a.ready.new = xor i32 %a.ready, %a.bit
  store i32 %a.ready.new, ptr %v.ready
  br label %next
next:
{spent}  %n.todo = load i32, ptr %v.todo
  %n.more = icmp ne i32 %n.todo, 0
  br i1 %n.more, label %round, label %n.turn
n.turn:                                           ; all warps have a turn before the CTA's slice is over
{settled}  %n.over = icmp slt i64 %n.left.new, 0
  br i1 %n.over, label %n.expired, label %turn
n.expired:
  %n.living = load i32, ptr %v.living
  %n.gone = icmp eq i32 %n.living, 0
  br i1 %n.gone, label %gone, label %n.later
n.later:
  store i32 STATUS_EXPIRED, ptr %v.outcome
  br label %write
stopped:                                          ; a trap in a record
  store i32 STATUS_TRAP, ptr %v.outcome
  br label %write
lanes.leave:                                      ; the lanes of ctx.resume_mask go on at ctx.resume_ip
  %p.miss = get rec.s1
  %p.twice = shl i32 %p.miss, 1
  %p.more = or i32 %p.twice, 1
  %p.new = call i32 @llvm.umin.i32(i32 %p.more, i32 {most})
  set rec.s1, %p.new
  set rec.s0, %p.new
  br label %lanes.soon
lanes.soon:                                       ; the same, and the next round is in unison again
  store i32 STATUS_LANES, ptr %v.outcome
  br label %write
"""

#: Write where each warp is, as the loop keeps it.
_WRITE = """
write:
  %f.first = load {blocks}, ptr %v.apart
  br label %f.look
f.look:                                           ; lanes that wait for others of their warp
  %f.apart = phi {blocks} [%f.first, %write], [%f.rest, %f.one]
  %f.none = icmp eq {blocks} %f.apart, 0
  br i1 %f.none, label %w.begin, label %f.one
f.one:
  %f.lowest = call {blocks} @llvm.cttz.{blocks}({blocks} %f.apart, i1 true)
  %f.less = sub {blocks} %f.apart, 1
  %f.rest = and {blocks} %f.apart, %f.less
  %f.block = trunc {blocks} %f.lowest to i32
  %f.lanes.p = getelementptr i32, ptr %v.lanes, i32 %f.block
  %f.lanes = load i32, ptr %f.lanes.p
  %f.number = load i32, ptr %v.number
  %f.number64 = zext i32 %f.number to i64
  %f.offset = mul i64 %f.number64, %bytes
  %f.warp = getelementptr i8, ptr %warps, i64 %f.offset
  %f.native = shl i32 %f.block, 1
  %f.all = splat32 %f.native
  %f.who = lanes %f.lanes
  %f.pc = get warp.pc of %f.warp
  %f.new = blend32 %f.who, %f.all, %f.pc
  set warp.pc, %f.new of %f.warp
  br label %f.look
w.begin:
  %w.living = load i32, ptr %v.living
  %w.waiting = load i32, ptr %v.waiting
  %w.ready = load i32, ptr %v.ready
  set cta.ready, %w.ready
  br label %w.each
w.each:
  %w.todo = phi i32 [%w.living, %w.begin], [%w.rest, %w.on]
  %w.arrived = phi i32 [0, %w.begin], [%w.arrived.new, %w.on]
  %w.none = icmp eq i32 %w.todo, 0
  br i1 %w.none, label %w.barrier, label %w.warp
w.warp:
  %w.number = call i32 @llvm.cttz.i32(i32 %w.todo, i1 true)
  %w.bit = shl i32 1, %w.number
  %w.rest = xor i32 %w.todo, %w.bit
  %w.number64 = zext i32 %w.number to i64
  %w.offset = mul i64 %w.number64, %bytes
  %w.at.warp = getelementptr i8, ptr %warps, i64 %w.offset
  %w.alive = get warp.alive of %w.at.warp
  %w.at.p = getelementptr i32, ptr %v.at, i32 %w.number
  %w.block = load i32, ptr %w.at.p
  %w.native = shl i32 %w.block, 1
  %w.table = get ctx.blocks
  %w.entry = getelementptr i32, ptr %w.table, i32 %w.native
  %w.start = load i32, ptr %w.entry
  %w.ip = getelementptr i8, ptr %code, i32 %w.start
  set warp.group, %w.alive of %w.at.warp
  set warp.group_ip, %w.ip of %w.at.warp
  set warp.group_block, %w.native of %w.at.warp
  set warp.group_frame, 0 of %w.at.warp
  %w.held = and i32 %w.waiting, %w.bit
  %w.runs = icmp eq i32 %w.held, 0
  br i1 %w.runs, label %w.on, label %w.sleep
w.sleep:
  set warp.ready, 0 of %w.at.warp
  %w.lanes.p = item warp.waiting, {barrier} of %w.at.warp
  store i32 %w.alive, ptr %w.lanes.p
  %w.record.p = getelementptr i32, ptr %v.records, i32 %w.number
  %w.record = load i32, ptr %w.record.p
  %w.wait = getelementptr i8, ptr %code, i32 %w.record
  set warp.wait_ip, %w.wait of %w.at.warp
  br label %w.on
w.on:
  %w.came = phi i32 [0, %w.warp], [%w.alive, %w.sleep]
  %w.threads = call i32 @llvm.ctpop.i32(i32 %w.came)
  %w.arrived.new = add i32 %w.arrived, %w.threads
  br label %w.each
w.barrier:
  %w.nobody = icmp eq i32 %w.waiting, 0
  br i1 %w.nobody, label %w.done, label %w.pending
w.pending:
  set cta.pending, {bit}
  %w.arrived.p = item cta.arrived, {barrier}
  store i32 %w.arrived, ptr %w.arrived.p
  %w.waiting.p = item cta.waiting, {barrier}
  store i32 %w.waiting, ptr %w.waiting.p
  br label %w.done
w.done:
  %w.outcome = load i32, ptr %v.outcome
  %w.pend = load i32, ptr %v.pend
  %w.last = get ctx.stop_warp
  switch i32 %w.outcome, label %account [
    i32 STATUS_SLICED, label %w.sliced
    i32 STATUS_TRAP, label %w.turn
    i32 STATUS_LANES, label %w.lanes
  ]
w.sliced:                                         ; other lanes of the warp wait for those that stop
  %w.s.mask = load i32, ptr %v.mask
  %w.s.block = load i32, ptr %v.block
  %w.s.native = shl i32 %w.s.block, 1
  %w.s.table = get ctx.blocks
  %w.s.entry = getelementptr i32, ptr %w.s.table, i32 %w.s.native
  %w.s.start = load i32, ptr %w.s.entry
  %w.s.ip = getelementptr i8, ptr %code, i32 %w.s.start
  set warp.group, %w.s.mask of %w.last
  set warp.group_ip, %w.s.ip of %w.last
  set warp.group_block, %w.s.native of %w.last
  br label %w.turn
w.turn:                                           ; the loop ends the turn
  %w.t.slice = load i32, ptr %v.slice
  set ctx.slice, %w.t.slice
  set ctx.given, %given64
  br label %account
w.lanes:
  set warp.pend, %w.pend of %w.last
{spent}  set ctx.slice, %w.l.slice
  br label %account
account:
  %c.todo = load i32, ptr %v.todo
  set ctx.round, %c.todo
  %c.count = load i64, ptr %v.count
  set ctx.count, %c.count
{settled}  set ctx.clock, %c.clock.new
  set ctx.cta_left, %c.left.new
  %c.outcome = load i32, ptr %v.outcome
  set ctx.status, %c.outcome
  ret void
"""

#: Turns that are passed by behind misses: at most so many.
_MOST_PASSED = 255


def leave_at(whole: Whole, mask: str, record: int, *, soon: bool) -> None:
    """Lanes go on at a record, one by one; soon: only they, in this turn."""
    whole.code.expand(f"set ctx.resume_mask, {mask}\nset ctx.stop_warp, %warp")
    where = whole.code.value(f"getelementptr i8, ptr %code, i64 {record}")
    whole.code.expand(f"set ctx.resume_ip, {where}\nbr label %lanes.{'soon' if soon else 'leave'}")


def begin(whole: Whole, *, sections: bool, fresh: bool, stepped: bool) -> None:
    """The turns; sections: there are some, and one that CTAs begin with (fresh); stepped: CTAs may run as a whole."""
    e, count, blocks = whole.code, len(whole.stages), whole.kind_of("apart")
    for symbol, text in _DECLARED.items():
        e.declare(symbol, text)
    e.declare(f"llvm.cttz.{blocks}", f"declare {blocks} @llvm.cttz.{blocks}({blocks}, i1)")
    with whole.first():
        for name in VARIABLES:
            e.value(f"alloca {whole.kind_of(name)}", f"%v.{name}")
        e.value("alloca [32 x i32], align 64", "%v.at")
        e.value("alloca [32 x i32], align 64", "%v.records")
        e.value(f"alloca [{count} x i32], align 64", "%v.lanes")
        e.line(f"store [{count} x i32] zeroinitializer, ptr %v.lanes, align 64")
        e.line(f"store {blocks} 0, ptr %v.apart")
        e.line("store i64 0, ptr %v.spent")
    number = max(whole.detail.barrier, 0)
    bit = 1 << number if whole.detail.barrier >= 0 else 0
    looks, _, rest = _BEGIN.format(others=~bit, barrier=number).partition("FOLLOWED\n")
    followed = next_cta.possible(whole)
    e.expand(looks)
    if followed:
        next_cta.prepare_blocks(e)
    e.expand(rest)
    targets = " ".join(f"i32 {n}, label %body{n}" for n in range(count))
    turn, whole_round, lanes, end = (
        text.format(name=name) for text, name in ((_SPENT, "turn"), (_SETTLED, "n"), (_SPENT, "w.l"), (_SETTLED, "c"))
    )
    labels = {
        "first": "all.fresh" if stepped else "sec.fresh" if fresh else "round",
        "taken": "sec.taken" if sections else "enter",
        "opened": "sec.open" if sections else "a.time",
        "after": "nx.next" if followed else "over",
    }
    e.expand(
        _TURNS.format(targets=targets, most=_MOST_PASSED, spent=turn, settled=whole_round, blocks=blocks, **labels)
    )
    if followed:
        next_cta.follow_blocks(e, stepped=stepped)
    e.expand(_WRITE.format(barrier=number, bit=bit, spent=lanes, settled=end, blocks=blocks))
