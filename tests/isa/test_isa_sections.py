"""No instruction of the manual is missing: the section index of chapter 9.7 against the declared pages."""

from collections import defaultdict
from pathlib import Path

from ptxtools.isa import verify
from tests.rows import rows

ROWS = [
    line.split() for line in (Path(__file__).parents[2] / "testdata" / "isa" / "sections.txt").read_text().splitlines()
    if not line.startswith("#")
]  # fmt: skip
SECTIONS = {section: names for section, *names in ROWS if names != ["-"]}
DECLARED: dict[str, list[str]] = defaultdict(list)
for page in verify.every_page():
    DECLARED[page.section] += page.names


@rows("section", SECTIONS)
def test_instructions_of_a_section_are_declared(section: str) -> None:
    """tcgen05.wait and mma.sp are declared as forms of tcgen05 and mma."""
    missing = [n for n in SECTIONS[section] if not any(f"{n}.".startswith(f"{d}.") for d in DECLARED[section])]
    assert not missing


def test_the_index_is_whole() -> None:
    assert len(SECTIONS) > 180
    assert not [section for section in DECLARED if section not in SECTIONS]


def test_every_form_names_a_section_of_the_manual() -> None:
    numbers = {row[0] for row in ROWS}
    assert {page.section for page in verify.every_page()} <= numbers
