"""Workers of launches that run without Python, and stay for the next launch like theirs.

Most launches of a kernel are like the one before: the same shape, on the same device. They need no new workers: one
native call makes those of the last launch ready again (their contexts are copied from what they were at its start),
gives all but the first to threads of the pool, runs the first on the calling thread, and waits for the others. Where
all have finished without Python, nothing is left to do but to read how much they have executed.

A worker that Python had to serve is not used again: what Python knows of it belongs to one launch.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

from ptxtools.native.code.filling import array_of
from ptxtools.native.code.layouts import structure
from ptxtools.native.code.structures import CTX, RECORD

from . import pool, spare

if TYPE_CHECKING:
    from ptxtools.machine.launch import Launch
    from ptxtools.native.code.encode import Encoded

    from .worker import Shape, Tables, Worker

#: count: of workers, of whom the first runs on the calling thread; renews: their contexts are as the last launch has
#: left them; total: thread-instructions that they have executed, -1: some run still, or the first needs Python; run:
#: the loop; next: grid-wide counter of CTAs; unison: record of the kernel in unison, or null; step: bytes from CTA to
#: CTA; cluster: CTAs in each worker's memory that begin anew.
TEAM = structure("team", 64, "i32: count renews\ni64: quantum total\nptr: run next unison\ni64: step\ni32: cluster")
#: A worker. template: what its context is at the start; seat: SEAT of who runs it, but for the first.
MEMBER = structure("member", 32, "ptr: ctx template seat")
_HEAD = struct.Struct("<iiqqQQQqi")
_SEAT = (TEAM.size + MEMBER.offset("seat")) // 8
#: Teams that wait for another launch, the last one last; at most so many, and bytes of their memory that have been
#: used.
_idle: list[Team] = []
_MOST, _BYTES = 16, 64 << 20


class Team:
    """Workers of one launch at a time. tables: what they have in common; alike: teams of the same shape that wait."""

    def __init__(self, shape: Shape, encoded: Encoded, tables: Tables, alike: list[Team]) -> None:
        self.tables, self._alike = tables, alike
        self.workers: list[Worker] = []
        self._bytes = 0
        self._known: Hashable = None  # what their contexts depend on
        self._renews = False
        self._run = ctypes.cast(encoded.run, ctypes.c_void_p).value  # type: ignore[arg-type]
        self._unison = encoded.unison if shape.cluster == 1 else 0
        self._step, self._cluster = shape.slot, shape.cluster

    def begin(self, launch: Launch, encoded: Encoded, shape: Shape) -> None:
        """Belong to a launch, for which the tables are there."""
        memory = launch.memory
        known = memory.host, memory.size, memory.base, memory.const, self.tables.given
        for worker in self.workers:
            worker.join(launch, encoded, shape)
        self._renews = known == self._known
        if not self._renews:
            self._known = known
            self._anew()

    def _anew(self) -> None:
        """Make the workers ready as if they were new, and remember how they are."""
        for worker in self.workers:
            worker.renew()
        self._copy()

    def _copy(self) -> None:
        count, row = len(self.workers), MEMBER.size // 8
        self._templates = array_of(ctypes.c_char, max(1, count * CTX.size))()
        self._room = array_of(ctypes.c_uint64, TEAM.size // 8 + count * row)()
        for number, worker in enumerate(self.workers):
            template = ctypes.addressof(self._templates) + number * CTX.size
            ctypes.memmove(template, worker.ctx, CTX.size)
            at = TEAM.size // 8 + number * row
            self._room[at : at + 2] = [worker.ctx, template]
        self._total = ctypes.c_int64.from_buffer(self._room, TEAM.offset("total"))

    def complete(self, count: int, make: Callable[[int], Worker]) -> list[Worker]:
        """The first workers, so many; make: makes one of a number."""
        if len(self.workers) < count:
            for worker in self.workers:
                worker.renew()
            self.workers += [make(number) for number in range(len(self.workers), count)]
            self._renews = False
            self._copy()
        return self.workers[:count]

    def run(self, quantum: int, seats: Sequence[pool.Seat]) -> int:
        """Run the first worker, and others on seats, with a quantum of records each, until all have finished or the
        first needs Python: what the loop has answered for it."""
        _HEAD.pack_into(
            self._room, 0, 1 + len(seats), self._renews, quantum, -1, self._run, ctypes.addressof(self.tables.next),
            self._unison, self._step, self._cluster,
        )  # fmt: skip
        at = _SEAT
        for seat in seats:
            at += MEMBER.size // 8
            self._room[at] = seat.address
        return pool.functions().team(ctypes.addressof(self._room))

    @property
    def total(self) -> int:
        """Thread-instructions that have been executed; -1: not all have finished natively."""
        return int(self._total.value)

    def rest(self, used: Sequence[Worker]) -> bool:
        """Wait for another launch, if no Python knows of this one; whether that is so. used: workers of this one."""
        if not all(worker.untouched for worker in used):
            return False
        if len(used) > len(self.workers):
            if [worker.number for worker in used] != list(range(len(used))):
                return False
            self.workers, self._known = list(used), None
        if not self._renews:
            self._bytes = sum(worker.used_bytes() for worker in self.workers)
        for worker in self.workers:
            worker.leave()
        self._alike.append(self)
        _idle.append(self)
        if not self._renews or len(_idle) > _MOST:
            _make_room()
        return True

    def end(self) -> None:
        """Give back the memory of all workers; none runs."""
        for worker in self.workers:
            spare.release(worker.memory, worker.used)


def take(alike: list[Team]) -> Team | None:
    """One of some teams; nobody else has it then."""
    while alike:
        try:
            team = alike.pop()
            _idle.remove(team)
        except (IndexError, ValueError):  # somebody has just taken the last one; it has ended
            continue
        return team
    return None


def _make_room() -> None:
    """End those that have waited longest, where there are too many."""
    while len(_idle) > _MOST or sum(team._bytes for team in list(_idle)) > _BYTES:
        try:
            team = _idle.pop(0)
        except IndexError:
            return
        team.end()


def forget() -> bool:
    """Give up the memory of all teams that wait; whether there were some."""
    known, _idle[:] = _idle[:], []
    return bool(known)


def text() -> str:
    """The function, as lines of `native.code.notation`."""
    offsets = {f"{one.name}_{name}": one.offset(name) for one in (TEAM, MEMBER) for name in one.fields}
    return _TEXT.format(
        **offsets, rows=TEAM.size, row=MEMBER.size, page=spare.PAGE, ctx_bytes=CTX.size, served=RECORD.offset("s2"),
        served_bytes=RECORD.offset("guard") - RECORD.offset("s2"), wall=0,
    )  # fmt: skip


_TEXT = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define i32 @team_run(ptr %team) #0 {{             ; RUN_* code of the first
  %count = load i32, ptr %team
  %renews.p = getelementptr i8, ptr %team, i64 {team_renews}
  %renews.i = load i32, ptr %renews.p
  %renews = icmp ne i32 %renews.i, 0
  %quantum.p = getelementptr i8, ptr %team, i64 {team_quantum}
  %quantum = load i64, ptr %quantum.p
  %total.p = getelementptr i8, ptr %team, i64 {team_total}
  %run.p = getelementptr i8, ptr %team, i64 {team_run}
  %loop = load ptr, ptr %run.p
  %next.p = getelementptr i8, ptr %team, i64 {team_next}
  %next = load ptr, ptr %next.p
  store i64 0, ptr %next
  %unison.p = getelementptr i8, ptr %team, i64 {team_unison}
  %unison = load ptr, ptr %unison.p
  %step.p = getelementptr i8, ptr %team, i64 {team_step}
  %step = load i64, ptr %step.p
  %cluster.p = getelementptr i8, ptr %team, i64 {team_cluster}
  %cluster = load i32, ptr %cluster.p
  %epoch = call i64 @moment(i32 {wall})
  %plain = icmp eq ptr %unison, null
  br i1 %plain, label %each, label %untried
untried:                                          ; parts try again what they have missed
  %served = getelementptr i8, ptr %unison, i64 {served}
  call void @llvm.memset.p0.i64(ptr %served, i8 0, i64 {served_bytes}, i1 false)
  br label %each
each:                                             ; the others first: they begin meanwhile
  %left = phi i32 [%count, %0], [%count, %untried], [%number, %post]
  %number = sub i32 %left, 1
  %place = mul i32 %number, {row}
  %far = add i32 %place, {rows}
  %member = getelementptr i8, ptr %team, i32 %far
  %ctx = load ptr, ptr %member
  br i1 %renews, label %renew, label %ready
renew:
  %template.p = getelementptr i8, ptr %member, i64 {member_template}
  %template = load ptr, ptr %template.p
  call void @llvm.memcpy.p0.p0.i64(ptr align 64 %ctx, ptr %template, i64 {ctx_bytes}, i1 false)
  br label %clear
clear:                                            ; registers, too: they are made ready with the CTA
  %rank = phi i32 [0, %renew], [%rank.next, %clear]
  %distance = phi i64 [{page}, %renew], [%distance.next, %clear]
  %cta = getelementptr i8, ptr %ctx, i64 %distance
  call void @llvm.memset.p0.i64(ptr align 64 %cta, i8 0, i64 CTA_BYTES, i1 false)
  %distance.next = add i64 %distance, %step
  %rank.next = add i32 %rank, 1
  %further = icmp ult i32 %rank.next, %cluster
  br i1 %further, label %clear, label %ready
ready:
  set ctx.quantum, %quantum
  set ctx.epoch, %epoch
  %other = icmp ne i32 %number, 0
  br i1 %other, label %post, label %begin
post:
  %post.p = getelementptr i8, ptr %member, i64 {member_seat}
  %post.seat = load ptr, ptr %post.p
  call void @seat_post(ptr %post.seat, ptr %loop, ptr %ctx)
  br label %each
begin:
  %answer = call i32 %loop(ptr %ctx)
  %finished = icmp eq i32 %answer, RUN_FINISHED
  br i1 %finished, label %first, label %out
first:
  %mine = get ctx.count
  br label %gather
gather:
  %n = phi i32 [1, %first], [%n.next, %over]
  %sum = phi i64 [%mine, %first], [%sum.next, %over]
  %more = icmp ult i32 %n, %count
  br i1 %more, label %wait, label %all
wait:                                             ; nothing is left for one that has not begun
  %wait.place = mul i32 %n, {row}
  %wait.far = add i32 %wait.place, {rows}
  %wait.member = getelementptr i8, ptr %team, i32 %wait.far
  %wait.p = getelementptr i8, ptr %wait.member, i64 {member_seat}
  %wait.seat = load ptr, ptr %wait.p
  %dropped = call i32 @seat_drop(ptr %wait.seat)
  %ended = call i32 @seat_wait(ptr %wait.seat)
  %there = icmp ne i32 %ended, 0
  br i1 %there, label %over, label %out
over:
  %wait.ctx = load ptr, ptr %wait.member
  %theirs = get ctx.count of %wait.ctx
  %sum.next = add i64 %sum, %theirs
  %n.next = add i32 %n, 1
  br label %gather
all:
  store i64 %sum, ptr %total.p
  br label %out
out:
  ret i32 %answer
}}
"""
