"""Runs that iterate by themselves: a loop around the steps of a run, in place of its block's branch.

While all lanes go back, have time left, and no others wait at this block or before it, a round ends here and is charged
as `t_branch` would charge it. The branch after the run ends the last round. Slots that a round reads and the previous
one has written are carried in registers, as many as fit.
"""

from __future__ import annotations

from collections.abc import Collection

from ptxtools.native.code import jit
from ptxtools.native.code.handler import Handler
from ptxtools.native.code.live_words import Key, words_of
from ptxtools.program.program import SLOT_BYTES
from ptxtools.semantics.algebra import Value

_BEGIN = """
  br label %first
first:
  %between = get rec.imm
  %last = getelementptr i8, ptr %ip, i64 %between
  %branch = getelementptr i8, ptr %last, i64 RECORD_BYTES
  %weight = get rec.extra of %branch
  %cost = add i32 %weight, 1
  %running = call i32 @llvm.ctpop.i32(i32 %m)
  %threads = mul i32 %running, %weight
  %threads64 = zext i32 %threads to i64
  %slice.first = get ctx.slice
  %count.first = get ctx.count
  %block = get rec.{target} of %branch
  %pend = get warp.pend
  %near = icmp ult i32 %block, %pend
  %least = select i1 %near, i32 0, i32 2147483647
"""

_AGAIN = """
  br label %start
start:
  br label %again
again:
  %slice = phi i32 [{slice}, %start], [%slice.left, %repeat]
  %count = phi i64 [{count}, %start], [%count.new, %repeat]
"""

_END = """
  %off = and i32 {out}, %m
  %all = icmp eq i32 %off, 0
  br i1 %all, label %timed, label %done, !prof !0
timed:
  %slice.left = sub i32 %slice, %cost
  %time = icmp sge i32 %slice.left, %least
  br i1 %time, label %repeat, label %done, !prof !0
repeat:
  %count.new = add i64 %count, %threads64
  br label %again
done:
  set ctx.slice, %slice
  set ctx.count, %count
"""


#: Of a run over several blocks, whose other ends are charged, too (`region_bounds.CHAIN`).
_CHAINED = {
    "  %weight = get rec.extra of %branch\n  %cost = add i32 %weight, 1\n": """
  %weight.last = get rec.extra of %branch
  %weight = add i32 %weight.last, %chain.weight
  %cost.last = add i32 %weight.last, 1
  %cost = add i32 %cost.last, %chain.cost
""",
    "i32 0, i32 2147483647": "i32 %chain.cost, i32 2147483647",
    "  set ctx.slice, %slice\n  set ctx.count, %count\n": """
  %slice.chain = sub i32 %slice, %chain.cost
  %threads.chain = mul i32 %running, %chain.weight
  %threads.chain64 = zext i32 %threads.chain to i64
  %count.chain = add i64 %count, %threads.chain64
  set ctx.slice, %slice.chain
  set ctx.count, %count.chain
""",
}


def _chained(text: str, *, chain: bool) -> str:
    for plain, other in _CHAINED.items():
        text = text.replace(plain, other) if chain else text
    return text


def begin(h: Handler, *, to_target: bool, chain: bool = False) -> None:
    """In front of all rounds; to_target: whether the branch's way back is its target. The branch's record is behind
    this one, and as many bytes as this one's constant says. chain: the run is one over several blocks."""
    h.code.declare("llvm.ctpop.i32", "declare i32 @llvm.ctpop.i32(i32)")
    h.code.expand(_chained(_BEGIN, chain=chain).format(target="s0" if to_target else "s2"))


def each(h: Handler, slice_: str, count: str) -> None:
    """Start of each round; ctx.slice and ctx.count in front of the first."""
    h.code.expand(_AGAIN.format(slice=slice_, count=count))


def end(h: Handler, guard: Value, *, wanted: bool, chain: bool = False) -> None:
    """End of each round: lanes go back whose guard is as `wanted`."""
    bits = h.code.value(f"bitcast <32 x i1> {guard} to i32")
    out = h.code.value(f"xor i32 {bits}, -1") if wanted else bits
    h.code.expand(_chained(_END, chain=chain).format(out=out))


def number(h: Handler) -> str:
    """Behind the rounds, or in the middle of one: how often all lanes went back before, i64."""
    return h.code.value(f"udiv i64 {h.code.value('sub i64 %count, %count.first')}, %threads64")


def carried(read: Collection[Key], kept: Collection[Key]) -> list[Key]:
    """Slots to carry in registers, of those that a round reads and writes."""
    room = jit.vector_bytes() // 2
    result = []
    for key in read:
        words = words_of(*key)
        clashes = any(other != key and words_of(*other) & words for other in (*read, *kept))
        if key in kept and key[1] != "pred" and not clashes and SLOT_BYTES[key[1]] <= room:
            room -= SLOT_BYTES[key[1]]
            result.append(key)
    return result
