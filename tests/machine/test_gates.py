"""A gate: which instructions an observer is told of, and that a run is the same however often it is open."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools.machine.gates import FOLLOW_NOTES, FOLLOW_OPENS, NEVER, Gate

ENGINES = pytest.mark.parametrize("engine", ["native", "reference"])
#: Warps that take different times; the last line stores.
KERNEL = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out) {
    .reg .u32 %t, %v, %i; .reg .u64 %a, %w; .reg .pred %p; .shared .u32 s[4];
    ld.param.u64 %a, [out];
    mov.u32 %t, %tid.x;
    mul.wide.u32 %w, %t, 4;
    add.u64 %a, %a, %w;
    shr.u32 %i, %t, 5;
    mad.lo.u32 %i, %i, 3, 40;
    mov.u32 %v, 1;
L:
    mad.lo.u32 %v, %v, 3, %i;
    sub.u32 %i, %i, 1;
    setp.ne.u32 %p, %i, 0;
    @%p bra L;
    bar.sync 0;
    st.global.u32 [%a], %v;
    ret;
}
"""


class Told:
    """Notes what it is told of; step: the gate opens again so many instructions later."""

    def __init__(self, step: int = 0) -> None:
        self.gate, self.step, self.told = Gate(), step, list[tuple[Any, ...]]()
        self.gate.state.until = step or NEVER

    def instruction(self, at: Any, lanes: Any) -> None:
        count = self.gate.state.count
        self.told.append((count, at.cta.place, at.warp, at.text))
        self.gate.state.until = count + self.step if self.step else NEVER


def run(engine: str, told: Told, seed: int | None = None) -> Any:
    out = np.zeros(128, np.uint32)
    device = ptxtools.Device(engine=engine, observers=[told], seed=seed)
    device.launch(ptxtools.loads(KERNEL)["k"], 3, 96, [out])
    return out


@ENGINES
@pytest.mark.parametrize("seed", [None, 4])
def test_runs_alike_however_often_it_opens(engine: str, seed: int | None) -> None:
    every, some, none = Told(1), Told(37), Told()
    outs = [run(engine, told, seed) for told in (every, some, none)]
    assert (outs[0] == outs[1]).all() and (outs[0] == outs[2]).all()
    assert not none.told and len(some.told) > 20
    assert [one[0] for one in every.told] == list(range(1, len(every.told) + 1))
    assert set(some.told) <= set(every.told)
    assert none.gate.state.count == some.gate.state.count == len(every.told)


@ENGINES
def test_a_line_that_is_armed(engine: str) -> None:
    class Arms(Told):
        def grid_begun(self, launch: Any) -> None:
            texts = [text for _, _, text in launch.program.lines]
            self.gate.armed(launch.program)[texts.index(next(t for t in texts if t.startswith("st.global")))] = 1

    told = Arms()
    run(engine, told)
    assert sorted((cta, warp) for _, cta, warp, _ in told.told) == [((x, 0, 0), w) for x in range(3) for w in range(3)]
    assert {text.split()[0] for *_, text in told.told} == {"st.global.u32"}


@ENGINES
def test_a_warp_that_is_followed(engine: str) -> None:
    told, notes = Told(), Told()
    told.gate.follow(FOLLOW_OPENS, (1, 0, 0), 2, 1 << 5)
    run(engine, told)
    assert {(cta, warp) for _, cta, warp, _ in told.told} == {((1, 0, 0), 2)}
    assert [text.split()[0] for *_, text in told.told][-3:] == ["bar.sync", "st.global.u32", "ret"]
    notes.gate.follow(FOLLOW_NOTES, (1, 0, 0), 2, 1 << 5)
    run(engine, notes)
    assert not notes.told and notes.gate.state.seen == told.told[-1][0]


def test_a_word_that_changes() -> None:
    class Watches(Told):
        def __init__(self) -> None:
            super().__init__(1)
            self.changes: list[tuple[Any, ...]] = []

        def instruction(self, at: Any, lanes: Any) -> None:
            gate = self.gate
            if self.step:  # the first instruction: word 40 of the buffer belongs to warp 1
                address = at.launch.memory.host - at.launch.memory.base + int.from_bytes(at.launch.params, "little")
                gate.watch([(address + 160, 0xFFFF_FFFF)])
                self.step, gate.state.until = 0, NEVER
            elif any(gate.changed()):
                self.changes.append((gate.state.last_x, gate.state.last_warp, gate.state.last_where))
                gate.state.watches = 0
                self.lines = at.launch.program.lines

    told = Watches()
    out = run("native", told)
    assert out[40] != 0
    ((_, warp, where),) = told.changes
    assert warp == 1 and told.lines[where][2].startswith("st.global")
