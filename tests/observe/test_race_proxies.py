"""racecheck on proxies: textures, surfaces, constants, and multicast addresses beside the generic one (8.6, 8.9.5)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxtools

from .programs import HEAD, run

ENGINES = ("native", "reference")
SM_90 = HEAD.replace("sm_80", "sm_90").replace("8.0", "8.6")
#: One thread of a CTA stores, and one of another CTA has waited for its flag.
FLAG = """mov.u32 %r0, %ctaid.x; setp.ne.u32 %p, %i, 0; @%p ret; setp.eq.u32 %q, %r0, 1; @%q bra TAKE;
    st.global.u32 [%a], 7; st.release.gpu.global.u32 [%a+4], 1; ret;
    TAKE: ld.acquire.gpu.global.u32 %r1, [%a+4]; setp.eq.u32 %p, %r1, 0; @%p bra TAKE;
    """
#: Kernels with the words of the report's help; or with "", where there is none.
LOADS = {
    "nc behind a flag": (f"{FLAG} ld.global.nc.u32 %r2, [%a]; st.global.u32 [%a+8], %r2;", "ld.global without .nc"),
    "a load behind a flag": (f"{FLAG} ld.global.u32 %r2, [%a]; st.global.u32 [%a+8], %r2;", ""),
    "nc of the thread's own store": ("""mul.wide.u32 %b, %i, 4; add.u64 %a, %a, %b; st.global.u32 [%a], %i;
        ld.global.nc.u32 %r2, [%a]; st.global.u32 [%a], %r2;""", "ld.global without .nc"),
    "a store to what its thread has read by nc": ("""mul.wide.u32 %b, %i, 4; add.u64 %a, %a, %b;
        ld.global.nc.u32 %r2, [%a]; st.global.u32 [%a], %r2;""", "ld.global without .nc"),
    "nc beside the store": ("""mul.wide.u32 %b, %i, 4; add.u64 %a, %a, %b; ld.global.nc.u32 %r2, [%a];
        st.global.u32 [%a+256], %r2;""", ""),
    "nc and another load of one word": ("""mul.wide.u32 %b, %i, 4; add.u64 %b, %a, %b; ld.global.nc.u32 %r2, [%a];
        ld.global.u32 %r3, [%a]; add.u32 %r2, %r2, %r3; st.global.u32 [%b+256], %r2;""", ""),
}  # fmt: skip


def reports(result: Any) -> list[tuple[str, int, int]]:
    return [(one.kind, one.line, one.others[0].line) for one in result.reports]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", list(LOADS))
def test_loads_through_the_texture_cache(name: str, engine: str) -> None:
    """No order of the generic proxy reaches ld.global.nc (9.7.9.9), that of one thread neither."""
    body, wanted = LOADS[name]
    result = run(body, "racecheck", grid=2 if "flag" in name else 1, threads=64, words=128, engine=engine)
    assert {one.kind for one in result.reports} == ({"proxy"} if wanted else set()), result.reports
    for found in result.reports:
        assert found.help.startswith(wanted)
        texts = sorted((found.text, found.others[0].text))
        assert texts[0].startswith("ld.global.nc") and texts[1].startswith("st.global"), texts


TEXTURES = f"""{HEAD}.visible .entry k(.param .u64 t, .param .u64 a) {{ .reg .b64 %t, %a, %b; .reg .b32 %i, %r<5>;
    .reg .f32 %f<2>;
    ld.param.u64 %t, [t]; ld.param.u64 %a, [a]; mov.u32 %i, %tid.x; mul.wide.u32 %b, %i, 4; add.u64 %a, %a, %b;
    BODY
    ret; }}
"""
FETCH = "tex.1d.v4.u32.s32 {%r1, %r2, %r3, %r4}, [%t, {%i}];"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (f"{FETCH}\n st.global.u32 [%a], %r1;", [(9, 8)]),
        (f"st.global.u32 [%a], %i; bar.sync 0;\n {FETCH} st.global.u32 [%a+512], %r1;", [(9, 8)]),
        (f"{FETCH}\n st.global.u32 [%a+252], %r1;", []),  # of this texture, but not what is fetched
        (f"{FETCH}\n st.global.u32 [%a+256], %r1;", []),
        (f"add.u32 %i, %i, 32; {FETCH}\n st.global.u32 [%a], %r1;", []),
        (f"{FETCH}\n red.global.add.u32 [%a+124], %r1;", [(9, 8)]),
    ],
)
def test_textures_of_memory_that_the_grid_writes(body: str, lines: list[tuple[int, int]], engine: str) -> None:
    device = ptxtools.Device(checks="racecheck", engine=engine)
    buffer = device.upload(np.arange(256, dtype=np.uint32))
    texture = device.texture(buffer, "1d", type="u32", channels=1, size=[64])
    result = device.launch(ptxtools.loads(TEXTURES.replace("BODY", body))["k"], 1, 32, [texture, buffer])
    assert reports(result) == [("proxy", *pair) for pair in lines], result.reports
    if not lines:
        assert str(result.verdict) == "race-free in every schedule of this launch"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("corner", [0, 1])
def test_a_filter_reads_the_texels_that_have_weight(engine: str, corner: int) -> None:
    """Between the texels 2 and 3 a linear filter reads both; in the middle of texel 2 that one alone."""
    place = "0f40400000" if corner else "0f40200000"  # 3.0, 2.5
    body = f"""mov.f32 %f0, {place}; tex.1d.v4.f32.f32 {{%r1, %r2, %r3, %r4}}, [%t, {{%f0}}];
    setp.eq.u32 %p, %i, 3; @%p st.global.u32 [%a], 0;"""
    text = TEXTURES.replace("BODY", body).replace(".reg .f32", ".reg .pred %p; .reg .f32").replace("%r<5>", "%s<5>")
    text = text.replace("%r1, %r2, %r3, %r4", "%g1, %g2, %g3, %g4").replace("%f<2>", "%f<2>, %g<5>")
    device = ptxtools.Device(checks="racecheck", engine=engine)
    buffer = device.upload(np.arange(64, dtype=np.float32))
    texture = device.texture(buffer, "1d", type="f32", channels=1, size=[64], filter="linear", normalized=False)
    result = device.launch(ptxtools.loads(text)["k"], 1, 32, [texture, buffer])
    assert [one.kind for one in result.reports] == ["proxy"] * corner, result.reports


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("body", "ctas", "kinds"),
    [
        ("sust.b.1d.b32.trap [%t, {%x}], %i; bar.sync 0; suld.b.1d.b32.trap %r1, [%t, {%x}];", 1, []),
        ("sust.b.1d.b32.trap [%t, {%x}], %i; bar.sync 0; ld.global.u32 %r1, [%a];", 1, ["proxy"]),
        ("st.global.u32 [%a], %i; bar.sync 0; suld.b.1d.b32.trap %r1, [%t, {%x}];", 1, ["proxy"]),
        ("st.global.u32 [%a], %i; bar.sync 0; suld.b.1d.b32.trap %r1, [%t, {%y}];", 1, []),
        ("suld.b.1d.b32.trap %r1, [%t, {%x}]; ld.global.u32 %r2, [%a];", 2, []),
        ("sust.b.1d.b32.trap [%t, {%x}], %i; ld.global.nc.u32 %r2, [%a];", 1, ["proxy"]),
        ("sust.b.1d.b32.trap [%t, {%x}], %i; bar.sync 0; xor.b32 %x, %x, 128; suld.b.1d.b32.trap %r1, [%t, {%x}];", 1,
         []),
        ("sust.b.1d.b32.trap [%t, {%x}], %i; xor.b32 %x, %x, 128; suld.b.1d.b32.trap %r1, [%t, {%x}];", 1, ["order"]),
    ],
)  # fmt: skip
def test_surfaces(body: str, ctas: int, kinds: list[str], engine: str) -> None:
    """A CTA has one proxy for surfaces, which barriers order; nothing orders that with the generic one."""
    text = f"""{HEAD}.visible .entry k(.param .u64 t, .param .u64 a) {{ .reg .b64 %t, %a, %b;
    .reg .b32 %i, %x, %y, %r<3>; ld.param.u64 %t, [t]; ld.param.u64 %a, [a]; mov.u32 %i, %tid.x;
    mul.wide.u32 %b, %i, 4; add.u64 %a, %a, %b; shl.b32 %x, %i, 2; add.u32 %y, %x, 256;
    {body} ret; }}"""
    device = ptxtools.Device(checks="racecheck", engine=engine)
    buffer = device.upload(np.arange(128, dtype=np.uint32))
    surface = device.surface(buffer, "1d", type="u32", channels=1, size=[128])
    result = device.launch(ptxtools.loads(text)["k"], ctas, 64, [surface, buffer])
    assert {one.kind for one in result.reports} == set(kinds), result.reports


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("read", ["suld.b.1d.b32.trap %r2, [%t, {0}];", "ld.global.u32 %r2, [%a+8];"])
def test_surfaces_of_two_ctas(read: str, engine: str) -> None:
    """What one CTA has written to a surface another one does not see, though it has acquired its flag."""
    text = f"""{HEAD}.visible .entry k(.param .u64 t, .param .u64 a) {{ .reg .b64 %t, %a; .reg .b32 %i, %r<3>;
    .reg .pred %p, %q; ld.param.u64 %t, [t]; ld.param.u64 %a, [a]; mov.u32 %i, %tid.x;
    {FLAG.replace("st.global.u32 [%a], 7;", "st.global.u32 [%a+8], 7; sust.b.1d.b32.trap [%t, {0}], %i;")}
    {read} ret; }}"""
    device = ptxtools.Device(checks="racecheck", engine=engine)
    buffer, other = (device.upload(np.zeros(16, np.uint32)) for _ in range(2))
    surface = device.surface(other, "1d", type="u32", channels=1, size=[16])
    result = device.launch(ptxtools.loads(text)["k"], 2, 32, [surface, buffer])
    assert [one.kind for one in result.reports] == ["proxy"] * read.startswith("suld"), result.reports


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("place", [0, 4])
def test_constants(place: int, engine: str) -> None:
    """Stores by way of a generic address: memcheck refuses them, racecheck says what they race with."""
    body = f"""mov.u64 %b, c; cvta.const.u64 %b, %b; setp.eq.u32 %p, %i, 0; @%p st.u32 [%b+{place}], 5; bar.sync 0;
    ld.const.u32 %r1, [c]; st.global.u32 [%a], %r1;"""
    result = run(body, "racecheck", threads=32, outer=".const .align 4 .u32 c[2] = {1, 2};\n", engine=engine)
    assert [one.kind for one in result.reports] == ["proxy"] * (place == 0), result.reports


MULTI = f"""{SM_90}.visible .entry k(.param .u64 m, .param .u64 x, .param .u64 f) {{ .reg .b64 %m, %x, %f;
    .reg .b32 %i, %r<4>; .reg .pred %p, %q;
    ld.param.u64 %m, [m]; ld.param.u64 %x, [x]; ld.param.u64 %f, [f]; mov.u32 %i, %tid.x; setp.ne.u32 %p, %i, 0;
    @%p ret; mov.u32 %r0, %ctaid.x; setp.eq.u32 %q, %r0, 1; @%q bra TAKE;
    multimem.st.weak.global.u32 [%m], 7; GIVEN st.release.gpu.global.u32 [%f], 1; ret;
    TAKE: ld.acquire.gpu.global.u32 %r1, [%f]; setp.eq.u32 %p, %r1, 0; @%p bra TAKE;
    TAKEN
    ret; }}
"""
FENCE = "fence.proxy.alias;"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("given", "taken", "races"),
    [
        ("", "ld.global.u32 %r2, [%x];", True),
        (FENCE, "ld.global.u32 %r2, [%x];", False),
        ("", f"{FENCE} ld.global.u32 %r2, [%x];", False),
        ("", f"ld.global.u32 %r2, [%x]; {FENCE}", True),
        ("", "multimem.ld_reduce.weak.global.add.u32 %r2, [%m];", False),
        ("", "st.global.u32 [%x], 3;", True),
        ("", "ld.global.u32 %r2, [%x+4];", False),
    ],
)
def test_multicast_addresses_are_aliases(given: str, taken: str, races: bool, engine: str) -> None:
    """8.2.2: another address of the same place needs fence.proxy.alias on the way."""
    device = ptxtools.Device("sm_90", checks="racecheck", engine=engine)
    buffers = [device.upload(np.zeros(16, np.uint32)) for _ in range(2)]
    flag = device.upload(np.zeros(1, np.uint32))
    text = MULTI.replace("GIVEN", given).replace("TAKEN", taken)
    result = device.launch(ptxtools.loads(text)["k"], 2, 32, [device.multicast(buffers), buffers[1], flag])
    assert [one.kind for one in result.reports] == ["proxy"] * races, result.reports
    for one in result.reports:
        assert one.help.startswith("fence.proxy.alias") and "multimem.st" in one.others[0].text
