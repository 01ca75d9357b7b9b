"""PTX550 to PTX555: directives that ask for more than a device has, or for nothing."""

from __future__ import annotations

from math import prod

from ptxtools.ir.nodes import Directive, Function, Pragma

from . import codes
from .context import LintContext

_MAX_THREADS = 1024
_PORTABLE_CLUSTER, _MAX_CLUSTER = 8, 16
#: 256 is as good as no limit.
_REGISTERS = (16, 256)


def check_limits(context: LintContext, function: Function) -> None:
    """All rules about the directives of one function."""
    seen: dict[str, Directive] = {}
    for item in function.directives:
        if isinstance(item, Pragma):
            _pragma(context, item)
            continue
        if item.name in seen:
            message = f"{item.name} is given twice: one of them is ignored"
            context.warn(codes.REPEATED_DIRECTIVE, message, item.span, section="11.4")
        seen[item.name] = item
        _value(context, item)
    if ".minnctapersm" in seen and not {".maxntid", ".reqntid"} & seen.keys():
        message = ".minnctapersm is ignored without .maxntid or .reqntid"
        context.warn(codes.NO_EFFECT, message, seen[".minnctapersm"].span, section="11.4.4")


def _value(context: LintContext, item: Directive) -> None:
    values = [value for value in item.args if isinstance(value, int)]
    total = prod(values) if values else 0
    if item.name in (".maxntid", ".reqntid") and total > _MAX_THREADS:
        message = f"{item.name} allows {total} threads; a CTA has at most {_MAX_THREADS}"
        context.warn(codes.BLOCK_TOO_LARGE, message, item.span, section="11.4.2")
    elif item.name in (".reqnctapercluster", ".maxclusterrank") and total > _PORTABLE_CLUSTER:
        limit = f"at most {_MAX_CLUSTER}" if total > _MAX_CLUSTER else f"{_PORTABLE_CLUSTER} on every device"
        message = f"{item.name} asks for {total} CTAs; a cluster has {limit}"
        context.warn(codes.CLUSTER_TOO_LARGE, message, item.span, section="11.7.1")
    elif item.name in (".reqnctapercluster", ".maxclusterrank") and not total:
        context.warn(codes.NO_EFFECT, f"{item.name} 0 is as good as none", item.span, section="11.7.1")
    elif item.name == ".maxnreg" and total and not _REGISTERS[0] <= total <= _REGISTERS[1]:
        message = f".maxnreg {total} is ignored: a thread has {_REGISTERS[0]} to {_REGISTERS[1]} registers"
        context.warn(codes.REGISTER_LIMIT, message, item.span, section="11.4.1")


def _pragma(context: LintContext, item: Pragma) -> None:
    from ptxtools.isa.directives import PRAGMAS

    for text in item.strings:
        word, *arguments = text.split() or [""]
        if word not in PRAGMAS or (arguments and PRAGMAS[word].least is None):
            message = f'pragma "{text}" is not known: it is ignored'
            context.warn(codes.UNKNOWN_PRAGMA, message, item.span, section="11.4.7")


def check_body_pragmas(context: LintContext, items: list[object]) -> None:
    """PTX555 for pragmas between instructions."""
    for item in items:
        if isinstance(item, Pragma):
            _pragma(context, item)
