"""The benchmark kernels, as compiled by nvcc: NumPy's results, on both engines, from text and from containers."""

from __future__ import annotations

from typing import Any

import kernels
import numpy as np
import pytest

import ptxtools
from tests.rows import rows


def launch(case: kernels.Case, form: str = "text", **device: Any) -> ptxtools.RunResult:
    module = ptxtools.load(case.path)
    if form == "container":
        module = ptxtools.loads(ptxtools.assemble([module]))
    result = ptxtools.Device(**device).launch(module[case.name], case.grid, case.block, case.args)
    case.check(case.args[case.output])
    return result


@rows("form", ["text", "container"], share=6)
@pytest.mark.parametrize("engine", ["native", "reference"])
@rows("name", kernels.SMALL)
def test_results_are_those_of_numpy(name: str, engine: str, form: str) -> None:
    result = launch(kernels.SMALL[name](), form, engine=engine)
    assert result.instructions > 0 and result.seconds > 0


@pytest.mark.share(8)
@pytest.mark.parametrize("name", kernels.ALL)
def test_results_at_full_size(name: str) -> None:
    launch(kernels.ALL[name]())


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_do_not_depend_on_the_number_of_workers(threads: int) -> None:
    launch(kernels.branchy(1 << 14), threads=threads)


def test_the_check_can_fail() -> None:
    case = kernels.vecadd(256)
    case.expected = case.expected + np.float32(1)
    with pytest.raises(AssertionError):
        launch(case)
