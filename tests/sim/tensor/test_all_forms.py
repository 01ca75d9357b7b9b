"""No form of 9.7.14 to 9.7.16 lacks semantics: every opcode that the tables make is lowered, and something runs it, or
`tests/semantics/refused.py` lists it and it is refused by name.

Slots with many values (wgmma's sizes) take the ends and one between. What is found missing is printed, and is an error.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator

import pytest

from ptxtools import isa
from ptxtools.diagnostics import PtxError
from ptxtools.isa.form import Form
from ptxtools.machine import events
from ptxtools.native.handlers import KINDS
from ptxtools.program.program import Program
from ptxtools.sim import services
from tests import share
from tests.program.harness import lowered
from tests.semantics.refused import is_refused
from tools.conformance.operands import operands, optional_parts, statement

SECTIONS = ("9.7.14", "9.7.15", "9.7.16")
FAMILIES = ("wmma", "mma", "ldmatrix", "stmatrix", "movmatrix", "wgmma", "tcgen05")
TARGETS = ("sm_100a", "sm_90a", "sm_120a", "sm_103a")
#: Orders memory or registers, which are in order here anyway: no operation is left of it.
NOTHING_LEFT = ("wgmma.fence", "tcgen05.wait", "tcgen05.fence")
HEAD = """.version 9.0
.target {}
.address_size 64
.global .align 32 .b32 gv[64];
.shared .align 32 .b32 sv[64];
"""
_MANY, _MOST = 8, 3000 if share.whole else 300
_KINDS = {"%p": "pred", "%b": "b8", "%h": "b16", "%r": "b32", "%rd": "b64", "%q": "b128", "%f": "f32", "%fd": "f64"}


def pages(section: str) -> list[isa.notation.Page]:
    found = [page for family in FAMILIES for page in isa.pages(family)]
    return [page for page in found if page.section.startswith(section + ".")]


def opcodes(form: Form) -> Iterator[str]:
    """Names that the form's slots can spell, optional ones there or not."""
    choices = []
    for element in form.elements:
        values = list(element.values)
        if len(values) > _MANY:
            values = [values[0], values[len(values) // 2], values[-1]]
        choices.append([*([""] if element.optional else []), *values])
    for atoms in itertools.islice(itertools.product(*choices), _MOST):
        yield ".".join([form.family, *(a.removeprefix(".") for a in atoms if a)])


def resolved(form: Form) -> dict[str, isa.Opcode]:
    found = {}
    for text in opcodes(form):
        op = isa.declared(text)
        if op is not None:  # no combination that the manual excludes
            found[op.text] = op
    return found


def target_of(op: isa.Opcode) -> str:
    """One of `TARGETS` that has the opcode, else the first."""
    for name in TARGETS:
        if all(not need.targets or isa.targets.provides_any(name, need.targets) for need in op.requirements):
            return name
    return TARGETS[0]


def program(target: str, statements: list[str]) -> Program:
    files = "\n".join(f".reg .{kind} {name}<300>;" for name, kind in _KINDS.items())
    body = "\n".join(statements)
    return lowered(f"{HEAD.format(target)}.visible .entry k() {{\n{files}\n{body}\nret; }}")


def unserved(found: Program) -> set[str]:
    """Kinds of the program's operations that nothing runs."""
    kinds = {op.kind for block in found.blocks for op in block.ops}
    rare = {block.terminator.op.kind for block in found.blocks if block.terminator.kind == "event"}  # type: ignore[union-attr]
    for kind in rare:
        services.load(kind)
    return {kind for kind in kinds if kind not in KINDS} | {kind for kind in rare if kind not in events.HANDLERS}


def missing(op: isa.Opcode) -> str:
    """What an opcode lacks; empty if nothing."""
    for texts in (operands(op), *optional_parts(op)):
        line = statement(op.text, texts)
        try:
            found = program(target_of(op), [line])
        except PtxError as problem:
            return f"{line}  {problem.diagnostics[0].message}"
        if nothing := unserved(found):
            return f"{line}  nothing runs {', '.join(sorted(nothing))}"
        done = sum(len(block.ops) + (block.terminator.kind == "event") for block in found.blocks)
        if not done and not op.text.startswith(NOTHING_LEFT):
            return f"{line}  is ignored"
    return ""


def not_refused(listed: list[isa.Opcode]) -> list[str]:
    """Those of a dozen of the opcodes, listed as refused, of which the refusal does not say so."""
    some = listed[:: max(1, len(listed) // 12)]
    return [text for text in map(missing, some) if not text.endswith("this form has no simulation")]


@pytest.mark.parametrize("section", SECTIONS)
def test_no_form_lacks_semantics(section: str, capsys: pytest.CaptureFixture[str]) -> None:
    without, empty, count, listed = [], [], 0, []
    for page in pages(section):
        for form in page.forms:
            if form.family not in FAMILIES:
                continue
            found = resolved(form)
            if not found:
                empty.append(f"{page.section} {form.syntax}")
            listed += [op for op in found.values() if is_refused(op)]
            chosen = [op for op in found.values() if not is_refused(op)]
            some = chosen[:: max(1, len(chosen) // (24 if share.whole else 6))]
            count += len(some)
            without += [text for text in map(missing, some) if text]
    with capsys.disabled():
        sys.stdout.write(f"\n{section}: {count} opcodes, {len(without)} without semantics, {len(listed)} refused\n")
        sys.stdout.writelines(f"    {text}\n" for text in without)
    assert not empty
    assert not without
    assert not not_refused(listed)
    assert count > {"9.7.14": 80, "9.7.15": 30, "9.7.16": 90}[section]


@pytest.mark.parametrize(
    "text", ["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "tcgen05.shift.cta_group::1.down"]
)
def test_what_nothing_runs_is_found(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    op = isa.resolve(text)
    assert missing(op) == ""
    for known in (KINDS, events.HANDLERS):
        monkeypatch.delitem(known, op.name if op.family != "mma" else "mma", raising=False)
    monkeypatch.setattr(services, "load", lambda kind: None)
    assert "nothing runs" in missing(op)
