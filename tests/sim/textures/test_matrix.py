"""Each geometry x filter x address mode x format on both engines, against the formulas in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools.machine import events
from tests.rows import rows

from . import formulas
from .kernels import fetch, fetcher

RANDOM = np.random.default_rng(17)
ENGINES = ("native", "reference")
MODES = ("clamp", "wrap", "mirror", "border")
#: Axes, size (width first; layers last), and whether a layer comes first.
GEOMETRIES = {"1d": (1, (7,), False), "2d": (2, (9, 6), False), "3d": (3, (5, 4, 3), False),
              "a1d": (1, (7, 3), True), "a2d": (2, (5, 4, 3), True)}  # fmt: skip
BORDER = (0.25, -3.0, 7.5, 2.0)


def rows_of(axes: int, extents: Any, *, normalized: bool, layers: int, count: int = 64) -> Any:
    """Words: a layer (also beyond the last) where there are layers, then coordinates inside, at edges, far outside."""
    places = RANDOM.uniform(-1.5, 2.5, (count, axes))
    places[:6] = np.array([0.0, 1.0, 0.5, -0.25, 37.125, -1000.0])[:, None]
    numbers = (places if normalized else places * extents).astype(np.float32)
    return with_layers(numbers.view(np.uint32), layers)


def with_layers(rows: Any, layers: int) -> Any:
    if not layers:
        return rows
    return np.column_stack([RANDOM.integers(0, layers + 2, len(rows)).astype(np.uint32), rows])


def kernel(geometry: str, whole: bool, mods: str = "", tail: str = "", more: int = 0) -> Any:
    """A fetch with coordinates in the first words of a row, and `more` words for `tail`."""
    words = GEOMETRIES[geometry][0] + GEOMETRIES[geometry][2]
    names = [f"%c{n}" for n in range(words)]
    padded = names + [names[-1]] * ({1: 1, 2: 2, 3: 4}[words] - words)
    ctype = "s32" if whole else "f32"
    operands = f"[%t, {{{', '.join(padded)}}}]{tail}"
    return fetcher(f"tex{mods}.{geometry}.v4.f32.{ctype}", operands, words + more)


def split(row: Any, layered: bool, layers: int, whole: bool) -> tuple[int, tuple[float, ...]]:
    """Layer and place of a row of words."""
    layer = min(int(row[0]), layers - 1) if layered else 0
    return layer, tuple(map(float, row[int(layered) :].view(np.int32 if whole else np.float32)))


@pytest.mark.parametrize("engine", ENGINES)
@rows("normalized", [False, True], share=4)
@rows("how", ["point", "linear", "whole"])
@rows("mode", MODES)
@rows("geometry", GEOMETRIES)
def test_geometries_filters_and_modes(geometry: str, mode: str, how: str, normalized: bool, engine: str) -> None:
    axes, size, layered = GEOMETRIES[geometry]
    layers = size[-1] if layered else 1
    texels = RANDOM.standard_normal((layers, *size[:axes][::-1], 2)).astype(np.float32)
    modes = (mode, MODES[MODES.index(mode) - 1], "clamp")
    device = ptxtools.Device(engine=engine)
    texture = device.texture(
        device.upload(texels), geometry, type="f32", channels=2, size=size, address=modes, border=BORDER,
        filter="linear" if how == "linear" else "point", normalized=normalized,
    )  # fmt: skip
    if how == "whole":
        rows = with_layers(RANDOM.integers(-20, 20, (64, axes)).astype(np.int32).view(np.uint32), layers * layered)
    else:
        rows = rows_of(axes, size[:axes], normalized=normalized, layers=layers * layered)
    got = fetch(kernel(geometry, how == "whole"), texture, rows, device=device).view(np.float32)
    full = np.concatenate([texels, np.zeros((*texels.shape[:-1], 2), np.float32)], axis=-1)
    full[..., 3] = 1
    for row, result in zip(rows, got, strict=True):
        layer, place = split(row, layered, layers, how == "whole")
        want = formulas.fetch(full[layer], place, linear=how == "linear", modes=modes[:axes], normalized=normalized,
                              border=BORDER, whole=how == "whole")  # fmt: skip
        assert result.tolist() == want.astype(np.float32).tolist(), (row, place)


FORMATS = [
    (type_, read) for type_ in ("u8", "s8", "u16", "s16", "u32", "s32", "f16", "f32") for read in ("element",)
] + [(type_, "normalized_float") for type_ in ("u8", "s8", "u16", "s16")] + [("u8", "srgb")]  # fmt: skip
DTYPES = {"f16": np.float16, "f32": np.float32, **{f"{s}{b}": np.dtype(f"{'i' if s == 's' else 'u'}{b // 8}")
                                                    for s in "us" for b in (8, 16, 32)}}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@rows("channels", [1, 2, 4], share=3)
@rows(("type_", "read"), FORMATS)
def test_formats(type_: str, read: str, channels: int, engine: str) -> None:
    """Each format of texels, point and, where it gives floats, linear."""
    raw = RANDOM.integers(0, 256, (6, 9, channels * np.dtype(DTYPES[type_]).itemsize), np.uint8).view(DTYPES[type_])
    if type_[0] == "f":
        raw = RANDOM.standard_normal(raw.shape).astype(DTYPES[type_])
    floats = type_[0] == "f" or read != "element"
    texels = raw.astype(np.float64)
    if read != "element":
        largest = np.float32(np.iinfo(raw.dtype).max)
        texels = np.maximum(raw.astype(np.float32) / largest, np.float32(-1)).astype(np.float64)
    if read == "srgb":
        texels[..., :3] = np.vectorize(lambda code: float(np.float32(formulas.light(int(code)))))(raw[..., :3])
    device = ptxtools.Device(engine=engine)
    full = np.concatenate([texels, np.broadcast_to([0.0, 0.0, 0.0, 1.0], (6, 9, 4))[..., channels:]], axis=-1)
    for linear in (False, True) if floats else (False,):
        texture = device.texture(
            device.upload(raw), type=type_, channels=channels, size=[9, 6], filter="linear" if linear else "point",
            read="element" if read == "element" else "normalized_float", srgb=read == "srgb",
        )  # fmt: skip
        rows = rows_of(2, (9, 6), normalized=False, layers=0)
        words = fetch(kernel("2d", False), texture, rows, device=device)
        for row, result in zip(rows, words, strict=True):
            place = split(row, False, 1, False)[1]
            want = formulas.fetch(full, place, linear=linear, modes=("clamp", "clamp"), normalized=False)
            if floats:
                assert result.view(np.float32).tolist() == want.astype(np.float32).tolist()
            else:
                assert result.tolist() == want.astype(np.int64).astype(np.uint32).tolist()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("linear", [False, True])
def test_offsets_halves_and_residency(linear: bool, engine: str) -> None:
    """An offset, half-precision results, and `d|p`, together."""
    texels = RANDOM.standard_normal((6, 9, 4)).astype(np.float32)
    device = ptxtools.Device(engine=engine)
    texture = device.texture(device.upload(texels), type="f32", channels=4, size=[9, 6], address=["wrap", "mirror"],
                             normalized=True, filter="linear" if linear else "point")  # fmt: skip
    rows = rows_of(2, (9, 6), normalized=True, layers=0)
    moved = RANDOM.integers(-8, 8, (len(rows), 2)).astype(np.int32)
    module = kernel("2d", False, tail=", {%c2, %c3}", more=2)
    got = fetch(module, texture, np.column_stack([rows, moved.view(np.uint32)]), device=device).view(np.float32)
    pairs = fetch(halves(), texture, rows, device=device)
    for row, offset, result, pair in zip(rows, moved.tolist(), got, pairs, strict=True):
        place = split(row, False, 1, False)[1]
        how = {"linear": linear, "modes": ("wrap", "mirror"), "normalized": True}
        assert result.tolist() == formulas.fetch(texels, place, offsets=offset, **how).astype(np.float32).tolist()
        want = formulas.fetch(texels, place, **how).astype(np.float32).astype(np.float16)
        assert pair[:2].view(np.float16).tolist() == want.tolist()
        assert pair[2] == want.view(np.uint16)[2] and pair[3] == 1


def halves() -> Any:
    """Four halves in two words, a half of .f16, and the predicate."""
    text = """.version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 t, .param .u64 in, .param .u64 out) {
  .reg .b64 %t, %a, %o; .reg .b32 %i, %c<2>, %d<4>; .reg .b16 %h<4>; .reg .pred %p, %q;
  ld.param.u64 %t, [t]; ld.param.u64 %a, [in]; ld.param.u64 %o, [out];
  mov.u32 %i, %tid.x; mad.wide.u32 %a, %i, 8, %a; mad.wide.u32 %o, %i, 16, %o;
  ld.global.v2.b32 {%c0, %c1}, [%a];
  tex.2d.v2.f16x2.f32 {%d0, %d1}|%p, [%t, {%c0, %c1}];
  tex.2d.v4.f16.f32 {%h0, %h1, %h2, %h3}|%q, [%t, {%c0, %c1}];
  cvt.u32.u16 %d2, %h2; and.pred %p, %p, %q; selp.u32 %d3, 1, 0, %p;
  st.global.v4.b32 [%o], {%d0, %d1, %d2, %d3}; ret; }"""
    return ptxtools.loads(text)


def test_special_numbers_and_divergence() -> None:
    """Coordinates that are no numbers or endless, texels that are, lanes that are off, and lanes with two textures."""
    texels = np.array([[np.inf, 1, np.nan, -0.0], [5, 6, 7, 1e38]], np.float32)
    text = """.version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 s, .param .u64 t, .param .u64 in, .param .u64 out) {
  .reg .b64 %s, %t, %a, %o; .reg .b32 %i, %c<2>, %d<4>, %z; .reg .pred %p, %q;
  ld.param.u64 %s, [s]; ld.param.u64 %t, [t]; ld.param.u64 %a, [in]; ld.param.u64 %o, [out];
  mov.u32 %i, %tid.x; mad.wide.u32 %a, %i, 8, %a; mad.wide.u32 %o, %i, 16, %o;
  ld.global.v2.b32 {%c0, %c1}, [%a]; and.b32 %z, %i, 3; setp.eq.u32 %p, %z, 1; setp.ne.u32 %q, %z, 2;
  and.b32 %z, %i, 32; setp.eq.and.u32 %p, %z, 0, %p; selp.b64 %t, %s, %t, %p;
  mov.b32 %d0, 7; mov.b32 %d1, 7; mov.b32 %d2, 7; mov.b32 %d3, 7;
  @%q tex.2d.v4.f32.f32 {%d0, %d1, %d2, %d3}, [%t, {%c0, %c1}];
  st.global.v4.b32 [%o], {%d0, %d1, %d2, %d3}; ret; }"""
    places = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 0.5, 1.5, 2.0, 1e-40, -0.0], np.float32)
    rows = np.stack([RANDOM.choice(places, 256), RANDOM.choice(places, 256)], axis=1)
    results = []
    for engine in ENGINES:
        device = ptxtools.Device(engine=engine)
        one = device.texture(device.upload(texels), type="f32", size=[4, 2], filter="linear")
        two = device.texture(device.upload(texels[::-1].copy()), type="f32", size=[4, 2], filter="linear",
                             normalized=True, address=["wrap", "mirror"])  # fmt: skip
        out = np.zeros((256, 4), np.uint32)
        device.launch(ptxtools.loads(text)["k"], 1, 256, [one, two, rows, out])
        results.append(out)
    np.testing.assert_array_equal(*results)
    assert (results[0][2::4] == 7).all() and not (results[0][1::4] == 7).any()


def test_compiled_code_serves_all_but_the_first_warp(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    device = ptxtools.Device(threads=1)
    texture = device.texture(device.upload(np.ones((4, 4), np.float32)), type="f32", size=[4, 4], filter="linear")
    module = kernel("2d", False)
    rows = np.zeros((512, 2), np.uint32)
    fetch(module, texture, rows, device=device)
    served = events.HANDLERS["tex"]
    monkeypatch.setitem(events.HANDLERS, "tex", lambda view: (calls.append(view.warp), served(view)))
    fetch(module, texture, rows, device=device)
    assert calls == [0]
    other = device.texture(device.upload(np.zeros((4, 4), np.float32)), type="f32", size=[4, 4])
    assert (fetch(module, other, rows, device=device)[:, 0] == 0).all()  # made later, and known
    assert calls == [0, 0]


def test_a_texture_of_another_device_with_the_same_number() -> None:
    """One program, two devices: each sees its own texture number 1."""
    module = kernel("2d", False)
    for value in (3.0, 4.0):
        device = ptxtools.Device()
        texture = device.texture(device.upload(np.full((4, 4), value, np.float32)), type="f32", size=[4, 4])
        got = fetch(module, texture, np.zeros((64, 2), np.uint32), device=device).view(np.float32)
        assert (got[:, 0] == value).all()
