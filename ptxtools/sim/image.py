"""A module on a device: where its .global and .const variables lie, and what they hold at first (5.4.4)."""

from __future__ import annotations

import struct
from collections.abc import Callable
from math import prod

from ptxtools.diagnostics import Diagnostic, LaunchError, PtxError
from ptxtools.engine.layout import align_up, function_addresses, variable_alignment, variable_size
from ptxtools.ir import Immediate, Initializer, Module, SymbolValue, Variable
from ptxtools.ir.symbols import module_names
from ptxtools.isa.types import TYPES

from .arena import Arena

_FLOAT_FORMAT = {"f16": "<e", "f32": "<f", "f64": "<d"}
_BITS_FORMAT = {"f32": "<I", "f64": "<Q"}


class Image:
    """The variables of a module in device memory. Constants share one allocation, so that they form one range.

    Raises `OutOfMemory`, and `PtxError` for an initialiser that names something without an address.
    """

    def __init__(self, module: Module, arena: Arena) -> None:
        self.module = module
        self._arena = arena
        self._names = module_names(module)
        self.addresses: dict[str, int] = {}
        self.const: tuple[int, int] = (0, 0)
        placed = self._defined()
        self._place_constants([v for v in placed if v.space == "const"])
        for variable in placed:
            if variable.space == "global":
                size, alignment = variable_size(variable), variable_alignment(variable)
                self.addresses[variable.name] = arena.allocate(size, alignment, zero=True).address
        self.variables = {variable.name: variable for variable in placed}
        self.functions = function_addresses(module)
        for variable in placed:
            if variable.init is not None and TYPES[variable.type].kind != "opaque":
                self.write_initial(variable)

    def _defined(self) -> list[Variable]:
        """Every variable with storage, the definition where there is one beside declarations."""
        found: dict[str, Variable] = {}
        for variable in self.module.variables:
            if variable.space in ("global", "const"):
                symbol = self._names.lookup(variable.name)
                if isinstance(symbol, Variable) and symbol.linkage != "extern":
                    found[variable.name] = symbol
        return list(found.values())

    def _place_constants(self, constants: list[Variable]) -> None:
        offset, offsets = 0, {}
        for variable in constants:
            offset = align_up(offset, variable_alignment(variable))
            offsets[variable.name] = offset
            offset += max(variable_size(variable), 1)
        if not constants:
            return
        alignment = max(variable_alignment(v) for v in constants)
        base = self._arena.allocate(offset, alignment, zero=True).address
        self.addresses.update({name: base + at for name, at in offsets.items()})
        self.const = (base, base + offset)

    def address(self, name: str) -> int:
        """Device address of a module variable; raises `PtxError` for one that is declared but not defined."""
        found = self.addresses.get(name)
        if found is not None:
            return found
        symbol = self._names.lookup(name)
        if isinstance(symbol, Variable):
            what = f"variable '{name}' is declared .extern and defined nowhere: link the module that defines it"
            raise PtxError([Diagnostic("PTX811", what, symbol.name_span, self.module.source, section="11.6.1")])
        raise LaunchError(f"the module has no variable '{name}'")

    def write_initial(self, variable: Variable) -> None:
        """Put a variable back to its initialiser."""
        data = initial_bytes(variable, lambda value: self._symbol(variable, value))
        self._arena.view(self.addresses[variable.name], len(data))[:] = data

    def _symbol(self, variable: Variable, value: SymbolValue) -> int:
        """The number that an address in an initialiser stands for; generic and global addresses are the same here."""
        if value.name in self.addresses or isinstance(self._names.lookup(value.name), Variable):
            number = self.address(value.name) + value.offset
        elif value.name in self.functions:
            number = self.functions[value.name] + value.offset
        else:
            what = f"'{value.name}' in the initialiser of '{variable.name}' has no address"
            raise PtxError([Diagnostic("PTX811", what, variable.name_span, self.module.source, section="5.4.4")])
        if value.mask is not None:
            shift = (value.mask & -value.mask).bit_length() - 1
            number = (number & value.mask) >> max(shift, 0)
        return number


def initial_bytes(variable: Variable, symbol: Callable[[SymbolValue], int]) -> bytes:
    """What a variable holds at first; elements without an initialiser are zero."""
    data = bytearray(variable_size(variable))
    dims = [dim or 0 for dim in variable.dims]
    if variable.vector > 1:
        dims.append(variable.vector)
    _fill(data, 0, variable.type, tuple(dims), variable.init, symbol)
    return bytes(data[: variable_size(variable)])


def _fill(
    data: bytearray,
    at: int,
    type_: str,
    dims: tuple[int, ...],
    init: Initializer | None,
    symbol: Callable[[SymbolValue], int],
) -> int:
    """Write one initialiser at offset `at`; the offset behind what it fills. Braces follow the dimensions (5.4.4)."""
    element = TYPES[type_].bytes
    if isinstance(init, list):
        inner, step = dims[1:], element * prod(dims[1:])
        position = at
        for item in init:
            nested = isinstance(item, list)
            position = _fill(data, position, type_, inner if nested else (), item, symbol)
            if nested:
                position = align_up(position - at, step) + at if step else position
        return position
    if isinstance(init, (Immediate, SymbolValue)):
        data[at : at + element] = _scalar(type_, init, symbol)
    return at + element


def _scalar(type_: str, init: Immediate | SymbolValue, symbol: Callable[[SymbolValue], int]) -> bytes:
    size = TYPES[type_].bytes
    if isinstance(init, SymbolValue):
        return (symbol(init) & ((1 << (8 * size)) - 1)).to_bytes(size, "little")
    if type_ in _FLOAT_FORMAT and init.type == type_ and init.type in _BITS_FORMAT:
        return struct.pack(_BITS_FORMAT[init.type], init.value)  # the bits, so that a NaN keeps its payload
    if type_ in _FLOAT_FORMAT:
        return _pack_float(_FLOAT_FORMAT[type_], _number(init))
    return (init.value & ((1 << (8 * size)) - 1)).to_bytes(size, "little")


def _number(init: Immediate) -> float:
    if init.type in _BITS_FORMAT:
        bits = struct.pack(_BITS_FORMAT[init.type], init.value)
        value: float = struct.unpack(_FLOAT_FORMAT[init.type], bits)[0]
        return value
    return float(init.value)


def _pack_float(form: str, value: float) -> bytes:
    try:
        return struct.pack(form, value)
    except OverflowError:
        return struct.pack(form, float("inf") if value > 0 else float("-inf"))
