"""What notebooks show of observers."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np

import ptxtools
from ptxtools.observe.coverage import Coverage
from ptxtools.observe.estimate import Estimate
from ptxtools.observe.profile import Profile
from ptxtools.observe.trace import Record, Trace

TEXT = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x) {
    .reg .u64 %a, %w; .reg .u32 %t; .reg .f32 %v; .reg .pred %p;
    ld.param.u64 %a, [x];
    mov.u32 %t, %tid.x;
    mul.wide.u32 %w, %t, 4;
    add.u64 %a, %a, %w;
    ld.global.f32 %v, [%a];
    fma.rn.f32 %v, %v, %v, %v;
    setp.lt.u32 %p, %t, 8;
    @%p st.global.f32 [%a], %v;
    ret;
}
"""


def launched(*observers: object) -> None:
    device = ptxtools.Device("sm_80", observers=observers)
    device.launch(ptxtools.loads(TEXT)["k"], 2, 32, [np.ones(64, np.float32)])


def well_formed(page: str) -> str:
    ElementTree.fromstring(f"<div>{page.replace('&', '&amp;')}</div>")
    return page


def test_profiles_coverage_and_estimates() -> None:
    profile, coverage, estimate = Profile(), Coverage(), Estimate()
    launched(profile, coverage)
    launched(estimate)
    page = well_formed(profile._repr_html_())
    assert (
        "<td>instructions of warps</td><td>18</td>" in page and "fma.rn.f32 %v, %v, %v, %v" in page and "<svg" in page
    )
    page = well_formed(coverage._repr_html_())
    assert "9 of 9" in page and "guard held for 16 of 64, mixed 2 times" in page
    page = well_formed(estimate._repr_html_())
    assert "<h4>k</h4>" in page and f"<td>{estimate.kernels[0].bound}</td>" in page


def test_records_of_a_trace() -> None:
    records: list[Record] = []
    launched(Trace(records.append))
    page = well_formed(records[1]._repr_html_())
    assert page.startswith("<pre>") and "ld.param.u64 %a, [x]" in page


def test_nothing() -> None:
    assert "nothing" in Profile()._repr_html_() and "nothing" in Estimate()._repr_html_()
