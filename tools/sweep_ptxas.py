"""Hold ptx-lint against ptxas: `testdata/conformance/*.xz`, one recorded verdict for each probe.

Usage: python tools/sweep_ptxas.py [--ptxas PATH]... [--record [--anew]] [--only TOPIC] [--show PATTERN]

Replays every recorded verdict, prints what differs beyond the reviewed lists and what in those lists covers nothing,
and writes docs/conformance.md. Where a ptxas of the right release is at hand a sample is asked anew. `--record` asks
about every probe that has no record yet and whose release is there: `--ptxas` may be given once for each.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from conformance import additions, boundaries, debugging, examples, instructions, modules, newer, slips, structure  # noqa: E402
from conformance.oracle import Oracle, release_of, releases  # noqa: E402
from conformance.record import Record, read_all, write_all  # noqa: E402
from conformance.replay import Difference, deviations, differences  # noqa: E402

DATA = ROOT / "testdata" / "conformance"
REVIEWED = DATA / "deviations"
FRESH = DATA / "fresh.tsv"
#: Differences that only fresh probes have shown: as the lists beside it.
FRESH_REVIEWED = REVIEWED / "fresh"
PAGE = ROOT / "docs" / "conformance.md"
TOPICS = {
    "availability": "at, and just below, the first version and target of every opcode and directive",
    "boundary": "statements of every form at the boundary targets of every version",
    "call": "functions, prototypes, arguments, labels and branches",
    "constant": "spellings of constants, and what takes them",
    "declaration": "every space with every type, shape, alignment, linkage and attribute",
    "directive": "directives with all kinds of arguments, in all places, in pairs",
    "element": "registers and constants in vectors, fragments, coordinates; their number",
    "function": "parameters, results, linkage, repeated declarations, aliases",
    "guard": "predicates before instructions",
    "header": "every version with every target; options; order",
    "initialiser": "initial values that name symbols",
    "module": "modules with directives, linkage, parameters, calls and scopes: the line of the first error, too",
    "modifier": "each value in each modifier slot of every form",
    "operand": "every kind of operand in every operand's place",
    "operands": "operands missing, superfluous, swapped, optional",
    "register": "special registers: types, components, places",
    "release": "what each release from PTX 9.1 on brought, at its version, before it, and at the newest",
    "requirement": "what an old version and target lack, as ptxas names it",
    "spoilt": "modifiers missing, doubled, out of order, foreign",
    "statement": "what is no instruction",
    "texture": "what names a texture, a sampler or a surface, in both texture modes",
}
#: Probes of one module for ptxas.
BATCH = 250


def ask(oracles: dict[str, Oracle], probes: list[instructions.Probe]) -> list[Record]:
    """The verdicts on probes whose release of ptxas is there."""
    groups: dict[tuple[str, str], list[instructions.Probe]] = defaultdict(list)
    for probe in probes:
        groups[probe.setting, probe.place].append(probe)
    records: list[Record] = []
    for (setting, place), members in sorted(groups.items()):
        oracle = oracles.get(release_of(setting))
        if oracle is None:
            continue
        for start in range(0, len(members), BATCH):
            part = members[start : start + BATCH]
            for probe, verdict in zip(part, oracle.ask(setting, place, [p.text for p in part]), strict=True):
                records.append(Record(*probe, verdict.accepted, verdict.requires, verdict.crashed))
    return records


def ask_again(oracles: dict[str, Oracle], records: list[Record]) -> list[Record]:
    """What differs from ours is asked alone: in company a bad line may look accepted, and the other way round."""
    surprising = {difference.record for difference in differences(records)}
    print(f"{len(surprising)} probes asked again alone")
    out = []
    for record in records:
        if record in surprising:
            verdict = oracles[release_of(record.setting)].ask(record.setting, record.place, [record.text])[0]
            record = record._replace(accepted=verdict.accepted, requires=verdict.requires, crashed=verdict.crashed)
        out.append(record)
    return out


def asked_anew(oracles: dict[str, Oracle], records: list[Record]) -> list[Record]:
    """Of a sample of the records, those that ptxas judges otherwise now; none without the ptxas that was recorded."""
    known = [r for r in records if release_of(r.setting) in oracles and not r.crashed]
    sample = random.Random(5).sample(known, min(len(known), 300))
    found = ((r, oracles[release_of(r.setting)].ask(r.setting, r.place, [r.text])[0]) for r in sample)
    return [r for r, verdict in found if verdict.accepted != r.accepted]


def unexplained(found: list[Difference]) -> list[Difference]:
    reviewed = deviations(REVIEWED)
    return [d for d in found if not any(deviation.covers(d) for deviation in reviewed)]


def report(records: list[Record], found: list[Difference], wrong: list[Difference]) -> str:
    """docs/conformance.md: the table of agreement, and every reviewed deviation with its number of probes."""
    lines = [
        "# Agreement with ptxas", "",
        "`make sweep` compares ptx-lint with the recorded verdicts of ptxas on these probes: one line or small module",
        "each, legal and illegal, with versions and targets from PTX 1.0 to 9.5 and sm_10 to sm_121f. Up to PTX 9.0",
        "the verdicts are those of ptxas 13.0; from 9.1 on, of the release that introduced the version, 13.1 for 9.1",
        "to 13.5 for 9.5. `agree` counts probes that both accept, or both refuse with requirements that do not",
        "contradict each other; `reviewed` are differences with a reason, listed below. On some, ptxas `crashes`,",
        "so there is no verdict.", "",
        "What ptxas accepts and compiles as meant, though the manual does not have it, is a warning, PTX610, and",
        "counts as accepted; `testdata/conformance/lenience.tsv` has comparisons of the machine code",
        "(`tools/lenience.py`). What it drops or reads as something else is an error; what the manual has and every",
        "ptxas of the declared version refuses is an error that says so, PTX309.", "",
        "| topic | probes | ptxas accepts | crashes | agree | reviewed | unexplained | subject |",
        "|---|--:|--:|--:|--:|--:|--:|---|",
    ]  # fmt: skip
    counts = {name: Counter(r.topic for r in group) for name, group in (
        ("all", records), ("accepted", [r for r in records if r.accepted]),
        ("crashed", [r for r in records if r.crashed]), ("found", [d.record for d in found]),
        ("wrong", [d.record for d in wrong]))}  # fmt: skip
    for topic in [*sorted(counts["all"]), ""]:
        total, accepted, crashed, differ, bad = (
            counter[topic] if topic else counter.total() for counter in counts.values()
        )
        name, what = (topic, TOPICS[topic]) if topic else ("**all**", "")
        agree = total - crashed - differ
        lines.append(f"| {name} | {total} | {accepted} | {crashed} | {agree} | {differ - bad} | {bad} | {what} |")
    lines += ["", "| ptxas | probes | accepted | agree | reviewed | unexplained |", "|---|--:|--:|--:|--:|--:|"]
    for release in sorted({release_of(r.setting) for r in records}):
        total, accepted, crashed, differ, bad = (
            sum(release_of(r.setting) == release for r in group) for group in (
                records, (r for r in records if r.accepted), (r for r in records if r.crashed),
                (d.record for d in found), (d.record for d in wrong))
        )  # fmt: skip
        agree = total - crashed - differ
        lines.append(f"| {release} | {total} | {accepted} | {agree} | {differ - bad} | {bad} |")
    settings = len({r.setting for r in records})
    lines += [
        "", f"{settings} pairs of version and target. One probe in twenty is part of `make test`.",
        "`tools/sweep_ptxas.py --show PATTERN` prints recorded verdicts; `tools/fuzz_ptxas.py` damages modules and",
        "prints new differences.", "", "## Reviewed deviations", "",
        "| probes | topic | ours | reason |", "|--:|---|---|---|",
    ]  # fmt: skip
    for deviation in deviations(REVIEWED):
        number = sum(deviation.covers(d) for d in found)
        topic, verdict = (p.pattern.replace("|", ", ") for p in (deviation.topic, deviation.verdict))
        reason = deviation.reason.replace("|", "\\|")
        lines.append(f"| {number} | {topic} | {verdict} | {reason} |")
    return "\n".join([*lines, *fresh_section(), *examples_section()]) + "\n"


def fresh_section() -> list[str]:
    """The part of docs/conformance.md about probes made at random, from what tools/fresh_probes.py has recorded."""
    lines = [
        "", "## Fresh probes", "",
        "Statements and modules made at random, none of them recorded: two operands mutated at once, any version and",
        "target, modifiers spoilt, declarations, functions and bodies. `tools/fresh_probes.py --seed N` makes them,",
        "asks ptxas, and prints the differences in groups. `agree` counts warnings (PTX610) as agreement; `policy` are",
        "differences for a reason of the list above or below, errors where ptxas drops or misreads what is written.",
        "",
        "| seed | probes | ptxas accepts | agree | with a warning | policy | else |",
        "|--:|--:|--:|--:|--:|--:|--:|",
    ]  # fmt: skip
    for row in FRESH.read_text().splitlines() if FRESH.exists() else []:
        if not row.startswith("#"):
            seed, total, accepted, agree, warned, reviewed, wrong = row.split("\t")
            share = f"{agree} ({100 * int(agree) / int(total):.2f} %)"
            lines.append(f"| {seed} | {total} | {accepted} | {share} | {warned} | {reviewed} | {wrong} |")
    lines += ["", "| ours | reason that no recorded probe has shown |", "|---|---|"]
    for deviation in deviations(FRESH_REVIEWED):
        lines.append(f"| {deviation.verdict.pattern.replace('|', ', ')} | {deviation.reason} |")
    return lines


def examples_section() -> list[str]:
    """The part of docs/conformance.md about the manual's examples."""
    outcomes = [examples.outcome(row) for row in examples.read(examples.EXAMPLES)]
    reviewed = examples.reviews(examples.REVIEWED)
    summary, *_ = examples.report(outcomes, reviewed)
    lines = [
        "", "## Examples of the manual", "",
        "Every statement of the examples in the editions 6.4, 7.8 (chapters 1 to 8), 8.7 and 9.0 (tcgen05), each in a",
        "module that declares what it names, at a version and target that it needs; and the blocks of 8.7 that are",
        "functions or sequences with their declarations, as they stand. `make test` lints all of them;",
        "`tools/manual_examples.py` prints each refusal. \"Slip\": the manual's own mistake.", "", f"{summary}.", "",
        "| examples | refused by | reason |", "|--:|---|---|",
    ]  # fmt: skip
    who = {"both": "both", "ours": "ptx-lint", "ptxas": "ptxas"}
    for review in reviewed:
        reason = review.reason.replace("|", "\\|")
        lines.append(f"| {sum(map(review.covers, outcomes))} | {who[review.verdict]} | {reason} |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ptxas", action="append", help="a ptxas; one for each release that is to be asked")
    parser.add_argument("--record", action="store_true", help="ask about the probes that have no verdict yet")
    parser.add_argument("--anew", action="store_true", help="with --record: about those that have one, too")
    parser.add_argument("--only", default="", help="topics (regular expression)")
    parser.add_argument("--show", metavar="PATTERN", help="print recorded verdicts")
    arguments = parser.parse_args()
    if arguments.show:
        for record in read_all(DATA):
            if re.search(arguments.show, record.text):
                print(
                    f"{record.setting:12} {record.topic:12} {'+-'[not record.accepted]} {record.text} {record.requires}"
                )
        return 0
    wanted = re.compile(arguments.only or ".*")
    oracles = releases(arguments.ptxas or ["ptxas"])
    if arguments.record:
        kept = read_all(DATA)
        if arguments.anew:
            kept = [r for r in kept if not wanted.fullmatch(r.topic)]
        known = {r[:4] for r in kept}
        sources = (instructions, structure, debugging, modules, slips, newer, boundaries, additions)
        every = dict.fromkeys(probe for source in sources for probe in source.probes())
        probes = [p for p in every if wanted.fullmatch(p.topic)]
        asked = ask(oracles, [p for p in probes if tuple(p) not in known])
        write_all(DATA, [*kept, *asked])
        asked = ask_again(oracles, asked)
        write_all(DATA, [*kept, *asked])
        print(f"{len(asked)} probes asked in {sum(oracle.calls for oracle in oracles.values())} calls")
    records = [r for r in read_all(DATA) if wanted.fullmatch(r.topic)]
    found = list(differences(records))
    wrong = unexplained(found)
    if not arguments.only:
        PAGE.write_text(report(records, found, wrong))
    elif arguments.record:
        print("docs/conformance.md is written by a run over all topics")
    for difference in wrong:
        print(difference)
    print(f"{len(records)} probes, {len(wrong)} unexplained differences")
    idle = [] if arguments.only else [v for v in deviations(REVIEWED) if not any(map(v.covers, found))]
    for deviation in idle:
        print(f"covers no difference: {deviation.topic.pattern}  {deviation.text.pattern}  {deviation.reason}")
    changed = [] if arguments.record else asked_anew(oracles, records)
    for record in changed:
        print(f"ptxas now says otherwise: {record.setting} {record.text}")
    return bool(wrong or idle or changed)


if __name__ == "__main__":
    raise SystemExit(main())
