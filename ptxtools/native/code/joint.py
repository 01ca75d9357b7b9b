"""Handlers of several operations in one function, for code that is to be compiled quickly.

What surrounds an operation (its operands, the loop over slices of the warp, the store under the mask, the way to the
next record) takes LLVM as long as ten operations do. So operations from slots to slots are cases of one function, and
`rec.extra` says which of them a record means. Each handler's symbol is another name of the function.
"""

from __future__ import annotations

from collections.abc import Collection

from ptxtools.native.handlers import body_of
from ptxtools.program.operations import LANEWISE
from ptxtools.program.program import LANES, Op, Ref
from ptxtools.semantics.algebra import Value

from . import modes, straight
from .algebra import LLVMAlgebra
from .cases import text_of
from .emitter import Emitter, vector
from .handler import enter, leave
from .keys import OPERANDS_PER_RECORD, Operand, key_of, operand_offset, operands_of, without_guard
from .slices import SLICED, Slices, width_of

#: Operands whose slots are looked up once for all cases.
_COMMON = 4
#: What begins the names of the functions.
_FUNCTION = "joint."


def functions(
    emitter: Emitter, ops: dict[str, Op], often: Collection[str] = ()
) -> tuple[list[str], dict[str, Op], Collection[str]]:
    """Functions for some handlers, with their other names and the table; the handlers that are left; and the names of
    those that are needed often, themselves or for others. often: names of those that are needed often."""
    twins = _twins(ops)
    quick = dict.fromkeys(twins.get(name, name) for name in often if name in ops)
    groups: dict[int, dict[str, Op]] = {}
    for name, op in ops.items():
        if name not in twins and op.kind in LANEWISE and len(operands_of(op)) <= OPERANDS_PER_RECORD:
            groups.setdefault(width_of(emitter, operands_of(op)), {})[name] = op
    texts, short = list[str](), list[str]()
    cases, places = dict[str, int](), dict(twins)
    for width, group in groups.items():
        if len(group) > 1:
            function, joint = f"{_FUNCTION}{width}", _Joint(emitter, width)
            text, numbers = joint.function(function, group, quick)
            short += joint.short
            if numbers:
                texts.append(text)
                cases |= numbers
                places |= dict.fromkeys(numbers, function)
        else:
            short += [name for name in group if name in quick]
    alone = straight.functions(emitter, {name: ops[name] for name in short})
    texts += alone.values()
    left = {name: op for name, op in ops.items() if name not in places and name not in alone}
    cases |= {name: cases[twin] for name, twin in twins.items() if twin in cases}
    texts += [
        f"@{name} = alias void (ptr, ptr, i32, ptr, ptr), ptr @{places.get(at, at)}" for name, at in places.items()
    ]
    texts.append(text_of(ops, cases))
    return texts, left, quick


def _twins(ops: dict[str, Op]) -> dict[str, str]:
    """Of handlers that differ in nothing but a guard, those without, and the one that does for both."""
    keys = {name: key_of(op) for name, op in ops.items() if op.kind in SLICED}
    guarded = {without_guard(keys[name]): name for name in keys if ops[name].guard is not None}
    twins = {name: guarded.get(without_guard(key), "") for name, key in keys.items() if ops[name].guard is None}
    return {name: twin for name, twin in twins.items() if twin}


class _Joint:
    """One function under construction. width: lanes of its slices."""

    def __init__(self, emitter: Emitter, width: int) -> None:
        self.code, self.width = emitter, width
        self.first, self.rest = emitter.name("first"), emitter.name("rest")
        self.again = emitter.label("again")
        #: The slots of the first operands.
        self.pointers: dict[Operand, str] = {}
        #: By the type of a result, where cases go on that leave one.
        self.tails: dict[str, str] = {}
        #: Handlers that are short enough for functions of their own.
        self.short: list[str] = []

    def function(self, name: str, ops: dict[str, Op], often: Collection[str]) -> tuple[str, dict[str, int]]:
        """The function, and the cases that it has. often: handlers that are none if they are short."""
        e = self.code
        enter(e, guarded=True)
        which = e.field("rec.extra")
        for number in map(Operand, range(_COMMON)):
            slot = e.value(f"load i32, ptr {e.value(f'getelementptr i8, ptr %ip, i64 {operand_offset(number)}')}")
            self.pointers[number] = e.value(f"getelementptr i8, ptr %fp, i32 {slot}")
        e.jump("slices")
        e.begin("slices")
        place = len(e.lines)
        e.lines += [""] * 3
        cases = self._cases(ops, often)
        self._tails(list(cases.values()))
        e.begin(self.again)
        following = e.value(f"add i64 {self.first}, {self.width}")
        rest = e.value(f"lshr i32 {self.rest}, {self.width}")
        e.branch(e.value(f"icmp eq i64 {following}, {LANES}"), "next", "slices")
        table = " ".join(f"i32 {number}, label %{case.label}" for number, case in enumerate(cases.values()))
        e.lines[place : place + 3] = [
            f"  {self.first} = phi i64 [0, %body], [{following}, %{self.again}]",
            f"  {self.rest} = phi i32 [%m, %body], [{rest}, %{self.again}]",
            f"  switch i32 {which}, label %{self.again} [{table}]",
        ]
        return leave(e, name), {name: number for number, name in enumerate(cases)}

    def _cases(self, ops: dict[str, Op], often: Collection[str]) -> dict[str, _Case]:
        """A block for each operation but short ones that are needed often, and those that change the rounding mode, for
        which all others would have to."""
        e, cases = self.code, dict[str, _Case]()
        for name, op in ops.items():
            start = len(e.lines)
            case = _Case(self, op)
            body_of(op.kind)(case)
            short = name in often and straight.is_short(len(e.lines) - start, self.width)
            if short:
                self.short.append(name)
            if short or modes.changes(e.lines[start:]):
                del e.lines[start:]
            else:
                cases[name] = case
        return cases

    def _tails(self, cases: list[_Case]) -> None:
        """For each type of results, a block that stores one."""
        for kind, label in self.tails.items():
            alike = [case for case in cases if case.result is not None and case.result[0] == kind]
            if not alike:
                continue
            self.code.begin(label)
            values = ", ".join(f"[{case.result[1]}, %{case.last}]" for case in alike if case.result is not None)
            vectors = "i32" if kind == "pred" else vector(kind, self.width)
            alike[0].finish(kind, self.code.value(f"phi {vectors} {values}"))


class _Case(Slices):
    """An operation in such a function."""

    def __init__(self, joint: _Joint, op: Op) -> None:
        self._joint, self.label = joint, joint.code.label("case")
        #: Its result, if there is one and no more, by its type: a slice, or a slice's bits; and the block it ends in.
        self.result: tuple[str, Value] | None = None
        self.last = ""
        results = [ref for ref in op.dst if ref is not None]
        self._single = len(results) == 1 and results[0].type != "b128"
        super().__init__(joint.code, op)

    def _enter(self) -> None:
        self.code.begin(self.label)
        self._pointers |= self._joint.pointers

    def begin(self, width: int) -> None:
        joint = self._joint
        self.width, self.first, self.rest = width, joint.first, joint.rest
        self.algebra = LLVMAlgebra(self.code, width, self._context)
        self._phis = len(self.code.lines) - 2

    def go_on(self) -> None:
        self._divide()
        self.last, joint = self._block(), self._joint
        if self.result is None:
            self.code.jump(joint.again)
            return
        kind = self.result[0]
        if kind not in joint.tails:
            joint.tails[kind] = self.code.label("store")
        self.code.jump(joint.tails[kind])

    def _store_predicate(self, ref: Ref, value: Value) -> None:
        if self._single:
            self.result = "pred", self.bits(value)
        else:
            super()._store_predicate(ref, value)

    def _store(self, pairs: list[tuple[str, str, str]], full: bool | None) -> None:
        if self._single:
            self.result = pairs[0][1:]
            self.go_on()
        else:
            super()._store(pairs, full)

    def finish(self, kind: str, value: Value) -> None:
        """Store a result of this type, whichever case it comes from; the first operand is the place."""
        self.result, self._single = None, False
        self.begin(self.width)
        pointer = self._joint.pointers[Operand(0)]
        if kind == "pred":
            self._merge(pointer, value)
            self.go_on()
        else:
            self._store([(pointer, kind, value)], None)
