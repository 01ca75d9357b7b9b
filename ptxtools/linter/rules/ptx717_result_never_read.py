"""PTX717 | result that nothing reads | 9.7.1

What: an instruction that only computes writes a register that nothing reads, or only what adds to it. Reported only if
the rule is selected by its full name (`--select all,PTX717`): compilers leave such ones, and ptxas removes them.
Why: the work is for nothing, or something else was meant to use it.
Example:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k(.param .b64 x) {
        .reg .b32 %r<3>; .reg .b64 %d<2>;
        ld.param.b64 %d1, [x]; mov.u32 %r1, %tid.x;
        mul.lo.u32 %r2, %r1, 7;
        st.global.b32 [%d1], %r1;
        ret;
    }
Better:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k(.param .b64 x) {
        .reg .b32 %r<3>; .reg .b64 %d<2>;
        ld.param.b64 %d1, [x]; mov.u32 %r1, %tid.x;
        mul.lo.u32 %r2, %r1, 7;
        st.global.b32 [%d1], %r2;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import part_span
from ptxtools.ir.symbols import RegisterKey

from ..context import LintContext
from ..facts import Line
from ..inflight import accessed
from ..registry import on_request

CODE = "PTX717"

#: Instructions without any effect but their result.
_PURE = frozenset({
    "add", "sub", "mul", "mad", "mul24", "mad24", "fma", "div", "rem", "abs", "neg", "min", "max", "sqrt", "rsqrt",
    "rcp", "ex2", "lg2", "sin", "cos", "tanh", "and", "or", "xor", "not", "lop3", "shl", "shr", "shf", "setp", "set",
    "selp", "slct", "cvt", "prmt", "popc", "clz", "brev", "bfe", "bfi", "bfind", "mov", "cvta", "dp4a", "dp2a",
    "copysign", "testp",
})  # fmt: skip


@on_request
def check(context: LintContext) -> None:
    for facts in context.facts.functions:
        parameters = {id(v) for v in (*facts.function.params, *facts.function.returns)}
        readers: dict[RegisterKey, list[Line]] = {}
        writers: dict[RegisterKey, list[Line]] = {}
        for line in facts.lines:
            for name, write in accessed(line):
                key = line.registers[name]
                if key is not None:
                    (writers if write else readers).setdefault(key, []).append(line)
        for key, lines in writers.items():
            alone = key[0] not in parameters and all(map(_computes, lines))
            if not alone or any(line not in lines or not _computes(line) for line in readers.get(key, ())):
                continue
            last = lines[-1]
            if not any(line.registers[name] in readers for line in lines for name, write in accessed(line)
                       if write and line.registers[name] != key):  # fmt: skip
                message = f"nothing reads the '{key[1]}' that '{last.item.opcode}' computes"
                context.warn(CODE, message, part_span(last.item, 0), section="9.7.1")


def _computes(line: Line) -> bool:
    """Whether an instruction has no effect but its result."""
    op = line.plan.op
    return op is not None and line.plan.family in _PURE and not op.has("cc")
