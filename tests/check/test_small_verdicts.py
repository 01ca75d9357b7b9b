"""Small verdicts at the version and target that ptxas was asked about, each the answer of that version's release."""

from ptxtools.check import check
from ptxtools.container.layout import size_of
from ptxtools.ir.nodes import Variable
from ptxtools.program.layout import variable_size
from ptxtools.syntax import parse
from tests.rows import rows
from tools.conformance.setting import LINE, LINES, module_of


def codes(setting: str, place: str, text: str) -> list[str]:
    lines, _ = module_of(setting, place, [text])
    result = parse("\n".join(lines))
    return sorted({d.code for d in [*result.diagnostics, *check(result.module)]})


LD_WITHOUT = "tcgen05.ld.red.sync.32x32b.x4.max.s32 {%r0, %r1, %r2, %r3}, %r4, [%r5];"
FENCE = "fence.proxy.async::generic.acquire.{}sync_restrict::shared::cluster.cluster;"
SPARSE = ("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %rd2, %rd3, %r4, 0x100000001, "
          "0, -1, -1, 1, 0;")  # fmt: skip
COPY = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%rd1], [%rd2], 0x100000010, [%rd3];"
STORE = "cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group.mbarrier::report::disabled [%rd2, {%r1}], [%rd1];"
RESIZED = ("cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes.override::global_address"
           ".override::global_dim [%rd1], [%rd2, %rd3, {{{}}}, {{%r1}}], [%rd4];")  # fmt: skip
TENSOR = (
    "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%rd8], [{}, {{%r0}}], [%rd8];"
)
ORDERED = ("cp.async.bulk.relaxed.gpu.shared::cta.global.mbarrier::complete_tx::bytes{}.b128 "
           "[%rd1], [%rd2], 16, %rd3{};")  # fmt: skip
FABRIC = ("fabric.try_get.async.tensor.1d.shared::cta.mbarrier::complete_tx::bytes.mbarrier::report::fabric.{}b128{} "
          "[%r1], [%rd2, %r3, %rd4, {}], [%r6];")  # fmt: skip
GET = ("fabric.try_get.async.shared::cta.mbarrier::complete_tx::bytes.mbarrier::report::fabric.{}b128 [%r1], "
       "[%r2, %rd1], %r3, [%r4];")  # fmt: skip
LD_COMPRESSED = "tcgen05.ld.spcompress.sync.aligned.32x32b.x4.min.sp::2:4{} {{%r0}}, {{%r1, %r2}}, [%r5];"


@rows(("setting", "text", "expected"), [
    # ptxas 13.0 takes .aligned for granted, later ones do not.
    ("9.0/sm_103a", LD_WITHOUT, ["PTX610"]), ("9.2/sm_103a", LD_WITHOUT, ["PTX112"]),
    # One space behind a fence is dropped, not two.
    ("9.0/sm_103a", FENCE.format("global."), ["PTX610"]), ("9.1/sm_103a", FENCE.format("shared::cta."), ["PTX610"]),
    ("9.0/sm_103a", FENCE.format("global.global."), ["PTX114"]),
    ("9.0/sm_103a", FENCE.format("global.shared::cta."), ["PTX113"]),
    ("9.2/sm_100f", "fence.proxy.async.global.global;", ["PTX114"]),
    # A type of two bits, where types do not count.
    ("9.1/sm_110a", "suld.b.3d.b2.ca.b8.clamp %b1, [sf, {%r1, %r2, %r3, %r4}];", ["PTX610"]),
    ("9.0/sm_110a", "add.b2.u32 %r1, %r2, %r3;", ["PTX111"]),
    # Cache operators of both stores.
    ("9.0/sm_90", "sust.p.2d.cg.b32.clamp [sf, {%r1, %r2}], %r3;", ["PTX610"]),
    ("9.0/sm_90", "sured.p.add.2d.cg.b32.clamp [sf, {%r1, %r2}], %r3;", ["PTX111"]),
    # .unified at any target, behind registers; of others only where the space is global or generic.
    ("9.0/sm_80", "ld.acquire.cta.s8 %r1, [%rd1].unified;", ["PTX610"]),
    ("1.4/sm_10", "ld.global.s8 %r1, [%rd1].unified;", ["PTX610"]),
    ("9.0/sm_90", "ld.global.s8 %r1, [%rd1].unified;", []),
    ("9.0/sm_80", "ld.global.s8 %r1, [gv].unified;", ["PTX240", "PTX610"]),
    ("9.0/sm_100f", "ldmatrix.sync.aligned.m8n8.x1.b16 {%r0}, [%rd1].unified;", ["PTX610"]),
    ("9.0/sm_100f", "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%rd1].unified;", ["PTX240"]),
    ("9.0/sm_90", "atom.shared.add.u32 %r1, [%rd1].unified, %r2;", ["PTX240"]),
    # From some version on all bits of a constant count.
    ("9.0/sm_90a", SPARSE, []), ("9.1/sm_90a", SPARSE, ["PTX225"]),
    ("9.1/sm_90", COPY, []), ("9.2/sm_90", COPY, ["PTX225"]),
    ("9.2/sm_90", "fence.proxy.tensormap::generic.acquire.gpu [%rd1], 0x100000080;", []),
    ("9.3/sm_90", "fence.proxy.tensormap::generic.acquire.gpu [%rd1], 0x100000080;", ["PTX225"]),
    # Types stand in their order.
    ("9.4/sm_107a", "spdecompress.b16.b4.sp::1:4.x1 {%r0, %r1}, {%r0}, {%r0};", []),
    ("9.4/sm_107a", "spdecompress.b4.b16.sp::1:4.x1 {%r0, %r1}, {%r0}, {%r0};", ["PTX210"]),
    ("9.4/sm_107a", LD_COMPRESSED.format(".f32.b2"), []), ("9.4/sm_107a", LD_COMPRESSED.format(".b2.f32"), ["PTX210"]),
    # The borrow came a version later than the carry.
    ("1.2/sm_11", "add.cc.u32 %r1, %r2, %r3;", []), ("1.2/sm_11", "sub.cc.u32 %r1, %r2, %r3;", ["PTX301"]),
    ("1.3/sm_11", "subc.u32 %r1, %r2, %r3;", []),
    # An address with an offset is still one of its space.
    ("9.0/sm_90", "cvta.global.u64 %rd1, gv+4;", []), ("9.0/sm_90", "cvta.shared.u64 %rd1, gv+4;", ["PTX241"]),
    # A tensor map is in global memory.
    ("9.0/sm_90", TENSOR.format("gv"), []), ("9.0/sm_90", TENSOR.format("sv"), ["PTX241"]),
    ("9.0/sm_90", TENSOR.format("lv"), ["PTX241"]), ("9.0/sm_90", TENSOR.format("cv"), ["PTX241"]),
    ("9.0/sm_90", "cp.async.bulk.prefetch.tensor.1d.L2.global.tile [sv, {%r0}];", ["PTX241"]),
    ("9.0/sm_90", "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group [sv, {%r0}], [%rd8];",
     ["PTX241"]),
    # Formatted stores to arrays came later.
    ("3.0/sm_20", "sust.b.a1d.b32.trap [sf, {%r1, %r2}], %r3;", []),
    ("4.0/sm_30", "sust.p.a1d.b32.trap [sf, {%r1, %r2}], %r3;", ["PTX301"]),
    ("4.1/sm_20", "sust.p.a2d.b32.trap [sf, {%r1, %r2, %r3, %r4}], %r3;", ["PTX302"]),
    ("4.1/sm_30", "sust.p.a2d.b32.trap [sf, {%r1, %r2, %r3, %r4}], %r3;", []),
    # A depth comparison of integer coordinates, in one dimension too, where the operand could be an offset.
    ("9.0/sm_90", "tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [tx, {%r1}], %r3;", []),
    ("9.0/sm_90", "tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [tx, {%r1}], %f3;", ["PTX221"]),
    # Sums as operands: a sum of integers is no float, one of 32 bits none of 64.
    ("9.0/sm_90", "add.f32 %f1, %f2, %r3+4;", ["PTX610"]), ("9.0/sm_90", "add.f32 %f1, %f2, %u3+4;", ["PTX203"]),
    ("9.0/sm_90", "add.u64 %rd1, %rd2, %r3+4;", ["PTX203"]), ("9.0/sm_90", "abs.bf16 %h1, %r3+4;", ["PTX203"]),
    ("9.1/sm_90", "abs.bf16 %h1, %r3+4;", ["PTX610"]), ("9.0/sm_90", "vadd.u32.u32.u32 %r1, %r2+4, %r3;", ["PTX203"]),
    # Addresses of 16 bits, without an offset.
    ("9.0/sm_90", "ld.global.b32 %r1, [%h1];", ["PTX610"]), ("9.0/sm_90", "ld.global.b32 %r1, [%h1+4];", ["PTX242"]),
    ("9.0/sm_90", "mbarrier.arrive.b64 %rd1, [%h1];", ["PTX242"]),
    # Reports of tensor stores are ignored, where they exist.
    ("9.4/sm_107a", STORE, ["PTX610"]), ("9.4/sm_100a", STORE, ["PTX302"]), ("9.3/sm_90", STORE, ["PTX301"]),
    # Sizes of a tensor are integers of 8 or 16 bits.
    ("9.4/sm_107a", RESIZED.format("%h2"), []), ("9.4/sm_107a", RESIZED.format("%b2"), []),
    ("9.4/sm_107a", RESIZED.format("%r2"), ["PTX221"]), ("9.4/sm_107a", RESIZED.format("%x2"), ["PTX221"]),
    # An mbarrier without brackets, if nothing stands behind it.
    ("9.3/sm_90", ORDERED.format("", ""), ["PTX610"]),
    ("9.3/sm_90", ORDERED.format(".L2::cache_hint", ", %rd4"), ["PTX240"]),
    # Halves to floats of 4 bits came before their date.
    ("8.6/sm_100a", "cvt.rn.satfinite.e2m1x2.f16x2 %b1, %r1;", ["PTX610"]),
    ("9.0/sm_90", "cvt.rn.satfinite.e2m1x2.f16x2 %b1, %r1;", ["PTX301"]),
    ("9.0/sm_100a", "cvt.rn.satfinite.e2m1x2.bf16x2 %b1, %r1;", ["PTX301"]),
    ("9.0/sm_90", "rcp.rm.ftz.f64 %fd1, %fd2;", ["PTX610"]),
    # Tensors over a fabric.
    ("9.4/sm_107f", FABRIC.format("relaxed.sys.", ".override::global_address", "{%r1}"), []),
    ("9.4/sm_107f", FABRIC.format("", ".override::global_address", "{%r1}"), []),
    ("9.4/sm_107f", FABRIC.format("relaxed.sys.", "", "{%r1}"), ["PTX112"]),
    ("9.4/sm_107f", FABRIC.format("", ".override::global_address.override::global_dim", "{%b1}, {%r1}"), []),
    ("9.4/sm_107f", FABRIC.format("", ".override::global_address.override::global_dim_stride", "{%b1}, %h1, {%r1}"),
     ["PTX113"]),
    ("9.4/sm_100f", FABRIC.format("", ".override::global_address", "{%r1}"), ["PTX302"]),
    ("9.3/sm_100", GET.format("relaxed.sys."), []), ("9.3/sm_100", GET.format(""), ["PTX610"]),
    # Registers of bf16 in multimem.
    ("9.0/sm_90", "multimem.ld_reduce.add.bf16x2 %u1, [%rd1];", []),
    ("9.1/sm_90", "multimem.ld_reduce.add.bf16x2 %u1, [%rd1];", ["PTX221"]),
    ("9.1/sm_90", "multimem.st.v2.bf16x2 [%rd1], {%r1, 1};", ["PTX223"]),
    ("9.1/sm_90", "multimem.st.v4.bf16 [%rd1], {%uh1, %h1, %h2, %h3};", []),
])  # fmt: skip
def test_statements(setting: str, text: str, expected: list[str]) -> None:
    assert codes(setting, LINE, text) == expected


@rows(("setting", "text", "expected"), [
    ("9.1/sm_90", ".extern .global .v2 .texref x;", ["PTX423"]),
    ("4.1/sm_21", ".global .align 16 .v4 .surfref x[4];", ["PTX423"]),
    ("1.3/sm_10", ".tex .u64 x; .tex .u32 y<2>;", []),
    ("1.3/sm_10", ".tex .f32 x;", ["PTX422"]), ("1.3/sm_10", ".tex .u32 x[4];", ["PTX422"]),
    # Banks of constants.
    ("2.1/sm_10", ".extern .const .b32 x[];", ["PTX421"]), ("2.1/sm_10", ".extern .const[0] .b32 x[0];", ["PTX421"]),
    ("2.1/sm_10", ".extern .const[1] .b32 x[0];", []), ("2.1/sm_10", ".extern .const .b32 x[4];", []),
    ("3.1/sm_10", ".extern .const .b32 x[0];", []),
    # Types of arrays, vectors and mere declarations are not dated.
    ("7.1/sm_60", ".global .b128 x[4];", ["PTX610"]), ("7.1/sm_60", ".global .b128 x;", ["PTX301"]),
    ("3.2/sm_30", ".global .v2 .f16x2 x;", ["PTX610"]), ("3.2/sm_30", ".global .f16x2 x[2];", ["PTX301"]),
    ("8.0/sm_61", ".extern .func g(.reg .b128 a);", ["PTX610"]),
    ("8.0/sm_61", ".func g(.reg .b128 a) { ret; }", ["PTX301"]),
    ("1.5/sm_11", ".entry g(.param .b8 a[300]) { ret; }", ["PTX610"]),
    ("1.4/sm_11", ".entry g(.param .b8 a[300]) { ret; }", ["PTX302"]),
    # Samplers in unified mode.
    ("9.0/sm_90", ".global .samplerref x[2];", ["PTX610"]), ("9.0/sm_90", ".global .samplerref x;", ["PTX306"]),
    # An array of no elements has those of its initialiser.
    ("9.0/sm_90", ".global .u32 x[0] = {1, 2};", ["PTX610"]), ("9.0/sm_90", ".global .u32 x[0];", ["PTX423"]),
    ("9.0/sm_90", ".global .u32 x[0][2] = {{1, 2, 3}};", ["PTX428", "PTX610"]),
    # What a function keeps is part of its declarations.
    ("9.0/sm_90", ".func g() .abi_preserve 8; .func g() .abi_preserve 8 { ret; }", []),
    ("9.0/sm_90", ".func g() .abi_preserve 8; .func g() { ret; }", ["PTX204"]),
    ("9.0/sm_90", ".func g() .abi_preserve_control 3; .func g() .abi_preserve_control 4 { ret; }", ["PTX204"]),
    ("9.0/sm_90", ".func g() .abi_preserve 8 .abi_preserve 8 { ret; }", ["PTX411"]),
    ("9.0/sm_90", ".func g() .abi_preserve 8 { ret; } .func h(); .alias h, g;", []),
])  # fmt: skip
def test_declarations(setting: str, text: str, expected: list[str]) -> None:
    assert codes(setting, LINES, f"{text}\\n.entry k() {{ ret; }}") == expected


def test_an_array_of_no_elements_takes_the_bytes_of_its_initialiser() -> None:
    module = parse(".version 9.0\n.target sm_90\n.address_size 64\n.global .u32 x[0] = {7, 9}, y[0][2] = {{1, 2}};\n")
    variables = [item for item in module.module.items if isinstance(item, Variable)]
    assert [variable_size(v) for v in variables] == [size_of(v) for v in variables] == [8, 8]
