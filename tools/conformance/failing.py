"""Statements that releases of ptxas cannot compile, beside what they all take, with the verdict of each release."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).parents[2] / "testdata" / "conformance" / "failing.tsv"
_COMMENT = (
    "# What releases of ptxas make of forms that the manual has: version/target, as written, what may stand instead,\n"
    "# and the verdict of each release on the first (all accept the second). Written by tools/failing.py.\n"
)


class Row(NamedTuple):
    """verdicts: of each release, as in "12.9 crashes, 13.0 accepts"."""

    setting: str
    written: str
    instead: str
    verdicts: str = ""

    @property
    def by_release(self) -> dict[str, str]:
        """accepts, refuses, or crashes, by release."""
        return dict(each.split(" ") for each in self.verdicts.split(", ") if each)


def read(path: Path) -> list[Row]:
    lines = path.read_text().splitlines()
    return [Row(*line.split("\t")) for line in lines if line and line[0] != "#"]


def write(path: Path, rows: Iterable[Row]) -> None:
    path.write_text(_COMMENT + "".join("\t".join(row) + "\n" for row in rows))
