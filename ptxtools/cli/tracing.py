"""The options of `ptx-run --trace`, and where the trace goes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .common import STDIN, Failure

if TYPE_CHECKING:
    from ptxtools.observe.selection import Selection
    from ptxtools.observe.trace import Trace

T = TypeVar("T")

_OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("--trace", {"metavar": "FILE", "help": "Write what lanes execute, with their registers; - for standard output. "
                 "JSON lines if FILE ends in .json or .jsonl."}),
    ("--trace-cta", {"metavar": "X[,Y[,Z]]", "multiple": True, "help": "Trace only this CTA; may be repeated."}),
    ("--trace-warp", {"metavar": "N[-M]", "multiple": True, "help": "Only this warp of the CTAs."}),
    ("--trace-lane", {"metavar": "N[-M]", "multiple": True, "help": "Only this lane of the warps."}),
    ("--trace-line", {"metavar": "N[-M]", "multiple": True, "help": "Only this line of the PTX."}),
    ("--trace-opcode", {"metavar": "PREFIX", "multiple": True, "help": "Only opcodes that begin so: ld.global."}),
    ("--trace-register", {"metavar": "NAME", "multiple": True, "help": "Only instructions with this register."}),
    ("--trace-from", {"metavar": "WHEN", "help": "Begin when a warp comes to a line, opcode:PREFIX or function:NAME."}),
    ("--trace-to", {"metavar": "WHEN", "help": "End behind a line or opcode:PREFIX."}),
    ("--trace-last", {"metavar": "N", "type": click.IntRange(1), "help": "Only the last N events of each grid."}),
)  # fmt: skip


def trace_options(command: Any) -> Any:
    """Add the options to a command."""
    for flag, how in reversed(_OPTIONS):
        command = click.option(flag, **how)(command)
    return command


def traced(options: dict[str, Any], run: Callable[[Trace | None], T]) -> T:
    """Run with the trace that the options ask for. It is written whole, also of a run that traps or is interrupted."""
    path = options["trace"]
    if path is None:
        given = next((flag for flag, _ in _OPTIONS if options[flag.strip("-").replace("-", "_")]), None)
        if given is not None:
            raise click.UsageError(f"{given} requires --trace")
        return run(None)
    from ptxtools.files.writing import reason, write_whole
    from ptxtools.observe.trace import Trace
    from ptxtools.observe.tracelines import as_json, as_text

    form = as_json if path.endswith((".json", ".jsonl")) else as_text
    select, begin, end = _selection(options), _moment("--trace-from", options), _moment("--trace-to", options)
    if end is not None and end.function:
        raise click.BadParameter("function:NAME can only begin a trace", param_hint="--trace-to")
    results: list[T] = []
    failures: list[BaseException] = []

    def into(write: Callable[[bytes], object]) -> None:
        trace = Trace(
            lambda record: write(form(record).encode("utf-8", "surrogateescape")),
            select, begin=begin, end=end, last=options["trace_last"],
        )  # fmt: skip
        try:
            results.append(run(trace))
        except BaseException as failure:  # raised again below: what led to it is in the trace
            failures.append(failure)
        trace.flush()

    if path == STDIN:
        into(sys.stdout.buffer.write)
        sys.stdout.flush()
    else:
        try:
            write_whole(path, lambda file: into(file.write))
        except OSError as error:
            raise Failure(f"cannot write {path}: {reason(error)}") from None
    if failures:
        raise failures[0]
    return results[0]


def _moment(flag: str, options: dict[str, Any]) -> Any:
    from ptxtools.observe.selection import Moment

    text = options[flag.strip("-").replace("-", "_")]
    try:
        return None if text is None else Moment.parse(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=flag) from None


def _selection(options: dict[str, Any]) -> Selection:
    from ptxtools.observe.selection import Selection

    return Selection(
        ctas=frozenset(_place(text) for text in options["trace_cta"]),
        warps=_all("--trace-warp", options["trace_warp"], 31),
        lanes=_all("--trace-lane", options["trace_lane"], 31),
        lines=tuple(_range("--trace-line", text) for text in options["trace_line"]),
        opcodes=tuple(options["trace_opcode"]),
        registers=frozenset(options["trace_register"]),
    )


def _all(flag: str, texts: tuple[str, ...], most: int) -> frozenset[int]:
    ranges = [_range(flag, text) for text in texts]
    if any(last > most for _, last in ranges):
        raise click.BadParameter(f"numbers go up to {most}", param_hint=flag)
    return frozenset(number for first, last in ranges for number in range(first, last + 1))


def _range(flag: str, text: str) -> tuple[int, int]:
    first, dash, last = text.partition("-")
    last = last if dash else first
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in (first, last)):
        raise click.BadParameter(f"'{text}' is neither N nor N-M", param_hint=flag)
    if int(first) > int(last):
        raise click.BadParameter(f"{text}: the first is behind the last", param_hint=flag)
    return int(first), int(last)


def _place(text: str) -> tuple[int, int, int]:
    parts = text.split(",")
    if len(parts) > 3 or not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise click.BadParameter(f"'{text}' is no X[,Y[,Z]]", param_hint="--trace-cta")
    x, y, z = (*map(int, parts), 0, 0)[:3]
    return x, y, z
