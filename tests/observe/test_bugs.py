"""Every bug of testdata/bugs is found, by the right checker and at a marked line; without the bug all are silent."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from . import bugs

FILES = sorted(bugs.FOLDER.glob("*.bugs"))
#: Bugs that no checker finds yet, and why: `class.name`.
NOT_YET: dict[str, dict[str, str]] = tomllib.loads((bugs.FOLDER / "not_caught.toml").read_text())


@pytest.mark.share(5)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_bugs_are_found_and_their_corrections_are_not(path: Path) -> None:
    waiting = NOT_YET.get(path.stem, {})
    wrong: list[str] = []
    for pair in bugs.read(path):
        assert pair.expected(), f"{pair.name}: no line is marked"
        found = bugs.run(pair, "-")
        if bugs.caught(pair, found) == (pair.name in waiting):
            state = "is found now: take it out of not_caught.toml" if pair.name in waiting else "is not found"
            wrong.append(f"{pair.name} {state}:\n{bugs.shown(found)}")
        found = bugs.run(pair, "+")
        if found:
            wrong.append(f"{pair.name} without its bug:\n{bugs.shown(found)}")
    for name, why in waiting.items():
        print(f"{path.stem}: {name} is not found: {why}")
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_work_that_is_told_of_too_early_is_reported_in_every_schedule(seed: int) -> None:
    """Whether the others come before the wait or behind it."""
    wrong: list[str] = []
    for pair in bugs.read(bugs.FOLDER / "told_too_early.bugs"):
        found = bugs.run(pair, "-", "asynccheck", seed=seed)
        if not bugs.caught(pair, found):
            wrong.append(f"{pair.name} is not found:\n{bugs.shown(found)}")
        found = bugs.run(pair, "+", "asynccheck", seed=seed)
        if found:
            wrong.append(f"{pair.name} without its bug:\n{bugs.shown(found)}")
    assert not wrong, "\n\n".join(wrong)


def test_there_are_two_hundred() -> None:
    pairs = [(path.stem, pair.name) for path in FILES for pair in bugs.read(path)]
    assert len(pairs) == len(set(pairs)) >= 200
    assert {(stem, name) for stem, names in NOT_YET.items() for name in names} <= set(pairs)
    left = sum(map(len, NOT_YET.values()))
    print(f"{len(pairs) - left} of {len(pairs)} bugs are found")


def test_the_page_says_how_many_are_found() -> None:
    page = (Path(__file__).parents[2] / "docs" / "checking.md").read_text("utf-8")
    rows = sorted(
        (int(n), int(found)) for n, found in re.findall(r"^\| [a-z][^|]*\| (\d+) \| (\d+) \|$", page, re.MULTILINE)
    )
    counts = [(len(bugs.read(path)), len(NOT_YET.get(path.stem, {}))) for path in FILES]
    assert rows == sorted((n, n - left) for n, left in counts)
    total, left = (sum(part) for part in zip(*counts, strict=True))
    assert f"| **all** | **{total}** | **{total - left}** |" in page
