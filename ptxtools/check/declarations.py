"""Variables: where each space, type, shape, alignment and attribute is allowed (5.1, 5.2, 5.4)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ptxtools.diagnostics import NO_SPAN, Span
from ptxtools.ir.nodes import Variable
from ptxtools.isa import Need
from ptxtools.isa.types import TYPES

from . import codes
from .availability import lack
from .context import Context
from .initialisers import check_initialiser
from .refused import check_sizes, check_variable_name
from .values import OPAQUE, Scope

if TYPE_CHECKING:
    from ptxtools.isa.directives import AttributeInfo

#: Spaces allowed in a function body and at module level. With the ABI, .reg and .local are local to functions.
_IN_FUNCTION = frozenset({"reg", "local", "shared", "global", "const", "param"})
_IN_MODULE = frozenset({"global", "const", "shared", "tex"})
#: Spaces that the module could declare before PTX 3.0 (7.1.1).
_WITHOUT_ABI, _ABI_SINCE = frozenset({"reg", "local"}), (3, 0)
#: Before this version, entries declare their parameters in their bodies (11.2.1).
_LISTS_SINCE = (1, 4)
#: Constant memory once had banks (5.1.3.1).
BANK, _LAST_BANK, _NO_BANKS = "a constant bank", 10, Need((), (2, 2), ())
#: Textures before PTX 1.5 are numbers (5.1.8).
_TEXTURES = frozenset({"u32", "u64"})
#: Bytes of constant memory that a module declares (5.1.3).
_CONSTANT_BYTES = 65536
_MAX_VECTOR_BITS = 128
_MAX_PARAM_ALIGNMENT = 128
#: Alignments and numbers of registers have 32 bits.
_MAX_NUMBER = (1 << 32) - 1
_MANAGED = ".managed"
#: Linkage added after PTX 1.0.
_DATED = frozenset({"weak", "common"})


def check_variable(context: Context, variable: Variable, scope: Scope, *, in_function: bool) -> None:
    """All rules for a declaration other than a parameter."""
    if not _space(context, variable, in_function):
        return
    if not in_function and variable.name[0] == "%":
        check_variable_name(context, variable)
    _shape(context, variable)
    check_type(context, variable)
    check_alignment(context, variable.align, variable)
    if in_function:
        _in_function(context, variable)
    _linkage(context, variable)
    if variable.attributes:
        _attributes(context, variable)
    if variable.init is not None:
        check_initialiser(context, variable, scope)


def check_constant_space(context: Context, variables: Iterable[Variable]) -> None:
    """A module's `.const` variables have at most 64 KiB in total; banks (5.1.3.1) are separate."""
    used = 0
    for v in variables:
        if v.space != "const" or v.bank is not None or v.linkage == "extern" or v.type not in TYPES:
            continue
        size = TYPES[v.type].bytes * v.vector
        for n in v.dims:
            size *= n if n is not None else len(v.init) if isinstance(v.init, list) else 0
        align = v.align if v.align is not None and v.align > 0 else TYPES[v.type].bytes * v.vector
        used = -(-used // max(align, 1)) * align + max(size, 0)
        if used > _CONSTANT_BYTES:
            message = f"the .const variables up to '{v.name}' take {used} bytes; at most {_CONSTANT_BYTES} are allowed"
            context.report(codes.TOO_LARGE, message, v.name_span, section="5.1.3")
            return


def check_unnamed(context: Context, unnamed: Iterable[tuple[Variable, bool]]) -> None:
    """Declarations without a name, and ranges of none (5.4.1): ptxas looks at what is written, and drops them."""
    for v, in_function in unnamed:
        if v.name and not _space(context, v, in_function):
            continue
        _shape(context, v)
        if v.name or v.type != "pred":
            check_type(context, v)
        check_alignment(context, v.align, v)
        if v.bank is not None:
            refuse_banks(context, v.span)
        if in_function:
            _in_function(context, v)
        what = f"'{v.name}<0>' declares nothing" if v.name else "a declaration without a name"
        context.tolerate(what, v.name_span if v.name else v.span, section="5.4.1", help=("remove it",))


def same_declarator(earlier: object, later: Variable) -> bool:
    """Whether both come from one range `d<4>`, and so have the same errors."""
    return isinstance(earlier, Variable) and earlier.name_span == later.name_span != NO_SPAN


def _space(context: Context, v: Variable, in_function: bool) -> bool:
    allowed = _IN_FUNCTION if in_function else _IN_MODULE
    if v.name == "_":
        message = "'_' discards a result: it cannot be declared"
        context.report(codes.WRONG_KIND_OF_NAME, message, v.name_span, section="4.4")
        return False
    if not in_function and v.space in _WITHOUT_ABI and context.declared.version < _ABI_SINCE:
        return True
    if v.space not in allowed:
        where = "inside a function" if in_function else "at module level"
        message = f"'{v.name}': .{v.space} variables cannot be declared {where}"
        context.report(codes.DECLARATION_SPACE, message, v.name_span, section="5.1")
        return False
    if v.space == "tex":
        message = f"'{v.name}': the .tex space was removed in PTX ISA 1.5"
        help = ("declare a .global .texref",)
        context.refuse_removed(".tex", Need((), (1, 5), ()), v.name_span, message, help=help, section="5.1.8")
        if v.type not in _TEXTURES or v.vector > 1 or v.dims:
            message = f"'{v.name}': a texture in .tex is one .u32 or .u64"
            context.report(codes.DECLARATION_TYPE, message, v.name_span, section="5.1.8")
    if v.bank is not None or (v.space == "const" and context.declared.version < _NO_BANKS.ptx):
        _bank(context, v, v.bank or 0)
    if v.count is not None and v.count > _MAX_NUMBER:
        message = f"'{v.name}<{v.count}>': the numbers of registers have 32 bits"
        context.report(codes.TOO_LARGE, message, v.name_span, section="5.4.6")
    return True


def _bank(context: Context, v: Variable, bank: int) -> None:
    """Bank 0 is for variables with a size, the others for external arrays without one (5.1.3.1)."""
    if v.bank is not None and not refuse_banks(context, v.name_span):
        return
    if bank and not context.require_addition(BANK, v.name_span):
        return
    if bank > _LAST_BANK:
        message = f"constant banks are 0 to {_LAST_BANK}, found {bank}"
        context.report(codes.DECLARATION_SPACE, message, v.name_span, section="5.1.3.1")
    elif (bank > 0) != (v.linkage == "extern" and v.dims[:1] in ((None,), (0,))):
        message = f"'{v.name}': constant banks 1 to {_LAST_BANK} hold .extern arrays without size, bank 0 all others"
        context.report(codes.DECLARATION_SPACE, message, v.name_span, section="5.1.3.1")


def refuse_banks(context: Context, span: Span) -> bool:
    """Report constant banks if they are gone, since PTX 2.2 (5.1.3.1); returns whether they remain."""
    message = "constant banks were removed in PTX ISA 2.2"
    return context.refuse_removed("a constant bank", _NO_BANKS, span, message,
                           help=("write .const",), section="5.1.3.1")  # fmt: skip


def _in_function(context: Context, v: Variable) -> None:
    """Properties that a declaration inside a body cannot have."""
    if v.linkage:
        message = f"'{v.name}': .{v.linkage} is allowed only at module level"
        context.report(codes.LINKAGE, message, context.word(v.span, f".{v.linkage}"), section="11.6")
    if v.type in OPAQUE:
        message = f"'{v.name}': texture, sampler and surface variables must be declared at module level"
        context.report(codes.DECLARATION_SPACE, message, v.name_span, section="5.3")
    if v.space == "param" and context.declared.version >= _LISTS_SINCE:
        context.require("a .param variable in a body", (Need((), (2, 0), ()),), v.name_span, "5.1.6.4")
    if v.space == "param" and v.vector > 1 and not v.dims:
        message = f"'{v.name}': .param cannot contain vectors"
        context.report(codes.DECLARATION_SHAPE, message, v.name_span, section="5.1.6")
    if v.space == "param" and v.type == "f16x2" and not v.dims:
        message = f"'{v.name}': .param cannot contain .f16x2"
        context.report(codes.DECLARATION_TYPE, message, v.name_span, help=("declare it as .b32",), section="5.1.6")
    if v.space == "param" and v.align is not None and v.align > _MAX_PARAM_ALIGNMENT:
        message = f"alignment {v.align} of a parameter; at most {_MAX_PARAM_ALIGNMENT} is allowed"
        context.report(codes.ALIGNMENT, message, context.word(v.span, ".align"), section="5.4.5")


def _shape(context: Context, v: Variable) -> None:
    if v.vector not in (0, 1, 2, 4):
        message = f"'{v.name}': vectors have 2 or 4 elements, found {v.vector}"
        context.report(codes.DECLARATION_SHAPE, message, v.name_span, section="5.4.2")
        return
    if v.space == "reg" and v.dims:
        message = f"register '{v.name}' cannot be an array"
        help = (f"declare {v.name}<n>",)
        context.report(codes.DECLARATION_SHAPE, message, v.name_span, help=help, section="5.1.1")
        return
    if v.vector > 1 and v.type in OPAQUE:
        message = f"'{v.name}': there are no vectors of .{v.type}"
        context.report(codes.DECLARATION_SHAPE, message, v.name_span, section="5.4.2")
    elif v.vector > 1 and v.type in TYPES:
        bits = TYPES[v.type].bits * v.vector
        if v.type == "pred":
            context.report(codes.DECLARATION_TYPE, "vectors of predicates do not exist", v.name_span, section="5.4.2")
        elif bits > _MAX_VECTOR_BITS:
            message = f"a vector of {v.vector} .{v.type} has {bits} bits; at most {_MAX_VECTOR_BITS} are allowed"
            context.report(codes.DECLARATION_SHAPE, message, v.name_span, section="5.4.2")
    if v.dims:
        check_sizes(context, v)
        _dimensions(context, v)


def _dimensions(context: Context, v: Variable) -> None:
    if any(n is not None and n < 0 for n in v.dims):
        message = f"array '{v.name}' has a negative size"
        context.report(codes.DECLARATION_SHAPE, message, v.name_span, section="5.4.3")
        return
    later = v.dims[1:]
    if None in later or 0 in later:
        message = f"array '{v.name}': only the first size may be missing"
        context.report(codes.DECLARATION_SHAPE, message, v.name_span, section="5.4.3")
        return
    known_by_initialiser = v.init not in (None, []) and not v.dims[0]
    if known_by_initialiser and v.dims[0] == 0 and v.linkage != "extern":
        message = f"array '{v.name}' has no elements and an initialiser"
        context.tolerate(message, v.name_span, section="5.4.3", help=(f"write {v.name}[]",))
    if v.linkage != "extern" and not known_by_initialiser and any(n is None or n == 0 for n in v.dims):
        message = f"array '{v.name}' has no size"
        help = ("add a size, an initialiser, or .extern",)
        context.report(codes.DECLARATION_SHAPE, message, v.name_span, help=help, section="5.4.3")


def check_type(context: Context, v: Variable, *, allocated: bool = True) -> None:
    """Whether the type can be declared in that space. allocated: it is no parameter of a mere declaration."""
    info = TYPES.get(v.type)
    if info is None or (not info.declarable and v.type not in OPAQUE):
        message = f"'.{v.type}' is an instruction type: no variable can have it"
        help = (f"use .b{max(8, info.bits)}",) if info is not None and info.bits <= 128 else ()
        context.report(codes.DECLARATION_TYPE, message, context.word(v.span, f".{v.type}"), help=help, section="5.2")
        context.ill_typed.add(v.name)
    elif v.type == "pred" and v.space != "reg":
        message = f"'{v.name}': predicates are allowed only in registers"
        context.report(codes.DECLARATION_TYPE, message, v.name_span, section="5.2.1")
    elif v.type in OPAQUE and v.space not in ("global", "param"):
        message = f"'{v.name}': texture, sampler and surface variables must be in .global or .param"
        context.report(codes.DECLARATION_TYPE, message, v.name_span, section="5.3")
    elif v.type == "samplerref" and v.dims and "texmode_independent" not in context.module.target_options:
        message = f"'{v.name}': an array of .samplerref without .target option texmode_independent"
        context.tolerate(message, v.name_span, section="5.3")
        _type_needs(context, v, allocated)
    elif v.type == "samplerref" and "texmode_independent" not in context.module.target_options:
        message = f"'{v.name}': .samplerref needs .target option texmode_independent"
        context.report(codes.TARGET_OPTION, message, v.name_span, section="5.3")
    else:
        _type_needs(context, v, allocated)


def _type_needs(context: Context, v: Variable, allocated: bool) -> None:
    """ptxas dates the type of single variables only; vectors of .f16x2, too, are none."""
    need = {
        "f16x2": Need((), (4, 2), ("sm_53",)),
        "b128": Need((), (8, 3), ("sm_70",)),
        "surfref": Need((), (1, 5), ()),
        "samplerref": Need((), (1, 5), ()),
        "texref": Need((), (1, 5), ()),
    }.get(v.type)
    if need is not None:
        span = context.word(v.span, f".{v.type}")
        unseen = v.vector > 1 if v.type == "f16x2" else v.dims or not allocated
        if unseen and context.gathered is None and lack("", (need,), context.declared):
            what = "a vector" if v.vector > 1 else "an array" if v.dims else "a parameter"
            context.tolerate(f"{what} of .{v.type} ({context.declared})", span, section="5.2")
        else:
            context.require(f"type .{v.type}", (need,), span, "5.2")


def check_alignment(context: Context, align: int | None, v: Variable) -> None:
    """An alignment is a power of two."""
    if align is not None and v.align is align and context.text:
        _check_repeated(context, v)
    if align is not None and (align <= 0 or align & (align - 1) or align > _MAX_NUMBER):
        message = (
            f"alignment {align} must be a power of two" if align <= _MAX_NUMBER else f"alignment {align} is too large"
        )
        context.report(codes.ALIGNMENT, message, context.word(v.span, ".align"), section="5.4.5")


def _check_repeated(context: Context, v: Variable) -> None:
    """ptxas takes the last of several alignments; the parser has refused those that it would drop."""
    own = context.text[slice(*v.span)].partition(".ptr")[0]
    if own.count(".align") > 1:
        message = f"'{v.name}' has several alignments"
        context.tolerate(message, context.word(v.span, ".align"), section="5.4.5", help=("write the last one",))


def _linkage(context: Context, v: Variable) -> None:
    if not v.linkage:
        return
    if v.linkage == "common" and v.space != "global":
        message = f"'{v.name}': .common variables must be in .global"
        context.report(codes.LINKAGE, message, v.name_span, section="11.6.4")
    elif v.linkage == "common" and v.type in OPAQUE:
        message = f"'{v.name}': textures, samplers and surfaces cannot be .common"
        context.report(codes.LINKAGE, message, v.name_span, section="11.6.4")
    if v.linkage in _DATED:
        _dated(context, v)
    if v.linkage == "extern" and v.init is not None:
        message = f"'{v.name}' is defined elsewhere (.extern): it has no initialiser here"
        context.report(codes.INITIALISER_PLACE, message, v.name_span, section="11.6.1")


def _dated(context: Context, v: Variable) -> None:
    """`.weak` and `.common` came later; ptxas has .common on every target."""
    from ptxtools.isa.directives import DIRECTIVES

    name, span = f".{v.linkage}", context.word(v.span, f".{v.linkage}")
    early = lack(name, (Need((), DIRECTIVES[name].ptx, ()),), context.declared)
    needs = Need((), DIRECTIVES[name].ptx, (DIRECTIVES[name].target,))
    late = lack(name, (needs,), context.declared)
    if context.gathered is None and v.linkage == "common" and late and not early:
        context.tolerate(f"{name} ({context.declared})", span, section="11.6.4")
    else:
        context.require_directive(name, span)


def _attributes(context: Context, v: Variable) -> None:
    from ptxtools.isa.directives import ATTRIBUTES

    for name, args in v.attributes:
        attribute = name if name.startswith(".") else f".{name}"
        info = ATTRIBUTES.get(attribute)
        if info is None:
            context.report(codes.ATTRIBUTE, f"unknown attribute '{attribute}'", v.name_span, section="5.4.8")
        elif v.space not in info.places and attribute == _MANAGED and _is_range(context, v):
            message = f"attribute {attribute} of a range in .{v.space}"
            context.tolerate(message, v.name_span, section="5.4.8", help=("remove it: it has no effect",))
            require_attribute(context, info, v.name_span)
        elif v.space not in info.places:
            message = f"'{v.name}': attribute {attribute} is for .global variables"
            context.report(codes.ATTRIBUTE, message, v.name_span, section="5.4.8")
        elif len(args) != info.arguments:
            message = f"attribute {attribute} takes {info.arguments} arguments, found {len(args)}"
            context.report(codes.ATTRIBUTE, message, v.name_span, section="5.4.8")
        else:
            require_attribute(context, info, v.name_span)


def _is_range(context: Context, v: Variable) -> bool:
    """Whether `d<4>` declares the variable: ptxas does not look at the attributes of a range."""
    return v.count is not None or context.text[v.name_span[1] :].lstrip()[:1] == "<"


def require_attribute(context: Context, info: AttributeInfo, span: Span) -> None:
    """Check the version and target that an attribute needs."""
    context.require(f"attribute {info.name}", (Need((), info.ptx, (info.target,)),), span, "5.4.8")
