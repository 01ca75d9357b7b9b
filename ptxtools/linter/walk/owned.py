"""Memory that belongs to one thread of a walk: its .local variables, and the blocks that it has from malloc or alloca.
What it and others do with pointers to such memory, and with null pointers, that they have from shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ptxtools.ir.nodes import Name, Variable
from ptxtools.ir.symbols import RegisterKey
from ptxtools.records import NamedTuple

from ..accesses import variable_bytes
from ..facts import Line
from ..memory import PAGE
from ..values import THREADS, Terms, Value, shortest
from .computing import compared, differs, reason_of, unknown

if TYPE_CHECKING:
    from .computing import Op
    from .memory import Memory
    from .walker import Group

#: What unknown values are called that are pointers: to a block of malloc, what a thread has from another one, and half
#: of one.
_BLOCK, _HANDED, _HALF = "block of malloc", "handed over", "half of a pointer"
_GENERIC = "cvta.local"
#: Values that a value is one of, or is handed over from, that are looked through.
_DEPTH = 4


class Pointer(NamedTuple):
    """root: the name of the block's, or of the variable's, address; block: whether it is one of malloc; owners: the
    thread that it belongs to, for each of those that have the pointer; offsets: bytes behind its begin, None if not
    known; generic: whether it is a generic address."""

    root: str
    block: bool
    owners: Sequence[int]
    offsets: Sequence[int] | None
    generic: bool


class _Freed(NamedTuple):
    line: Line
    thread: int
    moment: int


def handed_over(base: Value, owners: tuple[int, ...]) -> Value:
    """What threads have that those who own it have called `base`."""
    why = reason_of(base)
    if why[:1] == (_HANDED,) and isinstance(why[1], Value) and isinstance(why[2], tuple):
        before = why[2]
        return handed_over(why[1], tuple([before[owner] for owner in owners]))
    if why[:1] == ("mixed",) and isinstance(why[1], Value) and isinstance(why[2], Value):
        mask = why[3] if isinstance(why[3], int) else 0
        sides = {mask >> owner & 1 for owner in owners}
        if len(sides) == 1:
            return handed_over(why[2] if sides.pop() else why[1], owners)
    if not base.terms:
        return Value((), shortest(iter([base.numbers[owner] for owner in owners])))
    if owners == _OWN:
        return base
    return unknown(True, _HANDED, base, owners)


def is_half(value: Value) -> bool:
    """Whether a value is 32 bits of a pointer."""
    return reason_of(value)[:1] == (_HALF,)


def _half_of(value: Value, which: int) -> tuple[Value, tuple[int, ...]] | None:
    """The pointer that a value is the lower (0) or the higher half of, and the threads that it is from."""
    why, owners = reason_of(value), _OWN
    if why[:1] == (_HANDED,) and isinstance(why[1], Value) and isinstance(why[2], tuple):
        owners = why[2]
        why = reason_of(why[1])
    return (why[1], owners) if why[:1] == (_HALF,) and isinstance(why[1], Value) and why[2] == which else None


def resolved(value: Value, thread: int) -> tuple[Terms, int]:
    """What one thread has, where it is one of two values, or what another thread has."""
    terms, number = value.terms, value.numbers[thread]
    for _ in range(_DEPTH):
        why = reason_of(Value(terms, 0))
        if why[:1] == (_HANDED,) and isinstance(why[1], Value) and isinstance(why[2], tuple):
            inner, thread = why[1], why[2][thread]
        elif why[:1] == ("mixed",) and isinstance(why[1], Value) and isinstance(why[2], Value):
            inner = why[2] if isinstance(why[3], int) and why[3] >> thread & 1 else why[1]
        else:
            break
        terms, number = inner.terms, number + inner.numbers[thread]
    return terms, number


_OWN = tuple(range(THREADS))


class Owned:
    """The blocks and variables of the threads of a walk. active: whether there may be any."""

    def __init__(self, memory: Memory) -> None:
        self._memory, self._walker, self._threads = memory, memory.walker, memory.threads
        self._locals = self._walker.program.locals
        self._sizes: dict[str, int | None] = {}  # of blocks, by the names of their addresses
        self._stacked: set[str] = set()  # of those that alloca gives
        self._freed: dict[tuple[str, int], _Freed] = {}
        program = self._walker.program
        self.active = not memory.threads.apart and bool(self._locals or program.heap or program.stack)

    def of(self, value: Value) -> Pointer | None:
        """The memory that an address is in; None if it is not known to be a thread's own."""
        if not self.active or not value.terms:
            return None
        terms, owners = list(value.terms), _OWN
        for name, count in value.terms:
            why = reason_of(Value(((name, 1),), 0)) if name[0] == "#" and count == 1 else ()
            if why[:1] == (_HANDED,) and isinstance(why[1], Value) and isinstance(why[2], tuple):
                terms.remove((name, 1))
                terms += why[1].terms
                owners = why[2]
        roots = [name for name, count in terms if count == 1 and (name in self._sizes or self._local(name) is not None)]
        if len(roots) != 1:
            return None
        block = roots[0] in self._sizes and roots[0] not in self._stacked
        known = all(term in ((roots[0], 1), (_GENERIC, 1)) for term in terms)
        offsets = value.numbers if known else None
        return Pointer(roots[0], block, owners, offsets, block or (_GENERIC, 1) in terms)

    def _local(self, name: str) -> Variable | None:
        return self._locals.get(name[1:]) if name[0] == "&" else None

    # --- malloc and free ----------------------------------------------------------------------------------------------

    def call(self, group: Group, op: Op, mask: int) -> None:
        """A call of a function of the runtime."""
        if not self.active:
            return
        name = next((operand.name for operand in op.line.item.operands if isinstance(operand, Name)), "")
        given = self._walker.calls.argument(group, op.line)
        if name == "malloc":
            block = unknown(True, _BLOCK, id(op.line.item), self._walker.moment)
            self._sizes[block.terms[0][0]] = given.constant if given is not None else None
            self._walker.calls.give(group, op.line, block, mask)
        elif name == "free" and given is not None:
            pointer = self.of(given)
            if pointer is not None:
                self._free(op, pointer, mask)

    def stack(self, group: Group, op: Op) -> Value:
        """What alloca gives."""
        block = unknown(True, _BLOCK, id(op.line.item), self._walker.moment)
        root = block.terms[0][0]
        self._sizes[root] = self._memory.size_at(group, op, 1) or None
        self._stacked.add(root)
        return block

    # --- pointers in two registers, as lanes hand them on -------------------------------------------------------------

    def parts(self, group: Group, op: Op, mask: int) -> dict[RegisterKey, Value]:
        """What a mov gives that takes a pointer apart, or a shfl that hands on half of one."""
        if not self.active or not self._walker.program.heap or op.line.plan.op is None:
            return {}
        if op.family == "shfl":
            known = self._memory.collectives.result(group, op, mask) if op.into else None
            return {op.into[0]: known} if known is not None else {}
        if op.family != "mov" or not op.line.plan.op.text.endswith(".b64") or (len(op.into), len(op.reads)) != (2, 1):
            return {}
        value = self._walker.value(group, op.reads[0])
        return {key: unknown(True, _HALF, value, half) for half, key in enumerate(op.into)} if value.terms else {}

    def whole(self, group: Group, op: Op) -> Value:
        """What a mov gives that puts several registers together."""
        halves = [_half_of(self._walker.value(group, key), which) for which, key in enumerate(op.reads)]
        if len(halves) == 2 and halves[0] is not None and halves[0] == halves[1]:
            return handed_over(*halves[0])
        return unknown(True, id(op.line.item), self._walker.moment)

    def _free(self, op: Op, pointer: Pointer, mask: int) -> None:
        operand = len(op.line.item.operands) - 1
        moment = self._memory.shadow.now
        for thread in range(THREADS):
            if not mask >> thread & 1:
                continue
            owner, name = pointer.owners[thread], self._threads.name(thread)
            if not pointer.block:
                self._report(op.line, operand, f"{name} frees memory of its stack or a .local variable")
                return
            offset = pointer.offsets[thread] if pointer.offsets is not None else 0
            before = self._freed.get((pointer.root, owner))
            if before is not None:
                who = self._threads.name(before.thread)
                self._report(op.line, operand, f"{name} frees the block that {who} frees in line {{line}}", before.line)
                return
            if offset:
                self._report(op.line, operand, f"{name} frees an address {offset} bytes behind the begin of the block")
                return
            self._freed[pointer.root, owner] = _Freed(op.line, thread, moment)

    # --- accesses -----------------------------------------------------------------------------------------------------

    def access(self, op: Op, operand: int, address: Value, space: str, size: int, mask: int) -> None:
        """An access of a thread's own memory, by itself or another one."""
        pointer = self.of(address)
        if space in ("", "global") and (not address.terms or (len(address.terms) == 1 and differs(address))):
            self._look_at_null(op.line, operand, address, mask)
        if pointer is None or not size or space not in (("", "global") if pointer.block else ("", "local")):
            return
        if pointer.generic != (space != "local"):
            return
        local = self._local(pointer.root)
        total = variable_bytes(local) if local is not None else self._sizes.get(pointer.root)
        for thread in range(THREADS):
            if not mask >> thread & 1:
                continue
            owner, name = pointer.owners[thread], self._threads.name(thread)
            freed = self._freed.get((pointer.root, owner)) if pointer.block else None
            if freed is not None and self._memory.shadow.knows(thread, freed.thread, freed.moment):
                who = "it" if freed.thread == thread else self._threads.name(freed.thread)
                message = f"{name} accesses a block that {who} has freed in line {{line}}"
                self._report(op.line, operand, message, freed.line)
                return
            offset = pointer.offsets[thread] if pointer.offsets is not None else 0
            if total is not None and not 0 <= offset <= total - size:
                what = f"'{pointer.root[1:]}', which has {total} bytes" if local is not None else f"a block of {total}"
                kind = "heap" if pointer.block else "beyond a variable"
                self._report(op.line, operand, f"{name} accesses byte {offset} of {what}", None, kind)
                return
            if local is not None and owner != thread:
                what = f"the address that '{pointer.root[1:]}' has for {self._threads.name(owner)}"
                self._report(op.line, operand, f"{name} accesses its own memory at {what}", None, "local of another")
                return

    def _look_at_null(self, line: Line, operand: int, address: Value, mask: int) -> None:
        """Whether threads access what is behind a null pointer that they have loaded."""
        for thread in range(THREADS):
            terms, number = resolved(address, thread)
            if mask >> thread & 1 and not terms and 0 <= number < PAGE:
                message = f"{self._threads.name(thread)} accesses address {number}, which is that of no memory"
                self._report(line, operand, message, None, "null")
                return

    def _report(self, line: Line, operand: int, message: str, other: Line | None = None, kind: str = "heap") -> None:
        if all(self._granted(name) for name in self._walker.assumed) and not self._memory.blind:
            self._walker.report(kind, line, operand, message, other)

    def _granted(self, name: str) -> bool:
        """Whether an assumption leaves no doubt about what is found: that CTAs have a shape, or malloc gives memory."""
        found = compared(name)
        if found is None or found[1].each != 0 or self.of(found[1]) is None:
            return name == "shape"
        return found[0](0, 0) != self._walker.assumed[name]  # else the pointer is null
