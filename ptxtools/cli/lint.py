"""ptx-lint: find what is wrong, hazardous, not portable or slow in PTX."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import click

from ptxtools.diagnostics import Diagnostic, PtxError, Severity
from ptxtools.diagnostics.colour import Style, style_for

from .common import (
    CONTEXT_SETTINGS,
    FINDINGS,
    OK,
    STDIN,
    STDIN_NAME,
    USAGE,
    Failure,
    common_options,
    examples,
    input_names,
    progress,
    read_input,
    run_command,
    tool_version,
    write_output,
)

if TYPE_CHECKING:
    from ptxtools.ir import Module
    from ptxtools.lint.config import Config
    from ptxtools.lint.requirements import Requirements

_EXAMPLES = examples(
    "ptx-lint kernel.ptx",
    "nvcc -ptx -o - kernel.cu | ptx-lint --stdin-filename kernel.ptx",
    "ptx-lint --target sm_75 --target sm_90a build/*.ptx",
    "ptx-lint --requirements kernel.ptx        # lowest .version and .target",
    "ptx-lint --format sarif kernel.ptx > findings.sarif",
    "ptx-lint --select PTX1,PTX2 --strict kernel.ptx",
    "ptx-lint --explain PTX301",
)
_FORMATS = ("text", "json", "sarif", "github")
#: From this many files on, worker processes pay.
_PARALLEL_FROM = 16


class _Settings(NamedTuple):
    """What a worker must know to lint one file."""

    targets: tuple[str, ...] = ()
    version: tuple[int, int] | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    stdin_name: str = STDIN_NAME


class _Report(NamedTuple):
    """What was found in one file; `failure` says why it could not be read."""

    name: str
    findings: list[Diagnostic]
    failure: str = ""
    seconds: float = 0.0


@click.command(name="ptx-lint", context_settings=CONTEXT_SETTINGS, epilog=_EXAMPLES,
               short_help="Find mistakes in PTX.")  # fmt: skip
@click.argument("files", nargs=-1, metavar="[FILES]...")
@click.option("--format", "format_", type=click.Choice(_FORMATS), help="How findings are written; default: text.")
@click.option("--target", "targets", metavar="TARGET", multiple=True,
              help="Check as if the module declared this target; may be repeated.")  # fmt: skip
@click.option("--ptx-version", metavar="X.Y", help="Check as if the module declared this version.")
@click.option("--stdin-filename", metavar="NAME", help="The name of standard input in findings.")
@click.option("--select", metavar="CODES", multiple=True, help="Report only these codes; prefixes count: PTX1,PTX203.")
@click.option("--ignore", metavar="CODES", multiple=True, help="Do not report these codes; prefixes count.")
@click.option("--strict", is_flag=True, default=None, help="Warnings count as findings for the exit status.")
@click.option("--exit-zero", is_flag=True, default=None, help="Exit with 0 whatever is found.")
@click.option("--fix", is_flag=True, help="Apply safe fixes to the files.")
@click.option("--diff", is_flag=True, help="Show what --fix would change, and change nothing.")
@click.option("--requirements", is_flag=True, help="Print the lowest .version and targets that accept each file.")
@click.option("--statistics", is_flag=True, help="Print counts per code instead of findings.")
@click.option("--explain", metavar="CODE", help="Print the page of a code, and exit.")
@click.option("--config", metavar="FILE", help="Settings; default: [tool.ptx-lint] of the nearest pyproject.toml.")
@click.option("-j", "--jobs", metavar="N", type=click.IntRange(1), help="Files checked at a time.")
@common_options
def command(**options: Any) -> int:
    """Find what is wrong, hazardous, not portable or slow in PTX.

    FILES are PTX text, containers, or binaries that embed PTX; - is standard input. The exit status is 1 when a file
    has an error (with --strict: any finding), 2 when one cannot be read.
    """
    if options["explain"] is not None:
        return _explain(options["explain"], options)
    names = input_names(options["files"])
    config = _config(options["config"])
    settings = _settings(options, config)
    if options["requirements"]:
        return _print_requirements(names, settings, options["format_"] or config.format or "text")
    if options["fix"] or options["diff"]:
        unfixed: list[Diagnostic] = []
        names = _fix(names, settings, unfixed, write=options["fix"] and not options["diff"])
        if options["diff"] and not options["fix"]:
            return FINDINGS if names else OK
        if unfixed:
            from .common import print_diagnostics

            print_diagnostics(unfixed, style_for(options["color"], sys.stderr), sys.stderr)
        status = _status(unfixed, options, config)
        if not names:
            return status
    else:
        status = OK
    reports = _lint_all(names, settings, options)
    return max(status, _print_reports(reports, options, config))


def main() -> NoReturn:
    """The console script."""
    run_command(command, "ptx-lint")


# --- settings ---------------------------------------------------------------------------------------------------------


def _config(path: str | None) -> Config:
    """The settings in a file, or in the nearest `pyproject.toml` that has our section."""
    from ptxtools.lint.config import NO_SETTINGS, ConfigError, find_config, read_config

    found = path or find_config(os.getcwd())
    try:
        return read_config(found) if found else NO_SETTINGS
    except ConfigError as error:
        raise Failure(str(error)) from None


def _settings(options: dict[str, Any], config: Config) -> _Settings:
    version = options["ptx_version"] or config.ptx_version
    return _Settings(
        tuple(_target(name) for name in dict.fromkeys(options["targets"] or config.target)),
        _version(version) if version else None,
        _codes(options["select"]) or config.select,
        _codes(options["ignore"]) or config.ignore,
        options["stdin_filename"] or STDIN_NAME,
    )


def _target(name: str) -> str:
    from ptxtools.isa.targets import FIRST_VERSION

    if name not in FIRST_VERSION:
        from difflib import get_close_matches

        near = get_close_matches(name, FIRST_VERSION, 3)
        hint = f" (did you mean {', '.join(near)}?)" if near else ""
        raise click.UsageError(f"unknown target '{name}'{hint}")
    return name


def _version(text: str) -> tuple[int, int]:
    from ptxtools.isa.targets import NEWEST, VERSIONS, version_text

    try:
        major, minor = (int(part) for part in text.split("."))
    except ValueError:
        raise click.UsageError(f"--ptx-version takes a version such as 8.0, found '{text}'") from None
    if (major, minor) not in VERSIONS:
        raise click.UsageError(f"unknown PTX version '{text}'; the newest known one is {version_text(NEWEST)}")
    return major, minor


def _codes(values: Sequence[str]) -> tuple[str, ...]:
    """Codes from comma-separated options. An unknown prefix is a usage error."""
    codes = tuple(word.strip().upper() for value in values for word in value.split(",") if word.strip())
    if codes:
        from .pages import all_pages

        known = all_pages()
        for code in codes:
            if not any(k.startswith(code) for k in known):
                raise click.UsageError(f"no rule has the code '{code}'")
    return codes


# --- checking ---------------------------------------------------------------------------------------------------------


def _lint_all(names: Sequence[str], settings: _Settings, options: dict[str, Any]) -> list[_Report]:
    jobs = options["jobs"] or (os.cpu_count() or 1 if len(names) >= _PARALLEL_FROM else 1)
    jobs = min(jobs, len(names))
    reports: list[_Report] = []
    with progress("checking", len(names), options["quiet"]) as step:
        for report in _reports(names, settings, jobs):
            reports.append(report)
            step()
            if options["verbose"]:
                sys.stderr.write(f"{report.name}: {len(report.findings)} findings in {report.seconds:.3f} s\n")
    return reports


def _reports(names: Sequence[str], settings: _Settings, jobs: int) -> Iterable[_Report]:
    if jobs < 2 or STDIN in names:
        return (_report(name, settings) for name in names)
    return _parallel(names, settings, jobs)


def _parallel(names: Sequence[str], settings: _Settings, jobs: int) -> Iterable[_Report]:
    from concurrent.futures import ProcessPoolExecutor
    from itertools import repeat

    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(_report, names, repeat(settings), chunksize=max(1, len(names) // (4 * jobs)))


def _report(name: str, settings: _Settings) -> _Report:
    """Lint one file. Runs in a worker process, too."""
    shown = settings.stdin_name if name == STDIN else name
    started = time.perf_counter()
    try:
        data = read_input(name)
    except Failure as error:
        return _Report(shown, [], error.message)
    findings = lint_data(data, shown, settings)
    return _Report(shown, findings, "", time.perf_counter() - started)


def lint_data(data: bytes, name: str, settings: _Settings) -> list[Diagnostic]:
    """The findings in the bytes of one file."""
    findings: list[Diagnostic] = []
    try:
        for module, syntax in _modules(data, name):
            findings += _lint_module(module, syntax, settings)
    except PtxError as error:
        findings += error.diagnostics
    return findings


def _modules(data: bytes, name: str) -> list[tuple[Module, list[Diagnostic]]]:
    """The modules in a file, each with what is wrong with its syntax. Raises PtxError."""
    from ptxtools.diagnostics.decode import decode
    from ptxtools.syntax import parse

    if not data.startswith((b"\x7fELF", b"\x50\xed\x55\xba")):
        result = parse(decode(data, name), name)
        return [(result.module, result.diagnostics)]
    from ptxtools.container import detect

    if detect(data) == "ptxo":
        from ptxtools.api import canonical
        from ptxtools.container import read

        return [(canonical(read(data, name)), [])]
    from ptxtools.container import embedded

    found = []
    for entry in embedded(data, name):
        inner = f"{name}({entry.target})" if entry.target else name
        result = parse(decode(entry.text, inner), inner)
        found.append((result.module, result.diagnostics))
    return found


def _lint_module(module: Module, syntax: list[Diagnostic], settings: _Settings) -> list[Diagnostic]:
    from ptxtools.lint import chosen, lint_targets, suppressed, without_echoes

    found = lint_targets(module, settings.targets, settings.version)
    findings = [*syntax, *without_echoes(found, syntax)]
    findings = suppressed(chosen(findings, settings.select, settings.ignore), module.source)
    return sorted(findings, key=lambda d: (d.span, d.code, d.target or ""))


# --- fixes ------------------------------------------------------------------------------------------------------------


def _fix(names: Sequence[str], settings: _Settings, unfixed: list[Diagnostic], *, write: bool) -> list[str]:
    """Apply or show the fixes of each file; the names of those that are left to report (with `--diff`: changed).

    Fixed standard input goes to standard output; what is still wrong in it is added to `unfixed`.
    """
    from ptxtools.diagnostics.decode import decode
    from ptxtools.lint.fixes import apply_fixes, unified_diff

    left: list[str] = []
    for name in names:
        data = read_input(name)
        shown = settings.stdin_name if name == STDIN else name
        try:
            text = decode(data, shown)
        except PtxError:
            left.append(name)
            continue
        changed, count = apply_fixes(text, lint_data(data, shown, settings))
        if not write:
            if count:
                sys.stdout.write(unified_diff(text, changed, shown))
                left.append(name)
            continue
        if name == STDIN:
            sys.stdout.write(changed)
            unfixed += lint_data(changed.encode() if count else data, shown, settings)
            continue
        if count:
            write_output(name, changed.encode())
            sys.stderr.write(f"{name}: {count} {'fix' if count == 1 else 'fixes'} applied\n")
        left.append(name)
    return left


# --- output -----------------------------------------------------------------------------------------------------------


def _print_reports(reports: list[_Report], options: dict[str, Any], config: Config) -> int:
    findings = [finding for report in reports for finding in report.findings]
    style = style_for(options["color"], sys.stdout)
    format_ = options["format_"] or config.format or "text"
    if format_ not in _FORMATS:
        raise Failure(f"unknown format '{format_}' in the settings")
    if options["statistics"]:
        sys.stdout.write(_statistics(findings, format_))
    else:
        _PRINTERS[format_](findings, style)
        if format_ == "text" and findings and not options["quiet"]:
            sys.stdout.write(_summary(findings, style))
    failures = [report.failure for report in reports if report.failure]
    for failure in failures:
        sys.stderr.write(f"ptx-lint: error: {failure}\n")
    if failures:
        return USAGE
    return _status(findings, options, config)


def _status(findings: list[Diagnostic], options: dict[str, Any], config: Config) -> int:
    """The exit status that these findings call for."""
    strict = config.strict if options["strict"] is None else options["strict"]
    counting = [f for f in findings if strict or f.severity is Severity.ERROR]
    exit_zero = config.exit_zero if options["exit_zero"] is None else options["exit_zero"]
    return FINDINGS if counting and not exit_zero else OK


def _print_text(findings: list[Diagnostic], style: Style) -> None:
    from ptxtools.diagnostics.text import render

    sys.stdout.write("".join(f"{render(finding, style)}\n" for finding in findings))


def _print_json(findings: list[Diagnostic], _: Style) -> None:
    from ptxtools.diagnostics.formats import to_json

    sys.stdout.write(to_json(findings) + "\n")


def _print_github(findings: list[Diagnostic], _: Style) -> None:
    from ptxtools.diagnostics.formats import to_github

    sys.stdout.write(to_github(findings) + "\n" if findings else "")


def _print_sarif(findings: list[Diagnostic], _: Style) -> None:
    from ptxtools.diagnostics.formats import to_sarif

    from .pages import describe

    sys.stdout.write(to_sarif(findings, describe, tool_version()) + "\n")


_PRINTERS: dict[str, Callable[[list[Diagnostic], Style], None]] = {
    "text": _print_text,
    "json": _print_json,
    "github": _print_github,
    "sarif": _print_sarif,
}


def _summary(findings: list[Diagnostic], style: Style) -> str:
    errors = sum(finding.severity is Severity.ERROR for finding in findings)
    warnings = len(findings) - errors
    counts = [f"{n} {word}{'' if n == 1 else 's'}" for n, word in ((errors, "error"), (warnings, "warning")) if n]
    files = len({finding.file for finding in findings})
    text = f"Found {' and '.join(counts)} in {files} file{'' if files == 1 else 's'}."
    return f"{style.paint(text, 'bold')}\n"


def _statistics(findings: list[Diagnostic], format_: str) -> str:
    from collections import Counter

    from .pages import describe

    counts = Counter(finding.code for finding in findings).most_common()
    if format_ == "json":
        import json

        rows = [{"code": code, "count": count, "title": describe(code)[0]} for code, count in counts]
        return json.dumps(rows, indent=1) + "\n"
    return "".join(f"{count:>7}  {code}  {describe(code)[0]}\n" for code, count in counts)


def _print_requirements(names: Sequence[str], settings: _Settings, format_: str) -> int:
    """`--requirements`: one line, or one JSON object, for each file. A file with errors has none."""
    from ptxtools.lint.requirements import requirements

    found: list[Requirements] = []
    status = OK
    for name in names:
        shown = settings.stdin_name if name == STDIN else name
        data = read_input(name)
        errors = [d for d in lint_data(data, shown, _Settings()) if d.severity is Severity.ERROR]
        errors = [d for d in errors if not d.code.startswith("PTX3")]  # a version or target is what is asked for
        if errors:
            from .common import print_diagnostics

            print_diagnostics(errors, style_for("auto", sys.stderr), sys.stderr)
            status = FINDINGS
            continue
        found += [requirements(module, module.source.name if module.source else shown)
                  for module, _ in _modules(data, shown)]  # fmt: skip
    if format_ == "json":
        import json

        sys.stdout.write("".join(json.dumps(item.to_json()) + "\n" for item in found))
    else:
        sys.stdout.write("".join(f"{item.to_text()}\n" for item in found))
    return status


def _explain(code: str, options: dict[str, Any]) -> int:
    from ptxtools.lint.explain import page

    from .pages import all_pages

    found = page(code.upper(), all_pages())
    if found is None:
        from difflib import get_close_matches

        near = get_close_matches(code.upper(), all_pages(), 3)
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        raise click.UsageError(f"no rule has the code '{code}'{hint}")
    style = style_for(options["color"], sys.stdout)
    head, _, rest = found.partition("\n")
    sys.stdout.write(f"{style.paint(head, 'bold')}\n{rest}\n")
    return OK


if __name__ == "__main__":
    main()
