"""What asynccheck is told that tcgen05.mma reads: all that stores to tensor memory could still be changing."""

from __future__ import annotations

from typing import Any

import pytest

from ptxtools.sim.tensor import mma

from .test_mma import Product, scale_words


@pytest.mark.parametrize(("sparse", "n", "ctas"), [(True, 32, 1), (False, 64, 1), (False, 160, 2)])
def test_scale_factors_and_metadata(sparse: bool, n: int, ctas: int, monkeypatch: Any) -> None:
    told: list[Any] = []

    def issue(view: Any, work: Any, text: str, lane: int, spans: Any, cells: Any, matrices: Any) -> None:
        told.extend(spans())
        work()

    monkeypatch.setattr(mma, "issue", issue)
    case = Product("mxf8f6f4", "e4m3", "e4m3", m=128 * ctas, n=n, ctas=ctas, sparse=sparse)
    scale_words(case, 1, 0, 0)
    case.run(more=1 << 23, modifiers=".block_scale.scale_vec::1X", scales="[%q4], [%q5], ")
    everywhere = (1 << 128) - 1
    read = {(s.owner.rank, s.start, s.end, s.lanes) for s in told if s.tensor and s.kind == "read"}
    wanted = set()
    for cta in range(ctas):
        wanted |= {(cta, 320, 324, everywhere), (cta, 340, 340 + -(-n // 32), everywhere)}
        wanted.add((cta, 0, n, everywhere))  # what is added to
        if sparse:
            wanted.add((cta, 300, 301 + (case.k // 4 - 1) // 8, everywhere))
    assert read == wanted
