"""Coverage as files: LCOV, annotated PTX, and JSON, which can be read again and added to."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from ptxtools.records import astuple

from .coverage import Coverage, CoveredFile, Instruction, Ways

FORMAT = "ptxtools coverage 1"


class CoverageError(ValueError):
    """A file that cannot be added: why."""


# --- LCOV -------------------------------------------------------------------------------------------------------------


def as_lcov(coverage: Coverage) -> str:
    """Records for genhtml and its kin: of the PTX, and of the sources that it was generated from. Hits of lines and
    functions are executions by warps; those of branches, one for each guard, are threads: 0 the guard held, 1 it did
    not."""
    out: list[str] = []
    for file in coverage.files.values():
        out += ["TN:", f"SF:{file.name}"]
        functions = file.functions()
        out += [f"FN:{instructions[0].line},{name}" for name, instructions in functions.items()]
        out += [f"FNDA:{instructions[0].warps},{name}" for name, instructions in functions.items()]
        out += [f"FNF:{len(functions)}", f"FNH:{sum(some[0].warps > 0 for some in functions.values())}"]
        lines = file.lines()
        out += _branches(lines)
        out += _hits({line: max(i.warps for i in row) for line, row in lines.items()})
    for name, hits in _sources(coverage).items():
        out += ["TN:", f"SF:{name}", *_hits(hits)]
    return "".join(f"{line}\n" for line in out)


def _branches(lines: dict[int, list[Instruction]]) -> Iterator[str]:
    ways = []
    for line, row in lines.items():
        for block, i in enumerate(i for i in row if i.guard is not None):
            for way, hits in enumerate((i.taken, i.lanes - i.taken)):
                ways.append(hits)
                yield f"BRDA:{line},{block},{way},{hits if i.warps else '-'}"
    yield f"BRF:{len(ways)}"
    yield f"BRH:{sum(hits > 0 for hits in ways)}"


def _hits(hits: dict[int, int]) -> list[str]:
    rows = [f"DA:{line},{count}" for line, count in hits.items()]
    return [*rows, f"LF:{len(hits)}", f"LH:{sum(count > 0 for count in hits.values())}", "end_of_record"]


def _sources(coverage: Coverage) -> dict[str, dict[int, int]]:
    """For each source file that the PTX names, the hits of its lines: the most of their instructions."""
    found: dict[str, dict[int, int]] = {}
    for i in coverage.instructions():
        if i.source is not None:
            hits = found.setdefault(i.source[0], {})
            hits[i.source[1]] = max(hits.get(i.source[1], 0), i.warps)
    return {name: dict(sorted(hits.items())) for name, hits in found.items()}


# --- annotated PTX ----------------------------------------------------------------------------------------------------


def as_text(coverage: Coverage) -> str:
    """The PTX with executions by warps and threads before each line, and what guards decided behind it."""
    return "".join(f"{line}\n" for file in coverage.files.values() for line in _annotated(file)) + f"{coverage}\n"


def _annotated(file: CoveredFile) -> Iterator[str]:
    lines = file.lines()
    yield file.name
    yield f"{'warps':>10} {'threads':>12}"
    texts = dict(enumerate(file.text, 1)) or {line: "; ".join(i.text for i in row) for line, row in lines.items()}
    for number, text in texts.items():
        row = lines.get(number, [])
        if not row:
            yield f"{'':>23} {number:>6} | {text}".rstrip()
            continue
        warps, lanes = max(i.warps for i in row), max(i.lanes for i in row)
        notes = "; ".join(_note(i) for i in row if i.guard is not None)
        mark = "" if warps else "  // never executed"
        yield f"{warps:>10} {lanes:>12} {number:>6} | {text}{mark}" + (f"  // {notes}" if notes and warps else "")


def _note(i: Instruction) -> str:
    assert i.guard is not None
    ways = f"guard held for {i.taken} of {i.lanes}"
    if i.mixed:
        return f"{ways}, mixed {i.mixed} times"
    return f"{ways}, never mixed"


# --- JSON -------------------------------------------------------------------------------------------------------------


def as_json(coverage: Coverage) -> str:
    """Everything, for `add_json`."""
    files = [
        {"name": file.name, "text": file.text, "instructions": [
            {"start": start, "line": i.line, "text": i.text, "function": i.function, "warps": i.warps,
             "threads": i.lanes, "guard": None if i.guard is None else list(astuple(i.guard)), "source": i.source}
            for start, i in file.instructions.items()]}
        for file in coverage.files.values()
    ]  # fmt: skip
    return json.dumps({"format": FORMAT, "files": files}) + "\n"


def add_json(coverage: Coverage, data: bytes) -> None:
    """Add the counts of an earlier run. Raises CoverageError if that is no such file, or of another text."""
    try:
        content = json.loads(data)
        if content["format"] != FORMAT:
            raise CoverageError(f"the format is {content['format']!r}, not {FORMAT!r}")
        files = [_file(entry) for entry in content["files"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        if isinstance(error, CoverageError):
            raise
        raise CoverageError("this is no coverage written as JSON") from None
    for file in files:
        known = coverage.files.setdefault(file.name, file)
        if known is not file:
            _add(known, file)


def _file(entry: dict[str, Any]) -> CoveredFile:
    file = CoveredFile(str(entry["name"]), [str(line) for line in entry["text"]])
    for row in entry["instructions"]:
        guard, source = row["guard"], row["source"]
        file.instructions[int(row["start"])] = Instruction(
            file.name, int(row["line"]), str(row["text"]), str(row["function"]), _count(row["warps"]),
            _count(row["threads"]), None if guard is None else Ways(*_three(guard)),
            None if source is None else (str(source[0]), int(source[1])),
        )  # fmt: skip
    return file


def _count(number: Any) -> int:
    if not isinstance(number, int) or number < 0:
        raise TypeError
    return number


def _three(numbers: Iterable[Any]) -> tuple[int, int, int]:
    some, lanes, whole = map(_count, numbers)
    return some, lanes, whole


def _add(known: CoveredFile, more: CoveredFile) -> None:
    same = known.text == more.text and known.instructions.keys() == more.instructions.keys()
    if not same or any(i.text != more.instructions[start].text for start, i in known.instructions.items()):
        raise CoverageError(f"{known.name} has changed since then")
    for start, i in known.instructions.items():
        other = more.instructions[start]
        i.warps += other.warps
        i.lanes += other.lanes
        if i.guard is not None and other.guard is not None:
            i.guard.some += other.guard.some
            i.guard.lanes += other.guard.lanes
            i.guard.whole += other.guard.whole
