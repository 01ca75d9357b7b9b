"""Values of a function under lowering: registers, constants and fixed places, by number until slots are given.

Each value has one `Ref`, shared by all operations that use it. `Ref.slot` is the value's number; when slots are
assigned it becomes the slot, for all its users at once. Two values are made one by giving their `Ref`s one number.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

from ptxtools.ir import Alias, Element, Function, Immediate, Name, Negated, Operand, SymbolOffset, Variable
from ptxtools.ir.statics import STATIC_SPACES
from ptxtools.ir.symbols import Names
from ptxtools.isa.types import TYPES
from ptxtools.program.layout import SharedLayout, element_bytes, storage_of
from ptxtools.program.program import SHARED_WINDOW, STACK_POINTER, ByteOffset, Ref, Slot

from .registry import Unsupported

_COMPONENTS = {"x": 0, "y": 1, "z": 2, "w": 3, "r": 0, "g": 1, "b": 2, "a": 3}
_BITS = {"pred": 1, "b16": 16, "b32": 32, "b64": 64, "b128": 128}


class Pointer:
    """An address: `base` (None for none) + `offset`, in state space `space`."""

    __slots__ = ("base", "offset", "space")

    def __init__(self, base: Ref | None, offset: int, space: str) -> None:
        self.base, self.offset, self.space = base, offset, space


class Values:
    """Number values, and find the value of an operand."""

    def __init__(
        self, addresses: Callable[[str], int], code: dict[str, int], shared: SharedLayout, statics: dict[int, str]
    ) -> None:
        """statics: names on the device of variables that functions declare, by identity."""
        self.refs: list[Ref] = []
        self.fixed: dict[int, Slot] = {}  # number -> slot in this frame
        self.outgoing: dict[int, Slot] = {}  # number -> slot in the frame of a callee
        self.constants: dict[int, int] = {}  # number -> value
        self.launch: dict[int, tuple[str, str, int]] = {}  # number -> source, name, offset of a launch constant
        self.local_offsets: dict[int, ByteOffset] = {}  # identity of a variable -> offset from the stack pointer
        self.array_addresses: dict[int, Ref] = {}  # identity of an unsized parameter -> its address in local memory
        self.parameter_offsets: dict[int, ByteOffset] = {}  # identity of a kernel parameter -> offset in its block
        self._by_constant: dict[tuple[str, int], Ref] = {}
        self._by_launch: dict[tuple[str, str, int, str], Ref] = {}
        self._by_scope: dict[int, dict[str, Ref | tuple[Ref, ...]]] = {}
        self._by_variable: dict[tuple[int, str], Ref | tuple[Ref, ...]] = {}
        self.types: dict[int, str] = {}  # number of a register -> declared type
        self.names = Names()
        self.known: dict[str, Ref | tuple[Ref, ...]] = {}
        self._addresses, self._code, self._shared, self._statics = addresses, code, shared, statics
        self.stack_pointer = self.new("b64")
        self.fixed[self.stack_pointer.slot] = STACK_POINTER

    # --- making values ------------------------------------------------------------------------------------------------

    def new(self, storage: str) -> Ref:
        ref = Ref(Slot(len(self.refs)), storage)
        self.refs.append(ref)
        return ref

    def at(self, slot: Slot, storage: str) -> Ref:
        """A value that lies at a given slot of this frame."""
        ref = self.new(storage)
        self.fixed[ref.slot] = slot
        return ref

    def beyond(self, slot: Slot, storage: str) -> Ref:
        """A value at a given slot of a callee's frame."""
        ref = self.new(storage)
        self.outgoing[ref.slot] = slot
        return ref

    def constant(self, value: int, storage: str) -> Ref:
        """The same bits in every lane; negative values wrap."""
        value &= (1 << _BITS[storage]) - 1
        ref = self._by_constant.get((storage, value))
        if ref is None:
            ref = self._by_constant[storage, value] = self.new(storage)
            self.constants[ref.slot] = value
        return ref

    def launch_constant(self, source: str, name: str, offset: int, storage: str) -> Ref:
        key = (source, name, offset, storage)
        ref = self._by_launch.get(key)
        if ref is None:
            ref = self._by_launch[key] = self.new(storage)
            self.launch[ref.slot] = (source, name, offset)
        return ref

    # --- registers ----------------------------------------------------------------------------------------------------

    def enter(self, names: Names) -> None:
        """From now on, look names up in this scope."""
        if names is not self.names:
            self.names = names
            self.known = self._by_scope.setdefault(id(names), {})

    def bind(self, variable: Variable, refs: list[Ref]) -> None:
        """Bind a register to given values (`.reg` parameters), one for each component."""
        self._by_variable[id(variable), variable.name] = tuple(refs) if variable.vector > 1 else refs[0]
        self.types.update((ref.slot, variable.type) for ref in refs)

    def register(self, name: str) -> Ref | tuple[Ref, ...] | None:
        """The register named `name`, one value per component for a vector; None for anything else."""
        found = self.known.get(name)
        if found is not None:
            return found
        symbol = self.names.lookup(name)
        if symbol is None and "." in name:
            return self._component(name)
        if not isinstance(symbol, Variable) or symbol.space != "reg":
            return None
        key = (id(symbol), name)
        found = self._by_variable.get(key)
        if found is None:
            found = self._by_variable[key] = self._declared(symbol)
        self.known[name] = found
        return found

    def _declared(self, variable: Variable) -> Ref | tuple[Ref, ...]:
        storage = storage_of(variable.type)
        if variable.vector == 1:
            ref = self.new(storage)
            self.types[ref.slot] = variable.type
            return ref
        refs = tuple(self.new(storage) for _ in range(variable.vector))
        self.types.update((ref.slot, variable.type) for ref in refs)
        return refs

    def _component(self, name: str) -> Ref | None:
        base, _, part = name.rpartition(".")
        vector = self.register(base)
        place = _COMPONENTS.get(part, 4)
        if not isinstance(vector, tuple) or place >= len(vector):
            return None
        self.known[name] = vector[place]
        return vector[place]

    def registers(self, names: Names) -> Iterator[tuple[str, Ref | tuple[Ref, ...]]]:
        """The registers met so far that a scope sees."""
        for (variable, name), found in self._by_variable.items():
            if id(names.lookup(name)) == variable:
                yield name, found

    def declared_type(self, operand: Operand) -> str | None:
        """Type of the register that an operand names."""
        if isinstance(operand, Name):
            ref = self.register(operand.name)
            if isinstance(ref, Ref):
                return self.types.get(ref.slot)
        return None

    # --- operands -----------------------------------------------------------------------------------------------------

    def destination(self, operand: Operand) -> Ref | None:
        """The register that is written; None for the sink."""
        if type(operand) is Name:
            ref = self.known.get(operand.name)
            if ref.__class__ is Ref:
                return ref
            if operand.name == "_":
                return None
            ref = self.register(operand.name)
            if isinstance(ref, Ref):
                return ref
            raise Unsupported(f"'{operand.name}' is not a register that can be written here")
        raise Unsupported("the destination is not a register")

    def source(self, operand: Operand, type_name: str | None) -> Ref:
        """The value that is read as `type_name`; constants and addresses become constant slots."""
        kind = type(operand)
        if kind is Name:
            ref = self.known.get(operand.name)  # type: ignore[union-attr]
            if ref.__class__ is Ref:
                return ref
            return self._named(operand.name, type_name)  # type: ignore[union-attr]
        if kind is Immediate:
            type_name = type_name or ("u32" if operand.type[0] in "su" else operand.type)  # type: ignore[union-attr]
            return self.constant(immediate_bits(operand, type_name), storage_of(type_name))  # type: ignore[arg-type]
        if isinstance(operand, Negated):
            if operand.operator != "!":
                raise Unsupported("a negated register is not allowed here")
            return self.inverse(self.source(operand.operand, "pred"))
        if isinstance(operand, SymbolOffset) and isinstance(ref := self.register(operand.name), Ref):
            bits = 64 if ref.type == "b64" else 32
            return self.compute(
                f"add.u{bits}", (f"u{bits}",) * 2, (ref, self.constant(operand.offset, ref.type)), f"u{bits}"
            )
        if isinstance(operand, (SymbolOffset, Element)):
            return self.address_value(self.pointer_to(operand), type_name)
        raise Unsupported("an operand of this form is not supported here")

    def _named(self, name: str, type_name: str | None) -> Ref:
        ref = self.register(name)
        if isinstance(ref, Ref):
            return ref
        if isinstance(ref, tuple):
            raise Unsupported(f"vector register '{name}' is not allowed here")
        if self.names.lookup(name) is None and name[0] == "%":
            return self.special(name, type_name)
        return self.address_value(self.pointer_to(Name(name)), type_name)

    def inverse(self, predicate: Ref) -> Ref:
        raise NotImplementedError

    def compute(
        self, text: str, type_names: tuple[str, ...], sources: tuple[Ref, ...], result: str, storage: str | None = None
    ) -> Ref:
        raise NotImplementedError

    def special(self, name: str, type_name: str | None) -> Ref:
        raise NotImplementedError

    def address_value(self, pointer: Pointer, type_name: str | None) -> Ref:
        raise NotImplementedError

    @property
    def clustered(self) -> bool:
        """Whether addresses of shared memory carry the rank of a CTA."""
        raise NotImplementedError

    def cta_window(self) -> Ref:
        raise NotImplementedError

    def indexed(self, pointer: Pointer, register: str, size: int) -> Pointer:
        raise NotImplementedError

    # --- addresses ----------------------------------------------------------------------------------------------------

    def pointer_to(self, operand: Name | SymbolOffset | Element) -> Pointer:
        """Address of a variable, array element or function in its own state space."""
        symbol = self.names.lookup(operand.name)
        extra = 0
        if isinstance(operand, SymbolOffset):
            extra = operand.offset
        elif isinstance(operand, Element) and isinstance(symbol, Variable):
            extra = operand.index * element_bytes(symbol)
            if operand.register is not None:
                return self.indexed(self._pointer_to_variable(symbol, extra), operand.register, element_bytes(symbol))
        if isinstance(symbol, (Function, Alias)):
            name = symbol.target if isinstance(symbol, Alias) else symbol.name
            if name in self._code:
                return Pointer(None, self._code[name] + extra, "code")
        if isinstance(symbol, Variable):
            return self._pointer_to_variable(symbol, extra)
        raise Unsupported(f"'{operand.name}' has no address")

    def _pointer_to_variable(self, variable: Variable, extra: int) -> Pointer:
        key = id(variable)
        if variable.space in STATIC_SPACES:
            name = self._statics.get(key, variable.name)
            return Pointer(None, self._addresses(name) + extra, variable.space)
        if key in self._shared.offsets:
            base = self.cta_window() if self.clustered else None
            return Pointer(base, self._shared.offsets[key] + extra, "shared")
        if key in self.parameter_offsets:
            return Pointer(None, self.parameter_offsets[key] + extra, "param")
        if key in self.local_offsets:
            return Pointer(self.stack_pointer, self.local_offsets[key] + extra, "local")
        if key in self.array_addresses:
            return Pointer(self.array_addresses[key], extra, "local")
        raise Unsupported(f"'{variable.name}' in .{variable.space} has no address")


def generic(pointer: Pointer) -> Pointer:
    """The pointer as the generic address space sees it, where that differs by a constant (shared memory)."""
    if pointer.space == "shared":
        return Pointer(pointer.base, pointer.offset + SHARED_WINDOW, "generic")
    return pointer


_FLOATS = {"f16": ("<e", "<H"), "f32": ("<f", "<I"), "f64": ("<d", "<Q")}


def immediate_bits(operand: Immediate, type_name: str) -> int:
    """The bits of a constant for an operand of a type (4.5): integers wrap, floats are rounded to the type."""
    if operand.type not in ("f32", "f64"):
        return int(operand.value != 0) if type_name == "pred" else operand.value
    info = TYPES[type_name]
    wanted = type_name if type_name in _FLOATS else {16: "f16", 32: "f32", 64: "f64"}.get(info.bits, operand.type)
    if wanted == operand.type or info.kind == "int":
        return operand.value
    value = struct.unpack(_FLOATS[operand.type][0], operand.value.to_bytes(8 if operand.type == "f64" else 4, "little"))
    code, integer = _FLOATS[wanted]
    try:
        packed = struct.pack(code, value[0])
    except OverflowError:
        packed = struct.pack(code, float("inf") if value[0] > 0 else float("-inf"))
    return int(struct.unpack(integer, packed)[0])
