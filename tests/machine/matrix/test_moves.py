"""ldmatrix, stmatrix, movmatrix: index-coded matrices through shared memory, with rows in any order."""

from __future__ import annotations

import numpy as np
import pytest

from ptxtools.diagnostics import Trap

from .harness import ENGINES, Memory, launch_of, vector

HEADER = """.version 9.0
.target sm_120a
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out, .param .u64 rows) {
.shared .align 16 .b8 memory[1024];
.reg .b32 %lane, %at, %word, %s, %r<4>, %base; .reg .u64 %in, %out, %rows, %o, %g;
ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; ld.param.u64 %rows, [rows]; mov.u32 %lane, %laneid;
mul.wide.u32 %o, %lane, 4; add.u64 %in, %in, %o; add.u64 %out, %out, %o; add.u64 %rows, %rows, %o;
mov.u32 %base, memory; shl.b32 %at, %lane, 2; add.u32 %at, %at, %base;
"""
FILL = "".join(f"ld.global.b32 %word, [%in+{128 * i}]; st.shared.b32 [%at+{128 * i}], %word;\n" for i in range(8))
ROW = "ld.global.b32 %s, [%rows]; shl.b32 %s, %s, 4; add.u32 %s, %s, %base; bar.sync 0;\n"
GENERIC = "cvt.u64.u32 %g, %s; cvta.shared.u64 %g, %g;\n"


def load(text: str, count: int, memory: np.ndarray, rows: np.ndarray, engine: str, address: str = "%s") -> np.ndarray:
    """Registers x lanes after a load of the shared memory's 64 rows of 16 bytes; lane i names row rows[i]."""
    body = HEADER + FILL + ROW + (GENERIC if address == "%g" else "") + f"{text} {vector('r', count)}, [{address}];\n"
    body += "".join(f"st.global.b32 [%out+{128 * i}], %r{i};\n" for i in range(count)) + "ret; }"
    device = Memory()
    out = device.put(np.zeros((count, 32), np.uint32))
    ENGINES[engine](launch_of(body, device, [device.put(memory), out, device.put(rows)]))
    return device.get(out, np.uint32, count * 32).reshape(count, 32)


def store(text: str, count: int, registers: np.ndarray, rows: np.ndarray, engine: str) -> np.ndarray:
    """The 64 rows of shared memory after a store."""
    fetch = "".join(f"ld.global.b32 %r{i}, [%in+{128 * i}];\n" for i in range(count))
    clear = "".join(f"st.shared.b32 [%at+{128 * i}], 0;\n" for i in range(8))
    body = HEADER + clear + fetch + ROW + f"{text} [%s], {vector('r', count)};\nbar.sync 0;\n"
    body += "".join(f"ld.shared.b32 %word, [%at+{128 * i}]; st.global.b32 [%out+{128 * i}], %word;\n" for i in range(8))
    device = Memory()
    out = device.put(np.zeros(1024, np.uint8))
    ENGINES[engine](launch_of(body + "ret; }", device, [device.put(registers), out, device.put(rows)]))
    return device.get(out, np.uint8, 1024).reshape(64, 16)


def shuffled() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    return rng.integers(0, 256, (64, 16), np.uint8), rng.permutation(64)[:32].astype(np.uint32)


def halves(registers: np.ndarray) -> np.ndarray:
    return np.stack([registers & 0xFFFF, registers >> 16], axis=-1)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix_m8n8(count: int, trans: str, engine: str) -> None:
    memory, rows = shuffled()
    got = halves(load(f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16", count, memory, rows, engine))
    for matrix in range(count):
        whole = memory[rows[8 * matrix : 8 * matrix + 8]].view(np.uint16)
        for lane in range(32):
            for half in (0, 1):
                row, column = lane // 4, 2 * (lane % 4) + half
                wanted = whole[column, row] if trans else whole[row, column]
                assert got[matrix, lane, half] == wanted


@pytest.mark.parametrize("engine", ENGINES)
def test_ldmatrix_by_generic_address(engine: str) -> None:
    memory, rows = shuffled()
    text = "ldmatrix.sync.aligned.m8n8.x4"
    assert np.array_equal(
        load(text + ".b16", 4, memory, rows, engine, "%g"), load(text + ".shared.b16", 4, memory, rows, engine)
    )


def expanded(rows: np.ndarray, form: str) -> np.ndarray:
    """Rows with each element in a byte of its own (9.7.14.5.15)."""
    if not form:
        return rows
    bits = 4 if "b4" in form else 6
    wide = [int.from_bytes(bytes(row), "little") for row in rows]
    return np.array([[number >> bits * i & (1 << bits) - 1 for i in range(16)] for number in wide], np.uint8)


@pytest.mark.share(3)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("form", ["", ".b8x16.b6x16_p32", ".b8x16.b4x16_p64"])
@pytest.mark.parametrize("count", [1, 2])
def test_ldmatrix_m16n16(count: int, form: str, engine: str) -> None:
    """The transpose of a 16 x 16 matrix of bytes: the lane's row is its g (+ 8), its columns 4t to 4t + 3."""
    memory, rows = shuffled()
    text = f"ldmatrix.sync.aligned.m16n16.x{count}.trans.shared{form or '.b8'}"
    got = load(text, 2 * count, memory, rows, engine)
    for matrix in range(count):
        turned = expanded(memory[rows[16 * matrix : 16 * matrix + 16]], form).T
        for lane in range(32):
            for register in (0, 1):
                four = turned[lane // 4 + 8 * register, 4 * (lane % 4) : 4 * (lane % 4) + 4]
                assert got[2 * matrix + register, lane] == int.from_bytes(bytes(four), "little")


@pytest.mark.share(3)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("form", ["b6x16_p32", "b4x16_p64"])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix_m8n16(count: int, form: str, engine: str) -> None:
    memory, rows = shuffled()
    got = load(f"ldmatrix.sync.aligned.m8n16.x{count}.shared.b8x16.{form}", count, memory, rows, engine)
    for matrix in range(count):
        whole = expanded(memory[rows[8 * matrix : 8 * matrix + 8]], form)
        for lane in range(32):
            four = whole[lane // 4, 4 * (lane % 4) : 4 * (lane % 4) + 4]
            assert got[matrix, lane] == int.from_bytes(bytes(four), "little")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_stmatrix_undoes_ldmatrix(count: int, trans: str, engine: str) -> None:
    memory, rows = shuffled()
    mods = f".sync.aligned.m8n8.x{count}{trans}.shared.b16"
    registers = load("ldmatrix" + mods, count, memory, rows, engine)
    got = store("stmatrix" + mods, count, registers, rows, engine)
    used = rows[: 8 * count]
    assert np.array_equal(got[used], memory[used])
    assert not got[np.setdiff1d(np.arange(64), used)].any()


@pytest.mark.share(3)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("count", [1, 2, 4])
def test_stmatrix_of_bytes(count: int, engine: str) -> None:
    """A 16 x 8 matrix in the accumulator's arrangement; memory gets its transpose."""
    rng = np.random.default_rng(3)
    matrices = rng.integers(0, 256, (count, 16, 8), np.uint8)
    registers = np.zeros((count, 32, 4), np.uint8)
    for lane in range(32):
        for byte in range(4):
            registers[:, lane, byte] = matrices[:, lane // 4 + 8 * (byte // 2), 2 * (lane % 4) + byte % 2]
    _, rows = shuffled()
    got = store(f"stmatrix.sync.aligned.m16n8.x{count}.trans.shared.b8", count, registers, rows, engine)
    for matrix in range(count):
        assert np.array_equal(got[rows[8 * matrix : 8 * matrix + 8]], matrices[matrix].T)


@pytest.mark.parametrize("engine", ENGINES)
def test_movmatrix(engine: str) -> None:
    memory, _ = shuffled()
    rows = np.arange(32, dtype=np.uint32)
    body = (
        HEADER + "ld.global.b32 %r0, [%in]; movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r0; st.global.b32 [%out], %r1;"
    )
    device = Memory()
    out = device.put(np.zeros(32, np.uint32))
    ENGINES[engine](launch_of(body + "ret; }", device, [device.put(memory), out, device.put(rows)]))
    matrix = memory[:8].view(np.uint16)
    assert np.array_equal(device.get(out, np.uint16, 64).reshape(8, 8), matrix.T)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("row", "said"), [(64, "out of bounds"), (1 << 26, "out of bounds")])
def test_a_row_outside_shared_memory_is_a_trap(row: int, said: str, engine: str) -> None:
    memory, rows = shuffled()
    rows[5] = row
    with pytest.raises(Trap) as caught:
        load("ldmatrix.sync.aligned.m8n8.x1.shared.b16", 1, memory, rows, engine)
    assert "ldmatrix" in caught.value.text
    assert caught.value.thread == (5, 0, 0)


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_that_do_not_count_may_be_anywhere(engine: str) -> None:
    memory, rows = shuffled()
    rows[8:] = 1 << 20
    got = load("ldmatrix.sync.aligned.m8n8.x1.shared.b16", 1, memory, rows, engine)
    assert np.array_equal(got.view(np.uint8).reshape(8, 16), memory[rows[:8]])
