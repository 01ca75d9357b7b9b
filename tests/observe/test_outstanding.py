"""asynccheck's index of outstanding work finds what a look at all of it finds, in the same order."""

from __future__ import annotations

import random
from typing import Any

from ptxtools.machine.claims import Claim, Span
from ptxtools.observe.outstanding import Outstanding


def test_what_is_near_is_found_in_the_order_of_issue() -> None:
    draw, index = random.Random(1), Outstanding()
    owners: list[Any] = [None, "a CTA"]
    live: list[Claim] = []
    found = 0
    for _ in range(600):
        if live and draw.random() < 0.4:
            index.remove(live.pop(draw.randrange(len(live))))
        else:
            starts = [draw.randrange(1000) for _ in range(draw.randrange(1, 4))]
            spans = tuple(Span(draw.choice(owners), at, at + draw.randrange(1, 60), "write") for at in starts)
            live.append(Claim(None, 0, "", spans, None, None))  # type: ignore[arg-type]
            index.add(live[-1])
        owner, first = draw.choice(owners), draw.randrange(1000)
        wanted = [
            (claim, span)
            for claim in live
            for span in claim.spans
            if span.owner == owner and span.start < first + 40 and span.end > first
        ]
        assert list(index.near(owner, False, first, first + 40)) == wanted
        assert not list(index.near(owner, True, first, first + 40))
        found += len(wanted)
    assert found > 500
    for claim in [*live, live[0]]:
        index.remove(claim)
    assert not list(index.near(None, False, 0, 2000))
