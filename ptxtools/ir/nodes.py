"""The module as a tree: directives, declarations, functions, statements, operands.

Nodes compare by content; spans and sources do not count. Names are kept as text: `ptxtools.ir.symbols` resolves them.
Types are PTX's names without the dot ("u32", "f16x2", "pred"); spaces likewise ("global", "shared::cta").
"""

from __future__ import annotations

from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from ptxtools.diagnostics import NO_SPAN, Place, Source, Span, span_at
from ptxtools.records import dataclass, field, fields

from .layout import Extent, Layout

if TYPE_CHECKING:
    from ptxtools.isa import Opcode


def _span() -> Span:
    return field(default=NO_SPAN, compare=False, repr=False)


def _extent() -> Extent:
    return field(default=(), compare=False, repr=False)


# The methods that `dataclass` would write for each of the classes here take a tenth of a command's start to compile.


@cache
def _compared(kind: type) -> attrgetter[Any]:
    """What reads the fields by which nodes of a kind are compared."""
    names = [one.name for one in fields(kind) if one.compare]
    return attrgetter(*names) if names else attrgetter("__class__")


class Node:
    """Nodes of one kind with the same content are equal. Only a `Value` can be a key."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        kind: Any = type(self)
        content = _compared(kind)
        return bool(content(self) == content(other))

    def __repr__(self) -> str:
        shown = (f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
        return f"{type(self).__qualname__}({', '.join(shown)})"


class Value(Node):
    """A node whose content does not change."""

    __slots__ = ()

    def __hash__(self) -> int:
        kind: Any = type(self)
        return hash(_compared(kind)(self))


# --- operands (chapter 6) ---------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False, repr=False)
class Name(Value):
    """An identifier: register, special register, variable, label or function; "_" is the sink.

    A component of a vector keeps its dot: "%tid.x", "%v.w".
    """

    name: str
    extent: Extent = _extent()


@dataclass(slots=True, eq=False, repr=False)
class Immediate(Value):
    """A constant. type "s64" or "u64": `value` is the number; "f32" or "f64": `value` holds the bits (4.5)."""

    value: int
    type: str
    extent: Extent = _extent()


@dataclass(slots=True, eq=False, repr=False)
class SymbolOffset(Value):
    """A name plus or minus a constant outside brackets: `table+4`, `table[1]` is an `Element` instead (6.4)."""

    name: str
    offset: int
    extent: Extent = _extent()


@dataclass(slots=True, eq=False, repr=False)
class Element(Value):
    """An array element (6.4.2): `table[3]`, or by a register: `table[r]`, `table[r+3]`."""

    name: str
    index: int
    register: str | None = None
    extent: Extent = _extent()


@dataclass(slots=True, eq=False, repr=False)
class Vector(Value):
    """`{a, b, c, d}` (6.4.3)."""

    items: tuple[Operand, ...]
    extent: Extent = _extent()


@dataclass(slots=True, eq=False, repr=False)
class Address(Value):
    """`[base+offset]`, with further comma-separated parts in `extra`: `[map, {x, y}]`, `[tex, sampler, {u, v}]`.

    `base` is a `Name`, an `Element`, or an `Immediate` address (then `offset` is 0). `suffix` is a word after the
    brackets: "unified" in `[a].unified` (5.4.8).
    """

    base: Name | Immediate | Element
    offset: int = 0
    extra: tuple[Operand, ...] = ()
    suffix: str = ""
    extent: Extent = _extent()


@dataclass(slots=True, eq=False, repr=False)
class Negated(Value):
    """`!p`, or `-r` of the video instructions (9.7.15): `operator` is "!" or "-"."""

    operand: Operand
    operator: str = "!"
    extent: Extent = _extent()


@dataclass(slots=True, eq=False, repr=False)
class Pair(Value):
    """`p|q`: two destinations."""

    first: Operand
    second: Operand
    extent: Extent = _extent()


@dataclass(slots=True, eq=False, repr=False)
class Arguments(Value):
    """A parenthesised list of a call: `(a, b)`."""

    items: tuple[Operand, ...]
    extent: Extent = _extent()


Operand: TypeAlias = "Name | Immediate | SymbolOffset | Element | Vector | Address | Negated | Pair | Arguments"


# --- statements -------------------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False, repr=False)
class Guard(Node):
    """`@p` or `@!p`."""

    name: str
    negated: bool = False


@dataclass(slots=True, eq=False, repr=False)
class Instruction(Node):
    """`@guard opcode operands;` — `opcode` is the text with all modifiers, as written."""

    opcode: str
    operands: tuple[Operand, ...] = ()
    guard: Guard | None = None
    place: Place = field(default=NO_SPAN, compare=False, repr=False)
    layout: Layout | None = field(default=None, compare=False, repr=False)

    @property
    def span(self) -> Span:
        return span_at(self.place)

    @property
    def op(self) -> Opcode:
        """The opcode resolved by the instruction set; raises `isa.OpcodeError` when there is no such form."""
        from ptxtools.isa import resolve

        return resolve(self.opcode)


@dataclass(slots=True, eq=False, repr=False)
class Label(Node):
    name: str
    span: Span = _span()


@dataclass(slots=True, eq=False, repr=False)
class Loc(Node):
    """`.loc file line column[, function_name label{+offset}, inlined_at file line column]` (11.5.3)."""

    file: int
    line: int
    column: int
    function_name: str | None = None
    function_offset: int = 0
    inlined_at: tuple[int, int, int] | None = None
    span: Span = _span()


@dataclass(slots=True, eq=False, repr=False)
class Pragma(Node):
    """`.pragma "a", "b";` at module, entry or statement level (11.4.5)."""

    strings: tuple[str, ...]
    span: Span = _span()


@dataclass(slots=True, eq=False, repr=False)
class BranchTargets(Node):
    """`label: .branchtargets a, b;`"""

    label: str
    targets: tuple[str, ...]
    span: Span = _span()


@dataclass(slots=True, eq=False, repr=False)
class CallTargets(Node):
    """`label: .calltargets f, g;`"""

    label: str
    targets: tuple[str, ...]
    span: Span = _span()


@dataclass(slots=True, eq=False, repr=False)
class CallPrototype(Node):
    """`label: .callprototype (ret) _ (params) directives;`"""

    label: str
    returns: list[Variable] = field(default_factory=list)
    params: list[Variable] = field(default_factory=list)
    directives: list[Directive] = field(default_factory=list)
    span: Span = _span()


#: Directives of an intermediate language between the source language and PTX (11.5.5, 11.5.6).
LOC_INTERMEDIATE, SOURCES = ".loc_intermediate", ".nv_intermediate_source_section"


@dataclass(slots=True, eq=False, repr=False)
class Directive(Node):
    """A directive with constant arguments: `.maxntid 256,1,1`, `.noreturn`, `.reqnctapercluster 2`, …

    `name` keeps its dot; `args` are ints, strings or names as written.
    """

    name: str
    args: tuple[int | str, ...] = ()
    span: Span = _span()


@dataclass(slots=True, eq=False, repr=False)
class Scope(Node):
    """`{ … }`: declarations, statements and nested scopes in source order."""

    items: list[Statement] = field(default_factory=list)
    span: Span = _span()


# --- declarations (5.4) -----------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False, repr=False)
class SymbolValue(Value):
    """An address in an initialiser: `name`, `generic(name)+8`, `mask(0xff) name` (5.4.4)."""

    name: str
    offset: int = 0
    generic: bool = False
    mask: int | None = None


@dataclass(slots=True, eq=False, repr=False)
class Member(Value):
    """A field in the initialiser of an opaque variable: `filter_mode = nearest` (5.3). Names are kept as text."""

    name: str
    value: Immediate | str


#: An initialiser: a number, an address, or a field of an opaque type; braces are (nested) lists.
Initializer: TypeAlias = "Immediate | SymbolValue | Member | list[Initializer]"


@dataclass(slots=True, eq=False, repr=False)
class Variable(Node):
    """A declaration in any space, registers and parameters included.

    space: "reg", "global", "const", "shared", "local", "param", "tex", "sreg"; type: element type;
    vector: 1, 2 or 4; dims: array sizes, None for `[]`; count: n of `%r<n>`, else None;
    linkage: "", "extern", "visible", "weak", "common"; ptr: `.ptr` attribute of a kernel parameter as
    (space or "", alignment); bank: the constant bank of `.const[n]`.
    """

    name: str
    space: str
    type: str
    vector: int = 1
    align: int | None = None
    dims: tuple[int | None, ...] = ()
    count: int | None = None
    init: Initializer | None = None
    linkage: str = ""
    attributes: tuple[tuple[str, tuple[int | str, ...]], ...] = ()
    ptr: tuple[str, int | None] | None = None
    bank: int | None = None
    span: Span = _span()
    name_span: Span = _span()

    @property
    def is_given(self) -> bool:
        """Whether launches give the place of what is only declared: dynamic shared memory, constant banks (5.1.3.1)."""
        return self.linkage == "extern" and (self.space == "shared" or bool(self.bank))


@dataclass(slots=True, eq=False, repr=False)
class Function(Node):
    """`.entry` or `.func`. `body` is None for a declaration. `directives` stand between header and body."""

    kind: str  # "entry" or "func"
    name: str
    params: list[Variable] = field(default_factory=list)
    returns: list[Variable] = field(default_factory=list)
    directives: list[Directive | Pragma] = field(default_factory=list)
    body: Scope | None = None
    linkage: str = ""
    attributes: tuple[tuple[str, tuple[int | str, ...]], ...] = ()
    variadic: bool = False
    span: Span = _span()
    name_span: Span = _span()


@dataclass(slots=True, eq=False, repr=False)
class Alias(Node):
    """`.alias name, aliasee;`"""

    name: str
    target: str
    span: Span = _span()


@dataclass(slots=True, eq=False, repr=False)
class File(Node):
    """`.file index "name"{, timestamp, size};`"""

    index: int
    name: str
    timestamp: int | None = None
    size: int | None = None
    span: Span = _span()


@dataclass(slots=True, eq=False, repr=False)
class DataLine(Node):
    """One line of a `.section`: `label:` or `.b8/.b16/.b32/.b64 values` (values: ints, names, name+int, a-b)."""

    type: str  # "b8", "b16", "b32", "b64"; "label" for a label
    values: tuple[int | str, ...]


@dataclass(slots=True, eq=False, repr=False)
class Section(Node):
    """`.section name { data }` with DWARF data (11.5.1)."""

    name: str
    lines: list[DataLine] = field(default_factory=list)
    span: Span = _span()


#: The headers in their order (11.1); the last may be missing.
HEADERS = (".version", ".target", ".address_size")


@dataclass(slots=True, eq=False, repr=False)
class Header(Node):
    """A `.version`, `.target` or `.address_size` directive: name with dot, and its arguments as text."""

    name: str
    args: tuple[str, ...]
    span: Span = _span()


Statement: TypeAlias = (
    "Instruction | Label | Variable | Scope | Loc | Pragma | BranchTargets | CallTargets | CallPrototype | Directive"
)
Item: TypeAlias = "Variable | Function | Alias | File | Section | Pragma | Loc | Directive | Header"


@dataclass(slots=True, eq=False, repr=False)
class Module(Node):
    """A compilation unit. `items` holds everything in source order, headers included."""

    items: list[Item] = field(default_factory=list)
    source: Source | None = field(default=None, compare=False, repr=False)
    #: Names in statements that could not be read, by where these begin: whether they are declared is not known.
    unread: dict[int, set[str]] = field(default_factory=dict, compare=False, repr=False)
    #: Declarations that name no variable, which ptxas ignores, each with whether it stands inside a function.
    unnamed: list[tuple[Variable, bool]] = field(default_factory=list, compare=False, repr=False)
    #: A brace is missing or too many, so that later statements outside of functions may be a consequence.
    braces_wrong: bool = field(default=False, compare=False, repr=False)
    #: Something was found that ptxas alone accepts. Whoever runs the module is told each time.
    warned: bool = field(default=False, compare=False, repr=False)

    def _header(self, name: str) -> Header | None:
        return next((i for i in self.items if isinstance(i, Header) and i.name == name), None)

    @property
    def version(self) -> tuple[int, int]:
        """Declared PTX version; (0, 0) when it is missing or malformed."""
        header = self._header(".version")
        try:
            major, minor = (header.args[0] if header else "").split(".")
            return int(major), int(minor)
        except (ValueError, IndexError):
            return 0, 0

    @property
    def target(self) -> str:
        """Declared architecture, such as "sm_90a" (also for compute_90a); "" when it is missing."""
        from ptxtools.isa.targets import canonical  # text alone needs no instruction set

        header = self._header(".target")
        names = header.args if header else ()
        return next((canonical(name) for name in names if name.startswith(("sm_", "compute_"))), "")

    @property
    def target_options(self) -> tuple[str, ...]:
        header = self._header(".target")
        return tuple(a for a in header.args if not a.startswith(("sm_", "compute_"))) if header else ()

    @property
    def has_address_size(self) -> bool:
        """Whether the module declares the size of its addresses."""
        return self._header(".address_size") is not None

    @property
    def address_size(self) -> int:
        """Declared address size in bits; 32 when there is no directive (11.1.3)."""
        header = self._header(".address_size")
        try:
            return int(header.args[0]) if header else 32
        except (ValueError, IndexError):
            return 32

    @property
    def functions(self) -> list[Function]:
        return [i for i in self.items if isinstance(i, Function)]

    @property
    def variables(self) -> list[Variable]:
        return [i for i in self.items if isinstance(i, Variable)]

    @property
    def entries(self) -> list[Function]:
        return [i for i in self.items if isinstance(i, Function) and i.kind == "entry" and i.body is not None]
