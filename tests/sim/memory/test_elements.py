"""Elements of vectors that have another type than the instruction: their bits count, in registers and constants."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxtools
from tests.work import HANG

ENGINES = pytest.mark.parametrize("engine", ["native", "reference"])
HEAD = """.version 8.8
.target sm_100
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out) {
  .reg .b16 %h<4>; .reg .b32 %r<8>, %zero; .reg .u32 %u<8>; .reg .s32 %s<8>; .reg .f32 %f<8>; .reg .f16x2 %x<8>;
  .reg .f64 %d<8>; .reg .u64 %l<8>, %in, %out; .reg .b64 %q<8>;
  ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.b32 %zero, 0;
"""


def run(body: str, engine: str, data: Any = 0, threads: int = 1) -> list[int]:
    """The 32 bytes at %out, as words; 32 bytes of data are at %in."""
    out = np.zeros(8, np.uint32)
    start = np.resize(np.asarray(data, np.uint32), 8)
    kernel = ptxtools.loads(f"{HEAD}{body} ret; }}")["k"]
    ptxtools.Device("sm_100", engine=engine).launch(kernel, 1, threads, [start, out], timeout=HANG)
    return [int(word) for word in out]


@ENGINES
def test_integers_in_vectors_of_floats(engine: str) -> None:
    body = """ld.global.v2.f32 {%u0, %u1}, [%in]; ld.global.v2.f32 {_, %s1}, [%in]; mov.v2.f32 {%f0, %f1}, {%u1, %u0};
    st.global.v2.f32 [%out], {%u0, %s1}; st.global.v2.b32 [%out+8], {%f0, %f1};
    ld.global.v2.f64 {%l0, %l1}, [%in]; mov.v2.f64 {%d0, %d1}, {%l1, %l0}; st.global.v2.f64 [%out+16], {%d0, %d1};"""
    assert run(body, engine, [7, 0xFFC00001, 9, 4]) == [7, 0xFFC00001, 0xFFC00001, 7, 9, 4, 7, 0xFFC00001]


@ENGINES
def test_special_registers_in_vectors_that_are_moved(engine: str) -> None:
    body = "mov.v2.u32 {%u0, %u1}, {%ntid.x, 5}; mov.v2.b32 {%u2, %u3}, {%u1, %nctaid.x};"
    assert run(f"{body} st.global.v4.u32 [%out], {{%u0, %u1, %u2, %u3}};", engine, threads=4)[:4] == [4, 5, 5, 1]


@ENGINES
def test_constants_in_vectors_of_halves(engine: str) -> None:
    """1 + 2, bit by bit the constants of an .f16 or a .bf16."""
    body = """mov.b16 %h0, 0x3C00; mov.b32 %r0, 0x40004000; mov.b32 %r1, 0x3F803F80;
    st.global.v4.b32 [%out], {0x3C004000, %r0, 0x3F803F80, %r0};
    red.global.add.noftz.v2.f16 [%out], {%h0, 0x4000}; red.global.add.noftz.v2.bf16 [%out+4], {0x3F80, 0x3F80};"""
    assert "PTX224" in {d.code for d in ptxtools.lint(f"{HEAD}{body} ret; }}")}  # alone they have no size
    body = body.replace("{0x3F80, 0x3F80};", "{0x3F80, %h0};").replace("bf16 [%out+4]", "bf16 [%out+20]")
    body += "atom.global.add.noftz.v2.bf16x2 {_, %r2}, [%out+8], {%r0, 0f3F803F80}; st.global.b32 [%out+24], %r2;"
    assert run(body, engine)[:7] == [0x42004200, 0x40004000, 0x40404040, 0x40404040, 0, 0x3C003F80, 0x40004000]


PRODUCTS = [
    ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {D}, {A, B, A, C}, {A, B}, {Z, Z, Z, Z};",
     {"A": 0x40000000, "B": "0x3F800000", "C": "0f40400000"}, 4),
    ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {D}, {A, B, A, C}, {A, B}, {Z, Z, Z, Z};",
     {"A": 0x40003F80, "B": "0x3F804000", "C": "0f40403F80"}, 4),
    ("wmma.mma.sync.aligned.row.row.m16n16k16.f32.bf16.bf16.f32 "
     "{D}, {A, B, A, C}, {A, A, A, A}, {Z, Z, Z, Z, Z, Z, Z, Z};",
     {"A": 0x40003F80, "B": "0x3F804000", "C": "0f40403F80"}, 8),
]  # fmt: skip


@pytest.mark.share(3)
@ENGINES
@pytest.mark.parametrize(("line", "values", "count"), PRODUCTS)
def test_constants_in_fragments(line: str, values: dict[str, Any], count: int, engine: str) -> None:
    """They are the bits of a register."""
    names = [f"%f{i}" for i in range(count)]
    line = line.replace("Z", "%zero").replace("{D}", "{" + ", ".join(names) + "}")
    stored = "".join(f"st.global.f32 [%out+{4 * i}], {name};" for i, name in enumerate(names))
    outcomes = []
    for written in (True, False):
        text, before = line, ""
        for number, (letter, value) in enumerate(values.items()):
            before += f"mov.b32 %r{number}, {value};"
            text = text.replace(letter + ",", f"{value if written and letter != 'A' else f'%r{number}'},")
            text = text.replace(letter + "}", f"{value if written and letter != 'A' else f'%r{number}'}}}")
        outcomes.append(run(f"{before}{text}{stored}", engine, threads=32))
    assert outcomes[0] == outcomes[1] and any(outcomes[0])


@ENGINES
def test_fragments_in_registers_of_other_types(engine: str) -> None:
    sparse = """mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
    {D0, D1, D2, D3}, {A0, A1}, {B0, B1}, {C0, C0, C0, C0}, %r4, 0; st.global.v4.b32 [%out], {D0, D1, D2, D3};"""
    before = "mov.b32 %r4, 0x44444444; "
    before += "".join(f"mov.b32 {n}{i}, 0x40003F80;" for n in ("%r", "%u", "%f", "%x") for i in (0, 1))
    before += "mov.b32 %f2, 0f3F800000; mov.b32 %s2, %f2;"
    usual, other = (
        {"A": "%r", "B": "%r", "C0": "%f2", "D": "%f"},
        {"A": "%f", "B": "%x", "C0": "%s2", "D": "%u"},
    )
    results = []
    for letters in (usual, other):
        line = sparse
        for letter, name in letters.items():
            line = line.replace(letter, name)
        results.append(run(before + line, engine, threads=32))
    assert results[0] == results[1] and all(results[0][:4])
    doubles = """mov.b64 %d0, 0d4000000000000000; mov.b64 %l0, %d0; mov.b64 %l1, %d0;
    mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%l2, %l3}, {%l0}, {%l1}, {%l0, %l1};
    st.global.v2.f64 [%out], {%l2, %l3};"""
    assert np.array(run(doubles, engine, threads=32)[:4], np.uint32).view(np.float64).tolist() == [18.0, 18.0]
