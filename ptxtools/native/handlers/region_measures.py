"""Measures of the accesses of regions (`regions`), whose lanes, half a warp at a time, stay within 16 words.

What is measured is the same as one by one (`measures`): such a half lies in three sectors at most, and no two of its
words are in one bank.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ptxtools.machine.measures import BANKS, SECTOR_BYTES
from ptxtools.native.code.handler import Handler
from ptxtools.native.code.runs import Step
from ptxtools.program.details import Measured

from . import counts
from .parts import half
from .patterns import SIDES, WORDS, Pattern

#: The pattern of a step's access, and the address of each half's first lane.
Found = Callable[[Step], tuple[Pattern, list[str]]]

_VECTOR = f"<{WORDS} x i32>"
_SECTOR_WORDS = SECTOR_BYTES // 4
#: Sectors that half a warp may touch.
_MOST = WORDS // _SECTOR_WORDS + 1
#: Numbers that a row gets.
_SUMS = 4


class Measures:
    """The measures of one region. Made in the handler's first block; rounds: the region goes round by itself, and sums
    stay in registers until its end."""

    def __init__(self, h: Handler, steps: Sequence[Step], *, rounds: bool) -> None:
        self.handler, self.code = h, h.code
        self.steps = [step for step in steps if step.kind == "measure"]
        #: Where sums are, by the number of the step; LLVM keeps them in registers.
        self.sums = [[self.code.value("alloca i64") for _ in range(_SUMS)] for _ in self.steps] if rounds else []

    def begin(self) -> None:
        """Before the first round."""
        for place in [place for places in self.sums for place in places]:
            self.code.line(f"store i64 0, ptr {place}")

    def each(self, found: Found) -> None:
        """Behind all checks of the region, or of a round."""
        for number, step in enumerate(self.steps):
            detail = _detail(step)
            pattern, starts = found(step)
            some = self.code.value(f"icmp ne i32 {pattern.active}, 0")
            measure = self._sectors if detail.space == "global" else self._passes
            lanes = counts.lanes_of(self.handler, pattern.active)
            words = (self._wide(some, "i1"), lanes, *measure(detail, pattern, starts))
            if self.sums:
                for place, more in zip(self.sums[number], words, strict=True):
                    old = self.code.value(f"load i64, ptr {place}")
                    self.code.line(f"store i64 {self.code.value(f'add i64 {old}, {more}')}, ptr {place}")
            else:
                counts.add(self.handler, self._row(detail), words)

    def end(self) -> None:
        """Behind the last round, whole or not."""
        for step, places in zip(self.steps, self.sums, strict=False):
            words = [self.code.value(f"load i64, ptr {place}") for place in places]
            counts.add(self.handler, self._row(_detail(step)), words)

    def _row(self, detail: Measured) -> str:
        return self.code.value(f"getelementptr i8, ptr {self.code.field('ctx.counters')}, i64 {detail.row}")

    def _wide(self, number: str, t: str = "i32") -> str:
        return self.code.value(f"zext {t} {number} to i64")

    def _lanes(self, pattern: Pattern, side: int) -> str:
        """The lanes of a half that run."""
        lanes = self.code.value(f"bitcast i32 {pattern.active} to <32 x i1>")
        mine: str = half(self.handler, lanes, "i1", side)
        return mine

    # --- global memory ------------------------------------------------------------------------------------------------

    def _sectors(self, detail: Measured, pattern: Pattern, starts: list[str]) -> tuple[str, str]:
        """Sectors that are touched, and those that the model's L2 does not have."""
        e = self.code
        e.declare("llvm.ctpop.i32", "declare i32 @llvm.ctpop.i32(i32)")
        firsts = [e.value(f"lshr i64 {start}, {SECTOR_BYTES.bit_length() - 1}") for start in starts]
        touched = [self._touched(pattern, starts[side], side) for side in SIDES]
        # Those of the first half, as the second one numbers them, are not new in it.
        apart = e.value(f"add i64 {e.value(f'sub i64 {firsts[1]}, {firsts[0]}')}, {_MOST - 1}")
        near = e.value(f"icmp ult i64 {apart}, {2 * _MOST - 1}")
        far = e.value(f"select i1 {near}, i64 {apart}, i64 {2 * _MOST}")
        known = e.value(f"shl i32 {touched[0]}, {_MOST - 1}")
        known = e.value(f"lshr i32 {known}, {e.value(f'trunc i64 {far} to i32')}")
        touched[1] = e.value(f"and i32 {touched[1]}, {e.value(f'xor i32 {known}, -1')}")
        count, missed = "0", "0"
        for side in SIDES:
            count = e.value(f"add i32 {count}, {e.call('llvm.ctpop.i32', 'i32', [('i32', touched[side])])}")
            first = e.value(f"trunc i64 {firsts[side]} to i32")
            for number in range(_MOST):
                flag = e.value(f"and i32 {touched[side]}, {1 << number}")
                sector = e.value(f"add i32 {first}, {number}")
                missed = self._look_up(e.value(f"icmp ne i32 {flag}, 0"), sector, missed, writes=detail.writes)
        return self._wide(count), self._wide(missed)

    def _touched(self, pattern: Pattern, start: str, side: int) -> str:
        """i32: a flag for each sector from that of the half's first lane on."""
        e = self.code
        within = e.value(f"and i64 {e.value(f'lshr i64 {start}, 2')}, {_SECTOR_WORDS - 1}")
        within = e.spread("i32", e.value(f"trunc i64 {within} to i32"), WORDS)
        word = e.value(f"add {_VECTOR} {pattern.words[side]}, {within}")
        sector = e.value(f"lshr {_VECTOR} {word}, splat (i32 {_SECTOR_WORDS.bit_length() - 1})")
        return self._flags(pattern, sector, _MOST, side)

    def _flags(self, pattern: Pattern, numbers: str, most: int, side: int) -> str:
        """i32: a flag for each of the numbers, less than `most`, that a lane of a half has."""
        e, lanes = self.code, self._lanes(pattern, side)
        flags = "0"
        for number in range(most):
            here = e.value(f"icmp eq {_VECTOR} {numbers}, splat (i32 {number})")
            bits = e.value(f"bitcast <{WORDS} x i1> {e.value(f'and <{WORDS} x i1> {here}, {lanes}')} to i{WORDS}")
            some = e.value(f"zext i1 {e.value(f'icmp ne i{WORDS} {bits}, 0')} to i32")
            flags = e.value(f"or i32 {flags}, {e.value(f'shl i32 {some}, {number}')}")
        return flags

    def _look_up(self, touched: str, sector: str, missed: str, *, writes: bool) -> str:
        """Put a sector that is touched into the model's L2; i32: `missed`, and one more if it was not there."""
        e = self.code
        before, look, on = (e.label(hint) for hint in ("before", "look", "on"))
        e.jump(before)
        e.begin(before)
        e.branch(touched, look, on)
        e.begin(look)
        last = e.field("ctx.cache_mask")
        cached = e.field("ctx.cached")
        place = e.value(f"and i32 {sector}, {last}")
        table = e.field("ctx.dirty") if writes else cached
        at = e.value(f"getelementptr i32, ptr {table}, i32 {place}")
        other = e.value(f"icmp ne i32 {e.value(f'load i32, ptr {at}')}, {sector}")
        e.line(f"store i32 {sector}, ptr {at}")
        if writes:
            e.line(f"store i32 {sector}, ptr {e.value(f'getelementptr i32, ptr {cached}, i32 {place}')}")
        more = e.value(f"add i32 {missed}, {e.value(f'zext i1 {other} to i32')}")
        e.jump(on)
        e.begin(on)
        return e.value(f"phi i32 [{missed}, %{before}], [{more}, %{look}]")

    # --- shared memory ------------------------------------------------------------------------------------------------

    def _passes(self, detail: Measured, pattern: Pattern, starts: list[str]) -> tuple[str, str]:
        """Passes over the banks, and what lanes without conflicts would need: two where the halves have different words
        of one bank. Words of one bank are a multiple of the banks apart, and only one such is possible."""
        e = self.code
        e.declare("llvm.fshl.i32", "declare i32 @llvm.fshl.i32(i32, i32, i32)")
        firsts = [e.value(f"trunc i64 {e.value(f'lshr i64 {start}, 2')} to i32") for start in starts]
        banks = []
        for side in SIDES:
            words = self._reached(pattern, side)
            banks.append(e.call("llvm.fshl.i32", "i32", [("i32", words), ("i32", words), ("i32", firsts[side])]))
        both = e.value(f"icmp ne i32 {e.value(f'and i32 {banks[0]}, {banks[1]}')}, 0")
        apart = e.value(f"add i32 {e.value(f'sub i32 {firsts[1]}, {firsts[0]}')}, {WORDS - 1}")
        far = e.value(f"icmp ugt i32 {apart}, {2 * (WORDS - 1)}")
        least = self._wide(e.value(f"icmp ne i32 {pattern.active}, 0"), "i1")
        more = self._wide(e.value(f"and i1 {both}, {far}"), "i1")
        return e.value(f"add i64 {least}, {more}"), least

    def _reached(self, pattern: Pattern, side: int) -> str:
        """i32: a flag for each word of a half that a lane reaches."""
        e = self.code
        e.declare("llvm.vector.reduce.or.v16i32", f"declare i32 @llvm.vector.reduce.or.v16i32({_VECTOR})")
        near = e.value(f"and {_VECTOR} {pattern.words[side]}, splat (i32 {BANKS - 1})")
        flags = e.value(f"shl {_VECTOR} splat (i32 1), {near}")
        mine = e.value(
            f"select <{WORDS} x i1> {self._lanes(pattern, side)}, {_VECTOR} {flags}, {_VECTOR} zeroinitializer"
        )
        return e.call("llvm.vector.reduce.or.v16i32", "i32", [(_VECTOR, mine)])


def _detail(step: Step) -> Measured:
    assert isinstance(step.detail, Measured)
    return step.detail
