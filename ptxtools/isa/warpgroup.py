"""9.7.15 Asynchronous warpgroup level matrix instructions: wgmma."""

import re

from .conditions import Context

PAGES = """
let shared    = d:td*nd(whole), a_desc:u64, b_desc:u64
let registers = d:td*nd(whole), a:ta*4(reg imm), b_desc:u64
let sparse    = sp_meta:b32(reg braced), sp_sel:u32(imm low<9.1 0..1)
let sparse8   = sp_meta:b32(reg braced), sp_sel:u32(imm low<9.2 0..0)
let scale     = imm_scale_a:s32(imm -1/1), imm_scale_b:s32(imm -1/1)
let enable    = scale_d:pred(reg imm 0..1)
let trans_a   = imm_trans_a:u32(imm 0..1)
let trans_b   = imm_trans_b:u32(imm 0..1)

# 9.7.15.5.2 wgmma.mma_async
    wgmma.mma_async.sync.aligned.shape.dtype.atype.btype  $shared, $enable, $scale, $trans_a, $trans_b;
    wgmma.mma_async.sync.aligned.shape.dtype.atype.btype  $registers, $enable, $scale, $trans_b;
    .dtype = { .f16, .f32 };
    .atype = .btype = { .f16 };
    .shape = { .m64n<8..256:8>k16 };
    wgmma.mma_async.sync.aligned.shape.dtype.atype.btype  $shared, $enable, $scale, $trans_a, $trans_b;
    wgmma.mma_async.sync.aligned.shape.dtype.atype.btype  $registers, $enable, $scale, $trans_b;
    .dtype = { .f32 };
    .atype = .btype = { .bf16 };
    .shape = { .m64n<8..256:8>k16 };
    wgmma.mma_async.sync.aligned.shape.dtype.atype.btype  $shared, $enable, $scale;
    wgmma.mma_async.sync.aligned.shape.dtype.atype.btype  $registers, $enable, $scale;
    .dtype = { .f32 };
    .atype = .btype = { .tf32 };
    .shape = { .m64n<8..256:8>k8 };
    wgmma.mma_async.sync.aligned.shape.dtype.atype.btype  $shared, $enable, $scale;
    wgmma.mma_async.sync.aligned.shape.dtype.atype.btype  $registers, $enable, $scale;
    .dtype = { .f16, .f32 };
    .atype = .btype = { .e4m3, .e5m2 };
    .shape = { .m64n<8..256:8>k32 };
    wgmma.mma_async.sync.aligned.shape{.satfinite}.dtype.atype.btype  $shared, $enable;
    wgmma.mma_async.sync.aligned.shape{.satfinite}.dtype.atype.btype  $registers, $enable;
    .dtype = { .s32 };
    .atype = .btype = { .s8, .u8 };
    .shape = { .m64n<8..24:8>k32, .m64n<32..256:16>k32 };
    wgmma.mma_async.sync.aligned.shape.dtype.atype.btype.op.popc  $shared, $enable;
    wgmma.mma_async.sync.aligned.shape.dtype.atype.btype.op.popc  $registers, $enable;
    .dtype = { .s32 };
    .atype = .btype = { .b1 };
    .op    = { .and };
    .shape = { .m64n<8..24:8>k256, .m64n<32..256:16>k256 };
    rule fragments
    needs => ptx 8.0, sm_90a
    needs atype=.s8 btype=.u8 | atype=.u8 btype=.s8 => ptx 8.4

# 9.7.15.6.3 wgmma.mma_async.sp
    wgmma.mma_async.sp.sync.aligned.shape.dtype.atype.btype  $shared, $sparse, $enable, $scale, $trans_a, $trans_b;
    wgmma.mma_async.sp.sync.aligned.shape.dtype.atype.btype  $registers, $sparse, $enable, $scale, $trans_b;
    .dtype = { .f16, .f32 };
    .atype = .btype = { .f16 };
    .shape = { .m64n<8..256:8>k32 };
    wgmma.mma_async.sp.sync.aligned.shape.dtype.atype.btype  $shared, $sparse, $enable, $scale, $trans_a, $trans_b;
    wgmma.mma_async.sp.sync.aligned.shape.dtype.atype.btype  $registers, $sparse, $enable, $scale, $trans_b;
    .dtype = { .f32 };
    .atype = .btype = { .bf16 };
    .shape = { .m64n<8..256:8>k32 };
    wgmma.mma_async.sp.sync.aligned.shape.dtype.atype.btype  $shared, $sparse, $enable, $scale;
    wgmma.mma_async.sp.sync.aligned.shape.dtype.atype.btype  $registers, $sparse, $enable, $scale;
    .dtype = { .f32 };
    .atype = .btype = { .tf32 };
    .shape = { .m64n<8..256:8>k16 };
    wgmma.mma_async.sp.sync.aligned.shape.dtype.atype.btype  $shared, $sparse8, $enable, $scale;
    wgmma.mma_async.sp.sync.aligned.shape.dtype.atype.btype  $registers, $sparse8, $enable, $scale;
    .dtype = { .f16, .f32 };
    .atype = .btype = { .e4m3, .e5m2 };
    .shape = { .m64n<8..256:8>k64 };
    wgmma.mma_async.sp.sync.aligned.shape{.satfinite}.dtype.atype.btype  $shared, $sparse8, $enable;
    wgmma.mma_async.sp.sync.aligned.shape{.satfinite}.dtype.atype.btype  $registers, $sparse8, $enable;
    .dtype = { .s32 };
    .atype = .btype = { .s8, .u8 };
    .shape = { .m64n<8..24:8>k64, .m64n<32..256:16>k64 };
    rule fragments
    needs => ptx 8.2, sm_90a
    needs atype=.s8 btype=.u8 | atype=.u8 btype=.s8 => ptx 8.4

# 9.7.15.7.1 wgmma.fence
    wgmma.fence.sync.aligned;
    needs => ptx 8.0, sm_90a

# 9.7.15.7.2 wgmma.commit_group
    wgmma.commit_group.sync.aligned;
    needs => ptx 8.0, sm_90a

# 9.7.15.7.3 wgmma.wait_group
    wgmma.wait_group.sync.aligned  n:u32(imm 0..0xFFFFFFFFFFFFFFFF);
    needs => ptx 8.0, sm_90a
"""


def fragments(context: Context) -> dict[str, int | str]:
    """Registers of D and of A in registers: D holds 64xN elements over 128 threads (9.7.15.5.1)."""
    if "shape" not in context.mods:
        return {}
    columns = int(re.findall(r"\d+", context.mods["shape"])[1])
    dtype = context.mods["dtype"]
    packed = dtype == "f16"
    return {
        "nd": columns // 4 if packed else columns // 2,
        "td": "f16x2" if packed else dtype,
        "ta": "b32" if dtype == "s32" else "f16x2",
    }
