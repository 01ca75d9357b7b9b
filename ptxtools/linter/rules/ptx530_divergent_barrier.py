"""PTX530 | barrier that part of a warp misses | 9.7.13.1

What: an aligned barrier with a guard that certainly differs between the threads of a warp.
Why: all threads of a warp must execute an aligned barrier together, or the behaviour is undefined.
Example:
    mov.u32 %r9, %tid.x;
    setp.eq.u32 %p7, %r9, 0;
    @%p7 bar.sync 0;
Better:
    bar.sync 0;
"""

from __future__ import annotations

from ptxtools.ir.nodes import Immediate, Name
from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..facts import FunctionFacts, Line, register_key
from ..registry import instructions

_WARP = 32
_LANE_REGISTERS = frozenset({"%tid.x", "%laneid"})

CODE = "PTX530"


@instructions("bar", "barrier")
def check(context: LintContext, facts: FunctionFacts, line: Line) -> None:
    op, item = line.plan.op, line.item
    if op is None or op.has("warp") or op.has("cluster"):
        return
    aligned = op.family == "bar" or op.has("aligned")
    guard = item.guard
    if aligned and guard is not None and _splits_warps(facts, line, guard.name):
        message = f"only some threads of a warp reach this '{op.text}'"
        help = ("all threads of a warp must execute an aligned barrier together",)
        context.warn(CODE, message, parts_of(item).guard or item.span, help=help, section=op.section)


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
