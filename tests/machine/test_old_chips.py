"""What programs can see of chips before sm_75: flushing, mad.f32, short spellings, lockstep, and what they hold."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import ptxtools
from ptxtools.isa.implied import reader_for
from ptxtools.sim.device import check_parameters
from ptxtools.sim.kernel import Kernel, Parameter
from ptxtools.sim.limits import LIMITS
from ptxtools.sim.shape import check_stack
from tests.rows import rows

from .harness import ENGINES

HEADER = ".version {version}\n.target {target}\n{size}\n"
#: d[i] = body of a[i], b[i], c[i], for 32 threads.
KERNEL = """
.visible .entry k(.param .u{bits} pa, .param .u{bits} pb, .param .u{bits} pc, .param .u{bits} pd)
{{
    .reg .u{bits} %a<5>; .reg .u{bits} %i; .reg .u32 %t; .reg .f32 %f<5>; .reg .f64 %g<3>; .reg .pred %p; .reg .s32 %s;
    mov.u32 %t, %tid.x; {wide}
    ld.param.u{bits} %a1, [pa]; ld.param.u{bits} %a2, [pb]; ld.param.u{bits} %a3, [pc]; ld.param.u{bits} %a4, [pd];
    add.u{bits} %a1, %a1, %i; add.u{bits} %a2, %a2, %i; add.u{bits} %a3, %a3, %i; add.u{bits} %a4, %a4, %i;
    ld.global.f32 %f1, [%a1]; ld.global.f32 %f2, [%a2]; ld.global.f32 %f3, [%a3];
    {body}
    st.global.f32 [%a4], %f4;
    exit;
}}
"""
TINY, NORMAL = np.float32(2.0**-130), np.float32(2.0**-126)


def text_of(body: str, target: str, version: str = "2.3", bits: int = 64) -> str:
    wide = "mul.wide.u32 %i, %t, 4;" if bits == 64 else "shl.b32 %i, %t, 2;"
    size = "" if version < "2.3" else f".address_size {bits}"
    return (HEADER + KERNEL).format(version=version, target=target, size=size, bits=bits, body=body, wide=wide)


def run(
    body: str, device: str | None, *operands: object, target: str = "sm_13", version: str = "2.3", bits: int = 64,
    engine: str = "native", **options: object,
) -> np.ndarray:  # fmt: skip
    columns = [np.broadcast_to(np.asarray(o, np.float32), 32).copy() for o in operands]
    columns += [np.zeros(32, np.float32) for _ in range(3 - len(columns))]
    out = np.zeros(32, np.float32)
    module = ptxtools.loads(text_of(body, target, version, bits))
    ptxtools.Device(device, engine=engine, **options).launch(module["k"], 1, 32, [*columns, out])
    return out


# --- subnormal numbers (9.7.3, 9.7.6, 9.7.9.21) -----------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@rows(
    ("body", "kept"),
    [
        ("add.f32 %f4, %f1, %f2;", NORMAL + TINY),
        ("mul.f32 %f4, %f1, %f3;", TINY),
        ("mad.f32 %f4, %f1, %f3, %f1;", 2 * TINY),
        ("max.f32 %f4, %f1, %f1;", TINY),
        ("abs.f32 %f4, %f1;", TINY),
        ("setp.gt.f32 %p, %f1, 0f00000000; selp.f32 %f4, 0f3F800000, 0f00000000, %p;", 1),
        ("set.gt.f32.f32 %f4, %f1, 0f00000000;", 1),
        ("cvt.f64.f32 %g1, %f1; mul.f64 %g1, %g1, 0d47F0000000000000; cvt.rn.f32.f64 %f4, %g1;", 2.0**-2),
        ("cvt.rpi.s32.f32 %s, %f1; cvt.rn.f32.s32 %f4, %s;", 1),
    ],
    share=3,
)
def test_a_module_for_sm_1x_flushes_subnormals(engine: str, body: str, kept: float) -> None:
    """On its own chip and on later ones; the same text for sm_20 keeps them."""
    flushed = NORMAL if body.startswith("add") else 0
    for device in ("sm_13", "sm_60", None):
        got = run(body, device, TINY, NORMAL, 1.0, engine=engine)
        assert (got == flushed).all(), (device, got[0])
    later = body.replace("mad.f32", "mad.rn.f32")
    assert (run(later, "sm_20", TINY, NORMAL, 1.0, target="sm_20", engine=engine) == np.float32(kept)).all()


def test_flushing_keeps_the_sign() -> None:
    assert np.signbit(run("mul.f32 %f4, %f1, %f2;", "sm_10", -TINY, 1.0, target="sm_10")).all()


def test_what_is_not_f32_is_not_flushed() -> None:
    """Moves, selections, and f64 with its subnormal numbers."""
    assert (run("mov.f32 %f4, %f1;", "sm_13", TINY) == TINY).all()
    assert (run("setp.eq.u32 %p, %t, %t; selp.f32 %f4, %f1, %f2, %p;", "sm_13", TINY) == TINY).all()
    body = "mov.f64 %g1, 0d0000000000000001; add.f64 %g1, %g1, %g1; setp.eq.f64 %p, %g1, 0d0000000000000002;"
    assert (run(body + "selp.f32 %f4, 0f3F800000, 0f00000000, %p;", "sm_13") == 1).all()


def test_conversions_from_f64_before_ptx_1_5() -> None:
    """Those modules were promised subnormal numbers where the other type has 64 bits."""
    body = "mov.f64 %g1, 0d37D0000000000000; cvt.rn.f32.f64 %f4, %g1;"
    assert (run(body, "sm_13", version="1.4", bits=32) == np.float32(2.0**-130)).all()
    assert (run(body, "sm_13", version="1.5", bits=32) == 0).all()


# --- mad.f32 of sm_1x (9.7.3.7) ---------------------------------------------------------------------------------------


def single(x: Fraction) -> np.float32:
    """To nearest even, flushed."""
    if not x:
        return np.float32(0)
    exponent = max(abs(x.numerator).bit_length() - x.denominator.bit_length() - 30, -200)
    scaled = x / Fraction(2) ** exponent
    whole = scaled.numerator // scaled.denominator
    sticky = whole | (whole * scaled.denominator != scaled.numerator)  # 29 bits and more, rounded to odd
    near = np.float32(np.ldexp(np.float64(sticky), exponent))
    return near if abs(near) >= NORMAL else np.copysign(np.float32(0), near)


def truncated_mad(a: np.float32, b: np.float32, c: np.float32) -> np.float32:
    product, addend = Fraction(float(a)) * Fraction(float(b)), Fraction(float(c))
    if not addend:
        return np.float32(a * b + c)
    size = abs(product)
    if size:
        exponent = size.numerator.bit_length() - size.denominator.bit_length()
        exponent -= size < Fraction(2) ** exponent
        unit = Fraction(2) ** (exponent - 23)
        product = (size // unit) * unit * (1 if product > 0 else -1)
    return single(product + addend)


@pytest.mark.parametrize("engine", ENGINES)
def test_mad_truncates_its_product_on_sm_1x(engine: str) -> None:
    rng = np.random.default_rng(7)
    a, b = (rng.standard_normal(32).astype(np.float32) for _ in "ab")
    c = rng.standard_normal(32).astype(np.float32) * np.float32(2.0**-3)
    c[::4] = 0
    c[1::4] = -(a * b)[1::4]  # cancels: what is left is what was cut off or rounded
    wanted = np.array([truncated_mad(*values) for values in zip(a, b, c, strict=True)])
    got = run("mad.f32 %f4, %f1, %f2, %f3;", "sm_13", a, b, c, engine=engine)
    assert got.view(np.uint32).tolist() == wanted.view(np.uint32).tolist()
    fused = run("mad.f32 %f4, %f1, %f2, %f3;", "sm_20", a, b, c, engine=engine)
    exact = [single(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))) for x, y, z in zip(a, b, c)]  # noqa: B905
    assert fused.view(np.uint32).tolist() == np.array(exact).view(np.uint32).tolist()
    assert (got != fused).any()


@pytest.mark.parametrize("engine", ENGINES)
def test_the_product_keeps_its_exponent(engine: str) -> None:
    """Beyond f32 in both directions, unless the addend is zero."""
    body = "mad.f32 %f4, %f1, %f2, %f3;"
    huge, most = np.float32(2.0**64), np.finfo(np.float32).max
    assert (run(body, "sm_13", huge, huge, -most, engine=engine) == np.float32(2.0**104)).all()
    assert np.isinf(run(body, "sm_13", huge, huge, 0.0, engine=engine)).all()
    small, least = np.float32(2.0**-76), NORMAL * np.float32(1 + 2.0**-23)
    assert (run(body, "sm_13", small, small, least, engine=engine) == least).all()
    assert (run(body, "sm_13", 2.0**-70, -(2.0**-57), NORMAL * 2, engine=engine) == NORMAL * np.float32(1.5)).all()
    assert np.isnan(run(body, "sm_13", np.inf, 0.0, 1.0, engine=engine)).all()
    assert (run("mad.sat.f32 %f4, %f1, %f2, %f3;", "sm_13", 3.0, 3.0, 1.0, engine=engine) == 1).all()


# --- what is left unsaid before PTX 1.4 -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "meant"),
    [("div.f32", "div.approx.ftz.f32"), ("rcp.f32", "rcp.approx.ftz.f32"), ("sqrt.f32", "sqrt.approx.ftz.f32"),
     ("rsqrt.f32", "rsqrt.approx.ftz.f32"), ("sin.f32", "sin.approx.ftz.f32"), ("lg2.f32", "lg2.approx.ftz.f32"),
     ("ex2.f32", "ex2.approx.ftz.f32"), ("cos.f32", "cos.approx.ftz.f32"), ("div.f64", "div.f64")],
)  # fmt: skip
def test_short_spellings_are_approximate(text: str, meant: str) -> None:
    assert reader_for((1, 3), "sm_20")(text).text == meant
    assert reader_for((1, 4), "sm_20")(text).text == text
    assert reader_for((0, 0), "")(text).text == text


#: As compilers of that time wrote it: parameters in the body, %tid of 16 bits, 32-bit addresses.
FIRST = """
.version 1.3
.target sm_10
.entry k
{
    .param .u32 pa; .param .u32 pd;
    .reg .u32 %a<3>; .reg .f32 %f<5>; .reg .u16 %h; .reg .u32 %i;
    mov.u16 %h, %tid.x; mul.wide.u16 %i, %h, 4;
    ld.param.u32 %a1, [pa]; ld.param.u32 %a2, [pd]; add.u32 %a1, %a1, %i; add.u32 %a2, %a2, %i;
    ld.global.f32 %f1, [%a1]; ld.global.f32 %f2, [%a1+128];
    div.f32 %f4, %f1, %f2;
    st.global.f32 [%a2], %f4;
    exit;
}
"""


@pytest.mark.parametrize("device", ["sm_10", "sm_60", None])
def test_a_module_of_ptx_1_3(device: str | None) -> None:
    rng = np.random.default_rng(3)
    values, out = rng.uniform(1, 2, 64).astype(np.float32), np.zeros(32, np.float32)
    ptxtools.Device(device).launch(ptxtools.loads(FIRST)["k"], 1, 32, [values, out])
    wanted = run("div.approx.ftz.f32 %f4, %f1, %f2;", "sm_13", values[:32], values[32:])
    assert out.tolist() == wanted.tolist() != (values[:32] / values[32:]).tolist()


# --- addresses, lockstep, tensor cores --------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_addresses_of_32_bits(engine: str) -> None:
    got = run("add.f32 %f4, %f1, %f2;", "sm_35", np.arange(32), 0.5, target="sm_20", bits=32, engine=engine)
    assert got.tolist() == [i + 0.5 for i in range(32)]


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_warps_in_lockstep(seed: int | None) -> None:
    """Code for chips without independent threads relies on it: a sum in shared memory without barriers."""
    body = """
    .shared .f32 s[64]; .reg .u32 %r<3>;
    mov.u32 %r1, s; shl.b32 %r2, %t, 2; add.u32 %r1, %r1, %r2;
    st.volatile.shared.f32 [%r1+128], 0f00000000; st.volatile.shared.f32 [%r1], %f1;"""
    for distance in (16, 8, 4, 2, 1):
        body += f"""
    ld.volatile.shared.f32 %f3, [%r1+{4 * distance}]; add.f32 %f1, %f1, %f3; st.volatile.shared.f32 [%r1], %f1;"""
    body += "ld.volatile.shared.f32 %f4, [s];"
    assert (run(body, "sm_35", np.arange(32), target="sm_20", seed=seed) == 496).all()


# --- what these chips hold --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("device", "change", "says"),
    [
        ("sm_13", {"block": 513}, r"block 513,1,1 has 513 threads in x; at most 512 are allowed on sm_13"),
        ("sm_13", {"block": (32, 32)}, r"block 32,32,1 has 1024 threads; a CTA has at most 512 on sm_13"),
        ("sm_13", {"grid": (1, 1, 2)}, r"has 2 CTAs in z; at most 1 are allowed on sm_13"),
        ("sm_20", {"grid": 65536}, r"has 65536 CTAs in x; at most 65535 are allowed on sm_20"),
        ("sm_13", {"shared": 16385}, r"sm_13 has at most 16,384"),
        ("sm_61", {"shared": 49153}, r"sm_61 has at most 49,152"),
        ("sm_35", {"cluster": 2, "grid": 2}, r"sm_35 has no clusters"),
    ],
)
def test_refused_launches(device: str, change: dict[str, object], says: str) -> None:
    module = ptxtools.loads(text_of("mov.f32 %f4, %f1;", "sm_13"))
    options: dict[str, object] = {"grid": 1, "block": 32, "args": [None] * 4, **change}
    with pytest.raises(ptxtools.LaunchError, match=says):
        ptxtools.Device(device).launch(module["k"], **options)


def test_the_stack_of_old_chips() -> None:
    with pytest.raises(ptxtools.LaunchError, match="a stack of 16,385 bytes: a thread has 0 to 16,384 on sm_13"):
        check_stack(16385, LIMITS["sm_13"])
    check_stack(16385, LIMITS["sm_20"])


def test_parameters_of_old_chips() -> None:
    kernel = Kernel("k", (Parameter("p", "b8", 4200, 1, 0),))
    with pytest.raises(ptxtools.LaunchError, match="4,200 bytes of parameters; sm_60 takes 4,096"):
        check_parameters(kernel, bytes(4200), LIMITS["sm_60"])
    check_parameters(kernel, bytes(4200), LIMITS["sm_70"])


def test_a_module_needs_its_chip_or_a_later_one() -> None:
    with pytest.raises(ptxtools.LaunchError, match="the module is for sm_35; a device of sm_30 cannot run it"):
        run("mov.f32 %f4, %f1;", "sm_30", target="sm_35", version="3.1")
