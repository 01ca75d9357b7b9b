"""The accumulation rules of tensor cores: how each instruction adds on each device (9.7.14.5, docs/numerics.md).

This is the only place with these rules. `tensorcore` computes by a rule over the value algebra; code that computes in
another form (`native.tiles`) takes every number from the rule, and tests compare it with `tensorcore`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from ptxtools.records import NamedTuple, dataclass

from .generations import GENERATIONS

#: The values of `Launch.numerics`: IEEE arithmetic, or the generation whose tensor cores are imitated.
IEEE = "ieee"

#: Bits kept below the largest exponent by whatever adds all of K at once; for 8-bit floats of wgmma and of generations
#: that are "short" there; for block-scaled fp4.
_WHOLE, _NARROW, _GROUPED = 25, 13, 35
#: Columns of block-scaled fp4 that are added exactly before they are aligned.
SCALED_GROUP = 16

_BYTES = {"tf32": 4, "f16": 2, "bf16": 2}


@dataclass(frozen=True)
class Result:
    """The format of a sum: fraction bits and least exponent; nearest: rounded to nearest even, else truncated."""

    fraction: int
    least: int
    nearest: bool = False


RESULTS = {"f32": Result(23, -126), "e8m13": Result(13, -126), "f16": Result(10, -14, nearest=True)}


class Rule(NamedTuple):
    """How one instruction adds.

    fraction: bits kept below the largest exponent, 0 for a chain of fused multiply-adds in `wide` ("f32" or "f64");
    chunk: columns of A added at once; result: a key of `RESULTS` ("e8m13" is f32 with 13 fraction bits); group:
    products added exactly before they are aligned, for block-scaled fp4; late: chunks start from zero, and c is added
    last, to nearest even; paired: chunks take pairs of columns in turn, as registers of 8-bit elements come apart in
    halves.
    """

    fraction: int
    chunk: int
    result: str
    group: int = 1
    late: bool = False
    paired: bool = False
    wide: str = "f32"

    @property
    def format(self) -> Result:
        """The result's format."""
        return RESULTS[self.result]

    def chunks(self, k: int) -> list[Sequence[int]]:
        """The columns that are added at once, in order."""
        if self.paired:
            return [[column for column in range(k) if column // 2 % 2 == half] for half in (0, 1)]
        return [range(first, min(first + self.chunk, k)) for first in range(0, k, self.chunk)]


class Sum(NamedTuple):
    """The properties that determine how floating-point products are added.

    unit: "mma" (wmma, too), "wgmma" or "tcgen05"; atype, dtype: types of A and of the result; k: columns of A, those
    that a sparse A lacks included; scale: type of the scale factors or ""; quads: one of the four products of m8n8k4.
    """

    unit: str
    atype: str
    dtype: str
    k: int
    sparse: bool = False
    scale: str = ""
    quads: bool = False


@cache
def rule_of(sum_: Sum, numerics: str) -> Rule:
    """The rule for a launch with these numerics. wgmma and tcgen05 have one generation each."""
    result = "f16" if sum_.dtype == "f16" else "f32"
    if numerics == IEEE:
        return Rule(0, sum_.k, result, wide="f64" if sum_.scale else "f32")
    if sum_.scale:
        if sum_.atype == "fp4":
            return Rule(_GROUPED, sum_.k, result, group=SCALED_GROUP)
        return Rule(_WHOLE, sum_.k, result)
    if sum_.unit == "wgmma" and sum_.atype not in _BYTES:
        return Rule(_NARROW, sum_.k, "e8m13" if result == "f32" else result)
    if sum_.unit != "mma":
        return Rule(_WHOLE, sum_.k, result)
    if sum_.quads and not GENERATIONS[numerics].quads:
        # m8n8k4 has no tensor-core instruction from sm_80 on: compilers make it from f32 multiply-adds.
        return Rule(0, sum_.k, result, late=True)
    return _warp_rule(sum_, numerics, result)


def _warp_rule(sum_: Sum, numerics: str, result: str) -> Rule:
    """That of mma without scale factors."""
    size = _BYTES.get(sum_.atype, 1)
    doubled = 2 if sum_.sparse else 1  # of the columns of a sparse A half are stored
    generation = GENERATIONS[numerics]
    fraction, chunk = generation.fraction, doubled * generation.chunk // size
    late = paired = False
    if size == 1:
        if generation.eight == "short":
            fraction = _NARROW
            result = "e8m13" if result == "f32" else result
        elif generation.eight == "halves":
            # Compiled for sm_90 and sm_100 to conversions to f16, two f16 products of half the shape, one of the lower
            # halves of all registers and one of the upper, and an addition of c (seen in ptxas 13.0's machine code).
            chunk, late, paired = sum_.k // 2, True, not sum_.sparse
    return Rule(fraction, min(chunk, sum_.k), result, late=late, paired=paired)
