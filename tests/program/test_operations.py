"""The table of operations: everything that is lowered is as its row says, and every row has what runs it."""

from __future__ import annotations

import ast
import marshal
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ptxtools.machine import events
from ptxtools.machine.observers import EVENTS
from ptxtools.native.code import encode, generate
from ptxtools.native.handlers import FUNCTIONS, KINDS
from ptxtools.native.handlers.run import MEANINGS
from ptxtools.program import operations
from ptxtools.program.details import Action, Callee, Constant, Detail, NamedOperands, SpecialRegister, ThreadCopy
from ptxtools.program.lowering import lower
from ptxtools.program.operations import BARRIER, BLOCK, ENDINGS, EVENT, MARK, NATIVE, OPERATIONS, Operation
from ptxtools.program.passes.instrument import MARKS, Interest, instrument
from ptxtools.program.program import Op, Program, Ref
from ptxtools.program.variant import Variant
from ptxtools.reference import registry, run
from ptxtools.sim import services, stored
from tests.machine.test_all_modules import NAMES, module, program
from tests.rows import rows

#: What events are looked up with.
LAUNCH: Any = SimpleNamespace(services=lambda kind: services.load(kind))


def unserved(rows: dict[str, Operation]) -> set[str]:
    """Kinds of the table that something is missing for: an emitter, an executor, a function for an event."""
    assert run  # the reference engine has registered its functions
    barriers = {name.split("_")[-1] for name in generate.base_symbols() if name.startswith("t_cluster_")}
    barriers |= {name.split("_")[2] for name in generate.BARRIERS}
    missing = set()
    for kind, row in rows.items():
        there = {
            BLOCK: kind in KINDS and kind in registry.EXECUTORS,
            NATIVE: kind in KINDS or kind in FUNCTIONS,
            MARK: kind in MARKS,
            EVENT: row.runs == EVENT and events.find(LAUNCH, kind) is not None,
            BARRIER: row.actions <= barriers,
        }
        if not there[row.runs]:
            missing.add(kind)
    return missing


def test_each_kind_has_what_runs_it() -> None:
    assert unserved(OPERATIONS) == set()


@pytest.mark.parametrize("runs", [BLOCK, NATIVE, EVENT, BARRIER, MARK])
def test_a_row_that_nothing_runs_is_found(runs: str) -> None:
    made = {"new": Operation(runs, actions=frozenset({"unheard of"}))}
    assert unserved(made) == {"new"}


def test_a_missing_emitter_executor_or_service_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(KINDS, "shfl")
    monkeypatch.delitem(registry.EXECUTORS, "fence")
    services.load("tex")
    monkeypatch.delitem(events.HANDLERS, "tex")
    monkeypatch.setattr(services, "load", lambda kind: None)
    assert {"shfl", "fence", "tex"} <= unserved(OPERATIONS)


def test_nothing_runs_a_kind_without_a_row() -> None:
    for kind in OPERATIONS:
        services.load(kind)
    assert {*KINDS, *FUNCTIONS} <= {kind for kind, row in OPERATIONS.items() if row.runs in (BLOCK, NATIVE)}
    assert set(registry.EXECUTORS) <= {kind for kind, row in OPERATIONS.items() if row.runs == BLOCK}
    assert {kind for kind in events.HANDLERS if not kind.startswith("test")} <= {
        kind for kind, row in OPERATIONS.items() if row.runs == EVENT
    }


def test_a_run_of_operations_has_each_kind_that_it_may_hold() -> None:
    assert set(MEANINGS) == operations.PURE | operations.ACROSS


def test_each_terminator_has_what_runs_it() -> None:
    assert set(ENDINGS) == set(registry.ENDINGS) == set(encode._WRITERS)


# --- one place for what is true of a kind ----------------------------------------------------------------------------

PACKAGE = Path(operations.__file__).parents[1]
#: Lowering names the kinds that it makes, and dictionaries say what runs them: all others ask the table.
SOURCES = sorted(
    path
    for folder in ("program", "native", "reference", "machine", "sim", "observe")
    for path in (PACKAGE / folder).rglob("*.py")
    if "lowering" not in path.parts and path.name != "operations.py"
)


def listed(text: str) -> list[int]:
    """Lines of a file that list kinds: as a tuple, list or set, or comparing one after the other."""
    found = []
    for node in ast.walk(ast.parse(text)):
        several: list[ast.expr] = []
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            several = node.elts
        elif isinstance(node, ast.BoolOp):
            several = [one.comparators[0] for one in node.values if isinstance(one, ast.Compare) and _of_kind(one.left)]
        if sum(isinstance(one, ast.Constant) and one.value in OPERATIONS for one in several) > 1:
            found.append(node.lineno)
    return found


def _of_kind(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "kind"


@rows("path", SOURCES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_no_file_lists_kinds_by_hand(path: Path) -> None:
    assert listed(path.read_text("utf-8")) == []


@pytest.mark.parametrize(
    "line",
    [
        "a = op.kind in ('ld', 'atom')",
        "KINDS = {'ldmatrix', 'stmatrix'}",
        "if op.kind == 'ld' or op.kind == 'st': pass",
    ],
)
def test_a_list_of_kinds_is_found(line: str) -> None:
    assert listed(line) == [1]


@pytest.mark.share(3)
@pytest.mark.parametrize("column", [name for name in Operation._fields if name not in ("runs", "dst", "src")])
def test_somebody_reads_each_column(column: str) -> None:
    """A fact that nobody needs would be true by chance only."""
    asks = re.compile(rf"(OPERATIONS\[[^]]*\]|\brow)\.{column}\b")
    assert any(asks.search(path.read_text("utf-8")) for path in (*SOURCES, Path(operations.__file__)))


# --- what is lowered --------------------------------------------------------------------------------------------------


def variants(name: str) -> list[Program]:
    """The first kernel of a module in the ways in which it may run, as far as it can."""
    first = program(name, optimise=True)
    if first is None:
        return []
    plain = program(name, optimise=False)
    kernel = module(name).entries[0].name
    late = lower(module(name), kernel, lambda variable: 0x10000, variant=Variant(late=True))
    lines = lower(module(name), kernel, lambda variable: 0x10000, variant=Variant(lines=True))
    assert plain is not None
    everything, looks = frozenset(EVENTS), frozenset(EVENTS) - {"permit"}
    pairs = [(first, looks), (late, looks), (plain, everything), (lines, everything)]
    return [first, plain, late, lines, *(instrument(one, [Interest(events)]) for one, events in pairs)]


@rows("name", NAMES, share=15)
def test_programs_are_as_the_table_says_also_when_they_were_stored(name: str) -> None:
    """Details come back with their types, whatever they are."""
    found = variants(name)
    assert [operations.mistakes(one) for one in found] == [[]] * len(found)
    for kernel in found[:1]:
        again = stored.decode_program(marshal.loads(marshal.dumps(stored.encode_program(kernel))))
        for one, other in zip(kernel.blocks, again.blocks, strict=True):
            ops = zip([*one.ops, one.terminator.op], [*other.ops, other.terminator.op], strict=True)
            assert all(a is b is None or (a and b and a.detail == b.detail and a.kind == b.kind) for a, b in ops)


R = Ref(512, "b32")


@pytest.mark.parametrize(
    ("op", "reason"),
    [
        (Op("unheard_of"), "'unheard_of' has no row"),
        (Op("copy", None, (R,), (R,), detail=Callee("f")), "'copy' has a detail of type Callee"),
        (Op("sreg", None, (R,), ()), "'sreg' has a detail of type None"),
        (Op("bar", None, (), (R, None, None), detail=Action("leap")), "'bar' has no action 'leap'"),
        (Op("copy", None, (R,), (None,)), "'copy' has 1 sources; 'value' is expected"),
        (Op("copy", None, (R, R), (R,)), "'copy' has 2 destinations; 'result' is expected"),
        (Op("mbarrier", None, (), (R,), detail=Action("init")), "'mbarrier' has 0 destinations"),
        (Op("atom", None, (R,), (R, None)), "'atom' has 2 sources; 'address? value*' is expected"),
        (Op("st", None, (), (None, R, None)), ""),
        (Op("cp.async", None, (), (None, R), detail=ThreadCopy(16, "")), ""),
    ],
)
def test_operations_that_are_not_as_their_rows_say(op: Op, reason: str) -> None:
    found = operations.wrong(op)
    assert found.startswith(reason) and bool(found) is bool(reason)


def test_places_are_checked() -> None:
    found = program(NAMES[0], optimise=True)
    assert found is not None
    block = found.blocks[0]
    wrong = replace(block, ops=[*block.ops, Op("nanosleep", None, (), (R,))])
    mistakes = operations.mistakes(replace(found, blocks=[wrong, *found.blocks[1:]]))
    assert mistakes == ["block 0: 'nanosleep' stands in a block"]


# --- details ----------------------------------------------------------------------------------------------------------


def test_details_are_values() -> None:
    one = ThreadCopy(16, "size")
    assert one == ThreadCopy(size=16, rule="size", host=False) and hash(one) == hash(ThreadCopy(16, "size"))
    assert one != ThreadCopy(16, "size", host=True) and Callee("f") != SpecialRegister("f")
    assert repr(one) == "ThreadCopy(size=16, rule='size', host=False)"
    assert Detail.TYPES["ThreadCopy"](*one.values()) == one
    with pytest.raises(AttributeError, match="cannot be changed"):
        one.size = 4  # type: ignore[misc]
    for wrong in ((), (1, 2, 3)):
        with pytest.raises(TypeError):
            Constant(*wrong)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Constant(1, valued=2)  # type: ignore[call-arg]


def test_what_is_known_of_operands_is_no_part_of_them() -> None:
    one = NamedOperands({"a": (0, 1)}, {}, {}, {})
    one.known["plan"] = 1
    assert one == NamedOperands({"a": (0, 1)}, {}, {}, {}) and one.known == {"plan": 1}
    assert len(one.values()) == 4
