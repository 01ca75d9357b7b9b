"""Profiles: counts held against formulas, both engines against each other, files and comparisons."""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from math import gcd
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools.machine.measures import Cache, passes, sectors
from ptxtools.observe.coverage import Coverage
from ptxtools.observe.profile import KernelProfile, Profile
from ptxtools.observe.profile_figures import ProfileError, as_dict, as_json, changes, figures, limiter, read_json
from ptxtools.observe.profile_html import as_html
from ptxtools.observe.roofline import roofline
from tests.rows import rows

ROOT = Path(__file__).parents[2]
HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
HEAD_100 = ".version 8.6\n.target sm_100\n.address_size 64\n"
ENGINES = ("native", "reference")


def profiled(
    body: str, *arrays: Any, engine: str = "native", block: int = 64, head: str = HEAD, **how: Any
) -> Profile:  # fmt: skip
    """A kernel k(a, b): %a and %b hold its arguments, %t the thread's number, %s 64 KiB of shared memory."""
    profile = Profile()
    text = f"""{head}.extern .shared .align 16 .b8 sh[];
.visible .entry k(.param .u64 a, .param .u64 b) {{
    .reg .u64 %a, %b, %d<8>; .reg .u32 %t, %s, %r<8>; .reg .u16 %h<4>; .reg .pred %p;
    ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; mov.u32 %t, %tid.x; mov.u32 %s, sh;
    {body}
    ret;
}}"""
    device = ptxtools.Device(engine=engine, observers=[profile], **how)
    device.launch(ptxtools.loads(text, "k.ptx")["k"], 1, block, list(arrays), shared=65536)
    return profile


def only(profile: Profile) -> KernelProfile:
    (kernel,) = profile.kernels
    return kernel


# --- formulas ---------------------------------------------------------------------------------------------------------


@rows("engine, stride", [(engine, stride) for engine in ENGINES for stride in (0, 1, 2, 3, 4, 8, 12, 16, 31, 32, 33)])
def test_banks_of_strided_words(engine: str, stride: int) -> None:
    """Words at a stride of s meet gcd(s, 32) to a bank; one word for all is no conflict."""
    kernel = only(profiled(f"mad.lo.u32 %r1, %t, {4 * stride}, %s; ld.shared.u32 %r2, [%r1];", 0, 0, engine=engine))
    wanted = gcd(stride, 32) if stride else 1
    assert (kernel.banks.warps, kernel.banks.passes, kernel.banks.least) == (2, 2 * wanted, 2)


@rows("engine, stride", [(engine, stride) for engine in ENGINES for stride in (1, 2, 3, 4, 8, 16)])
def test_banks_of_wide_accesses(engine: str, stride: int) -> None:
    """8 bytes by half warps over 16 double banks, 16 bytes by quarters over 8 fourfold ones."""
    body = f"""mad.lo.u32 %r1, %t, {8 * stride}, %s; st.shared.v2.u32 [%r1], {{%t, %t}};
    mad.lo.u32 %r1, %t, {16 * stride}, %s; st.shared.v4.u32 [%r1], {{%t, %t, %t, %t}};"""
    kernel = only(profiled(body, 0, 0, engine=engine))
    two, four = [row.shared for row in kernel.rows.values() if row.shared is not None]
    assert (two.passes, two.least) == (2 * 2 * gcd(stride, 16), 2 * 2)
    assert (four.passes, four.least) == (2 * 4 * gcd(stride, 8), 2 * 4)


@rows("engine, stride", [(engine, stride) for engine in ENGINES for stride in (0, 1, 2, 3, 5, 8, 9, 40)])
def test_sectors_of_strided_words(engine: str, stride: int) -> None:
    """A warp's 32 words at a stride of s lie in s * 4 sectors of 32 bytes, in 32 at most; all at one word in one."""
    data = np.zeros(64 * 40, np.uint32)
    body = f"mul.wide.u32 %d1, %t, {4 * stride}; add.u64 %d1, %d1, %a; ld.global.u32 %r2, [%d1];"
    kernel = only(profiled(body, data, 0, engine=engine))
    wanted = len({4 * stride * lane // 32 for lane in range(32)})
    assert wanted == (min(32, 4 * stride) if stride else 1)
    total = kernel.memory(False)
    assert (total.warps, total.sectors, total.asked) == (2, sum(
        len({4 * stride * (32 * warp + lane) // 32 for lane in range(32)}) for warp in range(2)
    ), 256)  # fmt: skip


def test_a_tiled_product() -> None:
    """The benchmark's sgemm in tiles of 16 x 16: every count follows from n."""
    sys.path.insert(0, str(ROOT / "bench"))
    try:
        import kernels
    finally:
        sys.path.pop(0)
    n = 64
    case, profile = kernels.sgemm_tiled(n), Profile()
    device = ptxtools.Device("sm_75", observers=[profile])
    device.launch(ptxtools.load(str(case.path))["sgemm_tiled"], case.grid, case.block, case.args)
    kernel = only(profile)
    ctas, tiles, warps = (n // 16) ** 2, n // 16, 8
    steps = ctas * tiles * warps
    assert kernel.memory(False).warps == 2 * steps
    assert kernel.memory(False).sectors == 4 * 2 * steps  # two rows of 64 bytes
    assert kernel.memory(True).sectors == 4 * ctas * warps
    assert (kernel.banks.warps, kernel.banks.conflicts) == ((2 + 32) * steps, 0)
    assert kernel.operations == 2 * n**3
    assert kernel.by("name")["float32"] == (16 * steps, 16 * 32 * steps)
    assert kernel.branches == ((1 + tiles) * ctas * warps, (1 + tiles) * ctas * warps)
    assert kernel.memory(False).dram == 2 * n * n * 4 // 32  # each element once
    assert kernel.occupancy.ctas == 4 and limiter(kernel) == "threads (4 CTAs)"


@rows("engine", ENGINES)
def test_divergence(engine: str) -> None:
    body = """and.b32 %r1, %t, 1; setp.eq.u32 %p, %r1, 0; @%p bra EVEN;
    add.u32 %r2, %r2, 1; activemask.b32 %r3;
EVEN: setp.lt.u32 %p, %t, 32; @%p bra LOW; activemask.b32 %r3;
LOW:"""
    kernel = only(profiled(body, 0, 0, engine=engine))
    assert kernel.branches == (4, 2)
    found = {figure.key: figure.value for figure in figures(kernel)}
    assert found["branch_efficiency"] == 50
    assert {row.text: (row.warps, row.lanes) for row in kernel.rows.values()}["add.u32 %r2, %r2, 1"] == (2, 32)


# --- any addresses ----------------------------------------------------------------------------------------------------

_SHAPES = {1: "u8 %h1", 2: "u16 %h1", 4: "u32 %r2", 8: "v2.u32 {%r2, %r3}", 16: "v4.u32 {%r2, %r3, %r4, %r5}"}


@rows("seed", range(8), share=3)
def test_random_addresses_on_both_engines(seed: int) -> None:
    """Loads of every size, some lanes left out, in global, shared and generic space, beside the definition."""
    random = np.random.default_rng(seed)
    spread = int(random.choice([40, 400, 4000]))
    offsets = (16 * random.integers(0, spread, 64)).astype(np.uint32)
    offsets[random.random(64) < 0.2] |= 1
    active = offsets & 1 == 0
    lines = ["mul.wide.u32 %d1, %t, 4; add.u64 %d1, %d1, %a; ld.global.u32 %r1, [%d1];",
             "and.b32 %r6, %r1, 1; setp.eq.u32 %p, %r6, 0;",
             "cvt.u64.u32 %d2, %r1; add.u64 %d3, %d2, %b; add.u32 %r7, %r1, %s;",
             "mov.u64 %d5, sh; cvta.shared.u64 %d5, %d5; add.u64 %d4, %d5, %d2;"]  # fmt: skip
    for shape in _SHAPES.values():
        type_, value = shape.split(" ", 1)
        lines += [f"@%p ld.global.{type_} {value}, [%d3];", f"@%p ld.shared.{type_} {value}, [%r7];",
                  f"@%p ld.{type_} {value}, [%d3];", f"@%p ld.{type_} {value}, [%d4];"]  # fmt: skip
    found = []
    for engine in ENGINES:
        kernel = only(profiled("\n".join(lines), offsets, np.zeros(16 * 4000 + 16, np.uint8), engine=engine))
        found.append([
            (row.text, row.memory and (row.memory.warps, row.memory.lanes, row.memory.sectors), row.shared)
            for row in kernel.rows.values() if row.text.startswith("@%p")
        ])  # fmt: skip
    assert found[0] == found[1]
    lanes = np.arange(32)
    for number, size in enumerate(_SHAPES):
        parts = [
            (lanes[active[w : w + 32]], offsets[w : w + 32][active[w : w + 32]].astype(np.uint64)) for w in (0, 32)
        ]
        wanted = sum(len(set((places // 32).tolist())) for _, places in parts)
        banks = [sum(values) for values in zip(*(passes(some, places, size) for some, places in parts), strict=True)]
        for (_, memory, shared), is_shared in zip(found[0][4 * number :], (False, True, False, True), strict=False):
            if is_shared:
                assert shared is not None and [shared.passes, shared.least] == banks
            else:
                assert memory == (2, active.sum(), wanted)


def test_matrices_are_read_row_by_row() -> None:
    """ldmatrix.x4 reads 32 rows of 16 bytes, by eight; .x1 has the addresses of eight lanes."""
    body = """mad.lo.u32 %r1, %t, 16, %s; ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r2, %r3, %r4, %r5}, [%r1];
    mad.lo.u32 %r1, %t, 128, %s; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r1];"""
    four, one = [row.shared for row in only(profiled(body, 0, 0, block=32)).rows.values() if row.shared is not None]
    assert (four.lanes, four.passes, four.least) == (32, 4, 4)
    assert (one.lanes, one.passes, one.least) == (8, 8, 1)


def test_copies_of_threads_count_on_both_sides() -> None:
    body = """mul.wide.u32 %d1, %t, 16; add.u64 %d1, %d1, %a; mad.lo.u32 %r1, %t, 16, %s;
    cp.async.cg.shared.global [%r1], [%d1], 16; cp.async.wait_all;"""
    kernel = only(profiled(body, np.zeros(1024, np.uint8), 0))
    assert (kernel.memory(False).sectors, kernel.banks.passes) == (32, 8)
    late = only(profiled(body, np.zeros(1024, np.uint8), 0, seed=1))
    assert late.notes == ["not in sectors, passes and bytes: cp.async, which completes late in this run"]


# --- the model of the cache -------------------------------------------------------------------------------------------


def test_the_model_of_the_cache() -> None:
    cache = Cache(4096)
    assert (cache.entries, cache.size) == (128, 4096)
    first = np.arange(1, 65)
    assert [cache.look_up(first, False), cache.look_up(first, False)] == [64, 0]
    assert cache.look_up(first + 128, False) == 64 and cache.look_up(first, False) == 64  # they have its place
    assert cache.look_up(first + 64, True) == 64 and cache.look_up(first + 64, True) == 0
    assert cache.look_up(first + 64, False) == 0  # what is written is there
    assert sectors(np.array([64, 0, 65], np.uint64)).tolist() == [2, 0]


@rows("engine", ENGINES)
def test_dram_is_read_once(engine: str) -> None:
    body = "mul.wide.u32 %d1, %t, 4; add.u64 %d1, %d1, %a; ld.global.u32 %r1, [%d1]; st.global.u32 [%d1], %r1;"
    kernel = only(profiled(body * 3, np.zeros(64, np.uint32), 0, engine=engine))
    assert (kernel.memory(False).sectors, kernel.memory(False).dram) == (24, 8)
    assert (kernel.memory(True).sectors, kernel.memory(True).dram) == (24, 8)


# --- around it --------------------------------------------------------------------------------------------------------


def test_launches_of_one_shape_add_up_and_nothing_changes() -> None:
    module = ptxtools.load(str(ROOT / "examples" / "vecadd.ptx"))
    x = np.arange(256, dtype=np.float32)
    profile, coverage = Profile(), Coverage()
    device, plain = ptxtools.Device(observers=[profile, coverage]), ptxtools.Device()
    results = []
    for grid, where in ((2, device), (2, device), (1, device), (2, plain)):
        out = np.zeros(256, np.float32)
        done = where.launch(module["vecadd"], grid, 128, [x, x, out, 256])
        results.append((done.instructions, out.tolist()))
    assert results[0] == results[1] == results[3]
    assert [(kernel.launches, kernel.grid[0]) for kernel in profile.kernels] == [(2, 2), (1, 1)]
    assert sum(kernel.warps for kernel in profile.kernels) == sum(i.warps for i in coverage.instructions())


def test_what_is_not_measured_is_said() -> None:
    profile = profiled("st.bulk.weak.shared::cta [%d7], 64, 0;", 0, 0, target="sm_100", head=HEAD_100)
    assert only(profile).notes == ["not in sectors, passes and bytes: st.bulk"]


def test_a_trap_ends_the_counts() -> None:
    profile = Profile()
    module = ptxtools.load(str(ROOT / "examples" / "vecadd.ptx"))
    with pytest.raises(ptxtools.Trap):
        ptxtools.Device(observers=[profile]).launch(module["vecadd"], 1, 32, [0, 0, 0, 32])
    counts = [row.warps for row in only(profile).rows.values()]
    assert counts == sorted(counts, reverse=True) and set(counts) == {0, 1}


# --- files ------------------------------------------------------------------------------------------------------------


class Tags(HTMLParser):
    """Whether tags close as they open, and what the page would load."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []
        self.ties: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        places = [value or "" for name, value in attrs if name in ("src", "href")]
        self.loads += [place for place in places if not place.startswith("#")]  # a mark is in the page itself
        self.ties |= {value or "" for name, value in attrs if name == "data-s"}
        if tag not in ("meta", "polyline", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag != "polyline":
            assert self.open.pop() == tag


def lines_profile() -> Profile:
    profile = Profile()
    device = ptxtools.Device("sm_75", observers=[profile])
    x = np.zeros(32, np.float32)
    device.launch(ptxtools.load(str(ROOT / "testdata" / "lineinfo" / "lines.ptx"))["_Z4sumsPKfPfi"], 1, 32, [x, x, 1])
    return profile


def test_a_page_that_loads_nothing() -> None:
    page = as_html(lines_profile(), lambda name: ["a < b"] * 40 if name == "src/lines.cu" else None)
    tags = Tags()
    tags.feed(page)
    assert tags.open == [] and tags.loads == [] and "http" not in page and "@import" not in page
    assert "src/lines.cu:2" in tags.ties and "a &lt; b" in page
    links = re.findall(r'<a href="#([^"]+)">(\d+)</a>', page)  # of the hottest lines, to where they stand
    assert links and all(re.search(f'<tr id="{mark}"[^>]*><td>{line}</td>', page) for mark, line in links)
    assert "ld.global.f32 \t%f1, [%rd5];" in page and "sums(float const*, float*, int)" in page


def test_json_and_comparisons() -> None:
    before = read_json(as_json(lines_profile()).encode())
    assert changes(before, before) == []
    after = json.loads(json.dumps(before))
    after["kernels"][0]["figures"]["warp_instructions"] *= 2
    del after["kernels"][0]["figures"]["occupancy"]
    after["kernels"].append({"name": "new", "figures": {"launches": 1}, "classes": {}, "instructions": []})
    found = {
        (change.kernel, change.what): (change.before, change.after, change.ratio) for change in changes(before, after)
    }
    count = before["kernels"][0]["figures"]["warp_instructions"]
    assert found == {
        ("_Z4sumsPKfPfi", "warp_instructions"): (count, 2 * count, 2),
        ("_Z4sumsPKfPfi", "occupancy"): (before["kernels"][0]["figures"]["occupancy"], None, None),
        ("new", "launches"): (None, 1, None),
    }
    assert as_dict(lines_profile())["kernels"][0]["instructions"][0]["source"] == ("src/lines.cu", 15)


@rows("data, says", [
    (b"", "no profile"), (b"\xff", "no profile"), (b"[]", "no profile"), (b"[" * 100000, "no profile"),
    (b'{"format": "x"}', "the format is 'x'"), (b'{"format": "ptxtools profile 1", "kernels": [1]}', "no profile"),
    (b'{"format": "ptxtools profile 1", "kernels": [{"name": "k", "figures": {"a": ""}}]}', "no profile"),
])  # fmt: skip
def test_json_that_is_none(data: bytes, says: str) -> None:
    with pytest.raises(ProfileError, match=says):
        read_json(data)


def test_maxnreg_bounds_the_registers() -> None:
    text = f"""{HEAD}.visible .entry k(.param .u64 a, .param .u64 b) .maxnreg 16 {{
    .reg .u64 %a; .reg .f32 %f<64>; ld.param.u64 %a, [a];
    {"".join(f"ld.global.f32 %f{n}, [%a+{4 * n}];" for n in range(64))}
    {"".join(f"st.global.f32 [%a+{252 - 4 * n}], %f{n};" for n in range(64))}
    ret;
}}"""
    profile = Profile()
    ptxtools.Device(observers=[profile]).launch(ptxtools.loads(text)["k"], 1, 32, [np.zeros(64, np.float32), 0])
    assert only(profile).registers == 16 and only(profile).live is not None and only(profile).live >= 64


# --- rooflines --------------------------------------------------------------------------------------------------------


def test_the_roofline_of_a_copy_and_of_a_product() -> None:
    """y = 2x: one operation for 8 bytes; a loop of fma in registers: far beyond the ridge of 19.5 T / 1555 G = 12.5."""
    copy = "mad.wide.u32 %d1, %t, 4, %a; ld.global.f32 %f1, [%d1]; mul.f32 %f1, %f1, %f1; mad.wide.u32 %d2, %t, 4, %b;"
    copy = ".reg .f32 %f<4>; " + copy + " st.global.f32 [%d2], %f1;"
    x = np.ones(64, np.float32)
    line = roofline(only(profiled(copy, x, np.zeros_like(x))))
    assert line is not None
    assert (line.intensity, line.bound, line.sort) == (1 / 8, "DRAM", "float32")
    assert line.reach == pytest.approx(1555e9 / 8) and line.peaks["float32"] == pytest.approx(19.5e12, rel=0.01)
    product = copy.replace("mul.f32 %f1, %f1, %f1;", "fma.rn.f32 %f1, %f1, %f1, %f1;" * 100)
    profile = profiled(product, x, np.zeros_like(x))
    line = roofline(only(profile))
    assert line is not None
    assert (line.intensity, line.bound, line.reach) == (200 / 8, "float32", line.peaks["float32"])
    assert "Roofline of sm_80 (A100)" in as_html(profile, lambda name: None)


def test_no_roofline_without_arithmetic_or_rates() -> None:
    assert roofline(only(profiled("ld.global.u32 %r1, [%a];", np.zeros(4, np.uint32), 0))) is None
    text = ".reg .f32 %f<2>; ld.global.f32 %f1, [%a]; add.f32 %f1, %f1, %f1;"
    head = HEAD.replace("sm_80", "sm_87")
    assert roofline(only(profiled(text, np.zeros(4, np.float32), 0, head=head))) is None
