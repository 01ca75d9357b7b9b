"""The kernels that docs/native-engine.md follows give the results that it tells, on both engines."""

from __future__ import annotations

import numpy as np
import pytest

import ptxtools
from tools import engine_page

ENGINES = ["native", "reference"]


@pytest.fixture(params=ENGINES)
def launch(request):
    def run(name, block, *args):
        kernel = ptxtools.loads(engine_page.module(name))["k"]
        return ptxtools.Device("sm_90a", engine=request.param).launch(kernel, 1, block, list(args))

    return run


def test_add(launch):
    out = np.zeros(32, np.uint32)
    launch("add", 32, out, 7)
    assert (out == 7 + np.arange(32)).all()


def test_branch(launch):
    out = np.zeros(32, np.uint32)
    launch("branch", 32, out)
    assert (out == 0xAAAAAAAA).all()


def test_barrier(launch):
    out = np.zeros(64, np.uint32)
    launch("barrier", 64, out)
    assert (out == 63).all()


def test_bulk(launch):
    data, out = np.arange(256, dtype=np.uint32), np.zeros(1, np.uint32)
    launch("bulk", 1, data, out)
    assert out.tolist() == [255]


def test_wgmma(launch):
    """Rows of core matrices 256 bytes apart, columns 128; A at byte 0, B at byte 2048."""
    step, out = (256 >> 4) << 32 | (128 >> 4) << 16, np.zeros(128, np.float32)
    launch("wgmma", 128, step, step | 2048 >> 4, out)
    assert (out == 16).all()


def test_every_kernel_of_the_page_is_run():
    assert {f"test_{name}" for name in engine_page.KERNELS} <= set(globals())


def test_every_status_has_its_row():
    for prefix in ("STATUS", "RUN", "RESUME", "SERVED", "TRAP"):
        rows = engine_page.statuses(prefix).splitlines()[2:]
        assert [row.split(" | ")[0] for row in rows] == [f"| {n + (prefix == 'RESUME')}" for n in range(len(rows))]


def test_an_unknown_status_is_found(monkeypatch):
    from ptxtools.native.code import structures

    monkeypatch.setattr(structures, "STATUS_NEW", 9, raising=False)
    with pytest.raises(AssertionError, match="STATUS_NEW"):
        engine_page.statuses("STATUS")
