"""racecheck: accesses of different warps to the same byte of shared memory that no barrier orders.

Every warp has a vector clock. A barrier, an mbarrier and a strong access (volatile, atomic, with a memory order) carry
what a warp knows to others; two accesses race when neither is known to whoever does the other, at least one writes, and
not both are strong. Order inside a warp is taken for granted, and copies of the asynchronous engines are not looked at.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxtools.machine.residents import Cta
from ptxtools.program.program import LANES, OFFSET_MASK, RANK_SHIFT
from ptxtools.semantics.types import bits_of

if TYPE_CHECKING:
    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Access
    from ptxtools.sim.device import Grid

    from .session import Session

Array: TypeAlias = npt.NDArray[Any]

_NAME = "racecheck"


class _Shadow:
    """Last accesses to the bytes of a CTA's shared memory. Times are of the accessing warp's own clock; 0: never."""

    def __init__(self, size: int) -> None:
        self.writer = np.zeros(size, np.int32)  # warp of the last write
        self.written = np.zeros(size, np.int64)  # its time
        self.thread = np.zeros(size, np.int32)
        self.where = np.full(size, -1, np.int32)
        self.strong = np.zeros(size, np.bool_)  # the last write was strong
        self.value = np.full(size, -1, np.int16)  # what it wrote; -1: not known
        self.reads: dict[int, _Reads] = {}  # by warp

    def reads_of(self, warp: int) -> _Reads:
        if warp not in self.reads:
            self.reads[warp] = _Reads(len(self.writer))
        return self.reads[warp]


class _Reads:
    def __init__(self, size: int) -> None:
        self.time = np.zeros(size, np.int64)
        self.thread = np.zeros(size, np.int32)
        self.where = np.full(size, -1, np.int32)
        self.strong = np.zeros(size, np.bool_)


class _Clocks:
    """Clocks of a cluster's warps, numbered through its CTAs, and what barriers carry."""

    def __init__(self, warps: int, threads: int) -> None:
        self.time = np.zeros((warps, warps), np.int64)
        np.fill_diagonal(self.time, 1)
        self.carried: dict[Any, Array] = {}
        self.passes: dict[Any, Array] = {}
        self.threads = threads

    def give(self, warp: int, key: Any) -> None:
        """Let others who take from `key` know what this warp knows."""
        known = self.carried.get(key)
        mine = self.time[warp]
        self.carried[key] = mine.copy() if known is None else np.maximum(known, mine)
        self.time[warp, warp] += 1

    def take(self, warp: int, key: Any) -> None:
        known = self.carried.get(key)
        if known is not None:
            np.maximum(self.time[warp], known, out=self.time[warp])


class RaceCheck:
    """Shadows and clocks hang on the CTAs and clusters, and end with them."""

    def __init__(self, session: Session, grid: Grid) -> None:
        self._session: Session = weakref.proxy(session)  # which outlives this

    # --- synchronisation ----------------------------------------------------------------------------------------------

    def arrive(self, at: View, what: str, lanes: Array) -> None:
        """Lanes come to a barrier: what their warp knows is known to whoever passes it with them."""
        clocks, warp = _clocks(at), _warp(at)
        for key in _keys(at, what, lanes, clocks, arriving=True):
            clocks.give(warp, key)
            if key[0] in ("bar", "cluster"):
                clocks.carried.pop((*key[:-1], key[-1] - 2), None)

    def leave(self, at: View, what: str, lanes: Array) -> None:
        if what not in ("arrive", "cluster arrive", "warp"):
            clocks = _clocks(at)
            for key in _keys(at, what, lanes, clocks, arriving=False):
                clocks.take(_warp(at), key)

    # --- accesses -----------------------------------------------------------------------------------------------------

    def access(self, at: View, access: Access) -> None:
        """Lanes access shared memory, of their CTA or another one of the cluster."""
        if access.space == "shared" and access.action != "copy":
            self._access(self._session, at, access)

    def _access(self, session: Session, view: View, access: Access) -> None:
        ranks = access.addresses.astype(np.int64) >> RANK_SHIFT
        clocks, warp = _clocks(view), _warp(view)
        strong = access.strong or access.action == "atomic"
        for rank in np.unique(ranks).tolist():
            if rank >= len(view.cluster.ctas):
                continue  # out of bounds: the access itself will trap
            owner = view.cluster.ctas[rank]
            mine = ranks == rank
            lanes = access.lanes[mine]
            offsets = access.addresses[mine].astype(np.int64) & OFFSET_MASK
            bytes_ = (offsets[:, None] + np.arange(access.size)).ravel()
            lanes = lanes.repeat(access.size)
            inside = bytes_ < len(owner.shared)
            if strong:
                for offset in np.unique(offsets).tolist():
                    clocks.take(warp, ("strong", rank, offset))
            self._bytes(session, view, access, owner, bytes_[inside], lanes[inside], strong)
            if strong and access.writes:
                for offset in np.unique(offsets).tolist():
                    clocks.give(warp, ("strong", rank, offset))

    def _bytes(
        self, session: Session, view: View, access: Access, owner: Cta, bytes_: Array, lanes: Array, strong: bool
    ) -> None:
        clocks, warp, shadow = _clocks(view), _warp(view), _shadow(owner)
        known = clocks.time[warp]
        writer = shadow.writer[bytes_]
        stored = _stored(view, access, lanes)
        racing = (writer != warp) & (shadow.written[bytes_] > known[writer]) & ~(shadow.strong[bytes_] & strong)
        if stored is not None:  # to write the same value again harms nobody
            racing &= shadow.value[bytes_] != stored
        if racing.any():
            at = int(np.flatnonzero(racing)[0])
            place = int(bytes_[at])
            before = (int(shadow.writer[place]), int(shadow.thread[place]), int(shadow.where[place]), "write")
            _report(session, view, access, owner, place, int(lanes[at]), before)
        threads = (LANES * view.warp + lanes).astype(np.int32)
        if not access.writes:
            reads = shadow.reads_of(warp)
            reads.time[bytes_], reads.thread[bytes_] = known[warp], threads
            reads.where[bytes_], reads.strong[bytes_] = view.op.where, strong
            return
        for other, reads in shadow.reads.items():
            racing = (reads.time[bytes_] > known[other]) & ~(reads.strong[bytes_] & strong)
            if other != warp and racing.any():
                at = int(np.flatnonzero(racing)[0])
                place = int(bytes_[at])
                before = (other, int(reads.thread[place]), int(reads.where[place]), "read")
                _report(session, view, access, owner, place, int(lanes[at]), before)
        shadow.writer[bytes_], shadow.written[bytes_], shadow.thread[bytes_] = warp, known[warp], threads
        shadow.where[bytes_], shadow.strong[bytes_] = view.op.where, strong
        shadow.value[bytes_] = -1 if stored is None else stored


def _report(
    session: Session, view: View, access: Access, owner: Cta, place: int, lane: int, before: tuple[int, int, int, str]
) -> None:
    warp, thread, where, action = before
    x, y, _ = view.launch.block
    coordinates = f"({thread % x},{thread // x % y},{thread // (x * y)})"
    per_cta = _warps(view)
    other = view.cluster.ctas[warp // per_cta]
    whose = f"thread {coordinates}" if other is view.cta else f"thread {coordinates} of {other}"
    file, line, text = session.place(view.launch.program, where)
    origin = session.source_of(view.launch.program, where)
    at = f" at {file}:{line}{f' ({origin})' if origin else ''}" if line is not None else ""
    did = "written" if action == "write" else "read"
    message = f"race on byte {place:#x} of the shared memory of {owner}: {access.action} here, {did} by {whose}{at}"
    key = (view.op.where, where, access.action, action)
    session.report(view, lane, _NAME, f"{message}, with no barrier between", key, (" ".join(text.split()),))


def _stored(view: View, access: Access, lanes: Array) -> Array | None:
    """The bytes that a plain store stores, in the order of `lanes`, each of which stands there for every byte."""
    types = view.op.src_types[2:]
    if access.action != "write" or view.op.kind != "observe.access" or not types or len(lanes) % access.size:
        return None
    columns = []
    for number, type_ in enumerate(types):
        value = view.source(2 + number)
        parts = value if isinstance(value, tuple) else (value,)
        width = max(1, bits_of(type_) // 8)
        columns += [part.astype("<u8").view(np.uint8).reshape(LANES, 8)[:, : min(width, 8)] for part in parts]
    words = np.concatenate(columns, axis=1)
    found: Array = words[lanes, np.tile(np.arange(access.size), len(lanes) // access.size)].astype(np.int16)
    return found


# --- state ------------------------------------------------------------------------------------------------------------


def _warps(view: View) -> int:
    x, y, z = view.launch.block
    return -(-x * y * z // LANES)


def _warp(view: View) -> int:
    """Number of the warp in its cluster."""
    return view.cta.rank * _warps(view) + view.warp


def _clocks(view: View) -> _Clocks:
    state = view.cluster.state
    if _NAME not in state:
        warps = _warps(view) * len(view.cluster.ctas)
        state[_NAME] = _Clocks(warps, LANES * warps)
    clocks: _Clocks = state[_NAME]
    return clocks


def _shadow(cta: Cta) -> _Shadow:
    if _NAME not in cta.state:
        cta.state[_NAME] = _Shadow(len(cta.shared))
    shadow: _Shadow = cta.state[_NAME]
    return shadow


def _keys(view: View, what: str, lanes: Array, clocks: _Clocks, *, arriving: bool) -> set[Any]:
    """What lanes meet at: a phase of a barrier, told by how often each has passed it; or an mbarrier."""
    if what.startswith("mbarrier"):
        return {("mbarrier", int(address)) for address in view.addresses()[lanes]}
    cluster = what.startswith("cluster")
    numbers = np.zeros(len(lanes), np.int64) if cluster else view.source(0)[lanes].astype(np.int64)
    keys = set()
    for lane, number in zip(lanes.tolist(), numbers.tolist(), strict=True):
        name = ("cluster",) if cluster else ("bar", view.cta.rank, number)
        passes = clocks.passes.setdefault(name, np.zeros(clocks.threads, np.int64))
        thread = LANES * _warp(view) + lane
        if arriving and what != "cluster wait":
            passes[thread] += 1
        keys.add((*name, int(passes[thread])))
    return keys
