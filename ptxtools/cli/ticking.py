"""What a long run says about itself: a line on a terminal, and a summary when it is asked or interrupted."""

from __future__ import annotations

import signal
import sys
import threading
import time
from math import prod
from typing import TYPE_CHECKING, Any

from ptxtools.diagnostics import shown
from ptxtools.diagnostics.colour import is_terminal
from ptxtools.diagnostics.text import printable

if TYPE_CHECKING:
    from ptxtools.machine.launch import Launch

#: Seconds until the line appears, and between two of them.
_FIRST, _NEXT = 2.0, 1.0
#: Seconds of a grid until its rate says anything.
_RATED = 1.0


class Ticker:
    """Shows that a long run goes on: elapsed seconds, CTAs, their rate and the time left on standard error, only on a
    terminal, after the first two seconds. The line is removed for the kernel's output and at the end.

    SIGUSR1 has it write a summary of the grid that runs, also without a terminal. replays: a debugger repeats parts of
    the run, and nothing is shown.
    """

    def __init__(self, quiet: bool, *, replays: bool = False) -> None:
        self._wanted = not quiet and not replays and is_terminal(sys.stderr)
        self._replays = replays
        self._shown = False
        self._launch: Launch | None = None
        self._started = self._since = time.monotonic()
        self._before: Any = None

    def grid(self, launch: Launch) -> None:
        """A grid begins."""
        self._launch, self._since = launch, time.monotonic()

    def clear(self) -> None:
        """Remove the line until the next update."""
        if self._shown:
            self._shown = False
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def __enter__(self) -> Ticker:
        if not self._replays and threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGUSR1, self._asked)
        if self._wanted:
            self._stop = threading.Event()
            self._thread = threading.Thread(target=self._tick, daemon=True)
            self._thread.start()
        return self

    def _tick(self) -> None:
        wait = _FIRST
        while not self._stop.wait(wait):
            wait = _NEXT
            self._shown = True
            now = time.monotonic()
            launch, taken = self._launch, now - self._since
            ctas = "" if launch is None else progress(launch, taken)
            sys.stderr.write(f"\r\x1b[Krunning for {clock(now - self._started)}{': ' if ctas else ''}{ctas}")
            sys.stderr.flush()

    def _asked(self, *_: object) -> None:
        self.clear()
        sys.stderr.write(self._summary())
        launch = self._launch
        if launch is not None and launch.summary is not None:
            try:
                from ptxtools.sim.traps import locate

                found = locate(launch.summary(), launch.program, launch.context.places)
                sys.stderr.write("".join(f"    {printable(line)}\n" for line in found.details))
            except Exception as error:  # it came between two steps of a worker's work: the run goes on
                sys.stderr.write(f"    where threads are cannot be told just now ({type(error).__name__})\n")
        sys.stderr.flush()

    def _summary(self) -> str:
        taken = time.monotonic() - self._since
        if self._launch is None:
            return f"ptx-run: no grid has begun, for {clock(taken)}\n"
        begun, total = "all" if self._launch.begun is None else "none", prod(self._launch.grid)
        ctas = progress(self._launch, taken) or f"{total:,} CTA{'s' * (total != 1)}, {begun} waiting to begin"
        return f"ptx-run: {printable(shown(self._launch.program.kernel))} runs for {clock(taken)}: {ctas}\n"

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGUSR1, self._before)
        if self._wanted:
            self._stop.set()
            self._thread.join()
            self.clear()


def progress(launch: Launch, seconds: float) -> str:
    """Such as "396 of 4,096 CTAs done, 33/s, 1:52 min left", of a grid that runs for so long; "" if all have begun.

    As many as the device holds count as not done, so at least this many are.
    """
    total = prod(launch.grid)
    begun = launch.begun
    if begun is None:
        return ""
    started = begun()
    if started >= total:
        return ""
    done = max(started - launch.resident, 0)
    text = f"{done:,} of {total:,} CTAs done"
    if not done or seconds < _RATED:
        return text
    rate = done / seconds
    return f"{text}, {rate:,.{0 if rate >= 10 else 2}f}/s, {clock((total - done) / rate)} left"


def clock(seconds: float) -> str:
    """Such as `7 s`, `2:05 min`, `1:00:07 h`."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes = f"{whole // 60 % 60:02}:{whole % 60:02}"
    return f"{minutes.removeprefix('0')} min" if whole < 3600 else f"{whole // 3600}:{minutes} h"
