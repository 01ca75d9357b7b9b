"""Filters: what lets an engine pass events by that no observer would have anything to say about.

An observer that decides about accesses may have one method more, `filter(launch)`, which gives `Bounds`: where accesses
lie that it would allow without a word; or several of them, as many for each launch of a program, which all have to. Of
the other events, `passing(op)` says when it would do nothing. An engine may then go on without telling it. It is told
of all others; and where several listen, all are told unless all would have nothing to say. A class of observers with
`REGIONS` set leaves its accesses to engines also where those look at several at once, in the order in which the kernel
makes them or not: all that it says of them is in its bounds, flags, and words of owners.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ptxtools.program.operations import ADDRESSED
from ptxtools.records import dataclass

from .observers import wants

if TYPE_CHECKING:
    import numpy.typing as npt

    from ptxtools.program.program import Op, Program

    from .clocks import Clocks
    from .launch import Launch
    from .observers import Listeners
    from .repeats import Repeats
    from .residents import Schedule

Array: TypeAlias = "npt.NDArray[Any]"

#: State spaces in which accesses can be bounded.
SPACES = ("global", "shared", "local")
#: When an event needs nobody (`passing`), all of these together. WHOLE: all threads of the warp come; NAMED: the member
#: masks of those that come (the last source) have all threads of the warp; COUNTED: thread counts (source 1) are
#: multiples of 32, and not more than the CTA has threads, in whole warps; UNIFORM: all lanes that are there come, or
#: none. In any case it does where no lane comes, and where that is NOBODY nowhere else. COMES: threads that come to
#: barriers of the whole CTA are counted; with the last one another epoch begins (`Bounds.owners`). INITIALISED: source
#: 0 is the address of one mbarrier of the own CTA, which is initialised. FENCES: a fence for the asynchronous proxy is
#: noted if all threads of the warp come (`Bounds.proxies`). MATRICES: what a product of a warpgroup reads is looked at
#: natively, once the observer has named the places (`Products.take_over_reads`). REPEATS: a wait for a phase of an
#: mbarrier, INITIALISED, is what it was when the observer noted it (`Bounds.repeats`), and has failed again. TURNS: all
#: threads of the warp arrive at the cluster's barrier, none of which has arrived and not waited; or they wait, or leave
#: the wait, of which nobody was told that they had arrived (`View.take_turns`). JOINS: warps that come as a whole to a
#: barrier of the CTA or the cluster, and go, learn what others know (`Bounds.clocks`), and lanes of a warp likewise.
#: PHASES: threads that arrive at an mbarrier, INITIALISED, or wait for it, tell and learn what they know, if the
#: observer has left that mbarrier to native code; otherwise it is as without, where there is REPEATS, and nothing
#: passes where there is not.
ALWAYS, WHOLE, NAMED, COUNTED, UNIFORM, NOBODY, COMES, INITIALISED, FENCES, MATRICES, REPEATS, TURNS, JOINS, PHASES = (
    0,
    1,
    2,
    4,
    8,
    16,
    32,
    64,
    128,
    256,
    512,
    1024,
    2048,
    4096,
)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Accesses that nobody has to be told of: aligned to their size where that is a power of two, and each lane inside
    one of the stretches.

    reads, writes: by state space (`SPACES`) the stretches of addresses, `stretches`; of shared memory offsets in any
    CTA of the cluster. An atomic counts as a write. asks: whether all accesses of an operation are told of; it depends
    on nothing but the program.

    flagged: the observer keeps a flag for each byte of a stretch: reads and atomics pass where all are set, and writes
    set them. Shared memory has them beside it (`residents.Cta.flags`), and only that of one CTA is passed; local memory
    has them where `launch.flagged_local` says so (`View.local_flags`), and no stretch elsewhere; those of other
    stretches are where their third number says, at least `FLAGS_BEHIND` bytes more of them; 0: all are set.

    The stretches may change while a grid runs, in place, if nothing is kept of their bytes: they count as they are at
    an access. lasting: they never change, and the observer may give this object for several launches, which it keeps
    nothing of. Where several workers may share the grid, `of_worker` then gives the bounds of one, by its schedule,
    whose memory nobody else changes.

    marks: the observer wants to know of what cp.async has in flight. It keeps a byte for each byte of shared memory
    (`residents.Cta.marks`), 0 if nothing writes it; accesses pass where all are 0, and the target of a copy is marked
    with 1 + 7 * warp + the group of the warp's copies, from 0 to 6, that is set there. The first element has the number
    of bytes marked in the launch. Sources ("observe.fetch") widen the gap between two stretches of `writes` to global
    memory, which they must be: of what lies before all sources, and of what lies behind.

    proxies: beside that, the observer wants to know when bytes of shared memory were stored, and which of them products
    of warpgroups read until they are waited for: writes pass where there are none. Accesses are of 16 bytes at most.

    flights: beside that, the observer keeps numbers of other asynchronous work, for each 16 bytes of shared memory
    (`residents.PIPE`). Writes pass where the warp knows work of these numbers to be complete, reads where it knows it
    of copies that write; threads that meet at a barrier of the whole CTA know what any of them knew.

    owners: (bytes of global memory, bytes of shared memory) that have a word of 4 bytes which says who has touched it,
    kept likewise; 0 bytes: no such memory is accessed. An access passes if nobody else has touched them, or nobody has
    written and it only reads, or all have only stored the same; an atomic if only atomics of its `sort`, from 1 to 60,
    have (0: it is like a write), and a read of sort `SEVERAL` only if nobody has written, its own thread neither. All
    threads of a CTA that meet at a barrier begin to share its shared memory anew. The words
    begin as zeros.

    repeats: accesses that look, as `polls` says, pass if they repeat one that the observer has noted there; `reads` and
    `writes` are not looked at.

    matters: which accesses these bounds are for; None: all that the observer is told of.

    frames: stretches of local memory are relative to the stack pointer of each lane (`framed`), by a number that an
    operation has.

    clocks: with `owners`, each piece of memory has two words of 4 bytes instead, which say when it was last written and
    read, and an access passes if its warp knows of those that it may not come beside.
    """

    reads: dict[str, Array]
    writes: dict[str, Array]
    asks: Callable[[Op], bool]
    flagged: bool = False
    owners: tuple[int, int] | None = None
    marks: Array | None = None
    proxies: bool = False
    flights: bool = False
    sort: Callable[[Op], int] | None = None
    repeats: Repeats | None = None
    polls: Callable[[Op], bool] | None = None
    clocks: Clocks | None = None
    matters: Callable[[Op], bool] | None = None
    frames: Callable[[Op], int] | None = None
    of_worker: Callable[[Schedule], Bounds] | None = None
    lasting: bool = False

    @property
    def kept(self) -> int:
        """What words say: 0: there are none; 1: who has touched memory; 2: when."""
        return 0 if self.owners is None else 1 if self.clocks is None else 2


def framed(number: int, place: int = 0) -> int:
    """What stands for a place relative to stack pointers, in the stretches of a number."""
    return (2 * number + 1 << 40) + place


#: The sort of reads that count as those of several threads.
SEVERAL = 63
#: All of a state space.
EVERYWHERE: Array = np.array([(0, (1 << 64) - 1, 0)], np.uint64)
#: Bytes of shared memory for a word that says who has touched it, where nobody needs the words, but only the epochs.
EPOCHS = 1 << 20
#: Bytes behind flags that can be read.
FLAGS_BEHIND = 4


def stretches(places: Iterable[tuple[int, int] | tuple[int, int, int]]) -> Array:
    """Stretches (first byte, byte after the last, address of flags or 0), ascending, as an array of n x 3 (u64). Each
    ends where the next begins, if not before; empty ones are left out."""
    rows = [(first, after, *(flags or (0,))) for first, after, *flags in places if first < after]
    found = np.array(rows, np.uint64).reshape(-1, 3)
    found[:-1, 1] = np.minimum(found[:-1, 1], found[1:, 0])
    return found


#: Events of accesses.
_ACCESSES = frozenset({"permit", "access", "fetched"})


def asking(listeners: Listeners, program: Program) -> list[object]:
    """The observers to whom accesses of a program matter."""
    looks = [op for op in program.operations() if op.kind in ADDRESSED]
    concerned = program.cache.get("concerned", {})
    found = []
    for observer in listeners.observers:
        matters = concerned.get(_known_kind(observer, concerned))
        if not wants(observer).isdisjoint(_ACCESSES) and (matters is None or any(map(matters, looks))):
            found.append(observer)
    return found


def _known_kind(observer: object, concerned: dict[type, Any]) -> type:
    """The class of an observer, or one above it, that has said which events matter to it."""
    return next((kind for kind in type(observer).__mro__ if kind in concerned), object)


def tables_of(listeners: Listeners, launch: Launch) -> list[Bounds]:
    """The bounds of accesses that the observers of a launch give, by number."""
    asked = [observer for observer in listeners.observers if not wants(observer).isdisjoint(_ACCESSES)]
    return [bounds for observer in asked for bounds in _given(observer, launch) or ()]


def _given(observer: object, launch: Launch) -> tuple[Bounds, ...] | None:
    """What an observer gives; None: it is told of every access."""
    give: Callable[[Launch], Bounds | tuple[Bounds, ...]] | None = getattr(observer, "filter", None)
    if give is None:
        return None
    given = give(launch)
    return given if isinstance(given, tuple) else (given,)


class Filters:
    """Those of the observers of a launch. tables: bounds of accesses, by number (`tables_of`)."""

    def __init__(self, listeners: Listeners, launch: Launch) -> None:
        concerned = launch.program.cache.get("concerned", {})
        self.tables: list[Bounds] = []
        self._accesses: list[tuple[frozenset[str], Callable[[Op], bool] | None, list[int] | None]] = []
        self._others = []
        for observer in listeners.observers:
            matters, events = concerned.get(_known_kind(observer, concerned)), wants(observer)
            if not events.isdisjoint(_ACCESSES):
                bounds = _given(observer, launch)
                first = len(self.tables)
                self.tables += bounds or ()
                numbers = list(range(first, len(self.tables)))
                self._accesses.append((events, matters, None if bounds is None else numbers))
            passing: Callable[[Op], int | None] | None = getattr(observer, "passing", None)
            self._others.append((events, matters, passing))

    def of_access(self, op: Op) -> int | None:
        """Which tables decide about an access, a bit each; None: it is always told of."""
        found, told = 0, {"fetched"} if op.kind == "observe.fetch" else {"permit", "access"}
        for events, matters, numbers in self._accesses:
            if events.isdisjoint(told) or not (matters is None or matters(op)):
                continue
            if numbers is None:
                return None
            for number in numbers:
                bounds = self.tables[number]
                if bounds.matters is None or bounds.matters(op):
                    if bounds.asks(op):
                        return None
                    found |= 1 << number
        return found

    @property
    def marked(self) -> int | None:
        """The table of the observer who wants bytes marked that copies write."""
        return next((number for number, bounds in enumerate(self.tables) if bounds.marks is not None), None)

    def polls(self, op: Op) -> bool:
        """Whether an access may be passed because it repeats another one."""
        return any(bounds.polls is not None and bounds.polls(op) for bounds in self.tables)

    def chosen(self, tables: int) -> list[Bounds]:
        """The bounds that such bits stand for."""
        return [bounds for number, bounds in enumerate(self.tables) if tables >> number & 1]

    def of_event(self, op: Op) -> int | None:
        """When another event needs nobody; None: never."""
        event, found = op.kind.partition(".")[2], ALWAYS
        for events, matters, passing in self._others:
            if event in events and (matters is None or matters(op)):
                rule = None if passing is None else passing(op)
                if rule is None:
                    return None
                found |= rule
        return found
