"""A wrong number of arguments: the kernel that takes as many is named."""

import pytest

from ptxtools.cli.common import exit_status
from ptxtools.cli.run import command

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"


def entry(name, count):
    parameters = ", ".join(f".param .u32 p{n}" for n in range(count))
    return f".visible .entry {name}({parameters}) {{ ret; }}\n"


@pytest.fixture
def run(tmp_path, capsys):
    def run(kernels, kernel, given):
        path = tmp_path / "x.ptx"
        path.write_text(HEAD + "".join(entry(name, count) for name, count in kernels.items()))
        arguments = [text for _ in range(given) for text in ("--arg", "1")]
        status = exit_status(command, "ptx-run", [str(path), "-k", kernel, "--grid", "1", "--block", "1", *arguments])
        return status, capsys.readouterr().err.strip()

    return run


PARAMETERS = "(.u32 p0, .u32 p1, .u32 p2)"


@pytest.mark.parametrize(("others", "hint"), [
    ({"b": 2}, "; kernel b takes 2: -k b"),
    ({"b": 2, "c": 1, "d": 2}, "; kernels b and d take 2: -k b"),
    (dict.fromkeys("bcdef", 2), "; kernels b, c and d and others take 2: -k b"),
    ({"b": 1}, ""),
    ({}, ""),
])  # fmt: skip
def test_the_kernel_that_fits(run, others, hint):
    text = f"ptx-run: error: kernel a takes 3 arguments {PARAMETERS}, 2 given{hint}"
    assert run({"a": 3, **others}, "a", 2) == (1, text)


def test_one_argument(run):
    assert run({"a": 1, "b": 0}, "a", 0) == (
        1,
        "ptx-run: error: kernel a takes 1 argument (.u32 p0), 0 given; kernel b takes 0: -k b",
    )
