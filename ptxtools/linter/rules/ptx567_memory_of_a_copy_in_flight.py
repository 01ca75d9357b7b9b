"""PTX567 | memory of an asynchronous copy before its wait | 9.7.9.25

What: a load, store or further copy reaches the destination of a copy that nothing in between has waited for, or
writes its source or its tensor map; or stores into a factor of a product under way, or frees its tensor memory; or
asynchronous work writes what other such work reads; or the source of a copy to a peer is written, and the peer,
at whose mbarrier it is counted, has not told that it has come. Certain
if no label stands between the two, else the finding says how sure it is.
Why: the copy may not have begun, or may be under way.
Example:
    .shared .align 16 .b32 s[4];
    cp.async.ca.shared.global [s], [%rd1], 16;
    ld.shared.b32 %r4, [s];
    cp.async.wait_all;
Better:
    .shared .align 16 .b32 s[4];
    cp.async.ca.shared.global [s], [%rd1], 16;
    cp.async.wait_all;
    ld.shared.b32 %r4, [s];
"""

from __future__ import annotations

from ptxtools.ir.positions import part_span

from ..context import LintContext
from ..facts import FunctionFacts
from ..inflight import Flight, Flights
from ..memory import Reach, Step, changed_map
from ..registry import bodies_with
from ..walk import tell

CODE = "PTX567"


@bodies_with("cp", "wgmma", "tcgen05", "clusterlaunchcontrol")
def check(context: LintContext, facts: FunctionFacts) -> None:
    for steps in facts.steps:
        flights = Flights()
        for step in steps:
            access = step.access or changed_map(step)
            for flight in flights.of(step) if access is not None and not step.atomic else ():
                if access is not None and _disturbs(step, access, flight):
                    what = "the destination" if flight.destination else "the source"
                    what = what if flight.reach is not flight.step.map else "the tensor map"
                    line = context.source.line_of(flight.step.line.item.span[0])
                    message = f"this is {what} of the copy in line {line}, which nothing has waited for"
                    context.warn(CODE, message, part_span(step.line.item, access.operand), section="9.7.9.25")
                    flights = Flights()
                    break
            flights.note(step)
    tell(context, facts, CODE, "in flight", "9.7.9.25")


def _disturbs(step: Step, access: Reach, flight: Flight) -> bool:
    return (
        (step.writes or flight.destination) and access.space in ("", flight.reach.space) and access.meets(flight.reach)
    )
