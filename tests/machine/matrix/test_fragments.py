"""Each layout is a bijection, and the one that the manual prints."""

from __future__ import annotations

import pytest

from ptxtools.isa import resolve
from ptxtools.semantics import fragments
from ptxtools.semantics.fragments import Fragment
from ptxtools.semantics.products import product_of
from tests.rows import rows

from . import model

A = [(8, 4, 64), (16, 4, 64), (16, 8, 64), (16, 16, 64), (16, 4, 32), (16, 8, 32), (16, 8, 16), (16, 16, 16),
     (8, 16, 8), (16, 16, 8), (16, 32, 8), (8, 32, 4), (16, 32, 4), (16, 64, 4), (8, 128, 1), (16, 128, 1),
     (16, 256, 1)]  # fmt: skip
TALL = [(32, 16, 16), (32, 16, 8), (8, 16, 16)]  # of wmma
B = [(4, 8, 64), (16, 8, 64), (8, 8, 32), (16, 8, 16), (32, 8, 16), (32, 8, 8), (64, 8, 4), (256, 8, 1), (16, 16, 16),
     (16, 32, 16), (16, 32, 8), (8, 16, 32)]  # fmt: skip
C = [(16, 8, 32), (16, 8, 16), (8, 8, 32), (8, 8, 64), (16, 8, 64), (16, 16, 32), (16, 16, 16), (32, 8, 32),
     (32, 8, 16), (8, 32, 32), (8, 32, 16)]  # fmt: skip


def assert_bijection(parts: list[Fragment]) -> None:
    """Every bit of every register of every lane belongs to one element of one part."""
    places = [place for part in parts for row in part.places() for place in row]
    first = parts[0]
    everything = {
        (lane, register, bit)
        for lane in range(32)
        for register in range(first.registers)
        for bit in range(0, first.width, first.bits)
    }
    assert len(places) == len(set(places))
    assert set(places) == everything


@rows(("m", "k", "bits"), A + TALL)
def test_factor_a(m: int, k: int, bits: int) -> None:
    assert_bijection([fragments.factor_a(m, k, bits)])


@pytest.mark.parametrize(("k", "n", "bits"), B)
def test_factor_b(k: int, n: int, bits: int) -> None:
    assert_bijection([fragments.factor_b(k, n, bits)])


@pytest.mark.parametrize(("m", "n", "bits"), C)
def test_accumulator(m: int, n: int, bits: int) -> None:
    assert_bijection([fragments.accumulator(m, n, bits)])


@pytest.mark.parametrize("layout", ["row", "col"])
def test_four_products_of_m8n8k4(layout: str) -> None:
    assert_bijection([fragments.quad_factor_a(q, layout) for q in range(4)])
    assert_bijection([fragments.quad_factor_b(q, layout) for q in range(4)])
    for bits in (16, 32):
        assert_bijection([fragments.quad_accumulator(q, bits) for q in range(4)])


@rows(("m", "k", "bits"), A)
def test_a_is_the_manuals(m: int, k: int, bits: int) -> None:
    fragment = fragments.factor_a(m, k, bits)
    for row, places in enumerate(fragment.places()):
        for column, (lane, register, bit) in enumerate(places):
            spot = model.position_a(lane, register, bit // bits, max(1, 32 // bits), m == 16)
            assert spot == (row, column)


def test_examples_of_the_manual() -> None:
    """Formulas of 9.7.14.5.7 (m16n8k8), 9.7.14.5.8 (m16n8k16) and 9.7.14.5.1 (m8n8k4), spelled out."""
    a = fragments.factor_a(16, 16, 16)
    for lane in range(32):
        for i in range(8):
            row = lane >> 2 if i in (0, 1, 4, 5) else (lane >> 2) + 8
            column = lane % 4 * 2 + (i & 1) + (8 if i >= 4 else 0)
            assert a.place(row, column) == (lane, i // 2, 16 * (i % 2))
    quad = fragments.quad_accumulator(1, 32)
    for lane in (4, 5, 6, 7, 20, 21, 22, 23):
        for i in range(8):
            x = (lane & 1) + (i & 2)
            row = x if lane < 16 else x + 4
            column = (i & 4) + (lane & 2) + (i & 1)
            assert quad.place(row, column) == (lane, i, 0)


@pytest.mark.parametrize(
    ("bits", "k", "selectors"),
    [(16, 16, 4), (16, 32, 2), (32, 8, 4), (32, 16, 2), (8, 32, 2), (8, 64, 1), (4, 64, 2), (4, 128, 1)],
)
def test_metadata_is_used_once(bits: int, k: int, selectors: int) -> None:
    """Over all selectors every bit of the lanes' metadata describes some element; pairs of 4-bit elements share."""
    seen: list[tuple[int, int]] = []
    for selector in range(selectors):
        stored = fragments.sparse_elements(bits, 16, k, selector)
        assert len(stored) == 16 * k // 2
        seen += sorted({(s.lane, s.bit) for s in stored})
    step = 4 if bits == 32 else 2
    assert sorted(seen) == [(lane, bit) for lane in range(32) for bit in range(0, 32, step)]


def test_register_counts_agree_with_the_instruction_tables() -> None:
    """The operand lists of the instruction set and the layouts count alike."""
    for text in (
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32",
        "mma.sync.aligned.m8n8k4.col.row.f32.f16.f16.f16", "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64",
        "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::f8f6f4.f16.e2m1.e3m2.f16",
        "wmma.mma.sync.aligned.row.col.m8n32k16.s32.u8.u8.s32",
        "wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32",
        "wmma.mma.sync.aligned.row.col.m32n8k16.f32.bf16.bf16.f32",
    ):  # fmt: skip
        part = product_of(text).parts[0]
        counts = [spec.vector or 1 for spec in resolve(text).operands[:4]]
        assert counts == [f.registers for f in (part.d, part.a, part.b, part.c)], text
