"""Rows that hold one plain statement and nothing else: their canonical layout is known from their text alone.

Most rows of a text are such, and most were seen before, in this text or in an earlier state of it. What they are read
as is compared once, when a row is first met.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain

#: An instruction, a declaration of variables, a pragma or a label.
_PLAIN = re.compile(
    r"""(?:@!?[\w$%]+[ \t]+)?[a-z][\w.:]*(?:[ \t]+[^;"/\#@:\n]*)?; | \.(?:reg|shared|local)[ \t][^;"/\#@:{\n]*;
      | \.pragma[ \t]"[^"\n]*"; | [A-Za-z_$][\w$]*:""",
    re.ASCII | re.VERBOSE,
)
#: What may reach over rows.
_FAR = ("@@", "#", ".section", ".nv_", "\v", "\f", *map(chr, range(28, 32)))
#: Comments, and what looks like one in a string.
_COMMENT = re.compile(r"//[^\n]*|/\*(?s:.*?)(?:\*/|\Z)|\"[^\"\n]*\"|\*/")
#: Rows that are remembered.
_MOST = 1 << 18
#: Rows that are learned at a time while something else may want to go on: some milliseconds.
_AT_ONCE = 100

#: What stands between the canonical text of a statement and the comment behind it.
REMARK = "\0"

#: By a row, its canonical text in the body of a function, "" where it is not plain.
_codes: dict[str, str] = {}


def runs_of(
    text: str, code: Callable[[str], str], same: Callable[[str, str], bool], kept: Iterable[int] = ()
) -> dict[int, tuple[int, str]]:
    """Neighbouring plain rows: by where the first statement begins, where the last one ends, and their canonical text
    in the body of a function, with `REMARK` in front of comments.

    code: the canonical text of a statement, or "" where it is something else; same: whether two texts of statements are
    read alike, and without errors; kept: the numbers of rows, from 1 on, that are none of them.
    """
    rows = _rows(text)
    for _ in _learned(rows, code, same, len(rows)):
        pass
    codes = list(map(_codes.__getitem__, rows))
    starts = list(accumulate(map(len, rows), lambda at, length: at + length + 1, initial=0))
    plain = bytearray(map(bool, codes))
    for quiet in chain((number - 1 for number in kept), _commented(text, starts)) if rows else ():
        plain[quiet] = 0
    runs: dict[int, tuple[int, str]] = {}
    at = plain.find(1)
    while at >= 0:
        end = plain.find(0, at)
        end = len(rows) if end < 0 else end
        while at < end and not _ended(rows, at):
            at += 1
        last = end
        while last > at and rows[last - 1].rstrip().endswith(":") and not _begins(rows, last):
            last -= 1
        if at < last:
            row = rows[at]
            begin = starts[at] + len(row) - len(row.lstrip())
            runs[begin] = starts[last - 1] + len(rows[last - 1].rstrip()), "\n".join(codes[at:last])
        at = plain.find(1, end)
    return runs


def learned(text: str, code: Callable[[str], str], same: Callable[[str, str], bool]) -> Iterator[None]:
    """Note, some rows at a time, what `runs_of` would look for."""
    return _learned(_rows(text), code, same, _AT_ONCE)


def _rows(text: str) -> list[str]:
    """The rows of a text, each of which can be looked at by itself; none if not all can be."""
    if any(mark in text for mark in _FAR):
        return []
    rows = text.split("\n")
    return [] if any(row.count('"') % 2 for row in rows if '"' in row) else rows


def _commented(text: str, starts: Sequence[int]) -> Iterator[int]:
    """The rows that comments between /* and */ stand in. starts: of each row."""
    if "/*" not in text and "*/" not in text:
        return
    for match in _COMMENT.finditer(text):
        if match[0][:2] in ("/*", "*/"):
            first, last = (bisect_right(starts, at) - 1 for at in (match.start(), match.end() - 1))
            yield from range(first, last + 1)


def _learned(
    rows: Sequence[str], code: Callable[[str], str], same: Callable[[str, str], bool], most: int
) -> Iterator[None]:
    """Note what rows become, so many at a time."""
    if len(_codes) > _MOST:
        _codes.clear()
    fresh = [row for row in dict.fromkeys(rows) if row not in _codes]
    for at in range(0, len(fresh), max(most, 1)):
        _learn(fresh[at : at + most], code, same)
        yield


def _ended(rows: Sequence[str], at: int) -> bool:
    """Whether a statement certainly ends above a row."""
    before = at - 1
    while before >= 0 and (not rows[before].strip() or rows[before].lstrip().startswith("//")):
        before -= 1
    row = rows[before].rstrip() if before >= 0 else ""
    return row.endswith((";", "{", "}")) and "//" not in row


def _begins(rows: Sequence[str], at: int) -> bool:
    """Whether what follows a label from a row on certainly is a statement of its own: not a list of targets."""
    while at < len(rows) and not rows[at].strip():
        at += 1
    return at < len(rows) and not rows[at].lstrip().startswith((".b", ".c", "/"))


def _learn(rows: Sequence[str], code: Callable[[str], str], same: Callable[[str, str], bool]) -> None:
    """Note what rows become."""
    found: list[tuple[str, str, str]] = []
    remarks: dict[str, str] = {}
    for row in rows:
        text, remark = row.strip(" \t"), ""
        if "//" in text and '"' not in text:
            text, _, remark = text.partition("//")
            text, remark = text.rstrip(" \t"), f"{REMARK}//{remark}"
        made = code(text) if _PLAIN.fullmatch(text) and not (remark and text[-1] == ":") else ""
        if made and "\n" not in made and REMARK not in row:
            found.append((row, text, made))
            remarks[row] = remark
        else:
            _codes[row] = ""
    waiting = [found] if found else []
    while waiting:
        part = waiting.pop()
        alike = same("\n".join(text for _, text, _ in part), "\n".join(made for _, _, made in part))
        if alike or len(part) == 1:
            _codes.update((row, made + remarks[row] if alike else "") for row, _, made in part)
        else:
            waiting += [part[: len(part) // 2], part[len(part) // 2 :]]
