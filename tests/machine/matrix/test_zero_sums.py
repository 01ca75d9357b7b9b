"""Sums in which something is zero, where published models differ (docs/numerics.md, "What is zero")."""

from __future__ import annotations

import numpy as np
import pytest

from .harness import ENGINES, run
from .test_products import Form


def product(
    form: Form,
    engine: str,
    chip: str,
    a: np.ndarray,
    b: np.ndarray,
    c: int,
    more: str = "",
    words: tuple[int, ...] = (),
) -> set[int]:
    """The elements of D. a: a row, b: a column, c: an element, which all of its matrix are; words: further operands."""
    inputs = [form.pack(np.tile(a.astype(np.uint32), (form.m, 1)), "a")]
    inputs.append(form.pack(np.tile(b.astype(np.uint32)[:, None], (1, form.n)), "b"))
    inputs.append(form.pack_c(np.full((form.m, form.n), c, np.uint64), form.nc, form.ctype))
    inputs += [np.full((1, 32), word, np.uint32) for word in words]
    stacked = np.concatenate(inputs).astype(np.uint32)
    return set(form.unpack_d(run(form.kernel(more, len(words)), stacked, form.nd, engine, chip)).ravel().tolist())


@pytest.mark.parametrize("engine", ENGINES)
def test_the_scales_of_a_group_count_though_its_sum_is_zero(engine: str) -> None:
    """1 - 1 with a scale of 1 stands above 2**-40, which lies below the 35 bits that are kept."""
    form = Form("mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0")
    a, b = np.zeros(64, np.uint32), np.zeros(64, np.uint32)
    a[[0, 1, 32]], b[[0, 1, 32]] = [2, 0xA, 2], 2
    scales = ", %e0, {0, 0}, %e1, {0, 0}"
    assert product(form, engine, "rtx_blackwell", a, b, 0, scales, (127 | 87 << 8, 127 | 127 << 8)) == {0}
    assert product(form, engine, "rtx_blackwell", a, b, 0, scales, (127 | 93 << 8, 127 | 127 << 8)) == {0x2E80_0000}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("dtype", "a", "b", "wanted"), [
    ("f16", 0x8001, 0x0001, 0x8000), ("f16", 0x0001, 0x0001, 0), ("f32", 0x8000, 0x3C00, 0),
])  # fmt: skip
def test_the_sign_of_what_underflows_stays_and_a_sum_of_zero_is_positive(
    dtype: str, a: int, b: int, wanted: int, engine: str
) -> None:
    form = Form(f"mma.sync.aligned.m16n8k16.row.col.{dtype}.f16.f16.{dtype}")
    assert product(form, engine, "hopper", np.full(16, a), np.full(16, b), 0) == {wanted}


@pytest.mark.parametrize("engine", ENGINES)
def test_products_of_zero_leave_a_tiny_addend_alone(engine: str) -> None:
    form = Form("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    assert product(form, engine, "hopper", np.zeros(16), np.full(16, 0x7800), 0x1FF) == {0x1FF}
