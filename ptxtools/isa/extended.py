"""9.7.2 Extended-precision integer arithmetic: the carry flag CC.CF."""

PAGES = """
# 9.7.2.1 add.cc
    add.cc.type  d, a, b;
    .type = { .u32, .s32, .u64, .s64 };
    needs             => ptx 1.2
    needs .u64 | .s64 => ptx 4.3, sm_20
    marks => carry_out

# 9.7.2.2 addc
    addc{.cc}.type  d, a, b;
    .type = { .u32, .s32, .u64, .s64 };
    needs             => ptx 1.2
    needs .u64 | .s64 => ptx 4.3, sm_20
    marks     => carry_in
    marks .cc => carry_out

# 9.7.2.3 sub.cc
    sub.cc.type  d, a, b;
    .type = { .u32, .s32, .u64, .s64 };
    needs             => ptx 1.3  // the manual: 1.2, which every ptxas refuses
    needs .u64 | .s64 => ptx 4.3, sm_20
    marks => carry_out

# 9.7.2.4 subc
    subc{.cc}.type  d, a, b;
    .type = { .u32, .s32, .u64, .s64 };
    needs             => ptx 1.3  // the manual: 1.2, which every ptxas refuses
    needs .u64 | .s64 => ptx 4.3, sm_20
    marks     => carry_in
    marks .cc => carry_out

# 9.7.2.5 mad
    mad.mode.cc.type  d, a, b, c;
    .mode = { .hi, .lo };
    .type = { .u32, .s32, .u64, .s64 };
    first .mode
    needs             => ptx 3.0, sm_20
    needs .u64 | .s64 => ptx 4.3
    marks => carry_out

# 9.7.2.6 madc
    madc.mode{.cc}.type  d, a, b, c;
    .mode = { .hi, .lo };
    .type = { .u32, .s32, .u64, .s64 };
    first .mode
    needs             => ptx 3.0, sm_20
    needs .u64 | .s64 => ptx 4.3
    marks     => carry_in
    marks .cc => carry_out
"""
