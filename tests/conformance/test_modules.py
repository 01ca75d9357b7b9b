"""Every module of the test data: ptxas 13.0 was asked about each, with `-c` and the module's own target."""

from pathlib import Path

from ptxtools import lint
from ptxtools.diagnostics import Severity
from tests.rows import rows

DATA = Path(__file__).parents[2] / "testdata"
MODULES = sorted(DATA.rglob("*.ptx"))
#: What ptxas refuses, with the lines of its errors. Modules of PTX 9.5, which it does not know yet, are not among them.
REFUSED = {"containers/everything.ptx": [56]}


def test_there_are_modules() -> None:
    assert len(MODULES) >= 140


@rows("path", MODULES, ids=lambda path: "/".join(path.relative_to(DATA).parts[-2:]), share=3)
def test_errors_stand_where_ptxas_finds_them(path: Path) -> None:
    found = [d for d in lint(path.read_text()) if d.severity is Severity.ERROR]
    assert [d.line for d in found] == REFUSED.get(path.relative_to(DATA).as_posix(), []), found
