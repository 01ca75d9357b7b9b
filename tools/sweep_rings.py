"""Random rings of mbarriers (tests/observe/rings.py), or grids that meet at counters (tests/observe/counters.py):
racecheck's closer look beside its judge alone.

    python tools/sweep_rings.py [--seconds N] [--seed N] [--counters]

Takes processor time. Prints each seed on which they differ in several runs, and exits 1 if there is one.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.observe import counters, rings  # noqa: E402
from tests.observe.rings import RUNS, compared, differ  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--counters", action="store_true")
    options = parser.parse_args()
    kernel = counters.kernel if options.counters else rings.kernel
    end, seed, failed = time.monotonic() + options.seconds, options.seed, 0
    kinds: Counter[Any] = Counter()
    while time.monotonic() < end:
        for _ in range(RUNS):
            found, judged, looks = compared(seed, kernel)
            if not differ(found, judged):
                break
        else:
            failed += 1
            print(f"seed {seed}: {looks}\n  {str(found)[:600]}\n  {str(judged)[:600]}", flush=True)
        kinds[tuple(looks), judged[0] if isinstance(judged[0], str) else bool(judged[0])] += 1
        seed += 1
    print(f"seeds {options.seed} to {seed - 1}: {failed} differ; {dict(kinds)}")
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
