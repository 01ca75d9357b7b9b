"""Runs the rules over a module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain

from ptxtools.check import check
from ptxtools.check.context import MOST_FINDINGS, Context
from ptxtools.diagnostics import Diagnostic, Severity, Span
from ptxtools.ir.alike import Faultless
from ptxtools.ir.collector import CollectorOff
from ptxtools.ir.nodes import Function, Module
from ptxtools.isa.targets import check_target, check_version

from .context import LintContext
from .registry import BodyCheck, LineCheck, checks, names
from .suppress import (
    NEEDLESS,
    chosen,
    is_chosen,
    needless,
    suppressed,
    without_echoes,
    without_guesses,
    without_repeats,
)

#: Statements from which several processes pay off.
LARGE = 6000
#: Kernels in which the rules for bodies have found nothing in this process, and sets of kernels that those for modules
#: have passed.
_faultless = Faultless()


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
    processes: int = 1,
) -> list[Diagnostic]:
    """All findings of a module, in order: its `syntax` errors, and the findings of the rules.

    targets, version: as if the module declared these, each target in turn. select, ignore: as for `lint`. processes:
    how many work at it; more than one only where a process may be forked.
    """
    found = lint_targets(module, targets, version, processes, warn=_warns(select, ignore))
    declared = not targets and version is None
    if select and declared:
        found += _requested(module, select)
    return _finished(module, syntax, found, select, ignore, declared=declared)


def _warns(select: Sequence[str], ignore: Sequence[str]) -> bool:
    """Whether `select` and `ignore` leave a warning rule."""
    return not (select or ignore) or any(is_chosen(name[: len("PTX500")].upper(), select, ignore) for name in names())


def findings_in_turn(
    module: Module, syntax: Sequence[Diagnostic] = ()
) -> tuple[Callable[[], list[Diagnostic]], Callable[[], list[Diagnostic]]]:
    """As `findings_of`, in two steps, to be taken in this order: what the warning rules do not find; everything."""
    found: list[Diagnostic] = []

    def errors() -> list[Diagnostic]:
        with CollectorOff():
            found.extend(check(module))
        return _finished(module, syntax, found)

    def everything() -> list[Diagnostic]:
        with CollectorOff():
            found.extend(warnings(module))
        return _finished(module, syntax, found)

    return errors, everything


def errors_within(
    module: Module, syntax: Sequence[Diagnostic], function: Function, area: Span | None = None
) -> list[Diagnostic]:
    """The `syntax` errors, and of `check`'s findings those in one function, without fixes of the header. area: of its
    instructions, look only at those that begin in this span."""
    with CollectorOff():
        found = check(module, within=function, area=area)
    start, end = function.span
    return _finished(module, syntax, [d for d in found if start <= d.span[0] < end], declared=False)


def _finished(
    module: Module,
    syntax: Sequence[Diagnostic],
    found: Sequence[Diagnostic],
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    *,
    declared: bool = True,
) -> list[Diagnostic]:
    """Findings as they are shown. declared: they are for the version and target that the module declares."""
    found = without_repeats(without_echoes(found, syntax, module))
    found = without_guesses(found, syntax, module)
    if declared and any(d.code.startswith("PTX30") for d in found):
        from .headers import offer_raised_headers

        offer_raised_headers(module, [d for d in found if d.severity is Severity.ERROR])
    everything = [*syntax, *found]
    found = suppressed(chosen(everything, select, ignore), module.source)
    if declared and NEEDLESS in map(str.upper, select):
        found += needless(everything, module.source, checks().untold(select), select, ignore)
    if found:
        from ptxtools.ir.origins import add_origins

        add_origins(found, module)
    return sorted(found, key=lambda d: (d.span, d.code, d.target or ""))


def lint_targets(
    module: Module,
    targets: Sequence[str],
    version: tuple[int, int] | None = None,
    processes: int = 1,
    *,
    warn: bool = True,
) -> list[Diagnostic]:
    """Errors and warnings as if the module declared each of `targets` in turn; if empty, as it is declared. warn: run
    the warning rules, too.

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
            context = LintContext(module, Context(module, target, version).declared)
            if not warn:
                each = _errors(context, target, version)
            elif processes > 1 and context.facts.size >= LARGE:
                each = _in_processes(context, target, version, processes)
            else:
                each = _errors(context, target, version) + _warnings(context)
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


def _errors(context: LintContext, target: str | None, version: tuple[int, int] | None) -> list[Diagnostic]:
    facts = context.facts
    return check(context.module, target=target, version=version, kinds=facts.kinds, independent=facts.independent)


def warnings(module: Module, *, target: str | None = None, version: tuple[int, int] | None = None) -> list[Diagnostic]:
    """What the warning rules find, in no particular order."""
    return _warnings(LintContext(module, Context(module, target, version).declared))


def _requested(module: Module, select: Sequence[str]) -> list[Diagnostic]:
    """What rules find that only run if they are selected by name."""
    wanted = checks().on_request(select)
    if not wanted:
        return []
    context = LintContext(module, Context(module, None, None).declared)
    for check_module in wanted:
        check_module(context)
    return context.diagnostics


def _warnings(context: LintContext) -> list[Diagnostic]:
    _warn_of_bodies(context, context.facts.bodies)
    _warn_of_module(context)
    return context.diagnostics


def _warn_of_bodies(context: LintContext, bodies: Sequence[Function]) -> None:
    """Run the rules that look at one body or instruction. Where they find nothing in the first function of a kind, they
    need not look at the others (`ir.alike`), nor at kernels of later modules that are the same."""
    rules = checks()
    clean: set[int] = set()
    by_family: dict[str, list[LineCheck]] = {}
    by_families: dict[frozenset[str], list[BodyCheck]] = {}
    for body in bodies:
        kind, before = context.facts.kinds.get(id(body)), len(context.diagnostics)
        if kind is not None and kind in clean:
            continue
        text = context.facts.independent(body)
        key = (context.declared, *text) if text else None
        if key in _faultless:
            continue
        facts = context.facts.of(body)
        for family, lines in facts.by_family.items():
            line_checks = by_family.get(family)
            if line_checks is None:
                line_checks = by_family[family] = rules.lines(family)
            for check_line in line_checks:
                for line in lines:
                    check_line(context, facts, line)
        body_checks = by_families.get(facts.reached)
        if body_checks is None:
            families = dict.fromkeys((*facts.by_family, *sorted(facts.reached)))
            body_checks = by_families[facts.reached] = [*rules.bodies, *rules.bodies_with(families)]
        for check_body in body_checks:
            check_body(context, facts)
        if len(context.diagnostics) == before < MOST_FINDINGS:
            if kind is not None:
                clean.add(kind)
            if key is not None:
                _faultless.add(key)


def _warn_of_module(context: LintContext) -> None:
    """Run the rules that look at the module, or at the directives of its functions; not where an earlier module had the
    same kernels."""
    rules, start = checks(), len(context.diagnostics)
    texts = [context.facts.independent(function) for function in context.facts.considered]
    key = (context.declared, frozenset(texts)) if texts and all(texts) else None
    if key in _faultless:
        return
    for function in context.module.functions:
        if function.directives:
            for check_directives in rules.directives:
                check_directives(context, function)
    families = dict.fromkeys(family for facts in context.facts.functions for family in facts.by_family)
    before = len(context.diagnostics)
    for check_module in (*rules.modules, *rules.modules_with(families)):
        check_module(context)
    if len(context.diagnostics) > before and context.facts.consider_all():
        del context.diagnostics[before:]
        for check_module in (*rules.modules, *rules.modules_with(families)):
            check_module(context)
    if key is not None and len(context.diagnostics) == start < MOST_FINDINGS:
        _faultless.add(key)


def _in_processes(
    context: LintContext, target: str | None, version: tuple[int, int] | None, processes: int
) -> list[Diagnostic]:
    """Errors and warnings as `check` and `warnings` find them."""
    from .processes import CHECKING, MODULE_RULES, shares, together

    module, facts = context.module, context.facts
    before = [CHECKING, *(0.0,) * (processes - 2), MODULE_RULES]

    def work(number: int, bodies: Sequence[Function]) -> tuple[list[Diagnostic], list[Diagnostic]]:
        context.diagnostics = []
        errors = _errors(context, target, version) if number == 0 else []
        _warn_of_bodies(context, bodies)
        if number == processes - 1:
            _warn_of_module(context)
        return errors, context.diagnostics

    sizes = [0 if id(one) in facts.repeated or one.body is None else len(one.body.items) for one in facts.bodies]
    works = [partial(work, number, facts.bodies[share]) for number, share in enumerate(shares(sizes, before))]
    errors, found = zip(*together(works, module.source), strict=True)
    return [*errors[0], *chain.from_iterable(found)][: len(errors[0]) + MOST_FINDINGS]
