"""Regions over several blocks that look at their accesses themselves (`native.code.chains`).

The record of one has in `extra` what the blocks count as whose ends it passes, in s2 what those cost of a slice, and in
s3 the last of them. Each group of accesses is to lie in one stretch that observers have nothing to say about: of those
that `ctx.bounded` has, the one its first lane is in. Anything else is a miss; where the slice would end in between, or
lanes wait at one of the blocks, the region is passed by.
"""

from __future__ import annotations

from ptxtools.native.code.handler import Handler
from ptxtools.native.code.structures import BOUND, SPACE_GLOBAL, SPACE_SHARED

from .parts import Window

_SPACES = {"global": SPACE_GLOBAL, "shared": SPACE_SHARED}

#: In front of the region, behind `region_misses.BEGIN`.
CHAIN = """
  %chain.cost = get rec.s2
  %chain.last = get rec.s3
  %chain.weight = get rec.extra
  %chain.slice = get ctx.slice
  %chain.left = sub i32 %chain.slice, %chain.cost
  %chain.time = icmp sge i32 %chain.left, 0
  %chain.pend = get warp.pend
  %chain.near = icmp ult i32 %chain.last, %chain.pend
  %chain.filter = get ctx.bounded
  %chain.known = icmp ne ptr %chain.filter, null
  %chain.soon = and i1 %chain.time, %chain.near
  %chain.ok = and i1 %chain.soon, %chain.known
  br i1 %chain.ok, label %chain, label %next, !prof !0
chain:
"""
#: Behind a region that does not go round: charge the ends that it has passed.
CHARGE = """
  %chain.running = call i32 @llvm.ctpop.i32(i32 %m)
  %chain.threads = mul i32 %chain.running, %chain.weight
  %chain.threads64 = zext i32 %chain.threads to i64
  %chain.count = get ctx.count
  %chain.count.new = add i64 %chain.count, %chain.threads64
  set ctx.slice, %chain.left
  set ctx.count, %chain.count.new
"""
_FIND = """
  %{n}.bounds = addr filter.bounds of %chain.filter
  %{n}.bound = getelementptr i8, ptr %{n}.bounds, i64 {at}
  %{n}.list = get bound.rows of %{n}.bound
  %{n}.rows = get bound.count of %{n}.bound
  br label %{n}.begin
{n}.begin:
  br label %{n}.halve
{n}.halve:
  %{n}.lo = phi i64 [ 0, %{n}.begin ], [ %{n}.lo.next, %{n}.step ]
  %{n}.hi = phi i64 [ %{n}.rows, %{n}.begin ], [ %{n}.hi.next, %{n}.step ]
  %{n}.room = sub i64 %{n}.hi, %{n}.lo
  %{n}.narrowed = icmp ule i64 %{n}.room, 1
  br i1 %{n}.narrowed, label %{n}.test, label %{n}.step
{n}.step:
  %{n}.half = lshr i64 %{n}.room, 1
  %{n}.middle = add i64 %{n}.lo, %{n}.half
  %{n}.middle.at = mul i64 %{n}.middle, ROW_BYTES
  %{n}.middle.p = getelementptr i8, ptr %{n}.list, i64 %{n}.middle.at
  %{n}.middle.first = get row.first of %{n}.middle.p
  %{n}.upper = icmp ule i64 %{n}.middle.first, {address}
  %{n}.lo.next = select i1 %{n}.upper, i64 %{n}.middle, i64 %{n}.lo
  %{n}.hi.next = select i1 %{n}.upper, i64 %{n}.hi, i64 %{n}.middle
  br label %{n}.halve
{n}.test:
  %{n}.none = icmp eq i64 %{n}.rows, 0
  br i1 %{n}.none, label %{n}.on, label %{n}.row
{n}.row:
  %{n}.row.at = mul i64 %{n}.lo, ROW_BYTES
  %{n}.row.p = getelementptr i8, ptr %{n}.list, i64 %{n}.row.at
  %{n}.row.first = get row.first of %{n}.row.p
  %{n}.row.after = get row.after of %{n}.row.p
  br label %{n}.on
{n}.on:
  %{n}.first = phi i64 [ 0, %{n}.test ], [ %{n}.row.first, %{n}.row ]
  %{n}.after = phi i64 [ 0, %{n}.test ], [ %{n}.row.after, %{n}.row ]
"""


def narrowed(h: Handler, window: Window, space: str, address: str, *, writes: bool) -> Window:
    """The part of a state space's window, from a multiple of 4 on, that is in the stretch for reads or writes which an
    address (i64) is in; an empty one, or any other stretch, if it is in none."""
    e = h.code
    n = e.label("stretch")
    at = BOUND.size * (2 * _SPACES[space] + writes)
    e.expand(_FIND.format(n=n, at=at, address=address))
    above = e.call("llvm.umax.i64", "i64", [("i64", f"%{n}.first"), ("i64", window.base)])
    first = e.value(f"and i64 {e.value(f'add i64 {above}, 3')}, -4")
    end = e.call(
        "llvm.umin.i64", "i64", [("i64", f"%{n}.after"), ("i64", e.value(f"add i64 {window.base}, {window.size}"))]
    )
    size = e.call("llvm.usub.sat.i64", "i64", [("i64", end), ("i64", first)])
    host = e.value(f"add i64 {window.host}, {e.value(f'sub i64 {first}, {window.base}')}")
    return Window(host, first, size)
