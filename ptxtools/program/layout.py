"""Layout of variables: kernel parameters, shared memory, local frames, call signatures, and addresses of functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ptxtools.ir import CallPrototype, Function, Module, Variable
from ptxtools.isa.types import TYPES
from ptxtools.records import dataclass, field

from .program import CODE_BASE, CODE_STEP, FRAME_HEADER, SLOT_BYTES, ByteOffset, Slot

#: Alignment of a frame of local memory; more where a variable asks for it.
LOCAL_ALIGNMENT = 16
#: Local memory that a call takes beside the callee's variables, for where to return and what it saves there; so that
#: endless recursion runs out of stack, as on chips.
CALL_BYTES = 16
#: Bytes between local variables that are laid out apart. (Shared ones: as many, and up to so many in all.)
LOCAL_GAP = 64
_SHARED_GAP, _SHARED_GAPS = 256, 16384
#: Shared memory that the system reserves, laid out where a kernel asks for its place, and counted by no limit; and the
#: special registers that give it (10.29).
RESERVED = Variable("reserved shared memory", "shared", "b8", align=128, dims=(1024,))
RESERVED_REGISTERS = "%reserved_smem_offset_"
RESERVED_OFFSETS = {"begin": 0, "end": 1024, "cap": 1024, "0": 0, "1": 512}


@dataclass(slots=True)
class Placed:
    """A variable and the bytes that it takes, counted from the start of its block."""

    variable: Variable
    offset: ByteOffset
    size: int
    align: int

    @property
    def name(self) -> str:
        return self.variable.name


def element_bytes(variable: Variable) -> int:
    """Bytes of one element, all components of a vector type together."""
    return max(1, TYPES[variable.type].bits // 8) * variable.vector


def variable_size(variable: Variable) -> int:
    """Bytes of a variable; an array without a size, or of none, takes as many elements as its
    initialiser, or none (5.4.2)."""
    size = element_bytes(variable)
    for place, count in enumerate(variable.dims):
        if not count:
            init = variable.init
            count = len(init) if place == 0 and isinstance(init, (list, str)) else 0
        size *= count
    return size


def is_unsized(variable: Variable) -> bool:
    """Whether a parameter is an array without a fixed number of elements (7.2)."""
    return bool(variable.dims) and variable.dims[0] is None


def variable_alignment(variable: Variable) -> int:
    """Declared alignment, else that of the whole element (5.4.5)."""
    return variable.align or element_bytes(variable)


def align_up(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment


def lay_out(variables: Iterable[Variable], start: int = 0, gap: int = 0) -> tuple[list[Placed], int]:
    """Lay variables out in order, each at its alignment, `gap` bytes behind each; also the offset behind the last."""
    placed: list[Placed] = []
    for variable in variables:
        align = variable_alignment(variable)
        offset = align_up(start, align)
        size = variable_size(variable)
        placed.append(Placed(variable, ByteOffset(offset), size, align))
        start = offset + size + gap
    return placed, start


def kernel_parameters(function: Function) -> list[Placed]:
    """Offsets in the parameter block of a kernel: in order, each at its natural or declared alignment (5.1.6.1)."""
    return lay_out(function.params)[0]


def parameter_bytes(function: Function) -> int:
    """Size of a kernel's parameter block."""
    return lay_out(function.params)[1]


@dataclass(slots=True)
class SharedLayout:
    """Offsets of shared variables by identity of their declaration; dynamic (`extern`) ones are at `dynamic`.

    places: (name, offset, bytes) of each, of dynamic ones -1 bytes; padding: bytes between them.
    """

    offsets: dict[int, ByteOffset]
    size: int
    dynamic: ByteOffset
    places: list[tuple[str, int, int]] = field(default_factory=list)
    padding: int = 0


def shared_layout(variables: Sequence[Variable], apart: bool = False) -> SharedLayout:
    """Static variables in order; after them, at the largest requested alignment, all dynamic ones at one address.

    apart: with gaps after each, smaller ones if there are many.
    """
    static = [v for v in variables if v.linkage != "extern"]
    dynamic = [v for v in variables if v.linkage == "extern"]
    gap = min(_SHARED_GAP, _SHARED_GAPS // len(static)) if apart and static else 0
    placed, size = lay_out(static, gap=gap)
    offsets = {id(p.variable): p.offset for p in placed}
    base = ByteOffset(align_up(size, max((variable_alignment(v) for v in dynamic), default=1)))
    offsets.update((id(v), base) for v in dynamic)
    places: list[tuple[str, int, int]] = [(p.name, p.offset, p.size) for p in placed]
    places += [(v.name, base, -1) for v in dynamic]
    end = base if dynamic else size
    return SharedLayout(offsets, end, base, places, end - shared_layout(variables).size if gap else 0)


def function_addresses(module: Module) -> dict[str, int]:
    """Address of each function that the module declares or defines: the value of its name in `mov` and initialisers."""
    names = dict.fromkeys(function.name for function in module.functions)
    return {name: CODE_BASE + CODE_STEP * number for number, name in enumerate(names)}


def storage_of(type_name: str) -> str:
    """Storage class of a register or scalar of a PTX type."""
    if type_name == "pred":
        return "pred"
    bits = TYPES[type_name].bits
    return "b16" if bits <= 16 else f"b{bits}"


_START = ByteOffset(0)


@dataclass(slots=True)
class Passed:
    """How one argument or result travels: in slots of the callee's frame (scalars, and the addresses of unsized arrays
    in the caller's local memory; one slot for each component of a vector), or, where `storage` is "", in the callee's
    local memory at stack pointer + `offset`."""

    variable: Variable
    storage: str
    size: int
    slots: tuple[Slot, ...] = ()
    offset: ByteOffset = _START

    @property
    def slot(self) -> Slot:
        """The first of its slots."""
        return self.slots[0]


@dataclass(slots=True)
class Signature:
    """Results and arguments of a function or prototype; `slot_end`, `memory_end`: first free slot and local byte."""

    returns: list[Passed]
    params: list[Passed]
    slot_end: Slot
    memory_end: ByteOffset


def signature(callee: Function | CallPrototype) -> Signature:
    """Places by type alone, so that a caller through a prototype agrees with any callee of that prototype."""
    slot: int = FRAME_HEADER
    memory = 0
    passed: list[Passed] = []
    for variable in (*callee.returns, *callee.params):
        if is_unsized(variable):
            passed.append(Passed(variable, "b64", 8, (Slot(slot),)))
            slot += align_up(SLOT_BYTES["b64"], 64)
        elif variable.dims or (variable.vector > 1 and variable.space != "reg"):
            size = variable_size(variable)
            memory = align_up(memory, variable_alignment(variable))
            passed.append(Passed(variable, "", size, offset=ByteOffset(memory)))
            memory += size
        else:
            storage = storage_of(variable.type)
            step = align_up(SLOT_BYTES[storage], 64)
            slots = tuple(Slot(slot + step * component) for component in range(variable.vector))
            passed.append(Passed(variable, storage, element_bytes(variable), slots))
            slot += step * variable.vector
    results = len(callee.returns)
    return Signature(passed[:results], passed[results:], Slot(slot), ByteOffset(align_up(memory, LOCAL_ALIGNMENT)))
