"""Lowering of one function: blocks of operations over numbered values, guards, labels and lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ptxtools.diagnostics import Diagnostic
from ptxtools.ir import Function, Instruction, Variable
from ptxtools.ir.cfg import ControlFlow, scopes_of
from ptxtools.ir.symbols import Names
from ptxtools.isa import Opcode, OpcodeError, resolve
from ptxtools.isa.registers import lookup as special_register
from ptxtools.isa.types import TYPES
from ptxtools.program.details import Guard, SpecialRegister
from ptxtools.program.layout import (
    LOCAL_ALIGNMENT,
    LOCAL_GAP,
    RESERVED_OFFSETS,
    RESERVED_REGISTERS,
    Signature,
    align_up,
    signature,
    storage_of,
    variable_alignment,
    variable_size,
)
from ptxtools.program.program import (
    CALL_BYTES,
    FRAME_HEADER,
    Block,
    ByteOffset,
    Op,
    Ref,
    Terminator,
    is_launch_special,
)

from .counting import count
from .registry import Unsupported, lowerer_of
from .settle import Placed, settled
from .values import Pointer, Values

if TYPE_CHECKING:
    from .link import Linker


class FunctionLowering(Values):
    """State while one function is lowered. Labels are numbers: those below len(flow.blocks) are the basic blocks'."""

    def __init__(self, linker: Linker, flow: ControlFlow) -> None:
        super().__init__(linker.addresses, linker.code, linker.shared, linker.statics)
        self.linker = linker
        self.flow = flow
        self.function: Function = flow.function
        self.optimise = linker.variant.optimised
        self.entry = self.function.kind == "entry"
        self.blocks: list[Block] = []
        self.ops: list[Op] = []
        self.labels = len(flow.blocks)
        self.where = -1
        self.guard: Ref | None = None
        self.negated = False
        self.carry: Ref | None = None
        self.saved_stack: Ref | None = None  # the stack's end when the function was entered
        self.synchronised: set[int] = set()  # constant member masks that the current block has waited for
        self.places: dict[int, int] = {}  # label -> block
        self.signature: Signature = signature(self.function)
        self.passed: dict[int, Ref] = {}  # identity of a scalar .param variable -> its value
        self.slot_start = FRAME_HEADER
        self.local_bytes = 0
        self.local_variables: list[tuple[str, int, int]] = []
        self.register_bytes = 0  # slots of variables; known in the end
        self.outgoing_local: list[Op] = []  # their offset counts from the end of this function's local frame
        self.counted: list[Op] | None = None  # the block whose beginning is counted, for `Variant.counts`
        self.problems: list[Diagnostic] = []
        self.scopes: dict[int, Names] = {}  # by line: what names mean there, for `Variant.names`
        self.owners: dict[int, int] = {}  # where slots are shared: value -> register
        self.live: dict[int, set[int]] = {}  # and by line the values of registers that are needed there

    # --- the function as a whole --------------------------------------------------------------------------------------

    def run(self) -> None:
        """Lower the body; problems are collected."""
        from .params import lay_out_parameters, prologue
        from .stack import enter

        lay_out_parameters(self)
        self._lay_out_locals()
        count = len(self.flow.blocks)
        for block in self.flow.blocks:
            self.begin(block.index)
            if block.index == 0:
                prologue(self)
                enter(self)
            placed: Sequence[Placed] = list(zip(block.instructions, block.scopes, strict=True))
            for instruction, names in settled(placed) if self.linker.variant.late else placed:
                self._instruction(instruction, names)
            if self.open:
                if block.index + 1 < count:
                    self.end(Terminator("jump", target=block.index + 1))
                else:
                    self.leave()
        self._resolve_labels()

    def _lay_out_locals(self) -> None:
        offset = self.signature.memory_end if not self.entry else 0
        offset = max(offset, self.local_bytes)
        align = LOCAL_ALIGNMENT
        gap = LOCAL_GAP if self.linker.variant.apart else 0
        for scope in scopes_of(self.function):
            for item in scope.items:
                if isinstance(item, Variable) and item.space == "local":
                    offset = align_up(offset + (gap if not self.local_variables else 0), variable_alignment(item))
                    align = max(align, variable_alignment(item))
                    self.local_offsets[id(item)] = ByteOffset(offset)
                    if gap:
                        self.local_variables.append((item.name, offset, variable_size(item)))
                    offset += variable_size(item) + gap
        self.local_bytes = align_up(offset + (0 if self.entry else CALL_BYTES), align)

    def _instruction(self, instruction: Instruction, names: Names) -> None:
        if not self.open:
            self.begin(self.new_label())
        self.enter(names)
        self.where = self.linker.line(instruction)
        if self.linker.variant.names:
            self.scopes[self.where] = names
        try:
            guard = instruction.guard
            if guard is None:
                self.guard, self.negated = None, False
            else:
                ref = self.register(guard.name)
                if not isinstance(ref, Ref):
                    raise Unsupported(f"guard '{guard.name}' is not a predicate register")
                self.guard, self.negated = ref, guard.negated
            op = self.linker.read(instruction.opcode)
            if self.linker.variant.counts:
                count(self)
            if self.linker.variant.lines:
                self._marked(instruction, op)
            else:
                lowerer_of(op)(self, instruction, op)
        except Unsupported as problem:
            self.problem(instruction, str(problem))
        except OpcodeError as problem:
            self.problem(instruction, str(problem))

    def _marked(self, instruction: Instruction, op: Opcode) -> None:
        """An instruction between operations that say where it begins and ends. One that leaves its place ends first."""
        where = self.where
        mark = Op("line", op, detail=Guard(self.negated), guard=self.guard, negated=self.negated, where=where)
        end = Op("line.end", op, detail=Guard(False), where=where)
        leaves = op.family in _LEAVING
        self.ops += (mark, end) if leaves else (mark,)
        lowerer_of(op)(self, instruction, op)
        if self.open and not leaves:
            self.ops.append(end)

    def problem(self, instruction: Instruction, reason: str) -> None:
        message = f"cannot run '{instruction.opcode}': {reason}"
        self.problems.append(Diagnostic("PTX901", message, instruction.span, self.linker.module.source))

    def _resolve_labels(self) -> None:
        places = self.places
        for block in self.blocks:
            end = block.terminator
            if end.target >= 0:
                end.target = places[end.target]
            if end.other >= 0:
                end.other = places[end.other]
            if end.targets and end.kind == "switch":
                end.targets = tuple(places[t] for t in end.targets)

    # --- blocks -------------------------------------------------------------------------------------------------------

    @property
    def open(self) -> bool:
        """Whether a block is under construction."""
        return self.ops is not _CLOSED

    def new_label(self) -> int:
        self.labels += 1
        return self.labels - 1

    def begin(self, label: int) -> None:
        """Start the block of a label."""
        self.places[label] = len(self.blocks)
        block = Block()
        self.blocks.append(block)
        self.ops = block.ops
        self.synchronised.clear()

    def end(self, terminator: Terminator) -> None:
        """Close the block."""
        terminator.where = self.where
        self.blocks[-1].terminator = terminator
        self.ops = _CLOSED

    def leave(self) -> None:
        """End of the body: `ret`."""
        from .params import epilogue
        from .stack import leave as release_stack

        self.guard, self.negated = None, False
        epilogue(self)
        release_stack(self)
        self.end(Terminator("exit" if self.entry else "ret"))

    def guarded_region(self, *, uniform: bool = False) -> int | None:
        """For an instruction that cannot be guarded itself: only lanes whose guard holds enter the next block. uniform:
        it says that lanes do so together.

        Returns the label for the other lanes, for `end_region`; None without a guard.
        """
        if self.guard is None:
            return None
        inside, after = self.new_label(), self.new_label()
        self.end(Terminator("branch", self.guard, self.negated, inside, after, uniform=uniform))
        self.guard, self.negated = None, False
        self.begin(inside)
        return after

    def end_region(self, after: int | None) -> None:
        if after is not None:
            self.end(Terminator("jump", target=after))
            self.begin(after)

    def synchronise(self, mask: Ref) -> None:
        """Synchronise the lanes of a warp in `mask` (bar.warp.sync, and the .sync warp operations)."""
        if mask.slot in self.synchronised:
            return
        meeting, after = self.new_label(), self.new_label()
        self.end(Terminator("jump", target=meeting))
        self.begin(meeting)
        self.end(Terminator("warpsync", index=mask, other=after))
        self.begin(after)
        if mask.slot in self.constants:
            self.synchronised.add(mask.slot)

    def event(self, op: Op) -> None:
        """Have an operation served by a function (`machine.events`): lanes leave the engine and may wait there.

        The operation has no guard: call this inside `guarded_region`, in which its operands were made too.
        """
        op.where = self.where
        stop, after = self.new_label(), self.new_label()
        self.end(Terminator("jump", target=stop))
        self.begin(stop)
        self.end(Terminator("event", op=op, other=after))
        self.begin(after)

    # --- operations ---------------------------------------------------------------------------------------------------

    def emit(self, op: Op) -> None:
        """Append an operation under the instruction's guard."""
        op.where = self.where
        op.guard, op.negated = self.guard, self.negated
        self.ops.append(op)

    def compute(
        self, text: str, type_names: tuple[str, ...], sources: tuple[Ref, ...], result: str, storage: str | None = None
    ) -> Ref:
        """An unguarded operation that lowering makes up: opcode `text` over `sources`, into a new value."""
        ref = self.new(storage or storage_of(result))
        op = Op("alu", resolve(text), (ref,), sources, (result,), type_names, where=self.where)
        self.ops.append(op)
        return ref

    def copy(self, target: Ref, source: Ref) -> None:
        """target = source, under the instruction's guard."""
        self.emit(Op("copy", None, (target,), (source,), (target.type,), (source.type,)))

    def inverse(self, predicate: Ref) -> Ref:
        return self.compute("not.pred", ("pred",), (predicate,), "pred")

    def special(self, name: str, type_name: str | None) -> Ref:
        """Value of a special register, as a new value of its own type, or its lower bits where a shorter one is asked
        for (10.1, 10.10)."""
        register = special_register(name)
        if register is None:
            raise Unsupported(f"'{name}' is neither declared nor a special register")
        bits, own = (TYPES[type_name].bits if type_name else 0), TYPES[register.type].bits
        if 1 < bits < own:
            whole = self.special(name, register.type)
            return self.compute(f"cvt.u{bits}.u{own}", (f"u{own}",), (whole,), f"u{bits}")
        if name == "%perctamemoryoffset":
            return self._cta_memory()
        storage = storage_of(type_name or register.type)
        if name.startswith(RESERVED_REGISTERS):
            return self.constant(RESERVED_OFFSETS[name.removeprefix(RESERVED_REGISTERS)], storage)
        if register.component == "w":  # the fourth element of every vector is zero
            return self.constant(0, storage)
        if register.component:
            name = f"{register.register.name}.{register.component}"
        if self.optimise and is_launch_special(name) and storage == "b32":
            return self.launch_constant("sreg", name, 0, storage)
        ref = self.new(storage)
        kind = type_name or register.type
        self.ops.append(Op("sreg", None, (ref,), (), (kind,), (), detail=SpecialRegister(name), where=self.where))
        return ref

    def _cta_memory(self) -> Ref:
        """Address of the CTA's own global memory: slices of %perctamemorysize bytes lie one behind the other, in the
        order of the CTAs (10.34, 10.35)."""
        kinds = ("u32", "u32", "u32")
        number = self.special("%ctaid.z", "u32")
        for axis in "yx":
            number = self.compute(
                "mad.lo.u32",
                kinds,
                (number, self.special(f"%nctaid.{axis}", "u32"), self.special(f"%ctaid.{axis}", "u32")),
                "u32",
            )
        first = self.new("b64")
        detail = SpecialRegister("%cta_memory")
        self.ops.append(Op("sreg", None, (first,), (), ("u64",), (), detail=detail, where=self.where))
        size = self.special("%perctamemorysize", "u32")
        return self.compute("mad.wide.u32", ("u32", "u32", "u64"), (number, size, first), "u64")

    def address_value(self, pointer: Pointer, type_name: str | None) -> Ref:
        """An address as a value of a type's width; addresses in local memory are computed."""
        storage = storage_of(type_name) if type_name else "b64"
        if pointer.base is None:
            return self.constant(pointer.offset, storage)
        if pointer.offset == 0 and storage == "b64":
            return pointer.base
        offset = self.constant(pointer.offset, "b64")
        whole = (
            self.compute("add.u64", ("u64", "u64"), (pointer.base, offset), "u64") if pointer.offset else pointer.base
        )
        return whole if storage == "b64" else self.compute("cvt.u32.u64", ("u64",), (whole,), "u32")

    def indexed(self, pointer: Pointer, register: str, size: int) -> Pointer:
        """The pointer + the register's value * size: `table[r]` (6.4.2)."""
        index = self.register(register)
        if not isinstance(index, Ref):
            raise Unsupported(f"index '{register}' is not a register")
        if index.type != "b64":
            index = self.compute("cvt.u64.u32", ("u32",), (index,), "u64")
        scaled = self.compute("mul.lo.u64", ("u64", "u64"), (index, self.constant(size, "b64")), "u64")
        if pointer.base is not None:
            scaled = self.compute("add.u64", ("u64", "u64"), (pointer.base, scaled), "u64")
        return Pointer(scaled, pointer.offset, pointer.space)

    @property
    def clustered(self) -> bool:
        return self.linker.clustered

    def cta_window(self) -> Ref:
        """Address of the CTA's shared memory in the shared window, in a program that knows of clusters."""
        ref = self.new("b64")
        self.ops.append(
            Op("sreg", None, (ref,), (), ("u64",), (), detail=SpecialRegister("%cta_window"), where=self.where)
        )
        return ref

    def carry_flag(self) -> Ref:
        """CC.CF of the extended-precision instructions (9.7.2)."""
        if self.carry is None:
            self.carry = self.new("pred")
        return self.carry


_CLOSED: list[Op] = []
#: Families of instructions behind which lanes are elsewhere.
_LEAVING = frozenset({"bra", "brx", "call", "ret", "exit"})
