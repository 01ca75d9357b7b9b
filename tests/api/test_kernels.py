"""The benchmark kernels, as compiled by nvcc: NumPy's results, on both engines, from text and from containers."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import ptxtools

sys.path.insert(0, str(Path(__file__).parent))
from kernels import KERNELS, PTX


@pytest.mark.parametrize("form", ["text", "container"])
@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("name", KERNELS)
def test_results_are_those_of_numpy(name: str, engine: str, form: str) -> None:
    module = ptxtools.load(PTX / f"{name}.ptx")
    if form == "container":
        module = ptxtools.loads(ptxtools.assemble([module]))
    run = KERNELS[name](engine == "reference")
    device = ptxtools.Device(engine=engine)
    result = device.launch(module[name], run.grid, run.block, run.args)
    if run.rtol:
        np.testing.assert_allclose(run.out, run.expected, rtol=run.rtol, atol=run.rtol)
    else:
        np.testing.assert_array_equal(run.out, run.expected)
    assert result.instructions > 0 and result.seconds > 0


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_do_not_depend_on_the_number_of_workers(threads: int) -> None:
    module = ptxtools.load(PTX / "branchy.ptx")
    run = KERNELS["branchy"](False)
    ptxtools.Device(threads=threads).launch(module["branchy"], run.grid, run.block, run.args)
    np.testing.assert_array_equal(run.out, run.expected)
