"""Products of warpgroups (9.7.15) as far as they access shared memory: a tile is a location, a fragment a register, a
thread of the test a warpgroup.

`wgmma.mma_async` reads its tiles through the async proxy. It is an agent of its own, and, unlike copies, not behind
what its thread executed before (8.9.1.1), but behind what precedes the last `wgmma.fence` or `fence.proxy.async` in
front of it (9.7.15.7.1). Its completion is waited for by groups, and is followed by an implicit proxy fence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ptxtools.records import replace

from .barriers import ROW
from .events import Event, Path, Value, constant
from .functions import computed
from .matrices import Held, Products, fragment, read_kernel_product, read_pieces, tiles_of
from .programs import Barrier, Instruction, Operand, Place, Product, Register, Type
from .refusals import not_modelled
from .words import refuse

if TYPE_CHECKING:
    from .instructions import Cells
    from .paths import Paths
    from .words import Word

_PRODUCT = re.compile(
    r"m64n\d+k(8|16|32|64|256)\.(s32\.[us]8\.[us]8|s32\.b1\.b1\.and\.popc|f(16|32)\.f16\.f16|f32\.bf16\.bf16"
    r"|f32\.tf32\.tf32|f(16|32)\.e[45]m[32]\.e[45]m[32])"
)
_RESULT = Type("s", 32)
_RESULT_BITS = (1 << 32) - 1


def read_product(cells: Cells, word: Word, modifiers: list[str]) -> Instruction:
    """wgmma.fence, .commit_group, .wait_group, and .mma_async: `d, a, b{, metadata, selector}{, scale-d{, signs
    of a and b{, layouts}}}`."""
    reader = cells.reader
    sparse = modifiers[1:2] == ["sp"]
    if sparse:
        modifiers = [modifiers[0], *modifiers[2:]]
    if modifiers[1:3] != ["sync", "aligned"]:
        not_modelled(reader, word)
    kind, rest = modifiers[0], ".".join(modifiers[3:])
    if kind in ("fence", "commit_group") and not rest:
        return Product(kind=kind, **cells.done())
    if kind == "wait_group" and not rest:
        pending = reader.number("a number of groups")
        if pending < 0:
            reader.fail("expected a number of groups", word)
        return Product(kind=kind, pending=pending, **cells.done())
    if kind != "mma_async" or not _PRODUCT.fullmatch(rest):
        not_modelled(reader, word)
    if cells.fixed:
        return Product(kind=kind, **read_kernel_product(cells, word, rest, sparse=sparse), **cells.done())
    result = cells.result()
    cells.comma()
    left = cells.value() if reader.next.kind == "word" and cells.is_register(reader.next.text) else None
    places: tuple[Place, ...] = () if left is not None else (cells.place(),)
    cells.comma()
    places += (cells.place(),)
    rest_: list[Operand] = []
    while reader.accept(","):
        rest_.append(cells.value())
    numbers = rest_[2:] if sparse else rest_
    if len(numbers) > 5 or (sparse and len(rest_) < 2):
        reader.fail(f"'{word.text}' has other operands", word)
    signs = numbers[1:3]
    if any(sign not in (1, -1) for sign in signs):
        reader.fail("expected 1 or -1 for the sign of a factor", word)
    scale = numbers[0] if numbers else 1
    return Product(kind=kind, result=result, values=(scale,) if left is None else (scale, left), places=places,
                   negated=signs.count(-1) == 1, popc=rest.endswith("popc"), **cells.done())  # fmt: skip


def follow_product(paths: Paths, path: Path, instruction: Product) -> list[Path]:
    copies = path.copies
    if instruction.kind == "mma_async" and instruction.form:
        _multiplied_tiles(paths, path, instruction)
    elif instruction.kind == "mma_async":
        _multiplied(paths, path, instruction)
    elif instruction.kind == "commit_group":
        path.copies = replace(copies, products=copies.products.committed())
    elif instruction.kind == "fence":
        path.events.append(Event("C", path.steps, instruction))
    else:
        complete = copies.products.waited_for(instruction.pending)
        read = 0
        for at, event in enumerate(path.events):
            read |= event.completes if complete >> at & 1 else 0
        path.events.append(Event("C", path.steps, instruction, after=complete))
        path.copies = replace(copies, open=copies.open & ~read)
    return [path]


def _multiplied(paths: Paths, path: Path, instruction: Product) -> None:
    path.copies = replace(path.copies, agents=path.copies.agents + 1)
    scale, *left = (paths.operand(path, value) for value in instruction.values)
    before = path.registers.get(instruction.result) or constant(0)
    event = Event("R", path.steps, instruction, "weak", "", "async", needs=path.control, agent=path.copies.agents,
                  behind=_fenced(path))  # fmt: skip
    first, factors = len(path.events), list(left)
    for place in instruction.places:
        base, _ = place
        type_ = paths.types[base] if isinstance(base, str) else Type("b", 64)
        name, offset = paths.place(path, instruction, place, type_.bits // 8)
        factors.append(paths.loaded(len(path.events), type_))
        path.events.append(replace(event, location=name, offset=offset, size=type_.bits // 8))
    last = len(path.events)
    read = (1 << last) - (1 << first)
    path.events.append(Event("P", path.steps, instruction, proxy="async", agent=event.agent, completes=read))
    path.copies = replace(path.copies, products=path.copies.products.with_copy(1 << last), open=path.copies.open | read)
    a, b = factors

    def result(reads: Sequence[int]) -> int:
        added = before.of(reads) if scale.of(reads) else 0
        left, right = a.of(reads), b.of(reads)
        if instruction.popc:
            left, right = (left & right & _RESULT_BITS).bit_count(), 1
        return computed("mad", _RESULT, [-left if instruction.negated else left, right, added])

    path.registers[instruction.result] = Value(a.needs | b.needs | scale.needs | before.needs, result)


def _multiplied_tiles(paths: Paths, path: Path, instruction: Product) -> None:
    """The part of a thread in a product of a warpgroup: it reads both matrices, and gets its fragment of D."""
    path.copies = replace(path.copies, agents=path.copies.agents + 1)
    operands = [paths.operand(path, value) for value in instruction.values]
    known = len(operands) - instruction.held
    if any(value.needs for value in operands[:known]):
        refuse(paths.test.source, "a descriptor or predicate that depends on a read is not modelled", instruction.span)
    adds, right, *left = (value.of(()) for value in operands[:known])
    held = _together(paths, path, instruction, operands[known:]) if instruction.held else None
    kind, first_row = ("wgmma", left[0]) if left else ("registers", 16 * (path.thread.warp % 4))
    a, b, dtype = tiles_of(instruction.form, instruction.layouts, first_row, right, kind=kind,
                           sparse=instruction.selector >= 0)  # fmt: skip
    event = Event("R", path.steps, instruction, "weak", "", "async", needs=path.control, agent=path.copies.agents,
                  behind=_fenced(path))  # fmt: skip
    first = len(path.events)
    parts = [read_pieces(paths, path, event, tile, path.thread.window) if tile[0] == "wgmma" else () for tile in (a, b)]
    last = len(path.events)
    read = (1 << last) - (1 << first)
    path.events.append(Event("P", path.steps, instruction, proxy="async", agent=event.agent, completes=read))
    path.copies = replace(path.copies, products=path.copies.products.with_copy(1 << last), open=path.copies.open | read)
    old = [path.registers.get(name) or constant(0) for name in instruction.results]
    packed = 2 if dtype == "f16" else 1
    added = [_half(value, at, packed) for value in old for at in range(packed)] if adds else None
    elements = fragment(32 * path.thread.warp + path.thread.lane, b[2])
    found = Products(paths, (a, b, dtype), parts, elements, added, negated=instruction.negated, held=held)
    for number, name in enumerate(instruction.results):
        path.registers[name] = found.register(number, packed)


def _together(paths: Paths, path: Path, instruction: Product, operands: Sequence[Value]) -> Held:
    """What the four threads of a row hold: each gives its registers, and gets those of all (9.7.15.5.1)."""
    thread, row = path.thread, path.thread.lane // ROW
    lanes = [other.lane for other in paths.test.threads
             if (other.cta, other.warp, other.lane // ROW) == (thread.cta, thread.warp, row)]  # fmt: skip
    if len(lanes) != ROW:
        names = f"{ROW * row} to {ROW * (row + 1) - 1}"
        refuse(paths.test.source, f"a factor or metadata in registers needs all threads of a row: lanes {names} of the "
               "warp", instruction.span)  # fmt: skip
    meeting = Barrier(text=instruction.text, span=instruction.span, mode="sync", place="row", ordering=False,
                      reduction="join")  # fmt: skip
    needs = path.control
    for value in operands:
        needs |= value.needs

    def packed(reads: Sequence[int]) -> int:
        return sum((value.of(reads) & _RESULT_BITS) << 32 * at for at, value in enumerate(operands))

    arrival = Event("A", path.steps, meeting, barrier=("row", thread.cta, thread.warp, row), needs=needs,
                    ordering=False, value=Value(needs, packed))  # fmt: skip
    path.steps += 1
    at = len(path.events) + 1
    path.events += [arrival, replace(arrival, kind="B", step=path.steps, value=None)]
    path.steps += 1
    return Held(Value(1 << at, lambda reads: reads[at]), row, len(operands), instruction.selector)


def _half(value: Value, at: int, packed: int) -> Value:
    return value if packed == 1 else Value(value.needs, lambda reads: value.of(reads) >> 16 * at & 0xFFFF)


def _fenced(path: Path) -> int:
    """What the thread itself has executed up to its last fence, that one included, as a set."""
    own = [at for at, event in enumerate(path.events) if not event.agent]
    fences = [at for at in own if _is_fence(path.events[at])]
    return sum(1 << at for at in own if at <= fences[-1]) if fences else 0


def _is_fence(event: Event) -> bool:
    if event.kind == "P":
        return event.proxy == "async" and not event.order
    return event.kind == "C" and isinstance(event.instruction, Product) and event.instruction.kind == "fence"


def uses_open_result(path: Path, operand: Operand) -> bool:
    """Whether a register holds the result of a product that has not been waited for."""
    value = path.registers.get(operand.name) if isinstance(operand, Register) else None
    return value is not None and bool(value.needs & path.copies.open)
