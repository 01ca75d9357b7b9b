"""Control flow, dominators, liveness and uniformity on small functions."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from ptxtools.ir import Function, Module
from ptxtools.ir.cfg import control_flow, reverse_postorder
from ptxtools.ir.dominators import dominators, post_dominators
from ptxtools.ir.liveness import liveness, solve
from ptxtools.ir.uniformity import uniformity
from ptxtools.syntax import parse
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
    assert post_dominators(graph).parent == [3, 3, 3, 4, 5, -1]


def test_blocks_of_an_endless_loop_have_a_post_dominator() -> None:
    tree = post_dominators([[1, 2], [1], []])
    assert tree.parent == [3, 3, 3, -1]


def test_common_dominator() -> None:
    tree = dominators([[1, 2], [3, 4], [4], [], []])
    assert tree.common(3, 4) == 0 and tree.common(3, 1) == 1 and not tree.dominates(3, 4)


def random_graph(seed: int) -> list[list[int]]:
    rng = random.Random(seed)
    count = rng.randint(1, 12)
    return [sorted(rng.sample(range(count), rng.randint(0, min(2, count)))) for _ in range(count)]


@pytest.mark.parametrize("seed", range(60))
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


def live_names(body: str, **options: str) -> tuple[list[set[str]], list[set[str]]]:
    module, function = module_of(body, **options)
    result = liveness(control_flow(function, module))

    def names(sets: list[int]) -> list[set[str]]:
        return [{n for i, n in enumerate(result.registers.names) if live >> i & 1} for live in sets]

    return names(result.live_in), names(result.live_out)


def test_loop_carries_its_counter() -> None:
    into, out = live_names("mov.u32 %r1, 0; L: add.u32 %r1, %r1, %r2; setp.lt.u32 %p1, %r1, 9; @%p1 bra L; ret;")
    assert into == [{"%r2"}, {"%r1", "%r2"}, set()] and out == [{"%r1", "%r2"}, {"%r1", "%r2"}, set()]


def test_guarded_write_does_not_end_a_life() -> None:
    into, _ = live_names("@%p1 mov.u32 %r1, 0; st.global.u32 [%d1], %r1; ret;")
    assert into == [{"%p1", "%r1", "%d1"}]
    into, _ = live_names("mov.u32 %r1, 0; st.global.u32 [%d1], %r1; ret;")
    assert into == [{"%d1"}]


def test_component_write_does_not_end_a_life() -> None:
    into, _ = live_names("mov.f32 %v.x, 0f00000000; st.global.v4.f32 [%d1], %v; ret;")
    assert into == [{"%v", "%d1"}]


def test_operand_forms() -> None:
    into, _ = live_names("""mov.b64 %d1, {%r1, %r2}; mov.b64 {%r3, %r4}, %d1; setp.eq.and.u32 %p1|%p2, %r3, %r4, !%p3;
        ld.global.u32 %r5, [%d2+4]; selp.u32 %r6, %r5, %r7, %p2; ret;""")
    assert into == [{"%r1", "%r2", "%p3", "%d2", "%r7"}]


def test_calls() -> None:
    result = parse(
        HEADER
        + """.func (.reg .u32 o) f(.reg .u32 i) { mov.u32 o, i; ret; }
        .visible .entry k() { .reg .u32 %r<4>; call (%r1), f, (%r2); mov.u32 %r3, %r1; ret; }"""
    )
    flow = control_flow(result.module.functions[1], result.module)
    found = liveness(flow)
    assert [found.registers.names[i] for i in range(4) if found.live_in[0] >> i & 1] == ["%r2"]


def test_live_sets_after_each_instruction() -> None:
    module, function = module_of("mov.u32 %r1, 1; add.u32 %r2, %r1, 1; st.global.u32 [%d1], %r2; ret;")
    found = liveness(control_flow(function, module))
    names = found.registers.names
    sets = [{names[i] for i in range(len(names)) if live >> i & 1} for live in found.after_each(0)]
    assert sets == [{"%r1", "%d1"}, {"%r2", "%d1"}, set(), set()]


@pytest.mark.parametrize("seed", range(40))
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


# --- uniformity -------------------------------------------------------------------------------------------------------


def divergent(body: str, level: str = "warp", **options: str) -> tuple[set[str], set[int], set[int]]:
    module, function = module_of(body, **options)
    flow = control_flow(function, module)
    live = liveness(flow)
    found = uniformity(flow, live, level=level)  # type: ignore[arg-type]
    names = {n for i, n in enumerate(live.registers.names) if found.registers >> i & 1}
    return names, found.branches, found.blocks


def test_divergence_spreads_along_values() -> None:
    names, _, _ = divergent(
        "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; add.u32 %r3, %r1, %r2; add.u32 %r4, %r2, 1; ret;"
    )
    assert names == {"%r1", "%r3"}


def test_parameters_are_uniform_in_a_kernel_only() -> None:
    body = "ld.param.u64 %d1, [a]; ld.global.u32 %r1, [%d1]; ld.const.u32 %r2, [%d1]; ret;"
    assert divergent(body)[0] == {"%r1"}
    assert divergent(body, kind=".func f(.param .u64 a)")[0] == {"%d1", "%r1", "%r2"}


def test_values_written_between_branch_and_join_diverge() -> None:
    body = """mov.u32 %r1, %laneid; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, 1; @%p1 bra J; mov.u32 %r2, 2;
        J: mov.u32 %r3, 3; add.u32 %r4, %r2, %r3; ret;"""
    names, branches, blocks = divergent(body)
    assert names == {"%r1", "%p1", "%r2", "%r4"} and branches == {0} and blocks == {1}


def test_loop_with_divergent_exit() -> None:
    body = """mov.u32 %r1, %tid.x; mov.u32 %r2, 0; L: add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, %r1; @%p1 bra L;
        add.u32 %r3, %r2, 1; ret;"""
    names, branches, blocks = divergent(body)
    assert {"%r2", "%r3"} <= names and branches == {1} and 1 in blocks


def test_warp_and_cta_level() -> None:
    body = "mov.u32 %r1, %warpid; setp.eq.u32 %p1, %r1, 0; vote.sync.all.pred %p2, %p1, -1; ret;"
    assert divergent(body)[0] == set()
    assert divergent(body, level="cta")[0] == {"%r1", "%p1", "%p2"}


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
        uniformity(flow, liveness(flow))
        dominators(flow.successors)

    return analyse


def test_large_functions_take_linear_work() -> None:
    """10,000 instructions in 1,000 blocks; what grew with the square would grow sixteenfold."""
    analysed(10)()
    assert calls(analysed(1000)) < 6 * calls(analysed(250))
