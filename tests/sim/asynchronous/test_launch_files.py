"""Tensor maps of launch files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ptxtools.cli.common import exit_status
from ptxtools.cli.run import command

KERNEL = """.version 8.7
.target sm_100a
.address_size 64
.visible .entry k(.param .align 64 .b8 m[128], .param .u64 o) {
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [o];
    ld.param.u64 %rd2, [m]; st.global.u64 [%rd1], %rd2;
    ld.param.u64 %rd2, [m+8]; st.global.u64 [%rd1+8], %rd2;
    ret;
}
"""
FILE = """module = "k.ptx"
grid = 1
block = 1
args = [{tensormap="t"}, {buffer="o"}]
[buffers.a]
zeros = "f16[64,64]"
[buffers.o]
zeros = "u64[2]"
save = "o.npy"
[tensormaps.t]
buffer = "a"
offset = 128
type = "f16"
shape = [64, 63]
strides = [128]
box = [64, 8]
swizzle = "128B"
"""


def run(folder: Path, text: str) -> int:
    (folder / "k.ptx").write_text(KERNEL)
    (folder / "case.toml").write_text(text)
    return exit_status(command, "ptx-run", ["--launch", str(folder / "case.toml")])


def test_a_tensor_map_is_passed_by_value(tmp_path: Path) -> None:
    assert run(tmp_path, FILE) == 0
    address, flags = np.load(tmp_path / "o.npy").tolist()
    assert address % 256 == 128
    assert flags & 0xFFFF_FFFF == 1 << 1 | 1 << 4 | 6 << 7 | 3 << 13


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('buffer = "a"', 'buffer = "x"', "there is no [buffers.x]"),
        ('{tensormap="t"}', '{tensormap="u"}', "there is no [tensormaps.u]"),
        ('type = "f16"', 'type = "half"', "there is no type 'half'"),
        ("box = [64, 8]", "box = [64.5, 8]", "whole numbers"),
        ("box = [64, 8]", "bix = [64, 8]", "bix"),
        ("strides = [128]", "strides = [100]", "multiples of 16"),
        ("offset = 128", "offset = 8", "not aligned to 16"),
        ('[{tensormap="t"}, {buffer="o"}]', '[{tensormap="t"}, {tensormap="t"}]', "8 bytes, not 128"),
    ],
)
def test_mistakes(tmp_path: Path, old: str, new: str, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, FILE.replace(old, new)) != 0
    said = capsys.readouterr().err
    assert reason in said and "Traceback" not in said
