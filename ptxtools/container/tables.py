"""The section `.ptx`: all tables of a container, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from . import elf
from .codec import encode_numbers, leading_numbers
from .errors import Damage

SECTION = ".ptx"
#: The tables that every container has, in their order.
TABLES = ("strings", "functions", "records", "operands", "shapes", "lines")
#: The table behind them: names and line numbers of the original text (`-g`).
ORIGINS = "origins"
_MOST_TABLES = 64


def encode_tables(tables: Sequence[bytes]) -> bytes:
    """The section's content: how many tables there are, the size of each, the tables."""
    return encode_numbers([len(tables), *map(len, tables)]) + b"".join(tables)


def decode_tables(data: memoryview) -> dict[str, memoryview]:
    """The tables by name; those of newer minor versions have none. Raises Damage."""
    (count,), at = leading_numbers(data[:16], 1)
    if not len(TABLES) <= count <= _MOST_TABLES:
        raise Damage(f"it has {count} tables")
    sizes, used = leading_numbers(data[at : at + 10 * count], count)
    starts = list(accumulate((at + used, *sizes)))
    if starts[-1] != len(data):
        raise Damage("the tables are cut off")
    return {name: data[starts[n] : starts[n + 1]] for n, name in enumerate((*TABLES, ORIGINS)) if n < count}


def tables_of(file: elf.ElfFile, major: int) -> dict[str, memoryview]:
    """The tables of a container by name. In format 1 each has a section of its own. Raises Damage."""
    if major >= 2:
        return decode_tables(file.content(file.find(SECTION)))
    names = [name for name in (*TABLES, ORIGINS) if any(s.name == f"{SECTION}.{name}" for s in file.sections)]
    tables = {name: file.content(file.find(f"{SECTION}.{name}")) for name in names}
    missing = [name for name in TABLES if name not in tables]
    if missing:
        raise Damage(f"there is no section {SECTION}.{missing[0]}")
    return tables
