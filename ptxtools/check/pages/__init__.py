"""The pages of the error rules, for `ptx-lint --explain` and docs/rules.md. Loaded only when one is asked for."""

from __future__ import annotations

from importlib import import_module

_MODULES = ("opcodes", "names", "operands", "versions", "structure")


def pages() -> dict[str, tuple[str, str]]:
    """Title and page of every code of `check` and `isa`."""
    from .format import read_pages

    found: dict[str, tuple[str, str]] = {}
    for name in _MODULES:
        found.update(read_pages(import_module(f"{__name__}.{name}").PAGES))
    return found
