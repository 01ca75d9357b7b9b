"""racecheck between a grid and those that it launches (testdata/checkers/children.cu)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxtools

PATH = Path(__file__).parents[2] / "testdata" / "checkers" / "children.ptx"
#: By kernel: what the child does to what its parent does without order; "": nothing.
KERNELS = {
    "after": "read here, written by thread (0,0,0)", "before": "", "synced": "", "tail": "",
    "reads": "write here, read by thread (",
}  # fmt: skip


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_child_begins_with_what_its_launch_knows(kernel: str, engine: str) -> None:
    device = ptxtools.Device("sm_90", checks="racecheck", engine=engine)
    a, b = (device.upload(np.zeros(64, np.int32)) for _ in range(2))
    result = device.launch(ptxtools.load(PATH)[kernel], 1, 64, [a, b])
    if not KERNELS[kernel]:
        assert not result.reports and str(result.verdict) == "race-free in every schedule of this launch"
        return
    (found,) = result.reports
    assert KERNELS[kernel] in found.message and f"has launched this one, of kernel {kernel}" in found.message
    assert found.kind == "grids" and found.kernel != kernel and len(found.others) == 1


#: By kernel: what the second of two children does to what the first one has done without order; "": nothing.
BESIDE = {
    "apart": "read here, written by thread (0,0,0)", "overwrites": "write here, read by thread (0,0,0)",
    "inorder": "", "onestream": "", "last": "", "disjoint": "", "event": "",
}  # fmt: skip


@pytest.mark.parametrize("kernel", BESIDE)
def test_children_beside_one_another(kernel: str) -> None:
    """Streams and events order them, and a tail launch comes behind all others."""
    device = ptxtools.Device("sm_90", checks="racecheck")
    a, b = (device.upload(np.zeros(64, np.int32)) for _ in range(2))
    result = device.launch(ptxtools.load(PATH)[kernel], 1, 64, [a, b])
    if not BESIDE[kernel]:
        assert not result.reports
        return
    (found,) = result.reports
    assert BESIDE[kernel] in found.message and "of another child of the same grid" in found.message
    assert "which no stream orders with this one" in found.message and "launch both into one stream" in found.help
    assert len(found.others) == 1 and found.kernel != found.others[0].file


def test_the_null_stream_is_one_for_each_cta() -> None:
    """Two CTAs each launch a grid into their null stream, which overwrites what the other one writes."""
    device = ptxtools.Device("sm_90", checks="racecheck")
    a, b = (device.upload(np.arange(64, dtype=np.int32)) for _ in range(2))
    one = device.launch(ptxtools.load(PATH)["inorder"], 2, 64, [a, b])
    assert one.reports and all("another child" in found.message for found in one.reports)


COPIES = PATH.with_name("copies.ptx")
#: By kernel: what a copy or a fill that it queues does, or a child beside that, without order; "": nothing.
QUEUED = {
    "filled": ("write here, written by thread (0,0,0) of the grid that has queued this", 109), "filled_before": ("", 0),
    "filled_after": ("", 0), "copied": ("read here, written by thread (32,0,0) of the grid that has queued this", 223),
    "copied_synced": ("", 0), "read_back": ("write here, read by thread (0,0,0) of the grid that has queued this", 350),
    "beside": ("read here, written by thread (0,0,0) of another child of the same grid", 66),
    "behind": ("write here, read by thread (0,0,0) of the grid that has launched this one", 526), "in_order": ("", 0),
}  # fmt: skip


@pytest.mark.parametrize("kernel", QUEUED)
def test_copies_and_fills_are_children(kernel: str) -> None:
    device = ptxtools.Device("sm_90", checks="racecheck")
    a, b = (device.upload(np.arange(64, dtype=np.int32)) for _ in range(2))
    result = device.launch(ptxtools.load(COPIES)[kernel], 1, 64, [a, b])
    words, line = QUEUED[kernel]
    if not words:
        assert not result.reports and str(result.verdict) == "race-free in every schedule of this launch"
        return
    (found,) = result.reports
    assert words in found.message and found.kind == "grids" and [other.line for other in found.others] == [line]
