"""Operands in brackets: valid contents, and their state space (6.4.1, 9.7.9)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ptxtools.ir.nodes import Address, Element, Immediate, Name, Operand, Vector
from ptxtools.isa import Opcode, OperandSpec
from ptxtools.isa.types import TYPES

from . import codes
from .opaque import check_name, check_opaque
from .operands import examine_parts
from .problems import Problem, Setting, describe, is_array, no_array, same_space, undeclared
from .values import OPAQUE, Scope, Value

#: Instructions that write through their address operand.
_WRITERS = frozenset({"st", "red", "atom"})
#: Copies whose tensor map is a variable, or behind a register.
_TENSOR = ("cp.async.bulk.tensor", "cp.async.bulk.prefetch.tensor", "cp.reduce.async.bulk.tensor")
#: The spaces of objects that some instructions, by mnemonic or name, address generically.
_ONLY = {
    **dict.fromkeys(("prefetchu", "applypriority", "createpolicy", "discard"), frozenset({"global"})),
    **dict.fromkeys(_TENSOR, frozenset({"global"})),
    "mbarrier": frozenset({"shared"}),
}
#: Instructions that accept `table[2]` for `[table+8]`.
_INDEXING = frozenset({"ld", "ld.global.nc", "ldu", "st", "multimem.ld_reduce", "multimem.st", "multimem.red"})
#: Instructions that accept 32-bit registers as addresses on every target.
_SHORT = frozenset({
    "ldmatrix", "stmatrix", "st.async", "red.async", "st.bulk", "clusterlaunchcontrol.try_cancel", "tcgen05.alloc",
    "tcgen05.commit", "cp.async", "cp.async.mbarrier.arrive", "cp.async.bulk", "cp.async.bulk.tensor", "createpolicy",
    "cp.reduce.async.bulk", "cp.reduce.async.bulk.tensor", "cp.async.bulk.prefetch", "cp.async.bulk.prefetch.tensor",
    "applypriority.async.bulk", "applypriority.async.bulk.tensor",
    "fence", "multimem.cp.async.bulk", "multimem.cp.reduce.async.bulk", "multimem.st.async", "multimem.red.async",
})  # fmt: skip
#: Instructions for which ptxas extends addresses of 8 or 16 bits with zeros: all, and those in shared memory.
_EXTENDED = frozenset({
    "ld", "ld.global.nc", "ldu", "st", "atom", "red", "multimem.ld_reduce", "multimem.st",
    "clusterlaunchcontrol.try_cancel",
})  # fmt: skip
_EXTENDED_IN_SHARED = frozenset({
    "ldmatrix", "stmatrix", "cp.async", "cp.reduce.async.bulk", "multimem.cp.async.bulk",
    "multimem.cp.reduce.async.bulk",
})  # fmt: skip
#: Spaces that a generic address can reach (6.4.1.1): .const and .param variables need their own instruction.
_GENERIC = frozenset({"global", "shared", "local"})
#: Instructions behind whose addresses ptxas ignores `.unified`.
_UNIFIED_IGNORED = frozenset({"atom", "createpolicy", "ldmatrix", "ldu", "suq", "txq"})
#: And those of these, by mnemonic and operand.
_UNIFIED_IGNORED_AT = {
    **dict.fromkeys(("arrive", "arrive_drop", "test_wait", "try_wait"), ("mbarrier", 1)),
    "try_cancel": ("clusterlaunchcontrol", 1), "cp_fenceproxy": ("tensormap", 1),
}  # fmt: skip


#: Bulk copies with a scope and nothing else behind the mbarrier.
_RELAXED_PLAIN = re.compile(r"complete_tx::bytes(\.b128|\.\w+\.\w+)$")


def check_address(
    op: Opcode, spec: OperandSpec, index: int, operand: Operand, scope: Scope, setting: Setting
) -> Iterator[Problem]:
    """Problems of an operand that must be an address."""
    if isinstance(operand, Element) and op.name in _INDEXING:
        yield from _base(op, spec, index, operand, scope, setting)
        return
    if isinstance(operand, Name) and _needs_no_brackets(op, spec, operand, scope):
        message = f"'{operand.name}' without brackets is the address '{spec.name}'"
        yield Problem(codes.TOLERATED, message, index, better=f"[{operand.name}]")
        operand = Address(operand)
    if not isinstance(operand, Address):
        message = f"'{op.text}' requires an address as '{spec.name}'; {describe(operand, scope)}"
        help = (f"write [{operand.name}]",) if isinstance(operand, Name) else ()
        better = f"[{operand.name}]" if isinstance(operand, Name) and _is_address(operand, spec, scope) else ""
        yield Problem(codes.ADDRESS_FORM, message, index, None, help, better=better)
        return
    if operand.suffix and (operand.suffix not in spec.kinds or _is_variable(operand, scope, spec)):
        message = f"'{op.text}' takes no .{operand.suffix} after its address"
        ignored = _ignores_unified(op, index) and _is_register(operand.base, scope)
        yield Problem(codes.TOLERATED if ignored else codes.ADDRESS_FORM, message, index)
    elif operand.suffix and _lacks_attribute(operand, scope):
        message = f"'{getattr(operand.base, 'name', '')}' has no attribute .{operand.suffix}"
        help = ("declare it with .attribute(.unified(uuid1, uuid2))",)
        yield Problem(codes.ADDRESS_FORM, message, index, None, help, "9.7.9.8")
    if spec.kinds & OPAQUE:
        yield from check_opaque(op, spec, index, operand, scope, setting)
    elif isinstance(operand.base, Name) and _is_extended(op, spec, operand, scope):
        message = f"'{operand.base.name}' is shorter than an address, and extended with zeros"
        yield Problem(codes.TOLERATED, message, index, None, ("extend it by cvt",), "6.4.1")
    else:
        yield from _base(op, spec, index, operand.base, scope, setting)
    yield from _extra(op, spec, index, operand, scope, setting)


def _ignores_unified(op: Opcode, index: int) -> bool:
    """Whether ptxas ignores `.unified` behind an address in a register."""
    if op.space not in (None, "global") and op.family != "tensormap":
        return False
    if op.family in _UNIFIED_IGNORED:
        return True
    family, place = _UNIFIED_IGNORED_AT.get(op.name.rpartition(".")[2], ("", 0))
    return op.family == family and index == place and "phase_type" not in op.text


def _needs_no_brackets(op: Opcode, spec: OperandSpec, operand: Name, scope: Scope) -> bool:
    """Whether ptxas takes a register for an address in shared memory: the mbarrier of bulk copies, and what
    tensor copies read or write."""
    shared = spec.space is not None and spec.space.startswith("shared") and not spec.parts
    bulk = op.family == "cp" and op.has("bulk") and (spec.name == "mbar" or op.has("tensor"))
    more = op.has("ignore_oob") or (op.has("relaxed") and not _RELAXED_PLAIN.search(op.text))
    wide = scope.resolve(operand.name).type in ("b64", "u64", "s64") and not more
    return bulk and shared and wide and _is_register(operand, scope)


def _is_address(operand: Name, spec: OperandSpec, scope: Scope) -> bool:
    """Whether a name is that of a register as wide as addresses, or of a variable in the space that is meant."""
    found = scope.resolve(operand.name)
    if found.kind == "reg":
        return found.type in ("b64", "u64", "s64") and not found.vector and not spec.kinds & OPAQUE
    return spec.space is not None and found.space is not None and same_space(spec.space, found.space)


def _is_register(operand: Operand, scope: Scope) -> bool:
    return isinstance(operand, Name) and scope.resolve(operand.name).kind == "reg"


def _is_variable(operand: Address, scope: Scope, spec: OperandSpec) -> bool:
    """Whether the base is a variable and the space is generic, about which `.unified` says nothing."""
    return spec.space is None and isinstance(operand.base, Name) and scope.resolve(operand.base.name).kind == "memory"


def _lacks_attribute(operand: Address, scope: Scope) -> bool:
    found = scope.resolve(operand.base.name) if isinstance(operand.base, Name) else None
    return found is not None and found.kind == "memory" and found.role != operand.suffix


def _base(
    op: Opcode, spec: OperandSpec, index: int, base: Name | Immediate | Element, scope: Scope, setting: Setting
) -> Iterator[Problem]:
    if isinstance(base, Immediate):
        if spec.space != "local" and op.name != "fence":
            message = "a constant address is allowed only in .local"
            yield Problem(codes.ADDRESS_FORM, message, index, None, ("put the address into a register",), "6.4.1")
        return
    found = scope.resolve(base.name)
    if found.kind == "unknown":
        yield undeclared(base.name, scope, index)
    elif isinstance(base, Element) and not is_array(base, scope):
        yield no_array(base, index)
    elif found.kind == "reg":
        yield from _register(op, spec, index, base.name, found, setting)
    elif found.kind == "memory":
        yield from _variable(op, spec, index, base.name, found)
    else:
        message = f"{describe(base, scope)}: it has no address for '{op.text}'"
        yield Problem(codes.ADDRESS_FORM, message, index, None, (), "6.4.1")


def _register(
    op: Opcode, spec: OperandSpec, index: int, name: str, found: Value, setting: Setting
) -> Iterator[Problem]:
    info = TYPES[found.type]
    if found.vector or info.kind not in ("int", "bits") or info.bits not in (32, 64):
        message = f"'{name}' is a {'vector' if found.vector else f'.{found.type}'} register: it cannot hold an address"
        yield Problem(codes.ADDRESS_REGISTER, message, index, None, ("use an integer or bit register",), "6.4.1")
    elif spec.space == "tmem" and info.bits != 32:
        message = f"'{name}' has {info.bits} bits; addresses in tensor memory have 32"
        yield Problem(codes.ADDRESS_REGISTER, message, index, None, (), "9.7.16.1")
    elif spec.space == "fabric" and info.bits != 32:
        message = f"'{name}' has {info.bits} bits; endpoints of a fabric have 32"
        yield Problem(codes.ADDRESS_REGISTER, message, index, None, (), op.section)
    elif spec.width == "bare" and info.kind != "bits":
        message = f"'{name}' is a .{found.type} register; '{op.text}' requires .b{info.bits} as '{spec.name}'"
        yield Problem(codes.ADDRESS_REGISTER, message, index)
    elif _too_short(op, spec, info.bits, setting):
        message = f"'{name}' has 32 bits; addresses in {'.global' if spec.space else 'generic space'} have 64 here"
        yield Problem(codes.ADDRESS_REGISTER, message, index, None, (), "6.4.1")


def _is_extended(op: Opcode, spec: OperandSpec, operand: Address, scope: Scope) -> bool:
    """Whether the address is a register of 8 or 16 bits that ptxas extends; with an offset, it adds in 16 bits."""
    found = scope.resolve(operand.base.name) if isinstance(operand.base, Name) and not operand.offset else None
    if found is None or found.kind != "reg" or found.vector:
        return False
    inside = spec.space is not None and spec.space.startswith("shared")
    taken = op.name in _EXTENDED or (inside and (op.name in _EXTENDED_IN_SHARED or op.family == "mbarrier"))
    return taken and TYPES[found.type].kind in ("int", "bits") and TYPES[found.type].bits in (8, 16)


def _too_short(op: Opcode, spec: OperandSpec, bits: int, setting: Setting) -> bool:
    """Whether 64-bit addressing requires more bits. For objects in shared memory, 32 bits suffice."""
    wide = (setting.wide_only or setting.long) and setting.address_bits == 64
    short = op.name in _SHORT or op.family == "tensormap" or op.has("tensormap")
    return wide and bits == 32 and spec.space in (None, "global") and not short


def _variable(op: Opcode, spec: OperandSpec, index: int, name: str, found: Value) -> Iterator[Problem]:
    if found.type in OPAQUE:
        if "tensor" not in op.name.split("."):  # a texture may serve as a tensor map
            message = f"'{name}' is a .{found.type}, which '{op.text}' cannot use"
            yield Problem(codes.ADDRESS_FORM, message, index, None, (), "5.3")
    elif spec.space is None and found.space not in (only := _only(op) or _GENERIC | {"const", "param"}):
        wanted = " or ".join(sorted(f".{space}" for space in only))
        message = f"'{name}' is in .{found.space}; '{op.name}' works on addresses in {wanted}"
        yield Problem(codes.ADDRESS_SPACE, message, index, None, (), op.section)
    elif spec.space is None:
        if found.space not in _GENERIC:
            message = f"'{name}' is in .{found.space}, which generic addresses cannot reach"
            help = (f"write {op.family}.{found.space}…",) if op.family in ("ld", "st") else ()
            yield Problem(codes.ADDRESS_SPACE, message, index, None, help, "6.4.1.1")
    elif not same_space(spec.space, found.space):
        message = f"'{name}' is in .{found.space}, not in .{spec.space}"
        named = op.family in ("ld", "st")
        help = (f"write .{found.space} instead of .{spec.space}",) if named else ()
        yield Problem(codes.ADDRESS_SPACE, message, index, None, help, "6.4.1", space=found.space if named else "")
    elif found.space == "param":
        yield from _parameter(op, index, name, found)


def _only(op: Opcode) -> frozenset[str] | None:
    return _ONLY.get(op.family) or _ONLY.get(op.name)


def _parameter(op: Opcode, index: int, name: str, found: Value) -> Iterator[Problem]:
    if found.role == "in" and op.family in _WRITERS:
        message = f"'{name}' is an input parameter: it cannot be written"
        yield Problem(codes.PARAMETER_ACCESS, message, index, None, (), "5.1.6")
    elif found.role == "out" and op.family == "ld":
        message = f"'{name}' is a return parameter: it cannot be read"
        yield Problem(codes.PARAMETER_ACCESS, message, index, None, (), "5.1.6")


def _extra(
    op: Opcode, spec: OperandSpec, index: int, operand: Address, scope: Scope, setting: Setting
) -> Iterator[Problem]:
    """Check the parts after the base inside the brackets: coordinates, samplers."""
    needed = sum(not part.optional for part in spec.parts)
    if not needed <= len(operand.extra) <= len(spec.parts):
        wanted = len(spec.parts) + 1
        message = f"the address '{spec.name}' of '{op.text}' has {wanted} parts, found {len(operand.extra) + 1}"
        yield Problem(codes.ADDRESS_FORM, message, index)
        return
    for part, (wanted_part, item) in enumerate(zip(spec.parts, operand.extra, strict=False)):
        if wanted_part.kinds & OPAQUE:
            yield from check_name(op, wanted_part, index, part + 1, item, scope, setting)
        elif isinstance(item, Vector) or wanted_part.vector or isinstance(item, (Name, Immediate)):
            yield from examine_parts(op, wanted_part, index, part + 1, item, scope, setting)
