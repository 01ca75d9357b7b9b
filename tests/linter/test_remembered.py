"""Findings of texts that were linted before."""

import os

import pytest

from ptxtools import cache
from ptxtools.cli.lint import command
from ptxtools.linter import engine
from ptxtools.linter.remembered import Remembered
from tests.work import calls

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
GOOD = HEAD + ".entry k()\n{\n    ret;\n}\n"
BAD = (
    HEAD
    + ".entry k()\n{\n    .reg .b32 %r<3>;\n    mov.b32 %r1, %r9;\n    add.s32 %r2, %r1, 1\n    bogus;\n    ret;\n}\n"
)


@pytest.fixture
def lint(tmp_path, monkeypatch, capsys):
    """ptx-lint with a cache of its own: whether it looked at the text, the status and the output."""
    monkeypatch.setenv("PTXTOOLS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    looked = []
    plain = engine.findings_of

    def look(*args, **kinds):
        looked.append(args)
        return plain(*args, **kinds)

    monkeypatch.setattr(engine, "findings_of", look)

    def run(text, *arguments, name="k.ptx"):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        looked.clear()
        status = command.main([name, *arguments], prog_name="ptx-lint", standalone_mode=False)
        return bool(looked), status, capsys.readouterr().out

    return run


def test_a_text_that_has_not_changed_is_not_read_again(lint):
    for text in (GOOD, BAD):
        for more in ((), ("--format", "json"), ("--format", "sarif")):
            first = lint(text, *more)
            assert lint(text, *more) == (False, *first[1:])
    assert lint(BAD)[1] == 1


def test_whatever_decides_the_findings_is_asked_for(lint):
    assert lint(BAD)[0]
    for more in (("--target", "sm_90"), ("--select", "PTX2"), ("--ignore", "PTX2"), ("--ptx-version", "7.0")):
        looked, *shown = lint(BAD, *more)
        assert looked
        assert lint(BAD, *more) == (False, *shown)
    assert lint(BAD, name="other.ptx")[0]
    assert lint(BAD + "\n")[0]
    assert not lint(BAD)[0]


def test_no_cache_neither_uses_nor_keeps_findings(lint, tmp_path):
    assert lint(BAD, "--no-cache")[0]
    assert not (tmp_path / "cache" / "findings").exists()
    first = lint(BAD)
    assert first[0]
    assert lint(BAD, "--no-cache") == first
    assert lint(BAD) == (False, *first[1:])


def test_changed_code_is_asked_for(lint, monkeypatch):
    assert lint(BAD)[0]
    monkeypatch.setattr(cache, "code_state", lambda maker: "changed")
    assert lint(BAD)[0]


def test_bytes_that_are_no_text_are_remembered_with_their_places(lint):
    text = BAD.encode().replace(b"bogus", b"// \xff\xfe\n bogus")
    first = lint(text)
    assert first[0] or first[1] == 1
    assert lint(text)[1:] == first[1:]


def test_a_damaged_file_counts_as_absent(lint, tmp_path):
    first = lint(BAD)
    for file in (tmp_path / "cache" / "findings").iterdir():
        file.write_bytes(file.read_bytes()[:-3])
    assert lint(BAD) == first
    for file in (tmp_path / "cache" / "findings").iterdir():
        data = file.read_bytes()
        file.write_bytes(cache._seal(file.name.removesuffix(".bin").rpartition("-")[2], b"no pickle") + b"no pickle")
        assert data != file.read_bytes()
    assert lint(BAD) == first


def test_a_folder_that_cannot_be_written_does_not_matter(lint, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PTXTOOLS_CACHE", str(tmp_path / "file" / "below"))
    assert lint(BAD)[:2] == lint(BAD)[:2] == (True, 1)


def test_old_files_are_removed(tmp_path, monkeypatch):
    monkeypatch.setenv("PTXTOOLS_CACHE", str(tmp_path))
    monkeypatch.setattr("ptxtools.linter.remembered.MOST_FILES", 8)
    monkeypatch.setattr(Remembered, "_prunes", lambda self: True)
    for number in range(20):
        Remembered(b"%d" % number, "k.ptx", ()).store([])
    assert len(os.listdir(tmp_path / "findings")) <= 8
    assert Remembered(b"19", "k.ptx", ()).recall() == []
    assert Remembered(b"0", "k.ptx", ()).recall() is None


def test_finding_is_recalled_without_the_rules(lint):
    lint(GOOD)
    assert calls(lambda: lint(GOOD)) < 3000  # of which most are click's
