"""Which forms `ptxtools/semantics/forms.py` lacks, or has too many of: `make forms` after a change of `ptxtools/isa`.

Printed are the rows with the digests that belong at their ends, and the forms that are new. Somebody looks whether the
instruction's functions do what these say, and then writes the digests down (`--write` does it for all rows): from then
on the forms run.
"""

from __future__ import annotations

import sys
import textwrap
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ptxtools import isa
from ptxtools.isa.index import CHAPTERS
from ptxtools.semantics import forms

_WIDTH, _INDENT = 120, " " * 8  # of a line; of one that goes on with an alternative


class Change(NamedTuple):
    """A row whose digests are not those of the instructions that it is the first row of."""

    names: tuple[str, ...]
    digests: str
    new: list[isa.Form]

    def __str__(self) -> str:
        new = [f"\n    new: {form.section} {form.syntax}" for form in self.new]
        return f"{' '.join(self.names)} = … | {self.digests}{''.join(new)}"


def changes() -> list[Change]:
    """The rows to write. An instruction without a row has no meaning here, and so no digests."""
    declared: dict[str, list[isa.Form]] = defaultdict(list)
    for family in CHAPTERS:
        for form in isa.forms(family):
            declared[form.name].append(form)
    found = []
    for names, _, known in forms.rows():
        own = [form for name in names for form in declared.pop(name, ())]
        digests = list(dict.fromkeys(form.digest for form in own))
        if digests != known.split():
            found.append(Change(names, " ".join(digests), [form for form in own if form.digest not in known.split()]))
    return found


def written(text: str, found: list[Change]) -> str:
    """The text of `forms.py` with other digests."""
    for change in found:
        start = text.index(f"\n{' '.join(change.names)} =") + 1
        end = text.index("\n", start)
        while text.startswith("\n    ", end):
            end = text.index("\n", end + 1)
        row = text[start:end].partition("|")[0].rstrip()
        if change.digests:
            row += " | " + change.digests
        if len(row.rpartition("\n")[2]) > _WIDTH:
            row = (
                row.partition(" | ")[0]
                + "\n"
                + textwrap.indent(textwrap.fill("| " + change.digests, _WIDTH - 8), " " * 8)
            )
        text = text[:start] + row + text[end:]
    return text


def main() -> None:
    found = changes()
    print("\n".join(map(str, found)) if found else "ptxtools/semantics/forms.py has every form")
    if sys.argv[1:] == ["--write"]:
        path = Path(forms.__file__)
        path.write_text(written(path.read_text("utf-8"), found), "utf-8")
    else:
        sys.exit(bool(found))


if __name__ == "__main__":
    main()
