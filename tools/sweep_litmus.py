"""Every litmus test of testdata/litmus under every model: its verdict is the one stated, what is forbidden has a
reason, and every outcome of the simulator, over many seeds, is allowed.

    python tools/sweep_litmus.py [--seeds N] [PATTERN]

Prints what fails and a table of the verdicts; exits 1 if anything fails.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from ptxtools.diagnostics import PtxError  # noqa: E402
from ptxtools.model import MODELS  # noqa: E402
from ptxtools.model.executions import nearest, run  # noqa: E402
from tests.model.simulated import Kernel, TranslationError  # noqa: E402
from tests.model.suite import FILES, loaded, verdicts  # noqa: E402
from tests.model.test_simulator import HANGS  # noqa: E402


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
        kernel = Kernel(loaded(path))
    except TranslationError:
        return
    allowed = run(loaded(path), unroll=3)
    for seed in range(seeds):
        outcome = kernel.outcome(seed, allowed.names)
        if outcome not in allowed.states:
            yield f"{path.stem}: the simulator reaches {dict(zip(allowed.names, outcome, strict=True))}, seed {seed}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("pattern", nargs="?", default="*")
    options = parser.parse_args()
    files = [path for path in FILES if fnmatch.fnmatch(path.stem, options.pattern)]
    counts: Counter[tuple[str, str]] = Counter()
    failures = 0
    for path in files:
        for version, stated in verdicts(path.read_text("utf-8")).items():
            found = verdict(path, version)
            counts[version, found] += 1
            if found != stated:
                failures += 1
                print(f"{path.stem}, model {version}: {found}, stated {stated}")
        if path.stem not in HANGS:
            for line in strange_outcomes(path, options.seeds):
                failures += 1
                print(line)
    for version in MODELS:
        print(version, *(f"{what} {counts[version, what]}" for what in ("allowed", "forbidden", "not modelled")))
    print(f"{len(files)} tests, {failures} failures")
    return 1 if failures or not files else 0


if __name__ == "__main__":
    sys.exit(main())
