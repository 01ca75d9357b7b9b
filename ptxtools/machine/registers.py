"""PTX registers of a stopped warp, by name.

If nothing is optimised (`Device(optimise=False)`, or an observer of single instructions), each register has its own
slot, and all that the function has used so far are found. Otherwise values share slots: a register is found if its
value is still needed at that line and no pass has merged it with another. The map from names to slots is made when it
is first needed, by lowering the kernel again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ptxtools.program.program import Program, Ref

    from .events import View

_KEY = "registers"
_DTYPES: dict[str, Any] = {
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "s8": np.int16, "s16": np.int16, "s32": np.int32,
    "s64": np.int64,
}  # fmt: skip


def provide(program: Program, lower: Callable[[], Program]) -> None:
    """Say how a program is lowered with the names of its registers."""
    program.cache[_KEY] = lower


def named(view: View) -> dict[str, tuple[Ref, str]]:
    """The registers known at the line where a warp has stopped: slots and PTX types."""
    program = view.launch.program
    found: Any = program.named or program.cache.get(_KEY, {})
    if callable(found):
        found = program.cache[_KEY] = found().named
    names: dict[str, tuple[Ref, str]] = found.get(view.op.where, {})
    return names


def register(view: View, name: str) -> Any:
    """The 32 lanes of a register, by a name such as "%r1" or "%v.x": an array of its type, with bits as unsigned
    numbers; a 128-bit register is a pair of low and high halves. Raises KeyError if the name is unknown here."""
    ref, type_ = named(view)[name]
    values = view.values(ref)
    dtype = _DTYPES.get(type_)
    return values if dtype is None else values.view(dtype)


def registers(view: View) -> dict[str, Any]:
    """All registers known here."""
    return {name: register(view, name) for name in named(view)}


def live_bits(program: Program) -> dict[int, int]:
    """By index of a line that the program still has operations of: bits of the registers that are needed there, without
    predicates. Nothing for a program whose registers have no names (`provide`)."""
    found: Any = program.named or program.cache.get(_KEY, {})
    if callable(found):
        found = program.cache[_KEY] = found().named
    return {
        where: sum(_BITS.get(ref.type, 0) for ref in {ref.slot: ref for ref, _ in names.values()}.values())
        for where, names in found.items()
        if names
    }


#: Bits of a register in each storage class; those of 16 bits take a whole one.
_BITS = {"b16": 32, "b32": 32, "b64": 64, "b128": 128}
