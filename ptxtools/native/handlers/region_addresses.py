"""What the addresses of a region are made of (`regions`): in a region that goes round by itself, some only grow."""

from __future__ import annotations

from ptxtools.native.code.live_words import words_of
from ptxtools.native.code.runs import Step
from ptxtools.program.details import Run


class Addresses:
    """sums: results of additions of what is the same in each round, as an operand and the terms added to it; strides:
    numbers of addresses that grow by the same in all lanes, with what they grow by; found: steps that only find the
    address of a word, by their results; skipped: results that nobody needs but as addresses."""

    def __init__(self, detail: Run) -> None:
        self.steps: tuple[Step, ...] = detail.steps
        self.read = {number: (slot, storage) for number, slot, storage in detail.read}
        self.kept = {number: (slot, storage) for number, slot, storage in detail.kept}
        self.sums: dict[int, tuple[int, tuple[int, ...]]] = {}
        self.strides: dict[int, tuple[int, ...]] = {}
        if detail.again is not None:
            self._find_strides()
        self.skipped = {number for number, (root, _) in self.sums.items() if root in self.strides}
        self.found = {step.targets[0][0]: step for step in self.steps if step.words and self._is_address(step)}
        self.skipped |= self.found.keys()

    def _find_strides(self) -> None:
        for step in self.steps:
            if step.text in ("add.s64", "add.u64") and step.guard < 0:
                (target, storage, _), (a, _, _), (b, _, _) = step.targets[0], *step.sources
                if storage == "b64" and self.steady(b):
                    root, terms = self.sums.get(a, (a, ()))
                    self.sums[target] = (root, (*terms, b))
        last = {self.kept[number]: number for number in self.sums if number in self.kept}
        for root, key in self.read.items():
            end = last.get(key)
            if end is not None and self.sums[end][0] == root and self._only_addresses(root, end):
                self.strides[root] = self.sums[end][1]

    def steady(self, number: int) -> bool:
        """Whether an operand is the same in each round."""
        if number not in self.read:
            return False
        words = words_of(*self.read[number])
        return not any(words_of(*key) & words for key in self.kept.values())

    def _only_addresses(self, root: int, end: int) -> bool:
        """Whether a stride's values are but addresses of accesses that all lanes make, and only the last is kept."""
        chain = {root} | {number for number, (first, _) in self.sums.items() if first == root}
        if any(number in self.kept for number in chain - {end}):
            return False
        for step in self.steps:
            for place, (number, _, _) in enumerate(step.sources):
                if number in chain:
                    adds = step.targets and step.targets[0][0] in chain and place == 0
                    if not adds and not (step.space and place == 0 and step.guard < 0):
                        return False
            if any(number in chain for number in (step.guard, *step.before)):
                return False
        return True

    def _is_address(self, step: Step) -> bool:
        """Whether what a step finds is nothing but an address of accesses."""
        number = step.targets[0][0]
        if number in self.kept:
            return False
        for other in self.steps:
            values = other.sources[1:] if other.space else other.sources
            if number in (other.guard, *other.before) or any(number == source for source, _, _ in values):
                return False
        return True
