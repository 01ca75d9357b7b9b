"""Instructions: what their records are, by code; each reader finds the type of the result, and how it is written."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..assembly import types
from ..assembly.types import I1
from . import accesses, calls, names
from .operands import Line, Operands
from .values import signed

TERMINATORS = frozenset(("ret", "br", "switch", "indirectbr", "invoke", "callbr", "resume", "catchswitch", "catchret",
                         "cleanupret", "unreachable"))  # fmt: skip


def _binary(of: Operands) -> Line:
    left, type = of.pair()
    right, code, flags = of.value(), of.take(), of.take(0)
    op = names.operation(code, type)
    words = names.fast_flags(flags) if op[0] == "f" else names.flags(flags, names.FLAGS.get(op, ()))
    return Line(op, type, lambda: f"{op} {words}{of.typed(left, type)}, {of.text(right)}")


def _cast(of: Operands) -> Line:
    value, have = of.pair()
    want, op, flags = of.type(), names.CASTS[of.take()], of.take(0)
    words = names.flags(flags, names.FLAGS.get(op, ())) if op not in ("fptrunc", "fpext") else names.fast_flags(flags)
    return Line(op, want, lambda: f"{op} {words}{of.typed(value, have)} to {want.text}")


def _unary(of: Operands) -> Line:
    value, type = of.pair()
    of.take()
    words = names.fast_flags(of.take(0))
    return Line("fneg", type, lambda: f"fneg {words}{of.typed(value, type)}")


def _freeze(of: Operands) -> Line:
    value, type = of.pair()
    return Line("freeze", type, lambda: f"freeze {of.typed(value, type)}")


def _select(of: Operands) -> Line:
    first, type = of.pair()
    second = of.value()
    condition, chooses = of.pair()
    words = names.fast_flags(of.take(0))
    return Line("select", type, lambda: f"select {words}{of.typed(condition, chooses)}, {of.typed(first, type)}, "
                f"{of.typed(second, type)}")  # fmt: skip


def _old_select(of: Operands) -> Line:
    first, type = of.pair()
    second, condition = of.value(), of.value()
    return Line("select", type, lambda: f"select {of.typed(condition, I1)}, {of.typed(first, type)}, "
                f"{of.typed(second, type)}")  # fmt: skip


def _extract(of: Operands) -> Line:
    vector, index = of.pair(), of.pair()
    type = of.table.element(vector[1], 0)
    return Line("extractelement", type, lambda: f"extractelement {of.typed(*vector)}, {of.typed(*index)}")


def _insert(of: Operands) -> Line:
    vector = of.pair()
    element = of.table.element(vector[1], 0)
    value, index = of.value(), of.pair()
    return Line("insertelement", vector[1], lambda: f"insertelement {of.typed(*vector)}, "
                f"{of.typed(value, element)}, {of.typed(*index)}")  # fmt: skip


def _shuffle(of: Operands) -> Line:
    first, type = of.pair()
    second, mask = of.value(), of.pair()
    made = types.vector(mask[1].count, type.elements[0], type.open)
    return Line("shufflevector", made, lambda: f"shufflevector {of.typed(first, type)}, {of.typed(second, type)}, "
                f"{of.typed(*mask)}")  # fmt: skip


def _compare(of: Operands) -> Line:
    first, type = of.pair()
    second, predicate, flags = of.value(), of.take(), of.take(0)
    op = "icmp" if predicate >= names.FIRST_INT_PREDICATE else "fcmp"
    words = names.flags(flags, names.FLAGS["icmp"]) if op == "icmp" else names.fast_flags(flags)
    word = names.PREDICATES[predicate]
    return Line(op, types.like(type, I1), lambda: f"{op} {words}{word} {of.typed(first, type)}, {of.text(second)}")


def _ret(of: Operands) -> Line:
    if not of.left:
        return Line("ret", None, lambda: "ret void")
    value = of.pair()
    return Line("ret", None, lambda: f"ret {of.typed(*value)}")


def _br(of: Operands) -> Line:
    first = of.take()
    if not of.left:
        return Line("br", None, lambda: f"br label {of.label(first)}")
    second, condition = of.take(), of.value()
    return Line("br", None, lambda: f"br {of.typed(condition, I1)}, label {of.label(first)}, label {of.label(second)}")


def _switch(of: Operands) -> Line:
    type, value, default = of.type(), of.value(), of.take()
    rest = of.rest()

    def text() -> str:
        pairs = zip(rest[::2], rest[1::2], strict=True)
        cases = "".join(f" {of.typed(number, type)}, label {of.label(block)}" for number, block in pairs)
        return f"switch {of.typed(value, type)}, label {of.label(default)} [{cases} ]"

    if len(rest) % 2:
        raise IndexError
    return Line("switch", None, text)


def _unreachable(of: Operands) -> Line:
    return Line("unreachable", None, lambda: "unreachable")


def _phi(of: Operands) -> Line:
    type = of.type()
    rest = of.rest()
    words = names.fast_flags(rest.pop()) if len(rest) % 2 else ""
    here = len(of.values)
    relative = of.absolute(0) == here
    pairs = [(here - signed(one) if relative else one, block) for one, block in zip(rest[::2], rest[1::2], strict=True)]
    return Line("phi", type, lambda: f"phi {words}{type.text} "
                + ", ".join(f"[ {of.text(one)}, {of.label(block)} ]" for one, block in pairs))  # fmt: skip


def _extract_value(of: Operands) -> Line:
    whole, places = of.pair(), of.rest()
    type = whole[1]
    for place in places:
        type = of.table.element(type, place)
    return Line("extractvalue", type, lambda: f"extractvalue {of.typed(*whole)}, {', '.join(map(str, places))}")


def _insert_value(of: Operands) -> Line:
    whole, value, places = of.pair(), of.pair(), of.rest()
    return Line("insertvalue", whole[1], lambda: f"insertvalue {of.typed(*whole)}, {of.typed(*value)}, "
                + ", ".join(map(str, places)))  # fmt: skip


def _va_arg(of: Operands) -> Line:
    have, value, want = of.type(), of.value(), of.type()
    return Line("va_arg", want, lambda: f"va_arg {of.typed(value, have)}, {want.text}")


def _foreign(op: str, has_result: bool, of: Operands) -> Line:
    """What NVVM IR does not have: its name says all."""
    type = of.type() if op == "landingpad" else types.SIMPLE["token"] if has_result else None
    of.bundles.clear()
    return Line(op, type, lambda: op)


#: Records that LLVM has since 19 in place of calls of `llvm.dbg.value` and its like.
_DEBUGGING = {61: "value", 62: "declare", 63: "assign", 64: "value", 65: "label", 66: "declare_value"}


def _record_of_debugging(what: str, of: Operands) -> Line:
    return Line("#dbg", None, lambda: f"#dbg_{what}()", aside=True)


READERS: dict[int, Callable[[Operands], Line]] = {
    2: _binary, 3: _cast, 5: _old_select, 6: _extract, 7: _insert, 8: _shuffle, 9: _compare, 10: _ret, 11: _br,
    12: _switch, 13: calls.invoke, 15: _unreachable, 16: _phi, 19: accesses.alloca, 20: partial(accesses.load, False),
    23: _va_arg, 26: _extract_value, 27: _insert_value, 28: _compare, 29: _select,
    31: partial(_foreign, "indirectbr", False), 34: calls.call, 36: accesses.fence, 37: partial(accesses.cmpxchg, True),
    38: partial(accesses.atomicrmw, True), 39: partial(_foreign, "resume", False),
    40: partial(_foreign, "landingpad", True), 41: partial(accesses.load, True), 43: accesses.address,
    44: partial(accesses.store, False), 45: partial(accesses.store, True), 46: partial(accesses.cmpxchg, False),
    47: partial(_foreign, "landingpad", True), 48: partial(_foreign, "cleanupret", False),
    49: partial(_foreign, "catchret", False), 50: partial(_foreign, "catchpad", True),
    51: partial(_foreign, "cleanuppad", True), 52: partial(_foreign, "catchswitch", False), 56: _unary,
    57: partial(_foreign, "callbr", False), 58: _freeze, 59: partial(accesses.atomicrmw, False),
    **{code: partial(_record_of_debugging, what) for code, what in _DEBUGGING.items()},
}  # fmt: skip
