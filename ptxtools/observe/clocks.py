"""What the warps of a grid know of one another: vector clocks, and what strong accesses carry (8.4 to 8.9).

A warp's knowledge is a row of times for each cluster of which it knows anything, made when it learns it: most warps
know their own cluster alone. Rows are never changed in place, so that whoever is told keeps them without a copy. Time
of a warp goes on with each thing that it tells others. Inside a warp 32 x 32 times say what each lane knows of each
other one: lanes run independently (9.7.13.1), and what a lane learns from outside all lanes of its warp know.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxtools.program.program import LANES
from ptxtools.records import dataclass, field

Array: TypeAlias = npt.NDArray[Any]
#: Times by cluster and warp in it.
Known: TypeAlias = "dict[int, Array]"

#: Scopes (8.5) as numbers; 0: a weak access, which has none.
WEAK, CTA, CLUSTER, GPU, SYS = range(5)
SCOPES = {"cta": CTA, "cluster": CLUSTER, "gpu": GPU, "gl": GPU, "sys": SYS}
#: A knowledge has under cluster + ALIASED what it has of a cluster with a fence.proxy.alias behind it (8.9.5).
ALIASED = 1 << 40
#: Under cluster + TENSOR what is known of operations of tcgen05 alone, by tcgen05.fence (9.7.16.5.3).
TENSOR = 1 << 41
#: Warps of a cluster of which it takes as long to look one by one as together.
_FEW = 16
#: Messages that wait for a fence, and how often of some it is remembered what they tell together.
MOST_HEARD, _MOST_GATHERED = 4096, 4
#: Messages that a warp remembers to have taken in.
_MOST_TAKEN = 256
NAMES = {number: name for name, number in SCOPES.items() if name != "gl"}


def merged(known: Known, more: Mapping[int, Array]) -> Known:
    """Both knowledges together. Rows that have all of others are shared, so that they need not be compared again."""
    found = dict(known)
    for cluster, row in more.items():
        mine = found.get(cluster)
        if mine is None:
            found[cluster] = row
        elif mine is not row and (row > mine).any():
            found[cluster] = row if (row >= mine).all() else np.maximum(mine, row)
    return found


def covers(known: Mapping[int, Array], told: Mapping[int, Array]) -> bool:
    """Whether a knowledge has all of another one."""
    for cluster, row in () if told is known else told.items():
        mine = known.get(cluster)
        if mine is None:
            return False
        if mine is not row and bool((row > mine).any()):
            return False
    return True


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """What a strong write tells those that read it. agent: number of the warp that wrote; told: its knowledge up to the
    release, None: there was none; scope: the narrowest of the pattern; where: the line of the write; extent: first byte
    of the scalar that it wrote, and the one behind it."""

    agent: int
    told: Known | None
    scope: int
    where: int
    extent: tuple[int, int] = (0, 0)


class Together:
    """What strong writes to one place tell, so that whoever acquires it need not look at each of them, if the scopes of
    all include all threads of the device (`wide`). told: all of it; last: the last message of each warp."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.wide = True
        self.told: Known = {}
        self.last: dict[int, Message] = {}
        self._reached: dict[int, dict[int, tuple[Message, int]]] = {}
        self._heard: dict[int, list[Message]] = {}

    def renew(self, messages: list[Message]) -> None:
        """These are the messages now: some may have come, and some may be gone."""
        if messages == self.messages:
            return
        self.wide = min(one.scope for one in messages) >= GPU
        self._reached.clear()
        self._heard.clear()
        if not self.wide:
            self.messages, self.told = [], {}
            return
        before = set(self.messages)
        new, now = [one for one in messages if one not in before], set(messages)
        left = {one.agent: one for one in new}
        gone = (one for one in self.messages if one not in now)
        if not all(one.agent in left and covered(one, left[one.agent]) for one in gone):
            self.told, new = {}, messages
        for one in new:
            self.told = merged(self.told, one.told or {})
        self.messages, self.last = messages, {one.agent: one for one in messages}

    def reached(self, scope: int) -> dict[int, tuple[Message, int]]:
        """The last message of each warp with the narrowest scope of it and a read."""
        found = self._reached.get(scope)
        if found is None:
            found = self._reached[scope] = {agent: (one, min(one.scope, scope)) for agent, one in self.last.items()}
        return found

    def heard(self, scope: int) -> list[Message]:
        """What a warp has heard by a relaxed read (`Warp.heard`)."""
        found = self._heard.get(scope)
        if found is None:
            made = [Message(one.agent, one.told, min(one.scope, scope), one.where) for one in self.messages]
            found = self._heard[scope] = made
        return found


def covered(known: Message, message: Message) -> bool:
    """Whether a message tells no more than another one of the same warp."""
    same = (known.agent, known.extent) == (message.agent, message.extent) and known.scope <= message.scope
    return same and (known.told is None or (message.told is not None and covers(message.told, known.told)))


@dataclass(slots=True)
class Warp:
    """One warp. agent: its number in the grid; known: what it knows; lanes[i, j]: time of lane j up to which lane i
    of the warp knows it; reads: the same of what lane j has read, where shuffles and votes tell more; fenced: what
    it knew at its last fence of each scope; heard: what relaxed reads have seen, for the next fence; missed: what
    was read of another warp without taking it in, by its number, and the narrowest scope of the two sides (0: there
    was no acquire); seen: what relaxed reads told, which orders writes behind them after reads before the release;
    begun: what it knew at its last fence.mbarrier_init; inits: what it knows of others' mbarrier.init alone; met:
    what those had done that it met at relaxed barriers; taken: by lanes and identity what they have taken in;
    gathered: what some messages among `heard` tell together; later:
    gives another time than the next one."""

    agent: int
    cluster: int
    number: int
    known: Known
    lanes: Array = field(default_factory=lambda: np.zeros((LANES, LANES), np.int64))
    reads: Array = field(default_factory=lambda: np.zeros((LANES, LANES), np.int64))
    fenced: dict[int, Known] = field(default_factory=dict)
    heard: list[Message] = field(default_factory=list)
    missed: dict[int, tuple[Message, int]] = field(default_factory=dict)
    seen: Known = field(default_factory=dict)
    begun: Known = field(default_factory=dict)
    inits: Known = field(default_factory=dict)
    met: Known = field(default_factory=dict)
    taken: dict[tuple[int, bytes], Known] = field(default_factory=dict)
    gathered: list[tuple[Known, list[Message]]] = field(default_factory=list)
    later: Callable[[int], int] | None = None

    @property
    def time(self) -> int:
        return int(self.known[self.cluster][self.number])

    def tick(self) -> None:
        self.reach(self.time + 1 if self.later is None else self.later(self.agent))

    def reach(self, time: int) -> None:
        """Its time is a later one now."""
        row = self.known[self.cluster].copy()
        row[self.number] = time
        self.known[self.cluster] = row

    def take(self, told: Mapping[int, Array], lanes: Array) -> None:
        """These lanes learn something; what they learn of their own warp they know of all its lanes."""
        own = told.get(self.cluster)
        if own is not None and own[self.number]:
            self.lanes[lanes] = np.maximum(self.lanes[lanes], own[self.number])
        self.known = merged(self.known, told)

    def meet(self, lanes: Array) -> None:
        """Lanes have met as a warp (bar.warp.sync)."""
        together = self.lanes[lanes].max(axis=0)
        together[lanes] = self.time
        self.lanes[lanes] = np.maximum(self.lanes[lanes], together)
        self.tick()

    def meet_after_reads(self, lanes: Array) -> None:
        """Lanes have met in a shuffle or a vote: what they have read comes before what they do next."""
        together = self.reads[lanes].max(axis=0)
        together[lanes] = self.time
        self.reads[lanes] = np.maximum(self.reads[lanes], together)
        self.tick()

    def known_reads(self) -> Array:
        """Times of lanes up to which lanes know what those have read."""
        return np.maximum(self.lanes, self.reads)

    @contextmanager
    def using_tensor_memory(self) -> Iterator[None]:
        """Meanwhile it knows of others what tcgen05.fence has told it of their operations on tensor memory, too."""
        known = self.known
        self.known = merged(known, {cluster - TENSOR: row for cluster, row in known.items() if cluster >= TENSOR})
        yield
        self.known = known

    @contextmanager
    def using_mbarriers(self, *, together: bool) -> Iterator[None]:
        """Meanwhile it knows of inits what fence.mbarrier_init told it; together: its lanes count as one."""
        known, lanes = self.known, self.lanes
        if self.inits:
            self.known = merged(known, self.inits)
            own = self.inits.get(self.cluster)
            self.lanes = lanes if own is None else np.maximum(lanes, own[self.number])
        if together:
            self.lanes = np.full_like(lanes, self.time)
        yield
        self.known, self.lanes = known, lanes


class Clocks:
    """The warps of a grid. per_cta: warps of a CTA; per_cluster: of a cluster."""

    def __init__(self, per_cta: int, per_cluster: int) -> None:
        self.per_cta, self.per_cluster = per_cta, per_cluster
        self.later: Callable[[int], int] | None = None  # another time for a warp than the next one
        self._warps: dict[int, Warp] = {}
        self._carried: dict[Any, Known] = {}
        self._inits: dict[Any, Known] = {}
        self._met: dict[Any, Known] = {}
        self._halves: dict[Any, tuple[dict[int, Known], list[Message]]] = {}  # fences, and what was heard

    def warp(self, cluster: int, number: int) -> Warp:
        """A warp by its number in its cluster."""
        agent = cluster * self.per_cluster + number
        if agent not in self._warps:
            row = np.zeros(self.per_cluster, np.int64)
            row[number] = 1 if self.later is None else self.later(agent)
            self._warps[agent] = Warp(agent, cluster, number, {cluster: row}, later=self.later)
        return self._warps[agent]

    def cta_of(self, agent: Any) -> Any:
        """Rank in its cluster of the CTA of a warp, or of several."""
        return agent % self.per_cluster // self.per_cta

    def distance(self, warp: Warp, agents: Array) -> Array:
        """The narrowest scope that includes this warp and each of some others."""
        near = agents // self.per_cluster == warp.cluster
        same = near & (self.cta_of(agents) == warp.number // self.per_cta)
        return np.where(same, CTA, np.where(near, CLUSTER, GPU))

    def known(self, agents: Array, told: Mapping[int, Array]) -> Array:
        """Times of warps up to which a knowledge has them."""
        clusters, numbers = agents // self.per_cluster, agents % self.per_cluster
        found = np.zeros(agents.shape, np.int64)
        first = int(clusters.flat[0]) if clusters.size else 0
        if (clusters == first).all():  # mostly
            row = told.get(first)
            return found if row is None else row[numbers]
        several = np.unique(clusters).tolist()
        if clusters.size < _FEW * len(several):  # one by one
            places = zip(clusters.ravel().tolist(), numbers.ravel().tolist(), strict=True)
            times = [0 if (row := told.get(cluster)) is None else row[number] for cluster, number in places]
            return np.array(times, np.int64).reshape(agents.shape)
        for cluster in several:
            row = told.get(cluster)
            if row is not None:
                here = clusters == cluster
                found[here] = row[numbers[here]]
        return found

    # --- barriers -----------------------------------------------------------------------------------------------------

    def give(self, warp: Warp, key: Any, told: Known | None = None) -> None:
        """Whoever takes from `key` learns what a warp knows, or `told`."""
        self.carry(key, warp.known if told is None else told)
        if told is None and (warp.heard or any(scope > CTA for scope in warp.fenced)):
            fences, heard = self._halves.setdefault(key, ({}, []))
            for scope, known in warp.fenced.items():
                fences[scope] = merged(fences.get(scope, {}), known)
            heard += warp.heard
        if told is not None or warp.met:
            self._met[key] = merged(merged(self._met.get(key, {}), warp.known), warp.met)
        if warp.begun:
            self._inits[key] = merged(self._inits.get(key, {}), warp.begun)
        warp.tick()

    def take(self, warp: Warp, key: Any, lanes: Array) -> None:
        """Learn what others gave. A release or an acquire of which they have had one half may be ended by this warp, as
        programs do that have all threads run a fence, and one of them the atomic."""
        told = self._carried.get(key)
        if told is not None:
            warp.take(told, lanes)
        warp.inits = merged(warp.inits, self._inits.get(key, {}))
        warp.met = merged(warp.met, self._met.get(key, {}))
        fences, heard = self._halves.get(key, ({}, []))
        for scope, known in fences.items():
            warp.fenced[scope] = merged(warp.fenced.get(scope, {}), known)
        mine = {(one.agent, one.where) for one in warp.heard}
        warp.heard += [one for one in heard if one.agent != warp.agent and (one.agent, one.where) not in mine]

    def carry(self, key: Any, told: Known) -> None:
        """Whoever takes from `key` learns this."""
        self._carried[key] = merged(self._carried.get(key, {}), told)

    def carried(self, key: Any) -> Known:
        """What `key` has been told."""
        return self._carried.get(key, {})

    def forget(self, key: Any) -> None:
        """Nobody will take from it any more."""
        self._carried.pop(key, None)
        self._halves.pop(key, None)
        self._inits.pop(key, None)
        self._met.pop(key, None)

    # --- release and acquire patterns (8.8) ---------------------------------------------------------------------------

    def fence(self, warp: Warp, scope: int, lanes: Array, *, acquires: bool = True, releases: bool = True) -> None:
        """A fence: what was known is released by strong writes behind it, what relaxed reads saw is acquired. A
        one-sided fence does one of the two (8.4)."""
        if acquires:  # what a wider fence would acquire waits for one
            done = self._take_gathered(warp, scope, lanes)
            warp.heard = [one for one in warp.heard if not self._accept(warp, one, scope, lanes, done) and one.told]
        if releases:
            known = dict(warp.known)
            for narrower in range(CTA, scope + 1):
                warp.fenced[narrower] = known
        warp.tick()

    @staticmethod
    def fence_aliases(warp: Warp) -> None:
        """fence.proxy.alias: what is known now may be accessed by other addresses (8.6)."""
        rows = {cluster + ALIASED: row for cluster, row in warp.known.items() if 0 <= cluster < ALIASED}
        warp.known = merged(warp.known, rows)
        warp.tick()

    @staticmethod
    def aliased(warp: Warp) -> Known:
        """What a warp knows with a fence.proxy.alias behind it."""
        return {cluster - ALIASED: row for cluster, row in warp.known.items() if ALIASED <= cluster < TENSOR}

    def fence_tensor(self, warp: Warp, *, acquires: bool) -> None:
        """tcgen05.fence::after_thread_sync acquires what relaxed reads and waits have seen for the operations of
        tcgen05 behind it, ::before_thread_sync releases those before it (9.7.16.10.1)."""
        if acquires:
            for one in warp.heard:
                if one.told and one.scope >= self._between(warp, one):
                    warp.known = merged(warp.known, _of_tensor_memory(one.told))
        else:
            told = _of_tensor_memory(warp.known)
            for scope in NAMES:
                warp.fenced[scope] = merged(warp.fenced.get(scope, {}), told)
        warp.tick()

    def told_by(self, warp: Warp, scope: int, where: int, *, release: bool) -> list[Message]:
        """A strong write: what it tells."""
        found = self.tells(warp, scope, where, release=release)
        warp.tick()
        return found

    @staticmethod
    def tells(warp: Warp, scope: int, where: int, *, release: bool) -> list[Message]:
        """What a strong write tells: with fences of several scopes before it the more, the nearer a thread is."""
        if release:
            found = [Message(warp.agent, dict(warp.known), scope, where)]
        else:
            found = []
            for known in sorted((known for known in warp.fenced if known <= scope), reverse=True):
                if not any(covers(one.told or {}, warp.fenced[known]) for one in found):
                    found.append(Message(warp.agent, warp.fenced[known], known, where))
            found = found or [Message(warp.agent, None, scope, where)]
        return found

    def read(self, warp: Warp, message: Message, scope: int, lanes: Array, *, acquire: bool) -> None:
        """A strong read has seen a strong write."""
        if message.agent == warp.agent and message.told is None:
            return
        if acquire:
            self._accept(warp, message, scope, lanes)
            return
        reach = min(scope, message.scope)
        if message.told is None and any(known.agent == message.agent for known in warp.heard):
            return  # the release before it counts (8.8)
        others = (one for one in warp.heard if one.agent != message.agent or _beside(one, message, reach))
        warp.heard = list(others)[1 - MOST_HEARD :]
        warp.heard.append(Message(message.agent, message.told, reach, message.where))
        warp.missed[message.agent] = message, WEAK
        if message.told is not None and reach >= self._between(warp, message):
            warp.seen = merged(warp.seen, message.told)

    def read_all(self, warp: Warp, heard: Together, scope: int, lanes: Array, *, acquire: bool) -> bool:
        """The same for several writes, whose scopes and that of the read include all threads of the device; whether
        they can be looked at together."""
        if not acquire:
            return self._hear(warp, heard, scope)
        missed = heard.reached(scope)
        mine, kept = missed.get(warp.agent), warp.missed.get(warp.agent)
        warp.missed |= missed
        if mine is not None and mine[0].told is None:  # which is no news to itself
            del warp.missed[warp.agent]
            if kept is not None:
                warp.missed[warp.agent] = kept
        self._take_in(warp, heard.told, lanes)
        return True

    @staticmethod
    def _hear(warp: Warp, heard: Together, scope: int) -> bool:
        """A relaxed read has seen strong writes."""
        if len(heard.last) < len(heard.messages) or any(one.told is None for one in heard.messages):
            return False  # what a warp told before may count
        messages = heard.heard(scope)
        here = {one.agent: one for one in messages}
        others = [
            one for one in warp.heard
            if one.agent not in here or _beside(one, here[one.agent], here[one.agent].scope)
        ]  # fmt: skip
        warp.heard = (others + messages)[-MOST_HEARD:]
        warp.missed |= {agent: (one, WEAK) for agent, one in heard.last.items()}
        warp.seen = merged(warp.seen, heard.told)
        if not any(parts is messages for _, parts in warp.gathered):
            warp.gathered = [*warp.gathered, (heard.told, messages)][-_MOST_GATHERED:]
        return True

    def _take_gathered(self, warp: Warp, scope: int, lanes: Array) -> set[Message]:
        """At a fence for all threads of the device: take in what messages tell together that wait for it; these."""
        done: set[Message] = set()
        if scope < GPU or not warp.gathered:
            return done
        here = set(warp.heard)
        for told, messages in warp.gathered:
            if here.issuperset(messages):
                self._take_in(warp, told, lanes)
                done.update(messages)
        warp.gathered = []
        return done

    def _accept(self, warp: Warp, message: Message, scope: int, lanes: Array, done: Collection[Message] = ()) -> bool:
        """Take in what a message tells, if the scopes of both sides reach; whether they do. done: what has been."""
        reach = min(message.scope, scope)
        warp.missed[message.agent] = message, reach
        if message.told is None or reach < self._between(warp, message):
            return False
        if message not in done:
            self._take_in(warp, message.told, lanes)
        return True

    @staticmethod
    def _take_in(warp: Warp, told: Known, lanes: Array) -> None:
        key = id(told), lanes.tobytes()
        if warp.taken.get(key) is not told:  # a poll takes in the same again
            warp.take(told, lanes)
            if len(warp.taken) >= _MOST_TAKEN:
                warp.taken.clear()
            warp.taken[key] = told

    def _between(self, warp: Warp, message: Message) -> int:
        """The narrowest scope that includes a warp and the one that wrote."""
        if message.agent // self.per_cluster != warp.cluster:
            return GPU
        return CTA if self.cta_of(message.agent) == warp.number // self.per_cta else CLUSTER


def _of_tensor_memory(known: Known) -> Known:
    """What is known of operations of tcgen05, of a knowledge."""
    plain = {cluster + TENSOR: row for cluster, row in known.items() if 0 <= cluster < ALIASED}
    return merged(plain, {cluster: row for cluster, row in known.items() if cluster >= TENSOR})


def _beside(one: Message, message: Message, reach: int) -> bool:
    """Whether two messages of a warp are of one write, for threads of different distances."""
    return one.where == message.where and one.scope != reach
