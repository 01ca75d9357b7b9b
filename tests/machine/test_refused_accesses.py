"""Both engines say the same of an access that cannot be made: its size, its direction, its memory."""

from __future__ import annotations

import pytest

import ptxtools
from ptxtools.diagnostics import Trap
from tests.rows import rows

HEAD = """.version 8.1
.target sm_90a
.address_size 64
.visible .entry k() {{
    .reg .b64 %rd<3>; .reg .b32 %r<5>; .reg .f32 %f<5>; .shared .align 16 .b8 s[64];
    mov.u64 %rd1, {}; mov.u32 %r1, {}; mov.u32 %r2, s;
    {}
    ret;
}}
"""
FAR, GLOBAL = "0x7ffff0", "0x40"


@pytest.mark.parametrize("engine", ["native", "reference"])
@rows(
    ("line", "reason"),
    [
        ("ld.global.v2.b32 {%r3, %r4}, [%rd1];", f"global read of 8 bytes at {GLOBAL} is out of bounds"),
        ("st.global.v4.b32 [%rd1], {%r3, %r4, %r3, %r4};", f"global write of 16 bytes at {GLOBAL} is out of bounds"),
        ("red.global.add.v2.f32 [%rd1], {%f1, %f2};", f"global write of 8 bytes at {GLOBAL} is out of bounds"),
        ("atom.global.add.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1], {%f1, %f2, %f3, %f4};",
         f"global write of 16 bytes at {GLOBAL} is out of bounds"),
        ("atom.global.cas.b32 _, [%rd1], %r3, %r4;", f"global write of 4 bytes at {GLOBAL} is out of bounds"),
        ("atom.global.add.v2.f32 {%f1, %f2}, [%rd1+4], {%f1, %f2};", "address 0x44 is not aligned to 8 bytes"),
        ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r3}, [%r1];",
         f"shared read of 16 bytes at {FAR} is out of bounds"),
        ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r3}, [%r2+4];", "address 0x4 is not aligned to 16 bytes"),
        ("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r3};",
         f"shared write of 16 bytes at {FAR} is out of bounds"),
        ("cp.async.ca.shared.global [%r2], [%rd1], 16;", f"global read of 1 bytes at {GLOBAL} is out of bounds"),
        ("cp.async.ca.shared.global [%r2], [%rd1+4], 16;", "address 0x44 is not aligned to 16 bytes"),
        ("cp.async.ca.shared.global [%r1], [%rd1], 16, 0;", f"shared write of 16 bytes at {FAR} is out of bounds"),
        ("cp.async.ca.shared.global [%r2+4], [%rd1], 16, 0;", "address 0x4 is not aligned to 16 bytes"),
    ],
)  # fmt: skip
def test_reasons(line: str, reason: str, engine: str) -> None:
    module = ptxtools.loads(HEAD.format(GLOBAL, FAR, line))
    with pytest.raises(Trap) as caught:
        ptxtools.Device("sm_90a", engine=engine).launch(module["k"], 1, 32, [])
    assert caught.value.reason == reason
