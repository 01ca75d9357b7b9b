"""Calls: direct, and through an address (9.7.13.5, 9.7.13.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.ir import Alias, Arguments, CallPrototype, CallTargets, Function, Instruction, Name, Operand, Variable
from ptxtools.ir.references import is_runtime_function
from ptxtools.isa import Opcode, resolve
from ptxtools.program.layout import Passed, Signature, is_unsized, signature, variable_alignment
from ptxtools.program.program import Op, Ref, Terminator

from .registry import Unsupported, lowers

if TYPE_CHECKING:
    from .function import FunctionLowering


class Written:
    """The parts of a call as written: results, target, arguments, prototype or target list."""

    __slots__ = ("arguments", "prototype", "results", "target")

    def __init__(self, instruction: Instruction) -> None:
        operands = list(instruction.operands)
        self.results: tuple[Operand, ...] = ()
        if operands and isinstance(operands[0], Arguments):
            self.results = operands.pop(0).items  # type: ignore[union-attr]
        target = operands.pop(0) if operands else None
        if not isinstance(target, Name):
            raise Unsupported("the callee is not a name")
        self.target: str = target.name
        self.arguments: tuple[Operand, ...] = ()
        if operands and isinstance(operands[0], Arguments):
            self.arguments = operands.pop(0).items  # type: ignore[union-attr]
        last = operands[0] if operands else None
        self.prototype = last.name if isinstance(last, Name) else ""


@lowers("call")
def call(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    written = Written(instruction)
    after = f.guarded_region(uniform=op.has("uni"))
    pointer = f.register(written.target)
    if pointer is None:
        _direct(f, written)
    elif isinstance(pointer, Ref):
        _indirect(f, written, pointer, uniform=op.has("uni"))
    else:
        raise Unsupported("the callee is a vector register")
    f.end_region(after)


def _direct(f: FunctionLowering, written: Written) -> None:
    symbol = f.names.lookup(written.target)
    if isinstance(symbol, Alias):
        symbol = f.names.lookup(symbol.target)
    if not isinstance(symbol, Function):
        raise Unsupported(f"'{written.target}' is not a function")
    if symbol.body is None:
        from .syscalls import system_call

        if not is_runtime_function(symbol.name):
            raise Unsupported(f"function '{symbol.name}' has no definition")
        system_call(f, written, symbol)
        return
    number = f.linker.number_of(symbol.name)
    _through_frames(f, written, signature(symbol), Terminator("call", callee=number))


def _indirect(f: FunctionLowering, written: Written, pointer: Ref, *, uniform: bool) -> None:
    symbol = f.names.lookup(written.prototype)
    callee: Function | CallPrototype | None = symbol if isinstance(symbol, CallPrototype) else None
    if isinstance(symbol, CallTargets):
        first = f.names.lookup(symbol.targets[0]) if symbol.targets else None
        callee = first if isinstance(first, Function) else None
    if callee is None:
        raise Unsupported("an indirect call requires a prototype or a list of targets")
    _through_frames(f, written, signature(callee), Terminator("call", index=pointer, uniform=uniform))


def _through_frames(f: FunctionLowering, written: Written, callee: Signature, terminator: Terminator) -> None:
    """Arguments into the callee's frame, the call, results out of it."""
    if len(written.arguments) != len(callee.params) or len(written.results) != len(callee.returns):
        raise Unsupported("the arguments do not fit the function")
    for operand, passed in zip(written.arguments, callee.params, strict=True):
        if passed.variable.vector > 1 and passed.storage:
            for part, slot in zip(_components(f, operand, passed), passed.slots, strict=True):
                _fit(f, f.beyond(slot, passed.storage), part)
        elif passed.storage:
            _fit(f, f.beyond(passed.slot, passed.storage), argument(f, operand, passed))
        else:
            _copy_memory(f, home_of(f, operand), passed, to_callee=True)
    terminator.other = f.new_label()
    following = terminator.other
    f.end(terminator)
    f.begin(following)
    for operand, passed in zip(written.results, callee.returns, strict=True):
        if passed.variable.vector > 1 and passed.storage:
            for part, slot in zip(_components(f, operand, passed), passed.slots, strict=True):
                _fit(f, part, f.beyond(slot, passed.storage))
        elif passed.storage:
            take_result(f, operand, passed, f.beyond(passed.slot, passed.storage))
        else:
            _copy_memory(f, home_of(f, operand), passed, to_callee=False)


def _components(f: FunctionLowering, operand: Operand, passed: Passed) -> tuple[Ref, ...]:
    """Those of the vector register that is passed as a whole, or that takes a result."""
    register = f.register(operand.name) if isinstance(operand, Name) else None
    if not isinstance(register, tuple) or len(register) != passed.variable.vector:
        raise Unsupported("a vector parameter requires a vector register of its length")
    return register


def take_result(f: FunctionLowering, operand: Operand, passed: Passed, result: Ref) -> None:
    """Move a scalar result to its destination."""
    home = _home_or_none(f, operand)
    if home is not None:
        f.ops.append(access("st", f"b{8 * passed.size}", f.stack_pointer, home, result, f.where))
        return
    target = _result(f, operand)
    if target is not None:
        _fit(f, target, result)


def _fit(f: FunctionLowering, target: Ref, source: Ref) -> None:
    if target.type != source.type:
        raise Unsupported("an argument's size differs from the parameter's")
    f.copy(target, source)


def argument(f: FunctionLowering, operand: Operand, passed: Passed) -> Ref:
    """Value of a scalar argument: a `.param` variable's, a register's or a constant's; the address of an array."""
    if isinstance(operand, Name):
        symbol = f.names.lookup(operand.name)
        if is_unsized(passed.variable):
            return f.array_addresses.get(id(symbol)) or _address_of(f, operand)
        value = f.passed.get(id(symbol))
        if value is not None:
            return value
        home = f.local_offsets.get(id(symbol))
        if home is not None:
            type_name = f"b{8 * passed.size}"
            value = f.new(passed.storage)
            f.ops.append(access("ld", type_name, f.stack_pointer, home, value, f.where))
            return value
    return f.source(operand, passed.variable.type)


def _address_of(f: FunctionLowering, operand: Operand) -> Ref:
    _, offset = home_of(f, operand)
    return f.compute("add.u64", ("u64", "u64"), (f.stack_pointer, f.constant(offset, "b64")), "u64")


def _result(f: FunctionLowering, operand: Operand) -> Ref | None:
    if isinstance(operand, Name):
        value = f.passed.get(id(f.names.lookup(operand.name)))
        if value is not None:
            return value
    return f.destination(operand)


def _home_or_none(f: FunctionLowering, operand: Operand) -> int | None:
    if isinstance(operand, Name):
        return f.local_offsets.get(id(f.names.lookup(operand.name)))
    return None


def home_of(f: FunctionLowering, operand: Operand) -> tuple[Variable, int]:
    """A `.param` array of this function and its offset in the local frame."""
    symbol = f.names.lookup(operand.name) if isinstance(operand, Name) else None
    offset = f.local_offsets.get(id(symbol))
    if offset is None or not isinstance(symbol, Variable):
        raise Unsupported("an array parameter requires an array argument")
    return symbol, offset


def _copy_memory(f: FunctionLowering, home: tuple[Variable, int], passed: Passed, *, to_callee: bool) -> None:
    """Copy an array between this function's local frame and the callee's, which begins where this one ends."""
    variable, offset = home
    step = min(8, variable_alignment(variable), variable_alignment(passed.variable))
    done = 0
    while done < passed.size:
        while step > passed.size - done:
            step //= 2
        value = f.new("b16" if step <= 2 else f"b{8 * step}")
        type_name = f"b{8 * step}"
        first = access("ld", type_name, f.stack_pointer, offset + done, value, f.where)
        second = access("st", type_name, f.stack_pointer, passed.offset + done, value, f.where)
        if not to_callee:
            first.imm, second.imm = second.imm, first.imm
        f.outgoing_local.append(second if to_callee else first)
        f.ops += (first, second)
        done += step


def access(family: str, type_name: str, base: Ref, offset: int, value: Ref, where: int) -> Op:
    op = Op(family, resolve(f"{family}.local.{type_name}"), imm=offset, space="local", where=where)
    if family == "ld":
        op.dst, op.dst_types, op.src, op.src_types = (value,), (type_name,), (base,), ("u64",)
    else:
        op.src, op.src_types = (base, value), ("u64", type_name)
    return op
