"""One function per kind of operation: it emits the body of a handler, or all of it."""

from __future__ import annotations

from collections.abc import Callable

from ptxtools.native.code.emitter import Emitter
from ptxtools.native.code.handler import Handler
from ptxtools.program.program import Op

from . import atomics, copies, counts, matrix, mbarrier, measures, memory, plain, products, run, special, unison, warp

KINDS: dict[str, Callable[[Handler], None]] = {
    "alu": plain.alu,
    "copy": plain.copy,
    "pack": plain.pack,
    "unpack": plain.unpack,
    "barrier_result": plain.barrier_result,
    "fence": plain.fence,
    "count": counts.count,
    "measure": measures.measure,
    "run": run.run,
    "sreg": special.special_register,
    "ld": memory.load,
    "st": memory.store,
    "atom": atomics.atomic,
    "red": atomics.atomic,
    "shfl": warp.shuffle,
    "vote": warp.vote,
    "match": warp.match,
    "redux": warp.reduce,
    "activemask": warp.active_mask,
    "elect": warp.elect,
    "mma": products.product,
    "ldmatrix": matrix.load,
    "stmatrix": matrix.store,
    "movmatrix": matrix.transpose,
    "cp.async": copies.copy,
    "mbarrier": mbarrier.mbarrier,
    "mbarrier.yield": mbarrier.give_way,
}

#: Texts of functions, by emitter, name and operation: not entered as handlers of records are.
FUNCTIONS: dict[str, Callable[[Emitter, str, Op], str]] = {"unison": unison.function}
