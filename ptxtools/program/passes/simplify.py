"""Fewer operations: constants and copies forwarded, identities and negated guards resolved, dead results dropped.

Registers are not in static single assignment form. A copy `d = s` is forwarded if the difference cannot be seen: either
both have one definition, and that of s dominates that of d, which dominates all reads of d; or all reads of d follow it
in its block before s changes.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxtools.ir.dominators import DominatorTree, dominators
from ptxtools.program.details import SpecialRegister
from ptxtools.program.effects import reads, successors, terminator_reads, terminator_writes, writes
from ptxtools.program.operations import PURE
from ptxtools.program.program import Block, Op, Ref, Slot

from .colouring import ValueTable

Position = tuple[int, int]  # block, operation (a terminator counts as the one after the last)

#: Special registers that have the same value everywhere in a function.
_STEADY = ("%tid", "%ntid", "%ctaid", "%nctaid", "%laneid", "%lanemask")


class Simplifier:
    """The blocks and values of a function. `alias` maps a value to its replacement. exact: a register that is read
    before it is written holds no constant."""

    def __init__(self, blocks: list[Block], values: ValueTable, exact: bool = False) -> None:
        self.blocks, self.values, self.exact = blocks, values, exact
        self.alias: dict[int, int] = {}
        self.inverse: dict[int, int] = {}  # predicate -> the predicate that it negates
        self.defined: dict[int, list[Position]] = {}
        self.used: dict[int, list[Position]] = {}
        self._tree: DominatorTree | None = None
        self._steady: dict[tuple[str, str], int] = {}
        self._index()

    def _index(self) -> None:
        defined, used = self.defined, self.used
        for number, block in enumerate(self.blocks):
            at = 0
            for at, op in enumerate(block.ops):
                position = (number, at)
                for value in reads(op):
                    used.setdefault(value, []).append(position)
                for value in writes(op):
                    defined.setdefault(value, []).append(position)
            position = (number, len(block.ops))
            for value in terminator_reads(block.terminator):
                used.setdefault(value, []).append(position)
            for value in terminator_writes(block.terminator):
                defined.setdefault(value, []).append(position)

    def find(self, number: int) -> int:
        alias = self.alias
        while number in alias:
            number = alias[number]
        return number

    # --- forwarding ---------------------------------------------------------------------------------------------------

    def run(self) -> None:
        for number, block in enumerate(self.blocks):
            for at, op in enumerate(block.ops):
                if op.kind == "alu":
                    self._identity(op)
                elif op.kind == "sreg":
                    self._repeated(op, (number, at))
                if op.kind == "copy":
                    self._forward(op, (number, at))
                elif op.kind == "alu" and op.opcode is not None and op.opcode.text == "not.pred":
                    self._negation(op, (number, at))
        self._apply()

    def _forward(self, op: Op, position: Position) -> None:
        target, source = op.dst[0], op.src[0]
        if target is None or source is None or op.guard is not None:
            return
        if self._replaceable(target.slot, source.slot, position):
            self.alias[target.slot] = source.slot

    def _negation(self, op: Op, position: Position) -> None:
        target, source = op.dst[0], op.src[0]
        if target is None or source is None or op.guard is not None:
            return
        if self._replaceable(target.slot, source.slot, position):
            self.inverse[target.slot] = source.slot

    def _replaceable(self, target: int, source: int, position: Position) -> bool:
        """Whether each read of `target`, defined at `position`, may read `source` instead."""
        values = self.values
        if target in values.fixed or target in values.outgoing or source in values.outgoing:
            return False
        source = self.find(source)
        if source == target:
            return False
        single = len(self.defined[target]) == 1
        if source in values.constants or source in values.launch:
            if self.exact:
                return single and all(self._dominates(position, use) for use in self.used.get(target, ()))
            return single or self._stays_local(target, source, position)
        sources = self.defined.get(source, [])
        if single and len(sources) == 1 and source not in values.fixed and self._dominates(sources[0], position):
            return all(self._dominates(position, use) for use in self.used.get(target, ()))
        if single and not sources and source in values.fixed:
            return True  # a parameter that is never written
        return single and self._stays_local(target, source, position)

    def _stays_local(self, target: int, source: int, position: Position) -> bool:
        """Whether all reads of `target` come after `position` in its block, and `source` keeps its value up to them."""
        block, at = position
        uses = self.used.get(target, [])
        if len(self.defined[target]) != 1 or any(use[0] != block or use[1] <= at for use in uses):
            return False
        last = max((use[1] for use in uses), default=at)
        return not any(d[0] == block and at <= d[1] < last for d in self.defined.get(source, ()))

    def _dominates(self, first: Position, second: Position) -> bool:
        if first[0] == second[0]:
            return first[1] < second[1]
        if self._tree is None:
            self._tree = dominators([successors(block.terminator) for block in self.blocks])
        return self._tree.dominates(first[0], second[0])

    # --- identities ---------------------------------------------------------------------------------------------------

    def _constant(self, ref: Ref | None) -> int | None:
        return None if ref is None else self.values.constants.get(self.find(ref.slot))

    def _identity(self, op: Op) -> None:
        """Turn an operation that yields one of its sources, or its negation, into a copy or `not`."""
        opcode = op.opcode
        if opcode is None or len(op.dst) != 1 or op.dst[0] is None or opcode.family not in _IDENTITIES:
            return
        constants = [self._constant(ref) for ref in op.src]
        kept = _IDENTITIES[opcode.family](op, constants)
        if kept is None:
            return
        place, negated = kept
        source = op.src[place]
        if source is None or source.type != op.dst[0].type:
            return
        op.src = (source,)
        if negated:
            from ptxtools.isa import resolve

            op.opcode, op.src_types = resolve("not.pred"), ("pred",)
        else:
            op.kind, op.opcode = "copy", None

    def _repeated(self, op: Op, position: Position) -> None:
        """A special register that was read on every path to here need not be read again."""
        target = op.dst[0]
        if target is None or op.guard is not None or not op.of(SpecialRegister).name.startswith(_STEADY):
            return
        key = (op.of(SpecialRegister).name, target.type)
        earlier = self._steady.get(key)
        if earlier is None:
            if len(self.defined[target.slot]) == 1:
                self._steady[key] = target.slot
        elif self._dominates(self.defined[earlier][0], position):
            op.kind, op.src, op.src_types, op.detail = "copy", (self.values.refs[earlier],), op.dst_types, None

    # --- applying -----------------------------------------------------------------------------------------------------

    def _apply(self) -> None:
        refs = self.values.refs
        for block in self.blocks:
            for op in block.ops:
                if op.guard is not None:
                    op.guard, op.negated = self._guard(op.guard, op.negated)
            end = block.terminator
            if end.guard is not None:
                end.guard, end.negated = self._guard(end.guard, end.negated)
            block.ops[:] = [op for op in block.ops if not self._gone(op)]
        if self.alias:
            for ref in refs:
                if ref.slot in self.alias:
                    ref.slot = Slot(self.find(ref.slot))
            for block in self.blocks:  # a copy between values that became one
                block.ops[:] = [op for op in block.ops if not _moves_nothing(op)]
        drop_dead(self.blocks, self.values)

    def _guard(self, guard: Ref, negated: bool) -> tuple[Ref, bool]:
        number = self.find(guard.slot)
        while number in self.inverse:
            number, negated = self.find(self.inverse[number]), not negated
        return self.values.refs[number], negated

    def _gone(self, op: Op) -> bool:
        return op.kind == "copy" and op.dst[0] is not None and op.dst[0].slot in self.alias


def _moves_nothing(op: Op) -> bool:
    return op.kind == "copy" and op.dst[0] is not None and op.src[0] is not None and op.dst[0].slot == op.src[0].slot


def simplify(blocks: list[Block], values: ValueTable, *, exact: bool = False) -> None:
    """Improve in place. Block numbers stay; no operation moves."""
    Simplifier(blocks, values, exact).run()


def drop_dead(blocks: list[Block], values: ValueTable) -> None:
    """Remove operations without effects whose results are unused, and operations that only they needed."""
    counts: dict[int, int] = {}
    makers: dict[int, list[Op]] = {}
    for block in blocks:
        for op in block.ops:
            for value in reads(op):
                counts[value] = counts.get(value, 0) + 1
            if op.kind in PURE or (op.kind == "ld" and op.space == "param"):  # parameters are there in any case
                for value in writes(op):
                    makers.setdefault(value, []).append(op)
        for value in terminator_reads(block.terminator):
            counts[value] = counts.get(value, 0) + 1
    kept = values.fixed.keys() | values.outgoing.keys()
    waiting = [value for value in makers if not counts.get(value) and value not in kept]
    dead: set[int] = set()
    while waiting:
        for op in makers.get(waiting.pop(), ()):
            if id(op) in dead or any(counts.get(value) or value in kept for value in writes(op)):
                continue
            dead.add(id(op))
            for value in reads(op):
                counts[value] -= 1
                if not counts[value] and value not in kept:
                    waiting.append(value)
    for block in blocks:
        if dead:
            block.ops[:] = [op for op in block.ops if id(op) not in dead]
        for op in block.ops:  # compilers name a register for each atomic's old value
            if op.kind == "atom" and not any(counts.get(value) or value in kept for value in writes(op)):
                op.dst = (None,) * len(op.dst)


# --- what equals one of its sources: (index of the source, whether negated) -----------------------------------------

Kept = tuple[int, bool] | None


def _plain(op: Op) -> bool:
    opcode = op.opcode
    return opcode is not None and not opcode.carry_in and not opcode.carry_out and not opcode.has("sat")


def _other(op: Op, constants: Sequence[int | None], neutral: int) -> Kept:
    """The other source of a commutative operation with a neutral element."""
    for place in (0, 1):
        if constants[place] == neutral:
            return 1 - place, False
    return None


def _ones(op: Op) -> int:
    name = op.dst_types[0]
    return 1 if name == "pred" else (1 << int(name[1:])) - 1


def _xor(op: Op, constants: Sequence[int | None]) -> Kept:
    kept = _other(op, constants, 0)
    if kept is None and op.dst_types[0] == "pred":
        negated = _other(op, constants, 1)
        return (negated[0], True) if negated else None
    return kept


def _add(op: Op, constants: Sequence[int | None]) -> Kept:
    return _other(op, constants, 0) if _plain(op) and op.dst_types[0][0] in "su" else None


def _last_zero(op: Op, constants: Sequence[int | None]) -> Kept:
    return (0, False) if _plain(op) and op.dst_types[0][0] in "sub" and constants[1] == 0 else None


def _mul(op: Op, constants: Sequence[int | None]) -> Kept:
    lo = op.opcode is not None and op.opcode.has("lo")
    return _other(op, constants, 1) if lo and _plain(op) else None


def _cvt(op: Op, constants: Sequence[int | None]) -> Kept:
    """Between integers of one width. Registers wider than the type are left alone: their upper bits matter."""
    to, of = op.dst_types[0], op.src_types[0]
    same = to[0] in "su" and of[0] in "su" and to[1:] == of[1:] and to[1:] in ("16", "32", "64")
    exact = op.src[0] is not None and op.src[0].type == f"b{of[1:]}"
    return (0, False) if same and exact and _plain(op) else None


_IDENTITIES = {
    "xor": _xor,
    "or": lambda op, constants: _other(op, constants, 0),
    "and": lambda op, constants: _other(op, constants, _ones(op)),
    "add": _add,
    "sub": _last_zero,
    "shl": _last_zero,
    "shr": _last_zero,
    "mul": _mul,
    "cvt": _cvt,
}
