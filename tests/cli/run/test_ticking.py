"""What a long run says about itself: CTAs, rate and time left; a summary when it is asked."""

from __future__ import annotations

import re
import signal
from types import SimpleNamespace
from typing import Any

import pytest

import ptxtools
from ptxtools.cli.ticking import Ticker, progress
from tests.rows import rows

PRINTS = """.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.global .align 1 .b8 text[3] = {104, 10, 0};
.visible .entry k()
{
    .reg .b64 %d<2>; .reg .b32 %r<2>; .reg .pred %p;
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p, %r1, 33;
    @%p bra wait;
    mov.u64 %d1, text; cvta.global.u64 %d1, %d1;
    { .param .b64 f; .param .b64 a; .param .b32 r;
    st.param.b64 [f], %d1; st.param.b64 [a], 0;
    call.uni (r), vprintf, (f, a); }
wait:
    bar.sync 0;
    ret;
}
"""


@rows(("begun", "resident", "seconds", "text"), [
    (None, 8, 1, ""),
    (1000, 8, 1, ""),
    (8, 8, 5, "0 of 1,000 CTAs done"),
    (28, 8, 0.5, "20 of 1,000 CTAs done"),
    (28, 8, 2, "20 of 1,000 CTAs done, 10/s, 1:38 min left"),
    (9, 8, 2, "1 of 1,000 CTAs done, 0.50/s, 33:18 min left"),
])  # fmt: skip
def test_progress(begun: int | None, resident: int, seconds: float, text: str) -> None:
    launch: Any = SimpleNamespace(grid=(10, 10, 10), resident=resident, begun=None if begun is None else lambda: begun)
    assert progress(launch, seconds) == text


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_a_run_that_is_asked_goes_on(engine: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGUSR1)
    printed: list[str] = []

    def on_print(text: str) -> None:
        printed.append(text)
        signal.raise_signal(signal.SIGUSR1)

    with Ticker(quiet=True) as ticker:
        signal.raise_signal(signal.SIGUSR1)
        device = ptxtools.Device(engine=engine, on_print=on_print, on_grid=ticker.grid)
        device.launch(ptxtools.loads(PRINTS, "k.ptx")["k"], 1, 64, [])
    assert signal.getsignal(signal.SIGUSR1) is before and printed == ["h\n"]
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("ptx-run: no grid has begun") and lines[1].startswith("ptx-run: k runs for ")
    assert lines[1].endswith(": 1 CTA, none waiting to begin")
    # what is at a barrier is told exactly; a warp that runs, where it last gave way to others
    told = "\n".join(lines[2:])
    assert sum(map(int, re.findall(r": (\d+) threads? (?:run|wait)s?", told))) == 64
    if engine == "native":
        assert lines[2] == "    CTA (0,0,0): 32 of 64 threads came to barrier 0"
