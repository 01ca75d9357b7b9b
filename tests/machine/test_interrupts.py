"""Ctrl-C while a run is being reported: what is known by then is printed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ptxtools.cli.common import exit_status
from ptxtools.cli.run import command
from ptxtools.native.loop import driver, hangs, helpers
from ptxtools.reference import deadlocks
from ptxtools.sim.runtime import Runtime

#: Each CTA waits for a second warp that it does not have.
WAITS = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { bar.sync 1, 64; ret; }\n"
BAD = WAITS.replace("bar.sync 1, 64;", ".reg .b64 %a; mov.u64 %a, 8; st.global.u32 [%a], 1;")
#: What each engine calls at the third CTA, and not before.
THIRD = {"native": (hangs, "_summary", 2), "reference": (deadlocks, "_note", 2)}


def interrupting(patch: pytest.MonkeyPatch, holder: Any, name: str, after: int) -> None:
    """Let a function be interrupted after some calls, once."""
    made: Callable[..., Any] = getattr(holder, name)
    left = [after]

    def counted(*arguments: Any, **named: Any) -> Any:
        left[0] -= 1
        if left[0] == -1:
            raise KeyboardInterrupt
        return made(*arguments, **named)

    patch.setattr(holder, name, counted)


def ran(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str], *options: str) -> list[str]:
    (tmp_path / "k.ptx").write_text(text)
    line = [str(tmp_path / "k.ptx"), "--grid", "4", "--block", "32", *options]
    assert exit_status(command, "ptx-run", line) == 130
    return capsys.readouterr().err.strip().splitlines()


@pytest.mark.parametrize("engine", THIRD)
def test_a_deadlock_report_has_what_was_found(
    tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    interrupting(monkeypatch, *THIRD[engine])
    err = ran(tmp_path, WAITS, capsys, "--engine", engine, "--threads", "1")
    assert err[0] == "ptx-run: interrupted"
    assert "deadlock: no thread can go on in kernel k, CTA (0,0,0), thread (0,0,0)" in err[1]
    assert "interrupted while threads were looked for: there may be more" in "\n".join(err)
    (line,) = [line for line in err if "threads wait" in line]
    assert "CTAs (0,0,0), (1,0,0), warp 0: 64 threads wait at barrier 1: 32 of 64 threads came, 32 are missing" in line


@pytest.mark.parametrize("engine", THIRD)
def test_a_trap_is_told_while_it_is_being_explained(
    tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    interrupting(monkeypatch, Runtime, "overwritten", 0)
    err = ran(tmp_path, BAD, capsys, "--engine", engine)
    assert err[0] == "ptx-run: interrupted"
    assert "k.ptx:4: trap: global write of 4 bytes at 0x8 is out of bounds in kernel k" in err[1]


def test_workers_are_stopped_while_the_first_waits_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Impatient(helpers.Job):
        """Interrupts who waits for it first."""

        waited = False

        def join(self) -> None:
            if not Impatient.waited:
                Impatient.waited = True
                raise KeyboardInterrupt
            super().join()

    monkeypatch.setattr(helpers, "Job", Impatient)
    monkeypatch.setattr(driver, "_ALONE", 1)
    err = ran(tmp_path, WAITS, capsys, "--threads", "2")
    assert Impatient.waited and err[0] == "ptx-run: interrupted"
    assert any("threads wait at barrier 1" in line for line in err)
