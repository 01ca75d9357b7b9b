"""Probes of instructions: modifiers, operands, guards, and the versions and targets at which they begin."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ptxtools import isa
from ptxtools.check.availability import demands_of, requirement
from ptxtools.isa.form import Form
from ptxtools.isa.index import CHAPTERS
from ptxtools.isa.targets import FIRST_VERSION, VERSIONS, provides_any, version_text

from . import elements
from .operands import bounds, operands, optional_parts, replacements, statement
from .setting import INDEPENDENT, KNOWN, LINE, NEWEST, where

#: Where a probe is asked when it does not say: the first that provides what it needs.
_HOMES = ("9.0/sm_100a", "9.0/sm_90a", "9.0/sm_120a", "9.0/sm_110a", "9.0/sm_103a", "9.0/sm_62", "1.3/sm_13")
#: Modifiers that belong somewhere, and mostly not where they are tried.
FOREIGN = (
    "sat",
    "ftz",
    "rn",
    "approx",
    "wide",
    "hi",
    "global",
    "shared::cta",
    "v2",
    "u32",
    "f16",
    "b64",
    "sync",
    "aligned",
    "volatile",
    "relaxed",
    "gpu",
    "L2::cache_hint",
    "foo",
    "cc",
    "eq",
    "uni",
    "relu",
    "noftz",
)
#: Instructions on opaque variables.
_OPAQUE = ("tex", "tld4", "txq", "suld", "sust", "sured", "suq")
#: Share of the opcodes on them that are tried with all kinds of names.
_SAMPLE = 0.2
#: Wide accumulators exhaust the register file of a module with many of them.
_WIDEST = 64


class Probe(NamedTuple):
    setting: str
    place: str
    topic: str
    text: str


def probes() -> Iterator[Probe]:
    """All of them, in a fixed order; some may repeat."""
    rng = random.Random(1)
    for family in sorted(CHAPTERS):
        for page in isa.pages(family):
            for number, form in enumerate(f for f in page.forms if f.family == family):
                yield from _form(form, rng, thorough=number == 0)
    tried: set[tuple[object, ...]] = set()
    for family in sorted(CHAPTERS):
        yield from _vectors(family, random.Random(2), tried)


def _form(form: Form, rng: random.Random, *, thorough: bool) -> Iterator[Probe]:
    base = _base(form, rng)
    if base is None:
        return
    atoms, op = base
    home = _home(op)
    said: set[str] = set()
    for variant in _variants(form, atoms, rng):
        name = ".".join([form.family, *variant])
        try:
            other = isa.resolve(name)
        except isa.OpcodeError:
            yield Probe(home, LINE, "modifier", statement(name, operands(op)))
            continue
        if other.text in said or _heavy(other):
            continue
        said.add(other.text)
        yield Probe(_home(other), LINE, "modifier", statement(name, operands(other)))
        yield from _availability(other)
    for name in _spoilt(form.family, atoms, rng):
        yield Probe(home, LINE, "spoilt", statement(name, operands(op)))
    yield from _operands(op, home, rng, thorough)
    yield from _guards(op, home)


def _vectors(family: str, rng: random.Random, tried: set[tuple[object, ...]]) -> Iterator[Probe]:
    """Elements of vectors; both texture modes; what optional operands need. Their own random numbers, so that the
    probes before them stay what they are."""
    said: set[str] = set()
    for form in isa.forms(family):
        base = _base(form, rng)
        for variant in _variants(form, base[0], rng) if base else ():
            try:
                op = isa.resolve(".".join([family, *variant]))
            except isa.OpcodeError:
                continue
            if op.text in said or _heavy(op):
                continue
            said.add(op.text)
            home = _home(op)
            for shape in op.shapes:
                sampled = family in ("tex", "tld4") and len(shape[1].parts) > 1
                for text in elements.probes(op, shape, rng, tried):
                    yield Probe(home + INDEPENDENT * sampled, LINE, "element", text)
                if family in _OPAQUE and rng.random() < _SAMPLE:
                    yield from _texture_modes(op, shape, home)
            for texts in optional_parts(op):
                yield from _boundaries(op, statement(op.text, texts), (*op.requirements, *op.operand_requirements))
            if family in _OPAQUE:
                yield from _boundaries(op, statement(op.text, operands(op)), op.requirements, INDEPENDENT)


def _texture_modes(op: isa.Opcode, shape: tuple[isa.OperandSpec, ...], home: str) -> Iterator[Probe]:
    """What stands for a texture, a sampler and a surface, in both modes (5.3)."""
    line = statement(op.text, operands(op, shape))
    for setting in (home, home + INDEPENDENT):
        for name in ("tx", "sm", "sf", "%rd1", "%ul1", "%r1", "gv", "0", "undeclared", "kp", "lv", "%p1"):
            yield Probe(setting, LINE, "texture", re.sub(r"\[(tx|sf)", f"[{name}", line))
            if "sm, " in line:
                yield Probe(setting, LINE, "texture", line.replace("sm, ", f"{name}, "))
            elif "[tx, " in line:
                yield Probe(setting, LINE, "texture", line.replace("[tx, ", f"[tx, {name}, "))


def _base(form: Form, rng: random.Random) -> tuple[list[str], isa.Opcode] | None:
    """Modifiers of an opcode of this form, as few as possible."""
    choices = [e for e in form.elements if not e.optional]
    for attempt in range(400):
        atoms = [e.values[0] if attempt == 0 else rng.choice(e.values) for e in choices]
        try:
            op = isa.resolve(".".join([form.family, *atoms]))
        except isa.OpcodeError:
            continue
        if not _heavy(op):
            return atoms, op
    return None


def _heavy(op: isa.Opcode) -> bool:
    return op.family == "wgmma" and any(spec.vector > _WIDEST for shape in op.shapes for spec in shape)


def _variants(form: Form, atoms: list[str], rng: random.Random) -> Iterator[list[str]]:
    """Each value in each slot, with few and with random other modifiers."""
    yield list(atoms)
    for at, element in enumerate(form.elements):
        values = element.values if len(element.values) <= 24 else rng.sample(element.values, 24)
        for value in values:
            yield _with(form, atoms, at, value, rng, 0.0)
            yield _with(form, atoms, at, value, rng, 0.35)
    for _ in range(6):
        yield _with(form, atoms, -1, "", rng, 0.5)


def _with(form: Form, atoms: list[str], at: int, value: str, rng: random.Random, more: float) -> list[str]:
    """The form's modifiers with one slot given; others as in `atoms`, or random with some chance."""
    out: list[str] = []
    given = iter(atoms)
    for index, element in enumerate(form.elements):
        usual = None if element.optional else next(given)
        if index == at:
            out.append(value)
        elif element.optional:
            if rng.random() < more:
                out.append(rng.choice(element.values))
        else:
            out.append(rng.choice(element.values) if rng.random() < more else str(usual))
    return out


def _spoilt(family: str, atoms: list[str], rng: random.Random) -> Iterator[str]:
    """A modifier missing, doubled, out of order, or foreign."""
    for at in range(len(atoms)):
        yield ".".join([family, *atoms[:at], *atoms[at + 1 :]])
        yield ".".join([family, *atoms[: at + 1], *atoms[at:]])
        if at:
            yield ".".join([family, atoms[at], *atoms[:at], *atoms[at + 1 :]])
            yield ".".join([family, *atoms[: at - 1], atoms[at], atoms[at - 1], *atoms[at + 1 :]])
    yield ".".join([family, *reversed(atoms)])
    for atom in rng.sample(FOREIGN, 6):
        if atom not in atoms:
            place = rng.randrange(len(atoms) + 1)
            yield ".".join([family, *atoms[:place], atom, *atoms[place:]])


def _operands(op: isa.Opcode, home: str, rng: random.Random, thorough: bool) -> Iterator[Probe]:
    usual = operands(op)
    specs = [spec for spec in op.operands if not spec.optional]
    for shape in op.shapes[1:]:
        yield Probe(home, LINE, "operands", statement(op.text, operands(op, shape)))
    for texts in optional_parts(op):
        yield Probe(home, LINE, "operands", statement(op.text, texts))
    if usual:
        yield Probe(home, LINE, "operands", statement(op.text, usual[:-1]))
        yield Probe(home, LINE, "operands", statement(op.text, usual[1:]))
        yield Probe(home, LINE, "operands", statement(op.text, [usual[-1], *usual[:-1]]))
    yield Probe(home, LINE, "operands", statement(op.text, [*usual, "%r1"]))
    yield Probe(home, LINE, "operands", statement(op.text, [*usual, "%r1", "%r2", "%r3", "1"]))
    for at, spec in enumerate(specs):
        tried = list(dict.fromkeys(replacements(spec)))
        edges = set(bounds(spec))
        if not thorough and len(tried) > 16:
            tried = [text for text in tried if text in edges] + rng.sample(tried, 16)
        for text in dict.fromkeys(tried):
            yield Probe(home, LINE, "operand", statement(op.text, [*usual[:at], text, *usual[at + 1 :]]))


def _guards(op: isa.Opcode, home: str) -> Iterator[Probe]:
    line = statement(op.text, operands(op))
    for guard in ("@%p1", "@!%p1", "@%r1", "@undeclared", "@!%is_explicit_cluster", "@-%p1", "@1"):
        yield Probe(home, LINE, "guard", f"{guard} {line}")


# --- versions and targets ---------------------------------------------------------------------------------------------


def _available(op: isa.Opcode, version: tuple[int, int], target: str) -> bool:
    if version < FIRST_VERSION[target]:
        return False
    if any(version < need.ptx or not provides_any(target, need.targets) for need in op.requirements):
        return False
    return not any(version >= gone.ptx and provides_any(target, gone.targets) for gone in op.removals)


def _home(op: isa.Opcode) -> str:
    for home in _HOMES:
        version, _, target = home.partition("/")
        major, _, minor = version.partition(".")
        if _available(op, (int(major), int(minor)), target):
            return home
    return _HOMES[0]


def _availability(op: isa.Opcode) -> Iterator[Probe]:
    """At the lowest version and target, just below either, and what ptxas names when both are old."""
    yield from _boundaries(op, statement(op.text, operands(op)), op.requirements)


def _boundaries(op: isa.Opcode, line: str, needs: Iterable[isa.Need], options: str = "") -> Iterator[Probe]:
    demands = demands_of(needs)
    lowest = requirement(demands, (1, 0))
    if not lowest.targets:
        return
    major, _, minor = lowest.ptx.partition(".")
    version, target = (int(major), int(minor)), lowest.targets[0]
    if version > NEWEST:
        return
    settings = [f"{lowest.ptx}/{target}"]
    below = [v for v in VERSIONS if v < version and v != (5, 1)]
    if below:
        known = [t for t in FIRST_VERSION if FIRST_VERSION[t] <= below[-1] and t != "sm_82"]
        settings.append(f"{version_text(below[-1])}/{known[-1]}")
    settings += [f"9.0/{name}" for name in requirement(demands, NEWEST).targets]
    refused = [t for t in KNOWN if not _available(op, NEWEST, t)]
    if refused:
        settings.append(f"9.0/{refused[-1]}")
        settings += [f"9.0/{t}" for t in refused if t[-1] not in "af"][-1:]
    for setting in settings:
        if not options or where(setting)[0] >= (1, 5):
            yield Probe(setting + options, LINE, "availability", line)
    yield Probe("3.0/sm_20" + options, LINE, "requirement", line)
