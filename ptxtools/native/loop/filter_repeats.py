"""Parts of the services before accesses and meetings: what an observer has noted needs not be told again
(`machine.filters.Repeats`).

`ACCESSES` begins at `repeats`, with the addresses %a of the lanes %m, and ends at `noted` or `ask`; `WAITS` begins at
`repeats`, with the address %mb.at of an mbarrier where all lanes %m are and its word %mb.found, and ends at `fences` or
`ask`.
"""

from __future__ import annotations

from ptxtools.machine import filters
from ptxtools.machine.residents import REPEAT_FACTOR, REPEAT_ROWS, REPEAT_SHIFT
from ptxtools.native.code.structures import REPEAT
from ptxtools.native.code.timed import MOMENT
from ptxtools.program.mbarrier import PHASE_SHIFT

#: The factor in two's complement, as LLVM writes it.
_FACTOR = REPEAT_FACTOR - (1 << 64)


def _row(number: str, cta: str) -> str:
    """%repeat: the row of an event of a CTA; goes to `repeat.where` if it is that of these lanes, else to `ask`."""
    return f"""
  %repeat.number = get {number}
  %repeat.warp = get warp.id
  %repeat.cta = get cta.id of {cta}
  %repeat.warp64 = zext i32 %repeat.warp to i64
  %repeat.ctas = shl i64 %repeat.cta, 5
  %repeat.who = add i64 %repeat.ctas, %repeat.warp64
  %repeat.whose = shl i64 %repeat.who, {REPEAT_SHIFT}
  %repeat.number64 = zext i32 %repeat.number to i64
  %repeat.key = add i64 %repeat.whose, %repeat.number64
  %repeat.mixed = mul i64 %repeat.key, {_FACTOR}
  %repeat.row = lshr i64 %repeat.mixed, {64 - REPEAT_ROWS.bit_length() + 1}
  %repeat.at = mul i64 %repeat.row, {REPEAT.size}
  %repeat.rows = get ctx.repeats
  %repeat = getelementptr i8, ptr %repeat.rows, i64 %repeat.at
  %repeat.found = get repeat.key of %repeat
  %repeat.mask = get repeat.mask of %repeat
  %repeat.m = zext i32 %m to i64
  %repeat.here = icmp eq i64 %repeat.found, %repeat.key
  %repeat.who.same = icmp eq i64 %repeat.mask, %repeat.m
  %repeat.noted = and i1 %repeat.here, %repeat.who.same
  br i1 %repeat.noted, label %repeat.noted.here, label %ask
repeat.noted.here:                                ; it has not joined others since, without Python
  %repeat.clock = get ctx.clocks
  %repeat.untimed = icmp eq ptr %repeat.clock, null
  br i1 %repeat.untimed, label %repeat.where, label %repeat.timed
repeat.timed:
  %repeat.per = get clocks.per_cta of %repeat.clock
  %repeat.first = mul i64 %repeat.cta, %repeat.per
  %repeat.me = add i64 %repeat.first, %repeat.warp64
  %repeat.times = get clocks.times of %repeat.clock
  %repeat.moment.at = mul i64 %repeat.me, {MOMENT.size}
  %repeat.moment = getelementptr i8, ptr %repeat.times, i64 %repeat.moment.at
  %repeat.told = get moment.told of %repeat.moment
  %repeat.known = icmp eq i32 %repeat.told, 0
  br i1 %repeat.known, label %repeat.where, label %ask
"""


ACCESSES = f"""
repeats:
  %repeat.cta.p = get warp.cta
{_row("access.number", "%repeat.cta.p")}repeat.where:
  %repeat.addresses = addr repeat.addresses of %repeat
  %repeat.places = load <32 x i64>, ptr %repeat.addresses, align 8
  %repeat.same = icmp eq <32 x i64> %repeat.places, %a
  %repeat.same.bits = bits %repeat.same
  %repeat.own = and i32 %repeat.same.bits, %m
  %repeat.all = icmp eq i32 %repeat.own, %m
  br i1 %repeat.all, label %noted, label %ask
"""

WAITS = f"""
repeats:
  %repeats.rule = and i32 %rule, {filters.REPEATS}
  %repeats.none = icmp eq i32 %repeats.rule, 0
  br i1 %repeats.none, label %fences, label %repeat.any
repeat.any:
{_row("meeting.number", "%mb.cta")}repeat.where:                                     ; the same phase, still open
  %repeat.addresses = addr repeat.addresses of %repeat
  %repeat.place = load i64, ptr %repeat.addresses
  %repeat.parity = get repeat.parity of %repeat
  %repeat.there = icmp eq i64 %repeat.place, %mb.at
  %repeat.phase = lshr i64 %mb.found, {PHASE_SHIFT}
  %repeat.open = icmp eq i64 %repeat.phase, %repeat.parity
  %repeat.waits = and i1 %repeat.there, %repeat.open
  %repeat.slot = get meeting.wanted
  %repeat.p = getelementptr i8, ptr %fp, i32 %repeat.slot
  %repeat.states = get meeting.states
  %repeat.parities = icmp eq i32 %repeat.states, 0
  br i1 %repeat.waits, label %repeat.wanted, label %ask
repeat.wanted:
  br i1 %repeat.parities, label %repeat.by.parity, label %repeat.by.state
repeat.by.parity:
  %repeat.given32 = load <32 x i32>, ptr %repeat.p, align 64
  %repeat.bit32 = and <32 x i32> %repeat.given32, splat (i32 1)
  %repeat.parity32 = trunc i64 %repeat.parity to i32
  %repeat.parity32.all = splat32 %repeat.parity32
  %repeat.agree32 = icmp eq <32 x i32> %repeat.bit32, %repeat.parity32.all
  br label %repeat.judge
repeat.by.state:
  %repeat.given64 = load <32 x i64>, ptr %repeat.p, align 64
  %repeat.bit64 = lshr <32 x i64> %repeat.given64, splat (i64 {PHASE_SHIFT})
  %repeat.parity.all = splat64 %repeat.parity
  %repeat.agree64 = icmp eq <32 x i64> %repeat.bit64, %repeat.parity.all
  br label %repeat.judge
repeat.judge:
  %repeat.agree = phi <32 x i1> [ %repeat.agree32, %repeat.by.parity ], [ %repeat.agree64, %repeat.by.state ]
  %repeat.agree.bits = bits %repeat.agree
  %repeat.own = and i32 %repeat.agree.bits, %m
  %repeat.all = icmp eq i32 %repeat.own, %m
  br i1 %repeat.all, label %fences, label %ask
"""
