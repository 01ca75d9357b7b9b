"""Native service where lanes put their copies into groups, or wait for groups (`machine.filters.Bounds.marks`): the
marks of groups that are waited for vanish. Left to Python: part of a warp, and more groups than marks tell apart.
"""

from __future__ import annotations

from ptxtools.machine.residents import MARKED_GROUPS

from .filter_meetings import EVERYBODY

NAME = "filter_groups"

TEXT = f"""
declare i32 @llvm.smax.i32(i32, i32)
declare i64 @llvm.ctpop.i64(i64)
declare void @llvm.masked.store.v64i8.p0(<64 x i8>, ptr, i32, <64 x i1>)
service @{NAME} {{
  %threads = get ctx.threads
{EVERYBODY}  %all = icmp eq i32 %mask, %everybody
  br i1 %all, label %whole, label %ask
whole:
  %cta = get warp.cta
  %shared = get cta.shared
  %head.at = get ctx.marks
  %head = getelementptr i8, ptr %shared, i64 %head.at
  %commits.p = item marked.commits, %id of %head
  %waited.p = item marked.waited, %id of %head
  %commits.old = load i32, ptr %commits.p
  %waited = load i32, ptr %waited.p
  %commit = get groups.commit
  %commits = add i32 %commits.old, %commit
  %pending = get groups.pending
  %left = call i32 @llvm.smax.i32(i32 %pending, i32 0)
  %waits = get groups.waits
  %unwaiting = icmp eq i32 %waits, 0
  %few = icmp ule i32 %commits, %left
  %until.less = sub i32 %commits, %left
  %until.some = select i1 %few, i32 %waited, i32 %until.less
  %until.ahead = icmp ugt i32 %until.some, %waited
  %until.more = select i1 %until.ahead, i32 %until.some, i32 %waited
  %until = select i1 %unwaiting, i32 %waited, i32 %until.more
  %flying = sub i32 %commits, %until
  %told.apart = icmp ult i32 %flying, {MARKED_GROUPS}
  br i1 %told.apart, label %write, label %ask
write:
  store i32 %commits, ptr %commits.p
  store i32 %until, ptr %waited.p
  %open = urem i32 %commits, {MARKED_GROUPS}
  %open8 = trunc i32 %open to i8
  %open.p = getelementptr i8, ptr %head, i32 %id
  store i8 %open8, ptr %open.p
  %first.tag = mul i32 %id, {MARKED_GROUPS}
  %bytes = get ctx.shared_bytes
  %bytes64 = zext i32 %bytes to i64
  %marks = getelementptr i8, ptr %head, i64 MARKED_BYTES
  %filters = get ctx.filters
  %table = get groups.table
  %table64 = zext i32 %table to i64
  %filter.at = mul i64 %table64, FILTER_BYTES
  %filter = getelementptr i8, ptr %filters, i64 %filter.at
  %counter = get filter.marks of %filter
  br label %group
group:                                            ; each that is complete
  %number = phi i32 [ %waited, %write ], [ %number.next, %swept ]
  %more = icmp ult i32 %number, %until
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
  ret i32 SERVED_DONE
ask:
  ret i32 SERVED_NOT
}}
"""
