"""Registration of rules: each file of `linter/rules/` is a rule, and a decorator says what it inspects.

A rule's file is loaded when a module has something that it looks at: its decorators are read from its text before
that, so they are written out. The linter itself names no rule.

Of functions that differ in local names alone, rules see one, unless they find something in it (`ir.alike`).
"""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cached_property, lru_cache
from importlib import import_module
from typing import Any, TypeAlias, TypeVar

from ptxtools import cache
from ptxtools.ir.nodes import Address, Element, Function

from .accesses import ACCESSING, Access, accesses_of, in_register
from .context import LintContext
from .facts import FunctionFacts, Line
from .state import code_state

#: The package that holds the rules.
RULES = f"{__package__}.rules"

_ADDRESSES = (Address, Element)

LineCheck: TypeAlias = Callable[[LintContext, FunctionFacts, Line], None]
AccessCheck: TypeAlias = Callable[[LintContext, Line, Access], None]
BodyCheck: TypeAlias = Callable[[LintContext, FunctionFacts], None]
FunctionCheck: TypeAlias = Callable[[LintContext, Function], None]
ModuleCheck: TypeAlias = Callable[[LintContext], None]

_Body = TypeVar("_Body", bound=BodyCheck)
_Function = TypeVar("_Function", bound=FunctionCheck)
_Module = TypeVar("_Module", bound=ModuleCheck)

#: The checks of the rules loaded so far, by what they look at: a decorator's name, or the first word of an opcode.
registered: dict[str, list[Any]] = {}


# --- what a rule looks at ---------------------------------------------------------------------------------------------


def instructions(*families: str) -> Callable[[LineCheck], LineCheck]:
    """The rule sees each instruction whose opcode begins with one of these words."""

    def add(check: LineCheck) -> LineCheck:
        for family in families:
            registered.setdefault(family, []).append(check)
        return check

    return add


def variable_accesses(check: AccessCheck) -> AccessCheck:
    """The rule sees each load, store and atomic operation at an address that names a variable."""
    registered.setdefault("@variable_accesses", []).append(check)
    return check


def bodies(check: _Body) -> _Body:
    """The rule sees each function that has a body, with the facts about it."""
    registered.setdefault("@bodies", []).append(check)
    return check


def bodies_with(*families: str) -> Callable[[_Body], _Body]:
    """The rule sees each function whose body has an instruction whose opcode begins with one of these words."""

    def add(check: _Body) -> _Body:
        for family in families:
            registered.setdefault(f"@bodies_with {family}", []).append(check)
        return check

    return add


def directives(check: _Function) -> _Function:
    """The rule sees each function that has directives (11.4), those without a body included."""
    registered.setdefault("@directives", []).append(check)
    return check


def modules(check: _Module) -> _Module:
    """The rule sees the module once."""
    registered.setdefault("@modules", []).append(check)
    return check


def modules_with(*families: str) -> Callable[[_Module], _Module]:
    """The rule sees the module once if it has an instruction whose opcode begins with one of these words."""

    def add(check: _Module) -> _Module:
        for family in families:
            registered.setdefault(f"@modules_with {family}", []).append(check)
        return check

    return add


def on_request(check: _Module) -> _Module:
    """The rule sees the module once, if its code is selected by its full name."""
    registered.setdefault("@on_request", []).append(check)
    return check


# --- the checks, loaded as they are asked for -------------------------------------------------------------------------


class Checks:
    """What the rules look at; asking for the checks of one thing loads the rules that look at it."""

    def __init__(self) -> None:
        self._rules = _rules_by_look()

    def _of(self, key: str) -> list[Any]:
        for name in self._rules.get(key, ()):
            import_module(f"{RULES}.{name}")
        self._rules.pop(key, None)  # they are loaded
        return registered.get(key, [])

    def lines(self, family: str) -> list[LineCheck]:
        """Checks of instructions whose opcode begins with a word."""
        return [self._accesses, *self._of(family)] if family in ACCESSING else self._of(family)

    def bodies_with(self, families: Iterable[str]) -> list[BodyCheck]:
        """Checks of bodies that have instructions of these families, each once."""
        found = [check for family in families for check in self._of(f"@bodies_with {family}")]
        return list(dict.fromkeys(found))

    def modules_with(self, families: Iterable[str]) -> list[ModuleCheck]:
        """Checks of modules that have instructions of these families, each once."""
        found = [check for family in families for check in self._of(f"@modules_with {family}")]
        return list(dict.fromkeys(found))

    @cached_property
    def bodies(self) -> list[BodyCheck]:
        return self._of("@bodies")

    @cached_property
    def directives(self) -> list[FunctionCheck]:
        return self._of("@directives")

    @cached_property
    def modules(self) -> list[ModuleCheck]:
        return self._of("@modules")

    def on_request(self, select: Iterable[str]) -> list[ModuleCheck]:
        """Checks of modules that only run for those who name their codes in full."""
        wanted = {code.upper() for code in select}
        return [check for check in self._of("@on_request") if _code_of(check) in wanted] if wanted else []

    def untold(self, select: Iterable[str]) -> list[str]:
        """The codes of those that `select` does not name."""
        wanted = {code.upper() for code in select}
        return [code for check in self._of("@on_request") if (code := _code_of(check)) not in wanted]

    @cached_property
    def _variable_accesses(self) -> list[AccessCheck]:
        return self._of("@variable_accesses")

    def _accesses(self, context: LintContext, facts: FunctionFacts, line: Line) -> None:
        if any(type(operand) in _ADDRESSES and not in_register(line, operand) for operand in line.item.operands):
            for access in accesses_of(line):
                for check in self._variable_accesses if access.symbol.space != "reg" else ():
                    check(context, line, access)


def _code_of(check: Callable[..., None]) -> str:
    """The code of a rule, with which its file's name begins."""
    return check.__module__.rpartition(".")[2].partition("_")[0].upper()


@lru_cache(maxsize=1)
def checks() -> Checks:
    """The checks of all rules."""
    return Checks()


def _rules_by_look() -> dict[str, list[str]]:
    """The rules by what they look at, in the order of their codes. Kept on disk: reading their texts takes longer than
    a small module."""
    key = code_state()
    path = os.path.join(cache.directory(), f"rules-{sys.implementation.cache_tag}.bin")
    stored = cache.read_sealed(path, key, 1 << 20)
    with suppress(ValueError, EOFError, TypeError):
        if stored is not None:
            known: dict[str, list[str]] = marshal.loads(stored)
            return known
    found: dict[str, list[str]] = {}
    for name, file in files().items():
        for look in looks_of(file):
            found.setdefault(look, []).append(name)
    cache.write_sealed(path, key, marshal.dumps(found))
    return found


def looks_of(path: str) -> list[str]:
    """What the rule in a file looks at, by the decorators in its text: keys as in `registered`."""
    with open(path, encoding="utf-8") as file:
        _, *decorated = file.read().split("\n@")
    found: list[str] = []
    for text in decorated:
        name, _, families = text.partition("\n")[0].partition("(")
        kind = "" if name == "instructions" else f"@{name}"
        words = [word.strip(' "') for word in families.rpartition(")")[0].split(",")] if families else [""]
        found += [f"{kind} {word}".strip() for word in words]
    return found


def files() -> dict[str, str]:
    """The modules of all rules in the order of their codes, and their files."""
    folders = import_module(RULES).__path__
    files = {
        file: folder
        for folder in folders
        for file in os.listdir(folder)
        if file.startswith("ptx") and file.endswith(".py")
    }
    return {file.removesuffix(".py"): os.path.join(files[file], file) for file in sorted(files)}


def names() -> list[str]:
    """The modules of all rules, in the order of their codes."""
    return list(files())


def pages() -> dict[str, tuple[str, str]]:
    """Title and page of every rule, by code, from the docstrings."""
    from ptxtools.check.pages.format import read_pages

    texts = [import_module(f"{RULES}.{name}").__doc__ or "" for name in names()]
    return read_pages("\n\n".join(f"# {text}" for text in texts))
