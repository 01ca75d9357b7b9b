"""Video instructions against the manual's pseudocode on Python integers (9.7.18), with every kind of selector."""

from __future__ import annotations

import random

import numpy as np

from ptxtools import isa
from ptxtools.isa import Opcode
from ptxtools.semantics.video import Selectors
from tests.rows import rows

from . import oracle
from .harness import all_opcodes, operands, run_numpy

COUNT = 24
SCALAR = ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vset")
PARTS = ("", "b0", "b1", "b2", "b3", "h0", "h1")
COMPARE = {
    "eq": lambda x, y: x == y, "ne": lambda x, y: x != y, "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y, "gt": lambda x, y: x > y, "ge": lambda x, y: x >= y,
}  # fmt: skip


def part(value: int, t: str, selector: str) -> int:
    width = {"b": 8, "h": 16}.get(selector[:1], 32)
    position = width * int(selector[1]) if selector else 0
    return oracle.number(value >> position, f"{t[0]}{width}")


def average(x: int, y: int) -> int:
    return (x + y + (x + y >= 0)) >> 1


def operation(op: Opcode, name: str, x: int, y: int) -> int:
    if name in ("vshl", "vshr"):
        y = y & 31 if op.has("wrap") else min(y, 32)
    if name == "vset":
        return int(COMPARE[next(c for c in COMPARE if op.has(c))](x, y))
    return {
        "vadd": lambda: x + y, "vsub": lambda: x - y, "vabsdiff": lambda: abs(x - y), "vmin": lambda: min(x, y),
        "vmax": lambda: max(x, y), "vshl": lambda: x << y, "vshr": lambda: x >> y, "vavrg": lambda: average(x, y),
    }[name]()  # fmt: skip


def scalar(op: Opcode, a: int, b: int, c: int | None, s: Selectors) -> int:
    dtype = op.types[0] if op.family != "vset" else "u32"
    y = part(b, "u32" if op.family in ("vshl", "vshr") else op.types[-1], s.b)
    result = operation(op, op.family, part(a, op.types[-2], s.a), y)
    width = {"b": 8, "h": 16}.get(s.d[:1], 32)
    if op.has("sat"):
        result = oracle.clamp(result, f"{dtype[0]}{width}")
    if c is None:
        return result & 0xFFFF_FFFF
    if s.d:
        mask = ((1 << width) - 1) << width * int(s.d[1])
        return (result << width * int(s.d[1])) & mask | c & ~mask
    third = oracle.number(c, dtype)
    if op.has("min"):
        return min(result, third) & 0xFFFF_FFFF
    if op.has("max"):
        return max(result, third) & 0xFFFF_FFFF
    return (result + third) & 0xFFFF_FFFF


@rows("op", lambda: [op for op in all_opcodes() if op.family in SCALAR][::3], ids=lambda op: op.text, share=3)
def test_scalar(op: Opcode) -> None:
    rng = random.Random(op.text)
    secondary = any(op.has(name) for name in ("add", "min", "max"))
    a, b, c = (operands("u32", COUNT, np.random.default_rng(i)) for i in (1, 2, 3))
    for _ in range(3):
        merges = not secondary and rng.random() < 0.5
        s = Selectors(rng.choice(PARTS[1:]) if merges else "", rng.choice(PARTS), rng.choice(PARTS))
        third = [c] if secondary or merges else []
        got = run_numpy(op, [a, b, *third], selectors=s)[0]
        for i in range(COUNT):
            want = scalar(op, int(a[i]), int(b[i]), int(c[i]) if third else None, s)
            assert int(got[i]) == want, (s, hex(a[i]), hex(b[i]), hex(c[i]), hex(got[i]), hex(want))


def vmad(op: Opcode, a: int, b: int, c: int, s: Selectors) -> int:
    _, atype, btype = op.types
    a_minus, b_minus, c_minus = s.negated
    signed = "s32" in (atype, btype) or a_minus != b_minus or c_minus
    total = part(a, atype, s.a) * part(b, btype, s.b) * (-1 if a_minus != b_minus else 1)
    third = oracle.number(c, "s32" if signed else "u32")
    if c_minus and a_minus == b_minus:
        third = oracle.number(~c, "s32") + 1
    total += third + op.has("po")
    total >>= 7 if op.has("shr7") else 15 if op.has("shr15") else 0
    if op.has("sat"):
        total = oracle.clamp(total, "s32" if signed else "u32")
    return total & 0xFFFF_FFFF


@rows("op", lambda: [op for op in all_opcodes() if op.family == "vmad"], ids=lambda op: op.text)
def test_vmad(op: Opcode) -> None:
    signs = [(False, False, False)]
    if not op.has("po"):
        signs += [(True, False, False), (True, True, False), (False, False, True)]
    a, b, c = (operands("u32", COUNT, np.random.default_rng(i)) for i in (4, 5, 6))
    for number, negated in enumerate(signs):
        s = Selectors("", PARTS[number], PARTS[-number], negated)
        got = run_numpy(op, [a, b, c], selectors=s)[0]
        for i in range(COUNT):
            exact = vmad(op, int(a[i]), int(b[i]), int(c[i]), s)
            assert int(got[i]) == exact, (s, hex(a[i]), hex(b[i]), hex(c[i]), hex(got[i]), hex(exact))


def simd(op: Opcode, a: int, b: int, c: int, s: Selectors) -> int:
    count = int(op.family[-1])
    width, kind = 32 // count, "h" if count == 2 else "b"
    default = {"h": ("10", "32"), "b": ("3210", "7654")}[kind]
    both = b << 32 | a
    total = c
    for i in range(count):
        if str(i) not in (s.d[1:] or default[0]):
            continue
        x, y = (
            oracle.number(both >> width * int((selector[1:] or default[k])[-1 - i]), f"{op.types[k - 2][0]}{width}")
            for k, selector in enumerate((s.a, s.b))
        )
        result = operation(op, op.family[:-1], x, y)
        if op.has("sat"):
            result = oracle.clamp(result, f"{op.types[0][0]}{width}")
        if op.has("add"):
            total += result
        else:
            mask = ((1 << width) - 1) << width * i
            total = total & ~mask | (result << width * i) & mask
    return total & 0xFFFF_FFFF


def simd_forms() -> list[Opcode]:
    return [op for op in all_opcodes() if op.section.startswith("9.7.18.2")]


@rows("op", lambda: simd_forms()[::3], ids=lambda op: op.text, share=3)
def test_simd(op: Opcode) -> None:
    a, b, c = (operands("u32", COUNT, np.random.default_rng(i)) for i in (7, 8, 9))
    choices = [Selectors(), Selectors("h1", "h03", "h21")]
    if op.family[-1] == "4":
        choices = [Selectors(), Selectors("b31", "b0527", "b6143")]
    for s in choices:
        got = run_numpy(op, [a, b, c], selectors=s)[0]
        for i in range(COUNT):
            want = simd(op, int(a[i]), int(b[i]), int(c[i]), s)
            assert int(got[i]) == want, (s, hex(a[i]), hex(b[i]), hex(c[i]), hex(got[i]), hex(want))


def test_manual_example_of_a_merge() -> None:
    """vabsdiff.s32.s32.s32.sat r1.h0, r2.b0, r3.b2, c"""
    op = isa.resolve("vabsdiff.s32.s32.s32.sat")
    inputs = [np.array([v], np.uint32) for v in (0x0000_0080, 0x007F_0000, 0xAAAA_BBBB)]
    assert run_numpy(op, inputs, selectors=Selectors("h0", "b0", "b2"))[0].tolist() == [0xAAAA_00FF]
