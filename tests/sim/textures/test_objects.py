"""What textures may be, queries, references and samplers of a module, and launch files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools.cli.common import exit_status
from ptxtools.cli.run import command

from .kernels import HEAD, fetch, fetcher


def queries(
    instruction: str, names: tuple[str, ...], texture: Any, device: ptxtools.Device, tail: str = ""
) -> list[int]:
    body = "".join(
        f"{instruction}.{name}.b32 %d, [%t]{tail}; st.global.u32 [%o+{4 * n}], %d;\n" for n, name in enumerate(names)
    )
    text = (
        HEAD.format(option="", globals="")
        + f""".visible .entry k(.param .u64 t, .param .u64 out) {{
  .reg .b64 %t, %o; .reg .b32 %d; ld.param.u64 %t, [t]; ld.param.u64 %o, [out];
  {body} ret; }}"""
    )
    out = np.zeros(len(names), np.uint32)
    device.launch(ptxtools.loads(text)["k"], 1, 1, [texture, out])
    return out.tolist()


def test_queries_of_a_texture() -> None:
    device = ptxtools.Device()
    texture = device.texture(
        device.alloc(4096), "a2d", type="u8", channels=2, size=[8, 4, 3], levels=2, read="normalized_float",
        filter="linear", address=["wrap", "mirror", "border"], normalized=True,
    )  # fmt: skip
    names = ("width", "height", "depth", "array_size", "num_mipmap_levels", "num_samples", "channel_data_type",
             "channel_order", "normalized_coords", "filter_mode", "addr_mode_0", "addr_mode_1",
             "addr_mode_2")  # fmt: skip
    assert queries("txq", names, texture, device) == [8, 4, 1, 3, 2, 0, 0x10D2, 0x10B1, 1, 1, 0, 1, 4]
    assert queries("txq.level", ("width", "height"), texture, device, ", 1") == [4, 2]


def test_queries_of_a_surface() -> None:
    device = ptxtools.Device()
    surface = device.surface(device.alloc(4096), "3d", type="f16", channels=4, size=[4, 5, 6])
    names = ("width", "height", "depth", "array_size", "channel_data_type", "channel_order", "memory_layout")
    assert queries("suq", names, surface, device) == [4, 5, 6, 0, 0x10DD, 0x10B5, 0]


MODULE = (
    HEAD.format(
        option=", texmode_independent",
        globals="""
.global .texref image;
.global .surfref canvas;
.global .samplerref smooth = { filter_mode = linear, addr_mode_0 = clamp_to_border, addr_mode_1 = clamp_to_edge,
                               force_unnormalized_coords = 1 };
""",
    )
    + """.visible .entry k(.param .u64 out) {
  .reg .b64 %o, %a; .reg .f32 %f<4>, %x, %y; .reg .b32 %r<4>, %z; .reg .pred %p, %q, %s;
  mov.f32 %x, 0f3F800000; mov.f32 %y, 0f00000000; mov.b32 %z, 4;
  ld.param.u64 %o, [out];
  tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [image, smooth, {%x, %x}];
  st.global.f32 [%o], %f0;
  tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [image, smooth, {%y, %x}];
  st.global.f32 [%o+4], %f0;
  txq.filter_mode.b32 %r0, [smooth];
  st.global.u32 [%o+8], %r0;
  mov.u64 %a, image;
  istypep.texref %p, %a;
  istypep.samplerref %q, %a;
  mov.u64 %a, canvas;
  istypep.surfref %s, %a;
  selp.u32 %r0, 1, 0, %p; selp.u32 %r1, 2, 0, %q; selp.u32 %r2, 4, 0, %s;
  or.b32 %r0, %r0, %r1; or.b32 %r0, %r0, %r2;
  st.global.u32 [%o+12], %r0;
  sust.b.1d.b32.trap [canvas, {%z}], %r0;
  ret; }"""
)


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_references_and_samplers_of_a_module(engine: str) -> None:
    device = ptxtools.Device(engine=engine)
    module = ptxtools.loads(MODULE)
    pixels = np.array([[1, 2], [3, 4]], np.float32)
    canvas = device.upload(np.zeros(4, np.uint32))
    device.bind(module, "image", device.texture(device.upload(pixels), type="f32", size=[2, 2], normalized=True))
    device.bind(module, "canvas", device.surface(canvas, "1d", type="u32", size=[4]))
    out = np.zeros(4, np.float32)
    device.launch(module["k"], 1, 1, [out])
    assert out[:2].tolist() == [2.5, 1.0]  # the mean of four; half of it border
    assert out.view(np.uint32)[2:].tolist() == [1, 5]
    assert canvas.download().tolist() == [0, 5, 0, 0]


def test_nothing_bound() -> None:
    with pytest.raises(ptxtools.Trap, match="is not a texture or surface: nothing is bound to that variable"):
        ptxtools.Device().launch(ptxtools.loads(MODULE)["k"], 1, 1, [np.zeros(4, np.float32)])
    device = ptxtools.Device()
    texture = device.texture(device.alloc(16), type="f32", size=[2, 2])
    with pytest.raises(ptxtools.LaunchError, match=r"no \.texref or \.surfref variable 'smooth'"):
        device.bind(ptxtools.loads(MODULE), "smooth", texture)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "4d"}, "no kind of texture '4d'"),
        ({"type": "f64"}, "no channel type 'f64'"),
        ({"size": [3]}, "the size of a 2d texture has 2 numbers, not 1"),
        ({"size": [0, 4]}, "is empty"),
        ({"size": [5, 4]}, "takes 80 bytes; its buffer has 64"),
        ({"channels": 3}, "1, 2 or 4 channels"),
        ({"filter": "soft"}, "no filter 'soft'"),
        ({"address": ["clamp", "up"]}, "no address mode 'up'"),
        ({"address": ["clamp"] * 4}, "4 address modes"),
        ({"type": "s32", "filter": "linear"}, "linear filtering requires floats"),
        ({"read": "normalized_float"}, "f32 cannot be read as normalized floats"),
        ({"levels": 4}, "4 levels are too many"),
        ({"levels": 0}, "at least one level"),
        ({"pitch": 8}, "a pitch of 8 bytes is less than a row of 16"),
        ({"colour": "red"}, "unexpected keyword argument 'colour'"),
    ],
)
def test_what_cannot_be_a_texture(fields: dict[str, Any], message: str) -> None:
    device = ptxtools.Device()
    buffer = device.alloc(64)
    with pytest.raises(ptxtools.LaunchError, match=message):
        device.texture(buffer, **{"type": "f32", "size": [4, 4], **fields})


def test_a_pitch_leaves_room_between_rows() -> None:
    device = ptxtools.Device()
    data = np.arange(16, dtype=np.float32).reshape(4, 4)
    texture = device.texture(device.upload(data) + 4, type="f32", size=[2, 3], pitch=16)
    module = fetcher("tex.2d.v4.f32.s32", "[%t, {%c0, %c1}]", 2)
    got = fetch(module, texture, np.array([[0, 0], [1, 2]], np.int32), device=device).view(np.float32)[:, 0]
    assert got.tolist() == [1, 10]


def test_other_arguments() -> None:
    module = fetcher("tex.2d.v4.f32.s32", "[%t, {%c0, %c1}]", 2)
    device, other = ptxtools.Device(), ptxtools.Device()
    texture = other.texture(other.alloc(64), type="f32", size=[4, 4])
    rows = np.zeros((1, 2), np.int32)
    with pytest.raises(ptxtools.LaunchError, match="belongs to another device"):
        fetch(module, texture, rows, device=device)
    with pytest.raises(ptxtools.Trap, match=r"read of 8 bytes at 0x1238? is out of bounds"):
        fetch(module, 0x1238, rows, device=device)
    line = device.texture(device.alloc(64), "1d", type="f32", size=[4])
    with pytest.raises(ptxtools.Trap, match=r"\.2d does not fit a texture of kind 1d"):
        fetch(module, line, rows, device=device)


LAUNCH = """module = "k.ptx"
grid = 1
block = 1
args = [{texture="t"}, {buffer="in"}, {buffer="out"}]
[buffers.pixels]
arange = "f32[16]"
[buffers.in]
fill = {type = "s32[2]", value = 2}
[buffers.out]
zeros = "f32[4]"
expect = "out.npy"
[textures.t]
kind = "2d"
buffer = "pixels"
type = "f32"
size = [4, 4]
"""


@pytest.mark.parametrize(
    ("old", "new", "status", "says"),
    [
        ("", "", 0, ""),
        ("size = [4, 4]", "size = [5, 4]", 1, "texture 't': the texture takes 80 bytes; its buffer has 64"),
        ("size = [4, 4]", "size = 4", 2, "textures.t.size: must be a list"),
        ('buffer = "pixels"', 'buffer = "pixel"', 2, "there is no [buffers.pixel]"),
        ('{texture="t"}', '{texture="u"}', 2, "there is no [textures.u]"),
        ('type = "f32"\nsize', 'types = "f32"\nsize', 2, "unknown key 'types'"),
    ],
)
def test_launch_files(tmp_path: Path, capsys: Any, old: str, new: str, status: int, says: str) -> None:
    text = (
        HEAD.format(option="", globals="")
        + """.visible .entry k(.param .u64 t, .param .u64 in, .param .u64 out) {
  .reg .b64 %t, %a; .reg .f32 %f<4>; .reg .b32 %c<2>;
  ld.param.u64 %t, [t]; ld.param.u64 %a, [in]; ld.global.v2.b32 {%c0, %c1}, [%a];
  tex.2d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%t, {%c0, %c1}];
  ld.param.u64 %a, [out]; st.global.v4.f32 [%a], {%f0, %f1, %f2, %f3}; ret; }"""
    )
    (tmp_path / "k.ptx").write_text(text)
    np.save(tmp_path / "out.npy", np.array([10, 0, 0, 1], np.float32))
    (tmp_path / "case.toml").write_text(LAUNCH.replace(old, new))
    assert exit_status(command, "ptx-run", ["--launch", str(tmp_path / "case.toml")]) == status
    assert says in capsys.readouterr().err
