"""Tables of the handlers that are cases of one function (`joint`), as object code has them.

A process that loads such code needs this module only.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping

from . import objects

#: What begins the symbols of tables.
_TABLE = "cases."


def table_of(names: Iterable[str]) -> str:
    """The symbol of the table for some handlers, by their names."""
    return f"{_TABLE}{objects.fingerprint(names)}"


def text_of(names: Iterable[str], numbers: Mapping[str, int]) -> str:
    """The table as IR. names: all handlers of the module; numbers: of those that are cases."""
    table = " ".join(f"{name} {number}" for name, number in numbers.items())
    return f'@{table_of(names)} = constant [{len(table) + 1} x i8] c"{table}\\00"'


def read(symbols: Mapping[str, int]) -> dict[str, int]:
    """The numbers by the names of handlers, from all tables among symbols with their addresses."""
    found: dict[str, int] = {}
    for symbol, address in symbols.items():
        if symbol.startswith(_TABLE):
            words = ctypes.string_at(address).decode().split()
            found.update(zip(words[::2], map(int, words[1::2]), strict=True))
    return found
