"""Products of warpgroups with a factor in registers, and sparse ones, for `launches.FEATURES`: the threads of one row
hold a part of A, and metadata, together."""

from tests.model.features import OUT, Feature


def _product(shape, types, first, *, held=False, sparse=False, right=(), factors="arange = 'u16[2048]'"):
    """A product of which the test has four threads from `first` on; the second one of them
    stores its part of D."""
    results = ", ".join(f"%f{at}" for at in range(len(right)))
    integers = types.startswith("s32")
    layouts = "" if integers else ", 1, 1" if types.endswith("tf32") else ", 1, 1, 0" if held else ", 1, 1, 0, 0"
    name = f"wgmma.mma_async{'.sp' if sparse else ''}.sync.aligned.{shape}.{types}"
    factor, metadata = "{%r10, %r11, %r12, %r13}" if held else "%rd3", ", %r14, 0" if sparse else ""
    return Feature(
        body=f"""    .shared .align 1024 .b8 a[4096];
    .shared .align 1024 .b8 b[1024];
    .shared .align 8 .b64 bar;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [factors];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd5, %r1, 16;
    add.u64 %rd5, %rd2, %rd5;
    ld.global.v4.u32 {{%r10, %r11, %r12, %r13}}, [%rd5];
    mov.u32 %r14, 0x4e4e4e4e;
    setp.ne.u32 %p1, %r1, {first};
    @%p1 bra READY;
    mbarrier.init.shared.b64 [bar], 1;
    fence.proxy.async.shared::cta;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 5120;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [a], [%rd2], 4096, [bar];
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [b], [%rd2], 1024, [bar];
COPIED:
    mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
    @!%p2 bra COPIED; //copied
READY:
    bar.sync 0;
    mov.u32 %r2, a;
    mov.u32 %r3, b;
    shr.u32 %r2, %r2, 4;
    shr.u32 %r3, %r3, 4;
    cvt.u64.u32 %rd3, %r2;
    cvt.u64.u32 %rd4, %r3;
    or.b64 %rd3, %rd3, 0x1000080000;
    or.b64 %rd4, %rd4, 0x1000080000;
    setp.ne.u32 %p3, %r1, %r1;
    wgmma.fence.sync.aligned;
    {name} {{{results}}}, {factor}, %rd4{metadata}, %p3{layouts};
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    setp.ne.u32 %p4, %r1, {first + 1};
    @%p4 bra DONE;
"""
        + "".join(f"    st.global.b32 [%rd1+{4 * at}], %f{at};\n" for at in range(len(right)))
        + "DONE:\n",
        launch=f"""grid = [1, 1, 1]
block = [128, 1, 1]
args = [{{buffer="factors"}}, {{buffer="out"}}]
buffers.factors.{factors}
buffers.out.zeros = "u32[{len(right)}]"
""",
        names=tuple(f"out[{at}]" for at in range(len(right))), right=right, marks=("copied",),
        parameters=".param .u64 factors, " + OUT,
        litmus=f"threads = {[[0, first + at] for at in range(4)]}\n",
    )  # fmt: skip


_BYTES, _HALVES, _WORDS = ("arange = 'u8[4096]'", "fill = {type='u16[2048]', value=15360}",
                           "fill = {type='u32[1024]', value=1065353216}")  # fmt: skip
WARPGROUP_FEATURES = {
    "wgmma of registers": _product(
        "m64n8k16", "f32.f16.f16", 36, held=True, right=(812956672, 814564864, 813062144, 814625792)
    ),
    "wgmma of halves": _product("m64n8k16", "f16.f16.f16", 4, held=True, right=(0x4C004C00,) * 2, factors=_HALVES),
    "wgmma of bytes": _product(
        "m64n8k32", "s32.s8.s8", 100, held=True, factors=_BYTES, right=(4294888400, 4294936272, 4294885264, 4294935184)
    ),
    "sparse wgmma": _product(
        "m64n8k32", "f32.f16.f16", 8, sparse=True, right=(805039104, 805594624, 817003264, 817738496)
    ),
    "sparse wgmma of registers": _product(
        "m64n8k64", "s32.s8.s8", 64, held=True, sparse=True, factors=_BYTES,
        right=(4294912464, 4294927568, 4294909328, 4294926480),
    ),
    "sparse wgmma of words": _product(
        "m64n8k16", "f32.tf32.tf32", 44, held=True, sparse=True, right=(0x41000000,) * 4, factors=_WORDS
    ),
}  # fmt: skip
