"""Observers: objects that are told what happens to warps during a launch, by one interface for both engines.

An observer is an object with some of the methods of `Observer`. The methods that it defines decide which events are
inserted into the program (`program.passes.instrument`) and which are passed on. An event that nobody listens to costs
nothing; without observers the program is exactly as it was lowered. An event stops the warp until all observers have
returned. A run with observers has one worker, so events come one at a time, and in the same order in every run.

The observers of the package, such as the run-time checkers, are provided by name, as engines are. They may share a grid
among all workers as long as they have nothing to say (`Alone`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from threading import RLock
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias
from weakref import WeakKeyDictionary

from ptxtools.program.passes.instrument import REGISTERS as REGISTER_LOOKS
from ptxtools.program.passes.instrument import Interest
from ptxtools.records import dataclass

from .providers import observers as provided

if TYPE_CHECKING:
    import numpy.typing as npt

    from ptxtools.diagnostics import Trap
    from ptxtools.diagnostics.findings import Finding, Verdict
    from ptxtools.program.program import Op, Program

    from .claims import Claim, Span
    from .events import View
    from .gates import Gate
    from .launch import Launch
    from .logs import Log
    from .residents import Cta

Array: TypeAlias = "npt.NDArray[Any]"
#: Is told of rows of a log (`logs`), with the resident CTAs that Python knows, by their places in the grid.
Logged: TypeAlias = "Callable[[Array, dict[tuple[int, int, int], Cta]], object]"


@dataclass(slots=True)
class Access:
    """Accesses of some lanes to one state space. space: "global", "shared" or "local" (generic addresses are resolved);
    lanes: their numbers, ascending; addresses: one for each lane, in that space (u64; in shared memory of another CTA
    of the cluster its rank is above bit 24); size: bytes of each access; action: "read", "write", "atomic", or "copy"
    for the bytes that a cp.async will write; strength: "" for a weak access, else "volatile", "relaxed", "acquire",
    "release", "acq_rel" or "mmio" (8.4)."""

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
    """The methods that an observer may define; those of this class do nothing and are never called.

    `at` is the stopped warp (`machine.events.View`): `at.mask` has the lanes that came, `at.warp` and `at.cta` identify
    the warp, `at.text` is the instruction, `at.register("%r1")` is a register by name (docs/observers.md). `lanes` are
    the numbers of the lanes whose guard holds, ascending; in `instruction` and `retired` there may be none.
    """

    def grid_begun(self, launch: Launch) -> None:
        """A grid is about to run."""

    def grid_ended(self, launch: Launch) -> None:
        """A grid has run to its end, or to a trap."""

    def cta_begun(self, cta: Cta) -> None:
        """The first warp of a CTA begins."""

    def cta_ended(self, cta: Cta) -> None:
        """The last thread of a CTA has exited, and work that waits for its end has completed."""

    def warp_begun(self, at: View) -> None:
        """A warp begins."""

    def warp_ended(self, at: View) -> None:
        """The last threads of a warp are about to exit."""

    def instruction(self, at: View, lanes: Array) -> None:
        """Lanes come to an instruction of the PTX text: registers hold what it will read."""

    def retired(self, at: View, lanes: Array) -> None:
        """Lanes have executed an instruction: registers hold its results. For `bra`, `brx`, `call`, `ret` and `exit`
        this comes as they jump; for `trap`, never."""

    def counted(self, launch: Launch) -> None:
        """A grid has run to its end, or to a trap: `launch.counts` says how often instructions were reached, row by row
        of `launch.program.counters`."""

    def measured(self, launch: Launch) -> None:
        """As `counted`, of a run that has measured its accesses to global and shared memory as well."""

    def permit(self, at: View, access: Access) -> Array | None:
        """The lanes that must not make an access (flags, one for each of `access.lanes`); None: all may make it."""

    def delays(self, at: View) -> bool:  # type: ignore[empty-body]
        """Whether lanes that are about to access memory have to stay, because this observer has made them wait
        (`at.hold`). They come again, and nobody else is told before."""

    def access(self, at: View, access: Access) -> None:
        """Lanes are about to access memory by a load, store, atomic, matrix load or store, cp.async, st.bulk, surface
        instruction or multimem (then at the address on each device). Kernel parameters are left out, which are
        read-only, and texture fetches (`sampled`)."""

    def sampled(self, at: View, lanes: Array, addresses: Array, size: int) -> None:
        """Lanes fetch texels of `size` bytes from a texture; a lane with several of them comes several times."""

    def arrive(self, at: View, what: str, lanes: Array) -> None:
        """Lanes come to a barrier. what: "bar" or "arrive" (a barrier of the CTA, its number in at.source(0)), "cluster
        arrive", "cluster wait", or "mbarrier " and the operation, its address in at.addresses()."""

    def leave(self, at: View, what: str, lanes: Array) -> None:
        """Lanes continue after a barrier. what: as for `arrive`; or "warp", for bar.warp.sync: at.source(0) is its
        mask."""

    def fence(self, at: View, lanes: Array) -> None:
        """Lanes are about to execute a fence, a membar or griddepcontrol (at.op.opcode)."""

    def together(self, at: View, lanes: Array) -> None:
        """Lanes of a warp that have met are about to execute a warp-wide instruction (shfl.sync, vote.sync, mma,
        ldmatrix …), whose operands are sources of `at.op` from number 1 on, its member mask the last."""

    def control(self, at: View, lanes: Array) -> None:
        """Lanes are about to ask for a cluster that has not started, or look at an answer (clusterlaunchcontrol); the
        operands are sources of `at.op` from number 1 on."""

    def branch(self, at: View, lanes: Array) -> None:
        """Lanes come to a branch with .uni. lanes: those that take it, or go where the first one goes."""

    def unwritten(self, at: View, lanes: Array) -> None:
        """Lanes are about to execute an operation that reads or writes registers which a lane might read before it has
        written them; `at.op.detail` says which (`program.details.Touch`)."""

    def in_flight(self, at: View, lanes: Array) -> None:
        """The same of registers that asynchronous tensor instructions read or write; those instructions are not told
        of (`issued` is)."""

    def fetched(self, at: View, access: Access) -> None:
        """Lanes are about to issue a cp.async that reads these bytes. `access` is told of them, too, unless how much is
        read is decided as it runs: source 2 of `at.op` is the size then, or the predicate that ignores the source."""

    def grouped(self, at: View, commit: bool, pending: int | None) -> None:
        """The lanes of `at.mask` put their copies (cp.async) into a group if `commit`, and wait until at most `pending`
        groups are left; -1: none, and no copy without a group; None: they do not wait. Only where nobody listens to
        `issued` and its kin: copies are complete at once then."""

    def bulk_grouped(self, at: View, lanes: Array) -> None:
        """Lanes have put their bulk copies into a group, or have waited for groups (`at.op.detail`); those of cp.async
        too, where they may end late."""

    def tensor_waited(self, at: View, stores: bool) -> None:
        """A warp has come to tcgen05.wait::st (`stores`) or ::ld."""

    def issued(self, claim: Claim) -> None:
        """Asynchronous work has been issued: cp.async, bulk and tensor copies, wgmma, tcgen05."""

    def completed(self, claim: Claim) -> None:
        """The work is done. For a bulk copy out of shared memory, another claim ends when the source has been read."""

    def abandoned(self, claim: Claim, missing: str) -> None:
        """The CTA ends, and nobody has waited for the work; missing: the wait that should have. `completed` follows."""

    def called(self, at: View, function: str, lanes: Array) -> None:
        """Lanes are about to enter a function."""

    def returned(self, at: View, lanes: Array) -> None:
        """Lanes are about to return from a function; `at` still shows its frame."""

    def trapped(self, trap: Trap) -> None:
        """The grid ends with a trap, a deadlock or a limit."""

    def found(self, at: View, lane: int, finding: Finding) -> None:
        """A checker that looks at grids has something to report about a lane; told of equal reports once."""

    def leaked(self, at: View, cta: Cta, kind: str, message: str) -> None:
        """A CTA has not given something back; `at` is where it got it, or where that shows. kind: "tensor-memory",
        which is a trap if nobody listens, "alloc-permit", or "mbarrier": its memory is used anew."""

    def launched(self, at: View, lane: int, child: Any) -> None:
        """A lane launches a child grid (`sim.children.Child`)."""

    def queued(self, at: View, lane: int, work: Any) -> None:
        """A lane queues a copy or a fill behind its grid (`sim.children.Work`)."""

    def tensor(self, at: View, lane: int, spans: Sequence[Span]) -> None:
        """A lane issues an instruction that reads and writes tensor memory (`machine.claims.Span`); or has allocated
        some: of kind "fresh"."""

    def matrices(self, at: View, lane: int, spans: Sequence[Span]) -> None:
        """A lane issues a tcgen05.mma or tcgen05.cp that reads these bytes of shared memory."""

    def tensormap(self, at: View, lane: int, address: int, what: str) -> None:
        """A lane works with the tensor map at a generic address. what: "used" by a copy, or "changed" by
        tensormap.replace or tensormap.cp_fenceproxy."""

    def transacted(self, at: View, cta: Cta, offset: int, size: int) -> None:
        """A copy that `at` issued is about to complete `size` bytes of transactions of an mbarrier in shared memory."""

    def signalled(self, at: View, cta: Cta, offset: int) -> None:
        """A tcgen05.commit is about to arrive at an mbarrier in shared memory."""

    def copies(self, at: View, lane: int, cta: Cta, offset: int, size: int) -> None:
        """A lane issues a bulk or tensor copy of `size` bytes of shared memory."""

    def sent(self, at: View, lane: int, cta: Cta, pick: Callable[[Array], Array]) -> None:
        """A lane issues a bulk or tensor copy of shared memory to global memory. pick: of an array of bytes, one
        for each of the CTA's shared memory, those that are copied."""

    def updates(self, at: View, lane: int, spans: Sequence[Span]) -> None:
        """A lane issues a bulk reduction, which reads and writes these bytes."""

    def brought(self, at: View, lane: int, cta: Cta, offset: int, source: Sequence[Span]) -> None:
        """A bulk copy that a lane has issued has written shared memory from an offset on, as `wrote_shared` has told
        before; source: what it has copied."""

    def wrote_shared(self, cta: Cta, offset: int, size: int) -> None:
        """An operation that is not an access of a thread (a copy, a product) is about to write shared memory. For
        mbarriers there is `arrive`."""

    def wrote_local(self, at: View, lane: int, address: int, size: int) -> None:
        """Likewise for local memory of a thread."""

    def wrote_global(self, address: int, size: int) -> None:
        """Likewise for global memory."""

    def discarded(self, address: int, size: int) -> None:
        """Bytes of global memory are left without a value; an `access` that writes them has been told before."""

    def allows(self, address: int, size: int) -> bool:  # type: ignore[empty-body]
        """Whether such an operation may access these bytes of global memory."""


#: All events: the methods of `Observer`.
EVENTS = tuple(name for name in vars(Observer) if not name.startswith("_"))
_EVENT_NAMES = frozenset(EVENTS)
#: Events that need every single instruction to be visible.
LINES = frozenset({"instruction", "retired"})
#: Events that need registers apart from one another.
REGISTERS = frozenset({"unwritten", "in_flight"})
#: Events of grids as a whole, which no warp waits for.
GRIDS = frozenset({"grid_begun", "grid_ended", "counted", "trapped"})
#: Events that what lanes execute is counted for.
COUNTS = frozenset({"counted", "measured"})
#: Events of asynchronous work.
WORK = frozenset({"issued", "completed", "abandoned"})
#: Events that are announced by services, not by operations of the program.
_OUTSIDE = WORK | {
    "grid_begun",
    "grid_ended",
    "counted",
    "measured",
    "trapped",
    "found",
    "leaked",
    "launched",
    "queued",
    "tensor",
    "matrices",
    "tensormap",
    "transacted",
    "signalled",
    "copies",
    "sampled",
    "bulk_grouped",
    "tensor_waited",
    "sent",
    "updates",
    "brought",
    "wrote_shared",
    "wrote_local",
    "wrote_global",
    "discarded",
    "allows",
}


def wants(observer: object) -> frozenset[str]:
    """The events that an observer, or a class of observers, listens to: the methods that it defines."""
    if isinstance(observer, type):
        return _defined(observer)
    found, own = _defined(type(observer)), getattr(observer, "__dict__", {})
    changed = _EVENT_NAMES.intersection(own)
    if not changed:
        return found
    return found - changed | {name for name in changed if own[name] not in (None, getattr(Observer, name))}


def _defined(kind: type) -> frozenset[str]:
    """The events whose methods a class of observers defines."""
    known = _known_events.get(kind)
    if known is None:
        methods = {name: getattr(kind, name, None) for name in EVENTS}
        known = frozenset(name for name, method in methods.items() if method not in (None, getattr(Observer, name)))
        _known_events[kind] = known
    return known


#: `_defined` of the classes that have been asked for.
_known_events: WeakKeyDictionary[type, frozenset[str]] = WeakKeyDictionary()


def in_program(events: Iterable[str]) -> frozenset[str]:
    """The events, among these, that operations of the program announce."""
    return frozenset(events) - _OUTSIDE


class Listeners:
    """The observers of one grid, by event. shared: several workers tell them; one method is called at a time."""

    def __init__(self, observers: Iterable[object], *, shared: bool = False) -> None:
        self.observers = tuple(observers)
        wanted = tuple(map(wants, self.observers))
        self._listening = _listening(wanted)
        self._methods: dict[str, Sequence[Callable[..., Any]]] = {}  # of events that were asked for
        self._lock = RLock() if shared else None
        self.hear_work = not WORK.isdisjoint(self._listening)
        #: Whether any wants to be told of the work of warpgroups, beside `together`.
        self.hear_warpgroups = any(
            not WORK.isdisjoint(names) and getattr(observer, "WARPGROUPS", True)
            for observer, names in zip(self.observers, wanted, strict=True)
        )
        #: Whether they listen to nothing but grids as a whole, and what is counted.
        self.aloof = self._listening.keys() <= GRIDS | COUNTS
        #: Whether any observer wants flags beside shared memory (`residents.Cta.flags`).
        self.flags = any(getattr(observer, "FLAGS", False) for observer in self.observers)
        self.trial = 0  # the observers are those of a first look (`Doubt`), or a closer one (2)
        #: Bytes of shared memory that have a word which says who has touched them (`filters.Bounds`); 0: none have.
        pieces = [getattr(observer, "owners", 0) for observer in self.observers]
        self.owners = min(filter(None, pieces), default=0)
        told = [one for one, names in zip(self.observers, wanted, strict=True) if not names.isdisjoint(LINES)]
        #: Whether any observer wants bytes of shared memory marked that copies write (`filters.Bounds.marks`).
        self.marks = any(getattr(observer, "MARKS", False) for observer in self.observers)
        #: Whether any wants to know of bytes of shared memory when they were stored (`filters.Bounds.proxies`).
        self.proxies = any(getattr(observer, "proxies", False) for observer in self.observers)
        #: Whether any keeps numbers of asynchronous work beside it (`filters.Bounds.flights`).
        self.flights = any(getattr(observer, "flights", False) for observer in self.observers)
        #: What says of which instructions the only observer of instructions is told (`gates`).
        self.gate: Gate | None = getattr(told[0], "gate", None) if len(told) == 1 else None
        #: Where an engine may write the events of an observer, who is told by rows, with `logged`.
        self.log, self.logged = self._log()

    def _log(self) -> tuple[Log | None, Logged | None]:
        """The log of the only observer with one, unless others listen to its events."""
        having = [observer for observer in self.observers if getattr(observer, "log", None) is not None]
        if len(having) != 1:
            return None, None
        log: Log = having[0].log  # type: ignore[attr-defined]
        if any(len(self.of(event)) > 1 for event in log.events):
            return None, None
        return log, having[0].logged  # type: ignore[attr-defined]

    def hear(self, event: str) -> bool:
        """Whether anybody listens to an event."""
        return event in self._listening

    def of(self, event: str) -> Sequence[Callable[..., Any]]:
        """Methods to call for an event, in the order of the observers."""
        known = self._methods.get(event)
        if known is None:
            methods = [getattr(self.observers[number], event) for number in self._listening.get(event, ())]
            lock = self._lock
            known = tuple(methods if lock is None else [_in_turn(method, lock) for method in methods])
            self._methods[event] = known
        return known

    def tell(self, event: str, *what: Any) -> None:
        """Tell all that listen to an event."""
        for method in self.of(event):
            method(*what)


@lru_cache(256)
def _listening(wanted: tuple[frozenset[str], ...]) -> Mapping[str, Sequence[int]]:
    """By event the numbers of the observers that listen to it; wanted: which events each listens to."""
    found: dict[str, list[int]] = {}
    for number, names in enumerate(wanted):
        for name in names:
            found.setdefault(name, []).append(number)
    return found


def _in_turn(method: Callable[..., Any], lock: RLock) -> Callable[..., Any]:
    """A method that one thread at a time executes."""

    def called(*what: Any) -> Any:
        with lock:
            return method(*what)

    return called


# --- observers by name ------------------------------------------------------------------------------------------------


class Watch(Protocol):
    """The observers of a launch and of the grids that it starts, and their findings. shared: several workers run the
    present grid, so that whatever is found raises `Alone`."""

    shared: bool

    @property
    def findings(self) -> list[Finding]:
        """Findings so far."""

    @property
    def verdict(self) -> Verdict | None:
        """What is said of a launch without findings, if anything."""

    @property
    def deciders(self) -> Collection[str]:
        """What sorts of lines decide the order of a launch (`Verdict.decided_by`)."""

    @property
    def decisive(self) -> Collection[tuple[str, int | None]]:
        """File and line of accesses that decide it, plain ones too."""

    def begin(self, grid: Any) -> Sequence[object]:
        """The observers of a grid that is about to run (`sim.device.Grid`)."""

    def saved(self) -> Callable[[], None]:
        """What puts back all that is known now, if the grid runs again from the beginning (`Doubt`)."""

    def end(self) -> list[Finding]:
        """All findings; the launch is over."""


@dataclass(frozen=True, slots=True)
class Maker:
    """make: makes the `Watch` of a launch on a device, for all names with this maker; class_of(name,
    trial=False): the observer class of a name, or the one for its first look (`Doubt`), whose methods decide which
    events are inserted into programs."""

    make: Callable[[Any, frozenset[str]], Watch]
    class_of: Callable[..., type]


@cache
def makers(names: frozenset[str]) -> Mapping[Maker, frozenset[str]]:
    """The makers of observers, with the names that each is for, in the order in which names were provided."""
    found: dict[Maker, frozenset[str]] = {}
    for name in [name for name in provided.names() if name in names]:
        maker = provided.find(name)
        found[maker] = found.get(maker, frozenset()) | {name}
    return found


def classes_of(names: Iterable[str], *, trial: int = 0) -> list[type]:
    """The classes of observers by name; trial: those of a first look (`Doubt`)."""
    return [provided.find(name).class_of(name, trial=trial) for name in names]


def events_of(names: Iterable[str], observers: Iterable[object], *, trial: int = 0) -> frozenset[str]:
    """All events that observers, some of them by name, listen to; trial: as of `classes_of`."""
    return frozenset[str]().union(*map(wants, [*classes_of(names, trial=trial), *observers]))


# --- which of a program's operations they look at ---------------------------------------------------------------------


#: What a static method `concerned(program, device)` of a class of observers gives: whether an event in the program (an
#: operation "observe.access" and so on) can matter to it at all; None: all can. It must not keep the program alive.
Concerned: TypeAlias = "Callable[[Op], bool] | None"


def concerned(kind: type, program: Program, device: Any) -> Concerned:
    """What says which events of a program can matter to a class of observers; None: all of them."""
    says: Callable[[Program, Any], Concerned] | None = getattr(kind, "concerned", None)
    return None if says is None else says(program, device)


def interests_of(observers: Iterable[object], program: Program, device: Any) -> dict[type, Interest]:
    """What observers, or classes of them, want to be told of in a program, by their class."""
    found: dict[type, Interest] = {}
    for one in observers:
        kind = one if isinstance(one, type) else type(one)
        events = in_program(wants(one)) | (found[kind].events if kind in found else frozenset())
        found[kind] = Interest(events, concerned(kind, program, device), getattr(kind, "BOUNDS", False))
    return found


class Doubt(Exception):  # noqa: N818 - no error: nobody but `sim.trial` sees it
    """An observer that only looks whether there is anything to look for has seen something. A class of observers that
    has such a first look says with a static method `trial(program)` whether it is worth while: True, False where it is
    not possible, None where there is nothing to look for."""


class Closer(Doubt):
    """The same, where a closer look may see that there is nothing. A class of observers that has one says with a static
    method `closer(program)` whether it is possible; to others the closer look is a first one."""


class Guessed(Doubt):
    """The same, where a first look has taken for granted what does not hold: it looks again, without that."""


class Alone(Doubt):
    """What all workers have shared has to be looked at again by one, in the same way: there is something to report, or
    the run ends early. A class of observers says with a static method `shares(program)` whether its first look at a
    grid, or its only one, can be shared."""


class Anew(Exception):  # noqa: N818 - no error: nobody but `sim.trial` sees it
    """What an observer has seen asks for another run from the beginning, in which it looks closer. A class of observers
    that may ask so says with a static method `restarts(program, device)` whether it might; it does so only where
    `Grid.again` is set."""


def may_restart(classes: Iterable[type], program: Program, device: Any) -> bool:
    """Whether any class of observers may ask for another run."""
    return any(one.restarts(program, device) for one in classes if hasattr(one, "restarts"))


def may_share(classes: Iterable[type], program: Program) -> bool:
    """Whether all classes of observers let workers share a grid."""
    return all(hasattr(one, "shares") and one.shares(program) for one in classes)


def suspects_of(classes: Iterable[type], device: Any, program: Program) -> frozenset[int]:
    """Lines of loads whose results are to be followed (`Program.suspects`), as `suspects(device, program)` of classes
    says."""
    found = (one.suspects(device, program) for one in classes if hasattr(one, "suspects"))
    return frozenset[int]().union(*found)


def wants_trial(classes: Iterable[type], program: Program, *, closer: bool = False) -> bool:
    """Whether any class of observers has a first look at a program, or a closer one, and none needs more."""
    says = []
    for one in classes:
        if hasattr(one, "trial"):
            says.append(one.closer(program) if closer and hasattr(one, "closer") else one.trial(program))
    return True in says and False not in says


def touches(events: Iterable[str], program: Program) -> bool:
    """Whether a program whose registers are apart has any that those who listen to these events are told of."""
    return any(any(find(program)) for look, find in REGISTER_LOOKS.items() if look.partition(".")[2] in events)


def state_of(names: frozenset[str], device: Any) -> Hashable:
    """What `concerned` of classes of observers, by name, depends on beside the program: their `state(device)`."""
    return tuple([state(device) for state in _states(names)])


@cache
def _states(names: frozenset[str]) -> Sequence[Callable[[Any], Hashable]]:
    return [one.state for one in classes_of(names) if hasattr(one, "state")]
