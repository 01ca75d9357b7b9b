"""Operands of a warp's matrix product: shape, types and fragments of mma, mma.sp and wmma.mma (9.7.14)."""

from __future__ import annotations

import re
from functools import cache

from ptxtools.isa import Opcode, resolve
from ptxtools.records import dataclass

from .accumulation import Sum
from .fragments import (
    Fragment,
    accumulator,
    factor_a,
    factor_b,
    quad_accumulator,
    quad_factor_a,
    quad_factor_b,
)

#: Width of an element in its register.
_BITS = {
    "f64": 64, "tf32": 32, "f16": 16, "bf16": 16, "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8, "e3m2": 8, "e2m3": 8,
    "e2m1": 8, "s4": 4, "u4": 4, "b1": 1,
}  # fmt: skip
_RESULT_BITS = {"f16": 16, "f32": 32, "s32": 32, "f64": 64}


@dataclass(frozen=True)
class Part:
    """One product d = a * b + c on fragments; m8n8k4 of f16 has four, everything else one."""

    a: Fragment
    b: Fragment
    c: Fragment
    d: Fragment


@dataclass(frozen=True)
class Product:
    """A product instruction.

    atype, btype, ctype, dtype: element types as in the opcode; `fp4` for two e2m1 to a byte. a is stored with half of
    its columns where `sparse`. scale: type of the scale factors or ""; blocks: factors along K.
    """

    m: int
    n: int
    k: int
    atype: str
    btype: str
    ctype: str
    dtype: str
    parts: tuple[Part, ...]
    sparse: bool
    scale: str
    blocks: int
    saturate: bool
    rounding: str
    bit_operation: str

    @property
    def kind(self) -> str:
        """The kind of arithmetic: "float", "double", "integer" or "bits"."""
        if self.atype == "f64":
            return "double"
        return "bits" if self.atype == "b1" else "integer" if self.dtype == "s32" else "float"

    @property
    def sum(self) -> Sum:
        """The properties that determine its accumulation, if its kind is "float"."""
        return Sum("mma", self.atype, self.dtype, self.k, self.sparse, self.scale, quads=len(self.parts) > 1)

    @property
    def factor_registers(self) -> tuple[int, int]:
        """Registers of A and B as written: f16 factors of wmma repeat those they need to fill eight (9.7.14.4.1)."""
        if self.atype == "f16" and (self.m, self.n) in ((16, 16), (32, 8), (8, 32)):
            return 8, 8
        return self.parts[0].a.registers, self.parts[0].b.registers

    @property
    def a_bits(self) -> int:
        """Width of an element of A in its register; for the metadata of sparse matrices."""
        return _width(self.atype)


def _width(type_name: str) -> int:
    return 4 if type_name == "fp4" else _BITS[type_name]


@cache
def product_of(text: str) -> Product:
    """The product for an opcode of mma, mma.sp or wmma.mma."""
    op = resolve(text)
    mods = op.mods
    m, n, k = (int(number) for number in re.findall(r"\d+", mods["shape"]))
    dtype, ctype = mods["dtype"], mods["ctype"]
    atype = mods.get("atype", "f16")
    btype = mods.get("btype", atype)
    kind = mods.get("kind", "")
    if "mxf4" in kind:
        atype = btype = "fp4"
    scale = mods.get("stype", "")
    parts = _quads(op, ctype, dtype) if atype == "f16" and (m, n, k) == (8, 8, 4) else None
    sparse = "spvariant" in mods
    return Product(
        m, n, k, atype, btype, ctype, dtype,
        parts or (_whole(m, n, k, atype, btype, ctype, dtype, sparse=sparse),),
        sparse, scale, _blocks(op, kind) if scale else 0, op.has("satfinite"),
        mods.get("rnd", "rn"), mods.get("bitOp") or mods.get("op") or "",
    )  # fmt: skip


def _blocks(op: Opcode, kind: str) -> int:
    size = op.mods.get("scale_vec_size") or ("scale_vec::1X" if "mxf8" in kind else "scale_vec::2X")
    return int(size[-2])


def _whole(m: int, n: int, k: int, atype: str, btype: str, ctype: str, dtype: str, *, sparse: bool) -> Part:
    stored = k // 2 if sparse else k
    return Part(
        factor_a(m, stored, _width(atype)), factor_b(k, n, _width(btype)),
        accumulator(m, n, _RESULT_BITS[ctype]), accumulator(m, n, _RESULT_BITS[dtype]),
    )  # fmt: skip


def _quads(op: Opcode, ctype: str, dtype: str) -> tuple[Part, ...]:
    return tuple(
        Part(
            quad_factor_a(q, op.mods["alayout"]), quad_factor_b(q, op.mods["blayout"]),
            quad_accumulator(q, _RESULT_BITS[ctype]), quad_accumulator(q, _RESULT_BITS[dtype]),
        )
        for q in range(4)
    )  # fmt: skip
