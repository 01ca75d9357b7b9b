"""Expressions that an earlier process compiled are those that `re` compiles."""

import marshal
import re
import sys

import pytest

from ptxtools import cache, expressions
from tests.work import calls

PATTERNS = [("a+(?P<x>b)|[^\n]*", 0), (r"(?:\s|//[^\n]*)*+:(?!:)", re.ASCII), ("(?i:ab)(c)?", re.VERBOSE | re.DOTALL)]
KEYS = [(pattern, int(flags)) for pattern, flags in PATTERNS]


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A fresh cache directory, and `re` as it was before a start."""
    monkeypatch.setenv("PTXTOOLS_CACHE", str(tmp_path))
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "compiled"))

    def start():
        for name in {"_cache", expressions._kept}:  # Python 3.12 and later have two
            monkeypatch.setattr(re, name, {})
        expressions.use_table()
        return getattr(re, expressions._kept)

    return start


def compiled():
    """What a module compiles when it is loaded."""
    found = {"re": re, "PATTERNS": PATTERNS, "found": []}
    exec(compile("for each in PATTERNS: found.append(re.compile(*each))", "m", "exec"), found)
    return found["found"]


def test_a_later_process_gets_the_same_without_compiling(table, monkeypatch):
    table()
    before = compiled()
    expressions.leave_table()
    known = table()
    assert set(KEYS) <= set(known.table)
    from re import _compiler

    monkeypatch.setattr(_compiler, "compile", None)  # nothing is compiled
    after = compiled()
    assert before == after and all(a is not b for a, b in zip(before, after, strict=True))
    assert [e.groupindex for e in before] == [e.groupindex for e in after]
    assert [e.flags for e in before] == [e.flags for e in after]
    for text in ("aab", "  // x\n :", "ABc", "\n"):
        for a, b in zip(before, after, strict=True):
            assert [m and (m.span(), m.groups()) for m in (a.search(text), a.match(text))] == [
                m and (m.span(), m.groups()) for m in (b.search(text), b.match(text))
            ]


def test_what_depends_on_input_is_not_stored(table):
    known = table()
    for pattern, flags in PATTERNS:
        re.compile(pattern, flags)
    assert not known.wanted


@pytest.mark.parametrize("content", [
    b"", b"\xff", marshal.dumps(3), marshal.dumps({KEYS[0]: (0, b"\0" * 8, 0, {})}),
    marshal.dumps({KEYS[0]: (0, b"123", 0, {})}), marshal.dumps({KEYS[0]: 7}),
])  # fmt: skip
def test_a_table_that_is_no_good_does_no_harm(table, content):
    """`_sre` looks at the code before it uses it."""
    (place,) = expressions._places()
    cache.write_sealed(place, expressions._key(), content)
    table()
    assert compiled()[0].match("aab")["x"] == "b"


def test_a_second_start_compiles_little(table):
    table()
    first = calls(compiled)
    expressions.leave_table()
    table()
    assert calls(compiled) < first / 4
