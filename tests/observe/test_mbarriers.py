"""synccheck on mbarriers and on the shared memory of CTAs that have exited."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools.launch.checked import reported

HEAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a) {
  .reg .b64 %s; .reg .b32 %i, %r<8>; .reg .pred %p, %q; .shared .align 8 .b64 bar; .shared .b32 word;
  mov.u32 %i, %tid.x; setp.eq.u32 %q, %i, 0;
"""
INIT = "@%q mbarrier.init.shared.b64 [bar], 32; bar.sync 0;\n"
ENGINES = pytest.mark.parametrize("engine", ["native", "reference"])


def run(body: str, engine: str = "native", *, cluster: int = 1) -> Any:
    kernel = ptxtools.loads(HEAD + body + "\nret; }")["k"]
    device = ptxtools.Device(engine=engine, checks="synccheck")
    return device.launch(kernel, cluster, 32, [np.zeros(8, np.uint32)], cluster=cluster)


def messages(result: Any) -> list[str]:
    return [finding.message for finding in result.reports]


@ENGINES
@pytest.mark.parametrize(
    ("body", "found"),
    [
        (INIT + "mbarrier.arrive.shared.b64 %s, [bar]; bar.sync 0; @%q mbarrier.inval.shared.b64 [bar];", []),
        ("mbarrier.test_wait.parity.shared.b64 %p, [bar], 1;",
         ["mbarrier at shared 0x0 is waited for, but not initialised"]),
        ("@%q mbarrier.inval.shared.b64 [bar];", ["mbarrier at shared 0x0 is invalidated, but not initialised"]),
        (INIT + "@%q mbarrier.init.shared.b64 [bar], 32;", ["mbarrier at shared 0x0 is initialised while in use"]),
        (INIT + "@%q mbarrier.inval.shared.b64 [bar]; @%q mbarrier.init.shared.b64 [bar], 32;", []),
        (INIT + "@%q st.shared.u64 [bar], 0;", ["shared write of the mbarrier at 0x0, which is in use"]),
        (INIT + "ld.shared.u32 %r0, [bar+4];", ["shared read of the mbarrier at 0x0, which is in use"]),
        (INIT + "bar.sync 0; @%q mbarrier.inval.shared.b64 [bar]; @%q st.shared.u64 [bar], 0;", []),
        (INIT + "@%q st.shared.u32 [word], 1;", []),
    ],
)  # fmt: skip
def test_mbarriers(body: str, found: list[str], engine: str) -> None:
    assert messages(run(body, engine)) == found


@ENGINES
def test_arriving_at_what_is_no_mbarrier_is_a_trap_of_synccheck(engine: str) -> None:
    with pytest.raises(ptxtools.Trap, match="the mbarrier is not initialised") as caught:
        run("mbarrier.arrive.shared.b64 %s, [bar];", engine)
    assert caught.value.kind == "synccheck"
    (finding,) = reported(caught.value)
    assert finding.message == "mbarrier at shared 0x0 is used, but not initialised"
    assert "reported before" not in str(caught.value)


@ENGINES
def test_shared_memory_of_a_cta_that_has_exited(engine: str) -> None:
    body = """mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p, %r1, 1; @%p exit; nanosleep.u32 100000;
    mov.u32 %r2, word; mapa.shared::cluster.u32 %r3, %r2, 1; ld.shared::cluster.u32 %r4, [%r3];"""
    found = messages(run(body, engine, cluster=2))
    assert found == ["shared read at 0x8 of CTA (1,0,0), which has exited"]
    waits = "barrier.cluster.arrive; barrier.cluster.wait;"
    in_time = body.replace("@%p exit; nanosleep.u32 100000;", "")
    assert messages(run(in_time + waits, engine, cluster=2)) == []
