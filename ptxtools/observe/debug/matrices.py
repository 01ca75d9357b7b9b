"""What a debugger shows of matrices in memory: tensor memory, tensor maps and matrix descriptors.

Each command is a function of the debugger and the rest of its line; it returns lines of text and raises
`ExpressionError`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from ptxtools.isa.descriptors import KINDS, DescriptorError, Variant
from ptxtools.isa.descriptors import decode as decode_instruction
from ptxtools.sim.tensor import memory as tensor_memory
from ptxtools.sim.tensor.layout import COLUMNS
from ptxtools.sim.tensor.layout import LANES as TENSOR_LANES
from ptxtools.sim.tensor.shared import CHUNK, Descriptor, matrix, tensor_descriptor
from ptxtools.sim.tensor.shared import warpgroup_descriptor as group_descriptor
from ptxtools.sim.tensormap import BYTES, TensorMap, TensorMapError

from .elements import BITS, check_type, choices, chosen, element_text, focused, grid
from .expressions import ExpressionError, Lane, evaluate, fetch

if TYPE_CHECKING:
    from .debugger import Debugger

_STORED = re.compile(r"(\d{1,4})x(\d{1,4})\s+(\w+)(\s+mn)?$")

# --- tensor memory ----------------------------------------------------------------------------------------------------


def tensor_lines(debugger: Debugger, rest: str) -> list[str]:
    """`[ADDRESS [COUNT [TYPE]] [lanes …]]`: `COUNT` columns of tensor memory from an address on, a row for each lane
    (9.7.16.1); types of 16 bits have two elements in a column. Without an address, the columns that are allocated."""
    at = focused(debugger)
    text, parts = choices(rest)
    cta = at.view.cta
    if not tensor_memory.allocated_columns(cta):
        return [f"{cta} has allocated no tensor memory"]
    memory = tensor_memory.of(cta)
    if not text:
        return [f"{cta}: columns {first}-{first + n - 1}" for first, n in sorted(memory.allocations.items())]
    match = re.fullmatch(r"(.+?)(?:\s+(\d{1,4})(?:\s+([a-z]\w*))?)?", text)
    assert match is not None
    count, type_ = int(match[2] or 8), match[3] or "b32"
    check_type(type_)
    if BITS[type_] not in (8, 16, 32):
        raise ExpressionError(f"a column of tensor memory has 32 bits: {type_} does not fit")
    address = evaluate(match[1], at)
    if isinstance(address, float) or not 0 <= address < 1 << 32:
        raise ExpressionError(f"{address} is no address in tensor memory")
    lane, column = tensor_memory.split(int(address))
    if lane >= TENSOR_LANES or not 0 < count <= COLUMNS or not memory.covers(column, count):
        raise ExpressionError(f"lane {lane}, columns {column} to {column + count - 1}: not all of them are allocated")
    lanes = chosen(parts, "lanes", TENSOR_LANES) if "lanes" in parts else range(lane, min(lane + 32, TENSOR_LANES))
    each = 32 // BITS[type_]

    def element(row: int, place: int) -> str:
        word = int(memory.cells[row, column + place // each]) >> BITS[type_] * (place % each)
        return f"{word:#x}" if type_ == "b32" else element_text(word, type_)

    found = grid(list(lanes), list(range(count * each)), element)
    return [f"lanes and elements from column {column} on, {type_}", *found]


# --- descriptors ------------------------------------------------------------------------------------------------------


def tensormap_lines(debugger: Debugger, rest: str) -> list[str]:
    """`ADDRESS`: the tensor map at a generic address, decoded (5.5.8)."""
    at = focused(debugger)
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
    at = focused(debugger)
    if kind.startswith("kind::") and text.strip():
        return [_instruction(at, kind.removeprefix("kind::"), text)]
    if kind not in ("wgmma", "tcgen05") or not text.strip():
        raise ExpressionError(
            "descriptor wgmma|tcgen05 EXPRESSION [, ROWSxK TYPE [mn]]; "
            "descriptor kind::KIND EXPRESSION [, sp] [, ws] [, cta_group::2]"
        )
    text, parts = choices(text)
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
    check_type(type_)
    bits = BITS[type_]
    if bits not in (8, 16, 32) or not (0 < rows <= 256 and 0 < columns <= 256):
        raise ExpressionError(f"'{shape}': up to 256x256 elements of 8, 16 or 32 bits")
    if (rows if match[4] else columns) * bits % (8 * CHUNK):
        raise ExpressionError(f"'{shape}': the contiguous dimension is no multiple of {CHUNK} bytes")
    shared = np.frombuffer(at.view.cta.shared, np.uint8)
    data = matrix(shared, found, rows, columns, bits, mn_major=bool(match[4]))

    def element(row: int, column: int) -> str:
        return element_text(int(data[row, column]), type_)

    return grid(chosen(parts, "rows", rows), chosen(parts, "columns", columns), element)
