"""The next CTA of a worker, begun by the function that has run the one before it as a whole (`lockstep`): its warps and
their frames are as they were then, so that nothing has to be written for each of them.

It does what `residency` and `start` do for a CTA that is a cluster of its own, in the same order, if no one else wants
to know of the end of a CTA, and a cluster is there that nobody has to be asked for.
"""

from __future__ import annotations

from ptxtools.native.code.emitter import Emitter

#: At the start of the function: whether a CTA may be followed by others.
_ENTRY = """
  %n.slice = get ctx.cta_slice
  %n.left.first = load i64, ptr %v.left
  %n.fresh = icmp eq i64 %n.left.first, %n.slice
  %n.cluster = get ctx.cluster_size
  %n.stride = get ctx.stride
  %n.flags = get ctx.local_flags
  %n.external = get cta.external
  %n.single = icmp eq i32 %n.cluster, 1
  %n.strange.1 = or i64 %n.stride, %n.flags
  %n.external64 = zext i32 %n.external to i64
  %n.strange = or i64 %n.strange.1, %n.external64
  %n.plain = icmp eq i64 %n.strange, 0
  %n.ok.1 = and i1 %n.fresh, %n.single
  %n.ok = and i1 %n.ok.1, %n.plain
  %n.alarm = get ctx.alarm
  %n.workers = get ctx.workers
  %n.alone = icmp ule i32 %n.workers, 1
  %n.total = get ctx.total
  %n.next.p = get ctx.next
  %n.width = get ctx.clusters_x
  %n.sms = get ctx.sms
  %n.shared = get cta.shared
  %n.clear = get ctx.clear_bytes
  %n.clears = icmp ne i64 %n.clear, 0
"""

_NEXT = """
next:                                             ; time goes on as it would
  %n.clock.was = load i64, ptr %v.clock
  %n.left.was = load i64, ptr %v.left
  %n.spent = load i64, ptr %v.spent
  %n.clock = add i64 %n.clock.was, %n.spent
  %n.left = sub i64 %n.left.was, %n.spent
  %n.used = sub i64 %n.slice, %n.left
  %n.quantum.was = get ctx.quantum
  %n.quantum = sub i64 %n.quantum.was, %n.used
  %n.going = icmp sge i64 %n.quantum, 0
  %n.early = icmp slt i64 %n.clock, %n.alarm
  %n.time = and i1 %n.going, %n.early
  %n.go = and i1 %n.time, %n.ok
  br i1 %n.go, label %n.claim, label %over, !prof !0
n.claim:
  %n.kept = get ctx.claimed
  %n.kept.end = get ctx.claims
  %n.has = icmp slt i64 %n.kept, %n.kept.end
  br i1 %n.has, label %n.take, label %n.ask
n.take:
  %n.kept.next = add i64 %n.kept, 1
  set ctx.claimed, %n.kept.next
  br label %n.begin
n.ask:
  br i1 %n.alone, label %n.count, label %over
n.count:
  %n.first = load atomic i64, ptr %n.next.p monotonic, align 8
  %n.some = icmp ult i64 %n.first, %n.total
  br i1 %n.some, label %n.counted, label %over, !prof !0
n.counted:
  %n.following = add i64 %n.first, 1
  store atomic i64 %n.following, ptr %n.next.p monotonic, align 8
  br label %n.begin
n.begin:
  %n.id = phi i64 [%n.kept, %n.take], [%n.first, %n.counted]
  store i64 %n.clock, ptr %v.clock
  store i64 %n.slice, ptr %v.left
  store i64 0, ptr %v.spent
  set ctx.quantum, %n.quantum
  %n.id.was = get cta.id
  %n.id.next = add i64 %n.id.was, 1
  %n.follows = icmp eq i64 %n.id, %n.id.next
  %n.x.next = add i32 %at.x, 1
  %n.inside = icmp ult i32 %n.x.next, %n.width
  %n.beside = and i1 %n.follows, %n.inside
  set cta.id, %n.id
  br i1 %n.beside, label %n.near, label %n.far, !prof !0
n.near:
  %n.home.was = get cta.smid
  %n.home.more = add i32 %n.home.was, 1
  %n.home.wraps = icmp eq i32 %n.home.more, %n.sms
  %n.home = select i1 %n.home.wraps, i32 0, i32 %n.home.more
  set cta.smid, %n.home
  set cta.x, %n.x.next
  br label %n.memory
n.far:
  %n.height = get ctx.clusters_y
  %n.width64 = zext i32 %n.width to i64
  %n.height64 = zext i32 %n.height to i64
  %n.sms64 = zext i32 %n.sms to i64
  %n.x64 = urem i64 %n.id, %n.width64
  %n.row = udiv i64 %n.id, %n.width64
  %n.y64 = urem i64 %n.row, %n.height64
  %n.z64 = udiv i64 %n.row, %n.height64
  %n.home64 = urem i64 %n.id, %n.sms64
  %n.x = trunc i64 %n.x64 to i32
  %n.y = trunc i64 %n.y64 to i32
  %n.z = trunc i64 %n.z64 to i32
  %n.home.far = trunc i64 %n.home64 to i32
  set cta.smid, %n.home.far
  set cta.x, %n.x
  set cta.y, %n.y
  set cta.z, %n.z
  br label %n.memory
n.memory:
  br i1 %n.clears, label %n.clean, label %fresh
n.clean:
  call void @llvm.memset.p0.i64(ptr align 64 %n.shared, i8 0, i64 %n.clear, i1 false)
  br label %fresh
"""


def prepare(e: Emitter) -> None:
    """Emit what is known before, into the start of the function."""
    e.declare("llvm.memset.p0.i64", "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
    e.expand(_ENTRY)


def follow(e: Emitter) -> None:
    """Emit "next", which goes on at "fresh" with another CTA, or at "over"."""
    e.expand(_NEXT)
