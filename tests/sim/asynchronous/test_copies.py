"""Bulk and tensor copies, asynchronous stores and tensor maps in kernels, on both engines (9.7.9.12 to 9.7.9.26)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxtools
from tests.work import HANG

HEADER = ".version 8.7\n.target sm_100a\n.address_size 64\n"
ENGINES = pytest.mark.parametrize("engine", ["native", "reference"])
Array = np.ndarray[Any, Any]

#: A bulk copy to shared memory.
COPY = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes"
TENSOR = "cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes"

#: Wait until the phase with this parity of the barrier at [%mb] is over.
WAIT = "W{0}: mbarrier.try_wait.parity.shared::cta.b64 %q, [%mb], {0};\n@!%q bra W{0};\n"


def kernel(body: str, params: str = ".param .u64 a, .param .u64 b", version: str = HEADER) -> Any:
    """A kernel whose thread 0 runs the body: %a, %b; %s (tile, 1024-aligned), %mb (initialised for one arrival)."""
    return ptxtools.loads(f"""{version}.visible .entry k({params}) {{
        .reg .pred %p<8>; .reg .pred %q; .reg .b16 %h<8>; .reg .b32 %r<32>; .reg .b64 %rd<32>;
        .reg .b64 %a; .reg .b64 %b; .reg .b32 %s; .reg .b32 %mb;
        .shared .align 1024 .b8 tile[16384]; .shared .align 8 .b64 bar[2];
        mov.u32 %s, tile; mov.u32 %mb, bar; mov.u32 %r0, %tid.x;
        setp.ne.u32 %p0, %r0, 0;
        @%p0 bra DONE;
        mbarrier.init.shared::cta.b64 [%mb], 1;
        fence.mbarrier_init.release.cluster;
        {body}
        DONE: ret;
    }}""")["k"]


def launch(engine: str, k: Any, args: list[Any], **more: Any) -> None:
    device = more.pop("device", None) or ptxtools.Device("sm_100a", engine=engine, seed=more.pop("seed", None))
    device.launch(k, more.pop("grid", 1), more.pop("block", 32), args, timeout=HANG, **more)


POINTERS = "ld.param.u64 %a, [a]; ld.param.u64 %b, [b];\n"
LOAD = """mbarrier.arrive.expect_tx.shared::cta.b64 _, [%mb], 256;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%s], [%a], 256, [%mb];
    """ + WAIT.format(0)


@ENGINES
@pytest.mark.parametrize("seed", [None, 3])
def test_bulk_copies_there_and_back(engine: str, seed: int | None) -> None:
    k = kernel(
        POINTERS
        + LOAD
        + """cp.async.bulk.global.shared::cta.bulk_group [%b+16], [%s], 256;
        cp.async.bulk.commit_group;
        cp.async.bulk.wait_group 0;
        ld.global.u32 %r1, [%b+16]; st.global.u32 [%b], %r1;
        mov.b16 %h1, 0x8005;
        cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%b+512], [%s], 32, %h1;
        cp.async.bulk.commit_group;
        cp.async.bulk.wait_group.read 0;
        """
    )
    a, b = np.arange(256, dtype=np.uint8), np.full(768, 0xEE, np.uint8)
    launch(engine, k, [a, b], seed=seed)
    assert (b[16:272] == a).all() and (b[:4] == a[:4]).all() and (b[4:16] == 0xEE).all()
    copied = [i for i in range(256) if b[512 + i] != 0xEE]
    assert copied == [0, 2, 15, 16, 18, 31] and (b[512:544][[0, 2, 15]] == a[[0, 2, 15]]).all()


@ENGINES
@pytest.mark.parametrize(("suffix", "dtype", "function"), [
    ("add.u32", np.uint32, lambda x, y: x + y), ("max.s64", np.int64, np.maximum),
    ("xor.b64", np.uint64, np.bitwise_xor),
    ("add.f32", np.float32, lambda x, y: x + y), ("add.noftz.f16", np.float16, lambda x, y: x + y),
    ("min.f16", np.float16, np.minimum), ("inc.u32", np.uint32, lambda x, y: np.where(x >= y, 0, x + 1)),
])  # fmt: skip
def test_bulk_reductions(engine: str, suffix: str, dtype: Any, function: Any) -> None:
    operation = f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{suffix} [%b], [%s], 256;"
    k = kernel(POINTERS + LOAD + operation + "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;")
    generator = np.random.default_rng(2)
    a, b = (generator.integers(0, 90, 256 // np.dtype(dtype).itemsize).astype(dtype) for _ in range(2))
    wanted = function(b, a).astype(dtype)
    launch(engine, k, [a, b])
    assert (b == wanted).all()


@ENGINES
def test_st_bulk_and_st_async_to_global_memory(engine: str) -> None:
    k = kernel(
        POINTERS
        + LOAD
        + """st.bulk.weak.shared::cta [%s+64], 24, 0;
        cp.async.bulk.global.shared::cta.bulk_group [%b], [%s], 256;
        cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
        mov.b32 %r1, 7;
        st.async.release.gpu.global.u32 [%b+4], %r1;
        red.async.release.gpu.global.add.u32 [%b+4], %r1;
    """
    )
    a, b = np.arange(64, dtype=np.uint32) + 1, np.zeros(64, np.uint32)
    launch(engine, k, [a, b])
    wanted = a.copy()
    wanted[16:22], wanted[1] = 0, 14
    assert b.tolist() == wanted.tolist()


@ENGINES
@pytest.mark.parametrize("seed", [None, 5])
def test_multicast_and_copies_between_ctas(engine: str, seed: int | None) -> None:
    """Rank 1 sends 128 bytes to ranks 0 and 2, rank 3 copies its own tile to rank 0; each stores what it got."""
    text = f"""{HEADER}.visible .entry k(.param .u64 a, .param .u64 b) {{
        .reg .pred %p<8>; .reg .pred %q; .reg .b16 %h<8>; .reg .b32 %r<32>; .reg .b64 %rd<32>; .reg .b32 %mb;
        .shared .align 1024 .b8 tile[512]; .shared .align 8 .b64 bar[2];
        ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b];
        mov.u32 %mb, bar; mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, tile;
        mbarrier.init.shared::cta.b64 [%mb], 1;
        mad.lo.u32 %r3, %r1, 3, 1; st.shared.u32 [tile+128], %r3;
        barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
        setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r1, 2; setp.eq.u32 %p3, %r1, 1; setp.eq.u32 %p4, %r1, 3;
        @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%mb], 144;
        @%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%mb], 128;
        mov.b16 %h1, 5;
        @%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
            [%r2], [%rd1], 128, [%mb], %h1;
        mapa.shared::cluster.u32 %r4, %r2, 0; mapa.shared::cluster.u32 %r5, %mb, 0;
        @%p4 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r4+256], [%r2+128], 16, [%r5];
        or.pred %p5, %p1, %p2;
        @!%p5 bra OUT;
        {WAIT.format(0)}
        mov.u32 %r6, %ctaid.x; mul.wide.u32 %rd3, %r6, 272; add.u64 %rd3, %rd3, %rd2;
        cp.async.bulk.global.shared::cta.bulk_group [%rd3], [%r2], 272;
        cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
        OUT: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
        ret;
    }}"""
    a, b = np.arange(32, dtype=np.uint32) + 100, np.zeros((4, 68), np.uint32)
    launch(engine, ptxtools.loads(text)["k"], [a, b], grid=4, block=1, cluster=4, seed=seed)
    assert (b[0, :32] == a).all() and (b[2, :32] == a).all() and not b[1].any() and not b[3].any()
    assert b[0, 64] == 10 and b[0, 32] == 1 and b[2, 32] == 7


# --- tensor copies ----------------------------------------------------------------------------------------------------

MAPS = ".param .align 64 .b8 m[128], .param .u64 b"


def tensor_load(rank: int, coordinates: str, size: int, mode: str = "", info: str = "") -> str:
    """Load a tile of `size` bytes through the map m, and store it as it lies in shared memory to b."""
    return f"""ld.param.u64 %b, [b]; mov.b64 %rd1, m; cvta.param.u64 %rd1, %rd1;
        mbarrier.arrive.expect_tx.shared::cta.b64 _, [%mb], {size};
        cp.async.bulk.tensor.{rank}d.shared::cta.global{mode}.mbarrier::complete_tx::bytes
            [%s], [%rd1, {{{coordinates}}}], [%mb]{info};
        {WAIT.format(0)}
        cp.async.bulk.global.shared::cta.bulk_group [%b], [%s], {size};
        cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"""


SWIZZLES = {
    "none": lambda a: a, "32B": lambda a: a ^ (a >> 3 & 0x10), "64B": lambda a: a ^ (a >> 3 & 0x30),
    "128B": lambda a: a ^ (a >> 3 & 0x70), "128B_atom_32B": lambda a: a ^ (a >> 2 & 0x60),
    "128B_atom_64B": lambda a: a ^ (a >> 1 & 0x40),
}  # fmt: skip


@ENGINES
@pytest.mark.parametrize("swizzle", SWIZZLES)
def test_tiles_lie_swizzled_in_shared_memory(engine: str, swizzle: str) -> None:
    span = 64 if swizzle == "none" else int(swizzle[: swizzle.index("B")])
    width = span // 2
    x = np.arange(40 * 128, dtype=np.uint16).reshape(40, 128)
    device = ptxtools.Device("sm_100a", engine=engine)
    map_ = device.tensormap(device.upload(x), type="u16", shape=[128, 40], box=[width, 32], swizzle=swizzle)
    b = np.zeros(32 * span, np.uint8)
    launch(engine, kernel(tensor_load(2, "64, -2", 32 * span), MAPS), [map_, b], device=device)
    tile = np.zeros((32, width), np.uint16)
    part = x[:30, 64 : 64 + width]
    tile[2:, : part.shape[1]] = part
    flat = tile.reshape(-1).view(np.uint8)
    wanted = np.zeros_like(b)
    for address in range(len(b)):
        wanted[SWIZZLES[swizzle](address)] = flat[address]
    assert (b == wanted).all()


@ENGINES
def test_im2col(engine: str) -> None:
    x = np.arange(2 * 6 * 5 * 16, dtype=np.uint8).reshape(2, 6, 5, 16)
    device = ptxtools.Device("sm_100a", engine=engine)
    map_ = device.tensormap(device.upload(x), type="u8", shape=[16, 5, 6, 2], lower_corner=[-1, -1],
                            upper_corner=[-1, -1], channels_per_pixel=16, pixels_per_column=40)  # fmt: skip
    b = np.zeros(640, np.uint8)
    k = kernel("mov.b16 %h1, 2; mov.b16 %h2, 1;" + tensor_load(4, "0, 0, 1, 0", 640, ".im2col", ", {%h1, %h2}"), MAPS)
    launch(engine, k, [map_, b], device=device)
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    columns = [padded[n, h + 1 + 1, w + 1 + 2] for n in range(2) for h in range(-1, 5) for w in range(-1, 4)]
    first = (1 + 1) * 5 + 1
    assert (b.reshape(40, 16) == np.array(columns[first : first + 40])).all()


@ENGINES
def test_a_map_made_by_the_kernel(engine: str) -> None:
    """From zeros in shared memory, field by field, copied to global memory; then used for a store and a reduction."""
    fields = [
        ("global_address", "b64", None, "%b"), ("rank", "b32", None, "%r1"), ("box_dim", "b32", 0, "%r2"),
        ("box_dim", "b32", 1, "%r3"), ("global_dim", "b32", 0, "%r4"), ("global_dim", "b32", 1, "%r5"),
        ("global_stride", "b64", 0, "%rd4"), ("element_stride", "b32", 0, "%r1"), ("element_stride", "b32", 1, "%r1"),
        ("elemtype", "b32", None, "2"), ("interleave_layout", "b32", None, "0"), ("swizzle_mode", "b32", None, "0"),
        ("fill_mode", "b32", None, "0"),
    ]  # fmt: skip
    for version, stride in (("8.7", 48), ("8.4", 3)):
        body = (
            POINTERS
            + LOAD.replace("%a]", "%a+0]")
            + f"""st.shared.v4.u32 [tile+1024], {{0, 0, 0, 0}};
            mov.u32 %r20, 0;
            CLEAR: add.u32 %r21, %r20, %s; st.shared.u32 [%r21+1024], 0;
            add.u32 %r20, %r20, 4; setp.lt.u32 %p1, %r20, 128; @%p1 bra CLEAR;
            mov.u32 %r1, 1; mov.u32 %r2, 8; mov.u32 %r3, 4; mov.u32 %r4, 10; mov.u32 %r5, 6; mov.u64 %rd4, {stride};
            """
        )
        for field, type_, place, value in fields:
            order = "" if place is None else f"{place}, "
            body += f"tensormap.replace.tile.{field}.shared::cta.b1024.{type_} [tile+1024], {order}{value};\n"
        body += """add.u64 %rd5, %a, 256; add.u32 %r9, %s, 1024;
            tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd5], [%r9], 128;
            fence.proxy.tensormap::generic.acquire.gpu [%rd5], 128;
            cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd5, {4, 3}], [%s];
            cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
            cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%rd5, {-2, 4}], [%s];
            cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"""
        target = "sm_90a" if version == "8.4" else "sm_100a"
        body = body if version == "8.7" else body.replace("cp.async.bulk.shared::cta", "cp.async.bulk.shared::cluster")
        k = kernel(body, version=f".version {version}\n.target {target}\n.address_size 64\n")
        a, b = np.arange(128, dtype=np.uint32) + 1, np.zeros((6, 12), np.uint32)
        launch(engine, k, [a, b], device=ptxtools.Device(target, engine=engine))
        tile, wanted = a[:32].reshape(4, 8), np.zeros((6, 12), np.uint32)
        wanted[3:6, 4:10] += tile[:3, :6]
        wanted[4:6, 0:6] += tile[:2, 2:]
        assert (b == wanted).all()


@ENGINES
@pytest.mark.parametrize("where", ["global", "const"])
def test_maps_in_memory(engine: str, where: str) -> None:
    x = np.arange(64, dtype=np.float32).reshape(4, 16)
    device = ptxtools.Device("sm_100a", engine=engine)
    map_ = device.tensormap(device.upload(x), type="f32", shape=[16, 4], box=[16, 4])
    body = tensor_load(2, "0, 0", 256).replace("mov.b64 %rd1, m; cvta.param.u64 %rd1, %rd1;",
                                               f"mov.b64 %rd1, v; cvta.{where}.u64 %rd1, %rd1;")  # fmt: skip
    k = kernel(body, ".param .u64 b", HEADER + f".visible .{where} .align 128 .b8 v[128];\n")
    variable = device.global_(k.module, "v")
    device.write(variable.address, np.frombuffer(map_, np.uint8))
    b = np.zeros(64, np.float32)
    launch(engine, k, [b], device=device)
    assert (b == x.reshape(-1)).all()


# --- what goes wrong --------------------------------------------------------------------------------------------------


@ENGINES
@pytest.mark.parametrize(("operation", "reason"), [
    (f"{COPY} [%s], [%a+8], 32, [%mb];", "not aligned to 16"),
    (f"mov.u32 %r1, 24; {COPY} [%s], [%a], %r1, [%mb];", "multiple of 16"),
    (f"{COPY} [%s+16384], [%a], 32, [%mb];", "shared write of 32"),
    (f"mov.u64 %rd9, 64; {COPY} [%s], [%rd9], 32, [%mb];", "global read of 32 bytes"),
    (f"{TENSOR} [%s], [%a, {{0}}], [%mb];", "not a tensor map"),
    ("mov.u64 %rd9, 12; st.bulk.weak.shared::cta [%s], %rd9, 0;", "multiple of 8"),
])  # fmt: skip
def test_misuse_is_a_trap(engine: str, operation: str, reason: str) -> None:
    a, b = np.zeros(256, np.uint8), np.zeros(256, np.uint8)
    with pytest.raises(ptxtools.Trap, match=reason):
        launch(engine, kernel(POINTERS + operation), [a, b])


@ENGINES
def test_a_deadlock_tells_outstanding_bytes(engine: str) -> None:
    k = kernel(POINTERS + LOAD.replace("_, [%mb], 256", "_, [%mb], 300"))
    with pytest.raises(ptxtools.Trap) as caught:
        launch(engine, k, [np.zeros(64, np.uint32), np.zeros(64, np.uint32)])
    assert caught.value.kind == "deadlock"
    assert "1 of 1 arrivals came, 0 missing, 44 bytes of transactions outstanding" in "\n".join(caught.value.details)


@pytest.mark.parametrize(("change", "reason"), [
    ({"strides": [100]}, "multiples of 16"), ({"box": [16, 300]}, "1 to 256"),
    ({"swizzle": "64C"}, "no swizzle '64C'"),
    ({"type": "f31"}, "no type 'f31'"), ({"boxes": [1]}, "no field 'boxes'"),
    ({"box": [64, 4], "swizzle": "128B"}, "longer"),
    ({"box": [3, 4]}, "multiple of 16"), ({"shape": [0, 4]}, "2\\^32"),
    ({"fill": "nan", "type": "u32"}, "floating-point"),
    ({"lower_corner": [0]}, "either box or lower_corner"), ({"element_strides": [1, 9]}, "1 to 8"),
    ({"interleave": "16B"}, "3 to 5 dimensions"), ({"shape": "ab"}, "tensor map"),
])  # fmt: skip
def test_values_that_make_no_tensor_map(change: dict[str, Any], reason: str) -> None:
    device = ptxtools.Device("sm_100a")
    good = {"type": "f32", "shape": [16, 4], "strides": [64], "box": [16, 4]}
    with pytest.raises(ptxtools.LaunchError, match=reason):
        device.tensormap(device.alloc(256), **(good | change))


STORED_BY_A_WARP = """st.shared.u32 [%w], %r0; fence.proxy.async; bar.warp.sync -1;
    cp.async.bulk.global.shared::cta.bulk_group [%a], [%s], 128;
    cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%m, {0}], [%s];
    cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%b], [%s], 128;
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"""


@ENGINES
def test_a_store_that_all_lanes_make_stores_once(engine: str) -> None:
    """As the epilogues of CUTLASS have it, where one warp issues the store; a reduction is made by each of them."""
    module = ptxtools.loads(f"""{HEADER}.visible .entry k(.param .u64 a, .param .u64 b, .param .align 64 .b8 m[128]) {{
        .reg .b32 %r0, %s, %w; .reg .b64 %a, %b, %m; .shared .align 128 .b8 tile[128];
        ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; mov.b64 %m, m; cvta.param.u64 %m, %m;
        mov.u32 %s, tile; mov.u32 %r0, %tid.x; mad.lo.u32 %w, %r0, 4, %s;
        {STORED_BY_A_WARP}
        ret; }}""")
    device = ptxtools.Device("sm_100a", engine=engine, checks="memcheck,initcheck,asynccheck,racecheck")
    a, b, c = (device.upload(np.zeros(32, np.uint32)) for _ in range(3))
    tensor = device.tensormap(c, type="u32", shape=[32], box=[32])
    result = device.launch(module["k"], 1, 32, [a, b, tensor], timeout=HANG)
    assert not result.reports
    numbers = np.arange(32)
    assert [one.download().tolist() for one in (a, b, c)] == [list(many * numbers) for many in (1, 32, 1)]
