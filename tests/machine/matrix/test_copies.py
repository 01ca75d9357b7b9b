"""cp.async: sizes, source sizes, ignored sources, bounds."""

from __future__ import annotations

import numpy as np
import pytest

from ptxtools.diagnostics import Trap

from .harness import ENGINES, Memory, launch_of

KERNEL = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out, .param .u64 sizes) {{
.shared .align 16 .b8 memory[1024];
.reg .b32 %lane, %s, %n, %word; .reg .u64 %in, %out, %sizes, %o; .reg .pred %p;
ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; ld.param.u64 %sizes, [sizes]; mov.u32 %lane, %laneid;
mul.wide.u32 %o, %lane, 4; add.u64 %sizes, %sizes, %o; ld.global.b32 %n, [%sizes]; add.u64 %out, %out, %o;
mul.wide.u32 %o, %lane, {size}; add.u64 %in, %in, %o; mov.u32 %s, memory; mad.lo.u32 %s, %lane, {size}, %s;
setp.ne.u32 %p, %n, {size};
{copy}
cp.async.commit_group; cp.async.wait_group 0; cp.async.wait_all; bar.sync 0;
mov.u32 %s, memory; mad.lo.u32 %s, %lane, 4, %s;
{read} ret; }}"""


def run(copy: str, size: int, sizes: np.ndarray, engine: str, data: np.ndarray, start: int = 0) -> np.ndarray:
    read = "".join(f"ld.shared.b32 %word, [%s+{128 * i}]; st.global.b32 [%out+{128 * i}], %word;\n"
                   for i in range(size // 4))  # fmt: skip
    memory = Memory()
    given = memory.put(data) + start
    out = memory.put(np.zeros(32 * size, np.uint8))
    text = KERNEL.format(size=size, copy=copy, read=read)
    ENGINES[engine](launch_of(text, memory, [given, out, memory.put(sizes.astype(np.uint32))]))
    return memory.get(out, np.uint8, 32 * size).reshape(32, size)


@pytest.fixture
def data() -> np.ndarray:
    return np.random.default_rng(1).integers(1, 256, 1024, np.uint8)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("cop", "size"), [("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)])
def test_whole(cop: str, size: int, engine: str, data: np.ndarray) -> None:
    got = run(f"cp.async.{cop}.shared.global [%s], [%in], {size};", size, np.full(32, size), engine, data)
    assert np.array_equal(got.reshape(-1), data[: 32 * size])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("some", ["whole or nothing", "any"])
@pytest.mark.parametrize("size", [4, 8, 16])
def test_zeros_behind_the_source(size: int, some: str, engine: str, data: np.ndarray) -> None:
    rng = np.random.default_rng(size)
    sizes = rng.integers(0, size + 1, 32) if some == "any" else size * rng.integers(0, 2, 32)
    got = run(f"cp.async.ca.shared::cta.global.L2::128B [%s], [%in], {size}, %n;", size, sizes, engine, data)
    wanted = data[: 32 * size].reshape(32, size).copy()
    for lane, count in enumerate(sizes):
        wanted[lane, count:] = 0
    assert np.array_equal(got, wanted)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("negated", ["", "!"])
def test_ignored_sources(negated: str, engine: str, data: np.ndarray) -> None:
    sizes = np.where(np.arange(32) % 3 == 0, 0, 16)
    got = run(f"cp.async.cg.shared.global [%s], [%in], 16, {negated}%p;", 16, sizes, engine, data)
    wanted = data[:512].reshape(32, 16).copy()
    wanted[(sizes != 16) != bool(negated)] = 0
    assert np.array_equal(got, wanted)


@pytest.mark.parametrize("engine", ENGINES)
def test_offsets_and_guards(engine: str, data: np.ndarray) -> None:
    copy = "@!%p cp.async.ca.shared.global [%s+0], [%in+16], 16, 16;"
    sizes = np.where(np.arange(32) < 20, 16, 0)
    clear = "".join(f"st.shared.b32 [%s+{at}], 0; " for at in (0, 4, 8, 12))
    got = run(clear + copy, 16, sizes, engine, data)
    wanted = data[16:528].reshape(32, 16).copy()
    wanted[20:] = 0
    assert np.array_equal(got, wanted)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("copy", "said"),
    [("add.u64 %in, %in, 4;", "aligned"), ("add.u64 %in, %in, 0x7000000000;", "out of bounds"),
     ("add.u32 %s, %s, 4096;", "out of bounds"), ("add.u32 %s, %s, 8;", "aligned")],
)  # fmt: skip
def test_bad_addresses(copy: str, said: str, engine: str, data: np.ndarray) -> None:
    with pytest.raises(Trap, match=said):
        run(copy + "cp.async.cg.shared.global [%s], [%in], 16;", 16, np.full(32, 16), engine, data)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_source_of_no_bytes_is_not_looked_at(engine: str, data: np.ndarray) -> None:
    """What Triton does at the edge of a matrix: any address, and a source size of zero."""
    copy = "@%p add.u64 %in, %in, 0x7000000003; cp.async.cg.shared.global [%s], [%in], 16, %n;"
    sizes = np.where(np.arange(32) % 2, 16, 0)
    got = run(copy, 16, sizes, engine, data)
    assert np.array_equal(got[1::2], data[:512].reshape(32, 16)[1::2])
    assert not got[::2].any()


PLACES = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out, .param .u64 from, .param .u64 to) {
.shared .align 16 .b8 memory[2048];
.reg .b32 %lane, %s, %n, %word; .reg .u64 %in, %out, %from, %to, %o; .reg .pred %p;
ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; ld.param.u64 %from, [from]; ld.param.u64 %to, [to];
mov.u32 %lane, %laneid; mul.wide.u32 %o, %lane, 4; add.u64 %from, %from, %o; ld.global.b32 %n, [%from];
cvt.u64.u32 %from, %n; add.u64 %in, %in, %from; add.u64 %to, %to, %o; ld.global.b32 %n, [%to];
mov.u32 %s, memory; add.u32 %s, %s, %n; setp.ne.u32 %p, %n, 2032;
@%p cp.async.cg.shared.global [%s], [%in], 16;
cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;
mov.u32 %s, memory; mad.lo.u32 %s, %lane, 64, %s; shl.b32 %n, %lane, 6; cvt.u64.u32 %o, %n; add.u64 %out, %out, %o;
READ ret; }"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", range(12))
def test_rows_of_four_lanes(seed: int, engine: str) -> None:
    """Rows of 64 bytes anywhere, in rare cases broken, or with a lane that copies nothing; the last lane's stay."""
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 256, 4096, np.uint8)
    source = (16 * rng.integers(0, 200, 8)[:, None] + 16 * np.arange(4)).reshape(-1)
    target = (16 * rng.integers(0, 100, 8)[:, None] + 16 * np.arange(4)).reshape(-1)
    lane = rng.integers(0, 32)
    if seed % 3 == 1:
        (source if seed % 2 else target)[lane] += 16
    elif seed % 3 == 2:
        target[lane] = 2032
    wanted = np.zeros(2048, np.uint8)
    for number in range(32):
        if target[number] != 2032:
            wanted[target[number] : target[number] + 16] = data[source[number] : source[number] + 16]
    read = "".join(f"ld.shared.b32 %word, [%s+{4 * i}]; st.global.b32 [%out+{4 * i}], %word;\n" for i in range(16))
    memory = Memory()
    places = [memory.put(one.astype(np.uint32)) for one in (source, target)]
    given, out = memory.put(data), memory.put(np.zeros(2048, np.uint8))
    ENGINES[engine](launch_of(PLACES.replace("READ", read), memory, [given, out, *places]))
    assert memory.get(out, np.uint8, 2048).tolist() == wanted.tolist()
