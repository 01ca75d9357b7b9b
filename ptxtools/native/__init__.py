"""The native engine: handlers made from the semantics, run by a loop in machine code (docs/architecture.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptxtools.machine.launch import Launch, Outcome
    from ptxtools.machine.products import Products


def run(launch: Launch) -> Outcome:
    """Run a grid to its end. Raises `Trap`; needs llvmlite."""
    from .loop.driver import run as run_native

    launch.provider = _products
    return run_native(launch)


def _products() -> Products:
    from .tiles.products import PRODUCTS

    return PRODUCTS


__all__ = ["run"]
