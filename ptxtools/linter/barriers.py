"""PTX530, PTX531: barriers that some threads of a warp miss, or that wait for nobody."""

from __future__ import annotations

from ptxtools.ir.nodes import Immediate, Name

from . import codes
from .context import LintContext
from .facts import FunctionFacts, Line, register_key

_WARP = 32
_LANE_REGISTERS = frozenset({"%tid.x", "%laneid"})


def check_barrier(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    """Both rules for one `bar` or `barrier`."""
    op, item = line.plan.op, line.item
    if op is None or op.has("warp") or op.has("cluster"):
        return
    aligned = op.family == "bar" or op.has("aligned")
    guard = item.guard
    if aligned and guard is not None and _splits_warps(facts, line, guard.name):
        message = f"only some threads of a warp reach this '{op.text}': the others never arrive with it"
        help = ("all threads of a warp must execute an aligned barrier together",)
        span = context.parts(item).guard or item.span
        context.warn(codes.DIVERGENT_BARRIER, message, span, help=help, section=op.section)
    count = item.operands[1] if len(item.operands) > 1 and op.has("sync") else None
    if isinstance(count, Immediate) and count.value == 0:
        message = "this barrier waits for 0 threads"
        help = ("leave the count out to wait for the whole CTA",)
        context.warn(codes.EMPTY_BARRIER, message, context.operand(item, 1), help=help, section=op.section)


def _splits_warps(facts: FunctionFacts, line: Line, predicate: str) -> bool:
    """Whether a predicate certainly differs inside a warp: a lane number compared with a constant."""
    written = _only_write(facts, line, predicate)
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
    written = _only_write(facts, line, name)
    if written is None or written.plan.family != "mov" or written.item.guard is not None:
        return False
    source = written.item.operands[1] if len(written.item.operands) == 2 else None
    return isinstance(source, Name) and source.name in _LANE_REGISTERS


def _only_write(facts: FunctionFacts, line: Line, name: str) -> Line | None:
    key = register_key(name, line.names)
    return facts.writes.get(key) if key is not None and key not in facts.rewritten else None
