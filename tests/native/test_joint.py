"""Quickly compiled handlers that share a function: each record means its own case, wherever the code comes from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ptxtools.native.code import cases, encode, generate, jit, library, tiers
from ptxtools.native.code.keys import key_of, name_of
from ptxtools.program.operations import LANEWISE
from tests.program import harness

from .harness import body_kernel, lowered, results

#: Results of each type, under guards and without, of one operand, two and three; two of several results.
BODY = """
    setp.lt.u32 %p1, %t, 9; setp.ge.u32 %p2, %t, 20; setp.lt.u32 %p3|%p4, %t, 16;
    add.u32 %r1, %t, 7; sub.u32 %r1, %r1, 3; @%p1 xor.b32 %r1, %r1, 255; @!%p2 shl.b32 %r1, %r1, 2;
    @%p3 not.b32 %r1, %r1;
    mad.lo.u32 %r2, %r1, %r1, %t; and.pred %p5, %p4, %p2; @%p5 add.u32 %r2, %r2, 1000; min.u32 %r2, %r2, 5000;
    cvt.u64.u32 %d1, %r2; mul.wide.u32 %d2, %r1, %r2; @%p4 add.u64 %d1, %d1, %d2; shr.u64 %d1, %d1, 1;
    cvt.u16.u32 %h1, %t; mul.lo.u16 %h2, %h1, 3; @%p1 add.u16 %h2, %h2, 1; cvt.u64.u16 %d3, %h2;
    add.cc.u32 %r3, %r1, -5; addc.u32 %r4, %r2, 0; cvt.u64.u32 %d4, %r4; mov.b64 {%r5, %r6}, %d2; cvt.u64.u32 %d5, %r6;
    cvt.rn.f32.u32 %f1, %t; fma.rn.f32 %f2, %f1, 0f40400000, 0f3F800000; add.rz.f32 %f3, %f2, 0f33800000;
    mov.b32 %r7, %f3; cvt.u64.u32 %d6, %r7; selp.b64 %d6, %d6, 0, %p2;
    add.u64 %d1, %d1, %d3; add.u64 %d1, %d1, %d4; add.u64 %d1, %d1, %d5; xor.b64 %d1, %d1, %d6;
    st.global.u64 [%out], %d1; ret;"""


def wanted() -> np.ndarray:
    t = np.arange(32, dtype=np.uint64)
    word = np.uint64(0xFFFFFFFF)
    p1, p2, p3 = t < 9, t >= 20, t < 16
    one = (t + 4) & word
    one = np.where(p1, one ^ np.uint64(255), one)
    one = np.where(~p2, one << np.uint64(2), one) & word
    one = np.where(p3, ~one & word, one)
    two = (one * one + t) & word
    two = np.where(~p3 & p2, (two + np.uint64(1000)) & word, two)
    two = np.minimum(two, np.uint64(5000))
    product = one * two
    total = (np.where(~p3, two + product, two)) >> np.uint64(1)
    half = (3 * t + p1).astype(np.uint64)
    carry = ((one + np.uint64(0xFFFFFFFB)) >> np.uint64(32)).astype(np.uint64)
    line = np.arange(32, dtype=np.float32) * np.float32(3) + np.float32(1)  # what is added is less than half a unit
    bits = np.where(p2, line.view(np.uint32).astype(np.uint64), np.uint64(0))
    return (total + half + two + carry + (product >> np.uint64(32))) ^ bits


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No code is there but what a test makes, in a folder of its own."""
    monkeypatch.setattr(tiers, "QUICK", True)
    monkeypatch.setattr(tiers, "AT_ONCE", False)
    monkeypatch.setattr(library, "_full", library.Level(jit.FULL, tmp_path))
    begin_anew(monkeypatch, tmp_path)
    yield
    harness._known.cache_clear()


def begin_anew(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """As a process that has the files in this folder, and no code yet."""
    patch.setattr(library, "_quick", library.Level(jit.QUICK, folder))
    harness._known.cache_clear()


@pytest.fixture
def all_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each handler counts as one that is needed often."""
    names = lambda _, bodies: [name for body in bodies for name, _ in body]  # noqa: E731
    monkeypatch.setattr(encode._Encoder, "_often", names)


@pytest.mark.usefixtures("all_often")
@pytest.mark.skipif("avx2" not in jit.host_features(), reason="results are arguments in registers of AVX2")
def test_what_is_needed_often_has_its_own_function() -> None:
    assert np.array_equal(results(BODY, dtype=np.uint64), wanted())
    places = {name: address for name, address in library._quick.addresses.items() if name.startswith("h_")}
    alone = [name for name in places if list(places.values()).count(places[name]) <= 2]  # with a guard and without
    for opcode in ("setp_lt", "add_u32", "not_b32", "mul_wide", "add_u16", "and_pred", "selp", "cvt", "fma_rn"):
        assert any(opcode in name and name not in library._quick.cases for name in alone), opcode


@pytest.mark.usefixtures("all_often")
@pytest.mark.parametrize("active", [1, 0x80000000, 0x00FF0000, 0xFFFF])
def test_lanes_that_do_not_run_keep_what_they_have(active: int) -> None:
    """In straight functions: those that have left, and those whose guard is false, of words, halves, predicates."""
    body = """mov.b32 %r1, 7; mov.b64 %d1, 70; cvt.u16.u32 %h1, %r1; setp.eq.u32 %p2, %r1, 0; mov.b32 %r2, 1;
        shl.b32 %r2, %r2, %t; and.b32 %r2, %r2, MASK; setp.ne.u32 %p1, %r2, 0;
        @%p1 add.u32 %r1, %r1, %t; @%p1 add.u64 %d1, %d1, 1000; @%p1 add.u16 %h1, %h1, 300;
        @%p1 setp.ne.u32 %p2, %t, 40; @!%p1 bra DONE; add.u32 %r1, %r1, 10000;
        DONE: cvt.u32.u64 %r3, %d1; cvt.u32.u16 %r4, %h1; add.u32 %r1, %r1, %r3; add.u32 %r1, %r1, %r4;
        @%p2 add.u32 %r1, %r1, 500000; st.global.u32 [%out], %r1; ret;""".replace("MASK", str(active))
    t = np.arange(32, dtype=np.uint64)
    runs = (np.uint64(active) >> t & np.uint64(1)).astype(bool)
    assert np.array_equal(results(body), np.where(runs, 84 + t + 511300, 84).astype(np.uint32))


def test_long_operations_share_a_function_even_if_they_are_needed_often() -> None:
    body = "cvt.rn.f32.u32 %f1, %t; lg2.approx.f32 %f3, %f1; neg.f32 %f2, %f3; st.global.f32 [%out], %f2; ret;"
    program = lowered(body_kernel(body, 8))
    ops = {name_of(key_of(op)): op for block in program.blocks for op in block.ops if op.kind in LANEWISE}
    text = generate.handler_module(ops, ["sse2", "avx", "avx2", "f16c", "fma"], often=list(ops), brief=True)
    assert {name.split("_")[2] for name in ops if f"@{name} = alias" in text} >= {"lg2"}
    assert {name.split("_")[2] for name in ops if f"void @{name}(ptr %fp" in text} >= {"neg"}


def test_cases_of_one_function() -> None:
    assert np.array_equal(results(BODY, dtype=np.uint64), wanted())
    assert len(library._quick.cases) > 20
    places = {library._quick.addresses[name] for name in library._quick.cases}
    assert len(places) <= 2  # slices of two widths


@pytest.mark.parametrize("kept", ["*.pack", "unit-*.o"])
def test_a_later_process_knows_the_cases(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kept: str) -> None:
    """Whether it finds a program's code together, or in the units that several programs have left."""
    other = "add.u32 %r1, %t, 1; @%p1 not.b32 %r1, %r1; shl.b32 %r1, %r1, 2; st.global.u32 [%out], %r1; ret;"
    results(other)  # whose cases have other numbers
    begin_anew(monkeypatch, tmp_path)
    results(BODY, dtype=np.uint64)
    for file in tmp_path.glob("native-*/*"):
        if not file.match(kept):
            file.unlink()
    begin_anew(monkeypatch, tmp_path)
    monkeypatch.setattr(generate, "handler_module", None)  # nothing is to be made again
    assert np.array_equal(results(BODY, dtype=np.uint64), wanted())
    assert library._quick.cases


def test_what_changes_the_rounding_mode_has_its_own_function() -> None:
    program = lowered(body_kernel(BODY, 8))
    ops = {name_of(key_of(op)): op for block in program.blocks for op in block.ops if op.kind in LANEWISE}
    text = generate.handler_module(ops, ["sse2", "avx", "avx2", "f16c", "fma"], brief=True)  # rounding is a mode
    alone = [name for name in ops if f"void @{name}(ptr %fp" in text]
    assert [name for name in alone if "add_rz" in name] and len(alone) < 6
    assert all(f"@{name} = alias" in text for name in ops if name not in alone)


def test_one_handler_with_and_without_a_guard() -> None:
    body = """setp.ge.u32 %p1, %t, 12; mul.wide.u32 %d1, %t, 4; add.u64 %d1, %in, %d1; mov.b32 %r1, 7; mov.b32 %r2, 0;
        ld.global.u32 %r2, [%d1]; @%p1 ld.global.u32 %r1, [%d1+128]; @!%p1 add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %t;
        st.global.u32 [%out], %r2; @%p1 st.global.u32 [%out], %r1; ret;"""
    data = np.arange(100, 164, dtype=np.uint32)
    t = np.arange(32, dtype=np.uint32)
    assert np.array_equal(results(body, inputs=data), np.where(t >= 12, data[32:] + t, data[:32]))
    names = [name for name in library._quick.addresses if name.startswith(("h_ld_b32_global", "h_st_b32_global"))]
    assert len(names) == 4 and len({library._quick.addresses[name] for name in names}) == 2


def test_a_table_is_read_as_it_was_written() -> None:
    import ctypes

    numbers = {"h_a_1": 0, "h_b_2": 17}
    text = cases.text_of(["h_a_1", "h_b_2", "h_c_3"], numbers)
    content = ctypes.create_string_buffer(text[text.index('c"') + 2 : -4].encode())
    symbols = {cases.table_of(["h_a_1", "h_b_2", "h_c_3"]): ctypes.addressof(content), "h_a_1": 1}
    assert cases.read(symbols) == numbers
