"""Small kernels on either engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxtools import native, reference
from ptxtools.machine.launch import Launch
from tests.program.harness import BASE, Memory, launch_of

ENGINES = {"native": native.run, "reference": reference.run}
both = pytest.mark.parametrize("engine", ENGINES)

__all__ = ["BASE", "ENGINES", "Memory", "both", "go", "launch_of", "output"]


def go(engine: str, launch: Launch) -> None:
    ENGINES[engine](launch)


def output(engine: str, text: str, count: int, *, dtype: Any = np.uint32, **shape: Any) -> list[Any]:
    """What a kernel with one pointer parameter leaves in an array of `count` elements."""
    memory = Memory()
    out = memory.put(np.zeros(count, dtype))
    launch = launch_of(text, memory, [out], **shape)
    go(engine, launch)
    return memory.get(out, dtype, count).tolist()
