"""The loop around the threaded code: a worker's resident CTAs, their warps, and the time slices of both.

A worker runs one CTA until it ends, then starts the next in the same memory. A CTA that is not done after its slice
makes room: another resident CTA gets a turn, a new one is started while the grid and the residency allow it. So a CTA
may wait for another one, and memory is needed for resident CTAs only.
"""

from __future__ import annotations

from ptxtools.engine.native.templates import CONVENTION, expand

PREPARE = """
define internal void @prepare(ptr %ctx, ptr %cta) #1 {   ; what stays the same for all CTAs that run in this memory
  %warps.offset = get ctx.warps_offset
  %warp.bytes = get ctx.warp_bytes
  %local.offset = get ctx.local_offset
  %local.bytes = get ctx.local_warp_bytes
  %count = get ctx.warps
  %width = get ctx.block_x
  %height = get ctx.block_y
  %width.all = splat32 %width
  %height.all = splat32 %height
  %entry = get ctx.functions
  %shared = getelementptr i8, ptr %cta, i64 CTA_BYTES
  set cta.shared, %shared
  set cta.prepared, 1
  %numbers = load <32 x i32>, ptr @lane_numbers
  br label %each
each:
  %i = phi i32 [0, %0], [%i.next, %each]
  %i64 = zext i32 %i to i64
  %place = mul i64 %i64, %warp.bytes
  %at = add i64 %place, %warps.offset
  %warp = getelementptr i8, ptr %cta, i64 %at
  call void @llvm.memset.p0.i64(ptr align 64 %warp, i8 0, i64 WARP_BYTES, i1 false)
  set warp.cta, %cta
  set warp.id, %i
  %local.place = mul i64 %i64, %local.bytes
  %local.at = add i64 %local.place, %local.offset
  %local = getelementptr i8, ptr %cta, i64 %local.at
  set warp.local, %local
  %frame.bytes = get fun.frame_bytes of %entry
  %fresh64 = zext i32 %frame.bytes to i64
  %first = shl i32 %i, 5
  %first.all = splat32 %first
  %linear = add <32 x i32> %numbers, %first.all
  %x = urem <32 x i32> %linear, %width.all
  %row = udiv <32 x i32> %linear, %width.all
  %y = urem <32 x i32> %row, %height.all
  %z = udiv <32 x i32> %row, %height.all
  set warp.tid_x, %x
  set warp.tid_y, %y
  set warp.tid_z, %z
  %fp = getelementptr i8, ptr %warp, i64 WARP_BYTES
  call void @llvm.memset.p0.i64(ptr align 64 %fp, i8 0, i64 %fresh64, i1 false)
  store <32 x i32> splat (i32 -1), ptr %fp
  %sp = getelementptr i8, ptr %fp, i64 STACK_POINTER
  store <32 x i64> zeroinitializer, ptr %sp
  call void @fill(ptr %fp, ptr %entry, i32 -1)
  %i.next = add i32 %i, 1
  %more = icmp ult i32 %i.next, %count
  br i1 %more, label %each, label %out
out:
  ret void
}
"""

START = """
define internal void @start(ptr %ctx, ptr %cta, i64 %id) #1 {
  %prepared = get cta.prepared
  %new = icmp eq i32 %prepared, 0
  br i1 %new, label %prepare, label %begin
prepare:
  call void @prepare(ptr %ctx, ptr %cta)
  br label %begin
begin:
  %width = get ctx.grid_x
  %height = get ctx.grid_y
  %width64 = zext i32 %width to i64
  %height64 = zext i32 %height to i64
  %x = urem i64 %id, %width64
  %row = udiv i64 %id, %width64
  %y = urem i64 %row, %height64
  %z = udiv i64 %row, %height64
  %x32 = trunc i64 %x to i32
  %y32 = trunc i64 %y to i32
  %z32 = trunc i64 %z to i32
  %sms = get ctx.sms
  %sms64 = zext i32 %sms to i64
  %home = urem i64 %id, %sms64
  %home32 = trunc i64 %home to i32
  set cta.smid, %home32
  set cta.x, %x32
  set cta.y, %y32
  set cta.z, %z32
  set cta.id, %id
  set cta.state, 1
  %threads = get ctx.threads
  set cta.alive, %threads
  %pending = get cta.pending
  %clean = icmp eq i32 %pending, 0
  br i1 %clean, label %memory, label %barriers
barriers:                                         ; somebody arrived at a barrier that never opened
  %arrived = addr cta.arrived
  call void @llvm.memset.p0.i64(ptr align 64 %arrived, i8 0, i64 256, i1 false)
  set cta.pending, 0
  br label %memory
memory:
  %shared = get cta.shared
  %bytes = get ctx.shared_bytes
  %bytes64 = zext i32 %bytes to i64
  call void @llvm.memset.p0.i64(ptr align 64 %shared, i8 0, i64 %bytes64, i1 false)
  %count = get ctx.warps
  %count.out = sub i32 32, %count
  %ready = lshr i32 -1, %count.out
  set cta.ready, %ready
  %warps.offset = get ctx.warps_offset
  %warp.bytes = get ctx.warp_bytes
  %warps = getelementptr i8, ptr %cta, i64 %warps.offset
  %block = get ctx.first_block
  %entries = get ctx.blocks
  %entry = getelementptr i32, ptr %entries, i32 %block
  %offset = load i32, ptr %entry
  %code = get ctx.code
  %ip = getelementptr i8, ptr %code, i32 %offset
  %calls = get ctx.has_calls
  %simple = icmp eq i32 %calls, 0
  br label %each
each:
  %i = phi i32 [0, %memory], [%i.next, %done]
  %warp = phi ptr [%warps, %memory], [%warp.next, %done]
  %before = shl i32 %i, 5
  %left = sub i32 %threads, %before
  %full = icmp uge i32 %left, 32
  %out = sub i32 32, %left
  %out.safe = and i32 %out, 31
  %some = lshr i32 -1, %out.safe
  %lanes = select i1 %full, i32 -1, i32 %some
  set warp.ready, %lanes
  set warp.alive, %lanes
  set warp.group, %lanes
  set warp.group_ip, %ip
  set warp.group_block, %block
  set warp.group_frame, 0
  set warp.parked, 0
  set warp.rotate, 0
  br i1 %simple, label %done, label %frames
frames:
  set warp.frame, zeroinitializer
  br label %done
done:
  %warp.next = getelementptr i8, ptr %warp, i64 %warp.bytes
  %i.next = add i32 %i, 1
  %more = icmp ult i32 %i.next, %count
  br i1 %more, label %each, label %finish
finish:
  ret void
}
"""

#: Run a warp until it leaves; its status is in the worker.
WARP = f"""
define internal void @resume_warp(ptr %ctx, ptr %warp) #1 {{
  %ready = get warp.ready
  %group = get warp.group
  %same = icmp eq i32 %ready, %group
  %origin = getelementptr i8, ptr %warp, i64 WARP_BYTES
  %ip = get warp.group_ip
  br i1 %same, label %whole, label %mixed
whole:
  %depth = get warp.group_frame
  %fp = getelementptr i8, ptr %origin, i32 %depth
  set warp.pend, NOWHERE
  %code = load ptr, ptr %ip
  call {CONVENTION} void %code(ptr %fp, ptr %ip, i32 %ready, ptr %ctx, ptr %warp)
  ret void
mixed:
  %some = icmp ne i32 %group, 0
  br i1 %some, label %flush, label %choose
flush:
  %block = get warp.group_block
  %block.all = splat32 %block
  %who = lanes %group
  %pc = get warp.pc
  %pc.new = blend32 %who, %block.all, %pc
  set warp.pc, %pc.new
  br label %choose
choose:
  call {CONVENTION} void @dispatch(ptr %origin, ptr %ip, i32 0, ptr %ctx, ptr %warp)
  ret void
}}
"""

#: Give each warp of a CTA that can run its slice, round after round. Answers a RUN_* code, or -1: the CTA's slice is
#: over, -2: all its threads have exited.
RUN_CTA = f"""
define internal i32 @run_cta(ptr %ctx, ptr %cta, i32 %again) #1 {{
  %warps.offset = get ctx.warps_offset
  %warp.bytes = get ctx.warp_bytes
  %warps = getelementptr i8, ptr %cta, i64 %warps.offset
  %continue = icmp ne i32 %again, 0
  br i1 %continue, label %exact, label %turn
exact:                                            ; after an event: where it stopped, before anything else
  %stop.warp = get ctx.stop_warp
  %stop.mask = get ctx.resume_mask
  %stop.ip = get ctx.resume_ip
  %stop.depth = get warp.group_frame of %stop.warp
  %stop.origin = getelementptr i8, ptr %stop.warp, i64 WARP_BYTES
  %stop.fp = getelementptr i8, ptr %stop.origin, i32 %stop.depth
  %stop.slice = get ctx.warp_slice
  set ctx.given, %stop.slice
  %stop.slice32 = trunc i64 %stop.slice to i32
  set ctx.slice, %stop.slice32
  %stop.code = load ptr, ptr %stop.ip
  call {CONVENTION} void %stop.code(ptr %stop.fp, ptr %stop.ip, i32 %stop.mask, ptr %ctx, ptr %stop.warp)
  br label %ran
turn:
  %ready = get cta.ready
  %stuck = icmp eq i32 %ready, 0
  br i1 %stuck, label %empty, label %round
empty:
  %alive = get cta.alive
  %all.gone = icmp eq i32 %alive, 0
  %answer = select i1 %all.gone, i32 -2, i32 RUN_STUCK
  ret i32 %answer
round:
  %todo = phi i32 [%ready, %turn], [%todo.rest, %on]
  %number = call i32 @llvm.cttz.i32(i32 %todo, i1 true)
  %less = sub i32 %todo, 1
  %rest = and i32 %todo, %less
  %number64 = zext i32 %number to i64
  %place = mul i64 %number64, %warp.bytes
  %chosen = getelementptr i8, ptr %warps, i64 %place
  %whole.slice = get ctx.warp_slice
  %rotate.now = get warp.rotate of %chosen
  %normal = icmp eq i32 %rotate.now, 0
  %slice = select i1 %normal, i64 %whole.slice, i64 ROTATED_SLICE
  set ctx.given, %slice
  %slice32 = trunc i64 %slice to i32
  set ctx.slice, %slice32
  call void @resume_warp(ptr %ctx, ptr %chosen)
  br label %ran
ran:
  %todo.rest = phi i32 [%rest, %round], [0, %exact]
  %warp = phi ptr [%chosen, %round], [%stop.warp, %exact]
  %left = get ctx.slice
  %left64 = sext i32 %left to i64
  %given = get ctx.given
  %used = sub i64 %given, %left64
  %clock = get ctx.clock
  %clock.new = add i64 %clock, %used
  set ctx.clock, %clock.new
  %cta.left = get ctx.cta_left
  %cta.left.new = sub i64 %cta.left, %used
  set ctx.cta_left, %cta.left.new
  %status = get ctx.status
  %lanes = get warp.ready
  %bit.number = get warp.id
  %bit = shl i32 1, %bit.number
  %idle = icmp eq i32 %lanes, 0
  %now = get cta.ready
  %not = xor i32 %bit, -1
  %without = and i32 %now, %not
  %with = or i32 %now, %bit
  %now.new = select i1 %idle, i32 %without, i32 %with
  set cta.ready, %now.new
  switch i32 %status, label %next [
    i32 STATUS_SLICED, label %sliced
    i32 STATUS_TRAP, label %trap
    i32 STATUS_EVENT, label %event
    i32 STATUS_HOST, label %host
  ]
sliced:                                           ; lanes that wait for others of their warp must not starve them
  %group = get warp.group
  %agree = icmp eq i32 %group, %lanes
  %rotated = icmp eq i64 %given, ROTATED_SLICE
  %keep = or i1 %agree, %rotated
  br i1 %keep, label %next, label %rotate
rotate:
  set warp.rotate, 1
  br label %next
trap:
  ret i32 RUN_TRAP
event:
  ret i32 RUN_EVENT
host:
  ret i32 RUN_HOST
next:
  %over = icmp slt i64 %cta.left.new, 0
  %more = icmp ne i32 %todo.rest, 0
  br i1 %over, label %expired, label %on
on:
  br i1 %more, label %round, label %turn
expired:
  %living = get cta.alive
  %gone = icmp eq i32 %living, 0
  %result = select i1 %gone, i32 -2, i32 -1
  ret i32 %result
}}
"""

RUN = """
define i32 @run(ptr %ctx) #1 {
  %first = get ctx.resume
  set ctx.resume, 0
  br label %visit
visit:                                            ; the CTA in slot_current: start one if the slot is free
  %again = phi i32 [%first, %0], [0, %advance], [0, %reuse]
  %slot = get ctx.slot_current
  %slots = get ctx.slots
  %bytes = get ctx.slot_bytes
  %slot64 = zext i32 %slot to i64
  %place = mul i64 %slot64, %bytes
  %cta = getelementptr i8, ptr %slots, i64 %place
  %state = get cta.state
  %free = icmp eq i32 %state, 0
  br i1 %free, label %claim, label %go
claim:
  %next.p = get ctx.next
  %id = atomicrmw add ptr %next.p, i64 1 monotonic
  %total = get ctx.total
  %left = icmp ult i64 %id, %total
  br i1 %left, label %begin, label %exhausted
begin:
  call void @start(ptr %ctx, ptr %cta, i64 %id)
  %occupied = get ctx.occupied
  %occupied.more = add i32 %occupied, 1
  set ctx.occupied, %occupied.more
  br label %go
go:
  %share = get ctx.cta_slice
  set ctx.cta_left, %share
  %answer = call i32 @run_cta(ptr %ctx, ptr %cta, i32 %again)
  %rest = get ctx.cta_left
  %used = sub i64 %share, %rest
  %quantum = get ctx.quantum
  %quantum.new = sub i64 %quantum, %used
  set ctx.quantum, %quantum.new
  switch i32 %answer, label %stop [
    i32 -1, label %switch
    i32 -2, label %done
  ]
stop:
  ret i32 %answer
done:
  set cta.state, 0
  %was = get ctx.occupied
  %is = sub i32 %was, 1
  set ctx.occupied, %is
  br label %time
time:
  %tired = icmp slt i64 %quantum.new, 0
  br i1 %tired, label %pause, label %reuse
reuse:
  br label %visit
switch:                                           ; another CTA's turn: a new one while there is room
  %used.slots = get ctx.slot_used
  %room = get ctx.slot_count
  %can = icmp ult i32 %used.slots, %room
  br i1 %can, label %more, label %cycle
more:
  %used.more = add i32 %used.slots, 1
  set ctx.slot_used, %used.more
  set ctx.slot_current, %used.slots
  %new64 = zext i32 %used.slots to i64
  %new.place = mul i64 %new64, %bytes
  %new.cta = getelementptr i8, ptr %slots, i64 %new.place
  call void @llvm.memset.p0.i64(ptr align 64 %new.cta, i8 0, i64 CTA_BYTES, i1 false)
  br label %rest.time
exhausted:                                        ; no more CTAs to start
  %busy = get ctx.occupied
  %finished = icmp eq i32 %busy, 0
  br i1 %finished, label %end, label %cycle
end:
  ret i32 RUN_FINISHED
cycle:
  %last = get ctx.slot_used
  %here = get ctx.slot_current
  %following = add i32 %here, 1
  %wrap = icmp uge i32 %following, %last
  %to = select i1 %wrap, i32 0, i32 %following
  set ctx.slot_current, %to
  br label %rest.time
rest.time:
  %budget = get ctx.quantum
  %empty = icmp slt i64 %budget, 0
  br i1 %empty, label %pause, label %advance
advance:
  br label %visit
pause:
  ret i32 RUN_QUANTUM
}
"""


def text() -> str:
    """IR of the loop; `run(ctx)` is what Python calls."""
    return "\n".join(expand(part) for part in (PREPARE, START, WARP, RUN_CTA, RUN))
