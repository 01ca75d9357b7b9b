"""Kernels with the forms of tcgen05 that work on matrices, for `launches.FEATURES`: copies, shifts, products of all
layouts, scaled, sparse, and of pairs of CTAs."""

from dataclasses import replace

from tests.model.features import OUT, Feature

# Bulk copies bring what the instructions work on; the first thread issues these, waits, and looks at its lane.
_BODY = """    .shared .align 16 .u32 taddr;
    .shared .align 8 .b64 done;
    .shared .align 1024 .b8 a[{size}];
    .shared .align 1024 .b8 c[2048];
    .shared .align 8 .b64 bar;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [data];
    ld.param.u64 %rd7, [more];
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra READY;
    mbarrier.init.shared.b64 [bar], 1;
    mbarrier.init.shared.b64 [done], 1;
    fence.proxy.async.shared::cta; //init
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], {total};
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [a], [%rd2], {size}, [bar];
{further}READY:
    bar.warp.sync -1;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [taddr], 32;
    bar.sync 0;
COPIED:
    mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
    @!%p2 bra COPIED; //copied
    mov.u32 %r2, a;
    mov.u32 %r5, c;
    shr.u32 %r2, %r2, 4;
    shr.u32 %r5, %r5, 4;
    cvt.u64.u32 %rd3, %r2;
    cvt.u64.u32 %rd5, %r5;
    or.b64 %rd3, %rd3, 0x401000080000;
    or.b64 %rd5, %rd5, 0x400800080000;
    add.u64 %rd4, %rd3, 256;
    ld.shared.u32 %r4, [taddr];
    @%p1 bra ISSUED;
    tcgen05.fence::after_thread_sync; //copies
    setp.ne.u32 %p3, %r1, %r1;
{lines}    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];
ISSUED:
    bar.warp.sync -1;
COMPUTED:
    mbarrier.try_wait.parity.shared.b64 %p2, [done], {phase};
    @!%p2 bra COMPUTED; //computed
    tcgen05.fence::after_thread_sync; //after
    tcgen05.ld.sync.aligned.32x32b.x2.b32 {{%f1, %f2}}, [%r4];
    tcgen05.wait::ld.sync.aligned;
    bar.warp.sync -1;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r4, 32;
    tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
    @%p1 bra DONE;
    st.global.b32 [%rd1], %f1;
    st.global.b32 [%rd1+4], %f2;
DONE:
"""
_LAUNCH = """grid = [1, 1, 1]
block = [32, 1, 1]
args = [{{buffer="data"}}, {{buffer="more"}}, {{buffer="out"}}]
buffers.out.zeros = "u32[2]"
buffers.data.{data}
buffers.more.fill = {{type="u8[2048]", value={more}}}
"""
_PARAMETERS = ".param .u64 data, .param .u64 more, " + OUT
_HALVES = 'fill = {type="u16[3072]", value=15360}'  # 1.0 in f16
_FURTHER = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [c], [%rd7], 2048, [bar];"


def _feature(lines, right, *, data=_HALVES, size=256, more=0, phase=0, marks=("copied", "copies", "computed", "after")):
    """size: bytes of B, which lies behind A; more: what the bytes of `c` are."""
    text = "".join(f"    {line}\n" for line in lines)
    body = _BODY.format(lines=text, size=4096 + size, total=4096 + size + 2048 * bool(more), phase=phase,
                        further=f"    {_FURTHER}\n" if more else "")  # fmt: skip
    return Feature(body=body, launch=_LAUNCH.format(data=data, more=more), names=("out[0]", "out[1]"), right=right,
                   marks=marks, parameters=_PARAMETERS, target="sm_100a", litmus="threads = [[0, 0]]\n")  # fmt: skip


_COUNTED = 'arange = "u32[1536]"'
_WAIT = (
    "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];", "BETWEEN:",
    "mbarrier.try_wait.parity.shared.b64 %p2, [done], 0;", "@!%p2 bra BETWEEN;",
    "tcgen05.fence::after_thread_sync;",
)  # fmt: skip
_COPY = "tcgen05.cp.cta_group::1.128x256b [%r4], %rd3;"
_MMA = "tcgen05.mma.cta_group::1.kind::f16 [%r4], %rd3, %rd4, {}, %p3;"

# Row r of a is in bytes 16 * (r % 8) + 256 * (r // 8), four words of it.
COPY = _feature((_COPY,), (0, 1), data=_COUNTED)
SHIFT = _feature((_COPY, *_WAIT, "tcgen05.shift.cta_group::1.down [%r4];"), (4, 5), data=_COUNTED, phase=1,
                 marks=("copied", "computed", "after"))  # fmt: skip
HALF = _feature((_MMA.format("0x4020010"),), (0x41800000, 0x41800000))
# Lane 0 is left as it is, lane 8 is not.
DISABLED = _feature(
    ("mov.b32 %r8, 1;", "mov.b32 %r9, 0;",
     "tcgen05.mma.cta_group::1.kind::f16 [%r4], %rd3, %rd4, 0x8020010, {%r8, %r9, %r9, %r9}, %p3;"), (0, 0x41800000),
)  # fmt: skip
DISABLED = replace(
    DISABLED, body=DISABLED.body.replace("32x32b.x2.b32 {%f1, %f2}", "16x256b.x1.b32 {%f1, %f3, %f2, %f4}")
)
IN_TENSOR_MEMORY = _feature(
    ("tcgen05.cp.cta_group::1.128x256b [%r4+16], %rd3;",
     "tcgen05.mma.cta_group::1.kind::f16 [%r4], [%r4+16], %rd4, 0x8020010, %p3;"), (0x41800000, 0x41800000),
)  # fmt: skip
STATIONARY = _feature(
    ("tcgen05.mma.ws.cta_group::1.kind::f16 [%r4], %rd3, %rd4, 0x2100010, %p3;",), (0x41800000, 0x41800000), size=2048,
)  # fmt: skip
# e4m3 and scales of 2: 32 products of 1, times 2 times 2.
SCALED = _feature(
    ("tcgen05.cp.cta_group::1.32x128b.warpx4 [%r4+16], %rd5;", "tcgen05.cp.cta_group::1.32x128b.warpx4 [%r4+20], %rd5;",
     "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X [%r4], %rd3, %rd4, 0x8820000, [%r4+16],"
     " [%r4+20], %p3;"),
    (0x43000000, 0x43000000), data='fill = {type="u16[3072]", value=14392}', more=128,
)  # fmt: skip
SPARSE = _feature(
    ("tcgen05.cp.cta_group::1.128x128b [%r4+16], %rd5;",
     "tcgen05.mma.sp.cta_group::1.kind::f16 [%r4], %rd3, %rd4, [%r4+16], 0x8020014, %p3;"),
    (0x41800000, 0x41800000), size=512, more=0x44,
)  # fmt: skip

PAIR = Feature(
    body="""    .shared .align 16 .u32 taddr;
    .shared .align 8 .b64 done;
    .shared .align 1024 .b8 a[4352];
    .shared .align 8 .b64 bar;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [data];
    mov.u32 %r1, %tid.x;
    mov.u32 %r6, %cluster_ctarank;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra READY;
    mbarrier.init.shared.b64 [bar], 1;
    mbarrier.init.shared.b64 [done], 1;
    fence.proxy.async.shared::cta;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 4352;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [a], [%rd2], 4352, [bar];
READY:
    bar.warp.sync -1;
    tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [taddr], 32;
COPIED:
    mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
    @!%p2 bra COPIED;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    mov.u32 %r2, a;
    shr.u32 %r2, %r2, 4;
    cvt.u64.u32 %rd3, %r2;
    or.b64 %rd3, %rd3, 0x401000080000;
    add.u64 %rd4, %rd3, 256;
    ld.shared.u32 %r4, [taddr];
    or.b32 %r7, %r1, %r6;
    setp.ne.u32 %p4, %r7, 0;
    @%p4 bra ISSUED;
    fence.proxy.async; //proxy
    tcgen05.fence::after_thread_sync;
    setp.ne.u32 %p3, %r1, %r1;
    tcgen05.mma.cta_group::2.kind::f16 [%r4], %rd3, %rd4, 0x10040010, %p3;
    mov.u16 %h1, 3;
    tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [done], %h1;
ISSUED:
    bar.warp.sync -1;
COMPUTED:
    mbarrier.try_wait.parity.acquire.cluster.shared.b64 %p2, [done], 0;
    @!%p2 bra COMPUTED; //computed
    tcgen05.fence::after_thread_sync;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%f1}, [%r4];
    tcgen05.wait::ld.sync.aligned;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r4, 32;
    tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
    @%p1 bra DONE;
    mul.wide.u32 %rd5, %r6, 4;
    add.u64 %rd1, %rd1, %rd5;
    st.global.b32 [%rd1], %f1;
DONE:
""",
    launch="""grid = [2, 1, 1]
block = [32, 1, 1]
cluster = [2, 1, 1]
args = [{buffer="data"}, {buffer="out"}]
buffers.out.zeros = "u32[2]"
buffers.data.fill = {type="u16[2176]", value=15360}
""",
    names=("out[0]", "out[1]"), right=(0x41800000, 0x41800000), marks=("proxy", "computed"),
    parameters=".param .u64 data, " + OUT, target="sm_100a", litmus="threads = [[0, 0], [1, 0]]\n",
)  # fmt: skip

# Threads 16 to 31 have columns further on, of the same lanes.
TWO_HALVES = Feature(
    body="""    .shared .align 16 .u32 taddr;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
    setp.ne.u32 %p2, %r1, 16;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [taddr], 32;
    bar.warp.sync -1;
    ld.shared.u32 %r4, [taddr];
    add.u32 %f0, %r1, 5;
    tcgen05.st.sync.aligned.16x32bx2.x1.b32 [%r4], 4, {%f0};
    tcgen05.wait::st.sync.aligned; //stored
    tcgen05.fence::before_thread_sync;
    bar.warp.sync -1;
    tcgen05.fence::after_thread_sync;
    tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%f6}, [%r4], 4;
    tcgen05.ld.sync.aligned.32x32b.x8.b32 {%f1, %f2, %f3, %f4, %f5, %f7, %f8, %f9}, [%r4];
    tcgen05.wait::ld.sync.aligned;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r4, 32;
    tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
    @!%p1 st.global.b32 [%rd1], %f1;
    @!%p1 st.global.b32 [%rd1+4], %f5;
    @!%p2 st.global.b32 [%rd1+8], %f6;
""",
    launch='grid = [1, 1, 1]\nblock = [32, 1, 1]\nargs = [{buffer="out"}]\nbuffers.out.zeros = "u32[3]"\n',
    names=("out[0]", "out[1]", "out[2]"), right=(5, 21, 21), marks=("stored",), target="sm_100a",
    litmus="threads = [[0, 0], [0, 16]]\n",
)  # fmt: skip

TENSOR_FEATURES = {
    "tcgen05.cp": COPY, "tcgen05.shift": SHIFT, "M of 64": HALF, "disabled lanes": DISABLED,
    "A in tensor memory": IN_TENSOR_MEMORY,
    "weight stationary": STATIONARY, "block scales": SCALED, "sparse A": SPARSE, "pair of CTAs": PAIR,
    "16x32bx2": TWO_HALVES,
}  # fmt: skip
