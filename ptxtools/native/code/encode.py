"""A `Program` as the native loop reads it: records, block and function tables, constants.

Block b of the program has number 2b here, so that numbers order like the program's. Number 2b + 1 stands for a place
inside block b where lanes may have to go on: behind its barrier, or at its indirect call.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace

from ptxtools.native.loop.cells import Cell
from ptxtools.program.details import Action, HostMemory, MatrixProduct, SpecialRegister, ThreadCopy
from ptxtools.program.layout import CALL_BYTES
from ptxtools.program.operations import LANE_ACCESS
from ptxtools.program.program import Block, FunctionCode, Op, Program, Ref, Terminator

from . import library, runs, structures
from .keys import OPERANDS_PER_RECORD, RECORD_BYTES, key_of, name_of, operands_of, record_count

#: Spaces of accesses that have variants for kernels which may use host addresses.
_OPEN_SPACES = frozenset({"global", "const", "generic"})
#: Most bytes that the frames of one warp may take.
_MOST_FRAMES = 1 << 30

_RECORD = struct.Struct("<Q10iIiq")
_FUNCTION = struct.Struct("<4iQ40x")
_CONSTANT = struct.Struct("<iiQQ8x")
_KINDS = {"pred": 1, "b16": 16, "b32": 32, "b64": 64, "b128": 128}
assert _RECORD.size == RECORD_BYTES
assert _FUNCTION.size == structures.FUNCTION.size
assert _CONSTANT.size == structures.CONSTANT.size


@dataclass(slots=True)
class Encoded:
    """The tables of one program; what their addresses point to lives as long as this does.

    where: index into `Program.lines` for each record; operations: what each record was made of;
    specials: names of special registers, by their place in the launch's table;
    cells: those of events, by the identity of the operation.
    """

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


def encode(program: Program, *, host: bool = False, everywhere: bool = False, numerics: str = "ieee") -> Encoded:
    """Encode a program, compiling what handlers it needs. host: variants that ask for host memory; everywhere: make
    one handler of neighbouring operations outside of loops, too; numerics: how matrix products are added."""
    return _Encoder(program, host, everywhere, numerics).encode()


class _Encoder:
    def __init__(self, program: Program, host: bool, everywhere: bool, numerics: str) -> None:
        self.program, self.host, self.everywhere, self.numerics = program, host, everywhere, numerics
        self.names: dict[tuple[object, ...], str] = {}
        self.handlers: dict[str, Op] = {}
        self.specials: dict[str, int] = {}
        self.keep: list[object] = []
        self.cells: dict[int, Cell] = {}

    def encode(self) -> Encoded:
        program = self.program
        bodies = [[self._named(op) for op in ops] for ops in runs.form_runs(program, everywhere=self.everywhere)]
        results = [self._result_of(block.terminator) for block in program.blocks]
        self.addresses = library.addresses(self.handlers)
        self.starts, self.ends = self._places(bodies, results)
        total = self.starts[-1]
        self.code = ctypes.create_string_buffer(max(1, total) * RECORD_BYTES)
        self.where = [-1] * total
        self.operations: list[Op | Terminator | None] = [None] * total
        for number, body in enumerate(bodies):
            self._body(self.starts[number], body)
            self._terminator(number, program.blocks[number], results[number])
        table = [RECORD_BYTES * at for pair in zip(self.starts, self.ends, strict=False) for at in pair]
        calls = any(block.terminator.kind == "call" for block in program.blocks)
        prototype = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
        return Encoded(
            program, self.code, (ctypes.c_int32 * len(table))(*table), self._functions(), self.keep, self.where,
            self.operations, list(self.specials), calls, self.cells,
            prototype(self.addresses[library.BASE]),
        )  # fmt: skip

    # --- which handlers -----------------------------------------------------------------------------------------------

    def _named(self, op: Op) -> tuple[str, Op]:
        if self.host and op.kind in LANE_ACCESS and op.space in _OPEN_SPACES:
            op = replace(op, detail=HostMemory())
        elif isinstance(op.detail, MatrixProduct):
            op = replace(op, detail=MatrixProduct(op.detail.selector, self.numerics))
        elif isinstance(op.detail, ThreadCopy) and self.host:
            op = replace(op, detail=ThreadCopy(op.detail.size, op.detail.rule, host=True))
        key = key_of(op)
        name = self.names.get(key)
        if name is None:
            name = self.names[key] = name_of(key)
            self.handlers[name] = op
        return name, op

    def _result_of(self, terminator: Terminator) -> tuple[str, Op] | None:
        """What runs behind a barrier that reduces: a record that fetches the result."""
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
        slots = [ref.slot for ref in operands_of(op)]
        guard = (op.guard.slot | op.negated) if op.guard is not None else 0
        imm = op.imm
        if op.kind == "sreg":
            imm = self.specials.setdefault(op.of(SpecialRegister).name, len(self.specials))
        self.operations[at] = op
        self._record(at, name, slots[:OPERANDS_PER_RECORD], guard, 0, imm, op.where)
        for first in range(OPERANDS_PER_RECORD, len(slots), OPERANDS_PER_RECORD):
            at += 1
            self._record(at, None, slots[first : first + OPERANDS_PER_RECORD], 0, 0, 0, op.where)
        return at + 1

    def _record(
        self, at: int, name: str | None, slots: list[int], guard: int, extra: int, imm: int, where: int
    ) -> None:
        address = self.addresses[name] if name is not None else 0
        padded = slots + [0] * (OPERANDS_PER_RECORD - len(slots))
        _RECORD.pack_into(self.code, at * RECORD_BYTES, address, *padded, guard, extra, _signed(imm))
        self.where[at] = where

    def _distance(self, at: int, block: int) -> list[int]:
        """Number of a block, and bytes from a record to it; nothing for a block that is never reached."""
        return [2 * block, (self.starts[block] - at) * RECORD_BYTES] if block >= 0 else [0, 0]

    def _terminator(self, number: int, block: Block, result: tuple[str, Op] | None) -> None:
        end = block.terminator
        at = self.starts[number + 1] - 1
        if result is not None:
            at -= record_count(result[1]) + 1
        weight = len(block.ops) + (end.kind != "jump" or end.target <= number)
        guard = (end.guard.slot | end.negated) if end.guard is not None else 0
        name, slots, imm = _WRITERS[end.kind](self, at, number, end)
        self.operations[at] = end
        self._record(at, name, slots, guard, weight, imm, end.where if end.op is None else max(end.where, end.op.where))
        if result is not None:
            after = self._operation(at + 1, *result)
            self._record(after, "t_jump", self._distance(after, end.other), 0, 0, 0, end.where)

    def _jump(self, at: int, number: int, end: Terminator) -> tuple[str, list[int], int]:
        return "t_jump", self._distance(at, end.target), 0

    def _branch(self, at: int, number: int, end: Terminator) -> tuple[str, list[int], int]:
        return "t_branch", self._distance(at, end.target) + self._distance(at, end.other), 0

    def _switch(self, at: int, number: int, end: Terminator) -> tuple[str, list[int], int]:
        assert end.index is not None
        return "t_switch", [end.index.slot, len(end.targets)], self._table([2 * t for t in end.targets])

    def _exit(self, at: int, number: int, end: Terminator) -> tuple[str, list[int], int]:
        return "t_exit" if end.guard is None else "t_exit_some", self._distance(at, end.other), 0

    def _ret(self, at: int, number: int, end: Terminator) -> tuple[str, list[int], int]:
        return "t_ret", self._distance(at, end.other), 0

    def _call(self, at: int, number: int, end: Terminator) -> tuple[str, list[int], int]:
        here = self._function_of(number)
        sizes = [here.frame_bytes, here.local_bytes, 2 * end.other]
        if end.callee >= 0:
            return "t_call", [end.callee, *sizes], 0
        assert end.index is not None
        table = self._table(list(end.targets))
        return "t_call_indirect", [end.index.slot, *sizes, len(end.targets), 2 * number + 1], table

    def _barrier(self, at: int, number: int, end: Terminator) -> tuple[str, list[int], int]:
        op = end.op
        assert op is not None
        if op.kind == "cluster_barrier":
            return f"t_cluster_{op.of(Action).name}", self._distance(at, end.other), 0
        identity, count, predicate = (*op.src, None, None)[:3]
        place = [2 * number + 1, RECORD_BYTES] if op.dst else self._distance(at, end.other)
        slots = [ref.slot if ref is not None else 0 for ref in (identity, count, predicate)]
        return f"t_bar_{op.of(Action).name}{'_n' if count is not None else ''}", slots + place, 0

    def _trap(self, at: int, number: int, end: Terminator) -> tuple[str, list[int], int]:
        return "t_trap", self._distance(at, end.other), structures.TRAP_INSTRUCTION

    def _brkpt(self, at: int, number: int, end: Terminator) -> tuple[str, list[int], int]:
        return "t_jump", self._distance(at, end.other), 0

    def _warpsync(self, at: int, number: int, end: Terminator) -> tuple[str, list[int], int]:
        assert end.index is not None
        return "t_warpsync", [end.index.slot, *self._distance(at, end.other), 2 * number], 0

    def _event(self, at: int, number: int, end: Terminator) -> tuple[str, list[int], int]:
        assert end.op is not None
        cell = self.cells.setdefault(id(end.op), Cell())
        return "t_event", [*self._distance(at, end.other), 2 * number + 1], cell.address

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
            table = constant_table(function.constants)
            self.keep.append(table)
            _FUNCTION.pack_into(
                rows, number * _FUNCTION.size, 2 * function.first, function.frame_bytes,
                function.local_bytes, len(function.constants), ctypes.addressof(table),
            )  # fmt: skip
        return rows


_WRITERS: dict[str, Callable[[_Encoder, int, int, Terminator], tuple[str, list[int], int]]] = {
    kind: getattr(_Encoder, "_" + kind)
    for kind in ("jump", "branch", "switch", "exit", "ret", "call", "barrier", "trap", "brkpt", "warpsync", "event")
}


def constant_table(constants: list[tuple[int, str, int]]) -> ctypes.Array[ctypes.c_char]:
    """Rows of (slot, kind, value), as the native code fills a frame with them."""
    table = ctypes.create_string_buffer(_CONSTANT.size * max(1, len(constants)))
    for number, (slot, storage, value) in enumerate(constants):
        low, high = value & (1 << 64) - 1, value >> 64 & (1 << 64) - 1
        _CONSTANT.pack_into(table, number * _CONSTANT.size, slot, _KINDS[storage], low, high)
    return table


def set_constants(rows: ctypes.Array[ctypes.c_char], number: int, table: object, count: int) -> None:
    """Point a row of a function table to other constants."""
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


__all__ = ["Encoded", "Ref", "constant_table", "encode", "frame_area", "set_constants"]
