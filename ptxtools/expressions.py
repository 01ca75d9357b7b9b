"""Regular expressions that an earlier process compiled: a start compiles about a hundred, a quarter of its time.

`re` looks a pattern up in a dictionary of its own before it compiles it. Behind that dictionary stands a table, kept
where the modules' own code is (`cache.code_places`), with the compiled code of the patterns that modules compile when
they are loaded. `_sre`, which makes
an expression of code, checks the code. What `re` hands to it is noted as it compiles, so that a first start compiles
nothing twice. A Python without these parts compiles as ever.
"""

from __future__ import annotations

import marshal
import re
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

from . import cache

#: Bytes of the table, and the number of expressions in it.
_MOST_BYTES = 1 << 22
_MOST = 2000
#: Functions that compile what does not depend on any input.
_FIXED = frozenset({"<module>", "_form_master_re"})

#: Where `re` looks for them.
_kept = "_cache2" if hasattr(re, "_cache2") else "_cache"

#: By pattern and flags: all flags, the code, the number of groups, their names.
Table = dict[tuple[str, int], tuple[int, bytes, int, dict[str, int]]]


class Known(dict[Any, Any]):
    """Compiled expressions by type, pattern and flags, as `re` keeps them. What is missing is made of the table, or
    `wanted` there."""

    def __init__(self, table: Table) -> None:
        super().__init__()
        self.table = table
        #: What modules have compiled that the table lacks; the next one to be noted.
        self.wanted: Table = {}
        self.next: tuple[str, int] | None = None

    def __missing__(self, key: Any) -> Any:
        kind, pattern, flags = key[0], key[1], int(key[2])  # some versions look for flags that are no plain number
        row = self.table.get((pattern, flags)) if kind is str else None
        if row is not None:
            try:
                made = self[key] = _made(pattern, row)
            except Exception:  # whatever it is, `re` compiles it
                del self.table[pattern, flags]
            else:
                return made
        elif kind is str and _caller() in _FIXED:
            self.next = (pattern, flags)
            _listen()
        raise KeyError(key)


def _listen() -> None:
    """Note what `re` makes of patterns when it asks `_sre` for their expressions."""
    from array import array
    from re import _compiler  # type: ignore[attr-defined]

    parts = getattr(_compiler, "_sre", None)
    if not isinstance(parts, ModuleType):  # it is noted already; or a Python with other parts
        return

    def compile_noted(pattern: Any, flags: int, code: list[int], groups: int, names: Any, index: Any) -> Any:
        known = getattr(re, _kept)
        if isinstance(known, Known) and known.next is not None:
            if known.next[0] == pattern:
                known.wanted[known.next] = (int(flags), array("I", code).tobytes(), groups, dict(names))
            known.next = None
        return parts.compile(pattern, flags, code, groups, names, index)

    _compiler._sre = SimpleNamespace(**{**vars(parts), "compile": compile_noted})


def _made(pattern: str, row: tuple[int, bytes, int, dict[str, int]]) -> Any:
    """The expression of a row."""
    import _sre  # type: ignore[import-not-found]

    flags, code, groups, names = row
    index: list[str | None] = [None] * (groups + 1)
    for name, number in names.items():
        index[number] = name
    return _sre.compile(pattern, flags, memoryview(code).cast("I").tolist(), groups, names, tuple(index))


def _caller() -> str:
    """The name of the function that wants an expression of `re`."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__") == "re":
        frame = frame.f_back
    return frame.f_code.co_name


def use_table() -> None:
    """Let `re` find what earlier processes compiled."""
    known = getattr(re, _kept, None)
    if isinstance(known, dict) and not isinstance(known, Known):
        found = Known(_read())
        found.update(known)
        setattr(re, _kept, found)


def leave_table() -> None:
    """Leave to later processes what this one compiled when it loaded modules."""
    known = getattr(re, _kept, None)
    if not isinstance(known, Known) or not known.wanted:
        return
    table = _read()
    table.update(known.wanted)
    while len(table) > _MOST:
        del table[next(iter(table))]
    for path in _places():
        if cache.write_sealed(path, _key(), marshal.dumps(table), cache.CODE_MODE):
            return


def _read() -> Table:
    """The table of earlier processes."""
    found = (cache.read_sealed(path, _key(), _MOST_BYTES) for path in _places())
    content = next(filter(None, found), None)
    try:
        table: Table = marshal.loads(content) if content else {}
    except (EOFError, ValueError, TypeError):
        return {}
    return table if isinstance(table, dict) else {}


def _places() -> list[str]:
    """The table's files."""
    return cache.code_places(f"expressions-{sys.implementation.cache_tag}.bin")


def _key() -> str:
    """Code is for one Python."""
    return f"{sys.version} {sys.byteorder}"
