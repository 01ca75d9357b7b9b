"""The values of a module by number: globals, constants, and what a function computes; each as the text has it."""

from __future__ import annotations

import struct
from collections.abc import Callable

from ..assembly.types import I1, I32, Type
from . import names
from .names import quoted
from .stream import BitcodeError, Block, Record
from .types import TypeTable

#: A constant that contains others twice, these others twice, and so on would be a text without end.
_LONGEST, _MOST, _DEEPEST = 1 << 22, 1 << 28, 100
_SETTYPE, _NULL, _UNDEF, _INTEGER, _WIDE, _FLOAT, _AGGREGATE, _STRING, _CSTRING = range(1, 10)
_BINARY, _CAST, _GEP, _SELECT, _EXTRACT, _INSERT, _SHUFFLE, _COMPARE, _ASM1 = range(10, 19)
_SHUFFLE2, _INBOUNDS_GEP, _BLOCK_ADDRESS, _DATA, _ASM2, _GEP_AT, _UNARY, _POISON, _EQUIVALENT, _ASM3, _NO_CFI, _ASM = (
    range(19, 31)
)
_GEP_RANGE, _GEP_FLAGS = 31, 32
_FLOAT_LETTERS = {"half": ("H", 4), "bfloat": ("R", 4), "x86_fp80": ("K", 20), "fp128": ("L", 32),
                  "ppc_fp128": ("M", 32)}  # fmt: skip


def signed(value: int) -> int:
    """A number whose sign is its lowest bit."""
    return value >> 1 if not value & 1 else -(value >> 1) or -(1 << 63)


class Values:
    """types, texts: of each value; a text is found when it is first asked for."""

    def __init__(self, table: TypeTable) -> None:
        self.table = table
        self.types: list[Type] = []
        self._texts: list[str | None] = []
        self._records: dict[int, Record] = {}
        self._depth = self._size = 0
        #: The name of a block of a function, for addresses of blocks.
        self.block_name: Callable[[int, int], str] = lambda function, block: f"%{block}"

    def __len__(self) -> int:
        return len(self.types)

    def add(self, type: Type, text: str | None = None) -> int:
        self.types.append(type)
        self._texts.append(text)
        return len(self.types) - 1

    def name(self, number: int, text: str) -> None:
        self._texts[number] = text

    def cut(self, count: int) -> None:
        """Forget the values of a function."""
        for number in range(count, len(self.types)):
            self._records.pop(number, None)
        del self.types[count:], self._texts[count:]

    def type(self, number: int) -> Type:
        if not 0 <= number < len(self.types):
            raise BitcodeError(f"value {number} is not defined")
        return self.types[number]

    def text(self, number: int) -> str:
        """The value as an operand, without its type."""
        self.type(number)
        found = self._texts[number]
        if found is None:
            record = self._records.get(number)
            if record is None or self._depth > _DEEPEST:
                raise BitcodeError(f"value {number} is used where it is not known, or contains itself")
            self._depth += 1
            try:
                found = self._texts[number] = self._constant(self.types[number], record)
            except IndexError:
                raise BitcodeError(f"the record of constant {number} is too short, at byte {record.at}") from None
            self._depth -= 1
            self._size += len(found)
            if len(found) > _LONGEST or self._size > _MOST:
                raise BitcodeError(f"constant {number} is too large, at byte {record.at}")
        return found

    def typed(self, number: int) -> str:
        return f"{self.type(number).text} {self.text(number)}"

    def read(self, block: Block) -> None:
        """Add the constants of a block."""
        type = I32
        for record in block.records:
            if record.code == _SETTYPE:
                type = self.table[record.values[0] if record.values else -1]
            else:
                self._records[self.add(type)] = record

    # --- constants ----------------------------------------------------------------------------------------------------

    def _constant(self, type: Type, record: Record) -> str:
        code, values = record.code, record.values
        if code == _NULL:
            return self._zero(type)
        if code in (_UNDEF, _POISON):
            return "undef" if code == _UNDEF else "poison"
        if code == _INTEGER:
            return self._integer(type, signed(values[0]))
        if code == _WIDE:
            whole = sum((signed(one) & (1 << 64) - 1) << 64 * n for n, one in enumerate(values[:16384]))
            return str(whole - (1 << type.bits) if type.bits and whole >> (type.bits - 1) & 1 else whole)
        if code == _FLOAT:
            return self._float(type, sum(one << 64 * n for n, one in enumerate(values)))
        if code in (_STRING, _CSTRING):
            return "c" + quoted(bytes(one & 255 for one in values) + b"\0" * (code == _CSTRING))
        if code == _DATA:
            return self._data(type, values)
        if code == _AGGREGATE:
            return self._bracketed(type, ", ".join(self._bounded(values)))
        if code in (_ASM1, _ASM2, _ASM3, _ASM):
            return _assembler(values[1:] if code == _ASM else values, code == _ASM1)
        return self._expression(type, code, values)

    def _bounded(self, numbers: list[int]) -> list[str]:
        """The operands with types, as long as that is no text without end."""
        found, size = [], 0
        for number in numbers:
            found.append(self.typed(number))
            size += len(found[-1])
            if size > _LONGEST:
                raise BitcodeError("a constant is too large")
        return found

    def _zero(self, type: Type) -> str:
        if type.kind == "int":
            return "false" if type is I1 else "0"
        if type.kind == "float":
            return self._float(type, 0)
        return {"pointer": "null", "token": "none"}.get(type.kind, "zeroinitializer")

    @staticmethod
    def _integer(type: Type, value: int) -> str:
        if type is I1:
            return "true" if value else "false"
        return str(value)

    @staticmethod
    def _float(type: Type, bits: int) -> str:
        letter, digits = _FLOAT_LETTERS.get(type.text, ("", 16))
        if type.text == "float":  # which the text has as the double of its value
            (value,) = struct.unpack("<f", struct.pack("<I", bits & 0xFFFFFFFF))
            (bits,) = struct.unpack("<Q", struct.pack("<d", value))
        return f"0x{letter}{bits & (1 << 4 * digits) - 1:0{digits}X}"

    def _data(self, type: Type, values: list[int]) -> str:
        if not type.elements:
            raise BitcodeError(f"a list of values has the type {type.text[:80]}")
        element = type.elements[0]
        if type.kind == "array" and element.text == "i8":
            return "c" + quoted(bytes(one & 255 for one in values))
        if element.kind == "float":
            each = [self._float(element, one) for one in values]
        else:
            each = [str(one - (1 << element.bits) if one >> max(element.bits - 1, 0) & 1 else one) for one in values]
        return self._bracketed(type, ", ".join(f"{element.text} {one}" for one in each))

    def _bracketed(self, type: Type, inside: str) -> str:
        resolved = self.table.resolved(type)
        if resolved.kind == "array":
            return f"[{inside}]"
        if resolved.kind == "vector":
            return f"<{inside}>"
        inside = f"{{ {inside} }}" if inside else "{}"
        return f"<{inside}>" if resolved.open else inside

    def _expression(self, type: Type, code: int, values: list[int]) -> str:
        if code == _BINARY:
            op = names.operation(values[0], type)
            words = names.flags(values[3] if len(values) > 3 else 0, names.FLAGS.get(op, ()))
            return f"{op} {words}({self.typed(values[1])}, {self.typed(values[2])})"
        if code == _UNARY:
            return f"fneg ({self.typed(values[1])})"
        if code == _CAST:
            return f"{names.CASTS[values[0]]} ({self.typed(values[2])} to {type.text})"
        if code in (_GEP, _INBOUNDS_GEP, _GEP_AT, _GEP_RANGE, _GEP_FLAGS):
            return self._address(code, values)
        if code == _COMPARE:
            op = "icmp" if values[3] >= names.FIRST_INT_PREDICATE else "fcmp"
            return f"{op} {names.PREDICATES.get(values[3], 'eq')} ({self.typed(values[1])}, {self.typed(values[2])})"
        if code == _SELECT:
            return f"select ({', '.join(self._bounded(values[:3]))})"
        if code == _EXTRACT:
            return f"extractelement ({self.typed(values[1])}, {self.typed(values[-1])})"
        if code == _INSERT:
            return f"insertelement ({self.typed(values[0])}, {self.typed(values[1])}, {self.typed(values[-1])})"
        if code in (_SHUFFLE, _SHUFFLE2):
            return f"shufflevector ({', '.join(self._bounded(values[-3:]))})"
        if code == _BLOCK_ADDRESS:
            return f"blockaddress({self.text(values[1])}, {self.block_name(values[1], values[2])})"
        if code in (_EQUIVALENT, _NO_CFI):
            return f"{'dso_local_equivalent' if code == _EQUIVALENT else 'no_cfi'} {self.text(values[1])}"
        raise BitcodeError(f"there is a constant of the unknown kind {code}")

    def _address(self, code: int, values: list[int]) -> str:
        """An address in a variable: the element's type, where it stands, and pairs of types and values."""
        at, element, words = 0, None, "inbounds " if code == _INBOUNDS_GEP else ""
        if code in (_GEP_AT, _GEP_RANGE, _GEP_FLAGS) or len(values) % 2:
            element, at = self.table[values[0]], 1
        if code in (_GEP_AT, _GEP_RANGE, _GEP_FLAGS):
            words, at = names.flags(values[1] & (1 if code == _GEP_AT else 7), names.ADDRESS_FLAGS), 2
        if code == _GEP_RANGE:
            at += 3  # width and bounds of the range
            words += "inrange(0, 1) "
        pairs = values[at:]
        if element is None:
            element = self.table[pairs[0]].pointee
        if element is None:
            raise BitcodeError("an address has no type")
        operands = ", ".join(self._bounded(pairs[1::2]))
        return f"getelementptr {words}({element.text}, {operands})"


def _assembler(values: list[int], old: bool) -> str:
    flags, size = values[0], values[1]
    code, rest = bytes(one & 255 for one in values[2 : 2 + size]), values[2 + size :]
    constraints = bytes(one & 255 for one in rest[1 : 1 + rest[0]])
    words = ((1, "sideeffect"), (2, "alignstack"), (4, "inteldialect"), (8, "unwind"))
    return f"asm {names.flags(flags & (3 if old else 15), words)}{quoted(code)}, {quoted(constraints)}"
