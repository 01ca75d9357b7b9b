"""Operations as parts of one function, where handlers are functions of their own (`unison`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ptxtools.native.code.algebra import LLVMAlgebra
from ptxtools.native.code.emitter import Emitter
from ptxtools.native.code.handler import Handler
from ptxtools.program.program import Op


class Inline(Handler):
    """Emits operations into the function: running, lanes and full are set for each part."""

    def __init__(self, emitter: Emitter, op: Op) -> None:
        self.code, self.op = emitter, op
        self.algebra = LLVMAlgebra(emitter, context=self._context)

        self._rooms: dict[str, list[str]] = {}
        self._used: dict[str, int] = {}

    def room(self, kind: str) -> str:
        """Memory for one value until the end of the part."""
        rooms, at = self._rooms.setdefault(kind, []), self._used.get(kind, 0)
        self._used[kind] = at + 1
        if at == len(rooms):
            rooms.append(self.code.room(kind))
        return rooms[at]

    def begin_part(self) -> None:
        """What is in rooms is needed no more."""
        self._used.clear()

    def lanes_are(self, mask: str) -> None:
        """The lanes that run from here on."""
        self.running = mask
        self.lanes = self.code.value(f"bitcast i32 {mask} to <32 x i1>")
        self.full = self.code.value(f"icmp eq i32 {mask}, -1")

    @contextmanager
    def all_lanes(self) -> Iterator[None]:
        """While it is entered, code is for warps of which all lanes run."""
        before = self.running, self.lanes, self.full
        self.running, self.lanes, self.full = "-1", "splat (i1 true)", "true"
        yield
        self.running, self.lanes, self.full = before


class First:
    """While it is entered, lines go into the start of the function."""

    def __init__(self, code: Emitter) -> None:
        self.code = code

    def __enter__(self) -> None:
        self.lines, self.code.lines = self.code.lines, self.code._entry

    def __exit__(self, *_: object) -> None:
        self.code.lines = self.lines
