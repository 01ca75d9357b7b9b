"""Flags of lanes on CPUs without registers for them (AVX2): lines of IR that make `<32 x i1>` of a word.

LLVM moves the bits of a word into a vector one by one there, or keeps them as bytes from block to block. Here each
block that uses such flags compares the word's bits in lanes of 32 bits itself: as words, flags cost nothing from block
to block.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .emitter import Emitter

_NAME = re.compile(r"%[\w.]+")
_MADE = re.compile(r"  (%[\w.]+) = bitcast i32 (\S+) to <32 x i1>")
#: What reads flags as a word, or in a block before its own.
_AS_WORD = re.compile(r"  %[\w.]+ = (bitcast <32 x i1>|phi )")


class Part(str):
    """A line that takes the flags of so many neighbouring lanes, from number `first` on."""

    name: str
    whole: str
    first: int
    lanes: int

    @classmethod
    def of(cls, line: str, name: str, whole: str, first: int, lanes: int) -> Part:
        part = cls(line)
        part.name, part.whole, part.first, part.lanes = name, whole, first, lanes
        return part


def settle(code: Emitter, lines: Sequence[str]) -> list[str]:
    """The lines of a body with flags compared where they are used. code: what the body was emitted into, which has no
    lines."""
    words = {m[1]: m[2] for line in lines if " = bitcast i32 " in line and (m := _MADE.fullmatch(line))}
    here: dict[str, str] = {}  # flags that the block has compared
    done = code.lines
    for line in lines:
        if line.endswith(":"):
            here.clear()
        used = [name for name in _NAME.findall(line) if name in words] if "<32 x i1>" in line else []
        if isinstance(line, Part) and line.whole in words:
            _compared(code, words[line.whole], line.first, line.lanes, line.name)
        elif not used or _AS_WORD.match(line) or _MADE.fullmatch(line):
            done.append(line)
        else:
            for name in used:
                if name not in here:
                    here[name] = _compared(code, words[name], 0, 32)
            done.append(_NAME.sub(lambda m: here.get(m[0], m[0]), line))
    code.lines = []
    return done


def _compared(code: Emitter, word: str, first: int, count: int, name: str = "") -> str:
    """Flags of a word's bits, in so many lanes from one on."""
    kind = f"<{count} x i32>"
    own = ", ".join(f"i32 {(1 << lane) - (1 << 32) * (lane == 31)}" for lane in range(first, first + count))
    bits = code.value(f"and {kind} {code.spread('i32', word, count)}, <{own}>")
    return code.value(f"icmp eq {kind} {bits}, <{own}>", name)
