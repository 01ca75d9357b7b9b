"""Code of modules from one file of the cache directory is the code that Python has compiled of their sources."""

import os
import py_compile
import subprocess
import sys

import pytest

from ptxtools import cache, records
from ptxtools.bundle import Bundle
from tests.work import HANG

KERNEL = ".version 8.0\n.target sm_80\n.address_size 64\n.entry k()\n{\n    mov.b32 %r1, 1;\n    ret;\n}\n"

#: Lints a file as the console script does, and prints how many modules came from a bundle, and how many did not.
LINT = """import sys, ptxtools.cli.lint as lint
import ptxtools.cli.common as common
def end(status):
    kinds = [type(module.__loader__).__module__ for name, module in sys.modules.items()
             if name.startswith(("ptxtools.check", "ptxtools.linter", "ptxtools.isa"))]
    sys.stderr.write(f"{kinds.count('ptxtools.bundle')} {len(kinds)}")
    sys.exit(status)
common._leave = end
sys.argv = ["ptx-lint", "--no-cache", "k.ptx"]
lint.main()
"""


@pytest.fixture
def linted(tmp_path):
    """A start in a folder with its own caches: what it prints, and its numbers of modules."""
    (tmp_path / "k.ptx").write_text(KERNEL)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PTXTOOLS_CACHE": str(tmp_path / "cache"),
                   "PYTHONPYCACHEPREFIX": str(tmp_path / "compiled")}  # fmt: skip
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def start():
        done = subprocess.run([sys.executable, "-c", LINT], cwd=tmp_path, env=environment, capture_output=True,
                              text=True, timeout=HANG, check=False)  # fmt: skip
        assert done.returncode == 1 and "[PTX2" in done.stdout, done.stderr
        found, modules = map(int, done.stderr.split())
        return done.stdout, found, modules

    return start


def test_a_later_process_loads_what_an_earlier_one_left(linted, tmp_path):
    first, found, modules = linted()
    assert found == 0 and modules > 50
    assert linted() == (first, modules, modules)
    (code,) = (tmp_path / "compiled").rglob("*.code")
    data = bytearray(code.read_bytes())
    data[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
    code.write_bytes(data)
    text, found, modules = linted()  # half of them are damaged
    assert text == first and 0 < found < modules
    (index,) = (tmp_path / "compiled").rglob("*.idx")
    index.write_bytes(index.read_bytes()[:-1])
    assert linted() == (first, 0, modules)
    assert linted() == (first, modules, modules)


def test_other_sources_have_another_bundle(tmp_path, monkeypatch):
    monkeypatch.setenv("PTXTOOLS_CACHE", str(tmp_path))
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "compiled"))
    py_compile.compile(records.__file__)
    Bundle("lint").leave()
    found = Bundle("lint").find_spec("ptxtools.records")
    assert found.origin == records.__file__ and found.loader.get_code("ptxtools.records").co_filename == found.origin
    monkeypatch.setattr(cache, "state_of", lambda packages: "another")
    assert Bundle("lint").find_spec("ptxtools.records") is None


@pytest.mark.parametrize("writes", [True, False])
def test_it_lies_where_python_keeps_compiled_code_if_that_may_be_written(tmp_path, monkeypatch, writes):
    monkeypatch.setenv("PTXTOOLS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "compiled"))
    py_compile.compile(records.__file__)
    monkeypatch.setattr(sys, "dont_write_bytecode", not writes)
    Bundle("run").leave()
    (code,) = tmp_path.rglob("*.code")
    assert code.is_relative_to(tmp_path / ("compiled" if writes else "cache"))
    assert Bundle("run").find_spec("ptxtools.records").origin == records.__file__


def test_code_of_another_time_is_not_taken(tmp_path, monkeypatch):
    monkeypatch.setenv("PTXTOOLS_CACHE", str(tmp_path))
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "compiled"))
    py_compile.compile(records.__file__)
    monkeypatch.setattr(cache, "sources", lambda package: [("records.py", 1, 1)] if package == "records" else [])
    Bundle("lint").leave()
    assert Bundle("lint").find_spec("ptxtools.records") is None


def test_what_is_not_in_it_is_not_found(tmp_path, monkeypatch):
    monkeypatch.setenv("PTXTOOLS_CACHE", str(tmp_path))
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "compiled"))
    assert Bundle("lint").find_spec("ptxtools.records") is None
