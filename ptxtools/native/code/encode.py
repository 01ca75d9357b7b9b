"""A `Program` as the native loop reads it: records, block and function tables, constants.

Block b of the program has number 2b here, so that numbers are ordered as in the program. Number 2b + 1 is a position
inside block b at which lanes may have to resume: after its barrier, or at its indirect call.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NewType, TypeAlias

from ptxtools.machine.launch import Launch, launch_value, widening
from ptxtools.native.loop.cells import Cell
from ptxtools.program.details import Action, Counted, HostMemory, MatrixProduct, Measured, SpecialRegister, ThreadCopy
from ptxtools.program.operations import LANE_ACCESS, OPERATIONS, weight
from ptxtools.program.program import (
    CALL_BYTES,
    Block,
    ByteOffset,
    FunctionCode,
    LaunchConstant,
    Op,
    Program,
    Ref,
    Slot,
    Terminator,
)  # fmt: skip
from ptxtools.records import dataclass, field, replace

from . import chains, library, runs, structures, tiers, unison
from .filling import array_of
from .keys import OPERANDS_PER_RECORD, RECORD_BYTES, key_of, name_of, operands_of, record_count

#: State spaces whose accesses have variants for kernels that may use host addresses.
_OPEN_SPACES = frozenset({"global", "const", "generic"})
#: The most bytes for the frames of one warp.
_MOST_FRAMES = 1 << 30

#: Handlers of a program that may take longer to compile, for they are needed most: with few CTAs, and with many.
_OFTEN = 8, 24

_RECORD, _FUNCTION, _CONSTANT = (s.packed() for s in (structures.RECORD, structures.FUNCTION, structures.CONSTANT))
_KINDS = {"pred": 1, "b16": 16, "b32": 32, "b64": 64, "b128": 128}


#: Number of a block, or of the place inside of one, as native code counts them.
BlockNumber = NewType("BlockNumber", int)
#: What stands in the words of a record for operands: a slot, a block, bytes from this record to another, a count.
Word: TypeAlias = Slot | BlockNumber | ByteOffset | int
#: A terminator's record: where it is, its handler, operands, constant.
_End: TypeAlias = tuple[int, str, Sequence[Word], int]


def _start(block: int) -> BlockNumber:
    """Number of a block of the program."""
    return BlockNumber(2 * block)


def _inside(block: int) -> BlockNumber:
    """Number of the position inside a block."""
    return BlockNumber(2 * block + 1)


@dataclass(slots=True)
class Encoded:
    """The tables of one program; they keep the memory that their addresses point to alive. where: index into
    `Program.lines` for each record; operations: the operation of each record; specials: names of special registers, in
    the order of the launch's table; cells: of events, by the identity of the operation; shapes: what launches of the
    same shape have in common; known: the constants of functions of which launches decide some, by their numbers, and of
    those the others, which are no bytes of parameters; key: of the program's cache."""

    program: Program
    code: ctypes.Array[ctypes.c_char]
    blocks: ctypes.Array[ctypes.c_int32]
    functions: ctypes.Array[ctypes.c_char]
    keep: list[object]
    where: list[int]
    operations: list[Op | Terminator | None]
    specials: list[str]
    calls: bool
    cells: dict[int, Cell]
    run: Callable[[int], int]
    regions: tiers.Regions
    whole: tiers.Regions  # the kernel in unison
    better: tiers.Regions  # handlers that were compiled quickly
    runs: tiers.Regions  # runs that are not compiled at all
    products: tiers.Regions  # matrix products that were compiled quickly
    unison: int  # address of its record, 0: there is none
    looks: list[Op]  # what regions over several blocks pass over
    bounded: bool = False  # observers may have something to say about those, but need not be told
    refuses: bool = False  # reads among them are not all of one sort
    filtered: bool = False  # the cells of observers' events have been filled
    shapes: dict[Hashable, Any] = field(default_factory=dict)
    known: dict[int, ConstantRows] | None = None
    others: list[LaunchConstant] | None = None
    key: str = ""

    @property
    def tiers(self) -> tuple[tiers.Regions, ...]:
        """All that is compiled once that pays."""
        return self.runs, self.products, self.regions, self.whole, self.better


def encode(
    program: Program,
    *,
    host: bool = False,
    everywhere: bool = False,
    regions: bool = False,
    numerics: str = "ieee",
    bounded: bool = False,
    events: bool = False,
) -> Encoded:
    """Encode a program, and compile the handlers that it needs. host: use variants that ask for host memory;
    everywhere: form runs outside of loops, too; regions: runs may access memory; numerics: how matrix products are
    added; bounded: looks at accesses are only for their bounds; events: native services of observers' events keep no
    account."""
    regions = regions and not host
    return _Encoder(program, host, everywhere, numerics, regions=regions, bounded=bounded, events=events).encode()


class _Encoder:
    def __init__(
        self,
        program: Program,
        host: bool,
        everywhere: bool,
        numerics: str,
        *,
        regions: bool = False,
        bounded: bool = False,
        events: bool = False,
    ) -> None:
        self.program, self.host, self.everywhere, self.numerics = program, host, everywhere, numerics
        self.regions, self.bounded, self.events = regions, bounded and regions, events
        self.chained: dict[int, chains.Chained] = {}
        self.names: dict[tuple[object, ...], str] = {}
        self.handlers: dict[str, Op] = {}
        self.later: dict[str, Op] = {}
        self.places: dict[str, list[int]] = {}
        self.quick: dict[str, list[int]] = {}  # records whose handlers were compiled quickly
        self.singly: dict[int, Sequence[Op]] = {}  # operations of each run, by its identity
        self.parted: dict[int, list[tuple[str, Op]]] = {}  # the same with the names of their handlers
        self.apart: dict[str, Op] = {}  # handlers that only those need
        self.detours: list[tuple[int, int, Op]] = []  # records of runs that are not there yet, and of their operations
        self.aside = 0  # where the next ones go
        self.specials: dict[str, int] = {}
        self.keep: list[object] = []
        self.cells: dict[int, Cell] = {}

    def encode(self) -> Encoded:
        program = self.program
        formed = runs.form_runs(program, everywhere=self.everywhere, regions=self.regions, singly=self.singly)
        chained = chains.form(program, formed, everywhere=self.everywhere) if self.bounded else []
        joined = chains.form(program, formed, everywhere=True, unison=True) if self.bounded else []
        for chain in chained:
            formed[chain.block].insert(chain.before, chain.region)
            self.chained[id(chain.region)] = chain
        bodies = [[self._named(op) for op in ops] for ops in formed]
        results = [self._result_of(block.terminator) for block in program.blocks]
        self.starts, self.ends = self._places(bodies, results)
        ends = [self._end(number, block, results[number]) for number, block in enumerate(program.blocks)]
        self.addresses, self.better = tiers.first_code(
            self.handlers, {name for _, name, _, _ in ends}, self._simple, lambda: self._often(bodies)
        )
        whole = None
        if self.regions:
            whole = unison.form(program, bodies, self.starts, chained=joined, events=self.events)
        copies = whole[1] if whole is not None else []
        self.aside = self.starts[-1] + sum(copy.size() for copy in copies) + (whole is not None)
        bodies_and_copies = [*bodies, *(copy.records for copy in copies)]
        total = self.aside + sum(self._room(op) for body in bodies_and_copies for name, op in body if self._lacks(name))
        self.code = ctypes.create_string_buffer(max(1, total) * RECORD_BYTES)
        self.where = [-1] * total
        self.operations: list[Op | Terminator | None] = [None] * total
        self.last = [
            at + sum(record_count(op) for _, op in body) for at, body in zip(self.starts, bodies, strict=False)
        ]
        for number, body in enumerate(bodies):
            self._body(self.starts[number], body)
            self._terminator(number, program.blocks[number], ends[number], results[number])
        at = self.starts[-1]
        for copy in copies:
            at = self._return(self._body(at, copy.records), copy)
        for start, place, op in self.detours:
            end = self._body(place, self.parted[id(op)])
            self._record(end, tiers.DETOUR, (), 0, RECORD_BYTES * (start + record_count(op) - end), 0, op.where)
        joint: dict[str, Op] = {}
        if whole is not None:
            joint[name_of(key_of(whole[0]))] = whole[0]
        pays = tiers.PAYS_IN_UNISON * sum(len(block.ops) for block in program.blocks)
        table = [RECORD_BYTES * at for pair in zip(self.starts, self.ends, strict=False) for at in pair]
        calls = any(block.terminator.kind == "call" for block in program.blocks)
        prototype = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
        return Encoded(
            program, self.code, (ctypes.c_int32 * len(table))(*table), self._functions(), self.keep, self.where,
            self.operations, list(self.specials), calls, self.cells,
            prototype(self.addresses[library.BASE]), tiers.Regions(self.code, self.later, self.places),
            tiers.Regions(self.code, joint, {name: [at] for name in joint}, pays),
            tiers.Regions(self.code, self.handlers if self.better else {}, self.quick, better=self.better),
            self._late_runs(), self._products(),
            ctypes.addressof(self.code) + RECORD_BYTES * at if joint else 0,
            [look for chain in (*chained, *(joined if whole else ())) for look in chain.looks],
        )  # fmt: skip

    def _return(self, at: int, copy: unison.Copy) -> int:
        """The record behind others that are called, with what those read of the branch that would be there."""
        words: list[BlockNumber | ByteOffset] = []
        guard = weighed = 0
        if copy.block >= 0:
            block = self.program.blocks[copy.block]
            end = block.terminator
            assert end.guard is not None
            words = [_start(end.target), ByteOffset(0), _start(end.other), ByteOffset(0)]
            guard, weighed = end.guard.slot | end.negated, weight(block, copy.block)
        self._record(at, "t_return", words, guard, weighed, 0, copy.records[-1][1].where)
        return at + 1

    def _late_runs(self) -> tiers.Regions:
        """The runs that take detours."""
        lacking = {name: op for name, op in self.handlers.items() if self._lacks(name)}
        detours = dict.fromkeys(lacking, self.addresses[tiers.DETOUR]) if lacking else {}
        source = library.quickly, library.quickly_at_hand
        return self._of_records(lacking, tiers.PAYS_QUICKLY, source, detours)

    def _products(self) -> tiers.Regions:
        """Matrix products that were compiled quickly."""
        quick = {
            name: op for name, op in self.handlers.items() if name in self.quick and OPERATIONS[op.kind].multiplies
        }
        source = library.products, library.products_at_hand
        return self._of_records(quick, tiers.PAYS_FOR_PRODUCTS, source, {name: self.addresses[name] for name in quick})

    def _of_records(
        self, ops: dict[str, Op], pays: int, source: tiers.Source, instead: dict[str, int]
    ) -> tiers.Regions:
        places = {name: self.quick[name] for name in ops}
        return tiers.Regions(self.code, ops, places, pays, source=source, instead=instead)

    # --- which handlers -----------------------------------------------------------------------------------------------

    def _named(self, op: Op, into: dict[str, Op] | None = None) -> tuple[str, Op]:
        into = self.handlers if into is None else into
        if self.host and op.kind in LANE_ACCESS and op.space in _OPEN_SPACES:
            op = replace(op, detail=HostMemory())
        elif isinstance(op.detail, MatrixProduct):
            op = replace(op, detail=MatrixProduct(op.detail.selector, self.numerics))
        elif isinstance(op.detail, ThreadCopy) and self.host:
            op = replace(op, detail=ThreadCopy(op.detail.size, op.detail.rule, host=True))
        common = _for_any_row(op)
        key = key_of(common)
        name = self.names.get(key)
        if name is None:
            name = self.names[key] = name_of(key)
            region = op.kind == "run" and bool(op.imm)
            (self.later if region else into)[name] = common
        return name, op

    def _simple(self) -> dict[str, Op]:
        """The handlers of a program whose runs are not compiled yet."""
        for number, ops in self.singly.items():
            self.parted[number] = [self._named(op, self.apart) for op in ops]
        return {name: op for name, op in self.handlers.items() if op.kind != "run"} | self.apart

    def _often(self, bodies: list[list[tuple[str, Op]]]) -> list[str]:
        """Handlers of what is in loops, or of all where many CTAs do it; the shortest loops first. Runs are done one
        operation after the other until they are compiled."""
        blocks = range(len(bodies)) if self.everywhere else ()
        found: dict[str, None] = {}
        for number in dict.fromkeys([*runs.loops(self.program.blocks), *blocks]):
            for name, op in bodies[number]:
                found.update((part, None) for part, _ in self.parted.get(id(op), [(name, op)]))
        return list(found)[: _OFTEN[self.everywhere]]

    def _lacks(self, name: str) -> bool:
        """Whether this is a run that is not compiled yet."""
        return name not in self.addresses and name in self.handlers

    def _room(self, run: Op) -> int:
        """Records of its operations, and of the way back."""
        return 1 + sum(map(record_count, self.singly[id(run)]))

    def _result_of(self, terminator: Terminator) -> tuple[str, Op] | None:
        """The operation after a barrier that reduces: it fetches the result."""
        op = terminator.op
        if terminator.kind != "barrier" or op is None or not op.dst:
            return None
        return self._named(replace(op, kind="barrier_result", opcode=None, src=op.src[:1], src_types=op.src_types[:1]))

    def _places(self, bodies: list[list[tuple[str, Op]]], results: list[tuple[str, Op] | None]) -> tuple[
        list[int], list[int]
    ]:  # fmt: skip
        """Number of the first record of each block (and of the end), and of the place that has number 2b + 1."""
        starts, ends = [0], []
        for number, (body, result) in enumerate(zip(bodies, results, strict=True)):
            end = starts[-1] + sum(record_count(op) for _, op in body)
            inside = self.program.blocks[number].terminator.kind == "barrier"
            ends.append(end + inside)
            starts.append(end + 1 + (record_count(result[1]) + 1 if result else 0))
        return starts, ends

    # --- records ------------------------------------------------------------------------------------------------------

    def _body(self, at: int, body: list[tuple[str, Op]]) -> int:
        for name, op in body:
            at = self._operation(at, name, op)
        return at

    def _operation(self, at: int, name: str, op: Op) -> int:
        slots: list[int] = [ref.slot for ref in operands_of(op)]
        guard = (op.guard.slot | op.negated) if op.guard is not None else 0
        imm = op.imm
        if op.kind == "sreg":
            imm = self.specials.setdefault(op.of(SpecialRegister).name, len(self.specials))
        self.operations[at] = op
        row = op.detail.row if isinstance(op.detail, Counted | Measured) else self._case(name)
        chain = self.chained.get(id(op))
        if chain is not None:
            slots, row = [Slot(n) for n in (0, 0, chain.cost, _start(chain.highest))], chain.weight
            imm = RECORD_BYTES * (self.last[chain.last] - at - 1)
        if self._lacks(name):
            row = RECORD_BYTES * (self.aside - at)
            self.detours.append((at, self.aside, op))
            self.aside += self._room(op)
        self._record(at, name, slots[:OPERANDS_PER_RECORD], guard, row, imm, op.where)
        for first in range(OPERANDS_PER_RECORD, len(slots), OPERANDS_PER_RECORD):
            at += 1
            self._record(at, None, slots[first : first + OPERANDS_PER_RECORD], 0, 0, 0, op.where)
        return at + 1

    def _case(self, name: str) -> int:
        """What `rec.extra` says to the handler, if it was compiled quickly."""
        return library.case_of(name) if self.better else 0

    def _record(
        self, at: int, name: str | None, words: Sequence[int], guard: int, extra: int, imm: int, where: int
    ) -> None:
        if name in self.later:
            self.places.setdefault(name, []).append(at)
            name = tiers.PASS
        elif name is not None and self.better and name not in self.apart:
            self.quick.setdefault(name, []).append(at)
            name = tiers.DETOUR if self._lacks(name) else name
        address = self.addresses[name] if name is not None else 0
        padded = [*words, *[0] * (OPERANDS_PER_RECORD - len(words))]
        _RECORD.pack_into(self.code, at * RECORD_BYTES, address, *padded, guard, extra, _signed(imm))
        self.where[at] = where

    def _distance(self, at: int, block: int) -> list[BlockNumber | ByteOffset]:
        """Number of a block, and bytes from a record to it; nothing for a block that is never reached."""
        if block < 0:
            return [BlockNumber(0), ByteOffset(0)]
        return [_start(block), ByteOffset((self.starts[block] - at) * RECORD_BYTES)]

    def _end(self, number: int, block: Block, result: tuple[str, Op] | None) -> _End:
        """The record of a terminator."""
        at = self.starts[number + 1] - 1
        if result is not None:
            at -= record_count(result[1]) + 1
        return at, *_WRITERS[block.terminator.kind](self, at, number, block.terminator)

    def _terminator(self, number: int, block: Block, record: _End, result: tuple[str, Op] | None) -> None:
        end = block.terminator
        at, name, slots, imm = record
        guard = (end.guard.slot | end.negated) if end.guard is not None else 0
        self.operations[at] = end
        self._record(
            at,
            name,
            slots,
            guard,
            weight(block, number),
            imm,
            end.where if end.op is None else max(end.where, end.op.where),
        )
        if result is not None:
            after = self._operation(at + 1, *result)
            self._record(after, "t_jump", self._distance(after, end.other), 0, 0, 0, end.where)

    def _jump(self, at: int, number: int, end: Terminator) -> tuple[str, Sequence[Word], int]:
        return "t_jump", self._distance(at, end.target), 0

    def _branch(self, at: int, number: int, end: Terminator) -> tuple[str, Sequence[Word], int]:
        return "t_branch", self._distance(at, end.target) + self._distance(at, end.other), 0

    def _switch(self, at: int, number: int, end: Terminator) -> tuple[str, Sequence[Word], int]:
        assert end.index is not None
        return "t_switch", [end.index.slot, len(end.targets)], self._table([_start(target) for target in end.targets])

    def _exit(self, at: int, number: int, end: Terminator) -> tuple[str, Sequence[Word], int]:
        return "t_exit" if end.guard is None else "t_exit_some", self._distance(at, end.other), 0

    def _ret(self, at: int, number: int, end: Terminator) -> tuple[str, Sequence[Word], int]:
        return "t_ret", self._distance(at, end.other), 0

    def _call(self, at: int, number: int, end: Terminator) -> tuple[str, Sequence[Word], int]:
        here = self._function_of(number)
        sizes = [here.frame_bytes, here.local_bytes, _start(end.other)]
        if end.callee >= 0:
            return "t_call", [end.callee, *sizes], 0
        assert end.index is not None
        table = self._table(list(end.targets))
        return "t_call_indirect", [end.index.slot, *sizes, len(end.targets), _inside(number)], table

    def _barrier(self, at: int, number: int, end: Terminator) -> tuple[str, Sequence[Word], int]:
        op = end.op
        assert op is not None
        if op.kind == "cluster_barrier":
            return f"t_cluster_{op.of(Action).name}", self._distance(at, end.other), 0
        identity, count, predicate = (*op.src, None, None)[:3]
        place = [_inside(number), RECORD_BYTES] if op.dst else self._distance(at, end.other)
        slots = [ref.slot if ref is not None else 0 for ref in (identity, count, predicate)]
        return f"t_bar_{op.of(Action).name}{'_n' if count is not None else ''}", slots + place, 0

    def _trap(self, at: int, number: int, end: Terminator) -> tuple[str, Sequence[Word], int]:
        return "t_trap", self._distance(at, end.other), structures.TRAP_INSTRUCTION

    def _brkpt(self, at: int, number: int, end: Terminator) -> tuple[str, Sequence[Word], int]:
        return "t_jump", self._distance(at, end.other), 0

    def _warpsync(self, at: int, number: int, end: Terminator) -> tuple[str, Sequence[Word], int]:
        assert end.index is not None
        return "t_warpsync", [end.index.slot, *self._distance(at, end.other), _start(number)], 0

    def _event(self, at: int, number: int, end: Terminator) -> tuple[str, Sequence[Word], int]:
        assert end.op is not None
        cell = self.cells.setdefault(id(end.op), Cell())
        return "t_event", [*self._distance(at, end.other), _inside(number)], cell.address

    # --- tables -------------------------------------------------------------------------------------------------------

    def _table(self, entries: list[int]) -> int:
        table = (ctypes.c_int32 * max(1, len(entries)))(*entries)
        self.keep.append(table)
        return ctypes.addressof(table)

    def _function_of(self, block: int) -> FunctionCode:
        return max((f for f in self.program.functions if f.first <= block), key=lambda f: f.first)

    def _functions(self) -> ctypes.Array[ctypes.c_char]:
        rows = ctypes.create_string_buffer(_FUNCTION.size * len(self.program.functions))
        for number, function in enumerate(self.program.functions):
            table = constant_table(constant_rows(function.constants))
            self.keep.append(table)
            _FUNCTION.pack_into(
                rows, number * _FUNCTION.size, _start(function.first), function.frame_bytes,
                function.local_bytes, len(function.constants), ctypes.addressof(table),
            )  # fmt: skip
        return rows


_WRITERS: dict[str, Callable[[_Encoder, int, int, Terminator], tuple[str, Sequence[Word], int]]] = {
    kind: getattr(_Encoder, "_" + kind)
    for kind in ("jump", "branch", "switch", "exit", "ret", "call", "barrier", "trap", "brkpt", "warpsync", "event")
}


def _for_any_row(op: Op) -> Op:
    """The operation without its row of counters, which the record has: handlers serve all rows."""
    detail = op.detail
    if isinstance(detail, Counted):
        return replace(op, detail=Counted(detail.what, 0))
    if isinstance(detail, Measured):
        return replace(op, detail=Measured(detail.space, detail.size, detail.lanes, detail.writes, 0))
    return op


def constant_rows(constants: Iterable[tuple[Slot, str, int]]) -> bytes:
    """Rows of (slot, kind, value), as the native code fills a frame with them."""
    return b"".join(
        _CONSTANT.pack(slot, _KINDS[storage], _signed(value), _signed(value >> 64) if value >> 64 else 0)
        for slot, storage, value in constants
    )


def constant_table(rows: bytes | bytearray) -> ctypes.Array[ctypes.c_char]:
    """The rows in memory of their own."""
    rows = rows or bytes(_CONSTANT.size)
    return array_of(ctypes.c_char, len(rows)).from_buffer_copy(rows)


class ConstantRows:
    """All constants of a function's frames: of those that each launch decides, most are bytes of its parameters."""

    def __init__(self, function: FunctionCode) -> None:
        rows = bytearray(constant_rows(function.constants))
        self.moves: list[tuple[slice, slice]] = []  # places in rows, and in the parameters
        self.others: list[tuple[int, LaunchConstant]] = []
        self.needed = 0  # bytes of parameters
        for one in function.launch_constants:
            size, signed, most = widening(one.name, one.storage) if one.source == "param" else (0, False, 0)
            bits, at = most.bit_length(), len(rows) + structures.CONSTANT.offset("low")
            if size and (8 * size == bits or (8 * size < bits and not signed)):
                self.moves.append((slice(at, at + size), slice(one.offset, one.offset + size)))
                self.needed = max(self.needed, one.offset + size)
            else:
                self.others.append((len(rows), one))
            rows += constant_rows([(one.slot, one.storage, 0)])
        self.rows, self.count = bytes(rows), len(function.constants) + len(function.launch_constants)

    def table(self, launch: Launch) -> ctypes.Array[ctypes.c_char]:
        """Those of a launch."""
        rows, params = bytearray(self.rows), launch.params.ljust(self.needed, b"\0")
        for place, source in self.moves:
            rows[place] = params[source]
        for at, one in self.others:
            rows[at : at + _CONSTANT.size] = constant_rows([(one.slot, one.storage, launch_value(launch, one))])
        return constant_table(rows)


def set_constants(rows: ctypes.Array[ctypes.c_char], number: int, table: object, count: int) -> None:
    """Let a row of a function table refer to other constants."""
    at = number * _FUNCTION.size
    first, frame, local, _, _ = _FUNCTION.unpack_from(rows, at)
    _FUNCTION.pack_into(rows, at, first, frame, local, count, ctypes.addressof(table))  # type: ignore[arg-type]


def _signed(value: int) -> int:
    """Any 64-bit pattern as the number that the record's field takes."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def frame_area(program: Program, local: int) -> int:
    """Bytes for the frames of a warp: the longest chain of calls; where that is open, as many frames as `local` bytes
    of local memory have room for."""
    first = program.functions[0].frame_bytes
    if program.max_frames:
        return max(program.frame_bytes, first)
    others = program.functions[1:] or program.functions
    frames = max(0, local - program.functions[0].local_bytes) // max(CALL_BYTES, min(f.local_bytes for f in others))
    return min(first + frames * max(f.frame_bytes for f in others), _MOST_FRAMES)


__all__ = ["ConstantRows", "Encoded", "Ref", "constant_table", "encode", "frame_area", "set_constants"]
