"""Part of the service before an access: words that say who has touched some bytes (`structures.OWNERS`).

It begins at `owner`, with %distance of the lanes %group in their stretch and %flags.base, where its words begin; and
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
  %owner.lanes = lanes %group
  %changes = icmp ne i32 %writes, 0
  %base.all = splat64 %flags.base
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
  %who.now = select <32 x i1> %fresh, <32 x i32> %old.who, <32 x i32> zeroinitializer
  %nobody.yet = icmp eq <32 x i32> %who.now, zeroinitializer
  %me.read = icmp eq <32 x i32> %who.now, %me
  %me.wrote = icmp eq <32 x i32> %who.now, %me.written
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
  br i1 %granule.fine.all, label %granule.new, label %ask
granule.new:
  %now.first = select <32 x i1> %nobody.yet, <32 x i32> %me, <32 x i32> %several.all
  %now.read = select <32 x i1> %me.read, <32 x i32> %me, <32 x i32> %now.first
  %now.reads = select <32 x i1> %me.wrote, <32 x i32> %me.written, <32 x i32> %now.read
  %now.plain = select i1 %changes, <32 x i32> %me.written, <32 x i32> %now.reads
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
  br i1 %changes, label %ask, label %granule.several
granule.several:
  %several.word = or <32 x i32> %several.all, %prefix.all
  call void @{SCATTER}(<32 x i32> %several.word, {_OWNED}, <32 x i1> %beside.own)
  br label %granule.done
granule.done:
  %granule.next = add i64 %granule.at, %grain
  %granule.more = icmp ult i64 %granule.next, %size
  br i1 %granule.more, label %granule, label %passed
"""
