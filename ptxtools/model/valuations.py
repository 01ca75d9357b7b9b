"""The values of an execution, as far as its reads have sources: registers, memory, the conditions of paths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, product
from typing import TypeAlias

from .axioms import Model
from .barriers import ROW_BITS, arrivals, reductions
from .events import Path
from .paths import Paths
from .programs import Test
from .relations import Events, members
from .structures import Node, Skeleton

#: What the events of a thread's path have read, as far as some of them are needed; None if that is not known.
_ReadsOf: TypeAlias = "Callable[[int, Path, int], Sequence[int] | None]"


def observed_names(test: Test) -> tuple[str, ...]:
    """What makes a final state: the registers and locations of the condition and of `locations`, or all."""
    names = list(test.observed)
    if test.condition is not None:
        names += test.condition.names
    if not names:
        for thread in test.threads:
            for instruction in thread.instructions:
                results = getattr(instruction, "results", ()) or (getattr(instruction, "result", ""),)
                names += [f"{thread.name}:{register}" for register in results if register]
        names += test.named
    return tuple(dict.fromkeys(names))


class Valuation:
    """asked: the names whose values a final state has; sources: for each read and piece of memory the write that it
    reads from."""

    def __init__(self, test: Test, found: Skeleton, chosen: Model, paths: Paths, initial: dict[str, int]) -> None:
        self.test, self.found, self.chosen, self.x = test, found, chosen, found.structure
        self.paths, self.initial = paths, initial
        self.n = self.x.universe.n
        self.asked = dict.fromkeys((*observed_names(test), *(test.filter.names if test.filter else ())))
        self.sources: dict[tuple[int, int], int] = {}
        #: For each thread the reads all of whose pieces have a source.
        self.chosen_reads = [0] * len(found.paths)
        self.known: dict[int, int | None] = {}
        #: Whether executions count in which values follow from themselves: their states lack these values.
        self.from_nothing = False
        #: What each thread leaves in its registers, by their full names, and what other registers hold.
        self.left = {
            f"{path.thread.name}:{register}": (index, path, value)
            for index, path in enumerate(found.paths) for register, value in path.registers.items()
        }  # fmt: skip
        #: The waits at barriers that return a result, with the arrivals that they meet.
        self.reductions = {b: arrivals(found, b) for b in reductions(found)}
        for b in self.reductions:
            self.chosen_reads[found.nodes[b].thread] |= 1 << found.nodes[b].at
        self.others = {name: paths.initial(number) for name, number in test.registers.items()}
        #: The registers that are asked for: those that a thread leaves a value in, the values of the others.
        self.asked_registers = [(name, *self.left[name]) for name in self.asked if name in self.left]
        self.untouched = {
            name: self.others.get(name, 0) for name in self.asked if ":" in name and name not in self.left
        }
        #: The conditions of all paths, and which of them are known to hold, as a set; with what was known before each
        #: choice.
        self.conditions = [
            (index, path, value, wanted) for index, path in enumerate(found.paths) for value, wanted in path.conditions
        ]
        self.met = 0
        self._before: list[tuple[dict[int, int | None], int]] = []

    def choose(self, read: int, piece: int, write: int) -> None:
        self._before.append((self.known, self.met))
        self.known = {event: value for event, value in self.known.items() if value is not None}
        self.sources[read, piece] = write
        node = self.found.nodes[read]
        if all((read, other) in self.sources for other in node.pieces):
            self.chosen_reads[node.thread] |= 1 << node.at

    def forget(self, read: int, piece: int) -> None:
        self.known, self.met = self._before.pop()
        del self.sources[read, piece]
        node = self.found.nodes[read]
        self.chosen_reads[node.thread] &= ~(1 << node.at)

    def relevant_reads(self) -> set[int]:
        """The reads that values of final states, conditions of paths, or the use of an mbarrier may depend on."""
        found = self.found
        pending = [n for n, node in enumerate(found.nodes) if node.event.mbarrier and node.event.kind in "RU"]
        for index, path in enumerate(found.paths):
            needs = 0
            for value, _ in path.conditions:
                needs |= value.needs
            for register, value in path.registers.items():
                if f"{path.thread.name}:{register}" in self.asked:
                    needs |= value.needs
            pending += [found.first[index] + at for at in members(needs)]
        memories = {self.test.locations[name].memory for name in self.asked_locations()}
        for node in found.nodes:
            if node.memory in memories and node.event.value is not None:
                pending += self._needed(node)
        relevant: set[int] = set()
        while pending:
            read = pending.pop()
            if read not in relevant:
                relevant.add(read)
                for node in found.nodes:
                    if node.memory == found.nodes[read].memory and node.event.value is not None:
                        pending += self._needed(node)
        return relevant

    def _needed(self, node: Node) -> list[int]:
        """The reads that the value of a write depends on."""
        assert node.event.value is not None
        return [self.found.first[node.thread] + at for at in members(node.event.value.needs)]

    def asked_locations(self) -> Iterator[str]:
        for asked in self.asked:
            name = asked.partition("[")[0]
            if ":" not in asked and name in self.test.locations:
                yield name

    # --- values ---

    def is_possible(self) -> bool:
        """Whether the conditions of the paths can still hold, as far as reads have values."""
        for number, (index, path, value, wanted) in enumerate(self.conditions):
            if self.met >> number & 1 or value.needs & ~self.chosen_reads[index]:
                continue
            reads = self._read_values(index, path, value.needs)
            if reads is not None:
                if bool(value.of(reads)) != wanted:
                    return False
                self.met |= 1 << number
        return True

    def _read_values(self, thread: int, path: Path, needs: int) -> list[int] | None:
        """What the reads of a path returned, 0 where it is not needed; None if one of them is not known yet."""
        reads = [0] * len(path.events)
        first = self.found.first[thread]
        for at in members(needs):
            value = self.read_value(first + at)
            if value is None:
                return None
            reads[at] = value
        return reads

    def read_value(self, read: int) -> int | None:
        """None if it is not known yet, or follows from itself."""
        if read in self.known:
            return self.known[read]
        self.known[read] = None
        node, result = self.found.nodes[read], 0
        if read in self.reductions:
            self.known[read] = self._reduced(read)
            return self.known[read]
        for piece in node.pieces:
            source = self.sources.get((read, piece))
            if source is None:
                return None
            value = self.written_value(source, piece)
            if value is None:
                return None
            result |= value << 8 * (self.found.pieces[piece][1] - node.start)
        self.known[read] = result
        return result

    def _reduced(self, wait: int) -> int | None:
        """The result of a barrier's reduction (9.7.13.1); None if a predicate is not known yet."""
        predicates = []
        for arrival in self.reductions[wait]:
            node = self.found.nodes[arrival]
            if node.event.value is not None:
                reads = self._read_values(node.thread, self.found.paths[node.thread], node.event.value.needs)
                if reads is None:
                    return None
                predicates.append(node.event.value.of(reads))
        kind = getattr(self.found.nodes[wait].instruction, "reduction", "")
        if kind == "join":  # the registers of each thread of a row
            return sum(value << ROW_BITS * at for at, value in enumerate(predicates))
        return sum(predicates) if kind == "popc" else int(all(predicates) if kind == "and" else any(predicates))

    def written_value(self, write: int, piece: int) -> int | None:
        """The bytes of a piece of memory as a write leaves them, as an unsigned number."""
        node = self.found.nodes[write]
        name, start, end = self.found.pieces[piece]
        if node.thread < 0:
            value = self.initial[name]
        else:
            written = node.event.value
            assert written is not None
            reads = self._read_values(node.thread, self.found.paths[node.thread], written.needs)
            if reads is None:
                return None
            value = written.of(reads)
        return value >> 8 * (start - node.start) & ((1 << 8 * (end - start)) - 1)

    # --- results ---

    def final_states(self) -> Iterator[dict[str, int]]:
        """The values of what is asked for: several, if the last writes of a location race."""
        state = self._registers(self.asked)
        if state is None:
            assert self.chosen.without == "No-Thin-Air", "that axiom gives every read a value"
            if self.from_nothing:
                yield self.known_registers()
            return
        wanted = {self.test.locations[name].memory for name in self.asked_locations()}
        for memory in self._memories(wanted):
            yield {**state, **self._memory(memory, self.asked)}

    def whole_state(self) -> dict[str, int]:
        """The values of all registers and locations, if one of several, any."""
        self.known = {}
        names = dict.fromkeys((*self.asked, *self.test.registers, *self.test.locations))
        names |= dict.fromkeys(f"{path.thread.name}:{name}" for path in self.found.paths for name in path.registers)
        return {**(self._registers(names) or {}), **self._memory(next(self._memories(set())), names)}

    def known_registers(self) -> dict[str, int]:
        """The registers that are asked for, as far as the reads that they depend on have sources."""
        state = dict(self.untouched)
        for name, index, path, value in self.asked_registers:
            if not value.needs & ~self.chosen_reads[index]:
                reads = self._read_values(index, path, value.needs)
                if reads is not None:
                    state[name] = value.of(reads)
        return state

    def state_of(self, reads: Sequence[Sequence[int]], memory: int) -> dict[str, int]:
        """The final state, where memory is one piece. reads: by thread, what the events of its path have read."""
        state = self._registers(self.asked, lambda index, path, needs: reads[index])
        assert state is not None
        return state | self._memory((memory,), self.asked)

    def _registers(self, names: Iterable[str], reads_of: _ReadsOf | None = None) -> dict[str, int] | None:
        """None if one follows from itself."""
        reads_of = reads_of or self._read_values
        state: dict[str, int] = {}
        for name in names:
            left = self.left.get(name)
            if left is not None:
                index, path, value = left
                reads = reads_of(index, path, value.needs)
                if reads is None:
                    return None
                state[name] = value.of(reads)
            elif ":" in name:
                state[name] = self.others.get(name, 0)
        return state

    def _memories(self, wanted: set[str]) -> Iterator[tuple[int, ...]]:
        """What each piece of memory may hold in the end; of memory objects that are not wanted only one value."""
        values = []
        order = self.x.universe.rows(self.chosen.coherence.rows(self.x))
        for piece, (name, _, _) in enumerate(self.found.pieces):
            known = (value for value in self.last_values(piece, order) if value is not None)
            last = list(dict.fromkeys(known if name in wanted else islice(known, 1)))
            assert last or self.from_nothing, "No-Thin-Air gives every write a value"
            values.append(last or [0])
        yield from product(*values)

    def last_values(self, piece: int, order: Sequence[Events]) -> Iterator[int | None]:
        """What the writes leave that no other one follows in the coherence order: several, if they race; None for a
        value that is not known yet. order: that order, as the successors of each event."""
        writers = self.found.writers[piece]
        for write in members(writers):
            if not order[write] & writers:
                yield self.written_value(write, piece)

    def _memory(self, chosen: Sequence[int], names: Iterable[str]) -> dict[str, int]:
        """The values of those names that are locations or elements, when the pieces of memory have these bytes."""
        found = {}
        for asked in names:
            name, _, index = asked.partition("[")
            if ":" in asked:
                continue
            location, type_ = self.test.locations[name], self.paths.types[name]
            first = int(index[:-1]) * type_.bits // 8 if index else 0
            last = first + type_.bits // 8
            value = self.initial[location.memory] >> 8 * first
            for (memory, start, end), bytes_ in zip(self.found.pieces, chosen, strict=True):
                early, late = max(start, first), min(end, last)
                if memory == location.memory and early < late:
                    mask = (1 << 8 * (late - early)) - 1
                    at = 8 * (early - first)
                    value = value & ~(mask << at) | (bytes_ >> 8 * (early - start) & mask) << at
            found[asked] = type_.wrap(value)
        return found

    def is_undefined(self) -> bool:
        """Whether an operation on an mbarrier finds none, or leaves none (9.7.13.15), or threads that want a reduction
        meet others that take no part in it at a barrier (9.7.13.1)."""
        if any(self.found.nodes[a].event.value is None for met in self.reductions.values() for a in met):
            return True
        for n, node in enumerate(self.found.nodes):
            if node.event.mbarrier and getattr(node.instruction, "kind", "") != "inval":
                if node.event.kind in "RU" and self.read_value(n) == 0:
                    return True
                if node.event.kind in "WU" and self.written_value(n, node.pieces[0]) == 0:
                    return True
        return False
