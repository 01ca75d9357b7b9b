"""Which file serves which kind of event (`ptxtools.engine.events`): loaded when a kernel first needs it."""

from __future__ import annotations

from importlib import import_module

#: Modules of this package by the kind of operation that they serve.
HOMES: dict[str, str] = {}


def load(kind: str) -> None:
    """Import the file that serves a kind of event; nothing if there is none."""
    home = HOMES.get(kind)
    if home is not None:
        import_module(f"ptxtools.sim.{home}")
