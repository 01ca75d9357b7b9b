"""Runs the rules over a module."""

from __future__ import annotations

from collections.abc import Sequence

from ptxtools.check import check
from ptxtools.check.context import Context
from ptxtools.diagnostics import Diagnostic, Severity, Span
from ptxtools.ir.collector import CollectorOff
from ptxtools.ir.nodes import Module
from ptxtools.isa.targets import check_target, check_version

from .context import LintContext
from .registry import LineCheck, checks
from .suppress import chosen, suppressed, without_echoes


def lint(
    module: Module,
    *,
    target: str | None = None,
    version: tuple[int, int] | None = None,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
) -> list[Diagnostic]:
    """Errors and warnings about a module, sorted by position, except those silenced by comments.

    target, version: as if the module declared these. select, ignore: prefixes of codes ("PTX1", "PTX203"). Raises
    ValueError for an unknown target or version.
    """
    targets = () if target is None else (target,)
    return findings_of(module, targets=targets, version=version, select=select, ignore=ignore)


def findings_of(
    module: Module,
    syntax: Sequence[Diagnostic] = (),
    *,
    targets: Sequence[str] = (),
    version: tuple[int, int] | None = None,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
) -> list[Diagnostic]:
    """All findings of a module, in order: its `syntax` errors, and the findings of the rules.

    targets, version: as if the module declared these, each target in turn. select, ignore: as for `lint`.
    """
    found = without_echoes(lint_targets(module, targets, version), syntax)
    if not targets and version is None and any(d.code.startswith("PTX30") for d in found):
        from .headers import offer_raised_headers

        offer_raised_headers(module, [d for d in found if d.severity is Severity.ERROR])
    found = suppressed(chosen([*syntax, *found], select, ignore), module.source)
    if found:
        from ptxtools.ir.origins import add_origins

        add_origins(found, module)
    return sorted(found, key=lambda d: (d.span, d.code, d.target or ""))


def lint_targets(module: Module, targets: Sequence[str], version: tuple[int, int] | None = None) -> list[Diagnostic]:
    """Errors and warnings as if the module declared each of `targets` in turn; if empty, as it is declared.

    A finding that does not apply to all targets names its target.
    """
    for name in targets:
        check_target(name)
    if version is not None:
        check_version(version)
    found: list[Diagnostic] = []
    seen: dict[tuple[str, Span, str], list[Diagnostic]] = {}
    for target in targets or (None,):
        with CollectorOff():
            each = check(module, target=target, version=version) + warnings(module, target=target, version=version)
        if len(targets) < 2:
            return each
        for finding in each:
            finding.target = target
            seen.setdefault((finding.code, finding.span, finding.message), []).append(finding)
    for alike in seen.values():
        if len(alike) == len(targets):
            alike[0].target = None
            found.append(alike[0])
        else:
            found += alike
    return found


def warnings(module: Module, *, target: str | None = None, version: tuple[int, int] | None = None) -> list[Diagnostic]:
    """What the warning rules find, in no particular order."""
    rules = checks()
    by_family: dict[str, list[LineCheck]] = {}
    context = LintContext(module, Context(module, target, version).declared)
    for facts in context.facts.functions:
        for family, lines in facts.by_family.items():
            line_checks = by_family.get(family)
            if line_checks is None:
                line_checks = by_family[family] = rules.lines(family)
            for check_line in line_checks:
                for line in lines:
                    check_line(context, facts, line)
        for check_body in rules.bodies:
            check_body(context, facts)
    for function in module.functions:
        if function.directives:
            for check_directives in rules.directives:
                check_directives(context, function)
    for check_module in (*rules.modules, *rules.modules_with(by_family)):
        check_module(context)
    return context.diagnostics
