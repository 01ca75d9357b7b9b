"""Loads and stores: every space, width and shape of addresses, whole and partial warps, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.rows import rows

from .harness import Memory, body_kernel, results, run

RNG = np.random.default_rng(5)
#: Element number of each lane, by the shape that the native code tells apart.
SHAPES = {
    "consecutive": np.arange(32),
    "uniform": np.full(32, 9),
    "two rows": np.arange(32) % 16 + np.arange(32) // 16 * 40,
    "two points": np.arange(32) // 16 * 7,
    "strided": np.arange(32) * 3,
    "random": RNG.permutation(64)[:32],
}
MASKS = {"whole": "setp.lt.u32 %p1, %t, 99;", "part": "and.b32 %r9, %t, 5; setp.eq.u32 %p1, %r9, 4;",
         "late": "setp.ge.u32 %p1, %t, 13;"}  # fmt: skip
PICKED = {"whole": np.ones(32, bool), "part": (np.arange(32) & 5) == 4, "late": np.arange(32) >= 13}
TYPES = {"u8": np.uint8, "s8": np.int8, "u16": np.uint16, "s16": np.int16, "b32": np.uint32, "u64": np.uint64}


def register(t: str) -> tuple[str, str]:
    """A register that takes the type, and the instruction's type to store it with at 64 bits."""
    return ("%d4", "64") if "64" in t else ("%r4", "32") if t in ("b32", "s8", "u8") else ("%h4", "16")


@rows("space", ["global", "generic", "shared", "shared64", "local", "const"], share=3)
@rows("t", TYPES)
@rows("mask", MASKS)
def test_loads(space, t, mask):
    """All shapes of addresses in one kernel: the loaded values of each, extended to 64 bits."""
    dtype = np.dtype(TYPES[t])
    data = RNG.integers(0, 1 << 8 * dtype.itemsize, 128, np.uint64).astype(f"u{dtype.itemsize}").view(dtype)
    table = np.concatenate(list(SHAPES.values())).astype(np.uint32)
    reg, width = register(t)
    fill, base, load = _space_code(space, dtype.itemsize)
    steps = []
    for number in range(len(SHAPES)):
        steps.append(
            f"""mul.wide.u32 %d2, %t, 4; add.u64 %d2, %d2, %in; ld.global.u32 %r5, [%d2+{1024 + 128 * number}];
            mov.b64 %d4, 0; mov.b32 %r4, 0; mov.b16 %h4, 0;
            mul.wide.u32 %d3, %r5, {dtype.itemsize}; add.u64 %d3, %d3, {base}; cvt.u32.u64 %r6, %d3;
            @%p1 ld.{load}{t} {reg}, [{"%r6" if space == "shared" else "%d3"}];
            cvt.{"s" if t[0] == "s" else "u"}64.{"s" if t[0] == "s" else "u"}{width} %d5, {reg};
            st.global.u64 [%out+{256 * number}], %d5;"""
        )
    inputs = np.zeros(1024 + table.nbytes, np.uint8)
    inputs[: data.nbytes] = data.view(np.uint8)
    inputs[1024:] = table.view(np.uint8)
    body = f"{MASKS[mask]} {fill} {''.join(steps)} ret;"
    got = results(body, 32 * len(SHAPES), dtype=np.uint64, inputs=inputs, block=(32, 1, 1)).reshape(-1, 32)
    for row, elements in zip(got, SHAPES.values(), strict=True):
        wide = data[elements].astype(np.int64 if t[0] == "s" else np.uint64).view(np.uint64)
        assert np.array_equal(row, np.where(PICKED[mask], wide, 0))


def _space_code(space: str, size: int) -> tuple[str, str, str]:
    """Code that makes the space hold the input; the base of its addresses; the load's modifiers."""
    bits = f"b{8 * size}"
    reg = {8: "%d7", 4: "%r7"}.get(size, "%h7")
    if space in ("global", "generic", "const"):  # the constant bank is part of device memory
        name = "" if space == "generic" else f"{space}."
        return "", "%in", name
    where = "local" if space == "local" else "shared"
    load, store = f"ld.global.{bits}", f"st.{where}.{bits}"
    copy = f"""mov.u32 %r8, 0; COPY: mul.wide.u32 %d6, %r8, {size}; add.u64 %d8, %d6, %in; {load} {reg}, [%d8];
        add.u64 %d6, %d6, %d9; {store} [%d6], {reg}; add.u32 %r8, %r8, 1; setp.lt.u32 %p2, %r8, 128; @%p2 bra COPY;"""
    return f".{where} .align 16 .b8 area[1024]; mov.u64 %d9, area; {copy} bar.sync 0;", "%d9", f"{where}."


@rows("space", ["global", "shared", "local", "generic"])
@rows("t", ["u8", "u16", "b32", "u64"])
@rows("mask", ["whole", "part"])
@rows("shape", ["consecutive", "two rows", "random"])
def test_stores(space, t, mask, shape):
    dtype = np.dtype(TYPES[t])
    elements = SHAPES[shape]
    reg, _ = register(t)
    convert = "" if t in ("b32", "u8") else f"cvt.u{8 * dtype.itemsize}.u32 {reg}, %r4;"
    name = "" if space == "generic" else f"{space}."
    declared = f".{space} .align 16 .b8 area[1024];" if space in ("shared", "local") else ""
    base = "mov.u64 %d1, area;" if declared else "mov.u64 %d1, %in;"
    clear = """mov.u32 %r8, 0; ZERO: mul.wide.u32 %d6, %r8, 8; add.u64 %d6, %d6, %d1; mov.u64 %d7, 0;
        SPACE [%d6], %d7; add.u32 %r8, %r8, 1; setp.lt.u32 %p2, %r8, 128; @%p2 bra ZERO;"""
    clear = clear.replace("SPACE", f"st.{name}u64") if declared else ""
    back = f"""mov.u32 %r8, 0; BACK: mul.wide.u32 %d6, %r8, {dtype.itemsize}; add.u64 %d8, %d6, %d1;
        ld.{name}{t} {reg}, [%d8]; add.u64 %d8, %d6, %in; st.global.{t} [%d8+2048], {reg};
        add.u32 %r8, %r8, 1; setp.lt.u32 %p2, %r8, 128; @%p2 bra BACK;"""
    if space == "local":  # each lane reads back its own: add up over the lanes
        back = f"""mul.wide.u32 %d6, %r5, {dtype.itemsize}; add.u64 %d8, %d6, %d1; ld.local.{t} {reg}, [%d8];
            add.u64 %d8, %d6, %in; @%p1 st.global.{t} [%d8+2048], {reg};"""
    elif not declared:
        back = ""
    body = f"""{declared} {base} {clear} {MASKS[mask]}
        mul.wide.u32 %d2, %t, 4; add.u64 %d2, %d2, %in; ld.global.u32 %r5, [%d2+4096];
        mul.lo.u32 %r4, %t, 37; add.u32 %r4, %r4, 1; and.b32 %r4, %r4, 255; {convert}
        mul.wide.u32 %d3, %r5, {dtype.itemsize}; add.u64 %d3, %d3, %d1; @%p1 st.{name}{t} [%d3], {reg};
        bar.sync 0; {back} ret;"""
    inputs = np.zeros(4096 + 128, np.uint8)
    inputs[4096:] = elements.astype(np.uint32).view(np.uint8)
    memory = Memory()
    source = memory.put(inputs)
    run(body_kernel(body, 4), memory, [source, source])
    got = memory.get(source + (2048 if declared else 0), dtype, 128)
    expected = np.zeros(128, dtype)
    picked = PICKED[mask]
    values = ((np.arange(32) * 37 + 1) & 255).astype(dtype)
    expected[elements[picked]] = values[picked]
    assert np.array_equal(got, expected)


VECTORS = [
    ("global", "v8.b32"),  # 256 bits: global memory only (9.7.9.8)
    *[(space, kind) for space in ("global", "shared", "local", "generic")
      for kind in ("v2.b32", "v4.b32", "v2.b64", "v4.b16", "v2.b8")],
]  # fmt: skip


@rows("space, kind", VECTORS, share=3)
@rows("shape", ["consecutive", "uniform", "random"])
def test_vectors(space, kind, shape):
    """A vector written at one place of a space, and read back."""
    count, bits = int(kind[1]), int(kind.split("b")[1])
    prefix = {64: "%d", 32: "%r"}.get(bits, "%h")
    names = [f"{prefix}{10 + i}" if bits >= 32 else f"{prefix}{i}" for i in range(count)]
    size = count * bits // 8
    declared = f".{space} .align 32 .b8 area[4096];" if space in ("shared", "local") else ""
    base = "mov.u64 %d1, area;" if declared else "add.u64 %d1, %in, 4096;"
    name = "" if space == "generic" else f"{space}."
    group = "{" + ", ".join(names) + "}"
    body = f"""{declared} {base} mul.wide.u32 %d2, %t, 4; add.u64 %d2, %d2, %in; ld.global.u32 %r5, [%d2+8192];
        mul.wide.u32 %d2, %r5, {size}; add.u64 %d3, %d2, %d1; add.u64 %d4, %d2, %in;
        ld.global.{kind} {group}, [%d4]; st.{name}{kind} [%d3], {group}; bar.sync 0;
        ld.{name}{kind} {group}, [%d3]; ld.param.u64 %out, [out]; mul.wide.u32 %d2, %t, {size}; add.u64 %d4, %out, %d2;
        st.global.{kind} [%d4], {group}; ret;"""
    data = RNG.integers(0, 256, 2048, np.uint8)
    inputs = np.zeros(8192 + 128, np.uint8)
    inputs[:2048] = data
    inputs[8192:] = SHAPES[shape].astype(np.uint32).view(np.uint8)
    memory = Memory()
    source, out = memory.put(inputs), memory.put(np.zeros(32 * size, np.uint8))
    run(body_kernel(body, 4).replace(".target sm_90", ".target sm_100"), memory, [out, source])
    expected = data.reshape(-1, size)[SHAPES[shape]] if 2048 % size == 0 else None
    assert expected is not None
    assert np.array_equal(memory.get(out, np.uint8, 32 * size).reshape(32, size), expected)


def test_128_bit_registers():
    body = """add.u64 %d1, %in, %w; add.u64 %d1, %d1, %w; ld.global.b128 %q1, [%d1]; mov.b128 {%d2, %d3}, %q1;
        add.u64 %d2, %d2, 1; mov.b128 %q2, {%d2, %d3}; add.u64 %out, %out, %w; st.global.b128 [%out], %q2; ret;"""
    data = RNG.integers(0, 1 << 62, 64, np.uint64)
    got = results(body, 64, dtype=np.uint64, inputs=data, block=(32, 1, 1))
    assert np.array_equal(got, data + np.tile(np.array([1, 0], np.uint64), 32))


def test_a_warp_in_several_windows_at_once():
    body = """.shared .u32 s[32]; .local .u32 l[4]; mul.wide.u32 %d1, %t, 4; mov.u64 %d2, s; add.u64 %d3, %d2, %d1;
        add.u32 %r1, %t, 100; st.shared.u32 [%d3], %r1; mov.u64 %d4, l; add.u32 %r1, %t, 200; st.local.u32 [%d4+8], %r1;
        cvta.shared.u64 %d3, %d3; cvta.local.u64 %d4, %d4; add.u64 %d4, %d4, 8; add.u64 %d5, %in, %d1;
        rem.u32 %r2, %t, 3; setp.eq.u32 %p1, %r2, 0; setp.eq.u32 %p2, %r2, 1; selp.b64 %d6, %d3, %d4, %p1;
        selp.b64 %d6, %d5, %d6, %p2; ld.u32 %r3, [%d6]; add.u32 %r3, %r3, 1000; st.u32 [%d6], %r3; ld.u32 %r4, [%d6];
        st.global.u32 [%out], %r4; ret;"""
    lanes = np.arange(32)
    kinds = np.choose(lanes % 3, [lanes + 100, lanes + 300, lanes + 200])
    got = results(body, inputs=(lanes + 300).astype(np.uint32))
    assert np.array_equal(got, kinds + 1000)


def test_neighbours_of_a_store_stay_as_they_are():
    """Lanes that do not run, and bytes around, keep their values."""
    body = "and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0; @%p1 st.global.u8 [%out], %t; ret;"
    memory = Memory()
    out = memory.put(np.full(64, 0xEE, np.uint8))
    run(body_kernel(body, 1), memory, [out + 16, 0])
    expected = np.full(64, 0xEE, np.uint8)
    expected[16:48:2] = np.arange(0, 32, 2)
    assert np.array_equal(memory.get(out, np.uint8, 64), expected)


def test_host_memory_opened_to_a_kernel():
    """`ptx_run`: addresses of this process, asked for once and then remembered."""
    from dataclasses import replace

    from ptxtools import native
    from ptxtools.diagnostics import Trap

    from .harness import launch_of

    data, out = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    asked = []

    def readable(address: int, size: int, write: bool) -> bool:
        asked.append((address, size, write))
        return any(a.ctypes.data <= address and address + size <= a.ctypes.data + a.nbytes for a in (data, out))

    body = "add.u64 %d1, %in, %w; ld.global.u32 %r1, [%d1]; add.u32 %r1, %r1, 5; st.global.u32 [%out], %r1; ret;"
    memory = Memory()
    launch = launch_of(body_kernel(body, 4), memory, [out.ctypes.data, data.ctypes.data], block=(64, 1, 1))
    launch.memory = replace(launch.memory, open_host=True, readable=readable)
    native.run(launch)
    assert np.array_equal(out, data + 5) and asked
    launch.grid = (2, 1, 1)
    with pytest.raises(Trap, match="out of bounds"):
        native.run(launch)
