"""One pass over a module in source order; names are visible from their declaration on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from ptxtools.diagnostics import Diagnostic, Severity, Span
from ptxtools.ir.alike import kinds_of
from ptxtools.ir.nodes import SOURCES, Alias, Directive, File, Function, Item, Loc, Module, Pragma, Section, Variable

from . import codes
from .context import Context, Enough, Gathered
from .declarations import check_constant_space, check_unnamed, check_variable, same_declarator
from .functions import check_alias, check_function_header, check_repeated_function, check_repeated_variable
from .headers import check_headers
from .instructions import BodyChecker, report_redeclaration
from .linking import check_undefined
from .values import Scope


def check(
    module: Module,
    *,
    target: str | None = None,
    version: tuple[int, int] | None = None,
    within: Function | None = None,
    kinds: Mapping[int, int] | None = None,
    area: Span | None = None,
    independent: Callable[[Function], tuple[str, ...]] | None = None,
) -> list[Diagnostic]:
    """The reasons why `module` is invalid PTX for its version and target, sorted by position; as warnings, what ptxas
    accepts although the manual does not have it.

    target, version: check as if the module declared these. within: look into the body of this function only. kinds: of
    the module's functions (`ir.alike`), if they are known. area: look only at instructions that begin in this span.
    independent: all that findings about a function depend on, besides target and version; () if that is not known.
    """
    context = Context(module, target, version)
    with suppress(Enough):
        known = kinds_of(module) if kinds is None and within is None else kinds
        _walk(context, within, known, area, independent)
    return sorted([*context.diagnostics, *context.tolerated], key=lambda d: d.span)


def errors_of(module: Module, *, target: str | None = None, version: tuple[int, int] | None = None) -> list[Diagnostic]:
    """As `check`, without the warnings."""
    return [d for d in check(module, target=target, version=version) if d.severity is Severity.ERROR]


def gather(module: Module) -> list[Gathered]:
    """The requirements of a module's parts, regardless of its declarations; repeated ones appear once."""
    context = Context(module)
    context.gathered = []
    with suppress(Enough):
        _walk(context)
    return context.gathered


def _walk(
    context: Context,
    within: Function | None = None,
    kinds: Mapping[int, int] | None = None,
    area: Span | None = None,
    independent: Callable[[Function], tuple[str, ...]] | None = None,
) -> None:
    module = context.module
    check_headers(context)
    scope = Scope()
    bodies = BodyChecker(context, kinds or {}, area, independent)
    debugging = bodies.debugging
    last: Item | None = None
    for item in module.items:
        if isinstance(item, Function):
            _function(context, item, scope, bodies, inside=within is None or item is within)
        elif isinstance(item, Variable):
            if not same_declarator(last, item):
                check_variable(context, item, scope, in_function=False)
            _declare_variable(context, item, scope)
        elif isinstance(item, Alias):
            check_alias(context, item, scope)
        elif isinstance(item, Pragma):
            from .directives import check_pragma

            check_pragma(context, item, place="module")
        elif isinstance(item, File):
            debugging.file(item)
        elif isinstance(item, Section):
            debugging.section(item)
        elif isinstance(item, Directive) and item.name == "@@DWARF":
            debugging.dwarf(item)
        elif isinstance(item, Directive) and item.name == SOURCES:
            debugging.sources(item)
        elif isinstance(item, Directive):
            context.report(codes.DIRECTIVE_PLACE, f"{item.name} is not allowed at module level", item.span)
        elif isinstance(item, Loc):
            message = ".loc is not allowed at module level; it belongs in a function body"
            context.report(codes.DIRECTIVE_PLACE, message, item.span, section="11.5.4")
        last = item
    debugging.finish()
    check_constant_space(context, module.variables)
    check_unnamed(context, module.unnamed)
    check_undefined(context)


def _function(context: Context, function: Function, scope: Scope, bodies: BodyChecker, *, inside: bool) -> None:
    """inside: look into its body."""
    body = function.body if inside else None
    known = body is not None and bodies.known(function)
    before = context.reports, len(context.diagnostics)
    if not known:
        _header(context, function)
    earlier = scope.own(function.name)
    if isinstance(earlier, Function):
        check_repeated_function(context, earlier, function)
    elif earlier is not None:
        report_redeclaration(context, function.name, function.name_span, earlier)
    if earlier is None or (isinstance(earlier, Function) and earlier.body is None):
        scope.declare(function.name, function)
        scope.declared[function.name] = function
    if known:
        assert body is not None
        bodies.locations(body)
        return
    names = Scope(scope)
    for role, variables in (("out", function.returns), ("in", function.params)):
        for variable in variables:
            names.roles[id(variable)] = role
            if names.declare(variable.name, variable) is not None and variable.name != "_":
                message = f"parameter '{variable.name}' is declared twice"
                context.report(codes.REDECLARED, message, variable.name_span, section="7.1")
    if body is None:
        return
    outside = set(context.ill_typed)
    bodies.check(function, names)
    context.ill_typed = outside
    if before == (context.reports, len(context.diagnostics)):
        bodies.passed(function)


def _header(context: Context, function: Function) -> None:
    """What stands before the body."""
    check_function_header(context, function)
    if not function.directives:
        return
    from .directives import check_directives

    check_directives(context, function.kind, function.name, function.directives, len(function.returns))
    misplaced = function.directives
    if function.kind == "func":  # other directives may stand in a declaration
        misplaced = [item for item in misplaced if getattr(item, "name", "") == ".language"]
    if function.body is None and misplaced:
        first, what = misplaced[0], "a kernel" if function.kind == "entry" else "a function"
        message = f"{getattr(first, 'name', '.pragma')} belongs to the definition of {what}, not to its declaration"
        context.report(codes.DIRECTIVE_PLACE, message, first.span, section="11.2.1")


def _declare_variable(context: Context, variable: Variable, scope: Scope) -> None:
    earlier = scope.own(variable.name)
    if isinstance(earlier, Variable):
        check_repeated_variable(context, earlier, variable)
        if earlier.linkage == "extern" != variable.linkage:
            scope.declared[variable.name] = variable
            scope.declare(variable.name, variable)
    elif earlier is not None:
        report_redeclaration(context, variable.name, variable.name_span, earlier)
    else:
        scope.declare(variable.name, variable)
