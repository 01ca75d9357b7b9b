"""Where the manual and ptxas 13.0 differ in syntax: what we do, and why."""

from typing import NamedTuple

import pytest

from ptxtools.syntax import parse


class Difference(NamedTuple):
    """text: in a body; ours, ptxas: whether it is accepted; why: what decides."""

    text: str
    ours: bool
    ptxas: bool
    why: str


DIFFERENCES = [
    Difference(".local .b8 x[2*8];", True, False, "5.4.3: each dimension is a constant expression"),
    Difference("op table[r-4];", True, False, "6.4.2: the offset in an index is added or subtracted"),
    Difference("op r, (-9 % 4) - 5 < 0 ? 1 : 1/1;", True, True, "4.5.6: % gives .s64; the value differs, see below"),
    Difference("ld.u32 a, [b-4];", False, False, "6.4.1 has sums only, although its offset is signed"),
    Difference(".param .b8 .align 8 x[4];", False, False, "5.4.5 over the example of 7.1: behind the space, at once"),
    Difference(".reg .b32 a<2> b<2>;", False, False, "examples of 9.7.13 and 9.7.14 lack commas: a slip"),
    Difference("mov.u32 a, 5u;", False, False, "4.5.1: the suffix is U; the prose of older editions has u"),
    Difference("mov.u32 a, %tid .x;", True, True, "4.4 and 10: the component is part of the name, blanks or not"),
    Difference("mov.u32 a, %tid .q;", False, False, "10.1: there is no such component"),
    Difference('# 1 "a.cu"\nret;', True, True, "4.1: what cpp leaves behind is harmless; other # lines are reported"),
]


@pytest.mark.parametrize("case", DIFFERENCES, ids=lambda case: case.text)
def test_difference(case):
    assert (parse(f".entry k() {{\n{case.text}\n}}").diagnostics == []) is case.ours
    assert case.why


def test_remainder_is_signed():
    """ptxas 13.0 says .u64, so that the comparison is false there."""
    (statement,) = parse(".entry k() { op (-9 % 4) - 5 < 0; }").module.items[0].body.items
    assert statement.operands[0].value == 1
