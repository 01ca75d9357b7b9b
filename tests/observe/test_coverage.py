"""Coverage: exact on both engines, the same as an observer of every instruction sees, and as files."""

from __future__ import annotations

import json
from collections import Counter
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools.machine.events import View
from ptxtools.observe.coverage import Coverage
from ptxtools.observe.coverage_files import CoverageError, add_json, as_json, as_lcov, as_text
from tests.machine.test_random_kernels import Writer
from tests.rows import rows

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
#: 64 threads: those of the second warp agree about p, those of the first do not about q.
KERNEL = (
    HEAD
    + """.visible .entry k(.param .u64 out) {
    .reg .u32 %t, %v; .reg .u64 %a, %w; .reg .pred %p, %q;
    ld.param.u64 %a, [out];
    mov.u32 %t, %tid.x;
    mul.wide.u32 %w, %t, 4;
    add.u64 %a, %a, %w;
    mov.u32 %v, 100;
    setp.ge.u32 %p, %t, 64;
    setp.lt.u32 %q, %t, 8;
    @%p bra DONE;
    bar.sync 0;
    @%q add.u32 %v, %v, 1;
    st.global.u32 [%a], %v;
DONE:
    ret;
}
.visible .entry other() {
    .reg .pred %p;
    setp.eq.u32 %p, 1, 2;
    @%p trap;
    ret;
}
"""
)
ENGINES = pytest.mark.parametrize("engine", ["native", "reference"])


def covered(text: str, *arrays: Any, engine: str = "native", grid: int = 1, block: int = 64, **how: Any) -> Coverage:
    coverage = Coverage()
    device = ptxtools.Device(engine=engine, observers=[coverage], **how)
    device.launch(ptxtools.loads(text, "k.ptx")["k"], grid, block, list(arrays))
    return coverage


def counts(coverage: Coverage) -> dict[str, tuple[int, ...]]:
    return {
        i.text: (i.warps, i.lanes, *(() if i.guard is None else (i.guard.some, i.guard.lanes, i.guard.whole)))
        for i in coverage.instructions()
    }


@ENGINES
def test_lines_guards_and_kernels_that_did_not_run(engine: str) -> None:
    coverage = covered(KERNEL, np.zeros(64, np.uint32), engine=engine, grid=3)
    found = counts(coverage)
    assert found["ld.param.u64 %a, [out]"] == (6, 192)
    assert found["@%p bra DONE"] == (6, 192, 0, 0, 0)
    assert found["@%q add.u32 %v, %v, 1"] == (6, 192, 3, 24, 0)
    assert found["@%p trap"] == (0, 0, 0, 0, 0)
    assert (str(coverage.lines), str(coverage.branches), str(coverage.mixed)) == (
        "12 of 15 (80.0 %)", "3 of 6 (50.0 %)", "1 of 3 (33.3 %)",
    )  # fmt: skip


class Oracle(ptxtools.Observer):
    """Counts every instruction as it comes, in a program that nothing has optimised."""

    def __init__(self) -> None:
        self.lanes: Counter[int] = Counter()
        self.held: Counter[int] = Counter()

    def instruction(self, at: View, lanes: Any) -> None:
        start = at.launch.program.lines[at.op.where][1]
        self.lanes[start] += at.mask.bit_count()
        self.held[start] += len(lanes)


def agrees(text: str) -> Coverage:
    """Counts agree on both engines, and those of threads are the oracle's; its warps are stopped so often that other
    lanes run together."""
    oracle = Oracle()
    out = np.zeros(1024, np.uint32)
    ptxtools.Device(observers=[oracle]).launch(ptxtools.loads(text)["k"], 2, 40, [out])
    native, reference = (covered(text, out, engine=engine, grid=2, block=40) for engine in ("native", "reference"))
    assert counts(native) == counts(reference)
    for start, i in native.files["k.ptx"].instructions.items():
        assert (i.lanes, i.taken) == (oracle.lanes[start], oracle.held[start]), i
    return native


@rows("seed", range(24), share=8)
def test_random_kernels_are_counted_as_they_run(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        import_module("ptxtools.reference.run"), "_TURN", 1 << 30
    )  # else lanes take turns in long loops, on this engine sooner
    body = Writer(seed).body()
    text = (
        HEAD
        + f""".visible .entry k(.param .u64 out) {{
    .reg .u32 %t; .reg .u64 %out, %w; .reg .pred %p<8>; .reg .b32 %r<20>;
    mov.u32 %t, %tid.x; mul.wide.u32 %w, %t, 4; ld.param.u64 %out, [out]; add.u64 %out, %out, %w;
    {body}
}}"""
    )
    agrees(text)


def test_a_loop_that_goes_round_by_itself() -> None:
    """Whole loops run inside one handler; a guard in them and the side of a branch change from round to round."""
    text = (
        HEAD
        + """.visible .entry k(.param .u64 out) {
    .reg .u32 %t, %v, %i, %b; .reg .u64 %a, %w; .reg .pred %p, %q, %e;
    ld.param.u64 %a, [out]; mov.u32 %t, %tid.x; mov.u32 %v, 0; mov.u32 %i, 0;
    setp.eq.u32 %e, %t, 3;
L:  add.u32 %v, %v, %t;
    xor.b32 %v, %v, %i;
    @!%e add.u32 %v, %v, 1;
    and.b32 %b, %v, 1;
    setp.eq.u32 %e, %b, 0;
    setp.eq.u32 %q, %b, 1;
    @%q bra ODD;
    add.u32 %v, %v, 3;
    bra.uni NEXT;
ODD: xor.b32 %v, %v, 5;
NEXT: add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, 50;
    @%p bra L;
    mul.wide.u32 %w, %t, 4; add.u64 %a, %a, %w; st.global.u32 [%a], %v; ret;
}"""
    )
    found = counts(agrees(text))
    assert found["@%p bra L"] == (200, 4000, 196, 3920, 196)
    assert found["add.u32 %v, %v, %t"] == (200, 4000)


def test_results_and_instructions_stay() -> None:
    """Counting is no work of the kernel."""
    module = ptxtools.loads(KERNEL)
    runs = []
    for observers in ([], [Coverage()]):
        out = np.zeros(64, np.uint32)
        result = ptxtools.Device(observers=observers).launch(module["k"], 2, 64, [out])
        runs.append((result.instructions, out.tolist()))
    assert runs[0] == runs[1]


def test_several_workers_and_checkers_count_the_same() -> None:
    out = np.zeros(64, np.uint32)
    plain = counts(covered(KERNEL, out, grid=40))
    assert counts(covered(KERNEL, out, grid=40, threads=3)) == plain
    assert counts(covered(KERNEL, out, grid=40, checks="memcheck,initcheck")) == plain
    assert counts(covered(KERNEL, out, grid=40, optimise=False)) == plain


@ENGINES
def test_what_stands_behind_a_trap_is_not_covered(engine: str) -> None:
    text = (
        HEAD
        + """.visible .entry k() {
    .reg .u32 %v; .reg .u64 %z;
    mov.u64 %z, 0;
    ld.global.u32 %v, [%z];
    add.u32 %v, %v, 1;
    ret;
}"""
    )
    coverage = Coverage()
    with pytest.raises(ptxtools.Trap):
        ptxtools.Device(engine=engine, observers=[coverage]).launch(ptxtools.loads(text)["k"], 1, 32, [])
    assert [i.warps for i in coverage.instructions()] == [1, 1, 0, 0]


def test_launches_of_modules_of_one_name() -> None:
    coverage = Coverage()
    device = ptxtools.Device(observers=[coverage])
    for more in ("", "", "    ret;\n"):
        text = HEAD + ".visible .entry k() {\n" + more + "    ret;\n}\n"
        device.launch(ptxtools.loads(text, "k.ptx")["k"], 1, 32, [])
    assert {name: [i.warps for i in file.instructions.values()] for name, file in coverage.files.items()} == {
        "k.ptx": [2], "k.ptx (2)": [1, 0],
    }  # fmt: skip


def test_lcov() -> None:
    text = KERNEL.replace(HEAD, HEAD + '.file 1 "k.cu"\n').replace("    bar.sync", "    .loc 1 7 1\n    bar.sync")
    lines = as_lcov(covered(text, np.zeros(64, np.uint32))).split()
    at = text.splitlines().index("    @%q add.u32 %v, %v, 1;") + 1
    assert {"SF:k.ptx", "FNDA:2,k", "FNDA:0,other", "FNF:2", "FNH:1", "BRF:6", "BRH:3", "LF:15", "LH:12"} <= {*lines}
    assert {f"DA:{at},2", f"BRDA:{at},0,0,8", f"BRDA:{at},0,1,56", f"BRDA:{at - 3},0,0,0"} <= {*lines}
    assert sum(line.endswith(",-") for line in lines) == 2  # of the trap that nobody came to
    assert lines[lines.index("SF:k.cu") + 1 :][:2] == ["DA:7,2", "LF:1"]


def test_annotated_text() -> None:
    text = as_text(covered(KERNEL, np.zeros(64, np.uint32)))
    assert "         2           64     14 |     bar.sync 0;\n" in text
    assert "@%q add.u32 %v, %v, 1;  // guard held for 8 of 64, mixed 1 times\n" in text
    assert "@%p bra DONE;  // guard held for 0 of 64, never mixed\n" in text
    assert "         0            0     24 |     ret;  // never executed\n" in text


def test_json_adds_up() -> None:
    coverage = covered(KERNEL, np.zeros(64, np.uint32))
    data = as_json(coverage).encode()
    once = counts(coverage)
    add_json(coverage, data)
    assert counts(coverage) == {text: tuple(2 * count for count in some) for text, some in once.items()}
    fresh = Coverage()
    add_json(fresh, data)
    assert as_lcov(fresh) == as_lcov(covered(KERNEL, np.zeros(64, np.uint32)))


@rows("data, says", [
    (b"", "no coverage"), (b"\xff", "no coverage"), (b"[]", "no coverage"), (b"[" * 100000, "no coverage"),
    (b'{"format": 3}', "the format is 3"), (b'{"format": "ptxtools coverage 1", "files": [{}]}', "no coverage"),
])  # fmt: skip
def test_json_that_is_none(data: bytes, says: str) -> None:
    with pytest.raises(CoverageError, match=says):
        add_json(Coverage(), data)


def test_json_of_another_text() -> None:
    coverage = covered(KERNEL, np.zeros(64, np.uint32))
    changed = json.loads(as_json(coverage))
    changed["files"][0]["text"][3] += " "
    with pytest.raises(CoverageError, match=r"k\.ptx has changed"):
        add_json(coverage, json.dumps(changed).encode())
