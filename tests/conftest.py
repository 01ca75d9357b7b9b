"""Where a test run keeps what it makes, and what its end says beside its results."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest

import ptxtools.api  # noqa: F401 - provides the engines
from bench.cpus import CPUS
from ptxtools.native.code import jit, tiers
from tests import prepared, rows, share
from tests.machine import recorder

#: What a user's settings may change in messages and caches; tests that are about one of these set it themselves.
SETTINGS = ("CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "FORCE_COLOR", "GITHUB_ACTIONS", "NO_COLOR")

#: Names the folder of the run, for the processes in it.
RUN = "PTXTOOLS_TEST_RUN"

_made: list[str] = []
_THRESHOLD = gc.get_threshold()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--row", action="append", default=[], help="run only the rows of tables whose names contain this")
    parser.addoption("--whole", action="store_true", help="run all of the large tables, not the share of make test")
    parser.addoption(
        "--tier",
        choices=["well", "quick", "regions"],
        default="well",
        help="how kernels in the tests' own processes begin: with handlers that are compiled well, or quickly; or with"
        " all hot code compiled",
    )
    parser.addoption("--cpu", choices=CPUS, help="what the tests' own processes compile for, instead of this CPU")
    parser.addoption("--left", action="store_true", help="name the tables of which only a share was run")


def pytest_configure(config: pytest.Config) -> None:
    """One cache for the whole run, new and its own: workers and the processes that tests start share it, so that each
    handler is compiled once, and the user's cache is neither used nor filled. Workers inherit this from their parent.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # As in a job of a shell script's background; the processes that tests interrupt would inherit it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "share(n): one case in n of a parametrised test runs without --whole")
    rows.wanted[:] = config.getoption("row")
    tiers.QUICK, tiers.AT_ONCE = (config.getoption("tier") == name for name in ("quick", "regions"))
    cpu = config.getoption("cpu")
    if cpu is not None:
        name, _, features = CPUS[cpu]
        jit.aim_at(name, features.split())
    share.whole = config.getoption("whole") or bool(rows.wanted)
    if hasattr(config, "workerinput") or RUN in os.environ:  # a worker, or a run that a test of another run starts
        return
    folder = tempfile.mkdtemp(prefix="ptxtools-tests-")
    _made.append(folder)
    os.environ[RUN] = folder
    os.environ["PTXTOOLS_CACHE"] = os.path.join(folder, "cache")
    for name in SETTINGS:
        os.environ.pop(name, None)
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
        # No files beside the sources, as asked for; but hundreds of processes need not each compile them all.
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = os.path.join(folder, "bytecode")
    if prepared.wanted(config):
        prepared.prepare(config)


def pytest_unconfigure() -> None:
    while _made:
        os.environ.pop(RUN)
        shutil.rmtree(_made.pop(), ignore_errors=True)


def pytest_runtest_teardown() -> None:
    """A command freezes what is left when it ends. Where a test has run one in this process, all trees that later tests
    make would be collected young, again and again. And nothing that a test has begun to compile beside it is compiled
    during the next one, which may look at what is."""
    gc.unfreeze()
    gc.set_threshold(*_THRESHOLD)
    tiers._wait()


@pytest.fixture(autouse=True)
def same_random_numbers(request: pytest.FixtureRequest) -> None:
    """The generators of random numbers of a test's module begin anew, so that no test depends on those before it."""
    rows.same_random_numbers(request.module)


@pytest.fixture(autouse=True)
def the_kinds_of_the_table(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that stands for kinds of traps or waits (tests/machine/kinds.tsv) meets them."""
    wanted = recorder.kinds_of().get(request.node.nodeid)
    if wanted is None:
        yield
        return
    with recorder.messages(pytest.MonkeyPatch()) as met:
        yield
    assert recorder.missed(wanted, met) == [], "kinds that this test stands for are not met"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    share.leave(config, items, recorder.kinds_of())


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker tells its parent what it left to the sweep."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["left_tests"], output["left_rows"] = share.left_tests, share.left_rows


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    output = getattr(node, "workeroutput", {})
    share.left_tests.update(output.get("left_tests", {}))
    share.left_rows.update(output.get("left_rows", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What is left to the sweep, and that nothing was held against a chip; other skipped tests are told by -rs."""
    for line in share.told(share.left_tests, share.left_rows, terminalreporter.config.getoption("left")):
        terminalreporter.write_line(line)
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        if "GPU recordings" in reason:
            terminalreporter.write_line(reason.removeprefix("Skipped: "))
            return
