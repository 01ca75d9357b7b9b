"""The barrier of a cluster (9.7.13.3), counted in threads by the cluster's first CTA.

A thread that arrives belongs to the current phase, which is complete when all living threads of the cluster have come.
A thread that waits, waits for the phase in which it arrived.
"""

from __future__ import annotations

from .control import ACCOUNT, WAIT_AT, land

_RELEASE = """
define internal void @release_cluster(ptr %ctx, ptr %leader) #1 {
  %size = get ctx.cluster_size
  %slot.bytes = get ctx.slot_bytes
  %offset = get ctx.warps_offset
  %warp.bytes = get ctx.warp_bytes
  %count = get ctx.warps
  set cta.cl_came, 0 of %leader
  br label %each
each:
  %rank = phi i32 [0, %0], [%rank.next, %next]
  %rank64 = zext i32 %rank to i64
  %place = mul i64 %rank64, %slot.bytes
  %cta = getelementptr i8, ptr %leader, i64 %place
  %warps = getelementptr i8, ptr %cta, i64 %offset
  br label %wake
wake:
  %i = phi i32 [0, %each], [%i.next, %wake]
  %woken = phi i32 [0, %each], [%woken.next, %wake]
  %i64 = zext i32 %i to i64
  %at = mul i64 %i64, %warp.bytes
  %warp = getelementptr i8, ptr %warps, i64 %at
  set warp.cl_pending, 0
  %lanes = get warp.cl_waiting
  set warp.cl_waiting, 0
  %can = get warp.ready
  %can.new = or i32 %can, %lanes
  set warp.ready, %can.new
  %some = icmp ne i32 %lanes, 0
  %some32 = zext i1 %some to i32
  %bit = shl i32 %some32, %i
  %woken.next = or i32 %woken, %bit
  %i.next = add i32 %i, 1
  %more = icmp ult i32 %i.next, %count
  br i1 %more, label %wake, label %next
next:
  %ready = get cta.ready
  %ready.new = or i32 %ready, %woken.next
  set cta.ready, %ready.new
  %rank.next = add i32 %rank, 1
  %others = icmp ult i32 %rank.next, %size
  br i1 %others, label %each, label %out
out:
  ret void
}

define internal void @leave_cluster(ptr %ctx, ptr %warp, i32 %mask) #1 {
  %cta = get warp.cta
  %leader = get cta.leader
  %alive = get cta.cl_alive of %leader
  %gone = call i32 @llvm.ctpop.i32(i32 %mask)
  %alive.less = sub i32 %alive, %gone
  set cta.cl_alive, %alive.less of %leader
  %size = get ctx.cluster_size
  %single = icmp eq i32 %size, 1
  %threads = get cta.alive
  %alive.new = select i1 %single, i32 %threads, i32 %alive.less
  %pending = get warp.cl_pending
  %mine = and i32 %pending, %mask
  %rest = xor i32 %pending, %mine
  set warp.cl_pending, %rest
  %here = call i32 @llvm.ctpop.i32(i32 %mine)
  %came = get cta.cl_came of %leader
  %came.new = sub i32 %came, %here
  set cta.cl_came, %came.new of %leader
  %some = icmp ne i32 %came.new, 0
  %all = icmp uge i32 %came.new, %alive.new
  %complete = and i1 %some, %all
  br i1 %complete, label %open, label %out
open:
  call void @release_cluster(ptr %ctx, ptr %leader)
  br label %out
out:
  ret void
}
"""

_ARRIVE = f"""
handler @t_cluster_arrive {{                       ; s0 s1: block after it, and its distance
  {ACCOUNT}
  %block = get rec.s0
  %step = get rec.s1
  %cta = get warp.cta
  %leader = get cta.leader
  %pending = get warp.cl_pending
  %pending.new = or i32 %pending, %mask
  set warp.cl_pending, %pending.new
  %fresh = xor i32 %pending, %pending.new
  %gain = call i32 @llvm.ctpop.i32(i32 %fresh)
  %came = get cta.cl_came of %leader
  %came.new = add i32 %came, %gain
  set cta.cl_came, %came.new of %leader
  %alive = get cta.cl_alive of %leader
  %size = get ctx.cluster_size
  %single = icmp eq i32 %size, 1
  %own = get cta.alive
  %expected = select i1 %single, i32 %own, i32 %alive
  %complete = icmp uge i32 %came.new, %expected
  br i1 %complete, label %open, label %land
open:
  call void @release_cluster(ptr %ctx, ptr %leader)
  br label %land
{land("%block", "%step", "%mask", "land")}
}}
"""

_WAIT = f"""
handler @t_cluster_wait {{                         ; s0 s1: block after it, and its distance
  {ACCOUNT}
  %block = get rec.s0
  %step = get rec.s1
  %pending = get warp.cl_pending
  %stay = and i32 %pending, %mask
  %go = xor i32 %stay, %mask
  %nobody = icmp eq i32 %stay, 0
  br i1 %nobody, label %land, label %wait
wait:
  set warp.wait_ip, %ip
  %block.all = splat32 %block
  %who = lanes %stay
  %pc = get warp.pc
  %pc.new = blend32 %who, %block.all, %pc
  set warp.pc, %pc.new
  {WAIT_AT.format(lanes="%who")}
  %waiting = get warp.cl_waiting
  %waiting.new = or i32 %waiting, %stay
  set warp.cl_waiting, %waiting.new
  %ready = get warp.ready
  %ready.new = xor i32 %ready, %stay
  set warp.ready, %ready.new
  set warp.group, 0
  %empty = icmp eq i32 %go, 0
  br i1 %empty, label %others, label %some
others:
  tail @yield %fp, %ip, %mask
{land("%block", "%step", "%mask", "land")}
{land("%block", "%step", "%go", "some")}
}}
"""


def text() -> str:
    """The cluster barrier, in notation."""
    return "\n".join((_RELEASE, _ARRIVE, _WAIT))
