"""Mistakes in kernels that use cooperative groups, libcu++ and CUB (testdata/checkers/library_bugs.cu), as nvcc has
compiled them: each is reported by the right checker at a line of its source; without them all are silent."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools.launch.checked import reported

DATA = Path(__file__).parents[2] / "testdata" / "checkers"


def _kernels() -> dict[str, tuple[str, dict[str, int], set[int]]]:
    """By name the checker, the launch, and the numbers of lines that are marked."""
    found: dict[str, tuple[str, dict[str, int], set[int]]] = {}
    lines: set[int] = set()
    for number, line in enumerate((DATA / "library_bugs.cu").read_text().splitlines(), 1):
        if match := re.fullmatch(r"// == (\w+): (\w+), (.*)", line):
            keys = dict(key.split("=") for key in match[3].split())
            lines = set()
            found[match[1]] = match[2], {name: int(value) for name, value in keys.items()}, lines
        elif line.endswith("//!"):
            lines.add(number)
    return found


KERNELS = _kernels()


@pytest.fixture(scope="module", params=["bug", "ok"])
def version(request: pytest.FixtureRequest) -> tuple[bool, ptxtools.Module]:
    return request.param == "bug", ptxtools.load(str(DATA / f"library_{request.param}.ptx"))


def _found(kernel: Any, keys: dict[str, int]) -> list[Any]:
    device = ptxtools.Device("sm_90", checks="all")
    arguments = [device.upload(np.zeros(256, np.uint32)), device.upload(np.ones(256, np.uint32))]
    try:
        return device.launch(kernel, keys["grid"], keys["block"], arguments, cluster=keys.get("cluster")).reports
    except ptxtools.Trap as trap:
        return reported(trap)


def _lines(report: Any) -> set[int]:
    """Of the source, that a report names."""
    return {int(number) for number in re.findall(r"library_bugs\.cu:(\d+)", str(report))}


@pytest.mark.parametrize("name", KERNELS)
def test_mistakes_are_reported_at_lines_of_the_source(name: str, version: tuple[bool, ptxtools.Module]) -> None:
    has_bug, module = version
    checker, keys, lines = KERNELS[name]
    found = _found(module[name], keys)
    if has_bug:
        assert any(checker in one.checkers and lines & _lines(one) for one in found), found
    else:
        assert not found
