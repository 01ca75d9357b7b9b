"""Rules are files: each says its code, its page and what it looks at, and nothing else names it."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ptxtools.linter import registry
from tests.rows import rows

#: A rule as somebody would add it: a file of its own, and no other change.
NEW_RULE = '''"""PTX799 | move to itself | 9.7.9.2

What: a mov whose source is its destination.
Why: it has no effect.
Example:
    mov.b32 %r1, %r1;
Better:
    mov.b32 %r1, %r2;
"""

from ptxtools.ir.positions import part_span
from ptxtools.linter.registry import instructions

CODE = "PTX799"


@instructions("mov")
def check(context, facts, line):
    into, source = line.item.operands
    if into == source:
        context.warn(CODE, f"'{line.item.opcode}' moves a register to itself", part_span(line.item, 1))
'''

#: ptx-lint with a second folder of rules.
RUN = """import sys
import ptxtools.linter.rules
ptxtools.linter.rules.__path__.append(sys.argv.pop(1))
from ptxtools.cli.lint import main
main()
"""

KERNEL = """.version 8.0
.target sm_80
.address_size 64
.entry k()
{
    .reg .b32 %r<3>;
    mov.b32 %r1, 1;
    mov.b32 %r1, %r1;
    mov.b32 %r2, %r1;
    ret;
}
"""


@pytest.fixture
def lint(tmp_path):
    """ptx-lint on the kernel above with the new rule in its folder: the status and the output."""
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "ptx799_move_to_itself.py").write_text(NEW_RULE)
    (tmp_path / "k.ptx").write_text(KERNEL)

    def run(*arguments):
        command = [sys.executable, "-c", RUN, "rules", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert not done.stderr, done.stderr
        return done.returncode, done.stdout

    return run


def test_a_rule_is_added_by_its_file_alone(lint):
    status, out = lint("--strict", "k.ptx")
    assert status == 1
    assert out.startswith("k.ptx:8:18: warning: 'mov.b32' moves a register to itself [PTX799]\n")
    assert out.count("PTX799") == 1


def test_its_page_and_its_code_are_known(lint):
    status, out = lint("--explain", "ptx799")
    assert status == 0
    assert out.startswith("PTX799: move to itself\n\nWhat: a mov whose source is its destination.\n")
    assert "Better:\n\n    mov.b32 %r1, %r2;" in out
    assert "See: PTX ISA 9.7.9.2." in out
    assert lint("--ignore", "PTX799", "k.ptx") == (0, "")
    assert "PTX799" in lint("--select", "PTX79", "k.ptx")[1]


def test_a_comment_silences_it(lint, tmp_path):
    (tmp_path / "k.ptx").write_text(KERNEL.replace("%r1, %r1;", "%r1, %r1;  // ptx-lint: disable=PTX799"))
    assert lint("k.ptx") == (0, "")


@rows("name", registry.names())
def test_name_code_and_page_agree(name):
    module = importlib.import_module(f"{registry.RULES}.{name}")
    assert re.fullmatch(r"ptx[567]\d\d(_[a-z]+)+", name)
    assert name[:6].upper() == module.CODE
    assert module.__doc__.startswith(f"{module.CODE} | ")


def test_every_file_in_the_folder_is_a_rule():
    folder = Path(importlib.import_module(registry.RULES).__file__).parent
    assert sorted(path.stem for path in folder.glob("*.py")) == sorted([*registry.names(), "__init__"])


def loaded(code):
    """The modules of ours that a program has loaded at its end."""
    code += "\nimport sys\nprint(*sorted(n for n in sys.modules if n.startswith('ptxtools')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def rules_loaded(module):
    """The rules that checking a module's text loads; the pages are never read for it."""
    found = loaded(
        f"from ptxtools.linter import lint\nfrom ptxtools.syntax import parse\nlint(parse({module!r}, 'k.ptx').module)"
    )
    assert not any(name.startswith("ptxtools.check.pages") for name in found)
    return {name.removeprefix(f"{registry.RULES}.") for name in found if name.startswith(f"{registry.RULES}.")}


def looking_at(*keys):
    return {name for name, path in registry.files().items() if {*keys} & {*registry.looks_of(path)}}


EVERYWHERE = ("@modules", "@bodies")


def test_rules_are_loaded_when_a_module_has_what_they_look_at():
    assert not any(name.startswith(registry.RULES) for name in loaded("import ptxtools.linter"))
    assert rules_loaded(KERNEL) == looking_at(*EVERYWHERE, "mov", "ret")
    divides = KERNEL.replace("mov.b32 %r1, 1;", "div.u32 %r1, 1, 3;")
    assert rules_loaded(divides) == looking_at(*EVERYWHERE, "mov", "ret", "div", "@bodies_with div")
    assert looking_at("div") and looking_at("@directives") - looking_at(*EVERYWHERE)
    assert rules_loaded(KERNEL.replace("k()", "k() .maxntid 32")) == looking_at(*EVERYWHERE, "mov", "@directives")
    loads = KERNEL.replace("mov.b32 %r1, 1;", "ld.global.b32 %r1, [%r2];")
    assert rules_loaded(loads) == looking_at(*EVERYWHERE, "mov", "ld", "@bodies_with ld", "@modules_with ld")


def test_only_rules_about_modules_are_loaded_where_there_is_no_body():
    assert rules_loaded(".version 8.0\n.target sm_80\n.address_size 64\n") == looking_at("@modules")


@rows(("name", "path"), registry.files().items())
def test_what_a_rule_looks_at_stands_in_its_text(name, path):
    module = importlib.import_module(f"{registry.RULES}.{name}").__name__
    looks = {key for key, found in registry.registered.items() for check in found if check.__module__ == module}
    assert looks and {*registry.looks_of(path)} == looks
