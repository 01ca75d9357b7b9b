"""Calls: the callee, its prototype, and whether arguments match parameters (9.7.12.5, 7.1, 11.3.3)."""

from __future__ import annotations

from collections.abc import Sequence

from ptxtools.ir.nodes import (
    Alias,
    Arguments,
    CallPrototype,
    CallTargets,
    Function,
    Immediate,
    Instruction,
    Name,
    Operand,
    Variable,
)
from ptxtools.ir.positions import part_span
from ptxtools.isa import Opcode
from ptxtools.isa.types import TYPES
from ptxtools.records import NamedTuple

from . import codes
from .context import Context
from .exchanged import exchanged
from .functions import WIDE_ENOUGH, narrow_values, parameter_alignment
from .problems import names_of, undeclared
from .values import Scope
from .vectors import constant_fits

SECTION = "9.7.12.5"


class _Call(NamedTuple):
    """The parts of a call with their operand indices; -1 for missing ones."""

    returns: int
    callee: int
    arguments: int
    prototype: int


def check_call(context: Context, item: Instruction, op: Opcode, scope: Scope) -> None:
    """All rules about one call."""
    call = _parts(item.operands)
    if call is None:
        names = "(results), function, (arguments), prototype"
        _report(context, item, -1, codes.OPERAND_COUNT, "malformed call", help=(f"operands: {names}",))
        return
    signature = _signature(context, item, call, scope)
    if signature is None:
        return
    if not (isinstance(signature, Function) and signature.body is not None):
        for _, message in narrow_values(signature):
            _report(context, item, call.callee, codes.PARAMETER, message, help=WIDE_ENOUGH, section="7.1")
            return
    callee = getattr(item.operands[call.callee], "name", "?")
    given = [_items(item.operands[index]) if index >= 0 else () for index in (call.returns, call.arguments)]
    counts = [len(given[0]), len(given[1])]
    if counts[0] != counts[1] and counts == [len(signature.params), len(signature.returns)]:
        message = f"results and arguments of this call of '{callee}' are swapped"
        _report(context, item, max(call.returns, 0), codes.CALL_COUNT, message)
        return
    for index, actual, formals, what in (
        (call.returns, given[0], signature.returns, "result"),
        (call.arguments, given[1], signature.params, "argument"),
    ):
        variadic = what == "argument" and getattr(signature, "variadic", False)
        if len(actual) != len(formals) and not (variadic and len(actual) >= len(formals)):
            message = f"'{callee}' has {_count(len(formals), what)}, the call has {len(actual)}"
            _report(context, item, index if index >= 0 else call.callee, codes.CALL_COUNT, message)
            continue
        for place, code, message in _mismatches(actual, formals, what, scope):
            _report(context, item, index, code, message, part=place)


def _mismatches(
    actual: Sequence[Operand], formals: Sequence[Variable], what: str, scope: Scope
) -> list[tuple[int, str, str]]:
    """Mismatched arguments: index, code and message; two swapped ones are one mistake."""

    def wrong(operands: Sequence[Operand]) -> list[tuple[int, str, str]]:
        found = ((n, _argument(o, f, what, scope)) for n, (o, f) in enumerate(zip(operands, formals, strict=False)))
        return [(place, *problem) for place, problem in found if problem is not None]

    problems = wrong(actual)
    pair = exchanged(actual, (place for place, _, _ in problems), lambda swapped: not wrong(swapped))
    if pair is None:
        return problems
    return [(pair[0], problems[0][1], f"{what}s {pair[0] + 1} and {pair[1] + 1} of this call are swapped")]


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _parts(operands: Sequence[Operand]) -> _Call | None:
    """The roles of the operands: results and arguments are the parenthesised lists around the callee."""
    rest = list(range(len(operands)))
    returns = rest.pop(0) if len(rest) > 1 and isinstance(operands[0], Arguments) else -1
    if not rest or not isinstance(operands[rest[0]], Name):
        return None
    callee = rest.pop(0)
    arguments = rest.pop(0) if rest and isinstance(operands[rest[0]], Arguments) else -1
    prototype = rest.pop(0) if rest and isinstance(operands[rest[0]], Name) else -1
    return None if rest else _Call(returns, callee, arguments, prototype)


def _items(operand: Operand) -> tuple[Operand, ...]:
    return operand.items if isinstance(operand, Arguments) else (operand,)


def _signature(context: Context, item: Instruction, call: _Call, scope: Scope) -> Function | CallPrototype | None:
    """The function or prototype that the call must match; None after a finding."""
    name = item.operands[call.callee].name  # type: ignore[union-attr]
    value = scope.resolve(name)
    if value.kind == "unknown":
        problem = undeclared(name, scope, call.callee)
        help = (*problem.help, "a function must be declared before its first call")
        _report(
            context,
            item,
            call.callee,
            codes.UNDECLARED,
            f"'{name}' is not declared here",
            help=help,
            past_range=problem.past_range,
        )
        return None
    if value.kind == "reg":
        return _indirect(context, item, call, scope, name)
    symbol = scope.lookup(name)
    if isinstance(symbol, Alias):
        symbol = scope.lookup(symbol.target)
    if not isinstance(symbol, Function) or symbol.kind != "func":
        what = "an entry" if isinstance(symbol, Function) else f"a {value.kind}"
        _report(context, item, call.callee, codes.CALL_TARGET, f"'{name}' is {what}; only a .func can be called")
        return None
    if call.prototype >= 0:
        message = "a direct call takes no prototype"
        _report(context, item, call.prototype, codes.CALL_PROTOTYPE, message)
        return None
    return symbol


def _indirect(
    context: Context, item: Instruction, call: _Call, scope: Scope, name: str
) -> Function | CallPrototype | None:
    value = scope.resolve(name)
    bits = TYPES[value.type].bits if value.type in TYPES else 0
    if value.vector or TYPES[value.type].kind not in ("int", "bits") or bits not in (32, 64):
        message = f"'{name}' is a .{value.type} register: it cannot hold the address of a function"
        _report(context, item, call.callee, codes.CALL_TARGET, message)
        return None
    if call.prototype < 0:
        message = "an indirect call needs a .callprototype or .calltargets list as its last operand"
        _report(context, item, call.callee, codes.CALL_PROTOTYPE, message, section="11.3.3")
        return None
    label = item.operands[call.prototype].name  # type: ignore[union-attr]
    symbol = scope.lookup(label)
    if isinstance(symbol, CallPrototype):
        return symbol
    if isinstance(symbol, CallTargets):
        target = scope.lookup(symbol.targets[0]) if symbol.targets else None
        return target if isinstance(target, Function) else None
    message = f"'{label}' is not a .callprototype or .calltargets declared before the call"
    _report(context, item, call.prototype, codes.CALL_PROTOTYPE, message, section="11.3.3")
    return None


def _argument(operand: Operand, formal: Variable, what: str, scope: Scope) -> tuple[str, str] | None:
    """Why an argument does not match its formal parameter, as (code, message)."""
    wanted = f"parameter '{formal.name}' (.{formal.type}{_dims(formal)})" if formal.name != "_" else f".{formal.type}"
    if isinstance(operand, Immediate):
        if what == "result":
            return codes.CALL_ARGUMENT, "a constant cannot receive a result"
        if formal.dims or not _constant(operand, formal.type):
            return codes.CALL_ARGUMENT, f"this constant does not match {wanted}"
        return None
    if not isinstance(operand, Name):
        return codes.CALL_ARGUMENT, f"{what}s are registers, constants or .param variables"
    if operand.name == "_":
        return None if what == "result" else (codes.SINK, "'_' discards a result: it cannot be an argument")
    value = scope.resolve(operand.name)
    if value.kind == "unknown":
        return codes.UNDECLARED, f"'{operand.name}' is not declared here"
    symbol = scope.lookup(operand.name)
    if value.kind == "reg":
        if formal.dims:
            return codes.CALL_ARGUMENT, f"'{operand.name}' is a register; {wanted} takes a .param array"
        return _types(operand.name, value.type, value.vector or 1, formal, wanted)
    if isinstance(symbol, Variable) and symbol.space == "param":
        return _parameter(symbol, formal, wanted)
    return codes.CALL_ARGUMENT, f"'{operand.name}' is neither a register nor a .param variable"


def _constant(operand: Immediate, wanted: str) -> bool:
    return wanted != "pred" and constant_fits(operand.type, wanted)


def _types(name: str, have: str, vector: int, formal: Variable, wanted: str) -> tuple[str, str] | None:
    want, has = TYPES[formal.type], TYPES[have]
    agree = want.bits == has.bits and ("bits" in (want.kind, has.kind) or want.kind == has.kind)
    if not agree or vector != formal.vector or (want.kind == "pred") != (has.kind == "pred"):
        return codes.CALL_ARGUMENT, f"'{name}' (.{have}) does not match {wanted}"
    return None


def _parameter(actual: Variable, formal: Variable, wanted: str) -> tuple[str, str] | None:
    if None not in (*actual.dims, *formal.dims) and (actual.dims or formal.dims):
        have, want = _bytes(actual), _bytes(formal)
        if have != want or bool(actual.dims) != bool(formal.dims):
            return codes.CALL_ARGUMENT, f"'{actual.name}' has {have} bytes, {wanted} has {want}"
    elif not formal.dims:
        problem = _types(actual.name, actual.type, actual.vector, formal, wanted)
        if problem is not None:
            return problem
    have, want = parameter_alignment(actual), parameter_alignment(formal)
    if have != want:
        return codes.CALL_ARGUMENT, f"'{actual.name}' is aligned to {have}, {wanted} to {want}"
    return None


def _dims(variable: Variable) -> str:
    return "".join(f"[{'' if n is None else n}]" for n in variable.dims)


def _bytes(variable: Variable) -> int:
    total = TYPES[variable.type].bytes * variable.vector
    for n in variable.dims:
        total *= n or 0
    return total


def _report(
    context: Context,
    item: Instruction,
    operand: int,
    code: str,
    message: str,
    *,
    part: int | None = None,
    help: tuple[str, ...] = (),
    section: str = SECTION,
    past_range: bool = False,
) -> None:
    subjects, span = names_of(item, operand, part), part_span(item, operand, part)
    context.report(code, message, span, help=help, section=section, subjects=subjects, past_range=past_range)
