"""Memory that machine code works on: words, and rows that are found by their characters."""

from __future__ import annotations

from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap

from .scan import ROW, ROW_SIZE, ROW_TEXT

_WORD = 4
#: The fewest entries of a table, as a power of two.
_FEWEST = 10


def words(count: int) -> mmap:
    """As many words, all 0; those that nobody writes take no memory."""
    return mmap(-1, (count + 1) * _WORD, flags=MAP_PRIVATE | MAP_ANONYMOUS)


def column(memory: mmap, first: int, step: int, count: int) -> list[int]:
    """Every so many words from the first on."""
    return memoryview(memory).cast("i")[first : step * count : step].tolist()


class Rows:
    """Rows for about so many different texts, and the table in which they are found."""

    def __init__(self, count: int) -> None:
        size = 1 << max(_FEWEST, count.bit_length())
        self._rows = words(size * ROW)
        #: What functions take.
        self.given = self._rows, words(2 * size), 2 * size - 1

    def column(self, field: int, count: int) -> list[int]:
        """A field of the first rows."""
        return column(self._rows, field, ROW, count)

    def texts(self, text: str, count: int, before: int = 0) -> list[str]:
        """The characters of the first rows, with as many before them. text: in which they stand."""
        begins, sizes = self.column(ROW_TEXT, count), self.column(ROW_SIZE, count)
        return [text[at - before : at + size] for at, size in zip(begins, sizes, strict=True)]
