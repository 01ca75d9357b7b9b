"""Bodies of functions: records of instructions, and their text.

A first pass over the records finds the types of all values, a second one their names, since operands may come later;
then each instruction is written.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxtools.diagnostics.origin import Origin
from ptxtools.records import dataclass, field

from ..assembly.types import VOID, Type
from .instructions import READERS, TERMINATORS
from .metadata import Metadata
from .names import name
from .operands import Line, Operands
from .stream import ATTACHMENTS, CONSTANTS, METADATA, SYMBOLS, BitcodeError, Block, Record, text_of
from .values import Values

_BLOCKS, _LOCATION_AGAIN, _LOCATION, _BUNDLE, _ADDRESS_USERS = 1, 33, 35, 55, 60
_ENTRY, _BLOCK_ENTRY = 1, 2
_ATTACHED = 11


@dataclass(slots=True)
class _Instruction:
    """line: what it is; number: of its value, -1 without one; location: line, column, scope, and the call."""

    line: Line
    number: int
    location: tuple[int, int, int, int] | None = None
    attached: list[int] = field(default_factory=list)


class Body:
    """The body of a function. number: its value's; params: the types of its parameters."""

    def __init__(self, block: Block, operands: Operands, number: int, params: list[Type]) -> None:
        self._block, self._operands, self._number = block, operands, number
        self._values: Values = operands.values
        self._metadata: Metadata = operands.metadata
        self._globals, self._nodes = len(self._values), len(self._metadata)
        self._params = params
        self.names: list[str] = []
        self._labels: list[str] = []
        self._blocks: list[list[_Instruction]] = []
        self.attached: list[int] = []
        self._count = 0
        self._last = (0, 0, 0, 0)

    def read(self) -> None:
        """The first two passes."""
        first = len(self._values)
        for type in self._params:
            self._values.add(type)
        instructions: list[_Instruction] = []
        at_end: list[Block] = []
        for part in self._block.parts:
            if isinstance(part, Record):
                self._record(part, instructions)
            elif part.number == CONSTANTS:
                self._values.read(part)
            elif part.number == METADATA:
                self._metadata.read(part)
            elif part.number in (SYMBOLS, ATTACHMENTS):
                at_end.append(part)
        labels: dict[int, str] = {}
        named: dict[int, str] = {}
        for block in at_end:
            for record in block.records:
                if block.number == ATTACHMENTS:
                    self._attach(record, instructions)
                elif record.values and record.code in (_ENTRY, _BLOCK_ENTRY):
                    (named if record.code == _ENTRY else labels)[record.values[0]] = text_of(record.values[1:])
        if len(self._blocks) != self._count:
            raise BitcodeError(f"a function has {len(self._blocks)} blocks instead of {self._count}")
        self._name(first, named, labels)

    def _record(self, record: Record, instructions: list[_Instruction]) -> None:
        code, values = record.code, record.values
        if code == _BLOCKS:
            self._count = values[0] if values else 0
            self._blocks = [[]] if self._count else []
        elif code == _LOCATION_AGAIN or (code == _LOCATION and len(values) >= 4):
            if code == _LOCATION:
                self._last = values[0], values[1], values[2], values[3]
            if instructions:
                instructions[-1].location = self._last
        elif code == _BUNDLE:
            self._operands.bundles.append(values)
        elif code != _ADDRESS_USERS:
            self._instruction(record, instructions)

    def _instruction(self, record: Record, instructions: list[_Instruction]) -> None:
        reader = READERS.get(record.code)
        if reader is None:
            raise BitcodeError(f"there is an instruction of the unknown kind {record.code}, at byte {record.at}")
        if not self._blocks:
            raise BitcodeError(f"an instruction stands outside of a block, at byte {record.at}")
        self._operands.begin(record)
        try:
            line = reader(self._operands)
        except (IndexError, KeyError):
            raise BitcodeError(f"the record of an instruction is damaged, at byte {record.at}") from None
        number = -1 if line.type is None or line.type is VOID else self._values.add(line.type)
        made = _Instruction(line, number)
        if line.aside:  # behind the instruction, and is before it
            block = self._blocks[-1] or self._blocks[-2 if len(self._blocks) > 1 else -1]
            block.insert(max(len(block) - 1, 0), made)
            return
        self._blocks[-1].append(made)
        instructions.append(made)
        if line.op in TERMINATORS and len(self._blocks) < self._count:
            self._blocks.append([])

    @staticmethod
    def _attach(record: Record, instructions: list[_Instruction]) -> None:
        if record.code == _ATTACHED and len(record.values) % 2 and record.values[0] < len(instructions):
            instructions[record.values[0]].attached = record.values[1:]

    def _name(self, first: int, named: dict[int, str], labels: dict[int, str]) -> None:
        """Names for all values, with the numbers that LLVM gives what has none."""
        free = 0

        def given(own: str | None) -> str:
            nonlocal free
            if own:
                return name("%", own)
            free += 1
            return f"%{free - 1}"

        for number in range(first, first + len(self._params)):
            self.names.append(given(named.get(number)))
            self._values.name(number, self.names[-1])
        for n, block in enumerate(self._blocks):
            self._labels.append(given(labels.get(n)))
            for one in block:
                if one.number >= 0:
                    self._values.name(one.number, given(named.get(one.number)))
        for record in (record for block in self._block.blocks(ATTACHMENTS) for record in block.records):
            if record.code == _ATTACHED and len(record.values) % 2 == 0:
                self.attached += record.values

    def label(self, number: int) -> str:
        if not 0 <= number < len(self._labels):
            raise BitcodeError(f"block {number} of a function is not defined")
        return self._labels[number]

    def lines(self) -> Iterator[tuple[str, int, Origin | None]]:
        """Each line of the body, with the number of its instruction (0: a label) and the place in the source."""
        self._operands.label = self.label
        count = 0
        for label, block in zip(self._labels, self._blocks, strict=True):
            yield f"{label[1:]}:", 0, None
            for one in block:
                count += not one.line.aside
                try:
                    text = one.line.text()
                except (IndexError, KeyError):
                    raise BitcodeError("the record of an instruction is damaged") from None
                origin = None
                if one.location is not None and one.location[2]:
                    line, column, scope, call = one.location
                    origin = self._metadata.origin(line, column, scope, call)
                    at = f", inlinedAt: {self._metadata.ref(call - 1)}" if call else ""
                    node = self._metadata.ref(scope - 1)
                    text += f", !dbg !DILocation(line: {line}, column: {column}, scope: {node}{at})"
                text += self._metadata.attachments(one.attached)
                result = f"{self._values.text(one.number)} = " if one.number >= 0 else ""
                yield f"  {result}{text}", count, origin

    def close(self) -> Iterator[str]:
        """The statements of the function's metadata; then nothing of it is known any more."""
        yield from self._metadata.lines(self._nodes)
        self._metadata.cut(self._nodes)
        self._values.cut(self._globals)
