"""Targets, versions, types, special registers, directives."""

import pytest

from ptxtools.isa import directives, registers, spaces, targets, types
from tests.rows import rows


def test_known_targets_and_their_first_versions() -> None:
    assert {"sm_10", "sm_75", "sm_90a", "sm_100f", "sm_110", "sm_121a"} <= set(targets.FIRST_VERSION)
    for name, version in targets.FIRST_VERSION.items():
        assert version in targets.VERSIONS
        assert targets.Target(name).known
    assert targets.FIRST_VERSION["sm_90a"] == (8, 0)
    assert targets.FIRST_VERSION["sm_103f"] == (8, 8)
    assert targets.NEWEST == (9, 5) and (5, 2) not in targets.VERSIONS


@rows(
    ("have", "want", "answer"),
    [
        ("sm_90", "sm_80", True),
        ("sm_80", "sm_90", False),
        ("sm_90a", "sm_90", True),
        ("sm_90", "sm_90a", False),
        ("sm_100a", "sm_90a", False),
        ("sm_100a", "sm_100f", True),
        ("sm_103a", "sm_100f", True),
        ("sm_103f", "sm_100f", True),
        ("sm_100f", "sm_103f", False),
        ("sm_103", "sm_100f", False),
        ("sm_100f", "sm_100a", False),
        ("sm_121f", "sm_120f", True),
        ("sm_120a", "sm_100f", False),
        ("sm_110a", "sm_101a", True),
        ("sm_101a", "sm_110f", True),
        ("sm_101", "sm_110", True),
    ],
)
def test_provides(have: str, want: str, answer: bool) -> None:
    assert targets.provides(have, want) is answer


@pytest.mark.parametrize("name", ["sm_", "90", "sm_90af", "sm_x", "compute_90", "", "sm_90b"])
def test_what_is_no_target(name: str) -> None:
    with pytest.raises(ValueError, match="not a target"):
        targets.Target(name)


def test_target_texts() -> None:
    assert targets.describe(("sm_90",)) == "sm_90 or higher"
    assert targets.describe(("sm_90a", "sm_100f")) == "sm_90a or sm_100f or higher in its family"


@rows(
    ("instruction", "register", "width", "answer"),
    [
        ("s32", "u32", "exact", True),
        ("s32", "b32", "exact", True),
        ("s32", "f32", "exact", False),
        ("f32", "b32", "exact", True),
        ("f32", "s32", "exact", False),
        ("b32", "f32", "exact", True),
        ("b32", "b64", "exact", False),
        ("u8", "u32", "wider", True),
        ("u32", "u16", "wider", False),
        ("u32", "f64", "wider", False),
        ("b32", "f64", "wider", True),
        ("f32", "f64", "wider", False),
        ("f32", "b64", "wider", True),
        ("pred", "pred", "exact", True),
        ("pred", "b32", "exact", False),
        ("bf16", "b16", "exact", True),
        ("bf16", "u16", "exact", False),
        ("bf16", "b32", "wider", False),
        ("f16", "u16", "exact", False),
        ("u16x2", "b32", "exact", True),
        ("u16x2", "u32", "exact", False),
        ("f16x2", "f16x2", "exact", True),
        ("e4m3x2", "b16", "exact", True),
        ("tf32", "f32", "exact", False),
        ("f32x2", "b64", "exact", True),
        ("f32", "s32", "bits", True),
    ],
)
def test_registers_for_types(instruction: str, register: str, width: str, answer: bool) -> None:
    """9.4, as ptxas judges it."""
    assert types.accepts(instruction, register, width) is answer


def test_type_facts() -> None:
    assert types.TYPES["u8"].bytes == 1 and types.TYPES["b128"].bytes == 16
    assert (types.TYPES["f16x2"].lanes, types.TYPES["f16x2"].element) == (2, "f16")
    assert types.wide_type("s16") == "s32" and types.bits_type("f64") == "b64"
    assert types.TYPES["s16x2"].signed and not types.TYPES["u16x2"].signed
    assert spaces.base("shared::cluster") == "shared" and not spaces.is_space("gpu")


def test_special_registers() -> None:
    found = registers.lookup("%tid.x")
    assert found and (found.type, found.component, found.register.section) == ("u32", "x", "10.1")
    assert registers.lookup("%tid.q") is None and registers.lookup("%laneid.x") is None
    assert registers.lookup("%r1") is None
    gridid = registers.lookup("%gridid")
    assert gridid and gridid.type == "u64"
    assert registers.SPECIAL["%pm4"].ptx == (3, 0) and registers.SPECIAL["%pm3"].ptx == (1, 3)
    assert registers.SPECIAL["%lanemask_gt"].section == "10.22"
    assert {r.section for r in registers.SPECIAL.values()} == {f"10.{n}" for n in range(1, 36)}
    for register in registers.SPECIAL.values():
        assert register.type in types.TYPES and register.ptx in targets.VERSIONS
        assert register.target in targets.FIRST_VERSION


def test_directives() -> None:
    for name, info in directives.DIRECTIVES.items():
        assert name[0] in ".@" and info.name == name and info.places
        assert info.ptx in targets.VERSIONS and info.target in targets.FIRST_VERSION
        assert set(info.excludes) | set(info.wants) <= set(directives.DIRECTIVES)
    assert directives.DIRECTIVES[".reqnctapercluster"].target == "sm_90"
    assert directives.DIRECTIVES[".maxntid"].counts == (1, 3)
    assert "statement" in directives.DIRECTIVES[".pragma"].places
