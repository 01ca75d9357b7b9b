"""Initialisers of variables (5.4.4)."""

from __future__ import annotations

from ptxtools.ir.nodes import Function, Immediate, Initializer, Member, SymbolValue, Variable
from ptxtools.isa.types import TYPES

from . import codes
from .context import Context
from .values import OPAQUE, Scope

_INITIALISED = frozenset({"global", "const"})
#: Types that an address, or a byte of one, can initialise.
_ADDRESSES, _MASKED = ("u32", "u64"), ("u8", "u32", "u64")
_CALLED = {"func": "a function", "entry": "a kernel"}


def check_initialiser(context: Context, v: Variable, scope: Scope) -> None:
    """Whether the variable may have its initial value."""
    if v.linkage == "extern":
        return
    if v.type in OPAQUE:
        if not _names_members(v.init, len(v.dims)):
            message = f"'{v.name}': a .{v.type} is initialised by members in braces, such as {{width = 16}}"
            context.report(codes.INITIALISER_TYPE, message, v.name_span, section="5.3")
        return
    if v.space not in _INITIALISED:
        message = f"'{v.name}': variables in .{v.space} cannot have an initialiser"
        context.report(codes.INITIALISER_PLACE, message, v.name_span, section="5.4.4")
        return
    if v.type in ("f16", "f16x2") and v.init != []:
        message = f"'{v.name}': a .{v.type} variable cannot have an initialiser"
        context.report(
            codes.INITIALISER_TYPE, message, v.name_span, help=("declare it as .b16 or .b32",), section="5.4.4"
        )
        return
    sizes = (v.dims[0] or None, *v.dims[1:]) if v.dims else ()
    shape = (*sizes, v.vector) if v.vector > 1 else sizes
    assert v.init is not None
    _Values(context, v, scope).check(v.init, shape)


def _names_members(init: Initializer | None, depth: int) -> bool:
    """Whether the initialiser of an opaque variable has only named members in its braces (of each element)."""
    if not isinstance(init, list):
        return False
    return all(isinstance(part, Member) or (depth > 0 and _names_members(part, depth - 1)) for part in init)


class _Values:
    """The values of one initialiser; only the first error of each kind is reported."""

    def __init__(self, context: Context, variable: Variable, scope: Scope) -> None:
        self.context, self.variable, self.scope = context, variable, scope
        self.said: set[str] = set()

    def check(self, init: Initializer, shape: tuple[int | None, ...]) -> None:
        waiting: list[tuple[Initializer, tuple[int | None, ...]]] = [(init, shape)]
        while waiting:
            part, dims = waiting.pop()
            if isinstance(part, list):
                if not dims:
                    self._say(codes.INITIALISER_TYPE, "braces around the value of a scalar")
                elif dims[0] is not None and len(part) > dims[0]:
                    self._say(codes.INITIALISER_COUNT, f"{len(part)} values for {dims[0]} elements")
                elif len(dims) == 1 and self.variable.vector > 1 and len(part) < self.variable.vector:
                    self._say(codes.INITIALISER_COUNT, f"{len(part)} values for a vector of {self.variable.vector}")
                else:
                    waiting.extend((inner, dims[1:]) for inner in part)
            elif dims:
                self._say(codes.INITIALISER_COUNT, "a single value where a list in braces is required")
            else:
                self._value(part)

    def _value(self, part: Initializer) -> None:
        info = TYPES[self.variable.type]
        if isinstance(part, Immediate):
            whole = part.type in ("s64", "u64")
            if whole == (info.kind == "float"):
                # ptxas initialises an untyped variable with the bits of a floating-point constant.
                if not (info.kind == "bits" and not whole):
                    what = "an integer" if whole else "a floating-point"
                    self._say(codes.INITIALISER_TYPE, f"{what} constant initialises a .{self.variable.type}")
            elif not whole and info.kind == "int":
                self._say(codes.INITIALISER_TYPE, f"a floating-point constant initialises a .{self.variable.type}")
        elif isinstance(part, SymbolValue):
            self._symbol(part)

    def _symbol(self, part: SymbolValue) -> None:
        if part.generic:
            self.context.require_addition("generic() in an initialiser", self.variable.name_span)
        if part.mask is not None:
            self.context.require_addition("a mask in an initialiser", self.variable.name_span)
        symbol = self.scope.lookup(part.name)
        span = self.context.word(self.variable.span, part.name)
        if symbol is None:
            message = f"'{part.name}' is not declared before this initialiser"
            self.context.report(codes.INITIALISER_SYMBOL, message, span, section="5.4.4")
        elif isinstance(symbol, Variable) and symbol.space not in _INITIALISED:
            message = f"'{part.name}' is in .{symbol.space}: only addresses in .global and .const can initialise"
            self.context.report(codes.INITIALISER_SYMBOL, message, span, section="5.4.4")
        elif not isinstance(symbol, (Variable, Function)):
            message = f"'{part.name}' has no address"
            self.context.report(codes.INITIALISER_SYMBOL, message, span, section="5.4.4")
        elif self.variable.type not in (_ADDRESSES if part.mask is None else _MASKED):
            self._say(codes.INITIALISER_TYPE, f"an address does not fit a .{self.variable.type}")
        else:
            what = _CALLED[symbol.kind] if isinstance(symbol, Function) else "a variable"
            self.context.require_addition(f"the address of {what} as an initial value", span)

    def _say(self, code: str, message: str) -> None:
        if code not in self.said:
            self.said.add(code)
            v = self.variable
            self.context.report(code, f"'{v.name}': {message}", v.name_span, section="5.4.4")
