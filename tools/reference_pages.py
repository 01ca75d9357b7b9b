"""The pages of docs/isa/ and docs/coverage.md, made from the instruction tables."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import islice

from conformance.operands import operands, statement
from conformance.setting import closing, opening

from ptxtools import isa
from ptxtools.diagnostics import PtxError
from ptxtools.isa.conditions import Condition
from ptxtools.isa.form import Form
from ptxtools.isa.index import CHAPTERS
from ptxtools.isa.notation import Page
from ptxtools.isa.patterns import Pattern
from ptxtools.isa.targets import FIRST_VERSION, describe, provides_any, version_text
from ptxtools.program.lowering import lower
from ptxtools.semantics.forms import covers
from ptxtools.syntax import parse

#: Chapters of section 9.7, for the summary.
TITLES = {
    1: "Integer arithmetic", 2: "Extended precision", 3: "Floating point", 4: "Half precision", 5: "Mixed precision",
    6: "Comparison and selection", 7: "Half-precision comparison", 8: "Logic and shift",
    9: "Data movement and conversion", 10: "Texture", 11: "Surface", 12: "Control flow",
    13: "Synchronisation and communication", 14: "Warp matrix", 15: "Warpgroup matrix", 16: "Tensor core, tcgen05",
    17: "Stack", 18: "Video", 19: "Miscellaneous",
}  # fmt: skip
#: Chapters that came later, by their instructions: the sections of others were moved to make room.
LATER = {"fabric": "9.7.10.5 of PTX 9.3, Fabric"}
_LONGEST = 40
_KINDS = {
    "reg": "register", "imm": "constant", "sreg": "special register", "symbol": "name of a variable or function",
    "vec": "vector in braces", "sink": "`_`", "label": "label", "func": "function",
}  # fmt: skip


def order(section: str) -> list[int]:
    return [int(number) for number in section.split(".")]


def every_page() -> list[tuple[str, Page]]:
    """(family, page) in the manual's order."""
    pages = [(family, page) for family in CHAPTERS for page in isa.pages(family)]
    return sorted(pages, key=lambda item: (order(item[1].section), item[0]))


def opcodes(form: Form) -> Iterator[isa.Opcode]:
    """Opcodes of a form: with required modifiers only, each value of each slot at a time."""
    required = [e for e in form.elements if not e.optional]
    usual = [e.values[0] for e in required]
    for at, element in enumerate(required or [None]):
        for value in element.values if element else ("",):
            atoms = [value if index == at and element else atom for index, atom in enumerate(usual)]
            op = isa.declared(".".join([form.family, *atoms]))
            if op is not None:
                yield op


@cache
def runs(form: Form) -> bool:
    """Whether the engines run what this form describes: up to three of its opcodes, lowered in a kernel."""
    return all(_lowers(op) for op in islice(opcodes(form), 3))


def _lowers(op: isa.Opcode) -> bool:
    target = next((name for name in reversed(FIRST_VERSION) if _provides(name, op)), "sm_120")
    setting = f"9.0/{target}"
    lines = opening(setting)
    variants = [operands(op, shape) for shape in op.shapes]
    return any(_accepted([*lines, statement(op.text, texts), *closing()]) for texts in variants)


def _provides(target: str, op: isa.Opcode) -> bool:
    usable = FIRST_VERSION[target] <= (9, 0)
    gone = any(provides_any(target, need.targets) for need in op.removals)
    return usable and not gone and all(provides_any(target, need.targets) for need in op.requirements)


def _accepted(lines: list[str]) -> bool:
    module = parse("\n".join(lines)).module
    try:
        lower(module, "k", lambda name: 4096)
    except PtxError:
        return False
    return True


# --- one instruction --------------------------------------------------------------------------------------------------


def instruction_page(family: str) -> str:
    """docs/isa/<family>.md."""
    pages = sorted(isa.pages(family), key=lambda page: order(page.section))
    lines = [f"# {family}", "", "Generated from the tables of ptx-lint; see [the index](README.md).", ""]
    for page in pages:
        forms = [form for form in page.forms if form.family == family]
        if forms:
            lines += _section(page, forms)
    return "\n".join(lines).rstrip() + "\n"


def _section(page: Page, forms: list[Form]) -> list[str]:
    names = [name for name in page.names if name.split(".")[0] == forms[0].family]
    lines = [
        f"## {', '.join(names)} ({page.section})",
        "",
        "```ptx",
        *dict.fromkeys(f"{f.syntax};" for f in forms),
        "```",
        "",
    ]
    simulated = [runs(form) for form in forms]
    said = "yes, on both engines" if all(simulated) else "in part" if any(simulated) else "not yet"
    lines += [f"Simulated: {said}.", ""]
    lines += _modifiers(forms) + _operands(forms) + _availability(page, forms)
    return lines


def _modifiers(forms: list[Form]) -> list[str]:
    slots: dict[str, list[str]] = {}
    for form in forms:
        for element in form.elements:
            if not element.literal:
                known = slots.setdefault(element.name, [])
                known += [value for value in element.values if value not in known]
    if not slots:
        return []
    rows = [f"| `.{name}` | {_values(values)} |" for name, values in slots.items()]
    return ["| modifier | one of |", "|---|---|", *rows, ""]


def _values(values: list[str]) -> str:
    shown = [f"`.{value}`" for value in values[:_LONGEST]]
    return ", ".join(shown) + (f" and {len(values) - _LONGEST} more" if len(values) > _LONGEST else "")


def _operands(forms: list[Form]) -> list[str]:
    rows: dict[str, None] = {}
    for form in forms:
        for pattern in form.patterns:
            rows.setdefault(_operand(pattern))
    if not rows:
        return []
    return ["| operand | what | type |", "|---|---|---|", *rows, ""]


#: Registers beside those of the type.
_INTEGERS = "; vectors of floats in registers of integers, too"
_WIDTHS = {
    "wider": " or wider",
    "bits": ", in any register of its size",
    "ints": _INTEGERS,
    "loose": f", in any register of its size if none has the type{_INTEGERS}",
}


def _operand(pattern: Pattern) -> str:
    what = {"dst": "destination", "src": "source", "addr": "address", "args": "list of arguments"}.get(
        pattern.role, pattern.role
    )
    kinds = [_KINDS[kind] for kind in _KINDS if kind in pattern.kinds]
    what += f" ({', '.join(kinds)})" if kinds and pattern.role in ("src", "dst") else ""
    if pattern.range:
        what += f", {pattern.range[0]} to {pattern.range[1]}"
        what += f" in steps of {pattern.multiple}" if pattern.multiple != "1" else ""
        what += f", the last {pattern.last[0]} to {pattern.last[1]}" if pattern.last else ""
    if pattern.choices:
        what += f", one of {', '.join(map(str, pattern.choices))}"
    what += ", may be missing" if pattern.optional else ""
    what += ", may be negated" if pattern.negatable else ""
    what += f", if {condition_text(pattern.condition)}" if pattern.condition else ""
    kind = pattern.type or ""
    text = f"`.{kind}`" if kind and kind != "any" else ""
    text += f", a vector of `{pattern.count}`" if pattern.count else ""
    text += _WIDTHS.get(pattern.width, "")
    second = f", with `{pattern.second}` after a bar" if pattern.second else ""
    return f"| `{pattern.name}`{second} | {what} | {text.lstrip(', ')} |"


def _availability(page: Page, forms: list[Form]) -> list[str]:
    present = {v for f in forms for e in f.elements for v in (*e.values, e.name)} | {
        n for f in forms for n in (f.name,)
    }
    lines = []
    for clauses, word in ((page.needs, "needs"), (page.removed, "removed")):
        for clause in clauses:
            if clause.condition.alternatives and not _concerns(clause.condition, present):
                continue
            wanted = [f"PTX {version_text(clause.ptx)}"] if clause.ptx > (1, 0) else []
            wanted += [describe(clause.targets)] if clause.targets else []
            wanted += [f"{name} from PTX {version_text(since)} on" for name, since in clause.late]
            subject = condition_text(clause.condition) or "the instruction"
            if word == "needs":
                lines.append(f"- {subject}: {', '.join(wanted)}")
            else:
                lines.append(f"- {subject}: removed in {', for '.join(wanted)}")
    lines += [
        f"- {condition_text(when) or 'always'}: only with {condition_text(then)}"
        for when, then in page.only
        if not when.alternatives or _concerns(when, present)
    ]
    return ["Availability and combinations:", "", *(lines or ["- since PTX 1.0, on every target"]), ""]


def _concerns(condition: Condition, present: set[str]) -> bool:
    return any(
        term.kind in ("operand", "suffix") or term.negated or present.intersection(term.values or (term.key,))
        for term in condition.terms()
    )


def condition_text(condition: Condition) -> str:
    """Such as "`.sat` with `.s32`, or `.cc`"."""
    return ", or ".join(" with ".join(_term(term) for term in alternative) for alternative in condition.alternatives)


def _term(term: object) -> str:
    from ptxtools.isa.conditions import Term

    assert isinstance(term, Term)
    bang = "no " if term.negated else ""
    values = "/".join(f".{value}" for value in term.values)
    if term.kind == "slot":
        return f"{bang}`{values}` as `.{term.key}`"
    if term.kind == "operand":
        kinds = {"reg": " as a register", "imm": " as a constant", "unified": ".unified", "vec": " as a vector",
                 "handle": " by an address in a register", "entry": " as a kernel",
                 "opaque": " as a texture, sampler or surface", "sampler": " as a sampler",
                 "indirect": " with a sampler in a register, or in unified mode with one at all"}  # fmt: skip
        kind = term.values[0] if term.values else ""
        return f"{bang}operand `{term.key}`{f' = {kind}' if kind.isdigit() else kinds.get(kind, '')}"
    return f"{bang}`{values or term.key}`"


# --- summaries --------------------------------------------------------------------------------------------------------


def index() -> str:
    """docs/isa/README.md."""
    lines = [
        "# Instructions", "", "Every instruction of PTX ISA 1.0 to 9.5, one page for each mnemonic.", "",
        "| mnemonic | instructions | sections | forms | simulated |", "|---|---|---|--:|---|",
    ]  # fmt: skip
    for family in sorted(CHAPTERS):
        pages = isa.pages(family)
        names = dict.fromkeys(name for page in pages for name in page.names if name.split(".")[0] == family)
        forms = [form for page in pages for form in page.forms if form.family == family]
        sections = ", ".join(sorted({page.section for page in pages}, key=order))
        listed = ", ".join(f"`{name}`" for name in names)
        lines.append(f"| [{family}]({family}.md) | {listed} | {sections} | {len(forms)} | {_share(forms)} |")
    return "\n".join(lines) + "\n"


def _share(forms: list[Form]) -> str:
    done = sum(map(runs, forms))
    return "yes" if done == len(forms) else "no" if not done else f"{done} of {len(forms)} forms"


def coverage() -> str:
    """docs/coverage.md: chapter by chapter, what is checked and what runs."""
    lines = [
        "# Coverage", "",
        "What ptx-lint and ptx-as check, and what ptx-run runs, chapter by chapter of section 9.7. Checked means: each",
        "form, modifier, operand, version and target; compared with ptxas in [conformance.md](conformance.md). Run",
        "means that the form lowers to the program that both engines, native and reference, execute. Pages for single",
        "instructions are in [isa/](isa/README.md).", "",
        "| section | instructions | forms | checked | run | not run yet |", "|---|--:|--:|--:|--:|---|",
    ]  # fmt: skip
    totals = [0, 0, 0]
    chapters: dict[str, list[tuple[str, Page]]] = {f"9.7.{number} {title}": [] for number, title in TITLES.items()}
    for family, page in every_page():
        number = order(page.section)[2]
        chapters.setdefault(LATER.get(family, f"9.7.{number} {TITLES[number]}"), []).append((family, page))
    for title, pages in chapters.items():
        forms = [(form, f) for f, page in pages for form in page.forms if form.family == f]
        names = {form.name for form, _ in forms}
        done = sum(runs(form) for form, _ in forms)
        missing = sorted({form.name for form, _ in forms if not runs(form)})
        lacking = ", ".join(f"`{name}`" for name in missing)
        totals = [total + more for total, more in zip(totals, (len(names), len(forms), done), strict=True)]
        lines.append(f"| {title} | {len(names)} | {len(forms)} | {len(forms)} | {done} | {lacking} |")
    lines.append(f"| **all** | {totals[0]} | {totals[1]} | {totals[1]} | {totals[2]} | |")
    return "\n".join([*lines, *_refused()]) + "\n"


def _refused() -> list[str]:
    """The forms that ptx-run refuses, whole or in part."""
    lines = [
        "", "## Forms that ptx-run refuses", "",
        "What they compute, or how their operands are laid out, is not published. ptx-lint and ptx-as take them;",
        'ptx-run ends with "this form has no simulation". Of a form that is refused in part, its modifiers are named.',
        "", "| section | form | refused |", "|---|---|---|",
    ]  # fmt: skip
    for family, page in sorted(every_page(), key=lambda found: order(found[1].section)):
        for form in page.forms:
            if form.family != family:
                continue
            known = list(with_options(form))
            refused = [op for op in known if not covers(op)]
            if refused:
                lines.append(f"| {page.section} | `{form.syntax}` | {_which(form, refused, known)} |")
    return lines


def with_options(form: Form) -> Iterator[isa.Opcode]:
    """Opcodes of a form: as `opcodes`, and each value of each optional slot once, with required ones that allow it."""
    yield from opcodes(form)
    for at, element in enumerate(form.elements):
        for value in element.values if element.optional else ():
            yield from islice(_with(form, at, value), 1)


def _with(form: Form, at: int, value: str) -> Iterator[isa.Opcode]:
    """Opcodes with a value in one slot and none in the other optional ones."""
    kept = [n for n, one in enumerate(form.elements) if n == at or not one.optional]
    for varied in kept:
        for other in form.elements[varied].values:
            chosen = {n: form.elements[n].values[0] for n in kept} | {varied: other} | {at: value}
            op = isa.declared(".".join([form.family, *(chosen[n] for n in kept)]))
            if op is not None:
                yield op


def _which(form: Form, refused: list[isa.Opcode], known: list[isa.Opcode]) -> str:
    """Whole, or the modifiers without which it runs."""
    if len(refused) == len(known):
        return "whole"
    taken = {atom for op in known if op not in refused for atom in op.atoms}
    alone = sorted({atom for op in refused for atom in op.atoms} - taken)
    return "with " + ", ".join(f"`.{atom}`" for atom in alone) if alone else "in some combinations"
