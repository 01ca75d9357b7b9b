"""The handler that executes an operation: its name, derived from everything that is fixed when code is generated.

Loading a program needs this module only, not the generator.
"""

from __future__ import annotations

import hashlib
import re
from typing import NewType

from ptxtools.program.program import ByteOffset, Op, Ref

from .structures import RECORD

#: Number of an operand in record order.
Operand = NewType("Operand", int)

RECORD_BYTES = RECORD.size
#: Operand slots of one record; an operation with more has extension records behind its first.
OPERANDS_PER_RECORD = sum(name[0] == "s" for name in RECORD.fields)


def operands_of(op: Op) -> list[Ref]:
    """Slots of an operation in record order: destinations, then sources; sinks and absent operands left out."""
    return [ref for ref in (*op.dst, *op.src) if ref is not None]


def operand_offset(operand: Operand) -> ByteOffset:
    """Byte offset of the slot of an operand, from the start of the operation's first record."""
    record, column = divmod(operand, OPERANDS_PER_RECORD)
    return ByteOffset(record * RECORD_BYTES + RECORD.offset(f"s{column}"))


def record_count(op: Op) -> int:
    """The number of records of an operation."""
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
