"""Threads that run native shares of launches without Python: they wait for the next one natively, too.

A launch that is known to be long gives each of them a worker's context. A thread calls the native loop for it, and when
that has nothing left to do, waits for another: it looks again and again for a moment, then it sleeps. Only where the
loop needs Python does the thread come back from native code, and goes on as other threads do (`helpers`). The launching
thread waits for the end in the same way.

On a busy machine nobody waits for the processor because of a thread that only looks: it offers it to others at each
look, and when its clock tells that others have had it, it sleeps at once, and so it does the next times, the more
often the more often that has happened since looking last led to work.

Written for Linux, whose futexes threads sleep at. All changes of a seat's words are atomic.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import platform
import sys
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from ptxtools.native.code.layouts import structure
from ptxtools.records import NamedTuple

#: Nanoseconds for which a thread looks before it sleeps; between two looks, by which it sees that others have run; for
#: which it sleeps before it ends; for which the launching thread sleeps before Python looks for signals.
LOOK, GAP, IDLE, SIGNALS = 150_000, 20_000, 1_000_000_000, 50_000_000
#: How often nobody looks where others have just run, at first and at most; it doubles each time.
BUSY, BUSIEST = 4, 128

#: state: FREE, ASLEEP, POSTED (there is work), TAKEN; over: RUNNING, AWAITED (somebody sleeps until it is over), or it
#: is over: NATIVELY, or AFTERWARDS, behind Python. ends: nobody needs the thread; busy: how often it sleeps at once,
#: more: and the next time that others have run. run: the loop; ctx: the worker's context; idle: nanoseconds for which
#: the thread sleeps before it ends.
SEAT = structure("seat", 64, "i32: state over ends busy\nptr: run ctx\ni64: idle\ni32: more")
_FREE, _ASLEEP, _POSTED, _TAKEN = range(4)
_RUNNING, _NATIVELY, _AWAITED, _AFTERWARDS = range(4)
#: What `serve` answers where it is not a RUN_* code that Python has to see to.
_EXPIRED = -1

#: Numbers of the system call, by machine.
_FUTEX = {"x86_64": 202, "aarch64": 98}
_NAMES = "seat_serve", "seat_post", "seat_rouse", "seat_drop", "seat_wait", "seat_finish", "team_run"

_free: list[Seat] = []
_all: list[Seat] = []
_ended: list[bool] = []
#: Whether the functions are being made.
_begun: list[bool] = []


def possible() -> bool:
    """Whether there is such a pool on this machine, and a processor for each of two threads."""
    return known() and not _ended and len(os.sched_getaffinity(0)) > 1


def ended() -> bool:
    """Whether the process ends, and there will be no such pool any more."""
    return bool(_ended)


@cache
def known() -> bool:
    """Whether its functions can be had on this machine."""
    return sys.platform == "linux" and platform.machine() in _FUTEX


class _Functions(NamedTuple):
    serve: Callable[[int], int]
    post: Callable[[int, Any, int], None]
    rouse: Callable[[int], None]
    drop: Callable[[int], int]
    wait: Callable[[int], int]
    finish: Callable[[int], None]
    team: Callable[[int], int]


def ready() -> bool:
    """Whether its functions are there. Where that would mean to wait for LLVM, they are made beside the run."""
    if functions.cache_info().currsize:
        return True
    from ptxtools.native.code import library, tiers

    if tiers.AT_ONCE or library.functions_at_hand(_NAMES):
        return bool(functions())
    if not _begun:
        _begun.append(True)
        tiers.now(functions)
    return False


@cache
def functions() -> _Functions:
    """The native functions."""
    from ptxtools.native.code import library

    found = library.functions_of(_NAMES, module)
    serve, post, rouse, drop, wait, finish, team = (found[name] for name in _NAMES)
    blocking, quick, i32, address = ctypes.CFUNCTYPE, ctypes.PYFUNCTYPE, ctypes.c_int32, ctypes.c_void_p
    return _Functions(
        blocking(i32, address)(serve), quick(None, address, address, address)(post), quick(None, address)(rouse),
        quick(i32, address)(drop), blocking(i32, address)(wait), quick(None, address)(finish),
        blocking(i32, address)(team),
    )  # fmt: skip


class Seat:
    """One of the threads. From `take` on, until `leave`, it belongs to one launch. behind: as of `post`."""

    def __init__(self) -> None:
        self.functions = functions()
        self._room = ctypes.create_string_buffer(2 * SEAT.size)
        self.address = -(-ctypes.addressof(self._room) // SEAT.size) * SEAT.size
        SEAT.write(self._room, self.address - ctypes.addressof(self._room), "idle", IDLE)
        self._over = ctypes.c_int32.from_address(self.address + SEAT.offset("over"))
        self._over.value = _AFTERWARDS
        self._ends = ctypes.c_int32.from_address(self.address + SEAT.offset("ends"))
        self.behind: Callable[[int], None] = _nothing
        self._thread = threading.Thread(target=self._serve, name="ptxtools worker", daemon=True)
        _all.append(self)
        try:
            self._thread.start()
        except RuntimeError:  # there are too many
            _all.remove(self)
            raise

    def post(self, run: Any, ctx: int, behind: Callable[[int], None]) -> None:
        """Have the loop (a ctypes function) run for a worker's context. behind: goes on where it answers that Python is
        needed, on that thread, given the answer; it must not raise."""
        self.behind = behind
        self.functions.post(self.address, run, ctx)

    def drop(self) -> None:
        """It is wanted no more, if it has not begun."""
        self.functions.drop(self.address)

    def join(self) -> None:
        """Wait for its end."""
        while not self.functions.wait(self.address):
            pass

    def is_alive(self) -> bool:
        """Whether it is not over."""
        return self._over.value in (_RUNNING, _AWAITED)

    @property
    def ended_natively(self) -> bool:
        """Whether the loop had nothing left to do, so that Python has not been called."""
        return self._over.value == _NATIVELY

    def leave(self) -> None:
        """The launch needs it no more. What it still runs is the last that it does."""
        if self.is_alive():
            self._ends.value = 1
        else:
            self.behind = _nothing
            _free.append(self)

    def end(self) -> threading.Thread:
        """Have the thread end when it has nothing to do."""
        self._ends.value = 1
        self.functions.rouse(self.address)
        return self._thread

    def _serve(self) -> None:
        while True:
            answer = self.functions.serve(self.address)
            if answer == _EXPIRED:
                if self._ends.value:
                    break
                try:
                    _free.remove(self)
                except ValueError:  # somebody has just taken it
                    continue
                break
            behind, self.behind = self.behind, _nothing
            try:
                behind(answer)
            finally:
                del behind  # before the end is told: what it refers to may be gone then
                self.functions.finish(self.address)
        _all.remove(self)


def _nothing(_: int) -> None:
    """What is left of work that was done."""


def take() -> Seat:
    """A thread that nobody else uses until it is left."""
    try:
        seat = _free.pop()
    except IndexError:
        seat = Seat()
    return seat


def rouse(count: int) -> None:
    """Some threads will be needed in a moment: wake them, if they sleep."""
    for seat in _free[-count:]:
        seat.functions.rouse(seat.address)


def _forget() -> None:
    """A copy of the process has no such threads."""
    _free.clear()
    _all.clear()
    _begun.clear()


def _end() -> None:
    """The process ends, and its native code may go: nobody may wait in it."""
    _ended.append(True)
    _free.clear()
    for thread in [seat.end() for seat in _all]:
        thread.join(0.1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
atexit.register(_end)


def module(attributes: str) -> str:
    """The functions as LLVM IR."""
    from ptxtools.native.code import jit
    from ptxtools.native.code.emitter import expand, module_of

    from . import team

    pause = 'call void asm sideeffect "pause", "~{memory}"()' if jit.is_x86() else ""
    text = _TEXT.format(
        pause=pause, futex=_FUTEX[platform.machine()],
        state=SEAT.offset("state"), over=SEAT.offset("over"), ends=SEAT.offset("ends"), busy=SEAT.offset("busy"),
        more=SEAT.offset("more"), run=SEAT.offset("run"), ctx=SEAT.offset("ctx"), idle=SEAT.offset("idle"),
        free=_FREE, asleep=_ASLEEP, posted=_POSTED, taken=_TAKEN,
        running=_RUNNING, natively=_NATIVELY, awaited=_AWAITED, afterwards=_AFTERWARDS, expired=_EXPIRED,
        look=LOOK, gap=GAP, signals=SIGNALS, busy_first=BUSY, busiest=BUSIEST,
    )  # fmt: skip
    return module_of([expand(text), expand(team.text())], "", attributes)


_TEXT = """
declare i64 @syscall(i64, ...)
declare i32 @sched_yield()
declare i32 @clock_gettime(i32, ptr)
declare i32 @llvm.umax.i32(i32, i32)
declare i32 @llvm.umin.i32(i32, i32)

define internal i64 @now() #0 {{
  %time = call i64 @moment(i32 1)
  ret i64 %time
}}

define internal i64 @moment(i32 %clock) #0 {{     ; nanoseconds
  %time = alloca [2 x i64]
  %ignored = call i32 @clock_gettime(i32 %clock, ptr %time)
  %seconds = load i64, ptr %time
  %rest.p = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest.p
  %whole = mul i64 %seconds, 1000000000
  %sum = add i64 %whole, %rest
  ret i64 %sum
}}

define internal void @sleep(ptr %word, i32 %value, i64 %nanoseconds) #0 {{ ; while the word has that value
  %time = alloca [2 x i64]
  %seconds = udiv i64 %nanoseconds, 1000000000
  %rest = urem i64 %nanoseconds, 1000000000
  store i64 %seconds, ptr %time
  %rest.p = getelementptr i64, ptr %time, i64 1
  store i64 %rest, ptr %rest.p
  %number = zext i32 %value to i64
  %r = call i64 (i64, ...) @syscall(i64 {futex}, ptr %word, i64 128, i64 %number, ptr %time, ptr null, i64 0)
  ret void
}}

define internal void @wake(ptr %word, i1 %asleep) #0 {{ ; who sleeps there, if somebody does
  br i1 %asleep, label %wake, label %out
wake:
  %r = call i64 (i64, ...) @syscall(i64 {futex}, ptr %word, i64 129, i64 1, ptr null, ptr null, i64 0)
  br label %out
out:
  ret void
}}

define internal i64 @rest(ptr %seat, i64 %last, i1 %offers) #0 {{ ; a moment; the time then, or 0: others have run
  %busy = getelementptr i8, ptr %seat, i64 {busy}
  br label %each
each:
  %n = phi i32 [0, %0], [%n.next, %each]
  {pause}
  %n.next = add i32 %n, 1
  %more = icmp ult i32 %n.next, 8
  br i1 %more, label %each, label %offer
offer:
  br i1 %offers, label %yield, label %out
yield:
  %r = call i32 @sched_yield()
  br label %out
out:
  %time = call i64 @now()
  %passed = sub i64 %time, %last
  %away = icmp ugt i64 %passed, {gap}
  br i1 %away, label %note, label %on
note:
  %more.p = getelementptr i8, ptr %seat, i64 {more}
  %more.was = load atomic i32, ptr %more.p monotonic, align 4
  %often = call i32 @llvm.umax.i32(i32 %more.was, i32 {busy_first})
  store atomic i32 %often, ptr %busy monotonic, align 4
  %twice = shl i32 %often, 1
  %more.now = call i32 @llvm.umin.i32(i32 %twice, i32 {busiest})
  store atomic i32 %more.now, ptr %more.p monotonic, align 4
  ret i64 0
on:
  ret i64 %time
}}

define i32 @seat_serve(ptr %seat) #0 {{           ; RUN_* code of work that needs Python, or that nothing came
  %state = getelementptr i8, ptr %seat, i64 {state}
  %over = getelementptr i8, ptr %seat, i64 {over}
  %ends = getelementptr i8, ptr %seat, i64 {ends}
  %busy = getelementptr i8, ptr %seat, i64 {busy}
  br label %begin
begin:
  %began = call i64 @now()
  %times = load atomic i32, ptr %busy monotonic, align 4
  %quiet = icmp eq i32 %times, 0
  br i1 %quiet, label %look, label %skip
skip:
  %times.less = sub i32 %times, 1
  store atomic i32 %times.less, ptr %busy monotonic, align 4
  %skip.seen = load atomic i32, ptr %state acquire, align 4
  %skip.there = icmp eq i32 %skip.seen, {posted}
  br i1 %skip.there, label %take, label %doze
look:
  %last = phi i64 [%began, %begin], [%time, %wait]
  %seen = load atomic i32, ptr %state acquire, align 4
  %there = icmp eq i32 %seen, {posted}
  br i1 %there, label %found, label %wait
found:                                            ; it was worth it
  %more.p = getelementptr i8, ptr %seat, i64 {more}
  %more = load atomic i32, ptr %more.p monotonic, align 4
  %more.less = lshr i32 %more, 1
  store atomic i32 %more.less, ptr %more.p monotonic, align 4
  br label %take
wait:
  %time = call i64 @rest(ptr %seat, i64 %last, i1 true)
  %passed = sub i64 %time, %began                 ; very much, where others have run
  %early = icmp ult i64 %passed, {look}
  br i1 %early, label %look, label %doze
doze:
  %lie.pair = cmpxchg ptr %state, i32 {free}, i32 {asleep} seq_cst seq_cst
  %lies = extractvalue {{ i32, i1 }} %lie.pair, 1
  br i1 %lies, label %lie, label %begin
lie:                                              ; there is no work, and whoever brings some will know
  %done = load atomic i32, ptr %ends seq_cst, align 4
  %needed = icmp eq i32 %done, 0
  br i1 %needed, label %sleep, label %up
sleep:
  %long.p = getelementptr i8, ptr %seat, i64 {idle}
  %long = load i64, ptr %long.p
  call void @sleep(ptr %state, i32 {asleep}, i64 %long)
  br label %up
up:
  %up.pair = cmpxchg ptr %state, i32 {asleep}, i32 {free} seq_cst seq_cst
  %nothing = extractvalue {{ i32, i1 }} %up.pair, 1
  br i1 %nothing, label %expired, label %begin
expired:
  ret i32 {expired}
take:
  %take.pair = cmpxchg ptr %state, i32 {posted}, i32 {taken} seq_cst seq_cst
  %ours = extractvalue {{ i32, i1 }} %take.pair, 1
  br i1 %ours, label %run, label %begin
run:
  %run.p = getelementptr i8, ptr %seat, i64 {run}
  %loop = load ptr, ptr %run.p
  %ctx.p = getelementptr i8, ptr %seat, i64 {ctx}
  %context = load ptr, ptr %ctx.p
  %answer = call i32 %loop(ptr %context)
  %finished = icmp eq i32 %answer, RUN_FINISHED
  br i1 %finished, label %tell, label %python
python:
  ret i32 %answer
tell:
  store atomic i32 {free}, ptr %state release, align 4
  %before = atomicrmw xchg ptr %over, i32 {natively} seq_cst
  %asleep = icmp eq i32 %before, {awaited}
  call void @wake(ptr %over, i1 %asleep)
  br label %begin
}}

define void @seat_post(ptr %seat, ptr %loop, ptr %context) #0 {{
  %state = getelementptr i8, ptr %seat, i64 {state}
  %over = getelementptr i8, ptr %seat, i64 {over}
  %run.p = getelementptr i8, ptr %seat, i64 {run}
  store ptr %loop, ptr %run.p
  %ctx.p = getelementptr i8, ptr %seat, i64 {ctx}
  store ptr %context, ptr %ctx.p
  store atomic i32 {running}, ptr %over release, align 4
  %before = atomicrmw xchg ptr %state, i32 {posted} seq_cst
  %asleep = icmp eq i32 %before, {asleep}
  call void @wake(ptr %state, i1 %asleep)
  ret void
}}

define void @seat_rouse(ptr %seat) #0 {{
  %state = getelementptr i8, ptr %seat, i64 {state}
  %pair = cmpxchg ptr %state, i32 {asleep}, i32 {free} seq_cst seq_cst
  %asleep = extractvalue {{ i32, i1 }} %pair, 1
  call void @wake(ptr %state, i1 %asleep)
  ret void
}}

define i32 @seat_drop(ptr %seat) #0 {{            ; whether it had not begun
  %state = getelementptr i8, ptr %seat, i64 {state}
  %over = getelementptr i8, ptr %seat, i64 {over}
  %pair = cmpxchg ptr %state, i32 {posted}, i32 {free} seq_cst seq_cst
  %dropped = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %dropped, label %end, label %out
end:
  store atomic i32 {afterwards}, ptr %over release, align 4
  ret i32 1
out:
  ret i32 0
}}

define i32 @seat_wait(ptr %seat) #0 {{            ; whether it is over
  %over = getelementptr i8, ptr %seat, i64 {over}
  %busy = getelementptr i8, ptr %seat, i64 {busy}
  %times = load atomic i32, ptr %busy monotonic, align 4
  %quiet = icmp eq i32 %times, 0
  %began = call i64 @now()
  br label %look
look:
  %last = phi i64 [%began, %0], [%time, %wait]
  %seen = load atomic i32, ptr %over acquire, align 4
  %bit = and i32 %seen, 1
  %done = icmp ne i32 %bit, 0
  br i1 %done, label %out, label %ask
out:
  ret i32 1
ask:
  br i1 %quiet, label %wait, label %lie
wait:
  %time = call i64 @rest(ptr %seat, i64 %last, i1 false)
  %passed = sub i64 %time, %began
  %early = icmp ult i64 %passed, {look}
  br i1 %early, label %look, label %lie
lie:
  %pair = cmpxchg ptr %over, i32 {running}, i32 {awaited} seq_cst seq_cst
  call void @sleep(ptr %over, i32 {awaited}, i64 {signals})
  %now = load atomic i32, ptr %over acquire, align 4
  %answer = and i32 %now, 1
  ret i32 %answer
}}

define void @seat_finish(ptr %seat) #0 {{
  %state = getelementptr i8, ptr %seat, i64 {state}
  %over = getelementptr i8, ptr %seat, i64 {over}
  store atomic i32 {free}, ptr %state release, align 4
  %before = atomicrmw xchg ptr %over, i32 {afterwards} seq_cst
  %asleep = icmp eq i32 %before, {awaited}
  call void @wake(ptr %over, i1 %asleep)
  ret void
}}
"""
