"""A module around one statement: what it names and does not declare is declared as its opcode wants it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ptxtools import isa
from ptxtools.ir import (
    Address,
    Alias,
    Arguments,
    BranchTargets,
    CallPrototype,
    CallTargets,
    Element,
    Function,
    Immediate,
    Instruction,
    Label,
    Loc,
    Member,
    Name,
    Negated,
    Operand,
    Pair,
    Statement,
    SymbolOffset,
    SymbolValue,
    Variable,
    Vector,
)
from ptxtools.isa import registers
from ptxtools.isa.targets import FIRST_VERSION
from ptxtools.isa.types import REGISTER_TYPE, TYPES
from ptxtools.syntax import parse

from .setting import header

_OUTER = re.compile(
    r"\.(?:const|global|tex|shared|extern|visible|weak|common|entry|func|alias|file|section|version|target|address_size)"
    r"\b|@@"
)
_FUNCTION = re.compile(r"(?:\.(?:visible|weak) )?\.(?:entry|func)\b")
#: Coordinates that are integers: array indices, samples, texel coordinates.
_INTEGER_TYPES = frozenset({"s32", "u32"})
_MAX_VECTOR_BITS = 128

#: name -> what declares it: a statement; a module-level one behind "^", a parameter of the kernel behind "(".
Declarations = dict[str, str]
#: Directives of the header, and how much of the usual header stays before them.
_HEADERS = {".version": 0, ".target": 1, ".address_size": 2}


def module_around(setting: str, text: str) -> tuple[list[str], int]:
    """Lines of a module that holds the statements of `text` (separated by `\\n`), and the index of the last of them."""
    statements = text.split("\\n")
    outside = [s for s in statements if _OUTER.match(s)]
    inside = [s for s in statements if not _OUTER.match(s)]
    wanted = _declarations(setting, outside, inside)
    usual = header(setting)
    kept = min((_HEADERS.get(s.split()[0], 3) for s in statements), default=3)
    lines = usual[:kept]
    if any("samplerref" in line for line in (*wanted, *statements)) and kept > 1:
        lines[1] += ", texmode_independent"
    lines += [line[1:] for line in wanted if line[0] == "^"]
    local = [line for line in wanted if line[0] not in "^("]
    lines += [_furnished(text, local) for text in outside]
    at = len(lines) - 1
    if kept == 0:
        lines.append(_target_for(statements[-1]))
    parameters = ", ".join(line[1:] for line in wanted if line[0] == "(")
    start = f".entry kernel_around({parameters})" if _modern(lines) else ".entry kernel_around"
    lines += [start, "{", *local, *inside]
    at = len(lines) - 1 if inside else at
    return [*lines, "ret;", "}", ""], at


def _furnished(text: str, local: list[str]) -> str:
    """A function, with what it names and does not declare."""
    if not _FUNCTION.match(text) or "{" not in text:
        return text
    head, _, body = text.partition("{")
    names = set(re.findall(r"[\w$%]+", body))
    return " ".join([f"{head}{{", *(line for line in local if names & set(re.findall(r"[\w$%]+", line)[-1:])), body])


def _modern(lines: list[str]) -> bool:
    """Whether kernels have parameter lists."""
    return not lines[0].startswith((".version 1.0", ".version 1.1", ".version 1.2", ".version 1.3"))


def _target_for(version: str) -> str:
    """A `.target` line for a `.version` line."""
    number = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    known = [t for t, first in FIRST_VERSION.items() if first <= number and t[-1] not in "af"]
    return f".target {known[-1] if known else 'sm_10'}"


def _declarations(setting: str, outside: list[str], inside: list[str]) -> list[str]:
    """What the statements name and do not declare."""
    body = [".entry kernel_around()", "{", *inside, "}"]
    result = parse("\n".join([*header(setting), *outside, *body, ""]))
    wanted: Declarations = {}
    declared: set[str] = set()
    ranges: set[str] = set()
    for item in result.module.items:
        if isinstance(item, Function):
            declared |= {item.name, *(v.name for v in (*item.params, *item.returns))}
            for statement in item.body.items if item.body else ():
                if isinstance(statement, Variable) and statement.count is not None:
                    ranges.add(statement.name)
                _look(statement, wanted, declared)
        elif isinstance(item, Variable):
            _initialised(item, wanted)
            declared.add(item.name)
        elif isinstance(item, Alias):
            wanted[item.name] = f"^.func {item.name}();"
            wanted[item.target] = f"^.func {item.target}() {{ ret; }}"
    missing = [line for name, line in wanted.items() if name not in declared]
    missing = [line for line in missing if not any(_in_range(line, base) for base in ranges)]
    return list(dict.fromkeys(missing))


def _in_range(line: str, base: str) -> bool:
    return re.search(rf" {re.escape(base)}\d+;$", line) is not None


def _look(statement: Statement, wanted: Declarations, declared: set[str]) -> None:
    if isinstance(statement, Instruction):
        if statement.guard is not None:
            _add(wanted, statement.guard.name, "pred")
        if statement.opcode.startswith("call"):
            _call(statement.operands, wanted)
        else:
            _instruction(statement, wanted)
    elif isinstance(statement, Variable):
        _initialised(statement, wanted)
        declared.add(statement.name)
    elif isinstance(statement, Loc) and statement.inlined_at is not None:
        wanted["inlined_at"] = f".loc {' '.join(map(str, statement.inlined_at))}"
        label = f"{statement.function_name}: " if not str(statement.function_name).startswith(".") else ""
        wanted["function_name"] = f"^.section .debug_str {{ {label}.b8 0 }}"
    elif isinstance(statement, Label):
        declared.add(statement.name)
    elif isinstance(statement, BranchTargets):
        wanted.update((name, f"{name}: ret;") for name in statement.targets)
        declared.add(statement.label)
    elif isinstance(statement, CallTargets):
        wanted.update((name, f"^.func {name}() {{ ret; }}") for name in statement.targets)
        declared.add(statement.label)
    elif isinstance(statement, CallPrototype):
        declared.add(statement.label)


def _initialised(variable: Variable, wanted: Declarations) -> None:
    waiting = [variable.init]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, SymbolValue):
            wanted.setdefault(part.name, f"^.global .b32 {part.name}[64];")
        elif isinstance(part, Member):
            continue


def _add(wanted: Declarations, name: str, type_: str, vector: int = 0) -> None:
    """A register; of two wishes the wider one, without a kind."""
    if name in ("_", "WARP_SZ") or (name.startswith("%") and registers.lookup(name)):
        return
    name, dot, part = name.partition(".")
    if dot and part in ("x", "y", "z", "w", "r", "g", "b", "a"):
        vector = 4 if TYPES.get(type_, TYPES["b32"]).bits <= 32 else 2
    shape = f".v{vector} " if vector else ""
    new = f".reg {shape}.{REGISTER_TYPE.get(type_, type_)} {name};"
    old = wanted.get(name)
    if old is not None and old != new and old.startswith(".reg") and "pred" not in old + new:
        bits = max(TYPES[re.split(r"[ .]+", line)[-2]].bits for line in (old, new))
        new = f".reg {'.' + old.split('.v')[1][0].join(['v', ' ']) if '.v' in old else shape}.b{bits} {name};"
    wanted[name] = new


def _memory(wanted: Declarations, name: str, space: str) -> None:
    if name in wanted:
        return
    if space == "param":
        wanted[name] = f"(.param .align 16 .b8 {name}[64]"
    elif space == "local":
        wanted[name] = f".local .align 16 .b8 {name}[64];"
    elif space in ("texref", "surfref", "samplerref"):
        wanted[name] = f"^.global .{space} {name};"
    elif space == "unified":
        wanted[name] = f"^.global .attribute(.unified(19, 95)) .b32 {name};"
    else:
        wanted[name] = f"^.{space} .align 128 .b8 {name}[1024];"


def _instruction(item: Instruction, wanted: Declarations) -> None:
    try:
        op = isa.resolve(item.opcode)
    except isa.OpcodeError:
        for operand in item.operands:
            for name in _names(operand):
                _add(wanted, name, "b64" if isinstance(operand, Address) else "b32")
        return
    shape = max(op.shapes, key=lambda specs: _score(specs, item.operands))
    specs = list(shape)
    for operand in item.operands:
        while len(specs) > 1 and specs[0].optional and not _may_be(specs[0], operand):
            specs.pop(0)
        if specs:
            _operand(op, specs.pop(0), operand, wanted)


def _may_be(spec: isa.OperandSpec, operand: Operand) -> bool:
    if isinstance(operand, Vector):
        return spec.vector > 0 or "vec" in spec.kinds
    return spec.vector == 0


def _score(specs: Sequence[isa.OperandSpec], operands: Sequence[Operand]) -> float:
    needed = sum(not spec.optional for spec in specs)
    score = 0.0 if needed <= len(operands) <= len(specs) else -2.0
    for spec, operand in zip(specs, operands, strict=False):
        score += isinstance(operand, Address) == (spec.role == "addr")
        score += isinstance(operand, Vector) == bool(spec.vector or "vec" in spec.kinds)
        if isinstance(operand, Vector):
            score += spec.vector == len(operand.items)
        if isinstance(operand, Address):
            score += len(spec.parts) == len(operand.extra)
            score += sum(
                isinstance(e, Vector) == bool(p.vector) for e, p in zip(operand.extra, spec.parts, strict=False)
            )
    return score


def _operand(op: isa.Opcode, spec: isa.OperandSpec, operand: Operand, wanted: Declarations) -> None:
    if isinstance(operand, Name):
        if spec.role == "label" and op.family == "brx":
            wanted[operand.name] = f"{operand.name}: .branchtargets label_around; label_around:"
        elif spec.role == "label":
            wanted[operand.name] = f"{operand.name}:"
        else:
            _register(op, spec, operand.name, wanted)
    elif isinstance(operand, Vector):
        for number, part in enumerate(operand.items):
            inner = _element_type(op, spec, number, len(operand.items))
            for name in _names(part):
                _add(wanted, name, inner)
    elif isinstance(operand, Pair):
        _operand(op, spec, operand.first, wanted)
        if spec.second is not None:
            _operand(op, spec.second, operand.second, wanted)
    elif isinstance(operand, Negated):
        _operand(op, spec, operand.operand, wanted)
    elif isinstance(operand, Address):
        _address(op, spec, operand, wanted)
    elif isinstance(operand, (Element, SymbolOffset)):
        _memory(wanted, operand.name, (op.space or "global").split("::")[0])
        if isinstance(operand, Element) and operand.register:
            _add(wanted, operand.register, "b32")


def _register(op: isa.Opcode, spec: isa.OperandSpec, name: str, wanted: Declarations) -> None:
    type_ = spec.type or op.type or "b32"
    if type_ in ("texref", "samplerref", "surfref"):
        type_ = "b64"
    vector = 0
    if spec.vector in (2, 4) and spec.vector * TYPES[REGISTER_TYPE.get(type_, type_)].bits <= _MAX_VECTOR_BITS:
        vector = spec.vector
    _add(wanted, name, type_, vector)


def _element_type(op: isa.Opcode, spec: isa.OperandSpec, number: int, count: int) -> str:
    """The type of one element of a vector operand."""
    if op.family in ("tex", "tld4") and spec.name == "c":
        integers = 1 if op.mods.get("geom") in ("a1d", "a2d", "acube", "2dms") else 0
        integers += op.mods.get("geom") == "a2dms"
        return "b32" if number < integers or op.mods.get("ctype") == "s32" else "f32"
    if op.family in ("tex", "tld4") and spec.name in ("dPdx", "dPdy"):
        return "f32"
    if op.family == "mov" and op.type is not None and spec.type == op.type and count > 1 and not spec.vector:
        return f"b{TYPES[op.type].bits // count}"
    return spec.type or "b32"


def _address(op: isa.Opcode, spec: isa.OperandSpec, operand: Address, wanted: Declarations) -> None:
    space = (spec.space or "").split("::")[0]
    base = operand.base.name if isinstance(operand.base, (Name, Element)) else ""
    opaque = {"tex": "texref", "tld4": "texref", "txq": "texref", "suld": "surfref", "sust": "surfref",
              "sured": "surfref", "suq": "surfref"}.get(op.family)  # fmt: skip
    if base and operand.suffix and not base.startswith("%"):
        _memory(wanted, base, "unified")
    elif base and opaque:
        _memory(wanted, base, opaque)
    elif base and base.startswith("%"):
        _add(wanted, base, "b32" if space in ("tmem",) else "b64")
    elif base and space == "tmem":
        _add(wanted, base, "b32")
    elif base and space == "param" and op.family == "st":
        wanted[base] = f".param .align 16 .b8 {base}[64];"
    elif base and space in ("global", "shared", "const", "local", "param"):
        _memory(wanted, base, space)
    elif base:
        _add(wanted, base, "b64")
    if isinstance(operand.base, Element) and operand.base.register:
        _add(wanted, operand.base.register, "b32")
    parts = list(spec.parts)
    for index, extra in enumerate(operand.extra):
        if isinstance(extra, Name) and opaque == "texref" and index == 0:
            _memory(wanted, extra.name, "samplerref")
            continue
        part = parts[min(index, len(parts) - 1)] if parts else spec
        _operand(op, part, extra, wanted)


def _call(operands: Sequence[Operand], wanted: Declarations) -> None:
    lists = [o for o in operands if isinstance(o, Arguments)]
    names = [o.name for o in operands if isinstance(o, Name)]
    if not names:
        return
    results = lists[0].items if lists and isinstance(operands[0], Arguments) else ()
    arguments = lists[-1].items if lists and (len(lists) > 1 or not results) else ()
    for part in (*results, *arguments):
        if isinstance(part, Name):
            _add(wanted, part.name, "b32")
    given = ", ".join(f".reg .b32 a{n}" for n in range(len(arguments)))
    returned = ", ".join(f".reg .b32 r{n}" for n in range(len(results)))
    returned = f"({returned}) " if returned else ""
    if len(names) == 1:
        wanted[names[0]] = f"^.func {returned}{names[0]}({given}) {{ ret; }}"
    else:
        _add(wanted, names[0], "b64")
        wanted[names[1]] = f"{names[1]}: .callprototype {returned}_ ({given});"


def _names(operand: object) -> Iterator[str]:
    if isinstance(operand, Name):
        yield operand.name
    elif isinstance(operand, (Vector, Arguments)):
        for part in operand.items:
            yield from _names(part)
    elif isinstance(operand, Pair):
        yield from _names(operand.first)
        yield from _names(operand.second)
    elif isinstance(operand, Negated):
        yield from _names(operand.operand)
    elif isinstance(operand, Address):
        yield from _names(operand.base)
        for part in operand.extra:
            yield from _names(part)
    elif isinstance(operand, Immediate):
        return
