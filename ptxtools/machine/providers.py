"""Engines and observers by name. `ptxtools.api` provides them; a device asks for those it uses, and imports none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

if TYPE_CHECKING:
    from .exploring import Frontier
    from .guides import Finder
    from .launch import Launch, Outcome
    from .observers import Maker

T = TypeVar("T")
Engine: TypeAlias = "Callable[[Launch], Outcome]"


class Providers(Generic[T]):
    """Objects by name, each with a function that imports it when it is first asked for."""

    def __init__(self) -> None:
        self._loaders: dict[str, Callable[[], T]] = {}

    def provide(self, name: str, loader: Callable[[], T]) -> None:
        """Make something known; `loader` imports it."""
        self._loaders[name] = loader

    def names(self) -> list[str]:
        """All names, in the order in which they were provided."""
        return list(self._loaders)

    def find(self, name: str) -> T:
        """The object of a name. Raises KeyError if nobody provided it."""
        return self._loaders[name]()


#: The functions that run a launch.
engines: Providers[Engine] = Providers()
#: Makers of the named observers: the run-time checkers.
observers: Providers[Maker] = Providers()
#: What chooses the schedules of a launch that is explored; there is one, "orders".
explorers: Providers[Frontier] = Providers()
#: What finds the executions that the memory model allows of a launch; there is one, "executions".
guides: Providers[Finder] = Providers()
