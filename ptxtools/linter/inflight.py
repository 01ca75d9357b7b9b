"""Registers and memory that asynchronous work still uses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ptxtools.ir.nodes import Immediate
from ptxtools.records import NamedTuple

from .facts import Line, uses

if TYPE_CHECKING:
    from .memory import Reach, Step

#: Bytes that each tensor copy moves at least.
_TENSOR = 16


def accessed(line: Line) -> Iterator[tuple[str, bool]]:
    """Names of the registers of an instruction, and whether it writes them; labels and variables are among them."""
    return ((name, write) for name, _, write in uses(line))


class Flight(NamedTuple):
    """Memory that an asynchronous copy still uses. destination: written, not only read."""

    step: Step
    reach: Reach
    destination: bool


class Flights:
    """The copies that nothing has waited for, along a run of instructions.

    `cp.async` and bulk copies wait in groups of their own; a copy that an mbarrier completes is waited for by any wait.
    """

    def __init__(self) -> None:
        self._groups: dict[str, list[list[Flight]]] = {kind: [[]] for kind in ("cp", "bulk", "mbarrier")}
        #: Groups in front of which nothing reads memory any more.
        self._read = {"cp": 0, "bulk": 0}

    def of(self, step: Step) -> list[Flight]:
        """All copies in flight at an instruction."""
        return [flight for groups in self._groups.values() for group in groups for flight in group]

    def note(self, step: Step) -> None:
        """Take account of a copy, a commit or a wait."""
        opcode = step.line.item.opcode
        if step.family in ("bar", "barrier", "call", "mbarrier") and "arrive" not in opcode:
            self._groups["mbarrier"] = [[]]
            if step.family == "call":
                self._groups = {kind: [[]] for kind in self._groups}
                self._read = dict.fromkeys(self._read, 0)
            return
        if step.family != "cp":
            return
        kind = "bulk" if ".bulk" in opcode else "cp"
        groups = self._groups[kind]
        if ".commit_group" in opcode:
            groups.append([])
        elif ".wait_all" in opcode:
            self._groups["cp"], self._read["cp"] = [[]], 0
        elif ".wait_group" in opcode:
            count = step.line.item.operands[0] if step.line.item.operands else None
            done = len(groups) - 1 - (max(0, count.value) if isinstance(count, Immediate) else 0)
            if opcode.endswith(".read"):
                for group in groups[self._read[kind] : max(0, done)]:
                    group[:] = [flight for flight in group if flight.destination]
                self._read[kind] = max(self._read[kind], done)
            elif done > 0:
                self._groups[kind] = groups[done:]
                self._read[kind] = max(0, self._read[kind] - done)
        elif "mbarrier.arrive" in opcode:
            self._groups["mbarrier"][0] += [flight for group in self._groups["cp"] for flight in group]
            self._groups["cp"], self._read["cp"] = [[]], 0
        elif "prefetch" not in opcode:
            into = (groups if ".mbarrier::" not in opcode else self._groups["mbarrier"])[-1]
            into += [*_flights(step), *_map(step)]


def _flights(step: Step) -> Iterator[Flight]:
    spaces = [word.partition("::")[0] for word in step.line.item.opcode.split(".")]
    spaces = [word for word in spaces if word in ("shared", "global")]
    tensor = ".tensor." in step.line.item.opcode
    size = _TENSOR if tensor else _size(step)
    from .memory import Reach

    for place, address in enumerate(step.addresses[:2]):
        masked = place == 0 and ".cp_mask" in step.line.item.opcode  # which bytes it writes is not known
        if address is not None and place < len(spaces) and size and not masked:
            yield Flight(step, Reach(place, spaces[place], address, size), place == 0)


def _map(step: Step) -> Iterator[Flight]:
    if step.map is not None:
        yield Flight(step, step.map, False)


def copied(step: Step) -> list[Reach]:
    """What an asynchronous copy reads, as far as it is known."""
    return [flight.reach for flight in _flights(step) if not flight.destination]


def _size(step: Step) -> int:
    size = step.line.item.operands[2] if len(step.line.item.operands) > 2 else None
    return size.value if isinstance(size, Immediate) else 0
