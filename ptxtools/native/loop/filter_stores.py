"""Part of the service before an access: writes to shared memory, where an observer wants to know of its bytes when they
were stored (`machine.filters.Bounds.marks`, `structures.MARKED`).

It begins at `stored`, with %distance of the lanes %group in their stretch and %flags.from, where shared memory begins;
and ends at `stored.done` or `ask`. A warpgroup may still read chunks whose word is above what its warps are
known to have waited for.
"""

from __future__ import annotations

from ptxtools.machine.issued import WARPS
from ptxtools.machine.residents import COPY, PLANES
from ptxtools.native.code.structures import STORED_SHIFT

from .filter_flags import GATHER
from .filter_owners import SCATTER

#: The least number of products of a warp of a warpgroup that are over as far as this warp knows, of those that have
#: more; else -1. It knows what each had waited for when the epoch began; of its own warpgroup, what it has waited for
#: itself, too.
DONE = f"""
define internal i32 @products_done(ptr %ctx, ptr %warp, ptr %head, i32 %first) #1 {{
  %bytes = get ctx.warp_bytes
  %warps = get ctx.warps
  %me = get warp.id
  %mine = get warp.wg_done
  %place = sub i32 %me, %first
  %near = icmp ult i32 %place, {WARPS}
  %own = select i1 %near, i32 %mine, i32 0
  br label %each
each:
  %i = phi i32 [ 0, %0 ], [ %i.next, %look ]
  %least = phi i32 [ -1, %0 ], [ %least.now, %look ]
  %number = add i32 %first, %i
  %there = icmp ult i32 %number, %warps
  %within = icmp ult i32 %i, {WARPS}
  %looks = and i1 %there, %within
  br i1 %looks, label %look, label %known
look:
  %i.next = add i32 %i, 1
  %apart = sub i32 %number, %me
  %apart64 = sext i32 %apart to i64
  %distance = mul i64 %apart64, %bytes
  %other = getelementptr i8, ptr %warp, i64 %distance
  %issued = get warp.wg_issued of %other
  %before.p = item marked.products, %number of %head
  %before = load i32, ptr %before.p, align 4
  %later = icmp ugt i32 %own, %before
  %done = select i1 %later, i32 %own, i32 %before
  %idle = icmp ule i32 %issued, %done
  %less = icmp ult i32 %done, %least
  %lower = select i1 %less, i32 %done, i32 %least
  %least.now = select i1 %idle, i32 %least, i32 %lower
  br label %each
known:
  ret i32 %least
}}
"""

STORES = f"""
stored:
  %st.bytes = get ctx.reads_bytes
  %st.reads = get ctx.reads
  %st.warps = get ctx.warps
  %st.from = add i64 %flags.from, %st.reads
  %st.chunks = lshr <32 x i64> %distance, splat (i64 4)
  %st.words = shl <32 x i64> %st.chunks, splat (i64 2)
  %st.lanes = lanes %group
  %st.head.at = get ctx.marks
  %st.head.from = add i64 %flags.from, %st.head.at
  %st.head = inttoptr i64 %st.head.from to ptr
  br label %st.each
st.each:                                          ; each warpgroup
  %st.first = phi i32 [ 0, %stored ], [ %st.first.next, %st.next ]
  %st.plane = phi i64 [ %st.from, %stored ], [ %st.plane.next, %st.next ]
  %st.done = call i32 @products_done(ptr %ctx, ptr %warp, ptr %st.head, i32 %st.first)
  %st.idle = icmp eq i32 %st.done, -1
  br i1 %st.idle, label %st.next, label %st.read
st.read:
  %st.plane.all = splat64 %st.plane
  %st.places = add <32 x i64> %st.words, %st.plane.all
  %st.ptrs = inttoptr <32 x i64> %st.places to <32 x ptr>
  %st.found = call <32 x i32> @{GATHER}(<32 x ptr> align 4 %st.ptrs, <32 x i1> %st.lanes, <32 x i32> zeroinitializer)
  %st.done.all = splat32 %st.done
  %st.reading = icmp ugt <32 x i32> %st.found, %st.done.all
  %st.reading.bits = bits %st.reading
  %st.reading.own = and i32 %st.reading.bits, %group
  %st.free = icmp eq i32 %st.reading.own, 0
  br i1 %st.free, label %st.next, label %ask
st.next:
  %st.first.next = add i32 %st.first, {WARPS}
  %st.plane.next = add i64 %st.plane, %st.bytes
  %st.more = icmp ult i32 %st.first.next, %st.warps
  br i1 %st.more, label %st.each, label %st.when
st.when:                                          ; clock + 1, above the warp
  %st.clock = get marked.clock of %st.head
  %st.clock.next = add i32 %st.clock, 1
  %st.high = shl i32 %st.clock.next, {STORED_SHIFT}
  %st.warp = get warp.id
  %st.word = or i32 %st.high, %st.warp
  %st.word.all = splat32 %st.word
  %st.stores = get ctx.stores
  %st.stores.from = add i64 %flags.from, %st.stores
  br label %st.one
st.one:
  %st.at = phi i64 [ 0, %st.when ], [ %st.at.next, %st.one ]
  %st.at.all = splat64 %st.at
  %st.place = add <32 x i64> %distance, %st.at.all
  %st.low = and <32 x i64> %st.place, splat (i64 -4)
  %st.stores.all = splat64 %st.stores.from
  %st.targets = add <32 x i64> %st.low, %st.stores.all
  %st.target.ptrs = inttoptr <32 x i64> %st.targets to <32 x ptr>
  call void @{SCATTER}(<32 x i32> %st.word.all, <32 x ptr> align 4 %st.target.ptrs, <32 x i1> %st.lanes)
  %st.at.next = add i64 %st.at, 4
  %st.left = icmp ult i64 %st.at.next, %size
  br i1 %st.left, label %st.one, label %stored.done
"""

#: From `flights.some` to `flown` or `ask`: whether the warp knows asynchronous work on the chunks to be complete, for a
#: read that of copies that write them.
FLIGHTS = f"""
flights.some:
  %fl.step = get ctx.reads_bytes
  %fl.head.at = get ctx.marks
  %fl.head.from = add i64 %flags.from, %fl.head.at
  %fl.head = inttoptr i64 %fl.head.from to ptr
  %fl.warp = get warp.id
  %fl.from = add i64 %flags.from, %flights
  %fl.chunks = lshr <32 x i64> %distance, splat (i64 4)
  %fl.words = shl <32 x i64> %fl.chunks, splat (i64 2)
  %fl.lanes = lanes %group
  %fl.writes = icmp ne i32 %writes, 0
  %fl.first = select i1 %fl.writes, i32 0, i32 {COPY}
  br label %fl.each
fl.each:
  %fl.plane = phi i32 [ %fl.first, %flights.some ], [ %fl.plane.next, %fl.next ]
  %fl.plane64 = zext i32 %fl.plane to i64
  %fl.skip = mul i64 %fl.plane64, %fl.step
  %fl.begin = add i64 %fl.from, %fl.skip
  %fl.begin.all = splat64 %fl.begin
  %fl.places = add <32 x i64> %fl.words, %fl.begin.all
  %fl.ptrs = inttoptr <32 x i64> %fl.places to <32 x ptr>
  %fl.found = call <32 x i32> @{GATHER}(<32 x ptr> align 4 %fl.ptrs, <32 x i1> %fl.lanes, <32 x i32> zeroinitializer)
  %fl.row = shl i32 %fl.plane, 5
  %fl.index = add i32 %fl.row, %fl.warp
  %fl.known.p = item marked.pipe, %fl.index of %fl.head
  %fl.known = load i32, ptr %fl.known.p, align 4
  %fl.known.all = splat32 %fl.known
  %fl.flying = icmp ugt <32 x i32> %fl.found, %fl.known.all
  %fl.flying.bits = bits %fl.flying
  %fl.flying.own = and i32 %fl.flying.bits, %group
  %fl.free = icmp eq i32 %fl.flying.own, 0
  br i1 %fl.free, label %fl.next, label %ask
fl.next:
  %fl.plane.next = add i32 %fl.plane, 1
  %fl.more = icmp ult i32 %fl.plane.next, {PLANES}
  br i1 %fl.more, label %fl.each, label %flown
"""
#: From `sources`: what threads store in global memory widens a range, behind the number of marks; on to `sources.read`
#: or `lookup`.
STORED = """
sources:
  br i1 %fetches, label %sources.read, label %range
range:
  %range.global = icmp eq i32 %in, SPACE_GLOBAL
  br i1 %range.global, label %range.widen, label %lookup
range.widen:
  %range.low.own = select <32 x i1> %on, <32 x i64> %places, <32 x i64> splat (i64 -1)
  %range.high.own = select <32 x i1> %on, <32 x i64> %places, <32 x i64> zeroinitializer
  %range.lowest = call i64 @llvm.vector.reduce.umin.v32i64(<32 x i64> %range.low.own)
  %range.highest = call i64 @llvm.vector.reduce.umax.v32i64(<32 x i64> %range.high.own)
  %range.beyond = add i64 %range.highest, %size
  %range.low.p = getelementptr i64, ptr %marks, i64 1
  %range.low = load i64, ptr %range.low.p
  %range.low.now = call i64 @llvm.umin.i64(i64 %range.low, i64 %range.lowest)
  store i64 %range.low.now, ptr %range.low.p
  %range.high.p = getelementptr i64, ptr %marks, i64 2
  %range.high = load i64, ptr %range.high.p
  %range.high.now = call i64 @llvm.umax.i64(i64 %range.high, i64 %range.beyond)
  store i64 %range.high.now, ptr %range.high.p
  br label %lookup
"""
