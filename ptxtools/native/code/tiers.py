"""When handlers, regions, and kernels that run in unison, are compiled well: once their program has run for so long
that it pays, beside it.

Handlers that no process has compiled before are made quickly first, so that a kernel begins at once; records get better
ones later.

Until then a region's record goes on with the next one, which begins the same operations one by one. Regions that some
process has compiled before are on disk, and there from the start.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from . import library
from .structures import RECORD

if TYPE_CHECKING:
    from ptxtools.program.program import Op

#: Thread-instructions of a program before its regions are compiled: about as much time as LLVM takes for them.
PAYS = 64_000_000
#: The same of a kernel in unison, for each of its operations.
PAYS_IN_UNISON = 10_000_000
#: The same before runs are compiled quickly, whose operations are done one by one until then.
PAYS_QUICKLY = 8_000_000
#: The same before handlers of matrix products are compiled well, which then take a third of the time.
PAYS_FOR_PRODUCTS = 8_000_000
#: Compile them when a program is made ready, and wait for it.
AT_ONCE = False
#: Begin with handlers that were compiled quickly, where others are not there.
QUICK = True
#: The handler of a region that is not there yet.
PASS = "t_pass"
#: That of a run that is not there yet: its operations one by one.
DETOUR = "t_detour"

#: Held while records get other handlers.
_patching = threading.Lock()
_running: list[threading.Thread] = []
#: What is to be compiled well beside the run, once the process has worked for so many seconds longer.
_waiting: list[Callable[[], None]] = []
_SECONDS = 1.0
#: What kept regions from being compiled, each said once.
_failures: set[str] = set()


def first_code(
    handlers: dict[str, Op],
    ends: Collection[str] = (),
    simple: Callable[[], dict[str, Op]] | None = None,
    often: Callable[[], Collection[str]] = tuple,
) -> tuple[dict[str, int], list[str]]:
    """Addresses of the loop's functions and of handlers for a program that begins; and the names to be compiled better
    once that pays. ends, simple, often: as of `library.early`."""
    return library.early(handlers, ends, simple, often) if QUICK and not AT_ONCE else (library.addresses(handlers), [])


#: What gives the addresses of handlers, and what says whether it has them without compiling.
Source: TypeAlias = tuple[Callable[[dict[str, "Op"]], dict[str, int]], Callable[[dict[str, "Op"]], bool]]


class Regions:
    """What of an encoded program is compiled once that pays: `ops` by the names of their handlers, and the numbers of
    the records with these names and others. pays: thread-instructions after which they are compiled; better: names that
    have been compiled quickly until then. source: what else compiles them, and says whether that is done; instead: the
    handlers that records must still have."""

    def __init__(
        self, code: ctypes.Array[ctypes.c_char], ops: dict[str, Op], places: dict[str, list[int]], pays: int = 0,
        better: Sequence[str] = (), source: Source | None = None,
        instead: Mapping[str, int] | None = None,
    ) -> None:  # fmt: skip
        self.code, self.ops, self.places, self.pays, self.better = code, ops, places, pays, list(better)
        self.spent, self.instead = 0, instead or {}
        self.source = source or (library.addresses, library.at_hand)
        self.filled = not ops
        self._lock = threading.Lock()
        self.waiting = bool(ops)
        if self.waiting and AT_ONCE:
            self._fill()
        elif self.waiting and not better and self.source[1](ops):
            self._try()

    def ran(self, instructions: int, *, whole: bool = False) -> None:
        """A launch has executed so many thread-instructions until now; whole: it is over."""
        if not self.waiting:
            return
        if self.spent + instructions <= (self.pays or PAYS):
            self.spent += instructions * whole  # of launches at once, one may be lost: no more than a guess is
            return
        with self._lock:
            begin, self.waiting = self.waiting, False
        if begin:
            _running[:] = [thread for thread in _running if thread.is_alive()]
            # A worker that counts is a daemon, and what it starts would be one: the process would end below LLVM.
            _running.append(threading.Thread(target=self._try, name="ptxtools regions", daemon=False))
            _running[-1].start()

    def complete(self) -> None:
        """Compile what is not there, and wait for it (`--tier regions`)."""
        if not self.filled:
            self._fill()

    def _try(self) -> None:
        """Compile what is not there. Where that fails, the run goes on record by record, and a warning says why."""
        _reported(self._fill)

    def _fill(self) -> None:
        """Compile what is not there, and let the records call it. What is hot does not wait for a loop that was
        compiled well, either: until there is one, it goes with the other."""
        self.waiting = False
        if self.better:
            self._place(library.better(self.better, self.ops))
        else:
            if self.source[0] is library.addresses and not AT_ONCE:
                self._place(library.ahead(self.ops))
            self._place(self.source[0](self.ops))
        self.filled = True

    def _place(self, addresses: Mapping[str, int]) -> None:
        """Let the records call what is there."""
        first = ctypes.addressof(self.code) + RECORD.offset("handler")
        with _patching:
            for name in self.places.keys() & addresses.keys():
                for at in self.places[name]:  # aligned, so that a worker sees the old address or the new one
                    handler = ctypes.c_int64.from_address(first + RECORD.size * at)
                    if self.instead.get(name, handler.value) == handler.value:
                        handler.value = addresses[name]


def beside(work: Callable[[], None], share: float = 1.0) -> None:
    """Compile something well in a while, or in a share of it: most processes end before that."""
    _waiting.append(work)
    _look_again(work, time.process_time() + share * _SECONDS, share * _SECONDS)


def _look_again(work: Callable[[], None], moment: float, seconds: float) -> None:
    """Begin with something once this process has taken so much processor time; look whether it has in some seconds."""

    def look() -> None:
        if time.process_time() >= moment:
            _begin(work)
        elif work in _waiting:
            _look_again(work, moment, 2 * seconds)

    timer = threading.Timer(seconds, look)
    timer.daemon = True
    with contextlib.suppress(RuntimeError):  # the process ends
        timer.start()


def _begin(work: Callable[[], None]) -> None:
    with contextlib.suppress(ValueError):  # it has begun
        _waiting.remove(work)
        now(work)


def now(work: Callable[[], object]) -> None:
    """Compile something beside the run from now on."""
    with contextlib.suppress(RuntimeError):  # the process ends
        # not a daemon, as above
        thread = threading.Thread(target=_reported, args=[work], name="ptxtools functions", daemon=False)
        thread.start()
        _running.append(thread)


def _reported(work: Callable[[], object]) -> None:
    """Do something that only costs speed where it fails."""
    try:
        work()
    except Exception as error:  # a defect of the generator or of LLVM
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        if reason not in _failures:
            _failures.add(reason)
            warnings.warn(f"hot code runs slower, as it could not be compiled ({reason})", RuntimeWarning, 2)


def settle() -> None:
    """Wait until all that has been begun, or is to begin in a while, is compiled."""
    for work in list(_waiting):
        _begin(work)
    _wait()


def _wait() -> None:
    """Wait until all that has been begun is compiled."""
    while _running:
        _running.pop().join()
