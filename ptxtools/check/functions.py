"""Functions: parameters, results, linkage, repeated declarations, aliases (5.1.6, 7.1, 11.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

from ptxtools.ir.nodes import Alias, CallPrototype, Directive, Function, Variable
from ptxtools.isa import Need
from ptxtools.isa.types import TYPES

from . import codes
from .availability import is_gone, lack
from .context import Context
from .declarations import check_alignment, check_type, require_attribute
from .refused import check_function_name, check_sizes
from .values import OPAQUE, Scope

_PARAMETER_ALIGNMENTS = (1, 2, 4, 8, 16, 32, 64, 128)
#: Bytes of kernel parameters (5.1.6.1): the limits of newer versions and targets, and of earlier ones.
_ENTRY_BYTES_NEW, _ENTRY_BYTES = 32764, (4352, 256)
#: From which version on ptxas has more than the last of these on every target.
_MORE_EVERYWHERE = (1, 5)
#: With the ABI, which came with PTX 2.0 and sm_20, a function returns one value (7.1.1).
_ONE_RESULT = Need((), (2, 0), ("sm_20",))
#: The help for `narrow_values`.
WIDE_ENOUGH = ("pass a .b32",)
#: A property that all declarations of a function must share (11.4.6).
_ENDS = ".noreturn"
#: Directives whose values they must share, too (11.4.8, 11.4.9).
_KEPT = (".abi_preserve", ".abi_preserve_control")
_POINTER_SPACES = frozenset({"", "const", "global", "local", "shared"})


def check_function_header(context: Context, function: Function) -> None:
    """Parameters, results and linkage of one `.entry` or `.func`."""
    body = function.body is not None
    if function.name[:1] == "%":
        check_function_name(context, function.name, function.name_span)
    if function.name == "_":
        message = "'_' is not a name: a function cannot have it"
        context.report(codes.WRONG_KIND_OF_NAME, message, function.name_span, section="4.4")
    check_parameters(context, function.params, function.returns, kind=function.kind, allocated=body)
    if function.kind == "func":
        if body:
            _narrow(context, function)
        if len(function.returns) > 1 and all(v.space == "reg" for v in function.returns):
            _several_results(context, function.returns[1])
    if function.kind == "entry" and not body:
        context.require_addition("the declaration of a kernel", function.name_span)
    if function.kind == "entry":
        _entry_size(context, function)
        if function.returns:
            message = f"entry '{function.name}' cannot return a value"
            context.report(codes.RESULT, message, function.name_span, section="11.2.1")
    if function.linkage == "extern" and function.body is not None:
        message = f"'{function.name}' is .extern but has a body"
        help = ("remove .extern, or end the declaration with ';'",)
        context.report(codes.LINKAGE, message, function.name_span, help=help, section="11.6.1")
    if function.attributes:
        _attributes(context, function)
    if function.linkage == "weak":
        context.require_directive(".weak", context.word(function.span, ".weak"))
    if function.linkage == "common":
        context.report(codes.LINKAGE, "a function cannot be .common", function.name_span, section="11.6.4")


def _several_results(context: Context, second: Variable) -> None:
    """The ABI has one result (7.1.1); ptxas returns several in registers."""
    if context.gathered is None and is_gone(_ONE_RESULT, *context.declared[:2]):
        help = ("return a .param array",)
        context.tolerate("a second result from sm_20 on", second.name_span, section="7.1.1", help=help)


def _attributes(context: Context, function: Function) -> None:
    from ptxtools.isa.directives import ATTRIBUTES

    for name, _ in function.attributes:
        info = ATTRIBUTES.get(f".{name.lstrip('.')}")
        if info is None or "func" not in info.places:
            message = f"attribute {name} applies only to variables"
            context.report(codes.ATTRIBUTE, message, function.name_span, section="5.4.8")
        else:
            require_attribute(context, info, function.name_span)


def _narrow(context: Context, function: Function) -> None:
    for variable, message in narrow_values(function):
        context.report(codes.PARAMETER, message, variable.name_span, help=WIDE_ENOUGH, section="7.1")


def narrow_values(signature: Function | CallPrototype) -> Iterator[tuple[Variable, str]]:
    """Values passed to functions take at least 32 bits (7.1): types require it, `.bN` leaves it to the caller. Vector
    registers may have narrower components (ptxas passes `.v2 .u16`).

    Yields the narrower variables, each with a message.
    """
    for v in (*signature.returns, *signature.params):
        info = TYPES.get(v.type)
        if info and not v.dims and (info.kind == "pred" or (info.kind == "int" and info.bits < 32 and v.vector == 1)):
            yield v, f"'{v.name}': .{v.type} values cannot be passed to or from functions"


def check_parameters(
    context: Context, params: Sequence[Variable], returns: Sequence[Variable], *, kind: str, allocated: bool = False
) -> None:
    """Formal parameters and results of an "entry", a "func" or a "prototype". allocated: they are allocated here, in
    the definition of a function; those that cannot be may still be declared."""
    for variable in (*returns, *params):
        _parameter(context, variable, kind, allocated)
    for variable in (*returns, *params[:-1]):
        if variable.space == "param" and kind != "entry" and any(not n for n in variable.dims):
            message = f"'{variable.name}' has no size: only the last parameter of a function may lack one"
            context.report(codes.PARAMETER, message, variable.name_span, section="7.1")
    if len(returns) > 1 and any(v.space == "param" for v in returns):
        message = "several results must be registers: .param allows one"
        context.report(codes.RESULT, message, returns[1].name_span, section="7.1")


def _parameter(context: Context, v: Variable, kind: str, allocated: bool) -> None:
    if kind == "entry" and v.space != "param":
        message = f"parameter '{v.name}' of an entry must be in .param, not .{v.space}"
        context.report(codes.PARAMETER, message, v.name_span, section="5.1.6.1")
        return
    if v.space not in ("param", "reg"):
        message = f"parameter '{v.name}' must be in .param or .reg, not .{v.space}"
        context.report(codes.PARAMETER, message, v.name_span, section="7.1")
        return
    if v.count is not None:
        context.report(codes.PARAMETER, f"'{v.name}': parameters cannot be ranges", v.name_span, section="7.1")
    if v.name == "_" and kind != "prototype":
        context.report(codes.PARAMETER, "only prototypes may have unnamed parameters", v.name_span, section="11.3.3")
    if v.type in OPAQUE and kind == "func":
        message = f"'{v.name}': textures, samplers and surfaces can be parameters only of entries"
        context.report(codes.PARAMETER, message, v.name_span, section="5.3")
    if v.dims:
        check_sizes(context, v)
    if v.space == "param":
        _since(context, v, kind)
        _param_space(context, v, kind, allocated)
    else:
        check_alignment(context, v.align, v)
        if v.ptr is not None:
            _pointer(context, v, "func")
    if v.space == "reg" and v.dims:
        message = f"register '{v.name}' cannot be an array"
        context.report(codes.DECLARATION_SHAPE, message, v.name_span, section="5.1.1")
    check_type(context, v, allocated=allocated)
    if v.attributes:
        context.report(codes.ATTRIBUTE, f"'{v.name}': parameters cannot have attributes", v.name_span, section="5.4.8")
    if v.init is not None:
        context.report(codes.INITIALISER_PLACE, "a parameter cannot have an initialiser", v.name_span, section="5.4.4")


def _since(context: Context, v: Variable, kind: str) -> None:
    """Entries had parameters first, then functions; a function's last parameter may lack a size."""
    if kind == "entry":
        context.require_addition("a list of parameters", v.name_span)
    elif None in v.dims:
        context.require_addition("an array parameter without size", v.name_span)
    else:
        context.require_addition("a function parameter in .param", v.name_span)


#: The size of a parameter is a number of 32 bits.
_MOST_BYTES = 0xFFFF_FFFF


def _param_space(context: Context, v: Variable, kind: str, allocated: bool) -> None:
    if v.vector > 1 and not v.dims and allocated:
        message = f"parameter '{v.name}': .param cannot contain vectors"
        context.report(codes.PARAMETER, message, v.name_span, help=("use an array of bytes",), section="5.1.6")
    if v.type == "f16x2" and not v.dims and kind == "entry":
        message = f"parameter '{v.name}': .param cannot contain .f16x2"
        context.report(codes.PARAMETER, message, v.name_span, help=("declare it as .b32",), section="5.1.6")
    if len(v.dims) > 1:
        message = f"parameter '{v.name}': array parameters have one dimension"
        context.report(codes.PARAMETER, message, v.name_span, section="5.1.6")
    elif any(n is not None and n < 0 for n in v.dims):
        message = f"parameter '{v.name}' has a negative size"
        context.report(codes.DECLARATION_SHAPE, message, v.name_span, section="5.4.3")
    elif kind != "entry" and any(n is not None and n > _MOST_BYTES for n in v.dims):
        message = f"parameter '{v.name}': its size has 32 bits"
        context.report(codes.TOO_LARGE, message, v.name_span, section="5.4.3")
    elif kind == "entry" and any(not n for n in v.dims):
        message = f"parameter '{v.name}' of an entry needs a size"
        context.report(codes.PARAMETER, message, v.name_span, section="5.1.6.1")
    if kind != "entry" and allocated and v.align is not None and v.align not in _PARAMETER_ALIGNMENTS:
        message = f"parameter '{v.name}': alignment {v.align} is not one of 1, 2, 4, … 128"
        context.report(codes.ALIGNMENT, message, v.name_span, section="5.1.6.4")
    else:
        check_alignment(context, v.align, v)
    if v.ptr is not None:
        _pointer(context, v, kind)


def _pointer(context: Context, v: Variable, kind: str) -> None:
    assert v.ptr is not None
    space, align = v.ptr
    if kind != "entry":
        message = f"'{v.name}': .ptr is allowed only in parameters of entries"
        context.report(codes.PARAMETER, message, context.word(v.span, ".ptr"), section="5.1.6.3")
    elif space in OPAQUE:
        check_alignment(context, align, v)
        context.require_addition("a pointer to a texture, sampler or surface", context.word(v.span, ".ptr"))
    elif space not in _POINTER_SPACES:
        message = f"'{v.name}': a pointer cannot point to .{space}"
        context.report(codes.PARAMETER, message, context.word(v.span, ".ptr"), section="5.1.6.3")
    else:
        check_alignment(context, align, v)
        context.require_directive(".ptr", context.word(v.span, ".ptr"))


def _entry_size(context: Context, function: Function) -> None:
    offset = 0
    for v in function.params:
        info = TYPES.get(v.type)
        if info is None or None in v.dims:
            return
        size = info.bytes * v.vector
        for n in v.dims:
            size *= n or 0
        align = max(1, v.align or info.bytes * v.vector)
        offset = -(-offset // align) * align + size
    if offset > _ENTRY_BYTES_NEW:
        message = f"the parameters of '{function.name}' take {offset} bytes; at most {_ENTRY_BYTES_NEW} are allowed"
        context.report(codes.TOO_LARGE, message, function.name_span, section="5.1.6.1")
        return
    large = next((limit for limit in _ENTRY_BYTES if offset > limit), None)
    if large == _ENTRY_BYTES[-1] and context.gathered is None and context.declared.version >= _MORE_EVERYWHERE:
        subject, need = f"more than {large} bytes of parameters", Need((), (1, 4), ("sm_20",))
        if lack(subject, (need,), context.declared):
            context.tolerate(f"{subject} ({context.declared})", function.name_span, section="5.1.6.1")
    elif large is not None:
        context.require_addition(f"more than {large} bytes of parameters", function.name_span)


# --- repeated declarations --------------------------------------------------------------------------------------------


def check_repeated_function(context: Context, earlier: Function, later: Function) -> None:
    """Another declaration of a function: one definition, and all declarations must agree (7.1)."""
    if earlier.body is not None:
        message = f"'{later.name}' is already defined"
        where = f"the definition is on line {context.source.line_of(earlier.name_span[0])}"
        context.report(codes.REDECLARED, message, later.name_span, help=(where,), section="7.1")
        return
    difference = _difference(earlier, later) or next((n for n in _KEPT if _values(earlier, n) != _values(later, n)), "")
    if difference:
        context.inconsistent.add(later.name)
        message = f"'{later.name}' differs from its earlier declaration: {difference}"
        context.report(codes.INCONSISTENT, message, later.name_span, section="7.1")


def _values(function: Function, name: str) -> list[object]:
    return [item.args for item in function.directives if isinstance(item, Directive) and item.name == name]


def _difference(earlier: Function, later: Function) -> str:
    if earlier.kind != later.kind:
        return f".{earlier.kind} there, .{later.kind} here"
    linkages = (earlier.linkage, later.linkage)
    if earlier.linkage != later.linkage and linkages not in (("visible", ""), ("weak", "")):
        return f"linkage {_linkage(earlier)} there, {_linkage(later)} here"
    for what, first, second in (
        ("parameters", earlier.params, later.params),
        ("results", earlier.returns, later.returns),
    ):
        if len(first) != len(second):
            return f"{len(first)} {what} there, {len(second)} here"
        for a, b in zip(first, second, strict=True):
            if (a.space, a.type, a.vector, a.dims) != (b.space, b.type, b.vector, b.dims):
                return f"'{b.name}' is .{b.space} .{b.type} here, .{a.space} .{a.type} there"
            if parameter_alignment(a) != parameter_alignment(b):
                return f"'{b.name}' is aligned to {parameter_alignment(b)} here, to {parameter_alignment(a)} there"
    ends = [any(item.name == _ENDS for item in f.directives if isinstance(item, Directive)) for f in (earlier, later)]
    if ends[0] != ends[1]:
        return f"{_ENDS} only {'there' if ends[0] else 'here'}"
    return ""


def parameter_alignment(v: Variable) -> int:
    """The alignment on which declarations, or argument and parameter, must agree: at least the type's."""
    info = TYPES.get(v.type)
    return max(v.align or 1, info.bytes * v.vector if info else 1)


def _linkage(function: Function) -> str:
    return f".{function.linkage}" if function.linkage else "none"


def check_repeated_variable(context: Context, earlier: Variable, later: Variable) -> None:
    """Another declaration of a module variable: .extern declarations may repeat, and a definition may follow (11.6)."""
    if (earlier.space, earlier.type, earlier.vector) != (later.space, later.type, later.vector):
        message = (
            f"'{later.name}' is .{later.space} .{later.type} here, but was .{earlier.space} .{earlier.type} "
            f"on line {context.source.line_of(earlier.name_span[0])}"
        )
        context.report(codes.INCONSISTENT, message, later.name_span, section="11.6.1")
    elif not _same_shape(earlier.dims, later.dims):
        context.report(codes.INCONSISTENT, _shapes_differ(context, earlier, later), later.name_span, section="11.6.1")
    elif later.linkage == "extern":
        return
    elif earlier.linkage != "extern":
        where = f"the first one is on line {context.source.line_of(earlier.name_span[0])}"
        context.report(
            codes.REDECLARED, f"'{later.name}' is declared twice", later.name_span, help=(where,), section="5.4"
        )
    elif not later.linkage:
        message = f"'{later.name}' was declared .extern: its definition must be .visible, .weak or .common"
        context.report(codes.LINKAGE, message, later.name_span, section="11.6.1")


def _same_shape(one: tuple[int | None, ...], two: tuple[int | None, ...]) -> bool:
    """Whether the dimensions agree, if both are given."""
    return len(one) == len(two) and all(a == b or None in (a, b) for a, b in zip(one, two, strict=True))


def _shapes_differ(context: Context, earlier: Variable, later: Variable) -> str:
    words = [
        f"an array {''.join(f'[{n}]' if n is not None else '[]' for n in v.dims)}" if v.dims else "not an array"
        for v in (later, earlier)
    ]
    return (
        f"'{later.name}' is {words[0]} here, but was {words[1]} on line {context.source.line_of(earlier.name_span[0])}"
    )


def check_alias(context: Context, alias: Alias, scope: Scope) -> None:
    """`.alias name, target`: both are functions with equal prototypes, the target is defined (11.2.3)."""
    context.require_directive(".alias", context.word(alias.span, ".alias"))
    symbols = []
    for name in (alias.name, alias.target):
        symbol = scope.lookup(name)
        if not isinstance(symbol, Function) or symbol.kind != "func":
            message = f"'{name}' is not a .func declared before"
            context.report(codes.ALIAS, message, context.word(alias.span, name), section="11.2.3")
            return
        symbols.append(symbol)
    first, second = symbols
    before = takewhile(lambda item: item is not alias, context.module.items)
    earlier = {item.name: item for item in before if isinstance(item, Alias)}
    heads = [Function("func", "", s.params, s.returns, [i for i in s.directives if isinstance(i, Directive)])
             for s in (second, first)]  # fmt: skip
    difference = _difference(*heads)
    if alias.name == alias.target:
        message = f"'{alias.name}' cannot be an alias of itself"
        context.report(codes.ALIAS, message, alias.span, section="11.2.3")
    elif alias.name in earlier:
        message = f"'{alias.name}' is an alias of '{earlier[alias.name].target}' already"
        context.report(codes.ALIAS, message, context.word(alias.span, alias.name), section="11.2.3")
    elif alias.target in earlier:
        message = f"'{alias.target}' is an alias itself: an alias needs a function that is defined"
        context.report(codes.ALIAS, message, alias.span, section="11.2.3")
    elif difference:
        message = f"'{alias.name}' and '{alias.target}' differ: {difference}"
        context.report(codes.ALIAS, message, alias.span, section="11.2.3")
    elif first.body is not None:
        message = f"'{alias.name}' has a body: it cannot be an alias"
        context.report(codes.ALIAS, message, context.word(alias.span, alias.name), section="11.2.3")
    elif second.linkage == "extern":
        message = f"'{alias.target}' is .extern: an alias needs a function of this module"
        context.report(codes.ALIAS, message, context.word(alias.span, alias.target), section="11.2.3")
    elif second.linkage == "weak":
        message = f"'{alias.target}' is .weak: it cannot have an alias"
        context.report(codes.ALIAS, message, context.word(alias.span, alias.target), section="11.2.3")
