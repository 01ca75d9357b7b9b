"""Screens the functions of a module, in several processes if it is large, and reads those that are not passed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ptxtools.diagnostics import Diagnostic
from ptxtools.records import NamedTuple

from ..assembly.nodes import Function, Word
from ..assembly.parser import Parser
from .context import Context
from .screen import Screen

#: Bodies that are larger together than this many characters are worth a fork.
LARGE = 250_000
#: What the first process has to do besides, as a part of what the bodies take: it begins the others, and takes up
#: what they have found.
FORKING = 0.06


class Passed(NamedTuple):
    """A function that is passed over: the names of its parameters, and the findings about single lines."""

    params: list[str]
    found: list[Diagnostic]


class Learnt(NamedTuple):
    """What a share of the functions adds: for each the result, None for one that is to be read; and what lines that
    were read have added to the module and the context."""

    results: list[Passed | None]
    group_uses: list[Word]
    type_uses: dict[str, int]
    typed_at: int
    opaque_at: int
    used_groups: set[str]
    intrinsic_groups: set[str]


def read_bodies(context: Context, parser: Parser, screened: bool, processes: int) -> None:
    """Pass over the functions in which no line can have a fault, and read the others.

    processes: how many may work at a large module, which changes the time and not the findings.
    """
    unread, module = parser.unread, context.module
    sizes = [end - begin for begin, end in (one.body or (0, 0) for one in unread)]
    screen = Screen(context) if screened else None
    results: Sequence[Passed | None] | None = None
    if screen is not None and (faultless := screen.without_fault(unread, sum(sizes))):
        unread = [one for one, found in zip(unread, faultless, strict=True) if found is None]
        sizes = [size for size, found in zip(sizes, faultless, strict=True) if found is None]
        context.found += [one for found in faultless for one in found or ()]
    if screen is not None and processes > 1 and sum(sizes) > LARGE:
        results = _in_processes(context, screen, unread, sizes, processes)
    for number, function in enumerate(unread):
        passed = None
        if screen is not None and module.functions.get(function.name) is function:
            passed = results[number] if results is not None else _screened(screen, function)
        if passed is None:
            parser.read_body(function)
            continue
        for param, name in zip(function.params, passed.params, strict=True):
            param.name = name
        context.found += passed.found


def _screened(screen: Screen, function: Function) -> Passed | None:
    """The result for one function; its findings are not among those of the context."""
    found = screen.context.found
    before = len(found)
    if not screen.passes(function):
        return None
    own = found[before:]
    del found[before:]
    return Passed([param.name for param in function.params], own)


def _in_processes(context: Context, screen: Screen, functions: Sequence[Function], sizes: Sequence[int],
                  processes: int) -> list[Passed | None]:  # fmt: skip
    """The results for all functions. What was learnt is in the module and the context then."""
    from ptxtools.linter.processes import shares, together

    screen.prepare()
    before = [0.0] * (processes - 1) + [FORKING]
    works: list[Callable[[], Learnt]] = [
        partial(_learnt, context, screen, functions[share]) for share in shares(sizes, before)
    ]
    results: list[Passed | None] = []
    module = context.module
    for one in together(works, context.source):
        results += one.results
        module.group_uses += one.group_uses
        for name, at in one.type_uses.items():
            module.type_uses[name] = min(at, module.type_uses.get(name, at))
        module.typed_at = _first(module.typed_at, one.typed_at)
        module.opaque_at = _first(module.opaque_at, one.opaque_at)
        context.used_groups |= one.used_groups
        context.intrinsic_groups |= one.intrinsic_groups
    return results


def _first(one: int, other: int) -> int:
    """The lower of two places, of which each may be unknown (-1)."""
    return min(one, other) if one >= 0 and other >= 0 else max(one, other)


def _learnt(context: Context, screen: Screen, functions: Sequence[Function]) -> Learnt:
    """The results for some functions."""
    module = context.module
    uses = len(module.group_uses)
    results = [_screened(screen, one) for one in functions]
    own = module.group_uses[uses:]
    del module.group_uses[uses:]
    return Learnt(results, own, module.type_uses, module.typed_at, module.opaque_at, context.used_groups,
                  context.intrinsic_groups)  # fmt: skip
