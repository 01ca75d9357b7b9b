"""What the end of a test run says beside its results."""

from __future__ import annotations

import pytest

import ptxtools.api  # noqa: F401 - provides the engines


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line when nothing was held against a chip; other skipped tests are told by -rs."""
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        if "GPU recordings" in reason:
            terminalreporter.write_line(reason.removeprefix("Skipped: "))
            return
