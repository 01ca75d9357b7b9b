"""`--fix` and `--diff`: safe edits that come with findings."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from ptxtools.diagnostics import Diagnostic

#: Lines of a text of which the difference is looked for part by part, and lines of a part.
_MANY, _PART = 5000, 500


def apply_fixes(text: str, diagnostics: Iterable[Diagnostic]) -> tuple[str, int]:
    """The text after applying the fixes of these findings, and their number. Of overlapping fixes the first is
    applied."""
    fixes = sorted({d.fix for d in diagnostics if d.fix is not None}, key=lambda fix: (fix.span, fix.text))
    parts: list[str] = []
    at = count = 0
    for fix in fixes:
        start, end = fix.span
        if start < at or (start, end) == (0, 0):
            continue
        parts += [text[at:start], fix.text]
        at = end
        count += 1
    return "".join((*parts, text[at:])), count


def unified_diff(before: bytes, after: bytes, name: str) -> bytes:
    """The change as a patch in bytes, for `patch -p0` and `git apply -p0`."""
    from difflib import SequenceMatcher, diff_bytes
    from difflib import unified_diff as difference

    label, old, new = _label(name), _lines(before), _lines(after)
    if max(len(old), len(new)) <= _MANY:
        lines = list(diff_bytes(difference, old, new, label, label))
    else:
        matcher = SequenceMatcher(None, old[:0], new[:0])
        matcher.get_opcodes = lambda: _by_parts(old, new)  # type: ignore[method-assign]
        lines = [b"--- %s\n" % label, b"+++ %s\n" % label] if old != new else []
        for group in matcher.get_grouped_opcodes() if lines else ():
            (_, first, _, start, _), (_, _, last, _, end) = group[0], group[-1]
            lines.append(b"@@ -%s +%s @@\n" % (_range(first, last), _range(start, end)))
            for tag, i, j, k, n in group:
                if tag == "equal":
                    lines += [b" " + line for line in old[i:j]]
                else:
                    lines += [b"-" + line for line in old[i:j]]
                    lines += [b"+" + line for line in new[k:n]]
    return b"".join(line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n" for line in lines)


def _by_parts(old: list[bytes], new: list[bytes]) -> list[tuple[Any, int, int, int, int]]:
    """What differs, as of `SequenceMatcher.get_opcodes`, which takes quadratic time: part by part."""
    from difflib import SequenceMatcher

    found: list[tuple[Any, int, int, int, int]] = []
    i = j = 0
    while i < len(old) or j < len(new):
        # Behind the last line that both have, the next part begins; a part without one is replaced.
        part, other = old[i : i + _PART], new[j : j + 2 * _PART]
        codes = SequenceMatcher(None, part, other).get_opcodes()
        if part and other and (i + len(part) < len(old) or j + len(other) < len(new)):
            while codes and codes[-1][0] != "equal":
                codes.pop()
            if not codes or codes[-1][2] < len(part) // 2:
                codes = [("replace", 0, len(part), 0, min(len(part), len(other)))]
        for tag, *place in codes:
            first, last, start, end = place[0] + i, place[1] + i, place[2] + j, place[3] + j
            if tag == "equal" and found and found[-1][0] == "equal":
                _, first, _, start, _ = found.pop()
            found.append((tag, first, last, start, end))
        i, j = found[-1][2], found[-1][4]
    return found


def _range(first: int, last: int) -> bytes:
    """Lines as the head of a hunk names them: from 1, and none by the line before."""
    count = last - first
    return b"%d" % (first + 1) if count == 1 else b"%d,%d" % (first + (count > 0), count)


def _lines(data: bytes) -> list[bytes]:
    """Lines as patches count them: only a line feed ends one."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _label(name: str) -> bytes:
    """A name in the head of a patch: a tab ends one with spaces, and one with quotes or control characters is written
    as a string of C."""
    data = os.fsencode(name)
    if any(byte < 32 or byte in b'"\\\x7f' for byte in data):
        quoted = (bytes([byte]) if 32 <= byte < 127 and byte not in b'"\\' else b"\\%03o" % byte for byte in data)
        return b'"' + b"".join(quoted) + b'"'
    return data + b"\t" if b" " in data else data
