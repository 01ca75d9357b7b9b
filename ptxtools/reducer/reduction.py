"""The search: large parts first, then smaller ones, then simpler forms of what is left, until nothing helps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ptxtools.ir import Function, Header, Label, Module, Scope
from ptxtools.ir.cfg import scopes_of

from .edits import edited
from .names import shorter_names
from .simpler import nodes, simpler
from .trial import Trial

#: Parts that are dropped together, as lists of nodes.
_Parts = list[list[Any]]


def reduced(module: Module, trial: Trial) -> Module:
    """The smallest module that the search comes to. `module` is one for which the command ends with 0."""
    while True:
        before = module
        for parts in (_items, _bodies, _blocks, _statements):
            module = _dropped(module, trial, parts)
        module = _simplified(module, trial)
        module = _renamed(module, trial)
        if module is before:
            return module


def _items(module: Module) -> _Parts:
    return [[item] for item in module.items if not isinstance(item, Header)]


def _bodies(module: Module) -> _Parts:
    """The statements of each function."""
    return [list(f.body.items) for f in module.functions if f.body is not None and f.body.items]


def _blocks(module: Module) -> _Parts:
    """Statements from label to label, of each scope."""
    parts: _Parts = []
    for scope in _scopes(module):
        start = len(parts)
        for item in scope.items:
            if isinstance(item, Label) or len(parts) == start:
                parts.append([])
            parts[-1].append(item)
    return parts


def _statements(module: Module) -> _Parts:
    return [[item] for scope in _scopes(module) for item in scope.items]


def _scopes(module: Module) -> Iterator[Scope]:
    for item in module.items:
        if isinstance(item, Function):
            yield from scopes_of(item)


def _dropped(module: Module, trial: Trial, parts_of: Callable[[Module], _Parts]) -> Module:
    """Drop parts, by halves, quarters and so on down to single ones; the last first, since uses follow declarations."""
    parts = parts_of(module)
    size = len(parts)
    while size:
        end = len(parts)
        while end > 0:
            found = trial.first(_without_chunks(module, parts, end, size))
            if found is None:
                break
            start, module = found
            parts = parts_of(module)
            end = min(start, len(parts))
        size = min(size // 2, len(parts))
    return module


def _without_chunks(module: Module, parts: _Parts, end: int, size: int) -> Iterator[tuple[int, Module]]:
    """The module without each chunk of parts from `end` down, and where the chunk begins."""
    while end > 0:
        start = max(0, end - size)
        yield start, edited(module, {id(node): None for part in parts[start:end] for node in part})
        end = start


def _simplified(module: Module, trial: Trial) -> Module:
    """Replace parts by simpler forms, one at a time."""
    waiting = list(nodes(module))
    while True:
        found = trial.first(
            ((place, new), edited(module, {id(node): new}))
            for place, node in enumerate(waiting)
            for new in simpler(node)
        )
        if found is None:
            return module
        (place, new), module = found
        present = {id(node) for node in nodes(module)}
        waiting = [node for node in (new, *waiting[place + 1 :]) if id(node) in present]


def _renamed(module: Module, trial: Trial) -> Module:
    while True:
        found = trial.first((None, renamed) for renamed in shorter_names(module))
        if found is None:
            return module
        module = found[1]
