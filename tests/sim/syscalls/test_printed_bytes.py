"""What kernels print arrives byte for byte: at the terminal, in files, in Python."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest

import ptxtools
from ptxtools.cli.common import exit_status
from ptxtools.cli.run import command

#: Prints the bytes from `first` to `last`, each by a call of its own.
KERNEL = """
.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.global .align 1 .b8 text[3] = {37, 99, 0};
.visible .entry bytes(.param .u32 first, .param .u32 last)
{
    .local .align 8 .b8 packed[8];
    .reg .b64 %d<3>; .reg .b32 %r<3>; .reg .pred %p;
    .param .b64 f; .param .b64 v; .param .b32 r;
    ld.param.u32 %r1, [first]; ld.param.u32 %r2, [last];
    mov.u64 %d1, text; cvta.global.u64 %d1, %d1;
    mov.u64 %d2, packed; cvta.local.u64 %d2, %d2;
again:
    st.local.u32 [packed], %r1;
    st.param.b64 [f], %d1; st.param.b64 [v], %d2;
    call (r), vprintf, (f, v);
    add.u32 %r1, %r1, 1;
    setp.le.u32 %p, %r1, %r2;
    @%p bra again;
    ret;
}
"""
ALL = bytes(range(1, 256))


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("bytes.ptx").write_text(KERNEL)
    return "bytes.ptx"


@pytest.mark.share(3)
@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "ascii"])
def test_standard_output_has_the_bytes(
    kernel: str, engine: str, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.BytesIO()
    text = io.TextIOWrapper(stream, encoding=encoding, errors="backslashreplace")
    monkeypatch.setattr(sys, "stdout", text)
    arguments = [kernel, "--engine", engine, "--grid", "1", "--block", "1", "--arg", "1", "--arg", "255"]
    assert exit_status(command, "ptx-run", arguments) == 0
    text.flush()
    assert stream.getvalue() == ALL


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_python_gets_a_text_that_keeps_the_bytes(engine: str) -> None:
    pieces: list[str] = []
    device = ptxtools.Device("sm_80", engine=engine, on_print=pieces.append)
    result = device.launch(ptxtools.loads(KERNEL)["bytes"], 1, 1, [1, 255])
    assert result.printed == ALL.decode("utf-8", "surrogateescape")
    assert os.fsencode(result.printed) == os.fsencode("".join(pieces)) == ALL and len(pieces) == 255
    device.launch(ptxtools.loads(KERNEL.replace("37, 99, 0", "195, 169, 0"))["bytes"], 1, 1, [1, 1])
    assert pieces[-1] == "é"


def launch_file(first: int, last: int) -> None:
    Path("l.toml").write_text(
        'module = "bytes.ptx"\ngrid = 1\nblock = 1\nexpect_printed = "expected"\n'
        f"args = [{{value = {first}}}, {{value = {last}}}]\n"
    )


def test_expected_output_is_compared_byte_for_byte(kernel: str, capfd: pytest.CaptureFixture[str]) -> None:
    launch_file(1, 255)
    Path("expected").write_bytes(ALL)
    assert exit_status(command, "ptx-run", ["--launch", "l.toml"]) == 0
    Path("expected").write_bytes(ALL.replace(b"\xfe", b"\xfd"))
    capfd.readouterr()
    assert exit_status(command, "ptx-run", ["--launch", "l.toml"]) == 1
    err = capfd.readouterr().err
    assert "the kernel's output differs from expected" in err and r"\xfd\xff" in err and r"\xfe\xff" in err


def test_long_outputs_are_compared_from_where_they_differ(kernel: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path(kernel).write_text(KERNEL.replace("{37, 99, 0}", "{37, 100, 10, 0}").replace("text[3]", "text[4]"))
    launch_file(1, 3000)
    lines = [f"{n}\n" for n in range(1, 3001)]
    Path("expected").write_text("".join(lines))
    assert exit_status(command, "ptx-run", ["--launch", "l.toml"]) == 0
    lines[1999] = "two thousand\n"
    Path("expected").write_text("".join(lines))
    capfd.readouterr()
    assert exit_status(command, "ptx-run", ["--launch", "l.toml"]) == 1
    report = capfd.readouterr().err.splitlines()
    assert report[1:] == ["    from line 1999 on:", "     1999", "    -two thousand", "    +2000", "     2001"]
    Path("expected").write_text("".join(f"{n}\n" for n in range(1, 3000)))
    assert exit_status(command, "ptx-run", ["--launch", "l.toml"]) == 1
    assert "    +3000" in capfd.readouterr().err.splitlines()
    Path("expected").write_text("\r\n".join(str(n) for n in range(1, 3001)) + "\r\n")
    assert exit_status(command, "ptx-run", ["--launch", "l.toml"]) == 1
    assert "only the line endings differ" in capfd.readouterr().err
