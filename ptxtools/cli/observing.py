"""Options of `ptx-run` that watch a run and write what they saw to files: `--coverage`, `--profile`,
`--estimate`, `--timeline`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click

from .common import STDIN, Failure, read_input

if TYPE_CHECKING:
    from ptxtools.observe.coverage import Coverage
    from ptxtools.observe.estimate import Estimate
    from ptxtools.observe.profile import Profile

T = TypeVar("T")
#: Writes what an observer saw.
Write = Callable[[], None]
#: How names of estimates and of profiles end.
_ESTIMATES = (".txt", ".json")
_PROFILES = (".html", ".htm", ".json", ".txt")
#: Bytes of a source file that is shown beside the PTX.
_MOST_SOURCE = 4 << 20

_OPTIONS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("--coverage", "coverage", {
        "metavar": "FILE", "multiple": True,
        "help": "Write which lines, branches and lanes were executed: LCOV; JSON if FILE ends in .json; annotated PTX "
        "if it ends in .txt or is - for standard output. May be repeated."}),
    ("--coverage-from", "coverage_from", {
        "metavar": "FILE.json", "multiple": True, "help": "Add the coverage of an earlier run, written as JSON."}),
    ("--profile", "profile", {
        "metavar": "[FILE]", "multiple": True, "is_flag": False, "flag_value": STDIN,
        "help": "Count instructions, divergence, sectors, bank conflicts and registers by line: a table on standard "
        "output, or in FILE: .html, .json, .txt. May be repeated."}),
    ("--estimate", "estimate", {
        "metavar": "[FILE]", "multiple": True, "is_flag": False, "flag_value": STDIN,
        "help": "Estimate the time on the chip with a first-order model, and what bounds it: text on standard output, "
        "or in FILE: .txt, .json. May be repeated."}),
    ("--timeline", "timeline", {
        "metavar": "FILE.json", "help": "Write when warps run, wait and issue asynchronous work, for Perfetto; - for "
        "standard output."}),
    ("--timeline-events", "timeline_events", {
        "metavar": "N", "type": click.IntRange(min=1), "help": "The most events of a grid in a timeline; further "
        "ones are left out and counted (8192)."}),
    ("--profile-compare", "profile_compare", {
        "metavar": "A.json B.json", "nargs": 2, "help": "Show what differs between two profiles; runs nothing."}),
)  # fmt: skip


def watching_options(command: Any) -> Any:
    """Add the options to a command."""
    for flag, name, how in reversed(_OPTIONS):
        command = click.option(flag, name, **how)(command)
    return command


def watched(options: dict[str, Any], run: Callable[[list[object]], T]) -> T:
    """Run with the observers that the options ask for. What they saw is written also if the run traps or is
    interrupted."""
    observers: list[object] = []
    writes: list[Write] = []
    for begin in (_coverage, _profile, _estimate, _timeline):
        begin(options, observers, writes)
    try:
        return run(observers)
    finally:
        for write in writes:
            write()


def _coverage(options: dict[str, Any], observers: list[object], writes: list[Write]) -> None:
    paths, earlier = options["coverage"], options["coverage_from"]
    if not paths:
        if earlier:
            raise click.UsageError("--coverage-from requires --coverage")
        return
    from ptxtools.observe.coverage import Coverage
    from ptxtools.observe.coverage_files import CoverageError, add_json

    coverage = Coverage()
    for path in earlier:
        try:
            add_json(coverage, read_input(path))
        except CoverageError as error:
            raise Failure(f"{path}: {error}") from None
    observers.append(coverage)
    writes.extend(_writer(coverage, path, options["quiet"]) for path in paths)


def _writer(coverage: Coverage, path: str, quiet: bool) -> Write:
    from ptxtools.observe import coverage_files as forms

    form = forms.as_lcov
    if path == STDIN or path.endswith(".txt"):
        form = forms.as_text
    elif path.endswith(".json"):
        form = forms.as_json

    def write() -> None:
        write_text(path, form(coverage))
        if path != STDIN and not quiet:
            sys.stderr.write(f"ptx-run: {path}: {coverage}\n")

    return write


# --- profiles ---------------------------------------------------------------------------------------------------------


def _profile(options: dict[str, Any], observers: list[object], writes: list[Write]) -> None:
    if not options["profile"]:
        return
    from ptxtools.observe.profile import Profile

    for path in options["profile"]:  # not the module, which may have been meant
        if path != STDIN and not path.endswith(_PROFILES):
            reason = f"'{path}': FILE ends in {', '.join(_PROFILES[:-1])} or {_PROFILES[-1]}; - is standard output"
            raise click.BadParameter(reason, param_hint="--profile")
    profile = Profile()
    observers.append(profile)
    writes.extend(partial(_write_profile, profile, observers, path) for path in options["profile"])


def _write_profile(profile: Profile, observers: list[object], path: str) -> None:
    if path.endswith(".json"):
        from ptxtools.observe.profile_figures import as_json

        write_text(path, as_json(profile))
    elif path.endswith(_PROFILES[:2]):
        from ptxtools.observe.estimate import Estimate
        from ptxtools.observe.profile_html import as_html

        estimate = next((one for one in observers if isinstance(one, Estimate)), None)
        write_text(path, as_html(profile, _source_lines, estimate))
    else:
        from .profiling import table

        write_text(path, table(profile))


def _source_lines(name: str) -> list[str] | None:
    """The lines of a source file that a module names, if it is there and of a sensible size."""
    from ptxtools.files.reading import read_all

    try:
        if not os.path.isfile(name) or os.path.getsize(name) > _MOST_SOURCE:
            return None
        with open(name, "rb") as file:
            return read_all(file).decode("utf-8", "replace").splitlines()
    except (OSError, ValueError):
        return None


def compare_profiles(paths: tuple[str, str]) -> None:
    """Print what differs. Raises `Failure`."""
    from ptxtools.observe.profile_figures import ProfileError, read_json

    from .profiling import comparison

    found = []
    for path in paths:
        try:
            found.append(read_json(read_input(path)))
        except ProfileError as error:
            raise Failure(f"{path}: {error}") from None
    write_text(STDIN, comparison(*found))


# --- estimates --------------------------------------------------------------------------------------------------------


def _estimate(options: dict[str, Any], observers: list[object], writes: list[Write]) -> None:
    if not options["estimate"]:
        return
    from ptxtools.observe.estimate import Estimate

    for path in options["estimate"]:
        if path != STDIN and not path.endswith(_ESTIMATES):
            reason = f"'{path}': FILE ends in {' or '.join(_ESTIMATES)}; - is standard output"
            raise click.BadParameter(reason, param_hint="--estimate")
    estimate = Estimate()
    observers.append(estimate)
    writes.extend(partial(_write_estimate, estimate, path) for path in options["estimate"])


def _write_estimate(estimate: Estimate, path: str) -> None:
    if path.endswith(".json"):
        from ptxtools.observe.estimate import as_json

        write_text(path, as_json(estimate))
    else:
        from .estimating import table

        write_text(path, table(estimate))


# --- timelines --------------------------------------------------------------------------------------------------------


def _timeline(options: dict[str, Any], observers: list[object], writes: list[Write]) -> None:
    path, most = options["timeline"], options["timeline_events"]
    if path is None:
        if most is not None:
            raise click.UsageError("--timeline-events requires --timeline")
        return
    from shutil import copyfileobj
    from tempfile import TemporaryFile

    from ptxtools.observe.timeline import MOST, Timeline

    kept = TemporaryFile()  # noqa: SIM115 - until it has been copied; the run is too long to keep it in memory
    timeline = Timeline(lambda text: kept.write(text.encode("utf-8", "surrogateescape")), most or MOST)
    observers.append(timeline)

    def write() -> None:
        with kept:
            timeline.close()
            kept.seek(0)
            write_with(path, lambda file: copyfileobj(kept, file))
        for kernel, count in timeline.left_out.items():
            more = f"{count:,} events of {kernel} are left out; --timeline-events N keeps up to N of a grid"
            sys.stderr.write(f"ptx-run: {path}: {more}\n")

    writes.append(write)


# --- files ------------------------------------------------------------------------------------------------------------


def write_text(path: str, text: str) -> None:
    """Write a file whole; - is standard output. Raises `Failure`."""
    write_with(path, lambda file: file.write(text.encode("utf-8", "surrogateescape")))


def write_with(path: str, write: Callable[[IO[bytes]], object]) -> None:
    """The same, by a function that gets the open file."""
    from ptxtools.files.writing import reason, write_whole

    if path == STDIN:
        sys.stdout.flush()
        write(sys.stdout.buffer)
        sys.stdout.flush()
        return
    try:
        write_whole(path, write)
    except OSError as error:
        raise Failure(f"cannot write {path}: {reason(error)}") from None
