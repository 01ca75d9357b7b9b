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


#: Statements of sm_107a that ptxas 13.4 refuses, and their errors; the first is right.
WRONG = [
    ("spcompress.b8.b2.sp::2:4.x1 {%r2}, {%r3}, {%r1, %r1}, %r1;", ""),
    ("spcompress.b8.b2.sp::2:4.x1 {%r2}, {%r2}, {%r1, %r1}, %r1;", "PTX309"),
    ("spdecompress.b8.b2.sp::1:2.x4 {%r2, %r2}, {%r1}, {%r1};", "PTX309"),
    ("spdecompress.b8.b2.sp::1:8.x4 {%r2, %r3}, {%r1}, {%r1};", "PTX113"),
    ("tcgen05.ld.spcompress.sync.aligned.32x32b.x4.max.sp::2:4.f32.b2 {%r2}, {%r3, %r2}, [%r1];", "PTX309"),
    ("tcgen05.ld.spcompress.sync.aligned.32x32b.x2.max.sp::2:4.f32.b2 {%r2}, {%r3}, [%r1];", "PTX113"),
    ("fabric.submit; mov.u64 %rd3, %perctamemoryoffset;", "PTX413"),
    ("cp.async.bulk.prefetch.tensor.2d.L2.global.tile.override::global_address.override::global_dim"
     " [%rd1, %rd2, {%h1, %h1}, {%r1, %r1}];", "PTX113"),
    ("cp.async.bulk.prefetch.tensor.1d.L2.global.tile.override::global_dim [%rd1, {%h1}, {%r1}];", "PTX113"),
]  # fmt: skip


@rows(("line", "code"), WRONG)
def test_statements_of_the_newest_chip(line: str, code: str) -> None:
    line = ".reg .b32 %q<9>; mov.u32 %r2, %r1; mov.u32 %r3, %r1; mov.u64 %rd3, %rd2;\n" + line
    assert [error[:6] for error in errors("9.4", "sm_107a", line)] == ([code] if code else [])
