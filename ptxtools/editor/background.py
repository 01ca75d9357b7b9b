"""What takes long about a text, worked out beside the server, which answers meanwhile.

Where a process can be forked, a fork does it: it has the tree already, so nothing is parsed again; it takes no time
from the server; and it is ended as soon as the text changes. Elsewhere it is a thread, which reads the text for itself,
since the server changes its own tree.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from importlib import import_module

from ptxtools.diagnostics import Diagnostic
from ptxtools.linter import findings_in_turn
from ptxtools.linter.processes import packed, unpacked
from ptxtools.linter.registry import RULES, names
from ptxtools.records import NamedTuple

from . import answers
from .document import Document

#: Bytes before each result that say how long it is.
_LENGTH = 8
#: Whether work is done in forks.
FORKS = hasattr(os, "fork") and sys.platform != "darwin"


class Result(NamedTuple):
    """Findings, and hints as `answers.hints` has them. complete: nothing follows; before that there are only errors."""

    findings: list[Diagnostic]
    hints: list[tuple[int, str]]
    complete: bool


def results(document: Document) -> Iterator[Result]:
    """The errors, as soon as they are known; then everything."""
    errors, found = findings_in_turn(document.module, document.syntax)
    yield Result(errors(), [], False)
    yield Result(found(), answers.hints(document, (0, len(document.text))), True)


class Work:
    """One text's work. It may be ended at any time; then no more results come."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._pid = 0
        self._ended = False

    def end(self) -> None:
        """Stop, if it still runs."""
        self._ended = True
        if self._pid:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)

    async def results(self) -> AsyncIterator[Result]:
        """The results as they come."""
        async for result in self._from_fork() if FORKS else self._from_thread():
            if self._ended:
                return
            yield result

    async def _from_thread(self) -> AsyncIterator[Result]:
        own = results(await asyncio.to_thread(Document, self._document.text, self._document.name))
        while not self._ended and (result := await asyncio.to_thread(next, own, None)) is not None:
            yield result

    async def _from_fork(self) -> AsyncIterator[Result]:
        await _load_rules()
        if self._ended:
            return
        read, write = os.pipe()
        # The server's other thread waits for input, holds no lock that is needed here, and is not in the fork.
        self._pid = os.fork()
        if not self._pid:
            self._do(write)
        os.close(write)
        source = self._document.module.source
        stream = asyncio.StreamReader(limit=1 << 30)
        pipe = os.fdopen(read, "rb")
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stream), pipe
        )
        try:
            complete = False
            while not complete:
                length = int.from_bytes(await stream.readexactly(_LENGTH), "little")
                result: Result = unpacked(await stream.readexactly(length), source)
                complete = result.complete
                yield result
        except asyncio.IncompleteReadError:  # it was ended, or failed: as if the text had changed
            if not self._ended:
                self._pid, pid = 0, self._pid
                os.waitpid(pid, 0)
                async for result in self._from_thread():
                    yield result
        finally:
            transport.close()
            if self._pid:
                self.end()
                pid, self._pid = self._pid, 0
                os.waitpid(pid, 0)

    def _do(self, write: int) -> None:
        """In the fork: write the results, and end."""
        with suppress(BaseException):  # nothing of it may run on behind here
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.nice(5)
            with os.fdopen(write, "wb") as pipe:
                for result in results(self._document):
                    data = packed(result, self._document.module.source)
                    pipe.write(len(data).to_bytes(_LENGTH, "little") + data)
                    pipe.flush()
        os._exit(0)


async def _load_rules() -> None:
    """Load all rules, once: forks would each do it. It takes 0.1 s, and requests are answered meanwhile."""
    for name in names():
        rule = f"{RULES}.{name}"
        if rule not in sys.modules:
            import_module(rule)
            await asyncio.sleep(0)
