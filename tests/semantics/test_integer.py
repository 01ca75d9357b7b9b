"""Integer, extended-precision, logic, shift and movement instructions against Python integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ptxtools import isa, semantics
from ptxtools.isa import Opcode
from tests.rows import rows

from . import oracle
from .harness import all_opcodes, operands, run_numpy, signature

COUNT = 160
Reference = Callable[..., int]


def bits_of(op: Opcode) -> int:
    return int((op.type or "")[1:])


def read(op: Opcode, *values: int) -> list[int]:
    return [oracle.number(v, op.type or "") for v in values]


def _product(op: Opcode, a: int, b: int) -> int:
    x, y = read(op, a, b)
    return (x * y) >> bits_of(op) if op.has("hi") else x * y


def add(op: Opcode, a: int, b: int) -> int:
    total = sum(read(op, a, b))
    return oracle.clamp(total, op.type or "") if op.has("sat") else total


def sub(op: Opcode, a: int, b: int) -> int:
    x, y = read(op, a, b)
    return oracle.clamp(x - y, op.type or "") if op.has("sat") else x - y


def mad(op: Opcode, a: int, b: int, c: int) -> int:
    if op.has("sat"):
        return oracle.clamp(oracle.number(_product(op, a, b), "s32") + oracle.number(c, "s32"), "s32")
    return _product(op, a, b) + c


def mul24(op: Opcode, a: int, b: int) -> int:
    kind = (op.type or "")[0]
    x, y = (oracle.number(v, kind + "24") for v in (a, b))
    return x * y >> 16 if op.has("hi") else x * y


def mad24(op: Opcode, a: int, b: int, c: int) -> int:
    product = mul24(op, a, b)
    if op.has("sat"):
        return oracle.clamp(oracle.number(product, "s32") + oracle.number(c, "s32"), "s32")
    return product + c


def sad(op: Opcode, a: int, b: int, c: int) -> int:
    x, y = read(op, a, b)
    return c + abs(x - y)


def div(op: Opcode, a: int, b: int) -> int:
    x, y = read(op, a, b)
    return -1 if y == 0 else abs(x) // abs(y) * (-1 if (x < 0) != (y < 0) else 1)


def rem(op: Opcode, a: int, b: int) -> int:
    x, y = read(op, a, b)
    return -1 if y == 0 else abs(x) % abs(y) * (-1 if x < 0 else 1)


def relu(op: Opcode, value: int) -> int:
    return max(value, 0) if op.has("relu") else value


def bfind(op: Opcode, a: int) -> int:
    (x,) = read(op, a)
    found = (~x if x < 0 else x).bit_length() - 1
    return found if found < 0 or not op.has("shiftamt") else bits_of(op) - 1 - found


def fns(op: Opcode, mask: int, base: int, offset: int) -> int:
    """The manual's loop (9.7.1.17)."""
    steps = oracle.to_signed(offset, 32)
    if steps == 0:
        return base if base < 32 and mask >> base & 1 else -1
    position, count, step = base, abs(steps) - 1, 1 if steps > 0 else -1
    while 0 <= position < 32:
        if mask >> position & 1:
            if count == 0:
                return position
            count -= 1
        position += step
    return -1


def bfe(op: Opcode, a: int, b: int, c: int) -> int:
    """The manual's loop (9.7.1.19)."""
    msb, position, length = bits_of(op) - 1, b & 255, c & 255
    unsigned = (op.type or "")[0] == "u" or length == 0
    fill = 0 if unsigned else a >> min(position + length - 1, msb) & 1
    bits = [a >> position + i & 1 if i < length and position + i <= msb else fill for i in range(msb + 1)]
    return sum(bit << i for i, bit in enumerate(bits))


def bfi(op: Opcode, a: int, b: int, c: int, d: int) -> int:
    msb, position, length = bits_of(op) - 1, c & 255, d & 255
    for i in range(length):
        if position + i <= msb:
            b = b & ~(1 << position + i) | (a >> i & 1) << position + i
    return b


def szext(op: Opcode, a: int, b: int) -> int:
    if op.has("clamp") and b >= 32:
        return a
    width = b & 31
    return oracle.number(a, f"{(op.type or '')[0]}{width}") if width else 0


def bmsk(op: Opcode, a: int, b: int) -> int:
    if op.has("wrap"):
        a, b = a & 31, b & 31
    return ((1 << min(b, 32)) - 1) << a if a < 32 else 0


def dot(op: Opcode, a: int, b: int, c: int) -> int:
    a_bits = 8 if op.family == "dp4a" else 16
    first = 2 if op.has("hi") else 0
    for i in range(32 // a_bits):
        x = oracle.number(a >> a_bits * i, f"{op.types[-2][0]}{a_bits}")
        c += x * oracle.number(b >> 8 * (first + i), f"{op.types[-1][0]}8")
    return c


def lop3(op: Opcode, a: int, b: int, c: int, table: int) -> int:
    return sum((table >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i for i in range(32))


def shf(op: Opcode, a: int, b: int, c: int) -> int:
    count = c & 31 if op.has("wrap") else min(c, 32)
    both = b << 32 | a
    return both << count >> 32 if op.has("l") else both >> count


def prmt(op: Opcode, a: int, b: int, c: int) -> int:
    """The tables of 9.7.9.7; general form by nibbles."""
    source = [(b << 32 | a) >> 8 * i & 255 for i in range(8)]
    n = c & 3
    chosen = {
        "f4e": [n, n + 1, n + 2, n + 3],
        "b4e": [n, (n - 1) % 8, (n - 2) % 8, (n - 3) % 8],
        "rc8": [n] * 4,
        "ecl": [max(n, i) for i in range(4)],
        "ecr": [min(n, i) for i in range(4)],
        "rc16": [2 * (n & 1), 2 * (n & 1) + 1] * 2,
    }.get(next((m for m in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16") if op.has(m)), ""))
    if chosen is not None:
        return sum(source[k] << 8 * i for i, k in enumerate(chosen))
    result = 0
    for i in range(4):
        nibble = c >> 4 * i & 15
        byte = source[nibble & 7]
        result |= (byte if nibble < 8 else 255 * (byte >> 7)) << 8 * i
    return result


def clmad(op: Opcode, a: int, b: int, c: int) -> int:
    """Polynomials over two elements, whose coefficients are the bits: a times b, a half of that, plus c."""
    product = 0
    while b:
        product ^= a * (b & -b)
        b &= b - 1
    return (product >> 64 if op.has("hi") else product) ^ c


REFERENCES: dict[str, Reference] = {
    "add": add, "sub": sub, "mul": _product, "mad": mad, "mul24": mul24, "mad24": mad24, "sad": sad, "div": div,
    "rem": rem, "abs": lambda op, a: abs(read(op, a)[0]), "neg": lambda op, a: -a,
    "min": lambda op, a, b: relu(op, min(read(op, a, b))), "max": lambda op, a, b: relu(op, max(read(op, a, b))),
    "popc": lambda op, a: a.bit_count(), "clz": lambda op, a: bits_of(op) - a.bit_length(), "bfind": bfind, "fns": fns,
    "brev": lambda op, a: int(f"{a:0{bits_of(op)}b}"[::-1], 2), "bfe": bfe, "bfi": bfi, "szext": szext, "bmsk": bmsk,
    "dp4a": dot, "dp2a": dot, "clmad": clmad,
    "and": lambda op, a, b: a & b, "or": lambda op, a, b: a | b, "xor": lambda op, a, b: a ^ b,
    "not": lambda op, a: ~a, "cnot": lambda op, a: int(a == 0), "lop3": lop3, "shf": shf,
    "shl": lambda op, a, n: a << min(n, 64), "shr": lambda op, a, n: oracle.number(a, op.type or "") >> min(n, 64),
    "prmt": prmt,
}  # fmt: skip


def scalars() -> list[Opcode]:
    """Opcodes with one integer result of one element."""
    chosen = []
    for op in all_opcodes():
        packed = "x" in (op.type or "")
        if (
            semantics.chapter_of(op) in ("integer", "logic") and not packed and op.type != "pred"
        ) or op.family == "prmt":
            chosen.append(op)
    return [op for op in chosen if not (op.family == "lop3" and (op.has("and") or op.has("or")))]


@rows("op", scalars, ids=lambda op: op.text, share=3)
def test_scalar(op: Opcode) -> None:
    shape = signature(op)
    rng = np.random.default_rng(7)
    inputs = [operands(t, COUNT, rng) for t in shape.inputs]
    got = run_numpy(op, inputs)[0]
    mask = (1 << int(shape.outputs[0][1:])) - 1
    for i in range(COUNT):
        values = [int(x[i]) for x in inputs]
        want = REFERENCES[op.family](op, *values) & mask
        assert int(got[i]) == want, (op.text, [hex(v) for v in values], hex(got[i]), hex(want))


def pairs() -> list[Opcode]:
    return [op for op in all_opcodes() if op.type in ("u16x2", "s16x2", "u8x4", "s8x4") and op.family != "set"]


def carries() -> list[Opcode]:
    return [op for op in all_opcodes() if op.carry_in or op.carry_out]


def expected_pair(op: Opcode, *values: int) -> int:
    """Each element of a packed operation."""
    want, (kind, _, _) = 0, (op.type or "").partition("x")
    bits = int(kind[1:])
    for shift in range(0, 32, bits):
        x = [oracle.number(value >> shift, kind) for value in values]
        answers = {"add": sum(x), "sub": x[0] - x[-1], "min": min(x), "max": max(x), "neg": -x[0]}
        result = answers[op.family]
        result = oracle.clamp(result, kind) if op.has("sat") else relu(op, result)
        want |= (result & (1 << bits) - 1) << shift
    return want


def expected_carry(op: Opcode, *values: int) -> list[int]:
    """Result and carry of the exact sum; CC after a subtraction says that nothing was borrowed."""
    size = 1 << bits_of(op)
    *terms, carry = values if op.carry_in else (*values, int(op.family == "sub"))
    if op.family in ("sub", "subc"):
        total = terms[0] - terms[1] - (not carry)
        return [total % size, total >= 0][: 1 + op.carry_out]
    elif op.family in ("mad", "madc"):
        total = _product(op, *terms[:2]) % size + terms[2] + carry
    else:
        total = sum(terms) + carry
    return [total % size, not 0 <= total < size][: 1 + op.carry_out]


@rows("op", pairs, ids=lambda op: op.text)
def test_packed_pairs(op: Opcode) -> None:
    rng = np.random.default_rng(1)
    inputs = [operands("b32", COUNT, rng) for _ in signature(op).inputs]
    for got, *values in zip(run_numpy(op, inputs)[0], *inputs, strict=True):
        assert int(got) == expected_pair(op, *map(int, values))


@rows("op", carries, ids=lambda op: op.text)
def test_carry_chain(op: Opcode) -> None:
    rng = np.random.default_rng(3)
    inputs = [operands(t, COUNT, rng) for t in signature(op).inputs]
    outputs = run_numpy(op, inputs)
    for i, values in enumerate(zip(*inputs, strict=True)):
        assert [int(output[i]) for output in outputs] == expected_carry(op, *map(int, values))


def test_predicate_logic() -> None:
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    assert run_numpy(isa.resolve("and.pred"), [a, b])[0].tolist() == [False, False, False, True]
    assert run_numpy(isa.resolve("or.pred"), [a, b])[0].tolist() == [False, True, True, True]
    assert run_numpy(isa.resolve("xor.pred"), [a, b])[0].tolist() == [False, True, True, False]
    assert run_numpy(isa.resolve("not.pred"), [a])[0].tolist() == [True, True, False, False]


def test_lop3_every_table_and_its_predicate() -> None:
    rng = np.random.default_rng(5)
    a, b, c = (operands("b32", 8, rng) for _ in range(3))
    for table in range(256):
        want = [lop3(isa.resolve("lop3.b32"), *map(int, v), table) for v in zip(a, b, c, strict=True)]
        assert run_numpy(isa.resolve("lop3.b32"), [a, b, c, np.full(8, table, np.uint32)])[0].tolist() == want
        assert run_numpy(isa.resolve("lop3.b32"), [a, b, c, table])[0].tolist() == want
    q = np.array([0, 1] * 4, bool)
    result, p = run_numpy(isa.resolve("lop3.and.b32"), [a, b, c, np.full(8, 0x80, np.uint32), q])
    assert p.tolist() == [bool(r) and bool(x) for r, x in zip(result, q, strict=True)]
    result, p = run_numpy(isa.resolve("lop3.or.b32"), [a, b, c, 0, q])
    assert p.tolist() == q.tolist()


def test_prmt_with_a_constant_selector() -> None:
    rng = np.random.default_rng(6)
    a, b = operands("b32", 16, rng), operands("b32", 16, rng)
    for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
        op = isa.resolve("prmt.b32" + mode)
        for c in [0x7531, 0xFEDC, 0x0123, 0x8888, 1, 2, 3]:
            want = [prmt(op, int(x), int(y), c) for x, y in zip(a, b, strict=True)]
            assert run_numpy(op, [a, b, c])[0].tolist() == want
            assert run_numpy(op, [a, b, np.full(16, c, np.uint32)])[0].tolist() == want


def test_manual_examples_of_fns() -> None:
    def answer(mask: int, base: int, offset: int) -> int:
        inputs = [np.array([v & 0xFFFF_FFFF], np.uint32) for v in (mask, base, offset)]
        return int(run_numpy(isa.resolve("fns.b32"), inputs)[0][0])

    mask = 0xAAAA_AAAA
    assert [answer(mask, 3, 1), answer(mask, 3, -1), answer(mask, 2, 1), answer(mask, 2, -1)] == [3, 3, 3, 1]
