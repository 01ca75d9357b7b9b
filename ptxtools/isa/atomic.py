"""9.7.13.5 to 9.7.13.7 Atomic operations and reductions in memory."""

PAGES = """
let policy = cache_policy:u64(reg imm) if .L2::cache_hint

# 9.7.13.5 atom
    atom{.sem}{.scope}{.space}.op{.cache_hint}.type  d(reg sink), [a], b, $policy;
    .op   = { .and, .or, .xor };
    .type = { .b32, .b64 };
    atom{.sem}{.scope}{.space}.op{.cache_hint}.type  d(reg sink), [a], b, $policy;
    .op   = { .exch };
    .type = { .b32, .b64, .b128 };
    atom{.sem}{.scope}{.space}.op.type               d(reg sink), [a], b, c;
    .op   = { .cas };
    .type = { .b16, .b32, .b64, .b128 };
    atom{.sem}{.scope}{.space}.op{.cache_hint}.type  d(reg sink), [a], b, $policy;
    .op   = { .add };
    .type = { .u32, .s32, .u64, .f32, .f64 };
    atom{.sem}{.scope}{.space}.op{.cache_hint}.type  d(reg sink), [a], b, $policy;
    .op   = { .inc, .dec };
    .type = { .u32 };
    atom{.sem}{.scope}{.space}.op{.cache_hint}.type  d(reg sink), [a], b, $policy;
    .op   = { .min, .max };
    .type = { .u32, .s32, .u64, .s64 };
    atom{.sem}{.scope}{.space}.op.noftz{.cache_hint}.type  d(reg sink), [a], b, $policy;
    .op   = { .add };
    .type = { .f16, .f16x2, .bf16, .bf16x2, .f32 };
    .space = { .global, .shared{::cta, ::cluster} };
    atom{.sem}{.scope}{.space}.op{.noftz}{.cache_hint}.vec.type  d:type*vec&, [a], b:type*vec&, $policy;
    .op   = { .add };
    .vec  = { .v2, .v4 };
    .type = { .f32 };
    atom{.sem}{.scope}{.space}.op.noftz{.cache_hint}.vec.type  d:type*vec&, [a], b:type*vec&, $policy;
    .op   = { .add, .min, .max };
    .vec  = { .v2, .v4, .v8 };
    .type = { .f16, .bf16 };
    atom{.sem}{.scope}{.space}.op.noftz{.cache_hint}.vec.type  d:type*vec&, [a], b:type*vec&, $policy;
    .op   = { .add, .min, .max };
    .vec  = { .v2, .v4 };
    .type = { .f16x2, .bf16x2 };
    .space = { .global };
    .sem   = { .relaxed, .acquire, .release, .acq_rel };
    .scope = { .cta, .cluster, .gpu, .sys };
    .cache_hint = { .L2::cache_hint };
    needs                                => ptx 1.1, sm_11
    needs .shared                        => ptx 1.2, sm_12
    needs !.space                        => ptx 2.0, sm_20
    needs .add,.cas,.exch .b64,.u64      => ptx 1.2, sm_12
    needs .add,.cas,.exch .b64,.u64 .shared => ptx 2.0, sm_20
    needs .and,.or,.xor,.min,.max .b64,.u64,.s64 => ptx 3.1, sm_32
    needs .f32                           => ptx 2.0, sm_20
    needs .noftz .f32                    => ptx 9.4, sm_90
    needs .f64                           => ptx 5.0, sm_60
    needs .scope                         => ptx 5.0, sm_60
    needs .sem                           => ptx 6.0, sm_70
    needs .f16x2                         => ptx 6.2, sm_60
    needs .f16 | .b16                    => ptx 6.3, sm_70
    needs .cache_hint                    => ptx 7.4, sm_80
    needs .bf16 | .bf16x2                => ptx 7.8, sm_90
    needs scope=.cluster                 => ptx 7.8, sm_90
    needs .shared::cta                   => ptx 7.8, sm_30
    needs .shared::cluster               => ptx 7.8, sm_90
    needs .vec                           => ptx 8.1, sm_90
    needs .b128                          => ptx 8.3, sm_90
    needs .b128 .sys                     => ptx 8.4
    only .cache_hint => .global | !.space

# 9.7.13.6 red
    red{.sem}{.scope}{.space}.op{.cache_hint}.type  [a], b, $policy;
    .op   = { .and, .or, .xor };
    .type = { .b32, .b64 };
    red{.sem}{.scope}{.space}.op{.cache_hint}.type  [a], b, $policy;
    .op   = { .add };
    .type = { .u32, .s32, .u64, .f32, .f64 };
    red{.sem}{.scope}{.space}.op{.cache_hint}.type  [a], b, $policy;
    .op   = { .inc, .dec };
    .type = { .u32 };
    red{.sem}{.scope}{.space}.op{.cache_hint}.type  [a], b, $policy;
    .op   = { .min, .max };
    .type = { .u32, .s32, .u64, .s64 };
    red{.sem}{.scope}{.space}.op.noftz{.cache_hint}.type  [a], b, $policy;
    .op   = { .add };
    .type = { .f16, .f16x2, .bf16, .bf16x2, .f32 };
    .space = { .global, .shared{::cta, ::cluster} };
    red{.sem}{.scope}{.space}.op{.noftz}{.cache_hint}.vec.type  [a], b:type*vec&, $policy;
    .op   = { .add };
    .vec  = { .v2, .v4 };
    .type = { .f32 };
    red{.sem}{.scope}{.space}.op.noftz{.cache_hint}.vec.type  [a], b:type*vec&, $policy;
    .op   = { .add, .min, .max };
    .vec  = { .v2, .v4, .v8 };
    .type = { .f16, .bf16 };
    red{.sem}{.scope}{.space}.op.noftz{.cache_hint}.vec.type  [a], b:type*vec&, $policy;
    .op   = { .add, .min, .max };
    .vec  = { .v2, .v4 };
    .type = { .f16x2, .bf16x2 };
    .space = { .global };
    .sem   = { .relaxed, .release };
    .scope = { .cta, .cluster, .gpu, .sys };
    .cache_hint = { .L2::cache_hint };
    needs                                => ptx 1.2, sm_11
    needs .shared                        => sm_12
    needs !.space                        => ptx 2.0, sm_20
    needs .add .u64                      => sm_12
    needs .add .u64 .shared              => ptx 2.0, sm_20
    needs .and,.or,.xor,.min,.max .b64,.u64,.s64 => ptx 3.1, sm_32
    needs .f32                           => ptx 2.0, sm_20
    needs .noftz .f32                    => ptx 9.4, sm_90
    needs .f64                           => ptx 5.0, sm_60
    needs .scope                         => ptx 5.0, sm_60
    needs .sem                           => ptx 6.0, sm_70
    needs .f16x2                         => ptx 6.2, sm_60
    needs .f16                           => ptx 6.3, sm_70
    needs .cache_hint                    => ptx 7.4, sm_80
    needs .bf16 | .bf16x2                => ptx 7.8, sm_90
    needs scope=.cluster                 => ptx 7.8, sm_90
    needs .shared::cta                   => ptx 7.8, sm_30
    needs .shared::cluster               => ptx 7.8, sm_90
    needs .vec                           => ptx 8.1, sm_90
    only .cache_hint => .global | !.space

# 9.7.13.7 red.async
    red.async.sem.scope{.ss}.completion_mechanism.op.type  [a], b, [mbar];
    .op   = { .inc, .dec };
    .type = { .u32 };
    red.async.sem.scope{.ss}.completion_mechanism.op.type  [a], b, [mbar];
    .op   = { .min, .max };
    .type = { .u32, .s32 };
    red.async.sem.scope{.ss}.completion_mechanism.op.type  [a], b, [mbar];
    .op   = { .and, .or, .xor };
    .type = { .b32 };
    red.async.sem.scope{.ss}.completion_mechanism.op.type  [a], b, [mbar];
    .op   = { .add };
    .type = { .u32, .s32, .u64 };
    .sem   = { .relaxed };
    .scope = { .cluster };
    .ss    = { .shared::cluster };
    .completion_mechanism = { .mbarrier::complete_tx::bytes };
    red.async{.mmio}.sem.scope{.ss}.op.type  [a], b;
    .sem   = { .release };
    .scope = { .gpu, .sys };
    .ss    = { .global };
    .op    = { .add };
    .type  = { .u32, .s32, .u64, .s64 };
    needs          => ptx 8.1, sm_90
    needs .release => ptx 8.7, sm_100
    removed .mmio !.sys => ptx 9.1
"""
