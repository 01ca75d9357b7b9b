"""What instructions NVVM IR has, and how they are restricted (10, 12)."""

from __future__ import annotations

from collections.abc import Callable

from ..assembly.nodes import Callee, Instruction, Value
from ..assembly.tokens import words
from ..assembly.types import I32, Type
from ..assembly.values import BINARY, CASTS
from .attributes import check_function_attributes, check_parameter_attributes
from .calls import HANDLE, check_call
from .casts import between_spaces
from .context import Context
from .declarations import SPACES, check_convention, check_type

#: 10.1 to 10.8
SUPPORTED = (
    BINARY
    | CASTS
    | words(
        "ret br switch unreachable extractelement insertelement shufflevector extractvalue insertvalue alloca load "
        "store cmpxchg atomicrmw getelementptr icmp fcmp phi select va_arg call"
    )
)
_INSTEAD = {
    "fneg": "fsub float -0.0, %x", "fence": "llvm.nvvm.membar", "freeze": "", "indirectbr": "switch",
}  # fmt: skip
#: Since LLVM 8 and later: the dialect of LLVM 7 does not read them.
_LATER = frozenset(("fneg", "freeze", "callbr"))
#: 10.6.6
RMW = words("xchg add sub and or xor max min umax umin")
_LARGEST_ALIGNMENT = 1 << 23
_WIDE_FROM = 90  # 10.6.5, 10.6.6: i128
#: 10.6.5, 10.6.6: spaces of atomics, the generic one included.
_ATOMIC_SPACES = (0, 1, 3)


def check_instruction(context: Context, one: Instruction) -> None:
    if one.op not in SUPPORTED:
        _unsupported(context, one)
        return
    check = _CHECKS.get(one.op)
    if check is not None:
        check(context, one)
    if context.opaque and not (one.op == "call" and one.operands[0].text.startswith(HANDLE)):
        for value in one.operands:
            _texture(context, value, one.op)
    align = one.extra.get("align")
    if align is not None:
        _check_alignment(context, one, *align)
    for value in one.operands:
        if value.type not in context.checked_types:
            check_type(context, value.type, value.at)
    type = one.extra.get("type")
    if type is not None and type not in context.checked_types:
        check_type(context, type, one.extra.get("type_at", one.at))


def _unsupported(context: Context, one: Instruction) -> None:
    if one.op == "fence":
        context.at_name("NVVM304", one.at, one.op, "'fence' is not supported", "use llvm.nvvm.membar")
        return
    if one.op[0] == "#":
        context.at_name("NVVM301", one.at, one.op, f"records of debug information ('{one.op}') came with LLVM 19",
                        f"call llvm.dbg.{one.op.removeprefix('#dbg_')}")  # fmt: skip
        return
    instead = _INSTEAD.get(one.op)
    context.at_name(
        "NVVM301", one.at, one.op, f"instruction '{one.op}' is not supported", *([f"use {instead}"] if instead else [])
    )


def _check_alignment(context: Context, one: Instruction, number: int, at: int) -> None:
    if number <= 0 or number & (number - 1):
        context.at_name("NVVM118", at, str(number), f"an alignment is a power of two, not {number}")
    elif one.op == "alloca" and number > _LARGEST_ALIGNMENT:
        context.at_name("NVVM302", at, str(number), f"the largest alignment of alloca is 2^23, not {number}")
    elif number > 1 << 32:
        context.at_name("NVVM118", at, str(number), f"an alignment of {number} is too large")


def _alloca(context: Context, one: Instruction) -> None:
    for word in one.extra["flags"]:
        context.at_word("NVVM302", word, f"'{word[0]}' of alloca is not supported")
    if one.extra.get("space", (0, 0))[1]:
        at, space = one.extra["space"]
        context.at_name("NVVM302", at, "addrspace", f"alloca is in address space 0, not {space}",
                        "it gives a generic pointer to local memory")  # fmt: skip


def _access(context: Context, one: Instruction) -> None:
    for word in one.extra["flags"]:
        if word[0] == "atomic":
            context.at_word("NVVM303", word, f"'{one.op} atomic' is not supported", "use atomicrmw, or 'volatile'")
    if not any(word[0] == "atomic" for word in one.extra["flags"]) and one.extra["ordering"]:
        context.at_word("NVVM118", one.extra["ordering"][0], f"an ordering is for '{one.op} atomic'")
    pointer = one.operands[-1]
    named = pointer
    while named.kind == "expression" and named.extra["op"] == "bitcast" and named.parts:
        named = named.parts[0]
    to_function = pointer.type.pointee is not None and pointer.type.pointee.kind == "function"
    if to_function or (named.kind == "global" and named.text in context.module.functions):
        context.at_value("NVVM309", pointer, f"'{one.op}' through a pointer to a function is not supported")
    if one.op == "store" and pointer.type.kind == "pointer" and pointer.type.space == 4:
        context.at_value("NVVM310", pointer, "constant memory is not written")


def _texture(context: Context, value: Value, op: str) -> None:
    if value.kind == "global" and value.text in context.opaque:
        context.at_value("NVVM421", value, f"'{op}' of {value.text}, which is a {context.opaque[value.text]}",
                         "llvm.nvvm.texsurf.handle gives a handle for it")  # fmt: skip
    elif value.kind != "metadata":
        for part in value.parts:
            _texture(context, part, op)


def _atomic(context: Context, one: Instruction, pointer: Value, type: Type, widths: tuple[int, ...]) -> None:
    """The width and the space of an atomic (3.30, 10.6.5, 10.6.6)."""
    code = "NVVM305" if one.op == "cmpxchg" else "NVVM306"
    if type.kind != "int" or type.bits not in widths:
        names = " and ".join(f"i{bits}" for bits in widths)
        context.at_value(code, one.operands[1], f"'{one.op}' of {type} is not supported: it takes {names}")
    elif type.bits == 128:
        context.needs(code, (one.operands[1].at, one.operands[1].end), f"'{one.op}' of i128", _WIDE_FROM)
    if pointer.type.kind == "pointer" and pointer.type.space not in _ATOMIC_SPACES:
        space = SPACES.get(pointer.type.space, str(pointer.type.space))
        context.at_value(code, pointer, f"'{one.op}' in the {space} space is not supported: only in global and shared")


def _cmpxchg(context: Context, one: Instruction) -> None:
    _atomic(context, one, one.operands[0], one.operands[1].type, (32, 64, 128))
    for word in one.extra["flags"]:
        if word[0] == "weak":
            context.at_word("NVVM307", word, "'weak' is ignored")
    success, failure = one.extra["ordering"]
    if failure[0] in ("release", "acq_rel", "unordered") or success[0] == "unordered":
        wrong = success if success[0] == "unordered" else failure
        context.at_word(
            "NVVM118", wrong, f"cmpxchg has no {'ordering' if wrong is success else 'failure ordering'} '{wrong[0]}'"
        )
    elif failure[0] != success[0] and failure[0] != "monotonic":
        context.at_word("NVVM307", failure, f"the failure ordering '{failure[0]}' is ignored")


def _atomicrmw(context: Context, one: Instruction) -> None:
    operation = one.extra["operation"]
    if operation[0] not in RMW:
        context.at_word("NVVM306", operation, f"'atomicrmw {operation[0]}' is not supported",
                        *(["llvm.nvvm.atomic.load.add.f32 adds floats"] if operation[0] == "fadd" else []))  # fmt: skip
        return
    for ordering in one.extra["ordering"]:
        if ordering[0] == "unordered":
            context.at_word("NVVM118", ordering, "atomicrmw has no ordering 'unordered'")
    widths = (32, 64, 128) if operation[0] == "xchg" else (32, 64)
    _atomic(context, one, one.operands[0], one.operands[1].type, widths)


def _addrspacecast(context: Context, one: Instruction) -> None:
    have, want = one.operands[0].type.scalar, one.extra["type"].scalar
    if between_spaces(have, want):
        context.error("NVVM308", (one.at, one.end), f"a pointer to {_space(have)} is not cast to one to {_space(want)}",
                      "cast it to a generic pointer first")  # fmt: skip


def _space(type: Type) -> str:
    return SPACES.get(type.space, f"space {type.space}")


def _call(context: Context, one: Instruction) -> None:
    callee: Callee = one.extra["callee"]
    target = one.operands[0]
    for word in callee.conventions:
        check_convention(context, word)
    if "bundles" in one.extra:
        context.at_name("NVVM223", one.extra["bundles"], "[", "operand bundles are not supported")
    intrinsic = target.kind == "global" and target.text.startswith("@llvm.")
    check_parameter_attributes(context, callee.attributes, callee.result, intrinsic)
    for given, argument in zip(callee.arguments, one.operands[1:], strict=False):
        if given:
            check_parameter_attributes(context, given, argument.type, intrinsic)
    check_function_attributes(context, callee.trailing, intrinsic)
    if intrinsic:
        check_call(context, one, target.text[1:])
    if target.kind == "asm":
        from .assembler import check_assembler

        check_assembler(context, one)
    _callalign(context, one)


def _callalign(context: Context, one: Instruction) -> None:
    """`!callalign !7` (3.2.1): numbers, argument << 16 | alignment, in ascending order."""
    from .headers import integer

    for name, word in one.metadata:
        node = context.module.metadata.get(word[0])
        if name[0] != "!callalign" or node is None:
            continue
        before = -1
        for value in node.operands:
            number = integer(value)
            place = (value.text, value.at) if value is not None else word
            if number is None or value is None or value.type is not I32:
                context.at_word("NVVM205", place, "callalign is a list of constants of type i32")
                continue
            if number < before:
                context.at_word("NVVM205", place, "the fields of callalign are in ascending order")
            before = number
            check_alignment(context, place, number, len(one.operands) - 1, "callalign")


def check_alignment(context: Context, word: tuple[str, int], number: int, arguments: int, what: str) -> None:
    """A field of callalign, or the value of the annotation "align" (3.2.1)."""
    position, alignment = number >> 16, number & 0xFFFF
    if position > arguments or number < 0:
        context.at_word("NVVM205", word, f"{what} names parameter {position}, and there are {arguments}")
    elif alignment == 0 or alignment & (alignment - 1):
        context.at_word("NVVM205", word, f"{what} gives alignment {alignment}, which is no power of two")


_CHECKS: dict[str, Callable[[Context, Instruction], None]] = {
    "alloca": _alloca, "load": _access, "store": _access, "cmpxchg": _cmpxchg, "atomicrmw": _atomicrmw,
    "addrspacecast": _addrspacecast, "call": _call,
}  # fmt: skip
