"""Expectations and their reports."""

from __future__ import annotations

import warnings

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


# --- the types' own arithmetic ----------------------------------------------------------------------------------------


def wrong(got: object, expected: object, tolerance: Tolerance = EXACT) -> list[tuple[int, float]]:
    """Index and distance of the elements that differ, worst first."""
    a, b = np.atleast_1d(np.asarray(got)), np.atleast_1d(np.asarray(expected))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = compare(a, element_of(a.dtype), b, tolerance)
    return [] if found is None else [(d.index[0], d.off) for d in found.worst]


def test_complex_numbers_differ_in_either_part() -> None:
    got = np.array([1 + 2j, 3 - 4j, -1 + 0j], np.complex64)
    assert wrong(got, got.astype(np.complex128)) == []
    assert wrong(got, got.conj()) == [(1, 8.0), (0, 4.0)]
    assert wrong(got, got.real) == [(1, 4.0), (0, 2.0)]
    assert wrong(np.array([1, 2]), np.array([1 + 0j, 2 + 1j])) == [(1, 1.0)]


def test_the_tolerance_of_complex_numbers_is_of_their_magnitude() -> None:
    expected = np.array([300 + 400j])
    assert wrong(expected + 3j, expected, Tolerance(relative=0.01)) == []
    assert wrong(expected + 6j, expected, Tolerance(relative=0.01)) == [(0, 6.0)]
    odd = np.array([complex(np.inf, 1), complex(np.nan, 1), complex(1, np.inf)])
    assert wrong(odd, odd.copy(), Tolerance(absolute=0.1)) == []
    near = np.array([complex(np.inf, 1.05), complex(np.nan, 1.05), complex(1.05, -np.inf)])
    assert [at for at, _ in wrong(odd, near, Tolerance(absolute=0.1))] == [2]


@pytest.mark.parametrize(
    ("got", "expected", "off"),
    [
        (np.int64(2**53 + 1), np.float64(2**53), 1.0),
        (np.float64(2**53), np.int64(2**53 + 1), 1.0),
        (np.int64(2**53), np.float64(2**53), 0.0),
        (np.uint64(2**64 - 1), np.float64(2**64), 1.0),
        (np.uint64(0), np.float64(2**64), 2.0**64),
        (np.uint64(2**64 - 1), np.float64(2**65), 2.0**64),
        (np.int64(-(2**63)), np.float64(-(2**63)), 0.0),
        (np.int64(-(2**63)), np.uint64(2**63), 2.0**64),
        (np.int64(-1), np.uint64(2**64 - 1), 2.0**64),
        (np.uint64(2**63), np.int64(2**63 - 1), 1.0),
        (np.int8(-128), np.float16(-128.5), 0.5),
        (np.bool_(True), np.int64(1), 0.0),
    ],
)
def test_integers_keep_all_of_their_bits(got: np.generic, expected: np.generic, off: float) -> None:
    assert wrong(got, expected) == ([(0, off)] if off else [])


def test_a_tolerance_below_one_does_not_join_neighbouring_integers() -> None:
    assert wrong(np.int64(2**53 + 1), np.float64(2**53), Tolerance(absolute=0.5)) == [(0, 1.0)]
    assert wrong(np.int64(2**53 + 1), np.float64(2**53), Tolerance(absolute=1)) == []


def test_nothing_finite_is_close_to_infinity_or_nan() -> None:
    wide = Tolerance(relative=1e300, absolute=1e300)
    assert len(wrong(np.array([np.inf, np.nan, 1, -np.inf]), np.array([1e300, 1, np.inf, np.inf]), wide)) == 4
    assert len(wrong(np.array([1, 2]), np.array([np.nan, np.inf]), wide)) == 2


def test_a_truth_value_is_the_byte_that_stands_there() -> None:
    assert wrong(np.array([1, 0, 2], np.uint8).view(np.bool_), np.array([True, False, True])) == [(2, 1.0)]


def test_items_without_a_type_compare_by_their_bits_with_their_like() -> None:
    bits = np.array([0x3F80, 0x4000], np.uint16)
    assert wrong(bits.view("V2"), bits.view("V2")) == []
    assert wrong(bits.view("V2"), (bits + np.uint16(1)).view("V2")) == [(0, 1.0), (1, 1.0)]
    assert compare(bits, element_type("bf16"), bits.view("V2"), EXACT) is None


@pytest.mark.parametrize("dtype", ["f4,i4", "U3", "S3", "M8[s]", "m8[s]", "O", "V12", "f4,O"])
def test_what_is_no_number_is_refused(dtype: str) -> None:
    for got, expected in ((np.zeros(2, dtype), np.zeros(2, dtype)), (np.zeros(2, np.float32), np.zeros(2, dtype))):
        with pytest.raises(SpecError, match=r"cannot be compared|not numbers"):
            compare(got, F32, expected, EXACT)


@pytest.mark.parametrize(("got", "expected"), [("V2", "f2"), ("V2", "V4"), ("f4", "V2"), ("c8", "V8")])
def test_items_without_a_type_are_no_numbers_of_another(got: str, expected: str) -> None:
    a = np.zeros(2, got)
    with pytest.raises(SpecError, match="without a type"):
        compare(a, element_of(a.dtype), np.zeros(2, expected), EXACT)


def test_the_worst_are_found_in_every_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptxtools.launch.compare._PART", 7)
    expected = np.zeros(50)
    expected[[3, 20, 21, 33, 48, 49]] = 1, 6, np.nan, 3, 2, 5
    found = compare(np.zeros(50), element_type("f64"), expected, EXACT)
    assert found is not None and found.wrong == 6
    assert [d.index for d in found.worst] == [(21,), (20,), (49,), (33,), (48,)]


def test_shapes_without_axes_or_elements() -> None:
    assert wrong(np.float32(1), np.int32(1)) == []
    assert compare(np.zeros((), np.float32), F32, np.ones((), np.int32), EXACT) is not None
    assert compare(np.zeros((0, 3), np.float32), F32, np.zeros((0, 3), np.complex64), EXACT) is None


def test_summaries_of_other_items() -> None:
    assert summary(np.array([1 + 2j, -0.5j], np.complex64), F32) == "complex64[2] = 1+2j -0-0.5j"
    assert summary(np.array([True, False]), element_type("u8")) == "u8[2] = 1 0"
    assert summary(np.ones(3, "u1,u2"), element_type("u8")) == "u8[9] = 1 1 0 1 1 0 1 1 …"
