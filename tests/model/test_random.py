"""Random litmus tests: the search against an enumeration of everything, and against the simulator."""

import random
from itertools import product

import pytest

from ptxtools.model import MODELS, executions, interleavings
from ptxtools.model.axioms import model
from ptxtools.model.executions import run
from ptxtools.model.search import Search
from tests.model.drawn import KINDS, Drawn
from tests.model.simulated import Kernel
from tests.model.suite import ASYNCHRONOUS, read
from tests.rows import rows

SCOPES = ("cta", "gpu", "sys")
PLACES = ("cta 0,gpu 0", "cta 0,gpu 0", "cta 1,gpu 0", "cta 0,gpu 1")


def random_test(generator, threads, operations):
    """Accesses of x and y and fences, of random orders and scopes, by threads at random places."""
    columns, registers, value = [], [], 0
    for thread in range(threads):
        column = []
        for _ in range(operations):
            scope, place = generator.choice(SCOPES), generator.choice("xy")
            kind = generator.choice(("ld", "ld", "ld", "st", "st", "st", "fence", "atom", "copy"))
            value += 1
            register = f"r{value}"
            if kind == "ld":
                order = generator.choice(("weak", f"relaxed.{scope}", f"acquire.{scope}"))
                column.append(f"ld.{order} {register}, {place}")
            elif kind in ("st", "copy"):
                order = generator.choice(("weak", f"relaxed.{scope}", f"release.{scope}"))
                earlier = [name for owner, name in registers if owner == thread]
                source = generator.choice(earlier) if kind == "copy" and earlier else str(value)
                column.append(f"st.{order} {place}, {source}")
            elif kind == "fence":
                column.append(f"fence.{generator.choice(('sc', 'acq_rel'))}.{scope}")
            else:
                order = generator.choice(("relaxed", "acquire", "release", "acq_rel"))
                column.append(f"atom.{order}.{scope}.{generator.choice(('add', 'exch'))} {register}, {place}, {value}")
            if kind in ("ld", "atom"):
                registers.append((thread, register))
        columns.append(column)
    head = " | ".join(f"P{thread}@{generator.choice(PLACES)}" for thread in range(threads))
    table = "".join(" | ".join(row) + " ;\n" for row in zip(*columns, strict=True))
    return f"PTX random\n{{ x=0; y=0; }}\n{head} ;\n{table}"


def texts(seed, count, threads, operations):
    generator = random.Random(seed)
    return [random_test(generator, threads, operations) for _ in range(count)]


def everything(text, version, monkeypatch):
    """(executions, states), by looking at the axioms only when an execution is complete."""
    with monkeypatch.context() as patch:
        patch.setattr(Search, "_allowed", lambda search: True)
        patch.setattr(Search, "foresight", False)
        complete = Search.final_states

        def allowed_ones(search):
            if all(axiom.allows(search.x) for axiom in model(version).axioms):
                yield from complete(search)

        patch.setattr(Search, "final_states", allowed_ones)
        outcomes = run(read(text), version)
    return outcomes.executions, outcomes.states


@rows("text", texts(1, 40, 2, 3), ids=[f"two-{at}" for at in range(40)], share=3)
def test_two_threads(text, monkeypatch):
    for version in MODELS:
        outcomes = run(read(text), version)
        assert (outcomes.executions, outcomes.states) == everything(text, version, monkeypatch), text


@rows("text", texts(2, 20, 3, 2), ids=[f"three-{at}" for at in range(20)], share=5)
def test_three_threads(text, monkeypatch):
    for version in MODELS:
        outcomes = run(read(text), version)
        assert (outcomes.executions, outcomes.states) == everything(text, version, monkeypatch), text


@rows("text", texts(3, 25, 3, 3), ids=[f"simulated-{at}" for at in range(25)], share=6)
def test_the_simulator_does_what_is_allowed(text):
    outcomes, kernel = run(read(text)), Kernel(read(text))
    for seed in range(3):
        assert kernel.outcome(seed, outcomes.names) in outcomes.states, text


@rows(("kind", "seed"), [(kind, seed) for kind in KINDS for seed in range(4)], share=16)
def test_every_kind_of_event(kind, seed, monkeypatch):
    text = Drawn(kind, seed, 2, 3, asks=False).text
    outcomes = run(read(text))
    if outcomes.executions <= 100:
        assert (outcomes.executions, outcomes.states) == everything(text, "8.x", monkeypatch), text


@rows(("kind", "seed"), [("atomics", 42), ("cas", 68), ("mixed", 1), ("bulk", 75)])
def test_long_programs_are_decided(kind, seed, monkeypatch):
    """Two threads of eight instructions each, within a tenth of the checks that a search may take."""
    monkeypatch.setattr(executions, "MOST_CHECKS", 2_000)
    outcomes = run(read(Drawn(kind, seed).text))
    assert outcomes.incomplete and outcomes.conclusive


def test_later_models_allow_less_where_program_order_counts():
    """7.5 has more causality than 6.0 for tests with one proxy: each state it allows, 6.0 allows."""
    for text in texts(4, 40, 2, 3):
        old, new = run(read(text), "6.0"), run(read(text), "7.5")
        assert set(new.states) <= set(old.states), text
        assert run(read(text), "8.x").states == new.states


def test_an_unknown_model_is_an_error():
    with pytest.raises(ValueError, match="unknown memory model"):
        run(read(texts(5, 1, 2, 2)[0]), "7.0")


def test_counting_ends(monkeypatch):
    """What is not decided by then is looked for; what that does not find in time is said to be undecided."""
    monkeypatch.setattr(interleavings, "MOST_PREFIXES", 0)
    threads = " | ".join(f"P{n}@cta {n},gpu 0" for n in range(3))
    adds = " | ".join(["atom.relaxed.gpu.add r0, x, 1"] * 3)
    text = f"PTX t\n{{ x=0; }}\n{threads} ;\n{adds} ;\n"
    outcomes = run(read(text + "~exists (x == 2)"), most=4)
    assert outcomes.incomplete and outcomes.conclusive and outcomes.holds and outcomes.executions == 4
    assert run(read(text + "exists (x == 3)"), most=4).conclusive
    assert not run(read(text + "~exists (x == 2)"), most=6).incomplete
    monkeypatch.setattr(executions, "MOST_CHECKS", 20)
    assert not run(read(text + "~exists (x == 2)"), most=4).conclusive


@rows("text", texts(4, 24, 2, 4), ids=[f"decided-{at}" for at in range(24)], share=8)
def test_verdicts_without_counting(text, monkeypatch):
    """For conditions on the first registers and the first location, of values that come together and of others."""
    monkeypatch.setattr(interleavings, "MOST_PREFIXES", 0)
    for version in MODELS:
        counted = run(read(text), version)
        names = [*[name for name in counted.names if ":" in name][:1], "x"]
        places = [counted.names.index(name) for name in names]
        reached = {tuple(state[place] for place in places) for state in counted.states}
        for values in product(*({state[place] for state in reached} for place in range(len(places)))):
            condition = " /\\ ".join(f"{name} == {value}" for name, value in zip(names, values, strict=True))
            for quantifier, holds in (("exists", values in reached), ("forall", {values} == reached)):
                found = run(read(f"{text}{quantifier} ({condition or 'true'})"), version, most=0)
                assert found.conclusive and found.holds == holds, (version, quantifier, condition)


@rows("path", ASYNCHRONOUS, ids=lambda path: path.stem, share=8)
def test_asynchronous_operations(path, monkeypatch):
    """They are in no program order, though of a thread: what the search spares them is what changes nothing."""
    text = path.read_text("utf-8")
    outcomes = run(read(text))
    assert (outcomes.executions, outcomes.states) == everything(text, "8.x", monkeypatch)


ONE_LOCATION = """PTX t
{{ x=0; }}
P0@cta 0,gpu 1 | P1@cta 1,gpu 0 ;
{} x, 1 | {} x, 9 ;
atom.relaxed.gpu.add r2, x, 2 | atom.acq_rel.gpu.add r10, x, 10 ;
atom.acq_rel.gpu.cas r3, x, 2, 3 | atom.relaxed.gpu.add r11, x, 11 ;
st.weak x, 4 | st.weak x, 12 ;
st.weak x, 5 | st.weak x, 13 ;
atom.release.gpu.add r6, x, 6 | atom.acq_rel.gpu.cas r14, x, 0, 14 ;
atom.relaxed.gpu.cas r7, x, 0, 7 | st.weak x, 15 ;
atom.relaxed.gpu.cas r8, x, 6, 8 | st.weak x, 16 ;
"""


@rows(("accesses", "condition", "allowed"), [
    (("st.weak", "st.weak"), "P1:r10 == 5 /\\ x == 13", False),  # thread 1 itself writes x later
    (("red.gpu.add", "red.gpu.add"), "P0:r6 == 5 /\\ x == 16", True),
    (("red.gpu.add", "red.gpu.add"), "P0:r6 == 5 /\\ P1:r10 == 7", False),  # 7 is no sum of what may precede
])  # fmt: skip
def test_many_atomic_operations_that_race(monkeypatch, accesses, condition, allowed):
    """Eight accesses by each of two threads, all at one location: decided within a few hundred checks."""
    monkeypatch.setattr(executions, "MOST_CHECKS", 4_000)
    outcomes = run(read(ONE_LOCATION.format(*accesses) + f"exists ({condition})"))
    assert outcomes.incomplete and outcomes.conclusive and outcomes.allowed == allowed


def swaps(seed, rows_):
    """A test whose threads are `cas` in the main, some of two sizes, at one location."""
    generator = random.Random(seed)

    def access(value):
        bits = generator.choice((32, 64)) if seed % 2 else 64
        if generator.random() < 0.3:
            return f"st.relaxed.gpu.b{bits} x, {value}"
        scope, expected = generator.choice(SCOPES), generator.choice((0, 0, 1, 3))
        return f"atom.relaxed.{scope}.cas.b{bits} r{value}, x, {expected}, {value}"

    cells = [access(value) for value in range(1, 2 * rows_ + 1)]
    table = "".join(f"{cells[2 * at]} | {cells[2 * at + 1]} ;\n" for at in range(rows_))
    return f"PTX t\n{{ x=0; }}\nP0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n{table}"


@rows("seed", range(12), share=3)
def test_paths_that_no_value_allows_have_no_executions(seed, monkeypatch):
    for version in MODELS:
        monkeypatch.setattr(executions, "WORTH", 1)
        some = run(read(swaps(seed, 3)), version)
        monkeypatch.setattr(executions, "WORTH", 10**9)
        every = run(read(swaps(seed, 3)), version)
        assert (some.executions, some.states, some.races) == (every.executions, every.states, every.races)


@rows("seed", range(12), share=3)
def test_ways_to_make_a_condition_true(seed, monkeypatch):
    """Conditions that are taken apart are decided as counting decides them."""
    monkeypatch.setattr(interleavings, "MOST_PREFIXES", 0)
    text = swaps(seed, 2)
    counted = run(read(text))
    values = dict(zip(counted.names, sorted(counted.states)[0], strict=True))
    names = list(values)
    parts = [f"{name} == {value}" for name, value in values.items()] + ["x == 77"]
    generator = random.Random(seed)
    for _ in range(6):
        a, b, c = (generator.choice(parts) for _ in range(3))
        for condition in (f"{a} \\/ ~({b} \\/ {c})", f"({a} /\\ {b}) => {c}", f"~({a}) \\/ ({b} /\\ x == 77)"):
            for quantifier in ("exists", "~exists", "forall"):
                whole = run(read(f"{text}locations [{'; '.join(names)}]\n{quantifier} ({condition})"))
                found = run(read(f"{text}{quantifier} ({condition})"), most=0)
                assert found.conclusive and found.holds == whole.holds, (quantifier, condition, text)
