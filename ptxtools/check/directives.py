"""Directives between a function's header and body: placement, values, conflicts (11.4, 11.7)."""

from __future__ import annotations

from collections.abc import Sequence

from ptxtools.diagnostics import Span
from ptxtools.ir.nodes import LOC_INTERMEDIATE, Directive, Pragma
from ptxtools.isa import Need
from ptxtools.isa.directives import DIRECTIVES, LANGUAGES, PRAGMAS, DirectiveInfo

from . import codes
from .context import Context

#: Directives that ptxas refuses without the others; for others a missing partner is only a hazard.
_STRICT = frozenset({".blocksareclusters"})
#: Given twice, ptxas refuses them.
_ONCE = frozenset({".noreturn", ".language", ".abi_preserve", ".abi_preserve_control"})
#: Counts of registers, not of threads; and CTAs of a cluster and bytes of a CTA, where 0 has no effect.
_MAY_BE_ZERO = frozenset(
    {
        ".abi_preserve", ".abi_preserve_control", ".reqnctapercluster", ".maxclusterrank", ".minperctamemory",
        LOC_INTERMEDIATE,
    }
)  # fmt: skip

_PLACES = {
    "entry": "an .entry",
    "func": "a .func",
    "prototype": "a .callprototype",
    "statement": "a function body",
    "header": "the start of the module",
    "module": "module level",
    "variable": "a declaration",
}


def check_directives(
    context: Context, kind: str, name: str, directives: Sequence[Directive | Pragma], results: int
) -> None:
    """The directives of one "entry", "func" or "prototype"."""
    found = [item for item in directives if isinstance(item, Directive)]
    for pragma in directives:
        if isinstance(pragma, Pragma):
            if kind not in DIRECTIVES[".pragma"].places:
                message = f".pragma is not allowed at {_PLACES[kind]}, only at an .entry, in a body or at module level"
                context.report(codes.DIRECTIVE_PLACE, message, pragma.span, section="11.4.7")
            check_pragma(context, pragma, place="entry")
    present = {item.name for item in found}
    conflicts: set[frozenset[str]] = set()
    for item in found:
        info = _placed(context, item, kind)
        if info is None:
            continue
        _arguments(context, item, info)
        context.require_directive(item.name, item.span)
        for other in present.intersection(info.excludes) - {item.name}:
            pair = frozenset((item.name, other))
            if pair not in conflicts:
                conflicts.add(pair)
            else:
                message = f"{item.name} and {other} exclude each other"
                context.report(codes.DIRECTIVE_CONFLICT, message, item.span, section=info.section)
        missing = [want for want in info.wants if want not in present]
        if item.name in _STRICT and missing:
            message = f"{item.name} requires {' and '.join(missing)}"
            context.report(codes.DIRECTIVE_LACKS, message, item.span, section=info.section)
        if item.name in _ONCE and sum(other.name == item.name for other in found) > 1:
            context.report(codes.DIRECTIVE_CONFLICT, f"{item.name} is given twice", item.span, section=info.section)
            break
        if item.name == ".noreturn" and results:
            message = f"'{name}' returns a value: it cannot be .noreturn"
            context.report(codes.DIRECTIVE_CONFLICT, message, item.span, section=info.section)


#: What the pragmas begin with that give registers to parameters.
_REGISTERS = "abi_param_reg"


def check_pragma(context: Context, item: Pragma, *, place: str) -> None:
    """Check the requirements of pragmas, and the placement of those about surrounding statements (11.4.7).

    place: "module", "entry" (also of a .func), "kernel" (the body of an entry) or "statement". What a string means is
    the assembler's to say: ptxas ignores those that it does not know, but not at module level.
    """
    context.require_directive(".pragma", item.span)
    for text in item.strings:
        word, *arguments = text.split() or [""]
        info = PRAGMAS.get(word)
        span = context.word(item.span, text) if text else item.span
        if word.startswith(_REGISTERS):
            _parameter_registers(context, word, arguments, span, place)
            continue
        if place == "module" and not (info and (info.in_body or word == text)):
            message = f"unknown pragma '{text}': ptxas refuses it at module level"
            context.report(codes.DIRECTIVE_VALUE, message, span, section="11.4.7")
            continue
        if info is None:
            continue
        context.require(f"pragma '{text}'", (Need((), info.ptx, (info.target,)),), span, info.section)
        if info.in_body and place not in ("statement", "kernel"):
            message = f"pragma '{text}' belongs to a function body"
            context.report(codes.DIRECTIVE_PLACE, message, item.span, section="11.4.7")
        elif info.least is not None and not (len(arguments) == 1 and _is_number(arguments[0], info.least)):
            found = " ".join(arguments) or "nothing"
            wanted = "a positive number" if info.least > 0 else "a number"
            message = f"pragma {word} takes {wanted}, found {found}"
            context.report(codes.DIRECTIVE_VALUE, message, item.span, section="11.4.7")


def _parameter_registers(context: Context, word: str, arguments: list[str], span: Span, place: str) -> None:
    """How many registers pass parameters to a function. The manual does not have it; ptxas looks at it all the same."""
    if place == "kernel":
        message = f"pragma '{word}' is for functions; no entry has it"
        context.report(codes.DIRECTIVE_PLACE, message, span, section="11.4.7")
    elif arguments != ["all"] and not (len(arguments) == 1 and _is_number(arguments[0], 1)):
        message = f"pragma {word} takes a positive number or 'all', found {' '.join(arguments) or 'nothing'}"
        context.report(codes.DIRECTIVE_VALUE, message, span, section="11.4.7")


def _is_number(text: str, least: int) -> bool:
    try:
        return int(text, 0) >= least
    except ValueError:
        return False


def check_statement_directive(context: Context, item: Directive) -> None:
    """A directive inside a body."""
    info = _placed(context, item, "statement")
    if info is not None:
        _arguments(context, item, info)
        context.require_directive(item.name, item.span)


def _placed(context: Context, item: Directive, place: str) -> DirectiveInfo | None:
    """The directive's row if it is allowed here; else None, after a finding."""
    info = DIRECTIVES.get(item.name)
    if info is None:
        from difflib import get_close_matches

        near = get_close_matches(item.name, DIRECTIVES, 1)
        help = (f"did you mean {near[0]}?",) if near else ()
        context.report(codes.DIRECTIVE_PLACE, f"unknown directive {item.name}", item.span, help=help, section="4.3.1")
        return None
    if place not in info.places:
        allowed = " or ".join(_PLACES[p] for p in sorted(info.places))
        message = f"{item.name} is not allowed at {_PLACES[place]}, only at {allowed}"
        context.report(codes.DIRECTIVE_PLACE, message, item.span, section=info.section)
        return None
    if info.removed is not None:
        help = (f"use {info.replacement}",) if info.replacement else ()
        need = Need((), info.removed, ())
        if not context.refuse_removed(item.name, need, item.span, help=help, section=info.section):
            return None
    return info


def _arguments(context: Context, item: Directive, info: DirectiveInfo) -> None:
    fewest, most = info.counts
    if len(item.args) < fewest or (most is not None and len(item.args) > most):
        wanted = str(fewest) if most == fewest else f"{fewest} to {most}"
        message = f"{item.name} takes {wanted} arguments, found {len(item.args)}"
        context.report(codes.DIRECTIVE_VALUE, message, item.span, section=info.section)
        return
    for value in item.args:
        if info.kind == "int" and not isinstance(value, int):
            message = f"{item.name} takes numbers, found '{value}'"
            context.report(codes.DIRECTIVE_VALUE, message, item.span, section=info.section)
        elif info.kind == "language" and isinstance(value, str) and value.strip('"').lower() not in LANGUAGES:
            message = f"{item.name} takes numbers and the names of languages, found {value}"
            help = (f"the languages are {', '.join(sorted(LANGUAGES))}",)
            context.report(codes.DIRECTIVE_VALUE, message, item.span, help=help, section=info.section)
        elif (
            isinstance(value, int)
            and info.range is not None
            and not info.range[0] <= value <= info.range[1]
            and (value > 0 or info.kind != "int")
        ):
            message = f"{item.name} must be at most {info.range[1]}, found {value}"
            context.report(codes.DIRECTIVE_VALUE, message, item.span, section=info.section)
        elif isinstance(value, int) and info.kind == "int" and value <= 0 and item.name not in _MAY_BE_ZERO:
            message = f"{item.name} must be positive, found {value}"
            context.report(codes.DIRECTIVE_VALUE, message, item.span, section=info.section)
