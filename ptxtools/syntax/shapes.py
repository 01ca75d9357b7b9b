"""The shape cache: statements like ones seen before, without the grammar.

Real PTX repeats itself. One regular expression cuts the text into statements; an operand, or any other unit, whose
shape (its text with names, numbers and strings blanked) was parsed before is rebuilt from a `templates.Template`.
PLY parses what is new, and everything that is wrong; both ways give the same nodes and spans.

Operand nodes, guards and opcode texts are shared: `%r1` is one `Name` in the whole module. Do not change them in place.
"""

from __future__ import annotations

import contextlib
import re
from _thread import _local  # threading takes half a millisecond to load
from collections.abc import Callable
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from ptxtools.ir import (
    DataLine,
    Guard,
    Immediate,
    Initializer,
    Instruction,
    Label,
    Layout,
    Loc,
    Name,
    Operand,
    Pragma,
    Variable,
)
from ptxtools.ir.layout import Extent, guarded, layout_of
from ptxtools.records import fields

from . import templates
from .constants import ConstantError
from .faults import Fault
from .limits import MOST_BRACKETS

if TYPE_CHECKING:
    from .units import UnitParser

_TRIVIA = r"(?:\s++|//[^\n]*+|/\*(?s:.*?)\*/)*+"
_NAME = r"(?:[A-Za-z][\w$]*+|[_$%][\w$]++|_)"
_COUNT = r"(?:0|[1-9]\d{0,17})(?![\w$.])"
#: Tokens that would make the next line part of an open-ended directive.
_NOT_LINKED = rf'(?!{_TRIVIA}(?:[,+\-\d"]|\.\d))'

#: An instruction other than a call; a source location; a label. Anything else is left to `parse`.
_STATEMENT = re.compile(
    rf"""{_TRIVIA}(?:
        (?:(@!?{_NAME})\s++)?+ (?!call\b) ([a-z]\w*+(?:\.\w++(?:::\w++)*+)*+(?=[\s;])\s*+) ([^;"/\#@:]*+) ;
      | \.loc[ \t]++({_COUNT})[ \t]++({_COUNT})[ \t]++({_COUNT}) {_NOT_LINKED}
      | ({_NAME}):(?!:) (?!{_TRIVIA}\.(?:branchtargets|calltargets|callprototype)\b)
    )""",
    re.VERBOSE | re.ASCII,
)
_INSTRUCTION, _LOC, _LABEL = 3, 6, 7  # the last group of each alternative

_PIECE = r"((?:[^,{}\[\]]++|\{[^{}\[\]]*+\}|\[(?:[^{}\[\]]++|\{[^{}\[\]]*+\})*+\])+)"
#: The operands of a statement with brackets: pieces between commas outside of them.
_PIECES = re.compile(_PIECE, re.ASCII)
#: What may stand around an operand.
_BLANKS = " \t\r\n\f\v"

#: Units other than instructions, each up to its end.
_UNIT = re.compile(
    rf"""(?:\.version\s++\d++\.|\.address_size\s++)\d++(?![\w$.]) {_NOT_LINKED}
      | \.target\s++{_NAME}(?:\s*,\s*{_NAME})*+(?![\w$.]) {_NOT_LINKED}
      | \.file\s++{_COUNT}\s++"[^"]*" {_NOT_LINKED}
      | \.loc\s++{_COUNT}\s++{_COUNT}\s++{_COUNT}\s*+,\s*+function_name\s++\.?{_NAME}(?:\s*\+\s*{_COUNT})?+
        \s*,\s*inlined_at\s++{_COUNT}\s++{_COUNT}\s++{_COUNT} {_NOT_LINKED}
      | \.section\s++\.\w++\s*+\{{
      | (?:\.(?:visible|extern|weak|common)\s++)?+\.(?:entry|func)\b[^;{{/"\#@]*+[;{{]
      | \.(?:reg|global|const|shared|local|param|tex|visible|extern|weak|common|pragma|alias)\b[^;/"\#@]*+
        (?:"[^"]*"[^;/"\#@]*+)*+;
      | {_NAME}:\s*+\.(?:branchtargets|calltargets|callprototype)\b[^;{{}}/"\#@]*+;
      | (?:@!?{_NAME}\s++)?+call(?:\.\w++)*+[^;{{}}/"\#@\[\].:]*+;
    """,
    re.VERBOSE | re.ASCII,
)
#: A declaration of registers, or a pragma.
_REPEATED = re.compile(rf'{_TRIVIA}(\.(?:reg|pragma)\b[^;/"\#@]*+(?:"[^"]*"[^;/"\#@]*+)*+;)', re.ASCII)
#: Longer units go to PLY, except that the numbers of a flat initialiser do not count.
_MOST_UNIT = 1 << 14
_MOST_HOLES = 400

#: A line of section data, or a label there.
_DATA = re.compile(
    rf"""{_TRIVIA}(?:
        \.(b8|b16|b32|b64)[ \t]++([-+\w$.]++(?:[ \t]*+,\s*+[-+\w$.]++)*+)(?!:) {_NOT_LINKED}
      | ({_NAME}):(?!:) (?!{_TRIVIA}\.(?:branchtargets|calltargets|callprototype)\b)
    )""",
    re.VERBOSE | re.ASCII,
)


#: A word in a numeric initialiser.
_LIST_WORD = re.compile(r"[{},]|[^\s{},]+")


class _NoShapeError(Exception):
    """This text needs the grammar."""


class _SpacingError(Exception):
    """This is no operand alone: blanks or commas are not where they were last."""


class Names(dict[str, Name]):
    """One `Name` per text. older: those of texts that were read before."""

    def __init__(self) -> None:
        super().__init__()
        self.older: dict[str, Name] = {}

    def __missing__(self, text: str) -> Name:
        name = self[text] = self.older.pop(text) if text in self.older else Name(text)
        return name


class _Guards(dict[str, Guard]):
    def __missing__(self, text: str) -> Guard:
        guard = self[text] = Guard(text.lstrip("@!"), text[1] == "!")
        return guard


class _Heads(dict[str, tuple[str, Layout]]):
    """Opcodes by their text and the blanks behind it, with the layout of statements that have the same text between all
    their operands."""

    def __init__(self, separator: str) -> None:
        super().__init__()
        self.separator = separator
        self.pieces = re.compile(f"(?:{re.escape(separator)})?+{_PIECE}", re.ASCII)

    def split(self, rest: str) -> list[str]:
        """Operands with vectors among them."""
        pieces = self.pieces.findall(rest)
        if self.separator.join(pieces) != rest:
            raise _SpacingError
        return pieces

    def __missing__(self, text: str) -> tuple[str, Layout]:
        opcode = text.rstrip(_BLANKS)
        head = self[text] = opcode, Layout(0, len(text) - len(opcode), len(self.separator))
        return head


class _Separators(dict[str, _Heads]):
    def __missing__(self, separator: str) -> _Heads:
        heads = self[separator] = _Heads(separator)
        return heads


class _Moved(dict[tuple[Layout, int], Layout]):
    """Layouts behind a guard: by those without one, and how far they are moved by it."""

    def __missing__(self, key: tuple[Layout, int]) -> Layout:
        layout, distance = key
        moved = self[key] = guarded(layout, 0, distance)
        return moved


class _Operands(dict[str, Operand]):
    """Operands by their text. older: those of texts that were read before."""

    def __init__(self, shapes: ShapeParser) -> None:
        super().__init__()
        self._shapes = shapes
        self.older: dict[str, Operand] = {}

    def __missing__(self, text: str) -> Operand:
        if text in self.older:
            operand = self[text] = self.older.pop(text)
            return operand
        if not _PIECES.fullmatch(text) or text != text.strip(_BLANKS):
            raise _SpacingError
        operand = self[text] = self._shapes.operand(text)
        return operand


class _Repeats(dict[str, Callable[[int], Variable | Pragma]]):
    """By the text of a declaration of registers or of a pragma: what makes its node where it begins."""

    def note(self, text: str, node: Any, begin: int) -> None:
        """Remember what was read at `begin`, if it can be made without being read."""
        if len(self) >= _MOST_REPEATS or len(text) > _MOST_REPEATED:
            return
        if type(node) is Pragma:
            strings, (start, end) = node.strings, node.span
            self[text] = lambda at: Pragma(strings, (start - begin + at, end - begin + at))
        elif type(node) is list and len(node) == 1 and node[0].space == "reg" and node[0].name and not node[0].init:
            self[text] = _made_at(node[0], begin)


def _made_at(variable: Variable, begin: int) -> Callable[[int], Variable]:
    """What makes the same variable elsewhere."""
    (start, end), (first, last) = variable.span, variable.name_span
    values = [getattr(variable, one.name) for one in fields(Variable) if one.compare]
    kind: type[Any] = Variable
    start, end, first, last = start - begin, end - begin, first - begin, last - begin
    return lambda at: kind(*values, (at + start, at + end), (at + first, at + last))


class _DataValues(dict[str, "int | str"]):
    """Values of section data by their text."""

    def __init__(self, shapes: ShapeParser) -> None:
        super().__init__()
        self._shapes = shapes

    def __missing__(self, text: str) -> int | str:
        values: tuple[int | str, ...] = self._shapes.sample(f".b8 {text}", DataLine).values
        if len(values) != 1:
            raise _NoShapeError
        value = self[text] = values[0]
        return value


#: The parser that each thread uses again; from how many operands on it forgets those of older texts, and all of them.
_kept = _local()
_MOST_OPERANDS, _FAR_TOO_MANY = 1 << 15, 1 << 18
#: How many repeated declarations and pragmas are remembered, and their length.
_MOST_REPEATS, _MOST_REPEATED = 1 << 10, 80


class ShapeParser:
    """Reads units and statements for `reader.Reader`, for one module after the other."""

    def __init__(self) -> None:
        self._remember_nothing()
        #: What stood between the operands of the last statement that had other blanks than those before it.
        self._separator = ", "
        self._store = templates.store()
        self._ply: UnitParser | None = None
        # In text without `;`, each line would search for one again; so the position is remembered.
        self._slow_until = 0

    def _remember_nothing(self) -> None:
        self.names = Names()
        self._operands = _Operands(self)
        self._data_values = _DataValues(self)
        self._guards = _Guards()
        self._moved = _Moved()
        self._layouts: dict[Layout, Layout] = {}
        self._extents: dict[Extent, Extent] = {}
        self._heads = _Separators()
        self._repeats = _Repeats()

    @staticmethod
    def again() -> ShapeParser:
        """The parser of this thread, which shares operands between the modules that it reads; until `close`, another
        one if it is in use."""
        parser: ShapeParser | None = getattr(_kept, "parser", None)
        _kept.parser = None
        return parser if parser is not None and parser._store is templates.store() else ShapeParser()

    @property
    def grammar(self) -> UnitParser:
        """The underlying parser; created on first use."""
        if self._ply is None:
            from .units import shared_parser

            self._ply = shared_parser()
        return self._ply

    # --- statements ---------------------------------------------------------------------------------------------------

    def statements(self, text: str, begin: int, items: list[Any], *, inside: bool = True) -> int:
        """Read plain statements into `items`; returns the position of the next unit. inside: of a body, where units
        may be declarations as well."""
        if begin < self._slow_until:
            return begin
        match, add = _STATEMENT.match, items.append
        guards, moved, operand = self._guards, self._moved, self._operands.__getitem__
        separator = self._separator
        heads = self._heads[separator]
        at = begin
        while True:
            found = match(text, at)
            if found is None:
                if not inside or (found := _REPEATED.match(text, at)) is None:
                    return at
                make = self._repeats.get(found[1])
                if make is None:
                    return at
                add(make(found.start(1)))
                at = found.end()
                continue
            kind, after = found.lastindex, found.end()
            if kind == _INSTRUCTION:
                guard, head, rest = found.group(1, 2, 3)
                opcode, layout = heads[head]
                last = after - 1
                try:
                    try:
                        if "{" in rest:
                            operands = tuple(map(operand, heads.split(rest)))
                        elif rest:
                            operands = tuple(map(operand, rest.split(separator)))
                        else:
                            operands = ()
                            last = found.start(2) + len(opcode)
                    except _SpacingError:
                        operands, layout, last = self._spaced(found)
                        separator = self._separator
                        heads = self._heads[separator]
                except _NoShapeError:
                    self._slow_until = after
                    return at
                if guard is None:
                    add(Instruction(opcode, operands, None, (found.start(2), last), layout))
                else:
                    first = found.start(1)
                    layout = moved[layout, found.start(2) - first]
                    add(Instruction(opcode, operands, guards[guard], (first, last), layout))
            elif kind == _LABEL:
                add(Label(found[7], found.span(7)))
            else:
                file, line, column = found.group(4, 5, 6)
                span = (found.start(4) - _gap(text, found.start(4)), found.end(6))
                add(Loc(int(file), int(line), int(column), None, 0, None, span))
            at = after

    def _spaced(self, found: re.Match[str]) -> tuple[tuple[Operand, ...], Layout, int]:
        """Operands, layout from the opcode on, and end of a statement whose blanks are not like those before."""
        rest, begin, opcode = found[3], found.start(3), found[2].rstrip(_BLANKS)
        pieces = _PIECES.findall(rest)
        if ",".join(pieces) != rest:
            raise _NoShapeError
        operands, spans, at = [], [], begin
        for piece in pieces:
            text = piece.strip(_BLANKS)
            if not text:
                raise _NoShapeError
            first = at + piece.index(text)
            operands.append(self._operands[text])
            spans.append((first, first + len(text)))
            at += len(piece) + 1
        if len(spans) > 1:
            separator = rest[spans[0][1] - begin : spans[1][0] - begin]
            if separator.join(map(str.strip, pieces)) == rest:
                self._separator = separator
        start = found.start(2)
        layout = layout_of(start, [(start, start + len(opcode))], spans)
        return tuple(operands), self.layout(layout), spans[-1][1]

    def layout(self, layout: Layout) -> Layout:
        """One for all that are alike."""
        return self._layouts.setdefault(layout, layout)

    def extent(self, numbers: list[int]) -> Extent:
        """One for all that are alike."""
        extent = tuple(numbers)
        return self._extents.setdefault(extent, extent)

    def data_lines(self, text: str, begin: int, lines: list[DataLine]) -> int:
        """Read plain lines of section data; returns the position of the next unit."""
        at = begin
        while found := _DATA.match(text, at):
            if found.lastindex == 3:
                lines.append(DataLine("label", (found[3],)))
            else:
                try:
                    values = tuple(map(self._data_values.__getitem__, map(str.strip, found[2].split(","))))
                except _NoShapeError:
                    return at
                lines.append(DataLine(found[1], values))
            at = found.end()
        return at

    def operand(self, text: str) -> Operand:
        """An operand from its text, which has no blanks around it."""
        operand = self._operand(text)
        if type(operand) is Immediate:
            operand.extent = self.extent([len(text)])
        return operand

    def _operand(self, text: str) -> Operand:
        key, parts = templates.shape_of_operand(text)
        template = self._store.operands.get(key) if key else None
        if key and template is None and len(parts) < 2 * _MOST_HOLES and self._store.is_new(key, self._store.operands):
            template = self._store.operands[key] = self._operand_template(parts)
        if template is not None:
            starts = tuple(accumulate(map(len, parts), initial=0))
            with contextlib.suppress(ConstantError):
                return template.build(parts[1::2], starts, self)  # type: ignore[no-any-return]
            raise _NoShapeError
        return self._sample_operand(text)

    def _operand_template(self, parts: list[str]) -> templates.Template | None:
        try:
            return templates.Template.of(self._sample_operand(templates.placeholder(parts)), parts)
        except (_NoShapeError, templates.NotRegularError):
            return None

    def _sample_operand(self, text: str) -> Operand:
        instruction = self.sample(f"x {text};", Instruction)
        if instruction.opcode != "x" or len(instruction.operands) != 1:
            raise _NoShapeError
        return instruction.operands[0]  # type: ignore[no-any-return]

    def sample(self, text: str, kind: type) -> Any:
        """Parse a text of ours, which must give one node of this kind."""
        try:
            node, end = self.grammar.parse(text, 0)
        except Fault:
            raise _NoShapeError from None
        if type(node) is not kind or end != len(text):
            raise _NoShapeError
        return node

    # --- other units --------------------------------------------------------------------------------------------------

    def parse(self, text: str, begin: int) -> tuple[Any, int]:
        """The unit at `begin` and its end. Raises `Fault`."""
        found = _UNIT.match(text, begin)
        if found is None:
            return self.grammar.parse(text, begin)
        unit, end = found[0], found.end()
        key, parts = templates.shape_of_unit(unit)
        if key is None or len(parts) > 2 * _MOST_HOLES or len(key) > _MOST_UNIT:
            return self.grammar.parse(text, begin)
        units = self._store.units
        if self._store.is_new(key, units):
            units[key] = self._unit_template(parts)
        template = units.get(key)
        if template is not None:
            with contextlib.suppress(ConstantError, _NoShapeError):
                node = template.build(parts[1::2], tuple(accumulate(map(len, parts), initial=begin)), self)
                if unit.startswith((".reg", ".pragma")):
                    self._repeats.note(unit, node, begin)
                return node, end
        return self.grammar.parse(text, begin)

    def _unit_template(self, parts: list[str]) -> templates.Template | None:
        blank = templates.placeholder(parts)
        try:
            node, end = self.grammar.parse(blank, 0)
            return templates.Template.of(node, parts) if end == len(blank) else None
        except (Fault, templates.NotRegularError):
            return None

    def numbers(self, text: str) -> list[Initializer]:
        """An initialiser of numbers in (nested) braces, from its text."""
        outer: list[Initializer] = []
        lists, after_item = [outer], False
        for word in _LIST_WORD.findall(text):
            if word == "{" and not after_item and len(lists) <= MOST_BRACKETS:
                inner: list[Initializer] = []
                lists[-1].append(inner)
                lists.append(inner)
            elif word == "}" and (after_item or not lists[-1]) and len(lists) > 1:
                lists.pop()
                after_item = True
            elif word == "," and after_item and len(lists) > 1:
                after_item = False
            elif not after_item and word[-1] not in "{},":
                lists[-1].append(self._number(word))
                after_item = True
            else:
                raise _NoShapeError
        if len(lists) != 1 or len(outer) != 1 or not isinstance(outer[0], list):
            raise _NoShapeError
        return outer[0]

    def _number(self, text: str) -> Immediate:
        operand = self._operands[text]
        if type(operand) is not Immediate:
            raise _NoShapeError
        return operand

    def close(self) -> None:
        """Save new shapes for the next process, and be ready for another text."""
        self._store.save()
        self._slow_until = 0
        count = len(self._operands) + len(self._data_values)
        if count > _FAR_TOO_MANY:
            del self._operands, self._data_values  # which know this parser: a cycle
            return
        if count > _MOST_OPERANDS:
            self._forget()
        _kept.parser = self

    def _forget(self) -> None:
        """Forget what the next text does not have: from now on, what is known is taken when it is met."""
        older, names = self._operands, self.names
        older.older, names.older = {}, {}
        self._remember_nothing()
        self._operands.older, self.names.older = older, names


def _gap(text: str, at: int) -> int:
    """How far before `at` the word `.loc` begins."""
    return at - text.rindex(".loc", 0, at)
