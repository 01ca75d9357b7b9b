"""What the three commands share: failures become messages and exit statuses, never tracebacks."""

import click
import pytest

from ptxtools.cli import common
from ptxtools.cli.common import exit_status, write_output
from ptxtools.diagnostics import Diagnostic, LaunchError, PtxError, Source, Trap


def command_that(action, decorate=lambda function: function):
    @click.command()
    @decorate
    @common.common_options
    def command(**_):
        return action()

    return command


def raising(error):
    def action():
        raise error

    return action


FAILURES = [
    (PtxError([Diagnostic("PTX201", "m", (0, 1), Source("x", "a.ptx"))]), 1, "a.ptx:1:1: error: m [PTX201]"),
    (LaunchError("too many threads"), 1, "tool: error: too many threads"),
    (Trap("bad address", kernel="k"), 1, "trap: bad address in kernel k"),
    (common.Failure("out of luck"), 2, "tool: error: out of luck"),
    (common.Failure("refused", 1), 1, "tool: error: refused"),
    (click.UsageError("wrong"), 2, "tool: error: wrong"),
    (FileNotFoundError(2, "No such file or directory", "x.npy"), 2, "x.npy: No such file or directory"),
    (MemoryError(), 2, "out of memory"),
    (KeyboardInterrupt(), 130, "tool: interrupted"),
    (click.Abort(), 130, "tool: interrupted"),
    (BrokenPipeError(), 0, ""),
]


@pytest.mark.parametrize(("error", "status", "text"), FAILURES, ids=lambda v: type(v).__name__)
def test_failures(error, status, text, capfd):
    assert exit_status(command_that(raising(error)), "tool", []) == status
    err = capfd.readouterr().err
    assert text in err and "Traceback" not in err


def test_internal_errors_ask_for_a_report(capsys, monkeypatch):
    monkeypatch.delenv("PTXTOOLS_DEBUG", raising=False)
    assert exit_status(command_that(raising(KeyError("k"))), "tool", []) == 70
    err = capsys.readouterr().err
    assert "internal error: KeyError: 'k' (test_common.py:" in err
    assert "please report it" in err and "Traceback" not in err


class Metadata:
    """What an installed package says about itself."""

    def __init__(self, *addresses):
        self.addresses = list(addresses)

    def get_all(self, name):
        return self.addresses if name == "Project-URL" and self.addresses else None


@pytest.mark.parametrize(("addresses", "shown"), [
    (["Homepage, https://example.org", "Issues, https://example.org/issues"], "https://example.org/issues"),
    (["Bug Tracker, https://example.org/bugs, or so"], "https://example.org/bugs, or so"),
    (["issue-tracker,https://example.org/t"], "https://example.org/t"),
    (["Homepage, https://example.org"], ""),
    ([], ""),
])  # fmt: skip
def test_the_report_address_is_that_of_the_package(capsys, monkeypatch, addresses, shown):
    """Without an address in the package's metadata none is printed."""
    monkeypatch.setattr(
        "importlib.metadata.metadata", lambda name: Metadata(*addresses) if name == "ptxtools" else None
    )
    exit_status(command_that(raising(KeyError("k"))), "tool", [])
    where = f"at {shown}" if shown else "to its maintainers"
    assert f"please report it {where}, with the input" in capsys.readouterr().err


def test_no_report_address_of_a_package_that_is_not_installed(capsys, monkeypatch):
    from importlib.metadata import PackageNotFoundError

    monkeypatch.setattr("importlib.metadata.metadata", lambda _: raising(PackageNotFoundError("ptxtools"))())
    exit_status(command_that(raising(KeyError("k"))), "tool", [])
    assert "please report it to its maintainers" in capsys.readouterr().err


def test_messages_repeat_no_more_than_can_be_read(capsys):
    exit_status(command_that(raising(common.Failure("a" * 400_000 + " is wrong"))), "tool", [])
    err = capsys.readouterr().err
    assert len(err) < 300 and err.endswith("a is wrong\n")


def test_a_tab_in_a_message_is_a_space(capsys):
    exit_status(command_that(raising(common.Failure("add.u32 \t%r1;"))), "tool", [])
    assert "add.u32  %r1;" in capsys.readouterr().err


def test_debugging_shows_the_traceback(capsys, monkeypatch):
    monkeypatch.setenv("PTXTOOLS_DEBUG", "1")
    exit_status(command_that(raising(KeyError("k"))), "tool", [])
    assert "Traceback" in capsys.readouterr().err


def test_the_status_is_what_the_command_returns():
    assert exit_status(command_that(lambda: 1), "tool", []) == 1
    assert exit_status(command_that(lambda: None), "tool", []) == 0


def test_messages_cannot_steer_the_terminal(capsys):
    exit_status(command_that(raising(common.Failure("a\x1b[2Jb"))), "tool", [])
    assert "\x1b" not in capsys.readouterr().err


def test_write_is_whole_or_not_at_all(tmp_path):
    path = tmp_path / "out"
    write_output(str(path), b"one")
    write_output(str(path), b"two")
    assert path.read_bytes() == b"two" and [p.name for p in tmp_path.iterdir()] == ["out"]


def test_write_to_nowhere(tmp_path):
    with pytest.raises(common.Failure) as caught:
        write_output(str(tmp_path / "none" / "out"), b"x")
    assert caught.value.status == 2 and "cannot be written" in caught.value.message


def test_progress_is_silent_without_a_terminal(capsys):
    with common.progress("working", 10) as step:
        for _ in range(10):
            step()
    assert capsys.readouterr().err == ""
