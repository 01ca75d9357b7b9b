"""Probes inside braces: the registers and constants of vectors, fragments, coordinates, gradients and offsets."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from ptxtools import isa

from .operands import operands, statement

#: A register of every type that can be declared.
REGISTERS = {
    "pred": "%p", "b8": "%b", "b16": "%h", "b32": "%r", "b64": "%rd", "b128": "%q", "u8": "%ub", "u16": "%uh",
    "u32": "%u", "s32": "%s", "u64": "%ul", "s64": "%sl", "f16": "%x", "f16x2": "%xx", "f32": "%f", "f64": "%fd",
}  # fmt: skip
#: Other things in the place of one element.
OTHERS = (
    "0", "0x100000000", "0f3F800000", "1.5", "0d3FF0000000000000", "WARP_SZ", "_", "%tid.x", "gv", "gv+4", "undeclared",
    "%v4.x", "%v2", "-%r1", "!%p1", "{%r1, %r2}", "[%rd1]", "fn", "LBL", "%r1+1",
)  # fmt: skip
_BRACES = re.compile(r"\{[^{}]*\}")
#: Longer vectors have no rules of their own.
_LONGEST = 8
#: Probes of a vector whose like was tried in full before.
_SAMPLE = 4


def probes(
    op: isa.Opcode, shape: tuple[isa.OperandSpec, ...], rng: random.Random, tried: set[tuple[object, ...]]
) -> Iterator[str]:
    """Statements; `tried` keeps what was tried in full."""
    usual = operands(op, shape)
    for at, text in enumerate(usual):
        for found in _BRACES.finditer(text):
            items = found[0][1:-1].split(", ")
            if len(items) > _LONGEST:
                continue
            key = (op.name, op.family, at, found.start() > 0, len(items), shape[at].type, _letter(items))
            variants = list(dict.fromkeys(_variants(items, found.start() == 0)))
            if key in tried:
                variants = rng.sample(variants, min(_SAMPLE, len(variants)))
            tried.add(key)
            for variant in variants:
                changed = text[: found.start()] + variant + text[found.end() :]
                yield statement(op.text, [*usual[:at], changed, *usual[at + 1 :]])


def _letter(items: list[str]) -> str:
    return ",".join(item.strip("%0123456789") for item in items)


def _braces(items: list[str]) -> str:
    return "{" + ", ".join(items) + "}"


def _variants(items: list[str], whole: bool) -> Iterator[str]:
    """The vector with other elements. whole: nothing but the vector stands in the operand."""
    count = len(items)
    for prefix in REGISTERS.values():
        yield _braces([f"{prefix}{k}" for k in range(count)])
    for at in sorted({0, count // 2, count - 1}):
        for text in (*(f"{prefix}9" for prefix in REGISTERS.values()), *OTHERS):
            yield _braces([*items[:at], text, *items[at + 1 :]])
    for text in ("0", "0f3F800000", "1.5", "_"):
        yield _braces([text] * count)
    if count > 1:
        for first, rest in (("%u", "%r"), ("%s", "%u"), ("%xx", "%r"), ("%f", "%r"), ("%f", "%u"), ("%p", "%r")):
            yield _braces([f"{first}0", *(f"{rest}{k}" for k in range(1, count))])
        for first, rest in (("0", "%u1"), ("0", "%f1"), ("0f3F800000", "%f1"), ("1.5", "%f1"), ("_", "%u1")):
            yield _braces([first, *[rest] * (count - 1)])
    for length in (count - 1, count + 1, 2 * count):
        if length > 0:
            yield _braces([(items * 3)[k] for k in range(length)])
    yield from ("%v2", "%v4", "%tid", "{}") if whole else ("%v2", "%v4", items[0])
