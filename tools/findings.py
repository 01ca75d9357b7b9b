"""Counts what the warning rules find in PTX files, for the table of ptxtools/linter/precision.py.

Usage: python tools/findings.py [--list | --table] [--only CODES] FILE_OR_FOLDER…

Folders are searched for *.ptx. Files with equal contents count once, like functions that differ in local names alone.
--list prints each finding with its file, line and level ("certain", "possible", or nothing where a rule has one level
only); --only takes prefixes of codes, with commas between them.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from ptxtools.diagnostics import Severity  # noqa: E402
from ptxtools.linter import lint  # noqa: E402
from ptxtools.linter.precision import FINDINGS  # noqa: E402
from ptxtools.syntax import parse  # noqa: E402

#: Code, line, level and message of a finding.
Finding = tuple[str, int, str, str]


def different(paths: Iterable[Path]) -> Iterator[Path]:
    """The files among some paths, and in folders among them, each text once."""
    seen: set[bytes] = set()
    for path in paths:
        for file in sorted(path.rglob("*.ptx")) if path.is_dir() else [path]:
            text = file.read_bytes()
            if text not in seen:
                seen.add(text)
                yield file


def findings(path: Path) -> list[Finding]:
    """The warnings about a file; an error counts as the finding of its code."""
    parsed = parse(path.read_text(errors="replace"), str(path))
    found: list[Finding] = []
    for one in [*parsed.diagnostics, *lint(parsed.module)]:
        line = one.source.line_of(one.span[0]) if one.source is not None else 0
        notes = [note.partition(":")[0] for note in one.help] if one.severity is Severity.WARNING else []
        level = next((note for note in notes if note in ("certain", "possible")), "")
        found.append((one.code, line, level, one.message))
    return found


def print_table(count: Counter[tuple[str, str]], modules: Counter[tuple[str, str]]) -> None:
    """Rows as FINDINGS of ptxtools/linter/precision.py has them; a module counts once for each level."""
    for code in sorted({code for code, _ in count} | set(FINDINGS)):
        findings = sum(number for (one, _), number in count.items() if one == code)
        files = sum(number for (one, _), number in modules.items() if one == code)
        before = FINDINGS.get(code, (0, 0, 0, ""))
        note = "" if before[:2] == (findings, files) else f"  # judge: {before[0]} in {before[1]} before"
        print(f'    "{code}": ({findings}, {files}, {before[2]}, "{before[3]}"),{note}')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    files, wanted = list(different(given.paths)), tuple(given.only.split(","))
    count: Counter[tuple[str, str]] = Counter()
    modules: Counter[tuple[str, str]] = Counter()
    with ProcessPoolExecutor(given.jobs) as pool:
        for file, found in zip(files, pool.map(findings, files, chunksize=4), strict=True):
            chosen = [one for one in found if one[0].startswith(wanted)]
            count.update((code, level) for code, _, level, _ in chosen)
            modules.update({(code, level) for code, _, level, _ in chosen})
            for code, line, level, message in chosen if given.list else ():
                print(f"{file}:{line}: {code} {level or '-'}: {message}")
    print(f"{len(files)} different files")
    if given.table:
        print_table(count, modules)
        return
    for code, level in sorted(count):
        print(f"{code} {level or '-'}: {count[code, level]} in {modules[code, level]}")


if __name__ == "__main__":
    main()
