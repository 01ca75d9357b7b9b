"""The operands of the records of instructions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ptxtools.records import dataclass

from ..assembly.types import Type
from . import names
from .attributes import Attributes
from .metadata import Metadata
from .stream import Record
from .types import TypeTable
from .values import Values


@dataclass(slots=True)
class Line:
    """op: the instruction; type: of its result, None without one; text: how it is written, behind the result; aside:
    whether it is no instruction, but stands among them."""

    op: str
    type: Type | None
    text: Callable[[], str]
    aside: bool = False


class Operands:
    """The operands of a record, one after the other, and what instructions need of the module."""

    def __init__(self, values: Values, metadata: Metadata, attributes: Attributes, relative: bool) -> None:
        self.values, self.metadata, self.attributes = values, metadata, attributes
        self.table: TypeTable = values.table
        self._relative = relative
        self.bundles: list[list[int]] = []
        self.tags: list[str] = []
        self.scopes: list[str] = []
        self.label: Callable[[int], str] = str
        self._numbers: list[int] = []
        self._at = 0

    def begin(self, record: Record) -> None:
        self._numbers, self._at = record.values, 0

    @property
    def left(self) -> int:
        return len(self._numbers) - self._at

    def take(self, default: int | None = None) -> int:
        """The next operand; IndexError if there is none, and no default."""
        if default is not None and not self.left:
            return default
        self._at += 1
        return self._numbers[self._at - 1]

    def rest(self) -> list[int]:
        found = self._numbers[self._at :]
        self._at = len(self._numbers)
        return found

    def type(self) -> Type:
        return self.table[self.take()]

    def absolute(self, number: int) -> int:
        """The number of a value that a record has relative to the instruction."""
        return (len(self.values) - number) & 0xFFFFFFFF if self._relative else number

    def value(self) -> int:
        """A value whose type is known from elsewhere."""
        return self.absolute(self.take())

    def pair(self) -> tuple[int, Type]:
        """A value; if it comes later, its type follows."""
        number = self.value()
        return number, self.values.types[number] if number < len(self.values) else self.type()

    def typed(self, number: int, type: Type) -> str:
        return f"{type.text} {self.values.text(number)}"

    def text(self, number: int) -> str:
        return self.values.text(number)

    def scope(self, number: int) -> str:
        name = self.scopes[number] if number < len(self.scopes) else "singlethread" if number == 0 else ""
        return f" syncscope({names.quoted(name)})" if name else ""

    def operand(self, type: Type) -> Callable[[], str]:
        """The next value, of this type, as it is written without its type; metadata has its own numbers."""
        number = self.value()
        if type.kind == "metadata":
            return partial(self.metadata.ref, number)
        return partial(self.text, number)
