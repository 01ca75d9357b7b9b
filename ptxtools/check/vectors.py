"""Vectors in braces: the number of elements, their kinds, and the type of the whole (6.4.3, 9.4, 9.7.9.4).

A vector has one type, as in ptxas: registers of one type keep it, registers of several compatible types are bits of
their size. This type must suit the operand, not each register's type: `{%r1, %f1}` is a fragment of .f16x2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ptxtools.ir.nodes import Immediate, Name, Operand, Vector
from ptxtools.isa import Opcode, OperandSpec
from ptxtools.isa.types import REGISTER_TYPE, TYPES, TypeInfo, accepts

from . import codes
from .problems import Problem, Setting, describe, undeclared
from .values import CONSTANTS, Scope, Value

#: Numbers of elements for packing and unpacking with mov (9.7.9.4); lengths of coordinates.
_LENGTHS = (1, 2, 4)
#: Types held in untyped registers (5.2.3, 5.2.4), and in vectors also .f16 and .f16x2.
_HELD_AS_BITS = frozenset({"f16", "f16x2", *REGISTER_TYPE})
#: Where ptxas reads special registers in vectors of integers, besides mov: what is stored, and coordinates.
_READ_SPECIAL = frozenset({"st", "stmatrix", "tex", "suld", "sust", "sured", "cp"})
#: Constants as elements: the kind of type of the registers next to them.
_BESIDE = {"s64": "int", "u64": "int", "f32": "float", "f64": "float"}


#: Types that are as loose as 8-bit floats up to a version, ptxas has it: the manual never says so (5.2.3).
_BFLOATS, _TYPED_BFLOATS = frozenset({"bf16", "bf16x2"}), (9, 1)


#: Bits of the widest register where the kind "narrow" stands.
_NARROW_BITS = 16


class VectorFit:
    """Checks one operand against one specification: the rules for vectors."""

    __slots__ = ("index", "op", "scope", "setting", "spec")

    def __init__(self, op: Opcode, spec: OperandSpec, index: int, scope: Scope, setting: Setting) -> None:
        if spec.width == "loose" and spec.type in _BFLOATS and setting.version >= _TYPED_BFLOATS:
            spec = spec._replace(width="exact", kinds=spec.kinds - {"imm"})
        self.op, self.spec, self.index, self.scope, self.setting = op, spec, index, scope, setting

    def _scalar(self, operand: Operand, spec: OperandSpec, part: int | None) -> Iterator[Problem]:
        raise NotImplementedError

    def _mismatch(self, operand: Operand, found: Value, spec: OperandSpec, part: int | None) -> Problem:
        raise NotImplementedError

    def _vector(self, operand: Vector) -> Iterator[Problem]:
        spec, count = self.spec, len(operand.items)
        if "many" in spec.kinds:
            yield from self._many(operand)
        elif not spec.vector and "braced" in spec.kinds and count == 1:
            yield from self._elements(dict(enumerate(operand.items)), spec)
        elif not spec.vector and "vec" not in spec.kinds:
            message = f"'{self.op.text}' takes no vector as operand '{spec.name}'"
            yield self._problem(codes.OPERAND_KIND, message)
        elif not spec.vector:
            yield from self._packed(operand)
        elif count != spec.vector:
            message = f"operand '{spec.name}' of '{self.op.text}' is a vector of {spec.vector}, found {count}"
            yield self._problem(codes.VECTOR_LENGTH, message)
        else:
            yield from self._elements(dict(enumerate(operand.items)), spec)

    def _packed(self, operand: Vector) -> Iterator[Problem]:
        """`{a, b}` instead of an untyped register: the elements must fill it (9.7.9.4)."""
        bits = TYPES[self.spec.type].bits if self.spec.type else 0
        count = len(operand.items)
        if count not in _LENGTHS or bits // count not in (8, 16, 32, 64):
            message = f"{count} elements cannot fill the .{self.spec.type} of '{self.op.text}'"
            yield self._problem(codes.VECTOR_LENGTH, message, None, ("2 or 4 elements of 8 to 64 bits",), "9.7.9.4")
            return
        spec = self.spec._replace(type=f"b{bits // count}", width="bits")
        yield from self._elements(dict(enumerate(operand.items)), spec)

    def _many(self, operand: Vector) -> Iterator[Problem]:
        """Coordinates and offsets of textures and surfaces; extra elements of a longer vector are padding
        (9.7.10.3)."""
        spec, count = self.spec, len(operand.items)
        if not spec.vector:
            yield self._problem(codes.OPERAND_KIND, f"'{self.op.text}' takes no '{spec.name}'")
            return
        if count < spec.vector or count not in _LENGTHS:
            what = f"{spec.vector} element{'s' * (spec.vector > 1)} in a vector of 1, 2 or 4"
            message = f"'{self.op.text}' takes {what} as '{spec.name}', found {count}"
            yield self._problem(codes.VECTOR_LENGTH, message)
            return
        items = dict(enumerate(operand.items))
        if "layer" in spec.kinds and (layer := self.op.variables["layer"]) in items:
            index = {int(layer): items.pop(int(layer))}
            yield from self._elements(index, spec._replace(type="u32", width="exact"))
        yield from self._elements(items, spec)

    # --- elements -----------------------------------------------------------------------------------------------------

    def _elements(self, items: Mapping[int, Operand], spec: OperandSpec) -> Iterator[Problem]:
        """Elements by their index in the braces."""
        sound = True
        for part, item in items.items():
            own = spec._replace(range=spec.last, multiple=1) if spec.last and part == spec.vector - 1 else spec
            for problem in self._element(item, own, part):
                sound = sound and problem.code == codes.TOLERATED
                yield problem
        if sound:
            yield from self._together(items, spec)

    def _element(self, item: Operand, spec: OperandSpec, part: int) -> Iterator[Problem]:
        """Whether it may be an element at all, regardless of its type."""
        if isinstance(item, Name):
            if item.name == "_":
                if self.spec.role != "dst" and "sink" not in self.spec.kinds:
                    yield self._problem(codes.SINK, "'_' discards a result: it cannot be a source", part)
                elif "whole" in self.spec.kinds:
                    message = f"'{self.op.text}' returns '{self.spec.name}' as a whole: no element can be discarded"
                    yield self._problem(codes.SINK, message, part)
                return
            if (unknown := self._undeclared(item, part)) is not None:
                yield unknown
                return
            if self.scope.resolve(item.name).vector:
                yield self._problem(codes.VECTOR_LENGTH, f"{self._what(item)}: it is not a single element", part)
                return
        elif not isinstance(item, Immediate):
            yield self._problem(codes.OPERAND_KIND, f"{self._what(item)}, but a register is required", part)
            return
        special = isinstance(item, Name) and self.scope.resolve(item.name).kind == "sreg"
        whole = spec.type is not None and TYPES[spec.type].kind != "float"
        if special and whole and self.op.family in _READ_SPECIAL and "sreg" not in spec.kinds and spec.role != "dst":
            message = f"special register '{getattr(item, 'name', '')}' is an element of '{spec.name}'"
            yield self._problem(codes.TOLERATED, message, part, ("copy it into a register with mov first",), "10")
            return
        yield from self._scalar(item, spec._replace(kinds=spec.kinds | {"reg"}, type=None), part)

    def _together(self, items: Mapping[int, Operand], spec: OperandSpec) -> Iterator[Problem]:
        """The type of the whole vector."""
        registers: dict[int, Value] = {}
        constants: dict[int, str] = {}
        for part, item in items.items():
            if isinstance(item, Immediate):
                constants[part] = CONSTANTS[item.type].type
            elif isinstance(item, Name) and item.name != "_":
                found = self.scope.resolve(item.name)
                if found.kind == "int":
                    constants[part] = "s64"
                else:
                    registers[part] = found
        infos = [TYPES[found.type] for found in registers.values()]
        kinds = {info.kind for info in infos} - {"bits"}
        if len({info.bits for info in infos}) > 1:
            yield self._problem(codes.VECTOR_ELEMENTS, "registers of a vector must have the same size")
        elif len(kinds) > 1:
            message = "registers of a vector must not mix integer and floating-point types"
            yield self._problem(codes.VECTOR_ELEMENTS, message)
        elif not (infos or constants):
            yield self._problem(codes.SINK, "a vector of only '_' has no type")
        elif (wrong := self._constants(constants, kinds, spec, alone=not infos)) is not None:
            yield wrong
        elif infos and spec.type is not None:
            wrong_ones = [part for part, found in registers.items() if not _suits(spec, found.type)]
            common = _common(infos, set(constants.values()), "unmixed" in spec.kinds)
            if wrong_ones if "each" in spec.kinds else not _suits(spec, common):
                part = next(iter(wrong_ones or registers))
                yield self._mismatch(items[part], registers[part], spec, part)

    def _constants(
        self, constants: dict[int, str], kinds: set[str], spec: OperandSpec, *, alone: bool
    ) -> Problem | None:
        """The first constant that fits neither the operand nor the registers next to it."""
        bits = TYPES[spec.type].bits if spec.type else 0
        as_bits = spec.width == "loose" or not (alone or "each" in spec.kinds)
        wanted = f"b{bits}" if spec.type in _HELD_AS_BITS and as_bits else spec.type
        for part, constant in constants.items():
            name = "an integer" if constant == "s64" else "a floating-point"
            if not constant_fits(constant, wanted):
                message = f"{name} constant cannot be an element of a .{spec.type} vector"
                return self._problem(codes.CONSTANT_KIND, message, part)
            if kinds - {_BESIDE[constant]}:
                message = f"{name} constant does not fit the registers of this vector"
                return self._problem(codes.CONSTANT_KIND, message, part)
            lone = "s64" if wanted == f"b{bits}" else "f64"
            if alone and constant == lone and self._unsized(spec, bits):
                message = f"constants alone do not have a size of {bits} bits: use a register for one of them"
                return self._problem(codes.CONSTANT_KIND, message, part)
        return None

    def _unsized(self, spec: OperandSpec, bits: int) -> bool:
        """Whether 64-bit constants alone cannot form the vector."""
        return spec.width == "loose" or (
            bits == 32 and spec.width in ("exact", "bits") and self.op.family not in ("mov", "tex")
        )

    # --- names and words ----------------------------------------------------------------------------------------------

    def _undeclared(self, operand: Name, part: int | None = None) -> Problem | None:
        if operand.name == "_" or self.scope.resolve(operand.name).kind != "unknown":
            return None
        return undeclared(operand.name, self.scope, self.index, part)

    def _what(self, operand: Operand) -> str:
        return describe(operand, self.scope)

    def _problem(
        self, code: str, message: str, part: int | None = None, help: tuple[str, ...] = (), section: str | None = None
    ) -> Problem:
        return Problem(code, message, self.index, part, help, section)


def _common(infos: Sequence[TypeInfo], constants: set[str], unmixed: bool) -> str:
    """The type of a vector with these registers and constants."""
    names = {info.name for info in infos} | constants
    if unmixed and {info.kind for info in infos} == {"int"}:
        return infos[0].name
    return names.pop() if len(names) == 1 else f"b{infos[0].bits}"


def _suits(spec: OperandSpec, type: str) -> bool:
    """Whether registers of a type may form the vector: integers may stand for floats of their size in all but the
    strictest (`ints` in `isa.patterns`)."""
    assert spec.type is not None
    if "narrow" in spec.kinds and (TYPES[type].bits > _NARROW_BITS or TYPES[type].kind == "float"):
        return False
    if "each" in spec.kinds and spec.width == "ints":
        return accepts(spec.type, type, "typed")
    return accepts(spec.type, type, spec.width) or (
        spec.width in ("wider", "loose") and accepts(spec.type, type, "ints")
    )


def constant_fits(constant: str, wanted: str | None) -> bool:
    """Whether a constant of type s64, u64, f32 (0f…) or f64 (0d…, 1.5) may be an operand of that type (4.5, 9.4)."""
    if wanted is None:
        return True
    info = TYPES[wanted]
    if constant in ("s64", "u64"):
        return info.kind in ("int", "bits", "pred")
    if info.kind == "bits":
        return info.bits == (32 if constant == "f32" else 64)
    return wanted in ("f32", "f64")
