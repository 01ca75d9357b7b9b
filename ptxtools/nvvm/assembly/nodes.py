"""The tree of a module. Positions (`at`, `end`) are offsets of characters in the text."""

from __future__ import annotations

from typing import Any

from ptxtools.records import dataclass, field

from .types import Type

#: A word with its position: an attribute, a linkage, a flag.
Word = tuple[str, int]


class Value:
    """An operand. kind: "local", "global", "int", "float", "word" (null, undef, true …), "string", "aggregate",
    "expression", "asm", "metadata" or "block address"; text: as written; parts: operands of an aggregate or of an
    expression; extra: the pointee type and flags of an expression, what an inline assembler has."""

    __slots__ = ("at", "extra", "kind", "parts", "text", "type")

    def __init__(self, kind: str, text: str, type: Type, at: int, parts: tuple[Value, ...] = (),
                 extra: Any = None) -> None:  # fmt: skip
        self.kind, self.text, self.type, self.at, self.parts, self.extra = kind, text, type, at, parts, extra

    @property
    def end(self) -> int:
        return self.at + len(self.text)


class Instruction:
    """An instruction. name: of its result, "" if it has none; type: of its result, which the verifier finds; extra:
    what only some have (`type`: the type that the text names, `flags`, `ordering`, `attributes`, `bundles` …);
    metadata: the names and nodes attached."""

    __slots__ = ("at", "end", "extra", "metadata", "name", "named_at", "op", "operands", "type")

    def __init__(self, op: str, at: int, name: str, named_at: int) -> None:
        self.op, self.at, self.name, self.named_at = op, at, name, named_at
        self.end = at + len(op)
        self.type: Type | None = None
        self.operands: list[Value] = []
        self.extra: dict[str, Any] = {}
        self.metadata: list[tuple[Word, Word]] = []


@dataclass(slots=True)
class Block:
    """A basic block. name: of its label, "%0" if it is numbered."""

    name: str
    at: int
    instructions: list[Instruction] = field(default_factory=list)


@dataclass(slots=True)
class Param:
    type: Type
    name: str
    at: int
    attributes: list[Word] = field(default_factory=list)


@dataclass(slots=True)
class Callee:
    """What a call says of what it calls: its calling convention, attributes and arguments."""

    result: Type
    written: Type | None
    attributes: list[Word]
    arguments: list[list[Word]]
    conventions: list[Word]
    trailing: list[Word]


@dataclass(slots=True)
class Function:
    """A function. words: what stands before its type (linkage, visibility, convention); attributes: behind the
    parameters; parts: section, align, gc, prefix … with their positions; blocks: empty for a declaration; body: where
    they stand, if they have not been read."""

    name: str
    at: int
    result: Type
    params: list[Param]
    variadic: bool
    defined: bool
    words: list[Word] = field(default_factory=list)
    result_attributes: list[Word] = field(default_factory=list)
    attributes: list[Word] = field(default_factory=list)
    parts: dict[str, tuple[Any, int]] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)
    metadata: list[tuple[Word, Word]] = field(default_factory=list)
    type: Type = field(init=False)
    space: int = 0
    end: int = 0
    broken: bool = False
    body: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        from .types import function

        self.type = function(self.result, [one.type for one in self.params], self.variadic)


@dataclass(slots=True)
class Variable:
    """A global variable, an alias or an ifunc (`kind`)."""

    name: str
    at: int
    kind: str
    type: Type
    words: list[Word]
    space: int = 0
    space_at: int = -1
    initial: Value | None = None
    parts: dict[str, tuple[Any, int]] = field(default_factory=dict)
    attributes: list[Word] = field(default_factory=list)
    metadata: list[tuple[Word, Word]] = field(default_factory=list)


@dataclass(slots=True)
class Node:
    """A metadata node. kind: "" for a tuple, else the specialised one ("DILocation"); operands of a tuple, fields of a
    specialised one: a `Value`, a text, or None for null."""

    name: str
    at: int
    kind: str = ""
    operands: list[Value | None] = field(default_factory=list)
    fields: dict[str, tuple[str, int]] = field(default_factory=dict)
    distinct: bool = False


@dataclass(slots=True)
class Named:
    """A named metadata: `!nvvm.annotations = !{!0}`."""

    name: str
    at: int
    nodes: list[Word] = field(default_factory=list)


@dataclass(slots=True)
class Module:
    """The tree of a text. strange: what NVVM IR lacks at the top level; gaps, steps_back: numbers out of order, with
    what is wrong; numbered: parameters whose number is written; typed_at, opaque_at: the first pointers of both sorts,
    -1 if there is none."""

    functions: dict[str, Function] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    types: dict[str, tuple[Type | None, int]] = field(default_factory=dict)
    type_uses: dict[str, int] = field(default_factory=dict)
    groups: dict[str, list[Word]] = field(default_factory=dict)
    group_uses: list[Word] = field(default_factory=list)
    metadata: dict[str, Node] = field(default_factory=dict)
    named: dict[str, Named] = field(default_factory=dict)
    layouts: list[Word] = field(default_factory=list)
    triples: list[Word] = field(default_factory=list)
    inline: list[Word] = field(default_factory=list)
    strange: list[Word] = field(default_factory=list)
    gaps: list[Word] = field(default_factory=list)
    steps_back: list[Word] = field(default_factory=list)
    numbered: list[Word] = field(default_factory=list)
    typed_at: int = -1
    opaque_at: int = -1
