"""9.7.3 Single and double precision floating point."""

PAGES = """
# 9.7.3.1 testp
    testp.op.type  p:pred, a;
    .op   = { .finite, .infinite, .number, .notanumber, .normal, .subnormal };
    .type = { .f32, .f64 };
    needs => ptx 2.0, sm_20

# 9.7.3.2 copysign
    copysign.type  d, a, b;
    .type = { .f32, .f64 };
    needs => ptx 2.0, sm_20

# 9.7.3.3 add
    add{.rnd}{.ftz}{.sat}.f32  d, a, b;
    add{.rnd}{.ftz}.f32x2      d, a, b;
    add{.rnd}.f64              d, a, b;
    .rnd = { .rn, .rz, .rm, .rp };
    needs .f64             => sm_13
    needs .f32 .rm,.rp     => sm_20
    needs .ftz             => ptx 1.4
    needs .f32x2           => ptx 8.6, sm_100

# 9.7.3.4 sub
    sub{.rnd}{.ftz}{.sat}.f32  d, a, b;
    sub{.rnd}{.ftz}.f32x2      d, a, b;
    sub{.rnd}.f64              d, a, b;
    .rnd = { .rn, .rz, .rm, .rp };
    needs .f64             => sm_13
    needs .f32 .rm,.rp     => sm_20
    needs .ftz             => ptx 1.4
    needs .f32x2           => ptx 8.6, sm_100

# 9.7.3.5 mul
    mul{.rnd}{.ftz}{.sat}.f32  d, a, b;
    mul{.rnd}{.ftz}.f32x2      d, a, b;
    mul{.rnd}.f64              d, a, b;
    .rnd = { .rn, .rz, .rm, .rp };
    needs .f64             => sm_13
    needs .f32 .rm,.rp     => sm_20
    needs .ftz             => ptx 1.4
    needs .f32x2           => ptx 8.6, sm_100

# 9.7.3.6 fma
    fma.rnd{.ftz}{.sat}.f32  d, a, b, c;
    fma.rnd{.ftz}.f32x2      d, a, b, c;
    fma.rnd.f64              d, a, b, c;
    .rnd = { .rn, .rz, .rm, .rp };
    needs .f64   => ptx 1.4, sm_13
    needs .f32   => ptx 2.0, sm_20
    needs .f32x2 => ptx 8.6, sm_100

# 9.7.3.7 mad
    mad{.rnd}{.ftz}{.sat}.f32  d, a, b, c;
    mad{.rnd}.f64              d, a, b, c;
    .rnd = { .rn, .rz, .rm, .rp };
    needs .f64                 => sm_13
    needs .f32 .rn,.rz,.rm,.rp => sm_20
    needs .ftz                 => ptx 1.4
    removed .f32 !.rnd => ptx 3.2, sm_20
    removed .f64 !.rnd => ptx 1.4

# 9.7.3.8 div
    div.full{.ftz}.f32    d, a, b;
    div.approx{.ftz}.f32  d, a, b;
    div.rnd{.ftz}.f32   d, a, b;
    div.rnd.f64         d, a, b;
    .rnd = { .rn, .rz, .rm, .rp };
    div.type            d, a, b;
    .type = { .f32, .f64 };
    first .full
    needs .f64                           => sm_13
    needs .f64 .rz,.rm,.rp               => sm_20
    needs .f32 .rn,.rz,.rm,.rp           => sm_20
    needs .approx,.full,.rn,.rz,.rm,.rp  => ptx 1.4
    removed !.approx,.full,.rnd => ptx 1.4

# 9.7.3.9 abs
    abs{.ftz}.f32  d, a;
    abs.f64        d, a;
    needs .f64 => sm_13
    needs .ftz => ptx 1.4

# 9.7.3.10 neg
    neg{.ftz}.f32  d, a;
    neg.f64        d, a;
    needs .f64 => sm_13
    needs .ftz => ptx 1.4

# 9.7.3.11 min
    min{.ftz}{.NaN}{.xorsign.abs}.f32  d, a, b;
    min{.ftz}{.NaN}{.abs}.f32          d, a, b, c;
    min.f64                            d, a, b;
    needs .f64     => sm_13
    needs .ftz     => ptx 1.4
    needs .NaN     => ptx 7.0, sm_80
    needs .xorsign => ptx 7.2, sm_86
    needs @c             => ptx 8.8, sm_100
    needs .abs !.xorsign => ptx 8.8, sm_100

# 9.7.3.12 max
    max{.ftz}{.NaN}{.xorsign.abs}.f32  d, a, b;
    max{.ftz}{.NaN}{.abs}.f32          d, a, b, c;
    max.f64                            d, a, b;
    needs .f64     => sm_13
    needs .ftz     => ptx 1.4
    needs .NaN     => ptx 7.0, sm_80
    needs .xorsign => ptx 7.2, sm_86
    needs @c             => ptx 8.8, sm_100
    needs .abs !.xorsign => ptx 8.8, sm_100

# 9.7.3.13 rcp
    rcp.approx{.ftz}.f32  d, a;
    rcp.rnd{.ftz}.f32     d, a;
    rcp.rnd.f64           d, a;
    .rnd = { .rn, .rz, .rm, .rp };
    rcp.type              d, a;
    .type = { .f32, .f64 };
    needs .f64                     => sm_13
    needs .f64 .rz,.rm,.rp         => sm_20
    needs .f32 .rn,.rz,.rm,.rp     => sm_20
    needs .approx,.rn,.rz,.rm,.rp  => ptx 1.4
    removed !.approx,.rnd => ptx 1.4

# 9.7.3.14 rcp
    rcp.approx.ftz.f64  d, a;
    needs => ptx 2.1, sm_20

# 9.7.3.15 sqrt
    sqrt.approx{.ftz}.f32  d, a;
    sqrt.rnd{.ftz}.f32     d, a;
    sqrt.rnd.f64           d, a;
    .rnd = { .rn, .rz, .rm, .rp };
    sqrt.type              d, a;
    .type = { .f32, .f64 };
    needs .f64                     => sm_13
    needs .f64 .rz,.rm,.rp         => sm_20
    needs .f32 .rn,.rz,.rm,.rp     => sm_20
    needs .approx,.rn,.rz,.rm,.rp  => ptx 1.4
    removed !.approx,.rnd => ptx 1.4

# 9.7.3.16 rsqrt
    rsqrt.approx{.ftz}.f32  d, a;
    rsqrt.approx.f64        d, a;
    rsqrt.type              d, a;
    .type = { .f32, .f64 };
    needs .f64      => sm_13
    needs .approx   => ptx 1.4
    removed !.approx => ptx 1.4

# 9.7.3.17 rsqrt
    rsqrt.approx.ftz.f64  d, a;
    needs => ptx 4.0, sm_20

# 9.7.3.18 sin
    sin.approx{.ftz}.f32  d, a;
    sin.f32                d, a;
    needs .approx    => ptx 1.4
    removed !.approx => ptx 1.4

# 9.7.3.19 cos
    cos.approx{.ftz}.f32  d, a;
    cos.f32                d, a;
    needs .approx    => ptx 1.4
    removed !.approx => ptx 1.4

# 9.7.3.20 lg2
    lg2.approx{.ftz}.f32  d, a;
    lg2.f32                d, a;
    needs .approx    => ptx 1.4
    removed !.approx => ptx 1.4

# 9.7.3.21 ex2
    ex2.approx{.ftz}.f32  d, a;
    ex2.f32                d, a;
    needs .approx    => ptx 1.4
    removed !.approx => ptx 1.4

# 9.7.3.22 tanh
    tanh.approx.f32  d, a;
    needs => ptx 7.0, sm_75
"""
