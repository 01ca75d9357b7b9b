"""Facts about a function for the warning rules, gathered in one pass over its instructions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from ptxtools.ir.alike import Faultless, kinds_of, texts_alone
from ptxtools.ir.fitting import fitting
from ptxtools.ir.nodes import (
    Address,
    Alias,
    Arguments,
    BranchTargets,
    Element,
    Function,
    Header,
    Immediate,
    Instruction,
    Label,
    Loc,
    Module,
    Name,
    Negated,
    Operand,
    Pair,
    Scope,
    SymbolOffset,
    Variable,
    Vector,
)
from ptxtools.ir.references import initializer_names, is_runtime_function
from ptxtools.ir.symbols import Names, RegisterKey, Registers, declare, function_names, module_names
from ptxtools.isa import Opcode, OpcodeError, OperandSpec, resolve
from ptxtools.isa.types import TYPES
from ptxtools.records import NamedTuple

if TYPE_CHECKING:
    from .loops import Loop
    from .memory import Step
    from .values import Value
    from .walk.walker import Found

#: Instructions after which nothing runs, unless they are guarded.
ENDING = frozenset({"bra", "brx", "ret", "exit", "trap"})


class Plan(NamedTuple):
    """What an opcode does with its operands: op is None if no form fits. specs: the operands; writes: for each of them;
    bounds: of an integer constant in each, None for no bounds. positional: whether writes is valid; not for calls.
    lists: a plan for each of its operand lists, where these differ in what is written; counts: how many operands it
    may have."""

    op: Opcode | None
    family: str
    specs: tuple[OperandSpec, ...]
    writes: tuple[bool, ...]
    bounds: tuple[tuple[int, int] | None, ...]
    positional: bool
    lists: tuple[Plan, ...] = ()
    counts: range = range(0)


class Line(NamedTuple):
    """An instruction, its plan, and the names and registers visible to it."""

    item: Instruction
    plan: Plan
    names: Names
    registers: Registers


class FunctionFacts:
    """Gathered from one function with a body.

    lines: instructions in source order; items: all statements, nested scopes opened, instructions as their lines;
    others: the statements that are no instructions; reads: where each register is first read; writes: where it is
    first written; early: registers that are read above the first write; rewritten: registers that several instructions
    write; targets: names of labels, functions and variables that are used, with the instructions; oversized: integer
    constants beyond the bounds of their operand, as (line, operand); module: the facts of other functions, if any.
    """

    def __init__(self, function: Function, names: Names, module: ModuleFacts | None = None) -> None:
        self.function, self.names, self.module = function, names, module
        self.lines: list[Line] = []
        self.items: list[object] = []
        self.others: list[object] = []
        self.reads: dict[RegisterKey, Instruction] = {}
        self.writes: dict[RegisterKey, Line] = {}
        self.early: set[RegisterKey] = set()
        self.rewritten: set[RegisterKey] = set()
        self.targets: dict[str, list[Line]] = {}
        self.oversized: list[tuple[Line, int]] = []
        self.unknowns: dict[RegisterKey, Value] = {}  # of `values`
        self.unknown_terms: dict[str, RegisterKey] = {}
        self.unknown_sources: dict[str, list[Value]] = {}
        self.constants: dict[tuple[int, int], int | None] = {}  # of `constants`
        self.thread_numbers: dict[tuple[int, int], list[int] | None] = {}
        self.tests: dict[int, int | None] = {}  # of `coming`
        self._used: dict[int, tuple[tuple[str, RegisterKey | None, bool], ...]] = {}
        self._vectors: dict[tuple[int, int, bool], int] = {}  # how often vectors have been met
        if function.body is not None:
            self._walk(function.body, function_names(function, names))

    @cached_property
    def by_family(self) -> dict[str, list[Line]]:
        """Instructions by the first word of their opcode."""
        found: dict[str, list[Line]] = {}
        for line in self.lines:
            family = line.plan.family
            if family in found:
                found[family].append(line)
            else:
                found[family] = [line]
        return found

    @cached_property
    def families(self) -> frozenset[str]:
        """The first words of all opcodes."""
        return frozenset(self.by_family)

    @cached_property
    def reached(self) -> frozenset[str]:
        """The first words of all opcodes, those of functions included into which walks through a kernel follow it."""
        if self.function.kind != "entry" or "call" not in self.families:
            return self.families
        from .walk.calls import followed

        return self.families.union(*[facts.families for facts in followed(self)])

    def of(self, *families: str) -> list[Line]:
        """The instructions of some families, in source order."""
        found = [self.by_family[family] for family in families if family in self.by_family]
        if len(found) < 2:
            return found[0] if found else []
        return [line for line in self.lines if line.plan.family in families]

    @cached_property
    def _before(self) -> dict[int, Line]:
        pairs = zip(self.items, self.items[1:], strict=False)
        return {id(b.item): a for a, b in pairs if isinstance(a, Line) and isinstance(b, Line)}

    def before(self, line: Line) -> Line | None:
        """The instruction that stands directly before another one, no label in between."""
        return self._before.get(id(line.item))

    @cached_property
    def _behind(self) -> dict[int, Line]:
        pairs = zip(self.items, self.items[1:], strict=False)
        return {id(a.item): b for a, b in pairs if isinstance(a, Line) and isinstance(b, Line)}

    def behind(self, line: Line) -> Line | None:
        """The instruction that stands directly behind another one, no label in between."""
        return self._behind.get(id(line.item))

    @cached_property
    def _labels(self) -> tuple[dict[int, int], dict[str, int]]:
        """Which line each label is before, by its identity and by its name."""
        places: dict[int, int] = {}
        by_name: dict[str, int] = {}
        at = 0
        for item in self.items:
            if type(item) is Line:
                at += 1
            elif isinstance(item, Label):
                places[id(item)] = at
                by_name.setdefault(item.name, at)
        return places, by_name

    def place_of(self, name: str, line: Line) -> int | None:
        """Which line a label stands before, as an instruction names it. Labels of one name may stand in several scopes;
        one of another scope is known in the whole function (7.1)."""
        places, by_name = self._labels
        symbol = line.names.lookup(name)
        return places.get(id(symbol)) if type(symbol) is Label else by_name.get(name)

    @cached_property
    def jumps(self) -> dict[int, int]:
        """Which line each `bra` goes to, by the identity of the instruction."""
        found = {}
        for line in self.of("bra"):
            to = line.item.operands[0] if line.item.operands else None
            place = self.place_of(to.name, line) if type(to) is Name else None
            if place is not None:
                found[id(line.item)] = place
        return found

    @cached_property
    def tables(self) -> dict[int, list[int]]:
        """Which lines each `brx.idx` may go to, in the order of its list, by the identity of the instruction; without
        those of which a label is missing."""
        listed = {item.label: item.targets for item in self.others if isinstance(item, BranchTargets)}
        found = {}
        for line in self.of("brx"):
            table = line.item.operands[1] if len(line.item.operands) > 1 else None
            names = listed.get(table.name, ()) if type(table) is Name else ()
            places = [self.place_of(name, line) for name in names]
            if places and None not in places:
                found[id(line.item)] = [place for place in places if place is not None]
        return found

    @cached_property
    def runs(self) -> list[list[Line]]:
        """The stretches that control enters only at their first instruction; it may leave at guarded ones."""
        from .runs import runs_of

        return list(runs_of(self))

    @cached_property
    def stretches(self) -> dict[int, int]:
        """Which of the runs each instruction is in, by its identity."""
        return {id(line.item): number for number, run in enumerate(self.runs) for line in run}

    @cached_property
    def known_values(self) -> Mapping[RegisterKey, Value]:
        """The values of registers that one instruction writes, as far as they follow from what stands above it."""
        from .values import known_values

        return known_values(self)

    @cached_property
    def begun_with(self) -> Mapping[RegisterKey, Value]:
        """The values of registers that several instructions write with which all runs but the first begin."""
        from .values import begun_with

        return begun_with(self, self.known_values) if self.rewritten else {}

    @cached_property
    def steps(self) -> list[list[Step]]:
        """The steps of each run of instructions that access memory or order accesses."""
        from .memory import steps_of

        return steps_of(self)

    @cached_property
    def accesses(self) -> list[Step]:
        """The steps that access memory in one place, of all runs."""
        return [step for steps in self.steps for step in steps if step.access is not None]

    @cached_property
    def walked(self) -> dict[str, list[Found]]:
        """What walks of threads through a kernel find, by its kind."""
        from .walk import walk_of

        found: dict[str, list[Found]] = {}
        if self.function.kind != "entry":
            return found
        text = self.module.text_alone(self.function) if self.module is not None else ()
        if text in _walked_in_vain:
            return found
        for one in walk_of(self):
            found.setdefault(one.kind, []).append(one)
        if text and not found:
            _walked_in_vain.add(text)
        return found

    @cached_property
    def read_counts(self) -> Counter[RegisterKey | None]:
        """How often each register is read."""
        return Counter([key for line in self.lines for _, key, write in self.used(line) if not write])

    def used(self, line: Line) -> tuple[tuple[str, RegisterKey | None, bool], ...]:
        """The names in an instruction, the registers that they are, and whether it writes these (as `accessed`)."""
        found = self._used.get(id(line.item))
        if found is None:
            found = self._used[id(line.item)] = tuple(uses(line))
        return found

    @cached_property
    def differing(self) -> frozenset[RegisterKey]:
        """The registers that may hold different values in the threads of a warp."""
        from .uniform import differing_registers

        return differing_registers(self)

    @cached_property
    def loops(self) -> list[Loop]:
        """The loops, inner and outer ones."""
        from .loops import loops_of

        return loops_of(self)

    def _walk(self, body: Scope, outer: Names) -> None:
        names = Names(outer)
        declare(body, names)
        waiting = [(iter(body.items), names, Registers(names))]
        while waiting:
            items, names, registers = waiting[-1]
            nested = self._run(items, names, registers)
            if nested is None:
                waiting.pop()
                continue
            inner = Names(names)
            declare(nested, inner)
            waiting.append((iter(nested.items), inner, Registers(inner)))

    def _run(self, items: Iterator[object], names: Names, registers: Registers) -> Scope | None:
        """Gather statements up to a nested scope, which is returned; None at the end."""
        plans, reads, writes = _plans, self.reads, self.writes
        lines, statements = self.lines, self.items
        for item in items:
            if type(item) is not Instruction:
                if type(item) is Scope:
                    return item
                self._other(item)
                continue
            plan = plans.get(item.opcode) or _plan(item.opcode)
            if plan.lists:
                plan = _matched(plan, item.operands)
            if plan.positional and len(item.operands) not in plan.counts:  # an error, of no family that rules look for
                plan = _NONE
            line = Line(item, plan, names, registers)
            lines.append(line)
            statements.append(line)
            if item.guard is not None:
                self._access(item.guard.name, False, line)
            if not plan.positional:
                self._unusual(line)
                continue
            for operand, write, bounds in zip(item.operands, plan.writes, plan.bounds, strict=False):
                if type(operand) is Name:
                    key = registers[operand.name]
                    if key is None:
                        self._target(operand.name, line)
                    elif not write:
                        if key not in reads:
                            reads[key] = item
                    elif key in writes:
                        self.rewritten.add(key)
                    else:
                        writes[key] = line
                        if key in reads and reads[key] is not item:
                            self.early.add(key)
                elif type(operand) is Immediate:
                    if bounds is not None and not bounds[0] <= operand.value <= bounds[1] and operand.type[0] != "f":
                        self.oversized.append((line, item.operands.index(operand)))
                elif type(operand) is Address and type(operand.base) is Name and not operand.extra:
                    self._access(operand.base.name, False, line)
                elif type(operand) is Vector:
                    self._vector(operand, write, line)
                else:
                    for name, inside in operand_names(operand):
                        self._access(name, write and not inside, line)
        return None

    def _other(self, item: object) -> None:
        self.items.append(item)
        self.others.append(item)
        if isinstance(item, BranchTargets):
            self.targets |= {name: self.targets.get(name, []) for name in item.targets}
        elif isinstance(item, Loc) and item.function_name:
            self.targets.setdefault(item.function_name, [])

    def _unusual(self, line: Line) -> None:
        """Calls, whose operands are not positional, and instructions of which too little is known."""
        operands = line.item.operands
        results = len(operands) > 1 and isinstance(operands[0], Arguments)
        for place, operand in enumerate(operands):
            for name, _ in operand_names(operand):
                self._access(name, line.plan.op is None or (results and place == 0), line)
                if line.plan.op is None:
                    self._target(name, line)

    def _target(self, name: str, line: Line) -> None:
        lines = self.targets.get(name)
        if lines is None:
            self.targets[name] = [line]
        elif not lines or lines[-1] is not line:
            lines.append(line)

    def _vector(self, operand: Vector, write: bool, line: Line) -> None:
        """The elements of a vector. Those of one that was read before, or written twice, say nothing new."""
        known = (id(operand), id(line.registers), write)
        if self._vectors.get(known, 0) > write:
            return
        uses = line.registers.uses(operand, write)
        for name, _, written in uses:
            self._access(name, written, line)
        if all(key is not None for _, key, _ in uses):  # of others each instruction counts
            self._vectors[known] = self._vectors.get(known, 0) + 1

    def _access(self, name: str, write: bool, line: Line) -> None:
        key = line.registers[name]
        if key is None:
            self._target(name, line)
        elif not write:
            self.reads.setdefault(key, line.item)
        elif key in self.writes:
            self.rewritten.add(key)
        else:
            self.writes[key] = line
            if self.reads.get(key, line.item) is not line.item:
                self.early.add(key)


def uses(line: Line) -> list[tuple[str, RegisterKey | None, bool]]:
    """The names in an instruction, the registers that they are, and whether it writes these; labels and variables are
    among them."""
    item, registers = line.item, line.registers
    found: list[tuple[str, RegisterKey | None, bool]] = []
    if item.guard is not None:
        found.append((item.guard.name, registers[item.guard.name], False))
    writes = line.plan.writes
    if not line.plan.positional:  # a call
        writes = (len(item.operands) > 1 and isinstance(item.operands[0], Arguments),)
    for place, operand in enumerate(item.operands):
        write = place < len(writes) and writes[place]
        kind = type(operand)
        if kind is Name:
            name = operand.name  # type: ignore[union-attr]
            found.append((name, registers[name], write))
        elif kind is Vector:
            found += registers.uses(operand, write)  # type: ignore[arg-type]
        elif kind is not Immediate:
            found += [(name, registers[name], write and not inside) for name, inside in operand_names(operand)]
    return found


def operand_names(operand: Operand) -> Iterator[tuple[str, bool]]:
    """Each identifier in an operand, and whether it is inside an address."""
    if isinstance(operand, Name):
        yield operand.name, False
    elif isinstance(operand, (Vector, Arguments)):
        for item in operand.items:
            yield from operand_names(item)
    elif isinstance(operand, Address):
        if not isinstance(operand.base, Immediate):
            yield from ((name, True) for name, _ in operand_names(operand.base))
        for part in operand.extra:
            yield from ((name, True) for name, _ in operand_names(part))
    elif isinstance(operand, Negated):
        yield from operand_names(operand.operand)
    elif isinstance(operand, Pair):
        yield from operand_names(operand.first)
        yield from operand_names(operand.second)
    elif isinstance(operand, Element):
        yield operand.name, True
        if operand.register is not None:
            yield operand.register, True
    elif isinstance(operand, SymbolOffset):
        yield operand.name, True


_plans: dict[str, Plan] = {}


def _plan(opcode: str) -> Plan:
    try:
        op = resolve(opcode)
    except OpcodeError:
        plan = _unfit(opcode.partition(".")[0])
    else:
        plan = _plan_of(op, op.operands)
        if plan.positional:
            lists = tuple(_plan_of(op, specs) for specs in op.shapes)
            if any(plan.writes[: len(one.writes)] != one.writes[: len(plan.writes)] for one in lists):
                plan = plan._replace(lists=lists)
    _plans[opcode] = plan
    return plan


def _unfit(family: str) -> Plan:
    """The plan of an instruction that no form fits."""
    return Plan(None, family, (), (), (), False)


_NONE = _unfit("")


def _plan_of(op: Opcode, specs: tuple[OperandSpec, ...]) -> Plan:
    writes = tuple(spec.role == "dst" for spec in specs)
    least = min([sum(not spec.optional for spec in one) for one in op.shapes])
    counts = range(least, max(map(len, op.shapes)) + 1)
    return Plan(op, op.family, specs, writes, tuple(map(_bounds, specs)), op.family != "call", counts=counts)


def _matched(plan: Plan, operands: Sequence[Operand]) -> Plan:
    """The plan of the list that an instruction is written with."""
    found = plan.op and fitting(plan.op, operands)
    return next((one for one in plan.lists if one.specs is found), plan)


def _bounds(spec: OperandSpec) -> tuple[int, int] | None:
    """The range of integers for an operand of this type, as signed or unsigned."""
    if spec.role != "src" or spec.type is None:
        return None
    info = TYPES[spec.type]
    if info.kind not in ("int", "bits") or info.bits > 64:
        return None
    return -(1 << (info.bits - 1)), (1 << info.bits) - 1


#: Texts of kernels that say all about them, and in which walks of this process have found nothing.
_walked_in_vain = Faultless()


class ModuleFacts:
    """The facts of all function bodies of a module."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.names = module_names(module)
        self.bodies = [function for function in module.functions if function.body is not None]
        self.kinds = kinds_of(module)
        self._text_alone = texts_alone(module)
        self._texts: dict[int, tuple[str, ...]] = {}
        #: Kernels are all that the module has, so that functions cannot depend on what else it declares, and no comment
        #: speaks to the rules.
        self._kernels = (module.source is None or "ptx-lint" not in module.source.text) and all(
            type(item) is Header or (type(item) is Function and item.kind == "entry" and item.body is not None)
            for item in module.items
        )
        #: The functions that `functions` has: by default one of each kind, since others like it add nothing.
        self.considered = list(self.first_of_each(self.bodies))
        self._known: dict[int, FunctionFacts] = {}

    def text_alone(self, function: Function) -> tuple[str, ...]:
        """As of `ir.alike.texts_alone`."""
        found = self._texts.get(id(function))
        if found is None:
            found = self._texts[id(function)] = self._text_alone(function)
        return found

    def independent(self, function: Function) -> tuple[str, ...]:
        """All that findings about a function can depend on, besides version and target that a caller asks for; () where
        that may be more than its text and the module's headers."""
        text = self.text_alone(function) if self._kernels else ()
        return (*text, "alone") if text and len(self.bodies) == 1 else text

    def of(self, function: Function) -> FunctionFacts:
        """The facts of one function of the module."""
        found = self._known.get(id(function))
        if found is None:
            found = self._known[id(function)] = FunctionFacts(function, self.names, self)
        return found

    def first_of_each(self, functions: Iterable[Function]) -> Iterator[Function]:
        """Functions without those that are like an earlier one of them."""
        seen: set[int] = set()
        for function in functions:
            kind = self.kinds.get(id(function))
            if kind is None or kind not in seen:
                yield function
            if kind is not None:
                seen.add(kind)

    @cached_property
    def repeated(self) -> set[int]:
        """The ids of functions that are like an earlier one."""
        return {id(f) for f in self.bodies} - {id(f) for f in self.first_of_each(self.bodies)}

    @property
    def size(self) -> int:
        """Statements in functions of which none before is like them."""
        return sum(len(f.body.items) for f in self.first_of_each(self.bodies) if f.body is not None)

    def consider_all(self) -> bool:
        """Have every function in `functions`; returns whether it had fewer."""
        fewer = len(self.considered) < len(self.bodies)
        self.considered = self.bodies
        for name in ("functions", "opcodes"):
            self.__dict__.pop(name, None)
        return fewer

    @cached_property
    def functions(self) -> list[FunctionFacts]:
        """The facts of functions that have a body. A rule for the module that finds nothing among one of each kind is
        not asked again; otherwise it sees all of them."""
        return [self.of(function) for function in self.considered]

    @cached_property
    def opcodes(self) -> dict[str, Line]:
        """The first instruction with each opcode, as it is written."""
        found: dict[str, Line] = {}
        for facts in self.functions:
            for line in facts.lines:
                if line.item.opcode not in found:
                    found[line.item.opcode] = line
        return found

    @cached_property
    def tabled(self) -> list[Function]:
        """The functions that initialisers of the module's variables name: calls through registers may be of these."""
        known = {function.name: function for function in self.bodies}
        names = dict.fromkeys(name for item in self.module.items if type(item) is Variable and item.init is not None
                              for name in initializer_names(item.init))  # fmt: skip
        return [known[name] for name in names if name in known]

    @cached_property
    def whole(self) -> bool:
        """Whether a kernel runs no code but the module's, the runtime's apart."""
        functions = self.module.functions
        known = {f.name for f in functions if f.body is not None}
        known |= {item.name for item in self.module.items if isinstance(item, Alias)}
        return any(f.kind == "entry" for f in functions) and all(
            f.name in known or is_runtime_function(f.name) for f in functions
        )
