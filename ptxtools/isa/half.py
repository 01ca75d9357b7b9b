"""9.7.4 Half precision floating point: f16, f16x2, bf16, bf16x2."""

PAGES = """
# 9.7.4.1 add
    add{.rnd}{.ftz}{.sat}.type  d, a, b;
    .type = { .f16, .f16x2 };
    add{.rnd}.type              d, a, b;
    .type = { .bf16, .bf16x2 };
    .rnd = { .rn };
    needs                 => ptx 4.2, sm_53
    needs .bf16 | .bf16x2 => ptx 7.8, sm_90

# 9.7.4.2 sub
    sub{.rnd}{.ftz}{.sat}.type  d, a, b;
    .type = { .f16, .f16x2 };
    sub{.rnd}.type              d, a, b;
    .type = { .bf16, .bf16x2 };
    .rnd = { .rn };
    needs                 => ptx 4.2, sm_53
    needs .bf16 | .bf16x2 => ptx 7.8, sm_90

# 9.7.4.3 mul
    mul{.rnd}{.ftz}{.sat}.type  d, a, b;
    .type = { .f16, .f16x2 };
    mul{.rnd}.type              d, a, b;
    .type = { .bf16, .bf16x2 };
    .rnd = { .rn };
    needs                 => ptx 4.2, sm_53
    needs .bf16 | .bf16x2 => ptx 7.8, sm_90

# 9.7.4.4 fma
    fma.rnd{.ftz}{.sat}.type   d, a, b, c;
    fma.rnd{.ftz}.relu.type    d, a, b, c;
    .type = { .f16, .f16x2 };
    fma.rnd{.relu}.type        d, a, b, c;
    .type = { .bf16, .bf16x2 };
    fma.rnd.oob{.relu}.type    d, a, b, c;
    .type = { .f16, .f16x2, .bf16, .bf16x2 };
    .rnd = { .rn };
    needs                         => ptx 4.2, sm_53
    needs .relu | .bf16 | .bf16x2 => ptx 7.0, sm_80
    needs .oob                    => ptx 8.1, sm_90

# 9.7.4.5 neg
    neg{.ftz}.type  d, a;
    .type = { .f16, .f16x2 };
    neg.type        d, a;
    .type = { .bf16, .bf16x2 };
    needs                 => ptx 6.0, sm_53
    needs .bf16 | .bf16x2 => ptx 7.0, sm_80

# 9.7.4.6 abs
    abs{.ftz}.type  d, a;
    .type = { .f16, .f16x2 };
    abs.type        d, a;
    .type = { .bf16, .bf16x2 };
    needs                 => ptx 6.5, sm_53
    needs .bf16 | .bf16x2 => ptx 7.0, sm_80

# 9.7.4.7 min
    min{.ftz}{.NaN}{.xorsign.abs}.type  d, a, b;
    .type = { .f16, .f16x2 };
    min{.NaN}{.xorsign.abs}.type        d, a, b;
    .type = { .bf16, .bf16x2 };
    needs          => ptx 7.0, sm_80
    needs .xorsign => ptx 7.2, sm_86

# 9.7.4.8 max
    max{.ftz}{.NaN}{.xorsign.abs}.type  d, a, b;
    .type = { .f16, .f16x2 };
    max{.NaN}{.xorsign.abs}.type        d, a, b;
    .type = { .bf16, .bf16x2 };
    needs          => ptx 7.0, sm_80
    needs .xorsign => ptx 7.2, sm_86

# 9.7.4.9 tanh
    tanh.approx.type  d, a;
    .type = { .f16, .f16x2, .bf16, .bf16x2 };
    needs                 => ptx 7.0, sm_75
    needs .bf16 | .bf16x2 => ptx 7.8, sm_90

# 9.7.4.10 ex2
    ex2.approx.type      d, a;
    .type = { .f16, .f16x2 };
    ex2.approx.ftz.type  d, a;
    .type = { .bf16, .bf16x2 };
    needs                 => ptx 7.0, sm_75
    needs .bf16 | .bf16x2 => ptx 7.8, sm_90
"""
