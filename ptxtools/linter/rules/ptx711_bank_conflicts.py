"""PTX711 | bank conflicts | 5.1.7

What: a load, store, atomic operation or cp.async of shared memory at which 8 or more lanes of a warp reach different
words of one bank; or an ldmatrix or stmatrix of which 4 or more of the 8 rows of a matrix do. The addresses follow from
%tid.x.
Why: the banks serve such lanes, or rows, one after the other.
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

from ptxtools.ir.nodes import Immediate
from ptxtools.ir.positions import part_span

from ..context import LintContext
from ..facts import FunctionFacts
from ..memory import WARP, Reach, Step
from ..registry import bodies_with
from ..uniform import by_most, same_for_all

CODE = "PTX711"
Addresses: TypeAlias = range | tuple[int, ...]

_BANKS, _WORD, _LEAST = 32, 4, 8
#: Rows of a matrix and their bytes; how many of them are too many in one bank.
_MATRIX, _ROW, _LEAST_ROWS = 8, 16, 4
_MATRICES = ("ldmatrix", "stmatrix")


@bodies_with("ld", "st", "atom", "red", "cp", "ldmatrix", "stmatrix")
def check(context: LintContext, facts: FunctionFacts) -> None:
    for step in (step for steps in facts.steps for step in steps):
        access = _shared(step)
        if access is None or isinstance(access.address.each, int):
            continue
        if not by_most(facts, step):
            continue
        matrices = step.family in _MATRICES
        if matrices:
            worst, least = _rows(step, access), _LEAST_ROWS
        else:
            at_once = max(1, _BANKS * _WORD // access.size)  # lanes that are served together
            worst, least = _worst(access, at_once, WARP), _LEAST
        if worst >= least and same_for_all(facts, access.address):
            who = "rows of a matrix" if matrices else "lanes of a warp"
            message = f"{worst} {who} reach different words of one bank"
            context.warn(CODE, message, part_span(step.line.item, access.operand), section="5.1.7")


def _shared(step: Step) -> Reach | None:
    """The access to shared memory; of an asynchronous copy, its destination; of matrices, a row."""
    if step.family in _MATRICES:
        place = 1 if step.family == "ldmatrix" else 0
        address = step.addresses[place] if place < len(step.addresses) else None
        return Reach(place, "shared", address, _ROW) if address is not None else None
    if step.family == "cp" and ".bulk" not in step.line.item.opcode and len(step.addresses) > 2:
        address, size = step.addresses[0], step.line.item.operands[2]
        known = address is not None and isinstance(size, Immediate) and size.value in (4, 8, 16)
        return Reach(0, "shared", address, size.value) if known and address and isinstance(size, Immediate) else None
    return step.access if step.access is not None and step.access.space == "shared" else None


def _rows(step: Step, access: Reach) -> int:
    """Conflicts of an instruction for matrices: each 8 lanes have the addresses of the 8 rows of one."""
    count = next((int(word[1:]) for word in ("x4", "x2", "x1") if step.has(word)), 1)
    return _worst(access, _MATRIX, _MATRIX * count)


def _worst(access: Reach, at_once: int, lanes: int) -> int:
    """Different words of one bank among lanes that are served together."""
    numbers = access.address.numbers
    return max(
        _conflicts_known(_near(numbers[start : start + at_once]), access.size) for start in range(0, lanes, at_once)
    )


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
