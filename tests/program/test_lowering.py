"""What lowering makes of PTX: operations in short, layouts, refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxtools.diagnostics import PtxError
from ptxtools.machine.launch import constants
from ptxtools.program import layout, lower
from ptxtools.program.details import Constant
from ptxtools.program.variant import Variant

from .harness import Memory, launch_of, listing, lowered, module_of, results

BENCH = Path(__file__).parents[2] / "testdata" / "bench" / "ptx"


def bench(name: str, *, optimise: bool = True) -> list[str]:
    return listing(lowered((BENCH / f"{name}.ptx").read_text(), optimise=optimise))


def test_vecadd() -> None:
    assert bench("vecadd") == [
        "0:", "  sreg", "  sreg", "  mad.lo.s32", "  setp.ge.s32", "  -> @p branch 2 1",
        "1:", "  mad.wide.s32", "  mad.wide.s32", "  ld.global.f32", "  ld.global.f32", "  add.f32", "  mad.wide.s32",
        "  st.global.f32", "  -> jump 2",
        "2:", "  -> exit",
    ]  # fmt: skip


def test_inner_loop_of_branchy_is_one_block() -> None:
    """nvcc's `mov.pred 0; xor.pred; not.pred` is gone, and both sides of the branch are guarded."""
    lines = bench("branchy")
    start = lines.index("3:")
    assert lines[start : start + 8] == [
        "3:", "  lop3.or.b32", "  @p mad.lo.s32", "  @p add.s32", "  @!p shr.u32", "  @!p add.s32",
        "  setp.ne.s32", "  -> @p branch 3 4",
    ]  # fmt: skip


def test_inner_loops_have_no_copies() -> None:
    for name in ("sgemm_naive", "sgemm_tiled", "collatz", "nbody"):
        lines = bench(name)
        ends = [i for i, line in enumerate(lines) if line.startswith("  -> @p branch")]
        for end in ends:
            start = max(i for i in range(end) if lines[i].endswith(":"))
            target = int(lines[end].split()[3])
            if target == int(lines[start][:-1]):  # a loop of one block
                assert "  copy" not in lines[start:end], name


def test_logic_becomes_lop3_and_products_with_sums_mad() -> None:
    text = """.visible .entry k(.param .u64 out) { .reg .u32 %r<20>; .reg .u64 %d<4>;
        mov.u32 %r0, %tid.x; ld.param.u64 %d1, [out]; mul.wide.u32 %d2, %r0, 4; add.s64 %d3, %d1, %d2;
        shl.b32 %r9, %r0, 3; add.u32 %r1, %r9, %r0; mul.lo.u32 %r8, %r1, %r1; add.s32 %r2, 5, %r8;
        xor.b32 %r3, %r0, %r1; and.b32 %r4, %r3, %r2; and.b32 %r5, %r0, %r1; xor.b32 %r6, %r4, %r5; not.b32 %r7, %r6;
        st.global.u32 [%d3], %r7; ret; }"""
    program = lowered(text)
    assert listing(program) == [
        "0:", "  sreg", "  mad.wide.u32", "  mad.lo.u32", "  mad.lo.u32", "  lop3.b32", "  st.global.u32", "  -> exit",
    ]  # fmt: skip
    lop3 = program.blocks[0].ops[4]
    a, b, c = 0xF0, 0xCC, 0xAA
    # The order of the leaves is the pass's own; the function is symmetric: not the majority of three.
    assert lop3.detail == Constant(3, ~((a & b) ^ (a & c) ^ (b & c)) & 0xFF)


@pytest.mark.parametrize("test", ["eq.b32 %p, %r1, 8", "ne.s32 %p, %r1, 8", "eq.u32 %p, %r1, 0", "ne.u32 %p, %r1, 0"])
def test_one_bit_is_tested_in_one_operation(test: str) -> None:
    body = f"and.b32 %r1, %t, 8; setp.{test.replace('%p', '%p1')}; selp.u32 %r2, 1, 0, %p1; st.global.u32 [%out], %r2;"
    expected = [int((bool(t & 8) == (test[-1] == "8")) == (test[:2] == "eq")) for t in range(32)]
    assert results(body + " ret;").tolist() == expected
    text = f""".visible .entry k(.param .u64 out) {{ .reg .u32 %r<4>; .reg .pred %p; .reg .u64 %d;
        ld.param.u64 %d, [out]; mov.u32 %r0, %tid.x; and.b32 %r1, 8, %r0;
        setp.{test}; selp.u32 %r2, 1, 0, %p; st.global.u32 [%d], %r2; ret; }}"""
    assert listing(lowered(text))[1:4] == ["  sreg", "  lop3.or.b32", "  selp.u32"]


def test_what_changes_in_between_is_not_fused() -> None:
    text = """.visible .entry k(.param .u64 out) { .reg .u32 %r<8>; .reg .u64 %d;
        mov.u32 %r0, %tid.x; ld.param.u64 %d, [out]; mov.u32 %r1, %ctaid.x;
        and.b32 %r2, %r0, %r1; add.u32 %r0, %r0, 1; xor.b32 %r3, %r2, %r1; st.global.v2.u32 [%d], {%r3, %r0}; ret; }"""
    assert "  lop3.b32" not in listing(lowered(text))


def test_without_optimisation_everything_stays() -> None:
    program = lowered((BENCH / "vecadd.ptx").read_text(), optimise=False)
    kinds = [op.opcode.text if op.opcode else op.kind for block in program.blocks for op in block.ops]
    assert kinds == [
        "ld.param.u64", "ld.param.u64", "ld.param.u64", "ld.param.u32", "sreg", "sreg", "sreg", "mad.lo.s32",
        "setp.ge.s32", "copy", "mul.wide.s32", "add.s64", "copy", "add.s64", "ld.global.f32", "ld.global.f32",
        "add.f32",
        "copy", "add.s64", "st.global.f32",
    ]  # fmt: skip
    slots = [op.dst[0].slot for block in program.blocks for op in block.ops if op.dst and op.dst[0]]
    assert len(set(slots)) == len(slots), "each register has a slot of its own"


def test_long_side_keeps_its_branch() -> None:
    body = "".join(f"mul.lo.u32 %r{i + 1}, %r{i}, %r{i}; " for i in range(12))
    text = f""".visible .entry k(.param .u64 out) {{ .reg .u32 %r<20>; .reg .pred %p; .reg .u64 %d;
        mov.u32 %r0, %tid.x; ld.param.u64 %d, [out]; setp.eq.u32 %p, %r0, 3; @%p bra END; {body}
        END: st.global.u32 [%d], %r12; ret; }}"""
    assert any("branch" in line for line in listing(lowered(text)))


def test_side_that_writes_its_own_guard_keeps_its_branch() -> None:
    text = """.visible .entry k(.param .u64 out) { .reg .u32 %r<4>; .reg .pred %p; .reg .u64 %d;
        mov.u32 %r0, %tid.x; ld.param.u64 %d, [out]; setp.eq.u32 %p, %r0, 3; @%p bra END;
        setp.eq.u32 %p, %r0, 4; add.u32 %r0, %r0, 1; END: selp.u32 %r1, 1, 2, %p; add.u32 %r1, %r1, %r0;
        st.global.u32 [%d], %r1; ret; }"""
    assert any("branch" in line for line in listing(lowered(text)))


def test_nested_branches_join_their_guards() -> None:
    text = """.visible .entry k(.param .u64 out) { .reg .u32 %r<4>; .reg .pred %p<3>; .reg .u64 %d;
        mov.u32 %r0, %tid.x; ld.param.u64 %d, [out]; mov.u32 %r1, 0;
        setp.gt.u32 %p1, %r0, 3; @%p1 bra END; setp.gt.u32 %p2, %r0, 1; @%p2 bra END2; add.u32 %r1, %r1, 5;
        END2: add.u32 %r1, %r1, 7; END: st.global.u32 [%d], %r1; ret; }"""
    lines = listing(lowered(text))
    assert "  and.pred" in lines and not any("branch" in line for line in lines)


def test_parameters_and_grid_shape_are_constants_of_the_launch() -> None:
    text = """.visible .entry k(.param .u64 out, .param .s16 n) { .reg .u32 %r<4>; .reg .u64 %d;
        ld.param.u64 %d, [out]; ld.param.s16 %r1, [n]; mov.u32 %r2, %ntid.x; mov.u32 %r3, %nctaid.y;
        st.global.v2.u32 [%d], {%r1, %r2}; st.global.u32 [%d+8], %r3; ret; }"""
    launch = launch_of(text, Memory(), [0x1234_5678_9ABC, -2], block=(7, 1, 1), grid=(1, 5, 1))
    program = launch.program
    assert listing(program) == ["0:", "  st.global.v2.u32", "  st.global.u32", "  -> exit"]
    values = {(storage, value) for _, storage, value in constants(launch, program.functions[0])}
    assert values == {("b64", 0x1234_5678_9ABC), ("b32", 0xFFFF_FFFE), ("b32", 7), ("b32", 5)}


def test_one_block_waits_for_shuffles_of_one_mask() -> None:
    text = """.visible .entry k(.param .u64 out) { .reg .u32 %r<4>; .reg .u64 %d;
        mov.u32 %r0, %tid.x; ld.param.u64 %d, [out];
        shfl.sync.bfly.b32 %r1, %r0, 1, 31, -1; shfl.sync.bfly.b32 %r2, %r1, 2, 31, -1;
        st.global.u32 [%d], %r2; ret; }"""
    assert listing(lowered(text)) == [
        "0:", "  sreg", "  -> jump 1", "1:", "  -> warpsync 2",
        "2:", "  shfl.sync.bfly.b32", "  shfl.sync.bfly.b32", "  st.global.u32", "  -> exit",
    ]  # fmt: skip


def test_lines_point_at_the_text() -> None:
    text = (BENCH / "vecadd.ptx").read_text()
    module = module_of(text)
    program = lower(module, "vecadd", lambda name: 0, variant=Variant(optimise=False))
    for block in program.blocks:
        for op in block.ops:
            _, start, line = program.lines[op.where]
            assert text[start:].startswith(line) and (op.opcode is None or op.opcode.family in line)


# --- layouts ----------------------------------------------------------------------------------------------------------


def test_parameter_block() -> None:
    module = module_of(""".visible .entry k(.param .u8 a, .param .u32 b, .param .align 16 .b8 c[20], .param .u16 d,
        .param .u64 e) { ret; }""")
    placed = layout.kernel_parameters(module.entries[0])
    assert [(p.name, p.offset, p.size) for p in placed] == [
        ("a", 0, 1), ("b", 4, 4), ("c", 16, 20), ("d", 36, 2), ("e", 40, 8),
    ]  # fmt: skip
    assert layout.parameter_bytes(module.entries[0]) == 48


def test_shared_memory_holds_what_the_kernel_reaches() -> None:
    text = """.shared .align 4 .u32 unused[100]; .shared .u8 one; .shared .align 32 .b8 two[5];
        .extern .shared .align 64 .b8 tail[];
        .func f() { .shared .u32 inner[3]; .reg .u32 %r; ld.shared.u32 %r, [inner]; ret; }
        .visible .entry k() { .reg .u32 %r<4>; .reg .u64 %d; ld.shared.u8 %r1, [one]; mov.u32 %r2, two;
        mov.u32 %r3, tail; st.shared.u32 [%r2], %r3; call f; ret; }"""
    program = lowered(text)
    values = [value for _, storage, value in program.functions[0].constants if storage == "b32"]
    assert program.static_shared == 64  # one at 0, two at 32, inner at 40, then up to the alignment of tail
    assert sorted(values) == [32, 64]


def test_addresses_of_functions_are_in_order_of_mention() -> None:
    module = module_of(".func f();\n.func g() { ret; }\n.func f() { ret; }\n.visible .entry k() { ret; }")
    assert list(layout.function_addresses(module)) == ["f", "g", "k"]


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("bra NOWHERE;", "there is no label 'NOWHERE'"),
        ("add.u32 %r1, %undeclared, 1;", "'%undeclared' is neither declared nor a special register"),
        ("add.u32 %r1, nothing, 1;", "'nothing' has no address"),
        ("frobnicate.u32 %r1, %r2;", "unknown instruction"),
        ("@%r9 add.u32 %r1, %r1, 1;", "is not a predicate register"),
        ("call f;", "'f' is not a function"),
    ],
)
def test_refusals(body: str, reason: str) -> None:
    with pytest.raises(PtxError) as caught:
        lowered(f".visible .entry k() {{ .reg .u32 %r<4>; .reg .u64 %d<2>;\n {body} ret; }}")
    diagnostic = caught.value.diagnostics[0]
    assert diagnostic.code == "PTX901" and reason in diagnostic.message and diagnostic.line == 5


def test_every_refusal_of_a_kernel_is_named() -> None:
    with pytest.raises(PtxError) as caught:
        lowered(".visible .entry k() { .reg .u32 %r<4>; bra A; add.u32 %r1, x, 1; bra B; ret; }")
    assert len(caught.value.diagnostics) == 3


def test_hints_cost_nothing() -> None:
    text = """.visible .entry k(.param .u64 p) { .reg .u64 %d<3>; .reg .u32 %r1; ld.param.u64 %d1, [p];
        prefetch.global.L2 [%d1]; createpolicy.fractional.L2::evict_last.b64 %d2, 1.0; griddepcontrol.wait;
        ld.global.L2::cache_hint.u32 %r1, [%d1], %d2; st.global.u32 [%d1], %r1; ret; }"""
    assert listing(lowered(text)) == ["0:", "  ld.global.L2::cache_hint.u32", "  st.global.u32", "  -> exit"]


def test_unknown_kernel() -> None:
    with pytest.raises(PtxError, match="no kernel 'other'"):
        lower(module_of(".visible .entry k() { ret; }"), "other", lambda name: 0)
