"""The structure of a module: units in sequence, put into functions, scopes and sections.

Nesting is kept on an explicit stack, so its depth costs nothing. A unit that cannot be parsed gives one diagnostic, and
parsing resumes after its `;`, at a `}` or at the next line that looks like the start of a statement.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate
from typing import Any, Protocol

from ptxtools.diagnostics import Diagnostic, Fix, Source, Span
from ptxtools.ir import (
    HEADERS,
    Alias,
    BranchTargets,
    CallPrototype,
    CallTargets,
    DataLine,
    Directive,
    File,
    Function,
    Header,
    Instruction,
    Label,
    Module,
    Scope,
    Section,
    Variable,
)
from ptxtools.ir.nodes import SOURCES
from ptxtools.records import NamedTuple

from .declarations import names_nothing, single_variables
from .faults import Fault
from .limits import MOST_FAULTS, MOST_SCOPES

_TRIVIA = re.compile(r"(?:\s|//[^\n]*|/\*(?s:.*?)\*/)*+", re.ASCII)
_DWARF = re.compile(r"@@[Dd][Ww][Aa][Rr][Ff]\b([^\n]*)", re.ASCII)
_PREPROCESSOR = re.compile(r"#(?:[^\n\\]|\\.)*", re.DOTALL)
#: What cpp leaves in its output; ptxas skips it too.
_LINE_MARKER = re.compile(r'#[ \t]*(?:line[ \t]*)?\d+[ \t]+"[^"\n]*"[\d \t\r]*$', re.ASCII)

_FUNCTION_START = re.compile(r"(?:\.(?:visible|extern|weak|common)\s+)?\.(?:entry|func)\b", re.ASCII)
#: The start of a function, perhaps misspelt.
_LIKE_FUNCTION = re.compile(r"(?:[.\w]++[ \t]++)?[.\w]*[ \t]*\.?(?:entry|func)\b", re.ASCII)
_NAMELESS = re.compile(r"(?:\.\w+\s+)?\.entry\s*(\()", re.ASCII)
_HEADER = re.compile(r"\.(?:version|target|address_size)\b", re.ASCII)
_DATA = re.compile(r"\.[busf]\d", re.ASCII)
#: Tokens that may follow a section.
_MODULE_PART = re.compile(r"\.(?:section|file|visible|entry|func|global|extern)\b", re.ASCII)
_NAMES = re.compile(r"[\w$%]+", re.ASCII)
_WORD = re.compile(r"[^\s;,{}()\[\]]+")
#: Instructions that may be one word.
_WITHOUT_OPERANDS = frozenset({"ret", "exit", "trap", "brkpt"})
#: A word on a line of its own.
_LONE_WORD = re.compile(r"([\w$%]+)[ \t\r]*(?://[^\n]*)?\n", re.ASCII)
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
#: A vertical tab, and where one may stand.
_VERTICAL_TAB = re.compile(r'//[^\n]*|/\*(?s:.*?)\*/|"[^"]*"|(\v)')
#: Control characters, and what decoding puts in place of bytes that are no text.
_CONTROL = dict.fromkeys([*range(9), *range(14, 32), *range(127, 160), 0xFFFD])
#: The length of the prefix examined to detect binary data.
PROBE = 4096

_LABELLED = (BranchTargets, CallTargets, CallPrototype)
_BODY_ONLY = (Instruction, Label, *_LABELLED)
_MODULE_ONLY = (Header, Alias, File, Section)


class Units(Protocol):
    """A parser for one unit: `UnitParser`, or the shape cache in front of it."""

    def parse(self, text: str, begin: int) -> tuple[Any, int]: ...

    def statements(self, text: str, begin: int, items: list[Any], *, inside: bool = True) -> int: ...

    def data_lines(self, text: str, begin: int, lines: list[DataLine]) -> int: ...

    def close(self) -> None: ...


class LoneWord(NamedTuple):
    """A word that lacks the `:` of a label or the `;` of an instruction."""

    word: str
    span: Span
    mark: str

    def fault(self) -> Fault:
        label = self.mark == ":"
        message = f"missing ':' after the label {self.word}" if label else "missing ';' at the end of this statement"
        fix = Fix((self.span[1], self.span[1]), self.mark, "make it a label" if label else "end the statement")
        return Fault("PTX100", message, self.span, fix=fix)


class Reader:
    """Reads one module; `diagnostics` collects the errors."""

    def __init__(self, source: Source, units: Units) -> None:
        self.source, self.text, self.units = source, source.text, units
        self.module = Module([], source)
        self.diagnostics: list[Diagnostic] = []
        self._function: Function | None = None
        self._section: Section | None = None
        self._scopes: list[Scope] = []
        self._extra_scopes = 0
        #: Misplaced statements have been reported, once.
        self._astray = False
        #: A function whose `}` is known to follow.
        self._closed: Function | None = None
        #: The positions of the text's braces, and the nesting depth before each and at the end.
        self._braces: tuple[list[int], list[int]] | None = None
        #: The positions of headers, computed on demand.
        self._headers: dict[str, int] = {}
        #: The function whose header could not be parsed.
        self._lost: Function | None = None

    def read(self) -> None:
        """Read the whole text into `module`."""
        text = self.text
        at = int(text.startswith("\ufeff"))
        if (binary := binary_at(text)) is not None:
            self._report(Fault("PTX120", "this is not text", (binary, binary + 1)))
            return
        self._finish(self._read_from(at, len(text)))

    def read_body(self, name: str, text: str, begin: int, end: int) -> list[Any] | None:
        """Read the statements from `begin` to `end` of a function's body; None if they do not end there.

        text: the source's, which may end early; name: of the function, whose `}` is known to follow.
        """
        body = Scope()
        self._function = self._closed = Function("func", name, body=body)
        self._scopes, self.text = [body], text
        at = self._read_from(begin, end)
        ended = at == end and self._function is self._closed and self._scopes == [body] and not self._extra_scopes
        return body.items if ended and not self.module.items and len(self.diagnostics) < MOST_FAULTS else None

    def read_parts(self, before: Sequence[Any], begin: int, end: int) -> list[Any] | None:
        """Read the parts of the module from `begin` to `end`, behind those `before`; None if they do not end there."""
        self.module.items = list(before)
        self._function = self._section = None
        ended = self._read_from(begin, end) == end and self._function is None and self._section is None
        whole = ended and not self._extra_scopes and len(self.diagnostics) < MOST_FAULTS
        return self.module.items[len(before) :] if whole and not self.module.braces_wrong else None

    def _read_from(self, at: int, end: int) -> int:
        """Read units up to `end`, or to where there are too many faults; returns where."""
        text = self.text
        located = ".loc" in text
        while True:
            if self._section is not None:
                at = self.units.data_lines(text, at, self._section.lines)
            elif self._scopes:
                at = self.units.statements(text, at, self._scopes[-1].items)
            elif self._astray and not located:
                at = self.units.statements(text, at, [], inside=False)  # outside of functions, which has been said
            match = _TRIVIA.match(text, at)
            at = match.end() if match else at
            if at >= end or len(self.diagnostics) >= MOST_FAULTS:
                return at
            try:
                at = self._step(at)
            except Fault as fault:
                at = self._recover(at, fault)

    def _recover(self, at: int, fault: Fault) -> int:
        """Report why the unit at `at` cannot be parsed; returns where to resume."""
        text, end = self.text, fault.fix.span[0] if fault.fix is not None and fault.fix.text == ";" else -1
        follows = _after_header().match(text, end) if end >= 0 and _FUNCTION_START.match(text, at) else None
        brace = _TRIVIA.match(text, end) if end >= 0 else None
        nameless = _NAMELESS.match(text, at) if fault.code == "PTX100" else None
        if follows is not None and follows["body"] and self._balance(end) < 0:
            if self._place_completed(at, end, "{"):
                self._report(Fault("PTX100", "missing '{' before the body of this function", follows.span("word")))
                return end
        elif (lone := self._lone_word(at, fault, end)) is not None and self._place_completed(
            at, lone.span[1], lone.mark
        ):
            self._report(lone.fault())
            return lone.span[1]
        elif nameless is not None:
            fault = Fault("PTX100", "expected a name, found '('", nameless.span(1))
        elif follows is not None:
            fault = Fault("PTX100", f"expected '{{' or ';', found '{follows['word']}'", follows.span("word"))
        elif brace is not None and _inner_brace().match(text, brace.end()):
            fault = Fault("PTX100", "this '}' closes nothing in its statement", (brace.end(), brace.end() + 1))
        elif end >= 0 and self._place_completed(at, end, ";"):
            self._report(fault)
            return end
        self._report(fault)
        resumed = self._resume(at, fault.span[0])
        self._note_header(at, resumed)
        names = set(_NAMES.findall(text, at, resumed))
        names |= {name.lstrip("0123456789") for name in names}
        self.module.unread.setdefault(at, set()).update(names)
        return resumed

    def _lone_word(self, at: int, fault: Fault, end: int) -> LoneWord | None:
        """A word alone on the first line of a faulty unit: a label or an instruction without its mark. end: where a `;`
        is missing, or -1."""
        match = _LONE_WORD.match(self.text, at)
        if match is None or self._function is None or (fault.span[0] < match.end() and end != match.end(1)):
            return None
        from ptxtools.isa.index import CHAPTERS

        mark = ":" if match[1] not in CHAPTERS else ";" if match[1] in _WITHOUT_OPERANDS else ""
        return LoneWord(match[1], match.span(1), mark) if mark else None

    def _note_header(self, begin: int, end: int) -> None:
        """Record a header that could not be parsed, so that it is not also reported as missing."""
        if self._function is not None:
            return
        items, text = self.module.items, self.text
        found = _HEADER.match(text, begin)
        name = found[0] if found else ""
        headers = [item for item in items if isinstance(item, Header)]
        if not found and len(headers) == len(items):
            due = [word for word in HEADERS[:2] if word not in {header.name for header in headers}]
            if due and self._last_header(due[0]) < end:
                name = due[0]
        if name:
            items.append(Header(name, (), (begin, begin + len(name))))

    def _last_header(self, name: str) -> int:
        """The position of the last line that begins with this header; -1 if there is none."""
        if name not in self._headers:
            places = [m.start(1) for m in re.finditer(rf"^[ \t]*(\{name}\b)", self.text, re.MULTILINE)]
            self._headers[name] = max(places, default=-1)
        return self._headers[name]

    def _step(self, at: int) -> int:
        """Read the unit at `at`; returns the position after it."""
        first = self.text[at]
        if first == "}":
            return self._close(at)
        if first == "{":
            return self._open(at)
        if first == "#":
            return self._preprocessor(at)
        if first == ";":
            raise Fault("PTX100", "there is no statement before this ';'", (at, at + 1))
        if first == "@" and (match := _DWARF.match(self.text, at)):
            self.module.items.append(Directive("@@DWARF", (match[1].strip(),), (at, match.end())))
            return match.end()
        if self._function is not None and _FUNCTION_START.match(self.text, at):
            self._missing_brace(at)
        elif self._section is not None and first == "." and not _DATA.match(self.text, at):
            self._end_section(at)
        if first == "." and self.text.startswith(SOURCES, at):
            from .sources import read_sources

            node, after = read_sources(self.text, at)
        else:
            node, after = self.units.parse(self.text, at)
        self._place(node, at)
        return after

    def _place_completed(self, at: int, end: int, mark: str) -> bool:
        """Read a unit as if its missing `;` or `{` were present."""
        try:
            node, _ = self.units.parse(self.text[:end] + mark, at)
            self._place(node, at)
            if isinstance(node, Function):
                self.module.unread.setdefault(at, set()).add(node.name)
        except Fault:
            return False
        return True

    # --- nodes --------------------------------------------------------------------------------------------------------

    def _place(self, node: Any, at: int) -> None:
        """Insert a node where it belongs; raise `Fault` if it is misplaced."""
        if isinstance(node, DataLine):
            if self._section is None:
                raise Fault("PTX117", "data is allowed only in a .section", _word(self.text, at))
            self._section.lines.append(node)
        elif self._section is not None:
            self._place_in_section(node, at)
        elif self._function is not None:
            self._place_in_body(node, at)
        else:
            self._place_in_module(node, at)

    def _place_in_section(self, node: Any, at: int) -> None:
        assert self._section is not None
        if not isinstance(node, Label):
            raise Fault("PTX117", "a section contains only labels and data", _word(self.text, at))
        self._section.lines.append(DataLine("label", (node.name,)))

    def _end_section(self, at: int) -> None:
        """End a section before something other than data: the next part of the module, or an error."""
        assert self._section is not None
        word = _word(self.text, at)
        if not _MODULE_PART.match(self.text, at) or self._balance(at) < 0:
            raise Fault("PTX117", "a section contains only labels and data", word)
        self._report(Fault("PTX116", f"missing '}}' at the end of {self._section.name}", word))
        self._section = None

    def _place_in_body(self, node: Any, at: int) -> None:
        if isinstance(node, _MODULE_ONLY):
            if self._never_closed(at):
                self._missing_brace(at)
                self._place_in_module(node, at)
                return
            word = _word(self.text, at)
            raise Fault("PTX117", f"{self.text[slice(*word)]} is allowed only outside of functions", word)
        items = self._scopes[-1].items
        items.extend(self._variables(node)) if isinstance(node, list) else items.append(node)

    def _variables(self, declared: list[Variable]) -> Iterator[Variable]:
        """The variables of one declaration; those without a name are kept apart."""
        inside = self._function is not None
        self.module.unnamed += [(v, inside) for v in declared if names_nothing(v)]
        return single_variables([v for v in declared if not names_nothing(v)])

    def _place_in_module(self, node: Any, at: int) -> None:
        if isinstance(node, _BODY_ONLY):
            if not self._astray:
                self._astray = True
                raise Fault("PTX117", "a statement is allowed only inside a function", _word(self.text, at))
            return
        self._astray = False
        items = self.module.items
        if isinstance(node, list):
            items.extend(self._variables(node))
            return
        items.append(node)
        if isinstance(node, Section):
            self._section = node
        elif isinstance(node, Function) and node.body is not None:
            self._function, self._scopes = node, [node.body]

    # --- braces -------------------------------------------------------------------------------------------------------

    def _open(self, at: int) -> int:
        if self._function is None:
            last = self.module.items[-1] if self.module.items else None
            if isinstance(last, Function) and last.body is None and not self._astray:
                self._function, last.body = last, Scope([], (at, at + 1))
                self._scopes = [last.body]
                semicolon = self.text.rfind(";", last.span[0], at)
                if semicolon >= 0:  # else it was missing, and has been reported
                    message = f"this ';' ends the declaration of {last.name} before its body"
                    span = (semicolon, semicolon + 1)
                    self._report(Fault("PTX100", message, span, fix=Fix(span, "", "remove it")))
                return at + 1
            if not self._astray:
                self._report(Fault("PTX117", "a scope is allowed only inside a function", (at, at + 1)))
            self.module.braces_wrong = True
            return self._enter_unread(at)
        if len(self._scopes) >= MOST_SCOPES:
            self._extra_scopes += 1
            if self._extra_scopes == 1:
                self._report(Fault("PTX118", f"more than {MOST_SCOPES} scopes inside each other", (at, at + 1)))
            return at + 1
        scope = Scope([], (at, at + 1))
        self._scopes[-1].items.append(scope)
        self._scopes.append(scope)
        return at + 1

    def _close(self, at: int) -> int:
        if self._section is not None:
            self._section.span = (self._section.span[0], at + 1)
            self._section = None
        elif self._extra_scopes:
            self._extra_scopes -= 1
        elif self._scopes:
            scope = self._scopes.pop()
            scope.span = (scope.span[0], at + 1)
            if not self._scopes and self._function is not None:
                self._function.span = (self._function.span[0], at + 1)
                self._function = None
                self._astray = self.module.braces_wrong
        elif not self._astray:
            self._astray = True
            raise Fault("PTX116", "this '}' closes nothing", (at, at + 1))
        return at + 1

    def _never_closed(self, at: int) -> bool:
        """Whether the rest of the text has too few `}` for the open scopes."""
        if self._function is self._closed:
            return False
        depth = len(self._scopes) + self._extra_scopes + self._balance(at)
        self._closed = self._function if depth <= 0 else None
        return depth > 0

    def _balance(self, at: int) -> int:
        """How many more braces the text opens than closes from here on."""
        if self._braces is None:
            found = [match for match in _brace().finditer(self.text) if match[0] in "{}"]
            depths = accumulate((1 if match[0] == "{" else -1 for match in found), initial=0)
            self._braces = [match.start() for match in found], list(depths)
        places, depths_before = self._braces
        return depths_before[-1] - depths_before[bisect_left(places, at)]

    def _missing_brace(self, at: int) -> None:
        """A module-level item follows while a function is open: its `}` is missing."""
        function = self._function
        assert function is not None
        self.module.braces_wrong = True
        self._report(
            Fault("PTX116", f"missing '}}' at the end of {function.name}", _word(self.text, at),
                  (f"its body begins on line {self.source.line_of(function.name_span[0])}",))
        )  # fmt: skip
        self._abandon(at)

    def _abandon(self, at: int) -> None:
        for scope in self._scopes:
            scope.span = (scope.span[0], at)
        if self._function is not None:
            self._function.span = (self._function.span[0], at)
        self._function, self._scopes, self._extra_scopes = None, [], 0

    def _finish(self, at: int) -> None:
        open_node = self._function or self._section
        if len(self.diagnostics) >= MOST_FAULTS:
            self._report(Fault("PTX121", f"more than {MOST_FAULTS} errors; the rest was not read", (at, at + 1)))
        elif open_node is not None and open_node is not self._lost:
            brace = open_node.body.span[0] if isinstance(open_node, Function) and open_node.body else open_node.span[0]
            help = (f"its '{{' is on line {self.source.line_of(brace)}",)
            self._report(Fault("PTX116", f"missing '}}' at the end of {open_node.name}", (at, at + 1), help))
        self._abandon(at)
        self.diagnostics += foreign(self.source, self.diagnostics)

    # --- mistakes -----------------------------------------------------------------------------------------------------

    def _preprocessor(self, at: int) -> int:
        match = _PREPROCESSOR.match(self.text, at)
        assert match is not None
        if not _LINE_MARKER.match(match[0]) or match.end() == len(self.text):
            span = (at, at + len(match[0].split("\n", 1)[0].rstrip()))
            self._report(
                Fault(
                    "PTX115", "a preprocessor line is not PTX", span, ("run the text through a C preprocessor first",)
                )
            )
        return match.end()

    def _report(self, fault: Fault) -> None:
        """Add a finding. After an error, misplaced words on the same line are redundant."""
        last = self.diagnostics[-1].span[0] if self.diagnostics else len(self.text)
        stray = fault.code == "PTX100" and fault.fix is None and last <= fault.span[0]
        if stray and self.text.find("\n", last, fault.span[0]) < 0:
            return
        self.diagnostics.append(
            Diagnostic(fault.code, fault.message, fault.span, self.source, help=fault.help, fix=fault.fix)
        )

    def _resume(self, begin: int, fault: int) -> int:
        """Where to resume after an error at `fault` in the unit that begins at `begin`."""
        text = self.text
        if text.startswith("/*", fault):  # an unterminated comment hides the rest, closing braces included
            self._abandon(len(text))
            return len(text)
        # A list of parameters whose function is lost counts as a header, too.
        orphan = self._function is None and (text.startswith(".param", begin) or text.startswith("(", fault))
        header = orphan or _LIKE_FUNCTION.match(text, begin) is not None
        at = max(begin + 1, self._line_start(begin, fault))
        depth = 0
        while match := _resume_pattern().search(text, at):
            found, at = match[0], match.end()
            if found == ";" and header and match.start() == fault and _rest_of_header().match(text, at):
                continue
            if found == ";":
                self._astray |= header
                return at
            if found == "{":
                if header:
                    return self._enter_unread(match.start())
                depth += 1
            elif found == "}":
                if depth == 0 and not _inner_brace().match(text, match.start()):
                    return match.start()
                depth = max(depth - 1, 0)
            elif found[0] == "\n" and not header:
                return at
        return len(text)

    def _line_start(self, begin: int, fault: int) -> int:
        """Just before the line break that the faulty token follows, if it is the first of its line; else the token."""
        line = self.text.rfind("\n", begin, fault)
        if line > begin and not self.text[line:fault].strip():
            return line
        return fault

    def _enter_unread(self, brace: int) -> int:
        """Read the body of a function whose header could not be read, so that its errors are reported as well."""
        if self._function is not None:
            self._abandon(brace)
        self._function = Function("func", "the function", span=(brace, brace + 1), name_span=(brace, brace + 1))
        self._function.body = Scope([], (brace, brace + 1))
        self._lost = self._function
        self._scopes = [self._function.body]
        return brace + 1


# The patterns below are for texts with mistakes: compiled when the first one turns up.


@cache
def _resume_pattern() -> re.Pattern[str]:
    """Where reading may go on: at `;`, at braces, or at a line that starts like a statement, that is, with a guard, an
    opcode with modifiers, an instruction without operands, a label or a directive. Strings and comments are skipped."""
    statement = r"\n[ \t]*+(?=@|[a-z]\w*\.[\w.:]+[ \t]|[a-z]+[ \t]*;|[\w$%]+:(?!:)|\.[a-z]\w*|[{}])"
    return re.compile(rf'"[^"]*"|//[^\n]*|/\*(?s:.*?)\*/|;|[{{}}]|{statement}', re.ASCII)


@cache
def _brace() -> re.Pattern[str]:
    """A brace; strings and comments are skipped."""
    return re.compile(r'"[^"\n]*"|//[^\n]*|/\*(?s:.*?)\*/|[{}]', re.ASCII)


@cache
def _after_header() -> re.Pattern[str]:
    """Text that neither ends a function's header nor continues the module; body: it may begin a body."""
    module = "visible|extern|weak|common|entry|func|global|const|shared|tex|file|section|alias|pragma"
    statement = r"\.reg\b|\.loc\b|\.local\b|@|[a-z]\w*\.[\w.:]+[ \t]|ret\b"
    other = rf"(?!\.(?:{module}|version|target|address_size)\b|[{{}}#;]|@@|\Z)"
    return re.compile(rf"(?:\s|//[^\n]*)*+{other}(?=(?P<body>{statement})?)(?P<word>[.\w$%]+|.)", re.ASCII)


@cache
def _rest_of_header() -> re.Pattern[str]:
    """The rest of a list of parameters, up to the body."""
    return re.compile(r"(?:(?!\.entry|\.func)[^;{}])*\{", re.ASCII)


@cache
def _inner_brace() -> re.Pattern[str]:
    """A closing brace of a vector operand or an initialiser, not of a scope."""
    return re.compile(r"\}\s*[,;|}\]]", re.ASCII)


def foreign(source: Source, faults: Sequence[Diagnostic]) -> list[Diagnostic]:
    """The finding about the first character that no PTX file contains, even in a comment, where nothing has been said
    about one: to ptxas the file ends there (4.1)."""
    text = source.text
    found = None if text.isascii() else _NOT_ASCII.search(text)
    at = found.start() if found is not None else -1
    if at < 0 and "\v" in text:
        at = next((found.start(1) for found in _VERTICAL_TAB.finditer(text) if found[1]), -1)
    return [_outside(text, at, source)] if at >= 0 and all(d.code != "PTX101" for d in faults) else []


def _outside(text: str, at: int, source: Source) -> Diagnostic:
    """The finding about a character at `at` that PTX does not have, in a comment, a string or between words: every
    statement is still there. Its subject is the character."""
    name = f"'{text[at]}'" if text[at].isprintable() else f"U+{ord(text[at]):04X}"
    message = f"the character {name} is not allowed in PTX, not even in a comment"
    if text[at] == "\v":
        message = "a vertical tab separates no words of PTX"
    help = ("save the file without a byte order mark",) if text[at] == "\ufeff" else ()
    return Diagnostic("PTX101", message, (at, at + 1), source, help=help, section="4.1", subject=text[at])


def binary_at(text: str) -> int | None:
    """The position of a NUL or the first of many control characters near the beginning of the text."""
    probe = text[:PROBE]
    strange = len(probe) - len(probe.translate(_CONTROL))
    if strange and ("\0" in probe or 10 * strange > len(probe)):
        return next(at for at, character in enumerate(probe) if ord(character) in _CONTROL)
    return None


def _word(text: str, at: int) -> Span:
    """The first word at `at`."""
    match = _WORD.match(text, at)
    return match.span() if match else (at, at + 1)
