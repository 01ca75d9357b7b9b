"""Part of the service before an access: words that say who has touched some bytes (`structures.OWNERS`).

Threads may store to one word, if it is the same, and none has done anything else there: lanes of one store, and in
shared memory any; then it is nobody's, as if several had written. It begins at
`owner`, with %distance of the lanes %group in their stretch and %flags.base, where its words begin; and
ends at `passed` or `ask`. A word that several lanes change is read again: only one of them finds what it has stored.
"""

from __future__ import annotations

from ptxtools.machine.filters import SEVERAL
from ptxtools.native.code.structures import EPOCH_SHIFT
from ptxtools.program.program import LANES

from .filter_flags import GATHER

SCATTER = "llvm.masked.scatter.v32i32.v32p0"
_OWNED = "<32 x ptr> align 4 %word.ptrs.owner"
#: Numbers of the lanes, from 1 on; bits of a word of shared memory that say who.
_NUMBERS = f"<{', '.join(f'i32 {lane + 1}' for lane in range(LANES))}>"
_LANE = ", ".join(f"i32 {lane}" for lane in range(LANES))
_VALUES = "<32 x ptr> align 1"
_WHO_SHARED = (1 << EPOCH_SHIFT) - 1

OWNERS = f"""
owner:                                            ; who am I, and in which epoch
  %shared.mode = icmp eq i32 %in, SPACE_SHARED
  %shift.global = get filter.global of %filter
  %shift.shared = get filter.shared of %filter
  %shift = select i1 %shared.mode, i32 %shift.shared, i32 %shift.global
  %shift64 = zext i32 %shift to i64
  %grain = shl i64 1, %shift64
  %scale = sub i64 2, %shift64
  %scale.all = splat64 %scale
  %warp.id = get warp.id
  %warp.first = shl i32 %warp.id, 5
  %cta.id = get cta.id
  %cta.id32 = trunc i64 %cta.id to i32
  %threads = get ctx.threads
  %cta.first = mul i32 %cta.id32, %threads
  %grid.first = add i32 %cta.first, %warp.first
  %before.me = select i1 %shared.mode, i32 %warp.first, i32 %grid.first
  %before.all = splat32 %before.me
  %me.own = add <32 x i32> %before.all, {_NUMBERS}
  %written = select i1 %shared.mode, i32 WRITTEN_SHARED, i32 WRITTEN_GLOBAL
  %several = select i1 %shared.mode, i32 SEVERAL_SHARED, i32 SEVERAL_GLOBAL
  %written.all = splat32 %written
  %several.all = splat32 %several
  %sort = get access.sort
  %is.many = icmp eq i32 %sort, {SEVERAL}
  %me = select i1 %is.many, <32 x i32> %several.all, <32 x i32> %me.own
  %me.written = or <32 x i32> %me, %written.all
  %has.sort = icmp ne i32 %sort, 0
  %is.one = xor i1 %is.many, true
  %is.sorted = and i1 %has.sort, %is.one
  %sorts.first = select i1 %shared.mode, i32 ATOMIC_SHARED, i32 ATOMIC_GLOBAL
  %sort.number = add i32 %sorts.first, %sort
  %sort.written = or i32 %sort.number, %written
  %sort.all = splat32 %sort.written
  %header.at = get ctx.owners
  %header.from = add i64 %flags.from, %header.at
  %header = inttoptr i64 %header.from to ptr
  br i1 %shared.mode, label %epoch.shared, label %epoch.known
epoch.shared:
  %epoch = get owners.epoch of %header
  br label %epoch.known
epoch.known:
  %epoch.now = phi i32 [ 0, %owner ], [ %epoch, %epoch.shared ]
  %prefix = shl i32 %epoch.now, EPOCH_SHIFT
  %prefix.all = splat32 %prefix
  %stale.mask = select i1 %shared.mode, i32 {_WHO_SHARED}, i32 -1
  %stale.mask.all = splat32 %stale.mask
  %epoch.mask = xor i32 %stale.mask, -1
  %epoch.mask.all = splat32 %epoch.mask
  %alike.bit = select i1 %shared.mode, i32 ALIKE_SHARED, i32 0
  %alike.all = splat32 %alike.bit
  %unalike.all = xor <32 x i32> %alike.all, splat (i32 -1)
  %value.bytes = get access.value_bytes
  %value.known = icmp ne i32 %value.bytes, 0
  %value.coarse = icmp uge i32 %value.bytes, 4
  %by.words = icmp eq i64 %scale, 0
  %value.fits = and i1 %value.coarse, %by.words
  %value.placed = and i1 %value.fits, %shared.mode
  %value.bytes.all = splat32 %value.bytes
  %mine.far = mul <32 x i32> <{_LANE}>, %value.bytes.all
  %value.slots = addr access.value0
  %frame.at = ptrtoint ptr %fp to i64
  %frame.all = splat64 %frame.at
  %alike.first = select i1 %value.placed, i32 %alike.bit, i32 0
  %alike.first.all = splat32 %alike.first
  %owner.lanes = lanes %group
  %changes = icmp ne i32 %writes, 0
  %base.all = splat64 %flags.base
  %alike.several = or <32 x i32> %several.all, %written.all
  %alike.who = or <32 x i32> %alike.several, %alike.first.all
  %alike.word = or <32 x i32> %alike.who, %prefix.all
  br label %granule
granule:                                          ; one word of each lane at a time
  %granule.at = phi i64 [ 0, %epoch.known ], [ %granule.next, %granule.done ]
  %granule.all = splat64 %granule.at
  %granule.places = add <32 x i64> %distance, %granule.all
  %granule.words = lshr <32 x i64> %granule.places, splat (i64 2)
  %granule.low = shl <32 x i64> %granule.words, splat (i64 2)
  %granule.fine = shl <32 x i64> %granule.places, %scale.all
  %whole.words = icmp eq i64 %scale, 0
  %granule.offsets = select i1 %whole.words, <32 x i64> %granule.low, <32 x i64> %granule.fine
  %owner.places = add <32 x i64> %granule.offsets, %base.all
  %word.ptrs.owner = inttoptr <32 x i64> %owner.places to <32 x ptr>
  %old.word = call <32 x i32> @{GATHER}({_OWNED}, <32 x i1> %owner.lanes, <32 x i32> zeroinitializer)
  %old.epoch = and <32 x i32> %old.word, %epoch.mask.all
  %fresh = icmp eq <32 x i32> %old.epoch, %prefix.all
  %old.who = and <32 x i32> %old.word, %stale.mask.all
  %who.marked = select <32 x i1> %fresh, <32 x i32> %old.who, <32 x i32> zeroinitializer
  %who.now = and <32 x i32> %who.marked, %unalike.all
  %who.alike.bits = and <32 x i32> %who.marked, %alike.all
  %who.alike = icmp ne <32 x i32> %who.alike.bits, zeroinitializer
  %nobody.yet = icmp eq <32 x i32> %who.now, zeroinitializer
  %me.read = icmp eq <32 x i32> %who.now, %me
  %me.wrote.any = icmp eq <32 x i32> %who.now, %me.written
  %me.wrote = select i1 %is.many, <32 x i1> zeroinitializer, <32 x i1> %me.wrote.any
  %me.alone.read = or <32 x i1> %nobody.yet, %me.read
  %me.alone = or <32 x i1> %me.alone.read, %me.wrote
  %who.written = and <32 x i32> %who.now, %written.all
  %unwritten = icmp eq <32 x i32> %who.written, zeroinitializer
  %read.ok = or <32 x i1> %me.alone, %unwritten
  %beside.sort = icmp eq <32 x i32> %who.now, %sort.all
  %sort.ok = or <32 x i1> %nobody.yet, %beside.sort
  %plain.ok = select i1 %changes, <32 x i1> %me.alone, <32 x i1> %read.ok
  %granule.ok = select i1 %is.sorted, <32 x i1> %sort.ok, <32 x i1> %plain.ok
  %granule.bits = bits %granule.ok
  %granule.own = and i32 %granule.bits, %group
  %granule.fine.all = icmp eq i32 %granule.own, %group
  br i1 %granule.fine.all, label %granule.new, label %granule.odd
granule.odd:                                      ; what others have stored may be the same
  %odd.placed = and i1 %changes, %value.placed
  br i1 %odd.placed, label %granule.stored, label %ask
granule.stored:
  %stored.good = or <32 x i1> %me.alone, %who.alike
  %stored.bits = bits %stored.good
  %stored.own = and i32 %stored.bits, %group
  %stored.all = icmp eq i32 %stored.own, %group
  br i1 %stored.all, label %granule.equal, label %ask
granule.equal:                                    ; word by word, with what is there
  %granule.at32 = trunc i64 %granule.at to i32
  %equal.k = udiv i32 %granule.at32, %value.bytes
  %equal.rest = urem i32 %granule.at32, %value.bytes
  %equal.slot.p = getelementptr i32, ptr %value.slots, i32 %equal.k
  %equal.slot = load i32, ptr %equal.slot.p
  %equal.from = add i32 %equal.slot, %equal.rest
  %equal.from.all = splat32 %equal.from
  %equal.place = add <32 x i32> %mine.far, %equal.from.all
  %equal.place64 = sext <32 x i32> %equal.place to <32 x i64>
  %equal.at = add <32 x i64> %equal.place64, %frame.all
  %equal.p = inttoptr <32 x i64> %equal.at to <32 x ptr>
  %equal.value = call <32 x i32> @{GATHER}({_VALUES} %equal.p, <32 x i1> %owner.lanes, <32 x i32> zeroinitializer)
  %memory.all = splat64 %flags.from
  %memory.word = add <32 x i64> %places, %granule.all
  %memory.at = add <32 x i64> %memory.word, %memory.all
  %memory.p = inttoptr <32 x i64> %memory.at to <32 x ptr>
  %memory = call <32 x i32> @{GATHER}({_VALUES} %memory.p, <32 x i1> %owner.lanes, <32 x i32> zeroinitializer)
  %equal.not = icmp ne <32 x i32> %equal.value, %memory
  %join.lanes = xor <32 x i1> %me.alone, splat (i1 true)
  %equal.bad = and <32 x i1> %equal.not, %join.lanes
  %equal.bits = bits %equal.bad
  %equal.own = and i32 %equal.bits, %group
  %equal.every = icmp eq i32 %equal.own, 0
  br i1 %equal.every, label %granule.new, label %ask
granule.new:
  %joins = phi <32 x i1> [ zeroinitializer, %granule ], [ %join.lanes, %granule.equal ]
  %now.first = select <32 x i1> %nobody.yet, <32 x i32> %me, <32 x i32> %several.all
  %now.read = select <32 x i1> %me.read, <32 x i32> %me, <32 x i32> %now.first
  %now.reads = select <32 x i1> %me.wrote, <32 x i32> %me.written, <32 x i32> %now.read
  %now.stored = or <32 x i32> %me.written, %alike.first.all
  %now.writes = select <32 x i1> %nobody.yet, <32 x i32> %now.stored, <32 x i32> %me.written
  %now.joined = select <32 x i1> %joins, <32 x i32> %alike.who, <32 x i32> %now.writes
  %now.plain = select i1 %changes, <32 x i32> %now.joined, <32 x i32> %now.reads
  %now.who = select i1 %is.sorted, <32 x i32> %sort.all, <32 x i32> %now.plain
  %now.word = or <32 x i32> %now.who, %prefix.all
  %moved = icmp ne <32 x i32> %now.word, %old.word
  %moved.bits = bits %moved
  %moved.own = and i32 %moved.bits, %group
  %steady = icmp eq i32 %moved.own, 0
  br i1 %steady, label %granule.done, label %granule.store
granule.store:
  call void @{SCATTER}(<32 x i32> %now.word, {_OWNED}, <32 x i1> %owner.lanes)
  %again.word = call <32 x i32> @{GATHER}({_OWNED}, <32 x i1> %owner.lanes, <32 x i32> zeroinitializer)
  %beside = icmp ne <32 x i32> %again.word, %now.word
  %beside.own = and <32 x i1> %beside, %owner.lanes
  %beside.bits = bits %beside.own
  %apart = icmp eq i32 %beside.bits, 0
  br i1 %apart, label %granule.done, label %granule.shared
granule.shared:                                   ; lanes of this access share the word
  br i1 %changes, label %stored.same, label %granule.several
stored.same:                                      ; and with it the address: do they store the same?
  br i1 %value.known, label %stored.by, label %ask
stored.by:
  %last.who = and <32 x i32> %again.word, %stale.mask.all
  %flags.all = or <32 x i32> %written.all, %alike.all
  %unwritten.all = xor <32 x i32> %flags.all, splat (i32 -1)
  %last.number = and <32 x i32> %last.who, %unwritten.all
  %last.from = sub <32 x i32> %last.number, %before.all
  %last.lane = sub <32 x i32> %last.from, splat (i32 1)
  %last.far = mul <32 x i32> %last.lane, %value.bytes.all
  %value.narrow = icmp eq i32 %value.bytes, 2
  %value.mask = select i1 %value.narrow, i32 {0xFFFF}, i32 -1
  %value.mask.all = splat32 %value.mask
  br label %value
value:
  %value.k = phi i32 [ 0, %stored.by ], [ %value.next, %value.through ]
  %value.slot.p = getelementptr i32, ptr %value.slots, i32 %value.k
  %value.slot = load i32, ptr %value.slot.p
  %value.ended = icmp slt i32 %value.slot, 0
  br i1 %value.ended, label %stored.alike, label %value.piece
value.piece:                                      ; four bytes of it
  %value.at = phi i32 [ 0, %value ], [ %value.at.next, %value.part ]
  %value.place = add i32 %value.slot, %value.at
  %value.place.all = splat32 %value.place
  %mine.place = add <32 x i32> %mine.far, %value.place.all
  %last.place = add <32 x i32> %last.far, %value.place.all
  %mine.place64 = sext <32 x i32> %mine.place to <32 x i64>
  %last.place64 = sext <32 x i32> %last.place to <32 x i64>
  %mine.value.at = add <32 x i64> %mine.place64, %frame.all
  %last.value.at = add <32 x i64> %last.place64, %frame.all
  %mine.value.p = inttoptr <32 x i64> %mine.value.at to <32 x ptr>
  %last.value.p = inttoptr <32 x i64> %last.value.at to <32 x ptr>
  %mine.value = call <32 x i32> @{GATHER}({_VALUES} %mine.value.p, <32 x i1> %beside.own, <32 x i32> zeroinitializer)
  %last.value = call <32 x i32> @{GATHER}({_VALUES} %last.value.p, <32 x i1> %beside.own, <32 x i32> zeroinitializer)
  %value.apart = xor <32 x i32> %mine.value, %last.value
  %value.differs = and <32 x i32> %value.apart, %value.mask.all
  %value.other = icmp ne <32 x i32> %value.differs, zeroinitializer
  %value.other.bits = bits %value.other
  %value.alike = icmp eq i32 %value.other.bits, 0
  br i1 %value.alike, label %value.part, label %ask
value.part:
  %value.at.next = add i32 %value.at, 4
  %value.more = icmp ult i32 %value.at.next, %value.bytes
  br i1 %value.more, label %value.piece, label %value.through
value.through:
  %value.next = add i32 %value.k, 1
  %value.left = icmp ult i32 %value.next, 4
  br i1 %value.left, label %value, label %stored.alike
stored.alike:                                     ; from now on nobody's
  call void @{SCATTER}(<32 x i32> %alike.word, {_OWNED}, <32 x i1> %beside.own)
  br label %granule.done
granule.several:
  %several.word = or <32 x i32> %several.all, %prefix.all
  call void @{SCATTER}(<32 x i32> %several.word, {_OWNED}, <32 x i1> %beside.own)
  br label %granule.done
granule.done:
  %granule.next = add i64 %granule.at, %grain
  %granule.more = icmp ult i64 %granule.next, %size
  br i1 %granule.more, label %granule, label %passed
"""
