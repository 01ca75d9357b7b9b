"""Registration of rules: each file of `linter/rules/` is a rule, and a decorator says what it inspects.

The files are loaded when the first module is checked; the linter names none of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TypeAlias, TypeVar

from ptxtools.ir.nodes import Function

from .accesses import ACCESSING, Access, accesses_of
from .context import LintContext
from .facts import FunctionFacts, Line

#: The package that holds the rules.
RULES = f"{__package__}.rules"

LineCheck: TypeAlias = Callable[[LintContext, FunctionFacts, Line], None]
AccessCheck: TypeAlias = Callable[[LintContext, Line, Access], None]
BodyCheck: TypeAlias = Callable[[LintContext, FunctionFacts], None]
FunctionCheck: TypeAlias = Callable[[LintContext, Function], None]
ModuleCheck: TypeAlias = Callable[[LintContext], None]

_Body = TypeVar("_Body", bound=BodyCheck)
_Function = TypeVar("_Function", bound=FunctionCheck)
_Module = TypeVar("_Module", bound=ModuleCheck)


class Checks:
    """The checks of the loaded rules. lines: by the first word of the opcode."""

    def __init__(self) -> None:
        self.lines: dict[str, list[LineCheck]] = {family: [self._accesses] for family in ACCESSING}
        self.variable_accesses: list[AccessCheck] = []
        self.register_accesses: list[AccessCheck] = []
        self.bodies: list[BodyCheck] = []
        self.functions: list[FunctionCheck] = []
        self.modules: list[ModuleCheck] = []

    def _accesses(self, context: LintContext, facts: FunctionFacts, line: Line) -> None:
        for access in accesses_of(line):
            checks = self.register_accesses if access.symbol.space == "reg" else self.variable_accesses
            for check in checks:
                check(context, line, access)


_checks = Checks()


def instructions(*families: str) -> Callable[[LineCheck], LineCheck]:
    """The rule sees each instruction whose opcode begins with one of these words."""

    def add(check: LineCheck) -> LineCheck:
        for family in families:
            _checks.lines.setdefault(family, []).append(check)
        return check

    return add


def variable_accesses(check: AccessCheck) -> AccessCheck:
    """The rule sees each load, store and atomic operation at an address that names a variable."""
    _checks.variable_accesses.append(check)
    return check


def register_accesses(check: AccessCheck) -> AccessCheck:
    """The rule sees each load, store and atomic operation at an address in a register."""
    _checks.register_accesses.append(check)
    return check


def bodies(check: _Body) -> _Body:
    """The rule sees each function that has a body, with the facts about it."""
    _checks.bodies.append(check)
    return check


def functions(check: _Function) -> _Function:
    """The rule sees each function, those without a body included."""
    _checks.functions.append(check)
    return check


def modules(check: _Module) -> _Module:
    """The rule sees the module once."""
    _checks.modules.append(check)
    return check


@cache
def load() -> Checks:
    """The checks of all rules."""
    for name in names():
        import_module(f"{RULES}.{name}")
    return _checks


def names() -> list[str]:
    """The modules of all rules, in the order of their codes."""
    folders = import_module(RULES).__path__
    files = {file.partition(".")[0] for folder in folders for file in os.listdir(folder) if file.startswith("ptx")}
    return sorted(files)


def pages() -> dict[str, tuple[str, str]]:
    """Title and page of every rule, by code, from the docstrings."""
    from ptxtools.check.pages.format import read_pages

    texts = [import_module(f"{RULES}.{name}").__doc__ or "" for name in names()]
    return read_pages("\n\n".join(f"# {text}" for text in texts))
