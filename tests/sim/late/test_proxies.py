"""asynccheck on proxies: a fence.proxy.async counts if it is between the store and the copy on a path of causality
(8.9.5); and on the global side of copies."""

from __future__ import annotations

import numpy as np
import pytest

import ptxtools
from tests.rows import rows
from tests.work import HANG

ENGINES = pytest.mark.parametrize("engine", ["native", "reference"])
HEAD = """.version 8.7
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 a, .param .align 64 .b8 m[128]) {
    .reg .pred %p<8>, %zero, %q; .reg .b32 %s, %mb, %t, %r<16>; .reg .b64 %a, %m, %rd<8>;
    .shared .align 128 .b8 tile[1024]; .shared .align 8 .b64 bar[2];
    ld.param.u64 %a, [a]; mov.b64 %m, m; cvta.param.u64 %m, %m;
    mov.u32 %s, tile; mov.u32 %mb, bar; mov.u32 %t, %tid.x; setp.eq.u32 %zero, %t, 0;
    mad.lo.u32 %r0, %t, 4, %s;
"""
#: All threads write the tile; thread 0 stores it, and waits.
WRITE = "st.shared.u32 [%r0], %t;\n"
FENCE = "fence.proxy.async;\n"
BARRIER = "bar.sync 0;\n"
STORE = """@!%zero bra END;
    cp.async.bulk.global.shared::cta.bulk_group [%a], [%s], 256;
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; END:"""
ONE = "setp.eq.u32 %p1, %t, {0}; @%p1 fence.proxy.async;\n"


def reports(body: str, engine: str, *, block: int = 64, cluster: int = 1, grid: int | None = None) -> list[str]:
    """What asynccheck finds in a body; %a: 4 KB of device memory, %m: a map of 16 x 16 f32 there, in boxes of 8 x 4."""
    device = ptxtools.Device("sm_100a", engine=engine, checks="asynccheck")
    memory = device.upload(np.zeros(1024, np.uint32))
    map_ = device.tensormap(memory, type="u32", shape=[16, 16], box=[8, 4])
    kernel = ptxtools.loads(HEAD + body + "\nret; }")["k"]
    result = device.launch(kernel, grid or cluster, block, [memory, map_], cluster=cluster, timeout=HANG)
    return [finding.message for finding in result.reports]


@ENGINES
@rows(("body", "found"), [
    (WRITE + FENCE + BARRIER + STORE, False),  # each fences what it wrote
    (WRITE + BARRIER + FENCE + STORE, False),  # the storing thread fences what it was told of
    (WRITE + BARRIER + ONE.format(0) + STORE, False),
    (WRITE + BARRIER + ONE.format(33) + BARRIER + STORE, False),  # somebody between the two
    (WRITE + BARRIER + STORE, True),
    (FENCE + WRITE + BARRIER + STORE, True),  # before the store
    (WRITE + ONE.format(0) + BARRIER + STORE, True),  # thread 0 does not know yet what the others wrote
    (WRITE + ONE.format(33) + BARRIER + STORE, True),
    (WRITE + BARRIER + ONE.format(33) + STORE, True),  # thread 0 is not told of the fence
    (WRITE + BARRIER + "fence.proxy.async.global;\n" + STORE, True),
    (WRITE + BARRIER + "fence.proxy.async.shared::cta;\n" + STORE, False),
    (WRITE + BARRIER + "fence.acq_rel.cta;\n" + STORE, True),  # no fence between proxies
])  # fmt: skip
def test_fences_and_barriers(body: str, found: bool, engine: str) -> None:
    said = reports(body, engine)
    assert len(said) == found and all("without fence.proxy.async" in one for one in said)


@ENGINES
@pytest.mark.parametrize(("body", "found"), [
    (WRITE + ONE.format(0) + STORE, True),  # lanes of a warp are threads like others
    (WRITE + "bar.warp.sync -1;\n" + ONE.format(0) + STORE, False),
    (WRITE + FENCE + STORE, True),
    (WRITE + FENCE + "bar.warp.sync -1;\n" + STORE, False),
    (WRITE + FENCE + "setp.ne.u32 %p2, %t, 31; @%p2 bar.warp.sync 0x7fffffff;\n" + STORE, True),
    (WRITE + FENCE + "shfl.sync.idx.b32 %r1, %r0, 0, 31, -1;\n" + STORE, True),  # orders no memory
])  # fmt: skip
def test_lanes_of_a_warp(body: str, found: bool, engine: str) -> None:
    assert len(reports(body.replace("256", "128"), engine, block=32)) == found


INIT = """@%zero mbarrier.init.shared::cta.b64 [%mb], 32; @%zero fence.mbarrier_init.release.cluster; bar.sync 0;
    setp.lt.u32 %p3, %t, 32; @%p3 bra CONSUMER; sub.u32 %r0, %r0, 128;\n"""
TOLD = """mbarrier.arrive.shared::cta.b64 _, [%mb]; bra END;
    CONSUMER: mbarrier.try_wait.parity.shared::cta.b64 %q, [%mb], 0; @!%q bra CONSUMER;\n"""


@ENGINES
@pytest.mark.parametrize(("fences", "found"), [((FENCE, ""), False), (("", FENCE), False), (("", ""), True)])
def test_mbarriers_tell(fences: tuple[str, str], found: bool, engine: str) -> None:
    body = INIT + WRITE + fences[0] + TOLD + fences[1] + STORE.replace("256", "128")
    assert len(reports(body, engine)) == found


@ENGINES
@pytest.mark.parametrize(("way", "found"), [
    ("st.release.cta.shared.u32 [bar], 1; bra END; CONSUMER: L: ld.acquire.cta.shared.u32 %r2, [bar];", False),
    ("red.release.cta.shared.add.u32 [bar], 1; bra END; CONSUMER: L: ld.acquire.cta.shared.u32 %r2, [bar];", False),
    ("st.shared.u32 [bar], 1; bra END; CONSUMER: L: ld.shared.u32 %r2, [bar];", True),  # says nothing of other stores
])  # fmt: skip
def test_flags_tell(way: str, found: bool, engine: str) -> None:
    body = f"""st.shared.u32 [bar], 0; bar.sync 0; setp.lt.u32 %p3, %t, 32; @%p3 bra CONSUMER;
    setp.ne.u32 %p4, %t, 32; @%p4 bra END; st.shared.u32 [%s], 5; {FENCE} {way}
    setp.ne.u32 %p5, %r2, 1; @%p5 bra L; """ + STORE.replace("256", "16")
    assert len(reports(body, engine)) == found


@ENGINES
@pytest.mark.parametrize("fenced", [True, False])
def test_stores_to_another_cta(fenced: bool, engine: str) -> None:
    meet = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
    body = f"""mov.u32 %r1, %cluster_ctarank; xor.b32 %r1, %r1, 1; mapa.shared::cluster.u32 %r2, %r0, %r1;
    mul.wide.u32 %rd1, %r1, 512; add.u64 %a, %a, %rd1; st.shared::cluster.u32 [%r2], %t;
    {FENCE * fenced} {meet} {STORE.replace("END", "OUT")} {meet}"""
    assert len(reports(body, engine, cluster=2)) == (not fenced)


# --- global memory ----------------------------------------------------------------------------------------------------

LOAD = """@!%zero bra END; mbarrier.init.shared::cta.b64 [%mb], 1; fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%mb], 128;
    {0}
    W: mbarrier.try_wait.parity.shared::cta.b64 %q, [%mb], 0; @!%q bra W; END:"""
BULK = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%s], [%a], 128, [%mb];"
TENSOR = """cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes
    [%s], [%m, {0}], [%mb];"""
PUT = "mul.wide.u32 %rd1, %t, 4; add.u64 %rd1, %rd1, %a; st.global.u32 [%rd1+{0}], %t;\n"


@pytest.mark.share(3)
@ENGINES
@pytest.mark.parametrize(("copy", "offset", "found"), [
    (BULK, 0, True), (BULK, 128, False),
    (TENSOR.format("{0, 0}"), 0, True), (TENSOR.format("{8, 0}"), 0, True), (TENSOR.format("{0, 12}"), 0, False),
    (TENSOR.format("{0, 0}"), 256, False), (TENSOR.format("{0, -3}"), 64, False),
])  # fmt: skip
def test_loads_of_what_was_stored_to_global_memory(copy: str, offset: int, found: bool, engine: str) -> None:
    """64 words from an offset on: rows 0 to 3 of the map's tensor, from offset 256 on rows 4 to 7."""
    assert len(reports(PUT.format(offset) + BARRIER + LOAD.format(copy), engine)) == found
    assert reports(PUT.format(offset) + FENCE + BARRIER + LOAD.format(copy), engine) == []
    assert reports(PUT.format(offset) + "fence.proxy.async.global;\n" + BARRIER + LOAD.format(copy), engine) == []


@ENGINES
@pytest.mark.parametrize("fence", ["", FENCE])
def test_loads_over_what_was_stored(fence: str, engine: str) -> None:
    """Without a fence the older store could come last."""
    found = reports(WRITE + fence + BARRIER + LOAD.format(BULK), engine)
    assert len(found) == (fence == "") and all("writes what was written without" in one for one in found)


@ENGINES
@pytest.mark.parametrize("fence", ["", FENCE])
def test_stores_of_another_cluster(fence: str, engine: str) -> None:
    """CTA 0 stores and sets a flag, CTA 1 sees it and loads."""
    body = f"""mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 0; @!%p1 bra SECOND;
    {PUT.format(0)} {fence} bar.sync 0; @%zero st.release.gpu.global.u32 [%a+2048], 1; bra END;
    SECOND: ld.acquire.gpu.global.u32 %r2, [%a+2048]; setp.ne.u32 %p2, %r2, 1; @%p2 bra SECOND;
    """ + LOAD.format(BULK)
    assert len(reports(body, engine, grid=2)) == (fence == "")


OUT = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%m, {0}], [%s];\n"
COMMIT = "cp.async.bulk.commit_group;\n"


@ENGINES
@pytest.mark.parametrize(("body", "found"), [
    (OUT.format("{0, 0}") + COMMIT + "ld.global.u32 %r1, [%a];", True),
    (OUT.format("{0, 0}") + COMMIT + "cp.async.bulk.wait_group.read 0; ld.global.u32 %r1, [%a+28];", True),
    (OUT.format("{0, 0}") + COMMIT + "cp.async.bulk.wait_group 0; ld.global.u32 %r1, [%a];", False),
    (OUT.format("{0, 0}") + COMMIT + "ld.global.u32 %r1, [%a+32];", False),  # beside the box
    (OUT.format("{8, 1}") + COMMIT + "ld.global.u32 %r1, [%a+32];", False),
    (OUT.format("{8, 1}") + COMMIT + "st.global.u32 [%a+96], 1;", True),
    (OUT.format("{0, 0}") + OUT.format("{8, 0}") + COMMIT, False),  # neighbours
    (OUT.format("{0, 0}") + OUT.format("{4, 3}") + COMMIT, True),  # they overlap, in no order
])  # fmt: skip
def test_what_tensor_copies_write_to_global_memory(body: str, found: bool, engine: str) -> None:
    said = reports("@!%zero bra END;\n" + body + COMMIT + "cp.async.bulk.wait_group 0; END:", engine, block=32)
    assert len(said) == found and all("has not completed" in one for one in said)


@ENGINES
def test_reductions_of_copies_may_meet(engine: str) -> None:
    reduce = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%m, {0, 0}], [%s];\n"
    assert reports("@!%zero bra END;\n" + reduce * 2 + COMMIT + "cp.async.bulk.wait_group 0; END:", engine) == []
