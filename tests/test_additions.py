"""Each kind of addition is made in the files that docs/architecture.md names, and in no others; then all commands,
both engines and the pages have it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .additions import ADDITIONS, FILES, add, is_listed, package

HEAD = ".version 9.0\n.target {target}\n.address_size 64\n"

FROB = (
    HEAD.format(target="sm_80")
    + """
.visible .entry k(.param .u64 data, .param .u64 out)
{
    .reg .f32 %f<5>;
    .reg .b64 %rd<5>;
    .reg .b32 %r<5>;
    ld.param.u64 %rd1, [data];
    ld.param.u64 %rd2, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.u64 %rd1, %rd1, %rd3;
    add.u64 %rd2, %rd2, %rd3;
    ld.global.f32 %f1, [%rd1];
    frob.f32 %f2, %f1, %f1;
    st.global.f32 [%rd2], %f2;
    ret;
}
"""
)

TALLY = (
    HEAD.format(target="sm_80")
    + """
.visible .entry k(.param .u64 out)
{
    .reg .b64 %rd<3>;
    .reg .b32 %r<3>;
    .reg .pred %p<2>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd1, %rd1, %rd2;
    setp.lt.u32 %p1, %r1, 3;
    mov.u32 %r2, 7;
    @%p1 tally.u32 %r2, %r1;
    st.global.u32 [%rd1], %r2;
    ret;
}
"""
)

SWIRL = TALLY.replace("tally.u32 %r2, %r1", "swirl.b32 %r2, %r1")

#: d = a * b + c where c is large and what the products lack of it depends on how they are added.
MMA = (
    HEAD.format(target="sm_130")
    + """
.visible .entry k(.param .u64 out)
{
    .reg .b64 %rd<3>;
    .reg .b32 %r<10>;
    .reg .f32 %f<10>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 16;
    add.u64 %rd1, %rd1, %rd2;
    mov.b32 %r2, 0x3f803f80;
    mov.b32 %r3, 0x33803380;
    mov.f32 %f1, 0f3F800000;
    mma.sync.aligned.m16n8k8.row.col.f32.TYPE.TYPE.f32 {%f2, %f3, %f4, %f5}, {%r2, %r2}, {%r3}, {%f1, %f1, %f1, %f1};
    st.global.v4.f32 [%rd1], {%f2, %f3, %f4, %f5};
    ret;
}
"""
)


@pytest.fixture(scope="module")
def added(tmp_path_factory) -> Path:
    """A folder with a package to which one addition of each kind was made, and modules that use them."""
    folder = tmp_path_factory.mktemp("added")
    copy = package(folder)
    for edits in ADDITIONS.values():
        add(copy, edits)
    for name, text in (("frob", FROB), ("tally", TALLY), ("swirl", SWIRL), ("mma", MMA.replace("TYPE", "bf16"))):
        (folder / f"{name}.ptx").write_text(text)
    return folder


@pytest.fixture
def tool(added, tmp_path):
    def run(*arguments, status=0, script="-m"):
        line = [sys.executable, *(("-m", "ptxtools") if script == "-m" else (script,)), *map(str, arguments)]
        environment = {**os.environ, "PYTHONPATH": str(added), "PTXTOOLS_CACHE": str(added / "cache")}
        done = subprocess.run(line, capture_output=True, text=True, cwd=added, env=environment, check=False)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


# --- the page ---------------------------------------------------------------------------------------------------------


def test_the_page_and_the_additions_name_the_same_kinds():
    assert set(ADDITIONS) == set(FILES) != set()


@pytest.mark.parametrize("kind", ADDITIONS)
def test_an_addition_touches_the_files_of_the_page_and_no_others(kind):
    touched = [edit.file for edit in ADDITIONS[kind]]
    assert [file for file in touched if not is_listed(file, FILES[kind])] == []
    assert [name for name in FILES[kind] if not any(is_listed(file, [name]) for file in touched)] == []


def test_the_page_names_files_that_are_there():
    from .additions import ROOT

    for files in FILES.values():
        for file in files:
            assert (ROOT / "ptxtools" / file).exists() or any(part.strip("_.py").isupper() for part in file.split("/"))


# --- an instruction, and a rule about it ------------------------------------------------------------------------------


def test_a_new_instruction_is_checked(tool, added):
    assert "frob.f32 %f2, %f1, %f1" in tool("lint", "frob.ptx")  # the rule's finding
    old = added / "old.ptx"
    old.write_text(FROB.replace(".target sm_80", ".target sm_75"))
    assert "needs sm_80" in tool("lint", "old.ptx", status=1)
    old.write_text(FROB.replace("%f2, %f1, %f1", "%f2, %f1"))
    assert "[PTX2" in tool("lint", "old.ptx", status=1)
    assert "sm_80" in tool("lint", "--requirements", "frob.ptx")


def test_a_new_rule_finds_and_explains(tool):
    assert "frob.ptx:17:24: warning: both operands are the same [PTX799]" in tool("lint", "frob.ptx")
    assert "PTX799" not in tool("lint", "tally.ptx")
    assert tool("lint", "--explain", "PTX799").startswith("PTX799: frob with itself\n")


def test_a_new_error_is_found_and_explained(tool, added):
    text = FROB.replace("%f2, %f1, %f1", "%f2, 0f3F800000, 0f40000000")
    (added / "constants.ptx").write_text(text)
    found = tool("lint", "constants.ptx", status=1)
    assert "constants.ptx:17:31: error: both operands are constants [PTX499]" in found
    assert tool("lint", "--explain", "PTX499").startswith("PTX499: frob of constants\n")
    assert "[PTX499]" in tool("as", "constants.ptx", "-o", "constants.ptxo", status=1)


def test_a_new_instruction_goes_through_the_container(tool):
    tool("as", "frob.ptx", "-o", "frob.ptxo")
    assert "frob.f32 \t%f2, %f1, %f1;" in tool("as", "-d", "frob.ptxo").replace("frob.f32 %", "frob.f32 \t%")


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("file", ["frob.ptx", "frob.ptxo"])
def test_a_new_instruction_runs(tool, added, engine, file):
    if file == "frob.ptxo":
        tool("as", "frob.ptx", "-o", file)
    arguments = ("--arg", "arange:f32[32]", "--arg", "zeros:f32[32]", "--save", "1=out.npy")
    tool("run", file, "--grid", 1, "--block", 32, "--engine", engine, *arguments)
    import numpy as np

    a = np.arange(32, dtype=np.float32)
    assert (np.load(added / "out.npy") == a + a * a).all()


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_a_new_event_runs(tool, added, engine):
    arguments = ("--arg", "zeros:u32[32]", "--save", "0=out.npy")
    tool("run", "tally.ptx", "--grid", 1, "--block", 32, "--engine", engine, *arguments)
    import numpy as np

    assert np.load(added / "out.npy").tolist() == [0, 1, 3] + [7] * 29


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_a_new_operation_in_a_block_runs(tool, added, engine):
    arguments = ("--arg", "zeros:u32[32]", "--save", "0=out.npy")
    tool("run", "swirl.ptx", "--grid", 1, "--block", 32, "--engine", engine, *arguments)
    import numpy as np

    assert np.load(added / "out.npy").tolist() == [1, 2, 3] + [7] * 29


def test_nothing_is_left_to_write_for_new_forms(tool):
    assert tool(script="tools/forms.py") == "ptxtools/semantics/forms.py has every form\n"


# --- a device, and how it adds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_a_new_device_adds_by_its_generation_and_by_the_new_rule(tool, added, engine):
    """Eight products of 2**-24 are added to 1: the generation cuts them off, the rule for bf16 adds 1 to their sum."""
    import numpy as np

    found = {}
    for type_ in ("f16", "bf16"):
        one, tiny = ("0x3c003c00", "0x00010001") if type_ == "f16" else ("0x3f803f80", "0x33803380")
        text = MMA.replace("TYPE", type_).replace("0x3f803f80", one).replace("0x33803380", tiny)
        (added / f"{engine}-{type_}.ptx").write_text(text)
        tool("run", f"{engine}-{type_}.ptx", "--grid", 1, "--block", 32, "--engine", engine, "--arg", "zeros:f32[128]",
             "--save", "0=out.npy")  # fmt: skip
        found[type_] = np.load(added / "out.npy")
    assert (found["f16"] == 1).all()
    assert (found["bf16"] == 1 + 8 * 2.0**-24).all()


def test_a_new_device_is_a_target_and_has_limits(tool, added):
    assert tool("lint", "mma.ptx") == ""
    assert "sm_131" in tool("run", "frob.ptx", "--grid", 1, "--block", 32, "--device", "sm_131", status=2)
    line = (
        "run",
        "frob.ptx",
        "--block",
        32,
        "--device",
        "sm_130a",
        "--arg",
        "arange:f32[32]",
        "--arg",
        "zeros:f32[32]",
    )
    tool(*line, "--grid", 1)
    assert "a cluster of 32 CTAs is too large" in tool(*line, "--grid", 32, "--cluster", 32, status=1)


def test_a_new_option_is_a_flag(tool):
    assert "Frobs of the device." in tool("run", "--help")
    arguments = ("--grid", 1, "--block", 32, "--arg", "arange:f32[32]", "--arg", "zeros:f32[32]")
    tool("run", "frob.ptx", *arguments, "--frobs", 3)
    assert "at most 9" in tool("run", "frob.ptx", *arguments, "--frobs", 30, status=1)


# --- the pages --------------------------------------------------------------------------------------------------------


def test_the_pages_have_what_was_added(tool, added):
    out = tool("docs/isa/frob.md", "docs/rules.md", "docs/devices.md", script="tools/make_docs.py")
    assert "wrote docs/isa/frob.md" in out and "wrote docs/rules.md" in out and "wrote docs/devices.md" in out
    assert "frob.f32" in (added / "docs" / "isa" / "frob.md").read_text()
    assert "PTX499" in (added / "docs" / "rules.md").read_text()
    assert "PTX799" in (added / "docs" / "rules.md").read_text()
    assert "sm_130" in (added / "docs" / "devices.md").read_text()
