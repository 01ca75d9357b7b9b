"""tcgen05.mma, .cp and .shift in plain terms, for those who have no device: which bytes of which CTA an instruction
reads and writes, and what it writes. The services of the device decide both; here is a place for them to work in.
Tensor memory is counted in bytes, column after column of 128 lanes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from types import SimpleNamespace
from typing import Any

import numpy as np

from ptxtools import isa
from ptxtools.isa.descriptors import DescriptorError
from ptxtools.machine.claims import Span
from ptxtools.machine.products import Products
from ptxtools.program.details import NamedOperands

from . import memory, mma, transfer
from .call import call_of
from .layout import COLUMNS, LANES
from .numbers import Array

#: Rank of a CTA in its pair, whether in tensor memory, first byte, bytes.
Piece = tuple[int, bool, int, int]
_CELL = 4
#: Bytes of shared memory that a matrix descriptor reaches.
_SHARED = 1 << 18


class Issued:
    """One instruction. Raises `DescriptorError`, a ValueError, for what is illegal."""

    def __init__(self, opcode: str, operands: Mapping[str, Sequence[int]], rank: int) -> None:
        """operands: the elements of each by the names of the manual, addresses in tensor memory with what is added to
        them; rank: of the CTA that issues it, in its pair."""
        self.store = [np.zeros(LANES * COLUMNS, np.uint32) for _ in range(2)]
        self.ctas = [_cta(at, store) for at, store in enumerate(self.store)]
        view: Any = _Issuer(opcode, operands, self.ctas, rank)
        self.work: Callable[[], None]
        self.disabled: set[tuple[int, int]] = set()
        if view.op.opcode.name.startswith("tcgen05.mma"):
            call = call_of(view, 0)
            self.work, spans = lambda: mma.run(call), mma.spans(call)
            words = list(enumerate(call.said.disabled))
            self.disabled = {divmod(32 * at + bit, LANES) for at, word in words for bit in range(32) if word >> bit & 1}
        else:
            serve = transfer.copied if view.op.opcode.name.startswith("tcgen05.cp") else transfer.shifted
            self.work, several = serve(view, 0)
            spans = several()
        self.reads = self._pieces(spans, "read")
        self.writes = self._pieces(spans, "write")

    def run(self, contents: Sequence[bytes]) -> list[bytes]:
        """What the pieces of `writes` become, if those of `reads` hold this."""
        for (rank, tensor, at, size), data in zip(self.reads, contents, strict=True):
            if tensor:
                self.store[rank][at // _CELL : (at + size) // _CELL] = np.frombuffer(data, np.uint32)
            else:
                self.ctas[rank].shared[at : at + size] = data
        self.work()
        return [self.store[rank][at // _CELL : (at + size) // _CELL].tobytes() for rank, _, at, size in self.writes]

    def _pieces(self, spans: Sequence[Span], kind: str) -> list[Piece]:
        found: set[tuple[int, bool, int]] = set()
        for span in spans:
            if span.kind == kind:
                rank, unit = int(span.owner is self.ctas[1]), _CELL if span.tensor else 1
                found.update((rank, span.tensor, at * unit) for at in _places(span)
                             if kind == "read" or (rank, at % LANES) not in self.disabled)  # fmt: skip
        pieces: list[Piece] = []
        for (rank, tensor), group in groupby(sorted(found), lambda place: place[:2]):
            width = _CELL if tensor else 1
            for _, _, at in group:
                if pieces and pieces[-1][:2] == (rank, tensor) and pieces[-1][2] + pieces[-1][3] == at:
                    pieces[-1] = (*pieces[-1][:3], pieces[-1][3] + width)
                else:
                    pieces.append((rank, tensor, at, width))
        return pieces


def _places(span: Span) -> list[int]:
    """Numbers of cells of tensor memory, or of bytes."""
    if not span.tensor:
        starts, size = span.pieces()
        return list((starts[:, None] + np.arange(size)).reshape(-1).tolist())
    lanes = [lane for lane in range(LANES) if span.lanes >> lane & 1]
    return [column * LANES + lane for column in range(span.start, span.end) for lane in lanes]


def _cta(rank: int, store: Array) -> Any:
    whole = memory.TensorMemory(cells=store.reshape(COLUMNS, LANES).T, allocations={0: COLUMNS})
    return SimpleNamespace(rank=rank, ended=False, shared=bytearray(_SHARED), state={memory.KEY: whole}, at_end=[])


@lru_cache(1)
def _launch() -> Any:
    return SimpleNamespace(products=Products(), numerics="", device=None, observers=None)


class _Issuer:
    """What stands for the view of the lane that issues it."""

    def __init__(self, opcode: str, operands: Mapping[str, Sequence[int]], ctas: list[Any], rank: int) -> None:
        source: list[int] = []
        named = NamedOperands({}, {}, {}, {})
        for name, values in operands.items():
            named.sources[name] = len(source), len(values)
            source += values
        self.op = SimpleNamespace(opcode=isa.resolve(opcode), src=source, of=lambda _: named)
        self.cta, self.cluster, self.launch = ctas[rank], SimpleNamespace(ctas=ctas), _launch()

    def read(self, value: int, lane: int) -> int:
        return value

    def trap(self, reason: str, lane: int | None = None, *, cause: object = None) -> DescriptorError:
        return DescriptorError(reason)
