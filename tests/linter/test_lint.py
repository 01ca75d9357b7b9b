"""The lint engine: selection, suppression, targets, fixes; and silence on what real compilers write."""

import random
import re
from collections import Counter
from pathlib import Path

import pytest

from ptxtools import matching
from ptxtools.diagnostics import Severity
from ptxtools.linter import chosen, findings_of, lint, lint_targets, suppressed
from ptxtools.linter.fixes import apply_fixes, unified_diff
from ptxtools.syntax import parse
from tests.rows import rows
from tests.work import calls

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
DATA = Path(__file__).resolve().parents[2] / "testdata"
MODULES = sorted([*DATA.glob("cases/**/*.ptx"), *DATA.glob("bench/ptx/*.ptx")])

#: What is found in the output of compilers (the folder of the module), and how often; docs/rules.md judges the rules.
FOUND = {
    "tri_fp8up_sm80": {"PTX520": 3},  # undefined values of the compiler
    "cu_bits64_sm75": {"PTX710": 1},  # an unsigned number of 64 bits of which only the low half is used
    "cu_simd_sm75": {"PTX709": 1},  # mul24, as its CUDA source says
    "tri_mm_fp8e4_sm90": {"PTX711": 64},  # stores of single bytes
    "cu_calls_sm75": {"PTX714": 2},  # arrays whose indices are data
    "cu_localarr_sm75": {"PTX714": 1, "PTX716": 3},
    "cu_sha256_sm75": {"PTX714": 1},
    "cu_vm_sm75": {"PTX714": 1},
    "cu_dynshared_sm75": {"PTX715": 2, "PTX716": 3},
    "tri_td_persist_sm100": {"PTX716": 1},
    "cu_cuda_atomic_sm80": {"PTX721": 1},
    "cu_divergent_sm75": {"PTX721": 1},
    "cu_ticket_chain_sm75": {"PTX721": 1},
    "gluon_clc_sm100": {"PTX721": 1},
    "launch-error_cluster_grid": {"PTX722": 1},
    "tri_atomics_f_sm80": {"PTX706": 6, "PTX721": 12},
    "tri_atomics_sm75": {"PTX515": 1, "PTX706": 2, "PTX721": 9},
    "tri_ds_mxfp4_sm100": {"PTX706": 1},
    "tri_ds_mxfp8_sm100": {"PTX706": 1},
    "tri_mm_splitk_sm90": {"PTX721": 8},
    "leakcheck_heap_leak": {"PTX597": 1},  # a bug on purpose
    "racecheck_race": {"PTX515": 1},  # another one
}


def module(body, head=HEAD):
    return parse(f"{head}.entry k()\n{{\n.reg .b32 %r<4>;\n{body}\nret;\n}}\n", "a.ptx").module


def codes(findings):
    return [d.code for d in findings]


@rows("path", MODULES, ids=lambda p: str(p.relative_to(DATA)), share=6)
def test_compiler_output_is_clean(path):
    result = parse(path.read_text("utf-8"), str(path))
    found = [*result.diagnostics, *lint(result.module)]
    assert [d.message for d in found if d.severity is Severity.ERROR] == []
    assert Counter(codes(found)) == FOUND.get(path.parent.name, {})


def test_there_is_compiler_output_to_check():
    assert len(MODULES) > 100


# --- selection and suppression ----------------------------------------------------------------------------------------

TWO = "mov.b32 %r1, 0;\nshl.b32 %r1, %r1, 40;\nadd.s32 %r1, %r1, %r9;"


def test_everything_is_selected_by_default():
    assert codes(lint(module(TWO))) == ["PTX502", "PTX201"]


@pytest.mark.parametrize(("select", "ignore", "expected"), [
    (["PTX5"], [], ["PTX502"]),
    (["PTX201"], [], ["PTX201"]),
    ([], ["PTX2"], ["PTX502"]),
    (["PTX"], ["PTX502"], ["PTX201"]),
    (["PTX502"], ["PTX5"], ["PTX502"]),
    (["PTX3"], [], []),
    ([], ["PTX"], []),
])  # fmt: skip
def test_prefixes_choose(select, ignore, expected):
    assert codes(lint(module(TWO), select=select, ignore=ignore)) == expected


@pytest.mark.parametrize("body", [
    "mov.b32 %r1, 0;\nshl.b32 %r1, %r1, 40; // ptx-lint: disable=PTX502",
    "mov.b32 %r1, 0;\n// ptx-lint: disable=PTX502\nshl.b32 %r1, %r1, 40;",
    "mov.b32 %r1, 0;\n// ptx-lint: disable=PTX201, PTX5\n\n// why\nshl.b32 %r1, %r1, 40;",
    "mov.b32 %r1, 0;\nshl.b32 %r1, %r1, 40;\n// ptx-lint: disable-file=PTX502",
    "mov.b32 %r1, 0;\nshl.b32 %r1, %r1, 40; // ptx-lint: disable=all",
])  # fmt: skip
def test_comments_silence(body):
    assert codes(lint(module(body))) == []


@pytest.mark.parametrize("body", [
    "mov.b32 %r1, 0; // ptx-lint: disable=PTX502\nshl.b32 %r1, %r1, 40;",
    "mov.b32 %r1, 0;\nshl.b32 %r1, %r1, 40; // ptx-lint: disable=PTX501",
    "mov.b32 %r1, 0;\nshl.b32 %r1, %r1, 40;\n// ptx-lint: disable=PTX502\nadd.s32 %r1, %r1, 1;",
])  # fmt: skip
def test_comments_silence_no_more_than_they_say(body):
    assert codes(lint(module(body))) == ["PTX502"]


def test_without_source_nothing_is_suppressed():
    assert suppressed([], None) == [] and chosen([], ["PTX1"], []) == []


# --- targets ----------------------------------------------------------------------------------------------------------


def test_findings_say_for_which_target():
    found = lint_targets(module("mov.b32 %r1, 0;\nredux.sync.add.s32 %r1, %r1, -1;\n"), ["sm_75", "sm_80", "sm_90"])
    assert [(d.code, d.target) for d in found] == [("PTX302", "sm_75")]
    assert "checked as" in found[0].message


def test_findings_of_all_targets_appear_once():
    found = lint_targets(module("add.s32 %r1, %r8, 1;"), ["sm_75", "sm_90"])
    assert [(d.code, d.target) for d in found] == [("PTX201", None)]


def test_version_can_be_forced():
    body = "mov.b32 %r1, 0;\nredux.sync.add.s32 %r1, %r1, -1;"
    (found,) = lint(module(body), version=(6, 5))[1:]
    assert found.code == "PTX301" and found.requires.ptx == "7.0" and found.requires.targets == ("sm_80",)


# --- fixes ------------------------------------------------------------------------------------------------------------

GENERIC = f"""{HEAD}.entry k() .reqntid 1
{{
.reg .b32 r;
.shared .b32 t[4];
mov.b32 r, 1;
st.b32 [t], r;
ld.b32 r, [t];
ret;
}}
"""


def test_fixes_apply_and_settle():
    found = lint(parse(GENERIC, "a.ptx").module)
    assert codes(found) == ["PTX701", "PTX701"]
    changed, count = apply_fixes(GENERIC, found)
    assert count == 2 and "ld.shared.b32 r, [t];" in changed and "st.shared.b32 [t], r;" in changed
    assert lint(parse(changed, "a.ptx").module) == []


def test_diff_is_a_patch():
    changed, _ = apply_fixes(GENERIC, lint(parse(GENERIC, "a.ptx").module))
    patch = unified_diff(GENERIC.encode(), changed.encode(), "a.ptx")
    assert patch.startswith(b"--- a.ptx\n+++ a.ptx\n@@") and b"\n+ld.shared.b32 r, [t];\n" in patch


def test_nothing_to_fix_changes_nothing():
    assert apply_fixes("abc", []) == ("abc", 0)


WHOLE = "ld.param.b64 %d1, [x];\nmov.b32 %r1, 3;\n{}st.global.b32 [%d1], %r1;\n{}ret;\n{}"


@rows(
    "line", ["add.u32 %r2, %r1, 5;", "ld.global.v2.b32 {%r1, %r2}, [%d1];", "bar.sync 0;", "st.global.b32 [%d1], %r1;"]
)
@rows("place", [0, 1, 2])
def test_a_line_that_is_being_typed_makes_nothing_else_lack(line, place):
    head = ".version 8.0\n.target sm_80\n.address_size 64\n"
    for end in range(1, len(line)):
        parts = ["", "", ""]
        parts[place] = line[:end] + "\n"
        body = ".reg .b32 %r<4>;\n.reg .b64 %d<4>;\n" + WHOLE.format(*parts)
        result = parse(f"{head}.entry k(.param .b64 x)\n{{\n{body}}}\n", "a.ptx")
        found = codes(findings_of(result.module, result.diagnostics))
        assert not {"PTX510", "PTX511", "PTX512", "PTX520"} & set(found), (line[:end], found)


def test_a_syntax_error_hides_undeclared_names_of_its_function_alone():
    """What could not be read may have declared a name for the function that it stands in, or for all."""
    text = (
        ".version 8.0\n.target sm_80\n.address_size 64\n{}\n"
        ".entry a()\n{{\n    .reg .b32 %r<2>;\n    {}\n    mov.b32 %r1, 1;\n    bra L;\n}}\n"
        ".entry b()\n{{\n    mov.b32 %r1, 1;\n    bra L;\n}}\n"
    )
    lines = [[d.line for d in findings_of(*parse(text.format(*added))) if d.code == "PTX201"] for added in (
        ("", ""), ("", "add.s32 %r1, %r1, 1 1; L"), (".global .b32 L %r1;", ""),
    )]  # fmt: skip
    assert lines == [[10, 14, 15], [14, 15], []]


def test_the_difference_of_long_texts_is_made_in_parts(monkeypatch):
    """Each line of it is one of the texts', and what it leaves and adds makes the one of the other."""
    numbers = random.Random(7)
    monkeypatch.setattr(matching, "_MANY", 20)
    monkeypatch.setattr(matching, "_PART", 8)
    for _ in range(50):
        old = [numbers.choice(["a", "b", f"x{numbers.randrange(30)}"]) for _ in range(60)]
        new = list(old)
        for _ in range(numbers.randrange(1, 12)):
            place = numbers.randrange(len(new) + 1)
            new[place : place + numbers.randrange(3)] = ["new"] * numbers.randrange(12)
        patch = unified_diff("\n".join(old).encode(), "\n".join(new).encode(), "f").decode()
        made, at = [], 0
        for line in patch.split("\n")[2:-1] if patch else ():
            if head := re.match(r"@@ -(\d+)(,0)?", line):
                start = int(head[1]) - (head[2] is None)
                made += old[at:start]
                at = start
            elif line[0] in " -":
                assert old[at] == line[1:]
                at += 1
            if line[0] in " +":
                made.append(line[1:])
        assert made + old[at:] == new and (patch != "") == (old != new)


def test_the_difference_of_long_texts_takes_time_in_proportion():
    """Of texts of which every other line differs."""

    def work(count):
        old = "".join(f"L{n}:\nadd\n" for n in range(count)).encode()
        return calls(lambda: unified_diff(old, old.replace(b"add", b"\tadd"), "f"))

    assert work(12000) < 3 * work(6000)
