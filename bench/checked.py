"""What checkers cost: the eight kernels with checkers over the same without, both with as many workers.

    python -m bench.checked [--workers N] [CHECKERS [KERNEL ...]]

KERNEL: one of the eight, or a product of 512 x 512 x 512 that Triton made: `cp.async`, `wgmma` or `tcgen05` by what
copies or multiplies, `tma-wgmma` or `tma-tcgen05` with copies through tensor maps; or a kernel whose threads hand
memory over by flags, mbarriers or in a cluster: `grid_steps`, `grid_steps_128`, `ring`, `cluster_sums`.
CHECKERS is what --check takes ("memcheck" by default), or "each": a column for each checker, and one for all of them.
Launches with and without checkers take turns; the fastest of each counts, in processor time: that of the thread that
is busiest, which on idle cores is what a launch takes, but for waits. One worker is the default. What is compiled
beside a run is compiled before.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import numpy as np

import ptxtools
from ptxtools.native.code import tiers

from . import handovers, products
from .kernels import ALL, Case

#: The most that checkers may cost: times the plain run, on the geometric mean.
BOUNDS = {"memcheck": 1.5, "initcheck": 2.0, "synccheck": 1.2, "asynccheck": 3.0, "racecheck": 8.0, "all": 12.0}
ROUNDS, LAUNCHES = 4, 2
AnyCase: TypeAlias = Case | products.Product | handovers.Handover


def seconds(device: ptxtools.Device, case: AnyCase) -> float:
    """Processor time of the fastest launch of a kernel; its result must be right, and nothing reported."""
    kernel = _kernel(str(case.path), case.name)
    best = math.inf
    for _ in range(LAUNCHES):
        args, result_of = _bound(case, device)
        begun = _times()
        result = device.launch(kernel, case.grid, case.block, args, shared=getattr(case, "shared", 0))
        best = min(best, max(now - begun.get(thread, 0) for thread, now in _times().items()))
        assert not result.reports, result.reports
        case.check(result_of())
    return best


def _times() -> dict[int | None, float]:
    """Processor time of each thread, so far."""
    threads = [thread.ident for thread in threading.enumerate() if thread.ident is not None]
    return {one: time.clock_gettime(time.pthread_getcpuclockid(one)) for one in threads}


@cache
def _kernel(path: str, name: str) -> ptxtools.Kernel:
    return ptxtools.load(path)[name]


def _bound(case: AnyCase, device: ptxtools.Device) -> tuple[list[Any], Callable[[], np.ndarray]]:
    """Arguments for one launch, and what gives its result."""
    if not isinstance(case, Case):
        return case.bound(device)
    args = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in case.args]
    return args, lambda: args[case.output]


def fastest(case: AnyCase, checkers: list[str], workers: int) -> list[float]:
    """Of a plain run, and of one with each of some checkers."""
    target = getattr(case, "device", None)
    devices = [ptxtools.Device(target, threads=workers, checks=checks) for checks in ("", *checkers)]
    for device in devices:
        seconds(device, case)
    rounds = [[seconds(device, case) for device in devices] for _ in range(ROUNDS)]
    return [min(times) for times in zip(*rounds, strict=True)]


def main(*args: str) -> None:
    workers, args = (int(args[1]), args[2:]) if args[:1] == ("--workers",) else (1, args)
    checks, *names = args or ("memcheck",)
    tiers.AT_ONCE = True
    checkers = list(BOUNDS) if checks == "each" else [checks]
    found: list[list[float]] = []
    print(f"{'kernel':<14}{'plain ms':>10}" + "".join(f"{name:>12}" for name in checkers))
    for name in names or ALL:
        case = (ALL | handovers.ALL | products.ALL)[name]()
        plain, *checked = fastest(case, checkers, workers)
        found.append([one / plain for one in checked])
        print(f"{name:<14}{1e3 * plain:>10.1f}" + "".join(f"{one:>12.2f}" for one in found[-1]), flush=True)
    means = [math.exp(sum(map(math.log, column)) / len(column)) for column in zip(*found, strict=True)]
    print(f"{'mean':<24}" + "".join(f"{mean:>12.2f}" for mean in means))
    print(f"{'bound':<24}" + "".join(f"{BOUNDS.get(name, math.nan):>12.1f}" for name in checkers))


if __name__ == "__main__":
    main(*sys.argv[1:])
