"""What the server knows of one text, in its newest state."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import unquote, urlparse

from lsprotocol import types as lsp

from ptxtools.check.codes import TOLERATED
from ptxtools.diagnostics import Diagnostic, Severity
from ptxtools.linter import errors_within
from ptxtools.syntax.edited import edit_of, moved_finding

from .background import Result, Work
from .document import Document
from .positions import Positions

#: Characters of a function that can be checked between two keystrokes.
_LONG = 100_000


def is_warning(d: Diagnostic) -> bool:
    """Whether it comes from a rule that warns, not from the check of validity."""
    return d.severity is Severity.WARNING and d.code != TOLERATED


class State:
    """A text in its newest state. before: the state of the text before, which is used up.

    found: the findings that are known so far; None if nothing is.
    """

    def __init__(self, text: str, uri: str, encoding: str, before: State | None = None) -> None:
        self.text, self.encoding = text, encoding
        self.found: list[Diagnostic] | None = None
        #: An earlier text with its findings, that this one comes of by edits in place.
        self._base: tuple[str, list[Diagnostic]] | None = None
        if before is None:
            parts = urlparse(uri)
            self.document = Document(text, unquote(parts.path) if parts.scheme == "file" else uri)
        else:
            self.document = before.document.edited(text)
            before.leave()
            if self.document.in_place:
                self._base = before._base if before.found is None else (before.text, before.found)
        self.places = Positions(text, encoding)
        self.shown: list[lsp.Diagnostic] | None = None
        self.begun = False
        self._work = Work(self.document)
        self._complete: asyncio.Future[Result] = asyncio.get_event_loop().create_future()

    def soon(self) -> list[Diagnostic] | None:
        """What is known without waiting: new errors of the function that was edited, and else the findings of the text
        before, moved. None if that text's are not known, if more was edited, or if the function
        is a long one."""
        if self._base is None:
            return None
        text, older = self._base
        first, last = edit_of(text, self.text)
        by = len(self.text) - len(text)
        function = self.document.function_at(first)
        if function is None or function.span[1] < last + by or function.span[1] - function.span[0] > _LONG:
            return None
        fresh = errors_within(self.document.module, self.document.syntax, function)
        known = {(d.code, d.span) for d in fresh}
        start, end = function.span
        source = self.document.module.source
        assert source is not None
        for d in older:
            if d.span[1] > first and d.span[0] < last:
                continue
            now = moved_finding(d, by if d.span[0] >= last else 0, source)
            inside = start <= now.span[0] < end
            if (now.code, now.span) not in known and (is_warning(d) or not inside):
                fresh.append(now)
        self.found = sorted(fresh, key=lambda d: d.span)
        return self.found

    def with_warnings(self, errors: list[Diagnostic]) -> list[Diagnostic]:
        """Errors, and what is known so far of the warnings."""
        return sorted([*errors, *filter(is_warning, self.found or ())], key=lambda d: d.span)

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
                yield result
        finally:
            self._complete.cancel()  # unless it is done

    async def complete(self) -> Result:
        """All that is found; nothing if the text changes before that."""
        try:
            return await asyncio.shield(self._complete)
        except asyncio.CancelledError:
            return Result([], [], True)
