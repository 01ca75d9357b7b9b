"""The rows of a large table as one test: a test of pytest's own costs 7 ms, most rows of such tables much less.

Every row runs, and the test fails with all rows that fail. `--row TEXT` runs only the rows whose name contains TEXT.
"""

from __future__ import annotations

import inspect
import itertools
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.share import shared_rows

#: Failing rows whose tracebacks are shown.
SHOWN = 10

#: What `--row` says (tests/conftest.py): parts of the names of the rows to run.
wanted: list[str] = []

Test = Callable[..., None]
Names = Callable[[Any], object] | Sequence[str] | None

_beginnings: dict[int, tuple[np.random.Generator, object]] = {}


class RowError(Exception):
    """A row of a table failed; its cause is the failure itself."""


class _Table(NamedTuple):
    arguments: list[str]
    rows: Iterable[Any] | Callable[[], Iterable[Any]]
    ids: Names

    def named(self) -> list[tuple[str, dict[str, Any]]]:
        """The rows with their names, as arguments."""
        found = []
        for number, row in enumerate(self.rows() if callable(self.rows) else self.rows):
            values = row if len(self.arguments) > 1 else (row,)
            assert len(values) == len(self.arguments), f"a row of {len(values)} values for {self.arguments}"
            if callable(self.ids):
                name = "-".join(str(self.ids(value)) for value in values)
            else:
                name = self.ids[number] if self.ids else "-".join(map(str, values))
            found.append((name, dict(zip(self.arguments, values, strict=True))))
        return found


def same_random_numbers(module: object) -> None:
    """The generators of random numbers of a test's module begin anew, so that nothing depends on what ran before."""
    for value in vars(module).values():
        if isinstance(value, np.random.Generator):
            _, state = _beginnings.setdefault(id(value), (value, value.bit_generator.state))
            value.bit_generator.state = state


def rows(
    names: str | Sequence[str],
    table: Iterable[Any] | Callable[[], Iterable[Any]],
    ids: Names = None,
    share: int = 1,
) -> Callable[[Test], Test]:
    """Like `pytest.mark.parametrize`, with all rows in one test; several of them give every combination. Fixtures are
    those of the test: rows share them. A call with arguments is one of the function itself.

    names: the arguments that a row gives, as parametrize has them. table: the rows, or a function that makes them when
    the test runs, which keeps the collection of tests short. ids: names of the rows, or what makes them of a value;
    else the str of their values. share: one row in so many runs in `make test`, see `tests/share.py`. A table without
    rows fails, and so does a row that skips itself.
    """
    arguments = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)

    def decorate(function: Test) -> Test:
        test: Test = getattr(function, "test_of_a_row", function)
        tables = [_Table(arguments, table, ids), *getattr(function, "tables", [])]
        part = max(share, getattr(function, "share", 1))

        @wraps(function)
        def run(*values: Any, **others: Any) -> None:
            if values:
                test(*values, **others)
            else:
                _run(test, tables, part, others)

        signature = inspect.signature(function)
        missing = [name for name in arguments if name not in signature.parameters]
        assert not missing, f"{test.__name__} has no arguments {missing}"
        rest = [parameter for name, parameter in signature.parameters.items() if name not in arguments]
        vars(run).update(
            __signature__=signature.replace(parameters=rest), test_of_a_row=test, tables=tables, share=part
        )
        return run

    return decorate


def _run(test: Test, tables: list[_Table], share: int, others: dict[str, Any]) -> None:
    everything = list(itertools.product(*(table.named() for table in tables)))
    assert everything, "the table has no rows"
    failures, count = [], 0
    called = f"{test.__module__.replace('.', '/')}.py::{test.__qualname__}"
    for place in shared_rows(called, [tuple(name for name, _ in row) for row in everything], share):
        row = everything[place]
        name = "-".join(name for name, _ in row)
        if not all(text in name for text in wanted):
            continue
        count += 1
        same_random_numbers(sys.modules[test.__module__])
        try:
            test(**{key: value for _, values in row for key, value in values.items()}, **others)
        except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
            failures.append(RowError(f"row {name}: {error}"))
            failures[-1].__cause__ = error
    if failures:
        lines = "; ".join(str(failure).partition("\n")[0] for failure in failures)
        raise ExceptionGroup(f"{len(failures)} of {count} rows fail: {lines}", failures[:SHOWN])
    if not count:
        pytest.skip(f"no row is called {' '.join(wanted)}")
