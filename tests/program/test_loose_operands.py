"""Operands that are wider than their type, in braces, or constants where a register is usual: what both engines make
of them (4.5.1, 4.5.3, 6.4.3, 9.4.1)."""

from __future__ import annotations

import re

import numpy as np
import pytest

import ptxtools

from .harness import lowered

ENGINES = pytest.mark.parametrize("engine", ["native", "reference"])
HEAD = """.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out) {
  .reg .b64 %o, %d<8>; .reg .b32 %r<8>; .reg .f16x2 %x<4>; .reg .f32 %f<8>; .reg .b128 %q<2>; .reg .pred %p<4>;
  .reg .v4 .f32 %v; .reg .b16 %h<4>;
  ld.param.u64 %o, [out];
"""
LOW = (1 << 32) - 1


def run(body: str, engine: str, *, threads: int = 1) -> list[int]:
    """The eight words at %o."""
    device = ptxtools.Device("sm_100a", engine=engine)
    out = np.zeros(8, np.uint32)
    device.launch(ptxtools.loads(f"{HEAD}{body}\nret; }}")["k"], 1, threads, [out])
    return [int(word) for word in out]


@ENGINES
def test_conversions_to_f16x2_read_and_write_wider_registers(engine: str) -> None:
    body = """mov.b64 %d1, 0xDEADBEEF3F800000; mov.b64 %d2, 0x1234567840000000;
    mov.b64 {%r0, %r1}, %d1; mov.b32 %f2, 0f40000000;
    mov.b64 %d3, -1; cvt.rn.f16x2.f32 %d3, %d1, %f2; st.u64 [%o], %d3;
    cvt.rz.f16x2.f32 %r2, %f2, %d1; st.u32 [%o+8], %r2;
    cvt.rn.relu.f16.f32 %r3, %d2; st.u32 [%o+12], %r3;
    mov.b64 %d4, -1; cvt.rs.f16x2.f32 %d4, %d2, %d1, %r0; st.u64 [%o+16], %d4;"""
    got = run(body, engine)
    assert got[:6] == [0x3C004000, 0, 0x40003C00, 0x4000, 0x40003C00, 0]


@ENGINES
def test_cvt_pack_reads_the_low_words_and_extends_its_result(engine: str) -> None:
    body = """mov.b64 %d1, 0x5555555500000007; mov.b64 %d2, 0x77777777FFFFFFFE; mov.b64 %d3, 0x99999999ABCDEF01;
    cvt.pack.sat.s16.s32 %r0, %d1, %d2; st.u32 [%o], %r0;
    mov.b64 %d4, -1; cvt.pack.sat.s16.s32 %d4, %d2, %d1; st.u64 [%o+8], %d4;
    cvt.pack.sat.u8.s32.b32 %d5, %d1, %d2, %d3; st.u64 [%o+16], %d5;"""
    got = run(body, engine)
    assert (got[0], got[2:4], got[4:6]) == (0x0007FFFE, [0xFFFE0007, 0], [0xEF010700, 0])


@ENGINES
def test_a_constant_stands_for_the_predicate_of_a_barrier(engine: str) -> None:
    body = """bar.red.popc.u32 %r0, 0, 5; bar.red.popc.u32 %r1, 0x100000001, 0; bar.red.and.pred %p0, 1, 64, -1;
    barrier.red.or.pred %p1, 0x100000000, 0x100000040, 0; bar.sync 0x10000000F;
    selp.b32 %r2, 1, 0, %p0; selp.b32 %r3, 1, 0, %p1; st.v4.b32 [%o], {%r0, %r1, %r2, %r3};"""
    assert run(body, engine, threads=64)[:4] == [64, 0, 1, 0]


@ENGINES
def test_whole_vectors_of_constants(engine: str) -> None:
    body = """mov.v4.f32 %v, {1.0, 2.0, 0f40400000, -4.0}; st.v4.f32 [%o], %v; mov.v2.b32 {%r0, %r1}, {7, -1};
    mov.v2.f32 {%f0, %f1}, {0.5, 1.5}; st.v2.b32 [%o+16], {%r0, %r1}; st.v2.f32 [%o+24], {%f0, %f1};"""
    floats = np.array([1, 2, 3, -4], np.float32).view(np.uint32).tolist()
    assert run(body, engine) == [*floats, 7, LOW, 0x3F000000, 0x3FC00000]


@ENGINES
def test_pairs_of_halves_stand_for_pairs_and_fours_of_integers(engine: str) -> None:
    body = """mov.b32 %x0, 0x0001FFFF; mov.b32 %r1, 0x00020003; add.s16x2 %x1, %x0, %r1; max.s16x2 %x2, %x0, %r1;
    mov.b32 %r2, 0x01010101; dp4a.s32.u32 %r3, %x0, %r2, 0; dp2a.lo.s32.s32 %r4, %x0, %x0, 1;
    st.v4.b32 [%o], {%x1, %x2, %r3, %r4};"""
    got = run(body, engine)
    assert got[:4] == [0x00030002, 0x00020003, LOW, 1 + (-1 * -1) + (1 * -1)]


@ENGINES
def test_a_policy_may_be_a_constant_and_a_mask_discarded(engine: str) -> None:
    body = """mov.u32 %r5, %tid.x; shr.u32 %r6, %r5, 5; mov.u32 %r0, 7;
    st.global.L2::cache_hint.b32 [%o], %r0, 0x12F0000000000000; ld.global.L2::cache_hint.b32 %r1, [%o], 5;
    match.all.sync.b32 _|%p0, %r6, -1; match.all.sync.b32 _|%p1, %r5, -1;
    selp.b32 %r2, 1, 0, %p0; selp.b32 %r3, 1, 0, %p1; st.b32 [%o+4], %r1; st.b32 [%o+8], %r2; st.b32 [%o+12], %r3;"""
    assert run(body, engine, threads=32)[:4] == [7, 7, 1, 0]


BRACED = [
    ("sm_90a", "wgmma.mma_async.sp.sync.aligned.m64n8k32.f16.f16.f16 "
     "{%r0, %r1}, %d1, %d2, %r4, 1, 1, 1, 1, 0, 0;", "%r4"),
    ("sm_120a", "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e5m2.f32.ue8m0 "
     "{%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r0, %r1}, {%f0, %f1, %f2, %f3}, %r5, {0, 1}, %r6, {0, 1};",
     "%r5 %r6"),
    ("sm_103a", "tcgen05.ld.red.sync.aligned.32x32b.x2.max.u32 {%r0, %r1}, %r2, [%r3];", "%r2"),
    ("sm_100a", "multimem.ld_reduce.relaxed.gpu.global.add.f32 %f1, [%o];", "%f1"),
    ("sm_100a", "multimem.st.weak.global.bf16x2 [%o], %r1;", "%r1"),
    ("sm_100a", "tex.level.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%o, {%r1}], %r2;", "%r2"),
    ("sm_100a", "txq.level.width.b32 %r1, [%o], %r2;", "%r2"),
    ("sm_100a", "ld.mmio.relaxed.sys.b32 %r1, [%o];", "%r1"),
    ("sm_100a", "st.mmio.relaxed.sys.b32 [%o], %r1;", "%r1"),
]  # fmt: skip


@pytest.mark.parametrize(("target", "line", "names"), BRACED)
def test_a_scalar_in_braces_is_that_scalar(target: str, line: str, names: str) -> None:
    """Where a form has vectors, or fragments beside it, compilers write `{r}` for `r`."""
    plain, braced = line, line
    for name in names.split():
        braced = re.sub(rf"(?<= ){name}(?=[,;])", f"{{{name}}}", braced)
    assert plain != braced
    texts = [f"{HEAD.replace('sm_100a', target)}{text}\nret; }}" for text in (plain, braced)]
    assert [finding for text in texts for finding in ptxtools.lint(text) if finding.severity.name == "ERROR"] == []
    first, second = ([repr(block.ops) for block in lowered(text).blocks] for text in texts)
    assert first == second


@ENGINES
def test_an_address_with_an_offset_is_a_constant(engine: str) -> None:
    body = """.shared .b32 pad[4], s; .const .u32 c[2] = {5, 6}; .reg .u64 %a;
    mov.u64 %d1, c; add.u64 %d2, %d1, 4; sub.u64 %d3, c+4, %d2; st.u64 [%o], %d3;
    mov.u32 %r1, s; sub.u32 %r1, s+12, %r1; st.u32 [%o+8], %r1;
    setp.eq.u64 %p1, %d2, c+4; selp.u32 %r2, 1, 2, %p1; st.u32 [%o+12], %r2;
    st.u64 [%o+16], c+4; ld.u64 %a, [%o+16]; ld.const.u32 %r3, [%a]; st.u32 [%o+24], %r3;"""
    words = run(body, engine)
    assert words[:4] == [0, 0, 12, 1] and words[6] == 6


@ENGINES
def test_metadata_in_braces(engine: str) -> None:
    """Two ones of four at the places that the metadata names, against a column of 1, 2, 3, 4."""
    product = (
        "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r1, %r1}, "
        "{%r2, %r2}, {%f4, %f4, %f4, %f4}, {%r3}, 0;"
    )
    body = f"""mov.b32 %r1, 0x3C003C00; mov.b32 %r2, 0x40003C00; mov.b32 %r3, 0x44444444; mov.b32 %f4, 0f3F800000;
    {product} st.f32 [%o], %f0;"""
    plain = body.replace("{%r3}", "%r3")
    assert run(body, engine, threads=32)[0] == run(plain, engine, threads=32)[0] == 0x4150_0000
