"""One function per kind of operation: it emits the body of a handler, or all of it. Their modules are imported when a
program first needs one of them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ptxtools.native.code.emitter import Emitter
from ptxtools.native.code.handler import Handler
from ptxtools.program.program import Op

#: Module and function of each kind.
KINDS = {
    "alu": "plain.alu",
    "copy": "plain.copy",
    "pack": "plain.pack",
    "unpack": "plain.unpack",
    "barrier_result": "plain.barrier_result",
    "fence": "plain.fence",
    "count": "counts.count",
    "measure": "measures.measure",
    "run": "run.run",
    "sreg": "special.special_register",
    "ld": "memory.load",
    "st": "memory.store",
    "atom": "atomics.atomic",
    "red": "atomics.atomic",
    "shfl": "warp.shuffle",
    "vote": "warp.vote",
    "match": "warp.match",
    "redux": "warp.reduce",
    "activemask": "warp.active_mask",
    "elect": "warp.elect",
    "mma": "products.product",
    "ldmatrix": "matrix.load",
    "stmatrix": "matrix.store",
    "movmatrix": "matrix.transpose",
    "cp.async": "copies.copy",
    "mbarrier": "mbarrier.mbarrier",
    "mbarrier.yield": "mbarrier.give_way",
}

#: Of those whose texts are not entered as handlers of records are.
FUNCTIONS = {"unison": "unison.function"}


def body_of(kind: str) -> Callable[[Handler], None]:
    """What emits the body of a handler of one of `KINDS`."""
    found: Callable[[Handler], None] = _found(KINDS[kind])
    return found


def function_of(kind: str) -> Callable[[Emitter, str, Op], str]:
    """What makes the text of a function of one of `FUNCTIONS`, by emitter, name and operation."""
    found: Callable[[Emitter, str, Op], str] = _found(FUNCTIONS[kind])
    return found


def _found(place: str) -> Any:
    module, _, name = place.partition(".")
    return getattr(import_module(f"{__name__}.{module}"), name)
