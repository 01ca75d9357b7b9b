"""Syntax forms: positions for modifiers, and the assignment of an opcode's modifiers to them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING
from zlib import crc32

from .errors import TableError
from .spaces import SPACES
from .types import TYPES

if TYPE_CHECKING:
    from .notation import Page
    from .patterns import Pattern

Sets = Mapping[str, tuple[str, ...]]

#: Modifiers of one kind, whose order counts.
_KINDS = {
    **dict.fromkeys(("row", "col"), "<layout>"),
    **dict.fromkeys(("b8x16", "b6x16_p32", "b4x16_p64"), "<format>"),
    **dict.fromkeys(("and", "xor", "popc"), "<product>"),
    **dict.fromkeys(("b2", "b4"), "<type>"),  # of an index, behind that of the elements
    "b1024": "b1024",  # the type of a tensor map, beside that of its field
}
#: Parts of declared names that count as modifiers: "shfl.idx.sync.b32" is "shfl.sync.idx.b32".
_LOOSE = frozenset({"sync", "cc", "nc", "sp", "global"})
#: Names that the manual only uses for slots; left without a set they are a slip of the table.
_SLOT_NAMES = frozenset(
    {
        *("type", "dtype", "atype", "btype", "ctype", "stype", "mode", "rnd", "op", "vec", "scope", "sem"),
        *("space", "cop", "sop", "geom", "shape", "dst", "src", "size", "num"),
    }
)


class Element:
    """One modifier position of a form. group: elements of one `{.a.b}` come together; 0 for none."""

    __slots__ = ("group", "name", "optional", "values")

    def __init__(self, name: str, values: tuple[str, ...], optional: bool, group: int) -> None:
        self.name, self.values, self.optional, self.group = name, values, optional, group

    @property
    def literal(self) -> bool:
        return self.values == (self.name,)

    def __str__(self) -> str:
        return f"{{.{self.name}}}" if self.optional else f".{self.name}"


class Form:
    """One syntax form of a page; `number` counts from 1 inside it. Expensive parts are computed on first use."""

    def __init__(self, page: Page, number: int, text: str, own: Sets, known: Sets) -> None:
        self.page, self.number = page, number
        self._head, _, self._operands = text.partition(" ")
        self._own, self._known = own, known

    @property
    def section(self) -> str:
        return self.page.section

    @cached_property
    def syntax(self) -> str:
        """The form as the manual prints it."""
        from .patterns import readable

        return f"{self._head} {readable(self._operands)}".rstrip()

    @cached_property
    def digest(self) -> str:
        """Five hex digits that change with the form: its modifiers and their values, its operands, and the `only`
        lines that can hold for it."""
        words = frozenset(word for element in self.elements for word in (element.name, *element.values))
        sets = [f".{e.name} = {' '.join(sorted(e.values))}" for e in self.elements if not e.literal]
        only = [f"{met} => {demand}" for met, demand in self.page.only if met.may_hold(self.name, words)]
        return f"{crc32(' | '.join([self._head, self._operands, *sets, *only]).encode()):08x}"[:5]

    @cached_property
    def family(self) -> str:
        return self._head.partition(".")[0].partition("{")[0]

    @cached_property
    def elements(self) -> tuple[Element, ...]:
        elements: list[Element] = []
        group = 0
        for names, optional in _pieces(self._head[len(self.family) :]):
            several = optional and len(names) > 1
            group += several
            for name in names:
                values = self._own.get(name) or self._known.get(name)
                if values is None and name in _SLOT_NAMES:
                    raise TableError(f"{self.section}: slot '.{name}' of '{self._head}' has no set")
                elements.append(Element(name, values or (name,), optional, group if several else 0))
        return tuple(elements)

    @cached_property
    def name(self) -> str:
        """The longest declared name whose parts this form has as literals: "shfl.sync"."""
        literals = {element.name for element in self.elements if element.literal and not element.optional}
        best = ""
        for name in self.page.names:
            first, *rest = name.split(".")
            if first == self.family and literals.issuperset(rest) and len(name) > len(best):
                best = name
        if not best:
            raise TableError(f"{self.section}: form '{self._head}' has none of the page's names")
        return best

    @cached_property
    def prefix(self) -> frozenset[str]:
        """The literals that belong to the name."""
        return frozenset(self.name.split(".")[1:])

    @cached_property
    def lead(self) -> list[str]:
        """Words that must follow the family at once, in this order: the rest of the mnemonic. Every other modifier
        may come in any order."""
        words = self.name.split(".")[1:]
        loose = next((at for at, word in enumerate(words) if word in _LOOSE), len(words))
        return words[:loose]

    @cached_property
    def patterns(self) -> tuple[Pattern, ...]:
        """Operand patterns. Those without a type have the form's type, if it has just one."""
        from .patterns import parse_operands

        types = [e.name for e in self.elements if e.values[0] in TYPES]
        return parse_operands(self._operands, types[0] if len(types) == 1 else None)

    def __repr__(self) -> str:
        return f"<Form {self.section} #{self.number}: {self.syntax}>"

    @cached_property
    def _routing(self) -> tuple[list[list[int]], dict[str, int]]:
        """Components of elements whose values could be confused, and the component that each value belongs to.

        Inside a component the order of modifiers counts; between components it does not. Types are one component,
        spaces another, and so are the kinds of `_KINDS`.
        """
        components: list[list[int]] = []
        routes: dict[str, int] = {}
        for index, element in enumerate(self.elements):
            values, first = element.values, element.values[0]
            kind = _KINDS.get(first) or ("<type>" if first in TYPES else "<space>" if first in SPACES else first)
            met = {at for at in map(routes.get, (kind, *values)) if at is not None}
            home = min(met, default=len(components))
            if not met:
                components.append([])
            for other in met - {home}:
                components[home] += components[other]
                components[other] = []
                routes.update((value, home) for value, at in routes.items() if at == other)
            components[home].append(index)
            routes[kind] = home
            routes.update(dict.fromkeys(values, home))
        return [sorted(component) for component in components], routes

    @cached_property
    def _words(self) -> frozenset[str]:
        """All modifiers that the form may have."""
        return frozenset(value for element in self.elements for value in element.values)

    def assign(self, atoms: list[str]) -> tuple[dict[int, str], list[str], list[Element]]:
        """Modifiers to elements: (element index -> modifier, modifiers left over, required elements left open)."""
        components, routes = self._routing
        queues: list[list[str]] = [[] for _ in components]
        surplus: list[str] = []
        for atom in atoms:
            at = routes.get(atom)
            if at is None:
                surplus.append(atom)
            else:
                queues[at].append(atom)
        chosen: dict[int, str] = {}
        for members, queue in zip(components, queues, strict=True):
            found = self._fill(members, queue)
            if found is None:
                found, rest = self._fill_badly(members, queue)
                surplus += rest
            chosen.update(found)
        missing = [e for i, e in enumerate(self.elements) if i not in chosen and not e.optional]
        missing += self._torn_groups(chosen)
        return chosen, surplus, missing

    def fits(self, atoms: list[str]) -> dict[int, str] | None:
        """The assignment when it is complete, else None."""
        if not self._words.issuperset(atoms) or not self.leads(atoms):
            return None
        chosen, surplus, missing = self.assign(atoms)
        return None if surplus or missing else chosen

    def leads(self, atoms: list[str]) -> bool:
        """Whether the mnemonic's words come first, as required."""
        if atoms[: len(self.lead)] != self.lead:
            return False
        first = self.page.first
        if not first:
            return True
        present = set(atoms)
        wanted = [present.intersection(e.values) for e in self.elements if e.name in first]
        wanted = [values for values in wanted if values]
        found = atoms[len(self.lead) : len(self.lead) + len(wanted)]
        return len(found) == len(wanted) and all(map(set.__contains__, wanted, found))

    def _fill(self, members: list[int], queue: list[str]) -> dict[int, str] | None:
        """In-order assignment of all of `queue` that leaves no required element open, or None."""
        if not members:
            return None if queue else {}
        first, rest = members[0], members[1:]
        element = self.elements[first]
        if queue and queue[0] in element.values:
            found = self._fill(rest, queue[1:])
            if found is not None:
                found[first] = queue[0]
                return found
        return self._fill(rest, queue) if element.optional else None

    def _fill_badly(self, members: list[int], queue: list[str]) -> tuple[dict[int, str], list[str]]:
        """A best effort for the error message."""
        found: dict[int, str] = {}
        rest: list[str] = []
        members = list(members)
        for atom in queue:
            at = next((m for m in members if atom in self.elements[m].values), None)
            if at is None:
                rest.append(atom)
            else:
                found[at] = atom
                members = [m for m in members if m > at]
        return found, rest

    def _torn_groups(self, chosen: Mapping[int, str]) -> list[Element]:
        present = {self.elements[i].group for i in chosen} - {0}
        return [e for i, e in enumerate(self.elements) if e.group in present and i not in chosen]

    def canonical(self, chosen: Mapping[int, str]) -> str:
        """The opcode's text in the manual's order."""
        return self.family + "".join(f".{chosen[i]}" for i in range(len(self.elements)) if i in chosen)


def _pieces(head: str) -> list[tuple[list[str], bool]]:
    """`.a{.b}{.c.d}` as [(["a"], False), (["b"], True), (["c", "d"], True)]."""
    pieces: list[tuple[list[str], bool]] = []
    while head:
        if head[0] == "{":
            inside, _, head = head[1:].partition("}")
            pieces.append((inside.strip(".").split("."), True))
        else:
            plain, brace, head = head.partition("{")
            pieces += [([name], False) for name in plain.strip(".").split(".")]
            head = brace + head
    return pieces
