"""Control flow, dominators and liveness on small functions."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from ptxtools.ir import Function, Module
from ptxtools.ir.cfg import control_flow, reverse_postorder
from ptxtools.ir.dominators import dominators
from ptxtools.ir.liveness import solve
from ptxtools.syntax import parse
from tests.rows import rows
from tests.work import calls

HEADER = ".version 9.0\n.target sm_90\n.address_size 64\n"


def module_of(body: str, *, kind: str = ".visible .entry k(.param .u64 a)") -> tuple[Module, Function]:
    declarations = ".reg .pred %p<8>; .reg .b32 %r<20>; .reg .b64 %d<8>; .reg .v4 .f32 %v;"
    result = parse(f"{HEADER}{kind} {{ {declarations} {body} }}")
    assert not result.diagnostics
    return result.module, result.module.functions[0]


def edges(body: str) -> list[list[int]]:
    module, function = module_of(body)
    return control_flow(function, module).successors


# --- control flow -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("ret;", [[]]),
        ("", [[]]),
        ("add.u32 %r1, %r1, 1;", [[]]),
        ("@%p1 bra L; add.u32 %r1, %r1, 1; L: ret;", [[2, 1], [2], []]),
        ("L: add.u32 %r1, %r1, 1; @%p1 bra L; ret;", [[0, 1], []]),
        ("bra L; add.u32 %r1, %r1, 1; L: ret;", [[2], [2], []]),
        ("@%p1 ret; @!%p1 exit; trap;", [[1], [2], []]),
        ("@%p1 bra L; L: ret;", [[1], []]),
        ("t: .branchtargets A, B, A; brx.idx %r1, t; A: add.u32 %r1, %r1, 1; B: ret;", [[1, 2], [2], []]),
        ("{ bra L; L: add.u32 %r1, %r1, 1; } { bra L; L: add.u32 %r2, %r2, 1; }", [[1], [2], []]),
        ("L: bra L;", [[0]]),
        ("A: B: bra B;", [[0]]),
    ],
)
def test_edges(body: str, expected: list[list[int]]) -> None:
    assert edges(body) == expected


def test_same_label_in_two_scopes() -> None:
    """Each branch goes to the label of its own scope."""
    assert edges("{ L: @%p1 bra L; } { L: @%p2 bra L; } ret;") == [[0, 1], [1, 2], []]


def test_unknown_label_is_reported_and_has_no_edge() -> None:
    module, function = module_of("@%p1 bra NOWHERE; ret;")
    flow = control_flow(function, module)
    assert [name for _, name in flow.unresolved] == ["NOWHERE"] and flow.successors == [[1], []]


def test_labels_and_reachability() -> None:
    module, function = module_of("bra END; DEAD: add.u32 %r1, %r1, 1; bra DEAD; END: ret;")
    flow = control_flow(function, module)
    assert [block.labels for block in flow.blocks] == [[], ["DEAD"], ["END"]]
    assert flow.reachable() == {0, 2}


# --- dominators -------------------------------------------------------------------------------------------------------


def test_dominators_of_a_diamond_with_a_loop() -> None:
    graph = [[1, 2], [3], [3], [4, 0], []]
    assert dominators(graph).parent == [-1, 0, 0, 0, 3]


def random_graph(seed: int) -> list[list[int]]:
    rng = random.Random(seed)
    count = rng.randint(1, 12)
    return [sorted(rng.sample(range(count), rng.randint(0, min(2, count)))) for _ in range(count)]


@rows("seed", range(60))
def test_dominators_against_the_definition(seed: int) -> None:
    graph = random_graph(seed)
    tree = dominators(graph)
    reached = set(reverse_postorder(graph))
    for a in range(len(graph)):
        cut = [[s for s in following if s != a] if n != a else [] for n, following in enumerate(graph)]
        without = set(reverse_postorder(cut)) - {a} if a else set()
        for b in range(len(graph)):
            expected = a in reached and b in reached and (a == b or b not in without)
            assert tree.dominates(a, b) == expected, (a, b)


# --- liveness ---------------------------------------------------------------------------------------------------------


@rows("seed", range(40))
def test_solver_against_paths(seed: int) -> None:
    """A value is live into a block if some path reads it before it is killed."""
    rng = random.Random(seed)
    graph = random_graph(seed)
    uses = [rng.getrandbits(3) for _ in graph]
    kills = [rng.getrandbits(3) for _ in graph]
    into, out = solve(graph, uses, kills)
    for value in range(3):
        live = {b for b in range(len(graph)) if uses[b] >> value & 1}
        while True:
            more = {
                b for b in range(len(graph))
                if b not in live and not kills[b] >> value & 1 and any(s in live for s in graph[b])
            }  # fmt: skip
            if not more:
                break
            live |= more
        assert {b for b in range(len(graph)) if into[b] >> value & 1} == live
        assert {b for b in range(len(graph)) if out[b] >> value & 1} == {
            b for b in range(len(graph)) if any(s in live for s in graph[b])
        }


# --- work -------------------------------------------------------------------------------------------------------------


def analysed(blocks: int) -> Callable[[], object]:
    """The analyses of a function of so many blocks of ten instructions."""
    parts = [
        f"L{n}: " + "".join(f"add.u32 %r{i}, %r{i + 1}, {n}; " for i in range(1, 9)) + f"setp.eq.u32 %p1, %r1, {n}; "
        f"@%p1 bra L{(n * 7) % blocks}; "
        for n in range(blocks)
    ]
    module, function = module_of("".join(parts) + "ret;")

    def analyse() -> None:
        flow = control_flow(function, module)
        none = [0] * len(flow.successors)
        solve(flow.successors, [1 << block % 8 for block in range(len(none))], none)
        dominators(flow.successors)

    return analyse


def test_large_functions_take_linear_work() -> None:
    """10,000 instructions in 1,000 blocks; what grew with the square would grow sixteenfold."""
    analysed(10)()
    assert calls(analysed(1000)) < 6 * calls(analysed(250))


class _Counted(list[int]):
    """Numbers of blocks that count how often they are gone through."""

    seen = 0

    def __iter__(self) -> Iterator[int]:
        for number in super().__iter__():
            _Counted.seen += 1
            yield number


def test_a_large_switch_in_a_loop_takes_linear_work() -> None:
    """A block of many successors, all of which lead back to it, each with a value of its own."""

    def seen(cases: int) -> int:
        _Counted.seen = 0
        switch = list(range(1, cases + 1))
        graph = [_Counted(switch), *(_Counted([0]) for _ in switch)]
        into, out = solve(graph, [0, *(1 << case for case in switch)], [0] * (cases + 1))
        assert into == out == [(1 << cases + 1) - 2] * (cases + 1)
        return _Counted.seen

    assert seen(400) < 5 * seen(100)
