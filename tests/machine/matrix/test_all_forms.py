"""No form of 9.7.14 lacks semantics: every opcode that resolves has a product, a rule for each chip, and a handler."""

from __future__ import annotations

import itertools

import pytest

from ptxtools.isa import declared, resolve
from ptxtools.native.code.emitter import Emitter
from ptxtools.native.code.generate import handler
from ptxtools.program.details import MatrixProduct
from ptxtools.program.program import Op, Ref
from ptxtools.semantics.accumulation import IEEE, rule_of
from ptxtools.semantics.products import product_of

CHIPS = ("volta", "turing", "ampere", "ada", "hopper", "blackwell", "rtx_blackwell", IEEE)
NARROW = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
SHAPES = ["m8n8k4", "m8n8k16", "m8n8k32", "m8n8k128", "m16n8k4", "m16n8k8", "m16n8k16", "m16n8k32", "m16n8k64",
          "m16n8k128", "m16n8k256", "m16n16k16", "m8n32k16", "m32n8k16", "m16n16k8"]  # fmt: skip
TYPES = [(d, a, b, c) for d, c in itertools.product(("f16", "f32"), repeat=2) for a, b in [
    ("f16", "f16"), ("bf16", "bf16"), ("tf32", "tf32"), *itertools.product(NARROW, repeat=2)]]  # fmt: skip
TYPES += [("s32", a, b, "s32") for group in (("s8", "u8"), ("s4", "u4"), ("b1",)) for a in group for b in group]
TYPES += [("f64",) * 4]
KINDS = (".kind::f8f6f4", ".kind::mxf8f6f4.block_scale", ".kind::mxf4.block_scale",
         ".kind::mxf4nvf4.block_scale.scale_vec::2X", ".kind::mxf4nvf4.block_scale.scale_vec::4X")  # fmt: skip


def candidates(word: str) -> list[str]:
    """Texts that may be opcodes of mma (or mma.sp, or wmma.mma): layouts and sizes that no form has are left out."""
    found = []
    for shape, (d, x, y, c) in itertools.product(SHAPES, TYPES):
        if not plausible(word, shape, x):
            continue
        free = word == "wmma.mma" or shape == "m8n8k4"
        for a, b in itertools.product(("row", "col"), repeat=2) if free else [("row", "col")]:
            if word == "wmma.mma":
                types = f"{d}.{c}" if x == "f16" else f"{d}.{x}.{y}.{c}"
                operations = (".xor.popc", ".and.popc") if x == "b1" else ("",)
                found += [f"wmma.mma{o}.sync.aligned.{a}.{b}.{shape}.{types}" for o in operations]
                continue
            operations = (".xor.popc", ".and.popc") if x == "b1" else ("",)
            found += [f"{word}.sync.aligned.{shape}.{a}.{b}.{d}.{x}.{y}.{c}{o}" for o in operations]
            for kind in KINDS if x in NARROW and (d, c) in (("f32", "f32"), ("f16", "f16")) else ():
                scales = (".ue8m0", ".ue4m3") if "block_scale" in kind else ("",)
                if "mxf4" not in kind or x == y == "e2m1":
                    found += [f"{word}.sync.aligned.{shape}.{a}.{b}{kind}.{d}.{x}.{y}.{c}{s}" for s in scales]
    return found


def plausible(word: str, shape: str, x: str) -> bool:
    """Whether A has one to four registers (mma), or the shape is one of wmma's."""
    m, k = int(shape[1 : shape.index("n")]), int(shape.rpartition("k")[2])
    large = shape in SHAPES[-4:]
    if word == "wmma.mma":
        return large or (m == 8 and k in {"f64": (4,), "s4": (32,), "u4": (32,), "b1": (128,)}.get(x, ()))
    if large or x == "f64":
        return not large and k <= 16
    bits = {"tf32": 32, "f16": 16, "bf16": 16, "b1": 1, "s4": 4, "u4": 4}.get(x, 8)
    stored = k // 2 if "sp" in word else k
    return (
        m * stored * bits in (1024, 2048, 4096, 8192)
        or (shape == "m8n8k4" and x == "f16")
        or (x == "e2m1" and m == 16 and stored == 64)
    )


def resolves(text: str) -> bool:
    return declared(text) is not None


def operation(text: str) -> Op:
    """An operation on registers, as lowering makes it."""
    opcode = resolve(text)
    dst: list[Ref | None] = []
    src: list[Ref | None] = []
    types: tuple[list[str], list[str]] = ([], [])
    for spec in opcode.operands:
        if spec.name == "f":
            continue
        storage = {"f64": "b64", "u16": "b16"}.get(spec.type or "", "b32")
        for _ in range(max(1, spec.vector)):
            (dst if spec.role == "dst" else src).append(Ref(1024 + 256 * (len(dst) + len(src)), storage))
            types[spec.role != "dst"].append(spec.type or "b32")
    return Op(
        "mma", opcode, tuple(dst), tuple(src), tuple(types[0]), tuple(types[1]), detail=MatrixProduct(0, "hopper")
    )


@pytest.mark.parametrize(("word", "least"), [("mma", 130), ("mma.sp", 25), ("mma.sp::ordered_metadata", 100),
                                             ("wmma.mma", 60)])  # fmt: skip
def test_every_form(word: str, least: int) -> None:
    texts = [text for text in candidates(word) if resolves(text)]
    assert len(texts) >= least
    seen = set()
    for text in texts:
        product = product_of(text)
        if product.kind == "float":
            for chip in CHIPS:
                assert rule_of(product.sum, chip).chunk > 0
        shape = (product.m, product.n, product.k, product.ctype, product.dtype, product.scale, product.blocks)
        if shape not in seen:  # types of factors differ in decoding alone
            seen.add(shape)
            assert "define" in handler(Emitter(), "h", operation(text))
