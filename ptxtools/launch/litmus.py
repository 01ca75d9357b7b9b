"""The `[litmus]` table of a launch file: a launch in the plain terms that the memory model needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ptxtools.records import dataclass, field

from .arguments import Argument, BufferArgument, MulticastArgument, Null, Scalar, TensorMapArgument
from .errors import SpecError
from .job import Job, LaunchPlan
from .table import Table


@dataclass(slots=True)
class LitmusPlan:
    """condition, filter: as in a litmus test; threads: (CTA, thread of it) of those that run, None: all."""

    condition: str
    filter: str = ""
    threads: list[tuple[int, int]] | None = None


@dataclass(slots=True)
class PlainLaunch:
    """A launch without device memory. arguments: integers, or the name of a buffer, map or multi-address and an offset
    in bytes; arrays: of each buffer the name of its element type and its initial bytes; maps: of each tensor map its
    buffer, an offset in bytes, and its fields; multicasts: the buffers of each multi-address."""

    plan: LaunchPlan
    arguments: list[int | tuple[str, int]] = field(default_factory=list)
    arrays: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    maps: dict[str, tuple[str, int, dict[str, Any]]] = field(default_factory=dict)
    multicasts: dict[str, list[str]] = field(default_factory=dict)


def read_litmus_table(table: Table | None) -> LitmusPlan | None:
    """Raises `SpecError`."""
    if table is None:
        return None
    condition = table.text("condition")
    if not condition:
        raise table.error("condition is missing, such as 'exists (out[0] == 1)'")
    plan = LitmusPlan(condition, table.text("filter"))
    threads = table.take("threads", list)
    if threads is not None:
        plan.threads = []
        for pair in threads:
            if not (isinstance(pair, list) and len(pair) == 2 and all(type(number) is int for number in pair)):
                raise table.error("must be pairs of a CTA and a thread of it, such as [[0, 0], [1, 32]]", "threads")
            plan.threads.append((pair[0], pair[1]))
    table.finish()
    return plan


def plain_launch(job: Job) -> PlainLaunch:
    """The job's only launch. Raises `SpecError` for what the memory model has no word for."""
    if len(job.launches) != 1:
        raise SpecError(f"a litmus test has one launch, not {len(job.launches)}")
    found = PlainLaunch(job.launches[0])
    for number, argument in enumerate(found.plan.args):
        found.arguments.append(_value(job, number, argument, found))
    return found


def _value(job: Job, number: int, argument: Argument, found: PlainLaunch) -> int | tuple[str, int]:
    if isinstance(argument, Null):
        return 0
    if isinstance(argument, Scalar) and isinstance(argument.value, int):
        return argument.value
    if isinstance(argument, TensorMapArgument):
        map_ = job.tensormaps[argument.name]
        found.maps[argument.name] = (map_.buffer, map_.offset, map_.fields)
        _hold(job, map_.buffer, found)
        return argument.name, 0
    if isinstance(argument, MulticastArgument):
        found.multicasts[argument.name] = job.multicasts[argument.name]
        for buffer in job.multicasts[argument.name]:
            _hold(job, buffer, found)
        return argument.name, argument.offset
    if not isinstance(argument, BufferArgument) or not argument.name:
        known = "only integers and buffers, their tensor maps and multicast objects"
        raise SpecError(f"argument {number}: {known} are modelled in a litmus test")
    _hold(job, argument.name, found)
    return argument.name, argument.offset


def _hold(job: Job, name: str, found: PlainLaunch) -> None:
    """Keep the initial bytes of a buffer."""
    if name not in found.arrays:
        content = job.buffers[name].content
        array = content.array()
        found.arrays[name] = (content.element_for(array).name, array.tobytes())


class TensorMaps:
    """What the 128 bytes of a tensor map mean, for the memory model (`model.tensors.Engine`)."""

    def __init__(self) -> None:
        from ptxtools.sim.tensormap import plain

        self.transfer, self.replaced, self.changed = plain.transfer, plain.replaced, plain.changed

    def encode(self, address: int, fields: Mapping[str, Any]) -> bytes:
        """A map by the fields of launch files. Raises ValueError."""
        from ptxtools.diagnostics import LaunchError

        from .tensormaps import tensor_map

        try:
            return tensor_map(address, **fields)
        except (LaunchError, TypeError) as error:
            raise ValueError(str(error)) from None
