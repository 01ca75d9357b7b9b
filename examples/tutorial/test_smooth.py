"""The kernel against NumPy, for many lengths; whatever the checkers find fails the test, too."""

import numpy as np
import pytest

import ptxtools

MODULE = ptxtools.load("fixed.ptx")


@pytest.mark.ptx(checks="memcheck,initcheck,racecheck")
@pytest.mark.parametrize("n", [1, 128, 500])
def test_smooth(ptx_device, n):
    x = np.random.default_rng(n).random(n, np.float32)
    out = np.zeros(n, np.float32)
    ptx_device.launch(MODULE["smooth"], grid=-(-n // 128), block=128, args=[x, out, n])
    around = np.concatenate([[0], x, [0]]).astype(np.float32)
    assert np.allclose(out, (around[:-2] + around[1:-1] + around[2:]) / 3)
