"""discard.L2 (9.7.9.17): what memory holds is undefined from then on. It keeps its content, which is right as well, and
observers are told."""

from __future__ import annotations

from ptxtools.machine.events import View, serves

from .accesses import tell

#: Bytes that an instruction discards, and what their address must be a multiple of.
_BYTES = 128


@serves("discard")
def discard(view: View) -> None:
    """src = the address. Raises `Trap` for what is not global memory, or no multiple of 128 bytes."""
    lanes, addresses = list(view.lanes()), view.source(0)
    for lane in lanes:
        view.memory(int(addresses[lane]), _BYTES, "global", lane=lane, align=_BYTES, told=False)
    tell(view, "global", "write", _BYTES, lanes, addresses[lanes])
    listeners = view.launch.observers
    if listeners is not None:
        for lane in lanes:
            listeners.tell("discarded", int(addresses[lane]), _BYTES)
