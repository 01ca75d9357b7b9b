"""The handler that executes an operation: its name, derived from everything that is fixed when code is generated.

Loading a program needs this module only, not the generator.
"""

from __future__ import annotations

import re
from typing import NewType

from ptxtools import cache
from ptxtools.program.operations import LANE_ACCESS, OPERATIONS
from ptxtools.program.program import ByteOffset, Op, Ref
from ptxtools.semantics.algebra import STORAGE_BITS
from ptxtools.semantics.types import bits_of, is_signed, word_bits

from .structures import RECORD

#: Place in keys that says whether there is a guard.
_GUARD = 5
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


#: Modifiers of loads that are made to look at memory that others write.
_POLLS = ("volatile", "relaxed", "acquire", "mmio")


def effects_of(op: Op) -> tuple[str, ...]:
    """What a load or store does besides moving bits, by its modifiers: `poll` (make room for those who write),
    `acquire`, `release`."""
    opcode = op.opcode
    if opcode is None:
        return ()
    if op.kind == "st":
        return ("release",) if opcode.has("release") else ()
    polls = op.space in ("global", "generic") and any(map(opcode.has, _POLLS))
    return ("poll",) * polls + ("acquire",) * opcode.has("acquire")


def _moved(ref: Ref | None, t: str) -> str:
    """A type that a load or store moves in the same way: f32, s32 and b32 are one where no sign is extended."""
    bits = bits_of(t)
    extended = ref is not None and is_signed(t) and (bits < 16 or word_bits(t) != STORAGE_BITS.get(ref.type))
    return f"{'s' if extended else 'b'}{bits}"


def key_of(op: Op) -> tuple[object, ...]:
    """Everything that the handler of an operation depends on."""
    text, source_types, types = op.opcode.text if op.opcode is not None else "", op.src_types, op.dst_types
    if op.kind in LANE_ACCESS and OPERATIONS[op.kind].access != "atomic":  # many opcodes for one handler
        types = tuple(_moved(ref, t) for ref, t in zip(op.dst, types, strict=True))
        source_types = ("", *(_moved(ref, t) for ref, t in zip(op.src[1:], source_types[1:], strict=True)))
        moved = types or source_types[1:]
        text = "_".join((*effects_of(op), *(f"v{n}" for n in (len(moved),) if n > 1), *moved[:1]))
    return (
        op.kind,
        text,
        tuple((ref.type if ref else "", t) for ref, t in zip(op.dst, types, strict=False)) or len(op.dst),
        tuple((ref.type if ref else "", t) for ref, t in zip(op.src, source_types, strict=False)),
        tuple(ref.type if ref else "" for ref in (*op.dst, *op.src)),
        op.guard is not None,
        op.space,
        "" if op.detail is None else repr(op.detail),
    )


def without_guard(key: tuple[object, ...]) -> tuple[object, ...]:
    """A handler's key but for whether it has a guard."""
    return (*key[:_GUARD], *key[_GUARD + 1 :])


def name_of(key: tuple[object, ...]) -> str:
    """Symbol of the handler: readable, and unique by a digest."""
    words = re.sub(r"\W+", "_", f"{key[0]}_{key[1]}_{key[6]}").strip("_")
    digest = cache.blake2b(repr(key).encode(), digest_size=8).hexdigest()
    return f"h_{words[:48]}_{digest}"
