"""What an editor shows of a device beside registers: lists that open into lines, as the prompt has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import looking, matrices
from .expressions import ExpressionError

if TYPE_CHECKING:
    from .debugger import Debugger

#: Before the name of a list where the name of a register may stand, which has no such sign.
MARK = "@"
SCOPE = MARK
_LISTS: dict[str, Callable[[Debugger], list[str]]] = {
    "warps": lambda debugger: looking.warp_lines(debugger, debugger.focus.cta if debugger.focus else None),
    "barriers": looking.barrier_lines,
    "mbarriers": looking.mbarrier_lines,
    "asynchronous work": looking.work_lines,
    "tensor memory": lambda debugger: matrices.tensor_lines(debugger, ""),
}


def rows(debugger: Debugger, name: str, reference: Callable[[str], int]) -> list[dict[str, Any]]:
    """The variables of the scope, or the lines of one of its lists. reference: makes a reference to a list."""
    if name == SCOPE:
        found = {one: _lines(debugger, one) for one in _LISTS}
        return [
            {"name": one, "value": lines[0] if len(lines) == 1 else f"{len(lines)} lines",
             "variablesReference": reference(MARK + one) if len(lines) > 1 else 0}
            for one, lines in found.items()
        ]  # fmt: skip
    lines = _lines(debugger, name.removeprefix(MARK))
    return [{"name": str(number), "value": line, "variablesReference": 0} for number, line in enumerate(lines)]


def _lines(debugger: Debugger, name: str) -> list[str]:
    try:
        return _LISTS[name](debugger) or ["nothing"]
    except ExpressionError as error:
        return [str(error)]
