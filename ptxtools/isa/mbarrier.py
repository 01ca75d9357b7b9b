"""9.7.13.15 mbarrier, 9.7.13.17 and 9.7.13.18 cluster launch control."""

PAGES = """
let reported = =waitComplete:pred{|reportPredicate},{ =reportValue:b8^,}

# 9.7.13.15.9 mbarrier.init
    mbarrier.init{.layout}{.ss}.b64  [addr], count:u32(reg imm 1..1048575);
    .layout = { .layout::v0, .layout::v1 };
    .ss     = { .shared{::cta} };
    needs              => ptx 7.0, sm_80
    needs .shared::cta => ptx 7.8
    needs .layout      => ptx 9.3, sm_90

# 9.7.13.15.10 mbarrier.inval
    mbarrier.inval{.ss}.b64  [addr];
    .ss = { .shared{::cta} };
    needs              => ptx 7.0, sm_80
    needs .shared::cta => ptx 7.8

# 9.7.13.15.11 mbarrier.expect_tx
    mbarrier.expect_tx{.sem.scope}{.space}.b64  [addr], txCount:u32;
    .sem   = { .relaxed };
    .scope = { .cta, .cluster };
    .space = { .shared{::cta, ::cluster} };
    needs => ptx 8.0, sm_90

# 9.7.13.15.12 mbarrier.complete_tx
    mbarrier.complete_tx{.sem.scope}{.space}.b64  [addr], txCount:u32;
    .sem   = { .relaxed };
    .scope = { .cta, .cluster };
    .space = { .shared{::cta, ::cluster} };
    needs => ptx 8.0, sm_90

# 9.7.13.15.13 mbarrier.arrive
    mbarrier.arrive{.sem.scope}{.ss}.b64             =state:u64(reg sink), [addr]{, count:u32(reg imm 1..1048575)};
    mbarrier.arrive.expect_tx{.sem.scope}{.ss}.b64   =state:u64(reg sink), [addr], txCount:u32;
    mbarrier.arrive.noComplete{.release.cta}{.ss}.b64  =state:u64(reg sink), [addr], count:u32(reg imm 1..1048575);
    .ss    = { .shared{::cta} };
    mbarrier.arrive{.sem.scope}{.ss}.b64             =state:u64(sink), [addr]{, count:u32(reg imm 1..1048575)};
    mbarrier.arrive.expect_tx{.sem.scope}{.ss}.b64   =state:u64(sink), [addr], txCount:u32;
    .ss    = { .shared::cluster };
    .sem   = { .release, .relaxed };
    .scope = { .cta, .cluster };
    first .expect_tx
    needs                   => ptx 7.0, sm_80
    needs .shared::cta      => ptx 7.8
    needs @count !.noComplete => ptx 7.8, sm_90
    needs .shared::cluster,.expect_tx => ptx 8.0, sm_90
    needs .sem,.scope,.release => ptx 8.0
    needs scope=.cluster    => ptx 8.0, sm_90
    needs .relaxed          => ptx 8.6, sm_90

# 9.7.13.15.14 mbarrier.arrive_drop
    mbarrier.arrive_drop{.sem.scope}{.ss}.b64             =state:u64(reg sink), [addr]{, count:u32(reg imm 1..1048575)};
    mbarrier.arrive_drop.expect_tx{.sem.scope}{.ss}.b64   =state:u64(reg sink), [addr], txCount:u32;
    mbarrier.arrive_drop.noComplete{.release.cta}{.ss}.b64  =state:u64(reg sink), [addr], count:u32(reg imm 1..1048575);
    .ss    = { .shared{::cta} };
    mbarrier.arrive_drop{.sem.scope}{.ss}.b64             =state:u64(sink), [addr]{, count:u32(reg imm 1..1048575)};
    mbarrier.arrive_drop.expect_tx{.sem.scope}{.ss}.b64   =state:u64(sink), [addr], txCount:u32;
    .ss    = { .shared::cluster };
    .sem   = { .release, .relaxed };
    .scope = { .cta, .cluster };
    first .expect_tx
    needs                   => ptx 7.0, sm_80
    needs .shared::cta      => ptx 7.8
    needs @count !.noComplete => ptx 7.8, sm_90
    needs .shared::cluster,.expect_tx => ptx 8.0, sm_90
    needs .sem,.scope,.release => ptx 8.0
    needs scope=.cluster    => ptx 8.0, sm_90
    needs .relaxed          => ptx 8.6, sm_90

# 9.7.13.15.16 mbarrier.test_wait mbarrier.try_wait
    mbarrier.test_wait{.sem.scope}{.ss}.b64         =waitComplete:pred, [addr], state:u64;
    mbarrier.test_wait.parity{.sem.scope}{.ss}.b64  =waitComplete:pred, [addr], phaseParity:u32(reg imm 0..1);
    mbarrier.try_wait{.sem.scope}{.ss}.b64          =waitComplete:pred, [addr], state:u64{, suspendTimeHint:u32};
    mbarrier.try_wait.parity{.sem.scope}{.ss}.b64
        =waitComplete:pred, [addr], phaseParity:u32(reg imm 0..1){, suspendTimeHint:u32};
    mbarrier.test_wait.primary{.sem.scope}{.ss}.b64         $reported, [addr], state:u64;
    mbarrier.test_wait.parity.primary{.sem.scope}{.ss}.b64  $reported, [addr], phaseParity:u32(reg imm 0..1);
    mbarrier.try_wait.primary{.sem.scope}{.ss}.b64          $reported, [addr], state:u64{, suspendTimeHint:u32};
    mbarrier.try_wait.parity.primary{.sem.scope}{.ss}.b64
        $reported, [addr], phaseParity:u32(reg imm 0..1){, suspendTimeHint:u32};
    .primary = { .phase_type::primary };
    mbarrier.test_wait.parity.conditional{.sem.scope}{.ss}.b64
        =waitComplete:pred, [addr], phaseParity:u32(reg imm 0..1);
    mbarrier.try_wait.parity.conditional{.sem.scope}{.ss}.b64
        =waitComplete:pred, [addr], phaseParity:u32(reg imm 0..1){, suspendTimeHint:u32};
    .conditional = { .phase_type::conditional };
    .ss    = { .shared{::cta} };
    .sem   = { .acquire, .relaxed };
    .scope = { .cta, .cluster };
    first .parity
    needs                    => ptx 7.0, sm_80
    needs .parity            => ptx 7.1
    needs mbarrier.try_wait  => ptx 7.8, sm_90
    needs .shared::cta       => ptx 7.8
    needs .sem,.scope        => ptx 8.0
    needs scope=.cluster     => ptx 8.0, sm_90
    needs .relaxed           => ptx 8.6, sm_90
    needs .primary,.conditional => ptx 9.3, sm_90

# 9.7.13.15.17 mbarrier.pending_count
    mbarrier.pending_count{.layout}.b64  =count:u32, state:u64;
    .layout = { .layout::v0 };
    needs         => ptx 7.0, sm_80
    needs .layout => ptx 9.3, sm_90

# 9.7.13.15.18 mbarrier.check_layout
    mbarrier.check_layout.layout{.ss}.b64  =p:pred, [addr];
    .layout = { .layout::v0, .layout::v1 };
    .ss     = { .shared{::cta} };
    needs => ptx 9.3, sm_90

# 9.7.13.17 clusterlaunchcontrol.try_cancel
    clusterlaunchcontrol.try_cancel.async{.space}.completion_mechanism{.multicast}.b128  [addr], [mbar];
    .space = { .shared::cta };
    .completion_mechanism = { .mbarrier::complete_tx::bytes };
    .multicast = { .multicast::cluster::all };
    first .async
    needs            => ptx 8.6, sm_100
    needs .multicast => blackwell

# 9.7.13.18 clusterlaunchcontrol.query_cancel
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128         p:pred, response:b128;
    clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128   d:b32*4, response:b128;
    clusterlaunchcontrol.query_cancel.dimension.b32.b128            d:b32, response:b128;
    .dimension = { .get_first_ctaid::x, .get_first_ctaid::y, .get_first_ctaid::z };
    needs => ptx 8.6, sm_100
"""
