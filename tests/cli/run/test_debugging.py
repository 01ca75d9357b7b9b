"""`ptx-run --debug` and `--dap`: what is refused before anything runs, and a terminal's end."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxtools.cli.common import exit_status
from ptxtools.cli.run import command
from tests.observe.debug.sessions import session

KERNEL = """.version 7.0
.target sm_75
.address_size 64
.visible .entry k() {
    .reg .u32 %r;
    mov.u32 %r, 1;
    ret;
}
"""


@pytest.fixture
def module(tmp_path: Path) -> str:
    path = tmp_path / "k.ptx"
    path.write_text(KERNEL)
    return str(path)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["-", "--debug"], "the debugger reads standard input: name the file"),
        (["-", "--dap"], "the debugger reads standard input: name the file"),
        (["k.ptx", "--debug", "--dap"], "--debug and --dap exclude each other"),
        (["k.ptx", "--debug", "--trace", "t"], "--trace cannot be written while a debugger goes back and on"),
        (["k.ptx", "--dap", "--timeline", "t"], "--timeline cannot be written while a debugger goes back and on"),
        (["k.ptx", "--dap", "x"], "'x' is no port"),
        (["k.ptx", "--dap", "70000"], "'70000' is no port"),
    ],
)
def test_what_is_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_status(command, "ptx-run", [*arguments, "--grid", "1", "--block", "1"]) == 2
    assert message in capsys.readouterr().err


def test_the_end_of_the_input_lets_the_run_end(module: str) -> None:
    status, output, errors = session([module, "--grid", "1", "--block", "32", "--debug"], [])
    assert status == 0 and not errors
    assert output.splitlines() == ["CTA (0,0,0) warp 0 lanes 0-31, in k at k.ptx:6", "6\tmov.u32 %r, 1"]


def test_failures_have_their_status(module: str, tmp_path: Path) -> None:
    """Also those of the process behind the prompt."""
    assert session([str(tmp_path / "none.ptx"), "--grid", "1", "--block", "32", "--debug"], [])[0] == 2
    status, _, errors = session([module, "--grid", "1", "--block", "5000", "--debug"], ["c"])
    assert status == 1 and errors.startswith("ptx-run: error: ") and "Traceback" not in errors
