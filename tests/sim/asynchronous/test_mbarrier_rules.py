"""What 9.7.13.15 says of mbarriers, sentence by sentence: random sequences of operations against a model, and the rest
one by one."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import ptxtools
from tests.rows import rows
from tests.work import HANG

from .test_mbarrier import ENGINES, first, run

MOST = (1 << 20) - 1


@dataclass
class Model:
    """9.7.13.15.2: what an mbarrier keeps track of."""

    expected: int
    phase: int = 0
    pending: int = 0
    tx: int = 0

    def __post_init__(self) -> None:
        self.pending = self.expected

    def possibly_complete(self) -> None:
        """9.7.13.15.6"""
        if self.pending == 0 and self.tx == 0:
            self.phase, self.pending = self.phase + 1, self.expected


#: Forms of each operation: in every space, with every order and scope.
SEMANTICS = ("", ".release.cta", ".release.cluster", ".relaxed.cta", ".relaxed.cluster")
SPACES = {"": "[%rd30+{0}]", ".shared": "[bar+{0}]", ".shared::cta": "[bar+{0}]", ".shared::cluster": "[%r30+{0}]"}


class Sequence:
    """Random operations of one thread on an mbarrier at byte 16, with what each must show."""

    def __init__(self, seed: int, length: int) -> None:
        self.random = random.Random(seed)
        self.model = Model(self.random.choice([1, 2, 3, 7, 20]))
        self.lines = [f"mbarrier.init.shared::cta.b64 [bar+16], {self.model.expected};"]
        self.shown: list[int] = []
        self.states: list[tuple[str, int]] = []  # registers with states, and their phases
        for _ in range(length):
            getattr(
                self,
                self.random.choice(["arrive", "arrive", "expect", "complete", "combined", "kept", "wait", "parity"]),
            )()

    def form(self, name: str, rest: str, *, remote: bool = True) -> str:
        spaces = list(SPACES) if remote else ["", ".shared", ".shared::cta"]
        space = self.random.choice(spaces)
        relaxed = name.endswith("_tx") and "arrive" not in name
        semantics = self.random.choice(["", ".relaxed.cta", ".relaxed.cluster"] if relaxed else SEMANTICS)
        return f"mbarrier.{name}{semantics}{space}.b64 {rest.format(SPACES[space].format(16))};"

    def show(self, register: str, value: int) -> None:
        self.lines.append(f"st.global.b64 [%out+{8 * len(self.shown)}], {register};")
        self.shown.append(value)

    def counts(self) -> int:
        return self.random.randint(1, min(self.model.pending, 3)) if self.model.pending else 0

    def arrive(self) -> None:
        """9.7.13.15.7, 9.7.13.15.13, 9.7.13.15.14"""
        count, drop = self.counts(), self.random.random() < 0.2
        if not count or (drop and self.model.expected - count < 1):
            return
        name, register = "arrive" + "_drop" * drop, f"%rd{len(self.states) % 8}"
        amount = f", {count}" if count > 1 or self.random.random() < 0.5 else ""
        takes = self.random.random() < 0.5
        self.lines.append(self.form(name, f"{register if takes else '_'}, {{0}}{amount}", remote=not takes))
        self._arrived(count, drop, register if takes else "")

    def _arrived(self, count: int, drop: bool, register: str) -> None:
        if register:
            self.states = [s for s in self.states if s[0] != register] + [(register, self.model.phase)]
        self.model.pending -= count
        self.model.expected -= count if drop else 0
        self.model.possibly_complete()

    def expect(self) -> None:
        """9.7.13.15.5.1: the phase waits for more; it cannot be complete by that."""
        count = self.random.choice([0, 1, 16, 4096])
        if self.model.tx + count == 0 and self.model.pending == 0:
            return
        if self.model.tx + count <= MOST:
            self.lines.append(self.form("expect_tx", f"{{0}}, {count}"))
            self.model.tx += count

    def complete(self) -> None:
        """9.7.13.15.5.2: bytes may come before they are expected."""
        count = self.model.tx if self.model.tx > 0 else self.random.choice([1, 64])
        self.lines.append(self.form("complete_tx", f"{{0}}, {count}"))
        self.model.tx -= count
        self.model.possibly_complete()

    def combined(self) -> None:
        """.expect_tx: before the arrival, which counts 1."""
        drop = self.random.random() < 0.2
        if not self.model.pending or (drop and self.model.expected == 1):
            return
        count = max(0, -self.model.tx) + self.random.choice([0, 32])
        self.lines.append(self.form("arrive" + "_drop" * drop + ".expect_tx", f"_, {{0}}, {count}"))
        self.model.tx += count
        self._arrived(1, drop, "")

    def kept(self) -> None:
        """.noComplete, and the pending count before it (9.7.13.15.17)."""
        model = self.model
        most = model.pending if model.tx else model.pending - 1
        drop = self.random.random() < 0.2
        if most < 1 or (drop and model.expected < 2):
            return
        count, before = self.random.randint(1, min(most, 2 if not drop else 1)), model.pending
        register = f"%rd{len(self.states) % 8}"
        order = self.random.choice(["", ".release.cta"])
        space = self.random.choice(["", ".shared", ".shared::cta"])
        name = "arrive" + "_drop" * drop
        self.lines.append(
            f"mbarrier.{name}.noComplete{order}{space}.b64 {register}, {SPACES[space].format(16)}, {count};"
        )
        self._arrived(count, drop, register)
        self.lines.append(f"mbarrier.pending_count.b64 %r1, {register}; cvt.u64.u32 %rd20, %r1;")
        self.show("%rd20", before)

    def wait(self) -> None:
        """9.7.13.15.16: by states of the present phase and the one before."""
        near = [(register, phase) for register, phase in self.states if phase >= self.model.phase - 1]
        if near:
            register, phase = self.random.choice(near)
            self._test("", register, phase < self.model.phase)

    def parity(self) -> None:
        """Phases have parities 0, 1, 0 ...; the phase before the first is complete."""
        phase = self.model.phase - self.random.randint(0, 1)
        self._test(".parity", str(phase & 1), phase < self.model.phase)

    def _test(self, kind: str, operand: str, over: bool) -> None:
        name, order = (
            self.random.choice(["test_wait", "try_wait"]),
            self.random.choice(SEMANTICS).replace("release", "acquire"),
        )
        space = self.random.choice(["", ".shared", ".shared::cta"])
        hint = ", 20" if name == "try_wait" else ""
        self.lines.append(f"mbarrier.{name}{kind}{order}{space}.b64 %p1, {SPACES[space].format(16)}, {operand}{hint};")
        self.lines.append("selp.b64 %rd20, 1, 0, %p1;")
        self.show("%rd20", int(over))


@ENGINES
@rows("seed", range(12), share=6)
def test_sequences(seed: int, engine: str) -> None:
    sequence = Sequence(seed, 120)
    setup = "mov.b32 %r30, bar; cvt.u64.u32 %rd30, %r30; mov.u64 %rd30, bar; cvta.shared.u64 %rd30, %rd30;\n"
    out = run(engine, first(setup + "\n".join(sequence.lines)), words=len(sequence.shown), cluster=1)
    assert out.tolist() == sequence.shown
    assert sum(sequence.shown) > 0 and sequence.model.phase > 0


def test_sequences_are_varied() -> None:
    lines = "\n".join(line for seed in range(12) for line in Sequence(seed, 120).lines)
    for name in (
        "arrive.",
        "arrive_drop.",
        "expect_tx.",
        "complete_tx.",
        "noComplete",
        "pending_count",
        "test_wait",
        "try_wait",
    ):
        assert lines.count(name) > 3, name


# --- one by one -------------------------------------------------------------------------------------------------------


@ENGINES
@rows(("operations", "reason"), [
    ("init 1, arrive.noComplete 1", ".noComplete complete the phase"),
    ("init 2, arrive_drop.noComplete 2", ".noComplete complete the phase"),
    ("init 2, arrive_drop.noComplete 1, arrive.noComplete 1", ".noComplete complete the phase"),
    ("init 3, arrive_drop 2, arrive 2", "phase needs 1"),
    ("init 1, expect_tx 1048575, expect_tx 1", "tx-count becomes 1048576"),
    ("init 1, complete_tx 1048575, complete_tx 1", "tx-count becomes -1048576"),
    ("init 1, arrive.expect_tx 1048576", "tx-count becomes 1048576"),
    ("init 1048575, arrive 1048576", "1048576 arrivals at once"),
    ("init 1, inval, arrive 1", "not initialised"), ("init 1, inval, expect_tx 1", "not initialised"),
    ("init 1, inval, complete_tx 1", "not initialised"), ("init 1, inval, arrive_drop 1", "not initialised"),
    ("init 1048576", "cannot expect 1048576"), ("init 0", "cannot expect 0"),
])  # fmt: skip
def test_what_is_undefined_is_a_trap(operations: str, reason: str, engine: str) -> None:
    lines = []
    for operation in operations.split(", "):
        name, _, amount = operation.partition(" ")
        state = "%rd1, " if name.startswith("arrive") else ""
        more = f" mov.u32 %r1, {amount};" if amount else ""
        lines.append(f"{more} mbarrier.{name}.shared::cta.b64 {state}[bar]{', %r1' if amount else ''};")
    with pytest.raises(ptxtools.Trap, match=reason):
        run(engine, first("\n".join(lines)))


@ENGINES
@pytest.mark.parametrize("count", [1, 2, MOST])
def test_the_range_of_counts(count: int, engine: str) -> None:
    """All of 1 to 2^20 - 1 arrivals, at once, and tx-counts up to 2^20 - 1 in both directions."""
    body = f"""mbarrier.init.shared::cta.b64 [bar], {count};
    mov.u32 %r1, {MOST}; mbarrier.complete_tx.shared::cta.b64 [bar], %r1;
    mbarrier.expect_tx.shared::cta.b64 [bar], %r1; mbarrier.expect_tx.shared::cta.b64 [bar], %r1;
    mov.u32 %r2, {count}; mbarrier.arrive.shared::cta.b64 %rd1, [bar], %r2;
    mbarrier.test_wait.shared::cta.b64 %p1, [bar], %rd1; mbarrier.complete_tx.shared::cta.b64 [bar], %r1;
    mbarrier.test_wait.shared::cta.b64 %p2, [bar], %rd1;
    selp.b64 %rd2, 1, 0, %p1; selp.b64 %rd3, 1, 0, %p2; st.global.v2.b64 [%out], {{%rd2, %rd3}};"""
    assert run(engine, first(body))[:2].tolist() == [0, 1]


@ENGINES
@pytest.mark.parametrize("hint", [1, 500, 30000, None])
def test_try_wait_comes_back_after_its_time(hint: int | None, engine: str) -> None:
    """False when the time is over; without a hint after a millisecond of virtual time, which is the simulator's."""
    operand = "" if hint is None else f", {hint}"
    body = f"""mbarrier.init.shared::cta.b64 [bar], 1; mov.u64 %rd1, %globaltimer;
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0{operand};
    mov.u64 %rd2, %globaltimer; sub.u64 %rd2, %rd2, %rd1; selp.b64 %rd3, 1, 0, %p1;
    st.global.v2.b64 [%out], {{%rd2, %rd3}};"""
    took, over = run(engine, first(body))[:2].tolist()
    assert not over and (hint or 1_000_000) <= took <= (hint or 1_000_000) + 2000


@ENGINES
def test_a_phase_that_ends_while_threads_wait(engine: str) -> None:
    """All 32 lanes of warp 1 wait by one state; lane 0 of warp 0 arrives late; each goes on with True."""
    body = """setp.eq.u32 %p1, %r0, 0; @%p1 mbarrier.init.shared::cta.b64 [bar], 2; bar.sync 0;
    setp.lt.u32 %p2, %r0, 32; @%p2 bra LATE;
    setp.eq.u32 %p3, %r0, 32; @%p3 mbarrier.arrive.shared::cta.b64 %rd1, [bar]; @%p3 st.shared.b64 [bar+64], %rd1;
    bar.warp.sync -1; ld.shared.b64 %rd1, [bar+64];
    mbarrier.try_wait.shared::cta.b64 %p4, [bar], %rd1, 0x3B9ACA00; selp.b64 %rd2, 1, 0, %p4;
    sub.u32 %r1, %r0, 32; mad.wide.u32 %rd3, %r1, 8, %out; st.global.b64 [%rd3], %rd2; bra END;
    LATE: @%p1 nanosleep.u32 50000; @%p1 mbarrier.arrive.shared::cta.b64 _, [bar]; END:"""
    assert run(engine, body, block=64)[:32].tolist() == [1] * 32


@ENGINES
@pytest.mark.parametrize(("order", "value"), [(".release.cluster", 5), (".relaxed.cluster", 5)])
def test_threads_that_leave_drop_out(order: str, value: int, engine: str) -> None:
    """CTAs of a cluster leave one after another; the barrier of CTA 0 expects as many fewer in each phase."""
    body = f"""mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p1, %r1, 0; mov.u32 %r9, {value};
    @%p1 mbarrier.init.shared::cta.b64 [bar], 4;
    barrier.cluster.arrive; barrier.cluster.wait;
    mov.u32 %r2, bar; mapa.shared::cluster.u32 %r3, %r2, 0; mov.u32 %r4, 0;
    L: setp.eq.u32 %p2, %r4, %r1; @%p1 bra STAY; @%p2 bra DROP;
    STAY: mbarrier.arrive{order}.shared::cluster.b64 _, [%r3];
    @!%p1 bra NEXT; and.b32 %r5, %r4, 1;
    W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [bar], %r5; @!%p3 bra W;
    NEXT: barrier.cluster.arrive; barrier.cluster.wait;
    add.u32 %r4, %r4, 1; setp.lt.u32 %p4, %r4, {value}; @%p4 bra L;
    @%p1 st.global.b64 [%out], 7; bra END;
    DROP: mbarrier.arrive_drop{order}.shared::cluster.b64 _, [%r3];
    barrier.cluster.arrive; barrier.cluster.wait; END:"""
    assert run(engine, body, block=1, grid=4, cluster=4)[0] == 7


def test_states_are_refused_where_none_are_returned() -> None:
    """Barriers of other CTAs return no state: the destination is a sink."""
    with pytest.raises(ptxtools.PtxError, match="state"):
        run("native", first("mbarrier.arrive.release.cluster.shared::cluster.b64 %rd1, [bar];"))


def late(body: str) -> Any:
    out = np.zeros(4, np.uint64)
    device = ptxtools.Device("sm_100a", checks="asynccheck")
    text = f""".version 8.7
    .target sm_100a
    .address_size 64
    .visible .entry k(.param .u64 out) {{ .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>, %out;
    .shared .align 16 .b64 bar[8]; ld.param.u64 %out, [out]; {body} ret; }}"""
    device.launch(ptxtools.loads(text)["k"], 1, 1, [out], timeout=HANG)
    return out.tolist()


def test_arrivals_of_copies_come_when_the_copies_are_done() -> None:
    """9.7.13.15.15: without .noinc the pending count does not change in the end; with it, it was accounted for."""
    body = """mbarrier.init.shared::cta.b64 [bar], {0};
    st.global.b64 [%out+8], 9; cp.async.ca.shared::cta.global [bar+16], [%out+8], 8;
    cp.async.mbarrier.arrive{1}.shared::cta.b64 [bar];
    mbarrier.arrive.shared::cta.b64 %rd1, [bar]; mbarrier.test_wait.shared::cta.b64 %p1, [bar], %rd1;
    W: mbarrier.try_wait.shared::cta.b64 %p2, [bar], %rd1; @!%p2 bra W;
    ld.shared.b64 %rd2, [bar+16]; st.global.b64 [%out], %rd2;
    selp.b64 %rd3, 1, 0, %p1; st.global.b64 [%out+16], %rd3;"""
    assert late(body.format(1, "")) == [9, 9, 0, 0]
    assert late(body.format(2, ".noinc")) == [9, 9, 0, 0]
