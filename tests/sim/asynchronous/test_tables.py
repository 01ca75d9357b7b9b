"""Tables of the forms of bulk copies and reductions, cp.async, asynchronous stores and changes of tensor maps 9.7.9.12,
9.7.9.13, 9.7.9.25, 9.7.9.26, 9.7.13.7, 9.7.13.16), against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxtools
from tests.rows import rows
from tests.work import HANG

from .test_copies import ENGINES, HEADER, LOAD, POINTERS, TENSOR, WAIT, kernel, launch
from .test_modes import numbers, reduced

GROUP = "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n"
POLICY = "createpolicy.fractional.L2::evict_first.b64 %rd20, 1.0;\n"
NUMBERS = {"b32": "u32", "b64": "u64", "f64": "f64"}


# --- bulk reductions --------------------------------------------------------------------------------------------------

TO_GLOBAL = [
    *[("add", t) for t in ("u32", "s32", "u64", "f32", "f64", "noftz.f16", "noftz.bf16")],
    *[(o, t) for o in ("min", "max") for t in ("u32", "s32", "u64", "s64", "f16", "bf16")],
    ("inc", "u32"), ("dec", "u32"), *[(o, t) for o in ("and", "or", "xor") for t in ("b32", "b64")],
]  # fmt: skip
TO_SHARED = [
    ("add", "u32"), ("add", "s32"), ("add", "u64"), ("min", "u32"), ("min", "s32"), ("max", "u32"), ("max", "s32"),
    ("inc", "u32"), ("dec", "u32"), ("and", "b32"), ("or", "b32"), ("xor", "b32"),
]  # fmt: skip


def operands(type_: str, seed: int) -> Any:
    """256 bytes of a type."""
    if type_ == "f64":
        return np.random.default_rng(seed).normal(size=32)
    plain = NUMBERS.get(type_, type_).removeprefix("noftz.")
    return numbers(plain, 256 // (int(plain.lstrip("usbf")) // 8), seed)


def result(operation: str, type_: str, old: Any, new: Any) -> Any:
    """add.f32 in global memory has no subnormals."""
    if type_ == "f64":
        return (old + new).view(np.uint8)
    plain = {"f32": "f32.ftz", **NUMBERS}.get(type_, type_).removeprefix("noftz.")
    return reduced(operation, plain)(old.view(np.uint8), new.view(np.uint8))


@ENGINES
@rows("hint", ["", ".L2::cache_hint"], share=3)
@rows(("operation", "type_"), TO_GLOBAL)
def test_bulk_reductions_to_global_memory(operation: str, type_: str, hint: str, engine: str) -> None:
    last = ", %rd20" if hint else ""
    body = f"cp.reduce.async.bulk.global.shared::cta.bulk_group{hint}.{operation}.{type_} [%b], [%s], 256{last};\n"
    a, b = operands(type_, 1), operands(type_, 2)
    wanted = result(operation, type_, b, a)
    launch(engine, kernel(POINTERS + POLICY + LOAD + body + GROUP), [a, b])
    np.testing.assert_array_equal(b.view(np.uint8), wanted)


@ENGINES
@rows(("operation", "type_"), TO_SHARED)
def test_bulk_reductions_to_shared_memory(operation: str, type_: str, engine: str) -> None:
    """Both halves of 512 bytes are loaded; the first is reduced into the second."""
    body = (
        LOAD.replace("256", "512")
        + f"""mbarrier.arrive.expect_tx.shared::cta.b64 _, [%mb], 256;
    add.u32 %r9, %s, 256;
    cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{operation}.{type_}
        [%r9], [%s], 256, [%mb];
    {WAIT.format(1)} fence.proxy.async;
    cp.async.bulk.global.shared::cta.bulk_group [%b], [%r9], 256; {GROUP}"""
    )
    a, old = operands(type_, 3), operands(type_, 4)
    b = np.zeros_like(a)
    launch(engine, kernel(POINTERS + body), [np.concatenate([a, old]), b])
    np.testing.assert_array_equal(b.view(np.uint8), result(operation, type_, old, a))


@ENGINES
@pytest.mark.parametrize("mask", [0, 1, 0x8000, 0xFFFF, 0x5A3C])
def test_byte_masks(mask: int, engine: str) -> None:
    body = f"""mov.b16 %h1, {mask};
    cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.cp_mask [%b], [%s], 64, %rd20, %h1;\n"""
    a, b = np.arange(256, dtype=np.uint8), np.full(80, 0xEE, np.uint8)
    launch(engine, kernel(POINTERS + POLICY + LOAD + body + GROUP), [a, b])
    wanted = [a[i] if i < 64 and mask >> i % 16 & 1 else 0xEE for i in range(80)]
    assert b.tolist() == wanted


@ENGINES
def test_prefetches_change_nothing(engine: str) -> None:
    body = """cp.async.bulk.prefetch.L2.global [%a], 256;
    cp.async.bulk.prefetch.L2.global.L2::cache_hint [%a], 256, %rd20;
    cp.async.bulk.prefetch.tensor.1d.L2.global.tile [%b, {0}];
    cp.async.bulk.prefetch.tensor.3d.L2.global.im2col [%b, {0, 0, 0}], {%h1};
    cp.async.bulk.prefetch.tensor.3d.L2.global.im2col::w.L2::cache_hint [%b, {0, 0, 0}], {%h1, %h2}, %rd20;
    cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4 [%b, {0, 0, 1, 2, 3}];
    prefetch.global.L2 [%a]; prefetch.tensormap [%b];\n"""
    a, b = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    launch(engine, kernel(POINTERS + POLICY + body), [a, b])
    assert a.tolist() == list(range(64)) and not b.any()


# --- cp.async ---------------------------------------------------------------------------------------------------------

WAYS = [
    *[("ca", size, f", {n}", n) for size in (4, 8, 16) for n in (0, 1, size - 1, size)],
    *[("cg", 16, f", {n}", n) for n in (0, 5, 16)],
    *[("ca", size, "", size) for size in (4, 8, 16)], ("cg", 16, "", 16),
    ("ca", 8, ", %r5", 3), ("cg", 16, ", %r5", 3),
    ("ca", 4, ", %p1", 0), ("ca", 4, ", !%p1", 4), ("cg", 16, ", %p2", 16), ("cg", 16, ", !%p2", 0),
    ("ca", 4, ", %r6", 4),
]  # fmt: skip


@ENGINES
@rows("checks", ["", "asynccheck"], share=3)
@rows(("cop", "size", "rest", "copied"), WAYS)
def test_sizes_of_cp_async(cop: str, size: int, rest: str, copied: int, checks: str, engine: str) -> None:
    """What is not copied is zero; %p1 is true, %p2 false; a source size of 99 is that of the copy."""
    mods = ".L2::cache_hint.L2::128B" if size == 16 else ""
    policy = ", %rd20" if mods else ""
    body = f"""mov.u32 %r5, 3; mov.u32 %r6, 99; setp.eq.u32 %p1, %r5, 3; setp.ne.u32 %p2, %r5, 3;
    st.shared.v4.b32 [%s], {{-1, -1, -1, -1}}; st.shared.v4.b32 [%s+16], {{-1, -1, -1, -1}};
    cp.async.{cop}.shared.global{mods} [%s], [%a+16], {size}{rest}{policy};
    cp.async.commit_group; cp.async.wait_group 0;
    ld.shared.v4.u32 {{%r1, %r2, %r3, %r4}}, [%s]; st.global.v4.u32 [%b], {{%r1, %r2, %r3, %r4}};\n"""
    a, b = np.arange(1, 65, dtype=np.uint8), np.zeros(16, np.uint8)
    device = ptxtools.Device("sm_100a", engine=engine, checks=checks)
    launch(engine, kernel(POINTERS + POLICY + body), [a, b], device=device)
    assert b.tolist() == [*a[16 : 16 + copied].tolist(), *[0] * (size - copied), *[255] * (16 - size)]


# --- asynchronous stores ----------------------------------------------------------------------------------------------

STORED = [(t, n) for t in ("b32", "u32", "s32", "f32") for n in (1, 2, 4)] + [
    (t, n) for t in ("b64", "u64", "s64", "f64") for n in (1, 2)
]
REDUCED = [("inc", "u32"), ("dec", "u32"), ("min", "u32"), ("min", "s32"), ("max", "u32"), ("max", "s32"),
           ("and", "b32"), ("or", "b32"), ("xor", "b32"), ("add", "u32"), ("add", "s32"), ("add", "u64")]  # fmt: skip


@ENGINES
@rows(("type_", "count"), STORED, share=3)
def test_st_async_to_shared_memory(type_: str, count: int, engine: str) -> None:
    size = int(type_[1:]) // 8
    registers = [f"%r{i + 1}" if size == 4 else f"%rd{i + 1}" for i in range(count)]
    loads = " ".join(f"ld.global.b{8 * size} {r}, [%a+{size * i}];" for i, r in enumerate(registers))
    value = registers[0] if count == 1 else "{" + ", ".join(registers) + "}"
    vec = "" if count == 1 else f".v{count}"
    body = f"""{loads} mbarrier.arrive.expect_tx.shared::cta.b64 _, [%mb], {size * count};
    st.async.shared::cluster.mbarrier::complete_tx::bytes{vec}.{type_} [%s+32], {value}, [%mb];
    {WAIT.format(0)}
    ld.shared.v4.u32 {{%r1, %r2, %r3, %r4}}, [%s+32]; st.global.v4.u32 [%b], {{%r1, %r2, %r3, %r4}};\n"""
    a, b = np.random.default_rng(1).integers(0, 256, 16, np.uint8), np.zeros(16, np.uint8)
    launch(engine, kernel(POINTERS + "st.shared.v4.u32 [%s+32], {0, 0, 0, 0};\n" + body), [a, b])
    assert b.tolist() == [*a[: size * count].tolist(), *[0] * (16 - size * count)]


@ENGINES
@rows("type_", ["b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"])
@rows("mods", [".release.gpu", ".mmio.release.sys"])
def test_st_async_to_global_memory(type_: str, mods: str, engine: str) -> None:
    size = int(type_[1:]) // 8
    register = {1: "%byte", 2: "%h1", 4: "%r1", 8: "%rd1"}[size]
    body = (
        f".reg .b8 %byte; ld.global.b{8 * size} {register}, [%a]; st.async{mods}.global.{type_} [%b+8], {register};\n"
    )
    a, b = np.random.default_rng(1).integers(0, 256, 16, np.uint8), np.zeros(16, np.uint8)
    launch(engine, kernel(POINTERS + body), [a, b])
    assert b.tolist() == [*[0] * 8, *a[:size].tolist(), *[0] * (8 - size)]


@ENGINES
@rows(("operation", "type_"), REDUCED)
def test_red_async(operation: str, type_: str, engine: str) -> None:
    size = int(type_[1:]) // 8
    old, new = (operands(type_, seed)[:4] for seed in (5, 6))
    register = "%r1" if size == 4 else "%rd1"
    lines = "".join(
        f"""ld.global.b{8 * size} {register}, [%a+{size * i}]; st.shared.b{8 * size} [%s+{size * i}], {register};
        ld.global.b{8 * size} {register}, [%a+{size * (4 + i)}];
        red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{operation}.{type_}
            [%s+{size * i}], {register}, [%mb];\n"""
        for i in range(4)
    )
    body = f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%mb], {4 * size};\n{lines}{WAIT.format(0)}"
    out = "".join(
        f"ld.shared.b{8 * size} {register}, [%s+{size * i}]; st.global.b{8 * size} [%b+{size * i}], {register};"
        for i in range(4)
    )
    b = np.zeros(4 * size, np.uint8)
    launch(engine, kernel(POINTERS + body + out), [np.concatenate([old, new]), b])
    np.testing.assert_array_equal(b, result(operation, type_, old, new))


@ENGINES
@pytest.mark.parametrize("type_", ["u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("mods", [".release.gpu", ".mmio.release.sys"])
def test_red_async_to_global_memory(type_: str, mods: str, engine: str) -> None:
    register = "%r1" if type_.endswith("32") else "%rd1"
    size = type_[1:]
    body = f"ld.global.b{size} {register}, [%a]; red.async{mods}.global.add.{type_} [%b], {register};\n" * 3
    a, b = (np.array([x], f"{type_[0].replace('s', 'i')}{int(size) // 8}") for x in (40, 2))
    launch(engine, kernel(POINTERS + body), [a, b])
    assert b[0] == 122


@ENGINES
@pytest.mark.parametrize("size", [0, 8, 120, 1024])
def test_st_bulk(size: int, engine: str) -> None:
    body = (
        LOAD
        + f"""mov.u64 %rd9, {size}; st.bulk.weak.shared::cta [%s+8], %rd9, 0; fence.proxy.async;
    cp.async.bulk.global.shared::cta.bulk_group [%b], [%s], 1040; {GROUP}"""
    )
    a, b = np.full(1040, 7, np.uint8), np.zeros(1040, np.uint8)
    launch(engine, kernel(POINTERS + body.replace("256", "1040")), [a, b])
    assert b.tolist() == [*[7] * 8, *[0] * size, *[7] * (1032 - size)]


# --- CTA pairs --------------------------------------------------------------------------------------------------------


@ENGINES
@pytest.mark.parametrize("seed", [None, 2])
@pytest.mark.parametrize(("signal", "mask"), [(0, 0b1111), (1, 0b1111), (1, 0b0110), (0, 0b1000)])
def test_multicast_of_a_cta_pair(signal: int, mask: int, seed: int | None, engine: str) -> None:
    """Each target gets the tile; its bytes are counted by the CTA of its pair that has the parity of the barrier's."""
    text = f"""{HEADER}.visible .entry k(.param .align 64 .b8 m[128], .param .u64 b) {{
        .reg .pred %p<4>, %q; .reg .b16 %h1; .reg .b32 %r<16>; .reg .b64 %rd<8>;
        .shared .align 128 .b8 tile[128]; .shared .align 8 .b64 bar;
        mov.b64 %rd1, m; cvta.param.u64 %rd1, %rd1; ld.param.u64 %rd2, [b];
        mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, tile; mov.u32 %r3, bar; mov.u32 %r9, %tid.x;
        mad.lo.u32 %r10, %r9, 4, %r2; st.shared.u32 [%r10], 0; fence.proxy.async;
        setp.eq.u32 %p0, %r9, 0; @%p0 mbarrier.init.shared::cta.b64 [%r3], 1; @%p0 fence.mbarrier_init.release.cluster;
        barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
        and.b32 %r4, %r1, 2; mov.u32 %r5, {mask}; shr.b32 %r5, %r5, %r4; and.b32 %r5, %r5, 3; popc.b32 %r5, %r5;
        shl.b32 %r5, %r5, 7; and.b32 %r6, %r1, 1; setp.eq.u32 %p1, %r6, {signal}; selp.u32 %r5, %r5, 0, %p1;
        @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], %r5;
        mapa.shared::cluster.u32 %r7, %r3, {signal}; mov.b16 %h1, {mask};
        setp.eq.u32 %p2, %r1, 0; and.pred %p2, %p2, %p0;
        @%p2 {TENSOR.replace("cta.", "cluster.")}.multicast::cluster.cta_group::2
            [%r2], [%rd1, {{0}}], [%r7], %h1;
        W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %q, [%r3], 0; @!%q bra W;
        barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
        ld.shared.u32 %r8, [%r10]; mad.lo.u32 %r11, %r1, 32, %r9; mul.wide.u32 %rd3, %r11, 4; add.u64 %rd3, %rd3, %rd2;
        st.global.u32 [%rd3], %r8; ret;
    }}"""
    device = ptxtools.Device("sm_100a", engine=engine, seed=seed)
    x, b = np.arange(1, 33, dtype=np.uint32), np.zeros((4, 32), np.uint32)
    map_ = device.tensormap(device.upload(x), type="u32", shape=[32], box=[32])
    device.launch(ptxtools.loads(text)["k"], 4, 32, [map_, b], cluster=4, timeout=HANG)
    for rank in range(4):
        assert (b[rank] == (x if mask >> rank & 1 else 0)).all()


@ENGINES
@pytest.mark.parametrize(("group", "data", "signal", "reason"), [
    ("", 0, 0, ""), ("", 0, 1, "not in the CTA of the destination, CTA rank 0"), ("", 1, 1, ""),
    (".cta_group::1", 1, 0, "not in the CTA of the destination, CTA rank 1"),
    (".cta_group::2", 0, 1, ""), (".cta_group::2", 1, 0, ""), (".cta_group::2", 3, 2, ""),
    (".cta_group::2", 0, 2, "not in the pair of the destination, CTA rank 0"),
])  # fmt: skip
def test_where_the_barrier_of_a_copy_is(group: str, data: int, signal: int, reason: str, engine: str) -> None:
    """CTA 0 copies to one CTA's shared memory, and signals another's barrier; with .cta_group::2 that of its pair."""
    text = f"""{HEADER}.visible .entry k(.param .align 64 .b8 m[128], .param .u64 b) {{
        .reg .pred %p<4>, %q; .reg .b32 %r<16>; .reg .b64 %rd<8>;
        .shared .align 128 .b8 tile[128]; .shared .align 8 .b64 bar;
        mov.b64 %rd1, m; cvta.param.u64 %rd1, %rd1; ld.param.u64 %rd2, [b];
        mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, tile; mov.u32 %r3, bar;
        setp.eq.u32 %p0, %r1, 0; setp.eq.u32 %p1, %r1, {signal}; setp.eq.u32 %p2, %r1, {data};
        mbarrier.init.shared::cta.b64 [%r3], 1; fence.mbarrier_init.release.cluster;
        @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 128;
        barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
        mapa.shared::cluster.u32 %r4, %r2, {data}; mapa.shared::cluster.u32 %r5, %r3, {signal};
        @%p0 {TENSOR.replace("cta.", "cluster.")}{group} [%r4], [%rd1, {{0}}], [%r5];
        @!%p1 bra MEET;
        W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %q, [%r3], 0; @!%q bra W;
        MEET: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
        ld.shared.u32 %r8, [%r2+124]; @%p2 st.global.u32 [%rd2], %r8; ret;
    }}"""
    device = ptxtools.Device("sm_100a", engine=engine)
    x, b = np.arange(32, dtype=np.uint32), np.zeros(1, np.uint32)
    map_ = device.tensormap(device.upload(x), type="u32", shape=[32], box=[32])
    kernel_ = ptxtools.loads(text)["k"]
    if reason:
        with pytest.raises(ptxtools.Trap, match=reason):
            device.launch(kernel_, 4, 1, [map_, b], cluster=4, timeout=HANG)
    else:
        device.launch(kernel_, 4, 1, [map_, b], cluster=4, timeout=HANG)
        assert b[0] == 31


# --- tensor maps ------------------------------------------------------------------------------------------------------

MAP: dict[str, Any] = {"type": "f32", "shape": [64, 32, 8], "strides": [256, 8192], "box": [32, 4, 2],
                       "element_strides": [1, 2, 1], "swizzle": "128B"}  # fmt: skip
#: Instruction's field, place, type and value: the same change of the map.
REPLACED: list[tuple[str, int | None, str, int, dict[str, Any]]] = [
    ("rank", None, "b32", 1, {"shape": [64, 32], "strides": [256], "box": [32, 4], "element_strides": [1, 2]}),
    ("box_dim", 0, "b32", 16, {"box": [16, 4, 2]}), ("box_dim", 2, "b32", 256, {"box": [32, 4, 256]}),
    ("global_dim", 0, "b32", 3, {"shape": [3, 32, 8]}),
    ("global_dim", 1, "b32", 0x7FFFFFFF, {"shape": [64, 0x7FFFFFFF, 8]}),
    ("global_stride", 0, "b64", 0xF_FFFF_FFF0, {"strides": [0xF_FFFF_FFF0, 8192]}),
    ("global_stride", 1, "b64", 16, {"strides": [256, 16]}),
    ("element_stride", 1, "b32", 8, {"element_strides": [1, 8, 1]}),
    ("elemtype", None, "b32", 2, {"type": "u32"}), ("elemtype", None, "b32", 12, {"type": "tf32.ftz"}),
    ("swizzle_mode", None, "b32", 0, {"swizzle": "none"}),
    ("swizzle_atomicity", None, "b32", 1, {"swizzle": "128B_atom_32B"}),
    ("swizzle_atomicity", None, "b32", 3, {"swizzle": "128B_atom_64B"}), ("fill_mode", None, "b32", 1, {"fill": "nan"}),
]  # fmt: skip


@ENGINES
@rows("space", ["shared::cta", "global"])
@rows(("field", "place", "type_", "value", "change"), REPLACED)
def test_each_field_of_a_tensor_map(
    field: str, place: int | None, type_: str, value: int, change: dict[str, Any], space: str, engine: str
) -> None:
    """The map afterwards is the one that the launch makes of the changed values, but for what a lower rank leaves."""
    immediate = field in ("elemtype", "swizzle_mode", "swizzle_atomicity", "fill_mode")
    operand = str(value) if immediate else "%rd9" if type_ == "b64" else "%r9"
    setup = f"mov.{type_} {operand}, {value};" if not immediate else ""
    where = "[%s]" if space == "shared::cta" else "[%a]"
    order = "" if place is None else f"{place}, "
    body = (
        LOAD.replace("256", "128")
        + f"""{setup}
    tensormap.replace.tile.{field}.{space}.b1024.{type_} {where}, {order}{operand};
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%b], [%s], 128;\n"""
    )
    device = ptxtools.Device("sm_100a", engine=engine)
    buffer = device.alloc(1 << 16)
    a = device.upload(np.frombuffer(device.tensormap(buffer, **MAP), np.uint8))
    b = device.upload(np.zeros(128, np.uint8))
    launch(engine, kernel(POINTERS + body), [a, b], device=device)
    got = (b if space == "shared::cta" else a).download()
    wanted = np.frombuffer(device.tensormap(buffer, **(MAP | change)), np.uint8)
    differing = np.flatnonzero(got != wanted)
    if field == "rank":  # sizes, strides and boxes of further dimensions stay, and mean nothing
        assert {0x08} >= {int(x) for x in differing if x < 0x0C}
    else:
        assert not len(differing)


@ENGINES
def test_an_unpublished_swizzle_mode_is_refused(engine: str) -> None:
    """Mode 4 of sm_103a: it would not fit the bits that the field has here, so it is no other mode either."""
    device = ptxtools.Device("sm_103a", engine=engine)
    map_ = device.upload(np.zeros(128, np.uint8))
    body = "tensormap.replace.tile.swizzle_mode.global.b1024.b32 [%a], 4;\n"
    mode4 = kernel(POINTERS + body, version=HEADER.replace("8.7", "8.8").replace("100", "103"))
    with pytest.raises(ptxtools.Trap, match="swizzle mode 4 is not simulated"):
        launch(engine, mode4, [map_, map_], device=device)
    assert not map_.download().any()


@ENGINES
def test_global_address_of_a_tensor_map(engine: str) -> None:
    """A map that points elsewhere after its change, in global memory; copies see it behind the fence of its proxy."""
    body = (
        """mov.u64 %rd8, 16; add.u64 %rd8, %rd8, %a;
    tensormap.replace.tile.global_address.global.b1024.b64 [%b], %rd8;
    fence.proxy.tensormap::generic.release.gpu; fence.proxy.tensormap::generic.acquire.gpu [%b], 128;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%mb], 64;
    cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint
        [%s], [%b, {4}], [%mb], %rd20;"""
        + WAIT.format(0)
        + """
    ld.shared.u32 %r1, [%s]; ld.shared.u32 %r2, [%s+60]; st.global.u32 [%a], %r1; st.global.u32 [%a+4], %r2;"""
    )
    device = ptxtools.Device("sm_100a", engine=engine)
    a = device.upload(np.arange(64, dtype=np.uint32))
    map_ = device.tensormap(device.alloc(256), type="u32", shape=[64], box=[16])
    b = device.upload(np.frombuffer(map_, np.uint8))
    launch(engine, kernel(POINTERS + POLICY + body), [a, b], device=device)
    assert a.download()[:2].tolist() == [8, 23]
