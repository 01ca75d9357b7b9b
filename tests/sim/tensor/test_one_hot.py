"""wgmma and tcgen05.mma on single elements: one matrix holds a single one, the other a row or column of index codes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from . import test_mma, test_wgmma

Matrix = Callable[[np.random.Generator, str, int, int], tuple[np.ndarray, np.ndarray]]


def hot(make: Matrix, which: str, k: int) -> Matrix:
    """In place of a file's `matrix`, which makes A first and then B: 1 to 3 along column k, or a one in it."""
    names = iter("ab")

    def matrix(rng: np.random.Generator, t: str, rows: int, depth: int) -> tuple[np.ndarray, np.ndarray]:
        values = np.zeros((rows, depth))
        if next(names) == which:
            values[k % rows, k % depth] = 1
        else:
            values[:, k % depth] = np.arange(rows) % 3 + 1
        drawn, codes = make(np.random.default_rng(0), t, 256, depth)
        code = {value: codes[drawn == value][0] for value in (0.0, 1.0, 2.0, 3.0)}
        return values, np.vectorize(code.__getitem__, [codes.dtype])(values).astype(codes.dtype)

    return matrix


@pytest.mark.share(8)
@pytest.mark.parametrize("which", ["a", "b"])
@pytest.mark.parametrize(("t", "options"), [
    ("f16", {}), ("f16", {"mode_a": "64", "mode_b": "32"}), ("bf16", {"trans_a": True, "trans_b": True}),
    ("tf32", {"mode_a": "none", "mode_b": "64"}), ("e4m3", {}), ("e5m2", {"registers": True}),
    ("s8", {"dtype": "s32"}), ("f16", {"registers": True, "dtype": "f16"}),
])  # fmt: skip
def test_warpgroup(monkeypatch: pytest.MonkeyPatch, t: str, options: dict[str, object], which: str) -> None:
    for k in range(0, 64, 3):
        monkeypatch.setattr(test_wgmma, "matrix", hot(_WGMMA, which, k))
        test_wgmma.product(t, 16, **options)  # type: ignore[arg-type]


@pytest.mark.share(8)
@pytest.mark.parametrize("which", ["a", "b"])
@pytest.mark.parametrize(("kind", "t", "options"), [
    ("f16", "f16", {}), ("f16", "bf16", {"a_major": True, "b_major": True}), ("tf32", "tf32", {"mode": "64"}),
    ("f8f6f4", "e4m3", {"m": 64}), ("f8f6f4", "e2m1", {}), ("i8", "s8", {"dtype": "s32", "mode": "32"}),
    ("f16", "f16", {"a_tensor": True}), ("f16", "f16", {"m": 256, "ctas": 2}),
    ("f16", "f16", {"m": 32, "n": 64, "stationary": True}),
])  # fmt: skip
def test_fifth_generation(
    monkeypatch: pytest.MonkeyPatch, kind: str, t: str, options: dict[str, object], which: str
) -> None:
    for k in range(0, 32, 5):
        monkeypatch.setattr(test_mma, "matrix", hot(_TCGEN05, which, k))
        case = test_mma.Product(kind, t, **options)  # type: ignore[arg-type]
        np.testing.assert_array_equal(case.run(), case.dense @ case.b.T + case.c)


_WGMMA, _TCGEN05 = test_wgmma.matrix, test_mma.matrix
