"""Messages for opcodes that fit no form: the nearest form, the values of its slots, near misses."""

from __future__ import annotations

from difflib import get_close_matches

from . import errors
from .errors import OpcodeError
from .form import Element, Form
from .index import CHAPTERS
from .types import TYPES

_MOST = 12


def explain(text: str, complaint: str) -> OpcodeError:
    """The error for an opcode that no form accepts; `complaint`: a rule that refused a form which fits otherwise."""
    from .opcode import forms

    family, *atoms = text.split(".")
    candidates = list(forms(family))
    if not candidates:
        return _unknown_instruction(family)
    if complaint:
        return OpcodeError(f"'{text}': {complaint}", (), errors.BAD_COMBINATION, candidates[0].section)
    best, surplus, missing = _nearest(candidates, atoms)
    if "" in atoms:
        return OpcodeError(f"'{text}' has an empty modifier", (), errors.UNKNOWN_MODIFIER, best.section)
    if not surplus and not missing:
        words = ".".join([family, *best.lead, *(w for w in atoms if w in best.page.first)])
        message = f"'{text}': the words of '{words}' must come first, in this order"
        return OpcodeError(message, (_form(best),), errors.BAD_COMBINATION, best.section)
    if surplus:
        return _surplus(text, atoms, surplus[0], best, candidates, missing)
    slot = missing[0]
    message = f"'{text}' lacks '.{slot.name}'"
    return OpcodeError(message, (_accepts(slot), _form(best)), errors.MISSING_MODIFIER, best.section)


def _unknown_instruction(family: str) -> OpcodeError:
    near = get_close_matches(family, CHAPTERS, 2)
    help = (_did_you_mean(near, ""),) if near else ()
    return OpcodeError(f"unknown instruction '{family}'", help, errors.UNKNOWN_INSTRUCTION)


def _did_you_mean(near: list[str], dot: str) -> str:
    return "did you mean " + " or ".join(f"'{dot}{value}'" for value in near) + "?"


def _nearest(candidates: list[Form], atoms: list[str]) -> tuple[Form, list[str], list[Element]]:
    def cost(form: Form) -> int:
        _, surplus, missing = form.assign(atoms)
        return 6 * len(surplus) + 4 * len(missing) + (not form.leads(atoms))

    best = min(candidates, key=cost)
    _, surplus, missing = best.assign(atoms)
    return best, surplus, missing


def _surplus(
    text: str, atoms: list[str], atom: str, best: Form, candidates: list[Form], missing: list[Element]
) -> OpcodeError:
    known = {value for form in candidates for element in form.elements for value in element.values}
    family = text.split(".", 1)[0]
    help: list[str] = []
    if atom not in known:
        wanted = [value for element in missing for value in element.values]
        near = get_close_matches(atom, wanted, 1) or get_close_matches(atom, sorted(known), 2)
        if near:
            help.append(_did_you_mean(near, "."))
        if missing:
            help.append(_accepts(missing[0]))
        what = "type" if atom in TYPES else "modifier"
        code = errors.BAD_TYPE if atom in TYPES else errors.UNKNOWN_MODIFIER
        return OpcodeError(
            f"'.{atom}' is not a {what} of '{family}'", (*help, _form(best)), code, best.section, f".{atom}"
        )
    if not missing and atoms.count(atom) > 1 and all(form.assign(atoms)[1] for form in candidates):
        return OpcodeError(
            f"'{text}' repeats '.{atom}'", (_form(best),), errors.REPEATED_MODIFIER, best.section, f".{atom}"
        )
    if missing:
        help.append(_accepts(missing[0]))
    help += [_form(form) for form in _forms_with(atom, candidates, atoms)]
    rest = _without(text, atom)
    code = errors.BAD_TYPE if atom in TYPES else errors.BAD_COMBINATION
    return OpcodeError(
        f"'.{atom}' cannot be combined with '{rest}'", tuple(help) or (_form(best),), code, best.section, f".{atom}"
    )


def _without(text: str, atom: str) -> str:
    head, *atoms = text.split(".")
    atoms.remove(atom)
    return ".".join((head, *atoms))


def _forms_with(atom: str, candidates: list[Form], atoms: list[str]) -> list[Form]:
    """Up to two forms that accept `atom`, the nearest first."""
    having = [form for form in candidates if any(atom in element.values for element in form.elements)]
    having.sort(key=lambda form: len(form.assign(atoms)[1]) + len(form.assign(atoms)[2]))
    return having[:2]


def _accepts(slot: Element) -> str:
    values = [f".{value}" for value in slot.values]
    shown = ", ".join(values[:_MOST]) + (f", … ({len(values)} in all)" if len(values) > _MOST else "")
    return f"'.{slot.name}' is required" if slot.literal else f"'.{slot.name}' accepts {shown}"


def _form(form: Form) -> str:
    return f"form: {form.syntax}"
