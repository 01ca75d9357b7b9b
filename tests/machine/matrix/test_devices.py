"""Which numerics a device has: those of its target, or IEEE arithmetic where that is asked for."""

from __future__ import annotations

import numpy as np
import pytest

import ptxtools

from .harness import product_kernel

TEXT = product_kernel("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", (4, 4, 2, 4), target="sm_80")
#: 2**-24, the least f16.
TINY = 0x0001


def result(**options: str) -> float:
    """1 + eight times 2**-24, with upper rows and columns 8 and up of A zero."""
    inputs = np.zeros((10, 32), np.uint32)
    inputs[0] = 0x3C00_3C00  # a(row, 2t), a(row, 2t + 1) = 1
    inputs[4] = TINY << 16 | TINY
    inputs[6:] = np.float32(1).view(np.uint32)
    out = np.zeros((4, 32), np.uint32)
    module = ptxtools.loads(TEXT)
    ptxtools.Device(**options).launch(module["k"], grid=1, block=32, args=[inputs, out])
    return float(out[0, 0].view(np.float32))


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_chip_and_ieee(engine: str) -> None:
    """Eight products of 2**-24: a chip adds them exactly; a chain in f32 loses each as a tie to even."""
    assert result(engine=engine) == 1 + 2.0**-21
    assert result(engine=engine, numerics="ieee") == 1.0


def test_numerics_that_do_not_exist() -> None:
    with pytest.raises(ptxtools.LaunchError, match="numerics"):
        ptxtools.Device(numerics="exact")


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize(("target", "kept"), [("sm_70", 23), ("sm_75", 24)])
def test_m8n8k4_of_volta_and_turing(engine: str, target: str, kept: int) -> None:
    """1 + 2**-23 - 1 in products, and an addend of 2**-24: Volta cuts it off below 2**-23, Turing one bit later."""
    text = product_kernel("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", (8, 2, 2, 8), target="sm_70")
    inputs = np.zeros((12, 32), np.uint32)
    inputs[0] = 0x3C00_3C00  # a = 1, 1
    inputs[2] = 0xBC00_3C00  # b = 1, -1
    inputs[4:] = np.float32(2.0**-24).view(np.uint32)
    out = np.zeros((8, 32), np.uint32)
    module = ptxtools.loads(text.replace(".target sm_75", ".target sm_70"))
    ptxtools.Device(target, engine=engine).launch(module["k"], grid=1, block=32, args=[inputs, out])
    assert (out.view(np.float32) == (0 if kept == 23 else 2.0**-24)).all()


#: Each layout of A and of B with both types of sums.
PRODUCTS = [("row", "col", "f32"), ("col", "row", "f32"), ("row", "row", "f16"), ("col", "col", "f16")]


def volta_kernel() -> str:
    """Products of m8n8k4: the results of each are eight registers of f32, or four of two f16."""
    lines = [".version 6.4\n.target sm_70\n.address_size 64",
             ".visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd) {",
             ".reg .b32 %a<2>, %b<2>, %c<12>, %d<8>, %t; .reg .u64 %p<5>;",
             "mov.u32 %t, %laneid; mul.wide.u32 %p4, %t, 4;"]  # fmt: skip
    for at, name in enumerate("abcd"):
        lines.append(f"ld.param.u64 %p{at}, [p{name}]; add.u64 %p{at}, %p{at}, %p4;")
    for at, (name, count) in enumerate((("a", 2), ("b", 2), ("c", 12))):
        lines += [f"ld.global.b32 %{name}{i}, [%p{at}+{128 * i}];" for i in range(count)]
    for at, (a, b, kind) in enumerate(PRODUCTS):
        count, first = (8, 0) if kind == "f32" else (4, 8)
        d, c = (", ".join(f"%{name}{i + start}" for i in range(count)) for name, start in (("d", 0), ("c", first)))
        opcode = f"mma.sync.aligned.m8n8k4.{a}.{b}.{kind}.f16.f16.{kind}"
        lines.append(f"{opcode} {{{d}}}, {{%a0, %a1}}, {{%b0, %b1}}, {{{c}}};")
        lines += [f"st.global.b32 [%p3+{128 * (8 * at + i)}], %d{i};" for i in range(count)]
    return "\n".join([*lines, "ret; }"])


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_products_of_m8n8k4_on_volta(engine: str) -> None:
    """Four products of small integers, which every rule adds exactly; positions are the formulas of 9.7.14.5.1."""
    rng = np.random.default_rng(70)
    a, b = (rng.integers(-8, 9, (32, 4)).astype(np.float16) for _ in "ab")  # four values of each lane
    wide, narrow = (rng.integers(-99, 99, (32, 8)).astype(kind) for kind in (np.float32, np.float16))
    addends = np.concatenate([wide.view(np.uint32), narrow.view(np.uint32)], axis=1).T.copy()
    out = np.zeros((len(PRODUCTS), 8, 32), np.uint32)
    arguments = [a.view(np.uint32).T.copy(), b.view(np.uint32).T.copy(), addends, out]
    ptxtools.Device("sm_70", engine=engine).launch(ptxtools.loads(volta_kernel())["k"], 1, 32, arguments)
    for (of_a, of_b, kind), registers in zip(PRODUCTS, out, strict=True):
        words = registers.T.copy()
        found, added = (words.view(np.float32), wide) if kind == "f32" else (words.view(np.float16), narrow)
        for product in range(4):
            lanes = [*range(4 * product, 4 * product + 4), *range(4 * product + 16, 4 * product + 20)]
            left, right = np.zeros((8, 4)), np.zeros((4, 8))
            for lane in lanes:
                j, upper = lane % 4, 4 * (lane >= 16)
                for i in range(4):
                    left[(j + upper, i) if of_a == "row" else (i + upper, j)] = a[lane, i]
                    right[(j, i + upper) if of_b == "row" else (i, j + upper)] = b[lane, i]
            total = left @ right
            for lane in lanes:
                j, upper = lane % 4, 4 * (lane >= 16)
                for i in range(8):
                    spread = (lane & 1) + (i & 2) + upper, (i & 4) + (lane & 2) + (i & 1)
                    place = spread if kind == "f32" else (j + upper, i)
                    assert found[lane, i] == total[place] + added[lane, i], (of_a, of_b, kind, lane, i)


def test_wmma_of_volta() -> None:
    """The same with m16n16k16, which Volta makes of products of four columns."""
    body = """
    .reg .b32 %a<8>, %b<8>; .reg .f32 %c<8>, %d<8>; .reg .u64 %p<3>;
    ld.param.u64 %p0, [pa]; ld.param.u64 %p1, [pb]; ld.param.u64 %p2, [pd];
    wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%a0,%a1,%a2,%a3,%a4,%a5,%a6,%a7}, [%p0], 16;
    wmma.load.b.sync.aligned.col.m16n16k16.global.f16 {%b0,%b1,%b2,%b3,%b4,%b5,%b6,%b7}, [%p1], 16;
    mov.f32 %c0, 0f00000000; mov.f32 %c1, %c0; mov.f32 %c2, %c0; mov.f32 %c3, %c0;
    mov.f32 %c4, %c0; mov.f32 %c5, %c0; mov.f32 %c6, %c0; mov.f32 %c7, %c0;
    wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%d0,%d1,%d2,%d3,%d4,%d5,%d6,%d7},
        {%a0,%a1,%a2,%a3,%a4,%a5,%a6,%a7}, {%b0,%b1,%b2,%b3,%b4,%b5,%b6,%b7}, {%c0,%c1,%c2,%c3,%c4,%c5,%c6,%c7};
    wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%p2], {%d0,%d1,%d2,%d3,%d4,%d5,%d6,%d7}, 16;"""
    text = f""".version 6.3
    .target sm_70
    .address_size 64
    .visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pd) {{ {body} ret; }}"""
    a, b = np.zeros((16, 16), np.float16), np.ones((16, 16), np.float16)
    a[:, 0], a[:, 1:4], a[:, 4] = 1, 2.0**-14, 2.0**-24  # the last one is added to a sum that hides it
    b[:, 1:4] = 2.0**-10
    found = {}
    for target in ("sm_70", "sm_80"):
        out = np.zeros((16, 16), np.float32)
        ptxtools.Device(target).launch(ptxtools.loads(text)["k"], 1, 32, [a, b, out])
        found[target] = out[0, 0].item()
    # Each of three products of 2**-24 lies below 2**-23 and is cut off on Volta; Ampere keeps 24 bits of all four.
    assert found == {"sm_70": 1.0, "sm_80": 1 + 2.0**-22}
