"""A run that follows an execution which the memory model allows: `--memory weak` with every other seed.

What each access reads is what the execution says. All else is computed: registers, where threads go, and what they
write, which is held against the execution; memory gets in the end what the execution leaves there. So nothing has
happened to memory if a value differs, and the run is begun again without a guide. What copies move, and what is done to
mbarriers, is taken from the execution.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from ptxtools import semantics
from ptxtools.machine.guides import Guide, Step
from ptxtools.program.operations import GROUP_WAITS, PAUSES, THREAD_COPIES
from ptxtools.program.program import Op, Terminator

from .machine import Machine, element_bytes
from .memory import Part, empty, load_into, narrow, parts, take
from .registry import ENDINGS, EXECUTORS, Ending, Executor, Threads

#: What orders or delays, and does nothing else: an execution has done so.
_IDLE = GROUP_WAITS | PAUSES | {"fence"}
_HALF = (1 << 64) - 1


class Departure(Exception):  # noqa: N818 - no error of the kernel
    """The run does not follow the execution."""


class Guided:
    """Follows an execution."""

    def __init__(self, machine: Machine, guide: Guide) -> None:
        self.m, self.guide = machine, guide
        self.taken: defaultdict[tuple[int, int], int] = defaultdict(int)
        #: What has been written at each address.
        self.written: defaultdict[int, set[int]] = defaultdict(set)
        accesses: dict[str, Executor] = {"ld": self._load, "st": self._store, "atom": self._atomic,
                                         "red": self._atomic, "mbarrier": self._mbarrier}  # fmt: skip
        copies, idle = dict.fromkeys(THREAD_COPIES, self._copy), dict.fromkeys(_IDLE, self._pass)
        self.executors: dict[str, Executor] = {**EXECUTORS, **copies, **idle, **accesses}
        self.endings: dict[str, Ending] = {**ENDINGS, "event": self._event}

    def settle(self) -> None:
        """All threads have exited: memory is what the execution leaves."""
        for who, steps in self.guide.steps.items():
            if self.taken[who] < len(steps):
                raise Departure(f"thread {who} has not made all accesses")
        for address, data in self.guide.final:
            before = self.m.memory.bytes[address - self.m.launch.memory.base :]
            for at, byte in enumerate(data):
                if byte != before[at] and byte not in self.written[address + at]:
                    raise Departure(f"nobody has written {byte} at {address + at:#x}")
        for address, data in self.guide.final:
            start = address - self.m.launch.memory.base
            self.m.memory.bytes[start : start + len(data)] = np.frombuffer(data, np.uint8)

    def _step(self, op: Op, thread: int) -> Step:
        """What an operation of a thread does in the execution."""
        m = self.m
        who = int(m.cta_of_slot[m.slot_of[thread]]), int(m.thread_of[thread])
        steps, at = self.guide.steps.get(who, ()), self.taken[who]
        _, start, text = m.program.lines[op.where]
        if at == len(steps) or steps[at].at != start:
            raise Departure(f"thread {who} comes to '{text}'")
        self.taken[who] += 1
        return steps[at]

    def _agree(self, op: Op, mine: Sequence[int], others: Sequence[int]) -> None:
        if list(mine) != list(others):
            raise Departure(f"'{self.m.program.lines[op.where][2]}': {list(mine)}, in the model {list(others)}")

    def _written(self, op: Op, step: Step, values: Sequence[int]) -> None:
        """An access writes these elements."""
        self._agree(op, values, step.writes)
        self._note(step)

    def _note(self, step: Step) -> None:
        if step.writes:
            last = slice(-len(step.writes), None)
            for value, place, size in zip(step.writes, step.places[last], step.sizes[last], strict=True):
                for at, byte in enumerate(value.to_bytes(size, "little") if place >= 0 else b""):
                    self.written[place + at].add(byte)

    def _is_shared(self, part: Part) -> bool:
        """Whether other threads may access it."""
        return part.buffer is self.m.memory or part.buffer is self.m.shared

    def _place(self, op: Op, step: Step, part: Part, at: int) -> None:
        """The access is where the execution has it."""
        base = self.m.launch.memory.base
        self._agree(op, [base + int(part.offsets[at]) if part.buffer is self.m.memory else -1], step.places[:1])

    # --- executors ---

    def _load(self, m: Machine, op: Op, threads: Threads) -> None:
        count, size = len(op.dst), element_bytes(op.dst_types[0])
        values = [empty(size, len(threads)) for _ in range(count)]
        for part in parts(m, op, threads, size * count, write=False):
            if not self._is_shared(part):
                for number in range(count):
                    load_into(values[number], part, size, number)
                continue
            for at, place in enumerate(part.places):
                step = self._step(op, int(threads[place]))
                self._place(op, step, part, at)
                if len(step.reads) != count:
                    raise Departure(f"{len(step.reads)} elements, not {count}")
                for number in range(count):
                    _set(values[number], int(place), step.reads[number])
        for number in range(count):
            m.write(op.dst[number], narrow(m, values[number], op.dst_types[number]), op.dst_types[number], threads)

    def _store(self, m: Machine, op: Op, threads: Threads) -> None:
        size = element_bytes(op.src_types[1])
        for part in parts(m, op, threads, size * (len(op.src) - 1), write=True):
            if not self._is_shared(part):
                EXECUTORS["st"](m, op, threads[part.places])
                continue
            values = [m.source(ref, t, threads[part.places])
                      for ref, t in zip(op.src[1:], op.src_types[1:], strict=True) if ref is not None]  # fmt: skip
            for at, place in enumerate(part.places):
                step = self._step(op, int(threads[place]))
                self._place(op, step, part, at)
                self._written(op, step, [_number(value, at, size) for value in values])

    def _atomic(self, m: Machine, op: Op, threads: Threads) -> None:
        assert op.opcode is not None
        type_name, rule = op.src_types[1], semantics.atomic_rule(op.opcode)
        assert rule is not None
        size = element_bytes(type_name)
        operands = [m.source(ref, t, threads) for ref, t in zip(op.src[1:], op.src_types[1:], strict=True)
                    if ref is not None]  # fmt: skip
        old = empty(size, len(threads))
        for part in parts(m, op, threads, size, write=True):
            if not self._is_shared(part):
                raise Departure("an atomic operation in local memory")
            for at, place in enumerate(part.places):
                step = self._step(op, int(threads[place]))
                self._place(op, step, part, at)
                _set(old, int(place), step.reads[0])
                one = np.array([place])
                new = rule(m.algebra, type_name, take(old, one), *[take(value, one) for value in operands])
                mine = _number(new, 0, size)
                if step.writes or mine != step.reads[0]:  # a cas that fails writes nothing
                    self._written(op, step, [mine])
        for ref, t in zip(op.dst, op.dst_types, strict=False):
            m.write(ref, old, t, threads)

    def _mbarrier(self, m: Machine, op: Op, threads: Threads) -> None:
        answers = np.array([self._step(op, int(thread)).answer for thread in threads], np.uint64)
        for ref, t in zip(op.dst[:-1], op.dst_types[:-1], strict=True):
            m.write(ref, answers != 0 if t == "pred" else answers, t, threads)
        m.write(op.dst[-1], np.zeros(len(threads), np.bool_), "pred", threads)

    def _copy(self, m: Machine, op: Op, threads: Threads) -> None:
        for thread in threads:
            self._note(self._step(op, int(thread)))

    def _pass(self, m: Machine, op: Op, threads: Threads) -> None:
        """It orders what is ordered already."""

    def _event(self, m: Machine, end: Terminator, threads: Threads) -> None:
        assert end.op is not None
        if end.op.kind not in THREAD_COPIES | _IDLE:
            raise Departure(f"'{m.program.lines[end.op.where][2]}' cannot follow an execution")
        self.executors[end.op.kind](m, end.op, threads)
        m.pc[threads] = end.other


def _set(values: Any, place: int, number: int) -> None:
    if isinstance(values, tuple):
        values[0][place], values[1][place] = number & _HALF, number >> 64
    else:
        values[place] = number


def _number(values: Any, at: int, size: int) -> int:
    """An element of an array of registers, as an unsigned number of so many bytes."""
    if isinstance(values, tuple):
        return int(values[0][at]) | int(values[1][at]) << 64
    return int(values[at : at + 1].view(f"u{values.dtype.itemsize}")[0]) & (1 << 8 * size) - 1
