"""Native service where lanes put their copies into groups, or wait for groups (`machine.filters.Bounds.marks`): the
marks of groups that a warp has waited for no longer matter to itself, and vanish at the next barrier of the CTA
(`filter_sweeps`). Left to Python: part of a warp, and more groups than marks tell apart.
"""

from __future__ import annotations

from ptxtools.machine.residents import MARKED_GROUPS

from .filter_meetings import EVERYBODY
from .filter_sweeps import SWEEP

NAME = "filter_groups"

TEXT = f"""
declare i32 @llvm.smax.i32(i32, i32)
{SWEEP}service @{NAME} {{
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
  %kept.p = item marked.kept, %id of %head
  %kept = load i32, ptr %kept.p
  %flying = sub i32 %commits, %kept
  %told.apart = icmp ult i32 %flying, {MARKED_GROUPS}
  br i1 %told.apart, label %write, label %ask
write:
  store i32 %commits, ptr %commits.p
  store i32 %until, ptr %waited.p
  %open = urem i32 %commits, {MARKED_GROUPS}
  %open8 = trunc i32 %open to i8
  %open.p = getelementptr i8, ptr %head, i32 %id
  store i8 %open8, ptr %open.p
  %filters = get ctx.filters
  %table = get groups.table
  %table64 = zext i32 %table to i64
  %filter.at = mul i64 %table64, FILTER_BYTES
  %filter = getelementptr i8, ptr %filters, i64 %filter.at
  %counter = get filter.marks of %filter
  set marked.marked, %counter of %head
  %alone = icmp ule i32 %threads, 32
  br i1 %alone, label %sweep, label %done
sweep:
  call void @sweep_marks(ptr %ctx, ptr %head, i32 %id)
  br label %done
done:
  ret i32 SERVED_DONE
ask:
  ret i32 SERVED_NOT
}}
"""
