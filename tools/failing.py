"""Asks releases of ptxas what they cannot compile: `testdata/conformance/failing.tsv`, for rule PTX613.

Usage: python tools/failing.py [--ptxas PATH]...

Each row has a statement that the manual allows and another one that does the same. Each ptxas is asked about both; its
verdict on the first is recorded beside its release, and what differs from the record is printed. The status is 1 if
something does, or if a ptxas does not accept what may stand instead. tests/conformance/test_failing.py holds the rule
against the file, and the rule's table (ptxtools/linter/failing.py) names the releases that were asked.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from conformance.oracle import Oracle, given  # noqa: E402
from conformance.recorded import FOLDER, Row, read, write  # noqa: E402


def verdict(oracle: Oracle, row: Row) -> tuple[str, bool]:
    """What a ptxas does with a row's statement, and whether it accepts what may stand instead."""
    found, instead = (oracle.ask(row.setting, "line", [text])[0] for text in (row.written, row.instead))
    return "accepts" if found.accepted else "crashes" if found.crashed else "refuses", instead.accepted


def main() -> int:
    oracles = given(__doc__)
    rows, changed = [], 0
    for row in read(FOLDER / "failing.tsv"):
        known = dict(row.by_release)
        for release, oracle in oracles.items():
            said, works = verdict(oracle, row)
            if not works or known.get(release, said) != said:
                changed += 1
                also = "" if works else ", and does not accept what may stand instead"
                print(f"{release} {said}{also}: {row.setting} {row.written}")
            known[release] = said
        ordered = sorted(known, key=lambda release: tuple(map(int, release.split("."))))
        rows.append(row._replace(verdicts=", ".join(f"{release} {known[release]}" for release in ordered)))
    write(FOLDER / "failing.tsv", rows)
    print(f"{len(rows)} rows, {len(oracles)} releases asked, {changed} differ")
    return int(changed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
