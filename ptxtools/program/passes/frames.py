"""One frame layout for all functions that a kernel calls.

Lanes of a warp may be inside different functions at the same depth, and their frames then share memory; a lane must not
reach another lane's part. So all these functions keep the slots of a storage class in the same region, and all frames
have the same size. (The kernel's frame lies below them, where no other frame is.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ptxtools.program.layout import align_up
from ptxtools.program.program import FRAME_HEADER, SLOT_BYTES, FunctionCode, Ref, Slot
from ptxtools.records import replace

_CLASSES = ("b128", "b64", "b32", "b16", "pred")


class Lowered(Protocol):
    """A function whose values have slots: parameters below `slot_start`, values for callees after its frame."""

    refs: list[Ref]
    outgoing: dict[int, Slot]
    slot_start: Slot


def unify(functions: Sequence[Lowered], codes: Sequence[FunctionCode]) -> None:
    """Put the slots of all functions but the first, and those through which values are passed, at common offsets."""
    if len(functions) < 3:
        return
    parameters: dict[str, set[Slot]] = {name: set() for name in _CLASSES}
    variables: list[dict[str, list[Slot]]] = []
    for function, code in zip(functions, codes, strict=True):
        own: dict[str, set[Slot]] = {name: set() for name in _CLASSES}
        for number, ref in enumerate(function.refs):
            if number in function.outgoing:
                parameters[ref.type].add(Slot(ref.slot - code.frame_bytes))
            elif FRAME_HEADER <= ref.slot < function.slot_start:
                parameters[ref.type].add(ref.slot)
            elif ref.slot >= FRAME_HEADER:
                own[ref.type].add(ref.slot)
        variables.append({name: sorted(slots) for name, slots in own.items()})
    passed: dict[tuple[str, Slot], Slot] = {}
    base: dict[str, int] = {}
    size: int = FRAME_HEADER
    for name in _CLASSES:
        base[name] = size = align_up(size, 64)
        for index, slot in enumerate(sorted(parameters[name])):
            passed[name, slot] = Slot(size + index * SLOT_BYTES[name])
        count = len(parameters[name]) + max(len(table[name]) for table in variables[1:])
        size += count * SLOT_BYTES[name]
    size = align_up(size, 64)
    for index, (function, code) in enumerate(zip(functions, codes, strict=True)):
        places = {} if index == 0 else _places(variables[index], parameters, base)
        _move(function, code, places if index else None, passed, size if index else code.frame_bytes)


def _places(
    slots: dict[str, list[Slot]], parameters: dict[str, set[Slot]], base: dict[str, int]
) -> dict[tuple[str, Slot], Slot]:
    """New offset of each slot of a function, for its variables and constants."""
    return {
        (name, slot): Slot(base[name] + (len(parameters[name]) + index) * SLOT_BYTES[name])
        for name in _CLASSES
        for index, slot in enumerate(slots[name])
    }


def _move(
    function: Lowered,
    code: FunctionCode,
    places: dict[tuple[str, Slot], Slot] | None,
    passed: dict[tuple[str, Slot], Slot],
    size: int,
) -> None:
    """Rewrite the slots of a function; `places` is None for the kernel, whose slots stay."""
    for number, ref in enumerate(function.refs):
        if number in function.outgoing:
            ref.slot = Slot(size + passed[ref.type, Slot(ref.slot - code.frame_bytes)])
        elif places is not None and ref.slot >= FRAME_HEADER:
            own = ref.slot >= function.slot_start
            ref.slot = places[ref.type, ref.slot] if own else passed[ref.type, ref.slot]
    if places is not None:
        code.constants = [(places[name, slot], name, value) for slot, name, value in code.constants]
        code.launch_constants = [replace(c, slot=places[c.storage, c.slot]) for c in code.launch_constants]
    code.frame_bytes = size
