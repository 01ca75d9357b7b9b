"""Video instructions with selectors and signs, constant prmt and lop3 operands: from text through both engines, the
native one on both tiers."""

from __future__ import annotations

import numpy as np
import pytest

from ptxtools import native, reference
from ptxtools.machine.launch import Launch, Outcome
from tests.program.harness import Memory, launch_of


def in_regions(launch: Launch) -> Outcome:
    """The native engine, on its second tier."""
    launch.tier = "regions"
    return native.run(launch)


ENGINES = {"native": native.run, "regions": in_regions, "reference": reference.run}


def run(engine: str, body: str) -> list[int]:
    """The kernel's 32 results; %a is 0x80 + thread, %b 0x00550000, %c 0xaaaabbbb."""
    memory = Memory()
    out = memory.put(np.zeros(32, np.uint32))
    text = f""".visible .entry k(.param .u64 out) {{
        .reg .u32 %t, %a, %b, %c, %d;
        .reg .u64 %p, %o; .reg .pred %q;
        ld.param.u64 %p, [out];
        mov.u32 %t, %tid.x;
        mad.wide.u32 %o, %t, 4, %p;
        add.u32 %a, %t, 0x80;
        mov.u32 %b, 0x00550000;
        mov.u32 %c, 0xaaaabbbb;
        {body}
        st.global.u32 [%o], %d;
        ret;
    }}"""
    ENGINES[engine](launch_of(text, memory, [out]))
    return [int(v) for v in memory.get(out, np.uint32, 32)]


@pytest.mark.parametrize("engine", ENGINES)
def test_selected_parts(engine: str) -> None:
    got = run(engine, "mov.u32 %d, %c; vabsdiff.s32.s32.s32.sat %d.h0, %a.b0, %b.b2, %c;")
    assert got == [0xAAAA0000 | abs(t - 0x80 - 0x55) for t in range(32)]


@pytest.mark.parametrize("engine", ENGINES)
def test_negated_operands(engine: str) -> None:
    assert run(engine, "vmad.s32.u32.u32 %d, -%a, %b.h1, %c;") == [
        (-(0x80 + t) * 0x55 + 0xAAAABBBB) & 0xFFFFFFFF for t in range(32)
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_simd_mask_and_selection(engine: str) -> None:
    got = run(engine, "vadd4.u32.u32.u32 %d.b20, %a.b0000, %b.b6666, %c;")
    assert got == [0xAA00BB00 | (0xD5 + t & 255) * 0x010001 for t in range(32)]


@pytest.mark.parametrize("engine", ENGINES)
def test_constant_selector_and_table(engine: str) -> None:
    assert run(engine, "prmt.b32 %d, %a, %c, 0x8074;") == [
        0xBB | 0xAA00 | (0x80 + t) << 16 | 0xFF000000 for t in range(32)
    ]
    assert run(engine, "lop3.b32 %d, %a, %b, %c, 0x96;") == [(0x80 + t) ^ 0x00550000 ^ 0xAAAABBBB for t in range(32)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("space, answer", [("shared", 0), ("global", 1)])
def test_space_of_a_32_bit_address(engine: str, space: str, answer: int) -> None:
    assert run(engine, f"isspacep.{space} %q, %c; selp.u32 %d, 1, 0, %q;") == [answer] * 32


@pytest.mark.parametrize("engine", ENGINES)
def test_predicates_of_lanes_that_take_no_part_stay(engine: str) -> None:
    got = run(
        engine,
        """setp.lt.u32 %q, %t, 8; mov.u32 %d, 0; .reg .pred %odd, %all; and.b32 %a, %t, 1; setp.eq.u32 %odd, %a, 1;
        @%odd bra JOIN;
        LOOP: setp.ge.u32 %q, %t, 20; setp.lt.or.u32 %all, %d, 3, %q; add.u32 %d, %d, 1; setp.lt.u32 %all, %d, 3;
        @%all bra LOOP;
        JOIN: selp.u32 %d, 1, 0, %q;""",
    )
    assert got == [int(t < 8 if t % 2 else t >= 20) for t in range(32)]
