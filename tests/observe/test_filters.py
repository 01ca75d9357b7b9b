"""Filters of accesses change nothing that a checker says: native code passes by what Python would have let pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools.diagnostics import TrapKind
from ptxtools.machine.filters import stretches
from ptxtools.native.loop import filters
from ptxtools.observe.ground import Ground

from . import bugs
from .programs import HEAD, HEAP, module

ROWS, LANES = 48, 32
#: Of each column of offsets: the access that uses it, its size, and bytes of the variable that it belongs to.
COLUMNS = {
    "ld.global.u32 %r0, [%x]": ("a", 4, 1024),
    "ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%x+16]": ("a", 16, 1008),
    "st.global.u8 [%x], %l": ("a", 1, 1024),
    "@%p st.global.v2.u32 [%x+-8], {%r6, %l}": ("a", 8, 1024),
    "@!%p atom.global.add.u32 %r1, [%x], 1": ("a", 4, 1024),
    "ld.u64 %d0, [%x]": ("a", 8, 1024),
    "st.shared.u32 [%x], %l": ("s", 4, 256),
    "@%p ld.shared.v2.u64 {%d0, %d1}, [%x]": ("s", 16, 256),
    "ld.shared.u16 %h0, [s]": ("s", 2, 256),
    "st.u32 [%x], %l": ("gs", 4, 256),
    "st.local.u32 [%x], %l": ("v", 4, 64),
    "ld.local.u64 %d1, [%x]": ("v", 8, 64),
    "ld.u8 %h1, [%x]": ("gv", 1, 64),
    "ld.u32 %r2, [%x+4]": ("mix", 4, 64),
}
_BASES = {
    "a": "mov.u64 %b, %a;",
    "s": "mov.u64 %b, s;",
    "gs": "mov.u64 %b, s; cvta.shared.u64 %b, %b;",
    "v": "mov.u64 %b, v;",
    "gv": "mov.u64 %b, v; cvta.local.u64 %b, %b;",
    "mix": "mov.u64 %b, s; cvta.shared.u64 %b, %b; @%p mov.u64 %b, %a; @%q mov.u64 %b, v; @%q cvta.local.u64 %b, %b;",
}


def _kernel() -> ptxtools.Module:
    lines = []
    for number, (text, (base, _, _)) in enumerate(COLUMNS.items()):
        lines.append(f"{_BASES[base]} ld.global.s64 %x, [%t+{8 * LANES * number}]; add.s64 %x, %x, %b;")
        lines.append(text + ";")
    body = "\n  ".join(lines)
    return ptxtools.loads(f""".version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 t) {{
  .reg .b64 %a, %b, %t, %x, %d<4>; .reg .b32 %l, %j, %r<8>; .reg .b16 %h<4>; .reg .pred %p, %q, %again;
  .shared .align 16 .b8 s[256];
  .local .align 8 .b8 u[24];
  .local .align 8 .b8 v[64];
  ld.param.u64 %a, [a]; ld.param.u64 %t, [t];
  mov.u32 %l, %tid.x; mul.wide.u32 %x, %l, 8; add.u64 %t, %t, %x; mov.u32 %j, 0; mov.u32 %r6, 7;
  and.b32 %r0, %l, 3; setp.eq.u32 %p, %r0, 1; setp.eq.u32 %q, %r0, 2;
AGAIN:
  {body}
  add.u64 %t, %t, {8 * LANES * len(COLUMNS)}; add.u32 %j, %j, 1; setp.lt.u32 %again, %j, {ROWS}; @%again bra AGAIN;
  ret;
}}""")


def _offsets(seed: int) -> Any:
    """Multiples of the size inside of the variable, in usual and in any order; in one row of six some that are not."""
    random = np.random.default_rng(seed)
    table = np.zeros((ROWS, len(COLUMNS), LANES), np.int64)
    for row in range(ROWS):
        for column, (_, size, extent) in enumerate(COLUMNS.values()):
            shape = random.integers(3)
            count = extent // size
            places = random.integers(count, size=LANES) if shape else np.arange(LANES) % count
            places = np.full(LANES, places[0]) if shape == 2 else places
            table[row, column] = size * places
            if random.random() < 1 / 6:
                lanes = random.random(LANES) < random.choice([0.05, 0.5])
                wild = random.choice(
                    [1, -size, extent, extent - size + 1, 1 << 20, -(1 << 40), -(1 << 28) - size, 1 << 58], size=LANES
                )
                table[row, column] = np.where(lanes, wild, table[row, column])
    return table


def _run(table: Any, engine: str, checks: str = "memcheck") -> tuple[Any, ...]:
    memory = np.zeros(256, np.uint32)
    result = ptxtools.Device(engine=engine, checks=checks).launch(_kernel()["k"], 1, LANES, [memory, table])
    return memory.tolist(), [
        (found.checker, found.line, found.message, found.details, found.thread, found.count) for found in result.reports
    ]


def _unfiltered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filters, "prepare", lambda launch, encoded, shape: None)


@pytest.mark.share(8)
@pytest.mark.parametrize("checks", ["memcheck", "memcheck,initcheck"])
@pytest.mark.parametrize("seed", range(6))
def test_reports_are_those_of_python_alone(seed: int, checks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = _offsets(seed)
    filtered = _run(table, "native", checks)
    assert len(filtered[1]) > 5
    assert filtered == _run(table, "reference", checks)
    _unfiltered(monkeypatch)
    assert filtered == _run(table, "native", checks)


#: Functions with arrays of their own, whose callers are as deep as it comes, and an array that is passed by value.
CALLS = """
.func inner (.param .b64 p, .param .b64 t, .param .b32 n, .param .align 8 .b8 s[16]) {{
  .local .align 8 .b8 v[32]; .local .align 4 .b8 w[12]; .reg .b64 %p, %t, %x, %y; .reg .b32 %r<6>; .reg .pred %p0, %p1;
  ld.param.b64 %p, [p]; ld.param.b64 %t, [t]; ld.param.b32 %r0, [n]; ld.param.b32 %r3, [s+4];
  ld.global.s32 %x, [%t]; mov.u64 %y, v; add.u64 %y, %y, %x; st.local.u32 [%y], %r3;
  ld.global.s32 %x, [%t+4]; mov.u64 %y, w; add.u64 %y, %y, %x; {more}
  ld.global.s32 %x, [%t+8]; add.u64 %x, %p, %x; ld.u32 %r2, [%x];
  setp.eq.u32 %p0, %r0, 0; @%p0 bra DONE; sub.u32 %r0, %r0, 1; add.u64 %t, %t, 12; mov.u64 %y, v; cvta.local.u64 %y, %y;
  {{ .param .b64 a; .param .b64 b; .param .b32 c; .param .align 8 .b8 d[16]; st.param.b64 [a], %y; st.param.b64 [b], %t;
  st.param.b32 [c], %r0; st.param.b32 [d], %r3; st.param.b32 [d+4], %r3; st.param.b64 [d+8], %t;
  call inner, (a, b, c, d); }}
DONE: ret; }}
"""
CALLER = """.local .align 8 .b8 x[32]; .local .align 8 .b8 y[16]; .reg .b64 %t; ld.param.u64 %t, [a];
  mad.wide.u32 %t, %i, 48, %t; and.b32 %r2, %i, {depth}; mov.u64 %b, x; cvta.local.u64 %b, %b;
  {{ .param .b64 p; .param .b64 q; .param .b32 n; .param .align 8 .b8 s[16]; st.param.b64 [p], %b; st.param.b64 [q], %t;
  st.param.b32 [n], %r2; st.param.b32 [s+4], %i; call inner, (p, q, n, s); }}"""
#: Loads or stores of a called function's second array.
_SECOND = (
    "ld.local.u32 %r1, [%y];",
    "cvta.local.u64 %y, %y; st.u32 [%y], %r3;",
    "cvta.local.u64 %y, %y; ld.u32 %r1, [%y];",
)


def _called(seed: int, wild: bool) -> tuple[ptxtools.Kernel, Any]:
    """A kernel that calls, and offsets for the accesses of each thread at each depth, some of them beyond."""
    random = np.random.default_rng(seed)
    outer = CALLS.format(more=random.choice(_SECOND))
    offsets = 4 * np.stack([random.integers(n, size=(LANES, 4)) for n in (8, 3, 8)], axis=2).astype(np.int32)
    beyond = random.random(offsets.shape) < 0.06 * wild
    offsets[beyond] = random.choice([-4, 12, 16, 32, 36, 40, 60, 100, 500, 2, 1 << 20, -(1 << 20)], size=beyond.sum())
    return module(CALLER.format(depth=random.choice([0, 1, 3])), outer=outer)["k"], offsets


@pytest.mark.parametrize("seed", range(12))
def test_local_variables_of_called_functions(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def found(engine: str) -> list[Any]:
        kernel, offsets = _called(seed, wild=True)
        result = ptxtools.Device(engine=engine, checks="memcheck").launch(kernel, 1, LANES, [offsets])
        return [(one.line, one.message, one.details, one.thread, one.count) for one in result.reports]

    filtered = found("native")
    assert filtered and filtered == found("reference")
    _unfiltered(monkeypatch)
    assert filtered == found("native")


@pytest.mark.parametrize("checks", ["memcheck", "memcheck,synccheck,leakcheck"])
@pytest.mark.parametrize("seed", range(3))
def test_python_sees_no_variables_of_called_functions(seed: int, checks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    served, (kernel, offsets) = _served(monkeypatch), _called(seed, wild=False)
    assert not ptxtools.Device(checks=checks).launch(kernel, 1, LANES, [offsets]).reports
    assert not [kind for kind in served if kind.startswith("observe.access")]


FILTERED = ("memcheck", "initcheck", "synccheck")


def _found(pairs: list[bugs.Pair]) -> list[str]:
    """What checkers with filters say of bugs and of their corrections: all together, and of some also the one alone."""
    every = [_shown(bugs.run(pair, sign, ",".join(FILTERED))) for pair in pairs for sign in "-+"]
    alone = [pair for pair in pairs if pair.checker in FILTERED]
    return every + [_shown(bugs.run(pair, "-", pair.checker)) for pair in alone]


def _shown(found: list[Any]) -> str:
    """What was found. The clock says whether an endless loop is seen before it has too many instructions."""
    endless = TrapKind.DEADLOCK, TrapKind.TIMEOUT
    return bugs.shown(["no end" if getattr(one, "kind", None) in endless else one for one in found])


@pytest.mark.share(10)
@pytest.mark.parametrize("path", sorted(bugs.FOLDER.glob("*.bugs")), ids=lambda path: path.stem)
def test_seeded_bugs_are_reported_alike(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = bugs.read(path)
    filtered = _found(pairs)
    _unfiltered(monkeypatch)
    assert filtered == _found(pairs)


#: A block with accesses at constant distances from three addresses; one is changed inside, and one access has a guard.
UNROLLED = """mov.u32 %w, 0; setp.lt.u32 %q, %l, 7; add.u64 %t, %a, 1024;
L: mad.wide.u32 %x, %i, 8, %t; ld.global.s64 %b, [%x]; add.s64 %b, %b, %a; ld.global.u32 %r6, [%x+512];
ld.global.u32 %r0, [%b]; ld.global.u32 %r1, [%b+4]; ld.global.u32 %r2, [%b+-8]; ld.global.v2.u32 {%r3, %r4}, [%b+8];
st.global.u32 [%b+4], %r0; ld.global.v2.u32 {%r3, %r4}, [%b+16]; @%q st.global.u32 [%b+12], %r1; st.global.u32 [%b], %i;
ld.shared.u32 %r0, [%r6]; add.u32 %r6, %r6, 4; st.shared.u32 [%r6], %r0; ld.shared.u32 %r1, [%r6+4];
st.shared.u32 [%r6+60], %r1; ld.shared.u32 %r2, [%r6+8]; red.global.add.u32 [%b+-4], 1; red.global.add.u32 [%b+20], 1;
add.u64 %t, %t, 1024; add.u32 %w, %w, 1; setp.lt.u32 %p, %w, 24; @%p bra L;"""


@pytest.mark.share(4)
@pytest.mark.parametrize("checks", ["memcheck", "memcheck,initcheck,synccheck"])
@pytest.mark.parametrize("seed", range(4))
def test_accesses_that_are_looked_at_together_are_judged_apart(
    seed: int, checks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(seed)
    table = np.zeros((25, 128), np.int64)
    table[1:, :64] = 8 * random.integers(1, 120, size=(24, 64))
    table[1:, 64:] = 4 * random.integers(100, size=(24, 64))
    for row in random.integers(1, 25, size=8 if seed else 0):
        some = random.random(64) < 0.1
        table[row, :64][some] += random.choice([-1, 4, 1 << 20, -(1 << 34), -1000], size=some.sum())
        table[row, 64:][some] += random.choice([1, 400, 1 << 20], size=some.sum())
    kernel = module(".reg .b64 %t, %x;" + UNROLLED)["k"]

    def run(engine: str) -> tuple[Any, Any]:
        device, memory = ptxtools.Device(engine=engine, checks=checks), table.copy()
        reports = device.launch(kernel, 1, 32, [memory], shared=512).reports  # one warp: its accesses have one order
        return memory.tolist(), [
            (found.checker, found.line, found.message, found.details, found.thread, found.count) for found in reports
        ]

    served = _served(monkeypatch)
    filtered = run("native")
    if checks == "memcheck":
        assert bool(served) == bool(seed) == bool(filtered[1])
    assert filtered == run("reference")
    _unfiltered(monkeypatch)
    assert filtered == run("native")


class _Counter:
    """How often Python is told of accesses."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from ptxtools.machine import events, looks

        self.count = 0

        def counted(view: Any) -> None:
            self.count += 1
            looks.access(view)

        monkeypatch.setitem(events.HANDLERS, "observe.access", counted)


LOOP = """mov.u32 %r0, 0;
L: mad.wide.u32 %b, %i, 4, %a; ld.global.u32 %r1, [%b]; st.global.u32 [%b], %r1;
add.u32 %r0, %r0, 1; setp.lt.u32 %p, %r0, 100; @%p bra L;"""


def test_python_sees_what_is_wrong_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 4 x 2 x 200 accesses of warps none that is right, in the first launch and in others."""
    counter, kernel = _Counter(monkeypatch), module(LOOP)["k"]
    device = ptxtools.Device(checks="memcheck,initcheck,synccheck,asynccheck", threads=1)
    words = np.zeros(64, np.uint32)
    for _ in range(2):
        assert not device.launch(kernel, 4, 64, [words]).reports
        assert counter.count == 0
    assert device.launch(kernel, 4, 64, [words[:48]]).reports
    assert counter.count == 4 * 200


#: Half of b is written by the first half of the threads, and read by the others behind a barrier and through a shuffle.
#: At the end a short branch, of which the product is made for all lanes.
EXCHANGE = """.shared .align 8 .b8 s[512]; .local .align 8 .b8 v[64];
and.b32 %r0, %i, 7; cvt.u64.u32 %b, %r0; shl.b64 %b, %b, 3; mov.u64 %c, v; add.u64 %b, %b, %c; st.local.u32 [%b+4], %i;
st.local.u32 [%b], %i; ld.local.u64 %c, [%b]; cvta.local.u64 %b, %b; ld.u16 %h0, [%b+6];
mov.u32 %r0, s; mad.lo.u32 %r0, %i, 8, %r0; st.shared.v2.u32 [%r0], {%i, %i}; bar.sync 0; bar.sync 1, 64;
xor.b32 %r0, %r0, 256; ld.shared.u16 %h0, [%r0+2]; ld.shared.u64 %b, [%r0]; bar.warp.sync 0xffffffff;
setp.lt.u32 %p, %i, 32; shfl.sync.bfly.b32 %r1, %i, 1, 31, 0xffffffff; vote.sync.ballot.b32 %r2, %p, 0xffffffff;
 shl.b32 %r0, %i, 2; and.b32 %r0, %r0, 127; cvt.u64.u32 %b, %r0; add.u64 %b, %a, %b;
@%p st.global.u32 [%b], %r1; bar.sync 0; @!%p ld.global.u32 %r1, [%b]; @!%p ld.global.u8 %h0, [%b+3];
@%p bra END; ld.global.u32 %r5, [%b]; mul.lo.u32 %r6, %r5, 3; xor.b32 %r6, %r6, 1; st.shared.u32 [%r0], %r6; END:"""
_NATIVELY = "memcheck,initcheck,synccheck,asynccheck"


def _served(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How often Python serves each kind of event."""
    from ptxtools.native.loop import events

    counts: dict[str, int] = {}
    found = events.find

    def find(launch: Any, kind: str) -> Any:
        counts[kind] = counts.get(kind, 0) + 1
        return found(launch, kind)

    monkeypatch.setattr(events, "find", find)
    return counts


@pytest.mark.parametrize("checks", [*_NATIVELY.split(","), _NATIVELY])
def test_python_sees_nothing_of_a_kernel_that_is_right(checks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    served, device = _served(monkeypatch), ptxtools.Device(checks=checks)
    fresh = device.alloc(256)
    for _ in range(2):
        assert not device.launch(module(EXCHANGE)["k"], 3, 64, [fresh]).reports
    assert not served


#: A product that begins its accumulator anew, if its scale is 0.
PRODUCT = """mov.u32 %r0, 0; shl.b32 %r20, %i, 4; add.u32 %r20, %r20, %s;
  st.shared.v4.u32 [%r20], {{%r0, %r0, %r0, %r0}};
  fence.proxy.async; bar.sync 0; shr.u32 %r21, %s, 4; cvt.u64.u32 %d1, %r21; or.b64 %d1, %d1, 0x0000000800080000;
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%f0, %f1, %f2, %f3}}, %d1, %d1, {}, 1, 1, 0, 0;
  wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
  mad.wide.u32 %d3, %i, 4, %a; st.global.f32 [%d3], %f0;"""


@pytest.mark.parametrize("scale", [0, 1])
def test_a_product_that_begins_anew_reads_no_accumulator(scale: int, monkeypatch: pytest.MonkeyPatch) -> None:
    served = _served(monkeypatch)
    keys = {"target": "sm_90a", "block": "128", "smem": "2048", "words": "128"}
    found = bugs.run(bugs.Pair("product", "initcheck", keys, [(" ", PRODUCT.format(scale))]), "+", "initcheck")
    assert ("observe.unwritten" in served) == bool(scale)
    assert [one.kind for one in found] == ["register"] * scale


#: A tensor copy, and a store to memory where there might be a map.
TENSOR = """setp.ne.u32 %p0, %i, 0; @%p0 bra READY;
  mbarrier.init.shared.b64 [sh+512], 1; fence.mbarrier_init.release.cluster;
  add.u32 %r60, %s, 512; mbarrier.arrive.expect_tx.shared.b64 _, [%r60], 128; mov.u32 %r1, 0;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%s], [%m, {%r1, %r1}], [%r60];
  W: mbarrier.try_wait.parity.shared.b64 %p1, [%r60], 0; @!%p1 bra W; READY: bar.sync 0;
  mad.wide.u32 %d1, %i, 4, %b; st.global.u32 [%d1], %i;"""


def test_stores_matter_where_maps_are_in_global_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    served = _served(monkeypatch)
    keys = {"target": "sm_90", "block": "32", "map": "8x4"}
    assert not bugs.run(bugs.Pair("parameter", "memcheck", keys, [(" ", TENSOR)]), "+", "memcheck")
    assert "observe.access" not in served
    copied = [f"ld.u64 %d2, [%m+{at}]; st.global.u64 [%b+{at}], %d2;" for at in range(0, 128, 8)]
    body = f"setp.eq.u32 %p2, %i, 0; @!%p2 bra FROM; {' '.join(copied)} FROM: mov.b64 %m, %b; {TENSOR}"
    pair = bugs.Pair("copied", "memcheck", keys | {"words": "64"}, [(" ", body)])
    assert {one.kind for one in bugs.run(pair, "+", "memcheck")} == {"stale-map"}


#: Loads where 124 bytes are written, and whether they lack some.
LOADS = {
    "u32 %r1, [%a+120]": 0, "u32 %r1, [%a+124]": 1, "u8 %h0, [%a+123]": 0, "u8 %h0, [%a+124]": 1,
    "u16 %h0, [%a+122]": 0, "u16 %h0, [%a+126]": 1, "u64 %c, [%a+112]": 0, "u64 %c, [%a+120]": 1,
    "v4.u32 {%r1, %r2, %r3, %r4}, [%a+96]": 0, "v4.u32 {%r1, %r2, %r3, %r4}, [%a+112]": 1,
    "v2.u64 {%b, %c}, [%a+144]": 1,
}  # fmt: skip


@pytest.mark.parametrize("filtered", [True, False])
def test_bytes_that_nobody_wrote_are_found_one_by_one(filtered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not filtered:
        _unfiltered(monkeypatch)
    body = """mad.wide.u32 %b, %i, 4, %a; setp.lt.u32 %p, %i, 31; @%p st.global.u32 [%b], %i; bar.sync 0;
    setp.eq.u32 %p, %i, 40; @%p ld.global."""
    device = ptxtools.Device(checks="initcheck")
    found = {load: device.launch(module(f"{body}{load};")["k"], 1, 64, [device.alloc(256)]).reports for load in LOADS}
    assert {load: len(reports) for load, reports in found.items()} == LOADS
    assert {report.thread for reports in found.values() for report in reports} == {(40, 0, 0)}


def test_bounds_belong_to_the_launch() -> None:
    """What an earlier launch was allowed, with a larger buffer and the same code, says nothing about this one."""
    kernel, device = module(LOOP)["k"], ptxtools.Device(checks="memcheck")
    assert not device.launch(kernel, 1, 64, [np.zeros(64, np.uint32)]).reports
    found = device.launch(kernel, 1, 64, [np.zeros(48, np.uint32)]).reports
    assert [report.count for report in found] == [100, 100]


def test_who_else_listens_hears_of_every_access(monkeypatch: pytest.MonkeyPatch) -> None:
    class Listener:
        heard = 0

        def access(self, at: Any, access: Any) -> None:
            self.heard += 1

    counter, listener = _Counter(monkeypatch), Listener()
    ptxtools.Device(checks="memcheck", observers=[listener]).launch(module(LOOP)["k"], 1, 64, [np.zeros(64, np.uint32)])
    assert listener.heard == counter.count == 2 * 2 * 100


def test_blocks_of_the_heap_are_asked_for() -> None:
    body = """{ .param .b64 n; .param .b64 r; mov.b64 %c, 64; st.param.b64 [n], %c;
    call (r), malloc, (n); ld.param.b64 %b, [r]; }
    st.u32 [%b+60], %i; st.u32 [%b+64], %i;"""
    result = ptxtools.Device(checks="memcheck").launch(module(body, outer=HEAP)["k"], 1, 32, [np.zeros(64, np.uint32)])
    (found,) = result.reports
    assert found.count == 1 and "a heap block" in found.details[0]


def test_stretches_end_where_the_next_begins() -> None:
    rows = stretches([(0, 16), (16, 64), (32, 48), (50, 50), (60, 70)])
    assert rows.tolist() == [[0, 16, 0], [16, 32, 0], [32, 48, 0], [60, 70, 0]]
    assert stretches([(8, 9, 77)]).tolist() == [[8, 9, 77]] and stretches([]).shape == (0, 3)


def test_ground_that_changes_in_place() -> None:
    ground = Ground()
    rows = ground.rows

    def free(first: int, after: int) -> bool:
        return any(one <= first and after <= other for one, other, _ in rows.tolist())

    assert free(0, 1 << 20) and (np.diff(rows[:, 0].astype(np.float64)) >= 0).all()
    ground.take(64, 72)
    ground.take(64, 72)
    ground.take(0, 8)
    assert [free(at, at + 4) for at in (0, 4, 8, 60, 62, 64, 68, 72)] == [False] * 2 + [True] * 2 + [False] * 3 + [True]
    assert (np.diff(rows[:, 0].astype(np.float64)) >= 0).all() and ground.rows is rows
    ground.give(64, 72)
    assert not free(64, 68)
    ground.give(64, 72)
    assert free(64, 68) and not free(0, 4)
    ground.close("one")
    ground.close("two")
    ground.open("one")
    assert not free(64, 68)
    ground.open("two")
    assert free(64, 68)
    for number in range(100):  # more than there is room for
        ground.take(100 + 16 * number, 108 + 16 * number)
    assert not free(64, 68)


#: Only the CTA of rank 1 goes on behind `END`, after the other one has told it that it leaves.
LEAVES = """mov.u32 %r1, %cluster_ctarank; setp.ne.u32 %q, %r1, 0; setp.eq.u32 %p, %i, 0;
  mov.u32 %r0, sh; @%p mbarrier.init.shared.b64 [%r0+128], 1; @%p st.shared.u32 [%r0], 5;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  @!%q bra END; mov.u32 %r3, 0;
  LOOP: nanosleep.u32 1000; add.u32 %r3, %r3, 1; setp.lt.u32 %q, %r3, 200; @%q bra LOOP;
  mapa.shared::cluster.u32 %r2, %r0, 0; ld.shared::cluster.u32 %r4, [%r2]; END:"""


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize(
    ("body", "line", "message"),
    [
        ("setp.eq.u32 %p, %i, 0; mov.u32 %r0, sh; @%p mbarrier.init.shared.b64 [%r0+128], 1; bar.sync 0;\n"
         "st.shared.u32 [%r0+132], 1;", 10, "shared write of the mbarrier at 0x80, which is in use"),
        ("setp.eq.u32 %p, %i, 0; mov.u32 %r0, sh; @%p mbarrier.init.shared.b64 [%r0+128], 1; bar.sync 0;\n"
         "st.shared.u32 [%r0+136], 1; ld.shared.u64 %b, [%r0+120];", None, ""),
        ("setp.eq.u32 %p, %i, 0; mov.u32 %r0, sh; @%p mbarrier.init.shared.b64 [%r0+128], 1;\n"
         "@%p mbarrier.inval.shared.b64 [%r0+128]; bar.sync 0; st.shared.u32 [%r0+132], 1;", None, ""),
        (LEAVES, 14, "shared read at 0x0 of CTA (0,0,0), which has exited"),
    ],
    ids=["beside", "not there", "invalidated", "a CTA that has left"],
)  # fmt: skip
def test_synccheck_is_told_of_what_matters(engine: str, body: str, line: int | None, message: str) -> None:
    head = HEAD.replace("sm_80", "sm_90")
    device = ptxtools.Device(engine=engine, checks="synccheck")
    kernel = module(body, head=head)["k"]
    result = device.launch(kernel, 2, 32, [np.zeros(64, np.uint32)], shared=256, cluster=2)
    assert [(one.line, one.message) for one in result.reports] == ([] if line is None else [(line, message)])
