"""Directed rounding by modes of the CPU: where they change, and that nothing is computed in the wrong one."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxtools import isa, semantics
from ptxtools.machine.arrays import NumpyAlgebra, quiet
from ptxtools.native.code import jit, modes
from ptxtools.native.code.algebra import LLVMAlgebra
from ptxtools.native.code.emitter import Emitter
from tests.rows import rows
from tests.work import HANG

from ..semantics.harness import LANES, Native, dtype_of, operands, signature
from .harness import results

AVX2 = ("sse2", "avx", "avx2", "fma", "f16c")
pytestmark = pytest.mark.skipif(not jit.is_x86(), reason="no x86")

#: Arithmetic in every mode, and what uses arithmetic to nearest inside.
STEPS = [f"{name}.{mode}.{t}" for name in ("add", "sub", "mul", "fma", "div", "sqrt") for t in ("f32", "f64")
         for mode in ("rn", "rz", "rm", "rp")]  # fmt: skip
STEPS += """add.rz.ftz.f32 mul.rp.sat.f32 fma.rm.f32x2 rcp.rm.f32 rcp.rz.f64 cvt.rz.f32.f64 cvt.rn.f32.f64
    cvt.rm.f32.u32 cvt.rp.f32.s64 cvt.rm.f64.u64 cvt.rn.f32.u64 cvt.rn.f64.s64 cvt.rzi.s32.f32 cvt.rni.u64.f64
    cvt.rmi.f32.f32 cvt.rn.f16.f32 cvt.f32.f16 fma.rn.f16x2 add.bf16x2 div.u32 rem.s32 div.s64 sin.approx.f32
    rcp.approx.ftz.f64 add.rm.f32.f16 cvt.rz.f16.f32 min.f64 neg.f64 neg.f64 abs.f64 copysign.f64 mad.rn.f64""".split()  # noqa: SIM905


def steps(seed: int, count: int) -> list[tuple[isa.Opcode, list[int]]]:
    """A random body: opcodes with the numbers of their operands. Values 0 to 5 are of 16, 32 and 64 bits, in pairs."""
    rng = np.random.default_rng(seed)
    widths = [16, 16, 32, 32, 64, 64]
    found = []
    for _ in range(count):
        op = isa.resolve(STEPS[rng.integers(len(STEPS))])
        fit = [[i for i, bits in enumerate(widths) if bits == 8 * dtype_of(t)().itemsize] for t in signature(op).inputs]
        found.append((op, [int(rng.choice(numbers[-4:])) for numbers in fit]))
        widths.append(8 * dtype_of(signature(op).outputs[0])().itemsize)
    return found


def values(algebra: Any, body: list[tuple[isa.Opcode, list[int]]], inputs: tuple[Any, ...]) -> list[Any]:
    """What every step gives."""
    known = list(inputs)
    for op, numbers in body:
        function = semantics.find(op)
        assert function is not None
        known.append(function(algebra, op, *(known[i] for i in numbers))[0])
    return known[len(inputs) :]


@rows("features", [None, AVX2, ()], ids=["host", "avx2", "plain"], share=6)
@rows("seed", range(8))
def test_random_bodies(seed: int, features: tuple[str, ...] | None) -> None:
    """Bodies that mix all modes, through the passes that the engine's code goes through; many operands are NaNs."""
    body = steps(seed, 24)
    native = Native(features, optimise=True)
    types = ["u16", "u16", "u32", "u32", "u64", "u64"]
    outputs = [signature(op).outputs[0] for op, _ in body]
    number = native.add_body(lambda algebra, *inputs: values(algebra, body, inputs), types, outputs)
    rng = np.random.default_rng(seed)
    inputs = [operands(f"f{t[1:]}" if t != "u16" else t, 8 * LANES, rng) for t in types]
    with quiet():
        wanted = values(NumpyAlgebra(), body, tuple(inputs))
    got = native.run(number, inputs, [dtype_of(t) for t in outputs])
    for (op, numbers), want, found in zip(body, wanted, got, strict=True):
        wrong = np.flatnonzero(np.broadcast_to(want, found.shape) != found)
        assert not len(wrong), (op.text, numbers, wrong[:4], seed)


def emitted(body: list[str]) -> tuple[list[str], str]:
    """Changes of the mode and arithmetic of a body, "rz" or "fadd", and its whole text; "|" begins a block."""
    emitter = Emitter(AVX2)
    algebra = LLVMAlgebra(emitter, LANES)
    for text in body:
        if text == "|":
            emitter.line("br label %next")
            emitter.line("next:")
            continue
        operation, _, mode = text.partition(".")
        if mode:
            algebra.directed(operation, "f32", mode, "%a", "%b")
        else:
            algebra.fadd("f32", "%a", "%b")
    text = emitter.take()
    names = dict(enumerate(modes.MXCSR))
    found = re.findall(r"i64 (\d+)\)|constrained\.(\w+)|= (f\w+) <|(br) ", text)
    return [names[int(place) // 4] if place else "".join(rest) for place, *rest in found], text


def test_neighbours_share_a_mode() -> None:
    assert emitted(["add.rz", "mul.rz"])[0] == ["rz", "fadd", "fmul", "rn"]
    assert emitted(["add.rz", "add", "mul.rz"])[0] == ["rz", "fadd", "rn", "fadd", "rz", "fmul", "rn"]
    assert emitted(["add.rm", "add.rp"])[0] == ["rm", "fadd", "rp", "fadd", "rn"]


def test_a_block_ends_to_nearest() -> None:
    assert emitted(["add.rz", "|", "add.rz"])[0] == ["rz", "fadd", "rn", "br", "rz", "fadd", "rn"]


def test_without_directed_rounding_arithmetic_is_plain() -> None:
    found, text = emitted(["add", "add"])
    assert found == ["fadd", "fadd"] and "constrained" not in text and modes.LOAD not in text


def test_a_call_is_made_to_nearest() -> None:
    lines = ["  %x = call i32 @llvm.ctpop.i32(i32 1)", "  %y = call i32 @other()"]
    first = modes.Rounded.of("%a", "fadd", "float", [("float", "%p"), ("float", "%q")], "rz")
    done, _ = modes.settle([first, *lines])
    assert [line.split("@")[1].split("(")[0] for line in done] == [
        modes.LOAD, "llvm.experimental.constrained.fadd.f32", "llvm.ctpop.i32", modes.LOAD, "other",
    ]  # fmt: skip


# --- in the engine ----------------------------------------------------------------------------------------------------

KERNEL = """
ld.global.f32 %f1, [%in]; ld.global.f64 %g1, [%in+8]; mov.f32 %f2, 0f00000000; mov.f64 %g2, 0d0000000000000000;
cvt.rn.f32.u32 %f4, %t; cvt.rn.f64.u32 %g3, %t; mov.u32 %r1, 0; setp.lt.u32 %p2, %t, 20;
LOOP:
fma.rm.f32 %f2, %f1, %f4, %f2; add.rn.f32 %f3, %f2, %f1; mul.rz.f32 %f3, %f3, %f1; @%p2 add.rp.f32 %f2, %f2, %f3;
fma.rp.f64 %g2, %g1, %g3, %g2; add.f64 %g2, %g2, %g1; mul.rm.f64 %g2, %g2, %g1; cvt.rz.f32.f64 %f5, %g2;
add.rm.f32 %f2, %f2, %f5; div.rn.f32 %f2, %f2, %f1;
add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 50;
@%p1 bra LOOP;
cvt.rzi.u64.f64 %d1, %g2; mov.b32 %r2, %f2; cvt.u64.u32 %d2, %r2; shl.b64 %d1, %d1, 32; or.b64 %d1, %d1, %d2;
st.global.u64 [%out], %d1; ret;
"""


def kernel_results() -> list[int]:
    inputs = np.array([np.float32(1.1).view(np.uint32), np.float64(1.001).view(np.uint64)], np.uint64)
    return [int(v) for v in results(KERNEL, dtype=np.uint64, inputs=inputs)]


def test_a_kernel_on_a_plainer_cpu(tmp_path: Path) -> None:
    """Runs, parts of warps and records by themselves, as this CPU computes them with modes in its instructions."""
    if "avx2" not in jit.host_features():
        pytest.skip("this machine cannot run it")
    code = f"""
from ptxtools.native.code import jit
jit.aim_at("haswell", {[*AVX2, "64bit", "cmov", "cx8", "fxsr", "sse", "sse3", "ssse3", "sse4.1", "sse4.2", "popcnt"]})
from tests.native import test_modes
print(test_modes.kernel_results())
"""
    environment = {**os.environ, "PTXTOOLS_CACHE": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(kernel_results())


def test_the_callers_mode_is_kept_and_not_used() -> None:
    """The engine computes the same whatever the caller rounds like, and leaves that alone."""
    wanted = kernel_results()
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    upward = 0x800
    try:
        assert library.fesetround(upward) == 0
        got = kernel_results()
        assert library.fegetround() == upward
    finally:
        library.fesetround(0)
    assert got == wanted
