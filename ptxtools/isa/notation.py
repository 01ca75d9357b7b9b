"""The notation: an instruction declared once, looking like its page of the manual.

A chapter is a text of pages. A page starts with `# section names…`; then, in any number:

    add{.rnd}{.ftz}.f32  d, a, b;        a syntax form: modifiers in canonical order, then operand patterns
    .rnd = { .rn, .rz };                 a modifier set: binds to the forms above that still lack it, and to forms below
    .ss  = { .shared{::cta, ::cluster} };
    needs .bf16x2 => ptx 7.8, sm_90      availability (see `conditions`); several targets: one of them suffices;
                                         sm_89@8.1 suffices from that version on only; a name of
                                         `chips.TARGET_SETS` stands for several
    only .sat => type=.s32               a combination that the forms alone would not exclude
    removed => ptx 6.4, sm_70            gone at that version together with that target
    marks .cc => carry_out               a property of the opcode
    first .expect_tx                     modifiers that stand at once behind the name, where they are written
    rule shapes                          a function of the chapter: further checks, and variables for the operands
    let policy = cache_policy:u64(reg)   an abbreviation, written $policy in forms; before the first page: for them all

`{.a}` is optional, `{.a.b}` optional as a whole; a name without a set is a literal. `{b:u32,}` in the middle of the
operands stands for two forms, with it and without. Pages are read when a mnemonic of
theirs is first met; a page that contradicts itself raises `TableError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from types import ModuleType

from ptxtools.records import NamedTuple

from .chips import TARGET_SETS, Version
from .conditions import Condition, Context
from .errors import TableError
from .form import Form

#: Given slots and modifiers: variables for operand patterns, or the text of what is wrong.
Rule = Callable[[Context], "Mapping[str, int | str] | str"]

_KEYWORDS = frozenset({"needs", "only", "removed", "marks", "rule", "let", "first"})


class Clause(NamedTuple):
    """A `needs` or `removed` line."""

    condition: Condition
    ptx: Version
    targets: tuple[str, ...]
    late: tuple[tuple[str, Version], ...] = ()


class Page:
    """The declarations of one page of the manual for one or several mnemonics; read on first use."""

    def __init__(self, section: str, names: tuple[str, ...], text: str, chapter: ModuleType) -> None:
        self.section, self.names = section, names
        self._text, self._chapter = text, chapter

    @cached_property
    def _content(self) -> _PageReader:
        reader = _PageReader(self, self._chapter)
        reader.read(self._chapter.PAGES.partition("\n# ")[0])
        reader.read(self._text)
        return reader

    @cached_property
    def forms(self) -> tuple[Form, ...]:
        known = self._content.known
        return tuple(Form(self, i + 1, text, own, known) for i, (text, own) in enumerate(self._content.heads))

    @property
    def needs(self) -> list[Clause]:
        return self._content.needs

    @property
    def removed(self) -> list[Clause]:
        return self._content.removed

    @property
    def only(self) -> list[tuple[Condition, Condition]]:
        return self._content.only

    @property
    def marks(self) -> list[tuple[Condition, tuple[str, ...]]]:
        return self._content.marks

    @property
    def first(self) -> frozenset[str]:
        """Literal modifiers that count as words of the mnemonic."""
        return self._content.first

    @property
    def rules(self) -> list[Rule]:
        return self._content.rules

    @property
    def sets(self) -> Mapping[str, tuple[str, ...]]:
        """Every modifier set of the page by name (the last one, where a name has several)."""
        return self._content.known

    def may_declare(self, atoms: set[str]) -> bool:
        """Whether one of the names could head an opcode with these modifiers: saves reading the page."""
        return any(atoms.issuperset(name.split(".")[1:]) for name in self.names)


class _PageReader:
    """Reads the lines of one page."""

    def __init__(self, page: Page, chapter: ModuleType) -> None:
        self.page, self.chapter = page, chapter
        self.heads: list[tuple[str, dict[str, tuple[str, ...]]]] = []
        self.known: dict[str, tuple[str, ...]] = {}
        self.abbreviations: dict[str, str] = {}
        self.needs: list[Clause] = []
        self.removed: list[Clause] = []
        self.only: list[tuple[Condition, Condition]] = []
        self.marks: list[tuple[Condition, tuple[str, ...]]] = []
        self.rules: list[Rule] = []
        self.first: frozenset[str] = frozenset()

    def read(self, text: str) -> None:
        pending = ""
        for raw in text.splitlines():
            line = raw.partition("//")[0].strip()
            if not line:
                continue
            if not pending and line.partition(" ")[0] in _KEYWORDS:
                self._clause(line)
                continue
            pending = f"{pending} {line}" if pending else line
            if pending[0] == ".":
                if 0 < pending.count("{") == pending.count("}"):
                    self._set(pending)
                    pending = ""
            elif pending[-1] == ";":
                self.heads += [(form, {}) for form in _without_gaps(self._spell_out(pending[:-1]))]
                pending = ""
        if pending:
            raise self._wrong(f"unfinished line '{pending}'")

    def _spell_out(self, text: str) -> str:
        """`text` with single spaces and its $abbreviations replaced."""
        first, *rest = " ".join(text.split()).split("$")
        for part in rest:
            end = next((i for i, c in enumerate(part) if not (c.isalnum() or c == "_")), len(part))
            if part[:end] not in self.abbreviations:
                raise self._wrong(f"no abbreviation ${part[:end]}")
            first += self.abbreviations[part[:end]] + part[end:]
        return first

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
        if keyword == "let":
            name, _, meaning = rest.partition("=")
            self.abbreviations[name.strip()] = self._spell_out(meaning)
            return
        if keyword == "first":
            words = {word.strip().lstrip(".") for word in rest.split(",")}
            if not all(word.isidentifier() for word in words):
                raise self._wrong(f"'{line}' needs words with commas between them")
            self.first |= words
            return
        if keyword == "rule":
            self.rules.append(getattr(self.chapter, rest.strip()))
            return
        condition, arrow, effect = rest.rpartition("=>")
        if not arrow and keyword != "marks":
            raise self._wrong(f"'{line}' lacks '=>'")
        if keyword == "only":
            self.only.append((Condition(condition), Condition(effect)))
        elif keyword == "marks":
            self.marks.append((Condition(condition), tuple(effect.split())))
        else:
            clause = Clause(Condition(condition), *self._requirement(effect))
            (self.needs if keyword == "needs" else self.removed).append(clause)

    def _requirement(self, text: str) -> tuple[Version, tuple[str, ...], tuple[tuple[str, Version], ...]]:
        """`ptx 8.0, sm_90a, sm_100a@8.6` as ((8, 0), ("sm_90a", "sm_100a"), (("sm_100a", (8, 6)),)); a name of
        `chips.TARGET_SETS` stands for its targets."""
        version: Version = (1, 0)
        targets: list[str] = []
        late: list[tuple[str, Version]] = []
        for item in text.split(","):
            word = item.strip()
            if word.startswith("ptx "):
                version = _version(word[4:])
            elif word.startswith("sm_"):
                name, _, since = word.partition("@")
                targets.append(name)
                late += [(name, _version(since))] if since else []
            elif word in TARGET_SETS:
                targets += TARGET_SETS[word]
            else:
                raise self._wrong(f"requirement '{word}'")
        return version, tuple(targets), tuple(late)


def _version(text: str) -> Version:
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def _without_gaps(form: str) -> list[str]:
    """The forms that a form with operands left out in the middle (`{ b:u32,}`) stands for."""
    end = form.find(",}")
    if end < 0:
        return [form]
    start = form.rfind("{", 0, end)
    before, inside, after = form[:start], form[start + 1 : end], form[end + 2 :]
    return _without_gaps(before + after) + _without_gaps(f"{before}{inside},{after}")


def _expand(text: str, sets: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Values of a set: `.shared{::cta, ::cluster}` is three values; the name of another set stands for its values;
    `.m64n<8..256:8>k16` is one value for each number from 8 to 256 in steps of 8."""
    out: list[str] = []
    rest = text.strip()
    while rest:
        value, brace, after = rest.partition("{")
        if brace and "," not in value:
            inner, _, rest = after.partition("}")
            base = value.strip().lstrip(".")
            out += [base, *(base + suffix.strip() for suffix in inner.split(","))]
            rest = rest.lstrip(", ")
            continue
        value, _, rest = rest.partition(",")
        name = value.strip().lstrip(".")
        rest = rest.strip()
        if "<" in name:
            out += _numbered(name)
        elif name:
            out += sets.get(name, (name,))
    return tuple(out)


def _numbered(name: str) -> list[str]:
    before, _, rest = name.partition("<")
    span, _, after = rest.partition(">")
    bounds, _, step = span.partition(":")
    low, high = bounds.split("..")
    return [f"{before}{n}{after}" for n in range(int(low), int(high) + 1, int(step))]


def split_pages(text: str) -> list[tuple[str, tuple[str, ...], str]]:
    """(section, names, body) of every page of a chapter text."""
    pages = []
    for page in text.split("\n# ")[1:]:
        header, _, body = page.partition("\n")
        section, *names = header.split()
        pages.append((section, tuple(names), body))
    return pages


def read_chapter(chapter: ModuleType, family: str) -> list[Page]:
    """The pages of a chapter module that declare instructions of `family`."""
    start = family + "."
    return [
        Page(section, names, body, chapter)
        for section, names, body in split_pages(chapter.PAGES)
        if any(name == family or name.startswith(start) for name in names)
    ]
