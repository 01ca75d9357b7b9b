"""Calls of functions that the CUDA runtime provides: printf, the heap, assertions, and launches of child grids.

They end a block with an event of kind "syscall"; its `detail` is the function's name, its sources are the arguments in
order. An array argument (the shape of a child grid) is passed as its 32-bit words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.ir import Function, Operand
from ptxtools.program.details import Callee
from ptxtools.program.layout import Passed, signature
from ptxtools.program.program import Op, Ref

from .calls import Written, access, argument, home_of, take_result
from .registry import Unsupported

if TYPE_CHECKING:
    from .function import FunctionLowering


def system_call(f: FunctionLowering, written: Written, function: Function) -> None:
    """Lower a call of a runtime function."""
    callee = signature(function)
    if len(written.arguments) != len(callee.params) or len(written.results) != len(callee.returns):
        raise Unsupported("the arguments do not fit the function")
    sources: list[Ref] = []
    for operand, passed in zip(written.arguments, callee.params, strict=True):
        sources += [argument(f, operand, passed)] if passed.storage else _words(f, operand, passed)
    results = tuple(f.new(passed.storage) for passed in callee.returns)
    if any(not passed.storage for passed in callee.returns):
        raise Unsupported("runtime functions do not return arrays")
    op = Op(
        "syscall", None, results, tuple(sources),
        tuple(ref.type for ref in results), tuple(ref.type for ref in sources), detail=Callee(function.name),
    )  # fmt: skip
    f.event(op)
    for operand, passed, result in zip(written.results, callee.returns, results, strict=True):
        take_result(f, operand, passed, result)


def _words(f: FunctionLowering, operand: Operand, passed: Passed) -> list[Ref]:
    """The 32-bit words of an array argument."""
    _, home = home_of(f, operand)
    words = []
    for offset in range(0, passed.size, 4):
        value = f.new("b32")
        f.ops.append(access("ld", "b32", f.stack_pointer, home + offset, value, f.where))
        words.append(value)
    return words
