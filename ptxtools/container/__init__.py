"""The `.ptxo` container: an ELF64 file that holds the intermediate representation of a module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .detect import detect
    from .errors import EXPLANATIONS
    from .read import read
    from .write import write

_HOMES = {"write": "write", "without_debug": "write", "read": "read", "detect": "detect", "EXPLANATIONS": "errors"}

__all__ = ["EXPLANATIONS", "detect", "read", "write"]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'ptxtools.container' has no attribute '{name}'")
    return getattr(import_module(f"ptxtools.container.{_HOMES[name]}"), name)
