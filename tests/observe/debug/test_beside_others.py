"""The debugger beside an observer that hears of every instruction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools.observe.debug.debugger import Debugger
from ptxtools.observe.debug.goals import Breakpoint, Goal, Stop
from tests.observe.debug.test_sessions import ENGINES, KERNEL


class Front:
    """Sets a breakpoint at the entry, and goes on at each stop."""

    def __init__(self) -> None:
        self.stops: list[tuple[str, int]] = []

    def wants(self) -> bool:
        return False

    def stopped(self, debugger: Debugger, stop: Stop) -> tuple[Goal, bool]:
        self.stops.append((stop.kind, debugger.count))
        if stop.kind == "entry":
            debugger.add(Breakpoint(0, "break", "20"))
        return Goal(), False


class Every:
    def __init__(self) -> None:
        self.count = 0

    def instruction(self, at: Any, lanes: Any) -> None:
        self.count += 1


@ENGINES
@pytest.mark.parametrize("others", [(), (Every(),)], ids=["alone", "beside"])
def test_stops_are_the_same(engine: str, others: tuple[Any, ...]) -> None:
    front, out = Front(), np.zeros(64, np.uint32)
    debugger = Debugger(front, None)
    device = ptxtools.Device(engine=engine, observers=[*others, debugger])
    device.launch(ptxtools.loads(KERNEL)["k"], 1, 64, [out])
    assert [kind for kind, _ in front.stops] == ["entry", "breakpoint", "breakpoint", "end"]
    assert front.stops[0][1] == 1 and out[:3].tolist() == [1, 4, 7]
    for other in others:
        assert debugger.count == other.count
        other.count = 0
