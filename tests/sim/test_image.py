"""Module variables in device memory: places, initialisers, addresses of other variables."""

from __future__ import annotations

import struct

import pytest

from ptxtools.diagnostics import LaunchError, PtxError
from ptxtools.ir import Function, Immediate, Initializer, Module, Scope, SymbolValue, Variable
from ptxtools.sim.arena import Arena
from ptxtools.sim.image import Image
from ptxtools.sim.tree import contents_of, storage_of
from tests.rows import rows


def integer(value: int) -> Immediate:
    return Immediate(value, "s64")


def double(value: float) -> Immediate:
    return Immediate(struct.unpack("<Q", struct.pack("<d", value))[0], "f64")


def single(bits: int) -> Immediate:
    return Immediate(bits, "f32")


@rows(
    ("type_", "dims", "vector", "init", "expected"),
    [
        ("u32", (), 1, integer(7), struct.pack("<I", 7)),
        ("s16", (), 1, integer(-2), struct.pack("<h", -2)),
        ("u8", (), 1, integer(300), b"\x2c"),
        ("b64", (), 1, integer(-1), b"\xff" * 8),
        ("f32", (), 1, double(1.5), struct.pack("<f", 1.5)),
        ("f32", (), 1, double(1e300), struct.pack("<f", float("inf"))),
        ("f32", (), 1, single(0x7FC12345), struct.pack("<I", 0x7FC12345)),
        ("f64", (), 1, single(0x3FC00000), struct.pack("<d", 1.5)),
        ("f64", (), 1, double(-0.1), struct.pack("<d", -0.1)),
        ("b32", (), 1, single(0x3F800000), struct.pack("<f", 1)),
        ("u8", (4,), 1, [integer(1), integer(2)], b"\x01\x02\0\0"),
        ("u16", (2, 2), 1, [[integer(1)], [integer(2), integer(3)]], struct.pack("<4H", 1, 0, 2, 3)),
        ("u16", (2, 2), 1, [[integer(1)]], struct.pack("<4H", 1, 0, 0, 0)),
        ("f32", (2,), 2, [[double(1), double(2)], [double(3)]], struct.pack("<4f", 1, 2, 3, 0)),
        ("f32", (), 4, [double(1), double(2)], struct.pack("<4f", 1, 2, 0, 0)),
        ("u8", (2,), 1, [integer(1)] * 5, b"\x01\x01"),
        ("u32", (2,), 1, None, bytes(8)),
    ],
)
def test_initial_bytes(
    type_: str, dims: tuple[int, ...], vector: int, init: Initializer | None, expected: bytes
) -> None:
    variable = Variable("v", "global", type_, vector=vector, dims=dims, init=init)
    storage = storage_of(variable)
    assert (storage.data or bytes(storage.size)) == expected and not storage.links


def image_of(*items: Variable | Function) -> tuple[Image, Arena]:
    arena = Arena(1 << 20)
    return Image(contents_of(Module(list(items))), arena), arena


def content(image: Image, arena: Arena, name: str, size: int) -> bytes:
    return bytes(arena.view(image.addresses[name], size))


def test_constants_are_one_range() -> None:
    image, _ = image_of(
        Variable("a", "const", "u8", dims=(3,)),
        Variable("g", "global", "u32"),
        Variable("b", "const", "f64"),
    )
    low, high = image.const
    assert image.addresses["a"] == low and image.addresses["b"] == low + 264 and high == low + 272
    assert not low <= image.addresses["g"] < high


def test_alignment_is_obeyed() -> None:
    image, _ = image_of(Variable("a", "const", "u8"), Variable("b", "const", "u8", align=512, dims=(4,)))
    assert image.addresses["b"] % 512 == 0


def test_addresses_in_initialisers() -> None:
    function = Function("func", "f", body=Scope())
    declared = Function("func", "e")
    image, arena = image_of(
        declared,
        Variable("p", "global", "u64", dims=(4,), init=[
            SymbolValue("q", 8), SymbolValue("q", 4, generic=True), SymbolValue("f"), SymbolValue("q", 0, mask=0xFF00),
        ]),
        Variable("q", "global", "u32", dims=(8,)),
        function,
    )  # fmt: skip
    q = image.addresses["q"]
    first, second, code, byte = struct.unpack("<4Q", content(image, arena, "p", 32))
    assert (first, second) == (q + 8, q + 4)
    assert code == contents_of(Module([declared, function])).functions["f"]
    assert byte == (q >> 8) & 0xFF


def test_a_definition_wins_over_its_declaration() -> None:
    image, arena = image_of(
        Variable("x", "global", "u32", linkage="extern"),
        Variable("x", "global", "u32", linkage="visible", init=integer(5)),
    )
    assert content(image, arena, "x", 4) == struct.pack("<I", 5)


def test_what_is_defined_nowhere_has_no_address() -> None:
    with pytest.raises(PtxError, match=r"declared \.extern but not defined"):
        image_of(Variable("x", "global", "u32", linkage="extern"))
    with pytest.raises(LaunchError, match="has no address"):
        image_of(Variable("p", "global", "u64", init=SymbolValue("nothing")))


def test_variables_go_back_to_their_initialisers() -> None:
    image, arena = image_of(Variable("x", "global", "u32", init=integer(5)))
    arena.view(image.addresses["x"], 4)[:] = b"\xff" * 4
    image.write_initial(image.variables["x"])
    assert content(image, arena, "x", 4) == struct.pack("<I", 5)
