"""Observers: who is told what happens to warps while a launch runs, and the one interface through which both engines
tell.

An observer is an object with some of the methods of `Observer`. Those that it defines decide which events stand in the
program (`program.passes.instrument`) and what is passed on: nobody pays for what nobody listens to, and a program
without observers is as it was lowered. Events stop the warp; it goes on when all observers have returned. A run with
observers has one worker, so that events come one after another, and in the same order each time.

Observers that the package brings along, such as the run-time checkers, are provided by name, as engines are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from .providers import observers as provided

if TYPE_CHECKING:
    import numpy.typing as npt

    from ptxtools.diagnostics import Trap
    from ptxtools.diagnostics.findings import Finding

    from .claims import Claim
    from .events import View
    from .launch import Launch
    from .residents import Cta

Array: TypeAlias = "npt.NDArray[Any]"


@dataclass(slots=True)
class Access:
    """Accesses of some lanes to one state space.

    space: "global", "shared" or "local" (what a generic address means is found out); lanes: their numbers, ascending;
    addresses: theirs, in that space (u64; shared memory of another CTA of the cluster has its rank above bit 24); size:
    bytes of each; action: "read", "write", "atomic", or "copy" for what a cp.async will write; strength: "" for a
    weak access, else "volatile", "relaxed", "acquire", "release", "acq_rel" or "mmio" (8.4).
    """

    space: str
    lanes: Array
    addresses: Array
    size: int
    action: str
    strength: str

    @property
    def writes(self) -> bool:
        return self.action != "read"

    @property
    def strong(self) -> bool:
        """Whether it takes part in synchronisation."""
        return bool(self.strength)


class Observer:
    """What an observer may define; as they stand here the methods do nothing, and nobody calls them.

    `at` is the warp where it has stopped (`machine.events.View`): `at.mask` are the lanes that came, `at.warp` and
    `at.cta` who it is, `at.text` the instruction, `at.register("%r1")` a register by its name (docs/observers.md).
    `lanes` are numbers of lanes for which the guard of the instruction holds, ascending; of `instruction` and `retired`
    there may be none.
    """

    def grid_begun(self, launch: Launch) -> None:
        """A grid is about to run."""

    def grid_ended(self, launch: Launch) -> None:
        """A grid has run to its end, or to a trap."""

    def cta_begun(self, cta: Cta) -> None:
        """The first warp of a CTA begins."""

    def cta_ended(self, cta: Cta) -> None:
        """The last thread of a CTA has exited; work that only its end completes is done."""

    def warp_begun(self, at: View) -> None:
        """A warp begins."""

    def warp_ended(self, at: View) -> None:
        """The last threads of a warp are about to exit."""

    def instruction(self, at: View, lanes: Array) -> None:
        """Lanes come to an instruction of the PTX text: registers hold what it will read."""

    def retired(self, at: View, lanes: Array) -> None:
        """Lanes have executed an instruction: registers hold its results. One that leaves its place (`bra`, `brx`,
        `call`, `ret`, `exit`) is told of as it leaves; `trap` never is."""

    def permit(self, at: View, access: Access) -> Array | None:
        """Which lanes of an access are not to make it (flags, one for each of `access.lanes`); None: all make it."""

    def access(self, at: View, access: Access) -> None:
        """Lanes are about to access memory by a load, store, atomic, matrix load or store, cp.async, st.bulk, surface
        instruction or multimem (then at the address on each device). Kernel parameters and texture fetches are left
        out: both are read-only, and a fetch reads several texels for each lane."""

    def arrive(self, at: View, what: str, lanes: Array) -> None:
        """Lanes come to a barrier. what: "bar" or "arrive" (a barrier of the CTA, its number in at.source(0)), "cluster
        arrive", "cluster wait", or "mbarrier " and the operation, its address in at.addresses()."""

    def leave(self, at: View, what: str, lanes: Array) -> None:
        """Lanes go on behind a barrier. what: as for `arrive`; or "warp", for bar.warp.sync: at.source(0) is its
        mask."""

    def fence(self, at: View, lanes: Array) -> None:
        """Lanes are about to execute a fence or membar (at.op.opcode)."""

    def issued(self, claim: Claim) -> None:
        """Asynchronous work has been issued: cp.async, bulk and tensor copies, wgmma, tcgen05."""

    def completed(self, claim: Claim) -> None:
        """It is done; in a bulk copy out of shared memory a claim of its own is done when the source has been read."""

    def abandoned(self, claim: Claim, missing: str) -> None:
        """The CTA ends, and nobody waited for the work; what would have is missing. `completed` follows."""

    def called(self, at: View, function: str, lanes: Array) -> None:
        """Lanes are about to enter a function."""

    def returned(self, at: View, lanes: Array) -> None:
        """Lanes are about to return from a function, whose frame `at` still shows."""

    def trapped(self, trap: Trap) -> None:
        """The grid ends with a trap, a deadlock or a limit."""

    def wrote_shared(self, cta: Cta, offset: int, size: int) -> None:
        """An operation that is no access of a thread is about to write shared memory: copies, products. Of mbarriers
        `arrive` tells."""

    def wrote_local(self, at: View, lane: int, address: int, size: int) -> None:
        """The same of a thread's local memory."""

    def wrote_global(self, address: int, size: int) -> None:
        """The same of global memory."""

    def allows(self, address: int, size: int) -> bool:  # type: ignore[empty-body]
        """Whether such operations may reach bytes of global memory."""


#: The methods of an observer, which are the events that there are.
EVENTS = tuple(name for name in vars(Observer) if not name.startswith("_"))
#: Those for which single instructions have to be visible.
LINES = frozenset({"instruction", "retired"})
#: Those of asynchronous work.
WORK = frozenset({"issued", "completed", "abandoned"})
#: Those that are told of without anything in the program.
_OUTSIDE = WORK | {"grid_begun", "grid_ended", "trapped", "wrote_shared", "wrote_local", "wrote_global", "allows"}


def wants(observer: object) -> frozenset[str]:
    """The events that an observer, or a class of them, listens to: the methods that it defines."""
    kind = observer if isinstance(observer, type) else type(observer)
    own = {} if isinstance(observer, type) else getattr(observer, "__dict__", {})
    found = {name: own.get(name, getattr(kind, name, None)) for name in EVENTS}
    return frozenset(name for name, method in found.items() if method not in (None, getattr(Observer, name)))


def in_program(events: Iterable[str]) -> frozenset[str]:
    """Those of some events that stand in the program."""
    return frozenset(events) - _OUTSIDE


class Listeners:
    """The observers of one grid, by what they listen to."""

    def __init__(self, observers: Iterable[object]) -> None:
        self.observers = tuple(observers)
        methods: dict[str, list[Callable[..., Any]]] = {}
        for observer in self.observers:
            for name in wants(observer):
                methods.setdefault(name, []).append(getattr(observer, name))
        self._methods = {name: tuple(some) for name, some in methods.items()}
        self.hear_work = not WORK.isdisjoint(methods)

    def hear(self, event: str) -> bool:
        """Whether anybody listens to an event."""
        return event in self._methods

    def of(self, event: str) -> Sequence[Callable[..., Any]]:
        """Methods to call for an event, in the order of the observers."""
        return self._methods.get(event, ())

    def tell(self, event: str, *what: Any) -> None:
        """Tell all that listen to an event."""
        for method in self._methods.get(event, ()):
            method(*what)


# --- observers by name ------------------------------------------------------------------------------------------------


class Watch(Protocol):
    """Observers of a launch and of the grids that it leads to, and what they have found."""

    @property
    def findings(self) -> list[Finding]:
        """What was found so far."""

    def begin(self, grid: Any) -> Sequence[object]:
        """The observers of a grid that is about to run (`sim.device.Grid`)."""

    def end(self) -> list[Finding]:
        """All findings; the launch is over."""


@dataclass(frozen=True, slots=True)
class Maker:
    """make: the `Watch` of a launch on a device, for all names that share this maker; class_of: the observer that a
    name stands for, whose methods say what is put into programs."""

    make: Callable[[Any, frozenset[str]], Watch]
    class_of: Callable[[str], type]


def makers(names: Iterable[str]) -> dict[Maker, frozenset[str]]:
    """The makers of observers, with the names that each is for, in the order in which names were provided."""
    found: dict[Maker, frozenset[str]] = {}
    wanted = set(names)
    for name in [name for name in provided.names() if name in wanted]:
        maker = provided.find(name)
        found[maker] = found.get(maker, frozenset()) | {name}
    return found


def events_of(names: Iterable[str], observers: Iterable[object]) -> frozenset[str]:
    """All events that observers, some of them by name, listen to."""
    classes = [provided.find(name).class_of(name) for name in names]
    return frozenset[str]().union(*map(wants, [*classes, *observers]))
