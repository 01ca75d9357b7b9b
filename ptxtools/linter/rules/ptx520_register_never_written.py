"""PTX520 | register is never written | 5.1.1

What: an instruction computes with a register that the function never writes; or it is one part of several that a mov
packs, and what that gives is stored whole, or computed with as one number, or shifted so that bytes are mixed.
Why: the value is undefined. Compilers leave such reads where the value does not matter, so what only moves bytes (mov,
prmt, the value of shfl) is not reported. Half of a packed address is.
Example:
    .reg .b32 %never;
    mov.b32 %r1, 1;
    add.s32 %r2, %r1, %never;
    st.global.b32 [%rd1], %r2;
Better:
    mov.b32 %r1, 1;
    add.s32 %r2, %r1, 5;
"""

from __future__ import annotations

from ptxtools.ir.nodes import Address, Instruction, Name, Vector
from ptxtools.ir.positions import name_span
from ptxtools.ir.symbols import RegisterKey
from ptxtools.isa.types import TYPES

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..lanes import only_write
from ..registry import bodies
from ..unset import POSSIBLE, Source, computed_with

CODE = "PTX520"

#: What moves bytes without a look at them, as the one byte of an empty structure; a shfl also has a lane and a mask,
#: which matter.
_MOVES = ("mov.", "prmt.", "st.u8", "st.b8", "st.param.b8", "st.param.u8", "st.local.u8", "st.local.b8")

#: Instructions whose result depends on all bits of what they read, those of a store included.
_WHOLE = ("st", "add", "sub", "mul", "mad", "setp", "div", "rem", "min", "max", "atom", "red")
_ADDRESS, _NUMBER = "an address", "one number"
_POSSIBLE = "possible: who reads the whole may not look at this part"


@bodies
def check(context: LintContext, facts: FunctionFacts) -> None:
    # Compilers pack and move undefined bytes: only an instruction that computes with them is a hazard.
    parameters = {id(v) for v in (*facts.function.params, *facts.function.returns)}
    never = [key for key in facts.reads.keys() - facts.writes.keys() if key[0] not in parameters]
    packed = _packed(facts, never)
    unpacked: dict[int, tuple[str, Instruction]] = {}
    for key in never:
        name, item = key[1], facts.reads[key]
        whole = packed.get(key)
        if whole:
            message = f"part '{name}' of what is packed here is never written, and the whole is used as {whole}"
            help = (_POSSIBLE,) if whole == _NUMBER else ()
            context.warn(CODE, message, name_span(item, name), help=help, section="5.1.1")
        elif _packs(item):
            unpacked.setdefault(id(item), (name, item))
        elif not item.opcode.startswith(_MOVES) and not _shuffled(item, name):
            message = f"register '{name}' is read here but never written"
            context.warn(CODE, message, name_span(item, name), section="5.1.1")
    sources = {number: _source(name, item) for number, (name, item) in unpacked.items()}
    for run in facts.runs if sources else ():
        for source in computed_with(facts, run, sources):
            name, item = unpacked[id(source.item)]
            message = f"part '{name}' of what is packed here is never written, and something is computed of it"
            context.warn(CODE, message, name_span(item, name), help=(POSSIBLE,), section="5.1.1")


def _source(name: str, item: Instruction) -> Source:
    """The bits of a part in what an instruction packs."""
    parts = item.operands[1].items if isinstance(item.operands[1], Vector) else ()
    info = TYPES.get(item.opcode.rpartition(".")[2])
    width = info.bits // len(parts) if info is not None and parts else 0
    bits = (1 << width) - 1 << width * parts.index(Name(name)) if Name(name) in parts else 0
    return Source(item, 0, bits)


def _packed(facts: FunctionFacts, never: list[RegisterKey]) -> dict[RegisterKey, str]:
    """As what the whole is used, of registers that are a part of one where they are first read."""
    parts: dict[int, list[RegisterKey]] = {}
    for key in never:
        if _packs(facts.reads[key]):
            parts.setdefault(id(facts.reads[key]), []).append(key)
    wholes: dict[RegisterKey | None, list[RegisterKey]] = {}
    for line in facts.of("mov") if parts else ():
        into = line.item.operands[0] if id(line.item) in parts else None
        if isinstance(into, Name) and only_write(facts, line, into.name) is line:
            wholes[line.registers[into.name]] = parts[id(line.item)]
    found: dict[RegisterKey, str] = {}
    for line in facts.of(*_WHOLE, "ld") if wholes else ():
        for whole in _numbers(line) if line.plan.family in _WHOLE else ():
            for part in wholes.get(whole, ()):
                found.setdefault(part, _NUMBER)
        for operand in line.item.operands:
            base = operand.base if isinstance(operand, Address) else None
            for part in wholes.get(line.registers[base.name], ()) if isinstance(base, Name) else ():
                found[part] = _ADDRESS
    return found


def _packs(item: Instruction) -> bool:
    """Whether an instruction packs parts into a register."""
    packs = item.opcode.startswith("mov.b") and len(item.operands) == 2
    return packs and isinstance(item.operands[0], Name) and isinstance(item.operands[1], Vector)


def _numbers(line: Line) -> list[RegisterKey | None]:
    """The registers that an instruction stores, or computes with as numbers."""
    op = line.plan.op
    if line.item.opcode.startswith(("st.param", "st.local")):
        return []  # of a structure, which has padding
    if op is None or not (op.type or "").endswith(("32", "64")) or op.has("x2"):
        return []
    return [line.registers[one.name] for one in line.item.operands[1:] if isinstance(one, Name)]


def _shuffled(item: Instruction, name: str) -> bool:
    """Whether a register is only the value that a shfl hands on, the padding of a structure perhaps."""
    if not item.opcode.startswith("shfl.") or (item.guard is not None and item.guard.name == name):
        return False
    return [place for place, operand in enumerate(item.operands) if operand == Name(name)] == [1]
