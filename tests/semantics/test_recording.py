"""Recording a chip, as far as that goes without one: our engine stands in for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ptxtools import Severity, isa
from ptxtools.api import lint
from ptxtools.isa import Opcode
from ptxtools.isa.targets import provides_any
from tools import golden
from tools.golden import kernels, recording, runners

from .harness import run_numpy, version_of

ROOT = Path(golden.__file__).parents[2]
HEADER = ".version {}\n.target {}\n.address_size 64\n"
#: The chips that the kernels are checked for: each form for the first that has it.
TARGETS = ("sm_100a", "sm_120a", "sm_107a")

# One of each kind of operand: carries, pairs, vectors, predicates, constants, 8 and 128 bits.
TEXTS = """
    add.f32 fma.rm.f64 add.cc.u32 addc.cc.u32 subc.cc.s32 madc.hi.cc.u32 setp.lt.and.f32 setp.eq.f16x2 lop3.b32
    lop3.or.b32 cvt.rs.satfinite.e4m3x4.f32 cvt.rn.satfinite.e2m1x2.f32 cvt.rn.f16x2.e2m1x2 cvt.s8.s32 cvt.u16.u8
    vadd4.u32.u32.u32 vmad.s32.s32.s32 prmt.b32 mul.wide.u16 rcp.approx.f32 tanh.approx.bf16 add.f32x2 div.full.f32
    bfi.b64 testp.infinite.f64 min.NaN.bf16x2 rsqrt.approx.f64 cvt.rzi.s64.f64 selp.f64
""".split()  # noqa: SIM905


def errors(op: Opcode, text: str) -> list[str]:
    """Of a kernel for the first chip that has the form."""
    needs = [need.targets for need in op.requirements]
    target = next(name for name in TARGETS if all(provides_any(name, need) for need in needs))
    header = HEADER.format(version_of(op, target), target)
    return [d.message for d in lint(header + text) if d.severity is Severity.ERROR]


def test_kernels_of_all_kinds_of_forms_are_valid() -> None:
    for op in [*recording.recorded_forms()[::40], *map(isa.resolve, TEXTS)]:
        found = errors(op, kernels.form_kernel(op, "k"))
        pattern = kernels.pattern_of(op)
        if pattern is not None:
            found += errors(op, kernels.hash_kernel(op, "k", pattern, 24))
        assert not [text for text in found if "was removed" not in text], op.text


@pytest.fixture(scope="module")
def recorder() -> recording.Recorder:
    result = recording.Recorder(runners.EngineRunner(), block=14)
    result.record([*map(isa.resolve, TEXTS), isa.resolve("sin.f32")])
    return result


def test_what_is_recorded_can_be_replayed(recorder: recording.Recorder, tmp_path: Path) -> None:
    recorder.save(tmp_path / "engine.npz")
    (path,) = recording.recordings(tmp_path)
    read = recording.Recording(path)
    assert set(read.meta["forms"]) == {isa.resolve(text).text for text in TEXTS}
    assert list(read.meta["refused"]) == ["sin.f32"] and "removed" in read.meta["refused"]["sin.f32"]
    assert list(read.differences(bounded=True)) == []


def test_a_difference_is_told(recorder: recording.Recorder, tmp_path: Path) -> None:
    read_only = list(recorder.outputs)
    place = recorder.meta["forms"]["add.f32"]["outputs"][0]
    blob = bytearray(b"".join(recorder.outputs))
    blob[place[0] + 4 * 7] ^= 1
    recorder.outputs[:] = [bytes(blob)]
    recorder.save(tmp_path / "engine.npz")
    recorder.outputs[:] = read_only
    (line,) = recording.Recording(tmp_path / "engine.npz").differences()
    assert line.startswith("add.f32(") and line.endswith("1 of 384")


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("neg.bf16", lambda x: [x.astype(np.uint16)]),
        ("rcp.approx.ftz.f32", lambda x: [x.astype(np.uint32)]),
        ("div.approx.f32", lambda x: [(x * 2654435761 + 12345).astype(np.uint32),
                                      ((x ^ x >> np.uint64(15)) * 2246822519).astype(np.uint32)]),
        ("rsqrt.approx.ftz.f64", lambda x: [x << np.uint64(32)]),
    ],
)  # fmt: skip
def test_hashes_are_those_of_the_results(text: str, made: object, tmp_path: Path) -> None:
    op = isa.resolve(text)
    recorder = recording.Recorder(runners.EngineRunner(), block=14)
    recorder.hash([op], range(0xFE00, 0xFE02))  # from 0x3f800000 on
    recorder.save(tmp_path / "engine.npz")
    read = recording.Recording(tmp_path / "engine.npz")
    first, count = (0, 1 << 16) if text == "neg.bf16" else (0x3F80_0000, 1 << 14)
    indices = np.arange(first, first + count, dtype=np.uint64)
    result = run_numpy(op, made(indices))[0].astype(np.uint64)  # type: ignore[operator]
    if text.endswith("f64"):
        result = ((result >> np.uint64(32)) * np.uint64(2654435761) + result) & np.uint64(0xFFFF_FFFF)
    assert int(read.sums(text)[0]) == kernels.hash_of(indices, result)
    assert list(read.hash_differences(runners.EngineRunner(), [op], range(2))) == []


def test_no_gpu_is_said_in_one_line() -> None:
    with pytest.raises(runners.RunnerError, match=r"no CUDA driver .*needs a machine with an NVIDIA GPU"):
        runners.CudaRunner("libno_such_driver.so")


def test_the_engine_never_writes_where_recordings_are() -> None:
    command = [sys.executable, str(ROOT / "tools" / "record_golden.py"), "--engine"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "--engine needs --out" in done.stderr
