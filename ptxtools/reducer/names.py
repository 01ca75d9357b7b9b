"""Shorter names: functions, variables and labels get short ones, and the registers of a range close ranks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count

from ptxtools.ir import Function, Label, Module, Variable
from ptxtools.ir.cfg import scopes_of
from ptxtools.syntax import parse, print_module

_WORD = re.compile(r'"[^"]*"|[%$\w]+(?![%$\w])')


def shorter_names(module: Module) -> Iterator[Module]:
    """The module with all shorter names, then with one name shorter at a time. Module and names are read again."""
    text = print_module(module)
    wanted = _wanted(module, text)
    if not wanted:
        return
    yield _renamed(text, wanted)
    if len(wanted) > 1:
        for name, new in wanted.items():
            yield _renamed(text, {name: new})


def _renamed(text: str, names: dict[str, str]) -> Module:
    return parse(_WORD.sub(lambda found: names.get(found[0], found[0]), text)).module


def _wanted(module: Module, text: str) -> dict[str, str]:
    used = set(_WORD.findall(text))
    plain: dict[str, str] = {}
    ranges: set[str] = set()
    for item in module.items:
        if isinstance(item, (Function, Variable)):
            plain.setdefault(item.name, "f" if isinstance(item, Function) else "v")
        if isinstance(item, Function):
            plain.update((p.name, "p") for p in (*item.params, *item.returns))
            for scope in scopes_of(item):
                for statement in scope.items:
                    if isinstance(statement, Variable) and statement.count is not None:
                        ranges.add(statement.name)
                    elif isinstance(statement, (Variable, Label)):
                        plain[statement.name] = "L" if isinstance(statement, Label) else "v"
    found: dict[str, str] = {}
    for name, letter in plain.items():
        short = next(f"{letter}{n}" for n in count() if f"{letter}{n}" not in used)
        if len(short) < len(name):
            found[name] = short
            used.add(short)
    for base in sorted(ranges):
        numbers = sorted(int(name[len(base) :]) for name in used if re.fullmatch(re.escape(base) + r"\d+", name))
        found.update((f"{base}{n}", f"{base}{place}") for place, n in enumerate(numbers) if n != place)
    return found
