"""initcheck on the matrices in shared memory that wgmma, tcgen05.mma and tcgen05.cp read: they must be written."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

import numpy as np

from ptxtools.sim.tensor.wgmma_reads import WarpgroupReads

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ptxtools.machine.claims import Span
    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Array
    from ptxtools.machine.residents import Cta
    from ptxtools.program.program import Program

    from .session import Session

_NAME = "initcheck"
#: Bytes of the pieces in which matrices lie, and eight flags that are all set.
_CHUNK, _SET = 16, np.uint64(0x01010101_01010101)


class Factors:
    """flags: of a CTA, which bytes of its shared memory have been written."""

    def __init__(self, session: Session, program: Program, flags: Callable[[Cta], Array]) -> None:
        self._session: Session = weakref.proxy(session)
        self._flags = flags
        self._reads = WarpgroupReads(program)

    def multiplies(self, at: View) -> None:
        """A warp is about to execute wgmma.mma_async; from now on the engine looks by itself, if it can."""
        self.read(at, at.leader, self._reads.spans(at))
        self._reads.teach(at)

    def read(self, at: View, lane: int, spans: Sequence[Span]) -> None:
        """A lane issues what reads some of shared memory. What is reported counts as written. Of what tcgen05.cp takes
        some may not matter."""
        for span in spans:
            assert span.owner is not None
            flags = self._flags(span.owner)
            starts, size = span.pieces()
            if len(starts) and int(starts[-1]) + size > len(flags):
                continue  # outside of shared memory: a matter of the instruction
            if size % _CHUNK == 0 and not (starts % _CHUNK).any():
                chunks = flags[: len(flags) // _CHUNK * _CHUNK].view(np.uint64).reshape(-1, 2)
                first = starts // _CHUNK
                if all((chunks[first + part] == _SET).all() for part in range(size // _CHUNK)):
                    continue
            places = (starts[:, None] + np.arange(size)).reshape(-1)
            missing = places[~flags[places]]
            if len(missing) and (at.op.kind != "tcgen05.cp" or len(missing) == len(places)):
                self._report(at, lane, span, missing, len(places))
                flags[places] = True

    def _report(self, at: View, lane: int, span: Span, missing: Array, count: int) -> None:
        message = f"a matrix in shared memory of {span.owner} is read: nobody wrote byte {int(missing[0]):#x}"
        details = (f"{len(missing):,} of the {count:,} bytes that it reads",)
        self._session.report(
            at, lane, _NAME, message, (at.op.where, "matrix"), details, kind="matrix", space="shared",
            address=int(missing[0]),
        )  # fmt: skip
