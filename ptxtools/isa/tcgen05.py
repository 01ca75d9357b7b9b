"""9.7.16 Tensor core 5th generation instructions: tensor memory, its loads and stores, and its matrix products."""

from .conditions import Context

PAGES = """
let shared  = [d_tmem]^@tmem, a_desc:u64, b_desc:u64
let tensor  = [d_tmem]^@tmem, [a_tmem]^@tmem, b_desc:u64
let input   = { disable_output_lane:b32*lanes(listed),} enable_input_d:pred
let scale_d = {, scale_input_d:u32(imm low 0..15)}
let scales  = [scale_a]^@tmem, [scale_b]^@tmem, enable_input_d:pred

# 9.7.16.7.1 tcgen05.alloc tcgen05.dealloc tcgen05.relinquish_alloc_permit
    tcgen05.alloc.cta_group.sync.aligned{.exclusive}{.ss}.b32  [dst], nCols:u32(reg imm low 32/64/128/256/512);
    .ss = { .shared::cta };
    tcgen05.dealloc.cta_group.sync.aligned{.exclusive}.b32  taddr:u32(reg imm), nCols:u32(reg imm 32/64/128/256/512);
    tcgen05.relinquish_alloc_permit.cta_group.sync.aligned;
    .cta_group = { .cta_group::1, .cta_group::2 };
    needs            => ptx 8.6, tcgen05
    needs .exclusive => ptx 9.4, tcgen05

# 9.7.16.8.3 tcgen05.ld
    tcgen05.ld.sync.aligned.shape.num{.pack}.b32                 =r:b32*registers(whole), [taddr]@tmem;
    .shape = { .16x64b, .16x128b, .16x256b, .32x32b };
    tcgen05.ld.sync.aligned.shape.num{.pack}.b32
        =r:b32*registers(whole), [taddr]@tmem, immHalfSplitoff:u32(imm);
    .shape = { .16x32bx2 };
    .pack  = { .pack::16b };
    tcgen05.ld.red.sync.aligned.shape.num.redOp{.abs}{.NaN}.f32
        =r:f32*registers~(whole), =redval:f32~(braced), [taddr]@tmem;
    .shape = { .32x32b };
    tcgen05.ld.red.sync.aligned.shape.num.redOp{.abs}{.NaN}.f32
        =r:f32*registers~(whole), =redval:f32~(braced), [taddr]@tmem, immHalfSplitoff:u32(imm);
    .shape = { .16x32bx2 };
    tcgen05.ld.red.sync.aligned.shape.num.redOp.type
        =r:type*registers~(whole), =redval:type~(braced), [taddr]@tmem;
    .shape = { .32x32b };
    tcgen05.ld.red.sync.aligned.shape.num.redOp.type
        =r:type*registers~(whole), =redval:type~(braced), [taddr]@tmem, immHalfSplitoff:u32(imm);
    .shape = { .16x32bx2 };
    tcgen05.ld.spcompress.sync.aligned.shape.num.redOp.spfactor{.abs}.f32.b2
        =mdata:b32*metadata(whole), =cdata:b32*kept(whole), [taddr]@tmem;
    .shape = { .32x32b };
    tcgen05.ld.red.spcompress.sync.aligned.shape.num.redOp.spfactor{.abs}{.NaN}.f32.b2
        =mdata:b32*metadata(whole), =cdata:b32*kept(whole), =redval:b32(braced), [taddr]@tmem;
    .shape = { .32x32b };
    .spfactor = { .sp::2:4 };
    .num   = { .x1, .x2, .x4, .x8, .x16, .x32, .x64, .x128 };
    .redOp = { .min, .max };
    .type  = { .u32, .s32 };
    first .red, .spcompress
    rule movement
    needs => ptx 8.6, tcgen05
    needs .red => ptx 8.8, tcgen05_reduction
    needs .spcompress => ptx 9.4, sm_107a

# 9.7.16.8.4 tcgen05.st
    tcgen05.st.sync.aligned.shape.num{.unpack}.b32               [taddr]@tmem, r:b32*registers;
    .shape = { .16x64b, .16x128b, .16x256b, .32x32b };
    tcgen05.st.sync.aligned.shape.num{.unpack}.b32
        [taddr]@tmem, immHalfSplitoff:u32(imm), r:b32*registers;
    .shape = { .16x32bx2 };
    .num    = { .x1, .x2, .x4, .x8, .x16, .x32, .x64, .x128 };
    .unpack = { .unpack::16b };
    rule movement
    needs => ptx 8.6, tcgen05

# 9.7.16.8.5 tcgen05
    tcgen05.operation.sync.aligned;
    .operation = { .wait::ld, .wait::st };
    first .operation
    needs => ptx 8.6, tcgen05

# 9.7.16.9.2 tcgen05.cp
    tcgen05.cp.cta_group.shape{.dst_fmt.src_fmt}            [taddr]@tmem, s_desc:u64;
    .shape     = { .128x256b, .4x256b, .128x128b };
    tcgen05.cp.cta_group.shape.multicast{.dst_fmt.src_fmt}  [taddr]@tmem, s_desc:u64;
    .shape     = { .64x128b };
    .multicast = { .warpx2::02_13, .warpx2::01_23 };
    tcgen05.cp.cta_group.shape.multicast{.dst_fmt.src_fmt}  [taddr]@tmem, s_desc:u64;
    .shape     = { .32x128b };
    .multicast = { .warpx4 };
    .cta_group = { .cta_group::1, .cta_group::2 };
    .dst_fmt   = { .b8x16 };
    .src_fmt   = { .b6x16_p32, .b4x16_p64 };
    needs => ptx 8.6, tcgen05

# 9.7.16.9.3 tcgen05.shift
    tcgen05.shift.cta_group.down  [taddr]@tmem;
    .cta_group = { .cta_group::1, .cta_group::2 };
    needs => ptx 8.6, tcgen05_chips

# 9.7.16.10.9.1 tcgen05.mma
    tcgen05.mma.cta_group.kind{.collector}{.collector_b}  $shared, idesc:u32,$input$scale_d;
    tcgen05.mma.cta_group.kind{.ashift}{.collector}{.collector_b}  $tensor, idesc:u32,$input$scale_d;
    .kind = { .kind::f16, .kind::tf32 };
    tcgen05.mma.cta_group.kind{.collector}{.collector_b}  $shared, idesc:u32,$input;
    tcgen05.mma.cta_group.kind{.ashift}{.collector}{.collector_b}  $tensor, idesc:u32,$input;
    .kind = { .kind::f8f6f4, .kind::i8, .kind::ti16 };
    tcgen05.mma.cta_group.kind.block_scale{.scale_vectorsize}{.collector}{.collector_b}  $shared, idesc:u32, $scales;
    tcgen05.mma.cta_group.kind.block_scale{.scale_vectorsize}{.collector}{.collector_b}  $tensor, idesc:u32, $scales;
    .kind = { .kind::mxf8f6f4 };
    .scale_vectorsize = { .scale_vec::1X, .block32 };
    tcgen05.mma.cta_group.kind.block_scale{.scale_vectorsize}{.collector}{.collector_b}  $shared, idesc:u32, $scales;
    tcgen05.mma.cta_group.kind.block_scale{.scale_vectorsize}{.collector}{.collector_b}  $tensor, idesc:u32, $scales;
    .kind = { .kind::mxf4 };
    .scale_vectorsize = { .scale_vec::2X, .block32 };
    tcgen05.mma.cta_group.kind.block_scale.scale_vectorsize{.collector}{.collector_b}  $shared, idesc:u32, $scales;
    tcgen05.mma.cta_group.kind.block_scale.scale_vectorsize{.collector}{.collector_b}  $tensor, idesc:u32, $scales;
    .kind = { .kind::mxf4nvf4 };
    .scale_vectorsize = { .scale_vec::2X, .scale_vec::4X, .block16, .block32 };
    tcgen05.mma.cta_group.kind.decompress{.collector}{.collector_b}  $shared, [b_lut]^@tmem, idesc:u32,$input;
    tcgen05.mma.cta_group.kind.decompress{.collector}{.collector_b}  $tensor, [b_lut]^@tmem, idesc:u32,$input;
    .kind = { .kind::f8f6f4 };
    tcgen05.mma.cta_group.kind.block_scale{.scale_vectorsize}.decompress{.collector}{.collector_b}
        $shared, [b_lut]^@tmem, idesc:u32, $scales;
    tcgen05.mma.cta_group.kind.block_scale{.scale_vectorsize}.decompress{.collector}{.collector_b}
        $tensor, [b_lut]^@tmem, idesc:u32, $scales;
    .kind = { .kind::mxf8f6f4 };
    .scale_vectorsize = { .block32 };
    .decompress = { .decompress::lut::b };
    .cta_group = { .cta_group::1, .cta_group::2 };
    .collector = { .collector::a::fill, .collector::a::use, .collector::a::lastuse, .collector::a::discard };
    .collector_b = { .collector::b::fill, .collector::b::use, .collector::b::lastuse, .collector::b::discard };
    rule lanes
    only .ashift => !.collector::a::fill,.collector::a::use
    needs .kind::f16,.kind::tf32,.kind::f8f6f4,.kind::mxf8f6f4 => ptx 8.6, tcgen05
    needs .kind::i8           => ptx 8.6, tcgen05_integer
    needs .kind::mxf4         => ptx 8.6, tcgen05
    needs .kind::mxf4nvf4     => ptx 8.7, tcgen05
    needs .block16,.block32   => ptx 8.8, tcgen05_family
    needs .scale_vec::1X,.scale_vec::2X,.scale_vec::4X => tcgen05_chips
    needs .block_scale !.scale_vectorsize => ptx 8.8
    needs .kind::ti16,.collector_b,.decompress => ptx 9.4, sm_107f
    needs @scale_input_d      => ptx 8.6, sm_100a, sm_100f

# 9.7.16.10.9.2 tcgen05.mma.sp
    tcgen05.mma.sp.cta_group.kind{.collector}{.collector_b}  $shared, [sp_meta]^@tmem, idesc:u32,$input$scale_d;
    tcgen05.mma.sp.cta_group.kind{.ashift}{.collector}{.collector_b}
        $tensor, [sp_meta]^@tmem, idesc:u32,$input$scale_d;
    .kind = { .kind::f16, .kind::tf32 };
    tcgen05.mma.sp.cta_group.kind{.collector}{.collector_b}  $shared, [sp_meta]^@tmem, idesc:u32,$input;
    tcgen05.mma.sp.cta_group.kind{.ashift}{.collector}{.collector_b}  $tensor, [sp_meta]^@tmem, idesc:u32,$input;
    .kind = { .kind::f8f6f4, .kind::i8, .kind::ti16 };
    tcgen05.mma.sp.cta_group.kind.block_scale{.scale_vectorsize}{.collector}{.collector_b}
        $shared, [sp_meta]^@tmem, idesc:u32, $scales;
    tcgen05.mma.sp.cta_group.kind.block_scale{.scale_vectorsize}{.collector}{.collector_b}
        $tensor, [sp_meta]^@tmem, idesc:u32, $scales;
    .kind = { .kind::mxf8f6f4 };
    .scale_vectorsize = { .scale_vec::1X, .block32 };
    tcgen05.mma.sp.cta_group.kind.block_scale{.scale_vectorsize}{.collector}{.collector_b}
        $shared, [sp_meta]^@tmem, idesc:u32, $scales;
    tcgen05.mma.sp.cta_group.kind.block_scale{.scale_vectorsize}{.collector}{.collector_b}
        $tensor, [sp_meta]^@tmem, idesc:u32, $scales;
    .kind = { .kind::mxf4 };
    .scale_vectorsize = { .scale_vec::2X, .block32 };
    tcgen05.mma.sp.cta_group.kind.block_scale.scale_vectorsize{.collector}{.collector_b}
        $shared, [sp_meta]^@tmem, idesc:u32, $scales;
    tcgen05.mma.sp.cta_group.kind.block_scale.scale_vectorsize{.collector}{.collector_b}
        $tensor, [sp_meta]^@tmem, idesc:u32, $scales;
    .kind = { .kind::mxf4nvf4 };
    .scale_vectorsize = { .scale_vec::2X, .scale_vec::4X, .block16, .block32 };
    .cta_group = { .cta_group::1, .cta_group::2 };
    .collector = { .collector::a::fill, .collector::a::use, .collector::a::lastuse, .collector::a::discard };
    .collector_b = { .collector::b::fill, .collector::b::use, .collector::b::lastuse, .collector::b::discard };
    rule lanes
    only .ashift => !.collector::a::fill,.collector::a::use
    needs .kind::f16,.kind::tf32,.kind::f8f6f4,.kind::mxf8f6f4 => ptx 8.6, tcgen05
    needs .kind::i8           => ptx 8.6, tcgen05_integer
    needs .kind::mxf4         => ptx 8.6, tcgen05_chips
    needs .kind::mxf4nvf4     => ptx 8.7, tcgen05_chips
    needs .block16,.block32   => ptx 8.8, tcgen05_family
    needs .scale_vec::1X,.scale_vec::2X,.scale_vec::4X => tcgen05_chips
    needs .block_scale !.scale_vectorsize => ptx 8.8
    needs .kind::ti16,.collector_b => ptx 9.4, sm_107f
    needs @scale_input_d      => ptx 8.6, sm_100a, sm_100f

# 9.7.16.10.9.3 tcgen05.mma.ws
    tcgen05.mma.ws.cta_group.kind{.collector}
        $shared, idesc:u32, enable_input_d:pred{, zero_column_mask_desc:u64(reg)};
    tcgen05.mma.ws.cta_group.kind{.collector}
        $tensor, idesc:u32, enable_input_d:pred{, zero_column_mask_desc:u64(reg)};
    .cta_group = { .cta_group::1 };
    .kind      = { .kind::f16, .kind::tf32, .kind::f8f6f4, .kind::i8, .kind::ti16 };
    .collector = {
        .collector::b0::fill, .collector::b0::use, .collector::b0::lastuse, .collector::b0::discard,
        .collector::b1::fill, .collector::b1::use, .collector::b1::lastuse, .collector::b1::discard,
        .collector::b2::fill, .collector::b2::use, .collector::b2::lastuse, .collector::b2::discard,
        .collector::b3::fill, .collector::b3::use, .collector::b3::lastuse, .collector::b3::discard
    };
    needs .kind::f16,.kind::tf32,.kind::f8f6f4 => ptx 8.6, tcgen05
    needs .kind::i8                            => ptx 8.6, tcgen05_integer
    needs .kind::ti16                          => ptx 9.4, sm_107f

# 9.7.16.10.9.4 tcgen05.mma.ws.sp
    tcgen05.mma.ws.sp.cta_group.kind{.collector}
        $shared, [sp_meta]^@tmem, idesc:u32, enable_input_d:pred{, zero_column_mask_desc:u64(reg)};
    tcgen05.mma.ws.sp.cta_group.kind{.collector}
        $tensor, [sp_meta]^@tmem, idesc:u32, enable_input_d:pred{, zero_column_mask_desc:u64(reg)};
    .cta_group = { .cta_group::1 };
    .kind      = { .kind::f16, .kind::tf32, .kind::f8f6f4, .kind::i8, .kind::ti16 };
    .collector = {
        .collector::b0::fill, .collector::b0::use, .collector::b0::lastuse, .collector::b0::discard,
        .collector::b1::fill, .collector::b1::use, .collector::b1::lastuse, .collector::b1::discard,
        .collector::b2::fill, .collector::b2::use, .collector::b2::lastuse, .collector::b2::discard,
        .collector::b3::fill, .collector::b3::use, .collector::b3::lastuse, .collector::b3::discard
    };
    needs .kind::f16,.kind::tf32,.kind::f8f6f4 => ptx 8.6, tcgen05
    needs .kind::i8                            => ptx 8.6, tcgen05_integer
    needs .kind::ti16                          => ptx 9.4, sm_107f

# 9.7.16.11.1 tcgen05
    tcgen05.when;
    .when = { .fence::before_thread_sync, .fence::after_thread_sync };
    needs => ptx 8.6, tcgen05

# 9.7.16.12.1 tcgen05.commit
    tcgen05.commit.cta_group.completion_mechanism{.restricted}{.space}{.multicast}.b64
        [mbar], ctaMask:u16(reg) if .multicast::cluster, ctaMask:u32(reg) if .multicast::cluster::32b;
    .cta_group = { .cta_group::1, .cta_group::2 };
    .completion_mechanism = { .mbarrier::arrive::one };
    .space     = { .shared::cluster };
    .restricted = { .sync_restrict::shared::read::mma::a };
    .multicast = { .multicast::cluster, .multicast::cluster::32b };
    needs => ptx 8.6, tcgen05
    needs .restricted,.multicast::cluster::32b => ptx 9.4, sm_107f
"""

#: Registers that one repetition of a data movement shape takes (9.7.16.8.3, table 47).
_PER_REPETITION = {"16x32bx2": 1, "16x64b": 1, "32x32b": 1, "16x128b": 2, "16x256b": 4}


def movement(context: Context) -> dict[str, int | str] | str:
    """Length of the register vector of tcgen05.ld and tcgen05.st."""
    shape, repetitions = context.mods["shape"], int(context.mods["num"][1:])
    count = _PER_REPETITION[shape] * repetitions
    if count > 128:
        return f"'.{shape}' with '.x{repetitions}' takes {count} registers; at most 128 are allowed"
    if "spfactor" in context.mods:
        kept: dict[str, int | str] = {"metadata": -(-repetitions // 32), "kept": repetitions // 2}
        return kept if repetitions >= 4 else "a group has four elements: .x4 or more"
    if "redOp" in context.mods and repetitions < 2:
        return "a reduction needs .x2 or more"
    return {"registers": count}


def lanes(context: Context) -> dict[str, int | str]:
    """Length of disable-output-lane: one bit for each lane of tensor memory (9.7.16.10.9.1)."""
    return {"lanes": 4 if context.mods["cta_group"] == "cta_group::1" else 8}
