"""The table of devices, launch checks, residency."""

from __future__ import annotations

import pytest

from ptxtools.diagnostics import LaunchError
from ptxtools.sim.kernel import Bounds
from ptxtools.sim.limits import LIMITS, default_device, limits_of
from ptxtools.sim.residency import ctas_per_sm, resident_ctas
from ptxtools.sim.shape import check_block, check_grid, check_shared, cluster_shape, dim3

KIB = 1024
NONE = Bounds()


@pytest.mark.parametrize(
    ("name", "threads", "ctas", "shared", "per_cta", "cluster"),
    [
        ("sm_75", 1024, 16, 64, 64, 1),
        ("sm_80", 2048, 32, 164, 163, 1),
        ("sm_86", 1536, 16, 100, 99, 1),
        ("sm_87", 1536, 16, 164, 163, 1),
        ("sm_89", 1536, 24, 100, 99, 1),
        ("sm_90", 2048, 32, 228, 227, 16),
        ("sm_100", 2048, 32, 228, 227, 16),
        ("sm_103", 2048, 32, 228, 227, 16),
        ("sm_110", 1536, 24, 228, 227, 16),
        ("sm_120", 1536, 24, 100, 99, 8),
        ("sm_121", 1536, 24, 100, 99, 8),
    ],
)
def test_published_limits(name: str, threads: int, ctas: int, shared: int, per_cta: int, cluster: int) -> None:
    row = LIMITS[name]
    assert (row.threads, row.warps, row.ctas) == (threads, threads // 32, ctas)
    assert (row.shared, row.shared_cta, row.cluster) == (shared * KIB, per_cta * KIB, cluster)
    assert limits_of(name + "a") is row and limits_of(name + "f") is row


def test_default_devices() -> None:
    assert default_device("sm_90a") == "sm_90a"
    assert default_device("sm_50") == "sm_75"
    assert default_device("") == "sm_75"
    assert limits_of("sm_70") is None and limits_of("gfx90") is None


@pytest.mark.parametrize("grid", [(1, 1, 1), (2**31 - 1, 1, 1), (1, 65535, 65535)])
def test_possible_grids(grid: tuple[int, int, int]) -> None:
    check_grid(grid)


@pytest.mark.parametrize("grid", [(0, 1, 1), (1, 0, 1), (-1, 1, 1), (2**31, 1, 1), (1, 65536, 1), (1, 1, 65536)])
def test_impossible_grids(grid: tuple[int, int, int]) -> None:
    with pytest.raises(LaunchError, match="grid"):
        check_grid(grid)


@pytest.mark.parametrize("block", [(0, 1, 1), (1025, 1, 1), (1, 1025, 1), (1, 1, 65), (32, 32, 2), (-1, 1, 1)])
def test_impossible_blocks(block: tuple[int, int, int]) -> None:
    with pytest.raises(LaunchError, match="block"):
        check_block(block, NONE)


def test_required_and_maximal_blocks() -> None:
    check_block((64, 2, 1), Bounds(reqntid=(64, 2, 1)))
    with pytest.raises(LaunchError, match=r"requires a block of 64,2,1 \(.reqntid\), not 128,1,1"):
        check_block((128, 1, 1), Bounds(reqntid=(64, 2, 1)))
    check_block((1, 128, 1), Bounds(maxntid=(128, 1, 1)))
    with pytest.raises(LaunchError, match=r"at most 128 threads a CTA \(.maxntid\), not 129"):
        check_block((129, 1, 1), Bounds(maxntid=(128, 1, 1)))


def test_shapes_from_python() -> None:
    assert dim3(4, "grid") == (4, 1, 1)
    assert dim3((4, 2), "grid") == (4, 2, 1)
    assert dim3([1, 2, 3], "grid") == (1, 2, 3)
    for value in (1.5, "4", (), (1, 2, 3, 4), None, (1, None)):
        with pytest.raises(LaunchError):
            dim3(value, "grid")  # type: ignore[arg-type]


SM_75, SM_90, SM_120 = LIMITS["sm_75"], LIMITS["sm_90"], LIMITS["sm_120"]


def test_clusters() -> None:
    assert cluster_shape(None, (6, 1, 1), NONE, SM_75) == (1, 1, 1)
    assert cluster_shape((2, 3, 1), (4, 6, 1), NONE, SM_90) == (2, 3, 1)
    assert cluster_shape(None, (4, 1, 1), Bounds(cluster=(4, 1, 1)), SM_90) == (4, 1, 1)
    assert cluster_shape((1, 1, 1), (5, 1, 1), NONE, SM_75) == (1, 1, 1)


@pytest.mark.parametrize(
    ("asked", "grid", "bounds", "limits", "says"),
    [
        ((4, 1, 1), (6, 1, 1), NONE, SM_90, "grid 6,1,1 is not a whole number of clusters of 4,1,1"),
        (None, (6, 1, 1), Bounds(cluster=(4, 1, 1)), SM_90, "not a whole number"),
        ((2, 1, 1), (8, 1, 1), Bounds(cluster=(4, 1, 1)), SM_90, "requires clusters of 4,1,1"),
        ((2, 1, 1), (8, 1, 1), NONE, SM_75, "sm_75 has no clusters"),
        ((32, 1, 1), (32, 1, 1), NONE, SM_90, "a cluster of 32 CTAs is too large"),
        ((16, 1, 1), (16, 1, 1), NONE, SM_120, "a cluster of 16 CTAs is too large"),
        ((8, 1, 1), (8, 1, 1), Bounds(max_cluster_rank=4), SM_90, "allows 4 CTAs a cluster"),
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
    with pytest.raises(LaunchError, match=r"232,449 bytes of shared memory a CTA \(1 static, 232,448 dynamic\)"):
        check_shared(1, 227 * KIB, SM_90)
    with pytest.raises(LaunchError):
        check_shared(0, -1, SM_90)


@pytest.mark.parametrize(
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
