"""PTX614: requests and answers of cluster launch control, and what decides about them."""

from __future__ import annotations

import pytest

from ptxtools.linter import lint
from ptxtools.syntax import parse

_HEAD = """.version 9.0
.target sm_100a
.address_size 64
.entry k(.param .b64 a, .param .b32 n) {
    .reg .b64 %d<4>; .reg .b32 %r<8>; .reg .b128 %q; .reg .pred %p<8>;
    .shared .align 16 .b8 answer[16]; .shared .align 8 .b64 bar; .shared .b32 flag;
    ld.param.b64 %d1, [a]; ld.param.b32 %r2, [n]; mov.u32 %r3, %tid.x; setp.eq.u32 %p5, %r3, 0;
"""
_ASK = "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [answer], [bar];"
_LOOK = "ld.shared.b128 %q, [answer]; clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %q;"
_FIRST = "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r1, %q;"
_STORE = "st.global.b32 [%d1], %r1;"
_ROUND = "sub.u32 %r2, %r2, 1; setp.ne.u32 %p3, %r2, 0;"


@pytest.mark.parametrize("body, found", [
    (f"{_LOOK} {_FIRST} {_STORE}", 1),
    (f"{_LOOK} {_FIRST}", 0),  # nothing reads the number
    (f"{_LOOK} {_FIRST} selp.b32 %r1, %r1, 0, %p2; {_STORE}", 0),
    (f"{_LOOK} {_FIRST} @%p2 {_STORE}", 0),
    (f"L: {_ASK} {_LOOK} {_ROUND} @%p3 bra L;", 1),
    (f"L: @%p5 {_ASK} {_LOOK} {_ROUND} @%p3 bra L;", 1),
    (f"L: {_ASK} {_LOOK} {_ROUND} @!%p2 bra E; @%p3 bra L; E:", 0),
    (f"L: {_ASK} {_LOOK} {_ROUND} and.pred %p3, %p3, %p2; @%p3 bra L;", 0),
    (f"L: {_ASK} {_LOOK} {_ROUND} @!%p2 mov.pred %p3, %p5; @%p3 bra L;", 0),
    (f"L: {_ASK} {_LOOK} ld.shared.b32 %r4, [flag]; setp.ne.u32 %p3, %r4, 0; @%p3 bra L;", 0),  # another may have told
    (f"{_ASK} {_LOOK} {_ASK}", 1),
    (f"{_ASK} {_LOOK} @%p2 {_ASK}", 0),
    (f"{_ASK} {_ASK} {_LOOK}", 0),  # nobody has seen an answer before
    (f"@%p5 bra A; {_LOOK} bra E; A: {_ASK} E:", 0),  # other threads make the request
])  # fmt: skip
def test_requests_and_answers(body: str, found: int) -> None:
    parsed = parse(f"{_HEAD} {body} ret; }}", "k.ptx")
    assert not parsed.diagnostics
    codes = [one.code for one in lint(parsed.module)]
    assert not [code for code in codes if code < "PTX500"]
    assert codes.count("PTX614") == found
