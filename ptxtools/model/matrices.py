"""Products of matrices and tensor memory in kernels: wgmma (9.7.15) and tcgen05 (9.7.16) with their descriptors.

The order of their accesses is that of `wgmma.py` and `tensor_cores.py`. Here are places and values: a matrix is read
where its descriptor says, in pieces; what a product computes, an `Engine` says. Tensor memory is one location for each
CTA, column after column, so that a tile of 128 lanes lies together. An address in tensor memory comes from
`tcgen05.alloc`, by way of shared memory: each allocation gets columns of its own, and a thread that reads something
else there has no address.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ptxtools.records import NamedTuple, replace

from .barriers import ROW, ROW_BITS
from .events import Event, Path, Value, equal
from .programs import TENSOR_MEMORY, Instruction, Location, Operand, TensorCore, Test, Thread, Type
from .refusals import not_modelled
from .words import refuse

if TYPE_CHECKING:
    from .instructions import Cells
    from .paths import Paths
    from .words import Word

LANES, COLUMNS, CELL = 128, 512, 4
#: Addresses of shared memory of two CTAs are so many bits apart.
WINDOW_BITS = 24
#: The name of a CTA's tensor memory.
NAME = "tensor memory of CTA {}"
#: Addresses from here on are those of tensor memory.
_BEHIND_ALL = 1 << 50
_ROWS, _WARPS = 64, 4
#: Threads of a warp, and registers in which each of them has a part of A (9.7.15.5.1).
_WARP_THREADS, _FACTOR_REGISTERS = 32, 4
_SHAPE = re.compile(r"m64n(\d+)k(\d+)\.(\w+)\.(\w+)\.(\w+)")
#: A kind of descriptor, its value, rows, columns, type of elements, whether mn leads.
Tile = tuple[str, int, int, int, str, bool]


class Engine(Protocol):
    """What matrix descriptors and products mean. Both raise ValueError for what has no meaning. A factor in registers
    is a tile of the kind "registers": its descriptor is the number of the first of its 16 rows, its content the words
    of each register of a warp, lane after lane."""

    def pieces(self, tile: Tile) -> Sequence[tuple[int, int]]:
        """Addresses in shared memory (18 bits) and bytes of the pieces of a matrix."""

    def product(self, left: Tile, right: Tile, contents: Sequence[tuple[bytes, ...]],
                elements: Sequence[tuple[int, int]], added: Sequence[int] | None, result: str, *,
                negated: bool = False, sparse: tuple[int, bytes] | None = None) -> list[int]:  # fmt: skip
        """Elements of a product, as bits. sparse: the selector and the metadata of a warp's lanes, if half of A is
        stored; all elements are in the rows of that warp then."""

    def issued(self, opcode: str, operands: Mapping[str, Sequence[int]], rank: int) -> Any:
        """A tcgen05.mma, .cp or .shift with the elements of each operand by its name, issued by the CTA of that rank in
        its pair: `reads` and `writes`, pieces as (rank, whether in tensor memory, first byte, bytes), and `run`, from
        what is read to what is written."""


def read_kernel_product(cells: Cells, word: Word, form: str, *, sparse: bool) -> dict[str, Any]:
    """wgmma.mma_async: `{d}, a-desc, b-desc{, metadata, selector}, scale-d{, signs{, layouts}}`, with `{a}` for A in
    registers."""
    reader = cells.reader
    match = _SHAPE.fullmatch(form)
    if match is None:
        not_modelled(reader, word)
    results = cells.listed(cells.result)
    cells.comma()
    held = cells.listed(cells.value) if reader.next.text == "{" else []
    left = held or [cells.value()]
    values: list[Operand] = []
    while reader.accept(","):
        values.append(cells.value())
    n, half, first = int(match[1]), match[3] == "f16", 3 if sparse else 1
    if len(results) != n // (4 if half else 2) or len(values) <= first or len(held) not in (0, _FACTOR_REGISTERS):
        reader.fail(f"'{word.text}' has other operands", word)
    right, scale, numbers = values[0], values[first], values[first + 1 :]
    selector = values[2] if sparse else -1
    if type(selector) is not int or any(type(number) is not int for number in numbers):
        reader.fail("expected numbers for the selector of the metadata, and behind the predicate", word)
    layouts = [False] * bool(held) + [bool(number) for number in numbers[2:]]
    return {
        "results": tuple(results), "values": (scale, right, *left, *values[1 : 2 if sparse else 1]), "form": form,
        "negated": numbers[:2].count(-1) == 1, "layouts": tuple(layouts), "held": len(held) + sparse,
        "selector": selector,
    }  # fmt: skip


def tiles_of(
    form: str, layouts: Sequence[bool], left: int, right: int, *, kind: str = "wgmma", sparse: bool = False
) -> tuple[Tile, Tile, str]:
    """Both factors of a product of a warpgroup, and the type of the result. left: a descriptor, or the first row of a
    warp if A is in registers; kind: "registers" then."""
    match = _SHAPE.fullmatch(form)
    assert match is not None
    n, k, (dtype, atype, btype) = int(match[1]), int(match[2]), match.groups()[2:]
    a_leads, b_leads = (*layouts, False, False)[:2]
    rows, stored = (_ROWS if kind == "wgmma" else _ROWS // _WARPS), k // 2 if sparse else k
    return (kind, left, rows, stored, atype, a_leads), ("wgmma", right, n, k, btype, b_leads), dtype


def fragment(thread: int, n: int) -> list[tuple[int, int]]:
    """Row and column of each element of D that a thread of a warpgroup has (9.7.15.5.1.1.4), in its order."""
    warp, lane = thread // 32 % _WARPS, thread % 32
    row, pair = lane // 4, lane % 4
    return [(16 * warp + 8 * lower + row, 8 * tile + 2 * pair + column)
            for tile in range(n // 8) for lower in range(2) for column in range(2)]  # fmt: skip


def read_pieces(paths: Paths, path: Path, event: Event, tile: Tile, rank: int) -> tuple[tuple[int, int], ...]:
    """Append a read of each piece of a matrix; (the events, bytes of each)."""
    found = []
    try:
        pieces = paths.products().pieces(tile)
    except ValueError as error:
        refuse(paths.test.source, str(error), event.instruction.span)
    for at, size in pieces:
        found += read_piece(paths, path, event, at + rank, size)
    return tuple(found)


def read_piece(paths: Paths, path: Path, event: Event, at: int, size: int) -> list[tuple[int, int]]:
    """Append reads of so many bytes of shared memory, perhaps those of several variables; events, bytes of each."""
    found = []
    while size:
        name, offset = paths.located(at, event.instruction)
        part = min(size, paths.extent(name) - offset)
        found.append((len(path.events), part))
        path.events.append(replace(event, location=name, offset=offset, size=part))
        at, size = at + part, size - part
    return found


def bytes_read(paths: Paths, tile: Tile, parts: Sequence[tuple[int, int]], reads: Sequence[int]) -> tuple[bytes, ...]:
    """The content of the pieces of a matrix."""
    whole = b"".join(reads[at].to_bytes(size, "little") for at, size in parts)
    found, start = [], 0
    for _, size in paths.products().pieces(tile):
        found.append(whole[start : start + size])
        start += size
    return tuple(found)


class Held(NamedTuple):
    """What the threads of a row hold together. value: the registers of each of them, 32 bits each, one thread behind
    the other; row: the number of the row in its warp; registers: how many; selector: of metadata, which is in the last
    one, or -1."""

    value: Value
    row: int
    registers: int
    selector: int

    def words(self, reads: Sequence[int]) -> list[bytes]:
        """The words of all lanes of a warp, for each register; those of other rows are 0."""
        whole = self.value.of(reads).to_bytes(ROW * ROW_BITS // 8, "little")
        found = []
        for at in range(self.registers):
            lanes = [whole[ROW_BITS // 8 * lane + CELL * at :][:CELL] for lane in range(ROW)]
            before = bytes(CELL * ROW * self.row)
            found.append((before + b"".join(lanes)).ljust(CELL * _WARP_THREADS, b"\0"))
        return found


class Products:
    """Elements of one product, computed once for each state of what it reads."""

    def __init__(
        self,
        paths: Paths,
        tiles: tuple[Tile, Tile, str],
        parts: Sequence[Sequence[tuple[int, int]]],
        elements: Sequence[tuple[int, int]],
        added: Sequence[Value] | None,
        *,
        negated: bool = False,
        held: Held | None = None,
    ) -> None:
        """added: what each element is added to; one value for all of them holds 32 bits of each."""
        self.paths, self.tiles, self.parts, self.elements = paths, tiles, parts, elements
        self.added, self.negated, self.held = added, negated, held
        self.needs = sum(1 << at for part in parts for at, _ in part) | (held.value.needs if held else 0)
        for value in added or ():
            self.needs |= value.needs
        self.known: dict[tuple[Any, ...], list[int]] = {}

    def of(self, reads: Sequence[int]) -> list[int]:
        registers = self.held.words(reads) if self.held is not None else []
        sparse = (self.held.selector, registers.pop()) if self.held is not None and self.held.selector >= 0 else None
        contents = tuple((b"".join(registers),) if tile[0] == "registers" else bytes_read(self.paths, tile, part, reads)
                         for tile, part in zip(self.tiles[:2], self.parts, strict=True))  # fmt: skip
        added = None if self.added is None else tuple(value.of(reads) for value in self.added)
        if added is not None and len(added) < len(self.elements):
            added = tuple(added[0] >> 32 * at & 0xFFFFFFFF for at in range(len(self.elements)))
        key = (contents, added, sparse)
        if key not in self.known:
            left, right, result = self.tiles
            self.known[key] = self.paths.products().product(left, right, contents, self.elements, added, result,
                                                            negated=self.negated, sparse=sparse)  # fmt: skip
        return self.known[key]

    def tile(self) -> Value:
        """All elements, 32 bits each."""
        return Value(self.needs, lambda reads: int.from_bytes(
            b"".join(element.to_bytes(4, "little") for element in self.of(reads)), "little"))  # fmt: skip

    def register(self, number: int, packed: int) -> Value:
        """A register of results: one, or two halves."""

        def value(reads: Sequence[int]) -> int:
            found = self.of(reads)
            return sum(found[packed * number + at] << 16 * at for at in range(packed))

        return Value(self.needs, value)


# --- tensor memory ----------------------------------------------------------------------------------------------------


def add_tensor_memory(test: Test) -> None:
    """A location for the tensor memory of each CTA."""
    for cta in {thread.cta for thread in test.threads}:
        name = NAME.format(cta)
        test.locations[name] = Location(
            name, type=Type("u", 8 * CELL), size=LANES * COLUMNS * CELL, space=TENSOR_MEMORY,
            address=_BEHIND_ALL + (cta << 24),
        )  # fmt: skip


def allocations(test: Test, thread: Thread) -> dict[int, int]:
    """The first column that each tcgen05.alloc of a thread's CTA gets, by the start of its text."""
    starts = sorted({
        i.span[0] for other in test.threads if other.cta == thread.cta
        for i in other.instructions if isinstance(i, TensorCore) and i.kind == "alloc"
    })  # fmt: skip
    share = COLUMNS // max(len(starts), 1)
    return {start: at * share for at, start in enumerate(starts)}


def columns(
    paths: Paths, path: Path, instruction: Instruction, operand: Operand, offset: int
) -> list[tuple[Path, int]]:
    """The address in tensor memory that an operand has, on each path on which it has one."""
    value = paths.operand(path, operand)
    if not value.needs:
        return [(path, value.of(()) + offset)]
    found = []
    for first in allocations(paths.test, path.thread).values():
        number = value.of(_Same(first))
        way = path.copy()
        way.conditions.append((equal(value, number), True))
        found.append((way, number + offset))
    if not found:
        refuse(paths.test.source, "an address in tensor memory without tcgen05.alloc", instruction.span)
    return found


class _Same(Sequence[int]):
    """All reads return the same number."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __getitem__(self, at: Any) -> Any:
        return self.number

    def __len__(self) -> int:
        return 0


def cell(paths: Paths, instruction: Instruction, address: int) -> int:
    """The offset of a cell in a CTA's location: columns one behind the other. Raises PtxError outside of it."""
    lane, column = address >> 16, address & 0xFFFF
    if not (0 <= lane < LANES and 0 <= column < COLUMNS):
        refuse(paths.test.source, f"{address:#x} is no address in tensor memory", instruction.span)
    return (column * LANES + lane) * CELL
