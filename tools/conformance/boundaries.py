"""Probes at every version: statements of all kinds at the boundary targets of each, legal and not."""

from __future__ import annotations

import random
from collections.abc import Iterator

from ptxtools import isa
from ptxtools.isa.index import CHAPTERS
from ptxtools.isa.targets import FIRST_VERSION, VERSIONS, Version, version_text

from .instructions import Probe, _base, _heavy, _variants
from .operands import operands, optional_parts, statement
from .setting import LINE

#: Statements that are tried at each pair of version and target.
_EACH = 165
#: Variants that are made of each form.
_OF_FORM = 5
#: ptxas takes 5.1 for 6.0; sm_88 appears at other versions in other releases; sm_82 is none of its targets.
_SKIPPED: Version = (5, 1)
_STRANGE = ("sm_82", "sm_88")


def probes() -> Iterator[Probe]:
    """All of them, in a fixed order; some may repeat."""
    pool = list(dict.fromkeys(_statements()))
    for version in VERSIONS:
        for target in targets(version) if version != _SKIPPED else ():
            setting = f"{version_text(version)}/{target}"
            for text in random.Random(setting).sample(pool, _EACH):
                yield Probe(setting, LINE, "boundary", text)


def targets(version: Version) -> list[str]:
    """Those at the boundaries of what a version knows: the oldest, the newest of each kind, and what it has added."""
    known = [t for t in FIRST_VERSION if FIRST_VERSION[t] <= version and t not in _STRANGE]
    known = [t for t in known if not (t.startswith("sm_101") and version >= (9, 0))]  # renamed sm_110
    chosen = [known[0], *(t for t in known if FIRST_VERSION[t] == version)]
    for suffix in ("", "a", "f"):
        alike = [t for t in known if t.lstrip("sm_0123456789") == suffix]
        chosen += alike[-2:]
    chosen += [t for t in ("sm_13", "sm_20", "sm_53", "sm_70", "sm_80", "sm_90") if t in known]
    return list(dict.fromkeys(chosen))


def _statements() -> Iterator[str]:
    """Of each form, some opcodes with fitting operands, and with optional ones."""
    for family in sorted(CHAPTERS):
        rng = random.Random(f"boundaries {family}")
        for form in isa.forms(family):
            base = _base(form, rng)
            if base is None:
                continue
            variants = list(_variants(form, base[0], rng))
            for variant in rng.sample(variants, min(_OF_FORM, len(variants))):
                try:
                    op = isa.resolve(".".join([family, *variant]))
                except isa.OpcodeError:
                    continue
                if not _heavy(op):
                    yield statement(op.text, operands(op))
                    yield from (statement(op.text, texts) for texts in list(optional_parts(op))[:1])
