"""Functions that are the same but for the names of what is local to them: compilers give each copy names of its own.

Their texts are compared, with local names replaced by numbers. Such functions have the same findings, if the first has
none: whatever else they refer to has the same name in both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable

from ptxtools.isa.index import CHAPTERS

from .nodes import Alias, Function, Header, Instruction, Label, Module, Pragma, Variable

#: What stands for a local name in a text, and where it would be a part of a longer name.
_OPEN, _CLOSE = "\x01", "\x02"
_PART = re.compile(r"[\x01\x02](?:(?<=[\w$%.]\x01)|(?<=\x02)[\w$])")
#: Words that are no names where they stand without a dot, besides opcodes.
_WORDS = frozenset({"WARP_SZ", "function_name", "inlined_at", "generic", "mask"})
#: What names consist of, behind a leading %.
_WORD = re.compile(r"[\w$]+")
#: Longer texts with more names take too long to compare: characters times names.
_MOST = 1 << 23
#: How many functions of other modules are remembered.
_MOST_KNOWN = 2000
#: Names in a module of which each is looked for in a text; of more, the text's words are looked up.
_FEW_NAMES = 64


def kinds_of(module: Module) -> dict[int, int]:
    """By the id of a function that is like others, the number of its kind. A module with statements that could not be
    read, or with variables that are declared again, has none: what a name means may change on the way."""
    source = module.source
    if source is None or not _comparable(module):
        return {}
    kinds: dict[int, int] = {}
    for like in _groups(module.functions):
        by_text: dict[str, list[Function]] = {}
        for function in like:
            if text := _plain_text(function, source.text):
                by_text.setdefault(text, []).append(function)
        for same in by_text.values():
            if len(same) > 1:
                kinds.update(dict.fromkeys(map(id, same), len(kinds)))
    return kinds


def _comparable(module: Module) -> bool:
    """Whether the functions of a module can be compared by their texts."""
    source = module.source
    if source is None or source.joined or module.unread or module.unnamed or _OPEN in source.text:
        return False
    declared = [item.name for item in module.items if isinstance(item, Variable)]
    return len(declared) == len(set(declared))


def texts_alone(module: Module) -> Callable[[Function], tuple[str, ...]]:
    """What gives the text of a function that refers to nothing else in its module, with numbers for its local names,
    behind the module's headers; functions of several modules for which that is equal are the same. () for others."""
    source = module.source
    if source is None or not _comparable(module):
        return lambda _: ()
    headers = tuple(" ".join([item.name, *item.args]) for item in module.items if isinstance(item, Header))
    others: dict[str, int] = {}
    for item in module.items:
        name = getattr(item, "name", "").lstrip("%")
        others[name] = others.get(name, 0) + 1
    plain = all(_WORD.fullmatch(name) for item in module.items if isinstance(item, Function | Variable | Alias)
                for name in [item.name.lstrip("%")])  # fmt: skip

    def text_of(function: Function) -> tuple[str, ...]:
        own = function.name.lstrip("%")
        if not plain or function.body is None or others[own] > 1:
            return ()
        start, end = function.span
        text = source.text[start:end]
        few = len(others) < _FEW_NAMES
        named = {name for name in others if name and name != own and name in text} if few else others.keys() - {own, ""}
        refers = named and not named.isdisjoint(_WORD.findall(text))
        found = "" if refers else _plain_text(function, source.text)
        return (*headers, found) if found else ()

    return text_of


class Faultless:
    """What something has found nothing in, in this process: keys that say all that it depends on."""

    def __init__(self) -> None:
        self._known: set[Hashable] = set()

    def __contains__(self, key: Hashable) -> bool:
        return key in self._known

    def add(self, key: Hashable) -> None:
        """Remember a key; when there are too many, forget the others."""
        if len(self._known) == _MOST_KNOWN:
            self._known.clear()
        self._known.add(key)


def _groups(functions: Iterable[Function]) -> list[list[Function]]:
    """Functions that may be alike: of one length, and beginning in the same way."""
    found: dict[tuple[object, ...], list[Function]] = {}
    for function in functions:
        items = function.body.items if function.body is not None else ()
        if items:
            middle = items[len(items) // 2]
            about = middle.opcode if type(middle) is Instruction else type(middle)
            found.setdefault((function.kind, len(items), len(function.params), about), []).append(function)
    return [group for group in found.values() if len(group) > 1]


def _plain_text(function: Function, text: str) -> str:
    """The text of a function with numbers for its local names; "" where that cannot be told."""
    assert function.body is not None
    start, end = function.span
    found = text[start:end]
    names = [function.name, *(variable.name for variable in (*function.params, *function.returns))]
    items = [item for item in function.body.items if type(item) is not Instruction]
    names += [i.name for i in items if type(i) is Label or (type(i) is Variable and i.space != "reg")]
    if len(names) > len(set(names)) or len(names) * len(found) > _MOST:
        return ""
    if not _WORDS.isdisjoint(names) or not CHAPTERS.keys().isdisjoint(names):
        return ""
    quoted = [text for item in (*function.directives, *items) if isinstance(item, Pragma) for text in item.strings]
    if any(name in text for text in quoted for name in names):
        return ""
    for number, name in sorted(enumerate(names), key=lambda numbered: -len(numbered[1])):
        if len(name) < 2 or name[0] == "%":
            return ""
        found = found.replace(name, f"{_OPEN}{number}{_CLOSE}")
    return "" if _PART.search(found) else found
