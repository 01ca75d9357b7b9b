"""Addresses inside buffers, the stack of a device, and the error of a full one."""

from __future__ import annotations

import numpy as np
import pytest

import ptxtools

#: Calls itself as often as it is told, with 64 bytes of local memory each time.
DEEP = """
.version 8.0
.target sm_80
.address_size 64
.func (.reg .u32 r) deep(.reg .u32 n)
{
    .local .align 8 .b8 room[64];
    .reg .pred %p; .reg .u32 %m;
    mov.u32 r, 0;
    setp.eq.u32 %p, n, 0;
    @%p ret;
    sub.u32 %m, n, 1;
    st.local.u32 [room + 60], %m;
    call (r), deep, (%m);
    ld.local.u32 %m, [room + 60];
    sub.u32 %m, n, %m;
    add.u32 r, r, %m;
    ret;
}
.visible .entry k(.param .u64 out, .param .u32 n)
{
    .reg .u64 %d; .reg .u32 %r;
    ld.param.u64 %d, [out]; ld.param.u32 %r, [n];
    call (%r), deep, (%r);
    st.global.u32 [%d], %r;
    ret;
}
"""


def test_sums_of_buffers_and_bytes() -> None:
    device = ptxtools.Device("sm_80")
    buffer = device.upload(np.arange(16, dtype=np.uint32))
    for pointer in (
        buffer + 8,
        8 + buffer,
        np.int64(8) + buffer,
        4 + (4 + buffer),
        12 + buffer - 4,
        np.uint8(8) + buffer,
    ):
        assert pointer.address == buffer.address + 8
    assert (buffer - 0).address == buffer.address
    with pytest.raises(ptxtools.LaunchError, match="offset -4 is outside a buffer of 64 bytes"):
        _ = buffer - 4
    with pytest.raises(ptxtools.LaunchError, match="offset -4 is outside"):
        _ = buffer + 4 - 8
    for wrong in (buffer, 1.5, "4", None, True):
        for sum_ in (lambda w=wrong: buffer + w, lambda w=wrong: w + buffer, lambda w=wrong: buffer - w):
            with pytest.raises(TypeError):
                sum_()


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_the_stack_of_a_device(engine: str) -> None:
    kernel, out = ptxtools.loads(DEEP)["k"], np.zeros(1, np.uint32)
    ptxtools.Device(engine=engine, stack=100_000).launch(kernel, 1, 1, [out, 400])
    assert out[0] == 400
    with pytest.raises(ptxtools.Trap, match="stack"):
        ptxtools.Device(engine=engine).launch(kernel, 1, 1, [out, 400])
    for size in (-1, 1 << 40):
        with pytest.raises(ptxtools.LaunchError, match="a stack of"):
            ptxtools.Device(stack=size)
    with pytest.raises(TypeError):
        ptxtools.Device(stack=1.5)  # type: ignore[arg-type]


def test_a_full_device_has_an_error_of_its_own() -> None:
    device = ptxtools.Device(memory=1 << 26)
    with pytest.raises(ptxtools.OutOfMemory, match="out of device memory"):
        device.alloc(1 << 27)
    assert issubclass(ptxtools.OutOfMemory, ptxtools.LaunchError) and "OutOfMemory" in dir(ptxtools)
