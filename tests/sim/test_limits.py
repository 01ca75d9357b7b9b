"""The table of devices, launch checks, residency."""

from __future__ import annotations

import numpy as np
import pytest

import ptxtools
from ptxtools.diagnostics import LaunchError
from ptxtools.isa.targets import FIRST_VERSION, chip_of
from ptxtools.semantics.generations import UNKNOWN, generation_of
from ptxtools.sim import Device
from ptxtools.sim.kernel import Bounds
from ptxtools.sim.limits import LIMITS, WITHOUT_LIMITS, base_name, default_device, limits_of
from ptxtools.sim.residency import ctas_per_sm, resident_ctas
from ptxtools.sim.shape import check_block, check_grid, check_shared, cluster_shape, dim3
from tests.rows import rows

KIB = 1024
NONE = Bounds()
SM_13, SM_20, SM_53, SM_60, SM_61, SM_75, SM_90, SM_120 = (
    LIMITS[f"sm_{number}"] for number in (13, 20, 53, 60, 61, 75, 90, 120)
)


#: Threads, CTAs, registers (Ki) of an SM; registers (Ki) of a CTA and of a thread; shared memory (KiB) of an SM and of
#: a CTA; unit of shared memory; local memory (KiB) of a thread; cluster. Copied from the sources that `limits` names.
PUBLISHED = {
    "sm_10": (768, 8, 8, 8, 124, 16, 16, 512, 16, 1),
    "sm_11": (768, 8, 8, 8, 124, 16, 16, 512, 16, 1),
    "sm_12": (1024, 8, 16, 16, 124, 16, 16, 512, 16, 1),
    "sm_13": (1024, 8, 16, 16, 124, 16, 16, 512, 16, 1),
    "sm_20": (1536, 8, 32, 32, 63, 48, 48, 128, 512, 1),
    "sm_21": (1536, 8, 32, 32, 63, 48, 48, 128, 512, 1),
    "sm_30": (2048, 16, 64, 64, 63, 48, 48, 256, 512, 1),
    "sm_32": (2048, 16, 64, 32, 255, 48, 48, 256, 512, 1),
    "sm_35": (2048, 16, 64, 64, 255, 48, 48, 256, 512, 1),
    "sm_37": (2048, 16, 128, 64, 255, 112, 48, 256, 512, 1),
    "sm_50": (2048, 32, 64, 64, 255, 64, 48, 256, 512, 1),
    "sm_52": (2048, 32, 64, 64, 255, 96, 48, 256, 512, 1),
    "sm_53": (2048, 32, 64, 32, 255, 64, 48, 256, 512, 1),
    "sm_60": (2048, 32, 64, 64, 255, 64, 48, 256, 512, 1),
    "sm_61": (2048, 32, 64, 64, 255, 96, 48, 256, 512, 1),
    "sm_62": (2048, 32, 64, 32, 255, 64, 48, 256, 512, 1),
    "sm_70": (2048, 32, 64, 64, 255, 96, 96, 256, 512, 1),
    "sm_72": (2048, 32, 64, 64, 255, 96, 96, 256, 512, 1),
    "sm_75": (1024, 16, 64, 64, 255, 64, 64, 256, 512, 1),
    "sm_80": (2048, 32, 64, 64, 255, 164, 163, 128, 512, 1),
    "sm_86": (1536, 16, 64, 64, 255, 100, 99, 128, 512, 1),
    "sm_87": (1536, 16, 64, 64, 255, 164, 163, 128, 512, 1),
    "sm_88": (1536, 16, 64, 64, 255, 100, 99, 128, 512, 1),
    "sm_89": (1536, 24, 64, 64, 255, 100, 99, 128, 512, 1),
    "sm_90": (2048, 32, 64, 64, 255, 228, 227, 128, 512, 16),
    "sm_100": (2048, 32, 64, 64, 255, 228, 227, 128, 512, 16),
    "sm_101": (1536, 24, 64, 64, 255, 228, 227, 128, 512, 16),
    "sm_103": (2048, 32, 64, 64, 255, 228, 227, 128, 512, 16),
    "sm_107": (1024, 16, 64, 64, 255, 328, 327, 128, 512, 16),
    "sm_110": (1536, 24, 64, 64, 255, 228, 227, 128, 512, 16),
    "sm_120": (1536, 24, 64, 64, 255, 100, 99, 128, 512, 8),
    "sm_121": (1536, 24, 64, 64, 255, 100, 99, 128, 512, 8),
}


@rows("name", PUBLISHED)
def test_published_limits(name: str) -> None:
    row = LIMITS[name]
    sizes = (row.registers, row.cta_registers, row.shared, row.shared_cta, row.local)
    registers, cta_registers, shared, shared_cta, local = (size // KIB for size in sizes)
    assert all(size % KIB == 0 for size in sizes)
    assert PUBLISHED[name] == (
        row.threads, row.ctas, registers, cta_registers, row.registers_thread, shared, shared_cta, row.shared_unit,
        local, row.cluster,
    )  # fmt: skip
    assert row.warps == row.threads // 32
    assert row.shared_reserved == (KIB if row.capability >= (8, 0) else 0)
    assert row.shared_default == min(row.shared_cta, 48 * KIB)


def test_shapes_and_parameters() -> None:
    """Two-dimensional grids of sm_1x, narrow ones before sm_30, large parameters from sm_70 on."""
    for row in LIMITS.values():
        old = row.capability < (2, 0)
        assert row.block == ((512, 512, 64) if old else (1024, 1024, 64))
        assert row.cta_threads == (512 if old else 1024)
        wide = 65535 if row.capability < (3, 0) else 2**31 - 1
        assert row.grid == (wide, 65535, 1 if old else 65535)
        assert row.parameters == (256 if old else 4096 if row.capability < (7, 0) else 32764)


def test_every_target_is_a_device_or_says_why_not() -> None:
    for target in FIRST_VERSION:
        row = limits_of(target)
        assert (row is None) == (base_name(target) in WITHOUT_LIMITS), target
        if row is None:
            with pytest.raises(LaunchError, match=WITHOUT_LIMITS[base_name(target)]):
                Device(target)
        else:
            assert Device(target).limits is row
            assert row.name == base_name(target)
            assert f"sm_{chip_of(target).number}" == row.name
    assert set(LIMITS) == set(PUBLISHED)


def test_tensor_cores_of_every_device_have_a_rule() -> None:
    """From sm_70 on every simulated chip adds in a known way, or refuses products; older ones have no tensor cores."""
    for name, row in LIMITS.items():
        unknown = chip_of(name).architecture in UNKNOWN
        assert (generation_of(name) is None) == (row.capability < (7, 0) or unknown), name
        assert unknown == (name == "sm_107")


def test_products_that_nobody_has_described() -> None:
    """A kernel of sm_107 runs, and one with a product only in IEEE arithmetic."""
    text = """.version 9.4
.target sm_107a
.address_size 64
.visible .entry plain(.param .u64 p) { .reg .b64 a; ld.param.u64 a, [p]; st.global.u32 [a], 5; ret; }
.visible .entry product(.param .u64 p) { .reg .b32 r<9>; .reg .b64 a; ld.param.u64 a, [p]; mov.b32 r0, 0x3c003c00;
  mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {r1, r2}, {r0, r0}, {r0}, {r0, r0}; st.global.u32 [a], r1; ret; }"""
    module = ptxtools.loads(text)
    out = np.zeros(1, np.uint32)
    ptxtools.Device("sm_107a").launch(module["plain"], 1, 1, [out])
    assert out[0] == 5
    with pytest.raises(LaunchError, match="how the tensor cores of sm_107a add is not published"):
        ptxtools.Device("sm_107a").launch(module["product"], 1, 32, [out])
    ptxtools.Device("sm_107a", numerics="ieee").launch(module["product"], 1, 32, [out])
    assert out[0] == 0x48804880  # 9: eight products and 1


def test_default_devices() -> None:
    assert default_device("sm_90a") == "sm_90a"
    assert default_device("sm_50") == default_device("compute_13") == "sm_75"
    assert default_device("compute_90") == "sm_90"
    assert default_device("") == "sm_75"


@pytest.mark.parametrize("name", ["sm_71", "sm_75a", "sm_90f", "sm_90af", "sm_130", "gfx90", "compute_90", "sm_", ""])
def test_what_is_no_device(name: str) -> None:
    assert limits_of(name) is None
    with pytest.raises(LaunchError, match=f"no device '{name}' is simulated; known are sm_10, "):
        Device(name)


@pytest.mark.parametrize("grid", [(1, 1, 1), (2**31 - 1, 1, 1), (1, 65535, 65535)])
def test_possible_grids(grid: tuple[int, int, int]) -> None:
    check_grid(grid, SM_75)


@pytest.mark.parametrize("grid", [(0, 1, 1), (1, 0, 1), (-1, 1, 1), (2**31, 1, 1), (1, 65536, 1), (1, 1, 65536)])
def test_impossible_grids(grid: tuple[int, int, int]) -> None:
    with pytest.raises(LaunchError, match="grid"):
        check_grid(grid, SM_75)


@pytest.mark.parametrize("block", [(0, 1, 1), (1025, 1, 1), (1, 1025, 1), (1, 1, 65), (32, 32, 2), (-1, 1, 1)])
def test_impossible_blocks(block: tuple[int, int, int]) -> None:
    with pytest.raises(LaunchError, match="block"):
        check_block(block, NONE, SM_75)


def test_required_and_maximal_blocks() -> None:
    check_block((64, 2, 1), Bounds(reqntid=(64, 2, 1)), SM_75)
    with pytest.raises(LaunchError, match=r"requires a block of 64,2,1 \(.reqntid\), not 128,1,1"):
        check_block((128, 1, 1), Bounds(reqntid=(64, 2, 1)), SM_75)
    check_block((1, 128, 1), Bounds(maxntid=(128, 1, 1)), SM_75)
    with pytest.raises(LaunchError, match=r"at most 128 threads per CTA \(.maxntid\), not 129"):
        check_block((129, 1, 1), Bounds(maxntid=(128, 1, 1)), SM_75)


def test_shapes_from_python() -> None:
    assert dim3(4, "grid") == (4, 1, 1)
    assert dim3((4, 2), "grid") == (4, 2, 1)
    assert dim3([1, 2, 3], "grid") == (1, 2, 3)
    for value in (1.5, "4", (), (1, 2, 3, 4), None, (1, None)):
        with pytest.raises(LaunchError):
            dim3(value, "grid")  # type: ignore[arg-type]


def test_clusters() -> None:
    assert cluster_shape(None, (6, 1, 1), NONE, SM_75) == (1, 1, 1)
    assert cluster_shape((2, 3, 1), (4, 6, 1), NONE, SM_90) == (2, 3, 1)
    assert cluster_shape(None, (4, 1, 1), Bounds(cluster=(4, 1, 1)), SM_90) == (4, 1, 1)
    assert cluster_shape((1, 1, 1), (5, 1, 1), NONE, SM_75) == (1, 1, 1)


@pytest.mark.parametrize(
    ("asked", "grid", "bounds", "limits", "says"),
    [
        ((4, 1, 1), (6, 1, 1), NONE, SM_90, "grid 6,1,1 is not a multiple of clusters of 4,1,1"),
        (None, (6, 1, 1), Bounds(cluster=(4, 1, 1)), SM_90, "not a multiple of clusters"),
        ((2, 1, 1), (8, 1, 1), Bounds(cluster=(4, 1, 1)), SM_90, "requires clusters of 4,1,1"),
        ((2, 1, 1), (8, 1, 1), NONE, SM_75, "sm_75 has no clusters"),
        ((32, 1, 1), (32, 1, 1), NONE, SM_90, "a cluster of 32 CTAs is too large"),
        ((16, 1, 1), (16, 1, 1), NONE, SM_120, "a cluster of 16 CTAs is too large"),
        ((8, 1, 1), (8, 1, 1), Bounds(max_cluster_rank=4), SM_90, "allows 4 CTAs per cluster"),
        ((0, 1, 1), (8, 1, 1), NONE, SM_90, "empty"),
        (None, (8, 1, 1), Bounds(explicit_cluster=True), SM_90, "explicit cluster shape"),
    ],
)
def test_refused_clusters(asked, grid, bounds, limits, says) -> None:
    with pytest.raises(LaunchError) as caught:
        cluster_shape(asked, grid, bounds, limits)
    assert says in str(caught.value)


def test_shared_memory() -> None:
    check_shared(1024, 227 * KIB - 1024, SM_90)
    with pytest.raises(LaunchError, match=r"232,449 bytes of shared memory per CTA \(1 static, 232,448 dynamic\)"):
        check_shared(1, 227 * KIB, SM_90)
    with pytest.raises(LaunchError):
        check_shared(0, -1, SM_90)


@rows(
    ("threads", "registers", "shared", "limits", "ctas"),
    [
        (32, 16, 0, SM_90, 32),  # CTA slots
        (1024, 32, 0, SM_90, 2),  # threads
        (1024, 32, 0, SM_75, 1),
        (33, 16, 0, SM_75, 16),  # two warps each: 32 warps hold 16 CTAs
        (256, 128, 0, SM_90, 2),  # registers: 128 x 256 = 32768 of 65536
        (256, 255, 0, SM_90, 1),
        (1024, 255, 0, SM_90, 1),  # a compiler would spill
        (128, 32, 100 * KIB, SM_90, 2),  # shared memory: 101 KiB each with the reserved one
        (128, 32, 227 * KIB, SM_90, 1),
        (128, 32, 64 * KIB, SM_75, 1),
        (128, 32, 8 * KIB + 129, SM_75, 7),  # in units of 256 bytes
        (32, 32, 8 * KIB - 1024 + 129, SM_90, 27),  # in units of 128, with the reserved one
        (160, 72, 0, SM_90, 5),  # 2304 registers a warp: 7 warps in each of four partitions, 28 in all
        (512, 17, 0, SM_90, 4),
        (192, 88, 0, SM_60, 3),  # 2816 a warp: 11 in each of two partitions
        (192, 88, 0, SM_61, 3),  # 5 in each of four
        (224, 120, 0, SM_60, 2),  # 3840 a warp: 8 in each of two, 16 in all
        (224, 168, 0, SM_61, 1),  # 5376 a warp: 3 in each of four
        (1024, 255, 0, SM_53, 2),  # a CTA has 32 Ki registers, so a thread 32
        (512, 124, 0, SM_13, 1),  # a CTA has 16 Ki registers, so a thread 32
        (96, 20, 0, SM_13, 6),  # pairs of warps: 4 x 640 is 5 units of 512
        (128, 20, 0, SM_13, 6),
        (192, 21, 0, SM_20, 7),  # 672 becomes 704: 23 warps in each of two partitions
        (32, 16, 2 * KIB + 1, SM_13, 6),  # in units of 512 bytes
    ],
)
def test_residency_of_an_sm(threads: int, registers: int, shared: int, limits, ctas: int) -> None:
    assert ctas_per_sm(threads, registers, shared, limits) == ctas


def test_residency_of_a_device() -> None:
    assert resident_ctas(2, 16, 1) == 32
    assert resident_ctas(2, 16, 4) == 32
    assert resident_ctas(1, 3, 2) == 2  # the third SM has no partner
    assert resident_ctas(1, 18, 16) == 16  # a cluster does not leave its GPC of 16 SMs
    assert resident_ctas(1, 4, 8) == 0
