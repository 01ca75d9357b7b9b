"""The paths of a thread through its program: each a list of events whose values depend on what the reads return."""

from __future__ import annotations

from collections.abc import Sequence

from ptxtools.records import replace

from .asynchronous import ASYNCHRONOUS
from .events import Event, Path, Value, constant, equal, truth
from .functions import computed
from .matrices import Engine as Products
from .programs import (
    TENSOR_MEMORY,
    UNTYPED,
    Address,
    Barrier,
    Branch,
    Fence,
    GridControl,
    Guard,
    Instruction,
    Label,
    Local,
    Location,
    Memory,
    Multimem,
    Operand,
    Place,
    ProxyFence,
    Register,
    TensorCore,
    Test,
    Thread,
    Type,
)
from .tensors import Engine, encoded
from .wgmma import uses_open_result
from .words import refuse

#: How often one instruction of a thread is executed before a path is given up.
DEFAULT_UNROLL = 2
#: Paths of one thread that are followed.
MOST_PATHS = 20_000
#: Elements of a buffer that an access is tried at, if a read decides.
MOST_ELEMENTS = 32
#: Addresses of locations are this far apart.
_SPACING = 1 << 16
#: Where they begin if some have addresses of their own.
_ABOVE = 1 << 40
MULTI_ADDRESS = "only multimem operations may access a multi-address (8.2.3)"
ONLY_TENSOR = "only tcgen05 instructions may access tensor memory (9.7.16.1)"
_COORDINATE = Type("s", 32)
#: The barriers of a CTA (9.7.13.1).
_BARRIERS = range(16)


class Paths:
    """Follows the threads of a test. cut: whether a path was given up because of the bound `unroll`."""

    def __init__(self, test: Test, unroll: int = DEFAULT_UNROLL) -> None:
        self.test, self.unroll, self.cut = test, unroll, False
        #: The instruction that is followed.
        self.using: Instruction = Label(text="", name="")
        #: Tensor maps that the program can make; what it puts into fields, while that is collected.
        self.maps: list[int] | None = None
        self.replaced: dict[tuple[str, int, int], None] | None = None
        self._engine: Engine | None = None
        self._products: Products | None = None
        self.types = {name: self._natural(name) for name in test.locations}
        names = dict.fromkeys(location.virtual for location in test.locations.values())
        first = _ABOVE if any(location.address for location in test.locations.values()) else 0
        self.addresses = {name: test.locations[name].address or first + (index + 1) * _SPACING
                          for index, name in enumerate(names)}  # fmt: skip

    def _natural(self, name: str) -> Type:
        """The type of accesses without one: the declared one, else that of the accesses that have one."""
        memory = self.test.locations[name].memory
        same = [location for location in self.test.locations.values() if location.memory == memory]
        for location in same:
            if location.type is not None:
                return location.type
        names = {location.name for location in same}
        used = {
            i.type for thread in self.test.threads for i in thread.instructions
            if isinstance(i, Memory) and i.base in names and i.type is not None and i.offset == 0 and len(i.results) < 2
        }  # fmt: skip
        return used.pop() if len(used) == 1 else UNTYPED

    def address_of(self, name: str) -> int:
        return self.addresses[self.test.locations[name].virtual]

    def extent(self, name: str) -> int:
        """The bytes behind a location's address that are its own."""
        return self.test.locations[name].size or _SPACING // 2

    def initial(self, number: int | Address) -> int:
        return self.address_of(number.name) if isinstance(number, Address) else number

    def initial_of(self, location: Location) -> int:
        """The initial value of a location; of a tensor map's, all bytes."""
        if location.map is not None and isinstance(location.initial, Address):
            return encoded(self, location)
        return self.initial(location.initial)

    def engine(self) -> Engine:
        """What knows tensor maps."""
        if self._engine is None:
            if self.test.tensors is None:
                refuse(self.test.source, "nothing here knows tensor maps", self.using.span)
            self._engine = self.test.tensors()
        assert self._engine is not None
        return self._engine

    def products(self) -> Products:
        """What knows matrices."""
        if self._products is None:
            if self.test.products is None:
                refuse(self.test.source, "nothing here knows products of matrices", self.using.span)
            self._products = self.test.products()
        assert self._products is not None
        return self._products

    def signed(self, path: Path, instruction: Instruction, operand: Operand) -> int:
        """A coordinate: a signed number of 32 bits, which no read decides."""
        value = self.operand(path, operand)
        if value.needs:
            refuse(self.test.source, "a coordinate that depends on a read is not modelled", instruction.span)
        return _COORDINATE.wrap(value.of(()))

    def of(self, thread: Thread) -> list[Path]:
        """All paths of a thread. Raises PtxError if there are too many."""
        start = Path(thread)
        for name, number in self.test.registers.items():
            owner, register = name.split(":")
            if owner == thread.name:
                start.registers[register] = constant(self.initial(number))
        labels = {i.name: at for at, i in enumerate(thread.instructions) if isinstance(i, Label) and i.name}
        labels[""] = len(thread.instructions)
        found, stack = [], [start]
        while stack:
            path = stack.pop()
            if path.at >= len(thread.instructions):
                found.append(path)
                if len(found) > MOST_PATHS:
                    span = thread.instructions[0].span
                    refuse(self.test.source, f"{thread.name} has more than {MOST_PATHS} paths", span, "lower --unroll")
                continue
            instruction = thread.instructions[path.at]
            visits = path.visits[path.at] = path.visits.get(path.at, 0) + 1
            if visits > self.unroll:
                self.cut = True
                continue
            stack += reversed(list(self._guarded(path, instruction, labels)))
        return found

    # --- one instruction ---

    def _guarded(self, path: Path, instruction: Instruction, labels: dict[str, int]) -> list[Path]:
        guard: Guard | None = instruction.guard
        if guard is None:
            return self._executed(path, instruction, labels)
        value = self.operand(path, Register(guard.register))
        taken, skipped = self._fork(path, value, not guard.negated)
        found = [] if taken is None else self._executed(taken, instruction, labels)
        if skipped is not None:
            skipped.at += 1
            found.append(skipped)
        return found

    def _fork(self, path: Path, value: Value, wanted: bool) -> tuple[Path | None, Path | None]:
        """The path on which a value is true (if `wanted`) and the one on which it is not; None where it cannot be."""
        if not value.needs:
            holds = bool(value.of(())) == wanted
            return (path, None) if holds else (None, path)
        path.control |= value.needs
        other = path.copy()
        path.conditions.append((value, wanted))
        other.conditions.append((value, not wanted))
        return path, other

    def operand(self, path: Path, operand: Operand) -> Value:
        if isinstance(operand, int):
            return constant(operand)
        if isinstance(operand, Address):
            return constant(self.address_of(operand.name))
        if path.copies.open and uses_open_result(path, operand):
            refuse(self.test.source, f"'{operand.name}' is used before wgmma.wait_group (9.7.15.7.3)",
                   self.using.span)  # fmt: skip
        return path.registers.get(operand.name) or constant(0)

    def _computed(self, path: Path, function: str, type_: Type | None, operands: Sequence[Operand]) -> Value:
        values = [self.operand(path, operand) for operand in operands]
        needs = 0
        for value in values:
            needs |= value.needs
        if not needs:
            return constant(computed(function, type_, [value.of(()) for value in values]))
        return Value(needs, lambda reads: computed(function, type_, [value.of(reads) for value in values]))

    def _executed(self, path: Path, instruction: Instruction, labels: dict[str, int]) -> list[Path]:
        path.at += 1
        path.steps += 1
        self.using = instruction
        if isinstance(instruction, Memory):
            return self._memory(path, instruction)
        if isinstance(instruction, Barrier):
            return self._barrier(path, instruction)
        if isinstance(instruction, Branch):
            if not instruction.function:
                path.at = labels[instruction.label]
                return [path]
            value = self._computed(path, instruction.function, instruction.type, instruction.values)
            taken, passed = self._fork(path, value, True)
            if taken is not None:
                taken.at = labels[instruction.label]
            return [way for way in (passed, taken) if way is not None]
        if isinstance(instruction, Local) and instruction.function == "mapa":
            path.registers[instruction.result] = self._mapped(path, *instruction.values)
        elif isinstance(instruction, Local):
            path.registers[instruction.result] = self._computed(
                path, instruction.function, instruction.type, instruction.values
            )
        elif isinstance(instruction, Fence):
            path.events.append(Event("F", path.steps, instruction, instruction.order, instruction.scope,
                                     limited=instruction.limited, space=instruction.space))  # fmt: skip
        elif isinstance(instruction, GridControl):
            path.events.append(Event("C", path.steps, instruction))
        elif isinstance(instruction, ProxyFence):
            path.events.append(Event("P", path.steps, instruction, instruction.order, instruction.scope,
                                     instruction.proxy, space=instruction.space,
                                     covers=self._covered(path, instruction)))  # fmt: skip
        else:
            follow = ASYNCHRONOUS.get(type(instruction))
            return [path] if follow is None else follow(self, path, instruction)
        return [path]

    def _covered(self, path: Path, instruction: ProxyFence) -> tuple[str, int, int] | None:
        """The bytes that a fence is limited to."""
        for place in instruction.places:
            name, offset = self.place(path, instruction, place, instruction.size)
            return name, offset, offset + instruction.size
        return None

    def _mapped(self, path: Path, address: Operand, rank: Operand) -> Value:
        """mapa: the address of the same variable in the CTA of that rank (9.7.9.23); 0, where nothing is, if there is
        none."""
        source, target = self.operand(path, address), self.operand(path, rank)

        def mapped(reads: Sequence[int]) -> int:
            place, number = source.of(reads), target.of(reads)
            for location in self.test.locations.values():
                offset = place - self.addresses[location.virtual]
                if 0 <= offset < location.size and 0 <= number < len(location.peers):
                    return self.addresses[location.peers[number]] + offset
            return 0

        needs = source.needs | target.needs
        return Value(needs, mapped) if needs else constant(mapped(()))

    # --- memory ---

    def _memory(self, path: Path, instruction: Memory) -> list[Path]:
        if isinstance(instruction.base, str):
            return self._access(path, instruction, instruction.base, instruction.offset, 0)
        base = self.operand(path, instruction.base)
        if not base.needs:
            return self._access(path, instruction, *self.located(base.of(()) + instruction.offset, instruction), 0)
        found = []
        for name, location in self.test.locations.items():
            if location.virtual == name and location.space != TENSOR_MEMORY:
                for offset in self._offsets(instruction, name):
                    way, here = path.copy(), self.addresses[name] + offset - instruction.offset
                    way.conditions.append((equal(base, here), True))
                    found += self._access(way, instruction, name, offset, base.needs)
        return found

    def located(self, address: int, instruction: Instruction) -> tuple[str, int]:
        """The location with this address, and the offset in it."""
        for name, location in self.test.locations.items():
            offset = address - self.addresses[location.virtual]
            if location.virtual == name and 0 <= offset < self.extent(name):
                return name, offset
        refuse(self.test.source, "this address is that of no location", instruction.span)

    def found_at(self, address: int, size: int) -> tuple[str, int] | None:
        """Location and offset of so many bytes at an address, None if no location has them."""
        for name, location in self.test.locations.items():
            offset = address - self.addresses[location.virtual]
            if location.virtual == name and 0 <= offset <= self.extent(name) - size and not location.members:
                return name, offset
        return None

    def place(self, path: Path, instruction: Instruction, place: Place, size: int) -> tuple[str, int]:
        """Location and offset of so many bytes at an operand's address, which must not depend on a read."""
        base, offset = place
        if isinstance(base, Register):
            value = self.operand(path, base)
            if value.needs:
                refuse(self.test.source, "an address that depends on a read is not modelled here", instruction.span)
            base, offset = self.located(value.of(()) + offset, instruction)
        several = isinstance(instruction, Multimem) or getattr(instruction, "multi", False)
        if self.test.locations[base].members and not several:
            refuse(self.test.source, MULTI_ADDRESS, instruction.span)
        if self.test.locations[base].space == TENSOR_MEMORY and not isinstance(instruction, TensorCore):
            refuse(self.test.source, ONLY_TENSOR, instruction.span)
        if offset < 0 or offset + size > self.extent(base):
            refuse(self.test.source, "the offset leads out of the location", instruction.span)
        return base, offset

    def peers(self, path: Path, instruction: Instruction, name: str, mask: Operand) -> list[str]:
        """The same variable in the CTAs of the cluster that a mask names, by their ranks."""
        value = self.operand(path, mask)
        if value.needs:
            refuse(self.test.source, "a mask that depends on a read is not modelled", instruction.span)
        peers, chosen = self.test.locations[name].peers, value.of(())
        ranks = [rank for rank in range(16) if chosen >> rank & 1]
        if not ranks or max(ranks) >= len(peers):
            refuse(self.test.source, f"the cluster has no CTAs for the mask {chosen:#x}", instruction.span)
        return [peers[rank] for rank in ranks]

    def _offsets(self, instruction: Memory, name: str) -> Sequence[int]:
        """Where in a location an access may be whose address depends on a read: at each element, if it has a size."""
        size = self.test.locations[name].size
        if not size:
            return (instruction.offset,)
        whole = (instruction.type or self.types[name]).bits // 8 * (len(instruction.results) or 1)
        found = range(0, size - whole + 1, whole)
        if len(found) > MOST_ELEMENTS:
            refuse(self.test.source, f"an address that depends on a read, where '{name}' has {len(found)} elements",
                   instruction.span, f"at most {MOST_ELEMENTS} are modelled")  # fmt: skip
        return found

    def _access(self, path: Path, instruction: Memory, name: str, offset: int, address: int) -> list[Path]:
        if self.test.locations[name].members:
            refuse(self.test.source, MULTI_ADDRESS, instruction.span)
        if self.test.locations[name].space == TENSOR_MEMORY:
            refuse(self.test.source, ONLY_TENSOR, instruction.span)
        type_ = instruction.type or self.types[name]
        size = type_.bits // 8
        whole = size * max(len(instruction.results if instruction.kind == "ld" else instruction.values), 1)
        most = self.extent(name)
        if offset < 0 or offset + (whole if instruction.kind in ("ld", "st") else size) > most:
            refuse(self.test.source, "the offset leads out of the location", instruction.span)
        needs = path.control | address
        event = Event("R", path.steps, instruction, instruction.order, instruction.scope, instruction.proxy, name,
                      offset, size, needs=needs)  # fmt: skip
        if instruction.kind == "ld":
            for part, register in enumerate(instruction.results):
                path.registers[register] = self.loaded(len(path.events), type_)
                path.events.append(replace(event, offset=offset + part * size))
            return [path]
        values = [self.operand(path, operand) for operand in instruction.values]
        if instruction.kind == "st":
            for part, value in enumerate(values):
                path.events.append(replace(event, kind="W", offset=offset + part * size, value=value,
                                           needs=needs | value.needs))  # fmt: skip
            return [path]
        return self._atomic(path, instruction, event, type_, values)

    def loaded(self, index: int, type_: Type) -> Value:
        return Value(1 << index, lambda reads: type_.wrap(reads[index]))

    def _atomic(self, path: Path, instruction: Memory, event: Event, type_: Type, values: list[Value]) -> list[Path]:
        index, own = len(path.events), 1 << len(path.events)
        old, function = self.loaded(index, type_), instruction.function
        event = replace(event, kind="U", returns=instruction.kind == "atom", needs=event.needs | values[-1].needs)
        if function == "cas":
            expected = values[0]
            same = Value(own | expected.needs, lambda reads: int(type_.wrap(expected.of(reads)) == old.of(reads)))
            done, failed = path, path.copy()
            done.conditions.append((same, True))
            done.events.append(replace(event, value=values[1], needs=event.needs | expected.needs | own))
            failed.conditions.append((same, False))
            failed.events.append(replace(event, kind="R"))
            ways = [done, failed]
        else:
            operand = values[0]
            if function == "exch":
                event = replace(event, value=operand)
            else:

                def new(reads: Sequence[int]) -> int:
                    return computed(function, type_, [old.of(reads), operand.of(reads)], atomic=True)

                event = replace(event, value=Value(own | operand.needs, new), needs=event.needs | own)
            path.events.append(event)
            ways = [path]
        for way in ways:
            for register in instruction.results:
                way.registers[register] = old
        return ways

    # --- barriers ---

    def _barrier(self, path: Path, instruction: Barrier) -> list[Path]:
        """A barrier that a read decides is tried as each of the CTA's barriers; at one with a count, the thread may be
        left over."""
        thread = path.thread
        place: tuple[object, ...]
        if instruction.place == "cluster":
            place = ("cluster", thread.gpu, thread.grid, thread.cluster if thread.cluster >= 0 else ("cta", thread.cta))
        elif instruction.place == "warp":
            place = ("warp", thread.gpu, thread.grid, thread.cta, thread.warp)
            if any(self.operand(path, mask).needs for mask in instruction.numbers):
                refuse(self.test.source, "a mask that depends on a read is not modelled", instruction.span)
        else:
            place = ("cta", thread.gpu, thread.grid, thread.cta)
        count = None
        if instruction.count is not None:
            value = self.operand(path, instruction.count)
            if value.needs:
                refuse(self.test.source, "a count of threads that depends on a read is not modelled", instruction.span)
            count = value.of(())
        ways: list[tuple[Path, tuple[object, ...]]] = [(path, place)]
        for operand in instruction.numbers:
            value = self.operand(path, operand)
            if not value.needs:
                ways = [(way, (*key, value.of(()))) for way, key in ways]
                continue
            more = []
            for way, key in ways:
                for number in _BARRIERS:
                    other = way.copy()
                    other.conditions.append((equal(value, number), True))
                    more.append((other, (*key, number)))
            ways = more
        alone: list[Path] = []
        for way, key in ways:
            event = Event("A", way.steps, instruction, barrier=key, count=count, needs=way.control,
                          ordering=instruction.ordering)  # fmt: skip
            if instruction.reduction:
                event.value = truth(self.operand(way, instruction.predicate), not instruction.negated)
                event.needs |= event.value.needs
            if instruction.mode != "wait":
                way.events.append(event)
            if instruction.mode == "sync" and count is not None:
                over = way.copy()
                over.at, over.unreached = len(thread.instructions), thread.instructions[over.at - 1 :]
                alone.append(over)
            if instruction.mode != "arrive":
                way.steps += 1
                if instruction.result:
                    way.registers[instruction.result] = self.loaded(len(way.events), UNTYPED)
                way.events.append(replace(event, kind="B", step=way.steps, value=None))
        return [way for way, _ in ways] + alone
