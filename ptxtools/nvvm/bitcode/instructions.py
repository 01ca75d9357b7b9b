"""Instructions: what their records are, by code; each reader finds the type of the result, and how it is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ..assembly import types
from ..assembly.types import I1, Type
from . import names
from .attributes import RESULT, Attributes
from .metadata import Metadata
from .stream import BitcodeError, Record
from .types import TypeTable
from .values import Values, signed

TERMINATORS = frozenset(("ret", "br", "switch", "indirectbr", "invoke", "callbr", "resume", "catchswitch", "catchret",
                         "cleanupret", "unreachable"))  # fmt: skip
#: Flags of a call's record, and of an alloca's.
_TAIL, _MUST_TAIL, _EXPLICIT, _NO_TAIL, _FAST = 1, 1 << 14, 1 << 15, 1 << 16, 1 << 17
_INALLOCA, _HAS_TYPE, _SWIFT_ERROR = 1 << 5, 1 << 6, 1 << 7
_INVOKE_EXPLICIT = 1 << 13


@dataclass(slots=True)
class Line:
    """op: the instruction; type: of its result, None without one; text: how it is written, behind the result; aside:
    whether it is no instruction, but stands among them."""

    op: str
    type: Type | None
    text: Callable[[], str]
    aside: bool = False


class Operands:
    """The operands of a record, one after the other, and what instructions need of the module."""

    def __init__(self, values: Values, metadata: Metadata, attributes: Attributes, relative: bool) -> None:
        self.values, self.metadata, self.attributes = values, metadata, attributes
        self.table: TypeTable = values.table
        self._relative = relative
        self.bundles: list[list[int]] = []
        self.tags: list[str] = []
        self.scopes: list[str] = []
        self.label: Callable[[int], str] = str
        self._numbers: list[int] = []
        self._at = 0

    def begin(self, record: Record) -> None:
        self._numbers, self._at = record.values, 0

    @property
    def left(self) -> int:
        return len(self._numbers) - self._at

    def take(self, default: int | None = None) -> int:
        """The next operand; IndexError if there is none, and no default."""
        if default is not None and not self.left:
            return default
        self._at += 1
        return self._numbers[self._at - 1]

    def rest(self) -> list[int]:
        found = self._numbers[self._at :]
        self._at = len(self._numbers)
        return found

    def type(self) -> Type:
        return self.table[self.take()]

    def absolute(self, number: int) -> int:
        """The number of a value that a record has relative to the instruction."""
        return (len(self.values) - number) & 0xFFFFFFFF if self._relative else number

    def value(self) -> int:
        """A value whose type is known from elsewhere."""
        return self.absolute(self.take())

    def pair(self) -> tuple[int, Type]:
        """A value; if it comes later, its type follows."""
        number = self.value()
        return number, self.values.types[number] if number < len(self.values) else self.type()

    def typed(self, number: int, type: Type) -> str:
        return f"{type.text} {self.values.text(number)}"

    def text(self, number: int) -> str:
        return self.values.text(number)

    def scope(self, number: int) -> str:
        name = self.scopes[number] if number < len(self.scopes) else "singlethread" if number == 0 else ""
        return f" syncscope({names.quoted(name)})" if name else ""

    def operand(self, type: Type) -> Callable[[], str]:
        """The next value, of this type, as it is written without its type; metadata has its own numbers."""
        number = self.value()
        if type.kind == "metadata":
            return partial(self.metadata.ref, number)
        return partial(self.text, number)


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


def _address(of: Operands) -> Line:
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


def _phi(of: Operands) -> Line:
    type = of.type()
    rest = of.rest()
    words = names.fast_flags(rest.pop()) if len(rest) % 2 else ""
    here = len(of.values)
    relative = of.absolute(0) == here
    pairs = [(here - signed(one) if relative else one, block) for one, block in zip(rest[::2], rest[1::2], strict=True)]
    return Line("phi", type, lambda: f"phi {words}{type.text} "
                + ", ".join(f"[ {of.text(one)}, {of.label(block)} ]" for one, block in pairs))  # fmt: skip


def _alloca(of: Operands) -> Line:
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


def _load(atomic: bool, of: Operands) -> Line:
    pointer, where = of.pair()
    type = of.type() if of.left > (4 if atomic else 2) else where.pointee
    if type is None:
        raise BitcodeError("a load has no type")
    align, volatile = of.take(), of.take()
    words = ("atomic " if atomic else "") + ("volatile " if volatile else "")
    after = _ordering(of) if atomic else ""
    return Line("load", type, lambda: f"load {words}{type.text}, {of.typed(pointer, where)}{after}{_aligned(align)}")


def _store(atomic: bool, of: Operands) -> Line:
    pointer, value = of.pair(), of.pair()
    align, volatile = of.take(), of.take()
    words = ("atomic " if atomic else "") + ("volatile " if volatile else "")
    after = _ordering(of) if atomic else ""
    return Line("store", None, lambda: f"store {words}{of.typed(*value)}, {of.typed(*pointer)}{after}{_aligned(align)}")


def _ordering(of: Operands) -> str:
    ordering, scope = names.ORDERINGS[of.take()], of.take(1)
    return f"{of.scope(scope)} {ordering}"


def _fence(of: Operands) -> Line:
    words = _ordering(of)
    return Line("fence", None, lambda: f"fence{words}")


def _cmpxchg(old: bool, of: Operands) -> Line:
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


def _atomicrmw(old: bool, of: Operands) -> Line:
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


def _call(of: Operands) -> Line:
    attributes, bits = of.take(), of.take()
    fast = names.fast_flags(of.take()) if bits & _FAST else ""
    written = of.type() if bits & _EXPLICIT else None
    callee, pointer = of.pair()
    function = written or pointer.pointee
    if function is None or function.kind != "function":
        raise BitcodeError("a call names no type of a function")
    given = [
        (type, of.operand(type), of.attributes.of(attributes, n)) for n, type in enumerate(function.elements[1:], 1)
    ]
    while of.left:
        number, type = of.pair()
        given.append((type, partial(of.text, number), of.attributes.of(attributes, len(given) + 1)))
    word = "musttail " if bits & _MUST_TAIL else "notail " if bits & _NO_TAIL else "tail " if bits & _TAIL else ""
    convention = _convention(bits >> 1 & 0x3FF)
    shown = function.text if function.open else function.elements[0].text
    head = f"{word}call {fast}{convention}{of.attributes.of(attributes, RESULT).lstrip()}".rstrip()
    groups, bundles = of.attributes.of_function(attributes), _bundles(of)
    return Line("call", function.elements[0], lambda: f"{head} {shown} {of.text(callee)}("
                + ", ".join(f"{type.text}{words} {value()}" for type, value, words in given)
                + f"){groups}{bundles}")  # fmt: skip


def _convention(number: int) -> str:
    return f"{word} " if (word := names.CONVENTIONS.get(number, f"cc {number}")) else ""


def _bundles(of: Operands) -> str:
    """Bundles stand in records before their call."""
    tags = [of.tags[one[0]] if one and one[0] < len(of.tags) else "" for one in of.bundles]
    of.bundles.clear()
    return f" [ {', '.join(f'{names.quoted(tag)}()' for tag in tags)} ]" if tags else ""


def _invoke(of: Operands) -> Line:
    of.take()
    bits, normal, unwind = of.take(), of.take(), of.take()
    function = of.type() if bits & _INVOKE_EXPLICIT else None
    callee, pointer = of.pair()
    function = function or pointer.pointee
    of.bundles.clear()
    return Line("invoke", function.elements[0] if function else None, lambda: f"invoke void {of.text(callee)}() "
                f"to label {of.label(normal)} unwind label {of.label(unwind)}")  # fmt: skip


def _foreign(op: str, has_result: bool, of: Operands) -> Line:
    """What NVVM IR does not have: its name says all."""
    type = of.type() if op == "landingpad" else types.SIMPLE["token"] if has_result else None
    of.bundles.clear()
    return Line(op, type, lambda: op)


def _record_of_debugging(of: Operands) -> Line:
    """Records that LLVM has since 19 in place of calls of `llvm.dbg.value`."""
    return Line("#dbg", None, lambda: "#dbg_value()", aside=True)


READERS: dict[int, Callable[[Operands], Line]] = {
    2: _binary, 3: _cast, 5: _old_select, 6: _extract, 7: _insert, 8: _shuffle, 9: _compare, 10: _ret, 11: _br,
    12: _switch, 13: _invoke, 15: lambda of: Line("unreachable", None, lambda: "unreachable"), 16: _phi, 19: _alloca,
    20: partial(_load, False), 23: _va_arg, 26: _extract_value, 27: _insert_value, 28: _compare, 29: _select,
    31: partial(_foreign, "indirectbr", False), 34: _call, 36: _fence, 37: partial(_cmpxchg, True),
    38: partial(_atomicrmw, True), 39: partial(_foreign, "resume", False), 40: partial(_foreign, "landingpad", True),
    41: partial(_load, True), 43: _address, 44: partial(_store, False), 45: partial(_store, True),
    46: partial(_cmpxchg, False), 47: partial(_foreign, "landingpad", True),
    48: partial(_foreign, "cleanupret", False), 49: partial(_foreign, "catchret", False),
    50: partial(_foreign, "catchpad", True), 51: partial(_foreign, "cleanuppad", True),
    52: partial(_foreign, "catchswitch", False), 56: _unary, 57: partial(_foreign, "callbr", False), 58: _freeze,
    59: partial(_atomicrmw, False), **dict.fromkeys(range(61, 68), _record_of_debugging),
}  # fmt: skip
