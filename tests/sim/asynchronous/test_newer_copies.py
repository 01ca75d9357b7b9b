"""What PTX 9.1 to 9.4 added to bulk copies and asynchronous stores, on both engines (9.7.9.12, 9.7.9.25)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxtools

from .test_copies import ENGINES, LOAD, POINTERS, WAIT, kernel, launch

HEADER = ".version 9.3\n.target sm_100a\n.address_size 64\n"
GROUP = "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"


def bytes_of(count: int, seed: int = 1) -> Any:
    return np.random.default_rng(seed).integers(0, 256, count).astype(np.uint8)


@ENGINES
@pytest.mark.parametrize("order", [".weak", ".relaxed.gpu", ".relaxed.cta"])
def test_copies_with_an_order(engine: str, order: str) -> None:
    """The order of a copy's accesses changes nothing about what arrives."""
    typed = ".b128" if "relaxed" in order else ""
    k = kernel(
        POINTERS
        + "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%mb], 64;\n"
        + f"cp.async.bulk{order}.shared::cta.global.mbarrier::complete_tx::bytes{typed} [%s], [%a], 64, [%mb];\n"
        + WAIT.format(0)
        + f"cp.async.bulk{order}.global.shared::cta.bulk_group{typed} [%b], [%s], 64; {GROUP}",
        version=HEADER,
    )
    a, b = bytes_of(64), np.zeros(64, np.uint8)
    launch(engine, k, [a, b])
    assert b.tolist() == a.tolist()


@ENGINES
def test_reductions_with_an_order(engine: str) -> None:
    line = "cp.reduce.async.bulk.relaxed.sys.global.shared::cta.bulk_group.add.u32 [%b], [%s], 256;"
    a, b = np.arange(64, dtype=np.uint32), np.full(64, 7, np.uint32)
    launch(engine, kernel(POINTERS + LOAD + line + GROUP, version=HEADER), [a, b])
    assert b.tolist() == [n + 7 for n in range(64)]


IGNORING = (
    POINTERS
    + "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%mb], 48;\n"
    + "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [%s], [%a{}], 48, {}, {}, [%mb];\n"
    + WAIT.format(0)
    + f"cp.async.bulk.global.shared::cta.bulk_group [%b], [%s], 48; {GROUP}"
)


@ENGINES
def test_what_lies_outside_is_not_read(engine: str) -> None:
    """The last 15 bytes of 48 may be missing from the buffer; the 33 others arrive."""
    a, b = bytes_of(33), np.zeros(48, np.uint8)
    launch(engine, kernel(IGNORING.format("", 0, 15), version=HEADER), [a, b])
    assert b[:33].tolist() == a.tolist()
    a, b = bytes_of(64), np.zeros(48, np.uint8)
    launch(engine, kernel(IGNORING.format("+16", 5, 1), version=HEADER), [a, b])
    assert b[5:47].tolist() == a[21:63].tolist()


@ENGINES
def test_too_much_to_ignore_is_a_trap(engine: str) -> None:
    body = "mov.u32 %r1, 16;" + IGNORING.format("", "%r1", 0)
    with pytest.raises(ptxtools.Trap, match="ignores 16 at its begin and 0 at its end"):
        launch(engine, kernel(body, version=HEADER), [bytes_of(64), np.zeros(48, np.uint8)])


@ENGINES
def test_a_store_of_16_bytes_in_one_register(engine: str) -> None:
    body = """.reg .b128 %q1; mov.b64 %rd1, 0x1122334455667788; mov.b64 %rd2, 0x99AABBCCDDEEFF00;
    mov.b128 %q1, {%rd1, %rd2};
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%mb], 16;
    st.async.shared::cluster.mbarrier::complete_tx::bytes.b128 [%s], %q1, [%mb];
    """
    b = np.zeros(2, np.uint64)
    load = "ld.shared.v2.u64 {%rd3, %rd4}, [%s]; st.global.v2.u64 [%b], {%rd3, %rd4};"
    launch(engine, kernel(POINTERS + body + WAIT.format(0) + load, version=HEADER), [b, b])
    assert b.tolist() == [0x1122334455667788, 0x99AABBCCDDEEFF00]


@ENGINES
@pytest.mark.parametrize(("modifier", "kept"), [("", False), (".noftz", True)])
def test_subnormals_of_sums(engine: str, modifier: str, kept: bool) -> None:
    """In global memory add.f32 flushes subnormals; .noftz keeps them, in atomics and in bulk reductions."""
    line = f"""cp.reduce.async.bulk.global.shared::cta.bulk_group.add{modifier}.f32 [%b], [%s], 256;{GROUP}
    mov.b32 %r1, 3; atom.global.add{modifier}.f32 %r2, [%b], %r1; red.global.add{modifier}.f32 [%b+4], %r1;"""
    k = kernel(POINTERS + LOAD + line.replace("%r1", "%f1").replace("%r2", "%f2").replace(
        "mov.b32", ".reg .f32 %f<3>; mov.b32"), version=HEADER.replace("9.3", "9.4"))  # fmt: skip
    a, b = np.full(64, 5, np.uint32).view(np.float32), np.full(64, 7, np.uint32).view(np.float32)
    launch(engine, k, [a, b])
    assert b.view(np.uint32).tolist() == ([15, 15, *[12] * 62] if kept else [0] * 64)


# --- to several devices -----------------------------------------------------------------------------------------------


def to_all(engine: str, operation: str, source: Any, targets: list[Any]) -> list[Any]:
    """The buffers of a multicast object (%b) after an operation on it; the source lies at %s."""
    device = ptxtools.Device("sm_100a", engine=engine)
    buffers = [device.upload(target) for target in targets]
    k = kernel(POINTERS + LOAD.replace("256", str(source.nbytes)) + operation + GROUP, version=HEADER)
    launch(engine, k, [source, device.multicast(buffers)], device=device)
    return [buffer.download() for buffer in buffers]


@ENGINES
@pytest.mark.parametrize("order", ["", ".weak", ".relaxed.sys"])
def test_a_copy_to_all_devices(engine: str, order: str) -> None:
    typed = ".b128" if "relaxed" in order else ""
    a = bytes_of(64)
    line = f"multimem.cp.async.bulk{order}.global.shared::cta.bulk_group{typed} [%b], [%s], 64;"
    assert [got.tolist() for got in to_all(engine, line, a, [bytes_of(64, 2), bytes_of(64, 3)])] == [a.tolist()] * 2
    line = "mov.b16 %h1, 0x8005; multimem.cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%b], [%s], 64, %h1;"
    before = [bytes_of(64, 2), bytes_of(64, 3)]
    for got, old in zip(to_all(engine, line, a, before), before, strict=True):
        assert got.tolist() == [int(a[i] if i % 16 in (0, 2, 15) else old[i]) for i in range(64)]


@ENGINES
@pytest.mark.parametrize(("suffix", "dtype", "function"), [
    ("add.u32", np.uint32, np.add), ("add.f64", np.float64, np.add), ("add.noftz.f16", np.float16, np.add),
    ("max.s64", np.int64, np.maximum), ("min.f16", np.float16, np.minimum), ("xor.b64", np.uint64, np.bitwise_xor),
    ("inc.u32", np.uint32, lambda x, y: np.where(x >= y, 0, x + 1)),
])  # fmt: skip
def test_a_reduction_into_all_devices(engine: str, suffix: str, dtype: Any, function: Any) -> None:
    rng = np.random.default_rng(4)
    a, *before = (rng.integers(0, 90, 256 // np.dtype(dtype).itemsize).astype(dtype) for _ in range(3))
    line = f"multimem.cp.reduce.async.bulk.global.shared::cta.bulk_group.{suffix} [%b], [%s], 256;"
    for got, old in zip(to_all(engine, line, a, before), before, strict=True):
        assert got.view(dtype).tolist() == function(old, a).astype(dtype).tolist()


@ENGINES
def test_asynchronous_stores_to_all_devices(engine: str) -> None:
    lines = """mov.u32 %r1, 7; mov.u64 %rd1, 3;
    multimem.st.async.release.sys.global.u32 [%b+4], %r1;
    multimem.red.async.release.gpu.global.add.u32 [%b+4], %r1;
    multimem.red.async.release.sys.global.add.u64 [%b+8], %rd1;
    """
    before = [np.array([1, 2, 3, 4], np.uint32), np.array([5, 6, 7, 8], np.uint32)]
    found = to_all(engine, lines, bytes_of(16), before)
    assert [got.tolist() for got in found] == [[1, 14, 6, 4], [5, 14, 10, 8]]


@ENGINES
def test_a_plain_address_is_no_multicast_address(engine: str) -> None:
    line = "multimem.cp.async.bulk.global.shared::cta.bulk_group [%b], [%s], 64;"
    with pytest.raises(ptxtools.Trap, match="is not a multicast address"):
        launch(engine, kernel(POINTERS + LOAD + line + GROUP, version=HEADER), [bytes_of(256), bytes_of(256)])


# --- loads and stores -------------------------------------------------------------------------------------------------


@ENGINES
def test_volatile_local_and_ordered_mmio(engine: str) -> None:
    body = """.local .align 4 .b32 own[2]; mov.u32 %r1, 41;
    st.volatile.local.u32 [own+4], %r1; ld.volatile.local.u32 %r2, [own+4]; add.u32 %r2, %r2, 1;
    st.mmio.release.sys.global.u32 [%b], %r2; ld.mmio.acquire.sys.global.u32 %r3, [%b]; st.global.u32 [%b+4], %r3;"""
    b = np.zeros(2, np.uint32)
    launch(engine, kernel(POINTERS + body, version=HEADER), [b, b])
    assert b.tolist() == [42, 42]


@ENGINES
def test_loads_of_what_nobody_writes(engine: str) -> None:
    body = """prefetch.global.L1::32B.valid_addr [%a]; ld.global.v2.u32.proxy::readonly {%r1, %r2}, [%a];
    ld.u16.proxy::readonly %r3, [%a+8]; st.global.v2.u32 [%b], {%r1, %r2}; st.global.u32 [%b+8], %r3;"""
    a, b = np.array([5, 6, 0x50007], np.uint32), np.zeros(3, np.uint32)
    launch(engine, kernel(POINTERS + body, version=HEADER.replace("9.3", "9.4")), [a, b])
    assert b.tolist() == [5, 6, 7]


# --- values in place of those of a tensor map (9.7.10.28.5.2 of PTX 9.4) ----------------------------------------------

RUBIN = ".version 9.4\n.target sm_107a\n.address_size 64\n"
OTHER = "ld.param.u64 %rd1, [b]; ld.param.u64 %rd2, [c];\n"
PARAMS = ".param .align 64 .b8 m[128], .param .u64 b, .param .u64 c"
MAP = "mov.u64 %rd0, m; cvta.param.u64 %rd0, %rd0;\n"
WITHIN = "cp.async.bulk.tensor.{}d.shared::cta.global.tile.mbarrier::complete_tx::bytes"
BACK = f"cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%s], {{}}; {GROUP}"
ARRIVE = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%mb], {};\n"


def overridden(engine: str, body: str, map_: bytes, out: Any, other: Any) -> None:
    device = ptxtools.Device("sm_107a", engine=engine)
    launch(engine, kernel(MAP + OTHER + body, PARAMS, version=RUBIN), [map_, out, other], device=device)


def map_of(shape: list[int], box: list[int]) -> bytes:
    device = ptxtools.Device("sm_107a")
    made: bytes = device.tensormap(device.alloc(4096), type="f32", shape=shape, box=box)
    return made


@ENGINES
@pytest.mark.parametrize("report", ["", ".mbarrier::report::disabled"])
def test_another_address(engine: str, report: str) -> None:
    """Coordinates and boxes are those of the map, elements those at the address."""
    x, out = np.arange(64, dtype=np.float32).reshape(8, 8), np.zeros((2, 4), np.float32)
    body = ARRIVE.format(32) + (
        f"{WITHIN.format(2)}{report}.override::global_address [%s], [%rd0, %rd2, {{4, 3}}], [%mb];\n"
    ) + WAIT.format(0) + BACK.format(32)  # fmt: skip
    overridden(engine, body, map_of([8, 8], [4, 2]), out, x)
    assert out.tolist() == x[3:5, 4:8].tolist()


@ENGINES
@pytest.mark.parametrize("register", ["b8", "b16"])
def test_other_dimensions_and_strides(engine: str, register: str) -> None:
    """A tensor of 3 x 2 x 5 in memory, where the map has 8 x 8 x 8: what is outside reads as zero."""
    x = np.arange(1, 513, dtype=np.float32)
    out = np.zeros((4, 4, 4), np.float32)
    body = (
        f".reg .{register} %n<3>; .reg .b8 %w<3>; mov.b32 %r1, 0x0203; mov.b16 %h1, 0x1105; mov.b16 %h2, 3;\n"
        + ("mov.b16 %n0, %h2; mov.b16 %n1, 2; mov.b16 %n2, %h1;\n" if register == "b16" else
           "cvt.u8.u16 %n0, %h2; cvt.u8.u16 %n1, 2; cvt.u8.u16 %n2, %h1;\n")
        + ARRIVE.format(256)
        + f"{WITHIN.format(3)}.override::global_address.override::global_dim_stride "
        "[%s], [%rd0, %rd2, {%n0, %n1, %n2}, {%r2, %r3}, %h4, {0, 0, 0}], [%mb];\n"
        + WAIT.format(0) + BACK.format(256)
    )  # fmt: skip
    body = "mov.u32 %r2, 2; mov.u32 %r3, 6; mov.b16 %h4, 0;\n" + body  # 32 and 96 bytes
    overridden(engine, body, map_of([8, 8, 8], [4, 4, 4]), out, x)
    for z, y, c in np.ndindex(4, 4, 4):
        inside = c < 3 and y < 2 and z < 5
        assert out[z, y, c] == (x[c + 8 * y + 24 * z] if inside else 0), (z, y, c)


@ENGINES
def test_stores_and_sums_at_another_address(engine: str) -> None:
    y, out = np.ones(16, np.float32), np.zeros(4, np.float32)
    body = (
        "mov.b32 %r1, 0f40400000; st.shared.v4.b32 [%s], {%r1, %r1, %r1, %r1}; fence.proxy.async;\n"
        "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group.override::global_address"
        f" [%rd0, %rd2, {{4}}], [%s]; {GROUP}\n"
        "mov.b16 %h1, 2; cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group.override::global_address"
        f".override::global_dim [%rd0, %rd2, {{%h1}}, {{0}}], [%s]; {GROUP}"
    )
    overridden(engine, body, map_of([16], [4]), out, y)
    assert y.tolist() == [3, 3, 1, 1, 4, 4, 4, 4] + [1] * 8


@ENGINES
@pytest.mark.parametrize(
    ("operands", "says"),
    [
        ("%rd3, {0}", "is no multiple of 16"),
        ("%rd2, {%h1}, {4}", "all coordinates must be zero"),
    ],
)
def test_wrong_values_in_place_of_the_maps(engine: str, operands: str, says: str) -> None:
    more = ".override::global_dim" if "%h1" in operands else ""
    body = (
        f"add.u64 %rd3, %rd2, 8; mov.b16 %h1, 4;\n{WITHIN.format(1)}.override::global_address{more} "
        f"[%s], [%rd0, {operands}], [%mb];"
    )
    with pytest.raises(ptxtools.Trap, match=says):
        overridden(engine, body, map_of([16], [4]), np.zeros(4, np.float32), np.zeros(16, np.float32))
