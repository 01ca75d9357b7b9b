"""tcgen05 in kernels: addresses in tensor memory, matrix descriptors, and what `tcgen05.alloc` writes (9.7.16.7.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .events import Event, Path, Value, constant
from .matrices import CELL, LANES, NAME, Products, Tile, allocations, cell, columns, read_pieces, shape_of
from .programs import Instruction, Operand, Place, TensorCore
from .refusals import not_modelled
from .tensor_cores import Operation, issue
from .tensor_loads import LANES as LANES_OF
from .tensor_loads import cells as cells_of
from .words import refuse

if TYPE_CHECKING:
    from .instructions import Cells
    from .paths import Paths
    from .words import Word

#: How many columns allocations may have.
_KINDS = ("kind::f16", "kind::tf32", "kind::f8f6f4", "kind::i8")
_WARPS, _WARP = 4, 32


def read_allocation(cells: Cells, word: Word, kind: str) -> Instruction:
    """tcgen05.alloc, .dealloc and .relinquish_alloc_permit."""
    if kind == "relinquish_alloc_permit":
        return TensorCore(kind="free", **cells.done())
    if kind == "dealloc":
        cells.value()
        cells.comma()
        cells.value()
        return TensorCore(kind="free", **cells.done())
    place = cells.place()
    cells.comma()
    return TensorCore(kind="alloc", places=(place,), values=(cells.value(),), **cells.done())


def read_product(cells: Cells, word: Word, group: str, form: str) -> Instruction:
    """tcgen05.mma: `[d], a-desc | [a], b-desc, idesc, {mask,} p`. values: the instruction descriptor, the predicate,
    the descriptors of B and, if it is in shared memory, of A."""
    reader = cells.reader
    if form not in _KINDS:
        not_modelled(reader, word)
    places: list[Place] = [cells.place()]
    cells.comma()
    left: tuple[Operand, ...] = ()
    if reader.next.text == "[":
        places.append(cells.place())
    else:
        left = (cells.value(),)
    cells.comma()
    right = cells.value()
    cells.comma()
    descriptor = cells.value()
    cells.comma()
    if reader.next.text == "{":
        reader.fail("a mask of lanes is not modelled", word)
    adds = cells.value()
    return TensorCore(kind="mma", form=form, group=group, places=tuple(places), values=(descriptor, adds, right, *left),
                      **cells.done())  # fmt: skip


def follow_kernel_core(paths: Paths, path: Path, instruction: TensorCore) -> list[Path]:
    """Loads, stores, products and allocations; each address in tensor memory that an operand may have is a path."""
    if instruction.kind == "alloc":
        _allocated(paths, path, instruction)
        return [path]
    if instruction.kind == "free":  # what is there afterwards nobody may ask
        return [path]
    ways: list[tuple[Path, tuple[int, ...]]] = [(path, ())]
    for base, offset in instruction.places:
        if isinstance(base, str):
            refuse(paths.test.source, f"'{base}' is not in tensor memory", instruction.span)
        ways = [
            (after, (*known, address))
            for way, known in ways for after, address in columns(paths, way, instruction, base, offset)
        ]  # fmt: skip
    for way, addresses in ways:
        if instruction.kind == "mma":
            _multiplied(paths, way, instruction, addresses)
        else:
            _transferred(paths, way, instruction, addresses[0])
    return [way for way, _ in ways]


def _allocated(paths: Paths, path: Path, instruction: TensorCore) -> None:
    """A weak write of the address, by the first of a warp's threads that the test has."""
    name, offset = paths.place(path, instruction, instruction.places[0], CELL)
    thread = path.thread
    warp = [other for other in paths.test.threads if (other.cta, other.warp) == (thread.cta, thread.warp)]
    if thread is not min(warp, key=lambda other: other.lane):
        return
    first = allocations(paths.test, thread)[instruction.span[0]]
    path.events.append(Event("W", path.steps, instruction, "weak", location=name, offset=offset, size=CELL,
                             value=constant(first), needs=path.control))  # fmt: skip


def _transferred(paths: Paths, path: Path, instruction: TensorCore, address: int) -> None:
    """The cells of a thread's registers; of two cells in each, with .pack, the lower halves (9.7.16.8)."""
    thread, (shape, _, packed) = path.thread, instruction.form.partition(".")
    first = _WARP * (thread.warp % _WARPS)
    if address >> 16 not in range(first, first + _WARP - LANES_OF[shape] + 1, 16):
        refuse(paths.test.source, f"lane {address >> 16} is not the first one of this warp (9.7.16.8.1)",
               instruction.span)  # fmt: skip
    name = NAME.format(thread.cta)
    operation = Operation(paths, path, instruction)
    values = [paths.operand(path, value) for value in instruction.values]
    count = len(values) or len(instruction.results) - bool(instruction.reduction)
    found = []
    for at, (lane, column) in enumerate(cells_of(shape, thread.lane, count)):
        at_ = [cell(paths, instruction, address + (lane << 16) + (column << bool(packed)) + half)
               for half in range(2 if packed else 1)]  # fmt: skip
        if not values:
            found.append(_joined([operation.access("R", name, offset, CELL) for offset in at_]))
        elif packed:
            for half, offset in enumerate(at_):
                operation.access("W", name, offset, CELL // 2, _half(values[at], half))
        else:
            operation.access("W", name, at_[0], CELL, values[at])
    if not values:
        operation.result(found)
    issue(path, operation)


def _half(value: Value, half: int) -> Value:
    return Value(value.needs, lambda reads: value.of(reads) >> 16 * half & 0xFFFF)


def _joined(parts: list[Value]) -> Value:
    """One value, or the lower halves of two in one register."""
    if len(parts) == 1:
        return parts[0]
    low, high = parts
    return Value(low.needs | high.needs, lambda reads: low.of(reads) & 0xFFFF | (high.of(reads) & 0xFFFF) << 16)


def _multiplied(paths: Paths, path: Path, instruction: TensorCore, addresses: tuple[int, ...]) -> None:
    """A product whose D has all lanes, one accumulator of 32 bits in each column."""
    source, span = paths.test.source, instruction.span
    values = [paths.operand(path, value) for value in instruction.values]
    if any(value.needs for value in values):
        refuse(source, "a descriptor or predicate that depends on a read is not modelled", span)
    descriptor, adds, right, *left = (value.of(()) for value in values)
    opcode = instruction.text.split()[0] if instruction.guard is None else instruction.text.split()[1]
    try:
        shape = shape_of(opcode, descriptor & 0xFFFFFFFF)
    except ValueError as error:
        refuse(source, str(error), span)
    if shape.m != LANES or shape.dtype == "f16" or not left or shape.negate_a != shape.negate_b:
        refuse(source, "in kernels, products with M = 128, D of 32 bits and A in shared memory are modelled", span)
    name = NAME.format(path.thread.cta)
    operation = Operation(paths, path, instruction, (name, addresses[0], descriptor))
    tiles: tuple[Tile, Tile, str] = (
        ("tcgen05", left[0], shape.m, shape.k, shape.atype, shape.a_mn_major),
        ("tcgen05", right, shape.n, shape.k, shape.btype, shape.b_mn_major),
        shape.dtype,
    )
    read = operation.event("R", in_tensor=False)
    parts = [read_pieces(paths, path, read, tile, path.thread.window) for tile in tiles[:2]]
    first, size = cell(paths, instruction, addresses[0]), CELL * LANES * shape.n
    if addresses[0] >> 16 or first + size > paths.extent(name):
        refuse(source, "D leads out of tensor memory", span)
    old = operation.access("R", name, first, size) if adds else None
    elements = [(row, column) for column in range(shape.n) for row in range(LANES)]
    found = Products(paths, tiles, parts, elements, None if old is None else [old])
    operation.access("W", name, first, size, found.tile())
    issue(path, operation)
