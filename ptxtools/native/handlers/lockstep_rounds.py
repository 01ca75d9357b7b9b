"""Loops of CTAs that run as a whole (`lockstep`): a block that all warps go round in as often, with loads and
arithmetic. Two or four warps go round at once: a sum that each round adds to waits for the one before."""

from __future__ import annotations

from ptxtools.native.code.live_words import Key
from ptxtools.native.code.runs import Step
from ptxtools.native.code.sections import overlap
from ptxtools.program.details import Run
from ptxtools.semantics.algebra import Value
from ptxtools.semantics.floating import canonical

from . import ahead, run
from .linear import Form, Linear, Part, Pred, UnknownError
from .lockstep_lanes import Address, Lanes, Rows, slot_type
from .lockstep_loops import Loops
from .lockstep_ways import Rounds, Scalars, Way, Work
from .patterns import SIDES

#: What a slot may grow by in a round, so that sums of 64 bits do not wrap.
_STEEP = 1 << 40
#: Additions of 32 and of 64 bits.
_ADDS = frozenset({"add.s32", "add.u32", "add.s64", "add.u64"})


def _read(scalars: Scalars, detail: Run, way: Way) -> dict[int, Form]:
    """Forms of what a run reads."""
    forms = {}
    for number, slot, storage in detail.read:
        form = scalars.read(way, (slot, storage))
        if form is not None:
            forms[number] = form
    return forms


def _single(forms: dict[int, Form], number: int) -> Part:
    """A number of 32 bits that all threads have in common."""
    form = forms.get(number)
    if not isinstance(form, Linear) or not form.same or form.bits != 32:
        raise UnknownError
    return form.parts[0]


def times(scalars: Scalars, detail: Run, way: Way) -> Part:
    """How often all warps go round, i64; that is known before."""
    f, e, counter = scalars.facts, scalars.code, ahead.counter_of(detail)
    if counter is None or counter.condition == "ne":
        raise UnknownError
    forms = _read(scalars, detail, way)
    now, growth, limit = (_single(forms, number) for number in (counter.before, counter.growth, counter.limit))
    now, limit = (f.wide(part, signed=counter.signed) for part in (now, limit))
    growth = f.wide(growth, signed=True)
    up = counter.condition in ("lt", "le")
    if isinstance(growth, str) or (growth > 0) != up or growth == 0:
        raise UnknownError
    distance = f.sub(limit, now) if up else f.sub(now, limit)
    if counter.condition in ("lt", "gt"):
        distance = f.sub(distance, 1)
    back = e.value(f"udiv i64 {f.most(distance, 0)}, {abs(growth)}")
    far = f.compare("slt", distance, 0)
    rounds = f.add(e.value(f"select i1 {far}, i64 0, i64 {back}"), 1)
    last = f.add(now, f.mul(rounds, growth))  # the counter does not wrap
    least, most = (-(1 << 31), (1 << 31) - 1) if counter.signed else (0, (1 << 32) - 1)
    scalars.demand(f.both(f.compare("sge", last, least), f.compare("sle", last, most)))
    return rounds


def find(scalars: Scalars, detail: Run, way: Way, counts: Part, weight: int, cost: int) -> None:
    """Find where accesses are in all rounds, and what slots have behind them. weight, cost: of one round."""
    f, again = scalars.facts, detail.again
    assert again is not None
    if any(step.kind == "st" for step in detail.steps):
        raise UnknownError
    forms = _read(scalars, detail, way)
    begun = dict(forms)
    grown, growths = dict[Key, tuple[int, int]](), dict[int, Part]()
    before = {(slot, storage): number for number, slot, storage in detail.read}
    for number, slot, storage in detail.kept:
        key = (slot, storage)
        first = before.get(key)
        form = forms.get(first) if first is not None else None
        terms = _terms(detail, first, number) if first is not None else None
        if first is None or not isinstance(form, Linear) or terms is None:
            continue
        growths[first] = _growth(scalars, forms, terms, form.bits)
        grown[key] = (first, number)
    for _, slot, storage in detail.kept:  # what else goes from round to round is a vector
        key = (slot, storage)
        if key not in grown and key in before:
            if storage not in ("b32", "b64"):
                raise UnknownError
            forms.pop(before[key], None)
        if key in before and any(overlap(key, other) for other in before if other != key):
            raise UnknownError
    first_forms, next_forms, last_forms = dict(forms), dict(forms), dict(forms)
    later = f.sub(counts, 1)
    for number, growth in growths.items():
        last_forms[number] = _advanced(scalars, forms[number], growth, later)
        next_forms[number] = _advanced(scalars.quietly(), forms[number], growth, 1)
    entered = dict(forms)
    changing = _changing(detail, set(growths))
    scalars.single.clear()
    addresses = scalars.run(detail, first_forms, way, None, changing)
    scalars.run(detail, last_forms, way, None, changing)
    _aligned(scalars, addresses, scalars.quietly().run(detail, next_forms, Way({}), None))
    _straight(scalars, detail, (first_forms, next_forms, last_forms), changing, later)
    rounds = Rounds(detail, str(counts), grown, begun, entered, weight, cost)
    way.rounds.append(rounds)
    way.works.append(Work(None, {}, addresses, rounds=rounds))
    for number, slot, storage in detail.kept:
        key = (slot, storage)
        if key in grown:
            form = forms[grown[key][0]]
            assert isinstance(form, Linear)
            total = f.mul(f.narrowed(counts, form.bits), growths[grown[key][0]], form.bits)
            scalars.keep(way, key, Linear(form.bits, (f.add(form.parts[0], total, form.bits), *form.parts[1:])))
        elif number == again[0]:
            every, nobody = ("false", "true") if again[1] else ("true", "false")
            scalars.keep(way, key, Pred(every, nobody, same=True))
        else:
            scalars.keep(way, key, None)


def _changing(detail: Run, numbers: set[int]) -> set[int]:
    """Numbers of a run whose contents may be others in each round; numbers: those that grow from round to round."""
    for step in detail.steps:
        if numbers & {step.guard, *step.before, *(number for number, _, _ in step.sources)}:
            numbers |= {number for number, _, _ in step.targets}
    return numbers


def _straight(
    scalars: Scalars, detail: Run, rounds: tuple[dict[int, Form], dict[int, Form], dict[int, Form]], changing: set[int],
    later: Part,
) -> None:  # fmt: skip
    """Demand that what addresses are made of grows evenly from the first round to the last one, which is so many rounds
    later, and does not wrap in between. rounds: forms in the first round, the next one and the last one."""
    f = scalars.facts
    needed = {step.sources[0][0] for step in detail.steps if step.space}
    for step in reversed(detail.steps):
        if not step.space and needed & {number for number, _, _ in step.targets}:
            needed |= {number for number, _, _ in step.sources}
    for step in detail.steps:
        for number in {number for number, _, _ in step.targets} & needed & changing:
            first, second, last = (forms.get(number) for forms in rounds)
            if not isinstance(first, Linear) or not isinstance(second, Linear) or not isinstance(last, Linear):
                raise UnknownError
            factors = {number for number, _, _ in step.sources[:2]} if step.text.startswith(("mul", "mad")) else set()
            if number in scalars.single or (factors and factors <= changing):
                raise UnknownError
            starts = [
                [part if form.bits == 64 else f.wide(part, signed=True) for part in form.parts]
                for form in (first, second, last)
            ]
            begun, then, end = (parts[0] for parts in starts)
            growth = f.sub(then, begun)
            scalars.demand(f.compare("ult", f.add(growth, _STEEP), 2 * _STEEP))
            scalars.demand(f.compare("eq", f.sub(end, begun), f.mul(later, growth)))
            for parts in zip(*(parts[1:] for parts in starts), strict=True):
                for part in parts[1:]:
                    if part != parts[0]:
                        scalars.demand(f.compare("eq", part, parts[0]))


def _aligned(scalars: Scalars, first: dict[Step, Address], second: dict[Step, Address]) -> None:
    """Demand that addresses which are multiples of a word in the first round are in all rounds."""
    f = scalars.facts
    for step, address in first.items():
        growth = f.sub(second[step].host, address.host)
        scalars.demand(f.compare("eq", scalars.code.value(f"and i64 {growth}, 3"), 0))


def _terms(detail: Run, before: int, after: int) -> list[int] | None:
    """What is added to an operand in a round, numbers that are the same in all rounds; None where it is no such sum."""
    makers = {number: step for step in detail.steps for number, _, _ in step.targets}
    read = {number: (slot, storage) for number, slot, storage in detail.read}
    kept = [(slot, storage) for _, slot, storage in detail.kept]
    terms = list[int]()
    while after != before:
        step = makers.get(after)
        if step is None or step.text not in _ADDS or step.guard >= 0 or step.detail is not None:
            return None
        numbers = [number for number, _, _ in step.sources]
        steady = [number in read and not any(overlap(read[number], key) for key in kept) for number in numbers]
        if steady == [False, True]:
            numbers.reverse()
        elif steady != [True, False]:
            return None
        terms.append(numbers[0])
        after = numbers[1]
    return terms


def _growth(scalars: Scalars, forms: dict[int, Form], terms: list[int], bits: int) -> Part:
    """The sum of numbers that all threads have in common, which is small."""
    f, total = scalars.facts, Linear(bits, (0, 0, 0, 0))
    for number in terms:
        form = forms.get(number)
        if not isinstance(form, Linear) or not form.same or form.bits != bits:
            raise UnknownError
        total = f.total(total, form)
    growth = total.parts[0]
    if bits == 64 and isinstance(growth, str):
        scalars.demand(f.compare("ult", f.add(growth, _STEEP), 2 * _STEEP))
    elif isinstance(growth, int) and abs(growth) >= _STEEP:
        raise UnknownError
    return growth


def _advanced(scalars: Scalars, form: Form, growth: Part, later: Part) -> Linear:
    """A content some rounds later; one of 32 bits does not wrap until then."""
    f = scalars.facts
    assert isinstance(form, Linear)
    if form.bits == 64:
        return Linear(64, (f.add(form.parts[0], f.mul(later, growth)), *form.parts[1:]))
    first = f.wide(form.parts[0], signed=True)
    last = f.add(first, f.mul(later, f.wide(growth, signed=True)))
    scalars.demand(f.both(f.compare("sge", last, -(1 << 31)), f.compare("sle", last, (1 << 31) - 1)))
    return Linear(32, (f.narrowed(last, 32), *form.parts[1:]))


def apart(scalars: Scalars, way: Way) -> None:
    """Demand that no store is to where the rounds load: warps would see those of others too soon or too late."""
    f = scalars.facts
    for space, store, low, high in way.extents:
        for other, stored, least, most in way.extents:
            if stored and not store and other == space:
                behind = f.compare("slt", f.add(high, 3), least)
                scalars.demand(f.either(behind, f.compare("slt", f.add(most, 3), low)))


def body(loops: Loops, scalars: Scalars, way: Way, warps: tuple[int, ...]) -> None:
    """What some warps do together."""
    everyone = range(len(warps))
    values: list[dict[Key, Value]] = [{} for _ in everyone]
    shared: list[dict[tuple[object, ...], str]] = [{} for _ in everyone]

    def single(work: Work, which: int) -> None:
        loops.shared = shared[which]
        with loops.of(warps[which]):
            loops.handler.begin_part()
            loops.work(work, values[which], "")

    at = next(number for number, work in enumerate(way.works) if work.rounds is not None)
    for work in way.works[:at]:
        for which in everyone:
            single(work, which)
    turning = way.works[at]
    assert turning.rounds is not None
    _go_round(loops, scalars, turning, turning.rounds, warps, values, shared)
    for which in everyone:  # stores are in order
        for work in way.works[at + 1 :]:
            single(work, which)


def _go_round(
    loops: Loops, scalars: Scalars, work: Work, rounds: Rounds, warps: tuple[int, ...],
    values: list[dict[Key, Value]], shared: list[dict[tuple[object, ...], str]],
) -> None:  # fmt: skip
    """The rounds of some warps."""
    everyone = range(len(warps))
    e, h, detail = loops.code, loops.handler, rounds.detail
    slots = {number: (slot, storage) for number, slot, storage in detail.read}
    kept = {number: (slot, storage) for number, slot, storage in detail.kept}
    carried = [key for key in slots.values() if key in kept.values() and key not in rounds.grown]
    inits: list[dict[Key, Value]] = []
    for which in everyone:
        loops.shared = shared[which]
        with loops.of(warps[which]):
            contents = Lanes(h, rounds.begun, slots, values[which], loops.shared, narrow=loops.narrow)
            numbers = {key: number for number, key in slots.items()}
            inits.append({key: contents[numbers[key]] for key in carried})
            for address in work.addresses.values():
                for side in SIDES:
                    contents.beyond(address.parts, side)
    start, loop, end, done = (e.label(hint) for hint in ("turns", "turn", "turned", "done"))
    e.jump(start)
    e.begin(start)
    e.jump(loop)
    e.begin(loop)
    left, less = e.name(), e.name()
    e.value(f"phi i64 [{rounds.number}, %{start}], [{less}, %{end}]", left)
    forms = dict(rounds.forms)
    later: list[tuple[int, str, str, Part]] = []  # lines that learn what comes round
    for first, _ in rounds.grown.values():
        form = forms[first]
        assert isinstance(form, Linear)
        part = e.value("")
        later.append((len(e.lines) - 1, part, f"i{form.bits}", form.parts[0]))
        forms[first] = Linear(form.bits, (part, *form.parts[1:]))
    places: list[dict[Key, tuple[int, str]]] = []
    for which in everyone:
        places.append({})
        for key in carried:
            part = e.value("")
            places[which][key] = (len(e.lines) - 1, part)
    quiet = scalars.quietly()
    addresses = quiet.run(detail, forms, Way({}), None)
    made: list[dict[Key, Value]] = []
    loose: set[Key] = set()
    same: dict[Step, Value] = {}
    for which in everyone:
        loops.shared = dict(shared[which])
        with loops.of(warps[which]):
            h.begin_part()
            inside = dict(values[which]) | {key: part for key, (_, part) in places[which].items()}
            contents = Lanes(h, forms, slots, inside, loops.shared, narrow=loops.narrow)
            contents.made = {number: storage for step in detail.steps for number, storage, _ in step.targets}
            contents.find_loose(detail.steps, {key: number for number, key in kept.items() if key in carried})
            loose = {kept[number] for number in contents.loose_numbers & kept.keys()}
            rows = Rows(h, contents, addresses, "", same)
            rows.skipped = {number for number, form in forms.items() if isinstance(form, Linear)}
            for step in detail.steps:
                run.make(h, step, contents, {}, rows)
            made.append(
                {
                    key: contents.word(number) if key[1] == "pred" else _last(contents, number)
                    for number, key in kept.items()
                    if key not in rounds.grown and number != (detail.again or (-1,))[0]
                }
            )
    e.jump(end)
    e.begin(end)
    e.value(f"sub i64 {left}, 1", less)
    e.branch(e.value(f"icmp ne i64 {less}, 0"), loop, done)
    e.begin(done)
    for (line, part, kind, begun), (_, after) in zip(later, rounds.grown.values(), strict=True):
        form = forms[after]
        assert isinstance(form, Linear)
        e.lines[line] = f"  {part} = phi {kind} [{begun}, %{start}], [{form.parts[0]}, %{end}]"
    for which in everyone:
        for key, (line, part) in places[which].items():
            ways = f"[{inits[which][key]}, %{start}], [{made[which][key]}, %{end}]"
            e.lines[line] = f"  {part} = phi {slot_type(key)} {ways}"
        for key, value in made[which].items():
            for other in [one for one in values[which] if overlap(key, one)]:
                del values[which][other]
            values[which][key] = canonical(h.algebra, value) if key in loose else value
        for key in rounds.grown:
            values[which].pop(key, None)


def _last(contents: Lanes, number: int) -> Value:
    """What an operand is at the end of a round, with whatever NaNs if only arithmetic reads it."""
    return contents.loose[number] if number in contents.loose_numbers else contents[number]
