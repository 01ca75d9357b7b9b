"""The mbarriers of both CTAs of a cluster in a walk: who arrives, which bytes come, and what a wait tells.

Two CTAs of at most a warp each, which are all of the cluster, can be followed exactly: each wait lasts until the walk
has come to what completes the phase. As soon as anything is not known, or assumed, nothing is said any more.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ..values import THREADS, WARP, Value
from .computing import Op
from .phases import parity_of, spins
from .releases import strong_read
from .shadow import FLIGHT, OWNER, Meeting, Touch, within

if TYPE_CHECKING:
    from .memory import Memory
    from .walker import Group

_HALVES = (0xFFFFFFFF, 0xFFFFFFFF << WARP)
_OFFSET = (1 << OWNER) - 1
#: Copies of which it is not known yet whether those know that they are done who began them.
_MOST = 64
#: What opcodes have whose arrivals are not followed.
_OTHERS = ("tcgen05.commit", "clusterlaunchcontrol", "cp.async.mbarrier", ".noComplete", ".drop", ".complete_tx")


class _Bar:
    """An mbarrier. left: arrivals that its phase takes still; due: bytes that are expected and have not come; expects:
    what says so, brings: the last copy; telling: by when each CTA has done what its arrivals in this phase tell of,
    told: in those that are over; coming, came: by when each CTA has arrived; copies: what completes this phase, done:
    what completed those before; news: copies of which arrivals in this phase say that they are done, heard: in those
    before."""

    __slots__ = (
        "brings", "brought", "came", "coming", "copies", "count", "done", "due", "expected", "expects", "heard",
        "left", "news", "phase", "telling", "told",
    )  # fmt: skip

    def __init__(self, count: int) -> None:
        self.count = self.left = count
        self.phase = self.due = self.expected = self.brought = 0
        self.expects: Op | None = None
        self.brings: Op | None = None
        self.telling, self.told, self.coming, self.came = [0, 0], [0, 0], [0, 0], [0, 0]
        self.copies: set[int] = set()
        self.done: set[int] = set()
        self.news: set[int] = set()
        self.heard: set[int] = set()

    def expect(self, op: Op, size: int) -> None:
        self.expects, self.expected, self.due = op, self.expected + size, self.due + size

    def hear(self, half: int, moment: int, told: int, news: set[int]) -> None:
        """Something of a CTA comes at a moment, and tells of what it has done by another one."""
        self.coming[half] = max(self.coming[half], moment)
        self.telling[half] = max(self.telling[half], told)
        self.news |= news

    def look(self) -> None:
        """Whether the phase is over by now."""
        if self.left or self.due:
            return
        self.phase, self.left = self.phase + 1, self.count
        self.expected = self.brought = 0
        self.told = [max(pair) for pair in zip(self.told, self.telling, strict=True)]
        self.came = [max(pair) for pair in zip(self.came, self.coming, strict=True)]
        self.done |= self.copies
        self.heard |= self.news
        self.copies, self.news = set(), set()

    def is_over(self, parity: int) -> bool:
        """Whether a wait for the phase of a parity goes on."""
        return self.phase & 1 != parity


class Peers:
    """The mbarriers of the two CTAs, by their addresses in the window of the cluster."""

    def __init__(self, memory: Memory) -> None:
        self._memory, self._walker, self._shadow = memory, memory.walker, memory.shadow
        self._bars: dict[Value, _Bar] = {}
        self._lost = memory.threads.kind != "cluster"
        self._begun: dict[int, tuple[int, int]] = {}  # of copies: who began them, and when that was told
        self._open: set[int] = set()  # copies of which those who began them do not know that they are done
        self._knows: tuple[set[int], set[int]] = (set(), set())  # what each CTA knows of them
        self._met: list[set[int]] = [set(), set()]  # what each one knew at the barrier of the cluster
        self._relaxed = [0, 0]  # by when the other CTA has done what relaxed waits of each one have seen

    @cached_property
    def _all_known(self) -> bool:
        program = self._walker.program
        others = program.reached_from_elsewhere(_OTHERS) or any(strong_read(line) for line in program.lines)
        threads = self._memory.threads
        turned = threads.turned and threads.whole and threads.declared
        return (turned or self._memory.clusters.is_pair) and not others

    def follows(self, group: Group) -> bool:
        """Whether it is known what has arrived at the mbarriers so far."""
        if self._lost:
            return False
        if group.doubtful or self._walker.assumed or self._memory.blind or not self._all_known:
            self.lose()
        return not self._lost

    @property
    def exact(self) -> bool:
        """Whether nothing has been lost, as far as known."""
        return not self._lost and self._all_known

    def lose(self) -> None:
        """Something is not known: from here on, mbarriers may tell anything."""
        if self._lost:
            return
        self._lost = True
        self._shadow.settle(set(self._begun), -1)

    # --- instructions -------------------------------------------------------------------------------------------------

    def mbarrier(self, group: Group, op: Op, mask: int) -> bool | None:
        """An instruction at mbarriers; whether the groups have changed, None if it is not followed."""
        memory, opcode = self._memory, op.opcode
        operand = op.addresses[0][0]
        place = memory.place_of(group, op, operand, "shared")
        targets = self._targets(place.address, mask) if place is not None and place.space == "shared" else None
        if place is None or targets is None:
            self.lose()
            return None
        if opcode.startswith("mbarrier.init"):
            for key, half, _ in targets:
                count = memory.size_at(group, op, 1, mask & _HALVES[half])
                self._bars[key] = _Bar(count)
                if not count:
                    self.lose()
            if memory.all_seen:
                memory.bytes.write(place.address, 8, mask)
            return False
        bars = [self._bars.get(key) for key, _, _ in targets]
        if None in bars:
            self.lose()
            return None
        if opcode.startswith("mbarrier.inval"):
            for key, _, _ in targets:
                self._shadow.settle(self._bars.pop(key).copies, -1, -1)
            return False
        if "wait" in opcode:
            return self._waits(group, op, mask, targets)
        expects = ".expect_tx" in opcode
        last = len(op.line.item.operands) - 1
        sizes = [memory.size_at(group, op, last, mask & half) if expects and mask & half else 0 for half in _HALVES]
        arrives = ".arrive" in opcode
        counted = arrives and not expects and last > operand
        times = memory.size_at(group, op, last, mask) if counted else 1
        nothing = getattr(op.line.item.operands[last], "value", None) == 0  # no bytes, and not an unknown number
        known = not expects or nothing or all(sizes[half] for _, half, _ in targets)
        if not known or not times or not (arrives or expects):
            self.lose()
            return None
        if any(key.numbers[0] >> OWNER != half + 1 for key, half, _ in targets):
            self._note(group, op, operand, place.address, mask)
        moment = self._shadow.tick()
        for key, half, lanes in targets:
            bar = self._bars[key]
            told = memory.releases.fenced[half] if ".relaxed" in opcode else moment
            for _ in range(lanes * min(times, bar.count + 1)):
                if arrives and not bar.left:
                    self._too_many(op, half, bar)
                    return None
                if expects:
                    bar.expect(op, sizes[half])
                if arrives:
                    bar.left -= 1
                    bar.hear(half, moment, told, self._knows[half])
                    bar.look()
        if arrives:
            self._shadow.part(mask)
        return memory.flights.wake()

    def _too_many(self, op: Op, half: int, bar: _Bar) -> None:
        """A CTA arrives in a phase that has all of its arrivals, but not all of its bytes."""
        message = (
            f"CTA {half} of the cluster arrives here, too: a phase takes {bar.count} arrival{'s' * (bar.count > 1)}, "
            f"and this one is not over, as {bar.expected} bytes are expected and {bar.brought} have come"
        )
        self._walker.report("phase of fewer", op.line, None, message)
        self.lose()

    def _note(self, group: Group, op: Op, operand: int, address: Value, mask: int) -> None:
        """An arrival that may be at an mbarrier of the other CTA is an access to its memory."""
        memory = self._memory
        memory.flights.multicasts.arrives(op, address, mask)
        memory.clusters.note(
            Touch(op.line, operand, "shared", address, 8, mask, self._shadow.now, "updates", True, None, group.doubtful)
        )

    def brings(self, group: Group, op: Op, mask: int, size: int, token: int) -> bool:
        """A copy of some threads of one CTA completes bytes at mbarriers; whether others can go on."""
        place = self._memory.place_of(group, op, op.addresses[-1][0], "shared") if op.addresses else None
        targets = self._targets(place.address, mask) if place is not None and size else None
        if ".multicast" in op.opcode and targets is not None:
            targets = [
                (within(key, owner), half, lanes)
                for key, half, lanes in targets for owner in self.copied_to(group, op, mask)
            ]  # fmt: skip
        moment = self._shadow.tick()
        self._begun[token] = _cta_of(mask), moment
        self._open.add(token)
        if not targets or any(key not in self._bars for key, _, _ in targets):
            self.lose()
            return False
        for key, half, lanes in targets:
            bar = self._bars[key]
            bar.copies.add(token)
            bar.hear(half, moment, moment, self._knows[half])
            bar.brought += size * lanes
            bar.due -= size * lanes
            bar.brings = op
            bar.look()
        if len(self._open) > _MOST:
            self.lose()
        return self._memory.flights.wake()

    def copied_to(self, group: Group, op: Op, mask: int) -> list[int]:
        """The CTAs to which a copy of some threads goes; none if that is not known."""
        named = next((at for at, spec in enumerate(op.line.plan.specs) if spec.name == "ctaMask"), None)
        ctas = self._memory.size_at(group, op, named, mask) if named is not None else 0
        return [owner for owner in (0, 1) if ctas >> owner & 1] if not ctas >> 2 else []

    def _waits(self, group: Group, op: Op, mask: int, targets: list[tuple[Value, int, int]]) -> bool | None:
        """Threads wait at mbarriers of their own CTA: those whose phase is over go on."""
        parities = [parity_of(self._walker, group, op, mask & half) if mask & half else 0 for half in _HALVES]
        own = all(key.numbers[0] >> OWNER == half + 1 for key, half, _ in targets)
        if None in parities or not own or len({half for _, half, _ in targets}) != len(targets):
            self.lose()
            return None
        late = [(key, half) for key, half, _ in targets if not self._bars[key].is_over(parities[half] or 0)]
        if late and mask != group.mask:
            self.lose()
            return None
        for key, half in late:
            part = group.mask & _HALVES[half]
            waiting = group
            if part != group.mask:
                waiting = group.split(group.pc, part)
                self._walker.left -= len(group.registers) >> 2
                self._walker.running.append(waiting)
            waiting.waits = ("mbarrier", (key, parities[half]))
            waiting.pc -= 1
        if group.waits is not None:
            return True
        for key, half, _ in targets:
            if (key, half) not in late:
                self._learns(op, self._bars[key], key, half, mask & _HALVES[half])
        return False

    def _learns(self, op: Op, bar: _Bar, key: Value, half: int, mask: int) -> None:
        """Threads of a CTA have waited for a phase."""
        memory, shadow = self._memory, self._shadow
        for token in bar.done:
            shadow.settle({token}, -1, self._begun[token][1] - 1, stores=True)
        self._hear(half, bar.heard | bar.done)
        bar.done = set()
        memory.clusters.hears(half, bar.came[1 - half])
        memory.clusters.waited(Value(key.terms, key.numbers[0] & _OFFSET), mask)
        memory.flights.multicasts.waits(Value(key.terms, key.numbers[0] & _OFFSET), mask)
        if ".relaxed" in op.opcode:
            memory.releases.owe(mask, list(bar.told), False)
            self._relaxed[half] = max(self._relaxed[half], bar.told[1 - half])
        else:
            shadow.learn(mask, bar.told)

    # --- what is known ------------------------------------------------------------------------------------------------

    def _hear(self, half: int, tokens: set[int]) -> None:
        """A CTA knows of copies that they are done; of its own, that it may write again what they read."""
        self._knows[half].update(tokens & self._open)
        own = {token for token in self._knows[half] if self._begun[token][0] == half}
        if own:
            self._shadow.settle(own, -1, -1)
            self._open -= own
            for known in (*self._knows, *self._met):
                known -= own

    def comes(self, half: int) -> None:
        """A CTA arrives at the barrier of the cluster."""
        self._met[half] = set(self._knows[half])

    def met(self) -> None:
        """The barrier of the cluster is over."""
        told = self._met[0] | self._met[1]
        for half in (0, 1):
            self._hear(half, told)

    def knows(self, meeting: Meeting) -> bool:
        """Whether the later one of two accesses is by a CTA that knows the earlier one to be done: a copy, though who
        began it does not; or what the other CTA has read, as no store comes before the wait that it depends on."""
        before, half = meeting.before, meeting.second // WARP
        if before.kind == "reads" and not before.flight and meeting.first // WARP != half:
            return before.moment < self._relaxed[half]
        return before.moment == FLIGHT and before.token in self._knows[half]

    def is_over(self, key: Value, parity: int) -> bool | None:
        """Whether threads that wait for a phase can go on; None if that is not known here."""
        bar = None if self._lost else self._bars.get(key)
        return bar.is_over(parity) if bar is not None else None

    def stuck(self) -> None:
        """Nobody can go on."""
        walker = self._walker
        for group in sorted(walker.running, key=lambda group: _cta_of(group.mask)) if not walker.assumed else ():
            kind, place = (group.waits or ("", None))[:2]
            bar = self._bars.get(place[0]) if kind == "mbarrier" and isinstance(place, tuple) else None
            if bar is None or not spins(walker.program, group.pc):
                continue
            cta = _cta_of(group.mask)
            if bar.left or bar.expects is None:
                message = f"CTA {cta} of the cluster waits here for ever: "
                message += f"{bar.count - bar.left} of {bar.count} arrivals come at its mbarrier"
                walker.report("wait without end", walker.program.at(group.pc).line, None, message)
            else:
                message = f"{bar.expected} bytes are expected at the mbarrier of CTA {cta} of the cluster, and the "
                message += f"copies in this phase bring it {bar.brought}"
                line = bar.expects.line
                walker.report("bytes differ", line, len(line.item.operands) - 1, message)
        self.lose()

    def end(self) -> None:
        """All threads have ended: whether copies bring bytes that nobody expects."""
        for key, bar in self._bars.items() if not (self._lost or self._walker.assumed) else ():
            if bar.due < 0 and bar.brings is not None:
                cta = (key.numbers[0] >> OWNER) - 1
                message = (
                    f"the copies bring {-bar.due} more bytes to the mbarrier of CTA {cta} of the cluster than are "
                    "expected: it may end before they have come"
                )
                self._walker.report("bytes differ", bar.brings.line, bar.brings.addresses[-1][0], message)

    @staticmethod
    def _targets(address: Value, mask: int) -> list[tuple[Value, int, int]] | None:
        """The mbarriers that threads name, in the order of their CTAs: address, CTA of the threads, how many; None if
        that is not known."""
        if not address.variable:
            return None
        found: dict[tuple[int, int], int] = {}
        numbers = address.numbers
        for thread in range(THREADS):
            if mask >> thread & 1:
                key = thread // WARP, numbers[thread]
                found[key] = found.get(key, 0) + 1
        if any(number >> OWNER not in (1, 2) for _, number in found):
            return None
        return [(Value(address.terms, number), half, lanes) for (half, number), lanes in found.items()]


def _cta_of(mask: int) -> int:
    """The CTA of the first thread of a mask."""
    return int(not mask & _HALVES[0])
