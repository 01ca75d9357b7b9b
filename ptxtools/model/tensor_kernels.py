"""tcgen05 in kernels: addresses in tensor memory, matrix descriptors, and what `tcgen05.alloc` writes (9.7.16.7.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .events import Event, Path, Value, constant
from .matrices import CELL, NAME, WINDOW_BITS, allocations, cell, columns, read_piece
from .programs import Instruction, Operand, Place, TensorCore
from .tensor_cores import Operation, issue
from .tensor_loads import LANES as LANES_OF
from .tensor_loads import cells as cells_of
from .words import refuse

if TYPE_CHECKING:
    from .instructions import Cells
    from .paths import Paths
    from .words import Word

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


def read_issued(cells: Cells, kind: str, group: str, form: str) -> Instruction:
    """tcgen05.mma, .cp and .shift, with the names that the manual has for their operands."""
    reader = cells.reader
    places: dict[str, Place] = {("d_tmem" if kind == "mma" else "taddr"): cells.place()}
    values: dict[str, Operand] = {}
    mask: list[Operand] = []

    def take(place: str, value: str) -> None:
        cells.comma()
        if place and (reader.next.text == "[" or not value):
            places[place] = cells.place()
        else:
            values[value] = cells.value()

    if kind == "cp":
        take("", "s_desc")
    elif kind == "mma":
        words = form.split(".")
        take("a_tmem", "a_desc")
        take("", "b_desc")
        if "sp" in words:
            take("sp_meta", "")
        take("", "idesc")
        if "block_scale" in words:
            take("scale_a", "")
            take("scale_b", "")
        if reader.peek().text == "{":
            cells.comma()
            mask = cells.listed(cells.value)
        take("", "enable_input_d")
        if reader.next.text == ",":
            take("", "zero_column_mask_desc" if "ws" in words else "scale_input_d")
    return TensorCore(kind=kind, form=form, group=group, places=tuple(places.values()),
                      values=(*values.values(), *mask),
                      names=(*places, *values, *("disable_output_lane" for _ in mask)), **cells.done())  # fmt: skip


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
        if instruction.names:
            _worked(paths, way, instruction, addresses)
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
    if thread.lane >= _WARP // 2 and instruction.further:
        address += instruction.further
        if address >> 16 not in (first, first + 16):
            refuse(paths.test.source, f"lane {address >> 16} is not one of this warp (9.7.16.8.1)", instruction.span)
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


def _worked(paths: Paths, path: Path, instruction: TensorCore, addresses: tuple[int, ...]) -> None:
    """What a product, copy or shift reads, and what it then writes, in the CTA or in both of a pair."""
    source, span, thread = paths.test.source, instruction.span, path.thread
    values = [paths.operand(path, value) for value in instruction.values]
    if any(value.needs for value in values):
        refuse(source, "a descriptor or predicate that depends on a read is not modelled", span)
    operands: dict[str, list[int]] = {}
    for name, number in zip(instruction.names, (*addresses, *(value.of(()) for value in values)), strict=True):
        bits = 64 if name.endswith("desc") and name != "idesc" else 32
        operands.setdefault(name, []).append(number & (1 << bits) - 1)
    rank, first = 0, thread.cta
    if instruction.group == "cta_group::2":
        own, size = (paths.test.registers.get(f"{thread.name}:cluster_{what}") for what in ("ctarank", "nctarank"))
        if not (isinstance(own, int) and isinstance(size, int) and own | 1 < size):
            refuse(source, "a pair of CTAs needs a cluster that has both (9.7.16.5.1)", span)
        rank = own % 2
        first -= rank
    opcode = instruction.text.split()[1 if instruction.guard else 0]
    try:
        issued = paths.products().issued(opcode, operands, rank)
    except ValueError as error:
        refuse(source, str(error), span)
    accumulator = (NAME.format(thread.cta), addresses[0], operands["idesc"][0]) if instruction.kind == "mma" else None
    operation = Operation(paths, path, instruction, accumulator)
    found: list[tuple[int, int]] = []  # events and bytes of each piece that is read
    shares: list[int] = []
    for at, tensor, start, size in issued.reads:
        cta, before = first + at, len(found)
        if tensor:
            operation.access("R", _memory(paths, instruction, cta), start, size)
            found.append((len(path.events) - 1, size))
        else:
            window = thread.window + (cta - thread.cta << WINDOW_BITS)
            found += read_piece(paths, path, operation.event("R", in_tensor=False), start + window, size)
        shares.append(len(found) - before)
    whole = _Worked(issued, found, shares)
    for number, (at, _, start, size) in enumerate(issued.writes):
        operation.access("W", _memory(paths, instruction, first + at), start, size, whole.piece(number))
    issue(path, operation)


def _memory(paths: Paths, instruction: TensorCore, cta: int) -> str:
    name = NAME.format(cta)
    if name not in paths.test.locations:
        refuse(paths.test.source, "a test with a pair of CTAs needs threads of both", instruction.span)
    return name


class _Worked:
    """What an instruction writes, computed once for each state of what it reads."""

    def __init__(self, issued: Any, found: Sequence[tuple[int, int]], shares: Sequence[int]) -> None:
        """found: events and bytes; shares: how many of these are one piece."""
        self.issued, self.found, self.shares = issued, found, shares
        self.needs = sum(1 << at for at, _ in found)
        self.known: dict[tuple[bytes, ...], list[bytes]] = {}

    def piece(self, number: int) -> Value:
        return Value(self.needs, lambda reads: int.from_bytes(self._of(reads)[number], "little"))

    def _of(self, reads: Sequence[int]) -> list[bytes]:
        parts = iter([reads[at].to_bytes(size, "little") for at, size in self.found])
        contents = tuple(b"".join(next(parts) for _ in range(share)) for share in self.shares)
        if contents not in self.known:
            self.known[contents] = self.issued.run(contents)
        return self.known[contents]
