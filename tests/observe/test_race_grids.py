"""racecheck between a grid and the one before it."""

from __future__ import annotations

import numpy as np
import pytest

import ptxtools

TEXT = """.version 9.0
.target sm_90
.address_size 64
.visible .entry first(.param .u64 a) {{
  .reg .b64 %a, %d; .reg .b32 %i;
  ld.param.u64 %a, [a]; mov.u32 %i, %tid.x; mad.wide.u32 %d, %i, 4, %a;
  {begin}
  st.global.u32 [%d], %i;
  ret;
}}
.visible .entry second(.param .u64 a, .param .u64 b) {{
  .reg .b64 %a, %b, %d, %e; .reg .b32 %i, %r; .reg .pred %p;
  ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; mov.u32 %i, %tid.x;
  mad.wide.u32 %d, %i, 4, %a; mad.wide.u32 %e, %i, 4, %b;
  {wait}
  ld.global.u32 %r, [%d];
  st.global.u32 [%e], %r;
  ret;
}}
"""
BEGIN, WAIT = "griddepcontrol.launch_dependents;", "griddepcontrol.wait;"


def found(begin: str, wait: str, *, look: bool = False, engine: str = "native", checks: str = "racecheck") -> list[str]:
    """Messages about the second grid. look: the host reads memory before it starts it."""
    device = ptxtools.Device("sm_90", checks=checks, engine=engine)
    module = ptxtools.loads(TEXT.format(begin=begin, wait=wait), "grids.ptx")
    a, b = device.upload(np.zeros(64, np.uint32)), device.upload(np.zeros(64, np.uint32))
    assert device.launch(module["first"], 1, 64, [a]).reports == []
    if look:
        a.download()
    result = device.launch(module["second"], 1, 64, [a, b])
    assert (b.download() == np.arange(64)).all()
    return [report.message for report in result.reports]


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_the_second_grid_has_to_wait(engine: str) -> None:
    (message,) = found(BEGIN, "", engine=engine)
    assert "read here, written by thread (0,0,0) of the grid before, of kernel first at grids.ptx:8" in message
    assert message.endswith("with no griddepcontrol.wait between")
    assert found(BEGIN, WAIT, engine=engine) == []


def test_a_grid_that_does_not_let_it_begin_has_ended() -> None:
    assert found("", "") == []


def test_the_host_waits_for_grids() -> None:
    assert found(BEGIN, "", look=True) == []


def test_one_warp_that_has_waited_tells_the_others() -> None:
    one = f"setp.lt.u32 %p, %i, 32; @%p {WAIT}"
    assert len(found(BEGIN, one)) == 1
    assert found(BEGIN, f"{one} bar.sync 0;") == []


def test_all_checkers_together() -> None:
    assert len(found(BEGIN, "", checks="all")) == 1
    assert found(BEGIN, WAIT, checks="all") == []
