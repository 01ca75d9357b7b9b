"""Grids of a million CTAs, and as many resident threads as a large chip has, in bounded memory (`bench/scale.py`)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

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


@pytest.mark.parametrize("arguments", [
    ("resident", "132"), ("resident", "132", "reference"), ("persistent", "132", "20"),
    ("persistent", "132", "3", "reference"),
])  # fmt: skip
def test_all_threads_of_132_sms_are_resident(arguments: tuple[str, ...]) -> None:
    """270,336 threads meet at barriers of the whole grid; the script checks what they compute."""
    assert script().measure(*arguments)["megabytes"] < 4096
