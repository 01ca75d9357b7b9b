"""Operand patterns of the notation, and the concrete operands that an opcode gets from them.

d, a, b          `d…` and `p` in first place are destinations, the rest sources; the type is the form's only type
=state:b64       a destination under another name
a:u32  d:dtype   explicit type: a PTX type or the slot that holds it; also wide(type), bits(type)
d:type+          the register may be wider than the type (9.4.1: ld, st, cvt), but where the opcode has .bf16 or .bf16x2
d:type+(narrow)  an integer of 16 bits at most
d:type~          any register of the type's size
d:type*vec&      a vector where integer registers of its size may stand for floats; `+` allows that, too
d:type%          as `&`, and any register of its size where no register can have the type
d:type*4(whole)  a vector without `_`
d:type*4(listed) a vector in braces, no vector register
d:type!          no .f16x2 register in place of an integer
d:b32^  [a]^     a register without a type
d:type*vec       a vector; the count is a number, or a slot whose value tells it (v4, 2d, x8): a scalar without it
{!}c  p|q  p{|q} negatable; two destinations, the second optional in the last; `{|q(reg)}` is never `_`
[a]  [m, c:s32*dim]  [dst]@dst   an address, further parts, its space from a slot, a space's name, "generic", or
                 "tmem" for tensor memory, "fabric" for an endpoint of a fabric (default: the opcode's first space)
(ret)            a call's argument list
n(imm)  l(label) what may be written: kinds in parentheses
c:s32*n(many)    n elements or more, in a vector of one, two or four (see `OperandSpec`)
n(imm 0..255)    range of an immediate; an end may be a variable that a rule gives
n(imm 24..256:8) and what it is a multiple of
v*2(imm 0..6:2 0..1)  a second range is that of a vector's last element
n(imm 4/8/16)    its possible values
n(imm low 0..3)  only the bits that the type holds count: 0x100000001 is 1 (4.5.1)
n(imm low<9.3 0..3)  so it is below PTX 9.3, from which version on ptxas looks at all bits
[a](texref)      names a texture (also samplerref, surfref); "alone": not by its .texref in unified mode (5.3)
[a](unified)     may be written `[a].unified` where the space is global or generic
e:u32(braced)    `{r}` stands for `r`: so it is where a slot that tells the count is missing, unless it is "flat"
{, c}            may be missing
pol:b64 if .level::cache_hint    written if and only if the condition holds; parts of an address may have one, too
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from ptxtools.records import NamedTuple

from .conditions import Condition, Context
from .errors import TableError
from .spaces import SPACES
from .types import REGISTER_TYPE, TYPES, bits_type, wide_type

_SOURCE = frozenset({"reg", "imm"})
_DESTINATION = frozenset({"reg"})
_SECOND = frozenset({"reg", "sink"})
#: Kinds that say what a vector looks like, not what stands in it.
_SHAPES = frozenset({"many", "layer", "whole", "listed", "braced", "flat", "narrow"})
#: Types without constants: 4.5 has no literal for them.
_NO_CONSTANTS = frozenset(
    {"f16", "f16x2", *(name for name in REGISTER_TYPE if TYPES[name].kind in ("float", "packed"))}
)
#: Types beside which no register is wider than its type (9.7.9.21).
_NARROW = frozenset({"bf16", "bf16x2"})
_WIDTHS = {"+": "wider", "~": "bits", "&": "ints", "%": "loose", "!": "exact", "^": "bare"}
#: Kinds and widths that a rule may give to operands, by their names: `{"each": "d c"}`.
_GIVEN_KINDS, _GIVEN_WIDTHS = ("each", "unmixed", "whole", "sink"), ("ints", "bits")
_ROLES = {"label": "label", "func": "func", "prototype": "prototype", "targets": "label"}
_FUNCTIONS = {"wide": wide_type, "bits": bits_type}


class OperandSpec(NamedTuple):
    """One operand of an opcode.

    name: as in the manual's syntax. role: "dst", "src", "addr", "label", "func", "args", "prototype".
    type: concrete PTX type, or None where any will do. kinds: what may be written there, of "reg", "imm", "sreg",
    "symbol", "vec", "sink", "negatable", "pair", "label"; "many": one, two or four elements, at least `vector`;
    "whole": no `_` among them; "listed": no vector register; "each": every element suits the type by itself;
    "unmixed": integers of either sign and integer constants together are integers, not bits;
    "layer": the one of them that `Opcode.variables["layer"]` names is an index; "braced": a scalar in braces, too;
    "low": of a constant the low bits; "low<9.3": below that version; "narrow": registers have at most 16 bits.
    vector: number of elements, 0 for a scalar.
    optional: may be missing at the end. space: of an address (None: generic). width: how a register's size relates
    to the type, as `types.accepts` names it. second: the q of `p|q`. parts: what follows the base inside the brackets
    of an address. range: inclusive bounds of an immediate. choices: its only values.
    multiple: an immediate is a multiple of this.
    """

    name: str
    role: str
    type: str | None
    kinds: frozenset[str]
    vector: int = 0
    optional: bool = False
    space: str | None = None
    width: str = "exact"
    second: OperandSpec | None = None
    parts: tuple[OperandSpec, ...] = ()
    range: tuple[int, int] | None = None
    choices: tuple[int, ...] = ()
    multiple: int = 1
    last: tuple[int, int] | None = None


class Pattern:
    """One operand of a form, before its opcode is known."""

    __slots__ = (
        "choices", "condition", "count", "kinds", "last", "multiple", "name", "negatable", "optional", "parts", "range",
        "role",
        "second", "second_kinds", "second_optional", "second_type", "space", "type", "width",
    )  # fmt: skip

    def __init__(self, text: str, first: bool, default_type: str | None) -> None:
        inside = text.find("]") + 1  # the parts of an address have conditions of their own
        before, _, condition = text[inside:].partition(" if ")
        text = text[:inside] + before
        self.condition = Condition(condition) if condition else None
        self.optional = text[0] == "?"
        out = text.lstrip("? ").startswith("=")
        self.negatable = text.lstrip("?= ").startswith("!")
        body, rest = _body(text.lstrip("?=! "))
        rest, _, second = rest.partition("|")
        second, _, space = second.partition("@")
        rest, _, self.space = rest.partition("@")
        self.space = self.space or space
        self.second_optional = second.startswith("?")
        self.second_kinds = _DESTINATION if second.endswith("(reg)") or not self.second_optional else _SECOND
        self.second, _, self.second_type = second.lstrip("?").removesuffix("(reg)").partition(":")
        rest, _, kinds = rest.partition("(") if not rest.startswith((":wide(", ":bits(")) else _after_function(rest)
        self.kinds, self.range, self.last, self.choices, self.multiple = _kinds(kinds.rstrip(")"))
        self.width = _WIDTHS.get(rest[-1:], "")
        declared, _, self.count = rest.rstrip("+~&%!^").partition("*")
        self.type = declared.lstrip(":") or None
        if not self.width:  # a type that the opcode writes allows a little more than one that goes without saying
            self.width = "exact" if self.type in TYPES else "typed"
        self.parts: tuple[Pattern, ...] = ()
        if body[0] in "[(":
            inner = [part.strip() for part in body[1:-1].split(",")]
            self.name, self.role = inner[0], "addr" if body[0] == "[" else "args"
            self.parts = tuple(Pattern(part, False, None) for part in inner[1:]) if body[0] == "[" else ()
            return
        self.name = body
        role = next((r for kind, r in _ROLES.items() if kind in self.kinds), None)
        destination = out or (first and (body[0] == "d" or body in ("p", "q", "r")))
        self.role = role or ("dst" if destination else "src")
        self.type = self.type or (None if role else default_type)

    def build(self, context: Context, variables: Mapping[str, int | str], space: str | None) -> OperandSpec | None:
        """The operand for one opcode; None when its condition says that it is not written."""
        if self.condition is not None and self.condition.match(context) is None:
            return None
        values: dict[str, int | str] = {**context.mods, **variables}
        kind = _type(self.type, values)
        vector = _count(self.count, values)
        if self.space:
            space = None if self.space == "generic" else _space(self.space, context)
        return OperandSpec(
            self.name,
            self.role,
            kind,
            self._kinds(kind, vector, space, self._given(_GIVEN_KINDS, variables)),
            vector,
            self.optional,
            space if self.role == "addr" else None,
            self._width(context, vector, variables),
            self._second(kind, values),
            tuple(p for part in self.parts if (p := part.build(context, variables, space)) is not None),
            _range(self.range, variables),
            self.choices,
            int(variables.get(self.multiple, self.multiple)),
            _range(self.last, variables),
        )

    def _given(self, words: tuple[str, ...], variables: Mapping[str, int | str]) -> frozenset[str]:
        """Which of these words a rule gives to this operand."""
        return frozenset(word for word in words if self.name in str(variables.get(word, "")).split())

    def _width(self, context: Context, vector: int, variables: Mapping[str, int | str]) -> str:
        """How registers relate to the type; one that a rule gives is no type of the opcode."""
        if given := self._given(_GIVEN_WIDTHS, variables):
            return min(given)
        if self.width == "ints" and not vector:
            return "typed"
        if self.width == "wider" and not _NARROW.isdisjoint(context.mods.values()):
            return "typed"
        if self.width != "typed" or self.type is None:
            return self.width
        return "typed" if self.type.rpartition("(")[2].rstrip(")") in context.mods else "exact"

    def _second(self, kind: str | None, values: Mapping[str, int | str]) -> OperandSpec | None:
        if not self.second:
            return None
        second_type = _type(self.second_type, values) or kind
        return OperandSpec(self.second, self.role, second_type, self.second_kinds, optional=self.second_optional)

    def _kinds(self, kind: str | None, vector: int, space: str | None, given: frozenset[str]) -> frozenset[str]:
        kinds = self.kinds
        if not kinds - _SHAPES and self.role in ("src", "dst"):
            kinds |= _DESTINATION if self.role == "dst" else _SOURCE
        kinds |= given
        if kind in _NO_CONSTANTS and "imm" not in self.kinds and (not vector or kind == "f16x2"):
            kinds -= {"imm"}  # in vectors beside registers they are bits
        if kind == "pred" and self.role == "src":
            kinds |= {"negatable"}
        if "unified" in kinds and space not in (None, "global"):
            kinds -= {"unified"}
        if self.count and not vector and not kinds & (_SHAPES - {"listed"}):
            kinds |= {"braced"}
        if vector:
            kinds |= {"vec"}  # elements of a destination vector may be sinks (6.4.3)
            kinds |= {"sink"} if self.role == "dst" and "whole" not in kinds else frozenset()
        if self.negatable:
            kinds |= {"negatable"}
        return kinds | {"pair"} if self.second else kinds


def readable(operands: str) -> str:
    """The operand part of a form as the manual prints it, without types and kinds."""
    import re  # only messages and documentation come here

    annotation = (
        r":(?:(?:wide|bits)\(\w+\)|\w+)|\*\w+|[+~&%]|(?<=\w)!|(?<=[\w\]+~&%])\([^)]*\)|@[\w:]+|\bif [^,]+"
        r"|(?<![<>!])=(?=\w)"
    )
    return re.sub(r"\s+,", ",", re.sub(annotation, "", operands)).strip()


def _body(text: str) -> tuple[str, str]:
    """The name, `[…]` or `(…)` that heads a pattern, and what follows it."""
    if text[0] in "[(":
        end = text.index("]" if text[0] == "[" else ")") + 1
    else:
        end = next((i for i, c in enumerate(text) if not (c.isalnum() or c == "_")), len(text))
    if not end:
        raise TableError(f"operand pattern '{text}'")
    return text[:end], text[end:].rstrip()


def _after_function(text: str) -> tuple[str, str, str]:
    """Like partition at "(", but behind the parenthesis of `:wide(type)`."""
    end = text.index(")") + 1
    more, found, kinds = text[end:].partition("(")
    return text[:end] + more, found, kinds


_Bounds: TypeAlias = "tuple[str, str] | None"


def _range(bounds: _Bounds, variables: Mapping[str, int | str]) -> tuple[int, int] | None:
    if bounds is None:
        return None
    low, high = (int(variables[end]) if end in variables else int(end, 0) for end in bounds)
    return low, high


def _kinds(text: str) -> tuple[frozenset[str], _Bounds, _Bounds, tuple[int, ...], str]:
    """Kinds, range, range of the last element, choices, and what values are a multiple of."""
    kinds: set[str] = set()
    bounds: list[tuple[str, str]] = []
    choices: tuple[int, ...] = ()
    multiple = "1"
    for word in text.replace(",", " ").split():
        if ".." in word:
            span, _, stride = word.partition(":")
            low, _, high = span.partition("..")
            multiple = stride or multiple
            bounds.append((low, high))
        elif word.lstrip("-")[0].isdigit():
            choices = tuple(int(number, 0) for number in word.split("/"))
        else:
            kinds.add(word)
    first, last = (*bounds, None, None)[:2]
    return frozenset(kinds), first, last, choices, multiple


def _type(expression: str | None, values: Mapping[str, int | str]) -> str | None:
    if not expression or expression == "any":
        return None
    if expression.endswith(")"):
        function, _, argument = expression[:-1].partition("(")
        inner = _type(argument, values)
        return None if inner is None else _FUNCTIONS[function](inner)
    if expression in values:
        return str(values[expression])
    return expression if expression in TYPES else None


def _count(expression: str, values: Mapping[str, int | str]) -> int:
    if not expression:
        return 0
    value = values.get(expression, expression if expression.isdigit() else 0)
    if isinstance(value, int):
        return value
    digits = "".join(filter(str.isdigit, value))
    return int(digits) if digits else 0


def _space(expression: str, context: Context) -> str | None:
    if expression in SPACES or expression in ("tmem", "fabric"):
        return expression
    return context.mods.get(expression)


def parse_operands(text: str, default_type: str | None) -> tuple[Pattern, ...]:
    """Patterns of the operand part of a form."""
    text = text.replace("{!}", "!").replace("{|", "|?").replace("{,", ",?").replace("{ ,", ",?").replace("}", "")
    items, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in "[(") - (char in "])")
        if char == "," and not depth:
            items.append(text[start:at])
            start = at + 1
    items.append(text[start:])
    return tuple(Pattern(item, at == 0, default_type) for at, item in enumerate(item.strip() for item in items) if item)
