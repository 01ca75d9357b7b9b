"""redux.sync of f32 (9.7.13.12), against the manual's rules worked out with Python's floats."""

from __future__ import annotations

import math

import numpy as np

from tests.rows import rows

from .harness import Memory, both, go, launch_of

KERNEL = """.version 8.6
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in) {{
    .reg .b32 %r<4>; .reg .f32 %f<4>; .reg .b64 %d<6>; .reg .pred %p;
    ld.param.u64 %d1, [out]; ld.param.u64 %d2, [in]; mov.u32 %r1, %tid.x; mul.wide.u32 %d3, %r1, 4;
    add.u64 %d1, %d1, %d3; add.u64 %d2, %d2, %d3; ld.global.f32 %f1, [%d2];
    and.b32 %r2, %r1, 1; setp.eq.u32 %p, %r2, 0; mov.u32 %r3, 0xAAAAAAAA; @%p mov.u32 %r3, 0x55555555;
    redux.sync.{mods}.f32 %f2, %f1, %r3; st.global.f32 [%d1], %f2; ret;
}}"""

NAN, INF = math.nan, math.inf
ROWS = {
    "numbers": [1.5, -2.5, 3.0, 1e30, -1e-40, 7.0],
    "zeros": [0.0, -0.0],
    "infinities": [INF, -INF, 4.0],
    "one NaN": [NAN, 2.0, -3.0],
    "all NaN": [NAN],
}


def expected(values: list[float], mods: str) -> float:
    """-0 is less than +0; NaNs are left out, unless .NaN is given or nothing else is there."""
    values = [abs(v) if ".abs" in mods else v for v in values]
    numbers = [v for v in values if not math.isnan(v)]
    if not numbers or (".NaN" in mods and len(numbers) < len(values)):
        return NAN
    choose = min if mods.startswith("min") else max
    return choose(numbers, key=lambda v: (v, math.copysign(1, v)))


@both
@rows("mods", ["min", "max", "min.abs", "max.abs", "min.NaN", "max.NaN", "max.abs.NaN"])
@rows("row", ROWS)
def test_redux_of_floats(engine, mods, row):
    """Even and odd lanes reduce among themselves; odd lanes have the values negated."""
    values = [ROWS[row][lane // 2 % len(ROWS[row])] for lane in range(32)]
    data = np.array([-v if lane % 2 else v for lane, v in enumerate(values)], np.float32)
    memory = Memory()
    source, out = memory.put(data), memory.put(np.zeros(32, np.uint32))
    go(engine, launch_of(KERNEL.format(mods=mods), memory, [out, source]))
    got = memory.get(out, np.uint32, 32)
    for side in (0, 1):
        wanted = np.float32(expected([float(v) for v in data[side::2]], mods))
        bits = 0x7FFFFFFF if np.isnan(wanted) else int(wanted.view(np.uint32))
        assert got[side::2].tolist() == [bits] * 16
