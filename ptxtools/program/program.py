"""The program that both engines execute: a kernel and the functions it reaches, lowered to blocks over slots.

A warp's registers live in frames. A frame is one block of memory for 32 lanes:

    +0    return block   32 x i32   block to go on with after `ret` (-1 in the entry's frame: exit)
    +128  return frame   32 x i32   frame offset of the caller
    +256  stack pointer  32 x i64   offset of this function's frame in the thread's local memory
    +512  slots

A slot holds one register for 32 lanes: "pred" is one 32-bit mask, lane 0 in bit 0; "b16" 32 x i16 (8-bit registers
too); "b32" 32 x i32; "b64" 32 x i64; "b128" 32 x i64 of low halves, then 32 x i64 of high halves. Slots other than
predicates are aligned to 64 bytes. Constants are slots as well; a call copies the callee's constants from its template.
Slots and templates count from the frame's start.

Frames of calls: the callee's frame follows the caller's, at the caller's frame + `FunctionCode.frame_bytes` of the
caller. Before a call, "copy" operations of the caller write the arguments into slots of that frame (their slot is
`frame_bytes + slot of the callee`), and after it they read the results there. The call writes the callee's header and
constants of the calling lanes only: other lanes may be suspended in a frame at the same place. Its stack pointer is the
caller's plus the caller's `local_bytes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NewType, TypeVar

from ptxtools.records import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ptxtools.isa import Opcode

    from .details import Detail

_D = TypeVar("_D", bound="Detail")
_Found = TypeVar("_Found")

#: Where a register lies: bytes from the start of a frame. Until slots are given out, the number of a value.
Slot = NewType("Slot", int)
#: Bytes from the start of anything else: local or shared memory, a parameter block, a record, a structure.
ByteOffset = NewType("ByteOffset", int)

LANES = 32
FRAME_HEADER = Slot(512)
RETURN_BLOCK, RETURN_FRAME, STACK_POINTER = Slot(0), Slot(128), Slot(256)
SLOT_BYTES = {"pred": 4, "b16": 64, "b32": 128, "b64": 256, "b128": 512}

#: Local memory that a call takes beside the callee's variables, for where to return and what it saves there; so that
#: endless recursion runs out of stack, as on chips.
CALL_BYTES = 16

#: Functions have addresses: CODE_BASE + CODE_STEP * (place of the function in the module, first mention counts).
CODE_BASE, CODE_STEP = 0x1000, 16

# Windows of the generic address space (no host address has these high bits; the low 32 bits are zero).
SHARED_WINDOW = 0x0100_0000_0000_0000
LOCAL_WINDOW = 0x0200_0000_0000_0000
PARAM_WINDOW = 0x0300_0000_0000_0000
#: The same by the names that semantics asks an algebra for (`Algebra.context`).
WINDOWS = {"shared_window": SHARED_WINDOW, "local_window": LOCAL_WINDOW, "param_window": PARAM_WINDOW}

#: Shared memory of the CTA with rank r of a cluster lies at r << RANK_SHIFT of the shared window, as on the chips:
#: programs clear a bit of an address to reach the other CTA of a pair.
RANK_SHIFT = 24
OFFSET_MASK = (1 << RANK_SHIFT) - 1


@dataclass(slots=True)
class Ref:
    """A slot in the current frame: byte offset and storage class ("pred", "b16", "b32", "b64", "b128")."""

    slot: Slot
    type: str


@dataclass(slots=True)
class Op:
    """One operation.

    kind      what it does; `operations.OPERATIONS` has a row for each
    opcode    the resolved opcode; None for operations that lowering makes up (copies between frames)
    dst, src  slots; None in `dst` is a sink; src None: see ld/st, where a value None is not stored. The stack pointer
              in the header is a source too: Ref(STACK_POINTER, "b64")
    dst_types, src_types  PTX type that the operation has at each position (the slot may be wider: 9.4)
    guard     predicate slot, or None; `negated` for @!p
    imm       address offset or other constant; part of the record, not of the handler
    space     state space of a memory access
    detail    other static facts (`details`), part of the handler's key
    where     index into `Program.lines`
    """

    kind: str
    opcode: Opcode | None = None
    dst: tuple[Ref | None, ...] = ()
    src: tuple[Ref | None, ...] = ()
    dst_types: tuple[str, ...] = ()
    src_types: tuple[str, ...] = ()
    guard: Ref | None = None
    negated: bool = False
    imm: int = 0
    space: str = ""
    detail: Detail | None = None
    where: int = -1

    def of(self, sort: type[_D]) -> _D:
        """The detail, of the type that the kind's row names."""
        detail = self.detail
        assert isinstance(detail, sort), f"'{self.kind}' has {detail!r}, no {sort.__name__}"
        return detail


@dataclass(slots=True)
class Terminator:
    """The end of a block; `target`, `other` are block numbers of the program.

    kind: "jump" (target), "branch" (guard true: target, else other), "switch" (brx.idx: `index` slot into `targets`);
    of both, and of indirect calls, `uniform`: the instruction has .uni,
    "exit" (guarded lanes leave, others go on at other; no guard: all leave), "ret" (likewise),
    "call" (function `callee`; goes on at other. Indirect: `callee` is -1, the `index` slot holds an address, and
    `targets[(address - CODE_BASE) / CODE_STEP]` is the function, -1 or out of range for an address of no function),
    "barrier" (op holds the bar/barrier operation; goes on at other), "trap" (guarded lanes trap, others go on at
    other), "brkpt" (goes on at other),
    "warpsync" (`index`: slot of a member mask, b32. Its block has no operations, so that lanes can wait at its number:
    they go on at `other` once all lanes of their warp in the mask, exited ones left out, are at this block in the same
    frame; a lane outside its own mask is a trap),
    "event" (`events.serves` has a function for `op`; goes on at other. Its block has no operations either).
    """

    kind: str
    guard: Ref | None = None
    negated: bool = False
    target: int = -1
    other: int = -1
    targets: tuple[int, ...] = ()
    index: Ref | None = None
    callee: int = -1
    op: Op | None = None
    where: int = -1
    uniform: bool = False


@dataclass(slots=True)
class Block:
    ops: list[Op] = field(default_factory=list)
    terminator: Terminator = field(default_factory=lambda: Terminator("exit"))


@dataclass(slots=True)
class LaunchConstant:
    """A constant slot whose value is known when the launch is: a kernel parameter, or a special register that holds
    for the whole grid. source: "param" (`name` its PTX type, read at `offset` of the parameter block and widened by
    that type to `storage`) or "sreg" (`name` such as "%ntid.x")."""

    slot: Slot
    storage: str
    source: str
    name: str
    offset: int = 0


#: Special registers that are the launch's shape, by the field of the launch that holds them.
GRID_SHAPES = {"%ntid": "block", "%nctaid": "grid", "%cluster_nctaid": "cluster"}
_GRID_SPECIALS = frozenset(
    [f"{base}.{component}" for base in GRID_SHAPES for component in "xyz"] + ["%cluster_nctarank", "%dynamic_smem_size"]
)


def is_launch_special(name: str) -> bool:
    """Whether the special register has one value for the whole grid that the launch alone determines."""
    return name in _GRID_SPECIALS


@dataclass(frozen=True, slots=True)
class Counter:
    """A row of what a run counts: words of 64 bits. The first are warps that came with some lane, and these lanes.

    where: index into `Program.lines`. function: number of the one that it is in. what, and the words behind:
    "reached"   lanes that come to this instruction and the ones behind it, up to the next such row of its function
    "held"      of the lanes that come to this instruction, those for which its guard holds; warps of which all do
    "global"    lanes that access global memory: sectors of 32 bytes that the warps touch; those not in the model's L2
    "shared"    lanes that access shared memory: passes over the banks that the warps need; and would need at least
    Of accesses, size: bytes of a lane; writes: they change memory.
    """

    where: int
    what: str
    function: int
    size: int = 0
    writes: bool = False


#: Words of a row, and bytes.
COUNTER_WORDS = 4
COUNTER_BYTES = 8 * COUNTER_WORDS


@dataclass(slots=True)
class FunctionCode:
    """A lowered function: `first` its entry block; `frame_bytes` header and slots; `local_bytes` its share of the
    thread's local memory; `constants`: (slot, type, value) filled when a frame is made (value of a lane: 0 or 1 for
    a predicate); `launch_constants`: further
    ones, which `ptxtools.machine.launch.constants(launch, function)` turns into values and joins to `constants`;
    variables: (name, offset from the stack pointer, bytes) of .local variables that are laid out apart."""

    name: str
    first: int
    frame_bytes: int
    local_bytes: int
    constants: list[tuple[Slot, str, int]]
    launch_constants: list[LaunchConstant] = field(default_factory=list)
    variables: list[tuple[str, int, int]] = field(default_factory=list)


@dataclass(slots=True)
class Program:
    """The complete program of a kernel. Blocks of one function are contiguous and in layout order, the entry's first.

    lines: (file index or -1, span start, instruction text) per instruction, for traps; static_shared: bytes of shared
    variables; registers: 32-bit registers that a thread needs at most, for residency; max_frames, frame_bytes,
    local_bytes: number of frames, their bytes and local memory of the longest chain of calls, all 0 when recursion or
    indirect calls leave that open; clustered: it has instructions that concern clusters, so that addresses of shared
    memory carry the rank of their CTA (`residents.RANK_SHIFT`); takes_stack: it allocates local memory as it runs;
    shared: (name, offset, bytes) of shared variables, -1 bytes for dynamic ones; padding: bytes of `static_shared` that
    keep them apart for memcheck, and that no limit counts; optimised: values share slots, and operations that nobody
    asks for are gone; named: by index of a line, the registers that lie in slots there, with their PTX types, if the
    variant asked for it (`Variant.names`); counters: the rows that its "count" operations add to (`Counter`); suspects:
    lines of loads whose results observers follow as if nobody had written them.
    Addresses of module variables are constants of the program: they are fixed when the module is loaded on a device.
    """

    kernel: str
    blocks: list[Block]
    functions: list[FunctionCode]
    lines: list[tuple[int, int, str]]
    static_shared: int = 0
    registers: int = 0
    max_frames: int = 1
    frame_bytes: int = 0
    local_bytes: int = 0
    clustered: bool = False
    takes_stack: bool = False
    shared: list[tuple[str, int, int]] = field(default_factory=list)
    padding: int = 0
    optimised: bool = True
    named: dict[int, dict[str, tuple[Ref, str]]] = field(default_factory=dict)
    counters: list[Counter] = field(default_factory=list)
    suspects: frozenset[int] = frozenset()
    cache: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)  # what engines made of it

    def found(self, find: Callable[[Program], _Found]) -> _Found:
        """What a function finds in the program, which has to look only once."""
        if find not in self.cache:
            self.cache[find] = find(self)
        known: _Found = self.cache[find]
        return known

    @property
    def kinds(self) -> frozenset[str]:
        """Kinds of its operations."""
        return self.found(_kinds)

    def operations(self) -> Iterator[Op]:
        """All operations, those at the ends of blocks included."""
        for block in self.blocks:
            yield from block.ops
            if block.terminator.op is not None:
                yield block.terminator.op

    @property
    def declared_shared(self) -> int:
        """Bytes of shared variables as declared in the module."""
        return self.static_shared - self.padding

    @property
    def dynamic_shared(self) -> str:
        """Name of a shared variable whose size is given by the launch, or ""."""
        return next((name for name, _, size in self.shared if size < 0), "")


def _kinds(program: Program) -> frozenset[str]:
    return frozenset(op.kind for op in program.operations())
