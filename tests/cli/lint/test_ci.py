"""`--baseline`, the formats of services, and the examples in examples/ci, each of which is run."""

import io
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
CI = ROOT / "examples" / "ci"
HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
FINE = HEAD + ".entry k()\n{\n\tret;\n}\n"
WRONG = HEAD + ".entry k()\n{\n\tmov.u32 \tx, 1;\n\tret;\n}\n"
UNKNOWN = WRONG.replace("mov.u32", "nosuch")


# --- baselines --------------------------------------------------------------------------------------------------------


def test_a_baseline_is_made_and_holds_what_is_known(lint):
    lint.put("a.ptx", WRONG)
    assert lint("a.ptx")[0] == 1
    assert lint("--baseline", "b.json", "a.ptx") == (0, "", "b.json: made, with 1 finding\n")
    assert lint("--baseline", "b.json", "a.ptx") == (0, "", "")
    lint.put("a.ptx", "// moved\n\n" + WRONG)
    assert lint("--baseline", "b.json", "a.ptx") == (0, "", "")


def test_only_what_is_new_counts(lint):
    """Even if it is the same as what is known, a second time."""
    lint.put("a.ptx", UNKNOWN)
    lint("--baseline", "b.json", "a.ptx")
    lint.put("a.ptx", UNKNOWN.replace("\tret;", "\tother;\n\tnosuch \tx, 1;\n\tret;"))
    status, out, _ = lint("--baseline", "b.json", "--format", "json", "a.ptx")
    assert status == 1
    assert [row["line"] for row in json.loads(out)] == [7, 8]


def test_names_are_those_from_the_baselines_folder(lint, monkeypatch, tmp_path):
    lint.put("sub/a.ptx", WRONG)
    lint("--baseline", "b.json", "sub")
    assert json.loads((tmp_path / "b.json").read_text())["findings"][0]["file"] == "sub/a.ptx"
    monkeypatch.chdir(tmp_path / "sub")
    assert lint("--baseline", "../b.json", "a.ptx")[0] == 0
    shutil.copy("a.ptx", "other.ptx")
    assert lint("--baseline", "../b.json", "other.ptx")[0] == 1


NO_BASELINES = ["", "[]", "{}", '{"ptx-lint-baseline": 2}', "[" * 100_000, '{"ptx-lint-baseline": 1}']


@pytest.mark.parametrize("content", NO_BASELINES, ids=range(6))
def test_what_is_no_baseline(lint, content):
    lint.put("a.ptx", WRONG)
    path = lint.put("b.json", content)
    status, out, err = lint("--baseline", "b.json", "a.ptx")
    assert (status, out) == (2, "") and err.startswith("ptx-lint: error: b.json: ")
    assert path.read_text() == content


def test_no_baseline_of_files_that_cannot_be_read(lint, tmp_path):
    lint.put("a.ptx", WRONG)
    assert lint("--baseline", "b.json", "a.ptx", "missing.ptx")[0] == 2
    assert not (tmp_path / "b.json").exists()


FIRST, SECOND = "\tbar.sync \t0, 0; // one\n", "\tbar.sync \t1, 0;\n"
FIXABLE = HEAD + ".entry k()\n{\n" + FIRST + "\tret;\n}\n"


@pytest.mark.parametrize("how", ["--fix", "--diff"])
def test_what_a_baseline_has_is_not_mended(lint, how):
    """It is hidden, so it stays as it is; what is new is mended, the same line a second time, too."""
    path = lint.put("a.ptx", FIXABLE)
    lint("--baseline", "b.json", "a.ptx")
    assert lint(how, "--baseline", "b.json", "a.ptx") == (0, "", "")
    assert path.read_text() == FIXABLE
    lint.put("a.ptx", FIXABLE.replace(FIRST, FIRST + SECOND))
    status, out, _ = lint(how, "--baseline", "b.json", "a.ptx")
    mended = SECOND.replace(", 0", "")
    if how == "--fix":
        assert status == 0
        assert path.read_text() == FIXABLE.replace(FIRST, FIRST + mended)
    else:
        assert status == 1
        assert [line for line in out.splitlines() if line[0] in "+-"][2:] == ["-" + SECOND[:-1], "+" + mended[:-1]]


def test_a_fix_comes_before_a_new_baseline(lint):
    path = lint.put("a.ptx", FIXABLE)
    assert lint("--fix", "--baseline", "b.json", "a.ptx")[2].endswith("b.json: made, with 0 findings\n")
    assert path.read_text() == FIXABLE.replace(", 0", "")


def test_standard_input_is_mended_beside_a_baseline(lint, monkeypatch):
    lint.put("a.ptx", FIXABLE)
    lint("--baseline", "b.json", "a.ptx")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FIXABLE.encode())))
    assert lint("--fix", "--baseline", "b.json", "--stdin-filename", "a.ptx", "-") == (0, FIXABLE, "")


def test_strict_and_baselines(lint):
    warned = WRONG.replace("\tmov.u32 \tx, 1;", "\t.reg .b32 r;\n\tshl.b32 \tr, 1, 33;")
    lint.put("a.ptx", FINE)
    lint("--baseline", "b.json", "a.ptx")
    lint.put("a.ptx", warned)
    assert lint("--baseline", "b.json", "a.ptx")[0] == 0
    assert lint("--baseline", "b.json", "--strict", "a.ptx")[0] == 1


# --- formats ----------------------------------------------------------------------------------------------------------


def test_formats_of_services(lint):
    lint.put("a.ptx", WRONG), lint.put("b.ptx", FINE)
    status, out, _ = lint("--format", "gitlab", "a.ptx", "b.ptx")
    (issue,) = json.loads(out)
    assert status == 1 and issue["check_name"] == "PTX201" and issue["location"]["path"] == "a.ptx"
    status, out, _ = lint("--format", "junit", "a.ptx", "b.ptx", "missing.ptx")
    root = ElementTree.fromstring(out)
    assert status == 2 and [root.get(key) for key in ("tests", "failures", "errors")] == ["3", "1", "1"]
    assert lint("--format", "gitlab", "--requirements", "a.ptx")[0] == 2


# --- examples ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path):
    """A folder with kernels, and what runs a line of shell there with the commands of this checkout."""
    (tmp_path / "kernels").mkdir()
    binaries = tmp_path / "bin"
    binaries.mkdir()
    for name in ("lint", "as"):
        script = binaries / f"ptx-{name}"
        script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m ptxtools {name} "$@"\n')
        script.chmod(0o755)
    (binaries / "pip").write_text("#!/bin/sh\n")  # the tools are there already
    (binaries / "pip").chmod(0o755)
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
    environment = {**os.environ, "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": paths}

    def shell(line):
        return subprocess.run(["sh", "-ec", line], cwd=tmp_path, env=environment, capture_output=True, text=True)

    shell.put = lambda text: (tmp_path / "kernels" / "a.ptx").write_text(text)
    shell.folder = tmp_path
    return shell


def test_github_workflow(project):
    job = yaml.safe_load((CI / "github.yml").read_text())["jobs"]["lint"]
    lines = [step["run"] for step in job["steps"] if "run" in step]
    assert len(lines) == 3
    project.put(FINE)
    assert [project(line).returncode for line in lines] == [0, 0, 0]
    project.put(WRONG.replace("\tret", "ret"))
    done = [project(line) for line in lines]
    assert [d.returncode for d in done] == [0, 1, 1]
    assert done[1].stdout.startswith("::error file=kernels/a.ptx,line=6,")


def test_gitlab_job(project):
    job = yaml.safe_load((CI / "gitlab-ci.yml").read_text())["ptx-lint"]
    project.put(WRONG)
    assert [project(line).returncode for line in [*job["before_script"], *job["script"]]] == [0, 0, 1]
    reports = {name: (project.folder / path).read_text() for name, path in job["artifacts"]["reports"].items()}
    assert json.loads(reports["codequality"])[0]["check_name"] == "PTX201"
    assert ElementTree.fromstring(reports["junit"]).get("failures") == "1"


@pytest.mark.parametrize("path", [CI / "pre-commit-config.yaml", ROOT / ".pre-commit-hooks.yaml"], ids=lambda p: p.name)
def test_hooks(project, path):
    document = yaml.safe_load(path.read_text())
    hooks = document["repos"][0]["hooks"] if isinstance(document, dict) else document
    assert [hook["id"] for hook in hooks] == ["ptx-lint", "ptx-format"]
    for text, statuses in ((FINE, [0, 0]), (WRONG, [1, 0])):
        project.put(text)
        assert [project(f"{hook['entry']} kernels/a.ptx").returncode for hook in hooks] == statuses


def test_makefile(project):
    shutil.copy(CI / "Makefile", project.folder)
    project.put(FINE)
    done = project("make lint assemble")
    assert done.returncode == 0, done.stderr
    assert (project.folder / "kernels" / "a.ptxo").exists()
    assert "Nothing to be done" in project("make lint").stdout
    project.put(WRONG)
    os.utime(project.folder / "kernels" / "a.ptx", (2_000_000_000, 2_000_000_000))
    assert project("make lint").returncode == 2
