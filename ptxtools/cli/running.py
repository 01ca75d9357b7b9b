"""What ptx-run does with a launch. Nothing here needs click, except wrong usage."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ptxtools.diagnostics import Trap
from ptxtools.machine.options import LaunchOptions, options_of

from .common import FINDINGS, OK, STDIN, Failure, input_names, read_input, tool_version, usage_error
from .lowering import lowering_of
from .ticking import Ticker

if TYPE_CHECKING:
    from ptxtools.diagnostics.findings import Exploration, Finding, Verdict
    from ptxtools.launch.job import Job
    from ptxtools.launch.runner import Report
    from ptxtools.observe.debug.debugger import Debugger

#: Options that describe a launch; with --launch, the file does.
_LAUNCH_OPTIONS = ("kernel", *(option.name for option in options_of(LaunchOptions)), "args",
                   "expects", "saves", "rtol", "atol")  # fmt: skip
#: Calls a function that runs a job with the observers that it gets.
Watch = Callable[[Callable[[list[object]], "Report"]], "Report"]


# --- what to run ------------------------------------------------------------------------------------------------------


def module_name(options: dict[str, Any]) -> str:
    return input_names([] if options["module"] is None else [options["module"]])[0]


def make_job(options: dict[str, Any]) -> Job:
    return _job_from_file(options) if options["launch_file"] else _job_from_options(options)


def check_launch_file(options: dict[str, Any]) -> None:
    from ptxtools.launch.options import is_given

    given = [name for name in _LAUNCH_OPTIONS if is_given(options[name])]
    if given:
        flag = {"args": "arg", "expects": "expect", "saves": "save"}.get(given[0], given[0])
        raise usage_error(f"--{flag} and --launch exclude each other: the launch file specifies it")
    if options["launch_file"] == options["module"] == STDIN:
        raise usage_error("standard input ('-') can be read only once")


def _job_from_file(options: dict[str, Any]) -> Job:
    from ptxtools.launch.errors import SpecError
    from ptxtools.launch.file import read_launch_file

    check_launch_file(options)
    try:
        job = read_launch_file(options["launch_file"], options["module"] or "")
    except SpecError as error:
        raise Failure(str(error)) from None
    _device_options(job, options)
    return job


def _job_from_options(options: dict[str, Any]) -> Job:
    from ptxtools.launch.errors import SpecError
    from ptxtools.launch.options import job_from_options

    try:
        job = job_from_options(module_name(options), options)
    except SpecError as error:
        raise usage_error(str(error)) from None
    _device_options(job, options)
    return job


def _device_options(job: Job, options: dict[str, Any]) -> None:
    from ptxtools.launch.errors import SpecError
    from ptxtools.launch.options import add_options

    try:
        add_options(job, options)
    except SpecError as error:
        raise usage_error(str(error)) from None


def list_kernels(options: dict[str, Any]) -> int:
    import json

    from ptxtools.api import loadable
    from ptxtools.diagnostics.names import demangle

    name = module_name(options)
    module = loadable(read_input(name), "<stdin>" if name == STDIN else name, lowering_of(options), options["target"])
    kernels = list(module.contents.kernels.values())
    if options["kernel"]:
        from ptxtools.launch.errors import SpecError
        from ptxtools.launch.runner import find_kernel

        try:
            kernels = [find_kernel(module, options["kernel"], name)]
        except SpecError as error:
            raise Failure(str(error)) from None
    demangle(*(kernel.name for kernel in kernels))
    if options["format_"] == "json":
        rows = [json.dumps(kernel.to_json()) for kernel in kernels]
        print("[\n " + ",\n ".join(rows) + "\n]" if rows else "[]", flush=True)
        return OK
    for kernel in kernels:
        for line in kernel.lines():
            print(line, flush=True)
    return OK


# --- running ----------------------------------------------------------------------------------------------------------


def run(job: Job, options: dict[str, Any], debugger: Debugger | None = None, watch: Watch | None = None) -> int:
    """Run a job, and print what came of it; returns the exit status. watch: runs it with observers."""
    from ptxtools.api import run_job
    from ptxtools.launch.errors import SpecError

    def with_observers(observers: list[object]) -> Report:
        job.device.observers = (*job.device.observers, *observers)
        return run_job(job, read_input, lowering_of(options))

    if options["check_report"] is not None:
        _check_report_name(options["check_report"])
    try:
        with Ticker(options["quiet"], replays=debugger is not None) as ticker:
            job.device.on_print = lambda text: _print(text, ticker, debugger)
            job.device.on_grid = ticker.grid
            report = with_observers([]) if watch is None else watch(with_observers)
        _report(options, report.findings, report.verdict, report.explored)
    except Trap as trap:
        from ptxtools.launch.checked import reported

        _report(options, reported(trap))
        raise
    except SpecError as error:
        raise Failure(str(error)) from None
    _show(report, job, options)
    return OK if report.passed else FINDINGS


def _check_report_name(path: str) -> None:
    from ptxtools.launch.checked import check_name
    from ptxtools.launch.errors import SpecError

    try:
        check_name(path)
    except SpecError as error:
        raise usage_error(str(error)) from None


def _report(
    options: dict[str, Any], findings: list[Finding], verdict: Verdict | None = None,
    explored: Exploration | None = None,
) -> None:  # fmt: skip
    """What checkers found, for other programs."""
    if options["format_"] == "github" and findings:
        from ptxtools.diagnostics.checked import to_github

        print(to_github(findings), flush=True)
    path, known = options["check_report"], options["check_suppressions_write"]
    if path is None and known is None:
        return
    from ptxtools.launch.checked import add_suppressions, write_report
    from ptxtools.launch.errors import SpecError

    try:
        if path is not None:
            write_report(path, findings, tool_version(), verdict, explored)
        if known is not None:
            add_suppressions(known, findings)
    except SpecError as error:
        raise Failure(str(error)) from None


def _print(text: str, ticker: Ticker, debugger: Debugger | None) -> None:
    """Write a kernel's output byte for byte, regardless of the terminal's encoding; nothing that is only repeated."""
    if debugger is not None and debugger.replays:
        return
    ticker.clear()
    stream = getattr(sys.stdout, "buffer", None)
    if stream is None:  # a stream of text in its place: io.StringIO, a notebook's
        sys.stdout.write(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
        return
    stream.write(text.encode("utf-8", "surrogateescape"))
    if sys.stdout.line_buffering:
        stream.flush()


def _show(report: Report, job: Job, options: dict[str, Any]) -> None:
    if report.failure is not None:
        if not options["quiet"]:
            print(f"failed as expected ({job.expect_failure}): {report.failure}", flush=True)
        return
    if not options["quiet"]:
        for line in report.summaries:
            print(line, flush=True)
        if report.verdict is not None:
            print(f"racecheck: {report.verdict}", flush=True)
        if report.explored is not None:
            print(f"explored: {report.explored}", flush=True)
        for note in report.notes:
            sys.stderr.write(f"ptx-run: {note}\n")
    for failure in report.failures:
        sys.stderr.write(f"ptx-run: {failure[0]}\n" + "".join(f"    {line}\n" for line in failure[1:]))
    if options["verbose"]:
        for result in report.results:
            sys.stderr.write(f"ptx-run: {_speed(result.instructions, result.seconds)}\n")


def _speed(instructions: int, seconds: float) -> str:
    """Executed instructions and their rate, in a readable unit."""
    rate, unit = instructions / max(seconds, 1e-9), ""
    if rate >= 1e6:
        rate, unit = rate / 1e6, " million"
    shown = f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"
    return f"{instructions:,} thread-instruction{'s' * (instructions != 1)} in {seconds:.6f} s, {shown}{unit}/s"
