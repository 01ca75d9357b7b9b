"""PTX549 | shared memory that is not aligned for a bulk copy | 9.7.9.25.4, 9.7.9.25.5

What: a bulk copy at a shared variable plus an offset that is not a multiple of 16, or of 128 for a tensor copy;
or at a pointer that the kernel is given, plus such an offset (possible).
Why: the copy faults, or is undefined.
Example:
    .shared .align 128 .b8 s[1024]; .shared .align 8 .b64 bar;
    mov.u32 %r4, s; add.u32 %r5, %r4, 8; mov.u32 %r6, bar;
    mbarrier.init.shared.b64 [%r6], 1;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%rd1], 64, [%r6];
Better:
    .shared .align 128 .b8 s[1024]; .shared .align 8 .b64 bar;
    mov.u32 %r4, s; add.u32 %r5, %r4, 16; mov.u32 %r6, bar;
    mbarrier.init.shared.b64 [%r6], 1;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%rd1], 64, [%r6];
"""

from __future__ import annotations

from ptxtools.ir.positions import part_span

from ..arguments import misalignment
from ..context import LintContext
from ..facts import FunctionFacts
from ..memory import variable_of
from ..registry import bodies_with

CODE = "PTX549"


_BULK, _TENSOR = 16, 128


@bodies_with("cp")
def check(context: LintContext, facts: FunctionFacts) -> None:
    for steps in facts.steps:
        for step in steps:
            opcode = step.line.item.opcode
            if not opcode.startswith(("cp.async.bulk.", "cp.reduce.async.bulk.")):
                continue
            need = _TENSOR if ".tensor." in opcode else _BULK
            for place, address in enumerate(step.addresses[:2]):
                symbol = variable_of(step.line, address) if address is not None else None
                rest = misalignment(facts.function, address, _BULK) if address is not None and need == _BULK else 0
                if rest:
                    message = f"the address is {rest} bytes behind a multiple of 16, if what is given is aligned"
                    context.warn(CODE, message, part_span(step.line.item, place), section="9.7.9.25.4")
                if address is None or symbol is None or symbol.space != "shared":
                    continue
                known = min(need, symbol.align or 1)
                if isinstance(address.each, int) and address.each % known:
                    message = f"'{symbol.name}{address.each:+d}' is not aligned to {need} bytes"
                    context.warn(CODE, message, part_span(step.line.item, place), section="9.7.9.25.4")
