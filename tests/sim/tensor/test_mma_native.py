"""tcgen05.mma in native code against the reference engine: all of tensor memory, bit for bit, for every form and
layout, with operands of every sort."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from ptxtools.diagnostics import Trap
from ptxtools.machine import events
from ptxtools.machine.events import View
from ptxtools.sim import services
from ptxtools.sim.tensor import mma
from tests.rows import rows

from . import kernels, operands
from .test_mma import A_AT, B_AT, Product

#: Turns of the loop around the instruction: a service serves the first.
TIMES = 3
#: Operands with addends that are no multiple of the smallest number, divided by more than one.
SUBNORMAL = ("finite", "tiny")
#: Kind, types of A, B and D.
TYPES = [
    ("f16", "f16", "f16", "f32"), ("f16", "f16", "f16", "f16"), ("f16", "bf16", "bf16", "f32"),
    ("tf32", "tf32", "tf32", "f32"), ("f8f6f4", "e4m3", "e5m2", "f32"), ("f8f6f4", "e5m2", "e4m3", "f16"),
    ("f8f6f4", "e2m3", "e3m2", "f32"), ("f8f6f4", "e2m1", "e4m3", "f32"), ("f8f6f4", "e3m2", "e2m1", "f16"),
    ("i8", "s8", "u8", "s32"), ("i8", "u8", "u8", "s32"),
]  # fmt: skip
#: M, N, CTAs, weight-stationary, first lane.
PLACES = [
    (128, 8, 1, False, 0), (128, 80, 1, False, 0), (64, 40, 1, False, 16), (256, 32, 2, False, 0),
    (256, 176, 2, False, 0), (128, 64, 2, False, 0), (32, 64, 1, True, 0), (64, 128, 1, True, 0), (128, 64, 1, True, 0),
]  # fmt: skip
#: Kind, types of A and B, type of scale factors, modifiers, factors along K.
SCALED = [
    ("mxf8f6f4", "e4m3", "e2m1", "ue8m0", ".block_scale.scale_vec::1X", 1),
    ("mxf8f6f4", "e3m2", "e5m2", "ue8m0", ".block_scale.scale_vec::1X", 1),
    ("mxf4", "e2m1", "e2m1", "ue8m0", ".block_scale.scale_vec::2X", 2),
    ("mxf4nvf4", "e2m1", "e2m1", "ue8m0", ".block_scale.scale_vec::2X", 2),
    ("mxf4nvf4", "e2m1", "e2m1", "ue4m3", ".block_scale.scale_vec::4X", 4),
]  # fmt: skip


class Form(NamedTuple):
    """One instruction: its types and place, sparse A, A in tensor memory, and what its descriptor and opcode say more.
    scale: of its scale factors; range_: of their bytes; alike: all copies of them are equal."""

    kind: str
    atype: str
    btype: str
    dtype: str
    m: int
    n: int
    ctas: int
    stationary: bool
    lane: int
    sparse: bool
    a_tensor: bool
    negate: int = 0
    saturate: bool = False
    disabled: bool = False
    shrink: int = 0
    scale: str = ""
    modifiers: str = ""
    range_: tuple[int, int] = (118, 136)
    alike: bool = True


def forms() -> Iterator[Form]:
    number = 0
    for kind, a, b, d in TYPES:
        for m, n, ctas, stationary, lane in PLACES:
            for sparse in (False, True):
                number += 1
                if kind == "i8" and ((ctas == 2 and n % 32) or n == 40):
                    n = 64
                yield Form(
                    kind, a, b, d, m, n, ctas, stationary, lane if m == 64 and not stationary else 0, sparse,
                    bool(number & 2), number % 3 if kind != "i8" else 0, kind == "i8" and number % 3 == 1,
                    not stationary and number % 5 == 0, number % 4 if kind == "f16" and not stationary else 0,
                )  # fmt: skip
    for kind, a, b, scale, modifiers, _ in SCALED:
        ranges = [(118, 136), (1, 90), (120, 256)] if scale == "ue8m0" else [(0, 127), (40, 90), (0, 256)]
        for m, n, ctas in ((128, 8, 1), (128, 72, 1), (256, 32, 2), (128, 64, 2)):
            for sparse in (False, True):
                for i, range_ in enumerate(ranges):
                    if not (sparse and m == 128 and ctas == 2):
                        yield Form(kind, a, b, "f32", m, n, ctas, False, 0, sparse, i == 1, 0, False, False, 0, scale,
                                   modifiers, range_, i < 2 or n != 72)  # fmt: skip


CASES = [
    (form, make, numerics) for form in forms() for make in operands.MAKERS for numerics in ("chip", "ieee")
]  # fmt: skip


@rows(("form", "make", "numerics"), CASES, ids=str, share=300)
def test_bits_are_those_of_the_reference(
    form: Form, make: operands.Maker, numerics: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted, _, _ = run(form, make, numerics, "reference", monkeypatch)
    found, services, by_arrays = run(form, make, numerics, "native", monkeypatch)
    np.testing.assert_array_equal(found, wanted)
    inexact = form.shrink and (form.dtype == "f16" or make.name in SUBNORMAL)
    usual = not form.scale or (form.range_ in ((118, 136), (40, 90)) and form.alike)
    if make.finite and usual and not inexact:
        assert (services, by_arrays) == (1, 0)


def run(
    form: Form, make: operands.Maker, numerics: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[np.ndarray, int, int]:
    """Tensor memory after some turns, how often a service came, and how often it computed rows of D from arrays."""
    arrays = services = 0
    compute, serve = mma._run_in, mma.product

    def by_arrays(*given: Any) -> None:
        nonlocal arrays
        arrays += 1
        compute(*given)

    def by_service(view: View) -> None:
        nonlocal services
        services += 1
        serve(view)

    with monkeypatch.context() as patch:
        patch.setattr(mma, "_run_in", by_arrays)
        patch.setitem(events.HANDLERS, "tcgen05.mma", by_service)
        case, options = product(form, make)
        text = f"""
    mov.u32 %q7, 0;
repeat:
{case.text(**options)}
    add.u32 %q7, %q7, 1;
    setp.lt.u32 %z1, %q7, {TIMES};
    @%z1 bra repeat;
"""
        found = kernels.tcgen05(
            text, case.shared, case.cells, group=case.ctas, target="sm_100a", engine=engine, numerics=numerics
        )
    return found, services, arrays


def product(form: Form, make: operands.Maker) -> tuple[Product, dict[str, Any]]:
    """The instruction with operands, and how it is written."""
    case = Product(
        form.kind, form.atype, form.btype, m=form.m, n=form.n, ctas=form.ctas, dtype=form.dtype, sparse=form.sparse,
        stationary=form.stationary, a_tensor=form.a_tensor, negate=form.negate, lane=form.lane,
    )  # fmt: skip
    rng = case.rng = np.random.default_rng(zlib.crc32(repr((form, make.name)).encode()))
    case.a_codes = make.codes(form.atype, rng, *case.a_codes.shape)
    case.b_codes = make.codes(form.btype, rng, *case.b_codes.shape)
    words = make.addends("f32" if form.dtype == "f16" else form.dtype, rng, case.c.shape)
    if form.dtype == "f16":
        with np.errstate(over="ignore"):
            words = words.view(np.float32).astype(np.float16).view(np.uint16).astype(np.uint32)
    case.cells[case.places()] = words
    case._store("b", case.b_codes, B_AT, False)
    if form.a_tensor:
        case._store_a()
    else:
        case._store("a", case.a_codes, A_AT, False)
    if form.sparse:
        case.cells[:, :, 300:304] = rng.integers(0, 1 << 32, case.cells[:, :, 300:304].shape, dtype=np.uint32)
    more = 8 if form.saturate else 0
    options: dict[str, Any] = {"modifiers": form.modifiers}
    if form.scale:
        factors = rng.integers(*form.range_, (form.ctas, 128, 160), dtype=np.uint8)
        if form.alike:
            factors[:] = np.tile(factors[0, :32], (4, 1))
        case.cells[:, :, 320:360] = factors.view(np.uint32)
        more |= 1 << 23 if form.scale == "ue8m0" else 0
        options["scales"] = "[%q4], [%q5], "
    if form.shrink:
        options["tail"] = f", {form.shrink}"
    if form.disabled:
        count = 4 * form.ctas
        options["lines"] = "mov.u32 %q6, 0x00FF5A01;"
        options["before"] = "{" + ", ".join(["%q6"] * count) + "}, "
    return case, {"more": more, **options}


REPEATED = """
.visible .entry k(.param .u64 out) {
    .reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .pred %p<3>;
    .shared .align 1024 .b8 smem[32768];
    .shared .align 4 .b32 place;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 64;
    ld.shared.u32 %r0, [place];
    mov.u32 %r1, smem;  shr.u32 %r1, %r1, 4;  cvt.u64.u32 %rd0, %r1;  or.b64 %rd0, %rd0, 0x4000404000010000;
    mov.u32 %r2, IDESC;
    mov.u32 %r3, %laneid;  setp.ne.u32 %p0, %r3, 0;
    mov.u32 %r4, 0;
again:
    @%p0 bra issued;
    tcgen05.mma.cta_group::1.kind::f16 [%r0], %rd0, %rd0, %r2, 0;
issued:
    bar.warp.sync -1;
    setp.ne.u32 %p1, %r4, 4;
    @%p1 bra kept;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, 64;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], SECOND;
kept:
    add.u32 %r4, %r4, 1;  setp.lt.u32 %p1, %r4, 8;
    @%p1 bra again;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, SECOND;
    ret;
}
"""


def repeated(second: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Eight products of 64 columns, which are allocated anew behind the fifth; how many of them came to Python."""
    calls = 0

    def by_service(view: View) -> None:
        nonlocal calls
        calls += 1
        mma.product(view)

    services.load("tcgen05.mma")
    monkeypatch.setitem(events.HANDLERS, "tcgen05.mma", by_service)
    idesc = 1 << 4 | 64 // 8 << 17 | 128 // 16 << 24
    text = REPEATED.replace("IDESC", str(idesc)).replace("SECOND", str(second))
    kernels.run(text, 32, [np.zeros(1, np.uint32)], target="sm_100a")
    return calls


def test_an_allocation_ends_what_native_code_may_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    assert repeated(64, monkeypatch) == 2
    with pytest.raises(Trap, match="D uses columns 0 to 63 of tensor memory, not all of which"):
        repeated(32, monkeypatch)
