"""The control-flow graph of a function: basic blocks and the edges between them (7.1, 9.7.13)."""

from __future__ import annotations

from collections.abc import Sequence

from ptxtools.records import dataclass, field

from .nodes import BranchTargets, Function, Instruction, Label, Module, Name, Operand, Scope
from .symbols import Names, module_names, walk

#: Instructions that end a block. A guarded one also continues at the next block.
_ENDING = frozenset({"bra", "brx", "ret", "exit", "trap"})


@dataclass(slots=True)
class BasicBlock:
    """Instructions that run in sequence.

    scopes: names known at each instruction; labels: names of the labels at the block's start; successors and
    predecessors: block numbers without repetition, a branch's targets before the block that follows it.
    """

    index: int
    instructions: list[Instruction] = field(default_factory=list)
    scopes: list[Names] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    successors: list[int] = field(default_factory=list)
    predecessors: list[int] = field(default_factory=list)


@dataclass(slots=True)
class ControlFlow:
    """Blocks in source order; the first is the entry. The end of the body acts as `ret`.

    unresolved: branches whose target is no label of the function, with that name; they get no edge for it.
    """

    function: Function
    names: Names
    blocks: list[BasicBlock] = field(default_factory=list)
    unresolved: list[tuple[Instruction, str]] = field(default_factory=list)
    _labels: dict[int, int] = field(default_factory=dict)
    _by_name: dict[str, int] = field(default_factory=dict)
    _tables: dict[str, BranchTargets] = field(default_factory=dict)

    @property
    def successors(self) -> list[list[int]]:
        return [block.successors for block in self.blocks]

    def target(self, name: str, names: Names) -> int | None:
        """Block that the label `name` starts, as seen where `names` are visible; None if there is none.

        The innermost scope wins; a label of another scope is known in the whole function (7.1).
        """
        symbol = names.lookup(name)
        if isinstance(symbol, Label):
            return self._labels.get(id(symbol))
        return self._by_name.get(name)

    def table(self, name: str, names: Names) -> BranchTargets | None:
        """The `.branchtargets` list that `name` stands for."""
        symbol = names.lookup(name)
        return symbol if isinstance(symbol, BranchTargets) else self._tables.get(name)

    def branch_targets(self, instruction: Instruction, names: Names) -> list[str]:
        """Label names that a `bra` or `brx.idx` may go to, in order, repetitions kept."""
        family = instruction.opcode.split(".", 1)[0]
        if family == "bra":
            return _label_names(instruction.operands[:1])
        if family == "brx":
            table = self.table("".join(_label_names(instruction.operands[1:2])), names)
            return list(table.targets) if table is not None else _label_names(instruction.operands[1:2])
        return []

    def reachable(self) -> set[int]:
        """Blocks reachable from the entry."""
        return set(reverse_postorder(self.successors))


def control_flow(function: Function, module: Names | Module | None = None) -> ControlFlow:
    """Build the graph. `module` provides the enclosing names. Never raises on a malformed body."""
    if not isinstance(module, Names):
        module = module_names(module) if module is not None else Names()
    flow = ControlFlow(function, module)
    _split(flow, module)
    _connect(flow)
    return flow


def _split(flow: ControlFlow, module: Names) -> None:
    """Cut the body into blocks, and note the block of each label."""
    block = BasicBlock(0)
    flow.blocks.append(block)
    fresh = True  # the current block has no instruction yet
    ended = False
    for item, names in walk(flow.function, module):
        kind = type(item)
        if kind is Instruction:
            if ended:
                block = BasicBlock(len(flow.blocks))
                flow.blocks.append(block)
            block.instructions.append(item)  # type: ignore[arg-type]
            block.scopes.append(names)
            ended = item.opcode.split(".", 1)[0] in _ENDING  # type: ignore[union-attr]
            fresh = False
        elif isinstance(item, Label):
            if not fresh:
                block = BasicBlock(len(flow.blocks))
                flow.blocks.append(block)
                fresh, ended = True, False
            block.labels.append(item.name)
            flow._labels[id(item)] = block.index
            flow._by_name.setdefault(item.name, block.index)
        elif isinstance(item, BranchTargets):
            flow._tables.setdefault(item.label, item)


def _connect(flow: ControlFlow) -> None:
    count = len(flow.blocks)
    for block in flow.blocks:
        following = block.index + 1 if block.index + 1 < count else None
        last = block.instructions[-1] if block.instructions else None
        family = last.opcode.split(".", 1)[0] if last is not None else ""
        edges: dict[int, None] = {}
        if last is not None and family in ("bra", "brx"):
            for name in flow.branch_targets(last, block.scopes[-1]):
                target = flow.target(name, block.scopes[-1])
                if target is None:
                    flow.unresolved.append((last, name))
                else:
                    edges[target] = None
        if (family not in _ENDING or (last is not None and last.guard is not None)) and following is not None:
            edges[following] = None
        block.successors = list(edges)
        for successor in edges:
            flow.blocks[successor].predecessors.append(block.index)


def _label_names(operands: tuple[Operand, ...]) -> list[str]:
    return [operand.name for operand in operands if isinstance(operand, Name)]


def reverse_postorder(successors: Sequence[Sequence[int]], entry: int = 0) -> list[int]:
    """Nodes that `entry` reaches, each before its successors except along back edges. No recursion."""
    if not successors:
        return []
    seen = bytearray(len(successors))
    seen[entry] = 1
    order: list[int] = []
    stack = [(entry, iter(successors[entry]))]
    while stack:
        node, rest = stack[-1]
        for successor in rest:
            if not seen[successor]:
                seen[successor] = 1
                stack.append((successor, iter(successors[successor])))
                break
        else:
            order.append(node)
            stack.pop()
    order.reverse()
    return order


def scopes_of(function: Function) -> list[Scope]:
    """All scopes of a body, the outermost first, in source order."""
    found: list[Scope] = []
    waiting = [function.body] if function.body is not None else []
    while waiting:
        scope = waiting.pop()
        found.append(scope)
        waiting.extend(item for item in reversed(scope.items) if isinstance(item, Scope))
    return found
