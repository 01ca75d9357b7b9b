"""Opcodes: the text of an instruction's name and modifiers, resolved against the tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING

from ptxtools.records import NamedTuple

from .conditions import Context
from .form import Form
from .index import CHAPTERS
from .notation import Clause, Page, read_chapter
from .patterns import OperandSpec
from .spaces import SPACES
from .types import TYPES

if TYPE_CHECKING:
    from .lenient import Slack


class Need(NamedTuple):
    """A requirement: PTX version `ptx` at least, and one of `targets` (empty: any); those in `late` came later.

    atoms: the modifiers (with dots) that cause it; empty when the instruction itself does. operand, kind: it holds
    only if that operand is written (kind "": at all; "reg": as a register; "imm": as an immediate; others: see
    `conditions`).
    """

    atoms: tuple[str, ...]
    ptx: tuple[int, int]
    targets: tuple[str, ...]
    operand: str = ""
    kind: str = ""
    late: tuple[tuple[str, tuple[int, int]], ...] = ()


class Opcode:
    """A resolved opcode: immutable, one object for each text. See the attributes' comments."""

    __slots__ = (
        "_shapes",
        "atoms",  # frozenset of all modifiers, without dots
        "carry_in",  # reads CC.CF (9.7.2)
        "carry_out",  # writes CC.CF
        "family",  # first word: "shfl"
        "form",  # the syntax form that matched
        "marks",  # further properties from the tables
        "mods",  # slot name -> value without dot; a literal modifier under its own name
        "name",  # as declared: "shfl.sync"
        "operand_requirements",  # requirements that depend on the operands (Need.operand)
        "operands",  # OperandSpecs in order
        "removals",  # Need: no longer there at that version together with that target
        "requirements",  # Needs, all of which apply
        "space",  # first state-space modifier, or None
        "text",  # canonical text, in the manual's order
        "type",  # last type modifier, or None
        "types",  # type modifiers in order
        "variables",  # what the chapter's rule derived (fragment sizes, …)
    )

    atoms: frozenset[str]
    carry_in: bool
    carry_out: bool
    family: str
    form: Form
    marks: frozenset[str]
    mods: dict[str, str]
    name: str
    operand_requirements: tuple[Need, ...]
    operands: tuple[OperandSpec, ...]
    removals: tuple[Need, ...]
    requirements: tuple[Need, ...]
    _shapes: tuple[tuple[OperandSpec, ...], ...] | None
    space: str | None
    text: str
    type: str | None
    types: tuple[str, ...]
    variables: dict[str, int | str]

    @property
    def section(self) -> str:
        """Section of the manual."""
        return self.form.section

    @property
    def shapes(self) -> tuple[tuple[OperandSpec, ...], ...]:
        """Every list of operands that fits this opcode (`mov` of a vector, `call` with results, …); the first is
        `operands`."""
        if self._shapes is None:
            self._shapes = _all_shapes(self)
        return self._shapes

    def __getattr__(self, name: str) -> tuple[Need, ...]:
        """What an opcode requires is worked out when it is first asked for."""
        if name not in ("requirements", "operand_requirements", "removals"):
            raise AttributeError(name)
        _set_needs(self)
        found: tuple[Need, ...] = getattr(self, name)
        return found

    def has(self, modifier: str) -> bool:
        """Whether that modifier (without dot) is present anywhere."""
        return modifier in self.atoms

    def __repr__(self) -> str:
        return f"Opcode('{self.text}')"

    def __reduce__(self) -> tuple[object, ...]:
        return resolve, (self.text,)


_pages: dict[str, tuple[Page, ...]] = {}
_resolved: dict[str, Opcode] = {}
#: The opcodes among them that are none of the manual's, and what ptxas overlooks in them.
_slack: dict[str, Slack] = {}


def pages(family: str) -> tuple[Page, ...]:
    """Every page that declares instructions whose first word is `family`; () for an unknown word."""
    found = _pages.get(family)
    if found is None:
        found = tuple(
            page
            for name in CHAPTERS.get(family, ())
            for page in read_chapter(import_module(f"{__package__}.{name}"), family)
        )
        if found:
            _pages[family] = found
    return found


def forms(family: str) -> Iterator[Form]:
    """Every syntax form of a family."""
    for page in pages(family):
        yield from (form for form in page.forms if form.family == family)


def _candidates(family: str, atoms: list[str]) -> Iterator[Form]:
    present = set(atoms)
    for page in pages(family):
        if page.may_declare(present):
            yield from (form for form in page.forms if form.family == family)


def resolve(text: str) -> Opcode:
    """The opcode that `text` ("cvt.rn.f16.f32") names.

    Modifiers may come in any order where that is unambiguous; `slack` tells of those that ptxas ignores. Raises
    `OpcodeError` when no form fits. 9.7.
    """
    found = _resolved.get(text)
    if found is None:
        found = _resolved[text] = _resolve(text)
    return found


def declared(text: str) -> Opcode | None:
    """The opcode that `text` spells as the manual has it; None, at less cost than an error of `resolve`, if no form
    fits."""
    found = _resolved.get(text) or _by_forms(text)
    return found if isinstance(found, Opcode) and text not in _slack else None


def slack(text: str) -> Slack | None:
    """What ptxas overlooks in an opcode that has been resolved; None if the manual has it."""
    return _slack.get(text)


_BANK = re.compile(r"(?<=^ld)\.const\[(?:\d|10)\]")


def _resolve(text: str) -> Opcode:
    if "[" in text and (plain := _BANK.sub(".const", text)) != text:
        return resolve(plain)  # constants in banks, before PTX 2.2 (5.1.3.1)
    found = _by_forms(text)
    if isinstance(found, str):
        return _leniently(text, found)
    return found


def _by_forms(text: str) -> Opcode | str:
    """The opcode of the first form that fits, or the complaint of a rule that has refused one."""
    family, *atoms = text.split(".")
    complaint = ""
    for form in _candidates(family, atoms):
        chosen = form.fits(atoms)
        if chosen is None:
            continue
        canonical = form.canonical(chosen)
        interned = _resolved.get(canonical)
        if interned is not None:
            return interned
        context = _context(form, chosen)
        variables = _obey(form.page, context)
        if isinstance(variables, str):
            complaint = complaint or variables
            continue
        opcode = _build(form, canonical, context, variables, [chosen[i] for i in sorted(chosen)])
        _resolved[canonical] = opcode
        return opcode
    return complaint


def _leniently(text: str, complaint: str) -> Opcode:
    """The opcode that ptxas takes `text` for, though no form fits."""
    from .lenient import candidates

    for found, words in candidates(text):
        opcode = _by_forms(found.text)
        if isinstance(opcode, Opcode) and opcode.form.leads(words):
            _slack[text] = found
            return opcode
    from .suggest import explain

    raise explain(text, complaint)


def _context(form: Form, chosen: dict[int, str]) -> Context:
    mods = {
        element.name: chosen[i]
        for i, element in enumerate(form.elements)
        if i in chosen and not (element.literal and element.name in form.prefix)
    }
    return Context(form.name, mods, frozenset(chosen.values()))


def _obey(page: Page, context: Context) -> dict[str, int | str] | str:
    """The page's rules applied: variables for the operands, or what is wrong."""
    for condition, demand in page.only:
        met = condition.match(context)
        if met is not None and demand.match(context) is None:
            subject = " with ".join(term.describe(context) for term in met)
            return f"{subject or context.name} needs {demand}"
    variables: dict[str, int | str] = {}
    for rule in page.rules:
        result = rule(context)
        if isinstance(result, str):
            return result
        variables.update(result)
    return variables


def _build(form: Form, canonical: str, context: Context, variables: dict[str, int | str], ordered: list[str]) -> Opcode:
    op = Opcode()
    op._shapes = None
    op.text, op.form, op.name, op.family = canonical, form, form.name, form.family
    op.mods, op.atoms, op.variables = dict(context.mods), context.atoms, variables
    op.types = tuple(atom for atom in ordered if atom in TYPES)
    op.type = op.types[-1] if op.types else None
    op.space = next((atom for atom in ordered if atom in SPACES), None)
    op.operands = _operands(form, context, variables, op.space)
    page = form.page
    op.marks = frozenset(m for c, marks in page.marks if c.match(context) is not None for m in marks)
    op.carry_in, op.carry_out = "carry_in" in op.marks, "carry_out" in op.marks
    return op


def _set_needs(op: Opcode) -> None:
    context, page = Context(op.name, op.mods, op.atoms), op.form.page
    needs = [need for clause in page.needs for need in _applied(clause, context)]
    op.requirements = tuple(need for need in needs if not need.operand)
    op.operand_requirements = tuple(need for need in needs if need.operand)
    op.removals = tuple(need for clause in page.removed for need in _applied(clause, context))


def _operands(
    form: Form, context: Context, variables: dict[str, int | str], space: str | None
) -> tuple[OperandSpec, ...]:
    specs = (pattern.build(context, variables, space) for pattern in form.patterns)
    return tuple(spec for spec in specs if spec is not None)


def _applied(clause: Clause, context: Context) -> Iterator[Need]:
    alternative = clause.condition.match(context)
    if alternative is None:
        return
    operand = next((term for term in alternative if term.kind == "operand"), None)
    atoms: list[str] = []
    for term in alternative:
        if term.kind == "atom" and not term.negated:
            atoms += [f".{context.mods.get(v, v)}" for v in term.values if v in context.atoms or v in context.mods]
        elif term.kind == "slot" and not term.negated:
            atoms.append(f".{context.mods[term.key]}")
        elif term.kind == "suffix" and not term.negated:
            atoms += [f".{atom}" for atom in context.atoms if atom.endswith(term.key)]
    kind = operand.values[0] if operand and operand.values else ""
    yield Need(tuple(atoms), clause.ptx, clause.targets, operand.key if operand else "", kind, clause.late)


def _all_shapes(op: Opcode) -> tuple[tuple[OperandSpec, ...], ...]:
    """Operand lists of all forms of that name that fit the same modifiers, on whatever page."""
    shapes = [op.operands]
    atoms = op.text.split(".")[1:]
    for form in forms(op.family):
        if form is op.form or form.name != op.name:
            continue
        chosen = form.fits(atoms)
        if chosen is None:
            continue
        context = _context(form, chosen)
        variables = _obey(form.page, context)
        if isinstance(variables, str):
            continue
        shape = _operands(form, context, variables, op.space)
        if shape not in shapes:
            shapes.append(shape)
    return tuple(some for shape in shapes for some in _left_out(shape))


def _left_out(shape: tuple[OperandSpec, ...]) -> list[tuple[OperandSpec, ...]]:
    """The list, and where it ends with several optional operands, those without one but the last."""
    optional = [at for at, spec in enumerate(shape) if spec.optional]
    return [shape, *(shape[:at] + shape[at + 1 :] for at in optional[:-1])]
