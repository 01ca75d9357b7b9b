"""ptx-as as users meet it: what it writes, prints and refuses, and its exit status."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ptxtools.cli import assemble
from ptxtools.container import read
from ptxtools.inputs import detect
from ptxtools.inputs.fatbin import embedded
from ptxtools.syntax import parse
from tests.container.samples import BINARIES, EVERYTHING, ROOT

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
CALLER = HEAD + ".extern .func g();\n.visible .entry k() { call g; ret; }\n"
CALLEE = HEAD + ".visible .func g() { ret; }\n.visible .func unused() { ret; }\n"
SIMPLE = HEAD + ".visible .entry k(.param .u32 n) { ret; }\n"
BROKEN = HEAD + ".visible .entry k() { nonsense.u32 %r1; ret; }\n"


@pytest.fixture
def run(tmp_path, monkeypatch, capfdbinary):
    """Run ptx-as in an empty folder with these files; (status, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, files=None):
        for name, text in (files or {}).items():
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises(SystemExit) as ended:
            assemble.main([str(a) for a in arguments])
        out, err = capfdbinary.readouterr()
        assert b"Traceback" not in err
        return ended.value.code, out, err.decode()

    return run


def made():
    return sorted(name for name in os.listdir() if not name.endswith(".ptx"))


def test_the_default_output_is_beside_the_input(run):
    assert run("sub/a.ptx", files={"sub/a.ptx": SIMPLE}) == (0, b"", "")
    assert os.listdir("sub") == ["a.ptx", "a.ptxo"] or sorted(os.listdir("sub")) == ["a.ptx", "a.ptxo"]
    with open("sub/a.ptxo", "rb") as file:
        assert read(file.read()) == parse(SIMPLE, "a").module


def test_output_and_disassembly(run):
    assert run("a.ptx", "-o", "x.bin", files={"a.ptx": SIMPLE})[0] == 0
    assert made() == ["x.bin"]
    status, out, _ = run("-d", "x.bin")
    assert status == 0 and parse(out.decode(), "out").module == parse(SIMPLE, "in").module
    assert run("--disassemble", "x.bin", "-o", "back.txt")[:2] == (0, b"")
    with open("back.txt", "rb") as file:
        assert file.read() == out


def test_standard_output(run):
    status, out, _ = run("a.ptx", "-o", "-", files={"a.ptx": SIMPLE})
    assert status == 0 and detect(out) == "ptxo" and made() == []


def test_standard_input(tmp_path):
    command = [sys.executable, "-m", "ptxtools", "as"]
    where = {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": str(ROOT)}, "capture_output": True}
    done = subprocess.run([*command, "-o", "-"], input=SIMPLE.encode(), **where)
    assert done.returncode == 0 and read(done.stdout) == parse(SIMPLE, "x").module
    again = subprocess.run([*command, "-d", "-"], input=done.stdout, **where)
    assert parse(again.stdout.decode(), "x").module == parse(SIMPLE, "x").module
    refused = subprocess.run(command, input=SIMPLE.encode(), **where)
    assert refused.returncode == 2 and b"needs -o" in refused.stderr


def test_errors_are_reported_and_nothing_is_written(run):
    status, out, err = run("-c", "good.ptx", "bad.ptx", files={"good.ptx": SIMPLE, "bad.ptx": BROKEN})
    assert (status, out) == (1, b"") and "bad.ptx:4:" in err and "error" in err
    assert made() == []


def test_an_earlier_output_survives_an_error(run):
    run("a.ptx", files={"a.ptx": SIMPLE})
    before = Path("a.ptxo").read_bytes()
    assert run("a.ptx", files={"a.ptx": BROKEN})[0] == 1
    assert Path("a.ptxo").read_bytes() == before and made() == ["a.ptxo"]


@pytest.mark.parametrize("mode, coloured", [("always", True), ("never", False), ("auto", False)])
def test_errors_are_coloured_as_told(run, mode, coloured):
    _, _, err = run("--color", mode, "a.ptx", files={"a.ptx": BROKEN})
    assert ("\x1b[" in err) == coloured


def test_errors_of_all_inputs_are_reported(run):
    _, _, err = run("a.ptx", "b.ptx", files={"a.ptx": BROKEN, "b.ptx": BROKEN})
    assert "a.ptx:4:" in err and "b.ptx:4:" in err


def test_linking(run):
    assert run("a.ptx", "b.ptx", "-o", "ab.ptxo", files={"a.ptx": CALLER, "b.ptx": CALLEE})[0] == 0
    status, out, _ = run("-d", "ab.ptxo")
    assert status == 0 and b"call" in out and b".visible .func g" in out


def test_separate_containers_and_linking_them(run):
    assert run("-c", "a.ptx", "b.ptx", files={"a.ptx": CALLER, "b.ptx": CALLEE})[0] == 0
    assert made() == ["a.ptxo", "b.ptxo"]
    assert run("a.ptxo", "b.ptxo", "-o", "all.ptxo")[0] == 0
    assert run("a.ptx", "b.ptx", "-o", "all2.ptxo")[0] == 0
    assert Path("all.ptxo").read_bytes() == Path("all2.ptxo").read_bytes()


def test_linking_reports_what_is_missing(run):
    status, _, err = run("a.ptx", files={"a.ptx": CALLER})
    assert status == 1 and "undefined symbol 'g', referenced from 'k'" in err and made() == []


def test_dead_code_goes_with_gc(run):
    run("a.ptx", "b.ptx", "--gc", "-o", "x.ptxo", files={"a.ptx": CALLER, "b.ptx": CALLEE})
    assert b"unused" not in run("-d", "x.ptxo")[1]


def test_the_same_input_gives_the_same_bytes(run):
    outputs = [run("-c", name, "-o", "-", files={name: EVERYTHING}) for name in ("a.ptx", "other.ptx")]
    assert outputs[0] == outputs[1] and outputs[0][0] == 0 and detect(outputs[0][1]) == "ptxo"


def test_debug_and_strip_debug(run):
    text = HEAD + '.file 1 "a.cu"\n.visible .entry k() {\n.loc 1 5 1\nret; }\n'
    assert b"orig.ptx" in run("-g", "orig.ptx", "-o", "-", files={"orig.ptx": text})[1]
    assert b"orig.ptx" not in run("orig.ptx", "-o", "-")[1]
    run("orig.ptx", "--strip-debug", "-o", "s.ptxo")
    out = run("-d", "s.ptxo")[1]
    assert b".loc" not in out and b".file" not in out


def test_compressed(run):
    text = (ROOT / "testdata/bench/ptx/nbody.ptx").read_text()
    plain = run("a.ptx", "-o", "-", files={"a.ptx": text * 1})[1]
    small = run("a.ptx", "-o", "-", "--compress")[1]
    assert len(small) < len(plain) and read(small) == read(plain)


def test_target_and_version(run):
    text = HEAD + ".visible .entry k() {\n.reg .b32 %r<3>;\nredux.sync.add.s32 %r1, %r2, 0xffffffff;\nret; }\n"
    assert run("a.ptx", files={"a.ptx": text})[0] == 0
    status, _, err = run("a.ptx", "--target", "sm_75")
    assert status == 1 and "sm_80" in err
    run("a.ptx", "--target", "sm_90a", "--ptx-version", "8.3")
    out = run("-d", "a.ptxo")[1].decode()
    assert ".version 8.3\n.target sm_90a" in out
    assert run("a.ptxo", "--target", "sm_75", "-o", "x")[0] == 1


def test_info(run):
    assert run("-c", "a.ptx", files={"a.ptx": EVERYTHING})[0] == 0
    status, out, _ = run("--info", "a.ptxo")
    assert status == 0 and b"entry kernel (.visible)" in out and b".text.kernel" in out
    status, out, _ = run("--info", "--format", "json", "a.ptxo")
    said = json.loads(out)
    assert said["file"] == "a.ptxo" and said["entries"][0]["name"] == "kernel"
    assert said["sections"][0]["name"] == ".note.ptxtools"


def test_info_about_text(run):
    assert b"parameter .param .u32 n" in run("--info", "a.ptx", files={"a.ptx": SIMPLE})[1]


def test_binaries(run):
    status, out, _ = run("-d", BINARIES / "libsmall.so")
    assert status == 0 and b".entry scale(" in out
    out = run("-d", BINARIES / "several.fatbin")[1]
    assert out.startswith(b"// entry 1 of 2: sm_80\n") and b"// entry 2 of 2: sm_90a\n" in out
    assert run(BINARIES / "object.o", "-o", "o.ptxo")[0] == 0
    assert b".entry scale(" in run("-d", "o.ptxo")[1]
    status, _, err = run("-d", BINARIES / "bare.cubin")
    assert status == 1 and "PTX803" in err


def test_disassembling_text_is_an_error(run):
    status, _, err = run("-d", "a.ptx", files={"a.ptx": SIMPLE})
    assert status == 1 and "this is PTX text already, neither a container nor a binary" in err


def test_fatbins(run):
    assert run("--emit", "fatbin", "a.ptx", files={"a.ptx": SIMPLE})[0] == 0
    (entry,) = embedded(Path("a.fatbin").read_bytes(), "a.fatbin")
    assert entry.target == "sm_80" and parse(entry.text.decode(), "x").module == parse(SIMPLE, "y").module


def test_response_files(run):
    files = {"a b.ptx": SIMPLE, "r": "'a b.ptx' @more", "more": "-o x.ptxo\n-v"}
    status, _, err = run("@r", files=files)
    assert status == 0 and err.startswith("x.ptxo: ") and "x.ptxo" in made()


@pytest.mark.parametrize("files, message", [
    ({"r": "@r"}, "nested too deeply"), ({"r": "'open"}, "not a response file"), ({}, "cannot be read"),
])  # fmt: skip
def test_faulty_response_files(run, files, message):
    status, _, err = run("@r", files=files)
    assert status == 2 and message in err


@pytest.mark.parametrize("arguments, message", [
    (["-d", "--info", "a.ptx"], "exclude each other"),
    (["--format", "json", "a.ptx"], "requires --info"),
    (["-d", "-g", "a.ptx"], "cannot be used with"),
    (["-c", "a.ptx", "b.ptx", "-o", "x"], "-o cannot be used with -c and several inputs"),
    (["-c", "--gc", "a.ptx"], "linking"),
    (["-g", "--strip-debug", "a.ptx"], "exclude each other"),
    (["-MMD", "a.ptx", "-o", "-"], "needs -MF"),
    (["-MMD", "-MF", "-", "a.ptx", "-o", "-"], "both be written to standard output"),
    (["-MP", "a.ptx"], "-MP requires a dependency file"),
    (["-MQ", "x", "a.ptx"], "-MT requires a dependency file"),
    (["-MT"], "requires an argument"),
    (["-MD", "a.ptx", "-o", "x.d"], "is the output"),
    (["-MD", "-MF", "a.ptx", "a.ptx", "-o", "x"], "a.ptx is an input"),
    (["-d", "-MT", "x", "a.ptx"], "-MT cannot be used with --disassemble"),
    (["--target", "sm_9", "a.ptx"], "unknown target"),
    (["--target", "volta", "a.ptx"], "unknown target"),
    (["--ptx-version", "eight", "a.ptx"], "not a version"),
    (["--ptx-version", "99.9", "a.ptx"], "unknown PTX version '99.9'"),
    (["--emit", "exe", "a.ptx"], "exe"),
    (["missing.ptx"], "cannot be read"),
    (["a.ptx", "-o", "no/such/folder/x"], "cannot be written"),
    (["a.ptx", "-o", "a.ptx"], "overwritten"),
    (["--no-such-option"], "No such option"),
])  # fmt: skip
def test_wrong_usage(run, arguments, message):
    status, out, err = run(*arguments, files={"a.ptx": SIMPLE, "b.ptx": SIMPLE.replace(" k(", " j(")})
    assert (status, out) == (2, b"") and message in err, err
    assert Path("a.ptx").read_text() == SIMPLE and made() == []


def test_damaged_containers(run):
    run("a.ptx", files={"a.ptx": SIMPLE})
    data = Path("a.ptxo").read_bytes()
    for arguments in (["-d"], ["--info"], ["-o", "x"]):
        status, _, err = run(*arguments, "bad.ptxo", files={"bad.ptxo": data[:-1]})
        assert status == 1 and "PTX801" in err and "bad.ptxo" in err


@pytest.mark.parametrize("data", [b"\0\1\2\3" * 50, b"\xff" * 40, b"\x7fELF", b"\x50\xed\x55\xba"])
def test_noise(run, data):
    for arguments in (["-o", "x"], ["-d"], ["--info"]):
        status, _, err = run(*arguments, "noise", files={"noise": data})
        assert status == 1 and "error" in err


def test_help_and_version(run):
    status, out, _ = run("-h")
    text = out.decode()
    assert status == 0 and "ptx-as -d a.out" in text
    for option in ("-o", "-c", "-g", "--disassemble", "--info", "--format", "--emit", "--strip-debug", "--compress",
                   "--gc", "-MD, -MMD", "-MF", "-MP", "-MT", "-MQ", "--target", "--ptx-version", "--color", "--quiet",
                   "--verbose"):  # fmt: skip
        assert option in text, option
    assert run("--version")[0] == 0


def test_outputs_appear_whole(run, monkeypatch):
    """An output is renamed into place: a reader never sees half of it, and a failure leaves nothing behind."""

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    status, _, err = run("a.ptx", files={"a.ptx": SIMPLE})
    assert status == 2 and "No space left" in err and made() == []


def several():
    """Modules that call each other, with line information."""
    files = {"a.ptx": CALLER, "b.ptx": CALLEE}
    for n in range(4):
        body = f"{{\n.reg .b32 %r<3>;\n.loc 1 {n + 1} 3\nadd.s32 %r1, %r2, {n};\nret;\n}}\n"
        files[f"c{n}.ptx"] = f'{HEAD}.file 1 "c{n}.cu"\n.global .u32 own = {n};\n.visible .entry e{n}()\n{body}'
    return files


@pytest.mark.share(3)
@pytest.mark.parametrize("options", [[], ["-g"], ["--gc"], ["--target", "sm_90"], ["--emit", "fatbin"]])
def test_inputs_checked_at_a_time_give_the_same_bytes(run, options):
    names = list(several())
    assert run("-j", "1", *options, *names, "-o", "one", files=several())[0] == 0
    assert run("-j", "3", *options, *names, "-o", "many") == (0, b"", "")
    assert Path("one").read_bytes() == Path("many").read_bytes()


@pytest.mark.parametrize("options", [[], ["-g"], ["--compress"]])
def test_separate_outputs_made_at_a_time_are_the_same(run, options):
    names = list(several())
    assert run("-j", "1", "-c", *options, *names, files=several())[0] == 0
    one = {name: Path(name).read_bytes() for name in made()}
    for name in one:
        Path(name).unlink()
    assert run("-j", "3", "-c", *options, *names)[0] == 0
    assert {name: Path(name).read_bytes() for name in made()} == one and len(one) == len(names)


@pytest.mark.parametrize("files", [
    {**several(), "c1.ptx": BROKEN}, {**several(), "b.ptx": SIMPLE}, {**several(), "d.ptx": several()["c1.ptx"]},
])  # fmt: skip
def test_errors_are_the_same_at_a_time(run, files):
    """An input with errors, an undefined symbol, a duplicate one."""
    one = run("-j", "1", *files, "-o", "x", files=files)
    assert one[0] == 1 and one[2] and run("-j", "3", *files, "-o", "x") == one
    missing = run("-j", "2", "a.ptx", "none.ptx", "-o", "x")
    assert missing[0] == 2 and "none.ptx: cannot be read" in missing[2] and "x" not in made()
