"""Vectors in braces: the types of their elements, constants, coordinates and fragments, as ptxas 13.0 judges them."""

import pytest

from ptxtools.check import check
from ptxtools.syntax import parse
from tests.rows import rows

HEAD = """.version 9.0
.target sm_100a{options}
.address_size 64
.global .texref tx; .global .surfref sf; {sampler}
.visible .entry k()
{{
.reg .b32 %r<40>; .reg .u32 %u<40>; .reg .f32 %f<40>; .reg .f16x2 %xx<8>; .reg .b64 %rd<8>; .reg .b16 %h<8>;
.reg .f64 %fd<8>; .reg .u64 %ul<8>; .reg .pred %p<4>; .reg .v4 .f32 %v; .reg .v2 .b32 %w;
"""
MMA = "mma.sync.aligned.m16n8k16.row.col.f32.{t}.{t}.f32 {{%f0, %f1, %f2, %f3}}, {a}, {{%r4, %r5}}, {c};"
ACCUMULATOR = "{%f0, %f1, %f2, %f3}"


def findings(line: str, independent: bool = False) -> list[str]:
    options, sampler = (", texmode_independent", ".global .samplerref sm;") if independent else ("", "")
    result = parse(f"{HEAD.format(options=options, sampler=sampler)}{line}\nret;\n}}\n", "vectors.ptx")
    found = [*result.diagnostics, *check(result.module)]
    assert all(d.line == 9 for d in found), found
    return [d.code for d in found]


def mma(a: str = "{%r0, %r1, %r2, %r3}", c: str = ACCUMULATOR, t: str = "f16") -> list[str]:
    return findings(MMA.format(a=a, c=c, t=t))


@pytest.mark.parametrize("a", ["{%r0, %r1, %r2, %r3}", "{%xx0, %xx1, %xx2, %xx3}", "{%xx0, %r1, %xx2, %r3}",
                               "{%r0, %f1, %f2, %f3}", "{%r0, %u1, 5, %r3}"])  # fmt: skip
def test_a_vector_has_the_type_that_its_registers_have_together(a: str) -> None:
    assert mma(a) == []


@pytest.mark.parametrize(("a", "code"), [
    ("{%f0, %f1, %f2, %f3}", "PTX221"), ("{%u0, %u1, %u2, %u3}", "PTX221"), ("{%rd0, %rd1, %rd2, %rd3}", "PTX222"),
    ("{%r0, %rd1, %r2, %r3}", "PTX227"), ("{%u0, %f1, %r2, %r3}", "PTX227"), ("{%xx0, %u1, %r2, %r3}", "PTX227"),
    ("{0, 0, 0, 0}", "PTX224"), ("{%xx0, 1, %xx2, %xx3}", "PTX224"), ("{%r0, %r1, %r2, _}", "PTX228"),
    ("{%r0, %r1, %r2, %tid.x}", "PTX251"), ("{%r0, %r1, %r2}", "PTX226"), ("{%r0, %r1, %r2, %w}", "PTX226"),
    ("{%r0, %r1, %r2, nowhere}", "PTX201"),
])  # fmt: skip
def test_a_fragment_of_other_registers(a: str, code: str) -> None:
    assert mma(a) == [code]


def test_fragments_of_bf16_are_registers_without_a_type() -> None:
    assert mma(t="bf16") == []
    assert mma("{%xx0, %xx1, %xx2, %xx3}", t="bf16") == ["PTX221"]


def test_accumulators_are_floats_or_bits() -> None:
    assert mma(c="{%r0, %r1, %r2, %r3}") == []
    assert mma(c="{1.5, 0f3F800000, %f2, %f3}") == []
    assert mma(c="{%u0, %u1, %u2, %u3}") == ["PTX221"]


@rows(("line", "codes"), [
    ("tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [tx, %f4];", []),
    ("tex.2d.v4.f32.f32 {%r0, %u1, %r2, %r3}, [tx, {%u0, %u1}];", []),
    ("tex.2d.v4.u32.f32 {%f0, %f1, %f2, %f3}, [tx, {%f0, %f1}];", ["PTX221"]),
    ("tex.2d.v4.f32.f32 {%xx0, %xx1, %xx2, %xx3}, [tx, {%f0, %f1}];", ["PTX221"]),
    ("tex.2d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [tx, {%f0, %f1}];", ["PTX221"]),
    ("tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [tx, {%fd0, %fd1}];", ["PTX222"]),
    ("tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [tx, {%f0}];", ["PTX226"]),
    ("tex.3d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [tx, {%f0, %f1, %f2}];", ["PTX226"]),
    ("tex.a2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [tx, {%u0, %f1, %f2, %f3}];", []),
    ("tex.a2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [tx, {%f0, %f1, %f2, %f3}];", ["PTX221"]),
    ("tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [tx, {%f0, %f1}], {%r0, %r1}, %f4;", []),
    ("tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [tx, {%f0, %f1}], %f4;", []),
    ("tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [tx, {%f0, %f1}], {%f0, %f1};", ["PTX221"]),
    ("tex.cube.v4.f32.f32 {%f0, %f1, %f2, %f3}, [tx, %v], {%r0, %r1, %r2, %r3};", ["PTX223"]),
    ("tex.grad.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [tx, {%f0, %f1}], {%f0, %f1}, {%f0, 1.0};", []),
    ("tex.grad.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [tx, {%f0, %f1}], {%u0, %u1}, {%f0, %f1};", ["PTX221"]),
    ("tex.grad.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [tx, {%f0, %f1}], {%f0, %f1, %f2, %f3}, {%f0, %f1};", ["PTX226"]),
    ("suld.b.2d.b32.trap {%rd0}, [sf, {%r0, 3}];", []),
    ("suld.b.2d.b32.trap %r0, [sf, {%f0, %f1}];", ["PTX221"]),
    ("sured.b.add.1d.u32.trap [sf, {%r0}], %rd1;", []),
    ("tcgen05.ld.sync.aligned.16x64b.x2.b32 {%r0, %xx1}, [%u1];", []),
    ("tcgen05.ld.sync.aligned.16x64b.x2.b32 {%rd0, %rd1}, [%r1];", ["PTX222"]),
    ("tcgen05.mma.cta_group::1.kind::f16 [%u1], %rd2, %rd3, %r4, %p1;", ["PTX242"]),
    ("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r0], {0, 0};", ["PTX224"]),
    ("mma.sp.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, "
     "{%r0, %r1, %r2, %r3}, {%f0, %f1, %f2, %f3}, %r5, 2;", ["PTX225"]),
    ("st.global.v2.f32 [%rd0], {%u0, %u1};", []),  # integers in vectors of floats of their size, not alone
    ("st.global.f32 [%rd0], %u0;", ["PTX221"]),
    ("ld.global.v2.f32 {_, %u1}, [%rd0];", []),
    ("ld.global.v2.f32 {%xx0, %xx1}, [%rd0];", ["PTX221"]),
    ("mov.v2.f32 {%f0, %f1}, {%u0, %u1};", []),
    ("mov.v2.u32 {%u0, %u1}, {%tid.x, %laneid};", []),
    ("mov.v2.u32 {%u0, %u1}, {%tid, %u0};", ["PTX226"]),
    ("st.global.v2.u32 [%rd0], {%tid.x, %u1};", ["PTX251"]),
    ("st.global.v8.f32 [%rd0], {%f0, _, %f2, _, %f4, %f5, %f6, _};", []),  # 256 bits: some may stay (9.7.9.11)
    ("st.global.v4.b64 [%rd0], {_, _, %rd1, _};", []),
    ("st.global.v8.f32 [%rd0], {_, _, _, _, _, _, _, _};", ["PTX228"]),
    ("st.global.v4.b32 [%rd0], {_, %r1, %r2, %r3};", ["PTX228"]),
    ("st.global.v2.b64 [%rd0], {_, %rd1};", ["PTX228"]),
    ("mov.v2.b32 {%r0, %r1}, {_, %r2};", ["PTX228"]),
    ("mov.b64 %rd0, {1, 2};", []),
    ("red.global.add.noftz.v2.f16 [%rd0], {%h0, 0x3C00};", []),  # constants for bits
    ("red.global.add.noftz.v2.f16 [%rd0], {%h0, 1.5};", ["PTX224"]),
    ("red.global.add.noftz.v2.f16 [%rd0], {0, 0};", ["PTX224"]),
    ("red.global.add.noftz.v2.f16x2 [%rd0], {%r0, 0};", ["PTX223"]),
    ("red.global.add.noftz.v2.bf16x2 [%rd0], {0f3F803F80, %r0};", []),
    ("red.global.add.v2.f32 [%rd0], {%u0, %u1};", []),
    ("red.global.add.v2.f32 [%rd0], {0, %u1};", ["PTX224"]),
    ("multimem.st.v2.bf16x2 [%rd0], {%f0, %f1};", []),
    ("multimem.st.v2.f16x2 [%rd0], {%f0, %f1};", ["PTX221"]),
    ("multimem.st.bf16x2 [%rd0], %u0;", []),
    ("multimem.st.f32 [%rd0], %u0;", ["PTX221"]),
    ("multimem.st.v2.f32 [%rd0], {%u0, %u1};", []),
    ("multimem.st.v2.f32 [%rd0], {1.5, 1.5};", ["PTX224"]),
    ("multimem.st.v4.f32 [%rd0], %v;", ["PTX223"]),
    ("multimem.red.add.v2.bf16x2 [%rd0], {%u0, %u1};", ["PTX221"]),
    ("cvt.rs.satfinite.e4m3x4.f32 %r1, %v, %r3;", ["PTX223"]),
    ("tex.grad.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [tx, {%f0, %f1}], {%u0, %r1}, {1.5, 1.5};", []),
    ("tex.grad.cube.v4.f32.f32 {%f0, %f1, %f2, %f3}, [tx, %v], {%u0, %r1, %r2, %r3}, %v;", ["PTX221"]),
])  # fmt: skip
def test_lines(line: str, codes: list[str]) -> None:
    assert findings(line) == codes


def test_samplers_go_with_independent_textures() -> None:
    line = "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [tx, sm, {%f0, %f1}];"
    assert findings(line, independent=True) == []
    assert findings(line.replace("sm, ", ""), independent=True) != []


MMA_SP = "mma.sp::ordered_metadata.sync.aligned.m16n8k{k}.row.col.f32.{t}.{t}.f32 {d}, {{%r0, %r1}}, {b}, {c}, %r5, 0;"


@pytest.mark.parametrize(("t", "k"), [("bf16", 16), ("tf32", 8)])
def test_sparse_products_take_all_registers_of_32_bits(t: str, k: int) -> None:
    for other in ("{%u0, %u1, %u2, %u3}", "{%xx0, %xx1, %xx2, %xx3}"):
        assert findings(MMA_SP.format(k=k, t=t, d=ACCUMULATOR, b="{%f0, %f1}", c=other)) == []
        assert findings(MMA_SP.format(k=k, t=t, d=other, b="{%xx0, %xx1}", c=ACCUMULATOR)) == []
    assert findings(MMA_SP.format(k=16, t="f16", d=ACCUMULATOR, b="{%u0, %u1}", c=ACCUMULATOR)) == ["PTX221"]
    assert mma("{%u0, %u1, %u2, %u3}", t="bf16") == mma(c="{%u0, %u1, %u2, %u3}", t="bf16") == ["PTX221"]


def test_products_of_doubles_take_integers_but_do_not_deliver_them() -> None:
    """ptxas makes the larger products of several, and looks at each register of D."""
    small = "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%ul0, %ul1}, {%ul0}, {%fd0}, {%fd0, %fd1};"
    large = "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {D}, {%ul0, %ul1}, {%fd0}, {%fd0, %fd1, %fd2, %fd3};"
    assert findings(small.replace("%ul", "%rd")) == findings(small) == []
    assert findings(large.replace("{D}", "{%fd0, %rd1, %rd2, %fd3}")) == []
    assert findings(large.replace("{D}", "{%ul0, %rd1, %rd2, %rd3}")) == ["PTX221"]


E4M3 = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {d}, {{%r0, %r1, %r2, %r3}}, {{%r0, %r1}}, {c};"


@pytest.mark.parametrize(
    ("registers", "codes"),
    [("{%f0, %r1, %f2, %r3}", []), ("{%r0, %u1, %r2, %r3}", ["PTX221"]), ("{%xx0, %r1, %r2, %r3}", ["PTX221"])],
)
def test_each_register_of_some_accumulators_counts(registers: str, codes: list[str]) -> None:
    assert findings(E4M3.format(d=ACCUMULATOR, c=registers)) == codes
    assert findings(E4M3.format(d=registers, c=ACCUMULATOR)) == codes


WMMA = "wmma.mma.sync.aligned.row.row.{shape}.f32.{t}.{t}.f32 {d}, {a}, {b}, {d};"


@pytest.mark.parametrize(("t", "shape", "a", "b", "codes"), [
    ("tf32", "m16n16k8", "{%u0, %r1, %u2, 0}", "{%r0, %r1, %r2, %r3}", []),
    ("tf32", "m16n16k8", "{%r0, %r1, %r2, %r3}", "{%f0, %r1, %r2, %r3}", ["PTX221"]),
    ("tf32", "m16n16k8", "{%r0, %r1, %r2, %r3}", "{%r0, %r1, %r2, 0}", ["PTX224"]),
    ("bf16", "m16n16k16", "{0, %u1, %u2, %u3}", "{%u0, %r1, %r2, %u3}", []),
    ("bf16", "m16n16k16", "{%r0, %r1, %r2, %r3}", "{0, %u1, %u2, %u3}", ["PTX221"]),
    ("bf16", "m32n8k16", "{0, %u1, %u2, %u3, %u4, %u5, %u6, %u7}", "{%r0, %r1}", ["PTX221"]),
])  # fmt: skip
def test_parts_of_wmma_fragments(t: str, shape: str, a: str, b: str, codes: list[str]) -> None:
    d = "{%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}"
    assert findings(WMMA.format(shape=shape, t=t, a=a, b=b, d=d)) == codes
