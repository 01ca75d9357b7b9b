"""Matrices in the debugger: fragments, tensor memory, tensor maps and matrix descriptors."""

from __future__ import annotations

from functools import cache

import ml_dtypes
import numpy as np
import pytest

import ptxtools
from ptxtools.observe.debug.commands import Commands, UserError
from ptxtools.observe.debug.debugger import Debugger
from ptxtools.observe.debug.expressions import ExpressionError
from ptxtools.observe.debug.goals import Breakpoint, Goal, Stop
from ptxtools.sim.tensormap import TYPES, TensorMap
from tests.rows import rows

KERNEL = """.version 8.7
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 map) {
    .reg .b32 %r<32>; .reg .f32 %f<9>; .reg .b64 %rd<4>; .shared .align 1024 .b8 tile[1024]; .shared .b32 slot;
    mov.u32 %r1, %laneid;
    cvt.rn.f32.u32 %f1, %r1;
    add.f32 %f2, %f1, 0f3F000000;
    cvt.rn.f16x2.f32 %r10, %f2, %f1;
    cvt.rn.f16x2.f32 %r11, %f1, %f2;
    cvt.rn.f16x2.f32 %r12, %f1, %f1;
    cvt.rn.f16x2.f32 %r13, %f2, %f2;
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f3, %f4, %f5, %f6}, {%r10, %r11, %r12, %r13}, {%r11, %r12},
        {%f1, %f2, %f1, %f2};
    mad.lo.u32 %r2, %r1, 0x10001, 0;
    mov.u32 %r3, tile;
    mad.lo.u32 %r4, %r1, 4, %r3;
    st.shared.b32 [%r4], %r2;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;
    ld.shared.b32 %r20, [slot];
    tcgen05.st.sync.aligned.32x32b.x2.b32 [%r20], {%r1, %r10};
    tcgen05.wait::st.sync.aligned;
    bar.sync 0;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r20, 32;
    ld.param.u64 %rd1, [map];
    st.global.v4.f32 [%rd1], {%f3, %f4, %f5, %f6};
    st.global.v4.b32 [%rd1], {%r10, %r11, %r12, %r13};
    st.global.v2.f32 [%rd1], {%f1, %f2};
    ret;
}
"""
STOP = 1 + KERNEL[: KERNEL.index("    bar.sync")].count("\n")
MAP = TensorMap(0x1000_0000, TYPES["f16"], (64, 32), (128,), (16, 8), swizzle="32B")


class Front:
    """Runs commands at the barrier."""

    def __init__(self, commands: list[str], stop: int = STOP) -> None:
        self.commands, self.line, self.said = commands, stop, dict[str, list[str]]()

    def wants(self) -> bool:
        return False

    def stopped(self, debugger: Debugger, stop: Stop) -> tuple[Goal, bool]:
        if stop.kind == "entry":
            debugger.add(Breakpoint(0, "break", str(self.line)))
        elif stop.kind == "breakpoint":
            for command in self.commands:
                said = self.said.setdefault(command, [])
                try:
                    Commands(said.append).run_line(debugger, command)
                except (UserError, ExpressionError) as error:
                    said.append(f"error: {error}")
        return Goal(), False


A, B, C, D = (
    "matrix a 16x16 f16 %r10-%r13", "matrix b 16x8 f16 %r11 %r12", "matrix c 16x8 f32 {%f1, %f2, %f1, %f2}",
    "matrix d 16x8 f32 %f3-%f6",
)  # fmt: skip
#: Where the tile starts, as descriptors say it: in units of 16 bytes.
TILE = "(tile & 0x3FFFF) >> 4"
ANSWERS = {
    "matrix d 16x8 f32 %f3 %f4": "error: a fragment of D of 16x8 f32 has 4 registers in each lane, not 2",
    "matrix d 16x9 f32 %f3": "error: no instruction has a fragment of D of 16x9 f32",
    "matrix d 16x8 s8 %f3": "error: no instruction has a fragment of D of 16x8 s8",
    "matrix a 16x0 f16 %r10": "error: no instruction has a fragment of A of 16x0 f16",
    "matrix a 8x8 f16 %q9": "error: no register %q9 is known at this line",
    "matrix a 8x8 f16 %r5-%r2": "error: '%r5-%r2' is no range of registers, such as %f1-%f4",
    "matrix": "error: matrix a|b|c|d ROWSxCOLUMNS TYPE REGISTERS [quad 0-3 [row|col]] [sparse REGISTER [selector "
    "0-3]], such as matrix d 16x8 f32 %f1-%f4",
    "matrix b 16x8 f16 %r11 %r12 sparse %r10": "error: B is never sparse: A is",
    "matrix a 16x32 f16 %r10-%r13 sparse %r10 selector 2": "error: no instruction has a fragment of A of 16x32 f16 "
    "that is sparse",
    "matrix a 16x64 f16 %r10-%r13 sparse %r10": "error: no instruction has a fragment of A of 16x64 f16 that is sparse",
    "matrix a 8x8 f16 %r10 quad 1": "error: no instruction has a fragment of A of 8x8 f16 of m8n8k4",
    "matrix d 8x8 f64 %r10 quad 1": "error: no instruction has a fragment of D of 8x8 f64 of m8n8k4",
    "matrix a 16x32 f16 %r10-%r13 sparse %q9": "error: no register %q9 is known at this line",
    "matrix d 16x8 f32 %f3-%f6 rows 16": "error: '16' is no list of numbers up to 15, such as 0-3,8",
    "tmem": "CTA (0,0,0): columns 0-31",
    "tmem 32 1": "error: lane 0, columns 32 to 32: not all of them are allocated",
    "tmem %f1": "error: 0.0 is no address in tensor memory",
    "tmem 0 2 f64": "error: a column of tensor memory has 32 bits: f64 does not fit",
    "tensormap tile": "error: ",
    "descriptor": "error: descriptor wgmma|tcgen05 EXPRESSION [, ROWSxK TYPE [mn]]",
    "descriptor wgmma 1 << 14": "error: matrix descriptor: bits 14-15 are 0x1; they must be 0",
    "descriptor wgmma 0x3fff, 64x64 f16": "error: matrix descriptor: the matrix extends to byte",
    "descriptor wgmma 0, 8x9 f16": "error: '8x9 f16': the contiguous dimension is no multiple of 16 bytes",
    "descriptor wgmma -1.5": "error: -1.5 is no descriptor of 64 bits",
    "descriptor kind::f16 8 << 24 | 8 << 17 | 1 << 15 | 1 << 4": (
        "m 128, n 64, k 16, A f16 MN-major, B f16 K-major, D f32"
    ),
    "descriptor kind::i8 8 << 24 | 8 << 17 | 1 << 7 | 2 << 4 | 8, sp": (
        "error: instruction descriptor: sparsity (bit 2) 0 is illegal"
    ),
    "descriptor kind::i8 8 << 24 | 8 << 17 | 1 << 7 | 2 << 4 | 8": (
        "m 128, n 64, k 32, A s8 K-major, B u8 K-major, D s32, saturating"
    ),
    "descriptor kind::mxf8f6f4 1 << 27 | 8 << 17 | 1 << 23 | 1 << 10 | 1 << 29 | 2 << 4": (
        "m 128, n 64, k 32, A e4m3 K-major, B e5m2 K-major, D f32, scales ue8m0 from bytes 1 and 2"
    ),
    "descriptor kind::f16 64": "error: instruction descriptor: bit 6 is 0x1; .kind::f16 requires 0",
    "descriptor kind::f17 0": "error: 'f17, ': tf32, f16, f8f6f4, mxf8f6f4, i8, mxf4, mxf4nvf4; sp, ws, cta_group::2",
    "descriptor kind::f16 0.5": "error: 0.5 is no descriptor of 32 bits",
    f"descriptor tcgen05 1 << 46 | 2 << 61 | 64 << 32 | {TILE}": "start 0x",
}
SHOWN = [
    A, B, C, D, "matrix a 8x8 u16 %r2", "tmem 0 2 lanes 3,31", "tmem 0 2 f16 lanes 3", "tensormap map",
    f"descriptor wgmma {TILE}, 8x8 u16", f"descriptor wgmma {TILE}, 8x8 u16 mn rows 0-1 columns 2",
]  # fmt: skip


@cache
def said(engine: str) -> dict[str, list[str]]:
    front = Front([*SHOWN, *ANSWERS])
    device = ptxtools.Device(engine=engine, observers=[Debugger(front, None)])
    device.launch(ptxtools.loads(KERNEL)["k"], 1, 32, [np.frombuffer(MAP.encode(), np.uint8).copy()])
    return front.said


def numbers(lines: list[str]) -> np.ndarray:
    """The elements of a table, without the numbers of rows and columns."""
    return np.array([[float(word) for word in line.split()[1:]] for line in lines[1:]])


ENGINES = pytest.mark.parametrize("engine", ["native", "reference"])


@ENGINES
def test_fragments_are_the_matrices_of_the_product(engine: str) -> None:
    a, b, c, d = (numbers(said(engine)[command]) for command in (A, B, C, D))
    assert a.shape == (16, 16) and b.shape == (16, 8) and (a @ b + c == d).all()
    assert a[1, 2] == 5 and a[1, 3] == 5.5 and a[9, 2] == 5.5 and a[1, 10] == 5 and c[9, 3] == 5.5  # lane 5
    assert b[2, 1] == 5.5 and b[11, 1] == 5
    assert numbers(said(engine)["matrix a 8x8 u16 %r2"]).tolist() == [
        [4 * r + c // 2 for c in range(8)] for r in range(8)
    ]


PRODUCTS = """.version 8.5
.target sm_80
.address_size 64
.entry k(.param .u64 p) {
    .reg .b32 %r<24>; .reg .f32 %f<14>; .reg .b64 %d<2>;
    ld.param.u64 %d0, [p]; mov.u32 %r0, %laneid; mad.wide.u32 %d1, %r0, 48, %d0;
    ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%d1]; ld.global.v4.b32 {%r5, %r6, %r7, %r8}, [%d1+16];
    ld.global.b32 %r9, [%d1+32]; mov.b32 %f12, 0f00000000; mov.b32 %r10, 0;
    mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, {%r1, %r2}, {%r3, %r4},
        {%f12, %f12, %f12, %f12, %f12, %f12, %f12, %f12};
    mma.sync.aligned.m8n8k4.col.row.f16.f16.f16.f16 {%r12, %r13, %r14, %r15}, {%r1, %r2}, {%r3, %r4},
        {%r10, %r10, %r10, %r10};
    mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%f8, %f9, %f10, %f11}, {%r1, %r2, %r3, %r4},
        {%r5, %r6, %r7, %r8}, {%f12, %f12, %f12, %f12}, %r9, 1;
    mma.sp.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r16, %r17, %r18, %r19}, {%r1, %r2}, {%r3, %r4},
        {%r10, %r10, %r10, %r10}, %r9, 1;
    bar.sync 0;
    ret;
}"""
_QUADS = [
    (f"matrix a 8x4 f16 %r1 %r2 quad {n}", f"matrix b 4x8 f16 %r3 %r4 quad {n}", f"matrix d 8x8 f32 %f0-%f7 quad {n}")
    for n in range(4)
] + [
    (f"matrix a 8x4 f16 %r1 %r2 quad {n} col", f"matrix b 4x8 f16 %r3 %r4 quad {n} row",
     f"matrix d 8x8 f16 %r12-%r15 quad {n}")
    for n in range(4)
]  # fmt: skip
#: A, B and D of each product above.
FACTORS = [
    *_QUADS,
    ("matrix a 16x32 f16 %r1-%r4 sparse %r9 selector 1", "matrix b 32x8 f16 %r5-%r8", "matrix d 16x8 f32 %f8-%f11"),
    ("matrix a 16x32 s8 %r1,%r2 sparse %r9 selector 1", "matrix b 32x8 s8 %r3 %r4", "matrix d 16x8 s32 %r16-%r19"),
]


@ENGINES
def test_quads_and_sparse_factors_are_those_of_the_product(engine: str) -> None:
    chance = np.random.default_rng(5)
    data = np.zeros((32, 12), np.uint32)
    data[:, :8] = chance.integers(-8, 8, (32, 16)).astype(np.float16).view(np.uint32)
    nibbles = chance.choice([0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110], (32, 8)).astype(np.uint32)
    data[:, 8] = (nibbles << 4 * np.arange(8, dtype=np.uint32)).sum(1)
    stop = 1 + PRODUCTS[: PRODUCTS.index("    bar.sync")].count("\n")
    front = Front([command for three in FACTORS for command in three], stop)
    device = ptxtools.Device(engine=engine, observers=[Debugger(front, None)])
    device.launch(ptxtools.loads(PRODUCTS)["k"], 1, 32, [data])
    for commands in FACTORS:
        a, b, d = (numbers([line.replace(" .", " 0") for line in front.said[command]]) for command in commands)
        assert (a @ b == d).all() and d.any(), commands
    for command in (FACTORS[-2][0], FACTORS[-1][0]):  # half of each row is stored
        assert all(line.split().count(".") == 16 for line in front.said[command][1:])


@ENGINES
def test_tensor_memory_maps_and_descriptors(engine: str) -> None:
    shown = said(engine)
    half = [int(np.array(x, np.float16).view(np.uint16)) for x in (3, 3.5, 31, 31.5)]
    assert [line.split() for line in shown["tmem 0 2 lanes 3,31"][1:]] == [
        ["0", "1"], ["3", "0x3", hex(half[0] | half[1] << 16)], ["31", "0x1f", hex(half[2] | half[3] << 16)]
    ]  # fmt: skip
    assert shown["tmem 0 2 f16 lanes 3"][-1].split()[-2:] == ["3.0", "3.5"]
    assert shown["tensormap map"][:4] == [
        "tensor: f16[64, 32] at 0x10000000", "strides: [128] bytes", "mode: tile", "box: [16, 8]",
    ]  # fmt: skip
    assert "swizzle: 32B" in shown["tensormap map"]
    tile = shown[f"descriptor wgmma {TILE}, 8x8 u16"]
    assert "no swizzle" in tile[0] and numbers(tile[1:])[3].tolist() == [12, 12, 13, 13, 14, 14, 15, 15]
    turned = shown[f"descriptor wgmma {TILE}, 8x8 u16 mn rows 0-1 columns 2"]
    assert numbers(turned[1:]).tolist() == [[8], [8]]


@ENGINES
def test_what_is_refused(engine: str) -> None:
    wrong = {
        command: said(engine)[command]
        for command, text in ANSWERS.items()
        if not said(engine)[command][0].startswith(text)
    }
    assert not wrong


@rows(("bits", "type_", "text"), [
    (0xF, "s4", "-1"), (0x17, "u4", "7"), (3, "b1", "1"), (0xFF, "s8", "-1"), (0x3F80, "bf16", "1.0"),
    (int(np.array(1.5, ml_dtypes.float8_e4m3fn).view(np.uint8)), "e4m3", "1.5"),
])  # fmt: skip
def test_elements(bits: int, type_: str, text: str) -> None:
    from ptxtools.observe.debug.elements import element_text

    assert element_text(bits, type_) == text
