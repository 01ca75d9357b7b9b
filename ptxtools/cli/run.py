"""ptx-run: run a kernel on a simulated device, and check what it computes.

A start whose arguments are a module and plain options does without click (`plain`), and without what watches, traces or
debugs a run. `command`, click's command, is made when it is asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from ptxtools.bundle import Bundle

from . import plain

NAME = "ptx-run"
#: What `command` gives for options that are absent, besides those of devices, launches and runs
#: (tests/cli/run/test_plain.py compares the two).
_DEFAULTS: dict[str, Any] = {
    "kernel": None, "list_": False, "format_": None, "args": (), "expects": (), "rtol": None, "atol": None,
    "saves": (), "launch_file": None, "new_launch": False, "output": None, "sweep": (), "workers": None, "dask": None,
    "against": (), "check_report": None, "check_suppressions_write": None, "trace": None, "trace_cta": (),
    "trace_warp": (), "trace_lane": (), "trace_line": (), "trace_opcode": (), "trace_register": (), "trace_from": None,
    "trace_to": None, "trace_last": None, "debug": False, "dap": None, "coverage": (), "coverage_from": (),
    "profile": (), "estimate": (), "timeline": None, "timeline_events": None, "profile_compare": None,
    "litmus": False, "model": None, "unroll": None, "nvvm_dialect": None, "libdevice": None, "backend": None,
    "color": "auto", "quiet": False, "verbose": False,
}  # fmt: skip
#: The options that need no click, besides those of devices, launches and runs.
_PLAIN: dict[str, tuple[str, plain.Reader | None]] = {
    "-k": ("kernel", str), "--kernel": ("kernel", str), "--arg": ("args", str), "--expect": ("expects", str),
    "--save": ("saves", str), "--launch": ("launch_file", str), "--check-report": ("check_report", str),
    "-q": ("quiet", None), "--quiet": ("quiet", None), "-v": ("verbose", None), "--verbose": ("verbose", None),
    "--color": ("color", plain.one_of(plain.COLOURS)),
}  # fmt: skip


def plain_options(arguments: Sequence[str]) -> dict[str, Any] | None:
    """The options that these arguments say, as `command` reads them; None where click is to read them."""
    from ptxtools.machine.options import DeviceOptions, LaunchOptions, RunOptions, options_of

    defaults, readers = dict(_DEFAULTS), dict(_PLAIN)
    for option in (each for holder in (LaunchOptions, RunOptions, DeviceOptions) for each in options_of(holder)):
        if not option.flag:
            continue
        reader: plain.Reader | None = str
        if option.kind == "flag":
            reader = None
        elif option.kind == "whole":
            reader = plain.whole(option.least or 0)
        elif option.kind == "seconds":
            reader = plain.seconds
        elif option.choices:
            reader = plain.one_of(option.choices)
        readers[option.flag] = option.name, reader
        defaults[option.name] = False if option.kind == "flag" else option.default if option.choices else None
    return plain.read(arguments, "modules", defaults, readers)


def _run(options: dict[str, Any]) -> int:
    from .running import make_job, run

    modules = options.pop("modules")
    options["module"] = modules[0] if modules else None
    return run(make_job(options), options)


def _command() -> Any:
    from .run_options import command

    return command


def main(arguments: Sequence[str] | None = None) -> None:
    """The console script; of other arguments than the process', click's command."""
    if arguments is not None:
        from .common import run_command

        run_command(_command(), NAME, arguments)
    bundle = Bundle("run")
    sys.meta_path.insert(0, bundle)
    from .common import run_command, run_function

    options = None if plain.needs_click(NAME) else plain_options(sys.argv[1:])
    if options is not None and len(options["modules"]) < 2:
        run_function(plain.plainly(lambda: _run(options), NAME, _command), NAME, bundle.leave)
    run_command(_command(), NAME)


def __getattr__(name: str) -> Any:
    if name == "command":
        return _command()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if __name__ == "__main__":
    main()
