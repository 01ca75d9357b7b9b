"""racecheck's first look at a grid, without clocks: nobody else touches what a thread writes.

Of each piece of memory the native engine notes who has touched it (`machine.filters.Bounds.owners`): of shared memory
since all threads of the CTA last met at a barrier, of global memory ever. As long as every piece is one thread's own,
or is only read, no two accesses race, in this schedule or another one. Whatever else happens raises `Closer`: then the
grid runs again from the beginning, and `RaceClocked` looks, or `RaceCheck` judges.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxtools.machine.filters import ALWAYS, COMES, EVERYWHERE, MATRICES, SEVERAL, Bounds, stretches
from ptxtools.machine.observers import Closer, Doubt
from ptxtools.machine.residents import SEVERAL_GLOBAL, WRITTEN_GLOBAL
from ptxtools.program.details import Action, Look, Meeting
from ptxtools.program.operations import (
    BULK_COPIES,
    EVENT,
    FETCHES,
    LATE_COPIES,
    OPERATIONS,
    PAUSES,
    TENSOR_CORES,
    strength,
)
from ptxtools.program.program import LANES
from ptxtools.records import replace
from ptxtools.sim.tensor.wgmma_reads import multiplies

from . import race_meeting
from .race_accesses import commuting, looks_of, piece_of
from .race_grids import action_of, lets_begin
from .race_guess import ReadOnly
from .race_proxies import CONSTANT, TEXTURE, proxy_of
from .race_shadow import WORD
from .race_trial_tensor import TensorTrial
from .racecheck import RaceCheck
from .sharing import independent, useful_atomics

if TYPE_CHECKING:
    from collections.abc import Callable

    from ptxtools.machine.claims import Claim, Span
    from ptxtools.machine.events import View
    from ptxtools.machine.launch import Launch
    from ptxtools.machine.observers import Access, Array
    from ptxtools.machine.residents import Cta, Schedule
    from ptxtools.program.program import Op, Program
    from ptxtools.sim.device import Grid

    from .session import Session


#: Operations on mbarriers that are looked at one by one.
_MBARRIERS = frozenset(
    {
        *("init", "inval", "arrive", "arrive.expect_tx", "expect_tx"),
        *("test_wait.state", "test_wait.parity", "try_wait.state", "try_wait.parity"),
    }
)
#: More than there are commuting operations.
_SORTS = 10


def possible(program: Program) -> bool:
    """Whether it is worth while: all accesses are weak, or atomics of integers whose order matters to nobody, and all
    barriers are for the whole CTA."""
    return all(map(_plain, program.operations())) and _in_any_order(program)


def _in_any_order(program: Program) -> bool:
    """Whether all atomics can come in any order: nobody reads what they find."""
    atomics = {op.where for op in program.operations() if OPERATIONS[op.kind].access == "atomic"}
    return not atomics or atomics.isdisjoint(program.found(useful_atomics))


def _sort(op: Op) -> int:
    """Of an atomic that may come beside others of its sort, in any order, a number from 1 on; else 0."""
    opcode = op.opcode
    if opcode is None or strength(opcode) not in ("", "relaxed"):
        return 0
    if op.space != "shared" and (opcode.has("cta") or opcode.has("cluster")):
        return 0
    number, type_ = commuting(opcode), opcode.type or ""
    return 0 if number < 0 else number + _SORTS * type_.startswith("s") + 2 * _SORTS * type_.endswith("64")


def _beside(op: Op) -> int:
    """Beside what an access may come. Reads through the proxies of textures and constants count as those of several
    threads: nothing orders them with writes, of their own thread neither (8.6)."""
    if op.of(Look).action == "atomic":
        return _sort(op)
    return SEVERAL if proxy_of(op) in (TEXTURE, CONSTANT) else 0


def _plain(op: Op) -> bool:
    """Not what synchronises otherwise than by barriers of the CTA, what reaches memory without a look, or what leaves
    traces beside memory: so no operation that Python serves."""
    row = OPERATIONS[op.kind]
    if op.kind in TENSOR_CORES | BULK_COPIES | PAUSES | FETCHES:
        return True
    if row.seen == "mbarrier":
        return op.of(Action).name in _MBARRIERS and not (op.opcode is not None and op.opcode.has("relaxed"))
    served = row.runs == EVENT and not op.kind.startswith("observe.") and op.kind not in LATE_COPIES
    if served or row.seen == "cluster" or "mbarrier" in row.seen:
        return False
    if action_of(op.opcode) == "launch_dependents":
        return False
    if op.kind == "bar":
        return op.of(Action).name != "arrive" and op.src[1] is None
    if row.seen != "access":
        return True
    return _sort(op) > 0 if row.access == "atomic" else not strength(op.opcode)


class RaceTrial(RaceCheck):
    """owners: bytes of shared memory that are looked at as one, or 0."""

    WARPGROUPS = False  # `together` tells of them
    REGIONS = True

    def __init__(self, session: Session, grid: Grid) -> None:
        super().__init__(session, grid)
        if grid.program.found(lets_begin):
            raise Doubt  # the next grid has to know all accesses
        looks = grid.program.found(looks_of)
        kinds = grid.program.kinds
        self._global_piece = piece_of(looks, "global")
        self.owners = piece_of(looks, "shared")
        if not kinds.isdisjoint(TENSOR_CORES | BULK_COPIES) or any(
            OPERATIONS[kind].seen == "mbarrier" for kind in kinds
        ):
            self.owners = self.owners or WORD
            self._tensor = TensorTrial(grid.program, self.owners)
        if kinds.isdisjoint(BULK_COPIES) and not any(kind.startswith("tcgen05.") for kind in kinds):
            vars(self).update(issued=None, completed=None)  # so that nothing is told of wgmma but `together`
        vars(self).update(sampled=None)
        self._fetches = not kinds.isdisjoint(FETCHES)
        arena = session.device.arena
        self._memory = arena.base, arena.base + arena.used
        self._words: dict[Schedule, Array] = {}  # of global memory, by worker
        self._read_only = ReadOnly(grid.program, possible=kinds.isdisjoint(BULK_COPIES))
        self._constants = grid.image.const

    @staticmethod
    def shares(program: Program) -> bool:
        """Whether workers may share a grid (`machine.observers.Alone`)."""
        return program.found(independent)

    @staticmethod
    def concerned(program: Program, device: Any) -> Callable[[Op], bool]:
        """Which events of a program matter: all but those of local memory, and of warps at other work."""
        judged = RaceCheck.concerned(program, device)
        return lambda op: multiplies(op) if op.kind == "observe.together" else judged(op)

    def filter(self, launch: Launch) -> Bounds:
        """Local memory is a thread's own."""
        shared = launch.program.static_shared + launch.dynamic_shared
        self._read_only.make(launch, self._session.device.arena.live(), self._constants)
        known = {"global": EVERYWHERE, "shared": stretches([(0, shared)]), "local": EVERYWHERE}

        every = Bounds(known, known, _odd, owners=(self._global_piece, self.owners), sort=_beside)

        def of_worker(schedule: Schedule) -> Bounds:
            read, written = self._read_only.rows(self._memory, partial(self._word_of, self._words_of(schedule)))
            return replace(every, reads={**known, "global": read}, writes={**known, "global": written})

        return replace(every, of_worker=of_worker)

    def _words_of(self, schedule: Schedule) -> Array:
        """Of the memory of a worker, who touched it."""
        words = self._words.get(schedule)
        if words is None:
            count = (self._memory[1] - self._memory[0]) // (self._global_piece or WORD) + 1
            words = self._words[schedule] = np.zeros(count, np.uint32)
        return words

    def passing(self, op: Op) -> int | None:
        """Of what orders threads only the barriers count; mbarriers and products of warps are looked at."""
        if op.kind == "observe.together":
            return MATRICES if multiplies(op) else ALWAYS
        if isinstance(op.detail, Meeting) and op.detail.what.startswith("mbarrier"):
            return None
        return COMES if op.kind == "observe.arrive" and op.of(Meeting).what == "bar" else ALWAYS

    def _word_of(self, words: Array, address: int) -> int:
        """Where the word of a byte is, the first of its piece."""
        first: int = words.__array_interface__["data"][0]
        return first + WORD * ((address - self._memory[0]) // (self._global_piece or WORD))

    def access(self, at: View, access: Access) -> None:
        if access.space == "local":
            return
        if access.space == "global":
            self._read_only.check(access)
        raise Closer

    def fetched(self, at: View, access: Access) -> None:
        raise Closer

    def arrive(self, at: View, what: str, lanes: Array) -> None:
        if not what.startswith("mbarrier"):
            if not at.counted:
                raise Closer
            return
        self._tensor.arrive(at, what, lanes)

    def leave(self, at: View, what: str, lanes: Array) -> None:
        """No order is taken from it."""
        if what.startswith("mbarrier") and "_wait" in what:
            self._tensor.wait(at, what, lanes)

    def together(self, at: View, lanes: Array) -> None:
        """A warp multiplies."""
        if multiplies(at.op):
            self._tensor.multiplies(at)
            self._tensor.teach(at)

    def issued(self, claim: Claim) -> None:
        """Work of tensor cores begins, or a copy."""
        kind = claim.view.op.kind
        if kind not in TENSOR_CORES | BULK_COPIES:
            raise Closer
        for span in sorted((span for span in claim.spans if span.owner is None), key=lambda span: span.kind != "read"):
            self._touch(claim, span)
        self._tensor.issued(claim, -1 if OPERATIONS[kind].warp else claim.lane)

    def _touch(self, claim: Claim, span: Span) -> None:
        """A thread reads or writes global memory by a copy."""
        piece, view = self._global_piece or WORD, claim.view
        first = (span.pieces()[0] - self._memory[0]) // piece
        last = (span.pieces()[0] + (span.pieces()[1] - 1 - self._memory[0])) // piece
        words = (first[:, None] + np.arange(int((last - first).max()) + 1)).reshape(-1)
        all_words = self._words_of(view.schedule)
        if not 0 <= int(words[0]) <= int(words[-1]) < len(all_words):
            raise Closer
        x, y, z = view.launch.block
        me = view.cta.number * x * y * z + LANES * view.warp + claim.lane + 1
        found, writes = all_words[words], span.kind != "read"
        mine = (found == 0) | (found == me) | (found == me | WRITTEN_GLOBAL)
        if not (mine if writes else mine | (found < WRITTEN_GLOBAL)).all():
            raise Closer
        now = np.where((found == 0) | (found == me), me, SEVERAL_GLOBAL)
        all_words[words] = me | WRITTEN_GLOBAL if writes else np.where(found == me | WRITTEN_GLOBAL, found, now)

    def written(self, address: int, size: int) -> bool:
        piece, start = self._global_piece or WORD, self._memory[0]
        place = slice((address - start) // piece, (address + size - 1 - start) // piece + 1)
        return any((words[place] >= WRITTEN_GLOBAL).any() for words in self._words.values())

    def grid_ended(self, launch: Launch) -> None:
        """What workers have noted must go together. What textures fetch is not looked at: nobody may have written to
        the memory of one."""
        if not race_meeting.together(self._words.values()):
            raise Closer
        textures = self._session.device.runtime.textures.known if self._fetches else ()
        if any(self.written(one.address, one.bytes) for one in textures if not (one.freed or one.surface)):
            raise Doubt
        super().grid_ended(launch)

    def completed(self, claim: Claim) -> None:
        """When it ends is no matter."""

    def signalled(self, at: View, cta: Cta, offset: int) -> None:
        """What tcgen05.commit has waited for is done."""
        self._tensor.tell(at, cta, offset)

    def transacted(self, at: View, cta: Cta, offset: int, size: int) -> None:
        """A copy has brought its bytes."""
        self._tensor.tell(at, cta, offset)

    def fence(self, at: View, lanes: Array) -> None:
        """Nor from this."""


def _odd(op: Op) -> bool:
    """Whether an access does not fall into whole pieces."""
    size = op.of(Look).size
    return bool(size & (size - 1))
