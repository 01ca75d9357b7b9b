"""A litmus test as a tree: locations, threads, instructions, and the condition on final states."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ptxtools.diagnostics import NO_SPAN, Source, Span
from ptxtools.records import dataclass, field

from .words import Reader

#: The scopes of 8.5, from the smallest.
SCOPES = ("cta", "cluster", "gpu", "sys")
#: The proxies of 8.6.
PROXIES = ("generic", "surface", "texture", "constant", "async", "tensormap")

#: The state space of tensor memory (9.7.16.1), as tests declare it; what is there has the proxy "tensor".
TENSOR_MEMORY = "tmem"

#: Threads of a test, and instructions of one of them.
MOST_THREADS, MOST_INSTRUCTIONS = 16, 100

#: The width of registers and values without a type, bits.
DEFAULT_BITS = 64


#: Floating-point types of 8 bits.
NARROW_FLOATS = ("e4m3", "e5m2")


@dataclass(frozen=True, slots=True)
class Type:
    """A scalar type. kind: "u", "s", "b", "f", "bf", or "e4m3" or "e5m2" of so many numbers as the bits have bytes;
    packed: of two floating-point numbers, each half the bits."""

    kind: str
    bits: int
    packed: bool = False

    @property
    def float_name(self) -> str:
        """The name of a floating-point type, such as "f16x2"."""
        if self.kind in NARROW_FLOATS:
            return f"{self.kind}x{self.bits // 8}"
        return f"{self.kind}{self.bits // 2}x2" if self.packed else f"{self.kind}{self.bits}"

    def wrap(self, value: int) -> int:
        """The value as the type holds it: two's complement if signed, else from 0."""
        value &= (1 << self.bits) - 1
        return value - (1 << self.bits) if self.kind == "s" and value >> (self.bits - 1) else value


_SCALAR = re.compile(r"\.?([usbf])(8|16|32|64)")


_FLOATS = {"bf16": Type("bf", 16), "f16x2": Type("f", 32, packed=True), "bf16x2": Type("bf", 32, packed=True)}


def reduced_type(name: str) -> Type | None:
    """The type that a reduction in memory names, as `scalar_type`; also bf16, and packed ones."""
    return _FLOATS.get(name) or scalar_type(name)


def scalar_type(name: str) -> Type | None:
    """The type of that name, with or without its dot; None if it is none of those modelled."""
    match = _SCALAR.fullmatch(name)
    return Type(match[1], int(match[2])) if match else None


#: The type of what has none.
UNTYPED = Type("s", DEFAULT_BITS)


@dataclass(frozen=True, slots=True)
class Register:
    name: str


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a location."""

    name: str


Operand: TypeAlias = int | Register | Address
#: An address: a location or a register, and bytes to add.
Place: TypeAlias = "tuple[str | Register, int]"


@dataclass(frozen=True, slots=True)
class Guard:
    """@p or @!p: the instruction executes if the register is not 0, or is 0."""

    register: str
    negated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    text: str
    span: Span = NO_SPAN
    guard: Guard | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory(Instruction):
    """ld, st, atom or red. order: "weak", "relaxed", "acquire", "release" or "acq_rel"; scope: "" if weak; base and
    offset (bytes): the address; results: registers; values: operands; function: what an atomic operation computes."""

    kind: str
    order: str
    scope: str
    proxy: str
    base: str | Register
    offset: int
    type: Type | None
    results: tuple[str, ...] = ()
    values: tuple[Operand, ...] = ()
    function: str = ""
    mmio: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence(Instruction):
    """A memory fence. order: "sc", "acq_rel", "acquire" or "release"; limited: it orders no prior operations but
    `mbarrier.init`; space: the shared memory whose objects it is for only, "" if for all (9.7.13.4)."""

    order: str
    scope: str
    limited: bool = False
    space: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyFence(Instruction):
    """proxy: one of `PROXIES`, or "alias"; space: the state space that it is limited to (9.7.13.4), "" if it is not;
    order, scope: of a one-sided fence from the generic proxy, "release" or "acquire"; places, size: the memory that it
    is limited to, bytes."""

    proxy: str
    space: str = ""
    order: str = ""
    scope: str = ""
    places: tuple[Place, ...] = ()
    size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Barrier(Instruction):
    """mode: "sync", "arrive" or "wait"; place: "cta", "warp" or "cluster", or "row", for the threads that hold a row of
    a matrix together, which is no barrier of memory; numbers: what names the barrier, of a warp its mask; count: how
    many threads take part, if given; ordering: whether it synchronises memory: a relaxed arrival does not; reduction:
    what the result is of the predicates of all who arrive, "popc", "and" or "or", or "join" of the registers of a row;
    "" if there is none (9.7.13.1); negated: whether this thread's predicate counts as its opposite."""

    mode: str
    place: str
    numbers: tuple[Operand, ...] = ()
    count: Operand | None = None
    ordering: bool = True
    reduction: str = ""
    predicate: Operand = 0
    negated: bool = False
    result: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mbarrier(Instruction):
    """An operation on an mbarrier object (9.7.13.15). kind: "init", "inval", "expect_tx", "complete_tx", "arrive",
    "arrive_drop", "wait" or "arrive_copies" (cp.async.mbarrier.arrive); places: that of the object; values: the count,
    for "wait" a state or a parity; transactions: how many an arrival expects; pends: an arrival of copies first adds
    itself to what is pending."""

    kind: str
    order: str
    scope: str
    places: tuple[Place, ...]
    values: tuple[Operand, ...] = ()
    transactions: Operand | None = None
    result: str = ""
    parity: bool = False
    pends: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy(Instruction):
    """An asynchronous copy (9.7.9.25). places: to, from, and the mbarrier that is told of its end, if any; size: bytes;
    bulk: through the async proxy; function, type, scope: what a reduction computes, and its scope; multi: to a
    multi-address (9.7.9.25.7); order: "weak", or "relaxed" for one of 16 bytes at a time; mask: which bytes of each 16
    are copied, all if there is none."""

    places: tuple[Place, ...]
    size: int
    bulk: bool
    function: str = ""
    type: Type | None = None
    scope: str = "gpu"
    multi: bool = False
    order: str = "weak"
    mask: Operand | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorCopy(Copy):
    """A tensor copy (9.7.9.25.5). places: the tensor map, the shared memory, and the mbarrier that is told of the end,
    if the copy loads; coordinates: of the box, in elements; offsets: of im2col modes; mode: the load mode; ctas: a mask
    of CTAs that get the box; size: 0, since the map has it."""

    coordinates: tuple[Operand, ...]
    loads: bool
    mode: str = "tile"
    offsets: tuple[Operand, ...] = ()
    ctas: Operand | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorMap(Instruction):
    """tensormap.replace of a field, of a dimension's if it has an ordinal (9.7.9.26), or, with a second place,
    tensormap.cp_fenceproxy of so wide a scope (9.7.13.16)."""

    places: tuple[Place, ...]
    values: tuple[Operand, ...] = ()
    field: str = ""
    ordinal: int = 0
    scope: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteStore(Instruction):
    """st.async or red.async (9.7.9.12, 9.7.13.7). places: to, and the mbarrier that is told of the end, if any; values:
    what is stored, an element each; order, scope: of the access; function: what a reduction computes; type: of an
    element; multi: to a multi-address."""

    places: tuple[Place, ...]
    values: tuple[Operand, ...]
    type: Type
    order: str
    scope: str
    function: str = ""
    multi: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Multimem(Instruction):
    """An operation on a multi-address (9.7.9.14). kind: "ld_reduce", "st" or "red"; places: the multi-address;
    function: of the reduction; wide: the type of intermediate sums, "" if it is their own."""

    kind: str
    order: str
    scope: str
    places: tuple[Place, ...]
    type: Type
    values: tuple[Operand, ...] = ()
    results: tuple[str, ...] = ()
    function: str = ""
    wide: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Product(Instruction):
    """wgmma (9.7.15). kind: "mma_async", "fence", "commit_group" or "wait_group"; places: the tiles in shared memory;
    values: whether the result is added to, and a factor in a register; pending: groups that are not waited for;
    negated: whether the product is subtracted; popc: whether bits in common are counted. In a kernel, results: the
    fragment of D; form: shape and types; values: whether the result is added to, the descriptors of B and A, or that
    of B and the registers of A, then that of the metadata; held: how many of these, at the end, are registers that the
    threads of a row hold together; selector: of the metadata, -1 if A is not sparse; layouts: whether mn leads in each
    factor."""

    kind: str
    result: str = ""
    values: tuple[Operand, ...] = ()
    places: tuple[Place, ...] = ()
    pending: int = 0
    negated: bool = False
    popc: bool = False
    results: tuple[str, ...] = ()
    form: str = ""
    layouts: tuple[bool, ...] = ()
    held: int = 0
    selector: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorCore(Instruction):
    """tcgen05 (9.7.16). kind: "ld", "st", "cp", "shift", "mma", "commit", "wait", "alloc", "free", or a fence, "before"
    or "after" thread sync; form: the other modifiers, of a wait what it waits for; group: `cta_group::1` or `::2`;
    of a load or store its shape, and "pack" if registers hold two halves; places: in the order of the operands; values:
    what is stored, of a product the instruction descriptor, whether D is added to, a scale; ctas: a mask of CTAs whose
    mbarriers are told; reduction: what `.red` computes of the other results for the last one; further: of `.16x32bx2`,
    how far its second address is. In a kernel, names: those of the manual, of the places and then of the values."""

    kind: str
    form: str = ""
    group: str = ""
    places: tuple[Place, ...] = ()
    results: tuple[str, ...] = ()
    values: tuple[Operand, ...] = ()
    ctas: Operand | None = None
    reduction: str = ""
    further: int = 0
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyGroup(Instruction):
    """kind: "commit" makes a group of the copies so far; "wait" waits until so many groups are pending (`pending`), or
    have not read yet (`reads`); "all" does both."""

    kind: str
    bulk: bool
    pending: int = 0
    reads: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GridControl(Instruction):
    """griddepcontrol (9.7.13.13). waits: for the end of the grid before, else it only lets the next one begin."""

    waits: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Local(Instruction):
    """A computation on registers."""

    result: str
    function: str
    values: tuple[Operand, ...]
    type: Type | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch(Instruction):
    """To a label: always, or if the comparison (`function`) of the two values holds."""

    label: str
    function: str = ""
    values: tuple[Operand, ...] = ()
    type: Type | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Label(Instruction):
    name: str


@dataclass(slots=True)
class Thread:
    """cluster: -1 if the test names none; then each CTA is one of its own. warp: of the CTA, 0 if the test names
    none. grid: CTAs and clusters of different grids are different ones; each grid depends on the one before. lane,
    window: of a kernel's thread, its number in its warp, and the address of its CTA's shared memory."""

    number: int
    cta: int
    cluster: int
    gpu: int
    instructions: list[Instruction] = field(default_factory=list)
    warp: int = 0
    grid: int = 0
    lane: int = 0
    window: int = 0

    @property
    def name(self) -> str:
        return f"P{self.number}"

    def shares(self, scope: str, other: Thread) -> bool:
        """Whether a scope of this thread includes another one (8.5)."""
        if self is other or scope == "sys":
            return True
        if self.gpu != other.gpu:
            return False
        if scope == "gpu" or (self.cta, self.grid) == (other.cta, other.grid):
            return True
        if self.grid != other.grid:
            return False
        return scope == "cluster" and self.cluster == other.cluster >= 0


@dataclass(slots=True)
class Location:
    """A name of memory. memory: the name of the bytes it stands for; virtual: the name whose virtual address it has;
    size: bytes, 0 if the test does not say: then an address that depends on a read is that of its first byte; space:
    its state space, "" if the test does not say; owner: the CTA whose shared memory it is in, if the test says so;
    peers: the names of the same variable in each CTA of the cluster; map: of a tensor map, its fields, else None;
    address: that of its first byte, 0 if the model may choose;
    members: of a multi-address, the aliases by which it reaches its locations, else none (8.2.3)."""

    name: str
    initial: int | Address = 0
    type: Type | None = None
    memory: str = ""
    virtual: str = ""
    size: int = 0
    space: str = ""
    peers: tuple[str, ...] = ()
    owner: int | None = None
    map: dict[str, Any] | None = None
    address: int = 0
    members: tuple[str, ...] = ()

    @property
    def is_named(self) -> bool:
        """Whether a test can name its value: not that of a multi-address, nor the aliases that it uses."""
        return not self.members and " -> " not in self.name

    def __post_init__(self) -> None:
        self.memory = self.memory or self.name
        self.virtual = self.virtual or self.name


#: What a condition reads: "P0:r1" for a register, "x" or "x[2]" for memory.
State: TypeAlias = Mapping[str, int]


#: Whether a state satisfies a condition, None if that depends on names without a value; the names that it reads.
Goal: TypeAlias = "tuple[Callable[[State], bool | None], frozenset[str]]"


@dataclass(slots=True)
class Condition:
    """decided: whether a final state satisfies it, None if that depends on names without a value; names: what it reads;
    text: as written; goals: what each by itself makes it true (or false), together all that
    does; a filter needs none."""

    decided: Callable[[State], bool | None]
    names: tuple[str, ...]
    text: str
    goals: Mapping[bool, tuple[Goal, ...]] = field(default_factory=dict)

    def holds(self, state: State) -> bool:
        """Whether a final state with all names satisfies it."""
        found = self.decided(state)
        assert found is not None, "a name has no value"
        return found


@dataclass(slots=True)
class Test:
    """A litmus test. quantifier: "exists", "forall" or "~exists"; "" if the test has no condition; tensors, products:
    find what knows tensor maps (`tensors.Engine`) and, for kernels, matrices (`matrices.Engine`)."""

    __test__ = False

    name: str
    source: Source
    locations: dict[str, Location] = field(default_factory=dict)
    registers: dict[str, int | Address] = field(default_factory=dict)
    threads: list[Thread] = field(default_factory=list)
    quantifier: str = ""
    condition: Condition | None = None
    filter: Condition | None = None
    observed: tuple[str, ...] = ()
    tensors: Callable[[], Any] | None = None
    products: Callable[[], Any] | None = None

    def add(self, thread: Thread, reader: Reader) -> None:
        """A further thread. Raises PtxError, at the next word, if there are too many."""
        if len(self.threads) == MOST_THREADS:
            reader.fail(f"more than {MOST_THREADS} threads")
        self.threads.append(thread)

    @property
    def named(self) -> list[str]:
        """The locations whose values the test can ask for."""
        return [name for name, location in self.locations.items() if location.is_named]

    def owner(self, name: str) -> int | None:
        """The CTA whose shared memory a location is in: the declared one, or that of all threads that name it; None if
        several do."""
        declared = self.locations[name].owner
        ctas = {user.cta for user in self.users(name)} if declared is None else {declared}
        return ctas.pop() if len(ctas) == 1 else None

    def users(self, name: str) -> list[Thread]:
        """The threads that name a location, or begin with its address in a register."""
        return [thread for thread in self.threads if name in self._named_by(thread)]

    def _named_by(self, thread: Thread) -> set[object]:
        found: set[object] = {getattr(i, "base", "") for i in thread.instructions}
        found.update(base for i in thread.instructions for base, _ in getattr(i, "places", ()))
        own = f"{thread.name}:"
        found.update(initial.name for register, initial in self.registers.items()
                     if register.startswith(own) and isinstance(initial, Address))  # fmt: skip
        return found

    def check_length(self, thread: Thread, reader: Reader) -> None:
        if len(thread.instructions) > MOST_INSTRUCTIONS:
            reader.fail(f"a thread with more than {MOST_INSTRUCTIONS} instructions")
