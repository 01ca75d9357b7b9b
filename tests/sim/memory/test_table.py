"""Loads and stores of every space, type, vector, order and cache operator (9.7.9.8 to 9.7.9.11), against NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import ptxtools
from tests.rows import rows
from tests.work import HANG

ENGINES = pytest.mark.parametrize("engine", ["native", "reference"])
Array = np.ndarray[Any, Any]
THREADS = 32
TYPES = ("b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64")
SPACES = ("global", "generic", "shared", "shared::cta", "shared::cluster", "local", "generic shared", "generic local")
READ_ONLY = ("const", "param", "generic const", "generic param", "nc", "ldu")
#: What says nothing of values, one after another: orders where they are allowed, and cache operators.
STRONG = (".volatile", ".relaxed.cta", ".relaxed.sys", "", ".weak")
LOADS = itertools.cycle((*STRONG, ".acquire.gpu", ".relaxed.cluster"))
STORES = itertools.cycle((*STRONG, ".release.gpu", ".relaxed.cluster"))
CACHED = {
    "ld": itertools.cycle((".ca", ".cg", ".cs", ".lu", ".cv", ".L1::evict_first", ".L1::no_allocate", ".L2::128B")),
    "st": itertools.cycle((".wb", ".cg", ".cs", ".wt", ".L1::evict_last", ".L1::no_allocate")),
}


def bits_of(type_: str) -> int:
    return int(type_[1:])


def vectors(type_: str, space: str) -> list[int]:
    """Up to 128 bits, in global memory 256 where elements have 32 bits and more."""
    wide = 256 if space in ("global", "generic", "nc") and bits_of(type_) >= 32 else 128
    return [n for n in (1, 2, 4, 8) if n * bits_of(type_) <= wide and (n < 8 or bits_of(type_) == 32)]


def order(name: str, space: str) -> str:
    if space in ("global", "generic"):
        return next({"ld": LOADS, "st": STORES}[name]) if next(TURN) else next(CACHED[name])
    return next({"ld": LOADS, "st": STORES}[name]) if "shared" in space else ""


TURN = itertools.cycle((True, False))
WINDOWS = {
    "global": "%in", "generic": "%in", "nc": "%in", "ldu": "%in", "shared": "%s", "shared::cta": "%s",
    "shared::cluster": "%w", "local": "%l", "generic shared": "%gs", "generic local": "%gl", "const": "%c",
    "generic const": "%gc", "param": "%p", "generic param": "%gp",
}  # fmt: skip


def run(lines: str, size: int, data: Array, engines: Sequence[str] = ("native", "reference")) -> Array:
    """Thread t finds `size` bytes of data (at most 32) at each window's register, and leaves as many at %out: the same
    on all engines."""
    text = f""".version 8.8
    .target sm_100
    .address_size 64
    .visible .const .align 32 .b8 constants[1024];
    .visible .entry k(.param .u64 in, .param .u64 out, .param .align 32 .b8 whole[1024]) {{
    .reg .pred %q; .reg .b16 %h<8>; .reg .b32 %r<8>, %t, %i, %s, %w, %l; .reg .b64 %d<8>, %in, %out, %o, %a, %c, %p;
    .reg .b64 %gs, %gl, %gc, %gp; .reg .b16 %move;
    .shared .align 32 .b8 room[1024]; .local .align 32 .b8 own[32];
    ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %t, %tid.x; mul.lo.u32 %i, %t, {size};
    cvt.u64.u32 %o, %i; add.u64 %in, %in, %o; add.u64 %out, %out, %o;
    mov.u32 %s, room; add.u32 %s, %s, %i; mov.u32 %l, own; mov.u32 %r0, %cluster_ctarank;
    mapa.shared::cluster.u32 %w, %s, %r0; mov.u64 %c, constants; add.u64 %c, %c, %o;
    mov.b64 %p, whole; add.u64 %p, %p, %o;
    cvt.u64.u32 %gs, %s; cvta.shared.u64 %gs, %gs; cvt.u64.u32 %gl, %l; cvta.local.u64 %gl, %gl;
    cvta.const.u64 %gc, %c; cvta.param.u64 %gp, %p;
    {
        "".join(
            f"ld.global.u8 %move, [%in+{b}]; st.shared.u8 [%s+{b}], %move; st.local.u8 [%l+{b}], %move;"
            for b in range(size)
        )
    }
    {lines}
    ret; }}"""
    module = ptxtools.loads(text)
    padded = np.zeros(1024, np.uint8)
    padded[: len(data)] = data
    found = []
    for engine in engines:
        device = ptxtools.Device("sm_100", engine=engine)
        device.write(device.global_(module, "constants").address, padded)
        out = np.zeros(THREADS * size, np.uint8)
        device.launch(module["k"], 1, THREADS, [data, out, padded.tobytes()], timeout=HANG)
        found.append(out)
    np.testing.assert_array_equal(found[-1], found[0])
    return found[0]


def registers(bits: int, count: int) -> tuple[str, list[str]]:
    letter = {8: "h", 16: "h", 32: "r", 64: "d"}[bits]
    names = [f"%{letter}{i}" for i in range(count)]
    return (names[0] if count == 1 else "{" + ", ".join(names) + "}"), names


def combinations(spaces: tuple[str, ...]) -> list[tuple[str, str]]:
    """All types in the main spaces, one of each width in the others."""
    few = ("s8", "u16", "f32", "b64")
    return [(t, s) for s in spaces for t in (TYPES if s in ("global", "shared", "local") else few)]


@rows(("type_", "space"), combinations((*SPACES, *READ_ONLY)), share=8)
def test_loads(type_: str, space: str) -> None:
    bits = bits_of(type_)
    for count in vectors(type_, space):
        size = bits * count // 8
        data = np.random.default_rng(count).integers(0, 256, THREADS * size, np.uint8)
        listed, names = registers(bits, count)
        where = "" if space.startswith("generic") else f".{space}"
        vec = f".v{count}" if count > 1 else ""
        load = {"nc": f"ld.global.nc{vec}", "ldu": f"ldu.global{vec}"}.get(
            space, f"ld{_placed(order('ld', space), where)}{vec}"
        )
        if space == "ldu" and size > 16:
            continue
        lines = f"{load}.{type_} {listed}, [{WINDOWS[space]}];\n" + "".join(
            f"st.global.b{bits} [%out+{bits // 8 * i}], {name};\n" for i, name in enumerate(names)
        )
        np.testing.assert_array_equal(run(lines, size, data), data)


def _placed(mods: str, where: str) -> str:
    """Orders stand before the space, cache operators behind it."""
    return f"{where}{mods}" if mods.startswith((".c", ".l", ".w", ".L")) and mods != ".weak" else f"{mods}{where}"


@rows(("type_", "space"), combinations(SPACES), share=8)
def test_stores(type_: str, space: str) -> None:
    bits = bits_of(type_)
    for count in vectors(type_, space):
        size = bits * count // 8
        data = np.random.default_rng(count).integers(0, 256, THREADS * size, np.uint8)
        listed, names = registers(bits, count)
        where = "" if space.startswith("generic") else f".{space}"
        vec = f".v{count}" if count > 1 else ""
        place = "%out" if space in ("global", "generic") else WINDOWS[space]
        clear = "" if place == "%out" else "".join(f"st{where}.b8 [{place}+{b}], 0;" for b in range(size))
        lines = "".join(f"ld.global.b{bits} {name}, [%in+{bits // 8 * i}];\n" for i, name in enumerate(names))
        lines += f"{clear} st{_placed(order('st', space), where)}{vec}.{type_} [{place}], {listed};\n"
        if place != "%out":
            lines += "".join(f"ld{where}.b8 %move, [{place}+{b}]; st.global.b8 [%out+{b}], %move;" for b in range(size))
        np.testing.assert_array_equal(run(lines, size, data), data)


@pytest.mark.parametrize("space", ["global", "shared", "local", "const", "param", "generic"])
def test_128_bits(space: str) -> None:
    data = np.random.default_rng(1).integers(0, 256, THREADS * 16, np.uint8)
    where = "" if space == "generic" else f".{space}"
    lines = f""".reg .b128 %x; ld{where}.b128 %x, [{WINDOWS[space]}]; mov.b128 {{%d0, %d1}}, %x;
    mov.b128 %x, {{%d1, %d0}}; st.global.b128 [%out], %x;"""
    wanted = data.view(np.uint64).reshape(-1, 2)[:, ::-1].copy().view(np.uint8).reshape(-1)
    np.testing.assert_array_equal(run(lines, 16, data), wanted)


@rows("wide", ["b32", "b64"], share=3)
@rows("type_", ["u8", "s8", "u16", "s16", "u32", "s32"])
def test_narrow_loads_into_wide_registers(type_: str, wide: str) -> None:
    """Signed ones keep their sign, the others are filled with zeros (table of 9.4.1); stores take the low bits."""
    if type_.endswith("32") and wide == "b32":
        return
    name = "%r1" if wide == "b32" else "%d1"
    size = bits_of(type_) // 8
    data = np.random.default_rng(2).integers(0, 256, THREADS * 8, np.uint8)
    out = run(f"ld.global.{type_} {name}, [%in]; st.global.{wide} [%out], {name};", 8, data)
    elements = data.reshape(THREADS, 8)[:, :size].copy().view({"u": "u", "s": "i"}[type_[0]] + str(size))[:, 0]
    kind = "i" if type_[0] == "s" else "u"
    wanted = elements.astype(f"{kind}{bits_of(wide) // 8}")
    assert (out.reshape(THREADS, 8)[:, : bits_of(wide) // 8].copy().view(wanted.dtype)[:, 0] == wanted).all()
    out = run(f"ld.global.{wide} {name}, [%in]; st.global.{type_} [%out], {name};", 8, data)
    np.testing.assert_array_equal(out.reshape(THREADS, 8)[:, :size], data.reshape(THREADS, 8)[:, :size])


@ENGINES
@pytest.mark.parametrize(("space", "size"), [("global", 32), ("shared", 16), ("local", 16), ("generic", 8)])
def test_vectors_are_aligned_as_a_whole(space: str, size: int, engine: str) -> None:
    count = size // 4
    listed = "{" + ", ".join(f"%r{i}" for i in range(count)) + "}"
    where = "" if space == "generic" else f".{space}"
    with pytest.raises(ptxtools.Trap, match=f"not aligned to {size}"):
        run(f"ld{where}.v{count}.b32 {listed}, [{WINDOWS[space]}+4];", 32, np.zeros(THREADS * 32, np.uint8), [engine])
    if space == "global":
        with pytest.raises(ptxtools.Trap, match=f"not aligned to {size}"):
            run("st.global.v8.b32 [%out+4], {_, 1, _, _, _, _, _, _};", 32, np.zeros(THREADS * 32, np.uint8), [engine])


@rows("space", [".global", ""], share=3)
@rows(
    ("type_", "written"),
    [("b32", 0b10011101), ("f32", 0b00000100), ("u32", 0b11110000), ("b64", 0b1100), ("u64", 0b0110), ("f64", 0b0001)],
)
def test_elements_left_out_keep_their_bytes(type_: str, written: int, space: str) -> None:
    """9.7.9.11: of a store of 256 bits `_` stands for what is not written."""
    width = bits_of(type_) // 8
    count = 32 // width
    _, names = registers(8 * width, count)
    kept = [names[i] if written >> i & 1 else "_" for i in range(count)]
    lines = "".join(f"ld.global.b{8 * width} {name}, [%in+{width * i}];\n" for i, name in enumerate(names))
    fill = "".join(f"st.global.b32 [%out+{at}], -1;" for at in range(0, 32, 4))
    data = np.random.default_rng(7).integers(0, 256, THREADS * 32, np.uint8)
    out = run(f"{lines} {fill} st{space}.v{count}.{type_} [%out], {{{', '.join(kept)}}};", 32, data)
    stays = np.repeat([not written >> i & 1 for i in range(count)], width)
    np.testing.assert_array_equal(out.reshape(THREADS, 32), np.where(stays, 255, data.reshape(THREADS, 32)))


def test_hints_change_no_values() -> None:
    """9.7.9.15 to 9.7.9.18: policies, prefetches, priorities; discard leaves values that nobody may rely on."""
    lines = """.reg .b64 %f; createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %f, 0.5;
    createpolicy.range.L2::evict_last.L2::evict_first.b64 %d1, [%in], 128, 256;
    createpolicy.cvt.L2.b64 %d2, 0x10F0000000000000;
    prefetch.global.L1 [%in]; prefetch.global.L2::evict_last [%in]; prefetchu.L1 [%gc]; prefetch.L2 [%in];
    setp.eq.u32 %q, %t, 0; @%q applypriority.global.L2::evict_normal [%in], 128;
    ld.global.L2::cache_hint.b64 %d3, [%in], %f; st.global.L2::cache_hint.b64 [%out], %d3, %f;
    ld.global.L1::evict_last.L2::cache_hint.L2::256B.b64 %d3, [%in], %d1; st.global.L1::evict_first.b64 [%out], %d3;"""
    data = np.random.default_rng(3).integers(0, 256, THREADS * 8, np.uint8)
    np.testing.assert_array_equal(run(lines, 8, data), data)
