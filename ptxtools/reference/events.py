"""Operations served by Python functions (`machine.events`), one warp at a time; their view of clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ptxtools.diagnostics import Trap
from ptxtools.machine.events import View, find, words_at
from ptxtools.machine.residents import Cluster, Cta, Wait, take_back
from ptxtools.program.details import Callee
from ptxtools.program.program import LANES, Op, Ref, Terminator

from .registry import Array, Threads, ends

if TYPE_CHECKING:
    from ptxtools.machine.arrays import NumpyAlgebra

    from .machine import Machine


def _flags(mask: int) -> Array:
    return np.array([mask >> lane & 1 for lane in range(LANES)], np.bool_)


class ReferenceView(View):
    """Threads of one warp; `first` is the number of its lane 0."""

    def __init__(self, m: Machine, op: Op, first: int, mask: int) -> None:
        self.m, self.op, self.mask, self.first = m, op, mask, first
        self.launch, self.schedule = m.launch, m.schedule
        self.warp = int(m.thread_of[first]) // LANES
        self.cta = m.residents.cta(int(m.slot_of[first]))
        self.everyone = np.arange(first, first + LANES)
        self.held = 0
        self.came = take_back(m.woken, first, mask)

    @property
    def algebra(self) -> NumpyAlgebra:
        return self.m.algebra

    @property
    def below(self) -> int:
        return self.m.here

    def values(self, ref: Ref) -> Any:
        return self.m.read(ref, self.everyone)

    def set_values(self, ref: Ref, values: Any, mask: int | None = None) -> None:
        chosen = _flags(self.mask if mask is None else mask)
        if isinstance(values, tuple):
            values = tuple(np.broadcast_to(part, LANES)[chosen] for part in values)
        else:
            values = np.broadcast_to(values, LANES)[chosen]
        self.m.put(ref, values, self.everyone[chosen])

    def words(self, ref: Ref, lane: int) -> list[tuple[int, int]]:
        arrays = self.m.arrays(ref)
        found = []
        for array in arrays if isinstance(arrays, tuple) else (arrays,):
            size = array.dtype.itemsize
            found += words_at(array.__array_interface__["data"][0] + size * (self.first + lane), size)
        return found

    def _place(self, lane: int, address: int) -> int:
        return (self.first + lane) * self.m.local_bytes + address

    def local(self, lane: int, address: int, size: int) -> bytes:
        at = self._place(lane, address)
        return self.m.local.bytes[at : at + size].tobytes()

    def set_local(self, lane: int, address: int, data: bytes) -> None:
        at = self._place(lane, address)
        self.m.local.bytes[at : at + len(data)] = np.frombuffer(data, np.uint8)

    @property
    def living(self) -> int:
        return self.m.living(self.everyone)

    @property
    def local_bytes(self) -> int:
        return self.m.local_bytes

    @property
    def tops(self) -> Any:
        return self.m.top[self.everyone]

    @tops.setter
    def tops(self, values: Any) -> None:
        self.m.top[self.everyone] = values

    def thread(self, lane: int) -> tuple[int, int, int]:
        return self.m.thread_coordinates(self.first + lane)

    def hold(self, wait: Wait) -> None:
        wait.frame = self.first
        self.held |= wait.lanes
        self.m.blocked[self.first : self.first + LANES] |= _flags(wait.lanes)
        self.schedule.wait(wait)


def release(m: Machine, wait: Wait) -> None:
    """Let the waiting lanes try again."""
    first = wait.frame
    m.blocked[first : first + LANES] &= ~_flags(wait.lanes)
    m.woken.setdefault(first, []).append(wait)


class Residents:
    """Clusters in which an event has happened, by the CTA slot of their first CTA."""

    def __init__(self, m: Machine) -> None:
        self.m = m
        self.clusters: dict[int, Cluster] = {}

    def known(self, slot: int) -> Cluster | None:
        return self.clusters.get(slot - slot % self.m.cluster)

    def cta(self, slot: int) -> Cta:
        """The CTA in a slot."""
        m = self.m
        first = slot - slot % m.cluster
        cluster = self.clusters.get(first)
        if cluster is None:
            cluster = self.clusters[first] = Cluster(m.schedule, m.cluster_number(first))
            cluster.ctas = tuple(self._make(cluster, first + rank, rank) for rank in range(m.cluster))
        return cluster.ctas[slot - first]

    def _make(self, cluster: Cluster, slot: int, rank: int) -> Cta:
        m = self.m
        start = slot * m.shared_stride
        shared = m.shared.bytes.data[start : start + m.shared_bytes]
        number = cluster.number * m.cluster + rank
        cta = Cta(cluster, rank, m.cta_coordinates(slot), number, shared, slot, slot % m.launch.sms)
        cta.ended = not m.alive(slot)
        return cta

    def ended(self, slot: int) -> None:
        """The last thread of the CTA in a slot has exited."""
        cluster = self.known(slot)
        if cluster is None:
            return
        cta = cluster.ctas[slot % self.m.cluster]
        cta.ended = True
        for function in cta.at_end:
            function()
        if all(cta.ended for cta in cluster.ctas):
            self.m.schedule.forget(cluster)
            del self.clusters[slot - slot % self.m.cluster]
        if self.m.launch.observers is not None:
            self.m.launch.observers.tell("cta_ended", cta)


@ends("event")
def event(m: Machine, end: Terminator, threads: Threads) -> None:
    """Serve warp by warp; lanes that do not wait continue after the operation."""
    assert end.op is not None
    serve = find(m.launch, end.op.kind)
    if serve is None:
        raise _unsupported(m, end.op, int(threads[0]))
    here = (m.here, m.function)
    for warp in dict.fromkeys((threads // LANES).tolist()):
        mine = threads[threads // LANES == warp]
        mask = sum(1 << lane for lane in (mine % LANES).tolist())
        m.here, m.function = here
        view = ReferenceView(m, end.op, warp * LANES, mask)
        m.pc[mine] = end.other
        block = m.running
        serve(view)
        if view.held:
            m.pc[warp * LANES + np.flatnonzero(_flags(view.held))] = block


def _unsupported(m: Machine, op: Op, thread: int) -> Trap:
    name = op.detail.name if isinstance(op.detail, Callee) else op.kind
    return m.trap(f"{name} is not supported yet", thread, op.where)
