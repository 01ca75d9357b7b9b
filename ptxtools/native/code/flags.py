"""Flags of lanes on CPUs without registers for them (AVX2): lines of IR that make `<32 x i1>` of a word.

LLVM moves the bits of a word into a vector one by one there, or keeps them as bytes from block to block. Here each
block that uses such flags compares the word's bits in lanes of 32 bits itself: as words, flags cost nothing from block
to block.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_NAME = re.compile(r"%[\w.]+")
_MADE = re.compile(r"  (%[\w.]+) = bitcast i32 (\S+) to <32 x i1>")
_PART = re.compile(
    r"  (%[\w.]+) = shufflevector <32 x i1> (%[\w.]+), <32 x i1> poison, <(\d+) x i32> <i32 (\d+), (.*)>"
)
#: What reads flags as a word, or in a block before its own.
_AS_WORD = re.compile(r"  %[\w.]+ = (bitcast <32 x i1>|phi )")


def _bits(first: int, count: int) -> str:
    """The bit of each lane."""
    return (
        "<" + ", ".join(f"i32 {(1 << lane) - (1 << 32) * (lane == 31)}" for lane in range(first, first + count)) + ">"
    )


def _compared(name: str, word: str, first: int, count: int) -> list[str]:
    """Lines that make flags of a word's bits, in so many lanes from one on."""
    kind, bits = f"<{count} x i32>", _bits(first, count)
    return [
        f"  {name}.one = insertelement {kind} poison, i32 {word}, i32 0",
        f"  {name}.all = shufflevector {kind} {name}.one, {kind} poison, {kind} zeroinitializer",
        f"  {name}.own = and {kind} {name}.all, {bits}",
        f"  {name} = icmp eq {kind} {name}.own, {bits}",
    ]


def settle(lines: Sequence[str]) -> list[str]:
    """The lines of a body with flags compared where they are used."""
    words = {m[1]: m[2] for line in lines if " = bitcast i32 " in line and (m := _MADE.fullmatch(line))}
    if not words:
        return list(lines)
    done: list[str] = []
    here: dict[str, str] = {}
    number = 0
    for line in lines:
        if line.endswith(":"):
            here.clear()
        used = {name for name in _NAME.findall(line) if name in words} if "<32 x i1>" in line else set()
        if not used or _AS_WORD.match(line) or _MADE.fullmatch(line):
            done.append(line)
            continue
        part = _PART.fullmatch(line)
        if part and part[2] in words:
            done += _compared(part[1], words[part[2]], int(part[4]), int(part[3]))
            continue
        for name in used:
            if name not in here:
                number += 1
                here[name] = f"{name}.at{number}"
                done += _compared(here[name], words[name], 0, 32)
        done.append(_NAME.sub(lambda m: here.get(m[0], m[0]), line))
    return done
