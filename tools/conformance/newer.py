"""Probes of PTX 9.1 and later: each is asked of the release of ptxas that came with its version.

Every form that needs such a version: its modifiers at the lowest version and target, one version and some targets
below, and at the newest version; its operands, and what its opcode is with modifiers missing or misplaced.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from ptxtools import isa
from ptxtools.check.availability import demands_of, requirement
from ptxtools.isa.form import Form
from ptxtools.isa.index import CHAPTERS
from ptxtools.isa.targets import FIRST_VERSION, NEWEST, VERSIONS, Version, version_text

from . import setting
from .instructions import Probe, _available, _base, _heavy, _operands, _spoilt, _variants
from .operands import operands, optional_parts, statement
from .setting import LINE

#: Where a form is refused for its target: one of each kind of chip.
_TARGETS = ("sm_80", "sm_90a", "sm_100", "sm_100f", "sm_103a", "sm_107", "sm_107f", "sm_110a", "sm_120a", "sm_121f")


def probes() -> Iterator[Probe]:
    """All of them, in a fixed order; some may repeat."""
    for family in sorted(CHAPTERS):
        rng = random.Random(f"newer {family}")
        for form in isa.forms(family):
            yield from _form(form, rng)


def _form(form: Form, rng: random.Random) -> Iterator[Probe]:
    base = _base(form, rng)
    if base is None:
        return
    said: set[str] = set()
    for variant in _variants(form, base[0], rng):
        try:
            op = isa.resolve(".".join([form.family, *variant]))
        except isa.OpcodeError:
            continue
        if op.text in said or _heavy(op):
            continue
        said.add(op.text)
        if _since(op.requirements) > setting.NEWEST:
            yield from _around(op, statement(op.text, operands(op)), op.requirements)
            if len(said) < 4 or rng.random() < 0.1:
                yield from _inside(op, list(variant), form.family, rng)
        for texts in optional_parts(op):
            needs = (*op.requirements, *op.operand_requirements)
            if _since(needs) > setting.NEWEST:
                yield from _around(op, statement(op.text, texts), needs)


def _since(needs: tuple[isa.Need, ...]) -> Version:
    """The lowest version at which a form that needs all this is there on some target."""
    return _version(requirement(demands_of(needs), (1, 0)).ptx)


def _version(text: str) -> Version:
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def _around(op: isa.Opcode, line: str, needs: tuple[isa.Need, ...]) -> Iterator[Probe]:
    """At the lowest version and its targets, below, and at the newest version."""
    demands = demands_of(needs)
    lowest = requirement(demands, (1, 0))
    version = _version(lowest.ptx)
    places = [(version, target) for target in lowest.targets]
    before = VERSIONS[VERSIONS.index(version) - 1]
    places += [(before, target) for target in lowest.targets[:1]] if before > setting.NEWEST else []
    places += [(NEWEST, target) for target in requirement(demands, NEWEST).targets]
    places += [(at, target) for at in dict.fromkeys((version, NEWEST)) for target in _TARGETS]
    for at, target in dict.fromkeys(places):
        if FIRST_VERSION[target] <= at:
            yield Probe(f"{version_text(at)}/{target}", LINE, "availability", line)


def _inside(op: isa.Opcode, atoms: list[str], family: str, rng: random.Random) -> Iterator[Probe]:
    """Modifiers spoilt, and operands, where the form is there."""
    places = ((version, target) for version in VERSIONS for target in reversed(FIRST_VERSION))
    found = next((place for place in places if _available(op, *place)), None)
    if found is None:
        return  # no target has all of its modifiers
    home = f"{version_text(found[0])}/{found[1]}"
    for name in _spoilt(family, atoms, rng):
        yield Probe(home, LINE, "spoilt", statement(name, operands(op)))
    yield from _operands(op, home, rng, thorough=False)
