"""Each element of A and B by itself: one matrix holds a single one, the other a row or column of index codes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.rows import rows

from .harness import run
from .test_products import FLOATS, INTEGERS, Form, assert_equal, contained, expected, integer_product

TEXTS = [*INTEGERS, *(text for text, _ in FLOATS)]
#: Of long rows every fifth element is tried, which meets all registers, lanes and places in a register.
_MOST = 64
#: The pattern of 1, and a step to the next of four patterns that differ.
_ONE = {"f16": (0x3C00, 0x100), "bf16": (0x3F80, 0x20), "tf32": (0x3F800000, 0x200000), "e4m3": (0x38, 2),
        "e5m2": (0x3C, 1), "e3m2": (0x0C, 1), "e2m3": (0x08, 2), "e2m1": (0x02, 1)}  # fmt: skip


def codes(t: str, count: int) -> np.ndarray:
    """`count` patterns of positive numbers, different ones as long as the type has them; the first is a one."""
    if t == "b1":
        return np.ones(count, np.uint64)
    if t[0] in "su":
        return np.arange(count, dtype=np.uint64) % 7 + 1
    one, step = _ONE[t]
    return np.uint64(one) + np.arange(count, dtype=np.uint64) % 4 * np.uint64(step)


def pairs(form: Form) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """A (m x k) and B (k x n), zero but for what is tried."""
    for k in range(0, form.k, 1 if form.k <= _MOST else 5):
        for hot in "ab":
            a, b = np.zeros((form.m, form.k), np.uint64), np.zeros((form.k, form.n), np.uint64)
            if hot == "b":
                a[:, k], b[k, k % form.n] = codes(form.atype, form.m), codes(form.btype, 1)[0]
            else:
                a[k % form.m, k], b[k] = codes(form.atype, 1)[0], codes(form.btype, form.n)
            yield a, b


@rows("text", TEXTS, share=8)
def test_every_element_has_its_place(text: str) -> None:
    """All pairs are CTAs of one launch, and every eighth is one of another on the reference engine."""
    form, rng = Form(text), np.random.default_rng(0)
    kernel, c = form.kernel(), np.zeros((form.m, form.n), np.uint64)
    integers = form.dtype == "s32"
    tried = list(pairs(form))
    inputs = np.array([
        np.concatenate([
            form.pack(contained(rng, a, form.atype), "a"), form.pack(contained(rng, b, form.btype), "b"),
            form.pack_c(c, form.nc, form.ctype),
        ]) for a, b in tried
    ]).astype(np.uint32)  # fmt: skip
    wanted = [integer_product(form, a, b, c) if integers else expected(form, a, b, c, "hopper") for a, b in tried]
    assert all(np.count_nonzero(one) >= min(form.m, form.n) for one in wanted)
    for engine, step in (("native", 1), ("reference", 8)):
        found = form.unpack_d(run(kernel, inputs[::step], form.nd, engine, "hopper"))
        for number, (got, one) in enumerate(zip(found, wanted[::step], strict=True)):
            assert_equal(got, one, f"{text}, pair {step * number} on the {engine} engine")
