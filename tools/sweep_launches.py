"""Kernels with copies, tensor maps, multi-addresses, products and tensor memory, in the simulator with weak and strong
memory, against the model: every outcome is one that the model allows.

    python tools/sweep_launches.py [--seconds N] [--seed N] [--runs N]

Random exchanges between two threads (tests/model/exchanges.py), and now and then one of the kernels of tests/model/
launches.py without some of its lines. Takes processor time. Prints each kernel with an outcome that is not allowed, and
exits 1 if there is one.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.model.exchanges import Exchange  # noqa: E402
from tests.model.features import Feature  # noqa: E402
from tests.model.launches import FEATURES  # noqa: E402

#: One kernel in so many is one of the features.
_EVERY = 10


def chosen(seed: int) -> tuple[Feature, tuple[str, ...]]:
    """A kernel, and marks of the lines that it lacks."""
    if seed % _EVERY:
        return Exchange(seed).feature, ()
    draw = random.Random(seed)
    feature = FEATURES[draw.choice(sorted(FEATURES))]
    return feature, tuple(mark for mark in (*feature.marks, *feature.idle) if draw.random() < 0.4)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=4)
    options = parser.parse_args()
    totals: Counter[str] = Counter()
    seed, end = options.seed, time.process_time() + options.seconds
    with tempfile.TemporaryDirectory() as folder:
        while time.process_time() < end:
            feature, marks = chosen(seed)
            path = feature.write(Path(folder), *marks)
            found, states = feature.allowed(path)
            seed += 1
            if found.incomplete:
                totals["not counted"] += 1
                continue
            totals["kernels"] += 1
            seen = {feature.outcome(path, run, memory) for run in range(options.runs) for memory in ("strong", "weak")}
            seen.discard(None)  # trapped, or hangs: as a kernel that lacks lines may
            totals.update(allowed=len(states), reached=len(seen & states))
            if seen - states:
                totals["failures"] += 1
                print(f"seed {seed - 1}: not allowed: {sorted(seen - states)}\n{feature.without(*marks)}", flush=True)
    print(f"seeds {options.seed} to {seed - 1}: {totals['kernels']} kernels, {totals['failures']} failures")
    print(f"{totals['reached']} of {totals['allowed']} outcomes reached; {totals['not counted']} more were not counted")
    return 1 if totals["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
