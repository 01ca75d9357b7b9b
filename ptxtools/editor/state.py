"""What the server knows of one text, in its newest state."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import unquote, urlparse

from lsprotocol import types as lsp

from .background import Result, Work
from .document import Document
from .positions import Positions


class State:
    """A text in its newest state. before: the state of the text before, which is used up."""

    def __init__(self, text: str, uri: str, encoding: str, before: State | None = None) -> None:
        self.text, self.encoding = text, encoding
        if before is None:
            parts = urlparse(uri)
            self.document = Document(text, unquote(parts.path) if parts.scheme == "file" else uri)
        else:
            self.document = before.document.edited(text)
            before.leave()
        self.places = Positions(text, encoding)
        self.shown: list[lsp.Diagnostic] | None = None
        self.begun = False
        self._work = Work(self.document)
        self._complete: asyncio.Future[Result] = asyncio.get_event_loop().create_future()

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
