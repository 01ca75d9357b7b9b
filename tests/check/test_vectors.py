"""Vectors in braces: the types of their elements, constants, coordinates and fragments, as ptxas 13.0 judges them."""

import pytest

from ptxtools.check import check
from ptxtools.syntax import parse

HEAD = """.version 9.0
.target sm_100a{options}
.address_size 64
.global .texref tx; .global .surfref sf; {sampler}
.visible .entry k()
{{
.reg .b32 %r<40>; .reg .u32 %u<40>; .reg .f32 %f<40>; .reg .f16x2 %xx<8>; .reg .b64 %rd<8>; .reg .b16 %h<8>;
.reg .f64 %fd<8>; .reg .pred %p<4>; .reg .v4 .f32 %v; .reg .v2 .b32 %w;
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


@pytest.mark.parametrize(("line", "codes"), [
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
])  # fmt: skip
def test_lines(line: str, codes: list[str]) -> None:
    assert findings(line) == codes


def test_samplers_go_with_independent_textures() -> None:
    line = "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [tx, sm, {%f0, %f1}];"
    assert findings(line, independent=True) == []
    assert findings(line.replace("sm, ", ""), independent=True) != []
