"""What the addresses of accesses are, as the numbers of threads and CTAs decide them: hints beside the accesses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ptxtools.ir import Function
from ptxtools.ir.nodes import Address, Name
from ptxtools.linter.facts import FunctionFacts, ModuleFacts
from ptxtools.linter.values import Value
from ptxtools.linter.walk.shapes import declared_shape

from .document import Document

#: A variable, a parameter or a special register; and a product of two special registers.
_KNOWN = re.compile(r"&?([\w$%.]+?)(?:\+0)?", re.ASCII)
_PRODUCT = re.compile(r"%\(\(\('(%[\w.]+)', 1\),\)\+0\*\(\('(%[\w.]+)', 1\),\)\+0\)")
#: Names that are longer than one number are cut to the other.
_LONG, _SHORT = 32, 24
#: Terms of a sum that is still read at a glance.
_MOST_TERMS = 4


def reached(document: Document) -> Iterator[tuple[int, str]]:
    """For each access through a register whose address follows from numbers of threads and CTAs, and from parameters:
    the end of its line, and the address in bytes, as `s + 4 * %tid.x, 0 to 508`; the range is of a declared CTA."""
    source = document.module.source
    assert source is not None
    module = ModuleFacts(document.module)
    for function in module.bodies:
        for line, text in _of(FunctionFacts(function, module.names), function):
            yield source.line_span(source.line_of(line))[1], f"at {text}"


def _of(facts: FunctionFacts, function: Function) -> Iterator[tuple[int, str]]:
    shape = declared_shape(function)
    threads = shape.x if shape is not None else 0
    for step in facts.accesses:
        access, item = step.access, step.line.item
        operand = item.operands[access.operand] if access is not None else None
        if access is None or not isinstance(operand, Address) or not isinstance(operand.base, Name):
            continue
        text = written(access.address, threads) if step.line.registers[operand.base.name] is not None else ""
        if text:
            yield item.span[1], text


def written(value: Value, threads: int = 0) -> str:
    """A value as a sum, and the range of its known part for so many threads of a row; "" if something in it is unknown.

    The 64 threads of a value differ in %tid.x alone."""
    terms = sorted(((_name(name), factor) for name, factor in value.terms), key=lambda term: "%" in term[0])
    if len(terms) > _MOST_TERMS or not all(name for name, _ in terms):
        return ""
    parts = [_term(name, factor) for name, factor in terms]
    each, span = value.each, ""
    if isinstance(each, int):
        parts += [str(each)] if each or not parts else []
    elif isinstance(each, range):
        parts.append(_term("%tid.x", each.step))
        parts += [str(each.start)] if each.start else []
        last = each.start + each.step * (threads - 1)
        span = f", {min(each.start, last)} to {max(each.start, last)}" if threads else ""
    else:
        parts.append(f"({min(each)} to {max(each)} in two warps)")
    return " + ".join(parts).replace("+ -", "- ") + span


def _name(name: str) -> str:
    """What an unknown of a value is called; "" for what has no name in the text."""
    product = _PRODUCT.fullmatch(name)
    if product is not None:
        return f"{product[1]} * {product[2]}"
    known = _KNOWN.fullmatch(name)
    if known is None:
        return ""
    return known[1] if len(known[1]) <= _LONG else f"…{known[1][-_SHORT:]}"


def _term(name: str, factor: int) -> str:
    return name if factor == 1 else f"-{name}" if factor == -1 else f"{factor} * {name}"
