"""Whether the CTAs of a grid do the same in whatever order they run, as far as the program says: then all workers can
share it, and what checkers have to report is the same (`sim.trial`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.program import effects
from ptxtools.program.details import SpecialRegister
from ptxtools.program.operations import ISSUES, OPERATIONS, strength
from ptxtools.program.passes.colouring import bits, block_liveness
from ptxtools.program.program import Block
from ptxtools.records import replace

if TYPE_CHECKING:
    from ptxtools.program.program import Op, Program

#: Special registers whose values depend on when and where a thread runs (10).
_SREGS = ("%clock", "%globaltimer", "%smid", "%warpid", "%pm")
#: Instructions whose results do, or depend on who has come before.
_INSTRUCTIONS = frozenset({"activemask", "clusterlaunchcontrol"})
#: State spaces that only threads of a cluster reach.
_OWN = ("shared", "cluster", "local", "param")


def by_chance(op: Op) -> str:
    """What of an operation depends on when and where a thread runs; "" for nothing."""
    if op.kind == "sreg" and op.of(SpecialRegister).name.startswith(_SREGS):
        return op.of(SpecialRegister).name
    here = op.opcode is not None and op.opcode.family in _INSTRUCTIONS and op.kind.startswith(op.opcode.family)
    return op.kind if here else ""


def independent(program: Program) -> bool:
    """Whether no CTA looks at what others do: no atomic to global memory whose result is used, no strong read of it,
    and nothing else that depends on when and where a thread runs. Races by weak accesses are none of its matters."""
    useful = program.found(useful_atomics)
    return not any(_looks_about(op, useful) for op in program.operations())


def works(program: Program) -> bool:
    """Whether there is asynchronous work, which may be complete at once."""
    return any(
        op.kind in ISSUES or (op.opcode is not None and op.opcode.name.startswith("cp.async"))
        for op in program.operations()
    )


def _looks_about(op: Op, useful: frozenset[int]) -> bool:
    if by_chance(op) or op.kind == "multimem":
        return True
    access = OPERATIONS[op.kind].access
    if op.space in _OWN or access not in ("read", "atomic"):
        return False
    return op.where in useful if access == "atomic" else bool(strength(op.opcode))


def _unobserved(block: Block) -> Block:
    """The block without looks: that before an access whose lanes are decided reads what the access will load."""
    end = block.terminator
    looks = end.op is not None and end.op.kind.startswith("observe.")
    return Block(block.ops, replace(end, op=None)) if looks else block


def useful_atomics(program: Program) -> frozenset[int]:
    """Lines of atomics whose results are read: compilers name a register for the others, too."""
    atomics = [op for block in program.blocks for op in block.ops if op.kind == "atom"]
    results: set[int] = {slot for op in atomics for slot in effects.writes(op)}
    if not results:
        return frozenset()
    found = set()
    blocks = list(map(_unobserved, program.blocks))
    _, leaving = block_liveness(blocks, results)
    for block, out in zip(blocks, leaving, strict=True):
        live = set(bits(out))
        live.difference_update(effects.terminator_writes(block.terminator))
        live.update(effects.terminator_reads(block.terminator))
        for op in reversed(block.ops):
            if op.kind == "atom" and not live.isdisjoint(effects.writes(op)):
                found.add(op.where)
            if op.guard is None:
                live.difference_update(effects.writes(op))
            live.update(effects.reads(op))
    return frozenset(found)
