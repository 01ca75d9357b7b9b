"""What is kept from one checked launch to the next is not taken for what the next one has: bugs with buffers of other
sizes, with other shared memory, and those that only a later launch shows are reported; others are silent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools.native.loop import driver

#: Each thread stores one word behind `skip`: to a buffer, or to dynamic shared memory.
TEXT = """
.version 8.7
.target sm_90
.address_size 64
.extern .shared .align 4 .b8 sh[];
.visible .entry k(.param .u64 a, .param .u32 skip, .param .u32 split, .param .u32 inside)
{
    .reg .b64 %a, %x; .reg .b32 %i, %g, %s, %t, %y, %u; .reg .pred %p, %q;
    ld.param.u64 %a, [a]; ld.param.u32 %s, [skip]; ld.param.u32 %t, [split]; ld.param.u32 %u, [inside];
    mov.u32 %i, %tid.x; mov.u32 %g, %ctaid.x; mad.lo.u32 %i, %g, 64, %i;
    add.u32 %y, %i, %s; mul.wide.u32 %x, %y, 4; add.u64 %x, %x, %a;
    st.global.u32 [%x], %i;
    setp.eq.u32 %q, %u, 0; @%q bra OVER;
    mov.u32 %y, %tid.x; mad.lo.u32 %y, %y, 4, %u; mov.u32 %g, sh; add.u32 %g, %g, %y; sub.u32 %g, %g, 4;
    st.shared.u32 [%g], %i;
OVER:
    mov.u32 %y, %tid.x; setp.lt.u32 %p, %y, %t; @%p bra APART;
    bar.sync 0; bra DONE;
APART:
    bar.sync 0;
DONE:
    ret;
}
"""


@pytest.fixture(params=[1, 2])
def launch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Launches a kernel of eight CTAs of 64 threads under memcheck and synccheck; gives who reports what, and where."""
    monkeypatch.setattr(driver, "_ALONE", 1)
    monkeypatch.setattr(driver, "_LONG", 0)
    device = ptxtools.Device("sm_90", threads=request.param, checks="memcheck,synccheck")
    kernel = ptxtools.loads(TEXT)["k"]

    def run(buffer: Any, skip: int = 0, split: int = 0, inside: int = 0, **more: Any) -> list[str]:
        result = device.launch(kernel, 8, 64, [buffer, skip, split, inside], **more)
        return [f"{one.checker}: {one.message}" + "".join(one.details) for one in result.reports]

    run.device = device  # type: ignore[attr-defined]
    return run


def test_arrays_of_other_sizes(launch: Any) -> None:
    whole, short = np.zeros(512, np.uint32), np.zeros(500, np.uint32)
    for _ in range(2):
        assert launch(whole) == launch(whole) == []
        np.testing.assert_array_equal(whole, np.arange(512))
        found = launch(short)
        assert len(found) == 1 and "argument 0 (a)" in found[0] and "2,000 bytes" in found[0]
        np.testing.assert_array_equal(short, np.arange(500))
    assert len(launch(whole, 1)) == 1 and launch(whole) == []


def test_buffers_that_come_and_go(launch: Any) -> None:
    first = launch.device.alloc(2048)
    assert launch(first) == launch(first) == []
    other = launch.device.alloc(2048)
    assert launch(other) == launch(first) == []
    address = first.address
    first.free()
    assert launch(other) == []
    assert ["freed" in one for one in launch(address)] == [True]
    assert launch(other) == []


def test_other_shared_memory(launch: Any) -> None:
    buffer = launch.device.alloc(2048)
    for _ in range(2):
        assert launch(buffer, inside=4, shared=256) == []
        found = launch(buffer, inside=4, shared=128)
        assert len(found) == 1 and "shared" in found[0]
        assert launch(buffer, inside=4, shared=256) == []
        assert len(launch(buffer, inside=8, shared=256)) == 1


def test_barriers_that_only_a_later_launch_splits(launch: Any) -> None:
    buffer = launch.device.alloc(2048)
    for _ in range(3):
        assert launch(buffer) == []
    found = launch(buffer, split=7)
    assert found and all(one.startswith("synccheck") for one in found)
    assert launch(buffer) == [] and launch(buffer, split=7) == found


def test_limits_of_a_launch(launch: Any) -> None:
    buffer = launch.device.alloc(2048)
    for limits in ({}, {"max_instructions": 1 << 30, "timeout": 100.0}, {"max_instructions": 1 << 30}, {}):
        assert launch(buffer, **limits) == []
        assert len(launch(buffer, 1, **limits)) == 1
    with pytest.raises(ptxtools.Trap, match="instructions"):
        launch(buffer, max_instructions=100)
    assert launch(buffer) == []
