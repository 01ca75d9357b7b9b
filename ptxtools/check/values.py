"""The meaning of a name in an operand, reduced to the properties that the rules use.

Values are interned: every rule treats operands with the same value alike, so the verdict on an instruction can be
stored by its opcode and the values of its operands.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from ptxtools.ir.nodes import Alias, BranchTargets, CallPrototype, CallTargets, Function, Label, Variable
from ptxtools.ir.symbols import Names, Symbol

#: An operand's signature: a value, or a tuple that starts with the operand's shape ("{}", "[]", "!", "|", "()").
Signature: TypeAlias = "Value | tuple[object, ...]"

#: The types of textures, samplers and surfaces (5.3); as a kind of operand: the named object.
OPAQUE = frozenset({"texref", "samplerref", "surfref"})


class Value:
    """kind: "reg", "sreg", "memory", "function", "label", "targets", "callees", "prototype", "int", "f32", "f64",
    "sink" or "unknown"; type: element type; vector: elements of a vector register or special register, else 0;
    space: of a variable; role: of a `.param` variable: "in", "out" or "local"; "unified" with that attribute;
    "array" of textures, samplers or surfaces."""

    __slots__ = ("kind", "role", "space", "type", "vector")

    def __init__(self, kind: str, type: str = "", vector: int = 0, space: str = "", role: str = "") -> None:
        self.kind, self.type, self.vector, self.space, self.role = kind, type, vector, space, role

    def __repr__(self) -> str:
        return f"Value({self.kind}, {self.type}, {self.vector}, {self.space}, {self.role})"


_interned: dict[tuple[str, str, int, str, str], Value] = {}


def value(kind: str, type: str = "", vector: int = 0, space: str = "", role: str = "") -> Value:
    """The one value with these properties."""
    key = (kind, type, vector, space, role)
    found = _interned.get(key)
    if found is None:
        found = _interned[key] = Value(*key)
    return found


INT, F32, F64 = value("int", "s64"), value("f32", "f32"), value("f64", "f64")
SINK, UNKNOWN, LABEL = value("sink"), value("unknown"), value("label")
CONSTANTS = {"s64": INT, "u64": INT, "f32": F32, "f64": F64}

_XYZW = {"x": 0, "y": 1, "z": 2, "w": 3, "r": 0, "g": 1, "b": 2, "a": 3}
#: Byte and halfword selectors of the scalar video instructions (9.7.17).
_SELECTOR = re.compile(r"h[0-3]{1,2}|b[0-7]{1,4}")


class Scope(Names):
    """A scope of the checks: `values` caches the meaning of names used in it, `near` the near misses of undeclared
    ones; registers that differ only in their number share an entry."""

    __slots__ = ("near", "roles", "values")

    def __init__(self, parent: Names | None = None) -> None:
        super().__init__(parent)
        self.values: dict[str, Value] = {}
        self.roles: dict[int, str] = {}
        self.near: dict[str, list[str]] = {}

    def declare(self, name: str, symbol: Symbol) -> Symbol | None:
        """As `add`, for a name that may have been looked up before its declaration."""
        if self.values:
            self.values.clear()
        return self.add(name, symbol)

    def inside(self, variable: Variable) -> Symbol | None:
        """A single declaration of this scope that a range `%r<4>` repeats."""
        base, count = variable.name, variable.count or 0
        for name, symbol in self.declared.items():
            number = name[len(base) :]
            if name.startswith(base) and number.isdigit() and number == str(int(number)) and int(number) < count:
                return symbol
        return None

    def resolve(self, name: str) -> Value:
        """The value of a name, with or without a component; remembered."""
        symbol = self.lookup(name)
        if type(symbol) is Variable and symbol.space == "reg" and name != "_":
            found = value("reg", symbol.type, symbol.vector if symbol.vector > 1 else 0)
        else:
            found = self._resolve(name, symbol)
        self.values[name] = found
        return found

    def _resolve(self, name: str, symbol: Symbol | None) -> Value:
        if name == "_":
            return SINK
        if symbol is not None:
            return _of_symbol(symbol, self._role(symbol))
        base, dot, component = name.partition(".")
        if dot and (symbol := self.lookup(base)) is not None:
            return _of_component(_of_symbol(symbol, ""), component)
        if name == "WARP_SZ":
            return INT
        return _special(name)

    def _role(self, symbol: Symbol) -> str:
        if isinstance(symbol, Variable) and symbol.space == "param":
            scope: Names | None = self
            while scope is not None:
                if isinstance(scope, Scope) and id(symbol) in scope.roles:
                    return scope.roles[id(symbol)]
                if isinstance(scope, Scope) and _takes(scope, symbol.name):
                    return "in"  # ptxas still means the parameter when it is stored to
                scope = scope.parent
            return "local"
        return ""


def _takes(scope: Scope, name: str) -> bool:
    """Whether the function whose parameters this scope holds has an input parameter of that name."""
    outer = scope.own(name)
    return outer is not None and scope.roles.get(id(outer)) == "in"


def _of_symbol(symbol: Symbol, role: str) -> Value:
    if isinstance(symbol, Variable):
        vector = symbol.vector if symbol.vector > 1 else 0
        if symbol.space == "reg":
            return value("reg", symbol.type, vector)
        if symbol.attributes and any(name.lstrip(".") == "unified" for name, _ in symbol.attributes):
            role = "unified"
        elif symbol.dims and symbol.type in OPAQUE:
            role = "array"
        return value("memory", symbol.type, vector, symbol.space, role)
    if isinstance(symbol, Label):
        return LABEL
    if isinstance(symbol, (Function, Alias)):
        return value("function", role=symbol.kind if isinstance(symbol, Function) else "func")
    if isinstance(symbol, BranchTargets):
        return value("targets")
    if isinstance(symbol, CallTargets):
        return value("callees")
    assert isinstance(symbol, CallPrototype)
    return value("prototype")


def _of_component(whole: Value, component: str) -> Value:
    """`%v.x` of a vector register; `%r.b0` of a scalar one, for the video instructions."""
    if whole.kind == "reg" and whole.vector:
        # ptxas also accepts .z of a vector of two: only the letter matters.
        return value("reg", whole.type) if component in _XYZW else UNKNOWN
    if whole.kind == "reg" and _SELECTOR.fullmatch(component):
        return value("reg", whole.type, role=component)
    return UNKNOWN


def _special(name: str) -> Value:
    from ptxtools.isa import registers

    found = registers.lookup(name) if name.startswith("%") else None
    if found is None:
        return UNKNOWN
    # The name stays in the value: each special register has its own requirements.
    return value("sreg", found.type, len(found.register.components) if not found.component else 0, role=name)
