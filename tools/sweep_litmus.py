"""Every litmus test of testdata/litmus under every model: its verdict is the one stated, what is forbidden has a
reason, and every outcome of the simulator, over many seeds, with strong and weak memory, is
allowed.

    python tools/sweep_litmus.py [--seeds N] [--reach N] [PATTERN]

Prints what fails and a table of the verdicts; exits 1 if anything fails. Of tests of two and three threads, unless
accesses of different sizes race, guided runs with weak memory must show each outcome; other runs have no guides.
With `--reach N` prints, too, what these do not reach in N copies.
"""

from __future__ import annotations

import argparse
import fnmatch
import itertools
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from ptxtools.diagnostics import PtxError  # noqa: E402
from ptxtools.model import MODELS  # noqa: E402
from ptxtools.model.executions import run  # noqa: E402
from ptxtools.model.nearest import nearest  # noqa: E402
from tests.model.simulated import Kernel, TranslationError  # noqa: E402
from tests.model.suite import FILES, loaded, verdicts  # noqa: E402
from tests.model.test_simulator import HANGS  # noqa: E402

#: Copies of a test in one launch.
COPIES = 20


def verdict(path: Path, version: str) -> str:
    """As the test states it; what else went wrong, in its place."""
    test = loaded(path)
    try:
        outcomes = run(test, version)
    except PtxError:
        return "not modelled"
    if outcomes.incomplete or outcomes.cut:
        return "not decided"
    if outcomes.allowed:
        return "allowed"
    against = nearest(test, version)
    return "forbidden" if against is None or against.broken else "forbidden without a reason"


def strange_outcomes(path: Path, seeds: int) -> Iterator[str]:
    """What the simulator does and the model does not allow."""
    try:
        kernel = Kernel(loaded(path), meet=True)
    except TranslationError:
        return
    allowed = run(loaded(path), unroll=3)
    for memory, seed in itertools.product(("strong", "weak"), range(-(-seeds // COPIES))):
        for outcome in kernel.outcomes(seed, allowed.names, COPIES, memory_model=memory):
            if outcome not in allowed.states:
                final = dict(zip(allowed.names, outcome, strict=True))
                yield f"{path.stem}: the simulator reaches {final}, seed {seed}, {memory} memory"


def guided(path: Path) -> tuple[int, str]:
    """How many outcomes guided runs show of a test, and what is wrong with them, if anything."""
    test = loaded(path)
    try:
        kernel = Kernel(test, meet=True)
    except TranslationError:
        return 0, ""
    allowed = run(test, unroll=3)
    if not 2 <= len(test.threads) <= 3 or allowed.mixed_races:
        return 0, ""
    states, found = set(allowed.states), kernel.guided(allowed.names)
    if found is None:
        return 0, f"{path.stem}: no guided runs" if len(states) > 1 else ""
    wrong = set(found) ^ states
    return len(states - wrong), f"{path.stem}: guided runs show {set(found)}, not {states}" if wrong else ""


def unreached(path: Path, copies: int) -> tuple[int, int, list[str]] | None:
    """How many outcomes the model allows of a test, how many weak memory reaches, and the others."""
    test = loaded(path)
    try:
        kernel = Kernel(test, meet=True)
    except TranslationError:
        return None
    if not 2 <= len(test.threads) <= 3:
        return None
    allowed = run(test, unroll=3)
    if allowed.mixed_races:  # to which the axioms do not apply (8.7.2)
        return None
    seen: set[tuple[int, ...]] = set()
    for seed in range(-(-copies // COPIES)):
        seen.update(kernel.outcomes(seed, allowed.names, COPIES, memory_model="weak"))
        if seen >= set(allowed.states):
            break
    missing = sorted(set(allowed.states) - seen)
    shown = [" ".join(f"{n}={v}" for n, v in zip(allowed.names, state, strict=True)) for state in missing]
    return len(allowed.states), len(seen), shown


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--reach", type=int, default=0)
    parser.add_argument("pattern", nargs="?", default="*")
    options = parser.parse_args()
    files = [path for path in FILES if fnmatch.fnmatch(path.stem, options.pattern)]
    counts: Counter[tuple[str, str]] = Counter()
    totals: Counter[str] = Counter()
    failures = 0
    for path in files:
        for version, stated in verdicts(path.read_text("utf-8")).items():
            found = verdict(path, version)
            counts[version, found] += 1
            if found != stated:
                failures += 1
                print(f"{path.stem}, model {version}: {found}, stated {stated}")
        if path.stem not in HANGS and options.reach:
            reached = unreached(path, options.reach)
            totals.update(tests=1, allowed=reached[0], reached=reached[1]) if reached else None
            if reached and reached[2]:
                print(f"{path.stem}: {reached[1]} of {reached[0]} outcomes, not {'; '.join(reached[2])}")
        if path.stem not in HANGS:
            shown, wrong = guided(path)
            totals["guided"] += shown
            if wrong:
                failures += 1
                print(wrong)
            for line in strange_outcomes(path, options.seeds):
                failures += 1
                print(line)
    for version in MODELS:
        print(version, *(f"{what} {counts[version, what]}" for what in ("allowed", "forbidden", "not modelled")))
    if options.reach:
        reached, allowed = totals["reached"], totals["allowed"]
        print(f"{totals['tests']} tests of two and three threads: {reached} of {allowed} outcomes reached")
    print(f"guided runs of tests of two and three threads show {totals['guided']} outcomes")
    print(f"{len(files)} tests, {failures} failures")
    return 1 if failures or not files else 0


if __name__ == "__main__":
    sys.exit(main())
