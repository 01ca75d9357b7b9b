"""`--fix` and `--diff`: safe edits that come with findings."""

from __future__ import annotations

import os
from collections.abc import Iterable

from ptxtools.diagnostics import Diagnostic


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
    from ptxtools.matching import Matcher

    label, old, new = _label(name), _lines(before), _lines(after)
    lines = [b"--- %s\n" % label, b"+++ %s\n" % label] if old != new else []
    for group in Matcher(old, new).get_grouped_opcodes() if lines else ():
        (_, first, _, start, _), (_, _, last, _, end) = group[0], group[-1]
        lines.append(b"@@ -%s +%s @@\n" % (_range(first, last), _range(start, end)))
        for tag, i, j, k, n in group:
            if tag == "equal":
                lines += [b" " + line for line in old[i:j]]
            else:
                lines += [b"-" + line for line in old[i:j]]
                lines += [b"+" + line for line in new[k:n]]
    return b"".join(line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n" for line in lines)


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
