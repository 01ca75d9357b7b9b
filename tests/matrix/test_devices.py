"""Which numerics a device has: those of its target, or IEEE arithmetic where that is asked for."""

from __future__ import annotations

import numpy as np
import pytest

import ptxtools

from .harness import product_kernel

TEXT = product_kernel("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", (4, 4, 2, 4), target="sm_80")
#: 2**-24, the least f16.
TINY = 0x0001


def result(**options: str) -> float:
    """1 + eight times 2**-24, with upper rows and columns 8 and up of A zero."""
    inputs = np.zeros((10, 32), np.uint32)
    inputs[0] = 0x3C00_3C00  # a(row, 2t), a(row, 2t + 1) = 1
    inputs[4] = TINY << 16 | TINY
    inputs[6:] = np.float32(1).view(np.uint32)
    out = np.zeros((4, 32), np.uint32)
    module = ptxtools.loads(TEXT)
    ptxtools.Device(**options).launch(module["k"], grid=1, block=32, args=[inputs, out])
    return float(out[0, 0].view(np.float32))


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_chip_and_ieee(engine: str) -> None:
    """Eight products of 2**-24: a chip adds them exactly; a chain in f32 loses each as a tie to even."""
    assert result(engine=engine) == 1 + 2.0**-21
    assert result(engine=engine, numerics="ieee") == 1.0


def test_numerics_that_do_not_exist() -> None:
    with pytest.raises(ptxtools.LaunchError, match="numerics"):
        ptxtools.Device(numerics="exact")
