"""9.7.9 Data movement: mov, shuffles, prmt, loads and stores, address conversion, cache control."""

from .conditions import Context
from .types import TYPES

PAGES = """
let policy = cache_policy:u64(reg imm) if .L2::cache_hint

# 9.7.9.3 mov
    mov.type      d, a(reg imm sreg symbol);
    .type = { .pred, .b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64, .f32, .f64 };
    mov.vec.type  d:type*vec&(reg), a:type*vec&(reg imm sreg);    // whole vectors (6.4.3, 10.12)
    .vec  = { .v2, .v4 };
    .type = { .b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64, .f32, .f64 };
    only .v4        => !.b64,.u64,.s64,.f64
    needs .f64      => sm_13
    needs @a:func   => ptx 2.1
    needs @a:entry  => ptx 3.1, sm_35
    needs @a:opaque => ptx 3.1, sm_20    // indirect access (5.3)
    needs @a:sampler => ptx 4.3, sm_30

# 9.7.9.4 mov
    mov.type  d(reg vec), a(reg imm sreg symbol vec);
    .type = { .b16, .b32, .b64, .b128 };
    needs .b128 => ptx 8.3, sm_70

# 9.7.9.5 shfl
    shfl.mode.b32  d{|p:pred}, a, b:b32, c:b32;
    .mode = { .up, .down, .bfly, .idx };
    needs   => ptx 3.0, sm_30
    removed => ptx 6.4, sm_70
    marks   => deprecated

# 9.7.9.6 shfl.sync
    shfl.sync.mode.b32  d{|p:pred}, a, b:b32, c:b32, membermask:u32;
    .mode = { .up, .down, .bfly, .idx };
    needs => ptx 6.0, sm_30

# 9.7.9.7 prmt
    prmt.b32{.mode}  d, a, b, c;
    .mode = { .f4e, .b4e, .rc8, .ecl, .ecr, .rc16 };
    needs => ptx 2.0, sm_20

# 9.7.9.8 ld
    ld{.weak}{.ss}{.cop}{.cache_hint}{.prefetch_size}{.vec}.type             d:type*vec+, [a](unified), $policy;
    ld{.weak}{.ss}{.eviction}{.l2evict}{.cache_hint}{.prefetch_size}{.vec}.type  d:type*vec+, [a](unified), $policy;
    ld.volatile{.ss}{.prefetch_size}{.vec}.type                              d:type*vec+, [a](unified);
    ld.relaxed.scope{.ss}{.eviction}{.l2evict}{.cache_hint}{.prefetch_size}{.vec}.type
        d:type*vec+, [a](unified), $policy;
    ld.acquire.scope{.ss}{.eviction}{.l2evict}{.cache_hint}{.prefetch_size}{.vec}.type
        d:type*vec+, [a](unified), $policy;
    ld.mmio.sem.scope{.ss}.type                                              d:type+(braced), [a](unified);
    .sem           = { .relaxed, .acquire };
    ld{.place}{.pair}.plain.proxy                                            d:plain*pair+, [a](unified);
    .place         = { .global };
    .pair          = { .v2, .v4 };
    .plain         = { .b8, .b16, .b32, .b64, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f32, .f64 };
    .proxy         = { .proxy::readonly };
    .ss            = { .const, .global, .local, .param{::entry, ::func}, .shared{::cta, ::cluster} };
    .cop           = { .ca, .cg, .cs, .lu, .cv };
    .eviction      = { .L1::evict_normal, .L1::evict_unchanged, .L1::evict_first, .L1::evict_last, .L1::no_allocate };
    .l2evict       = { .L2::evict_normal, .L2::evict_first, .L2::evict_last };
    .cache_hint    = { .L2::cache_hint };
    .prefetch_size = { .L2::64B, .L2::128B, .L2::256B };
    .scope         = { .cta, .cluster, .gpu, .sys };
    .vec           = { .v2, .v4, .v8 };
    .type          = { .b8, .b16, .b32, .b64, .b128, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f32, .f64 };
    needs .f64                        => sm_13
    needs .volatile                   => ptx 1.1
    needs .cop         => ptx 2.0, sm_20
    needs !.ss => ptx 2.0, sm_20
    needs .relaxed,.acquire,.weak     => ptx 6.0, sm_70
    needs .eviction => ptx 7.4, sm_70
    needs .L2::64B,.L2::128B          => ptx 7.4, sm_75
    needs .L2::256B,.L2::cache_hint   => ptx 7.4, sm_80
    needs scope=.cluster              => ptx 7.8, sm_90
    needs .shared::cta                => ptx 7.8, sm_30
    needs .shared::cluster            => ptx 7.8, sm_90
    needs .param::entry,.param::func  => ptx 8.3
    needs @a:unified                  => ptx 8.0, sm_90
    needs .mmio                       => ptx 8.2, sm_70
    needs .b128                       => ptx 8.3, sm_70
    needs .b128 .sys                  => ptx 8.4
    needs .v8 .b32,.u32,.s32,.f32 | .v4 .b64,.u64,.s64,.f64 | .l2evict => ptx 8.8, sm_100
    only .v8 => !.b64,.u64,.s64,.f64                          // at most 32 bytes
    only .v8 .b32,.u32,.s32,.f32 | .v4 .b64,.u64,.s64,.f64 => .global | !.ss
    only .l2evict => .v8 .b32,.u32,.s32,.f32 | .v4 .b64,.u64,.s64,.f64
    only .b128 => !.vec
    only .prefetch_size,.cache_hint,.eviction => .global | !.ss
    needs .volatile .local            => ptx 9.1
    needs .mmio .acquire              => ptx 9.3
    needs .proxy                      => ptx 9.4, sm_90
    only .relaxed,.acquire => .global,.shared,.shared::cta,.shared::cluster | !.ss
    only .volatile => .global,.shared,.shared::cta,.shared::cluster,.local | !.ss
    only .mmio => .sys .global | .sys !.ss

# 9.7.9.9 ld.global.nc
    ld.global{.cop}.nc{.cache_hint}{.prefetch_size}{.vec}.type                d:type*vec+, [a](unified), $policy;
    ld.global.nc{.eviction}{.l2evict}{.cache_hint}{.prefetch_size}{.vec}.type
        d:type*vec+, [a](unified), $policy;
    .cop           = { .ca, .cg, .cs };
    .eviction      = { .L1::evict_normal, .L1::evict_unchanged, .L1::evict_first, .L1::evict_last, .L1::no_allocate };
    .l2evict       = { .L2::evict_normal, .L2::evict_first, .L2::evict_last };
    .cache_hint    = { .L2::cache_hint };
    .prefetch_size = { .L2::64B, .L2::128B, .L2::256B };
    .vec           = { .v2, .v4, .v8 };
    .type          = { .b8, .b16, .b32, .b64, .b128, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f32, .f64 };
    needs                             => ptx 3.1, sm_32
    needs @a:unified                  => ptx 8.0, sm_90
    needs .eviction => ptx 7.4, sm_70
    needs .L2::64B,.L2::128B          => ptx 7.4, sm_75
    needs .L2::256B,.L2::cache_hint   => ptx 7.4, sm_80
    needs .b128                       => ptx 8.3, sm_70
    needs .v8 .b32,.u32,.s32,.f32 | .v4 .b64,.u64,.s64,.f64 | .l2evict => ptx 8.8, sm_100
    only .v8 => !.b64,.u64,.s64,.f64                          // at most 32 bytes
    only .l2evict => .v8 .b32,.u32,.s32,.f32 | .v4 .b64,.u64,.s64,.f64
    only .b128 => !.vec

# 9.7.9.10 ldu
    ldu{.ss}{.vec}.type  d:type*vec+, [a];
    .ss   = { .global };
    .vec  = { .v2, .v4 };
    .type = { .b8, .b16, .b32, .b64, .b128, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f32, .f64 };
    needs       => ptx 2.0, sm_20
    needs .b128 => ptx 8.3, sm_70
    only .v4 => !.b64,.u64,.s64,.f64
    only .b128 => !.vec

# 9.7.9.11 st
    st{.weak}{.ss}{.cop}{.cache_hint}{.vec}.type             [a], b:type*vec+, $policy;
    st{.weak}{.ss}{.eviction}{.l2evict}{.cache_hint}{.vec}.type  [a], b:type*vec+, $policy;
    st.volatile{.ss}{.vec}.type                              [a], b:type*vec+;
    st.relaxed.scope{.ss}{.eviction}{.l2evict}{.cache_hint}{.vec}.type  [a], b:type*vec+, $policy;
    st.release.scope{.ss}{.eviction}{.l2evict}{.cache_hint}{.vec}.type  [a], b:type*vec+, $policy;
    st.mmio.sem.scope{.ss}.type                              [a], b:type+(braced);
    .sem        = { .relaxed, .release };
    .ss         = { .global, .local, .param{::func}, .shared{::cta, ::cluster} };
    .cop        = { .wb, .cg, .cs, .wt };
    .eviction   = { .L1::evict_normal, .L1::evict_unchanged, .L1::evict_first, .L1::evict_last, .L1::no_allocate };
    .l2evict    = { .L2::evict_normal, .L2::evict_first, .L2::evict_last };
    .cache_hint = { .L2::cache_hint };
    .scope      = { .cta, .cluster, .gpu, .sys };
    .vec        = { .v2, .v4, .v8 };
    .type       = { .b8, .b16, .b32, .b64, .b128, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f32, .f64 };
    rule stored
    needs .f64                      => sm_13
    needs .volatile                 => ptx 1.1
    needs .param,.param::func       => ptx 2.0, sm_20
    needs .cop           => ptx 2.0, sm_20
    needs !.ss => ptx 2.0, sm_20
    needs .relaxed,.release,.weak   => ptx 6.0, sm_70
    needs .eviction => ptx 7.4, sm_70
    needs .L2::cache_hint           => ptx 7.4, sm_80
    needs scope=.cluster            => ptx 7.8, sm_90
    needs .shared::cta              => ptx 7.8, sm_30
    needs .shared::cluster          => ptx 7.8, sm_90
    needs .param::func              => ptx 8.3
    needs .mmio                     => ptx 8.2, sm_70
    needs .b128                     => ptx 8.3, sm_70
    needs .b128 .sys                => ptx 8.4
    needs .v8 .b32,.u32,.s32,.f32 | .v4 .b64,.u64,.s64,.f64 | .l2evict => ptx 8.8, sm_100
    only .v8 => !.b64,.u64,.s64,.f64                          // at most 32 bytes
    only .v8 .b32,.u32,.s32,.f32 | .v4 .b64,.u64,.s64,.f64 => .global | !.ss
    only .l2evict => .v8 .b32,.u32,.s32,.f32 | .v4 .b64,.u64,.s64,.f64
    only .b128 => !.vec
    only .cache_hint,.eviction => .global | !.ss
    needs .volatile .local          => ptx 9.1
    needs .mmio .release            => ptx 9.3
    only .relaxed,.release => .global,.shared,.shared::cta,.shared::cluster | !.ss
    only .volatile => .global,.shared,.shared::cta,.shared::cluster,.local | !.ss
    only .mmio => .sys .global | .sys !.ss

# 9.7.9.15 prefetch prefetchu
    prefetch{.space}.level            [a];
    .space = { .global, .local };
    .level = { .L1, .L2 };
    prefetch.global.level             [a];
    .level = { .L2::evict_last, .L2::evict_normal };
    prefetch{.tensormap_space}.tensormap  [a];
    .tensormap_space = { .const, .param };
    prefetch{.space}.L1::32B.valid_addr  [a];
    .space = { .global };
    prefetchu.L1                      [a];
    needs                                => ptx 2.0, sm_20
    needs .valid_addr                    => ptx 9.4, sm_90
    needs .L2::evict_last,.L2::evict_normal => ptx 7.4, sm_80
    needs .tensormap                     => ptx 8.0, sm_90

# 9.7.9.16 applypriority
    applypriority{.global}.priority  [a], size:u64(imm 128..128);
    .priority = { .L2::evict_normal };
    needs => ptx 7.4, sm_80

# 9.7.9.17 discard
    discard{.global}.level  [a], size:u64(imm 128..128);
    .level = { .L2 };
    needs => ptx 7.4, sm_80

# 9.7.9.18 createpolicy
    createpolicy.range{.global}.primary{.secondary}.b64  =cache_policy:u64,
        [a], primary_size:u32(reg imm low 0..4294967295), total_size:u32;
    createpolicy.fractional.primary{.secondary}.b64      =cache_policy:u64{, fraction:f32};
    createpolicy.range.fabric.primary{.secondary}.b64    =cache_policy:u64,
        [leId, dataOff:u64(reg)]@fabric, primary_size:u32(reg imm low 0..4294967295), total_size:u32;
    .primary   = { .L2::evict_last, .L2::evict_normal, .L2::evict_first, .L2::evict_unchanged };
    .secondary = { .L2::evict_first, .L2::evict_unchanged };
    createpolicy.cvt.L2.b64                              =cache_policy:u64, access_property:u64;
    first .range, .fractional, .cvt
    needs         => ptx 7.4, sm_80
    needs .fabric => ptx 9.4, sm_100

# 9.7.9.19 isspacep
    isspacep.space  p:pred, a:any(reg imm);
    .space = { .const, .global, .local, .shared{::cta, ::cluster}, .param{::entry} };
    needs                  => ptx 2.0, sm_20
    needs .const           => ptx 3.1
    needs .param,.param::entry => ptx 7.7, sm_70
    needs .param::entry    => ptx 8.3
    needs .shared::cta     => ptx 7.8, sm_30
    needs .shared::cluster => ptx 7.8, sm_90

# 9.7.9.20 cvta
    cvta.space.size     p, a(reg imm symbol);
    cvta.to.space.size  p, a(reg);
    first .to
    .space = { .const, .global, .local, .shared{::cta, ::cluster}, .param{::entry} };
    .size  = { .u32, .u64 };
    needs                  => ptx 2.0, sm_20
    needs .const           => ptx 3.1
    needs .param,.param::entry => ptx 7.7, sm_70
    needs .param::entry    => ptx 8.3
    needs .shared::cta     => ptx 7.8, sm_30
    needs .shared::cluster => ptx 7.8, sm_90

# 9.7.9.23 mapa
    mapa{.space}.type  d, a(reg imm symbol), b:u32;
    .space = { .shared::cluster };
    .type  = { .u32, .u64 };
    needs => ptx 7.8, sm_90

# 9.7.9.24 getctarank
    getctarank{.space}.type  d:u32, a:type(reg imm symbol);
    .space = { .shared::cluster };
    .type  = { .u32, .u64 };
    needs => ptx 7.8, sm_90
"""


def stored(context: Context) -> dict[str, int | str]:
    """Of 256 bits some elements may be left unwritten: `_` stands for them (9.7.9.11)."""
    count = int(context.mods.get("vec", "v1")[1:])
    return {"sink": "b" if count * TYPES[context.mods["type"]].bits == 256 else ""}
