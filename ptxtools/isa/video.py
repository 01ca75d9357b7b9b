"""9.7.18 Video instructions: scalar (vadd …) and SIMD (vadd2, vadd4 …).

Operands may carry a selector (`%r1.b0`); their kinds say which: "select" .b0 to .b3, .h0, .h1; "select2" .hxy;
"select4" .bxyzw; "mask2" .h0 .h1 .h10; "mask4" .b0 … .b3210. A selected destination merges into c. "minus": `-a`.
"""

PAGES = """
# 9.7.18.1.1 vadd
    vadd.dtype.atype.btype{.sat}       d:dtype(reg select), a:atype(reg imm select), b:btype(reg imm select){, c:dtype};
    vadd.dtype.atype.btype{.sat}.op2   d:dtype, a:atype(reg imm select), b:btype(reg imm select), c:dtype;
    .dtype = .atype = .btype = { .u32, .s32 };
    .op2   = { .add, .min, .max };
    needs => ptx 2.0, sm_20

# 9.7.18.1.1 vsub
    vsub.dtype.atype.btype{.sat}       d:dtype(reg select), a:atype(reg imm select), b:btype(reg imm select){, c:dtype};
    vsub.dtype.atype.btype{.sat}.op2   d:dtype, a:atype(reg imm select), b:btype(reg imm select), c:dtype;
    .dtype = .atype = .btype = { .u32, .s32 };
    .op2   = { .add, .min, .max };
    needs => ptx 2.0, sm_20

# 9.7.18.1.1 vabsdiff
    vabsdiff.dtype.atype.btype{.sat}
        d:dtype(reg select), a:atype(reg imm select), b:btype(reg imm select){, c:dtype};
    vabsdiff.dtype.atype.btype{.sat}.op2   d:dtype, a:atype(reg imm select), b:btype(reg imm select), c:dtype;
    .dtype = .atype = .btype = { .u32, .s32 };
    .op2   = { .add, .min, .max };
    needs => ptx 2.0, sm_20

# 9.7.18.1.1 vmin
    vmin.dtype.atype.btype{.sat}       d:dtype(reg select), a:atype(reg imm select), b:btype(reg imm select){, c:dtype};
    vmin.dtype.atype.btype{.sat}.op2   d:dtype, a:atype(reg imm select), b:btype(reg imm select), c:dtype;
    .dtype = .atype = .btype = { .u32, .s32 };
    .op2   = { .add, .min, .max };
    needs => ptx 2.0, sm_20

# 9.7.18.1.1 vmax
    vmax.dtype.atype.btype{.sat}       d:dtype(reg select), a:atype(reg imm select), b:btype(reg imm select){, c:dtype};
    vmax.dtype.atype.btype{.sat}.op2   d:dtype, a:atype(reg imm select), b:btype(reg imm select), c:dtype;
    .dtype = .atype = .btype = { .u32, .s32 };
    .op2   = { .add, .min, .max };
    needs => ptx 2.0, sm_20

# 9.7.18.1.2 vshl
    vshl.dtype.atype.btype{.sat}.mode
        d:dtype(reg select), a:atype(reg imm select), b:btype(reg imm select){, c:dtype};
    vshl.dtype.atype.btype{.sat}.mode.op2   d:dtype, a:atype(reg imm select), b:btype(reg imm select), c:dtype;
    .dtype = .atype = { .u32, .s32 };
    .btype = { .u32 };
    .mode  = { .clamp, .wrap };
    .op2   = { .add, .min, .max };
    needs => ptx 2.0, sm_20

# 9.7.18.1.2 vshr
    vshr.dtype.atype.btype{.sat}.mode
        d:dtype(reg select), a:atype(reg imm select), b:btype(reg imm select){, c:dtype};
    vshr.dtype.atype.btype{.sat}.mode.op2   d:dtype, a:atype(reg imm select), b:btype(reg imm select), c:dtype;
    .dtype = .atype = { .u32, .s32 };
    .btype = { .u32 };
    .mode  = { .clamp, .wrap };
    .op2   = { .add, .min, .max };
    needs => ptx 2.0, sm_20

# 9.7.18.1.3 vmad
    vmad.dtype.atype.btype{.sat}{.scale}
        d:dtype, a:atype(reg imm select minus), b:btype(reg imm select minus), c:dtype(reg imm minus);
    vmad.dtype.atype.btype.po{.sat}{.scale}  d:dtype, a:atype(reg imm select), b:btype(reg imm select), c:dtype;
    .dtype = .atype = .btype = { .u32, .s32 };
    .scale = { .shr7, .shr15 };
    needs => ptx 2.0, sm_20

# 9.7.18.1.4 vset
    vset.atype.btype.cmp       d:u32(reg select), a:atype(reg imm select), b:btype(reg imm select){, c:u32};
    vset.atype.btype.cmp.op2   d:u32, a:atype(reg imm select), b:btype(reg imm select), c:u32;
    .atype = .btype = { .u32, .s32 };
    .cmp   = { .eq, .ne, .lt, .le, .gt, .ge };
    .op2   = { .add, .min, .max };
    needs => ptx 2.0, sm_20

# 9.7.18.2.1 vadd2
    vadd2.dtype.atype.btype{.sat}  d:dtype(reg mask2), a:atype(reg select2), b:btype(reg select2), c:dtype(reg);
    vadd2.dtype.atype.btype.add    d:dtype(reg mask2), a:atype(reg select2), b:btype(reg select2), c:dtype(reg);
    .dtype = .atype = .btype = { .u32, .s32 };
    needs => ptx 3.0, sm_30

# 9.7.18.2.1 vsub2
    vsub2.dtype.atype.btype{.sat}  d:dtype(reg mask2), a:atype(reg select2), b:btype(reg select2), c:dtype(reg);
    vsub2.dtype.atype.btype.add    d:dtype(reg mask2), a:atype(reg select2), b:btype(reg select2), c:dtype(reg);
    .dtype = .atype = .btype = { .u32, .s32 };
    needs => ptx 3.0, sm_30

# 9.7.18.2.1 vavrg2
    vavrg2.dtype.atype.btype{.sat}  d:dtype(reg mask2), a:atype(reg select2), b:btype(reg select2), c:dtype(reg);
    vavrg2.dtype.atype.btype.add    d:dtype(reg mask2), a:atype(reg select2), b:btype(reg select2), c:dtype(reg);
    .dtype = .atype = .btype = { .u32, .s32 };
    needs => ptx 3.0, sm_30

# 9.7.18.2.1 vabsdiff2
    vabsdiff2.dtype.atype.btype{.sat}  d:dtype(reg mask2), a:atype(reg select2), b:btype(reg select2), c:dtype(reg);
    vabsdiff2.dtype.atype.btype.add    d:dtype(reg mask2), a:atype(reg select2), b:btype(reg select2), c:dtype(reg);
    .dtype = .atype = .btype = { .u32, .s32 };
    needs => ptx 3.0, sm_30

# 9.7.18.2.1 vmin2
    vmin2.dtype.atype.btype{.sat}  d:dtype(reg mask2), a:atype(reg select2), b:btype(reg select2), c:dtype(reg);
    vmin2.dtype.atype.btype.add    d:dtype(reg mask2), a:atype(reg select2), b:btype(reg select2), c:dtype(reg);
    .dtype = .atype = .btype = { .u32, .s32 };
    needs => ptx 3.0, sm_30

# 9.7.18.2.1 vmax2
    vmax2.dtype.atype.btype{.sat}  d:dtype(reg mask2), a:atype(reg select2), b:btype(reg select2), c:dtype(reg);
    vmax2.dtype.atype.btype.add    d:dtype(reg mask2), a:atype(reg select2), b:btype(reg select2), c:dtype(reg);
    .dtype = .atype = .btype = { .u32, .s32 };
    needs => ptx 3.0, sm_30

# 9.7.18.2.2 vset2
    vset2.atype.btype.cmp      d:u32(reg mask2), a:atype(reg select2), b:btype(reg select2), c:u32(reg);
    vset2.atype.btype.cmp.add  d:u32(reg mask2), a:atype(reg select2), b:btype(reg select2), c:u32(reg);
    .atype = .btype = { .u32, .s32 };
    .cmp   = { .eq, .ne, .lt, .le, .gt, .ge };
    needs => ptx 3.0, sm_30

# 9.7.18.2.3 vadd4
    vadd4.dtype.atype.btype{.sat}  d:dtype(reg mask4), a:atype(reg select4), b:btype(reg select4), c:dtype(reg);
    vadd4.dtype.atype.btype.add    d:dtype(reg mask4), a:atype(reg select4), b:btype(reg select4), c:dtype(reg);
    .dtype = .atype = .btype = { .u32, .s32 };
    needs => ptx 3.0, sm_30

# 9.7.18.2.3 vsub4
    vsub4.dtype.atype.btype{.sat}  d:dtype(reg mask4), a:atype(reg select4), b:btype(reg select4), c:dtype(reg);
    vsub4.dtype.atype.btype.add    d:dtype(reg mask4), a:atype(reg select4), b:btype(reg select4), c:dtype(reg);
    .dtype = .atype = .btype = { .u32, .s32 };
    needs => ptx 3.0, sm_30

# 9.7.18.2.3 vavrg4
    vavrg4.dtype.atype.btype{.sat}  d:dtype(reg mask4), a:atype(reg select4), b:btype(reg select4), c:dtype(reg);
    vavrg4.dtype.atype.btype.add    d:dtype(reg mask4), a:atype(reg select4), b:btype(reg select4), c:dtype(reg);
    .dtype = .atype = .btype = { .u32, .s32 };
    needs => ptx 3.0, sm_30

# 9.7.18.2.3 vabsdiff4
    vabsdiff4.dtype.atype.btype{.sat}  d:dtype(reg mask4), a:atype(reg select4), b:btype(reg select4), c:dtype(reg);
    vabsdiff4.dtype.atype.btype.add    d:dtype(reg mask4), a:atype(reg select4), b:btype(reg select4), c:dtype(reg);
    .dtype = .atype = .btype = { .u32, .s32 };
    needs => ptx 3.0, sm_30

# 9.7.18.2.3 vmin4
    vmin4.dtype.atype.btype{.sat}  d:dtype(reg mask4), a:atype(reg select4), b:btype(reg select4), c:dtype(reg);
    vmin4.dtype.atype.btype.add    d:dtype(reg mask4), a:atype(reg select4), b:btype(reg select4), c:dtype(reg);
    .dtype = .atype = .btype = { .u32, .s32 };
    needs => ptx 3.0, sm_30

# 9.7.18.2.3 vmax4
    vmax4.dtype.atype.btype{.sat}  d:dtype(reg mask4), a:atype(reg select4), b:btype(reg select4), c:dtype(reg);
    vmax4.dtype.atype.btype.add    d:dtype(reg mask4), a:atype(reg select4), b:btype(reg select4), c:dtype(reg);
    .dtype = .atype = .btype = { .u32, .s32 };
    needs => ptx 3.0, sm_30

# 9.7.18.2.4 vset4
    vset4.atype.btype.cmp      d:u32(reg mask4), a:atype(reg select4), b:btype(reg select4), c:u32(reg);
    vset4.atype.btype.cmp.add  d:u32(reg mask4), a:atype(reg select4), b:btype(reg select4), c:u32(reg);
    .atype = .btype = { .u32, .s32 };
    .cmp   = { .eq, .ne, .lt, .le, .gt, .ge };
    needs => ptx 3.0, sm_30
"""
