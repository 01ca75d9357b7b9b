"""`ptx-run --debug` and `--dap`: the prompt, the way to an editor, and the process that runs behind them."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from .common import OK, STDIN, report_failure

if TYPE_CHECKING:
    from ptxtools.observe.debug.channel import Channel
    from ptxtools.observe.debug.debugger import Debugger
    from ptxtools.observe.debug.goals import Goal, Stop
    from ptxtools.observe.debug.timeline import Timeline

_PROMPT = "(ptx) "
#: Commands that an empty line repeats.
_REPEATED = ("s", "n", "c", "rs", "rn", "rc", "step", "next", "continue", "reverse-")


def debug_options(command: Any) -> Any:
    """Add the options to a command."""
    command = click.option(
        "--dap", metavar="[PORT]", is_flag=False, flag_value="-",
        help="Be a debug adapter for an editor, on standard input and output, or on a TCP port of this machine.",
    )(command)  # fmt: skip
    return click.option("--debug", is_flag=True, help="Debug it: stop at its first instruction, and read commands "
                        "from standard input; help lists them.")(command)  # fmt: skip


def debugged(options: dict[str, Any], run: Callable[[Debugger | None], int]) -> int:
    """Run, under the debugger if the options say so."""
    if not options["debug"] and options["dap"] is None:
        return run(None)
    if options["debug"] and options["dap"] is not None:
        raise click.UsageError("--debug and --dap exclude each other")
    for name in ("trace", "timeline"):  # they write as the run goes on, and could not take it back
        if options[name] is not None:
            raise click.UsageError(f"--{name} cannot be written while a debugger goes back and on")
    if options["dap"] in (None, STDIN) and STDIN in (options["module"], options["launch_file"]):
        raise click.UsageError("the debugger reads standard input: name the file")
    from ptxtools.observe.debug import timeline
    from ptxtools.observe.debug.debugger import Debugger, Leave

    channel = None if options["dap"] is None else _channel(options["dap"])

    def body(moments: Timeline | None) -> int:
        debugger = Debugger(Prompt() if channel is None else _adapter(channel), moments)
        signal.signal(signal.SIGINT, debugger.pause)
        try:
            status = run(debugger)
        except Leave:
            status = OK
        except BaseException as error:
            status = report_failure(error, "ptx-run")
        if channel is not None:
            _farewell(channel, status)
        return status

    return timeline.run(body) if timeline.can_go_back() else body(None)


def _channel(where: str) -> Channel:
    """The way to the editor: standard input and output, or the first connection to a port."""
    import socket

    from ptxtools.observe.debug.channel import Channel

    if where == STDIN:
        return Channel(os.dup(0), os.dup(1))
    if not (where.isascii() and where.isdigit() and len(where) < 6 and int(where) < 65536):
        raise click.BadParameter(f"'{where}' is no port", param_hint="--dap")
    with socket.create_server(("127.0.0.1", int(where))) as server:
        sys.stderr.write(f"ptx-run: waiting for an editor at 127.0.0.1:{server.getsockname()[1]}\n")
        sys.stderr.flush()
        connection, _ = server.accept()
        number = connection.detach()
    return Channel(number, number)


def _adapter(channel: Channel) -> Any:
    """The adapter; what the run writes goes through it, too."""
    import io

    from ptxtools.observe.debug.channel import Output
    from ptxtools.observe.debug.dap import Adapter

    for name in ("stdout", "stderr"):
        stream = io.BufferedWriter(Output(channel, name))
        setattr(sys, name, io.TextIOWrapper(stream, "utf-8", "backslashreplace", line_buffering=True))
    return Adapter(channel)


def _farewell(channel: Channel, status: int) -> None:
    """Tell the editor that the run is over."""
    from contextlib import suppress

    sys.stdout.flush()
    sys.stderr.flush()
    with suppress(OSError):
        channel.event("exited", exitCode=status)
        channel.event("terminated")


class Prompt:
    """Reads commands from standard input, and writes to standard output (`observe.debug.debugger.Front`)."""

    def __init__(self) -> None:
        from ptxtools.observe.debug.commands import Commands

        self._commands = Commands(self._tell)
        self._terminal = sys.stdin is not None and sys.stdin.isatty()
        self._input, self._process = b"", os.getpid()
        self._last = ""

    def wants(self) -> bool:
        return False

    def _tell(self, line: str) -> None:
        from ptxtools.diagnostics.text import printable

        sys.stdout.write("\t".join(map(printable, line.split("\t"))) + "\n")

    def stopped(self, debugger: Debugger, stop: Stop) -> tuple[Goal, bool]:
        from ptxtools.observe.debug.debugger import Leave
        from ptxtools.observe.debug.goals import Goal

        front = debugger.session.front
        if front.get("ended"):
            return Goal(), False
        self._input = front.get("input", self._input)
        self._announce(debugger, stop)
        while True:
            sys.stdout.flush()
            line = self._line(debugger)
            if line is None:  # nobody is there any more: run to the end
                front["ended"] = True
                debugger.release()
                return Goal(), False
            if line in ("quit", "q", "exit", "kill"):
                raise Leave
            found = self._run(debugger, line)
            if found is not None:
                front["input"] = self._input
                return found

    def _announce(self, debugger: Debugger, stop: Stop) -> None:
        from ptxtools.observe.debug.looking import where_lines

        for line in stop.text.splitlines():
            self._tell(line)
        if debugger.at is not None:
            for line in where_lines(debugger):
                self._tell(line)
            self._commands.shown(debugger)

    def _run(self, debugger: Debugger, line: str) -> tuple[Goal, bool] | None:

        if not line.strip() or line.lstrip().startswith("#"):
            if not self._terminal or not self._last.startswith(_REPEATED):
                return None
            line = self._last
        self._last = line.strip()
        try:
            return self._commands.run_line(debugger, line)
        except (ValueError, OverflowError) as error:  # UserError, LocationError, ExpressionError; numbers without end
            self._tell(str(error))
            return None

    # --- input --------------------------------------------------------------------------------------------------------

    def _line(self, debugger: Debugger) -> str | None:
        """A line of input without its end; None where there is none any more."""
        if self._terminal:
            return self._edited(debugger)
        while b"\n" not in self._input:  # not through a buffer: another process may read what is left
            data = os.read(0, 65536) if sys.stdin is not None else b""
            if not data:
                break
            self._input += data
        first, _, self._input = self._input.partition(b"\n")
        if not first and not self._input:
            return None
        line = first.decode("utf-8", "replace").rstrip("\r")
        sys.stdout.write(f"{_PROMPT}{line}\n")
        return line

    def _edited(self, debugger: Debugger) -> str | None:
        """A line from the terminal, with history and completion."""
        history = debugger.session.front.setdefault("history", [])
        try:
            import readline
        except ImportError:
            pass
        else:
            if self._process != os.getpid():  # an earlier moment knows nothing of what came later
                self._process = os.getpid()
                readline.clear_history()
                for old in history:
                    readline.add_history(old)
            readline.parse_and_bind("tab: complete")
            readline.set_completer_delims(" \t,+-*/()[]@=<>!&|")
            readline.set_completer(
                lambda text, n: [*self._commands.complete(debugger, text, readline.get_line_buffer()), None][n]
            )
        try:
            line = input(_PROMPT)
        except EOFError:
            sys.stdout.write("\n")
            return None
        history.append(line)
        return line
