"""Handles that are none, descriptors that lie, accesses outside: traps and errors on both engines, never more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxtools
from tests.rows import rows

from .kernels import HEAD

ENGINES = ("native", "reference")
KERNEL = """.visible .entry k(.param .u64 good, .param .u64 bad, .param .u64 gs, .param .u64 bs, .param .u64 out) {
  .reg .b64 %t, %u, %s, %v, %o; .reg .b32 %i, %d<4>, %z; .reg .pred %p;
  ld.param.u64 %t, [good]; ld.param.u64 %u, [bad]; ld.param.u64 %s, [gs]; ld.param.u64 %v, [bs];
  ld.param.u64 %o, [out];
  mov.u32 %i, %tid.x; setp.ge.u32 %p, %i, 40; mov.b32 %z, 0;
  selp.b64 %t, %u, %t, %p; selp.b64 %s, %v, %s, %p;
  mad.wide.u32 %o, %i, 4, %o;
  FETCH
  st.global.b32 [%o], %d0; ret; }"""
UNIFIED = "tex.2d.v4.f32.f32 {%d0, %d1, %d2, %d3}, [%t, {%z, %z}];"
#: Sampler variables are in the first 64 bytes of a buffer.
INDEPENDENT = "tex.2d.v4.f32.f32 {%d0, %d1, %d2, %d3}, [%t, %s, {%z, %z}];"
OBJECT, SAMPLER = 0x7E58_0100 << 32, 0x7E58_0200 << 32


@pytest.fixture(params=ENGINES)
def device(request: pytest.FixtureRequest) -> ptxtools.Device:
    return ptxtools.Device(engine=request.param, threads=1)


def launch(device: ptxtools.Device, text: str, *args: Any, threads: int = 96) -> Any:
    """Lanes from 40 on take the bad ones: the second warp has both, the third only bad ones."""
    out = np.zeros(threads, np.float32)
    option = ", texmode_independent" if "%s," in text else ""
    module = ptxtools.loads(HEAD.format(option=option, globals="") + KERNEL.replace("FETCH", text))
    device.launch(module["k"], 1, threads, [*args, out])
    return out


@pytest.mark.share(3)
@pytest.mark.parametrize(
    "handle",
    [0, 1, OBJECT, OBJECT + 2, OBJECT + 3, OBJECT + 0xFFFF_FFFF, OBJECT + (1 << 32) + 1, SAMPLER, SAMPLER + 0xFFF,
     0x7E58 << 48, (1 << 64) - 1, (1 << 64) - 8, 0xFFFF_FFFF_FFFF, 0x1000_0001, 0x1000_0000, 1 << 63, (1 << 56) + 8],
)  # fmt: skip
def test_bad_handles(handle: int, device: ptxtools.Device) -> None:
    good = device.texture(device.upload(np.ones((4, 4), np.float32)), type="f32", size=[4, 4])
    with pytest.raises(ptxtools.Trap):
        launch(device, UNIFIED, good, handle, None, None)
    assert (launch(device, UNIFIED, good, good, None, None) == 1).all()


#: Address modes that there are not, in each place; bits that mean nothing; a texture; and numbers.
BAD_SAMPLERS = (1, SAMPLER + 0xF, SAMPLER + 0x5, SAMPLER + 0x50, SAMPLER + 0x500, SAMPLER + (1 << 14),
                SAMPLER + (1 << 39), OBJECT + 99, (1 << 64) - 1)  # fmt: skip


@rows("content", BAD_SAMPLERS, share=3)
def test_bad_samplers(content: int, device: ptxtools.Device) -> None:
    """What a .samplerref variable holds may be anything: a kernel can write it."""
    good = device.texture(device.upload(np.ones((4, 4), np.float32)), type="f32", size=[4, 4])
    variables = device.upload(np.array([SAMPLER + 0x333, content], np.uint64))
    with pytest.raises(ptxtools.Trap, match="is not a sampler"):
        launch(device, INDEPENDENT, good, good, variables, variables + 8)
    with pytest.raises(ptxtools.Trap, match="not aligned"):
        launch(device, INDEPENDENT, good, good, variables, variables + 4)
    assert (launch(device, INDEPENDENT, good, good, variables, variables) == 1).all()


def test_linear_filtering_of_integers(device: ptxtools.Device) -> None:
    good = device.texture(device.upload(np.ones((4, 4), np.float32)), type="f32", size=[4, 4])
    ints = device.texture(device.upload(np.ones((4, 4), np.int32)), type="s32", size=[4, 4])
    variables = device.upload(np.array([SAMPLER + 0x333, SAMPLER + 0x1333], np.uint64))
    launch(device, INDEPENDENT, good, ints, variables, variables)
    with pytest.raises(ptxtools.Trap, match=r"filtering requires floats, but the texture gives integers \(s32\)"):
        launch(device, INDEPENDENT, good, ints, variables, variables + 8)


def test_another_kind(device: ptxtools.Device) -> None:
    good = device.texture(device.upload(np.ones((4, 4), np.float32)), type="f32", size=[4, 4])
    for kind, size in (("1d", [16]), ("3d", [4, 4, 1]), ("a2d", [4, 4, 1]), ("linear", [16])):
        other = device.texture(device.alloc(64), kind, type="f32", size=size)
        with pytest.raises(ptxtools.Trap, match=rf"\.2d does not fit a texture of kind {kind}"):
            launch(device, UNIFIED, good, other, None, None)


def test_a_freed_buffer(device: ptxtools.Device) -> None:
    """Its texture is of no more use, also to compiled code that knew it."""
    kept = device.texture(device.upload(np.ones((4, 4), np.float32)), type="f32", size=[4, 4])
    buffer = device.upload(np.ones((4, 4), np.float32))
    lost = device.texture(buffer, type="f32", size=[4, 4])
    assert (launch(device, UNIFIED, kept, lost, None, None) == 1).all()
    buffer.free()
    with pytest.raises(ptxtools.Trap, match="the memory of the texture has been freed"):
        launch(device, UNIFIED, kept, lost, None, None)
    assert (launch(device, UNIFIED, kept, kept, None, None) == 1).all()


@rows(
    ("fields", "message"),
    [
        ({"size": [1 << 40, 1 << 40]}, "is too large"),
        ({"size": [-4, 4]}, "is empty"),
        ({"size": [2.0, 2]}, "a size must be a whole number, not 2.0"),
        ({"size": "44"}, "size must be a list"),
        ({"size": 4}, "size must be a list"),
        ({"levels": -1}, "at least one level"),
        ({"levels": 1 << 70}, "are too many"),
        ({"levels": True}, "levels must be a whole number"),
        ({"samples": 0}, "at least one level and one sample"),
        ({"samples": 4}, "a 2d texture has one sample"),
        ({"pitch": -16}, "a pitch of -16 bytes is less than a row"),
        ({"pitch": 1 << 60}, "far more than a row"),
        ({"layers": 0, "kind": "a2d"}, "is empty"),
        ({"layers": 2}, "a 2d texture has no layers"),
        ({"kind": "cube", "size": [4, 2]}, "the faces of a cube must be square, not 4 x 2"),
        ({"kind": "linear", "size": [4], "levels": 2}, "a linear texture has one level"),
        ({"anisotropy": 0}, "anisotropy must be 1 to 16, not 0"),
        ({"anisotropy": 17}, "anisotropy must be 1 to 16, not 17"),
        ({"border": [float("nan")]}, "a border must be a number"),
        ({"border": ["red"]}, "a border must be a number"),
        ({"compare": "nearly"}, "no comparison 'nearly'"),
        ({"srgb": True}, "srgb is for textures of u8"),
        ({"seamless": True}, "seamless is for cubes"),
        ({"level_clamp": [1]}, "a level clamp is two numbers"),
        ({"absent": [{"colour": 1}]}, "no field of absent"),
        ({"absent": [7]}, r"absent\[0\] must be a table"),
        ({"filter": ["linear"]}, "no filter"),
    ],
)
def test_descriptors(fields: dict[str, Any], message: str) -> None:
    device = ptxtools.Device()
    with pytest.raises(ptxtools.LaunchError, match=message):
        device.texture(device.alloc(64), **{"type": "f32", "size": [4, 4], **fields})


SURFACE = (
    HEAD.format(option="", globals="")
    + """.visible .entry k(.param .u64 s, .param .u64 x, .param .u64 y) {
  .reg .b64 %s, %l; .reg .b32 %x, %y, %r<4>;
  ld.param.u64 %s, [s]; ld.param.u64 %l, [x]; cvt.u32.u64 %x, %l; ld.param.u64 %l, [y]; cvt.u32.u64 %y, %l;
  mov.b32 %r0, -1; mov.b32 %r1, -1; mov.b32 %r2, -1; mov.b32 %r3, -1;
  OP ret; }"""
)


@pytest.mark.share(6)
@pytest.mark.parametrize("x", [0, 1, -1, 16, -16, 0x7FFF_FFFF, -0x8000_0000])
@pytest.mark.parametrize("y", [0, 1, -1, 0x7FFF_FFFF, -0x8000_0000])
@pytest.mark.parametrize("how", ["clamp", "zero", "trap"])
def test_surfaces_stay_inside(how: str, x: int, y: int, device: ptxtools.Device) -> None:
    """Stores that are wider than a row, or anywhere: nothing around the surface changes."""
    memory = device.upload(np.zeros((3, 64), np.uint8))
    surface = device.surface(memory + 64, type="u8", size=[8, 2], pitch=32)
    for op in (f"sust.b.2d.v4.b32.{how} [%s, {{%x, %y}}], {{%r0, %r1, %r2, %r3}};",
               f"sust.b.2d.b8.{how} [%s, {{%x, %y}}], %r0;", f"sured.b.or.2d.b32.{how} [%s, {{%x, %y}}], %r0;",
               f"sust.p.2d.v4.b32.{how} [%s, {{%x, %y}}], {{%r0, %r1, %r2, %r3}};"):  # fmt: skip
        text = SURFACE.replace("OP", op.replace("%r0;", "%h;") if ".b8." in op else op)
        if ".b8." in op:
            text = text.replace(".reg .b64 %s", ".reg .b16 %h; mov.b16 %h, 255; .reg .b64 %s")
        try:
            device.launch(ptxtools.loads(text)["k"], 1, 1, [surface, x & 0xFFFF_FFFF, y & 0xFFFF_FFFF])
        except ptxtools.Trap as trap:
            assert "surface access" in str(trap)
    around = memory.download()
    assert not around[0].any() and not around[2].any()
    assert not around[1, 8:32].any() and not around[1, 40:].any()


def test_formatted_stores_of_two_surfaces_at_once(device: ptxtools.Device) -> None:
    """Lanes with surfaces of different texels: each store is as wide as its own."""
    narrow, wide = device.upload(np.zeros(64, np.uint8)), device.upload(np.zeros((64, 4), np.float32))
    one = device.surface(narrow, "1d", type="u8", size=[64], read="normalized_float")
    two = device.surface(wide, "1d", type="f32", channels=4, size=[64])
    text = """.visible .entry k(.param .u64 s, .param .u64 t) {
  .reg .b64 %s, %t; .reg .b32 %i, %z; .reg .f32 %f; .reg .pred %p;
  ld.param.u64 %s, [s]; ld.param.u64 %t, [t]; mov.u32 %i, %tid.x; and.b32 %z, %i, 1; setp.eq.u32 %p, %z, 1;
  selp.b64 %s, %t, %s, %p; mov.f32 %f, 0f3F000000;
  sust.p.1d.v4.b32.trap [%s, {%i}], {%f, %f, %f, %f}; ret; }"""
    device.launch(ptxtools.loads(HEAD.format(option="", globals="") + text)["k"], 1, 64, [one, two])
    assert (narrow.download()[0::2] == 128).all() and not narrow.download()[1::2].any()
    assert (wide.download()[1::2] == 0.5).all() and not wide.download()[0::2].any()
