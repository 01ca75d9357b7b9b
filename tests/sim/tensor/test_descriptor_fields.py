"""Every value of every field of every descriptor: it has a meaning, or the error names the field.

The tables are the manual's (9.7.15.5.1.2.2, 9.7.16.4.1, tables 42 to 44 of 9.7.16.4.2), written once more; together
their fields are all bits of the descriptor.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from ptxtools.isa.descriptors import Variant, decode
from ptxtools.sim.tensor import shared


@dataclass(frozen=True)
class Field:
    """Bits, the words by which an error calls them, and the values that mean something."""

    low: int
    high: int
    name: str
    legal: frozenset[int]

    @property
    def values(self) -> range:
        return range(1 << self.high - self.low + 1)

    def put(self, into: int, value: int) -> int:
        mask = ((1 << self.high - self.low + 1) - 1) << self.low
        return into & ~mask | value << self.low


def field(low: int, high: int, name: str, *legal: int) -> Field:
    """No legal values named: all are."""
    return Field(low, high, name, frozenset(legal or range(1 << high - low + 1)))


def reserved(low: int, high: int) -> Field:
    return Field(low, high, f"bit {low} is" if low == high else f"bits {low}-{high} are", frozenset({0}))


def covers_all(fields: list[Field], bits: int) -> bool:
    return sorted(bit for f in fields for bit in range(f.low, f.high + 1)) == list(range(bits))


# --- instruction descriptors ------------------------------------------------------------------------------------------

FLOATS = (0, 1, 3, 4, 5)
TYPES = {"tf32": (2,), "f16": (0,), "f8f6f4": FLOATS, "i8": (0, 1), "mxf8f6f4": FLOATS, "mxf4": (1,), "mxf4nvf4": (1,)}
RESULTS = {"tf32": (1,), "f16": (0, 1), "f8f6f4": (0, 1), "i8": (2,)}


def columns(kind: str, ctas: int, *, sparse: bool, stationary: bool) -> tuple[int, ...]:
    """N / 8 (table 39)."""
    if stationary:
        return (8, 16) if sparse else (8, 16, 32)
    if kind == "i8":
        return tuple(range(4, 33, 4)) if ctas == 2 else (1, 2, 3, 4, *range(6, 33, 2))
    return tuple(range(ctas, 33, ctas))


def rows(kind: str, ctas: int, *, sparse: bool, stationary: bool) -> tuple[int, ...]:
    """M (table 39)."""
    if stationary:
        return 32, 64, 128
    if kind in RESULTS:
        return (64, 128) if ctas == 1 else (128, 256)
    return (128,) if ctas == 1 else (256,) if sparse else (128, 256)


def instruction_fields(v: Variant) -> list[Field]:
    kind, how = v.kind, {"sparse": v.sparse, "stationary": v.stationary}
    n = field(17, 22, "N (bits 17-22)", *columns(kind, v.ctas, **how))
    m = rows(kind, v.ctas, **how)
    sparsity = field(2, 2, "sparsity (bit 2)", int(v.sparse))
    types = TYPES[kind]
    signs = (0,) if kind == "i8" else (0, 1)
    if kind in RESULTS:
        selects = v.sparse and kind in ("tf32", "f16")
        return [
            field(0, 1, "bits 0-1 are") if selects else reserved(0, 1), sparsity,
            field(3, 3, "bit 3 is", *((0, 1) if kind == "i8" else (0,))),
            field(4, 5, "dtype (bits 4-5)", *RESULTS[kind]), reserved(6, 6),
            field(7, 9, "atype (bits 7-9)", *types), field(10, 12, "btype (bits 10-12)", *types),
            field(13, 13, "negate (bits 13-14)", *signs), field(14, 14, "negate (bits 13-14)", *signs),
            field(15, 15, "transpose", 0, 1), field(16, 16, "transpose", 0, 1), n, reserved(23, 23),
            field(24, 28, "M (bits 24-28)", *(rows // 16 for rows in m)), reserved(29, 29),
            field(30, 31, "bits 30-31 are", *((0, 1, 2, 3) if v.stationary else (0,))),
        ]  # fmt: skip
    narrow = kind != "mxf8f6f4"
    step = {"": 2, "block32": 2, "block16": 4}[v.block] if narrow else 1
    ids = {1: (0, 1, 2, 3), 2: (0, 2), 4: (0,)}[step]
    scales = (0, 1) if kind == "mxf4nvf4" and step == 4 else (1,)
    turned = (0,) if narrow else (0, 1)
    last = [field(31, 31, "K dimension (bit 31)", 0)] if narrow else [reserved(31, 31)]
    middle = [field(10, 11, "btype (bits 10-11)", *types), reserved(12, 12)]
    return [
        reserved(0, 1), sparsity, reserved(3, 3), field(4, 5, "B scale factor ID (bits 4-5)", *ids), reserved(6, 6),
        field(7, 9, "atype (bits 7-9)", *types),
        *(middle if narrow else [field(10, 12, "btype (bits 10-12)", *types)]),
        field(13, 13, "negate", 0, 1), field(14, 14, "negate", 0, 1),
        field(15, 15, "transpose (bits 15-16)", *turned), field(16, 16, "transpose (bits 15-16)", *turned), n,
        field(23, 23, "scale matrix type (bit 23)", *scales), reserved(24, 26),
        field(27, 28, "M (bits 27-28)", *(rows // 128 for rows in m)),
        field(29, 30, "A scale factor ID (bits 29-30)", *ids), *last,
    ]  # fmt: skip


VARIANTS = [
    *(Variant(kind, ctas, sparse, False) for kind in RESULTS for ctas in (1, 2) for sparse in (False, True)),
    *(Variant(kind, 1, sparse, True) for kind in RESULTS for sparse in (False, True)),
    *(Variant(kind, ctas, sparse, False, block)
      for kind, blocks in (("mxf8f6f4", ("",)), ("mxf4", ("", "block32")), ("mxf4nvf4", ("block32", "block16")))
      for block in blocks for ctas in (1, 2) for sparse in (False, True)),
]  # fmt: skip


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: f"{v.kind}-{v.ctas}-{v.sparse}-{v.stationary}-{v.block}")
def test_instruction_descriptors(variant: Variant) -> None:
    fields = instruction_fields(variant)
    assert covers_all(fields, 32)
    legal = 0
    for f in fields:  # values that go together: the first types, and the largest N and M
        legal = f.put(legal, (max if f.name.startswith(("N", "M", "dtype")) else min)(f.legal))
    decode(legal, variant)
    wrong = 0
    for f in fields:
        for value in f.values:
            code = f.put(legal, value)
            if value in f.legal:
                decode(code, variant)
                continue
            wrong += 1
            with pytest.raises(shared.DescriptorError) as error:
                decode(code, variant)
            assert "instruction descriptor: " in str(error.value)
            assert f"{f.name} " in str(error.value), (f, value)
    assert wrong > 50


# --- matrix descriptors -----------------------------------------------------------------------------------------------

PLACES = [field(0, 13, "start"), field(16, 29, "leading"), field(32, 45, "stride")]
WARPGROUP = [
    *PLACES, reserved(14, 15), reserved(30, 31), reserved(46, 48), field(49, 51, "base offset (bits 49-51)"),
    reserved(52, 61), field(62, 63, "swizzle"),
]  # fmt: skip
TENSOR = [
    *PLACES, reserved(14, 15), reserved(30, 31), field(46, 48, "bits 46-48 are", 1),
    field(49, 51, "base offset (bits 49-51)"), field(52, 52, "leading dimension stride mode (bit 52)", 0),
    reserved(53, 60), field(61, 63, "swizzling mode (bits 61-63)", 0, 1, 2, 4, 6),
]  # fmt: skip


@pytest.mark.parametrize("which", ["wgmma", "tcgen05"])
def test_matrix_descriptors(which: str) -> None:
    fields, read, swizzled = {
        "wgmma": (WARPGROUP, shared.warpgroup_descriptor, 1 << 62),
        "tcgen05": (TENSOR, shared.tensor_descriptor, 1 << 46 | 2 << 61),
    }[which]
    assert covers_all(fields, 64)
    for f in fields:
        for value in f.values if len(f.values) <= 1024 else (0, 1, f.values[-1]):
            code = f.put(swizzled, value)
            if value in f.legal:
                read(code)
                continue
            with pytest.raises(shared.DescriptorError) as error:
                read(code)
            assert f"matrix descriptor: {f.name} " in str(error.value), (f, value)
    for base in range(1, 8):  # a base offset goes with a swizzle
        plain = base << 49 | (1 << 46 if which == "tcgen05" else 0)
        with pytest.raises(shared.DescriptorError, match=rf"base offset \(bits 49-51\) {base} without swizzling"):
            read(plain)
    assert shared.tensor_descriptor(1 << 46 | 1 << 52, absolute_allowed=True).absolute
