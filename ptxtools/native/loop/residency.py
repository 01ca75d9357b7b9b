"""The outermost loop of a worker: which CTA has a turn, which cluster is started, and when nothing is left."""

from __future__ import annotations

#: Clusters are started and leave as a whole; a cluster's CTAs lie in consecutive slots.
RUN = """
define i64 @claim(ptr %ctx) #1 {                  ; number of a cluster that nobody else starts or cancels, or -1
  %kept = get ctx.claimed
  %kept.end = get ctx.claims
  %has = icmp slt i64 %kept, %kept.end
  br i1 %has, label %take, label %ask
take:
  %kept.next = add i64 %kept, 1
  set ctx.claimed, %kept.next
  br label %some
ask:                                              ; several at once, where all could be resident and many are left
  %next.p = get ctx.next
  %total = get ctx.total
  %workers = get ctx.workers
  %alone = icmp ule i32 %workers, 1
  %occupied = get ctx.occupied
  %busy = icmp ne i32 %occupied, 0
  %cluster = get ctx.cluster_size
  %large = icmp ne i32 %cluster, 1
  %one = or i1 %busy, %large
  br i1 %alone, label %alone.next, label %beside
alone.next:                                       ; nobody counts beside it: a locked addition would wait for all stores
  %first.alone = load atomic i64, ptr %next.p monotonic, align 8
  %next.alone = add i64 %first.alone, 1
  store atomic i64 %next.alone, ptr %next.p monotonic, align 8
  br label %claimed
beside:
  %grid.parts = get ctx.parts
  %together = icmp ule i32 %grid.parts, 1
  br i1 %together, label %shared, label %apart
shared:
  br i1 %one, label %claim, label %several
several:
  %gone = load atomic i64, ptr %next.p monotonic, align 8
  %left.now = call i64 @llvm.usub.sat.i64(i64 %total, i64 %gone)
  %halves = mul i32 %workers, 3                   ; large: neighbours' data are near, mostly since the last launch
  %parts = lshr i32 %halves, 1
  %parts64 = zext i32 %parts to i64
  %share = udiv i64 %left.now, %parts64
  %room = get ctx.slot_count
  %room64 = zext i32 %room to i64
  %fits = call i64 @llvm.umin.i64(i64 %share, i64 %room64)
  %count.some = call i64 @llvm.umax.i64(i64 %fits, i64 1)
  br label %claim
claim:
  %count.shared = phi i64 [1, %shared], [%count.some, %several]
  %first.shared = atomicrmw add ptr %next.p, i64 %count.shared monotonic
  br label %claimed
claimed:
  %count = phi i64 [1, %alone.next], [%count.shared, %claim]
  %first = phi i64 [%first.alone, %alone.next], [%first.shared, %claim]
  %left = icmp ult i64 %first, %total
  br i1 %left, label %keep, label %none
apart:                                            ; each from its own part on; what is not over at once, in order
  %part.own = get ctx.part
  %part.first = select i1 %busy, i32 0, i32 %part.own
  br label %each.part
each.part:
  %nth = phi i32 [0, %apart], [%nth.next, %part.next]
  %part.sum = add i32 %part.first, %nth
  %part.turn = sub i32 %part.sum, %grid.parts
  %part.wraps = icmp uge i32 %part.sum, %grid.parts
  %part.number = select i1 %part.wraps, i32 %part.turn, i32 %part.sum
  %part.place = mul i32 %part.number, PART_BYTES
  %part = getelementptr i8, ptr %next.p, i32 %part.place
  %part.end = get part.end
  %part.gone = load atomic i64, ptr %part monotonic, align 8
  %part.some = icmp ult i64 %part.gone, %part.end
  br i1 %part.some, label %part.take, label %part.next
part.take:                                        ; little enough for others to help with the rest
  %piece = get part.piece
  %piece.now = select i1 %busy, i64 1, i64 %piece
  %first.part = atomicrmw add ptr %part, i64 %piece.now monotonic
  %part.has = icmp ult i64 %first.part, %part.end
  br i1 %part.has, label %keep, label %part.next
part.next:
  %nth.next = add i32 %nth, 1
  %part.more = icmp ult i32 %nth.next, %grid.parts
  br i1 %part.more, label %each.part, label %none
keep:
  %begin = phi i64 [%first, %claimed], [%first.part, %part.take]
  %number.of = phi i64 [%count, %claimed], [%piece.now, %part.take]
  %most = phi i64 [%total, %claimed], [%part.end, %part.take]
  %after = add i64 %begin, 1
  %end = add i64 %begin, %number.of
  %end.most = call i64 @llvm.umin.i64(i64 %end, i64 %most)
  set ctx.claimed, %after
  set ctx.claims, %end.most
  br label %some
none:
  ret i64 -1
some:
  %turn = phi i64 [%kept, %take], [%begin, %keep]
  %stride = get ctx.stride
  %orderly = icmp eq i64 %stride, 0
  br i1 %orderly, label %as.is, label %shuffle
as.is:
  ret i64 %turn
shuffle:
  %origin = get ctx.start
  %far = mul i64 %turn, %stride
  %sum = add i64 %far, %origin
  %all = get ctx.total
  %other = urem i64 %sum, %all
  ret i64 %other
}

define internal void @start_cluster(ptr %ctx, ptr %leader, i64 %number) #1 {
  %size = get ctx.cluster_size
  %bytes = get ctx.slot_bytes
  br label %each
each:
  %rank = phi i32 [0, %0], [%rank.next, %each]
  %rank64 = zext i32 %rank to i64
  %place = mul i64 %rank64, %bytes
  %cta = getelementptr i8, ptr %leader, i64 %place
  call void @start(ptr %ctx, ptr %cta, ptr %leader, i64 %number, i32 %rank)
  %rank.next = add i32 %rank, 1
  %more = icmp ult i32 %rank.next, %size
  br i1 %more, label %each, label %out
out:
  %was = get ctx.occupied
  %is = add i32 %was, 1
  set ctx.occupied, %is
  ret void
}

define internal void @end_cta(ptr %ctx, ptr %cta) #1 {
  %size = get ctx.cluster_size
  %bytes = get ctx.slot_bytes
  %leader = get cta.leader
  %left = get cta.left of %leader
  %left.new = sub i32 %left, 1
  set cta.left, %left.new of %leader
  set cta.state, 2
  %over = icmp eq i32 %left.new, 0
  br i1 %over, label %each, label %out
each:
  %rank = phi i32 [0, %0], [%rank.next, %each]
  %rank64 = zext i32 %rank to i64
  %place = mul i64 %rank64, %bytes
  %other = getelementptr i8, ptr %leader, i64 %place
  set cta.state, 0 of %other
  %rank.next = add i32 %rank, 1
  %more = icmp ult i32 %rank.next, %size
  br i1 %more, label %each, label %free
free:
  %was = get ctx.occupied
  %is = sub i32 %was, 1
  set ctx.occupied, %is
  br label %out
out:
  ret void
}

define internal i32 @run_ctas(ptr %ctx) #1 {
  %first = get ctx.resume
  set ctx.resume, 0
  %elsewhere = icmp eq i32 %first, RESUME_NEXT
  br i1 %elsewhere, label %switch, label %visit
visit:                                            ; the CTA in slot_current: start a cluster if the slot is free
  %again = phi i32 [%first, %0], [0, %advance], [0, %time]
  %slot = get ctx.slot_current
  %slots = get ctx.slots
  %bytes = get ctx.slot_bytes
  %slot64 = zext i32 %slot to i64
  %place = mul i64 %slot64, %bytes
  %here = getelementptr i8, ptr %slots, i64 %place
  %state = get cta.state of %here
  switch i32 %state, label %cycle [
    i32 0, label %claim
    i32 1, label %go
  ]
claim:
  %id = call i64 @claim(ptr %ctx)
  %left = icmp sge i64 %id, 0
  br i1 %left, label %begin, label %exhausted
begin:
  %size = get ctx.cluster_size
  %rank = urem i32 %slot, %size
  %lead = sub i32 %slot, %rank
  set ctx.slot_current, %lead
  %lead64 = zext i32 %lead to i64
  %lead.place = mul i64 %lead64, %bytes
  %leader = getelementptr i8, ptr %slots, i64 %lead.place
  call void @start_cluster(ptr %ctx, ptr %leader, i64 %id)
  br label %go
go:
  %cta = phi ptr [%here, %visit], [%leader, %begin]
  %whole = get ctx.cta_slice                      ; behind an event it has what it had left, or it would never tire
  %kept = get ctx.cta_left
  %exact = icmp eq i32 %again, RESUME_EXACT
  %same = icmp eq i32 %again, RESUME_SAME
  %goes.on = or i1 %exact, %same
  %share = select i1 %goes.on, i64 %kept, i64 %whole
  set ctx.cta_left, %share
  %how = select i1 %exact, i32 %again, i32 0
  %answer = call i32 @run_cta(ptr %ctx, ptr %cta, i32 %how)
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
  call void @end_cta(ptr %ctx, ptr %cta)
  %known = get cta.external
  %unknown = icmp eq i32 %known, 0
  br i1 %unknown, label %time, label %tell
tell:
  ret i32 RUN_ENDED
time:
  %tired = icmp slt i64 %quantum.new, 0
  br i1 %tired, label %pause, label %visit
switch:                                           ; another CTA's turn: a new one while there is room
  %used.slots = get ctx.slot_used
  %room = get ctx.slot_count
  %can = icmp ult i32 %used.slots, %room
  br i1 %can, label %more, label %cycle
more:
  %group = get ctx.cluster_size
  %used.more = add i32 %used.slots, %group
  set ctx.slot_used, %used.more
  set ctx.slot_current, %used.slots
  br label %clear
clear:
  %new = phi i32 [%used.slots, %more], [%new.next, %clear]
  %new64 = zext i32 %new to i64
  %new.bytes = get ctx.slot_bytes
  %new.place = mul i64 %new64, %new.bytes
  %new.slots = get ctx.slots
  %new.cta = getelementptr i8, ptr %new.slots, i64 %new.place
  call void @llvm.memset.p0.i64(ptr align 64 %new.cta, i8 0, i64 CTA_BYTES, i1 false)
  %new.next = add i32 %new, 1
  %another = icmp ult i32 %new.next, %used.more
  br i1 %another, label %clear, label %rest.time
exhausted:                                        ; no more to start
  %busy = get ctx.occupied
  %finished = icmp eq i32 %busy, 0
  br i1 %finished, label %end, label %cycle
end:
  ret i32 RUN_FINISHED
cycle:
  %last = get ctx.slot_used
  %current = get ctx.slot_current
  %random = get ctx.random
  %orderly = icmp eq i64 %random, 0
  br i1 %orderly, label %onward, label %anywhere
anywhere:
  %draw = call i64 @draw(ptr %ctx)
  %draw.high = lshr i64 %draw, 40
  %draw32 = trunc i64 %draw.high to i32
  %jump = urem i32 %draw32, %last
  br label %chosen
onward:
  %following = add i32 %current, 1
  %wrap = icmp uge i32 %following, %last
  %to = select i1 %wrap, i32 0, i32 %following
  br label %chosen
chosen:
  %target = phi i32 [%jump, %anywhere], [%to, %onward]
  set ctx.slot_current, %target
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
