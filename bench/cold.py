"""First runs with an empty cache beside later ones, for the cases of the test data: `python bench/cold.py [PATTERN]`.

Processor time of whole processes: the least of two first runs, each with an empty cache, so that modules which Python
has not compiled yet do not count; and of three later ones. Bound: twice as long.
"""

from __future__ import annotations

import math
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

CASES = Path(__file__).resolve().parents[1] / "testdata" / "cases"
LATER = 3


def seconds(case: Path, cache: str) -> float:
    """User and system time of a run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "ptxtools", "run", "--launch", str(case)]
    subprocess.run(command, env={**os.environ, "PTXTOOLS_CACHE": cache}, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def runs(case: Path) -> tuple[float, float]:
    """A first run and a later one."""
    times: list[list[float]] = []
    for later in (0, LATER):
        with tempfile.TemporaryDirectory() as cache:
            times.append([seconds(case, cache) for _ in range(1 + later)])
    return min(first for first, *_ in times), min(times[-1][1:])


def main() -> None:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # processes are timed as users have them, compiled
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    found = []
    for case in sorted(CASES.glob(f"*{wanted}*/case.toml")):
        try:
            first, later = runs(case)
        except subprocess.CalledProcessError:
            continue  # a case that is to fail
        found.append((first / later, case.parent.name, first, later))
    for ratio, name, first, later in sorted(found):
        print(f"{name:40} {first:6.2f} s {later:6.2f} s {ratio:6.2f}")
    if not found:
        sys.exit(f"no case that runs has {wanted!r} in its name")
    ratios = [row[0] for row in found]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"{len(found)} cases: mean {mean:.2f}, worst {max(ratios):.2f}, above 2: {sum(r > 2 for r in ratios)}")


if __name__ == "__main__":
    main()
