"""PLY's tables: clean grammar, cached outside of the package, usable everywhere."""

import os
import subprocess
import sys

from ptxtools.syntax import tables

from .syntaxtools import BENCH, ROOT

PARSE = "import sys; from ptxtools.syntax import parse; r = parse(open(sys.argv[1]).read(), cache={cache}); "
COUNT = "assert not r.diagnostics; print(sum(len(e.body.items) for e in r.module.entries))"


def run(*flags, cache=True, **environment):
    return subprocess.run(
        [sys.executable, *flags, "-c", PARSE.format(cache=cache) + COUNT, str(BENCH[-1])],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_action_is_used():
    actions = {action for _, _, action in tables.productions()}
    assert actions == {name for name in vars(tables.Actions) if name.startswith("p_")}
    assert tables.productions()[0][0] == "unit"


def test_optimised_python(tmp_path):
    """`python -OO` drops docstrings, from which PLY usually takes grammar and patterns."""
    plain = run(cache=False, PTXTOOLS_CACHE=str(tmp_path / "a"))
    optimised = run("-OO", cache=False, PTXTOOLS_CACHE=str(tmp_path / "b"))
    assert plain.stdout == optimised.stdout != ""
    assert optimised.stderr == ""


def test_tables_are_kept_outside_of_the_package(tmp_path):
    before = {path for path in (ROOT / "ptxtools" / "syntax").iterdir() if path.suffix != ".pyc"}
    run(PTXTOOLS_CACHE=str(tmp_path))
    names = sorted(path.name for path in tmp_path.iterdir())
    assert [name.split("-")[0] for name in names] == ["shapes"]
    stamps = [path.stat().st_mtime_ns for path in sorted(tmp_path.iterdir())]
    run(PTXTOOLS_CACHE=str(tmp_path))
    assert [path.stat().st_mtime_ns for path in sorted(tmp_path.iterdir())] == stamps
    assert {path for path in (ROOT / "ptxtools" / "syntax").iterdir() if path.suffix != ".pyc"} == before


def test_the_tables_of_the_package_are_those_of_its_grammar():
    """After a change of the grammar: make tables."""
    assert tables.shipped(tables.grammar_key()) == tables.generate()


def test_a_changed_grammar_has_tables_of_its_own(tmp_path, monkeypatch):
    made = tables.shipped(tables.grammar_key())
    monkeypatch.setenv("PTXTOOLS_CACHE", str(tmp_path))
    monkeypatch.setattr(tables, "PRECEDENCE", (*tables.PRECEDENCE, ("left", "UNUSED")))
    monkeypatch.setattr(tables, "generate", lambda: made)
    assert tables.shipped(tables.grammar_key()) is None
    assert tables.parser(tables.Actions()) is not None
    (kept,) = tmp_path.iterdir()
    assert kept.name.startswith("grammar-")
    monkeypatch.setattr(tables, "generate", None)
    assert tables.parser(tables.Actions()) is not None
    for damaged in ("{", '{"key": "x"}', "[]"):
        (tmp_path / "damaged.json").write_text(damaged)
        monkeypatch.setattr(tables, "SHIPPED", str(tmp_path / "damaged.json"))
        assert tables.shipped("x") is None


def test_a_cache_that_cannot_be_written_is_no_problem(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    for folder in (blocked, blocked / "below", "/dev/null/x", "/proc/no/such"):
        result = run(PTXTOOLS_CACHE=str(folder))
        assert result.stderr == ""
        assert result.stdout.strip().isdigit()


def test_user_cache_directory(tmp_path):
    environment = {"HOME": str(tmp_path), "XDG_CACHE_HOME": ""}
    if "PTXTOOLS_CACHE" in os.environ:
        environment["PTXTOOLS_CACHE"] = ""
    assert run(**environment).stdout.strip().isdigit()
    assert any((tmp_path / ".cache" / "ptxtools").iterdir())
