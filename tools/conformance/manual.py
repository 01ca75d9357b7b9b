"""Statements in the texts of the PTX manual: the lines of its examples, and code lines elsewhere in its text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ptxtools.isa.index import CHAPTERS

#: File name prefix of each edition that is read, and how it is called.
EDITIONS = {"000": "8.7", "001": "9.0", "002": "6.4", "004": "7.8"}

_HEADING = re.compile(r"#*\s*\**(\d+(?:\.\d+)+)\.?\**\s+\S")
_EXAMPLES = re.compile(r"#*\s*\**(?:示例|例子|Examples?)\b[\s\d:*]*$", re.IGNORECASE)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_NAME = re.compile(r"[\w$%]+")
_START = re.compile(r"(?:[\w$%]+\s*:\s*)*(?:@!?\s*[\w$%]+\s*:?\s*)?([a-z]\w*)(?=[\s.;])|\s*\.[a-z]\w*|@@", re.ASCII)
FUNCTION = re.compile(r"\s*(?:\.(?:visible|extern|weak)\s+)?\.(?:entry|func|function)\b")
LABEL = re.compile(r"\s*([\w$%]+)\s*:(?!:)\s*(?!\s*\.(?:branchtargets|calltargets|callprototype))")
TO_LINE_END = re.compile(r"\s*(?:\.(?:version|target|address_size|loc|file)\b[^\n;]*|@@[^\n]*)")
_PRAGMA = re.compile(r"\.pragma[^;{]*$")
#: Whole statements on one line, outside of the examples.
_ONE_LINE = re.compile(
    r"\s*(?:(?:@!?[\w$%]+\s+)?[a-z][\w.:]*\s+[\w$%{\[(][^;]*|\.[a-z][^;]*|[\w$]+:\s*[.a-z][^;]*);\s*$"
)
#: A line that begins a statement, behind one that ends none.
MISSING = re.compile(r"(?<=[\w\]>)}])[ \t]*\n(?=\s*(?:\.reg|\.global|\.shared|@!?\w+\s|[a-z]\w*\.[\w.:]+\s+[\w{\[$%]))")
#: A word alone on its line, with no operands on the next one.
_LONE_WORD = re.compile(r"^[ \t]*\.?[\w:.]+[ \t]*\n(?![\s]*[{\[(%])", re.MULTILINE)
#: Lines that are no code: a row of a table, a sentence.
_NO_CODE = re.compile(r".*(?: \|(?: |$)|^\||---)|.*(?:\b[A-Za-z]{2,}\b ){3}|.*\w\.$|```")
#: Marks of pseudo code and figures.
_PSEUDO = re.compile(r"\.\.|\.bX|Thread \d")
#: Names that the texts spell with hyphens.
_HYPHEN = re.compile(r"\b([a-z]+)-([a-z]+)(?:-([a-z]+))?\b")


class Example(NamedTuple):
    """A statement. where: "edition section"; text: without comments, blanks single; given: the declarations of its
    block that it needs; in_examples: it stands among the examples of its section."""

    where: str
    text: str
    given: tuple[str, ...] = ()
    in_examples: bool = True


def examples(folder: Path) -> Iterator[Example]:
    """Every statement of the editions in `folder`, in order; some repeat."""
    for path in sorted(folder.glob("*.txt")):
        edition = EDITIONS.get(path.name[:3])
        if edition is not None:
            yield from _of_edition(edition, path.read_text("utf-8").splitlines())


def _of_edition(edition: str, lines: list[str]) -> Iterator[Example]:
    for section, block, inside in _parts(lines):
        if inside:
            yield from _of_block(f"{edition} {section}", block)
            continue
        for line in block:
            text = _plain(_COMMENT.sub("", line))
            if text.isascii() and _ONE_LINE.match(text) and starts(text):
                yield Example(f"{edition} {section}", tidy(text), (), False)


def example_blocks(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """The sections that have examples, and the lines of these."""
    return ((section, block) for section, block, inside in _parts(lines) if inside)


def _parts(lines: list[str]) -> Iterator[tuple[str, list[str], bool]]:
    """The text between headings: its section, its lines, and whether they are examples."""
    section, inside, block = "", False, list[str]()
    for line in [*lines, "0.0. end"]:
        heading = _HEADING.match(line)
        begins = _EXAMPLES.match(line.strip()) is not None
        if heading or begins or line.startswith("#"):
            yield section, block, inside
            block = []
            inside = begins or (inside and heading is None and line.startswith("####") and "xample" in line)
            section = heading[1] if heading else section
        else:
            block.append(line)


def code(lines: list[str]) -> str:
    """The code among the lines of a block, without comments."""
    text = _COMMENT.sub("", "\n".join(_plain(line) for line in lines))
    text = "\n".join(line for line in text.splitlines() if line.isascii() and not _NO_CODE.match(line))
    return _LONE_WORD.sub("", text + "\n")


def _of_block(where: str, lines: list[str]) -> Iterator[Example]:
    found = [s for s in map(tidy, _statements(code(lines))) if s and not _PSEUDO.search(s)]
    for at, statement in enumerate(found):
        given: list[str] = []
        wanted = set(_NAME.findall(statement)) - declared(statement)
        for other in [*reversed(found[:at]), *found[at + 1 :]]:
            if wanted & (names := declared(other)):
                given.append(other)
                wanted -= names
        yield Example(where, statement, tuple(reversed(given)))


def _plain(line: str) -> str:
    """What the conversion of the texts has changed, put right."""
    line = line.replace("\\_", "_").replace("\xa0", " ").replace("“", '"').replace("”", '"')
    return re.sub(r"^\s*\d+:\s", "", line)


def tidy(text: str) -> str:
    text = _HYPHEN.sub(lambda m: "_".join(filter(None, m.groups())), text) if not text.startswith(".") else text
    text = re.sub(r"\s+", " ", text).strip()
    guard = re.match(r"@!?([\w$%]+) ", text)
    if guard and guard[1] in _NAME.findall(text[guard.end() :]):  # the texts use such a name for two things
        text = text.replace(guard[1], "guard", 1)
    return re.sub(r" ?([,;]) ?", r"\1 ", text).strip()


def starts(text: str) -> bool:
    """Whether a statement begins here."""
    found = _START.match(text)
    return found is not None and (found[1] is None or found[1] in CHAPTERS)


def _statements(text: str) -> Iterator[str]:
    """Statements of a block; function headers end with `{ ret; }`, bodies and scopes are taken apart."""
    at = 0
    while at < len(text):
        if text[at] in " \t\n{};":
            at += 1
            continue
        label = LABEL.match(text, at)
        if label:
            at = label.end()
            continue
        line = TO_LINE_END.match(text, at)
        if line:
            yield line[0]
            at = line.end()
            continue
        if not starts(text[at:]):  # prose
            at = text.find("\n", at) % (len(text) + 1)
            continue
        end = end_of(text, at)
        if missing := MISSING.search(text, at, end):  # a semicolon that the text has forgotten
            yield text[at : missing.start()] + ";"
            at = missing.start()
        elif text[end : end + 1] != "{":
            yield text[at:end] + ";"
            at = end + 1
        elif text.startswith(".section", at):
            close = text.find("}", end) % (len(text) + 1)
            yield text[at : close + 1]
            at = close + 1
        else:
            yield text[at:end] + " { ret; }"
            at = end + 1


def end_of(text: str, at: int) -> int:
    """Where the statement that begins at `at` ends: at its `;`, or at the `{` of a body."""
    header = FUNCTION.match(text, at) or text.startswith(".section", at)
    depth = 0
    for index in range(at, len(text)):
        character = text[index]
        if character == "{" and header and depth == 0:
            return index
        depth += (character in "{([") - (character in "})]")
        if depth < 0 or (character == ";" and not (header and _PRAGMA.search(text, at, index))):
            return index
    return len(text)


def declared(statement: str) -> set[str]:
    """The names that a statement declares."""
    if label := re.match(r"([\w$%]+) ?: ?\.", statement):
        return {label[1]}
    if function := FUNCTION.match(statement):
        signature = statement[function.end() :].lstrip()
        name = re.match(r"(?:\([^)]*\)\s*)?([\w$%]+)", signature)
        return {name[1]} if name else set()
    if not statement.startswith(".") or statement.startswith((".loc", ".file", ".pragma", ".section")):
        return set()
    head = re.sub(r"\[[^]]*\]|<\d+>", "", statement.partition("=")[0])
    return set(re.findall(r"([\w$%]+)\s*(?=,|;|$)", head))
