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
import threading
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from ptxtools.native.code.filling import array_of
from ptxtools.native.code.layouts import structure
from ptxtools.native.code.structures import CTX, RECORD

from . import pool, spare
from .worker import GIVEN

if TYPE_CHECKING:
    from ptxtools.diagnostics import Trap
    from ptxtools.machine.launch import Launch
    from ptxtools.native.code.encode import Encoded

    from .driver import _GridRun
    from .worker import Given, Shape, Tables, Worker

#: count: of workers, of whom the first runs on the calling thread; renews: their contexts are as the last launch has
#: left them; total: thread-instructions that they have executed, -1: some run still, or the first needs Python; run:
#: the loop; next: the grid's rows of PART, parts of them; unison: record of the kernel in unison, or null; slots: bytes
#: from a context to its CTAs, step: from CTA to CTA; cluster: CTAs of each worker that begin anew.
TEAM = structure(
    "team", 128, "i32: count renews\ni64: quantum total\nptr: run next unison\ni64: slots step\ni32: cluster parts"
)
#: A worker. template: what its context is at the start; seat: SEAT of who runs it, but for the first.
MEMBER = structure("member", 32, "ptr: ctx template seat")
_HEAD = struct.Struct("<iiqqQQQqqii")
_SEAT = (TEAM.size + MEMBER.offset("seat")) // 8
#: Teams that wait for another launch, the last one last; at most so many, and bytes of their memory that have been
#: used.
_idle: list[Team] = []
_MOST, _BYTES = 16, 64 << 20


class Team:
    """Workers of one launch at a time. tables: what they have in common; alike: teams of the same shape that wait;
    make: makes the run of the launch for Python, if that is needed; ctas: of the grid."""

    def __init__(self, tables: Tables, alike: list[Team], make: Callable[[Team], _GridRun], ctas: int) -> None:
        self.tables, self._alike, self._make, self._ctas = tables, alike, make, ctas
        self.workers: list[Worker] = []
        self.seats: list[pool.Seat] = []
        self._bytes = 0
        self._known: Hashable = None  # what their contexts depend on
        self._renews = False
        self._lock = threading.Lock()

    def begin(self, launch: Launch, encoded: Encoded, shape: Shape, given: Given) -> None:
        """Belong to a launch. given: what it adds to the program."""
        self.launch, self.encoded, self.shape = launch, encoded, shape
        self.run: _GridRun | None = None
        memory = launch.memory
        known = memory.host, memory.size, memory.base, memory.const
        before, self.tables.given = self.tables.given, given
        self._renews = known == self._known
        if not self._renews:
            self._known = known
            self.tables.polls.renew([])
            self._anew()
        elif given is not before:
            self._refer()
        launch.begun, launch.summary = self.begun, self.summary

    def _anew(self) -> None:
        """Make the workers ready as if they were new, and remember how they are."""
        for worker in self.workers:
            worker.join(self.launch, self.encoded, self.shape)
            worker.renew()
        self._copy()

    def _refer(self) -> None:
        """Let contexts refer to other parameters from the start."""
        for at in range(0, len(self.workers) * CTX.size, CTX.size):
            for name, address in zip(GIVEN, self.tables.given.addresses, strict=True):
                CTX.write(self._templates, at, name, address)

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
        self._address = ctypes.addressof(self._room)
        run, shape = ctypes.cast(self.encoded.run, ctypes.c_void_p).value, self.shape  # type: ignore[arg-type]
        unison = self.encoded.unison if shape.cluster == 1 else 0
        slots = self.workers[0].first_slot if count else 0
        parts = self.tables.parts
        self._alike_in_all = run, parts.address, unison, slots, shape.slot, shape.cluster, parts.count

    def complete(self, makers: Sequence[Callable[[], Worker]]) -> None:
        """Have as many workers as that. makers: of each."""
        self.workers += [make() for make in makers[len(self.workers) :]]
        self.tables.polls.renew([])
        self._anew()
        self._renews = False

    def start(self, count: int, quantum: int) -> int:
        """Run the first workers, so many, with a quantum of records each, until all have finished or the first needs
        Python: what the loop has answered for it."""
        at = _SEAT
        for number in range(1, count):
            seat = pool.take()
            self.seats.append(seat)
            seat.behind = partial(self._go_on, number)
            at += MEMBER.size // 8
            self._room[at] = seat.address
        _HEAD.pack_into(self._room, 0, count, self._renews, quantum, -1, *self._alike_in_all)
        return pool.functions().team(self._address)

    def _go_on(self, number: int, answer: int) -> None:
        """On the thread of a worker, for which the loop has given an answer that needs Python."""
        self.whole().work(self.workers[number], answer)

    def whole(self) -> _GridRun:
        """The run of the launch, for Python."""
        with self._lock:
            if self.run is None:
                for worker in self.workers:
                    worker.join(self.launch, self.encoded, self.shape)
                self.tables.polls.renew(self.seats)
                self.run = self._make(self)
            return self.run

    def begun(self) -> int:
        """As `Launch.begun`, for any thread."""
        try:
            return self.whole().begun()
        except AttributeError:  # all is over by now
            return self._ctas

    def summary(self) -> Trap:
        """As `Launch.summary`."""
        return self.whole().summary()

    @property
    def total(self) -> int:
        """Thread-instructions that have been executed if Python has not been needed; else -1."""
        return -1 if self.run is not None else int(self._total.value)

    def rest(self) -> None:
        """Wait for another launch: no Python knows of this one."""
        if not self._renews:
            self._bytes = sum(worker.used_bytes() for worker in self.workers)
            for worker in self.workers:
                worker.leave()
        for seat in self.seats:
            seat.leave()
        self.launch.begun = self.launch.summary = None
        self.part()
        self._alike.append(self)
        _idle.append(self)
        if not self._renews or len(_idle) > _MOST:
            _make_room()

    def part(self) -> None:
        """Drop what belongs to the launch."""
        with self._lock:
            self.seats = []
            self.launch = self.encoded = self.shape = self.run = None  # type: ignore[assignment]

    def end(self) -> None:
        """Give back the memory of all workers; none runs."""
        for worker in self.workers:
            spare.release(worker.memory, worker.used)

    def drop(self) -> None:
        """Be forgotten by those that look for a team."""
        with suppress(ValueError):  # somebody has just looked, and found it gone
            self._alike.remove(self)


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
        team.drop()


def forget() -> bool:
    """Give up the memory of all teams that wait; whether there were some."""
    known, _idle[:] = _idle[:], []
    for team in known:
        team.drop()
    return bool(known)


def text() -> str:
    """The function, as lines of `native.code.notation`."""
    offsets = {f"{one.name}_{name}": one.offset(name) for one in (TEAM, MEMBER) for name in one.fields}
    return _TEXT.format(
        **offsets, rows=TEAM.size, row=MEMBER.size, ctx_bytes=CTX.size, served=RECORD.offset("s2"),
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
  %parts.p = getelementptr i8, ptr %team, i64 {team_parts}
  %parts = load i32, ptr %parts.p
  br label %fresh
fresh:                                            ; nothing is claimed
  %part.number = phi i32 [0, %0], [%part.following, %fresh]
  %part.place = mul i32 %part.number, PART_BYTES
  %part = getelementptr i8, ptr %next, i32 %part.place
  %part.begin = get part.begin
  set part.next, %part.begin
  %part.following = add i32 %part.number, 1
  %part.more = icmp ult i32 %part.following, %parts
  br i1 %part.more, label %fresh, label %others
others:
  %unison.p = getelementptr i8, ptr %team, i64 {team_unison}
  %unison = load ptr, ptr %unison.p
  %step.p = getelementptr i8, ptr %team, i64 {team_step}
  %step = load i64, ptr %step.p
  %slots.p = getelementptr i8, ptr %team, i64 {team_slots}
  %slots = load i64, ptr %slots.p
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
  %left = phi i32 [%count, %others], [%count, %untried], [%number, %post]
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
  %distance = phi i64 [%slots, %renew], [%distance.next, %clear]
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
