"""Small kernels for checkers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

import ptxtools

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n.extern .shared .align 16 .b8 sh[];\n"
HEAP = """.extern .func (.param .b64 r) malloc (.param .b64 n);
.extern .func free (.param .b64 p);
"""


def module(body: str, *, outer: str = "", head: str = HEAD) -> ptxtools.Module:
    """A kernel k(a): %a holds its argument, %i the thread's number, %w its warp, %l its lane; [8] is shared memory."""
    return ptxtools.loads(written(body, outer=outer, head=head))


def written(body: str, *, outer: str = "", head: str = HEAD) -> str:
    """The text of that module."""
    body = re.sub(r"(?<!\w)\[(\d+)\]", r"[sh+\1]", body)
    return f"""{head}{outer}.visible .entry k(.param .u64 a) {{
  .reg .b64 %a, %b, %c; .reg .b32 %i, %w, %l, %r<8>; .reg .b16 %h<4>; .reg .pred %p, %q;
  ld.param.u64 %a, [a];
  mov.u32 %i, %tid.x; shr.u32 %w, %i, 5; and.b32 %l, %i, 31;
{body}
  ret; }}"""


def run(
    body: str,
    checks: str,
    *,
    threads: int = 64,
    grid: int = 1,
    words: int = 64,
    outer: str = "",
    head: str = HEAD,
    shared: int = 0,
    engine: str = "native",
) -> Any:
    """Launch it over a buffer of `words` words (u32)."""
    device = ptxtools.Device(engine=engine, checks=checks)
    kernel = module(body, outer=outer, head=head)["k"]
    return device.launch(kernel, grid, threads, [np.zeros(words, np.uint32)], shared=shared)


def messages(result: Any) -> list[str]:
    return [finding.message for finding in result.reports]
