"""Runs sessions of `ptx-run --debug`, in processes of their own: a session goes back by copying its process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.work import HANG

ROOT = Path(__file__).resolve().parents[3]


def session(arguments: list[str], commands: list[str]) -> tuple[int, str, str]:
    """Status, standard output, and standard error; the commands come through a pipe."""
    done = subprocess.run(
        [sys.executable, "-m", "ptxtools", "run", *arguments], input="".join(f"{line}\n" for line in commands),
        capture_output=True, text=True, timeout=HANG, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def answers(output: str) -> list[list[str]]:
    """What the session says at its beginning, and to each command."""
    return [part.splitlines()[1 if n else 0 :] for n, part in enumerate(output.split("(ptx) "))]
