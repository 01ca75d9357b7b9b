"""9.7.13 Parallel synchronisation and communication: barriers, fences, votes, reductions of a warp."""

PAGES = """
let number  = a:u32(reg imm low 0..15)
let threads = b:u32(reg imm low 0..4294967264:32)

# 9.7.13.1 bar barrier
    bar{.cta}.sync                    $number{, $threads};
    bar{.cta}.arrive                  $number, b:u32(reg imm low 32..4294967264:32);
    bar{.cta}.red.popc.u32            d, $number,{ $threads,} {!}c:pred;
    bar{.cta}.red.op.pred             p, $number,{ $threads,} {!}c:pred;
    barrier{.cta}.sync{.aligned}            $number{, $threads};
    barrier{.cta}.arrive{.aligned}          $number, b:u32(reg imm low 32..4294967264:32);
    barrier{.cta}.red.popc{.aligned}.u32    d, $number,{ $threads,} {!}c:pred;
    barrier{.cta}.red.op{.aligned}.pred     p, $number,{ $threads,} {!}c:pred;
    .op = { .and, .or };
    first .cta, .sync, .arrive, .red
    needs barrier           => ptx 6.0, sm_30
    needs .arrive | .red    => ptx 2.0, sm_20
    needs @b                => ptx 2.0, sm_20
    needs @a:reg            => ptx 2.0, sm_20
    needs .cta              => ptx 7.8, sm_20

# 9.7.13.2 bar.warp.sync
    bar.warp.sync  membermask:u32;
    needs => ptx 6.0, sm_30

# 9.7.13.3 barrier.cluster
    barrier.cluster.arrive{.sem}{.aligned};
    .sem = { .release, .relaxed };
    barrier.cluster.wait{.acquire}{.aligned};
    first .arrive, .wait
    needs                             => ptx 7.8, sm_90
    needs .acquire,.release,.relaxed  => ptx 8.0

# 9.7.13.4 membar
    membar.level;
    .level = { .cta, .gl, .sys };
    membar.proxy.proxykind;
    .proxykind = { .alias };
    first .proxy
    needs        => ptx 1.4
    needs .sys   => ptx 2.0, sm_20
    needs .proxy => ptx 7.5, sm_60

# 9.7.13.4 fence
    fence{.sem}.scope;
    .sem   = { .sc, .acq_rel, .acquire, .release };
    fence.sem.sync_restrict.cluster;
    .sem   = { .acquire };
    .sync_restrict = { .sync_restrict::shared::cluster };
    fence.sem.sync_restrict.cluster;
    .sem   = { .release };
    .sync_restrict = { .sync_restrict::shared::cta };
    fence.op_restrict.release.cluster;
    .op_restrict = { .mbarrier_init };
    fence.proxy.proxykind;
    .proxykind = { .alias };
    fence.proxy.proxykind.sem.sys;
    .proxykind = { .alias };
    .sem   = { .acquire, .release };
    fence.proxy.kinds.alias.sem.sys;
    .kinds = { .fabric::generic, .generic::fabric };
    .sem   = { .acquire, .release };
    fence.proxy.async{.space};
    .space = { .global, .shared::cta, .shared::cluster };
    fence.proxy.kinds.release.scope;
    fence.proxy.kinds.acquire.scope  [addr]@generic, size:u32(imm low<9.3 128..128);
    .kinds = { .tensormap::generic };
    fence.proxy.kinds.sem.sync_restrict.cluster;
    .sem   = { .acquire };
    .sync_restrict = { .sync_restrict::shared::cluster };
    fence.proxy.kinds.sem.sync_restrict.cluster;
    .kinds = { .async::generic };
    .sem   = { .release };
    .sync_restrict = { .sync_restrict::shared::cta, .sync_restrict::shared::cluster::read };
    .scope = { .cta, .cluster, .gpu, .sys };
    first .proxy
    needs                     => ptx 6.0, sm_70
    needs .cluster            => ptx 7.8, sm_90
    needs .mbarrier_init      => ptx 8.0, sm_90
    needs .proxy              => ptx 7.5
    needs .async              => ptx 8.0, sm_90
    needs .tensormap::generic => ptx 8.3, sm_90
    needs sem=.acquire,.release => ptx 8.6, sm_90
    needs .sync_restrict      => ptx 8.6, sm_90
    needs .fabric::generic,.generic::fabric => ptx 9.3, sm_100
    needs .proxykind .sem | .sync_restrict::shared::cluster::read => ptx 9.4, sm_90

# 9.7.13.8 vote
    vote.mode.pred    d, {!}a;
    .mode = { .all, .any, .uni };
    vote.mode.b32     d, {!}a:pred;
    .mode = { .ballot };
    needs         => ptx 1.2, sm_12
    needs .ballot => ptx 2.0, sm_20
    removed       => ptx 6.4, sm_70
    marks         => deprecated

# 9.7.13.9 vote.sync
    vote.sync.mode.pred  d, {!}a, membermask:u32;
    .mode = { .all, .any, .uni };
    vote.sync.mode.b32   d, {!}a:pred, membermask:u32;
    .mode = { .ballot };
    needs => ptx 6.0, sm_30

# 9.7.13.10 match.sync
    match.mode.sync.type  d:u32, a, membermask:u32;
    .mode = { .any };
    .type = { .b32, .b64 };
    match.mode.sync.type  d:u32(reg sink){|p:pred}, a, membermask:u32;
    .mode = { .all };
    needs => ptx 6.0, sm_70

# 9.7.13.11 activemask
    activemask.b32  d;
    needs => ptx 6.2, sm_30

# 9.7.13.12 redux.sync
    redux.sync.op.type           dst:type!, src:type!, membermask:u32;
    .op   = { .add, .min, .max };
    .type = { .u32, .s32 };
    redux.sync.op.b32            dst:u32, src:u32, membermask:u32;
    .op   = { .and, .or, .xor };
    redux.sync.op{.abs}{.NaN}.f32  dst, src, membermask:u32;
    .op   = { .min, .max };
    needs      => ptx 7.0, sm_80
    needs .f32 => ptx 8.6, sm_100a, sm_100f

# 9.7.13.13 griddepcontrol
    griddepcontrol.action;
    .action = { .launch_dependents, .wait };
    needs => ptx 7.8, sm_90

# 9.7.13.14 elect.sync
    elect.sync  d:u32(reg sink)|p:pred, membermask:u32;
    needs => ptx 8.0, sm_90
"""
