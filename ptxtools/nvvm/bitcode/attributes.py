"""Attributes: groups of them, and the lists of groups that functions and calls name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from . import names
from .names import quoted
from .stream import GROUPS, LISTS, BitcodeError, Block
from .types import TypeTable
from .values import signed

#: What a group of a list is for: the result, the function itself, or the parameter before its number.
RESULT, _FUNCTION = 0, 0xFFFFFFFF
_GROUP, _LIST = 3, 2
#: How an attribute is written: a word, a word with a number, a text, a text with a value, a word without and with a
#: type, a range, ranges.
_WORD, _NUMBER, _TEXT, _VALUED, _NO_TYPE, _TYPE, _RANGE, _RANGES = 0, 1, 3, 4, 5, 6, 7, 8


class Attributes:
    def __init__(self, module: Block, table: TypeTable) -> None:
        self._table = table
        self._groups: dict[int, tuple[int, list[str]]] = {}
        self._lists: list[list[int]] = []
        self._used: dict[int, None] = {}
        for block in module.blocks(GROUPS):
            for record in block.records:
                if record.code == _GROUP and len(record.values) > 1:
                    number, place, *rest = record.values
                    self._groups[number] = place, list(self._words(rest))
        for block in module.blocks(LISTS):
            self._lists += [record.values for record in block.records if record.code == _LIST]

    def of(self, number: int, place: int) -> str:
        """The attributes of the result or a parameter (from 1), each with a blank before it. number: of the list, from
        1; 0 is none."""
        found = [word for group in self._named(number) if group[0] == place for word in group[1]]
        return "".join(f" {word}" for word in found)

    def of_function(self, number: int) -> str:
        """The groups of the function, with a blank before."""
        found = ""
        for group in self._lists[number - 1] if 0 < number <= len(self._lists) else ():
            if self._groups.get(group, (0,))[0] == _FUNCTION:
                self._used[group] = None
                found += f" #{group}"
        return found

    def lines(self) -> Iterator[str]:
        """The groups that were named."""
        for group in self._used:
            yield f"attributes #{group} = {{ {' '.join(self._groups[group][1])} }}"

    def _named(self, number: int) -> list[tuple[int, list[str]]]:
        if not 0 <= number <= len(self._lists):
            raise BitcodeError(f"list {number} of attributes is not defined")
        groups = self._lists[number - 1] if number else ()
        return [self._groups[group] for group in groups if group in self._groups]

    def _words(self, values: Sequence[int]) -> Iterator[str]:
        at = 0

        def take() -> int:
            nonlocal at
            at += 1
            if at > len(values):
                raise BitcodeError("a group of attributes ends within one")
            return values[at - 1]

        def text() -> str:
            found = bytearray()
            while byte := take():
                found.append(byte & 255)
            return quoted(bytes(found))

        while at < len(values):
            kind = take()
            if kind in (_TEXT, _VALUED):
                yield f"{text()}={text()}" if kind == _VALUED else text()
                continue
            key = take()
            word = names.ATTRIBUTES[key - 1] if 0 < key <= len(names.ATTRIBUTES) else f"attribute{key}"
            if kind in (_WORD, _NO_TYPE):
                yield word
            elif kind == _NUMBER:
                yield _with_number(word, take())
            elif kind == _TYPE:
                yield f"{word}({self._table[take()].text})"
            elif kind in (_RANGE, _RANGES):
                count = take() if kind == _RANGES else 1
                bits = take()
                if bits > 64:
                    size = take()
                    for _ in range(min((size & 0xFFFFFFFF) + (size >> 32), len(values))):
                        take()
                    yield f"{word}(i{bits} 0, 1)"
                else:
                    pairs = (f"{signed(take())}, {signed(take())}" for _ in range(min(count, len(values))))
                    yield f"{word}(i{bits} {', '.join(pairs)})"
            else:
                raise BitcodeError(f"there is an attribute of the unknown kind {kind}")


def _with_number(word: str, number: int) -> str:
    if word == "align":
        return f"align {number}"
    if word == "uwtable":
        return word
    return f"{word}({_memory(number) if word == 'memory' else 'none' if (word, number) == ('captures', 0) else number})"


def _memory(number: int) -> str:
    """What a function does to memory: two bits for each kind of it; LLVM 21 has `errnomem` more, and says so on top."""
    kinds = ("argmem", "inaccessiblemem", "errnomem", "") if number >> 56 else ("argmem", "inaccessiblemem", "")
    each = {kind: _EFFECTS[number >> 2 * n & 3] for n, kind in enumerate(kinds)}
    other = each.pop("")
    return ", ".join([other, *(f"{kind}: {effect}" for kind, effect in each.items() if effect != other)])


_EFFECTS = ("none", "read", "write", "readwrite")
