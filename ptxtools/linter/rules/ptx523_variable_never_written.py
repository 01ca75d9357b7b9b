"""PTX523 | memory is read that nothing writes | 5.1.6, 5.1.7

What: a .local or .shared variable that instructions only load from or add to, by its name; or a column of tensor memory
that a tcgen05.ld reads, or a product reads or adds to, and nothing has written. Or a word of a .local variable, by its
name or a register that holds its address, is loaded at the begin of a function where only some of its bytes have been
stored, and something is computed of the others (possible).
Why: its bytes have no value.
Example:
    .local .align 4 .b32 v[4];
    ld.local.b32 %r4, [v+8];
Better:
    .local .align 4 .b32 v[4];
    st.local.b32 [v+8], 1;
    ld.local.b32 %r4, [v+8];
"""

from __future__ import annotations

from ptxtools.ir.nodes import Address, Immediate, Name, Operand, Variable
from ptxtools.ir.positions import part_span
from ptxtools.ir.symbols import RegisterKey
from ptxtools.isa.types import TYPES

from ..context import LintContext
from ..facts import FunctionFacts, Line, operand_names
from ..registry import bodies_with, modules_with
from ..unset import POSSIBLE, Source, bits_of, computed_with
from ..walk import tell

CODE = "PTX523"

#: Which operand of an atomic operation is the address.
_ADDRESSES = {"atom": 1, "red": 0}


@modules_with("ld", "atom", "red")
def check(context: LintContext) -> None:
    loads: dict[int, Line] = {}
    others: set[int] = set()
    outside = {item.name for item in context.module.variables if item.space == "shared"}
    for facts in context.facts.functions:
        here = {item.name for item in facts.others if isinstance(item, Variable) and item.space in ("local", "shared")}
        wanted = (outside | here) & facts.targets.keys()
        for line in [line for name in wanted for line in facts.targets[name]]:
            for place, operand in enumerate(line.item.operands):
                for name in _names(operand, wanted):
                    symbol = line.names.lookup(name)
                    if isinstance(symbol, Variable) and symbol.space in ("local", "shared"):
                        if (line.plan.family == "ld" and place == 1) or _updates(line, place):
                            loads.setdefault(id(symbol), line)
                        else:
                            others.add(id(symbol))
    for number, line in loads.items():
        place = _ADDRESSES.get(line.plan.family, 1)
        operand = line.item.operands[place]
        base = operand.base if isinstance(operand, Address) else operand
        symbol = line.names.lookup(getattr(base, "name", ""))
        if number not in others and isinstance(symbol, Variable) and not symbol.linkage:
            message = f"nothing writes '{symbol.name}' before this"
            context.warn(CODE, message, part_span(line.item, place), section="5.1.7")


def _updates(line: Line, place: int) -> bool:
    """Whether an operand is what an atomic operation computes with: it neither sets nor exchanges it."""
    words = line.item.opcode.split(".")
    return place == _ADDRESSES.get(words[0]) and "exch" not in words and "cas" not in words


def _names(operand: Operand, wanted: set[str]) -> list[str]:
    """The variables of an operand that are looked for."""
    if type(operand) is Name:
        return [operand.name] if operand.name in wanted else []
    return [name for name, _ in operand_names(operand) if name in wanted]


@bodies_with("ld")
def check_parts(context: LintContext, facts: FunctionFacts) -> None:
    own = {id(item) for item in facts.others if isinstance(item, Variable) and item.space == "local"}
    if not facts.runs or not own:
        return
    begin = facts.runs[0] if facts.runs[0][0] is facts.lines[0] and not _jumped_to(facts) else []
    for source in computed_with(facts, begin, _partly_stored(begin, own)):
        message = "only some bytes that are read here have been stored, and something is computed of the others"
        context.warn(CODE, message, part_span(source.item, 1), help=(POSSIBLE,), section="5.1.5")


def _jumped_to(facts: FunctionFacts) -> bool:
    """Whether something may lead back to the first instruction."""
    return 0 in facts.jumps.values() or any(0 in places for places in facts.tables.values())


def _partly_stored(run: list[Line], own: set[int]) -> dict[int, Source]:
    """Loads of some variables (their identities) of which only some bytes have been stored, by the identity of the
    load. A variable whose address goes elsewhere than into registers that hold it is not looked at any more."""
    stored: dict[int, set[int]] = {number: set() for number in own}
    found: dict[int, Source] = {}
    held: dict[RegisterKey, tuple[int, int]] = {}  # registers that hold the address of a variable, and bytes behind it
    for line in run:
        taken = _taken(line, held, own)
        if taken is not None:
            held[taken[0]] = taken[1]
            continue
        for operand in line.item.operands:
            for name, _ in operand_names(operand):
                key = line.registers[name]
                number, behind = held.get(key, (0, 0)) if key is not None else (id(line.names.lookup(name)), 0)
                known = stored.get(number)
                reach = _reach(line, operand, behind)
                if known is None or reach is None:
                    stored.pop(number, None)
                elif line.plan.family == "st":
                    known.update(reach)  # perhaps, if it is guarded
                elif not known.isdisjoint(reach) and not known.issuperset(reach) and line.item.guard is None:
                    unset = bits_of([byte - reach[0] for byte in reach if byte not in known])
                    found[id(line.item)] = Source(line.item, 0, unset)
    return found


def _taken(
    line: Line, held: dict[RegisterKey, tuple[int, int]], own: set[int]
) -> tuple[RegisterKey, tuple[int, int]] | None:
    """The register into which the address of a variable goes, or one a constant further, and what it holds then."""
    operands = line.item.operands
    if len(operands) != {"mov": 2, "add": 3}.get(line.plan.family) or line.item.guard is not None:
        return None
    target, source = operands[:2]
    if not isinstance(target, Name) or not isinstance(source, Name):
        return None
    into, key = line.registers[target.name], line.registers[source.name]
    if into is None or into in held:
        return None
    number, behind = held.get(key, (0, 0)) if key is not None else (id(line.names.lookup(source.name)), 0)
    more = operands[2] if line.plan.family == "add" else None
    if number not in own or not (more is None or isinstance(more, Immediate)):
        return None
    return into, (number, behind + (more.value if more is not None else 0))


def _reach(line: Line, operand: Operand, behind: int) -> range | None:
    """The bytes that a load or store accesses behind an address, which is so many behind a variable's; None if it is
    none, or one of a vector."""
    info = TYPES.get((line.plan.op.type if line.plan.op is not None else "") or "")
    if info is None or not isinstance(operand, Address) or line.plan.family not in ("ld", "st"):
        return None
    if operand.extra or ".v" in line.item.opcode:
        return None
    return range(behind + operand.offset, behind + operand.offset + info.bytes)


@bodies_with("tcgen05")
def check_columns(context: LintContext, facts: FunctionFacts) -> None:
    tell(context, facts, CODE, "unwritten column", "9.7.16.1.1")
