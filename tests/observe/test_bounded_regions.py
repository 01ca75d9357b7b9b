"""Regions that look at their accesses themselves: memcheck says the same with them and without."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import ptxtools

_SETUP = """.reg .b64 %a1, %a2, %s1, %s2, %x; .reg .b32 %c, %n, %w<8>; .reg .pred %again, %g1, %g2;
.shared .align 4 .b8 first[256]; .shared .align 4 .b8 second[256]; .reg .b32 %h, %l;
"""


class _Writer:
    """Writes a kernel with a loop: each round goes on by some words, and one that it may chance to reach is outside."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def guard(self) -> str:
        return self.random.choice(["", "", "", "@%g1 ", "@!%g2 "])

    def access(self) -> str:
        choose = self.random.choice
        place = choose(["%a1", "%a1", "%a2", "%x", "%h"])
        space = "shared" if place == "%h" else "global"
        constant = choose([0, 0, 4, -4, 8, 64, 252])
        value = f"%w{self.random.randrange(1, 6)}"
        if self.random.random() < 0.3 and place != "%a1":
            return f"{self.guard()}st.{space}.u32 [{place}+{constant}], {value};"
        return f"{self.guard()}ld.{space}.u32 {value}, [{place}+{constant}];"

    def line(self) -> str:
        choose = self.random.choice
        if self.random.random() < 0.5:
            return self.access()
        one, other, third = (f"%w{self.random.randrange(1, 6)}" for _ in range(3))
        return f"{choose(['add.u32', 'xor.b32', 'and.b32'])} {one}, {other}, {third};"

    def body(self) -> str:
        choose, lane = self.random.choice, "%i"
        pattern = choose(["", "", "and.b32 %c, %i, 16;", "mov.u32 %c, 3;", "xor.b32 %c, %i, 3;", "shl.b32 %c, %i, 1;"])
        lane = "%c" if pattern else lane
        rounds = choose([1, 2, 7, 24, 40])
        strides = [choose([0, 4, 4, 64, -4, 128]) for _ in range(2)]
        lines = [
            _SETUP, f"mov.u32 %c, %i; {pattern} mad.wide.u32 %a1, {lane}, 4, %a; ld.param.u64 %a2, [b];",
            f"mad.wide.u32 %a2, %i, 4, %a2; mov.u64 %s1, {strides[0]}; mov.u64 %s2, {strides[1]}; mov.u32 %n, 0;",
            "mov.u32 %h, first; mad.lo.u32 %h, %i, 4, %h; setp.lt.u32 %g1, %i, 20; setp.eq.u32 %g2, %i, 9;",
            *(f"mov.u32 %w{number}, {number};" for number in range(1, 6)), "mov.u64 %x, %a2;",
            *(self.line() for _ in range(choose([0, 3]))), "AGAIN:",
        ]  # fmt: skip
        for _ in range(choose([2, 5, 9])):
            lines.append(self.line())
        lines += [self.access(), choose(["", "mad.wide.u32 %x, %n, 4, %a2;"]), choose(["", "add.u32 %h, %h, 4;"])]
        lines += ["add.s64 %a1, %a1, %s1; add.s64 %a2, %a2, %s2; add.u32 %n, %n, 1;"]
        more = choose(["0", "0", "1", "7", "15"])  # some lanes leave before others
        lines += [f"and.b32 %l, %i, {more}; add.u32 %l, %l, {rounds};"]
        lines += ["setp.lt.u32 %again, %n, %l; @%again bra AGAIN;", *(self.line() for _ in range(3))]
        lines += ["st.shared.u32 [first], %w1;"]
        return "\n".join(lines)


def _kernel(seed: int) -> ptxtools.Kernel:
    text = _Writer(seed).body()
    return ptxtools.loads(f""".version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b) {{
  .reg .b64 %a; .reg .b32 %i;
  ld.param.u64 %a, [a]; mov.u32 %i, %tid.x;
  {text}
  ret;
}}""")["k"]


def _outcome(seed: int, tier: str) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    one, other = (rng.integers(1 << 30, size=int(rng.choice([33, 64, 96, 400]))).astype(np.uint32) for _ in range(2))
    threads = int(rng.choice([1, 24, 32, 32]))  # one warp: its accesses have one order
    device = ptxtools.Device(checks="memcheck", tier=tier, threads=1)
    result = device.launch(_kernel(seed), 1, threads, [one, other])
    found = [(one.checker, one.line, one.message, one.details, one.thread, one.count) for one in result.reports]
    return one.tolist(), other.tolist(), found, result.instructions


@pytest.mark.share(20)
@pytest.mark.parametrize("seed", range(200))
def test_reports_and_results_are_those_without_regions(seed: int) -> None:
    assert _outcome(seed, "regions") == _outcome(seed, "interpreter")
