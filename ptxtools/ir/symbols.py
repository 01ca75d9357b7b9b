"""Names and scopes: the declaration that a name in a function body refers to (4.4, 5.4, 7.1)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TypeAlias

from .nodes import (
    Alias,
    BranchTargets,
    CallPrototype,
    CallTargets,
    Function,
    Instruction,
    Label,
    Module,
    Name,
    Scope,
    Statement,
    Variable,
    Vector,
)
from .references import operand_names

#: What a name can mean.
Symbol: TypeAlias = "Variable | Function | Alias | Label | BranchTargets | CallTargets | CallPrototype"

#: Identity of a register: of its declaration, and its plain name.
RegisterKey: TypeAlias = tuple[int, str]

_LABELLED = (BranchTargets, CallTargets, CallPrototype)


@lru_cache(1 << 14)
def _numbered(name: str) -> tuple[str, int]:
    """A name without the digits at its end, and their number; -1 if it has none, or nine and more."""
    base = name.rstrip("0123456789")
    digits = name[len(base) :]
    return base, int(digits) if 0 < len(digits) <= 9 else -1


class Names:
    """One scope. `lookup` searches it and the scopes around it.

    `declared` maps plain names; `ranges` maps the base of a parameterised declaration (`%r<100>`) to it. A label is
    known in the braces that it stands in, and in those inside them.
    """

    __slots__ = ("_cache", "declared", "parent", "ranges")

    def __init__(self, parent: Names | None = None) -> None:
        self.parent = parent
        self.declared: dict[str, Symbol] = {}
        self.ranges: dict[str, Variable] = {}
        self._cache: dict[str, Symbol | None] = {}

    def own(self, name: str) -> Symbol | None:
        """The meaning of `name` in this scope, ignoring enclosing ones."""
        symbol = self.declared.get(name)
        if symbol is None and self.ranges:
            base, number = _numbered(name)
            found = self.ranges.get(base)
            if found is not None and found.count is not None and 0 <= number < found.count:
                return found
            # `%r12<4>` declares %r120 to %r123: the base itself may end in digits.
            for cut in range(len(base) + 1, len(name)):
                found = self.ranges.get(name[:cut])
                if found is not None and found.count is not None and int(name[cut:]) < found.count:
                    return found
        return symbol

    def lookup(self, name: str) -> Symbol | None:
        """The declaration that `name` refers to here, or None. A component suffix (`%v.x`) is ignored."""
        symbol = self._cache.get(name)
        if symbol is not None or name in self._cache:
            return symbol
        symbol = self.own(name)
        if symbol is None and self.parent is not None:
            symbol = self.parent.lookup(name)
        self._cache[name] = symbol
        return symbol

    def add(self, name: str, symbol: Symbol) -> Symbol | None:
        """Declare; returns the earlier declaration of the same name in this scope, if any (the first one stays)."""
        if isinstance(symbol, Variable) and symbol.count is not None:
            earlier: Symbol | None = self.ranges.get(name)
            if earlier is None:
                self.ranges[name] = symbol
        else:
            earlier = self.declared.get(name)
            if earlier is None:
                self.declared[name] = symbol
        if self._cache:
            self._cache.clear()
        return earlier


class Registers(dict[str, "RegisterKey | None"]):
    """The registers that names refer to in one complete scope, found when asked for; None for anything else."""

    __slots__ = ("_names", "_vectors")

    def __init__(self, names: Names) -> None:
        self._names = names
        self._vectors: dict[tuple[int, bool], tuple[tuple[str, RegisterKey | None, bool], ...]] = {}

    def uses(self, vector: Vector, write: bool) -> tuple[tuple[str, RegisterKey | None, bool], ...]:
        """The names in a vector of the scope, the registers that they are, and `write`: whether it is written."""
        found = self._vectors.get((id(vector), write))
        if found is None:
            parts = [(name, write and type(item) is Name) for item in vector.items for name in operand_names(item)]
            found = self._vectors[id(vector), write] = tuple([(name, self[name], written) for name, written in parts])
        return found

    def __missing__(self, name: str) -> RegisterKey | None:
        symbol, plain = self._names.own(name) or self._names.lookup(name), name
        if symbol is None and "." in name:
            plain = name.partition(".")[0]
            symbol = self._names.lookup(plain)
        key = (id(symbol), plain) if type(symbol) is Variable and symbol.space == "reg" else None
        self[name] = key
        return key


def module_names(module: Module) -> Names:
    """The module's scope. A definition wins over a declaration of the same name."""
    names = Names()
    for item in module.items:
        if isinstance(item, (Variable, Function, Alias)):
            earlier = names.add(item.name, item)
            defined = isinstance(earlier, Function) and isinstance(item, Function) and earlier.body is None
            resolved = isinstance(earlier, Variable) and isinstance(item, Variable) and earlier.linkage == "extern"
            if defined or resolved:
                names.declared[item.name] = item
    return names


def function_names(function: Function, module: Names) -> Names:
    """The scope of a function's parameters, return parameters and all its labels."""
    names = Names(module)
    for parameter in (*function.returns, *function.params):
        names.add(parameter.name, parameter)
    return names


def walk(function: Function, module: Names) -> Iterator[tuple[Statement, Names]]:
    """Each statement of the body in source order, nested scopes opened, with the names known in its scope.

    All declarations and labels of a scope are known in the whole of it: whether a use precedes its declaration is for
    the checks. A nested `Scope` itself is yielded before its content, with the names inside it.
    """
    if function.body is not None:
        yield from _walk(function.body, function_names(function, module))


def _walk(scope: Scope, outer: Names) -> Iterator[tuple[Statement, Names]]:
    names = Names(outer)
    declare(scope, names)
    for item in scope.items:
        if isinstance(item, Scope):
            inner = Names(names)
            declare(item, inner)
            yield item, inner
            yield from _walk(item, names)
        else:
            yield item, names


def declare(scope: Scope, names: Names) -> None:
    """Add the scope's own declarations and labels."""
    for item in scope.items:
        if type(item) is Instruction:
            continue
        if isinstance(item, (Variable, Label)):
            names.add(item.name, item)
        elif isinstance(item, _LABELLED):
            names.add(item.label, item)
