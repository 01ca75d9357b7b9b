"""Inputs and expected results of the pipeline cases: `python testdata/pipelines/make_data.py`.

Products are made in f64; the tolerance of a case bounds every order of additions in f32 that are cut off, its `rtol`
is one unit in the last place of f16.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent


def make(name: str, m: int, n: int, k: int, *, transposed: bool) -> None:
    """a.npy, b.npy (K x N, or N x K if transposed) and c.expect.npy; says what `atol` has to be."""
    generator = np.random.default_rng(m + n + k)
    a = generator.standard_normal((m, k)).astype(np.float16)
    b = generator.standard_normal((n, k) if transposed else (k, n)).astype(np.float16)
    right = (b.T if transposed else b).astype(np.float64)
    np.save(HERE / name / "a.npy", a)
    np.save(HERE / name / "b.npy", b)
    np.save(HERE / name / "c.expect.npy", (a.astype(np.float64) @ right).astype(np.float16))
    print(name, "atol =", (k + 1) * 2.0**-23 * float((np.abs(a.astype(np.float64)) @ np.abs(right)).max()))


make("wgmma_specialised_sm90", 168, 200, 208, transposed=False)
make("tcgen05_pair_sm100", 264, 136, 208, transposed=True)
