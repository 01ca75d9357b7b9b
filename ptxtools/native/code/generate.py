"""Handlers as LLVM IR, by kind of operation. Imported only when a handler is not in the cache."""

from __future__ import annotations

from collections.abc import Iterable

from ptxtools.native.handlers import FUNCTIONS, body_of, function_of, lanewise
from ptxtools.native.loop import barriers, calls, clusters, control, loop
from ptxtools.program.program import LANES, Op

from . import jit, library, modes
from .emitter import Emitter, expand, module_of
from .handler import Handler
from .notation import CONVENTION

_DECLARATIONS = """
declare i32 @llvm.ctpop.i32(i32)
declare i32 @llvm.umin.i32(i32, i32)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.usub.sat.i64(i64, i64)
declare i32 @llvm.fshr.i32(i32, i32, i32)
declare i32 @llvm.vector.reduce.umin.v32i32(<32 x i32>)
declare i32 @llvm.vector.reduce.smax.v32i32(<32 x i32>)
declare <32 x i32> @llvm.masked.gather.v32i32.v32p0(<32 x ptr>, <32 x i1>, <32 x i32>)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i32 @llvm.cttz.i32(i32, i1)
"""


def _module(bodies: Iterable[str], declarations: str) -> str:
    numbers = ", ".join(f"i32 {lane}" for lane in range(LANES))
    lanes = f"@lane_numbers = internal unnamed_addr constant <{LANES} x i32> <{numbers}>, align 64"
    plain = jit.attributes()
    return module_of(bodies, f"{declarations}\n{lanes}", plain, f"{plain} noinline", jit.attributes(widest=True))


def base_symbols() -> list[str]:
    """Functions of `base_module` that records, handlers or Python refer to."""
    return ["run", "claim", *library.SHARED, *_TERMINATORS, *BARRIERS]


_TERMINATORS = (
    "t_pass", "t_return", "t_jump", "t_branch", "t_switch", "t_exit", "t_exit_some", "t_trap", "t_event", "t_warpsync",
    "t_call", "t_call_indirect", "t_ret", "t_cluster_arrive", "t_cluster_wait",
)  # fmt: skip

#: Barrier handlers by name: (counted, waits, reduction).
BARRIERS: dict[str, tuple[bool, bool, str | None]] = {
    f"t_bar_{action}{'_n' if counted else ''}": (counted, action != "arrive", reduction)
    for action, reduction in (("sync", None), ("arrive", None), ("popc", "popc"), ("and", "and"), ("or", "or"))
    for counted in (False, True)
}


def base_module(features: Iterable[str] = ()) -> str:
    """The loop, the terminators and everything else that does not depend on a program."""
    bodies = [control.text(), calls.text(), barriers.text(), clusters.text(), loop.text()]
    bodies.append(expand(lanewise.TRANSLATE))
    bodies.append(modes.entrance("run", "run_ctas", features))
    for name, (counted, waits, reduction) in BARRIERS.items():
        bodies.append(barriers.handler(name, counted=counted, waits=waits, reduction=reduction))
    return _module(bodies, _DECLARATIONS)


def handler_module(ops: dict[str, Op], features: Iterable[str]) -> str:
    """One function per entry: symbol and an operation of that key."""
    emitter = Emitter(features)
    bodies = [handler(emitter, name, op) for name, op in ops.items()]
    return _module(bodies, emitter.declarations)


def handler(emitter: Emitter, name: str, op: Op) -> str:
    """The function for one key."""
    emitter.declare("llvm.cttz.i32", "declare i32 @llvm.cttz.i32(i32, i1)")
    if op.kind in FUNCTIONS:
        return function_of(op.kind)(emitter, name, op)
    h = Handler(emitter, op)
    body_of(op.kind)(h)
    return h.text(name)


__all__ = ["CONVENTION", "base_module", "base_symbols", "handler", "handler_module"]
