"""What bitcode says of itself, read from its bitstream: LLVM upgrades what it reads, and these facts are lost by that.

Only blocks that hold the facts are read; functions are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ptxtools.records import dataclass, field

from .stream import GROUPS, IDENTIFICATION, MODULE, TYPES, Block, blocks_of, text_of

#: Records of the type table: a pointer with its pointee, as LLVM had them up to 16, and one without.
_POINTER, _OPAQUE_POINTER = 8, 25
#: The first LLVM whose pointers are opaque by default.
_OPAQUE_SINCE = 15


@dataclass(slots=True)
class Facts:
    """producer: such as "LLVM7.0.1"; epoch: of the format; triple, layout, source: of the module; typed, opaque:
    whether its types have pointers with and without pointees; attributes: the names of those that are texts."""

    producer: str = ""
    epoch: int = 0
    triple: str = ""
    layout: str = ""
    source: str = ""
    typed: bool = False
    opaque: bool = False
    attributes: set[str] = field(default_factory=set)

    @property
    def version(self) -> int:
        """Of the LLVM that wrote it, 0 if that is not known."""
        version = re.search(r"(\d{1,4})\.", self.producer)
        return int(version[1]) if version else 0

    @property
    def dialect(self) -> str:
        """ "7" or "modern": by the pointers, or without any by the version of LLVM that wrote it."""
        if self.typed or self.opaque:
            return "7" if self.typed else "modern"
        return "7" if 0 < self.version < _OPAQUE_SINCE else "modern"


def facts_of(data: bytes) -> Facts:
    """The facts of a module. Raises BitcodeError."""
    facts = Facts()
    for block in blocks_of(data, (MODULE, GROUPS, IDENTIFICATION, TYPES).__contains__):
        note_facts(facts, block)
    return facts


def note_facts(facts: Facts, block: Block) -> None:
    """Add what a block and those in it say."""
    for part in block.parts:
        if isinstance(part, Block):
            note_facts(facts, part)
        else:
            _note(facts, block.number, part.code, part.values)


def _note(facts: Facts, block: int, code: int, values: list[int]) -> None:
    if block == TYPES:
        facts.typed |= code == _POINTER
        facts.opaque |= code == _OPAQUE_POINTER
    elif block == IDENTIFICATION:
        if code == 1:
            facts.producer = text_of(values)
        elif code == 2 and values:
            facts.epoch = values[0]
    elif block == MODULE:
        if code == 2:
            facts.triple = text_of(values)
        elif code == 3:
            facts.layout = text_of(values)
        elif code == 16:
            facts.source = text_of(values)
    elif block == GROUPS and code == 3:
        facts.attributes.update(_text_attributes(values[2:]))


def _text_attributes(values: list[int]) -> Iterator[str]:
    """The names among the attributes of a group: kind 3 or 4 and a text that ends with 0, and for 4 another one. Kinds
    0, 1, 5, 6 are numbers and types."""
    at = 0
    while at < len(values):
        kind = values[at]
        if kind in (3, 4):
            stop = values.index(0, at) if 0 in values[at:] else len(values)
            yield text_of(values[at + 1 : stop])
            at = stop + 1
            if kind == 4:
                at = values.index(0, at) + 1 if 0 in values[at:] else len(values)
        elif kind in (0, 1, 5, 6):
            at += 3 if kind in (1, 6) else 2
        else:
            return
