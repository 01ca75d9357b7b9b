"""9.7.10.5 of PTX 9.3: copies and reductions over a fabric that connects devices.

No edition that was found has the tensor forms: they are as ptxas 13.4 takes them, and stand in the sections that are
free (9.7.10.5.7 to 9.7.10.5.9).
"""

from .tensor import extents  # noqa: F401  a rule of the pages

PAGES = """
let handle = [leId, dataOff:u64(reg)]@fabric
let policy = cache_policy:u64(reg imm) if .L2::cache_hint
let sizes = tensorSizeToOverride:b8*sizes+(whole narrow) if .override::global_dim/.override::global_dim_stride
let lower = tensorLowerStrideToOverride:b32*strides if .override::global_dim_stride
let upper = tensorUpperStrideToOverride:b16(reg) if .override::global_dim_stride
let place = tensorMap, leId:u32(reg), dataOff:u64(reg)
let rest = $sizes, $lower, $upper, tensorCoords:s32*coordinates

# 9.7.10.5.1 fabric.try_get
    fabric.try_get.async.dst.bytes.report{.cache_hint}.sem.scope.b128  [dst]@dst, $handle, size:u32, [bar]@dst, $policy;
    .dst    = { .shared::cta };
    .bytes  = { .mbarrier::complete_tx::bytes };
    .report = { .mbarrier::report::fabric };
    .cache_hint = { .L2::cache_hint };
    .sem    = { .relaxed };
    .scope  = { .sys };
    first .async
    needs => ptx 9.3, sm_100

# 9.7.10.5.2 fabric.try_put
    fabric.try_put.async{.multimem}.src.chunks.report{.cache_hint}{.cp_mask}.sem.scope.b128
        $handle, [src]@src, size:u32, [bar]@src, $policy, byteMask:u16 if .cp_mask;
    fabric.try_put.async{.multimem}.src.chunks.report.counted{.cache_hint}.sem.scope.b128
        [leId, dataOff:u64(reg), counterOff:u64(reg)]@fabric, [src]@src, size:u32, [bar]@src, $policy;
    .src     = { .shared::cta };
    .chunks  = { .mbarrier::complete_tx::16B };
    .report  = { .mbarrier::report::fabric };
    .counted = { .counted::bytes };
    .cache_hint = { .L2::cache_hint };
    .sem     = { .relaxed };
    .scope   = { .sys };
    first .async
    needs => ptx 9.3, sm_100

# 9.7.10.5.3 fabric.try_red
    fabric.try_red.async{.multimem}.src.chunks.report{.cache_hint}.sem.scope.op.type
        $handle, [src]@src, size:u32, [bar]@src, $policy;
    fabric.try_red.async{.multimem}.src.chunks.report.counted{.cache_hint}.sem.scope.op.type
        [leId, dataOff:u64(reg), counterOff:u64(reg)]@fabric, [src]@src, size:u32, [bar]@src, $policy;
    .op   = { .and, .or, .xor };
    .type = { .b32, .b64 };
    fabric.try_red.async{.multimem}.src.chunks.report{.cache_hint}.sem.scope.op.type
        $handle, [src]@src, size:u32, [bar]@src, $policy;
    fabric.try_red.async{.multimem}.src.chunks.report.counted{.cache_hint}.sem.scope.op.type
        [leId, dataOff:u64(reg), counterOff:u64(reg)]@fabric, [src]@src, size:u32, [bar]@src, $policy;
    .op   = { .min, .max };
    .type = { .u32, .s32, .u64, .s64, .f16, .bf16 };
    fabric.try_red.async{.multimem}.src.chunks.report{.cache_hint}.sem.scope.op.type
        $handle, [src]@src, size:u32, [bar]@src, $policy;
    fabric.try_red.async{.multimem}.src.chunks.report.counted{.cache_hint}.sem.scope.op.type
        [leId, dataOff:u64(reg), counterOff:u64(reg)]@fabric, [src]@src, size:u32, [bar]@src, $policy;
    .op   = { .add };
    .type = { .u32, .s32, .u64, .f16, .bf16, .f32, .f64 };
    .src    = { .shared::cta };
    .chunks = { .mbarrier::complete_tx::16B };
    .report = { .mbarrier::report::fabric };
    .counted = { .counted::bytes };                    // found by asking ptxas 13.3
    .cache_hint = { .L2::cache_hint };
    .sem    = { .relaxed };
    .scope  = { .sys };
    first .async
    needs => ptx 9.3, sm_100

# 9.7.10.5.4 fabric.try_pullred
    fabric.try_pullred.async.multimem.dst.bytes.report.sem.scope.op.type.sync
        [dst]@dst, $handle, size:u32, [bar]@dst, membermask:u32(imm 4294967295..4294967295);
    .op   = { .and, .or, .xor };
    .type = { .b32, .b64 };
    fabric.try_pullred.async.multimem.dst.bytes.report.sem.scope.op.type.sync
        [dst]@dst, $handle, size:u32, [bar]@dst, membermask:u32(imm 4294967295..4294967295);
    .op   = { .min, .max };
    .type = { .u32, .s32, .u64, .s64, .f16, .bf16, .e4m3, .e5m2 };
    fabric.try_pullred.async.multimem.dst.bytes.report.sem.scope.op.type.sync
        [dst]@dst, $handle, size:u32, [bar]@dst, membermask:u32(imm 4294967295..4294967295);
    .op   = { .add };
    .type = { .u32, .u64, .f16, .bf16, .f32 };
    fabric.try_pullred.async.multimem.dst.bytes.report.sem.scope.op.acc_prec.type.sync
        [dst]@dst, $handle, size:u32, [bar]@dst, membermask:u32(imm 4294967295..4294967295);
    .op   = { .add };
    .acc_prec = { .acc::f16 };
    .type = { .e4m3, .e5m2 };
    fabric.try_pullred.async.multimem.dst.bytes.report.sem.scope.op.acc_prec.type.sync
        [dst]@dst, $handle, size:u32, [bar]@dst, membermask:u32(imm 4294967295..4294967295);
    .op   = { .add };
    .acc_prec = { .acc::f32 };
    .type = { .f16, .bf16 };
    .dst    = { .shared::cta };
    .bytes  = { .mbarrier::complete_tx::bytes };
    .report = { .mbarrier::report::fabric };
    .sem    = { .relaxed };
    .scope  = { .sys };
    first .async
    needs => ptx 9.3, sm_100
    needs .acc_prec | .e4m3,.e5m2 => narrow

# 9.7.10.5.7 fabric.try_get.async.tensor
    fabric.try_get.async.tensor.dim.dst{.load_mode}.bytes.report{.cache_hint}{.sem.scope}.override{.attribute}.b128
        [dst]@dst, [$place, $rest]@generic, [bar]@dst, $policy;
    .dst    = { .shared::cta };
    .bytes  = { .mbarrier::complete_tx::bytes };
    .dim    = { .1d, .2d, .3d, .4d, .5d };
    .load_mode = { .tile };
    .report = { .mbarrier::report::fabric };
    .cache_hint = { .L2::cache_hint };
    .sem    = { .relaxed };
    .scope  = { .sys };
    .override  = { .override::global_address };
    .attribute = { .override::global_dim, .override::global_dim_stride };
    rule extents
    needs => ptx 9.4, sm_107f

# 9.7.10.5.8 fabric.try_put.async.tensor
    fabric.try_put.async.tensor{.multimem}.dim.src{.load_mode}.chunks.report{.cache_hint}{.sem.scope}.override{.attribute}.b128
        [$place, $rest]@generic, [src]@src, size:u32, [bar]@src, $policy;
    fabric.try_put.async.tensor{.multimem}.dim.src{.load_mode}.chunks.report.counted{.cache_hint}{.sem.scope}.override{.attribute}.b128
        [$place, counterOff:u64(reg), $rest]@generic, [src]@src, size:u32, [bar]@src, $policy;
    .src    = { .shared::cta };
    .chunks = { .mbarrier::complete_tx::16B };
    .dim    = { .1d, .2d, .3d, .4d, .5d };
    .load_mode = { .tile };
    .report = { .mbarrier::report::fabric };
    .counted = { .counted::bytes };
    .cache_hint = { .L2::cache_hint };
    .sem    = { .relaxed };
    .scope  = { .sys };
    .override  = { .override::global_address };
    .attribute = { .override::global_dim, .override::global_dim_stride };
    rule extents
    needs => ptx 9.4, sm_107f

# 9.7.10.5.9 fabric.try_red.async.tensor
    fabric.try_red.async.tensor{.multimem}.dim.src{.load_mode}.chunks.report{.cache_hint}{.sem.scope}.override{.attribute}.op
        [$place, $rest]@generic, [src]@src, size:u32, [bar]@src, $policy;
    fabric.try_red.async.tensor{.multimem}.dim.src{.load_mode}.chunks.report.counted{.cache_hint}{.sem.scope}.override{.attribute}.op
        [$place, counterOff:u64(reg), $rest]@generic, [src]@src, size:u32, [bar]@src, $policy;
    .src    = { .shared::cta };
    .chunks = { .mbarrier::complete_tx::16B };
    .dim    = { .1d, .2d, .3d, .4d, .5d };
    .load_mode = { .tile };
    .report = { .mbarrier::report::fabric };
    .cache_hint = { .L2::cache_hint };
    .sem    = { .relaxed };
    .scope  = { .sys };
    .override  = { .override::global_address };
    .attribute = { .override::global_dim, .override::global_dim_stride };
    .counted = { .counted::bytes };
    .op     = { .add, .min, .max, .and, .or, .xor };
    rule extents
    needs => ptx 9.4, sm_107f

# 9.7.10.5.10 fabric.try_atom
    fabric.try_atom.async.dst.chunks.report{.cache_hint}.sem.scope.op.type
        $handle, [old]@dst, [src]@dst, [bar]@dst, $policy;
    .op   = { .add };
    .type = { .u32, .u64, .f16x2, .bf16x2, .f32, .f64 };
    fabric.try_atom.async.dst.chunks.report{.cache_hint}.sem.scope.op.type
        $handle, [old]@dst, [src]@dst, [bar]@dst, $policy;
    .op   = { .min, .max };
    .type = { .u32, .s32, .u64, .s64, .f16x2, .bf16x2 };
    fabric.try_atom.async.dst.chunks.report{.cache_hint}.sem.scope.op.type
        $handle, [old]@dst, [src]@dst, [bar]@dst, $policy;
    .op   = { .and, .or, .xor };
    .type = { .b32, .b64 };
    fabric.try_atom.async.dst.chunks.report{.cache_hint}.sem.scope.op.type
        $handle, [old]@dst, [src]@dst, [bar]@dst, $policy;
    .op   = { .exch, .cas };
    .type = { .b32, .b64, .b128 };
    .dst    = { .shared::cta };
    .chunks = { .mbarrier::complete_tx::16B };
    .report = { .mbarrier::report::fabric };
    .cache_hint = { .L2::cache_hint };
    .sem    = { .relaxed };
    .scope  = { .sys };
    first .async
    needs => ptx 9.4, sm_100

# 9.7.10.5.5 fabric.submit
    fabric.submit{.op_restrict};
    .op_restrict = { .op_restrict::fetching };
    fabric.submit.commit_group;
    needs               => ptx 9.3, sm_100
    needs .commit_group => ptx 9.5                     // found by asking ptxas 13.5; no manual has it yet

# 9.7.10.5.6 fabric.wait
    fabric.wait.sync_restrict  {, n:u32(imm)};
    .sync_restrict = { .sync_restrict::reads };
    needs    => ptx 9.3, sm_100
    needs @n => ptx 9.5                                // as .commit_group
"""
