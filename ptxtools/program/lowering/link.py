"""Lower a kernel and everything reachable from it, and link them into a `Program`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from ptxtools.diagnostics import Diagnostic, PtxError
from ptxtools.ir import (
    Alias,
    Arguments,
    Element,
    Function,
    Instruction,
    Module,
    Name,
    SymbolOffset,
    Variable,
)  # fmt: skip
from ptxtools.ir.cfg import ControlFlow, control_flow, scopes_of
from ptxtools.ir.references import initializer_names, is_runtime_function
from ptxtools.ir.statics import statics_of
from ptxtools.ir.symbols import Names, module_names
from ptxtools.ir.text import instruction_text
from ptxtools.isa.implied import reader_for
from ptxtools.program.layout import (
    RESERVED,
    RESERVED_REGISTERS,
    SharedLayout,
    function_addresses,
    shared_layout,
    variable_size,
)
from ptxtools.program.passes.frames import unify
from ptxtools.program.program import SLOT_BYTES, Block, ByteOffset, Counter, FunctionCode, Program
from ptxtools.program.variant import Variant

from .finish import finish
from .function import FunctionLowering
from .names import named_registers
from .stack import takes_stack

#: Opcodes by which a program can tell that its CTA is one of a cluster.
_CLUSTERS = re.compile(r"mapa|getctarank|cluster|cta_group::2")


class Linker:
    """Finds the functions that a kernel reaches, numbers them, and lowers them in that order."""

    def __init__(self, module: Module, addresses: Callable[[str], int], variant: Variant) -> None:
        self.module, self.addresses, self.variant = module, addresses, variant
        self.read = reader_for(module.version, module.target)
        self.names: Names = module_names(module)
        self.code = function_addresses(module)
        self.flows: list[ControlFlow] = []
        self.lines: list[tuple[int, int, str]] = []
        self.shared = SharedLayout({}, 0, ByteOffset(0))
        self.statics: dict[int, str] = {}  # identity of a variable of a function -> its name on the device
        self._numbers: dict[str, int] = {}
        self.calls: list[set[int]] = []  # by function number: the functions that it may call
        self.indirect = False
        self.reserved = False  # the system's shared memory matters
        self.clustered = False
        self.counters: list[Counter] = []

    # --- reaching -----------------------------------------------------------------------------------------------------

    def reach(self, kernel: Function) -> None:
        """Number the kernel and the functions that it may call; lay out the shared variables of all of them."""
        self.number_of(kernel.name, kernel)
        for flow in self.flows:  # grows as it is walked
            for name, variable in statics_of(flow.function):
                self.statics[id(variable)] = name
                for function in filter(self.code.__contains__, initializer_names(variable.init)):
                    self._link(function)
            for name in self._mentioned(flow):
                self._link(name)
        variables = [RESERVED] * self.reserved + list(self._shared_variables())
        self.shared = shared_layout(variables, self.variant.apart)
        self.shared.padding += variable_size(RESERVED) * self.reserved

    def number_of(self, name: str, function: Function | None = None) -> int:
        """Number of a function with a body, which from now on belongs to the program."""
        number = self._numbers.get(name)
        if number is None:
            function = function or self._definition(name)
            if function is None:
                raise KeyError(name)
            number = self._numbers[name] = len(self.flows)
            self.flows.append(control_flow(function, self.names))
        return number

    def _definition(self, name: str) -> Function | None:
        symbol = self.names.lookup(name)
        if isinstance(symbol, Alias):
            symbol = self.names.lookup(symbol.target)
        return symbol if isinstance(symbol, Function) and symbol.body is not None else None

    def _link(self, name: str) -> None:
        function = self._definition(name)
        if function is not None and function.kind == "func":
            self.number_of(function.name, function)

    def _mentioned(self, flow: ControlFlow) -> Iterator[str]:
        """Functions that a body calls or takes the address of; an indirect call may reach those in initialisers."""
        for block in flow.blocks:
            for instruction in block.instructions:
                opcode = instruction.opcode
                if not self.clustered and _CLUSTERS.search(opcode):
                    self.clustered = True
                if opcode.startswith("call"):
                    target = next((o.name for o in instruction.operands if isinstance(o, Name)), "")
                    yield target
                    known = self._definition(target) is not None or is_runtime_function(target)
                    if not known and not self.indirect:
                        self.indirect = True
                        yield from self._initialised()
                elif opcode.startswith("mov") and len(instruction.operands) > 1:
                    operand = instruction.operands[1]
                    if isinstance(operand, Name) and operand.name in self.code:
                        yield operand.name
                    elif isinstance(operand, Name) and operand.name.startswith(RESERVED_REGISTERS):
                        self.reserved = True

    def _initialised(self) -> Iterator[str]:
        for variable in self.module.variables:
            yield from filter(self.code.__contains__, initializer_names(variable.init))

    def _shared_variables(self) -> Iterator[Variable]:
        """Shared variables of the module that are mentioned, then those of the linked functions."""
        outer = {v.name: v for v in self.module.variables if v.space == "shared"}
        if outer:
            found: set[str] = set()
            for flow in self.flows:
                for block in flow.blocks:
                    for instruction in block.instructions:
                        found.update(name for name in _symbols(instruction) if name in outer)
            yield from (variable for name, variable in outer.items() if name in found)
        for flow in self.flows:
            for scope in scopes_of(flow.function):
                yield from (i for i in scope.items if isinstance(i, Variable) and i.space == "shared")

    # --- lowering -----------------------------------------------------------------------------------------------------

    def line(self, instruction: Instruction) -> int:
        """Index of an instruction in the program's lines."""
        source = self.module.source
        text = (source.excerpt(instruction.span) if source else "") or instruction_text(instruction)
        self.lines.append((-1, instruction.span[0], text))
        return len(self.lines) - 1

    def program(self, kernel: Function) -> Program:
        """Lower everything; raises PtxError with everything that cannot be run."""
        self.reach(kernel)
        lowered: list[FunctionLowering] = []
        problems: list[Diagnostic] = []
        for flow in self.flows:  # a call may add one more
            function = FunctionLowering(self, flow)
            function.run()
            problems += function.problems
            lowered.append(function)
        if problems:
            raise PtxError(problems)
        return self._join(kernel, lowered)

    def _join(self, kernel: Function, lowered: list[FunctionLowering]) -> Program:
        blocks: list[Block] = []
        functions: list[FunctionCode] = []
        calls: list[set[int]] = []
        for function in lowered:
            code = finish(function)
            offset = code.first = len(blocks)
            called: set[int] = set()
            for block in function.blocks:
                end = block.terminator
                if end.target >= 0:
                    end.target += offset
                if end.other >= 0:
                    end.other += offset
                if end.kind == "switch":
                    end.targets = tuple(target + offset for target in end.targets)
                elif end.kind == "call":
                    called.add(end.callee)
            blocks += function.blocks
            functions.append(code)
            calls.append(called)
        unify(lowered, functions)
        named = named_registers(lowered) if self.variant.names else {}
        targets = tuple(self._numbers.get(name, -1) for name in self.code)
        for block in blocks:
            if block.terminator.kind == "call" and block.terminator.callee < 0:
                block.terminator.targets = targets
        depth, frames, local = _deepest(calls, functions)
        registers = -(-max(function.register_bytes for function in lowered) // SLOT_BYTES["b32"])
        return Program(kernel.name, blocks, functions, self.lines, self.shared.size, registers, depth, frames, local,
                       self.clustered, any(map(takes_stack, self.flows)), self.shared.places,
                       self.shared.padding, self.variant.optimised, named, self.counters)  # fmt: skip


def _symbols(instruction: Instruction) -> Iterator[str]:
    waiting: list[object] = list(instruction.operands)
    while waiting:
        operand = waiting.pop()
        if isinstance(operand, (Name, SymbolOffset, Element)):
            yield operand.name
        elif isinstance(operand, Arguments):
            waiting.extend(operand.items)
        elif hasattr(operand, "base"):
            waiting.append(operand.base)


def _deepest(calls: list[set[int]], functions: list[FunctionCode]) -> tuple[int, int, int]:
    """Frames, their bytes and local memory of the longest chain of calls; (0, 0, 0) if it is unbounded."""
    if any(-1 in called for called in calls):
        return 0, 0, 0
    done: dict[int, tuple[int, int, int]] = {}
    active: set[int] = set()
    stack = [(0, iter(sorted(calls[0])))]
    active.add(0)
    while stack:
        number, rest = stack[-1]
        for callee in rest:
            if callee in active:
                return 0, 0, 0
            if callee not in done:
                active.add(callee)
                stack.append((callee, iter(sorted(calls[callee]))))
                break
        else:
            below: Iterable[tuple[int, int, int]] = [done[c] for c in calls[number]] or [(0, 0, 0)]
            own = functions[number]
            depth, frames, local = (max(item[i] for item in below) for i in range(3))
            done[number] = (depth + 1, frames + own.frame_bytes, local + own.local_bytes)
            active.discard(number)
            stack.pop()
    return done[0]


def kernel_of(module: Module, name: str) -> Function:
    """The entry of that name; raises PtxError if there is none."""
    for function in module.functions:
        if function.name == name and function.kind == "entry" and function.body is not None:
            return function
    raise PtxError([Diagnostic("PTX901", f"there is no kernel '{name}' in the module", source=module.source)])
