"""Products of tcgen05.mma that native code takes from shared memory to tensor memory in three calls.

These are dense products without scale factors, masks or disabled lanes, of f16, bf16, tf32 and 8-bit floats with f32
sums, whose D has a row in each lane; factors must be finite. All others go the way of `mma`, through NumPy's arrays.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxtools.machine.residents import Cta
from ptxtools.native.tiles import blocks as tileblocks
from ptxtools.native.tiles import factors as tilefactors
from ptxtools.native.tiles import interface as tiles
from ptxtools.native.tiles.factors import GROUP, NOT_FINITE, TOGETHER
from ptxtools.semantics.tensorcore import Rule

from . import arranged, shared
from .layout import COLUMNS, LANES
from .memory import check_columns, of, split
from .numbers import BITS

if TYPE_CHECKING:
    from .mma import Call

#: Largest K, rows in a CTA, and N.
_K, _M, _N = 32, 128, 256
_EVERYTHING = 0xFFFF_FFFF


class _Room(threading.local):
    """Host addresses for arranged factors of a thread, aligned to cache lines: values and exponents of B, and of A in
    each CTA of a pair."""

    def __init__(self) -> None:
        sizes = [(4 * _K * _N, 2 * _K * _N), *[(4 * _K * _M, 2 * _K * _M)] * 2]
        self._memory = np.zeros(sum(map(sum, sizes)) + 64, np.uint8)
        at = -(-tiles.address_of(self._memory) // 64) * 64
        found = []
        for values, exponents in sizes:
            found.append((at, at + values))
            at += values + exponents
        self.b, *self.a = found


_room = _Room()


def multiply(call: Call, rule: Rule) -> bool:
    """Compute D in all CTAs; false, with nothing changed, where that is not possible. Raises `Trap`."""
    known = tiles.functions()
    if known is None or not _suits(call):
        return False
    highest = max(_take_b(call, known), *(_take_a(call, cta, known, room) for cta, room in _rooms(call)))
    if highest >= NOT_FINITE:
        return False
    for cta, room in _rooms(call):
        _block(call, cta, known, rule, room, force=highest > tileblocks.HIGHEST)
    return True


def _rooms(call: Call) -> Iterator[tuple[Cta, tuple[int, int]]]:
    return zip(call.ctas, _room.a, strict=False)


def _suits(call: Call) -> bool:
    shape, path, variant = call.shape, call.path, call.variant
    share = shape.n // len(call.ctas)
    return (
        path.parts == 1 and not path.half and not variant.sparse and not shape.scale_type and shape.dtype == "f32"
        and shape.atype in tilefactors.TYPES and shape.btype in tilefactors.TYPES and not call.columns
        and not call.scale_d and not any(call.disabled) and not call.shifted and not call.b.absolute
        and share % (GROUP if len(call.ctas) == 1 else GROUP * TOGETHER) == 0
        and not (shape.negate_a or shape.negate_b)
    )  # fmt: skip


def _in_shared(
    call: Call, cta: Cta, which: str, d: shared.Descriptor, mn: int, t: str, mn_major: bool
) -> tuple[int, int]:
    """Host addresses of what the chunks' offsets count from, and of the offsets."""
    found = arranged.places(d, mn, call.shape.k, BITS[t], mn_major=mn_major)
    if found.base + found.end > len(cta.shared):
        problem = shared.outside(found.base + found.end, len(cta.shared))
        raise call.view.trap(f"{which}-desc: {problem}", call.lane)
    memory = np.frombuffer(cta.shared, np.uint8)
    return tiles.address_of(memory) + found.base, found.address


def _take_b(call: Call, known: dict[str, Any]) -> int:
    """Arrange the columns of all CTAs; the greatest exponent."""
    shape = call.shape
    take = known[tilefactors.name_of(shape.btype, "mn" if shape.b_mn_major else "k")]
    share = shape.n // len(call.ctas)
    values, exponents = _room.b
    most = []
    for cta in call.ctas:
        base, table = _in_shared(call, cta, "b", call.b, share, shape.btype, shape.b_mn_major)
        most.append(take(base, table, share // GROUP, shape.k, values, exponents))
        values, exponents = values + 4 * share * shape.k, exponents + 2 * share * shape.k
    highest: int = max(most)
    return highest


def _take_a(call: Call, cta: Cta, known: dict[str, Any], room: tuple[int, int]) -> int:
    """Arrange a CTA's rows; the greatest exponent."""
    shape = call.shape
    if isinstance(call.a, int):
        _, column = split(call.a)
        words = call.stored * BITS[shape.atype] // 32
        cells = check_columns(call.view, cta, column, words, "tcgen05.mma: A", call.lane)
        base, table, major = tiles.address_of(cells) + 4 * column, tiles.address_of(_lanes), "k"
    else:
        major = "mn" if shape.a_mn_major else "k"
        base, table = _in_shared(call, cta, "a", call.a, call.path.rows, shape.atype, shape.a_mn_major)
    take = known[tilefactors.name_of(shape.atype, major)]
    found: int = take(base, table, call.path.rows // GROUP, shape.k, *room)
    return found


#: Offsets of the two chunks of 32 bytes in each lane of tensor memory.
_lanes = np.ascontiguousarray(
    (4 * COLUMNS * np.arange(LANES)[:, None] + shared.CHUNK * np.arange(2)[None, :]), np.int32
)


def _block(call: Call, cta: Cta, known: dict[str, Any], rule: Rule, room: tuple[int, int], *, force: bool) -> None:
    """D in a CTA's tensor memory."""
    shape = call.shape
    _, first = split(call.d)
    check_columns(call.view, cta, first, shape.n, "tcgen05.mma: D", call.lane)
    rounding = tiles.Rounding(rule.fraction, *tiles.MASKS[rule.result])
    d = tiles.address_of(of(cta).cells) + 4 * first
    known[tileblocks.name_of("rows", plain=not rule.fraction)](
        *room, *_room.b, d, d, call.path.rows, shape.n, shape.k, COLUMNS,
        COLUMNS, rounding.fraction, rounding.mask, rounding.odd, 1 << 23, _EVERYTHING if call.accumulate else 0, force,
    )  # fmt: skip
