"""Checks before anything runs: does the launch fit the kernel's directives and the device? (11.4, CUDA's limits)"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ptxtools.diagnostics import LaunchError, shown

from .kernel import Bounds, Dim3, Kernel
from .limits import DeviceLimits

if TYPE_CHECKING:
    from ptxtools.program.program import Program

_AXES = "xyz"


def dim3(value: int | tuple[int, ...] | list[int], what: str) -> Dim3:
    """An int or one to three ints as a shape; raises `LaunchError`."""
    if type(value) is int:  # most often
        return value, 1, 1
    sizes = [value] if not isinstance(value, (tuple, list)) else list(value)
    try:
        numbers = [size.__index__() for size in sizes]
    except (AttributeError, TypeError):
        raise LaunchError(f"{what} {value!r} is not a whole number or a list of up to three") from None
    if not 1 <= len(numbers) <= 3:
        raise LaunchError(f"{what} {value!r} has {len(numbers)} dimensions, not one to three")
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def show(shape: Dim3) -> str:
    return ",".join(map(str, shape))


def check_grid(grid: Dim3, limits: DeviceLimits) -> None:
    """Raise `LaunchError` for a grid that the device does not support."""
    _check_axes(grid, limits.grid, "grid", "CTAs", limits)


def check_stack(stack: int, limits: DeviceLimits) -> None:
    """Raise `LaunchError` for an invalid stack size."""
    if not 0 <= stack <= limits.local:
        raise LaunchError(f"a stack of {stack:,} bytes: a thread has 0 to {limits.local:,} on {limits.name}")


def check_block(block: Dim3, bounds: Bounds, limits: DeviceLimits) -> None:
    """Raise `LaunchError` for a CTA shape that the device or the kernel's directives do not allow."""
    _check_axes(block, limits.block, "block", "threads", limits)
    threads = prod(block)
    if threads > limits.cta_threads:
        raise LaunchError(
            f"block {show(block)} has {threads} threads; a CTA has at most {limits.cta_threads} on {limits.name}"
        )
    if bounds.reqntid is not None and block != bounds.reqntid:
        raise LaunchError(f"the kernel requires a block of {show(bounds.reqntid)} (.reqntid), not {show(block)}")
    if bounds.maxntid is not None and threads > prod(bounds.maxntid):
        most = prod(bounds.maxntid)
        raise LaunchError(f"the kernel allows at most {most} threads per CTA (.maxntid), not {threads}")


def _check_axes(shape: Dim3, most: Dim3, what: str, units: str, limits: DeviceLimits) -> None:
    for axis, size, limit in zip(_AXES, shape, most, strict=True):
        if size < 1:
            raise LaunchError(f"{what} {show(shape)} has {size} {units} in {axis}; at least 1 is required")
        if size > limit:
            raise LaunchError(
                f"{what} {show(shape)} has {size} {units} in {axis}; at most {limit} are allowed on {limits.name}"
            )


def cluster_shape(asked: Dim3 | None, grid: Dim3, bounds: Bounds, limits: DeviceLimits) -> Dim3:
    """The cluster shape of a launch: as requested, or as the kernel requires, or single CTAs. Raises `LaunchError`."""
    cluster = asked or bounds.cluster or (1, 1, 1)
    if min(cluster) < 1:
        raise LaunchError(f"cluster {show(cluster)} is empty in one dimension")
    if bounds.cluster is not None and cluster != bounds.cluster:
        needs = show(bounds.cluster)
        raise LaunchError(f"the kernel requires clusters of {needs} (.reqnctapercluster), not {show(cluster)}")
    if bounds.explicit_cluster and asked is None and bounds.cluster is None:
        raise LaunchError("the kernel requires an explicit cluster shape (.explicitcluster); the launch has none")
    size = prod(cluster)
    if size == 1:
        return cluster
    if limits.cluster == 1:
        raise LaunchError(f"{limits.name} has no clusters; they require sm_90 or later")
    if size > limits.cluster:
        raise LaunchError(f"a cluster of {size} CTAs is too large: {limits.name} allows {limits.cluster}")
    if bounds.max_cluster_rank is not None and size > bounds.max_cluster_rank:
        raise LaunchError(f"the kernel allows {bounds.max_cluster_rank} CTAs per cluster (.maxclusterrank), not {size}")
    for axis, ctas, part in zip(_AXES, grid, cluster, strict=True):
        if ctas % part:
            raise LaunchError(
                f"grid {show(grid)} is not a multiple of clusters of {show(cluster)}: {ctas} CTAs in {axis}"
            )
    return cluster


def shared_hint(program: Program, dynamic: int) -> str:
    """The probable cause of a shared access out of bounds, if a launch has no dynamic shared memory."""
    name = program.dynamic_shared
    if dynamic or not name:
        return ""
    return f"help: the kernel uses dynamic shared memory '{name}'; use --shared BYTES (shared=BYTES in Python)"


def check_shared(static: int, dynamic: int, limits: DeviceLimits) -> None:
    """Raise `LaunchError` if a CTA requests more shared memory than the device allows."""
    if not hasattr(dynamic, "__index__") or dynamic < 0:
        raise LaunchError(f"{dynamic} bytes of dynamic shared memory")
    if static + dynamic > limits.shared_cta:
        raise LaunchError(
            f"{static + dynamic:,} bytes of shared memory per CTA ({static:,} static, {dynamic:,} dynamic): "
            f"{limits.name} has at most {limits.shared_cta:,}"
        )


def check_parameters(kernel: Kernel, params: bytes, limits: DeviceLimits) -> None:
    """Raise `LaunchError` for a parameter block of the wrong size."""
    if len(params) != kernel.parameter_bytes:
        raise LaunchError(
            f"kernel {shown(kernel.name)} takes {kernel.parameter_bytes} bytes of parameters, not {len(params)}"
        )
    if len(params) > limits.parameters:
        raise LaunchError(f"{len(params):,} bytes of parameters; {limits.name} takes {limits.parameters:,}")
