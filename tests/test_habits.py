"""Habits of the tests themselves (docs/testing.md): they measure no time, and use no paths outside of their folders."""

import ast
import re
from pathlib import Path

import pytest

from tests.rows import rows

TESTS = Path(__file__).resolve().parent
FILES = sorted(path for path in TESTS.rglob("*.py") if path.name != "test_habits.py")

#: Clocks, also in the programs that tests write for other processes.
CLOCK = re.compile(
    r"\b(?:perf_counter|process_time|thread_time|monotonic_ns|time_ns|getrusage\(.*time|timeit)\b|time\.time\("
)
#: Files that may or may not be there.
FOREIGN = re.compile(r"""["'@=]/(?:nonexistent|tmp|home|root|usr|etc)\b""")


def mistakes(text):
    """The lines of a test file that depend on speed or on the machine, each with the reason."""
    for number, line in enumerate(text.splitlines(), 1):
        if CLOCK.search(line):
            yield number, "reads a clock"
        if FOREIGN.search(line):
            yield number, "names a path outside of the test's own folder"
    if "monotonic" not in text:
        return
    tree = ast.parse(text)
    limits = {id(node.left) for node in ast.walk(tree) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "monotonic":
            if id(node) not in limits:
                yield node.lineno, "reads a clock for something else than a limit, `time.monotonic() + seconds`"
        elif isinstance(node, ast.Compare):
            inside = {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
            if "monotonic" in inside:
                yield node.lineno, "compares times"


@rows("path", FILES, ids=lambda path: path.relative_to(TESTS).as_posix())
def test_no_test_depends_on_speed_or_on_the_machine(path):
    found = [f"{path}:{line}: {why}" for line, why in mistakes(path.read_text("utf-8"))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("text", [
    "import time\nbegan = time.monotonic()\n",
    "import time\nassert time.monotonic() + 1 < 2\n",
    "import time\nbegan = time.perf_counter()\n",
    "CODE = 'import time; start = time.process_time()'\n",
    "import time\nstart = time.time()\n",
    "open('/nonexistent')\n",
    "open('@/tmp/file')\n",
])  # fmt: skip
def test_mistakes_are_seen(text):
    assert list(mistakes(text))


def test_a_limit_is_no_mistake():
    assert not list(mistakes("import time\nrun(deadline=time.monotonic() + 0.3)\n"))
