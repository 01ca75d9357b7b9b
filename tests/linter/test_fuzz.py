"""Damaged modules: parser, checks, warnings, rendering and requirements never raise."""

import random
import re
from pathlib import Path

from ptxtools.diagnostics.text import render
from ptxtools.linter import lint
from ptxtools.linter.requirements import requirements
from ptxtools.syntax import parse
from tests import share

DATA = Path(__file__).resolve().parents[2] / "testdata"
TOKEN = re.compile(r"\s+|[\w$%.:]+|.", re.S)
SUFFIXES = [".x", ".b0", "<4>", "+4", "!", "-", "|", "_", "{", "}", "[", "]", "0x1ffffffffffffffff", ";"]
MODULES = 150 if share.whole else 40


def damage(tokens, words, chance):
    for _ in range(chance.randint(1, 12)):
        if not tokens:
            return
        at = chance.randrange(len(tokens))
        kind = chance.randrange(5)
        if kind == 0:
            del tokens[at]
        elif kind == 1:
            tokens[at] = chance.choice(words)
        elif kind == 2:
            tokens.insert(at, chance.choice(words))
        elif kind == 3:
            tokens[at] += chance.choice(SUFFIXES)
        else:
            other = chance.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]


def test_damaged_modules_give_findings_only():
    texts = [path.read_text("utf-8") for path in sorted(DATA.glob("**/*.ptx")) if path.stat().st_size < 12_000]
    assert len(texts) > 10
    words = [word for text in texts for word in TOKEN.findall(text)[:2000] if word.strip()]
    chance = random.Random(20)
    for _ in range(MODULES):
        tokens = TOKEN.findall(chance.choice(texts))
        damage(tokens, words, chance)
        text = "".join(tokens)
        try:
            result = parse(text, "fuzz.ptx")
            for finding in [*result.diagnostics, *lint(result.module)]:
                render(finding)
            requirements(result.module, "fuzz.ptx")
        except Exception as error:
            raise AssertionError(f"{error!r} for:\n{text}") from error
