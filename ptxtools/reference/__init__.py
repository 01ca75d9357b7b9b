"""The reference engine: a `Program` interpreted with NumPy. Slow and simple; the oracle for the native engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .run import run as _run

if TYPE_CHECKING:
    from ptxtools.machine.launch import Launch, Outcome
    from ptxtools.machine.products import Products


def run(launch: Launch) -> Outcome:
    """Run a grid to completion. Raises `Trap`."""
    launch.provider = _products
    return _run(launch)


def _products() -> Products:
    from ptxtools.machine.products import Products

    return Products()


__all__ = ["run"]
