"""A module's `.version` and `.target`."""

from __future__ import annotations

from ptxtools.ir import Header, Item, Module


def declared_as(module: Module, target: str | None, version: tuple[int, int] | None) -> Module:
    """The module with `.target` and `.version` replaced if given; the same module if neither is."""
    if target is None and version is None:
        return module
    items: list[Item] = []
    for item in module.items:
        if isinstance(item, Header) and item.name == ".target" and target is not None:
            item = Header(".target", (target, *module.target_options), item.span)
        elif isinstance(item, Header) and item.name == ".version" and version is not None:
            item = Header(".version", (f"{version[0]}.{version[1]}",), item.span)
        items.append(item)
    return Module(items, module.source)
