"""PTX711 | bank conflicts | 5.1.7

What: a load, store or atomic operation of shared memory at which 8 or more lanes of a warp reach different words of one
bank. The addresses follow from %tid.x.
Why: the banks serve such lanes one after the other.
Example:
    .shared .align 128 .b32 t[2048];
    mov.u32 %r4, %tid.x; shl.b32 %r5, %r4, 7; mov.u32 %r6, t; add.u32 %r6, %r6, %r5;
    ld.shared.b32 %r7, [%r6];
Better:
    .shared .align 128 .b32 t[2048];
    mov.u32 %r4, %tid.x; shl.b32 %r5, %r4, 2; mov.u32 %r6, t; add.u32 %r6, %r6, %r5;
    ld.shared.b32 %r7, [%r6];
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

from ptxtools.ir.positions import part_span

from ..context import LintContext
from ..facts import FunctionFacts
from ..memory import WARP
from ..registry import bodies_with

CODE = "PTX711"
Addresses: TypeAlias = range | tuple[int, ...]

_BANKS, _WORD, _LEAST = 32, 4, 8


@bodies_with("ld", "st", "atom", "red")
def check(context: LintContext, facts: FunctionFacts) -> None:
    for step in facts.accesses:
        access = step.access
        if access is None or access.space != "shared" or isinstance(access.address.each, int):
            continue
        if step.line.item.guard is not None and (step.active is None or not all(step.active[:WARP])):
            continue
        at_once = max(1, _BANKS * _WORD // access.size)  # lanes that are served together
        worst = max(
            _conflicts_known(_near(access.address.numbers[start : start + at_once]), access.size)
            for start in range(0, WARP, at_once)
        )
        if worst >= _LEAST:
            message = f"{worst} lanes of a warp reach different words of one bank"
            context.warn(CODE, message, part_span(step.line.item, access.operand), section="5.1.7")


def _near(addresses: Addresses) -> Addresses:
    """The same rows of banks from a lower address on, so that few different ones are counted."""
    down = addresses[0] // (_BANKS * _WORD) * _BANKS * _WORD
    if isinstance(addresses, range):
        return range(addresses.start - down, addresses.stop - down, addresses.step)
    return tuple(address - down for address in addresses)


def _conflicts(addresses: Addresses, size: int) -> int:
    banks: dict[int, set[int]] = {}
    for address in addresses:
        for word in range(address // _WORD, (address + max(size, _WORD) - 1) // _WORD + (size < _WORD)):
            banks.setdefault(word % _BANKS, set()).add(word)
        if size >= _WORD:
            banks.setdefault((address // _WORD) % _BANKS, set()).add(address // _WORD)
    return max(len(words) for words in banks.values())


_conflicts_known = lru_cache(1024)(_conflicts)
