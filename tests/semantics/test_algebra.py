"""The algebras themselves: slots and operands, packing, 128-bit values, scalar code; atomics; address windows."""

from __future__ import annotations

import ctypes
import math

import llvmlite.binding as llvm
import numpy as np
import pytest

from ptxtools import isa, semantics
from ptxtools.machine.arrays import NumpyAlgebra, quiet
from ptxtools.native.code.algebra import LLVMAlgebra
from ptxtools.native.code.emitter import Emitter
from ptxtools.program.program import LOCAL_WINDOW, SHARED_WINDOW
from tests.rows import rows

from . import oracle
from .harness import CONTEXT, Native, dtype_of, operands, run_numpy

A = NumpyAlgebra()


def array(t: str, *values: int) -> np.ndarray:
    d = dtype_of(t)
    return np.array([v & ((1 << (8 * d().itemsize)) - 1) for v in values], d)


def test_registers_wider_than_the_operand() -> None:
    wide = array("b32", 0x1234_80FF)
    assert A.adapt(wide, "b32", "u8").tolist() == [0xFF]
    assert A.adapt(wide, "b32", "s8").tolist() == [0xFFFF]
    assert A.adapt(wide, "b32", "s16").tolist() == [0x80FF]
    assert A.adapt(array("b64", 1 << 40 | 7), "b64", "u32").tolist() == [7]


def test_results_extend_by_their_type() -> None:
    assert A.widen(array("s16", -2), "s16", "b64").tolist() == [2**64 - 2]
    assert A.widen(array("u16", 0xFFFE), "u16", "b64").tolist() == [0xFFFE]
    assert A.widen(array("s16", 0x80), "s8", "b32").tolist() == [0xFFFF_FF80]
    assert A.widen(array("s16", 0xFFFF), "u8", "b32").tolist() == [0xFF]
    low, high = A.widen(array("s32", -1), "s32", "b128")
    assert (low.tolist(), high.tolist()) == ([2**64 - 1], [2**64 - 1])


@pytest.mark.parametrize(
    ("element", "count"),
    [("b8", 2), ("b8", 4), ("b8", 8), ("b16", 2), ("b16", 4), ("b32", 2), ("b32", 4), ("b64", 2), ("b8", 16)],
)
def test_pack_and_unpack(element: str, count: int) -> None:
    rng = np.random.default_rng(count)
    parts = [operands(element, 32, rng) for _ in range(count)]
    whole = A.pack(element, parts)
    back = A.unpack(element, count, whole)
    assert all(np.array_equal(x, y) for x, y in zip(parts, back, strict=True))
    low = whole[0] if isinstance(whole, tuple) else whole
    width = int(element[1:])
    assert int(low[0]) & ((1 << width) - 1) == int(parts[0][0])


def scalar(op: isa.Opcode, old: int, *values: int) -> int:
    """An atomic operation's arithmetic as scalar native code."""
    rule = semantics.atomic_rule(op)
    assert rule is not None and op.type is not None
    emitter = Emitter()
    bits = 8 * dtype_of(op.type)().itemsize
    names = [f"%x{i}" for i in range(1 + len(values))]
    result = rule(LLVMAlgebra(emitter, lanes=0), op.type, names[0], *names[1:])
    parameters = ", ".join(f"i{bits} {name}" for name in names)
    text = f"define i{bits} @f({parameters}) {{\n{emitter.take()}\n  ret i{bits} {result}\n}}\n{emitter.declarations}"
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    integer = {16: ctypes.c_uint16, 32: ctypes.c_uint32, 64: ctypes.c_uint64}[bits]
    return int(ctypes.CFUNCTYPE(integer, *[integer] * len(names))(engine.get_function_address("f"))(old, *values))


ONE, TWO, THREE, TINY = 0x3F80_0000, 0x4000_0000, 0x4040_0000, 0x0000_0001
ATOMICS = [
    ("atom.global.add.u32", (0xFFFF_FFFF, 3), 2),
    ("atom.global.inc.u32", (5, 5), 0),
    ("atom.global.inc.u32", (4, 5), 5),
    ("atom.global.dec.u32", (0, 5), 5),
    ("atom.global.dec.u32", (9, 5), 5),
    ("atom.global.dec.u32", (3, 5), 2),
    ("atom.shared.cas.b64", (7, 7, 9), 9),
    ("atom.shared.cas.b64", (8, 7, 9), 8),
    ("atom.global.exch.b32", (1, 2), 2),
    ("atom.global.min.s32", (0xFFFF_FFFF, 1), 0xFFFF_FFFF),
    ("atom.global.max.u64", (1 << 63, 1), 1 << 63),
    ("atom.global.and.b32", (12, 10), 8),
    ("red.global.xor.b32", (12, 10), 6),
    ("atom.global.add.f32", (ONE, TWO), THREE),
    ("atom.global.add.f32", (TINY, TINY), 0),
    ("atom.shared.add.f32", (TINY, TINY), 2),
    ("atom.global.add.f64", (0x3FF0 << 48, 0x4000 << 48), 0x4008 << 48),
    ("atom.global.add.noftz.f16x2", (0x3C00_0001, 0x3C00_0001), 0x4000_0002),
    ("atom.global.add.noftz.bf16", (0x3F80, 0x3F80), 0x4000),
    ("red.global.v2.f16.min.noftz", (0x8000, 0x0000), 0x8000),
    ("red.global.v2.f16.max.noftz", (0x7E01, 0x3C00), 0x3C00),
]


@rows(("text", "values", "want"), ATOMICS)
def test_atomics(text: str, values: tuple[int, ...], want: int) -> None:
    op = isa.resolve(text)
    rule = semantics.atomic_rule(op)
    assert rule is not None and op.type is not None
    with quiet():
        got = rule(A, op.type, *[array(op.type, v) for v in values])
    assert got.tolist() == [want]
    assert scalar(op, *values) == want


def test_cas_of_128_bits_compares_both_halves() -> None:
    op = isa.resolve("atom.global.cas.b128")
    rule = semantics.atomic_rule(op)
    assert rule is not None
    old = (array("b64", 1, 1), array("b64", 2, 3))
    expected = (array("b64", 1, 1), array("b64", 2, 2))
    new = (array("b64", 8, 8), array("b64", 9, 9))
    low, high = rule(A, "b128", old, expected, new)
    assert (low.tolist(), high.tolist()) == ([8, 1], [9, 3])


def test_address_windows() -> None:
    offset = array("u64", 0x40)
    generic = run_numpy(isa.resolve("cvta.shared.u64"), [offset])[0]
    assert generic.tolist() == [SHARED_WINDOW + 0x40]
    assert run_numpy(isa.resolve("cvta.to.shared.u64"), [generic])[0].tolist() == [0x40]
    assert run_numpy(isa.resolve("cvta.global.u64"), [offset])[0].tolist() == [0x40]
    addresses = array("u64", SHARED_WINDOW + 4, LOCAL_WINDOW, 0x1000, CONTEXT["const_base"] + 8)
    answers = {s: run_numpy(isa.resolve(f"isspacep.{s}"), [addresses])[0].tolist()
               for s in ("shared", "local", "global", "const")}  # fmt: skip
    assert answers == {
        "shared": [True, False, False, False],
        "local": [False, True, False, False],
        "global": [False, False, True, True],
        "const": [False, False, False, True],
    }


def test_round_to_odd_fma() -> None:
    """Rounding its results to 11 bits equals rounding the exact value."""
    rng = np.random.default_rng(3)
    x = [operands("f32", 400, rng) for _ in range(3)]
    with quiet():
        odd = A.fma_to_odd(*x)
    for i in range(400):
        patterns = [int(v[i]) for v in x]
        down, up = (oracle.arithmetic("fma", "f32", m, *patterns) for m in ("rm", "rp"))
        if math.isnan(oracle.decode(down, "f32")):
            continue
        assert int(odd[i]) in (down, up)
        assert down == up or int(odd[i]) & 1 or int(odd[i]) & 0x7FFF_FFFF == 0


def test_wide_division_near_multiples() -> None:
    """64-bit quotients are made of f64 ones where the CPU converts vectors; dividends of all sizes beside multiples."""
    rng = np.random.default_rng(12)
    count = 1 << 15
    words = rng.integers(0, 1 << 63, (2, count), dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    b, factor = np.maximum(words >> rng.integers(0, 64, (2, count)).astype(np.uint64), 1)
    a = np.minimum(factor, ~np.uint64(0) // b) * b + rng.integers(-1, 2, count).astype(np.uint64)
    native = Native()
    jobs = [(op, native.add(op, ["u64", "u64"])) for op in map(isa.resolve, ("div.u64", "rem.u64"))]
    for (_, number), want in zip(jobs, (a // b, a % b), strict=True):
        assert np.array_equal(native.run(number, [a, b], [np.uint64])[0], want)
