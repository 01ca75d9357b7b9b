"""Native service for tcgen05.mma: a product that has been issued before, by the same CTA and with the same operands.

A worker has a table of these (`structures.ISSUED`), by a hash of the event and the operands. A row is valid as long as
the stamps of the tensor memories that it works on are what they were: they change with allocations and when a CTA ends.
"""

from __future__ import annotations

from ptxtools.native.code.emitter import expand
from ptxtools.native.code.structures import ISSUED

from .steps import RUN

PRODUCT = "tcgen05_product"
NAMES = (PRODUCT,)
#: Rows of the table; rows looked at for one product; operands that a product has at most.
ROWS, LOOKS, OPERANDS = 128, 8, 16
TABLE_BYTES = ROWS * ISSUED.size
#: Types of operands: a predicate, 32 bits, 64 bits.
KINDS = {"pred": 0, "b32": 1, "b64": 2}
_MULTIPLIER, _SHIFT = 0x9E3779B97F4A7C15, 64 - ROWS.bit_length() + 1
_LONG = (1 << 64) - 1

_PRODUCT = f"""
service @{PRODUCT} {{
  %given = alloca [{OPERANDS} x i64], align 8
  %rows = get ctx.scratch
  %lent = icmp ne ptr %rows, null
  br i1 %lent, label %single, label %slow
single:                                           ; one thread issues
  %rest.lanes = sub i32 %mask, 1
  %others = and i32 %mask, %rest.lanes
  %alone = icmp eq i32 %others, 0
  br i1 %alone, label %begin, label %slow
begin:
  %lane = call i32 @llvm.cttz.i32(i32 %mask, i1 false)
  %count = get tensor.operands
  %slots = get tensor.slots
  %kinds = get tensor.kinds
  %seed = ptrtoint ptr %event to i64
  br label %operand
operand:
  %i = phi i32 [0, %begin], [%i.next, %hashed]
  %hash = phi i64 [%seed, %begin], [%hash.next, %hashed]
  %more = icmp ult i32 %i, %count
  br i1 %more, label %read, label %find
read:
  %slot.p = getelementptr i32, ptr %slots, i32 %i
  %slot = load i32, ptr %slot.p
  %kind.p = getelementptr i32, ptr %kinds, i32 %i
  %kind = load i32, ptr %kind.p
  %place = getelementptr i8, ptr %fp, i32 %slot
  switch i32 %kind, label %wide [ i32 {KINDS["pred"]}, label %flag i32 {KINDS["b32"]}, label %word ]
flag:
  %flags = load i32, ptr %place
  %moved = lshr i32 %flags, %lane
  %bit = and i32 %moved, 1
  %bit64 = zext i32 %bit to i64
  br label %hashed
word:
  %word.p = getelementptr i32, ptr %place, i32 %lane
  %word.v = load i32, ptr %word.p
  %word64 = zext i32 %word.v to i64
  br label %hashed
wide:
  %wide.p = getelementptr i64, ptr %place, i32 %lane
  %wide.v = load i64, ptr %wide.p
  br label %hashed
hashed:
  %value = phi i64 [%bit64, %flag], [%word64, %word], [%wide.v, %wide]
  %given.p = getelementptr i64, ptr %given, i32 %i
  store i64 %value, ptr %given.p
  %mixed = xor i64 %hash, %value
  %hash.next = mul i64 %mixed, {_MULTIPLIER - (1 << 64)}
  %i.next = add i32 %i, 1
  br label %operand
find:
  %start = lshr i64 %hash, {_SHIFT}
  %cta = get warp.cta
  %id = get cta.id
  br label %look
look:
  %n = phi i64 [0, %find], [%n.next, %other]
  %at = add i64 %start, %n
  %index = and i64 %at, {ROWS - 1}
  %offset = mul i64 %index, {ISSUED.size}
  %row = getelementptr i8, ptr %rows, i64 %offset
  %cell = get issued.cell of %row
  %row.id = get issued.cta of %row
  %same.cell = icmp eq ptr %cell, %event
  %same.cta = icmp eq i64 %row.id, %id
  %same = and i1 %same.cell, %same.cta
  br i1 %same, label %compare, label %other
compare:
  %values = addr issued.values of %row
  br label %each
each:
  %j = phi i32 [0, %compare], [%j.next, %equal]
  %left = icmp ult i32 %j, %count
  br i1 %left, label %check, label %found
check:
  %known.p = getelementptr i64, ptr %values, i32 %j
  %known = load i64, ptr %known.p
  %own.p = getelementptr i64, ptr %given, i32 %j
  %own = load i64, ptr %own.p
  %agrees = icmp eq i64 %known, %own
  br i1 %agrees, label %equal, label %other
equal:
  %j.next = add i32 %j, 1
  br label %each
other:
  %n.next = add i64 %n, 1
  %again = icmp ult i64 %n.next, {LOOKS}
  br i1 %again, label %look, label %slow
found:
  %stamp.p = get issued.stamp of %row
  %stamp = load i32, ptr %stamp.p
  %seen = get issued.seen of %row
  %peer.p = get issued.peer of %row
  %peer = load i32, ptr %peer.p
  %met = get issued.met of %row
  %fresh.own = icmp eq i32 %stamp, %seen
  %fresh.peer = icmp eq i32 %peer, %met
  %fresh = and i1 %fresh.own, %fresh.peer
  br i1 %fresh, label %work, label %slow
work:
  %steps = get issued.steps of %row
  %steps.count = get issued.count of %row
  %done = call i32 @{RUN}(ptr %steps, i64 %steps.count)
  %well = icmp ne i32 %done, 0
  %answer = select i1 %well, i32 SERVED_DONE, i32 SERVED_NOT
  ret i32 %answer
slow:
  ret i32 SERVED_NOT
}}
"""


def functions() -> list[str]:
    """IR of the service."""
    return [expand(_PRODUCT)]


def row_of(cell: int, values: list[int]) -> int:
    """The first row to look at for an event's cell and operands."""
    found = cell
    for value in values:
        found = (found ^ value) * _MULTIPLIER & _LONG
    return found >> _SHIFT
