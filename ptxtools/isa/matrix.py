"""9.7.14 Warp level matrix instructions: wmma, mma, mma.sp, ldmatrix, stmatrix, movmatrix."""

import re
from collections.abc import Mapping

from .conditions import Context
from .types import TYPES

PAGES = """
let dabc   = d:td*nd, a:ta*na(reg imm), b:tb*nb(reg imm), c:tc*nc(reg imm)
let sparse = e:u32(reg braced), f:u32(imm 0..selectors)
let sparse8 = e:u32(reg braced), f:u32(imm low<9.3 0..selectors)
let ids_b  = scale_b:b32(reg braced), ids_b:u16*2(reg imm 0..bytes:step 0..3)
let scales = scale_a:b32(reg braced), ids_a:u16*2(reg imm 0..bytes:step 0..1), $ids_b
let load   = =r:register*count, [p]{, stride:u32}
let store  = [p], r:register*count(reg imm){, stride:u32}

# 9.7.14.4.3 wmma.load
    wmma.load.matrix.sync{.aligned}.layout.shape{.ss}.type  $load;
    .matrix = { .a, .b };
    .shape  = { .m16n16k16, .m8n32k16, .m32n8k16 };
    .type   = { .f16, .s8, .u8, .bf16 };
    wmma.load.matrix.sync{.aligned}.layout.shape{.ss}.type  $load;
    .matrix = { .c };
    .shape  = { .m16n16k16, .m8n32k16, .m32n8k16 };
    .type   = { .f16, .f32, .s32 };
    wmma.load.matrix.sync{.aligned}.layout.shape{.ss}.type  $load;
    .matrix = { .a, .b };
    .shape  = { .m16n16k8 };
    .type   = { .tf32 };
    wmma.load.matrix.sync{.aligned}.layout.shape{.ss}.type  $load;
    .matrix = { .c };
    .shape  = { .m16n16k8 };
    .type   = { .f32 };
    wmma.load.matrix.sync{.aligned}.layout.shape{.ss}.type  $load;
    .matrix = { .a, .b, .c };
    .shape  = { .m8n8k4 };
    .type   = { .f64 };
    .layout = { .row, .col };
    wmma.load.matrix.sync{.aligned}.layout.shape{.ss}.type  $load;
    .matrix = { .a };
    .layout = { .row };
    .shape  = { .m8n8k32 };
    .type   = { .s4, .u4 };
    wmma.load.matrix.sync{.aligned}.layout.shape{.ss}.type  $load;
    .matrix = { .b };
    .layout = { .col };
    .shape  = { .m8n8k32 };
    .type   = { .s4, .u4 };
    wmma.load.matrix.sync{.aligned}.layout.shape{.ss}.type  $load;
    .matrix = { .a };
    .layout = { .row };
    .shape  = { .m8n8k128 };
    .type   = { .b1 };
    wmma.load.matrix.sync{.aligned}.layout.shape{.ss}.type  $load;
    .matrix = { .b };
    .layout = { .col };
    .shape  = { .m8n8k128 };
    .type   = { .b1 };
    wmma.load.matrix.sync{.aligned}.layout.shape{.ss}.type  $load;
    .matrix = { .c };
    .layout = { .row, .col };
    .shape  = { .m8n8k32, .m8n8k128 };
    .type   = { .s32 };
    .ss = { .global, .shared{::cta} };
    first .matrix
    rule wmma_fragment
    needs                                   => ptx 6.0, sm_70
    needs .m8n32k16,.m32n8k16               => ptx 6.1
    needs .s8,.u8 | .c .s32                 => ptx 6.3, sm_72
    needs .m8n8k32,.m8n8k128                => ptx 6.3, sm_75
    needs .bf16,.tf32,.f64,.m16n16k8        => ptx 7.0, sm_80
    needs .shared::cta                      => ptx 7.8
    needs .aligned                          => ptx 6.3
    removed !.aligned                       => ptx 6.3

# 9.7.14.4.4 wmma.store
    wmma.store.matrix.sync{.aligned}.layout.shape{.ss}.type  $store;
    .shape  = { .m16n16k16, .m8n32k16, .m32n8k16 };
    .type   = { .f16, .f32, .s32 };
    wmma.store.matrix.sync{.aligned}.layout.shape{.ss}.type  $store;
    .shape  = { .m8n8k32, .m8n8k128 };
    .type   = { .s32 };
    wmma.store.matrix.sync{.aligned}.layout.shape{.ss}.type  $store;
    .shape  = { .m16n16k8 };
    .type   = { .f32 };
    wmma.store.matrix.sync{.aligned}.layout.shape{.ss}.type  $store;
    .shape  = { .m8n8k4 };
    .type   = { .f64 };
    .matrix = { .d };
    .layout = { .row, .col };
    .ss = { .global, .shared{::cta} };
    first .matrix
    rule wmma_fragment
    needs                     => ptx 6.0, sm_70
    needs .m8n32k16,.m32n8k16 => ptx 6.1
    needs .s32                => ptx 6.3, sm_72
    needs .m8n8k32,.m8n8k128  => ptx 6.3, sm_75
    needs .f64,.m16n16k8      => ptx 7.0, sm_80
    needs .shared::cta        => ptx 7.8
    needs .aligned            => ptx 6.3
    removed !.aligned         => ptx 6.3

# 9.7.14.4.5 wmma.mma
    wmma.mma.sync{.aligned}.alayout.blayout.shape.dtype.ctype{.satfinite}  $dabc;
    .alayout = .blayout = { .row, .col };
    .shape = { .m16n16k16, .m8n32k16, .m32n8k16 };
    .dtype = .ctype = { .f16, .f32 };
    wmma.mma.sync{.aligned}.alayout.blayout.shape.dtype.atype.btype.ctype{.satfinite}  $dabc;
    .alayout = .blayout = { .row, .col };
    .shape = { .m16n16k16, .m8n32k16, .m32n8k16 };
    .dtype = .ctype = { .s32 };
    .atype = .btype = { .s8, .u8 };
    wmma.mma.sync.aligned.alayout.blayout.shape.dtype.atype.btype.ctype  $dabc;
    .alayout = .blayout = { .row, .col };
    .shape = { .m16n16k16, .m8n32k16, .m32n8k16 };
    .dtype = .ctype = { .f32 };
    .atype = .btype = { .bf16 };
    wmma.mma.sync.aligned.alayout.blayout.shape.dtype.atype.btype.ctype  $dabc;
    .alayout = .blayout = { .row, .col };
    .shape = { .m16n16k8 };
    .dtype = .ctype = { .f32 };
    .atype = .btype = { .tf32 };
    wmma.mma.sync.aligned.alayout.blayout.shape{.rnd}.dtype.atype.btype.ctype  $dabc;
    .alayout = .blayout = { .row, .col };
    .shape = { .m8n8k4 };
    .rnd   = { .rn, .rz, .rm, .rp };
    .dtype = .atype = .btype = .ctype = { .f64 };
    wmma.mma.sync{.aligned}.alayout.blayout.shape.dtype.atype.btype.ctype{.satfinite}  $dabc;
    .alayout = { .row };
    .blayout = { .col };
    .shape = { .m8n8k32 };
    .dtype = .ctype = { .s32 };
    .atype = .btype = { .s4, .u4 };
    wmma.mma.op.popc.sync{.aligned}.alayout.blayout.shape.dtype.atype.btype.ctype  $dabc;
    .op    = { .xor, .and };
    .alayout = { .row };
    .blayout = { .col };
    .shape = { .m8n8k128 };
    .dtype = .ctype = { .s32 };
    .atype = .btype = { .b1 };
    rule wmma_operands
    needs                     => ptx 6.0, sm_70
    needs .m8n32k16,.m32n8k16 => ptx 6.1
    needs .s8,.u8             => ptx 6.3, sm_72
    needs .m8n8k32,.m8n8k128  => ptx 6.3, sm_75
    needs .bf16,.tf32,.f64    => ptx 7.0, sm_80
    needs .and                => ptx 7.1, sm_80
    needs .aligned            => ptx 6.3
    removed !.aligned         => ptx 6.3
    removed .satfinite dtype=.f16,.f32 => ptx 6.5

# 9.7.14.5.14 mma
    mma.sync.aligned.shape.alayout.blayout.dtype.atype.btype.ctype  $dabc;
    .shape = { .m8n8k4 };
    .alayout = .blayout = { .row, .col };
    .dtype = .ctype = { .f16, .f32 };
    .atype = .btype = { .f16 };
    mma.sync.aligned.shape.alayout.blayout.dtype.atype.btype.ctype  $dabc;
    .shape = { .m16n8k8, .m16n8k16 };
    .dtype = .ctype = { .f16, .f32 };
    .atype = .btype = { .f16 };
    mma.sync.aligned.shape.alayout.blayout.dtype.atype.btype.ctype  $dabc;
    .shape = { .m16n8k4, .m16n8k8 };
    .dtype = .ctype = { .f32 };
    .atype = .btype = { .tf32 };
    mma.sync.aligned.shape.alayout.blayout.dtype.atype.btype.ctype  $dabc;
    .shape = { .m16n8k8, .m16n8k16 };
    .dtype = .ctype = { .f32 };
    .atype = .btype = { .bf16 };
    mma.sync.aligned.shape.alayout.blayout.dtype.atype.btype.ctype  $dabc;
    .shape = { .m16n8k16, .m16n8k32 };
    .dtype = .ctype = { .f16, .f32 };
    .atype = .btype = { .e4m3, .e5m2 };
    mma.sync.aligned.shape.alayout.blayout.kind.dtype.atype.btype.ctype  $dabc;
    .shape = { .m16n8k32 };
    .kind  = { .kind::f8f6f4 };
    .dtype = .ctype = { .f16, .f32 };
    .atype = .btype = { .e4m3, .e5m2, .e3m2, .e2m3, .e2m1 };
    mma.sync.aligned.shape.alayout.blayout.kind.block_scale{.scale_vec_size}.dtype.atype.btype.ctype.stype
        $dabc, $scales;
    .shape = { .m16n8k64 };
    .kind  = { .kind::mxf4 };
    .scale_vec_size = { .scale_vec::2X };
    .dtype = .ctype = { .f32 };
    .atype = .btype = { .e2m1 };
    .stype = { .ue8m0 };
    mma.sync.aligned.shape.alayout.blayout.kind.block_scale.scale_vec_size.dtype.atype.btype.ctype.stype
        $dabc, $scales;
    .shape = { .m16n8k64 };
    .kind  = { .kind::mxf4nvf4 };
    .scale_vec_size = { .scale_vec::2X, .scale_vec::4X };
    .dtype = .ctype = { .f32 };
    .atype = .btype = { .e2m1 };
    .stype = { .ue8m0, .ue4m3 };
    mma.sync.aligned.shape.alayout.blayout.kind.block_scale{.scale_vec_size}.dtype.atype.btype.ctype.stype
        $dabc, $scales;
    .shape = { .m16n8k32 };
    .kind  = { .kind::mxf8f6f4 };
    .scale_vec_size = { .scale_vec::1X };
    .dtype = .ctype = { .f32 };
    .atype = .btype = { .e4m3, .e5m2, .e3m2, .e2m3, .e2m1 };
    .stype = { .ue8m0 };
    mma.sync.aligned.shape.alayout.blayout{.rnd}.dtype.atype.btype.ctype  $dabc;
    .shape = { .m8n8k4, .m16n8k4, .m16n8k8, .m16n8k16 };
    .rnd   = { .rn, .rz, .rm, .rp };
    .dtype = .atype = .btype = .ctype = { .f64 };
    mma.sync.aligned.shape.alayout.blayout{.satfinite}.dtype.atype.btype.ctype  $dabc;
    .shape = { .m8n8k16, .m16n8k16, .m16n8k32 };
    .dtype = .ctype = { .s32 };
    .atype = .btype = { .u8, .s8 };
    mma.sync.aligned.shape.alayout.blayout{.satfinite}.dtype.atype.btype.ctype  $dabc;
    .shape = { .m8n8k32, .m16n8k32, .m16n8k64 };
    .dtype = .ctype = { .s32 };
    .atype = .btype = { .u4, .s4 };
    mma.sync.aligned.shape.alayout.blayout.dtype.atype.btype.ctype.bitOp.popc  $dabc;
    .shape = { .m8n8k128, .m16n8k128, .m16n8k256 };
    .dtype = .ctype = { .s32 };
    .atype = .btype = { .b1 };
    .bitOp = { .xor, .and };
    .alayout = { .row };
    .blayout = { .col };
    rule mma_operands
    needs                                         => ptx 6.4, sm_70
    needs .m16n8k8 atype=.f16 | .m8n8k16 | .m8n8k32 | .m8n8k128 => ptx 6.5, sm_75
    needs .m16n8k16,.m16n8k32,.m16n8k64,.m16n8k128,.m16n8k256,.bf16,.tf32,.f64 => ptx 7.0, sm_80
    needs .m8n8k128                               => ptx 7.0
    needs .and                                    => ptx 7.1, sm_80
    needs .f64 .m16n8k4,.m16n8k8,.m16n8k16        => ptx 7.8, sm_90
    needs atype=.e4m3,.e5m2                       => ptx 8.4, sm_89
    needs .m16n8k16 atype=.e4m3,.e5m2             => ptx 8.7
    needs dtype=.f16 atype=.e4m3,.e5m2            => ptx 8.7
    needs .kind                                   => ptx 8.7, rtx_blackwell
    needs .scale_vec::4X .ue8m0                   => ptx 9.1  // 8.7 lists no such scale (9.7.14.3), ptxas 13.0 has none

# 9.7.14.6.3 mma
    mma.spvariant.sync.aligned.shape.alayout.blayout.dtype.atype.btype.ctype  $dabc, $sparse;
    .shape = { .m16n8k16, .m16n8k32 };
    .dtype = .ctype = { .f16, .f32 };
    .atype = .btype = { .f16 };
    mma.spvariant.sync.aligned.shape.alayout.blayout.dtype.atype.btype.ctype  $dabc, $sparse;
    .shape = { .m16n8k16, .m16n8k32 };
    .dtype = .ctype = { .f32 };
    .atype = .btype = { .bf16 };
    mma.spvariant.sync.aligned.shape.alayout.blayout.dtype.atype.btype.ctype  $dabc, $sparse;
    .shape = { .m16n8k8, .m16n8k16 };
    .dtype = .ctype = { .f32 };
    .atype = .btype = { .tf32 };
    mma.spvariant.sync.aligned.shape.alayout.blayout.dtype.atype.btype.ctype  $dabc, $sparse8;
    .shape = { .m16n8k64 };
    .dtype = .ctype = { .f32 };
    .atype = .btype = { .e4m3, .e5m2 };
    mma.spvariant.sync.aligned.shape.alayout.blayout{.satfinite}.dtype.atype.btype.ctype  $dabc, $sparse;
    .shape = { .m16n8k32, .m16n8k64 };
    .dtype = .ctype = { .s32 };
    .atype = .btype = { .u8, .s8 };
    mma.spvariant.sync.aligned.shape.alayout.blayout{.satfinite}.dtype.atype.btype.ctype  $dabc, $sparse;
    .shape = { .m16n8k64, .m16n8k128 };
    .dtype = .ctype = { .s32 };
    .atype = .btype = { .u4, .s4 };
    .spvariant = { .sp, .sp::ordered_metadata };
    mma.spvariant.sync.aligned.shape.alayout.blayout.dtype.atype.btype.ctype  $dabc, $sparse8;
    .shape = { .m16n8k64 };
    .dtype = .ctype = { .f16 };
    .atype = .btype = { .e4m3, .e5m2 };
    mma.spvariant.sync.aligned.shape.alayout.blayout.kind.dtype.atype.btype.ctype  $dabc, $sparse8;
    .shape = { .m16n8k64 };
    .kind  = { .kind::f8f6f4 };
    .dtype = .ctype = { .f16, .f32 };
    .atype = .btype = { .e4m3, .e5m2, .e3m2, .e2m3, .e2m1 };
    mma.spvariant.sync.aligned.shape.alayout.blayout.kind.block_scale{.scale_vec_size}.dtype.atype.btype.ctype.stype
        $dabc, $sparse8, $scales;
    .shape = { .m16n8k128 };
    .kind  = { .kind::mxf4 };
    .scale_vec_size = { .scale_vec::2X };
    .dtype = .ctype = { .f32 };
    .atype = .btype = { .e2m1 };
    .stype = { .ue8m0 };
    mma.spvariant.sync.aligned.shape.alayout.blayout.kind.block_scale.scale_vec_size.dtype.atype.btype.ctype.stype
        $dabc, $sparse8, $scales;
    .shape = { .m16n8k128 };
    .kind  = { .kind::mxf4nvf4 };
    .scale_vec_size = { .scale_vec::2X, .scale_vec::4X };
    .dtype = .ctype = { .f32 };
    .atype = .btype = { .e2m1 };
    .stype = { .ue8m0, .ue4m3 };
    mma.spvariant.sync.aligned.shape.alayout.blayout.kind.block_scale{.scale_vec_size}.dtype.atype.btype.ctype.stype
        $dabc, $sparse8, $scales;
    .shape = { .m16n8k64 };
    .kind  = { .kind::mxf8f6f4 };
    .scale_vec_size = { .scale_vec::1X };
    .dtype = .ctype = { .f32 };
    .atype = .btype = { .e4m3, .e5m2, .e3m2, .e2m3, .e2m1 };
    .stype = { .ue8m0 };
    .spvariant = { .sp::ordered_metadata };
    .alayout = { .row };
    .blayout = { .col };
    rule mma_operands
    needs                              => ptx 7.1, sm_80
    needs atype=.e4m3,.e5m2            => ptx 8.4, sm_89
    needs .sp::ordered_metadata        => ptx 8.5
    needs .kind | dtype=.f16 atype=.e4m3,.e5m2 => ptx 8.7, rtx_blackwell
    needs .kind::mxf4,.kind::mxf4nvf4  => rtx_blackwell_chips
    needs .scale_vec::4X .ue8m0        => ptx 9.1

# 9.7.14.5.15 ldmatrix
    ldmatrix.sync.aligned.shape.num{.trans}{.ss}.type        =r:b32*registers, [p];
    .shape = { .m8n8 };
    .num   = { .x1, .x2, .x4 };
    .type  = { .b16 };
    ldmatrix.sync.aligned.shape.num.trans{.ss}.type          =r:b32*registers, [p];
    .shape = { .m16n16 };
    .num   = { .x1, .x2 };
    .type  = { .b8 };
    ldmatrix.sync.aligned.shape.num{.ss}.dst_fmt.src_fmt       =r:b32*registers, [p];
    .shape = { .m8n16 };
    .num   = { .x1, .x2, .x4 };
    ldmatrix.sync.aligned.shape.num.trans{.ss}.dst_fmt.src_fmt  =r:b32*registers, [p];
    .shape = { .m16n16 };
    .num   = { .x1, .x2 };
    .ss    = { .shared{::cta} };
    .dst_fmt = { .b8x16 };
    .src_fmt = { .b6x16_p32, .b4x16_p64 };
    ldmatrix.sync.aligned.shape.num{.ss}.dtype.stype           =r:b32*registers, [p];
    .shape = { .m8n16 };
    .num   = { .x1, .x2, .x4 };
    .dtype = { .s8 };
    .stype = { .s4 };
    .ss    = { .shared{::cta} };
    rule matrix_registers
    needs                 => ptx 6.5, sm_75
    needs .shared::cta    => ptx 7.8
    needs .m16n16,.m8n16 !.s4 => ptx 8.6, blackwell_121
    needs .s4             => ptx 9.4, sm_90a, sm_100f, sm_110f, sm_120f

# 9.7.14.5.16 stmatrix
    stmatrix.sync.aligned.shape.num{.trans}{.ss}.type  [p], r:b32*registers;
    .shape = { .m8n8 };
    .type  = { .b16 };
    stmatrix.sync.aligned.shape.num.trans{.ss}.type    [p], r:b32*registers;
    .shape = { .m16n8 };
    .type  = { .b8 };
    .num   = { .x1, .x2, .x4 };
    .ss    = { .shared{::cta} };
    rule matrix_registers
    needs        => ptx 7.8, sm_90
    needs .m16n8 => ptx 8.6, blackwell_121

# 9.7.14.5.17 movmatrix
    movmatrix.sync.aligned.shape.trans.type  d:b32, a:b32(reg);
    .shape = { .m8n8 };
    .type  = { .b16 };
    needs => ptx 7.8, sm_75
"""

#: Registers of an A and a B fragment of wmma (9.7.14.4.1), where they differ from elements/32 lanes in 32 bits.
_WMMA_FACTORS = {
    ("f16", "m16n16k16"): (8, 8), ("f16", "m8n32k16"): (8, 8), ("f16", "m32n8k16"): (8, 8),
    ("bf16", "m16n16k16"): (4, 4), ("bf16", "m8n32k16"): (2, 8), ("bf16", "m32n8k16"): (8, 2),
    ("s8", "m16n16k16"): (2, 2), ("s8", "m8n32k16"): (1, 4), ("s8", "m32n8k16"): (4, 1),
    ("u8", "m16n16k16"): (2, 2), ("u8", "m8n32k16"): (1, 4), ("u8", "m32n8k16"): (4, 1),
    ("tf32", "m16n16k8"): (4, 4), ("f64", "m8n8k4"): (1, 1),
    ("s4", "m8n8k32"): (1, 1), ("u4", "m8n8k32"): (1, 1), ("b1", "m8n8k128"): (1, 1),
}  # fmt: skip

#: Type of one register that holds elements of a type, which says what registers may stand there; 9.7.14.4.1 and
#: 9.7.14.5 only say how many bits they have, the rest is what ptxas takes. "b32" is any register of 32 bits.
_REGISTER = {"f16": "f16x2", "bf16": "bf16x2", "tf32": "tf32", "f32": "f32", "s32": "s32", "f64": "f64"}
#: Fragments of integers that must be integer registers.
_WMMA_REGISTER = _REGISTER | dict.fromkeys(("s8", "u8"), "s32")

#: Element width inside the registers of the narrow floats: one byte each, but packed for the mxf4 kinds (9.7.14.5).
_NARROW = {"e4m3": 8, "e5m2": 8, "e3m2": 8, "e2m3": 8, "e2m1": 8}


def _extents(shape: str) -> tuple[int, int, int]:
    m, n, k = re.findall(r"\d+", shape)
    return int(m), int(n), int(k)


def _accumulator(shape: str, type: str) -> int:
    m, n, _ = _extents(shape)
    return m * n // 32 // (2 if type == "f16" else 1)


def wmma_fragment(context: Context) -> dict[str, int | str]:
    """Registers of one wmma fragment."""
    shape, type, matrix = context.mods["shape"], context.mods["type"], context.mods["matrix"]
    register = _WMMA_REGISTER.get(type, "b32")
    accumulator = matrix in ("c", "d")
    count = _accumulator(shape, type) if accumulator else _WMMA_FACTORS[type, shape][matrix == "b"]
    return {"count": count, "register": register, "each": "r" if type == "f64" else ""}


def wmma_operands(context: Context) -> dict[str, int | str] | str:
    """Registers of the four fragments of wmma.mma."""
    mods = context.mods
    if mods.get("atype") != mods.get("btype"):
        return "'.atype' and '.btype' must agree"
    shape, factor = mods["shape"], mods.get("atype", "f16")
    na, nb = _WMMA_FACTORS[factor, shape]
    register = _WMMA_REGISTER.get(factor, "s32")
    out: dict[str, int | str] = {"na": na, "nb": nb, "ta": register, "tb": register}
    out |= _accumulators(shape, mods["dtype"], mods["ctype"])
    # ptxas makes it of smaller products and looks at their parts of the fragments. Those of .tf32 are the smallest: a
    # part of B is one register, and D goes from the first to the second.
    if factor == "tf32":
        return out | {"each": "b", "whole": "d", "unmixed": "d a c"}
    return out | {"ints": "c d" if factor == "f64" else "", "unmixed": "d a c" if shape == "m32n8k16" else "d b c"}


def _accumulators(shape: str, dtype: str, ctype: str) -> dict[str, int | str]:
    return {
        "nd": _accumulator(shape, dtype), "nc": _accumulator(shape, ctype),
        "td": _REGISTER[dtype], "tc": _REGISTER[ctype],
    }  # fmt: skip


def mma_operands(context: Context) -> dict[str, int | str] | str:
    """Registers of the fragments of mma and mma.sp (9.7.14.5, 9.7.14.6.2), and pairs of types that must agree."""
    mods = context.mods
    shape, atype, btype, dtype, ctype = (mods[slot] for slot in ("shape", "atype", "btype", "dtype", "ctype"))
    wrong = _mma_disagreement(mods["shape"], atype, btype, dtype, ctype)
    if wrong or (mods.get("scale_vec_size") == "scale_vec::2X" and mods.get("stype") == "ue4m3"):
        return wrong or "'.ue4m3' needs .scale_vec::4X"
    m, n, k = _extents(shape)
    bits = _NARROW.get(atype, TYPES[atype].bits)
    if "mxf4" in mods.get("kind", ""):
        bits = 4
    sparse = 2 if "spvariant" in mods else 1
    if atype == "f64":
        na, nb = m * k // 32, n * k // 32
    elif shape == "m8n8k4":
        na, nb = 2, 2  # four products side by side (9.7.14.5.1)
    else:
        na, nb = m * k * bits // 1024 // sparse, n * k * bits // 1024
    out: dict[str, int | str] = {"na": na, "nb": nb}
    # Byte ids of scale factors: any byte, an even one, or the lowest (9.7.14.3); without a size the kind has but one.
    size = mods.get("scale_vec_size") or ("scale_vec::1X" if mods.get("kind") == "kind::mxf8f6f4" else "scale_vec::2X")
    out["bytes"], out["step"] = {"scale_vec::1X": (3, 1), "scale_vec::2X": (2, 2)}.get(size, (0, 1))
    out["ta"] = out["tb"] = "bf16x2" if "stype" in mods else _REGISTER.get(atype, "b32")
    out["selectors"] = 1024 // (k * bits) // (1 if bits > 8 else 2) - 1
    if shape == "m8n8k16":
        out["ta"] = "s32"
    out |= _accumulators(shape, dtype, ctype) | _particular(mods)
    if shape == "m8n8k4" and atype == "f16":
        out |= {"nd": 4 if dtype == "f16" else 8, "nc": 4 if ctype == "f16" else 8}
    return out


def _particular(mods: Mapping[str, str]) -> dict[str, int | str]:
    """Fragments for which ptxas has rules of their own: of some it takes all registers of the size, or integers for
    floats; of some it looks at each register, since it makes the product of several instructions."""
    shape, atype = mods["shape"], mods["atype"]
    if atype == "f64":
        return {"ints": "d a b c"} if shape == "m8n8k4" else {"ints": "a b c", "each": "d"}
    if "spvariant" in mods and atype in ("f16", "bf16", "tf32"):
        factors: dict[str, int | str] = {} if atype == "f16" else {"ta": "b32", "tb": "b32"}
        return {**factors, "bits": "d c" if mods["dtype"] == "f32" else ""}
    if atype in _NARROW and "kind" not in mods and ("spvariant" not in mods or mods["dtype"] == "f32"):
        return {"each": "d c"}
    return {"each": "c" if shape == "m8n8k16" else ""}


def _mma_disagreement(shape: str, atype: str, btype: str, dtype: str, ctype: str) -> str:
    if atype in ("bf16", "tf32", "f16", "f64") and atype != btype:
        return f"'.atype' and '.btype' must agree for .{atype}"
    if dtype != ctype and (shape != "m8n8k4" or (dtype, ctype) == ("f16", "f32")):
        return "'.dtype' and '.ctype' must agree"
    return ""


def matrix_registers(context: Context) -> dict[str, int | str]:
    """Registers of ldmatrix and stmatrix: one for each matrix, two for a 16x16 matrix of bytes."""
    count = int(context.mods["num"][1:])
    return {"registers": count * (2 if context.mods["shape"] == "m16n16" else 1)}
