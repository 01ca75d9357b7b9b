"""What a bad kernel is told: kernel, CTA, thread, instruction and reason."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ptxtools.diagnostics import Trap

from .harness import Memory, body_kernel, run

IN, END = 0x1000_0000 + 4096, 0x1000_0000 + (1 << 22)


def trapped(body: str, before: str = "", **options: object) -> Trap:
    memory = Memory()
    memory.used = 4096
    source = memory.put(np.zeros(64, np.uint32))
    assert source == IN
    with pytest.raises(Trap) as caught:
        run(body_kernel(body, 4, before), memory, [source, source], **options)
    return caught.value


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("ld.global.u32 %r1, [%in+2];", f"address {IN + 2:#x} is not aligned to 4 bytes"),
        ("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%in+8];", f"address {IN + 8:#x} is not aligned to 16 bytes"),
        ("mov.u64 %d1, 0; ld.global.u32 %r1, [%d1];", "global read of 4 bytes at 0x0 is out of bounds"),
        ("mov.u64 %d1, 0; st.u8 [%d1], %r1;", "global write of 1 bytes at 0x0 is out of bounds"),
        (f"mov.u64 %d1, {END}; ld.global.u64 %d2, [%d1];", f"global read of 8 bytes at {END:#x} is out of bounds"),
        (f"mov.u64 %d1, {END}; atom.global.add.u32 %r1, [%d1], 1;", f"write of 4 bytes at {END:#x} is out of bounds"),
        ("red.global.add.u32 [%in+2], 1;", f"address {IN + 2:#x} is not aligned to 4 bytes"),
        (".shared .u32 s[8]; mov.u32 %r1, s; ld.shared.u32 %r2, [%r1+32];",
         "shared read of 4 bytes at 0x20 is out of bounds"),
        (".shared .u32 s[8]; mov.u32 %r1, s; st.shared.u32 [%r1+-4], %r1;",
         "shared write of 4 bytes at 0xfffffffc is out of bounds"),
        (".shared .u32 s[8]; mov.u64 %d1, s; cvta.shared.u64 %d1, %d1; ld.u64 %d2, [%d1+32];",
         "shared read of 8 bytes at 0x20 is out of bounds"),
        (".local .u32 l[2]; mov.u64 %d1, l; ld.local.u32 %r2, [%d1+1048576];",
         "local read of 4 bytes at 0x100000 is out of bounds"),
        ("trap;", "trap instruction"),
        ("mov.u32 %r1, 4; ts: .branchtargets A; brx.idx %r1, ts; A:", "branch index 4 is beyond the 1 targets"),
        ("mov.u32 %r1, 99; bar.sync %r1;", "barrier 99 does not exist"),
        ("mov.u32 %r1, 33; bar.sync 0, %r1;", "thread count 33 of a barrier is not a multiple of 32"),
    ],
)  # fmt: skip
def test_reasons(code, reason):
    assert re.search(re.escape(reason), trapped(f"{code} ret;").reason)


def test_a_trap_names_cta_thread_and_instruction():
    body = """setp.eq.u32 %p1, %n, 3; setp.eq.u32 %p2, %t, 5; and.pred %p1, %p1, %p2;
        mov.u32 %r2, %tid.z; setp.eq.u32 %p2, %r2, 1; and.pred %p1, %p1, %p2; mov.u64 %d1, 64;
        selp.b64 %d1, %d1, %in, %p1; ld.global.u32 %r1, [%d1]; ret;"""
    trap = trapped(body, grid=(5, 1, 1), block=(8, 4, 2))
    assert (trap.kernel, trap.cta, trap.thread, trap.kind) == ("k", (3, 0, 0), (5, 0, 1), "trap")
    assert "ld.global.u32 %r1, [%d1]" in trap.text


def test_lanes_that_do_not_run_may_hold_bad_addresses():
    body = """setp.eq.u32 %p1, %t, 5; mov.u64 %d1, 1; selp.b64 %d1, %in, %d1, %p1;
        @%p1 ld.global.u32 %r1, [%d1]; @%p1 st.global.u32 [%d1], %r1; ret;"""
    memory = Memory()
    run(body_kernel(body, 4), memory, [0, memory.put(np.zeros(4, np.uint32))])


def test_guarded_traps_stop_only_lanes_that_meet_them():
    trap = trapped("setp.eq.u32 %p1, %t, 21; @%p1 trap; st.global.u32 [%out], %t; ret;")
    assert trap.thread == (21, 0, 0)


def test_endless_recursion_is_a_stack_overflow():
    before = """.func deep(.reg .u32 a) { .reg .u32 %x; .local .b8 room[256]; add.u32 %x, a, 1;
        call deep, (%x); ret; }"""
    trap = trapped("call deep, (%t); ret;", before, local_bytes=4096)
    assert re.fullmatch(
        r"stack overflow in a call of deep, \d+ calls deep: a thread has 4096 bytes of local memory", trap.reason
    )


def test_a_call_to_no_function():
    trap = trapped("proto: .callprototype _ (); mov.u64 %d1, 77; call %d1, proto; ret;")
    assert trap.reason == "call to 0x4d, which is no function"


@pytest.mark.parametrize(
    ("body", "details"),
    [
        ("setp.lt.u32 %p1, %t, 32; @%p1 bra A; bar.sync 1; ret; A: bar.sync 2; ret;",
         ("CTA (0,0,0): 32 of 64 threads came to barrier 1", "CTA (0,0,0): 32 of 64 threads came to barrier 2")),
        ("bar.sync 4, 96; ret;", ("CTA (0,0,0): 64 of 96 threads came to barrier 4",)),
        ("setp.eq.u32 %p1, %t, 3; @%p1 bra A; bar.warp.sync -1; bar.sync 0; ret; A: bar.sync 0; ret;",
         ("CTA (0,0,0): 33 of 64 threads came to barrier 0",
          "CTA (0,0,0), warp 0: 31 threads wait for other lanes of the warp (bar.warp.sync -1)")),
    ],
)  # fmt: skip
def test_deadlocks_are_found_at_once_and_told(body, details):
    trap = trapped(body, block=(64, 1, 1))
    assert trap.kind == "deadlock" and trap.reason == "no thread can go on"
    assert trap.details[: len(details)] == details


def test_a_trap_on_one_worker_ends_the_others():
    body = """setp.ne.u32 %p1, %n, 40; @%p1 bra WORK; trap; WORK: mov.u32 %r1, 0;
        L: add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 3000; @%p2 bra L; ret;"""
    trap = trapped(body, grid=(64, 1, 1), threads=2, resident=4)
    assert trap.cta == (40, 0, 0)
