"""What profiles, coverage and timelines cost: the eight kernels with them over the same without, both on one worker.

    python -m bench.observed [profile|coverage|timeline [KERNEL ...]]

Of five launches each, alternating, the fastest counts, in processor time; regions are compiled before.
"""

from __future__ import annotations

import math
import sys
import time
from typing import Any

import numpy as np

import ptxtools
from ptxtools.native.code import tiers

from .kernels import ALL, Case

#: The most that each may cost: times the plain run.
BOUNDS = {"profile": 3.0, "coverage": 1.3, "timeline": 2.0}
LAUNCHES = 5


def seconds(device: ptxtools.Device, case: Case) -> float:
    """Processor time of one launch of a kernel; its result must be right."""
    kernel = ptxtools.load(case.path)[case.name]
    args: list[Any] = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in case.args]
    begun = time.process_time()
    device.launch(kernel, case.grid, case.block, args)
    spent = time.process_time() - begun
    case.check(args[case.output])
    return spent


def observer(what: str) -> Any:
    if what == "profile":
        from ptxtools.observe.profile import Profile

        return Profile()
    if what == "coverage":
        from ptxtools.observe.coverage import Coverage

        return Coverage()
    from ptxtools.observe.timeline import Timeline

    return Timeline(lambda text: None)


def main(what: str = "profile", *names: str) -> None:
    tiers.AT_ONCE = True
    print(f"{'kernel':<14}{'plain ms':>10}{what + ' ms':>14}{'times':>8}  (bound: {BOUNDS[what]})")
    for name in names or ALL:
        case = ALL[name]()
        devices = ptxtools.Device(threads=1), ptxtools.Device(threads=1, observers=[observer(what)])
        best = [math.inf, math.inf]
        for _ in range(LAUNCHES):
            best = [min(known, seconds(device, case)) for known, device in zip(best, devices, strict=True)]
        print(f"{name:<14}{1e3 * best[0]:>10.1f}{1e3 * best[1]:>14.1f}{best[1] / best[0]:>8.2f}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
