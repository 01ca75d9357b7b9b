"""Small kernels on the native engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from ptxtools import native
from ptxtools.machine.launch import Outcome
from ptxtools.native.loop import worker
from tests.program.harness import BASE, Memory, launch_of, lowered

__all__ = ["BASE", "Memory", "body_kernel", "launch_of", "lowered", "results", "run", "short_slices"]


def run(text: str, memory: Memory, values: list[int | bytes], **options: Any) -> Outcome:
    return native.run(launch_of(text, memory, values, **options))


@contextmanager
def short_slices(seed: int) -> Iterator[None]:
    """Warps and CTAs have short turns, other ones for each seed: time ends anywhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker, "WARP_SLICE", (40, 64, 111, 300)[seed % 4])
        patch.setattr(worker, "CTA_SLICE", (40, 300, 1000, 131072)[seed // 4 % 4])
        yield


def body_kernel(body: str, size: int, before: str = "") -> str:
    """A kernel around a body: thread number in %t, address of the thread's output in %out, of the input in %in."""
    return f"""{before}
.visible .entry k(.param .u64 out, .param .u64 in) {{
    .reg .u32 %t, %n; .reg .u64 %out, %in, %w;
    .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<20>; .reg .b64 %d<20>; .reg .f32 %f<8>; .reg .f64 %g<4>;
    .reg .b128 %q<4>;
    mov.u32 %t, %tid.x; mov.u32 %n, %ctaid.x; mov.u32 %r0, %ntid.x; mad.lo.u32 %r0, %n, %r0, %t;
    mul.wide.u32 %w, %r0, {size};
    ld.param.u64 %out, [out];
    add.u64 %out, %out, %w;
    ld.param.u64 %in, [in];
    {body}
}}"""


def results(
    body: str, count: int = 32, *, dtype: Any = np.uint32, before: str = "", inputs: Any = None, **options: Any
) -> np.ndarray[Any, Any]:
    """What a kernel with this body leaves in an output array of `count` elements."""
    memory = Memory()
    out = memory.put(np.zeros(count, dtype))
    source = memory.put(np.zeros(1) if inputs is None else inputs)
    options.setdefault("block", (min(count, 1024), 1, 1))
    run(body_kernel(body, np.dtype(dtype).itemsize, before), memory, [out, source], **options)
    return memory.get(out, dtype, count)
