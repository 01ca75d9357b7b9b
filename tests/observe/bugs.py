"""The pairs of testdata/bugs: a small kernel with one bug, and the same without it.

A file is about a class of bugs. In it `== name: checker, key=value …` begins a pair (`checker/kind` where the report's
kind matters), and its lines are the body of a kernel `k(a, b)`:

    `- line`  only with the bug; `+ line` only without it; `  line` in both; `^ line` before the kernel (`^-`, `^+`)
    `  @piece` the lines below `== *piece`
    `//!`     at the end of a line: the report names it (any of them, if there are several)

Keys: target (sm_80), block (64), grid (1), cluster (1), smem (1024, bytes of `sh`), words (64, of each of a and b),
shared (0, dynamic), fresh (b is uninitialised), launches (1), maxnreg, map (a tensor map `m` over a: its box, as 8x4),
late (thread-instructions after which a run ends). Registers: %a, %b the arguments, %m the map's address; %i, %w, %l,
%cta, %rank thread, warp, lane, CTA, rank in the cluster; %s the address of `sh`; %r<64> b32, %d<32> b64, %f<32> f32,
%h<8> b16, %p<8> pred.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import ptxtools
from ptxtools.launch.checked import reported

FOLDER = Path(__file__).parents[2] / "testdata" / "bugs"
MARK = "//!"
_FRAME = """.version 9.0
.target {target}
.address_size 64
{outer}.visible .entry k(.param .u64 a, .param .u64 b{parameter}) {directives}{{
  .reg .b64 %a, %b, %m, %d<32>; .reg .b32 %i, %w, %l, %s, %cta, %rank, %r<64>; .reg .f32 %f<32>; .reg .b16 %h<8>;
  .reg .pred %p<8>;
  .shared .align 1024 .b8 sh[{smem}];
  ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; {map}
  mov.u32 %i, %tid.x; shr.u32 %w, %i, 5; and.b32 %l, %i, 31; mov.u32 %s, sh; mov.u32 %cta, %ctaid.x;
  mov.u32 %rank, {rank};
{body}
  ret;
}}
"""


@dataclass(slots=True)
class Pair:
    """name, checker: "deadlock" too; keys: of the launch; lines: (sign, text); kind: of the report, "": any."""

    name: str
    checker: str
    keys: dict[str, str]
    lines: list[tuple[str, str]] = field(default_factory=list)
    kind: str = ""

    def text(self, sign: str) -> str:
        """The whole module: with the bug ("-"), or without ("+")."""
        keys = self.keys
        clustered = keys.get("target", "sm_80") not in ("sm_75", "sm_80")
        body = "\n".join("  " + line for kind, line in self.lines if kind in (" ", sign))
        return _FRAME.format(
            target=keys.get("target", "sm_80"), smem=keys.get("smem", "1024"), body=body,
            outer="".join(f"{line}\n" for kind, line in self.lines if kind in ("^", "^" + sign)),
            directives=f".maxnreg {keys['maxnreg']} " if "maxnreg" in keys else "",
            parameter=", .param .align 64 .b8 m[128]" if "map" in keys else "",
            map="mov.b64 %m, m; cvta.param.u64 %m, %m;" if "map" in keys else "",
            rank="%cluster_ctarank" if clustered else "0",
        )  # fmt: skip

    def expected(self) -> list[int]:
        """Numbers of the marked lines, in the text with the bug."""
        return [number for number, line in enumerate(self.text("-").splitlines(), 1) if line.endswith(MARK)]

    def number(self, key: str, default: int) -> int:
        return int(self.keys.get(key, default))


def read(path: Path) -> list[Pair]:
    """The pairs of a file."""
    pairs: list[Pair] = []
    pieces: dict[str, list[tuple[str, str]]] = {}
    lines: list[tuple[str, str]] = []
    for line in path.read_text().splitlines():
        if line.startswith("== *"):
            lines = pieces[line[4:].strip()] = []
        elif line.startswith("== "):
            name, checker, *keys = re.split(r"[:,]?\s+", line[3:].strip())
            checker, _, kind = checker.partition("/")
            pairs.append(Pair(name, checker, dict(key.split("=") for key in keys), kind=kind))
            lines = pairs[-1].lines
        elif line.strip() and not line.startswith("#"):
            assert line[0] in " +-^", f"{path.name}: {line}"
            sign = line[:2] if line[:2] in ("^-", "^+") else line[0]
            text = line[len(sign) :].strip()
            piece = pieces.get(text[1:]) if text.startswith("@") and " " not in text else None
            lines.extend([(sign, text)] if piece is None else [(sign, one) for _, one in piece])
    return pairs


def run(pair: Pair, sign: str, checks: str = "all", **options: Any) -> list[Any]:
    """What checkers find in a kernel; a trap, too."""
    target = pair.keys.get("target", "sm_80")
    device = ptxtools.Device(target, checks=checks, **options)
    words = pair.number("words", 64)
    a = device.upload(np.zeros(words, np.uint32))
    b = device.alloc(4 * words) if "fresh" in pair.keys else device.upload(np.ones(words, np.uint32))
    arguments: list[Any] = [a, b]
    if "map" in pair.keys:
        box = [int(n) for n in pair.keys["map"].split("x")]
        arguments.append(device.tensormap(a, type="u32", shape=[8, words // 8], box=box))
    kernel = ptxtools.loads(pair.text(sign), f"{pair.name}.ptx")["k"]
    cluster = pair.number("cluster", 1)
    found: list[Any] = []
    for _ in range(pair.number("launches", 1)):
        try:
            result = device.launch(
                kernel, pair.number("grid", cluster), pair.number("block", 64), arguments,
                cluster=cluster if cluster > 1 else None, shared=pair.number("shared", 0),
                max_instructions=pair.number("late", 2_000_000),
            )  # fmt: skip
        except ptxtools.Trap as trap:
            found += reported(trap)
            if not trap.kind.is_checker:
                found.append(trap)
            break
        found += result.reports
    return found


def caught(pair: Pair, found: list[Any]) -> bool:
    """Whether the right checker names a marked line."""
    lines = pair.expected()
    return any(
        pair.checker in _checkers(one) and one.line in lines and (not pair.kind or one.kind == pair.kind)
        for one in found
    )


def _checkers(one: Any) -> tuple[str, ...]:
    return (one.kind,) if isinstance(one, ptxtools.Trap) else one.checkers


def shown(found: list[Any]) -> str:
    """What was found, for people."""
    return "\n".join(str(one) for one in found) or "nothing was found"
