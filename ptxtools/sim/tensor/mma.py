"""tcgen05.mma in all its forms (9.7.16.10): from descriptors to tiles, and the tiles' products into tensor memory."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ptxtools.isa.descriptors import DescriptorError
from ptxtools.machine.claims import Span, mask_of
from ptxtools.machine.events import View, serves
from ptxtools.machine.products import Numbers
from ptxtools.machine.residents import Cta

from . import direct, layout, shared, sparse
from .call import NARROW, Call, call_of
from .layout import LANES
from .memory import cells_of, check_columns, split
from .numbers import BITS, Array, unpack_containers, unpack_fours
from .operands import has
from .queue import issue

_WARP = 32


@serves("tcgen05.mma")
def product(view: View) -> None:
    """Every thread that comes here issues a product."""
    for lane in view.lanes():
        call = call_of(view, lane)
        if view.schedule.delays:
            direct.check_cells(call, check_columns)
        issue(
            view, lambda call=call: run(call), "tcgen05.mma", lane,  # type: ignore[misc]
            lambda call=call: spans(call), lambda call=call: _cells(call),  # type: ignore[misc]
            lambda call=call: [] if _has_gaps(call) else _matrices(call),  # type: ignore[misc]
        )  # fmt: skip
        direct.take_over(call)


def spans(call: Call) -> list[Span]:
    """What a product reads and writes."""
    return _cells(call) + _matrices(call)


def _has_gaps(call: Call) -> bool:
    """Whether bytes in the matrices in shared memory may lie between elements (9.7.16.10.4.4)."""
    return not NARROW.keys().isdisjoint((call.said.shape.atype, call.said.shape.btype))


@lru_cache
def _lanes_of(path: layout.Path, n: int, origin: int) -> int:
    """Lanes of tensor memory that D has rows in, as a mask."""
    return mask_of(layout.accumulator(path, n)[0] + origin)


def _matrices(call: Call) -> list[Span]:
    """What a product reads of shared memory."""
    shape, found = call.said.shape, list[Span]()
    for cta in call.ctas:
        found += _matrix_spans(cta, call.said.b, shape.btype, shape.n // len(call.ctas), shape.k, shape.b_mn_major)
        if not isinstance(call.said.a, int):
            found += _matrix_spans(
                cta, call.said.a, shape.atype, call.said.path.rows, call.said.stored, shape.a_mn_major
            )
    return found


def _cells(call: Call) -> list[Span]:
    """What a product reads of tensor memory, and D."""
    shape, found = call.said.shape, []
    origin, first = split(call.said.d)
    mask = _lanes_of(call.said.path, shape.n, origin)
    for cta in call.ctas:
        end = first + shape.n // call.said.path.parts
        found.append(Span(cta, first, end, "write", tensor=True, lanes=mask))
        if call.said.accumulate:
            found.append(Span(cta, first, end, "read", tensor=True, lanes=mask))
        if isinstance(call.said.a, int):
            column = split(call.said.a)[1]
            words = call.said.stored * BITS[shape.atype] // 32
            found.append(Span(cta, column, column + words, "read", tensor=True, lanes=mask))
        if call.said.variant.sparse:
            found.append(_metadata_span(call, cta))
        if shape.scale_type:
            found.append(_scale_span(call, cta, call.said.scale_a, call.said.path.rows, shape.scale_a))
            found.append(_scale_span(call, cta, call.said.scale_b, shape.n, shape.scale_b))
    return found


def _metadata_span(call: Call, cta: Cta) -> Span:
    lanes, columns = _metadata_cells(call)[:2]
    first = split(call.said.meta)[1] + call.said.shape.selector
    parts = [lanes + call.said.path.step * part for part in range(call.said.path.parts)]
    mask = mask_of(np.stack(parts) + split(call.said.meta)[0])
    return Span(cta, first, first + int(columns.max()) + 1, "read", tensor=True, lanes=mask)


def _scale_span(call: Call, cta: Cta, address: int, count: int, first: int) -> Span:
    """Scale factors, of which each group of 32 lanes that D has rows in has a copy."""
    columns, column = layout.scale_places(count, call.said.shape.factors, first)[0], split(address)[1]
    rows = np.concatenate([call.said.path.lane + call.said.path.step * part for part in range(call.said.path.parts)])
    lanes = np.arange(_WARP) + _WARP * np.unique(rows // _WARP)[:, None]
    return Span(cta, column + int(columns.min()), column + int(columns.max()) + 1, "read", tensor=True,
                lanes=mask_of(lanes))  # fmt: skip


def _matrix_spans(cta: Cta, d: shared.Descriptor, t: str, mn: int, k: int, mn_major: bool) -> list[Span]:
    return [shared.span_of(cta, d, mn, k, BITS[t], mn_major=mn_major)]


# --- the product ------------------------------------------------------------------------------------------------------


def run(call: Call) -> None:
    """Compute D in every CTA that takes part."""
    if direct.multiply(call):
        return
    zero, shift = (None, 0)
    if has(call.view, "zero_column_mask_desc"):
        zero, shift = layout.zero_columns(call.said.shape.m, call.said.shape.n, call.said.columns)
    share = call.said.shape.n // len(call.ctas)
    columns = [_factor_b(call, cta, share + shift)[shift:] for cta in call.ctas]
    codes = columns[0] if len(columns) == 1 else np.concatenate(columns)
    if zero is not None and zero.any():
        codes = np.where(zero[:, None], np.zeros((), codes.dtype), codes)
    b = _decoded(call, call.said.shape.btype, codes, negate=call.said.shape.negate_b)
    for index, cta in enumerate(call.ctas):
        _run_in(call, cta, index, b)


def _run_in(call: Call, cta: Cta, index: int, b: Array | Numbers) -> None:
    """The rows of D that lie in one CTA."""
    shape, path = call.said.shape, call.said.path
    lanes, columns = layout.accumulator(path, shape.n)
    origin, first = split(call.said.d)
    width = shape.n // path.parts
    cells = cells_of(call.view, cta, first, width, "tcgen05.mma: D", call.lane)
    plain = path.parts == 1 and not path.half
    block: tuple[Array, Array] | tuple[slice, slice]
    if plain:
        block = slice(0, path.rows), slice(first, first + width)
    else:
        block = lanes + origin, columns + first
    old = cells[block]
    c = _addend(call, old) if call.said.accumulate else None
    result = _result(call, cta, b, c)
    bits = result.view(np.uint16 if result.dtype == np.float16 else np.uint32).astype(np.uint32)
    if call.said.disabled:
        off = np.array([call.said.disabled[4 * index + lane // 32] >> lane % 32 & 1 for lane in range(LANES)], bool)
        bits = np.where(off[lanes + origin], old, bits)
    cells[block] = bits


def _addend(call: Call, old: Array) -> Array:
    t = call.said.shape.dtype
    if t == "s32":
        return np.ascontiguousarray(old)
    values: Array = old.astype(np.uint16).view(np.float16) if t == "f16" else np.ascontiguousarray(old).view(np.float32)
    if not call.said.scale_d:
        return values
    return values.astype(np.float64) * 2.0**-call.said.scale_d


def _result(call: Call, cta: Cta, b: Array | Numbers, c: Array | None) -> Array:
    """D's rows in a CTA. What lies in tensor memory has a copy for each stretch of D's columns."""
    shape, path = call.said.shape, call.said.path
    scaled = bool(shape.scale_type)
    parts = path.parts if scaled or isinstance(call.said.a, int) or call.said.variant.sparse else 1
    width = shape.n // parts
    found = []
    for part in range(parts):
        a = _factor_a(call, cta, part)
        some = slice(part * width, (part + 1) * width)
        addend = None if c is None else np.ascontiguousarray(c[:, some])
        if isinstance(a, Numbers) and isinstance(b, Numbers):
            right = b.part(some)
            if scaled:
                found.append(_scaled(call, cta, part, a, right, addend, some))
            else:
                found.append(call.view.launch.products.multiply(a, right, addend, call.rule))
        else:
            assert isinstance(a, np.ndarray)
            assert isinstance(b, np.ndarray)
            found.append(call.view.launch.products.multiply_whole(a, b[some], addend, saturate=shape.saturate))
    return found[0] if parts == 1 else np.concatenate(found, axis=1)


# --- factors ----------------------------------------------------------------------------------------------------------


def _decoded(call: Call, t: str, codes: Array, *, negate: bool) -> Array | Numbers:
    """Numbers of a matrix; fp4 comes with two to a byte."""
    if call.said.variant.kind == "i8":
        return call.view.launch.products.whole(t, np.ascontiguousarray(codes))
    found = call.view.launch.products.numbers(t, np.ascontiguousarray(codes))
    return found.negated() if negate else found


def _in_shared(call: Call, cta: Cta, which: str, d: shared.Descriptor, t: str, mn: int, k: int, major: bool) -> Array:
    """Elements of a matrix in shared memory: mn x k, one to an array element."""
    memory = np.frombuffer(cta.shared, np.uint8)
    try:
        found = shared.matrix(memory, d, mn, k, BITS[t], mn_major=major)
    except DescriptorError as problem:
        raise call.view.trap(f"{which}-desc: {problem}", call.lane) from None
    if t in NARROW:
        return unpack_containers(NARROW[t], np.ascontiguousarray(found))
    return unpack_fours(found) if t == "fp4" else found


def _factor_b(call: Call, cta: Cta, columns: int) -> Array:
    shape = call.said.shape
    return _in_shared(call, cta, "b", call.said.b, shape.btype, columns, shape.k, shape.b_mn_major)


def _factor_a(call: Call, cta: Cta, part: int) -> Array | Numbers:
    """The rows of A that a CTA has, for one stretch of D's columns."""
    shape = call.said.shape
    if isinstance(call.said.a, int):
        codes = _in_tensor(call, cta, call.said.a, part)
    else:
        codes = _in_shared(
            call, cta, "a", call.said.a, shape.atype, call.said.path.rows, call.said.stored, shape.a_mn_major
        )
    if call.said.variant.sparse:
        codes = sparse.expand(codes, sparse.columns(shape.atype, _metadata(call, cta, part)))
    return _decoded(call, shape.atype, codes, negate=shape.negate_a)


def _in_tensor(call: Call, cta: Cta, address: int, part: int) -> Array:
    """Elements of A in tensor memory, from the lanes of their rows of D."""
    bits = BITS[call.said.shape.atype]
    words = call.said.stored * bits // 32
    origin, column = split(address)
    cells = cells_of(call.view, cta, column, words, "tcgen05.mma: A", call.lane)
    lanes = call.said.path.lane + call.said.path.step * part + origin
    if call.said.shifted:  # each row from the lane below, but for the last of 32
        lanes = np.where(lanes % 32 == 31, lanes, lanes + 1)
    found = np.ascontiguousarray(cells[lanes, column : column + words])
    if bits == 4:
        return unpack_fours(found.view(np.uint8))
    return found.view({8: np.uint8, 16: np.uint16, 32: np.uint32}[bits])


def _metadata(call: Call, cta: Cta, part: int) -> Array:
    """Nibbles of the metadata: rows x chunks (9.7.16.10.8.4)."""
    lanes, columns, bits = _metadata_cells(call)
    origin, column = split(call.said.meta)
    column += call.said.shape.selector
    width = int(columns.max()) + 1
    cells = cells_of(call.view, cta, column, width, "tcgen05.mma: metadata", call.lane)
    words = cells[lanes + call.said.path.step * part + origin, columns + column]
    nibbles: Array = (words >> bits.astype(np.uint32) & np.uint32(15)).astype(np.uint8)
    return nibbles


def _metadata_cells(call: Call) -> tuple[Array, Array, Array]:
    """Lanes, columns and bits of the metadata's nibbles, from where it begins."""
    t = call.said.shape.atype
    lanes, columns, bits = layout.metadata_places(t, call.said.path.rows, call.said.shape.k // sparse.grain_of(t).chunk)
    return 32 * (lanes // 16) + lanes % 16 if call.said.path.half else lanes, columns, bits


# --- scale factors (9.7.16.10.7) --------------------------------------------------------------------------------------


def _scaled(call: Call, cta: Cta, part: int, a: Numbers, b: Numbers, c: Array | None, some: slice) -> Array:
    """A product with block scaling, for some columns of D. Rows of D in one group of 32 lanes use the copies of the
    factors there."""
    lanes = call.said.path.lane + call.said.path.step * part
    groups = np.unique(lanes // _WARP)
    shape = call.said.shape
    rows, columns = len(a.values), len(b.values)
    bytes_a = _scale_bytes(call, cta, call.said.scale_a, rows, shape.scale_a, lanes // _WARP)
    each = [
        _scale_bytes(call, cta, call.said.scale_b, shape.n, shape.scale_b, np.full(shape.n, g))[some] for g in groups
    ]
    if all((other == each[0]).all() for other in each[1:]):
        return _scaled_product(call, a, b, c, bytes_a, each[0])
    result = np.empty((rows, columns), np.float32)
    for group, bytes_b in zip(groups, each, strict=True):
        some = lanes // _WARP == group
        addend = None if c is None else c[some]
        result[some] = _scaled_product(call, a.part(some), b, addend, bytes_a[some], bytes_b)
    return result


def _scale_bytes(call: Call, cta: Cta, address: int, count: int, first: int, groups: Array) -> Array:
    """Factors of `count` rows or columns from given groups of 32 lanes: count x factors."""
    columns, places = layout.scale_places(count, call.said.shape.factors, first)
    _, column = split(address)
    width = int(columns.max()) + 1
    cells = cells_of(call.view, cta, column, width, "tcgen05.mma: scale factors", call.lane)
    lanes = (np.arange(count) % _WARP + _WARP * groups)[:, None]
    words = cells[lanes, columns + column]
    found: Array = (words >> (8 * places).astype(np.uint32) & np.uint32(255)).astype(np.uint8)
    return found


def _scaled_product(call: Call, a: Numbers, b: Numbers, c: Array | None, bytes_a: Array, bytes_b: Array) -> Array:
    products, t = call.view.launch.products, call.said.shape.scale_type
    return products.multiply(a, b, c, call.rule, (products.scales(t, bytes_a), products.scales(t, bytes_b)))
