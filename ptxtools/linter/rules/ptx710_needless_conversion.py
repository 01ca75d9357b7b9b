"""PTX710 | conversion that changes nothing | 9.7.9.25, 9.7.9.24

What: a cvt between types of one size that keeps all bits; one back to the type that the value was widened from without
loss, if nothing else needs the wider one, or it is a float
(also an integer that a float holds exactly); two conversions one behind the other of which the second
alone would do; cvta and cvta.to of one space in turn; or a cvta of an address that an earlier one has converted.
Why: each is an instruction, and a register that lives on. ptxas removes many of them, but none at -O0.
Example:
    cvt.u64.u32 %rd4, %r1;
    cvt.u32.u64 %r5, %rd4;
    add.u32 %r6, %r5, 1;
Better:
    add.u32 %r6, %r1, 1;
"""

from __future__ import annotations

from ptxtools.check.edits import rewritten
from ptxtools.diagnostics import Fix
from ptxtools.ir.nodes import Name, Variable
from ptxtools.ir.positions import part_span, parts_of
from ptxtools.ir.symbols import RegisterKey
from ptxtools.isa.types import TYPES
from ptxtools.records import NamedTuple

from ..constants import reaching_write, value_at
from ..context import LintContext
from ..facts import ENDING, FunctionFacts, Line
from ..lanes import only_write
from ..registry import bodies_with

CODE = "PTX710"

#: Bits that a floating-point type holds exactly of a smaller one.
_EXACT = {("f64", "f32"), ("f64", "f16"), ("f32", "f16"), ("f32", "bf16")}
#: Bits of the integers that it holds exactly.
_WHOLE = {"f64": 32, "f32": 16, "f16": 8}


class _Conversion(NamedTuple):
    """From one type to another, of whole registers; plain: it does no more than that."""

    into: str
    source: str
    plain: bool


@bodies_with("cvt")
def check(context: LintContext, facts: FunctionFacts) -> None:
    chains: dict[RegisterKey | None, tuple[Line, str, str, Fix | None]] = {}
    for line in facts.of("cvt"):
        last = _conversion(line)
        source = line.item.operands[1] if last is not None else None
        if last is None or not isinstance(source, Name):
            continue
        made = only_write(facts, line, source.name)
        first = _conversion(made) if made is not None and made.item.guard is None else None
        if last.plain and _keeps(last.into, last.source):
            fix = _moved(context, line, line) if last.into[0] in "us" else None  # of a NaN it may change bits
            _warn(context, line, f"'{line.item.opcode}' changes no bit", "use mov, or the register itself", fix)
        elif made is None or first is None or first.into[1:] != last.source[1:] or not _still(facts, made):
            continue
        elif last.source == first.into and last.into == first.source and _gives_back(made, first, line, last):
            number = context.source.line_of(made.item.span[0])
            message = f"this gives back what line {number} has converted"
            if "f" in (last.into[0], first.into[0]):
                fix = _moved(context, line, made) if last.into[0] in "us" else None
                _warn(context, line, message, "use that register", fix)
            else:  # the low half of a register that something else needs is there for nothing
                chains[line.registers[source.name]] = line, message, "use that register", _moved(context, line, made)
        elif better := _at_once(first, last):
            message = "two conversions, and nothing else reads what is between them"
            fix = None
            if _still(facts, made):
                fix = rewritten(context.source.text, line.item, better, {1: _written(context, made)})
            chains[line.registers[source.name]] = line, message, f"use {better}", fix
    for key, (line, message, help, fix) in chains.items():
        if facts.read_counts[key] == 1:
            _warn(context, line, message, help, fix)


@bodies_with("cvta")
def check_addresses(context: LintContext, facts: FunctionFacts) -> None:
    first: dict[tuple[str, RegisterKey], Line] = {}  # those that run whatever way is taken
    for place, run in enumerate(facts.runs):
        known: dict[tuple[str, RegisterKey], Line] = {}
        always = place == 0
        for line in run:
            always = always and line.plan.family not in ENDING
            operands = line.item.operands
            if line.plan.family != "cvta" or line.item.guard is not None or len(operands) != 2:
                continue
            into, source = operands
            if not isinstance(source, Name) or not isinstance(into, Name):
                continue
            key, made = line.registers[source.name], reaching_write(facts, line, source.name)
            if key is None or made is None:
                continue
            if made.item.guard is None and _opposite(made, line) and _kept(facts, made, line):
                message = "this gives back the address that the cvta before has converted"
                _warn(context, line, message, "use that", _moved(context, line, made))
                continue
            if only_write(facts, line, source.name) is None or only_write(facts, line, into.name) is not line:
                continue
            before = known.get((line.item.opcode, key)) or first.get((line.item.opcode, key))
            if before is not None:
                number = context.source.line_of(before.item.span[0])
                message, fix = f"line {number} has converted this address", _moved(context, line, before, 0)
                _warn(context, line, message, "use its register", fix)
            else:
                (first if always else known)[line.item.opcode, key] = line


def _moved(context: LintContext, line: Line, made: Line, operand: int = 1) -> Fix | None:
    """The fix that copies an operand of an instruction instead of converting."""
    into = line.item.opcode.split(".")[-2 if line.plan.family == "cvt" else -1]
    return rewritten(context.source.text, line.item, f"mov.b{into[1:]}", {1: _written(context, made, operand)})


def _written(context: LintContext, line: Line, operand: int = 1) -> str:
    """An operand as it is written."""
    return context.source.text[slice(*part_span(line.item, operand))]


def _warn(context: LintContext, line: Line, message: str, help: str, fix: Fix | None) -> None:
    section = line.plan.op.section if line.plan.op is not None else None
    context.warn(CODE, message, parts_of(line.item).opcode, help=(help,), section=section, fix=fix)


def _still(facts: FunctionFacts, made: Line) -> bool:
    """Whether the source of an instruction is what it was then: a register that is written once."""
    source = made.item.operands[1]
    return isinstance(source, Name) and only_write(facts, made, source.name) is not None


def _kept(facts: FunctionFacts, made: Line, line: Line) -> bool:
    """Whether the source of an instruction still has its value at a later one."""
    source = made.item.operands[1]
    return isinstance(source, Name) and value_at(facts, made, source) == value_at(facts, line, source)


def _opposite(made: Line, line: Line) -> bool:
    one, other = made.item.opcode, line.item.opcode
    return made.plan.family == "cvta" and one != other and one.replace(".to.", ".") == other.replace(".to.", ".")


def _conversion(line: Line) -> _Conversion | None:
    """What a cvt of whole registers converts; None if it is another one."""
    words = line.item.opcode.split(".")[1:]
    if line.plan.family != "cvt" or len(words) < 2 or len(line.item.operands) != 2:
        return None
    into, source = words[-2:]
    plain = all(word in ("rn", "rz") for word in words[:-2]) and (into[0] == "f") == (source[0] == "f")
    for operand, name in zip(line.item.operands, (into, source), strict=True):
        symbol = line.names.lookup(operand.name) if isinstance(operand, Name) else None
        if not isinstance(symbol, Variable) or name not in TYPES or TYPES[symbol.type].bits != TYPES[name].bits:
            return None
    return _Conversion(into, source, plain)


def _keeps(into: str, source: str) -> bool:
    """Whether a conversion leaves all bits as they are."""
    return into == source or (into[0] in "us" and source[0] in "us" and into[1:] == source[1:])


def _widens(one: _Conversion) -> bool:
    """Whether a conversion loses nothing."""
    if (one.into, one.source) in _EXACT:
        return True
    return one.into[0] in "us" and one.source[0] in "us" and TYPES[one.into].bits > TYPES[one.source].bits


def _gives_back(made: Line, first: _Conversion, line: Line, last: _Conversion) -> bool:
    """Whether a conversion into the type that a value came from gives it back: nothing was lost on the way."""
    if first.source[0] in "us" and first.into in _WHOLE:
        exact = TYPES[first.source].bits <= _WHOLE[first.into]
        return exact and not any(".sat" in one.item.opcode or ".ftz" in one.item.opcode for one in (made, line))
    return first.plain and _widens(first)


def _at_once(first: _Conversion, last: _Conversion) -> str:
    """The conversion that does what two of integers do; "" if there is none."""
    names = (first.into, first.source, last.into, last.source)
    if not (first.plain and last.plain) or any(name[0] not in "us" for name in names):
        return ""
    bits = [TYPES[name].bits for name in (first.source, first.into, last.into)]
    if bits[0] > bits[1] > bits[2]:
        return f"cvt.{last.into}.{first.source}"
    alike = first.source[0] == last.source[0] or first.source[0] == "u"
    return f"cvt.{last.into}.{first.source}" if bits[0] < bits[1] < bits[2] and alike else ""
