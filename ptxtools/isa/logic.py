"""9.7.8 Logic and shift."""

PAGES = """
# 9.7.8.1 and
    and.type  d, a, b;
    .type = { .pred, .b16, .b32, .b64 };

# 9.7.8.2 or
    or.type  d, a, b;
    .type = { .pred, .b16, .b32, .b64 };

# 9.7.8.3 xor
    xor.type  d, a, b;
    .type = { .pred, .b16, .b32, .b64 };

# 9.7.8.4 not
    not.type  d, a;
    .type = { .pred, .b16, .b32, .b64 };

# 9.7.8.5 cnot
    cnot.type  d, a;
    .type = { .b16, .b32, .b64 };

# 9.7.8.6 lop3
    lop3.b32         d, a, b, c, immLut:u32(imm 0..255);
    lop3.BoolOp.b32  d(reg sink)|p:pred, a, b, c, immLut:u32(imm 0..255), {!}q:pred;
    .BoolOp = { .or, .and };
    needs             => ptx 4.3, sm_50
    needs .or | .and  => ptx 8.2, sm_70

# 9.7.8.7 shf
    shf.direction.mode.b32  d, a, b, c:u32;
    .direction = { .l, .r };
    .mode      = { .clamp, .wrap };
    first .direction
    needs => ptx 3.1, sm_32

# 9.7.8.8 shl
    shl.type  d, a, b:u32;
    .type = { .b16, .b32, .b64 };

# 9.7.8.9 shr
    shr.type  d, a, b:u32;
    .type = { .b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64 };
"""
