"""Holds a text against the specification: all rules, all errors."""

from __future__ import annotations

import re
from functools import cache, partial

from ptxtools.diagnostics import Diagnostic, Source
from ptxtools.ir.collector import CollectorOff

from ..assembly.nodes import Function, Module, Value
from ..assembly.parser import Parser
from ..dialects import LLVM7, MIXED, MODERN, branches_to_numbers, check_dialect
from .alike import distinct, read_heads, read_nodes
from .annotations import check_annotations, find_opaque
from .assembler import check_module_assembler
from .attributes import check_groups
from .bodies import check_body
from .calls import check_intrinsic
from .constants import check_constant
from .context import Context
from .debug import check_node
from .declarations import check_function, check_name, check_types, check_variable
from .headers import check_headers
from .instructions import check_instruction
from .screening import read_bodies

_ARCH = re.compile(r"(?:sm|compute)_(\d+)[af]?")


def verify(text: str | Source, name: str = "<memory>", *, dialect: str | None = None,
           target: str | None = None, screened: bool = True, processes: int = 1) -> list[Diagnostic]:  # fmt: skip
    """The findings about a module of LLVM assembly, by position. text: or a source that has it, and its own name.

    dialect: "7" or "modern", None for the one that the text is in; target: "sm_90a", None if none is meant: then no
    rule asks for an architecture; screened: whether functions may be passed over in which no line can have a fault,
    and processes: how many may work at a large module, both of which change the time and not the findings. Raises
    ValueError for an unknown dialect or target.
    """
    check_dialect(dialect)
    arch = _ARCH.fullmatch(target) if target else None
    if target and not arch:
        raise ValueError(f"unknown target '{target}'; such as sm_90a")
    with CollectorOff():
        source = Source(text, name) if isinstance(text, str) else text
        number = int(arch[1]) if arch else 0
        context = _verified(source, dialect, number, screened, processes)
        if dialect is None and _is_modern_without_pointers(context):
            context = _verified(source, MODERN, number, screened, processes)
    return sorted(_once(context.found), key=lambda one: (one.span, one.code))


def _verified(source: Source, dialect: str | None, arch: int, screened: bool, processes: int) -> Context:
    """A module after all rules."""
    parser = Parser(source, alike=screened)
    module = parser.run()
    if parser.found or not distinct(parser):  # what is passed over may be where reading goes on
        parser = Parser(source)
        module = parser.run()
    meant = dialect or dialect_of(module)
    context = Context(module, source, meant, arch, dialect is not None)
    named = cache(partial(_numbers_are_names, context))
    if parser.numbered_label and named():
        parser = Parser(source)
        parser.numbers_are_names = named
        module = context.module = parser.run()
    parser.numbers_are_names = named
    find_opaque(context)
    alike = read_heads(context, parser) | read_nodes(context, parser)
    read_bodies(context, parser, screened, processes)
    if meant != (dialect or dialect_of(module)) or (parser.numbered_label and _numbers_are_names(context)):
        # The first pointer is in a body.
        return _verified(source, dialect_of(module), arch, screened, processes)
    context.found += parser.found
    check_headers(context)
    check_types(context)
    for variable in module.variables.values():
        check_variable(context, variable)
    for function in module.functions.values():
        if function.name in alike:
            check_name(context, function.name, function.at)
        else:
            check_function(context, function)
        _check_body(context, function)
    check_groups(context)
    check_annotations(context)
    for name in module.metadata.keys() - alike:
        if module.metadata[name].kind:
            check_node(context, module.metadata[name])
    check_module_assembler(context)
    _check_references(context)
    return context


def _numbers_are_names(context: Context) -> bool:
    """Whether labels that are numbers are names, as to LLVM 7. Its texts show it by their branches. What LLVM 8 to 14
    wrote branches to such labels as to numbers: that is an error for each label, and all other numbers are in order."""
    if context.modern or getattr(context.source, "disassembled", False):
        return False
    named, numbered = branches_to_numbers(context.source.text)
    return named or (context.counts_silently and not numbered)


def dialect_of(module: Module) -> str:
    """The dialect of a module: opaque pointers are modern; a module without pointers is in both, and is taken as
    LLVM 7's."""
    if module.opaque_at >= 0 and (module.typed_at < 0 or module.opaque_at < module.typed_at):
        return MODERN
    return LLVM7


def _is_modern_without_pointers(context: Context) -> bool:
    """Whether a module that is in both dialects by its pointers has what only the modern one has."""
    module = context.module
    return module.typed_at < 0 and module.opaque_at < 0 and any(one.code == MIXED for one in context.found)


def _check_body(context: Context, function: Function) -> None:
    if function.name.startswith("@llvm.") and not function.defined:
        check_intrinsic(context, function)
    if function.blocks:
        check_body(context, function)
        for block in function.blocks:
            for one in block.instructions:
                check_instruction(context, one)


def _check_references(context: Context) -> None:
    """Nodes of metadata that nothing defines (7.1)."""
    known = context.module.metadata
    module = context.module
    uses = [word for named in module.named.values() for word in named.nodes]
    for node in known.values():
        if not node.operands and not node.fields:
            continue
        inside = _within(node.operands)
        uses += [(one.text, one.at) for one in inside if one.extra == "node"]
        for symbol in inside:
            if symbol.kind == "global":
                check_constant(context, symbol)
        for text, at in node.fields.values():
            uses += (
                [(found[0], at + found.start()) for found in re.finditer(r"![0-9]+\b", text)] if text[:1] == "!" else []
            )
    for function in module.functions.values():
        uses += [word for _, word in function.metadata]
        for block in function.blocks:
            for one in block.instructions:
                if one.metadata:
                    uses += [word for _, word in one.metadata]
                if one.op == "call":
                    uses += [(value.text, value.at) for value in one.operands if value.extra == "node"]
    for variable in module.variables.values():
        uses += [word for _, word in variable.metadata]
    for word in uses:
        if word[0][1:].isdecimal() and word[0] not in known:
            context.at_word("NVVM110", word, f"use of undefined metadata '{word[0]}'")


def _within(values: list[Value | None]) -> list[Value]:
    found: list[Value] = []
    for value in values:
        if value is not None:
            found.append(value)
            found += _within(list(value.parts))
    return found


def _once(found: list[Diagnostic]) -> list[Diagnostic]:
    """Without repetitions: a type that occurs in a thousand places has one fault in each, and two rules may see one."""
    seen: set[tuple[str, tuple[int, int], str]] = set()
    kept = []
    for one in found:
        key = one.code, one.span, one.message
        if key not in seen:
            seen.add(key)
            kept.append(one)
    return kept
