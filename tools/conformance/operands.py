"""Operand texts for an opcode: fitting ones, and every other kind in their places."""

from __future__ import annotations

from collections.abc import Iterator

from ptxtools.isa import Opcode, OperandSpec
from ptxtools.isa.types import REGISTER_TYPE

#: A register name for each register type.
REGISTERS = {
    "pred": "%p", "b8": "%b", "b16": "%h", "b32": "%r", "b64": "%rd", "b128": "%q", "f32": "%f", "f64": "%fd",
    "f16": "%h", "f16x2": "%r", "u8": "%b", "s8": "%b", "u16": "%h", "s16": "%h", "u32": "%r", "s32": "%r",
    "u64": "%rd", "s64": "%rd",
}  # fmt: skip
_BASES = {"shared": "%rd8", "global": "gv", "const": "cv", "local": "lv", "param": "kp"}
_COORDINATES = {1: 1, 2: 2, 3: 4, 4: 4}
_INDEXED = frozenset({"a1d", "a2d", "acube", "2dms", "a2dms"})

#: What may be tried in the place of any operand.
SCALARS = (
    "%p1", "%b1", "%h1", "%r1", "%rd1", "%q1", "%f1", "%fd1", "%u1", "%s1", "%uh1", "%ul1", "%sl1", "%ub1", "%x1",
    "%xx1", "%v2", "%v4", "%v4.x",
)  # fmt: skip
CONSTANTS = ("0", "1", "-1", "7", "65536", "0x100000000", "1.5", "0f3F800000", "0d3FF0000000000000", "WARP_SZ", "5U")
OTHERS = (
    "%tid.x", "%tid", "%clock64", "%laneid", "gv", "gv+4", "sv", "cv", "lv", "kp", "pv", "fn", "LBL", "TGT", "PROTO",
    "tx", "_", "undeclared", "{%r1}", "{%r1, %r2}", "{%r1, %r2, %r3, %r4}", "{%h1, %h2}", "{%f1, %f2}",
    "{%f1, %f2, %f3, %f4}", "{%rd1, %rd2}", "{%r1, _}", "{%r1, %f1}", "{%r1, 1}", "{1, 2}", "[%rd1]", "!%p1", "-%r1",
    "!%r1", "%p1|%p2", "%r1|%p1", "(%r1)", "%r1+1", "gv[1]", "%r1.b0", "%tid.y",
)  # fmt: skip
ADDRESSES = (
    "[%rd1]", "[%r1]", "[%rd1+4]", "[%rd1+-4]", "[%rd1-4]", "[%r1+16]", "[%ul1]", "[%u1]", "[%h1]", "[%f1]", "[%p1]",
    "[%fd1]", "[%q1]", "[%b1]", "[gv]", "[gv+4]", "[gv+8*2]", "[sv]", "[sv+8]", "[cv]", "[lv]", "[lv+4]", "[kp]",
    "[kp+4]", "[pv]", "[fn]", "[0]", "[16]", "[-4]", "[undeclared]", "[LBL]", "gv", "gv[1]", "%rd1", "%r1", "5",
    "[%tid.x]", "[gv+%r1]", "[%rd1].unified", "[gv].unified", "[sv].unified", "[%rd1, %r1]", "[_]", "[1.5]", "[%v2]",
    "[tx]", "[sf]", "[%rd1+0x10]", "{%rd1}", "[[%rd1]]", "[gv+%rd1]", "[%rd1+gv]", "[gv+sv]",
)  # fmt: skip


def register(kind: str | None, number: int) -> str:
    kind = kind or "u64"
    return f"{REGISTERS[REGISTER_TYPE.get(kind, kind)]}{number}"


def fitting(spec: OperandSpec, number: int, op: Opcode) -> str:
    """Text that may stand for this operand; `number` keeps registers apart."""
    if spec.role == "addr":
        return _address(spec, number, op)
    if spec.role in ("label", "func", "args", "prototype"):
        return {"label": "TGT" if op.family == "brx" else "LBL", "func": "fn", "args": "(%r1)"}.get(spec.role, "PROTO")
    if spec.kinds == {"sink"}:
        return "_"
    if op.family in ("tex", "tld4") and spec.name in ("dPdx", "dPdy"):
        return _gradient(op)
    if op.family in ("tex", "tld4") and spec.name == "e":
        return "{" + ", ".join(f"%r{k}" for k in range(1, 1 + _COORDINATES.get(spec.vector, 4))) + "}"
    if spec.vector or (spec.type is None and "vec" in spec.kinds):
        count = spec.vector or 4
        return "{" + ", ".join(register(spec.type, k) for k in range(count)) + "}"
    if "imm" in spec.kinds and (spec.range or spec.choices or "reg" not in spec.kinds):
        least = spec.range[0] if spec.range else spec.choices[0] if spec.choices else 1
        value = max(least, spec.multiple) if spec.multiple > 1 else least
        return "0.5" if spec.type == "f32" else str(value)
    text = register(spec.type, number)
    if spec.second and not spec.second.optional:
        text += "|" + register(spec.second.type, number + 1)
    return text


def _gradient(op: Opcode) -> str:
    geom = op.mods["geom"]
    count = {"1d": 1, "a1d": 1, "2d": 2, "a2d": 2}.get(geom, 4)
    return "{" + ", ".join(f"%f{k}" for k in range(count)) + "}" if count > 1 else "{%f1}"


def _address(spec: OperandSpec, number: int, op: Opcode) -> str:
    space = (spec.space or "").split("::")[0]
    base = f"%r{number}" if space == "tmem" else _BASES.get(space, "%rd9")
    if space == "param" and op.family == "st":
        base = "pv"
    if op.family in ("suld", "sust", "sured"):
        return f"[sf, {coordinates(op, 'r')}]"
    if op.family == "suq":
        return "[sf]"
    if op.family == "txq":
        return "[tx]"
    if op.family in ("tex", "tld4"):
        letter = "r" if op.mods.get("ctype") == "s32" else "f"
        sampler = "sm, " if len(spec.parts) > 1 else ""
        return f"[tx, {sampler}{coordinates(op, letter)}]"
    parts = [fitting(part, number + k, op) for k, part in enumerate(spec.parts, 1)]
    return f"[{', '.join([base, *parts])}]"


def coordinates(op: Opcode, letter: str) -> str:
    count = _COORDINATES.get(int(op.variables.get("coordinates", 1)), 4)
    parts = [f"%{letter}{k}" for k in range(1, count + 1)]
    if op.mods.get("geom") in _INDEXED:
        parts[0] = "%r9"
    return "{" + ", ".join(parts) + "}"


def operands(op: Opcode, specs: tuple[OperandSpec, ...] | None = None) -> list[str]:
    """One fitting text for each operand that must be written."""
    wanted = op.operands if specs is None else specs
    return [fitting(spec, k, op) for k, spec in enumerate(wanted, 1) if not spec.optional]


def statement(opcode: str, texts: list[str]) -> str:
    return f"{opcode} {', '.join(texts)}".rstrip() + ";"


def optional_parts(op: Opcode) -> Iterator[list[str]]:
    """Operand lists with the optional ones at the end, one more each time; and with second results."""
    must = operands(op)
    given = list(must)
    for at, spec in enumerate(op.operands):
        if spec.optional:
            given.append(fitting(spec, at + 1, op))
            yield list(given)
        elif spec.second and spec.second.optional:
            more = list(must)
            more[at] += "|" + register(spec.second.type, at + 5)
            yield more
            yield [*more[:at], more[at].partition("|")[0] + "|_", *more[at + 1 :]]


def replacements(spec: OperandSpec) -> Iterator[str]:
    """Everything that is tried in the place of one operand."""
    if spec.role == "addr":
        yield from ADDRESSES
        return
    yield from SCALARS
    yield from CONSTANTS
    yield from bounds(spec)
    yield from OTHERS
    if spec.vector:
        for kind in ("b16", "b32", "b64", "f32", "f64", "u32", "s16"):
            yield "{" + ", ".join(register(kind, k) for k in range(spec.vector)) + "}"
        for count in (spec.vector - 1, spec.vector + 1):
            yield "{" + ", ".join(register(spec.type, k) for k in range(max(count, 1))) + "}"


def bounds(spec: OperandSpec) -> Iterator[str]:
    """Constants at the edges of what the operand takes."""
    values: set[int] = set()
    if spec.range:
        low, high = spec.range
        values |= {low - 1, low, low + 1, high - 1, high, high + 1, low + spec.multiple}
    for choice in spec.choices:
        values |= {choice - 1, choice, choice + 1}
    yield from map(str, sorted(values))
