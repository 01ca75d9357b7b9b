"""Who writes chosen bytes of global memory, with what, and how the values came about (`ptx-run --against`)."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxtools.program.operations import OPERATIONS
from ptxtools.records import dataclass, field

from .selection import Selection
from .trace import Record, Trace, names_in

if TYPE_CHECKING:
    from ptxtools.machine.events import View
    from ptxtools.machine.launch import Launch
    from ptxtools.machine.observers import Access

Array: TypeAlias = npt.NDArray[Any]

#: Opcodes of threads that write global memory; those of the table have the name of their kind.
_WRITES = (*(kind for kind, row in OPERATIONS.items() if row.access in ("write", "atomic")), "sust")
#: Instructions of a thread that are kept to find where a value came from, and lines of an explanation.
_KEPT, _SHOWN = 4000, 10
#: The address of an operand.
_ADDRESS = re.compile(r"\[[^]]*\]")


class TooManyStores(Exception):  # noqa: N818 - what there is
    """More stores reach the chosen bytes than are kept."""


@dataclass(slots=True)
class Store:
    """A write. data: the bytes that it left, at `address`; turn: which of the writes of this thread to that address it
    is, from 0; registers: of the thread, those that the instruction names. A write of asynchronous work has no text."""

    address: int
    data: bytes
    kernel: str = ""
    cta: tuple[int, int, int] | None = None
    warp: int = 0
    lane: int = 0
    thread: tuple[int, int, int] = (0, 0, 0)
    file: str = ""
    line: int | None = None
    text: str = ""
    turn: int = 0
    registers: dict[str, Any] = field(default_factory=dict)


class Stores(Trace):
    """An observer that collects the writes to chosen bytes, in their order. places: stretches of global memory, each a
    start and a flag for each byte; most: writes that are kept. Raises `TooManyStores` during the run."""

    def __init__(self, places: Sequence[tuple[int, Array]], most: int = 200_000) -> None:
        super().__init__(self._told, Selection(opcodes=(*_WRITES, "multimem")))
        self.found: list[Store] = []
        self._chosen, self._most = places, most
        self._turns: dict[tuple[Any, ...], int] = {}
        self._pending: tuple[int, int] | None = None

    def access(self, at: View, access: Access) -> None:
        self._settle()
        super().access(at, access)

    def wrote_global(self, address: int, size: int) -> None:
        """Told before the write: its bytes are read at the next event, before anything else is written."""
        self._settle()
        if self._wanted(address, size):
            self._pending = address, size

    def grid_ended(self, launch: Launch) -> None:
        self._settle()
        super().grid_ended(launch)

    def _settle(self) -> None:
        if self._pending is not None:
            address, size = self._pending
            self._pending = None
            self._add(Store(address, self._bytes(address, size)))

    def _told(self, record: Record) -> None:
        for access in record.accesses:
            if access.space != "global" or not access.writes:
                continue
            for lane, address in zip(access.lanes.tolist(), access.addresses.tolist(), strict=True):
                if self._wanted(address, access.size):
                    self._add(self._store(record, lane, address, access.size))

    def _store(self, record: Record, lane: int, address: int, size: int) -> Store:
        key = record.kernel, record.cta, record.warp, lane, address
        turn = self._turns[key] = self._turns.get(key, -1) + 1
        at = int(np.flatnonzero(record.lanes == lane)[0])
        assert self._launch is not None and record.warp is not None
        return Store(
            address, self._bytes(address, size), record.kernel, record.cta, record.warp, lane,
            _thread(self._launch, record.warp, lane), record.file, record.line, record.text, turn,
            {name: values[..., at] for name, values in record.after.items()},
        )  # fmt: skip

    def _add(self, store: Store) -> None:
        if len(self.found) >= self._most:
            raise TooManyStores
        self.found.append(store)

    def _bytes(self, address: int, size: int) -> bytes:
        assert self._launch is not None
        return bytes(self._launch.memory.bytes(address, size, False) or b"")

    def _wanted(self, address: int, size: int) -> bool:
        for start, flags in self._chosen:
            first = max(address - start, 0)
            if first < len(flags) and address + size > start and flags[first : address + size - start].any():
                return True
        return False


class Origin(Trace):
    """An observer that finds the instructions of a thread which made the value of one of its stores: `lines` has them,
    the last first, once the store has been executed."""

    def __init__(self, store: Store) -> None:
        assert store.cta is not None
        chosen = Selection(frozenset({store.cta}), frozenset({store.warp}), frozenset({store.lane}))
        super().__init__(self._told, chosen)
        self._store = store
        self._left = store.turn
        self._records: deque[Record] | None = deque(maxlen=_KEPT)
        self.lines: list[Record] = []

    def _told(self, record: Record) -> None:
        if self._records is None or record.event != "instruction" or not len(record.lanes):
            return
        self._records.append(record)
        if record.kernel != self._store.kernel:
            return
        for access in record.accesses:
            if access.space == "global" and access.writes and self._store.address in access.addresses.tolist():
                self._left -= 1
                if self._left < 0:
                    self.lines = _made(list(self._records))
                    self._records = None
                return


def _made(records: list[Record]) -> list[Record]:
    """Those that made the values which the last one stores, back to loads; not those that made addresses."""
    store = records.pop()
    wanted = set(names_in(store.text.rpartition("],")[2])) & set(store.after)
    found = []
    for record in reversed(records):
        made = [name for name in names_in(_target(record.text)) if name in wanted]
        if not made:
            continue
        found.append(record)
        if len(found) >= _SHOWN:
            break
        wanted.difference_update(made)
        sources = _ADDRESS.sub("", record.text.partition(",")[2])
        wanted.update(name for name in names_in(sources) if name in record.before)
    return found


def _target(text: str) -> str:
    """What stands before the sources of an instruction: behind guard and opcode."""
    words = text.split(None, 2 if text.startswith("@") else 1)
    operands = words[-1] if len(words) > 1 else ""
    return operands[: operands.find("}") + 1] if operands.startswith("{") else operands.partition(",")[0]


def _thread(launch: Launch, warp: int, lane: int) -> tuple[int, int, int]:
    x, y, _ = launch.block
    number = 32 * warp + lane
    return number % x, number // x % y, number // (x * y)
