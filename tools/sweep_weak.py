"""Random cycles of communication (tests/model/cycles.py) in the simulator, with weak and strong memory, against the
model: every outcome is one that the model allows.

    python tools/sweep_weak.py [--seconds N] [--seed N] [--copies N] [--reach N]

Takes processor time. Prints each test with an outcome that is not allowed, and exits 1 if there is one. With
`--reach N` prints, too, what is allowed and not reached by weak memory within N copies.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from ptxtools.model.executions import Outcomes, run  # noqa: E402
from tests.model.cycles import cycle_of  # noqa: E402
from tests.model.simulated import Kernel  # noqa: E402

#: Copies of a test in one launch.
_COPIES = 20


def _shown(allowed: Outcomes, state: tuple[int, ...]) -> str:
    return " ".join(f"{name}={value}" for name, value in zip(allowed.names, state, strict=True))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--copies", type=int, default=60)
    parser.add_argument("--reach", type=int, default=0)
    options = parser.parse_args()
    totals: Counter[str] = Counter()
    seed, end = options.seed, time.process_time() + options.seconds
    while time.process_time() < end:
        cycle = cycle_of(seed)
        allowed = run(cycle.test)
        seed += 1
        if allowed.incomplete:
            totals["not counted"] += 1
            continue
        totals["tests"] += 1
        mixed = bool(allowed.mixed_races)  # the axioms do not apply (8.7.2)
        totals["mixed"] += mixed
        kernel, seen = Kernel(cycle.test), set()
        most = max(options.copies, 0 if mixed else options.reach)
        for at in range(-(-most // _COPIES)):
            seen.update(kernel.outcomes(seed + at, allowed.names, _COPIES, memory_model="weak"))
            if at * _COPIES >= options.copies and seen >= set(allowed.states):
                break
        strange = seen - set(allowed.states)
        if kernel.outcome(seed, allowed.names) not in allowed.states:
            strange.add(kernel.outcome(seed, allowed.names))
        totals["failures"] += bool(strange)
        for state in sorted(strange):
            print(f"seed {seed - 1}: not allowed: {_shown(allowed, state)}\n{cycle.text}", flush=True)
        if options.reach and not mixed:
            totals.update(allowed=len(allowed.states), reached=len(seen & set(allowed.states)))
            missing = sorted(set(allowed.states) - seen)
            if missing:
                shown = "; ".join(_shown(allowed, state) for state in missing[:3])
                print(f"seed {seed - 1}: {len(missing)} not reached: {shown} …\n{cycle.text}", flush=True)
    print(f"seeds {options.seed} to {seed - 1}: {totals['tests']} tests, {totals['failures']} failures")
    print(
        f"in {totals['mixed']} of them accesses of different sizes race; {totals['not counted']} more were not counted"
    )
    if options.reach:
        print(f"{totals['reached']} of {totals['allowed']} outcomes reached")
    return 1 if totals["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
