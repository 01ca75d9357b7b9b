"""Inline assembly (6.1, 3.24): its constraints, and its PTX, with positions in the text of the module."""

from __future__ import annotations

import re
from functools import lru_cache

from ptxtools.diagnostics import Diagnostic, Severity

from ..assembly.nodes import Instruction, Value, Word
from ..assembly.tokens import placed, unescaped
from ..assembly.types import VOID, Type
from .context import Context

CODE = "NVVM230"
#: 6.1: constraint -> bits, the kind of its type, and the type of the register that stands for it.
CONSTRAINTS = {
    "c": (8, "int", "b16"), "h": (16, "int", "b16"), "r": (32, "int", "b32"), "l": (64, "int", "b64"),
    "f": (32, "float", "f32"), "d": (64, "float", "f64"),
}  # fmt: skip
_PLACE = re.compile(r"\$(?:(\$)|(\d+)|\{(\d+)(?::\w+)?\}|([(|)])|\{:\w+\})")
#: Findings about what surrounds the text, which is not the user's: versions, targets, the module.
_OURS = ("PTX3", "PTX4")
_UNDECLARED = ("PTX201",)
_HEAD = ".version 9.0\n.target sm_100a\n.address_size 64\n"


def check_assembler(context: Context, one: Instruction) -> None:
    value = one.operands[0]
    for word in value.extra["flags"]:
        if word[0] == "inteldialect":
            context.at_word(CODE, word, "the assembler dialect 'inteldialect' is not supported")
    types = _check_constraints(context, value, one.extra["callee"].result, one.operands[1:])
    if types is not None:
        _check_text(context, value.extra["code"], types)


def _outputs(result: Type, context: Context) -> list[Type]:
    if result is VOID:
        return []
    made = context.resolved(result)
    return list(made.elements) if made.kind == "struct" else [result]


def _check_constraints(context: Context, value: Value, result: Type, arguments: list[Value]) -> list[str] | None:
    """The type of each operand's register; None if the constraints are not understood."""
    word = value.extra["constraints"]
    outputs, inputs = _outputs(result, context), list(arguments)
    registers: list[str] = []
    good = True
    for text in filter(None, unescaped(word[0]).split(",")):
        if text.startswith("~"):
            continue
        output = text.startswith("=")
        letter = text.lstrip("=&+%!")
        if letter.isdecimal() and not output and int(letter[:4]) < len(registers):
            register = registers[int(letter[:4])]
            if inputs:
                inputs.pop(0)
            registers.append(register)
            continue
        given = outputs if output else [one.type for one in inputs]
        if letter not in CONSTRAINTS:
            context.at_word(CODE, word, f"constraint '{text[:20]}' is not supported", "constraints are c h r l f d")
            good = False
        elif not given:
            context.at_word(CODE, word, f"constraint '{text}' has no {'result' if output else 'argument'}")
            good = False
        elif not _fits(given[0], letter):
            context.at_word(CODE, word, f"constraint '{text}' is for {_name(letter)}, not for {given[0]}")
        (outputs if output else inputs)[:1] = []
        registers.append(CONSTRAINTS[letter][2] if letter in CONSTRAINTS else "b32")
    if good and (inputs or outputs):
        what = "arguments" if inputs else "results"
        context.at_word(CODE, word, f"there are {what} without a constraint")
    return registers if good else None


def _name(letter: str) -> str:
    bits, kind, _ = CONSTRAINTS[letter]
    return f"i{bits}" if kind == "int" else {32: "float", 64: "double"}[bits]


def _fits(type: Type, letter: str) -> bool:
    """Whether a type goes into a constraint's register: what is no number of another width is judged by its size."""
    bits, kind, _ = CONSTRAINTS[letter]
    if type.kind in ("int", "float"):
        return (type.kind == kind and type.bits == bits) or (type.kind == "float" and type.bits == 16 and letter == "h")
    if type.kind == "pointer":
        return letter == "l" or letter == "r"
    if type.kind == "vector":
        return type.scalar.bits * type.count == bits
    return False


@lru_cache(4096)
def _linted(code: str, registers: tuple[str, ...]) -> tuple[tuple[Diagnostic, int, int], ...]:
    """The errors in the text of an inline assembler, with offsets in it, negative ones before it."""
    from ptxtools.check import check
    from ptxtools.syntax import parse

    declared = "".join(f".reg .{kind} %__{number};" for number, kind in enumerate(registers))
    head = f"{_HEAD}.func __asm() {{ {declared}\n"
    module, syntax = parse(f"{head}{code}\n}}", "<asm>")
    found = list(syntax) or [one for one in check(module) if not one.code.startswith(_OURS)]
    errors = [one for one in found if one.severity is Severity.ERROR]
    return tuple((one, one.span[0] - len(head), one.span[1] - len(head)) for one in errors)


def _check_text(context: Context, word: Word, registers: list[str]) -> None:
    text, places = placed(word[0])
    made: list[str] = []
    offsets: list[int] = []
    at = 0
    for match in _PLACE.finditer(text):
        number = match[2] or match[3]
        made.append(text[at : match.start()])
        offsets += places[at : match.start()]
        instead = "$" if match[1] else f"%__{number}" if number else "" if match[4] else "1"
        if number and int(number[:6]) >= len(registers):
            context.at_word(
                CODE, word, f"the text has an operand {match[0]}, and there are {len(registers)} constraints"
            )
            return
        made.append(instead)
        offsets += [places[match.start()]] * len(instead)
        at = match.end()
    made.append(text[at:])
    offsets += places[at:]
    code = "".join(made)
    if not code.strip() or "\0" in code:
        return
    names = {name[1:] for name in (*context.module.functions, *context.module.variables)}
    for finding, begin, end in _linted(code, tuple(registers)):
        if finding.code in _UNDECLARED and (finding.subject in names or context.module.inline):
            continue
        first = word[1] + (offsets[begin] if 0 <= begin < len(offsets) else 0)
        last = word[1] + (offsets[end - 1] + 1 if 0 < end <= len(offsets) else len(word[0]))
        message = re.sub(r"%__(\d+)", r"$\1", finding.message)
        context.error(finding.code, (first, max(last, first)), f"in inline PTX: {message}", *finding.help)


def check_module_assembler(context: Context) -> None:
    """`module asm` (3.24): the statements of all, which are one text."""
    if not context.module.inline:
        return
    from ptxtools.syntax import parse

    offsets: list[int] = []
    lines: list[str] = []
    for token, at in context.module.inline:
        text, places = placed(token)
        lines.append(text + "\n")
        offsets += [*(at + place for place in places), at + len(token) - 1]
    for finding in parse(_HEAD + "".join(lines), "<asm>").diagnostics:
        begin, end = (place - len(_HEAD) for place in finding.span)
        if finding.severity is Severity.ERROR and 0 <= begin < len(offsets):
            last = offsets[min(end, len(offsets)) - 1] + 1 if end > begin else offsets[begin]
            context.error(finding.code, (offsets[begin], last), f"in inline PTX: {finding.message}", *finding.help)
