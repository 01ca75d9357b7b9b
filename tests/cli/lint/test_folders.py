"""Folders as arguments, what is left out of them, and the settings of what is found."""

import json
import os

import pytest

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
BAD = HEAD + ".entry k()\n{\n\tadd.s32 %r1, 1, 2;\n\tret;\n}\n"
WARN = HEAD + ".entry k() .maxntid 2048\n{\n\tret;\n}\n"


@pytest.fixture
def tree(lint):
    for name in ("b.ptx", "a.ptx", "sub/c.ptx", "sub/deep/d.ptx", ".git/e.ptx", "node_modules/x/f.ptx", "notes.txt"):
        lint.put(name, BAD)
    from ptxtools.container import write
    from ptxtools.syntax import parse

    lint.put("sub/k.ptxo", write(parse(WARN, "k").module))
    return lint


def found(lint, *arguments):
    status, out, err = lint("--format", "json", *arguments)
    assert "Traceback" not in err
    return status, list(dict.fromkeys(finding["file"] for finding in json.loads(out)))


def test_a_folder_is_searched(tree):
    assert found(tree, ".") == (1, ["a.ptx", "b.ptx", "sub/c.ptx", "sub/k.ptxo", "sub/deep/d.ptx"])
    assert found(tree, "sub") == found(tree, "sub/") == (1, ["sub/c.ptx", "sub/k.ptxo", "sub/deep/d.ptx"])


def test_each_file_once(tree):
    assert found(tree, "sub/deep/d.ptx", "sub", "sub/deep")[1] == ["sub/deep/d.ptx", "sub/c.ptx", "sub/k.ptxo"]


def test_files_that_are_named_are_checked_whatever_is_left_out(tree):
    assert found(tree, ".git/e.ptx", "--exclude", ".git") == (1, [".git/e.ptx"])
    assert found(tree, "node_modules")[1] == ["node_modules/x/f.ptx"]


@pytest.mark.parametrize(("patterns", "left"), [
    (["deep"], ["a.ptx", "b.ptx", "sub/c.ptx", "sub/k.ptxo"]),
    (["*.ptxo,[ab].ptx"], ["sub/c.ptx", "sub/deep/d.ptx"]),
    (["[!a].ptx", "*.ptxo"], ["a.ptx"]),
    (["sub/*.ptx"], ["a.ptx", "b.ptx", "sub/k.ptxo", "sub/deep/d.ptx"]),
    (["sub/**"], ["a.ptx", "b.ptx"]),
    (["**/d.ptx", "sub/?.ptxo"], ["a.ptx", "b.ptx", "sub/c.ptx"]),
    (["sub/"], ["a.ptx", "b.ptx"]),
])  # fmt: skip
def test_exclude(tree, patterns, left):
    """Names anywhere, paths from here; in place of what is left out by default."""
    options = [option for pattern in patterns for option in ("--exclude", pattern)]
    assert found(tree, ".", *options, "--exclude", ".git,node_modules")[1] == left


def test_exclude_in_the_settings(tree):
    """Paths count from the folder of the file; the nearest one counts in each folder."""
    tree.put("sub/pyproject.toml", '[tool.ptx-lint]\nexclude = ["deep/*.ptx", "k.*"]\n')
    assert found(tree, ".")[1] == ["a.ptx", "b.ptx", "sub/c.ptx"]
    assert found(tree, ".", "--exclude", "a.ptx,.git,node_modules")[1] == [
        "b.ptx",
        "sub/c.ptx",
        "sub/k.ptxo",
        "sub/deep/d.ptx",
    ]


def test_links_to_folders_are_not_followed(tree):
    os.symlink("..", "sub/up")
    os.symlink("../b.ptx", "sub/link.ptx")
    assert found(tree, "sub")[1] == ["sub/c.ptx", "sub/k.ptxo", "sub/link.ptx", "sub/deep/d.ptx"]


def test_nothing_to_check_is_said(lint):
    lint.put("empty/readme", "")
    assert lint("empty") == (0, "", "ptx-lint: warning: empty: the folder has no *.ptx, *.ptxo, *.ll or *.bc files\n")


def test_nvvm_ir_is_found_but_not_that_of_other_machines(lint):
    bad = 'target triple = "nvptx64-nvidia-cuda"\ndefine void @f() {\n  fence seq_cst\n  ret void\n}\n'
    lint.put("k.ll", bad)
    lint.put("host.ll", bad.replace("nvptx64-nvidia-cuda", "x86_64-pc-linux-gnu"))
    lint.put("sums.bc", "scale=3; 1/3\n")
    lint.put("damaged.bc", b"BC\xc0\xde")
    assert found(lint, ".", "--select", "NVVM102,NVVM304") == (1, ["damaged.bc", "k.ll"])
    assert lint("--check-format", ".")[:2] == (0, "")
    assert found(lint, "host.ll", "--select", "NVVM304")[1] == ["host.ll"]


def test_a_folder_that_cannot_be_listed(tree, monkeypatch):
    real = os.scandir

    def scandir(path):
        if path.endswith("deep"):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr("ptxtools.linter.discovery.os.scandir", scandir)
    status, out, err = tree("sub")
    assert (
        status == 2 and "sub/c.ptx" in out and err == "ptx-lint: error: sub/deep: cannot be read: Permission denied\n"
    )
    (run,) = json.loads(tree("--format", "sarif", "sub")[1])["runs"]
    assert run["invocations"][0]["executionSuccessful"] is False


def test_folders_with_every_other_option(tree):
    assert tree("--requirements", "sub")[1].startswith("sub/k.ptxo: needs PTX 2.3")
    assert tree("--statistics", "sub")[1].splitlines()[0].split()[:2] == ["2", "PTX201"]


# --- formats ----------------------------------------------------------------------------------------------------------


def test_the_format_of_the_files_settings(lint):
    """The settings are looked for from the files on, not from here."""
    lint.put("sub/x.ptx", BAD)
    lint.put("sub/pyproject.toml", '[tool.ptx-lint]\nformat = "github"\n')
    lint.put("y.ptx", BAD)
    assert lint("sub")[1].startswith("::error file=sub/x.ptx")
    assert lint("sub", "y.ptx")[1].startswith("sub/x.ptx:6:10: error"), "they do not agree"


def test_an_unreadable_file_in_sarif(lint):
    lint.put("x.ptx", WARN)
    for arguments in (["x.ptx", "none.ptx"], ["--requirements", "x.ptx", "none.ptx"]):
        status, out, err = lint("--format", "sarif", *arguments)
        (run,) = json.loads(out)["runs"]
        (invocation,) = run["invocations"]
        assert status == 2 and run["results"] and invocation["executionSuccessful"] is False
        (notification,) = invocation["toolExecutionNotifications"]
        text = "none.ptx: cannot be read: No such file or directory"
        assert notification["message"]["text"] == text and err == f"ptx-lint: error: {text}\n"


@pytest.mark.parametrize("format_", ["sarif", "github"])
def test_statistics_in_formats_that_have_none(lint, format_):
    lint.put("x.ptx", BAD)
    status, out, err = lint("--statistics", "--format", format_, "x.ptx")
    assert status == 2 and out == "" and f"--statistics supports text and json, not {format_}" in err


# --- settings ---------------------------------------------------------------------------------------------------------


def test_unknown_codes_in_settings_are_warned_of(lint):
    lint.put("x.ptx", BAD)
    lint.put("pyproject.toml", '[tool.ptx-lint]\nignore = ["PTX99", "PTX201"]\nselect = ["PTX2", "E501"]\n')
    status, out, err = lint("x.ptx")
    assert (status, out) == (0, "")
    lines = err.splitlines()
    assert len(lines) == 2 and all(line.startswith("ptx-lint: warning: ") for line in lines)
    assert "pyproject.toml: unknown code 'E501'" in lines[0] and "'PTX99'; did you mean PTX9" in lines[1]


def test_a_selection_of_unknown_codes_only_is_refused(lint):
    """Else everything would pass."""
    lint.put("x.ptx", BAD)
    lint.put("mine.toml", 'select = ["nonsense"]\n')
    status, _, err = lint("--config", "mine.toml", "x.ptx")
    assert status == 2 and "mine.toml: 'select' has no known code" in err


@pytest.mark.parametrize("data", [
    '[tool.ptx-lint]\nignore = ["PTX201"] # é\n'.encode("latin-1"),
    '[tool.ptx-lint]\nignore = ["PTX201"]\n'.encode("utf-16"),
    b"[project]\nname = '\xff'\n",
])  # fmt: skip
def test_a_pyproject_that_is_not_utf8_is_an_error(lint, data):
    lint.put("x.ptx", BAD)
    lint.put("pyproject.toml", data)
    status, out, err = lint("x.ptx")
    assert status == 2 and out == "" and "pyproject.toml: not UTF-8 text: byte 0x" in err


@pytest.mark.parametrize("text", [
    '[tool]\nptx-lint = {ignore = ["PTX201"]}\n', '[ tool . "ptx-lint" ]\nignore = ["PTX201"]\n',
    '\ufeff[tool.ptx-lint]\nignore = ["PTX201"]\n',
])  # fmt: skip
def test_every_spelling_of_the_section(lint, text):
    lint.put("x.ptx", BAD)
    lint.put("pyproject.toml", text)
    assert lint("x.ptx") == (0, "", "")


def test_the_section_of_another_tool_is_none_of_ours(lint):
    lint.put("x.ptx", BAD)
    lint.put("pyproject.toml", '[tool.ptx-lint]\nignore = ["PTX201"]\n')
    lint.put("sub/x.ptx", BAD)
    lint.put("sub/pyproject.toml", "[tool.pre-commit]\nhooks = ['ptx-lint']\n")
    assert lint("sub/x.ptx") == (0, "", "")


# --- --explain --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", ["PTX3", "ptx3xx", "PTX30"])
def test_explain_a_family(lint, code):
    status, out, _ = lint("--explain", code)
    assert status == 0 and out.startswith(f"{code.upper()}: ") and "PTX301  " in out and "PTX813" not in out


def test_explain_an_unknown_code_names_its_family(lint):
    status, _, err = lint("--explain", "PTX399")
    assert status == 2 and "did you mean PTX30" in err and "PTX8" not in err
