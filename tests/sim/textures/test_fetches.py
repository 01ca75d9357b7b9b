"""tex and tld4 against the formulas of the CUDA programming guide, written out texel by texel."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

import ptxtools

from .formulas import index
from .kernels import fetch, fetcher

ENGINES = ("native", "reference")
RANDOM = np.random.default_rng(5)
IMAGE = RANDOM.standard_normal((6, 9, 4)).astype(np.float32)  # rows, columns, channels
VOLUME = RANDOM.standard_normal((3, 4, 5)).astype(np.float32)


def expected(texels: Any, place: tuple[float, ...], linear: bool, modes: tuple[str, ...], normalized: bool) -> Any:
    """One fetch; place and modes are x first, axes of `texels` the other way round, channels last."""
    extents = texels.shape[-2::-1][: len(place)]
    if normalized:
        place = tuple(x * n for x, n in zip(place, extents, strict=True))
    else:
        modes = tuple("clamp" if m in ("wrap", "mirror") else m for m in modes)
    base = [math.floor(x - 0.5) if linear else math.floor(x) for x in place]
    alpha = [math.floor((x - 0.5 - i) * 256 + 0.5) / 256 for x, i in zip(place, base, strict=True)]
    total = np.zeros(texels.shape[-1])
    for corner in product((0, 1), repeat=len(place)) if linear else [(0,) * len(place)]:
        weight = math.prod(a if c else 1 - a for a, c in zip(alpha, corner, strict=True)) if linear else 1.0
        at = [index(i + c, n, m) for i, c, n, m in zip(base, corner, extents, modes, strict=True)]
        if None not in at:
            total = total + weight * texels[tuple(at[::-1])].astype(np.float64)
    return total.astype(np.float32)


def coordinates(axes: int, extents: tuple[int, ...], normalized: bool) -> Any:
    """Coordinates inside, on edges and far outside."""
    rows = RANDOM.uniform(-1.5, 2.5, (48, axes))
    rows[:4] = [[0.0] * axes, [1.0] * axes, [0.5] * axes, [-0.25] * axes]
    return (rows if normalized else rows * extents).astype(np.float32)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize(
    ("modes", "normalized"),
    [(("clamp", "border"), False), (("wrap", "mirror"), True), (("mirror", "clamp"), True), (("wrap", "wrap"), False)],
)
def test_two_dimensions(engine: str, linear: bool, modes: tuple[str, str], normalized: bool) -> None:
    device = ptxtools.Device(engine=engine)
    texture = device.texture(device.upload(IMAGE), type="f32", channels=4, size=[9, 6], address=modes,
                             filter="linear" if linear else "point", normalized=normalized)  # fmt: skip
    rows = coordinates(2, (9, 6), normalized)
    got = fetch(fetcher("tex.2d.v4.f32.f32", "[%t, {%c0, %c1}]", 2), texture, rows, device=device).view(np.float32)
    want = np.stack([expected(IMAGE, tuple(map(float, row)), linear, modes, normalized) for row in rows])
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("linear", [False, True])
def test_one_and_three_dimensions(linear: bool) -> None:
    device = ptxtools.Device()
    how = {"type": "f32", "filter": "linear" if linear else "point", "address": ["clamp"]}
    volume = device.texture(device.upload(VOLUME), "3d", size=[5, 4, 3], **how)
    rows = coordinates(4, (5, 4, 3, 1), False)
    got = fetch(fetcher("tex.3d.v4.f32.f32", "[%t, {%c0, %c1, %c2, %c3}]", 4), volume, rows, device=device)
    want = [expected(VOLUME[..., None], tuple(map(float, row[:3])), linear, ("clamp",) * 3, False)[0] for row in rows]
    np.testing.assert_array_equal(got.view(np.float32)[:, 0], want)
    assert (got.view(np.float32)[:, 1:] == [0, 0, 1]).all()  # channels that there are not
    line = device.texture(device.upload(VOLUME.ravel()), "1d", size=[60], **how)
    rows = coordinates(1, (60,), False)
    got = fetch(fetcher("tex.1d.v4.f32.f32", "[%t, {%c0}]", 1), line, rows, device=device).view(np.float32)
    want = [expected(VOLUME.reshape(60, 1), (float(row[0]),), linear, ("clamp",), False)[0] for row in rows]
    np.testing.assert_array_equal(got[:, 0], want)


def test_layers() -> None:
    device = ptxtools.Device()
    layered = device.texture(device.upload(VOLUME), "a2d", type="f32", size=[5, 4, 3], filter="linear")
    rows = coordinates(3, (1, 5, 4), False)
    layers = RANDOM.integers(0, 5, len(rows))
    rows = rows.view(np.uint32)
    rows[:, 0] = layers
    got = fetch(fetcher("tex.a2d.v4.f32.f32", "[%t, {%c0, %c1, %c2, %c2}]", 3), layered, rows, device=device)
    places = rows[:, 1:].view(np.float32)
    want = [
        expected(VOLUME[min(layer, 2)][..., None], tuple(map(float, place)), True, ("clamp",) * 2, False)[0]
        for layer, place in zip(layers, places, strict=True)
    ]  # fmt: skip
    np.testing.assert_array_equal(got.view(np.float32)[:, 0], want)
    flat = device.texture(device.upload(VOLUME), "a1d", type="f32", size=[20, 3])
    places = np.array([[2, 19], [1, 0], [9, -4]], np.int32)
    got = fetch(fetcher("tex.a1d.v4.f32.s32", "[%t, {%c0, %c1}]", 2), flat, places, device=device).view(np.float32)
    assert got[:, 0].tolist() == [VOLUME[2].flat[19], VOLUME[1].flat[0], VOLUME[2].flat[0]]


def test_cubes() -> None:
    """A direction along an axis meets the middle of its face."""
    device = ptxtools.Device()
    faces = np.arange(12, dtype=np.float32).repeat(9).reshape(12, 3, 3)
    cube = device.texture(device.upload(faces), "acube", type="f32", size=[3, 3, 2], filter="linear")
    axes = [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]]
    rows = np.array([[0, *axis] for axis in axes], np.float32)
    one = fetch(fetcher("tex.cube.v4.f32.f32", "[%t, {%c1, %c2, %c3, %c0}]", 4), cube, rows, device=device)
    assert one.view(np.float32)[:, 0].tolist() == [0, 1, 2, 3, 4, 5]
    bits = rows.view(np.uint32).copy()
    bits[:, 0] = 1
    other = fetch(fetcher("tex.acube.v4.f32.f32", "[%t, {%c0, %c1, %c2, %c3}]", 4), cube, bits, device=device)
    assert other.view(np.float32)[:, 0].tolist() == [6, 7, 8, 9, 10, 11]
    faces = np.arange(54, dtype=np.float32).reshape(6, 3, 3)  # the corner towards +x, seen from inside: s = -z, t = -y
    cube = device.texture(device.upload(faces), "cube", type="f32", size=[3, 3])
    corner = np.array([[0, 1, 0.9, 0.9], [0, 1, -0.9, -0.9], [0, 0.8, 1, -0.8]], np.float32)
    got = fetch(fetcher("tex.cube.v4.f32.f32", "[%t, {%c1, %c2, %c3, %c0}]", 4), cube, corner, device=device)
    assert got.view(np.float32)[:, 0].tolist() == [faces[0, 0, 0], faces[0, 2, 2], faces[2, 0, 2]]


def test_samples() -> None:
    device = ptxtools.Device()
    data = np.arange(24, dtype=np.int32).reshape(4, 2, 3)  # samples, rows, columns
    texture = device.texture(device.upload(data), "2dms", type="s32", size=[3, 2], samples=4)
    rows = np.array([[3, 2, 1, 0], [0, 1, 0, 0]], np.int32)
    got = fetch(fetcher("tex.2dms.v4.s32.s32", "[%t, {%c0, %c1, %c2, %c3}]", 4), texture, rows, device=device)
    assert got[:, 0].tolist() == [23, 1]


def test_levels_and_gradients() -> None:
    device = ptxtools.Device()
    chain = np.concatenate([np.full(n, v, np.float32) for n, v in ((64, 1), (16, 2), (4, 3), (1, 4))])
    how = {"type": "f32", "size": [8, 8], "levels": 4, "normalized": True}
    nearest = device.texture(device.upload(chain), **how)
    mixed = device.texture(device.upload(chain), mip_filter="linear", **how)
    rows = np.array([[0.5, 0.5, lod] for lod in (-1, 0, 0.4, 0.6, 1.25, 9)], np.float32)
    level = fetcher("tex.level.2d.v4.f32.f32", "[%t, {%c0, %c1}], %c2", 3)
    assert fetch(level, nearest, rows, device=device).view(np.float32)[:, 0].tolist() == [1, 1, 1, 2, 2, 4]
    got = fetch(level, mixed, rows, device=device).view(np.float32)[:, 0]
    assert got.tolist() == pytest.approx([1, 1, 1 + 102 / 256, 1 + 154 / 256, 2.25, 4], abs=0)
    gradients = np.array([[0.5, 0.5, d, 0, 0, d / 2] for d in (0.125, 0.25, 0.5, 0, 8)], np.float32)
    grad = fetcher("tex.grad.2d.v4.f32.f32", "[%t, {%c0, %c1}], {%c2, %c3}, {%c4, %c5}", 6)
    assert fetch(grad, nearest, gradients, device=device).view(np.float32)[:, 0].tolist() == [1, 2, 3, 1, 4]
    base = fetcher("tex.base.2d.v4.f32.f32", "[%t, {%c0, %c1}]", 3)
    assert fetch(base, nearest, rows, device=device).view(np.float32)[0, 0] == 1


def test_offsets_and_residency() -> None:
    device = ptxtools.Device()
    texture = device.texture(device.upload(IMAGE), type="f32", channels=4, size=[9, 6])
    module = fetcher("tex.2d.v4.f32.f32", "[%t, {%c0, %c1}], {%c2, %c3}", 4)
    rows = np.zeros((1, 4), np.uint32)
    rows[0, :2] = np.array([3.5, 2.5], np.float32).view(np.uint32)
    rows[0, 2:] = np.array([-2, 1], np.int32).view(np.uint32)
    np.testing.assert_array_equal(fetch(module, texture, rows, device=device).view(np.float32)[0], IMAGE[3, 1])


def test_gather() -> None:
    device = ptxtools.Device()
    texture = device.texture(device.upload(IMAGE), type="f32", channels=4, size=[9, 6])
    rows = np.array([[3.2, 2.9]], np.float32)  # between columns 2 and 3, rows 2 and 3
    got = fetch(fetcher("tld4.b.2d.v4.f32.f32", "[%t, {%c0, %c1}]", 2), texture, rows, device=device).view(np.float32)
    assert got[0].tolist() == [IMAGE[3, 2, 2], IMAGE[3, 3, 2], IMAGE[2, 3, 2], IMAGE[2, 2, 2]]


@pytest.mark.parametrize(
    ("type_", "values", "read", "dtype", "expected_"),
    [
        ("u8", [0, 128, 255], "normalized_float", "f32", [0, np.float32(128) / np.float32(255), 1]),
        ("s8", [-128, -127, 127], "normalized_float", "f32", [-1, -1, 1]),
        ("u16", [65535, 1], "normalized_float", "f32", [1, np.float32(1) / np.float32(65535)]),
        ("s16", [-32768, 32767], "normalized_float", "f32", [-1, 1]),
        ("f16", [1.5, -0.25], "element", "f32", [1.5, -0.25]),
        ("u8", [200, 7], "element", "u32", [200, 7]),
        ("s8", [-5, 7], "element", "s32", [-5, 7]),
        ("s16", [-500, 7], "element", "s32", [-500, 7]),
        ("u32", [1 << 31, 7], "element", "u32", [1 << 31, 7]),
    ],
)
def test_channel_types(type_: str, values: list[float], read: str, dtype: str, expected_: list[float]) -> None:
    code = {"f": np.float16, "u": f"u{int(type_[1:]) // 8}", "s": f"i{int(type_[1:]) // 8}"}[type_[0]]
    device = ptxtools.Device()
    texture = device.texture(device.upload(np.array(values, code)), "linear", type=type_, size=[len(values)], read=read)
    rows = np.array([[n] for n in (*range(len(values)), -1, len(values))], np.int32)
    got = fetch(fetcher(f"tex.1d.v4.{dtype}.s32", "[%t, {%c0}]", 1), texture, rows, device=device)[:, 0]
    view = {"f32": np.float32, "u32": np.uint32, "s32": np.int32}[dtype]
    assert got.view(view).tolist() == [*expected_, 0, 0]  # outside of linear memory there are zeros


def test_halves() -> None:
    device = ptxtools.Device()
    texture = device.texture(device.upload(np.array([[1, 2, 3, 0.1]], np.float32)), type="f32", channels=4, size=[1, 1])
    text = """.version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 t, .param .u64 out) {
  .reg .b64 %t, %o; .reg .f16 %h<4>; .reg .b32 %d<2>, %z; .reg .pred %p; mov.b32 %z, 0;
  ld.param.u64 %t, [t]; ld.param.u64 %o, [out];
  tex.2d.v4.f16.f32 {%h0, %h1, %h2, %h3}, [%t, {%z, %z}];
  st.global.v4.b16 [%o], {%h0, %h1, %h2, %h3};
  tex.2d.v2.f16x2.s32 {%d0, %d1}|%p, [%t, {%z, %z}];
  @%p st.global.v2.b32 [%o+8], {%d0, %d1};
  ret; }"""
    out = np.zeros(8, np.float16)
    device.launch(ptxtools.loads(text)["k"], 1, 1, [texture, out])
    assert out.tolist() == [1, 2, 3, np.float16(0.1)] * 2
