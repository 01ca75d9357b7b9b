"""PTX types (5.2, 5.3): widths, kinds, and which registers an instruction type accepts (9.4)."""

from __future__ import annotations

from ptxtools.records import NamedTuple


class TypeInfo(NamedTuple):
    """One type.

    bits: width of a value in a register or in memory (packed types: of the whole). kind: "int" (.s, .u), "float",
    "bits" (.b), "pred", "packed" (several lanes in one register), "opaque" (.texref …). signed: for "int" and packed
    integers. lanes: values in a packed type, else 1. element: type of one lane, else "". declarable: may stand in a
    `.reg` declaration.
    """

    name: str
    bits: int
    kind: str
    signed: bool = False
    lanes: int = 1
    element: str = ""
    declarable: bool = False

    @property
    def bytes(self) -> int:
        return (self.bits + 7) // 8


def _build() -> dict[str, TypeInfo]:
    table: dict[str, TypeInfo] = {}

    def add(name: str, bits: int, kind: str, **more: object) -> None:
        table[name] = TypeInfo(name, bits, kind, **more)  # type: ignore[arg-type]

    for bits in (8, 16, 32, 64):
        add(f"u{bits}", bits, "int", declarable=True)
        add(f"s{bits}", bits, "int", signed=True, declarable=True)
    for bits in (8, 16, 32, 64, 128):
        add(f"b{bits}", bits, "bits", declarable=True)
    for name, bits in (("f16", 16), ("f32", 32), ("f64", 64)):
        add(name, bits, "float", declarable=True)
    add("pred", 1, "pred", declarable=True)
    # Alternate formats (5.2.3): instruction types only; their registers are .bN.
    for name, bits in (("bf16", 16), ("tf32", 32), ("e4m3", 8), ("e5m2", 8), ("e3m2", 8), ("e2m3", 8), ("e2m1", 8)):
        add(name, bits, "float")
    for name in ("ue8m0", "ue4m3", "s2f6", "ue5m3"):
        add(name, 8, "float")
    # Sub-byte integers of the matrix instructions: operands are packed into .b32 registers.
    for name, bits in (("u4", 4), ("s4", 4), ("b1", 1), ("u2", 2), ("s2", 2)):
        add(name, bits, "bits" if name == "b1" else "int", signed=name[0] == "s")
    # Packed types (5.2.4) and the operand types of conversions and SIMD video instructions.
    add("f16x2", 32, "packed", lanes=2, element="f16", declarable=True)
    packed = (
        ("bf16x2", 32), ("f32x2", 64), ("u16x2", 32), ("s16x2", 32), ("u8x4", 32), ("s8x4", 32),
        ("e4m3x2", 16), ("e5m2x2", 16), ("e3m2x2", 16), ("e2m3x2", 16), ("e2m1x2", 8), ("ue8m0x2", 16), ("s2f6x2", 16),
        ("ue5m3x2", 16),
        ("e4m3x4", 32), ("e5m2x4", 32), ("e3m2x4", 32), ("e2m3x4", 32), ("e2m1x4", 16),
    )  # fmt: skip
    for name, bits in packed:
        element, lanes = name.rsplit("x", 1)
        add(name, bits, "packed", signed=name[0] == "s", lanes=int(lanes), element=element)
    add("b1024", 1024, "bits")  # a tensor map object in memory (9.7.9.27)
    for name in ("texref", "samplerref", "surfref"):
        add(name, 64, "opaque")
    return table


#: Every type name, without the dot.
TYPES: dict[str, TypeInfo] = _build()

#: Types of the operand registers where the instruction type itself cannot be declared (5.2.3, 5.2.4).
REGISTER_TYPE: dict[str, str] = {
    name: f"b{max(16 if info.bits > 8 else 8, info.bits)}"
    for name, info in TYPES.items()
    if not info.declarable and info.kind in ("float", "packed") and info.bits <= 128
}
REGISTER_TYPE.update({"u4": "b32", "s4": "b32", "b1": "b32", "u2": "b32", "s2": "b32"})


def accepts(instruction_type: str, register_type: str, width: str = "exact") -> bool:
    """Whether a register of `register_type` is valid where an instruction requires `instruction_type` (9.4, 9.4.1).

    width "exact": same size, and agreeing kinds: `.bN` agrees with everything of its size, integers of either sign
    with each other, a float with itself. Types that no register can have (.bf16, .u16x2, …) want `.bN`. width
    "typed", of an operand whose type the opcode writes: `.f16x2` is as good as an integer or two of its size, as ptxas
    has it.
    width "wider": the register may also be larger (ld, st, cvt): an integer in integers and bits, a float in bits,
    `.bN` in anything. width "ints", of vectors: as "typed", and an integer in place of a float of its size, as ptxas
    has it. width "loose": as "typed", and any register where none can have the type. width "bits": any register of
    that size. width "bare": `.bN` alone.
    """
    want, have = TYPES[instruction_type], TYPES[register_type]
    if width == "bare":
        return have.kind == "bits" and have.bits == want.bits
    if "pred" in (want.kind, have.kind):
        return want.kind == have.kind
    stand_in = REGISTER_TYPE.get(instruction_type)
    if stand_in is not None:
        integers = want.kind == "packed" and TYPES[want.element].kind == "int"
        if have.kind == "packed" and width == "typed" and integers:
            return have.bits == want.bits
        return have.name == stand_in or (width in ("bits", "loose") and have.bits == TYPES[stand_in].bits)
    if have.bits < want.bits or (have.bits > want.bits and width != "wider"):
        return False
    if "bits" in (want.kind, have.kind) or width == "bits" or want.name == have.name:
        return True
    if have.kind == "int":
        return want.kind == "int" or (width == "ints" and want.kind == "float")
    return have.kind == "packed" and want.kind == "int" and width not in ("exact", "bits")


def bits_type(name: str) -> str:
    """The untyped-bits type of the same width: "f32" -> "b32"."""
    return f"b{TYPES[name].bits}"


def wide_type(name: str) -> str:
    """The integer type of twice the width: "s16" -> "s32" (mul.wide, mad.wide)."""
    return f"{name[0]}{TYPES[name].bits * 2}"
