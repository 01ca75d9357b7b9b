"""Every mode, type and layout of tensor copies in kernels, against their definition (9.7.9.25.5)."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.rows import rows

from .model import SWIZZLES, UNITS, Copy, load, store

ENGINES = pytest.mark.parametrize("engine", ["native", "reference"])


def image(
    spatial: int, *, low: int = -1, high: int = -1, pixels: int = 23, channels: int = 16, **more: Any
) -> dict[str, Any]:
    """Fields of a map for im2col copies."""
    corners = {"lower_corner": [low] * spatial, "upper_corner": [high] * spatial}
    return {**corners, "channels_per_pixel": channels, "pixels_per_column": pixels, **more}


def both(found: tuple[Any, Any]) -> None:
    got, wanted = found
    np.testing.assert_array_equal(got, wanted)


# --- tiles ------------------------------------------------------------------------------------------------------------

#: Boxes of each rank, at places in the middle and over the edges.
TILES = [
    ((40,), (16,), (-5,)), ((40,), (16,), (30,)), ((40, 9), (16, 4), (8, 7)), ((40, 9), (16, 4), (-8, -2)),
    ((24, 5, 6), (16, 2, 3), (9, 4, -1)), ((16, 3, 4, 5), (16, 2, 3, 2), (-3, 2, 0, 4)),
    ((16, 3, 2, 3, 2), (16, 2, 2, 2, 2), (4, -1, 1, 2, 0)), ((16, 3, 2, 3, 2), (16, 2, 2, 2, 2), (4, 7, 1, 2, 0)),
]  # fmt: skip


@pytest.mark.share(3)
@ENGINES
@pytest.mark.parametrize(("shape", "box", "at"), TILES)
def test_tiles_of_each_rank(shape: Any, box: Any, at: Any, engine: str) -> None:
    copy = Copy("u16", shape, at, fields={"box": list(box)})
    both(load(copy, engine))
    both(store(copy, engine))


@ENGINES
@rows("type_", UNITS, share=3)
def test_each_type(type_: str, engine: str) -> None:
    """Rows that leave the tensor, filled with zeros, and with NaN where there is one."""
    padded = type_ in ("b4x16_p64", "b6x16_p32")
    width = 128 if padded else 32
    copy = Copy(type_, (2 * width, 5), (width, 3), fields={"box": [width, 4]})
    both(load(copy, engine))
    if type_ != "b4x16_p64":
        both(store(copy, engine))
    if "f" in type_:
        both(load(Copy(type_, (64, 5), (48, 3), fields={"box": [32, 4], "fill": "nan"}), engine))


@ENGINES
@rows("dst", ["shared::cta", "shared::cluster"], share=3)
@rows("swizzle", SWIZZLES)
def test_each_swizzle_mode(swizzle: str, dst: str, engine: str) -> None:
    """Rows as long as the mode mixes, and shorter ones."""
    span = SWIZZLES[swizzle][0] or 64
    for width in {span, 16, span // 2}:
        copy = Copy("u8", (160, 21), (32, -2), fields={"box": [width, 19], "swizzle": swizzle})
        both(load(copy, engine, dst=dst))
        if "flip" not in swizzle:
            both(store(copy, engine))


@ENGINES
@pytest.mark.parametrize(("type_", "swizzle"), [
    (t, s) for t in ("b4x16_p64", "b6x16_p32") for s in ("none", "128B", "128B_atom_32B", "128B_atom_64B")
])  # fmt: skip
def test_padded_types_swizzled(type_: str, swizzle: str, engine: str) -> None:
    copy = Copy(type_, (256, 12), (128, 3), fields={"box": [128, 9], "swizzle": swizzle})
    both(load(copy, engine))


@ENGINES
@pytest.mark.parametrize("steps", [(1, 2), (1, 8), (5, 3)])
def test_element_strides(steps: tuple[int, int], engine: str) -> None:
    """Every n-th row; dimension 0 has none."""
    copy = Copy("u32", (24, 30), (4, 2), fields={"box": [8, 17], "element_strides": list(steps)})
    copy.steps = [1, steps[1]]
    both(load(copy, engine))
    both(store(copy, engine))


@ENGINES
@pytest.mark.parametrize("type_", ["u8", "f16", "f32"])
def test_four_rows(type_: str, engine: str) -> None:
    for at in ((0, 3, 1, 4, 1), (16, 7, -1, 0, 6)):
        fields = {"box": [32, 1], "swizzle": "128B"}
        both(load(Copy(type_, (48, 7), at, "tile::gather4", fields=fields), engine))
    both(store(Copy(type_, (48, 7), (16, 5, 2, 0, 9), "tile::scatter4", fields=fields), engine))


# --- im2col -----------------------------------------------------------------------------------------------------------

PIXELS = {3: (7,), 4: (5, 6), 5: (4, 3, 5)}


@pytest.mark.share(3)
@ENGINES
@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("rank", PIXELS)
def test_im2col(rank: int, steps: int, engine: str) -> None:
    spatial = rank - 2
    shape = (24, *PIXELS[rank], 3)
    strides = [1, *[steps] * spatial, 1]
    for at, info in (
        ((0,) + (-1,) * spatial + (0,), (0,) * spatial),
        ((8,) + (1,) * spatial + (1,), (2, 1, 0)[:spatial]),
    ):
        fields = image(spatial, element_strides=strides, swizzle="64B", fill="nan")
        both(load(Copy("f16", shape, at, "im2col", info, fields), engine))


@ENGINES
@pytest.mark.parametrize("rank", PIXELS)
def test_im2col_stores(rank: int, engine: str) -> None:
    """Boxes inside of the tensor; pixels behind the last image are left out."""
    spatial = rank - 2
    fields = image(spatial, low=0, high=-1)
    copy = Copy("u16", (24, *PIXELS[rank], 2), (8, *[1] * spatial, 1), "im2col_no_offs", fields=fields)
    both(store(copy, engine))


@ENGINES
@rows("swizzle", ["64B", "128B", "128B_atom_32B"], share=3)
@rows("rank", PIXELS)
def test_im2col_w(rank: int, swizzle: str, engine: str) -> None:
    """Halo pixels, moved bounding boxes, strides, and a first pixel left of the box."""
    shape = (32, *PIXELS[rank], 9)
    for w, info, steps in ((0, (0, 0), 1), (-1, (2, 1), 1), (-4, (5, 0), 1), (1, (3, 2), 2)):
        fields = image(1, swizzle=swizzle, element_strides=[1, steps, *[1] * (rank - 2)])
        at = (8, w, *[1] * (rank - 3), 2)
        both(load(Copy("u16", shape, at, "im2col::w", info, fields), engine))


@pytest.mark.share(3)
@ENGINES
@pytest.mark.parametrize("rank", PIXELS)
def test_im2col_w_128(rank: int, engine: str) -> None:
    """The column has 128 pixels, whatever the map says."""
    shape = (16, *PIXELS[rank], 50)
    for w, info in ((0, (0, 0)), (-1, (1, 0)), (2, (3, 1))):
        fields = image(1, swizzle="64B", pixels=5)
        both(
            load(
                Copy("u8", shape, (0, w, *[1] * (rank - 3), 2), "im2col::w::128", info, fields),
                engine,
                dst="shared::cluster",
            )
        )


# --- interleaved tensors ----------------------------------------------------------------------------------------------


@pytest.mark.share(3)
@ENGINES
@pytest.mark.parametrize("slices", ["16B", "32B"])
@pytest.mark.parametrize("rank", PIXELS)
def test_interleaved(rank: int, slices: str, engine: str) -> None:
    spatial = rank - 2
    layout = {"interleave": slices, "swizzle": "32B" if slices == "32B" else "none"}
    shape = (*PIXELS[rank], 3, 2)
    fields = {"box": [*[3, 2, 2][:spatial], 2, 2], "element_strides": [2, 1, 1, 1, 1][:rank], **layout}
    copy = Copy("f16", shape, (*(-1, 1, 2)[:spatial], 2, 0), fields=fields)
    both(load(copy, engine))
    both(store(copy, engine))
    column = Copy(
        "f16", shape, (*[0] * spatial, 1, 0), "im2col", (1, 2, 0)[:spatial], image(spatial, fill="nan", **layout)
    )
    both(load(column, engine))


# --- reductions -------------------------------------------------------------------------------------------------------

FORMATS = {"u32": np.uint32, "s32": np.int32, "u64": np.uint64, "s64": np.int64, "f16": np.float16,
           "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f32.ftz": np.float32}  # fmt: skip
CHANGES: dict[str, Any] = {
    "add": lambda a, b: a + b, "min": np.minimum, "max": np.maximum, "and": lambda a, b: a & b,
    "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "inc": lambda a, b: np.where(a >= b, 0, a + 1),
    "dec": lambda a, b: np.where((a == 0) | (a > b), b, a - 1),
}  # fmt: skip
WHOLE = ("u32", "s32", "u64", "s64")
REDUCTIONS = [
    *[("add", t) for t in ("u32", "s32", "u64", "f16", "bf16", "f32", "f32.ftz")],
    *[(o, t) for o in ("min", "max") for t in (*WHOLE, "f16", "bf16")],
    ("inc", "u32"), ("dec", "u32"), *[(o, t) for o in ("and", "or", "xor") for t in WHOLE],
]  # fmt: skip


def numbers(type_: str, count: int, seed: int) -> Any:
    """Values with ties, extremes and, for floats, subnormals."""
    rng, dtype = np.random.default_rng(seed), np.dtype(FORMATS[type_])
    if type_ in WHOLE:
        wide = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, count, dtype, endpoint=True)
        return np.where(rng.random(count) < 0.5, wide, rng.integers(0, 4, count, dtype))
    scale = float(ml_dtypes.finfo(dtype).smallest_normal)
    return np.where(rng.random(count) < 0.3, rng.normal(size=count) * scale, rng.normal(size=count)).astype(dtype)


def reduced(operation: str, type_: str) -> Any:
    dtype = FORMATS[type_]

    def flushed(x: Any) -> Any:
        return np.where(np.abs(x) < np.finfo(np.float32).smallest_normal, np.copysign(np.float32(0), x), x)

    def change(old: Any, new: Any) -> Any:
        a, b = old.view(dtype), new.view(dtype)
        if type_ == "f32.ftz":
            return flushed(flushed(a) + flushed(b)).astype(dtype).view(np.uint8)
        if type_ in ("f16", "bf16"):
            a, b = a.astype(np.float64), b.astype(np.float64)
        with np.errstate(over="ignore"):
            return np.asarray(CHANGES[operation](a, b)).astype(dtype).view(np.uint8)

    return change


@ENGINES
@rows(("operation", "type_"), REDUCTIONS, share=3)
def test_tensor_reductions(operation: str, type_: str, engine: str) -> None:
    copy = Copy(type_, (24, 9), (12, 3), fields={"box": [16, 8], "swizzle": "128B"})
    if UNITS[type_][1] == 8:
        copy.fields["swizzle"] = copy.swizzle = "none"
    size = np.dtype(FORMATS[type_]).itemsize
    tensor = numbers(type_, copy.tensor_bytes // size, 1).view(np.uint8)
    room = numbers(type_, copy.extent() // size, 2).view(np.uint8)
    if type_ == "u64" and operation == "add":
        tensor[:] = 255
    both(store(copy, engine, operation=operation, change=reduced(operation, type_), tensor=tensor, room=room))


@ENGINES
@pytest.mark.parametrize(("copy", "operation"), [
    (Copy("u32", (24, 5, 6, 2), (8, 1, 1, 0), "im2col_no_offs", fields=image(2, low=0, high=0)), "add"),
    (Copy("s32", (7, 5, 2, 3), (1, 2, 1, 0), fields={"box": [4, 3, 1, 2], "interleave": "16B"}), "max"),
])  # fmt: skip
def test_reductions_in_other_layouts(copy: Copy, operation: str, engine: str) -> None:
    change = reduced(operation, "u32" if copy.type == "u32" else "s32")
    both(store(copy, engine, operation=operation, change=change))


# --- late and in any order --------------------------------------------------------------------------------------------


@pytest.mark.share(3)
@ENGINES
@pytest.mark.parametrize("options", [{"seed": 0}, {"seed": 1}, {"seed": 2}, {"checks": "asynccheck"}, {"threads": 2}])
def test_when_copies_complete(options: dict[str, Any], engine: str) -> None:
    tile = Copy("f16", (40, 9), (-8, 5), fields={"box": [32, 6], "swizzle": "64B"})
    both(load(tile, engine, **options))
    both(store(tile, engine, **options))
    wide = Copy("u8", (16, 7, 50), (0, -1, 2), "im2col::w::128", (1, 0), image(1, swizzle="64B"))
    both(load(wide, engine, **options))
    both(store(Copy("s32", (24, 9), (4, 3), fields={"box": [16, 8]}), engine, operation="max",
               change=reduced("max", "s32"), **options))  # fmt: skip
