"""Code for CPUs with vectors of 256 bits and no registers for flags: the same results as on any other."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ptxtools.native.code import jit, tiers
from ptxtools.native.code.emitter import Emitter, module_of
from ptxtools.native.handlers import transposed
from tests.work import HANG

from .harness import results
from .test_modes import AVX2


def run(emit: Callable[[Emitter], None], given: np.ndarray, size: int) -> np.ndarray:
    """What a body makes of memory at %in, in `size` bytes at %out."""
    e = Emitter(AVX2)
    assert e.unmasked
    emit(e)
    function = e.function("f", "ptr %in, ptr %out")
    code = jit.compile_object(module_of([function], e.declarations, "nounwind"))
    out = np.zeros(size, np.uint8)
    address = jit.link_object(code, ["f"])["f"]
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(address)(given.ctypes.data, out.ctypes.data)
    return out


def test_sums_are_cut_off_to_f32() -> None:
    def emit(e: Emitter) -> None:
        whole = e.value("load <16 x i32>, ptr %in, align 4")
        e.line(f"store <16 x float> {e.toward_zero(whole)}, ptr %out, align 4")

    ends = [0, 1, 2**24 - 1, 2**24, 2**24 + 1, 2**25 + 3, 2**30 + 63, 2**31 - 2**7]
    rng = np.random.default_rng(5)
    for numbers in (ends + [-n for n in ends], *rng.integers(-(2**31) + 2**7, 2**31 - 2**7, (200, 16))):
        given = np.array(numbers, np.int32)
        found = run(emit, given, given.nbytes).view(np.float32)
        bits = np.abs(given.astype(np.int64))
        kept = bits & ~((1 << np.maximum(np.ceil(np.log2(bits + 1)).astype(np.int64) - 24, 0)) - 1)
        assert (found == np.sign(given) * kept).all(), given


@pytest.mark.parametrize("width", [2, 4])
def test_rows_are_taken_apart_and_put_together(width: int) -> None:
    def take(e: Emitter) -> None:
        for number, words in enumerate(transposed.load(e, "%in", 16, width)):
            place = e.value(f"getelementptr <16 x i32>, ptr %out, i64 {number}")
            e.line(f"store <16 x i32> {words}, ptr {place}, align 4")

    def put(e: Emitter) -> None:
        places = [e.value(f"getelementptr <16 x i32>, ptr %in, i64 {number}") for number in range(width)]
        pieces = [e.value(f"load <16 x i32>, ptr {place}, align 4") for place in places]
        e.line(f"store <{16 * width} x i32> {transposed.join(e, 16, pieces)}, ptr %out, align 4")

    row = np.arange(16 * width, dtype=np.uint32)
    apart = run(take, row, row.nbytes).view(np.uint32).reshape(width, 16)
    assert (apart == row.reshape(16, width).T).all()
    assert (run(put, np.ascontiguousarray(apart), row.nbytes).view(np.uint32) == row).all()


def test_columns_of_a_warp() -> None:
    def take(e: Emitter) -> None:
        warp = e.value("load <32 x i32>, ptr %in, align 4")
        for number, words in enumerate(transposed.columns(e, warp)):
            place = e.value(f"getelementptr <8 x i32>, ptr %out, i64 {number}")
            e.line(f"store <8 x i32> {words}, ptr {place}, align 4")

    lanes = np.arange(32, dtype=np.uint32)
    assert (run(take, lanes, lanes.nbytes).view(np.uint32).reshape(4, 8) == lanes.reshape(8, 4).T).all()


def test_flags_are_compared_where_they_are_used() -> None:
    """Each block compares bits for itself, half of them where it needs no more; what reads a word has the word."""
    e = Emitter(AVX2)
    flags = e.value("bitcast i32 %word to <32 x i1>")
    low = e.part("i1", 32, flags, 16, 16)
    e.value(f"bitcast <32 x i1> {flags} to i32", "%same")
    e.jump("next")
    e.begin("next")
    for name in ("%x", "%y"):
        e.value(f"select <32 x i1> {flags}, <32 x i32> %a, <32 x i32> %b", name)
    lines = e.take().split("\n")
    compared = [line for line in lines if "icmp eq" in line]
    assert [line.split(" = ")[1][:16] for line in compared] == ["icmp eq <16 x i3", "icmp eq <32 x i3"]
    assert compared[0].startswith(f"  {low} = ")
    assert lines.index(compared[1]) > lines.index("next:")
    own = compared[1].split()[0]
    assert [line for line in lines if f"select <32 x i1> {own}," in line] == lines[-2:]
    assert f"  %same = bitcast <32 x i1> {flags} to i32" in lines


#: Guards, shared memory at any words, rows of four words, tables, and words that lanes have far apart.
BODY = """
.shared .align 16 .b8 space[4096]; .reg .u32 %s;
mov.u32 %s, space; mov.u32 %r1, 0; mul.wide.u32 %w, %t, 16; add.u64 %in, %in, %w; mov.f32 %f4, 0f00000000;
LOOP:
ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%in];
mul.lo.u32 %r2, %t, 37; add.u32 %r2, %r2, %r1; and.b32 %r2, %r2, 127; shl.b32 %r3, %r2, 2; add.u32 %r3, %r3, %s;
setp.lt.u32 %p1, %r2, 77; setp.ne.u32 %p2, %r1, %t; and.pred %p3, %p1, %p2;
@%p3 st.shared.f32 [%r3], %f1;
@!%p3 st.shared.f32 [%r3+512], %f2;
bar.sync 0;
xor.b32 %r4, %r2, 5; shl.b32 %r4, %r4, 2; add.u32 %r4, %r4, %s;
mov.f32 %f5, 0f3f800000; @%p1 ld.shared.f32 %f5, [%r4];
ex2.approx.f32 %f0, %f0; rcp.approx.f32 %f3, %f3; fma.rn.f32 %f4, %f0, %f3, %f4; add.f32 %f4, %f4, %f5;
selp.f32 %f5, %f5, %f4, %p3;
shl.b32 %r5, %t, 4; add.u32 %r5, %r5, %s;
bar.sync 0;
st.shared.v4.f32 [%r5+2048], {%f5, %f4, %f3, %f0};
bar.sync 0;
ld.shared.f32 %f0, [%r3+2048]; add.f32 %f4, %f4, %f0;
add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 40; @%p1 bra LOOP;
st.global.f32 [%out], %f4; ret;
"""


def kernel_results() -> list[int]:
    inputs = np.random.default_rng(3).uniform(-2, 2, 4 * 128).astype(np.float32)
    before, tiers.AT_ONCE = tiers.AT_ONCE, True
    try:
        return [int(v) for v in results(BODY, 128, inputs=inputs)]
    finally:
        tiers.AT_ONCE = before


def test_a_kernel_made_for_another_cpu(tmp_path: Path) -> None:
    if "avx2" not in jit.host_features():
        pytest.skip("this machine cannot run it")
    code = """
from bench.cpus import CPUS
from ptxtools.native.code import jit
name, _, features = CPUS["avx2"]
jit.aim_at(name, features.split())
from tests.native import test_avx2
print(test_avx2.kernel_results())
"""
    environment = {**os.environ, "PTXTOOLS_CACHE": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(kernel_results())
