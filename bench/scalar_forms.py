"""The scalar forms that `scalar.py` measures: an instruction of each class, and the same in C.

An instruction names its operands d, a, b, c; a C expression reads a[i], b[i], c[i] as `a`, `b`, `c` of the C types that
belong to the PTX types. `H` is _Float16; bf16 and narrow floats are uint16_t and uint8_t. "" for C: there is no plain
C for it, and only the absolute target holds.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Targets in million lanes a second on one core.
BASIC, WIDE, NARROW, NONE = 3000, 1500, 300, -1


@dataclass(frozen=True, slots=True)
class Form:
    """text: the instruction; c: the expression or ""; target: million lanes a second, or 0: half the speed of C."""

    text: str
    c: str
    target: int = 0

    @property
    def opcode(self) -> str:
        return self.text.split()[0]


def _forms(target: int, text: str) -> list[Form]:
    rows = [line.partition("|") for line in text.strip().splitlines() if line.strip()]
    return [Form(left.strip(), right.strip(), target) for left, _, right in rows]


GROUPS: dict[str, list[Form]] = {
    "32 bits": _forms(BASIC, """
        add.f32 d, a, b                  | a + b
        sub.f32 d, a, b                  | a - b
        mul.f32 d, a, b                  | a * b
        fma.rn.f32 d, a, b, c            | __builtin_fmaf(a, b, c)
        add.s32 d, a, b                  | a + b
        sub.s32 d, a, b                  | a - b
        mul.lo.s32 d, a, b               | a * b
        mad.lo.s32 d, a, b, c            | a * b + c
        and.b32 d, a, b                  | a & b
        not.b32 d, a                     | ~a
        lop3.b32 d, a, b, c, 0x96        | a ^ b ^ c
        shl.b32 d, a, b                  | b > 31 ? 0 : a << b
        shr.s32 d, a, b                  | a >> (b > 31 ? 31 : b)
        setp.lt.s32 d, a, b              | a < b
        setp.lt.f32 d, a, b              | a < b
        selp.b32 d, a, b, c              | c ? a : b
    """),
    "64 bits": _forms(WIDE, """
        add.f64 d, a, b                  | a + b
        sub.f64 d, a, b                  | a - b
        mul.f64 d, a, b                  | a * b
        fma.rn.f64 d, a, b, c            | __builtin_fma(a, b, c)
        add.s64 d, a, b                  | a + b
        sub.s64 d, a, b                  | a - b
        mul.lo.s64 d, a, b               | a * b
        mad.lo.s64 d, a, b, c            | a * b + c
        and.b64 d, a, b                  | a & b
        shl.b64 d, a, b                  | b > 63 ? 0 : a << b
        shr.s64 d, a, b                  | a >> (b > 63 ? 63 : b)
        setp.lt.s64 d, a, b              | a < b
        setp.lt.f64 d, a, b              | a < b
        selp.b64 d, a, b, c              | c ? a : b
    """),
    "conversion to narrow types": _forms(NARROW, """
        cvt.rn.f16.f32 d, a              | (H)a
        cvt.rz.f16.f32 d, a              |
        cvt.rn.f16x2.f32 d, a, b         |
        cvt.rn.bf16.f32 d, a             |
        cvt.rn.relu.bf16x2.f32 d, a, b   |
        cvt.rna.tf32.f32 d, a            |
        cvt.rn.satfinite.e4m3x2.f32 d, a, b |
        cvt.rn.satfinite.e5m2x2.f32 d, a, b |
        cvt.rn.satfinite.e4m3x2.f16x2 d, a |
        cvt.rn.satfinite.e2m3x2.f32 d, a, b |
        cvt.rn.satfinite.e2m1x2.f32 d, a, b |
        cvt.rp.satfinite.ue8m0x2.f32 d, a, b |
        cvt.rs.f16x2.f32 d, a, b, c      |
        cvt.rn.f16x2.e4m3x2 d, a         |
        cvt.rn.f16x2.e2m1x2 d, a         |
        cvt.rn.bf16x2.ue8m0x2 d, a       |
        cvt.rn.f16.f64 d, a              |
        cvt.rn.f16.s64 d, a              |
        cvt.rn.bf16.u32 d, a             |
        cvt.u8.u32 d, a                  | (uint8_t)a
        cvt.sat.s8.s32 d, a              | a < -128 ? -128 : a > 127 ? 127 : a
        cvt.rzi.u8.f32 d, a              | a < 0 ? 0 : a > 255 ? 255 : (uint8_t)a
        cvt.rni.s16.f64 d, a             | (int16_t)__builtin_rint(a < -32768 ? -32768 : a > 32767 ? 32767 : a)
        cvt.pack.sat.u8.s32.b32 d, a, b, c | ((uint32_t)SAT8(b) | (uint32_t)SAT8(a) << 8 | c << 16)
    """),
    "other conversions": _forms(0, """
        cvt.f32.f16 d, a                 | (float)a
        cvt.f64.f32 d, a                 | (double)a
        cvt.rn.f32.f64 d, a              | (float)a
        cvt.rz.f32.f64 d, a              |
        cvt.rni.f32.f32 d, a             | __builtin_rintf(a)
        cvt.rn.f32.s32 d, a              | (float)a
        cvt.rn.f32.u64 d, a              | (float)a
        cvt.rz.f32.s32 d, a              |
        cvt.rn.f64.s64 d, a              | (double)a
        cvt.rzi.s32.f32 d, a             | (int32_t)a
        cvt.rzi.u32.f32 d, a             | (uint32_t)a
        cvt.rzi.s64.f64 d, a             | (int64_t)a
        cvt.rni.s32.f64 d, a             | (int32_t)__builtin_rint(a)
        cvt.s64.s32 d, a                 | (int64_t)a
    """),
    "integers": _forms(0, """
        mul.hi.s32 d, a, b               | (int32_t)((int64_t)a * b >> 32)
        mul.wide.s32 d, a, b             | (int64_t)a * b
        mad.wide.u32 d, a, b, c          | (uint64_t)a * b + c
        mul24.lo.u32 d, a, b             | (a & 0xffffff) * (b & 0xffffff)
        mul.hi.u64 d, a, b               | (uint64_t)((unsigned __int128)a * b >> 64)
        mul.lo.u16 d, a, b               | a * b
        add.sat.s32 d, a, b              | SATADD(a, b)
        div.s32 d, a, b                  | a / b
        div.u32 d, a, b                  | a / b
        rem.u32 d, a, b                  | a % b
        div.s16 d, a, b                  | a / b
        div.u64 d, a, b                  | a / b
        div.s64 d, a, b                  | a / b
        rem.s64 d, a, b                  | a % b
        abs.s32 d, a                     | a < 0 ? -a : a
        min.s32 d, a, b                  | a < b ? a : b
        max.u64 d, a, b                  | a > b ? a : b
        add.u16x2 d, a, b                | (a + b & 0xffff) | ((a >> 16) + (b >> 16)) << 16
        sad.u32 d, a, b, c               | c + (a < b ? b - a : a - b)
        popc.b32 d, a                    | __builtin_popcount(a)
        popc.b64 d, a                    | __builtin_popcountll(a)
        clz.b32 d, a                     | a ? __builtin_clz(a) : 32
        bfind.u32 d, a                   | a ? 31 - __builtin_clz(a) : -1
        brev.b32 d, a                    | BREV(a)
        bfe.u32 d, a, b, c               | BFE(a, b & 255, c & 255)
        bfi.b32 d, a, b, c, 9            | (b & ~(0x1ffu << (c & 31))) | (a & 0x1ff) << (c & 31)
        fns.b32 d, a, b, c               | FNS(a, b, c)
        bmsk.clamp.b32 d, a, b           | a > 31 ? 0 : b > 31 ? ~0u << a : ~(~0u << b) << a
        szext.wrap.s32 d, a, b           | b & 31 ? (int32_t)((uint32_t)a << (-b & 31)) >> (-b & 31) : 0
        dp4a.s32.s32 d, a, b, c          | DP4A(a, b, c)
        dp2a.lo.s32.s32 d, a, b, c       | c + (int16_t)a * (int8_t)b + (int16_t)(a >> 16) * (int8_t)(b >> 8)
        cnot.b32 d, a                    | a == 0
        shf.l.wrap.b32 d, a, b, c        | (uint32_t)((((uint64_t)b << 32 | a) << (c & 31)) >> 32)
        prmt.b32 d, a, b, c              | PRMT(a, b, c)
        slct.u32.s32 d, a, b, c          | c >= 0 ? a : b
        set.lt.u32.s32 d, a, b           | a < b ? -1 : 0
        addc.u32 d, a, b                 | a + b
    """),
    "f32": _forms(0, """
        add.ftz.f32 d, a, b              | FTZ(FTZ(a) + FTZ(b))
        add.sat.f32 d, a, b              | SAT(a + b)
        add.rz.f32 d, a, b               |
        fma.rm.f32 d, a, b, c            |
        div.rn.f32 d, a, b               | a / b
        div.rp.f32 d, a, b               |
        rcp.rn.f32 d, a                  | 1 / a
        sqrt.rn.f32 d, a                 | __builtin_sqrtf(a)
        min.f32 d, a, b                  | __builtin_fminf(a, b)
        max.NaN.f32 d, a, b              | a != a || b != b ? __builtin_nanf("") : a > b ? a : b
        abs.f32 d, a                     | __builtin_fabsf(a)
        neg.f32 d, a                     | -a
        copysign.f32 d, a, b             | __builtin_copysignf(b, a)
        testp.subnormal.f32 d, a         | __builtin_fabsf(a) < 0x1p-126f && a != 0
        add.f32x2 d, a, b                |
        fma.rn.f32x2 d, a, b, c          |
    """),
    "f64": _forms(0, """
        add.rm.f64 d, a, b               |
        fma.rz.f64 d, a, b, c            |
        div.rn.f64 d, a, b               | a / b
        rcp.rn.f64 d, a                  | 1 / a
        sqrt.rn.f64 d, a                 | __builtin_sqrt(a)
        min.f64 d, a, b                  | __builtin_fmin(a, b)
    """),
    "half": _forms(0, """
        add.f16 d, a, b                  | (H)((float)a + (float)b)
        add.f16x2 d, a, b                |
        fma.rn.f16 d, a, b, c            | (H)__builtin_fma((double)a, (double)b, (double)c)
        fma.rn.f16x2 d, a, b, c          |
        fma.rn.relu.bf16x2 d, a, b, c    |
        mul.bf16x2 d, a, b               |
        min.f16x2 d, a, b                |
        max.NaN.bf16 d, a, b             |
        neg.f16x2 d, a                   | a ^ 0x80008000
        setp.lt.f16 d, a, b              | (float)a < (float)b
        add.f32.f16 d, a, b              | (float)a + b
        fma.rn.f32.bf16 d, a, b, c       |
    """),
    "approximate, beside the same tables in C": _forms(0, """
        rcp.approx.ftz.f32 d, a          | TABLE_RCP(a)
        sqrt.approx.ftz.f32 d, a         | TABLE_SQRT(a)
        rsqrt.approx.ftz.f32 d, a        | TABLE_RSQRT(a)
        div.approx.ftz.f32 d, a, b       | FTZ(FTZ(a) * TABLE_RCP(b))
        ex2.approx.ftz.f32 d, a          | TABLE_EX2(a)
        sin.approx.ftz.f32 d, a          | TABLE_SIN(a)
        rcp.approx.ftz.f64 d, a          | TABLE_RCP64(a)
        rsqrt.approx.ftz.f64 d, a        | TABLE_RSQRT64(a)
        rsqrt.approx.f64 d, a            | REFINED_RSQRT(a)
    """),
    "approximate, beside the C library": _forms(0, """
        sin.approx.f32 d, a              | sinf(a)
        cos.approx.f32 d, a              | cosf(a)
        lg2.approx.f32 d, a              | log2f(a)
        ex2.approx.f32 d, a              | exp2f(a)
        tanh.approx.f32 d, a             | tanhf(a)
    """),
    "approximate, C's exact division and root for information": _forms(NONE, """
        rcp.approx.f32 d, a              | 1 / a
        sqrt.approx.f32 d, a             | __builtin_sqrtf(a)
        rsqrt.approx.f32 d, a            | 1 / __builtin_sqrtf(a)
        div.approx.f32 d, a, b           | a / b
        div.full.f32 d, a, b             | a / b
        tanh.approx.f16x2 d, a           |
        ex2.approx.f16x2 d, a            |
    """),
    "video": _forms(0, """
        vadd.s32.s32.s32.sat d, a, b     | SATADD(a, b)
        vabsdiff.s32.u32.u32.add d, a, b, c | (int32_t)((a < b ? b - a : a - b) + (uint32_t)c)
        vmad.s32.s32.s32 d, a, b, c      | a * b + c
        vset.u32.u32.lt d, a, b          | a < b
        vadd4.u32.u32.u32.sat d, a, b, c | BYTES(x + y > 255 ? 255 : x + y)
        vabsdiff4.u32.u32.u32.add d, a, b, c | DIFF4(a, b, c)
        vavrg2.s32.s32.s32 d, a, b, c    |
        vmax4.s32.s32.s32 d, a, b, c     |
        vset4.u32.u32.lt d, a, b, c      | BYTES(x < y)
    """),
}  # fmt: skip
