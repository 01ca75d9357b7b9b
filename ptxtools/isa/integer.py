"""9.7.1 Integer arithmetic."""

from .conditions import Context

PAGES = """
# 9.7.1.1 add
    add.type        d, a, b;
    .type = { .u16, .u64, .s16, .s64 };
    add{.sat}.type  d, a, b;
    .type = { .u32, .s32, .u16x2, .s16x2, .u8x4, .s8x4 };
    needs .u16x2,.s16x2                              => ptx 8.0, sm_90
    needs .u8x4,.s8x4 | .sat .u32,.u16x2,.s16x2      => ptx 9.2, sm_107f, sm_120f

# 9.7.1.2 sub
    sub.type        d, a, b;
    .type = { .u16, .u32, .u64, .s16, .s64 };
    sub{.sat}.type  d, a, b;
    .type = { .s32, .u8x4, .s8x4 };
    needs .u8x4,.s8x4 => ptx 9.2, sm_107f, sm_120f

# 9.7.1.3 mul
    mul.mode.type  d, a, b;
    .mode = { .hi, .lo };
    .type = { .u16, .u32, .u64, .s16, .s32, .s64 };
    mul.mode.type  d:wide(type), a, b;
    .mode = { .wide };
    .type = { .u16, .u32, .s16, .s32 };
    first .mode

# 9.7.1.4 mad
    mad.mode.type     d, a, b, c;
    .mode = { .hi, .lo };
    .type = { .u16, .u32, .u64, .s16, .s32, .s64 };
    mad.mode.type     d:wide(type), a, b, c:wide(type);
    .mode = { .wide };
    .type = { .u16, .u32, .s16, .s32 };
    mad.mode.sat.s32  d, a, b, c;
    .mode = { .hi };
    first .mode

# 9.7.1.5 clmad
    clmad.mode.type  d, a, b, c;
    .mode = { .lo, .hi };
    .type = { .u64 };
    first .mode
    needs => ptx 9.3, sm_80

# 9.7.1.5 mul24
    mul24.mode.type  d, a, b;
    .mode = { .hi, .lo };
    .type = { .u32, .s32 };
    first .mode

# 9.7.1.6 mad24
    mad24.mode.type     d, a, b, c;
    .mode = { .hi, .lo };
    .type = { .u32, .s32 };
    mad24.mode.sat.s32  d, a, b, c;
    .mode = { .hi };
    first .mode

# 9.7.1.7 sad
    sad.type  d, a, b, c;
    .type = { .u16, .u32, .u64, .s16, .s32, .s64 };

# 9.7.1.8 div
    div.type  d, a, b;
    .type = { .u16, .u32, .u64, .s16, .s32, .s64 };

# 9.7.1.9 rem
    rem.type  d, a, b;
    .type = { .u16, .u32, .u64, .s16, .s32, .s64 };

# 9.7.1.10 abs
    abs.type  d, a;
    .type = { .s16, .s32, .s64 };

# 9.7.1.11 neg
    neg.type  d, a;
    .type = { .s16, .s32, .s64, .s8x4 };
    needs .s8x4 => ptx 9.2, sm_107f, sm_120f

# 9.7.1.12 min
    min.type         d, a, b;
    .type = { .u16, .u32, .u64, .u16x2, .u8x4, .s16, .s64 };
    min{.relu}.type  d, a, b;
    .type = { .s16x2, .s32, .s8x4 };
    needs .u16x2 | .s16x2 | .relu => ptx 8.0, sm_90
    needs .u8x4,.s8x4             => ptx 9.2, sm_107f, sm_120f

# 9.7.1.13 max
    max.type         d, a, b;
    .type = { .u16, .u32, .u64, .u16x2, .u8x4, .s16, .s64 };
    max{.relu}.type  d, a, b;
    .type = { .s16x2, .s32, .s8x4 };
    needs .u16x2 | .s16x2 | .relu => ptx 8.0, sm_90
    needs .u8x4,.s8x4             => ptx 9.2, sm_107f, sm_120f

# 9.7.1.14 popc
    popc.type  d:u32, a;
    .type = { .b32, .b64 };
    needs => ptx 2.0, sm_20

# 9.7.1.15 clz
    clz.type  d:u32, a;
    .type = { .b32, .b64 };
    needs => ptx 2.0, sm_20

# 9.7.1.16 bfind
    bfind{.shiftamt}.type  d:u32, a;
    .type = { .u32, .u64, .s32, .s64 };
    needs => ptx 2.0, sm_20

# 9.7.1.17 fns
    fns.b32  d, mask:b32, base:b32, offset:s32;
    needs => ptx 6.0, sm_30

# 9.7.1.18 brev
    brev.type  d, a;
    .type = { .b32, .b64 };
    needs => ptx 2.0, sm_20

# 9.7.1.19 bfe
    bfe.type  d, a, b:u32(reg imm 0..255), c:u32(reg imm 0..255);
    .type = { .u32, .u64, .s32, .s64 };
    needs => ptx 2.0, sm_20

# 9.7.1.20 bfi
    bfi.type  d, a, b, c:u32(reg imm 0..255), e:u32(reg imm 0..255);
    .type = { .b32, .b64 };
    needs => ptx 2.0, sm_20

# 9.7.1.21 szext
    szext.mode.type  d, a, b:u32;
    .mode = { .clamp, .wrap };
    .type = { .u32, .s32 };
    needs => ptx 7.6, sm_70

# 9.7.1.22 bmsk
    bmsk.mode.b32  d:u32, a:u32, b:u32;
    .mode = { .clamp, .wrap };
    needs => ptx 7.6, sm_70

# 9.7.1.23 dp4a
    dp4a.atype.btype  d:int32, a:atype, b:btype, c:int32;
    .atype = .btype = { .u32, .s32 };
    rule dot_type
    needs => ptx 5.0, sm_61

# 9.7.1.24 dp2a
    dp2a.mode.atype.btype  d:int32, a:atype, b:btype, c:int32;
    .atype = .btype = { .u32, .s32 };
    .mode = { .lo, .hi };
    first .mode
    rule dot_type
    needs => ptx 5.0, sm_61
"""


def dot_type(context: Context) -> dict[str, int | str]:
    """d and c are unsigned when both factors are, else signed (9.7.1.23)."""
    unsigned = context.mods["atype"] == context.mods["btype"] == "u32"
    return {"int32": "u32" if unsigned else "s32"}
