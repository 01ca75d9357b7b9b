"""Random texts: no exceptions, both ways alike, and what is accepted survives printing."""

import random
import re

import pytest

from ptxtools.syntax import parse, print_module
from tests import share

from .syntaxtools import FILES, HEAD, describe, spans

TOKEN = re.compile(r'"[^"]*"|//[^\n]*|[\w$%.:]+|\s+|.', re.DOTALL)
WORDS = [
    *'{}[]()<>;:,@!|+-*/%~?=&^"#$_\\\0\n\t é',
    *"""
    .reg .b32 .entry .func .visible .param .section .loc .file .pragma "x" 1 0x10 5U 0f3f800000 0d3ff0000000000000
    1.5 -1 %r1 foo call call.uni ret .align .v2 L: /* */ // .ptr .attribute(.managed) generic(x) 0xff(x) WARP_SZ
    function_name inlined_at .branchtargets .callprototype .target @%p1 @!%p2 bra 1/0 {1,2} [a+4] .unified .const[2]
    ld.const[2].u32 .b8 @@DWARF #define << >= && 09 1e5 .debug_x a.b.c %tid.x
    """.split(),  # noqa: SIM905
    ".version 9.0",
    '# 1 "a"',
]  # fmt: skip


def check(text):
    plain, cached = parse(text, cache=False), parse(text)
    assert describe(plain) == describe(cached), text
    assert plain.module == cached.module, text
    assert spans(plain.module) == spans(cached.module), text
    assert parse(print_module(plain.module)).module == plain.module, text
    for found in plain.diagnostics:
        assert 0 <= found.span[0] < found.span[1] <= len(text) + 1, text
        assert found.line >= 1
        assert found.message


def cut(rng, texts):
    """The head of a real file and a piece of it, with some tokens deleted, added, changed and doubled."""
    tokens = TOKEN.findall(rng.choice(texts))
    begin = rng.randrange(len(tokens))
    tokens = tokens[:60] + tokens[begin : begin + rng.choice([40, 150])]
    for _ in range(rng.choice([1, 1, 2, 3, 6, 12])):
        at, what = rng.randrange(len(tokens) + 1), rng.random()
        if what < 0.3:
            del tokens[at : at + rng.choice([1, 1, 2, 5])]
        elif what < 0.65:
            tokens.insert(at, rng.choice(WORDS))
        elif what < 0.85:
            tokens[at : at + 1] = [rng.choice(WORDS)]
        else:
            other = rng.randrange(len(tokens) + 1)
            tokens[at:at] = tokens[other : other + rng.choice([1, 2, 6])]
    return "".join(tokens)


def words(rng, _):
    glue = rng.choice(["", " ", "\n"])
    inside = glue.join(rng.choices(WORDS, k=rng.choice([3, 10, 40])))
    return rng.choice([inside, f"{HEAD}.entry k()\n{{\n{inside}\nret;\n}}\n"])


def noise(rng, _):
    characters = rng.choice([range(32, 127), range(256), range(0x3000)])
    return "".join(map(chr, rng.choices(characters, k=rng.choice([1, 20, 300]))))


@pytest.mark.parametrize(("make", "count"), [(cut, 200), (words, 1000), (noise, 1500)])
def test_random_text(make, count):
    texts = [path.read_text() for path in FILES[::5]]
    for number in range(count if share.whole else count // 4):
        check(make(random.Random(f"{make.__name__} {number}"), texts))


SMALL = (
    HEAD + '.file 1 "a.cu"\n.global .align 4 .b8 t[3] = {1, 2, 0xff(t)};\n'
    ".visible .entry k(.param .u64 .ptr .global .align 8 a)\n.maxntid 32\n{\n\t.reg .b32 %r<4>;\n"
    "\t.loc 1 2 3\n$L: @!%p1 ld.global.v2.u32 {%r1, _}, [%rd1+8];\n\tcall (r), f, (a, 1.5);\n"
    '\t{ // scope\n\t.pragma "x"; /* y */ }\n\tret;\n}\n.section .debug_x {\n.b8 1, 2\n}\n'
)


def test_truncation_at_every_character():
    for end in range(0, len(SMALL) + 1, 1 if share.whole else 3):
        check(SMALL[:end])


def test_one_character_less():
    for at in range(0, len(SMALL), 1 if share.whole else 3):
        check(SMALL[:at] + SMALL[at + 1 :])
