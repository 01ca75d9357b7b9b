"""Mistakes in kernels that use cooperative groups, libcu++ and CUB (testdata/checkers/library_bugs.cu, shapes_bugs.cu),
and in everyday ones (kernel_bugs.cu), as nvcc has compiled them: each is reported by the right checker at a line of its
source; without them all are silent."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools.launch.checked import reported

DATA = Path(__file__).parents[2] / "testdata" / "checkers"


def _kernels(stem: str) -> dict[str, tuple[str, dict[str, int], set[int]]]:
    """By name the checker, the launch, and the numbers of lines that are marked, in a source."""
    found: dict[str, tuple[str, dict[str, int], set[int]]] = {}
    lines: set[int] = set()
    for number, line in enumerate((DATA / f"{stem}_bugs.cu").read_text().splitlines(), 1):
        if match := re.fullmatch(r"// == (\w+): (\w+), (.*)", line):
            keys = dict(key.split("=") for key in match[3].split())
            lines = set()
            found[match[1]] = match[2], {name: int(value) for name, value in keys.items()}, lines
        elif line.endswith("//!"):
            lines.add(number)
    return found


SOURCES = {stem: _kernels(stem) for stem in ("library", "kernel", "shapes")}


@pytest.fixture(scope="module", params=["bug", "ok"])
def version(request: pytest.FixtureRequest) -> tuple[bool, dict[str, ptxtools.Module]]:
    return request.param == "bug", {stem: ptxtools.load(str(DATA / f"{stem}_{request.param}.ptx")) for stem in SOURCES}


def _found(kernel: Any, keys: dict[str, int]) -> list[Any]:
    device = ptxtools.Device("sm_90", checks="all")
    arguments = [device.upload(np.zeros(256, np.uint32)), device.upload(np.ones(256, np.uint32))]
    more = {"cluster": keys.get("cluster"), "shared": keys.get("shared", 0)}
    try:
        return device.launch(kernel, keys["grid"], keys["block"], arguments, **more).reports
    except ptxtools.Trap as trap:
        return reported(trap) + [trap] * (not trap.kind.is_checker)


def _named(found: Any) -> tuple[Any, ...]:
    return (found.kind,) if isinstance(found, ptxtools.Trap) else found.checkers


def _lines(stem: str, report: Any) -> set[int]:
    """Of the source, that a report names."""
    return {int(number) for number in re.findall(rf"{stem}_bugs\.cu:(\d+)", str(report))}


@pytest.mark.parametrize(("stem", "name"), [(stem, name) for stem, kernels in SOURCES.items() for name in kernels])
def test_mistakes_are_reported_at_lines_of_the_source(
    stem: str, name: str, version: tuple[bool, dict[str, ptxtools.Module]]
) -> None:
    has_bug, modules = version
    checker, keys, lines = SOURCES[stem][name]
    found = _found(modules[stem][name], keys)
    if has_bug:
        assert any(checker in _named(one) and lines & _lines(stem, one) for one in found), found
    else:
        assert not found
