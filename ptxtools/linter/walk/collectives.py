"""Member masks in a walk: lanes that execute a .sync instruction, those that it names, and those that never come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ptxtools.ir.nodes import Immediate, Name, Operand

from ..lanes import ALL
from ..masks import mask_operand, source_lane
from ..values import THREADS, WARP, Value, shortest
from .computing import Op, truth
from .owned import handed_over, is_half

if TYPE_CHECKING:
    from .walker import Group, Walker

#: What is found where lanes part.
MEETING = ("outside of the mask", "lanes do not come", "divergent barrier")


def _alike(numbers: Sequence[int], named: Sequence[int], mask: int) -> list[int]:
    """For each thread, those of the lanes that its mask names, and that come, which have the same number."""
    found = []
    for thread, number in enumerate(numbers):
        first = thread - thread % WARP
        lanes = [lane for lane in range(WARP) if mask >> first + lane & 1 and numbers[first + lane] == number]
        found.append(sum(1 << lane for lane in lanes) & named[thread])
    return found


class Collectives:
    """The .sync instructions of a walk. A lane that executes one waits for those that its mask names: they may come to
    another instruction with the same modifiers and the same mask (9.7.9.6)."""

    def __init__(self, walker: Walker) -> None:
        self.walker = walker

    def meet(self, group: Group, op: Op, mask: int) -> bool:
        """Threads of a group come to a .sync instruction; whether all of them wait."""
        place = mask_operand(op.line)
        named = None if place is None else self._named(group, op, place)
        if place is None or named is None:
            return False
        if op.family == "shfl":
            self._look_at_source(group, op, mask)
        waiting: list[tuple[int, int, int]] = []
        for half in (0, 1):
            by_mask: dict[int, int] = {}
            everybody = mask >> half * WARP & ALL
            if type(named.each) is int:
                by_mask = {named.each & ALL: everybody} if everybody else {}
            for lane in range(WARP) if type(named.each) is not int else ():
                if mask >> half * WARP + lane & 1:
                    members = named.numbers[half * WARP + lane] & ALL
                    by_mask[members] = by_mask.get(members, 0) | 1 << lane
            for members, lanes in by_mask.items():
                if members and lanes & ~members:
                    number = self._name(half, lanes & ~members)
                    message = f"{number} executes '{op.opcode}', and is not in its mask"
                    self.walker.report("outside of the mask", op.line, place, message)
                elif members & self._existing(half) & ~lanes:
                    waiting.append((half, members, lanes << half * WARP))
        for half, members, part in waiting:
            waits = ("mask", half, members, op.opcode, op)
            if part == group.mask:
                group.waits = waits
                return True
            other = group.split(group.pc, part)
            other.waits = waits
            self.walker.running.append(other)
        return False

    def result(self, group: Group, op: Op, mask: int) -> Value | None:
        """What vote.sync.ballot, match.any.sync and shfl.sync give, if what they are given is known in all lanes."""
        place = mask_operand(op.line)
        named = None if place is None else self._named(group, op, place)
        if named is None or not op.sources:
            return None
        source = self.walker.value(group, op.sources[0])
        if op.family == "shfl":
            return self._shuffled(group, op, source, mask)
        if ".any" in op.opcode and op.family == "match" and not source.terms:
            return Value((), shortest(iter(_alike(source.numbers, named.numbers, mask))))
        if ".ballot" not in op.opcode:
            return None
        holds = truth(source)
        if not isinstance(holds, int):
            return None
        halves = [(holds & mask) >> half * WARP & ALL for half in (0, 1)]
        return Value((), shortest(iter([halves[thread // WARP] & named.numbers[thread] for thread in range(THREADS)])))

    def _shuffled(self, group: Group, op: Op, given: Value, mask: int) -> Value | None:
        """What lanes have from others; None if some lane reads one that does not come. Not what all have from one lane
        (.idx), but for halves of pointers: that is how compilers name warps, and which roles all of them have is more
        than two walked ones show."""
        half = is_half(given)
        if ".idx" in op.opcode and not half:
            return None
        place, clamp = (self._number(group, op, operand) for operand in op.line.item.operands[2:4])
        if (given.terms and not half) or place is None or clamp is None:
            return None
        owners = list(range(THREADS))
        for thread in range(THREADS):
            lane = thread % WARP
            if mask >> thread & 1:
                source, inside = source_lane(op.opcode, lane, place.numbers[thread], clamp.numbers[thread])
                if inside and not mask >> thread - lane + source & 1:
                    return None
                if inside:
                    owners[thread] = thread - lane + source
        if half:
            return handed_over(given, tuple(owners))
        return Value((), shortest(iter([given.numbers[owner] for owner in owners])))

    def taken(self, group: Group, op: Op) -> int:
        """The threads, as bits, whose values the lanes of a group take with shfl; none where that is not known.
        Compilers leave a register unwritten in all lanes but the one that they read."""
        operands = op.line.item.operands
        place, clamp = [self._number(group, op, one) for one in operands[2:4]] if len(operands) > 3 else (None, None)
        found = 0
        for thread in range(THREADS) if place is not None and clamp is not None else ():
            if group.mask >> thread & 1 and place is not None and clamp is not None:
                lane = thread % WARP
                source, inside = source_lane(op.opcode, lane, place.numbers[thread], clamp.numbers[thread])
                found |= 1 << thread - lane + source if inside else 0
        return found

    def _look_at_source(self, group: Group, op: Op, mask: int) -> None:
        """Whether shfl.sync.idx reads a lane that the mask does not name, where both are known for each lane."""
        place, values = mask_operand(op.line), []
        named = None if place is None else self._named(group, op, place)
        if named is None or ".idx" not in op.opcode or len(op.line.item.operands) != 5:
            return
        for operand in op.line.item.operands[2:4]:
            known = self._number(group, op, operand)
            if known is None:
                return
            values.append(known.numbers)
        for thread in range(THREADS):
            members = named.numbers[thread] & ALL
            if mask >> thread & 1 and members not in (0, ALL):
                source, inside = source_lane(op.opcode, thread % WARP, values[0][thread], values[1][thread])
                if inside and not members >> source & 1:
                    name = self.walker.threads.name(thread)
                    message = f"{name} reads lane {source}, which is not in its mask {members:#x}"
                    self.walker.report("shuffle from outside", op.line, place, message)
                    return

    def _named(self, group: Group, op: Op, place: int) -> Value | None:
        """The mask of each thread; None if it is not known."""
        return self._number(group, op, op.line.item.operands[place])

    def _number(self, group: Group, op: Op, operand: Operand) -> Value | None:
        """What an operand is in each thread; None if that is not known."""
        if isinstance(operand, Immediate):
            return Value((), operand.value & ALL)
        key = op.line.registers[operand.name] if isinstance(operand, Name) else None
        found = self.walker.value(group, key) if key is not None else None
        return found if found is not None and not found.terms else None

    def members(self, group: Group, op: Op, mask: int, half: int) -> int:
        """The threads of a half that bar.warp.sync names, if it names the same in all its lanes, and they are not all
        that there are; else the half."""
        here, every = mask >> half * WARP & ALL, ALL << half * WARP
        named = self._named(group, op, mask_operand(op.line) or 0)
        if named is None:
            return every
        masks = {named.numbers[half * WARP + lane] & self._existing(half) for lane in range(WARP) if here >> lane & 1}
        members = masks.pop()
        return every if masks or members == self._existing(half) else members << half * WARP

    def _existing(self, half: int) -> int:
        return self.walker.threads.mask >> half * WARP & ALL

    def _name(self, half: int, lanes: int) -> str:
        """What the first thread of some lanes is called."""
        lane = (lanes & -lanes).bit_length() - 1
        return self.walker.threads.name(half * WARP + lane)

    def release(self, waiting: list[Group]) -> Group | None:
        """Threads that go on behind a .sync instruction, now that nobody else can run; None if none wait at one."""
        groups: dict[tuple[object, ...], list[Group]] = {}
        for group in waiting:
            if group.waits is not None and group.waits[0] == "mask":
                groups.setdefault(group.waits[:4], []).append(group)
        if not groups:
            return None
        told = sum(group.mask for group in waiting if group.waits is not None and group.waits[0] == "mbarrier")
        lacking: list[tuple[int, int, int, list[Group]]] = []
        for (_, half, members, _), together in groups.items():
            assert isinstance(half, int) and isinstance(members, int)
            lanes = sum(group.mask for group in together) >> half * WARP
            missing = members & self._existing(half) & ~lanes
            if not missing:
                return self._go(together)
            if not missing & told >> half * WARP:  # else they may come once others have arrived
                lacking.append((min(group.pc for group in together), half, missing, together))
        if not lacking:
            return None
        _, half, missing, together = min(lacking, key=lambda each: each[:2])
        first = min(together, key=lambda group: group.pc)
        assert first.waits is not None
        op = first.waits[4]
        assert isinstance(op, Op)
        message = f"the mask names {self._name(half, missing)}, which never comes to this '{op.opcode}'"
        self.walker.report("lanes do not come", op.line, mask_operand(op.line), message)
        return self._go(together)

    @staticmethod
    def _go(groups: list[Group]) -> Group:
        for group in groups:
            group.waits = None
        return groups[0]


def lowest_lanes(mask: int) -> Value:
    """What elect gives: that a lane is the lowest one of its warp in a mask."""
    lowest = sum(part & -part for part in (mask & half for half in (ALL, ALL << WARP)))
    return Value((), tuple(lowest >> thread & 1 for thread in range(THREADS)))
