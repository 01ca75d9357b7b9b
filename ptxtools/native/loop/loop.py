"""The loop around the threaded code: a worker's resident CTAs, their warps, and the time slices of both.

A worker runs one CTA until it ends, then starts the next in the same memory. A CTA that is not done after its slice
makes room: another resident CTA gets a turn, a new one is started while the grid and the residency allow it. So a CTA
may wait for another one, and memory is needed for resident CTAs only.
"""

from __future__ import annotations

from ptxtools.native.code.notation import CONVENTION

from .residency import RUN

PREPARE = """
define internal void @prepare(ptr %ctx, ptr %cta) #1 {   ; what stays the same for all CTAs that run in this memory
  %warps.offset = get ctx.warps_offset
  %warp.bytes = get ctx.warp_bytes
  %local.offset = get ctx.local_offset
  %local.bytes = get ctx.local_warp_bytes
  %count = get ctx.warps
  %width = get ctx.block_x
  %height = get ctx.block_y
  %entry = get ctx.functions
  %shared = getelementptr i8, ptr %cta, i64 CTA_BYTES
  set cta.shared, %shared
  set cta.prepared, 1
  br label %each
each:
  %i = phi i32 [0, %0], [%i.next, %frame]
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
  %x.first = urem i32 %first, %width
  %row = udiv i32 %first, %width
  %y.first = urem i32 %row, %height
  %z.first = udiv i32 %row, %height
  br label %thread
thread:                                           ; one after the other: no vectors are divided
  %lane = phi i32 [0, %each], [%lane.next, %thread]
  %x = phi i32 [%x.first, %each], [%x.next, %thread]
  %y = phi i32 [%y.first, %each], [%y.next, %thread]
  %z = phi i32 [%z.first, %each], [%z.next, %thread]
  %x.p = item warp.tid_x, %lane
  store i32 %x, ptr %x.p
  %y.p = item warp.tid_y, %lane
  store i32 %y, ptr %y.p
  %z.p = item warp.tid_z, %lane
  store i32 %z, ptr %z.p
  %x.more = add i32 %x, 1
  %x.ends = icmp eq i32 %x.more, %width
  %x.next = select i1 %x.ends, i32 0, i32 %x.more
  %y.step = zext i1 %x.ends to i32
  %y.more = add i32 %y, %y.step
  %y.ends = icmp eq i32 %y.more, %height
  %y.next = select i1 %y.ends, i32 0, i32 %y.more
  %z.step = zext i1 %y.ends to i32
  %z.next = add i32 %z, %z.step
  %lane.next = add i32 %lane, 1
  %lanes.left = icmp ult i32 %lane.next, 32
  br i1 %lanes.left, label %thread, label %frame
frame:
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
define internal void @start(ptr %ctx, ptr %cta, ptr %leader, i64 %cluster, i32 %rank) #1 {
  %prepared = get cta.prepared
  %new = icmp eq i32 %prepared, 0
  br i1 %new, label %prepare, label %begin
prepare:
  call void @prepare(ptr %ctx, ptr %cta)
  br label %begin
begin:
  %width = get ctx.clusters_x
  %height = get ctx.clusters_y
  %width64 = zext i32 %width to i64
  %height64 = zext i32 %height to i64
  %flat = icmp ult i64 %cluster, %width64         ; a division takes a while
  br i1 %flat, label %found, label %divide
divide:
  %x.of = urem i64 %cluster, %width64
  %row = udiv i64 %cluster, %width64
  %y.of = urem i64 %row, %height64
  %z.of = udiv i64 %row, %height64
  br label %found
found:
  %x = phi i64 [%cluster, %begin], [%x.of, %divide]
  %y = phi i64 [0, %begin], [%y.of, %divide]
  %z = phi i64 [0, %begin], [%z.of, %divide]
  %x.first = trunc i64 %x to i32
  %y.first = trunc i64 %y to i32
  %z.first = trunc i64 %z to i32
  %size = get ctx.cluster_size
  %size64 = zext i32 %size to i64
  %id.first = mul i64 %cluster, %size64
  %rank64 = zext i32 %rank to i64
  %id = add i64 %id.first, %rank64
  %rank.step = get ctx.rank_step
  %window = mul i64 %rank64, %rank.step
  set cta.rank, %rank
  set cta.window, %window
  set cta.leader, %leader
  %single = icmp eq i32 %size, 1
  br i1 %single, label %placed, label %inside
inside:                                           ; place of the CTA in its cluster
  %part.x = get ctx.cluster_x
  %part.y = get ctx.cluster_y
  %part.z = get ctx.cluster_z
  %in.x = urem i32 %rank, %part.x
  %in.row = udiv i32 %rank, %part.x
  %in.y = urem i32 %in.row, %part.y
  %in.z = udiv i32 %in.row, %part.y
  %many.x = mul i32 %x.first, %part.x
  %many.y = mul i32 %y.first, %part.y
  %many.z = mul i32 %z.first, %part.z
  %x.sum = add i32 %many.x, %in.x
  %y.sum = add i32 %many.y, %in.y
  %z.sum = add i32 %many.z, %in.z
  %all.threads = get ctx.threads
  %cluster.threads = mul i32 %all.threads, %size
  set cta.cl_alive, %cluster.threads of %leader
  br label %placed
placed:
  %x32 = phi i32 [%x.first, %found], [%x.sum, %inside]
  %y32 = phi i32 [%y.first, %found], [%y.sum, %inside]
  %z32 = phi i32 [%z.first, %found], [%z.sum, %inside]
  set cta.left, %size
  set cta.cl_came, 0
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
  call void @llvm.memset.p0.i64(ptr align 64 %arrived, i8 0, i64 320, i1 false)
  set cta.pending, 0
  br label %memory
memory:
  %shared = get cta.shared
  %bytes = get ctx.clear_bytes
  %kept = icmp ne i64 %bytes, 0
  br i1 %kept, label %shared.clear, label %shared.done
shared.clear:
  call void @llvm.memset.p0.i64(ptr align 64 %shared, i8 0, i64 %bytes, i1 false)
  br label %shared.done
shared.done:
  %flags.bytes = get ctx.local_flags
  %flagged = icmp ne i64 %flags.bytes, 0
  br i1 %flagged, label %flags.clear, label %memory.done
flags.clear:
  %local.offset = get ctx.local_offset
  %flags.offset = add i64 %local.offset, %flags.bytes
  %flags = getelementptr i8, ptr %cta, i64 %flags.offset
  call void @llvm.memset.p0.i64(ptr %flags, i8 0, i64 %flags.bytes, i1 false)
  br label %memory.done
memory.done:
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
  %fresh = get cta.fresh
  set cta.fresh, 1
  %same = icmp ne i32 %fresh, 0                   ; its last CTA has left them so
  br i1 %same, label %finish, label %each
each:
  %i = phi i32 [0, %memory.done], [%i.next, %done]
  %warp = phi ptr [%warps, %memory.done], [%warp.next, %done]
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
  set warp.cl_pending, 0
  set warp.cl_waiting, 0
  set warp.cl_turn, 0
  set warp.cl_left, 0
  set warp.wg_issued, 0
  set warp.wg_done, 0
  set warp.wg_commits, 0
  set warp.wg_watched, 0
  set warp.wg_tries, 0
  br i1 %simple, label %done, label %frames
frames:
  set warp.frame, zeroinitializer
  %room = get ctx.local_bytes
  %top = trunc i64 %room to i32
  %tops = splat32 %top
  set warp.top, %tops
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

#: Whether any CTA of a cluster has warps that can run; the next number of the shuffle (xorshift).
HELPERS = """
define internal i32 @cluster_ready(ptr %ctx, ptr %cta) #1 {
  %size = get ctx.cluster_size
  %bytes = get ctx.slot_bytes
  %leader = get cta.leader
  br label %each
each:
  %i = phi i32 [0, %0], [%i.next, %each]
  %sum = phi i32 [0, %0], [%sum.next, %each]
  %i64 = zext i32 %i to i64
  %place = mul i64 %i64, %bytes
  %other = getelementptr i8, ptr %leader, i64 %place
  %ready = get cta.ready of %other
  %sum.next = or i32 %sum, %ready
  %i.next = add i32 %i, 1
  %more = icmp ult i32 %i.next, %size
  br i1 %more, label %each, label %out
out:
  ret i32 %sum.next
}

define internal i64 @draw(ptr %ctx) #1 {
  %a = get ctx.random
  %b = shl i64 %a, 13
  %c = xor i64 %a, %b
  %d = lshr i64 %c, 7
  %e = xor i64 %c, %d
  %f = shl i64 %e, 17
  %g = xor i64 %e, %f
  set ctx.random, %g
  ret i64 %g
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
  %stop.slice = get ctx.slice
  %stop.slice64 = sext i32 %stop.slice to i64
  set ctx.given, %stop.slice64
  %stop.todo = get ctx.round
  set ctx.status, STATUS_IDLE
  %stop.nobody = icmp eq i32 %stop.mask, 0
  br i1 %stop.nobody, label %ran, label %proceed
proceed:
  %stop.code = load ptr, ptr %stop.ip
  call {CONVENTION} void %stop.code(ptr %stop.fp, ptr %stop.ip, i32 %stop.mask, ptr %ctx, ptr %stop.warp)
  br label %ran
turn:
  %ready = get cta.ready
  %stuck = icmp eq i32 %ready, 0
  br i1 %stuck, label %empty, label %due
empty:
  %alive = get cta.alive
  %all.gone = icmp eq i32 %alive, 0
  br i1 %all.gone, label %gone.now, label %asleep
gone.now:
  ret i32 -2
asleep:                                           ; the others of the cluster may wake it
  %elsewhere = call i32 @cluster_ready(ptr %ctx, ptr %cta)
  %nowhere = icmp eq i32 %elsewhere, 0
  %answer = select i1 %nowhere, i32 RUN_STUCK, i32 -1
  ret i32 %answer
due:
  %unison = get ctx.unison                        ; all warps in one function, as long as they are whole
  %apart = icmp eq ptr %unison, null
  br i1 %apart, label %singly, label %joined
joined:
  %joint = load atomic ptr, ptr %unison acquire, align 8
  %missing = icmp eq ptr %joint, null
  br i1 %missing, label %singly, label %together
together:
  call {CONVENTION} void %joint(ptr %warps, ptr %unison, i32 %ready, ptr %ctx, ptr %cta)
  %outcome = get ctx.status
  switch i32 %outcome, label %other [
    i32 STATUS_TURNS, label %singly
    i32 STATUS_LANES, label %exact
    i32 STATUS_GONE, label %gone.now
    i32 STATUS_EXPIRED, label %expired.now
    i32 STATUS_ALARM, label %call
  ]
expired.now:
  ret i32 -1
other:                                            ; a trap, or lanes of a warp whose slice is over
  %other.warp = get ctx.stop_warp
  %other.todo = get ctx.round
  br label %ran
singly:
  %alarm = get ctx.alarm
  %time = get ctx.clock
  %late = icmp sge i64 %time, %alarm
  br i1 %late, label %call, label %inside
call:
  ret i32 RUN_ALARM
inside:
  set cta.fresh, 0
  %ready.now = get cta.ready
  br label %round
round:
  %todo = phi i32 [%ready.now, %inside], [%todo.rest, %next]
  %random = get ctx.random
  %orderly = icmp eq i64 %random, 0
  br i1 %orderly, label %lowest, label %shuffle
shuffle:                                          ; any warp, for any while
  %draw = call i64 @draw(ptr %ctx)
  %turn.by = trunc i64 %draw to i32
  %turned = call i32 @llvm.fshr.i32(i32 %todo, i32 %todo, i32 %turn.by)
  %turned.first = call i32 @llvm.cttz.i32(i32 %turned, i1 true)
  %turned.sum = add i32 %turned.first, %turn.by
  %any = and i32 %turned.sum, 31
  %length = lshr i64 %draw, 32
  %length.some = and i64 %length, 511
  set ctx.warp_slice, %length.some
  %split = lshr i64 %draw, 48
  %split.bit = and i64 %split, 1
  %split.now = trunc i64 %split.bit to i32
  %any64 = zext i32 %any to i64
  %any.place = mul i64 %any64, %warp.bytes
  %any.warp = getelementptr i8, ptr %warps, i64 %any.place
  set warp.rotate, %split.now of %any.warp
  br label %picked
lowest:
  %first = call i32 @llvm.cttz.i32(i32 %todo, i1 true)
  br label %picked
picked:
  %number = phi i32 [%first, %lowest], [%any, %shuffle]
  %number.bit = shl i32 1, %number
  %rest = xor i32 %todo, %number.bit
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
  %todo.rest = phi i32 [%rest, %picked], [%stop.todo, %exact], [%stop.todo, %proceed], [%other.todo, %other]
  %warp = phi ptr [%chosen, %picked], [%stop.warp, %exact], [%stop.warp, %proceed], [%other.warp, %other]
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
  set ctx.round, %todo.rest
  ret i32 RUN_EVENT
host:
  set ctx.round, %todo.rest
  ret i32 RUN_HOST
next:                                             ; all warps have a turn before the CTA's slice is over
  %more = icmp ne i32 %todo.rest, 0
  br i1 %more, label %round, label %on
on:
  %over = icmp slt i64 %cta.left.new, 0
  br i1 %over, label %expired, label %turn
expired:
  %living = get cta.alive
  %gone = icmp eq i32 %living, 0
  %result = select i1 %gone, i32 -2, i32 -1
  ret i32 %result
}}
"""


def text() -> str:
    """The loop, in notation; `run(ctx)` is what Python calls."""
    return "\n".join((PREPARE, START, HELPERS, WARP, RUN_CTA, RUN))
