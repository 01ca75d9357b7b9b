"""mbarrier operations on the shared memory of the CTA (9.7.13.15), lane by lane on the barrier's word.

A lane that cannot be served here changes nothing, and its bit in the last destination sends it to Python: for a barrier
of another CTA, lanes to be woken, misuse, or a wait that is not over. A CTA belongs to one worker, so nothing is
atomic.
"""

from __future__ import annotations

from ptxtools.native.code.handler import Handler
from ptxtools.program import mbarrier as word
from ptxtools.program.details import Action
from ptxtools.program.program import SHARED_WINDOW

from .lanewise import Lanes, array, element
from .memory import POLL
from .parts import Address
from .plain import spend

#: Actions whose src[1] is a number of arrivals, not of bytes.
_ARRIVALS = {"arrive", "arrive_drop", "arrive.noComplete", "arrive_drop.noComplete"}
_COMPLETING = {"arrive", "arrive.expect_tx", "arrive_drop", "arrive_drop.expect_tx", "complete_tx"}


class _Operation:
    """One handler: arrays for operands and results, and the loop over lanes."""

    def __init__(self, h: Handler) -> None:
        self.handler, self.code = h, h.code
        self.action = h.op.of(Action).name
        for ref in (*h.op.dst, *h.op.src):
            if ref is not None:
                h.pointer(ref)
        self.result = len(h.op.dst) == 2
        self.waits = "_wait" in self.action
        places = array(h, 64)
        self.code.line(f"store <32 x i64> {Address(h).vector()}, ptr {places}, align 64")
        self.amounts = self._amounts()
        self.results = array(h, 64)
        self.slow = self.code.value("alloca i32, align 4")
        self.done = self.code.value("alloca i32, align 4")
        self.code.line(f"store i32 0, ptr {self.slow}")
        self.code.line(f"store i32 0, ptr {self.done}")
        self.shared = h.code.field("cta.shared", h.code.field("warp.cta"))
        self.room = self.code.value(f"zext i32 {h.code.field('ctx.shared_bytes')} to i64")
        window = h.code.field("cta.window", h.code.field("warp.cta"))
        self.window = self.code.value(f"add i64 {window}, {SHARED_WINDOW}") if h.op.space == "generic" else window
        self.lanes = Lanes(h)
        self.lane = self.lanes.lane
        self.bit = self.code.value(f"shl i32 1, {self.lane}")
        self.place = self.code.value(f"load i64, ptr {element(h, places, 64, self.lane)}")

    def _amounts(self) -> str | None:
        """src[1] of all lanes as 64-bit numbers."""
        if len(self.handler.op.src) < 2:
            return None
        value, room = self.handler.source(1), array(self.handler, 64)
        if self.handler.op.src_types[1] == "u32":
            value = self.handler.algebra.resize("u32", "u64", value)
        self.code.line(f"store <32 x i64> {value}, ptr {room}, align 64")
        return room

    def amount(self) -> str:
        assert self.amounts is not None
        return self.code.value(f"load i64, ptr {element(self.handler, self.amounts, 64, self.lane)}")

    def all_of(self, *conditions: str) -> str:
        """Conjunction of i1 values."""
        found = conditions[0]
        for condition in conditions[1:]:
            found = self.code.value(f"and i1 {found}, {condition}")
        return found

    def check(self, condition: str) -> None:
        """Continue if the condition holds; otherwise the lane is left to Python."""
        go, slow = self.handler.code.label("go"), self.handler.code.label("python")
        self.handler.code.branch(condition, go, slow, likely=True)
        self.handler.code.begin(slow)
        self._mark(self.slow)
        self.handler.code.jump(self.next)
        self.handler.code.begin(go)

    def _mark(self, room: str) -> None:
        old = self.code.value(f"load i32, ptr {room}")
        self.code.line(f"store i32 {self.code.value(f'or i32 {old}, {self.bit}')}, ptr {room}")

    def emit(self) -> None:
        e, h = self.code, self.handler
        self.next = h.code.label("next")
        offset = e.value(f"sub i64 {self.place}, {self.window}")
        inside = e.value(f"icmp ult i64 {offset}, {e.value(f'sub i64 {self.room}, 7')}")
        some = e.value(f"icmp ugt i64 {self.room}, 7")
        aligned = e.value(f"icmp eq i64 {e.value(f'and i64 {offset}, 7')}, 0")
        self.check(self.all_of(inside, some, aligned))
        pointer = e.value(f"getelementptr i8, ptr {self.shared}, i64 {offset}")
        if self.action == "init":
            self._init(pointer)
        elif self.action == "inval":
            e.line(f"store i64 0, ptr {pointer}")
        elif self.waits:
            self._test(pointer)
        else:
            self._change(pointer)
        h.code.jump(self.next)
        h.code.begin(self.next)
        self.lanes.again()
        self._finish()

    def _finish(self) -> None:
        h, e = self.handler, self.code
        slow = e.value(f"bitcast i32 {e.value(f'load i32, ptr {self.slow}')} to <32 x i1>")
        if self.waits:
            h.results([e.value(f"bitcast i32 {e.value(f'load i32, ptr {self.done}')} to <32 x i1>"), slow])
        elif self.result:
            h.results([e.value(f"load <32 x i64>, ptr {self.results}, align 64"), slow])
        else:
            h.results([slow])

    def _init(self, pointer: str) -> None:
        e, count = self.code, self.amount()
        less = e.value(f"sub i64 {count}, 1")
        self.check(e.value(f"icmp ult i64 {less}, {word.MAX_COUNT}"))
        minus = e.value(f"and i64 {e.value(f'sub i64 0, {count}')}, {word.COUNT_MASK}")
        pending = e.value(f"shl i64 {minus}, {word.PENDING_SHIFT}")
        expected = e.value(f"shl i64 {minus}, {word.EXPECTED_SHIFT}")
        e.line(f"store i64 {e.value(f'or i64 {pending}, {expected}')}, ptr {pointer}")

    def _test(self, pointer: str) -> None:
        """Whether the phase is over; try_wait leaves waiting to Python."""
        e = self.code
        now = e.value(f"load i64, ptr {pointer}")
        wanted = self.amount()
        if self.action.endswith("parity"):
            wanted = e.value(f"shl i64 {wanted}, {word.PHASE_SHIFT}")
        over = e.value(f"icmp slt i64 {e.value(f'xor i64 {now}, {wanted}')}, 0")
        if self.action.startswith("try"):
            self.check(over)
            self._mark(self.done)
            return
        yes = self.handler.code.label("yes")
        self.handler.code.branch(over, yes, self.next)
        self.handler.code.begin(yes)
        self._mark(self.done)

    def _change(self, pointer: str) -> None:
        """Arrivals and transactions: `ptxtools.program.mbarrier` in IR."""
        e, amount = self.code, self.amount()
        now = e.value(f"load i64, ptr {pointer}")
        pending, expected = self._count(now, word.PENDING_SHIFT), self._count(now, word.EXPECTED_SHIFT)
        tx = e.value(f"ashr i64 {e.value(f'shl i64 {now}, {64 - word.TX_SHIFT - word.TX_BITS}')}, {64 - word.TX_BITS}")
        alive = e.value(f"icmp ne i64 {e.value(f'or i64 {pending}, {expected}')}, 0")
        good = [alive]
        if "tx" in self.action:
            sign = "sub" if self.action == "complete_tx" else "add"
            tx = e.value(f"{sign} i64 {tx}, {amount}")
            shifted = e.value(f"add i64 {tx}, {word.MAX_TX}")
            good.append(e.value(f"icmp ule i64 {shifted}, {2 * word.MAX_TX}"))
        if "arrive" in self.action:
            arrivals = amount if self.action in _ARRIVALS else "1"
            pending, more = self._arrive(pending, arrivals)
            good += more
            if "drop" in self.action:
                expected, more = self._arrive(expected, arrivals)
                good += more
        self._complete(pointer, now, pending, expected, tx, good)

    def _count(self, now: str, shift: int) -> str:
        return self.code.value(f"and i64 {self.code.value(f'lshr i64 {now}, {shift}')}, {word.COUNT_MASK}")

    def _arrive(self, minus: str, arrivals: str) -> tuple[str, list[str]]:
        """A count (stored as its negative) less `arrivals`; conditions under which that is defined."""
        e = self.code
        left = e.value(f"and i64 {e.value(f'sub i64 0, {minus}')}, {word.COUNT_MASK}")
        enough = e.value(f"icmp ule i64 {arrivals}, {left}")
        some = e.value(f"icmp ne i64 {arrivals}, 0")
        return e.value(f"and i64 {e.value(f'add i64 {minus}, {arrivals}')}, {word.COUNT_MASK}"), [enough, some]

    def _complete(self, pointer: str, now: str, pending: str, expected: str, tx: str, good: list[str]) -> None:
        """Store the word, in its next phase if this one is complete; Python wakes other lanes."""
        e = self.code
        phase = e.value(f"and i64 {now}, {-1 << word.PHASE_SHIFT}")
        complete = e.value(f"icmp eq i64 {e.value(f'or i64 {pending}, {tx}')}, 0")
        if self.action.endswith(".noComplete"):
            good.append(e.value(f"xor i1 {complete}, true"))
        if self.action in _COMPLETING:
            waited = e.value(f"trunc i64 {now} to i1")
            good.append(e.value(f"xor i1 {e.value(f'and i1 {complete}, {waited}')}, true"))
            pending = e.value(f"select i1 {complete}, i64 {expected}, i64 {pending}")
            flipped = e.value(f"xor i64 {phase}, {-1 << word.PHASE_SHIFT}")
            phase = e.value(f"select i1 {complete}, i64 {flipped}, i64 {phase}")
        self.check(self.all_of(*good))
        parts = [phase, e.value(f"and i64 {now}, {word.WAITED}")]
        parts.append(e.value(f"shl i64 {pending}, {word.PENDING_SHIFT}"))
        parts.append(e.value(f"shl i64 {expected}, {word.EXPECTED_SHIFT}"))
        parts.append(e.value(f"shl i64 {e.value(f'and i64 {tx}, {word.TX_MASK}')}, {word.TX_SHIFT}"))
        new = parts[0]
        for part in parts[1:]:
            new = e.value(f"or i64 {new}, {part}")
        e.line(f"store i64 {new}, ptr {pointer}")
        if self.result:
            state = e.value(f"and i64 {now}, {~word.WAITED}")
            e.line(f"store i64 {state}, ptr {element(self.handler, self.results, 64, self.lane)}")


def mbarrier(h: Handler) -> None:
    """dst = state or result of a wait (if any), lanes that Python serves; src = address, amount or phase."""
    if h.op.of(Action).name.startswith("test_wait"):
        spend(h, POLL)  # a polling warp yields to those it waits for
    _Operation(h).emit()


def give_way(h: Handler) -> None:
    """The warp's slice ends with its block, and what is left of it is not charged."""
    left = h.code.field("ctx.slice")
    used = h.code.value(f"sub i64 {h.code.field('ctx.given')}, {h.code.value(f'sext i32 {left} to i64')}")
    h.code.expand(f"set ctx.given, {used}\nset ctx.slice, 0")
    h.go_on()
