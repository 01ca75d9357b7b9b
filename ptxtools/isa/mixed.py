"""9.7.5 Mixed precision floating point: f32 results from 16-bit factors."""

PAGES = """
# 9.7.5.1 add
    add{.rnd}{.sat}.f32.atype  d:f32, a:atype, c:f32;
    .atype = { .f16, .bf16 };
    .rnd   = { .rn, .rz, .rm, .rp };
    needs => ptx 8.6, sm_100

# 9.7.5.2 sub
    sub{.rnd}{.sat}.f32.atype  d:f32, a:atype, c:f32;
    .atype = { .f16, .bf16 };
    .rnd   = { .rn, .rz, .rm, .rp };
    needs => ptx 8.6, sm_100

# 9.7.5.3 fma
    fma.rnd{.sat}.f32.abtype  d:f32, a:abtype, b:abtype, c:f32;
    .abtype = { .f16, .bf16 };
    .rnd    = { .rn, .rz, .rm, .rp };
    needs => ptx 8.6, sm_100
"""
