"""Implied modifiers of opcodes in old modules: those that follow from the module's PTX version or target."""

from __future__ import annotations

from collections.abc import Callable

from .chips import CHIPS, Version
from .errors import OpcodeError
from .opcode import Opcode, resolve
from .targets import chip_of, known

#: Before PTX 1.4 their f32 forms are `.approx.ftz` where nothing else is written (notes of 9.7.3.8, 9.7.3.13 to
#: 9.7.3.21); their f64 forms round to nearest, as the form without a modifier does anyway.
_APPROXIMATE = frozenset({"div", "rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2"})
_SAID = frozenset({"approx", "full", "rn", "rz", "rm", "rp"})


def reader_for(version: Version, target: str) -> Callable[[str], Opcode]:
    """`resolve` for the opcodes of a module that declares this PTX version and target.

    On sm_1x all f32 arithmetic, comparisons and conversions flush subnormals as if they said `.ftz`, and so they do
    when such a module runs on a later chip (9.7.3, 9.7.6, 9.7.9.21).
    """
    approximate = (0, 0) < version < (1, 4)
    flushing = known(target) and chip_of(target).architecture == CHIPS[10].architecture
    if not (approximate or flushing):
        return resolve
    found: dict[str, Opcode] = {}

    def read(text: str) -> Opcode:
        op = found.get(text)
        if op is None:
            op = resolve(text)
            if approximate and op.family in _APPROXIMATE and op.type == "f32" and not op.atoms & _SAID:
                op = _with(op, "approx.ftz")
            elif flushing and "f32" in op.types and not (version < (1, 5) and "f64" in op.types):
                op = _with(op, "ftz")
            found[text] = op
        return op

    return read


def _with(op: Opcode, modifiers: str) -> Opcode:
    """The opcode with further modifiers, if it takes them and does not have them."""
    family, _, rest = op.text.partition(".")
    if op.has("ftz"):
        return op
    try:
        return resolve(f"{family}.{modifiers}.{rest}")
    except OpcodeError:
        return op
