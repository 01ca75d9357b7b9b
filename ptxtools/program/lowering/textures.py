"""Texture and surface instructions (9.7.10, 9.7.11): events whose sources begin with the texture's handle.

The handle is what the register or kernel parameter holds, or the address of the variable that is named: whoever serves
the event tells them apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.ir import Address, Element, Immediate, Instruction, Name, Operand, Pair, Variable, Vector
from ptxtools.isa import Opcode, resolve
from ptxtools.program.details import TexturePlace
from ptxtools.program.program import Op, Ref

from .arithmetic import elements
from .registry import Unsupported, lowers

if TYPE_CHECKING:
    from .function import FunctionLowering

#: Types of the leading coordinates that are no places: layer, sample, both (9.7.10.3). Others have the written type.
_LEADING = {"a1d": ("u32",), "a2d": ("u32",), "acube": ("u32",), "2dms": ("s32",), "a2dms": ("u32", "s32")}
#: Axes of gradients and of offsets by geometry.
_GRADIENTS = {"1d": 1, "a1d": 1, "2d": 2, "a2d": 2, "3d": 3, "cube": 3, "acube": 3}
_OFFSETS = {"1d": 1, "a1d": 1, "2d": 2, "a2d": 2, "3d": 3, "2dms": 2, "a2dms": 2}


class _Sources:
    """Sources of an event under construction."""

    def __init__(self, f: FunctionLowering) -> None:
        self.lowering = f
        self.refs: list[Ref | None] = []
        self.types: list[str] = []

    def add(self, operand: Operand, type_name: str) -> None:
        self.refs.append(self.lowering.source(operand, type_name))
        self.types.append(type_name)

    def handle(self, base: Name | Immediate | Element | None) -> None:
        """A texture, surface or sampler; None: there is none."""
        self.refs.append(None if base is None else _handle(self.lowering, base))
        self.types.append("u64")

    def several(self, operand: Operand, types: tuple[str, ...]) -> int:
        """As many elements of a vector as there are types; what a longer vector has more is padding."""
        items = elements(self.lowering, operand)
        if len(items) < len(types):
            raise Unsupported(f"{len(items)} elements where {len(types)} are required")
        for item, type_name in zip(items, types, strict=False):
            self.add(item, type_name)
        return len(types)

    def place(self, address: Operand, op: Opcode, type_name: str) -> int:
        """Handle, sampler (None without one) and coordinates of `[a, {b,} c]`; the number of coordinates."""
        if not isinstance(address, Address) or not 1 <= len(address.extra) <= 2:
            raise Unsupported("a texture and coordinates are expected in brackets")
        self.handle(address.base)
        sampler = address.extra[0] if len(address.extra) == 2 else None
        if sampler is not None and not isinstance(sampler, Name):
            raise Unsupported("the sampler is not a variable or register")
        self.handle(sampler)
        leading = _LEADING.get(op.mods["geom"], ())
        count = int(op.variables["coordinates"])
        return self.several(address.extra[-1], leading + (type_name,) * (count - len(leading)))


def _handle(f: FunctionLowering, base: Name | Immediate | Element) -> Ref:
    if isinstance(base, Immediate):
        return f.constant(base.value, "b64")
    if isinstance(base, Name):
        ref = f.register(base.name)
        if isinstance(ref, Ref):
            return ref
        symbol = f.names.lookup(base.name)
        if isinstance(symbol, Variable) and symbol.space == "param" and f.entry:
            value = f.new("b64")
            offset = f.pointer_to(base).offset
            types = (("u64",), ("u64",))
            load = Op(
                "ld", resolve("ld.param.u64"), (value,), (None,), *types, imm=offset, space="param", where=f.where
            )
            f.ops.append(load)
            return value
    return f.address_value(f.pointer_to(base), "u64")


def _end(f: FunctionLowering, kind: str, op: Opcode, targets: list[Ref | None], types: list[str], sources: _Sources,
         detail: TexturePlace | None = None) -> None:  # fmt: skip
    f.event(Op(kind, op, tuple(targets), tuple(sources.refs), tuple(types), tuple(sources.types), detail=detail))


def _results(f: FunctionLowering, operand: Operand, type_name: str) -> tuple[list[Ref | None], list[str]]:
    """Destinations of `d` or `d|p`."""
    second = operand.second if isinstance(operand, Pair) else None
    items = elements(f, operand.first if isinstance(operand, Pair) else operand)
    targets: list[Ref | None] = [f.destination(item) for item in items]
    types = [type_name] * len(items)
    if second is not None:
        targets.append(f.destination(second))
        types.append("pred")
    return targets, types


@lowers("tex", "tld4")
def fetch(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """src = handle, sampler, coordinates, level or gradients, offsets, reference."""
    after = f.guarded_region()
    target, address, *rest = instruction.operands
    targets, types = _results(f, target, op.mods["dtype"])
    sources = _Sources(f)
    coordinates = sources.place(address, op, op.mods.get("ctype", "f32"))
    geometry = op.mods["geom"]
    extra = 0
    if op.mods.get("mode") == "level":
        extra = sources.several(rest.pop(0), (op.mods["ctype"],))
    elif op.mods.get("mode") == "grad":
        extra = sum(sources.several(rest.pop(0), ("f32",) * _GRADIENTS[geometry]) for _ in range(2))
    offsets = 0
    if rest and not _is_depth(f, rest[0], geometry):
        offsets = sources.several(rest.pop(0), ("s32",) * _OFFSETS.get(geometry, 0))
    if rest:
        sources.add(rest[0], "f32")
    _end(f, op.family, op, targets, types, sources, TexturePlace(coordinates, extra, offsets, len(rest)))
    f.end_region(after)


def _is_depth(f: FunctionLowering, operand: Operand, geometry: str) -> bool:
    """Whether a trailing operand is the scalar to compare depth with, and not a vector of offsets.

    Where an offset has one element it may be a scalar too: then only a float is depth.
    """
    if isinstance(operand, Vector) or len(elements(f, operand)) > 1:
        return False
    if _OFFSETS.get(geometry) != 1:
        return True
    if isinstance(operand, Immediate):
        return operand.type in ("f32", "f64")
    return f.declared_type(operand) == "f32"


@lowers("txq", "suq")
def query(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """src = handle, and the level."""
    after = f.guarded_region()
    target, address, *level = instruction.operands
    if not isinstance(address, Address):
        raise Unsupported("a texture is expected in brackets")
    sources = _Sources(f)
    sources.handle(address.base)
    for operand in level:
        sources.several(operand, ("u32",))
    _end(f, op.family, op, [f.destination(target)], ["b32"], sources)
    f.end_region(after)


@lowers("istypep")
def is_type(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """src = handle."""
    after = f.guarded_region()
    target, operand = instruction.operands
    sources = _Sources(f)
    sources.handle(operand if isinstance(operand, (Name, Immediate, Element)) else None)
    _end(f, "istypep", op, [f.destination(target)], ["pred"], sources)
    f.end_region(after)


@lowers("suld")
def load(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """src = handle, no sampler, coordinates."""
    after = f.guarded_region()
    targets, types = _results(f, instruction.operands[0], op.mods["dtype"])
    sources = _Sources(f)
    count = sources.place(instruction.operands[1], op, "s32")
    _end(f, "suld", op, targets, types, sources, TexturePlace(count))
    f.end_region(after)


@lowers("sust", "sured")
def store(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    """src = handle, no sampler, coordinates, values."""
    after = f.guarded_region()
    address, value = instruction.operands
    sources = _Sources(f)
    count = sources.place(address, op, "s32")
    items = elements(f, value)
    sources.several(value, (op.mods["ctype"],) * len(items))
    _end(f, op.family, op, [], [], sources, TexturePlace(count))
    f.end_region(after)
