"""The instruction trace, on both engines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools.observe.selection import Moment, Selection
from ptxtools.observe.trace import Record, Trace
from ptxtools.observe.tracelines import as_json, as_text

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
#: out[t] = t < 8 ? f(t) : 100, with f(x) = 3x + 1.
KERNEL = (
    HEAD
    + """.func (.reg .u32 %o) f(.reg .u32 %i) {
    mad.lo.u32 %o, %i, 3, 1;
    ret;
}
.visible .entry k(.param .u64 out) {
    .reg .u32 %t, %v; .reg .u64 %a, %w; .reg .pred %p; .shared .u32 s[64];
    ld.param.u64 %a, [out];
    mov.u32 %t, %tid.x;
    mul.wide.u32 %w, %t, 4;
    add.u64 %a, %a, %w;
    mov.u32 %v, 100;
    setp.ge.u32 %p, %t, 8;
    @%p bra DONE;
    call (%v), f, (%t);
DONE:
    bar.sync 0;
    st.global.u32 [%a], %v;
    ret;
}
"""
)
ENGINES = pytest.mark.parametrize("engine", ["native", "reference"])


def trace(text: str, block: int, *arrays: Any, engine: str = "native", grid: int = 1, **how: Any) -> list[Record]:
    records: list[Record] = []
    device = ptxtools.Device(engine=engine, observers=[Trace(records.append, **how)])
    module = ptxtools.loads(text)
    device.launch(module["k"], grid, block, list(arrays))
    return records


def instructions(records: list[Record]) -> Iterator[tuple[str, list[int]]]:
    for record in records:
        if record.event == "instruction":
            yield record.text.split()[0], record.lanes.tolist()


@ENGINES
def test_who_executes_what(engine: str) -> None:
    out = np.zeros(32, np.uint32)
    records = trace(KERNEL, 32, out, engine=engine)
    assert out.tolist() == [3 * t + 1 for t in range(8)] + [100] * 24
    everyone, first, rest = list(range(32)), list(range(8)), list(range(8, 32))
    found = list(instructions(records))
    assert found[:7] == [
        ("ld.param.u64", everyone), ("mov.u32", everyone), ("mul.wide.u32", everyone), ("add.u64", everyone),
        ("mov.u32", everyone), ("setp.ge.u32", everyone), ("@%p", rest),
    ]  # fmt: skip
    assert ("mad.lo.u32", first) in found
    stored = sorted(lane for opcode, lanes in found if opcode == "st.global.u32" for lane in lanes)
    assert stored == everyone
    assert {(r.event, r.what) for r in records} >= {("call", "f"), ("arrive", "bar"), ("leave", "bar")}
    assert [record.number for record in records] == list(range(1, len(records) + 1))


@ENGINES
def test_values_before_and_after(engine: str) -> None:
    text = (
        HEAD
        + """.visible .entry k(.param .u64 x) {
    .reg .u64 %a; .reg .u32 %t; .reg .f32 %f; .reg .pred %p;
    ld.param.u64 %a, [x];
    mov.u32 %t, %laneid;
    add.u32 %t, %t, 5;
    setp.gt.u32 %p, %t, 7;
    @%p add.u32 %t, %t, 1000;
    ld.global.f32 %f, [%a];
    ret;
}
"""
    )
    records = trace(text, 4, np.array([0.5], np.float32), engine=engine)
    by_line = {record.line: record for record in records if record.event == "instruction"}
    added, guarded, loaded = by_line[8], by_line[10], by_line[11]
    assert added.before["%t"].tolist() == [0, 1, 2, 3]
    assert added.after["%t"].tolist() == [5, 6, 7, 8]
    assert guarded.lanes.tolist() == [3]
    assert guarded.before["%t"].tolist() == [8] and guarded.after["%t"].tolist() == [1008]
    assert guarded.after["%p"].tolist() == [True]
    assert loaded.after["%f"].tolist() == [0.5] * 4
    (access,) = loaded.accesses
    assert (access.space, access.action, access.size) == ("global", "read", 4)
    assert access.addresses.tolist() == loaded.after["%a"].tolist()


@pytest.mark.parametrize(("select", "wanted"), [
    (Selection(warps=frozenset({1})), lambda r: r.warp == 1),
    (Selection(ctas=frozenset({(2, 0, 0)})), lambda r: r.cta == (2, 0, 0)),
    (Selection(lines=((9, 10), (12, 12))), lambda r: r.line in (9, 10, 12)),
    (Selection(opcodes=("st.", "mul")), lambda r: r.text.startswith(("st.", "mul"))),
    (Selection(registers=frozenset({"%p"})), lambda r: "%p" in r.text),
])  # fmt: skip
def test_a_selection_is_what_a_whole_trace_has_of_it(select: Selection, wanted: Any) -> None:
    out = np.zeros(64, np.uint32)
    whole = trace(KERNEL, 64, out, grid=3)
    some = trace(KERNEL, 64, out, grid=3, select=select)
    kept = [(r.event, r.cta, r.warp, r.line, r.lanes.tolist()) for r in whole if r.warp is not None and wanted(r)]
    assert kept
    assert [(r.event, r.cta, r.warp, r.line, r.lanes.tolist()) for r in some if r.warp is not None] == kept


def test_lanes_and_values_of_chosen_lanes_only() -> None:
    out = np.zeros(32, np.uint32)
    records = trace(KERNEL, 32, out, select=Selection(lanes=frozenset({3, 20})))
    called = [record for record in records if record.text.startswith("mad")]
    assert [record.lanes.tolist() for record in called] == [[3]]
    assert called[0].after["%o"].tolist() == [10]
    assert all(set(record.lanes.tolist()) <= {3, 20} for record in records)


def test_from_a_moment_to_another() -> None:
    out = np.zeros(32, np.uint32)
    records = trace(KERNEL, 32, out, begin=Moment.parse("function:f"), end=Moment.parse("opcode:bar"))
    found = [opcode for opcode, _ in instructions(records)]
    assert found[0] in ("call", "mad.lo.u32") and "mad.lo.u32" in found
    assert found[-1] == "bar.sync" and "st.global.u32" not in found
    records = trace(KERNEL, 32, out, begin=Moment.parse("11"), end=Moment.parse("line:13"))
    assert [opcode for opcode, _ in instructions(records)] == ["mov.u32", "mul.wide.u32", "add.u64"]


@pytest.mark.parametrize("text", ["", "line:x", "opcode:", "when:3", "-1", "²"])
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(ValueError, match="no moment"):
        Moment.parse(text)


def test_the_last_events_only() -> None:
    out = np.zeros(32, np.uint32)
    whole, last = trace(KERNEL, 32, out), trace(KERNEL, 32, out, last=3)
    assert [record.number for record in last] == [record.number for record in whole[-3:]]


@ENGINES
def test_an_instruction_that_traps_is_the_last(engine: str) -> None:
    text = (
        HEAD
        + """.visible .entry k() {
    .reg .u64 %a; .reg .u32 %v;
    mov.u64 %a, 64;
    ld.global.u32 %v, [%a];
    ret;
}
"""
    )
    records: list[Record] = []
    device = ptxtools.Device(engine=engine, observers=[Trace(records.append)])
    with pytest.raises(ptxtools.Trap):
        device.launch(ptxtools.loads(text)["k"], 1, 1, [])
    told = [record for record in records if record.event in ("instruction", "trap")]
    assert [(record.event, record.line) for record in told[:1]] == [("instruction", 6)]
    assert any(record.event == "trap" and "out of bounds" in record.what for record in told)
    (load,) = (record for record in told if record.event == "instruction" and record.text.startswith("ld.global"))
    assert load.before["%a"].tolist() == [64]


def without_before(record: Record) -> dict[str, Any]:
    """A record but for its number, and for registers that nobody has written yet, which hold anything."""
    found = json.loads(as_json(record))
    return {key: value for key, value in found.items() if key not in ("number", "before")}


@ENGINES
def test_both_engines_tell_the_same_of_a_warp(engine: str) -> None:
    out = np.zeros(64, np.uint32)
    records = trace(KERNEL, 64, out, engine=engine)
    reference = trace(KERNEL, 64, out, engine="reference")
    for warp in (0, 1):
        assert [without_before(r) for r in records if r.warp == warp] == [
            without_before(r) for r in reference if r.warp == warp
        ]


def test_text_is_short_for_even_values() -> None:
    out = np.zeros(32, np.uint32)
    text = "".join(map(as_text, trace(KERNEL, 32, out)))
    assert text.startswith("grid begun: k: grid 1,1,1 block 32,1,1\n")
    assert "%t = 0, 1 … 31  (was 0)\n" in text
    assert "%v = 100  (was 0)\n" in text
    assert "%p = 0 × 8, 1 × 24  (was 0)\n" in text
    assert "add.u64 %a, %a, %w  lanes 0-31\n" in text
    assert "global write, 4 bytes at 0x10000000, 0x10000004 … 0x1000007c\n" in text
    assert text.endswith("grid ended: k\n")


def test_json_has_numbers_that_json_knows() -> None:
    text = (
        HEAD
        + """.visible .entry k() {
    .reg .f32 %f; .reg .f16 %h;
    mov.f32 %f, 0f7FC00000;
    mov.f32 %f, 0fFF800000;
    mov.b16 %h, 0x3c00;
    ret;
}
"""
    )
    lines = [json.loads(as_json(record)) for record in trace(text, 1)]
    assert [list(line["after"].values()) for line in lines if line.get("text", "").startswith("mov")] == [
        [["nan"]], [["-inf"]], [[1.0]]
    ]  # fmt: skip
    assert lines[1]["file"] and lines[1]["line"] == 6 and lines[1]["source"] is None
