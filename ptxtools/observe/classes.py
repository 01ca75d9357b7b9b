"""What sort of work an instruction is, and which unit of an SM does it: for counts by class and by pipe.

PTX is not what a chip executes: one instruction here counts as one, on the unit that does its main part on Volta and
later chips. Moves and conversions of addresses usually vanish in ptxas, and have no unit.
"""

from __future__ import annotations

from ptxtools.isa import Opcode, OpcodeError, resolve

ALU, FMA, FP64, SPECIAL, TENSOR, LSU = "alu", "fma", "fp64", "special", "tensor", "load/store"
TEXTURE, BRANCH, COPY, NONE = "texture", "branch", "async copy", "none"

_CONTROL = "bra brx call ret exit trap brkpt nanosleep pmevent"
_MEMORY = "ld ldu st atom red suld sust sured prefetch prefetchu ldmatrix stmatrix multimem"
_WARPS = "shfl vote match redux activemask elect movmatrix"
_SYNCHRONISATION = "bar barrier membar fence mbarrier griddepcontrol setmaxnreg clusterlaunchcontrol"
_MOVES = "mov cvta mapa getctarank isspacep"
_LOGIC = "and or xor not cnot lop3 shf shl shr bfe bfi bmsk szext prmt bfind clz popc brev fns"
_COMPARE = "setp set selp slct testp"
_SPECIAL = frozenset(["rcp", "rsqrt", "sqrt", "sin", "cos", "lg2", "ex2", "tanh", "div"])
_MATRIX = "mma wmma wgmma tcgen05"
_TEXTURES = "tex tld4 txq suq istypep"
_CLASSES = {
    family: name
    for name, families in (
        ("control", _CONTROL), ("warp", _WARPS), ("synchronisation", _SYNCHRONISATION), ("move", _MOVES),
        ("logic", _LOGIC), ("compare, select", _COMPARE), ("matrix", _MATRIX), ("texture", _TEXTURES),
    )
    for family in families.split()
}  # fmt: skip
_PIPES = {"control": BRANCH, "warp": LSU, "synchronisation": LSU, "move": NONE, "logic": ALU, "compare, select": ALU,
          "matrix": TENSOR, "texture": TEXTURE, "convert": SPECIAL, "integer": ALU, "float32": FMA, "half": FMA,
          "float64": FP64, "special function": SPECIAL, "asynchronous copy": COPY}  # fmt: skip
_FLOATS = {"f64": "float64", "f32": "float32", "f32x2": "float32", "f16": "half", "f16x2": "half", "bf16": "half",
           "bf16x2": "half"}  # fmt: skip
#: Integer products are made where products of floats are.
_PRODUCTS = frozenset(["mul", "mad", "mul24", "mad24", "dp4a", "dp2a", "madc"])


def class_of(text: str) -> tuple[str, str]:
    """Class and pipe of an instruction by its opcode's text."""
    try:
        op = resolve(text)
    except OpcodeError:
        return "other", NONE
    name = _class(op)
    return name, _pipe(op, name)


def _class(op: Opcode) -> str:
    family = op.family
    if family == "cp":
        return "asynchronous copy"
    if family in _MEMORY.split():
        return f"memory: {op.space or 'generic'}"
    if family == "cvt":
        return "convert"
    known = _CLASSES.get(family)
    if known is not None:
        return known
    kind = next((_FLOATS[name] for name in op.types if name in _FLOATS), "integer")
    if family in _SPECIAL and kind != "integer":
        return kind if kind == "float64" else "special function"
    return kind


def _pipe(op: Opcode, name: str) -> str:
    if name.startswith("memory"):
        return NONE if op.space == "param" else LSU
    if name == "integer" and op.family in _PRODUCTS:
        return FMA
    if name == "compare, select" and "f64" in op.types:
        return FP64
    return _PIPES[name]


def operations_of(text: str) -> int:
    """Floating-point operations of one lane: two for a fused one, for each element. Of matrix instructions 0: see
    `matrix_operations`."""
    try:
        op = resolve(text)
    except OpcodeError:
        return 0
    if _class(op) not in ("float32", "float64", "half"):
        return 0
    width = 2 if any(name.endswith("x2") for name in op.types) else 1
    each = {"fma": 2, "mad": 2, "add": 1, "sub": 1, "mul": 1}.get(op.family, 0)
    return each * width


def matrix_operations(text: str) -> int:
    """Operations of one matrix product of a warp: 2 m n k; 0 for other instructions, and for products of several warps,
    whose number depends on descriptors."""
    import re

    if not text.startswith(("mma.", "wmma.mma")):
        return 0
    shape = re.search(r"\.m(\d+)n(\d+)k(\d+)", text)
    return 2 * int(shape[1]) * int(shape[2]) * int(shape[3]) if shape else 0


__all__ = ["class_of", "matrix_operations", "operations_of"]
