"""PTX tools that work without a GPU: check, assemble and run NVIDIA PTX.

    module = ptxtools.load("kernel.ptx")
    device = ptxtools.Device("sm_90a", sms=4)
    result = device.launch(module["scale"], grid=4, block=256, args=[x, out, 1024])

Everything here is loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import nvvm
    from .api import (
        assemble,
        disassemble,
        lint,
        litmus,
        litmus_kernel,
        litmus_launch,
        litmus_tests,
        load,
        loads,
        ptx_run,
    )
    from .diagnostics import Diagnostic, LaunchError, PtxError, PtxWarning, Severity, Trap
    from .launch.host import Buffer, Device, Kernel, Module
    from .machine.observers import Observer
    from .sim.arena import OutOfMemory
    from .sim.device import RunResult

_HOMES = {
    "ptxtools.api": ("assemble", "disassemble", "lint", "litmus", "litmus_kernel", "litmus_launch", "litmus_tests",
                     "load", "loads", "ptx_run"),
    "ptxtools.launch.host": ("Buffer", "Device", "Kernel", "Module"),
    "ptxtools.diagnostics": ("Diagnostic", "LaunchError", "PtxError", "PtxWarning", "Severity", "Trap"),
    "ptxtools.machine.observers": ("Observer",),
    "ptxtools.sim.arena": ("OutOfMemory",),
    "ptxtools.sim.device": ("RunResult",),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Buffer",
    "Device",
    "Diagnostic",
    "Kernel",
    "LaunchError",
    "Module",
    "Observer",
    "OutOfMemory",
    "PtxError",
    "PtxWarning",
    "RunResult",
    "Severity",
    "Trap",
    "assemble",
    "disassemble",
    "lint",
    "litmus",
    "litmus_kernel",
    "litmus_launch",
    "litmus_tests",
    "load",
    "loads",
    "nvvm",
    "ptx_run",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "__version__":
        value: Any = _version()
    elif name == "nvvm":
        value = import_module("ptxtools.nvvm")
    elif name in _HOME_OF:
        import_module("ptxtools.api")  # which provides the engines
        value = getattr(import_module(_HOME_OF[name]), name)
    else:
        raise AttributeError(f"module 'ptxtools' has no attribute '{name}'")
    globals()[name] = value
    return value


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("ptxtools")
    except PackageNotFoundError:
        return "0+unknown"


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
