"""The table of types, as the types of the text."""

from __future__ import annotations

from collections.abc import Sequence

from ..assembly import types
from ..assembly.types import Type
from .names import name, quoted
from .stream import BitcodeError, Block, text_of

_WORDS = {2: "void", 3: "float", 4: "double", 5: "label", 10: "half", 13: "x86_fp80", 14: "fp128", 15: "ppc_fp128",
          16: "metadata", 17: "x86_mmx", 22: "token", 23: "bfloat", 24: "x86_amx"}  # fmt: skip
_COUNT, _OPAQUE, _INTEGER, _POINTER, _ARRAY, _VECTOR = 1, 6, 7, 8, 11, 12
_STRUCT, _NAME, _NAMED, _FUNCTION, _OPAQUE_POINTER, _TARGET = 18, 19, 20, 21, 25, 26
#: A type that LLVM has on top of itself again and again would be a text without end.
_LONGEST, _DEEPEST = 1 << 16, 200


class TypeTable:
    """The types of a module by number. named: those with a name, and what they are (None: opaque)."""

    def __init__(self, block: Block | None) -> None:
        self._records: list[tuple[int, list[int], str]] = []
        self._known: dict[int, Type] = {}
        self.named: dict[str, Type | None] = {}
        self._open: set[int] = set()
        self.typed = self.opaque = False
        waiting = ""
        for record in block.records if block else ():
            if record.code == _NAME:
                waiting = text_of(record.values)
            elif record.code != _COUNT:
                own = waiting if record.code in (_OPAQUE, _NAMED, _TARGET) else ""
                self._records.append((record.code, record.values, own))
                waiting = "" if own else waiting
                self.typed |= record.code == _POINTER
                self.opaque |= record.code == _OPAQUE_POINTER
        unnamed = 0
        self._names: dict[int, str] = {}
        for number, (code, _, own) in enumerate(self._records):
            if code in (_OPAQUE, _NAMED):
                self._names[number] = name("%", own) if own else f"%{unnamed}"
                unnamed += not own
        for number, text in self._names.items():
            code, values, _ = self._records[number]
            self.named[text] = (
                None if code == _OPAQUE else types.struct(self._each(values[1:]), bool(values[:1] == [1]))
            )

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, number: int) -> Type:
        found = self._known.get(number)
        if found is None:
            if number in self._open or not 0 <= number < len(self._records) or len(self._open) > _DEEPEST:
                raise BitcodeError(f"type {number} is not defined, or contains itself")
            self._open.add(number)
            try:
                found = self._known[number] = self._made(number)
            except IndexError:
                raise BitcodeError(f"the record of type {number} is too short") from None
            self._open.discard(number)
            if len(found.text) > _LONGEST:
                raise BitcodeError(f"type {number} is too large")
        return found

    def _each(self, numbers: Sequence[int]) -> list[Type]:
        return [self[number] for number in numbers]

    def _made(self, number: int) -> Type:
        code, values, own = self._records[number]
        if code in _WORDS:
            return types.SIMPLE[_WORDS[code]]
        if number in self._names:
            return types.named(self._names[number])
        if code == _INTEGER:
            found = types.simple(f"i{values[0]}")
            if found is None:
                raise BitcodeError(f"there is no integer of {values[0]} bits")
            return found
        if code == _POINTER:
            return types.pointer(self[values[0]], values[1] if len(values) > 1 else 0)
        if code == _OPAQUE_POINTER:
            return types.opaque_pointer(values[0])
        if code == _ARRAY:
            return types.array(values[0], self[values[1]])
        if code == _VECTOR:
            return types.vector(values[0], self[values[1]], bool(values[2:3] == [1]))
        if code == _STRUCT:
            return types.struct(self._each(values[1:]), bool(values[0]))
        if code == _FUNCTION:
            return types.function(self[values[1]], self._each(values[2:]), bool(values[0]))
        if code == _TARGET:
            inside = [quoted(own), *(self[one].text for one in values[1 : 1 + values[0]]),
                      *map(str, values[1 + values[0] :])]  # fmt: skip
            return types.target_type(f"target({', '.join(inside)})")
        raise BitcodeError(f"type {number} is of the unknown kind {code}")

    def resolved(self, type: Type) -> Type:
        """A named type as what it stands for; itself if it is opaque."""
        return (self.named.get(type.text) or type) if type.kind == "named" else type

    def pointer(self, to: Type, space: int = 0) -> Type:
        """A pointer as this module has them."""
        return types.pointer(to, space) if self.typed else types.opaque_pointer(space)

    def element(self, type: Type, index: int) -> Type:
        """What is at a place of an aggregate."""
        type = self.resolved(type)
        if type.kind in ("array", "vector"):
            return type.elements[0]
        if type.kind == "struct" and 0 <= index < len(type.elements):
            return type.elements[index]
        raise BitcodeError(f"{type.text[:80]} has no element {index}")
