"""Source text of an intermediate language inside a module (11.5.5, 11.5.6)."""

from __future__ import annotations

import pytest

from ptxtools.container import link, read, write
from ptxtools.ir import Directive
from ptxtools.ir.nodes import LOC_INTERMEDIATE, SOURCES
from ptxtools.syntax import parse
from ptxtools.syntax.printer import print_module

from .syntaxtools import module

#: As ptxas 13.4 takes it: what is no PTX stands in the text.
TEXT = """.version 9.4
.target sm_80
.address_size 64
.file 1 "{0}.cu"
.file 2 "{0}.ir"
.visible .entry {0}() {{
    .loc 1 2 3
    .loc_intermediate 2 7 1
    ret;
}}
.nv_intermediate_source_section{{.code_block /* one */ {{ .ir_name:"TileIR" .sourceFileName:0x2 .source_begin \t
 foo {{ "bar }} /* ; .source_end
// .source_end
 \t.source_end
}}
.code_block {{
.ir_name: "other" // two
.sourceFileName: 1
.source_begin
.source_end
}}
}}
.nv_intermediate_source_section {{ }}
"""


def sources(name: str, number: int = 2, other: int = 1) -> Directive:
    text = ' foo { "bar } /* ; .source_end\n// .source_end\n'
    return Directive(SOURCES, ('"TileIR"', number, text, '"other"', other, ""))


def test_the_text_is_kept_and_printed():
    found = module(TEXT.format("a"))
    assert found.items[-2:] == [sources("a"), Directive(SOURCES, ())]
    assert Directive(LOC_INTERMEDIATE, (2, 7, 1)) in found.functions[0].body.items
    again = parse(print_module(found))
    assert (again.module, again.diagnostics) == (found, [])


def test_containers_keep_it():
    found = module(TEXT.format("a"))
    assert read(write(found)) == found
    assert [item for item in read(write(found, strip_debug=True)).items if isinstance(item, Directive)] == []
    assert SOURCES not in print_module(read(write(found, strip_debug=True)))


def test_links_renumber_files():
    linked = link([module(TEXT.format(name)) for name in "ab"])
    assert [item for item in linked.items if isinstance(item, Directive) and item.args] == [
        sources("a"),
        sources("b", 4, 3),
    ]
    places = [item.args for f in linked.functions for item in f.body.items if isinstance(item, Directive)]
    assert places == [(2, 7, 1), (4, 7, 1)]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('.ir_name:"TileIR"', "", "expected .ir_name:, found '.'"),
        ('"TileIR"', "TileIR", "expected the name of a language in quotes, found 'TileIR'"),
        ("0x2", "x", "expected the number of a file, found 'x'"),
        ("0x2", "2,", "expected .source_begin, found ','"),
        (" .source_begin \t\n", " .source_begin x\n", "the text begins on the line after .source_begin"),
        (" \t.source_end\n}", " .source_end\n x }", "expected }, found 'x'"),
    ],
)
def test_mistakes(old, new, says):
    found = [d.message for d in parse(TEXT.format("a").replace(old, new, 1)).diagnostics]
    assert any(says in message for message in found), found


def test_texts_that_do_not_end():
    text = TEXT.format("a").replace("/* ;", "")
    for part, says in ((".code_block {", "missing '}' at the end of"), (".source_end\n}\n}", "the text begins")):
        found = [d.message for d in parse(text[: text.index(part)]).diagnostics]
        assert any(says in message for message in found), found
