"""Kernels with launch files that the model and the simulator both run: one for each feature."""

from dataclasses import replace

from tests.model.features import OUT, Feature
from tests.model.tensor_features import TENSOR_FEATURES
from tests.model.warpgroup_features import WARPGROUP_FEATURES

TENSOR_COPY = Feature(
    body="""    .shared .align 128 .u32 tile[8];
    .shared .align 8 .b64 bar;
    ld.param.u64 %rd1, [out];
    mov.b64 %rd2, map;
    cvta.param.u64 %rd2, %rd2;
    prefetch.tensormap [%rd2];
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra WAIT;
    mbarrier.init.shared.b64 [bar], 1;
    fence.proxy.async.shared::cta; //proxy
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 32;
    mov.u32 %r2, 0;
    mov.u32 %r3, 1;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%rd2, {%r2, %r3}], [bar];
WAIT:
    bar.sync 0; //bar
L:
    mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
    @!%p2 bra L; //wait
    ld.shared.u32 %r4, [tile+16];
    shl.b32 %r5, %r1, 2;
    cvt.u64.u32 %rd3, %r5;
    add.u64 %rd3, %rd1, %rd3;
    st.global.u32 [%rd3], %r4;
""",
    launch="""grid = [1, 1, 1]
block = [2, 1, 1]
args = [{tensormap="t"}, {buffer="out"}]
buffers.x.arange = "u32[16]"
buffers.out.zeros = "u32[2]"
tensormaps.t = {buffer="x", type="u32", shape=[4, 4], box=[4, 2]}
""",
    names=("out[0]", "out[1]"), right=(8, 8), marks=("wait",), idle=("proxy",),
    parameters=".param .align 64 .b8 map[128], " + OUT,
)  # fmt: skip

# Each element loses its low 13 bits, rounded to nearest even: 0x3f801000 is in the middle, and goes down.
ROUNDED_COPY = replace(
    TENSOR_COPY, right=(0x3F800000, 0x3F800000), launch=TENSOR_COPY.launch.replace('type="u32"', 'type="tf32"').replace(
        'arange = "u32[16]"', 'fill = {type="u32[16]", value=0x3f801000}'))  # fmt: skip
# Sixteen numbers of 4 bits are 8 bytes in memory, and have 8 more in the tile; the other half of a row of 128 follows.
PADDED_COPY = replace(
    TENSOR_COPY, right=(6, 6), target="sm_100a",
    body=TENSOR_COPY.body.replace("tile[8]", "tile[32]").replace("bar], 32", "bar], 64").replace("%r3, 1", "%r3, 0")
    .replace("[tile+16]", "[tile+48]"),
    launch=TENSOR_COPY.launch.replace('type="u32", shape=[4, 4], box=[4, 2]',
                                      'type="b4x16_p64", shape=[128, 1], box=[128, 1], swizzle="128B"'),
)  # fmt: skip

# Elements of six bits, in a byte each, are packed on their way to global memory.
PACKED_COPY = Feature(
    body="""    .shared .align 128 .u32 tile[32];
    ld.param.u64 %rd1, [out];
    mov.b64 %rd2, map;
    cvta.param.u64 %rd2, %rd2;
    mov.u32 %r2, 0x04030201;
    mov.u32 %r3, 0x3f3e3d3c;
    st.shared.v4.u32 [tile], {%r2, %r3, %r2, %r3};
    st.shared.v4.u32 [tile+16], {%r3, %r3, %r2, %r2};
    fence.proxy.async.shared::cta; //proxy
    mov.u32 %r1, 0;
    cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd2, {%r1, %r1}], [tile];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0; //copied
    ld.global.u32 %r4, [%rd1];
    ld.global.u32 %r5, [%rd1+8];
    ld.global.u32 %r6, [%rd1+12];
    st.global.u32 [%rd1+128], %r4;
    st.global.u32 [%rd1+132], %r5;
    st.global.u32 [%rd1+136], %r6;
""",
    launch="""grid = [1, 1, 1]
block = [1, 1, 1]
args = [{tensormap="t"}, {buffer="out"}]
buffers.out.zeros = "u32[40]"
tensormaps.t = {buffer="out", type="b6x16_p32", shape=[128, 1], box=[128, 1], swizzle="128B"}
""",
    names=("out[32]", "out[33]", "out[34]"), right=(0x7C103081, 0xFFEF7C10, 0x7CFFEF7C), marks=("copied",),
    parameters=".param .align 64 .b8 map[128], " + OUT, target="sm_100a",
)  # fmt: skip

# Ones in both factors: every element of D is the number of columns of A. Bulk copies bring them.
_FACTORS = """    .shared .align 1024 .b8 a[2048];
    .shared .align 1024 .b8 b[256];
    .shared .align 8 .b64 bar;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [ones];
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra READY;
    mbarrier.init.shared.b64 [bar], 1;
    fence.proxy.async.shared::cta; //init
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 2304;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [a], [%rd2], 2048, [bar];
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [b], [%rd2], 256, [bar];
READY:
    bar.sync 0;
COPIED:
    mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
    @!%p2 bra COPIED; //copied
    mov.u32 %r2, a;
    mov.u32 %r3, b;
    shr.u32 %r2, %r2, 4;
    shr.u32 %r3, %r3, 4;
    cvt.u64.u32 %rd3, %r2;
    cvt.u64.u32 %rd4, %r3;
"""
_ONES = """buffers.ones.fill = {type="u16[1024]", value=15360}
buffers.out.zeros = "u32[4]"
args = [{buffer="ones"}, {buffer="out"}]
"""
_WITH_ONES = ".param .u64 ones, " + OUT
PRODUCT = Feature(
    body=_FACTORS + """    or.b64 %rd3, %rd3, 0x1000080000;
    or.b64 %rd4, %rd4, 0x1000080000;
    mov.b32 %f0, 0;
    mov.b32 %f1, 0;
    mov.b32 %f2, 0;
    mov.b32 %f3, 0;
    setp.eq.u32 %p3, %r1, %r1;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd3, %rd4, %p3, 1, 1, 0, 0;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd3, %rd4, %p3, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0; //group
    @%p1 bra DONE;
    st.shared.b32 [a], 0; //stored
    st.global.b32 [%rd1], %f0;
    st.global.b32 [%rd1+4], %f3;
DONE:
""",
    launch="grid = [1, 1, 1]\nblock = [128, 1, 1]\n" + _ONES, names=("out[0]", "out[1]"),
    right=(0x42000000, 0x42000000), marks=("copied",), parameters=_WITH_ONES, litmus="threads = [[0, 0]]\n",
)  # fmt: skip

TENSOR_CORE = Feature(
    body="""    .shared .align 16 .u32 taddr;
    .shared .align 8 .b64 done;
""" + _FACTORS.replace("2048", "4096").replace("2304", "4352").replace(
        "[bar], 1;", "[bar], 1;\n    mbarrier.init.shared.b64 [done], 1;").replace("    bar.sync 0;\n", """
    bar.warp.sync -1;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [taddr], 32;
    bar.sync 0;
""") + """    ld.shared.u32 %r4, [taddr];
    or.b64 %rd3, %rd3, 0x401000080000;
    or.b64 %rd4, %rd4, 0x401000080000;
    mov.b32 %f0, 5;
    tcgen05.st.sync.aligned.32x32b.x1.b32 [%r4], {%f0};
    tcgen05.wait::st.sync.aligned; //stored
    @%p1 bra ISSUED;
    tcgen05.fence::after_thread_sync; //copies
    setp.ne.u32 %p3, %r1, %r1;
    tcgen05.mma.cta_group::1.kind::f16 [%r4], %rd3, %rd4, 0x8020010, %p3;
    setp.eq.u32 %p3, %r1, %r1;
    tcgen05.mma.cta_group::1.kind::f16 [%r4], %rd3, %rd4, 0x8020010, %p3;
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];
ISSUED:
    bar.warp.sync -1;
COMPUTED:
    mbarrier.try_wait.parity.shared.b64 %p2, [done], 0;
    @!%p2 bra COMPUTED; //computed
    tcgen05.fence::after_thread_sync; //after
    tcgen05.ld.sync.aligned.32x32b.x2.b32 {%f1, %f2}, [%r4];
    tcgen05.wait::ld.sync.aligned; //loaded
    bar.warp.sync -1;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r4, 32;
    tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
    @%p1 bra DONE;
    st.global.b32 [%rd1], %f1;
    st.global.b32 [%rd1+4], %f2;
DONE:
""",
    launch="grid = [1, 1, 1]\nblock = [32, 1, 1]\n" + _ONES.replace("1024", "2048"), names=("out[0]", "out[1]"),
    right=(0x42000000, 0x42000000), marks=("stored", "copies", "computed", "after"), idle=("loaded",),
    parameters=_WITH_ONES, target="sm_100a", litmus="threads = [[0, 0]]\n",
)  # fmt: skip

_HALVES = "    or.b64 %rd3, %rd3, 0x1000080000;\n    or.b64 %rd4, %rd4, 0x1000080000;\n"
INTEGERS = Feature(
    body=_FACTORS + _HALVES + """    mov.b32 %f0, 1;
    mov.b32 %f1, 1;
    mov.b32 %f2, 1;
    mov.b32 %f3, 1;
    setp.eq.u32 %p3, %r1, %r1;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {%f0, %f1, %f2, %f3}, %rd3, %rd4, %p3;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    @%p1 bra DONE;
    st.global.b32 [%rd1], %f0;
DONE:
""",
    launch="grid = [1, 1, 1]\nblock = [128, 1, 1]\n" + _ONES.replace("15360", "257"), names=("out[0]",), right=(33,),
    marks=("copied",), parameters=_WITH_ONES, litmus="threads = [[0, 0]]\n",
)  # fmt: skip
MULTICAST = Feature(
    body="""    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [both];
    mov.u32 %r1, %ctaid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra READ;
    mov.b32 %f0, 0x3f800000;
    multimem.red.relaxed.sys.global.add.f32 [%rd2], %f0;
    multimem.st.weak.global.u32 [%rd2+4], 7;
    fence.acq_rel.sys; //release
    st.relaxed.sys.global.u32 [%rd1+8], 1;
    ret;
READ:
    ld.relaxed.sys.global.u32 %r2, [%rd1+8];
    setp.eq.u32 %p2, %r2, 0;
    @%p2 bra READ; //flag
    fence.acq_rel.sys; //acquire
    multimem.ld_reduce.weak.global.add.f32 %f1, [%rd2];
    multimem.ld_reduce.weak.global.add.u32 %r3, [%rd2+4];
    st.global.b32 [%rd1], %f1;
    st.global.u32 [%rd1+4], %r3;
""",
    launch="""grid = [2, 1, 1]
block = [1, 1, 1]
args = [{multicast="both"}, {buffer="out"}]
buffers.x.zeros = "u32[2]"
buffers.y.zeros = "u32[2]"
buffers.out.zeros = "u32[3]"
multicast.both.buffers = ["x", "y"]
""",
    names=("out[0]", "out[1]"), right=(0x40000000, 14), marks=("release", "flag", "acquire"),
    parameters=".param .u64 both, " + OUT,
)  # fmt: skip
# A copy and a reduction to a multi-address, of the four words that the thread has stored.
MULTICAST_BULK = Feature(
    body="""    .shared .align 16 .u32 mine[4];
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [both];
    mov.u32 %r1, 5;
    st.shared.v4.u32 [mine], {%r1, %r1, %r1, %r1};
    fence.proxy.async.shared::cta; //proxy
    multimem.cp.async.bulk.global.shared::cta.bulk_group [%rd2], [mine], 16;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0; //copied
    multimem.cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd2], [mine], 16;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0; //reduced
    multimem.ld_reduce.weak.global.add.u32 %r3, [%rd2+4];
    st.global.u32 [%rd1], %r3;
""",
    launch="""grid = [1, 1, 1]
block = [1, 1, 1]
args = [{multicast="both"}, {buffer="out"}]
buffers.x.zeros = "u32[4]"
buffers.y.zeros = "u32[4]"
buffers.out.zeros = "u32[1]"
multicast.both.buffers = ["x", "y"]
""",
    names=("out[0]",), right=(20,), marks=("proxy", "copied", "reduced"), parameters=".param .u64 both, " + OUT,
)  # fmt: skip
# The second and third byte of each word, and all that a relaxed copy of 16 bytes at a time moves.
MASKED = Feature(
    body="""    .shared .align 16 .u32 mine[4];
    .shared .align 16 .u32 more[4];
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [both];
    mov.u32 %r1, 0x05060708;
    mov.u32 %r2, 0x01010101;
    st.shared.v4.u32 [mine], {%r1, %r1, %r1, %r1};
    st.shared.v4.u32 [more], {%r2, %r2, %r2, %r2};
    mov.u16 %h1, 0x0666;
    fence.proxy.async.shared::cta; //proxy
    multimem.cp.async.bulk.relaxed.gpu.global.shared::cta.bulk_group.b128 [%rd2], [more], 16;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0; //copied
    multimem.cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd2], [mine], 16, %h1;
    cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd1], [mine], 16, 0x00f0;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0; //masked
    multimem.ld_reduce.weak.global.max.u32 %r3, [%rd2+4];
    multimem.ld_reduce.weak.global.max.u32 %r4, [%rd2+12];
    ld.global.u32 %r5, [%rd1+4];
    st.global.u32 [%rd1], %r3;
    st.global.u32 [%rd1+8], %r4;
    st.global.u32 [%rd1+12], %r5;
""",
    launch="""grid = [1, 1, 1]
block = [1, 1, 1]
args = [{multicast="both"}, {buffer="out"}]
buffers.x.zeros = "u32[4]"
buffers.y.zeros = "u32[4]"
buffers.out.zeros = "u32[4]"
multicast.both.buffers = ["x", "y"]
""",
    names=tuple(f"out[{at}]" for at in range(4)), right=(0x01060701, 0x05060708, 0x01010101, 0x05060708),
    marks=("copied", "masked"), parameters=".param .u64 both, " + OUT, target="sm_100a",
)  # fmt: skip
# Four numbers of 8 bits in a register, and what is too large for them; x has 1.0, 2.0, the greatest and -1.5.
MULTICAST_NARROW = Feature(
    body="""    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [both];
    multimem.ld_reduce.weak.global.add.acc::f16.e4m3x4 %r1, [%rd2];
    multimem.ld_reduce.weak.global.max.e4m3x4 %r2, [%rd2];
    multimem.st.weak.global.e4m3x4 [%rd2], %r1;
    multimem.ld_reduce.weak.global.min.e4m3x4 %r3, [%rd2];
    st.global.u32 [%rd1], %r1;
    st.global.u32 [%rd1+4], %r2;
    st.global.u32 [%rd1+8], %r3;
""",
    launch="""grid = [1, 1, 1]
block = [1, 1, 1]
args = [{multicast="both"}, {buffer="out"}]
buffers.x.fill = {type="u32[1]", value=0xbc7e4038}
buffers.y.fill = {type="u32[1]", value=0x387e3840}
buffers.out.zeros = "u32[3]"
multicast.both.buffers = ["x", "y"]
""",
    names=("out[0]", "out[1]", "out[2]"), right=(0xB07F4444, 0x387E4040, 0xB07F4444),
    parameters=".param .u64 both, " + OUT, target="sm_100a",
)  # fmt: skip
CLUSTER = Feature(
    body="""    .shared .align 4 .u32 mine[2];
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %cluster_ctarank;
    xor.b32 %r2, %r1, 1;
    mov.u32 %r3, mine;
    mapa.shared::cluster.u32 %r4, %r3, %r2;
    add.u32 %r5, %r1, 5;
    st.shared::cluster.u32 [%r4+4], %r5;
    barrier.cluster.arrive; //arrive
    barrier.cluster.wait; //arrive
    ld.shared.u32 %r6, [mine+4];
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd1, %rd1, %rd2;
    st.global.u32 [%rd1], %r6;
    barrier.cluster.arrive;
    barrier.cluster.wait;
""",
    launch="""grid = [2, 1, 1]
block = [1, 1, 1]
cluster = [2, 1, 1]
args = [{buffer="out"}]
buffers.out.zeros = "u32[2]"
""",
    names=("out[0]", "out[1]"), right=(6, 5), marks=("arrive",),
)  # fmt: skip
DEPENDENT = Feature(
    body="""    ld.param.u64 %rd1, [out];
    griddepcontrol.wait; //wait
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
    @!%p1 st.global.u32 [%rd1], 4;
    griddepcontrol.launch_dependents;
    bar.sync 0; //bar
    ld.global.u32 %r2, [%rd1];
    @%p1 st.global.u32 [%rd1+4], %r2;
""",
    launch="""grid = [1, 1, 1]
block = [64, 1, 1]
args = [{buffer="out"}]
buffers.out.zeros = "u32[2]"
""",
    names=("out[0]", "out[1]"), right=(4, 4), marks=("bar",), idle=("wait",),
    litmus="threads = [[0, 0], [0, 32]]\n",
)  # fmt: skip
# The map is changed in global memory, from x to y, and handed on to another CTA.
CHANGED_MAP = Feature(
    body="""    .shared .align 128 .b8 copy[128];
    .shared .align 128 .u32 tile[4];
    .shared .align 8 .b64 bar;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [maps];
    ld.param.u64 %rd3, [y];
    mov.u32 %r1, %ctaid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra READ;
    mov.b64 %rd4, map;
    cvta.param.u64 %rd4, %rd4;
    ld.v2.b64 {%rd5, %rd6}, [%rd4];
    st.shared.v2.b64 [copy], {%rd5, %rd6};
    ld.v2.b64 {%rd5, %rd6}, [%rd4+16];
    st.shared.v2.b64 [copy+16], {%rd5, %rd6};
    ld.v2.b64 {%rd5, %rd6}, [%rd4+32];
    st.shared.v2.b64 [copy+32], {%rd5, %rd6};
    ld.v2.b64 {%rd5, %rd6}, [%rd4+48];
    st.shared.v2.b64 [copy+48], {%rd5, %rd6};
    tensormap.replace.tile.global_address.shared::cta.b1024.b64 [copy], %rd3;
    bar.warp.sync -1;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd2], [copy], 128;
    st.release.gpu.global.u32 [%rd1+4], 1;
    ret;
READ:
    ld.acquire.gpu.global.u32 %r2, [%rd1+4];
    setp.eq.u32 %p2, %r2, 0;
    @%p2 bra READ;
    fence.proxy.tensormap::generic.acquire.gpu [%rd2], 128; //acquire
    mbarrier.init.shared.b64 [bar], 1;
    fence.proxy.async.shared::cta; //init
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;
    cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%rd2, {0}], [bar];
L:
    mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0;
    @!%p3 bra L; //copied
    ld.shared.u32 %r4, [tile+4];
    st.global.u32 [%rd1], %r4;
""",
    launch="""grid = [2, 1, 1]
block = [1, 1, 1]
args = [{tensormap="t"}, {buffer="maps"}, {buffer="y"}, {buffer="out"}]
buffers.x.arange = "u32[4]"
buffers.y.fill = {type="u32[4]", value=9}
buffers.maps.zeros = "u64[16]"
buffers.out.zeros = "u32[2]"
tensormaps.t = {buffer="x", type="u32", shape=[4], box=[4]}
""",
    names=("out[0]",), right=(9,), marks=("copied",), idle=("init",),
    parameters=".param .align 64 .b8 map[128], .param .u64 maps, .param .u64 y, " + OUT,
)  # fmt: skip

# Two warps fill a buffer and signal; a third one waits for both.
NAMED_BARRIER = Feature(
    body="""    .shared .align 4 .u32 buf[2];
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    shr.u32 %r2, %r1, 5;
    setp.eq.u32 %p1, %r2, 2;
    @%p1 bra CONSUMER;
    mov.u32 %r3, buf;
    shl.b32 %r4, %r2, 2;
    add.u32 %r3, %r3, %r4;
    add.u32 %r5, %r2, 3;
    st.shared.u32 [%r3], %r5;
    barrier.arrive 1, 96;
    ret;
CONSUMER:
    barrier.sync 1, 96; //sync
    ld.shared.u32 %r6, [buf];
    ld.shared.u32 %r7, [buf+4];
    st.global.u32 [%rd1], %r6;
    st.global.u32 [%rd1+4], %r7;
""",
    launch="""grid = [1, 1, 1]
block = [96, 1, 1]
args = [{buffer="out"}]
buffers.out.zeros = "u32[2]"
""",
    names=("out[0]", "out[1]"), right=(3, 4), marks=("sync",), litmus="threads = [[0, 0], [0, 32], [0, 64]]\n",
)  # fmt: skip

SHAPES = Feature(
    body="""    .shared .align 16 .u32 taddr;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [taddr], 32;
    ld.shared.u32 %r4, [taddr];
    mov.b32 %f0, 5;
    mov.b32 %f1, 0x80007;
    mov.b32 %f2, 9;
    tcgen05.st.sync.aligned.16x64b.x2.b32 [%r4], {%f0, %f2};
    tcgen05.st.sync.aligned.16x128b.x1.unpack::16b.b32 [%r4+16], {%f1, %f1};
    tcgen05.wait::st.sync.aligned; //stored
    tcgen05.ld.sync.aligned.32x32b.x4.b32 {%f3, %f4, %f5, %f6}, [%r4];
    tcgen05.ld.sync.aligned.16x256b.x1.b32 {%f7, %f8, %f9, %f10}, [%r4+16];
    tcgen05.ld.sync.aligned.16x64b.x1.pack::16b.b32 {%f11}, [%r4+16];
    tcgen05.wait::ld.sync.aligned;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r4, 32;
    tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
    @%p1 bra DONE;
    st.global.b32 [%rd1], %f3;
    st.global.b32 [%rd1+4], %f5;
    st.global.b32 [%rd1+8], %f7;
    st.global.b32 [%rd1+12], %f8;
    st.global.b32 [%rd1+16], %f9;
    st.global.b32 [%rd1+20], %f11;
DONE:
""",
    launch='grid = [1, 1, 1]\nblock = [32, 1, 1]\nargs = [{buffer="out"}]\nbuffers.out.zeros = "u32[6]"\n',
    names=tuple(f"out[{at}]" for at in range(6)), right=(5, 9, 7, 8, 7, 0x80007), marks=("stored",),
    target="sm_100a", litmus="threads = [[0, 0]]\n",
)  # fmt: skip

FEATURES = {
    "named barrier": NAMED_BARRIER,
    "tensor copy": TENSOR_COPY, "rounded copy": ROUNDED_COPY, "padded copy": PADDED_COPY, "packed copy": PACKED_COPY,
    "wgmma": PRODUCT,
    "tcgen05": TENSOR_CORE, "wgmma of integers": INTEGERS, "tcgen05 shapes": SHAPES, "multimem": MULTICAST,
    "multimem copies": MULTICAST_BULK, "multimem of 8 bits": MULTICAST_NARROW, "mapa": CLUSTER, "masked copies": MASKED,
    "griddepcontrol": DEPENDENT, "changed map": CHANGED_MAP, **TENSOR_FEATURES, **WARPGROUP_FEATURES,
}  # fmt: skip
