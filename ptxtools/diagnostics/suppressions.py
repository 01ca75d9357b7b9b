"""Known reports of run-time checkers, from a file: `ptx-run --check-suppressions FILE` (docs/checking.md).

A TOML file of `[[suppress]]` tables. Each says a checker, and what else a report must be about to be silent.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from itertools import permutations
from typing import TYPE_CHECKING, Any

from ptxtools.records import dataclass, field

from .diagnostic import LaunchError
from .kinds import CHECKERS
from .names import demangled

if TYPE_CHECKING:
    from .findings import Finding, Site

_TABLE = "suppress"
#: Keys of a table: those with lists of words, and those with one text.
_LISTS, _TEXTS = ("checker", "kind"), ("kernel", "at", "with", "text", "variable", "reason")
_ALL = "all"
_HEADER = re.compile(rf"[ \t]*\[\[[ \t]*{_TABLE}[ \t]*\]\]")
#: A place: a file, and perhaps a line or several.
_PLACE = re.compile(r"(?P<file>.*?)(?::(?P<first>\d+)(?:-(?P<last>\d+))?)?", re.DOTALL)
#: Of what an allocation's description begins with: the name in quotes, else the words before the first comma.
_QUOTED = re.compile(r"'([^']*)'")
#: The most bytes of such a file.
MOST_BYTES = 1 << 24


@dataclass(frozen=True, slots=True)
class Place:
    """Files by a pattern, and lines first to last, or None for every line."""

    file: str
    first: int | None = None
    last: int | None = None

    @classmethod
    def parse(cls, text: str) -> Place:
        """From `FILE`, `FILE:LINE` or `FILE:LINE-LINE`."""
        found = _PLACE.fullmatch(text)
        assert found is not None  # whatever has no number behind it is a file
        first = found["first"]
        return cls(found["file"]) if first is None else cls(found["file"], int(first), int(found["last"] or first))

    def meets(self, side: Finding | Site) -> bool:
        """Whether one side of a report is there, in the PTX or in what that was generated from."""
        places = [(side.file, side.line)]
        if side.source is not None:
            places += [(origin.file, origin.line) for origin in side.source.chain]
        return any(self._is(*place) for place in places)

    def _is(self, file: str, line: int | None) -> bool:
        if self.first is not None and (line is None or not self.first <= line <= (self.last or self.first)):
            return False
        return _fits(file, self.file) or _fits(file, f"*/{self.file}")


@dataclass(slots=True)
class Suppression:
    """One table. Empty fields hold for every report; line: of the table's head in its file, None if that is not known;
    used: whether it has silenced a report."""

    checkers: tuple[str, ...]
    kinds: tuple[str, ...] = ()
    kernel: str = ""
    at: Place | None = None
    other: Place | None = None
    text: str = ""
    variable: str = ""
    line: int | None = None
    used: bool = False

    def silences(self, finding: Finding) -> bool:
        """Whether a report is one of those that it describes."""
        if _ALL not in self.checkers and finding.checker not in self.checkers:
            return False
        if self.kinds and finding.kind not in self.kinds:
            return False
        if self.kernel and not (_fits(finding.kernel, self.kernel) or _fits(demangled(finding.kernel), self.kernel)):
            return False
        if self.variable and not any(_fits(name, self.variable) for name in _names(finding)):
            return False
        sides: list[Finding | Site] = [finding, *finding.others]
        if self.text and not any(_fits(" ".join(side.text.split()), self.text) for side in sides):
            return False
        wanted = [place for place in (self.at, self.other) if place is not None]
        return any(
            all(place.meets(side) for place, side in zip(wanted, some, strict=True))
            for some in permutations(sides, len(wanted))
        )


@dataclass(slots=True)
class Suppressions:
    """Those of a file, by its name."""

    name: str = ""
    entries: list[Suppression] = field(default_factory=list)

    def silences(self, finding: Finding) -> bool:
        """Whether a report is known. Each table that describes it is used."""
        found = [entry for entry in self.entries if entry.silences(finding)]
        for entry in found:
            entry.used = True
        return bool(found)

    def unused(self, checkers: Iterable[str]) -> Iterator[str]:
        """A line for each table that has silenced nothing, though its checkers were among those that ran."""
        ran = {str(name) for name in checkers}
        for number, entry in enumerate(self.entries):
            wanted = {str(name) for name in CHECKERS} if _ALL in entry.checkers else set(entry.checkers)
            if not entry.used and wanted <= ran:
                yield f"{_where(self.name, entry.line, number)}: no report is like this one"


def read_suppressions(path: str) -> Suppressions:
    """Those of a file. Raises `LaunchError` with its name and, where that is known, the line."""
    return parse_suppressions(read_text(path), path)


def read_text(path: str) -> str:
    """The text of such a file. Raises `LaunchError`."""
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise LaunchError(f"{path}: more than {MOST_BYTES:,} bytes are no list of suppressions")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise LaunchError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # no UTF-8; a name with a null byte
        raise LaunchError(f"{path}: cannot be read: {error}") from None


def parse_suppressions(text: str, name: str) -> Suppressions:
    """Those of a text. name: of its file, for messages. Raises `LaunchError`."""
    text = text.replace("\r\n", "\n")
    try:
        top = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise LaunchError(f"{name}: not a TOML file: {error}") from None
    for key in top:
        if key != _TABLE:
            raise LaunchError(f"{name}: unknown key '{key}'; tables are [[{_TABLE}]]")
    tables = top.get(_TABLE, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise LaunchError(f"{name}: {_TABLE} must be tables: [[{_TABLE}]]")
    lines = text.split("\n")
    heads: list[int | None] = [at for at, line in enumerate(lines, 1) if _HEADER.match(line)]
    if len(heads) != len(tables):  # written in another way
        heads = [None] * len(tables)
    return Suppressions(name, [_Table(name, n, lines, heads[n]).read(table) for n, table in enumerate(tables)])


class _Table:
    """Reads a table. head: its line, if that is known."""

    def __init__(self, name: str, number: int, lines: list[str], head: int | None) -> None:
        self._name, self._number, self._lines, self._head = name, number, lines, head

    def read(self, table: dict[str, Any]) -> Suppression:
        """The suppression in it."""
        for key in table:
            if key not in (*_LISTS, *_TEXTS):
                known = ", ".join((*_LISTS, *_TEXTS))
                raise self._error(f"unknown key '{key}' (known: {known})", key)
        lists = {key: self._words(key, table[key]) if key in table else () for key in _LISTS}
        texts = {key: self._text(key, table[key]) if key in table else "" for key in _TEXTS}
        if not lists["checker"]:
            raise self._error(f"checker is missing: {', '.join(CHECKERS)} or {_ALL}", "checker")
        for word in lists["checker"]:
            if word != _ALL and word not in CHECKERS:
                known = ", ".join(CHECKERS)
                raise self._error(f"there is no checker '{word}'; there are {known} and {_ALL}", "checker")
        at, other = (Place.parse(texts[key]) if texts[key] else None for key in ("at", "with"))
        return Suppression(
            lists["checker"], lists["kind"], texts["kernel"], at, other, texts["text"], texts["variable"], self._head
        )

    def _words(self, key: str, value: Any) -> tuple[str, ...]:
        words = [value] if isinstance(value, str) else value
        if not isinstance(words, list) or not words or not all(isinstance(word, str) and word for word in words):
            raise self._error("must be a word or a list of words", key)
        return tuple(words)

    def _text(self, key: str, value: Any) -> str:
        if not isinstance(value, str) or not value:
            raise self._error("must be a text", key)
        return value

    def _error(self, message: str, key: str) -> LaunchError:
        line = self._head
        if line is not None:
            named = re.compile(rf"""[ \t]*["']?{re.escape(key)}["']?[ \t]*=""")
            for at in range(line, len(self._lines)):
                if self._lines[at].lstrip().startswith("["):
                    break
                if named.match(self._lines[at]):
                    line = at + 1
                    break
        return LaunchError(f"{_where(self._name, line, self._number)}: {key}: {message}")


def written(findings: Iterable[Finding]) -> str:
    """Tables that silence these reports, and those at the same lines, each behind a comment with its message."""
    return "".join(_entry(finding) for finding in findings)


def _entry(finding: Finding) -> str:
    rows = {"checker": str(finding.checker), "kind": finding.kind, "kernel": _pattern(finding.kernel)}
    rows["at"] = _spot(finding)
    others = [_spot(other) for other in finding.others if other.line is not None]
    if others and rows["at"]:
        rows["with"] = others[0]
    message = " ".join(finding.message.split())
    comment = "".join(letter if letter.isprintable() else "?" for letter in message)
    lines = [f"{key} = {_quoted(value)}" for key, value in rows.items() if value]
    return "\n".join([f"# {comment}", f"[[{_TABLE}]]", *lines, "", ""])


def _spot(side: Finding | Site) -> str:
    if side.line is None:
        return ""
    return f"{_pattern(side.file.rpartition('/')[2])}:{side.line}"


def _pattern(text: str) -> str:
    """A pattern that fits a text; what TOML cannot hold fits any letter."""
    found = re.sub(r"([*?[])", r"[\1]", text)
    return re.sub(r"[\ud800-\udfff]", "?", found)


def _quoted(text: str) -> str:
    """A TOML string."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _fits(text: str, pattern: str) -> bool:
    return fnmatchcase(text, pattern)


def _names(finding: Finding) -> list[str]:
    """What the memory of a report is called: in quotes, and the words in front, of each description of it."""
    heads = [text.partition(",")[0] for text in (finding.allocation, *finding.details) if text]
    return [*heads, *(name for head in heads for name in _QUOTED.findall(head))]


def _where(name: str, line: int | None, number: int) -> str:
    return f"{name}: {_TABLE}[{number}]" if line is None else f"{name}:{line}"
