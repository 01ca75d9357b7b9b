"""tcgen05 (9.7.16): what its instructions do to tensor memory, and in which order (9.7.16.6).

A place in tensor memory is a location that a test declares as `tmem`. `tcgen05.ld`, `.st`, `.cp`, `.shift` and `.mma`
are agents of their own, in no program order. The orders are these, and no others:

- Pairs of instructions of one thread that form a pipeline execute as they were issued (9.7.16.6.2). So do such pairs in
  two threads, if a `fence::before_thread_sync` behind the first hands on to a `fence::after_thread_sync` in front of
  the second (9.7.16.6.3).
- `tcgen05.wait` completes loads or stores of its thread; `tcgen05.commit` makes an mbarrier track the completion of
  what else the thread has issued (9.7.16.6.2.1), and is a fence::before_thread_sync itself (9.7.16.6.4.2). What is
  complete, and in front of a fence::before_thread_sync, precedes what is behind a fence::after_thread_sync that the
  first one hands on to; what a wait has completed also precedes later tcgen05 operations of its thread.

Shared memory is accessed through the async proxy (9.7.16.6.5): behind what precedes the last `fence.proxy.async` or
`fence::after_thread_sync` of the thread.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from ptxtools.records import replace

from .agents import WORD_BYTES, mask, own_events, updated
from .events import Event, Issued, Path, Stage, Value, constant
from .functions import computed
from .programs import TENSOR_MEMORY, Instruction, Operand, TensorCore, Type
from .refusals import not_modelled
from .tensor_loads import REGISTERS, reduced
from .words import refuse

if TYPE_CHECKING:
    from .instructions import Cells
    from .paths import Paths
    from .words import Word

_FENCES = {"before_thread_sync": "before", "after_thread_sync": "after"}
_GROUPS = ("cta_group::1", "cta_group::2")
_TRANSFER = re.compile(
    r"(?P<red>red\.)?sync\.aligned\.(?P<shape>16x64b|16x128b|16x256b|32x32b|16x32bx2)\.x(?P<count>\d+)"
    r"(?(red)\.(?P<rule>(min|max)(\.[us]32|(\.abs)?(\.NaN)?\.f32))|(?P<pack>\.(un)?pack::16b)?\.b32)"
)
#: Modifiers of what is issued, without those that name a group of CTAs.
_FORMS = {
    "mma": re.compile(r"kind::\w+(\.(block_scale|scale_vec::\dX|block\d+|ashift|collector::\w+(::\w+)*))*"),
    "cp": re.compile(r"(128x256b|4x256b|128x128b|64x128b|32x128b)(\.warpx[24](::0[12]_[12]3)?)?"
                     r"(\.b8x16\.b[46]x16_p(32|64))?"),
    "shift": re.compile(r"down"),
    "commit": re.compile(r"mbarrier::arrive::one(\.shared::cluster)?(\.multicast::cluster)?\.b64"),
}  # fmt: skip
#: Of kernels, in which tensor memory is allocated, the modifiers.
_ALLOCATIONS = {
    "alloc": re.compile(r"cta_group::[12]\.sync\.aligned(\.shared::cta)?\.b32"),
    "dealloc": re.compile(r"cta_group::[12]\.sync\.aligned\.b32"),
    "relinquish_alloc_permit": re.compile(r"cta_group::[12]\.sync\.aligned"),
}  # fmt: skip
#: What tcgen05.commit tracks (9.7.16.6.2.1.1).
_TRACKED = ("mma", "cp", "shift")
_RESULT = Type("s", 32)


def read_tensor_core(cells: Cells, word: Word, modifiers: list[str]) -> Instruction:
    """Raises PtxError with position and reason."""
    kind, _, what = (modifiers or [""])[0].partition("::")
    rest = ".".join(modifiers[1:])
    if cells.fixed and kind in _ALLOCATIONS and not _ALLOCATIONS[kind].fullmatch(rest):
        not_modelled(cells.reader, word)
    if kind == "fence" and what in _FENCES and not rest:
        return TensorCore(kind=_FENCES[what], **cells.done())
    if kind == "wait" and what in ("ld", "st") and rest == "sync.aligned":
        return TensorCore(kind="wait", form=what, **cells.done())
    if kind in ("ld", "st") and (match := _TRANSFER.fullmatch(rest)) and (kind == "ld" or not match["red"]):
        return _transfer(cells, word, kind, match)
    if kind in _ALLOCATIONS and cells.fixed:
        from .tensor_kernels import read_allocation

        return read_allocation(cells, word, kind)
    if kind in _FORMS and len(modifiers) > 1 and not what:
        return _issued(cells, word, kind, modifiers[1:])
    return not_modelled(cells.reader, word)


def _transfer(cells: Cells, word: Word, kind: str, match: re.Match[str]) -> Instruction:
    """`r, [d]` or `[d], r`; several registers are consecutive words. With .red `r, s, [d]`."""
    reader = cells.reader
    most, form = int(match["count"]) * REGISTERS[match["shape"]], match["shape"] + ".pack" * bool(match["pack"])
    results: tuple[str, ...] = ()
    if kind == "ld":
        results = tuple(cells.listed(cells.result))
        cells.comma()
    number = len(results)
    if match["red"]:
        results += tuple(cells.listed(cells.result))[:1]
        cells.comma()
    place = cells.place()
    values: tuple[Operand, ...] = ()
    further = 0
    if form.startswith("16x32bx2") and reader.peek().kind == "number" and (kind == "ld" or reader.peek(2).text == ","):
        cells.comma()
        further = reader.number("how far the second address is")
    elif form.startswith("16x32bx2") and cells.fixed:
        reader.fail(f"'{word.text}' needs how far its second address is")
    if kind == "st":
        cells.comma()
        values = tuple(cells.listed(cells.value))
    if (number or len(values)) > most:
        reader.fail(f"'{word.text}' has at most {most} registers", word)
    return TensorCore(kind=kind, form=form, places=(place,), results=results, values=values,
                      reduction=match["rule"] or "", further=further, **cells.done())  # fmt: skip


def _issued(cells: Cells, word: Word, kind: str, modifiers: list[str]) -> Instruction:
    """mma, cp, shift and commit."""
    reader = cells.reader
    rest = list(modifiers)
    variants = [rest.pop(0) for name in ("ws", "sp") if kind == "mma" and name in rest[:1]]
    group = next((modifier for modifier in rest if modifier.startswith("cta_group::")), "")
    rest = [modifier for modifier in rest if modifier != group]
    if group not in _GROUPS or not _FORMS[kind].fullmatch(".".join(rest)):
        not_modelled(reader, word)
    form = ".".join((*variants, *rest))
    if kind != "commit" and cells.fixed:
        from .tensor_kernels import read_issued

        return read_issued(cells, kind, group, form)
    if kind == "commit":
        place, ctas = cells.place(), None
        if "multicast::cluster" in rest:
            cells.comma()
            ctas = cells.value()
        return TensorCore(kind=kind, form=form, group=group, places=(place,), ctas=ctas, **cells.done())
    places = [cells.place()]
    if kind == "shift":
        return TensorCore(kind=kind, form=form, group=group, places=tuple(places), **cells.done())
    cells.comma()
    places.append(cells.place())
    if kind == "cp":
        return TensorCore(kind=kind, form=form, group=group, places=tuple(places), **cells.done())
    cells.comma()
    places.append(cells.place())
    values: list[Operand] = []
    while reader.accept(
        ","
    ):  # metadata and scales in tensor memory; masks; the descriptor, the predicate, a scale of D
        if reader.next.text == "[":
            places.append(cells.place())
        elif reader.next.text == "{":
            cells.listed(cells.value)
        else:
            values.append(cells.value())
    if len(values) < 2:
        reader.fail(f"'{word.text}' needs an instruction descriptor and a predicate")
    return TensorCore(kind=kind, form=form, group=group, places=tuple(places), values=tuple(values), **cells.done())


# --- events -----------------------------------------------------------------------------------------------------------


def pipelined(first: Stage, second: Stage) -> bool:
    """Whether two operations execute in the order in which they were issued (9.7.16.6.2)."""
    if first.group != second.group:
        return False
    pair = first.kind, second.kind
    if pair == ("mma", "mma"):
        return first.accumulator is not None and first.accumulator == second.accumulator
    if pair == ("shift", "cp"):
        return second.form.startswith("4x256b")
    return pair in (("cp", "mma"), ("shift", "mma"), ("mma", "shift"))


def follow_tensor_core(paths: Paths, path: Path, instruction: TensorCore) -> list[Path]:
    kind = instruction.kind
    if kind in ("before", "after"):
        _fence(path, instruction)
    elif kind == "wait":
        issued = tuple(replace(one, complete=one.complete or one.stage.kind == instruction.form)
                       for one in path.copies.issued)  # fmt: skip
        path.copies = replace(path.copies, issued=issued)
        path.events.append(Event("C", path.steps, instruction))
    elif kind == "commit":
        _commit(paths, path, instruction)
    elif paths.test.products is not None:
        from .tensor_kernels import follow_kernel_core

        return follow_kernel_core(paths, path, instruction)
    else:
        operation = Operation(paths, path, instruction, _accumulator(paths, path, instruction))
        _EXECUTED[kind](operation)
        issue(path, operation)
    return [path]


def issue(path: Path, operation: Operation) -> None:
    """An operation is among those that its thread has issued."""
    one = Issued(operation.stage, mask(operation.first, len(path.events)))
    path.copies = replace(path.copies, issued=(*path.copies.issued, one))


def _accumulator(paths: Paths, path: Path, instruction: TensorCore) -> tuple[object, ...] | None:
    """What two products have in common that have one accumulator and one shape."""
    if instruction.kind != "mma":
        return None
    descriptor = paths.operand(path, instruction.values[0])
    if descriptor.needs:
        return None
    kind = re.findall(r"kind::\w+", instruction.form)[0]
    return (*paths.place(path, instruction, instruction.places[0], 0), descriptor.of(()), kind)


def _fence(path: Path, instruction: TensorCore) -> None:
    complete = launched = 0
    if instruction.kind == "before":
        for one in path.copies.issued:
            complete |= one.events if one.complete else 0
            launched |= one.events
    path.events.append(Event("T", path.steps, instruction, instruction.kind, completes=complete, launched=launched))


def _commit(paths: Paths, path: Path, instruction: TensorCore) -> None:
    """An arrival at each mbarrier, behind a fence::before_thread_sync for what is tracked (9.7.16.12.1)."""
    path.copies = replace(path.copies, agents=path.copies.agents + 1)
    tracked = 0
    for one in path.copies.issued:
        tracked |= one.events if one.stage.kind in _TRACKED and one.stage.group == instruction.group else 0
    behind, at, agent = own_events(path), len(path.events), path.copies.agents
    path.events.append(Event("T", path.steps, instruction, "before", agent=agent, completes=tracked, launched=tracked))
    for name, offset in _barriers(paths, path, instruction):
        told = Event("U", path.steps, instruction, "release", "cluster", "generic", name, offset, WORD_BYTES,
                     needs=path.control, returns=False, mbarrier=True, agent=agent, after=1 << at,
                     behind=behind)  # fmt: skip
        path.events.append(updated(told, path, "arrive", [constant(1)]))


def _barriers(paths: Paths, path: Path, instruction: TensorCore) -> Iterator[tuple[str, int]]:
    name, offset = paths.place(path, instruction, instruction.places[0], WORD_BYTES)
    names = [name] if instruction.ctas is None else paths.peers(path, instruction, name, instruction.ctas)
    yield from ((peer, offset) for peer in names)


class Operation:
    """An asynchronous operation whose accesses are appended to a path."""

    def __init__(
        self, paths: Paths, path: Path, instruction: TensorCore, accumulator: tuple[object, ...] | None = None
    ) -> None:
        path.copies = replace(path.copies, agents=path.copies.agents + 1)
        self.paths, self.path, self.instruction = paths, path, instruction
        self.own = [at for at, event in enumerate(path.events) if not event.agent]
        self.first = len(path.events)
        self.stage = Stage(instruction.kind, instruction.group, instruction.form, accumulator)
        self.piped = 0
        for one in path.copies.issued:
            waited = one.complete and one.stage.kind in ("ld", "st")
            self.piped |= one.events if waited or pipelined(one.stage, self.stage) else 0

    def operand(self, at: int) -> Value:
        return self.paths.operand(self.path, self.instruction.values[at])

    def place(self, at: int, *, tensor: bool | None = None) -> tuple[str, int]:
        """An operand's location. tensor: whether it has to be in tensor memory, None if it may be in either."""
        name, offset = self.paths.place(self.path, self.instruction, self.instruction.places[at], 0)
        if tensor is not None and self.in_tensor_memory(name) != tensor:
            what = "is not in tensor memory" if tensor else "is in tensor memory"
            refuse(self.paths.test.source, f"'{name}' {what}", self.instruction.span,
                   f"declare it: 'tmem {name} = …'" if tensor else "")  # fmt: skip
        return name, offset

    def in_tensor_memory(self, name: str) -> bool:
        return self.paths.test.locations[name].space == TENSOR_MEMORY

    def size(self, name: str) -> int:
        return self.paths.types[name].bits // 8

    def elements(self, name: str) -> int:
        """Of a location: how many elements it has."""
        return max(self.paths.test.locations[name].size // self.size(name), 1)

    def read(self, name: str, offset: int) -> Value:
        return self.access("R", name, offset, self.size(name))

    def write(self, name: str, offset: int, value: Value) -> None:
        self.access("W", name, offset, self.size(name), value)

    def access(self, kind: str, name: str, offset: int, bytes_: int, value: Value | None = None) -> Value:
        """Append a read or a write; the value that a read returns."""
        if offset < 0 or offset + bytes_ > self.paths.extent(name):
            refuse(self.paths.test.source, "the offset leads out of the location", self.instruction.span)
        event = self.event(kind, in_tensor=self.in_tensor_memory(name))
        needs = event.needs | (value.needs if value is not None else 0)
        self.path.events.append(replace(event, location=name, offset=offset, size=bytes_, value=value, needs=needs))
        if bytes_ > 8:
            at = len(self.path.events) - 1
            return Value(1 << at, lambda reads: reads[at])
        return self.paths.loaded(len(self.path.events) - 1, self.paths.types[name])

    def result(self, values: list[Value]) -> None:
        """Set the registers of a load."""
        rule, needs = self.instruction.reduction, 0
        for value in values:
            needs |= value.needs
        chosen = [Value(needs, lambda reads: reduced(rule, [value.of(reads) for value in values]))] if rule else []
        self.path.registers.update(zip(self.instruction.results, [*values, *chosen], strict=True))

    def event(self, kind: str, *, in_tensor: bool) -> Event:
        """An access without its place. A write is behind all reads of its operation."""
        path = self.path
        reads = 0 if kind == "R" else sum(1 << at for at in range(self.first, len(path.events))
                                          if path.events[at].kind == "R")  # fmt: skip
        return Event(kind, path.steps, self.instruction, "weak", "", "tensor" if in_tensor else "async",
                     needs=path.control, agent=path.copies.agents, behind=self._in_front(in_tensor) | reads,
                     piped=self.piped, stage=self.stage)  # fmt: skip

    def _in_front(self, in_tensor: bool) -> int:
        """What the thread itself has executed up to its last fence::after_thread_sync, that one included; for accesses
        of shared memory also up to the last `fence.proxy.async` (9.7.16.6.5)."""
        events = self.path.events
        fences = [at for at in self.own if (events[at].kind, events[at].order) == ("T", "after")
                  or (not in_tensor and (events[at].kind, events[at].proxy) == ("P", "async"))]  # fmt: skip
        return sum(1 << at for at in self.own if at <= fences[-1]) if fences else 0


def _loaded(operation: Operation) -> None:
    name, offset = operation.place(0, tensor=True)
    count = len(operation.instruction.results) - bool(operation.instruction.reduction)
    operation.result([operation.read(name, offset + at * operation.size(name)) for at in range(count)])


def _stored(operation: Operation) -> None:
    name, offset = operation.place(0, tensor=True)
    for at in range(len(operation.instruction.values)):
        operation.write(name, offset + at * operation.size(name), operation.operand(at))


def _copied(operation: Operation) -> None:
    """All elements of a location from a place on; the other one has as many."""
    (to, first), (source, start) = operation.place(0, tensor=True), operation.place(1, tensor=False)
    count = operation.elements(to) - first // operation.size(to)
    values = [operation.read(source, start + at * operation.size(source)) for at in range(count)]
    for at, value in enumerate(values):
        operation.write(to, first + at * operation.size(to), value)


def _shifted(operation: Operation) -> None:
    """Each row, an element, gets the value of the next one; the last row stays (9.7.16.9.3)."""
    name, first = operation.place(0, tensor=True)
    places = range(first, operation.elements(name) * operation.size(name), operation.size(name))
    values = [operation.read(name, at) for at in places]
    for at, value in zip(places, values[1:], strict=False):
        operation.write(name, at, value)


def _multiplied(operation: Operation) -> None:
    """Tiles are single numbers. The accumulator is read if the predicate is true; scales and metadata are read."""
    d, offset = operation.place(0, tensor=True)
    factors = [operation.read(*operation.place(1)), operation.read(*operation.place(2, tensor=False))]
    for at in range(3, len(operation.instruction.places)):
        operation.read(*operation.place(at, tensor=True))
    adds = operation.operand(1)
    if adds.needs:
        refuse(operation.paths.test.source, "a predicate that depends on a read is not modelled here",
               operation.instruction.span)  # fmt: skip
    added = operation.read(d, offset) if adds.of(()) else constant(0)
    a, b = factors

    def result(reads: Sequence[int]) -> int:
        return computed("mad", _RESULT, [a.of(reads), b.of(reads), added.of(reads)])

    operation.write(d, offset, Value(a.needs | b.needs | added.needs, result))


_EXECUTED: dict[str, Callable[[Operation], None]] = {
    "ld": _loaded, "st": _stored, "cp": _copied, "shift": _shifted, "mma": _multiplied,
}  # fmt: skip
