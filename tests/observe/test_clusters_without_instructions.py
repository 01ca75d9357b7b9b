"""Kernels that are launched as clusters, and have no instruction that concerns clusters: each CTA has shared memory of
its own, and addresses name no rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxtools

ENGINES = ("native", "reference")
HEAD = """.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a) { .reg .b32 %t, %s, %x, %c; .reg .b64 %a, %g; .reg .pred %p, %q;
    .shared .align 16 .b8 sm[512]; .shared .align 8 .b64 mb;
    mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; ld.param.u64 %a, [a]; mov.u32 %x, sm; shl.b32 %s, %t, 2;
    add.u32 %x, %x, %s; cvta.shared.u64 %g, sm; setp.eq.u32 %p, %t, 0; setp.eq.u32 %q, %c, 0;
"""


def run(body: str, checks: str, engine: str) -> Any:
    device = ptxtools.Device("sm_90", checks=checks, engine=engine)
    kernel = ptxtools.loads(f"{HEAD}{body}\n ret; }}")["k"]
    return device.launch(kernel, 2, 64, [np.zeros(64, np.uint32)], cluster=2)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "body",
    [
        "st.shared.u32 [%x], %t; bar.sync 0; ld.shared.u32 %s, [sm+4]; st.shared.u32 [%x+256], %s;",
        "st.u32 [%g+4], 1; bar.sync 0; ld.u32 %s, [%g+4];",
        """@%p mbarrier.init.shared.b64 [mb], 64; bar.sync 0; st.shared.u32 [%x], %t;
        mbarrier.arrive.shared.b64 _, [mb];
        W: mbarrier.try_wait.parity.shared.b64 %p, [mb], 0; @!%p bra W; ld.shared.u32 %s, [sm+252];""",
        "@%p cp.async.ca.shared.global [sm], [%a], 4; cp.async.wait_all; bar.sync 0;ld.shared.u32 %s, [sm];",
    ],
)
def test_nothing_is_reported(body: str, engine: str) -> None:
    result = run(body, "all", engine)
    assert result.reports == [] and str(result.verdict) == "race-free in every schedule of this launch"


@pytest.mark.parametrize("engine", ENGINES)
def test_races_are_those_of_the_cta(engine: str) -> None:
    """The second CTA alone has no barrier."""
    result = run("st.shared.u32 [%x], %t; @%q bar.sync 0; ld.shared.u32 %s, [sm+252];", "racecheck", engine)
    assert {one.cta for one in result.reports} == {(1, 0, 0)}
    assert all("of CTA (1,0,0): " in one.message for one in result.reports)


@pytest.mark.parametrize("engine", ENGINES)
def test_memory_that_only_the_first_cta_has_written(engine: str) -> None:
    result = run("@%q st.shared.u32 [%x], %t; bar.sync 0; ld.shared.u32 %s, [%x]; st.global.u32 [%a], %s;",
                 "initcheck", engine)  # fmt: skip
    assert [one.cta for one in result.reports] == [(1, 0, 0)]
