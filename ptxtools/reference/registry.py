"""The functions that execute each kind of operation; files of this package register theirs.

An executor gets the machine, the operation, and the numbers of the threads that run it: all of one function and one
frame, guard already applied, at least one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxtools.program.program import Op, Terminator

if TYPE_CHECKING:
    from .machine import Machine

Threads: TypeAlias = npt.NDArray[np.intp]
Array: TypeAlias = npt.NDArray[Any]
Executor: TypeAlias = "Callable[[Machine, Op, Threads], None]"
Ending: TypeAlias = "Callable[[Machine, Terminator, Threads], None]"

EXECUTORS: dict[str, Executor] = {}
ENDINGS: dict[str, Ending] = {}


def executes(*kinds: str) -> Callable[[Executor], Executor]:
    """Register a function for kinds of operations (`Op.kind`)."""

    def register(function: Executor) -> Executor:
        for kind in kinds:
            EXECUTORS[kind] = function
        return function

    return register


def ends(*kinds: str) -> Callable[[Ending], Ending]:
    """Register a function for kinds of terminators."""

    def register(function: Ending) -> Ending:
        for kind in kinds:
            ENDINGS[kind] = function
        return function

    return register
