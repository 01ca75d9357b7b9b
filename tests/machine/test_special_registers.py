"""Every special register of chapter 10, on a target of each kind: type, range, and where it is fixed its value."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

import ptxtools
from ptxtools.isa.registers import SPECIAL

GRID, BLOCK, CLUSTER = (4, 6, 1), (8, 5, 2), (2, 3, 1)
THREADS, CTAS = 80, 24
DYNAMIC, STATIC, SMS = 100, 64, 3
NUMBER = 1 << 64


class Who(NamedTuple):
    """A thread: its place, its CTA's place, and the shape of clusters."""

    tid: tuple[int, int, int]
    cta: tuple[int, int, int]
    linear: int
    cluster: tuple[int, int, int]

    @property
    def lane(self) -> int:
        return self.linear % 32

    @property
    def rank(self) -> int:
        inside = [self.cta[i] % self.cluster[i] for i in range(3)]
        return inside[0] + self.cluster[0] * (inside[1] + self.cluster[1] * inside[2])


def _three(values: Callable[[Who], tuple[int, ...]]) -> list[Callable[[Who], int]]:
    return [lambda who, i=i: values(who)[i] for i in range(3)]


#: By name, or by name and component: what a thread finds, or the least and the greatest that it may find.
EXPECTED: dict[str, object] = {
    "%laneid": lambda who: who.lane, "%warpid": lambda who: who.linear // 32, "%nwarpid": (3, 64),
    "%smid": (0, SMS - 1), "%nsmid": (SMS, SMS), "%gridid": (0, NUMBER),
    "%is_explicit_cluster": lambda who: int(who.cluster != (1, 1, 1)),
    "%cluster_ctarank": lambda who: who.rank, "%cluster_nctarank": lambda who: int(np.prod(who.cluster)),
    "%lanemask_eq": lambda who: 1 << who.lane, "%lanemask_lt": lambda who: (1 << who.lane) - 1,
    "%lanemask_le": lambda who: (2 << who.lane) - 1, "%lanemask_gt": lambda who: (1 << 32) - (2 << who.lane),
    "%lanemask_ge": lambda who: (1 << 32) - (1 << who.lane),
    "%clock": (0, 1 << 32), "%clock_hi": (0, 1 << 32), "%clock64": (0, NUMBER),
    "%globaltimer": (0, NUMBER), "%globaltimer_lo": (0, 1 << 32), "%globaltimer_hi": (0, 1 << 32),
    "%dynamic_smem_size": (DYNAMIC, DYNAMIC), "%total_smem_size": (DYNAMIC + STATIC, DYNAMIC + STATIC + 256),
    "%aggr_smem_size": (DYNAMIC + STATIC, DYNAMIC + STATIC + 2048), "%current_graph_exec": (0, 0),
    "%perctamemoryoffset": (1, NUMBER), "%perctamemorysize": (1024, 1024),
    **{f"%pm{n}{suffix}": (0, NUMBER) for n in range(8) for suffix in ("", "_64")},
    **{f"%envreg{n}": (0, 0) for n in range(32)},
    **{f"%reserved_smem_offset_{part}": (0, 2048) for part in ("begin", "end", "cap", "0", "1")},
}  # fmt: skip
for _base, _values in {
    "%tid": lambda who: who.tid, "%ntid": lambda who: BLOCK, "%ctaid": lambda who: who.cta,
    "%nctaid": lambda who: GRID, "%cluster_nctaid": lambda who: who.cluster,
    "%clusterid": lambda who: tuple(a // b for a, b in zip(who.cta, who.cluster, strict=True)),
    "%nclusterid": lambda who: tuple(a // b for a, b in zip(GRID, who.cluster, strict=True)),
    "%cluster_ctaid": lambda who: tuple(a % b for a, b in zip(who.cta, who.cluster, strict=True)),
}.items():  # fmt: skip
    for _component, _value in zip("xyz", _three(_values), strict=True):
        EXPECTED[f"{_base}.{_component}"] = _value
    EXPECTED[f"{_base}.w"] = (0, 0)


def names(target: str) -> list[str]:
    """Registers and components that a target has."""
    found = []
    for name, register in SPECIAL.items():
        if int(register.target[3:]) <= int(target[3:]):
            found += [f"{name}.{c}" for c in register.components] or [name]
    return found


def read(engine: str, target: str, wanted: list[str], cluster: tuple[int, int, int]) -> np.ndarray:
    """What each thread of each CTA finds: CTAs x threads x registers."""
    moves = []
    for number, name in enumerate(wanted):
        type_ = SPECIAL[name.partition(".")[0]].type
        to = {"u64": "mov.u64 %d1, {0};", "pred": "mov.pred %p1, {0}; selp.u64 %d1, 1, 0, %p1;"}
        moves.append(to.get(type_, f"mov.{type_} %r1, {{0}}; cvt.u64.u32 %d1, %r1;").format(name))
        moves.append(f"st.global.u64 [%out+{8 * number}], %d1;")
    memory = ".minperctamemory 100" if "%perctamemorysize" in wanted else ""
    text = f""".version 9.4
.target {target}
.address_size 64
.visible .entry k(.param .u64 out) {memory} {{
    .reg .b32 %r<12>; .reg .b64 %d<4>; .reg .u64 %out, %w; .reg .pred %p<2>; .shared .align 8 .b8 some[{STATIC}];
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ctaid.y; mad.lo.u32 %r2, %r3, {GRID[0]}, %r2; mov.u32 %r3, %tid.x;
    mov.u32 %r4, %tid.y; mov.u32 %r5, %tid.z; mad.lo.u32 %r4, %r5, {BLOCK[1]}, %r4;
    mad.lo.u32 %r3, %r4, {BLOCK[0]}, %r3; mad.lo.u32 %r2, %r2, {THREADS}, %r3; mul.wide.u32 %w, %r2, {8 * len(wanted)};
    ld.param.u64 %out, [out]; add.u64 %out, %out, %w; st.shared.u32 [some], %r2;
    {" ".join(moves)} ret; }}"""
    out = np.zeros((CTAS, THREADS, len(wanted)), np.uint64)
    device = ptxtools.Device(target, sms=SMS, engine=engine)
    options = {} if cluster == (1, 1, 1) else {"cluster": cluster}
    device.launch(ptxtools.loads(text)["k"], GRID, BLOCK, [out], shared=DYNAMIC, **options)
    return out


@pytest.mark.share(3)
@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize(
    ("target", "cluster"),
    [("sm_75", (1, 1, 1)), ("sm_80", (1, 1, 1)), ("sm_90", (1, 1, 1)), ("sm_90", CLUSTER), ("sm_100", CLUSTER),
     ("sm_120", (1, 1, 1))],
)  # fmt: skip
def test_values(engine, target, cluster):
    wanted = names(target)
    found = read(engine, target, wanted, cluster)
    wrong = []
    for c in range(CTAS):
        for t in range(THREADS):
            place = (t % BLOCK[0], t // BLOCK[0] % BLOCK[1], t // (BLOCK[0] * BLOCK[1]))
            who = Who(place, (c % GRID[0], c // GRID[0], 0), t, cluster)
            for number, name in enumerate(wanted):
                value, expected = int(found[c, t, number]), EXPECTED[name]
                low, high = expected if isinstance(expected, tuple) else (expected(who),) * 2
                if not low <= value <= high:
                    wrong.append((name, c, t, value, low, high))
    assert wrong[:5] == []


def test_every_register_is_in_the_table():
    assert {name.partition(".")[0] for name in EXPECTED} == set(SPECIAL)
    assert set(names("sm_90")) == set(EXPECTED)


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_halves_of_clocks_belong_together(engine):
    """%clock and %clock_hi are the halves of %clock64, and so with the timer."""
    wanted = ["%clock64", "%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi",
              "%globaltimer"]  # fmt: skip
    found = read(engine, "sm_90", wanted, (1, 1, 1)).reshape(-1, 8)
    for row in found.tolist():
        assert row[0] <= (row[1] | row[2] << 32) <= row[3]
        assert row[4] <= (row[5] | row[6] << 32) <= row[7]


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_reserved_shared_memory_is_nobody_elses(engine: str) -> None:
    """10.29: what the system's functions keep there, such as cooperative groups, lies beside all variables."""
    text = """.version 9.0
.target sm_90
.address_size 64
.extern .shared .align 16 .b8 more[];
.visible .entry k(.param .u64 out) {
    .reg .b32 %r<12>; .reg .b64 %out; .shared .b32 own[8]; ld.param.u64 %out, [out];
    mov.u32 %r1, %reserved_smem_offset_1; mov.u32 %r2, %reserved_smem_offset_end; sub.u32 %r3, %r2, %r1;
    st.shared.u32 [own], 5; st.shared.u32 [own+28], 6; st.shared.u32 [more], 7; st.shared.u32 [more+12], 8;
    st.shared.u32 [%r1], 1; st.shared.u32 [%r2+-4], 2; ld.shared.u32 %r4, [own]; ld.shared.u32 %r5, [own+28];
    ld.shared.u32 %r6, [more]; ld.shared.u32 %r7, [more+12]; ld.shared.u32 %r8, [%r1]; ld.shared.u32 %r9, [%r2+-4];
    ld.shared.u32 %r10, [%r1+16];
    st.global.v4.u32 [%out], {%r4, %r5, %r6, %r7}; st.global.v4.u32 [%out+16], {%r8, %r9, %r3, %r10}; ret; }"""
    device, out = ptxtools.Device("sm_90", engine=engine, checks="memcheck,initcheck"), np.zeros(8, np.uint32)
    result = device.launch(ptxtools.loads(text)["k"], 1, 1, [out], shared=16)
    assert not result.reports and out[:6].tolist() == [5, 6, 7, 8, 1, 2] and out[6] >= 288
