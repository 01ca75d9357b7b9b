"""Asynchronous work of a walk: copies, products, and the mbarriers and groups that tell when it is done."""

from __future__ import annotations

from bisect import insort
from typing import TYPE_CHECKING, cast

from ptxtools.ir.nodes import Immediate

from ..values import WARP, ZERO, Terms, Value, plus, shortest
from .bars import Bar
from .columns import Columns, columns_of
from .computing import Op, unknown
from .factors import Factors
from .multicasts import Multicasts
from .peers import Peers
from .phases import (
    look_at_arrivals,
    look_at_bytes,
    look_at_everybody,
    look_at_lanes,
    look_at_last,
    look_at_store,
    look_at_stuck,
    look_at_waiting,
    parity_of,
    phase_of,
)
from .shadow import FLIGHT, OWNER, Place, Touch, within

if TYPE_CHECKING:
    from .memory import Memory
    from .walker import Group

#: Bytes that each tensor copy moves at least.
_TENSOR = 16
#: mbarriers at offsets of one address with which stores are compared.
_MOST = 64
#: Bytes of a tensor map.
_MAP = 128
#: Bytes of a response of clusterlaunchcontrol.
_RESPONSE = 16


_HALF = (1 << WARP) - 1


def _halves(mask: int) -> list[int]:
    """The halves of the threads in which some are."""
    return [half for half in (0, 1) if mask >> half * WARP & _HALF]


class Flights:
    """The asynchronous work of a walk that is under way, by the groups and mbarriers that complete it."""

    def __init__(self, memory: Memory) -> None:
        self.memory, self.walker = memory, memory.walker
        self.shadow, self.threads = memory.shadow, memory.threads
        self._groups: dict[tuple[str, int], list[set[int]]] = {}
        self._issued: dict[int, int] = {}  # the threads that have issued work of tcgen05, by its token
        self._token = 0
        self._bars: dict[Value, Bar] = {}
        self._state: tuple[Value, int] | None = None  # the mbarrier and phase of the last arrival, if known
        self._commits = False  # whether tcgen05.commit may arrive at any of them
        self._alive: dict[Terms, list[int]] = {}  # the mbarriers between their mbarrier.init and mbarrier.inval
        #: tcgen05 instructions that no fence::before_thread_sync follows; one that a barrier then came behind, or
        #: that a wait for an mbarrier completed, until fence::after_thread_sync.
        self._fences = memory.walker.program.fences
        self._unfenced: list[Op] = []
        self._crossed: tuple[Op, str] | None = None
        self._changed = any(line.plan.family == "tensormap" for line in self.walker.program.lines)
        self.columns = Columns(memory)
        self.factors = Factors(memory)
        self.multicasts = Multicasts(memory)
        self.peers = Peers(memory)
        self._abroad: set[int] = set()  # copies from the memory of a CTA that an mbarrier of another one completes

    def _open(self, kind: str, half: int) -> list[set[int]]:
        """Groups of one half of the threads that nobody has waited for, the last one not committed."""
        return self._groups.setdefault((kind, half), [set()])

    def _add(self, kind: str, mask: int) -> int:
        """Asynchronous work of some threads: its token."""
        self._token += 1
        for half in _halves(mask):
            self._open(kind, half)[-1].add(self._token)
        return self._token

    def _commit(self, kind: str, mask: int) -> None:
        for half in _halves(mask):
            self._open(kind, half).append(set())

    def _all(self, kind: str, mask: int) -> set[int]:
        """What is under way of some threads."""
        return {token for half in _halves(mask) for group in self._open(kind, half) for token in group}

    def _wait(self, kind: str, left: int, mask: int, read: bool = False) -> None:
        """Wait until at most `left` groups are under way. read: until the others have read what they copy, no more."""
        for half in _halves(mask):
            groups = self._open(kind, half)
            done = max(0, len(groups) - 1 - max(0, left))
            tokens = set().union(*groups[:done])
            if not read:
                del groups[:done]
            if tokens:
                self.shadow.settle(tokens, mask & _HALF << half * WARP, read=read)

    def lose(self) -> None:
        """Nothing is known any more of what is under way."""
        tokens = {token for groups in self._groups.values() for group in groups for token in group}
        for bar in self._bars.values():
            tokens |= bar.copies | bar.done
            bar.vague = True
        self.shadow.settle(tokens, -1)

    def hear(self) -> None:
        """A peer may have told that what it was sent has come."""
        if self.peers.exact:
            return
        self.shadow.settle(self._abroad, -1)
        self._abroad.clear()

    def end(self) -> None:
        """All threads have ended: the copies for which nothing has waited."""
        self.columns.end()
        if self.walker.assumed or not (self.threads.whole and self.threads.declared):
            return
        for bar in self._bars.values():
            copy = self.shadow.flying(bar.copies) if bar.count is not None and not bar.vague else None
            if copy is not None:
                message = "nothing waits for the mbarrier of this copy: the CTA may end while it is under way"
                self.walker.report("never awaited", copy.line, None, message)

    def store(self, touch: Touch) -> None:
        """An ordinary store to shared memory, or a copy to there."""
        look_at_store(self.memory, touch, self._alive.get(touch.address.terms, []))

    def copy(self, group: Group, op: Op, mask: int) -> bool:
        opcode = op.opcode
        bulk = ".bulk" in opcode
        kind = "bulk" if bulk else "cp"
        if ".commit_group" in opcode:
            self._commit(kind, mask)
        elif ".wait_all" in opcode:
            self._commit("cp", mask)
            self._wait("cp", 0, mask)
        elif ".wait_group" in opcode:
            count = op.line.item.operands[0] if op.line.item.operands else None
            self._wait(kind, count.value if isinstance(count, Immediate) else 0, mask, ".read" in opcode)
            if bulk:
                self.shadow.acquire(mask, lanes=mask & mask - 1 > 0)
        elif "mbarrier.arrive" in opcode:
            self._arrives_behind(group, op, mask)
        elif ".mbarrier::" in opcode and self.peers.follows(group):
            return True in [self._copies(group, op, mask & _HALF << half * WARP, kind) for half in _halves(mask)]
        elif "prefetch" not in opcode:
            self._copies(group, op, mask, kind)
        return False

    def _copies(self, group: Group, op: Op, mask: int, kind: str) -> bool:
        """Copies begin; whether one that is over at once, as all that is followed exactly, lets threads go on."""
        spaces = [word.partition("::")[0] for word in op.opcode.split(".")]
        spaces = [word for word in spaces if word in ("shared", "global")]
        tensor = ".tensor" in op.opcode
        exact = ".mbarrier::" in op.opcode and self.peers.follows(group)
        size = _TENSOR if tensor else self.memory.size_at(group, op, 2, mask if exact else 0)
        bar = self._completes(group, op) if ".mbarrier::" in op.opcode and not exact else None
        flies = kind == "bulk" or ".async" in op.opcode
        if exact:
            self._token += 1
            token = self._token
        elif bar is not None:
            self._token += 1
            token = self._token
            bar.copies.add(token)
            plain = not tensor and ".multicast" not in op.opcode and size > 0
            self._bring(bar, size if plain else None, mask)
            bar.copied += 1
            where = self.memory.place_of(group, op, 0, spaces[0]) if tensor and ".multicast" not in op.opcode else None
            if where is not None and mask.bit_count() == 1:
                bar.tensors.append((op, where.address))
        else:
            token = self._add(kind, mask)
        if tensor or ".multicast" in op.opcode:
            self.memory.unseen()  # how many bytes a tensor copy writes, the map says
        if ".multicast" in op.opcode:
            to = self.memory.place_of(group, op, 0, "shared")
            self.multicasts.copies(group, op, mask, to.address if to else None, self._where(group, op), size)
            for owner in self.peers.copied_to(group, op, mask) if exact and to is not None and size else ():
                there = Place("shared", within(to.address, owner))  # type: ignore[union-attr]
                self.memory.touch(group, op, 0, there, size, mask, "stores", False, None, True, token)
            return exact and self.peers.brings(group, op, mask, size, token)
        for operand, space in enumerate(spaces[:2]):
            if tensor and space == "global":
                self._map(group, op, operand, mask & -mask, token)
                continue
            place = self.memory.place_of(group, op, operand, space)
            if place is None or not size:
                if operand == 0 and space == "shared":
                    self.memory.unseen()
                elif operand == 0:
                    self.memory.discards.lose()
                continue
            writes = operand == 0
            if writes and (".reduce" in op.opcode or ".cp_mask" in op.opcode):  # which bytes, is not known
                continue
            # The thread that issues a cp.async reads and stores: others have to wait for it behind a barrier.
            flight = flies and kind == "bulk"
            if flight and not writes and (exact or (bar is not None and bar.count is None)):
                self.multicasts.arrives(op, self._where(group, op) or ZERO, mask)
                if not exact:
                    self._abroad.add(token)  # the mbarrier is that of a peer, who may tell that the copy is done
            if space == "global" and not writes:
                self.memory.grids.note(op.line, operand, place.address, mask, "reads")
                continue
            if kind == "bulk" and not writes and space == "shared":
                self.memory.proxies.read(op, operand, place.address, size, mask, "proxy of a copy")
            self.memory.touch(
                group, op, operand, place, size, mask, "stores" if writes else "reads", False, None, flight, token
            )
            if kind == "cp":
                self.shadow.fly(token)
        return exact and self.peers.brings(group, op, mask, 0 if tensor else size, token)

    def _map(self, group: Group, op: Op, operand: int, mask: int, token: int = 0) -> None:
        """A tensor copy reads its map; without a token, something changes it."""
        place = self.memory.place_of(group, op, operand, "global")
        if place is None or not self._changed or self.threads.apart:
            return
        if token:
            self.memory.touch(group, op, operand, place, _MAP, mask, "reads", False, None, True, token)
            return
        for used in self.shadow.at(place.space, place.address.terms):
            if used.moment == FLIGHT and used.token and used.address == place.address:
                message = "the tensor map changes while the copy in line {line} may use it: nothing has waited for it"
                self.walker.report("in flight", op.line, operand, message, used.line)
                return

    def changes_map(self, group: Group, op: Op, mask: int) -> None:
        """tensormap.replace and tensormap.cp_fenceproxy: one thread, or a warp together."""
        first = sum(part & -part for part in (mask & _HALF, mask & _HALF << WARP))
        replaces = op.opcode.startswith("tensormap.replace")
        if "global" in op.opcode.split("."):
            self._map(group, op, 0, first)
        place = self.memory.place_of(group, op, 0 if replaces else 1, "shared") if ".shared::cta" in op.opcode else None
        if place is not None:
            kind = "stores" if replaces else "reads"
            self.memory.touch(group, op, 0 if replaces else 1, place, _MAP, mask if replaces else first, kind, False)

    def answer(self, group: Group, op: Op, mask: int) -> None:
        """clusterlaunchcontrol.try_cancel: its response is stored as a copy stores."""
        if ".try_cancel" not in op.opcode:
            return
        self.memory.unseen()
        place = self.memory.place_of(group, op, 0, "shared")
        bar = self._completes(group, op)
        self._token += 1
        if bar is not None:
            bar.copies.add(self._token)
            self._bring(bar, _RESPONSE, mask)
            bar.copied += 1
        if place is not None and ".multicast" not in op.opcode:
            self.memory.touch(group, op, 0, place, _RESPONSE, mask, "stores", False, None, True, self._token)

    def _arrives_behind(self, group: Group, op: Op, mask: int) -> None:
        """cp.async.mbarrier.arrive: it arrives once the copies of its threads are done."""
        found = self._completes(group, op)
        for bar in self._bars.values() if found is None else (found,):
            bar.copies |= self._all("cp", mask)
        if found is not None and ".noinc" in op.opcode:
            found.arrive(mask.bit_count(), _halves(mask), self.shadow.tick())

    def _completes(self, group: Group, op: Op) -> Bar | None:
        value = self._where(group, op)
        return self._bar(value) if value is not None else None

    def _where(self, group: Group, op: Op) -> Value | None:
        """The address of the mbarrier that asynchronous work completes on."""
        if not op.addresses:
            return None
        _, base, offset = op.addresses[-1]
        return plus(self.walker.value(group, base), Value((), offset))

    def _at_home(self, group: Group, op: Op) -> Bar | None:
        """The mbarrier at the same place as one of the peer, in the CTA itself: both do the same."""
        _, base, offset = op.addresses[-1]
        value = plus(self.walker.value(group, base), Value((), offset))
        owners = {number >> OWNER for number in value.numbers}
        if self.threads.kind != "cluster" or 0 in owners or len(owners) != 2:
            return None
        return self._bars.get(Value(value.terms, shortest(iter([n & (1 << OWNER) - 1 for n in value.numbers]))))

    def _bring(self, bar: Bar, size: int | None, mask: int) -> None:
        """A copy brings bytes to an mbarrier; to which one of a peer is not always known."""
        if bar.count is None:
            self.shadow.unsure.add(self._token)
        bar.bring(size, mask)
        for each in self._bars.values() if self.threads.apart and bar.count is None else ():
            each.brought = None

    def _bar(self, value: Value) -> Bar:
        found = self._bars.get(value)
        if found is None:
            found = self._bars[value] = Bar(None)
        return found

    def state(self, op: Op) -> Value:
        """What an instruction at an mbarrier gives: the phase in which it arrives."""
        if self._state is None or ".arrive" not in op.opcode:
            return unknown(False, id(op.line.item), self.walker.moment)
        return unknown(False, "phase", *self._state)

    def mbarrier(self, group: Group, op: Op, mask: int) -> bool:
        self._state = None
        if not op.addresses:
            return False
        _, base, offset = op.addresses[0]
        value = plus(self.walker.value(group, base), Value((), offset))
        if self.peers.follows(group):
            if "wait" in op.opcode and not self.walker.program.is_asked(group.pc - 1):
                return False
            changed = self.peers.mbarrier(group, op, mask)
            if changed is not None:
                return changed
        if op.opcode.startswith("mbarrier.init"):
            self._bars[value] = Bar(self.memory.size_at(group, op, 1) or None)
            place = self.memory.place_of(group, op, 0, "shared")
            if place is not None and isinstance(place.address.each, int):
                alive, at = self._alive.setdefault(place.address.terms, []), place.address.each
                if at not in alive and len(alive) < _MOST:
                    insort(alive, at)
            self._met(group, op, mask, 0, "stores")
            if place is not None and self.memory.all_seen:
                self.memory.bytes.write(place.address, 8, mask)
            return False
        known = value in self._bars
        bar = self._bar(value)
        if op.opcode.startswith("mbarrier.inval"):
            self.shadow.settle(bar.copies | bar.done, -1, -1)  # none may be under way
            place = self.memory.place_of(group, op, op.addresses[0][0], "shared")
            if place is not None:
                look_at_waiting(self.memory, op, place, mask)
                alive = self._alive.get(place.address.terms, [])
                alive[:] = [at for at in alive if at != place.address.each]
            else:
                self._alive.clear()  # it may be any of them
            bar.copies, bar.done = set(), set()
            return False
        if not known and ".arrive" in op.opcode:
            self._look_at_unknown(op, value)
        self._met(group, op, mask, op.addresses[0][0], "updates")
        if op.opcode.startswith("mbarrier.complete_tx"):
            bar.bring(self.memory.size_at(group, op, len(op.line.item.operands) - 1) or None, mask)
            return self.wake()
        if ".arrive" in op.opcode:
            counted = ".expect_tx" not in op.opcode and len(op.line.item.operands) - op.addresses[0][0] > 1
            if ".noComplete" in op.opcode:
                look_at_last(self.memory, bar, op, self.memory.size_at(group, op, len(op.line.item.operands) - 1), mask)
            bar.vague |= counted or ".noComplete" in op.opcode or ".drop" in op.opcode
            self.columns.lanes.tell(op, mask)
            size = self.memory.size_at(group, op, len(op.line.item.operands) - 1) if ".expect_tx" in op.opcode else 0
            look_at_arrivals(self.memory, bar, value, op, mask)
            look_at_everybody(self.memory, bar, value, op)
            look_at_lanes(self.memory, bar, op, size, mask)
            told = self.memory.releases.fenced if ".relaxed" in op.opcode else None
            bar.arrive(mask.bit_count(), _halves(mask), self.shadow.tick(), told)
            self._state = (value, bar.phase) if known and not bar.vague else None
            self.shadow.part(mask)
            if ".expect_tx" in op.opcode:
                bar.expect(op, size or None, mask)
            if ".shared::cluster" in op.opcode:
                self.multicasts.arrives(op, value, mask)
            if self.threads.kind == "cluster" and ".shared::cluster" in op.opcode:
                where = self.memory.place_of(group, op, op.addresses[0][0], "shared::cluster")
                if where is not None:
                    touch = Touch(op.line, op.addresses[0][0], "shared", where.address, 8, mask, self.shadow.now,
                                  "updates", True, None, group.doubtful)  # fmt: skip
                    self.memory.clusters.note(touch)
            return self.wake()
        if ".expect_tx" in op.opcode:
            bar.expect(op, self.memory.size_at(group, op, len(op.line.item.operands) - 1) or None, mask)
        if "wait" not in op.opcode or not self.walker.program.is_asked(group.pc - 1):
            return False
        self.hear()
        self.memory.arrivals.hear(mask)
        if not known:
            self._look_at_unknown(op, value)
            self.lose()  # it may be any of them
        parity = parity_of(self.walker, group, op)
        if parity is None and known and not bar.vague:
            parity = phase_of(self.walker, group, op, value)
        if self.threads.apart and parity == 0 and not bar.phase:
            self.memory.clusters.waits_first(op, mask)
        if self.threads.apart or parity is None or mask != group.mask or not known:
            bar.vague = True
        if bar.vague:
            if self.threads.kind == "cluster" and bar.count is not None:
                look_at_bytes(self.memory, bar)
            bar.complete()
        elif not bar.is_over(parity or 0):
            group.waits = ("mbarrier", (value, parity))
            group.pc -= 1
            return True
        elif bar.phase & 1 == parity:
            look_at_bytes(self.memory, bar)
            bar.complete()
        if bar.done:
            self.shadow.settle(bar.done, -1, None if bar.vague or not max(bar.past) else max(bar.past) - 1)
            bar.done = set()
        if bar.product is not None and not bar.arrivals:
            self._crossed = bar.product, "after"
            bar.product = None
        if self.threads.apart:
            self.memory.blind = True
            self.memory.clusters.waited(value, mask)
            self.multicasts.waits(value, mask)
        told = [self.shadow.now] * 2 if bar.vague else bar.told if bar.phase else [0, 0]
        if ".relaxed" in op.opcode:
            self.memory.releases.owe(mask, told, bar.commits or bar.vague or self._commits)
        elif bar.vague:
            self.shadow.acquire(mask)
        elif bar.phase:
            self.shadow.learn(mask, told)
        return False

    def _met(self, group: Group, op: Op, mask: int, operand: int, kind: str) -> None:
        """An mbarrier is initialised, or used: whether a thread does that before it can know of the other."""
        place = self.memory.place_of(group, op, operand, "shared")
        if place is None or self.threads.apart or place.space != "shared" or self.memory.clusters.started:
            return  # a barrier of the cluster lets all see it, with fence.mbarrier_init even a relaxed one
        strong = kind == "updates"
        touch = Touch(op.line, operand, "mbarrier", place.address, 8, mask, self.shadow.now, kind, strong, None, False)
        meeting = self.shadow.touch(touch)
        if meeting is None or meeting.before.line is op.line or self.memory.blind:
            return
        before, _, first, second = meeting
        names = self.threads.name(second), self.threads.name(first)
        if before.kind == "stores":
            message = (
                f"{names[0]} uses the mbarrier that {names[1]} initialises in line {{line}}: no barrier orders the two"
            )
            self.walker.report("mbarrier not visible", op.line, operand, message, before.line)

    def wake(self) -> bool:
        """Let those go on that have waited for an arrival; whether there are any."""
        woken = False
        for group in self.walker.running:
            kind, place = (group.waits or (None, None))[:2]
            if kind == "mbarrier" and self.is_over(cast("tuple[Value, int]", place)):
                group.waits, woken = None, True
        for group in self.walker.running if woken else ():
            if group.waits is not None and group.waits[0] == "warp":
                group.waits = None  # it looks again whether its warp is there
        return woken

    def _look_at_unknown(self, op: Op, value: Value) -> None:
        """Whether an mbarrier is used that has never been initialised, though all is known that has been."""
        made = [each for each, bar in self._bars.items() if bar.count is not None]
        beside = any(each.terms == value.terms for each in made)
        known = value.variable is not None and isinstance(value.each, int) and all(each.variable for each in made)
        if beside and known and not (self.walker.assumed or self.threads.apart or self.memory.blind):
            message = f"nothing has initialised an mbarrier at '{value.variable}{value.each:+d}'"
            self.walker.report("no mbarrier", op.line, op.addresses[0][0], message)

    def is_over(self, place: tuple[Value, int]) -> bool:
        """Whether threads that wait for a phase of an mbarrier can go on."""
        value, parity = place
        over = self.peers.is_over(value, parity)
        return over if over is not None else self._bar(value).is_over(parity)

    def doubts(self, place: tuple[Value, int]) -> int:
        """0: threads that wait for a phase can go on; 1: if others than those of the walk arrive; 3: nobody has."""
        if self.is_over(place):
            return 0
        bar = self._bar(place[0])
        return 1 if bar.arrivals and not bar.vague else 3

    def go_on(self, place: tuple[Value, int], stuck: list[Group]) -> None:
        """Threads go on behind a wait, since nobody else can. stuck: they, if all wait at mbarriers."""
        value, parity = place
        if self.peers.is_over(value, parity) is False:
            return self.peers.stuck()
        bar = self._bar(value)
        if stuck and not bar.is_over(parity):
            look_at_stuck(self.walker, self._bars, bar, stuck)
        if not (bar.vague or bar.is_over(parity) or self.threads.apart):
            bar.complete_with_others(self.shadow.tick())
        bar.vague |= not bar.is_over(parity)

    def async_store(self, group: Group, op: Op, mask: int, size: int) -> bool:
        """st.async: it stores in the memory of a peer, and an mbarrier there completes it. Whether threads go on."""
        if self.peers.follows(group):
            return True in [self._stores(group, op, mask & _HALF << half * WARP, size) for half in _halves(mask)]
        return self._stores(group, op, mask, size)

    def _stores(self, group: Group, op: Op, mask: int, size: int) -> bool:
        exact = self.peers.follows(group)
        place = self.memory.place_of(group, op, 0, "shared::cluster")
        bar = self._completes(group, op) if not exact else None
        self._token += 1
        if bar is not None:
            bar.copies.add(self._token)
            self._bring(self._at_home(group, op) or bar, size, mask)
        self.memory.unseen()
        self.shadow.born[self._token] = self.shadow.now
        self.multicasts.arrives(op, self._where(group, op) or ZERO, mask)
        if place is not None and size:
            self.memory.touch(group, op, 0, place, size, mask, "stores", False, None, True, self._token)
        return exact and self.peers.brings(group, op, mask, size, self._token)

    # --- products -----------------------------------------------------------------------------------------------------

    def product(self, group: Group, op: Op, mask: int) -> None:
        if ".commit_group" in op.opcode:
            self._commit("wgmma", mask)
        elif ".wait_group" in op.opcode:
            count = op.line.item.operands[0] if op.line.item.operands else None
            self._wait("wgmma", count.value if isinstance(count, Immediate) else 0, mask)
        elif ".mma_async" in op.opcode:
            self.memory.together(op, mask)
            self.factors.look_at_sums(group, op)
            self.factors.look_at_descriptors(group, op, mask)
            self.factors.read(group, op, mask, self._add("wgmma", mask))

    def crossed(self) -> None:
        """A barrier of the CTA comes behind what tensor cores and tensor memory have been told."""
        if self._unfenced:
            self._crossed = self._unfenced[0], "before"
            self._unfenced.clear()

    def _tensor_order(self, group: Group, op: Op, mask: int) -> None:
        """Whether fences stand between tcgen05 instructions of different threads."""
        crossed, self._crossed = self._crossed, None
        own = op.opcode.startswith(("tcgen05.ld", "tcgen05.st"))  # a warp accesses lanes of its own
        alone = own and crossed is not None and crossed[1] == "before"
        if crossed is not None and self._fences and not (self.threads.apart or group.doubtful or alone):
            other, kind = crossed
            message = (
                f"between the '{other.opcode.partition('.cta')[0]}' in line {{line}} and this, threads are "
                f"synchronised without tcgen05.fence::{kind}_thread_sync"
            )
            self.walker.report("tensor fence", op.line, None, message, other.line)
        if own:
            self._unfenced.append(op)

    def _issue(self, mask: int) -> int:
        """Work of tcgen05 that some threads issue: its token."""
        token = self._add("tcgen05", mask)
        self._issued[token] = mask
        return token

    def _issued_by(self, mask: int) -> set[int]:
        """What a commit by some threads tells of: what they have issued themselves (9.7.16.12)."""
        found = {token for token in self._all("tcgen05", mask) if self._issued[token] & mask}
        for half in _halves(mask):
            self._groups["tcgen05", half] = [set().union(*self._open("tcgen05", half)) - found]
        return found

    def tensor(self, group: Group, op: Op, mask: int) -> None:
        self.columns.lanes.note(op, mask)
        if op.opcode.startswith("tcgen05.alloc"):
            self.columns.comes(op, mask)
            place = self.memory.place_of(group, op, 0, "shared")
            if place is not None:
                self.memory.touch(group, op, 0, place, 4, mask, "stores", False, Value((("=alloc", 1),), 0))
                count = self.memory.size_at(group, op, 1)
                if count:
                    terms = unknown(False, "slot", place.address).terms
                    self.columns.allocate(terms, count, op, mask)
                    self.memory.slots.add(place.address)
        elif op.opcode.startswith("tcgen05.mma"):
            self._tensor_order(group, op, mask)
            self.columns.scales.note(group, op)
            token = self._issue(mask)
            self.columns.look_at_lanes(group, op, mask)
            self.factors.read(group, op, mask, token)
            self.columns.touch(group, op, mask, 1, True, token)
        elif op.opcode.startswith(("tcgen05.ld", "tcgen05.st", "tcgen05.cp")):
            self._tensor_order(group, op, mask)
            if not op.opcode.startswith("tcgen05.ld"):
                self.columns.scales.note(group, op)
            if op.opcode.startswith("tcgen05.cp"):
                self.columns.unseen = True
                token = self._issue(mask)
                self.factors.read(group, op, mask, token)
                self.columns.touch(group, op, mask, 1, True, token)
            else:
                self.columns.touch(group, op, mask, columns_of(op), False)
        elif op.opcode.startswith("tcgen05.shift"):
            self._tensor_order(group, op, mask)
            self.columns.touch(group, op, mask, 1, True, self._issue(mask))
        elif op.opcode.startswith("tcgen05.dealloc"):
            self.columns.free(group, op, mask)
        elif op.opcode.startswith("tcgen05.fence::before"):
            self.memory.releases.tell(mask)
            self._unfenced.clear()
        elif op.opcode.startswith("tcgen05.fence::after") and self._crossed is not None:
            self._crossed = self._crossed if self._crossed[1] == "before" else None
        elif op.opcode.startswith("tcgen05.commit"):
            bar, told = self._completes(group, op), self._issued_by(mask)
            self._commits |= bar is None or bar.count is None or ".multicast" in op.opcode
            self.memory.clusters.commits(group, op)
            if ".multicast" in op.opcode and bar is not None:
                self.multicasts.arrives(op, self._where(group, op) or ZERO, mask)
            if bar is not None:
                bar.arrive(1, _halves(mask), self.shadow.tick())
                bar.copies |= told
                bar.product = op
                bar.commits = True
