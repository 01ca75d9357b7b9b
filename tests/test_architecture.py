"""The table of who may import whom, checked against the imports in the code (docs/architecture.md)."""

import ast
import re
from pathlib import Path

from ptxtools import cache
from tests.rows import rows

TESTS = Path(__file__).resolve().parent
PACKAGE = TESTS.parent / "ptxtools"

#: Each package and those that it stands on directly; what those stand on is allowed as well. A package inside another
#: one with a row here stands on what its own row says.
STANDS_ON = {
    "cache": (),
    "expressions": ("cache",),
    "bundle": ("cache",),
    "files": (),
    "records": (),
    "matching": (),
    "diagnostics": ("cache", "records"),
    "isa": ("diagnostics",),
    "ir": ("isa",),
    "syntax": ("ir", "matching"),
    "semantics": ("isa",),
    "check": ("ir",),
    "reducer": ("syntax", "check"),
    "linter": ("check", "matching"),
    "linter.rules": ("linter",),
    "container": ("ir",),
    "inputs": ("syntax", "container"),
    "nvvm": ("syntax", "linter"),
    "model": ("syntax",),
    "program": ("ir", "semantics"),
    "machine": ("program",),
    "native": ("machine",),
    "reference": ("machine",),
    "sim": ("machine",),
    "observe": ("sim",),
    "launch": ("observe", "files"),
    "pages": ("syntax", "linter", "container", "nvvm"),
    "api": ("pages", "inputs", "model", "launch", "native", "reference", "reducer"),
    "editor": ("pages",),
    "cli": ("api", "bundle", "editor", "expressions"),
    "plugin": ("api",),
}


def allowed(package):
    found, queue = set(), list(STANDS_ON[package])
    while queue:
        name = queue.pop()
        if name not in found:
            found.add(name)
            queue.extend(STANDS_ON[name])
    return found | {package}


def row_of(parts):
    """The innermost package of the table that a dotted name, as its parts, lies in; its first part where none is."""
    names = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
    return next((name for name in names if name in STANDS_ON), parts[0])


def package_of(path):
    return row_of(path.relative_to(PACKAGE).with_suffix("").parts)


#: Import statements, wherever they stand; whole files take ten times as long to parse.
IMPORT = re.compile(r"^[ \t]*(?:import [\w., \t]+|from [\w.]+ import (?:\([^)]*\)|[\w, \t]+))", re.MULTILINE)


def imported(path, text=None):
    """The ptxtools packages that a file imports anywhere, functions included."""
    inside = ("ptxtools", *path.relative_to(PACKAGE).parts[:-1])
    text = path.read_text(encoding="utf-8") if text is None else text
    for found in IMPORT.finditer(text):
        (node,) = ast.parse(found[0].strip()).body
        line = text.count("\n", 0, found.start()) + 1
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = list(inside[: len(inside) - node.level + 1]) if node.level else []
            base += node.module.split(".") if node.module else []
            names = [[*base, alias.name] for alias in node.names]
        else:
            continue
        for parts in names:
            if parts[0] == "ptxtools" and len(parts) > 1 and (row := row_of(parts[1:])) in STANDS_ON:
                yield line, row


FILES = sorted(p for p in PACKAGE.rglob("*.py") if package_of(p) in STANDS_ON)


@rows("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_follow_the_layers(path):
    ok = allowed(package_of(path))
    wrong = [f"{path}:{line}: imports ptxtools.{name}" for line, name in imported(path) if name not in ok]
    assert not wrong, "\n".join(wrong)


def test_every_package_is_in_the_table():
    known = {*STANDS_ON, "__init__", "__main__", "py"}
    assert {package_of(p) for p in PACKAGE.rglob("*.py")} <= known


def test_the_table_has_no_cycle():
    for package in STANDS_ON:
        assert all(package not in allowed(below) for below in STANDS_ON[package])


def test_the_scanner_sees_every_kind_of_import():
    text = "from ..isa import x\nimport ptxtools.native\nfrom ptxtools import linter\nfrom .source import Span\n"
    text += "from ptxtools.linter.rules import ptx501_constant_loses_bits\nfrom ptxtools.linter import rules\n"
    found = [name for _, name in imported(PACKAGE / "diagnostics" / "diagnostic.py", text)]
    assert found == ["isa", "native", "linter", "diagnostics", "linter.rules", "linter.rules"]


def test_files_stay_short():
    """A file of more than 600 lines asks for a cut."""
    long = {str(p.relative_to(PACKAGE)): n for p in FILES if (n := len(p.read_text("utf-8").splitlines())) > 620}
    assert not long, long


def test_caches_depend_on_all_that_makes_their_content():
    """What a maker may import decides what it makes; a stored kernel is made by the front end, too, and findings are
    those of a text that was read."""
    for maker, packages in cache.MAKERS.items():
        wanted = allowed(maker)
        if maker == "sim":
            wanted |= allowed("check") | allowed("inputs")
        if maker == "linter":
            wanted |= allowed("syntax") | allowed("inputs")
        assert set(packages) == wanted, maker


#: Test folders whose subject is no package: agreement with ptxas.
ACROSS = {"conformance"}


def test_test_folders_mirror_the_packages():
    folders = {path.parent.relative_to(TESTS).parts[0] for path in TESTS.glob("*/**/test_*.py")}
    packages = {path.stem for path in PACKAGE.iterdir()}
    assert not folders - packages - ACROSS
    assert not {name for name in STANDS_ON if (PACKAGE / name).is_dir()} - folders
