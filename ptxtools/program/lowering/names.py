"""Where the registers of a program lie, by the names that they have at each line (`Program.named`)."""

from __future__ import annotations

from collections.abc import Iterable

from ptxtools.ir.symbols import Names
from ptxtools.program.program import FRAME_HEADER, Ref

from .function import FunctionLowering

Named = dict[str, tuple[Ref, str]]


def named_registers(functions: Iterable[FunctionLowering]) -> dict[int, Named]:
    """By index of a line. Lines of one scope share their dictionary where each register has a slot of its own; where
    values share slots, a line knows the registers that are needed there."""
    found: dict[int, Named] = {}
    for function in functions:
        numbers = {id(ref): number for number, ref in enumerate(function.refs)}
        value_of = {register: value for value, register in function.owners.items()}
        known: dict[int, Named] = {}
        for where, names in function.scopes.items():
            if id(names) not in known:
                known[id(names)] = _visible(function, names, numbers)
            visible = known[id(names)]
            if function.optimise:
                live = function.live.get(where, set())
                visible = {name: one for name, one in visible.items() if value_of.get(numbers[id(one[0])], -1) in live}
            found[where] = visible
    return found


def _visible(function: FunctionLowering, names: Names, numbers: dict[int, int]) -> Named:
    """The registers that a scope sees and that have slots; elements of vectors by their components."""
    found: Named = {}
    for name, value in function.registers(names):
        for component, ref in zip("xyzw", value, strict=False) if isinstance(value, tuple) else (("", value),):
            if ref.slot >= FRAME_HEADER:
                found[f"{name}.{component}" if component else name] = (ref, function.types[numbers[id(ref)]])
    return found
