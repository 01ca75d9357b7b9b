"""Metadata of a module and of its functions: strings, values, tuples, specialised nodes, and what is attached."""

from __future__ import annotations

from collections.abc import Iterator

from ptxtools.diagnostics.origin import Origin

from ..assembly.types import Type
from . import names
from .names import quoted
from .nodes import fields_of
from .stream import BitcodeError, Block, Record, text_of
from .values import Values

_STRING, _VALUE, _NODE, _NAME, _DISTINCT, _KIND, _LOCATION = 1, 2, 3, 4, 5, 6, 7
_NAMED, _GLOBAL, _EXPRESSION, _INDEX_OFFSET, _INDEX, _STRINGS, _ARGUMENTS = 10, 36, 29, 38, 39, 35, 46
_FILE, _UNIT, _SUBPROGRAM, _LEXICAL, _LEXICAL_FILE = 16, 20, 21, 22, 23
#: Records that are no metadata of their own.
_ASIDE = frozenset((_NAME, _KIND, _NAMED, _GLOBAL, _INDEX_OFFSET, _INDEX))
#: Where in the records the scope and the file stand, one less than in a list that begins with "distinct".
_SCOPES = {_SUBPROGRAM: (1, 4), _LEXICAL: (1, 2), _LEXICAL_FILE: (1, 2)}
_MOST_NESTED = 50

#: An entry: a string, a value (type and number), or a node (its record and its number in the text).
_Entry = str | tuple[Type, int] | tuple[Record, int]


class Metadata:
    """named: named metadata, each with the numbers of its nodes; attached: by the number of a global, the names of
    kinds with nodes; kinds: names by number."""

    def __init__(self, values: Values, old: bool = False) -> None:
        """old: whether LLVM 7 or an older one wrote it."""
        self._values, self._old = values, old
        self._entries: list[_Entry] = []
        self.named: dict[str, list[int]] = {}
        self.attached: dict[int, list[int]] = {}
        self.kinds: dict[int, str] = {}
        self._nodes = 0
        self._lines: list[str] = []

    def __len__(self) -> int:
        return len(self._entries)

    def cut(self, count: int) -> None:
        """Forget the metadata of a function, whose nodes have been written."""
        del self._entries[count:]

    def read(self, block: Block) -> None:
        waiting = ""
        for record in block.records:
            code, values = record.code, record.values
            if code == _STRINGS:
                self._entries += _strings(record)
            elif code == _STRING:
                self._entries.append(text_of(values))
            elif code == _VALUE:
                if len(values) < 2:
                    raise BitcodeError(f"the record of a value is too short, at byte {record.at}")
                self._entries.append((self._values.table[values[0]], values[1]))
            elif code == _NAME:
                waiting = text_of(values)
            elif code == _NAMED:
                self.named.setdefault(waiting, []).extend(values)
            elif code == _GLOBAL and values:
                self.attached[values[0]] = values[1:]
            elif code == _KIND and values:
                self.kinds[values[0]] = text_of(values[1:])
            elif code not in _ASIDE:
                self._entries.append((record, self._nodes))
                self._nodes += 1

    def ref(self, number: int) -> str:
        """An operand of type metadata, without the word `metadata`."""
        if not 0 <= number < len(self._entries):
            raise BitcodeError(f"metadata {number} is not defined")
        entry = self._entries[number]
        if isinstance(entry, str):
            return "!" + quoted(entry)
        if isinstance(entry[0], Record):
            if entry[0].code in (_EXPRESSION, _ARGUMENTS):
                return self._special(entry[0])
            return f"!{entry[1]}"
        return f"{entry[0].text} {self._values.text(entry[1])}"

    def node(self, number: int) -> str:
        """What stands where a node is wanted: one around a value or string, if it is none."""
        found = self.ref(number)
        return found if found[1:2].isdigit() or found.startswith("!DI") else f"!{{{found}}}"

    def attachments(self, values: list[int]) -> str:
        """`, !dbg !7` for pairs of a kind and a node."""
        pairs = zip(values[::2], values[1::2], strict=False)
        return "".join(f", !{self.kinds.get(kind, f'kind{kind}')} {self.node(node)}" for kind, node in pairs)

    def lines(self, first: int = 0) -> Iterator[str]:
        """The statements of the nodes from a number on."""
        for entry in self._entries[first:]:
            if isinstance(entry, tuple) and isinstance(entry[0], Record):
                record, number = entry
                if record.code not in (_EXPRESSION, _ARGUMENTS):
                    yield f"!{number} = {self._written(record)}"

    def named_lines(self) -> Iterator[str]:
        for name, nodes in self.named.items():
            plain = all(one.isascii() and (one.isalnum() or one in "-$._") for one in name) and name[:1].isalpha()
            shown = name if plain else "".join(
                chr(one) if chr(one).isalnum() or one in b"-$._" else f"\\{one:02X}"
                for one in name.encode("utf-8", "surrogateescape")
            )  # fmt: skip
            yield f"!{shown} = !{{{', '.join(map(self.node, nodes))}}}"

    def _written(self, record: Record) -> str:
        if record.code in (_NODE, _DISTINCT):
            inside = ", ".join("null" if one == 0 else self.ref(one - 1) for one in record.values)
            return f"{'distinct ' if record.code == _DISTINCT else ''}!{{{inside}}}"
        return ("distinct " if record.values[:1] and record.values[0] & 1 else "") + self._special(record)

    def _special(self, record: Record) -> str:
        """A specialised node."""
        kind, values = names.NODES.get(record.code), record.values
        if kind is None:
            raise BitcodeError(f"there is metadata of the unknown kind {record.code}, at byte {record.at}")
        if record.code == _EXPRESSION:
            return f"!DIExpression({', '.join(map(str, values[1:]))})"
        if record.code == _ARGUMENTS:
            return f"!DIArgList({', '.join(map(self.ref, values))})"
        fields = fields_of(record.code, values, self._old, self._optional, self._string)
        return f"!{kind}({', '.join(f'{name}: {text}' for name, text in fields)})"

    def _optional(self, number: int) -> str:
        return self.ref(number - 1) if number else "null"

    def _string(self, number: int) -> str:
        entry = self._entries[number - 1] if 0 < number <= len(self._entries) else ""
        return entry if isinstance(entry, str) else ""

    # --- debug locations ----------------------------------------------------------------------------------------------

    def origin(self, line: int, column: int, scope: int, inlined: int, depth: int = 0) -> Origin | None:
        """The place in the source that a debug location says; scope, inlined: numbers of metadata, from 1."""
        caller = self._record(inlined)
        at = None
        if caller is not None and caller.code == _LOCATION and len(caller.values) > 4 and depth < _MOST_NESTED:
            _, *where = caller.values[:5]
            at = self.origin(where[0], where[1], where[2] + 1, where[3], depth + 1)  # this scope is counted from 0
        file, function = self._file(scope)
        return Origin(file, line, column, function, at) if file else None

    def _record(self, number: int) -> Record | None:
        entry = self._entries[number - 1] if 0 < number <= len(self._entries) else None
        return entry[0] if isinstance(entry, tuple) and isinstance(entry[0], Record) else None

    def _file(self, scope: int) -> tuple[str, str]:
        """The names of the file and of the function of a scope."""
        file = function = ""
        for _ in range(_MOST_NESTED):
            record = self._record(scope)
            if record is None or record.code not in _SCOPES:
                break
            values, (outer, in_file) = record.values, _SCOPES[record.code]
            named = self._record(values[in_file]) if len(values) > in_file else None
            if not file and named is not None and named.code == _FILE and len(named.values) > 1:
                file = self._string(named.values[1])
            if record.code == _SUBPROGRAM and len(values) > 3:
                function = self._string(values[3]) or self._string(values[2])
                break
            scope = values[outer] if len(values) > outer else 0
        return file, function


def _strings(record: Record) -> list[str]:
    """The strings of a module: their lengths as numbers of 6 bits, then their bytes."""
    if len(record.values) < 2:
        raise BitcodeError(f"the record of strings is too short, at byte {record.at}")
    count, start = record.values[:2]
    if count and (count > len(record.blob) or start > len(record.blob)):
        raise BitcodeError(f"strings of metadata extend past their record, at byte {record.at}")
    lengths, found = _Lengths(record.blob[:start]), []
    for _ in range(count):
        size = lengths.next()
        if start + size > len(record.blob):
            raise BitcodeError(f"strings of metadata extend past their record, at byte {record.at}")
        found.append(record.blob[start : start + size].decode("utf-8", "surrogateescape"))
        start += size
    return found


class _Lengths:
    """Numbers in chunks of six bits."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def next(self) -> int:
        value = shift = 0
        while True:
            first = self._at >> 3
            if self._at + 6 > len(self._data) * 8 or shift > 60:
                raise BitcodeError("lengths of strings of metadata end too early")
            chunk = int.from_bytes(self._data[first : first + 2], "little") >> (self._at & 7) & 63
            self._at += 6
            value |= (chunk & 31) << shift
            shift += 5
            if chunk < 32:
                return value
