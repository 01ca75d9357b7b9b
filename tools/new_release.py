"""Ask a new ptxas what it has that the tables do not: versions, targets, and modifiers that need a later PTX version.

Usage: python tools/new_release.py --ptxas PATH [--since 9.4] [--only FAMILY] [--words WORD,WORD]

ptxas names the version that a modifier needs ("Feature '.pzo' requires PTX ISA .version 9.4 or later") even where the
module declares an older one and the operands do not fit. So each modifier of any instruction is tried with one opcode
of every form, in a module of version `--since`; what needs a later one is listed. `--words` adds modifiers that
the tables do not know, such as those of a release's notes. docs/new-version.md says what to do with the list.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from conformance.instructions import _available, _base  # noqa: E402
from conformance.operands import operands, statement  # noqa: E402
from conformance.oracle import Oracle  # noqa: E402
from conformance.setting import LINE  # noqa: E402

from ptxtools import isa  # noqa: E402
from ptxtools.isa.index import CHAPTERS  # noqa: E402
from ptxtools.isa.targets import FIRST_VERSION, NEWEST, Version, check_version, version_text  # noqa: E402

_REQUIRES = re.compile(r"['.\w: ]*requires PTX ISA \.version (\d+)\.(\d+)")
BATCH = 200


def bases(only: str, since: Version, target: str) -> Iterator[isa.Opcode]:
    """One opcode of each form that is there already: behind others each modifier would be reported."""
    seen: set[str] = set()
    for family in sorted(CHAPTERS):
        for form in isa.forms(family) if not only or family == only else ():
            found = _base(form, random.Random(form.syntax))
            if found is not None and found[1].text not in seen and _available(found[1], since, target):
                seen.add(found[1].text)
                yield found[1]


def modifiers() -> list[str]:
    """Every modifier of the tables."""
    found: set[str] = set()
    for family in CHAPTERS:
        for form in isa.forms(family):
            found.update(value for element in form.elements for value in element.values)
    return sorted(value for value in found if not value.startswith("m64n"))


def newer(oracle: Oracle, setting: str, since: Version, op: isa.Opcode, words: list[str]) -> dict[Version, list[str]]:
    """What, written behind the opcode, needs a later version than `since`."""
    lines = [statement(f"{op.text}.{word}", operands(op)) for word in words if word not in op.atoms]
    found: dict[Version, list[str]] = defaultdict(list)
    for start in range(0, len(lines), BATCH):
        part = lines[start : start + BATCH]
        for line, verdict in zip(part, oracle.ask(setting, LINE, part), strict=True):
            versions = {(int(a), int(b)) for text in verdict.messages for a, b in _REQUIRES.findall(text)}
            if versions and max(versions) > since:
                found[max(versions)].append(line.partition(" ")[0].rpartition(".")[2])
    return found


def unknown_versions(oracle: Oracle) -> list[str]:
    """Versions behind the newest known one that the ptxas takes."""
    major, minor = NEWEST
    tried = [(major, minor + n) for n in range(1, 6)] + [(major + 1, n) for n in range(3)]
    texts = [version_text(version) for version in tried]
    return [text for text in texts if oracle.accepts(f"{text}/sm_100", [f".version {text}", ".target sm_100", ""])]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ptxas", default="ptxas")
    parser.add_argument("--since", default=version_text(NEWEST), help="version of the modules")
    parser.add_argument("--target", default="sm_100a")
    parser.add_argument("--only", default="", help="first word of an instruction")
    parser.add_argument("--words", default="", help="further modifiers")
    arguments = parser.parse_args()
    oracle = Oracle(arguments.ptxas)
    major, _, minor = arguments.since.partition(".")
    since = check_version((int(major), int(minor)))
    print("versions that the tables do not know:", ", ".join(unknown_versions(oracle)) or "none")
    targets = set(re.findall(r"sm_\d+[af]?", oracle.help())) - set(FIRST_VERSION)
    print("targets that the tables do not know:", ", ".join(sorted(targets)) or "none")
    words = [*filter(None, arguments.words.split(",")), *modifiers()]
    setting, number = f"{arguments.since}/{arguments.target}", 0
    for op in bases(arguments.only, since, arguments.target):
        for version, found in sorted(newer(oracle, setting, since, op, words).items()):
            number += len(found)
            print(f"{version_text(version)} {op.name} ({op.text}): {' '.join(sorted(found))}")
    print(f"{number} modifiers need a version after {arguments.since}; {oracle.calls} calls")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
