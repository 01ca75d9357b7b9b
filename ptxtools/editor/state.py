"""What the server knows of one text, in its newest state."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from urllib.parse import unquote, urlparse

from lsprotocol import types as lsp

from ptxtools.check.codes import TOLERATED
from ptxtools.diagnostics import Diagnostic, Severity, Span
from ptxtools.isa.errors import OpcodeError
from ptxtools.isa.opcode import resolve
from ptxtools.linter import errors_within
from ptxtools.records import replace
from ptxtools.syntax.edited import edit_of, moved_finding
from ptxtools.syntax.reformat import reformat_soon

from .background import Result, Work
from .document import Document
from .positions import Positions

#: Characters of a function that can be checked between two keystrokes; and where it is checked only if a part is not
#: enough.
_LONG, _LONGEST = 100_000, 1_000_000
#: Opcodes that are looked up in one step of the preparations.
_OPCODES = 5


#: An instruction without comments, and what may stand before it on its line.
_INSTRUCTION = re.compile(r"""\s*(?:@!?[\w$%]+\s+)?[a-z]\w*(?:\.\w+(?:::\w+)*)*(?:\s[^;:"/\#@]*)?""", re.ASCII)


def _instruction_around(text: str, first: int, last: int) -> Span | None:
    """The part of a text between the statements around an edit, if that is one instruction."""
    start = max(text.rfind(mark, 0, first) for mark in ";{}:") + 1
    end = text.find(";", last)
    if text[start - 1 : start] == ":":  # a label's, or one in an opcode
        return None
    return (start, end) if end >= 0 and _INSTRUCTION.fullmatch(text, start, end) else None


def _moved(span: Span, first: int, last: int, by: int) -> Span | None:
    """Where a span of a text is when what is between two offsets was replaced; None where it was in it."""
    if span[1] <= first:
        return span
    return (span[0] + by, span[1] + by) if span[0] >= last else None


def is_warning(d: Diagnostic) -> bool:
    """Whether it comes from a rule that warns, not from the check of validity."""
    return d.severity is Severity.WARNING and d.code != TOLERATED


class State:
    """A text in its newest state. before: the state of the text before, which is used up.

    found: the findings that are known so far; None if nothing is.
    """

    def __init__(
        self, text: str, uri: str, encoding: str, before: State | None = None, places: Positions | None = None
    ) -> None:
        self.text, self.encoding = text, encoding
        self.found: list[Diagnostic] | None = None
        #: An earlier text with its findings, that this one comes of by edits in place.
        self._base: tuple[str, list[Diagnostic]] | None = None
        #: The first text, where nothing was known of any text before, and edits since then were in place.
        self._first: str | None = None
        self._is_first = before is None
        #: The hints, when they are known; and an earlier text with its hints.
        self.hints: list[tuple[int, str]] | None = None
        self._hint_base: tuple[str, list[tuple[int, str]]] | None = None
        #: Whether hints or fixes of an earlier text were told.
        self.told_older = False
        if before is None:
            parts = urlparse(uri)
            self.document = Document(text, unquote(parts.path) if parts.scheme == "file" else uri)
        else:
            before.leave()  # its process has the tree, too: a change would copy that
            self.document = before.document.edited(text)
            if self.document.in_place:
                self._base = before._base if before.found is None else (before.text, before.found)
                self._first = before._first or before.text if before._is_first or before._first else None
                self._hint_base = before._hint_base if before.hints is None else (before.text, before.hints)
        self.places = places or Positions(text, encoding)
        self.shown: list[lsp.Diagnostic] | None = None
        self.begun = False
        self._work = Work(self.document)
        self._complete: asyncio.Future[Result] = asyncio.get_event_loop().create_future()

    def soon(self) -> list[Diagnostic] | None:
        """What is known without waiting: new errors of the function that was edited, and else the findings of the text
        before, moved, if they are known. None if more was edited, or if the function is a very long one, and not only
        an instruction of it was edited."""
        if self._base is None and self._first is None:
            return None
        text, older = self._base or (self._first or "", [])
        first, last = edit_of(text, self.text)
        by = len(self.text) - len(text)
        function = self.document.function_at(first)
        if function is None or function.span[1] < last + by:
            return None
        area, moved = function.span, self._moved_findings(text, older, first, last)
        if area[1] - area[0] > _LONG:
            instruction = _instruction_around(text, first, last), _instruction_around(self.text, first, last + by)
            errors = [d for d in moved if not is_warning(d) and area[0] <= d.span[0] < area[1]]
            if None not in instruction and not errors:  # one error may hide another of the same name
                area = instruction[1] or area
            elif area[1] - area[0] > _LONGEST:
                return None
        fresh = errors_within(self.document.module, self.document.syntax, function, area)
        known = {(d.code, d.span) for d in fresh}
        for d in moved:
            inside = area[0] <= d.span[0] < area[1]
            if (d.code, d.span) not in known and (is_warning(d) or not inside):
                fresh.append(d)
        found = sorted(fresh, key=lambda d: d.span)
        if self._base is not None:
            self.found = found  # as good as all
        return found

    def _moved_findings(self, text: str, older: Sequence[Diagnostic], first: int, last: int) -> list[Diagnostic]:
        """Findings of an earlier text that are not where it was edited."""
        by, source = len(self.text) - len(text), self.document.module.source
        assert source is not None
        found = []
        for d in older:
            if d.span[1] <= first or d.span[0] >= last:
                now = moved_finding(d, by if d.span[0] >= last else 0, source)
                if d.fix is not None:
                    span = _moved(d.fix.span, first, last, by)
                    now.fix = None if span is None else replace(d.fix, span=span)
                found.append(now)
        return found

    def known_findings(self) -> list[Diagnostic] | None:
        """What is known without waiting, warnings of an earlier text among it; None if nothing is."""
        if self._complete.done() and not self._complete.cancelled():
            return self._complete.result().findings
        found = self.found if self.found is not None or self._base is None else self.soon()
        if found is None and self._base is not None:
            text, older = self._base
            found = self._moved_findings(text, older, *edit_of(text, self.text))
        self.told_older |= found is not None
        return found

    def known_hints(self) -> list[tuple[int, str]] | None:
        """The hints, or those of an earlier text where it was not edited; None if there are none yet."""
        if self.hints is not None or self._hint_base is None:
            return self.hints
        text, older = self._hint_base
        first, last = edit_of(text, self.text)
        by = len(self.text) - len(text)
        self.told_older = True
        return [(at + by * (at >= last), needs) for at, needs in older if not first < at < last]

    def with_warnings(self, errors: list[Diagnostic]) -> list[Diagnostic]:
        """Errors, and what is known so far of the warnings."""
        return sorted([*errors, *filter(is_warning, self.found or ())], key=lambda d: d.span)

    def preparations(self) -> Iterator[None]:
        """What the next answers need, a step at a time, each of some milliseconds: the rules of validity and the
        instructions of the text are loaded, and its rows laid out."""
        module = self.document.module
        function = next((f for f in module.functions if f.body is not None), None)
        if function is not None:
            errors_within(module, self.document.syntax, function, function.span[:1] * 2)
            yield
        for n, opcode in enumerate(self.document.opcodes):
            with suppress(OpcodeError):
                resolve(opcode)
            if n % _OPCODES == 0:
                yield
        yield from reformat_soon(self.text)

    def leave(self) -> None:
        """End the work at this state: there is a newer one."""
        self._work.end()
        self._complete.cancel()

    async def results(self) -> AsyncIterator[Result]:
        """What is found, bit by bit."""
        try:
            async for result in self._work.results():
                if result.complete and not self._complete.done():
                    self._complete.set_result(result)
                    self.hints = result.hints
                yield result
        finally:
            self._complete.cancel()  # unless it is done

    async def complete(self) -> Result:
        """All that is found; nothing if the text changes before that."""
        try:
            return await asyncio.shield(self._complete)
        except asyncio.CancelledError:
            return Result([], [], True)
