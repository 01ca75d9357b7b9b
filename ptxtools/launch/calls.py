"""Calls of the library that launch a kernel: their options, with the types that Python callers may use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Any

from ptxtools.machine.options import LaunchOptions, Option, RunOptions, options_of
from ptxtools.records import dataclass
from ptxtools.sim.device import Request
from ptxtools.sim.shape import dim3

from .errors import WrongTypeError, demand, number, whole

if TYPE_CHECKING:
    from .host import Kernel

#: What every call says; the same and what many say.
_SHAPE = "grid", "block"
_SIZES = (*_SHAPE, "shared")
#: Types of options, and how they are called when a value has another.
_TYPES: dict[str, tuple[Any, str]] = {
    "word": (str, "a word"),
    "target": (str, "a name such as 'sm_90a', or None"),
    "checks": (Iterable, "a list of names"),
    "function": (Callable, "a function"),
    "objects": (Iterable, "a list of objects"),
}


@dataclass(eq=False, repr=False)
class _First:
    """What stands before the options in a call."""

    kernel: Kernel


@dataclass(eq=False, repr=False)
class Call(RunOptions, LaunchOptions, _First):
    """The arguments of `Device.launch`: kernel, grid, block, args, and every other option by its name."""

    args: Sequence[Any]

    def request(self, params: bytes) -> Request:
        """The requested launch. params: the parameter block. Raises `LaunchError`."""
        entry = self.kernel.entry
        if self._has_defaults(_SHAPE):  # most often
            grid, block = dim3(self.grid, "grid"), dim3(self.block, "block")
            return Request(kernel=entry, grid=grid, block=block, params=params)
        try:
            options = {**typed_values(LaunchOptions, self), **typed_values(RunOptions, self)}
        except TypeError as error:
            raise WrongTypeError(str(error)) from None
        return Request(kernel=entry, params=params, **options)

    def has_only_sizes(self) -> bool:
        """Whether no option has a value of its own but the shape and the size of dynamic shared memory."""
        return self._has_defaults(_SIZES)

    def _has_defaults(self, but: tuple[str, ...]) -> bool:
        rest, defaults = _rest(but)
        return all(map(is_, rest(self), defaults))


@cache
def _rest(but: tuple[str, ...]) -> tuple[Callable[[object], tuple[Any, ...]], list[Any]]:
    """What gives the options of a call but some, and their defaults."""
    options = [one for one in (*options_of(LaunchOptions), *options_of(RunOptions)) if one.name not in but]
    return attrgetter(*(one.name for one in options)), [one.default for one in options]


def typed_values(described: type, given: Any) -> dict[str, Any]:
    """The options (`DeviceOptions`, …) in an object, as the simulator takes them. Raises TypeError for a value of the
    wrong type, `LaunchError` for one that is no shape."""
    defaults, options = _defaults(described)
    values = defaults.copy()
    for name, default, option in options:
        value = getattr(given, name)
        if value is not default:
            values[name] = _typed(option, value)
    return values


@cache
def _defaults(described: type) -> tuple[dict[str, Any], list[tuple[str, Any, Option]]]:
    """The defaults of options by name; each option with its name and default."""
    options = options_of(described)
    return {one.name: one.default for one in options}, [(one.name, one.default, one) for one in options]


def _typed(option: Option, value: Any) -> Any:
    if option.kind == "shape":
        return dim3(value, option.name)
    if option.kind == "whole":
        return whole(value, option.name)
    if option.kind == "seconds":
        return number(value, option.name)
    if option.kind == "flag":
        return bool(value)
    if option.kind == "file" and isinstance(value, str | os.PathLike):
        return os.fspath(value)
    if option.kind == "file":
        from ptxtools.diagnostics.suppressions import Suppressions

        demand(value, Suppressions, option.name, "the name of a file, or what was read from one")
        return value
    kind, wanted = _TYPES[option.kind]
    demand(value, kind, option.name, wanted)
    return value
