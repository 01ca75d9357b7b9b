"""Rules about the memory consistency model name the axiom that does not help, and the page that explains it."""

import re
from pathlib import Path

from ptxtools.check.pages.format import EXPLAINED
from ptxtools.linter.explain import rule_pages
from ptxtools.model.axioms import model
from tests.rows import rows

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "memory-model.md").read_text("utf-8")
#: Rules that name a scope too narrow, a fence that orders nothing, or an order that is missing.
ORDERING = ("PTX508", "PTX518", "PTX519", "PTX526", "PTX556", "PTX557", "PTX558")
AXIOMS = {f"{axiom.section} ({axiom.name})" for axiom in model().axioms}


@rows("code", ORDERING)
def test_the_axiom_is_named(code):
    """In the page, and with every finding of the rule."""
    (path,) = (ROOT / "ptxtools" / "linter" / "rules").glob(f"{code.lower()}_*.py")
    head, text = path.read_text("utf-8").split("\n", 1)
    cited = set(re.findall(r"8\.10\.\d \([\w-]+\)", head))
    assert cited and cited <= AXIOMS
    assert set(re.findall(r"8\.10\.\d \([\w-]+\)", text.split('"""', 1)[1])) == cited
    assert "More: docs/memory-model.md#" in rule_pages()[code][1]


def test_the_places_that_pages_name_are_there():
    headings = {re.sub(r"[^\w\- ]", "", line).strip().lower().replace(" ", "-")
                for line in re.findall(r"^#+ (.+)$", PAGE, re.MULTILINE)}  # fmt: skip
    assert set(EXPLAINED.values()) <= headings
    assert all(place in headings for place in re.findall(r"\]\(#([\w-]+)\)", PAGE))
