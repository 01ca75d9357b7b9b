"""PTX504 | initial value loses bits | 5.4.4

What: an initial value does not fit its variable; the lowest bits are stored.
Why: the value in memory differs from the one written.
Example:
    .global .b8 x = 300;
Better:
    .global .b16 x = 300;
"""

from __future__ import annotations

from ptxtools.ir.nodes import Immediate, Initializer, Instruction, Module, Scope, Variable
from ptxtools.isa.types import TYPES

from ..context import LintContext
from ..registry import modules

CODE = "PTX504"


@modules
def check(context: LintContext) -> None:
    for variable in _variables(context.module):
        info = TYPES.get(variable.type)
        if variable.init is None or info is None or info.kind not in ("int", "bits") or info.bits > 64:
            continue
        low, high = -(1 << (info.bits - 1)), (1 << info.bits) - 1
        wrong = next((v for v in _numbers(variable.init) if not low <= v <= high), None)
        if wrong is not None:
            message = f"'{variable.name}': {wrong} does not fit .{variable.type}: {wrong & high} is stored"
            context.warn(CODE, message, variable.name_span, section="5.4.4")


def _variables(module: Module) -> list[Variable]:
    found = list(module.variables)
    for function in module.functions:
        waiting = [function.body] if function.body is not None else []
        while waiting:
            for item in waiting.pop().items:
                if type(item) is Instruction:
                    continue
                if isinstance(item, Variable):
                    found.append(item)
                elif isinstance(item, Scope):
                    waiting.append(item)
    return found


def _numbers(init: Initializer) -> list[int]:
    found: list[int] = []
    waiting = [init]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting.extend(reversed(part))
        elif isinstance(part, Immediate) and part.type in ("s64", "u64"):
            found.append(part.value)
    return found
