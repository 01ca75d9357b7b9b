"""Launch files: all keys, defaults, and an error with the nearest name for everything else."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxtools.launch.arguments import BufferArgument, Null, Raw, Scalar
from ptxtools.launch.errors import SpecError
from ptxtools.launch.file import read_launch_file
from ptxtools.launch.job import Job

TENSORMAP = "[buffers.a]\nzeros='u8[64]'\n[tensormaps.A]\nbuffer='a'\ntype='f32'\nshape=[4]\nbox=[4]\n{}"
MINIMAL = 'module = "k.ptx"\ngrid = 4\nblock = [32, 2]\n'


def read(tmp_path: Path, text: str, **more: str) -> Job:
    path = tmp_path / "case.toml"
    path.write_text(text)
    return read_launch_file(str(path), **more)


def test_minimal(tmp_path: Path) -> None:
    job = read(tmp_path, MINIMAL)
    (launch,) = job.launches
    assert launch.module == str(tmp_path / "k.ptx")
    assert (launch.grid, launch.block, launch.cluster) == ((4, 1, 1), (32, 2, 1), None)
    assert (launch.kernel, launch.shared, launch.cooperative, launch.args) == ("", 0, False, [])
    assert (job.device.sms, job.limits.timeout, job.expect_failure) == (16, None, "")


def test_everything(tmp_path: Path) -> None:
    job = read(
        tmp_path,
        """
module = "k.ptx"
kernel = "f"
grid = [4, 4, 1]
block = [128, 1, 1]
cluster = [2, 1, 1]
shared = 49152
device = "sm_90a"
sms = 8
devices = 1
cooperative = true
stack = 4096
timeout = 2.5
check = ""
expect_printed = "out.txt"
expect_failure = "timeout"
args = [{buffer="a"}, {buffer="out", offset=256}, {value=128}, {value=-1.5}, {bytes="00ff"}, {null=true}]
[buffers.a]
file = "a.npy"
[buffers.out]
zeros = "f16[128,128]"
expect = "out.npy"
rtol = 1e-2
atol = 1
save = "got.npy"
[buffers.b]
fill = {type="f32[4]", value=1.5}
[buffers.c]
arange = "s32[64]"
[buffers.d]
random = {type="f32[32,32]", seed=1}
[globals.table]
file = "t.npy"
expect = "t2.npy"
""",
    )
    (launch,) = job.launches
    assert (launch.kernel, launch.cluster, launch.shared) == ("f", (2, 1, 1), 49152)
    assert (launch.cooperative, launch.stack) == (True, 4096)
    assert (job.device.target, job.device.sms, job.limits.timeout, job.expect_failure) == ("sm_90a", 8, 2.5, "timeout")
    assert job.expect_printed == str(tmp_path / "out.txt")
    assert launch.args == [
        BufferArgument("a"), BufferArgument("out", 256), Scalar(128), Scalar(-1.5), Raw(b"\x00\xff"), Null(),
    ]  # fmt: skip
    out = job.buffers["out"]
    assert (out.expect, out.save) == (str(tmp_path / "out.npy"), str(tmp_path / "got.npy"))
    assert (out.tolerance.relative, out.tolerance.absolute) == (1e-2, 1.0)
    assert out.content.shape == (128, 128)
    assert [job.buffers[n].content.kind for n in "abcd"] == ["file", "fill", "arange", "random"]
    assert job.globals[0].expect == str(tmp_path / "t2.npy")


def test_several_launches_inherit_the_top_level(tmp_path: Path) -> None:
    job = read(
        tmp_path,
        MINIMAL + 'args = [{value=1}]\n[[launch]]\nkernel = "f"\n[[launch]]\nkernel = "g"\ngrid = 2\nargs = []\n',
    )
    first, second = job.launches
    assert (first.kernel, first.grid, first.args) == ("f", (4, 1, 1), [Scalar(1)])
    assert (second.kernel, second.grid, second.block, second.args) == ("g", (2, 1, 1), (32, 2, 1), [])


def test_another_module_may_be_run(tmp_path: Path) -> None:
    assert read(tmp_path, MINIMAL, module="other.ptxo").launches[0].module == "other.ptxo"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (MINIMAL + "sharde = 1", "unknown key 'sharde'; did you mean 'shared'?"),
        (MINIMAL + "[bufers.a]\nzeros = 'f32[1]'", "unknown key 'bufers'; did you mean 'buffers'?"),
        (MINIMAL + "[buffers.a]\nzero = 'f32[1]'", "requires exactly one of file, zeros"),
        (
            MINIMAL + "[buffers.a]\nzeros = 'f32[1]'\nexpected = 'x'",
            "buffers.a: unknown key 'expected'; did you mean 'expect'?",
        ),
        (MINIMAL + "[buffers.a]\nzeros = 'f32[1]'\narange = 'f32[1]'", "zeros and arange"),
        (MINIMAL + "[buffers.a]\nzeros = 'f33[1]'", "buffers.a.zeros: unknown element type 'f33'"),
        (MINIMAL + "[buffers.a]\nfill = {type='u8[1]', value=256}", "does not fit into u8"),
        (MINIMAL + "[buffers.a]\nfill = {type='u8[1]'}", "buffers.a.fill: value is missing"),
        (MINIMAL + "[buffers.a]\nrandom = {type='u8[1]', sed=1}", "unknown key 'sed'; did you mean 'seed'?"),
        (MINIMAL + "[buffers.a]\nzeros = 'f32[1]'\nrtol = -1", "buffers.a.rtol: must be 0 or more"),
        (MINIMAL + "[buffers]\na = 1", "buffers.a: must be a table"),
        (MINIMAL + "[buffers.a]\nzeros = 'f32[1]'\nrtol = nan", "buffers.a.rtol: must be 0 or more"),
        (MINIMAL + "[buffers.a]\nzeros = 'f32[1]'\natol = inf", "buffers.a.atol: must be 0 or more, and finite"),
        (MINIMAL + "args = [{value = true}]", "args[0].value: must be a number, not True"),
        (MINIMAL + "args = [{bytes = 1}]", "case.toml: args[0].bytes: must be text, not 1"),
        (MINIMAL + "args = [{bytes = 'xy'}]", "case.toml: args[0].bytes: 'xy' has other characters than"),
        (MINIMAL + "devices = 99999999", "devices: at most 576 devices are allowed"),
        (MINIMAL + "device = 'foo'", "device: there is no device 'foo'"),
        (MINIMAL + "device = 'sm_91'", "did you mean 'sm_90'?"),
        (
            MINIMAL + TENSORMAP.format("swizzle = '12B'"),
            "tensormaps.A.swizzle: there is no swizzle '12B'",
        ),
        (MINIMAL + TENSORMAP.format("fill = 'one'"), "tensormaps.A.fill: there is no fill 'one'"),
        (MINIMAL + TENSORMAP.format("").replace("f32'\n", "f33'\n"), "tensormaps.A.type: there is no type 'f33'"),
        (MINIMAL + "args = [{buffer='a'}]", "there is no [buffers.a]"),
        (MINIMAL + "args = [{bufer='a'}]", "args[0]: unknown key 'bufer'; did you mean 'buffer'?"),
        (MINIMAL + "args = [{}]", "requires exactly one of"),
        (MINIMAL + "args = [{value=1, null=true}]", "requires exactly one of"),
        (MINIMAL + "args = [{value='x'}]", "args[0].value: must be a number"),
        (MINIMAL + "args = [{null=false}]", "must be true"),
        (MINIMAL + "args = [{bytes='0'}]", "an odd number of hexadecimal digits"),
        (MINIMAL + "args = [1]", "args[0]: must be a table"),
        (MINIMAL + "shared = -1", "shared: must be at least 0"),
        (MINIMAL + "sms = 0", "sms: must be at least 1"),
        (MINIMAL + "shared = 'x'", "shared: must be a whole number"),
        (MINIMAL + "shared = true", "shared: must be a whole number"),
        (MINIMAL + "cooperative = 1", "cooperative: must be true or false"),
        (MINIMAL + "timeout = 0", "timeout: must be a number of seconds above 0"),
        (MINIMAL + "expect_failure = 'crash'", "unknown kind of failure 'crash'"),
        (MINIMAL + "expect_failure = 'dedlock'", "did you mean 'deadlock'?"),
        (MINIMAL + "[globals.x]", "requires file or expect"),
        (MINIMAL + "launch = []", "must be [[launch]] tables"),
        (MINIMAL + "[[launch]]\ngird = 1", "launch[0]: unknown key 'gird'; did you mean 'grid'?"),
        (MINIMAL + "[[launch]]\nsms = 1", "unknown key 'sms'"),
        ("module = 'k.ptx'\nblock = 1", "grid is missing"),
        ("grid = 1\nblock = 1", "module is missing"),
        (MINIMAL.replace("4", "[1,2,3,4]"), "grid: must be a list of one to three whole numbers"),
        (MINIMAL.replace("4", "1.5"), "grid: must be a list of one to three whole numbers"),
        ("grid = ", "not a TOML file"),
        ("grid = 1\ngrid = 2", "not a TOML file"),
    ],
)
def test_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(SpecError) as caught:
        read(tmp_path, text)
    assert says in str(caught.value)
    assert str(tmp_path / "case.toml") in str(caught.value)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (MINIMAL + "[multicast.m]\nbuffers = ['a']", "there is no [buffers.a]"),
        (MINIMAL + "[multicast.m]\nbuffers = []", "must name a buffer"),
        (MINIMAL + "args = [{multicast='m'}]", "there is no [multicast.m]"),
        (MINIMAL + "devices = 0", "must be at least 1"),
        (MINIMAL + "devices = 2\n[buffers.a]\nzeros = 'u8[1]'\ndevice = 2", "there is no device 2; devices = 2"),
    ],
)
def test_device_sets(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(SpecError) as caught:
        read(tmp_path, text)
    assert what in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "noise.toml").write_bytes(b"\xff\xfe\x00")
    for name in ("missing.toml", "noise.toml", ""):
        with pytest.raises(SpecError):
            read_launch_file(str(tmp_path / name) if name else str(tmp_path))


def test_windows_line_ends_and_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "case.toml"
    path.write_bytes(b"\xef\xbb\xbf" + MINIMAL.replace("\n", "\r\n").encode())
    assert read_launch_file(str(path)).launches[0].grid == (4, 1, 1)
