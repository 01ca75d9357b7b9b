"""PTX720 | loop that carries more than the registers hold | 11.4.2

What: the values that a loop carries from one round to the next need more registers than a thread can have: .maxnreg,
or the registers of an SM shared among the threads of .reqntid or .maxntid, .minnctapersm times. Counters by constant
steps count as one, and predicates not at all.
Why: such values cannot be computed again. So ptxas spills: each round stores them in local memory and loads them, which
is device memory behind the caches.
Example:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k(.param .align 16 .b8 x[112]) .maxnreg 24
    {
        .reg .b64 %d<15>; .reg .pred %p<2>;
        ld.param.v2.b64 {%d1, %d2}, [x+0];
        ld.param.v2.b64 {%d3, %d4}, [x+16];
        ld.param.v2.b64 {%d5, %d6}, [x+32];
        ld.param.v2.b64 {%d7, %d8}, [x+48];
        ld.param.v2.b64 {%d9, %d10}, [x+64];
        ld.param.v2.b64 {%d11, %d12}, [x+80];
        ld.param.v2.b64 {%d13, %d14}, [x+96];
        L:
        mad.lo.u64 %d1, %d2, %d3, %d1; mad.lo.u64 %d2, %d3, %d4, %d2;
        mad.lo.u64 %d3, %d4, %d5, %d3; mad.lo.u64 %d4, %d5, %d6, %d4;
        mad.lo.u64 %d5, %d6, %d7, %d5; mad.lo.u64 %d6, %d7, %d8, %d6;
        mad.lo.u64 %d7, %d8, %d9, %d7; mad.lo.u64 %d8, %d9, %d10, %d8;
        mad.lo.u64 %d9, %d10, %d11, %d9; mad.lo.u64 %d10, %d11, %d12, %d10;
        mad.lo.u64 %d11, %d12, %d13, %d11; mad.lo.u64 %d12, %d13, %d14, %d12;
        mad.lo.u64 %d13, %d14, %d1, %d13; mad.lo.u64 %d14, %d1, %d2, %d14;
        setp.ne.u64 %p1, %d14, 0;
        @%p1 bra L;
        ret;
    }
Better:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k(.param .align 16 .b8 x[112]) .maxnreg 48
    {
        .reg .b64 %d<15>; .reg .pred %p<2>;
        ld.param.v2.b64 {%d1, %d2}, [x+0];
        ld.param.v2.b64 {%d3, %d4}, [x+16];
        ld.param.v2.b64 {%d5, %d6}, [x+32];
        ld.param.v2.b64 {%d7, %d8}, [x+48];
        ld.param.v2.b64 {%d9, %d10}, [x+64];
        ld.param.v2.b64 {%d11, %d12}, [x+80];
        ld.param.v2.b64 {%d13, %d14}, [x+96];
        L:
        mad.lo.u64 %d1, %d2, %d3, %d1; mad.lo.u64 %d2, %d3, %d4, %d2;
        mad.lo.u64 %d3, %d4, %d5, %d3; mad.lo.u64 %d4, %d5, %d6, %d4;
        mad.lo.u64 %d5, %d6, %d7, %d5; mad.lo.u64 %d6, %d7, %d8, %d6;
        mad.lo.u64 %d7, %d8, %d9, %d7; mad.lo.u64 %d8, %d9, %d10, %d8;
        mad.lo.u64 %d9, %d10, %d11, %d9; mad.lo.u64 %d10, %d11, %d12, %d10;
        mad.lo.u64 %d11, %d12, %d13, %d11; mad.lo.u64 %d12, %d13, %d14, %d12;
        mad.lo.u64 %d13, %d14, %d1, %d13; mad.lo.u64 %d14, %d1, %d2, %d14;
        setp.ne.u64 %p1, %d14, 0;
        @%p1 bra L;
        ret;
    }
"""

from __future__ import annotations

from math import prod

from ptxtools.ir.nodes import Directive, Immediate, Name, Variable
from ptxtools.ir.positions import parts_of
from ptxtools.ir.symbols import RegisterKey
from ptxtools.isa.types import TYPES

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..inflight import accessed
from ..loops import Loop
from ..registry import bodies_with

CODE = "PTX720"

#: Registers of an SM, of 32 bits; those of a thread: at most, at least (ptxas 13.0 goes no lower), how many at a time.
_OF_AN_SM, _MOST, _LEAST, _UNIT = 65536, 255, 24, 8
_WARP, _BITS = 32, 32


@bodies_with("bra")
def check(context: LintContext, facts: FunctionFacts) -> None:
    most, why = _limit(facts)
    if not why or sum(_bits(line, key) for key, line in facts.writes.items()) <= most * _BITS or facts.of("setmaxnreg"):
        return
    worst = max(facts.loops, key=_carried, default=None)
    count = _carried(worst) if worst is not None else 0
    if worst is not None and count > most:
        message = (
            f"the loop from here on carries values of {count} registers into each round; by {why} a thread has {most}"
        )
        context.warn(CODE, message, parts_of(worst.lines[0].item).opcode, section="11.4.2")


def _limit(facts: FunctionFacts) -> tuple[int, str]:
    """How many registers a thread can have, and the directive that says so; "" if none does."""
    args = {
        item.name: [value for value in item.args if isinstance(value, int)]
        for item in facts.function.directives
        if isinstance(item, Directive)
    }
    found = [(_MOST, "")]
    if args.get(".maxnreg"):
        found.append((args[".maxnreg"][0], ".maxnreg"))
    name = next((name for name in (".reqntid", ".maxntid") if args.get(name)), "")
    if name:
        ctas = (args.get(".minnctapersm") or [1])[0]
        threads = -(-prod(args[name]) // _WARP) * _WARP * max(1, ctas)
        if threads:
            with_ctas = f"{name} and .minnctapersm" if ctas > 1 else name
            found.append((_OF_AN_SM // threads // _UNIT * _UNIT, with_ctas))
    most, why = min(found)
    return max(_LEAST, most), why


def _carried(loop: Loop) -> int:
    """Registers of the values that a round reads before it writes them, and writes for the next one."""
    written: dict[RegisterKey, list[Line]] = {}
    exposed: dict[RegisterKey, Line] = {}
    for line in loop.lines:
        names = [(line.registers[name], write) for name, write in accessed(line)]
        for key, write in names:
            if key is not None and not write and key not in written:
                exposed.setdefault(key, line)
        for key, write in names:
            if key is not None and write:
                written.setdefault(key, []).append(line)
    counters, bits = 0, 0
    for key, line in exposed.items():
        if key in written:
            if all(_steps(one, key, written) for one in written[key]):
                counters = max(counters, _bits(line, key))
            else:
                bits += _bits(line, key)
    return -(-(bits + counters) // _BITS)


def _steps(line: Line, key: RegisterKey, written: dict[RegisterKey, list[Line]]) -> bool:
    """Whether an instruction changes a register by a constant, or copies what another one makes of it so."""
    operands = line.item.operands
    sources = [line.registers[part.name] for part in operands[1:] if isinstance(part, Name)]
    if line.plan.family == "mov" and len(sources) == 1 and sources[0] is not None:
        makers = written.get(sources[0], [])
        return len(makers) == 1 and makers[0].plan.family != "mov" and _steps(makers[0], key, written)
    constant = any(isinstance(part, Immediate) for part in operands[1:])
    return line.plan.family in ("add", "sub") and constant and sources == [key]


def _bits(line: Line, key: RegisterKey) -> int:
    """The size of a register; predicates have registers of their own."""
    symbol = line.names.lookup(key[1])
    if not isinstance(symbol, Variable) or symbol.type == "pred":
        return 0
    return TYPES[symbol.type].bits * (symbol.vector or 1)
