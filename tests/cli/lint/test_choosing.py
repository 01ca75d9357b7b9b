"""Which findings count: settings for some files, comments that silence nothing, and options that exclude each other."""

import pytest

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
EIGHTH = HEAD + ".entry k() { .reg .b32 r; mov.b32 r, 1; div.u32 r, r, 8; ret; }COMMENT\n"


@pytest.mark.parametrize(("pattern", "codes", "left"), [
    ("w.ptx", '["PTX702"]', []),
    ("gen/*.ptx", '["PTX7"]', ["w.ptx"]),
    ("**/w.ptx", '["all"]', []),
    ("gen/**", '["PTX501"]', ["gen/w.ptx", "w.ptx"]),
])  # fmt: skip
def test_codes_that_are_not_reported_in_some_files(lint, pattern, codes, left):
    for name in ("w.ptx", "gen/w.ptx"):
        lint.put(name, EIGHTH.replace("COMMENT", ""))
    lint.put("pyproject.toml", f'[tool.ptx-lint]\n[tool.ptx-lint.per-file-ignores]\n"{pattern}" = {codes}\n')
    for more in ([], ["--select", "PTX702"]):
        status, out, _ = lint("--strict", "gen/w.ptx", "w.ptx", "--format", "github", *more)
        assert [line.partition("file=")[2].partition(",")[0] for line in out.splitlines()] == left
        assert status == bool(left)


def test_nothing_is_mended_that_is_not_reported(lint):
    path = lint.put("w.ptx", EIGHTH.replace("COMMENT", ""))
    lint.put("pyproject.toml", '[tool.ptx-lint.per-file-ignores]\n"w.ptx" = ["PTX702"]\n')
    assert lint("--fix", "w.ptx") == (0, "", "") and "div.u32" in path.read_text()


@pytest.mark.parametrize("value", ['"PTX7"', "[1]", '{"w.ptx" = 1}'])
def test_settings_for_files_that_are_none(lint, value):
    lint.put("w.ptx", EIGHTH.replace("COMMENT", ""))
    lint.put("pyproject.toml", f"[tool.ptx-lint]\nper-file-ignores = {value}\n")
    assert lint("w.ptx")[0] == 2


@pytest.mark.parametrize(("comment", "says"), [
    (" // ptx-lint: disable", "it names no code"),
    (" // ptx-lint: disable=", "it names no code"),
    (" // ptx-lint: disable-file=PTX70O", "no rule has the code PTX70O"),
    (" // ptx-lint: disable=PTX702,PTX998", "no rule has the code PTX998"),
    (" /* ptx-lint: disable=PTX702 */", "only a comment that begins with // is looked at"),
    (" // ptx-lint: disable=PTX702 for now", None),
    (" // ptx-lint: disable=all", None),
    (" // ptx-lint finds this, and can disable it", None),
    (" // ptx-run: disable=racechek", "no checker is called racechek"),
    (" // ptx-run: disable=racecheck, sync, what", "no checker is called what"),
    (" // ptx-run: disable", "it names no checker"),
    (" // ptx-run: disable=race, synccheck since nobody looks", None),
])  # fmt: skip
def test_a_comment_that_silences_nothing(lint, comment, says):
    lint.put("w.ptx", EIGHTH.replace("COMMENT", comment))
    out = lint("w.ptx")[1]
    assert (f"this comment silences nothing: {says}" in out) if says else "PTX611" not in out


def test_a_comment_that_is_no_longer_needed(lint):
    text = EIGHTH.replace("COMMENT", " // ptx-lint: disable=PTX702\n// ptx-lint: disable=PTX501\n// why")
    text = (
        text.replace(".address", "// ptx-lint: disable-file=PTX608\n.address")
        + "// ptx-lint: disable-file=PTX5,PTX702\n"
    )
    path = lint.put("w.ptx", text)
    assert "PTX611" not in lint("w.ptx")[1]
    out = lint("--select", "all,PTX611", "w.ptx")[1]
    assert out.count("[PTX611]") == 2 and "nothing is found here that PTX5 would silence" in out
    assert "PTX611" not in lint("--select", "PTX7,PTX611", "w.ptx")[1]  # others may be found in another run
    lint("--fix", "--select", "all,PTX611", "w.ptx")
    assert path.read_text() == text.replace("// ptx-lint: disable=PTX501\n", "")


@pytest.mark.parametrize(("first", "second"), [
    ("--requirements", "--fix"), ("--requirements", "--diff"), ("--requirements", "--statistics"),
    ("--reformat", "--fix"), ("--check-format", "--statistics"), ("--diff", "--statistics"),
])  # fmt: skip
def test_options_that_exclude_each_other(lint, first, second):
    lint.put("w.ptx", EIGHTH.replace("COMMENT", ""))
    status, _, err = lint(first, second, "w.ptx")
    assert status == 2 and "exclude each other" in err


def test_a_baseline_where_nothing_is_checked(lint):
    path = lint.put("w.ptx", EIGHTH.replace("COMMENT", ""))
    before = path.read_bytes()
    for option in ("--reformat", "--check-format", "--requirements"):
        assert lint(option, "--baseline", "b.json", "w.ptx")[0] == 2
    assert path.read_bytes() == before


def test_a_file_that_is_named_twice(lint):
    lint.put("w.ptx", EIGHTH.replace("COMMENT", ""))
    assert lint("w.ptx", "w.ptx")[1].endswith("Found 1 warning in 1 file.\n--fix can mend 1 of them.\n")
