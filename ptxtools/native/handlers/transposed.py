"""Rows of lanes with two or four words each, taken apart and put together on CPUs with vectors of 256 bits: eight lanes
at a time, in permutations that stay in halves of a register but for one. Of a permutation of a whole row LLVM makes
twice as many instructions, most of which cross halves.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxtools.native.code.emitter import Emitter
from ptxtools.semantics.algebra import Value

#: Lanes of a register.
WIDTH = 8
_WORDS = "<8 x i32>"
#: In each half of two registers: their low words in turn, their high words; their low pairs of words, their high pairs.
_LOW, _HIGH = (0, 8, 1, 9, 4, 12, 5, 13), (2, 10, 3, 11, 6, 14, 7, 15)
_LOW_PAIRS, _HIGH_PAIRS = (0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15)
#: First words of pairs, second words.
_EVEN, _ODD = (0, 2, 8, 10, 4, 6, 12, 14), (1, 3, 9, 11, 5, 7, 13, 15)
#: The low halves of two registers; the high halves.
_LOWER, _UPPER = (0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15)


def suits(e: Emitter, width: int) -> bool:
    """Whether rows of lanes with so many words are for this."""
    return e.unmasked and width in (2, 4)


def load(e: Emitter, pointer: str, lanes: int, width: int) -> list[Value]:
    """The words of so many lanes (<lanes x i32> each) that lie behind a pointer, lane by lane."""
    found: list[list[str]] = [[] for _ in range(width)]
    for first in range(0, lanes, WIDTH):
        start = e.value(f"getelementptr i32, ptr {pointer}, i64 {first * width}")
        quarters = [
            e.value(f"load <4 x i32>, ptr {e.value(f'getelementptr i32, ptr {start}, i64 {at}')}, align 4")
            for at in range(0, WIDTH * width, 4)
        ]
        half = len(quarters) // 2
        both = [e.concatenate("i32", [quarters[at], quarters[at + half]], 4) for at in range(half)]
        for words, one in zip(found, _apart(e, both), strict=True):
            words.append(one)
    return [e.concatenate("i32", words, WIDTH) for words in found]


def columns(e: Emitter, warp: Value) -> list[Value]:
    """The lanes of a warp (<32 x i32>) as four columns of eight rows: lanes 0, 4, 8 and so on, lanes 1, 5, 9."""
    rows = [[*range(first, first + 4), *range(first + 16, first + 20)] for first in range(0, 16, 4)]
    return list(_apart(e, [e.shuffle("<32 x i32>", order, warp) for order in rows]))


def _apart(e: Emitter, both: Sequence[str]) -> list[str]:
    """Registers of words 0, 1 (2, 3): both halves of a register of `both` are lanes at the same place in four."""
    if len(both) == 2:  # two words, two lanes in each half
        return [e.shuffle(_WORDS, order, *both) for order in (_EVEN, _ODD)]
    low, high = ([e.shuffle(_WORDS, order, *both[at : at + 2]) for at in (0, 2)] for order in (_LOW, _HIGH))
    return [e.shuffle(_WORDS, order, *pair) for pair in (low, high) for order in (_LOW_PAIRS, _HIGH_PAIRS)]


def join(e: Emitter, lanes: int, pieces: Sequence[Value]) -> Value:
    """The inverse: the words of lane 0, of lane 1 and so on, as one vector."""
    found: list[str] = []
    for first in range(0, lanes, WIDTH):
        words = [e.part("i32", lanes, piece, first, WIDTH) for piece in pieces]
        pairs = [[e.shuffle(_WORDS, order, *words[at : at + 2]) for order in (_LOW, _HIGH)]
                 for at in range(0, len(words), 2)]  # fmt: skip
        if len(pairs) == 2:
            rows = [e.shuffle(_WORDS, order, *pair) for pair in zip(*pairs, strict=True)
                    for order in (_LOW_PAIRS, _HIGH_PAIRS)]  # fmt: skip
        else:
            rows = pairs[0]
        found += [e.shuffle(_WORDS, order, *rows[at : at + 2]) for order in (_LOWER, _UPPER)
                  for at in range(0, len(rows), 2)]  # fmt: skip
    return e.concatenate("i32", found, WIDTH)
