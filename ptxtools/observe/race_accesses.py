"""What racecheck asks of an access: its scope, the bytes that it stores, the granules that it touches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxtools.diagnostics import Trap
from ptxtools.program.details import Look
from ptxtools.program.operations import ADDRESSED, OPERATIONS
from ptxtools.program.program import LANES
from ptxtools.records import NamedTuple
from ptxtools.semantics import fragments
from ptxtools.semantics.types import bits_of

from .clocks import GPU, SCOPES, SYS, WEAK, Warp
from .race_shadow import WORD

if TYPE_CHECKING:
    from ptxtools.isa.opcode import Opcode
    from ptxtools.machine.events import View
    from ptxtools.machine.launch import Launch
    from ptxtools.machine.observers import Access
    from ptxtools.program.program import Program, Ref

Array: TypeAlias = npt.NDArray[Any]

_ALL = np.arange(LANES)
#: Integer operations that leave the same in any order, and the types that are no integers.
_FLOATS = ("f16", "f16x2", "bf16", "bf16x2", "f32", "f64")
_COMMUTING = ("add", "and", "or", "xor", "min", "max")
#: Vectors and packed types, whose elements are accesses of their own.
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}
_PACKED = ("f16x2", "bf16x2")
#: From this architecture on lanes of a warp run independently.
_INDEPENDENT = 70


def scope_named(view: View, default: int) -> int:
    """The scope that an instruction names."""
    opcode = view.op.opcode
    return next((number for word, number in SCOPES.items() if opcode is not None and opcode.has(word)), default)


def scope_of(view: View, access: Access) -> int:
    """The scope of a strong access; an atomic has that of the device (9.7.13.5), a volatile one the system's (8.4)."""
    if access.strength in ("volatile", "mmio"):
        return SYS
    if access.strength or access.action == "atomic":
        return scope_named(view, GPU)
    return WEAK


class Strength(NamedTuple):
    """Of an access: its scope, 0 for a weak one, and the bytes of each scalar that it is made of (8.2.4, 8.2.5). Strong
    accesses fit together only if they overlap completely (8.7)."""

    scope: int
    unit: int

    def fits(self, scopes: Any, units: Any, needed: Any) -> Any:
        """Whether strong accesses, such as of these scopes and units, are morally strong together: their scopes include
        each other, `needed` at least. Overlapping scalars of one size are the same, since they are aligned."""
        return (np.minimum(scopes, self.scope) >= needed) & (np.equal(units, self.unit))


def strength_of(view: View, access: Access, *, by_words: bool) -> Strength:
    """by_words: what is narrower than a word counts as an access of the word."""
    scope = scope_of(view, access)
    unit = unit_of(view, access) if scope else 0
    return Strength(scope, WORD if by_words and 0 < unit < WORD else unit)


def unit_of(view: View, access: Access) -> int:
    """Bytes of the scalars of an access."""
    opcode = view.op.opcode
    if opcode is None:
        return access.size
    if view.op.kind != "observe.access" and access.action == "atomic" and opcode.type:
        return min(access.size, bits_of(opcode.type) // 8)
    parts = next((count for word, count in _VECTORS.items() if opcode.has(word)), 1)
    packed = any(map(opcode.has, _PACKED))
    return access.size // parts // (1 + packed)


def changes_words(program: Program) -> bool:
    """Whether a kernel compares and swaps words. Libraries make atomics of one and two bytes so, and load and store
    these bytes alone."""
    return any(
        op.opcode is not None and op.opcode.has("cas") and bits_of(op.opcode.type or "b32") == 8 * WORD
        for op in program.operations()
        if OPERATIONS[op.kind].access == "atomic"
    )


def compared(program: Program) -> dict[int, Ref]:
    """By line what compare-and-swap compares with, of those of at most 8 bytes."""
    return {
        op.where: op.src[1] for op in program.operations()
        if op.kind == "atom" and op.opcode is not None and op.opcode.has("cas") and op.src[1] is not None
        and bits_of(op.opcode.type or "b32") <= 64
    }  # fmt: skip


def failing(view: View, access: Access, wanted: Ref) -> Array:
    """Which of the lanes of a compare-and-swap will find another value than they want, so that they change nothing. Of
    lanes that meet at one word none is named."""
    values, addresses = view.values(wanted), view.addresses()
    _, back, counts = np.unique(access.addresses, return_inverse=True, return_counts=True)
    found = np.zeros(len(access.lanes), np.bool_)
    for number in np.flatnonzero(counts[back] == 1).tolist():
        lane = int(access.lanes[number])
        try:
            memory = view.memory(int(addresses[lane]), access.size, view.op.space, lane=lane, write=False, told=False)
        except Trap:  # as the access itself will
            continue
        mask = (1 << 8 * access.size) - 1
        found[number] = int.from_bytes(memory, "little") != int(values[lane]) & mask
    return found


def sort_of(view: View, access: Access) -> int:
    """0: a store; of atomics a number for those of integers that leave the same in any order, -1 for others."""
    opcode = view.op.opcode
    if access.action != "atomic" or opcode is None:
        return 0
    return commuting(opcode) if view.op.kind == "observe.access" else -1


def commuting(opcode: Opcode) -> int:
    """Of an atomic of integers that leaves the same in any order a number, from 1 on; else -1."""
    if any(map(opcode.has, _FLOATS)):
        return -1
    return next((1 + number for number, word in enumerate(_COMMUTING) if opcode.has(word)), -1)


def stored_bytes(view: View, access: Access) -> Array | None:
    """The bytes that a plain store stores: lanes x size."""
    types = view.op.src_types[2:]
    if access.action != "write" or view.op.kind != "observe.access" or not types:
        return None
    if view.op.opcode is not None and view.op.opcode.family == "stmatrix":
        return _matrix_rows(view, view.op.opcode)[access.lanes]
    columns = []
    for number, type_ in enumerate(types):
        value = view.source(2 + number)
        parts = value if isinstance(value, tuple) else (value,)
        width = max(1, bits_of(type_) // 8)
        columns += [part.astype("<u8").view(np.uint8).reshape(LANES, 8)[:, : min(width, 8)] for part in parts]
    words = np.concatenate(columns, axis=1)
    found: Array = words[access.lanes]
    return found if found.shape[1] == access.size else None


def _matrix_rows(view: View, opcode: Opcode) -> Array:
    """The rows that stmatrix stores, at the addresses of the lanes: lanes x 16 bytes (9.7.14.5.16)."""
    places = [[_stored_at(opcode, lane, byte) for byte in range(WORD)] for lane in range(LANES)]
    row, byte = np.moveaxis(np.array(places), -1, 0)
    found = np.zeros((LANES, 16), np.uint8)
    for matrix in range(len(view.op.src) - 2):
        words = np.ascontiguousarray(view.source(2 + matrix).astype("<u4"))
        found[8 * matrix + row, byte] = words.view(np.uint8).reshape(LANES, WORD)
    return found


def _stored_at(opcode: Opcode, lane: int, byte: int) -> tuple[int, int]:
    """Row and byte in memory of a byte of a register."""
    if opcode.has("m16n8"):
        return fragments.byte_store_16x8(lane, byte)
    row, column = fragments.matrix_row(lane, byte // 2, transposed=opcode.has("trans"))
    return row, 2 * column + byte % 2


def granules(rows: Array | None, bytes_: Array, grain: int) -> Array | None:
    """What is stored in granules, by the first byte of each."""
    if rows is None:
        return None
    flat = rows.reshape(-1)
    if grain == 1:
        return flat[bytes_].astype(np.int64)
    found: Array = np.ascontiguousarray(flat).view("<u4")[bytes_ // WORD].astype(np.int64)
    return found


def looks_of(program: Program) -> list[tuple[str, int]]:
    """Space and size of each look at an access."""
    return [(op.space, op.of(Look).size) for op in program.operations() if op.kind in ADDRESSED]


def piece_of(looks: list[tuple[str, int]], space: str) -> int:
    """Bytes of the pieces that all accesses to a space, given with their sizes, fall into; 0: there are none."""
    spaces: tuple[Any, ...] = ("shared", "cluster", "generic") if space == "shared" else ("global", "const", "generic")
    return min((min(size, WORD) for where, size in looks if where in spaces), default=0)


def words_of(places: Array, size: int) -> list[int]:
    """Words that accesses touch."""
    words: list[int] = np.unique((places[:, None] + np.arange(0, size, min(size, WORD))) // WORD).tolist()
    return words


def scalars_of(places: Array, size: int, unit: int) -> list[tuple[int, int]]:
    """The scalars that accesses are made of, each by its first byte and the one behind it."""
    if len(places) == 1 and size == unit:  # mostly
        start = int(places[0]) // unit * unit
        return [(start, start + unit)]
    starts = np.unique((places[:, None] + np.arange(0, size, unit)) // unit * unit).tolist()
    return [(start, start + unit) for start in starts]


def overlap(extent: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether stretches of bytes have one in common."""
    return extent[0] < other[1] and other[0] < extent[1]


def lanes_late(warp: Warp, masks: Array, since: Array, lanes: Array) -> Array:
    """Whether lanes other than the one that writes have read and are not known by it to have."""
    known = warp.known_reads()
    late: Array = since > known.min()
    if not late.any():
        return late
    bits: Array = np.not_equal(masks[:, None] >> _ALL.astype(np.uint32) & np.uint32(1), 0)
    bits = np.logical_and(bits, np.not_equal(lanes[:, None], _ALL))
    found: Array = np.any(np.logical_and(bits, since[:, None] > known[lanes]), axis=1)
    return found


def lanes_are_independent(target: str) -> bool:
    """Whether the lanes of a warp of a target, such as "sm_80", run independently."""
    digits = "".join(filter(str.isdigit, target))
    return not digits or int(digits) >= _INDEPENDENT


def warps_of(launch: Launch) -> int:
    """Warps of a CTA."""
    x, y, z = launch.block
    return -(-x * y * z // LANES)
