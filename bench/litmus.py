"""How long `ptx-run --litmus` takes: small tests of two to four threads, and two threads of eight instructions each.

    python -m bench.litmus [--programs N] [--seed N] [--cas]

Processor time. The first are the tests of testdata/litmus, and cycles of communication up to 750 tests. The others are
drawn from all orders, scopes, sizes, atomic operations, proxies and barriers, at one to four locations, with a
condition on some of their values; with `--cas` most of their instructions are atom.cas. Prints the slowest.
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

_FOLDER = Path(__file__).resolve().parents[1] / "testdata" / "litmus"
_SCOPES = ("cta", "gpu", "sys")
_PLACES = (("cta 0,gpu 0", "cta 0,gpu 0"), ("cta 0,gpu 0", "cta 1,gpu 0"), ("cta 0,gpu 0", "cta 0,gpu 1"))
_FUNCTIONS = ("add", "exch", "cas", "cas", "max", "or", "inc")


def program(seed: int, *, cas: bool = False) -> str:
    """Two threads of eight instructions each, with a condition. cas: most of them are atom.cas."""
    generator = random.Random(seed)
    one_of = generator.choice
    locations = "xyzw"[: generator.randint(1, 4)]
    sized, proxies, barriers = generator.random() < 0.2, generator.random() < 0.15, generator.random() < 0.2
    value, registers, columns = 0, [], []
    for thread in range(2):
        column = []
        for at in range(8):
            value += 1
            place, scope, register = one_of(locations), one_of(_SCOPES), f"r{value}"
            bits = f".b{one_of((32, 64))}" if sized else ""
            kind = (
                "cas" if cas and generator.random() < 0.6 else one_of(("ld", "ld", "st", "st", "atom", "red", "fence"))
            )
            if barriers and at in (2, 5):
                column.append("bar.sync 0")
                continue
            if proxies and generator.random() < 0.25:
                column.append(one_of((f"suld.weak {register}, s", f"sust.weak s, {value}", "fence.proxy.surface")))
                continue
            if kind == "fence":
                column.append(f"fence.{one_of(('sc', 'acq_rel'))}.{scope}")
            elif kind == "ld":
                order = one_of(("weak", f"relaxed.{scope}", f"acquire.{scope}", "volatile"))
                column.append(f"ld.{order}{bits} {register}, {place}")
            elif kind == "st":
                order = one_of(("weak", f"relaxed.{scope}", f"release.{scope}", "volatile"))
                column.append(f"st.{order}{bits} {place}, {value}")
            else:
                function = "cas" if kind == "cas" else one_of(_FUNCTIONS)
                operands = f"{one_of((0, 0, generator.randint(0, 16)))}, {value}" if function == "cas" else str(value)
                order = f"{one_of(('relaxed', 'acquire', 'release', 'acq_rel'))}.{scope}.{function}"
                if kind == "red" and function not in ("cas", "exch"):
                    column.append(
                        f"red.{order.replace('acquire', 'relaxed').replace('acq_rel', 'release')} {place}, {value}"
                    )
                    continue
                column.append(f"atom.{order} {register}, {place}, {operands}")
            if kind in ("ld", "atom", "cas") or (kind == "red" and "atom" in column[-1]):
                registers.append(f"P{thread}:{register}")
        columns.append(column)
    asked = generator.sample([*registers, *locations], k=min(generator.randint(1, 3), len(registers) + len(locations)))
    condition = one_of((" /\\ ", " /\\ ", " \\/ ")).join(f"{name} == {generator.randint(0, 16)}" for name in asked)
    head = " | ".join(f"P{n}@{place}" for n, place in enumerate(one_of(_PLACES)))
    rows = "".join(" | ".join(row) + " ;\n" for row in zip(*columns, strict=True))
    initial = " ".join(f"{name} = 0;" for name in locations) + (" s @ surface aliases x;" if proxies else "")
    quantifier = one_of(("exists", "~exists", "forall"))
    return f"PTX program-{seed}\n{{ {initial} }}\n {head} ;\n{rows}{quantifier} ({condition})\n"


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
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cas", action="store_true")
    options = parser.parse_args()
    small = [_seconds(text)[0] for text in _small_tests()]
    print(f"{len(small)} tests: {sum(small):.1f} s (bound 60), median {1e3 * statistics.median(small):.1f} ms (20), "
          f"longest {max(small):.2f} s")  # fmt: skip
    seeds = range(options.seed, options.seed + options.programs)
    found = [(*_seconds(program(seed, cas=options.cas)), seed) for seed in seeds]
    times = [seconds for seconds, _, _ in found]
    ended: dict[str, int] = {}
    for _, how, _ in found:
        ended[how] = ended.get(how, 0) + 1
    how_many = ", ".join(f"{count} {how}" for how, count in sorted(ended.items()))
    print(
        f"{len(found)} programs: median {1e3 * statistics.median(times):.0f} ms, longest {max(times):.2f} s (bound 1)"
    )
    print(f"  {how_many}")
    for seconds, how, seed in sorted(found, reverse=True)[:5]:
        print(f"  {seconds:.2f} s, seed {seed}, {how}")


if __name__ == "__main__":
    main()
