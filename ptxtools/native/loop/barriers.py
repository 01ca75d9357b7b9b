"""Barriers of a CTA (9.7.13.1), counted in threads.

Without a thread count a barrier opens when every living thread of the CTA has arrived. With one, a warp counts as a
whole: once all its living lanes have arrived, lanes that have exited or never existed are counted too. That happens
when its last living lane arrives, or when the lanes that have not arrived exit (`LEFT`).
"""

from __future__ import annotations

from .control import ACCOUNT, WAIT_AT, land

#: What each reduction gathers from the lanes whose predicate is %votes: popc and or count them, and counts the others.
_GATHER = {"popc": "%votes", "or": "%votes", "and": "%against"}

RELEASE = """
define internal void @release(ptr %ctx, ptr %cta, i32 %id) #1 {
  %arrived.p = item cta.arrived, %id
  store i32 0, ptr %arrived.p
  %expected.p = item cta.expected, %id
  store i32 0, ptr %expected.p
  %counted.p = item cta.counted, %id
  store i32 0, ptr %counted.p
  %value.p = item cta.value, %id
  %value = load i32, ptr %value.p
  store i32 0, ptr %value.p
  %bit = shl i32 1, %id
  %others = xor i32 %bit, -1
  %pending = get cta.pending
  %pending.new = and i32 %pending, %others
  set cta.pending, %pending.new
  %waiting.p = item cta.waiting, %id
  %waiting = load i32, ptr %waiting.p
  store i32 0, ptr %waiting.p
  %ready = get cta.ready
  %ready.new = or i32 %ready, %waiting
  set cta.ready, %ready.new
  %offset = get ctx.warps_offset
  %warps = getelementptr i8, ptr %cta, i64 %offset
  %bytes = get ctx.warp_bytes
  %nobody = icmp eq i32 %waiting, 0
  br i1 %nobody, label %out, label %wake
wake:
  %todo = phi i32 [%waiting, %0], [%todo.next, %wake]
  %number = call i32 @llvm.cttz.i32(i32 %todo, i1 true)
  %number64 = zext i32 %number to i64
  %place = mul i64 %number64, %bytes
  %warp = getelementptr i8, ptr %warps, i64 %place
  %lanes.p = item warp.waiting, %id
  %lanes = load i32, ptr %lanes.p
  store i32 0, ptr %lanes.p
  %result.p = item warp.result, %id
  store i32 %value, ptr %result.p
  %can = get warp.ready
  %can.new = or i32 %can, %lanes
  set warp.ready, %can.new
  %less = sub i32 %todo, 1
  %todo.next = and i32 %todo, %less
  %more = icmp ne i32 %todo.next, 0
  br i1 %more, label %wake, label %out
out:
  ret void
}
"""

#: Lanes have left %warp, of which %alive are left: whether the barrier, which has a thread count, is complete now.
LEFT = """
define internal i1 @left(ptr %cta, ptr %warp, i32 %alive, i32 %id, i32 %expected) #1 {
  %warps.p = item cta.counted, %id
  %warps = load i32, ptr %warps.p
  %number = get warp.id
  %others = lshr i32 %warps, %number
  %known = and i32 %others, 1
  %came = icmp ne i32 %known, 0
  br i1 %came, label %look, label %no
look:
  %counted.p = item warp.counted, %id
  %counted = load i32, ptr %counted.p
  %absent = xor i32 %counted, -1
  %late = and i32 %absent, %alive
  %all = icmp eq i32 %late, 0
  br i1 %all, label %fill, label %no
fill:
  store i32 -1, ptr %counted.p
  %padding = call i32 @llvm.ctpop.i32(i32 %absent)
  %arrived.p = item cta.arrived, %id
  %arrived = load i32, ptr %arrived.p
  %total = add i32 %arrived, %padding
  store i32 %total, ptr %arrived.p
  %complete = icmp uge i32 %total, %expected
  ret i1 %complete
no:
  ret i1 false
}
"""

_REDUCE = """
  %predicate = get rec.s2
  %predicate.offset = and i32 %predicate, -2
  %predicate.p = getelementptr i8, ptr %fp, i32 %predicate.offset
  %predicate.bits = load i32, ptr %predicate.p
  %predicate.neg = and i32 %predicate, 1
  %predicate.flip = sub i32 0, %predicate.neg
  %predicate.value = xor i32 %predicate.bits, %predicate.flip
  %votes = and i32 %predicate.value, %mask
  %against = xor i32 %votes, %mask
  %gain = call i32 @llvm.ctpop.i32(i32 {gather})
  %value.p = item cta.value, %id
  %value = load i32, ptr %value.p
  %value.new = add i32 %value, %gain
  store i32 %value.new, ptr %value.p
  %result.p = item warp.result, %id
  store i32 %value.new, ptr %result.p
"""

_COUNT = """
  %count.slot = get rec.s1
  %count.base = getelementptr i8, ptr %fp, i32 %count.slot
  %count.p = getelementptr i32, ptr %count.base, i32 %lane
  %written = load i32, ptr %count.p
  %partial = and i32 %written, 31
  %whole = icmp eq i32 %partial, 0
  {need}
  %sane = and i1 %whole, %some
  br i1 %sane, label %sized, label %bad
sized:
  %everybody = get cta.alive
  %none = icmp eq i32 %written, 0
  %needed = select i1 %none, i32 %everybody, i32 %written
  %counted.p = item warp.counted, %id
  %counted.last = load i32, ptr %counted.p
  %warps.counted.p = item cta.counted, %id
  %warps.counted = load i32, ptr %warps.counted.p
  %number = get warp.id
  %number.bit = shl i32 1, %number
  %warps.counted.own = and i32 %warps.counted, %number.bit
  %first = icmp eq i32 %warps.counted.own, 0
  %counted.old = select i1 %first, i32 0, i32 %counted.last
  %counted = or i32 %counted.old, %mask
  %absent = xor i32 %counted, -1
  %late = and i32 %absent, %alive
  %all.here = icmp eq i32 %late, 0
  %padding = call i32 @llvm.ctpop.i32(i32 %absent)
  %extra = select i1 %all.here, i32 %padding, i32 0
  %counted.new = select i1 %all.here, i32 -1, i32 %counted
  store i32 %counted.new, ptr %counted.p
  %warps.counted.new = or i32 %warps.counted, %number.bit
  store i32 %warps.counted.new, ptr %warps.counted.p
  %expected.p = item cta.expected, %id
  store i32 %written, ptr %expected.p
"""

#: A thread count of 0 means all threads, but `arrive` needs one.
_NEED = {True: "%some = or i1 true, true", False: "%some = icmp ne i32 %written, 0"}

_EVERYBODY = """
  %needed = get cta.alive
  %extra = add i32 0, 0
"""

_WAIT = f"""
  store i32 %here, ptr %waiting.p
  set warp.wait_ip, %ip
  %warp.id = get warp.id
  %warp.bit = shl i32 1, %warp.id
  %warps.p = item cta.waiting, %id
  %warps = load i32, ptr %warps.p
  %warps.new = or i32 %warps, %warp.bit
  store i32 %warps.new, ptr %warps.p
  %ready = get warp.ready
  %ready.rest = xor i32 %ready, %mask
  set warp.ready, %ready.rest
  %last = icmp eq i32 %ready.rest, 0
  br i1 %last, label %sleep, label %others
sleep:                                            ; nobody else to run: remember the group as it is
  %go.ip = getelementptr i8, ptr %ip, i32 %step
  %depth = depth %fp
  set warp.group, %mask
  set warp.group_ip, %go.ip
  set warp.group_block, %block
  set warp.group_frame, %depth
  leave STATUS_IDLE
others:
  %block.all = splat32 %block
  %pc = get warp.pc
  %who = lanes %mask
  %pc.new = blend32 %who, %block.all, %pc
  set warp.pc, %pc.new
  {WAIT_AT.format(lanes="%who")}
  tail @dispatch %fp, %ip, %mask
"""


def handler(name: str, *, counted: bool, waits: bool, reduction: str | None) -> str:
    """In notation. s0: slot of the id; s1: of the count; s2: predicate; s3 s4: block after it, and its distance."""
    gather = _REDUCE.format(gather=_GATHER[reduction]) if reduction else ""
    return f"""
handler @{name} {{
  {ACCOUNT}
  %block = get rec.s3
  %step = get rec.s4
  %cta = get warp.cta
  %lane = call i32 @llvm.cttz.i32(i32 %mask, i1 true)
  %id.slot = get rec.s0
  %id.base = getelementptr i8, ptr %fp, i32 %id.slot
  %id.p = getelementptr i32, ptr %id.base, i32 %lane
  %id = load i32, ptr %id.p
  %known = icmp ult i32 %id, 16
  br i1 %known, label %arrive, label %bad
bad:
  set ctx.stop_code, TRAP_BARRIER
  tail @trap %fp, %ip, %mask
arrive:
  %alive = get warp.alive
  %waiting.p = item warp.waiting, %id
  %waiting = load i32, ptr %waiting.p
  %here = or i32 %waiting, %mask
  %mine = call i32 @llvm.ctpop.i32(i32 %mask)
  {_COUNT.format(need=_NEED[waits]) if counted else _EVERYBODY}
  {gather}
  %arrived.p = item cta.arrived, %id
  %arrived = load i32, ptr %arrived.p
  %sum = add i32 %arrived, %mine
  %total = add i32 %sum, %extra
  %complete = icmp uge i32 %total, %needed
  br i1 %complete, label %open, label %wait
open:
  call void @release(ptr %ctx, ptr %cta, i32 %id)
  br label %land
{land("%block", "%step", "%mask", "land")}
wait:
  store i32 %total, ptr %arrived.p
  %bit = shl i32 1, %id
  %pending = get cta.pending
  %pending.new = or i32 %pending, %bit
  set cta.pending, %pending.new
  {_WAIT if waits else "br label %land"}
}}
"""


def text() -> str:
    """The functions that open a barrier, and that count lanes which have left, in notation."""
    return RELEASE + LEFT
