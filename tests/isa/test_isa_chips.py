"""The table of chips, and the sets of targets that declarations name."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

from ptxtools.isa import targets
from ptxtools.isa.chips import CHIPS, TARGET_SETS
from ptxtools.isa.errors import TableError
from ptxtools.isa.index import CHAPTERS
from ptxtools.isa.notation import Page
from ptxtools.isa.opcode import import_module
from ptxtools.semantics.generations import GENERATIONS, generation_of


def test_every_target_has_a_chip() -> None:
    for name in targets.FIRST_VERSION:
        chip = targets.chip_of(name)
        assert name.startswith(f"sm_{chip.number}")
        assert targets.chip_of(name.replace("sm_", "compute_")) is chip


@pytest.mark.parametrize("name", ["", "sm_", "sm_71", "sm_75a", "sm_130", "gfx90", "hopper"])
def test_an_unknown_chip_is_an_error(name: str) -> None:
    for ask in (targets.chip_of, generation_of):
        with pytest.raises(ValueError, match="unknown target"):
            ask(name)


def test_families_are_of_known_chips() -> None:
    for chip in CHIPS.values():
        assert (chip.family is not None) == bool(chip.members)
        assert set(chip.members) <= set(CHIPS)
        assert not chip.members or chip.number in chip.members
        assert chip.same in (0, *CHIPS)
        assert not chip.family or chip.own


def test_generations_are_architectures() -> None:
    assert set(GENERATIONS) <= {chip.architecture for chip in CHIPS.values()}
    assert [generation_of(name) for name in ("sm_13", "sm_62", "sm_70", "sm_90a")] == [None, None, "volta", "hopper"]


def test_sets_name_known_targets_and_are_used() -> None:
    texts = "".join(import_module(f"ptxtools.isa.{name}").PAGES for name in {n for c in CHAPTERS.values() for n in c})
    for name, members in TARGET_SETS.items():
        assert set(members) <= set(targets.FIRST_VERSION)
        assert len(set(members)) == len(members) > 1
        assert re.search(rf"^ *needs .*\b{name}(, |$)", texts, re.MULTILINE), name
    assert len(set(TARGET_SETS.values())) == len(TARGET_SETS)


def page_of(needs: str) -> Page:
    chapter = ModuleType("chapter")
    chapter.PAGES = ""  # type: ignore[attr-defined]
    return Page("1.1", ("foo",), f"    foo;\n    needs => {needs}\n", chapter)


def test_a_set_stands_for_its_targets() -> None:
    (clause,) = page_of("ptx 8.0, sm_90a, blackwell").needs
    assert (clause.ptx, clause.targets) == ((8, 0), ("sm_90a", *TARGET_SETS["blackwell"]))


def test_an_unknown_set_is_refused() -> None:
    with pytest.raises(TableError, match="requirement 'whitewell'"):
        _ = page_of("ptx 8.0, whitewell").needs
