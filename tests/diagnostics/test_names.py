"""Demangled names, and names that are made to break a demangler."""

import subprocess
import sys
from pathlib import Path

import pytest

from ptxtools.diagnostics import Trap, names, shown
from ptxtools.diagnostics.names import demangled
from tests.work import HANG


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("_Z4sumsPKfPfi", "sums(float const*, float*, int)"),
        ("_ZN2ns4fillIfLi4EEEvPT_S1_", "void ns::fill<float, 4>(float*, float)"),
        ("_Z6launchIZ4mainEUliE_EvT_", "void launch<main::'lambda'(int)>(main::'lambda'(int))"),
        ("_ZN12_GLOBAL__N_11kEv", "(anonymous namespace)::k()"),
        ("_RNvC6_123foo3bar", "123foo::bar"),
        ("kernel", "kernel"),
        ("_Zxx", "_Zxx"),
        ("_Rust", "_Rust"),
        ("_Z", "_Z"),
        ("_Z1fv\n_Z1gv", "_Z1fv\n_Z1gv"),
        ("_Z3\u00e9\u00e9\u00e9v", "_Z3\u00e9\u00e9\u00e9v"),
    ],
)
def test_names(name, text):
    assert demangled(name) == shown(name) == text


def number(index):
    """The `index`-th substitution (Itanium C++ ABI 5.1.10)."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    text = ""
    while index > 0:
        index -= 1
        text, index = digits[index % 36] + text, index // 36
    return f"S{text}_"


def doubling(times):
    """A parameter list in which each type has the one before it twice: 2 to the power of `times` in the end."""
    return "_Z1f1AIiiE" + "".join(f"S_I{number(n + 1) * 2}E" for n in range(times))


def test_a_doubling_name_is_what_it_is_meant_to_be():
    assert demangled(doubling(2)) == "f(A<int, int>, A<A<int, int>, A<int, int>>, A<A<A<int, int>, A<int, int>>, " \
                                     "A<A<int, int>, A<int, int>>>)"  # fmt: skip


HOSTILE = {
    "grows": doubling(60),
    "grows a little": doubling(14),
    "deep pointers": "_Z1f" + "P" * 200_000 + "i",
    "deep templates": "_Z1f" + "1AI" * 30_000 + "i" + "E" * 30_000,
    "long identifier": "_Z99999999999999999999f",
}


@pytest.mark.share(3)
@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_hostile_names_stay_mangled(name):
    """In a process of their own: one that broke would take the tests with it."""
    program = (
        "import sys; from ptxtools.diagnostics.names import demangled as d; n = sys.stdin.read(); print(d(n) == n)"
    )
    ran = subprocess.run([sys.executable, "-c", program], input=name, capture_output=True, text=True, timeout=HANG)
    assert (ran.returncode, ran.stdout) == (0, "True\n"), ran.stderr


def test_long_names_of_template_libraries_are_demangled():
    name = "_Z1fI" + "".join(f"N2ns4T{n:03d}IiEE" for n in range(300)) + "EvT_"
    deep = "_Z1fI" + "N3cut1AI" * 40 + "i" + "EE" * 40 + "EvT_"
    assert demangled(name).startswith("void f<ns::T000<int>, ns::T001<int>, ") and "ns::T299<int>>" in demangled(name)
    assert demangled(deep).startswith("void f<" + "cut::A<" * 40 + "int>")


def test_a_hostile_name_does_not_spoil_those_beside_it(monkeypatch):
    monkeypatch.setattr(names, "_known", {})
    long = ["_Z1" + letter + "I" + "1AIiE" * 500 + "EvT_" for letter in "abc"]
    hostile = "_Z1f" + "P" * 200_000 + "i"
    names.demangle(long[0], hostile, "_Z1gv", long[1], hostile, long[2])
    assert [demangled(name)[:8] for name in long] == ["void a<A", "void b<A", "void c<A"]
    assert demangled("_Z1gv") == "g()" and demangled(hostile) == hostile


def test_many_hostile_names_end(monkeypatch):
    """Each one costs a process; after a few no more are tried."""
    monkeypatch.setattr(names, "_known", {})
    started = []
    answers = names._answers
    monkeypatch.setattr(names, "_answers", lambda left: (started.append(len(left)), answers(left))[1])
    hostile = [f"_Z1{letter}" + "P" * 200_000 + "i" for letter in "abcdefgh"]
    names.demangle(*hostile)
    assert started == [8, 7, 6]
    assert all(demangled(name) == name for name in hostile)


def test_without_the_library_names_stay_mangled(monkeypatch):
    monkeypatch.setattr(names, "_known", {})
    monkeypatch.setitem(sys.modules, "pycxxfilt", None)
    assert demangled("_Z1gv") == "_Z1gv"


def test_the_library_is_loaded_for_mangled_names_only():
    program = (
        "import sys; from ptxtools.diagnostics import shown; shown('kernel');"
        "print('pycxxfilt' in sys.modules, 'ptxtools.diagnostics.names' in sys.modules); shown('_Z1gv');"
        "print('pycxxfilt' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "False False\nTrue\n"


def test_a_run_by_exact_name_loads_no_demangler():
    root = Path(__file__).parents[2] / "testdata" / "lineinfo"
    program = (
        "import sys, ptxtools; from ptxtools.cli.common import exit_status; from ptxtools.cli.run import command;"
        "status = exit_status(command, 'ptx-run', sys.argv[1:]);"
        "print(status, 'pycxxfilt' in sys.modules, 'ptxtools.diagnostics.names' in sys.modules)"
    )
    options = ["-k", "_ZN2ns4fillIiLi2EEEvPT_S1_", "--grid", "1", "--block", "1", "--arg", "zeros:s32[4]", "--arg", "7"]
    ran = subprocess.run(
        [sys.executable, "-c", program, str(root / "lines.ptx"), *options], capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines() == ["argument 0: s32[4] = 7 7 0 0", "0 False False"]


def test_a_trap_shows_the_name_and_keeps_the_other():
    trap = Trap("wrong", kernel="_Z4hangPi")
    assert str(trap) == "trap: wrong in kernel hang(int*)" and trap.kernel == "_Z4hangPi"
