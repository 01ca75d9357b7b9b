"""Types of instructions, as LLVM's verifier demands them: each function finds the type of a result, or None if that
cannot be known, and reports operands that do not fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..assembly import types
from ..assembly.nodes import Callee, Function, Instruction, Value, Word
from ..assembly.reader import Malformed, Reader
from ..assembly.tokens import words
from ..assembly.types import I1, I32, VOID, Type
from .casts import CASTS, cast_fault
from .context import Context
from .layout import extent

MISMATCH = "NVVM111"
_INT_OPS = words("add sub mul udiv sdiv urem srem shl lshr ashr and or xor")
_FLOAT_OPS = words("fadd fsub fmul fdiv frem fneg")
_NAMES = {"int": "an integer", "float": "a floating-point number", "pointer": "a pointer"}


def _demand(context: Context, value: Value, kind: str, op: str) -> bool:
    """Whether an operand is of a kind, or a vector of it."""
    if value.type.scalar.kind == kind:
        return True
    context.at_value(MISMATCH, value, f"{op} takes {_NAMES[kind]}, not {value.type}")
    return False


def binary(context: Context, one: Instruction) -> Type:
    first = one.operands[0]
    _demand(context, first, "int" if one.op in _INT_OPS else "float", one.op)
    return first.type


def icmp(context: Context, one: Instruction) -> Type:
    first = one.operands[0]
    if first.type.scalar.kind not in ("int", "pointer"):
        context.at_value(MISMATCH, first, f"icmp compares integers or pointers, not {first.type}")
    return types.like(first.type, I1)


def fcmp(context: Context, one: Instruction) -> Type:
    _demand(context, one.operands[0], "float", one.op)
    return types.like(one.operands[0].type, I1)


def cast(context: Context, one: Instruction) -> Type:
    want: Type = one.extra["type"]
    fault = cast_fault(one.op, one.operands[0].type, want)
    if fault:
        help = ("addrspacecast converts between spaces",) if "cannot change" in fault else ()
        context.error(MISMATCH, (one.at, one.end), fault, *help)
    return want


def select(context: Context, one: Instruction) -> Type:
    condition, first, second = one.operands
    if condition.type is not I1 and not (
        condition.type.kind == "vector" and condition.type.scalar is I1 and condition.type.count == first.type.count
    ):
        context.at_value(MISMATCH, condition, f"select chooses by i1, not {condition.type}")
    if first.type is not second.type:
        context.at_value(MISMATCH, second, f"select between {first.type} and {second.type}: they must be the same type")
    return first.type


def alloca(context: Context, one: Instruction) -> Type:
    made: Type = one.extra["type"]
    if not context.sized(made):
        context.at_name(MISMATCH, one.extra["type_at"], made.text, f"alloca of {made}, which has no size")
    for count in one.operands:
        if count.type.kind != "int":
            context.at_value(MISMATCH, count, f"the number of elements is an integer, not {count.type}")
    space = one.extra["space"][1] if "space" in one.extra else 0
    return context.pointer(made, space)


def _through(context: Context, one: Instruction, pointer: Value, type: Type) -> bool:
    """Whether a pointer operand points to a type."""
    if pointer.type.kind != "pointer":
        context.at_value(MISMATCH, pointer, f"{one.op} takes a pointer, not {pointer.type}")
        return False
    if pointer.type.pointee is not None and pointer.type.pointee is not type:
        context.at_value(MISMATCH, pointer, f"{one.op} of {type} through a pointer to {pointer.type.pointee}")
        return False
    return True


def load(context: Context, one: Instruction) -> Type:
    made: Type = one.extra["type"]
    if _through(context, one, one.operands[0], made) and not context.sized(made):
        context.at_name(MISMATCH, one.extra["type_at"], made.text, f"load of {made}, which has no size")
    return made


def store(context: Context, one: Instruction) -> None:
    value, pointer = one.operands
    if _through(context, one, pointer, value.type) and not context.sized(value.type):
        context.at_value(MISMATCH, value, f"store of {value.type}, which has no size")


def cmpxchg(context: Context, one: Instruction) -> Type:
    pointer, compare, new = one.operands
    _through(context, one, pointer, compare.type)
    if new.type is not compare.type:
        context.at_value(MISMATCH, new, f"cmpxchg of {compare.type} with {new.type}: they must be the same type")
    return types.struct([compare.type, I1])


def atomicrmw(context: Context, one: Instruction) -> Type:
    pointer, value = one.operands
    _through(context, one, pointer, value.type)
    return value.type


def step(context: Context, type: Type, index: Value) -> Type | str:
    """The type one index further into an aggregate, or what is wrong."""
    type = context.resolved(type)
    if type.kind == "struct":
        if index.kind != "int" or index.type.scalar is not I32:
            return "a member of a struct is chosen by a constant i32"
        number = int(index.text) if index.text.isdecimal() and len(index.text) < 10 else -1
        return type.elements[number] if 0 <= number < len(type.elements) else f"{type} has no member {index.text}"
    if type.kind in ("array", "vector"):
        return type.elements[0]
    return f"{type} has no elements to index"


def address_type(context: Context, base: Type, operands: list[Value]) -> Type | tuple[Value, str]:
    """The type of a getelementptr over a base type, or the operand that is wrong and why."""
    pointer = operands[0]
    if pointer.type.scalar.kind != "pointer":
        return pointer, f"getelementptr takes a pointer, not {pointer.type}"
    pointee = pointer.type.scalar.pointee
    if pointee is not None and pointee is not base:
        return pointer, f"getelementptr over {base} with a pointer to {pointee}"
    reached, shape = base, pointer.type
    for number, index in enumerate(operands[1:]):
        if index.type.scalar.kind != "int":
            return index, f"an index is an integer, not {index.type}"
        shape = index.type if index.type.kind == "vector" else shape
        if number:
            found = step(context, reached, index)
            if isinstance(found, str):
                return index, found
            reached = found
    made = types.pointer(reached, pointer.type.scalar.space) if pointee is not None else pointer.type.scalar
    return types.like(shape, made)


def getelementptr(context: Context, one: Instruction) -> Type | None:
    base: Type = one.extra["type"]
    if not context.sized(base) and len(one.operands) > 1:
        context.at_name(MISMATCH, one.extra["type_at"], base.text, f"getelementptr over {base}, which has no size")
    found = address_type(context, base, one.operands)
    if isinstance(found, Type):
        return found
    context.at_value(MISMATCH, *found)
    return None


def _member(context: Context, one: Instruction) -> Type | None:
    """What the indices of extractvalue and insertvalue reach."""
    reached = one.operands[0].type
    for number, at in one.extra["indices"]:
        aggregate = context.resolved(reached)
        if aggregate.kind not in ("struct", "array") or number >= aggregate.count:
            context.at_name(MISMATCH, at, str(number), f"{reached} has no member {number}")
            return None
        reached = aggregate.elements[number if aggregate.kind == "struct" else 0]
    return reached


def insertvalue(context: Context, one: Instruction) -> Type:
    member, new = _member(context, one), one.operands[1]
    if member is not None and member is not new.type:
        context.at_value(MISMATCH, new, f"insertvalue of {new.type} for a member of type {member}")
    return one.operands[0].type


def _vector(context: Context, value: Value, op: str) -> bool:
    if value.type.kind == "vector":
        return True
    context.at_value(MISMATCH, value, f"{op} takes a vector, not {value.type}")
    return False


def extractelement(context: Context, one: Instruction) -> Type | None:
    vector, index = one.operands
    if index.type.kind != "int":
        context.at_value(MISMATCH, index, f"an index is an integer, not {index.type}")
    return vector.type.elements[0] if _vector(context, vector, one.op) else None


def insertelement(context: Context, one: Instruction) -> Type:
    vector, new, index = one.operands
    if _vector(context, vector, one.op) and vector.type.elements[0] is not new.type:
        context.at_value(MISMATCH, new, f"insertelement of {new.type} into {vector.type}")
    if index.type.kind != "int":
        context.at_value(MISMATCH, index, f"an index is an integer, not {index.type}")
    return vector.type


def shufflevector(context: Context, one: Instruction) -> Type | None:
    first, second, mask = one.operands
    if not _vector(context, first, one.op):
        return None
    if second.type is not first.type:
        context.at_value(MISMATCH, second, f"shufflevector of {first.type} and {second.type}: they must be the same")
    if mask.type.kind != "vector" or mask.type.elements[0] is not I32 or mask.kind == "local":
        context.at_value(MISMATCH, mask, f"the mask is a constant vector of i32, not {mask.type}")
        return None
    for part in mask.parts if mask.kind == "aggregate" else ():
        if part.kind == "int" and len(part.text) < 20 and not 0 <= int(part.text) < 2 * first.type.count:
            context.at_value(MISMATCH, part, f"the mask chooses element {part.text} of {2 * first.type.count}")
    return types.vector(mask.type.count, first.type.elements[0], mask.type.open)


def switch(context: Context, one: Instruction) -> None:
    value, *cases = one.operands
    if value.type.kind != "int":
        context.at_value(MISMATCH, value, f"switch takes an integer, not {value.type}")
    seen: set[str] = set()
    for case in cases:
        if case.type is not value.type:
            context.at_value(MISMATCH, case, f"a case of type {case.type} for a switch over {value.type}")
        elif case.text in seen:
            context.at_value("NVVM113", case, f"case {case.text} occurs twice")
        seen.add(case.text)


def br(context: Context, one: Instruction) -> None:
    for condition in one.operands:
        if condition.type is not I1:
            context.at_value(MISMATCH, condition, f"br branches on i1, not {condition.type}")


def call(context: Context, one: Instruction) -> Type:
    """The operands against the type of what is called: the definition's, or the one that the call writes. Where
    pointers are opaque, a call may write another type than the function has, and is then undefined when it runs."""
    callee: Callee = one.extra["callee"]
    target, arguments = one.operands[0], one.operands[1:]
    known = context.module.functions.get(target.text) if target.kind == "global" else None
    wanted = known.type if known else callee.written
    code = "NVVM120" if context.modern and known and target.text[:6] != "@llvm." else "NVVM116"
    if target.kind not in ("global", "asm"):
        target.type = context.pointer(wanted or types.function(callee.result, [one.type for one in arguments]), 0)
    function = known or _cast(context, target)
    if function:
        _check_copies(context, one, function)
    if wanted is None:
        return callee.result
    result, *params = wanted.elements
    shown = target.text[:60] if target.kind != "asm" else "the text"
    if result is not callee.result or (callee.written is not None and callee.written is not wanted):
        context.at_value(code, target, f"{shown} is {wanted}, and is called as {callee.written or callee.result}")
        return callee.result
    if len(arguments) < len(params) or (len(arguments) > len(params) and not wanted.open):
        count = f"{'at least ' if wanted.open else ''}{len(params)} argument{'' if len(params) == 1 else 's'}"
        context.at_value(code, target, f"{shown} takes {count}, not {len(arguments)}")
    for argument, param in zip(arguments, params, strict=False):
        if argument.type is not param:
            context.at_value(code, argument, f"an argument of type {argument.type} where {shown} takes {param}")
    return result


def _cast(context: Context, target: Value) -> Function | None:
    """The function that is called as one of another type."""
    while target.kind == "expression" and target.extra["op"] in ("bitcast", "addrspacecast"):
        target = target.parts[0]
    return context.module.functions.get(target.text) if target.kind == "global" else None


def _check_copies(context: Context, one: Instruction, function: Function) -> None:
    """What a call passes by value, against the function that it calls, perhaps as one of another type."""
    for argument, given, taken in zip(one.operands[1:], one.extra["callee"].arguments, function.params, strict=False):
        if not by_value(given):
            continue
        if not by_value(taken.attributes):
            context.at_value("NVVM116", argument, f"an argument with 'byval' where {function.name} takes a pointer",
                             "the function's parameter has 'byval', too, or the call has it not")  # fmt: skip
            continue
        passed, wanted = _copied(given, argument.type), _copied(taken.attributes, taken.type)
        own, other = (extent(context, one) if one else None for one in (passed, wanted))
        if own and other and own.size != other.size:
            message = f"a copy of {passed} where {function.name} takes one of {wanted}, which has another size"
            context.at_value("NVVM116", argument, message, "both have 'byval' for the same type")


def _copied(attributes: Sequence[Word], type: Type) -> Type | None:
    """What is copied where an argument or a parameter has `byval`; None if that cannot be read."""
    _, opens, written = by_value(attributes).partition("(")
    if not opens:
        return type.pointee
    try:
        return Reader(written[:-1]).type()
    except Malformed:
        return None


def by_value(attributes: Sequence[Word]) -> str:
    """The `byval` of a parameter or an argument, which is what its pointer points to then; "" if it has none."""
    return next((word for word, _ in attributes if word[:5] == "byval"), "")


def written(context: Context, one: Instruction) -> Type:
    """The type that the instruction itself writes: of `phi` and `va_arg`."""
    found: Type = one.extra["type"]
    return found


def first(context: Context, one: Instruction) -> Type:
    return one.operands[0].type


def nothing(context: Context, one: Instruction) -> Type:
    return VOID


Typing = Callable[[Context, Instruction], Type | None]
TYPING: dict[str, Typing] = {
    **dict.fromkeys(_INT_OPS | _FLOAT_OPS, binary), **dict.fromkeys((*CASTS, "bitcast", "addrspacecast"), cast),
    "icmp": icmp, "fcmp": fcmp, "select": select, "alloca": alloca, "load": load, "cmpxchg": cmpxchg,
    "atomicrmw": atomicrmw, "getelementptr": getelementptr, "extractvalue": _member, "insertvalue": insertvalue,
    "extractelement": extractelement, "insertelement": insertelement, "shufflevector": shufflevector, "call": call,
    "phi": written, "va_arg": written, "freeze": first, "store": store, "switch": switch, "br": br,
}  # fmt: skip
