"""Every form has an independent expectation; a share of them is held to it here, all by tools/sweep_semantics.py."""

from __future__ import annotations

import pytest

from ptxtools import isa, semantics

from .agreement import compare
from .expectations import expectation, failure
from .harness import COVERED_CHAPTERS, all_opcodes, exhaustive, signature

SHARES = {"comparison": 41, "video": 17, "conversion": 11, "floating": 3, "half": 2}


def test_every_form_has_an_expectation() -> None:
    assert [op.text for op in all_opcodes() if expectation(op) is None] == []


@pytest.mark.parametrize("chapter", COVERED_CHAPTERS)
def test_share_of_forms(chapter: str) -> None:
    forms = [op for op in all_opcodes() if semantics.chapter_of(op) == chapter][:: SHARES.get(chapter, 1)]
    found = [line for op in forms if (line := failure(op, 20))]
    assert not found, "\n".join(found[:20])


@pytest.mark.parametrize(
    ("text", "inputs", "right", "wrong"),
    [
        ("add.sat.s32", [0x7FFFFFFF, 5], 0x7FFFFFFF, 0x80000004),
        ("add.f16x2", [0x3C003C00, 0x3C003C00], 0x40004000, 0x40004001),
        ("min.f32", [0x7FC00001, 0x3F800000], 0x3F800000, 0x7FFFFFFF),
        ("set.lt.u32.f32", [0, 0x3F800000], 0xFFFFFFFF, 1),
        ("cvt.rn.f16x2.e4m3x2", [0x7F38], 0x7FFF3C00, 0x7E003C00),
        ("cvt.rs.bf16x2.f32", [0x3F800001, 0x3F800000, 0], 0x3F803F80, 0x3F823F80),
        ("vadd4.u32.u32.u32", [0x01020304, 0x01010101, 0], 0x02030405, 0x02030406),
        ("lg2.approx.f32", [0x41000000], 0x40400000, 0x40400010),
        ("isspacep.shared", [0x0100000000000010], 1, 0),
    ],
)
def test_expectations_tell_right_from_wrong(text: str, inputs: list[int], right: int, wrong: int) -> None:
    expected = expectation(isa.resolve(text))
    assert expected is not None
    assert expected.judge(inputs, [right])
    assert not expected.judge(inputs, [wrong])


def test_every_pattern_of_unary_forms() -> None:
    """Both back ends, all patterns of 8- and 16-bit operands: one form in nine."""
    unary = [
        op for op in all_opcodes() if len(signature(op).inputs) == 1 and exhaustive(signature(op).inputs[0]) is not None
    ]
    assert len(unary) > 200
    differences = list(compare(unary[::9], 10_240))
    assert not differences, "\n".join(map(str, differences))
