"""Run a launch on the native engine: one worker on this thread, more on others when the grid is worth it."""

from __future__ import annotations

import time
from functools import partial
from math import prod
from typing import TYPE_CHECKING

from ptxtools.diagnostics import Trap
from ptxtools.machine.launch import Launch, Outcome
from ptxtools.native.code.encode import Encoded, encode
from ptxtools.native.code.structures import RUN_FINISHED, RUN_TRAP
from ptxtools.program.operations import weight

from . import helpers, pool, team
from .polling import Hang, interrupted, looping
from .team import Team
from .worker import QUANTUM, Given, Shape, Tables, Worker, shape_of

if TYPE_CHECKING:
    from collections.abc import Hashable

    from ptxtools.machine.observers import Listeners
    from ptxtools.program.program import Program

    from . import filters

#: Records that the first worker executes before others are started, where it is not known that a launch is longer.
_ALONE = 40_000
#: Instructions of warps from which on a launch is known to be so.
_LONG = 2 * _ALONE
#: The first quantum of a worker; each further one is twice as long, so that endless polling is found soon.
_SHORT = 1 << 20
#: A launch that took fewer seconds may run as long at once, up to so many records for each worker.
_BRIEF, _WHOLE = 0.05, 4 * QUANTUM
#: Quanta until a worker checks whether its warps only poll values that never change; then twice as many each time.
_FIRST_LOOK = 1
#: From this many CTAs on, code outside of loops is worth more time to compile.
_MANY = 128


def run(launch: Launch) -> Outcome:
    """Run a grid to its end. Raises `Trap`."""
    kept, launch.kept = launch.kept, None
    if kept is not None and launch.program.cache.get(kept.encoded.key) is kept.encoded:
        return _again(launch, kept)
    encoded = _encoded(launch)
    shape = shape_of(launch, encoded)
    if shape.ctas == 0 or shape.threads == 0:
        return Outcome()
    if shape.instructions and _is_plain(launch) and pool.known() and pool.ready():
        return _again(launch, Kept(launch, encoded, shape))
    return _whole(_GridRun(launch, encoded, shape))


def _whole(run: _GridRun, answer: int | None = None) -> Outcome:
    """Run it with Python. answer: as of `_GridRun.run`."""
    try:
        return run.run(answer)
    finally:
        run.release()


def _run_of(team: Team) -> _GridRun:
    return _GridRun(team.launch, team.encoded, team.shape, team)


def _is_plain(launch: Launch) -> bool:
    """Whether Python has nothing to look at as long as all goes well."""
    return (
        launch.observers is None and launch.deadline is None and launch.max_instructions is None
        and launch.seed is None and launch.counts is None
    )  # fmt: skip


class Kept:
    """What a launch needs that is like the one before. tiers: what is to be compiled once that pays; clusters: that may
    be resident; count: of workers, if it is long."""

    def __init__(self, launch: Launch, encoded: Encoded, shape: Shape) -> None:
        self.encoded, self.shape, self.tiers = encoded, shape, [tier for tier in encoded.tiers if tier.waiting]
        self.clusters = max(1, min(launch.resident // shape.cluster, shape.clusters))
        self.count = max(1, min(launch.threads, self.clusters))
        self.shares = self.count > 1 and pool.possible()
        self._parts = 0
        #: What it adds to the program, and what that depends on.
        self._given: Given | None = None
        self._known: Hashable = None
        functions = launch.program.functions
        names = {one.name for function in functions for one in function.launch_constants if one.source != "param"}
        self._specials = tuple(launch.specials.keys() & names.union(encoded.specials))

    def given(self, launch: Launch) -> Given:
        """What it adds to the program."""
        known = launch.params, *map(launch.specials.get, self._specials)
        if self._given is None or self._known != known:
            self._known, self._given = known, Tables.found(launch, self.encoded, self.shape)
        return self._given

    def teams(self, launch: Launch, shared: bool) -> tuple[list[Team], int]:
        """Where those wait that may run it, and how many parts of the grid they know."""
        parts = 1
        if shared:
            parts = self._parts = self._parts or _parts(launch, self.shape, self.count)
        key = self.count, self.clusters, parts
        return self.shape.teams.get(key) or self.shape.teams.setdefault(key, []), parts


def _again(launch: Launch, kept: Kept) -> Outcome:
    """Run a launch like the one before: natively, until that needs Python."""
    encoded, shape, count = kept.encoded, kept.shape, kept.count
    executed, began = shape.instructions, time.monotonic()
    shared = kept.shares and executed > 32 * _LONG and not pool.ended()
    alike, parts = kept.teams(launch, shared)
    first = count if shared else 1
    ours = team.take(alike) or Team(Tables(launch, encoded, shape, count, parts), alike, _run_of, shape.ctas)
    ours.begin(launch, encoded, shape, kept.given(launch))
    answer, total = None, -1
    try:
        if len(ours.workers) < first:
            slots = _slots(launch, shape)
            ours.complete([partial(Worker, launch, encoded, shape, ours.tables, n, slots[n]) for n in range(first)])
        quantum = _ALONE
        if first == count:
            most = _WHOLE if 0 < shape.seconds < _BRIEF else QUANTUM
            quantum = max(_SHORT, min(executed // 16, most))  # one may do all of it
        answer = ours.start(first, quantum)
        if answer == RUN_FINISHED:
            total = ours.total
    except BaseException as error:
        ours.whole().failures.append(error)
    if total < 0:
        return _whole(ours.whole(), answer)
    if kept.tiers:
        for tier in kept.tiers:
            tier.ran(total, whole=True)
        kept.tiers = [tier for tier in kept.tiers if tier.waiting]
    shape.instructions, shape.seconds = total, time.monotonic() - began
    ours.rest()
    launch.kept = kept
    return Outcome(total)


def _encoded(launch: Launch) -> Encoded:
    """The tables of the program, made when it is first launched like this."""
    host, many = launch.memory.open_host, prod(launch.grid) >= _MANY or launch.tier == "regions"
    trial = 0 if launch.observers is None else launch.observers.trial  # whose events have other filters
    listeners = launch.observers
    # Where an instruction is told of by itself, runs must stop there.
    regions = listeners is None or not (listeners.hear("instruction") or listeners.hear("retired") or listeners.gate)
    regions = regions and launch.tier != "interpreter"
    bounded = regions and listeners is not None and trial < 2 and _regions_look(listeners, launch.program)
    key = f"native{'-host' * host}{'-many' * many}{'-regions' * regions}-trial{trial}-{launch.numerics}"
    events = listeners is not None and _unison_serves(listeners)
    key += "-bounded" * bounded + "-events" * events
    encoded = launch.program.cache.get(key)
    if encoded is None:
        encoded = encode(
            launch.program,
            host=host,
            everywhere=many,
            regions=regions,
            numerics=launch.numerics,
            bounded=bounded,
            events=events,
        )
        encoded.key = key
        launch.program.cache[key] = encoded
    if launch.tier == "regions":
        encoded.regions.complete()
        encoded.whole.complete()
        encoded.better.complete()
    return encoded


def _regions_look(listeners: Listeners, program: Program) -> bool:
    """Whether regions may look at accesses in place of all observers that want to know of them (`REGIONS`)."""
    from ptxtools.machine.filters import asking

    kinds = tuple(type(observer) for observer in listeners.observers)
    known: dict[tuple[type, ...], bool] = program.cache.setdefault("regions look", {})
    if kinds not in known:
        asked = asking(listeners, program)
        known[kinds] = bool(asked) and all(getattr(one, "REGIONS", False) for one in asked)
    return known[kinds]


def _unison_serves(listeners: Listeners) -> bool:
    """Whether kernels in unison may call the services of events, which may then be called again."""
    if listeners.trial > 1 or listeners.log is not None or listeners.gate is not None:
        return False
    return not listeners.trial or not (listeners.marks or listeners.proxies or listeners.flights)


def _first(failures: list[BaseException]) -> BaseException:
    """What a launch has failed with: of traps that of the first CTA, whichever worker was quicker."""
    traps = [one for one in failures if isinstance(one, Trap) and one.cta is not None]
    if len(traps) < len(failures):
        return failures[0]
    return min(traps, key=lambda trap: (trap.cta or ())[::-1])


def _parts(launch: Launch, shape: Shape, workers: int) -> int:
    """In how many parts workers claim the grid."""
    if shape.cluster > 1:
        return 1
    from ptxtools.program.passes.waits import independent

    return workers if independent(launch.program) else 1


def _slots(launch: Launch, shape: Shape) -> list[int]:
    """Of each worker: CTAs that can be resident."""
    clusters = max(1, min(launch.resident // shape.cluster, shape.clusters))
    count = max(1, min(launch.threads, clusters)) if launch.seed is None else 1
    return [(clusters // count + (number < clusters % count)) * shape.cluster for number in range(count)]


class _GridRun:
    def __init__(self, launch: Launch, encoded: Encoded, shape: Shape, team: Team | None = None) -> None:
        self.launch, self.encoded, self.shape, self.team = launch, encoded, shape, team
        self.slots = _slots(launch, shape)
        self.count = len(self.slots)
        self.tables = Tables(launch, encoded, shape, self.count) if team is None else team.tables
        self.bounds: filters.Tables | None = None
        if launch.observers is not None:
            from . import filters

            self.bounds = filters.prepare(launch, encoded, shape)
            if launch.observers.gate is not None:
                from . import gates

                gates.prepare(launch, encoded, launch.observers.gate)
            if launch.observers.log is not None:
                from . import logs

                logs.prepare(launch, encoded, launch.observers.log)
        self.stop = False
        self.failures: list[BaseException] = []
        self.hangs: list[Hang] = []
        self.seats: list[pool.Seat] = [] if team is None else team.seats
        self.workers: list[Worker] = [] if team is None else team.workers[: 1 + len(self.seats)]
        self.threads: list[helpers.Job | pool.Seat] = list(self.seats)
        self.tables.polls.seats = self.seats
        self.length = self._known_length()
        launch.begun = self.begun
        launch.summary = self.summary
        if launch.observers is not None:
            from .inspection import Inspection

            launch.inspector = Inspection(self.workers)

    def run(self, answer: int | None = None) -> Outcome:
        """Run it to its end. answer: of the loop for the first worker, where a team has begun."""
        began = time.monotonic()
        try:
            if self.failures:
                self.stop = True
                if answer == RUN_TRAP:
                    self.work(self.workers[0], answer)
            elif self.team is not None:
                first = self.workers[0]
                if len(self.workers) == self.count:
                    self.work(first, answer)
                elif not self._begin(first, answer):
                    self._go_on(first)
            elif self._is_shared_natively():
                pool.rouse(self.count - 1)
                for number in range(1, self.count):
                    self._share(self._worker(number))
                self.work(self._worker(0))
            else:
                first = self._worker(0)
                if self._is_long() or not self._begin(first):
                    self._go_on(first)
        except BaseException as error:
            self.failures.insert(0, error)
        finally:
            if self.failures:
                self.stop = True
            self._join()
        if self.failures:
            if isinstance(self.failures[0], KeyboardInterrupt):  # Ctrl-C: its cause says where everything was
                raise self.failures[0] from self._told(self.hangs[0] if self.hangs else Hang("interrupted", "stopped"))
            raise _first(self.failures)
        if self.hangs:
            raise self._told(self.hangs[0])
        total = self._instructions()
        self._ran(total, whole=True)
        try:
            self._check_count(total)
        except Hang as hang:
            raise self._told(hang) from None
        for worker in self.workers:
            worker.close()
        self.shape.instructions, self.shape.seconds = total, time.monotonic() - began
        return Outcome(total)

    def _go_on(self, first: Worker) -> None:
        """All workers, of whom one has begun."""
        self.threads += [helpers.begin(partial(self._help, number)) for number in range(1, self.count)]
        if not self.hangs:
            self.work(first)

    def _join(self) -> None:
        """Wait for the other workers. Ctrl-C stops them, a second one leaves them behind."""
        try:
            for thread in self.threads:
                if not self.hangs:  # nothing is left to do
                    thread.drop()
                thread.join()
        except KeyboardInterrupt as error:
            if self.failures and isinstance(self.failures[0], KeyboardInterrupt):
                raise
            self.failures.insert(0, error)
            self.stop = True
            for thread in self.threads:
                thread.join()

    def release(self) -> None:
        """Drop all references: workers and their services form cycles, which would keep the device's memory until the
        next garbage collection. A worker that a second Ctrl-C has left running keeps its data."""
        self.launch.inspector = self.launch.summary = self.launch.begun = None
        for seat in self.seats:
            seat.leave()
        if not any(thread.is_alive() for thread in self.threads):
            if self.team is not None:
                self.team.part()
            for worker in self.workers:
                if self.launch.counts is not None:
                    self.launch.counts += worker.counts
                worker.release()
        self.failures.clear()  # whose tracebacks lead here
        self.hangs.clear()

    def begun(self) -> int:
        """How many CTAs have begun: those that are claimed, but for what workers have claimed and not begun."""
        try:
            return self.shape.cluster * (self.tables.parts.taken - sum(worker.claimed for worker in self.workers))
        except AttributeError:  # all is over by now
            return self.shape.ctas

    def summary(self) -> Trap:
        """Where the threads of the first worker are, which is stopped if this is asked on its thread; others go on."""
        from . import hangs

        return hangs.report(self.workers[:1], Hang("timeout", "running"))

    def _told(self, hang: Hang) -> Trap:
        from . import hangs

        return hangs.report(self.workers, hang)

    def _hang(self, hang: Hang) -> None:
        """A worker has found that the run is over. After a deadlock the others make one more step each, so that the
        report finds them where they will wait; a limit holds at once."""
        self.hangs.append(hang)
        if hang.kind == "timeout":
            self.stop = True

    def _is_long(self) -> bool:
        """Whether it is known that several workers have enough to do: from the last launch like this one, or else by
        what each warp does first."""
        if self.count == 1 or self.shape.instructions:
            return self.count > 1 and self.shape.instructions > 32 * _LONG
        first = self.launch.program.functions[0].first
        return self.shape.ctas * self.shape.warps * weight(self.launch.program.blocks[first], first) > _LONG

    def _begin(self, first: Worker, answer: int | None = None) -> bool:
        """The first worker's first step; whether that was all. answer: as of `Worker.step`."""
        try:
            return first.step(self._quantum(_ALONE if self.count > 1 else self._length(0)), answer)
        except Hang as hang:
            self._hang(hang)
            return False

    def _worker(self, number: int) -> Worker:
        worker = Worker(self.launch, self.encoded, self.shape, self.tables, number, self.slots[number])
        if self.bounds is not None:
            worker.filter(self.bounds.rows(worker))
        self.workers.insert(len(self.workers) if number else 0, worker)
        return worker

    def _instructions(self) -> int:
        return sum(worker.instructions for worker in self.workers)

    def _length(self, steps: int) -> int:
        """Records of a worker's next quantum. Shuffled runs count in quanta, so those are alike."""
        if self.launch.seed is not None:
            return QUANTUM
        return min(QUANTUM, max(_SHORT << min(steps, 8), self.length if not steps else 0))

    def _known_length(self) -> int:
        """Records of the first quantum that suffice if this launch is like the last one; 0 if nobody knows."""
        if not self._is_free():
            return 0
        return min(self.shape.instructions // (16 * self.count), QUANTUM)

    def _quantum(self, most: int) -> int:
        limit = self.launch.max_instructions
        if limit is None:
            return most
        return max(256, min(most, (limit - self._instructions()) // 32))

    def _help(self, number: int) -> None:
        """What another thread does."""
        try:
            worker = self._worker(number)
        except BaseException as error:
            self.failures.append(error)
            self.stop = True
        else:
            self.work(worker)

    def _is_shared_natively(self) -> bool:
        """Whether other workers need no Python to begin, and mostly none to end."""
        known = self.count > 1 and self.shape.instructions and self._is_long()
        return bool(known) and self._is_free() and pool.possible() and pool.ready()

    def _is_free(self) -> bool:
        """Whether nothing depends on how often Python is called."""
        seen = self.launch.observers
        return seen is None or not (seen.log is not None or seen.gate is not None or seen.hear("delays"))

    def _share(self, worker: Worker) -> None:
        """Let a thread of the pool run a worker."""
        seat = pool.take()
        self.threads.append(seat)
        self.seats.append(seat)
        worker.begin(self._quantum(self._length(0)))
        seat.post(self.encoded.run, worker.ctx, partial(self.work, worker))

    def work(self, worker: Worker, answer: int | None = None) -> None:
        """Run a worker to its end, or until a limit is reached or another worker has failed. answer: as of
        `Worker.step`."""
        try:
            steps, next_look = 0, _FIRST_LOOK
            if self.stop and answer == RUN_TRAP:  # which may be that of an earlier CTA
                raise worker.trap()
            while not self.stop:
                last = bool(self.hangs)
                if not last and (steps or self.launch.deadline is not None):
                    self._check_limits()
                finished = worker.step(self._quantum(self._length(steps)), answer)
                answer = None
                if finished:
                    self.tables.polls.finish(worker.number)
                    return
                if last:
                    return
                if worker.gated and not worker.begins:
                    continue
                steps += 1
                if steps >= next_look:
                    next_look = 2 * steps
                    if worker.watch.only_looks(steps, self._given_up):
                        raise looping()
        except Hang as hang:
            self._hang(hang)
        except BaseException as error:
            self.failures.append(error)
            self.stop = True
            if worker.number == 0 and not isinstance(error, Exception):
                raise

    def _given_up(self) -> bool:
        """Whether the run is over elsewhere. Raises `Hang` where a limit is reached."""
        self._check_limits()
        return self.stop or bool(self.hangs)

    def _check_limits(self) -> None:
        deadline = self.launch.deadline
        if deadline is not None and time.monotonic() > deadline:
            raise interrupted("the time limit is over")
        total = self._instructions()
        self._ran(total)
        self._check_count(total)

    def _ran(self, total: int, *, whole: bool = False) -> None:
        for tier in self.encoded.tiers:
            if tier.waiting:
                tier.ran(total, whole=whole)

    def _check_count(self, total: int) -> None:
        limit = self.launch.max_instructions
        if limit is not None and total > limit:
            from ptxtools.machine.deadlock import above

            raise interrupted(above(limit))
