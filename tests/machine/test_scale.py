"""Grids of a million CTAs, and as many resident threads as a large chip has, in bounded memory (`bench/scale.py`)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxtools

SCRIPT = Path(__file__).parents[2] / "bench" / "scale.py"


def script() -> Any:
    specification = importlib.util.spec_from_file_location("scale", SCRIPT)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_a_million_ctas_need_no_more_memory_than_a_thousand() -> None:
    measure = script().measure
    small, large = (measure("grid", count)["megabytes"] for count in ("1000", "1000000"))
    assert large < small + 50


@pytest.mark.share(2)
@pytest.mark.parametrize("arguments", [
    ("resident", "132"), ("resident", "132", "reference"), ("persistent", "132", "20"),
    ("persistent", "132", "3", "reference"),
])  # fmt: skip
def test_all_threads_of_132_sms_are_resident(arguments: tuple[str, ...]) -> None:
    """270,336 threads meet at barriers of the whole grid; the script checks what they compute."""
    assert script().measure(*arguments)["megabytes"] < 4096


def test_work_that_starts_is_no_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """CTAs that begin, end and are followed by others all look alike: that is no state that comes back."""
    from ptxtools.native.loop import polling

    looks = []
    state = polling.Watch._cta_state
    monkeypatch.setattr(polling, "_SHARE", 0)  # look as often as it may
    monkeypatch.setattr(polling.Watch, "_cta_state", lambda self, at: looks.append(at) or state(self, at))
    ctas, counter = 200_000, np.zeros(1, np.uint32)
    cases = script()
    device = ptxtools.Device("sm_90", sms=132, threads=1)
    device.launch(ptxtools.loads(cases.HEAD + cases.COUNT)["k"], ctas, 64, [counter])
    assert counter[0] == ctas
    assert len(looks) < 100
