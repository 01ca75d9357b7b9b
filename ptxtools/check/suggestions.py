""" "Did you mean": near misses among the known names."""

from __future__ import annotations

from difflib import get_close_matches

from ptxtools.ir.nodes import Variable
from ptxtools.ir.symbols import Names

_MOST_CANDIDATES = 5000


def near_names(name: str, scope: Names, limit: int = 2) -> list[str]:
    """Declared names and special registers close to `name`, the closest first."""
    candidates: list[str] = []
    where: Names | None = scope
    while where is not None and len(candidates) < _MOST_CANDIDATES:
        candidates.extend(where.declared)
        for base, variable in where.ranges.items():
            if name.startswith(base) and variable.count:
                candidates.append(f"{base}{variable.count - 1}")
        where = where.parent
    if name.startswith("%"):
        from ptxtools.isa import registers

        candidates.extend(registers.SPECIAL)
    return get_close_matches(name, candidates[:_MOST_CANDIDATES], limit, 0.75)


def range_of(name: str, scope: Names) -> Variable | None:
    """The parameterised declaration (`%r<4>`) whose range ends before this name."""
    base = name.rstrip("0123456789")
    if base == name:
        return None
    where: Names | None = scope
    while where is not None:
        found = where.ranges.get(base)
        if found is not None and found.count:
            return found
        where = where.parent
    return None
