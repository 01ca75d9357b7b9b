"""The engines that run a launch, by name. `ptxtools.api` provides them; a device asks for one when it launches."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from .launch import Launch, Outcome

Engine: TypeAlias = "Callable[[Launch], Outcome]"

_loaders: dict[str, Callable[[], Engine]] = {}


def provide(name: str, loader: Callable[[], Engine]) -> None:
    """Make an engine known; `loader` imports it when it is first asked for."""
    _loaders[name] = loader


def names() -> list[str]:
    """Names of the engines that were provided."""
    return sorted(_loaders)


def find(name: str) -> Engine:
    """The function that runs a launch. Raises KeyError for a name that nobody provided."""
    return _loaders[name]()
