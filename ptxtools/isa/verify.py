"""Consistency checks of the tables; the tests run them on every page."""

from __future__ import annotations

from importlib import import_module

from .errors import TableError
from .index import CHAPTERS
from .notation import Page, split_pages


def every_page() -> list[Page]:
    """Every page of every chapter of the index."""
    names = sorted({name for chapters in CHAPTERS.values() for name in chapters})
    pages = []
    for name in names:
        chapter = import_module(f"{__package__}.{name}")
        pages += [Page(*page, chapter) for page in split_pages(chapter.PAGES)]
    return pages


def check(page: Page) -> None:
    """Raise `TableError` for a page with undefined names, or an operand without a type."""
    atoms = {value for form in page.forms for e in form.elements for value in e.values}
    slots = {e.name for form in page.forms for e in form.elements}
    if not page.forms:
        raise _wrong(page, "no syntax form")
    if unused := set(page.sets) - slots:
        raise _wrong(page, f"sets without a form: {', '.join(sorted(unused))}")
    conditions = [c.condition for c in page.needs + page.removed] + [c for pair in page.only for c in pair]
    conditions += [c for c, _ in page.marks]
    conditions += [p.condition for form in page.forms for p in form.patterns if p.condition]
    for term in (term for condition in conditions for term in condition.terms()):
        if not _known_term(term.kind, term.key, term.values, atoms, slots, page):
            raise _wrong(page, f"condition '{term}' can never hold")
    if missing := set(page.names) - {form.name for form in page.forms}:
        raise _wrong(page, f"no form for {', '.join(sorted(missing))}")
    _check_operands(page)


def _wrong(page: Page, what: str) -> TableError:
    return TableError(f"{page.section} {' '.join(page.names)}: {what}")


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


def _check_operands(page: Page) -> None:
    for form in page.forms:
        for pattern in form.patterns:
            untyped = pattern.type is None and pattern.role in ("src", "dst")
            if untyped and not pattern.kinds & {"label", "func"}:
                raise _wrong(page, f"operand '{pattern.name}' of '{form.syntax}' needs a type")
