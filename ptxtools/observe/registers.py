"""initcheck on registers: what a lane computes from a register that it has not written must not decide anything.

That lanes compute with such a register is common in correct programs: compilers let them, where the result is not used.
So what nobody has written is followed from register to register, until it is an address, a predicate that decides, an
operand of something that concerns more than the lane, an argument of a function, or what is stored to global memory.
The report is about the instruction that read the register, and names the one that used it.

What a load of `Program.suspects` has got from memory that nobody has written is followed likewise, through shared and
local memory too, and so is the cluster taken from an answer of clusterlaunchcontrol that has none. A load whose result
nobody reads at all is reported at once.
"""

from __future__ import annotations

import weakref
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ptxtools.machine.events import SPACE_OF_WINDOW
from ptxtools.program.details import NamedOperands, Touch
from ptxtools.program.passes.answers import takes_cluster
from ptxtools.program.passes.registers import PASSES_ON, needed
from ptxtools.program.program import LANES
from ptxtools.records import dataclass, field
from ptxtools.semantics.types import bits_of

from . import launch_control
from .passing import BYTES, computes, gathered, unwritten_bits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Array
    from ptxtools.program.program import Slot

    from .session import Session

_NAME = "initcheck"
#: The place of a register that no instruction has read yet.
_NOWHERE = -1
#: Lane, byte of an access, the line to blame, whether it may be padding, and which of its bits lack.
_Part: TypeAlias = tuple[int, int, int, bool, int]
#: In the state of a CTA, by warp: the last load and store that it was about to make.
_LOAD, _STORE = "load of initcheck", "store of initcheck"
#: Upper bytes of generic addresses that are not in global memory.
_WINDOWS = np.array(list(SPACE_OF_WINDOW), np.uint64)
#: All bytes of the widest register.
_ALL = 0xFFFF


@dataclass(slots=True)
class Unwritten:
    """Of a register: the bits that are not written (bytes, lowest first), by lane; and where they were first read: the
    index of a line, or `_NOWHERE`. computed: lanes that have computed with some that are not written."""

    bits: Array
    origin: Array
    computed: Array

    @classmethod
    def make(cls, byte: int) -> Unwritten:
        """All bytes alike."""
        bits = np.full((LANES, BYTES), byte, np.uint8)
        return cls(bits, np.full(LANES, _NOWHERE, np.int32), np.zeros(LANES, np.bool_))

    def bytes(self, lanes: Array) -> Array:
        """Those of some lanes that have any of the bits: a bit each, lowest first."""
        return gathered(self.bits[lanes])


@dataclass(slots=True)
class _Registers:
    """Of a warp, in one frame of a function. fresh: registers without an entry are not written."""

    fresh: bool
    slots: dict[Slot, Unwritten] = field(default_factory=dict)

    def of(self, slot: Slot) -> Unwritten:
        found = self.slots.get(slot)
        if found is None:
            found = self.slots[slot] = Unwritten.make(0xFF if self.fresh else 0)
        return found


class RegisterCheck:
    """What lanes have written hangs on their CTA."""

    def __init__(self, session: Session) -> None:
        self._session: Session = weakref.proxy(session)
        self._loads: dict[int, str] = {}  # what is to be said of loads of unwritten memory, by line
        self._structures: set[int] = set()  # the lines of those that may copy a structure: not from shared memory
        self._needed: dict[int, set[int]] | None = None  # of what such loads write, by line

    def loaded(self, at: View, space: str, lane: int, missing: Array, origin: int, message: str) -> bool:
        """A lane loads memory of which bits are `missing`, byte by byte; whether its registers are followed. origin: of
        the line to report, with the message, once it uses them."""
        where, touch = at.cta.state.get(f"{_LOAD} {at.warp}", (_NOWHERE, None))
        if self._needed is None:
            self._needed = needed(at.launch.program)
        if where != at.op.where or self._needed.get(where, set()).isdisjoint(touch.writes):
            return False
        self._loads.setdefault(origin, message)
        if space != "shared":
            self._structures.add(origin)
        known = _registers(at, touch)
        for slot, part in zip(touch.writes, np.array_split(missing, len(touch.writes)), strict=True):
            if slot >= 0 and part.any():
                width, register = touch.widths[0], known.of(slot)
                register.bits[lane] = 0
                register.bits[lane, :width] = part if len(part) == width else 0xFF
                register.origin[lane], register.computed[lane] = origin, False
        return True

    def stored(self, at: View) -> list[_Part]:
        """What the store that is looked at stores and nobody has written: (lane, byte of the access, line, whether it
        may be what lies between the parts of a structure)."""
        where: int
        found: list[_Part]
        where, found = at.cta.state.get(f"{_STORE} {at.warp}", (_NOWHERE, []))
        return found if where == at.op.where else []

    def touched(self, at: View, lanes: Array) -> None:
        """Lanes are about to execute an operation that touches such registers."""
        touch = at.op.of(Touch)
        known = _registers(at, touch)
        if touch.kind == "entry":
            for slot in touch.writes:
                known.of(slot).bits[lanes], known.of(slot).origin[lanes] = 0xFF, _NOWHERE
            return
        if touch.guard >= 0:
            self._used(at, np.array(list(at.lanes())), known.of(_slot(touch.guard)), 1, "decides by")
        if not len(lanes):
            return
        if touch.kind == "ret":
            for slot in touch.reads:
                mine, result = known.of(slot), _results(at).setdefault(slot, Unwritten.make(0))
                result.bits[lanes], result.origin[lanes] = mine.bits[lanes], mine.origin[lanes]
                result.computed[lanes] = mine.computed[lanes]
            return
        frame = _frame(at, touch)
        left = _results(at) if any(slot >= frame for slot in touch.reads) else {}
        reads = {slot: left.get(slot - frame) or known.of(slot) for slot in touch.reads}
        if touch.kind in PASSES_ON:
            self._pass_on(at, touch, lanes, reads, known)
            return
        beyond = _beyond(at, lanes) if touch.kind == "st" else lanes
        for place in _uses(at, lanes):
            ref = at.op.src[place]
            if ref is not None and ref.slot in reads:
                width = max(1, bits_of(at.op.src_types[place]) // 8)
                self._used(at, beyond if place > 1 else lanes, reads[ref.slot], (1 << width) - 1, "uses")
        if touch.kind in ("switch", "warpsync"):
            for register in reads.values():
                self._used(at, lanes, register, _ALL, "decides by")
        if touch.kind == "ld":
            at.cta.state[f"{_LOAD} {at.warp}"] = at.op.where, touch
        elif touch.kind == "st":
            at.cta.state[f"{_STORE} {at.warp}"] = at.op.where, self._unwritten_of(at, lanes, reads)
        for slot in touch.writes:
            if slot >= 0:
                known.of(slot).bits[lanes] = 0

    def _pass_on(self, at: View, touch: Touch, lanes: Array, reads: dict[Slot, Unwritten], known: _Registers) -> None:
        """The result of an operation on registers is as little written as its sources."""
        sources = [reads.get(ref.slot) if ref is not None else None for ref in at.op.src[1:]]
        bits = [np.zeros((LANES, BYTES), np.uint8) if one is None else one.bits for one in sources]
        origin = np.full(LANES, _NOWHERE, np.int32)
        computed = np.full(LANES, computes(at, touch))
        for one in sources:
            if one is not None:
                some = one.bits.any(1)
                computed |= some & one.computed
                origin = np.where(some & (one.origin >= 0), one.origin, origin)
        if touch.kind != "copy":
            origin = np.where(origin == _NOWHERE, at.op.where, origin)
        frame, failed = _frame(at, touch), None
        if takes_cluster(at.op):
            failed = launch_control.failed(at, lanes)
            self._loads.setdefault(at.op.where, launch_control.MESSAGE)
        for place, slot in enumerate(touch.writes):
            if slot >= frame:  # an argument of a function, in its frame
                for register in reads.values():
                    self._used(at, lanes, register, _ALL, "passes")
            elif slot >= 0:
                known.of(slot).bits[lanes] = unwritten_bits(at, touch, bits, place)[lanes]
                known.of(slot).origin[lanes], known.of(slot).computed[lanes] = origin[lanes], computed[lanes]
                if failed is not None:
                    known.of(slot).bits[failed], known.of(slot).origin[failed] = 0xFF, at.op.where

    def _used(self, at: View, lanes: Array, register: Unwritten, mask: int, how: str) -> None:
        unwritten = register.bytes(lanes) & mask
        if at.op.of(Touch).kind == "st":
            unwritten = np.where(self._padding(register, lanes, mask), 0, unwritten)
        bad = np.flatnonzero(unwritten)
        if not len(bad):
            return
        here, lane, program = at.op.where, int(lanes[bad[0]]), at.launch.program
        origin = int(register.origin[lane])
        where = here if origin == _NOWHERE else origin
        details = (f"{len(bad)} threads of the warp do so",) if len(bad) > 1 else ()
        tell = partial(self._session.report_at, program, where, at.cta.place, at.thread(lane), _NAME)
        if where in self._loads:
            _, line, text = self._session.place(program, here)
            tell(self._loads[where], where, details=(f"used by line {line}: {' '.join(text.split())}", *details))
            return
        others = () if where == here else (self._session.site(program, here, at.cta.place, at.thread(lane)),)
        message = "the thread reads a register that it has not written"
        if others:
            message += f", and {how} the result"
        tell(message, ("register", where), kind="register", others=others, details=details)

    def _padding(self, register: Unwritten, lanes: Array, mask: int) -> Array:
        """Of each lane, whether what lacks in a register that it stores may be what lies between the parts of a
        structure, which copies of it take, too."""
        copied = np.isin(register.origin[lanes], list(self._structures)) & ~register.computed[lanes]
        found: Array = (register.bits[lanes, : mask.bit_length()] != 0xFF).any(1) & copied
        return found

    def _unwritten_of(self, at: View, lanes: Array, known: Mapping[Slot, Unwritten]) -> list[_Part]:
        """As `stored`, of a store."""
        found, first = list[_Part](), 0
        for ref, type_ in zip(at.op.src[2:], at.op.src_types[2:], strict=True):
            width = max(1, bits_of(type_) // 8)
            register = None if ref is None else known.get(ref.slot)
            if register is not None:
                mask = (1 << width) - 1
                padding = dict(zip(lanes.tolist(), self._padding(register, lanes, mask).tolist(), strict=True))
                for lane in lanes[register.bytes(lanes) & mask != 0].tolist():
                    origin, bits = int(register.origin[lane]), register.bits[lane, :width].tolist()
                    origin = at.op.where if origin == _NOWHERE else origin
                    found += [
                        (lane, first + byte, origin, padding[lane], some) for byte, some in enumerate(bits) if some
                    ]
            first += width
        return found


def _registers(at: View, touch: Touch) -> _Registers:
    state: dict[Any, _Registers] = at.cta.state.setdefault("registers that are written", {})
    frame = at.warp, touch.function, at.below + touch.above
    return state.setdefault(frame, _Registers(touch.function == 0))


def _frame(at: View, touch: Touch) -> int:
    """Where the frame of the function ends, and those of the functions that it calls begin."""
    return at.launch.program.functions[touch.function].frame_bytes


def _results(at: View) -> dict[int, Unwritten]:
    """What the function that a warp has returned from last has left of its results, by their slots there."""
    found: dict[int, Unwritten] = at.cta.state.setdefault(f"results of initcheck {at.warp}", {})
    return found


def _slot(number: int) -> Any:
    return number


def _uses(at: View, lanes: Array) -> range | list[int]:
    """Places of the sources whose content matters beyond the lane."""
    touch, op = at.op.of(Touch), at.op
    if touch.kind == "wgmma.mma_async":
        named = _named(at)
        first, count = named.sources["d"]
        enable = named.sources["scale_d"][0]
        if not at.source(1 + enable)[lanes].any():  # the accumulator is not read
            return [place for place in range(1, len(op.src)) if not first < place <= first + count]
    return range(1, len(op.src))


def _beyond(at: View, lanes: Array) -> Array:
    """Lanes that store to global memory: what is stored elsewhere may never be loaded."""
    if at.op.space != "generic":
        return lanes[:0] if at.op.space in ("shared", "local", "cluster", "param") else lanes
    found: Array = lanes[~np.isin(at.addresses(1)[lanes] >> np.uint64(56), _WINDOWS)]
    return found


def _named(at: View) -> NamedOperands:
    """The operands of the operation that the look is about."""
    for block in at.launch.program.blocks:
        op = block.terminator.op
        if op is not None and op.where == at.op.where and isinstance(op.detail, NamedOperands):
            return op.detail
    raise KeyError(at.op.where)
