"""Lazily decoded nodes of a container: function headers, bodies, DWARF sections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptxtools.diagnostics import Span
from ptxtools.ir import DataLine, Function, Scope, Section

from . import elf
from .code import ENTRY
from .layout import Descriptor
from .source import NAME_PART, span_of

if TYPE_CHECKING:
    from .reader import Container

_HEADER_FIELDS = ("params", "returns", "directives", "attributes", "variadic")


class LazySection(Section):
    """A `.section` whose lines are decoded on first access."""

    __slots__ = ("_container", "_item")
    __hash__ = None  # type: ignore[assignment]

    _container: Container
    _item: int

    @classmethod
    def of(cls, container: Container, item: int) -> LazySection:
        self = cls.__new__(cls)
        self._container, self._item = container, item
        self.name, self.span = container.records.section_name(item), span_of(item)
        return self

    def __getattr__(self, name: str) -> list[DataLine]:
        if name != "lines":
            raise AttributeError(name)
        self.lines = self._container.guarded(self._container.records.node, self._item).lines
        return self.lines

    def __eq__(self, other: object) -> bool:
        return (self.name, self.lines) == (other.name, other.lines) if isinstance(other, Section) else NotImplemented

    def __repr__(self) -> str:
        return f"Section(name={self.name!r}, …)"

    def __reduce__(self) -> Any:
        return Section, (self.name, self.lines, self.span)


class LazyScope(Scope):
    """A function's outermost scope whose statements are decoded on first access."""

    __slots__ = ("_body", "_container")
    __hash__ = None  # type: ignore[assignment]

    _container: Container | None
    #: What the container calls it: item, place, rows of lines.
    _body: tuple[int, elf.SymbolExtent, range]

    @classmethod
    def of(cls, container: Container, body: tuple[int, elf.SymbolExtent, range], span: Span) -> LazyScope:
        self = cls.__new__(cls)
        self._container, self._body, self.span = container, body, span
        return self

    def __getattr__(self, name: str) -> Any:
        container = self._container
        if name != "items" or container is None:
            raise AttributeError(name)
        self.items = container.guarded(container.body, *self._body)
        self._container = None
        return self.items

    def __eq__(self, other: object) -> bool:
        return self.items == other.items if isinstance(other, Scope) else NotImplemented

    def __repr__(self) -> str:
        return f"Scope(items={self.items!r})"

    def __reduce__(self) -> Any:
        return Scope, (self.items, self.span)


class LazyFunction(Function):
    """A function whose header and body are decoded on first access. `descriptor` is the stored one."""

    __slots__ = ("_container", "_header", "_item")
    __hash__ = None  # type: ignore[assignment]

    _container: Container
    _item: int
    _header: dict[str, Any] | None

    @classmethod
    def of(cls, container: Container, item: int, flags: int, name: str, linkage: str, place: elf.SymbolExtent | None,
           locs: range) -> LazyFunction:  # fmt: skip
        self = cls.__new__(cls)
        self._container, self._item, self._header = container, item, None
        self.kind = "entry" if flags & ENTRY else "func"
        self.name, self.linkage = name, linkage
        self.span, self.name_span = span_of(item), span_of(item, NAME_PART)
        self.body = None if place is None else LazyScope.of(container, (item, place, locs), self.span)
        return self

    def decode(self) -> dict[str, Any]:
        """Decode the fields of the header, except one that was set meanwhile."""
        if self._header is None:
            container = self._container
            self._header, _ = container.guarded(container.header, self._item)
        return self._header

    def __getattr__(self, name: str) -> Any:
        if name not in _HEADER_FIELDS:
            raise AttributeError(name)
        value = self.decode()[name]
        setattr(self, name, value)
        return value

    @property
    def descriptor(self) -> Descriptor:
        """The stored descriptor."""
        return self._container.guarded(self._container.descriptor, self._item)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Function):
            return NotImplemented
        return all(getattr(self, f) == getattr(other, f) for f in ("kind", "name", *_HEADER_FIELDS, "body", "linkage"))

    def __repr__(self) -> str:
        return f"Function(kind={self.kind!r}, name={self.name!r}, …)"

    def __reduce__(self) -> Any:
        return Function, (self.kind, self.name, self.params, self.returns, self.directives, self.body, self.linkage,
                          self.attributes, self.variadic, self.span, self.name_span)  # fmt: skip
