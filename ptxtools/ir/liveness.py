"""Live values: backward data flow over blocks. Sets of values are integers, used as bit sets."""

from __future__ import annotations

from collections.abc import Sequence

from .cfg import reverse_postorder


def solve(
    successors: Sequence[Sequence[int]], uses: Sequence[int], kills: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Backward data flow: live_in = uses | (live_out & ~kills), live_out = union of the successors' live_in.

    `uses` are values read before any kill of the same block. Blocks that nothing reaches are solved too.
    """
    count = len(successors)
    predecessors: list[list[int]] = [[] for _ in range(count)]
    live_in, live_out = list(uses), [0] * count
    for block, following in enumerate(successors):
        for successor in following:
            predecessors[successor].append(block)
            live_out[block] |= uses[successor]
    # Popped from the end: a block comes after its successors. Blocks that nothing reaches go last.
    order = reverse_postorder(successors)
    reached = set(order)
    waiting = [block for block in range(count) if block not in reached] + order
    queued = bytearray(b"\1" * count)
    while waiting:
        block = waiting.pop()
        queued[block] = 0
        new = uses[block] | (live_out[block] & ~kills[block])
        if new == live_in[block]:
            continue
        live_in[block] = new
        for predecessor in predecessors[block]:  # a block of many successors does not look at all of them each time
            if new & ~live_out[predecessor]:
                live_out[predecessor] |= new
                if not queued[predecessor]:
                    queued[predecessor] = 1
                    waiting.append(predecessor)
    return live_in, live_out
