"""What the threads of a walk have stored in shared memory, for those that load it: pointers and numbers go from thread
to thread there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.ir.nodes import Immediate, Name, Operand, Variable, Vector
from ptxtools.isa.types import TYPES
from ptxtools.records import NamedTuple

from ..facts import Line
from ..memory import access_bytes
from ..values import THREADS, WARP, Terms, Value, plus, shortest
from .calls import plain_call
from .computing import differs, reason_of, wrapped
from .owned import handed_over
from .shadow import Place

if TYPE_CHECKING:
    from .computing import Op
    from .memory import Memory
    from .walker import Group

#: Stores at offsets of one address that are remembered, and looks at them in a walk.
_MOST, _LOOKS = 24, 1 << 12
#: Families of the instructions that may write shared memory, and the words that say that they do not.
_WRITING = ("st", "atom", "red", "cp", "stmatrix", "tensormap", "clusterlaunchcontrol", "call")
_ELSEWHERE = (".global", ".local", ".param")


class _Stored(NamedTuple):
    """A store. where: the threads, as bits, and which element, by the begin of the element; no threads where they store
    different values in one place; size: bytes of an element; first, end: between which bytes all is; values: of the
    elements, None for what is unknown; moment: when."""

    where: dict[int, tuple[int, int]]
    size: int
    first: int
    end: int
    values: tuple[Value | None, ...]
    moment: int

    def found(self, at: int, size: int, thread: int) -> tuple[int, int] | None:
        """The thread that has stored an element of some bytes for one that loads it, and which element it is; None if
        parts are stored."""
        mask, element = self.where.get(at, (0, 0)) if size == self.size else (0, 0)
        if not mask:
            return None
        return (thread if mask >> thread & 1 else (mask & -mask).bit_length() - 1), element

    def meets(self, at: int, size: int) -> bool:
        """Whether any of some bytes are stored."""
        if at + size <= self.first or self.end <= at:
            return False
        if at in self.where:
            return True
        if self.size > WARP:
            return any(at - self.size < each < at + size for each in self.where)
        return any(each in self.where for each in range(at - self.size + 1, at + size))


class Kept:
    """The values that threads of one CTA have stored, as long as nothing that is not known may have changed them.

    A thread has a value that it has stored itself, or that another one has stored in time. If there are threads that do
    not walk, they must not store anything else: none of them comes to a store, or all threads do, each at an element of
    its own.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory, self._threads = memory, memory.threads
        self._program = memory.walker.program
        asked = not memory.threads.apart and "shared" in memory.spaces and bool(self._program.kept)
        self.active = asked and not self._program.copied
        self._stored: dict[Terms, list[_Stored]] = {}
        self._looks = _LOOKS
        self._own: set[int] = set()  # stores of all threads, each at an element of its own
        self._passed = 0  # stores, in the order of the text, of which that is known

    def lose(self) -> None:
        """Something may have written anywhere."""
        self._stored.clear()

    def give_up(self) -> None:
        """Something may write anywhere from now on."""
        self._stored.clear()
        self.active = False

    def leave_loop(self, first: int, last: int) -> None:
        """Not all rounds of a loop have been walked."""
        if self.active and any(first <= at <= last for at in self._program.sharing):
            self._stored.clear()

    def store(self, group: Group, op: Op, operand: int, place: Place | None, size: int, mask: int) -> None:
        """st, atom or red, at a place of which not all is known if it is None."""
        if not self.active:
            return
        if place is None:
            if self._reaches(group, op, operand):
                self._stored.clear()
            else:
                self._own.add(self._program.number(op.line))  # other threads do not reach it, either
        elif place.space != "shared":
            self._own.add(self._program.number(op.line))
        else:
            values = self._values(group, op) if op.family == "st" else ()
            self._note(op, place.address, size, mask, values)

    def write(self, op: Op, address: Value, size: int, mask: int) -> None:
        """Something else writes shared memory."""
        if self.active:
            self._note(op, address, size, mask, ())

    def _note(self, op: Op, address: Value, size: int, mask: int, values: tuple[Value | None, ...]) -> None:
        if not self._plain(op.line, address):
            self._stored.clear()
            return
        count = max(1, len(values))
        each = size // count
        where: dict[int, tuple[int, int]] = {}
        numbers = address.numbers
        for thread in range(THREADS):
            if mask >> thread & 1:
                for element in range(count):
                    at = numbers[thread] + element * each
                    others, before = where.get(at, (0, element))
                    alike = not others or _alike(values, others, before, thread, element)
                    where[at] = (others | 1 << thread if alike else 0), before
        if not where:
            return
        if mask == self._threads.mask and isinstance(address.each, range) and abs(address.each.step) >= size:
            self._own.add(self._program.number(op.line))
        known = self._stored.setdefault(address.terms, [])
        moment = self._memory.shadow.now
        known.append(_Stored(where, each, min(where), max(where) + each, values or (None,), moment))
        del known[:-_MOST]

    def _plain(self, line: Line, address: Value) -> bool:
        """Whether an address is at a known offset of one variable, and none of others."""
        symbol = line.names.lookup(address.variable) if address.variable else None
        if not isinstance(symbol, Variable) or address.terms[0][1] != 1:
            return False
        if symbol.linkage == "extern":  # such variables are all at one place
            others = [terms for terms in self._stored if terms != address.terms]
            if any(getattr(line.names.lookup(terms[0][0][1:]), "linkage", "") == "extern" for terms in others):
                return False
        return True

    def _reaches(self, group: Group, op: Op, operand: int) -> bool:
        """Whether an access at a place that is not known may be one of shared memory."""
        if any(space in op.opcode for space in _ELSEWHERE):
            return False
        base = next((base for at, base, _ in op.addresses if at == operand), None)
        value = self._memory.walker.value(group, base) if base is not None else None
        if value is None or ".shared" in op.opcode:
            return True
        if self._memory.owned.of(value) is not None:
            return False
        return not any(name[0] not in "#=%&" and not name.startswith("cvta.") for name, _ in value.terms)

    def _values(self, group: Group, op: Op) -> tuple[Value | None, ...]:
        """What a store stores."""
        data = op.line.item.operands[1] if len(op.line.item.operands) > 1 else None
        parts = data.items if isinstance(data, Vector) else (data,)
        info = TYPES.get(op.line.plan.op.type or "") if op.line.plan.op is not None else None
        bits = info.bits if info is not None else 0
        return tuple([self._value(group, op.line, part, bits) for part in parts])

    def _value(self, group: Group, line: Line, part: Operand | None, bits: int) -> Value | None:
        if isinstance(part, Immediate):
            return Value((), part.value) if part.type[0] != "f" else None
        key = line.registers[part.name] if isinstance(part, Name) and "." not in part.name else None
        if key is None or key not in self._program.needed or group.missing.get(key):
            return None
        value = group.registers.get(key)
        symbol = line.names.lookup(part.name) if isinstance(part, Name) else None
        declared = TYPES.get(symbol.type) if isinstance(symbol, Variable) else None
        whole = declared is not None and declared.bits == bits
        if value is None or (value.terms and not whole):
            return None
        several = reason_of(Value(value.terms, 0))[:1] == ("mixed",)
        return value if several or not differs(value) or self._memory.owned.of(value) is not None else None

    # --- loads --------------------------------------------------------------------------------------------------------

    def load(self, group: Group, op: Op, mask: int) -> dict[object, Value]:
        """What a load gives its registers, in so far as it is known."""
        line = op.line
        at = self._program.number(line) if self._stored else -1
        if not self.active or at not in self._program.kept or self._memory.blind or not op.addresses:
            return {}
        place = self._memory.place_of(group, op, 1, line.plan.op.space or "" if line.plan.op is not None else "")
        if place is None or place.space != "shared" or place.address.terms not in self._stored:
            return {}
        if not self._threads.whole and not self._alone(at):
            return {}
        into = line.item.operands[0]
        parts = into.items if isinstance(into, Vector) else (into,)
        size = access_bytes(line) // len(parts)
        found: dict[object, Value] = {}
        for element, part in enumerate(parts):
            key = line.registers[part.name] if isinstance(part, Name) else None
            if key is not None and key in self._program.needed:
                value = self._loaded(plus(place.address, Value((), element * size)), size, mask)
                if value is not None:
                    found[key] = _as(value, line.plan.op.type or "" if line.plan.op is not None else "", size)
        return found

    def _loaded(self, address: Value, size: int, mask: int) -> Value | None:
        """What threads find at an address; None if it is not known of each."""
        numbers, stored = address.numbers, self._stored.get(address.terms, [])[::-1]
        terms: Terms | None = None
        each, owners = [0] * THREADS, list(range(THREADS))
        moved = False
        for thread in range(THREADS):
            if not mask >> thread & 1:
                continue
            self._looks -= len(stored)
            if self._looks < 0:
                self.give_up()
                return None
            last = next((one for one in stored if one.meets(numbers[thread], size)), None)
            source = last.found(numbers[thread], size, thread) if last is not None else None
            if last is None or source is None or not self._memory.shadow.knows(thread, source[0], last.moment):
                return None
            value = last.values[source[1]]
            if value is None or (terms is not None and value.terms != terms):
                return None
            terms, each[thread], owners[thread] = value.terms, value.numbers[source[0]], source[0]
            moved |= source[0] != thread
        if terms is None:
            return None
        first = (mask & -mask).bit_length() - 1
        rest = [at for at in range(THREADS) if not mask >> at & 1]
        for thread in rest:
            each[thread] = each[first]
        base = Value(terms, 0)
        if moved and (differs(base) or self._memory.owned.of(base) is not None):
            for thread in rest:
                owners[thread] = owners[first]
            base = handed_over(base, tuple(owners))
        return plus(base, Value((), shortest(iter(each))))

    def _alone(self, at: int) -> bool:
        """Whether no thread but those that walk stores anything else above a load in the text."""
        sharing = self._program.sharing
        while self._passed < len(sharing) and sharing[self._passed] < at:
            here = sharing[self._passed]
            if here not in self._own and not self._few(here):
                return False
            self._passed += 1
        return True

    def _few(self, at: int) -> bool:
        """Whether only threads that walk come to an instruction, as comparisons of their numbers say."""
        coming = self._program.coming.get(id(self._program.lines[at].item))
        if coming is None:
            return False
        walking = 0
        for thread, number in enumerate(self._threads.registers["%tid.x"].numbers):
            if self._threads.mask >> thread & 1:
                walking |= 1 << number
        return not coming & ~walking


def _alike(values: tuple[Value | None, ...], others: int, before: int, thread: int, element: int) -> bool:
    """Whether a thread stores as an element what others have stored in the same place as theirs."""
    if not values:
        return True
    a, b = values[before], values[element]
    if a is None or b is None:
        return a is b
    first = (others & -others).bit_length() - 1
    return a.terms == b.terms and a.numbers[first] == b.numbers[thread] and not differs(a)


def _as(value: Value, type_: str, size: int) -> Value:
    """A number as a load of some type gives it."""
    if value.terms:
        return value
    bits = 8 * size
    signed = type_[:1] == "s" or bits >= WARP
    return Value((), shortest(iter([wrapped(number, bits, signed) for number in value.numbers])))


def may_share(line: Line) -> bool:
    """Whether an instruction may write shared memory."""
    opcode = line.item.opcode
    if line.plan.family not in _WRITING or (line.plan.family == "call" and plain_call(line)):
        return False
    return ".shared" in opcode or not any(space in opcode for space in _ELSEWHERE)


def may_load(line: Line) -> bool:
    """Whether an instruction may load from shared memory."""
    opcode = line.item.opcode
    return line.plan.family == "ld" and (
        ".shared" in opcode or not any(space in opcode for space in (*_ELSEWHERE, ".const"))
    )


__all__ = ["Kept", "may_load", "may_share"]
