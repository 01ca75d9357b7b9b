"""The SPEC of --arg: every form, what it makes, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ptxtools.launch.arguments import BufferArgument, Null, Raw, Scalar
from ptxtools.launch.elements import ELEMENTS, decode, element_type, encode
from ptxtools.launch.errors import SpecError
from ptxtools.launch.spec import parse_indexed, parse_shape, parse_spec
from tests.rows import rows


@pytest.mark.parametrize(
    ("text", "value", "type_"),
    [
        ("42", 42, None),
        ("-7", -7, None),
        ("+7", 7, None),
        ("0x2a", 42, None),
        ("-0x10", -16, None),
        ("0b101", 5, None),
        ("1_000", 1000, None),
        ("007", 7, None),
        ("1.5", 1.5, None),
        ("-1e-3", -1e-3, None),
        ("inf", float("inf"), None),
        ("f32:1.5", 1.5, "f32"),
        ("f16:2", 2.0, "f16"),
        ("s8:-1", -1, "s8"),
        ("u32:0xffffffff", 0xFFFFFFFF, "u32"),
    ],
)
def test_numbers(text: str, value: float, type_: str | None) -> None:
    got = parse_spec(text)
    assert isinstance(got, Scalar)
    assert got.value == value
    assert type(got.value) is type(value)
    assert (got.type.name if got.type else None) == type_


def test_nan_is_a_number() -> None:
    got = parse_spec("nan")
    assert isinstance(got, Scalar) and got.value != got.value


def test_null() -> None:
    assert parse_spec("null") == Null()


@pytest.mark.parametrize(
    ("text", "data"), [("bytes:00ff", b"\x00\xff"), ("bytes:", b""), ("bytes:DE_AD be ef", b"\xde\xad\xbe\xef")]
)
def test_bytes(text: str, data: bytes) -> None:
    assert parse_spec(text) == Raw(data)


def test_bytes_of_a_file(tmp_path) -> None:
    (tmp_path / "p.bin").write_bytes(b"\x01\x02")
    assert parse_spec(f"@{tmp_path}/p.bin") == Raw(b"\x01\x02")


def content(text: str) -> np.ndarray:
    got = parse_spec(text)
    assert isinstance(got, BufferArgument) and got.content is not None
    return got.content.array()


def test_file(tmp_path) -> None:
    np.save(tmp_path / "a.npy", np.arange(6, dtype=np.int16).reshape(2, 3))
    array = content(f"{tmp_path}/a.npy")
    assert array.dtype == np.int16 and array.tolist() == [[0, 1, 2], [3, 4, 5]]


@rows(
    ("text", "expected"),
    [
        ("zeros:f32[4]", np.zeros(4, np.float32)),
        ("zeros:bf16[2,2]", np.zeros((2, 2), np.uint16)),
        ("zeros:e2m1[3]", np.zeros(3, np.uint8)),
        ("zeros:u8[0]", np.zeros(0, np.uint8)),
        ("fill:f32[3]=1.5", np.full(3, 1.5, np.float32)),
        ("fill:f16[2]=0.1", np.full(2, 0.1, np.float16)),
        ("fill:bf16[2]=1", np.full(2, 0x3F80, np.uint16)),
        ("fill:tf32[1]=0.1", np.array([0x3DCCC000], np.uint32)),
        ("fill:e4m3[1]=1.5", np.array([0x3C], np.uint8)),
        ("fill:e5m2[1]=1.5", np.array([0x3E], np.uint8)),
        ("fill:e2m3[1]=1.5", np.array([0x0C], np.uint8)),
        ("fill:e3m2[1]=1.5", np.array([0x0E], np.uint8)),
        ("fill:e2m1[1]=-1.5", np.array([0x0B], np.uint8)),
        ("fill:ue8m0[1]=2", np.array([128], np.uint8)),
        ("fill:s8[2]=-1", np.full(2, -1, np.int8)),
        ("fill:u8[2]=-1", np.full(2, 255, np.uint8)),
        ("fill:s32[1]=0xffffffff", np.full(1, -1, np.int32)),
        ("fill:u64[1]=0xffffffffffffffff", np.full(1, 2**64 - 1, np.uint64)),
        ("fill:f32[1]=inf", np.full(1, np.inf, np.float32)),
        ("arange:s32[4]", np.arange(4, dtype=np.int32)),
        ("arange:f64[2,2]", np.arange(4, dtype=np.float64).reshape(2, 2)),
        ("arange:u8[258]", (np.arange(258) % 256).astype(np.uint8)),
        ("arange:bf16[3]", np.array([0, 0x3F80, 0x4000], np.uint16)),
    ],
)
def test_made_buffers(text: str, expected: np.ndarray) -> None:
    array = content(text)
    assert array.dtype == expected.dtype
    assert array.shape == expected.shape
    assert array.tobytes() == expected.tobytes()


def test_random_floats_are_those_of_numpy() -> None:
    expected = np.random.default_rng(7).random((32, 32), dtype=np.float32)
    assert np.array_equal(content("random:f32[32,32]@7"), expected)
    assert np.array_equal(content("random:f64[5]@1"), np.random.default_rng(1).random(5))


def test_random_integers_cover_the_full_range() -> None:
    expected = np.random.default_rng(3).integers(-128, 127, 4096, dtype=np.int8, endpoint=True)
    array = content("random:s8[4096]@3")
    assert np.array_equal(array, expected)
    assert {array.min(), array.max()} == {-128, 127}
    assert content("random:u64[64]@3").max() > 2**63


@pytest.mark.parametrize("name", ["f16", "bf16", "tf32", "e4m3", "e5m2"])
def test_random_floats_stay_below_one(name: str) -> None:
    values = decode(content(f"random:{name}[20000]@0"), element_type(name)).astype(np.float64)
    assert values.min() >= 0 and values.max() < 1
    assert 0.4 < values.mean() < 0.6


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not an argument"),
        ("hello", "is not an argument"),
        ("nul", "did you mean 'null'"),
        ("zero:f32[4]", "did you mean 'zeros'"),
        ("f33:1.5", "did you mean"),
        ("f32:one", "is not a number"),
        ("u8:256", "does not fit into u8"),
        ("s8:-129", "does not fit into s8"),
        ("u8:1.5", "not an integer"),
        ("zeros:f32", "is not TYPE[SIZE,…]"),
        ("zeros:f32[]", "is not a list of sizes"),
        ("zeros:f32[-1]", "is not a list of sizes"),
        ("zeros:f32[4", "is not TYPE[SIZE,…]"),
        ("zeros:float[4]", "unknown element type 'float'"),
        ("zeros:f32[99999999999999999999]", "too large"),
        ("fill:f32[4]", "is not fill:TYPE[SIZE,…]=VALUE"),
        ("fill:u8[4]=300", "does not fit into u8"),
        ("fill:u8[4]=x", "is not fill:TYPE"),
        ("random:f32[4]@x", "is not a seed"),
        ("random:f32[4]@-1", "is not a seed"),
        ("bytes:0", "an odd number of hexadecimal digits"),
        ("bytes:zz", "other characters than hexadecimal digits"),
        ("@none/file", "cannot be read"),
    ],
)
def test_refused(text: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpecError) as caught:
        parse_spec(text)
    assert says in str(caught.value)


def test_unreadable_arrays(tmp_path) -> None:
    (tmp_path / "noise.npy").write_bytes(b"\x93NUMPY\x01\x00junk")
    (tmp_path / "text.npy").write_text("1 2 3")
    (tmp_path / "empty.npy").write_bytes(b"")
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "many.npz", a=np.zeros(2))
    (tmp_path / "many.npz").rename(tmp_path / "many.npy")
    for name in ("noise", "text", "empty", "objects", "many", "missing"):
        with pytest.raises(SpecError):
            content(f"{tmp_path}/{name}.npy")


def test_big_endian_arrays_are_turned_round(tmp_path) -> None:
    np.save(tmp_path / "big.npy", np.arange(3, dtype=">i4"))
    assert content(f"{tmp_path}/big.npy").tobytes() == np.arange(3, dtype="<i4").tobytes()


@pytest.mark.parametrize("name", [n for n, t in ELEMENTS.items() if t.kind == "f"])
def test_stored_floats_come_back(name: str) -> None:
    element = element_type(name)
    values = np.array([1.0, 2.0, 0.5] if name != "ue8m0" else [1.0, 2.0, 4.0])
    assert decode(encode(values, element), element).tolist() == values.tolist()


@pytest.mark.parametrize(
    ("text", "shape"),
    [("4", (4, 1, 1)), ("4,2", (4, 2, 1)), ("4, 2, 3", (4, 2, 3)), ("0", (0, 1, 1)), ("-1", (-1, 1, 1))],
)
def test_shapes(text: str, shape: tuple[int, int, int]) -> None:
    assert parse_shape(text, "grid") == shape


@pytest.mark.parametrize("text", ["", "x", "1,2,3,4", "1,,2", "1.5"])
def test_refused_shapes(text: str) -> None:
    with pytest.raises(SpecError):
        parse_shape(text, "grid")


def test_indexed_files() -> None:
    assert parse_indexed("1=a=b.npy", "--expect", 2) == (1, "a=b.npy")
    for text in ("a.npy", "x=a.npy", "2=a.npy", "1=", "-1=a.npy"):
        with pytest.raises(SpecError):
            parse_indexed(text, "--expect", 2)
