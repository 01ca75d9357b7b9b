"""The `.ptxo` container: an ELF64 file with the intermediate representation of a module; and its linker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import EXPLANATIONS
    from .headers import declared_as
    from .linker import link
    from .reader import decode_all, read
    from .summary import describe_info, info
    from .writer import without_debug, write

_HOMES = {
    "errors": ("EXPLANATIONS",),
    "summary": ("describe_info", "info"),
    "headers": ("declared_as",),
    "linker": ("link",),
    "reader": ("decode_all", "read"),
    "writer": ("without_debug", "write"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "EXPLANATIONS",
    "declared_as",
    "decode_all",
    "describe_info",
    "info",
    "link",
    "read",
    "without_debug",
    "write",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOME_OF:
        raise AttributeError(f"module 'ptxtools.container' has no attribute '{name}'")
    value = getattr(import_module(f"ptxtools.container.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value
