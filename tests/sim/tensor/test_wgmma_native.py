"""wgmma in native code against the reference engine, bit for bit: every form, with operands of every sort."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from ptxtools.machine import events
from ptxtools.machine.events import Service, View
from ptxtools.sim import services
from tests.rows import rows

from . import kernels, operands, places

#: Types of A, B and D.
TYPES = [("f16", "f16", "f32"), ("f16", "f16", "f16"), ("bf16", "bf16", "f32"), ("tf32", "tf32", "f32"),
         ("e4m3", "e5m2", "f32"), ("e5m2", "e4m3", "f16"), ("s8", "u8", "s32"), ("u8", "u8", "s32.satfinite"),
         ("b1", "b1", "s32")]  # fmt: skip
N = 24


def forms() -> Iterator[tuple[tuple[str, str, str], bool, bool, int]]:
    """Types, sparse A, A in registers, selector of the metadata."""
    for types, sparse, registers in itertools.product(TYPES, (False, True), (False, True)):
        if not (sparse and types[0] == "b1"):
            yield types, sparse, registers, int(sparse and registers and operands.BITS[types[0]] > 8)


CASES = [(*form, make, numerics) for form in forms() for make in operands.MAKERS for numerics in ("chip", "ieee")]


@pytest.fixture(autouse=True)
def only_native(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Counts the products that services compute."""
    calls: dict[str, int] = {}
    services.load("wgmma.mma_async")
    serve: Service = events.HANDLERS["wgmma.mma_async"]

    def counted(view: View) -> None:
        calls["product"] = calls.get("product", 0) + 1
        serve(view)

    monkeypatch.setitem(events.HANDLERS, "wgmma.mma_async", counted)
    return calls


@rows(("types", "sparse", "registers", "selector", "make", "numerics"), CASES, share=40)
def test_bits_are_those_of_the_reference(
    types: tuple[str, str, str], sparse: bool, registers: bool, selector: int, make: operands.Maker, numerics: str,
    only_native: dict[str, int],
) -> None:  # fmt: skip
    only_native.clear()
    found, wanted = (
        run(types, sparse, registers, selector, make, engine=engine, numerics=numerics)
        for engine in ("native", "reference")
    )
    np.testing.assert_array_equal(found, wanted)
    if make.finite:  # one product was a service's, the other twelve were not; the reference engine has three times four
        assert only_native["product"] == 1 + 12


@pytest.mark.parametrize("types", [TYPES[0], TYPES[1], TYPES[6]], ids="-".join)
@pytest.mark.parametrize("place", [1, 2, 3, 5])
def test_a_register_of_d_twice(types: tuple[str, str, str], place: int) -> None:
    """All registers are read before the first is written."""
    found, wanted = (
        run(types, False, False, 0, operands.MAKERS[2], named={place: 0}, engine=engine)
        for engine in ("native", "reference")
    )
    np.testing.assert_array_equal(found, wanted)


def run(
    types: tuple[str, str, str], sparse: bool, registers: bool, selector: int, make: operands.Maker, **options: Any
) -> np.ndarray:
    atype, btype, (dtype, _, mods) = types[0], types[1], types[2].partition(".")
    bits = operands.BITS[atype]
    k = 256 // bits * (2 if sparse else 1)
    rng = np.random.default_rng(len(make.name) + k)
    a = make.codes(atype, rng, 64, k // 2 if sparse else k)
    b = make.codes(btype, rng, N, k)
    if bits == 1:
        a, b, bits = (np.packbits(m, axis=1) for m in (a, b)), None, 8
        a, b = a
    shared = np.zeros(48 << 10, np.uint8)
    descriptors = []
    for start, codes in ((1024, a), (16384, b)):
        if start > 1024 or not registers:
            lbo, sbo = places.put(shared, start, codes, bits, "128", False)
            descriptors.append(places.descriptor(start, lbo, sbo, "128", tensor=False))
    d = make.addends(dtype, rng, (N // 4 if dtype == "f16" else N // 2, 128))
    tail = "" if dtype == "s32" else ", -1, 1"
    if bits == 16:
        tail += ", 0" if registers else ", 0, 0"
    opcode = "wgmma.mma_async" + (".sp" if sparse else "") + ".sync.aligned"
    opcode += f".m64n{N}k{k}{'.' + mods if mods else ''}.{dtype}.{atype}.{btype}"
    words = rng.integers(0, 1 << 32, 128, dtype=np.uint32) if sparse else None
    return kernels.wgmma(
        opcode + (".and.popc" if atype == "b1" else ""), shared, d, tail, descriptors=tuple(descriptors),
        a=in_registers(a) if registers else None, metadata=words, selector=selector, times=3, **options,
    )  # fmt: skip


def in_registers(codes: np.ndarray) -> np.ndarray:
    """A (64 rows of 32 bytes) in registers: 4 x 128 threads (9.7.15.5.1)."""
    words = np.ascontiguousarray(codes).view(np.uint32).reshape(4, 2, 8, 2, 4)  # warp, lower rows, row, half, thread
    return np.ascontiguousarray(words.transpose(3, 1, 0, 2, 4)).reshape(4, 128)
