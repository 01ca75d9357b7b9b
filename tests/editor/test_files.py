"""The files for editors: they name what is there, and the grammar gives the words of real kernels their kinds."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from ptxtools.editor.words import Words
from tests.syntax.syntaxtools import FILES

ROOT = Path(__file__).resolve().parents[2]
CODE = ROOT / "editors" / "vscode"


def read(name):
    return json.loads((CODE / name).read_text())


def test_the_extension_names_files_that_are_there():
    package = read("package.json")
    (language,), (grammar,) = package["contributes"]["languages"], package["contributes"]["grammars"]
    for name in (package["main"], language["configuration"], grammar["path"]):
        assert (CODE / name).is_file()
    assert read(grammar["path"])["scopeName"] == grammar["scopeName"]
    assert '"--lsp"' in (CODE / package["main"]).read_text()


#: What the names of scopes begin with, by the kinds of words.
SCOPES = {
    "comment": "comment.", "string": "string.", "number": "constant.numeric.", "label": "entity.name.label.",
    "directive": "keyword.control.directive.", "modifier": "storage.modifier.",
    "opcode": "keyword.operator.opcode.", "name": "variable.",
}  # fmt: skip


class Grammar:
    """The patterns of a TextMate grammar, whose dialect Python's expressions share. Line by line, the one that matches
    first takes its words, of several the first in the list; one that has an end goes on over lines."""

    def __init__(self, patterns):
        self._patterns = [(re.compile(p.get("match", p.get("begin"))), p) for p in patterns]

    def scopes(self, text):
        """The scope of each character."""
        found, start, inside = [None] * len(text), 0, None
        for line in text.split("\n"):
            at = 0
            while at <= len(line):
                if inside is not None:
                    end = re.compile(inside["end"]).search(line, at)
                    stop = end.end() if end else len(line)
                    self._mark(found, start + at, start + stop, inside["name"])
                    at, inside = stop, None if end else inside
                    if not end:
                        break
                    continue
                met = [
                    (m.start(), n, m) for n, (match, _) in enumerate(self._patterns) if (m := match.search(line, at))
                ]
                if not met:
                    break
                _, number, match = min(met, key=lambda each: each[:2])
                pattern = self._patterns[number][1]
                for group, scope in pattern.get("captures", {"0": pattern}).items():
                    if match[int(group)]:
                        self._mark(found, *(start + end for end in match.span(int(group))), scope["name"])
                inside = pattern if "end" in pattern else None
                at = max(match.end(), at + (match.end() == match.start()))
            start += len(line) + 1
        return found

    @staticmethod
    def _mark(found, begin, end, scope):
        found[begin:end] = [scope] * (end - begin)


@pytest.mark.parametrize("path", [path for path in FILES if path.stat().st_size < 60_000], ids=lambda path: path.stem)
def test_the_grammar_gives_every_word_its_kind(path):
    """That which the server's words have."""
    text = path.read_text("utf-8", errors="replace")
    scopes = Grammar(read("syntaxes/ptx.tmLanguage.json")["patterns"]).scopes(text)
    words = list(Words().of(text))
    assert words
    for word in words:
        got = {scopes[at] for at in range(*word.span) if not text[at].isspace()}
        assert len(got) == 1 and str(got.pop()).startswith(SCOPES[word.kind]), (word, text[: word.span[1]][-40:])


def test_helix_settings_are_toml():
    page = (ROOT / "docs" / "editors.md").read_text()
    block = page.split("`languages.toml`:\n\n")[1]
    settings = tomllib.loads("\n".join(line.strip() for line in block.split("\n")))
    assert settings["language-server"]["ptx"]["args"] == ["--lsp"]
