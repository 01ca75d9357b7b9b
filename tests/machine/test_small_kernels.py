"""The reference engine on small kernels, with and without optimisation, against NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.program.harness import Memory, results, run

BENCH = Path(__file__).parents[2] / "testdata" / "bench" / "ptx"
BOTH = pytest.mark.parametrize("optimise", [True, False])


def bench(name: str) -> str:
    return (BENCH / f"{name}.ptx").read_text()


def steps_of_collatz(n: int) -> np.ndarray[Any, Any]:
    counts = []
    for start in range(1, n + 1):
        x, steps = start, 0
        while x != 1:
            x, steps = (3 * x + 1 if x & 1 else x >> 1), steps + 1
        counts.append(steps)
    return np.array(counts, np.uint32)


@BOTH
def test_vecadd(optimise: bool) -> None:
    memory, rng, n = Memory(), np.random.default_rng(1), 1000
    a, b = (rng.random(n, np.float32) for _ in range(2))
    pa, pb, pc = memory.put(a), memory.put(b), memory.put(np.zeros(1024, np.float32))
    run(bench("vecadd"), memory, [pa, pb, pc, n], grid=(4, 1, 1), block=(256, 1, 1), optimise=optimise)
    got = memory.get(pc, np.float32, 1024)
    assert np.array_equal(got[:n], a + b) and not got[n:].any()


@BOTH
@pytest.mark.parametrize("name", ["sgemm_naive", "sgemm_tiled"])
def test_sgemm(name: str, optimise: bool) -> None:
    memory, rng, n = Memory(), np.random.default_rng(2), 32
    a, b = (rng.integers(-8, 8, (n, n)).astype(np.float32) for _ in range(2))
    pa, pb, pc = memory.put(a), memory.put(b), memory.put(np.zeros((n, n), np.float32))
    run(bench(name), memory, [pa, pb, pc, n], grid=(2, 2, 1), block=(16, 16, 1), optimise=optimise)
    assert np.array_equal(memory.get(pc, np.float32, n * n).reshape(n, n), a @ b)


@BOTH
def test_reduce(optimise: bool) -> None:
    memory, n = Memory(), 1000
    data = np.arange(n, dtype=np.float32)
    source, sums = memory.put(data), memory.put(np.zeros(4, np.float32))
    run(bench("reduce"), memory, [source, sums, n], grid=(4, 1, 1), block=(256, 1, 1), optimise=optimise)
    expected = [data[i * 256 : (i + 1) * 256].sum() for i in range(4)]
    assert memory.get(sums, np.float32, 4).tolist() == expected


@BOTH
@pytest.mark.parametrize(("name", "weight"), [("collatz", 1), ("branchy", 2)])
def test_divergent_loops(name: str, weight: int, optimise: bool) -> None:
    memory, n = Memory(), 100
    out = memory.put(np.zeros(128, np.uint32))
    run(bench(name), memory, [out, n], grid=(2, 1, 1), block=(64, 1, 1), optimise=optimise)
    expected = steps_of_collatz(n)
    if weight == 2:  # branchy counts odd steps double
        odd = [sum(1 for x in path(i) if x & 1) for i in range(1, n + 1)]
        expected = expected + np.array(odd, np.uint32)
    assert np.array_equal(memory.get(out, np.uint32, 128)[:n], expected)


def path(x: int) -> list[int]:
    values = []
    while x != 1:
        values.append(x)
        x = 3 * x + 1 if x & 1 else x >> 1
    return values


@BOTH
def test_nbody(optimise: bool) -> None:
    memory, rng, n = Memory(), np.random.default_rng(3), 256
    bodies = rng.random((n, 4), np.float32)
    source, out = memory.put(bodies), memory.put(np.zeros((n, 3), np.float32))
    run(bench("nbody"), memory, [source, out, n], grid=(1, 1, 1), block=(256, 1, 1), optimise=optimise)
    p = bodies[:, :3].astype(np.float64)
    d = p[None] - p[:, None]
    weight = bodies[None, :, 3] / ((d * d).sum(-1) + 1e-3) ** 1.5
    expected = (d * weight[..., None]).sum(1)
    got = memory.get(out, np.float32, 3 * n).reshape(n, 3)
    assert np.allclose(got, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


@BOTH
def test_vector_registers_and_components(optimise: bool) -> None:
    got = results(
        """.reg .v4 .u32 %v;
        mov.u32 %v.x, %t; add.u32 %v.y, %t, 10; mov.u32 %v.z, 7; mov.u32 %v.w, 9;
        mov.b64 %d2, {%v.z, %v.w}; mov.b64 {%r1, %r2}, %d2;
        mov.b64 %d1, {%v.x, %v.y}; mov.b64 {%r3, %r4}, %d1;
        add.u32 %r5, %r1, %r2; add.u32 %r5, %r5, %r3; add.u32 %r5, %r5, %r4;
        st.global.u32 [%out], %r5; ret;""",
        optimise=optimise,
    )
    t = np.arange(32, dtype=np.uint32)
    assert np.array_equal(got, 16 + t + t + 10)


@BOTH
def test_carry_chain(optimise: bool) -> None:
    got = results(
        """mov.u32 %r1, 0xFFFFFFFF; add.cc.u32 %r2, %r1, %t; addc.u32 %r3, 5, 0;
        st.global.u32 [%out], %r3; ret;""",
        optimise=optimise,
    )
    assert got.tolist() == [5] + [6] * 31


@BOTH
def test_special_registers(optimise: bool) -> None:
    body = """mov.u32 %r1, %tid.y; mov.u32 %r2, %ntid.x; mad.lo.u32 %r3, %r1, %r2, %t;
        mov.u32 %r4, %ctaid.x; mov.u32 %r5, %nctaid.x; mov.u32 %r6, %laneid; mov.u32 %r7, %warpid;
        mov.u32 %r8, %lanemask_lt;
        mul.wide.u32 %d2, %r3, 32; ld.param.u64 %d1, [out]; add.u64 %d1, %d1, %d2;
        st.global.v4.u32 [%d1], {%r1, %r2, %r4, %r5}; st.global.v4.u32 [%d1+16], {%r6, %r7, %r8, %t}; ret;"""
    got = results(body, 8 * 48, block=(16, 3, 1), optimise=optimise).reshape(48, 8)
    linear = np.arange(48)
    assert np.array_equal(got[:, 0], linear // 16)
    assert np.array_equal(got[:, 4], linear % 32) and np.array_equal(got[:, 5], linear // 32)
    assert np.array_equal(got[:, 6], (1 << linear % 32) - 1)
    assert set(got[:, 1]) == {16} and set(got[:, 2]) == {0} and set(got[:, 3]) == {1}


@BOTH
def test_branch_table(optimise: bool) -> None:
    got = results(
        """and.b32 %r1, %t, 3;
        table: .branchtargets A, B, A, C;
        brx.idx %r1, table;
        A: mov.u32 %r2, 10; bra.uni END;
        B: mov.u32 %r2, 20; bra.uni END;
        C: mov.u32 %r2, 30;
        END: st.global.u32 [%out], %r2; ret;""",
        optimise=optimise,
    )
    assert got.tolist() == [10, 20, 10, 30] * 8


@BOTH
def test_shaloop(optimise: bool) -> None:
    memory, n, rounds = Memory(), 128, 20
    out = memory.put(np.zeros(n, np.uint32))
    run(bench("shaloop"), memory, [out, rounds], grid=(2, 1, 1), block=(64, 1, 1), optimise=optimise)
    i = np.arange(n, dtype=np.uint32)
    a, b, c, d = i ^ 0x6A09E667, i + np.uint32(0xBB67AE85), np.uint32(0x3C6EF372) ^ (i << 7), i + np.uint32(0xA54FF53A)

    def rotate(x: np.ndarray[Any, Any], by: int) -> np.ndarray[Any, Any]:
        return (x >> np.uint32(by)) | (x << np.uint32(32 - by))

    for k in range(rounds):
        s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)
        s1 = rotate(d, 6) ^ rotate(d, 11) ^ rotate(d, 25)
        t = s0 + ((a & b) ^ (a & c) ^ (b & c)) + s1 + ((d & a) ^ (~d & b)) + np.uint32(0x428A2F98 + k)
        a, b, c, d = t, a, b, c
    assert np.array_equal(memory.get(out, np.uint32, n), a ^ b ^ c ^ d)


@BOTH
def test_a_special_register_is_read_again_where_the_first_reading_did_not_happen(optimise: bool) -> None:
    text = """.visible .entry k(.param .u64 out) {
        .reg .pred %p; .reg .b32 %r<5>; .reg .b64 %rd<4>;
        ld.param.u64 %rd1, [out];
        mov.u32 %r1, %tid.x;
        setp.lt.u32 %p, %r1, 32;
        @%p bra LOW;
        mov.u32 %r2, %ctaid.x;
        add.u32 %r2, %r2, 100;
        bra.uni STORE;
    LOW:
        mov.u32 %r3, %ctaid.x;
        add.u32 %r2, %r3, 200;
    STORE:
        mad.lo.u32 %r4, %r1, 4, 0;
        cvt.u64.u32 %rd2, %r4;
        add.u64 %rd3, %rd1, %rd2;
        mov.u32 %r3, %ctaid.x;
        mad.wide.u32 %rd3, %r3, 256, %rd3;
        st.global.u32 [%rd3], %r2;
        ret;
    }"""
    memory = Memory()
    out = memory.put(np.zeros(128, np.uint32))
    run(text, memory, [out], grid=(2, 1, 1), block=(64, 1, 1), optimise=optimise)
    got = memory.get(out, np.uint32, 128).reshape(2, 2, 32)
    assert (got == np.array([[[200], [100]], [[201], [101]]])).all()
