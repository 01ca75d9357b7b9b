"""mbarrier operations in kernels, on both engines (9.7.13.15)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools.program import mbarrier
from tests.work import HANG

HEADER = ".version 8.7\n.target sm_100a\n.address_size 64\n"
ENGINES = pytest.mark.parametrize("engine", ["native", "reference"])


def run(engine: str, body: str, *, block: int = 32, grid: int = 1, cluster: int | None = None, words: int = 64,
        seed: int | None = None) -> np.ndarray[Any, Any]:  # fmt: skip
    """Run a body that may use %out (b64), registers of every class and 256 bytes of shared memory `bar`."""
    text = f"""{HEADER}.visible .entry k(.param .u64 out) {{
        .reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<32>; .reg .b64 %out; .shared .align 8 .b64 bar[32];
        ld.param.u64 %out, [out];
        mov.u32 %r0, %tid.x;
        {body}
        ret;
    }}"""
    out = np.zeros(words, np.uint64)
    device = ptxtools.Device("sm_100a", engine=engine, seed=seed)
    device.launch(ptxtools.loads(text)["k"], grid, block, [out], cluster=cluster, timeout=HANG)
    return out


def first(body: str) -> str:
    """The body for thread 0 alone."""
    return f"setp.ne.u32 %p7, %r0, 0;\n@%p7 bra DONE;\n{body}\nDONE:"


@ENGINES
def test_words_after_each_operation(engine: str) -> None:
    """The word as documented, after each step; states are the words before."""
    steps = [
        "mbarrier.init.shared::cta.b64 [bar], 3;",
        "mbarrier.arrive.shared::cta.b64 %rd1, [bar];",
        "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 100;",
        "mbarrier.arrive_drop.shared::cta.b64 %rd1, [bar];",
        "mbarrier.arrive.expect_tx.shared::cta.b64 %rd1, [bar], 28;",
        "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 127;",
        "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 1;",
        "mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %rd1, [bar], 1;",
        "mbarrier.arrive.shared::cta.b64 %rd1, [bar], 1;",
        "mbarrier.inval.shared::cta.b64 [bar];",
    ]
    store = "ld.shared.b64 %rd2, [bar]; st.global.b64 [%out+{}], %rd2; st.global.b64 [%out+{}], %rd1;\n"
    body = "mov.b64 %rd1, 0;" + "".join(s + store.format(16 * i, 16 * i + 8) for i, s in enumerate(steps))
    out = run(engine, first(body)).reshape(-1, 2)

    def word(phase: int, pending: int, tx: int, expected: int) -> int:
        return phase << 63 | (-pending & 0xFFFFF) << 43 | (tx & 0x1FFFFF) << 21 | (-expected & 0xFFFFF) << 1

    words = [
        word(0, 3, 0, 3), word(0, 2, 0, 3), word(0, 2, 100, 3), word(0, 1, 100, 2), word(0, 0, 128, 2),
        word(0, 0, 1, 2), word(1, 2, 0, 2), word(1, 1, 0, 2), word(0, 2, 0, 2), 0,
    ]  # fmt: skip
    assert out[: len(steps), 0].tolist() == words
    for arrival in (1, 3, 4, 7, 8):
        assert out[arrival, 1] == words[arrival - 1]


@ENGINES
def test_waits_by_state_and_parity(engine: str) -> None:
    body = """mbarrier.init.shared::cta.b64 [bar], 1;
        mbarrier.test_wait.parity.shared::cta.b64 %p1, [bar], 1;
        mbarrier.test_wait.parity.shared::cta.b64 %p2, [bar], 0;
        mbarrier.arrive.shared::cta.b64 %rd1, [bar];
        mbarrier.test_wait.shared::cta.b64 %p3, [bar], %rd1;
        mbarrier.try_wait.parity.shared::cta.b64 %p4, [bar], 0, 100;
        mbarrier.try_wait.parity.shared::cta.b64 %p5, [bar], 1, 100;
        ld.shared.b64 %rd2, [bar];
        and.b64 %rd2, %rd2, -2;
        mbarrier.test_wait.shared::cta.b64 %p6, [bar], %rd2;
        mbarrier.pending_count.b64 %r9, %rd1;
        cvt.u64.u32 %rd9, %r9; st.global.b64 [%out+64], %rd9;
    """
    for i in range(1, 7):
        body += f"selp.b64 %rd5, 1, 0, %p{i}; st.global.b64 [%out+{8 * i}], %rd5;\n"
    out = run(engine, first(body))
    assert out[1:9].tolist() == [1, 0, 1, 1, 0, 0, 0, 1]


@ENGINES
def test_generic_addresses_and_counts_of_lanes(engine: str) -> None:
    """32 lanes arrive with counts 1 to 32 at one barrier; pending counts are what each found."""
    body = """cvta.shared.u64 %rd3, bar;
        mov.u64 %rd3, bar; cvta.shared.u64 %rd3, %rd3;
        setp.eq.u32 %p1, %r0, 0;
        @%p1 mbarrier.init.b64 [%rd3+8], 528;
        bar.sync 0;
        add.u32 %r1, %r0, 1;
        mbarrier.arrive.b64 %rd1, [%rd3+8], %r1;
        mbarrier.pending_count.b64 %r2, %rd1;
        WAIT: mbarrier.try_wait.b64 %p2, [%rd3+8], %rd1;
        @!%p2 bra WAIT;
        mad.wide.u32 %rd4, %r0, 8, %out;
        cvt.u64.u32 %rd5, %r2;
        st.global.b64 [%rd4], %rd5;
    """
    out = run(engine, body)
    assert out[:32].tolist() == [528 - lane * (lane + 1) // 2 for lane in range(32)]


@ENGINES
def test_arrivals_of_copies(engine: str) -> None:
    body = """mbarrier.init.shared::cta.b64 [bar], 2;
        cp.async.ca.shared::cta.global [bar+64], [%out+8], 8;
        cp.async.mbarrier.arrive.shared::cta.b64 [bar];
        ld.shared.b64 %rd1, [bar]; st.global.b64 [%out], %rd1;
        cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar];
        cp.async.mbarrier.arrive.noinc.b64 [%rd3];
        mbarrier.test_wait.parity.shared::cta.b64 %p1, [bar], 0;
        selp.b64 %rd2, 1, 0, %p1; st.global.b64 [%out+16], %rd2;
    """
    out = run(engine, first("mov.u64 %rd3, bar; cvta.shared.u64 %rd3, %rd3;" + body))
    assert out[0] == mbarrier.fresh(2) and out[2] == 1


RING = """setp.eq.u32 %p1, %r0, 0;
        @%p1 mbarrier.init.shared::cta.b64 [bar], 64;
        @%p1 mbarrier.init.shared::cta.b64 [bar+8], 64;
        bar.sync 0;
        setp.ge.u32 %p2, %r0, 64;
        mov.u32 %r1, 0; mov.u32 %r9, 0;
        @%p2 bra CONSUMER;
        PRODUCER: and.b32 %r2, %r1, 1; xor.b32 %r3, %r2, 1;
        PW: mbarrier.try_wait.parity.shared::cta.b64 %p3, [bar+8], %r3; @!%p3 bra PW;
        mov.u32 %r4, bar; mad.lo.u32 %r4, %r0, 2, %r4; add.u32 %r5, %r1, %r0; st.shared.u16 [%r4+16], %r5;
        mbarrier.arrive.shared::cta.b64 _, [bar];
        add.u32 %r1, %r1, 1; setp.lt.u32 %p4, %r1, 9; @%p4 bra PRODUCER;
        bra END;
        CONSUMER: and.b32 %r2, %r1, 1;
        CW: mbarrier.try_wait.parity.shared::cta.b64 %p3, [bar], %r2; @!%p3 bra CW;
        mov.u32 %r4, bar; sub.u32 %r6, %r0, 64; xor.b32 %r6, %r6, 37; mad.lo.u32 %r4, %r6, 2, %r4;
        ld.shared.u16 %r5, [%r4+16]; mad.lo.u32 %r9, %r9, 3, %r5;
        mbarrier.arrive.shared::cta.b64 _, [bar+8];
        add.u32 %r1, %r1, 1; setp.lt.u32 %p4, %r1, 9; @%p4 bra CONSUMER;
        sub.u32 %r6, %r0, 64; mad.wide.u32 %rd4, %r6, 8, %out; cvt.u64.u32 %rd5, %r9; st.global.b64 [%rd4], %rd5;
        END:"""


@ENGINES
@pytest.mark.parametrize("seed", [None, 1])
def test_producers_and_consumers_over_many_phases(engine: str, seed: int | None) -> None:
    out = run(engine, RING, block=128, seed=seed)
    wanted = []
    for lane in range(64):
        total = 0
        for phase in range(9):
            total = (total * 3 + phase + (lane ^ 37)) & 0xFFFFFFFF
        wanted.append(total)
    assert out.tolist() == wanted


@ENGINES
def test_arrivals_in_another_cta(engine: str) -> None:
    """Every CTA arrives, with bytes to expect, at the barrier of rank 1, which completes them and reports."""
    body = """mov.u32 %r1, %cluster_ctarank;
        setp.eq.u32 %p1, %r1, 1;
        setp.eq.u32 %p2, %r0, 0;
        and.pred %p3, %p1, %p2;
        @%p3 mbarrier.init.shared::cta.b64 [bar], 4;
        barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
        mov.u32 %r2, bar; mapa.shared::cluster.u32 %r3, %r2, 1;
        mapa.u64 %rd3, bar, 1;
        @%p2 mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r3], 16;
        @%p2 mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r3], 16;
        @!%p1 bra OUT;
        WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p4, [bar], 0;
        @!%p4 bra WAIT;
        st.global.b64 [%out], 7;
        OUT: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    """
    assert run(engine, body, grid=4, cluster=4)[0] == 7


@ENGINES
@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        ("mbarrier.arrive.shared::cta.b64 _, [bar];", "not initialised"),
        ("mov.u32 %r9, 0; mbarrier.init.shared::cta.b64 [bar], %r9;", "cannot expect 0 arrivals"),
        ("mov.u32 %r9, 1048576; mbarrier.init.shared::cta.b64 [bar], %r9;", "cannot expect 1048576 arrivals"),
        ("mbarrier.init.shared::cta.b64 [bar], 2; mbarrier.arrive.shared::cta.b64 _, [bar], 3;", "phase needs 2"),
        ("mbarrier.init.shared::cta.b64 [bar], 1; mov.u32 %r9, 0; mbarrier.arrive.shared::cta.b64 _, [bar], %r9;",
         "0 arrivals at once"),
        ("mbarrier.init.shared::cta.b64 [bar+4], 1;", "not aligned to 8"),
        ("mbarrier.init.shared::cta.b64 [bar+256], 1;", "out of bounds"),
        ("mbarrier.init.b64 [%out], 1;", "no mbarrier at"),
        ("mbarrier.init.shared::cta.b64 [bar], 1; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 1048576;",
         "tx-count becomes 1048576"),
    ],
)  # fmt: skip
def test_misuse_is_a_trap(engine: str, operation: str, reason: str) -> None:
    with pytest.raises(ptxtools.Trap, match=reason) as caught:
        run(engine, first(operation))
    assert caught.value.thread == (0, 0, 0)


@ENGINES
def test_a_deadlock_says_what_is_missing(engine: str) -> None:
    body = """setp.eq.u32 %p1, %r0, 0;
        @%p1 mbarrier.init.shared::cta.b64 [bar+16], 33;
        bar.sync 0;
        @%p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar+16], 512;
        mbarrier.arrive.shared::cta.b64 _, [bar+16];
        WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar+16], 0, 0x989680;
        @!%p2 bra WAIT;
    """
    with pytest.raises(ptxtools.Trap) as caught:
        run(engine, body)
    assert caught.value.kind == "deadlock"
    text = str(caught.value) + "\n".join(caught.value.details)
    assert "mbarrier at shared 0x10 (bar+16), phase 0: 32 of 33 arrivals came, 1 missing, 512 bytes" in text
