"""9.7.10.5 of PTX 9.3: copies and reductions over a fabric that connects devices."""

PAGES = """
let handle = [leId, dataOff:u64(reg)]@fabric
let policy = cache_policy:u64(reg imm) if .L2::cache_hint

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
    .op   = { .and, .or, .xor };
    .type = { .b32, .b64 };
    fabric.try_red.async{.multimem}.src.chunks.report{.cache_hint}.sem.scope.op.type
        $handle, [src]@src, size:u32, [bar]@src, $policy;
    .op   = { .min, .max };
    .type = { .u32, .s32, .u64, .s64, .f16, .bf16 };
    fabric.try_red.async{.multimem}.src.chunks.report{.cache_hint}.sem.scope.op.type
        $handle, [src]@src, size:u32, [bar]@src, $policy;
    .op   = { .add };
    .type = { .u32, .s32, .u64, .f16, .bf16, .f32, .f64 };
    .src    = { .shared::cta };
    .chunks = { .mbarrier::complete_tx::16B };
    .report = { .mbarrier::report::fabric };
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
