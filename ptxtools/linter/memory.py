"""Accesses to memory along each run of instructions, with addresses as values; and what orders them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from ptxtools.ir.nodes import Address, Element, Name, Operand, Variable, Vector
from ptxtools.ir.symbols import RegisterKey
from ptxtools.isa import Opcode
from ptxtools.isa.types import TYPES
from ptxtools.records import NamedTuple

from .accesses import in_register
from .facts import FunctionFacts, Line
from .values import THREADS, WARP, Reader, Value, plus, thread_count

#: Families of the instructions that become steps.
STEPPING = frozenset({
    "ld", "ldu", "st", "atom", "red", "cp", "bar", "barrier", "fence", "membar", "mbarrier", "call", "ldmatrix",
    "stmatrix", "mapa", "wgmma", "tcgen05", "griddepcontrol", "discard", "applypriority", "prefetch", "multimem",
    "tensormap",
})  # fmt: skip
#: Bytes of a tensor map.
MAP_BYTES = 128
#: Bytes from address 0 on at which there is never any memory.
PAGE = 4096
_ACCESSING = frozenset({"ld", "st", "atom", "red"})
_STRONG = ("volatile", "relaxed", "acquire", "release", "acq_rel", "mmio", "sc")


class Step(NamedTuple):
    """An instruction. addresses: of each operand, None where it is none; stored: what a `st` writes, if it is one
    value, or the same one in all elements; active: the threads that certainly run it, None if unknown; access: of a
    `ld`, `st`, `atom` or `red`; map: of a tensor copy, with its place."""

    line: Line
    addresses: tuple[Value | None, ...]
    stored: Value | None
    active: tuple[bool, ...] | None
    access: Reach | None
    family: str
    map: Reach | None = None

    def has(self, *words: str) -> bool:
        op = self.line.plan.op
        return op is not None and any(op.has(word) for word in words)

    @property
    def indirect(self) -> bool:
        """Whether an access is at an address in a register, not at a variable's name."""
        return self.access is not None and in_register(self.line, self.line.item.operands[self.access.operand])

    @property
    def writes(self) -> bool:
        return self.family != "ld"

    @property
    def atomic(self) -> bool:
        return self.family in ("atom", "red")

    @property
    def strong(self) -> bool:
        """Whether an access is one that may meet others: of the memory model's strong operations."""
        return self.atomic or self.has(*_STRONG)


class Reach(NamedTuple):
    """operand: which one is the address; space: "" for generic; size: bytes from `address` on."""

    operand: int
    space: str
    address: Value
    size: int

    def meets(self, other: Reach) -> bool:
        """Whether one thread certainly reaches a byte of the other with both."""
        difference = plus(self.address, other.address, -1)
        each = difference.each
        if difference.terms or isinstance(each, int):
            return not difference.terms and -self.size < each < other.size  # type: ignore[operator]
        if isinstance(each, range):  # the least that is great enough
            rising = each if each.step > 0 else each[::-1]
            at = max(0, -((self.size - 1 + rising.start) // rising.step))
            return at < THREADS and rising[at] < other.size
        return any(-self.size < number < other.size for number in each)


def access_bytes(line: Line) -> int:
    """Bytes of one access; 0 if unknown."""
    op = line.plan.op
    return _bytes(op) if op is not None else 0


@lru_cache(1024)
def _bytes(op: Opcode) -> int:
    info = TYPES.get(op.type or "")
    if info is None:
        return 0
    return info.bytes * next((int(atom[1:]) for atom in ("v2", "v4", "v8") if op.has(atom)), 1)


def steps_of(facts: FunctionFacts) -> list[list[Step]]:
    """The steps of each run of a function."""
    if STEPPING.isdisjoint(facts.families):
        return []
    known = facts.known_values
    settled = {} if facts.early else known
    count = thread_count(facts.function)
    everybody = tuple(number < count for number in range(THREADS))
    found = []
    begun = facts.begun_with
    for number, run in enumerate(facts.runs):
        first = number == 0 and facts.function.kind == "entry" and run[0] is facts.lines[0]
        last = next((at for at in range(len(run), 0, -1) if run[at - 1].plan.family in STEPPING), 0)
        # What registers hold behind the last step of a run matters to nobody.
        steps = (
            _steps(
                Reader(facts, known, {} if run is facts.runs[0] else begun),
                run[:last],
                everybody if first else None,
                settled,
            )
            if last
            else ()
        )
        found.append(list(steps))
    return found


def _steps(
    reader: Reader, run: list[Line], active: tuple[bool, ...] | None, settled: Mapping[RegisterKey, Value]
) -> Iterator[Step]:
    """settled: registers whose only write changes nothing that the reader knows."""
    for line in run:
        family, item = line.plan.family, line.item
        if family in STEPPING:
            addresses = tuple([
                reader.address(operand, line) if type(operand) is Address or type(operand) is Element else None
                for operand in item.operands
            ])  # fmt: skip
            stored = reader.of(_data(item.operands[1]), line) if family == "st" and len(item.operands) > 1 else None
            used = _map(reader, line) if family == "cp" and ".tensor" in item.opcode else None
            yield Step(line, addresses, stored, _both(active, reader, line), _reach(line, addresses), family, used)
        elif item.guard is not None and family in ("bra", "exit", "ret"):
            holds = reader.holds(line) if active is not None else None
            active = None if active is None or holds is None else tuple(
                a and not h for a, h in zip(active, holds, strict=True)
            )  # fmt: skip
        into = item.operands[0] if item.operands and item.guard is None else None
        if type(into) is not Name or line.registers[into.name] not in settled:
            reader.step(line)


def _data(operand: Operand) -> Operand:
    """What a store stores: of a vector that has one value in all its elements, that."""
    items = operand.items if isinstance(operand, Vector) else ()
    return items[0] if items and all(item == items[0] for item in items) else operand


def _map(reader: Reader, line: Line) -> Reach | None:
    """The tensor map that a copy uses."""
    for place, operand in enumerate(line.item.operands):
        if isinstance(operand, Address) and operand.extra and isinstance(operand.base, Name):
            base = reader.of_name(operand.base.name, line)
            return Reach(place, "global", plus(base, Value((), operand.offset)), MAP_BYTES)
    return None


def changed_map(step: Step) -> Reach | None:
    """What tensormap.replace changes."""
    if step.family != "tensormap" or not step.addresses or step.addresses[0] is None:
        return None
    op = step.line.plan.op
    space = (op.space or "") if op is not None else ""
    return Reach(0, space.partition("::")[0], step.addresses[0], MAP_BYTES)


def _reach(line: Line, addresses: tuple[Value | None, ...]) -> Reach | None:
    family, op = line.plan.family, line.plan.op
    place = 0 if family in ("st", "red") else 1
    if op is None or family not in _ACCESSING or len(addresses) <= place:
        return None
    address, size = addresses[place], access_bytes(line)
    if address is None or not size:
        return None
    return Reach(place, (op.space or "").partition("::")[0], address, size)


def _both(active: tuple[bool, ...] | None, reader: Reader, line: Line) -> tuple[bool, ...] | None:
    if line.item.guard is None:
        return active
    holds = reader.holds(line)
    if active is None:
        return None if holds is None or any(holds) else holds
    return None if holds is None else tuple(a and h for a, h in zip(active, holds, strict=True))


def variable_of(line: Line, address: Value) -> Variable | None:
    """The variable that an address certainly lies in or near."""
    symbol = line.names.lookup(address.variable) if address.variable else None
    return symbol if isinstance(symbol, Variable) and address.terms[0][1] == 1 else None


__all__ = ["PAGE", "WARP", "Reach", "Step", "access_bytes", "changed_map", "steps_of", "variable_of"]
