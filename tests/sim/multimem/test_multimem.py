"""multimem operations over a device set (9.7.9.14)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ptxtools
from ptxtools.cli.common import exit_status
from ptxtools.cli.run import command

ENGINES = ("native", "reference")
HEAD = """.version 8.6
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 m, .param .u64 out) {
  .reg .b64 %m, %o, %l<4>; .reg .b32 %i, %r<8>; .reg .b16 %h<4>; .reg .f32 %f<4>; .reg .f64 %d<4>; .reg .pred %p;
  ld.param.u64 %m, [m]; ld.param.u64 %o, [out]; mov.u32 %i, %tid.x;
"""


def run(body: str, arrays: list[Any], *, threads: int = 1, engine: str = "native") -> tuple[list[Any], Any]:
    """The buffers afterwards, and the 16 bytes at %o."""
    device = ptxtools.Device("sm_100a", engine=engine)
    buffers = [device.upload(np.asarray(array)) for array in arrays]
    out = np.zeros(4, np.uint32)
    module = ptxtools.loads(HEAD + body + " ret; }")
    device.launch(module["k"], 1, threads, [device.multicast(buffers), out])
    return [buffer.download() for buffer in buffers], out


@pytest.mark.parametrize("engine", ENGINES)
def test_loads_reduce_over_all_devices(engine: str) -> None:
    body = """multimem.ld_reduce.relaxed.gpu.global.add.u32 %r0, [%m];
    multimem.ld_reduce.weak.global.min.s32 %r1, [%m+4];
    multimem.ld_reduce.weak.global.xor.b32 %r2, [%m+8]; multimem.ld_reduce.weak.global.max.u32 %r3, [%m+8];
    st.global.v4.u32 [%o], {%r0, %r1, %r2, %r3};"""
    arrays = [np.array([n, -n, 1 << n], np.int32) for n in (1, 2, 3)]
    after, out = run(body, arrays, engine=engine)
    assert out.view(np.int32).tolist() == [6, -3, 0b1110, 8]
    assert [a.tolist() for a in after] == [a.tolist() for a in arrays]


@pytest.mark.parametrize("engine", ENGINES)
def test_stores_and_reductions_reach_all_devices(engine: str) -> None:
    body = """shl.b32 %r0, %i, 2; cvt.u64.u32 %l0, %r0; add.u64 %l0, %m, %l0;
    setp.lt.u32 %p, %i, 2; @%p multimem.st.weak.global.u32 [%l0], %i;
    multimem.red.relaxed.gpu.global.add.u32 [%m+12], 1; multimem.red.relaxed.sys.global.max.s64 [%m+16], -3;"""
    start = np.array([9, 9, 9, 0, 0xFFFFFFFB, 0xFFFFFFFF], np.uint32)
    after, _ = run(body, [start, start + np.uint32([0, 0, 0, 5, 0, 0])], threads=8, engine=engine)
    assert after[0].tolist() == [0, 1, 9, 8, 0xFFFFFFFD, 0xFFFFFFFF]
    assert after[1].tolist() == [0, 1, 9, 13, 0xFFFFFFFD, 0xFFFFFFFF]


def test_floats_and_vectors() -> None:
    body = """multimem.ld_reduce.weak.global.add.v4.f32 {%f0, %f1, %f2, %f3}, [%m];
    st.global.v4.f32 [%o], {%f0, %f1, %f2, %f3};"""
    arrays = [np.array([1, 2, 3, 0.1], np.float32), np.array([0.5, 4, -3, 0.2], np.float32)]
    _, out = run(body, arrays)
    assert out.view(np.float32).tolist() == [1.5, 6, 0, float(np.float32(0.1) + np.float32(0.2))]
    body = "mov.f64 %d0, 0d3FF8000000000000; multimem.red.relaxed.gpu.global.add.f64 [%m], %d0;"
    after, _ = run(body, [np.array([1.0]), np.array([2.0])])
    assert [a.tolist() for a in after] == [[2.5], [3.5]]


@pytest.mark.parametrize("engine", ENGINES)
def test_elements_of_other_types_are_bits(engine: str) -> None:
    """Registers of any type hold what no register has as a type (5.2.3); constants are bits, too."""
    body = """mov.b32 %f0, 0x40003F80; multimem.st.weak.global.v2.bf16x2 [%m], {%f0, %f0};
    multimem.st.weak.global.v4.e5m2x4 [%m+16], {1, %r0, 0x3F800001, %r0};
    multimem.ld_reduce.weak.global.add.v2.bf16x2 {%f1, %f2}, [%m]; st.global.v2.f32 [%o], {%f1, %f2};"""
    after, out = run(f"mov.b32 %r0, 77; {body}", [np.zeros(8, np.uint32)] * 2, engine=engine)
    assert [a.tolist() for a in after] == [[0x40003F80, 0x40003F80, 0, 0, 1, 77, 0x3F800001, 77]] * 2
    assert out.tolist()[:2] == [0x40804000] * 2


def test_precision_of_sums() -> None:
    """2048 + 1 + 1 in halves stays 2048; summed in single precision it is 2050."""
    arrays = [np.array([v, v], np.float16) for v in (2048, 1, 1)]
    for accumulate, expected in (("", 2048), (".acc::f32", 2050)):
        _, out = run(
            f"multimem.ld_reduce.weak.global.add{accumulate}.f16x2 %r0, [%m]; st.global.u32 [%o], %r0;", arrays
        )
        assert out.view(np.float16)[:2].tolist() == [expected, expected]
    arrays = [np.array([v] * 4, ml_dtypes.float8_e4m3fn).view(np.uint8) for v in (16, 1, 1)]
    for accumulate, expected in (("", 16), (".acc::f16", 18)):
        _, out = run(
            f"multimem.ld_reduce.weak.global.add{accumulate}.e4m3x4 %r0, [%m]; st.global.u32 [%o], %r0;", arrays
        )
        assert out.view(ml_dtypes.float8_e4m3fn)[:4].astype(float).tolist() == [expected] * 4


def test_what_is_no_multicast_address() -> None:
    with pytest.raises(ptxtools.Trap, match="0x10000200 is not a multicast address"):
        run("multimem.st.weak.global.u32 [%o], %i;", [np.zeros(1, np.uint32)])
    with pytest.raises(ptxtools.Trap, match="multimem access of 4 bytes at 0x400000000000004 is out of bounds"):
        run("multimem.st.weak.global.u32 [%m+4], %i;", [np.zeros(1, np.uint32)])
    with pytest.raises(ptxtools.Trap, match="out of bounds"):
        run("ld.global.u32 %r0, [%m];", [np.zeros(1, np.uint32)])
    with pytest.raises(ptxtools.LaunchError, match="buffers of the same size"):
        run("", [np.zeros(1, np.uint32), np.zeros(2, np.uint32)])


def test_launch_files(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "k.ptx").write_text(HEAD + "multimem.red.relaxed.gpu.global.add.u32 [%m], 5; ret; }")
    np.save(tmp_path / "six.npy", np.array([0, 6], np.uint32))
    (tmp_path / "case.toml").write_text(
        """module = "k.ptx"
grid = 1
block = 1
devices = 2
args = [{multicast="m", offset=4}, {null=true}]
[buffers.x0]
fill = {type="u32[2]", value=0}
[buffers.x1]
file = "start.npy"
expect = "six.npy"
device = 1
[multicast.m]
buffers = ["x0", "x1"]
"""
    )
    np.save(tmp_path / "start.npy", np.array([0, 1], np.uint32))
    assert exit_status(command, "ptx-run", ["--launch", str(tmp_path / "case.toml")]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("engine", ENGINES)
def test_observers_are_told_of_the_access_on_each_device(engine: str) -> None:
    told: list[tuple[Any, ...]] = []

    class Watcher(ptxtools.Observer):
        def access(self, at: Any, access: Any) -> None:
            if "multimem" in at.text:
                told.append(
                    (access.action, access.strength, access.size, access.lanes.tolist(), access.addresses.tolist())
                )

        def wrote_global(self, address: int, size: int) -> None:
            told.append(("twice", address, size))

    body = """setp.lt.u32 %p, %i, 2;
    @%p multimem.ld_reduce.relaxed.gpu.global.add.u32 %r0, [%m]; @%p multimem.st.weak.global.u32 [%m+4], %i;
    @%p multimem.red.release.sys.global.add.u64 [%m+8], 1;"""
    device = ptxtools.Device("sm_100a", engine=engine, observers=[Watcher()])
    buffers = [device.upload(np.zeros(4, np.uint32)) for _ in range(3)]
    module = ptxtools.loads(HEAD + body + " ret; }")
    device.launch(module["k"], 1, 4, [device.multicast(buffers), np.zeros(4, np.uint32)])
    assert told == [
        (action, strength, size, [0, 1], [buffer.address + offset] * 2)
        for action, strength, size, offset in (
            ("read", "relaxed", 4, 0), ("write", "", 4, 4), ("atomic", "release", 8, 8)
        )
        for buffer in buffers
    ]  # fmt: skip
