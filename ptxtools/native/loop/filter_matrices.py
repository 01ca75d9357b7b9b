"""Native service before a product of a warpgroup: what it reads of shared memory is looked at chunk by chunk
(`structures.MatrixFilter`).

Where marks are kept, copies must not be writing the chunks, what threads stored there must lie behind a fence for the
asynchronous proxy, and the chunks get the number of the product. A store is fenced if it came before the epoch in which
the warp has had a fence, or if the warp that stored has had one behind it, in an epoch before this one. Where words say
who has touched memory, nobody may have written the chunks in this epoch, and several threads read them. Where bytes
have flags, all of them must be set.
"""

from __future__ import annotations

from ptxtools.machine.residents import COPY
from ptxtools.native.code.structures import EPOCH_SHIFT, STORED_SHIFT

NAME = "filter_matrices"
_WARP = (1 << STORED_SHIFT) - 1


#: Where chunk %i of some is.
_AT = """  %place.p = getelementptr i32, ptr %places, i32 %i
  %place = load i32, ptr %place.p
  %place64 = zext i32 %place to i64
  %at = add i64 %base, %place64
"""

#: Marks of some chunks, and the latest time that any of their bytes were stored; they get the product's number.
_FLYING = f"""
define internal i1 @flying(ptr %shared, i64 %marks, i64 %stores, i64 %reads, i32 %product, i64 %base, ptr %places,
    i32 %count, ptr %latest, i64 %copies, ptr %written) #1 {{
  %copies.p = getelementptr i8, ptr %shared, i64 %copies
  %flies = icmp ne i64 %copies, 0
  %marks.p = getelementptr i8, ptr %shared, i64 %marks
  %stores.p = getelementptr i8, ptr %shared, i64 %stores
  %reads.p = getelementptr i8, ptr %shared, i64 %reads
  %before = load i32, ptr %latest
  br label %each
each:
  %i = phi i32 [ 0, %0 ], [ %i.next, %next ]
  %marked = phi <16 x i8> [ zeroinitializer, %0 ], [ %marked.next, %next ]
  %late = phi <4 x i32> [ zeroinitializer, %0 ], [ %late.next, %next ]
{_AT}  %mark.p = getelementptr i8, ptr %marks.p, i64 %at
  %mark = load <16 x i8>, ptr %mark.p, align 1
  %marked.next = or <16 x i8> %marked, %mark
  %store.p = getelementptr i8, ptr %stores.p, i64 %at
  %store = load <4 x i32>, ptr %store.p, align 4
  %late.next = call <4 x i32> @llvm.umax.v4i32(<4 x i32> %late, <4 x i32> %store)
  %word = lshr i64 %at, 2
  %read.p = getelementptr i8, ptr %reads.p, i64 %word
  store i32 %product, ptr %read.p
  br i1 %flies, label %copied, label %next
copied:
  %copy.p = getelementptr i8, ptr %copies.p, i64 %word
  %copy = load i32, ptr %copy.p
  %copy.before = load i32, ptr %written
  %copy.most = call i32 @llvm.umax.i32(i32 %copy, i32 %copy.before)
  store i32 %copy.most, ptr %written
  br label %next
next:
  %i.next = add i32 %i, 1
  %more = icmp ult i32 %i.next, %count
  br i1 %more, label %each, label %all
all:
  %latest.here = call i32 @llvm.vector.reduce.umax.v4i32(<4 x i32> %late.next)
  %latest.both = call i32 @llvm.umax.i32(i32 %latest.here, i32 %before)
  store i32 %latest.both, ptr %latest
  %whole = bitcast <16 x i8> %marked.next to i128
  %none = icmp eq i128 %whole, 0
  ret i1 %none
}}
declare <4 x i32> @llvm.umax.v4i32(<4 x i32>, <4 x i32>)
declare i32 @llvm.vector.reduce.umax.v4i32(<4 x i32>)
declare i32 @llvm.umax.i32(i32, i32)
"""

#: Whether each word of some chunks was stored before an epoch, or its warp has had a fence since then, before this one.
_FENCED = f"""
define internal i1 @fenced_each(ptr %shared, i64 %stores, ptr %head, i32 %fenced, i64 %base, ptr %places,
    i32 %count) #1 {{
  %stores.p = getelementptr i8, ptr %shared, i64 %stores
  %began = get marked.began of %head
  %words = shl i32 %count, 2
  br label %each
each:
  %i = phi i32 [ 0, %0 ], [ %i.next, %next ]
  %chunk = lshr i32 %i, 2
  %place.p = getelementptr i32, ptr %places, i32 %chunk
  %place = load i32, ptr %place.p
  %place64 = zext i32 %place to i64
  %at = add i64 %base, %place64
  %part = and i32 %i, 3
  %part64 = zext i32 %part to i64
  %part.at = shl i64 %part64, 2
  %word.at = add i64 %at, %part.at
  %word.p = getelementptr i8, ptr %stores.p, i64 %word.at
  %word = load i32, ptr %word.p
  %time = lshr i32 %word, {STORED_SHIFT}
  %warp.number = and i32 %word, {_WARP}
  %last.p = item marked.last, %warp.number of %head
  %last = load i32, ptr %last.p
  %before.p = item marked.before, %warp.number of %head
  %before = load i32, ptr %before.p
  %last.earlier = icmp ule i32 %last, %began
  %own = select i1 %last.earlier, i32 %last, i32 %before
  %until = call i32 @llvm.umax.i32(i32 %own, i32 %fenced)
  %good = icmp ule i32 %time, %until
  br i1 %good, label %next, label %bad
next:
  %i.next = add i32 %i, 1
  %more = icmp ult i32 %i.next, %words
  br i1 %more, label %each, label %all
all:
  ret i1 true
bad:
  ret i1 false
}}
"""

#: Several threads read some chunks in this epoch; false if anybody has written them in it.
_OWNED = f"""
define internal i1 @owned(ptr %words, i32 %epoch, i64 %base, ptr %places, i32 %count) #1 {{
  %prefix = shl i32 %epoch, EPOCH_SHIFT
  %several = or i32 %prefix, SEVERAL_SHARED
  %prefix.all = splat32x4 %prefix
  %several.all = splat32x4 %several
  br label %each
each:
  %i = phi i32 [ 0, %0 ], [ %i.next, %each ]
  %bad = phi <4 x i1> [ zeroinitializer, %0 ], [ %bad.next, %each ]
{_AT}  %p = getelementptr i8, ptr %words, i64 %at
  %found = load <4 x i32>, ptr %p, align 4
  %epochs = and <4 x i32> %found, splat (i32 {-1 << EPOCH_SHIFT})
  %fresh = icmp eq <4 x i32> %epochs, %prefix.all
  %writes = and <4 x i32> %found, splat (i32 WRITTEN_SHARED)
  %wrote = icmp ne <4 x i32> %writes, zeroinitializer
  %both = and <4 x i1> %fresh, %wrote
  %bad.next = or <4 x i1> %bad, %both
  %kept = select <4 x i1> %both, <4 x i32> %found, <4 x i32> %several.all
  store <4 x i32> %kept, ptr %p, align 4
  %i.next = add i32 %i, 1
  %more = icmp ult i32 %i.next, %count
  br i1 %more, label %each, label %all
all:
  %any = call i1 @llvm.vector.reduce.or.v4i1(<4 x i1> %bad.next)
  %good = xor i1 %any, true
  ret i1 %good
}}
declare i1 @llvm.vector.reduce.or.v4i1(<4 x i1>)
"""

#: Whether the flags of some chunks are all set.
_WRITTEN = f"""
define internal i1 @written(ptr %flags, i64 %base, ptr %places, i32 %count) #1 {{
  br label %each
each:
  %i = phi i32 [ 0, %0 ], [ %i.next, %each ]
  %set = phi <16 x i8> [ splat (i8 1), %0 ], [ %set.next, %each ]
{_AT}  %p = getelementptr i8, ptr %flags, i64 %at
  %found = load <16 x i8>, ptr %p, align 1
  %set.next = and <16 x i8> %set, %found
  %i.next = add i32 %i, 1
  %more = icmp ult i32 %i.next, %count
  br i1 %more, label %each, label %all
all:
  %left = icmp eq <16 x i8> %set.next, zeroinitializer
  %bits = bitcast <16 x i1> %left to i16
  %good = icmp eq i16 %bits, 0
  ret i1 %good
}}
"""

_SERVICE = f"""
service @{NAME} {{
  %everybody = icmp eq i32 %mask, -1
  br i1 %everybody, label %b, label %ask
b:
  %b.slot = get matrices.b_slot
  %b.p = getelementptr i8, ptr %fp, i32 %b.slot
  %b.code = load i64, ptr %b.p
  %b.tables = get matrices.tables_b
  %b.entry = call ptr @table_of(ptr %ctx, ptr %b.tables, i64 %b.code)
  %b.known = icmp ne ptr %b.entry, null
  br i1 %b.known, label %a.maybe, label %ask
a.maybe:
  %b.places = get tab.places of %b.entry
  %b.high = and i64 %b.code, HIGH_BITS
  %b.base = shl i64 %b.high, 4
  %b.count = get matrices.chunks_b
  %a.slot = get matrices.a_slot
  %a.none = icmp slt i32 %a.slot, 0
  br i1 %a.none, label %both, label %a
a:
  %a.p = getelementptr i8, ptr %fp, i32 %a.slot
  %a.code.own = load i64, ptr %a.p
  %a.tables = get matrices.tables_a
  %a.entry = call ptr @table_of(ptr %ctx, ptr %a.tables, i64 %a.code.own)
  %a.known = icmp ne ptr %a.entry, null
  br i1 %a.known, label %a.there, label %ask
a.there:
  %a.places.own = get tab.places of %a.entry
  %a.high = and i64 %a.code.own, HIGH_BITS
  %a.base.own = shl i64 %a.high, 4
  %a.count.own = get matrices.chunks_a
  br label %both
both:                                             ; without A, B twice
  %a.places = phi ptr [ %b.places, %a.maybe ], [ %a.places.own, %a.there ]
  %a.base = phi i64 [ %b.base, %a.maybe ], [ %a.base.own, %a.there ]
  %a.count = phi i32 [ %b.count, %a.maybe ], [ %a.count.own, %a.there ]
  %cta = get warp.cta
  %shared = get cta.shared
  %id = get warp.id
  %marks = get ctx.marks
  %stores = get ctx.stores
  %unmarked = icmp eq i64 %stores, 0
  br i1 %unmarked, label %owners.maybe, label %flying
flying:
  %head = getelementptr i8, ptr %shared, i64 %marks
  %marks.first = add i64 %marks, MARKED_BYTES
  %reads.first = get ctx.reads
  %reads.bytes = get ctx.reads_bytes
  %warpgroup = lshr i32 %id, 2
  %warpgroup64 = zext i32 %warpgroup to i64
  %reads.skip = mul i64 %warpgroup64, %reads.bytes
  %reads = add i64 %reads.first, %reads.skip
  %issued = get warp.wg_issued
  %product = add i32 %issued, 1
  %latest.p = alloca i32
  store i32 0, ptr %latest.p
  %written.p = alloca i32
  store i32 0, ptr %written.p
  %flights = get ctx.flights
  %unflown = icmp eq i64 %flights, 0
  %copies.skip = mul i64 %reads.bytes, COPY_PLANE
  %copies.at = add i64 %flights, %copies.skip
  %copies = select i1 %unflown, i64 0, i64 %copies.at
  %a.still = call i1 @flying(ptr %shared, i64 %marks.first, i64 %stores, i64 %reads, i32 %product, i64 %a.base,
    ptr %a.places, i32 %a.count, ptr %latest.p, i64 %copies, ptr %written.p)
  %b.still = call i1 @flying(ptr %shared, i64 %marks.first, i64 %stores, i64 %reads, i32 %product, i64 %b.base,
    ptr %b.places, i32 %b.count, ptr %latest.p, i64 %copies, ptr %written.p)
  %still = and i1 %a.still, %b.still
  br i1 %still, label %copied, label %ask
copied:                                           ; what copies wrote, the warp knows to be there
  %known.p = item marked.copy, %id of %head
  %known = load i32, ptr %known.p
  %written = load i32, ptr %written.p
  %there = icmp ule i32 %written, %known
  br i1 %there, label %fences, label %ask
fences:
  %fenced.p = item marked.fenced, %id of %head
  %fenced = load i32, ptr %fenced.p
  %latest = load i32, ptr %latest.p
  %latest.time = lshr i32 %latest, {STORED_SHIFT}
  %all.fenced = icmp ule i32 %latest.time, %fenced
  br i1 %all.fenced, label %owners.maybe, label %fences.each
fences.each:
  %a.fenced = call i1 @fenced_each(ptr %shared, i64 %stores, ptr %head, i32 %fenced, i64 %a.base, ptr %a.places,
    i32 %a.count)
  br i1 %a.fenced, label %fences.b, label %ask
fences.b:
  %b.fenced = call i1 @fenced_each(ptr %shared, i64 %stores, ptr %head, i32 %fenced, i64 %b.base, ptr %b.places,
    i32 %b.count)
  br i1 %b.fenced, label %owners.maybe, label %ask
owners.maybe:
  %owned = get matrices.owned
  %unowned = icmp eq i32 %owned, 0
  br i1 %unowned, label %flags.maybe, label %owners
owners:
  %owners.at = get ctx.owners
  %owners.head = getelementptr i8, ptr %shared, i64 %owners.at
  %epoch = get owners.epoch of %owners.head
  %words = getelementptr i8, ptr %owners.head, i64 OWNERS_BYTES
  %a.owned = call i1 @owned(ptr %words, i32 %epoch, i64 %a.base, ptr %a.places, i32 %a.count)
  %b.owned = call i1 @owned(ptr %words, i32 %epoch, i64 %b.base, ptr %b.places, i32 %b.count)
  %good = and i1 %a.owned, %b.owned
  br i1 %good, label %flags.maybe, label %ask
flags.maybe:
  %flags.at = get matrices.flags
  %flagless = icmp eq i64 %flags.at, 0
  br i1 %flagless, label %done, label %flags
flags:
  %flags.p = getelementptr i8, ptr %shared, i64 %flags.at
  %a.written = call i1 @written(ptr %flags.p, i64 %a.base, ptr %a.places, i32 %a.count)
  %b.written = call i1 @written(ptr %flags.p, i64 %b.base, ptr %b.places, i32 %b.count)
  %both.written = and i1 %a.written, %b.written
  br i1 %both.written, label %done, label %ask
done:
  ret i32 SERVED_DONE
ask:
  ret i32 SERVED_NOT
}}
"""


def functions() -> list[str]:
    """The service, and the functions that it calls, in the notation."""
    from ptxtools.native.tiles.wgmma import HIGH, TABLE_OF

    return [
        TABLE_OF,
        _FLYING,
        _FENCED,
        _OWNED,
        _WRITTEN,
        _SERVICE.replace("HIGH_BITS", str(HIGH)).replace("COPY_PLANE", str(COPY)),
    ]
