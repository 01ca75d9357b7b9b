"""Resident clusters and CTAs as seen by the rarer operations, and their waits.

Both engines make a `Cluster` (of one CTA if the launch has no clusters) when an operation first asks for it, and drop
it when its last CTA has ended. Features keep their data (tensor memory, bulk groups, work that waits for an mbarrier)
in `state` of a CTA or a cluster, each under its own key.

A cluster belongs to one worker thread, so it needs no locks. Time is virtual: nanoseconds that this worker has
executed. If nobody can move before something is due, time jumps to that moment.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from typing import TYPE_CHECKING, Any

from ptxtools.program.program import RANK_SHIFT
from ptxtools.records import dataclass, field

from .launch import Dim3, Launch

if TYPE_CHECKING:
    from random import Random

#: Bytes before the marks of a CTA's shared memory (`MARKED` of the native engine has their fields); how many groups of
#: a warp can be in flight.
MARKS_HEAD, MARKED_GROUPS = 1792, 7
#: Planes of a CTA's shared memory with a number for each 16 bytes: the last asynchronous work of the tensor cores that
#: reads them, the last bulk copy that does, and the last one that writes them.
PIPE, BULK, COPY = range(3)
PLANES = 3
#: Bytes that have one number there.
CHUNK = 16
#: Where the time begins in a word of when bytes of shared memory were stored; below it is the warp.
STORED_SHIFT = 5
#: Words before those that say who has touched a CTA's shared memory: how many threads have come to the present
#: barrier, and how many the whole CTA has passed, its epoch. A word: the epoch above `EPOCH_SHIFT`, then who: 0:
#: nobody; a thread + 1 that has read; or `WRITTEN_SHARED` and one that has written; `SEVERAL_SHARED` have read;
#: or, with `WRITTEN_SHARED`, have stored the same. `ALIKE_SHARED`: nothing was done but to store what is there now.
OWNERS_HEAD, EPOCH_SHIFT, WRITTEN_SHARED, SEVERAL_SHARED = 16, 13, 1 << 11, (1 << 11) - 1
ALIKE_SHARED = 1 << 12
#: Words of global memory have no epoch.
WRITTEN_GLOBAL, SEVERAL_GLOBAL = 1 << 31, (1 << 31) - 1
#: Of the two words that say when a piece of memory was last written and read (`filters.Bounds.clocks`): the lane is
#: below `CLOCK_SHIFT`, or `ALL_LANES`; above it the time, which belongs to one warp. Of several reads, by warps of one
#: CTA, of one cluster or of several, the word has the last one's. GUARDED: nothing passes.
CLOCK_SHIFT, ALL_LANES, GUARDED = 6, 32, (1 << 32) - 1
SEVERAL_CTA, SEVERAL_GRID, SEVERAL_CLUSTER = 1 << 31, 1 << 30, 1 << 29
SEVERAL_WARPS = SEVERAL_CTA | SEVERAL_GRID | SEVERAL_CLUSTER
#: Times that there can be, a power of two.
MOST_TIMES = 1 << 22
#: Words of what is noted of a warp with its times (`MOMENT` of the native engine has their fields).
MOMENT_WORDS = 24
#: Of a warp that has heard something at a flag, which its next fence acquires (`MOMENT.plain`).
HEARS = 3
#: Words at the beginning of what is noted of an mbarrier, and of what is noted of a warp there (`PHASED`, `USE`).
PHASED_WORDS, USE_WORDS = 8, 10
#: Of the table of `repeats.Repeats`: rows, a power of two, and words of one; where the number of the warp begins in a
#: key; what a key is multiplied by, so that its upper bits are the row.
REPEAT_ROWS, REPEAT_WORDS, REPEAT_SHIFT, REPEAT_FACTOR = 1024, 34, 20, 0x9E37_79B9_7F4A_7C15
#: Nanoseconds after which late work completes when nobody waits for it. Warps that poll come to this time; a try_wait
#: waits longer than this by default, and a worker that has nothing else to do jumps there.
LATENESS = 400_000
#: Nanoseconds within which other work of a shuffled run completes, and how many of its powers of two weak memory has.
_LATEST, _LATEST_BITS = 4096, 13


@dataclass(slots=True, eq=False)
class Cta:
    """A resident CTA: position in the grid, rank in its cluster, number in the grid, cluster by cluster, its shared
    memory (writable bytes)."""

    cluster: Cluster
    rank: int
    place: Dim3
    number: int
    shared: memoryview
    handle: Any = None  # the engine's name for it
    sm: int = 0  # that holds it
    state: dict[str, Any] = field(default_factory=dict)
    at_end: list[Callable[[], None]] = field(default_factory=list)  # called when the CTA's last thread has exited
    ended: bool = False
    flags: Any = None  # for an observer that keeps some (`filters.Bounds`): an array, one for each byte of `shared`
    marks: Any = None  # likewise of what copies write (`filters.Bounds.marks`), `MARKS_HEAD` bytes before them
    flights: Any = None  # with them, planes of numbers of asynchronous work (`filters.Bounds.flights`)
    stores: Any = None  # with them, for each four bytes when they were stored (`filters.Bounds.proxies`)
    reads: Any = None  # and of each warpgroup, for each 16 bytes which product has read them last
    owners: Any = None  # likewise of who has touched what (`filters.Bounds.owners`), `OWNERS_HEAD` words before them

    @property
    def window(self) -> int:
        """Address of its first byte of shared memory in the shared window."""
        return self.rank << RANK_SHIFT

    def __str__(self) -> str:
        return "CTA ({},{},{})".format(*self.place)


@dataclass(slots=True, eq=False)
class Cluster:
    """A resident cluster: its CTAs by rank, and what is pending in it."""

    schedule: Schedule
    number: int
    ctas: tuple[Cta, ...] = ()
    state: dict[str, Any] = field(default_factory=dict)

    def wake(self, key: Hashable) -> None:
        """Let lanes that wait for `key` retry their operation."""
        self.schedule.wake((self, key))

    def after(self, delay: int, function: Callable[[], None], text: str) -> None:
        """Call `function` when `delay` nanoseconds of virtual time are over. While it is pending there is no deadlock.

        text: what is pending, for reports.
        """
        self.schedule.at(self.schedule.now() + delay, function, text, self)

    def later(self, function: Callable[[], None], text: str) -> None:
        """Complete asynchronous work: now, or, in shuffled and late runs, after a while."""
        delay = self.schedule.delay()
        if delay is None:
            function()
        else:
            self.after(delay, function, text)


@dataclass(slots=True, eq=False)
class Wait:
    """Lanes of one warp that stay at an operation until woken.

    key: what for; text: the same for people, told by str(); until: virtual time at which they try again in any case,
    None: never; expired: that time has come; note: whatever the operation wants to find again; where: its line.
    """

    cta: Cta
    warp: int
    lanes: int
    key: Hashable
    text: object
    until: int | None
    note: Any
    where: int
    block: int = 0  # the engine's: where the lanes wait
    frame: int = 0
    begun: int = 0
    expired: bool = False
    over: bool = False
    back: int = 0  # lanes that run the operation again just now
    left: int = 0  # lanes that were woken and have not run yet


def take_back(woken: dict[int, list[Wait]], warp: int, mask: int) -> list[Wait]:
    """Take the waits from which lanes of a warp return now; lanes that return later stay recorded."""
    found: list[Wait] = []
    waits = woken.get(warp)
    if waits is None:
        return found
    for wait in waits:
        wait.back = wait.left & mask
        if wait.back:
            wait.left &= ~mask
            found.append(wait)
    waits[:] = [wait for wait in waits if wait.left]
    if not waits:
        del woken[warp]
    return found


@dataclass(slots=True, order=True)
class _Due:
    time: int
    order: int
    function: Callable[[], None] = field(compare=False)
    text: str = field(compare=False)
    cluster: Cluster = field(compare=False)
    wait: Wait | None = field(compare=False, default=None)


class Schedule:
    """The waits and pending work of one worker. `clock` gives the virtual time, `skip` advances it, `release` lets
    lanes run again, `claim` takes a cluster that has not been started, by its number."""

    def __init__(
        self, launch: Launch, clock: Callable[[], int], skip: Callable[[int], None], release: Callable[[Wait], None],
        claim: Callable[[], int | None],
    ) -> None:  # fmt: skip
        self.launch = launch
        self.random: Random | None = None
        if launch.seed is not None:
            from random import Random  # an import that few launches need

            self.random = Random(launch.seed)
        self._clock, self._skip, self._release, self._claim = clock, skip, release, claim
        self._waits: dict[Hashable, list[Wait]] = {}
        self._due: list[_Due] = []
        self._yielding: deque[Wait] = deque()  # they go on when nobody else can
        self._count = 0

    def cancel(self) -> Dim3 | None:
        """Remove a cluster that has not been started from the launch; returns the position of its first CTA, or
        None."""
        number = self._claim()
        if number is None:
            return None
        (gx, gy, _), (cx, cy, cz) = self.launch.grid, self.launch.cluster
        wide, high = gx // cx, gy // cy
        return number % wide * cx, number // wide % high * cy, number // (wide * high) * cz

    def release(self) -> None:
        """The run is over: drop references back to it, to leave no cycles."""
        vars(self).clear()

    # --- time ---------------------------------------------------------------------------------------------------------

    @property
    def delays(self) -> bool:
        """Whether asynchronous work may complete later than it begins."""
        return self.random is not None or self.launch.late

    def lags(self) -> bool:
        """Whether work that begins now completes as late as it may; random in shuffled runs."""
        return self.launch.late and (self.random is None or bool(self.random.getrandbits(1)))

    def delay(self) -> int | None:
        """Nanoseconds until asynchronous work that begins now completes by itself; None: at once."""
        if self.random is not None and self.launch.weak and not self.random.getrandbits(2):
            return None
        if self.lags():
            return LATENESS
        if self.random is None:
            return None
        return self.random.randrange(_LATEST if not self.launch.weak else 1 << self.random.randrange(_LATEST_BITS))

    def in_some_order(self, works: list[Any]) -> list[Any]:
        """Work that nothing orders, as it completes: with weak memory in any order, as the seed has it."""
        if self.random is not None and self.launch.weak:
            self.random.shuffle(works)
        return works

    def now(self) -> int:
        """Virtual time in nanoseconds."""
        return self._clock()

    def at(
        self, time: int, function: Callable[[], None], text: str, cluster: Cluster, wait: Wait | None = None
    ) -> None:
        """Call `function` at a virtual time: work, or the end of a wait's time limit."""
        self._count += 1
        heapq.heappush(self._due, _Due(time, self._count, function, text, cluster, wait))

    def next_time(self) -> int | None:
        """When something is due, or None."""
        self._drop()
        return self._due[0].time if self._due else None

    def _drop(self) -> None:
        """Forget time limits of waits that have ended."""
        while self._due and (wait := self._due[0].wait) is not None and wait.over:
            heapq.heappop(self._due)

    def run_due(self) -> bool:
        """Run everything due by now; returns whether there was anything."""
        done = False
        while self._due and self._due[0].time <= self.now():
            heapq.heappop(self._due).function()
            done = True
        return done

    def jump(self) -> bool:
        """Nothing can run: let the first of those go on that let others go first; or jump to the next due time, and run
        what is due. False if there is none."""
        while self._yielding:
            wait = self._yielding.popleft()
            if not wait.over:
                self._expire((wait.cta.cluster, wait.key), wait)
                return True
        self._drop()
        if not self._due:
            return False
        self._skip(max(0, self._due[0].time - self.now()))
        return self.run_due()

    def expire(self) -> None:
        """Expire all time limits."""
        self._skip(max(0, max((due.time for due in self._due), default=0) - self.now()))
        self.run_due()

    def has_due(self, cluster: Cluster) -> bool:
        """Whether anything is scheduled in a cluster: work, or the end of a time limit."""
        return any(due.cluster is cluster and (due.wait is None or not due.wait.over) for due in self._due)

    def works(self) -> bool:
        """Whether work is pending anywhere; time limits do not count."""
        return any(due.wait is None for due in self._due)

    def pending(self, cluster: Cluster) -> Iterator[str]:
        """Texts of the work that is pending in a cluster."""
        return (due.text for due in sorted(self._due) if due.cluster is cluster and due.text)

    # --- waiting ------------------------------------------------------------------------------------------------------

    def wait(self, wait: Wait) -> None:
        """Record a wait; the engine has stopped its lanes."""
        key = (wait.cta.cluster, wait.key)
        wait.begun = self.now()
        self._waits.setdefault(key, []).append(wait)
        if wait.until is not None:
            self.at(wait.until, lambda: self._expire(key, wait), "", wait.cta.cluster, wait)

    def yields(self, wait: Wait) -> None:
        """A wait with a time limit, which is over when nothing else can run, too."""
        self._yielding.append(wait)

    def wake(self, key: Hashable) -> None:
        for wait in self._waits.pop(key, ()):
            wait.over, wait.left = True, wait.lanes
            self._release(wait)

    def _expire(self, key: Hashable, wait: Wait) -> None:
        if wait.over:
            return
        wait.over = wait.expired = True
        wait.left = wait.lanes
        remaining = self._waits[key]
        remaining.remove(wait)
        if not remaining:
            del self._waits[key]
        self._release(wait)

    def longest(self) -> int:
        """The longest time limit of a wait, in nanoseconds."""
        limits = [w.until - w.begun for waits in self._waits.values() for w in waits if w.until is not None]
        return max(limits, default=0)

    def limits(self) -> tuple[Hashable, ...]:
        """The waits, and the time left for each. Together with the state of threads and memory they decide what happens
        next, unless a thread reads a clock."""
        now = self.now()
        return tuple(
            (w.cta.number, w.warp, w.lanes, w.key, None if w.until is None else w.until - now) for w in self.waits()
        )

    def sleepers(self) -> tuple[int, ...]:
        """Names of the current waits."""
        return tuple(sorted(id(w) for waits in self._waits.values() for w in waits))

    def waits(self, cluster: Cluster | None = None) -> list[Wait]:
        """The current waits, in a cluster or anywhere, in the order of CTAs and warps."""
        found = [w for waits in self._waits.values() for w in waits if cluster is None or w.cta.cluster is cluster]
        return sorted(found, key=lambda w: (w.cta.cluster.number, w.cta.rank, w.warp, w.lanes))

    def forget(self, cluster: Cluster) -> None:
        """The cluster has ended: complete its pending work, such as copies to global memory."""
        while True:
            mine = sorted(due for due in self._due if due.cluster is cluster)
            self._due = [due for due in self._due if due.cluster is not cluster]
            heapq.heapify(self._due)
            if not mine:
                break
            for due in mine:
                if due.wait is None:
                    due.function()
        for key in [key for key in self._waits if isinstance(key, tuple) and key[0] is cluster]:
            del self._waits[key]
