"""What becomes of the marks of asynchronous work (`machine.filters.Bounds.marks`) when all of a CTA have met: what its
warps have waited for before is over for all of them.
"""

from __future__ import annotations

from ptxtools.machine.residents import MARKED_GROUPS

#: The marks of the groups that a warp has waited for vanish.
SWEEP = f"""
declare i64 @llvm.ctpop.i64(i64)
declare void @llvm.masked.store.v64i8.p0(<64 x i8>, ptr, i32, <64 x i1>)
define internal void @sweep_marks(ptr %ctx, ptr %head, i32 %id) #1 {{
  %kept.p = item marked.kept, %id of %head
  %waited.p = item marked.waited, %id of %head
  %kept = load i32, ptr %kept.p
  %waited = load i32, ptr %waited.p
  %first.tag = mul i32 %id, {MARKED_GROUPS}
  %bytes = get ctx.shared_bytes
  %bytes64 = zext i32 %bytes to i64
  %marks = getelementptr i8, ptr %head, i64 MARKED_BYTES
  %counter = get marked.marked of %head
  store i32 %waited, ptr %kept.p
  br label %group
group:                                            ; each that is complete
  %number = phi i32 [ %kept, %0 ], [ %number.next, %swept ]
  %more = icmp ult i32 %number, %waited
  br i1 %more, label %sweep, label %done
sweep:
  %number.next = add i32 %number, 1
  %number.tag = urem i32 %number, {MARKED_GROUPS}
  %tag.less = add i32 %first.tag, %number.tag
  %tag = add i32 %tag.less, 1
  %tag8 = trunc i32 %tag to i8
  %tag.all = splat8x64 %tag8
  br label %sixtyfour
sixtyfour:
  %at = phi i64 [ 0, %sweep ], [ %at.next, %unmarked ]
  %cleared = phi i64 [ 0, %sweep ], [ %cleared.next, %unmarked ]
  %p = getelementptr i8, ptr %marks, i64 %at
  %found = load <64 x i8>, ptr %p, align 1
  %mine = icmp eq <64 x i8> %found, %tag.all
  %mine.bits = bitcast <64 x i1> %mine to i64
  %none = icmp eq i64 %mine.bits, 0
  br i1 %none, label %unmarked, label %marked
marked:
  call void @llvm.masked.store.v64i8.p0(<64 x i8> zeroinitializer, ptr %p, i32 1, <64 x i1> %mine)
  %count = call i64 @llvm.ctpop.i64(i64 %mine.bits)
  %cleared.more = add i64 %cleared, %count
  br label %unmarked
unmarked:
  %cleared.next = phi i64 [ %cleared, %sixtyfour ], [ %cleared.more, %marked ]
  %at.next = add i64 %at, 64
  %again = icmp ult i64 %at.next, %bytes64
  br i1 %again, label %sixtyfour, label %swept
swept:
  %counted = load i64, ptr %counter
  %counted.now = sub i64 %counted, %cleared.next
  store i64 %counted.now, ptr %counter
  br label %group
done:
  ret void
}}
"""

#: A new epoch: marks that each warp has waited for vanish, and so many products are over for all.
SETTLE = f"""
{SWEEP}define internal void @settle_marks(ptr %ctx, ptr %warp, ptr %head) #1 {{
  %bytes = get ctx.warp_bytes
  %warps = get ctx.warps
  %me = get warp.id
  br label %each
each:
  %number = phi i32 [ 0, %0 ], [ %number.next, %next ]
  %there = icmp ult i32 %number, %warps
  br i1 %there, label %look, label %done
look:
  %apart = sub i32 %number, %me
  %apart64 = sext i32 %apart to i64
  %distance = mul i64 %apart64, %bytes
  %other = getelementptr i8, ptr %warp, i64 %distance
  %products = get warp.wg_done of %other
  %products.p = item marked.products, %number of %head
  store i32 %products, ptr %products.p
  %kept.p = item marked.kept, %number of %head
  %waited.p = item marked.waited, %number of %head
  %kept = load i32, ptr %kept.p
  %waited = load i32, ptr %waited.p
  %some = icmp ult i32 %kept, %waited
  br i1 %some, label %sweep, label %next
sweep:
  call void @sweep_marks(ptr %ctx, ptr %head, i32 %number)
  br label %next
next:
  %number.next = add i32 %number, 1
  br label %each
done:
  ret void
}}
"""
