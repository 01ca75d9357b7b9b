"""A kernel as a litmus test: each of its threads is one of the test's, its buffers and variables are the locations.

The instructions are read as those of a litmus test are (`instructions.py`), out of the kernel's own text. Special
registers and parameters have constant values; whatever else is not modelled is an error at its line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ptxtools import ir
from ptxtools.diagnostics import Source
from ptxtools.records import dataclass, field, replace

from .clusters import renamed
from .conditions import read_condition
from .instructions import Cells
from .matrices import WINDOW_BITS, add_tensor_memory
from .multimem import add_multi_address, complete_aliases
from .programs import (
    MOST_THREADS,
    Address,
    Barrier,
    Condition,
    Instruction,
    Label,
    Local,
    Location,
    Operand,
    Register,
    TensorCore,
    Test,
    Thread,
    Type,
    scalar_type,
)
from .tensors import MAP_BYTES, Engines
from .words import Reader, refuse, register_name, words_of

#: Instructions of one thread, and bytes of a buffer, variable or parameter.
MOST_INSTRUCTIONS, MOST_BYTES = 2000, 1 << 15
#: Variables in shared memory are that far apart, at least.
_ALIGNED = 1024
_WARP = 32
#: Instructions that name shared memory of other CTAs.
_CLUSTER = re.compile(r"^mapa|multicast::cluster|cta_group::2")


@dataclass(frozen=True, slots=True)
class Array:
    """A buffer. element: the type that conditions read, such as "u32"; data: the initial bytes."""

    element: Type
    data: bytes


#: The value of a parameter: an integer, or the name of a buffer and an offset in bytes.
Argument: TypeAlias = int | tuple[str, int]
Dim3: TypeAlias = tuple[int, int, int]


@dataclass(slots=True)
class Launch:
    """What is launched. threads: (CTA, thread of it) of those that run, None: all; dynamic: bytes of shared memory;
    cluster: CTAs of a cluster, 0: there are none; maps: tensor maps as buffer, bytes from its beginning, fields of
    launch files; multicasts: the buffers of each multi-address; tensors, products: find what knows tensor maps and
    matrices; most: threads."""

    grid: Dim3
    block: Dim3
    arguments: Sequence[Argument]
    arrays: dict[str, Array] = field(default_factory=dict)
    threads: Sequence[tuple[int, int]] | None = None
    cluster: int = 0
    dynamic: int = 0
    maps: Mapping[str, tuple[str, int, dict[str, Any]]] = field(default_factory=dict)
    multicasts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    tensors: Engines | None = None
    products: Callable[[], Any] | None = None
    most: int = MOST_THREADS


def launch_test(module: ir.Module, kernel: ir.Function, launch: Launch) -> Test:
    """The test, without a condition. Raises PtxError with position and reason."""
    test = Test(kernel.name, module.source or Source("", "<module>"), tensors=launch.tensors)
    test.products = launch.products
    _Builder(module, kernel, launch, test).build()
    if any(isinstance(i, TensorCore) for thread in test.threads for i in thread.instructions):
        add_tensor_memory(test)
    return test


def kernel_test(module: ir.Module, kernel: ir.Function, launch: Launch, condition: str, filter_: str = "") -> Test:
    """The test. condition, filter_: as in a litmus test, with `P0:%r1` for registers and `a[3]` for elements.
    Raises PtxError with position and reason: in the module, or in the text of the condition."""
    test = launch_test(module, kernel, launch)
    condition_source = Source(condition, "condition")
    reader = Reader(condition_source, words_of(condition_source))
    negated = reader.accept("~", "not")
    quantifier = reader.accept("exists") or (None if negated else reader.accept("forall"))
    if quantifier is None:
        reader.fail("expected 'exists', 'forall' or '~exists'")
    test.quantifier = ("~" if negated else "") + quantifier.text
    test.condition = _condition(reader, test)
    if filter_:
        filter_source = Source(filter_, "filter")
        test.filter = _condition(Reader(filter_source, words_of(filter_source)), test)
    return test


def _condition(reader: Reader, test: Test) -> Condition:
    found = read_condition(reader, [thread.number for thread in test.threads], test.locations)
    if reader.next.kind != "end":
        reader.fail("expected the end of the condition")
    for name in found.names:
        location = test.locations.get(name.partition("[")[0])
        if location is not None and location.type is not None:
            index = int(name.partition("[")[2][:-1] or 0)
            if not 0 <= index < location.size // (location.type.bits // 8):
                reader.fail(f"there is no element '{name}'", reader.words[0])
    return found


def kernel_named(module: ir.Module, name: str) -> ir.Function:
    """The kernel of that name, or, for "", the only one. Raises PtxError."""
    kernels = [item for item in module.items if isinstance(item, ir.Function) and item.kind == "entry" and item.body]
    chosen = [kernel for kernel in kernels if kernel.name == name] if name else kernels
    if len(chosen) != 1:
        names = ", ".join(kernel.name for kernel in kernels) or "none"
        what = f"there is no kernel '{name}'" if name else "name the kernel"
        refuse(module.source or Source("", "<module>"), f"{what}; the module has {names}", (0, 1))
    return chosen[0]


def element_named(name: str) -> Type:
    """The type of a buffer's elements; those of other types than integers and floats are read as bits."""
    digits = "".join(letter for letter in name if letter.isdigit())
    return scalar_type(name) or scalar_type("b" + digits) or Type("b", 8)


def bounds_of(kernel: ir.Function) -> Iterator[tuple[str, Dim3]]:
    """The directives of a kernel that are shapes (11.4)."""
    for directive in kernel.directives:
        if isinstance(directive, ir.Directive):
            x, y, z = (*(size for size in directive.args if isinstance(size, int)), 1, 1, 1)[:3]
            yield directive.name, (x, y, z)


class _Builder:
    def __init__(self, module: ir.Module, kernel: ir.Function, launch: Launch, test: Test) -> None:
        self.module, self.kernel, self.launch, self.test = module, kernel, launch, test
        self.source = test.source
        self.statements = list(_flat(kernel.body.items if kernel.body else []))
        self.declared = [v for v in self.statements if isinstance(v, ir.Variable) and v.space == "reg"]
        self.shared: list[str] = []
        self.maps = any(isinstance(s, ir.Instruction) and _CLUSTER.search(s.opcode) for s in self.statements)
        #: Bytes of shared memory that variables have so far; nothing is at address 0.
        self.used = _ALIGNED
        self.parameters: dict[str, Argument] = {}
        #: Of each CTA, whose threads have the same.
        self.instructions: dict[int, list[Instruction]] = {}

    def build(self) -> None:
        self._check_registers()
        places = self._places()
        for name, array in self.launch.arrays.items():
            self._location(name, array.element, len(array.data), int.from_bytes(array.data, "little"), (0, 1))
        ctas = sorted({cta for cta, _ in places})
        if self.launch.cluster and self.maps:  # the shared memory of all of the cluster may be used
            size = self.launch.cluster
            ctas = sorted({cta // size * size + rank for cta in ctas for rank in range(size)})
        self._variables(ctas)
        if len(self.launch.arguments) != len(self.kernel.params):
            count = f"{len(self.kernel.params)} arguments, {len(self.launch.arguments)} given"
            refuse(self.source, f"kernel {self.kernel.name} takes {count}", self.kernel.name_span)
        for name, buffers in self.launch.multicasts.items():
            add_multi_address(self.test.locations, name, buffers)
        complete_aliases(self.test.locations)
        for parameter, value in zip(self.kernel.params, self.launch.arguments, strict=True):
            if parameter.dims and isinstance(value, tuple) and value[0] in self.launch.maps:
                self._tensor_map(parameter, *self.launch.maps[value[0]])
                continue
            if parameter.dims:
                refuse(self.source, "a parameter that is an array is not modelled", parameter.name_span)
            self.parameters[parameter.name] = value
        first = ctas[0]
        for number, (cta, thread) in enumerate(places):
            cluster = cta // self.launch.cluster if self.launch.cluster else -1
            one = Thread(number, cta, cluster, 0, warp=thread // 32, lane=thread % 32,
                         window=ctas.index(cta) << WINDOW_BITS)  # fmt: skip
            self.test.threads.append(one)
            own = {name: name if cta == first else f"{name}@{cta}" for name in self.shared}
            one.instructions = self._instructions(one, thread, own)

    def _tensor_map(self, parameter: ir.Variable, buffer: str, offset: int, fields: dict[str, Any]) -> None:
        """A parameter that is a tensor map, of a tensor in a buffer."""
        self.test.locations[parameter.name] = Location(
            parameter.name, Address(buffer), Type("b", 64), size=MAP_BYTES, space="const",
            map={**fields, "offset": offset},
        )  # fmt: skip

    def _check_registers(self) -> None:
        names: set[str] = set()
        for variable in self.declared:
            name = register_name(variable.name)
            if name in names:
                refuse(self.source, f"two registers '{name}', in different scopes or with different signs in front, are"
                       " not modelled", variable.name_span)  # fmt: skip
            names.add(name)

    def _places(self) -> list[tuple[int, int]]:
        ctas, size = _product(self.launch.grid), _product(self.launch.block)
        chosen = self.launch.threads
        at = self.kernel.name_span
        if chosen is None:
            if ctas * size > self.launch.most:
                refuse(self.source, f"{ctas * size} threads are too many for a litmus test: at most {MOST_THREADS}", at,
                       "choose some of them: threads = [[CTA, THREAD], …]")  # fmt: skip
            return [(cta, thread) for cta in range(ctas) for thread in range(size)]
        for cta, thread in chosen:
            if not (0 <= cta < ctas and 0 <= thread < size):
                refuse(self.source, f"the launch has no thread {thread} in CTA {cta}", at)
        if not 0 < len(set(chosen)) == len(chosen) <= MOST_THREADS:
            refuse(self.source, f"expected 1 to {MOST_THREADS} different threads", at)
        return list(chosen)

    def _is_whole(self, cta: int) -> bool:
        """Whether the test has all threads of a CTA."""
        size = _product(self.launch.block)
        return self.launch.threads is None or sum(chosen == cta for chosen, _ in self.launch.threads) == size

    def _counted(self, barrier: Barrier, cta: int, statement: ir.Instruction) -> int:
        """How many of the test's threads a barrier's count stands for: a warp that arrives counts as 32 threads,
        however many of them there are (9.7.13.1)."""
        count, size = barrier.count, _product(self.launch.block)
        if not isinstance(count, int) or count % _WARP or count <= 0:
            refuse(self.source, "the count of a barrier is a multiple of 32, and here a number", statement.span)
        if self._is_whole(cta) and size <= _WARP == count:
            return size
        shown = [thread // _WARP for other, thread in self._places() if other == cta]
        if sorted(shown) != list(range(-(-size // _WARP))) or barrier.reduction:
            refuse(self.source, "a barrier with a count of threads needs one thread of each warp of the CTA",
                   statement.span, "threads = [[0, 0], [0, 32], …]")  # fmt: skip
        return count // _WARP

    # --- memory ---

    def _variables(self, ctas: list[int]) -> None:
        for variable in [*self.module.items, *self.statements]:
            if not isinstance(variable, ir.Variable) or variable.space not in ("global", "shared", "const"):
                continue
            element = scalar_type(variable.type)
            if element is None:
                continue  # a texture, or a type without memory: its uses are refused
            size = element.bits // 8 * variable.vector
            count = self.launch.dynamic // size if None in variable.dims else 1
            for dim in variable.dims:
                count *= dim if dim is not None else 1
            size *= count
            if variable.space == "shared":
                self.shared.append(variable.name)
                names = {cta: variable.name if not at else f"{variable.name}@{cta}" for at, cta in enumerate(ctas)}
                self.used = -(-self.used // _ALIGNED) * _ALIGNED
                for at, (cta, name) in enumerate(names.items()):
                    self._location(name, element, size, 0, variable.name_span, "shared")
                    self.test.locations[name].address = (at << WINDOW_BITS) + self.used
                    cluster = self.launch.cluster
                    if self.maps and cluster:
                        first = cta // cluster * cluster
                        self.test.locations[name].peers = tuple(names[first + rank] for rank in range(cluster))
                self.used += size
            else:
                initial = self._initial(variable, element)
                self._location(variable.name, element, size, initial, variable.name_span, variable.space)

    def _initial(self, variable: ir.Variable, element: Type) -> int:
        values, stack = [], [variable.init] if variable.init is not None else []
        while stack:
            value = stack.pop(0)
            if isinstance(value, list):
                stack = [*value, *stack]
            elif isinstance(value, ir.Immediate):
                values.append(value.value & ((1 << element.bits) - 1))
            else:
                refuse(self.source, "an address as an initial value is not modelled", variable.name_span)
        return sum(value << element.bits * at for at, value in enumerate(values))

    def _location(
        self, name: str, element: Type, size: int, initial: int, at: tuple[int, int], space: str = "global"
    ) -> None:
        if size > MOST_BYTES:
            refuse(self.source, f"'{name}' has {size} bytes: more than {MOST_BYTES} are not modelled", at)
        if name in self.test.locations:
            refuse(self.source, f"two buffers or variables are called '{name}'", at)
        self.test.locations[name] = Location(name, initial, element, size=max(size, 1), space=space)

    # --- instructions ---

    def _instructions(self, thread: Thread, number: int, own: dict[str, str]) -> list[Instruction]:
        special = self._special(thread.cta, number)
        self.test.registers |= {f"{thread.name}:{name}": value for name, value in special.items()}
        if thread.cta in self.instructions:
            return self.instructions[thread.cta]
        registers = {thread.number: set(special)}
        found = self.instructions[thread.cta] = []
        for statement in self.statements:
            if isinstance(statement, ir.Label):
                found.append(Label(text=statement.name + ":", span=statement.span, name=statement.name))
            elif isinstance(statement, ir.Instruction):
                one = self._instruction(statement, thread, registers, own)
                for used in _registers(one):
                    if used not in special and not self._is_declared(used):
                        refuse(self.source, f"the register '%{used}' is not modelled", statement.span)
                found.append(one)
            elif not isinstance(statement, ir.Variable | ir.Loc | ir.Pragma):
                refuse(self.source, "this statement is not modelled", statement.span)
            if len(found) > MOST_INSTRUCTIONS:
                refuse(self.source, f"more than {MOST_INSTRUCTIONS} instructions", statement.span)
        return found

    def _instruction(
        self, statement: ir.Instruction, thread: Thread, registers: dict[int, set[str]], own: dict[str, str]
    ) -> Instruction:
        start, end = statement.span
        reader = Reader(self.source, words_of(self.source, start, end))
        if statement.opcode.startswith("ld.param"):
            return self._parameter(statement, reader)
        cells = Cells(reader, self.test.locations, registers)
        cells.fixed, cells.maps = True, bool(self.launch.cluster)
        one = cells.one(thread.number)
        if reader.next.kind != "end":
            reader.fail("this operand is not modelled")
        one = renamed(one, own)
        if isinstance(one, Barrier) and one.place == "cta" and one.count is not None:
            one = replace(one, count=self._counted(one, thread.cta, statement))
        if isinstance(one, Barrier) and one.reduction and not self._is_whole(thread.cta):
            refuse(self.source, "a reduction of predicates needs all threads of the CTA: the test has some of them",
                   statement.span)  # fmt: skip
        return one

    def _parameter(self, statement: ir.Instruction, reader: Reader) -> Instruction:
        """The value of a parameter; of an array's elements none is known."""
        span = statement.span
        result, place = (*statement.operands, None, None)[:2]
        type_ = scalar_type(statement.opcode.rsplit(".", 1)[-1])
        if not (isinstance(result, ir.Name) and isinstance(place, ir.Address) and isinstance(place.base, ir.Name)):
            refuse(self.source, "this form is not modelled", span)
        value = self.parameters.get(place.base.name)
        if value is None or place.offset or statement.guard is not None or type_ is None:
            refuse(self.source, "this form is not modelled", span)
        text = reader.source.text[span[0] : span[1]]
        name = register_name(result.name)
        if isinstance(value, int):
            return Local(text=text, span=span, result=name, function="mov", values=(value,), type=type_)
        buffer, offset = value
        return Local(text=text, span=span, result=name, function="add", values=(Address(buffer), offset), type=None)

    def _special(self, cta: int, thread: int) -> dict[str, int]:
        """The special registers that a launch fixes (10)."""
        grid, block = self.launch.grid, self.launch.block
        found = {"laneid": thread % 32, "warpid": thread // 32, "nwarpid": -(-_product(block) // 32)}
        for name, sizes, at in (("tid", block, thread), ("ctaid", grid, cta)):
            found |= {f"{name}.x": at % sizes[0], f"{name}.y": at // sizes[0] % sizes[1],
                      f"{name}.z": at // (sizes[0] * sizes[1])}  # fmt: skip
            found |= {f"n{name}.{axis}": size for axis, size in zip("xyz", sizes, strict=True)}
        if self.launch.cluster:
            found |= {"cluster_ctarank": cta % self.launch.cluster, "cluster_nctarank": self.launch.cluster}
        return found

    def _is_declared(self, register: str) -> bool:
        for variable in self.declared:
            name = register_name(variable.name)
            digits = register[len(name) :]
            if register == name or (variable.count is not None and register.startswith(name) and digits.isdigit()):
                return True
        return False


def _flat(items: Sequence[ir.Statement]) -> Iterator[ir.Statement]:
    """The statements of a body and of the scopes inside it."""
    for item in items:
        if isinstance(item, ir.Scope):
            yield from _flat(item.items)
        else:
            yield item


def _registers(instruction: Instruction) -> Iterator[str]:
    values: tuple[Operand, ...] = getattr(instruction, "values", ())
    base = getattr(instruction, "base", None)
    places = [place[0] for place in getattr(instruction, "places", ())]
    for value in (
        *values,
        base,
        *places,
        *getattr(instruction, "numbers", ()),
        getattr(instruction, "transactions", None),
        getattr(instruction, "predicate", None),
    ):
        if isinstance(value, Register):
            yield value.name
    if instruction.guard is not None:
        yield instruction.guard.register


def _product(sizes: Dim3) -> int:
    return sizes[0] * sizes[1] * sizes[2]
