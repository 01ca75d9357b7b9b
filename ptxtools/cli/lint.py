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
    print_diagnostics,
    progress,
    read_input,
    run_command,
    tool_version,
    write_output,
)
from .settings import FORMATS, Settings, SettingsFinder

if TYPE_CHECKING:
    from ptxtools.ir import Module

_EXAMPLES = examples(
    "ptx-lint kernel.ptx",
    "nvcc -ptx -o - kernel.cu | ptx-lint --stdin-filename kernel.ptx",
    "ptx-lint --target sm_75 --target sm_90a build/*.ptx",
    "ptx-lint --requirements kernel.ptx        # lowest .version and .target",
    "ptx-lint --format sarif kernel.ptx > findings.sarif",
    "ptx-lint --select PTX1,PTX2 --strict kernel.ptx",
    "ptx-lint --explain PTX301",
)
#: From this many files on, worker processes pay.
_PARALLEL_FROM = 16


class _Report(NamedTuple):
    """What was found in one file; `failure` says why it could not be read, `fails` that the findings count."""

    name: str
    findings: list[Diagnostic]
    fails: bool = False
    failure: str = ""
    seconds: float = 0.0


@click.command(name="ptx-lint", context_settings=CONTEXT_SETTINGS, epilog=_EXAMPLES,
               short_help="Find mistakes in PTX.")  # fmt: skip
@click.argument("files", nargs=-1, metavar="[FILES]...")
@click.option("--format", "format_", type=click.Choice(FORMATS), help="How findings are written; default: text.")
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
    settings = SettingsFinder(options)
    format_ = settings.format()
    if options["requirements"]:
        from .requirements import print_requirements

        return print_requirements(names, options["stdin_filename"] or STDIN_NAME, options["color"], format_)
    status = OK
    if options["diff"]:
        return FINDINGS if _fix(names, settings, write=False) else OK
    if options["fix"]:
        fixed = _fix(names, settings, write=True)
        for report in fixed:  # standard input, whose text went to standard output
            print_diagnostics(report.findings, style_for(options["color"], sys.stderr), sys.stderr)
            status = FINDINGS if report.fails else status
        names = [name for name in names if name != STDIN]
        if not names:
            return status
    reports = _lint_all([(name, settings.for_file(name)) for name in names], options)
    return max(status, _print_reports(reports, options, format_))


def main() -> NoReturn:
    """The console script."""
    run_command(command, "ptx-lint")


# --- checking ---------------------------------------------------------------------------------------------------------


def _lint_all(files: Sequence[tuple[str, Settings]], options: dict[str, Any]) -> list[_Report]:
    jobs = options["jobs"] or (os.cpu_count() or 1 if len(files) >= _PARALLEL_FROM else 1)
    jobs = min(jobs, len(files))
    reports: list[_Report] = []
    with progress("checking", len(files), options["quiet"]) as step:
        for report in _reports(files, jobs):
            reports.append(report)
            step()
            if options["verbose"]:
                sys.stderr.write(f"{report.name}: {len(report.findings)} findings in {report.seconds:.3f} s\n")
    return reports


def _reports(files: Sequence[tuple[str, Settings]], jobs: int) -> Iterable[_Report]:
    if jobs < 2 or any(name == STDIN for name, _ in files):
        return map(_report, files)
    return _parallel(files, jobs)


def _parallel(files: Sequence[tuple[str, Settings]], jobs: int) -> Iterable[_Report]:
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(_report, files, chunksize=max(1, len(files) // (4 * jobs)))


def _report(file: tuple[str, Settings]) -> _Report:
    """Lint one file. Runs in a worker process, too."""
    name, settings = file
    started = time.perf_counter()
    try:
        data = read_input(name)
    except Failure as error:
        return _Report(_shown(name, settings), [], failure=error.message)
    return _report_of(data, name, settings, started)


def _report_of(data: bytes, name: str, settings: Settings, started: float = 0.0) -> _Report:
    shown = _shown(name, settings)
    findings = lint_data(data, shown, settings)
    counting = settings.strict or any(finding.severity is Severity.ERROR for finding in findings)
    fails = bool(findings) and counting and not settings.exit_zero
    return _Report(shown, findings, fails, "", time.perf_counter() - started)


def _shown(name: str, settings: Settings) -> str:
    return settings.stdin_name if name == STDIN else name


def lint_data(data: bytes, name: str, settings: Settings) -> list[Diagnostic]:
    """The findings in the bytes of one file."""
    from ptxtools.api import parsed

    findings: list[Diagnostic] = []
    try:
        for module, syntax in parsed(data, name):
            findings += _lint_module(module, syntax, settings)
    except PtxError as error:
        findings += error.diagnostics
    return findings


def _lint_module(module: Module, syntax: list[Diagnostic], settings: Settings) -> list[Diagnostic]:
    from ptxtools.ir.origins import add_origins
    from ptxtools.lint import chosen, lint_targets, suppressed, without_echoes

    found = lint_targets(module, settings.targets, settings.version)
    findings = [*syntax, *without_echoes(found, syntax)]
    findings = suppressed(chosen(findings, settings.select, settings.ignore), module.source)
    add_origins(findings, module)
    return sorted(findings, key=lambda d: (d.span, d.code, d.target or ""))


# --- fixes ------------------------------------------------------------------------------------------------------------


def _fix(names: Sequence[str], finder: SettingsFinder, *, write: bool) -> list[_Report]:
    """Apply or show the fixes of each file. With `write` the reports of what fixes leave in standard input, which goes
    to standard output; without, those of the files that would change."""
    from ptxtools.diagnostics.decode import decode
    from ptxtools.lint.fixes import apply_fixes, unified_diff

    left: list[_Report] = []
    for name in names:
        settings = finder.for_file(name)
        data = read_input(name)
        report = _report_of(data, name, settings)
        try:
            text = decode(data, report.name)
        except PtxError:  # binary: there is no text to change
            left += [report] if name == STDIN and write else []
            continue
        changed, count = apply_fixes(text, report.findings)
        if not write:
            if count:
                sys.stdout.write(unified_diff(text, changed, report.name))
                left.append(report)
        elif name == STDIN:
            fixed = _encoded(changed, data) if count else data
            write_output(STDIN, fixed)
            left.append(_report_of(fixed, name, settings))
        elif count:
            write_output(name, _encoded(changed, data))
            sys.stderr.write(f"{name}: {count} {'fix' if count == 1 else 'fixes'} applied\n")
    return left


def _encoded(text: str, like: bytes) -> bytes:
    """The bytes of a changed text, in the encoding and with the byte order mark that it had."""
    mark = b"\xef\xbb\xbf" if like.startswith(b"\xef\xbb\xbf") else b""
    try:
        like.decode("utf-8")
    except UnicodeDecodeError:
        return mark + text.encode("latin-1")
    return mark + text.encode("utf-8")


# --- output -----------------------------------------------------------------------------------------------------------


def _print_reports(reports: list[_Report], options: dict[str, Any], format_: str) -> int:
    findings = [finding for report in reports for finding in report.findings]
    style = style_for(options["color"], sys.stdout)
    if options["statistics"]:
        sys.stdout.write(_statistics(findings, format_))
    else:
        _PRINTERS[format_](findings, style)
        if format_ == "text" and findings and not options["quiet"]:
            sys.stdout.write(_summary(findings, style))
    failures = [report.failure for report in reports if report.failure]
    for failure in failures:
        sys.stderr.write(f"ptx-lint: error: {failure}\n")
    return USAGE if failures else FINDINGS if any(report.fails for report in reports) else OK


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


def _explain(code: str, options: dict[str, Any]) -> int:
    from ptxtools.lint.explain import page

    from .pages import all_pages, near

    found = page(code.upper(), all_pages())
    if found is None:
        raise click.UsageError(f"no rule has the code '{code}'{near(code)}")
    style = style_for(options["color"], sys.stdout)
    head, _, rest = found.partition("\n")
    sys.stdout.write(f"{style.paint(head, 'bold')}\n{rest}\n")
    return OK


if __name__ == "__main__":
    main()
