"""Calls, for the warning rules: what they call, and which of them ptxas cannot replace by the function's body."""

from __future__ import annotations

from ptxtools.ir.nodes import Function, Name

from .facts import Line


def callee_of(line: Line) -> Function | None:
    """The function that a `call` names; None if it calls through a register."""
    callee = next((operand for operand in line.item.operands if isinstance(operand, Name)), None)
    symbol = line.names.lookup(callee.name) if callee is not None else None
    return symbol if isinstance(symbol, Function) else None


def stays_a_call(line: Line) -> bool:
    """Whether the body that a `call` runs is not in the module, or is known only when it runs."""
    callee = callee_of(line)
    return callee is None or callee.body is None
