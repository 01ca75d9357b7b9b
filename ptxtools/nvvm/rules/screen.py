"""Passes over functions without reading them: their lines are judged by shape, and names are held against each other.

That takes a tenth of the time of a parse: what is done for each line and each name is done by `map` and its like, whole
columns at once. A function that is not passed need not be wrong: it is read, and held against the rules as usual, with
the same findings (`tests/nvvm/test_screen.py`).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import accumulate, chain, compress, count, repeat
from operator import attrgetter, ge, itemgetter, lt
from typing import Any

from ptxtools.diagnostics import Diagnostic

from ..assembly.nodes import Function
from ..assembly.tokens import unquoted
from ..compiled import code_for
from .context import Context
from .dominance import comes_before, dominators_in_order, dominators_of
from .shape import (
    BLANK,
    BRANCH,
    CLOSES,
    END,
    INCOMING,
    JOINED,
    LABEL,
    MENTIONED,
    MERGES,
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
)
from .shapes import Shapes, has_prefix, may_be_used_for

_COMMENT = re.compile(r";[^\n]*")
_WITH_STRINGS = re.compile(r"^([^\"\n;]*);[^\n]*", re.M)
_SWITCH = re.compile(r"switch(?<!\wswitch)\b[^\n]*\[[^\]]*\]")
_NUMBERED = re.compile(r"%\d[^%]*")
_DIGITS = frozenset("0123456789")
#: Types without a prefix that tells them from values: with more, each name would cost too much.
_MOST_TYPES = 100

_name_of = attrgetter("name")


def _flags(*codes: int) -> bytes:
    """A table for `translate`: 1 for these, 0 for others."""
    return bytes(code in codes for code in range(256))


_LABELS, _NAMES, _PHIS, _RETURNS = _flags(LABEL), _flags(PHI, NAMED, LABEL), _flags(PHI), _flags(RETURN)
_RESULTS, _VALUES, _OPERANDS, _INCOMINGS = _flags(RESULT), _flags(OPERAND, INCOMING), _flags(OPERAND), _flags(INCOMING)
_NODES, _TARGETS, _SOURCES, _MENTIONED = _flags(NODE), _flags(TARGET), _flags(SOURCE), _flags(MENTIONED)
_NO_STEPS = bytes({*range(256)} - {OPERAND, RESULT})
_NO_VALUES = bytes({*range(256)} - {OPERAND, INCOMING})
#: In the place of a terminator: that a block without a label begins.
_OPENS = b"\x09"
_OPENING, _WRITTEN, _DEFINING = _flags(*_OPENS), _flags(PHI, NAMED), _flags(PHI, NAMED, UNNAMED)
_PLAIN = bytes((PLAIN,))
_RESULT, _CLOSES = bytes((RESULT,)), bytes((CLOSES,))


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
        #: Whether there are names in quotes.
        self.quotes = '%"' in context.source.text
        #: The names of unnamed values.
        self._numbers = [f"%{number}" for number in range(64)]
        #: What is alike in bodies that have been passed, and what symbols stand for.
        self._passed: set[tuple[object, ...] | None] = set()
        #: The first one of each size, until another one has it.
        self._first: dict[tuple[object, ...], Function | None] = {}

    def without_fault(self, functions: Sequence[Function], size: int) -> list[list[Diagnostic] | None]:
        """For each function the findings about single lines, if machine code finds that nothing else is wrong with it;
        empty if it is not asked. size: of all bodies."""
        found = code_for(size)
        if self._shapes is None or found is None:
            return []
        from .faultless import faultless

        return faultless(found, self.context, self._shapes, functions)

    def passes(self, function: Function) -> bool:
        """Whether the body of a function, which has not been read, is without fault, but for findings about single
        lines, which the context has then."""
        found = self.context.found
        before = len(found)
        if function.body is None or self._shapes is None:
            return False
        body = _Body(self, self._shapes, function)
        size = function.type, len(body.found), body.code.count("\n")
        alike = None
        if size in self._first:
            first = self._first[size]
            if first is not None:
                self._first[size] = None
                self._passed.add(self._alike(_Body(self, self._shapes, first)))
            alike = self._alike(body)
            if alike is not None and alike in self._passed:
                return self.nodes.issuperset(body.nodes())
        if body.passes() and not self._shapes.full:
            if len(found) == before and body.is_known():
                if size not in self._first:
                    self._first[size] = function
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
        symbols = map(body.shapes.stands_for, parts[1::2])
        names = [name for name in body.found if name[1] != "!"] if body.has_nodes else body.found
        head = [param.name for param in body.function.params]
        return body.function.type, "@".join(parts[::2]), *symbols, *head, *names

    def prepare(self) -> None:
        """Make what all functions need."""
        self.nodes  # noqa: B018 - it is kept

    @cached_property
    def nodes(self) -> frozenset[str]:
        """The nodes of metadata that are defined, as bodies have them."""
        return frozenset([f"%{name}" for name in self.context.module.metadata])

    def numbers(self, count: int) -> list[str]:
        while len(self._numbers) < count:
            self._numbers.append(f"%{len(self._numbers)}")
        return self._numbers


class _Body:
    """One body. found: the names in its lines, in order; code: the lines without them; lines: one by one; most: numbers
    that the body needs; blocks: the names of blocks; results: those of instructions."""

    def __init__(self, screen: Screen, shapes: Shapes, function: Function) -> None:
        begin, end = function.body or (0, 0)
        self.function, self.begin = function, begin
        self.context, self.shapes = screen.context, shapes
        self.text = screen.context.source.text[begin:end]
        code = self.text
        if ";" in code:
            code = _COMMENT.sub("", code) if '"' not in code else _WITH_STRINGS.sub(r"\1", code)
        code = _joined(code)
        self.found, self.code = shapes.split(code)
        if screen.quotes:
            self.found = [unquoted(name) if name[1] == '"' else name for name in self.found]
        self.screen, self.has_nodes = screen, "!" in code
        self.blocks: list[str] = []
        self.results: list[str] = []

    def nodes(self) -> list[str]:
        return [name for name in self.found if name[1] == "!"] if self.has_nodes else []

    def is_known(self) -> bool:
        """Whether all lines are known to be without fault, whatever node of metadata they name."""
        return self.shapes.particular.isdisjoint(self.indices)

    def passes(self) -> bool:
        self.lines = self.code.split("\n")
        self.most = len(self.lines) + len(self.function.params) + 2
        self.numbers, self.next = self.screen.numbers(2 * self.most + 1), 0
        numbers = self.all_shapes()
        if numbers is None:
            return False
        self.indices, self.column, columns = numbers, _picked(numbers), self.shapes.columns
        self.kinds = kinds = bytes(self.column(columns.kind))
        code = kinds.translate(None, _BLANKS)
        if not _BLOCKS.fullmatch(code):
            return False
        self.rows = self.column(columns.roles)
        self.roles = b"".join(self.rows)
        params = self.function.params
        for param in params:
            param.name = param.name or self.numbers[self.next]
            if not self.counts(param.name):
                return False
        entry, plain = code[0] != LABEL, UNNAMED not in kinds and not _BEGINS_UNNAMED.search(code)
        if not (self.names(entry) if plain else self.names_in_order(code) or self.names_one_by_one(entry)):
            return False
        #: The place of each value among all, those of parameters first.
        self.values = dict(zip(chain(map(_name_of, params), self.results), count(), strict=False))
        if len(self.values) != len(params) + len(self.results) or not self.values.keys().isdisjoint(self.blocks):
            return False
        return self.fits() and self.flows()

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

    def names(self, entry: bool) -> bool:
        """Name blocks and results. Whether numbers are in order. entry: whether the first block has no label."""
        self.results = list(compress(self.found, self.roles.translate(_RESULTS)))
        if entry:
            self.blocks.append(self.numbers[self.next])
            self.next += 1
        labels = self.shapes.labels
        self.blocks += [labels[one] for one in compress(self.lines, self.kinds.translate(_LABELS))]
        named = "".join(self.results)
        if _NUMBERED.search("".join(self.blocks[entry:])):
            results = iter(self.results)
            named_lines = compress(self.lines, self.kinds.translate(_NAMES))
            named = "".join([labels.get(line) or next(results) for line in named_lines])
        order = _NUMBERED.findall(named)
        return order == self.numbers[self.next : self.next + len(order)] or all(map(self.counts, order))

    def names_in_order(self, code: bytes) -> bool:
        """As `names`, where no block has a label, and where all that is written are numbers in order; False if that is
        not so. code: the kinds of lines that are not blank."""
        if LABEL in code:
            return False
        for end in (BRANCH, RETURN, END):
            code = code.replace(bytes((end,)), _OPENS)
        defined = (_OPENS + code[:-1]).translate(None, _PLAIN)
        numbers = self.numbers[self.next : self.next + len(defined)]
        written = compress(numbers, defined.translate(_WRITTEN))
        if list(written) != list(compress(self.found, self.roles.translate(_RESULTS))):
            return False
        self.blocks += compress(numbers, defined.translate(_OPENING))
        self.results = list(compress(numbers, defined.translate(_DEFINING)))
        self.next += len(defined)
        return True

    def names_one_by_one(self, entry: bool) -> bool:
        """As `names`, where numbers are not written: of blocks behind the first, or of results."""
        results, open_ = compress(self.found, self.roles.translate(_RESULTS)), False
        for kind, line in zip(self.kinds, self.lines, strict=True):
            if kind == BLANK:
                continue
            if not open_:
                self.blocks.append(self.shapes.labels.get(line) or self.numbers[self.next])
                if not self.counts(self.blocks[-1]):
                    return False
            open_ = kind not in (BRANCH, RETURN, END)
            if kind in (PHI, NAMED, UNNAMED):
                self.results.append(self.numbers[self.next] if kind == UNNAMED else next(results))
                if not self.counts(self.results[-1]):
                    return False
        return True

    def fits(self) -> bool:
        """Whether names are defined, with the types that their uses have, and whether what is returned fits."""
        roles, columns = self.roles, self.shapes.columns
        names = list(compress(self.found, roles.translate(_VALUES)))
        try:
            self.used = _picked(names)(self.values)
        except KeyError:
            return False
        types = [self.shapes.character(param.type) for param in self.function.params]
        types += "".join(self.column(columns.result))
        if "".join(_picked(self.used)(types)) != "".join(self.column(columns.types)):
            return False
        if NODE in roles and not self.screen.nodes.issuperset(compress(self.found, roles.translate(_NODES))):
            return False
        if MENTIONED in roles and not self.values.keys() >= set(compress(self.found, roles.translate(_MENTIONED))):
            return False
        result, returns = self.function.result, compress(self.indices, self.kinds.translate(_RETURNS))
        return all(columns.given[one] is result for one in returns)

    def flows(self) -> bool:
        """Whether branches have targets, phis their predecessors, and uses their definitions before them."""
        roles, params = self.roles, len(self.function.params)
        # What happens, in order: a result is there behind the uses in its line.
        events = b"".join(self.column(self.shapes.columns.events))
        used: Sequence[int] = self.used
        if INCOMING in roles:
            used = list(compress(self.used, roles.translate(None, _NO_VALUES).translate(_OPERANDS)))
        steps = events.translate(None, _NO_STEPS).split(_RESULT)

        def there() -> Iterator[int]:
            """How many values are defined before each use."""
            return chain.from_iterable(map(repeat, count(params), map(len, steps)))

        fine = all(map(lt, used, there()))
        if len(self.blocks) == 1 and TARGET not in roles and SOURCE not in roles:
            return fine
        parts = events.split(_CLOSES)
        del parts[-1]
        before = self.predecessors(parts)
        # The values of a block are those from its first up to the next block's first.
        firsts = list(accumulate(_counts(parts, RESULT), initial=params))
        if before is None or not self.phis_fit(parts, before, firsts):
            return False
        uses = partial(_numbered, parts, OPERAND)
        if not fine:
            early = compress(zip(used, uses(), strict=True), map(ge, used, there()))
            if any(firsts[block] <= one < firsts[block + 1] for one, block in early):
                return False
            late = {(one, block) for one, block in zip(used, uses(), strict=True) if firsts[block + 1] <= one}
        # Values of the first block are there in all others.
        begins = chain.from_iterable(map(repeat, firsts, _counts(parts, OPERAND)))
        before_it = compress(zip(used, uses(), strict=True), map(lt, used, begins))
        apart = {(one, block) for one, block in before_it if one >= firsts[1]}
        if not fine:
            apart |= late
        return _dominate(before, {(bisect_right(firsts, one) - 1, block) for one, block in apart})

    def predecessors(self, parts: list[bytes]) -> list[list[int]] | None:
        """The predecessors of all blocks; None if there is no block of some name, or if it is the first. parts: the
        events of each."""
        before: list[list[int]] = [[] for _ in parts]
        known = dict(zip(self.blocks, count(), strict=False))
        targets = map(known.get, compress(self.found, self.roles.translate(_TARGETS)), repeat(0))
        for source, target in zip(_numbered(parts, TARGET), targets, strict=True):
            before[target].append(source)
        return None if before[0] else before

    def phis_fit(self, parts: list[bytes], before: list[list[int]], firsts: list[int]) -> bool:
        """Whether phis have the predecessors of their blocks, and values that are defined at their ends. firsts: of the
        values of each block, the first."""
        if PHI not in self.kinds:
            return True
        sources, at, last, wanted = list(compress(self.found, self.roles.translate(_SOURCES))), 0, -1, set[str]()
        fitting: list[str] = []  # sources of an earlier phi of the block
        rows = compress(self.rows, self.kinds.translate(_PHIS))
        for number, row in zip(_numbered(parts, MERGES), rows, strict=True):
            if number != last:
                wanted, last, fitting = {self.blocks[one] for one in before[number]}, number, []
            own = sources[at : at + row.count(SOURCE)]
            if own != fitting and wanted != set(own):
                return False
            at, fitting = at + len(own), own
        known = dict(zip(self.blocks, count(), strict=False))
        values = compress(self.used, self.roles.translate(None, _NO_VALUES).translate(_INCOMINGS))
        behind = compress(self.found[1:], self.roles.translate(_INCOMINGS))
        apart = {(one, known[source]) for one, source in set(zip(values, behind, strict=True)) if one >= firsts[1]}
        pairs = {(bisect_right(firsts, one) - 1, source) for one, source in apart}
        return _dominate(before, {(home, source) for home, source in pairs if home != source})

    def all_shapes(self) -> list[int] | None:
        """The numbers of the shapes of all lines; None if there is none for one of them."""
        known, lines = self.shapes.known, self.lines
        numbers = list(map(known.get, lines))
        if None in numbers:
            places = [at for at, number in enumerate(numbers) if number is None]
            self.shapes.look_at([lines[at] for at in places])
            for at in places:
                if lines[at] not in known:  # what was judged meanwhile may say more
                    self.shapes.look_at([lines[at]])
                number = known.get(lines[at])
                if number is None:
                    number = self.shapes.judge(lines[at], partial(self.begin_of, at))
                    if number is None:
                        return None
                numbers[at] = number
        return numbers  # type: ignore[return-value]

    def begin_of(self, line: int) -> int:
        """Where a line begins in the text; -1 if that is not known."""
        ends = self.ends
        return self.begin + line + (ends[line - 1] if line else 0) if line < len(ends) else -1

    @cached_property
    def ends(self) -> list[int]:
        """Where the lines of the text end, if only what is in them is counted."""
        return list(accumulate(map(len, _joined(self.text).split("\n"))))


def _joined(text: str) -> str:
    """A text with each `switch` in one line."""
    return _SWITCH.sub(lambda found: found[0].replace("\n", JOINED), text) if "switch" in text else text


def _picked(keys: Sequence[Any]) -> Callable[[Any], Sequence[Any]]:
    """What gives the values of keys (or places), in their order. It raises KeyError for one that is not there."""
    return itemgetter(*keys) if len(keys) > 1 else lambda values: tuple([values[key] for key in keys])


def _counts(parts: list[bytes], event: int) -> list[int]:
    """How many such events are in each part."""
    return [part.count(event) for part in parts]


def _numbered(parts: list[bytes], event: int) -> Iterator[int]:
    """For each such event, the number of the part that it is in."""
    return chain.from_iterable(map(repeat, count(), _counts(parts, event)))


def _dominate(before: list[list[int]], pairs: Iterable[tuple[int, int]]) -> bool:
    """Whether in each pair of different blocks the first, which is not the entry, comes before the second on all ways.
    before: the predecessors."""
    left = [(home, block) for home, block in pairs if before[block] != [home]]
    if not left:
        return True
    known = dominators_in_order(before)
    if known is not None:
        return all(known[block] >> home & 1 for home, block in left)
    tree = dominators_of(before)
    return all(comes_before(tree, home, block) for home, block in left)
