"""Random kernels on both tiers, in quick code, in short time slices, under checkers and on the reference engine.

    python tools/sweep_tiers.py [--seconds N] [--seed N] [--only NAME] [--cpu CPU]

Each seed is a kernel of each family: the random kernels of the tests, with other seeds. --only takes the families whose
names contain this; --cpu compiles for another CPU than this one (avx2, plain). Prints each seed on which anything
differs, and exits 1 if there is one.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

import pytest  # noqa: E402
from cpus import CPUS  # noqa: E402

from ptxtools.native.code import jit, tiers  # noqa: E402
from tests.machine import test_drawn_kernels as drawn  # noqa: E402
from tests.machine import test_random_kernels as plain  # noqa: E402
from tests.native import test_ahead, test_lockstep, test_regions, test_sections, test_unison  # noqa: E402
from tests.observe import test_whole_ctas  # noqa: E402

#: Tests of one seed. Those of the second kind want all hot code compiled at once, those of the third a folder.
FAMILIES: list[Callable[[int], object]] = [
    plain.test_optimised_and_plain_agree, plain.test_tiers_agree,
    test_unison.test_random_kernels, test_unison.test_random_kernels_in_short_slices,
    test_unison.test_random_kernels_under_checkers,
    test_sections.test_random_kernels, test_sections.test_random_kernels_in_short_slices,
    test_sections.test_random_kernels_under_checkers,
    test_lockstep.test_random_kernels, test_lockstep.test_random_kernels_in_short_slices,
    test_lockstep.test_loops_that_all_warps_go_round_in, test_lockstep.test_such_loops_in_short_slices,
    test_whole_ctas.test_random_kernels, test_whole_ctas.test_random_kernels_of_several_checkers,
    test_whole_ctas.test_loops,
]  # fmt: skip
AT_ONCE: list[Callable[[int], object]] = [
    test_regions.test_random_loops, test_regions.test_what_is_counted_in_random_loops,
    test_ahead.test_every_condition_ends_where_it_should, test_ahead.test_nans_are_as_one_by_one,
]  # fmt: skip
WITH_FOLDER: list[Callable[[int, Path], object]] = [drawn.test_tiers_agree, drawn.test_traps_agree]
#: Characters of a failure.
_SHOWN = 1000


def run(family: Callable[..., object], seed: int, folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiers, "AT_ONCE", family in AT_ONCE)
        family(seed, *[folder] * (family in WITH_FOLDER))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="processor time")
    parser.add_argument("--seed", type=int, default=100_000)
    parser.add_argument("--only", default="", help="families whose names contain this")
    parser.add_argument("--cpu", choices=CPUS, help="not this CPU's best code")
    options = parser.parse_args()
    if options.cpu:
        llvm_cpu, _, features = CPUS[options.cpu]
        jit.aim_at(llvm_cpu, features.split())
    named = {f"{f.__module__.rpartition('.')[2]}.{f.__name__}": f for f in [*FAMILIES, *AT_ONCE, *WITH_FOLDER]}
    chosen = {name: family for name, family in named.items() if options.only in name}
    seed, end, failed, counts = options.seed, time.process_time() + options.seconds, 0, Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PTXTOOLS_CACHE"] = os.path.join(folder, "cache")
        while time.process_time() < end:
            for name, family in chosen.items():
                try:
                    run(family, seed, Path(folder))
                except Exception as error:
                    failed += 1
                    print(f"{name}({seed}): {type(error).__name__}: {str(error)[:_SHOWN]}", flush=True)
                counts[name] += 1
                tiers._wait()  # nothing is compiled beside what comes next
            seed += 1
    print(f"seeds {options.seed} to {seed - 1} of {len(chosen)} families, {counts.total()} kernels: {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
