"""What instructions of a walk do with memory, and with the order in which threads access it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from ptxtools.ir.nodes import Immediate, Variable, Vector
from ptxtools.isa.types import TYPES
from ptxtools.records import NamedTuple

from ..accesses import ACCESSING, variable_bytes
from ..facts import Line
from ..memory import access_bytes
from ..values import THREADS, WARP, ZERO, Value, plus, shortest
from .alignment import look_at_alignment
from .barriers import (
    Arrivals,
    first_of,
    look_at_company,
    look_at_divergence,
    look_at_end,
    look_at_number,
    waits_for_its_warp,
)
from .calls import plain_call
from .clusters import Clusters
from .collectives import Collectives
from .computing import Op, differs, unknown
from .discards import Discards
from .flights import Flights
from .grids import Grids
from .kept import Kept
from .narrow import Narrow
from .owned import Owned
from .proxies import Proxies
from .releases import STRONG, Releases
from .scattered import Scattered
from .shadow import FLIGHT, OWNER, Meeting, Place, Shadow, Touch, far, guesses, halves_meet
from .written import UPDATES, Written

if TYPE_CHECKING:
    from .walker import Group, Walker

_HALVES = (0xFFFFFFFF, 0xFFFFFFFF << WARP)
_ORDINARY = ("st", "stmatrix")
_STORES = ("st", "atom", "red")
_OWN = Value((), shortest(iter([1 + thread // WARP for thread in range(THREADS)])))


#: What is said of two accesses of one CTA that race.
_KINDS = {"update": "race with an update", "same": "race of one store", "round": "race of rounds", "behind": "race"}

_DONE = {"reads": "read", "stores": "stored", "updates": "updated"}

_Handler = Callable[["Group", Op, int], "bool | None"]


#: Families of instructions of which only the member mask matters.
COLLECTIVES = frozenset({"shfl", "vote", "match", "redux"})
#: Families of the instructions that do something with memory, or with the order of accesses.
HANDLED = frozenset({"ld", "ldu", "st", "atom", "red", "bar", "barrier", "fence", "membar", "call", "mbarrier",
                     "cp", "wgmma", "tcgen05", "multimem", "ldmatrix", "stmatrix", "mapa", "elect", "discard",
                     "setmaxnreg", "griddepcontrol", "clusterlaunchcontrol", "tensormap", *COLLECTIVES})  # fmt: skip


class Manner(NamedTuple):
    """How an opcode accesses memory. operand: its address; kind: of a touch, "" for st.async; strong: whether it may
    meet others, narrow: not outside of its CTA."""

    space: str
    operand: int
    size: int
    kind: str
    strong: bool
    narrow: bool


#: Bytes that an mbarrier can count, and more (9.7.13.15.5).
_MOST_BYTES = 1 << 20

_manners: dict[str, Manner] = {}


def _manner(op: Op) -> Manner:
    opcode = op.line.plan.op
    if opcode is None:
        return Manner("unknown", 0, 0, "reads", False, False)
    kind = "reads" if op.family in ("ld", "ldu") else "updates" if op.family in UPDATES else "stores"
    if op.opcode.startswith(("st.async", "red.async")):
        kind = ""
    strong = op.family in UPDATES or any(opcode.has(word) for word in STRONG)
    narrow = ".cta" in op.opcode.replace("::cta", "")
    return Manner(opcode.space or "", int(op.family not in ("st", "red")), access_bytes(op.line), kind, strong, narrow)


class Memory:
    """The memory of one walk. blind: something unseen may have ordered the two halves: nothing is said of them."""

    def __init__(self, walker: Walker) -> None:
        self.walker = walker
        self.threads = walker.threads
        self.shadow = Shadow(self.threads.apart)
        self.blind = False
        self.spaces = walker.threads.spaces
        self._looked_at = {"", *self.spaces}
        if "shared" in self.spaces:
            self._looked_at |= {"shared::cta", "shared::cluster"}
        self.flights = Flights(self)
        self.grids = Grids(walker)
        self.collectives = Collectives(walker)
        self.narrow = Narrow(walker)
        self.scattered = Scattered(self)
        self.proxies = Proxies(self)
        self.discards = Discards(self)
        self.slots: set[Value] = set()  # where tcgen05.alloc has stored an address
        self.handlers: dict[str, _Handler] = {
            "ld": self._access, "ldu": self._access, "st": self._access, "atom": self._access, "red": self._access,
            "bar": self._barrier, "barrier": self._barrier, "fence": self._fence, "membar": self._fence,
            "call": self._call, "multimem": self._call, "mbarrier": self.flights.mbarrier, "cp": self.flights.copy,
            "wgmma": self.flights.product, "tcgen05": self.flights.tensor, "ldmatrix": self.flights.factors.rows,
            "stmatrix": self.flights.factors.rows, "clusterlaunchcontrol": self.flights.answer,
            "tensormap": self.flights.changes_map, "setmaxnreg": self._registers,
            "griddepcontrol": self._dependency, "discard": self.discards.discard,
            **dict.fromkeys((*COLLECTIVES, "elect"), self._collective),
        }  # fmt: skip
        #: Families of which the results are noted where lanes meet.
        self.noted = frozenset() if self.threads.apart else COLLECTIVES | {"elect"}
        self.releases = Releases(self)
        self._arrived: dict[object, list[tuple[int, int]]] = {}
        self.arrivals = Arrivals(walker)
        self.clusters: Clusters = Clusters(self)
        self.bytes = Written(self)
        self.all_seen = self.bytes.active
        self.owned = Owned(self)
        self.kept = Kept(self)
        self._resized: dict[int, tuple[Op, int]] = {}

    # --- addresses ----------------------------------------------------------------------------------------------------

    def place_of(self, group: Group, op: Op, operand: int, space: str) -> Place | None:
        """Where an operand points; None if that is not known well enough."""
        for place, base, offset in op.addresses:
            if place == operand:
                value = self.walker.value(group, base)
                address = plus(value, Value((), offset)) if offset else value
                return self.placed(address, space, op.line)
        return None

    def placed(self, address: Value, space: str, line: Line) -> Place | None:
        window, terms = space.partition("::")[0], address.terms
        if not terms:
            return None
        if len(terms) > 1 and any(name.startswith("cvta.") for name, _ in terms):
            window = next(name[5:] for name, _ in terms if name.startswith("cvta."))
            address = Value(tuple([term for term in terms if not term[0].startswith("cvta.")]), address.each)
        if not window:
            symbol = line.names.lookup(address.variable or "") if address.variable else None
            window = symbol.space if isinstance(symbol, Variable) else ""
            if any(name[0] not in "#=%&" for name, _ in terms):
                window = "global"  # of a parameter
        if window not in self.spaces or any(name[0] == "#" for name, _ in terms):
            return None
        if window == "shared" and self.threads.kind == "cluster" and max(address.numbers) < 1 << OWNER - 1:
            address = far(address, _OWN)
        return Place(window, address)

    def loaded(self, group: Group, op: Op, mask: int) -> Value:
        """What `ld` or `mapa` gives."""
        walker, opcode = self.walker, op.line.plan.op
        if op.family == "mapa":
            sources = [walker.value(group, source) for source in op.sources or ()]
            if self.threads.kind == "cluster" and len(sources) == 2 and not sources[1].terms:
                self.clusters.look_at_rank(op, sources[1], mask)
                rank = sources[1]
                if self.threads.turned:
                    rank = Value((), shortest(iter([number & 1 for number in rank.numbers])))
                return far(sources[0], plus(rank, Value((), 1)))
            return unknown(True, op.opcode, *sources)
        if opcode is None or not op.addresses:
            return unknown(True, id(op.line.item), walker.moment)
        _, base, offset = op.addresses[0]
        address = walker.value(group, base)
        steady = not differs(address) and isinstance(address.each, int)
        if (opcode.space or "").startswith("param"):
            given = walker.calls.load(group, op) if walker.program.hands_over else None
            if given is not None:
                return given
            name = address.terms[0][0][1:] if len(address.terms) == 1 else ""
            if steady and name in walker.program.parameters and isinstance(address.each, int):
                return Value(((f"{name}+{offset + address.each}", 1),), 0)
            return unknown(True, id(op.line.item), walker.moment)  # what a call gives
        if walker.program.tables is not None:
            entry = walker.program.tables.load(op.line, plus(address, Value((), offset)))
            if entry is not None:
                return entry
        kept = self.kept.load(group, op, mask)
        if kept:
            return kept[op.into[0]]
        if opcode.space == "const" and steady:
            return unknown(False, "const", op.opcode, address, offset)
        if steady and self.slots:
            slot = plus(address, Value((), offset)) if offset else address
            if slot in self.slots:
                return unknown(False, "slot", slot)
        alike = steady and not self.threads.apart
        return unknown(not alike, "ld", id(op.line.item), walker.moment, op.opcode)

    # --- accesses -----------------------------------------------------------------------------------------------------

    def _access(self, group: Group, op: Op, mask: int) -> bool | None:
        manner = _manners.get(op.opcode)
        if manner is None:
            manner = _manners[op.opcode] = _manner(op)
        if self.owned.active or self.kept.active:
            for at, base, offset in op.addresses:
                if at == manner.operand:
                    address = plus(self.walker.value(group, base), Value((), offset))
                    self.owned.access(op, at, address, manner.space, manner.size, mask)
        if manner.space not in self._looked_at:
            if manner.space.startswith("param") and op.family == "st" and self.walker.program.hands_over:
                self.walker.calls.store(group, op, mask)
            return None
        size = manner.size
        if manner.kind == "":
            return self.flights.async_store(group, op, mask, size)
        if op.opcode.startswith("st.bulk"):
            size = self.size_at(group, op, 1)
        place = self.place_of(group, op, manner.operand, manner.space)
        strong = manner.strong and not (self.threads.apart and manner.narrow)
        if strong and ".volatile" in op.opcode and manner.space.startswith("shared"):
            strong = self.walker.program.polls  # else what is volatile stands for a barrier that is missing
        if op.family not in ("ld", "ldu"):
            self.kept.store(group, op, manner.operand, place, size, mask)
        if place is not None and size:
            data = self._stored(group, op) if op.family == "st" else None
            self.touch(group, op, manner.operand, place, size, mask, manner.kind, strong, data)
        elif op.family != "ld" and manner.space in ("", "shared", "shared::cta", "shared::cluster"):
            self.all_seen = False
        if place is None and op.family != "ld" and manner.space in ("", "global"):
            self.discards.lose()
        if place is None and size and manner.space.startswith("shared"):
            for at, base, offset in op.addresses:
                if at == manner.operand:
                    address = plus(self.walker.value(group, base), Value((), offset))
                    self.scattered.note(group, op, at, address, size, mask, manner.kind, strong)
        if place is None and self.narrow.alone:
            self.narrow.unknown(manner.space, op.family in ("ld", "ldu"))
        if strong:
            self.releases.access(op, mask, place, size)
        if manner.strong and manner.kind != "stores":
            self.arrivals.hear(mask)
        if place is not None and self.walker.program.callees and ".nc" in op.opcode:
            self._look_at_constant(op, manner.operand, place, size, mask)
        return None

    def _look_at_constant(self, op: Op, operand: int, place: Place, size: int, mask: int) -> None:
        """Whether a function loads with .nc what its caller has written, or the other way round."""
        own = _bytes(place.address, size, mask)
        for touch in self.shadow.at(place.space, place.address.terms):
            if touch.kind != "reads" and not own.isdisjoint(_bytes(touch.address, touch.size, touch.mask)):
                message = "the kernel writes in line {line} what this .nc load reads"
                self.walker.report("constant written", op.line, None, message, touch.line)
                return

    def _stored(self, group: Group, op: Op) -> Value | None:
        """What a store of one value stores, or of the same one in all elements of a vector, in so far as numbers of
        threads and CTAs tell."""
        stored = self.walker.program.stored.get(id(op.line.item))
        flat = tuple(self.threads.registers["%tid.x"].numbers[:WARP]) == tuple(range(WARP))
        if stored is None or not (flat or isinstance(stored.each, int)):
            return None
        found = Value((), stored.each)
        for name, count in stored.terms:
            known = self.threads.registers.get(name)
            found = plus(found, known if known is not None else Value(((name, 1),), 0), count)
        if isinstance(op.line.item.operands[1], Vector):  # each element has it
            info = TYPES.get((op.line.plan.op.type if op.line.plan.op is not None else "") or "")
            bits = info.bits if info is not None else 0
            return Value(found.terms, shortest(iter([number & (1 << bits) - 1 for number in found.numbers])))
        return found

    def size_at(self, group: Group, op: Op, place: int, mask: int = 0) -> int:
        """An operand as a number of bytes, which all threads have, or those of a mask; 0 if unknown, or more than an
        mbarrier can count."""
        operand = op.line.item.operands[place] if place < len(op.line.item.operands) else None
        if isinstance(operand, Immediate):
            return operand.value if 0 <= operand.value < _MOST_BYTES else 0
        name = getattr(operand, "name", None)
        key = next((key for key in op.reads if key[1] == name), None)
        value = self.walker.value(group, key) if key is not None else None
        if value is None or value.terms or not (mask or isinstance(value.each, int)):
            return 0
        found = {number for thread, number in enumerate(value.numbers) if not mask or mask >> thread & 1}
        size = found.pop() if len(found) == 1 else 0
        return size if 0 <= size < _MOST_BYTES else 0

    def touch(
        self, group: Group, op: Op, operand: int, place: Place, size: int, mask: int, kind: str, strong: bool,
        data: Value | None = None, flight: bool = False, token: int = 0,
    ) -> None:  # fmt: skip
        shadow = self.shadow
        self.walker.left -= 2
        moment = FLIGHT if flight else shadow.now
        touch = Touch(
            op.line, operand, place.space, place.address, size, mask, moment, kind, strong, data, group.doubtful,
            flight, token,
        )  # fmt: skip
        if op.family in ACCESSING:
            look_at_alignment(self.walker, touch)
        if place.space == "shared":
            beyond = not self.threads.apart and self._look_at_size(touch)
            self.all_seen &= not (self.threads.apart and self.blind)  # what a CTA waits for may come later in the walk
            if self.all_seen and not beyond:
                self.bytes.note(touch)
            if kind != "reads" and op.family not in _STORES:
                self.kept.write(op, place.address, size, mask)
        if place.space == "shared" and self.threads.kind == "cluster":
            self.clusters.note(touch)
        if self.narrow.alone:
            self.narrow.note(touch)
        meeting = shadow.touch(touch)
        if meeting is None and self._is_copied_twice(touch):
            meeting = halves_meet(touch)
        if place.space == "shared" and kind == "stores" and (op.family == "cp" or not flight):
            if op.family in _ORDINARY:
                self.proxies.store(touch)
            if op.family in (*_ORDINARY, "cp"):
                self.flights.store(touch)
        if meeting is None and place.space == "shared" and not flight:
            self.scattered.look(touch)
        if place.space == "global":
            self.grids.note(op.line, operand, place.address, mask, kind)
            self.discards.note(touch)
        if meeting is None or guesses(meeting) or (self.blind and meeting.first // WARP != meeting.second // WARP):
            return
        if self.threads.apart and self.flights.peers.knows(meeting):
            return
        untold = self.releases.untold(meeting)
        if untold is not None or not self.releases.defer(meeting):
            self._report(untold or meeting)

    def _is_copied_twice(self, touch: Touch) -> bool:
        """Whether warps of one CTA certainly begin bulk copies with one instruction."""
        begins = touch.flight and touch.kind == "stores" and touch.line.item.opcode.startswith("cp.async.bulk")
        certain = self.threads.declared and not (self.threads.apart or self.walker.assumed or touch.doubtful)
        return begins and certain

    def _report(self, meeting: Meeting) -> None:
        before, after, first, second = meeting
        apart = first // WARP != second // WARP
        if self.threads.apart and not apart and not before.flight:
            return  # the walk of a CTA finds it
        mine, other = self.threads.name(second), self.threads.name(first)
        if self.threads.apart and apart:
            mine += " of a CTA" if self.threads.turned else f" of CTA {second // WARP}"
            other += " of another one" if self.threads.turned else f" of CTA {first // WARP}"
        if before.moment == FLIGHT and not apart:
            kind, end = "in flight", "nothing has waited for that"
        elif self.threads.apart:
            kind = "race in the cluster" if before.space == "shared" else "race of CTAs"
            end = "nothing orders the two"
        else:
            kind, end = _KINDS[self._relation(before, after)], "no barrier orders the two"
        verb = "copies" if before.moment == FLIGHT and before.kind == "stores" else before.kind
        what = f"what {other} {verb} in line {{line}}" if before.line is not after.line else f"as {other} does"
        self.walker.report(kind, after.line, after.operand, f"{mine} {after.kind} {what}: {end}", before.line)

    def tell_scattered(self, before: Touch, after: Touch, half: int) -> None:
        """Two accesses of which one is at an index that is data; `half` of the threads makes the later one."""
        first = self.threads.name(first_of(before.mask & _HALVES[1 - half]))
        second = self.threads.name(first_of(after.mask & _HALVES[half]))
        what = f"what {first} may have {_DONE[before.kind]} in line {{line}}, as data selects the element"
        message = f"{second} {after.kind} {what}: no barrier orders the two"
        kind = _KINDS[self._relation(before, after)]
        self.walker.report(kind, after.line, after.operand, message, before.line, sure=False)

    def _relation(self, before: Touch, after: Touch) -> str:
        if "updates" in (before.kind, after.kind):
            return "update"
        if before.line is after.line:
            return "same"
        program = self.walker.program
        first, second = program.number(before.line), program.number(after.line)
        return "round" if first > second and program.home(first) == program.home(second) else "behind"

    def _look_at_size(self, touch: Touch) -> bool:
        """Whether threads access what is behind a variable, or before it."""
        numbers, threads = touch.address.numbers, self.threads
        name = touch.address.variable
        if name is None or self.walker.assumed or not threads.declared:
            return False
        if touch.flight and touch.line.plan.family != "cp":
            return False
        symbol = touch.line.names.lookup(name)
        total = variable_bytes(symbol) if isinstance(symbol, Variable) else None
        for thread in range(THREADS) if total is not None else ():
            if touch.mask >> thread & 1 and not 0 <= numbers[thread] <= (total or 0) - touch.size:
                first = max(numbers[thread], total or 0) if numbers[thread] >= 0 else numbers[thread]
                what = f"byte {first} of '{name}', which has {total} bytes"
                self.walker.report(
                    "beyond a variable", touch.line, touch.operand, f"{threads.name(thread)} accesses {what}"
                )
                return True
        return False

    # --- order --------------------------------------------------------------------------------------------------------

    def _fence(self, group: Group, op: Op, mask: int) -> None:
        if ".proxy.async" in op.opcode:
            self.proxies.fence(op.opcode, mask)
        if ".proxy" in op.opcode or ".mbarrier_init" in op.opcode:
            return
        if self.threads.apart and ".cta" in op.opcode:
            return
        self.releases.fence(mask)

    def _call(self, group: Group, op: Op, mask: int) -> None:
        self.all_seen = False
        self.discards.lose()
        if op.family == "call" and plain_call(op.line):
            self.owned.call(group, op, mask)
            return
        self.arrivals.hear(mask)
        self.kept.give_up()
        self.blind = self.clusters.unseen = True
        self.shadow.order_all()

    def unseen(self) -> None:
        """Something writes shared memory, now or later, at places that are not known."""
        self.all_seen = False
        self.kept.give_up()

    def _dependency(self, group: Group, op: Op, mask: int) -> None:
        if op.opcode == "griddepcontrol.wait":
            self.grids.wait(mask)

    def _collective(self, group: Group, op: Op, mask: int) -> bool:
        """A .sync instruction with a member mask. Its result is noted before its threads part."""
        if self.threads.apart:
            return False
        if op.into:
            self.walker.write(group, op, mask)
        return self.collectives.meet(group, op, mask)

    def _registers(self, group: Group, op: Op, mask: int) -> None:
        """setmaxnreg: all warps of a warpgroup execute the same one."""
        self.together(op, mask)

    def together(self, op: Op, mask: int) -> None:
        """Threads come to an instruction that all warps of a warpgroup execute."""
        _, before = self._resized.get(id(op.line.item), (op, 0))
        self._resized[id(op.line.item)] = op, before | mask

    def end(self) -> None:
        """All threads have ended."""
        self.narrow.ended = True
        self.bytes.end()
        for meeting in self.releases.unmet():
            self._report(meeting)
        if self.threads.apart:
            self.clusters.end()
            self.flights.columns.look_at_pairs()
        else:
            self.grids.end()
            if not self.blind:
                self.flights.end()
        if self.walker.assumed or self.threads.apart or not self.threads.group:
            return
        for op, mask in self._resized.values():
            if mask != self.threads.mask:
                thread = self.threads.name(first_of(self.threads.mask & ~mask))
                message = f"{thread} of the warpgroup does not come to this '{op.opcode}'"
                self.walker.report("part of a warpgroup", op.line, None, message)

    def _barrier(self, group: Group, op: Op, mask: int) -> bool | None:
        words = op.opcode.split(".")
        if "warp" in words:
            for half in (0, 1):
                if mask & _HALVES[half]:
                    self.shadow.order_lanes(half, self.collectives.members(group, op, mask, half))
            return self._collective(group, op, mask)
        aligned = "aligned" in words or words[0] == "bar"
        self.flights.columns.lanes.tell(op, mask)
        if aligned and mask == group.mask and waits_for_its_warp(self.walker, group):
            return True
        if "cluster" in words:
            self.arrivals.hear(mask)
            return self.clusters.barrier(group, op, mask)
        sources = op.sources or ()
        which = (
            self.walker.value(group, sources[-1 if "red" not in words and len(sources) == 1 else 0])
            if sources
            else ZERO
        )
        count = self.walker.value(group, sources[1]).constant if len(sources) > 1 and "red" not in words else None
        if "red" in words and sources:
            which = self.walker.value(group, sources[0])
        if differs(which):
            self._call(group, op, mask)
            return False
        if count is not None and count % WARP and not self.walker.assumed and not isinstance(
            op.line.item.operands[-1], Immediate
        ):  # fmt: skip
            message = f"'{op.opcode}' waits for {count} threads, which are no whole warps"
            self.walker.report("barrier count", op.line, None, message)
        if mask != group.mask:
            group = self.apart(group, mask)
        look_at_number(self.walker, op, which, mask)
        if type(which.each) is int:
            ids = {(which.terms, which.each)}
        else:
            numbers = which.numbers
            ids = {(which.terms, numbers[thread]) for thread in range(THREADS) if mask >> thread & 1}
        if len(ids) == 1:
            self.arrivals.come(op, min(ids), mask)
        if "arrive" in words:
            now = self.shadow.tick()
            for half in (0, 1):
                if mask & _HALVES[half]:
                    self._arrived.setdefault(min(ids), []).append((half, now))
            return False
        self.arrivals.hear(mask)
        if aligned:
            look_at_divergence(self.walker, op, mask)
        if len(ids) > 1:
            self.walker.assumed["numbers of barriers"] = True
            for half in (0, 1):
                self.shadow.order(mask & _HALVES[half])
            return False
        if self.narrow.alone:
            self.narrow.barriers.append(op)
        group.waits = ("bar", min(ids), count)
        return True

    def apart(self, group: Group, mask: int) -> Group:
        """The threads of a mask as a group of their own, behind the instruction."""
        found = group.split(group.pc, mask)
        self.walker.running.append(found)
        return found

    def release(self) -> Group | None:
        """Threads that can go on behind a barrier, now that nobody else can run; None if there are none."""
        walker = self.walker
        waiting = [group for group in walker.running if group.waits is not None]
        released = self.collectives.release(waiting)
        if released is not None:
            return released
        by_place: dict[tuple[object, ...], list[Group]] = {}
        for group in waiting:
            if group.waits is not None and group.waits[0] != "mask":
                by_place.setdefault(group.waits[:2], []).append(group)
        for place in sorted(by_place, key=lambda place: self._alone(place, by_place[place])):
            groups = by_place[place]
            if place[0] == "cluster":
                if not self.clusters.done():
                    continue
            elif place[0] == "mbarrier":
                stuck = all(each[0] in ("mbarrier", "warp") for each in by_place)
                self.flights.go_on(cast("tuple[Value, int]", place[1]), groups if stuck else [])
                groups += by_place.get(("warp", 0), [])  # each looks again
            elif place[0] == "bar":
                if len(by_place) == 1:
                    look_at_end(walker, groups, len(self._arrived.get(place[1], ())))
                    look_at_company(walker, groups)
                self._meet(place[1], groups)
                if len(groups) > 1 or groups[0].doubtful:
                    self._all_came(groups)
            for group in groups:
                group.waits = None
            return groups[0]
        return None

    def _alone(self, place: tuple[object, ...], groups: list[Group]) -> tuple[int, int]:
        """How much speaks against letting threads go on, and where they are: most where they are alone at a barrier,
        or in a phase of an mbarrier at which no thread of the walk has arrived."""
        first = min(group.pc for group in groups)
        if place[0] == "mbarrier":
            return self.flights.doubts(cast("tuple[Value, int]", place[1])), first
        if place[0] == "warp":
            return 4, first
        halves = {half for half in (0, 1) for group in groups if group.mask & _HALVES[half]}
        halves |= {half for half, _ in self._arrived.get(place[1], ()) if place[0] == "bar"}
        return 2 * (len(halves) == 1), first

    def _all_came(self, groups: list[Group]) -> None:
        """Whatever way data has led the threads of a CTA, all of them have come to a barrier."""
        mask = 0
        for group in groups:
            mask |= group.mask
        if mask == self.walker.alive:
            for group in groups:
                group.doubtful = False

    def _meet(self, number: object, groups: list[Group]) -> None:
        """A barrier of the CTA completes."""
        mask = 0
        for group in groups:
            mask |= group.mask
        self.shadow.order(mask)
        self.grids.meet(mask)
        self.flights.crossed()
        self.flights.columns.meet(mask)
        arrived = self._arrived.get(number, [])
        for half in (0, 1):
            first = next((one for one in arrived if one[0] == half), None)
            if first is None:
                continue
            arrived.remove(first)
            if mask & _HALVES[1 - half] and not self.threads.apart:
                known = self.shadow.known[half]
                known[1 - half] = max(known[1 - half], first[1])


def _bytes(address: Value, size: int, mask: int) -> set[int]:
    """The bytes that some threads access, as distances from one address."""
    begins = {number for thread, number in enumerate(address.numbers) if mask >> thread & 1}
    return {byte for begin in begins for byte in range(begin, begin + size)}
