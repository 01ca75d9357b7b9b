"""Part of the service before events where lanes meet: whole warps that come to a barrier of the CTA or the cluster
learn what others know (`structures.CLOCKS`), without the observer that keeps their clocks (`machine.filters.JOINS`).

`JOINS_MAY` begins at `joins`, and ends at `turns` or `ask`, before anything has changed; `JOINS_DO` begins at
`joining`, when nobody is told, and ends at `done`.
"""

from __future__ import annotations

from ptxtools.machine import filters
from ptxtools.machine.residents import HEARS
from ptxtools.native.code.structures import (
    MEETS_ARRIVE,
    MEETS_COME,
    MEETS_GO,
    MEETS_LEAVE,
    MEETS_WAIT,
    MEETS_WARP,
)
from ptxtools.native.code.timed import JOINING, MOMENT

#: Of the warp at hand: its number %me, its MOMENT and row of times; its CTA and the barrier of that.
ME = f"""
  %clock = get ctx.clocks
  %cta = get warp.cta
  %leader = get cta.leader
  %per = get clocks.per_cta of %clock
  %count = get clocks.count of %clock
  %row.bytes = shl i64 %count, 2
  %cta.id = get cta.id
  %first = mul i64 %cta.id, %per
  %id = get warp.id
  %id64 = zext i32 %id to i64
  %me = add i64 %first, %id64
  %times = get clocks.times of %clock
  %moment.at = mul i64 %me, {MOMENT.size}
  %moment = getelementptr i8, ptr %times, i64 %moment.at
  %size = get ctx.cluster_size
  %size64 = zext i32 %size to i64
  %cluster.id = udiv i64 %cta.id, %size64
"""
_BAR = f"""
  %bars = get clocks.bars of %clock
  %bar.at = mul i64 %cta.id, {JOINING.size}
  %bar = getelementptr i8, ptr %bars, i64 %bar.at
"""
_CLUSTER = f"""
  %clusters = get clocks.clusters of %clock
  %cl.at = mul i64 %cluster.id, {JOINING.size}
  %cl = getelementptr i8, ptr %clusters, i64 %cl.at
"""
ROW = """
  %known = get clocks.known of %clock
  %row.at = mul i64 %me, %row.bytes
  %row = getelementptr i8, ptr %known, i64 %row.at
"""
#: %gathered: what warps have told that have come to the cluster's barrier in a phase of this parity.
_GATHERED = """
  %gathereds = get clocks.clustered of %clock
  %gathered.pair = shl i64 %cluster.id, 1
  %gathered.which = zext i32 %side to i64
  %gathered.number = add i64 %gathered.pair, %gathered.which
  %gathered.at = mul i64 %gathered.number, %row.bytes
  %gathered = getelementptr i8, ptr %gathereds, i64 %gathered.at
"""
#: What a warp that comes tells others at the barrier %at; from now on its accesses have another time.
_TELLS = """
  %own = get moment.own of %moment
  %grid.mine = get moment.grid of %moment
  %grid.before = get joining.grid of %at
  %grid.now = call i32 @llvm.umax.i32(i32 %grid.before, i32 %grid.mine)
  set joining.grid, %grid.now of %at
  call void @join_rows(ptr %gathered, ptr %row, i64 %count, i64 %me, i32 %own)
  set moment.now, 0 of %moment
  set moment.tick, 0 of %moment
  set moment.told, 1 of %moment
"""

FUNCTIONS = f"""
declare <8 x i32> @llvm.umax.v8i32(<8 x i32>, <8 x i32>)
declare i32 @llvm.umax.i32(i32, i32)
declare i32 @llvm.umin.i32(i32, i32)
; each time of one row is at least that of another one, but for one place, where it is at least `own`
define internal void @join_rows(ptr %to, ptr %from, i64 %count, i64 %me, i32 %own) #1 {{
  %me.bytes = shl i64 %me, 2
  %me.p = getelementptr i8, ptr %to, i64 %me.bytes
  %before = load i32, ptr %me.p
  %mine = call i32 @llvm.umax.i32(i32 %before, i32 %own)
  %bytes = shl i64 %count, 2
  %whole = and i64 %bytes, -32
  br label %wide
wide:
  %at = phi i64 [ 0, %0 ], [ %at.next, %eight ]
  %more = icmp ult i64 %at, %whole
  br i1 %more, label %eight, label %narrow
eight:
  %to.p = getelementptr i8, ptr %to, i64 %at
  %from.p = getelementptr i8, ptr %from, i64 %at
  %old = load <8 x i32>, ptr %to.p, align 4
  %new = load <8 x i32>, ptr %from.p, align 4
  %most = call <8 x i32> @llvm.umax.v8i32(<8 x i32> %old, <8 x i32> %new)
  store <8 x i32> %most, ptr %to.p, align 4
  %at.next = add i64 %at, 32
  br label %wide
narrow:
  %place = phi i64 [ %whole, %wide ], [ %place.next, %one ]
  %left = icmp ult i64 %place, %bytes
  br i1 %left, label %one, label %end
one:
  %one.to = getelementptr i8, ptr %to, i64 %place
  %one.from = getelementptr i8, ptr %from, i64 %place
  %one.old = load i32, ptr %one.to
  %one.new = load i32, ptr %one.from
  %one.most = call i32 @llvm.umax.i32(i32 %one.old, i32 %one.new)
  store i32 %one.most, ptr %one.to
  %place.next = add i64 %place, 4
  br label %narrow
end:
  store i32 %mine, ptr %me.p
  ret void
}}

; a warp knows what was gathered
define internal void @learn_row(ptr %row, ptr %gathered, i64 %count, i64 %me) #1 {{
  %me.bytes = shl i64 %me, 2
  %me.p = getelementptr i8, ptr %gathered, i64 %me.bytes
  %own = load i32, ptr %me.p
  call void @join_rows(ptr %row, ptr %gathered, i64 %count, i64 %me, i32 %own)
  ret void
}}

; whether nobody need be told that this warp comes or goes
define internal i1 @join_may(ptr %ctx, ptr %warp, i32 %what, i32 %m, i1 %all, i32 %lanes) #1 {{
  %clock.any = get ctx.clocks
  %none = icmp eq ptr %clock.any, null
  br i1 %none, label %no, label %who
no:
  ret i1 false
who:
{ME}{_BAR}{_CLUSTER}
  %plain = get moment.plain of %moment
  %knows = icmp ne i32 %plain, 0
  %hears = icmp eq i32 %plain, {HEARS}
  %deaf = xor i1 %hears, true
  %able = and i1 %knows, %deaf
  %fit = and i1 %able, %all
  %part = get moment.part of %moment
  %part.again = and i32 %part, %m
  %part.fresh = icmp eq i32 %part.again, 0
  %part.all = or i32 %part, %m
  %part.whole = icmp eq i32 %part.all, %lanes
  %part.hears = and i1 %hears, %part.whole
  %part.knows = xor i1 %part.hears, true
  %part.may = and i1 %knows, %part.knows
  %part.able = and i1 %part.may, %part.fresh
  %at.bar = get moment.bar of %moment
  %at.cluster = get moment.cluster of %moment
  %threads = get ctx.threads
  %alive = get cta.alive
  %everybody = icmp eq i32 %alive, %threads
  switch i32 %what, label %no [ i32 {MEETS_COME}, label %come i32 {MEETS_LEAVE}, label %leave
    i32 {MEETS_ARRIVE}, label %arrive i32 {MEETS_WAIT}, label %wait i32 {MEETS_GO}, label %go
    i32 {MEETS_WARP}, label %meet ]
meet:                                             ; after a barrier of the cluster its fence is another one
  %joined = get moment.joined of %moment
  %meet.near = icmp ult i32 %joined, 2
  %meet.good = and i1 %fit, %meet.near
  ret i1 %meet.good
come:
  %bar.told = get joining.told of %bar
  %bar.free = icmp eq i32 %bar.told, 0
  %bar.other = icmp ne i32 %at.bar, 1
  %come.1 = and i1 %part.able, %bar.free
  %come.2 = and i1 %bar.other, %everybody
  %come.good = and i1 %come.1, %come.2
  ret i1 %come.good
leave:
  %leave.good = icmp eq i32 %at.bar, 2
  ret i1 %leave.good
arrive:
  %cl.told = get joining.told of %cl
  %cl.free = icmp eq i32 %cl.told, 0
  %cl.none = icmp eq i32 %at.cluster, 0
  %cl.alive = get cta.cl_alive of %leader
  %cl.threads = mul i32 %threads, %size
  %cl.everybody = icmp eq i32 %cl.alive, %cl.threads
  %single = icmp eq i32 %size, 1
  %cl.living = select i1 %single, i1 %everybody, i1 %cl.everybody
  %arrive.1 = and i1 %fit, %cl.free
  %arrive.2 = and i1 %cl.none, %cl.living
  %arrive.good = and i1 %arrive.1, %arrive.2
  ret i1 %arrive.good
wait:
  %wait.less = sub i32 %at.cluster, 1
  %wait.good = icmp ult i32 %wait.less, 2
  ret i1 %wait.good
go:
  %go.ready = icmp eq i32 %at.cluster, 2
  %go.good = and i1 %go.ready, %all
  ret i1 %go.good
}}

; some lanes wait at the CTA's barrier; with the last ones the warp has come
define internal void @join_bar(ptr %ctx, ptr %warp, i32 %m, i32 %everybody) #1 {{
{ME}{_BAR}{ROW}
  %part.before = get moment.part of %moment
  %part = or i32 %part.before, %m
  %whole = icmp eq i32 %part, %everybody
  %part.left = select i1 %whole, i32 0, i32 %part
  set moment.part, %part.left of %moment
  br i1 %whole, label %comes, label %end
comes:
  %gathereds = get clocks.gathered of %clock
  %gathered.at = mul i64 %cta.id, %row.bytes
  %gathered = getelementptr i8, ptr %gathereds, i64 %gathered.at
{_TELLS.replace("%at", "%bar")}
  set moment.met, %own of %moment
  set moment.bar, 1 of %moment
  %came.before = get joining.came of %bar
  %came = add i32 %came.before, 1
  set joining.came, %came of %bar
  %per32 = trunc i64 %per to i32
  %complete = icmp eq i32 %came, %per32
  br i1 %complete, label %open, label %end
open:
  set joining.came, 0 of %bar
  set joining.grid, 0 of %bar
  %latest = get clocks.latest of %clock
  %latest32 = trunc i64 %latest to i32
  br label %each
each:
  %other = phi i64 [ %first, %open ], [ %other.next, %each ]
  %other.at = mul i64 %other, %row.bytes
  %other.row = getelementptr i8, ptr %known, i64 %other.at
  call void @learn_row(ptr %other.row, ptr %gathered, i64 %count, i64 %other)
  %other.moment.at = mul i64 %other, {MOMENT.size}
  %other.moment = getelementptr i8, ptr %times, i64 %other.moment.at
  set moment.bar, 2 of %other.moment
  set moment.joined, 1 of %other.moment
  set moment.took, 0 of %other.moment
  %other.met = get moment.met of %other.moment
  set moment.fenced, %other.met of %other.moment
  set moment.cta, %latest32 of %other.moment
  %other.grid = get moment.grid of %other.moment
  %other.grid.now = call i32 @llvm.umax.i32(i32 %other.grid, i32 %grid.now)
  set moment.grid, %other.grid.now of %other.moment
  %bars.before = get moment.bars of %other.moment
  %bars.now = add i32 %bars.before, 1
  set moment.bars, %bars.now of %other.moment
  %other.next = add i64 %other, 1
  %last = add i64 %first, %per
  %others = icmp ult i64 %other.next, %last
  br i1 %others, label %each, label %clear
clear:
  call void @llvm.memset.p0.i64(ptr align 4 %gathered, i8 0, i64 %row.bytes, i1 false)
  br label %end
end:
  ret void
}}

define internal void @join_cluster(ptr %ctx, ptr %warp) #1 {{
{ME}{_CLUSTER}{ROW}
  %side = get joining.side of %cl
{_GATHERED}
  %came.before = get joining.came of %cl
  %fresh = icmp eq i32 %came.before, 0
  br i1 %fresh, label %clear, label %tell
clear:
  call void @llvm.memset.p0.i64(ptr align 4 %gathered, i8 0, i64 %row.bytes, i1 false)
  br label %tell
tell:
{_TELLS.replace("%at", "%cl")}
  %latest = get clocks.latest of %clock
  %latest32 = trunc i64 %latest to i32
  set moment.arrived, %own of %moment
  set moment.came, %latest32 of %moment
  set moment.stirs, 0 of %moment
  set moment.cluster, 1 of %moment
  %arrivals.before = get moment.arrivals of %moment
  %arrivals = add i32 %arrivals.before, 1
  set moment.arrivals, %arrivals of %moment
  %came = add i32 %came.before, 1
  set joining.came, %came of %cl
  %all64 = mul i64 %per, %size64
  %all32 = trunc i64 %all64 to i32
  %complete = icmp eq i32 %came, %all32
  br i1 %complete, label %open, label %end
open:
  %from = mul i64 %cluster.id, %all64
  %to = add i64 %from, %all64
  br label %each
each:                                             ; nobody knows what was done behind an arrival
  %other = phi i64 [ %from, %open ], [ %other.next, %each ]
  %until = phi i32 [ %latest32, %open ], [ %until.next, %each ]
  %other.moment.at = mul i64 %other, {MOMENT.size}
  %other.moment = getelementptr i8, ptr %times, i64 %other.moment.at
  set moment.cluster, 2 of %other.moment
  %stirs = get moment.stirs of %other.moment
  %still = icmp eq i32 %stirs, 0
  %other.came = get moment.came of %other.moment
  %bound = select i1 %still, i32 %until, i32 %other.came
  %until.next = call i32 @llvm.umin.i32(i32 %until, i32 %bound)
  %other.next = add i64 %other, 1
  %others = icmp ult i64 %other.next, %to
  br i1 %others, label %each, label %turn
turn:
  set joining.until, %until.next of %cl
  %side.next = xor i32 %side, 1
  set joining.side, %side.next of %cl
  set joining.came, 0 of %cl
  set joining.known, %grid.now of %cl
  set joining.grid, 0 of %cl
  br label %end
end:
  ret void
}}

; all lanes of a warp know each other, which is a fence of the CTA
define internal void @join_warp(ptr %ctx, ptr %warp) #1 {{
{ME}{ROW}
  %own = get moment.own of %moment
  %me.p = getelementptr i32, ptr %row, i64 %me
  %before = load i32, ptr %me.p
  %now = call i32 @llvm.umax.i32(i32 %before, i32 %own)
  store i32 %now, ptr %me.p
  set moment.fenced, %own of %moment
  set moment.joined, 1 of %moment
  set moment.took, 0 of %moment
  set moment.now, 0 of %moment
  set moment.tick, 0 of %moment
  set moment.told, 1 of %moment
  ret void
}}

define internal void @join_go(ptr %ctx, ptr %warp) #1 {{
{ME}{_CLUSTER}{ROW}
  %side.now = get joining.side of %cl
  %side = xor i32 %side.now, 1
{_GATHERED}
  call void @learn_row(ptr %row, ptr %gathered, i64 %count, i64 %me)
  %until = get joining.until of %cl
  %knows = get moment.cta of %moment
  %knows.now = call i32 @llvm.umax.i32(i32 %knows, i32 %until)
  set moment.cta, %knows.now of %moment
  %around = get moment.around of %moment
  %around.now = call i32 @llvm.umax.i32(i32 %around, i32 %until)
  set moment.around, %around.now of %moment
  %grid.mine = get moment.grid of %moment
  %grid.known = get joining.known of %cl
  %grid.now = call i32 @llvm.umax.i32(i32 %grid.mine, i32 %grid.known)
  set moment.grid, %grid.now of %moment
  %arrived = get moment.arrived of %moment
  set moment.fenced, %arrived of %moment
  set moment.cluster, 0 of %moment
  set moment.joined, 2 of %moment
  set moment.took, 0 of %moment
  set moment.told, 1 of %moment
  %left.before = get moment.left of %moment
  %left = add i32 %left.before, 1
  set moment.left, %left of %moment
  ret void
}}
"""

JOINS_MAY = f"""
joins:
  %joins.rule = and i32 %rule, {filters.JOINS}
  %joins.none = icmp eq i32 %joins.rule, 0
  %joins.what = get meeting.what
  br i1 %joins.none, label %turns, label %join.may
join.may:
  %join.good = call i1 @join_may(ptr %ctx, ptr %warp, i32 %joins.what, i32 %m, i1 %all, i32 %everybody)
  br i1 %join.good, label %turns, label %ask
"""
JOINS_DO = f"""
joining:
  br i1 %joins.none, label %done, label %join
join:
  switch i32 %joins.what, label %done [ i32 {MEETS_COME}, label %join.bar
    i32 {MEETS_ARRIVE}, label %join.cluster i32 {MEETS_GO}, label %join.go i32 {MEETS_WARP}, label %join.warp ]
join.warp:
  call void @join_warp(ptr %ctx, ptr %warp)
  br label %done
join.bar:
  call void @join_bar(ptr %ctx, ptr %warp, i32 %m, i32 %everybody)
  br label %done
join.cluster:
  call void @join_cluster(ptr %ctx, ptr %warp)
  br label %done
join.go:
  call void @join_go(ptr %ctx, ptr %warp)
  br label %done
"""
