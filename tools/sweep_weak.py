"""Random tests in the simulator, with weak and strong memory, against the model: every outcome is one that the model
allows, and runs that follow executions of the model reach all of them. They are cycles of communication
(tests/model/cycles.py) and, in turn, programs of every kind of tests/model/drawn.py that a kernel can have.

    python tools/sweep_weak.py [--seconds N] [--seed N] [--copies N] [--reach N] [--kinds KIND,KIND…]

Takes processor time. Prints each test with an outcome that is not allowed, or that no guided run has, and exits 1 if
there is one. All other runs are of weak memory by itself. With `--reach N` prints, too, what is allowed and not reached
by these within N copies for each outcome; `--copies 0` leaves them out.
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
from tests.model.drawn import KINDS, Drawn  # noqa: E402
from tests.model.simulated import Kernel, TranslationError  # noqa: E402
from tests.model.suite import read  # noqa: E402

#: Copies of a test in one launch.
_COPIES = 50


def _shown(allowed: Outcomes, state: tuple[int, ...]) -> str:
    return " ".join(f"{name}={value}" for name, value in zip(allowed.names, state, strict=True))


def _text_of(kind: str, seed: int) -> str:
    """A test of two or three threads."""
    if kind == "cycles":
        return cycle_of(seed).text
    threads = 2 + seed % 3 // 2
    return Drawn(kind, seed, threads, 6 - threads - seed % 2, asks=False).text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--copies", type=int, default=60)
    parser.add_argument("--reach", type=int, default=0)
    parser.add_argument("--kinds", default=",".join(("cycles", *KINDS)))
    options = parser.parse_args()
    kinds = options.kinds.split(",")
    reached: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
    totals: Counter[str] = Counter()
    seed, end = options.seed, time.process_time() + options.seconds
    while time.process_time() < end:
        kind = kinds[seed % len(kinds)]
        text = _text_of(kind, seed // len(kinds))
        test = read(text)
        seed += 1
        try:
            kernel = Kernel(test, meet=True)
        except TranslationError:
            totals["not translated"] += 1
            continue
        allowed = run(test)
        if allowed.incomplete:
            totals["not counted"] += 1
            continue
        totals["tests"] += 1
        mixed = bool(allowed.mixed_races)  # the axioms do not apply (8.7.2)
        totals["mixed"] += mixed
        seen: set[tuple[int, ...]] = set()
        most = max(options.copies, 0 if mixed else options.reach * len(allowed.states))
        for at in range(-(-most // _COPIES)):
            seen.update(kernel.outcomes(seed + at, allowed.names, _COPIES, memory_model="weak"))
            if at * _COPIES >= options.copies and seen >= set(allowed.states):
                break
        missed, strange = set[tuple[int, ...]](), set[tuple[int, ...]]()
        followed = None if mixed else kernel.guided(allowed.names)
        totals["guided"] += followed is not None
        if not mixed and (followed is not None or len(allowed.states) > 1):
            totals["runs"] += len(followed or ())
            missed, strange = set(allowed.states) - set(followed or ()), set(followed or ()) - set(allowed.states)
            if missed:
                totals["failures"] += 1
                print(f"seed {seed - 1}: no guided run has {_shown(allowed, min(missed))}\n{text}", flush=True)
        strange |= seen - set(allowed.states)
        if kernel.outcome(seed, allowed.names) not in allowed.states:
            strange.add(kernel.outcome(seed, allowed.names))
        totals["failures"] += bool(strange)
        for state in sorted(strange):
            print(f"seed {seed - 1}: not allowed: {_shown(allowed, state)}\n{text}", flush=True)
        if options.reach and not mixed:
            reached[kind].update(allowed=len(allowed.states), reached=len(seen & set(allowed.states)))
            missing = sorted(set(allowed.states) - seen)
            if missing:
                shown = "; ".join(_shown(allowed, state) for state in missing[:3])
                print(f"seed {seed - 1}: {len(missing)} not reached: {shown} …\n{text}", flush=True)
    print(f"seeds {options.seed} to {seed - 1}: {totals['tests']} tests, {totals['failures']} failures")
    print(
        f"in {totals['mixed']} of them sizes that differ race; {totals['not counted']} more were not counted; "
        f"{totals['not translated']} are no kernels"
    )
    print(f"{totals['guided']} tests have guided runs, {totals['runs']} together")
    if options.reach:
        for kind, counts in reached.items():
            print(f"  {kind}: {counts['reached']} of {counts['allowed']} outcomes reached")
        whole = sum(reached.values(), Counter())
        print(f"{whole['reached']} of {whole['allowed']} outcomes reached")
    return 1 if totals["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
