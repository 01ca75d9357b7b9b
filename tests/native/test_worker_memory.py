"""The memory of workers, from launch to launch."""

from __future__ import annotations

import mmap

import numpy as np
import pytest

import ptxtools
from ptxtools.native.loop import pool, spare, team

KERNEL = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {
    .reg .b32 %i; .reg .b64 %o, %a;
    mov.u32 %i, %ctaid.x; ld.param.u64 %o, [out]; mul.wide.u32 %a, %i, 4; add.u64 %a, %a, %o;
    st.global.u32 [%a], %i; ret;
}"""


@pytest.fixture(autouse=True)
def _none_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spare, "_spare", [])
    monkeypatch.setattr(team, "_idle", [])


def test_memory_for_many_ctas_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has addresses for all CTAs that can be resident, of which one has been used."""
    if pool.known():
        pool.functions()  # from the first launch on
    device, kernel = ptxtools.Device("sm_90", threads=1), ptxtools.loads(KERNEL)["k"]
    out = device.upload(np.zeros(1024, np.uint32))
    device.launch(kernel, 1024, 1024, [out])
    ((memory, used),) = spare._spare
    assert used < spare._SPARE_BYTES < len(memory)

    def none(*_: object, **__: object) -> mmap.mmap:
        raise AssertionError("memory is mapped anew")

    monkeypatch.setattr(spare.mmap, "mmap", none)
    device.launch(kernel, 1024, 1024, [out])
    np.testing.assert_array_equal(out.download(), np.arange(1024))
    (rests,) = team._idle
    assert spare._spare == [] and [(one.memory, one.used) for one in rests.workers] == [(memory, used)]


def test_memory_that_was_used_is_kept_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spare, "_SPARE_BYTES", 100)
    memories = [mmap.mmap(-1, mmap.PAGESIZE) for _ in range(3)]
    for memory in memories:
        spare.release(memory, 50)
    assert [memory for memory, _ in spare._spare] == memories[:2]


def test_where_addresses_are_short_what_was_kept_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    spare.release(mmap.mmap(-1, mmap.PAGESIZE), 50)
    made, least = mmap.mmap, []

    def scarce(number: int, size: int, **options: int) -> mmap.mmap:
        least.append(size)
        if spare._spare:
            raise OSError
        return made(number, size, **options)

    monkeypatch.setattr(spare.mmap, "mmap", scarce)
    _, used, slots = spare.resident_memory(1 << 20, 8, 1)
    assert (used, slots) == (0, 8) and len(least) == 2
