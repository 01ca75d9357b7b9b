"""Real compiler output: it parses, both ways alike, and survives printing."""

import pytest

from ptxtools.ir import Instruction
from ptxtools.syntax import parse, print_module
from tests.rows import rows

from .syntaxtools import FILES, both, file_id


def test_there_is_test_data():
    assert len(FILES) >= 115


@rows("path", FILES, ids=file_id, share=10)
def test_real_file(path):
    text = path.read_text()
    result = both(text)
    assert result.diagnostics == []
    assert result.module.version >= (6, 0)
    assert result.module.target.startswith("sm_")
    assert result.module.functions
    printed = print_module(result.module)
    again = parse(printed)
    assert again.diagnostics == []
    assert again.module == result.module
    assert print_module(again.module) == printed


@pytest.mark.parametrize("path", FILES[::10], ids=file_id)
def test_spans_mark_the_text(path):
    text = path.read_text()
    for entry in parse(text).module.entries:
        assert text[slice(*entry.name_span)] == entry.name
        assert text[entry.span[1] - 1] == "}"
        for node in entry.body.items:
            if isinstance(node, Instruction):
                marked = text[slice(*node.span)]
                assert marked.startswith(node.opcode if node.guard is None else "@")
                assert text[node.span[1] :].lstrip()[0] == ";"
                assert marked == marked.strip()


def test_windows_line_ends_change_nothing():
    text = FILES[0].read_text()
    result = both(text.replace("\n", "\r\n"))
    assert result.diagnostics == []
    assert result.module == parse(text).module
