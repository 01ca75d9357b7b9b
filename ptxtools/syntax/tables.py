"""PLY's parsing tables: those of the package; of a changed grammar, built once and kept in the user's cache directory.

PLY's own table files would be written to the package and used without comparing the grammar; here the key is
the grammar itself. Actions are bound by name, so the tables contain only plain data. `make tables` writes the file of
the package.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from typing import Any

from ply import yacc

from ptxtools import cache

from . import kept, lexer
from .grammar import PRECEDENCE, Actions

#: One production: left side, right side, name of its action.
Production = tuple[str, list[str], str]
#: What PLY makes of a grammar: actions and gotos by state, and the rules.
Tables = tuple[dict[int, dict[str, int]], dict[int, dict[str, int]], list[tuple[Any, ...]]]

#: The tables of the package.
SHIPPED = os.path.join(os.path.dirname(__file__), "grammar.json")

_SYMBOL = re.compile(r"'[^']+'|[\w%]+|[:|]")


def productions() -> list[Production]:
    """The grammar as a list, in the order of the file; the first left side is the start symbol."""
    found: list[Production] = []
    for name, action in vars(Actions).items():
        text = getattr(action, "productions", None)
        if text is not None:
            found.extend(_read(text, name))
    return found


def _read(text: str, action: str) -> list[Production]:
    """`a : b ',' c | d` as productions. A name before a colon begins the next left side."""
    words = _SYMBOL.findall(text)
    found: list[Production] = []
    left = ""
    right: list[str] = []
    for index, word in enumerate(words):
        if index + 1 < len(words) and words[index + 1] == ":":
            if left:
                found.append((left, right, action))
            left, right = word, []
        elif word == "|":
            found.append((left, right, action))
            right = []
        elif word != ":":
            right.append(word)
    return [*found, (left, right, action)]


def grammar_key() -> str:
    """Changes whenever the tables would."""
    parts = (productions(), PRECEDENCE, lexer.tokens, lexer.literals, yacc.__version__)
    return cache.blake2b(repr(parts).encode(), digest_size=32).hexdigest()


def generate() -> Tables:
    """The tables of the grammar."""
    grammar = yacc.Grammar([*lexer.tokens])
    for level, (associativity, *terms) in enumerate(PRECEDENCE, 1):
        for term in terms:
            grammar.set_precedence(term, associativity, level)
    for left, right, action in productions():
        grammar.add_production(left, right, action, "grammar.py", 0)
    grammar.set_start(productions()[0][0])
    loose = [*grammar.undefined_symbols(), *grammar.unused_rules(), *grammar.find_unreachable()]
    made = yacc.LRGeneratedTable(grammar, "LALR", yacc.NullLogger())
    if loose or made.sr_conflicts or made.rr_conflicts:
        raise AssertionError(f"grammar conflicts or loose ends: {loose} {made.sr_conflicts} {made.rr_conflicts}")
    rules = [(str(rule), rule.name, rule.len, rule.func) for rule in grammar.Productions]
    return made.lr_action, made.lr_goto, rules


def shipped(key: str) -> Tables | None:
    """The tables of the package, if they are those of this grammar and this PLY."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        with open(SHIPPED, encoding="ascii") as file:
            found = json.load(file)
        if found["key"] == key:
            actions, gotos = ({int(state): row for state, row in found[name].items()} for name in ("actions", "gotos"))
            return actions, gotos, [tuple(rule) for rule in found["rules"]]
    return None


def ship() -> None:
    """Write the tables of the package."""
    actions, gotos, rules = generate()
    made = {"key": grammar_key(), "actions": actions, "gotos": gotos, "rules": rules}
    with open(SHIPPED, "w", encoding="ascii") as file:
        json.dump(made, file, separators=(",", ":"))
        file.write("\n")


def parser(actions: Actions) -> Any:
    """A PLY parser that runs these actions."""
    key = grammar_key()
    made = shipped(key) or kept.load("grammar", key)
    if made is None:
        made = generate()
        kept.store("grammar", key, made)
    table = yacc.LRTable()
    table.lr_action, table.lr_goto, rules = made
    table.lr_productions = [yacc.MiniProduction(*rule, "grammar.py", 0) for rule in rules]
    table.bind_callables({name: getattr(actions, name) for name in vars(Actions) if name.startswith("p_")})
    return yacc.LRParser(table, None)
