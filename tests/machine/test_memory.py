"""State spaces, vectors, atomics, bounds and alignment on the reference engine."""

from __future__ import annotations

import numpy as np
import pytest

from ptxtools import reference
from ptxtools.diagnostics import Trap
from tests.program.harness import BASE, Memory, launch_of, results, run

BOTH = pytest.mark.parametrize("optimise", [True, False])
T = np.arange(32, dtype=np.uint32)


@BOTH
def test_narrow_loads_extend_by_type(optimise: bool) -> None:
    data = np.array([0x80, 0x7F, 0xFF, 0x01] * 8, np.uint8)
    body = """cvt.u64.u32 %d1, %t; add.u64 %d1, %d1, %in;
        ld.global.s8 %r1, [%d1]; ld.global.u8 %r2, [%d1]; add.u32 %r3, %r1, %r2; st.global.u32 [%out], %r3; ret;"""
    expected = data.view(np.int8).astype(np.int32) + data
    assert np.array_equal(results(body, inputs=data, optimise=optimise).view(np.int32), expected)


@BOTH
def test_vectors(optimise: bool) -> None:
    data = np.arange(128, dtype=np.uint32)
    body = """mul.wide.u32 %d1, %t, 16; add.u64 %d1, %d1, %in;
        ld.global.v4.u32 {%r1, _, %r3, %r4}, [%d1];
        sub.u32 %r5, %r4, %r1; mad.lo.u32 %r5, %r3, 10, %r5; st.global.u32 [%out], %r5; ret;"""
    assert np.array_equal(results(body, inputs=data, optimise=optimise), (4 * T + 2) * 10 + 3)


@BOTH
def test_shared_static_dynamic_and_generic(optimise: bool) -> None:
    before = ".shared .align 4 .u32 fixed[32]; .extern .shared .align 16 .u32 dynamic[];"
    body = """mov.u64 %d1, fixed; mul.wide.u32 %d2, %t, 4; add.u64 %d1, %d1, %d2; st.shared.u32 [%d1], %t;
        mov.u32 %r1, dynamic; mad.lo.u32 %r2, %t, 4, %r1; st.shared.u32 [%r2], 1000;
        bar.sync 0;
        xor.b32 %r3, %t, 31; mul.wide.u32 %d3, %r3, 4; mov.u64 %d4, fixed; cvta.shared.u64 %d4, %d4;
        add.u64 %d4, %d4, %d3; ld.u32 %r4, [%d4]; ld.shared.u32 %r5, [dynamic+8];
        add.u32 %r4, %r4, %r5; add.u32 %r4, %r4, %r1; st.global.u32 [%out], %r4; ret;"""
    got = results(body, before=before, dynamic_shared=128, optimise=optimise)
    assert np.array_equal(got, (31 - T) + 1000 + 128)


@BOTH
def test_local_memory_and_its_generic_window(optimise: bool) -> None:
    body = """.local .align 8 .b8 pad[8]; .local .u32 mine[4];
        st.local.u32 [mine+8], %t; mov.u64 %d1, mine; cvta.local.u64 %d2, %d1; ld.u32 %r1, [%d2+8];
        isspacep.local %p1, %d2; selp.u32 %r2, 100, 0, %p1; add.u32 %r1, %r1, %r2;
        st.global.u32 [%out], %r1; ret;"""
    assert np.array_equal(results(body, optimise=optimise), T + 100)


@BOTH
def test_generic_access_to_several_spaces_at_once(optimise: bool) -> None:
    before = ".shared .u32 s[32];"
    body = """mul.wide.u32 %d1, %t, 4; mov.u64 %d2, s; add.u64 %d2, %d2, %d1; st.shared.u32 [%d2], 7;
        cvta.shared.u64 %d2, %d2; and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0;
        selp.b64 %d3, %d2, %out, %p1; st.u32 [%d3], %t; ld.u32 %r2, [%d3]; st.global.u32 [%out], %r2; ret;"""
    assert np.array_equal(results(body, before=before, optimise=optimise), T)


@BOTH
def test_array_elements(optimise: bool) -> None:
    before = ".shared .u32 s[8];"
    body = """mov.u32 %r1, 1; st.shared.u32 s[2], 5; mov.u32 %r2, s[2]; mov.u32 %r3, s+4;
        ld.shared.u32 %r4, s[%r1+1]; add.u32 %r5, %r2, %r3; add.u32 %r5, %r5, %r4; st.global.u32 [%out], %r5; ret;"""
    assert set(results(body, before=before, optimise=optimise)) == {8 + 4 + 5}


@BOTH
def test_atomics_on_one_address_are_ordered_by_thread(optimise: bool) -> None:
    body = "atom.global.add.u32 %r1, [%in], 1; st.global.u32 [%out], %r1; ret;"
    assert np.array_equal(results(body, inputs=np.zeros(4, np.uint32), optimise=optimise), T)


@BOTH
@pytest.mark.parametrize(
    ("operation", "start", "expected"),
    [
        ("add.u32", 5, 5 + 496), ("max.s32", -9, 31), ("min.s32", -9, -9), ("or.b32", 64, 95), ("xor.b32", 1, 1),
        ("exch.b32", 3, 31), ("inc.u32", 0, 11),
    ],
)  # fmt: skip
def test_reductions_in_shared_memory(operation: str, start: int, expected: int, optimise: bool) -> None:
    value = "20" if operation.startswith("inc") else "%t"
    family, target = ("atom", "%r9, ") if "exch" in operation or "inc" in operation else ("red", "")
    body = f"""setp.eq.u32 %p1, %t, 0; @%p1 st.shared.u32 [s], {start}; bar.sync 0;
        {family}.shared.{operation} {target}[s], {value}; bar.sync 0; ld.shared.u32 %r1, [s];
        st.global.u32 [%out], %r1; ret;"""
    got = results(body, before=".shared .u32 s;", optimise=optimise).view(np.int32)
    assert set(got) == {expected}


def test_compare_and_swap_of_several_addresses() -> None:
    body = """and.b32 %r1, %t, 3; mul.wide.u32 %d1, %r1, 8; add.u64 %d1, %d1, %in; cvt.u64.u32 %d2, %t;
        atom.global.cas.b64 %d3, [%d1], 0, %d2; cvt.u32.u64 %r2, %d3; st.global.u32 [%out], %r2; ret;"""
    got = results(body, inputs=np.zeros(4, np.uint64))
    first = {1: 1, 2: 2, 3: 3}
    # Thread 0 swaps 0 for 0, so thread 4 finds 0 as well.
    assert got.tolist() == [0, 0, 0, 0, 0, 1, 2, 3] + [4 if t % 4 == 0 else first[t % 4] for t in range(8, 32)]


def trap_of(body: str, **options: object) -> Trap:
    with pytest.raises(Trap) as caught:
        results(body, **options)  # type: ignore[arg-type]
    return caught.value


@BOTH
def test_out_of_bounds_names_the_thread(optimise: bool) -> None:
    trap = trap_of(
        """setp.lt.u32 %p1, %t, 40; @%p1 bra OK;
        mov.u64 %d1, 64; st.global.u32 [%d1], %t;
        OK: ret;""",
        count=64, optimise=optimise,
    )  # fmt: skip
    assert trap.thread == (40, 0, 0) and trap.cta == (0, 0, 0) and trap.kernel == "k"
    assert "global write of 4 bytes at 0x40 is out of bounds" in trap.reason
    assert trap.text.startswith("st.global.u32")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("ld.global.u32 %r1, [%in+2];", "is not aligned to 4 bytes"),
        ("ld.global.v2.u32 {%r1, %r2}, [%in+4];", "is not aligned to 8 bytes"),
        ("mov.u32 %r1, 4096; ld.shared.u32 %r2, [%r1];", "shared read of 4 bytes at 0x1000 is out of bounds"),
        ("mov.u64 %d1, 1048576; st.local.u32 [%d1], 0;", "local write of 4 bytes at 0x100000 is out of bounds"),
        ("ld.global.u64 %d1, [%in+4194296];", "global read of 8 bytes"),
        ("mov.u64 %d1, -8; atom.global.add.u32 %r1, [%d1], 1;", "out of bounds"),
        ("trap;", "trap instruction"),
    ],
)
def test_traps(body: str, reason: str) -> None:
    trap = trap_of(body + " ret;")
    assert reason in trap.reason and trap.kind == "trap" and trap.where is not None


def test_guarded_off_lanes_do_not_trap() -> None:
    body = """setp.ne.u32 %p1, %t, %t; mov.u64 %d1, 8; @%p1 ld.global.u32 %r1, [%d1]; @!%p1 mov.u32 %r1, 3;
        st.global.u32 [%out], %r1; ret;"""
    assert set(results(body)) == {3}


@BOTH
def test_parameters_of_every_size(optimise: bool) -> None:
    text = """.visible .entry k(.param .u8 a, .param .u16 b, .param .u64 out, .param .align 8 .b8 s[12],
        .param .f32 f) {
        .reg .u32 %r<8>; .reg .u64 %d<4>; .reg .f32 %f1; .reg .b16 %h1;
        ld.param.s8 %r1, [a]; ld.param.u16 %h1, [b]; cvt.u32.u16 %r2, %h1; ld.param.u64 %d1, [out];
        ld.param.u32 %r3, [s+8]; mov.b64 %d2, s; ld.param.u32 %r4, [%d2+4]; ld.param.v2.u32 {%r5, %r6}, [s];
        ld.param.f32 %f1, [f];
        st.global.v4.u32 [%d1], {%r1, %r2, %r3, %r4}; st.global.v2.u32 [%d1+16], {%r5, %r6};
        st.global.f32 [%d1+24], %f1; ret; }"""
    memory = Memory()
    out = memory.put(np.zeros(8, np.uint32))
    structure = np.array([11, 22, 33], np.uint32).tobytes()
    run(text, memory, [0xFE, 0xABCD, out, structure, np.float32(1.5).tobytes()], optimise=optimise)
    got = memory.get(out, np.uint32, 8)
    assert got.tolist() == [0xFFFFFFFE, 0xABCD, 33, 22, 11, 22, 0x3FC00000, 0]


@BOTH
def test_generic_addresses_of_parameters_and_constants(optimise: bool) -> None:
    text = """.const .u32 table[4] = {1, 2, 3, 4};
        .visible .entry k(.param .u64 out, .param .align 4 .b8 s[8]) {
        .reg .u32 %r<6>; .reg .u64 %d<4>; .reg .pred %p<3>;
        mov.b64 %d1, s; cvta.param.u64 %d1, %d1; ld.u32 %r1, [%d1+4];
        ld.const.u32 %r2, [table+8]; mov.u64 %d2, table; cvta.const.u64 %d2, %d2; ld.u32 %r3, [%d2+12];
        isspacep.param %p1, %d1; selp.u32 %r4, 1, 0, %p1; isspacep.shared %p2, %d1; selp.u32 %r5, 1, 0, %p2;
        ld.param.u64 %d3, [out]; st.global.v4.u32 [%d3], {%r1, %r2, %r3, %r4}; st.global.u32 [%d3+16], %r5; ret; }"""
    memory = Memory()
    table = memory.put(np.array([1, 2, 3, 4], np.uint32))
    out = memory.put(np.zeros(5, np.uint32))
    run(text, memory, [out, np.array([7, 8], np.uint32).tobytes()], globals_at=table, optimise=optimise)
    assert memory.get(out, np.uint32, 5).tolist() == [8, 3, 4, 1, 0]


def test_shared_memory_belongs_to_its_cta() -> None:
    text = """.visible .entry k(.param .u64 out) { .shared .u32 s; .reg .u32 %c, %t, %r1; .reg .u64 %d<3>;
        mov.u32 %c, %ctaid.x; mov.u32 %t, %tid.x; red.shared.add.u32 [s], %c; bar.sync 0; ld.shared.u32 %r1, [s];
        ld.param.u64 %d1, [out]; mul.wide.u32 %d2, %c, 4; add.u64 %d1, %d1, %d2; st.global.u32 [%d1], %r1; ret; }"""
    memory = Memory()
    out = memory.put(np.zeros(6, np.uint32))
    launch = launch_of(text, memory, [out], grid=(6, 1, 1), block=(64, 1, 1), resident=6)
    reference.run(launch)
    assert memory.get(out, np.uint32, 6).tolist() == [64 * cta for cta in range(6)]


def test_open_host_memory() -> None:
    memory = Memory()
    array = np.arange(64, dtype=np.uint32)
    address = array.ctypes.data
    memory.space.open_host = True
    memory.space.readable = lambda at, size, write: address <= at and at + size <= address + array.nbytes
    text = """.visible .entry k(.param .u64 p) { .reg .u32 %t, %r1; .reg .u64 %d<3>; mov.u32 %t, %tid.x;
        ld.param.u64 %d1, [p]; mul.wide.u32 %d2, %t, 4; add.u64 %d1, %d1, %d2; ld.u32 %r1, [%d1];
        add.u32 %r1, %r1, 100; st.u32 [%d1], %r1; ret; }"""
    run(text, memory, [address])
    assert array[:32].tolist() == list(range(100, 132)) and array[32] == 32
    with pytest.raises(Trap, match="out of bounds"):
        run(text, memory, [address + 4 * 48])


def test_base_is_where_the_harness_says() -> None:
    assert Memory().put(np.zeros(1)) == BASE
