"""9.7.9.12 to 9.7.9.14 and 9.7.9.25: asynchronous stores, multimem, asynchronous and bulk copies."""

from .conditions import Context
from .types import TYPES

PAGES = """
let copy = [dstMem]@dst, [srcMem]@src, size:u32(reg imm low<9.2 0..1048560:16)
let policy = cache_policy:u64(reg imm) if .L2::cache_hint
let mask = ctaMask:u16 if .multicast::cluster, ctaMask:u32 if .multicast::cluster::32b
let outside = ignoreBytesLeft:u32(reg imm low 0..15), ignoreBytesRight:u32(reg imm low 0..15)

# 9.7.9.12 st.async
    st.async{.weak}{.ss}.completion_mechanism{.vec}.type  [a], b:type*vec&, [mbar];
    .ss   = { .shared::cluster };
    .vec  = { .v2, .v4 };
    .type = { .b32, .b64, .b128, .u32, .u64, .s32, .s64, .f32, .f64 };
    .completion_mechanism = { .mbarrier::complete_tx::bytes };
    st.async{.mmio}.release{.scope}{.ss}.type             [a], b;
    .scope = { .gpu, .sys };
    .ss    = { .global };
    .type  = { .b8, .b16, .b32, .b64, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f32, .f64 };
    needs          => ptx 8.1, sm_90
    needs .release => ptx 8.7, sm_100
    removed .mmio !.sys => ptx 9.1
    needs .b128    => ptx 9.2
    only .v4 => !.b64,.u64,.s64,.f64
    only .b128 => !.vec

# 9.7.9.12 multimem.st.async
    multimem.st.async.release.scope{.ss}.type  [a], b:type+;
    .scope = { .gpu, .sys };
    .ss    = { .global };
    .type  = { .b8, .b16, .b32, .b64, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f32, .f64 };
    needs => ptx 9.3, sm_100

# 9.7.9.12 multimem.red.async
    multimem.red.async.release.scope{.ss}.op.type  [a], b;
    .scope = { .gpu, .sys };
    .ss    = { .global };
    .op    = { .add };
    .type  = { .u32, .s32, .u64 };
    needs => ptx 9.3, sm_100

# 9.7.9.13 st.bulk
    st.bulk{.weak}{.shared::cta}  [a], size:u64(reg imm 0..16777216:8), initval:u64(imm 0..0);
    needs => ptx 8.6, sm_100

# 9.7.9.14 multimem.ld_reduce multimem.st multimem.red
    multimem.ld_reduce{.sem}{.scope}{.ss}.op.type   d, [a];
    .op   = { .and, .or, .xor };
    .type = { .b32, .b64 };
    multimem.ld_reduce{.sem}{.scope}{.ss}.op.type   d, [a];
    .op   = { .min, .max };
    .type = { .u32, .u64, .s32, .s64 };
    multimem.ld_reduce{.sem}{.scope}{.ss}.op.type   d, [a];
    .op   = { .add };
    .type = { .u32, .u64, .s32 };
    multimem.ld_reduce{.sem}{.scope}{.ss}.op{.vec}.type             d:type*vec%(listed), [a];
    .op   = { .min, .max };
    .type = { .f16, .f16x2, .bf16, .bf16x2, .e5m2, .e5m2x2, .e5m2x4, .e4m3, .e4m3x2, .e4m3x4 };
    multimem.ld_reduce{.sem}{.scope}{.ss}.op{.acc_prec}{.vec}.type  d:type*vec%(listed), [a];
    .op   = { .add };
    .acc_prec = { .acc::f32 };
    .type = { .f16, .f16x2, .bf16, .bf16x2 };
    multimem.ld_reduce{.sem}{.scope}{.ss}.op{.acc_prec}{.vec}.type  d:type*vec%(listed), [a];
    .op   = { .add };
    .acc_prec = { .acc::f16 };
    .type = { .e5m2, .e5m2x2, .e5m2x4, .e4m3, .e4m3x2, .e4m3x4 };
    multimem.ld_reduce{.sem}{.scope}{.ss}.op{.vec}.type             d:type*vec%(listed), [a];
    .op   = { .add };
    .type = { .f32, .f64 };
    .sem  = { .weak, .relaxed, .acquire };
    multimem.st{.sem}{.scope}{.ss}.type             [a], b;
    .type = { .b32, .b64, .u32, .u64, .s32, .s64 };
    multimem.st{.sem}{.scope}{.ss}{.vec}.type       [a], b:type*vec%(listed);
    .type = { .f16, .f16x2, .bf16, .bf16x2, .f32, .f64, .e5m2, .e5m2x2, .e5m2x4, .e4m3, .e4m3x2, .e4m3x4 };
    .sem  = { .weak, .relaxed, .release };
    multimem.red{.sem}{.scope}{.ss}.op.type         [a], b;
    .op   = { .and, .or, .xor };
    .type = { .b32, .b64 };
    multimem.red{.sem}{.scope}{.ss}.op.type         [a], b;
    .op   = { .min, .max };
    .type = { .u32, .u64, .s32, .s64 };
    multimem.red{.sem}{.scope}{.ss}.op.type         [a], b;
    .op   = { .add };
    .type = { .u32, .u64, .s32 };
    multimem.red{.sem}{.scope}{.ss}.op{.vec}.type   [a], b:type*vec&(flat listed);
    .op   = { .add };
    .type = { .f16, .f16x2, .bf16, .bf16x2, .f32, .f64 };
    .sem  = { .relaxed, .release };
    .ss    = { .global };
    .scope = { .cta, .cluster, .gpu, .sys };
    .vec   = { .v2, .v4, .v8 };
    rule multimem_width
    only .relaxed,.acquire,.release => .scope
    only .scope => .relaxed,.acquire,.release
    needs           => ptx 8.1, sm_90
    needs .acc::f32 => ptx 8.2
    needs .e5m2,.e5m2x2,.e5m2x4,.e4m3,.e4m3x2,.e4m3x4,.acc::f16 => ptx 8.6
    needs .e5m2,.e5m2x2,.e5m2x4,.e4m3,.e4m3x2,.e4m3x4,.acc::f16 => sm_100a, sm_101a, sm_120a, sm_121a, sm_100f, sm_101f

# 9.7.9.25.3.1 cp.async
    cp.async.cop.dst.src{.cache_hint}{.prefetch_size}
        [dst]@dst, [src]@src, cp_size:u32(imm 4/8/16),{ src_size:u32,} $policy;
    cp.async.cop.dst.src{.cache_hint}{.prefetch_size}
        [dst]@dst, [src]@src, cp_size:u32(imm 4/8/16), {!}ignore_src:pred, $policy;
    .cop = { .ca };
    cp.async.cop.dst.src{.cache_hint}{.prefetch_size}
        [dst]@dst, [src]@src, cp_size:u32(imm 16),{ src_size:u32,} $policy;
    cp.async.cop.dst.src{.cache_hint}{.prefetch_size}
        [dst]@dst, [src]@src, cp_size:u32(imm 16), {!}ignore_src:pred, $policy;
    .cop = { .cg };
    .dst = { .shared, .shared::cta };
    .src = { .global };
    .cache_hint    = { .L2::cache_hint };
    .prefetch_size = { .L2::64B, .L2::128B, .L2::256B };
    needs                            => ptx 7.0, sm_80
    needs .cache_hint,.prefetch_size => ptx 7.4
    needs @ignore_src                => ptx 7.5
    needs .shared::cta               => ptx 7.8

# 9.7.9.25.3.2 cp.async.commit_group
    cp.async.commit_group;
    needs => ptx 7.0, sm_80

# 9.7.9.25.3.3 cp.async.wait_group cp.async.wait_all
    cp.async.wait_group  n:u32(imm);
    cp.async.wait_all;
    needs => ptx 7.0, sm_80

# 9.7.9.25.4.1 cp.async.bulk
    cp.async.bulk{.weak}.dst.src.completion_mechanism{.report}{.cache_hint}
        $copy, [mbar]@shared::cta, $policy;
    cp.async.bulk{.sem.scope}.dst.src.completion_mechanism{.report}{.cache_hint}.type
        $copy, [mbar]@shared::cta, $policy;
    cp.async.bulk{.weak}.dst.src.completion_mechanism{.report}.ignore_oob{.cache_hint}
        $copy, $outside, [mbar]@shared::cta, $policy;
    cp.async.bulk{.sem.scope}.dst.src.completion_mechanism{.report}.ignore_oob{.cache_hint}.type
        $copy, $outside, [mbar]@shared::cta, $policy;
    .dst = { .shared::cta };
    .src = { .global };
    .completion_mechanism = { .mbarrier::complete_tx::bytes };
    cp.async.bulk{.weak}.dst.src.completion_mechanism{.report}{.multicast}{.cache_hint}
        $copy, [mbar]@shared::cluster, $mask, $policy;
    cp.async.bulk{.sem.scope}.dst.src.completion_mechanism{.report}{.multicast}{.cache_hint}.type
        $copy, [mbar]@shared::cluster, $mask, $policy;
    .dst = { .shared::cluster };
    .src = { .global };
    .completion_mechanism = { .mbarrier::complete_tx::bytes };
    .multicast = { .multicast::cluster, .multicast::cluster::32b };
    cp.async.bulk{.weak}.dst.src.completion_mechanism  $copy, [mbar]@shared::cluster;
    cp.async.bulk{.sem.scope}.dst.src.completion_mechanism.type  $copy, [mbar]@shared::cluster;
    .dst = { .shared::cluster };
    .src = { .shared::cta };
    .completion_mechanism = { .mbarrier::complete_tx::bytes };
    cp.async.bulk{.weak}.dst.src.completion_mechanism{.cache_hint}{.cp_mask}  $copy, $policy, byteMask:u16 if .cp_mask;
    cp.async.bulk{.sem.scope}.dst.src.completion_mechanism{.cache_hint}{.cp_mask}.type
        $copy, $policy, byteMask:u16 if .cp_mask;
    .dst = { .global };
    .src = { .shared::cta };
    .completion_mechanism = { .bulk_group };
    .cache_hint = { .L2::cache_hint };
    .sem   = { .relaxed };
    .scope = { .cta, .cluster, .gpu, .sys };
    .type  = { .b128 };
    .report = {
        .mbarrier::report::disabled, .mbarrier::report::validity::per_16bytes::80000000,
        .mbarrier::report::validity::per_16bytes::8000, .mbarrier::report::validity::per_16bytes::80,
        .mbarrier::report::validity::per_16bytes::8, .mbarrier::report::validity::per_element::ff
    };
    only .ignore_oob .report => .mbarrier::report::disabled
    needs                  => ptx 8.0, sm_90
    needs .report          => ptx 9.4, sm_107f
    needs dst=.shared::cta => ptx 8.6
    needs .cp_mask         => ptx 8.6, sm_100
    needs .ignore_oob      => ptx 9.2
    needs .weak,.sem,.b128 => ptx 9.3
    needs .multicast::cluster::32b => ptx 9.4, sm_107f
    needs .sem dst=.shared::cluster src=.global => sm_90a, sm_100f, sm_110f
    only .sem dst=.shared::cluster src=.shared::cta => .cta,.cluster

# 9.7.9.25.4.2 cp.reduce.async.bulk
    cp.reduce.async.bulk{.sem.scope}.dst.src.completion_mechanism.redOp.type  $copy, [mbar]@shared::cluster;
    .redOp = { .add };
    .type  = { .u32, .s32, .u64 };
    cp.reduce.async.bulk{.sem.scope}.dst.src.completion_mechanism.redOp.type  $copy, [mbar]@shared::cluster;
    .redOp = { .min, .max };
    .type  = { .u32, .s32 };
    cp.reduce.async.bulk{.sem.scope}.dst.src.completion_mechanism.redOp.type  $copy, [mbar]@shared::cluster;
    .redOp = { .inc, .dec };
    .type  = { .u32 };
    cp.reduce.async.bulk{.sem.scope}.dst.src.completion_mechanism.redOp.type  $copy, [mbar]@shared::cluster;
    .redOp = { .and, .or, .xor };
    .type  = { .b32 };
    .dst = { .shared::cluster };
    .src = { .shared::cta };
    .completion_mechanism = { .mbarrier::complete_tx::bytes };
    cp.reduce.async.bulk{.sem.scope}.dst.src.completion_mechanism{.cache_hint}.redOp.type  $copy, $policy;
    .redOp = { .add };
    .type  = { .u32, .s32, .u64, .f32, .f64 };
    cp.reduce.async.bulk{.sem.scope}.dst.src.completion_mechanism{.cache_hint}.redOp.noftz.type  $copy, $policy;
    .redOp = { .add };
    .type  = { .f16, .bf16, .f32 };
    cp.reduce.async.bulk{.sem.scope}.dst.src.completion_mechanism{.cache_hint}.redOp.type  $copy, $policy;
    .redOp = { .min, .max };
    .type  = { .u32, .s32, .u64, .s64, .f16, .bf16 };
    cp.reduce.async.bulk{.sem.scope}.dst.src.completion_mechanism{.cache_hint}.redOp.type  $copy, $policy;
    .redOp = { .inc, .dec };
    .type  = { .u32 };
    cp.reduce.async.bulk{.sem.scope}.dst.src.completion_mechanism{.cache_hint}.redOp.type  $copy, $policy;
    .redOp = { .and, .or, .xor };
    .type  = { .b32, .b64 };
    .dst = { .global };
    .src = { .shared::cta };
    .completion_mechanism = { .bulk_group };
    .cache_hint = { .L2::cache_hint };
    .sem   = { .relaxed };
    .scope = { .cta, .cluster, .gpu, .sys };
    needs      => ptx 8.0, sm_90
    needs .sem => ptx 9.3
    needs .noftz .f32 => ptx 9.4
    only .sem dst=.shared::cluster => .cta,.cluster

# 9.7.9.25.7.1 multimem.cp.async.bulk
    multimem.cp.async.bulk{.weak}.dst.src.completion_mechanism{.cp_mask}  $copy, byteMask:u16 if .cp_mask;
    multimem.cp.async.bulk{.sem.scope}.dst.src.completion_mechanism{.cp_mask}.type  $copy, byteMask:u16 if .cp_mask;
    .dst = { .global };
    .src = { .shared::cta };
    .completion_mechanism = { .bulk_group };
    .sem   = { .relaxed };
    .scope = { .cta, .cluster, .gpu, .sys };
    .type  = { .b128 };
    needs                  => ptx 9.1, sm_90
    needs .cp_mask         => sm_100
    needs .weak,.sem,.b128 => ptx 9.3

# 9.7.9.25.7.2 multimem.cp.reduce.async.bulk
    multimem.cp.reduce.async.bulk{.sem.scope}.dst.src.completion_mechanism.redOp.type  $copy;
    .redOp = { .add };
    .type  = { .u32, .s32, .u64, .f32, .f64 };
    multimem.cp.reduce.async.bulk{.sem.scope}.dst.src.completion_mechanism.redOp.noftz.type  $copy;
    .redOp = { .add };
    .type  = { .f16, .bf16, .f32 };
    multimem.cp.reduce.async.bulk{.sem.scope}.dst.src.completion_mechanism.redOp.type  $copy;
    .redOp = { .min, .max };
    .type  = { .u32, .s32, .u64, .s64, .f16, .bf16 };
    multimem.cp.reduce.async.bulk{.sem.scope}.dst.src.completion_mechanism.redOp.type  $copy;
    .redOp = { .inc, .dec };
    .type  = { .u32 };
    multimem.cp.reduce.async.bulk{.sem.scope}.dst.src.completion_mechanism.redOp.type  $copy;
    .redOp = { .and, .or, .xor };
    .type  = { .b32, .b64 };
    .dst = { .global };
    .src = { .shared::cta };
    .completion_mechanism = { .bulk_group };
    .sem   = { .relaxed };
    .scope = { .cta, .cluster, .gpu, .sys };
    needs      => ptx 9.1, sm_90
    needs .sem => ptx 9.3
    needs .noftz .f32 => ptx 9.4

# 9.7.9.25.4.3 cp.async.bulk.prefetch
    cp.async.bulk.prefetch.L2.src{.cache_hint}  [srcMem]@src, size:u32(reg imm 0..1048560:16), $policy;
    cp.async.bulk.prefetch.L2.src.priority      [srcMem]@src, size:u32(reg imm 0..1048560:16);
    .src = { .global };
    .cache_hint = { .L2::cache_hint };
    .priority   = { .L2::evict_last };
    needs           => ptx 8.0, sm_90
    needs .priority => ptx 9.4, sm_107f

# 9.7.9.16 applypriority.async.bulk
    applypriority.async.bulk{.src}.completion_mechanism.priority  [srcMem]@generic, size:u32(reg imm 0..1048560:16);
    .src = { .global };
    .completion_mechanism = { .bulk_group };
    .priority = { .L2::evict_normal };
    needs => ptx 9.4, sm_107f

# 9.7.9.25.6.1 cp.async.bulk.commit_group
    cp.async.bulk.commit_group;
    needs => ptx 8.0, sm_90

# 9.7.9.25.6.2 cp.async.bulk.wait_group
    cp.async.bulk.wait_group{.read}  n:u32(imm);
    needs => ptx 8.0, sm_90

# 9.7.13.15.15 cp.async.mbarrier.arrive
    cp.async.mbarrier.arrive{.noinc}{.ss}.b64  [addr];
    .ss = { .shared{::cta} };
    needs              => ptx 7.0, sm_80
    needs .shared::cta => ptx 7.8
"""


def multimem_width(context: Context) -> dict[str, int | str] | str:
    """Floating-point operations touch 32, 64 or 128 bits (9.7.9.14)."""
    type = next(TYPES[atom] for atom in context.mods.values() if atom in TYPES)
    vector = context.mods.get("vec")
    if vector is not None and type.name == "f64":
        return "'.f64' takes no vector"
    width = type.bits * (int(vector[1:]) if vector else 1)
    if width not in (32, 64, 128):
        return f"type and vector give {width} bits; 32, 64 or 128 are required"
    return {}
