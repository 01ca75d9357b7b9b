"""`--reformat`, `--check-format`, and `--diff` with them."""

import subprocess

import pytest

UGLY = ".version 8.0\n.target sm_80\n.address_size 64\n.entry k()\n{\n.reg .b32 r;  mov.b32  r,1;\nret;\n}\n"
CANONICAL = (
    ".version 8.0\n.target sm_80\n.address_size 64\n.entry k()\n{\n\t.reg .b32 r;\n\tmov.b32 \tr, 1;\n\tret;\n}\n"
)


def test_files_are_written_in_place(lint):
    ugly, fine = lint.put("a.ptx", UGLY), lint.put("b.ptx", CANONICAL)
    assert lint("--reformat", ".") == (0, "", "a.ptx: reformatted\n")
    assert ugly.read_text() == fine.read_text() == CANONICAL
    assert lint("--reformat", ".") == (0, "", "")


def test_check_says_which_differ_and_changes_nothing(lint):
    ugly, _ = lint.put("a.ptx", UGLY), lint.put("b.ptx", CANONICAL)
    assert lint("--check-format", "a.ptx", "b.ptx") == (1, "a.ptx: would be reformatted\n", "")
    assert ugly.read_text() == UGLY
    assert lint("--check-format", "b.ptx") == (0, "", "")


def test_a_patch(lint, tmp_path):
    path = lint.put("a.ptx", UGLY.replace("\n", "\r\n"))
    status, out, _ = lint("--reformat", "--diff", "a.ptx")
    assert status == 1 and path.read_bytes() == UGLY.replace("\n", "\r\n").encode()
    subprocess.run(["git", "apply", "-p0", "-"], input=out.encode(), cwd=tmp_path, check=True)
    assert path.read_bytes() == CANONICAL.replace("\n", "\r\n").encode()


def test_standard_input_goes_to_standard_output(lint, monkeypatch, tmp_path):
    path = lint.put("a.ptx", UGLY)
    with path.open() as file:
        monkeypatch.setattr("sys.stdin", file)
        assert lint("--reformat", "-") == (0, CANONICAL, "")


@pytest.mark.parametrize(("data", "says"), [
    (UGLY.replace("mov.b32  r,1;", "mov.b32 r 1;"), "[PTX100]"),
    (b"\x7fELF\x02\x01\x01" + bytes(60), "[PTX120]"),
])  # fmt: skip
def test_what_cannot_be_read_is_left(lint, data, says):
    path = lint.put("a.ptx", data)
    before = path.read_bytes()
    status, out, err = lint("--reformat", "a.ptx")
    assert (status, out) == (1, "") and says in err and path.read_bytes() == before


def test_usage(lint):
    lint.put("a.ptx", UGLY)
    assert lint("--reformat", "missing.ptx")[0] == 2
    assert lint("--reformat", "--fix", "a.ptx")[0] == 2
