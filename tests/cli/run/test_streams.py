"""Output that cannot be written is told; a long run shows on a terminal that it goes on."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ptxtools.cli import running as module
from ptxtools.cli import ticking

ROOT = Path(__file__).parents[3]
VECADD = str(ROOT / "testdata" / "bench" / "ptx" / "vecadd.ptx")
#: What writes to standard output, in each command.
WRITING = [
    ("run", VECADD, "--list"),
    ("run", "--help"),
    ("run", "--version"),
    ("lint", VECADD, "--format", "json"),
    ("as", VECADD, "-o", "-"),
]


def shell(line: str, *arguments: str, folder: Path | None = None) -> tuple[int, str]:
    """Run `ptxtools ARGUMENTS` with a redirection."""
    words = ["sh", "-c", f'exec "$@" {line}', "sh", sys.executable, "-m", "ptxtools", *arguments]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(words, capture_output=True, text=True, cwd=folder, env={**os.environ, "PYTHONPATH": path})
    return done.returncode, done.stderr


@pytest.mark.share(3)
@pytest.mark.parametrize("arguments", WRITING, ids=lambda a: " ".join(w.rsplit("/")[-1] for w in a))
def test_a_closed_standard_output_is_an_error(arguments: tuple[str, ...]) -> None:
    status, err = shell(">&-", *arguments)
    assert (status, err.count("cannot write standard output: it is closed"), len(err.splitlines())) == (2, 1, 1)


def test_unless_nothing_is_written(tmp_path: Path) -> None:
    run = ("run", VECADD, "--grid", "1", "--block", "1", "--arg", "null", "--arg", "null", "--arg", "null")
    assert shell(">&-", *run, "--arg", "0") == (0, "")
    assert shell(">&- 2>&-", *run, "--arg", "0") == (0, "")
    assert shell(">&-", "as", VECADD, "-o", "k.ptxo", folder=tmp_path) == (0, "")
    assert shell("<&- >&-", "lint", "-q", VECADD) == (0, "")


@pytest.mark.share(3)
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
@pytest.mark.parametrize("arguments", WRITING, ids=lambda a: " ".join(w.rsplit("/")[-1] for w in a))
def test_a_full_disk_is_an_error(arguments: tuple[str, ...]) -> None:
    status, err = shell(">/dev/full", *arguments)
    assert status == 2 and "cannot write standard output: No space left" in err and len(err.splitlines()) == 1


@pytest.mark.share(3)
@pytest.mark.parametrize("arguments", WRITING, ids=lambda a: " ".join(w.rsplit("/")[-1] for w in a))
def test_a_reader_that_goes_away_ends_a_command_quietly(arguments: tuple[str, ...]) -> None:
    read, write = os.pipe()
    os.close(read)
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run([sys.executable, "-m", "ptxtools", *arguments], stdout=write, stderr=subprocess.PIPE,
                          env={**os.environ, "PYTHONPATH": path})  # fmt: skip
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_deleted_working_directory_is_named(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    status, err = shell("", "lint", VECADD, folder=gone)
    assert status == 0, err
    words = ["sh", "-c", 'cd "$0" && rmdir "$0" && exec "$@"', str(gone), sys.executable, "-m", "ptxtools"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([*words, "lint", VECADD], capture_output=True, text=True, env=env)
    assert done.returncode == 0 or "error: the working directory: No such file" in done.stderr


# --- a long run -------------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    """An event that is waited for in no time: it is set after so many waits."""

    def __init__(self, waits: int) -> None:
        self.left, self.asked = waits, list[float]()

    def wait(self, seconds: float) -> bool:
        self.asked.append(seconds)
        self.left -= 1
        return self.left < 0

    def set(self) -> None:
        self.left = 0


def ticked(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, waits: int, *, quiet: bool = False) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    clock = Clock(waits)
    monkeypatch.setattr("threading.Event", lambda: clock)

    class Now:
        """Runs at once, in the same thread."""

        def __init__(self, target: object, daemon: bool) -> None:
            self.start = target

        def join(self) -> None:
            pass

    monkeypatch.setattr("threading.Thread", Now)
    with ticking.Ticker(quiet):
        pass
    return stream.getvalue()


def test_a_long_run_says_that_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = ticked(monkeypatch, Terminal(), 3)
    assert shown.count("running for 0 s") == 3 and shown.endswith("\r\x1b[K")


def test_nothing_is_shown_of_a_short_run_nor_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ticked(monkeypatch, Terminal(), 0) == ""
    assert ticked(monkeypatch, io.StringIO(), 3) == ""
    assert ticked(monkeypatch, Terminal(), 3, quiet=True) == ""


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(7.9, "7 s"), (60, "1:00 min"), (754, "12:34 min"), (3607, "1:00:07 h"), (90000, "25:00:00 h")],
)
def test_elapsed_time(seconds: float, shown: str) -> None:
    assert ticking.clock(seconds) == shown


@pytest.mark.parametrize(
    ("instructions", "seconds", "shown"),
    [
        (1, 0.5, "1 thread-instruction in 0.500000 s, 2/s"),
        (32, 0.001, "32 thread-instructions in 0.001000 s, 32,000/s"),
        (1_250_000, 1.0, "1,250,000 thread-instructions in 1.000000 s, 1.25 million/s"),
        (2_000_000_000, 1.0, "2,000,000,000 thread-instructions in 1.000000 s, 2,000 million/s"),
        (0, 0.0, "0 thread-instructions in 0.000000 s, 0/s"),
    ],
)
def test_speed(instructions: int, seconds: float, shown: str) -> None:
    assert module._speed(instructions, seconds) == shown
