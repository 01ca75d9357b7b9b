"""The notation: an instruction declared once, looking like its page of the manual.

A chapter is a text of pages. A page starts with `# section names…`; then, in any number:

    add{.rnd}{.ftz}.f32  d, a, b;        a syntax form: modifiers in canonical order, then operand patterns
    .rnd = { .rn, .rz };                 a modifier set: binds to the forms above that still lack it, and to forms below
    .ss  = { .shared{::cta, ::cluster} };
    needs .bf16x2 => ptx 7.8, sm_90      availability (see `conditions`); several targets: one of them suffices
    only .sat => type=.s32               a combination that the forms alone would not exclude
    removed => ptx 6.4, sm_70            gone at that version together with that target
    marks .cc => carry_out               a property of the opcode
    rule shapes                          a function of the chapter: further checks, and variables for the operands
    let policy = cache_policy:b64(reg)   an abbreviation, written $policy in forms; before the first page: for them all

`{.a}` is optional, `{.a.b}` optional as a whole; a name without a set is a literal. `{b:u32,}` in the middle of the
operands stands for two forms, with it and without. Pages are read when a mnemonic of
theirs is first met; a page that contradicts itself raises `TableError`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import NamedTuple

from .conditions import Condition, Context
from .errors import TableError
from .patterns import Pattern, parse_operands, readable
from .spaces import SPACES
from .types import TYPES

Version = tuple[int, int]
#: Given slots and modifiers: variables for operand patterns, or the text of what is wrong.
Rule = Callable[[Context], "Mapping[str, int | str] | str"]

#: Names that the manual only uses for slots; left without a set they are a slip of the table.
_SLOT_NAMES = frozenset(
    {
        *("type", "dtype", "atype", "btype", "ctype", "stype", "mode", "rnd", "op", "vec", "scope", "sem"),
        *("space", "cop", "sop", "geom", "shape", "dst", "src", "size", "num"),
    }
)
_KEYWORDS = ("needs", "only", "removed", "marks", "rule", "let")
_HEAD = re.compile(r"\{[^}]*\}|\.[\w:]+")
_HEADER = re.compile(r"^# ([\d.]+) (.+)$", re.M)


class Clause(NamedTuple):
    """A `needs` or `removed` line."""

    condition: Condition
    ptx: Version
    targets: tuple[str, ...]


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


class Page:
    """All that one page of the manual declares for one or several mnemonics."""

    __slots__ = ("forms", "marks", "names", "needs", "only", "removed", "rules", "section")

    def __init__(self, section: str, names: tuple[str, ...], text: str, chapter: ModuleType | None) -> None:
        self.section, self.names = section, names
        self.forms: tuple[Form, ...] = ()
        self.needs: list[Clause] = []
        self.removed: list[Clause] = []
        self.only: list[tuple[Condition, Condition]] = []
        self.marks: list[tuple[Condition, tuple[str, ...]]] = []
        self.rules: list[Rule] = []
        preamble = chapter.PAGES.partition("\n# ")[0] if chapter else ""
        _PageReader(self, chapter).read(preamble, text)


class Form:
    """One syntax form. `syntax` is its text as the manual prints it; `number` counts from 1 inside its page."""

    __slots__ = ("_components", "_routes", "elements", "name", "number", "page", "patterns", "prefix", "syntax")

    def __init__(self, page: Page, number: int, syntax: str, elements: tuple[Element, ...]) -> None:
        self.page, self.number, self.elements = page, number, elements
        head, _, operands = syntax.partition(" ")
        self.syntax = f"{head} {readable(operands)}".rstrip()
        self.name, self.prefix = self._find_name(head)
        types = [e for e in elements if e.values[0] in TYPES]
        default = types[0].name if len(types) == 1 else None
        self.patterns: tuple[Pattern, ...] = parse_operands(operands, default)
        self._components: list[list[int]] = []
        self._routes: dict[str, int] = {}
        self._route()

    @property
    def section(self) -> str:
        return self.page.section

    def __repr__(self) -> str:
        return f"<Form {self.section} #{self.number}: {self.syntax}>"

    def _find_name(self, head: str) -> tuple[str, frozenset[str]]:
        """The longest declared name whose parts this form has as literals, and those parts."""
        literals = {element.name for element in self.elements if element.literal and not element.optional}
        family = re.match(r"\w+", head)
        best = ""
        for name in self.page.names:
            first, *rest = name.split(".")
            if family and family[0] == first and literals.issuperset(rest) and len(name) > len(best):
                best = name
        if not best:
            raise TableError(f"{self.section}: form '{head}' has none of the names {', '.join(self.page.names)}")
        return best, frozenset(best.split(".")[1:])

    def _route(self) -> None:
        """Group elements whose values could be confused: inside such a component the order of modifiers counts."""
        keys: list[set[str]] = []
        for index, element in enumerate(self.elements):
            key = set(element.values)
            if any(value in TYPES for value in key):
                key.add("<type>")
            if any(value in SPACES for value in key):
                key.add("<space>")
            members = [index]
            for at in reversed(range(len(keys))):
                if keys[at] & key:
                    members = self._components.pop(at) + members
                    key |= keys.pop(at)
            keys.append(key)
            self._components.append(sorted(members))
        for at, members in enumerate(self._components):
            for member in members:
                for value in self.elements[member].values:
                    self._routes[value] = at

    def assign(self, atoms: list[str]) -> tuple[dict[int, str], list[str], list[Element]]:
        """Modifiers to elements: (element index -> modifier, modifiers left over, required elements left open)."""
        queues: list[list[str]] = [[] for _ in self._components]
        surplus: list[str] = []
        for atom in atoms:
            at = self._routes.get(atom)
            if at is None:
                surplus.append(atom)
            else:
                queues[at].append(atom)
        chosen: dict[int, str] = {}
        for members, queue in zip(self._components, queues, strict=True):
            found = self._fill(members, queue)
            if found is None:
                found, rest = self._fill_badly(members, queue)
                surplus += rest
            chosen.update(found)
        missing = [e for i, e in enumerate(self.elements) if i not in chosen and not e.optional]
        missing += self._torn_groups(chosen)
        return chosen, surplus, missing

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
        family = self.name.split(".", 1)[0]
        return family + "".join(f".{chosen[i]}" for i in range(len(self.elements)) if i in chosen)


class _PageReader:
    """Reads the lines of one page."""

    def __init__(self, page: Page, chapter: ModuleType | None) -> None:
        self.page, self.chapter = page, chapter
        self.heads: list[tuple[str, dict[str, tuple[str, ...]]]] = []
        self.known: dict[str, tuple[str, ...]] = {}
        self.abbreviations: dict[str, str] = {}

    def read(self, preamble: str, text: str) -> None:
        pending = ""
        for raw in (*preamble.splitlines(), *text.splitlines()):
            line = raw.split("//", 1)[0].strip()
            if not line:
                continue
            if not pending and line.split(" ", 1)[0] in _KEYWORDS:
                self._clause(line)
                continue
            pending = f"{pending} {line}" if pending else line
            if pending.startswith(".") and 0 < pending.count("{") == pending.count("}"):
                self._set(pending)
                pending = ""
            elif not pending.startswith(".") and pending.endswith(";"):
                text = self._spell_out(re.sub(r"\s+", " ", pending[:-1]).strip())
                for form in _without_gaps(text):
                    self.heads.append((form, {}))
                pending = ""
        if pending:
            raise self._wrong(f"unfinished line '{pending}'")
        self.page.forms = tuple(self._form(i + 1, *head) for i, head in enumerate(self.heads))
        self._check()

    def _spell_out(self, text: str) -> str:
        """`text` with its $abbreviations replaced."""
        try:
            return re.sub(r"\$(\w+)", lambda found: self.abbreviations[found[1]], text)
        except KeyError as missing:
            raise self._wrong(f"no abbreviation ${missing.args[0]}") from None

    def _wrong(self, what: str) -> TableError:
        return TableError(f"{self.page.section} {' '.join(self.page.names)}: {what}")

    def _set(self, line: str) -> None:
        left, _, right = line.partition("{")
        values = _expand(right.rstrip("; ").removesuffix("}"), self.known)
        if not values or len(set(values)) != len(values):
            raise self._wrong(f"set '{line}' is empty or repeats a value")
        for slot in left.split("="):
            if name := slot.strip().lstrip("."):
                for _, sets in self.heads:
                    sets.setdefault(name, values)
                self.known[name] = values

    def _clause(self, line: str) -> None:
        keyword, _, rest = line.partition(" ")
        condition, arrow, effect = rest.rpartition("=>")
        if keyword == "rule":
            self.page.rules.append(getattr(self.chapter, rest.strip()))
        elif keyword == "let":
            name, _, meaning = rest.partition("=")
            self.abbreviations[name.strip()] = self._spell_out(meaning.strip())
        elif not arrow and keyword != "marks":
            raise self._wrong(f"'{line}' lacks '=>'")
        elif keyword == "only":
            self.page.only.append((Condition(condition), Condition(effect)))
        elif keyword == "marks":
            self.page.marks.append((Condition(condition), tuple(effect.split())))
        else:
            version = re.search(r"ptx (\d+)\.(\d+)", effect)
            clause = Clause(
                Condition(condition),
                (int(version[1]), int(version[2])) if version else (1, 0),
                tuple(re.findall(r"sm_\w+", effect)),
            )
            (self.page.needs if keyword == "needs" else self.page.removed).append(clause)

    def _form(self, number: int, syntax: str, own: dict[str, tuple[str, ...]]) -> Form:
        head = syntax.split(" ", 1)[0]
        family = re.match(r"\w+", head)
        if not family:
            raise self._wrong(f"form '{syntax}'")
        elements: list[Element] = []
        group = 0
        for piece in _HEAD.findall(head[family.end() :]):
            names = re.findall(r"\.([\w:]+)", piece)
            optional = piece.startswith("{")
            group += optional and len(names) > 1
            for name in names:
                values = own.get(name) or self.known.get(name)
                if values is None and name in _SLOT_NAMES:
                    raise self._wrong(f"slot '.{name}' of '{head}' has no set")
                elements.append(Element(name, values or (name,), optional, group if optional and len(names) > 1 else 0))
        return Form(self.page, number, syntax, tuple(elements))

    def _check(self) -> None:
        """Refuse a table that names what it does not have."""
        atoms = {value for form in self.page.forms for e in form.elements for value in e.values}
        slots = {e.name for form in self.page.forms for e in form.elements}
        if not self.page.forms:
            raise self._wrong("no syntax form")
        unused = set(self.known) - slots
        if unused:
            raise self._wrong(f"sets without a form: {', '.join(sorted(unused))}")
        page = self.page
        conditions = [c.condition for c in page.needs + page.removed] + [c for pair in page.only for c in pair]
        conditions += [c for c, _ in page.marks]
        conditions += [p.condition for form in page.forms for p in form.patterns if p.condition]
        for term in (term for condition in conditions for term in condition.terms()):
            if not _known_term(term.kind, term.key, term.values, atoms, slots, page):
                raise self._wrong(f"condition '{term}' can never hold")
        names = [form.name for form in page.forms]
        if missing := set(page.names) - set(names):
            raise self._wrong(f"no form for {', '.join(sorted(missing))}")
        self._check_types()

    def _check_types(self) -> None:
        for form in self.page.forms:
            for pattern in form.patterns:
                untyped = pattern.type is None and pattern.role in ("src", "dst")
                if untyped and not pattern.kinds & {"label", "func"}:
                    raise self._wrong(f"operand '{pattern.name}' of '{form.syntax}' needs a type")


def _without_gaps(form: str) -> list[str]:
    """The forms that a form with operands left out in the middle stands for."""
    gap = re.search(r"\{([^{},]+),\}", form)
    if not gap:
        return [form]
    before, after = form[: gap.start()], form[gap.end() :]
    return _without_gaps(before + after) + _without_gaps(f"{before}{gap[1]},{after}")


def _known_term(kind: str, key: str, values: tuple[str, ...], atoms: set[str], slots: set[str], page: Page) -> bool:
    if kind == "atom":
        return (atoms | slots).issuperset(values)
    if kind == "slot":
        return key in slots and atoms.issuperset(values)
    if kind == "suffix":
        return any(atom.endswith(key) for atom in atoms)
    if kind == "name":
        return key in page.names
    return any(key in (pattern.name, pattern.second) for form in page.forms for pattern in form.patterns)


def _expand(text: str, sets: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Values of a set: `.shared{::cta, ::cluster}` is three values; the name of another set stands for its values;
    `.m64n<8..256:8>k16` is one value for each number from 8 to 256 in steps of 8."""
    out: list[str] = []
    for before, low, high, step, after in re.findall(r"\.(\w+)<(\d+)\.\.(\d+):(\d+)>(\w+)", text):
        out += [f"{before}{n}{after}" for n in range(int(low), int(high) + 1, int(step))]
    for value, inner in re.findall(r"\.([\w:]+)(?![\w:<])(?:\{([^}]*)\})?", re.sub(r"\.\w+<[^>]*>\w+", "", text)):
        out += sets.get(value, (value,))
        out += [value + suffix.strip() for suffix in inner.split(",") if suffix.strip()]
    return tuple(out)


def split_pages(text: str) -> list[tuple[str, tuple[str, ...], str]]:
    """(section, names, body) of every page of a chapter text."""
    heads = list(_HEADER.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return [(h[1], tuple(h[2].split()), text[h.end() : end]) for h, end in zip(heads, ends, strict=True)]


def read_chapter(chapter: ModuleType, family: str) -> list[Page]:
    """The pages of a chapter module that declare instructions of `family`."""
    return [
        Page(section, names, body, chapter)
        for section, names, body in split_pages(chapter.PAGES)
        if any(name.split(".", 1)[0] == family for name in names)
    ]
