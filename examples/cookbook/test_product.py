"""A CuTe kernel against NumPy. Run: pytest test_product.py"""

import numpy as np
import pytest

import ptxtools

MODULE = ptxtools.load("product.ptx")


@pytest.mark.ptx(checks="memcheck,initcheck,racecheck,asynccheck")
@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 32), (64, 128, 64)])
def test_product(ptx_device, m, n, k):
    chance = np.random.default_rng(m)
    a, b = (chance.integers(-4, 5, (rows, k)).astype(np.float16) for rows in (m, n))
    c = np.zeros((m, n), np.float32)
    ptx_device.launch(MODULE["product"], (m // 64, n // 64), 128, [a, b, c, m, n, k])
    assert (c == a.astype(np.float32) @ b.T.astype(np.float32)).all()
