"""Byte and thread ids of the scale factors of mma: what the size of the factors leaves (9.7.14.3); as ptxas has it."""

from __future__ import annotations

import itertools

import pytest

import ptxtools

MMA = "mma.sync.aligned.m16n8k{k}.row.col.kind::{kind}.block_scale{size}.f32.{t}.{t}.f32.{scale}"
BYTES = [
    (MMA.format(k=32, kind="mxf8f6f4", size="", t="e4m3", scale="ue8m0"), {0, 1, 2, 3}),
    (MMA.format(k=32, kind="mxf8f6f4", size=".scale_vec::1X", t="e4m3", scale="ue8m0"), {0, 1, 2, 3}),
    (MMA.format(k=64, kind="mxf4", size="", t="e2m1", scale="ue8m0"), {0, 2}),
    (MMA.format(k=64, kind="mxf4nvf4", size=".scale_vec::2X", t="e2m1", scale="ue8m0"), {0, 2}),
    (MMA.format(k=64, kind="mxf4nvf4", size=".scale_vec::4X", t="e2m1", scale="ue4m3"), {0}),
]


@pytest.mark.parametrize(("opcode", "numbers"), BYTES)
@pytest.mark.parametrize(("ids", "threads"), [("{{{0}, {1}}}, %r7, {{0, 0}}", 2), ("{{0, 0}}, %r7, {{{0}, {1}}}", 4)])
def test_ids(opcode: str, numbers: set[int], ids: str, threads: int) -> None:
    lines = [
        f"{opcode} {{%f0, %f1, %f2, %f3}}, {{%r0, %r1, %r2, %r3}}, {{%r0, %r1}}, {{%f0, %f1, %f2, %f3}}, %r5, "
        f"{ids.format(byte, thread)};"
        for byte, thread in itertools.product(range(5), range(5))
    ]
    head = ".version 9.0\n.target sm_120a\n.address_size 64\n.entry k() { .reg .b32 %r<8>; .reg .f32 %f<4>;\n"
    findings = ptxtools.lint(head + "\n".join(lines) + "\nret; }\n")
    refused = {finding.line - 5 for finding in findings if finding.code == "PTX225"}
    assert {divmod(at, 5) for at in range(25) if at not in refused} == set(itertools.product(numbers, range(threads)))
