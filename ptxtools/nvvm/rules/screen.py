"""Passes over functions without reading them: their lines are judged by shape, and names are held against each other.

That takes a tenth of the time of a parse: what is done for each line and each name is done by `map` and its like, whole
columns at once. A function that is not passed need not be wrong: it is read, and held against the rules as usual, with
the same findings (`tests/nvvm/test_screen.py`).
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from itertools import accumulate, chain, compress, count, repeat
from operator import attrgetter, is_, le, sub

from ..assembly.nodes import Function
from ..assembly.tokens import unquoted
from ..assembly.types import LABEL as LABEL_TYPE
from ..assembly.types import Type
from .context import Context
from .dominance import comes_before, dominators_of
from .shapes import (
    BLANK,
    BRANCH,
    END,
    HOLE,
    INCOMING,
    JOINED,
    LABEL,
    MENTIONED,
    NAMED,
    NODE,
    OPERAND,
    PHI,
    PLAIN,
    RESULT,
    RETURN,
    SOURCE,
    TARGET,
    UNNAMED,
    Shape,
    Shapes,
    has_prefix,
    may_be_used_for,
    stands_for,
)

_COMMENT = re.compile(r";[^\n]*")
_WITH_STRINGS = re.compile(r"^([^\"\n;]*);[^\n]*", re.M)
_SWITCH = re.compile(r"\bswitch\b[^\n]*\[[^\]]*\]")
_NUMBERED = re.compile(r"%\d[^%]*")
_DIGITS = frozenset("0123456789")
_STEPS = 64
#: Types without a prefix that tells them from values: with more, each name would cost too much.
_MOST_TYPES = 100

_types_of, _result_of, _given_of = attrgetter("types"), attrgetter("result"), attrgetter("given")


def _flags(*codes: int) -> bytes:
    """A table for `translate`: 1 for these, 0 for others."""
    return bytes(code in codes for code in range(256))


_ENDS, _LABELS = _flags(BRANCH, RETURN, END), _flags(LABEL)
_DEFINE, _DEFINE_ALL = _flags(PHI, NAMED), _flags(PHI, NAMED, UNNAMED)
_NAMES, _PHIS, _RETURNS = _flags(PHI, NAMED, LABEL), _flags(PHI), _flags(RETURN)
_RESULTS, _VALUES, _OPERANDS = _flags(RESULT), _flags(OPERAND, INCOMING), _flags(OPERAND)
_NODES, _TARGETS, _SOURCES, _MENTIONED = _flags(NODE), _flags(TARGET), _flags(SOURCE), _flags(MENTIONED)


def _set(*codes: int) -> bytes:
    return b"[" + b"".join(b"\\x%02x" % code for code in codes) + b"]"


#: A symbol that is not in quotes.
_SYMBOL = re.compile(r"(@[-\w$.]+)")
_BLANKS = bytes((BLANK,))
#: The kinds of lines, but for blank ones: blocks. And the begin of one that has no label, behind another one.
_BLOCKS = re.compile(
    b"(?:%s?%s*%s*%s)+" % (_set(LABEL), _set(PHI), _set(PLAIN, NAMED, UNNAMED), _set(BRANCH, RETURN, END))
)
_BEGINS_UNNAMED = re.compile(_set(BRANCH, RETURN, END) + _set(PHI, PLAIN, NAMED, UNNAMED, BRANCH, RETURN, END))


class Screen:
    """Over the functions of a module, in the order of the text. The context is that of the rules."""

    def __init__(self, context: Context) -> None:
        self.context = context
        others = sum(not has_prefix(name) for name in context.module.types)
        usable = may_be_used_for(context.source.text) and others <= _MOST_TYPES
        self._shapes = Shapes(context) if usable else None
        #: The names of unnamed values.
        self._numbers = [f"%{number}" for number in range(64)]
        #: What is alike in bodies that have been passed, and what symbols stand for.
        self._passed: set[tuple[object, ...] | None] = set()
        #: The first one of each size, until another one has it.
        self._first: dict[tuple[object, ...], _Body | None] = {}
        self._symbols: dict[str, str] = {}

    def passes(self, function: Function) -> bool:
        """Whether the body of a function, which has not been read, is without fault, but for findings about single
        lines, which the context has then."""
        found = self.context.found
        before = len(found)
        if function.body is None or self._shapes is None:
            return False
        body = _Body(self, self._shapes, function, *function.body)
        size = function.type, len(body.found), body.code.count("\n")
        alike = None
        if size in self._first:
            first = self._first[size]
            if first is not None:
                self._first[size] = None
                self._passed.add(self._alike(first))
            alike = self._alike(body)
            if alike is not None and alike in self._passed:
                return all(map(self.context.module.metadata.__contains__, body.nodes()))
        if body.passes():
            if len(found) == before and body.is_known():
                if size not in self._first:
                    self._first[size] = body
                else:
                    self._passed.add(alike)
            return True
        del found[before:]
        return False

    def _alike(self, body: _Body) -> tuple[object, ...] | None:
        """What is the same for bodies that are alike but for symbols of one type and nodes of metadata. None if it has
        a string, in which there may be what looks like a symbol."""
        if '"' in body.code:
            return None
        parts = _SYMBOL.split(body.code)
        for name in parts[1::2]:
            if name not in self._symbols:
                self._symbols[name] = stands_for(name, self.context.module, self.context.opaque)
        symbols = [self._symbols[name] for name in parts[1::2]]
        names = [name for name in body.found if name[0] != "!"] if body.has_nodes else body.found
        head = [param.name for param in body.function.params]
        return body.function.type, "@".join(parts[::2]), *symbols, *head, *names

    def numbers(self, count: int) -> list[str]:
        while len(self._numbers) < count:
            self._numbers.append(f"%{len(self._numbers)}")
        return self._numbers


class _Body:
    """One body. found: the names in its lines, in order; code: the lines without them; lines: one by one; most: numbers
    that the body needs; blocks: the names of blocks; results: those of instructions."""

    def __init__(self, screen: Screen, shapes: Shapes, function: Function, begin: int, end: int) -> None:
        self.function, self.begin = function, begin
        self.context, self.shapes = screen.context, shapes
        self.text = screen.context.source.text[begin:end]
        code = self.text
        if ";" in code:
            code = _COMMENT.sub("", code) if '"' not in code else _WITH_STRINGS.sub(r"\1", code)
        if "switch" in code:
            code = _SWITCH.sub(lambda found: found[0].replace("\n", JOINED), code)
        parts = shapes.split(code)
        self.found, self.code = parts[1::2], HOLE.join(parts[::2])
        if '%"' in code:
            self.found = [unquoted(name) if name[1] == '"' else name for name in self.found]
        self.screen, self.has_nodes = screen, "!" in code
        self.blocks: list[str] = []
        self.results: list[str] = []

    def nodes(self) -> list[str]:
        return [name for name in self.found if name[0] == "!"] if self.has_nodes else []

    def is_known(self) -> bool:
        """Whether all lines are known to be without fault, whatever node of metadata they name."""
        return all(map(self.shapes.known.__contains__, self.lines))

    def passes(self) -> bool:
        self.lines = self.code.split("\n")
        self.most = len(self.lines) + len(self.function.params) + 2
        self.numbers, self.next = self.screen.numbers(2 * self.most + 1), 0
        shapes = self.all_shapes()
        if shapes is None:
            return False
        kinds, rows = bytes([shape.kind for shape in shapes]), [shape.roles for shape in shapes]
        code = kinds.translate(None, _BLANKS)
        if not _BLOCKS.fullmatch(code):
            return False
        roles, ends = b"".join(rows), list(accumulate(map(len, rows)))
        for param in self.function.params:
            param.name = param.name or self.numbers[self.next]
            if not self.counts(param.name):
                return False
        plain = UNNAMED not in kinds and not _BEGINS_UNNAMED.search(code)
        if not (self.names if plain else self.names_one_by_one)(shapes, kinds, roles, ends, code[0] != LABEL):
            return False
        types = {param.name: param.type for param in self.function.params}
        types.update(zip(self.blocks, repeat(LABEL_TYPE), strict=False))
        defining = kinds.translate(_DEFINE if plain else _DEFINE_ALL)
        types.update(zip(self.results, map(_result_of, compress(shapes, defining)), strict=True))
        if len(types) != len(self.function.params) + len(self.blocks) + len(self.results):
            return False
        return self.fits(shapes, kinds, roles, types) and self.flows(kinds, rows, roles, ends, defining)

    def counts(self, name: str) -> bool:
        """Whether a name, if it is a number, is in order; before LLVM 17 numbers have no gaps."""
        if name == self.numbers[self.next]:
            self.next += 1
        elif name[1:2] in _DIGITS:
            number = int(name[1:]) if len(name) < 12 and name[1:].isdecimal() else -1
            if number < self.next or not self.context.modern or number > self.most:
                return False
            self.next = number + 1
        return True

    def names(self, shapes: list[Shape], kinds: bytes, roles: bytes, ends: list[int], entry: bool) -> bool:
        """Name blocks and results. Whether numbers are in order. entry: whether the first block has no label."""
        self.results = list(compress(self.found, roles.translate(_RESULTS)))
        if entry:
            self.blocks.append(self.numbers[self.next])
            self.next += 1
        labels = kinds.translate(_LABELS)
        self.blocks += [shape.label for shape in compress(shapes, labels)]
        named = "".join(self.results)
        if _NUMBERED.search("".join(self.blocks[entry:])):
            defining = compress(zip(shapes, chain((0,), ends), strict=False), kinds.translate(_NAMES))
            named = "".join([shape.label or self.found[at] for shape, at in defining])
        order = _NUMBERED.findall(named)
        return order == self.numbers[self.next : self.next + len(order)] or all(map(self.counts, order))

    def names_one_by_one(self, shapes: list[Shape], kinds: bytes, roles: bytes, ends: list[int], entry: bool) -> bool:
        """As `names`, where numbers are not written: of blocks behind the first, or of results."""
        open_ = False
        for shape, at in zip(shapes, chain((0,), ends), strict=False):
            kind = shape.kind
            if kind == BLANK:
                continue
            if not open_:
                self.blocks.append(shape.label or self.numbers[self.next])
                if not self.counts(self.blocks[-1]):
                    return False
            open_ = kind not in (BRANCH, RETURN, END)
            if shape.result is not None:
                self.results.append(self.numbers[self.next] if kind == UNNAMED else self.found[at])
                if not self.counts(self.results[-1]):
                    return False
        return True

    def fits(self, shapes: list[Shape], kinds: bytes, roles: bytes, types: Mapping[str, Type | None]) -> bool:
        """Whether names are defined, with the types that their uses have, and whether what is returned fits."""
        values = compress(self.found, roles.translate(_VALUES))
        if not all(map(is_, map(types.get, values), chain.from_iterable(map(_types_of, shapes)))):
            return False
        if NODE in roles and not self.defined(roles.translate(_NODES), self.context.module.metadata):
            return False
        if MENTIONED in roles and not self.defined(roles.translate(_MENTIONED), types):
            return False
        given = map(_given_of, compress(shapes, kinds.translate(_RETURNS)))
        return all(map(is_, given, repeat(self.function.result)))

    def defined(self, which: bytes, among: Container[str]) -> bool:
        return all(map(among.__contains__, compress(self.found, which)))

    def flows(self, kinds: bytes, rows: list[bytes], roles: bytes, ends: list[int], defining: bytes) -> bool:
        """Whether branches have targets, phis their predecessors, and uses their definitions before them."""
        which = roles.translate(_OPERANDS)
        operands, places = list(compress(self.found, which)), compress(range(len(roles)), which)
        begins = dict(zip(self.results, compress(ends, defining), strict=True))
        if len(self.blocks) == 1 and TARGET not in roles and SOURCE not in roles:
            return all(map(le, map(begins.get, operands, repeat(0)), places))
        terminators = kinds.translate(_ENDS)
        numbers = list(accumulate(terminators, initial=0))
        until = list(compress(ends, terminators))  # the names up to the end of each block
        by_name = list(chain.from_iterable(map(repeat, count(), map(sub, until, chain((0,), until)))))
        before = self.predecessors(roles, by_name)
        homes = dict(zip(self.results, compress(numbers, defining), strict=False))
        if before is None or not self.phis_fit(kinds, rows, ends, numbers, before, homes):
            return False
        in_order = list(map(le, map(begins.get, operands, repeat(0)), places))
        uses: Iterable[tuple[int, int]] = zip(
            map(homes.get, operands, repeat(0)), compress(by_name, which), strict=True
        )
        if not all(in_order):
            uses = list(uses)
            if any(home == block for (home, block), fine in zip(uses, in_order, strict=True) if not fine):
                return False
        pairs = [(home, block) for home, block in set(uses) if 0 < home != block]
        return _dominate(before, pairs) if pairs else True

    def predecessors(self, roles: bytes, by_name: list[int]) -> list[list[int]] | None:
        """The predecessors of all blocks; None if there is no block of some name, or if it is the first."""
        before: list[list[int]] = [[] for _ in self.blocks]
        known, which = dict(zip(self.blocks, range(len(self.blocks)), strict=True)), roles.translate(_TARGETS)
        targets = map(known.get, compress(self.found, which), repeat(0))
        for source, target in zip(compress(by_name, which), targets, strict=True):
            before[target].append(source)
        return None if before[0] else before

    def phis_fit(self, kinds: bytes, rows: list[bytes], ends: list[int], numbers: list[int],
                 before: list[list[int]], homes: dict[str, int]) -> bool:  # fmt: skip
        """Whether phis have the predecessors of their blocks, and values that are defined at their ends."""
        pairs: set[tuple[int, int]] = set()
        for line in compress(range(len(kinds)), kinds.translate(_PHIS)):
            row = rows[line]
            names = self.found[ends[line] - len(row) : ends[line]]
            sources = {self.blocks[one]: one for one in before[numbers[line]]}
            if sources.keys() != set(compress(names, row.translate(_SOURCES))):
                return False
            home = 0
            for role, name in zip(row, names, strict=True):
                if role == INCOMING:
                    home = homes.get(name, 0)
                elif home:
                    if home != sources.get(name, home):
                        pairs.add((home, sources[name]))
                    home = 0
        return not pairs or _dominate(before, pairs)

    def all_shapes(self) -> list[Shape] | None:
        """The shapes of all lines; None if there is none for one of them."""
        known = self.shapes.known
        shapes = list(map(known.get, self.lines))
        if all(shapes):
            return shapes  # type: ignore[return-value]
        text = self.text
        if "switch" in text:
            text = _SWITCH.sub(lambda found: found[0].replace("\n", JOINED), text)
        places = list(accumulate(map(len, text.split("\n")), initial=self.begin))
        if len(places) != len(self.lines) + 1:
            return None
        for number in [number for number, shape in enumerate(shapes) if shape is None]:
            line = self.lines[number]
            shape = known.get(line) or self.shapes.judge(line, places[number] + number)
            if shape is None:
                return None
            shapes[number] = shape
        return shapes  # type: ignore[return-value]


def _dominate(before: list[list[int]], pairs: Iterable[tuple[int, int]]) -> bool:
    """Whether in each pair of blocks the first comes before the second on all ways. before: the predecessors."""
    left = [pair for pair in pairs if not _leads_back(before, *pair)]
    if not left:
        return True
    tree = dominators_of(before)
    return all(comes_before(tree, home, block) for home, block in left)


def _leads_back(before: list[list[int]], home: int, block: int) -> bool:
    """Whether no way back from a block reaches the first one but through another one, found in a few steps."""
    if block == 0:
        return False
    seen, ahead = {home, block}, [block]
    for _ in range(_STEPS):
        if not ahead:
            return True
        for one in before[ahead.pop()]:
            if one == 0:
                return False
            if one not in seen:
                seen.add(one)
                ahead.append(one)
    return not ahead
