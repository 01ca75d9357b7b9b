"""PTX501 to PTX504: constants that lose bits, or make no sense where they stand."""

from __future__ import annotations

from ptxtools.ir.nodes import Immediate, Initializer, Instruction, Module, Scope, Variable
from ptxtools.isa.types import TYPES

from . import codes
from .context import LintContext
from .facts import FunctionFacts, Line

_SHIFTS = frozenset({"shl", "shr"})
_DIVISIONS = frozenset({"div", "rem"})


def check_oversized(context: LintContext, facts: FunctionFacts) -> None:
    """PTX501: an integer constant that does not fit its operand."""
    for line, index in facts.oversized:
        operand = line.item.operands[index]
        op = line.plan.op
        assert isinstance(operand, Immediate) and op is not None
        spec = op.operands[index]
        if op.family in _SHIFTS and index == 2:
            continue  # reported as PTX502
        bits = TYPES[spec.type].bits if spec.type else 32
        result = operand.value & ((1 << bits) - 1)
        message = f"{operand.value} does not fit .{spec.type}: '{op.text}' gets {result}"
        context.warn(codes.CONSTANT_TRUNCATED, message, context.operand(line.item, index), section="4.5.1")


def check_shift(context: LintContext, line: Line) -> None:
    """PTX502: a shift by at least the width of its operand."""
    op, operands = line.plan.op, line.item.operands
    if op is None or len(operands) < 3 or op.type is None:
        return
    amount, bits = operands[2], TYPES[op.type].bits
    if isinstance(amount, Immediate) and (amount.value & 0xFFFFFFFF) >= bits:
        left = "copies of the sign bit" if op.type.startswith("s") and op.family == "shr" else "zero"
        message = f"a shift of .{op.type} by {amount.value} leaves {left}"
        context.warn(codes.SHIFT_TOO_FAR, message, context.operand(line.item, 2), section=op.section)


def check_division(context: LintContext, line: Line) -> None:
    """PTX503 and PTX702: integer division by zero, or by a power of two."""
    op, operands = line.plan.op, line.item.operands
    if op is None or len(operands) < 3 or op.type is None or TYPES[op.type].kind != "int":
        return
    divisor = operands[2]
    if not isinstance(divisor, Immediate):
        return
    span = context.operand(line.item, 2)
    if divisor.value == 0:
        message = f"'{op.text}' by zero: the result is machine-specific"
        context.warn(codes.DIVISION_BY_ZERO, message, span, section=op.section)
    elif op.type.startswith("u") and divisor.value > 1 and divisor.value & (divisor.value - 1) == 0:
        shift = divisor.value.bit_length() - 1
        better = f"shr.{op.type} by {shift}" if op.family == "div" else f"and.b{op.type[1:]} with {divisor.value - 1}"
        message = f"'{op.text}' by {divisor.value} is a power-of-two division"
        context.warn(codes.DIVISION_BY_POWER, message, span, help=(f"use {better}",), section=op.section)


def check_initialisers(context: LintContext, module: Module) -> None:
    """PTX504: an initial value that does not fit its variable."""
    for variable in _variables(module):
        info = TYPES.get(variable.type)
        if variable.init is None or info is None or info.kind not in ("int", "bits") or info.bits > 64:
            continue
        low, high = -(1 << (info.bits - 1)), (1 << info.bits) - 1
        wrong = next((v for v in _numbers(variable.init) if not low <= v <= high), None)
        if wrong is not None:
            message = f"'{variable.name}': {wrong} does not fit .{variable.type}: {wrong & high} is stored"
            context.warn(codes.INITIALISER_TRUNCATED, message, variable.name_span, section="5.4.4")


def _variables(module: Module) -> list[Variable]:
    found = list(module.variables)
    for function in module.functions:
        waiting = [function.body] if function.body is not None else []
        while waiting:
            for item in waiting.pop().items:
                if type(item) is Instruction:
                    continue
                if isinstance(item, Variable):
                    found.append(item)
                elif isinstance(item, Scope):
                    waiting.append(item)
    return found


def _numbers(init: Initializer) -> list[int]:
    found: list[int] = []
    waiting = [init]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting.extend(reversed(part))
        elif isinstance(part, Immediate) and part.type in ("s64", "u64"):
            found.append(part.value)
    return found
