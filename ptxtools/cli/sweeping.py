"""`ptx-run --sweep`: a launch file at every point of a grid of values, on worker processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from .common import FINDINGS, OK, STDIN, Failure, progress, read_input, write_output
from .tables import plain

if TYPE_CHECKING:
    from ptxtools.launch.sweep import Axis, Outcome, Task

#: What belongs to one run, and does not go with many.
_OF_ONE_RUN = ("trace", "timeline", "coverage", "profile", "estimate", "debug", "dap", "check_report")
_WIDE = 200


def sweep_options(command: Any) -> Any:
    """Add the options to a command."""
    for flag, how in (
        ("--dask", {"metavar": "ADDRESS", "help": "Run the points of --sweep on a Dask cluster; needs the package "
                    "distributed, and the same files on all workers."}),
        ("--workers", {"metavar": "N", "type": click.IntRange(1, 4096), "help": "Worker processes of --sweep; default: "
                       "one per core."}),
        ("--sweep", {"metavar": "KEY=VALUES", "multiple": True, "help": "Run the launch file with each of these values "
                     "of a key: block=64,128, args.3=0..9, seed=0..99. KEY+KEY gives two keys the same value. May be "
                     "repeated, for all combinations."}),
    ):  # fmt: skip
        command = click.option(flag, **how)(command)
    return command


def refuse_without_sweep(options: dict[str, Any]) -> None:
    """Options that only `--sweep` has."""
    for name in ("workers", "dask"):
        if options[name] is not None:
            raise click.UsageError(f"--{name} requires --sweep")


def refuse_of_one_run(flag: str, options: dict[str, Any]) -> None:
    """Options that do not go with one that runs a launch several times."""
    for name in _OF_ONE_RUN:
        if options[name]:
            raise click.UsageError(f"--{flag} and --{name.replace('_', '-')} exclude each other")


def sweep(options: dict[str, Any]) -> int:
    """Run all points and write their outcomes; returns the exit status, 1 unless all passed."""
    from ptxtools.launch.errors import SpecError

    if options["launch_file"] is None:
        raise click.UsageError("--sweep requires --launch")
    refuse_of_one_run("sweep", options)
    if options["module"] == STDIN:
        raise click.UsageError("--sweep needs the name of a module")
    if options["workers"] is not None and options["dask"] is not None:
        raise click.UsageError("--workers and --dask exclude each other")
    try:
        axes, tasks = _tasks(options)
    except SpecError as error:
        raise Failure(str(error)) from None
    outcomes = []
    with progress("sweep", len(tasks), options["quiet"]) as step:
        for outcome in _outcomes(tasks, options):
            outcomes.append(outcome)
            step()
    write_output(options["output"] or STDIN, _text(axes, outcomes, options["format_"] or "text").encode())
    return OK if all(one.result == "passed" for one in outcomes) else FINDINGS


def _tasks(options: dict[str, Any]) -> tuple[tuple[Axis, ...], list[Task]]:
    """The points, of which the first must be a job: what is wrong with the file or a key is told once. Raises
    `SpecError`."""
    from ptxtools.launch.errors import SpecError
    from ptxtools.launch.file import launch_file_text
    from ptxtools.launch.sweep import Task, job_of, parse_axis, points

    axes = tuple(parse_axis(text) for text in options["sweep"])
    found = points(axes)
    data, path = launch_file_text(options["launch_file"])
    tasks = [Task(data, path, options["module"] or "", dict(options), axes, point) for point in found]
    saves = [plan.save for plan in job_of(tasks[0]).buffers.values() if plan.save]
    if len(tasks) > 1 and saves and not any(key.endswith(".save") for axis in axes for key in axis.keys):
        raise SpecError(f"{path}: every point would write {saves[0]}: sweep its key as well, or leave out save")
    return axes, tasks


# --- running ----------------------------------------------------------------------------------------------------------


def _run(task: Task) -> Outcome:
    """Run a point in this process, whichever it is."""
    from ptxtools.api import loadable
    from ptxtools.launch.sweep import Outcome, run_point

    from .lowering import lowering_of

    lowering = lowering_of(task.options)
    try:
        return run_point(task, lambda path, target: loadable(read_input(path), path, lowering, target))
    except Failure as failure:
        return Outcome(task.point, "error", failure.message)


def _outcomes(tasks: list[Task], options: dict[str, Any]) -> Iterator[Outcome]:
    if options["dask"] is not None:
        return _on_cluster(tasks, options["dask"])
    cores = len(os.sched_getaffinity(0))
    workers = min(options["workers"] or cores, len(tasks))
    if workers == 1:
        return map(_run, tasks)
    for task in tasks:
        if task.options["threads"] is None:
            task.options["threads"] = max(1, cores // workers)
    return _on_workers(tasks, workers)


def _on_workers(tasks: list[Task], workers: int) -> Iterator[Outcome]:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    # Started afresh: a fork would copy the threads' locks of this process.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, _deaf)
    try:
        yield from pool.map(_run, tasks)
    except BrokenProcessPool:
        raise Failure("a worker process ended before its point was done: out of memory?", status=FINDINGS) from None
    except BaseException:  # Ctrl-C: what runs is of no use any more
        for child in multiprocessing.active_children():
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _deaf() -> None:
    """Leave Ctrl-C to the process that started the workers."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _on_cluster(tasks: list[Task], address: str) -> Iterator[Outcome]:
    from asyncio import CancelledError

    try:
        from distributed import Client
    except ImportError:
        raise Failure("--dask needs the package distributed, which is not installed") from None
    try:
        client = Client(address, timeout="10s")  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise Failure(f"--dask {address}: {str(error) or type(error).__name__}") from None
    with client:
        for future in client.map(_run, tasks, pure=False):
            try:
                yield future.result()
            except (Exception, CancelledError) as error:  # a worker that ended, or that has no ptxtools
                raise Failure(f"--dask {address}: {str(error) or type(error).__name__}", status=FINDINGS) from None


# --- results ----------------------------------------------------------------------------------------------------------


def _text(axes: tuple[Axis, ...], outcomes: list[Outcome], form: str) -> str:
    from ptxtools.launch.sweep import as_csv, as_json

    if form != "text":
        return {"json": as_json, "csv": as_csv}[form](axes, outcomes)
    return _table(axes, outcomes)


def _table(axes: tuple[Axis, ...], outcomes: list[Outcome]) -> str:
    from rich.table import Table

    from ptxtools.launch.sweep import shown_value

    rows = Table(box=None, pad_edge=False, show_edge=False)
    for name in (*(axis.name for axis in axes), "result"):
        rows.add_column(name, no_wrap=True)
    for name in ("instructions", "seconds"):
        rows.add_column(name, justify="right", no_wrap=True)
    rows.add_column("", overflow="fold")
    for one in outcomes:
        message = one.message or "; ".join(one.summaries)
        numbers = (f"{one.instructions:,}", f"{one.seconds:.4f}") if one.instructions else ("", "")
        rows.add_row(*map(shown_value, one.point), one.result, *numbers, message)
    passed = sum(one.result == "passed" for one in outcomes)
    return plain(lambda console: console.print(rows), _WIDE) + f"{passed} of {len(outcomes)} points passed\n"
