"""9.7.5 Mixed precision floating point: f32 results from 16-bit factors, 16-bit results from f32, and
arithmetic of four 8-, 6- or 4-bit floats, which PTX 9.4 added."""

PAGES = """
# 9.7.5.1 add
    add{.rnd}{.sat}.f32.atype  d:f32, a:atype, c:f32;
    .atype = { .f16, .bf16 };
    .rnd   = { .rn, .rz, .rm, .rp };
    add{.rnd}.f32x2.atype.ctype  d:f32x2, a:atype, c:ctype;
    .atype = { .f16x2, .bf16x2 };
    .ctype = { .f32x2 };
    .rnd   = { .rn, .rz, .rm, .rp };
    add.rnd.bf16x2.atype.btype     d:bf16x2, a:atype, b:btype;
    add.rnd.ftz.f16x2.atype.btype  d:f16x2, a:atype, b:btype;
    .atype = .btype = { .f32x2 };
    .rnd   = { .rz };
    add{.rnd}{.satfinite}.dtype.atype  d:dtype, a:atype, c:dtype;
    .dtype = { .e4m3x4, .e5m2x4 };
    .atype = { .e4m3x4, .e5m2x4, .e2m3x4, .e3m2x4, .e2m1x4 };
    .rnd   = { .rn };
    needs        => ptx 8.6, sm_100
    needs .f32x2 => ptx 9.4, sm_107f
    needs .e4m3x4,.e5m2x4 => ptx 9.4, sm_100a, sm_103a

# 9.7.5.2 sub
    sub{.rnd}{.sat}.f32.atype  d:f32, a:atype, c:f32;
    .atype = { .f16, .bf16 };
    .rnd   = { .rn, .rz, .rm, .rp };
    sub{.rnd}.f32x2.atype.ctype  d:f32x2, a:atype, c:ctype;
    .atype = { .f16x2, .bf16x2 };
    .ctype = { .f32x2 };
    .rnd   = { .rn, .rz, .rm, .rp };
    sub.rnd.bf16x2.atype.btype     d:bf16x2, a:atype, b:btype;
    sub.rnd.ftz.f16x2.atype.btype  d:f16x2, a:atype, b:btype;
    .atype = .btype = { .f32x2 };
    .rnd   = { .rz };
    sub{.rnd}{.satfinite}.dtype.atype  d:dtype, a:atype, c:dtype;
    .dtype = { .e4m3x4, .e5m2x4 };
    .atype = { .e4m3x4, .e5m2x4, .e2m3x4, .e3m2x4, .e2m1x4 };
    .rnd   = { .rn };
    needs        => ptx 8.6, sm_100
    needs .f32x2 => ptx 9.4, sm_107f
    needs .e4m3x4,.e5m2x4 => ptx 9.4, sm_100a, sm_103a

# 9.7.5.3 fma
    fma.rnd{.sat}.f32.abtype  d:f32, a:abtype, b:abtype, c:f32;
    .abtype = { .f16, .bf16 };
    fma.rnd.f32x2.atype.btype.ctype  d:f32x2, a:atype, b:btype, c:ctype;
    .atype = { .f16x2, .bf16x2 };
    .btype = .ctype = { .f32x2 };
    .rnd    = { .rn, .rz, .rm, .rp };
    fma{.rnd}{.satfinite}.dtype.atype.btype  d:dtype, a:atype, b:btype, c:dtype;
    .dtype = { .e4m3x4, .e5m2x4 };
    .atype = .btype = { .e4m3x4, .e5m2x4, .e2m3x4, .e3m2x4, .e2m1x4 };
    .rnd   = { .rn };
    needs        => ptx 8.6, sm_100
    needs .f32x2 => ptx 9.4, sm_107f
    needs .e4m3x4,.e5m2x4 => ptx 9.4, sm_100a, sm_103a

# 9.7.5.4 mul
    mul.rnd.bf16x2.atype.btype     d:bf16x2, a:atype, b:btype;
    mul.rnd.ftz.f16x2.atype.btype  d:f16x2, a:atype, b:btype;
    .atype = .btype = { .f32x2 };
    .rnd   = { .rz };
    mul{.rnd}{.satfinite}.dtype.atype.btype  d:dtype, a:atype, b:btype;
    .dtype = { .e4m3x4, .e5m2x4 };
    .atype = .btype = { .e4m3x4, .e5m2x4, .e2m3x4, .e3m2x4, .e2m1x4 };
    .rnd   = { .rn };
    needs                 => ptx 9.4
    needs .f32x2          => sm_107f
    needs .e4m3x4,.e5m2x4 => sm_100a, sm_103a
"""
