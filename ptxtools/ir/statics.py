"""Variables in .global and .const that functions declare in their bodies: one instance of each, shared by all threads
(5.4)."""

from __future__ import annotations

from collections.abc import Iterator

from .cfg import scopes_of
from .nodes import Function, Module, Variable
from .symbols import Names, module_names, walk

#: State spaces whose variables live as long as the module does, wherever they are declared.
STATIC_SPACES = ("global", "const")


def statics_of(function: Function) -> list[tuple[str, Variable]]:
    """The statics of one function, each with its name on a device: `function.name`, which no variable of the module can
    have; further ones of that name, in other braces, are `function.name.2` and so on."""
    found: list[tuple[str, Variable]] = []
    seen: dict[str, int] = {}
    for scope in scopes_of(function):
        for item in scope.items:
            if isinstance(item, Variable) and item.space in STATIC_SPACES:
                number = seen[item.name] = seen.get(item.name, 0) + 1
                suffix = f".{number}" if number > 1 else ""
                found.append((f"{function.name}.{item.name}{suffix}", item))
    return found


def module_statics(module: Module) -> Iterator[tuple[str, Variable, dict[str, str]]]:
    """The statics of all functions, each with its name on a device, and the device names that its initialiser may refer
    to, where they differ."""
    outer: Names | None = None
    for function in module.functions:
        found = statics_of(function) if function.body is not None else []
        if not found:
            continue
        outer = outer or module_names(module)
        names = {id(variable): name for name, variable in found}
        scopes = {id(item): scope for item, scope in walk(function, outer) if isinstance(item, Variable)}
        for name, variable in found:
            scope = scopes[id(variable)]
            means = {other.name: names.get(id(scope.lookup(other.name)), other.name) for _, other in found}
            yield name, variable, means
