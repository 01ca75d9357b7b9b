"""Accesses of a block that are looked at together: those at constant distances from an address that the block does not
change before. One look in front of the block covers all of them, if the observers want nothing but bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptxtools.program.details import Ahead, Look
from ptxtools.program.operations import LANE_ACCESS
from ptxtools.program.program import SLOT_BYTES, Block, Op, Ref

#: Looks that must be saved for a second version of a block to be worth while, and operations of a block that has one.
_LEAST_SAVED, _MOST_OPERATIONS = 2, 1000


def covered(block: Block, looks_of: Callable[[Op], list[Op]]) -> tuple[list[Op], set[int]]:
    """Looks that go in front of the block, and places of the accesses that need none then. looks_of: the looks at an
    access, if each may be covered."""
    groups: dict[Any, list[tuple[int, Op]]] = {}
    changed: list[Ref] = []
    for place, op in enumerate(block.ops if len(block.ops) <= _MOST_OPERATIONS else []):
        looks = looks_of(op) if op.kind in LANE_ACCESS and op.guard is None else []
        address = op.src[0] if looks else None
        if len(looks) == 1 and not (address is not None and any(_overlap(address, ref) for ref in changed)):
            look = looks[0].of(Look)
            uncached = op.opcode is not None and op.opcode.has("nc")
            key = (
                None if address is None else (address.slot, address.type),
                op.space,
                look.action == "read",
                uncached,
                look.size,
            )
            groups.setdefault(key, []).append((place, looks[0]))
        changed += [ref for ref in op.dst if ref is not None]
    ahead, places = list[Op](), set[int]()
    for group in groups.values():
        together = _together([one for _, one in group])
        if together is not None:
            ahead.append(together)
            places |= {place for place, _ in group}
    return (ahead, places) if len(places) - len(ahead) >= _LEAST_SAVED else ([], set())


def _together(looks: list[Op]) -> Op | None:
    """One look at all bytes that several go for; None if it could not say that each is right."""
    one, first, last = looks[0], min(op.imm for op in looks), max(op.imm for op in looks)
    look = one.of(Look)
    size = look.size
    if len(looks) < 2 or size & (size - 1) or any((op.imm - first) % size for op in looks):
        return None
    detail = Ahead(look.action, last - first + size, False, look.lanes, look.function, size)
    return Op("observe.ahead", one.opcode, (), (one.src[0], None), (), (one.src_types[0], "pred"), imm=first,
              space=one.space, detail=detail, where=one.where)  # fmt: skip


def _overlap(one: Ref, other: Ref) -> bool:
    """Whether two values share bytes of a frame."""
    return one.slot < other.slot + SLOT_BYTES[other.type] and other.slot < one.slot + SLOT_BYTES[one.type]
