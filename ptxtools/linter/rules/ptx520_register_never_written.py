"""PTX520 | register is never written | 5.1.1

What: an instruction computes with a register that the function never writes; or it is one part of several that a mov
packs, and what that gives is stored whole, or computed with as one number.
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

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..lanes import only_write
from ..registry import bodies

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
    for key in facts.reads.keys() - facts.writes.keys():
        (declaration, name), item = key, facts.reads[key]
        whole = _packed(facts, key) if declaration not in parameters else ""
        if whole:
            message = f"part '{name}' of what is packed here is never written, and the whole is used as {whole}"
            help = (_POSSIBLE,) if whole == _NUMBER else ()
            context.warn(CODE, message, name_span(item, name), help=help, section="5.1.1")
        elif declaration not in parameters and not item.opcode.startswith(_MOVES) and not _shuffled(item, name):
            message = f"register '{name}' is read here but never written"
            context.warn(CODE, message, name_span(item, name), section="5.1.1")


def _packed(facts: FunctionFacts, key: RegisterKey) -> str:
    """As what the whole is used of which a register, where it is first read, is a part; empty if it is not."""
    item = facts.reads[key]
    into, *parts = item.operands if item.opcode.startswith("mov.b") else (None,)
    if not isinstance(into, Name) or len(parts) != 1 or not isinstance(parts[0], Vector):
        return ""
    line = next(line for line in facts.lines if line.item is item)
    made = only_write(facts, line, into.name)
    whole = line.registers[into.name]
    if made is not line:
        return ""
    if any(_addresses(other, whole) for other in facts.of(*_WHOLE, "ld")):
        return _ADDRESS
    return _NUMBER if any(_whole(other, whole) for other in facts.of(*_WHOLE)) else ""


def _addresses(line: Line, key: RegisterKey | None) -> bool:
    """Whether a register is the address of an access."""
    bases = [operand.base for operand in line.item.operands if isinstance(operand, Address)]
    return any(isinstance(base, Name) and line.registers[base.name] == key for base in bases)


def _whole(line: Line, key: RegisterKey | None) -> bool:
    """Whether an instruction stores a register, or computes with it as a number."""
    op = line.plan.op
    places = [place for place, one in enumerate(line.item.operands) if isinstance(one, Name)]
    if line.item.opcode.startswith(("st.param", "st.local")):
        return False  # of a structure, which has padding
    used = any(line.registers[line.item.operands[place].name] == key for place in places if place)  # type: ignore[union-attr]
    return used and op is not None and (op.type or "").endswith(("32", "64")) and not op.has("x2")


def _shuffled(item: Instruction, name: str) -> bool:
    """Whether a register is only the value that a shfl hands on, the padding of a structure perhaps."""
    if not item.opcode.startswith("shfl.") or (item.guard is not None and item.guard.name == name):
        return False
    return [place for place, operand in enumerate(item.operands) if operand == Name(name)] == [1]
