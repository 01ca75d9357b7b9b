"""Shared by the three commands: options, input, exit status, and one wrapper that reports every failure.

Exit status: 0 fine; 1 findings, errors, a refused launch or a trap; 2 a usage error or an unreadable file; 70 an
internal error; 130 interrupted. A closed pipe ends a command quietly.
"""

from __future__ import annotations

import atexit
import errno
import gc
import io
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any, NoReturn, TypeVar

from ptxtools import expressions
from ptxtools.diagnostics import Diagnostic, LaunchError, PtxError, PtxWarning, Trap
from ptxtools.diagnostics.colour import Style, is_terminal, style_for
from ptxtools.diagnostics.shorten import shortened
from ptxtools.diagnostics.text import printable, render
from ptxtools.files.reading import read_all

from . import interrupted

if TYPE_CHECKING:
    import click

OK, FINDINGS, USAGE, INTERNAL, INTERRUPTED = 0, 1, 2, 70, 130

#: The start of the message when writing to standard output fails.
_OUTPUT = "cannot write standard output: "
_OUTPUT_ERRORS = frozenset({errno.EBADF, errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EDQUOT})

#: The name of standard input as an argument, and in findings.
STDIN, STDIN_NAME = "-", "<stdin>"

#: Names of the report address in a package's metadata, lower case, letters only.
_ISSUES = frozenset({"issues", "bugs", "issue", "bug", "tracker", "issuetracker", "bugtracker", "bugreports"})

CommandFunction = TypeVar("CommandFunction", bound=Callable[..., Any])


class Failure(Exception):  # noqa: N818 - not an error of ours
    """A command cannot continue: `message` goes to standard error, and the process exits with `status`."""

    def __init__(self, message: str, status: int = USAGE) -> None:
        self.message, self.status = message, status
        super().__init__(message)


def usage_error(message: str) -> click.UsageError:
    """What to raise for wrong usage (status 2, with a hint)."""
    import click

    return click.UsageError(message)


# --- options ----------------------------------------------------------------------------------------------------------


def tool_version() -> str:
    """The version of the installed package; "0+unknown" in a tree that was never installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("ptxtools")
    except PackageNotFoundError:
        return "0+unknown"


def common_options(function: CommandFunction) -> CommandFunction:
    """`--version`, `--color`, `-q/--quiet`, `-v/--verbose`; the function gets `color`, `quiet`, `verbose`."""
    import click

    colours = click.Choice(["auto", "always", "never"])
    for option in (
        click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version,
                     help="Show the version and exit."),
        click.option("-v", "--verbose", is_flag=True, help="Print more about progress."),
        click.option("-q", "--quiet", is_flag=True, help="Print only what is necessary."),
        click.option("--color", type=colours, default="auto", show_default=True,
                     help="Colour the output; NO_COLOR is obeyed."),
    ):  # fmt: skip
        function = option(function)
    return function


def _print_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        sys.stdout.write(f"{context.info_name} {tool_version()}\n")
        context.exit()


CONTEXT_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


def examples(*lines: str) -> str:
    """An epilog for `--help`, with one example per line."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


# --- running a command ------------------------------------------------------------------------------------------------


def run_command(command: click.Command, name: str, arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a click command as the process: every failure gives a message and the documented exit status."""
    run_function(_invoking(command, name, arguments), name)


def run_function(work: Callable[[], int], name: str, last: Callable[[], None] | None = None) -> NoReturn:
    """As `run_command`, what `work` does; it returns the status. last: what is done after it. Nothing that is left then
    needs an end of its own, so Python does not take its modules and objects apart."""
    _prepare_streams()
    status = _guarded(work, name)
    try:
        if not sys.stdout.closed:  # the language server closes it
            sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
    except OSError as error:
        _say(name, f"{_OUTPUT}{error.strerror}", USAGE)
        status = status or USAGE
        _discard_output()
    if status == INTERRUPTED:
        _leave(status)
    expressions.leave_table()
    if last is not None:
        last()
        _end_threads()
        atexit._run_exitfuncs()
        _leave(status)
    gc.freeze()  # what is left lives to the end: the last collection need not look at it
    sys.exit(status)


def _end_threads() -> None:
    """Wait for the threads that Python would wait for at its end."""
    threading = sys.modules.get("threading")
    if threading is not None:
        with suppress(KeyboardInterrupt):
            threading._shutdown()


def _leave(status: int) -> NoReturn:
    """End the process with this status. `sys.exit` would end it by the signal if Ctrl-C arrived while Python created a
    class from text, as it does for data classes."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


def _prepare_streams() -> None:
    """Make writing to a closed standard output an error and ignore writes to a closed standard error. Text that a
    stream cannot encode is escaped, never an error."""
    if sys.stdout is None:
        os.open(os.devnull, os.O_WRONLY)  # so that no file gets standard output's number
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(_Closed()), encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - for the life of the process
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


class _Closed(io.RawIOBase):
    """A standard output closed by the caller. That is an error once: what is in buffers at the end is dropped, else
    Python from 3.13 on would tell of it again."""

    def __init__(self) -> None:
        self._told = False

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        if self._told:
            return len(data)
        self._told = True
        raise OSError(errno.EBADF, "it is closed")


def exit_status(command: click.Command, name: str, arguments: Sequence[str] | None = None) -> int:
    """As `run_command`, but returns the status."""
    return _guarded(_invoking(command, name, arguments), name)


def _invoking(command: click.Command, name: str, arguments: Sequence[str] | None) -> Callable[[], int]:
    """What runs a command, and returns the status."""

    def work() -> int:
        given = list(arguments) if arguments is not None else None
        result = command.main(given, prog_name=name, standalone_mode=False)
        return result if isinstance(result, int) else OK

    return work


def _guarded(work: Callable[[], int], name: str) -> int:
    """The status that `work` returns, or that of its failure, which is reported."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", PtxWarning)
        warnings.showwarning = _show_warning  # type: ignore[assignment]
        try:
            return work()
        except BaseException as error:
            return report_failure(error, name)


_plain_warning = warnings.showwarning


def _show_warning(message: Warning | str, *rest: Any) -> None:
    """Print what a module is accepted with as other findings are printed."""
    if isinstance(message, PtxWarning):
        with suppress(OSError, ValueError):
            print_diagnostics(message.diagnostics, style_for("auto", sys.stderr), sys.stderr)
    else:
        _plain_warning(message, *rest)


def _stopped(error: BaseException | None) -> Trap | None:
    """Where each warp was at Ctrl-C, if a kernel ran; click wraps the exception that has the report."""
    while error is not None and not isinstance(error, Trap):
        error = error.__cause__
    return error


def report_failure(error: BaseException, name: str) -> int:
    """Print the error message; returns the exit status."""
    if isinstance(error, SystemExit) and "PacifyFlush" in type(sys.stdout).__name__:  # click's mark of a closed pipe
        error = BrokenPipeError()
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else FINDINGS
    if isinstance(error, BrokenPipeError):
        _discard_output()
        return OK
    click: Any = sys.modules.get("click")  # its errors come from where it is loaded
    if interrupted(error) or (click is not None and isinstance(error, click.Abort)):
        trap = _stopped(error)
        return _say(name, "interrupted" if trap is None else f"interrupted\n{trap}", INTERRUPTED)
    if click is not None and isinstance(error, click.exceptions.Exit):
        return int(error.exit_code)
    if click is not None and isinstance(error, click.ClickException):
        return _usage_error(error, name)
    if isinstance(error, Failure):
        return _say(name, error.message, error.status)
    if isinstance(error, PtxError):
        print_diagnostics(error.diagnostics, style_for("auto", sys.stderr), sys.stderr)
        return FINDINGS
    if isinstance(error, (LaunchError, Trap)):
        return _say(name, str(error), FINDINGS)
    if isinstance(error, OSError):
        place = _place(error)
        if place == _OUTPUT:
            _discard_output()
        return _say(name, f"{place}{error.strerror or error}", USAGE)
    if isinstance(error, MemoryError):
        return _say(name, "out of memory", USAGE)
    return _internal_error(error, name)


def _place(error: OSError) -> str:
    """What a system error is about; errors of streams and of the working directory do not say."""
    if error.filename:
        return f"{os.fsdecode(error.filename)}: "
    try:
        os.getcwd()
    except OSError:
        return "the working directory: "
    return _OUTPUT if error.errno in _OUTPUT_ERRORS else ""


def _say(name: str, message: str, status: int) -> int:
    text = "\n".join(printable(shortened(line)) for line in message.split("\n"))
    with suppress(OSError, ValueError):  # standard error may be closed: the status must suffice
        sys.stderr.write(f"{name}: {'' if status == INTERRUPTED else 'error: '}{text}\n")
    return status


def _usage_error(error: click.ClickException, name: str) -> int:
    import click

    context = getattr(error, "ctx", None)
    hint = f"\nTry '{name} --help' for help." if isinstance(error, click.UsageError) and context is not None else ""
    return _say(name, error.format_message() + hint, USAGE)


def _internal_error(error: BaseException, name: str) -> int:
    if os.environ.get("PTXTOOLS_DEBUG"):
        import traceback

        traceback.print_exception(error)
    frame, where = error.__traceback__, ""
    while frame is not None:
        where = f"{os.path.basename(frame.tb_frame.f_code.co_filename)}:{frame.tb_lineno}"
        frame = frame.tb_next
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    _say(name, f"internal error: {what} ({where})", INTERNAL)
    hint = "" if os.environ.get("PTXTOOLS_DEBUG") else "; PTXTOOLS_DEBUG=1 shows the traceback"
    address = report_address()
    where = f" at {address}" if address else " to its maintainers"
    return _say(name, f"this is a bug in {name}: please report it{where}, with the input{hint}", INTERNAL)


def report_address() -> str:
    """The address for bug reports: the one under `[project.urls]` of the installed package that packaging tools take
    for its issues ("Issues", "Bug Tracker", …); "" if there is none."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        listed = metadata("ptxtools").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    for text in map(str, listed):
        label, _, address = text.partition(",")
        if "".join(c for c in label.lower() if c.isalnum()) in _ISSUES:
            return address.strip()
    return ""


def _discard_output() -> None:
    """Keep Python from complaining at exit that it cannot flush."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - for the life of the process


def print_diagnostics(diagnostics: Sequence[Diagnostic], style: Style, stream: IO[str]) -> None:
    """Findings as text, each followed by a line end."""
    stream.write("".join(render(d, style) + "\n" for d in diagnostics))


# --- input ------------------------------------------------------------------------------------------------------------


def input_names(files: Sequence[str]) -> list[str]:
    """The given files, or standard input if there are none and it is not a terminal."""
    if files:
        if files.count(STDIN) > 1:
            raise usage_error("standard input ('-') can be read only once")
        return list(files)
    if is_terminal(sys.stdin):
        raise usage_error("no input: name a file, or pipe PTX into standard input")
    return [STDIN]


def read_input(name: str) -> bytes:
    """The bytes of a file, or of standard input for `-`. Raises Failure (status 2) if it cannot be read."""
    try:
        if name == STDIN:
            if sys.stdin is None:
                raise OSError(errno.EBADF, "it is closed")
            return read_all(sys.stdin.buffer)
        with open(name, "rb") as file:
            return read_all(file)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        shown = STDIN_NAME if name == STDIN else name
        raise Failure(f"{shown}: cannot be read: {reason}") from None


def write_output(path: str, data: bytes) -> None:
    """Write a whole file, or standard output for `-`; a file is written whole or not at all (`ptxtools.files.writing`).

    Raises Failure (status 2) if it cannot be written.
    """
    if path == STDIN:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    from ptxtools.files.writing import reason, write_whole

    sys.stdout.flush()  # the file may be /dev/stdout
    try:
        write_whole(path, lambda file: file.write(data))
    except (OSError, ValueError) as error:
        raise Failure(f"{path}: cannot be written: {reason(error)}") from None


# --- progress ---------------------------------------------------------------------------------------------------------


@contextmanager
def progress(label: str, total: int, quiet: bool = False) -> Iterator[Callable[[], None]]:
    """A progress line on standard error, on a terminal only; yields a function that counts one step.

    Nothing is shown in the first half second.
    """
    if quiet or total < 2 or not is_terminal(sys.stderr):
        yield lambda: None
        return
    import time

    started, done, shown = time.monotonic(), 0, False

    def step() -> None:
        nonlocal done, shown
        done += 1
        if shown or time.monotonic() - started > 0.5:
            shown = True
            bar = "█" * (done * 30 // total)
            sys.stderr.write(f"\r{label} {bar:░<30} {done}/{total}")
            sys.stderr.flush()

    try:
        yield step
    finally:
        if shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
