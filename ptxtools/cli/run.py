"""ptx-run: run a kernel on a simulated device, and check what it computes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from ptxtools.diagnostics import Trap
from ptxtools.machine.options import DeviceOptions, LaunchOptions, RunOptions, options_of

from .common import (
    CONTEXT_SETTINGS,
    FINDINGS,
    OK,
    STDIN,
    Failure,
    common_options,
    examples,
    input_names,
    read_input,
    run_command,
    tool_version,
)
from .debugging import debug_options, debugged
from .litmus import litmus, litmus_options, refuse_without_litmus
from .lowering import lowering_of, lowering_options
from .observing import compare_profiles, watched, watching_options
from .opposing import oppose, opposing_options
from .sweeping import refuse_without_sweep, sweep, sweep_options
from .templating import templating_options, write_template
from .ticking import Ticker
from .tracing import trace_options, traced

if TYPE_CHECKING:
    from ptxtools.diagnostics.findings import Exploration, Finding, Verdict
    from ptxtools.launch.job import Job
    from ptxtools.launch.runner import Report
    from ptxtools.observe.debug.debugger import Debugger
    from ptxtools.observe.trace import Trace

_EXAMPLES = examples(
    "ptx-run vecadd.ptx --grid 4 --block 256 --arg a.npy --arg b.npy --arg zeros:f32[1024] --arg 1024",
    "ptx-run scale.ptx --grid 1 --block 32 --arg arange:f32[32] --arg f32:1.5 --save 0=out.npy",
    "ptx-run mm.ptx -k matmul --list",
    "ptx-run --launch case.toml",
    "ptx-run --launch case.toml --sweep block=64,128,256 --sweep seed=0..9",
    "ptx-run --litmus mp.litmus sb.litmus --model 8.x",
    "ptx-as k.ptx -o - | ptx-run - --grid 1 --block 32 --arg fill:s32[32]=7",
)

#: Options that describe a launch; with --launch, the file does.
_LAUNCH_OPTIONS = ("kernel", *(option.name for option in options_of(LaunchOptions)), "args",
                   "expects", "saves", "rtol", "atol")  # fmt: skip


def _finite(_: click.Context, _option: click.Parameter, value: float | None) -> float | None:
    """Reject nan and infinity, which click's ranges accept."""
    if value is None or 0 <= value < float("inf"):
        return value
    raise click.BadParameter(f"{value:g} is not a finite number of at least 0")


def flags_of(described: Any) -> Callable[[Any], Any]:
    """Add the options (`DeviceOptions`, `LaunchOptions`, `RunOptions`) that have a flag to a command."""

    def given(command: Any) -> Any:
        for option in reversed([option for option in options_of(described) if option.flag]):
            how: dict[str, Any] = {"help": option.help, "metavar": option.metavar or None}
            if option.kind == "flag":
                how["is_flag"] = True
            elif option.kind == "whole":
                how["type"] = click.IntRange(option.least or 0)
            elif option.kind == "seconds":
                how |= {"type": click.FloatRange(0, min_open=True), "callback": _finite}
            elif option.choices:
                how |= {"type": click.Choice(option.choices), "default": option.default,
                        "show_default": option.shows_default}  # fmt: skip
            command = click.option(option.flag, option.name, **how)(command)
        return command

    return given


@click.command(name="ptx-run", context_settings=CONTEXT_SETTINGS, epilog=_EXAMPLES,
               short_help="Run a kernel on a simulated device.")  # fmt: skip
@click.argument("modules", nargs=-1, metavar="[MODULE]")
@click.option("-k", "--kernel", metavar="NAME", help="The entry to run: its name, mangled or as in the source, or "
              "a prefix of it; not needed if there is only one.")  # fmt: skip
@click.option("--list", "list_", is_flag=True, help="List the entries with their parameters, without running one.")
@click.option("--format", "format_", type=click.Choice(["text", "json", "csv", "github", "dot", "svg", "cat"]),
              help="Format of --list (text or json), --sweep (text, json or csv) and --litmus; default: text. dot and "
              "svg draw an execution, cat prints the model. github: a run writes the checkers' reports as workflow "
              "commands, too.")  # fmt: skip
@flags_of(LaunchOptions)
@click.option(
    "--arg",
    "args",
    metavar="SPEC",
    multiple=True,
    help="An argument, one per parameter in order: 42, f32:1.5, null, FILE.npy, FILE.png, zeros:f32[1024], "
    "fill:f32[4]=1.5, arange:s32[64], random:f32[32,32]@SEED, bytes:HEX, @FILE.",
)
@click.option(
    "--expect", "expects", metavar="N=FILE.npy", multiple=True, help="Compare argument N (from 0) after the run."
)
@click.option("--rtol", type=float, callback=_finite, help="Relative tolerance of --expect; default: 0.")
@click.option("--atol", type=float, callback=_finite, help="Absolute tolerance of --expect; default: 0.")
@click.option(
    "--save", "saves", metavar="N=FILE.npy", multiple=True, help="Write the buffer of argument N after the run."
)
@click.option("--launch", "launch_file", metavar="FILE.toml", help="Run a launch file; MODULE replaces its module.")
@templating_options
@sweep_options
@opposing_options
@flags_of(RunOptions)
@flags_of(DeviceOptions)
@click.option("--check-report", metavar="FILE", help="Write the checkers' reports as JSON (.json) or SARIF (.sarif).")
@click.option("--check-suppressions-write", metavar="FILE.toml",
              help="Add the checkers' reports to this file, for --check-suppressions.")  # fmt: skip
@trace_options
@debug_options
@watching_options
@litmus_options
@lowering_options
@common_options
def command(**options: Any) -> int:
    """Run a kernel of MODULE (PTX text, a container or NVVM IR, - for standard input) on a simulated device.

    Prints a summary of the buffers that the kernel wrote, unless --expect or --save is given.
    """
    modules = options.pop("modules")
    if options["output"] is not None and not (options["new_launch"] or options["sweep"]):
        raise click.UsageError("-o requires --new-launch or --sweep")
    _check_format(options)
    if options["litmus"]:
        return litmus(modules, options)
    refuse_without_litmus(options)
    if len(modules) > 1:
        raise click.UsageError(f"Got unexpected extra argument ({modules[1]})")
    options["module"] = modules[0] if modules else None
    if options["profile_compare"]:
        compare_profiles(options["profile_compare"])
        return OK
    if options["list_"]:
        return _list(options)
    if options["sweep"]:
        _check_launch_file(options)
        return sweep(options)
    refuse_without_sweep(options)
    if options["new_launch"]:
        return write_template(_module_name(options), options)
    if options["against"]:
        return oppose(options, _job)
    job = _job(options)
    return debugged(options, lambda debugger: _run(job, options, debugger))


def main(arguments: Sequence[str] | None = None) -> None:
    """The console command."""
    run_command(command, "ptx-run", arguments)


#: The formats of what is not a run; a run's is github.
_FORMATS = {
    "litmus": ("text", "json", "dot", "svg", "cat"),
    "profile_compare": (),
    "list_": ("text", "json"),
    "sweep": ("text", "json", "csv"),
}


def _check_format(options: dict[str, Any]) -> None:
    form = options["format_"]
    what = next((name for name in _FORMATS if options[name]), "")
    if form is None or form in _FORMATS.get(what, ("github",)):
        return
    if what:
        flag, has = f"--{what.rstrip('_').replace('_', '-')}", _FORMATS[what]
        raise click.UsageError(f"{flag} has the formats {', '.join(has)}" if has else f"{flag} has no --format")
    where = [f"--{name.rstrip('_')}" for name, formats in _FORMATS.items() if form in formats]
    hint = "; --check-report FILE.json has checkers' reports" if form == "json" else ""
    raise click.UsageError(f"--format {form} requires {' or '.join(where)}{hint}")


# --- what to run ------------------------------------------------------------------------------------------------------


def _module_name(options: dict[str, Any]) -> str:
    return input_names([] if options["module"] is None else [options["module"]])[0]


def _job(options: dict[str, Any]) -> Job:
    return _job_from_file(options) if options["launch_file"] else _job_from_options(options)


def _check_launch_file(options: dict[str, Any]) -> None:
    from ptxtools.launch.options import is_given

    given = [name for name in _LAUNCH_OPTIONS if is_given(options[name])]
    if given:
        flag = {"args": "arg", "expects": "expect", "saves": "save"}.get(given[0], given[0])
        raise click.UsageError(f"--{flag} and --launch exclude each other: the launch file specifies it")
    if options["launch_file"] == options["module"] == STDIN:
        raise click.UsageError("standard input ('-') can be read only once")


def _job_from_file(options: dict[str, Any]) -> Job:
    from ptxtools.launch.errors import SpecError
    from ptxtools.launch.file import read_launch_file

    _check_launch_file(options)
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
        job = job_from_options(_module_name(options), options)
    except SpecError as error:
        raise click.UsageError(str(error)) from None
    _device_options(job, options)
    return job


def _device_options(job: Job, options: dict[str, Any]) -> None:
    from ptxtools.launch.errors import SpecError
    from ptxtools.launch.options import add_options

    try:
        add_options(job, options)
    except SpecError as error:
        raise click.UsageError(str(error)) from None


def _list(options: dict[str, Any]) -> int:
    import json

    from ptxtools.api import loadable
    from ptxtools.diagnostics.names import demangle

    name = _module_name(options)
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
        click.echo("[\n " + ",\n ".join(rows) + "\n]" if rows else "[]")
        return OK
    for kernel in kernels:
        for line in kernel.lines():
            click.echo(line)
    return OK


# --- running ----------------------------------------------------------------------------------------------------------


def _run(job: Job, options: dict[str, Any], debugger: Debugger | None) -> int:
    from ptxtools.api import run_job
    from ptxtools.launch.errors import SpecError

    def run(trace: Trace | None) -> Report:
        def with_observers(observers: list[object]) -> Report:
            own = (one for one in (trace, debugger) if one is not None)
            job.device.observers = (*job.device.observers, *own, *observers)
            return run_job(job, read_input, lowering_of(options))

        return watched(options, with_observers)

    if options["check_report"] is not None:
        _check_report_name(options["check_report"])
    try:
        with Ticker(options["quiet"], replays=debugger is not None) as ticker:
            job.device.on_print = lambda text: _print(text, ticker, debugger)
            job.device.on_grid = ticker.grid
            report = traced(options, run)
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
        raise click.UsageError(str(error)) from None


def _report(
    options: dict[str, Any], findings: list[Finding], verdict: Verdict | None = None,
    explored: Exploration | None = None,
) -> None:  # fmt: skip
    """What checkers found, for other programs."""
    if options["format_"] == "github" and findings:
        from ptxtools.diagnostics.checked import to_github

        click.echo(to_github(findings))
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
            click.echo(f"failed as expected ({job.expect_failure}): {report.failure}")
        return
    if not options["quiet"]:
        for line in report.summaries:
            click.echo(line)
        if report.verdict is not None:
            click.echo(f"racecheck: {report.verdict}")
        if report.explored is not None:
            click.echo(f"explored: {report.explored}")
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
