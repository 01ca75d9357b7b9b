"""What regions ask that look at their accesses themselves (`handlers/region_bounds.py`), as text (`code.notation`).

One function finds the stretch that an address is in, in the tables of all observers, and says whether any of them keeps
something of its bytes; another one looks at what is kept for some accesses of a warp at constant distances, and notes
them. Each half of the warp is at neighbouring words, or at one word. Flags are set behind the region, when nothing can
go wrong any more. Words that say who has touched memory (`filter_owners`) may be noted at once: where the region begins
anew, the same threads make the same accesses. Anything else that is kept is refused.
"""

from __future__ import annotations

from ptxtools.native.code import same_words
from ptxtools.native.code.structures import EPOCH_SHIFT, FLAGS_KEPT, FLAGS_SET, OWNERS_KEPT

FIND, KEPT, SET = "region_find", "region_kept", "region_set"

_LANE = ", ".join(f"i32 {lane + 1}" for lane in range(16))
_NUMBERS = ", ".join(f"i32 {lane}" for lane in range(16))
_WHO_SHARED = (1 << EPOCH_SHIFT) - 1
_SET_ALL = f"splat (i32 {FLAGS_SET})"
_LOAD, _STORE = same_words.LOAD, "llvm.masked.store.v16i32.p0"


def last_row(before: str, address: str, found: str) -> str:
    """The loop that finds the last row of %list, of %count, that does not begin behind an address: %lo at the label
    `found`; before: the label that it is entered from."""
    return f"""halve:
  %lo = phi i64 [ 0, %{before} ], [ %lo.next, %step ]
  %hi = phi i64 [ %count, %{before} ], [ %hi.next, %step ]
  %room = sub i64 %hi, %lo
  %narrowed = icmp ule i64 %room, 1
  br i1 %narrowed, label %{found}, label %step
step:
  %half = lshr i64 %room, 1
  %middle = add i64 %lo, %half
  %middle.at = mul i64 %middle, ROW_BYTES
  %middle.p = getelementptr i8, ptr %list, i64 %middle.at
  %middle.first = get row.first of %middle.p
  %upper = icmp ule i64 %middle.first, {address}
  %lo.next = select i1 %upper, i64 %middle, i64 %lo
  %hi.next = select i1 %upper, i64 %hi, i64 %middle
  br label %halve
"""


#: The last row that does not begin behind an address; null where there is none.
_ROW = f"""
define internal ptr @region_row(ptr %bound, i64 %address) #0 {{
  %list = get bound.rows of %bound
  %count = get bound.count of %bound
  br label %halve
{last_row("0", "%address", "found")}found:
  %at = mul i64 %lo, ROW_BYTES
  %row = getelementptr i8, ptr %list, i64 %at
  %none = icmp eq i64 %count, 0
  %answer = select i1 %none, ptr null, ptr %row
  ret ptr %answer
}}
"""

#: The stretches of the table %k, for accesses of a sort.
_BOUND = """  %k64 = zext i32 %k to i64
  %filter.at = mul i64 %k64, FILTER_BYTES
  %filter = getelementptr i8, ptr %filters, i64 %filter.at
  %bounds = addr filter.bounds of %filter
  %bound = getelementptr i8, ptr %bounds, i64 %bound.at
"""

#: Where all tables have a stretch with an address in it for accesses of one sort (%number), from %out to behind it; and
#: what is added to an address to find its flags, where one table has them.
_FIND = f"""
define i32 @{FIND}(ptr %ctx, i32 %number, i64 %address, ptr %out) #0 {{
  %filters = get ctx.bounded
  %count = get ctx.bounded_count
  %number64 = zext i32 %number to i64
  %bound.at = mul i64 %number64, BOUND_BYTES
  br label %each
each:
  %k = phi i32 [ 0, %0 ], [ %k.next, %row ]
  %first = phi i64 [ 0, %0 ], [ %first.next, %row ]
  %after = phi i64 [ -1, %0 ], [ %after.next, %row ]
  %kept = phi i32 [ 0, %0 ], [ %kept.next, %row ]
  %several = phi i32 [ 0, %0 ], [ %several.next, %row ]
  %away = phi i64 [ 0, %0 ], [ %away.next, %row ]
  %more = icmp ult i32 %k, %count
  br i1 %more, label %look, label %done
look:
{_BOUND}  %found = call ptr @region_row(ptr %bound, i64 %address)
  %nowhere = icmp eq ptr %found, null
  br i1 %nowhere, label %none, label %row
none:
  store i64 0, ptr %out
  %none.after = getelementptr i64, ptr %out, i32 1
  store i64 0, ptr %none.after
  %none.flags = getelementptr i64, ptr %out, i32 2
  store i64 0, ptr %none.flags
  ret i32 0
row:
  %k.next = add i32 %k, 1
  %row.first = get row.first of %found
  %row.after = get row.after of %found
  %row.flags = get row.flags of %found
  %first.next = call i64 @llvm.umax.i64(i64 %first, i64 %row.first)
  %after.next = call i64 @llvm.umin.i64(i64 %after, i64 %row.after)
  %owned = get filter.owned of %filter
  %is.owned = icmp ne i32 %owned, 0
  %which = select i1 %is.owned, i32 {OWNERS_KEPT}, i32 {FLAGS_KEPT}
  %unkept = icmp eq i64 %row.flags, 0
  %this = select i1 %unkept, i32 0, i32 %which
  %kept.next = or i32 %kept, %this
  %this.away = sub i64 %row.flags, %row.first
  %this.flags = and i32 %this, {FLAGS_KEPT}
  %is.flags = icmp ne i32 %this.flags, 0
  %away.next = select i1 %is.flags, i64 %this.away, i64 %away
  %one.more = zext i1 %is.flags to i32
  %several.next = add i32 %several, %one.more
  br label %each
done:
  %alone = icmp eq i32 %several, 1
  %away.now = select i1 %alone, i64 %away, i64 0
  %out.flags = getelementptr i64, ptr %out, i32 2
  store i64 %away.now, ptr %out.flags
  store i64 %first, ptr %out
  %out.after = getelementptr i64, ptr %out, i32 1
  store i64 %after, ptr %out.after
  ret i32 %kept
}}
"""


def _groups(name: str, begin: str, each: str) -> str:
    """A function that goes through the tables that keep something, the halves of a warp, and the distances of a group.
    begin: from `half.ready` to `each.access`, `half.done`, `next` or `refused`; each: from `access` to `next.access` or
    `refused`, with the bytes from the stretch to a row's first lane, or to the word that all lanes are at, %distance,
    and where its flags or words are, %kept.p."""
    return f"""
define i32 @{name}(ptr %ctx, ptr %warp, ptr %group) #0 {{
  %filters = get ctx.bounded
  %tables = get ctx.bounded_count
  %number = get group.number of %group
  %active = get group.active of %group
  %imms = get group.imms of %group
  %count = get group.count of %group
  %number64 = zext i32 %number to i64
  %bound.at = mul i64 %number64, BOUND_BYTES
  %space = lshr i32 %number, 1
  %writes = and i32 %number, 1
  %changes = icmp ne i32 %writes, 0
  %shared.mode = icmp eq i32 %space, SPACE_SHARED
  %cta = get warp.cta
  %shared = get cta.shared of %cta
  %shared.at = ptrtoint ptr %shared to i64
  %from = select i1 %shared.mode, i64 %shared.at, i64 0
  %warp.id = get warp.id
  %warp.first = shl i32 %warp.id, 5
  %count.last = sub i32 %count, 1
  %imm.first = load i64, ptr %imms
  %imm.last.p = getelementptr i64, ptr %imms, i32 %count.last
  %imm.last = load i64, ptr %imm.last.p
  %imm.span = sub i64 %imm.last, %imm.first
  br label %each
each:
  %k = phi i32 [ 0, %0 ], [ %k.next, %next ]
  %more = icmp ult i32 %k, %tables
  br i1 %more, label %look, label %done
look:
{_BOUND}  %address.p = addr group.first0 of %group
  %address = load i64, ptr %address.p
  %row = call ptr @region_row(ptr %bound, i64 %address)
  %row.flags = get row.flags of %row
  %row.first = get row.first of %row
  %row.after = get row.after of %row
  %owned = get filter.owned of %filter
  %is.flagged = icmp eq i32 %owned, 0
  %unkept = icmp eq i64 %row.flags, 0
  br i1 %unkept, label %next, label %kept
kept:
  %base = add i64 %row.flags, %from
  br label %half
half:
  %side = phi i32 [ 0, %kept ], [ %side.next, %half.done ]
  %half.shift = shl i32 %side, 4
  %half.bits = lshr i32 %active, %half.shift
  %mine16 = trunc i32 %half.bits to i16
  %nobody = icmp eq i16 %mine16, 0
  br i1 %nobody, label %half.done, label %half.ready
half.ready:
  %mine = bitcast i16 %mine16 to <16 x i1>
  %mine.all = icmp eq i16 %mine16, -1
  %first.p = getelementptr i64, ptr %address.p, i32 %side
  %first = load i64, ptr %first.p
  %points.base = addr group.point0 of %group
  %point.p = getelementptr i32, ptr %points.base, i32 %side
  %point.so = load i32, ptr %point.p
  %mine.less = sub i16 %mine16, 1
  %mine.rest = and i16 %mine16, %mine.less
  %mine.several = icmp ne i16 %mine.rest, 0
  %point.any = icmp ne i32 %point.so, 0
  %point = and i1 %point.any, %mine.several
  %columns.base = addr group.column0 of %group
  %column.p = getelementptr i32, ptr %columns.base, i32 %side
  %column = load i32, ptr %column.p
  %column.wide = zext i32 %column to i64
  %column.bytes = shl i64 %column.wide, 2
  %back = select i1 %point, i64 0, i64 %column.bytes
  %start.here = sub i64 %first, %back
  %start = sub i64 %start.here, %row.first
  %start.kept = add i64 %base, %start
  %lane.first = add i32 %warp.first, %half.shift
{begin}
each.access:
  %i = phi i32 [ 0, %loop ], [ %i.next, %next.access ]
  %imm.p = getelementptr i64, ptr %imms, i32 %i
  %imm = load i64, ptr %imm.p
  %kept.at = add i64 %start.kept, %imm
  %kept.p = inttoptr i64 %kept.at to ptr
{each}
next.access:
  %i.next = add i32 %i, 1
  %i.more = icmp ult i32 %i.next, %count
  br i1 %i.more, label %each.access, label %half.done
half.done:
  %side.next = add i32 %side, 1
  %side.more = icmp ult i32 %side.next, 2
  br i1 %side.more, label %half, label %next
next:
  %k.next = add i32 %k, 1
  br label %each
done:
  ret i32 1
refused:
  ret i32 0
}}
"""


#: Of flags of shared memory, whether all are set by now: looked at ever more rarely.
_COMPLETE = f"""
  switch i32 %owned, label %refused [
    i32 0, label %flags
    i32 1, label %owner
  ]
flags:
  %complete = get group.complete of %group
  %lasting = icmp ne ptr %complete, null
  %once = icmp eq i32 %side, 0
  %asks.some = and i1 %lasting, %once
  %asks = and i1 %asks.some, %shared.mode
  br i1 %asks, label %complete.look, label %flags.known
complete.look:
  %complete.left = get complete.left of %complete
  %complete.less = sub i32 %complete.left, 1
  set complete.left, %complete.less of %complete
  %complete.due = icmp slt i32 %complete.less, 0
  br i1 %complete.due, label %complete.all, label %flags.known
complete.all:
  %complete.bytes = sub i64 %row.after, %row.first
  %complete.words = and i64 %complete.bytes, -4
  %complete.p = inttoptr i64 %base to ptr
  %complete.whole = icmp eq i64 %complete.words, %complete.bytes
  %complete.same = call i1 @{same_words.NAME}(ptr %complete.p, i64 %complete.words, <16 x i32> {_SET_ALL})
  %complete.now = and i1 %complete.whole, %complete.same
  %complete.known = zext i1 %complete.now to i32
  set complete.known, %complete.known of %complete
  %complete.pause = get complete.pause of %complete
  %complete.twice = shl i32 %complete.pause, 1
  %complete.longer = add i32 %complete.twice, 1
  set complete.pause, %complete.longer of %complete
  set complete.left, %complete.longer of %complete
  br i1 %complete.now, label %next, label %flags.known
flags.known:
  br i1 %changes, label %next, label %loop
"""

#: Of words that say who has touched memory: of each four bytes, and in global memory if that is allowed. Many at once
#: where they are known to have been read by several threads, and where all lanes read the same ones.
_OWNER = f"""
owner:
  %wide.global = get filter.global of %filter
  %wide.shared = get filter.shared of %filter
  %wide = select i1 %shared.mode, i32 %wide.shared, i32 %wide.global
  %by.words = icmp eq i32 %wide, 2
  %refusing = get ctx.bounded_refuses
  %welcome = icmp eq i32 %refusing, 0
  %unrefused = or i1 %shared.mode, %welcome
  %noted = and i1 %by.words, %unrefused
  br i1 %noted, label %who, label %refused
who:
  %cta.id = get cta.id of %cta
  %cta.id32 = trunc i64 %cta.id to i32
  %threads = get ctx.threads
  %cta.first = mul i32 %cta.id32, %threads
  %grid.first = add i32 %cta.first, %lane.first
  %before = select i1 %shared.mode, i32 %lane.first, i32 %grid.first
  %header.at = get ctx.owners
  %header = getelementptr i8, ptr %shared, i64 %header.at
  br i1 %shared.mode, label %epoch, label %ready
epoch:
  %epoch.now = get owners.epoch of %header
  br label %ready
ready:
  %epoch.so = phi i32 [ 0, %who ], [ %epoch.now, %epoch ]
  %prefix = shl i32 %epoch.so, EPOCH_SHIFT
  %written = select i1 %shared.mode, i32 WRITTEN_SHARED, i32 WRITTEN_GLOBAL
  %several = select i1 %shared.mode, i32 SEVERAL_SHARED, i32 SEVERAL_GLOBAL
  %who.mask = select i1 %shared.mode, i32 {_WHO_SHARED}, i32 -1
  %epoch.mask = xor i32 %who.mask, -1
  %several.now = or i32 %several, %prefix
  %written.all = splat32x16 %written
  %several.all = splat32x16 %several.now
  %prefix.all = splat32x16 %prefix
  %epoch.mask.all = splat32x16 %epoch.mask
  %who.mask.all = splat32x16 %who.mask
  %mine.first = add i32 %before, %prefix
  %me.all = splat32x16 %mine.first
  %me = add <16 x i32> %me.all, <{_LANE}>
  %me.written = or <16 x i32> %me, %written.all
  %range.at = add i64 %start.kept, %imm.first
  %range.p = inttoptr i64 %range.at to ptr
  br i1 %point, label %points, label %rows
points:                                           ; several lanes at one word
  br i1 %changes, label %refused, label %points.read
points.read:
  %dense.bytes = shl i32 %count.last, 2
  %dense.bytes64 = zext i32 %dense.bytes to i64
  %dense = icmp eq i64 %imm.span, %dense.bytes64
  br i1 %dense, label %points.each, label %loop
points.each:
  %points.at = phi i32 [ 0, %points.read ], [ %points.next, %points.done ]
  %points.left = sub i32 %count, %points.at
  %points.left.all = splat32x16 %points.left
  %points.in = icmp ult <16 x i32> <{_NUMBERS}>, %points.left.all
  %points.p = getelementptr i32, ptr %range.p, i32 %points.at
  %points.word = call <16 x i32> @{_LOAD}(ptr align 4 %points.p, <16 x i1> %points.in, <16 x i32> %several.all)
  %points.other = icmp ne <16 x i32> %points.word, %several.all
  %points.other.bits = bitcast <16 x i1> %points.other to i16
  %points.same = icmp eq i16 %points.other.bits, 0
  br i1 %points.same, label %points.done, label %points.look
points.look:
  %points.epoch = and <16 x i32> %points.word, %epoch.mask.all
  %points.fresh = icmp eq <16 x i32> %points.epoch, %prefix.all
  %points.changed = and <16 x i32> %points.word, %written.all
  %points.any = icmp ne <16 x i32> %points.changed, zeroinitializer
  %points.bad = and <16 x i1> %points.fresh, %points.any
  %points.bad.bits = bitcast <16 x i1> %points.bad to i16
  %points.good = icmp eq i16 %points.bad.bits, 0
  br i1 %points.good, label %points.note, label %refused
points.note:
  call void @{_STORE}(<16 x i32> %several.all, ptr align 4 %points.p, <16 x i1> %points.in)
  br label %points.done
points.done:
  %points.next = add i32 %points.at, 16
  %points.more = icmp ult i32 %points.next, %count
  br i1 %points.more, label %points.each, label %half.done
rows:
  %reads = xor i1 %changes, true
  %many = icmp ugt i32 %count, 1
  %rows.reads = and i1 %reads, %many
  %rows.whole = and i1 %rows.reads, %mine.all
  br i1 %rows.whole, label %rows.read, label %loop
rows.read:
  %rows.bytes = add i64 %imm.span, 64
  %rows.same = call i1 @{same_words.NAME}(ptr %range.p, i64 %rows.bytes, <16 x i32> %several.all)
  br i1 %rows.same, label %half.done, label %loop
loop:
  br label %each.access
"""

#: Whether flags of reads are set; whether nobody else has touched what is touched, or only read it, and note it.
_LOOK = f"""
  br i1 %is.flagged, label %flags.read, label %owner.access
flags.read:
  br i1 %point, label %flags.point, label %flags.row
flags.point:
  %flag = load i32, ptr %kept.p, align 1
  %flag.set = icmp eq i32 %flag, {FLAGS_SET}
  br i1 %flag.set, label %next.access, label %refused
flags.row:
  %row.of.flags = call <16 x i32> @{_LOAD}(ptr align 1 %kept.p, <16 x i1> %mine, <16 x i32> {_SET_ALL})
  %flags.not = icmp ne <16 x i32> %row.of.flags, {_SET_ALL}
  %flags.bits = bitcast <16 x i1> %flags.not to i16
  %flags.set = icmp eq i16 %flags.bits, 0
  br i1 %flags.set, label %next.access, label %refused
owner.access:
  %o.me = phi <16 x i32> [ %me.kept, %each.access ]
  br i1 %point, label %one, label %row.of
one:
  %one.word = load i32, ptr %kept.p
  %one.known = icmp eq i32 %one.word, %several.kept
  br i1 %one.known, label %next.access, label %one.look
one.look:
  %one.epoch = and i32 %one.word, %epoch.mask.kept
  %one.fresh = icmp eq i32 %one.epoch, %prefix.kept
  %one.written = and i32 %one.word, %written.kept
  %one.any = icmp ne i32 %one.written, 0
  %one.changed = and i1 %one.fresh, %one.any
  br i1 %one.changed, label %refused, label %one.note
one.note:
  store i32 %several.kept, ptr %kept.p
  br label %next.access
row.of:
  %word = call <16 x i32> @{_LOAD}(ptr align 4 %kept.p, <16 x i1> %mine, <16 x i32> %written.me.kept)
  %is.several = icmp eq <16 x i32> %word, %several.all.kept
  %is.read = icmp eq <16 x i32> %word, %o.me
  %is.written = icmp eq <16 x i32> %word, %written.me.kept
  %known.read.some = or <16 x i1> %is.several, %is.read
  %known.read = or <16 x i1> %known.read.some, %is.written
  %known = select i1 %changes, <16 x i1> %is.written, <16 x i1> %known.read
  %known.bits = bitcast <16 x i1> %known to i16
  %all.known = icmp eq i16 %known.bits, -1
  br i1 %all.known, label %next.access, label %row.look
row.look:
  %prefix.here = splat32x16 %prefix.kept
  %epoch.mask.here = splat32x16 %epoch.mask.kept
  %who.mask.here = xor <16 x i32> %epoch.mask.here, splat (i32 -1)
  %written.here = splat32x16 %written.kept
  %with.epochs = icmp ne i32 %epoch.mask.kept, 0
  %alike = select i1 %with.epochs, i32 ALIKE_SHARED, i32 0
  %unalike = xor i32 %alike, -1
  %unalike.here = splat32x16 %unalike
  %word.plain = and <16 x i32> %word, %unalike.here
  %mine.written = icmp eq <16 x i32> %word.plain, %written.me.kept
  %word.epoch = and <16 x i32> %word, %epoch.mask.here
  %fresh = icmp eq <16 x i32> %word.epoch, %prefix.here
  %word.who = and <16 x i32> %word, %who.mask.here
  %none.who = icmp eq <16 x i32> %word.who, zeroinitializer
  %stale = xor <16 x i1> %fresh, splat (i1 true)
  %nobody.yet = or <16 x i1> %stale, %none.who
  %mine.read = or <16 x i1> %nobody.yet, %is.read
  %alone = or <16 x i1> %mine.read, %mine.written
  %word.written = and <16 x i32> %word, %written.here
  %unwritten = icmp eq <16 x i32> %word.written, zeroinitializer
  %read.good = or <16 x i1> %alone, %unwritten
  %good = select i1 %changes, <16 x i1> %alone, <16 x i1> %read.good
  %good.bits = bitcast <16 x i1> %good to i16
  %all.good = icmp eq i16 %good.bits, -1
  br i1 %all.good, label %row.note, label %refused
row.note:
  %now.reads = select <16 x i1> %mine.read, <16 x i32> %o.me, <16 x i32> %several.all.kept
  %now.read = select <16 x i1> %mine.written, <16 x i32> %written.me.kept, <16 x i32> %now.reads
  %now = select i1 %changes, <16 x i32> %written.me.kept, <16 x i32> %now.read
  call void @{_STORE}(<16 x i32> %now, ptr align 4 %kept.p, <16 x i1> %mine)
  br label %next.access
"""

#: Set flags of what is written.
_NOTE = f"""
  call void @{_STORE}(<16 x i32> {_SET_ALL}, ptr align 1 %kept.p, <16 x i1> %mine)
  br label %next.access
"""

_HELPERS = f"""
{same_words.DECLARATION}
declare void @{_STORE}(<16 x i32>, ptr, <16 x i1>)
"""

#: What the loop over accesses has of the words' owner: with flags, of no worth.
_KEPT_VALUES = {
    "me.kept": ("<16 x i32>", "me"), "written.me.kept": ("<16 x i32>", "me.written"),
    "several.all.kept": ("<16 x i32>", "several.all"), "several.kept": ("i32", "several.now"),
    "prefix.kept": ("i32", "prefix"), "epoch.mask.kept": ("i32", "epoch.mask"), "written.kept": ("i32", "written"),
}  # fmt: skip


def _begin() -> str:
    """What comes before the loop over accesses; its values as phis, since flags have none of them."""
    ways = ("points.read", "rows", "rows.read")
    phis = "".join(
        f"  %{name} = phi {kind} [ poison, %flags.known ], " + ", ".join(f"[ %{value}, %{way} ]" for way in ways) + "\n"
        for name, (kind, value) in _KEPT_VALUES.items()
    )
    return (_COMPLETE + _OWNER).replace("loop:\n", "loop:\n" + phis)


_SETS = """
  br i1 %is.flagged, label %loop, label %next
loop:
  br label %each.access
"""

TEXT = _ROW + _FIND + _HELPERS + same_words.TEXT + _groups(KEPT, _begin(), _LOOK) + _groups(SET, _SETS, _NOTE)
