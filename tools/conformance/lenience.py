"""Statements that the manual does not have beside what they may mean, with the verdict of ptxas's machine code."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).parents[2] / "testdata" / "conformance" / "lenience.tsv"
_COMMENT = (
    "# What ptxas makes of what the manual does not have: version/target, kind of probe, as written, in the manual's\n"
    "# words, and whether the machine code of both is the same. Written by tools/lenience.py.\n"
)


class Row(NamedTuple):
    """place: as in `setting` ("line", "lines"); verdict: "same", "other", "refused", or "" for one not asked yet."""

    setting: str
    place: str
    written: str
    meant: str
    verdict: str


def read(path: Path) -> list[Row]:
    lines = path.read_text().splitlines()
    return [Row(*(line + "\t" * (4 - line.count("\t"))).split("\t")) for line in lines if line and line[0] != "#"]


def write(path: Path, rows: Iterable[Row]) -> None:
    path.write_text(_COMMENT + "".join("\t".join(row) + "\n" for row in rows))
