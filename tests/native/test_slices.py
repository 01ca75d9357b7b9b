"""Handlers that are compiled quickly, in loops over slices of the warp."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ptxtools.native.code import encode, jit, library, tiers
from ptxtools.native.handlers import halves
from tests.program import harness
from tests.rows import rows

from . import test_atomics, test_memory
from .harness import results


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No handler is there that was compiled well, nor a program that has any."""
    monkeypatch.setattr(tiers, "QUICK", True)
    monkeypatch.setattr(tiers, "AT_ONCE", False)
    monkeypatch.setattr(library, "_full", library.Level(jit.FULL, tmp_path))
    harness._known.cache_clear()
    yield
    harness._known.cache_clear()


@rows("space", ["global", "generic", "shared", "shared64", "local", "const"], share=2)
@rows("t", test_memory.TYPES)
@rows("mask", ["whole", "part"], share=2)
def test_loads(space: str, t: str, mask: str) -> None:
    test_memory.test_loads(space, t, mask)


@pytest.mark.parametrize("space", ["global", "generic", "shared"])
@pytest.mark.parametrize("mask", ["whole", "part"])
def test_loads_that_are_needed_often(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, space: str, mask: str) -> None:
    """They have one more way, for whole warps."""
    monkeypatch.setattr(library, "_quick", library.Level(jit.QUICK, tmp_path))
    names = lambda _, bodies: [name for body in bodies for name, _ in body]  # noqa: E731
    monkeypatch.setattr(encode._Encoder, "_often", names)
    made, way = list[bool](), halves.Ranged._whole_warp
    monkeypatch.setattr(halves.Ranged, "_whole_warp", lambda self: made.append(self.code.brief) or way(self))
    test_memory.test_loads(space, "b32", mask)
    assert True in made


@rows("space", ["global", "shared", "local", "generic"])
@rows("t", ["u8", "u16", "b32", "u64"])
@rows("shape", ["consecutive", "random"], share=2)
def test_stores(space: str, t: str, shape: str) -> None:
    test_memory.test_stores(space, t, "part", shape)


@rows("space, kind", test_memory.VECTORS, share=2)
def test_vectors(space: str, kind: str) -> None:
    test_memory.test_vectors(space, kind, "random")


@pytest.mark.parametrize(
    "test",
    [
        test_memory.test_128_bit_registers,
        test_memory.test_a_warp_in_several_windows_at_once,
        test_memory.test_neighbours_of_a_store_stay_as_they_are,
        test_memory.test_host_memory_opened_to_a_kernel,
        test_atomics.test_packed_halves,
    ],
    ids=lambda test: test.__name__,
)
def test_rare_accesses(test) -> None:
    test()


def test_a_load_into_its_own_address() -> None:
    """Each lane's address is read before another one's result takes its place, wherever the lanes are."""
    body = """.shared .u64 near[32]; mul.wide.u32 %d1, %t, 8; mov.u64 %d2, near; add.u64 %d2, %d2, %d1;
        add.u64 %d5, %in, %d1; ld.global.u64 %d3, [%d5]; st.shared.u64 [%d2], %d3; cvta.shared.u64 %d4, %d2;
        and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0; selp.b64 %d6, %d4, %d5, %p1;
        ld.u64 %d6, [%d6]; ld.global.u64 %d5, [%d5]; sub.u64 %d7, %d6, %d5; add.u64 %d6, %d6, %d7;
        st.global.u64 [%out], %d6; ret;"""
    data = np.arange(1, 33, dtype=np.uint64) * 0x1_0001_0001
    got = results(body, 32, dtype=np.uint64, inputs=data, block=(32, 1, 1))
    assert np.array_equal(got, data)


def test_flags_in_their_own_place() -> None:
    """A comparison whose result takes the place of a flag that it reads; lanes that are out keep theirs."""
    body = """setp.lt.u32 %p1, %t, 20; and.b32 %r1, %t, 1; setp.eq.u32 %p2, %r1, 1;
        @%p2 setp.lt.and.u32 %p1|%p3, %t, 11, %p1; selp.u32 %r2, 1, 0, %p1; st.global.u32 [%out], %r2; ret;"""
    lanes = np.arange(32)
    wanted = np.where(lanes % 2 == 1, lanes < 11, lanes < 20)
    assert np.array_equal(results(body), wanted.astype(np.uint32))
