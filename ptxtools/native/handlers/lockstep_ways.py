"""What all threads of a CTA have in common on a way through a section (`lockstep`): forms of contents, where accesses
are, which lanes part; all of it as scalar code in front of the loop over warps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence

from ptxtools.native.code.emitter import Emitter
from ptxtools.native.code.handler import ELEMENT
from ptxtools.native.code.live_words import Key
from ptxtools.native.code.runs import Step
from ptxtools.native.code.sections import overlap
from ptxtools.native.code.structures import WARP
from ptxtools.program.details import BoundedRun, Run, SpecialRegister
from ptxtools.program.operations import COUNTS, LANEWISE
from ptxtools.program.program import LANES
from ptxtools.records import NamedTuple, dataclass, field
from ptxtools.semantics.types import bits_of

from . import run, wide
from .inline import First, Inline
from .linear import Facts, Form, Linear, Part, Pred, Range, UnknownError
from .lockstep_bounds import Bound, Bounds
from .lockstep_lanes import Address, Lanes, alike
from .parts import Window, window

#: Most steps of a kernel's loops over warps, those of each way through a section: they are compiled in addition.
MOST_STEPS = 320
#: Loads outside of loops for which it pays to compile a way twice.
_FEWEST_ROWS = 4
_BITS = {"b32": 32, "b64": 64}
_OF_LAUNCH = {f"%{name}.{axis}": f"ctx.{field}_{axis}" for name, field in (("ntid", "block"), ("nctaid", "grid"))
              for axis in "xyz"}  # fmt: skip
_OF_CTA = {f"%ctaid.{axis}": f"%at.{axis}" for axis in "xyz"}
_AXES = {"%tid.x": 1, "%tid.y": 2, "%tid.z": 3}
#: Loads at constant distances, from so many on, are first looked at together.
_FEWEST_TOGETHER = 3


@dataclass(slots=True)
class Chain:
    """Blocks that some lanes run: those at places along x. active: i32, the warps that have such lanes; lanes: i64, how
    many there are; what the blocks count as, and cost. before, behind: forms of slots, as these lanes see them."""

    held: Range
    active: str
    lanes: str
    before: dict[Key, Form]
    behind: dict[Key, Form] = field(default_factory=dict)
    weight: int = 0
    cost: int = 0
    works: list[Work] = field(default_factory=list)


class Work(NamedTuple):
    """A run of all lanes, with the forms of its numbers and the addresses of its accesses; or a chain."""

    detail: Run | None
    forms: dict[int, Form]
    addresses: dict[Step, Address]
    chain: Chain | None = None
    rounds: Rounds | None = None


@dataclass(slots=True)
class Rounds:
    """A block that all warps go round in as often. number: how often, i64; grown: slots that grow by the same in each
    round, with the numbers of their contents in front of one and behind it; begun: forms in front of the first
    round; forms: of those that no round makes a vector; weight, cost: of one round."""

    detail: Run
    number: str
    grown: dict[Key, tuple[int, int]]
    begun: dict[int, Form]
    forms: dict[int, Form]
    weight: int
    cost: int


@dataclass(slots=True)
class Way:
    """A way through a section as far as it is known. forms: of slots; vectors: those that have been written as
    vectors; stale: those whose frames have neither; ranges: of stores, None of one that all warps make; extents: of
    accesses: space, whether it is a store, the least offset and the greatest one; rounds: of a loop; bounds: where
    accesses may be, by access and by what addresses are made of."""

    forms: dict[Key, Form]
    vectors: set[Key] = field(default_factory=set)
    stale: set[Key] = field(default_factory=set)
    works: list[Work] = field(default_factory=list)
    chains: list[Chain] = field(default_factory=list)
    ranges: list[Range | None] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    extents: list[tuple[str, bool, Part, Part]] = field(default_factory=list)
    rounds: list[Rounds] = field(default_factory=list)
    weight: int = 0
    cost: int = 0
    bounds: dict[object, Bound] = field(default_factory=dict)

    def has_rows(self) -> bool:
        """Whether there are several loads that are the same for all rows of threads, in CTAs with more than one."""
        addresses = [work.addresses for work in self.works]
        loads = [one for some in addresses for step, one in some.items() if step.kind == "ld"]
        several = 1 if self.rounds else _FEWEST_ROWS
        return any(one.parts[2] != 0 for one in loads) and sum(map(alike, loads)) >= several

    def copy(self) -> Way:
        return Way(
            dict(self.forms), set(self.vectors), set(self.stale), list(self.works), list(self.chains),
            list(self.ranges), list(self.blocks), list(self.extents), list(self.rounds), self.weight, self.cost,
            dict(self.bounds),
        )  # fmt: skip


def _groups(detail: Run) -> dict[Step, list[Step]]:
    """Loads of a run, with all whose addresses differ by multiples of a word alone, by their constants."""
    found: dict[tuple[object, ...], list[Step]] = {}
    for step in detail.steps:
        if step.space and step.kind == "ld":
            key = step.space, step.sources[0][0], step.guard, step.negated, step.imm % 4
            found.setdefault(key, []).append(step)
    large = [sorted(some, key=lambda one: one.imm) for some in found.values() if len(some) >= _FEWEST_TOGETHER]
    return {step: some for some in large for step in some}


class Scalars:
    """Emits the scalar code of a function. runs: of each block; constants: slots that do not change in a launch, with
    their values if those are known; demand: emits that nothing is done unless an i1 holds."""

    def __init__(
        self, code: Emitter, handler: Inline, runs: Sequence[Sequence[Run]], constants: dict[Key, int | None],
        demand: Callable[[str], None],
    ) -> None:  # fmt: skip
        self.code, self.handler, self.runs, self.constants = code, handler, runs, constants
        self.demand = demand
        self.facts = Facts(code, demand, ("%edge.x", "%edge.y", "%edge.z"))
        self.windows: dict[str, Window] = {}
        self.given: dict[Key, Form] = {}
        self.bounds = Bounds(code, handler, self.facts)
        self.steps = 0
        #: It is for what CTAs begin with.
        self.first = False
        #: All is known that could be demanded.
        self.quiet = False
        #: Numbers whose forms are results of single lanes, not sums.
        self.single: set[int] = set()

    def quietly(self) -> Scalars:
        """As this, where all is known that could be demanded."""
        other = Scalars(self.code, self.handler, self.runs, self.constants, lambda condition: None)
        other.windows, other.given, other.quiet = self.windows, self.given, True
        return other

    def window(self, space: str) -> Window:
        """Where a state space is, found at the start of the function."""
        if space not in self.windows:
            with First(self.code):
                self.windows[space] = window(self.handler, space, cta="%cta")
        return self.windows[space]

    def warps(self, held: Range) -> str:
        """i32: the warps of a flat CTA with lanes at places along x."""
        e = self.code
        first, last = (e.value(f"trunc i64 {e.value(f'lshr i64 {end}, 5')} to i32") for end in held)
        above = e.value(f"shl i32 -1, {e.value(f'and i32 {first}, 31')}")
        beyond = e.value(f"sub i32 31, {last}")
        below = e.value(f"lshr i32 -1, {e.value(f'and i32 {beyond}, 31')}")
        empty = self.facts.compare("sgt", held.first, held.last)
        return e.value(f"select i1 {empty}, i32 0, i32 {e.value(f'and i32 {above}, {below}')}")

    def count(self, held: Range) -> str:
        """i64: how many places there are."""
        count = self.facts.add(self.facts.sub(held.last, held.first), 1)
        return self.facts.most(count, 0)

    def read(self, way: Way, key: Key) -> Form | None:
        """The form of a slot, None if its content is a vector."""
        if key in self.constants:
            return self.constant(key)
        if key in way.forms:
            return way.forms[key]
        if key not in way.vectors and any(overlap(key, one) for one in (*way.forms, *way.vectors, *way.stale)):
            raise UnknownError
        return None

    def constant(self, key: Key) -> Form | None:
        """The form of what does not change in a launch."""
        slot, storage = key
        if storage not in (*_BITS, "pred"):
            return None
        if key not in self.given:
            value = self.constants[key]
            if storage == "pred" and value is not None:
                flag = "true" if value & 1 else "false"
                self.given[key] = Pred(flag, self.facts.inverse(flag), same=True)
            elif value is not None:
                bits = _BITS[storage]
                self.given[key] = Linear(bits, (self.facts.wrapped(value, bits), 0, 0, 0))
            else:
                kind = "i32" if storage == "pred" else ELEMENT[storage]
                with First(self.code):
                    place = self.code.value(f"getelementptr i8, ptr %warps, i64 {WARP.size + slot}")
                    part = self.code.value(f"load {kind}, ptr {place}")
                    if storage == "pred":
                        flag = self.code.value(f"icmp ne i32 {part}, 0")
                        self.given[key] = Pred(flag, self.facts.inverse(flag), same=True)
                    else:
                        self.given[key] = Linear(_BITS[storage], (part, 0, 0, 0))
        return self.given[key]

    def block(self, number: int, way: Way, works: list[Work], chain: Chain | None) -> dict[int, Form]:
        """What all threads have in common in a block; forms of the numbers of its last run."""
        forms: dict[int, Form] = {}
        for detail in self.runs[number]:
            forms = {}
            for operand, slot, storage in detail.read:
                form = self.read(way, (slot, storage))
                if form is not None:
                    forms[operand] = form
            addresses = self.run(detail, forms, way, chain)
            works.append(Work(detail, forms, addresses))
            for operand, slot, storage in detail.kept:
                self.keep(way, (slot, storage), forms.get(operand))
        return forms

    def run(
        self, detail: Run, forms: dict[int, Form], way: Way, chain: Chain | None,
        changing: Collection[int] | None = None,
    ) -> dict[Step, Address]:  # fmt: skip
        """Find the forms of what a run makes, and where its accesses are. changing: of a run that is made in several
        rounds, guards that say nothing of the lanes that make an access, since it is made in other rounds, too."""
        addresses: dict[Step, Address] = {}
        bounded, groups = isinstance(detail, BoundedRun), _groups(detail) if changing is None and not self.quiet else {}
        for step in detail.steps:
            if step.kind in COUNTS:
                raise UnknownError
            if step.space:
                group = groups.get(step)
                if group and addresses.keys().isdisjoint(group):
                    self._within(group, forms, way, chain, bounded=bounded)
                addresses[step] = self._address(
                    step, forms, way, chain, bounded=bounded,
                    all_lanes=changing is not None and step.guard in changing, turning=changing is not None,
                    known=bool(group),
                )  # fmt: skip
            elif step.guard < 0 and len(step.targets) == 1 and step.targets[0][0] >= 0:
                made = self._made(step, forms)
                if made is not None:
                    forms[step.targets[0][0]] = made
        self.steps += len(detail.steps)
        if self.steps > MOST_STEPS:
            raise UnknownError
        return addresses

    def keep(self, way: Way, key: Key, form: Form | None) -> None:
        """Note what a slot has from here on, None for a vector."""
        for other in [one for one in (*way.forms, *way.vectors) if one != key and overlap(key, one)]:
            way.forms.pop(other, None)
            way.vectors.discard(other)
            way.stale.add(other)
        way.vectors.discard(key)
        way.stale.discard(key)
        if form is None:
            way.forms.pop(key, None)
            way.vectors.add(key)
        else:
            way.forms[key] = form

    def _made(self, step: Step, forms: dict[int, Form]) -> Form | None:
        """The form of what a step makes."""
        storage, t = step.targets[0][1:]
        if storage not in (*_BITS, "pred") or (storage != "pred" and bits_of(t) != _BITS[storage]):
            return None
        if step.kind == "sreg":
            assert isinstance(step.detail, SpecialRegister)
            name = step.detail.name
            if storage != "b32":
                return None
            if name in _AXES:
                parts = [0, 0, 0, 0]
                parts[_AXES[name]] = 1
                return Linear(32, (parts[0], parts[1], parts[2], parts[3]))
            if name in _OF_LAUNCH:
                return Linear(32, (self._of_launch(_OF_LAUNCH[name]), 0, 0, 0))
            return Linear(32, (_OF_CTA[name], 0, 0, 0)) if name in _OF_CTA else None
        sources: list[Form | None] = []
        for number, _, kind in step.sources:
            if number < 0:
                sources.append(Linear(bits_of(kind), (0, 0, 0, 0)) if bits_of(kind) in _BITS.values() else None)
                continue
            form = forms.get(number)
            fits = isinstance(form, Pred) or (form is not None and bits_of(kind) == form.bits)
            sources.append(form if fits else None)
        alike = all(form is not None and form.same for form in sources)
        if not (alike and step.text.startswith("setp")):
            made = self.facts.of_step(step, sources)
            if made is not None and (isinstance(made, Pred) or made.bits == _BITS.get(storage)):
                return made
        if alike and step.kind in LANEWISE and not run.is_loose(step):
            self.single.add(step.targets[0][0])
            return self._once(step, forms)
        return None

    def _of_launch(self, name: str) -> str:
        with First(self.code):
            return self.code.field(name)

    def _once(self, step: Step, forms: dict[int, Form]) -> Form:
        """What a step makes of contents that are the same everywhere: in lane 0."""
        e, h = self.code, self.handler
        (_, storage, t), contents = step.targets[0], Lanes(h, forms, {}, {}, {})
        value = run.outputs_of(h, step, contents)[0]
        made = h.algebra.widen(value, t, storage)
        if storage == "pred":
            flag = e.value(f"extractelement <{LANES} x i1> {made}, i32 0")
            return Pred(flag, self.facts.inverse(flag), same=True)
        element = ELEMENT[storage]
        part = e.value(f"extractelement <{LANES} x {element}> {made}, i32 0")
        return Linear(_BITS[storage], (part, 0, 0, 0))

    def _place(
        self, step: Step, forms: dict[int, Form], chain: Chain | None, *, all_lanes: bool
    ) -> tuple[Linear, Range | None, str]:
        """What the address of an access is made of, but for the constant; the places along x of the lanes that make it,
        None for all; i1: nobody makes it. all_lanes: it is made by all lanes, whatever its guard says."""
        f, number = self.facts, step.sources[0][0]
        form = forms.get(number) if number >= 0 else Linear(64, (0, 0, 0, 0))
        if not isinstance(form, Linear) or wide.width_of(step) > 1 or form.parts[1] not in (0, 4):
            raise UnknownError
        if form.bits == 32:
            form = f.exact(form, "u32")
        else:
            f.small(Linear(64, (0, *form.parts[1:])))
        guard = forms.get(step.guard) if not all_lanes else None
        held = chain.held if chain is not None else None
        nobody = "false"
        if isinstance(guard, Pred):
            guard = f.negation(guard) if step.negated else guard
            held, nobody = f.common(held, f.where(guard, negated=False)), guard.nobody
        if held is not None:
            nobody = f.either(nobody, f.compare("sgt", held.first, held.last))
        return form, held, nobody

    def _offset(self, form: Linear, step: Step) -> Part:
        """Where a thread at place 0 makes an access, from the start of the space on."""
        space, at = self.window(step.space), self.facts.add(form.parts[0], step.imm)
        return self.facts.sub(at, space.base) if space.base != "0" else at

    def _within(
        self, steps: Sequence[Step], forms: dict[int, Form], way: Way, chain: Chain | None, *, bounded: bool
    ) -> None:
        """Demand that accesses are in bounds whose addresses differ in their constants; bounded: where observers have
        nothing to say of them."""
        f, first, last = self.facts, steps[0], steps[-1]
        form, held, nobody = self._place(first, forms, chain, all_lanes=False)
        ends = [self._offset(form, one) for one in (first, last)]
        low = f.extremes(Linear(64, (ends[0], *form.parts[1:])), held)[0]
        high = f.extremes(Linear(64, (ends[1], *form.parts[1:])), held)[1]
        space, made_of = self.window(first.space), self._made_of(first, forms)
        if bounded:
            places = {one: self._extremes(one, form, held) for one in steps}
            inside = self.bounds.together(places, made_of, space, (low, high), way.bounds)
        else:
            inside = f.both(f.compare("sge", low, 0), f.compare("sle", high, f.sub(space.size, 4)))
        for end in ends:
            inside = f.both(inside, f.compare("ult", f.add(end, 1 << 60), 1 << 61))
        self.demand(f.either(nobody, inside))
        self._aligned([f.add(form.parts[0], first.imm), *form.parts[2:]])

    def _extremes(self, step: Step, form: Linear, held: Range | None) -> tuple[Part, Part]:
        return self.facts.extremes(Linear(64, (self._offset(form, step), *form.parts[1:])), held)

    @staticmethod
    def _made_of(step: Step, forms: dict[int, Form]) -> Hashable:
        """What an address is made of, but for the constant."""
        form = forms.get(step.sources[0][0])
        return step.space, step.kind == "st", form.parts if isinstance(form, Linear) else (0, 0, 0, 0)

    def _address(
        self, step: Step, forms: dict[int, Form], way: Way, chain: Chain | None, *, bounded: bool,
        all_lanes: bool, turning: bool, known: bool,
    ) -> Address:  # fmt: skip
        """Where an access is, which is in bounds; bounded: where observers have nothing to say of it; all_lanes: for
        all lanes, whatever its guard says; turning: it is one of several rounds; known: that has been demanded."""
        f, store = self.facts, step.kind == "st"
        form, held, nobody = self._place(step, forms, chain, all_lanes=all_lanes)
        space, offset = self.window(step.space), self._offset(form, step)
        low, high = self._extremes(step, form, held)
        flags, inside = "", "true"
        if known:
            pass
        elif bounded and not self.quiet:
            made_of = self._made_of(step, forms)
            inside, bound = self.bounds.inside(step, made_of, space, (low, high), way.bounds, turning=turning)
            if store:
                kept = f.compare("ne", bound.flags, 0)
                flags = self.code.value(f"select i1 {kept}, i64 {f.add(bound.flags, offset)}, i64 0")
        else:
            inside = f.both(f.compare("sge", low, 0), f.compare("sle", high, f.sub(space.size, 4)))
        if not known:
            near = f.compare("ult", f.add(offset, 1 << 60), 1 << 61)
            self.demand(f.either(nobody, f.both(inside, near)))
            self._aligned([f.add(form.parts[0], step.imm), *form.parts[2:]])
        if store:
            way.ranges.append(held)
        way.extents.append((step.space, store, low, high))
        host = f.add(space.host, offset)
        ahead = ""
        if self.first and step.space == "global" and form.parts[1:] == (4, 0, 0):  # CTAs follow each other, mostly
            ahead = str(f.mul(f.add(self.facts.edges[0], 1), 4))
        return Address(str(host), form.parts, chain is not None or step.guard >= 0, ahead, flags)

    def _aligned(self, parts: Sequence[Part]) -> None:
        """Demand that numbers are multiples of a word."""
        bits: Part = 0
        for part in parts:
            if isinstance(part, int):
                if part % 4:
                    raise UnknownError
            else:
                bits = part if bits == 0 else self.code.value(f"or i64 {bits}, {part}")
        if bits != 0:
            self.demand(self.facts.compare("eq", self.code.value(f"and i64 {bits}, 3"), 0))
