"""The next CTA of a worker, begun by the function that has run the one before it to its end: its warps and their frames
are as they were, so that little has to be written for each of them.

It does what `residency` and `start` do for a CTA that is a cluster of its own, in the same order, if no one else wants
to know of the end of a CTA, and a cluster is there that nobody has to be asked for. Clock and what is left of a CTA's
slice are in %v.clock and %v.left, what they do not know of in %v.spent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.native.code.emitter import Emitter
from ptxtools.native.code.sections import reached

if TYPE_CHECKING:
    from .unison import Whole

#: Ends of blocks that leave nothing in warps and CTA but what `_ANEW` writes.
_TRACELESS = frozenset({"jump", "branch", "barrier", "warpsync", "met", "exit"})

#: Once: whether a CTA may be followed by others.
_ENTRY = """
  %nx.slice = get ctx.cta_slice
  %nx.left.first = load i64, ptr %v.left
  %nx.fresh = icmp eq i64 %nx.left.first, %nx.slice
  %nx.cluster = get ctx.cluster_size
  %nx.stride = get ctx.stride
  %nx.flags = get ctx.local_flags
  %nx.external = get cta.external
  %nx.single = icmp eq i32 %nx.cluster, 1
  %nx.strange.1 = or i64 %nx.stride, %nx.flags
  %nx.external64 = zext i32 %nx.external to i64
  %nx.strange = or i64 %nx.strange.1, %nx.external64
  %nx.plain = icmp eq i64 %nx.strange, 0
  %nx.ok.1 = and i1 %nx.fresh, %nx.single
  %nx.ok = and i1 %nx.ok.1, %nx.plain
  %nx.alarm = get ctx.alarm
  %nx.workers = get ctx.workers
  %nx.alone = icmp ule i32 %nx.workers, 1
  %nx.total = get ctx.total
  %nx.next.p = get ctx.next
  %nx.parts = get ctx.parts
  %nx.part = get ctx.part
  %nx.apart = icmp ugt i32 %nx.parts, 1
  %nx.part.place = mul i32 %nx.part, PART_BYTES
  %nx.own.row = getelementptr i8, ptr %nx.next.p, i32 %nx.part.place
  %nx.width = get ctx.clusters_x
  %nx.sms = get ctx.sms
  %nx.shared = get cta.shared
  %nx.clear = get ctx.clear_bytes
  %nx.clears = icmp ne i64 %nx.clear, 0
"""

_NEXT = """
nx.next:                                             ; time goes on as it would
  %nx.clock.was = load i64, ptr %v.clock
  %nx.left.was = load i64, ptr %v.left
  %nx.spent = load i64, ptr %v.spent
  %nx.clock = add i64 %nx.clock.was, %nx.spent
  %nx.left = sub i64 %nx.left.was, %nx.spent
  %nx.used = sub i64 %nx.slice, %nx.left
  %nx.quantum.was = get ctx.quantum
  %nx.quantum = sub i64 %nx.quantum.was, %nx.used
  %nx.going = icmp sge i64 %nx.quantum, 0
  %nx.early = icmp slt i64 %nx.clock, %nx.alarm
  %nx.time = and i1 %nx.going, %nx.early
  %nx.go = and i1 %nx.time, {ok}
  br i1 %nx.go, label %nx.claim, label %{none}, !prof !0
nx.claim:
  %nx.kept = get ctx.claimed
  %nx.kept.end = get ctx.claims
  %nx.has = icmp slt i64 %nx.kept, %nx.kept.end
  br i1 %nx.has, label %nx.take, label %nx.ask
nx.take:
  %nx.kept.next = add i64 %nx.kept, 1
  set ctx.claimed, %nx.kept.next
  br label %nx.begin
nx.ask:
  br i1 %nx.alone, label %nx.count, label %nx.others
nx.others:                                           ; of this worker's part of the grid (`residency`)
  %nx.occupied = get ctx.occupied
  %nx.only = icmp eq i32 %nx.occupied, 1
  %nx.own = and i1 %nx.apart, %nx.only
  br i1 %nx.own, label %nx.look, label %{none}
nx.look:
  %nx.end = get part.end of %nx.own.row
  %nx.gone = load atomic i64, ptr %nx.own.row monotonic, align 8
  %nx.rests = icmp ult i64 %nx.gone, %nx.end
  br i1 %nx.rests, label %nx.piece, label %{none}
nx.piece:
  %nx.several = get part.piece of %nx.own.row
  %nx.mine = atomicrmw add ptr %nx.own.row, i64 %nx.several monotonic
  %nx.has.mine = icmp ult i64 %nx.mine, %nx.end
  br i1 %nx.has.mine, label %nx.keep, label %{none}
nx.keep:
  %nx.mine.next = add i64 %nx.mine, 1
  %nx.mine.far = add i64 %nx.mine, %nx.several
  %nx.mine.end = call i64 @llvm.umin.i64(i64 %nx.mine.far, i64 %nx.end)
  set ctx.claimed, %nx.mine.next
  set ctx.claims, %nx.mine.end
  br label %nx.begin
nx.count:
  %nx.first = load atomic i64, ptr %nx.next.p monotonic, align 8
  %nx.some = icmp ult i64 %nx.first, %nx.total
  br i1 %nx.some, label %nx.counted, label %{none}, !prof !0
nx.counted:
  %nx.following = add i64 %nx.first, 1
  store atomic i64 %nx.following, ptr %nx.next.p monotonic, align 8
  br label %nx.begin
nx.begin:
  %nx.id = phi i64 [%nx.kept, %nx.take], [%nx.first, %nx.counted], [%nx.mine, %nx.keep]
  store i64 %nx.clock, ptr %v.clock
  store i64 %nx.slice, ptr %v.left
  store i64 0, ptr %v.spent
  set ctx.quantum, %nx.quantum
  %nx.id.was = get cta.id
  %nx.id.next = add i64 %nx.id.was, 1
  %nx.follows = icmp eq i64 %nx.id, %nx.id.next
  %nx.x.was = get cta.x
  %nx.x.next = add i32 %nx.x.was, 1
  %nx.inside = icmp ult i32 %nx.x.next, %nx.width
  %nx.beside = and i1 %nx.follows, %nx.inside
  set cta.id, %nx.id
  br i1 %nx.beside, label %nx.near, label %nx.far, !prof !0
nx.near:
  %nx.home.was = get cta.smid
  %nx.home.more = add i32 %nx.home.was, 1
  %nx.home.wraps = icmp eq i32 %nx.home.more, %nx.sms
  %nx.home = select i1 %nx.home.wraps, i32 0, i32 %nx.home.more
  set cta.smid, %nx.home
  set cta.x, %nx.x.next
  br label %nx.memory
nx.far:
  %nx.height = get ctx.clusters_y
  %nx.width64 = zext i32 %nx.width to i64
  %nx.height64 = zext i32 %nx.height to i64
  %nx.sms64 = zext i32 %nx.sms to i64
  %nx.x64 = urem i64 %nx.id, %nx.width64
  %nx.row = udiv i64 %nx.id, %nx.width64
  %nx.y64 = urem i64 %nx.row, %nx.height64
  %nx.z64 = udiv i64 %nx.row, %nx.height64
  %nx.home64 = urem i64 %nx.id, %nx.sms64
  %nx.x = trunc i64 %nx.x64 to i32
  %nx.y = trunc i64 %nx.y64 to i32
  %nx.z = trunc i64 %nx.z64 to i32
  %nx.home.far = trunc i64 %nx.home64 to i32
  set cta.smid, %nx.home.far
  set cta.x, %nx.x
  set cta.y, %nx.y
  set cta.z, %nx.z
  br label %nx.memory
nx.memory:
  br i1 %nx.clears, label %nx.clean, label %{again}
nx.clean:
  call void @llvm.memset.p0.i64(ptr align 64 %nx.shared, i8 0, i64 %nx.clear, i1 false)
  br label %{again}
"""

#: Once, in the function of all blocks: all threads are there, and at the start.
_WHOLE = """
  %nx.threads = get ctx.threads
  %nx.lanes = shl i32 %number.of, 5
  %nx.even = icmp eq i32 %nx.threads, %nx.lanes
  %nx.out = sub i32 32, %number.of
  %nx.all = lshr i32 -1, %nx.out
  %nx.everybody = icmp eq i32 %b.living, %nx.all
  %nx.start = and i1 %l.wide, %l.fresh
  %nx.may.1 = and i1 %nx.start, %nx.everybody
  %nx.may.2 = and i1 %nx.may.1, %nx.even
  %nx.may = and i1 %nx.may.2, %nx.ok
"""

#: In a function that warps leave one by one: as they were at the start.
_ANEW = """
anew:
  store i32 0, ptr %v.clean
  store i32 0, ptr %v.lazy
  store i32 0, ptr %v.partly
  set cta.alive, %nx.threads
  br label %anew.each
anew.each:
  %nx.number = phi i32 [0, %anew], [%nx.number.next, %anew.each]
  %nx.warp = phi ptr [%warps, %anew], [%nx.warp.next, %anew.each]
  set warp.ready, -1 of %nx.warp
  set warp.alive, -1 of %nx.warp
  set warp.group, -1 of %nx.warp
  %nx.place = getelementptr i32, ptr %v.at, i32 %nx.number
  store i32 0, ptr %nx.place
  %nx.number.next = add i32 %nx.number, 1
  %nx.warp.next = getelementptr i8, ptr %nx.warp, i64 %bytes
  %nx.more = icmp ult i32 %nx.number.next, %number.of
  br i1 %nx.more, label %anew.each, label %anew.turn
anew.turn:
  store i32 %nx.all, ptr %v.living
  store i32 %nx.all, ptr %v.ready
  store i32 0, ptr %v.waiting
  store i32 1, ptr %v.wide
  store i32 1, ptr %v.fresh
"""


def prepare(e: Emitter) -> None:
    """Emit what is known before, at the start of the function."""
    e.declare("llvm.memset.p0.i64", "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
    e.declare("llvm.umin.i64", "declare i64 @llvm.umin.i64(i64, i64)")
    e.expand(_ENTRY)


def follow(e: Emitter, again: str, none: str, ok: str = "%nx.ok") -> None:
    """Emit "nx.next", which goes on at a label with another CTA, or at one where there is none; ok: an i1, whether that
    may be."""
    e.expand(_NEXT.format(again=again, none=none, ok=ok))


def possible(main: Whole) -> bool:
    """Whether CTAs of a kernel in unison may follow each other in the function of all its blocks."""
    stages = reached(main.stages)
    return not main.bounded and all(
        stage.kind in _TRACELESS and (stage.kind != "exit" or stage.guard < 0) for stage in stages
    )


def prepare_blocks(e: Emitter) -> None:
    """As `prepare`, in the function of all blocks, which has looked at all warps."""
    prepare(e)
    e.expand(_WHOLE)


def follow_blocks(e: Emitter, *, stepped: bool) -> None:
    """As `follow`, in the function of all blocks; "over" is where there is no other CTA. stepped: CTAs may run as a
    whole."""
    follow(e, "anew", "over", "%nx.may")
    e.expand(_ANEW)
    if stepped:
        e.line("store i32 1, ptr %v.untried")
    e.jump("turn")
