"""`--requirements`: lowest version and targets, and the lines that force them."""

import pytest

from ptxtools.check.availability import lowest_targets, requirement
from ptxtools.lint.requirements import requirements
from ptxtools.syntax import parse

HEAD = ".version 9.0\n.target sm_100a\n.address_size 64\n"


def needs(body):
    return requirements(
        parse(f"{HEAD}.entry k()\n{{\n.reg .b32 r; .reg .b64 d;\n{body}\nret;\n}}\n", "a.ptx").module, "a.ptx"
    )


def test_plain_code_needs_little():
    found = needs("add.s32 r, r, 1;")
    assert (found.lowest.ptx, found.lowest.targets) == ("2.3", ("sm_10",))
    assert [c.text for c in found.because] == [".address_size 64"]


def test_the_forcing_lines_are_named():
    found = needs("redux.sync.add.s32 r, r, -1;\nmov.u32 r, %cluster_ctarank;\nadd.s32 r, r, 1;")
    assert (found.lowest.ptx, found.lowest.targets) == ("7.8", ("sm_90",))
    assert [(c.line, c.ptx, c.targets) for c in found.because] == [(8, "7.8", ("sm_90",))]
    assert found.to_json() == {
        "file": "a.ptx",
        "declared": {"ptx": "9.0", "target": "sm_100a"},
        "lowest": {"ptx": "7.8", "targets": ["sm_90"]},
        "because": [{"line": 8, "text": "mov.u32 r, %cluster_ctarank;", "ptx": "7.8", "targets": ["sm_90"]}],
    }


def test_text_form():
    lines = needs("redux.sync.add.s32 r, r, -1;").to_text().split("\n")
    assert lines[0] == "a.ptx: needs PTX 7.0, sm_80 or later (declares 9.0, sm_100a)"
    assert lines[1].startswith("  line 7: redux.sync.add.s32 r, r, -1;")


@pytest.mark.parametrize(("demands", "declared", "ptx", "targets"), [
    ([((7, 0), ("sm_80",))], (0, 0), "7.0", ("sm_80",)),
    ([((1, 0), ("sm_90",))], (0, 0), "7.8", ("sm_90",)),
    ([((8, 0), ("sm_90a",))], (0, 0), "8.0", ("sm_90a",)),
    ([((8, 6), ("sm_100a",)), ((7, 0), ("sm_80",))], (0, 0), "8.6", ("sm_100a",)),
    ([((8, 0), ("sm_90a",)), ((8, 6), ("sm_100a",))], (0, 0), "8.6", ("sm_90a", "sm_100a")),
    ([], (0, 0), "1.0", ("sm_10",)),
])  # fmt: skip
def test_requirement(demands, declared, ptx, targets):
    found = requirement(tuple(demands), declared)
    assert (found.ptx, found.targets) == (ptx, targets)


def test_families_stand_for_their_members():
    assert lowest_targets(["sm_100f", "sm_100a", "sm_103a", "sm_103f"]) == ("sm_100f",)
    assert lowest_targets(["sm_90", "sm_90a", "sm_100"]) == ("sm_90",)
    assert lowest_targets(["sm_90a"]) == ("sm_90a",)
