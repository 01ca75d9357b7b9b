"""One emitter of native code: where LLVM text may stand, how structures are reached, and names that are gone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import ptxtools
from ptxtools.native.code.emitter import Emitter, expand
from ptxtools.native.code.keys import OPERANDS_PER_RECORD, Operand, operand_offset
from ptxtools.native.code.structures import (
    CELL_BYTES,
    EVENT,
    NO_SLOT,
    PAYLOADS,
    RECORD,
    STRUCTURES,
    TextureFetch,
    WgmmaWait,
    located,
)
from ptxtools.native.loop.cells import Cell
from ptxtools.program.program import Slot

ROOT = Path(ptxtools.__file__).parent
NATIVE = ROOT / "native"
#: Makes LLVM text of a part of Python, for what reads NVVM IR.
NOTATION = ROOT / "nvvm/compiled/notation.py"
#: Instructions of LLVM as they stand in text.
_INSTRUCTIONS = r"\b(getelementptr|icmp|fcmp|shufflevector|insertelement|zext|sext|musttail|phi) "
_LLVM = re.compile(_INSTRUCTIONS + r"(<|i\d|ptr|void|call)")
#: Stands somewhere in each file with such text.
_WORD = re.compile(_INSTRUCTIONS)
#: Parts of `native` that have no LLVM text: tables, records, the cache, what comes back to Python.
_WITHOUT = {
    "code/encode.py", "code/keys.py", "code/library.py", "code/objects.py", "code/runs.py", "code/structures.py",
    "loop/cells.py", "loop/driver.py", "loop/events.py", "loop/faults.py", "loop/hangs.py", "loop/polling.py",
    "loop/worker.py", "textures/offer.py", "tiles/direct.py", "tiles/interface.py", "tiles/numbers.py",
    "tiles/products.py", "tiles/takeover.py",
}  # fmt: skip


@cache
def nodes(path: Path) -> list[ast.AST]:
    """All nodes of a file of the package."""
    return list(ast.walk(ast.parse(path.read_text())))


@cache
def texts(path: Path) -> list[str]:
    """All strings of a file but its docstrings; `{}` for what an f-string puts in."""
    return list(_texts(nodes(path)))


def _texts(nodes: list[ast.AST]) -> Iterator[str]:
    documents = {
        id(node.body[0].value)
        for node in nodes
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    inside = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents | inside:
            yield node.value


def files(*packages: str) -> list[Path]:
    return sorted(path for package in packages for path in (ROOT / package).rglob("*.py"))


def test_the_search_sees_text_in_strings_and_f_strings(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_text('"""icmp i32 in a docstring"""\nx = f"icmp eq {y}, 1"\nz = "zext i8 %a to i32"\n')
    assert texts(path) == ["icmp eq {}, 1", "zext i8 %a to i32"]
    assert [bool(_LLVM.search(text)) for text in texts(path)] == [False, True]


def test_llvm_text_stands_in_the_native_engine_and_one_file_more() -> None:
    others = [path for path in sorted(ROOT.rglob("*.py")) if not path.is_relative_to(NATIVE) and path != NOTATION]
    quiet = [NATIVE / name for name in _WITHOUT]
    assert all(path.exists() for path in quiet)
    candidates = [path for path in (*others, *quiet) if _WORD.search(path.read_text())]
    assert len(candidates) < len(others) / 2
    assert [path for path in candidates if any(map(_LLVM.search, texts(path)))] == []


def test_no_number_stands_for_a_field() -> None:
    """An offset from the address of a structure is written by the emitter, which has it from the table."""
    number = re.compile(r"getelementptr i8, ptr [%{][\w.}]*, i(32|64) \d")
    assert [(path.name, text) for path in files("native") for text in texts(path) if number.search(text)] == []


def test_permutations_are_written_by_the_emitter() -> None:
    found = {path.name for path in files("native") if any("shufflevector" in text for text in texts(path))}
    assert found == {"emitter.py"}


@pytest.mark.parametrize(
    ("line", "same"),
    [
        ("%x = get warp.ready", lambda e: e.field("warp.ready", name="%x")),
        ("%x = get cta.shared of %p", lambda e: e.field("cta.shared", "%p", "%x")),
        ("%x = get rec.s0_pair", lambda e: e.field("rec.s0_pair", name="%x")),
        ("%x = get fetch.whole", lambda e: e.field("fetch.whole", "%event", "%x")),
        ("set ctx.slice, %x", lambda e: e.set_field("ctx.slice", "%x")),
        ("%x = addr warp.pc", lambda e: e.address("warp.pc", name="%x")),
        ("%x = item warp.wg_marks, %i", lambda e: e.item("warp.wg_marks", "%i", name="%x")),
        ("%x = splat64x8 %s", lambda e: e.spread("i64", "%s", 8, "%x")),
        ("%x = guarded %mask", lambda e: e.guarded("%mask", name="%x")),
        ("%x = depth %fp", lambda e: e.depth("%fp", "%x")),
        ("goto %fp, %ip, %mask", lambda e: e.goto("%fp", "%ip", "%mask")),
        ("tail @trap %fp, %ip, %mask", lambda e: e.tail("@trap", "%fp", "%ip", "%mask")),
        ("leave STATUS_SLICED", lambda e: e.leave("1")),
    ],
)
def test_text_and_methods_are_the_same_code(line: str, same) -> None:
    emitter = Emitter()
    same(emitter)
    assert expand(line) == emitter.take() != ""


def test_operands_lie_where_the_record_has_them() -> None:
    assert operand_offset(Operand(0)) == RECORD.offset("s0")
    assert operand_offset(Operand(OPERANDS_PER_RECORD - 1)) == RECORD.offset("s9")
    assert operand_offset(Operand(OPERANDS_PER_RECORD + 2)) == RECORD.size + RECORD.offset("s2")
    with pytest.raises(KeyError):
        located("rec.s10")


@pytest.mark.parametrize("sort", PAYLOADS, ids=lambda sort: sort.__name__)
def test_payloads_lie_behind_the_header_of_their_cell(sort) -> None:
    structure = PAYLOADS[sort]
    assert tuple(structure.fields) == sort._fields and STRUCTURES[structure.name] is structure
    assert min(offset for offset, _ in structure.fields.values()) >= EVENT.size
    assert structure.size == CELL_BYTES


def test_a_cell_holds_what_was_written() -> None:
    cell = Cell()
    numbers = {name: 7 * n for n, name in enumerate(TextureFetch._fields)}
    cell.write(TextureFetch(**numbers | {"layer_slot": NO_SLOT}))  # type: ignore[arg-type]
    cell.serve(0x1234_5678_9ABC)
    read = {name: PAYLOADS[TextureFetch].read(cell.memory, 0, name) for name in TextureFetch._fields}
    assert read == numbers | {"layer_slot": 0xFFFF_FFFF}
    assert EVENT.at_address(cell.address, "serve") == 0x1234_5678_9ABC
    cell.write(WgmmaWait(Slot(640)))
    assert PAYLOADS[WgmmaWait].at_address(cell.address, "n_slot") == 640
    assert EVENT.read(cell.memory, 0, "serve") == 0x1234_5678_9ABC


def test_names_say_what_they_are() -> None:
    """One letter names no attribute, but for the axes; names of former classes are gone."""
    letters, classes = set(), set()
    for path in files("native", "machine", "program"):
        for node in nodes(path):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and len(node.attr) == 1:
                letters.add((path.name, node.attr))
            elif isinstance(node, ast.ClassDef):
                classes.add(node.name)
    assert {name for name in letters if name[1] not in "xyz"} == set()
    assert not classes & {"Kernel", "Body", "Template", "Place", "Places", "_Places", "_Run", "Record"}
    assert [path.name for path in files("native", "machine") if "warpgroup" in path.stem] == []
    functions = [
        path.name
        for path in files("native", "machine", "program")
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef) and node.name == "fuse"
    ]
    assert functions == ["fuse.py"]
