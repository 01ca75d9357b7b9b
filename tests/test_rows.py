"""Rows of a table in one test: none is lost, and each failure is told."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from tests import rows as module
from tests.rows import rows

RNG = np.random.default_rng(1)


def test_every_row_runs_and_every_failure_is_told() -> None:
    seen = []

    @rows("a, b", [(1, 2), (3, 3), (5, 6)])
    def equal(a: int, b: int) -> None:
        seen.append(a)
        assert a == b

    with pytest.raises(ExceptionGroup, match=r"2 of 3 rows fail: row 1-2: .*; row 5-6: ") as caught:
        equal()
    assert seen == [1, 3, 5]
    assert [type(error.__cause__) for error in caught.value.exceptions] == [AssertionError] * 2


@pytest.mark.parametrize("names", [str, ["first", "second"]], ids=["made", "given"])
def test_names_of_rows(names: object) -> None:
    @rows("a", [1, 2], ids=names)  # type: ignore[arg-type]
    def small(a: int) -> None:
        pytest.fail("small")

    with pytest.raises(ExceptionGroup, match=r"row (1|first): small; row (2|second): small"):
        small()


def test_tables_in_tables() -> None:
    seen = []

    @rows(("a", "b"), [(1, 2), (3, 4)])
    @rows("c", lambda: range(2))
    def test(a: int, b: int, c: int, given: str) -> None:
        seen.append((a, b, c, given))

    assert list(inspect.signature(test).parameters) == ["given"]
    test(given="x")
    assert seen == [(1, 2, 0, "x"), (1, 2, 1, "x"), (3, 4, 0, "x"), (3, 4, 1, "x")]
    test(5, 6, 7, given="y")
    assert seen[4:] == [(5, 6, 7, "y")]


def test_a_table_without_rows_fails() -> None:
    with pytest.raises(AssertionError, match="no rows"):
        rows("a", [])(lambda a: None)()


def test_a_row_that_skips_itself_fails() -> None:
    with pytest.raises(ExceptionGroup, match="1 of 2 rows fail: row 1: no device"):
        rows("a", [1, 2])(lambda a: a == 1 and pytest.skip("no device"))()


def test_a_row_of_another_length_fails() -> None:
    with pytest.raises(AssertionError, match=r"a row of 3 values for \['a', 'b'\]"):
        rows("a, b", [(1, 2), (1, 2, 3)])(lambda a, b: None)()


def test_random_numbers_are_the_same_in_each_row() -> None:
    found = []

    @rows("a", [1, 2])
    def draw(a: int) -> None:
        found.append(int(RNG.integers(1 << 60)))

    draw()
    assert found[0] == found[1]


def test_chosen_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    test = rows("a", ["left", "right", "bright"])(lambda a: seen.append(a))
    monkeypatch.setattr(module, "wanted", ["right"])
    test()
    assert seen == ["right", "bright"]
    monkeypatch.setattr(module, "wanted", ["right", "2"])
    rows("b", [1, 2])(rows("a", ["left", "right"])(lambda a, b: seen.append(f"{a} {b}")))()
    assert seen[2:] == ["right 2"]
    monkeypatch.setattr(module, "wanted", ["up"])
    with pytest.raises(pytest.skip.Exception, match="no row is called up"):
        test()
