"""`--requirements`: lowest version and targets, and the lines that force them."""

from pathlib import Path

import pytest

from ptxtools.check import check
from ptxtools.check.availability import Demand, lowest_targets, requirement
from ptxtools.isa.targets import FIRST_VERSION, VERSIONS, provides
from ptxtools.linter import lint
from ptxtools.linter.requirements import remaining_errors, requirements
from ptxtools.syntax import parse
from tests.rows import rows

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
    ([((7, 8), ("sm_90", "sm_89"), (("sm_89", (8, 1)),))], (0, 0), "7.8", ("sm_90",)),
    ([((7, 8), ("sm_90", "sm_89"), (("sm_89", (8, 1)),))], (8, 1), "7.8", ("sm_89",)),
    ([], (0, 0), "1.0", ("sm_10",)),
])  # fmt: skip
def test_requirement(demands, declared, ptx, targets):
    found = requirement(tuple(Demand(*demand) for demand in demands), declared)
    assert (found.ptx, found.targets) == (ptx, targets)


def test_families_stand_for_their_members():
    assert lowest_targets(["sm_100f", "sm_100a", "sm_103a", "sm_103f"]) == ("sm_100f",)
    assert lowest_targets(["sm_90", "sm_90a", "sm_100"]) == ("sm_90",)
    assert lowest_targets(["sm_90a"]) == ("sm_90a",)


# --- what forces a version or a target --------------------------------------------------------------------------------

BODY = ".entry k()\n{{\n.reg .b16 h; .reg .b32 r; .reg .b64 d; .reg .pred p; .reg .f32 f;\n{}\nret;\n}}\n"
DEBUG = ".section .debug_info\n{{\n{}\n}}\n"


def needs_of(top="", body="", target="sm_100a", version="9.0", headers=".address_size 64\n"):
    text = f".version {version}\n.target {target}\n{headers}{top}\n{BODY.format(body)}"
    result = parse(text, "a.ptx")
    assert not result.diagnostics
    found = requirements(result.module, "a.ptx")
    assert remaining_errors(result.module, found) == []
    return found


#: What stands at module level, the lowest version and targets, and the line that forces them; ptxas 13.0 agrees.
MODULE_LEVEL = [
    (".weak .global .u32 a;", "3.1", ("sm_10",)),
    (".common .global .u32 a;", "5.0", ("sm_20",)),
    (".global .u32 a; .global .u64 b = generic(a);", "3.1", ("sm_10",)),
    (".global .u32 a; .global .u8 b = 0xFF(a);", "7.1", ("sm_10",)),
    (".global .attribute(.managed) .u32 a;", "4.0", ("sm_30",)),
    (".global .attribute(.unified(1,2)) .u32 a;", "8.0", ("sm_90",)),
    (".func .attribute(.unified(1,2)) f() { ret; }", "8.0", ("sm_90",)),
    (".func f() { ret; } .global .u64 a = f;", "2.3", ("sm_20",)),
    (".entry e() { ret; } .global .u64 a = e;", "3.1", ("sm_35",)),
    (".func f(.param .b32 a) { ret; }", "2.3", ("sm_20",)),
    (".func f(.param .b8 a[]) { ret; }", "6.0", ("sm_30",)),
    (".func f() .noreturn { trap; }", "6.4", ("sm_30",)),
    (".visible .func f() { ret; } .visible .func g(); .alias g, f;", "6.3", ("sm_30",)),
    (".entry e(.param .b8 a[4352]) { ret; }", "2.3", ("sm_20",)),
    (".entry e(.param .b8 a[4353]) { ret; }", "8.1", ("sm_70",)),
    (".entry e() .blocksareclusters .reqntid 32 .reqnctapercluster 2 { ret; }", "9.0", ("sm_90",)),
    (".entry e() .minperctamemory 64 { ret; }", "9.4", ("sm_80",)),
    (".func f() { .reg .b32 r; mov.u32 r, %perctamemorysize; ret; }", "9.4", ("sm_80",)),
    (".entry e() .language 1 { ret; }", "9.2", ("sm_10",)),
    (".nv_intermediate_source_section { }", "9.4", ("sm_10",)),
    ('.file 1 "a.c", 123, 456', "3.2", ("sm_10",)),
    (DEBUG.format(".b32 -1"), "7.5", ("sm_10",)),
    (DEBUG.format("x:\n.b8 0"), "7.0", ("sm_10",)),
    (DEBUG.format("x:\ny:\n.b32 x-y"), "7.5", ("sm_10",)),
    (DEBUG.format(".b32 .debug_str+4"), "3.2", ("sm_10",)),
    (DEBUG.format(".b16 1"), "6.0", ("sm_10",)),
]

STATEMENTS = [
    ('.pragma "used_bytes_mask 0xf";', "8.3", ("sm_50",)),
    ('.pragma "enable_smem_spilling";', "8.7", ("sm_75",)),
    ('.pragma "frequency 3";', "9.0", ("sm_10",)),
    (".loc_intermediate 1 1 1", "9.4", ("sm_10",)),
    ("mov.u32 r, %laneid;", "2.3", ("sm_10",)),
    ("mov.u32 r, %lanemask_lt;", "2.3", ("sm_20",)),
    ("mov.u32 r, %aggr_smem_size;", "8.1", ("sm_90",)),
    ("mov.u64 d, %current_graph_exec;", "8.0", ("sm_50",)),
    ("T: .branchtargets L; brx.idx r, T; L:", "6.0", ("sm_30",)),
    ("T: .callprototype _ (); call d, T;", "2.3", ("sm_20",)),
    ("tex.1d.v4.f32.f32 {f, f, f, f}, [d, {f}];", "3.1", ("sm_20",)),
    ("suld.b.1d.b32.trap r, [d, {r}];", "3.1", ("sm_20",)),
    ("txq.width.b32 r, [d];", "3.1", ("sm_20",)),
    ("mov.u64 d, k;", "3.1", ("sm_35",)),
    ("cvt.rn.f16x2.e4m3x2 r, h;", "7.8", ("sm_90",)),
    (".reg .f16x2 x;", "4.2", ("sm_53",)),
    ("elect.sync r|p, -1;", "8.0", ("sm_90",)),
    ("wgmma.fence.sync.aligned;", "8.0", ("sm_90a",)),
    ("setmaxnreg.inc.sync.aligned.u32 64;", "8.0", ("sm_90a",)),
]


@rows(("text", "ptx", "targets"), MODULE_LEVEL)
def test_module_level(text, ptx, targets):
    found = needs_of(top=text)
    assert found.lowest.ptx == ptx
    assert found.lowest.targets == targets
    if ptx != "2.3":
        assert any(c.ptx == ptx for c in found.because)
    if targets != ("sm_10",):
        assert any(c.targets for c in found.because) and found.because[-1].line < 4 + text.count("\n") + 1


@rows(("text", "ptx", "targets"), STATEMENTS)
def test_statements(text, ptx, targets):
    found = needs_of(body=text)
    assert (found.lowest.ptx, found.lowest.targets) == (ptx, targets)
    if (ptx, targets) != ("2.3", ("sm_10",)):
        assert all(c.line in (3, 8) for c in found.because) and found.because[-1].line == 8


def test_inlined_lines():
    top = '.file 1 "a.c"\n.section .debug_str { .b8 0 }'
    found = needs_of(top=top, body=".loc 1 1 1\n.loc 1 2 3, function_name .debug_str, inlined_at 1 1 1")
    assert found.lowest.ptx == "7.0" and found.because[-1].line == 10


def test_target_options():
    found = needs_of(top=DEBUG.format(".b8 0"), target="sm_20, debug", headers="")
    assert found.lowest.ptx == "3.0" and found.because[0].text == ".target sm_20, debug"


def test_every_line_is_named():
    found = needs_of(body="redux.sync.add.s32 r, r, -1;\nadd.s32 r, r, 1;\n" * 6)
    assert [c.line for c in found.because] == [8, 10, 12, 14, 16, 18]
    assert "  line 8 and 5 similar ones: redux.sync.add.s32 r, r, -1;  (PTX 7.0, sm_80 or later)" in found.to_text()


# --- what was removed -------------------------------------------------------------------------------------------------


def test_removed_for_some_targets():
    found = needs_of(body="vote.ballot.b32 r, p;\nvote.ballot.b32 r, p;", target="sm_60")
    assert (found.lowest.ptx, found.lowest.targets) == ("2.3", ("sm_20",))
    assert [(c.line, c.ptx, c.targets) for c in found.removed] == [(8, "6.4", ("sm_70",)), (9, "6.4", ("sm_70",))]
    assert found.to_json()["removed"][0] == {
        "line": 8, "text": "vote.ballot.b32 r, p;", "ptx": "6.4", "targets": ["sm_70"],
    }  # fmt: skip
    first, *rest = found.to_text().split("\n")
    assert first == "a.ptx: needs PTX 2.3, sm_20 or later, not from PTX 6.4 on for sm_70 or later (declares 9.0, sm_60)"
    assert rest[-1] == "  lines 8 and 9: vote.ballot.b32 r, p;  (not from PTX 6.4 on for sm_70 or later)"


def test_removed_in_a_version():
    found = needs_of(top=".tex .u32 t;", headers="", version="1.4", target="sm_10")
    assert (found.lowest.ptx, found.lowest.targets) == ("1.0", ("sm_10",))
    assert [(c.ptx, c.targets) for c in found.removed] == [("1.5", ())]
    assert "not from PTX 1.5 on" in found.to_text()


@pytest.mark.parametrize(("headers", "target", "body", "gone"), [
    (".address_size 32\n", "sm_80", "", "sm_90"),
    (".address_size 64\n", "sm_80", "ld.global.u32 r, [r];", "sm_90"),
    (".address_size 64\n", "sm_80", "cvta.global.u32 r, r;", "sm_90"),
    (".address_size 64\n", "sm_10, map_f64_to_f32", "", "sm_13"),
])  # fmt: skip
def test_removed_with_a_target(headers, target, body, gone):
    found = needs_of(headers=headers, target=target, body=body)
    gone_since = [("8.0", ())] if gone == "sm_90" else []
    assert sorted((c.ptx or "", c.targets) for c in found.removed) == [("", (gone,)), *gone_since]


def test_a_removal_bounds_the_targets():
    """What needs PTX 8.3 and what PTX 6.4 removed from sm_70 leave sm_50 to sm_62."""
    found = needs_of(body='vote.ballot.b32 r, p;\n.pragma "used_bytes_mask 1";\nld.global.u32 r, [d];', target="sm_60")
    assert (found.lowest.ptx, found.lowest.targets) == ("8.3", ("sm_50",))


def test_no_target_at_all():
    text = f".version 8.0\n.target sm_80\n.address_size 64\n{BODY.format('vote.ballot.b32 r, p; elect.sync r|p, -1;')}"
    found = requirements(parse(text, "a.ptx").module, "a.ptx")
    assert (found.lowest.ptx, found.lowest.targets) == ("8.0", ())
    assert "no known target provides all of it" in found.to_text()
    assert [c.targets for c in found.because] == [("sm_90",)] and [c.targets for c in found.removed] == [("sm_70",)]


def test_remaining_errors_are_those_that_no_header_mends():
    text = ".version 7.0\n.target sm_75\n.address_size 64\n" + BODY.format("elect.sync r|p, -1; add.s32 r, r;")
    module = parse(text, "a.ptx").module
    assert [d.code for d in remaining_errors(module, requirements(module, "a.ptx"))] == ["PTX220"]


ROOT = Path(__file__).resolve().parents[2]


@rows(
    "path",
    # `everything.ptx` is kept for old containers: it is inlined at a place that no .loc names.
    [p for p in sorted((ROOT / "testdata").rglob("*.ptx"))[::4] if p.name != "everything.ptx"],
    ids=lambda p: f"{p.parent.name}/{p.name}",
    share=10,
)
def test_what_is_said_of_real_modules_holds(path):
    """At the lowest version the checker accepts each target; at the version before, and for targets below, none."""
    module = parse(path.read_text("utf-8"), path.name).module
    found = requirements(module, path.name)
    assert remaining_errors(module, found) == []
    lowest = tuple(map(int, found.lowest.ptx.split(".")))
    for target in found.lowest.targets:
        assert check(module, target=target, version=lowest) == []
    earlier = VERSIONS[VERSIONS.index(lowest) - 1]
    for target, first in FIRST_VERSION.items():
        covered = any(provides(target, name) for name in found.lowest.targets)
        if covered and first <= earlier:
            assert check(module, target=target, version=earlier), f"{target} at {earlier}"
        if not covered and first <= lowest:
            assert check(module, target=target, version=lowest), target


def test_the_address_of_a_texture():
    """By its own name (5.3); behind an offset ptxas counts it as any address."""
    found = needs_of(top=".global .texref t;", body="mov.u64 d, t;", target="sm_90", version="9.0")
    assert (found.lowest.ptx, found.lowest.targets) == ("3.1", ("sm_20",))
    assert any(c.ptx == "3.1" and c.text == "mov.u64 d, t;" for c in found.because)


def higher(text, *select):
    found = lint(parse(text, "k.ptx").module, select=select)
    return [(d.line, d.message) for d in found if d.code == "PTX608"]


def test_headers_higher_than_needed_are_reported_to_those_who_ask():
    text = ".version 9.0\n.target sm_90\n.address_size 64\n.entry k() { bar.warp.sync -1; ret; }\n"
    version = (1, "PTX 7.8 is enough for this module and sm_90")
    target = (2, "this module uses nothing that sm_30 does not have")
    assert higher(text) == higher(text, "PTX6") == higher(text, "PTX") == []
    assert higher(text, "all", "PTX608") == higher(text, "ptx608") == [version, target]
    assert higher(text.replace("9.0", "7.8"), "PTX608") == [target]
    assert higher(text.replace("9.0", "6.0").replace("90", "30"), "PTX608") == []
    assert higher(text.replace("\n.target", " // ptx-lint: disable=PTX608\n.target"), "PTX608") == [target]
    # What later versions or targets lack is not recommended.
    old = text.replace("bar.warp.sync -1", ".reg .pred %p; .reg .b32 %r; setp.eq.u32 %p, 1, 1; vote.ballot.b32 %r, %p")
    assert higher(old.replace("9.0", "6.3").replace("90", "30"), "PTX608") == [
        (1, "PTX 3.0 is enough for this module and sm_30"),
        (2, "this module uses nothing that sm_20 does not have"),
    ]
    assert higher(text.replace("9.0", "5.0"), "PTX608") == []  # it is too low: that is an error of its own
    assert lint(parse(text, "k.ptx").module, target="sm_80", select=["PTX608"]) == []
