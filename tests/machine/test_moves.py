"""Moves between lanes and inside registers that no other kernel of the tests has (9.7.9.5 to 9.7.9.7, 9.7.13.1,
9.7.13.8), on both engines; the expectations are the manual's definitions, in plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from tests.rows import rows

from .harness import both, output

HEAD = """.version 6.3
.target {target}
.address_size 64
.visible .entry k(.param .u64 out) {{
    .reg .pred %p<8>; .reg .b32 %r<24>; .reg .b64 %d<8>; .reg .u32 %t; .reg .u64 %out, %w;
    mov.u32 %t, %tid.x; ld.param.u64 %out, [out]; mul.wide.u32 %w, %t, 4; add.u64 %out, %out, %w; mov.u32 %r0, 0;
"""


def run(engine: str, body: str, target: str = "sm_75", count: int = 32) -> list[int]:
    text = HEAD.format(target=target) + body + " st.global.u32 [%out], %r0; ret; }"
    return output(engine, text, count, dtype=np.uint32, block=(count, 1, 1))


def byte_of(a: int, b: int, number: int) -> int:
    return (a | b << 32) >> 8 * number & 0xFF


def permuted(mode: str, a: int, b: int, c: int) -> int:
    """prmt.b32 (9.7.9.7)."""
    if not mode:
        result = 0
        for i in range(4):
            nibble = c >> 4 * i & 15
            value = byte_of(a, b, nibble & 7)
            result |= ((0xFF if value & 0x80 else 0) if nibble & 8 else value) << 8 * i
        return result
    n = c & 3
    order = {
        "f4e": [n, n + 1, n + 2, n + 3], "b4e": [n, n - 1 & 7, n - 2 & 7, n - 3 & 7], "rc8": [n] * 4,
        "ecl": [max(i, n) for i in range(4)], "ecr": [min(i, n) for i in range(4)],
        "rc16": [2 * (n & 1), 2 * (n & 1) + 1] * 2,
    }[mode]  # fmt: skip
    return sum(byte_of(a, b, place) << 8 * i for i, place in enumerate(order))


@both
@pytest.mark.parametrize("mode", ["", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"])
def test_permuted_bytes(engine, mode):
    a, b = 0x83C2_4110, 0x7FE5_96F4
    controls = [t * 0x1357 + (t << 3) for t in range(32)]
    body = f"""mov.b32 %r1, {a}; mov.b32 %r2, {b}; mul.lo.u32 %r3, %t, 0x1357; shl.b32 %r4, %t, 3;
        add.u32 %r3, %r3, %r4;
        prmt.b32{"." + mode if mode else ""} %r0, %r1, %r2, %r3;"""
    assert run(engine, body) == [permuted(mode, a, b, c) for c in controls]


def shuffled(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """Source lane, and whether it is in range (9.7.9.6)."""
    bval, cval, mask = b & 31, c & 31, c >> 8 & 31
    most, least = lane & mask | cval & ~mask, lane & mask
    at = {"up": lane - bval, "down": lane + bval, "bfly": lane ^ bval, "idx": least | bval & ~mask & 31}[mode]
    inside = at >= most if mode == "up" else at <= most
    return (at if inside else lane), inside


@both
@rows("mode", ["up", "down", "bfly", "idx"], share=3)
@rows("c", [0, 31, 7, 0x1800, 0x181F, 0x1C03, 0x0F1F, 0x1F1F])
@rows("b", [0, 1, 5, 31, 33])
def test_shuffles_of_every_shape(engine, mode, c, b):
    """Value and predicate, out of range as well."""
    body = f"""mul.lo.u32 %r1, %t, 3; shfl.sync.{mode}.b32 %r0|%p1, %r1, {b}, {c}, -1; @%p1 add.u32 %r0, %r0, 1000;"""
    expected = [3 * place + 1000 * inside for place, inside in (shuffled(mode, t, b, c) for t in range(32))]
    assert run(engine, body) == expected


@both
@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shuffles_and_votes_without_sync(engine, mode):
    """Before sm_70 and PTX 6.4 (9.7.9.5, 9.7.13.8): among the lanes that run together."""
    body = f"""shfl.{mode}.b32 %r0|%p1, %t, 3, {0 if mode == "up" else 31}; @%p1 add.u32 %r0, %r0, 100;
        setp.lt.u32 %p2, %t, 9; vote.ballot.b32 %r1, %p2; vote.all.pred %p3, %p2; vote.any.pred %p4, !%p2;
        vote.uni.pred %p5, %p3; @%p3 mov.u32 %r1, 0; @!%p4 mov.u32 %r1, 0; @!%p5 mov.u32 %r1, 0;
        setp.ne.u32 %p6, %r1, 511; @%p6 trap;"""
    expected = [
        place + 100 * inside for place, inside in (shuffled(mode, t, 3, 0 if mode == "up" else 31) for t in range(32))
    ]
    assert run(engine, body, "sm_60") == expected


@both
@rows("name", ["bar", "bar.cta", "barrier", "barrier.cta"])
@rows("suffix", ["", ".aligned"])
def test_barriers_with_every_operand(engine, name, suffix):
    """bar and barrier: counts, arrive, and each reduction with and without a count."""
    if name in ("bar", "bar.cta"):
        suffix = ""  # always aligned
    body = f"""
    setp.lt.u32 %p1, %t, 40; {name}.red.popc{suffix}.u32 %r1, 1, 64, %p1; {name}.red.popc{suffix}.u32 %r2, 1, !%p1;
    {name}.red.and{suffix}.pred %p2, 2, 64, %p1; {name}.red.or{suffix}.pred %p3, 2, %p1;
    {name}.red.and{suffix}.pred %p4, 3, !%p1; {name}.red.or{suffix}.pred %p5, 3, 64, !%p1;
    mad.lo.u32 %r0, %r1, 100, %r2; @%p2 add.u32 %r0, %r0, 10000; @%p3 add.u32 %r0, %r0, 20000;
    @%p4 add.u32 %r0, %r0, 40000; @%p5 add.u32 %r0, %r0, 80000;
    setp.lt.u32 %p6, %t, 32; @%p6 bra FIRST; {name}.arrive{suffix} 4, 64; bra END; FIRST: {name}.sync{suffix} 4, 64;
    END: {name}.sync{suffix} 5;"""
    assert run(engine, body, "sm_75", 64) == [40 * 100 + 24 + 20000 + 80000] * 64
