"""Casts between types (LLVM's "Conversion Operations")."""

from __future__ import annotations

from ..assembly.types import Type

#: cast -> kinds of the operand's and of the result's elements, and how the width changes: -1 narrower, 1 wider.
CASTS = {
    "trunc": ("int", "int", -1), "zext": ("int", "int", 1), "sext": ("int", "int", 1),
    "fptrunc": ("float", "float", -1), "fpext": ("float", "float", 1),
    "fptoui": ("float", "int", 0), "fptosi": ("float", "int", 0),
    "uitofp": ("int", "float", 0), "sitofp": ("int", "float", 0),
    "ptrtoint": ("pointer", "int", 0), "inttoptr": ("int", "pointer", 0),
}  # fmt: skip


def cast_fault(op: str, have: Type, want: Type) -> str:
    """What is wrong with a cast, "" if nothing."""
    same_shape = (have.kind == "vector") == (want.kind == "vector") and have.count * want.count in (0, have.count**2)
    if have.kind == want.kind == "vector" and have.count != want.count and op != "bitcast":
        same_shape = False
    if op == "bitcast":
        return _bitcast_fault(have, want)
    have, want = have.scalar, want.scalar
    if op == "addrspacecast":
        kinds, wide = ("pointer", "pointer"), 0
    else:
        (*found, wide) = CASTS[op]
        kinds = (str(found[0]), str(found[1]))
    if (have.kind, want.kind) != kinds or not (same_shape or op == "bitcast"):
        return f"{op} from {have} to {want} is invalid"
    if wide and (want.bits - have.bits) * int(wide) <= 0:
        return f"{op} from {have} to {want}: the result must be {'wider' if int(wide) > 0 else 'narrower'}"
    if op == "addrspacecast" and have.space == want.space:
        return f"addrspacecast must change the address space, and both are {have.space}"
    return ""


def between_spaces(have: Type, want: Type) -> bool:
    """Whether a cast is from a pointer to one space to a pointer to another, neither of them generic (12.2.2)."""
    return have.kind == want.kind == "pointer" and bool(have.space and want.space) and have.space != want.space


def _bits(type: Type) -> int:
    """The width of a number or a vector of numbers; 0 for anything else."""
    return type.scalar.bits * (type.count if type.kind == "vector" else 1)


def _bitcast_fault(have: Type, want: Type) -> str:
    if have.scalar.kind == "pointer" and want.scalar.kind == "pointer":
        if have.scalar.space != want.scalar.space:
            return f"bitcast cannot change the address space, from {have} to {want}"
        return "" if have.count == want.count else f"bitcast from {have} to {want} is invalid"
    if have is want or (_bits(have) and _bits(have) == _bits(want)):
        return ""
    return f"bitcast from {have} to {want} is invalid: their sizes differ"
