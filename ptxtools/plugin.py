"""A plugin for pytest: a device for each test, set up by a marker, whose checkers fail the test.

    @pytest.mark.ptx(target="sm_90a", checks="memcheck,racecheck")
    def test_scale(ptx_device):
        ptx_device.launch(module["scale"], grid=4, block=256, args=[x, out, 1024])

pytest loads it where ptxtools is installed; nothing of ptxtools is loaded until a test asks for the fixture.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from ptxtools.records import dataclass, field

if TYPE_CHECKING:
    from ptxtools.launch.host import Device


@dataclass(slots=True)
class _Seen:
    """What kernels of a test have printed, and checkers found."""

    printed: list[str] = field(default_factory=list)
    found: list[str] = field(default_factory=list)

    def sections(self) -> list[tuple[str, str]]:
        texts = (("ptx: printed by kernels", "".join(self.printed)), ("ptx: found by checkers", "\n".join(self.found)))
        return [(title, text) for title, text in texts if text]


_SEEN = pytest.StashKey[_Seen]()


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers",
        "ptx(**options): options of the device that the fixture ptx_device gives: target, sms, engine, seed, checks … "
        "(ptxtools.Device). A test fails if its checkers find something.",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """A test whose checkers have found something fails."""
    yield
    seen = item.stash.get(_SEEN, None)
    if seen is not None and seen.found:
        count = len(seen.found)
        pytest.fail(f"checkers found {count} thing{'s' * (count != 1)} in the kernels of this test", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add what was printed and found to the report of a test that fails."""
    report = yield
    seen = item.stash.get(_SEEN, None)
    if seen is not None and report.failed and report.when == "call":
        report.sections += seen.sections()
    return report


@pytest.fixture
def ptx_device(request: pytest.FixtureRequest) -> Device:
    """A simulated device of this test alone (`ptxtools.Device`), with the options of its markers `ptx`: those of a
    function hold before those of its class and module.

    If a checker finds something, the test fails at its end. A test that fails shows what kernels printed, and what was
    found.
    """
    import ptxtools

    options: dict[str, Any] = {}
    for marker in reversed(list(request.node.iter_markers("ptx"))):
        if marker.args:
            raise pytest.UsageError("@pytest.mark.ptx takes named options of ptxtools.Device: target='sm_90a'")
        options |= marker.kwargs
    seen = request.node.stash[_SEEN] = _Seen()
    tell = options.pop("on_print", None)

    def on_print(text: str) -> None:
        seen.printed.append(text)
        if tell is not None:
            tell(text)

    class Watched(ptxtools.Device):
        """Keeps what checkers report."""

        def run(self, *args: Any, **named: Any) -> Any:
            result = super().run(*args, **named)
            seen.found.extend(str(report) for report in result.reports)
            return result

    return Watched(**options, on_print=on_print)
