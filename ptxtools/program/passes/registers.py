"""Which registers of a program observers have to be told of: those that a lane might read before it has written them,
and those that asynchronous tensor instructions work on. Registers have slots of their own (`Variant.apart_registers`).
"""

from __future__ import annotations

from collections.abc import Container
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from ptxtools.program.details import NamedOperands, Touch
from ptxtools.program.effects import reads, terminator_reads, writes
from ptxtools.program.operations import LANEWISE, OPERATIONS
from ptxtools.program.program import FRAME_HEADER, Block, FunctionCode, Op, Program, Ref, Slot, Terminator
from ptxtools.records import replace
from ptxtools.semantics.types import bits_of

from .answers import takes_cluster
from .colouring import bits, block_liveness

#: Operations whose registers are in use when they have executed, and the names of those operands.
IN_FLIGHT = {"wgmma.mma_async": ("d", "a"), "tcgen05.ld": ("r", "mdata", "cdata", "redval")}
#: For a register that nobody asked about.
_OTHER = Slot(-1)
#: The slot of a guard, and whether it is negated.
_Guard: TypeAlias = tuple[int, bool]
#: Their results are as little written as what they read.
PASSES_ON = LANEWISE | {"shfl"}


def unwritten(program: Program) -> list[frozenset[Slot]]:
    """By function: slots that may be read before they are written, and those that get values from them."""
    passed, taken = _passed(program), results(program)
    slots = set[int]()
    for block in program.blocks:
        slots.update(terminator_reads(block.terminator))
        for op in block.ops:
            slots.update(reads(op))
            slots.update(writes(op))
    variables = {slot for slot in slots if slot >= FRAME_HEADER}
    origin = _returning(program, _fresh_accumulators(program), taken)
    live, leaving = block_liveness([_settled(block, {}) for block in origin], variables)
    starts = _starts(program, passed, live)
    if any(starts):  # what is computed for lanes that do not need it is no read
        needs = [_needs(block, set(bits(out))) for block, out in zip(origin, leaving, strict=True)]
        blocks = [_settled(block, need) for block, need in zip(origin, needs, strict=True)]
        starts = _starts(program, passed, block_liveness(blocks, variables)[0])
    found: list[frozenset[int]] = [frozenset()] * len(starts)
    before: list[frozenset[int]] = []
    while found != before:  # callers get results that callees may not have set
        before = found
        found = [
            _reached(program, number, start | _suspects(program, number) | _taken(program, number, taken, before))
            for number, start in enumerate(starts)
        ]
    doubtful = {slot for slots, mine in zip(found, taken, strict=True) for slot in slots & mine.keys()}
    found = [slots | (doubtful & mine.keys()) for slots, mine in zip(found, taken, strict=True)]  # who sets them, too
    return [frozenset(map(Slot, slots)) for slots in found]


def results(program: Program) -> list[dict[int, str]]:
    """By function: slots in its frame out of which callers take its results, and the types."""
    found: list[dict[int, str]] = [{} for _ in program.functions]
    for number, function in enumerate(program.functions):
        for block in _blocks(program, number):
            end = block.terminator
            if end.kind == "call":
                taken = {
                    ref.slot - function.frame_bytes: ref.type
                    for op in program.blocks[end.other].ops
                    for ref in op.src if ref is not None and ref.slot >= function.frame_bytes
                }  # fmt: skip
                for callee in _callees(end):
                    found[callee] |= taken
    return found


def _callees(end: Terminator) -> list[int]:
    """Functions that a call may enter."""
    return [end.callee] if end.callee >= 0 else [one for one in end.targets if one >= 0]


def _returning(program: Program, blocks: list[Block], taken: list[dict[int, str]]) -> list[Block]:
    """The blocks, where functions read their results before they return."""
    found, first = list[Block](), 0
    for number, mine in enumerate(taken):
        count = len(_blocks(program, number))
        refs = tuple(Ref(Slot(slot), type_) for slot, type_ in mine.items())
        use = [Op("copy", None, (), refs, (), tuple(mine.values()))] if refs else []
        found += [
            Block([*one.ops, *use], one.terminator) if one.terminator.kind == "ret" else one
            for one in blocks[first : first + count]
        ]
        first += count
    return found


def _taken(program: Program, number: int, taken: list[dict[int, str]], found: list[frozenset[int]]) -> set[int]:
    """Where a function finds results that the functions which it calls may not have set. taken: `results`."""
    frame, slots = program.functions[number].frame_bytes, set[int]()
    for block in _blocks(program, number):
        if block.terminator.kind == "call":
            for callee in _callees(block.terminator):
                slots |= {frame + slot for slot in found[callee] & taken[callee].keys()}
    return slots


def _fresh_accumulators(program: Program) -> list[Block]:
    """The blocks, where products of warpgroups do not read an accumulator that they begin anew (9.7.15.5.2)."""
    found = []
    for number, function in enumerate(program.functions):
        zeros = {slot for slot, _, value in function.constants if value == 0}
        found += [_fresh(block, zeros) for block in _blocks(program, number)]
    return found


def _fresh(block: Block, zeros: set[Slot]) -> Block:
    op = block.terminator.op
    if op is None or op.kind != "wgmma.mma_async":
        return block
    named = op.of(NamedOperands)
    first, count = named.sources["d"]
    enable = op.src[named.sources["scale_d"][0]]
    if enable is None or enable.slot not in zeros:
        return block
    src = (*op.src[:first], *[None] * count, *op.src[first + count :])
    return Block(block.ops, replace(block.terminator, op=replace(op, src=src)))


def _starts(program: Program, passed: set[int], live: list[int]) -> list[set[int]]:
    """By function: slots that may be read before they are written; live: those at the start of each block."""
    found = []
    for number, function in enumerate(program.functions):
        known: set[int] = {slot for slot, *_ in function.constants}
        known.update(one.slot for one in function.launch_constants)
        if number:
            known |= passed
        found.append({slot for slot in bits(live[function.first]) if slot not in known and slot < function.frame_bytes})
    return found


def _suspects(program: Program, number: int) -> set[int]:
    """Slots that loads, and queries of answers, of the program's suspect lines write in a function."""
    if not program.suspects:
        return set()
    found = (op for op in _operations(program, number) if op.where in program.suspects)
    return {ref.slot for op in found if op.kind == "ld" or takes_cluster(op) for ref in op.dst if ref is not None}


def copying(program: Program) -> list[Op]:
    """Loads of more than a byte whose results are stored, and nothing else is done with them."""
    found = []
    for number, function in enumerate(program.functions):
        operations = _operations(program, number)
        used, copies = set[int](), [op for op in operations if op.kind == "copy"]
        for block in _blocks(program, number):
            used.update({ref.slot for ref in (block.terminator.guard, block.terminator.index) if ref is not None})
        for op in operations:
            if op.kind != "copy":
                sources = op.src[:1] if op.kind == "st" else op.src
                used.update(ref.slot for ref in sources if ref is not None)
            if op.guard is not None:
                used.add(op.guard.slot)
        size = -1
        while size != len(used):
            size = len(used)
            for op in copies:
                if any(slot in used or slot >= function.frame_bytes for slot in writes(op)):
                    used.update(reads(op))
        found += [
            op for op in operations
            if op.kind == "ld" and max(map(bits_of, op.dst_types)) > 8 and used.isdisjoint(writes(op))
        ]  # fmt: skip
    return found


def needed(program: Program) -> dict[int, set[int]]:
    """Slots that loads of the program's suspect lines write and that something reads behind them, by line."""
    suspects = set[int]().union(*(_suspects(program, number) for number in range(len(program.functions))))
    found: dict[int, set[int]] = {}
    _, leaving = block_liveness(program.blocks, suspects)
    for block, out in zip(program.blocks, leaving, strict=True):
        live = set(bits(out)) | suspects.intersection(terminator_reads(block.terminator))
        for op in reversed(block.ops):
            if op.kind == "ld" and op.where in program.suspects:
                found.setdefault(op.where, set()).update(live.intersection(writes(op)))
            if op.guard is None:
                live -= set(writes(op))
            live |= suspects.intersection(reads(op))
    return found


def rewritten(program: Program) -> frozenset[int]:
    """Lines of loads whose result nobody reads, and whose bytes the next access stores anew: so compilers that do not
    optimise write bit fields of whole bytes."""
    found = set[int]()
    for number in range(len(program.functions)):
        operations = [op for op in _operations(program, number) if not op.kind.startswith("observe.")]
        used = {slot for op in operations for slot in reads(op)}
        load: Op | None = None
        for block in _blocks(program, number):
            for op in block.ops:
                if load is not None and (OPERATIONS[op.kind].seen or load.src[0] is None):
                    found |= {load.where} if op.kind == "st" and _same_bytes(load, op) else set()
                    load = None
                elif load is not None and load.src[0] is not None and load.src[0].slot in writes(op):
                    load = None
                if op.kind == "ld":
                    load = op
            end = block.terminator
            if end.op is None or not end.op.kind.startswith("observe."):
                used.update(terminator_reads(end))
                load = None
        found -= {op.where for op in operations if op.kind == "ld" and not used.isdisjoint(writes(op))}
    return frozenset(found)


def _same_bytes(load: Op, store: Op) -> bool:
    sizes = [sum(map(bits_of, types)) for types in (load.dst_types, store.src_types[1:])]
    return sizes[0] == sizes[1] and (load.src[0], load.imm, load.space) == (store.src[0], store.imm, store.space)


def _needs(block: Block, out: set[int]) -> dict[int, _Guard]:
    """Operations on registers, by identity, whose results only lanes need for which a guard holds, and that guard.
    out: slots whose content is needed behind the block. Short branches become such code (`passes.ifconvert`)."""
    found: dict[int, _Guard] = {}
    needed: dict[int, _Guard | None] = dict.fromkeys(out)  # None: all lanes need it

    def read(slots: list[int], who: _Guard | None) -> None:
        for slot in slots:
            needed[slot] = who if needed.get(slot, who) == who else None

    read(terminator_reads(block.terminator), None)
    for op in reversed(block.ops):
        written = writes(op)
        for slot, who in needed.items():
            if who is not None and who[0] in written:  # it is about another content of the guard
                needed[slot] = None
        who = None
        if op.guard is not None:
            read([op.guard.slot], None)
            who = op.guard.slot, op.negated
        elif op.kind in LANEWISE:
            users = {needed.get(slot) for slot in written}
            who = users.pop() if len(users) == 1 else None
            if who is not None:
                found[id(op)] = who
        if op.guard is None:
            for slot in written:
                needed.pop(slot, None)
        read([ref.slot for ref in op.src if ref is not None], who)
    return found


def _settled(block: Block, needs: dict[int, _Guard]) -> Block:
    """The block without reads of what the same block has written before under the same guard, or under that of the
    lanes which need the result."""
    known = set[tuple[int, int, bool]]()  # slots, and under which guard they have been written

    def settled(op: Op) -> Op:
        nonlocal known
        guard, written = op.guard, writes(op)
        who = needs.get(id(op)) if guard is None else (guard.slot, op.negated)
        held = frozenset[int]() if who is None else {s for s, g, n in known if (g, n) == who}
        if any(ref is not None and ref.slot in held for ref in op.src):
            op = replace(op, src=tuple(None if ref is not None and ref.slot in held else ref for ref in op.src))
        known = {one for one in known if one[1] not in written}
        if who is not None and who[0] not in written and (guard is not None or held):
            known |= {(slot, *who) for slot in written}
        return op

    ops, end = [settled(op) for op in block.ops], block.terminator
    return Block(ops, end if end.op is None else replace(end, op=settled(end.op)))


def _passed(program: Program) -> set[int]:
    """Slots that callers fill in the frames of callees."""
    found = set()
    for number, function in enumerate(program.functions):
        for op in _operations(program, number):
            found |= {slot - function.frame_bytes for slot in writes(op) if slot >= function.frame_bytes}
    return found


def _reached(program: Program, number: int, start: AbstractSet[int]) -> frozenset[int]:
    """Slots that values come to from some."""
    found = set(start)
    passing = [op for op in _operations(program, number) if op.kind in PASSES_ON]
    size = -1
    while len(found) != size:
        size = len(found)
        for op in passing:
            if not found.isdisjoint(reads(op)):
                found.update(writes(op))
    return frozenset(found)


def in_flight(program: Program) -> list[frozenset[Slot]]:
    """By function: slots of the registers of asynchronous tensor instructions."""
    found = []
    for number in range(len(program.functions)):
        slots = set[Slot]()
        for block in _blocks(program, number):
            op = block.terminator.op
            if op is not None and op.kind in IN_FLIGHT:
                written, read = registers_of(op)
                slots |= written | read
        found.append(frozenset(slots))
    return found


def registers_of(op: Op) -> tuple[frozenset[Slot], frozenset[Slot]]:
    """Slots that an asynchronous tensor instruction writes, and those that it only reads."""
    named = op.of(NamedOperands)
    written, read = set[Slot](), set[Slot]()
    for name in IN_FLIGHT[op.kind]:
        first, count = named.results.get(name, (0, 0))
        written |= {ref.slot for ref in op.dst[first : first + count] if ref is not None}
        first, count = named.sources.get(name, (0, 0))
        read |= {ref.slot for ref in op.src[first : first + count] if ref is not None}
    return frozenset(written), frozenset(read - written)


def touch_of(
    what: Op | Terminator, kind: str, slots: AbstractSet[Slot], function: int, left: Container[int] = ()
) -> Touch | None:
    """What an operation or an end does with some registers; None if nothing. left: those that who returns leaves
    behind (`results`)."""
    if not slots:
        return None
    guard = what.guard
    written: list[Slot] = []
    widths: list[int] = []
    if isinstance(what, Terminator):
        read = [ref.slot for ref in (what.guard, what.index) if ref is not None]
        read += [slot for slot in slots if slot in left] if kind == "ret" else []
    else:
        read = [ref.slot for ref in what.src if ref is not None]
        written = [ref.slot if ref is not None and ref.slot in slots else _OTHER for ref in what.dst]
        widths = [max(1, bits_of(type_) // 8) for type_ in what.dst_types]
    mine = tuple(slot for slot in dict.fromkeys(read) if slot in slots)
    decides = guard is not None and guard.slot in slots
    if not mine and not decides and all(slot == _OTHER for slot in written):
        return None
    deciding = guard.slot if decides and guard is not None else -1
    return Touch(kind, mine, tuple(written), tuple(widths), deciding, what.negated, function)


def _operations(program: Program, number: int) -> list[Op]:
    """Operations in the blocks of a function, and at their ends."""
    found = []
    for block in _blocks(program, number):
        found += block.ops
        if block.terminator.op is not None:
            found.append(block.terminator.op)
    return found


def _blocks(program: Program, number: int) -> list[Block]:
    functions: list[FunctionCode] = program.functions
    end = functions[number + 1].first if number + 1 < len(functions) else len(program.blocks)
    return program.blocks[functions[number].first : end]
