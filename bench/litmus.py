"""How long `ptx-run --litmus` takes: small tests of two to four threads, and two threads of eight instructions each.

    python -m bench.litmus [--programs N] [--seed N] [--kinds KIND,KIND…]

Processor time. The first are the tests of testdata/litmus, and cycles of communication up to 750 tests. The others are
random programs of each kind of `tests/model/drawn.py` (orders, scopes, fences, sizes, vectors, atomic operations, cas,
barriers, mbarriers, copies, proxies, branches), at one to four locations, with a condition on some of their values.
Prints the slowest.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from pathlib import Path

from ptxtools.diagnostics import PtxError, Source
from ptxtools.model.executions import run
from ptxtools.model.litmus import read_litmus
from tests.model.cycles import Cycle
from tests.model.drawn import KINDS, Drawn

_FOLDER = Path(__file__).resolve().parents[1] / "testdata" / "litmus"


def _seconds(text: str) -> tuple[float, str]:
    """Processor time of one test with reading it, and how it ended."""
    start = time.process_time()
    try:
        outcomes = run(read_litmus(Source(text, "test.litmus")))
    except PtxError as error:
        return time.process_time() - start, f"refused: {error}"
    ended = "decided" if outcomes.conclusive else "undecided"
    return time.process_time() - start, ended + (" (not counted)" if outcomes.incomplete else "")


def _small_tests() -> list[str]:
    found = [path.read_text("utf-8") for path in sorted(_FOLDER.glob("*.litmus"))]
    seed = 0
    while len(found) < 750:
        seed += 1
        found.append(Cycle(random.Random(seed), 2 + seed % 2).text)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=12, help="of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default=",".join(KINDS))
    options = parser.parse_args()
    small = [_seconds(text)[0] for text in _small_tests()]
    print(f"{len(small)} tests: {sum(small):.1f} s (bound 60), median {1e3 * statistics.median(small):.1f} ms (20), "
          f"longest {max(small):.2f} s")  # fmt: skip
    seeds = range(options.seed, options.seed + options.programs)
    found = [
        (*_seconds(Drawn(kind, seed).text), f"{kind} {seed}") for kind in options.kinds.split(",") for seed in seeds
    ]
    times = [seconds for seconds, _, _ in found]
    ended: dict[str, int] = {}
    for _, how, _ in found:
        ended[how] = ended.get(how, 0) + 1
    how_many = ", ".join(f"{count} {how}" for how, count in sorted(ended.items()))
    print(
        f"{len(found)} programs: median {1e3 * statistics.median(times):.0f} ms, longest {max(times):.2f} s (bound 1)"
    )
    print(f"  {how_many}")
    for seconds, how, name in sorted(found, reverse=True)[:5]:
        print(f"  {seconds:.2f} s, {name}, {how}")


if __name__ == "__main__":
    main()
