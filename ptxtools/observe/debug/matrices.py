"""What a debugger shows of matrices: fragments in registers, tensor memory, tensor maps and matrix descriptors.

Each command is a function of the debugger and the rest of its line; it returns lines of text and raises
`ExpressionError`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxtools.machine.registers import named
from ptxtools.program.program import LANES
from ptxtools.semantics.fragments import Fragment, accumulator, factor_a, factor_b
from ptxtools.sim.tensor import memory as tensor_memory
from ptxtools.sim.tensor.instruction import KINDS, Variant
from ptxtools.sim.tensor.instruction import decode as decode_instruction
from ptxtools.sim.tensor.layout import COLUMNS
from ptxtools.sim.tensor.layout import LANES as TENSOR_LANES
from ptxtools.sim.tensor.shared import CHUNK, Descriptor, DescriptorError, matrix, tensor_descriptor
from ptxtools.sim.tensor.shared import warpgroup_descriptor as group_descriptor
from ptxtools.sim.tensormap import BYTES, TensorMap, TensorMapError

from .expressions import SIZES, ExpressionError, Lane, decode, evaluate, fetch
from .looking import natural, numbers, table_lines

if TYPE_CHECKING:
    from .debugger import Debugger

#: Bits of the element types that `matrix` shows; those below a byte are whole numbers.
_BITS = {**{name: 8 * size for name, size in SIZES.items() if size <= 8}, "u4": 4, "s4": 4, "b4": 4, "b1": 1}
#: Warps whose fragments make up the 64 rows of a wgmma (9.7.15.5.1).
_GROUP = 4
_PART = re.compile(r"\b(rows|columns|lanes)\s+([\d,-]+)")
_FRAGMENT = re.compile(r"([abcd])\s+(\d{1,4})x(\d{1,4})\s+(\w+)\s+(.+)")
_STORED = re.compile(r"(\d{1,4})x(\d{1,4})\s+(\w+)(\s+mn)?$")


def _parts(text: str) -> tuple[str, dict[str, str]]:
    """The text without its choices of rows, columns or lanes, and those."""
    return _PART.sub("", text).strip(), {match[1]: match[2] for match in _PART.finditer(text)}


def _lane(debugger: Debugger) -> Lane:
    at = debugger.lane()
    if at is None:
        raise ExpressionError("no lane is in focus")
    return at


def _element(bits: int, type_: str) -> str:
    """A value from its bits."""
    width = _BITS[type_]
    bits &= (1 << width) - 1
    if width >= 8:
        return str(decode(bits.to_bytes(width // 8, "little"), type_))
    return str(bits - (1 << width) if type_[0] == "s" and bits >> width - 1 else bits)


def _known(type_: str) -> None:
    if type_ not in _BITS:
        raise ExpressionError(f"'{type_}' is no element type; there are {', '.join(sorted(_BITS, key=natural))}")


def _grid(rows: list[int], columns: list[int], text: Callable[[int, int], str]) -> list[str]:
    """A table with the numbers of its rows and columns."""
    return table_lines(
        ["", *map(str, columns)], [[str(row), *(text(row, column) for column in columns)] for row in rows]
    )


# --- fragments --------------------------------------------------------------------------------------------------------


def matrix_lines(debugger: Debugger, rest: str) -> list[str]:
    """`a|b|c|d ROWSxCOLUMNS TYPE REGISTERS [rows …] [columns …]`: the matrix that the registers of a warp make up; with
    64 rows those of a warpgroup (9.7.14.5, 9.7.15.5.1). "-": a lane that has exited, or does not know the register."""
    text, parts = _parts(rest)
    match = _FRAGMENT.fullmatch(text)
    if match is None:
        raise ExpressionError("matrix a|b|c|d ROWSxCOLUMNS TYPE REGISTERS, such as matrix d 16x8 f32 %f1-%f4")
    role, rows, columns, type_ = match[1], int(match[2]), int(match[3]), match[4]
    names = list(_names(match[5]))
    at = _lane(debugger)
    grouped = rows == 16 * _GROUP and role != "b"
    fragment = _fragment(role, 16 if grouped else rows, columns, type_)
    if len(names) != fragment.registers:
        shape = f"{role.upper()} of {rows}x{columns} {type_}"
        raise ExpressionError(
            f"a fragment of {shape} has {fragment.registers} registers in each lane, not {len(names)}"
        )
    first = at.view.warp // _GROUP * _GROUP if grouped else at.view.warp
    known = named(at.view)
    for name in names:
        if name not in known:
            raise ExpressionError(f"no register {name} is known at this line")
    held = [_bits(debugger, at, first + n, names) for n in range(_GROUP if grouped else 1)]

    def element(row: int, column: int) -> str:
        warp, inner = divmod(row, fragment.rows)
        lane, register, low = fragment.place(inner, column)
        word = held[warp].get((lane, names[register]))
        return "-" if word is None else _element(word >> low, type_)

    return _grid(_chosen(parts, "rows", rows), _chosen(parts, "columns", columns), element)


def _chosen(parts: dict[str, str], what: str, size: int) -> list[int]:
    return numbers(parts[what], size - 1) if what in parts else list(range(size))


def _names(text: str) -> Iterator[str]:
    """Registers such as "%f1-%f4 %f9"; commas and braces as in PTX are no difference."""
    for word in re.sub(r"[,{}]", " ", text).split():
        first, dash, last = word.partition("-")
        if not dash:
            yield word
            continue
        (head, low, _), (end, high, _) = natural(first), natural(last)
        if head != end or not 0 <= low <= high < low + 1024:
            raise ExpressionError(f"'{word}' is no range of registers, such as %f1-%f4")
        yield from (f"{head}{number}" for number in range(low, high + 1))


def _fragment(role: str, rows: int, columns: int, type_: str) -> Fragment:
    """The layout of a matrix in a warp's registers. Raises `ExpressionError` for one that no instruction has."""
    _known(type_)
    bits = _BITS[type_]
    step = 4 * max(32, bits) // bits  # elements that a register of four lanes holds
    mn, k = (columns, rows) if role == "b" else (rows, columns)
    if role in "cd":
        fits = bits >= 16 and rows in (8, 16) and 0 < columns <= 256 and columns % 8 == 0
        made = accumulator(rows, columns, bits) if fits else None
    else:
        fits = mn in ((8, 16) if role == "a" else range(8, 257, 8)) and 0 < k <= 16 * step and k % step == 0
        made = (factor_a if role == "a" else factor_b)(rows, columns, bits) if fits else None
    if made is None:
        raise ExpressionError(f"no instruction has a fragment of {role.upper()} of {rows}x{columns} {type_}")
    return made


def _bits(debugger: Debugger, at: Lane, warp: int, names: list[str]) -> dict[tuple[int, str], int]:
    """Registers of the lanes of a warp, as unsigned numbers."""
    found = {}
    for lane in range(LANES):
        view = debugger.view(at.view.cta.place, warp, lane)
        known = {} if view is None else named(view)
        for name in names:
            if view is not None and name in known:
                value: Any = view.values(known[name][0])
                value = value[0] if isinstance(value, tuple) else value
                found[lane, name] = int.from_bytes(value[lane].tobytes(), "little")
    return found


# --- tensor memory ----------------------------------------------------------------------------------------------------


def tensor_lines(debugger: Debugger, rest: str) -> list[str]:
    """`[ADDRESS [COUNT [TYPE]] [lanes …]]`: `COUNT` columns of tensor memory from an address on, a row for each lane
    (9.7.16.1); types of 16 bits have two elements in a column. Without an address, the columns that are allocated."""
    at = _lane(debugger)
    text, parts = _parts(rest)
    cta = at.view.cta
    if not tensor_memory.allocated_columns(cta):
        return [f"{cta} has allocated no tensor memory"]
    memory = tensor_memory.of(cta)
    if not text:
        return [f"{cta}: columns {first}-{first + n - 1}" for first, n in sorted(memory.allocations.items())]
    match = re.fullmatch(r"(.+?)(?:\s+(\d{1,4})(?:\s+([a-z]\w*))?)?", text)
    assert match is not None
    count, type_ = int(match[2] or 8), match[3] or "b32"
    _known(type_)
    if _BITS[type_] not in (8, 16, 32):
        raise ExpressionError(f"a column of tensor memory has 32 bits: {type_} does not fit")
    address = evaluate(match[1], at)
    if isinstance(address, float) or not 0 <= address < 1 << 32:
        raise ExpressionError(f"{address} is no address in tensor memory")
    lane, column = tensor_memory.split(int(address))
    if lane >= TENSOR_LANES or not 0 < count <= COLUMNS or not memory.covers(column, count):
        raise ExpressionError(f"lane {lane}, columns {column} to {column + count - 1}: not all of them are allocated")
    lanes = _chosen(parts, "lanes", TENSOR_LANES) if "lanes" in parts else range(lane, min(lane + 32, TENSOR_LANES))
    each = 32 // _BITS[type_]

    def element(row: int, place: int) -> str:
        word = int(memory.cells[row, column + place // each]) >> _BITS[type_] * (place % each)
        return f"{word:#x}" if type_ == "b32" else _element(word, type_)

    found = _grid(list(lanes), list(range(count * each)), element)
    return [f"lanes and elements from column {column} on, {type_}", *found]


# --- descriptors ------------------------------------------------------------------------------------------------------


def tensormap_lines(debugger: Debugger, rest: str) -> list[str]:
    """`ADDRESS`: the tensor map at a generic address, decoded (5.5.8)."""
    at = _lane(debugger)
    address = evaluate(rest, at)
    if isinstance(address, float) or address < 0:
        raise ExpressionError(f"{address} is no address")
    try:
        found = TensorMap.decode(fetch(at, int(address), BYTES, "generic"))
    except TensorMapError as error:
        raise ExpressionError(f"{address:#x}: {error}") from None
    rows = [
        ("tensor", f"{found.type.name}{list(found.shape)} at {found.address:#x}"),
        ("strides", f"{list(found.strides)} bytes"), ("mode", found.mode), ("box", str(list(found.box))),
        ("element strides", str(list(found.element_strides))), ("swizzle", found.swizzle),
        ("interleave", found.interleave), ("fill", found.fill),
    ]  # fmt: skip
    if found.mode != "tile":
        corners = f"{list(found.lower)} to {list(found.upper)}"
        rows[3] = ("box", f"corners {corners}, {found.channels} channels, {found.pixels} pixels")
    return [f"{name}: {text}" for name, text in rows]


def descriptor_lines(debugger: Debugger, rest: str) -> list[str]:
    """`wgmma|tcgen05 EXPRESSION [, ROWSxK TYPE [mn]]`: a matrix descriptor for shared memory, decoded; with a shape,
    the matrix that it describes: mn x k elements, `mn` where not K is contiguous (9.7.15.5.1.2.2, 9.7.16.4.1).
    `kind::KIND EXPRESSION`: the instruction descriptor of a tcgen05.mma."""
    kind, _, text = rest.partition(" ")
    at = _lane(debugger)
    if kind.startswith("kind::") and text.strip():
        return [_instruction(at, kind.removeprefix("kind::"), text)]
    if kind not in ("wgmma", "tcgen05") or not text.strip():
        raise ExpressionError(
            "descriptor wgmma|tcgen05 EXPRESSION [, ROWSxK TYPE [mn]]; "
            "descriptor kind::KIND EXPRESSION [, sp] [, ws] [, cta_group::2]"
        )
    text, parts = _parts(text)
    expression, _, shape = text.partition(",")
    value = evaluate(expression, at)
    if isinstance(value, float) or not -(1 << 63) <= value < 1 << 64:
        raise ExpressionError(f"{value} is no descriptor of 64 bits")
    word = int(value) & (1 << 64) - 1
    try:
        found = group_descriptor(word) if kind == "wgmma" else tensor_descriptor(word, absolute_allowed=True)
        lines = [_fields(found)]
        return lines + _stored(at, found, shape.strip(), parts) if shape.strip() else lines
    except DescriptorError as error:
        raise ExpressionError(str(error)) from None


def _instruction(at: Lane, kind: str, text: str) -> str:
    """The instruction descriptor of a tcgen05.mma of this kind, decoded (9.7.16.4.2)."""
    expression, *words = (part.strip() for part in text.split(","))
    if kind not in KINDS or not {*words} <= {"sp", "ws", "cta_group::2"}:
        raise ExpressionError(f"'{kind}, {', '.join(words)}': {', '.join(KINDS)}; sp, ws, cta_group::2")
    value = evaluate(expression, at)
    if isinstance(value, float) or not -(1 << 31) <= value < 1 << 32:
        raise ExpressionError(f"{value} is no descriptor of 32 bits")
    variant = Variant(kind, 2 if "cta_group::2" in words else 1, "sp" in words, "ws" in words, wide=True)
    try:
        shape = decode_instruction(int(value) & (1 << 32) - 1, variant)
    except DescriptorError as error:
        raise ExpressionError(str(error)) from None
    sides = []
    for name, type_, negated, mn_major in (
        ("A", shape.atype, shape.negate_a, shape.a_mn_major), ("B", shape.btype, shape.negate_b, shape.b_mn_major),
    ):  # fmt: skip
        sides.append(f"{'-' * negated}{name} {type_} {'MN' if mn_major else 'K'}-major")
    scales = f", scales {shape.scale_type} from bytes {shape.scale_a} and {shape.scale_b}" if shape.scale_type else ""
    return (
        f"m {shape.m}, n {shape.n}, k {shape.k}, {', '.join(sides)}, D {shape.dtype}{scales}"
        f"{', saturating' * shape.saturate}{f', sparsity selector {shape.selector}' * variant.sparse}"
    )


def _fields(found: Descriptor) -> str:
    leading = "leading address" if found.absolute else "leading offset"
    return (
        f"start {found.start:#x}, {leading} {found.leading:#x}, stride offset {found.stride:#x}, "
        f"base offset {found.base}, {found.swizzle.name} swizzle"
    )


def _stored(at: Lane, found: Descriptor, shape: str, parts: dict[str, str]) -> list[str]:
    """The matrix in the shared memory of the lane's CTA."""
    match = _STORED.fullmatch(shape)
    if match is None:
        raise ExpressionError(f"'{shape}' is no matrix, such as 64x16 f16")
    rows, columns, type_ = int(match[1]), int(match[2]), match[3]
    _known(type_)
    bits = _BITS[type_]
    if bits not in (8, 16, 32) or not (0 < rows <= 256 and 0 < columns <= 256):
        raise ExpressionError(f"'{shape}': up to 256x256 elements of 8, 16 or 32 bits")
    if (rows if match[4] else columns) * bits % (8 * CHUNK):
        raise ExpressionError(f"'{shape}': the contiguous dimension is no multiple of {CHUNK} bytes")
    shared = np.frombuffer(at.view.cta.shared, np.uint8)
    data = matrix(shared, found, rows, columns, bits, mn_major=bool(match[4]))

    def element(row: int, column: int) -> str:
        return _element(int(data[row, column]), type_)

    return _grid(_chosen(parts, "rows", rows), _chosen(parts, "columns", columns), element)
