"""A device's memory is given back with the last name for it: launches leave no cycles for the collector to find."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import ptxtools
from tests.rows import rows

ROOT = Path(__file__).parents[2]
KERNELS = """
.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.extern .func (.param .b64 r) malloc(.param .b64 n);
.global .align 1 .b8 text[4] = {104, 105, 10, 0};
.visible .entry store(.param .u64 a)
{
    .reg .b64 %d<4>;
    ld.param.u64 %d0, [a];
    st.global.u64 [%d0], %d0;
    ret;
}
.visible .entry spin(.param .u64 a)
{
again:
    bra again;
}
.visible .entry calls(.param .u64 a)
{
    .reg .b64 %d<4>;
    .shared .align 8 .b64 bar;
    .reg .b64 %s;
    mbarrier.init.shared.b64 [bar], 32;
    bar.sync 0;
    mbarrier.arrive.shared.b64 %s, [bar];
    mov.u64 %d1, text; cvta.global.u64 %d1, %d1;
    .param .b64 f; .param .b64 v; .param .b32 r;
    st.param.b64 [f], %d1; st.param.b64 [v], 0;
    call (r), vprintf, (f, v);
    .param .b64 n; .param .b64 m;
    st.param.b64 [n], 16;
    call (m), malloc, (n);
    ret;
}
"""


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("engine", ["native", "reference"])
@rows("more", [{}, {"seed": 3}, {"checks": "all"}, {"checks": "all", "seed": 5}], ids=str, share=3)
@rows("kernel", ["store", "calls"])
@pytest.mark.usefixtures("uncollected")
def test_a_launch_leaves_nothing_behind(engine: str, more: dict[str, object], kernel: str) -> None:
    module = ptxtools.loads(KERNELS)
    device = ptxtools.Device("sm_80", engine=engine, **more)  # type: ignore[arg-type]
    gone, memory = weakref.ref(device), weakref.ref(device.arena)
    device.launch(module[kernel], grid=4, block=32, args=[np.zeros(1, np.uint64)])
    del device
    assert gone() is None and memory() is None


@pytest.mark.share(6)
@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("checks", ["", "all"])
@pytest.mark.parametrize(("kernel", "says"), [("store", "out of bounds"), ("spin", "changes nothing")])
@pytest.mark.usefixtures("uncollected")
def test_nor_does_one_that_failed(engine: str, checks: str, kernel: str, says: str) -> None:
    module = ptxtools.loads(KERNELS)
    device = ptxtools.Device("sm_80", engine=engine, checks=checks, check_stop=True)
    gone = weakref.ref(device)
    with pytest.raises(ptxtools.Trap) as caught:
        device.launch(module[kernel], grid=4, block=32, args=[8])
    assert says in str(caught.value)
    del device, caught
    assert gone() is None


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.usefixtures("uncollected")
def test_what_refers_to_a_device_keeps_it(engine: str) -> None:
    device = ptxtools.Device("sm_80", engine=engine)
    gone = weakref.ref(device)
    buffer = device.upload(np.arange(4))
    pointer = buffer + 8
    del device, buffer
    assert pointer.buffer.download().tolist() == [0, 1, 2, 3]
    del pointer
    assert gone() is None
