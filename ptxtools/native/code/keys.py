"""Which handler executes an operation: its name, from everything that is fixed when the code is generated.

Loading a program needs this module only, not the generator.
"""

from __future__ import annotations

import hashlib
import re

from ptxtools.program.program import Op, Ref

RECORD_BYTES = 64
#: Operand slots of one record; an operation with more has extension records behind its first.
OPERANDS_PER_RECORD = 10
_FIRST_OPERAND = 8


def operands_of(op: Op) -> list[Ref]:
    """Slots of an operation in record order: destinations, then sources; sinks and absent operands left out."""
    return [ref for ref in (*op.dst, *op.src) if ref is not None]


def operand_offset(place: int) -> int:
    """Where the offset of an operand's slot stands, from the start of the first record."""
    record, column = divmod(place, OPERANDS_PER_RECORD)
    return record * RECORD_BYTES + _FIRST_OPERAND + 4 * column


def record_count(op: Op) -> int:
    """Records that an operation takes."""
    return 1 + max(0, len(operands_of(op)) - 1) // OPERANDS_PER_RECORD


def key_of(op: Op) -> tuple[object, ...]:
    """Everything that the handler of an operation depends on."""
    return (
        op.kind,
        op.opcode.text if op.opcode is not None else "",
        tuple((ref.type if ref else "", t) for ref, t in zip(op.dst, op.dst_types, strict=False)) or len(op.dst),
        tuple((ref.type if ref else "", t) for ref, t in zip(op.src, op.src_types, strict=False)),
        tuple(ref.type if ref else "" for ref in (*op.dst, *op.src)),
        op.guard is not None,
        op.space,
        "" if op.detail is None else repr(op.detail),
    )


def name_of(key: tuple[object, ...]) -> str:
    """Symbol of the handler: readable, and unique by a digest."""
    words = re.sub(r"\W+", "_", f"{key[0]}_{key[1]}_{key[6]}").strip("_")
    digest = hashlib.blake2b(repr(key).encode(), digest_size=8).hexdigest()
    return f"h_{words[:48]}_{digest}"
