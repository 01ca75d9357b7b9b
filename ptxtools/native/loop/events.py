"""Events that the native loop leaves to Python, as a `machine.events.View` of warps, CTAs and clusters in memory."""

from __future__ import annotations

import struct
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxtools.machine.events import HANDLERS, View, find, serves, words_at
from ptxtools.machine.issued import KEYS, MARKS, WARPS, IssuedProducts
from ptxtools.machine.residents import CHUNK, MARKS_HEAD, OWNERS_HEAD, PLANES, Cluster, Cta, Wait
from ptxtools.native.code.structures import CTA, MOST_EPOCHS, WARP, MeetingFilter
from ptxtools.program.program import LANES, SLOT_BYTES, Op, Ref

if TYPE_CHECKING:
    from ptxtools.machine.arrays import NumpyAlgebra
    from ptxtools.machine.textures import TextureTable

    from .cells import Cell
    from .worker import Worker

_ARRAYS: dict[str, type] = {"b16": np.uint16, "b32": np.uint32, "b64": np.uint64, "b128": np.uint64}
_WORD = struct.Struct("<I")
_LANE = {"b16": struct.Struct("<H"), "b32": _WORD, "b64": struct.Struct("<Q")}
_BITS = np.arange(LANES, dtype=np.uint32)
_EVERYBODY = (1 << LANES) - 1
#: Words of a warp's `IssuedProducts`, which are neighbours.
_ISSUED_WORDS = 4 + MARKS


@cache
def algebra() -> NumpyAlgebra:
    """Operands and results of Python functions are NumPy arrays."""
    from ptxtools.machine.arrays import NumpyAlgebra

    return NumpyAlgebra()


def flags(mask: int) -> Any:
    """A mask as 32 flags, lane 0 first."""
    return (np.uint32(mask) >> _BITS & np.uint32(1)).astype(np.bool_)


def set_blocks(memory: Any, at: int, lanes: int, block: int) -> None:
    """Set the block of lanes of a warp; `at` is where the warp keeps their blocks."""
    if lanes == _EVERYBODY:
        memory[at : at + 4 * LANES] = _WORD.pack(block) * LANES
    else:
        np.frombuffer(memory, np.uint32, LANES, at)[flags(lanes)] = block


class NativeView(View):
    """Lanes that an event stopped. `origin` and `frame` are offsets of the warp and its frame in worker memory."""

    def __init__(self, worker: Worker, op: Op, warp: int, frame: int, mask: int) -> None:
        self.worker, self.op, self.mask = worker, op, mask
        self.launch, self.schedule = worker.launch, worker.schedule
        self.origin, self.frame = warp - worker.ctx, frame - worker.ctx
        self.warp = worker.field(self.origin, WARP, "id")
        self.held = 0  # lanes that this event has made wait
        self.came: list[Wait] = []  # what the lanes have waited for
        self._cta: Cta | None = None

    @property
    def cta(self) -> Cta:  # type: ignore[override]
        """Made when it is first asked for."""
        if self._cta is None:
            self._cta = self.worker.residents.cta(self.worker.field(self.origin, WARP, "cta") - self.worker.ctx)
        return self._cta

    @property
    def algebra(self) -> NumpyAlgebra:
        return algebra()

    @property
    def below(self) -> int:
        return self.frame - self.origin - WARP.size

    # --- operands -----------------------------------------------------------------------------------------------------

    def values(self, ref: Ref) -> Any:
        memory, at = self.worker.memory, self.frame + ref.slot
        if ref.type == "pred":
            return flags(_WORD.unpack_from(memory, at)[0])
        if ref.type == "b128":
            halves = np.frombuffer(memory, np.uint64, 2 * LANES, at)
            return halves[:LANES].copy(), halves[LANES:].copy()
        return np.frombuffer(memory, _ARRAYS[ref.type], LANES, at).copy()

    def set_values(self, ref: Ref, values: Any, mask: int | None = None) -> None:
        mask = self.mask if mask is None else mask
        memory, at = self.worker.memory, self.frame + ref.slot
        if ref.type == "pred":
            new = int(np.packbits(values, bitorder="little").view(np.uint32)[0])
            old = _WORD.unpack_from(memory, at)[0]
            _WORD.pack_into(memory, at, old ^ ((old ^ new) & mask))
            return
        for part in values if ref.type == "b128" else (values,):
            place: Any = np.frombuffer(memory, _ARRAYS[ref.type], LANES, at)
            np.copyto(place, part, where=flags(mask), casting="unsafe")
            at += SLOT_BYTES["b64"]

    def read(self, ref: Ref, lane: int) -> int:
        memory, at = self.worker.memory, self.frame + ref.slot
        if ref.type == "pred":
            return int(_WORD.unpack_from(memory, at)[0] >> lane & 1)
        word = _LANE.get(ref.type)
        return super().read(ref, lane) if word is None else int(word.unpack_from(memory, at + word.size * lane)[0])

    def words(self, ref: Ref, lane: int) -> list[tuple[int, int]]:
        at = self.worker.ctx + self.frame + ref.slot
        if ref.type == "pred":
            ((word, _),) = words_at(at + lane // 8, 1)
            return [(word, 1 << 8 * (at - word) + lane)]
        size = SLOT_BYTES[ref.type] // LANES
        if ref.type == "b128":
            return [*words_at(at + 8 * lane, 8), *words_at(at + SLOT_BYTES["b64"] + 8 * lane, 8)]
        return words_at(at + size * lane, size)

    def block(self, slots: Any) -> Any:
        rows = np.frombuffer(self.worker.memory, np.uint32)
        return rows[(self.frame + slots)[:, None] // 4 + _BITS]

    def set_block(self, slots: Any, values: Any) -> None:
        if self.mask != 0xFFFF_FFFF:
            super().set_block(slots, values)
            return
        rows = np.frombuffer(self.worker.memory, np.uint32)
        rows[(self.frame + slots)[:, None] // 4 + _BITS] = values

    @property
    def cell(self) -> Cell:
        return self.worker.encoded.cells[id(self.op)]

    @property
    def counted(self) -> bool:
        from ptxtools.machine.filters import COMES

        payload, epoch = self.cell.payload, self.cta.owners
        comes = isinstance(payload, MeetingFilter) and bool(payload.rule & COMES)
        return comes and epoch is not None and int(epoch[1]) < MOST_EPOCHS

    def take_turns(self) -> int:
        turn = self.worker.field(self.origin, WARP, "cl_turn")
        for name in ("cl_turn", "cl_left"):
            self.worker.set_field(self.origin, WARP, name, 0)
        return turn

    def lend(self, size: int) -> Any:
        """Memory for native services of this worker, of one size in all calls."""
        return self.worker.lend(size)

    def offer_fetch(self, textures: TextureTable) -> None:
        from ptxtools.native.textures.offer import offer

        offer(self, textures)

    def issued_by(self, warp: int) -> IssuedProducts:
        state, key = self.cta.state, f"wgmma of warp {warp}"
        found: IssuedProducts | None = state.get(key)
        if found is None:
            at = self.origin + (warp - self.warp) * self.worker.shape.warp_bytes
            words = np.frombuffer(self.worker.memory, np.uint32, _ISSUED_WORDS, at + WARP.offset("wg_issued"))
            keys = np.frombuffer(self.worker.memory, np.uint64, KEYS, at + WARP.offset("wg_keys"))
            finished = np.frombuffer(self.worker.memory, np.uint32, 1, at + WARP.offset("wg_done"))
            found = state[key] = IssuedProducts(words, keys, finished)
        return found

    # --- local memory: words of a lane lie 128 bytes apart ------------------------------------------------------------

    def _row(self, lane: int, address: int, size: int) -> tuple[Any, int]:
        base = self.worker.field(self.origin, WARP, "local") - self.worker.ctx
        first, last = address // 4, (address + size + 3) // 4
        words = np.frombuffer(self.worker.memory, np.uint32, 32 * (last - first), base + 128 * first)
        return words.reshape(-1, LANES)[:, lane], address % 4

    def local(self, lane: int, address: int, size: int) -> bytes:
        words, skip = self._row(lane, address, size)
        data: bytes = words.tobytes()
        return data[skip : skip + size]

    def set_local(self, lane: int, address: int, data: bytes) -> None:
        words, skip = self._row(lane, address, len(data))
        content = bytearray(words.tobytes())
        content[skip : skip + len(data)] = data
        words[:] = np.frombuffer(content, np.uint32)

    @property
    def living(self) -> int:
        return self.worker.field(self.origin, WARP, "alive")

    @property
    def local_bytes(self) -> int:
        return self.worker.shape.local

    def local_flags(self, lane: int) -> Any:
        worker, shape = self.worker, self.worker.shape
        if not shape.local_flags:
            return None
        local = worker.field(self.origin, WARP, "local") - worker.ctx
        return np.frombuffer(worker.memory, np.bool_, shape.local, local + shape.local_flags + lane * shape.local)

    def _tops(self) -> Any:
        return np.frombuffer(self.worker.memory, np.uint32, LANES, self.origin + WARP.offset("top"))

    @property
    def tops(self) -> Any:
        return self._tops().astype(np.uint64)

    @tops.setter
    def tops(self, values: Any) -> None:
        self._tops()[:] = values

    def thread(self, lane: int) -> tuple[int, int, int]:
        x, y, _ = self.launch.block
        linear = LANES * self.warp + lane
        return linear % x, linear // x % y, linear // (x * y)

    # --- waiting ------------------------------------------------------------------------------------------------------

    def hold(self, wait: Wait) -> None:
        wait.block, wait.frame = self.worker.stopped_block(), self.origin
        self.held |= wait.lanes
        self.worker.hold(self.origin, wait)
        self.schedule.wait(wait)


class Residents:
    """Clusters of a worker that Python knows: those in which an event has happened."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.size = worker.shape.cluster
        self.clusters: dict[int, Cluster] = {}  # by the number of their first slot

    def slot_of(self, cta: int) -> int:
        """Number of the slot at an offset in the worker's memory."""
        return (cta - self.worker.first_slot) // self.worker.shape.slot

    def known(self, slot: int) -> Cluster | None:
        """The cluster in a slot, if an event has happened in it."""
        return self.clusters.get(slot - slot % self.size)

    def places(self) -> dict[tuple[int, int, int], Cta]:
        """The CTAs in whose cluster an event has happened, by their places in the grid."""
        return {cta.place: cta for cluster in self.clusters.values() for cta in cluster.ctas}

    def cta(self, offset: int) -> Cta:
        """The CTA at an offset in the worker's memory."""
        slot = self.slot_of(offset)
        first = slot - slot % self.size
        cluster = self.clusters.get(first)
        if cluster is None:
            cluster = self.clusters[first] = self._make(first)
        return cluster.ctas[slot - first]

    def _make(self, first: int) -> Cluster:
        worker = self.worker
        number = worker.field(worker.slot_offset(first), CTA, "id") // self.size
        cluster = Cluster(worker.schedule, number)
        cluster.ctas = tuple(self._cta(cluster, first, rank) for rank in range(self.size))
        return cluster

    def _cta(self, cluster: Cluster, first: int, rank: int) -> Cta:
        worker = self.worker
        at = worker.slot_offset(first + rank)
        x, y, z = (worker.field(at, CTA, axis) for axis in "xyz")
        start = worker.field(at, CTA, "shared") - worker.ctx
        shared = memoryview(worker.memory)[start : start + worker.shape.shared]
        number = cluster.number * self.size + rank
        running = worker.field(at, CTA, "state") == 1
        worker.set_field(at, CTA, "external", running)
        cta = Cta(cluster, rank, (x, y, z), number, shared, at, worker.field(at, CTA, "smid"))
        if worker.shape.flags:
            cta.flags = np.frombuffer(worker.memory, np.bool_, worker.shape.shared, start + worker.shape.flags)
        if worker.shape.marks:
            place = start + worker.shape.marks - MARKS_HEAD
            size = MARKS_HEAD + -(-worker.shape.shared // CHUNK) * CHUNK
            cta.marks = np.frombuffer(worker.memory, np.uint8, size, place)
        if worker.shape.stores:
            chunks = -(-worker.shape.shared // CHUNK)
            cta.stores = np.frombuffer(worker.memory, np.uint32, 4 * chunks, start + worker.shape.stores)
            places = (start + worker.shape.reads + worker.shape.reads_bytes * group
                      for group in range(-(-worker.shape.warps // WARPS)))  # fmt: skip
            if worker.shape.flights:
                begin, step = start + worker.shape.flights, worker.shape.reads_bytes
                cta.flights = [
                    np.frombuffer(worker.memory, np.uint32, chunks, begin + step * plane) for plane in range(PLANES)
                ]
            cta.reads = [np.frombuffer(worker.memory, np.uint32, chunks, place) for place in places]
        observers = worker.launch.observers
        if worker.shape.owners and observers is not None:
            count = OWNERS_HEAD + worker.shape.shared // observers.owners
            cta.owners = np.frombuffer(worker.memory, np.uint32, count, start + worker.shape.owners)
        cta.ended = not running
        return cta

    def ended(self, slot: int) -> None:
        """The last thread of a CTA has exited."""
        first = slot - slot % self.size
        cluster = self.clusters.get(first)
        if cluster is None:
            return
        cta = cluster.ctas[slot - first]
        self.worker.set_field(self.worker.slot_offset(slot), CTA, "external", 0)
        cta.ended = True
        for function in cta.at_end:
            function()
        if all(cta.ended for cta in cluster.ctas):
            self.worker.schedule.forget(cluster)
            del self.clusters[first]
        if self.worker.launch.observers is not None:
            self.worker.launch.observers.tell("cta_ended", cta)


__all__ = ["HANDLERS", "NativeView", "Residents", "find", "serves"]
