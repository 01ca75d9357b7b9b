"""The text of operands and instructions, in the manual's notation (chapter 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .nodes import (
    Address,
    Arguments,
    Element,
    Immediate,
    Instruction,
    Name,
    Negated,
    Operand,
    Pair,
    SymbolOffset,
    Vector,
)

_LOWEST = -(1 << 63)


def instruction_text(instruction: Instruction, gap: str = " ") -> str:
    """Guard, opcode and operands, without the semicolon. gap: between opcode and operands."""
    guard = instruction.guard
    text = instruction.opcode
    if guard is not None:
        text = f"@!{guard.name} {text}" if guard.negated else f"@{guard.name} {text}"
    return f"{text}{gap}{operands_text(instruction.operands)}" if instruction.operands else text


def operand_text(operand: Operand) -> str:
    """The text of an operand."""
    return _OPERANDS[type(operand)](operand)


def operands_text(operands: Iterable[Operand]) -> str:
    """The texts of several operands, commas between."""
    return ", ".join([_OPERANDS[type(operand)](operand) for operand in operands])


def immediate_text(constant: Immediate) -> str:
    """The text of a constant (4.5)."""
    value, kind = constant.value, constant.type
    if kind == "s64":
        return str(value) if value != _LOWEST else f"({value + 1}-1)"
    if kind == "u64":
        return f"{value}U"
    return f"0f{value:08X}" if kind == "f32" else f"0d{value:016X}"


def offset_text(value: int) -> str:
    """What follows the base of an address: "+4", "+-4", or nothing."""
    return f"+{value}" if value else ""


def _address(address: Address) -> str:
    inside = _OPERANDS[type(address.base)](address.base) + offset_text(address.offset)
    if address.extra:
        inside += f", {operands_text(address.extra)}"
    return f"[{inside}].{address.suffix}" if address.suffix else f"[{inside}]"


def _element(element: Element) -> str:
    if element.register is None:
        return f"{element.name}[{element.index}]"
    return f"{element.name}[{element.register}{offset_text(element.index)}]"


_OPERANDS: dict[type, Callable[[Any], str]] = {
    Name: lambda o: o.name,
    Immediate: immediate_text,
    SymbolOffset: lambda o: f"{o.name}+{o.offset}",
    Element: _element,
    Vector: lambda o: f"{{{operands_text(o.items)}}}",
    Address: _address,
    Negated: lambda o: f"{o.operator}{operand_text(o.operand)}",
    Pair: lambda o: f"{operand_text(o.first)}|{operand_text(o.second)}",
    Arguments: lambda o: f"({operands_text(o.items)})",
}
