"""Every case of testdata/cases that runs, shuffled with several seeds, on one and two worker threads, and with
asynchronous work completed as late as it may; kernels that are right have no findings of asynccheck.

    python tools/sweep_cases.py [--seeds N] [--engine native|reference] [PATTERN]

Prints what fails; exits 1 if anything does.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import io
import tomllib
from pathlib import Path

from ptxtools.cli.common import exit_status
from ptxtools.cli.run import command

ROOT = Path(__file__).resolve().parents[1]
CASES = ROOT / "testdata" / "cases"


def names(pattern: str) -> list[str]:
    """Cases that are meant to pass; those that are to be refused or to run for ever are of no use here."""
    waiting = tomllib.loads((ROOT / "tests" / "waiting.toml").read_text())
    found = sorted(str(path.parent.relative_to(CASES)) for path in CASES.rglob("case.toml"))
    useful = [name for name in found if "launch-error" not in name and "timeout" not in name]
    return [name for name in useful if name not in waiting and fnmatch.fnmatch(name, pattern)]


#: Seconds that a case may take; the reference engine needs a minute for some on a quiet machine.
LIMIT = {"native": 60, "reference": 900}


def failure(name: str, engine: str, options: list[str]) -> str:
    """What a run of a case said when it failed, else nothing."""
    said = io.StringIO()
    limit = str(LIMIT[engine])
    arguments = ["--engine", engine, "--launch", str(CASES / name / "case.toml"), "--timeout", limit, *options]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        status = exit_status(command, "ptx-run", arguments)
    return said.getvalue() or f"status {status}" if status else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pattern", nargs="?", default="*")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--engine", choices=("native", "reference"), default="native")
    arguments = parser.parse_args()
    variants = [["--seed", str(seed)] for seed in range(arguments.seeds)] + [["--check", "asynccheck"]]
    if arguments.engine == "native":
        variants += [["--threads", "1"], ["--threads", "2"]]
    bad = 0
    for options in variants:
        for name in names(arguments.pattern):
            said = failure(name, arguments.engine, options)
            if said:
                bad += 1
                print(f"{name} {' '.join(options)}: {said}")
    print(f"{len(variants)} variants of {len(names(arguments.pattern))} cases: {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
