"""`--fix` and `--diff`: the module is valid afterwards, every byte that is not mended stays, and so does the file."""

import json
import os
import shutil
import stat
import subprocess

import pytest

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
GENERIC = HEAD + ".entry k()\n{\n.reg .b32 r;\n.shared .b32 t[4];\nst.shared.b32 [t], 1;\nld.b32 r, [t];\nret;\n}\n"


def head(version, target):
    return f".version {version} // first\n.target {target}, debug /* sm_70 */\n.address_size 64\n"


REDUX = ".entry k() { .reg .b32 r; mov.b32 r, 1; redux.sync.add.s32 r, r, -1; ret; }\n"
WGMMA = ".entry k() { wgmma.fence.sync.aligned; ret; }\n"
REMOVED = ".entry k() { .reg .pred p; .reg .b32 r; vote.ballot.b32 r, p; NEW ret; }\n"
SECTION = ".section .debug_x { .b8 1 }\n"


# --- .version and .target ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("body", "before", "after"), [
    (REDUX, ("6.0", "sm_70"), ("7.0", "sm_80")),
    (REDUX, ("6.5", "sm_75"), ("7.0", "sm_80")),
    (REDUX, ("7.0", "sm_75"), ("7.0", "sm_80")),
    (REDUX, ("8.3", "compute_70"), ("8.3", "compute_80")),
    (WGMMA, ("7.0", "sm_90"), ("8.0", "sm_90a")),
    (WGMMA, ("8.0", "sm_80"), ("8.0", "sm_90a")),
    (".entry k() { ret; }\n", ("6.0", "sm_80"), ("7.0", "sm_80")),
])  # fmt: skip
def test_raised_headers(lint, body, before, after):
    path = lint.put("x.ptx", head(*before) + body + SECTION)
    assert lint("--select", "PTX3", "x.ptx")[0] == 1
    status, _, err = lint("--fix", "x.ptx")
    assert path.read_text() == head(*after) + body + SECTION
    assert status == 0 and err == "x.ptx: 1 fix applied\n"
    assert lint("--fix", "x.ptx")[2] == ""


@pytest.mark.parametrize(("version", "target", "body"), [
    ("8.0", "sm_100", WGMMA),  # sm_90a has not all that sm_100 has
    ("8.0", "sm_80", REMOVED.replace("NEW", "elect.sync r|p, -1;")),
    ("8.0", "sm_99", WGMMA),
    ("8.0", "sm_80", ".target sm_80\n" + WGMMA),
    ("5.0", "sm_60", REMOVED.replace("NEW", "redux.sync.add.s32 r, r, -1;")),
])  # fmt: skip
def test_headers_that_cannot_be_raised(lint, version, target, body):
    """Another architecture, demands that exclude each other, headers that are unclear, new errors."""
    text = f".version {version}\n.target {target}\n.address_size 64\n{body}"
    path = lint.put("x.ptx", text)
    assert lint("--fix", "x.ptx")[0] == 1 and path.read_text() == text


def test_headers_are_not_raised_for_what_is_silenced_or_asked_for(lint):
    text = head("7.0", "sm_75") + REDUX + SECTION
    path = lint.put("x.ptx", text)
    lint("--fix", "--ignore", "PTX3", "x.ptx")
    lint("--fix", "--target", "sm_75", "x.ptx")
    assert path.read_text() == text


def test_a_fix_that_another_makes_possible(lint):
    """The missing semicolon hides what the header has to be raised for."""
    path = lint.put(
        "x.ptx", head("7.0", "sm_75").replace(", debug", "") + REDUX.replace("mov.b32 r, 1;", "mov.b32 r, 1\n")
    )
    status, _, err = lint("--fix", "x.ptx")
    assert status == 0 and err == "x.ptx: 2 fixes applied\n" and ".target sm_80 " in path.read_text()


def test_raised_headers_in_sarif(lint):
    lint.put("x.ptx", head("6.5", "sm_75") + REDUX + SECTION)
    (run,) = json.loads(lint("--format", "sarif", "x.ptx")[1])["runs"]
    fixes = [result["fixes"][0] for result in run["results"] if result["ruleId"].startswith("PTX3")]
    assert fixes and fixes[0]["description"]["text"] == "raise .version to 7.0 and .target to sm_80"


def test_no_fixes_of_what_has_no_text(lint):
    from ptxtools.container import write
    from ptxtools.syntax import parse

    data = write(parse(GENERIC, "x").module)
    path = lint.put("x.ptxo", data)
    (result,) = json.loads(lint("--format", "sarif", "x.ptxo")[1])["runs"][0]["results"]
    assert result["ruleId"] == "PTX701" and "fixes" not in result
    assert lint("--fix", "x.ptxo")[0] == 0 and path.read_bytes() == data


# --- patches ----------------------------------------------------------------------------------------------------------

ENCODINGS = {
    "utf-8": lambda data: "// café\n".encode() + data,
    "latin-1": lambda data: b"// caf\xe9 \x85 \n" + data,
    "mark": lambda data: b"\xef\xbb\xbf" + data,
    "crlf": lambda data: data.replace(b"\n", b"\r\n"),
    "form feed": lambda data: data.replace(b"ret;", b"ret;\f // \v"),
    "line separator": lambda data: data.replace(b"ret;", "ret; // \u2028 x \u0085".encode()),
    "no final line feed": lambda data: data.rstrip(b"\n"),
    "final nul": lambda data: data + b"\0",
}


@pytest.mark.share(3)
@pytest.mark.parametrize("change", ENCODINGS.values(), ids=ENCODINGS)
@pytest.mark.parametrize("tool", [["patch", "-p0", "--binary"], ["git", "apply", "-p0"]], ids=lambda tool: tool[0])
@pytest.mark.parametrize("name", ["x.ptx", "a b.ptx"])
def test_a_patch_does_what_fix_does(lint, tmp_path, change, tool, name):
    if shutil.which(tool[0]) is None:
        pytest.skip(f"{tool[0]} is not installed")
    data = change(GENERIC.encode())
    path = lint.put(name, data)
    status, patch, _ = lint("--diff", name)
    assert status == 1 and path.read_bytes() == data
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    subprocess.run(tool, input=patch.encode("utf-8", "surrogateescape"), check=True, cwd=tmp_path, env=environment,
                   capture_output=True)  # fmt: skip
    patched = path.read_bytes()
    path.write_bytes(data)
    assert lint("--fix", name)[0] == (not data.isascii())  # what is not ASCII is a finding that stays
    assert path.read_bytes() == patched == change(GENERIC.replace("ld.b32", "ld.shared.b32").encode())


def test_a_patch_of_a_name_with_quotes(lint, tmp_path):
    path = lint.put('a"b\té.ptx', GENERIC)
    assert lint("--diff", path.name)[1].startswith('--- "a\\042b\\011\\303\\251.ptx"\n')


def test_the_others_are_shown_though_one_cannot_be_read(lint):
    lint.put("x.ptx", GENERIC)
    status, out, err = lint("--diff", "none.ptx", "x.ptx")
    assert status == 2 and "+ld.shared" in out and err.startswith("ptx-lint: error: none.ptx: cannot be read")
    status, _, err = lint("--fix", "none.ptx", "x.ptx")
    assert status == 2 and "x.ptx: 1 fix applied" in err and err.count("none.ptx: cannot be read") == 1


# --- the file ---------------------------------------------------------------------------------------------------------


def test_a_fixed_file_is_the_file_that_it_was(lint):
    path = lint.put("x.ptx", GENERIC)
    path.chmod(0o640)
    os.link(path, "second.ptx")
    os.symlink("x.ptx", "link.ptx")
    assert lint("--fix", "link.ptx")[0] == 0
    assert os.path.islink("link.ptx") and os.path.samefile("x.ptx", "second.ptx")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640 and b"ld.shared" in path.read_bytes()


def test_a_file_that_cannot_be_written(lint, monkeypatch):
    lint.put("x.ptx", GENERIC)
    lint.put("y.ptx", GENERIC)
    real = os.access
    monkeypatch.setattr(
        "ptxtools.files.writing.os.access", lambda path, mode: not path.startswith("x") and real(path, mode)
    )
    status, _, err = lint("--fix", "x.ptx", "y.ptx")
    assert status == 2 and "x.ptx: cannot be written: Permission denied" in err and "y.ptx: 1 fix applied" in err
