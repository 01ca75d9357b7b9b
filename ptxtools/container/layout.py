"""Sizes and layout: bytes of a variable, offsets of parameters, registers by class (5.1, 5.4)."""

from __future__ import annotations

from collections.abc import Iterable

from ptxtools.ir import Function, Initializer, Scope, Statement, Variable
from ptxtools.isa.types import TYPES
from ptxtools.records import dataclass, field

#: Register classes by width, and one for predicates. 8-bit registers count as 16-bit ones.
REGISTER_CLASSES = ("pred", "b16", "b32", "b64", "b128")
_CLASS_BITS = {8: "b16", 16: "b16", 32: "b32", 64: "b64", 128: "b128"}


def element_bytes(variable: Variable) -> int:
    """Bytes of one element: a scalar, or a vector of 2, 4 or 8."""
    info = TYPES.get(variable.type)
    return (info.bytes if info else 0) * variable.vector


def length_of(init: Initializer | None) -> int:
    return len(init) if isinstance(init, (list, str)) else 1


def size_of(variable: Variable) -> int:
    """Bytes of a variable; an array without a size, or of none, has its initialiser's, or 0 (5.4.2)."""
    count = 1
    for n, size in enumerate(variable.dims):
        count *= size or (length_of(variable.init) if n == 0 and variable.init is not None else 0)
    return max(count, 0) * element_bytes(variable)


def alignment_of(variable: Variable) -> int:
    """The declared alignment, or the natural one: the size of an element, as a power of two (5.4.5)."""
    if variable.align is not None and variable.align > 0:
        return variable.align
    size = element_bytes(variable)
    return 1 << max(size - 1, 0).bit_length()


def align_up(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment


def place(variables: Iterable[Variable]) -> tuple[list[tuple[int, int, int]], int]:
    """(offset, size, alignment) of each variable, one after the other, and the total size."""
    places, end = [], 0
    for variable in variables:
        size, alignment = size_of(variable), alignment_of(variable)
        offset = align_up(end, alignment)
        places.append((offset, size, alignment))
        end = offset + size
    return places, end


@dataclass(slots=True)
class Descriptor:
    """The properties of a function that a launch needs; sizes in bytes.

    params: (offset, size, alignment) of each parameter; registers: declared registers by class.
    """

    params: list[tuple[int, int, int]] = field(default_factory=list)
    param_bytes: int = 0
    registers: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REGISTER_CLASSES, 0))
    shared: int = 0
    local: int = 0
    const: int = 0
    instructions: int = 0


def describe(function: Function, declared: list[Variable] | None = None) -> Descriptor:
    """The descriptor of a function, including its nested scopes; declared: its declarations, if known."""
    result = Descriptor()
    result.params, result.param_bytes = place(function.params)
    if function.body is not None:
        inner = []
        for variable in _declared(function.body) if declared is None else declared:
            if variable.space == "reg":
                _count_register(variable, result.registers)
            else:
                inner.append(variable)
        result.shared = place(v for v in inner if v.space == "shared" and v.linkage != "extern")[1]
        result.local = place(v for v in inner if v.space == "local")[1]
        result.const = place(v for v in inner if v.space == "const")[1]
    return result


def _count_register(variable: Variable, registers: dict[str, int]) -> None:
    info = TYPES.get(variable.type)
    name = "pred" if variable.type == "pred" else _CLASS_BITS.get(info.bits if info else 0)
    if name is not None:
        registers[name] += (1 if variable.count is None else max(variable.count, 0)) * variable.vector


def _declared(scope: Scope) -> list[Variable]:
    found: list[Variable] = []
    pending: list[Statement] = list(reversed(scope.items))
    while pending:
        item = pending.pop()
        if isinstance(item, Variable):
            found.append(item)
        elif isinstance(item, Scope):
            pending.extend(reversed(item.items))
    return found
