"""What `make test` leaves to the sweep: the same cases each time, of every kind some, and nothing for good."""

from __future__ import annotations

import pytest

from tests import share
from tests.rows import rows


@pytest.mark.parametrize("part", [2, 4, 100])
def test_a_share_meets_each_value_that_repeats(part: int) -> None:
    cases = [(a, b) for a in "abcdefgh" for b in ("x", "y", "z")]
    taken = share.share_of("t", cases, part)
    assert taken == share.share_of("t", cases, part) == sorted(set(taken))
    assert len(cases) / part <= len(taken) < len(cases)
    assert {cases[place][0] for place in taken} == set("abcdefgh")
    assert {cases[place][1] for place in taken} == {"x", "y", "z"}


@pytest.mark.parametrize(("count", "part", "expected"), [(1, 8, 1), (8, 8, 1), (9, 8, 2), (80, 8, 10), (80, 1, 80)])
def test_how_many_of_a_plain_table(count: int, part: int, expected: int) -> None:
    assert len(share.share_of("t", [(str(number),) for number in range(count)], part)) == expected


def test_rows_run_in_part_or_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, str]] = []

    @rows("a", range(40), share=10)
    @rows("b", ["x", "y"])
    def test(a: int, b: str) -> None:
        seen.append((a, b))

    monkeypatch.setattr(share, "left_rows", {})
    monkeypatch.setattr(share, "whole", True)
    test()
    everything = seen.copy()
    assert len(everything) == 80
    assert share.left_rows == {}
    seen.clear()
    monkeypatch.setattr(share, "whole", False)
    test()
    assert set(seen) < set(everything)
    assert {a for a, _ in seen} == set(range(40))
    assert {b for _, b in seen} == {"x", "y"}
    assert list(share.left_rows.values()) == [80 - len(seen)]


def test_marked_tests_run_in_part_or_whole(monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> None:
    class Item(pytest.Function):
        @property
        def nodeid(self) -> str:
            indices = self.callspec.indices
            return f"t.py::test[{indices['a']}-{indices['b']}]"

    def items(marked: bool) -> list[pytest.Item]:
        made = []
        for a in range(10):
            for b in range(2):
                item = object.__new__(Item)
                item.own_markers = [pytest.mark.share(5).mark] if marked else []
                item.parent = None
                item.callspec = type("Spec", (), {"indices": {"a": a, "b": b}})()  # type: ignore[attr-defined]
                made.append(item)
        return made

    gone: list[pytest.Item] = []

    class Config:
        args = ("tests",)
        hook = type("Hook", (), {"pytest_deselected": staticmethod(lambda items: gone.extend(items))})

    monkeypatch.setattr(share, "left_tests", {})
    for marked, whole in ((False, False), (True, True)):
        monkeypatch.setattr(share, "whole", whole)
        found = items(marked)
        share.leave(Config, found)  # type: ignore[arg-type]
        assert len(found) == 20
    monkeypatch.setattr(share, "whole", False)
    found = items(True)
    share.leave(Config, found)  # type: ignore[arg-type]
    assert len(found) + len(gone) == 20
    assert {item.callspec.indices["a"] for item in found} == set(range(10))  # type: ignore[attr-defined]
    assert share.left_tests == {"t.py::test": len(gone)}
    Config.args = ("t.py::test[3-1]",)
    found = items(True)
    share.leave(Config, found)  # type: ignore[arg-type]
    assert len(found) == 20


def test_what_is_left_is_told() -> None:
    assert share.told({}, {}, True) == []
    assert share.told({"a": 3}, {"b": 4}, False)[0].startswith("7 cases of 2 tables are left")
    assert share.told({"a": 3}, {"b": 4}, True)[:2] == ["     3 of a", "     4 of b"]
