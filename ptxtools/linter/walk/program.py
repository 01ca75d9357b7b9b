"""The instructions that a walk goes through: those of a kernel, and of the functions that it calls."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cached_property
from itertools import chain

from ptxtools.ir.nodes import Address, Name, Variable, Vector
from ptxtools.ir.symbols import RegisterKey

from ..arrivals import FirstRounds
from ..coming import coming_to
from ..constants import CTA_THREADS
from ..facts import ENDING, FunctionFacts, Line, operand_names
from ..inflight import accessed
from ..masks import mask_operand
from .calls import Callee, followed
from .computing import Op, begin_program, divides, taken_apart
from .kept import may_load, may_share
from .memory import COLLECTIVES, HANDLED
from .narrow import EXCHANGING
from .shapes import most_threads
from .tables import Tables
from .written import Whole

#: Steps of all walks of a kernel: so many, and so many for each of its instructions, up to a bound; times more where
#: loops with asynchronous work are walked for long.
_STEPS, _EACH, _MOST, _PIPELINED = 1500, 4, 40_000, 4
#: Instructions of a loop that only waits at an mbarrier.
_SPIN = 5
_SUMS = ("add", "sub", "mul", "mad")
_WAITS = ("griddepcontrol.wait", "cp.async.wait", "cp.async.bulk.wait", "wgmma.wait")
#: Walks of one set of threads; those more in which they may go to other labels of a brx.idx.
_WALKS, _ARMS = 2, 6
#: Loops with .sync instructions that are looked at for lanes that leave them.
_LOOPS = 32
#: Instructions behind a wait that are looked at for one that asks for its result.
_READERS = 256
#: Barriers and waits that a way is looked at for, whether it misses them.
_BARRIERS = 16


class Program:
    """The instructions of a function by their numbers, taken apart as they are reached; behind them those of functions
    that it calls.

    Only what addresses, barriers and branches depend on is computed: `plain` has, for each other instruction, the
    register that it writes. stored: what stores store, where that is known.
    """

    def __init__(self, facts: FunctionFacts) -> None:
        begin_program()
        self.function, self.end = facts.function, len(facts.lines)
        self.lines = facts.lines
        self.parameters = {parameter.name for parameter in facts.function.params}
        self._starts: list[int] = []
        self._targets: dict[int, int] = {}
        self._tables: dict[int, list[int]] = {}
        self.whole = Whole()
        tabled = "call" in facts.families and facts.module is not None and facts.module.tabled
        self.tables = Tables(facts.module) if tabled and facts.module is not None else None
        self.taken: set[tuple[int, int]] = set()  # ways that a walk has gone from a brx.idx by an unknown number
        self.callees: dict[int, Callee] = {}
        self._add(facts, 0)
        inner = followed(facts)
        if inner:
            self.lines = list(facts.lines)
        for one in inner:
            start = len(self.lines)
            self._add(one, start)
            self.lines += one.lines
            self.callees[id(one.function)] = Callee(one.function, start, len(self.lines), tuple(one.writes))
        self.plain: list[RegisterKey | None] = [None] * len(self.lines)
        self._numbers: dict[int, int] = {}
        self._ops: list[Op | None] = [None] * len(self.lines)
        self._terms: dict[RegisterKey, tuple[RegisterKey, ...]] = {}
        self.visited = bytearray(len(self.lines))
        waits = [at for at, line in enumerate(self.lines) if _orders(line)]
        self.barriers = waits[:_BARRIERS]
        self.frees = [at for at, line in enumerate(self.lines) if line.item.opcode.startswith("tcgen05.dealloc")]
        del self.frees[_BARRIERS:]
        self.collectives = [at for at, line in enumerate(self.lines) if _gathers(line)]
        self.budget = _STEPS + len(self.lines) * _EACH
        self._flying = [at for at, line in enumerate(self.lines) if line.plan.family in ("cp", "mbarrier")]
        if self._flying:
            self.budget *= _PIPELINED
        self.budget = min(self.budget, _MOST)
        self._asked: dict[int, bool] = {}
        self._words: dict[tuple[str, ...], bool] = {}
        self._facts = facts
        self._first: FirstRounds | None = None
        self.heap = any(_of_the_heap(line) for one in (facts, *inner) for line in one.of("call"))
        self.stack = any("alloca" in one.families for one in (facts, *inner))
        self.hands_over = bool(self.callees) or self.heap
        variables = [item for one in (facts, *inner) for item in one.others if isinstance(item, Variable)]
        self.locals = {item.name: item for item in variables if item.space == "local" and item.count is None}
        self.writes: dict[RegisterKey, list[int]] = {}  # the instructions that write each register, not as a vector
        self.kept: frozenset[int] = frozenset()
        self.sharing: list[int] = []
        self._find_plain()
        self.stored = {id(step.line.item): step.stored for step in facts.accesses if step.stored is not None}

    def _add(self, facts: FunctionFacts, at: int) -> None:
        """Note where a function begins, and where its branches go."""
        self._starts.append(at)
        self._targets.update({branch: at + to for branch, to in facts.jumps.items()})
        if "brx" in facts.families:
            self._tables.update({branch: [at + to for to in each] for branch, each in facts.tables.items()})

    def home(self, at: int) -> int:
        """The number of the function that an instruction is in."""
        return bisect_right(self._starts, at) - 1 if self.callees else 0

    def _find_plain(self) -> None:
        """Find what only computes values that no address, barrier or branch depends on."""
        writes = self.writes
        vectors: dict[tuple[int, int], list[int]] = {}  # the instructions that write one
        among: dict[RegisterKey, list[list[int]]] = {}  # those of all vectors that a register is in
        waiting: list[RegisterKey] = []
        pointed: list[RegisterKey] = []  # what addresses, numbers of barriers and the like depend on
        loads: list[int] = []
        for at, line in enumerate(self.lines):
            item, plan = line.item, line.plan
            into = item.operands[0] if item.operands else None
            divisor = divides(line)
            if divisor:
                waiting += [key for key in (line.registers[getattr(item.operands[2], "name", "")],) if key is not None]
            if plan.family in HANDLED:
                pointed += self._needed(line)
                if into is not None and may_load(line):
                    loads.append(at)
            if item.guard is not None or plan.family in ENDING:
                waiting += self._decides(line)
            if plan.positional and plan.writes and plan.writes[0]:
                if type(into) is Name:
                    key = line.registers[into.name]
                    if key is not None:
                        writes.setdefault(key, []).append(at)
                        if item.guard is None and plan.family not in HANDLED and not divisor and "." not in into.name:
                            self.plain[at] = key
                    continue
                if type(into) is Vector:
                    known = vectors.get((id(into), id(line.registers)))
                    if known is None:
                        known = vectors[id(into), id(line.registers)] = []
                        for _, key, write in line.registers.uses(into, True):
                            if key is not None and write:
                                among.setdefault(key, []).append(known)
                                writes.setdefault(key, [])
                    known.append(at)
                    continue
                for name, inside in operand_names(into) if into is not None else ():
                    key = line.registers[name]
                    if key is not None and not inside:
                        writes.setdefault(key, []).append(at)
        self._in_vectors = among.keys()
        self.needed: set[RegisterKey] = set()
        followed = bytearray(len(self.lines))
        self._need(pointed, among, followed)
        kept = self._asked_for(loads)
        if kept:
            self.sharing = [at for at, line in enumerate(self.lines) if may_share(line)]
            stored = [key for at in self.sharing for key in self._data(self.lines[at])]
            self._need(stored, among, followed)
            self.kept = frozenset(self._asked_for(loads))
        self._need(waiting, among, followed)

    def _asked_for(self, loads: list[int]) -> list[int]:
        """The loads that give something that is needed."""
        lines, needed = self.lines, self.needed
        return [
            at for at in loads
            if any(lines[at].registers[name] in needed for name, _ in operand_names(lines[at].item.operands[0]))
        ]  # fmt: skip

    def _data(self, line: Line) -> Iterator[RegisterKey]:
        """The registers that a store stores."""
        for operand in line.item.operands[1:] if line.plan.family == "st" else ():
            for name, _ in operand_names(operand):
                key = line.registers[name]
                if key is not None:
                    yield key

    def _need(self, waiting: list[RegisterKey], among: dict[RegisterKey, list[list[int]]], followed: bytearray) -> None:
        """Note which registers some depend on, and the instructions that write them as not plain."""
        writes, needed = self.writes, self.needed
        waiting = [key for key in dict.fromkeys(waiting) if key not in needed]
        needed.update(waiting)
        while waiting:
            wanted = waiting.pop()
            for at in chain(writes.get(wanted, ()), *among.get(wanted, ())):
                if followed[at]:
                    continue
                followed[at] = 1
                line = self.lines[at]
                self.plain[at] = None
                for operand in line.item.operands[1:]:
                    for name, _ in operand_names(operand):
                        key = line.registers[name]
                        if key is not None and key not in needed:
                            needed.add(key)
                            waiting.append(key)

    def _decides(self, line: Line) -> Iterator[RegisterKey]:
        """Registers that decide whether an instruction is executed, or where it leads."""
        item = line.item
        if item.guard is not None:
            key = line.registers[item.guard.name]
            if key is not None:
                yield key
        if line.plan.family == "brx":
            yield from (key for name, _ in operand_names(item.operands[0]) if (key := line.registers[name]) is not None)

    def _needed(self, line: Line) -> Iterator[RegisterKey]:
        """Registers that an instruction's effect depends on, values that are stored apart."""
        item = line.item
        accesses = line.plan.family in ("ld", "ldu", "st", "atom", "red")
        if self.hands_over and line.item.opcode.startswith("st.param"):
            accesses = False  # a function may compute an address from it
        operands = item.operands
        if line.plan.family in COLLECTIVES:  # what decides the result, or from which lane it is
            first = {"vote": 1, "match": 1, "shfl": 1 if self.heap else 2}.get(line.plan.family, len(operands) - 1)
            operands = operands[first:]
        product = line.plan.family == "wgmma"
        for operand in operands:
            if product and type(operand) is Vector:
                continue  # accumulators, and A in registers: only which ones they are matters
            if not accesses or type(operand) is Address or line.item.opcode.startswith("st.bulk"):
                for name, _ in operand_names(operand):
                    key = line.registers[name]
                    if key is not None:
                        yield key

    def terms_of(self, key: RegisterKey) -> tuple[RegisterKey, ...]:
        """The registers in the sum, difference or product that a register always is; empty if it may be another."""
        found = self._terms.get(key)
        if found is None:
            writes = self.writes.get(key, ())
            op = self.at(writes[0]) if len(writes) == 1 and key not in self._in_vectors else None
            sums = op is not None and op.guard is None and op.single and op.family in _SUMS
            found = self._terms[key] = op.reads if op is not None and sums and key not in op.reads else ()
        return found

    def at(self, pc: int) -> Op:
        op = self._ops[pc]
        if op is None:
            op = self._ops[pc] = taken_apart(self.lines[pc])
        return op

    def new_way(self, seen: set[tuple[int, bool]]) -> bool:
        """Whether a way that no walk has taken leads to instructions that none has come to, or past a barrier."""
        for at, line in enumerate(self.lines) if self._tables else ():
            new = {(at, to) for to in self.table(at)} - self.taken
            if new and line.plan.family == "brx" and self.visited[at]:
                return True
        for at, runs in seen:
            if (at, not runs) not in seen:
                op = self.at(at)
                to = at + 1 if runs else self.target(at) or at
                if runs and at in self.barriers:
                    return True  # it may be left out
                if not runs and (op.family != "bra" or to >= len(self.lines)):
                    if any(at < free for free in self.frees):
                        return True  # it ends
                    continue
                if op.family != "bra" or to >= len(self.lines):
                    continue
                if any(at < free < to for free in self.frees):
                    return True
                if not self.visited[to] or any(at < barrier < to for barrier in self.barriers):
                    return True
        return False

    def reached_from_elsewhere(self, words: tuple[str, ...]) -> bool:
        """Whether an instruction has one of some words in its opcode."""
        known = self._words.get(words)
        if known is None:
            opcodes = (line.item.opcode for line in self.lines)
            known = self._words[words] = any(word in opcode for opcode in opcodes for word in words)
        return known

    def is_asked(self, at: int) -> bool:
        """Whether anything may read what an instruction writes before it is written anew."""
        known = self._asked.get(at)
        if known is None:
            known = self._asked[at] = self._may_be_read(at)
        return known

    def _may_be_read(self, at: int) -> bool:
        into, end = self.at(at).into, len(self.lines)
        waiting, seen = [at + 1], set[int]()
        while waiting:
            pc = waiting.pop()
            while pc < end and pc not in seen:
                if len(seen) == _READERS:
                    return True
                seen.add(pc)
                op = self.at(pc)
                if op.family == "brx" or any(key == op.guard or key in op.reads for key in into):
                    return True
                if op.guard is None and all(key in op.into for key in into):
                    break
                target = self.target(pc) if op.family == "bra" else None
                if target is not None:
                    waiting.append(target)
                if op.guard is None and op.family in ("bra", "exit", "ret", "trap"):
                    break
                pc += 1
        return False

    def number(self, line: Line) -> int:
        """Where an instruction stands."""
        if not self._numbers:
            self._numbers.update({id(line.item): at for at, line in enumerate(self.lines)})
        return self._numbers[id(line.item)]

    @cached_property
    def opcodes(self) -> frozenset[str]:
        """The opcodes of all instructions."""
        return frozenset([line.item.opcode for line in self.lines])

    def first_rounds(self, threads: int) -> FirstRounds:
        """Arrivals of all threads of a CTA."""
        if self._first is None:
            self._first = FirstRounds(self._facts, threads)
        return self._first

    @cached_property
    def coming(self) -> dict[int, int]:
        """The threads of a CTA that come at most to each instruction that may write shared memory, as bits, by its
        identity."""
        families = tuple({self.lines[at].plan.family for at in self.sharing})
        flat = "%tid.y" not in self._facts.targets and "%tid.z" not in self._facts.targets
        count = most_threads(self.function) or CTA_THREADS
        found = coming_to(self._facts, families, count) if flat else []
        return {id(line.item): coming.threads for line, coming in found}

    @cached_property
    def used(self) -> frozenset[RegisterKey]:
        """Registers that something reads which every thread executes, other than a selection or a copy."""
        return frozenset(
            key for line in self.lines
            if line.item.guard is None and line.plan.family not in ("selp", "slct", "mov", "prmt")
            for name, write in accessed(line) if not write and (key := line.registers[name]) is not None
        )  # fmt: skip

    @cached_property
    def agrees(self) -> bool:
        """Whether the lanes of a warp tell each other anything: they may agree on which of them does something."""
        return not COLLECTIVES.isdisjoint({line.plan.family for line in self.lines})

    @cached_property
    def copied(self) -> bool:
        """Whether something writes to the shared memory of other CTAs, too."""
        return any(".multicast" in opcode or ".try_cancel" in opcode for opcode in self.opcodes)

    @cached_property
    def multiplies(self) -> bool:
        """Whether there are instructions that read factors in shared memory through descriptors."""
        return any(opcode.startswith(("wgmma.mma", "tcgen05.mma", "tcgen05.cp")) for opcode in self.opcodes)

    @cached_property
    def fences(self) -> bool:
        """Whether there are fences of tcgen05."""
        return any(opcode.startswith("tcgen05.fence") for opcode in self.opcodes)

    @cached_property
    def alone(self) -> bool:
        """Whether warps tell each other nothing but by memory and plain barriers of the CTA."""
        barriers = [line for line in self.lines if line.plan.family in ("bar", "barrier")]
        plain = all(".red" not in line.item.opcode and ".arrive" not in line.item.opcode for line in barriers)
        return bool(barriers) and plain and EXCHANGING.isdisjoint({line.plan.family for line in self.lines})

    @cached_property
    def ends(self) -> frozenset[int]:
        """Guarded branches at which lanes may part from a loop that has instructions with a member mask."""
        branches = [at for at, line in enumerate(self.lines) if line.plan.family == "bra"] if self.collectives else []
        targets = {at: self.target(at) for at in branches}
        loops = [(to, at) for at, to in targets.items() if to is not None and to <= at and self.meets(to, at)][:_LOOPS]
        found = set()
        for at, to in targets.items():
            if to is not None and self.lines[at].item.guard is not None:
                inside = [last for first, last in loops if first <= at <= last]
                if any(at == last or to > last for last in inside):
                    found.add(at)
        return frozenset(found)

    @cached_property
    def polls(self) -> bool:
        """Whether something is decided by a volatile load of shared memory: others may wait for it."""
        into = set()
        for line in self.lines:
            if line.item.opcode.startswith(("ld.volatile.shared", "ld.volatile.u", "ld.volatile.b", "ld.volatile.s")):
                into |= {line.registers[name] for each in line.item.operands[:1] for name, _ in operand_names(each)}
        return any(
            line.plan.family == "setp" and any(
                line.registers[name] in into for operand in line.item.operands[1:] for name, _ in operand_names(operand)
            )
            for line in (self.lines if into else ())
        )  # fmt: skip

    def meets(self, first: int, last: int) -> bool:
        """Whether there is an instruction with a member mask between two."""
        at = bisect_left(self.collectives, first)
        return at < len(self.collectives) and self.collectives[at] <= last

    def flies(self, first: int, last: int) -> bool:
        """Whether there is asynchronous work between two instructions."""
        at = bisect_left(self._flying, first)
        return at < len(self._flying) and self._flying[at] <= last

    def waits_in(self, first: int, last: int) -> bool:
        """Whether there is asynchronous work between two instructions, besides a wait at an mbarrier alone."""
        return self.flies(first, last) and last - first > _SPIN

    def written(self, first: int, last: int) -> set[RegisterKey]:
        """The registers that instructions between two, themselves included, write."""
        return {key for at in range(first, last + 1) for key in self.at(at).into}

    @cached_property
    def walks(self) -> int:
        """How many walks of one set of threads are worth it: more where lists of labels are branched by."""
        return _WALKS + min(_ARMS, max((len(set(each)) - 1 for each in self._tables.values()), default=0))

    def table(self, at: int) -> list[int]:
        """Where a brx.idx may go; nothing if that is not known."""
        return self._tables.get(id(self.lines[at].item), [])

    def target(self, at: int) -> int | None:
        """Where a branch goes."""
        return self._targets.get(id(self.lines[at].item))


def _gathers(line: Line) -> bool:
    """Whether an instruction has a member mask, or is a barrier that whole warps execute."""
    if mask_operand(line) is not None:
        return True
    opcode = line.item.opcode
    aligned = line.plan.family == "bar" or (line.plan.family == "barrier" and ".aligned" in opcode)
    return aligned and ".warp" not in opcode and ".cluster" not in opcode


def _of_the_heap(line: Line) -> bool:
    """Whether a call is of malloc or free."""
    return any(isinstance(operand, Name) and operand.name in ("malloc", "free") for operand in line.item.operands)


def _orders(line: Line) -> bool:
    """Whether something may go wrong if a thread misses an instruction."""
    return line.plan.family in ("bar", "barrier") or line.item.opcode.startswith(_WAITS)
