"""PTX717 | result that nothing reads | 9.7.1

What: an instruction that only computes writes a register that the function never reads. Reported only when the rule is
selected by its full name (`--select all,PTX717`): compilers leave such instructions, and ptxas removes them.
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

from ..context import LintContext
from ..facts import FunctionFacts, Line
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
        for key, line in facts.writes.items():
            op = line.plan.op
            alone = key not in facts.rewritten and key[0] not in parameters and not _read(facts, line)
            if alone and op is not None and line.plan.family in _PURE and not op.has("cc"):
                message = f"nothing reads the '{key[1]}' that '{line.item.opcode}' computes"
                context.warn(CODE, message, part_span(line.item, 0), section=op.section)


def _read(facts: FunctionFacts, line: Line) -> bool:
    """Whether something reads one of the results of an instruction."""
    return any(write and line.registers[name] in facts.reads for name, write in accessed(line))
