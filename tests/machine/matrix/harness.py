"""Runs one matrix instruction of one warp: registers in, registers out, on any engine."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxtools import native, reference
from tests.program.harness import Memory, launch_of

ENGINES = {"native": native.run, "reference": reference.run}


def vector(name: str, count: int) -> str:
    return "{" + ", ".join(f"%{name}{i}" for i in range(count)) + "}"


def product_kernel(instruction: str, counts: tuple[int, int, int, int], wide: bool = False, extra: str = "",
                   extras: int = 0, target: str = "sm_120a") -> str:  # fmt: skip
    """d, a, b, c have these numbers of registers; `extra` follows the operands and may name %e0, %e1, … Each CTA has
    operands and results of its own."""
    nd, na, nb, nc = counts
    size, kind = (8, "b64") if wide else (4, "b32")
    lines = [
        f".version 9.0\n.target {target}\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out) {{",
        f".reg .{kind} %d<{nd}>, %a<{na}>, %b<{nb}>, %c<{nc}>; .reg .b32 %e<{extras + 1}>, %lane, %cta;",
        ".reg .u64 %p, %q, %o;",
        "ld.param.u64 %p, [in]; ld.param.u64 %q, [out]; mov.u32 %lane, %laneid; mov.u32 %cta, %ctaid.x;",
        f"mad.wide.u32 %p, %cta, {32 * (size * (na + nb + nc) + 4 * extras)}, %p;",
        f"mad.wide.u32 %q, %cta, {32 * size * nd}, %q;",
        f"mul.wide.u32 %o, %lane, {size}; add.u64 %p, %p, %o; add.u64 %q, %q, %o;",
    ]
    at = 0
    for name, count in (("a", na), ("b", nb), ("c", nc)):
        for i in range(count):
            lines.append(f"ld.global.{kind} %{name}{i}, [%p+{32 * size * at}];")
            at += 1
    for i in range(extras):
        lines.append(f"ld.global.b32 %e{i}, [%p+{32 * size * at}];")
        at += 1
    operands = ", ".join(vector(name, count) for name, count in zip("dabc", (nd, na, nb, nc), strict=True))
    lines.append(f"{instruction} {operands}{extra};")
    lines += [f"st.global.{kind} [%q+{32 * size * i}], %d{i};" for i in range(nd)]
    return "\n".join([*lines, "ret; }"])


def run(text: str, inputs: np.ndarray[Any, Any], results: int, engine: str, numerics: str = "ieee") -> Any:
    """inputs: registers x 32 lanes; the results likewise. With one more axis in front, for as many CTAs."""
    memory, ctas = Memory(), inputs.shape[:-2]
    given = memory.put(inputs)
    empty = np.zeros((*ctas, results, 32), inputs.dtype)
    out = memory.put(empty)
    launch = launch_of(text, memory, [given, out], grid=(*(ctas or (1,)), 1, 1))
    launch.numerics = numerics
    ENGINES[engine](launch)
    return memory.get(out, inputs.dtype, empty.size).reshape(empty.shape)
