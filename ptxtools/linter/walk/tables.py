"""Tables of functions that a walk calls through: variables of the module that are initialised with their addresses."""

from __future__ import annotations

from typing import cast

from ptxtools.ir.nodes import Function, SymbolValue, Variable
from ptxtools.isa.types import TYPES

from ..facts import Line, ModuleFacts
from ..values import THREADS, Value
from .computing import reason_of, unknown

_ENTRY = "entry of a table"


class Tables:
    """What the module's tables hold, if nobody changes them."""

    def __init__(self, module: ModuleFacts) -> None:
        self._functions = {function.name: function for function in module.tabled}
        self._tables: dict[int, Variable] = {}  # those that have been loaded from, by identity

    def load(self, line: Line, address: Value) -> Value | None:
        """What a load from a table gives; None if it is from none."""
        name = address.variable if len(address.terms) == 1 else None
        symbol = line.names.lookup(name) if name is not None else None
        info = TYPES.get(line.plan.op.type or "") if line.plan.op is not None else None
        if not isinstance(symbol, Variable) or symbol.space not in ("global", "const") or info is None:
            return None
        if not isinstance(symbol.init, list) or symbol.type not in TYPES or info.bytes != TYPES[symbol.type].bytes:
            return None
        self._tables[id(symbol)] = symbol
        return unknown(not isinstance(address.each, int), _ENTRY, id(symbol), Value((), address.each))

    def entries(self, value: Value) -> list[Function | None]:
        """The function whose address each thread has; None where that is not known."""
        if len(value.terms) == 1 and value.terms[0][0][0] == "&" and value.terms[0][1] == 1 and value.each == 0:
            return [self._functions.get(value.terms[0][0][1:])] * THREADS
        why = reason_of(value)
        symbol, places = self._tables.get(cast("int", why[1])) if why[:1] == (_ENTRY,) else None, why[-1:]
        if symbol is None or not isinstance(symbol.init, list) or not isinstance(places[0], Value):
            return [None] * THREADS
        size, found = TYPES[symbol.type].bytes, list[Function | None]()
        for number in places[0].numbers:
            place, rest = divmod(number, size)
            entry = symbol.init[place] if not rest and 0 <= place < len(symbol.init) else None
            plain = isinstance(entry, SymbolValue) and not entry.offset and entry.mask is None
            found.append(self._functions.get(entry.name) if plain and isinstance(entry, SymbolValue) else None)
        return found
