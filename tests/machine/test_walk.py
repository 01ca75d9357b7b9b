"""One small kernel for each instruction of the machine that no other test of this folder runs, on both engines.

Thread i of 32 leaves %r0 at out[i]; expectations come from the manual.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxtools
from tests.rows import rows

HEAD = """.version 8.8
.target {target}
.address_size 64
{outer}
.visible .entry k(.param .u64 out, .param .u64 in) {{
  .reg .b16 %h<8>; .reg .b32 %r<24>; .reg .b64 %d<12>; .reg .b128 %x<4>; .reg .f32 %f<8>; .reg .pred %p<4>;
  .shared .align 32 .b8 sh[1024];
  ld.param.u64 %d0, [out]; ld.param.u64 %d1, [in];
  mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d2, %d0, %d2; mov.u32 %r2, sh; mov.u32 %r0, 0;
{body}
  st.global.u32 [%d2], %r0; ret; }}
"""
LANES = range(32)
CALLEES = """.func (.param .u32 r) plus(.param .u32 a) { .reg .b32 %q; ld.param.u32 %q, [a]; add.u32 %q, %q, 5;
  st.param.u32 [r], %q; ret; }
.func (.param .u32 r) times(.param .u32 a) { .reg .b32 %q; ld.param.u32 %q, [a]; mul.lo.u32 %q, %q, 3;
  st.param.u32 [r], %q; ret; }
.global .u64 table[2] = {plus, times};"""
VARIADIC = """.func (.param .u32 r) total(.param .u32 n, .param .align 8 .b8 rest[]) {
  .reg .b32 %n, %q, %s; .reg .b64 %a; .reg .pred %p; ld.param.u32 %n, [n]; mov.b64 %a, rest; mov.u32 %s, 0;
  L: setp.eq.u32 %p, %n, 0; @%p bra E; ld.param.u32 %q, [%a]; add.u32 %s, %s, %q; add.u64 %a, %a, 4;
  sub.u32 %n, %n, 1; bra L; E: st.param.u32 [r], %s; ret; }"""

#: body, what stands before the kernel, target, what thread i leaves
KERNELS: dict[str, tuple[str, str, str, Any]] = {
    "brx.idx": (
        "and.b32 %r3, %r1, 3; ts: .branchtargets A, B, C, D; brx.idx %r3, ts; A: mov.u32 %r0, 10; bra E;"
        "B: mov.u32 %r0, 20; bra E; C: mov.u32 %r0, 30; bra E; D: mov.u32 %r0, 40; E:",
        "", "sm_75", lambda i: 10 * (i % 4 + 1)),
    "call through a table": (
        "and.b32 %r3, %r1, 1; mul.wide.u32 %d3, %r3, 8; mov.u64 %d4, table; add.u64 %d3, %d3, %d4;"
        "ld.global.u64 %d5, [%d3]; pr: .callprototype (.param .b32 _) _ (.param .b32 _);"
        "{ .param .b32 a; .param .b32 r; st.param.b32 [a], %r1; call (r), %d5, (a), pr; ld.param.b32 %r0, [r]; }",
        CALLEES, "sm_75", lambda i: i * 3 if i & 1 else i + 5),
    "variadic call": (
        "{ .param .b32 n; .param .align 8 .b8 v[12]; .param .b32 r; st.param.b32 [n], 3; st.param.b32 [v], %r1;"
        "st.param.b32 [v+4], 7; st.param.b32 [v+8], 9; call (r), total, (n, v); ld.param.b32 %r0, [r]; }",
        VARIADIC, "sm_75", lambda i: i + 16),
    "ld.v8": (
        "ld.global.v8.b32 {%r4, %r5, %r6, %r7, %r8, %r9, %r10, %r11}, [%d1]; add.u32 %r0, %r4, %r11;"
        "st.global.v8.b32 [%d1+64], {%r4, %r5, %r6, %r7, %r8, %r9, %r10, %r11};", "", "sm_100", lambda i: 7),
    "ld.v4.b64": ("ld.global.v4.b64 {%d4, %d5, %d6, %d7}, [%d1]; shr.u64 %d7, %d7, 32; cvt.u32.u64 %r0, %d7;",
                  "", "sm_100", lambda i: 7),
    "ld.b128": (
        "ld.global.b128 %x0, [%d1+16]; mov.b128 {%d4, %d5}, %x0; cvt.u32.u64 %r0, %d5;", "", "sm_90", lambda i: 6),
    "st.b128": (
        "mov.b64 %d4, 77; mov.b128 %x0, {%d4, %d4}; st.shared.b128 [sh], %x0; ld.shared.u32 %r0, [sh+8];",
        "", "sm_90", lambda i: 77),
    "mmio, sc, volatile": (
        "st.mmio.relaxed.sys.global.u32 [%d1+64], 5; ld.mmio.relaxed.sys.global.u32 %r3, [%d1+64];"
        "fence.sc.gpu; fence.acq_rel.cluster; membar.sys; st.release.gpu.global.u32 [%d1+64], 6;"
        "ld.acquire.sys.global.u32 %r4, [%d1+64]; ld.volatile.global.u32 %r5, [%d1+64]; add.u32 %r0, %r3, %r4;"
        "add.u32 %r0, %r0, %r5;", "", "sm_90", lambda i: 17),
    "caches": (
        "createpolicy.fractional.L2::evict_last.b64 %d3, 1.0; ld.global.L2::cache_hint.u32 %r3, [%d1+4], %d3;"
        "ld.global.nc.L1::no_allocate.L2::128B.u32 %r4, [%d1+8]; ldu.global.u32 %r5, [%d1+12];"
        "ld.global.cg.u32 %r6, [%d1+16];"
        "st.global.wt.u32 [%d1+96], 1; prefetch.global.L2 [%d1]; prefetchu.L1 [%d1];"
        "prefetch.global.L2::evict_last [%d1];"
        "applypriority.global.L2::evict_normal [%d1], 128; add.u32 %r0, %r3, %r4; add.u32 %r0, %r0, %r5;"
        "add.u32 %r0, %r0, %r6;", "", "sm_90", lambda i: 10),
    "atom.exch.b128": (
        "mov.b64 %d4, 3; mov.b64 %d5, 4; mov.b128 %x0, {%d4, %d5}; @!%p0 mov.u32 %r3, 0; setp.eq.u32 %p0, %r1, 0;"
        "mov.b128 %x1, {%d5, %d4}; @%p0 atom.global.exch.b128 %x1, [%d1], %x0; mov.b128 {%d6, %d7}, %x1;"
        "cvt.u32.u64 %r0, %d7;", "", "sm_90", lambda i: 3 if i else 2),
    "atom.cas.b128": (
        "ld.global.b128 %x0, [%d1]; mov.b64 %d4, 9; mov.b128 %x2, {%d4, %d4}; setp.eq.u32 %p0, %r1, 0;"
        "@%p0 atom.global.cas.b128 %x1, [%d1], %x0, %x2; bar.warp.sync -1; ld.global.u32 %r0, [%d1+8];",
        "", "sm_90", lambda i: 9),
    "atom vectors": (
        "mov.f32 %f1, 0f3F800000; atom.global.v2.f32.add {%f2, %f3}, [%d1+128], {%f1, %f1}; bar.warp.sync -1;"
        "red.global.v4.f32.add [%d1+128], {%f1, %f1, %f1, %f1}; bar.warp.sync -1; ld.global.f32 %f4, [%d1+128];"
        "cvt.rzi.u32.f32 %r0, %f4;", "", "sm_90", lambda i: 64),
    "atom packed halves": (
        "mov.b32 %r3, 0x3C003C00; red.global.add.noftz.f16x2 [%d1+128], %r3; mov.b32 %r6, 0x3F803F80;"
        "red.global.add.noftz.bf16x2 [%d1+132], %r6;"
        "bar.warp.sync -1; ld.global.u32 %r4, [%d1+128]; ld.global.u32 %r5, [%d1+132]; xor.b32 %r0, %r4, %r5;",
        "", "sm_90", lambda i: 0x50005000 ^ 0x42004200),
    "atom.add.f64": (
        "mov.b64 %d4, 0d3FF0000000000000; red.global.add.f64 [%d1+128], %d4; bar.warp.sync -1;"
        "ld.global.u32 %r0, [%d1+132];",
        "", "sm_90", lambda i: 0x40400000),
    "atom.shared inc, dec": (
        "st.shared.u32 [sh], 0; bar.warp.sync -1; atom.shared.inc.u32 %r3, [sh], 9; bar.warp.sync -1;"
        "ld.shared.u32 %r0, [sh];", "", "sm_75", lambda i: 2),
    "%envreg and %pm": (
        "mov.b32 %r3, %envreg0; mov.b32 %r4, %envreg31; mov.u32 %r5, %pm0; mov.u64 %d4, %pm7_64;"
        "add.u32 %r0, %r3, %r4;",
        "", "sm_75", lambda i: 0),
    "reserved shared memory": (
        "mov.u32 %r3, %reserved_smem_offset_begin; mov.u32 %r4, %reserved_smem_offset_end;"
        "mov.u32 %r5, %reserved_smem_offset_cap; mov.u32 %r6, %reserved_smem_offset_0; mov.u32 %r7, %aggr_smem_size;"
        "mov.u32 %r8, %total_smem_size; setp.le.u32 %p0, %r3, %r4; setp.ge.and.u32 %p0, %r7, %r8, %p0;"
        "selp.u32 %r0, 1, 0, %p0;", "", "sm_90", lambda i: 1),
    "match.sync": (
        "shr.u32 %r3, %r1, 3; match.any.sync.b32 %r0, %r3, -1; match.all.sync.b32 %r4|%p0, %r3, -1;"
        "@%p0 mov.u32 %r0, 0;", "", "sm_75", lambda i: 0xFF << i // 8 * 8),
    "vote": ("setp.lt.u32 %p0, %r1, 5; vote.sync.ballot.b32 %r0, %p0, -1;", "", "sm_75", lambda i: 31),
    "elect": ("elect.sync %r3|%p0, -1; selp.u32 %r0, 1, 0, %p0;", "", "sm_90", lambda i: int(i == 0)),
    "%smid": ("mov.u32 %r3, %smid; mov.u32 %r4, %nsmid; setp.lt.u32 %p0, %r3, %r4; selp.u32 %r0, 1, 0, %p0;",
              "", "sm_75", lambda i: 1),
    "barrier with reduction": (
        "setp.lt.u32 %p1, %r1, 7; barrier.cta.red.popc.aligned.u32 %r0, 3, 32, %p1; barrier.cta.arrive 4, 64;",
        "", "sm_75", lambda i: 7),
    "%clock": ("mov.u32 %r3, %clock; mov.u64 %d3, %globaltimer; nanosleep.u32 1000; mov.u64 %d4, %globaltimer;"
               "setp.gt.u64 %p0, %d4, %d3; selp.u32 %r0, 1, 0, %p0;", "", "sm_75", lambda i: 1),
    "discard": ("discard.global.L2 [%d1+128], 128; mov.u32 %r0, 1;", "", "sm_80", lambda i: 1),
    "managed": ("ld.global.u32 %r0, [m];", ".visible .global .attribute(.managed) .u32 m = 12;", "sm_75", lambda i: 12),
    "addresses in initialisers": (
        "ld.global.u64 %d3, [where]; ld.u32 %r0, [%d3+4];",
        ".global .u32 data[3] = {5, 6, 7}; .global .u64 where = generic(data)+4;", "sm_75", lambda i: 7),
    "isspacep": ("cvta.shared.u64 %d3, sh; isspacep.shared %p0, %d3; isspacep.global %p1, %d3; selp.u32 %r0, 1, 0, %p0;"
                 "@%p1 mov.u32 %r0, 2;", "", "sm_75", lambda i: 1),
    "setmaxnreg": ("setmaxnreg.inc.sync.aligned.u32 64; mov.u32 %r0, 1;", "", "sm_90a", lambda i: 1),
}  # fmt: skip


@pytest.mark.parametrize("engine", ["native", "reference"])
@rows("name", KERNELS, share=3)
def test_kernel(name: str, engine: str) -> None:
    body, outer, target, expected = KERNELS[name]
    kernel = ptxtools.loads(HEAD.format(target=target, outer=outer, body=body))["k"]
    out = np.zeros(32, np.uint32)
    data = np.concatenate([np.arange(16, dtype=np.uint32), np.zeros(64, np.uint32)])
    ptxtools.Device(target, engine=engine).launch(kernel, 1, 32, [out, data])
    assert out.tolist() == [expected(i) for i in LANES]


#: Banks of constants were removed in PTX 2.2 (5.1.3); older modules still run.
BANKS = """.version 2.1
.target sm_20
.const .u32 zero[2] = {1, 2}; .extern .const[3] .u32 three[];
.extern .const[3] .b8 same[]; .extern .const[10] .u32 ten[];
.entry k(.param .u32 out) {
  .reg .u32 %r<8>; ld.param.u32 %r0, [out]; ld.const.u32 %r1, [zero+4]; ld.const[3].u32 %r2, [three+4];
  ld.const[10].u32 %r3, [ten+65532]; add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3; ld.const[3].u8 %r4, [same+4];
  st.global.u32 [%r0], %r1; st.global.u32 [%r0+4], %r4; exit; }
"""


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("stored", [False, True])
def test_constant_banks(engine: str, stored: bool) -> None:
    """Banks 1 to 10 are 64 KiB each, for whoever launches to fill; all arrays of one begin at its start (5.1.3.1)."""
    out, table = np.zeros(2, np.uint32), np.zeros(16384, np.uint32)
    module = ptxtools.loads(ptxtools.assemble([BANKS]) if stored else BANKS)
    device = ptxtools.Device(engine=engine, checks=["memcheck", "initcheck"])
    table[1], table[-1] = 0x1_0021, 100
    device.global_(module, "three").upload(table)
    device.global_(module, "ten").upload(table)
    device.launch(module["k"], 1, 1, [out])
    assert out.tolist() == [2 + 0x1_0021 + 100, 0x21]
