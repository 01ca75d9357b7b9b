"""Hold ptx-lint against ptxas on fresh probes: statements and modules made at random, which no record has.

Usage: python tools/fresh_probes.py --seed N [--count N] [--ptxas PATH]... [--most N] [--only TOPIC] [--record]

Two operands mutated at once, statements at any version and target, modifiers spoilt, declarations, functions and
bodies put together at random. Prints how many verdicts agree, and the differences in groups, the largest first. A
probe that ptxas accepts and ptx-lint only warns of (PTX610) agrees. Where ptxas crashes there is no verdict, and
another probe takes its place; so it does for a version whose release is not given by `--ptxas`.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from conformance import fresh  # noqa: E402
from conformance.oracle import release_of, releases  # noqa: E402
from conformance.record import Record, read_all  # noqa: E402
from conformance.replay import Deviation, Difference, deviations, differences, tolerated  # noqa: E402
from sweep_ptxas import FRESH, FRESH_REVIEWED, ask, ask_again  # noqa: E402

DATA = ROOT / "testdata" / "conformance"
#: Probes that are asked in one go.
_PART = 24_000


def group(difference: Difference) -> str:
    """What differences of one cause share: our verdict, the instruction's family, and the message without names."""
    record = difference.record
    said = difference.said[0].message if difference.said else ""
    word = re.sub(r"[@!]\S+\s", "", record.text).split(" ")[0].split(".")[0] if record.place == "line" else ""
    what = re.sub(r"'[^']*'|\d+", "…", said)[:70]
    theirs = "accepts" if record.accepted else "refuses"
    return f"{record.topic}: ptxas {theirs}, ours {difference.verdict}: {word} {what}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ptxas", action="append", help="a ptxas; one for each release that is to be asked")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--most", type=int, default=60, help="groups of differences that are shown")
    parser.add_argument("--record", action="store_true", help=f"append the figures to {FRESH.relative_to(ROOT)}")
    parser.add_argument("--only", default="", help="topics (regular expression)")
    arguments = parser.parse_args()
    oracles = releases(arguments.ptxas or ["ptxas"])
    taken: set[tuple[str, ...]] = {record[:4] for record in read_all(DATA)}
    made = fresh.probes(arguments.seed)
    records: dict[tuple[str, ...], Record] = {}
    found: list[Difference] = []
    while len(records) < arguments.count:
        part = dict.fromkeys(itertools.islice(made, min(_PART, (arguments.count - len(records)) * 5 // 4 + 50)))
        wanted = [p for p in part if release_of(p.setting) in oracles and tuple(p) not in taken
                  and re.search(arguments.only, p.topic)]  # fmt: skip
        taken.update(map(tuple, wanted))
        asked = ask(oracles, wanted)
        again = {record[:4]: record for record in ask_again(oracles, [d.record for d in differences(asked)])}
        for record in (again.get(record[:4], record) for record in asked):
            if not record.crashed and len(records) < arguments.count:
                records[record[:4]] = record
        found += [d for d in differences(again.values()) if d.record[:4] in records]
    figures = report(list(records.values()), found, arguments.most)
    if arguments.record:
        with FRESH.open("a") as file:
            file.write("\t".join(map(str, (arguments.seed, *figures))) + "\n")
    return 0


def covers(review: Deviation, difference: Difference) -> bool:
    """Whether a difference is reviewed, whatever the topic that it was reviewed in."""
    record = difference.record
    parts = ((review.verdict, difference.verdict), (review.setting, record.setting), (review.text, record.text))
    return all(pattern.fullmatch(text) for pattern, text in parts)


def show(title: str, differences: list[Difference], most: int) -> None:
    """The differences in groups, the largest first, with examples."""
    groups: dict[str, list[Difference]] = defaultdict(list)
    for difference in differences:
        groups[group(difference)].append(difference)
    if differences:
        print(f"{len(differences)} {title}:")
    for name, members in sorted(groups.items(), key=lambda item: -len(item[1]))[:most]:
        print(f"{len(members)} × {name}")
        for difference in members[:3]:
            print("    " + str(difference).replace("\n", "\n    "))


def report(records: list[Record], found: list[Difference], most: int) -> tuple[int, ...]:
    """Print groups and figures; returns how many probes, accepted by ptxas, in agreement, with a warning, reviewed,
    and else."""
    reviewed = [*deviations(DATA / "deviations"), *deviations(FRESH_REVIEWED)]
    wrong = [d for d in found if not any(covers(review, d) for review in reviewed)]
    show("differ for a reviewed reason", [d for d in found if d not in wrong], most)
    show("differ", wrong, most)
    total = len(records)
    warned = tolerated(r for r in records if r.accepted)
    counts = Counter(d.record.topic for d in found)
    for topic, number in sorted(Counter(r.topic for r in records).items()):
        print(f"{topic}: {number} probes, {counts[topic]} differ")
    print(f"{total} probes ({sum(r.accepted for r in records)} accepted by ptxas): {total - len(found)} agree "
          f"({100 * (total - len(found)) / total:.3f} %), {warned} of them with a warning; {len(found) - len(wrong)} "
          f"differ for a reviewed reason, {len(wrong)} else")  # fmt: skip
    accepted = sum(record.accepted for record in records)
    return total, accepted, total - len(found), warned, len(found) - len(wrong), len(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
