"""tcgen05.ld, st, cp, shift and allocation from end to end."""

from __future__ import annotations

import numpy as np
import pytest

from ptxtools.diagnostics import Trap
from ptxtools.isa import resolve
from ptxtools.sim.tensor.memory import TensorMemory
from ptxtools.sim.tensor.transfer import reduced

from . import kernels, places

NO_BYTES = np.zeros((1, 2048), np.uint8)


def random_cells(ctas: int = 1, columns: int = 64) -> np.ndarray:
    return np.random.default_rng(columns).integers(0, 1 << 32, (ctas, 128, columns), dtype=np.uint32)


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_stores_and_loads_by_all_warps(engine: str) -> None:
    cells = random_cells()
    np.testing.assert_array_equal(kernels.tcgen05("", NO_BYTES, cells, columns=64, engine=engine), cells)


def movement(body: str, count: int, block: int = 32, **options: object) -> np.ndarray:
    """One warp stores {a}, its thread number + 100 * the register, and loads into {b}; registers x 32."""
    a = "{" + ", ".join(f"%a{i}" for i in range(count)) + "}"
    b = "{" + ", ".join(f"%b{i}" for i in range(count)) + "}"
    fills = "\n".join(f"    mad.lo.u32 %a{i}, 100, {i}, %r0;" for i in range(count))
    stores = "\n".join(f"    st.global.u32 [%rd0+{4 * i}], %b{i};" for i in range(count))
    text = f"""
.func other() {{ tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned; ret; }}
.visible .entry k(.param .u64 out) {{
    .reg .b32 %r<4>, %a<{count}>, %b<{count}>, %t, %red; .reg .b64 %rd<2>;
    .shared .align 4 .b32 place;
    mov.u32 %r0, %tid.x;
    ld.param.u64 %rd0, [out];
    mad.wide.u32 %rd0, %r0, {4 * count}, %rd0;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 64;
    bar.sync 0;
    ld.shared.u32 %t, [place];
{fills}
{body.replace("{a}", a).replace("{b}", b)}
    tcgen05.wait::ld.sync.aligned;
{stores}
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, 64;
    ret;
}}
"""
    out = np.zeros((32, count), np.uint32)
    kernels.run(text, block, [out], target="sm_103a", **options)
    return out.T


@pytest.mark.parametrize(("shape", "repeats", "count"), [
    ("32x32b", 4, 4), ("16x64b", 4, 4), ("16x128b", 2, 4), ("16x256b", 1, 4), ("16x256b", 4, 16),
])  # fmt: skip
@pytest.mark.parametrize("lane", [0, 16])
def test_what_is_stored_is_loaded(shape: str, repeats: int, count: int, lane: int) -> None:
    if shape == "32x32b" and lane:
        return
    at = lane << 16
    found = movement(
        f"    tcgen05.st.sync.aligned.{shape}.x{repeats}.b32 [%t+{at}], {{a}};\n"
        f"    tcgen05.ld.sync.aligned.{shape}.x{repeats}.b32 {{b}}, [%t+{at}];", count
    )  # fmt: skip
    np.testing.assert_array_equal(found, np.arange(32) + 100 * np.arange(count)[:, None])


def test_two_halves() -> None:
    """16x32bx2 with a split of 8: threads 16 to 31 of the store are columns 8 to 11 of lanes 0 to 15."""
    found = movement(
        "    tcgen05.st.sync.aligned.16x32bx2.x4.b32 [%t], 8, {a};\n"
        "    tcgen05.ld.sync.aligned.32x32b.x4.b32 {b}, [%t+8];", 4
    )  # fmt: skip
    wanted = 16 + np.arange(16) + 100 * np.arange(4)[:, None]
    np.testing.assert_array_equal(found[:, :16], wanted)


def test_pack_and_unpack() -> None:
    found = movement(
        "    tcgen05.st.sync.aligned.32x32b.x2.unpack::16b.b32 [%t], {%a0, %a1};\n"
        "    tcgen05.ld.sync.aligned.32x32b.x4.b32 {b}, [%t];", 4
    )  # fmt: skip
    np.testing.assert_array_equal(found[0], np.arange(32))
    np.testing.assert_array_equal(found[2], np.arange(32) + 100)
    assert not found[1].any() and not found[3].any()
    found = movement(
        "    tcgen05.st.sync.aligned.32x32b.x4.b32 [%t], {a};\n"
        "    tcgen05.ld.sync.aligned.32x32b.x2.pack::16b.b32 {%b0, %b1}, [%t];", 4
    )  # fmt: skip
    np.testing.assert_array_equal(found[1], np.arange(32) + 200 | (np.arange(32) + 300) << 16)


def test_loads_that_reduce() -> None:
    found = movement(
        "    tcgen05.st.sync.aligned.32x32b.x4.b32 [%t], {a};\n"
        "    tcgen05.ld.red.sync.aligned.32x32b.x4.max.u32 {b}, %red, [%t];\n    mov.u32 %b0, %red;", 4
    )  # fmt: skip
    np.testing.assert_array_equal(found[0], np.arange(32) + 300)


FLOATS = np.array([[1.0, -0.0, np.nan, np.nan], [-2.0, 0.0, 3.0, np.nan]], np.float32)


@pytest.mark.parametrize(("modifiers", "wanted"), [
    ("min", [-2.0, -0.0, 3.0, np.nan]), ("max", [1.0, 0.0, 3.0, np.nan]), ("max.abs", [2.0, 0.0, 3.0, np.nan]),
    ("min.NaN", [-2.0, -0.0, np.nan, np.nan]),
])  # fmt: skip
def test_reduction_of_floats(modifiers: str, wanted: list[float]) -> None:
    op = resolve(f"tcgen05.ld.red.sync.aligned.32x32b.x2.{modifiers}.f32")
    found = reduced(op, FLOATS.view(np.uint32)).view(np.float32)
    np.testing.assert_array_equal(found, np.array(wanted, np.float32))
    assert np.signbit(found[1]) == np.signbit(wanted[1])
    assert (found.view(np.uint32)[np.isnan(wanted)] == 0x7FFF_FFFF).all()


def test_reduction_of_integers() -> None:
    values = np.array([[1, 0xFFFF_FFFF], [5, 3]], np.uint32)
    for modifiers, wanted in (("min.s32", [1, 0xFFFF_FFFF]), ("min.u32", [1, 3]), ("max.s32", [5, 3])):
        op = resolve(f"tcgen05.ld.red.sync.aligned.32x32b.x2.{modifiers}")
        assert reduced(op, values).tolist() == wanted


@pytest.mark.parametrize(("body", "text"), [
    ("tcgen05.ld.sync.aligned.32x32b.x4.b32 {b}, [%t+2097152];", "this warp accesses lanes 0 to 31"),
    ("tcgen05.ld.sync.aligned.32x32b.x4.b32 {b}, [%t+64];", "not all of which CTA"),
    ("tcgen05.ld.sync.aligned.32x32b.x4.b32 {b}, [%t+61];", "columns 61 to 64"),
    ("tcgen05.ld.sync.aligned.32x32b.x4.b32 {b}, [%t+510];", "extends to column 513"),
    ("add.u32 %t, %t, %r0;\n tcgen05.ld.sync.aligned.32x32b.x4.b32 {b}, [%t];", "'taddr' differs"),
    ("mov.u32 %red, 48;\ntcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], %red;", "nCols is 48"),
    ("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 64;", "64 columns of tensor memory"),
    ("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, 32;", "64 were allocated"),
    ("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, 64;", "which is not the start of a tensor memory allocation"),
    ("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n"
     "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 64;", "after tcgen05.relinquish_alloc_permit"),
    ("call other;", "has used .cta_group::1"),
    ("tcgen05.shift.cta_group::1.down [%t+1048576];", "a multiple of 32"),
    ("mov.u64 %rd1, 0; tcgen05.cp.cta_group::1.128x256b [%t], %rd1;", "bits 46-48"),
])  # fmt: skip
def test_misuse_is_a_trap(body: str, text: str) -> None:
    with pytest.raises(Trap) as error:
        movement(body, 4)
    assert text in str(error.value)


#: A shift that nobody waits for, of memory that is given back.
FREED = """.visible .entry k(.param .u64 out) {
    .reg .b32 %t; .reg .pred %p; .shared .align 4 .b32 place;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 32;
    bar.warp.sync -1;
    ld.shared.u32 %t, [place];
    elect.sync _|%p, -1;
    @%p tcgen05.shift.cta_group::1.down [%t];
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, 32;
    ret; }"""


def test_memory_that_is_freed_under_late_work_is_a_trap() -> None:
    """The shift is at fault only where nobody has said that the memory was freed too early."""
    with pytest.raises(Trap, match=r"tcgen05.shift uses tensor memory that was freed before it completed"):
        kernels.run(FREED, 32, [np.zeros(1, np.uint32)], target="sm_100a", seed=1)


def test_waiting_for_columns_that_nobody_gives_back_is_a_deadlock() -> None:
    with pytest.raises(Trap, match=r"deadlock(.|\n)*64 free columns of tensor memory; 512 of 512"):
        movement("\n".join(["tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 64;"] * 8), 4)


@pytest.mark.parametrize(("columns", "grows"), [((256, 128, 128), 0), ((32, 64), 64), ((64, 32, 32, 64), 64)])
def test_allocations_must_not_grow(columns: tuple[int, ...], grows: int) -> None:
    """9.7.16.7.1, also after what was allocated has been given back."""
    lines = [
        f"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], {n}; ld.shared.u32 %r, [place];"
        f"tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r, {n};"
        for n in columns
    ]
    text = f".visible .entry k() {{ .reg .b32 %r; .shared .align 4 .b32 place; {' '.join(lines)} ret; }}"
    if not grows:
        kernels.run(text, 32, [], target="sm_100a")
        return
    with pytest.raises(Trap, match=rf"tcgen05\.alloc of {grows} columns after one of {grows // 2}"):
        kernels.run(text, 32, [], target="sm_100a")


def test_allocation_waits_for_columns() -> None:
    """Warp 1 wants all columns; warp 0 has them, and gives them back later."""
    text = """
.visible .entry k(.param .u64 out) {
    .reg .b32 %r<4>; .reg .b64 %rd<2>; .reg .pred %p;
    .shared .align 4 .b32 place[2];
    mov.u32 %r0, %tid.x;
    setp.ge.u32 %p, %r0, 32;
    @%p bra second;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 512;
    bar.sync 0;
    ld.shared.u32 %r1, [place];
    nanosleep.u32 5000;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 512;
    ret;
second:
    bar.sync 0;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place+4], 256;
    ld.shared.u32 %r1, [place+4];
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 256;
    ld.param.u64 %rd0, [out];
    mov.u32 %r2, 7;
    st.global.u32 [%rd0], %r2;
    ret;
}
"""
    out = np.zeros(1, np.uint32)
    kernels.run(text, 64, [out], target="sm_100a")
    assert out[0] == 7


def test_what_is_not_given_back_is_a_trap() -> None:
    text = """
.visible .entry k() {
    .shared .align 4 .b32 place;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 32;
    ret;
}
"""
    for engine in ("native", "reference"):
        with pytest.raises(Trap, match=r"without tcgen05\.dealloc of 32 columns"):
            kernels.run(text, 32, [], target="sm_100a", engine=engine)


def test_places_of_allocations() -> None:
    memory = TensorMemory()
    memory.allocations = {0: 32, 64: 64}
    assert (memory.free(32), memory.free(64), memory.free(128), memory.free(512)) == (32, 128, 128, None)
    assert memory.covers(64, 64) and not memory.covers(32, 1) and not memory.covers(100, 30)
    other = TensorMemory(allocations={32: 32})
    assert memory.free(32, other) == 128


# --- cp and shift -----------------------------------------------------------------------------------------------------

COPIES = [
    ("128x256b", "", 8, [[r] for r in range(128)]),
    ("128x128b", "", 4, [[r] for r in range(128)]),
    ("4x256b", "", 8, [[32 * r] for r in range(4)]),
    ("64x128b", ".warpx2::02_13", 4, [[r, r + 64] for r in range(64)]),
    ("64x128b", ".warpx2::01_23", 4, [[r % 32 + 64 * (r // 32), r % 32 + 64 * (r // 32) + 32] for r in range(64)]),
    ("32x128b", ".warpx4", 4, [[r, r + 32, r + 64, r + 96] for r in range(32)]),
]


@pytest.mark.share(3)
@pytest.mark.parametrize(("shape", "multicast", "words", "lanes"), COPIES)
@pytest.mark.parametrize("mode", ["none", "128"])
def test_copies(shape: str, multicast: str, words: int, lanes: list[list[int]], mode: str) -> None:
    rng = np.random.default_rng(words)
    tile = rng.integers(0, 1 << 32, (len(lanes), words), dtype=np.uint32)
    shared = np.zeros((1, 32 << 10), np.uint8)
    lbo, sbo = places.put(shared[0], 2048, tile, 32, mode, False)
    value = places.descriptor(2048, lbo, sbo, mode, tensor=True)
    cells = random_cells()
    found = kernels.tcgen05(
        f"mov.u64 %w0, {value}; add.u32 %q0, %t, 3; tcgen05.cp.cta_group::1.{shape}{multicast} [%q0], %w0;",
        shared, cells, columns=64,
    )  # fmt: skip
    for row, targets in enumerate(lanes):
        cells[0, targets, 3 : 3 + words] = tile[row]
    np.testing.assert_array_equal(found, cells)


@pytest.mark.parametrize(("source", "bits"), [("b6x16_p32", 6), ("b4x16_p64", 4)])
def test_copies_that_decompress(source: str, bits: int) -> None:
    rng = np.random.default_rng(bits)
    codes = rng.integers(0, 1 << bits, (128, 16), dtype=np.uint8)
    packed = np.zeros((128, 16), np.uint8)
    for row in range(128):
        word = sum(int(code) << bits * i for i, code in enumerate(codes[row]))
        packed[row, : 2 * bits] = list(word.to_bytes(2 * bits, "little"))
    shared = np.zeros((1, 32 << 10), np.uint8)
    lbo, sbo = places.put(shared[0], 0, packed, 8, "none", False)
    value = places.descriptor(0, lbo, sbo, "none", tensor=True)
    cells = random_cells()
    found = kernels.tcgen05(
        f"mov.u64 %w0, {value}; tcgen05.cp.cta_group::1.128x128b.b8x16.{source} [%t], %w0;", shared, cells, columns=64
    )  # fmt: skip
    cells[0, :, :4] = (codes << (2 if bits == 4 else 0)).view(np.uint32)
    np.testing.assert_array_equal(found, cells)


def test_copies_of_a_pair() -> None:
    rng = np.random.default_rng(9)
    tiles = rng.integers(0, 1 << 32, (2, 32, 4), dtype=np.uint32)
    shared = np.zeros((2, 8 << 10), np.uint8)
    for cta in range(2):
        lbo, sbo = places.put(shared[cta], 0, tiles[cta], 32, "none", False)
    value = places.descriptor(0, lbo, sbo, "none", tensor=True)
    cells = random_cells(2)
    found = kernels.tcgen05(
        f"mov.u64 %w0, {value}; tcgen05.cp.cta_group::2.32x128b.warpx4 [%t], %w0;", shared, cells, columns=64, group=2
    )  # fmt: skip
    for cta in range(2):
        cells[cta, :, :4] = np.tile(tiles[cta], (4, 1))
    np.testing.assert_array_equal(found, cells)


def test_shift() -> None:
    cells = random_cells()
    found = kernels.tcgen05("tcgen05.shift.cta_group::1.down [%t];", NO_BYTES, cells, columns=64)
    wanted = cells.copy()
    groups, old = wanted[0].reshape(4, 32, 64), cells[0].reshape(4, 32, 64)
    groups[:, :31, :8] = old[:, 1:, :8]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.share(3)
@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("seed", [None, *range(4)])
def test_lanes_that_met_for_a_collective_stay_together(engine: str, seed: int | None) -> None:
    """Each lane's loop has a length of its own; a second execution by some lanes would free what is free."""
    lanes = "mov.u32 %r1, 0; L: add.u32 %r1, %r1, 1; setp.le.u32 %p, %r1, %r0; @%p bra L;"
    text = f"""
.visible .entry k(.param .u64 out) {{
    .reg .b32 %r<4>; .reg .b64 %rd<2>; .reg .pred %p, %q;
    .shared .align 4 .b32 place;
    mov.u32 %r0, %tid.x; ld.param.u64 %rd0, [out]; mul.wide.u32 %rd1, %r0, 4; add.u64 %rd0, %rd0, %rd1;
    mov.u32 %r3, 0;
AGAIN:
    {lanes}
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 64;
    ld.shared.u32 %r2, [place];
    {lanes.replace("L", "M")}
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 64;
    add.u32 %r3, %r3, 1; setp.lt.u32 %q, %r3, 8; @%q bra AGAIN;
    st.global.u32 [%rd0], %r3; ret;
}}
"""
    out = np.zeros(32, np.uint32)
    kernels.run(text, 32, [out], target="sm_100a", engine=engine, seed=seed)
    assert (out == 8).all()
