"""Atomic operations: what they return and leave, in every space, and under two worker threads."""

from __future__ import annotations

import numpy as np
import pytest

from tests.rows import rows

from .harness import Memory, body_kernel, results, run

RNG = np.random.default_rng(11)
M32 = 0xFFFFFFFF


def s32(x: int) -> int:
    return (x ^ 1 << 31) - (1 << 31)


OPERATIONS = {
    "add.u32": lambda a, b: (a + b) & M32, "min.u32": min, "max.u32": max, "exch.b32": lambda a, b: b,
    "min.s32": lambda a, b: min(a, b, key=s32), "max.s32": lambda a, b: max(a, b, key=s32),
    "and.b32": lambda a, b: a & b, "or.b32": lambda a, b: a | b, "xor.b32": lambda a, b: a ^ b,
    "inc.u32": lambda a, b: 0 if a >= b else a + 1, "dec.u32": lambda a, b: b if a == 0 or a > b else a - 1,
}  # fmt: skip


@rows("operation", OPERATIONS)
@rows("space", ["global", "shared", "generic"])
def test_integers(operation, space):
    """Lanes on two words: their old values are those of some order, here that of the lanes."""
    operands, start = RNG.integers(0, 1 << 32, 32, np.uint64), [123, 0xF0000005]
    area = ".shared .u32 s[2];" if space == "shared" else ""
    base = "mov.u64 %d1, s;" if space == "shared" else "mov.u64 %d1, %in;"
    name = "" if space == "generic" else f".{space}"
    body = f"""{area} {base} mul.wide.u32 %d2, %t, 4; add.u64 %d3, %d2, %in; ld.global.u32 %r1, [%d3+8];
        setp.eq.u32 %p1, %t, 0; @%p1 st{name}.u32 [%d1], {start[0]}; @%p1 st{name}.u32 [%d1+4], {start[1]}; bar.sync 0;
        and.b32 %r2, %t, 1; mul.wide.u32 %d4, %r2, 4; add.u64 %d4, %d4, %d1;
        atom{name}.{operation} %r3, [%d4], %r1; st.global.u32 [%out], %r3; ret;"""
    inputs = np.concatenate([np.zeros(2, np.uint32), operands.astype(np.uint32)])
    expected, words = [], list(start)
    for lane in range(32):
        expected.append(words[lane & 1])
        words[lane & 1] = OPERATIONS[operation](words[lane & 1], int(operands[lane]))
    assert results(body, inputs=inputs).tolist() == expected


def test_compare_and_swap_of_64_and_16_bits():
    body = """mov.u64 %d1, 7; cvt.u64.u32 %d2, %t; atom.global.cas.b64 %d3, [%in], %d2, %d1; cvt.u32.u64 %r1, %d3;
        cvt.u16.u32 %h1, %t; mov.b16 %h2, 9; atom.global.cas.b16 %h3, [%in+8], %h1, %h2; cvt.u32.u16 %r2, %h3;
        mad.lo.u32 %r1, %r2, 100, %r1; st.global.u32 [%out], %r1; ret;"""
    expected = [0] + [7 + 900] * 31  # lane 0 swaps 0 for 7 and 9, lanes 7 and 9 find their own number and leave it
    assert results(body, inputs=np.zeros(2, np.uint64)).tolist() == expected


@pytest.mark.parametrize(("t", "dtype"), [("f32", np.float32), ("f64", np.float64)])
def test_floating_point_additions(t, dtype):
    reg = "%f1" if t == "f32" else "%g1"
    body = f"cvt.rn.{t}.u32 {reg}, %t; red.global.add.{t} [%in], {reg}; ret;"
    memory = Memory()
    cell = memory.put(np.zeros(1, dtype))
    run(body_kernel(body, 4), memory, [cell, cell], block=(256, 1, 1), grid=(4, 1, 1))
    assert memory.get(cell, dtype, 1)[0] == 4 * 255 * 128


def test_packed_halves():
    body = "mov.b32 %r1, 0x40003c00; red.global.add.noftz.f16x2 [%in], %r1; ret;"
    memory = Memory()
    cell = memory.put(np.zeros(2, np.float16))
    run(body_kernel(body, 4), memory, [cell, cell])
    assert memory.get(cell, np.float16, 2).tolist() == [32.0, 64.0]


@pytest.mark.parametrize("threads", [1, 2])
def test_no_update_is_lost_between_workers(threads):
    body = """mov.u32 %r1, 0; L: red.global.add.u32 [%in], 1; atom.global.add.f32 %f1, [%in+4], 0f3F800000;
        atom.global.max.u32 %r2, [%in+8], %r0; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 50; @%p1 bra L; ret;"""
    memory = Memory()
    cell = memory.put(np.zeros(4, np.uint32))
    run(body_kernel(body, 4), memory, [cell, cell], block=(64, 1, 1), grid=(64, 1, 1), threads=threads, resident=8)
    words = memory.get(cell, np.uint32, 4)
    assert words[0] == 64 * 64 * 50
    assert words[1:2].view(np.float32)[0] == 64 * 64 * 50
    assert words[2] == 64 * 64 - 1


def test_128_bits():
    body = """mov.u64 %d1, 1; mov.u64 %d2, 2; mov.u64 %d3, 0; mov.b128 %q1, {%d3, %d3}; mov.b128 %q2, {%d1, %d2};
        atom.global.cas.b128 %q3, [%in], %q1, %q2; mov.b128 {%d4, %d5}, %q3; cvt.u32.u64 %r1, %d4; cvt.u32.u64 %r2, %d5;
        mad.lo.u32 %r1, %r2, 10, %r1; st.global.u32 [%out], %r1; ret;"""
    assert results(body, inputs=np.zeros(2, np.uint64)).tolist() == [0] + [21] * 31
