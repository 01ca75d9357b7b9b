"""The first launches of a process with an empty cache: `python bench/launched.py [KERNEL ...]`.

Milliseconds of the launching thread's processor time for each of eight launches by one worker, the least of three
processes; and the processor time that the process has taken, its other threads included, when hot code compiled well
is first called.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

import kernels
import programs
from run import Launch

LAUNCHES, PROCESSES = 8, 3


def launches(name: str) -> None:
    """Run in a process of its own; prints what it finds as JSON."""
    from ptxtools.native.code import tiers

    launch, began = Launch((kernels.ALL | programs.ALL)[name](), 1), time.process_time()
    place, good, times = tiers.Regions._place, list[float](), list[float]()

    def placed(regions: tiers.Regions, addresses: Any) -> None:
        place(regions, addresses)
        if addresses and not regions.better and not regions.pays:
            good.append(1e3 * (time.process_time() - began))

    tiers.Regions._place = placed  # type: ignore[method-assign]
    for _ in range(LAUNCHES):
        before = time.thread_time()
        launch.run()
        times.append(1e3 * (time.thread_time() - before))
    tiers.settle()
    print(json.dumps([times, good[:1]]))


def main(names: list[str]) -> None:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # processes are timed as users have them, compiled
    for name in names or [*kernels.ALL, *programs.ALL]:
        found = []
        for _ in range(PROCESSES):
            with tempfile.TemporaryDirectory() as cache:
                command = [sys.executable, __file__, "--launches", name]
                environment = {**os.environ, "PTXTOOLS_CACHE": cache}
                text = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
                found.append(json.loads(text))
        times = [min(column) for column in zip(*(times for times, _ in found), strict=True)]
        good = [moment for _, moments in found for moment in moments]
        print(
            f"{name:12}",
            *(f"{t:6.1f}" for t in times),
            f"  good code after {min(good):.0f}" if good else "",
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--launches"]:
        launches(sys.argv[2])
    else:
        main(sys.argv[1:])
