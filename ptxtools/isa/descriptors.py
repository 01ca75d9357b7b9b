"""Descriptors: the one of tcgen05.mma, with shapes and types of its matrices (9.7.16.4.2), checked field by field; and
which bits of a matrix descriptor have to be 0 (9.7.15.5.1.2.2, 9.7.16.4.1)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ptxtools.records import dataclass

if TYPE_CHECKING:
    from .opcode import Opcode


class DescriptorError(ValueError):
    """A field of a descriptor has no meaning; the text names the field."""


#: Bits of matrix descriptors that are 0, the last one included: of wgmma, of tcgen05.
WARPGROUP_ZEROS = ((14, 15), (30, 31), (46, 48), (52, 61))
TENSOR_ZEROS = ((14, 15), (30, 31), (53, 60))
#: Bits of a tcgen05 descriptor that are always 0b001, and the codes of its swizzle in bits 61 to 63.
TENSOR_MARK = (46, 48)
TENSOR_SWIZZLES = (0, 1, 2, 4, 6)

_FLOATS = {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}
#: Element types by kind and the code in the descriptor (tables 42 to 44).
_ELEMENTS = {
    "tf32": {2: "tf32"}, "f16": {0: "f16", 1: "bf16"}, "f8f6f4": _FLOATS, "mxf8f6f4": _FLOATS, "i8": {0: "u8", 1: "s8"},
    "mxf4": {1: "fp4"}, "mxf4nvf4": {1: "fp4"},
}  # fmt: skip
_RESULTS = {"tf32": {1: "f32"}, "f16": {0: "f16", 1: "f32"}, "f8f6f4": {0: "f16", 1: "f32"}, "i8": {2: "s32"}}
_SCALED = ("mxf8f6f4", "mxf4", "mxf4nvf4")
#: Columns of a dense A (table 39); sparse ones have twice as many.
_DEPTH = {"tf32": 8, "f16": 16, "f8f6f4": 32, "mxf8f6f4": 32, "i8": 32, "mxf4": 64, "mxf4nvf4": 64}
#: The kinds that have such a descriptor.
KINDS = tuple(_DEPTH)


@dataclass(frozen=True)
class Variant:
    """The facts in the opcode: kind without "kind::", CTAs that take part, sparse A, weight-stationary; vectors: scale
    factors along K, 0 without scaling; wide: whether the target has K = 96."""

    kind: str
    ctas: int
    sparse: bool
    stationary: bool
    block: str = ""
    wide: bool = False


@dataclass(frozen=True)
class Shape:
    """A decoded instruction descriptor.

    a_major, b_major: whether mn is the leading dimension; scale_a, scale_b: first byte of the scale factors in their
    word; factors: scale factors along K.
    """

    m: int
    n: int
    k: int
    atype: str
    btype: str
    dtype: str
    negate_a: bool
    negate_b: bool
    a_mn_major: bool
    b_mn_major: bool
    saturate: bool
    selector: int
    scale_type: str
    scale_a: int
    scale_b: int
    factors: int
    shift: int


def variant_of(op: Opcode, *, wide: bool) -> Variant:
    """What the opcode of a tcgen05.mma says; wide: whether the target has K = 96."""
    words = op.name.split(".")
    return Variant(
        op.mods["kind"].removeprefix("kind::"), int(op.mods["cta_group"][-1]), "sp" in words, "ws" in words,
        op.mods.get("scale_vectorsize", ""), wide,
    )  # fmt: skip


@lru_cache(512)
def decode(value: int, variant: Variant) -> Shape:
    """Decode a descriptor for an instruction. Raises DescriptorError, which names the invalid field."""
    kind = variant.kind
    scaled = kind in _SCALED
    _reserved(value, variant)
    if bool(value >> 2 & 1) != variant.sparse:
        raise _wrong("sparsity (bit 2)", value >> 2 & 1, f"tcgen05.mma{'.sp' if variant.sparse else ''}")
    types = _ELEMENTS[kind]
    atype = _choice("atype (bits 7-9)", value >> 7 & 7, types, kind)
    narrow = kind in ("mxf4", "mxf4nvf4")
    btype = _choice("btype (bits 10-11)" if narrow else "btype (bits 10-12)", value >> 10 & (3 if narrow else 7),
                    types, kind)  # fmt: skip
    dtype = "f32" if scaled else _choice("dtype (bits 4-5)", value >> 4 & 3, _RESULTS[kind], kind)
    if kind == "f16" and dtype == "f16" and (atype, btype) != ("f16", "f16"):
        raise _wrong("dtype (bits 4-5)", 0, f"factors of {atype} and {btype}")
    if kind == "f16" and atype != btype:
        names = f"atype (bits 7-9) {atype} and btype (bits 10-12) {btype}"
        raise DescriptorError(f"instruction descriptor: {names} differ")
    k = _DEPTH[kind] * (2 if variant.sparse else 1)
    if narrow and value >> 31 & 1:
        if variant.sparse or not variant.wide:
            raise _wrong("K dimension (bit 31)", 1, "sparse matrices" if variant.sparse else "this target")
        k = 96
    shape = Shape(
        (value >> 27 & 3) << 7 if scaled else (value >> 24 & 31) << 4, (value >> 17 & 63) << 3, k,
        atype, btype, dtype, bool(value >> 13 & 1), bool(value >> 14 & 1), bool(value >> 15 & 1),
        bool(value >> 16 & 1), bool(value >> 3 & 1), 0 if scaled else value & 3,
        _scale_type(value, kind), value >> 29 & 3 if scaled else 0, value >> 4 & 3 if scaled else 0,
        _factors(value, variant, k), 0 if scaled or not value >> 30 else 4 << (value >> 30),
    )  # fmt: skip
    _check_shape(shape, variant)
    _check_signs(shape, variant)
    return shape


def _wrong(field: str, value: int, where: str) -> DescriptorError:
    return DescriptorError(f"instruction descriptor: {field} {value} is illegal for {where}")


def _choice(field: str, code: int, table: dict[int, str], kind: str) -> str:
    if code not in table:
        raise _wrong(field, code, f".kind::{kind}")
    return table[code]


def _reserved(value: int, variant: Variant) -> None:
    kind = variant.kind
    if kind == "mxf8f6f4":
        ranges = [(0, 1), (3, 3), (6, 6), (24, 26), (31, 31)]
    elif kind in _SCALED:
        ranges = [(0, 1), (3, 3), (6, 6), (12, 12), (24, 26)]
    else:
        ranges = [(6, 6), (23, 23), (29, 29)]
        if kind != "i8":
            ranges.append((3, 3))
        if not variant.sparse or kind not in ("tf32", "f16"):
            ranges.append((0, 1))
        if not variant.stationary:
            ranges.append((30, 31))
    for low, high in ranges:
        found = value >> low & ((1 << high - low + 1) - 1)
        if found:
            name = f"bit {low} is" if low == high else f"bits {low}-{high} are"
            raise DescriptorError(f"instruction descriptor: {name} {found:#x}; .kind::{kind} requires 0")


def _scale_type(value: int, kind: str) -> str:
    if kind not in _SCALED:
        return ""
    code = value >> 23 & 1
    if code == 0 and kind != "mxf4nvf4":
        raise _wrong("scale matrix type (bit 23)", 0, f".kind::{kind}")
    return "ue8m0" if code else "ue4m3"


def _factors(value: int, variant: Variant, k: int) -> int:
    """Scale factors along K (table 54)."""
    kind, block = variant.kind, variant.block
    if kind not in _SCALED:
        return 0
    if kind == "mxf8f6f4":
        return 1
    count = {"scale_vec::2X": 2, "scale_vec::4X": 4, "block16": 4, "block32": 2, "": 2}[block]
    if count == 2 and not value >> 23 & 1:
        raise _wrong("scale matrix type (bit 23)", 0, f".{block}")
    if k == 96:
        return 6 if count == 4 else 3
    fields = (("A scale factor ID (bits 29-30)", value >> 29 & 3), ("B scale factor ID (bits 4-5)", value >> 4 & 3))
    for field, code in fields:
        if code & (1 if count == 2 else 3):
            raise _wrong(field, code, f"{count} factors along K")
    return count


def _check_shape(shape: Shape, variant: Variant) -> None:
    """M and N (table 39), and N of transposed 8-bit B (table 50)."""
    m, n, kind = shape.m, shape.n, variant.kind
    field_m = "M (bits 27-28)" if kind in _SCALED else "M (bits 24-28)"
    if variant.stationary:
        rows: tuple[int, ...] = (32, 64, 128)
        columns = range(64, 129 if variant.sparse else 257, 64)
        fits = n in columns and n != 192
    else:
        rows = (64, 128) if variant.ctas == 1 else (128, 256)
        if kind in _SCALED:
            rows = (128,) if variant.ctas == 1 else (256,) if variant.sparse else (128, 256)
        step = 8 * variant.ctas
        if kind == "i8":
            step = 32 if variant.ctas == 2 else 8 if n <= 32 else 16
        fits = n % step == 0 and step <= n <= 256 and not (kind == "i8" and n == 40)
    where = f".kind::{kind} with .cta_group::{variant.ctas}" + (" and .ws" if variant.stationary else "")
    if m not in rows:
        raise _wrong(field_m, m, where)
    if shape.k == 96 and variant.ctas == 2 and m != 256:
        raise _wrong(field_m, m, "K = 96")
    if not fits:
        raise _wrong("N (bits 17-22)", n, where)
    if shape.b_mn_major and shape.btype not in ("tf32", "f16", "bf16") and n % (16 * variant.ctas):
        raise _wrong("N (bits 17-22)", n, "a transposed B of 8-bit elements")


def _check_signs(shape: Shape, variant: Variant) -> None:
    """Negation and transposition (table 49)."""
    kind = variant.kind
    if kind == "i8" and (shape.negate_a or shape.negate_b):
        raise _wrong("negate (bits 13-14)", 1, ".kind::i8")
    if kind in ("mxf4", "mxf4nvf4") and (shape.a_mn_major or shape.b_mn_major):
        raise _wrong("transpose (bits 15-16)", 1, f".kind::{kind}")
