"""The list of bench/scalar.py: every declared scalar form is measured beside C, or is of a class of which one is."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import ptxtools
from ptxtools import isa
from ptxtools.isa.targets import FIRST_VERSION, provides_any
from ptxtools.sim.limits import LIMITS
from tests.semantics.harness import all_opcodes

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def forms(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(BENCH))
    import scalar_forms

    yield scalar_forms
    del sys.modules["scalar_forms"]


def test_every_form_has_c_beside_it(forms: ModuleType) -> None:
    """Except forms that only sm_107 has, which are not measured."""
    unmeasured = [op.text for op in all_opcodes() if forms.class_of(op.text) is None]
    nowhere = [text for text in unmeasured if forms.device_of(text) is None]
    print(f"{len(nowhere)} forms of sm_107 alone:", ", ".join(nowhere))
    assert sorted(set(unmeasured) - set(nowhere)) == []
    simulated = [name for name in FIRST_VERSION if name.rstrip("af") in LIMITS and "107" not in name]
    needs = [[need.targets for need in isa.resolve(text).requirements] for text in nowhere]
    assert not [n for n in needs if any(all(provides_any(name, t) for t in n) for name in simulated)]


def test_measured_forms_are_declared_and_have_a_target(forms: ModuleType) -> None:
    known = {op.text for op in all_opcodes()}
    measured = [form for group in forms.GROUPS.values() for form in group]
    assert [form.text for form in measured if isa.resolve(form.opcode).text not in known] == []
    assert [form.text for form in measured if not form.c or form.target not in (3000, 1500, 300, 0, -1)] == []


def test_measured_kernels_are_valid(forms: ModuleType) -> None:
    scalar = importlib.import_module("scalar")
    for form in (form for group in forms.GROUPS.values() for form in group):
        ptxtools.loads(scalar.kernel_text(form, 1), form.opcode)
    del sys.modules["scalar"], sys.modules["scalar_c"]
