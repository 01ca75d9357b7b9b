"""Calls on the reference engine: arguments in values and in memory, recursion, addresses of functions."""

from __future__ import annotations

import numpy as np
import pytest

from ptxtools.diagnostics import PtxError, Trap
from ptxtools.program.program import CODE_BASE, CODE_STEP
from tests.program.harness import Memory, lowered, results, run

BOTH = pytest.mark.parametrize("optimise", [True, False])
T = np.arange(32, dtype=np.uint32)

FIBONACCI = """
.func (.param .b32 r) fib(.param .b32 n) {
    .reg .u32 %a<6>; .reg .pred %q;
    ld.param.u32 %a1, [n];
    mov.u32 %a2, %a1;
    setp.lt.u32 %q, %a1, 2;
    @%q bra DONE;
    sub.u32 %a3, %a1, 1;
    { .param .b32 x; .param .b32 y; st.param.b32 [x], %a3; call (y), fib, (x); ld.param.b32 %a4, [y]; }
    sub.u32 %a3, %a1, 2;
    { .param .b32 x; .param .b32 y; st.param.b32 [x], %a3; call (y), fib, (x); ld.param.b32 %a5, [y]; }
    add.u32 %a2, %a4, %a5;
    DONE: st.param.b32 [r], %a2; ret;
}"""

CALL = "{{ .param .b32 x; .param .b32 y; st.param.b32 [x], {0}; call (y), {1}, (x); ld.param.b32 {0}, [y]; }}"


@BOTH
def test_recursion_of_different_depths(optimise: bool) -> None:
    body = "and.b32 %r1, %t, 7; " + CALL.format("%r1", "fib") + " st.global.u32 [%out], %r1; ret;"
    got = results(body, before=FIBONACCI, optimise=optimise)
    assert got.tolist() == [0, 1, 1, 2, 3, 5, 8, 13] * 4


@BOTH
def test_register_parameters_and_guarded_call(optimise: bool) -> None:
    before = """.func (.reg .u32 s) sum(.reg .u32 a, .reg .u64 b) {
        .reg .u32 %x; cvt.u32.u64 %x, b; add.u32 s, a, %x; add.u32 a, a, 1; ret; }"""
    body = """mov.u32 %r2, 5; cvt.u64.u32 %d1, %t; setp.lt.u32 %p1, %t, 16;
        @%p1 call (%r2), sum, (%t, %d1);
        st.global.u32 [%out], %r2; ret;"""
    got = results(body, before=before, optimise=optimise)
    assert np.array_equal(got, np.where(T < 16, 2 * T, 5))


@BOTH
def test_structures_by_value(optimise: bool) -> None:
    before = """.func (.param .align 8 .b8 r[12]) turn(.param .align 8 .b8 p[12], .param .b32 by) {
        .reg .u32 %x<6>;
        ld.param.v2.u32 {%x1, %x2}, [p]; ld.param.u32 %x3, [p+8]; ld.param.u32 %x4, [by];
        add.u32 %x1, %x1, %x4;
        st.param.v2.b32 [r], {%x2, %x3}; st.param.b32 [r+8], %x1; ret; }"""
    body = """{ .param .align 8 .b8 a[12]; .param .b32 n; .param .align 8 .b8 b[12];
        st.param.v2.b32 [a], {%t, 100}; st.param.b32 [a+8], 200; st.param.b32 [n], 3;
        call (b), turn, (a, n);
        ld.param.v2.b32 {%r1, %r2}, [b]; ld.param.b32 %r3, [b+8]; }
        mad.lo.u32 %r4, %r3, 1000, %r1; add.u32 %r4, %r4, %r2;
        st.global.u32 [%out], %r4; ret;"""
    got = results(body, before=before, optimise=optimise)
    assert np.array_equal(got, (T + 3) * 1000 + 300)


@BOTH
def test_narrow_and_partial_parameters(optimise: bool) -> None:
    before = """.func (.param .b32 r) f(.param .b32 flag, .param .b32 parts) {
        .reg .b16 %h<3>; .reg .s32 %x<4>;
        ld.param.s8 %h1, [flag]; cvt.s32.s16 %x1, %h1;
        ld.param.u8 %h2, [parts+2]; cvt.u32.u16 %x2, %h2;
        add.s32 %x3, %x1, %x2; st.param.b32 [r], %x3; ret; }"""
    body = """{ .param .b32 a; .param .b32 b; .param .b32 y;
        st.param.b32 [a], 0x1FF; st.param.b32 [b], 0x00770000; call (y), f, (a, b); ld.param.b32 %r1, [y]; }
        st.global.u32 [%out], %r1; ret;"""
    assert set(results(body, before=before, optimise=optimise)) == {0x77 - 1}


@BOTH
def test_address_of_a_parameter(optimise: bool) -> None:
    before = """.func (.param .b32 r) f(.param .b32 v) {
        .reg .u64 %a; .reg .u32 %x;
        mov.u64 %a, v; ld.local.u32 %x, [%a]; add.u32 %x, %x, 1; st.param.b32 [r], %x; ret; }"""
    body = "mov.u32 %r1, %t; " + CALL.format("%r1", "f") + " st.global.u32 [%out], %r1; ret;"
    assert np.array_equal(results(body, before=before, optimise=optimise), T + 1)


INDIRECT = """
.func (.param .b32 r) f(.param .b32 a) { .reg .u32 %x; ld.param.u32 %x, [a]; add.u32 %x, %x, 1;
    st.param.b32 [r], %x; ret; }
.func (.param .b32 r) g(.param .b32 a) { .reg .u32 %x; ld.param.u32 %x, [a]; mul.lo.u32 %x, %x, 3;
    st.param.b32 [r], %x; ret; }"""


@BOTH
def test_divergent_indirect_call(optimise: bool) -> None:
    body = """and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0;
        mov.u64 %d1, f; mov.u64 %d2, g; selp.b64 %d3, %d1, %d2, %p1;
        { .param .b32 x; .param .b32 y; st.param.b32 [x], %t;
        proto: .callprototype (.param .b32 _) _ (.param .b32 _);
        call (y), %d3, (x), proto; ld.param.b32 %r2, [y]; }
        st.global.u32 [%out], %r2; ret;"""
    got = results(body, before=INDIRECT, optimise=optimise)
    assert np.array_equal(got, np.where(T % 2 == 0, T + 1, 3 * T))


def test_call_to_no_function_traps() -> None:
    body = f"""mov.u64 %d3, {CODE_BASE + CODE_STEP * 77}; mov.u64 %d1, f;
        {{ .param .b32 x; .param .b32 y; st.param.b32 [x], %t;
        targets: .calltargets f, g;
        call (y), %d3, (x), targets; ld.param.b32 %r2, [y]; }} ret;"""
    with pytest.raises(Trap, match="which is no function"):
        results(body, before=INDIRECT)


def test_endless_recursion_overflows_the_stack() -> None:
    before = """.func f(.param .b32 a) { .local .b8 big[256]; .reg .u32 %x; .reg .u64 %l;
        mov.u64 %l, big; ld.param.u32 %x, [a]; st.local.u32 [%l], %x;
        { .param .b32 b; st.param.b32 [b], %x; call f, (b); } ret; }"""
    body = "{ .param .b32 x; st.param.b32 [x], %t; call f, (x); } ret;"
    with pytest.raises(Trap, match=r"stack overflow in a call of f, \d+ calls deep"):
        results(body, before=before, local_bytes=4096)


def test_local_memory_of_each_depth_is_its_own() -> None:
    before = """.func (.param .b32 r) down(.param .b32 n) { .local .u32 keep[2]; .reg .u32 %x<5>; .reg .pred %q;
        ld.param.u32 %x1, [n]; st.local.u32 [keep+4], %x1; mov.u32 %x2, 0;
        setp.eq.u32 %q, %x1, 0; @%q bra DONE;
        sub.u32 %x3, %x1, 1;
        { .param .b32 b; .param .b32 c; st.param.b32 [b], %x3; call (c), down, (b); ld.param.b32 %x2, [c]; }
        DONE: ld.local.u32 %x4, [keep+4]; add.u32 %x2, %x2, %x4; st.param.b32 [r], %x2; ret; }"""
    body = "mov.u32 %r1, %t; " + CALL.format("%r1", "down") + " st.global.u32 [%out], %r1; ret;"
    assert np.array_equal(results(body, before=before), T * (T + 1) // 2)


def test_undefined_function_is_refused_with_its_place() -> None:
    with pytest.raises(PtxError, match=r"PTX901") as caught:
        lowered(
            ".extern .func missing(.param .b32 a);\n.visible .entry k() { .param .b32 x;\n call missing, (x); ret; }"
        )
    assert "'missing' has no definition" in caught.value.diagnostics[0].message
    assert caught.value.diagnostics[0].line == 6


def test_chains_of_calls_are_measured() -> None:
    module = (
        INDIRECT
        + """
.visible .entry k() { .reg .u32 %r1; mov.u32 %r1, 1; """
        + CALL.format("%r1", "f")
        + " ret; }"
    )
    program = lowered(module)
    assert [function.name for function in program.functions] == ["k", "f"]
    assert program.max_frames == 2
    assert program.frame_bytes == sum(function.frame_bytes for function in program.functions)
    assert (
        lowered(
            FIBONACCI + ".visible .entry k() { .reg .u32 %r1; mov.u32 %r1, 1; " + CALL.format("%r1", "fib") + " ret; }"
        ).max_frames
        == 0
    )


def test_function_pointers_in_memory() -> None:
    memory = Memory()
    table = memory.put(np.array([CODE_BASE, CODE_BASE + CODE_STEP], np.uint64))
    out = memory.put(np.zeros(32, np.uint32))
    text = (
        ".global .u64 table[2] = {f, g};"
        + INDIRECT
        + """
.visible .entry k(.param .u64 out) { .reg .u32 %t, %r<4>; .reg .u64 %d<5>;
    mov.u32 %t, %tid.x; and.b32 %r1, %t, 1; mul.wide.u32 %d1, %r1, 8; mov.u64 %d2, table; add.u64 %d2, %d2, %d1;
    ld.global.u64 %d3, [%d2];
    { .param .b32 x; .param .b32 y; st.param.b32 [x], %t;
    proto: .callprototype (.param .b32 _) _ (.param .b32 _);
    call (y), %d3, (x), proto; ld.param.b32 %r2, [y]; }
    ld.param.u64 %d4, [out]; mul.wide.u32 %d1, %t, 4; add.u64 %d4, %d4, %d1; st.global.u32 [%d4], %r2; ret; }"""
    )
    run(text, memory, [out], globals_at=table)
    assert np.array_equal(memory.get(out, np.uint32, 32), np.where(T % 2 == 0, T + 1, 3 * T))
