"""64 threads walk through a kernel, by the control flow that follows from their numbers; what is unknown is assumed.

Threads that part at a branch go on as groups, the one that is furthest behind first, and join where they meet again. A
branch that depends on something unknown is taken by all threads of a group or by none, in the way that no walk has gone
before; what was assumed of a value holds for the rest of the walk.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

from ptxtools.ir.nodes import Immediate
from ptxtools.ir.symbols import RegisterKey
from ptxtools.records import NamedTuple

from ..facts import Line
from ..values import WARP, Terms, Value
from .calls import Callee, Calls, Frame, ends_threads
from .collectives import lowest_lanes
from .computing import (
    Op,
    compared,
    differs,
    is_bound,
    joined,
    joined_predicates,
    known_result,
    mixed,
    result,
    truth,
    unknown,
)
from .memory import Memory
from .program import Program
from .threads import Threads

#: The value of a register that nothing depends on.
_ANY = unknown(True, "any")
#: Rounds of a loop that are walked: those that follow only repeat what the first ones do.
_ROUNDS = 2
#: Rounds of a loop that are walked if it is known how many there are, and lanes may part in it before a .sync
#: instruction.
_KNOWN_ROUNDS = 12
#: Rounds of a loop of few instructions that are walked if it is known how many there are.
_SHORT_ROUNDS, _SHORT = 8, 48
#: Steps of one where all that the threads of a CTA store is known, so that it matters how far it goes.
_SHORT_STEPS = 512
#: Rounds of a loop with asynchronous copies: its buffers come round in them.
_PIPELINE, _PIPELINE_STEPS = 8, 800

_STORING = ("st", "atom", "red")
_FLOW = frozenset({"bra", "ret", "call", "exit", "trap", "brx"})

_HALVES = (0xFFFFFFFF, 0xFFFFFFFF << WARP)


class Found(NamedTuple):
    """kind: what goes wrong; operand: None for the opcode, or for the register that `name` says; message: with "{line}"
    for the line of `other`; certain: whether nothing was assumed on the way."""

    kind: str
    line: Line
    operand: int | None
    message: str
    certain: bool
    other: Line | None = None
    name: str = ""


class Group:
    """Threads at one place. registers: what they hold; missing: the threads in which nothing has written a register;
    waits: at which barrier they wait, None if they run; doubtful: whether data decided that these threads came here;
    end: of the function that they are in; stack: the calls that they are in, outer ones first."""

    __slots__ = ("doubtful", "end", "mask", "missing", "pc", "registers", "stack", "waits")

    def __init__(self, pc: int, mask: int, end: int, stack: tuple[Frame, ...] = ()) -> None:
        self.pc, self.mask, self.end, self.stack = pc, mask, end, stack
        self.registers: dict[RegisterKey, Value] = {}
        self.missing: dict[RegisterKey, int] = {}
        self.waits: tuple[object, ...] | None = None
        self.doubtful = False

    def split(self, pc: int, mask: int) -> Group:
        """Some of the threads, at another place."""
        found = Group(pc, mask, self.end, self.stack)
        found.registers, found.missing = dict(self.registers), dict(self.missing)
        found.doubtful = self.doubtful
        self.mask &= ~mask
        return found

    @property
    def place(self) -> tuple[int, ...]:
        """What groups are ordered by: inside of a call, they are behind what comes before it."""
        return (*[frame.site for frame in self.stack], self.pc) if self.stack else (self.pc,)

    def meets(self, other: Group) -> int:
        """Where this group comes to the place of another one, or to the call that the other one is in; -1: nowhere."""
        if self.stack == other.stack:
            return other.pc
        depth = len(self.stack)
        return other.stack[depth].site if len(other.stack) > depth and other.stack[:depth] == self.stack else -1

    def join(self, other: Group) -> None:
        """Take over the threads of another group."""
        mine, theirs = self.registers, other.registers
        for key, value in theirs.items():
            old = mine.get(key)
            if old is None:
                mine[key] = value
                self.missing[key] = self.missing.get(key, 0) | self.mask
            elif old is not value:
                mine[key] = mixed(old, value, other.mask)
        for key in mine.keys() - theirs.keys():
            self.missing[key] = self.missing.get(key, 0) | other.mask
        for key, mask in other.missing.items():
            self.missing[key] = self.missing.get(key, 0) | mask & other.mask
        self.mask |= other.mask
        self.doubtful |= other.doubtful


class Walker:
    """One walk. seen: ways that this or an earlier walk has taken at an unknown branch, as (place, taken). parting: it
    is assumed that lanes leave loops at different times, where an unknown number decides that; `parts` says whether
    this walk has come to a place where they may."""

    def __init__(
        self, program: Program, threads: Threads, seen: set[tuple[int, bool]], steps: int, parting: bool = False
    ) -> None:
        self.program, self.threads, self.seen, self.parting = program, threads, seen, parting
        self.numbers: dict[Terms, int] = {}
        self.parts = False
        self.left = steps
        self.assumed: dict[str, bool] = {"shape": True} if threads.guessed else {}
        self.found: list[Found] = []
        self.alive = threads.mask
        self.moment = 0
        self._rounds: dict[int, int] = {}
        self.memory = Memory(self)
        self.calls = Calls(self)
        self.running = [Group(0, threads.mask, program.end)]
        self._ended = False

    # --- for those that look on ---------------------------------------------------------------------------------------

    def value(self, group: Group, source: Value | RegisterKey) -> Value:
        """What an operand is in the threads of a group."""
        if isinstance(source, Value):
            name = source.terms[0][0] if source.terms else ""
            return self._special(name) if name[:1] == "%" else source
        found = group.registers.get(source)
        return found if found is not None else unknown(True, "unwritten", source)

    def report(
        self, kind: str, line: Line, operand: int | None, message: str, other: Line | None = None, name: str = "",
        sure: bool = True,
    ) -> None:  # fmt: skip
        self.found.append(Found(kind, line, operand, message, sure and not self.assumed, other, name))

    def stop(self) -> None:
        """Give up: what follows is not known."""
        self._ended = True

    # --- the walk -----------------------------------------------------------------------------------------------------

    def run(self) -> list[Found]:
        while not self._ended and self.left > 0:
            group = self._next()
            if group is None:
                self.memory.end()
                break
            self._advance(group)
        return self.found

    def _next(self) -> Group | None:
        """The group that is furthest behind, joined with others at its place."""
        ready = [group for group in self.running if group.waits is None]
        if not ready:
            return None if self.memory.release() is None else self._next()
        first = ready[0]
        if len(ready) > 1:
            first = min(ready, key=lambda group: group.place)
            for other in ready:
                if other is not first and other.pc == first.pc and other.stack == first.stack:
                    first.join(other)
                    self.running.remove(other)
                    self.left -= len(first.registers) >> 2
        return first

    def _advance(self, group: Group) -> None:
        """Run a group up to where it may meet another one."""
        at = self.program.at
        others = [group.meets(other) for other in self.running if other is not group and other.waits is None]
        end = min((pc for pc in others if pc > group.pc), default=group.end)
        plain, registers, visited = self.program.plain, group.registers, self.program.visited
        while group.pc < end and self.left > 0 and not self._ended:
            self.left -= 1
            visited[group.pc] = 1
            key = plain[group.pc]
            if key is not None and not group.missing:
                registers[key] = _ANY
                group.pc += 1
                continue
            op = at(group.pc)
            if op.pure and op.into and op.guard is None and not group.missing:
                group.pc += 1
                self.write(group, op, group.mask)
            elif self._step(group, op):
                return
        if group.pc >= group.end:
            if group.stack:
                self.calls.leave(group, group.mask)
            else:
                self._leave(group)

    def _step(self, group: Group, op: Op) -> bool:
        """Run one instruction; whether the groups have changed."""
        if group.missing or (op.guard is not None and op.guard not in group.registers):
            self._look_at_reads(group, op)
        mask = group.mask
        if op.guard is not None:
            mask = self._holds(group, op)
        family = op.family
        if family in _FLOW:
            changed = self._flow(group, op, mask)
            if changed is not None:
                return changed
        group.pc += 1
        if not mask:
            return False
        if op.family in _STORING:
            self._look_at_stored(group, op)
        waits = False
        handler: Callable[[Group, Op, int], bool | None] | None = self.memory.handlers.get(family)
        if handler is not None:
            waits = bool(handler(group, op, mask))
        waits_anew = waits and group.waits is not None and group.waits[0] in ("mbarrier", "warp")
        if op.into and not waits_anew and family not in self.memory.noted:
            self.write(group, op, mask & group.mask)
        return waits

    def _flow(self, group: Group, op: Op, mask: int) -> bool | None:
        """Run an instruction that may lead elsewhere than to the next one; None for a call that is not followed."""
        family = op.family
        if family == "bra":
            return self._branch(group, op, mask)
        if family == "ret" and group.stack:
            if mask:
                self.calls.leave(group, mask)
            else:
                group.pc += 1
            return bool(mask)
        if family == "call" and mask:
            if self.calls.enter(group, op, mask):
                return True
            if ends_threads(op.line):
                family = "exit"
        if family in ("exit", "ret"):
            group.pc += 1
            if mask == group.mask:
                self._leave(group)
                return True
            if mask:
                self._exit(mask)
                group.mask &= ~mask
            return False
        if family == "brx":
            return self._switch(group, op, mask)
        if family == "trap":
            self.stop()
            return True
        return None

    def begin_anew(self, callee: Callee) -> None:
        """Rounds of loops count for each call of a function."""
        for at in [at for at in self._rounds if callee.start <= at < callee.end]:
            del self._rounds[at]

    def write(self, group: Group, op: Op, mask: int) -> None:
        """Note what an instruction writes in some threads of a group."""
        self.moment += 1
        if op.divides and op.sources is not None:
            self._look_at_divisor(self.value(group, op.sources[1]), op, mask)
        if op.single:
            key = op.into[0]
            if key not in self.program.needed:
                new = _ANY
            elif op.pure:
                new = self._computed(group, op)
            elif op.family in ("vote", "match", "shfl"):
                known = self.memory.collectives.result(group, op, mask)
                new = known if known is not None else unknown(True, id(op.line.item), self.moment)
            elif op.family == "mbarrier":  # a wait ends for all that wait
                new = Value((), 1) if "wait" in op.opcode else self.memory.flights.state(op)
            elif op.family == "ld" or op.family == "mapa":
                new = self.memory.loaded(group, op, mask)
            elif op.family == "alloca":
                new = self.memory.owned.stack(group, op)
            elif op.family == "mov":
                new = self.memory.owned.whole(group, op)
            else:
                new = result(op, [self.value(group, source) for source in op.sources or ()], self.moment)
            if mask == group.mask and not group.missing:
                group.registers[key] = new
            else:
                self.put(group, key, new, mask)
            if op.family == "ld" and self.program.callees:
                self.calls.look_at_unset(group, op, mask)
            return
        needed, whole = self.program.needed, mask == group.mask and not group.missing
        kept = (self.memory.kept.load if op.family == "ld" else self.memory.owned.parts)(group, op, mask)
        for key in op.into:
            new = unknown(True, id(op.line.item), self.moment, key[1]) if key in needed else _ANY
            new = kept.get(key, new)
            if whole:
                group.registers[key] = new
            else:
                self.put(group, key, new, mask)
        if op.family == "elect" and op.into:
            group.registers[op.into[-1]] = lowest_lanes(mask)

    def _computed(self, group: Group, op: Op) -> Value:
        """What follows from the sources of an instruction."""
        registers, sources = group.registers, []
        for source in op.sources or ():
            found = None if type(source) is Value else registers.get(source)  # type: ignore[arg-type]
            sources.append(found if found is not None else self.value(group, source))
        if op.family == "selp" and len(sources) == 3 and sources[2].terms:
            sources[2] = self._chosen(group, sources)
        joined = joined_predicates(op, sources) if op.joins else None
        return self._joined(group, *joined) if joined is not None else known_result(op, sources)

    def _look_at_divisor(self, divisor: Value, op: Op, mask: int) -> None:
        """Whether some thread divides by zero."""
        if divisor.terms or (isinstance(divisor.each, int) and divisor.each):
            return
        for thread, number in enumerate(divisor.numbers):
            if not number and mask >> thread & 1:
                message = f"{self.threads.name(thread)} divides by zero: the result is machine-specific"
                self.report("division by zero", op.line, 2, message)
                return

    def put(self, group: Group, key: RegisterKey, new: Value, mask: int) -> None:
        """Note what a register, or a parameter of a call, is in some threads of a group."""
        registers = group.registers
        if mask == group.mask:
            registers[key] = new
            group.missing.pop(key, None)
            return
        old = registers.get(key)
        if old is None:
            registers[key] = new
            group.missing[key] = group.mask & ~mask
            return
        registers[key] = mixed(old, new, mask)
        if key in group.missing:
            left = group.missing[key] & ~mask
            if left:
                group.missing[key] = left
            else:
                del group.missing[key]

    def _look_at_reads(self, group: Group, op: Op) -> None:
        """Registers that have a value in some of the threads that read them only."""
        if self.assumed or not self.threads.there or op.family in ("mov", "prmt"):
            return
        if op.opcode.startswith("st.param"):
            return  # it may be handed on
        guarded = (op.guard,) if op.guard is not None else ()
        reads = op.reads[-1:] if op.family in ("selp", "slct") and op.single else op.reads  # what selects
        for key in guarded + reads:
            missing = group.missing.get(key, 0) & group.mask
            if key == op.guard and key not in group.registers and key in self.program.writes:
                missing = group.mask
            if missing and key != op.guard and op.guard is not None:
                holds = truth(self.value(group, op.guard))
                missing &= (~holds if op.negated else holds) if isinstance(holds, int) else 0
            if missing and op.family == "shfl" and op.sources and key == op.sources[0]:
                missing &= self.memory.collectives.taken(group, op)
            if missing:
                thread = (missing & -missing).bit_length() - 1
                how = (
                    "to which a call has given no value"
                    if key in self.calls.undefined
                    else ("in which nothing has written it")
                )
                message = f"'{key[1]}' is read by {self.threads.name(thread)}, {how}"
                self.report("unwritten register", op.line, None, message, name=key[1])
                group.missing.pop(key, None)
                group.registers.setdefault(key, _ANY)
                return

    def _look_at_stored(self, group: Group, op: Op) -> None:
        """Registers that are stored, themselves or in a sum, and that nothing has written on the way that is walked."""
        if group.stack or not self.threads.there:
            return
        for stored in op.reads:
            for key in (stored, *self.program.terms_of(stored)):
                if key not in group.registers and key in self.program.writes:
                    how = "is stored" if key == stored else f"is a term of '{stored[1]}', which is stored"
                    message = f"'{key[1]}' {how}, and nothing has written it on one of the ways to this"
                    self.report("unwritten register", op.line, None, message, name=stored[1], sure=False)
                    group.registers[key] = _ANY

    # --- control flow -------------------------------------------------------------------------------------------------

    def _special(self, name: str) -> Value:
        found = self.threads.registers.get(name)
        if found is not None:
            return found
        if name.startswith(("%clock", "%globaltimer", "%smid", "%warpid", "%pm")):
            self.moment += 1
            return unknown(True, name, self.moment)
        return unknown(False, name)

    def _holds(self, group: Group, op: Op) -> int:
        """The threads of a group in which a guard holds; an unknown one is assumed to hold in all or none."""
        value = group.registers.get(op.guard) if op.guard is not None else None
        holds = truth(value) if value is not None else None
        if isinstance(holds, int):
            return group.mask & (~holds if op.negated else holds)
        negated = op.negated
        if holds is not None:
            name, inverted = holds
            negated ^= inverted
            if name in self.assumed:
                return group.mask if self.assumed[name] ^ negated else 0
            if self.parting or not self.parts:
                parted = self._parted(group.pc, name)
                if parted is not None and self.parting:
                    return group.mask & (~parted if negated else parted)
        # What is guarded is better executed, and a branch better not taken: it leaves what is interesting.
        at = group.pc
        runs = op.family not in ("bra", "exit", "ret")
        if op.family == "bra" and (self.program.target(at) or at + 1) <= at:
            runs = (at, True) not in self.seen  # a second round, and no more
            if not runs and self.program.waits_in(self.program.target(at) or 0, at):
                runs = 0 < self._rounds.get(at, 0) < self._pipeline(self.program.target(at) or 0, at)
        elif (at, runs) in self.seen and (at, not runs) not in self.seen:
            runs = not runs
        self.seen.add((at, runs))
        name = holds[0] if holds is not None else f"#at{at}.{self.moment}"
        self.assumed[name] = runs ^ negated
        group.doubtful |= name[0] == "#" and not is_bound(name)
        return group.mask if runs else 0

    def _chosen(self, group: Group, sources: list[Value]) -> Value:
        """The predicate of a selp between two known numbers: if it is an unknown one that all threads have, it is
        assumed as for a branch."""
        holds = truth(sources[2])
        if not isinstance(holds, tuple) or holds[0][0] != "=" or sources[0].terms != sources[1].terms:
            return sources[2]
        name, inverted = holds
        if name not in self.assumed:
            at = group.pc - 1
            first = (at, False) in self.seen and (at, True) not in self.seen
            self.seen.add((at, first))
            self.assumed[name] = first ^ inverted
        return Value((), int(self.assumed[name] ^ inverted))

    def _joined(self, group: Group, how: str, sources: list[Value]) -> Value:
        """and, or, xor of predicates. Of one that is known for each thread and an unknown one that all have, the
        unknown one is assumed so that the other decides."""
        for place, source in enumerate(sources):
            holds, other = truth(source), sources[1 - place]
            known = not other.terms and not isinstance(other.each, int)
            if known and how != "xor" and isinstance(holds, tuple) and holds[0][0] == "=":
                name, inverted = holds
                holds_for_all = self.assumed.setdefault(name, (how == "and") ^ inverted) ^ inverted
                sources[place] = Value((), int(holds_for_all))
        return joined(how, sources)

    def _parted(self, at: int, name: str) -> int | None:
        """The threads for which a comparison with an unknown number holds, of which it is assumed that lanes part."""
        found = compared(name)
        if found is None or any(term[0] == "#" for term, _ in found[1].terms):
            return None
        holds, difference = found
        number = self.numbers.get(difference.terms)
        if number is None:
            if isinstance(difference.each, int) or at not in self.program.ends:
                return None
            step = gcd(*[count for _, count in difference.terms])
            number = -difference.numbers[WARP // 2] // step * step
            if len({holds(each + number, 0) for each in difference.numbers[:WARP]}) < 2:
                return None  # what is unknown is a multiple of a number for which they stay together
            self.parts = True
            if not self.parting:
                return None
            self.numbers[difference.terms] = number
            self.assumed[f"number {difference.terms}"] = True
        return sum(1 << thread for thread, each in enumerate(difference.numbers) if holds(each + number, 0))

    def _branch(self, group: Group, op: Op, mask: int) -> bool:
        target = self.program.target(group.pc)
        if target is None:
            self.stop()
            return True
        back = target <= group.pc
        if back and mask:
            rounds = self._rounds[group.pc] = self._rounds.get(group.pc, 0) + 1
            if rounds > _ROUNDS and not self._goes_on(group, op, target, rounds):
                return self._leave_loop(group, op, target)
        if mask == group.mask:
            group.pc = target
            return back or len(self.running) > 1
        group.pc += 1
        if not mask:
            return False
        some = any(mask & group.mask & half not in (0, group.mask & half) for half in _HALVES)  # of one warp
        if some and ".uni" in op.opcode and not self.assumed:
            message = f"'{op.opcode}' is taken by some of the threads that come to it"
            self.report("branch of some", op.line, None, message)
        self.left -= len(group.registers) >> 2
        self.running.append(group.split(target, mask))
        return True

    def _switch(self, group: Group, op: Op, mask: int) -> bool:
        """brx.idx: each thread goes where a known number says. An unknown one takes all of them to a place that no walk
        has come to."""
        targets, taken = self.program.table(group.pc), self.program.taken
        index = self.value(group, op.sources[0]) if op.sources else None
        if not targets or index is None or min(targets) <= group.pc:
            self.stop()
            return True
        if not mask:
            group.pc += 1
            return False
        places: dict[int, int] = {}
        if index.terms:
            self.assumed[f"switch {group.pc}.{self.moment}"] = True
            group.doubtful |= differs(index)
            to = next((to for to in targets if (group.pc, to) not in taken), targets[0])
            taken.add((group.pc, to))
            places[to] = mask
        else:
            taken.update([(group.pc, to) for to in targets])  # the others are never taken
            for thread, number in enumerate(index.numbers):
                if mask >> thread & 1:
                    if not 0 <= number < len(targets):
                        self.stop()
                        return True
                    places[targets[number]] = places.get(targets[number], 0) | 1 << thread
        (first, _), *others = sorted(places.items())
        for to, part in others:
            self.running.append(group.split(to, part))
        if mask != group.mask and group.mask & ~places[first]:
            self.running.append(group.split(group.pc + 1, group.mask & ~places[first]))
        group.pc = first
        self.left -= len(group.registers) * len(places) >> 2
        return True

    def _goes_on(self, group: Group, op: Op, target: int, rounds: int) -> bool:
        """Whether another round of a loop is walked."""
        value = group.registers.get(op.guard) if op.guard is not None else None
        known = value is not None and isinstance(truth(value), int)
        if known and rounds <= _SHORT_ROUNDS and group.pc - target < _SHORT:
            return True
        fills = known and self.threads.whole and self.memory.all_seen and not self.program.meets(target, group.pc)
        fills |= known and self.memory.owned.active  # how far it goes matters in a thread's own memory, too
        if fills and rounds * (group.pc - target + 1) <= _SHORT_STEPS:
            return True
        if self.program.flies(target, group.pc):
            return rounds <= (_KNOWN_ROUNDS if known else self._pipeline(target, group.pc))
        return rounds <= _KNOWN_ROUNDS and self._counted(group, op, target)

    @staticmethod
    def _pipeline(first: int, last: int) -> int:
        """Rounds of a loop with asynchronous work that are walked; fewer of a long one, which has been unrolled."""
        return max(_ROUNDS + 1, min(_PIPELINE, _PIPELINE_STEPS // (last - first + 1)))

    def _counted(self, group: Group, op: Op, target: int) -> bool:
        """Whether lanes may part in a loop that has .sync instructions, since it is known how long each one stays."""
        if not self.program.meets(target, group.pc):
            return False
        if op.guard is None:
            return not self.assumed
        value = group.registers.get(op.guard)
        known = truth(value) if value is not None else None
        if isinstance(known, tuple):  # compared with a number of which much is assumed
            found = compared(known[0])
            return found is not None and found[1].terms in self.numbers
        return isinstance(known, int)

    def _leave_loop(self, group: Group, op: Op, target: int) -> bool:
        """Go on behind a loop, whose results are not known, since not all of its rounds have been walked."""
        if op.guard is None:
            self.stop()
            return True
        self.moment += 1
        value = group.registers.get(op.guard)
        if value is not None and isinstance(truth(value), int):
            self.memory.flights.lose()  # it has not ended
        self.left -= (group.pc - target) >> 1
        self.assumed[f"rounds {group.pc}"] = True
        self.memory.kept.leave_loop(target, group.pc)
        for key in self.program.written(target, group.pc):
            if key in group.registers:
                group.registers[key] = unknown(True, "behind", group.pc, self.moment, key)
        group.pc += 1
        return False

    def _exit(self, mask: int) -> None:
        self.alive &= ~mask
        self.memory.clusters.left(mask)

    def _leave(self, group: Group) -> None:
        self.running.remove(group)
        self._exit(group.mask)


def number_of(op: Op, place: int) -> int | None:
    """An operand that is a number in the text."""
    operands = op.line.item.operands
    operand = operands[place] if place < len(operands) else None
    return operand.value if isinstance(operand, Immediate) else None


__all__ = ["Found", "Group", "Program", "Walker", "differs", "number_of"]
