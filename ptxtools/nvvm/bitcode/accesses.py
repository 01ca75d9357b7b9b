"""Instructions that reach memory, and addresses."""

from __future__ import annotations

from ..assembly import types
from ..assembly.types import I1
from . import names
from .operands import Line, Operands
from .stream import BitcodeError

#: Flags of an alloca's record.
_INALLOCA, _HAS_TYPE, _SWIFT_ERROR = 1 << 5, 1 << 6, 1 << 7


def address(of: Operands) -> Line:
    words = names.flags(of.take(), names.ADDRESS_FLAGS)
    element = of.type()
    each = []
    while of.left:
        each.append(of.pair())
    base = each[0][1]
    shape = next((type for _, type in each if type.kind == "vector"), None)
    result = base.scalar
    if of.table.typed:
        inner = element
        for number, _ in each[2:]:
            inner = of.table.element(inner, _constant(of, number) if of.table.resolved(inner).kind == "struct" else 0)
        result = types.pointer(inner, base.scalar.space)
    result = types.like(shape, result) if shape else result
    return Line("getelementptr", result, lambda: f"getelementptr {words}{element.text}, "
                + ", ".join(of.typed(*one) for one in each))  # fmt: skip


def _constant(of: Operands, number: int) -> int:
    text = of.text(number)
    if not text.lstrip("-").isdecimal():
        raise BitcodeError("the number of a field is no constant")
    return int(text[:20])


def alloca(of: Operands) -> Line:
    type, counts, count, flags = of.type(), of.type(), of.take(), of.take()
    space = of.take(0)
    made = type
    if not flags & _HAS_TYPE:
        pointee = type.pointee
        if pointee is None:
            raise BitcodeError("an alloca has no type")
        made, space = pointee, type.space
    align = flags & 31 | (flags >> 8 & 7) << 5
    words = names.flags(flags, ((_INALLOCA, "inalloca"), (_SWIFT_ERROR, "swifterror")))
    after = (f", align {1 << align - 1}" if align else "") + (f", addrspace({space})" if space else "")

    def text() -> str:
        number = of.text(count)
        return f"alloca {words}{made.text}{'' if number == '1' else f', {counts.text} {number}'}{after}"

    return Line("alloca", of.table.pointer(made, space), text)


def _aligned(exponent: int) -> str:
    return f", align {1 << exponent - 1}" if 0 < exponent < 64 else ""


def load(atomic: bool, of: Operands) -> Line:
    pointer, where = of.pair()
    type = of.type() if of.left > (4 if atomic else 2) else where.pointee
    if type is None:
        raise BitcodeError("a load has no type")
    align, volatile = of.take(), of.take()
    words = ("atomic " if atomic else "") + ("volatile " if volatile else "")
    after = _ordering(of) if atomic else ""
    return Line("load", type, lambda: f"load {words}{type.text}, {of.typed(pointer, where)}{after}{_aligned(align)}")


def store(atomic: bool, of: Operands) -> Line:
    pointer, value = of.pair(), of.pair()
    align, volatile = of.take(), of.take()
    words = ("atomic " if atomic else "") + ("volatile " if volatile else "")
    after = _ordering(of) if atomic else ""
    return Line("store", None, lambda: f"store {words}{of.typed(*value)}, {of.typed(*pointer)}{after}{_aligned(align)}")


def _ordering(of: Operands) -> str:
    ordering, scope = names.ORDERINGS[of.take()], of.take(1)
    return f"{of.scope(scope)} {ordering}"


def fence(of: Operands) -> Line:
    words = _ordering(of)
    return Line("fence", None, lambda: f"fence{words}")


def cmpxchg(old: bool, of: Operands) -> Line:
    pointer = of.pair()
    if old and of.table.typed and pointer[1].pointee is not None:
        compare = of.value(), pointer[1].pointee
    else:
        compare = of.pair()
    new, volatile, success, scope = of.value(), of.take(), of.take(), of.take(1)
    failure, weak, align = of.take(success), of.take(0), of.take(0)
    words = ("weak " if weak else "") + ("volatile " if volatile else "")
    orders = f"{of.scope(scope)} {names.ORDERINGS[success]} {names.ORDERINGS[failure]}{_aligned(align)}"
    return Line("cmpxchg", types.struct([compare[1], I1]), lambda: f"cmpxchg {words}{of.typed(*pointer)}, "
                f"{of.typed(*compare)}, {of.typed(new, compare[1])}{orders}")  # fmt: skip


def atomicrmw(old: bool, of: Operands) -> Line:
    pointer = of.pair()
    if old and pointer[1].pointee is not None:
        value = of.value(), pointer[1].pointee
    else:
        value = of.pair()
    operation, volatile, ordering, scope = names.RMW[of.take()], of.take(), of.take(), of.take(1)
    align = of.take(0)
    words = "volatile " if volatile else ""
    after = f"{of.scope(scope)} {names.ORDERINGS[ordering]}{_aligned(align)}"
    return Line("atomicrmw", value[1], lambda: f"atomicrmw {words}{operation} {of.typed(*pointer)}, "
                f"{of.typed(*value)}{after}")  # fmt: skip
