"""PNG files as textures, surfaces and buffers: the example, launch files, options, and what is no picture."""

from __future__ import annotations

import builtins
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxtools.cli.common import exit_status
from ptxtools.cli.run import command
from ptxtools.launch.errors import SpecError
from ptxtools.launch.output import save_array
from ptxtools.launch.pictures import read_picture

from . import formulas

pytest.importorskip("PIL")
BLUR = Path(__file__).resolve().parents[3] / "examples" / "blur"


def blurred(picture: Any, radius: float) -> Any:
    """What the example computes, in float64."""
    texels = picture / 255
    height, width, _ = texels.shape
    result = np.zeros_like(texels)
    how: Any = {"linear": True, "modes": ("mirror", "mirror"), "normalized": True}
    steps = [(i - 1.5) * radius + 0.5 for i in range(4)]
    for y in range(height):
        for x in range(width):
            places = [((x + u) / width, (y + v) / height) for v in steps for u in steps]
            result[y, x] = np.mean([formulas.fetch(texels, place, **how) for place in places], axis=0)
    return result * 255


@pytest.fixture
def blur(tmp_path: Path) -> Path:
    """The example, with a smaller picture."""
    folder = tmp_path / "blur"
    shutil.copytree(BLUR, folder, ignore=shutil.ignore_patterns("out.png"))
    save_array(str(folder / "in.png"), read_picture(str(folder / "in.png"))[:12, :16])
    text = (folder / "blur.toml").read_text().replace("size     = [64, 48]", "size     = [16, 12]")
    (folder / "blur.toml").write_text(text)
    return folder


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_the_example_blurs(blur: Path, engine: str) -> None:
    assert exit_status(command, "ptx-run", ["--launch", str(blur / "blur.toml"), "--engine", engine]) == 0
    got = read_picture(str(blur / "out.png")).astype(float)
    assert np.abs(got - blurred(read_picture(str(blur / "in.png")), 1.5)).max() <= 1


def test_options_say_the_same(blur: Path) -> None:
    assert exit_status(command, "ptx-run", ["--launch", str(blur / "blur.toml")]) == 0
    arguments = [
        f"texture:{blur / 'in.png'},filter=linear,address=mirror/mirror,normalized=true,read=normalized_float",
        "surface:zeros:u8[12,16,4],read=normalized_float", "1.5",
    ]  # fmt: skip
    options = ["--grid", "4,6", "--block", "16,8", "--save", f"1={blur / 'b.png'}", "--expect", f"1={blur / 'out.png'}"]
    for argument in arguments:
        options += ["--arg", argument]
    assert exit_status(command, "ptx-run", [str(blur / "blur.ptx"), *options]) == 0
    assert (blur / "b.png").read_bytes() == (blur / "out.png").read_bytes()


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((5, 7), np.uint8), ((5, 7, 2), np.uint8), ((5, 7, 4), np.uint8), ((5, 7), np.uint16)],
)
def test_pictures_come_back(tmp_path: Path, shape: tuple[int, ...], dtype: Any) -> None:
    pixels = np.random.default_rng(3).integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    save_array(str(tmp_path / "a.png"), pixels)
    got = read_picture(str(tmp_path / "a.png"))
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, pixels)


def test_other_modes(tmp_path: Path) -> None:
    """RGB gains alpha, a palette its colours, one channel its axis no more; floats become 8 bits."""
    from PIL import Image

    path = str(tmp_path / "a.png")
    rgb = np.array([[[1, 2, 3], [4, 5, 6]]], np.uint8)
    save_array(path, rgb)
    assert read_picture(path).tolist() == [[[1, 2, 3, 255], [4, 5, 6, 255]]]
    Image.fromarray(rgb).quantize(4).save(path)
    assert read_picture(path).tolist() == [[[1, 2, 3, 255], [4, 5, 6, 255]]]
    Image.fromarray(np.array([[0, 255]], np.uint8)).convert("1").save(path)
    assert read_picture(path).tolist() == [[0, 255]]
    save_array(path, np.array([[[-1.0], [0.5], [np.nan], [9.0]]], np.float32))
    assert read_picture(path).tolist() == [[0, 128, 0, 255]]


@pytest.mark.parametrize("array", [np.zeros(5, np.uint8), np.zeros((2, 2, 5), np.uint8), np.zeros((2, 2, 4), np.uint16),
                                   np.zeros((2, 2), np.int32), np.zeros((0, 2), np.uint8)])  # fmt: skip
def test_what_is_no_picture(tmp_path: Path, array: Any) -> None:
    with pytest.raises(SpecError, match=r"is not a picture: use \[height, width\]"):
        save_array(str(tmp_path / "a.png"), array)
    assert list(tmp_path.iterdir()) == []


def test_damaged_files(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    save_array(str(path), np.arange(100, dtype=np.uint8).reshape(10, 10))
    whole = path.read_bytes()
    for data in (whole[:40], whole[:8], whole[:30] + bytes(20) + whole[50:], whole[:-30] + bytes(30)):
        path.write_bytes(data)
        with pytest.raises(SpecError, match=r"a\.png: "):
            read_picture(str(path))
    path.write_bytes(whole[:24] + b"\x10\x02" + whole[26:])
    with pytest.raises(SpecError, match="16-bit colours cannot be read"):
        read_picture(str(path))


def test_without_pillow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    save_array(str(tmp_path / "a.png"), np.zeros((2, 2), np.uint8))
    real = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name == "PIL":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    for action in (lambda: read_picture(str(tmp_path / "a.png")),
                   lambda: save_array(str(tmp_path / "b.png"), np.zeros((2, 2), np.uint8))):  # fmt: skip
        with pytest.raises(SpecError, match=r"pictures need Pillow: pip install 'ptxtools\[images\]'"):
            action()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('file       = "in.png"', 'file       = "no.png"', "no.png: cannot be read: No such file"),
        ('file       = "in.png"', 'kind       = "3d"\nfile = "flat.npy"', "size is missing, and [4] does not give it"),
        ('file       = "in.png"', "# file", "texture 'image': type is missing"),
        ('type     = "u8"', 'type     = "u9"', "requires a known type"),
        ("size     = [16, 12]", "size     = [0, 12]", "requires a known type, a size"),
        ("size     = [16, 12]", "size     = [1099511627776, 1099511627776]", "is too large"),
        ('save     = "out.png"', 'save     = "no/out.png"', "cannot be written"),
        ('save     = "out.png"', 'buffer = "b"\nsave = "out.png"', "belongs in the texture's buffer"),
        ("channels = 4", "channels = 4\ncolour = 1", "unknown key 'colour'"),
    ],
)
def test_wrong_launch_files(blur: Path, capsys: Any, old: str, new: str, says: str) -> None:
    np.save(blur / "flat.npy", np.zeros(4, np.float32))
    text = (blur / "blur.toml").read_text()
    assert old in text
    (blur / "blur.toml").write_text(text.replace(old, new))
    assert exit_status(command, "ptx-run", ["--launch", str(blur / "blur.toml")]) in (1, 2)
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argument", "says"),
    [
        ("texture:42", "'42' is not valid content for a texture"),
        ("texture:zeros:f32[4,4],colour=3", "unknown key 'colour'"),
        ("texture:zeros:f32[4,4],filter=soft", "no filter 'soft'"),
        ("texture:zeros:f32[4,4],size=4/a", "size: must be a list of numbers"),
        ("texture:zeros:f64[4,4]", "no channel type 'f64'"),
        ("surface:zeros:u8[4,4],kind=cube,seamless=maybe", "seamless: must be true or false"),
    ],
)
def test_wrong_options(blur: Path, capsys: Any, argument: str, says: str) -> None:
    options = ["--grid", "1", "--block", "1", "--arg", argument, "--arg", "null", "--arg", "1.5"]
    assert exit_status(command, "ptx-run", [str(blur / "blur.ptx"), *options]) in (1, 2)
    assert says in capsys.readouterr().err


def test_a_picture_as_a_plain_buffer(tmp_path: Path) -> None:
    """Inverted in place: file, expect and save of a buffer."""
    pixels = np.arange(64, dtype=np.uint8).reshape(8, 8)
    save_array(str(tmp_path / "in.png"), pixels)
    save_array(str(tmp_path / "want.png"), 255 - pixels)
    (tmp_path / "k.ptx").write_text(""".version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 p) { .reg .b64 %p; .reg .b32 %i; .reg .b16 %h; .reg .b64 %o;
  ld.param.u64 %p, [p]; mov.u32 %i, %tid.x; cvt.u64.u32 %o, %i; add.u64 %p, %p, %o;
  ld.global.u8 %h, [%p]; xor.b16 %h, %h, 255; st.global.u8 [%p], %h; ret; }""")
    (tmp_path / "k.toml").write_text("""module = "k.ptx"
grid = 1
block = 64
args = [{buffer="b"}]
[buffers.b]
file = "in.png"
expect = "want.png"
save = "out.png"
""")
    assert exit_status(command, "ptx-run", ["--launch", str(tmp_path / "k.toml")]) == 0
    assert read_picture(str(tmp_path / "out.png")).tolist() == (255 - pixels).tolist()
