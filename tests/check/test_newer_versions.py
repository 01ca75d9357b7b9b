"""Modules of PTX 9.1 to 9.5: what compilers write lints clean, and a version too low is named."""

from __future__ import annotations

import ptxtools
from ptxtools.diagnostics import Severity
from tests.rows import rows

MODULE = """.version {version}
.target {target}
.address_size 64
.visible .entry k(.param .u64 p)
{{
    .reg .b16 %h<3>; .reg .b32 %r<5>; .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [p];
    ld.global.u32 %r1, [%rd1]; ld.global.u16 %h1, [%rd1+8]; ld.global.u64 %rd2, [%rd1+16];
    {line}
    st.global.u32 [%rd1], %r2; st.global.u64 [%rd1+16], %rd3;
    ret;
}}
"""
LINES = [  # line, first version, a target
    ("mov.u32 %r2, %r1; mov.u64 %rd3, %rd2;", "8.6", "sm_80"),
    ("cvt.rn.bf16x2.e4m3x2 %r2, %h1; mov.u64 %rd3, %rd2;", "9.2", "sm_100a"),
    ("add.sat.u8x4 %r2, %r1, %r1; mov.u64 %rd3, %rd2;", "9.2", "sm_120f"),
    ("clmad.hi.u64 %rd3, %rd2, %rd2, 0; mov.u32 %r2, %r1;", "9.3", "sm_80"),
    ("set.lt.u8x4 %r2, %r1, 5; mov.u64 %rd3, %rd2;", "", "sm_107a"),
    ("set.lt.u8x4 %r2, %r1, %r1; mov.u64 %rd3, %rd2;", "9.4", "sm_107f"),
]


def errors(version: str, target: str, line: str) -> list[str]:
    found = ptxtools.lint(MODULE.format(version=version, target=target, line=line))
    return [f"{d.code} {d.message}" for d in found if d.severity is Severity.ERROR]


@rows(("line", "first", "target"), LINES)
@rows("version", ["9.1", "9.2", "9.3", "9.4", "9.5"])
def test_versions_of_a_line(line: str, first: str, target: str, version: str) -> None:
    if target.startswith("sm_107") and version < "9.4":
        assert errors(version, target, line)[0].startswith("PTX3")
    elif not first:
        assert [error[:6] for error in errors(version, target, line)] == ["PTX223"]
    elif version < first:
        [error] = errors(version, target, line)
        assert error.startswith("PTX301") and f"needs PTX {first}" in error
    else:
        assert errors(version, target, line) == []
