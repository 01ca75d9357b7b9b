"""set, setp, selp, slct against Python's comparisons."""

from __future__ import annotations

import math
import operator

import numpy as np

from ptxtools import isa
from ptxtools.isa import Opcode
from tests.rows import rows

from . import oracle
from .harness import all_opcodes, operands, run_numpy, signature
from .test_floating import flush

COUNT = 40
ORDERED = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
FLOATS = ("f16", "bf16", "f32", "f64")


def truth(op: Opcode, t: str, a: int, b: int) -> bool:
    condition = op.mods["CmpOp"]
    if t not in FLOATS:
        kind = "u" + t[1:] if condition in UNSIGNED else t
        return ORDERED[UNSIGNED.get(condition, condition)](oracle.number(a, kind), oracle.number(b, kind))
    x, y = (oracle.decode(flush(v, t, op.has("ftz")), t) for v in (a, b))
    unordered = math.isnan(x) or math.isnan(y)
    if condition in ("num", "nan"):
        return unordered == (condition == "nan")
    if condition.endswith("u"):
        return unordered or ORDERED[condition[:-1]](x, y)
    return not unordered and ORDERED[condition](x, y)


def with_predicate(op: Opcode, p: bool, c: bool) -> bool:
    return {"and": p and c, "or": p or c, "xor": p != c}.get(op.mods.get("BoolOp", ""), p)


def arguments(op: Opcode, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    inputs = [operands(t, COUNT, rng) for t in signature(op).inputs]
    inputs[1][: COUNT // 4] = inputs[0][: COUNT // 4]
    return inputs


def expected_setp(op: Opcode, a: int, b: int, c: int = 0) -> list[bool]:
    """p and q."""
    t = (op.type or "").removesuffix("x2")
    if op.type != t:
        want = [truth(op, t, a & 0xFFFF, b & 0xFFFF), truth(op, t, a >> 16, b >> 16)]
    else:
        want = [truth(op, t, a, b), not truth(op, t, a, b)]
    return [with_predicate(op, w, bool(c)) for w in want]


def expected_set(op: Opcode, a: int, b: int, c: int = 0) -> int:
    """All ones or 1.0 where true, of each half of a pair by itself."""
    if len(op.types) == 1:
        element, _, _ = op.types[0].partition("x")
        ones = (1 << int(element[1:])) - 1
        places = range(0, 32, int(element[1:]))
        return sum(truth(op, element, a >> s & ones, b >> s & ones) * ones << s for s in places)
    target, source = op.types
    t = source.removesuffix("x2")
    one = {"f32": 0x3F80_0000, "f16": 0x3C00, "bf16": 0x3F80, "f16x2": 0x3C00, "bf16x2": 0x3F80}
    if source == t:
        true = one.get(target, (1 << int(target[1:])) - 1 if target[0] in "us" else 0)
        return true * with_predicate(op, truth(op, t, a, b), bool(c))
    true = one.get(target, 0xFFFF)
    halves = [with_predicate(op, truth(op, t, a >> s & 0xFFFF, b >> s & 0xFFFF), bool(c)) for s in (0, 16)]
    return true * halves[0] | true * halves[1] << 16


@rows("op", lambda: [op for op in all_opcodes() if op.family == "setp"][::3], ids=lambda op: op.text, share=3)
def test_setp(op: Opcode) -> None:
    inputs = arguments(op, 1)
    p, q = run_numpy(op, inputs)
    for i, values in enumerate(zip(*inputs, strict=True)):
        assert [bool(p[i]), bool(q[i])] == expected_setp(op, *map(int, values)), values


@rows("op", lambda: [op for op in all_opcodes() if op.family == "set"][::13], ids=lambda op: op.text, share=3)
def test_set(op: Opcode) -> None:
    inputs = arguments(op, 2)
    for got, *values in zip(run_numpy(op, inputs)[0], *inputs, strict=True):
        assert int(got) == expected_set(op, *map(int, values)), values


def test_selp() -> None:
    for op in (op for op in all_opcodes() if op.family == "selp"):
        a, b, p = arguments(op, 3)
        assert np.array_equal(run_numpy(op, [a, b, p])[0], np.where(p, a, b))


def test_slct() -> None:
    c = np.array([0, 0x8000_0000, 1, 0xFFFF_FFFF, 0x8000_0001, 0x7F80_0000, 0x7FC0_0000, 0xBF80_0000], np.uint32)
    a, b = np.full(8, 1, np.uint32), np.full(8, 2, np.uint32)
    assert run_numpy(isa.resolve("slct.u32.s32"), [a, b, c])[0].tolist() == [1, 2, 1, 2, 2, 1, 1, 2]
    assert run_numpy(isa.resolve("slct.u32.f32"), [a, b, c])[0].tolist() == [1, 1, 1, 2, 2, 1, 2, 2]
    assert run_numpy(isa.resolve("slct.ftz.u32.f32"), [a, b, c])[0].tolist() == [1, 1, 1, 2, 1, 1, 2, 2]
