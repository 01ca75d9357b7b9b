"""Sweeps: one launch file run at every point of a grid of values."""

from __future__ import annotations

import csv
import io
import json
import re
import tomllib
from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from ptxtools.diagnostics import LaunchError, PtxError, Trap
from ptxtools.machine.options import DeviceOptions, Option, options_of
from ptxtools.records import dataclass, field

from .errors import SpecError, nearest
from .file import parse_launch_file
from .options import add_options
from .runner import run_job

if TYPE_CHECKING:
    from ptxtools.sim.loadable import Loadable

    from .job import Job

#: Points of a sweep, and values of one range.
_MOST_POINTS = 100_000
_RANGE = re.compile(r"(-?\d{1,12})\.\.(-?\d{1,12})(?:\.\.(\d{1,12}))?")

#: Options that a sweep changes and launch files do not have: engine, threads, seed, numerics, tier.
VARIED: dict[str, Option] = {
    one.name: one for one in options_of(DeviceOptions) if one.flag and not one.key and one.kind in ("whole", "word")
}


@dataclass(frozen=True, slots=True)
class Axis:
    """Values that a sweep gives to one or several keys of a launch file at the same time. Keys are written with dots:
    "block", "args.3", "buffers.x.random.seed"."""

    keys: tuple[str, ...]
    values: tuple[Any, ...]

    @property
    def name(self) -> str:
        return "+".join(self.keys)


@dataclass(slots=True)
class Task:
    """A point to run. data, path: content and name of the launch file; module: runs instead of the file's; options:
    of the command, as for `add_options`; point: a value for each axis."""

    data: bytes
    path: str
    module: str
    options: dict[str, Any]
    axes: tuple[Axis, ...]
    point: tuple[Any, ...]


@dataclass(slots=True)
class Outcome:
    """What a point gave. result: "passed", "failed" (an expectation), "refused" (the launch), "error" (in the input),
    or the kind of a trap; message: one line about it; summaries: of the buffers that were written, if the file expects
    and saves nothing."""

    point: tuple[Any, ...]
    result: str
    message: str = ""
    instructions: int = 0
    seconds: float = 0.0
    summaries: list[str] = field(default_factory=list)


# --- points -----------------------------------------------------------------------------------------------------------


def parse_axis(text: str) -> Axis:
    """`KEY[+KEY]=VALUE,VALUE`; values are TOML's, words without quotes, and ranges `0..9` or `0..64..8`, both ends
    included. Raises `SpecError`."""
    names, equals, rest = text.partition("=")
    keys = tuple(name.strip() for name in names.split("+"))
    if not equals or not all(keys) or not rest.strip():
        raise SpecError(f"'{text}' is not KEY=VALUE,VALUE")
    return Axis(keys, tuple(_values(rest.strip(), text)))


def _values(rest: str, text: str) -> list[Any]:
    found: list[Any] = []
    for word in _split(rest):
        match = _RANGE.fullmatch(word)
        if match:
            first, last, step = int(match[1]), int(match[2]), int(match[3] or 1)
            if step < 1 or last < first or (last - first) // step >= _MOST_POINTS:
                raise SpecError(f"'{word}' is not a range FIRST..LAST or FIRST..LAST..STEP of up to {_MOST_POINTS:,}")
            found += range(first, last + 1, step)
        elif word:
            found.append(_value(word, text))
        else:
            raise SpecError(f"'{text}' has an empty value")
    return found


def _split(rest: str) -> list[str]:
    """At commas outside brackets and quotation marks."""
    words, depth, quote = [""], 0, ""
    for sign in rest:
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        else:
            depth += (sign in "[{") - (sign in "]}")
        if sign == "," and depth == 0 and not quote:
            words.append("")
        else:
            words[-1] += sign
    return [word.strip() for word in words]


def _value(word: str, text: str) -> Any:
    """A value of TOML, or the word itself."""
    try:
        return tomllib.loads(f"x = {word}")["x"]
    except (ValueError, RecursionError):
        if word[0] in "[{\"'":
            raise SpecError(f"'{text}': {word} is no value of TOML") from None
        return word


def points(axes: Sequence[Axis]) -> list[tuple[Any, ...]]:
    """All combinations, the last axis changing fastest. Raises `SpecError`."""
    keys = [key for axis in axes for key in axis.keys]
    for number, key in enumerate(keys):
        if key in keys[:number]:
            raise SpecError(f"{key} is given twice")
    count = prod(len(axis.values) for axis in axes)
    if count > _MOST_POINTS:
        raise SpecError(f"a sweep has at most {_MOST_POINTS:,} points, not {count:,}")
    return list(product(*(axis.values for axis in axes)))


# --- one point --------------------------------------------------------------------------------------------------------


def job_of(task: Task) -> Job:
    """The job of a point. Raises `SpecError`."""
    pairs = [(key, value) for axis, value in zip(task.axes, task.point, strict=True) for key in axis.keys]
    options = dict(task.options)

    def edit(values: dict[str, Any]) -> None:
        for key, value in pairs:
            if key in VARIED:
                options[key] = checked(VARIED[key], value)
            else:
                _set(values, key, value, task.path)

    job = parse_launch_file(task.data, task.path, task.module, edit)
    add_options(job, options)
    return job


def checked(option: Option, value: Any) -> Any:
    """The value, if it is one for an option of `VARIED`. Raises `SpecError`."""
    whole = option.kind == "whole"
    if not isinstance(value, int if whole else str) or isinstance(value, bool):
        raise SpecError(f"{option.name} is {'a whole number' if whole else 'a word'}, not {value!r}")
    problem = option.problem(value)
    if problem:
        raise SpecError(f"{option.name}: {problem}")
    return value


def _set(values: Any, key: str, value: Any, path: str) -> None:
    """Set a key of a launch file; `{value=…}` of an argument by the argument's number, too."""
    *outer, last = key.split(".")
    for part in outer:
        values = _inside(values, part, key, path)
    if isinstance(values, list):
        there = _inside(values, last, key, path)
        if isinstance(there, dict) and not isinstance(value, dict):
            if "value" not in there:
                raise SpecError(f"{path}: {key} is no number: {there!r}; name the key inside it")
            there["value"] = value
            return
        values[int(last)] = value
    elif isinstance(values, dict):
        values[last] = value
    else:
        raise SpecError(f"{path}: {key}: there is no table around '{last}'")


def _inside(values: Any, part: str, key: str, path: str) -> Any:
    if isinstance(values, list):
        if not (part.isascii() and part.isdigit() and len(part) < 10) or int(part) >= len(values):
            raise SpecError(f"{path}: {key}: '{part}' is not a position in a list of {len(values)}")
        return values[int(part)]
    if not isinstance(values, dict) or part not in values:
        known = list(values) if isinstance(values, dict) else []
        raise SpecError(f"{path}: {key}: there is no '{part}'{nearest(part, known)}")
    return values[part]


def run_point(task: Task, load: Callable[[str, str | None], Loadable]) -> Outcome:
    """Run a point; whatever is wrong with it is its outcome. load: the module of a path, for a target if it is NVVM."""
    try:
        job = job_of(task)
        report = run_job(job, lambda path: load(path, job.device.target))
    except Trap as trap:
        return Outcome(task.point, trap.kind.value, _line(trap))
    except LaunchError as error:
        return Outcome(task.point, "refused", _line(error))
    except (SpecError, PtxError) as error:
        return Outcome(task.point, "error", _line(error))
    return Outcome(
        task.point,
        "passed" if report.passed else "failed",
        report.failures[0][0] if report.failures else "",
        sum(result.instructions for result in report.results),
        sum(result.seconds for result in report.results),
        report.summaries,
    )


def _line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


# --- results ----------------------------------------------------------------------------------------------------------


def as_csv(axes: Sequence[Axis], outcomes: Sequence[Outcome]) -> str:
    """One line a point: its values, then result, instructions, seconds, message."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*(axis.name for axis in axes), "result", "instructions", "seconds", "message"])
    for one in outcomes:
        writer.writerow([*map(shown_value, one.point), one.result, one.instructions, f"{one.seconds:.6f}", one.message])
    return out.getvalue()


def as_json(axes: Sequence[Axis], outcomes: Sequence[Outcome]) -> str:
    """An object with `points`: values by key, result, message, instructions, seconds, summaries."""
    rows = [
        {
            "values": {key: value for axis, value in zip(axes, one.point, strict=True) for key in axis.keys},
            "result": one.result, "message": one.message, "instructions": one.instructions, "seconds": one.seconds,
            "summaries": one.summaries,
        }
        for one in outcomes
    ]  # fmt: skip
    return '{"points": [\n ' + ",\n ".join(json.dumps(row, default=str) for row in rows) + "\n]}\n"


def shown_value(value: Any) -> str:
    """A value for a table: words as they are, lists and tables as JSON."""
    return value if isinstance(value, str) else json.dumps(value, default=str)
