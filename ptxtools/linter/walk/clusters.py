"""The barrier of a cluster in a walk, and memory that one of its CTAs has and the other one accesses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.ir.nodes import Variable
from ptxtools.records import NamedTuple

from ..accesses import variable_bytes
from ..limits import cluster_sizes
from ..values import THREADS, WARP, Terms, Value
from .barriers import first_of, look_at_divergence
from .computing import Op
from .shadow import OWNER, Touch

if TYPE_CHECKING:
    from .memory import Memory
    from .walker import Group

_HALVES = (0xFFFFFFFF, 0xFFFFFFFF << WARP)


#: A CTA, and what is in its shared memory: terms and offset of the address.
_Place = tuple[int, Terms, int]


class _Remote(NamedTuple):
    """An access of CTA `who` to the memory of `owner`; nth: how many there have been at this place."""

    touch: Touch
    who: int
    owner: int
    place: _Place
    nth: int


def _arrives(opcode: str) -> bool:
    """Whether an instruction arrives at an mbarrier, other than tcgen05.commit to several CTAs."""
    commits = opcode.startswith("tcgen05.commit")
    return (".arrive" in opcode and opcode[:2] in ("mb", "cp")) or (commits and ".multicast" not in opcode)


class Clusters:
    """What two CTAs of a cluster know of each other. started: whether all of them have certainly begun."""

    def __init__(self, memory: Memory) -> None:
        self._memory, self._walker, self._threads = memory, memory.walker, memory.threads
        self._arrived: list[int | None] = [None, None]
        #: By when each CTA has arrived at the barrier, and by when the other one has learnt of that.
        self._came, self._met = [0, 0], [0, 0]
        self._remote: list[_Remote] = []
        self._counts: dict[_Place, int] = {}
        self._waits: dict[_Place, int] = {}
        self._gone = [False, False]
        self._reached = 0  # the CTAs that tcgen05.commit names, -1 if that is not known
        self._first_waits: dict[int, Op] = {}  # of each CTA
        self._turn = 0  # threads that have arrived, and not waited
        self.unseen = False  # whether code that is not seen may have arrived or waited
        self.started = False

    def barrier(self, group: Group, op: Op, mask: int) -> bool:
        if ".aligned" in op.opcode:
            look_at_divergence(self._walker, op, mask)
        self._look_at_turn(op, mask)
        if ".arrive" in op.opcode:
            now = self._memory.shadow.tick()
            for half in (0, 1):
                if mask & _HALVES[half]:
                    self._came[half] = now
                    self._memory.flights.peers.comes(half)
                    self._arrived[half] = self._memory.releases.fenced[half] if ".relaxed" in op.opcode else now
            return False
        self._memory.flights.hear()
        if mask != group.mask:
            group = self._memory.apart(group, mask)
        group.waits = ("cluster", 0)
        return True

    def _look_at_turn(self, op: Op, mask: int) -> None:
        """Whether threads wait that have not arrived, or arrive again that have not waited."""
        arrives = ".arrive" in op.opcode
        wrong = mask & (self._turn if arrives else ~self._turn)
        self._turn = self._turn | mask if arrives else self._turn & ~mask
        if wrong and not self._walker.assumed and not self.unseen:
            name = self._threads.name(first_of(wrong))
            if arrives:
                message = f"{name} has arrived already, and not waited"
                self._walker.report("cluster arrival", op.line, None, message)
            else:
                message = (
                    f"{name} waits for ever: it has not arrived at the barrier of the cluster since it last waited"
                )
                self._walker.report("cluster wait", op.line, None, message)

    def done(self) -> bool:
        present = [half for half in (0, 1) if self._threads.mask & _HALVES[half] and not self._gone[half]]
        if any(self._arrived[half] is None for half in present):
            return False
        now = self._memory.shadow.tick()
        first, second = [moment if moment is not None else now for moment in self._arrived]
        known = self._memory.shadow.known
        self._memory.shadow.order_halves(max(first, known[0][1]), max(second, known[1][0]))
        self._arrived = [None, None]
        self._met = list(self._came)
        self._memory.flights.multicasts.met()
        self._memory.flights.peers.met()
        self.started = True
        return True

    @property
    def is_pair(self) -> bool:
        """Whether a cluster certainly has these two CTAs and no other, and they have no other threads."""
        return self._of_two() and self._threads.whole and self._threads.declared

    def _of_two(self) -> bool:
        sizes = cluster_sizes(self._walker.program.function)
        pair = any(item.name == ".reqnctapercluster" and total == 2 for item, total in sizes)
        return pair and self._threads.kind == "cluster"

    def commits(self, group: Group, op: Op) -> None:
        """tcgen05.commit: the CTAs at whose mbarriers it arrives."""
        known = self._memory.size_at(group, op, 1) if ".multicast" in op.opcode else 0
        self._reached = self._reached | known if known else -1

    def waits_first(self, op: Op, mask: int) -> None:
        """Threads wait for the first phase of an mbarrier."""
        for half in (0, 1):
            if mask & _HALVES[half]:
                self._first_waits.setdefault(half, op)

    def end(self) -> None:
        """All threads have ended: whether a CTA waits at an mbarrier at which nobody can arrive."""
        self._memory.flights.multicasts.end()
        self._memory.flights.peers.end()
        if self._walker.assumed or self.unseen or self._reached <= 0 or not self._of_two():
            return
        program = self._walker.program
        for visited, line in zip(program.visited, program.lines, strict=True):
            if _arrives(line.item.opcode) or (line.item.opcode.startswith("tcgen05.commit") and not visited):
                return
        for half, op in self._first_waits.items():
            if not self._reached >> half & 1:
                message = f"CTA {half} of the cluster waits here for ever: no tcgen05.commit names it in its mask"
                self._walker.report("wait without end", op.line, None, message)

    def look_at_rank(self, op: Op, rank: Value, mask: int) -> None:
        """Whether mapa names a CTA that the cluster does not have."""
        sizes = cluster_sizes(self._walker.program.function)
        total = next((total for item, total in sizes if item.name == ".reqnctapercluster"), 0)
        for thread in range(THREADS) if total and not self._walker.assumed else ():
            if mask >> thread & 1 and rank.numbers[thread] >= total:
                message = f"CTA {thread // WARP} names CTA {rank.numbers[thread]} of a cluster that has {total}"
                self._walker.report("cluster rank", op.line, 2, message)
                return

    def waited(self, value: Value, mask: int) -> None:
        """Threads have waited for a phase of an mbarrier of their CTA."""
        for half in (0, 1):
            if mask & _HALVES[half] and isinstance(value.each, int):
                place = half, value.terms, value.each
                self._waits[place] = self._waits.get(place, 0) + 1

    def hears(self, half: int, moment: int) -> None:
        """A CTA learns that the other one has come to something at a moment; 0: never."""
        self._met[1 - half] = max(self._met[1 - half], moment)
        self.started |= moment > 0

    def note(self, touch: Touch) -> None:
        """Whether the CTA has ended whose memory is accessed."""
        numbers = touch.address.numbers
        self._look_at_end(touch)
        for thread in range(THREADS):
            owner, who = (numbers[thread] >> OWNER) - 1, thread // WARP
            if touch.mask >> thread & 1 and owner in (0, 1) and owner != who:
                place = owner, touch.address.terms, numbers[thread] & (1 << OWNER) - 1
                count = self._counts[place] = self._counts.get(place, 0) + 1
                one = _Remote(touch._replace(moment=self._memory.shadow.now), who, owner, place, count)
                if not self.started and not self._memory.blind:
                    message = f"CTA {who} accesses memory of CTA {owner}, which may not have started"
                    self._walker.report("peer starts", touch.line, touch.operand, message)
                elif self._gone[owner] and self._untold(one):
                    message = f"CTA {who} of the cluster accesses memory of CTA {owner}, which may have ended"
                    self._walker.report("peer ends", touch.line, touch.operand, message)
                elif len(self._remote) < WARP:
                    self._remote.append(one)
                return

    def _look_at_end(self, touch: Touch) -> None:
        """Whether an access is behind the variable of the CTA whose memory it is."""
        name = touch.address.variable
        symbol = touch.line.names.lookup(name or "") if name and len(touch.address.terms) == 1 else None
        total = variable_bytes(symbol) if isinstance(symbol, Variable) else None
        if total is None or self._walker.assumed:
            return
        for thread, number in enumerate(touch.address.numbers):
            owner, who, offset = (number >> OWNER) - 1, thread // WARP, number & (1 << OWNER) - 1
            beyond = owner in (0, 1) and owner != who and offset > total - touch.size
            if beyond and touch.mask >> thread & 1:
                message = f"CTA {who} accesses byte {offset} of '{name}' of CTA {owner}, which has {total} bytes"
                self._walker.report("beyond a variable", touch.line, touch.operand, message)
                return

    def _untold(self, one: _Remote) -> bool:
        """Whether nothing but barriers of the cluster tells the owner of what is accessed; of an arrival at its
        mbarrier, whether it waits there less often than the other CTA arrives, and at no other one."""
        if not self._memory.blind:
            return True
        elsewhere = any(half == one.owner and place != one.place for place in self._waits for half in place[:1])
        return one.touch.kind == "updates" and not elsewhere and one.nth > self._waits.get(one.place, 0)

    def left(self, mask: int) -> None:
        """Threads have ended."""
        if self._threads.kind != "cluster":
            return
        for half in (0, 1):
            if mask & _HALVES[half] and not self._walker.alive & _HALVES[half]:
                self._gone[half] = True
                for one in self._remote:
                    known = max(self._memory.shadow.known[one.who][half], self._met[one.who])
                    if one.owner == half and one.touch.moment >= known and self._untold(one):
                        message = f"CTA {half} of the cluster may end before CTA {one.who} accesses its memory here"
                        self._walker.report("peer ends", one.touch.line, one.touch.operand, message)
