"""A module for a device: kernels, variables, addresses of functions, and programs on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ptxtools.program.variant import PLAIN, Variant
from ptxtools.records import dataclass, field

from .kernel import Kernel

if TYPE_CHECKING:
    from ptxtools.diagnostics import Diagnostic, Source
    from ptxtools.ir import Module
    from ptxtools.ir.origins import Origins
    from ptxtools.program.program import Program

    from .image import Image


@dataclass(frozen=True, slots=True)
class Link:
    """An address in an initialiser: `size` bytes at `offset` hold (address of `symbol` + addend), masked (5.4.4)."""

    offset: int
    size: int
    symbol: str
    addend: int = 0
    mask: int | None = None


@dataclass(frozen=True, slots=True)
class Storage:
    """A variable of a module. type, vector and dims as declared; data: what it holds at first, b"" for zeros.

    bank: its constant bank, of which every variable there names the start (5.1.3.1), or 0.
    """

    name: str
    space: str
    type: str
    size: int
    alignment: int
    vector: int = 1
    dims: tuple[int, ...] = ()
    data: bytes = b""
    bank: int = 0
    links: tuple[Link, ...] = ()


@dataclass(slots=True)
class Contents:
    """A module as a device sees it. functions: their addresses; undefined: why a variable has no address."""

    target: str
    kernels: dict[str, Kernel]
    storages: tuple[Storage, ...] = ()
    functions: dict[str, int] = field(default_factory=dict)
    undefined: dict[str, Diagnostic] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Body:
    """A function's instructions: (start of the span, text, whether it has a guard). entry: it is a kernel."""

    name: str
    entry: bool
    instructions: tuple[tuple[int, str, bool], ...]


class Loadable(Protocol):
    """A module that can be loaded into a device."""

    @property
    def contents(self) -> Contents: ...

    def lower(self, kernel: str, image: Image, variant: Variant = PLAIN) -> Program:
        """The program of a kernel for the addresses of `image`. Raises `PtxError`."""

    def source(self) -> Source | None:
        """The text that lines of traps refer to."""

    def whole(self) -> Module:
        """The module's tree."""

    def bodies(self) -> list[Body]:
        """The functions that have a body, in the order of the text."""

    def origins(self) -> Origins | None:
        """The source locations of the lines, if the module has them (11.5.4)."""
