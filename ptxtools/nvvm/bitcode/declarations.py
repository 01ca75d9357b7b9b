"""Statements of globals: variables, aliases, and the heads of functions."""

from __future__ import annotations

from ..assembly.types import Type
from . import names
from .attributes import RESULT, Attributes
from .metadata import Metadata
from .names import quoted
from .types import TypeTable
from .values import Values

#: Records of texts that globals name by number, and the one of ifuncs and old aliases.
SECTION, GARBAGE_COLLECTOR, COMDAT, IFUNC, OLD_ALIAS = 5, 11, 12, 18, 9
#: A flag of a variable: its record has its own type, not that of its pointer.
EXPLICIT_TYPE = 2


class Declarations:
    """lists: the texts of each of these records."""

    _values: Values
    _types: TypeTable
    _attributes: Attributes
    _metadata: Metadata
    _lists: dict[int, list[str]]

    def _word(self, table: tuple[str, ...] | dict[int, str], values: list[int], place: int) -> str:
        """The word for a field of a record, with a blank behind it."""
        number = values[place] if len(values) > place else 0
        word = table.get(number, "") if isinstance(table, dict) else table[number] if number < len(table) else ""
        return f"{word} " if word else ""

    def _listed(self, code: int, values: list[int], place: int) -> str:
        """The text that a field names, from 1; "" for none."""
        number, texts = values[place] if len(values) > place else 0, self._lists[code]
        return texts[number - 1] if 0 < number <= len(texts) else ""

    def _comdat(self, values: list[int], place: int) -> str:
        found = self._listed(COMDAT, values, place)
        return f"comdat({found})" if found else ""

    @staticmethod
    def _local(values: list[int], place: int, linkage: str, visibility: str) -> str:
        """`dso_local`, unless linkage or visibility imply it."""
        implied = linkage in ("internal ", "private ") or visibility
        return "" if implied or values[place : place + 1] != [1] else "dso_local "

    def _variable(self, values: list[int], number: int) -> str:
        type = self._types[values[0]]
        explicit = values[1] & EXPLICIT_TYPE
        own = type if explicit or type.pointee is None else type.pointee
        space = values[1] >> 2 if explicit else type.space
        linkage = self._word(names.LINKAGES, values, 3)
        initial = values[2]
        visibility = self._word(names.VISIBILITIES, values, 6)
        words = (linkage or ("" if initial else "external ")) + self._local(values, 13, linkage, visibility)
        words += visibility + self._word(names.STORAGE, values, 10)
        words += self._word(names.THREADS, values, 7) + self._word(names.UNNAMED, values, 8)
        words += f"addrspace({space}) " if space else ""
        words += "externally_initialized " if values[9:10] == [1] else ""
        kind = "constant" if values[1] & 1 else "global"
        text = f"{self._values.text(number)} = {words}{kind} {own.text}"
        text += f" {self._values.text(initial - 1)}" if initial else ""
        section = self._listed(SECTION, values, 5)
        text += f", section {quoted(section)}" if section else ""
        comdat = self._comdat(values, 11)
        text += f", {comdat}" if comdat else ""
        text += f", align {1 << values[4] - 1}" if 0 < values[4] < 64 else ""
        text += self._metadata.attachments(self._metadata.attached.get(number, []))
        return text + (self._attributes.of_function(values[12]) if len(values) > 12 else "")

    def _alias(self, code: int, values: list[int], number: int) -> str:
        own, aliasee = self._types[values[0]], values[1]
        own = own.pointee or own if code == OLD_ALIAS else own
        linkage, visibility = self._word(names.LINKAGES, values, 2), self._word(names.VISIBILITIES, values, 3)
        words = linkage + self._local(values, 7, linkage, visibility) + visibility
        words += self._word(names.STORAGE, values, 4)
        words += self._word(names.THREADS, values, 5) + self._word(names.UNNAMED, values, 6)
        kind = "ifunc" if code == IFUNC else "alias"
        return f"{self._values.text(number)} = {words}{kind} {own.text}, {self._values.typed(aliasee)}"

    def _attached(self, values: list[int]) -> str:
        """What is attached to a function, which the text has without commas."""
        return self._metadata.attachments(values).replace(", !", " !")

    def _head_of(self, values: list[int], type: Type, shown: str, params: list[str],
                 given: list[str] | None = None) -> str:  # fmt: skip
        linkage, visibility = self._word(names.LINKAGES, values, 3), self._word(names.VISIBILITIES, values, 7)
        words = linkage + self._local(values, 15, linkage, visibility) + visibility
        words += self._word(names.STORAGE, values, 11)
        convention = names.CONVENTIONS.get(values[1], f"cc {values[1]}")
        attributes = values[4]
        result = self._attributes.of(attributes, RESULT).lstrip()
        words += " ".join(filter(None, (convention, result, type.elements[0].text)))
        each = [one + self._attributes.of(attributes, n) + (f" {given[n - 1]}" if given else "")
                for n, one in enumerate(params, 1)]  # fmt: skip
        text = f"{words} {shown}({', '.join(each + ['...'] * type.open)}) {self._word(names.UNNAMED, values, 9)}"
        text = text.rstrip() + (f" addrspace({values[16]})" if len(values) > 16 and values[16] else "")
        text += self._attributes.of_function(attributes)
        section, collector = self._listed(SECTION, values, 6), self._listed(GARBAGE_COLLECTOR, values, 8)
        text += f" section {quoted(section)}" if section else ""
        comdat = self._comdat(values, 12)
        text += f" {comdat}" if comdat else ""
        text += f" align {1 << values[5] - 1}" if 0 < values[5] < 64 else ""
        text += f" gc {quoted(collector)}" if collector else ""
        for word, place in (("prefix", 13), ("prologue", 10), ("personality", 14)):
            if len(values) > place and values[place]:
                text += f" {word} {self._values.typed(values[place] - 1)}"
        return text
