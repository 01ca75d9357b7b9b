"""Pictures: those of the documentation are what the tool draws; every event and every arrow is in them."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

from ptxtools.model.executions import run
from ptxtools.model.nearest import nearest
from ptxtools.model.pictures import as_dot, as_svg
from tests.model.suite import FILES, FOLDER, loaded
from tests.rows import rows

DOCS = Path(__file__).resolve().parents[2] / "docs"
DRAWN = sorted((DOCS / "memory-model").glob("*.svg"))


def drawn(path, draw):
    test = loaded(path)
    execution = run(test, "8.x").witness or nearest(test, "8.x")
    return execution, None if execution is None else draw(execution, test.name)


@rows("path", DRAWN, ids=lambda path: path.stem)
def test_the_documentation_shows_what_the_tool_draws(path):
    _, text = drawn(FOLDER / f"{path.stem}.litmus", as_svg)
    assert path.read_text("utf-8") == text
    assert f"](memory-model/{path.name})" in (DOCS / "memory-model.md").read_text("utf-8")


def test_the_documentation_has_pictures():
    assert len(DRAWN) >= 7


@rows("path", FILES[::6], ids=lambda path: path.stem)
def test_events_and_arrows(path):
    execution, svg = drawn(path, as_svg)
    if svg is None:
        return
    texts = [element.text for element in ElementTree.fromstring(svg).iter() if element.tag.endswith("text")]
    for node in execution.nodes:
        if node.thread >= 0 and node.event.kind != "B":
            assert any(text and text.startswith(node.instruction.text) for text in texts), node.instruction.text
    reads = sum(bin(row).count("1") for row in execution.relations["rf"])
    assert texts.count("rf") == reads
    _, dot = drawn(path, as_dot)
    assert dot.count('label="rf"') == reads and dot.count("{") == dot.count("}")
