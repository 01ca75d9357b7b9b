"""9.7.6 Comparison and selection, 9.7.7 half precision comparison."""

PAGES = """
# 9.7.6.1 set
    set.CmpOp.dtype.stype               d:dtype, a:stype, b:stype;
    set.CmpOp.BoolOp.dtype.stype        d:dtype, a:stype, b:stype, {!}c:pred;
    .CmpOp = { .eq, .ne };
    .stype = { .b16, .b32, .b64 };
    set.CmpOp.dtype.stype               d:dtype, a:stype, b:stype;
    set.CmpOp.BoolOp.dtype.stype        d:dtype, a:stype, b:stype, {!}c:pred;
    .CmpOp = { .eq, .ne, .lt, .le, .gt, .ge };
    .stype = { .s16, .s32, .s64 };
    set.CmpOp.dtype.stype               d:dtype, a:stype, b:stype;
    set.CmpOp.BoolOp.dtype.stype        d:dtype, a:stype, b:stype, {!}c:pred;
    .CmpOp = { .eq, .ne, .lt, .le, .gt, .ge, .lo, .ls, .hi, .hs };
    .stype = { .u16, .u32, .u64 };
    set.CmpOp{.ftz}.dtype.stype         d:dtype, a:stype, b:stype;
    set.CmpOp.BoolOp{.ftz}.dtype.stype  d:dtype, a:stype, b:stype, {!}c:pred;
    .stype = { .f32 };
    set.CmpOp.dtype.stype               d:dtype, a:stype, b:stype;
    set.CmpOp.BoolOp.dtype.stype        d:dtype, a:stype, b:stype, {!}c:pred;
    .stype = { .f64 };
    .CmpOp = { .eq, .ne, .lt, .le, .gt, .ge, .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan };
    .BoolOp = { .and, .or, .xor };
    .dtype = { .u32, .s32, .f32 };
    set.CmpOp.type                      d:type, a:type, b:type;
    .CmpOp = { .eq, .ne, .lt, .le, .gt, .ge, .lo, .ls, .hi, .hs };
    .type  = { .u8x4, .u16x2 };
    set.CmpOp.type                      d:type, a:type, b:type;
    .CmpOp = { .eq, .ne, .lt, .le, .gt, .ge };
    .type  = { .s8x4, .s16x2 };
    needs .f64 => sm_13
    needs .ftz => ptx 1.4
    needs .u8x4,.u16x2,.s8x4,.s16x2 => ptx 9.4, sm_107f

# 9.7.6.2 setp
    setp.CmpOp.type               p:pred(reg sink){|q}, a, b;
    setp.CmpOp.BoolOp.type        p:pred(reg sink){|q}, a, b, {!}c:pred;
    .CmpOp = { .eq, .ne };
    .type  = { .b16, .b32, .b64 };
    setp.CmpOp.type               p:pred(reg sink){|q}, a, b;
    setp.CmpOp.BoolOp.type        p:pred(reg sink){|q}, a, b, {!}c:pred;
    .CmpOp = { .eq, .ne, .lt, .le, .gt, .ge };
    .type  = { .s16, .s32, .s64 };
    setp.CmpOp.type               p:pred(reg sink){|q}, a, b;
    setp.CmpOp.BoolOp.type        p:pred(reg sink){|q}, a, b, {!}c:pred;
    .CmpOp = { .eq, .ne, .lt, .le, .gt, .ge, .lo, .ls, .hi, .hs };
    .type  = { .u16, .u32, .u64 };
    setp.CmpOp{.ftz}.type         p:pred(reg sink){|q}, a, b;
    setp.CmpOp.BoolOp{.ftz}.type  p:pred(reg sink){|q}, a, b, {!}c:pred;
    .type  = { .f32 };
    setp.CmpOp.type               p:pred(reg sink){|q}, a, b;
    setp.CmpOp.BoolOp.type        p:pred(reg sink){|q}, a, b, {!}c:pred;
    .type  = { .f64 };
    .CmpOp = { .eq, .ne, .lt, .le, .gt, .ge, .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan };
    .BoolOp = { .and, .or, .xor };
    needs .f64 => sm_13
    needs .ftz => ptx 1.4

# 9.7.6.3 selp
    selp.type  d, a, b, c:pred;
    .type = { .b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64, .f32, .f64 };
    needs .f64 => sm_13

# 9.7.6.4 slct
    slct.dtype.s32        d:dtype, a:dtype, b:dtype, c:s32;
    slct{.ftz}.dtype.f32  d:dtype, a:dtype, b:dtype, c:f32;
    .dtype = { .b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64, .f32, .f64 };
    needs dtype=.f64 => sm_13
    needs .ftz       => ptx 1.4

# 9.7.7.1 set
    set.CmpOp.dtype.stype               d:dtype, a:stype, b:stype;
    set.CmpOp.BoolOp.dtype.stype        d:dtype, a:stype, b:stype, {!}c:pred;
    .CmpOp = { .eq, .ne };
    .stype = { .b16, .b32, .b64 };
    .dtype = { .f16, .bf16 };
    set.CmpOp.dtype.stype               d:dtype, a:stype, b:stype;
    set.CmpOp.BoolOp.dtype.stype        d:dtype, a:stype, b:stype, {!}c:pred;
    .CmpOp = { .eq, .ne, .lt, .le, .gt, .ge };
    .stype = { .u16, .u32, .u64, .s16, .s32, .s64 };
    .dtype = { .f16, .bf16 };
    set.CmpOp.dtype.stype               d:dtype, a:stype, b:stype;
    set.CmpOp.BoolOp.dtype.stype        d:dtype, a:stype, b:stype, {!}c:pred;
    .stype = { .f64 };
    .dtype = { .f16, .bf16 };
    set.CmpOp{.ftz}.dtype.stype         d:dtype, a:stype, b:stype;
    set.CmpOp.BoolOp{.ftz}.dtype.stype  d:dtype, a:stype, b:stype, {!}c:pred;
    .stype = { .f16, .f32 };
    .dtype = { .f16 };
    set.CmpOp.dtype.stype               d:dtype, a:stype, b:stype;
    set.CmpOp.BoolOp.dtype.stype        d:dtype, a:stype, b:stype, {!}c:pred(reg);
    .stype = { .f16, .f32 };
    .dtype = { .bf16 };
    set.CmpOp{.ftz}.dtype.stype         d:dtype, a:stype, b:stype;
    set.CmpOp.BoolOp{.ftz}.dtype.stype  d:dtype, a:stype, b:stype, {!}c:pred;
    .stype = { .f16 };
    .dtype = { .u16, .s16, .u32, .s32 };
    set.CmpOp.dtype.stype               d:dtype, a:stype, b:stype;
    set.CmpOp.BoolOp.dtype.stype        d:dtype, a:stype, b:stype, {!}c:pred(reg);
    .stype = { .bf16 };
    .dtype = { .u16, .s16, .u32, .s32 };
    set.CmpOp{.ftz}.dtype.stype         d:dtype, a:stype, b:stype;
    set.CmpOp.BoolOp{.ftz}.dtype.stype  d:dtype, a:stype, b:stype, {!}c:pred;
    .stype = { .f16x2 };
    .dtype = { .f16x2, .u32, .s32 };
    set.CmpOp.dtype.stype               d:dtype, a:stype, b:stype;
    set.CmpOp.BoolOp.dtype.stype        d:dtype, a:stype, b:stype, {!}c:pred(reg);
    .stype = { .bf16x2 };
    .dtype = { .bf16x2, .u32, .s32 };
    .CmpOp = { .eq, .ne, .lt, .le, .gt, .ge, .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan };
    .BoolOp = { .and, .or, .xor };
    needs => ptx 4.2, sm_53
    needs stype=.f16 dtype=.u16,.s16,.u32,.s32 | stype=.f16x2 dtype=.u32,.s32 => ptx 6.5
    needs dtype=.bf16 | stype=.bf16,.bf16x2 => ptx 7.8, sm_90

# 9.7.7.2 setp
    setp.CmpOp{.ftz}.f16           p:pred(reg sink), a, b;
    setp.CmpOp.BoolOp{.ftz}.f16    p:pred, a, b, {!}c:pred;
    setp.CmpOp{.ftz}.f16x2         p:pred(reg sink){|q}, a, b;
    setp.CmpOp.BoolOp{.ftz}.f16x2  p:pred(reg sink){|q}, a, b, {!}c:pred;
    setp.CmpOp.bf16                p:pred, a, b;
    setp.CmpOp.BoolOp.bf16         p:pred, a, b, {!}c:pred(reg);
    setp.CmpOp.bf16x2              p:pred(reg sink){|q}, a, b;
    setp.CmpOp.BoolOp.bf16x2       p:pred(reg sink){|q}, a, b, {!}c:pred(reg);
    .CmpOp  = { .eq, .ne, .lt, .le, .gt, .ge, .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan };
    .BoolOp = { .and, .or, .xor };
    needs                 => ptx 4.2, sm_53
    needs .bf16 | .bf16x2 => ptx 7.8, sm_90
"""
