"""Passes over functions without reading them: their lines are judged by shape, and names are looked at one by one.

That takes a tenth of the time of a parse. A function that is not passed need not be wrong: it is read, and held against
the rules as usual, with the same findings (`tests/nvvm/test_screen.py`).
"""

from __future__ import annotations

import re
from itertools import accumulate

from ..assembly.nodes import Function
from ..assembly.tokens import unquoted
from ..assembly.types import LABEL as LABEL_TYPE
from ..assembly.types import Type
from .context import Context
from .dominance import comes_before, dominators_of
from .shapes import BLANK, HOLE, JOINED, LABEL, PHI, PLAIN, RETURN, Shape, Shapes, has_prefix

_COMMENT = re.compile(r";[^\n]*")
_WITH_STRINGS = re.compile(r"^([^\"\n;]*);[^\n]*", re.M)
_SWITCH = re.compile(r"\bswitch\b[^\n]*\[[^\]]*\]")
_NUMBERED = re.compile(r"%\d+")
_DIGITS = frozenset("0123456789")
_STEPS = 8
#: Types without a prefix that tells them from values: with more, each name would cost too much.
_MOST_TYPES = 100


class Screen:
    """Over the functions of a module, in the order of the text. The context is that of the rules."""

    def __init__(self, context: Context) -> None:
        self.context = context
        others = sum(not has_prefix(name) for name in context.module.types)
        usable = HOLE not in context.source.text and others <= _MOST_TYPES
        self._shapes = Shapes(context) if usable else None
        #: The names of unnamed values.
        self._numbers = [f"%{number}" for number in range(64)]

    def passes(self, function: Function) -> bool:
        """Whether the body of a function, which has not been read, is without fault, but for findings about single
        lines, which the context has then."""
        found = self.context.found
        before = len(found)
        if (
            function.body is not None
            and self._shapes is not None
            and _Body(self, self._shapes, function, *function.body).passes()
        ):
            return True
        del found[before:]
        return False

    def numbers(self, count: int) -> list[str]:
        while len(self._numbers) < count:
            self._numbers.append(f"%{len(self._numbers)}")
        return self._numbers


class _Body:
    """One body. types, homes: of the values that are defined so far, with the numbers of their blocks; blocks: numbers
    of blocks by name; names: their names; edges: from which block to which name; early: uses before the definitions:
    name, type, block; most: numbers that the body needs; pairs: of blocks, the definition's and the use's."""

    def __init__(self, screen: Screen, shapes: Shapes, function: Function, begin: int, end: int) -> None:
        self.function, self.begin = function, begin
        self.context, self.shapes = screen.context, shapes
        self.text = screen.context.source.text[begin:end]
        code = self.text
        if ";" in code:
            code = _COMMENT.sub("", code) if '"' not in code else _WITH_STRINGS.sub(r"\1", code)
        if "switch" in code:
            code = _SWITCH.sub(lambda found: found[0].replace("\n", JOINED), code)
        parts = self.shapes.names.split(code)
        self.found, self.lines = parts[1::2], HOLE.join(parts[::2]).split("\n")
        if '%"' in code:
            self.found = [unquoted(name) if name[1] == '"' else name for name in self.found]
        self.most = len(self.lines) + len(function.params) + 2
        self.numbers = screen.numbers(2 * self.most + 1)
        self.next = 0
        self.types: dict[str, Type | None] = {}
        self.homes: dict[str, int] = {}
        self.blocks: dict[str, int] = {}
        self.names: list[str] = []
        self.edges: list[tuple[int, str]] = []
        self.phis: list[tuple[int, set[str]]] = []
        self.early: list[tuple[str, Type, int]] = []
        self.mentioned: list[str] = []
        self.pairs: set[tuple[int, int]] = set()

    def passes(self) -> bool:
        for param in self.function.params:
            param.name = param.name or self.numbers[self.next]
            if param.name in self.types or not self.counts(param.name):
                return False
            self.types[param.name], self.homes[param.name] = param.type, -1
        return self.reads() and self.flows()

    def counts(self, name: str) -> bool:
        """Whether a name, if it is a number, is in order; before LLVM 17 numbers have no gaps."""
        if name == self.numbers[self.next]:
            self.next += 1
        elif name[1:2] in _DIGITS and _NUMBERED.fullmatch(name):
            number = int(name[1:]) if len(name) < 12 else -1
            if number < self.next or not self.context.modern or number > self.most:
                return False
            self.next = number + 1
        return True

    def begins(self, name: str) -> bool:
        """Begin a block; whether it may begin here."""
        if name in self.types or not self.counts(name):
            return False
        number = len(self.names)
        self.types[name], self.homes[name] = LABEL_TYPE, number
        self.blocks[name] = number
        self.names.append(name)
        return True

    def all_shapes(self) -> list[Shape] | None:
        """The shapes of all lines; None if there is none for one of them."""
        known = self.shapes.known
        shapes = list(map(known.get, self.lines))
        if None not in shapes:
            return shapes  # type: ignore[return-value]
        text = self.text
        if "switch" in text:
            text = _SWITCH.sub(lambda found: found[0].replace("\n", JOINED), text)
        places = list(accumulate((len(line) + 1 for line in text.split("\n")), initial=self.begin))
        if len(places) != len(self.lines) + 1:
            return None
        made: list[Shape] = []
        for line, place, shape in zip(self.lines, places, shapes, strict=False):
            shape = shape or known.get(line) or self.shapes.judge(line, place)
            if shape is None:
                return None
            made.append(shape)
        return made

    def reads(self) -> bool:
        """Whether all lines are without fault, but for what is defined after its use, and the order of blocks."""
        shapes = self.all_shapes()
        if shapes is None:
            return False
        found, types, homes, numbers = self.found, self.types, self.homes, self.numbers
        early, pairs, metadata = self.early, self.pairs, self.context.module.metadata
        at, block, open_, expected = 0, -1, False, numbers[self.next]
        before = PHI
        for kind, uses, result, named, references, holes, mentioned, targets, given, label in shapes:
            if kind >= LABEL:
                if kind != BLANK:
                    if open_ or not self.begins(label):
                        return False
                    block, open_, before, expected = block + 1, True, PHI, numbers[self.next]
                continue
            if not open_:
                if not self.begins(expected):
                    return False
                block, open_, before, expected = block + 1, True, PHI, numbers[self.next]
            for slot, type in uses:
                name = found[at + slot]
                if types.get(name) is type:
                    # the parameters (-1) and the first block come before all others
                    if block > 0 and kind != PHI and 0 < homes[name] != block:
                        pairs.add((homes[name], block))
                elif name in types:
                    return False
                else:
                    early.append((name, type, block if kind != PHI else -1))
            for slot in references:
                if found[at + slot] not in metadata:
                    return False
            if result is not None:
                if named:
                    name = found[at]
                    if name[1] in _DIGITS:
                        if not self.counts(name):
                            return False
                        expected = numbers[self.next]
                else:
                    name = expected
                    self.next += 1
                    expected = numbers[self.next]
                if name in types:
                    return False
                types[name], homes[name] = result, block
            if kind != PLAIN:
                if (kind == RETURN and given is not self.function.result) or kind == PHI != before:
                    return False
                self.controls(kind, block, [found[at + slot] for slot in targets])
                open_ = kind == PHI
            elif mentioned:
                self.mentioned += [found[at + slot] for slot in mentioned]
            at += holes
            before = kind
        return block >= 0 and not open_

    def controls(self, kind: int, block: int, targets: list[str]) -> None:
        """Note which blocks a phi or a terminator names."""
        if kind == PHI:
            self.phis.append((block, set(targets)))
        else:
            self.edges += [(block, target) for target in targets]

    def flows(self) -> bool:
        """Whether branches have targets, phis their predecessors, and uses their definitions before them."""
        before: list[list[int]] = [[] for _ in self.names]
        for source, target in self.edges:
            number = self.blocks.get(target, 0)
            if number == 0:
                return False
            before[number].append(source)
        for block, comes in self.phis:
            if comes != {self.names[source] for source in before[block]}:
                return False
        for name, type, block in self.early:
            if self.types.get(name) is not type:
                return False
            if block >= 0:
                self.pairs.add((self.homes[name], block))
        if any(name not in self.types for name in self.mentioned):
            return False
        pairs = [pair for pair in self.pairs if pair[0] > 0 or pair == (0, 0)]
        if not pairs:
            return True
        return all(_straight(before, home, block) for home, block in pairs) or self.dominates(before, pairs)

    @staticmethod
    def dominates(before: list[list[int]], pairs: list[tuple[int, int]]) -> bool:
        """Whether in each pair of blocks the first comes before the second on all ways."""
        tree = dominators_of(before)
        return all(comes_before(tree, home, block) for home, block in pairs)


def _straight(before: list[list[int]], home: int, block: int) -> bool:
    """Whether the only way back from a block leads to another one, in a few steps."""
    for _ in range(_STEPS):
        if len(before[block]) != 1:
            return False
        block = before[block][0]
        if block == home:
            return True
    return False
