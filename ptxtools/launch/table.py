"""Read TOML tables strictly: every key has a type, and unknown keys are errors."""

from __future__ import annotations

from typing import Any

from .errors import SpecError, nearest

_MOST_BITS = 128
_KINDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false", dict: "a table", list: "a list"}


class Table:
    """A TOML table at `path` of `file`. The `take` methods mark keys as known; `finish` reports the others."""

    def __init__(self, values: dict[str, Any], file: str, path: str = "") -> None:
        self.values, self.file, self.path = values, file, path
        self._known: set[str] = set()
        for key, value in values.items():
            if _is_endless(value):
                raise self.error("has a number that no type can hold", key)

    def error(self, message: str, key: str = "") -> SpecError:
        """An error about a key of this table."""
        where = ".".join(part for part in (self.path, key) if part)
        return SpecError(f"{self.file}: {where + ': ' if where else ''}{message}", located=True)

    def has(self, key: str) -> bool:
        self._known.add(key)
        return key in self.values

    def take(self, key: str, kind: type, default: Any = None) -> Any:
        """The value of a key, of that TOML type (integers are also numbers); raises `SpecError`."""
        if not self.has(key):
            return default
        value = self.values[key]
        fits = isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool)
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if not fits:
            raise self.error(f"must be {_KINDS[kind]}, not {value!r}", key)
        return value

    def text(self, key: str, default: str = "") -> str:
        value: str = self.take(key, str, default)
        return value

    def whole(self, key: str, default: int | None = None, least: int = 0) -> int | None:
        """A whole number of at least `least`."""
        value: int | None = self.take(key, int, default)
        if key in self.values and value is not None and value < least:
            raise self.error(f"must be at least {least}, not {value}", key)
        return value

    def shape(self, key: str) -> tuple[int, int, int] | None:
        """A list of one to three whole numbers, or one number."""
        if not self.has(key):
            return None
        value = self.values[key]
        sizes = value if isinstance(value, list) else [value]
        if not 1 <= len(sizes) <= 3 or not all(isinstance(s, int) and not isinstance(s, bool) for s in sizes):
            raise self.error(f"must be a list of one to three whole numbers, not {value!r}", key)
        x, y, z = (*sizes, 1, 1)[:3]
        return x, y, z

    def table(self, key: str) -> Table | None:
        values = self.take(key, dict)
        return None if values is None else Table(values, self.file, f"{self.path}.{key}" if self.path else key)

    def tables(self, key: str) -> list[tuple[str, Table]]:
        """The tables in a table, by name: `[key.NAME]`."""
        outer = self.table(key)
        if outer is None:
            return []
        for name in outer.values:
            if not isinstance(outer.values[name], dict):
                raise outer.error("must be a table", name)
        return [(name, Table(values, self.file, f"{outer.path}.{name}")) for name, values in outer.values.items()]

    def finish(self) -> None:
        """Raise `SpecError` for a key that was not asked for."""
        for key in self.values:
            if key not in self._known:
                raise self.error(f"unknown key '{key}'{nearest(key, self._known)}")


def _is_endless(value: Any) -> bool:
    """Whether a number is too large for every type: hexadecimal ones may have any length."""
    if isinstance(value, list):
        return any(map(_is_endless, value))
    return isinstance(value, int) and value.bit_length() > _MOST_BITS
