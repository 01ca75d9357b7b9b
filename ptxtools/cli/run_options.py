"""The options of ptx-run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from ptxtools.machine.options import DeviceOptions, LaunchOptions, RunOptions, options_of

from .common import CONTEXT_SETTINGS, OK, common_options, examples
from .debugging import debug_options, debugged
from .litmus import litmus, litmus_options, refuse_without_litmus
from .lowering import lowering_options
from .observing import compare_profiles, watched, watching_options
from .opposing import oppose, opposing_options
from .running import check_launch_file, list_kernels, make_job, module_name, run
from .sweeping import refuse_without_sweep, sweep, sweep_options
from .templating import templating_options, write_template
from .tracing import trace_options, traced

if TYPE_CHECKING:
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
        return list_kernels(options)
    if options["sweep"]:
        check_launch_file(options)
        return sweep(options)
    refuse_without_sweep(options)
    if options["new_launch"]:
        return write_template(module_name(options), options)
    if options["against"]:
        return oppose(options, make_job)
    job = make_job(options)
    return debugged(options, lambda debugger: _run(job, options, debugger))


def _run(job: Job, options: dict[str, Any], debugger: Debugger | None) -> int:
    """Run with all observers that the options ask for."""

    def watch(run_with: Callable[[list[object]], Report]) -> Report:
        def with_trace(trace: Trace | None) -> Report:
            own = [one for one in (trace, debugger) if one is not None]
            return watched(options, lambda observers: run_with([*own, *observers]))

        return traced(options, with_trace)

    return run(job, options, debugger, watch)


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
