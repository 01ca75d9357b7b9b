"""What checkers cost: the eight kernels with checkers over the same without, both on one worker.

    python -m bench.checked [CHECKERS [KERNEL ...]]

KERNEL: one of the eight, or a product of 512 x 512 x 512 that Triton made: `cp.async`, `wgmma` or `tcgen05` by what
copies or multiplies, `tma-wgmma` or `tma-tcgen05` with copies through tensor maps.
CHECKERS is what --check takes ("memcheck" by default). Of three launches each the fastest counts, in processor time.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import ptxtools

from . import products
from .kernels import ALL, Case

#: The most that checkers may cost: times the plain run, on the geometric mean.
BOUNDS = {"memcheck": 1.5, "initcheck": 2.0, "synccheck": 1.2, "asynccheck": 3.0, "racecheck": 8.0, "all": 12.0}
LAUNCHES = 3


def seconds(device: ptxtools.Device, case: Case | products.Product) -> float:
    """Processor time of the fastest launch of a kernel; its result must be right, and nothing reported."""
    kernel = ptxtools.load(case.path)[case.name]
    best = math.inf
    for _ in range(LAUNCHES):
        args, result_of = _bound(case, device)
        begun = time.process_time()
        result = device.launch(kernel, case.grid, case.block, args, shared=getattr(case, "shared", 0))
        best = min(best, time.process_time() - begun)
        assert not result.reports, result.reports
        case.check(result_of())
    return best


def _bound(case: Case | products.Product, device: ptxtools.Device) -> tuple[list[Any], Callable[[], np.ndarray]]:
    """Arguments for one launch, and what gives its result."""
    if isinstance(case, products.Product):
        return case.bound(device)
    args = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in case.args]
    return args, lambda: args[case.output]


def main(checks: str = "memcheck", *names: str) -> None:
    ratios = []
    print(f"{'kernel':<14}{'plain ms':>10}{'checked ms':>12}{'times':>8}")
    for name in names or ALL:
        case = ALL[name]() if name in ALL else products.ALL[name]()
        target = getattr(case, "device", None)
        plain, checked = (seconds(ptxtools.Device(target, threads=1, checks=c), case) for c in ("", checks))
        ratios.append(checked / plain)
        print(f"{name:<14}{1e3 * plain:>10.1f}{1e3 * checked:>12.1f}{ratios[-1]:>8.2f}", flush=True)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    bound = BOUNDS.get(checks)
    print(f"{'mean':<14}{mean:>30.2f}" + (f", bound {bound}" if bound else ""))


if __name__ == "__main__":
    main(*sys.argv[1:])
