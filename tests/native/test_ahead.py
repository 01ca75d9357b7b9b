"""Loops that count, of which rounds are known to come: they end where they do one by one, for all conditions and
edges; and what such loops carry from round to round has the bits that it has one by one."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from ptxtools import native, reference
from ptxtools.diagnostics import Trap
from ptxtools.native.code import tiers
from tests.rows import rows

from .harness import Memory, body_kernel, launch_of

#: Starts, limits and growths around the ends of 32 bits, and small ones.
EDGES = (0, 1, 5, 40, 0x7FFFFFF0, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF0, 0xFFFFFFFF)
GROWTHS = (1, 2, 7, 0x40000000, 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFF9)


@pytest.fixture(autouse=True)
def _compiled(monkeypatch):
    monkeypatch.setattr(tiers, "AT_ONCE", True)


def outcome(engine: Any, body: str, source: np.ndarray[Any, Any], **options: Any) -> tuple[object, ...]:
    """Memory behind a launch, and the count of its instructions; or its trap or limit. The input is at the end of
    memory."""
    memory = Memory(4096 + source.nbytes)
    out = memory.put(np.zeros(1024, np.uint32))
    launch = launch_of(body_kernel(body, 4), memory, [out, memory.put(source)], max_instructions=60_000, **options)
    try:
        ending: object = engine.run(launch).instructions
    except Trap as trap:
        return (str(trap).splitlines()[0],)
    return ending, memory.bytes.tobytes()


def _agree(body: str, source: np.ndarray[Any, Any], **options: Any) -> None:
    expected = outcome(native, body, source, tier="interpreter", **options)
    assert outcome(native, body, source, tier="regions", **options) == expected, body
    if len(expected) == 2:
        assert outcome(reference, body, source, **options) == expected, body


@rows("seed", [*range(80)], share=8)
def test_every_condition_ends_where_it_should(seed: int) -> None:
    rng = random.Random(seed)
    condition, sign = rng.choice(["lt", "le", "gt", "ge", "ne", "eq"]), rng.choice("su")
    start, limit, growth = rng.choice(EDGES), rng.choice(EDGES), rng.choice(GROWTHS)
    if rng.random() < 0.6:  # most ends are near
        limit = (start + growth * rng.randint(0, 30) + rng.choice([0, 0, 1, -1])) % (1 << 32)
    wanted = rng.choice(["", "!"])
    limit_text = rng.choice(["%r2", "%r2", "%r9"])
    body = f"""mov.u32 %r1, {start}; mov.u32 %r2, {limit}; and.b32 %r9, %t, 1; add.u32 %r9, %r9, %r2;
        mov.u32 %r3, {growth}; mov.u32 %r4, 0; mov.u32 %r5, 1;
        AGAIN: add.u32 %r4, %r4, %r5; xor.b32 %r5, %r5, %r4; {rng.choice(["", "add.u32 %r4, %r4, %r1;"])}
        add.{sign}32 %r1, %r1, %r3; setp.{condition}.{sign}32 %p1, %r1, {limit_text}; @{wanted}%p1 bra AGAIN;
        st.global.u32 [%out], %r1; st.global.u32 [%out+128], %r4; st.global.u32 [%out+256], %r5; ret;"""
    _agree(body, np.zeros(4, np.uint32))


@rows("seed", [*range(60)], share=6)
def test_nans_are_as_one_by_one(seed: int) -> None:
    """A sum that starts as a NaN with a payload, with infinities on the way; in some the first or a later round leaves
    memory."""
    rng = random.Random(seed)
    source = np.array([rng.choice([0.5, -1.0, 3e38, -3e38, np.inf, -np.inf, 0.0]) for _ in range(160)], np.float32)
    words = source.view(np.uint32)
    for place in (3, 70, 100):
        if rng.random() < 0.5:
            words[place] = 0x7FA12345
    start = rng.choice(["0f00000000", "0f7FA00001", "0fFFC12345", "0f7F800000"])
    step = rng.choice(
        [
            "fma.rn.f32 %f1, %f2, %f3, %f1;", "add.f32 %f1, %f1, %f2;", "mul.f32 %f4, %f2, %f3; sub.f32 %f1, %f4, %f1;",
            "add.f32 %f4, %f2, %f3; neg.f32 %f4, %f4; fma.rn.f32 %f1, %f4, %f2, %f1;",
            "div.rn.f32 %f4, %f2, %f3; add.f32 %f1, %f1, %f4;", "sqrt.rn.f32 %f4, %f2; add.ftz.f32 %f1, %f1, %f4;",
            "add.f32 %f4, %f2, %f1; max.f32 %f1, %f4, %f3;",
            "add.f32 %f1, %f1, %f2; mov.b32 %r7, %f1; add.u32 %r6, %r6, %r7;",
            "@%p2 add.f32 %f1, %f1, %f2; mul.f32 %f1, %f1, %f3;",
        ]
    )  # fmt: skip
    rounds, offset = rng.choice([1, 3, 9, 30]), rng.choice([0, 0, 0, 4 * 170, 4 * 140])
    body = f"""mul.wide.u32 %d1, %t, 4; add.u64 %d1, %d1, %in; add.u64 %d1, %d1, {offset}; mov.f32 %f1, {start};
        mov.u32 %r1, 0; mov.u32 %r6, 0; setp.lt.u32 %p2, %t, 17; mov.u64 %d2, %in;
        AGAIN: ld.global.f32 %f2, [%d1]; ld.global.f32 %f3, [%d2+4]; {step}
        add.s64 %d1, %d1, 4; add.s64 %d2, %d2, {rng.choice([4, 64, 0])};
        add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, {rounds}; @%p1 bra AGAIN;
        st.global.f32 [%out], %f1; st.global.u32 [%out+128], %r6; ret;"""
    _agree(body, source, block=(rng.choice([32, 32, 20]), 1, 1))


@pytest.mark.parametrize("threads", [32, 20])
@pytest.mark.parametrize(
    "reads",
    [
        "@%p1 add.u32 %r4, %r4, %r5;", "selp.u32 %r6, 3, 5, %p1; add.u32 %r4, %r4, %r6;",
        "and.pred %p2, %p1, %p3; not.pred %p3, %p1; @%p2 add.u32 %r4, %r4, 9;",
        "ld.global.u32 %r6, [%d1]; @!%p1 add.u32 %r4, %r4, %r6; add.s64 %d1, %d1, 4;",
    ],
)  # fmt: skip
def test_what_a_round_decides_may_be_read(reads: str, threads: int) -> None:
    body = f"""mov.u32 %r1, 0; mov.u32 %r4, 0; mov.u32 %r5, 7; setp.eq.u32 %p1, %t, 3; setp.lt.u32 %p3, %t, 9;
        mul.wide.u32 %d1, %t, 4; add.u64 %d1, %d1, %in;
        AGAIN: {reads} @%p1 bra AGAIN;
        st.global.u32 [%out], %r4; ret;"""
    count = "add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 20"
    for text in (body.replace("@%p1 bra", f"{count}; @%p1 bra"), body.replace("AGAIN: ", f"AGAIN: {count}; ")):
        _agree(text, np.arange(64, dtype=np.uint32), block=(threads, 1, 1))
