"""Matrix instructions of a warp: mma, wmma, ldmatrix, stmatrix, movmatrix (9.7.14).

All lanes of the warp meet first. Products and the moves of 8 x 8 matrices are operations of their own; wmma.load and
wmma.store become address arithmetic and ordinary loads and stores, so that every state space, bounds check and checker
that those have serves them too.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from ptxtools.ir import Immediate, Instruction
from ptxtools.isa import Opcode
from ptxtools.program.details import MatrixProduct
from ptxtools.program.program import Op, Ref
from ptxtools.semantics.fragments import Fragment, accumulator, factor_a, factor_b

from .arithmetic import add_destination, add_source, elements, shape_of
from .memory import Located, locate
from .registry import Unsupported, lowers

if TYPE_CHECKING:
    from .function import FunctionLowering

_ALL_LANES = 0xFFFF_FFFF


def _meet(f: FunctionLowering) -> int | None:
    """All lanes of the warp come together; the label for `end_region`."""
    after = f.guarded_region()
    f.synchronise(f.constant(_ALL_LANES, "b32"))
    return after


@lowers("mma", "wmma.mma")
def product(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """d, a, b, c; of mma.sp the metadata, its selector as the operation's detail; scale factors and their selectors."""
    after = _meet(f)
    dst: list[Ref | None] = []
    src: list[Ref] = []
    dst_types: list[str] = []
    src_types: list[str] = []
    selector = 0
    for operand, spec in zip(instruction.operands, shape_of(op, instruction), strict=False):
        if spec.role == "dst":
            add_destination(f, operand, spec, dst, dst_types)
        elif spec.name == "f":
            if not isinstance(operand, Immediate):
                raise Unsupported("the sparsity selector must be a constant")
            selector = operand.value
        else:
            add_source(f, operand, spec, src, src_types)
    f.emit(Op("mma", op, tuple(dst), tuple(src), tuple(dst_types), tuple(src_types), detail=MatrixProduct(selector)))
    f.end_region(after)


@lowers("ldmatrix", "stmatrix")
def matrix_move(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """Whole matrices between shared memory and registers (9.7.14.5.15, 9.7.14.5.16)."""
    after = _meet(f)
    load = op.family == "ldmatrix"
    vector, address = instruction.operands if load else reversed(instruction.operands)
    place = locate(f, address, op.space)
    if place.space not in ("shared", "cluster", "generic"):
        raise Unsupported("the matrix must be in shared memory")
    items = elements(f, vector)
    types = ("b32",) * len(items)
    if load:
        dst = tuple(f.destination(item) for item in items)
        f.emit(Op("ldmatrix", op, dst, (place.base,), types, (place.type,), imm=place.offset, space=place.space))
    else:
        src = tuple(f.source(item, "b32") for item in items)
        types = (place.type, *types)
        f.emit(Op("stmatrix", op, (), (place.base, *src), (), types, imm=place.offset, space=place.space))
    f.end_region(after)


@lowers("movmatrix")
def transpose(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """An 8 x 8 matrix transposed across the warp (9.7.14.5.17)."""
    after = _meet(f)
    target, source = instruction.operands
    f.emit(Op("movmatrix", op, (f.destination(target),), (f.source(source, "b32"),), ("b32",), ("b32",)))
    f.end_region(after)


# --- wmma.load, wmma.store (9.7.14.4.3, 9.7.14.4.4) -------------------------------------------------------------------

_BITS = {
    "f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "s32": 32, "f64": 64, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1,
}  # fmt: skip


def _fragment_of(op: Opcode) -> Fragment:
    m, n, k = (int(number) for number in re.findall(r"\d+", op.mods["shape"]))
    bits = _BITS[op.mods["type"]]
    matrix = op.mods["matrix"]
    if matrix == "a":
        return factor_a(m, k, bits)
    return factor_b(k, n, bits) if matrix == "b" else accumulator(m, n, bits)


class _Tile:
    """Addresses of a fragment's elements: `major` along the leading dimension, `minor` along the other, in elements.

    Those of a lane are the sum of a part that the lane decides and one that the register and the place in it decide.
    """

    def __init__(self, f: FunctionLowering, op: Opcode, place: Located, stride: Ref | int | None) -> None:
        self.lowering, self.place = f, place
        self.fragment = _fragment_of(op)
        self.bits = self.fragment.bits
        self.by_row = op.mods["layout"] == "row"
        minor = self.fragment.columns if self.by_row else self.fragment.rows
        self.stride = minor if stride is None else stride
        self.unit = max(1, 8 // self.bits)  # elements of a byte
        self.elements: dict[int, list[tuple[int, int]]] = defaultdict(list)  # register -> major, minor by place
        lanes: dict[int, tuple[int, int]] = {}
        for row, places in enumerate(self.fragment.places()):
            for column, (lane, register, bit) in enumerate(places):
                spot = (row, column) if self.by_row else (column, row)
                if lane == 0:
                    self.elements[register].append(spot)
                if register == 0 and bit == 0:
                    lanes[lane] = spot
        self.steps = lanes[4], lanes[1]  # of lane // 4, of lane % 4
        self.base = self._lane_part()
        self.bases: dict[int, Ref] = {}

    def _lane_part(self) -> Ref:
        """Address of the first element of each lane."""
        f = self.lowering
        lane = f.special("%laneid", "u32")
        g = f.compute("shr.u32", ("u32", "u32"), (lane, f.constant(2, "b32")), "u32")
        t = f.compute("and.b32", ("b32", "b32"), (lane, f.constant(3, "b32")), "b32")
        (g_major, g_minor), (t_major, t_minor) = self.steps
        major, major_step, minor, minor_step = (g, g_major, t, t_minor) if g_major else (t, t_major, g, g_minor)
        whole = self._times(self._scaled_by_stride(major), major_step)
        offset = f.compute("mul.wide.u32", ("u32", "u32"), (minor, f.constant(minor_step, "b32")), "u64")
        place = self._bytes(f.compute("add.u64", ("u64", "u64"), (whole, offset), "u64"))
        if self.place.base is None:
            return place
        base = self.place.base
        if base.type == "b32":
            base = f.compute("cvt.u64.u32", ("u32",), (base,), "u64")
        return f.compute("add.u64", ("u64", "u64"), (base, place), "u64")

    def _scaled_by_stride(self, index: Ref) -> Ref:
        f = self.lowering
        stride = f.constant(self.stride, "b32") if isinstance(self.stride, int) else self.stride
        return f.compute("mul.wide.u32", ("u32", "u32"), (index, stride), "u64")

    def _times(self, value: Ref, factor: int) -> Ref:
        if factor == 1:
            return value
        f = self.lowering
        return f.compute("mul.lo.u64", ("u64", "u64"), (value, f.constant(factor, "b64")), "u64")

    def _bytes(self, count: Ref) -> Ref:
        """Elements to bytes."""
        f = self.lowering
        if self.bits < 8:
            shift = self.unit.bit_length() - 1
            return f.compute("shr.u64", ("u64", "u32"), (count, f.constant(shift, "b32")), "u64")
        return self._times(count, self.bits // 8)

    def address(self, spot: tuple[int, int]) -> tuple[Ref, int]:
        """Base and offset of an element, for all lanes."""
        major, minor = spot
        offset = self.place.offset + minor * self.bits // 8
        if isinstance(self.stride, int):
            return self.base, offset + major * self.stride * self.bits // 8
        if major == 0:
            return self.base, offset
        known = self.bases.get(major)
        if known is None:
            f = self.lowering
            far = self._bytes(self._scaled_by_stride(f.constant(major, "b32")))
            known = self.bases[major] = f.compute("add.u64", ("u64", "u64"), (self.base, far), "u64")
        return known, offset

    def whole(self, register: int) -> bool:
        """Whether a register's elements are neighbours in memory."""
        spots = self.elements[register]
        return all(spot == (spots[0][0], spots[0][1] + i) for i, spot in enumerate(spots))

    def pair(self, register: int) -> bool:
        """Whether a register of one 32-bit element and the next are neighbours in memory, to be accessed together."""
        if self.bits != 32 or register + 1 not in self.elements:
            return False
        (major, minor), other = self.elements[register][0], self.elements[register + 1][0]
        return other == (major, minor + 1) and minor % 2 == 0


def _tile(f: FunctionLowering, instruction: Instruction, op: Opcode) -> _Tile:
    operands = instruction.operands
    place = locate(f, operands[1] if op.name == "wmma.load" else operands[0], op.space)
    stride: Ref | int | None = None
    if len(operands) > 2:
        given = operands[2]
        stride = given.value if isinstance(given, Immediate) else f.source(given, "u32")
    return _Tile(f, op, place, stride)


def _load(f: FunctionLowering, tile: _Tile, targets: tuple[Ref, ...], type_name: str, spot: tuple[int, int]) -> None:
    base, offset = tile.address(spot)
    types = (type_name,) * len(targets)
    f.emit(Op("ld", None, targets, (base,), types, ("u64",), imm=offset, space=tile.place.space))


@lowers("wmma.load")
def wmma_load(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """One register after the other; registers beyond what the matrix needs repeat the first ones (9.7.14.4.1)."""
    after = _meet(f)
    targets = [f.destination(item) for item in elements(f, instruction.operands[0])]
    tile = _tile(f, instruction, op)
    needed = tile.fragment.registers
    values = [target if target is not None else f.new("b32") for target in targets]
    register = 0
    while register < needed:
        step = 2 if tile.pair(register) else 1
        spots = tile.elements[register]
        if tile.whole(register):
            name = "b64" if tile.bits == 64 else "b32"
            _load(f, tile, tuple(values[register : register + step]), name, spots[0])
        else:
            parts = tuple(f.new("b16") for _ in spots)
            for part, spot in zip(parts, spots, strict=True):
                _load(f, tile, (part,), f"b{tile.bits}", spot)
            f.emit(Op("pack", None, (values[register],), parts, ("b32",), (f"b{tile.bits}",) * len(parts)))
        register += step
    for extra in range(needed, len(values)):
        f.copy(values[extra], values[extra % needed])
    f.end_region(after)


@lowers("wmma.store")
def wmma_store(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """One register after the other."""
    after = _meet(f)
    tile = _tile(f, instruction, op)
    wide = tile.bits == 64
    sources = [f.source(item, "b64" if wide else "b32") for item in elements(f, instruction.operands[1])]
    register = 0
    while register < tile.fragment.registers:
        step = 2 if tile.pair(register) else 1
        spots = tile.elements[register]
        if tile.whole(register):
            _store(f, tile, tuple(sources[register : register + step]), "b64" if wide else "b32", spots[0])
        else:
            parts = tuple(f.new("b16") for _ in spots)
            types = (f"b{tile.bits}",) * len(parts)
            f.emit(Op("unpack", None, parts, (sources[register],), types, ("b32",)))
            for part, spot in zip(parts, spots, strict=True):
                _store(f, tile, (part,), f"b{tile.bits}", spot)
        register += step
    f.end_region(after)


def _store(f: FunctionLowering, tile: _Tile, values: tuple[Ref, ...], type_name: str, spot: tuple[int, int]) -> None:
    base, offset = tile.address(spot)
    types = ("u64",) + (type_name,) * len(values)
    f.emit(Op("st", None, (), (base, *values), (), types, imm=offset, space=tile.place.space))
