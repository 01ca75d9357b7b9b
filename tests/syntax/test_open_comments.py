"""A comment without end is said where it begins, and nothing behind it is news."""

import pytest

import ptxtools
from ptxtools.syntax import parse

TEXT = """.version 8.0
.target sm_80
.address_size 64
.file 1 "a.cu"
.global .u32 g[3] = {1, 2, 3};
.visible .entry k(.param .u64 p, .param .u32 n)
.maxntid 32
{
.reg .b32 %r<4>;
.reg .b64 %rd<4>;
.loc 1 2 3
ld.param.u64 %rd1, [p];
L1: // "/*
add.s32 %r1, %r1, -1; /* whole */
st.global.v2.u32 [%rd1+4], {%r1, %r2};
ret;
}
.section .debug_x
{
.b8 1,2
}
"""
#: Where it would open nothing, or end something else: in strings and comments.
_CLOSED = ['"a.cu"', '// "/*', "/* whole */"]
_CLOSED_SPANS = [(TEXT.index(text), TEXT.index(text) + len(text)) for text in _CLOSED]
PLACES = [at for at in range(len(TEXT) + 1) if not any(start < at <= end for start, end in _CLOSED_SPANS)]


@pytest.mark.parametrize("cache", [True, False])
def test_wherever_it_begins(cache):
    for at in PLACES:
        found = parse(f"{TEXT[:at]}/*{TEXT[at:].replace('*/', '')}", "x", cache=cache).diagnostics
        assert [d.span for d in found if d.code == "PTX102"] == [(at, at + 2)], TEXT[:at][-20:]
        assert all(d.span[0] < at for d in found if d.code != "PTX102"), (TEXT[:at][-20:], found)


def test_it_is_the_only_news():
    (finding,) = ptxtools.lint(TEXT.replace("add.s32", "/* add.s32").replace(" /* whole */", ""))
    assert (finding.code, finding.message, finding.line, finding.column) == (
        "PTX102",
        "this comment is unterminated",
        14,
        1,
    )


@pytest.mark.parametrize("text", ["/*", "/* a", "\n/*", " /* */ /*", "/*\n", "/*/"])
def test_nothing_else_in_the_text(text):
    (finding,) = ptxtools.lint(text)
    assert finding.code == "PTX102" and finding.span[0] == text.rindex("/*") if text != "/*/" else finding.span[0] == 0


def test_assembling_says_it_alone():
    with pytest.raises(ptxtools.PtxError) as caught:
        ptxtools.loads(TEXT.replace("ret;", "/* ret;").replace(" /* whole */", ""))
    assert [d.code for d in caught.value.diagnostics] == ["PTX102"]


def test_an_end_without_a_beginning():
    found = parse(TEXT.replace("ret;", "ret; */"), "x").diagnostics
    assert [(d.code, d.message) for d in found] == [("PTX100", "this '*/' does not end a comment")]
