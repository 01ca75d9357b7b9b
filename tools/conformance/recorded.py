"""Files of statements with what each release of ptxas makes of them: `failing.tsv`, `miscompiled.tsv`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parents[2] / "testdata" / "conformance"


class Row(NamedTuple):
    """setting: version and target; instead: what may stand instead of what is written; verdicts: of each release, as in
    "12.9 crashes, 13.0 accepts"."""

    setting: str
    written: str
    instead: str
    verdicts: str = ""

    @property
    def by_release(self) -> dict[str, str]:
        """The verdict, by release."""
        return dict(each.split(" ") for each in self.verdicts.split(", ") if each)


def read(path: Path) -> list[Row]:
    lines = path.read_text().splitlines()
    return [Row(*line.split("\t")) for line in lines if line and line[0] != "#"]


def write(path: Path, rows: Iterable[Row]) -> None:
    """Write all rows behind the comment that the file begins with."""
    comment = [line for line in path.read_text().splitlines() if line.startswith("#")]
    path.write_text("".join(f"{line}\n" for line in (*comment, *["\t".join(row) for row in rows])))
