"""Words of global memory that do nothing but tell: counters and flags of grid barriers, in racecheck's second look.

Of such a word all accesses are strong, of its size and for all threads of the device: atomics of one sort whose results
nobody uses, and reads that acquire, by lines that have decided an order already. None of them can race with another
one, or decide anything new. So what they tell is one row of times beside those that native code has
(`machine.clocks`), and they are only written down. Before any other access to the word what was written down is judged
as `Pages` does (`Flags.judge`), with what each warp knew then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ptxtools.machine.observers import Doubt
from ptxtools.machine.residents import HEARS
from ptxtools.program.program import LANES
from ptxtools.records import NamedTuple, dataclass, field, replace

from .clocks import GPU, SYS, TENSOR, Together, Warp
from .race_accesses import scope_named, sort_of, strength_of
from .race_joins import GRID_UNTIL, PLAIN, TOOK
from .race_repeats import polls
from .race_shadow import EARLIER, words_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from ptxtools.machine.clocks import Clocks as Tables
    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Access, Array
    from ptxtools.program.program import Op

    from .clocks import Clocks, Known, Message
    from .race_accesses import Strength
    from .race_pages import Pages
    from .race_repeats import Polls
    from .race_shadow import Page, Shadow
    from .race_verdict import Deciders
    from .race_words import Words

#: Sizes of such words.
_SIZES = (4, 8)
#: How often it is tried to take a word for one.
_TRIES = 64
#: How many accesses have to be written down so that it was worth while; what it counts as else, if some were and if
#: none.
_WORTH, _AGAIN, _VAIN = 16, 16, 4
#: How many there may be at a time; bytes of what warps knew that are kept for one (whoever wants more of it to be
#: judged has another look); and how much of what has been told is known by identity.
_MOST, _MOST_KEPT, _MOST_WITHIN = 256, 32 << 20, 256
#: What native code lets mbarriers tell, too (`MOMENT.plain`).
_PLAIN = 2
#: Strengths of the reads and the atomics; those that acquire, and that release.
_READS, _ATOMICS = ("acquire", "relaxed", "volatile"), ("", "relaxed", "acquire", "release", "acq_rel")
_ACQUIRES, _RELEASES = ("acquire", "acq_rel"), ("release", "acq_rel")
#: Fences that are something else, or acquire nothing.
_OTHER_FENCES = ("proxy", "mbarrier_init", "release")
_NO_LANES = np.zeros(0, np.int64)


class Entry(NamedTuple):
    """An access that is written down. times: of the warp, before it and for it; row: what it knew; seen: `Warp.seen`;
    least: up to which time all of its lanes knew each other; told: what it told."""

    op: Op
    access: Access
    strength: Strength
    agent: int
    times: tuple[int, int]
    row: Array
    seen: Known
    least: int
    told: list[Message]


@dataclass(eq=False)
class Flag:
    """One word. told: what has been told, up to which time of each warp; sort: of its atomics (0: none was); base:
    writes of another kind, by warp and time, that all must know of; lanes: by warp its one lane; writer, written,
    where: the last write; atomics: those that may have come in another order, as `Deciders.settled` gives them;
    messages: the last one of each warp, and as a row; heard: these are all; log: what is written down; lost: some of it
    is no longer; within: what has been told that is in `told`, by identity."""

    place: int
    size: int
    told: Array
    sort: int = 0
    base: list[tuple[int, int]] = field(default_factory=list)
    lanes: dict[int, int] = field(default_factory=dict)
    writer: int = -1
    written: int = 0
    where: int = -1
    atomics: dict[tuple[int, int], int] = field(default_factory=dict)
    messages: dict[int, tuple[Message, Array]] = field(default_factory=dict)
    heard: bool = True
    log: list[Entry] = field(default_factory=list)
    lost: bool = False
    within: dict[int, Known] = field(default_factory=dict)

    def tell(self, message: Message, row: Array | None) -> None:
        """Something is told, as a message, and as a row; None: nothing is."""
        before = self.messages.get(message.agent)
        if row is None:
            self.heard = False
            return
        if before is not None and (before[0].scope > message.scope or (before[1] > row).any()):
            self.heard = False
        np.maximum(self.told, row, out=self.told)
        self.messages = {**self.messages, message.agent: (message, row)}  # others have the one before


class _Past:
    """An event of earlier on; what is not known of it is in doubt."""

    def __init__(self, op: Op) -> None:
        self.op = op

    def __getattr__(self, name: str) -> Any:
        raise Doubt


class Flags:
    """Those of a grid. tell: leaves what a strong write tells in a shadow; possible: there may be any."""

    def __init__(
        self, clocks: tuple[Clocks, Words, Tables], deciders: Deciders, pages: Pages, polls: Polls, shadow: Shadow,
        tell: Callable[[View, Access, Warp, Strength, Shadow, Array, list[Message]], None], *, possible: bool,
    ) -> None:  # fmt: skip
        self._clocks, self._words, self._tables = clocks
        self._deciders, self._pages, self._polls, self._shadow = deciders, pages, polls, shadow
        self._tell, self._possible = tell, possible
        self._flags: dict[tuple[int, int], Flag] = {}
        self._by_word: dict[int, Flag] = {}
        self._tries: dict[tuple[int, int], int] = {}
        self._fenced: dict[int, tuple[Known, Array]] = {}  # by warp what its last fence released, and as a row
        #: What warps have heard, for the next fence: what was told, by which messages, and the scope of the read.
        self._heard: dict[int, dict[Flag, tuple[Array, dict[int, tuple[Message, Array]], int]]] = {}

    # --- accesses -----------------------------------------------------------------------------------------------------

    def passes_again(self, at: View, access: Access) -> bool:
        """The same where nothing has to be known of the warp: it only looks, and has done nothing but that since Python
        was told of it."""
        flag = self._of_access(access)
        if flag is None or access.action != "read":
            return False
        warp = self._words.unmoved(at.cta.number * self._tables.per_cta + at.warp)
        strength = None if warp is None else self._fits(at, access)
        if warp is None or strength is None or not self._knows(flag, access, warp):
            return False
        plain = int(self._tables.times[warp.agent, PLAIN])
        return plain in (_PLAIN, HEARS) and self._look(at, access, warp, flag, strength)

    def _of_access(self, access: Access) -> Flag | None:
        if not self._flags or len(access.lanes) != 1:
            return None
        return self._flags.get((int(access.addresses[0]), access.size))

    def passes(self, at: View, access: Access, warp: Warp) -> bool:
        """A strong access to global memory: whether it is written down, and nothing else has to be done."""
        flag = self._of_access(access)
        strength = None if flag is None else self._fits(at, access)
        if flag is None or strength is None or not self._knows(flag, access, warp):
            return False
        if warp.heard and access.strength in _ACQUIRES:
            warp.heard = [one for one in warp.heard if not self._within(flag, one.told or {})]
        self._words.publish(at, warp)
        if self._tables.times[warp.agent, PLAIN] != _PLAIN:
            return False
        if access.action == "read":
            return self._look(at, access, warp, flag, strength)
        return self._add(at, access, warp, flag, strength)

    def _within(self, flag: Flag, told: Known) -> bool:
        """Whether who acquires what a flag tells knows this, too."""
        if flag.within.get(id(told)) is told:
            return True
        good = self._plain(told) and not (self._of(told) > flag.told).any()
        if good:
            if len(flag.within) >= _MOST_WITHIN:
                flag.within.clear()
            flag.within[id(told)] = told
        return good

    def _fits(self, at: View, access: Access) -> Strength | None:
        """Its strength, if it is an access as such words have."""
        op = at.op
        strength = strength_of(at, access, by_words=False)
        if strength.scope < GPU or strength.unit != access.size or op.opcode is None:
            return None
        if access.action == "read":
            good = polls(op) and access.strength in _READS and self._deciders.decided(op.where)
        else:
            family = op.opcode.family
            good = access.action == "atomic" and access.strength in _ATOMICS and sort_of(at, access) > 0
            good = good and (family == "red" or family == "atom")
        return strength if good else None

    def _knows(self, flag: Flag, access: Access, warp: Warp) -> bool:
        """Whether a warp knows of other writes, and has but one lane there."""
        row = self._tables.known[warp.agent]
        lane = int(access.lanes[0])
        if flag.lanes.setdefault(warp.agent, lane) != lane:
            return False
        return all(agent == warp.agent or int(row[agent]) >= time for agent, time in flag.base)

    def _look(self, at: View, access: Access, warp: Warp, flag: Flag, strength: Strength) -> bool:
        if access.strength in _ACQUIRES:
            learns = self._take(warp, flag.told, access.lanes)
            self._heard.get(warp.agent, {}).pop(flag, None)
        elif flag.heard:
            learns = self._hear(warp, flag, strength.scope)
        else:
            return False
        self._show(warp)
        self._note(flag, at, access, strength, warp, (warp.time, warp.time), [])
        self._polls.found(at, access, warp, learns=learns)
        return True

    def _take(self, warp: Warp, told: Array, lanes: Array) -> bool:
        """Lanes of a warp acquire what was told, as native code does it at mbarriers; whether they learn anything."""
        tables, number = self._tables, warp.agent
        moment, row = tables.times[number], tables.known[number]
        own, mine = int(told[number]), int(row[number])
        if own <= mine and not (told > row).any():
            return False
        np.maximum(row, told, out=row)
        row[number] = mine
        tables.lanes[number, lanes] = np.maximum(own, tables.lanes[number, lanes])
        moment[TOOK] = 1
        moment[GRID_UNTIL] = self._words.until_of_grid(number)
        return True

    def _hear(self, warp: Warp, flag: Flag, scope: int) -> bool:
        """A warp has heard what was told, and acquires it by its next fence; whether that is new."""
        heard = self._heard.setdefault(warp.agent, {})
        before = heard.get(flag)
        heard[flag] = flag.told.copy(), flag.messages, scope
        return before is None or before[1] is not flag.messages or before[2] != scope

    def _add(self, at: View, access: Access, warp: Warp, flag: Flag, strength: Strength) -> bool:
        opcode, release = at.op.opcode, access.strength in _RELEASES
        assert opcode is not None
        acquires, reads = access.strength in _ACQUIRES, opcode.family == "atom"
        fences = [scope for scope in warp.fenced if scope <= strength.scope]
        if flag.sort not in (0, sort_of(at, access)) or not (release or not fences or max(fences) >= GPU):
            return False
        told = self._clocks.tells(warp, strength.scope, at.op.where, release=release)
        if len(told) != 1 or told[0].scope < GPU or not self._plain(told[0].told or {}):
            return False
        if (reads and not (acquires or flag.heard)) or self._decides(at, warp, flag):
            return False
        if acquires and self._take(warp, flag.told, access.lanes):
            self._words.learn(warp.agent)
            self._words.publish(at, warp)
        elif reads and not acquires:
            self._hear(warp, flag, strength.scope)
        before = warp.time
        if flag.writer == warp.agent and flag.written == before:
            warp.tick()
        now = warp.time
        flag.sort, flag.writer, flag.written, flag.where = sort_of(at, access), warp.agent, now, at.op.where
        if release:
            told = self._clocks.tells(warp, strength.scope, at.op.where, release=True)
        flag.tell(replace(told[0], extent=(flag.place, flag.place + flag.size)), self._row(warp, told[0].told))
        self._note(flag, at, access, strength, warp, (before, now), told)
        warp.tick()
        self._polls.written(None, access.addresses.astype(np.int64), access.size)
        self._polls.moved(warp.agent)
        self._words.publish(at, warp)
        self._show(warp)
        return True

    def _show(self, warp: Warp) -> None:
        """Let native code know whether a warp has heard anything."""
        self._tables.times[warp.agent, PLAIN] = HEARS if self._heard.get(warp.agent) else _PLAIN

    def _decides(self, at: View, warp: Warp, flag: Flag) -> bool:
        """Whether an atomic may be the first to show that an order is open, its own or that of one before it. Of those
        that are noted, one that a warp does not know of has come in an open order."""
        row, quiet = self._tables.known[warp.agent], self._deciders.quiet
        mine, last = quiet(at.op.where), (flag.writer, flag.where)
        known = flag.writer in (-1, warp.agent) or int(row[flag.writer]) >= flag.written
        if not known:
            flag.atomics[last] = flag.written
        for (agent, where), time in flag.atomics.items():
            if agent != warp.agent and int(row[agent]) < time and not (mine and quiet(where)):
                return True
        if not mine:
            flag.atomics[warp.agent, at.op.where] = warp.time
        return False

    # --- what relaxed reads have heard --------------------------------------------------------------------------------

    def fence(self, at: View, warp: Warp, lanes: Array) -> None:
        """A warp comes to a fence, which may acquire what it has heard for all threads of the device."""
        opcode = at.op.opcode
        if not self._heard.get(warp.agent) or opcode is None or opcode.family not in ("fence", "membar"):
            return
        if any(map(opcode.has, _OTHER_FENCES)) or scope_named(at, SYS) < GPU:
            return
        for told, _, _ in self._heard.pop(warp.agent).values():
            self._take(warp, told, lanes)
        self._words.learn(warp.agent)

    def settle(self, warp: Warp) -> None:
        """A warp does anything else: it has heard this (`Warp.heard`)."""
        for _, messages, scope in self._heard.pop(warp.agent, {}).values():
            together = Together()
            together.renew([message for message, _ in messages.values()])
            self._clocks.read_all(warp, together, scope, _NO_LANES, acquire=False)

    def _note(
        self, flag: Flag, at: View, access: Access, strength: Strength, warp: Warp, times: tuple[int, int],
        told: list[Message],
    ) -> None:  # fmt: skip
        row = self._tables.known[warp.agent].copy()
        if flag.lost or (len(flag.log) + 1) * row.nbytes > _MOST_KEPT:
            flag.lost, flag.log = True, []
            return
        known = np.maximum(warp.known_reads(), self._tables.lanes[warp.agent][:, None])
        row[warp.agent] = times[0]
        flag.log.append(Entry(at.op, access, strength, warp.agent, times, row, warp.seen, int(known.min()), told))

    def _row(self, warp: Warp, told: Known | None) -> Array | None:
        """What a warp tells as a row."""
        if told is None:
            return None
        fenced, row = self._fenced.get(warp.agent, (None, None))
        if fenced is told and row is not None:
            return row
        return self._of(told)

    def fenced(self, warp: Warp) -> None:
        """A warp has had a fence, and native code knows what it knows."""
        told = warp.fenced.get(GPU)
        if self._flags and told is not None and self._fenced.get(warp.agent, (None,))[0] is not told:
            moment, row = self._tables.times[warp.agent], self._tables.known[warp.agent].copy()
            if moment[PLAIN] == _PLAIN:
                row[warp.agent] = int(told[warp.cluster][warp.number])
                self._fenced[warp.agent] = told, row

    # --- which ones ---------------------------------------------------------------------------------------------------

    def consider(self, at: View, access: Access) -> None:
        """A strong access to global memory has been judged: that may be such a word."""
        if not self._possible or len(access.lanes) != 1 or access.size not in _SIZES or len(self._flags) >= _MOST:
            return
        place = int(access.addresses[0])
        key = place, access.size
        tries = self._tries.get(key, 0)
        if place % access.size or tries >= _TRIES or self._fits(at, access) is None:
            return
        self._tries[key] = tries + 1
        flag = self._made(place, access.size)
        if flag is not None:
            self._flags[key] = flag
            self._by_word |= dict.fromkeys(words_in((place, place + access.size)), flag)

    def _made(self, place: int, size: int) -> Flag | None:
        extent = place, place + size
        words = words_in(extent)
        pieces = self._shadow.pieces(np.array([place]), size)
        if len(pieces) != 1 or any(word in self._by_word for word in words):
            return None
        flag = Flag(place, size, np.zeros(self._tables.count, np.uint32))
        if not (self._written(flag, pieces[0]) and self._read(flag, pieces[0])):
            return None
        atomics = self._deciders.settled(words, flag.sort)
        if atomics is None:
            return None
        flag.atomics = atomics
        messages = self._shadow.told(extent)
        if any(len(self._shadow.messages.get(word, ())) != len(messages) for word in words):
            return None
        for one in messages:
            if one.scope < GPU or not self._plain(one.told or {}):
                return None
            flag.tell(one, None if one.told is None else self._of(one.told))
        return flag

    def _written(self, flag: Flag, piece: tuple[int, Page, Array, Array]) -> bool:
        """Take over what is kept of writes."""
        _, page, inside, _ = piece
        for columns in (page.writes, *(hidden for hidden in page.hidden if hidden is not None)):
            found = {name: np.unique(column[inside]).tolist() for name, column in columns.items()}
            if found["written"] == [0]:
                continue
            if any(len(found[name]) > 1 for name in ("writer", "written", "lane", "scope", "unit", "sort")):
                return False
            (writer,), (written,), (lane,) = found["writer"], found["written"], found["lane"]
            (scope,), (unit,), (sort,) = found["scope"], found["unit"], found["sort"]
            if flag.lanes.setdefault(writer, lane) != lane:
                return False
            if scope >= GPU and unit == flag.size and sort > 0 and flag.sort in (0, sort):
                flag.sort = sort
            else:
                flag.base.append((writer, written))
            if columns is page.writes:
                flag.writer, flag.written, flag.where = writer, written, found["where"][0]
        return True

    def _read(self, flag: Flag, piece: tuple[int, Page, Array, Array]) -> bool:
        """Take over what is kept of reads."""
        _, page, inside, _ = piece
        reads = page.reads
        for row, agent in enumerate(page.readers):
            for which in EARLIER:
                there = reads[f"{which}time"][row, inside] > 0
                good = (reads[f"{which}scope"][row, inside] >= GPU) & (reads[f"{which}unit"][row, inside] == flag.size)
                lines = set(reads[f"{which}where"][row, inside][there].tolist())
                if not good[there].all() or not all(map(self._deciders.decided, lines)):
                    return False
            bits = set(reads["lanes"][row, inside].tolist()) - {0}
            for mask in bits:
                lane = mask.bit_length() - 1
                if mask & (mask - 1) or flag.lanes.setdefault(agent, lane) != lane:
                    return False
        return True

    def _plain(self, told: Known) -> bool:
        """Whether native code has all of a knowledge."""
        per, count = self._clocks.per_cluster, self._tables.count
        return not told or (min(told) >= 0 and max(told) < TENSOR and max(told) * per < count)

    def _of(self, told: Known) -> Array:
        row = np.zeros(self._tables.count, np.uint32)
        per = self._clocks.per_cluster
        for cluster, times in told.items():
            row[cluster * per : (cluster + 1) * per] = times
        return row

    # --- what is written down -----------------------------------------------------------------------------------------

    def touched(self, places: Array, size: int) -> None:
        """Global memory is accessed in another way."""
        if self._by_word:
            words = (places[:, None] + np.arange(0, size + 3, 4)) // 4 if len(places) else places
            for word in set(np.minimum(words, (places[:, None] + size - 1) // 4).ravel().tolist()):
                flag = self._by_word.get(word)
                if flag is not None:
                    self.judge(flag)

    def judge(self, flag: Flag) -> None:
        """Judge what was written down, and let it be a word like others."""
        extent = flag.place, flag.place + flag.size
        del self._flags[flag.place, flag.size]
        for word in words_in(extent):
            del self._by_word[word]
        if flag.lost:
            raise Doubt
        if len(flag.log) < _WORTH:
            self._tries[flag.place, flag.size] += _AGAIN if flag.log else _VAIN
        for entry in flag.log:
            self._again(entry)

    def _again(self, entry: Entry) -> None:
        per = self._clocks.per_cluster
        rows, (_, now) = entry.row.astype(np.int64).reshape(-1, per), entry.times
        known = {cluster: rows[cluster] for cluster in np.flatnonzero(rows.any(axis=1)).tolist()}
        lanes = np.full((LANES, LANES), entry.least)
        cluster, number = divmod(entry.agent, per)
        warp = Warp(entry.agent, cluster, number, known, lanes, seen=entry.seen, later=lambda _: now)
        view: Any = _Past(entry.op)
        access, strength = entry.access, entry.strength
        places = access.addresses.astype(np.int64)
        for which, page, inside, bytes_ in self._shadow.pieces(places, access.size):
            who = access.lanes[bytes_ // access.size]
            self._pages.look(view, access, warp, None, (which, page), inside, who, None, strength)
        if entry.told:
            self._tell(view, access, warp, strength, self._shadow, places, entry.told)
