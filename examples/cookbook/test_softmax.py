"""A Triton kernel against NumPy, as softmax.py compiled it. Run: pytest test_softmax.py"""

import numpy as np
import pytest

import ptxtools

MODULE = ptxtools.load("softmax.ptx")


@pytest.mark.ptx(checks="memcheck,initcheck,racecheck")
@pytest.mark.parametrize("columns", [1, 100, 256])
def test_softmax(ptx_device, columns):
    x = np.random.default_rng(columns).normal(size=(3, columns)).astype(np.float32)
    out = np.zeros_like(x)
    ptx_device.launch(MODULE["softmax"], grid=3, block=128, shared=16, args=[x, out, columns, None, None])
    powers = np.exp(x - x.max(1, keepdims=True))
    assert np.allclose(out, powers / powers.sum(1, keepdims=True), rtol=1e-5)
