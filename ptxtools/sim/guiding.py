"""Guided runs of weak memory: for every other seed, a small launch follows an execution that the model allows."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from ptxtools.machine.guides import Guide, PlainGrid
from ptxtools.machine.providers import guides

if TYPE_CHECKING:
    from .arena import Arena
    from .device import Plan, Request
    from .loadable import Loadable

#: Bytes of buffers and variables, CTAs, and threads, up to which the model is asked.
_MOST_BYTES, _MOST_CTAS, _MOST_THREADS = 1 << 15, 16, 1024
#: Launches whose executions are remembered.
_MOST_KEPT = 16
_POINTER_BYTES = 8

_found: dict[PlainGrid, Sequence[Guide]] = {}


def guide_of(seed: int, module: Loadable, request: Request, plan: Plan, arena: Arena) -> Guide | None:
    """The execution that a launch with this seed follows: none for even seeds, else one of each outcome in turn."""
    if not seed % 2:
        return None
    grid = _plain(module, request, plan, arena)
    if grid is None:
        return None
    found = _found.pop(grid, None)
    if found is None:
        found = guides.find("executions")(grid)
    _found[grid] = found
    while len(_found) > _MOST_KEPT:
        del _found[next(iter(_found))]
    return found[seed // 2 % len(found)] if found else None


def _plain(module: Loadable, request: Request, plan: Plan, arena: Arena) -> PlainGrid | None:
    """The launch as the model sees it; None if it has no words for it, or is too large to begin with."""
    cluster = plan.cluster
    ctas = prod(request.grid)
    if ctas > _MOST_CTAS or ctas * prod(request.block) > _MOST_THREADS or cluster[1:] != (1, 1):
        return None
    sizes = {name: storage.size for name, storage in plan.image.variables.items()}
    variables = {name: (address, sizes[name]) for name, address in plan.image.addresses.items()}
    if sum(sizes.values()) > _MOST_BYTES:
        return None
    live, buffers, arguments = arena.live(), dict[str, tuple[int, int]](), list[int | tuple[str, int]]()
    for parameter in request.kernel.parameters:
        if parameter.array:
            return None
        value = int.from_bytes(request.params[parameter.offset : parameter.offset + parameter.size], "little")
        named: int | tuple[str, int] = value
        if parameter.size == _POINTER_BYTES:
            for name, (address, size) in variables.items():
                if address <= value < address + size:
                    named = name, value - address
            for number, (address, size) in enumerate(live):
                if address <= value < address + size and isinstance(named, int):
                    named = f"buffer#{number}", value - address
                    buffers[f"buffer#{number}"] = address, size
        arguments.append(named)
    if sum(size for _, size in buffers.values()) > _MOST_BYTES:
        return None

    def held(places: dict[str, tuple[int, int]]) -> tuple[tuple[str, int, bytes], ...]:
        return tuple((name, at, bytes(arena.view(at, size))) for name, (at, size) in places.items())

    tree = module.whole()
    if tree.source is None:
        return None
    return PlainGrid(tree.source.text, tree, request.kernel.name, request.grid, request.block, prod(cluster),
                     request.shared, tuple(arguments), held(buffers), held(variables))  # fmt: skip
