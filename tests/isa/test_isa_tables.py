"""The tables themselves: consistent, complete, and loaded only when needed."""

import random
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from ptxtools import isa
from ptxtools.isa import verify
from ptxtools.isa.errors import TableError
from ptxtools.isa.index import CHAPTERS
from ptxtools.isa.notation import Page
from tests.rows import rows

PAGES = verify.every_page()
ROOT = Path(__file__).parents[2]


@rows("page", PAGES, ids=lambda page: f"{page.section} {page.names[0]}")
def test_page_does_not_contradict_itself(page: Page) -> None:
    verify.check(page)


def test_index_names_exactly_the_chapters_that_declare_a_family() -> None:
    declared: dict[str, set[str]] = {}
    for path in (ROOT / "ptxtools" / "isa").glob("*.py"):
        module = import_module(f"ptxtools.isa.{path.stem}")
        for header in re.findall(r"^# [\d.]+ (.+)$", getattr(module, "PAGES", ""), re.M):
            for name in header.split():
                declared.setdefault(name.split(".")[0], set()).add(path.stem)
    assert {family: set(chapters) for family, chapters in CHAPTERS.items()} == declared


def test_every_form_is_reachable_and_canonical() -> None:
    """A random opcode of every form resolves, to itself in canonical order, with its own or an earlier form."""
    rng = random.Random(3)
    for family in CHAPTERS:
        for form in isa.forms(family):
            for _ in range(8):
                atoms = [
                    rng.choice(e.values)
                    for e in form.elements
                    if not e.optional or (not e.group and rng.random() < 0.4)
                ]
                try:
                    op = isa.resolve(".".join([family, *atoms]))
                except isa.OpcodeError as error:
                    assert error.code in ("PTX113", "PTX210", "PTX114"), error
                    continue
                assert isa.resolve(op.text) is op
                assert op.family == family
                for spec in op.operands:
                    assert spec.type is None or spec.type in isa.types.TYPES


def _page(text: str) -> Page:
    chapter = ModuleType("chapter")
    chapter.PAGES = "\n# 1.1 foo\n" + text  # type: ignore[attr-defined]
    return Page("1.1", ("foo",), text, chapter)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("foo.type d, a;", "has no set"),
        ("foo.b32 d, a;\n.kind = { .x, .y };", "sets without a form"),
        ("foo.kind d:b32;\n.kind = { .x, .x };", "repeats"),
        ("foo.kind d:b32;\n.kind = { .x, .y };\nneeds .z => ptx 1.0", "can never hold"),
        ("foo.kind d:b32;\n.kind = { .x, .y };\nneeds kind=.z => ptx 1.0", "can never hold"),
        ("foo.kind d:b32;\n.kind = { .x, .y };\nneeds .x ptx 1.0", "lacks '=>'"),
        ("foo.kind d:b32;\n.kind = { .x, .y };\nfirst .x .y", "commas between them"),
        ("foo.kind d:b32;\n.kind = { .x, .y };\nneeds .x => version 1", "requirement"),
        ("foo.b32.b32 d, a;", "needs a type"),
        ("bar.b32 d, a;", "none of the page's names"),
        ("foo.b32 d, $x;", "no abbreviation"),
        ("foo.b32 d, a", "unfinished"),
        ("", "no syntax form"),
    ],
)
def test_loader_refuses_a_contradiction(text: str, complaint: str) -> None:
    with pytest.raises(TableError, match=re.escape(complaint)):
        verify.check(_page(text))


def test_notation_of_sets_and_gaps() -> None:
    page = _page(
        "foo.ss.shape d:b32,{ b:u32,} c:b32{, e:pred};\n.ss = { .const, .shared{::cta, ::cluster} };\n"
        ".shape = { .m<8..24:8>n, .x };"
    )
    verify.check(page)
    assert len(page.forms) == 2
    assert page.forms[0].elements[0].values == ("const", "shared", "shared::cta", "shared::cluster")
    assert page.forms[0].elements[1].values == ("m8n", "m16n", "m24n", "x")
    assert [p.name for p in page.forms[1].patterns] == ["d", "b", "c", "e"]


MEASURE = """
import sys
import ptxtools
from tests.work import calls

def loaded():
    return {name for name in sys.modules if name.startswith("ptxtools.isa")}

def first(action):
    before = loaded()
    count = calls(action)
    print(count, *sorted(loaded() - before))

def start():
    import ptxtools.isa

first(start)
import ptxtools.isa.opcode
for text in sys.argv[1:]:
    first(lambda: ptxtools.isa.resolve(text))
"""


def test_import_and_first_use_load_little() -> None:
    """The import loads nothing below the package; the first use of a mnemonic loads the chapters that declare it and
    reads its own pages, not all of theirs. `make bench` has the milliseconds."""
    opcodes = (
        "exit", "add.s32", "cvt.rn.f16.f32", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "ld.global.v4.f32",
        "tcgen05.mma.cta_group::1.kind::f16", "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16", "setp.lt.f32",
        "cp.async.commit_group", "atom.global.add.u32", "tex.2d.v4.f32.f32",
    )  # fmt: skip
    run = subprocess.run(
        [sys.executable, "-c", MEASURE, *opcodes], capture_output=True, text=True, cwd=ROOT, check=True
    )
    (calls, *loaded), *uses = (line.split() for line in run.stdout.splitlines())
    assert int(calls) < 500 and loaded == ["ptxtools.isa"]
    known: set[str] = set()
    for opcode, (calls, *loaded) in zip(opcodes, uses, strict=True):
        chapters = {f"ptxtools.isa.{name}" for name in CHAPTERS[opcode.partition(".")[0]]}
        assert set(loaded) == chapters - known, opcode
        assert int(calls) < 7000, opcode
        known |= chapters


def test_a_family_loads_only_its_own_chapters() -> None:
    code = "import sys, ptxtools.isa as i; i.resolve('add.s32'); print([m for m in sys.modules if 'isa.' in m])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True).stdout
    assert "integer" in out and "tcgen05" not in out and "matrix" not in out
