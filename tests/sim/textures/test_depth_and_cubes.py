"""Comparison of depth, cubes with and without seams, gradients with anisotropy, sparse textures: both engines."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import ptxtools
from tests.rows import rows

from . import formulas
from .kernels import fetch, fetcher

RANDOM = np.random.default_rng(23)
ENGINES = ("native", "reference")
PASSES = {
    "less_equal": lambda r, d: r <= d, "less": lambda r, d: r < d, "greater_equal": lambda r, d: r >= d,
    "greater": lambda r, d: r > d, "equal": lambda r, d: r == d, "not_equal": lambda r, d: r != d,
    "always": lambda r, d: True, "never": lambda r, d: False,
}  # fmt: skip


@pytest.fixture(params=ENGINES)
def device(request: pytest.FixtureRequest) -> ptxtools.Device:
    return ptxtools.Device(engine=request.param)


@rows("linear", [False, True], share=3)
@rows("compare", PASSES)
def test_depth(compare: str, linear: bool, device: ptxtools.Device) -> None:
    """Each texel is compared, and the outcomes are filtered; tld4 gives the outcomes themselves."""
    depth = RANDOM.integers(0, 4, (5, 7)).astype(np.float32) / 4
    texture = device.texture(device.upload(depth), type="f32", size=[7, 5], compare=compare, border=[0.5],
                             address=["border", "clamp"], filter="linear" if linear else "point")  # fmt: skip
    rows = np.column_stack([RANDOM.uniform(-2, 9, 40), RANDOM.uniform(-2, 7, 40), RANDOM.integers(0, 4, 40) / 4])
    rows = rows.astype(np.float32)
    got = fetch(fetcher("tex.2d.v4.f32.f32", "[%t, {%c0, %c1}], %c2", 3), texture, rows, device=device)
    four = fetch(fetcher("tld4.r.2d.v4.f32.f32", "[%t, {%c0, %c1}], %c2", 3), texture, rows, device=device)
    for (x, y, reference), result, gathered in zip(
        rows.tolist(), got.view(np.float32), four.view(np.float32), strict=True
    ):
        outcome = np.array([[float(PASSES[compare](reference, d)) for d in line] for line in depth.tolist()])[..., None]
        border = float(PASSES[compare](reference, 0.5))
        how = {"modes": ("border", "clamp"), "normalized": False, "border": border}
        assert result[0] == np.float32(formulas.fetch(outcome, (x, y), linear=linear, **how)[0])
        left, low = math.floor(x - 0.5), math.floor(y - 0.5)
        corners = ((left, low + 1), (left + 1, low + 1), (left + 1, low), (left, low))
        want = [formulas.fetch(outcome, corner, linear=False, whole=True, **how)[0] for corner in corners]
        assert gathered.tolist() == want


def test_depth_in_arrays_levels_and_fixed_point(device: ptxtools.Device) -> None:
    """With a layer, an offset, a level; and a reference beyond what 16-bit depth can hold."""
    layers = device.texture(device.upload(np.array([[[0.2, 0.8]], [[0.6, 0.4]]], np.float32)), "a2d", type="f32",
                            size=[2, 1, 2])  # fmt: skip
    rows = np.zeros((2, 5), np.uint32)
    rows[:, 0] = (0, 1)
    rows[:, 3] = 1  # one texel on
    rows[:, 4] = np.array([0.5], np.float32).view(np.uint32)
    module = fetcher("tex.a2d.v4.f32.f32", "[%t, {%c0, %c1, %c2, %c2}], {%c3, %c2}, %c4", 5)
    assert fetch(module, layers, rows, device=device).view(np.float32)[:, 0].tolist() == [1, 0]
    chain = np.array([9, 9, 9, 9, 0.3], np.float32)
    mips = device.texture(device.upload(chain), type="f32", size=[2, 2], levels=2, normalized=True)
    level = fetcher("tex.level.2d.v4.f32.f32", "[%t, {%c0, %c0}], %c1, %c2", 3)
    wanted = np.array([[0.5, 0, 0.4], [0.5, 1, 0.4], [0.5, 1, 0.3]], np.float32)
    assert fetch(level, mips, wanted, device=device).view(np.float32)[:, 0].tolist() == [1, 0, 1]
    fixed = device.texture(device.upload(np.array([[65535]], np.uint16)), type="u16", size=[1, 1],
                           read="normalized_float")  # fmt: skip
    plain = fetcher("tex.2d.v4.f32.f32", "[%t, {%c0, %c0}], %c1", 2)
    assert fetch(plain, fixed, np.array([[0, 7.5]], np.float32), device=device).view(np.float32)[0, 0] == 1
    whole = device.texture(device.upload(np.array([[1]], np.uint16)), type="u16", size=[1, 1])
    with pytest.raises(ptxtools.Trap, match=r"comparison requires floats, but the texture gives integers \(u16\)"):
        fetch(plain, whole, np.zeros((1, 2), np.float32), device=device)


def directions(count: int, n: int) -> Any:
    """Directions anywhere, along axes, and close to edges and corners."""
    found = RANDOM.standard_normal((count, 3))
    found[:6] = [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]]
    edge = 1 - 0.3 / n
    found[6:14] = [[a, b, c] for a in (1, -1) for b in (edge, -edge) for c in (edge, -edge)]
    found[14:22] = [[b, c, a * 0.5] for a in (1, -1) for b in (edge, -1) for c in (1, -edge)]
    return found.astype(np.float32)


@rows("n", [1, 2, 4], share=3)
@rows("seamless", [False, True])
@rows("linear", [False, True])
@rows("geometry", ["cube", "acube"])
def test_cubes(geometry: str, linear: bool, seamless: bool, n: int, device: ptxtools.Device) -> None:
    cubes = RANDOM.standard_normal((2, 6, n, n)).astype(np.float32)
    texture = device.texture(device.upload(cubes), "acube", type="f32", size=[n, n, 2], seamless=seamless,
                             filter="linear" if linear else "point")  # fmt: skip
    rows = directions(60, n)
    if geometry == "acube":
        module = fetcher("tex.acube.v4.f32.f32", "[%t, {%c0, %c1, %c2, %c3}]", 4)
        rows = np.column_stack([RANDOM.integers(0, 4, 60).astype(np.uint32), rows.view(np.uint32)])
    else:
        module = fetcher("tex.cube.v4.f32.f32", "[%t, {%c0, %c1, %c2, %c2}]", 3)
    got = fetch(module, texture, rows, device=device).view(np.float32)[:, 0]
    for row, result in zip(rows, got, strict=True):
        number = min(int(row[0]), 1) if geometry == "acube" else 0
        want = formulas.cube(cubes[number], row[-3:].view(np.float32), linear=linear, seamless=seamless)
        np.testing.assert_allclose(result, want, rtol=1e-6, atol=1e-6)


def test_seams_join_faces(device: ptxtools.Device) -> None:
    """Just beside an edge, from either face, there is nearly the same value; with seams there is a jump."""
    faces = RANDOM.standard_normal((6, 4, 4)).astype(np.float32)
    sides = np.array([[1, 0.2, 0.99999], [0.99999, 0.2, 1]], np.float32)
    module = fetcher("tex.cube.v4.f32.f32", "[%t, {%c0, %c1, %c2, %c2}]", 3)
    jumps = []
    for seamless in (True, False):
        cube = device.texture(device.upload(faces), "cube", type="f32", size=[4, 4], filter="linear", seamless=seamless)
        one, other = fetch(module, cube, sides, device=device).view(np.float32)[:, 0].tolist()
        jumps.append(abs(one - other))
    assert jumps[0] < 0.02 < jumps[1]


def test_gather_from_a_seamless_cube(device: ptxtools.Device) -> None:
    faces = RANDOM.standard_normal((6, 4, 4)).astype(np.float32)
    cube = device.texture(device.upload(faces), "cube", type="f32", size=[4, 4], seamless=True)
    rows = directions(40, 4)
    got = fetch(fetcher("tld4.r.cube.v4.f32.f32", "[%t, {%c0, %c1, %c2, %c2}]", 3), cube, rows, device=device)
    for row, result in zip(rows, got.view(np.float32), strict=True):
        face, s, t = formulas.face_of(row)
        x, y = (math.floor((c + 1) / 2 * 4 - 0.5) for c in (s, t))
        want = [
            np.mean([float(faces[f, j, i]) for f, i, j in formulas.beyond(face, x + dx, y + dy, 4)])
            for dx, dy in ((0, 1), (1, 1), (1, 0), (0, 0))
        ]  # fmt: skip
        np.testing.assert_allclose(result, want, rtol=1e-6, atol=1e-6)


def test_anisotropy(device: ptxtools.Device) -> None:
    """A gradient four times as long as the other: four samples along it, from the level of the shorter one."""
    chain = [RANDOM.standard_normal((n, n)).astype(np.float32) for n in (16, 8, 4, 2, 1)]
    flat = np.concatenate([level.ravel() for level in chain])
    how = {"type": "f32", "size": [16, 16], "levels": 5, "normalized": True, "filter": "linear", "address": ["wrap"]}
    module = fetcher("tex.grad.2d.v4.f32.f32", "[%t, {%c0, %c1}], {%c2, %c3}, {%c4, %c5}", 6)
    x, y, long, short = 0.37, 0.61, 0.5, 0.125
    rows = np.array([[x, y, long, 0, 0, short], [x, y, short, 0, 0, long], [x, y, 0, 0, 0, 0]], np.float32)
    x, y = float(rows[0, 0]), float(rows[0, 1])

    def at(level: int, u: float, v: float) -> float:
        place = {"linear": True, "modes": ("wrap", "wrap"), "normalized": True}
        return float(formulas.fetch(chain[level][..., None], (u, v), **place)[0])

    for most, level in ((16, 1), (4, 1), (2, 2), (1, 3)):
        texture = device.texture(device.upload(flat), anisotropy=most, **how)
        got = fetch(module, texture, rows, device=device).view(np.float32)[:, 0]
        count = min(most, 4)
        steps = [((n + 0.5) / count - 0.5) * long for n in range(count)]
        want = [
            np.mean([at(level, x + d, y) for d in steps]),
            np.mean([at(level, x, y + d) for d in steps]),
            at(0, x, y),
        ]
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


def test_gradients_of_a_cube(device: ptxtools.Device) -> None:
    """How fast the place on the face moves, not the direction: twice as long a direction halves it."""
    chain = np.concatenate([np.full(6 * n * n, level, np.float32) for level, n in enumerate((8, 4, 2, 1))])
    cube = device.texture(device.upload(chain), "cube", type="f32", size=[8, 8], levels=4)
    module = fetcher(
        "tex.grad.cube.v4.f32.f32", "[%t, {%c0, %c1, %c2, %c2}], {%c3, %c4, %c5, %c5}, {%c2, %c2, %c2, %c2}", 6
    )
    rows = np.array([[1, 0, 0, 0, 0.5, 0], [2, 0, 0, 0, 0.5, 0], [1, 0, 0, 0, 0, 1], [1, 0, 0, 9, 0, 0]], np.float32)
    assert fetch(module, cube, rows, device=device).view(np.float32)[:, 0].tolist() == [1, 0, 2, 0]


def test_bias_and_clamp_of_levels(device: ptxtools.Device) -> None:
    chain = np.concatenate([np.full(n * n, level, np.float32) for level, n in enumerate((8, 4, 2, 1))])
    level = fetcher("tex.level.2d.v4.f32.f32", "[%t, {%c0, %c0}], %c1", 2)
    rows = np.array([[0.5, lod] for lod in (0, 1, 2, 3)], np.float32)
    for fields, want in (({"level_bias": 1}, [1, 2, 3, 3]), ({"level_clamp": [1, 2]}, [1, 1, 2, 2]),
                         ({"level_bias": -1.25, "mip_filter": "linear"}, [0, 0, 0.75, 1.75])):  # fmt: skip
        texture = device.texture(device.upload(chain), type="f32", size=[8, 8], levels=4, normalized=True, **fields)
        assert fetch(level, texture, rows, device=device).view(np.float32)[:, 0].tolist() == want


def test_what_is_not_resident(device: ptxtools.Device) -> None:
    """A fetch that needs an absent texel answers false, and zeros; one that weighs it with zero does not need it."""
    texels = np.arange(1, 17, dtype=np.float32).reshape(4, 4)
    texture = device.texture(device.upload(texels), type="f32", size=[4, 4], filter="linear",
                             absent=[{"x": 2, "width": 2, "y": 1, "height": 1}])  # fmt: skip
    text = """.version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 t, .param .u64 in, .param .u64 out) {
  .reg .b64 %t, %a, %o; .reg .b32 %i, %c<2>, %d<4>; .reg .pred %p;
  ld.param.u64 %t, [t]; ld.param.u64 %a, [in]; ld.param.u64 %o, [out];
  mov.u32 %i, %tid.x; mad.wide.u32 %a, %i, 8, %a; mad.wide.u32 %o, %i, 16, %o;
  ld.global.v2.b32 {%c0, %c1}, [%a];
  OP {%d0, %d1, %d2, %d3}|%p, [%t, {%c0, %c1}];
  selp.b32 %d1, 1, 0, %p; st.global.v4.b32 [%o], {%d0, %d1, %d2, %d3}; ret; }"""
    rows = np.array([[1.5, 1.5], [2.0, 1.5], [2.5, 1.5], [2.5, 0.5], [2.5, 1.0], [3.5, 2.5]], np.float32)
    got = fetch(ptxtools.loads(text.replace("OP", "tex.2d.v4.f32.f32")), texture, rows, device=device)
    assert got[:, 1].tolist() == [1, 0, 0, 1, 0, 1]
    assert got[:, 0].view(np.float32).tolist() == [6, 0, 0, 3, 0, 12]
    got = fetch(ptxtools.loads(text.replace("OP", "tld4.r.2d.v4.f32.f32")), texture, rows, device=device)
    assert got[:, 1].tolist() == [0, 0, 0, 0, 0, 1]  # all four count
    level = device.texture(device.upload(np.arange(5, dtype=np.float32)), type="f32", size=[2, 2], levels=2,
                           normalized=True, absent=[{"level": 0}])  # fmt: skip
    mip = ptxtools.loads(text.replace("OP", "tex.level.2d.v4.f32.f32").replace("c1}];\n  selp", "c0}], %c1;\n  selp"))
    got = fetch(mip, level, np.array([[0.5, 0], [0.5, 1]], np.float32), device=device)
    assert got[:, 1].tolist() == [0, 1] and got[1, 0] == np.float32(4).view(np.uint32)


def test_an_independent_sampler_leaves_normalization_to_the_texture(device: ptxtools.Device) -> None:
    """force_unnormalized_coords overrides the texture; without it the texture decides (5.3.2)."""
    text = """.version 8.0
.target sm_75, texmode_independent
.address_size 64
.global .texref image;
.global .samplerref plain = { filter_mode = nearest, addr_mode_0 = wrap };
.global .samplerref forced = { filter_mode = linear, addr_mode_0 = wrap, force_unnormalized_coords = 1 };
.visible .entry k(.param .u64 out) {
  .reg .b64 %o; .reg .b32 %i, %d<4>, %x; .reg .f32 %f;
  ld.param.u64 %o, [out]; mov.u32 %i, %tid.x; mad.wide.u32 %o, %i, 8, %o;
  mov.f32 %f, 0f3FC00000;
  tex.1d.v4.f32.f32 {%d0, %d1, %d2, %d3}, [image, plain, {%f}];
  st.global.b32 [%o], %d0;
  tex.1d.v4.f32.f32 {%d0, %d1, %d2, %d3}, [image, forced, {%f}];
  st.global.b32 [%o+4], %d0; ret; }"""
    for normalized, want in ((False, [2, 2]), (True, [3, 2])):
        module = ptxtools.loads(text)
        data = device.upload(np.array([1, 2, 3, 4], np.float32))
        device.bind(module, "image", device.texture(data, "1d", type="f32", size=[4], normalized=normalized))
        out = np.zeros((64, 2), np.float32)
        device.launch(module["k"], 1, 64, [out])
        assert (out == want).all()
