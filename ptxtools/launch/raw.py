"""Kernels on the process's own memory: the convention by which some projects call a PTX emulator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from ptxtools import sim
from ptxtools.machine.options import Shape
from ptxtools.sim.device import RunResult
from ptxtools.sim.hostmap import HostMap

from .bind import check_count, number_bytes, parameter_block, pointer_bytes
from .calls import Call
from .host import Kernel, Module


class _HostDevice(sim.Device):
    host_addresses = True


_devices: WeakKeyDictionary[Module, sim.Device] = WeakKeyDictionary()


def run_on_host(
    kernel: Kernel, args: Sequence[int | float | None], block: Shape, grid: Shape, **options: Any
) -> RunResult:
    """Run `kernel` with addresses of this process. options: those of `Device.launch`. Raises `LaunchError`, `Trap`."""
    call = Call(kernel, grid, block, args, **options)
    entry, device = kernel.entry, _device_of(kernel.module)
    check_count(entry, len(args))
    values = [
        pointer_bytes(0, n, p) if a is None else number_bytes(a, n, p)
        for n, (a, p) in enumerate(zip(args, entry.parameters, strict=True))
    ]
    return device.run(kernel.module.loadable, call.request(parameter_block(kernel.entry, values)), host=HostMap())


def _device_of(module: Module) -> sim.Device:
    """The device of a module. Its addresses are host addresses, so that its variables and the host's memory agree."""
    device = _devices.get(module)
    if device is None:
        device = _devices[module] = _HostDevice(memory=1 << 30)
    return device
