"""Debugging directives (11.5): sections and their values, `.file`, `.loc`, and the old `@@DWARF` lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ptxtools.diagnostics import Span
from ptxtools.ir.nodes import DataLine, Directive, File, Loc, Section
from ptxtools.isa import Need
from ptxtools.isa.directives import ADDITIONS, DIRECTIVES

from . import codes
from .availability import lack
from .context import Context

#: Inclusive bounds of the values of a section, by their type (11.5.2).
_RANGES = {
    "b8": (-128, 255),
    "b16": (-(2**15), 2**16 - 1),
    "b32": (-(2**31), 2**32 - 1),
    "b64": (-(2**63), 2**64 - 1),
}
#: Types that hold an address.
_WIDE = frozenset({"b32", "b64"})
#: Indices, lines and columns are 32-bit numbers.
_MOST = 2**32 - 1
#: From this version on, sections may contain everything.
_ALL_VALUES = (7, 5)
#: One line of a section: a label, or a type with its values.
_LINE = re.compile(
    r"//[^\n]*|/\*(?s:.*?)\*/|(?P<label>[\w$%]+)\s*:|\.(?P<type>b8|b16|b32|b64)\b(?P<values>(?:[^\n:}]|\n\s*(?![.\w$%}]))*)"
)


class Debugging:
    """The debugging directives of one module, in source order."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._files: dict[int, Span] = {}
        self._places: set[tuple[int, int, int]] = set()
        self._names: list[tuple[str, Span]] = []
        self._labels: set[str] = set()
        self._named: set[str] = set()
        self._spans: dict[int, list[Span]] = {}

    def file(self, item: File) -> None:
        """`.file`: a unique index; time stamp and size were added later."""
        context = self.context
        if item.timestamp is not None:
            context.require_addition("a time stamp in .file", item.span)
            if item.size is None:
                message = "a time stamp in .file without the file's size"
                context.tolerate(message, item.span, section="11.5.3", help=("write the size behind it",))
        if item.index in self._files:
            where = f"the first one is on line {context.source.line_of(self._files[item.index][0])}"
            message = f".file {item.index} is given twice"
            context.report(codes.REDECLARED, message, item.span, help=(where,), section="11.5.3")
        elif item.index > _MOST:
            self._too_large(item.index, item.span, "11.5.3")
        self._files.setdefault(item.index, item.span)

    def location(self, item: Loc) -> None:
        """`.loc`: 32-bit numbers; the location of inlined_at must occur in an earlier `.loc`."""
        place = (item.file, item.line, item.column)
        if max(place) > _MOST:
            self._too_large(max(place), item.span, "11.5.4")
        if item.inlined_at is not None:
            self.context.require_addition("inlined_at in .loc", item.span)
            if item.inlined_at not in self._places:
                shown = " ".join(map(str, item.inlined_at))
                message = f"no earlier .loc has the location {shown}, at which this one is inlined"
                self.context.report(codes.DIRECTIVE_VALUE, message, item.span, section="11.5.4")
        if item.function_name is not None:
            self._names.append((item.function_name, item.span))
        self._places.add(place)

    def sources(self, item: Directive) -> None:
        """Source text of an intermediate language: an earlier `.file` names each file of it."""
        self.context.require_directive(item.name, self.context.word(item.span, item.name))
        for number in item.args[1::3]:
            if number not in self._files:
                message = f"no earlier .file has the number {number}"
                self.context.report(codes.UNDECLARED, message, item.span, section="11.5.6", subjects=(str(number),))

    def section(self, section: Section) -> None:
        """A section: its values fit their types, and its labels are unique."""
        self._labels.add(section.name)
        if not self.context.require_directive(".section", self.context.word(section.span, ".section")):
            return
        for index, line in enumerate(section.lines):
            if line.type == "label":
                self._label(section, index, str(line.values[0]))
            else:
                self._values(section, index, line)

    def finish(self) -> None:
        """Checks that need the whole module: names that are not labels of any section."""
        for name, span in self._names:
            if name not in self._labels:
                message = f"'{name}' is not a label of a .section"
                self.context.report(
                    codes.UNDECLARED, message, self.context.word(span, name), section="11.5.4", subjects=(name,)
                )

    def dwarf(self, item: Directive) -> None:
        """`@@DWARF`: the predecessor of `.section`."""
        info = DIRECTIVES["@@dwarf"]
        assert info.deprecated is not None
        help = ("use a .section",)
        gone = Need((), info.deprecated, ())
        if self.context.refuse_removed("@@DWARF", gone, item.span, help=help, section=info.section):
            self.context.require_directive("@@dwarf", item.span)

    # --- values of sections -------------------------------------------------------------------------------------------

    def _label(self, section: Section, index: int, name: str) -> None:
        self._require("a label in a debug section", section, index)
        if name in self._labels:
            span = self._span(section, index, name)
            self.context.report(codes.REDECLARED, f"'{name}' is declared twice", span, section="11.5.2")
        self._labels.add(name)

    def _values(self, section: Section, index: int, line: DataLine) -> None:
        if line.type not in _RANGES or not line.values:  # only in a forged container
            message = f"a section contains .b8, .b16, .b32 and .b64 data, not .{line.type}"
            self.context.report(codes.DIRECTIVE_VALUE, message, self._span(section, index), section="11.5.2")
            return
        low, high = _RANGES[line.type]
        old = self.context.declared.version < _ALL_VALUES or self.context.gathered is not None
        try:
            if low <= min(line.values) and max(line.values) <= high and not old:  # type: ignore[operator]
                return
        except TypeError:  # names among them
            if line.type in _WIDE and not old and all(type(v) is str or low <= v <= high for v in line.values):  # type: ignore[operator]
                return
        for feature in self._features(line):
            self._require(feature, section, index)
        for value in line.values:
            if isinstance(value, str) and line.type not in _WIDE:
                message = f"'{value}' is an address: it needs .b32 or .b64, not .{line.type}"
            elif not isinstance(value, str) and not low <= value <= high:
                message = f"{value} does not fit .{line.type}, whose range is {low} to {high}"
            else:
                continue
            span = self._span(section, index, str(value))
            self.context.report(codes.DIRECTIVE_VALUE, message, span, section="11.5.2")

    def _features(self, line: DataLine) -> Iterator[str]:
        """Features of the line that early versions lack."""
        if line.type == "b16":
            yield ".b16 in a debug section"
        names = [value for value in line.values if isinstance(value, str)]
        if any(isinstance(value, int) and value < 0 for value in line.values):
            yield "a negative number in a debug section"
        if any("+" in name for name in names):
            yield "a label with an offset in a debug section"
        if any("-" in name for name in names):
            yield "a difference of labels in a debug section"

    def _require(self, feature: str, section: Section, index: int) -> None:
        """Require an addition to sections; each is reported once."""
        if feature not in self._named and not self._provided(feature):
            self._named.add(feature)
            self.context.require_addition(feature, self._span(section, index))

    def _provided(self, feature: str) -> bool:
        if self.context.gathered is not None:
            return False
        info = ADDITIONS[feature]
        return lack(feature, (Need((), info.ptx, (info.target,)),), self.context.declared) is None

    def _span(self, section: Section, index: int, word: str = "") -> Span:
        """The span of line `index` of a section, or of a word in it; lines do not store their positions."""
        text = self.context.text
        spans = self._spans.get(id(section))
        if spans is None:
            begin, end = section.span
            found = _LINE.finditer(text, text.find("{", begin, end) + 1, end)
            spans = [f.span("label") if f["label"] else (f.start(), f.end("values")) for f in found if f.lastgroup]
            self._spans[id(section)] = spans
        if index >= len(spans):
            return section.span
        start, end = spans[index]
        line = (start, start + len(text[start:end].rstrip()))
        return self.context.word(line, word) if word else line

    def _too_large(self, number: int, span: Span, section: str) -> None:
        message = f"{number} is too large: indices, lines and columns have 32 bits"
        self.context.report(codes.DIRECTIVE_VALUE, message, self.context.word(span, str(number)), section=section)
