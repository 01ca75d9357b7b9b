"""racecheck against the model, on random programs (tests/model/cycles.py, and those of tests/model/test_random.py): a
run is racy exactly when the executions with its outcome have a data race (8.7.1).

    python tools/sweep_races.py [--seconds N] [--seed N] [--mixed]

Takes processor time. Prints each program on which they differ, and which of the two finds a race; exits 1 if there is
one. With `--mixed` accesses have several sizes. Programs whose outcome has executions of both kinds do not count.

Where racecheck is lenient on purpose (docs/checking.md), it is strict here, unless `--lenient` asks for it as it is.
The order of `fence.sc` alone orders nothing to it, so that the programs have `fence.acq_rel` instead.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from ptxtools.model.executions import run  # noqa: E402
from ptxtools.observe import clocks, race_pages, racecheck  # noqa: E402
from tests.model.cycles import Cycle  # noqa: E402
from tests.model.simulated import Kernel  # noqa: E402
from tests.model.suite import read  # noqa: E402
from tests.model.test_random import random_test  # noqa: E402


def program(seed: int, *, mixed: bool) -> str:
    """A program on one GPU, as a launch is, without stores of what is there already."""
    generator = random.Random(seed)
    threads = 2 + seed % 2
    if seed % 3 or mixed:
        sizes = generator.choice(((8, 16), (16, 32), (32, 64), (16, 32, 64))) if mixed else (64,)
        text = Cycle(generator, threads, ("atomic", "barrier", "more"), sizes).text
    else:
        text = random_test(generator, threads, 2 + seed % 4 // 2)
    text = re.sub(r"fence\.sc\b", "fence.acq_rel", text)
    return re.sub(r"cta 0,gpu ([12])", r"cta \1,gpu 0", text)


def be_strict() -> None:
    """Without the leniencies that such programs can meet: a store behind a relaxed read is behind what was released
    there; accesses of bytes beside a compare-and-swap of words; plain reads that a compare-and-swap confirms; a half of
    a release or acquire that a barrier hands to another thread; stores of the same value."""
    read, read_all, give = clocks.Clocks.read, clocks.Clocks.read_all, clocks.Clocks.give

    def alone(self: clocks.Clocks, warp: clocks.Warp, key: Any, told: clocks.Known | None = None) -> None:
        give(self, warp, key, told)
        vars(self)["_halves"].clear()

    def strict(self: clocks.Clocks, warp: clocks.Warp, *what: Any, **more: Any) -> None:
        read(self, warp, *what, **more)
        warp.seen = {}

    def strict_all(self: clocks.Clocks, warp: clocks.Warp, *what: Any, **more: Any) -> bool:
        together = read_all(self, warp, *what, **more)
        warp.seen = {}
        return together

    vars(racecheck)["changes_words"] = lambda program: False
    vars(racecheck)["granules"] = lambda *_: None
    setattr(clocks.Clocks, "read", strict)  # noqa: B010 - a method of a class is replaced
    setattr(clocks.Clocks, "read_all", strict_all)  # noqa: B010
    setattr(clocks.Clocks, "give", alone)  # noqa: B010
    setattr(race_pages.Pages, "confirm", lambda *_: None)  # noqa: B010


def difference(text: str, seed: int) -> tuple[str, bool, bool]:
    """(how it went: "" if it counts, whether the run has a race by the model, whether racecheck reports one)."""
    allowed = run(read(text))
    if allowed.incomplete:
        return "not counted", False, False
    (state,), result = Kernel(read(text)).run(seed, allowed.names, 1, engine="reference", checks="racecheck")
    if state not in allowed.states:
        return "not allowed", False, False
    racing = allowed.racing.get(state, 0)
    if racing not in (0, allowed.states[state]):
        return "open", False, False
    return "", bool(racing), bool(result.reports)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mixed", action="store_true")
    parser.add_argument("--lenient", action="store_true")
    options = parser.parse_args()
    if not options.lenient:
        be_strict()
    totals: Counter[str] = Counter()
    seed, end = options.seed, time.process_time() + options.seconds
    while time.process_time() < end:
        text = program(seed, mixed=options.mixed)
        how, racing, reported = difference(text, seed)
        totals[how or "compared"] += 1
        if not how and racing != reported:
            totals["differences"] += 1
            print(f"seed {seed}: {'missed' if racing else 'reported without reason'}\n{text}", flush=True)
        seed += 1
    print(f"seeds {options.seed} to {seed - 1}: {totals['compared']} programs, {totals['differences']} differences")
    print(f"{totals['open']} outcomes do not tell, {totals['not counted']} programs were not counted")
    return 1 if totals["differences"] else 0


if __name__ == "__main__":
    sys.exit(main())
