"""The section `.ptx`: all tables of a container, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from . import elf
from .codec import encode_numbers, leading_numbers
from .errors import Damage
from .note import FORMAT

SECTION = ".ptx"
#: The tables that every container has, in their order.
TABLES = ("strings", "functions", "records", "operands", "shapes", "lines", "repeats")
#: The table after them: names and line numbers of the original text (`-g`).
ORIGINS = "origins"
_MOST_TABLES = 64


def _tables_of_format(major: int) -> tuple[str, ...]:
    return TABLES if major >= 3 else TABLES[:-1]


def encode_tables(tables: Sequence[bytes]) -> bytes:
    """The section's content: the number of tables, the size of each, the tables."""
    return encode_numbers([len(tables), *map(len, tables)]) + b"".join(tables)


def decode_tables(data: memoryview, major: int = FORMAT[0]) -> dict[str, memoryview]:
    """The tables by name; those of newer minor versions have none. Raises Damage."""
    names = _tables_of_format(major)
    (count,), at = leading_numbers(data[:16], 1)
    if not len(names) <= count <= _MOST_TABLES:
        raise Damage(f"it has {count} tables")
    sizes, used = leading_numbers(data[at : at + 10 * count], count)
    starts = list(accumulate((at + used, *sizes)))
    if starts[-1] != len(data):
        raise Damage("the tables are truncated")
    return {name: data[starts[n] : starts[n + 1]] for n, name in enumerate((*names, ORIGINS)) if n < count}


def tables_of(file: elf.ElfFile, major: int) -> dict[str, memoryview]:
    """The tables of a container by name. In format 1 each has a section of its own. Raises Damage."""
    if major >= 2:
        return decode_tables(file.content(file.find(SECTION)), major)
    known = _tables_of_format(major)
    names = [name for name in (*known, ORIGINS) if any(s.name == f"{SECTION}.{name}" for s in file.sections)]
    tables = {name: file.content(file.find(f"{SECTION}.{name}")) for name in names}
    missing = [name for name in known if name not in tables]
    if missing:
        raise Damage(f"there is no section {SECTION}.{missing[0]}")
    return tables
