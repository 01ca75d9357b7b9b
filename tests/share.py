"""The share of a large table that `make test` runs; `make sweep` runs all of it (`pytest --whole`).

A table is shared where its cases check one thing in many variants, so that a change that breaks it breaks many of them.
`@pytest.mark.share(N)` stands at a parametrised test, `share=N` at `rows`: about one case in N runs, the same ones each
time, spread over the table; of a parameter whose values come twice or more, each value is met.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Container, Sequence

import pytest

#: Whether everything runs (--whole).
whole = False
#: Cases that are left to the sweep by the test they belong to, as far as this process knows: of parametrised tests all,
#: of rows those of the tests that it ran.
left_tests: dict[str, int] = {}
left_rows: dict[str, int] = {}


def share_of(name: str, cases: Sequence[tuple[str, ...]], share: int) -> list[int]:
    """The cases of a test to run, by their places in the table. cases: the names of each case's values, parameter by
    parameter."""
    by_chance = sorted(range(len(cases)), key=lambda place: zlib.crc32("-".join((name, *cases[place])).encode()))
    taken = set(by_chance[: -(-len(cases) // share)])
    for values in zip(*cases, strict=True):
        counts = Counter(values)
        if len(counts) > len(cases) // 2:
            continue
        met = {values[place] for place in taken}
        for place in by_chance:
            if values[place] not in met:
                met.add(values[place])
                taken.add(place)
    return sorted(taken)


def shared_rows(name: str, cases: Sequence[tuple[str, ...]], share: int) -> list[int]:
    """The rows of a test's table that run now; the others are noted."""
    if whole or share == 1:
        return list(range(len(cases)))
    taken = share_of(name, cases, share)
    if len(taken) < len(cases):
        left_rows[name] = len(cases) - len(taken)
    return taken


def leave(config: pytest.Config, items: list[pytest.Item], kept: Container[str] = ()) -> None:
    """Take the cases of marked tests that are left to the sweep out of the items; those that were asked for by name
    stay, and so do those in `kept`."""
    groups: dict[str, list[tuple[pytest.Function, int]]] = {}
    for item in items:
        mark = item.get_closest_marker("share")
        if mark is not None and isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            groups.setdefault(item.nodeid.partition("[")[0], []).append((item, mark.args[0]))
    gone: set[pytest.Item] = set()
    asked = {argument.partition("[")[0] for argument in config.args if "[" in argument}
    for name, group in groups.items():
        if whole or any(name.endswith(one.lstrip("./")) for one in asked):
            continue
        names = sorted(group[0][0].callspec.indices)
        cases = [tuple(str(item.callspec.indices[name]) for name in names) for item, _ in group]
        taken = set(share_of(name, cases, group[0][1]))
        apart = [item for place, (item, _) in enumerate(group) if place not in taken and item.nodeid not in kept]
        if apart:
            left_tests[name] = len(apart)
            gone.update(apart)
    if gone:
        items[:] = [item for item in items if item not in gone]
        config.hook.pytest_deselected(items=list(gone))


def told(tests: dict[str, int], rows: dict[str, int], names: bool) -> list[str]:
    """Lines about what is left: one, or with `names` one for each test as well."""
    everything = {**tests, **rows}
    if not everything:
        return []
    lines = [f"{count:6} of {name}" for name, count in sorted(everything.items())] if names else []
    count = sum(everything.values())
    return [*lines, f"{count} cases of {len(everything)} tables are left to make sweep: --left names the tables, "
            "--whole runs all"]  # fmt: skip
