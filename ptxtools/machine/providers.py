"""What runs a launch, and who is told of it, by name: engines and observers. `ptxtools.api` provides them; a device
asks for those that it is to use, and knows none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

if TYPE_CHECKING:
    from .launch import Launch, Outcome
    from .observers import Maker

T = TypeVar("T")
Engine: TypeAlias = "Callable[[Launch], Outcome]"


class Providers(Generic[T]):
    """Things by name, each with what imports it when it is first asked for."""

    def __init__(self) -> None:
        self._loaders: dict[str, Callable[[], T]] = {}

    def provide(self, name: str, loader: Callable[[], T]) -> None:
        """Make something known; `loader` imports it."""
        self._loaders[name] = loader

    def names(self) -> list[str]:
        """Names of all that was provided, in that order."""
        return list(self._loaders)

    def find(self, name: str) -> T:
        """What goes by a name. Raises KeyError for one that nobody provided."""
        return self._loaders[name]()


#: The functions that run a launch.
engines: Providers[Engine] = Providers()
#: What makes the observers that have names: the run-time checkers.
observers: Providers[Maker] = Providers()
