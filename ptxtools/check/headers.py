"""`.version`, `.target`, `.address_size`: presence, order, values (11.1)."""

from __future__ import annotations

import re

from ptxtools.diagnostics import Span
from ptxtools.ir.nodes import HEADERS, Header, Module, Section
from ptxtools.isa import Need
from ptxtools.isa.targets import DOUBLES, FIRST_VERSION, NEWEST, OPTIONS, VERSIONS, canonical, version_text

from . import codes
from .availability import Demand, is_gone, requirement
from .context import NARROW, NO_NARROW, Context

#: Targets from sm_13 on compute in double precision.
_HAS_DOUBLES = Need((), (0, 0), (DOUBLES,))
#: An architecture, perhaps misspelt.
_LIKE_ARCHITECTURE = re.compile(r"(sm|compute)[_\d]*\w{0,2}$", re.IGNORECASE)


def check_headers(context: Context) -> None:
    """All rules for the module's first directives."""
    module = context.module
    headers = [item for item in module.items if isinstance(item, Header)]
    if not headers and not module.items:
        _missing(context, ".version", (0, 0), "the module is empty: it must begin with .version and .target")
        return
    _presence(context, module, headers)
    for header in headers:
        if not header.args:  # a syntax error
            continue
        if header.name == ".version":
            _version(context, header)
        elif header.name == ".target":
            _target(context, header)
        elif header.name == ".address_size":
            context.require_directive(".address_size", header.span)
            _address_size(context, header)
    if context.forced_target or context.forced_version:
        _forced(context)


def _missing(context: Context, name: str, span: Span, message: str) -> None:
    section = "11.1.1" if name == ".version" else "11.1.2"
    example = ".version 8.0" if name == ".version" else ".target sm_80"
    context.report(codes.HEADER, message, span, help=(f"such as {example}",), section=section)


def _presence(context: Context, module: Module, headers: list[Header]) -> None:
    first = module.items[0]
    start = getattr(first, "span", (0, 0))
    names = [header.name for header in headers]
    if not {".version", ".target"} & set(names):
        _missing(context, ".version", _first_line(context, start), "the module lacks .version and .target")
        return
    if ".version" not in names:
        _missing(context, ".version", _first_line(context, start), "the module lacks .version")
    elif not (isinstance(first, Header) and first.name == ".version"):
        message = "this precedes .version, which must come first"
        context.report(codes.HEADER, message, _first_line(context, start), section="11.1.1")
        return
    if ".target" not in names:
        _missing(context, ".target", _first_line(context, _behind_version(module)), "the module lacks .target")
    else:
        _order(context, module)


def _behind_version(module: Module) -> Span:
    """Where .target should be: the item after .version, or .version itself."""
    return getattr(module.items[1 if len(module.items) > 1 else 0], "span", (0, 0))


def _first_line(context: Context, span: Span) -> Span:
    """The range cut at the end of its line."""
    end = context.text.find("\n", span[0], span[1])
    return span if end < 0 else (span[0], end)


def _order(context: Context, module: Module) -> None:
    """Headers come together at the start. `.version` and `.target` may repeat (a concatenation of modules may not)."""
    seen: set[str] = set()
    other: Span | None = None
    for item in module.items:
        if not isinstance(item, Header):
            other = other or item.span
            continue
        section = f"11.1.{HEADERS.index(item.name) + 1}" if item.name in HEADERS else None
        if item.name in seen and item.name != ".target":
            context.report(codes.HEADER, f"{item.name} is given twice", item.span, section=section)
        elif other is not None and item.name == ".target" and item.name not in seen:
            message = "this precedes .target"
            context.report(codes.HEADER, message, _first_line(context, other), section=section)
            return
        elif other is not None:
            context.report(codes.HEADER, f"{item.name} must be at the start of the module", item.span, section=section)
        elif item.name == ".address_size" and ".target" not in seen:
            message = ".address_size must follow .target"
            context.report(codes.HEADER, message, item.span, section=section)
        seen.add(item.name)


def _version(context: Context, header: Header) -> None:
    text = header.args[0] if header.args else ""
    try:
        major, minor = (int(part) for part in text.split("."))
    except ValueError:
        message = f".version takes a number such as 8.0, found '{text}'"
        context.report(codes.UNKNOWN_VERSION, message, header.span, section="11.1.1")
        return
    version = (major, minor)
    if version > NEWEST:
        message = f"unknown PTX ISA version {text}; the newest known version is {version_text(NEWEST)}"
        context.report(codes.UNKNOWN_VERSION, message, header.span, section="11.1.1")
    elif version not in VERSIONS:
        near = [version_text(v) for v in VERSIONS if v[0] == major]
        help = (f"known: {', '.join(near)}",) if near else ()
        context.report(codes.UNKNOWN_VERSION, f"there is no PTX ISA {text}", header.span, help=help, section="11.1.1")


def _target(context: Context, header: Header) -> None:
    architectures = [arg for arg in header.args if arg.startswith(("sm_", "compute_"))]
    like = next((arg for arg in header.args if _LIKE_ARCHITECTURE.match(arg)), None)
    if not architectures and like is not None:
        _unknown_target(context, like, context.word(header.span, like))
        return
    if not architectures and all(arg in OPTIONS for arg in header.args):
        message = ".target has no architecture"
        context.report(codes.HEADER, message, header.span, help=("such as .target sm_80",), section="11.1.2")
    for name in architectures:
        if canonical(name) not in FIRST_VERSION:
            _unknown_target(context, name, context.word(header.span, name))
        elif context.declared.version != (0, 0) and not context.forced_target:
            _target_version(context, name, context.word(header.span, name))
    if architectures and header.args[0] != architectures[0]:
        message = f"the architecture {architectures[0]} must precede the options"
        context.report(codes.TARGET_OPTION, message, context.word(header.span, architectures[0]), section="11.1.2")
    _options(context, [arg for arg in header.args if arg not in architectures], header)


def _unknown_target(context: Context, name: str, span: Span) -> None:
    from difflib import get_close_matches

    near = get_close_matches(canonical(name.lower()), FIRST_VERSION, 2)
    help = (f"did you mean {' or '.join(near)}?",) if near else ()
    context.report(codes.UNKNOWN_TARGET, f"unknown target '{name}'", span, help=help, section="11.1.2")


def _target_version(context: Context, name: str, span: Span) -> None:
    first = FIRST_VERSION[canonical(name)]
    version = context.declared.version
    if version < first:
        message = f"target {name} needs PTX ISA {version_text(first)} (the module declares {version_text(version)})"
        needs = requirement((Demand(first, (canonical(name),)),), version)
        context.report(codes.TARGET_NEEDS_VERSION, message, span, section="11.1.2", requires=needs)


def _options(context: Context, options: list[str], header: Header) -> None:
    groups: dict[str, str] = {}
    for name in options:
        info = OPTIONS.get(name)
        span = context.word(header.span, name)
        if info is None:
            known = ", ".join(OPTIONS)
            help = (f"an architecture, or one of {known}",)
            context.report(codes.TARGET_OPTION, f"unknown .target option '{name}'", span, help=help, section="11.1.2")
            continue
        context.require(f".target option {name}", (Need((), info.ptx, ()),), span, "11.1.2")
        if groups.setdefault(info.group, name) != name:
            message = f".target options {groups[info.group]} and {name} exclude each other"
            context.report(codes.TARGET_OPTION, message, span, section="11.1.2")
        if name == "debug" and not any(isinstance(item, Section) for item in context.module.items):
            message = ".target option debug requires DWARF information, but the module has no .section"
            context.report(codes.DIRECTIVE_LACKS, message, span, help=("drop debug",), section="11.1.2")
        if name == "map_f64_to_f32":
            message = f"map_f64_to_f32 is for targets without .f64; {context.declared.target} has it"
            context.refuse_removed(f".target option {name}", _HAS_DOUBLES, span, message,
                                   code=codes.TARGET_OPTION, section="11.1.2")  # fmt: skip


def _address_size(context: Context, header: Header) -> None:
    if header.args[:1] not in (("32",), ("64",)):
        found = header.args[0] if header.args else "nothing"
        message = f".address_size must be 32 or 64, found {found}"
        context.report(codes.ADDRESS_SIZE, message, header.span, section="11.1.3")
    elif header.args[0] == "32":
        message = f"32-bit addresses are not supported on {context.declared.target}"
        context.refuse_removed(".address_size 32", NARROW, header.span, message, code=codes.ADDRESS_SIZE,
                               help=("write .address_size 64",), section="11.1.3")  # fmt: skip
        if context.gathered is not None or not is_gone(NARROW, *context.declared[:2]):
            message = ".address_size 32: the manual has it, every ptxas of PTX 8.0 and later refuses it"
            context.refuse_removed(".address_size 32", NO_NARROW, header.span, message, code=codes.NEVER_ACCEPTED,
                                   help=("write .address_size 64",), section="11.1.3")  # fmt: skip


def _forced(context: Context) -> None:
    """A version or target from the caller, instead of the declared one."""
    name = context.forced_target
    header = next((h for h in context.module.items if isinstance(h, Header) and h.name == ".target"), None)
    span = header.span if header is not None else (0, 0)
    if name is not None and name in FIRST_VERSION and context.declared.version != (0, 0):
        _target_version(context, name, span)
