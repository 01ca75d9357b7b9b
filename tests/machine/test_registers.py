"""setmaxnreg and the CTA's pool of registers (9.7.19.5); how many a warp begins with is what ptxas reports."""

from __future__ import annotations

import numpy as np
import pytest

from ptxtools.diagnostics import Trap
from ptxtools.sim import services

from .harness import Memory, both, go, launch_of

BOUNDS = ".maxntid 384, 1, 1 .minnctapersm 1"  # 168 registers a thread


def run(engine: str, body: str, threads: int = 384, bounds: str = BOUNDS, **shape) -> list[int]:
    text = f""".version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out) {bounds} {{
    .reg .pred %p<8>; .reg .b32 %r<24>; .reg .b64 %d<24>; .reg .u32 %t, %group; .reg .u64 %out, %w; .shared .b32 flag;
    mov.u32 %t, %tid.x; shr.u32 %group, %t, 7; ld.param.u64 %out, [out]; mul.wide.u32 %w, %t, 4; add.u64 %out, %out, %w;
    mov.u32 %r1, 0; setp.eq.u32 %p1, %group, 0; setp.eq.u32 %p2, %group, 1; setp.eq.u32 %p3, %group, 2;
{body}}}"""
    memory = Memory()
    out = memory.put(np.zeros(threads, np.uint32))
    go(engine, launch_of(text, memory, [out], block=(threads, 1, 1), services=services.load, **shape))
    return memory.get(out, np.uint32, threads).tolist()


PRODUCER = """
    @!%p1 bra TAKE;
    mov.u32 %r2, 0; WORK: add.u32 %r2, %r2, 1; setp.lt.u32 %p4, %r2, 500; @%p4 bra WORK;
    st.volatile.shared.u32 [flag], 7; setmaxnreg.dec.sync.aligned.u32 40; st.global.u32 [%out], 1; ret;
    TAKE: setmaxnreg.inc.sync.aligned.u32 232; ld.volatile.shared.u32 %r3, [flag]; st.global.u32 [%out], %r3; ret;"""


@both
@pytest.mark.parametrize("seed", [None, 0, 1])
def test_consumers_wait_for_what_the_producer_gives(engine, seed):
    """168 a thread: 128 x (168 - 40) is exactly 2 x 128 x (232 - 168)."""
    assert run(engine, PRODUCER, seed=seed) == [1] * 128 + [7] * 256


@both
def test_registers_that_nobody_gives(engine):
    with pytest.raises(Trap) as failure:
        run(engine, PRODUCER.replace("u32 40", "u32 48"))
    assert failure.value.kind == "deadlock"
    told = "\n".join(failure.value.details)
    assert "32 threads wait for 2048 registers; 1024 are free in the CTA's pool (setmaxnreg.inc.sync" in told
    assert failure.value.details[0].startswith("CTA (0,0,0), warp ")
    assert len(failure.value.details) == 1


@both
def test_back_and_forth(engine):
    """Two warpgroups hand the same registers to each other, four times, without any other synchronisation."""
    body = """
    setp.gt.u32 %p4, %group, 1; @%p4 ret; @%p1 setmaxnreg.dec.sync.aligned.u32 80;
    LOOP: @%p2 setmaxnreg.inc.sync.aligned.u32 208; @%p2 setmaxnreg.dec.sync.aligned.u32 120;
    add.u32 %r1, %r1, 1; setp.lt.u32 %p4, %r1, 4; @%p4 bra LOOP;
    @%p1 setmaxnreg.inc.sync.aligned.u32 128; st.global.u32 [%out], %r1; ret;"""
    assert run(engine, body, bounds=".maxnreg 168") == [4] * 256 + [0] * 128


@both
@pytest.mark.parametrize(
    ("bounds", "entry"),
    [
        (".maxnreg 168", 168), (".maxnreg 100", 104), (".maxntid 256, 1, 1 .minnctapersm 2", 128),
        (".reqntid 128 .minnctapersm 3", 168), (".maxntid 384 .minnctapersm 1 .maxnreg 64", 64),
        (".maxntid 128 .minnctapersm 1", 232),
    ],
)  # fmt: skip
def test_what_a_warp_begins_with(engine, bounds, entry):
    """No more than the most that any setmaxnreg asks for, 232 here: a decrease to that is wrong, or changes nothing."""
    body = "setmaxnreg.dec.sync.aligned.u32 232; setmaxnreg.inc.sync.aligned.u32 24; ret;"
    with pytest.raises(Trap) as failure:
        run(engine, body, 128, bounds)
    wrong = "dec to 232" if entry < 232 else "inc to 24"
    assert failure.value.reason == f"setmaxnreg.{wrong} registers in a warp that has {entry}"


@both
@pytest.mark.parametrize("bounds", ["", ".maxntid 384", ".reqntid 384", ".minnctapersm 1"])
def test_without_a_known_number_it_has_no_effect(engine, bounds):
    assert run(engine, "setmaxnreg.inc.sync.aligned.u32 232; st.global.u32 [%out], 3; ret;", bounds=bounds) == [3] * 384


@both
def test_warps_of_a_warpgroup_do_the_same(engine):
    body = """
    setp.lt.u32 %p4, %t, 32; @%p4 bra A; setmaxnreg.dec.sync.aligned.u32 64; ret;
    A: setmaxnreg.dec.sync.aligned.u32 72; ret; setmaxnreg.inc.sync.aligned.u32 168;"""
    with pytest.raises(Trap, match=r"setmaxnreg\.dec to \d+ where another warp of the warpgroup has \.dec to \d+"):
        run(engine, body, 128, ".maxnreg 168")
