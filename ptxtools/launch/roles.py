"""What a kernel does with each of its parameters, read from its text: a first guess at arguments for a launch."""

from __future__ import annotations

from collections.abc import Iterator

from ptxtools.ir import Address, Function, Instruction, Module, Name
from ptxtools.ir.references import operand_names, statements
from ptxtools.isa.types import TYPES
from ptxtools.records import dataclass, field

#: Instructions whose result is an address if a source is one; of `mad` only the last source.
_CARRY = frozenset({"mov", "cvt", "cvta", "add", "sub", "selp", "mad", "min", "max"})
_WIDE = frozenset({"u64", "s64", "b64", "u32", "s32", "b32"})
_WRITES = frozenset({"st", "red", "atom", "multimem"})


@dataclass(slots=True)
class Role:
    """Uses of a parameter. pointer: memory is reached through it; types: of these accesses, in order; reads, writes:
    whether some read or write; dims: of the tensor copies that take it as their map, or 0."""

    pointer: bool = False
    types: list[str] = field(default_factory=list)
    reads: bool = False
    writes: bool = False
    dims: int = 0


def roles_of(module: Module, kernel: str) -> list[Role]:
    """The roles of the parameters of an entry, in their order. They follow registers through moves and additions, not
    through calls and memory: a parameter that is passed on counts as a pointer if its size allows."""
    entry = next(f for f in module.functions if f.kind == "entry" and f.name == kernel)
    return _Uses(entry).roles


class _Uses:
    def __init__(self, entry: Function) -> None:
        self.roles = [Role(pointer=p.ptr is not None) for p in entry.params]
        self._numbers = {p.name: n for n, p in enumerate(entry.params)}
        self._from: dict[str, frozenset[int]] = {}
        if entry.body is None:
            return
        lines = [item for item in statements(entry.body) if isinstance(item, Instruction) and item.operands]
        while sum(map(self._carried, lines)):
            pass
        for line in lines:
            self._certain(line)
        for line in lines:
            self._used(line)

    def _of(self, *operands: object) -> frozenset[int]:
        """The parameters in operands."""
        found: set[int] = set()
        for operand in operands:
            for name in operand_names(operand):  # type: ignore[arg-type]
                found |= self._from.get(name, frozenset())
                if name in self._numbers:  # its address: of a tensor map, or an array by value
                    found.add(self._numbers[name])
        return frozenset(found)

    def _carried(self, line: Instruction) -> bool:
        """Take what a result is made from; whether that is new."""
        family, *parts = line.opcode.split(".")
        if family == "ld" and parts[:1] == ["param"]:
            new = self._of(*line.operands[1:])
        elif family in _CARRY and parts and parts[-1] in _WIDE:
            new = self._of(*line.operands[-1:] if family == "mad" else line.operands[1:])
        else:
            return False
        changed = False
        for name in operand_names(line.operands[0]) if new else ():
            known = self._from.get(name, frozenset())
            if not new <= known:
                self._from[name], changed = known | new, True
        return changed

    def _certain(self, line: Instruction) -> None:
        """What is converted to another state space is an address."""
        if line.opcode.startswith("cvta."):
            found = self._of(*line.operands[1:])
            if len(found) == 1:
                self.roles[min(found)].pointer = True

    def _used(self, line: Instruction) -> None:
        family, *parts = line.opcode.split(".")
        if family in ("call", "st") and (family == "call" or parts[:1] == ["param"]):
            for number in self._of(*line.operands):
                self.roles[number].pointer = True
            return
        if family == "ld" and parts[:1] == ["param"]:
            return
        dims = next((int(p[0]) for p in parts if len(p) == 2 and p[0] in "12345" and p[1] == "d"), 0)
        for position, operand in _addresses(line):
            found = self._of(operand.base)
            if not found:
                continue
            sure = [n for n in found if self.roles[n].pointer]
            for number in sure or sorted(found):
                role = self.roles[number]
                role.pointer = True
                if "tensor" in parts or family == "prefetch":
                    role.dims = role.dims or dims
                    continue
                role.types += [p for p in parts if p in TYPES][-1:]
                copies = family == "cp"
                role.writes |= family in _WRITES or (copies and position == 0)
                role.reads |= family not in ("st", "red") and not (copies and position == 0)


def _addresses(line: Instruction) -> Iterator[tuple[int, Address]]:
    for position, operand in enumerate(line.operands):
        if isinstance(operand, Address) and isinstance(operand.base, Name):
            yield position, operand
