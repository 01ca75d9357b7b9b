"""9.7.9.21 cvt, 9.7.9.22 cvt.pack."""

from .conditions import Context
from .types import TYPES

PAGES = """
let scale  = scale_factor:b16^(reg) if .scaled
let common = scale_factor:b8^(reg) if .common

# 9.7.9.21 cvt
    cvt{.sat}.dtype.atype             d:dtype+, a:atype+(reg imm sreg);                   // integer to integer
    .dtype = .atype = { .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64 };
    cvt.rnd{.ftz}{.sat}.dtype.atype   d:dtype+, a:atype+;                   // float to integer
    .rnd   = { .rni, .rzi, .rmi, .rpi };
    .dtype = { .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64 };
    .atype = { .f16, .bf16, .f32, .f64 };
    cvt.rnd{.ftz}{.sat}.dtype.atype   d:dtype+, a:atype+;                   // integer to float
    .rnd   = { .rn, .rz, .rm, .rp };
    .dtype = { .f16, .bf16, .f32, .f64 };
    .atype = { .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64 };
    cvt{.rnd}{.ftz}{.sat}.dtype.atype  d:dtype+, a:atype+;                  // same size
    .rnd   = { .rni, .rzi, .rmi, .rpi };
    .dtype = .atype = { .f16, .bf16, .f32, .f64 };
    cvt.rnd{.ftz}{.sat}.dtype.atype   d:dtype+, a:atype+;                   // to a smaller or other float
    .rnd   = { .rn, .rz, .rm, .rp };
    .dtype = .atype = { .f16, .bf16, .f32, .f64 };
    cvt.rnd{.relu}{.satfinite}{.pzo}.dtype.atype      d:dtype+, a:atype+;
    .rnd   = { .rn, .rz };
    .dtype = { .f16, .bf16 };
    .atype = { .f32 };
    cvt.rnd{.relu}{.satfinite}{.pzo}.dtype.atype      d:dtype+, a:atype+, b:atype+;
    .rnd   = { .rn, .rz };
    .dtype = { .f16x2, .bf16x2 };
    .atype = { .f32 };
    cvt.rnd{.relu}{.satfinite}.dtype.atype            d:dtype+, a:atype+, b:atype+, rbits:b32^(reg);
    .rnd   = { .rs };
    .dtype = { .f16x2, .bf16x2 };
    .atype = { .f32 };
    cvt.rnd{.satfinite}.dtype.atype                   d:dtype, a:atype;
    .rnd   = { .rna };
    .dtype = { .tf32 };
    .atype = { .f32 };
    cvt.rnd{.satfinite}{.relu}{.pzo}.dtype.atype      d:dtype, a:atype;
    .rnd   = { .rn, .rz };
    .dtype = { .tf32 };
    .atype = { .f32 };
    cvt.rnd.satfinite{.relu}{.pzo}{.common}.dtype.atype  d:dtype, a:atype, b:atype, $common;
    .rnd   = { .rn, .rz };
    .dtype = { .e4m3x2, .e5m2x2, .e2m1x2, .e2m3x2, .e3m2x2 };
    .atype = { .f32 };
    cvt.rnd.satfinite{.relu}{.pzo}{.common}.dtype.atype  d:dtype, a:atype, $common;
    .rnd   = { .rn, .rz };
    .dtype = { .e4m3x2, .e5m2x2, .e2m1x2, .e2m3x2, .e3m2x2 };
    .atype = { .f16x2, .bf16x2 };
    cvt.rnd{.satfinite}{.common}.dtype.atype          d:dtype, a:atype, b:atype, $common;
    .rnd   = { .rn, .rz, .rp };
    .dtype = { .ue5m3x2 };
    .atype = { .f32 };
    cvt.rnd{.satfinite}{.common}.dtype.atype          d:dtype, a:atype, $common;
    .rnd   = { .rn, .rz, .rp };
    .dtype = { .ue5m3x2 };
    .atype = { .f16x2, .bf16x2 };
    .common = { .scaled::n1::ue8m0 };
    cvt.rnd.dtype.atype                               d:dtype, a:atype;
    .rnd   = { .rn };
    .dtype = { .f16x2 };
    .atype = { .ue5m3x2 };
    cvt.rnd{.satfinite}{.scaled}.dtype.atype          d:dtype, a:atype, $scale;
    .rnd   = { .rn };
    .dtype = { .bf16x2 };
    .atype = { .ue5m3x2 };
    cvt.rnd{.relu}.dtype.atype                        d:dtype, a:atype;
    .rnd   = { .rn };
    .dtype = { .f16x2 };
    .atype = { .e4m3x2, .e5m2x2, .e2m1x2, .e2m3x2, .e3m2x2 };
    cvt.rnd{.relu}.satfinite.dtype.atype              d:dtype, a:atype*4(listed), rbits:b32^(reg);
    .rnd   = { .rs };
    .dtype = { .e4m3x4, .e5m2x4, .e2m1x4, .e2m3x4, .e3m2x4 };
    .atype = { .f32 };
    cvt.rnd{.satfinite}.dtype.atype                   d:dtype, a:atype, b:atype;
    .rnd   = { .rz, .rp };
    .dtype = { .ue8m0x2 };
    .atype = { .f32 };
    cvt.rnd{.satfinite}.dtype.atype                   d:dtype, a:atype;
    .rnd   = { .rz, .rp };
    .dtype = { .ue8m0x2 };
    .atype = { .bf16x2 };
    cvt.rnd.dtype.atype                               d:dtype, a:atype;
    .rnd   = { .rn };
    .dtype = { .bf16x2 };
    .atype = { .ue8m0x2 };
    cvt.rnd.satfinite{.relu}{.scaled}.dtype.atype     d:dtype, a:atype, b:atype, $scale;
    .rnd   = { .rn, .rz };
    .dtype = { .s2f6x2 };
    .atype = { .f32 };
    cvt.rnd.satfinite{.relu}{.scaled}.dtype.atype     d:dtype, a:atype, $scale;
    .rnd   = { .rn, .rz };
    .dtype = { .s2f6x2 };
    .atype = { .bf16x2 };
    cvt.rnd{.satfinite}{.relu}{.scaled}.dtype.atype   d:dtype, a:atype, $scale;
    .rnd   = { .rn };
    .dtype = { .bf16x2 };
    .atype = { .s2f6x2, .e4m3x2, .e5m2x2, .e2m1x2, .e2m3x2, .e3m2x2 };
    .scaled = { .scaled::n2::ue8m0 };
    rule legal
    needs .f64                                   => sm_13
    needs .ftz                                   => ptx 1.4
    needs .ftz dtype=.u64,.s64,.f64              => ptx 1.5
    needs .ftz atype=.u8,.s8                     => ptx 1.5
    needs dtype=.f32 atype=.bf16                 => ptx 7.1, sm_80
    needs dtype=.f32 atype=.bf16 .rnd            => ptx 7.8, sm_90
    needs .relu | dtype=.f16x2,.bf16x2,.tf32 | dtype=.bf16 atype=.f32 => ptx 7.0, sm_80
    needs dtype=.bf16 atype=.u8,.u16,.u32,.u64,.s8,.s16,.s32,.s64,.f16,.f64,.bf16 => ptx 7.8, sm_90
    needs atype=.bf16 dtype=.u8,.u16,.u32,.u64,.s8,.s16,.s32,.s64,.f16,.f64 => ptx 7.8, sm_90
    needs dtype=.tf32 rnd=.rn,.rz                => ptx 7.8, sm_90
    needs .e4m3x2,.e5m2x2                        => ptx 7.8, sm_90, sm_89@8.1
    needs .satfinite dtype=.f16,.bf16,.f16x2,.bf16x2,.tf32 => ptx 8.1, sm_70
    needs .satfinite dtype=.tf32 rnd=.rn,.rz     => ptx 8.6, sm_100
    needs .e2m1x2,.e2m3x2,.e3m2x2,.ue8m0x2       => ptx 8.6, blackwell
    needs rnd=.rs                                => ptx 8.7, sm_100a, sm_103a, sm_107a
    needs atype=.bf16x2 dtype=.e4m3x2,.e5m2x2,.e2m1x2,.e2m3x2,.e3m2x2 => ptx 9.1, narrow
    needs atype=.f16x2 dtype=.e2m1x2,.e2m3x2,.e3m2x2 => ptx 9.1, narrow
    needs .s2f6x2                                => ptx 9.1, sm_100a, sm_103a, sm_107a, sm_110a, sm_120a, sm_121a
    needs dtype=.bf16x2 atype=.e4m3x2,.e5m2x2,.e2m1x2,.e2m3x2,.e3m2x2 => ptx 9.2, narrow
    needs .pzo | .common | .ue5m3x2              => ptx 9.4, sm_107f
    needs .rz dtype=.e4m3x2,.e5m2x2,.e2m1x2,.e2m3x2,.e3m2x2 => ptx 9.4, sm_107f
    only .common dtype=.ue5m3x2 => .rn,.rz
    needs .rz .s2f6x2                            => ptx 9.4, sm_107a

# 9.7.9.22 cvt.pack
    cvt.pack.sat.dtype.atype        d:u32+, a:atype+, b:atype+;
    .dtype = { .u16, .s16 };
    .atype = { .s32 };
    cvt.pack.sat.dtype.atype.ctype  d:u32+, a:atype+, b:atype+, c:ctype+;
    .dtype = { .u2, .s2, .u4, .s4, .u8, .s8 };
    .atype = { .s32 };
    .ctype = { .b32 };
    needs                              => ptx 6.5, sm_72
    needs dtype=.u2,.s2,.u4,.s4        => sm_75
"""


_INTEGERS = frozenset({"u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64"})
_FLOATS = frozenset({"f16", "bf16", "f32", "f64"})


def legal(context: Context) -> dict[str, int | str] | str:
    """Where .ftz, .sat and a rounding are allowed in scalar conversions (9.7.9.21)."""
    mods = context.mods
    if context.name != "cvt":
        return {}
    to, of = mods["dtype"], mods["atype"]
    if "ftz" in mods and "f32" not in (to, of):
        return "'.ftz' needs '.f32' as source or destination type"
    if "bf16" in (to, of) and "sat" in mods:
        return "'.sat' cannot be combined with '.bf16'"
    if to in _INTEGERS and of in _INTEGERS and "sat" in mods and _holds(to, of):
        return f"'.sat' has no effect: '.{to}' can represent every '.{of}'"
    if to in _FLOATS and of in _FLOATS and "relu" not in mods and "satfinite" not in mods:
        return _float_to_float(to, of, mods.get("rnd"))
    return {}


def _holds(to: str, of: str) -> bool:
    """Whether integer type `to` represents every value of `of`."""
    wide, narrow = TYPES[to], TYPES[of]
    if wide.signed == narrow.signed:
        return wide.bits >= narrow.bits
    return wide.signed and wide.bits > narrow.bits


def _float_to_float(to: str, of: str, rounding: str | None) -> dict[str, int | str] | str:
    to_integral = rounding is not None and rounding.endswith("i")
    if to_integral:
        return {} if to == of else f"'.{rounding}' rounds to integral values and requires equal types"
    if to == of:
        return {} if rounding is None else "between equal types only .rni, .rzi, .rmi and .rpi round"
    widening = TYPES[to].bits > TYPES[of].bits
    if widening and rounding is not None and of != "bf16":
        return f"'.{to}' can represent every '.{of}': no rounding is needed"
    if not widening and rounding is None and {to, of} != {"f16", "bf16"}:  # compilers omit it there: .rn is implied
        return f"'.{to}' cannot represent every '.{of}': one of .rn, .rz, .rm, .rp is required"
    return {}
