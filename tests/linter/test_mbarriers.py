"""PTX574 and PTX576 in walks: stores of threads into mbarriers, and mbarriers that end while a warp waits."""

from __future__ import annotations

from ptxtools.linter import lint
from ptxtools.syntax import parse
from tests.rows import rows

_HEAD = """.version 8.0
.target sm_90
.address_size 64
.entry k() .reqntid 64 {
    .reg .b64 %d<4>; .reg .b32 %r<8>; .reg .pred %p<8>; .shared .align 8 .b8 s[1024];
    mov.u32 %r1, %tid.x; mov.u32 %r2, s; setp.eq.u32 %p5, %r1, 0; shl.b32 %r3, %r1, 2; add.u32 %r3, %r3, %r2;
    @%p5 mbarrier.init.shared.b64 [%r2+128], 64; bar.sync 0; mbarrier.arrive.shared.b64 _, [%r2+128];
    W: mbarrier.try_wait.parity.shared.b64 %p1, [%r2+128], 0; @!%p1 bra W;
"""
_END = "@%p5 mbarrier.inval.shared.b64 [%r2+128];"
_AGAIN = (
    "mbarrier.arrive.shared.b64 _, [%r2+128]; V: mbarrier.try_wait.parity.shared.b64 %p1, [%r2+128], 1; @!%p1 bra V;"
)


@rows(("body", "codes"), [
    (f"bar.sync 0; {_END}", []),
    (_END, ["PTX576"]),
    (f"{_AGAIN} {_END}", ["PTX576"]),
    (f"@%p5 bra V; bar.arrive 1, 96; ret; V: bar.sync 1, 96; {_END}", []),
    ("st.shared.u32 [%r3], 0;", ["PTX574"]),  # thread 32 does
    ("st.shared.u32 [%r3+136], 0;", []),
    ("st.shared.u32 [%r3+132], 0;", ["PTX574"]),
    ("setp.lt.u32 %p2, %r1, 32; @%p2 st.shared.u32 [%r3], 0;", []),
    (f"bar.sync 0; {_END} bar.sync 0; st.shared.u32 [%r3], 0;", []),
])  # fmt: skip
def test_ends_of_mbarriers(body, codes):
    parsed = parse(f"{_HEAD} {body} ret; }}", "k.ptx")
    assert not parsed.diagnostics
    assert [one.code for one in lint(parsed.module) if one.code in ("PTX574", "PTX576", "PTX515")] == codes
