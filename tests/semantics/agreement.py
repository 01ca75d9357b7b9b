"""Both back ends on the same operands: what the agreement test and tools/sweep_semantics.py share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ptxtools.isa import Opcode

from .harness import Native, dtype_of, exhaustive, operands, run_numpy, signature
from .harness import word_bits as bits


@dataclass(frozen=True)
class Difference:
    """One lane where the back ends disagree."""

    opcode: str
    inputs: tuple[int, ...]
    reference: int
    native: int

    def __str__(self) -> str:
        inputs = ", ".join(map(hex, self.inputs))
        return f"{self.opcode}({inputs}): reference {self.reference:#x}, native {self.native:#x}"


def flatten(values: Iterable[Any]) -> list[Any]:
    return [part for value in values for part in (value if isinstance(value, tuple) else (value,))]


def compare(
    opcodes: list[Opcode], count: int, features: Iterable[str] | None = None, seed: int = 1
) -> Iterator[Difference]:
    """The first difference of each opcode that has any, over `count` (a multiple of 32) operand tuples.

    One-operand forms of 8- and 16-bit types see every pattern when `count` is 10,000 or more.
    """
    native = Native(features)
    jobs = [(op, native.add(op, signature(op).inputs)) for op in opcodes]
    rng = np.random.default_rng(seed)
    for op, number in jobs:
        types = signature(op).inputs
        inputs = [operands(t, count, rng) for t in types]
        if len(types) == 1 and count >= 10_000 and exhaustive(types[0]) is not None:
            inputs = [exhaustive(types[0])]
        reference = flatten(run_numpy(op, inputs))
        shapes = [d for t in Native._output_types(op, run_shape(op, reference)) for d in dtypes(t)]
        for want, got in zip(reference, native.run(number, inputs, shapes), strict=True):
            assert want.dtype == got.dtype, op.text
            wrong = np.flatnonzero(want != got)
            if len(wrong):
                at = wrong[0]
                yield Difference(op.text, tuple(int(x[at]) for x in flatten(inputs)), int(want[at]), int(got[at]))
                break


def dtypes(t: str) -> list[type]:
    return [np.uint64, np.uint64] if bits(t) == 128 else [dtype_of(t)]


def run_shape(op: Opcode, reference: list[Any]) -> list[Any]:
    """One entry for each output; 128-bit ones came apart."""
    return reference[:1] if signature(op).outputs and bits(signature(op).outputs[0]) == 128 else reference
