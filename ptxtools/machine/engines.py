"""The engines that run a launch, by name. `ptxtools.api` provides them; a device selects one at a launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from .launch import Launch, Outcome

Engine: TypeAlias = "Callable[[Launch], Outcome]"

_loaders: dict[str, Callable[[], Engine]] = {}


def provide(name: str, loader: Callable[[], Engine]) -> None:
    """Register an engine; `loader` imports it on first use."""
    _loaders[name] = loader


def names() -> list[str]:
    """Names of the registered engines."""
    return sorted(_loaders)


def find(name: str) -> Engine:
    """The function that runs a launch. Raises KeyError for an unknown name."""
    return _loaders[name]()
