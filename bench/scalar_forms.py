"""The scalar forms that `scalar.py` measures: one of each class of instructions, the same in C, and what the class is.

They are listed in scalar_forms.txt, in groups: `[name] target`, the target in million lanes a second on one core,
"C/2" for half the speed of C, "-" for none. A line is `instruction | C @ pattern`. The instruction names its operands
d, a, b, c. In C they are values of the C types that belong to the PTX types, `H` is _Float16, bf16 and narrow floats
are uint16_t and uint8_t; it is written in scalar.h and scalar_units.h. A prefix says how the loop goes, where it is not
over single values:

    rz: rm: rp:      in this rounding mode, set outside the loop
    f32x2:           over the floats of pairs (`f32x2 rz:` in a rounding mode)
    f16: bf16:       over sixteen halves at a time, converted to f32 (AVX-512); f16x2: bf16x2: those of pairs

The pattern is a regular expression that says which opcodes this one stands for, itself where there is none: dots are
meant as dots, <dir> is a directed rounding, <is> a comparison, <bool> a boolean operator, <t> the three types of a
video instruction, <second> its secondary operation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ptxtools import isa
from ptxtools.isa.targets import provides_any

LIST = Path(__file__).with_suffix(".txt")

_WORDS = {
    "<dir>": "r[zmp]",
    "<is>": "(eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan|lo|ls|hi|hs)",
    "<bool>": "(and|or|xor)",
    "<t>": "[us]32.[us]32.[us]32",
    "<second>": "(add|min|max)",
}


@dataclass(frozen=True)
class Form:
    """One line; target: million lanes a second, 0 for half the speed of C, -1 for none."""

    text: str
    c: str
    pattern: str
    target: int

    @property
    def opcode(self) -> str:
        return self.text.split()[0]

    @property
    def pattern_text(self) -> str:
        """What the opcodes of the class look like, as a regular expression."""
        pattern = self.pattern or self.opcode
        for word, meaning in _WORDS.items():
            pattern = pattern.replace(word, meaning)
        return re.sub(r"\.(?!\*)", r"\\.", pattern)


_GOALS = {"C/2": 0, "-": -1}


def _read() -> dict[str, list[Form]]:
    groups: dict[str, list[Form]] = {}
    target = 0
    for line in filter(None, map(str.strip, LIST.read_text().splitlines())):
        if line.startswith("["):
            name, _, goal = line[1:].partition("] ")
            forms = groups[name] = []
            target = _GOALS[goal] if goal in _GOALS else int(goal)
            continue
        instruction, _, rest = line.partition(" | ")
        c, _, pattern = rest.partition(" @ ")
        forms.append(Form(instruction.strip(), c.strip(), pattern.strip(), target))
    return groups


GROUPS = _read()

#: What the kernels are written for: the first of them that has the form.
DEVICES = ("sm_100a", "sm_120a")


def device_of(opcode: str) -> str | None:
    """The device that a form is measured on; None for a form of sm_107 alone, which no class has."""
    needs = isa.resolve(opcode).requirements
    return next((name for name in DEVICES if all(provides_any(name, need.targets) for need in needs)), None)


@cache
def _classes() -> tuple[list[Form], dict[str, Form], re.Pattern[str]]:
    """Forms with C beside them; by opcode; and one pattern whose group of the same number matches those of a class."""
    forms = [form for group in GROUPS.values() for form in group if form.c]
    pattern = "|".join(f"(?P<form{number}>{form.pattern_text})" for number, form in enumerate(forms))
    return forms, {form.opcode: form for form in reversed(forms)}, re.compile(pattern)


def class_of(opcode: str) -> Form | None:
    """The form that an opcode is measured by, or as one of; None if there is none."""
    forms, own, pattern = _classes()
    if opcode in own:
        return own[opcode]
    found = pattern.fullmatch(opcode)
    return forms[int(str(found.lastgroup).removeprefix("form"))] if found else None
