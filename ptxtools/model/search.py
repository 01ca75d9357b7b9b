"""The executions of one combination of paths.

The search chooses the Fence-SC order, then the order of morally strong writes, then what each read reads from. Every
relation of the model grows with these choices, so that an axiom that is broken once stays broken: after each choice the
axioms are checked, and the branch is left if one fails. Before a choice, the writes that causality order already hides
from a read are left out, and the read with the fewest writes comes first.

A read that synchronises with nothing, and that no write depends on, changes no relation that the choices of other
reads rest on: it is free. Free reads are chosen last, without a check; those whose value nobody asks for are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

from .aims import Aimed
from .axioms import Model
from .compiled import check_for
from .domains import FEW_VALUES, MOST_VALUES, Choice, narrowed
from .interleavings import Interleavings, Steps
from .paths import Paths
from .programs import Test
from .races import Conflict, conflicts, races
from .relations import Relation, members
from .structures import Skeleton
from .terms import CHOICE, ORDER, Axiom

#: Checks after which the search for an execution looks, at each choice, at the values that others leave possible, and
#: what a look counts for, in checks.
CHECKS_BEFORE_VALUES, CHECKS_OF_A_LOOK = 300, 30


class Search(Aimed):
    """way: the choice of paths, and the way in which barriers meet, by number; leaves, steps: how many executions and
    checks it has gone through; weight: how many the last execution stands for; races: whether two conflicting
    operations race in it (8.7.1), and whether two of different sizes do (8.7.2)."""

    way = (0, 0)
    #: Checks after which nothing is allowed any more.
    most_steps: int | None = None
    #: Whether the search has found that nothing is allowed, whatever is looked for.
    is_impossible = False
    #: Whether writes that are hidden from a read are left out beforehand.
    foresight = True

    def __init__(
        self,
        test: Test,
        found: Skeleton,
        chosen: Model,
        axioms: tuple[Axiom, ...],
        paths: Paths,
        initial: dict[str, int],
    ) -> None:
        super().__init__(test, found, chosen, paths, initial)
        self.axioms, self.leaves, self.steps = axioms, 0, 0
        self.weight, self.races = 1, (False, False)
        x = self.x
        self.check = check_for(x, axioms, (chosen.coherence.term, chosen.cause.term, chosen.from_reads.term))
        for name in ("rf", "rf^-1", "sc", "ordered"):
            x.given[name] = 0
        related = chosen.morally_strong.rows(x)
        strong = self.strong = x.universe.rows(related)
        writes = x.sets["W"]
        self.open = [(a, b) for a, b in x.universe.pairs(related & x.universe.product(writes, writes)) if a < b]
        self.fences = [(a, b) for a, b in found.fences if strong[a] >> b & 1]
        mixed = any(len(node.pieces) > 1 for node in found.nodes)
        every = x.sets["_"]
        x.parts = [[0, x.universe.product(every, writers)] for writers in found.writers] if mixed else []
        self.foresees = self.foresight and axioms == chosen.axioms and not chosen.without
        self.free: list[Choice] = []
        #: Free reads that nothing asks for, with the write that they are shown to read from.
        self.counted: list[Choice] = []
        # What makes a write invisible besides causality order: SC-per-Location within a thread.
        given = x.given
        self.by_program = given["po"] & given["overlap-completely"] & given["same-proxy"]
        #: The writes of `open`, both ways; for each piece of memory, or for all, what a write of it leads to.
        self.pairs = x.universe.relation(pair for a, b in self.open for pair in ((a, b), (b, a)))
        self.covering = (
            [x.universe.product(writers, every) for writers in found.writers] if mixed else [x.universe.full]
        )
        self.atomic = x.universe.product(x.sets["RMW"], every)
        self.related = related
        #: The execution that has been found without its choices (`interleavings.py`).
        self.steps_found: Steps = None

    @cached_property
    def conflicts(self) -> list[Conflict]:
        return list(conflicts(self.found, self.strong))

    # --- the search ---

    def states(self) -> Iterator[dict[str, int]]:
        """The final states of all executions; one execution may have several, if writes race."""
        found = self._interleaved()
        if found is None:
            yield from self._searched()
            return
        self.is_impossible = True
        for state, self.weight, self.steps_found in found:
            self.is_impossible = False
            self.leaves += 1
            yield state
        self.steps_found = None

    def _interleaved(self) -> Iterator[tuple[dict[str, int], int, Steps]] | None:
        """Final states with their weights, if all executions are interleavings."""
        if not self.foresees:
            return None
        interleavings = Interleavings(self, self.strong)
        return interleavings.states() if interleavings.apply else None

    def _searched(self) -> Iterator[dict[str, int]]:
        candidates = self._all_candidates()
        if candidates is None:
            self.is_impossible = self.aim is None and (self.most_steps is None or self.steps <= self.most_steps)
            return
        if not self.is_open():
            return
        candidates = self._without_free(candidates)
        if self.aim is not None and self.foresees:
            yield from self._aimed(candidates)
            return
        for _ in self._fence_orders(0):
            for _ in self._reads(candidates):
                for _ in self._write_orders(self.open):
                    for _ in self._write_orders(self._caused_writes()):
                        yield from self._leaves()

    def _all_candidates(self) -> list[Choice] | None:
        """The writes that each read may read from when nothing else is known; None if nothing is allowed."""
        choices: list[Choice] | None = [
            (read, piece, list(members(self.found.writers[piece] & ~(1 << read))))
            for read, piece in self.found.slots
        ]  # fmt: skip
        assert choices is not None
        if not self.foresees:
            choices = self._checked(self.is_possible, choices)
            if choices is None or not self._order_by_itself():
                return None
            return self._checked(self._allowed, choices)
        if not self._order_by_itself():
            return None
        choices = self._visible(choices, self._hidden())  # as checks of each choice by itself would leave them
        if not all(writes for _, _, writes in choices):
            return None
        return narrowed(self, choices, FEW_VALUES) if self.has_conditions else choices

    def _aimed(self, candidates: list[Choice]) -> Iterator[dict[str, int]]:
        """The same, with first of all the reads on which the aim depends: of the others, one choice is enough."""
        choices = [
            (read, piece, sorted(writes, key=lambda write: self._effect(read, write)))
            for read, piece, writes in narrowed(self, candidates, MOST_VALUES) or ()
        ]  # fmt: skip
        if len(choices) < len(candidates) or not self.is_open():
            return
        for left in self._needed_choices(choices, last=False):
            for _ in self._fence_orders(0):
                for _ in self._write_orders(self.open, left):
                    for rest in self._needed_choices(left, last=True):
                        for _ in self._reads(rest):
                            yield from self._leaves()

    def _needed_choices(self, choices: list[Choice], last: bool) -> Iterator[list[Choice]]:
        """Choose for the reads that the aim rests on, one after the other as they turn out to be needed. last: what
        memory holds in the end counts, too. Yields the other choices."""
        choices = self._visible(choices, self._hidden())
        if not all(writes for _, _, writes in choices):
            return
        if self.steps > CHECKS_BEFORE_VALUES:
            self.steps += CHECKS_OF_A_LOOK
            chosen = [(read, piece, [write]) for (read, piece), write in self.sources.items()]
            narrow = narrowed(self, [*choices, *chosen], MOST_VALUES)
            if narrow is None:
                return
            choices = narrow[: len(choices)]
        needed = self.needed_reads(last)
        choice = min((one for one in choices if one[0] in needed), key=lambda one: len(one[2]), default=None)
        if choice is None:
            yield choices
            return
        read, piece, writes = choice
        others = [one for one in choices if one is not choice]
        before = self.x.given["ordered"]
        for write in writes:
            self._set(read, piece, write)
            if self._within_limit() and self.is_possible() and self._allowed() and self._settled() and self.is_open():
                yield from self._needed_choices(others, last)
            self.x.given["ordered"] = before
            self._clear(read, piece, write)

    def _effect(self, read: int, write: int) -> tuple[bool, bool]:
        """How much it restrains other choices that a read reads from a write: it may synchronise with another thread,
        or at least communicate with it."""
        other = self.found.nodes[write].thread != self.found.nodes[read].thread
        return other and bool(self.strong[write] >> read & 1), other

    def _leaves(self) -> Iterator[dict[str, int]]:
        """The final states of the executions that differ in what the free reads read from."""
        hidden = self._hidden() if self.free or self.counted else ([], 0)
        self.weight = 1
        counted = self._visible(self.counted, hidden)
        for _, _, writes in counted:
            self.weight *= len(writes)
        if not self.weight:
            return
        for read, piece, writes in counted:
            self.choose(read, piece, writes[0])
        self.races = races(self.chosen.cause.rows(self.x), self.conflicts)
        for _ in self._free_reads(0, self._visible(self.free, hidden)):
            self.leaves += 1
            yield from self.final_states()
        for read, piece, _ in counted:
            self.forget(read, piece)

    def _free_reads(self, at: int, choices: list[Choice]) -> Iterator[None]:
        if at == len(choices):
            yield
            return
        read, piece, writes = choices[at]
        for write in writes:
            self.choose(read, piece, write)
            if self.is_possible():
                yield from self._free_reads(at + 1, choices)
            self.forget(read, piece)

    def _without_free(self, candidates: list[Choice]) -> list[Choice]:
        """The choices that are not those of free reads, which are put aside."""
        if not self.foresees or self.x.parts:
            return candidates
        relevant, left = self.relevant_reads(), []
        for choice in candidates:
            if not self._is_free(*choice):
                left.append(choice)
            elif choice[0] in relevant:
                (self.free if self.aim is None else left).append(choice)
            else:
                self.counted.append(choice)
        return left

    def _is_free(self, read: int, piece: int, writes: list[int]) -> bool:
        """Whether it is no part of a morally strong pair with a write of another thread or an asynchronous operation,
        no write depends on it, and, for 6.0, where reading an own write adds to causality order, it reads none."""
        nodes, x = self.found.nodes, self.x
        thread = nodes[read].thread
        if nodes[read].event.kind != "R" or x.universe.after(x.given["dep"], read):
            return False
        if any(
            nodes[write].thread != thread or nodes[write].event.agent
            for write in members(self.strong[read] & x.sets["W"])
        ):
            return False
        return self.chosen.version != "6.0" or all(nodes[write].thread != thread for write in writes)

    def _hidden(self) -> tuple[list[Relation], Relation]:
        """For each piece of memory, or for all, the writes that precede a write that precedes a read (8.10.6), and the
        accesses that precede others (8.10.5, 8.10.6): a read returns the value of neither."""
        order, cause = self.chosen.coherence.rows(self.x), self.chosen.cause.rows(self.x) | self.by_program
        chain = self.x.universe.chain
        if not self.x.parts:
            return [chain(order, cause)] * len(self.found.pieces), cause
        return [chain(order & writes, cause) for _, writes in self.x.parts], cause

    def _visible(self, choices: list[Choice], hidden: tuple[list[Relation], Relation]) -> list[Choice]:
        n, (overwritten, cause) = self.n, hidden
        found = []
        for read, piece, writes in choices:
            old, late = overwritten[piece] >> read, cause >> read * n
            found.append((read, piece, [w for w in writes if not (old >> w * n | late >> w) & 1]))
        return found

    def _allowed(self) -> bool:
        return self._within_limit() and self.check(self.x)

    def _within_limit(self) -> bool:
        self.steps += 1
        return self.most_steps is None or self.steps <= self.most_steps

    def _settled(self) -> bool:
        """Order those writes whose order follows from what is chosen: one that precedes a read in causality order
        precedes the write that this read returns (8.10.6), and between the read and the write of an atomic operation
        stands no write that is morally strong with it (8.10.3). False if nothing is allowed then."""
        if not self.pairs or not self.foresees:
            return True
        x, given, chain = self.x, self.x.given, self.x.universe.chain
        sources = [read for read, _ in x.parts] if x.parts else [given["rf^-1"]]
        while True:
            order, cause = self.chosen.coherence.rows(x), self.chosen.cause.rows(x)
            if 2 * (order & self.pairs).bit_count() == self.pairs.bit_count():
                return True
            found = self.chosen.from_reads.rows(x) & self.atomic & self.related
            late = order & self.related
            for read, covering in zip(sources, self.covering, strict=True):
                found |= chain(cause & covering, read) | chain(late & covering, read & self.atomic)
            found &= self.pairs & ~order
            if not found:
                return True
            given["ordered"] |= found
            x.changed(ORDER)
            if not self._allowed():
                return False

    def _order_by_itself(self) -> bool:
        """Order those pairs of writes whose order needs no choice: of one thread, or by causality order. False if
        nothing is allowed."""
        given, left = self.x.given, []
        if any(axiom.name == "SC-per-Location" for axiom in self.axioms):
            for a, b in self.open:
                given["ordered"] |= (given["po"] >> a * self.n + b & 1) << a * self.n + b
            self.x.changed(ORDER)
        if not self._allowed():
            return False
        order, holds = self.chosen.coherence.rows(self.x), self.x.universe.holds
        for a, b in self.open:
            if holds(order, a, b):
                given["ordered"] |= 1 << a * self.n + b
            elif holds(order, b, a):
                given["ordered"] |= 1 << b * self.n + a
            else:
                left.append((a, b))
        self.x.changed(ORDER)
        self.open = left
        return True

    def _checked(self, check: Callable[[], bool], choices: list[Choice]) -> list[Choice] | None:
        """The choices without the writes that fail a check when only this is chosen. None if a read has none left."""
        found = []
        for read, piece, possible in choices:
            writes = []
            for write in possible:
                self._set(read, piece, write)
                if check():
                    writes.append(write)
                self._clear(read, piece, write)
            if not writes:
                return None
            found.append((read, piece, writes))
        return found

    def _set(self, read: int, piece: int, write: int) -> None:
        self.x.given["rf"] |= 1 << write * self.n + read
        self.x.given["rf^-1"] |= 1 << read * self.n + write
        if self.x.parts:
            self.x.parts[piece][0] |= 1 << read * self.n + write
        self.choose(read, piece, write)
        self.x.changed(CHOICE if self.strong[write] >> read & 1 else ORDER)

    def _clear(self, read: int, piece: int, write: int) -> None:
        self.forget(read, piece)
        if self.x.parts:
            self.x.parts[piece][0] &= ~(1 << read * self.n + write)
        if not any(self.sources.get((read, other)) == write for other in self.found.nodes[read].pieces):
            self.x.given["rf"] &= ~(1 << write * self.n + read)
            self.x.given["rf^-1"] &= ~(1 << read * self.n + write)
        self.x.changed(CHOICE if self.strong[write] >> read & 1 else ORDER)

    def _fence_orders(self, at: int) -> Iterator[None]:
        """Every direction of each pair of morally strong fence.sc (8.9.3), as an acyclic relation."""
        if at == len(self.fences):
            yield
            return
        a, b = self.fences[at]
        before = self.x.given["sc"]
        for early, late in ((a, b), (b, a)):
            self.x.given["sc"] = before | 1 << early * self.n + late
            self.x.changed(CHOICE)
            if self.x.universe.is_acyclic(self.x.given["sc"]) and self._allowed():
                yield from self._fence_orders(at + 1)
        self.x.given["sc"] = before
        self.x.changed(CHOICE)

    def _reads(self, choices: list[Choice]) -> Iterator[None]:
        if not choices:
            if self.is_possible():
                yield
            return
        if self.foresees:
            choices = self._visible(choices, self._hidden())
            choices.sort(key=lambda choice: len(choice[2]))
        (read, piece, writes), *others = choices
        before = self.x.given["ordered"]
        for write in writes:
            self._set(read, piece, write)
            if self.is_possible() and self._allowed() and self._settled() and self.is_open():
                yield from self._reads(others)
            self.x.given["ordered"] = before
            self._clear(read, piece, write)

    def _write_orders(self, pairs: list[tuple[int, int]], choices: list[Choice] | None = None) -> Iterator[None]:
        """Every direction of each pair of writes that nothing orders yet (8.9.6). choices: reads whose sources are
        still open; each must be left one."""
        order, holds = self.chosen.coherence.rows(self.x), self.x.universe.holds
        pair = next(((a, b) for a, b in pairs if not (holds(order, a, b) or holds(order, b, a))), None)
        if pair is None:
            yield
            return
        before = self.x.given["ordered"]
        for early, late in (pair, pair[::-1]):
            self.x.given["ordered"] = before | 1 << early * self.n + late
            self.x.changed(ORDER)
            if self._allowed() and self._settled() and self.is_open() and self._leaves_sources(choices):
                yield from self._write_orders(pairs, choices)
        self.x.given["ordered"] = before
        self.x.changed(ORDER)

    def _leaves_sources(self, choices: list[Choice] | None) -> bool:
        return not choices or all(writes for _, _, writes in self._visible(choices, self._hidden()))

    def _caused_writes(self) -> list[tuple[int, int]]:
        """Without the axiom Coherence: the writes that causality relates, which may be ordered either way."""
        if self.chosen.without != "Coherence":
            return []
        caused, writes = self.chosen.cause.rows(self.x) & self.x.given["overlap"], self.x.sets["W"]
        return [(a, b) for a, b in self.x.universe.pairs(caused) if writes >> a & writes >> b & 1]

    # --- what is found ---

    def _place(self, steps: Steps) -> None:
        """Make the choices of an interleaving."""
        later = -1
        while steps is not None:
            steps, node, source = steps
            if source >= 0:
                self._set(node, 0, source)
            if self.x.sets["W"] >> node & 1:
                self.x.given["ordered"] |= 1 << node * self.n + later if later >= 0 else 0
                later = node

    def complete(self) -> None:
        """Put the choices of free reads into the relations. `resume` takes them out again."""
        self._place(self.steps_found)
        for read, piece, _ in (*self.free, *self.counted):
            write = self.sources[read, piece]
            self.x.given["rf"] |= 1 << write * self.n + read
            self.x.given["rf^-1"] |= 1 << read * self.n + write
        self.x.changed(CHOICE)

    def resume(self) -> None:
        if self.steps_found is not None:
            self.x.given["ordered"] = 0
            for read, piece in list(self.sources):
                self._clear(read, piece, self.sources[read, piece])
        for read, piece, _ in (*self.free, *self.counted):
            write = self.sources[read, piece]
            self.x.given["rf"] &= ~(1 << write * self.n + read)
            self.x.given["rf^-1"] &= ~(1 << read * self.n + write)
        self.x.changed(CHOICE)
