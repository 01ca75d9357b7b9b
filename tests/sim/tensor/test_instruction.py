"""The instruction descriptor: what its fields mean, and that wrong ones are named."""

from __future__ import annotations

import pytest

from ptxtools.isa.descriptors import DescriptorError, Variant, decode
from tests.rows import rows

F16, TF32, F8 = Variant("f16", 1, False, False), Variant("tf32", 1, False, False), Variant("f8f6f4", 1, False, False)
I8, MX8 = Variant("i8", 1, False, False), Variant("mxf8f6f4", 1, False, False)
MX4, NV4 = Variant("mxf4", 1, False, False), Variant("mxf4nvf4", 1, False, False, "scale_vec::4X")


def plain(m: int = 128, n: int = 64, *, d: int = 1, a: int = 0, b: int = 0, more: int = 0) -> int:
    return d << 4 | a << 7 | b << 10 | n >> 3 << 17 | m >> 4 << 24 | more


def scaled(m: int = 128, n: int = 64, *, a: int = 0, b: int = 0, more: int = 1 << 23) -> int:
    return a << 7 | b << 10 | n >> 3 << 17 | m >> 7 << 27 | more


def test_fields() -> None:
    shape = decode(plain(128, 104, a=1, b=1, more=1 << 13 | 1 << 16), F16)
    assert (shape.m, shape.n, shape.k, shape.atype, shape.btype, shape.dtype) == (128, 104, 16, "bf16", "bf16", "f32")
    assert (shape.negate_a, shape.negate_b, shape.a_mn_major, shape.b_mn_major) == (True, False, False, True)
    assert decode(plain(d=0), F16).dtype == "f16"
    assert decode(plain(a=2, b=2), TF32).k == 8
    assert (decode(plain(a=5, b=3), F8).atype, decode(plain(a=5, b=3), F8).btype) == ("e2m1", "e2m3")
    whole = decode(plain(d=2, a=1, b=0, more=1 << 3), I8)
    assert (whole.atype, whole.btype, whole.dtype, whole.saturate) == ("s8", "u8", "s32", True)


def test_scale_fields() -> None:
    shape = decode(scaled(a=0, b=1, more=1 << 23 | 3 << 29 | 2 << 4), MX8)
    assert (shape.scale_type, shape.factors, shape.scale_a, shape.scale_b) == ("ue8m0", 1, 3, 2)
    shape = decode(scaled(a=1, b=1, more=0), NV4)
    assert (shape.scale_type, shape.factors, shape.k, shape.atype) == ("ue4m3", 4, 64, "fp4")
    assert decode(scaled(a=1, b=1, more=1 << 23 | 2 << 29), MX4).scale_a == 2
    wide = decode(scaled(a=1, b=1, more=1 << 23 | 1 << 31 | 1 << 29), Variant("mxf4", 1, False, False, "block32", True))
    assert (wide.k, wide.factors, wide.scale_a) == (96, 3, 1)


def test_sparse_and_stationary() -> None:
    assert decode(plain(more=1 << 2 | 1), Variant("f16", 1, True, False)).selector == 1
    assert decode(plain(more=1 << 2), Variant("f16", 1, True, False)).k == 32
    assert decode(plain(32, 256, more=2 << 30), Variant("f16", 1, False, True)).shift == 16
    assert decode(plain(256, 256), Variant("f16", 2, False, False)).m == 256


WRONG = [
    (plain(d=2), F16, "dtype (bits 4-5) 2"),
    (plain(d=0), TF32, "atype (bits 7-9) 0"),
    (plain(a=2), F16, "atype (bits 7-9) 2"),
    (plain(a=0, b=7), F8, "btype (bits 10-12) 7"),
    (plain(d=0, a=1, b=1), F16, "dtype (bits 4-5) 0"),
    (plain(a=0, b=1), F16, "atype (bits 7-9) f16 and btype (bits 10-12) bf16"),
    (plain(m=32), F16, "M (bits 24-28) 32"),
    (plain(m=256), F16, "M (bits 24-28) 256"),
    (plain(n=0), F16, "N (bits 17-22) 0"),
    (plain(n=264), F16, "N (bits 17-22) 264"),
    (plain(128, 24), Variant("f16", 2, False, False), "N (bits 17-22) 24"),
    (plain(64, 32), Variant("f16", 2, False, False), "M (bits 24-28) 64"),
    (plain(64, 192), Variant("f16", 1, False, True), "N (bits 17-22) 192"),
    (plain(64, 256, more=4), Variant("f16", 1, True, True), "N (bits 17-22) 256"),
    (plain(n=40, d=2), I8, "N (bits 17-22) 40"),
    (plain(d=2, more=1 << 14), I8, "negate"),
    (plain(more=1 << 2), F16, "sparsity (bit 2) 1"),
    (plain(), Variant("f16", 1, True, False), "sparsity (bit 2) 0"),
    (plain(more=1), F16, "bits 0-1"),
    (plain(more=1 << 3), F16, "bit 3"),
    (plain(more=1 << 6), F16, "bit 6"),
    (plain(more=1 << 23), F16, "bit 23"),
    (plain(more=1 << 29), F16, "bit 29"),
    (plain(more=1 << 30), F16, "bits 30-31"),
    (plain(n=24, more=1 << 16), F8, "N (bits 17-22) 24"),
    (scaled(more=0), MX8, "scale matrix type (bit 23) 0"),
    (scaled(more=1 << 23 | 1 << 24), MX8, "bits 24-26"),
    (scaled(m=256), MX8, "M (bits 27-28) 256"),
    (scaled(a=1, b=1, more=1 << 23 | 1 << 29), MX4, "A scale factor ID (bits 29-30) 1"),
    (scaled(a=1, b=1, more=2 << 4), NV4, "B scale factor ID (bits 4-5) 2"),
    (scaled(a=1, b=1, more=1 << 23 | 1 << 15), MX4, "transpose"),
    (scaled(a=0, b=1), MX4, "atype (bits 7-9) 0"),
    (scaled(a=1, b=1, more=1 << 23 | 1 << 31), MX4, "K dimension (bit 31)"),
    (scaled(a=1, b=1, more=0), Variant("mxf4nvf4", 1, False, False, "scale_vec::2X"), "scale matrix type"),
]


@rows(("value", "variant", "text"), WRONG)
def test_wrong_fields_are_named(value: int, variant: Variant, text: str) -> None:
    with pytest.raises(DescriptorError) as error:
        decode(value, variant)
    assert text in str(error.value)
