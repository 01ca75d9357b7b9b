"""Clusters: place, shared memory of other CTAs, the cluster barrier, exits; expectations from the manual."""

from __future__ import annotations

import numpy as np
import pytest

import ptxtools
from ptxtools.diagnostics import Trap
from ptxtools.native.loop import spare

from .harness import Memory, both, go, launch_of, output

HEAD = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {
    .reg .pred %p<8>; .reg .b32 %r<24>; .reg .b64 %d<24>; .reg .u32 %t, %n, %rank, %c;
    .reg .u64 %out, %w;
    .shared .align 16 .b32 pad[3]; .shared .align 16 .b32 data[64];
    mov.u32 %t, %tid.x; mov.u32 %rank, %cluster_ctarank;
    mov.u32 %r20, %ctaid.x; mov.u32 %r21, %ctaid.y; mov.u32 %r22, %nctaid.x; mad.lo.u32 %c, %r21, %r22, %r20;
    mov.u32 %r23, %ntid.x; mad.lo.u32 %n, %c, %r23, %t;
    ld.param.u64 %out, [out]; mul.wide.u32 %w, %n, 4; add.u64 %out, %out, %w;
"""
SYNC = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"


def clustered(engine: str, body: str, ctas: int, threads: int = 32, **shape) -> np.ndarray:
    shape = {"grid": (ctas, 1, 1), "cluster": (ctas, 1, 1), "block": (threads, 1, 1), **shape}
    return np.array(output(engine, HEAD + body + "}", ctas * threads, **shape)).reshape(ctas, threads)


@both
def test_a_neighbours_shared_memory(engine):
    body = f"""
    mov.u32 %r1, data; mad.lo.u32 %r1, %t, 4, %r1; mad.lo.u32 %r2, %rank, 100, %t; st.shared.u32 [%r1], %r2;
    {SYNC}
    add.u32 %r3, %rank, 1; and.b32 %r3, %r3, 3;
    mapa.shared::cluster.u32 %r4, %r1, %r3; ld.shared::cluster.u32 %r5, [%r4]; st.global.u32 [%out], %r5;
    {SYNC} ret;"""
    expected = [[(c + 1) % 4 * 100 + t for t in range(32)] for c in range(4)]
    assert clustered(engine, body, 4).tolist() == expected


@both
def test_generic_addresses_of_a_neighbour(engine):
    body = f"""
    mov.u64 %d1, data; cvta.shared.u64 %d1, %d1; mul.wide.u32 %d2, %t, 4; add.u64 %d1, %d1, %d2; st.u32 [%d1], %n;
    {SYNC}
    xor.b32 %r3, %rank, 1; mapa.u64 %d4, %d1, %r3; ld.u32 %r5, [%d4];
    getctarank.u64 %r6, %d4; mad.lo.u32 %r5, %r6, 1000, %r5;
    cvta.to.shared::cluster.u64 %d5, %d4; cvt.u32.u64 %r7, %d5; ld.shared::cluster.u32 %r8, [%r7];
    add.u32 %r5, %r5, %r8; st.global.u32 [%out], %r5;
    {SYNC} ret;"""
    got = clustered(engine, body, 2)
    assert got.tolist() == [[(1 - c) * 1000 + 2 * ((1 - c) * 32 + t) for t in range(32)] for c in range(2)]


@both
@pytest.mark.parametrize("access", ["red.shared::cluster.add.u32 ", "atom.shared::cluster.add.u32 %r9, "])
def test_everybody_counts_in_the_first_cta(engine, access):
    body = f"""
    {SYNC}
    mov.u32 %r1, data; mapa.shared::cluster.u32 %r4, %r1, 0; {access}[%r4], 1;
    {SYNC}
    ld.shared::cluster.u32 %r5, [%r4]; st.global.u32 [%out], %r5;
    {SYNC} ret;"""
    assert clustered(engine, body, 4, 64).tolist() == [[256] * 64] * 4


@both
def test_vectors_go_to_a_neighbour(engine):
    body = f"""
    mov.u32 %r1, data; mov.b32 %r10, 5; xor.b32 %r3, %rank, 1; mapa.shared::cluster.u32 %r4, %r1, %r3;
    setp.eq.u32 %p1, %t, 0; @%p1 st.shared::cluster.v4.u32 [%r4], {{%rank, %r10, %c, %n}};
    {SYNC}
    and.b32 %r5, %t, 3; mad.lo.u32 %r5, %r5, 4, %r1; ld.shared.u32 %r6, [%r5]; st.global.u32 [%out], %r6; ret;"""
    got = clustered(engine, body, 2)
    assert got[:, :4].tolist() == [[1, 5, 1, 32], [0, 5, 0, 0]]


@both
def test_direct_accesses_are_to_ones_own_memory(engine):
    body = f"""
    st.shared.u32 [data+8], %rank; {SYNC} ld.shared.u32 %r1, [data+8]; st.global.u32 [%out], %r1; ret;"""
    assert clustered(engine, body, 2).tolist() == [[0] * 32, [1] * 32]


@both
def test_clearing_a_bit_reaches_the_first_of_a_pair(engine):
    """Programs for CTA pairs clear bit 24 of a shared address to mean the even CTA's memory."""
    body = f"""
    st.shared.u32 [data], %rank; {SYNC}
    mov.u32 %r1, data; and.b32 %r1, %r1, 0xFEFFFFFF; ld.shared::cluster.u32 %r2, [%r1]; st.global.u32 [%out], %r2;
    {SYNC} ret;"""
    assert clustered(engine, body, 4)[:, 0].tolist() == [0, 0, 2, 2]


@both
def test_which_space_an_address_is_in(engine):
    body = """
    mov.u64 %d1, data; cvta.shared.u64 %d1, %d1; xor.b32 %r3, %rank, 1; mapa.u64 %d2, %d1, %r3;
    isspacep.shared::cta %p1, %d1; isspacep.shared::cta %p2, %d2; isspacep.shared::cluster %p3, %d2;
    isspacep.global %p4, %d2; isspacep.shared::cluster %p5, %out;
    selp.u32 %r1, 1, 0, %p1; @%p2 add.u32 %r1, %r1, 2; @%p3 add.u32 %r1, %r1, 4; @%p4 add.u32 %r1, %r1, 8;
    @%p5 add.u32 %r1, %r1, 16; st.global.u32 [%out], %r1; ret;"""
    assert clustered(engine, body, 2)[:, 0].tolist() == [5, 5]


@both
def test_special_registers_of_clusters(engine):
    """A grid of 4 x 6 CTAs in clusters of 2 x 3 (10.11 and on)."""
    registers = [
        "%clusterid.x", "%clusterid.y", "%nclusterid.x", "%nclusterid.y", "%cluster_ctaid.x", "%cluster_ctaid.y",
        "%cluster_nctaid.x", "%cluster_nctaid.y", "%cluster_ctarank", "%cluster_nctarank",
    ]  # fmt: skip
    reads = "".join(
        f"mov.u32 %r1, {name}; setp.eq.u32 %p1, %t, {i}; @%p1 st.global.u32 [%out], %r1;"
        for i, name in enumerate(registers)
    )
    got = clustered(engine, reads + SYNC + "ret;", 24, grid=(4, 6, 1), cluster=(2, 3, 1))
    for c in range(24):
        x, y = c % 4, c // 4
        rank = x % 2 + 2 * (y % 3)
        assert got[c, :10].tolist() == [x // 2, y // 3, 2, 2, x % 2, y % 3, 2, 3, rank, 6]


@both
def test_ctas_of_a_cluster_are_resident_together(engine):
    """A cluster needs all of its CTAs at once; four clusters, one of them resident at a time."""
    body = f"""
    mov.u32 %r1, data; mapa.shared::cluster.u32 %r4, %r1, 0; red.shared::cluster.add.u32 [%r4], 1;
    LOOP: ld.volatile.shared::cluster.u32 %r5, [%r4]; setp.lt.u32 %p1, %r5, 128; @%p1 bra LOOP;
    st.global.u32 [%out], %r5; {SYNC} ret;"""
    got = clustered(engine, body, 16, cluster=(4, 1, 1), resident=4)
    assert got.tolist() == [[128] * 32] * 16


@both
def test_arrive_does_not_wait(engine):
    body = """
    mov.u32 %r2, 7; barrier.cluster.arrive.relaxed; st.shared.u32 [data], %r2; ld.shared.u32 %r1, [data];
    barrier.cluster.wait; barrier.cluster.arrive; barrier.cluster.wait; st.global.u32 [%out], %r1; ret;"""
    assert clustered(engine, body, 2, 64).tolist() == [[7] * 64] * 2


@both
def test_barriers_in_a_single_cta(engine):
    body = f"st.shared.u32 [data], %t; {SYNC} mov.u32 %r1, 3; st.global.u32 [%out], %r1; {SYNC} ret;"
    assert clustered(engine, body, 1, 96).tolist() == [[3] * 96]


@both
def test_divided_warps_meet_at_the_cluster_barrier(engine):
    body = """
    and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0; @%p1 bra EVEN;
    barrier.cluster.arrive; barrier.cluster.wait; mov.u32 %r2, 10; bra END;
    EVEN: barrier.cluster.arrive; barrier.cluster.wait; mov.u32 %r2, 20;
    END: st.global.u32 [%out], %r2; ret;"""
    assert clustered(engine, body, 2).tolist() == [[20, 10] * 16] * 2


@both
def test_threads_that_exit_are_not_waited_for(engine):
    body = f"""
    setp.ge.u32 %p1, %t, 40; @%p1 exit; setp.eq.u32 %p2, %rank, 1; @%p2 exit;
    {SYNC} mov.u32 %r2, 4; st.global.u32 [%out], %r2; ret;"""
    assert clustered(engine, body, 2, 64).tolist() == [[4] * 40 + [0] * 24, [0] * 64]


@both
def test_the_same_barrier_many_times(engine):
    body = f"""
    mov.u32 %r1, data; mov.u32 %r10, 0; xor.b32 %r3, %rank, 1; mapa.shared::cluster.u32 %r4, %r1, %r3;
    LOOP: {SYNC} setp.eq.u32 %p2, %t, 0; @%p2 red.shared::cluster.add.u32 [%r4], 1; {SYNC}
    ld.shared.u32 %r5, [data]; add.u32 %r10, %r10, 1; setp.ne.u32 %p3, %r5, %r10; @%p3 trap;
    setp.lt.u32 %p1, %r10, 20; @%p1 bra LOOP; st.global.u32 [%out], %r5; ret;"""
    assert clustered(engine, body, 2, 64).tolist() == [[20] * 64] * 2


@both
def test_a_cta_that_never_comes_is_told(engine):
    body = "setp.eq.u32 %p1, %rank, 1; @%p1 bar.sync 1, 64; barrier.cluster.arrive; barrier.cluster.wait; ret;"
    memory = Memory()
    out = memory.put(np.zeros(64, np.uint32))
    launch = launch_of(HEAD + body + "}", memory, [out], grid=(2, 1, 1), cluster=(2, 1, 1), block=(32, 1, 1))
    with pytest.raises(Trap) as failure:
        go(engine, launch)
    trap = failure.value
    assert trap.kind == "deadlock"
    told = "\n".join(trap.details)
    assert "CTA (0,0,0), warp 0: 32 threads wait at the cluster barrier: 32 of 64 threads came, 32 are missing" in told
    assert "CTA (1,0,0), warp 0: 32 threads wait at barrier 1: 32 of 64 threads came" in told


@both
@pytest.mark.parametrize("rank", [2, 200])
def test_a_rank_too_high_is_out_of_bounds(engine, rank):
    body = f"mov.u32 %r1, data; mapa.shared::cluster.u32 %r4, %r1, {rank}; ld.shared::cluster.u32 %r5, [%r4]; ret;"
    with pytest.raises(Trap, match=r"shared read of 4 bytes at 0x[0-9a-f]+ is out of bounds"):
        clustered(engine, body, 2)


@both
def test_beyond_a_neighbours_memory_is_out_of_bounds(engine):
    body = "mov.u32 %r1, data; mapa.shared::cluster.u32 %r4, %r1, 1; st.shared::cluster.u32 [%r4+256], %r1; ret;"
    with pytest.raises(Trap, match="shared write of 4 bytes at 0x1000110 is out of bounds"):
        clustered(engine, body, 2)


@both
def test_a_program_that_knows_of_no_clusters_can_run_in_one(engine):
    body = """
    mov.u64 %d1, data; cvta.shared.u64 %d1, %d1; mul.wide.u32 %d2, %t, 4; add.u64 %d1, %d1, %d2; st.u32 [%d1], %n;
    bar.sync 0; xor.b32 %r1, %t, 31; mov.u32 %r2, data; mad.lo.u32 %r2, %r1, 4, %r2; ld.shared.u32 %r3, [%r2];
    st.global.u32 [%out], %r3; ret;"""
    text = HEAD.replace("mov.u32 %rank, %cluster_ctarank;", "") + body + "}"
    got = np.array(output(engine, text, 128, grid=(4, 1, 1), cluster=(2, 1, 1), block=(32, 1, 1))).reshape(4, 32)
    assert got.tolist() == [[32 * c + 31 - t for t in range(32)] for c in range(4)]


@both
@pytest.mark.parametrize("seed", range(3))
def test_any_order_gives_the_same(engine, seed):
    body = f"""
    mov.u32 %r1, data; mapa.shared::cluster.u32 %r4, %r1, 0; {SYNC} red.shared::cluster.add.u32 [%r4], %c;
    {SYNC} ld.shared::cluster.u32 %r5, [%r4]; st.global.u32 [%out], %r5; {SYNC} ret;"""
    got = clustered(engine, body, 8, 64, cluster=(2, 1, 1), resident=4, seed=seed)
    assert got[:, 0].tolist() == [64 * (2 * (c // 2 * 2) + 1) for c in range(8)]


@both
def test_copies_and_matrix_loads_stay_in_ones_own_memory(engine):
    """cp.async and ldmatrix in the second CTA of a cluster."""
    body = f"""
    and.b32 %r1, %t, 3; mov.u32 %r2, data; mad.lo.u32 %r3, %r1, 16, %r2;
    sub.u64 %d1, %out, %w; mul.wide.u32 %d2, %r1, 16;
    add.u64 %d2, %d1, %d2; cp.async.ca.shared.global [%r3], [%d2], 16; cp.async.wait_all; bar.sync 0;
    and.b32 %r5, %t, 3; mad.lo.u32 %r4, %r5, 16, %r2;
    ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r6}}, [%r4]; ld.shared.u32 %r7, [data+20]; add.u32 %r6, %r6, %r7;
    {SYNC} st.global.u32 [%out], %r6; ret;"""
    memory = Memory()
    start = np.arange(100, 164, dtype=np.uint32)
    out = memory.put(start)
    go(engine, launch_of(HEAD + body + "}", memory, [out], grid=(2, 1, 1), cluster=(2, 1, 1), block=(32, 1, 1)))
    rows = start[:16].reshape(4, 4)
    expected = [int(rows[t // 4 % 4, t % 4] + start[5]) for t in range(32)]
    assert memory.get(out, np.uint32, 64).tolist() == expected * 2


def test_clusters_stay_whole_where_memory_is_short(monkeypatch):
    asked, real = [], spare._memory

    def short(size):
        asked.append(size)
        if len(asked) < 3:
            raise OSError("no address space")
        return real(size)

    monkeypatch.setattr(spare, "_memory", short)
    body = f"{SYNC} st.global.u32 [%out], %rank; {SYNC} ret;"
    got = clustered("native", body, 12, cluster=(3, 1, 1), resident=12)
    assert got[:, 0].tolist() == [0, 1, 2] * 4
    assert len(asked) == 3


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_clusters_on_several_workers(threads):
    body = f"""
    mov.u32 %r1, data; mapa.shared::cluster.u32 %r4, %r1, 0; {SYNC} red.shared::cluster.add.u32 [%r4], 1;
    {SYNC} ld.shared::cluster.u32 %r5, [%r4]; st.global.u32 [%out], %r5; {SYNC} ret;"""
    memory = Memory()
    out = memory.put(np.zeros(600 * 64, np.uint32))
    shape = {"grid": (600, 1, 1), "cluster": (2, 1, 1), "block": (64, 1, 1), "resident": 10}
    go("native", launch_of(HEAD + body + "}", memory, [out], threads=threads, **shape))
    assert (memory.get(out, np.uint32, 600 * 64) == 128).all()


@both
@pytest.mark.parametrize(("cluster", "explicit"), [(None, 0), (2, 1), (1, 1)])
def test_whether_the_launch_gives_a_cluster(engine, cluster, explicit):
    body = "mov.pred %p1, %is_explicit_cluster; selp.u32 %r1, 1, 0, %p1; st.global.u32 [%out], %r1; ret;}"
    out = np.full(64, 9, np.uint32)
    ptxtools.Device(engine=engine).launch(ptxtools.loads(HEAD + body)["k"], 2, 32, [out], cluster=cluster)
    assert out.tolist() == [explicit] * 64
