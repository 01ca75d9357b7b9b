"""What each instruction computes, written once over a value algebra (see `algebra`); modules mirror the chapters.

`find(op)` gives `fn(A, op, *inputs) -> outputs`: inputs one value per source operand in order, the carry-in last if
`op.carry_in`; outputs one value per destination, the carry-out last if `op.carry_out`. setp always gives p and q.
Values have the operand's PTX type; `A.adapt` and `A.widen` fit them to registers. Immediates of lop3 (the table) and
prmt (the selector) may be given as Python ints, which specialises the code. Video instructions take the selectors of
their operands as a keyword, `selectors=video.Selectors(...)`; `mad` takes `truncated=True` for chips of sm_1x.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptxtools.isa import Opcode
    from ptxtools.semantics.algebra import Algebra, Value
    from ptxtools.semantics.atomic import Atomic
    from ptxtools.semantics.forms import covers
    from ptxtools.semantics.registry import Semantics

__all__ = ["Algebra", "Semantics", "Value", "atomic_rule", "chapter_of", "covers", "find"]

#: Names of other modules, which load when they are asked for.
_HOME = {"Algebra": "algebra", "Semantics": "registry", "Value": "algebra", "covers": "forms"}
_CHAPTERS = {
    "comparison": ("set", "setp", "selp", "slct"),
    "logic": ("and", "or", "xor", "not", "cnot", "lop3", "shf", "shl", "shr"),
    "movement": ("mov", "prmt", "cvta", "isspacep"),
    "conversion": ("cvt",),
    "video": ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vmad", "vset",
              "vadd2", "vsub2", "vavrg2", "vabsdiff2", "vmin2", "vmax2", "vset2",
              "vadd4", "vsub4", "vavrg4", "vabsdiff4", "vmin4", "vmax4", "vset4"),
    "floating": ("testp", "copysign"),
    "approximate": ("rsqrt", "sin", "cos", "lg2", "ex2", "tanh"),
}  # fmt: skip
_CHAPTER = {mnemonic: chapter for chapter, mnemonics in _CHAPTERS.items() for mnemonic in mnemonics}
_HALF = frozenset({"f16", "f16x2", "bf16", "bf16x2"})
_FLOATING = frozenset({"f32", "f64", "f32x2"})
_MODULES = {"mixed": "half"}


def chapter_of(op: Opcode) -> str:
    """The module of this package that defines the opcode, if any does."""
    chapter = _CHAPTER.get(op.family)
    if chapter is not None:
        return chapter
    if op.carry_in or op.carry_out:
        return "extended"
    if not _HALF.isdisjoint(op.types):
        return "half" if _FLOATING.isdisjoint(op.types) else "mixed"
    if op.type in _FLOATING:
        return "approximate" if op.has("approx") or op.has("full") else "floating"
    return "integer"


@cache
def _load(chapter: str) -> None:
    import_module(f"ptxtools.semantics.{_MODULES.get(chapter, chapter)}")


_found: dict[str, Semantics | None] = {}


def find(op: Opcode) -> Semantics | None:
    """The meaning of an opcode that maps lane values to lane values; None if its form has none here."""
    try:
        return _found[op.text]
    except KeyError:
        from .forms import covers

        meaning = _found[op.text] = _look_up(op) if covers(op) else None
        return meaning


def atomic_rule(op: Opcode) -> Atomic | None:
    """The new value of an atomic operation's memory; None if the opcode has no such operation."""
    from .atomic import atomic

    return atomic(op)


def _look_up(op: Opcode) -> Semantics | None:
    chapter = chapter_of(op)
    if op.family != op.name and chapter not in ("extended", "conversion"):
        return None
    _load(chapter)
    from .registry import TABLE

    return TABLE.get((chapter, "cvt.pack" if op.name == "cvt.pack" else op.family))


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
