"""ptx-lint as a command: input, formats, options, exit status."""

import io
import json
import os
import subprocess
import sys

import pytest

from ptxtools.cli.common import exit_status
from ptxtools.cli.lint import command
from tests.work import HANG

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
GOOD = HEAD + ".entry k() { ret; }\n"
BAD = HEAD + ".entry k()\n{\n\tadd.s32 %r1, 1, 2;\n\tret;\n}\n"
REDUX = ".entry k() { .reg .b32 r; mov.b32 r, 1; redux.sync.add.s32 r, r, -1; ret; }"
WARN = HEAD + ".entry k() .maxntid 2048\n{\n\tret;\n}\n"


class Stdin(io.TextIOWrapper):
    """Standard input with given bytes; a terminal if asked."""

    def __init__(self, data=b"", terminal=False):
        super().__init__(io.BytesIO(data), "utf-8")
        self.terminal = terminal

    def isatty(self):
        return self.terminal


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in (("good.ptx", GOOD), ("bad.ptx", BAD), ("warn.ptx", WARN)):
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def run(capsys, monkeypatch):
    def call(*arguments, stdin=b"", terminal=False):
        monkeypatch.setattr(sys, "stdin", Stdin(stdin, terminal))
        status = exit_status(command, "ptx-lint", arguments)
        out, err = capsys.readouterr()
        return status, out, err

    return call


# --- exit status and text ---------------------------------------------------------------------------------------------


def test_a_clean_file_says_nothing(run, files):
    assert run("good.ptx") == (0, "", "")


def test_an_error_is_shown_and_counts(run, files):
    status, out, err = run("bad.ptx")
    assert status == 1 and err == ""
    lines = out.split("\n")
    assert lines[0].startswith("bad.ptx:6:10: error: '%r1' is not declared here [PTX201]")
    assert lines[1:3] == ["    \tadd.s32 %r1, 1, 2;", "    \t        ^^^"]
    assert out.endswith("Found 1 error in 1 file.\n")


def test_quiet_leaves_the_summary_out(run, files):
    assert "Found" not in run("-q", "bad.ptx")[1]


def test_verbose_goes_to_standard_error(run, files):
    status, out, err = run("-v", "good.ptx")
    assert (status, out) == (0, "") and err.startswith("good.ptx: 0 findings in ")
    assert run("-v", "warn.ptx")[2].startswith("warn.ptx: 1 finding in ")


def test_warnings_count_only_when_strict(run, files):
    assert run("warn.ptx")[0] == 0
    status, out, _ = run("--strict", "warn.ptx")
    assert status == 1 and "[PTX550]" in out and "Found 1 warning in 1 file." in out


def test_exit_zero(run, files):
    status, out, _ = run("--exit-zero", "bad.ptx")
    assert status == 0 and "[PTX201]" in out


def test_findings_of_several_files_in_order(run, files):
    _, out, _ = run("warn.ptx", "bad.ptx", "good.ptx")
    assert out.index("warn.ptx:") < out.index("bad.ptx:") and "1 error and 1 warning in 2 files" in out


# --- input ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [("-",), ()])
def test_standard_input(run, files, arguments):
    status, out, _ = run(*arguments, stdin=BAD.encode())
    assert status == 1 and out.startswith("<stdin>:6:10: error:")


def test_standard_input_has_a_name(run, files):
    assert run("--stdin-filename", "x.ptx", stdin=BAD.encode())[1].startswith("x.ptx:6:10:")


def test_no_input_on_a_terminal_is_a_usage_error(run):
    status, out, err = run(terminal=True)
    assert status == 2 and out == "" and "no input" in err


def test_standard_input_only_once(run):
    assert run("-", "-", stdin=b"")[0] == 2


def test_missing_file(run, files):
    status, out, err = run("nowhere.ptx", "bad.ptx")
    assert status == 2
    assert "nowhere.ptx: cannot be read: No such file or directory" in err
    assert "[PTX201]" in out, "the other files are checked all the same"


NONSENSE = [
    b"", b"\0\1\2\3" * 100, "\ufeff.version".encode("utf-16"), b"hello world", b"#", b"\x7fELF",
    b"\x50\xed\x55\xba\x01", b"}" * 50, b"." * 50, b"@" * 50, b'"', b"/*", b"\\\n" * 9,
]  # fmt: skip


@pytest.mark.parametrize("data", NONSENSE)
def test_nonsense_gives_findings_and_no_traceback(run, data):
    status, out, err = run("-", stdin=data)
    assert status == 1 and err == ""
    assert out.startswith("<stdin>:") and "error:" in out


def test_empty_file_gives_one_error(run):
    assert run("-", stdin=b"")[1].count("error:") == 1


def test_every_truncation_of_a_module(run):
    text = (HEAD + ".entry k(.param .u64 p)\n{\n\t.reg .b64 %rd<2>;\n\tld.param.u64 %rd1, [p];\n\tret;\n}\n").encode()
    for length in range(len(text) - 1):
        status, out, err = run("-", "--format", "json", stdin=text[:length])
        findings = json.loads(out)
        assert err == "" and status == (1 if any(f["severity"] == "error" for f in findings) else 0)
    assert run("-", stdin=text)[0] == 0


# --- formats ----------------------------------------------------------------------------------------------------------


def test_json(run, files):
    status, out, _ = run("--format", "json", "bad.ptx")
    (finding,) = json.loads(out)
    assert status == 1
    assert (finding["file"], finding["line"], finding["column"], finding["end_column"]) == ("bad.ptx", 6, 10, 13)
    assert finding["code"] == "PTX201" and finding["severity"] == "error"


def test_json_without_findings(run, files):
    assert json.loads(run("--format", "json", "good.ptx")[1]) == []


def test_json_requires_is_given_for_versions_and_targets(run):
    text = (
        HEAD.replace("sm_80", "sm_75") + ".entry k() { .reg .b32 r; mov.b32 r, 1; redux.sync.add.s32 r, r, -1; ret; }"
    )
    (finding,) = json.loads(run("--format", "json", stdin=text.encode())[1])
    assert finding["code"] == "PTX302"
    assert finding["requires"] == {"ptx": "7.0", "targets": ["sm_80"]} and finding["section"] == "9.7.13.12"


GENERATED = (
    HEAD + ".entry k() { .reg .b32 %r;\n.loc 1 3 5\n"
    ".loc 1 9 7, function_name $L, inlined_at 1 3 5\nadd.b99 %r, %r, %r;\nret; }\n"
    '.file 1 "k 1.cu"\n.section .debug_str { $L:\n.b8 95, 90, 49, 102, 118, 0\n}\n'
)


def test_findings_name_what_the_line_was_generated_from(run):
    """In all formats; without `.loc` nothing is added."""
    status, out, _ = run("-", stdin=GENERATED.encode())
    lines = out.splitlines()
    at = lines.index("  source: k 1.cu:9")
    assert status == 1 and lines[at + 1] == "          in f(), inlined at k 1.cu:3 in k"
    (found,) = json.loads(run("-", "--format", "json", stdin=GENERATED.encode())[1])
    assert found["source"] == {"file": "k 1.cu", "line": 9} and found["inlined_at"] == [{"file": "k 1.cu", "line": 3}]
    log = json.loads(run("-", "--format", "sarif", stdin=GENERATED.encode())[1])
    related = log["runs"][0]["results"][0]["relatedLocations"]
    places = [place["physicalLocation"] for place in related]
    assert [place["artifactLocation"]["uri"] for place in places] == ["k%201.cu"] * 2
    assert [place["region"] for place in places] == [
        {"startLine": 9, "startColumn": 7},
        {"startLine": 3, "startColumn": 5},
    ]
    assert "source: k 1.cu:9%0A" in run("-", "--format", "github", stdin=GENERATED.encode())[1]
    plain = GENERATED.replace('.file 1 "k 1.cu"', "")
    assert all("source" not in row for row in json.loads(run("-", "--format", "json", stdin=plain.encode())[1]))


def test_github(run, files):
    out = run("--format", "github", "bad.ptx")[1]
    assert out.startswith("::error file=bad.ptx,line=6,col=10,") and out.count("\n") == 1


def test_sarif(run, files):
    document = json.loads(run("--format", "sarif", "bad.ptx", "warn.ptx")[1])
    levels = [result["level"] for result in document["runs"][0]["results"]]
    assert document["version"] == "2.1.0" and levels == ["error", "warning"]


def test_colour(run, files):
    assert "\x1b[" in run("--color", "always", "bad.ptx")[1]
    assert "\x1b[" not in run("--color", "never", "bad.ptx")[1]
    assert "\x1b[" not in run("bad.ptx")[1]


# --- options ----------------------------------------------------------------------------------------------------------


def test_select_and_ignore(run, files):
    assert run("--select", "PTX5", "bad.ptx") == (0, "", "")
    assert run("--ignore", "PTX201,PTX5", "bad.ptx") == (0, "", "")
    assert run("--select", "ptx201", "bad.ptx")[0] == 1


@pytest.mark.parametrize("arguments", [
    ("--select", "PTX999"), ("--ignore", "E501"), ("--target", "sm_99"), ("--ptx-version", "9.9"),
    ("--ptx-version", "new"), ("--format", "xml"), ("--explain", "PTX999"), ("--no-such-option",), ("-j", "0"),
])  # fmt: skip
def test_wrong_usage(run, files, arguments):
    status, out, err = run(*arguments, "good.ptx")
    assert status == 2 and out == "" and err.startswith("ptx-lint: error: ")


def test_targets(run):
    text = HEAD + REDUX
    assert run("--target", "sm_90", stdin=text.encode())[0] == 0
    status, out, _ = run("--target", "sm_75", "--target", "sm_90", stdin=text.encode())
    assert status == 1 and "(target sm_75)" in out and "(target sm_90)" not in out


def test_warnings_of_several_targets(run):
    """Both errors and warnings are looked for under each target."""
    text = HEAD + ".entry k()\n{\n.reg .pred p; .reg .b32 r;\nsetp.eq.s32 p, 1, 1;\nvote.ballot.b32 r, p;\nret;\n}\n"
    arguments = ["--target", "sm_75", "--target", "sm_60"]
    status, out, _ = run(*arguments, stdin=text.encode())
    assert status == 1 and "warning: 'vote' is deprecated" in out
    assert "(target sm_60) [PTX601]" in out and "(target sm_75) [PTX307]" in out
    found = json.loads(run(*arguments, "--format", "json", stdin=text.encode())[1])
    assert [(f["code"], f["target"]) for f in found] == [("PTX307", "sm_75"), ("PTX601", "sm_60")]
    assert "(target sm_75)" in run(*arguments, "--format", "github", stdin=text.encode())[1]
    assert "(target sm_75)" in run(*arguments, "--format", "sarif", stdin=text.encode())[1]
    assert "target" not in json.loads(run("--format", "json", stdin=text.encode())[1])[0]


def test_ptx_version(run):
    text = HEAD + REDUX
    status, out, _ = run("--ptx-version", "6.5", "--target", "sm_80", stdin=text.encode())
    assert status == 1 and "PTX301" in out


def test_statistics(run, files):
    status, out, _ = run("--statistics", "bad.ptx", "warn.ptx")
    assert status == 1 and out.split("\n")[:2] == [
        "      1  PTX201  name is not declared",
        "      1  PTX550  more threads than a CTA can have",
    ]


def test_explain(run):
    status, out, _ = run("--explain", "ptx203")
    assert status == 0 and out.startswith("PTX203: name of the wrong kind\n\nWhat: ") and "\nBetter:\n" in out


@pytest.mark.parametrize("code", ["PTX100", "PTX110", "PTX301", "PTX501", "PTX801"])
def test_explain_knows_every_package(run, code):
    assert run("--explain", code)[1].startswith(f"{code}: ")


def test_requirements(run, files):
    assert run("--requirements", "good.ptx")[1].startswith(
        "good.ptx: needs PTX 2.3, sm_10 or later (declares 8.0, sm_80)"
    )
    found = json.loads(run("--requirements", "--format", "json", "good.ptx")[1])
    assert found["lowest"] == {"ptx": "2.3", "targets": ["sm_10"]}


def test_requirements_of_a_module_that_lies(run):
    text = HEAD.replace("8.0", "6.0").replace("sm_80", "sm_70") + REDUX
    status, out, _ = run("--requirements", stdin=text.encode())
    assert status == 0 and "needs PTX 7.0, sm_80 or later (declares 6.0, sm_70)" in out


def test_requirements_of_a_broken_module(run, files):
    status, out, err = run("--requirements", "bad.ptx", "good.ptx")
    assert status == 1 and out.startswith("good.ptx: needs") and "[PTX201]" in err


def test_requirements_in_other_formats(run):
    text = HEAD + "// first\n" + REDUX
    document = json.loads(run("--requirements", "--format", "sarif", stdin=text.encode())[1])
    results = document["runs"][0]["results"]
    assert [result["level"] for result in results] == ["note", "note"]
    assert results[0]["message"]["text"] == "needs PTX 7.0, sm_80 or later (declares 8.0, sm_80)"
    assert results[1]["locations"][0]["physicalLocation"]["region"]["startLine"] == 5
    lines = run("--requirements", "--format", "github", stdin=text.encode())[1].splitlines()
    assert lines[1].startswith("::notice file=<stdin>,line=5,") and lines[1].endswith("needs PTX 7.0, sm_80 or later")


def test_requirements_that_no_target_meets(run):
    text = HEAD + ".entry k() { .reg .pred p; .reg .b32 r; vote.ballot.b32 r, p; elect.sync r|p, -1; ret; }"
    status, out, _ = run("--requirements", "--format", "json", stdin=text.encode())
    assert status == 1 and json.loads(out)["lowest"] == {"ptx": "8.0", "targets": []}


def test_requirements_go_on_after_an_unreadable_file(run, files):
    status, out, err = run("--requirements", "absent.ptx", "good.ptx")
    assert status == 2 and out.startswith("good.ptx: needs") and "absent.ptx: cannot be read" in err


GENERIC = HEAD + ".entry k()\n{\n.reg .b32 r;\n.shared .b32 t[4];\nst.shared.b32 [t], 1;\nld.b32 r, [t];\nret;\n}\n"


def test_diff_and_fix(run, files):
    path = files / "generic.ptx"
    path.write_text(GENERIC)
    status, out, _ = run("--diff", "generic.ptx")
    assert status == 1 and "+ld.shared.b32 r, [t];" in out and path.read_text() == GENERIC
    status, out, err = run("--fix", "generic.ptx")
    assert (status, out) == (0, "") and "1 fix applied" in err
    assert "ld.shared.b32 r, [t];" in path.read_text()
    assert run("--diff", "generic.ptx") == (0, "", "")


def test_fix_of_standard_input_goes_to_standard_output(run):
    status, out, _ = run("--fix", stdin=GENERIC.encode())
    assert status == 0 and out == GENERIC.replace("ld.b32", "ld.shared.b32")


@pytest.mark.parametrize(("change", "status"), [
    (lambda data: data.replace(b"\n", b"\r\n"), 0), (lambda data: b"\xef\xbb\xbf" + data, 1),
    (lambda data: b"// caf\xe9\n" + data, 1),
])  # fmt: skip
def test_fixes_keep_line_ends_and_encoding(run, files, change, status):
    """What is not ASCII stays, and stays an error."""
    path = files / "generic.ptx"
    path.write_bytes(change(GENERIC.encode()))
    assert run("--fix", "generic.ptx")[0] == status
    assert path.read_bytes() == change(GENERIC.replace("ld.b32", "ld.shared.b32").encode())


def test_what_fixes_leave_of_standard_input_is_reported(run):
    status, out, err = run("--fix", stdin=GENERIC.replace("ret;", "nonsense.u32 r;").encode())
    assert status == 1 and "ld.shared.b32" in out and "nonsense.u32 r;" in out
    assert "<stdin>:" in err and "nonsense" in err


# --- settings ---------------------------------------------------------------------------------------------------------


def test_pyproject(run, files):
    (files / "pyproject.toml").write_text('[tool.ptx-lint]\nignore = ["PTX201"]\n')
    assert run("bad.ptx") == (0, "", "")
    assert run("--ignore", "PTX5", "bad.ptx")[0] == 1, "options win"


def test_the_pyproject_nearest_to_each_file_counts(run, files, monkeypatch):
    """As with ruff: looked for from each file's folder up, and one without our section is passed over."""
    (files / "pyproject.toml").write_text('[tool.ptx-lint]\nignore = ["PTX201"]\n')
    inner = files / "inner"
    inner.mkdir()
    (inner / "bad.ptx").write_text(BAD)
    monkeypatch.chdir(inner)
    assert run("../bad.ptx") == (0, "", "") and run("bad.ptx") == (0, "", "")
    (inner / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert run("bad.ptx") == (0, "", "")
    (inner / "pyproject.toml").write_text("[tool.ptx-lint]\nstrict = true\n")
    status, out, _ = run("bad.ptx", "../bad.ptx", "../warn.ptx")
    assert status == 1 and out.count(": error: ") == 1 and out.count("PTX550") == 1
    assert run("../warn.ptx")[0] == 0
    (inner / "warn.ptx").write_text(WARN)
    assert run("warn.ptx")[0] == 1, "strict, there"


def test_the_pyproject_of_standard_input(run, files, monkeypatch):
    (files / "pyproject.toml").write_text('[tool.ptx-lint]\nignore = ["PTX201"]\n')
    inner = files / "inner"
    inner.mkdir()
    (inner / "pyproject.toml").write_text('[tool.ptx-lint]\nselect = ["PTX"]\n')
    assert run("-", stdin=BAD.encode())[0] == 0
    assert run("-", "--stdin-filename", "inner/x.ptx", stdin=BAD.encode())[0] == 1
    monkeypatch.chdir(inner)
    assert run("-", stdin=BAD.encode())[0] == 1


def test_settings_of_many_files(run, files):
    """Worker processes know the settings of each file."""
    (files / "pyproject.toml").write_text('[tool.ptx-lint]\nignore = ["PTX201"]\n')
    inner = files / "inner"
    inner.mkdir()
    (inner / "pyproject.toml").write_text("[tool.ptx-lint]\n")
    names = [f"{folder}{n}.ptx" for folder in ("", "inner/") for n in range(9)]
    for name in names:
        (files / name).write_text(BAD)
    status, out, _ = run("-j", "2", *names)
    assert status == 1 and out.count("PTX201") == 9


def test_unknown_codes(run, files):
    status, out, err = run("--select", "PTX20,PTX9Q9", "good.ptx")
    assert (status, out) == (2, "") and "unknown code 'PTX9Q9'" in err
    assert "did you mean PTX203" in run("--ignore", "PT203", "good.ptx")[2]


def test_all_codes(run, files):
    assert run("--ignore", "all", "bad.ptx") == (0, "", "")
    assert run("--ignore", "ALL", "--select", "ptx2", "bad.ptx")[0] == 1
    assert run("--select", "all", "--ignore", "PTX201", "bad.ptx") == (0, "", "")


def test_config_file(run, files):
    (files / "strict.toml").write_text('strict = true\ntarget = "sm_90"\nselect = ["PTX5"]\n')
    assert run("--config", "strict.toml", "warn.ptx")[0] == 1


@pytest.mark.parametrize(
    "text", ["strict = 1", "colour = 'red'", "select = [1]", "not toml", "[tool.ptx-lint]\nfix = 1"]
)
def test_bad_settings(run, files, text):
    (files / "x.toml").write_text(text)
    status, _, err = run("--config", "x.toml", "good.ptx")
    assert status == 2 and "x.toml" in err


def test_missing_settings(run, files):
    assert run("--config", "none.toml", "good.ptx")[0] == 2


# --- containers -------------------------------------------------------------------------------------------------------


def test_container(run, files):
    from ptxtools.container import write
    from ptxtools.syntax import parse

    (files / "good.ptxo").write_bytes(write(parse(GOOD, "good.ptx").module))
    assert run("good.ptxo") == (0, "", "")
    assert run("--ptx-version", "7.0", "--target", "sm_90", "good.ptxo")[0] == 1


# --- as a process -----------------------------------------------------------------------------------------------------


def process(*arguments, **more):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, "-m", "ptxtools", "lint", *arguments], capture_output=True, env=environment,
                          timeout=HANG, check=False, **more)  # fmt: skip


def test_process_from_a_pipe(files):
    done = process("--format", "github", input=BAD.encode(), cwd=files)
    assert done.returncode == 1 and done.stdout.startswith(b"::error file=<stdin>") and done.stderr == b""


def test_parallel_gives_the_same(run, files):
    names = ["bad.ptx", "warn.ptx", "good.ptx"] * 3
    alone = run("--format", "json", "-j", "1", *names)
    together = process("--format", "json", "-j", "2", *names, cwd=files)
    assert together.returncode == 1 and together.stdout.decode() == alone[1]


def test_closed_pipe_is_quiet(files):
    many = ["bad.ptx"] * 300
    command_line = [sys.executable, "-m", "ptxtools", "lint", "-j", "1", *many]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command_line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=files,
                          env=environment) as child:  # fmt: skip
        child.stdout.read(10)
        child.stdout.close()
        assert child.stderr.read() == b""
    assert child.returncode in (0, 1)


def test_help_lists_what_exists(run):
    status, out, _ = run("--help")
    assert status == 0 and "Examples:" in out
    for option in ("--format", "--target", "--requirements", "--select", "--explain", "--fix", "--config", "--jobs"):
        assert option in out
    assert run("-h")[1] == out


def test_version(run):
    status, out, _ = run("--version")
    assert status == 0 and out.startswith("ptx-lint ")


@pytest.mark.parametrize("body", [
    ".reg .b33 %r<4>; add.s32 %r1, %r2, %r3;",
    ".reg .b32 %r<4>; bra DONE; DONE,: ret;",
    ".reg .b32 %r<4> add.s32 %r1, %r2, %r3;",
])  # fmt: skip
def test_a_syntax_mistake_has_no_echo(run, body):
    _, out, _ = run("--format", "json", "--select", "PTX1,PTX2", stdin=f"{HEAD}.entry k()\n{{ {body} ret; }}".encode())
    assert len(json.loads(out)) == 1


def test_other_mistakes_are_found_beside_a_syntax_mistake(run):
    body = ".reg .b32 %r<4>;\n\n\nadd.s32 %r1 %r2;\n\n\nadd.s32 %r1, %x, 1;"
    _, out, _ = run("--format", "json", "--select", "PTX1,PTX2", stdin=f"{HEAD}.entry k()\n{{ {body} ret; }}".encode())
    assert [f["code"] for f in json.loads(out)] == ["PTX100", "PTX201"]


@pytest.mark.parametrize("redirection", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_internal_error(files, redirection):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(f"'{sys.executable}' -m ptxtools lint bad.ptx - {redirection}", shell=True, cwd=files,
                          env=environment, capture_output=True, input=b"", timeout=HANG, check=False)  # fmt: skip
    assert done.returncode in (1, 2) and b"internal" not in done.stderr and b"Traceback" not in done.stderr


def test_output_that_cannot_be_encoded_is_escaped(files):
    (files / "é.ptx").write_text(BAD)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-m", "ptxtools", "lint", "--format", "json", "é.ptx"], capture_output=True,
                          cwd=files, env=environment, timeout=HANG, check=False)  # fmt: skip
    assert done.returncode == 1 and done.stderr == b"" and json.loads(done.stdout)[0]["file"] == "é.ptx"


def test_start_loads_no_rules():
    """What only checking needs is not loaded for `--version`, `--help` and wrong usage."""
    code = "import sys, ptxtools.cli.lint; print([m for m in sys.modules if m.startswith('ptxtools.check')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_version_of_the_package():
    done = subprocess.run([sys.executable, "-m", "ptxtools", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("ptxtools ")
