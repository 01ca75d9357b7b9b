"""What notebooks show of results."""

from __future__ import annotations

from ptxtools.diagnostics.findings import Finding
from ptxtools.sim.device import RunResult


def test_a_result_is_a_table_with_what_was_printed_and_found() -> None:
    page = RunResult(0.25, 4096, "a < b\n", [Finding("memcheck", "out & about", file="k.ptx", line=3)])._repr_html_()
    assert "<td>0.250000</td>" in page and "<td>4,096</td>" in page
    assert "<pre>a &lt; b\n</pre>" in page and "memcheck: out &amp; about" in page and "1 reports" not in page
    assert "printed" not in RunResult(0.25, 4096)._repr_html_()
