"""Predicates that certainly differ between the lanes of a warp."""

from __future__ import annotations

from ptxtools.ir.nodes import Immediate, Name

from .facts import FunctionFacts, Line, register_key

_WARP = 32
_LANE_REGISTERS = frozenset({"%tid.x", "%laneid"})


def splits_warps(facts: FunctionFacts, line: Line, predicate: str) -> bool:
    """Whether a predicate certainly differs inside a warp: a lane number compared with a constant."""
    written = only_write(facts, line, predicate)
    if written is None or written.plan.family != "setp" or written.item.guard is not None:
        return False
    op, operands = written.plan.op, written.item.operands
    if op is None or len(operands) != 3 or not isinstance(operands[1], Name) or not isinstance(operands[2], Immediate):
        return False
    if not _is_lane_number(facts, written, operands[1].name):
        return False
    value = operands[2].value
    edge = {"lt": value, "ge": value, "lo": value, "hs": value, "le": value + 1, "gt": value + 1,
            "ls": value + 1, "hi": value + 1}  # fmt: skip
    comparison = next((atom for atom in op.atoms if atom in edge), None)
    if comparison is not None:
        return edge[comparison] % _WARP != 0
    return bool(op.has("eq") or op.has("ne"))


def _is_lane_number(facts: FunctionFacts, line: Line, name: str) -> bool:
    """Whether a register holds %tid.x or %laneid, straight from a mov."""
    written = only_write(facts, line, name)
    if written is None or written.plan.family != "mov" or written.item.guard is not None:
        return False
    source = written.item.operands[1] if len(written.item.operands) == 2 else None
    return isinstance(source, Name) and source.name in _LANE_REGISTERS


def only_write(facts: FunctionFacts, line: Line, name: str) -> Line | None:
    """The only instruction that writes a register; None if there are several, or none."""
    key = register_key(name, line.names)
    return facts.writes.get(key) if key is not None and key not in facts.rewritten else None
