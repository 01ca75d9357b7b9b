"""Handlers of runs: several operations with values in registers between them (see `runs`)."""

from __future__ import annotations

from collections.abc import Sequence

from ptxtools import isa
from ptxtools.engine.native.builder import Handler
from ptxtools.engine.native.runs import Place, Step
from ptxtools.semantics.algebra import Value

from .plain import compute


def run(h: Handler) -> None:
    """All steps in order, then the results that somebody reads."""
    steps, read, kept = h.op.detail
    contents: dict[int, Value] = {}
    for number, ref in zip(read, h.op.src, strict=True):
        assert ref is not None
        contents[number] = h.content(ref)
    for step in steps:
        _step(h, step, contents)
    h.op.dst_types = tuple(ref.type for ref in h.op.dst if ref is not None)
    h.results([contents[number] for number in kept])


def _operand(h: Handler, place: Place, contents: dict[int, Value]) -> Value:
    number, storage, t = place
    return h.A.const(t, 0) if number < 0 else h.A.adapt(contents[number], storage, t)


def _step(h: Handler, step: Step, contents: dict[int, Value]) -> None:
    _, _, _, targets, _, guard, negated, before = step
    outputs = _outputs(h, step, contents)
    lanes = contents[guard] if guard >= 0 else None
    if lanes is not None and negated:
        lanes = h.A.not_("pred", lanes)
    for place, ((number, storage, t), value) in enumerate(zip(targets, outputs, strict=False)):
        if number < 0:
            continue
        wide = h.A.widen(value, t, storage)
        contents[number] = wide if lanes is None else h.A.select(storage, lanes, wide, contents[before[place]])


def _outputs(h: Handler, step: Step, contents: dict[int, Value]) -> Sequence[Value]:
    kind, text, detail, targets, sources, _, _, _ = step
    inputs = [_operand(h, place, contents) for place in sources]
    if kind == "alu":
        return compute(h, isa.resolve(text), detail, inputs)
    if kind == "pack":
        return (h.A.pack(sources[0][2], inputs),)
    if kind == "unpack":
        return h.A.unpack(targets[0][2], len(targets), inputs[0])
    return inputs
