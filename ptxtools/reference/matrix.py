"""Matrix instructions of a warp, and cp.async: the meaning of both in NumPy (9.7.14, 9.7.9.25.3.1)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ptxtools.program.details import MatrixProduct, ThreadCopy
from ptxtools.program.program import LANES, Op, Ref
from ptxtools.records import replace
from ptxtools.semantics import fragments, tensorcore
from ptxtools.semantics.accumulation import rule_of
from ptxtools.semantics.fragments import Fragment, scale_lane_a, scale_lane_b, sparse_elements
from ptxtools.semantics.products import Product, product_of
from ptxtools.semantics.tensorcore import ElementsA, ElementsB, Factors

from .machine import Machine
from .memory import addresses, check_alignment, parts
from .registry import Array, Threads, executes


def _warps(m: Machine, threads: Threads) -> Array:
    """Numbers of all threads of the warps that any of these are in, a row for each warp."""
    first = np.unique(m.warp_of[threads]) * LANES
    everyone: Array = first[:, None] + np.arange(LANES)
    return everyone


def _registers(m: Machine, refs: tuple[Ref | None, ...], warps: Array) -> list[Array]:
    """Contents of registers, each by warp and lane."""
    found = []
    for ref in refs:
        assert ref is not None
        found.append(np.asarray(m.read(ref, warps.reshape(-1))).reshape(warps.shape))
    return found


def _write(m: Machine, op: Op, values: list[Array], warps: Array, threads: Threads) -> None:
    """Results by warp and lane, for the threads that run."""
    rows = np.searchsorted(warps[:, 0], m.warp_of[threads] * LANES)
    for ref, t, value in zip(op.dst, op.dst_types, values, strict=True):
        m.write(ref, value[rows, threads % LANES], t, threads)


@cache
def _indices(fragment: Fragment) -> tuple[Array, Array, Array]:
    """Register, lane and bit of every element, as arrays of the matrix's shape."""
    places = np.array(fragment.places())
    return places[..., 1], places[..., 0], places[..., 2]


def _matrix(fragment: Fragment, registers: list[Array]) -> Array:
    """The elements' bits by warp, row and column; register bits above an element are masked off."""
    register, lane, bit = _indices(fragment)
    stacked = np.stack(registers[: fragment.registers])
    words = np.moveaxis(stacked[register, :, lane], -1, 0)
    if fragment.bits == fragment.width:
        return words
    return (words >> bit.astype(np.uint32)) & np.uint32((1 << fragment.bits) - 1)


def _spread(fragment: Fragment, matrix: Array) -> list[Array]:
    """The inverse: registers by warp and lane."""
    register, lane, bit = _indices(fragment)
    dtype = np.uint64 if fragment.width == 64 else np.uint32
    out = np.zeros((fragment.registers, LANES, len(matrix)), dtype)
    moved = np.left_shift(np.moveaxis(matrix.astype(dtype), 0, -1), bit.astype(dtype)[..., None])
    np.bitwise_or.at(out, (register, lane), moved)
    return [np.ascontiguousarray(words.T) for words in out]


@executes("mma")
def product(m: Machine, op: Op, threads: Threads) -> None:
    """mma, mma.sp, wmma.mma: d = a * b + c, the accumulation by the launch's numerics."""
    assert op.opcode is not None
    p = product_of(op.opcode.text)
    warps = _warps(m, threads)
    registers = _registers(m, op.src, warps)
    first_b, first_c = p.factor_registers[0], sum(p.factor_registers)
    extra = registers[first_c + p.parts[0].c.registers :]
    results: list[Array] = []
    for part in p.parts:
        a = _matrix(part.a, registers)
        b = _matrix(part.b, registers[first_b:])
        c = _matrix(part.c, registers[first_c:])
        if p.sparse:
            a = _expanded(p, a, extra[0], op.of(MatrixProduct).selector)
        scales = _scales(m, p, extra[p.sparse :]) if p.scale else None
        d = _multiply(m, p, a, b, c, scales)
        spread = _spread(part.d, d)
        results = [old | new for old, new in zip(results, spread, strict=True)] if results else spread
    _write(m, op, results, warps, threads)


def _expanded(p: Product, stored: Array, metadata: Array, selector: int) -> Array:
    """A sparse A with its zeros; if indices are equal, which the manual leaves open, the later element wins."""
    full = np.zeros((len(stored), p.m, p.k), stored.dtype)
    everyone = np.arange(len(stored))
    for s in sparse_elements(32 if p.atype == "tf32" else p.a_bits, p.m, p.k, selector):
        field = metadata[:, s.lane] >> np.uint32(s.bit + s.half) & np.uint32(1 if s.half else 3)
        full[everyone, s.row, s.base + s.step * field.astype(np.intp)] = stored[:, s.row, s.column]
    return full


def _multiply(m: Machine, p: Product, a: Array, b: Array, c: Array, scales: Any) -> Array:
    """By warp: a rows x K, b K x columns, c rows x columns, all as bits."""
    A = m.algebra  # noqa: N806
    if p.kind == "double":
        x, y = _rows_and_columns(a, b)
        doubles: Array = tensorcore.accumulate_doubles(A, p.rounding, p.k, x, y, [c])[0]
        return doubles
    if p.kind in ("integer", "bits"):
        x, y = _rows_and_columns(*(tensorcore.decode_whole(A, t, v) for t, v in ((p.atype, a), (p.btype, b))))
        whole: Array = tensorcore.accumulate_whole(
            A, p.k, x, y, [c], saturate=p.saturate, bits=p.bit_operation
        )[0]  # fmt: skip
        return whole
    rule = rule_of(p.sum, m.launch.numerics)
    values = [tensorcore.decode(A, t, v.astype(np.uint32)) for t, v in ((p.atype, a), (p.btype, b))]
    powers = [tensorcore.power(A, v, tensorcore.LEAST[t]) for t, v in zip((p.atype, p.btype), values, strict=True)]
    addend = tensorcore.decode_addend(A, p, c.astype(np.uint16) if p.ctype == "f16" else c)
    (x, y), (px, py) = _rows_and_columns(*values), _rows_and_columns(*powers)
    factors = Factors(x, px, y, py, scales, p.blocks or 1)
    results = tensorcore.accumulate(A, rule, p.k, factors, [addend])
    fixed: Array = tensorcore.exceptional(A, rule, p.k, factors, [addend], results)[0]
    return fixed


def _rows_and_columns(a: Array, b: Array) -> tuple[ElementsA, ElementsB]:
    """The contribution of column k of A and row k of B to each element of D."""
    return lambda _, k: a[:, :, k, None], lambda k: b[:, None, k, :]


def _scales(m: Machine, p: Product, operands: list[Array]) -> Any:
    """Both operands' factors multiplied, and their powers of two, by row of A, and k."""
    A = m.algebra  # noqa: N806
    tables = []
    for first, lane_of, count, most in ((0, scale_lane_a, 16, 1), (3, scale_lane_b, 8, 3)):
        word, byte, thread = operands[first : first + 3]
        lanes = np.array([[lane_of(row, number) for row in range(count)] for number in range(most + 1)])
        chosen = np.take_along_axis(word, lanes[thread[:, 0].astype(np.intp) & most], axis=1)
        low = chosen >> ((byte[:, :1].astype(np.uint32) & np.uint32(3)) << np.uint32(3))
        blocks = []
        for block in range(p.blocks):
            value = tensorcore.decode_scale(A, p.scale, low >> np.uint32(8 * block))
            blocks.append((value, tensorcore.power(A, value, tensorcore.LEAST[p.scale])))
        tables.append(blocks)

    def scale(row: int, k: int) -> tuple[Array, Array]:
        block = k * p.blocks // p.k
        rows, columns = tables[0][block], tables[1][block]
        value, power = (A.fmul("f64", x[:, :, None], y[:, None, :]) for x, y in zip(rows, columns, strict=True))
        return value, power

    return scale


# --- ldmatrix, stmatrix, movmatrix ------------------------------------------------------------------------------------


def _rows_of(m: Machine, op: Op, threads: Threads, count: int, *, write: bool) -> Any:
    """Parts of memory with rows of 16 bytes, for the threads whose addresses count."""
    chosen = threads[threads % LANES < count]
    return chosen, parts(m, replace(op, src=op.src[:1]), chosen, 16, write=write)


@executes("ldmatrix")
def load_matrix(m: Machine, op: Op, threads: Threads) -> None:
    """9.7.14.5.15: each of the first lanes names a row."""
    assert op.opcode is not None
    mods = op.opcode.mods
    count = int(mods["num"][1:])
    height = 16 if mods["shape"] == "m16n16" else 8
    warps = _warps(m, threads)
    rows = np.zeros((m.count, 16), np.uint8)
    chosen, pieces = _rows_of(m, op, threads, height * count, write=False)
    for part in pieces:
        for byte in range(16):
            rows[chosen[part.places], byte] = part.buffer.load(part.offsets + byte, 1)
    rows = _unpacked(mods.get("src_fmt", ""), rows[warps])
    words: list[Array] = []
    for matrix in range(count):
        block = rows[:, height * matrix : height * (matrix + 1)]
        for register in range(2 if height == 16 else 1):
            words.append(_words(block, _load_places(mods["shape"], "trans" in mods, register)))
    _write(m, op, words, warps, threads)


def _load_places(shape: str, transposed: bool, register: int) -> list[list[tuple[int, int]]]:
    """Row and byte in memory of each lane's four bytes."""
    if shape == "m8n8":
        return _half_places(transposed)
    if shape == "m8n16":
        return [[fragments.byte_load_8x16(lane, byte) for byte in range(4)] for lane in range(LANES)]
    return [[fragments.byte_load_16x16(lane, register, byte) for byte in range(4)] for lane in range(LANES)]


def _half_places(transposed: bool) -> list[list[tuple[int, int]]]:
    found = []
    for lane in range(LANES):
        halves = [fragments.matrix_row(lane, half, transposed=transposed) for half in (0, 1)]
        found.append([(row, 2 * column + byte) for row, column in halves for byte in (0, 1)])
    return found


def _words(block: Array, places: list[list[tuple[int, int]]]) -> Array:
    """A word for each lane, from rows of bytes by warp."""
    spots = np.array(places)
    chosen = np.ascontiguousarray(block[:, spots[..., 0], spots[..., 1]])
    words: Array = chosen.view(np.uint32)[..., 0]
    return words


def _unpacked(form: str, rows: Array) -> Array:
    """Packed 4- or 6-bit elements, each in a separate byte."""
    if not form:
        return rows
    bits = 4 if form.startswith("b4") else 6
    flat = np.unpackbits(rows, axis=-1, bitorder="little")[..., : 16 * bits]
    each = flat.reshape(*rows.shape[:-1], 16, bits)
    packed: Array = np.packbits(each, axis=-1, bitorder="little")[..., 0]
    return packed


@executes("stmatrix")
def store_matrix(m: Machine, op: Op, threads: Threads) -> None:
    """9.7.14.5.16: the inverse of ldmatrix."""
    assert op.opcode is not None
    mods = op.opcode.mods
    count = int(mods["num"][1:])
    warps = _warps(m, threads)
    values = _registers(m, op.src[1:], warps)
    if mods["shape"] == "m8n8":
        places = _half_places("trans" in mods)
    else:
        places = [[fragments.byte_store_16x8(lane, byte) for byte in range(4)] for lane in range(LANES)]
    spots = np.array(places)
    rows = np.zeros((m.count, 16), np.uint8)
    for matrix, value in enumerate(values):
        block = np.zeros((len(warps), 8, 16), np.uint8)
        block[:, spots[..., 0], spots[..., 1]] = np.ascontiguousarray(value).view(np.uint8).reshape(-1, LANES, 4)
        rows[warps[:, 8 * matrix : 8 * (matrix + 1)]] = block
    chosen, pieces = _rows_of(m, op, threads, 8 * count, write=True)
    for part in pieces:
        for byte in range(16):
            part.buffer.store(part.offsets + byte, 1, rows[chosen[part.places], byte])


@executes("movmatrix")
def transpose(m: Machine, op: Op, threads: Threads) -> None:
    """9.7.14.5.17."""
    warps = _warps(m, threads)
    value = _registers(m, op.src, warps)[0]
    block = np.ascontiguousarray(value).view(np.uint8).reshape(len(warps), 8, 16)
    _write(m, op, [_words(block, _half_places(transposed=True))], warps, threads)


# --- cp.async ---------------------------------------------------------------------------------------------------------


@executes("cp.async")
def copy_async(m: Machine, op: Op, threads: Threads) -> None:
    """Complete at once; bytes beyond the source's size are zero."""
    detail = op.of(ThreadCopy)
    size, rule = detail.size, detail.rule
    counts = np.full(len(threads), size, np.int64)
    if rule:
        last = op.src[2]
        assert last is not None
        value = m.source(last, op.src_types[2], threads)
        counts = np.where(value, 0, size) if rule == "ignore" else np.minimum(value.astype(np.int64), size)
    data = np.zeros((len(threads), size), np.uint8)
    source = replace(op, src=op.src[:1], src_types=op.src_types[:1])
    for count in np.unique(counts[counts > 0]):
        which = np.flatnonzero(counts == count)
        check_alignment(m, source, threads[which], addresses(m, source, threads[which]), size)
        for byte in range(int(count)):
            for part in parts(m, replace(source, imm=op.imm + byte), threads[which], 1, write=False):
                data[which[part.places], byte] = part.buffer.load(part.offsets, 1)
    target = replace(op, src=op.src[1:2], src_types=op.src_types[1:2], imm=0, space="shared")
    for part in parts(m, target, threads, size, write=True):
        for byte in range(size):
            part.buffer.store(part.offsets + byte, 1, data[part.places, byte])
