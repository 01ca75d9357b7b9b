"""Expectations and their reports."""

from __future__ import annotations

import numpy as np
import pytest

from ptxtools.launch.compare import Tolerance, bytes_as, compare, summary
from ptxtools.launch.elements import element_of, element_type
from ptxtools.launch.errors import SpecError

F32 = element_type("f32")
EXACT = Tolerance()


def test_equal_arrays_pass() -> None:
    values = np.array([1, -0.0, np.inf, np.nan], np.float32)
    assert compare(values, F32, values.copy(), EXACT) is None
    assert compare(values, F32, np.array([1, 0.0, np.inf, np.nan], np.float32), EXACT) is None


@pytest.mark.parametrize(
    ("got", "passes"), [(1.0, True), (1.0105, True), (1.02, False), (np.nan, False), (np.inf, False), (0.9896, True)]
)
def test_tolerance_is_absolute_plus_relative(got: float, passes: bool) -> None:
    tolerance = Tolerance(relative=0.01, absolute=0.001)
    found = compare(np.array([got], np.float32), F32, np.array([1.0], np.float32), tolerance)
    assert (found is None) == passes


def test_an_infinite_expectation_is_met_by_infinity_alone() -> None:
    tolerance = Tolerance(relative=1, absolute=1)
    expected = np.array([np.inf, -np.inf], np.float32)
    assert compare(expected.copy(), F32, expected, tolerance) is None
    found = compare(np.array([5, np.inf], np.float32), F32, expected, tolerance)
    assert found is not None and found.wrong == 2


def test_integers_are_compared_exactly_whatever_the_tolerance() -> None:
    got = np.array([2**63 - 1, 5], np.int64)
    found = compare(got, element_type("s64"), np.array([2**63 - 2, 5], np.int64), Tolerance(1, 1))
    assert found is not None and found.wrong == 1 and found.worst[0].index == (0,)


def test_narrow_floats_are_compared_as_numbers() -> None:
    bf16 = element_type("bf16")
    got, expected = np.array([0x3F80, 0x8000], np.uint16), np.array([0x3F81, 0x0000], np.uint16)
    assert compare(got, bf16, expected, Tolerance(relative=0.01)) is None
    found = compare(got, bf16, expected, EXACT)
    assert found is not None and found.wrong == 1
    assert compare(got, bf16, np.array([1.0, 0.0], np.float64), EXACT) is None


def test_other_types_of_the_expected_array() -> None:
    assert compare(np.array([1, 2], np.int32), element_type("s32"), np.array([1, 2], np.int64), EXACT) is None
    assert compare(np.array([1, 2], np.uint8), element_type("u8"), np.array([1.0, 2.0]), EXACT) is None


def test_worst_elements_come_first() -> None:
    got = np.zeros((10, 10), np.float32)
    expected = got.copy()
    expected[3, 4], expected[7, 1], expected[0, 0] = 1, 100, np.nan
    found = compare(got, F32, expected, EXACT)
    assert found is not None
    assert (found.wrong, found.total) == (3, 100)
    assert [d.index for d in found.worst] == [(0, 0), (7, 1), (3, 4)]
    lines = found.lines()
    assert len(lines) == 3 and "[7,1]" in lines[1] and "expected" in lines[1] and "off by 100" in lines[1]


def test_shapes_must_agree_unless_one_is_flat() -> None:
    assert compare(np.zeros(6, np.float32), F32, np.zeros((2, 3), np.float32), EXACT) is None
    for shape in ((3, 2), (7,)):
        with pytest.raises(SpecError):
            compare(np.zeros((2, 3), np.float32), F32, np.zeros(shape, np.float32), EXACT)


def test_raw_bytes() -> None:
    got, element = bytes_as(b"\x01\x00\x00\x00", np.array([1], np.int32))
    assert got.tolist() == [1] and element.name == "s32"
    with pytest.raises(SpecError):
        bytes_as(b"\x01", np.array([1], np.int32))


def test_summaries() -> None:
    assert summary(np.arange(3, dtype=np.int32), element_type("s32")) == "s32[3] = 0 1 2"
    assert summary(np.arange(20, dtype=np.float32).reshape(4, 5), F32) == "f32[4,5] = 0 1 2 3 4 5 6 7 …"
    assert summary(np.array([0x3F80], np.uint16), element_type("bf16")) == "bf16[1] = 1"


def test_element_types_of_arrays() -> None:
    import ml_dtypes

    assert element_of(np.dtype("f2")).name == "f16"
    assert element_of(np.dtype(ml_dtypes.bfloat16)).name == "bf16"
    assert element_of(np.dtype(ml_dtypes.float8_e4m3fn)).name == "e4m3"
    assert element_of(np.dtype("V20")).name == "u8"
    with pytest.raises(SpecError):
        element_of(np.dtype("U3"))
