"""Observers are told of the work of tensor cores, whoever does it, and whether it completes late or at once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from ptxtools.machine.observers import Observer

from . import kernels
from .test_wgmma import product

ENGINES = ("native", "reference")


class Work(Observer):
    def __init__(self) -> None:
        self.issues: list[tuple[str, int, set[tuple[bool, str]]]] = []
        self.done: list[str] = []
        self.open: set[Any] = set()

    def issued(self, claim: Any) -> None:
        self.issues.append((claim.text, claim.view.warp, {(span.tensor, span.kind) for span in claim.spans}))
        self.open.add(claim)

    def completed(self, claim: Any) -> None:
        self.done.append(claim.text)
        self.open.remove(claim)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("options", [{}, {"checks": "asynccheck"}, {"seed": 1}], ids=["at once", "late", "shuffled"])
def test_each_product_of_each_warp(engine: str, options: dict[str, Any]) -> None:
    work = Work()
    product("f16", 16, engine=engine, observers=[work], **options)
    assert Counter(work.issues and [issue[:2] for issue in work.issues]) == {
        ("wgmma.mma_async", warp): 2 for warp in range(4)
    }  # fmt: skip
    assert all(spans == {(False, "read")} for _, _, spans in work.issues)
    assert len(work.done) == 8 and not work.open


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("checks", ["", "asynccheck"])
def test_tensor_memory(engine: str, checks: str) -> None:
    work = Work()
    cells = np.arange(128 * 64, dtype=np.uint32).reshape(1, 128, 64)
    shared = np.zeros((1, 2048), np.uint8)
    found = kernels.tcgen05("", shared, cells, columns=64, engine=engine, observers=[work], checks=checks)
    np.testing.assert_array_equal(found, cells)
    counts = Counter((text, *spans) for text, _, spans in work.issues)
    assert counts == {
        ("tcgen05.st", (True, "write")): 8, ("tcgen05.ld", (True, "read")): 8, ("tcgen05.dealloc", (True, "write")): 1,
        ("tcgen05.alloc", (False, "write")): 1,
    }  # fmt: skip
    assert len(work.done) == 18 and not work.open
