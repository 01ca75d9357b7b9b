"""Handlers as LLVM IR, by kind of operation. Imported only when a handler is not in the cache."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from ptxtools.native.handlers import FUNCTIONS, body_of, function_of, lanewise
from ptxtools.native.loop import barriers, calls, clusters, control, loop
from ptxtools.program.program import LANES, Op

from . import jit, joint, library, modes, slices
from .emitter import Emitter, expand, module_of
from .handler import Handler
from .notation import CONVENTION
from .slices import Slices

#: A function in notation; names in it; types of a handler's parameters.
_FUNCTION = re.compile(r"^(?:handler|define)\b[^@]*@([\w.]+).*?^}", re.MULTILINE | re.DOTALL)
_CALLED = re.compile(r"@([\w.]+)")
_TYPES = "ptr, ptr, i32, ptr, ptr"

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


def core_symbols() -> list[str]:
    """The same of `core_module`."""
    return ["run", "claim", *library.SHARED, *_CORE]


_TERMINATORS = (
    "t_pass", "t_detour", "t_return", "t_jump", "t_branch", "t_switch", "t_exit", "t_exit_some", "t_trap", "t_event",
    "t_warpsync", "t_call", "t_call_indirect", "t_ret", "t_cluster_arrive", "t_cluster_wait",
)  # fmt: skip

#: Terminators that are compiled for any program; the others quickly only where one has them.
_CORE = ("t_pass", "t_detour", "t_return", "t_jump", "t_branch", "t_exit")

#: Barrier handlers by name: (counted, waits, reduction).
BARRIERS: dict[str, tuple[bool, bool, str | None]] = {
    f"t_bar_{action}{'_n' if counted else ''}": (counted, action != "arrive", reduction)
    for action, reduction in (("sync", None), ("arrive", None), ("popc", "popc"), ("and", "and"), ("or", "or"))
    for counted in (False, True)
}


def base_module(features: Iterable[str] = ()) -> str:
    """The loop, the terminators and everything else that does not depend on a program."""
    return _module([*map(expand, _functions().values()), modes.entrance("run", "run_ctas", features)], _DECLARATIONS)


def core_module(features: Iterable[str] = ()) -> str:
    """What of that any program needs."""
    functions = _functions()
    names = _reached(functions, ["run_ctas", "claim", *library.SHARED, *_CORE])
    bodies = [expand(functions[name]) for name in names]
    return _module([*bodies, modes.entrance("run", "run_ctas", features)], _DECLARATIONS)


def handler_module(
    ops: dict[str, Op],
    features: Iterable[str],
    ends: Iterable[str] = (),
    often: Collection[str] = (),
    *,
    brief: bool = False,
) -> str:
    """One function per entry: symbol and an operation of that key. ends: terminators that `core_module` lacks; brief:
    as of `Emitter`; often: names of those that take a little longer to compile, then, and less to run."""
    emitter = Emitter(features, brief=brief)
    bodies: list[str] = []
    if brief:
        bodies, ops, often = joint.functions(emitter, ops, often)
    bodies += [handler(emitter, name, op, often=name in often) for name, op in ops.items()]
    if ends:
        for line in _DECLARATIONS.split("\n"):
            emitter.declare(line.partition("@")[2].partition("(")[0], line)
        functions = _functions()
        names = _reached(functions, ends, library.SHARED)
        bodies += [expand(functions[name]) for name in names]
        called = {name for part in names for name in _CALLED.findall(functions[part])}
        bodies += [f"declare {CONVENTION} void @{name}({_TYPES})" for name in library.SHARED[1:] if name in called]
    return _module(bodies, emitter.declarations)


def _functions() -> dict[str, str]:
    """The functions of the loop and the terminators by name, in notation."""
    text = "\n".join((control.text(), calls.text(), barriers.text(), clusters.text(), loop.text(), lanewise.TRANSLATE))
    found = {match[1]: match[0] for match in _FUNCTION.finditer(text)}
    for name, (counted, waits, reduction) in BARRIERS.items():
        found[name] = barriers.handler(name, counted=counted, waits=waits, reduction=reduction)
    return found


def _reached(functions: dict[str, str], names: Iterable[str], without: Iterable[str] = ()) -> list[str]:
    """These functions and all that they call, but for some."""
    wanted, left, found = list(names), set(without), []
    while wanted:
        name = wanted.pop()
        if name in functions and name not in left:
            left.add(name)
            found.append(name)
            wanted += _CALLED.findall(functions[name])
    return found


def handler(emitter: Emitter, name: str, op: Op, *, often: bool = False) -> str:
    """The function for one key. often: as of `handler_module`."""
    emitter.declare("llvm.cttz.i32", "declare i32 @llvm.cttz.i32(i32, i1)")
    if op.kind in FUNCTIONS:
        return function_of(op.kind)(emitter, name, op)
    h = (Slices if emitter.brief and slices.sliced(op) else Handler)(emitter, op)
    h.often |= often
    body_of(op.kind)(h)
    return h.text(name)


__all__ = [
    "CONVENTION", "base_module", "base_symbols", "core_module", "core_symbols", "handler", "handler_module"
]  # fmt: skip
