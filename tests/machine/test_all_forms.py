"""No form of the machine's chapters lacks semantics: data movement, control flow, synchronisation, miscellaneous.

Some opcodes of each form (a dozen with --whole) are lowered, and something runs what comes of them. Those that
`tests/semantics/refused.py` lists are refused by name, and counted apart.
"""

from __future__ import annotations

import sys

import pytest

from ptxtools import isa
from ptxtools.isa.index import CHAPTERS
from tests import share
from tests.semantics.refused import is_refused
from tests.sim.tensor.test_all_forms import missing, not_refused, resolved

SECTIONS = {"9.7.9": 300, "9.7.12": 3, "9.7.13": 100, "9.7.19": 4}
#: They need labels, functions or variables around them, and have tests of their own.
ELSEWHERE = {"bra", "brx", "call"}
#: What the statement alone lacks, and pure results that nobody uses.
ALONE = ("has no address", "is ignored")


@pytest.mark.parametrize("section", SECTIONS)
def test_no_form_lacks_semantics(section: str, capsys: pytest.CaptureFixture[str]) -> None:
    without, count, listed = [], 0, []
    for family in sorted(set(CHAPTERS) - ELSEWHERE):
        for page in isa.pages(family):
            for form in page.forms:
                if form.family != family or not page.section.startswith(f"{section}."):
                    continue
                opcodes = list(resolved(form).values())
                listed += [op for op in opcodes if is_refused(op)]
                opcodes = [op for op in opcodes if not is_refused(op)]
                some = opcodes[:: max(1, len(opcodes) // (12 if share.whole else 4))]
                count += len(some)
                found = map(missing, some)
                without += [text for text in found if text and not text.endswith(ALONE)]
    with capsys.disabled():
        sys.stdout.write(f"\n{section}: {count} opcodes, {len(without)} without semantics, {len(listed)} refused\n")
    assert not without
    assert not not_refused(listed)
    assert count >= SECTIONS[section]
