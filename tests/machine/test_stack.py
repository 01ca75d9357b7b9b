"""alloca, stacksave, stackrestore (9.7.17); instructions that change no value."""

from __future__ import annotations

import numpy as np
import pytest

from ptxtools.diagnostics import Trap

from .harness import both, output

HEAD = """.version 9.0
.target sm_90a
.address_size 64
"""
ENTRY = """.visible .entry k(.param .u64 out) {
    .reg .pred %p<8>; .reg .b32 %r<24>; .reg .b64 %d<24>; .reg .u32 %t; .reg .u64 %out, %w;
    .local .b32 mine[2];
    mov.u32 %t, %tid.x; ld.param.u64 %out, [out]; mul.wide.u32 %w, %t, 4; add.u64 %out, %out, %w;
"""


def run(engine: str, body: str, before: str = "", count: int = 32) -> np.ndarray:
    return np.array(output(engine, HEAD + before + ENTRY + body + "}", count, block=(count, 1, 1)))


@both
def test_every_lane_takes_what_it_needs(engine):
    """Lane t takes 4 (t + 1) bytes, fills them, and adds them up."""
    body = """
    st.local.b32 [mine], 77;
    add.u32 %r1, %t, 1; mul.wide.u32 %d1, %r1, 4; alloca.u64 %d2, %d1; mov.u64 %d3, %d2; mov.u32 %r2, 0;
    FILL: st.local.u32 [%d3], %r2; add.u64 %d3, %d3, 4; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, %r1; @%p1 bra FILL;
    mov.u64 %d3, %d2; mov.u32 %r2, 0; mov.u32 %r3, 0;
    SUM: ld.local.u32 %r4, [%d3]; add.u32 %r3, %r3, %r4; add.u64 %d3, %d3, 4; add.u32 %r2, %r2, 1;
    setp.lt.u32 %p1, %r2, %r1; @%p1 bra SUM;
    ld.local.b32 %r5, [mine]; add.u32 %r3, %r3, %r5; st.global.u32 [%out], %r3; ret;"""
    assert run(engine, body).tolist() == [t * (t + 1) // 2 + 77 for t in range(32)]


@both
def test_alignment_and_distance(engine):
    body = """
    alloca.u64 %d1, 4; alloca.u64 %d2, 20; alloca.u64 %d3, 1, 64;
    and.b64 %d4, %d1, 7; and.b64 %d5, %d2, 7; or.b64 %d4, %d4, %d5; and.b64 %d5, %d3, 63; or.b64 %d4, %d4, %d5;
    sub.u64 %d6, %d1, %d2; setp.lt.u64 %p1, %d6, 20; @%p1 trap;
    sub.u64 %d6, %d2, %d3; setp.lt.u64 %p1, %d6, 1; @%p1 trap;
    cvt.u32.u64 %r1, %d4; add.u32 %r1, %r1, 1; st.global.u32 [%out], %r1; ret;"""
    assert run(engine, body).tolist() == [1] * 32


@both
@pytest.mark.parametrize("width", ["32", "64"])
def test_saving_and_restoring(engine, width):
    r = "%r" if width == "32" else "%d"
    body = f"""
    stacksave.u{width} {r}7; alloca.u{width} {r}8, 100; stackrestore.u{width} {r}7; alloca.u{width} {r}9, 100;
    setp.ne.u{width} %p1, {r}8, {r}9; @%p1 trap; stacksave.u{width} {r}10; setp.ne.u{width} %p1, {r}10, {r}9; @%p1 trap;
    st.global.u32 [%out], 6; ret;"""
    assert run(engine, body).tolist() == [6] * 32


@both
def test_a_loop_that_restores_needs_no_more(engine):
    body = """
    mov.u32 %r1, 0; LOOP: stacksave.u64 %d1; alloca.u64 %d2, 8000; st.local.u32 [%d2], %r1; stackrestore.u64 %d1;
    add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 50; @%p1 bra LOOP; st.global.u32 [%out], %r1; ret;"""
    assert run(engine, body).tolist() == [50] * 32


FUNCTION = """.func (.reg .u32 r) f(.reg .u32 n) {
    .reg .b64 %d<4>; .reg .pred %p;
    cvt.u64.u32 %d1, n; alloca.u64 %d2, %d1; st.local.u32 [%d2], n; ld.local.u32 r, [%d2];
    setp.eq.u32 %p, n, 8; @%p ret; add.u32 r, r, 1; ret;
}
"""


@both
def test_a_function_frees_what_it_took(engine):
    body = """
    stacksave.u64 %d7; mov.u32 %r1, 0; mov.u32 %r2, 0;
    LOOP: call (%r3), f, (%r4); add.u32 %r1, %r1, %r3; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 10; @%p1 bra LOOP;
    stacksave.u64 %d8; setp.ne.u64 %p2, %d7, %d8; @%p2 trap; st.global.u32 [%out], %r1; ret;"""
    body = "and.b32 %r4, %t, 1; mad.lo.u32 %r4, %r4, 4000, 8;" + body
    assert run(engine, body, FUNCTION).tolist() == [80 if t % 2 == 0 else 40090 for t in range(32)]


#: Takes 64 bytes at each level, and checks on the way back that they still hold what was written.
DEEPER = """.func (.reg .u32 r) f(.reg .u32 n) {
    .reg .b64 %d<4>; .reg .b32 %r<4>; .reg .pred %p; .local .b32 mine;
    alloca.u64 %d1, 64; st.local.u32 [%d1], n; st.local.u32 [%d1+60], n; st.local.u32 [mine], n;
    mov.u32 r, 0; setp.eq.u32 %p, n, 0; @%p bra BACK; sub.u32 %r1, n, 1; call (r), f, (%r1);
    BACK: ld.local.u32 %r1, [%d1]; ld.local.u32 %r2, [%d1+60]; ld.local.u32 %r3, [mine];
    setp.ne.u32 %p, %r1, n; @%p trap; setp.ne.u32 %p, %r2, n; @%p trap; setp.ne.u32 %p, %r3, n; @%p trap;
    add.u32 r, r, n; ret;
}
"""


@both
def test_recursion_keeps_what_it_took(engine):
    got = run(engine, "call (%r1), f, (%t); st.global.u32 [%out], %r1; ret;", DEEPER)
    assert got.tolist() == [t * (t + 1) // 2 for t in range(32)]


@both
def test_what_a_frame_took_and_deeper_frames_never_meet(engine):
    """Frames grow from below, allocations from above: the one that comes second is the trap."""
    with pytest.raises(Trap, match="stack overflow") as failure:
        run(engine, "call (%r1), f, (100000); st.global.u32 [%out], %r1; ret;", DEEPER)
    assert failure.value.text in ("call (r), f, (%r1)", "alloca.u64 %d1, 64")


COUNT = """.func (.reg .u32 r) f(.reg .u32 n) {
    .reg .b32 %r<4>; .reg .pred %p; mov.u32 r, 0; setp.eq.u32 %p, n, 0; @%p ret;
    sub.u32 %r1, n, 1; call (r), f, (%r1); add.u32 r, r, 1; ret;
}
"""


@pytest.mark.share(3)
@both
@pytest.mark.parametrize("stack", [1024, 16384, 65536])
def test_how_deep_a_recursion_goes_depends_on_the_stack(engine, stack):
    """A call takes 16 bytes beside the callee's variables."""
    body = "call (%r1), f, (%r2); st.global.u32 [%out], %r1; ret;"
    depth = stack // 16
    fits = f"mov.u32 %r2, {depth - 1}; {body}"
    text = HEAD + COUNT + ENTRY.replace(".local .b32 mine[2];", "")
    assert output(engine, f"{text}{fits}}}", 32, local_bytes=stack) == [depth - 1] * 32
    with pytest.raises(Trap) as failure:
        output(engine, f"{text}mov.u32 %r2, {depth}; {body}}}", 32, local_bytes=stack)
    assert failure.value.reason == (
        f"stack overflow in a call of f, {depth + 1} calls deep: a thread has {stack} bytes of local memory"
    )
    assert failure.value.text == "call (r), f, (%r1)"


@both
def test_a_call_finds_no_room_beside_what_was_taken(engine):
    before = ".func f() { .local .b8 room[4096]; .reg .b32 %r1; mov.u32 %r1, 1; st.local.u32 [room], %r1; ret; }\n"
    text = HEAD + before + ENTRY.replace(".local .b32 mine[2];", "")
    fits = "alloca.u64 %d1, 4080; call f; st.global.u32 [%out], 3; ret;}"
    assert output(engine, text + fits, 32, local_bytes=8192) == [3] * 32
    with pytest.raises(Trap, match="stack overflow in a call of f, 1 calls deep"):
        output(engine, text + fits.replace("4080", "4088"), 32, local_bytes=8192)


@both
@pytest.mark.parametrize("place", ["0", "0x100000", "%d2"])
def test_restoring_what_was_never_saved_is_a_trap(engine, place):
    """Above the stack, below it, and a place that has been freed since."""
    body = f"""
    stacksave.u64 %d1; alloca.u64 %d2, 64; stackrestore.u64 %d1; setp.ne.u32 %p1, %t, 5; @%p1 exit;
    mov.u64 %d3, {place}; stackrestore.u64 %d3; ret;"""
    with pytest.raises(Trap, match=r"stackrestore of 0x[0-9a-f]+, which is not a stack position") as failure:
        run(engine, body)
    assert failure.value.thread == (5, 0, 0)


@both
def test_too_much_is_a_trap(engine):
    with pytest.raises(Trap, match="stack overflow: 100000 bytes requested") as failure:
        run(engine, "setp.ne.u32 %p1, %t, 5; @%p1 exit; alloca.u64 %d1, 100000; st.local.u32 [%d1], 1; ret;")
    assert failure.value.thread == (5, 0, 0)


@both
def test_a_breakpoint_without_a_debugger_does_nothing(engine):
    assert run(engine, "mov.u32 %r1, 4; brkpt; @%p1 brkpt; st.global.u32 [%out], %r1; ret;").tolist() == [4] * 32


@both
def test_register_counts_change_no_value(engine):
    body = """
    mov.u32 %r1, %t; setmaxnreg.inc.sync.aligned.u32 232; add.u32 %r1, %r1, 1; setmaxnreg.dec.sync.aligned.u32 24;
    st.global.u32 [%out], %r1; ret;"""
    assert run(engine, body, count=128).tolist() == [t + 1 for t in range(128)]


@both
@pytest.mark.parametrize("instruction", ["griddepcontrol.wait;", "griddepcontrol.launch_dependents;", "pmevent 3;"])
def test_instructions_without_effect(engine, instruction):
    assert run(engine, f"{instruction} st.global.u32 [%out], 3; ret;").tolist() == [3] * 32
