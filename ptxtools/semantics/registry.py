"""The functions that define instructions: one table, filled by the chapter modules when they are imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from ptxtools.semantics.algebra import Algebra, Value

if TYPE_CHECKING:
    from ptxtools.isa import Opcode

Outputs: TypeAlias = tuple[Value, ...]
Semantics: TypeAlias = Callable[..., Outputs]
Body: TypeAlias = Callable[..., Value]

TABLE: dict[tuple[str, str], Semantics] = {}


def defines(chapter: str, *mnemonics: str) -> Callable[[Semantics], Semantics]:
    """Register `fn(A, op, *inputs) -> outputs` for these mnemonics (first word of the opcode) of a chapter."""

    def register(function: Semantics) -> Semantics:
        for mnemonic in mnemonics:
            TABLE[chapter, mnemonic] = function
        return function

    return register


def defines_value(chapter: str, *mnemonics: str) -> Callable[[Body], Body]:
    """The same for functions that return the one result itself, not a tuple."""

    def register(function: Body) -> Body:
        def semantics(A: Algebra, op: Opcode, *inputs: Value, **options: object) -> Outputs:
            return (function(A, op, *inputs, **options),)

        defines(chapter, *mnemonics)(semantics)
        return function

    return register
