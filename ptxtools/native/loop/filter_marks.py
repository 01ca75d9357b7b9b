"""Parts of the service before an access: marks of what cp.async has in flight (`machine.filters.Bounds.marks`).

`MARKS` begins at `marked`, with %distance of the lanes %group in their stretch and %flags.base, where its marks begin,
and ends at `passed` or `ask` (when bytes were stored: `filter_stores`); `SOURCES` begins at `sources`, and ends at
`lookup` or `ask`.
"""

from __future__ import annotations

from ptxtools.machine.residents import MARKED_GROUPS, MARKS_HEAD
from ptxtools.native.code.structures import BOUND, SPACE_GLOBAL

from .filter_flags import GATHER
from .filter_stores import FLIGHTS, STORED, STORES

_GATHERED = "<32 x ptr> align 1 %mark.word.ptrs"
_LATE = "<32 x ptr> align 1 %late.ptrs"

MARKS = f"""
marked:                                           ; four marks at a time
  %mark.word.at = phi i64 [ 0, %kept.marks ], [ %mark.word.next, %marked ]
  %clear = phi <32 x i1> [ splat (i1 true), %kept.marks ], [ %clear.now, %marked ]
  %mark.word.base = add i64 %flags.base, %mark.word.at
  %mark.word.base.all = splat64 %mark.word.base
  %mark.word.places = add <32 x i64> %distance, %mark.word.base.all
  %mark.word.ptrs = inttoptr <32 x i64> %mark.word.places to <32 x ptr>
  %mark.lanes = lanes %group
  %mark.word = call <32 x i32> @{GATHER}({_GATHERED}, <32 x i1> %mark.lanes, <32 x i32> zeroinitializer)
  %mark.word.next = add i64 %mark.word.at, 4
  %mark.word.left = sub i64 %size, %mark.word.at
  %mark.word.whole = icmp uge i64 %mark.word.left, 4
  %mark.word.bits64 = shl i64 %mark.word.left, 3
  %mark.word.bits = trunc i64 %mark.word.bits64 to i32
  %mark.word.bits.low = and i32 %mark.word.bits, 31
  %mark.word.bit = shl i32 1, %mark.word.bits.low
  %mark.word.part = sub i32 %mark.word.bit, 1
  %mark.word.mask = select i1 %mark.word.whole, i32 -1, i32 %mark.word.part
  %mark.word.mask.all = splat32 %mark.word.mask
  %mark.word.masked = and <32 x i32> %mark.word, %mark.word.mask.all
  %mark.word.clear = icmp eq <32 x i32> %mark.word.masked, zeroinitializer
  %clear.now = and <32 x i1> %clear, %mark.word.clear
  %mark.word.more = icmp ult i64 %mark.word.next, %size
  br i1 %mark.word.more, label %marked, label %marked.judge
marked.judge:
  %clear.bits = bits %clear.now
  %clear.own = and i32 %clear.bits, %group
  %clear.all = icmp eq i32 %clear.own, %group
  br i1 %clear.all, label %marked.none, label %marked.some
marked.some:
  %late.copies = icmp eq i32 %copies, 1
  br i1 %late.copies, label %ask, label %late.who
late.who:                                          ; marks of what the warp itself has waited for, byte by byte
  %late.head.at = sub i64 %flags.base, {MARKS_HEAD}
  %late.head = inttoptr i64 %late.head.at to ptr
  %late.warp = get warp.id
  %late.kept.p = item marked.kept, %late.warp of %late.head
  %late.waited.p = item marked.waited, %late.warp of %late.head
  %late.kept = load i32, ptr %late.kept.p, align 4
  %late.waited = load i32, ptr %late.waited.p, align 4
  %late.many = sub i32 %late.waited, %late.kept
  %late.many.all = splat32 %late.many
  %late.less = mul i32 %late.warp, {MARKED_GROUPS}
  %late.first = add i32 %late.less, 1
  %late.first.all = splat32 %late.first
  %late.begin = urem i32 %late.kept, {MARKED_GROUPS}
  %late.turn = sub i32 {MARKED_GROUPS}, %late.begin
  %late.turn.all = splat32 %late.turn
  br label %late
late:
  %late.at = phi i64 [ 0, %late.who ], [ %late.next, %late ]
  %late.clear = phi <32 x i1> [ splat (i1 true), %late.who ], [ %late.clear.now, %late ]
  %late.base = add i64 %flags.base, %late.at
  %late.base.all = splat64 %late.base
  %late.places = add <32 x i64> %distance, %late.base.all
  %late.ptrs = inttoptr <32 x i64> %late.places to <32 x ptr>
  %late.lanes = lanes %group
  %late.word = call <32 x i32> @{GATHER}({_LATE}, <32 x i1> %late.lanes, <32 x i32> zeroinitializer)
  %late.tag = and <32 x i32> %late.word, splat (i32 255)
  %late.unmarked = icmp eq <32 x i32> %late.tag, zeroinitializer
  %late.place = sub <32 x i32> %late.tag, %late.first.all
  %late.here = icmp ult <32 x i32> %late.place, splat (i32 {MARKED_GROUPS})
  %late.turned = add <32 x i32> %late.place, %late.turn.all
  %late.wraps = icmp uge <32 x i32> %late.turned, splat (i32 {MARKED_GROUPS})
  %late.wrapped = sub <32 x i32> %late.turned, splat (i32 {MARKED_GROUPS})
  %late.number = select <32 x i1> %late.wraps, <32 x i32> %late.wrapped, <32 x i32> %late.turned
  %late.over = icmp ult <32 x i32> %late.number, %late.many.all
  %late.known = and <32 x i1> %late.here, %late.over
  %late.good = or <32 x i1> %late.known, %late.unmarked
  %late.clear.now = and <32 x i1> %late.clear, %late.good
  %late.next = add i64 %late.at, 1
  %late.more = icmp ult i64 %late.next, %size
  br i1 %late.more, label %late, label %late.judge
late.judge:
  %late.bits = bits %late.clear.now
  %late.group = and i32 %late.bits, %group
  %late.all = icmp eq i32 %late.group, %group
  br i1 %late.all, label %marked.none, label %ask
marked.none:
  %flights = get ctx.flights
  %unflown = icmp eq i64 %flights, 0
  br i1 %unflown, label %flown, label %flights.some
{FLIGHTS}flown:
  %stores.kept = get ctx.stores
  %storing = icmp ne i32 %writes, 0
  %keeping = icmp ne i64 %stores.kept, 0
  %noting = and i1 %storing, %keeping
  br i1 %noting, label %stored, label %stored.done
{STORES}stored.done:
  %is.copy = icmp eq i32 %copies, 1
  br i1 %is.copy, label %stamp, label %passed
stamp:                                            ; 1 + 7 * warp + the group that is set
  %stamp.warp = get warp.id
  %stamp.warp64 = zext i32 %stamp.warp to i64
  %stamp.head = sub i64 %flags.base, {MARKS_HEAD}
  %stamp.head.at = add i64 %stamp.head, %stamp.warp64
  %stamp.head.p = inttoptr i64 %stamp.head.at to ptr
  %stamp.group = load i8, ptr %stamp.head.p
  %stamp.first = mul i32 %stamp.warp, {MARKED_GROUPS}
  %stamp.first8 = trunc i32 %stamp.first to i8
  %stamp.sum = add i8 %stamp.first8, %stamp.group
  %stamp.tag = add i8 %stamp.sum, 1
  %stamp.lanes = call i32 @llvm.ctpop.i32(i32 %group)
  %stamp.lanes64 = zext i32 %stamp.lanes to i64
  %stamp.bytes = mul i64 %stamp.lanes64, %size
  %stamp.before = load i64, ptr %marks
  %stamp.total = add i64 %stamp.before, %stamp.bytes
  store i64 %stamp.total, ptr %marks
  br label %stamp.one
stamp.one:
  %stamp.left = phi i32 [ %group, %stamp ], [ %stamp.rest, %stamp.one ]
  %stamp.lane = call i32 @llvm.cttz.i32(i32 %stamp.left, i1 true)
  %stamp.distance = extractelement <32 x i64> %distance, i32 %stamp.lane
  %stamp.at = add i64 %stamp.distance, %flags.base
  %stamp.p = inttoptr i64 %stamp.at to ptr
  call void @llvm.memset.p0.i64(ptr %stamp.p, i8 %stamp.tag, i64 %size, i1 false)
  %stamp.less = sub i32 %stamp.left, 1
  %stamp.rest = and i32 %stamp.left, %stamp.less
  %stamp.done = icmp eq i32 %stamp.rest, 0
  br i1 %stamp.done, label %passed, label %stamp.one
"""

SOURCES = f"""{STORED}sources.read:                 ; what copies read lies between the two stretches of writes
  %of.global = icmp eq i32 %in, SPACE_GLOBAL
  br i1 %of.global, label %widen, label %ask
widen:
  %low.own = select <32 x i1> %on, <32 x i64> %places, <32 x i64> splat (i64 -1)
  %high.own = select <32 x i1> %on, <32 x i64> %places, <32 x i64> zeroinitializer
  %lowest = call i64 @llvm.vector.reduce.umin.v32i64(<32 x i64> %low.own)
  %highest = call i64 @llvm.vector.reduce.umax.v32i64(<32 x i64> %high.own)
  %beyond = add i64 %highest, %size
  %gap = getelementptr i8, ptr %bounds, i64 {BOUND.size * (2 * SPACE_GLOBAL + 1)}
  %gap.rows = get bound.rows of %gap
  %gap.low.p = addr row.after of %gap.rows
  %gap.low = load i64, ptr %gap.low.p
  %gap.low.now = call i64 @llvm.umin.i64(i64 %gap.low, i64 %lowest)
  store i64 %gap.low.now, ptr %gap.low.p
  %gap.second = getelementptr i8, ptr %gap.rows, i64 ROW_BYTES
  %gap.high.p = addr row.first of %gap.second
  %gap.high = load i64, ptr %gap.high.p
  %gap.high.now = call i64 @llvm.umax.i64(i64 %gap.high, i64 %beyond)
  store i64 %gap.high.now, ptr %gap.high.p
  br label %lookup
"""
