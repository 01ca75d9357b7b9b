"""Native service before accesses that are looked at: passes those by that no observer has to be told of.

The observer says which these are (`machine.filters.Bounds`). The first access of a worker that Python serves hands its
bounds over, as rows of BOUND; that of an instruction fills its cell (`structures.AccessFilter`). From then on the
service answers SERVED_DONE for an access all of whose lanes are inside, and has set the predicate that says who makes
it; otherwise it has changed nothing and answers SERVED_NOT: then the observers are told of the whole access.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from ptxtools.machine.filters import SPACES, Bounds
from ptxtools.native.code import structures
from ptxtools.native.code.emitter import expand, module_of
from ptxtools.native.code.structures import BOUND, BOUNDS, NO_SLOT, AccessFilter, Long
from ptxtools.program.details import Look
from ptxtools.program.program import LOCAL_WINDOW, OFFSET_MASK, SHARED_WINDOW, Op, Slot

if TYPE_CHECKING:
    from ptxtools.machine.filters import Array

    from .events import NativeView

NAME = "filter_access"
_SPACES = {
    "global": structures.SPACE_GLOBAL, "const": structures.SPACE_GLOBAL, "shared": structures.SPACE_SHARED,
    "cluster": structures.SPACE_SHARED, "local": structures.SPACE_LOCAL, "generic": structures.SPACE_GENERIC,
}  # fmt: skip
#: The upper byte of a generic address is the number of its space.
assert (SHARED_WINDOW >> 56, LOCAL_WINDOW >> 56) == (structures.SPACE_SHARED, structures.SPACE_LOCAL)


def offer(view: NativeView, bounds: Bounds) -> None:
    """From now on native code does this event where it can."""
    cell, worker = view.cell, view.worker
    if not worker.get("filters"):
        worker.filter(rows_of(bounds))
    with cell.lock:
        if cell.payload is None and not cell.refused:
            payload = None if bounds.asks(view.op) else _payload(view.op)
            cell.refused = payload is None
            if payload is not None:
                cell.write(payload)
                cell.serve(address())


def rows_of(bounds: Bounds) -> tuple[Array, list[Array]]:
    """Rows of BOUND, and the arrays that they point to."""
    kept = [np.ascontiguousarray(of[space], np.uint64) for space in SPACES for of in (bounds.reads, bounds.writes)]
    rows = np.array([(places.__array_interface__["data"][0], len(places)) for places in kept], np.uint64)
    assert rows.shape == (BOUNDS, 2) and BOUND.size == rows.strides[0]
    return rows, kept


def _payload(op: Op) -> AccessFilter | None:
    """What native code needs to know of an access; None where it cannot look at it."""
    look, address = op.of(Look), op.src[0]
    space = _SPACES.get(op.space)
    if space is None or (address is not None and address.type not in ("b32", "b64")):
        return None
    guard = op.src[1]
    permit = op.dst[0] if op.dst else None
    return AccessFilter(
        size=Long(look.size),
        low=Long(look.size - 1 if look.size & (look.size - 1) == 0 else 0),
        imm=Long(op.imm),
        slot=NO_SLOT if address is None else Slot(address.slot),
        narrow=address is not None and address.type == "b32",
        guard=NO_SLOT if guard is None else Slot(guard.slot),
        turned=-1 if look.negated and guard is not None else 0,
        permit=NO_SLOT if permit is None else Slot(permit.slot),
        lanes=(1 << look.lanes) - 1,
        space=space,
        writes=look.action != "read",
        hint=0,
    )


@cache
def address() -> int:
    """Where the compiled service is."""
    from ptxtools.native.code import library

    return library.functions_of((NAME,), module)[NAME]


def module(attributes: str) -> str:
    """The service as LLVM IR."""
    return module_of([expand(_SERVICE)], "", attributes)


#: Bits of a generic address that are the place in its window.
_INSIDE = (1 << 56) - 1

_SERVICE = f"""
declare i32 @llvm.cttz.i32(i32, i1)
declare i64 @llvm.vector.reduce.or.v32i64(<32 x i64>)
service @{NAME} {{
  %bounds = get ctx.filters
  %off = icmp eq ptr %bounds, null
  br i1 %off, label %ask, label %guard
guard:
  %g.slot = get access.guard
  %free = icmp slt i32 %g.slot, 0
  br i1 %free, label %who, label %held
held:
  %g.p = getelementptr i8, ptr %fp, i32 %g.slot
  %g.bits = load i32, ptr %g.p
  %turned = get access.turned
  %g.now = xor i32 %g.bits, %turned
  br label %who
who:
  %held.now = phi i32 [ -1, %guard ], [ %g.now, %held ]
  %rows = get access.lanes
  %giving = and i32 %held.now, %rows
  %m = and i32 %giving, %mask
  %nobody = icmp eq i32 %m, 0
  br i1 %nobody, label %good, label %where
where:
  %imm = get access.imm
  %slot = get access.slot
  %imm.all = splat64 %imm
  %constant = icmp slt i32 %slot, 0
  br i1 %constant, label %aligned, label %register
register:
  %p = getelementptr i8, ptr %fp, i32 %slot
  %narrow = get access.narrow
  %wide = icmp eq i32 %narrow, 0
  br i1 %wide, label %long, label %short
short:                                            ; a 32-bit address wraps at 32 bits
  %imm32 = trunc i64 %imm to i32
  %imm32.all = splat32 %imm32
  %base32 = load <32 x i32>, ptr %p, align 64
  %sum32 = add <32 x i32> %base32, %imm32.all
  %sum.short = zext <32 x i32> %sum32 to <32 x i64>
  br label %aligned
long:
  %base64 = load <32 x i64>, ptr %p, align 64
  %sum.long = add <32 x i64> %base64, %imm.all
  br label %aligned
aligned:
  %a = phi <32 x i64> [ %sum.short, %short ], [ %sum.long, %long ], [ %imm.all, %where ]
  %on = lanes %m
  %own = select <32 x i1> %on, <32 x i64> %a, <32 x i64> zeroinitializer
  %any = call i64 @llvm.vector.reduce.or.v32i64(<32 x i64> %own)
  %low = get access.low
  %odd = and i64 %any, %low
  %misaligned = icmp ne i64 %odd, 0
  br i1 %misaligned, label %ask, label %place
place:
  %space = get access.space
  %writes = get access.writes
  %generic = icmp eq i32 %space, SPACE_GENERIC
  br i1 %generic, label %window, label %known
window:                                           ; all lanes in one window
  %leader = call i32 @llvm.cttz.i32(i32 %m, i1 true)
  %a.leader = extractelement <32 x i64> %a, i32 %leader
  %top = lshr i64 %a.leader, 56
  %top.all = splat64 %top
  %tops = lshr <32 x i64> %a, splat (i64 56)
  %same = icmp eq <32 x i64> %tops, %top.all
  %same.bits = bits %same
  %same.own = and i32 %same.bits, %m
  %together = icmp eq i32 %same.own, %m
  %simple = icmp ult i64 %top, SPACE_GENERIC
  %one = and i1 %together, %simple
  %space.found = trunc i64 %top to i32
  %a.inside = and <32 x i64> %a, splat (i64 {_INSIDE})
  br i1 %one, label %known, label %ask
known:
  %at = phi <32 x i64> [ %a, %place ], [ %a.inside, %window ]
  %in = phi i32 [ %space, %place ], [ %space.found, %window ]
  %is.shared = icmp eq i32 %in, SPACE_SHARED
  br i1 %is.shared, label %rank, label %table
rank:                                             ; offsets are the same in each CTA of the cluster
  %ranks = lshr <32 x i64> %at, splat (i64 RANK_SHIFT)
  %ctas = get ctx.cluster_size
  %ctas64 = zext i32 %ctas to i64
  %ctas.all = splat64 %ctas64
  %there = icmp ult <32 x i64> %ranks, %ctas.all
  %there.bits = bits %there
  %there.own = and i32 %there.bits, %m
  %all.there = icmp eq i32 %there.own, %m
  %offsets = and <32 x i64> %at, splat (i64 {OFFSET_MASK})
  br i1 %all.there, label %table, label %ask
table:
  %places = phi <32 x i64> [ %at, %known ], [ %offsets, %rank ]
  %pair = shl i32 %in, 1
  %number = add i32 %pair, %writes
  %number64 = zext i32 %number to i64
  %bound = getelementptr [2 x i64], ptr %bounds, i64 %number64
  %list = get bound.rows of %bound
  %count = get bound.count of %bound
  %empty = icmp eq i64 %count, 0
  br i1 %empty, label %ask, label %first
first:
  %hint.first = get access.hint
  %hint64 = zext i32 %hint.first to i64
  br label %next
next:                                             ; the lowest lane that is left, and all in its stretch
  %left = phi i32 [ %m, %first ], [ %rest, %found ]
  %hint = phi i64 [ %hint64, %first ], [ %row, %found ]
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %mine = extractelement <32 x i64> %places, i32 %lane
  %valid = icmp ult i64 %hint, %count
  br i1 %valid, label %try, label %search
try:
  %try.p = getelementptr [2 x i64], ptr %list, i64 %hint
  %try.first = load i64, ptr %try.p
  %try.after.p = getelementptr i64, ptr %try.p, i64 1
  %try.after = load i64, ptr %try.after.p
  %not.below = icmp uge i64 %mine, %try.first
  %below.end = icmp ult i64 %mine, %try.after
  %try.inside = and i1 %not.below, %below.end
  br i1 %try.inside, label %test, label %search
search:                                           ; the last row that does not begin behind it
  br label %halve
halve:
  %lo = phi i64 [ 0, %search ], [ %lo.next, %step ]
  %hi = phi i64 [ %count, %search ], [ %hi.next, %step ]
  %room = sub i64 %hi, %lo
  %narrowed = icmp ule i64 %room, 1
  br i1 %narrowed, label %test, label %step
step:
  %half = lshr i64 %room, 1
  %middle = add i64 %lo, %half
  %middle.p = getelementptr [2 x i64], ptr %list, i64 %middle
  %middle.first = load i64, ptr %middle.p
  %upper = icmp ule i64 %middle.first, %mine
  %lo.next = select i1 %upper, i64 %middle, i64 %lo
  %hi.next = select i1 %upper, i64 %hi, i64 %middle
  br label %halve
test:
  %row = phi i64 [ %hint, %try ], [ %lo, %halve ]
  %row.p = getelementptr [2 x i64], ptr %list, i64 %row
  %row.first = load i64, ptr %row.p
  %row.after.p = getelementptr i64, ptr %row.p, i64 1
  %row.after = load i64, ptr %row.after.p
  %extent = sub i64 %row.after, %row.first
  %size = get access.size
  %small = icmp ult i64 %extent, %size
  %limit = sub i64 %extent, %size
  %row.first.all = splat64 %row.first
  %limit.all = splat64 %limit
  %distance = sub <32 x i64> %places, %row.first.all
  %inside = icmp ule <32 x i64> %distance, %limit.all
  %inside.bits = bits %inside
  %shifted = lshr i32 %inside.bits, %lane
  %lane.in = trunc i32 %shifted to i1
  %lane.out = xor i1 %lane.in, true
  %outside = or i1 %small, %lane.out
  br i1 %outside, label %ask, label %found
found:
  %others = xor i32 %inside.bits, -1
  %rest = and i32 %left, %others
  %through = icmp eq i32 %rest, 0
  br i1 %through, label %noted, label %next
noted:
  %row.same = icmp eq i64 %row, %hint64
  br i1 %row.same, label %good, label %note
note:
  %row32 = trunc i64 %row to i32
  set access.hint, %row32
  br label %good
good:
  %permit = get access.permit
  %unasked = icmp slt i32 %permit, 0
  br i1 %unasked, label %done, label %allow
allow:                                            ; as `machine.looks` does: of lanes that came, those that make it
  %permit.p = getelementptr i8, ptr %fp, i32 %permit
  %old = load i32, ptr %permit.p
  %away = xor i32 %mask, -1
  %kept = and i32 %old, %away
  %new = or i32 %kept, %m
  store i32 %new, ptr %permit.p
  br label %done
done:
  ret i32 SERVED_DONE
ask:
  ret i32 SERVED_NOT
}}
"""
