"""Native services for wgmma: a product, commit_group and wait_group without leaving the loop (9.7.15).

Each is called with the worker, the warp, its frame, the lanes, and the cell of its event, which a service has filled
(`structures.Payload`). It answers SERVED_DONE, SERVED_LATER (others first, then again), or SERVED_NOT: then the service
does the work, which also knows what is wrong with it.
"""

from __future__ import annotations

from ptxtools.machine.issued import KEYS, MARKS, PATIENCE, WARPS
from ptxtools.machine.products import GROUP
from ptxtools.native.code.emitter import expand
from ptxtools.native.code.structures import KEPT, TABLES

from .blocks import BLOCK, HIGHEST
from .converted import NO_BASE
from .factors import NOT_FINITE

#: Largest K and N of a product of elements of 8 bits and more (9.7.15.2); a sparse A has stored half of K.
_K, _N = 64, 256
#: Matrices B that a worker keeps: all four warps of a warpgroup read what the first of them has arranged.
_KEPT = 8
#: Parts of the scratch memory, in bytes, as `factors` lays them out (f32, i16): values and exponents of the warp's rows
#: of A, of a sparse A as it is stored, and of A with each row four times; who the kept B are of (`tiles.kept`); these;
#: and for `fused`, of A and of the kept B: f64, exponents, lowest bits.
_PARTS = (
    4 * _K * GROUP, 2 * _K * BLOCK, 4 * _K // 2 * GROUP, 2 * _K // 2 * BLOCK, 4 * _K * BLOCK, 2 * _K * BLOCK,
    KEPT.size * _KEPT, 4 * _K * _N * _KEPT, 2 * _K * _N * _KEPT,
    8 * _K * 2 * GROUP, 2 * _K * BLOCK, 2 * _K * BLOCK, 8 * _K * _N * _KEPT, _K * _N * _KEPT, _K * _N * _KEPT,
)  # fmt: skip
(
    _A, _A_EXPONENTS, _STORED, _STORED_EXPONENTS, _FOUR, _FOUR_EXPONENTS, _OWNERS, _B, _B_EXPONENTS,
    _OWN, _OWN_EXPONENTS, _OWN_LOWEST, _COMMON, _COMMON_EXPONENTS, _COMMON_LOWEST,
) = (sum(_PARTS[:i]) for i in range(len(_PARTS)))  # fmt: skip
SCRATCH_BYTES = sum(_PARTS)
#: Bits of a descriptor that hold the address's multiple of 1024; where the hash of the others begins.
HIGH, _MULTIPLIER, _SHIFT = 0x3FC0, 0x9E3779B97F4A7C15, 64 - TABLES.bit_length() + 1

NAMES = ("wgmma_product", "wgmma_commit", "wgmma_wait")
#: What these call.
CALLED = ("table_of", "disagree")

#: A warp's number in its warpgroup, and whether the warpgroup is whole; needs the labels "complete" and "slow".
_PLACE = f"""
  %number = get warp.id
  %place = and i32 %number, {WARPS - 1}
  %first = sub i32 %number, %place
  %last = add i32 %first, {WARPS - 1}
  %warps = get ctx.warps
  %there = icmp ult i32 %last, %warps
  %everybody = icmp eq i32 %mask, -1
  %whole = and i1 %there, %everybody
  br i1 %whole, label %complete, label %slow
"""

#: The table for a descriptor, if it is known and the matrix lies inside of the CTA's shared memory; else null.
TABLE_OF = f"""
define internal ptr @table_of(ptr %ctx, ptr %tables, i64 %code) #1 {{
  %high = and i64 %code, {HIGH}
  %key = xor i64 %code, %high
  %mixed = mul i64 %key, {_MULTIPLIER - (1 << 64)}
  %start = lshr i64 %mixed, {_SHIFT}
  br label %look
look:
  %i = phi i64 [0, %0], [%i.next, %other]
  %at = add i64 %start, %i
  %row = and i64 %at, {TABLES - 1}
  %offset = mul i64 %row, TAB_BYTES
  %tab = getelementptr i8, ptr %tables, i64 %offset
  %places.p = addr tab.places
  %places = load atomic ptr, ptr %places.p acquire, align 8
  %empty = icmp eq ptr %places, null
  br i1 %empty, label %unknown, label %compare
compare:
  %known = get tab.descriptor
  %same = icmp eq i64 %known, %key
  br i1 %same, label %found, label %other
other:
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, {TABLES}
  br i1 %more, label %look, label %unknown
found:
  %end = get tab.end
  %base = shl i64 %high, 4
  %reach = add i64 %base, %end
  %size = get ctx.shared_bytes
  %size64 = zext i32 %size to i64
  %inside = icmp ule i64 %reach, %size64
  %answer = select i1 %inside, ptr %tab, ptr null
  ret ptr %answer
unknown:
  ret ptr null
}}
"""

#: The products issued by warp %i of the warpgroup; %place is this warp's number, %bytes the distance of two warps.
_THEIRS = """
  %apart = sub i32 %i, %place
  %apart64 = sext i32 %apart to i64
  %distance = mul i64 %apart64, %bytes
  %other = getelementptr i8, ptr %warp, i64 %distance
  %theirs = get warp.wg_issued of %other
"""

#: Whether another warp of the warpgroup has issued the same product with another key.
_DISAGREE = f"""
define internal i1 @disagree(ptr %ctx, ptr %warp, i32 %place, i32 %issued, i64 %key) #1 {{
  %bytes = get ctx.warp_bytes
  %index = and i32 %issued, {KEYS - 1}
  %index64 = zext i32 %index to i64
  br label %each
each:
  %i = phi i32 [0, %0], [%i.next, %next]
  {_THEIRS}
  %ahead = sub i32 %theirs, %issued
  %ahead.less = sub i32 %ahead, 1
  %recent = icmp ult i32 %ahead.less, {KEYS}
  br i1 %recent, label %compare, label %next
compare:
  %keys = addr warp.wg_keys of %other
  %entry.p = getelementptr i64, ptr %keys, i64 %index64
  %entry = load i64, ptr %entry.p
  %same = icmp eq i64 %entry, %key
  br i1 %same, label %next, label %differs
next:
  %i.next = add i32 %i, 1
  %more = icmp ult i32 %i.next, {WARPS}
  br i1 %more, label %each, label %agrees
agrees:
  ret i1 false
differs:
  ret i1 true
}}
"""

_PRODUCT = f"""
service @wgmma_product {{
  {_PLACE}
complete:
  %scratch = get ctx.scratch
  %lent = icmp ne ptr %scratch, null
  br i1 %lent, label %ready, label %slow
ready:
  %b.slot = get wgmma.b_slot
  %b.p = getelementptr i8, ptr %fp, i32 %b.slot
  %b.code = load i64, ptr %b.p
  %b.tables = get wgmma.tables_b
  %b.entry = call ptr @table_of(ptr %ctx, ptr %b.tables, i64 %b.code)
  %b.known = icmp ne ptr %b.entry, null
  br i1 %b.known, label %agree, label %slow
agree:
  %layout = get wgmma.key
  %key = xor i64 %b.code, %layout
  %issued = get warp.wg_issued
  %bad = call i1 @disagree(ptr %ctx, ptr %warp, i32 %place, i32 %issued, i64 %key)
  br i1 %bad, label %slow, label %where
where:
  %cta = get warp.cta
  %shared = get cta.shared
  %b.high = and i64 %b.code, {HIGH}
  %b.start = shl i64 %b.high, 4
  %b.base = getelementptr i8, ptr %shared, i64 %b.start
  %b.places = get tab.places of %b.entry
  %registers = get wgmma.registers
  %in.memory = icmp eq ptr %registers, null
  br i1 %in.memory, label %memory, label %factors
memory:
  %a.slot = get wgmma.a_slot
  %a.p = getelementptr i8, ptr %fp, i32 %a.slot
  %a.code = load i64, ptr %a.p
  %a.tables = get wgmma.tables_a
  %a.entry = call ptr @table_of(ptr %ctx, ptr %a.tables, i64 %a.code)
  %a.known = icmp ne ptr %a.entry, null
  br i1 %a.known, label %part, label %slow
part:                                             ; the warp's 16 rows
  %a.high = and i64 %a.code, {HIGH}
  %a.start = shl i64 %a.high, 4
  %a.shared = getelementptr i8, ptr %shared, i64 %a.start
  %a.all = get tab.places of %a.entry
  %a.bytes = get wgmma.a_bytes
  %a.skip = mul i32 %place, %a.bytes
  %a.part = getelementptr i8, ptr %a.all, i32 %a.skip
  br label %factors
factors:
  %a.base = phi ptr [%fp, %where], [%a.shared, %part]
  %a.places = phi ptr [%registers, %where], [%a.part, %part]
  %k = get wgmma.k
  %k64 = zext i32 %k to i64
  %a = getelementptr i8, ptr %scratch, i64 {_A}
  %a.exponents = getelementptr i8, ptr %scratch, i64 {_A_EXPONENTS}
  %take.a = get wgmma.factor_a
  %scatter = get wgmma.scatter
  %dense = icmp eq ptr %scatter, null
  br i1 %dense, label %all, label %some
all:
  %all.most = call i32 %take.a(ptr %a.base, ptr %a.places, i64 1, i64 %k64, ptr %a, ptr %a.exponents)
  br label %second
some:                                             ; half of the columns are stored
  %stored.k = lshr i64 %k64, 1
  %stored = getelementptr i8, ptr %scratch, i64 {_STORED}
  %stored.exponents = getelementptr i8, ptr %scratch, i64 {_STORED_EXPONENTS}
  %some.most = call i32 %take.a(ptr %a.base, ptr %a.places, i64 1, i64 %stored.k, ptr %stored, ptr %stored.exponents)
  %words.slot = get wgmma.words_slot
  %words = getelementptr i8, ptr %fp, i32 %words.slot
  %fields.places = get wgmma.words
  %fields = get wgmma.fields
  call void %scatter(ptr %stored, ptr %stored.exponents, i64 1, i64 %stored.k, ptr %words, ptr %fields.places,
    ptr %fields, ptr %a, ptr %a.exponents)
  br label %second
second:
  %a.most = phi i32 [%all.most, %all], [%some.most, %some]
  %turn = add i32 %issued, %first
  %kept.number = and i32 %turn, {_KEPT - 1}
  %kept.number64 = zext i32 %kept.number to i64
  %kept.offset = mul i64 %kept.number64, {KEPT.size}
  %owners = getelementptr i8, ptr %scratch, i64 {_OWNERS}
  %kept = getelementptr i8, ptr %owners, i64 %kept.offset
  %b.offset = mul i64 %kept.number64, {4 * _K * _N}
  %b.all = getelementptr i8, ptr %scratch, i64 {_B}
  %b = getelementptr i8, ptr %b.all, i64 %b.offset
  %b.half = lshr i64 %b.offset, 1
  %b.powers = getelementptr i8, ptr %scratch, i64 {_B_EXPONENTS}
  %b.exponents = getelementptr i8, ptr %b.powers, i64 %b.half
  %cta.id = get cta.id
  %kept.id = get kept.cta of %kept
  %kept.first = get kept.first of %kept
  %kept.issued = get kept.issued of %kept
  %kept.code = get kept.code of %kept
  %kept.cell = get kept.cell of %kept
  %kept.most = get kept.most of %kept
  %kept.base = get kept.base of %kept
  %b.all.wide = getelementptr i8, ptr %scratch, i64 {_COMMON}
  %b.wide.offset = shl i64 %b.offset, 1
  %b.wide = getelementptr i8, ptr %b.all.wide, i64 %b.wide.offset
  %b.bytes.offset = lshr i64 %b.offset, 2
  %b.all.bytes = getelementptr i8, ptr %scratch, i64 {_COMMON_EXPONENTS}
  %b.powers.bytes = getelementptr i8, ptr %b.all.bytes, i64 %b.bytes.offset
  %b.all.lowest = getelementptr i8, ptr %scratch, i64 {_COMMON_LOWEST}
  %b.lowest = getelementptr i8, ptr %b.all.lowest, i64 %b.bytes.offset
  %fused = get wgmma.fused
  %common = get wgmma.common
  %can.fuse = icmp ne ptr %fused, null
  %same.id = icmp eq i64 %cta.id, %kept.id
  %same.first = icmp eq i32 %first, %kept.first
  %same.issued = icmp eq i32 %issued, %kept.issued
  %same.code = icmp eq i64 %b.code, %kept.code
  %same.cell = icmp eq ptr %event, %kept.cell
  %same.1 = and i1 %same.id, %same.first
  %same.2 = and i1 %same.issued, %same.code
  %same.3 = and i1 %same.1, %same.2
  %same.all = and i1 %same.3, %same.cell
  br i1 %same.all, label %both, label %arrange
arrange:                                          ; another warp may have done it before
  %groups = get wgmma.groups
  %groups64 = zext i32 %groups to i64
  %take.b = get wgmma.factor_b
  %new.most = call i32 %take.b(ptr %b.base, ptr %b.places, i64 %groups64, i64 %k64, ptr %b, ptr %b.exponents)
  set kept.cta, %cta.id of %kept
  set kept.first, %first of %kept
  set kept.issued, %issued of %kept
  set kept.code, %b.code of %kept
  set kept.cell, %event of %kept
  set kept.most, %new.most of %kept
  br i1 %can.fuse, label %convert, label %both
convert:
  %new.base = call i32 %common(ptr %b, ptr %b.exponents, i64 %groups64, i64 %k64, i32 %new.most, i32 0, ptr %b.wide,
    ptr %b.powers.bytes, ptr %b.lowest)
  set kept.base, %new.base of %kept
  br label %both
both:
  %b.most = phi i32 [%kept.most, %second], [%new.most, %arrange], [%new.most, %convert]
  %b.span = phi i32 [%kept.base, %second], [{NO_BASE}, %arrange], [%new.base, %convert]
  %a.less = icmp slt i32 %a.most, %b.most
  %most = select i1 %a.less, i32 %b.most, i32 %a.most
  %finite = icmp slt i32 %most, {NOT_FINITE}
  br i1 %finite, label %multiply, label %slow
multiply:
  %four = getelementptr i8, ptr %scratch, i64 {_FOUR}
  %four.exponents = getelementptr i8, ptr %scratch, i64 {_FOUR_EXPONENTS}
  %sign = get wgmma.sign
  %spread = get wgmma.expand
  %scale.slot = get wgmma.scale_slot
  %scale.p = getelementptr i8, ptr %fp, i32 %scale.slot
  %scale = load i32, ptr %scale.p
  %is.flag = get wgmma.flag
  %not.flag = icmp eq i32 %is.flag, 0
  %bits = select i1 %not.flag, i32 -1, i32 1
  %scale.own = and i32 %scale, %bits
  %zero = icmp eq i32 %scale.own, 0
  %keep = select i1 %zero, i32 0, i32 -1
  %force = icmp sgt i32 %most, {HIGHEST}
  %offsets = get wgmma.offsets
  %columns = get wgmma.columns
  %columns64 = zext i32 %columns to i64
  %fraction = get wgmma.fraction
  %cut = get wgmma.mask
  %odd = get wgmma.odd
  %least = get wgmma.least
  %form = get wgmma.form
  %product = get wgmma.product
  %b.fits = icmp ne i32 %b.span, {NO_BASE}
  %try.1 = and i1 %can.fuse, %b.fits
  %near = xor i1 %force, true
  %try = and i1 %try.1, %near
  br i1 %try, label %fit, label %usual
fit:
  %a.wide = getelementptr i8, ptr %scratch, i64 {_OWN}
  %a.powers = getelementptr i8, ptr %scratch, i64 {_OWN_EXPONENTS}
  %a.lowest = getelementptr i8, ptr %scratch, i64 {_OWN_LOWEST}
  %own = get wgmma.own
  %a.span = call i32 %own(ptr %a, ptr %a.exponents, i64 1, i64 %k64, i32 %a.most, i32 %sign, ptr %a.wide, ptr %a.powers,
    ptr %a.lowest)
  %a.fits = icmp ne i32 %a.span, {NO_BASE}
  br i1 %a.fits, label %fuse, label %usual
fuse:
  %base = add i32 %a.span, %b.span
  %pairs = lshr i64 %columns64, 2
  call void %fused(ptr %a.wide, ptr %a.powers, ptr %a.lowest, ptr %b.wide, ptr %b.powers.bytes, ptr %b.lowest, ptr %fp,
    i64 %pairs, i64 %k64, i32 %base, ptr %offsets, ptr %product, ptr %a, ptr %a.exponents, ptr %b, ptr %b.exponents,
    ptr %spread, i32 %sign, ptr %four, ptr %four.exponents, i32 %fraction, i64 %cut, i64 %odd, i32 %least, i32 %keep,
    i32 %form)
  br label %issue
usual:
  call void %spread(ptr %a, ptr %a.exponents, i64 %k64, i32 %sign, ptr %four, ptr %four.exponents)
  call void %product(ptr %four, ptr %four.exponents, ptr %b, ptr %b.exponents, ptr %offsets, ptr %fp, i64 %columns64,
    i64 %k64, i32 %fraction, i64 %cut, i64 %odd, i32 %least, i32 %keep, i32 %form, i1 %force)
  br label %issue
issue:
  %keys = addr warp.wg_keys
  %index = and i32 %issued, {KEYS - 1}
  %index64 = zext i32 %index to i64
  %key.p = getelementptr i64, ptr %keys, i64 %index64
  store i64 %key, ptr %key.p
  %issued.new = add i32 %issued, 1
  set warp.wg_issued, %issued.new
  ret i32 SERVED_DONE
slow:
  ret i32 SERVED_NOT
}}
"""

_COMMIT = f"""
service @wgmma_commit {{
  {_PLACE}
complete:
  %watched = get warp.wg_watched
  %quiet = icmp eq i32 %watched, 0
  br i1 %quiet, label %mark, label %slow
mark:
  %issued = get warp.wg_issued
  %commits = get warp.wg_commits
  %index = and i32 %commits, {MARKS - 1}
  %mark.p = item warp.wg_marks, %index
  store i32 %issued, ptr %mark.p
  %commits.new = add i32 %commits, 1
  set warp.wg_commits, %commits.new
  ret i32 SERVED_DONE
slow:
  ret i32 SERVED_NOT
}}
"""

_WAIT = f"""
service @wgmma_wait {{
  {_PLACE}
complete:
  %tries = get warp.wg_tries
  %patient = icmp ule i32 %tries, {PATIENCE}
  br i1 %patient, label %count, label %slow
count:
  %n.slot = get wait.n_slot
  %n.p = getelementptr i8, ptr %fp, i32 %n.slot
  %n = load i32, ptr %n.p
  %commits = get warp.wg_commits
  %few = icmp ule i32 %commits, %n
  br i1 %few, label %done, label %more
more:
  %usual = icmp ult i32 %n, {MARKS}
  br i1 %usual, label %mark, label %slow
mark:
  %back = sub i32 %commits, %n
  %back.one = sub i32 %back, 1
  %index = and i32 %back.one, {MARKS - 1}
  %mark.p = item warp.wg_marks, %index
  %wanted = load i32, ptr %mark.p
  %bytes = get ctx.warp_bytes
  br label %each
each:
  %i = phi i32 [0, %mark], [%i.next, %next]
  {_THEIRS}
  %there.yet = icmp uge i32 %theirs, %wanted
  br i1 %there.yet, label %next, label %others
next:
  %i.next = add i32 %i, 1
  %again = icmp ult i32 %i.next, {WARPS}
  br i1 %again, label %each, label %issued
issued:
  %before = get warp.wg_done
  %behind = icmp ult i32 %before, %wanted
  %now = select i1 %behind, i32 %wanted, i32 %before
  set warp.wg_done, %now
  br label %done
others:                                           ; they may issue it while this warp gives way
  %tries.new = add i32 %tries, 1
  set warp.wg_tries, %tries.new
  %enough = icmp ugt i32 %tries.new, {PATIENCE}
  %answer = select i1 %enough, i32 SERVED_NOT, i32 SERVED_LATER
  ret i32 %answer
done:
  set warp.wg_tries, 0
  ret i32 SERVED_DONE
slow:
  ret i32 SERVED_NOT
}}
"""


def functions() -> list[str]:
    """IR of the services and of the functions that they call; used by `rows.module`."""
    return [expand(part) for part in (TABLE_OF, _DISAGREE, _PRODUCT, _COMMIT, _WAIT)]


def slot_of(descriptor: int) -> tuple[int, int]:
    """The key of a descriptor in a table of tables, and the first row to look at."""
    key = descriptor & ~HIGH
    return key, (key * _MULTIPLIER & (1 << 64) - 1) >> _SHIFT
