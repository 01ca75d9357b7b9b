"""The position of every warp in a stopped run, for deadlock and time-limit reports of the native engine.

Reports are made when no worker runs any more, so nothing changes while it is read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ptxtools.machine.deadlock import PARTED, CtaLine, Waiting, asleep, in_loop, is_sleep, missing, pending, told
from ptxtools.machine.polled import Look, looks
from ptxtools.native.code.keys import RECORD_BYTES
from ptxtools.native.code.layouts import Structure
from ptxtools.native.code.structures import CTA, WARP
from ptxtools.program.program import LANES, SLOT_BYTES, Ref

from .faults import BARRIERS, cta_field, cta_of, read, thread_of, warp_field, where_at, where_of

if TYPE_CHECKING:
    from ptxtools.diagnostics import Trap
    from ptxtools.machine.launch import Dim3
    from ptxtools.machine.residents import Wait

    from .polling import Hang
    from .worker import Worker

#: Records of a block that are asked for their line, for threads that are at its beginning.
_AHEAD = 64


def report(workers: Sequence[Worker], hang: Hang) -> Trap:
    """The trap that says where each warp of each resident CTA is."""
    launch = workers[0].launch
    return told(launch.program, launch.grid, partial(_gather, workers, hang), hang.reason, hang.kind)


def gathered(workers: Sequence[Worker]) -> tuple[list[CtaLine], list[Waiting]]:
    """Lines about resident CTAs, and where each warp is, of a run that goes on."""
    lines: list[CtaLine] = []
    found: list[Waiting] = []
    _gather(workers, None, lines, found)
    return lines, found


def warp_of(worker: Worker, cta: Dim3, number: int) -> int | None:
    """Address of a warp of a resident CTA; None if the worker has no such warp."""
    for _, at in _running(worker):
        if tuple(cta_field(at, axis) for axis in "xyz") == cta and number < worker.shape.warps:
            return _warps(worker, at)[number]
    return None


def _gather(workers: Sequence[Worker], hang: Hang | None, lines: list[CtaLine], found: list[Waiting]) -> None:
    for worker in workers:
        for slot, cta in _running(worker):
            lines += _summary(worker, cta)
            found += _waiting(worker, cta)
            for warp in _warps(worker, cta):
                lanes = warp_field(warp, "ready")
                for wait in worker.woken.get(warp - worker.ctx, ()):  # they only poll
                    lanes &= ~_note_wait(worker, found, wait, wait.left & lanes if wait.expired else 0)
                _running_lanes(worker, found, warp, lanes, hang is not None and hang.loops)
            if slot % worker.shape.cluster == 0:
                lines += [(None, text) for text in pending(worker.schedule, worker.residents.known(slot))]
        for wait in worker.schedule.waits():
            _note_wait(worker, found, wait, wait.lanes)


def _running(worker: Worker) -> Iterator[tuple[int, int]]:
    """Slots and addresses of the worker's CTAs that have threads left."""
    for slot in range(worker.get("slot_used")):
        cta = worker.ctx + worker.slot_offset(slot)
        if cta_field(cta, "state") == 1:
            yield slot, cta


def _warps(worker: Worker, cta: int) -> list[int]:
    shape = worker.shape
    return [cta + shape.warps_offset + i * shape.warp_bytes for i in range(shape.warps)]


def _summary(worker: Worker, cta: int) -> list[CtaLine]:
    """The number of threads that have come to each barrier of a CTA."""
    place = (cta_field(cta, "x"), cta_field(cta, "y"), cta_field(cta, "z"))
    lines: list[CtaLine] = []
    for number in range(BARRIERS):
        arrived = _item(cta, CTA, "arrived", number)
        if arrived:
            expected = _item(cta, CTA, "expected", number) or cta_field(cta, "alive")
            lines.append((place, f"{arrived} of {expected} threads came to barrier {number}"))
    return lines


def _item(address: int, structure: Structure, name: str, number: int) -> int:
    return read(address + structure.offset(name) + 4 * number, 4)


def _waiting(worker: Worker, cta: int) -> list[Waiting]:
    """The waits of the warps of a CTA. Lanes that Python has stopped are in the schedule."""
    found: list[Waiting] = []
    leader = cta_field(cta, "leader")
    in_cluster = cta_field(leader, "cl_alive") if worker.shape.cluster > 1 else cta_field(cta, "alive")
    used = cta_field(cta, "pending")
    for warp in _warps(worker, cta):
        for number in range(BARRIERS) if used else ():
            arrived, some = _item(cta, CTA, "arrived", number), _item(cta, CTA, "expected", number)
            what = f"at barrier {number}: {missing(arrived, some or cta_field(cta, 'alive'))}"
            _note(worker, found, warp, _item(warp, WARP, "waiting", number), what, for_all=not some)
        what = f"at the cluster barrier: {missing(cta_field(leader, 'cl_came'), in_cluster)}"
        _note(worker, found, warp, warp_field(warp, "cl_waiting"), what, for_all=True)
        _note(worker, found, warp, warp_field(warp, "parked"), PARTED)
    return found


def _note_wait(worker: Worker, found: list[Waiting], wait: Wait, lanes: int) -> int:
    """Note lanes of a wait that Python knows, and return them."""
    warp, rest = worker.ctx + wait.frame, lanes
    if lanes and is_sleep(wait):
        seen, rest = _looks(worker, warp, wait.block // 2, lanes)
        for look in seen:
            _note(worker, found, warp, look.lanes, asleep(wait, look), look.where)
    _note(worker, found, warp, rest, f"for {wait.text}", wait.where)
    return lanes


def _running_lanes(worker: Worker, found: list[Waiting], warp: int, lanes: int, loops: bool) -> None:
    """Lanes that could run: their positions, and the mbarriers that their loops wait for."""
    blocks: dict[int, int] = {}
    for lane in range(LANES):
        if lanes >> lane & 1:
            block = _block_of(worker, warp, lane)
            blocks[block] = blocks.get(block, 0) | 1 << lane
    for block, there in sorted(blocks.items()):
        seen, rest = _looks(worker, warp, block, there)
        for look in seen:
            _note(worker, found, warp, look.lanes, in_loop(look, stuck=loops), look.where, runs=not loops)
        _note(worker, found, warp, rest, in_loop(None, stuck=loops), runs=not loops)


def _block_of(worker: Worker, warp: int, lane: int) -> int:
    """The program's block at which a lane that can run is."""
    if not warp_field(warp, "group") >> lane & 1:
        return _item(warp, WARP, "pc", lane) // 2
    return _at(worker, warp_field(warp, "group_ip") - worker.get("code"))


def _looks(worker: Worker, warp: int, block: int, lanes: int) -> tuple[list[Look], int]:
    """mbarriers that lanes at a block poll, and the lanes that poll none."""
    shape, leader = worker.shape, cta_field(warp_field(warp, "cta"), "leader")
    group, depth = warp_field(warp, "group"), warp_field(warp, "group_frame")

    def content(ref: Ref, lane: int) -> int:
        frame = 0
        if worker.get("has_calls"):
            frame = depth if group >> lane & 1 else _item(warp, WARP, "frame", lane)
        size = SLOT_BYTES[ref.type] // LANES
        return read(warp + WARP.size + frame + ref.slot + size * lane, size)

    def word(rank: int, offset: int) -> int | None:
        if rank >= shape.cluster or offset + 8 > shape.shared:
            return None
        return read(cta_field(leader + rank * shape.slot, "shared") + offset, 8)

    rank = cta_field(warp_field(warp, "cta"), "rank") if shape.cluster > 1 else None
    return looks(worker.launch.program, block, lanes, rank, content, word)


def places(worker: Worker, warp: int, lanes: int) -> dict[int, int]:
    """Lines at which lanes of a warp are, and which lanes are there."""
    found: dict[int, int] = {}
    together = warp_field(warp, "group") & lanes
    ready, parked = warp_field(warp, "ready"), warp_field(warp, "parked")
    if together & ready:
        found[_line(worker, warp_field(warp, "group_ip"))] = together
    elif together:
        found[where_of(worker, warp_field(warp, "wait_ip"))] = together
    for lane in range(LANES):
        if (lanes & ~together) >> lane & 1:
            if parked >> lane & 1:  # the block has only this instruction
                where = worker.launch.program.blocks[_item(warp, WARP, "pc", lane) // 2].terminator.where
            elif ready >> lane & 1:
                where = _line(worker, _block(worker, _item(warp, WARP, "pc", lane)))
            else:
                where = where_at(worker, _item(warp, WARP, "wait_at", lane) // RECORD_BYTES)
            found[where] = found.get(where, 0) | 1 << lane
    return found


def _at(worker: Worker, offset: int) -> int:
    """The program's block at an offset of the code: each has two numbers, of its beginning and of its end."""
    return (bisect_right(worker.encoded.blocks, offset) - 1) // 2


def _block(worker: Worker, number: int) -> int:
    """Address of the first record of a block."""
    return worker.get("code") + read(worker.get("blocks") + 4 * number, 4)


def _line(worker: Worker, ip: int) -> int:
    """The line of the record at an address, or of the next one with a line: operations made by lowering have none."""
    for _ in range(_AHEAD):
        where = where_of(worker, ip)
        if where >= 0:
            return where
        ip += RECORD_BYTES
    return -1


def _note(
    worker: Worker, found: list[Waiting], warp: int, lanes: int, what: str = "", where: int | None = None, *,
    runs: bool = False, for_all: bool = False,
) -> None:  # fmt: skip
    """One entry for each place at which lanes are; `where`: all at this line."""
    if not lanes:
        return
    here = places(worker, warp, lanes) if where is None else {where: lanes}
    for place, there in sorted(here.items()):
        first = thread_of(worker.launch, warp, (there & -there).bit_length() - 1)
        found.append(Waiting(cta_of(warp), warp_field(warp, "id"), there, what, place, first, runs, for_all))
