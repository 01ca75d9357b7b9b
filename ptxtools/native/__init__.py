"""The native engine: handlers made from the semantics, run by a loop in machine code (docs/architecture.md)."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ptxtools.machine.launch import Launch, Outcome
    from ptxtools.machine.products import Products


def run(launch: Launch) -> Outcome:
    """Run a grid to its end. Raises `Trap`; needs llvmlite."""
    launch.provider = _products
    return _driver()(launch)


@cache
def _driver() -> Callable[[Launch], Outcome]:
    from .loop.driver import run as run_native

    return run_native


def _products() -> Products:
    from .tiles.products import PRODUCTS

    return PRODUCTS


__all__ = ["run"]
