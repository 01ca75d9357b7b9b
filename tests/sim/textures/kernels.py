"""Small texture kernels: one thread a fetch, coordinates and results in arrays."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np

import ptxtools

HEAD = ".version 8.1\n.target sm_75{option}\n.address_size 64\n{globals}\n"


@cache
def fetcher(instruction: str, operands: str, columns: int) -> Any:
    """A kernel (texture, f32/s32 columns, out): thread n reads its row of `columns` words into %c0… and writes the
    four words of `instruction {…}, operands`; `%t` is the texture."""
    loads = "".join(f"ld.global.b32 %c{n}, [%a+{4 * n}];\n" for n in range(columns))
    words = "%d0, %d1, %d2, %d3"
    text = (
        HEAD.format(option="", globals="")
        + f""".visible .entry k(
  .param .u64 t, .param .u64 in, .param .u64 out) {{
  .reg .b64 %t, %a, %o; .reg .b32 %i, %c<12>, %d<4>; .reg .pred %p;
  ld.param.u64 %t, [t]; ld.param.u64 %a, [in]; ld.param.u64 %o, [out];
  mov.u32 %i, %tid.x;
  mad.wide.u32 %a, %i, {4 * columns}, %a; mad.wide.u32 %o, %i, 16, %o;
  {loads}
  {instruction} {{{words}}}, {operands};
  st.global.v4.b32 [%o], {{{words}}};
  ret; }}"""
    )
    return ptxtools.loads(text)


def in_registers(body: str) -> str:
    """Constant coordinates in brackets moved to registers %k0…, as the instructions want them."""
    moves: list[str] = []

    def register(found: re.Match[str]) -> str:
        moves.append(f"mov.b32 %k{len(moves)}, {found[0]};")
        return f"%k{len(moves) - 1}"

    inside = re.compile(r"(?<=\{)[^{}]*(?=\}\])")
    body = inside.sub(lambda whole: re.sub(r"(?<![%\w])(0f\w+|-?\d+)", register, whole[0]), body)
    return f".reg .b32 %k<{len(moves) + 1}>; {' '.join(moves)}\n{body}"


def fetch(module: Any, texture: Any, rows: Any, *, device: ptxtools.Device) -> Any:
    """What the fetches of all rows give: n x 4 words (u32).

    A warp goes first that fetches the same, so that on the native engine compiled code serves the rows themselves.
    """
    rows = np.ascontiguousarray(rows)
    rows = np.concatenate([np.resize(rows, (32, rows.shape[1])), rows])
    out = np.zeros((len(rows), 4), np.uint32)
    device.launch(module["k"], 1, len(rows), [texture, rows, out])
    return out[32:]
