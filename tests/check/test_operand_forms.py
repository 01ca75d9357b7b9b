"""What may stand for an operand, as ptxas 13.0 has it: samplers, constants that are too long, braces, wider registers,
and addresses."""

import pytest

import ptxtools
from tests.rows import rows

HEAD = """.version 9.0
.target {target}
.address_size 64
.global .texref tx; .global .align 16 .b32 gv[64]; .shared .align 16 .b32 sv[64];
.visible .entry k()
{{
.reg .b32 %r<40>; .reg .u32 %u<9>; .reg .f32 %f<40>; .reg .f16x2 %xx<8>; .reg .b64 %rd<9>; .reg .u64 %ul<9>;
.reg .b16 %h<8>; .reg .f16 %x<8>; .reg .f64 %fd<8>; .reg .pred %p<9>; .reg .v4 .f32 %v; .reg .b128 %q<4>;
.local .align 16 .b8 lv[64];
"""


def codes(line: str, target: str = "sm_100a") -> list[str]:
    found = ptxtools.lint(f"{HEAD.format(target=target)}{line}\nret;\n}}\n")
    return [d.code for d in found if d.severity.name == "ERROR"]


FETCH = {
    "1d": "{%f1}", "2d": "{%f1, %f2}", "3d": "{%f1, %f2, %f3, %f4}", "cube": "{%f1, %f2, %f3, %f4}",
    "a1d": "{%r1, %f2}", "a2d": "{%r1, %f2, %f3, %f4}", "acube": "{%r1, %f2, %f3, %f4}",
}  # fmt: skip
SLOPES = {1: "{%f1}", 2: "{%f1, %f2}", 4: "{%f1, %f2, %f3, %f4}"}
SLOPED = {"1d": 1, "a1d": 1, "2d": 2, "a2d": 2}


@pytest.mark.parametrize(("mode", "geometries"), [
    ("", "1d 2d 3d"), (".base", "1d 2d 3d"), (".level", "1d 2d cube"), (".grad", "1d 2d 3d"),
])  # fmt: skip
def test_in_unified_mode_some_geometries_take_a_texture_as_their_sampler(mode: str, geometries: str) -> None:
    for geometry, place in FETCH.items():
        slope = SLOPES[SLOPED.get(geometry, 4)]
        more = {".level": ", %f5", ".grad": f", {slope}, {slope}"}.get(mode, "")
        fetch = f"tex{mode}.{geometry}.v4.f32.f32 {{%f0, %f1, %f2, %f3}}, [tx, {{}}{place}]{more};"
        assert codes(fetch.replace("{}", "")) == []
        for sampler in ("tx, ", "%rd1, "):
            expected = [] if geometry in geometries.split() else ["PTX240"]
            assert codes(fetch.replace("{}", sampler)) == expected, fetch


ACCEPTED = [
    # Of a constant the low bits count (4.5.1), and a predicate may be one (4.5.3).
    "bar.sync 0x10000000F;", "bar.sync 1, 0x100000040;", "bar.red.popc.u32 %r1, 0, 5;",
    "tcgen05.alloc.cta_group::1.sync.aligned.b32 [%rd1], 4294967328;", "barrier.red.and.pred %p1, 0, -1;",
    "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%rd1], [gv], 0x100000010, [%rd2];",
    # Whole vectors of constants.
    "mov.v4.f32 %v, {1.0, 2.0, 3.0, 4.0};", "mov.v2.b32 {%r1, %r2}, {1, 2};",
    # `{r}` where the form has vectors.
    "multimem.st.f32 [gv], {%f1};", "st.async.mbarrier::complete_tx::bytes.f32 [%rd1], {%f1}, [%rd2];",
    "tex.level.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [tx, {%f1}], {%f2};", "txq.level.width.b32 %r1, [tx], {%r2};",
    # Registers wider than the type (9.4.1, 9.7.9.21), and .f16x2 for integers.
    "cvt.rn.f16x2.f32 %rd1, %rd2, %q1;", "cvt.rn.relu.f16.f32 %rd1, %f1;", "cvt.pack.sat.s16.s32 %ul1, %rd1, %q1;",
    "max.s16x2 %xx1, %r1, %xx2;", "dp4a.s32.s32 %r1, %xx1, %xx2, %r2;", "cvt.pack.sat.s16.s32 %xx1, %xx2, %r1;",
    "tensormap.replace.tile.rank.b1024.b32 [gv], %f1;",
    # Addresses.
    "ld.volatile.global.f32 %f1, [%rd1].unified;", "ld.global.nc.f32 %f1, [%rd1].unified;", "prefetch.L1 [lv];",
    "prefetch.L2 [sv];", "prefetch.tensormap [%r1];", "fence.proxy.tensormap::generic.acquire.gpu [%r1], 128;",
    "multimem.red.add.u32 gv[1], %r1;",
    # Policies and masks are integers; the mask of equal values may be discarded beside its predicate.
    "ld.global.L2::cache_hint.b32 %r1, [gv], 0x12F0000000000000;", "st.global.L2::cache_hint.b32 [gv], %r1, %ul1;",
    "cp.async.bulk.prefetch.L2.global.L2::cache_hint [gv], 16, 5;", "match.all.sync.b32 _|%p1, %r2, %r3;",
]  # fmt: skip
REFUSED = [
    ("bar.sync 0x100000010;", "PTX225"), ("bar.sync 1, 0x100000041;", "PTX225"), ("bar.arrive 1, 0;", "PTX225"),
    ("bar.red.popc.u32 %r1, 0, 5, %p1;", "PTX225"), ("bfe.u32 %r1, %r2, 0x100000000, 0;", "PTX225"),
    ("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%rd1], [gv], 0x100000008, [%rd2];", "PTX225"),
    ("mbarrier.arrive.b64 %rd1, [%rd2], 0;", "PTX225"), ("mbarrier.arrive_drop.b64 %rd1, [%rd2], 0;", "PTX225"),
    ("mov.v4.f32 %v, {1, 2, 3, 4};", "PTX224"), ("multimem.st.u32 [gv], {%r1};", "PTX223"),
    ("multimem.red.add.f32 [gv], {%f1};", "PTX223"), ("st.async.release.gpu.f32 [%rd1], {%f1};", "PTX223"),
    ("ld.global.L2::cache_hint.f32 %f1, [gv], {%rd1};", "PTX223"), ("add.f32 %f1, {%f2}, %f3;", "PTX223"),
    ("cvt.rn.bf16x2.f32 %rd1, %f1, %f2;", "PTX222"), ("cvt.rn.f16x2.f32 %ul1, %f1, %f2;", "PTX221"),
    ("cvt.rn.bf16.f32 %h1, %rd1;", "PTX222"), ("cvt.rni.u32.bf16 %rd1, %h1;", "PTX222"),
    ("cvt.f32.bf16 %f1, %r1;", "PTX222"), ("cvt.rna.tf32.f32 %rd1, %f1;", "PTX222"),
    ("cvt.rn.satfinite.e4m3x2.f32 %h1, %rd1, %f1;", "PTX222"),
    ("cvt.pack.sat.s16.s32 %r1, %h1, %r2;", "PTX222"), ("max.s16x2 %u1, %r1, %r2;", "PTX221"),
    ("multimem.ld_reduce.add.f32 %u1, [gv];", "PTX221"), ("ldu.global.f32 %f1, [%rd1].unified;", "PTX240"),
    ("ld.global.L2::cache_hint.b32 %r1, [gv], %fd1;", "PTX221"), ("match.any.sync.b32 _, %r2, %r3;", "PTX228"),
    ("cp.async.bulk.global.shared::cta.bulk_group.cp_mask [gv], [%rd8], 16, %x1;", "PTX221"),
    ("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%rd1], 5;", "PTX223"),
    ("createpolicy.cvt.L2.b64 %rd1, 1.5;", "PTX224"),
    ("prefetch.L1 [%r1];", "PTX242"), ("prefetchu.L1 [lv];", "PTX241"), ("red.add.u32 gv[1], %r1;", "PTX240"),
]  # fmt: skip


@rows("line", ACCEPTED)
def test_accepted(line: str) -> None:
    assert codes(line) == []


@rows(("line", "code"), REFUSED)
def test_refused(line: str, code: str) -> None:
    assert codes(line) == [code]


def test_factors_of_scaling_may_stand_in_braces() -> None:
    line = (
        "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0 {%f0, %f1, %f2, %f3}, "
        "{%r0, %r1, %r2, %r3}, {%r0, %r1}, {%f0, %f1, %f2, %f3}, {%r5}, {0, 1}, SCALE, {0, 1};"
    )
    assert codes(line.replace("SCALE", "{%r6}"), "sm_120a") == []
    assert codes(line.replace("SCALE", "{%r6, %r7}"), "sm_120a") == ["PTX223"]
    assert codes(line.replace("SCALE", "{%rd1}"), "sm_120a") == ["PTX222"]
