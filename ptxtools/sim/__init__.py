"""The machine around an engine: devices and their limits, memory, module variables, launches, residency."""

from .arena import Allocation, Arena, OutOfMemory
from .device import Device, RunResult
from .limits import LIMITS, DeviceLimits, limits_of

__all__ = ["LIMITS", "Allocation", "Arena", "Device", "DeviceLimits", "OutOfMemory", "RunResult", "limits_of"]
