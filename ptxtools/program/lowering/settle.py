"""Moves of accumulators before the wait for them (9.7.15.7).

The manual forbids to touch the accumulators of a pending `wgmma.mma_async`, but compilers leave moves there: LLVM
unpacks f16 accumulators right behind the commit, and ptxas gives the moves finished values. So where work completes
late, a move of pending accumulators is put behind the `wgmma.wait_group` that completes them, if nothing of the block
touches in between what it moves. Everything else that reads them early finds the old values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ptxtools.ir import Immediate, Instruction, Operand
from ptxtools.ir.references import operand_names
from ptxtools.ir.symbols import Names

#: An instruction and the names that are known at it.
Placed = tuple[Instruction, Names]


def settled(block: Sequence[Placed]) -> Sequence[Placed]:
    """The instructions of a basic block in the order in which they are to run."""
    if not any(instruction.opcode.startswith("wgmma.mma_async") for instruction, _ in block):
        return block
    return list(_Block().order(block))


class _Block:
    """open: accumulators since the last commit; groups: those of each pending group, the oldest first; held: moves that
    wait, with the names that they read and write."""

    def __init__(self) -> None:
        self.open: set[str] = set()
        self.groups: list[set[str]] = []
        self.held: list[tuple[Placed, set[str], set[str]]] = []

    def order(self, block: Sequence[Placed]) -> Iterator[Placed]:
        for placed in block:
            instruction = placed[0]
            opcode, operands = instruction.opcode, instruction.operands
            if opcode.startswith("mov.") and instruction.guard is None and self._holds(placed):
                continue
            touched = {name for operand in operands for name in operand_names(operand)}
            if any(touched & (reads | writes) for _, reads, writes in self.held):
                yield from self._release(pending=False)
            yield placed
            if opcode.startswith("wgmma.mma_async"):
                self.open |= _names(operands[0])
            elif opcode.startswith("wgmma.commit_group"):
                self.groups.append(self.open)
                self.open = set()
            elif opcode.startswith("wgmma.wait_group") and isinstance(operands[0], Immediate):
                del self.groups[: max(0, len(self.groups) - operands[0].value)]
                yield from self._release(pending=True)
        yield from self._release(pending=False)

    def _holds(self, placed: Placed) -> bool:
        """Whether this move is to wait: it reads a pending accumulator, and overwrites nothing that another moves."""
        target, source = placed[0].operands[:2]
        reads, writes = _names(source), _names(target)
        pending = self.open.union(*self.groups)
        if not reads & pending or writes & pending:
            return False
        if any(writes & (r | w) or reads & w for _, r, w in self.held):
            return False
        self.held.append((placed, reads, writes))
        return True

    def _release(self, *, pending: bool) -> Iterator[Placed]:
        """The moves that wait; pending: but for those of groups that are not complete."""
        waiting = self.open.union(*self.groups) if pending else set()
        for placed, reads, _ in self.held:
            if not reads & waiting:
                yield placed
        self.held = [entry for entry in self.held if entry[1] & waiting]


def _names(operand: Operand) -> set[str]:
    return set(operand_names(operand))
