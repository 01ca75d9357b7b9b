"""racecheck against the model: a run is racy exactly when the executions with its outcome have a data race (8.7.1).

Threads access a location as often as they like, with scopes and strengths of all sorts. Stores have values of their
own: racecheck passes by those that change nothing.
"""

import random
import re

import pytest

import ptxtools
from ptxtools.model.executions import run
from tests.model.simulated import Kernel, TranslationError
from tests.model.suite import FOLDER, read
from tests.model.test_random import random_test
from tests.rows import rows


def two_threads(path):
    """Whether a test of a file has two threads, on one GPU."""
    text = path.read_text("utf-8")
    head = next(line for line in text.splitlines() if line.strip().startswith("P0"))
    return head.count("|") == 1 and len(set(re.findall(r"gpu (\d)", head))) < 2


def texts(seed, count):
    """Tests of two and three threads with two and three operations each, on one GPU as a launch is."""
    generator, found = random.Random(seed), []
    while len(found) < count:
        text = random_test(generator, 2 + len(found) % 2, 2 + len(found) // 2 % 2)
        if not re.search(r"st\.\S+ [xy], r", text):  # no copies: they store what is there already
            found.append(text.replace("cta 0,gpu 1", "cta 2,gpu 0"))
    return found


def sized_access(generator, register, value):
    """An access of some bytes of x or y, as a scalar or a vector."""
    scope, place = generator.choice(("cta", "gpu", "sys")), generator.choice("xy")
    kind = generator.choice(("ld", "ld", "ld", "st", "st", "st", "fence", "atom", "atom"))
    if kind == "fence":
        return f"fence.{generator.choice(('sc', 'acq_rel'))}.{scope}"
    size = generator.choice((8, 4) if kind == "atom" else (8, 8, 4, 4, 4, 2, 1))
    parts = 2 if kind != "atom" and size < 8 and generator.random() < 0.3 else 1
    at = f"[{place}+{generator.randrange(8 // (size * parts)) * size * parts}]"
    if kind == "atom":
        order = generator.choice(("relaxed", "acquire", "release", "acq_rel"))
        function = generator.choice(("add", "exch"))
        return f"atom.{order}.{scope}.{function}.u{8 * size} {register}, {at}, {value}"
    orders = ("weak", f"relaxed.{scope}", f"relaxed.{scope}", f"{'acquire' if kind == 'ld' else 'release'}.{scope}")
    opcode = f"{kind}.{generator.choice(orders)}.{'v2.' * (parts == 2)}u{8 * size}"
    operands = [f"{register}_{part}" if kind == "ld" else str(2 * value + part) for part in range(parts)]
    operand = operands[0] if parts == 1 else f"{{{', '.join(operands)}}}"
    return f"{opcode} {operand}, {at}" if kind == "ld" else f"{opcode} {at}, {operand}"


def sized_texts(seed, count):
    """Tests whose accesses of a location differ in size."""
    generator, found = random.Random(seed), []
    for number in range(count):
        threads, operations = 2 + number % 2, 2 + number // 2 % 2
        columns = [[sized_access(generator, f"r{thread}{at}", 1 + 4 * thread + at) for at in range(operations)]
                   for thread in range(threads)]  # fmt: skip
        places = [generator.choice(("cta 0", "cta 0", "cta 1", "cta 2")) for _ in columns]
        head = " | ".join(f"P{thread}@{place},gpu 0" for thread, place in enumerate(places))
        table = "".join(" | ".join(row) + " ;\n" for row in zip(*columns, strict=True))
        found.append(f"PTX sized\n{{ .u64 x=0; .u64 y=0; }}\n{head} ;\n{table}")
    return found


def litmus(*columns):
    """A test of threads of different CTAs, from their operations."""
    head = " | ".join(f"P{at}@cta {at},gpu 0" for at in range(len(columns)))
    table = "".join(" | ".join(row) + " ;\n" for row in zip(*columns, strict=True))
    return f"PTX hidden\n{{ x=0; y=0; }}\n{head} ;\n{table}"


#: An access with a scope that fits, and another one of the same thread that races: the first must not hide the second.
HIDDEN = {
    "store, then store": (("st.relaxed.gpu x, 1", "fence.sc.cta"), ("st.relaxed.gpu x, 2", "st.relaxed.cta x, 3")),
    "store, then read": (("st.relaxed.gpu x, 1", "fence.sc.cta"), ("st.relaxed.gpu x, 2", "ld.relaxed.cta r1, x")),
    "narrow store before": (("st.relaxed.cta x, 1", "st.relaxed.gpu x, 2"), ("ld.relaxed.gpu r1, x", "fence.sc.cta")),
    "narrow read before": (("ld.relaxed.cta r1, x", "ld.relaxed.gpu r2, x"), ("st.relaxed.gpu x, 2", "fence.sc.cta")),
    "all fit": (("st.relaxed.gpu x, 1", "ld.relaxed.gpu r1, x"), ("st.relaxed.gpu x, 2", "st.relaxed.gpu x, 3")),
}


#: Patterns of two threads: what precedes, and what follows, is ordered or not.
PATTERNS = {
    "a narrow fence, then a wide one": (("st.weak x, 1", "st.release.gpu y, 1", "nop", "nop"),
                                        ("ld.relaxed.gpu r0, y", "fence.acq_rel.cta", "fence.acq_rel.gpu",
                                         "ld.weak r1, x")),
    "a narrow store hides another thread's": (("st.release.sys y, 1", "ld.weak r2, x", "nop"),
                                ("st.relaxed.gpu y, 4", "st.relaxed.sys y, 5", "st.weak y, 6")),
    "a relaxed store behind a release": (("st.release.sys x, 1", "st.relaxed.sys x, 2"),
                                         ("ld.relaxed.sys r0, x", "ld.weak r1, x")),
    "a release, a relaxed store, and a fence": (
        ("st.weak y, 1", "st.release.gpu x, 2", "st.relaxed.gpu x, 3", "nop"),
        ("L: ld.relaxed.gpu r0, x", "bne r0, 3, L", "fence.acq_rel.gpu", "ld.weak r1, y"),
    ),
    "two relaxed stores, and an atomic": (("st.relaxed.gpu x, 1", "st.relaxed.gpu x, 2"),
                                          ("atom.relaxed.gpu.add r0, x, 4", "ld.weak r1, x")),
    "two atomics, of which the last is seen": (("atom.relaxed.gpu.add r0, x, 1", "atom.relaxed.sys.add r1, x, 2"),
                                               ("ld.relaxed.gpu r2, x", "st.weak x, 4")),
    "a compare-and-swap that fails": (("st.relaxed.gpu x, 5", "ld.weak r1, x", "nop", "nop"),
                                      ("L: ld.relaxed.gpu r0, x", "bne r0, 5, L", "atom.relaxed.gpu.cas r2, x, 7, 3",
                                       "nop")),
    "a weak read before two wider ones": (("ld.weak r0, x", "ld.relaxed.gpu r1, x", "ld.relaxed.sys r2, x"),
                                          ("st.relaxed.gpu x, 1", "nop", "nop")),
    "a weak store before two wider ones": (("st.weak x, 1", "st.relaxed.cta x, 2", "st.relaxed.gpu x, 3"),
                                           ("st.relaxed.gpu x, 4", "nop", "nop")),
    "an atomic, and the narrow read before a release": (("ld.relaxed.cta r0, x", "atom.acq_rel.gpu.add r1, x, 1"),
                                                        ("atom.relaxed.gpu.add r2, x, 2", "nop")),
}  # fmt: skip


#: Strong accesses fit together if they are of the same bytes (8.7). Each with whether it races.
SIZES = {
    "one size": (("st.relaxed.gpu.u32 [x], 1",), ("ld.relaxed.gpu.u32 r0, [x]",), False),
    "half of it": (("st.relaxed.gpu.u64 [x], 1",), ("ld.relaxed.gpu.u32 r0, [x+4]",), True),
    "elements of a vector": (("st.relaxed.gpu.v2.u32 [x], {1, 2}",), ("ld.relaxed.gpu.u32 r0, [x+4]",), False),
    "a vector beside a scalar": (("st.relaxed.gpu.v2.u32 [x], {1, 2}",), ("ld.relaxed.gpu.u64 r0, [x]",), True),
    "bytes of one word": (("st.relaxed.gpu.u8 [x], 1",), ("st.relaxed.gpu.u8 [x+1], 2",), False),
    "a byte of a word": (("st.relaxed.gpu.u8 [x+3], 1",), ("st.relaxed.gpu.u32 [x], 2",), True),
    "atomics": (("atom.relaxed.gpu.add.u32 r0, [x], 1",), ("atom.relaxed.gpu.add.u64 r0, [x], 1",), True),
    "an atomic, and half of it": (("atom.relaxed.gpu.add.u64 r0, [x], 1",), ("ld.relaxed.gpu.u32 r0, [x]",), True),
    "a wide read before a narrow one": (("ld.relaxed.gpu.u64 r0, [x]", "ld.relaxed.gpu.u32 r1, [x]"),
                                        ("st.relaxed.gpu.u32 [x], 1", "nop"), True),
    "a wide store before a narrow one": (("st.relaxed.gpu.u64 [x], 1", "st.relaxed.gpu.u32 [x], 2"),
                                         ("ld.relaxed.gpu.u32 r0, [x]", "nop"), True),
    "a flag of another size": (("st.weak.u32 [y], 1", "st.release.gpu.u32 [x], 1"),
                               ("ld.acquire.gpu.u64 r0, [x]", "ld.weak.u32 r1, [y]"), True),
    "a flag beside another one": (("st.weak.u32 [y], 1", "st.release.gpu.u8 [x], 1"),
                                  ("ld.acquire.gpu.u8 r0, [x+1]", "ld.weak.u32 r1, [y]"), True),
}  # fmt: skip


def compare(text):
    """Whether the model finds a race in what one run showed, and what racecheck reports; None where that is open, as
    where the model has not gone through all executions."""
    outcomes = run(read(text))
    if outcomes.incomplete:
        return None
    (state,), result = Kernel(read(text)).run(1, outcomes.names, 1, engine="reference", checks="racecheck")
    racing, executions = outcomes.racing.get(state, 0), outcomes.states[state]
    return (bool(racing), result.reports) if racing in (0, executions) else None


@rows("text", texts(5, 96), ids=[f"races-{at}" for at in range(96)], share=6)
def test_races_are_those_of_the_model(text):
    found = compare(text)
    if found is not None:  # else the outcome does not tell
        racing, reports = found
        assert bool(reports) == racing, (text, reports)


@rows("text", sized_texts(6, 144), ids=[f"sized-{at}" for at in range(144)], share=6)
def test_sizes_in_random_programs(text):
    """No report where the model has no race, whatever the sizes; and where it has one, a report."""
    found = compare(text)
    if found is not None:
        racing, reports = found
        assert bool(reports) == racing, (text, reports)


@rows("name", list(SIZES))
def test_sizes(name):
    first, second, wanted = SIZES[name]
    racing, reports = compare(litmus(first, second).replace("{ x=0; y=0; }", "{ .u64 x=0; .u64 y=0; }"))
    assert bool(reports) == racing == wanted, reports


def test_a_wide_atomic_hides_behind_a_narrow_store():
    """One thread changes eight bytes, a second one has acquired that and stores four of them, a third reads four: it is
    ordered with neither, and only its size fits the second."""
    text = litmus(
        ("atom.release.gpu.add.u64 r0, [x], 1", "nop", "nop"),
        ("L: ld.acquire.gpu.u64 r0, [x]", "beq r0, 0, L", "st.relaxed.gpu.u32 [x], 5"),
        ("ld.relaxed.gpu.u32 r0, [x]", "nop", "nop"),
    ).replace("{ x=0; y=0; }", "{ .u64 x=0; .u64 y=0; }")
    outcomes = run(read(text))
    assert outcomes.races
    _, result = Kernel(read(text)).run(1, outcomes.names, 1, engine="reference", checks="racecheck")
    (found,) = result.reports
    assert found.kind == "size" and "accesses of 4 and of 8 bytes" in found.message, found


@rows("name", list(PATTERNS))
def test_patterns(name):
    text = litmus(*PATTERNS[name])
    racing, reports = compare(text)
    assert bool(reports) == racing, (text, reports)


def test_an_atomic_of_the_same_cta_hides_no_narrow_store():
    """8.7: the scope of the store does not reach the reader, though that of what has replaced it does."""
    text = litmus(("atom.relaxed.sys.exch r1, y, 1", "st.relaxed.cta y, 3", "nop"),
                  ("atom.relaxed.gpu.exch r4, y, 4", "st.relaxed.sys y, 5", "st.relaxed.gpu y, 6"),
                  ("ld.relaxed.gpu r8, y", "nop", "nop")).replace("P1@cta 1", "P1@cta 0")  # fmt: skip
    outcomes = run(read(text))
    seen = 0
    for seed in range(6):
        (state,), result = Kernel(read(text)).run(seed, outcomes.names, 1, engine="reference", checks="racecheck")
        assert bool(outcomes.racing[state]) and result.reports, (seed, state)
        seen += any("st.relaxed.cta" in one.others[0].text or "st.relaxed.cta" in one.text for one in result.reports)
    assert seen


@pytest.mark.share(4)
@pytest.mark.parametrize("path", [path for path in sorted(FOLDER.glob("*.litmus")) if two_threads(path)],
                         ids=lambda path: path.stem)  # fmt: skip
def test_races_of_two_threads(path):
    """All tests of two threads of one GPU that a kernel can be made of."""
    try:
        found = compare(path.read_text("utf-8"))
    except (TranslationError, ptxtools.Trap):  # a deadlock has no outcome
        return
    if found is not None:
        racing, reports = found
        assert bool(reports) == racing, reports


@rows("name", list(HIDDEN))
def test_an_access_hides_no_race_of_another(name):
    racing, reports = compare(litmus(*HIDDEN[name]))
    assert racing == bool(reports) == (name != "all fit"), reports


def test_both_kinds_are_among_them():
    """Of the tests that `make test` takes, too."""
    racing = [bool(run(read(text)).races) for text in texts(5, 96)[::6]]
    assert 3 < sum(racing) < 15


@rows("name", ["relaxed", "relaxed-fence", "relaxed-fence-acquire", "relaxed-fence-cta", "relaxed-both"])
def test_fences_before_relaxed_arrivals(name):
    """A fence that releases, and reaches the other CTA, orders what precedes it; an acquire fence does not."""
    racing, reports = compare((FOLDER / f"MP+barrier.cluster-{name}.litmus").read_text("utf-8"))
    assert bool(reports) == racing == (name not in ("relaxed-fence", "relaxed-both")), reports


@rows("first, second, racing", [
    ("release", "acquire", False), ("acquire", "acquire", True), ("release", "release", True), ("acq_rel", "sc", False),
])  # fmt: skip
def test_one_sided_fences(first, second, racing):
    """8.4, 8.8: a fence releases in front of the flag's store, and acquires behind the load that saw it."""
    text = litmus(("st.weak x, 1", f"fence.{first}.gpu", "st.relaxed.gpu y, 1", "nop", "nop"),
                  ("L: ld.relaxed.gpu r0, y", "beq r0, 0, L", f"fence.{second}.gpu", "ld.weak r1, x",
                   "nop"))  # fmt: skip
    outcomes = run(read(text + "forall (P1:r0 == 1)\n"))
    _, result = Kernel(read(text)).run(1, outcomes.names, 1, engine="reference", checks="racecheck")
    assert bool(result.reports) == racing, result.reports
    assert bool(outcomes.races) == racing


#: Three threads, in the order of the seed: a write that another one, of another thread, stands before; and writes that
#: are ordered through what an atomic has seen, or through a release that a fence of another scope stands before.
CHAINS = {
    "a store of another CTA, behind an atomic": (101841, True, """P0@cta 0,gpu 0 | P1@cta 1,gpu 0 | P2@cta 1,gpu 0 ;
st.relaxed.gpu x, 1 | ld.relaxed.cta r3, y | ld.acquire.gpu r5, y ;
st.relaxed.sys y, 2 | ld.relaxed.gpu r4, x | atom.acquire.cta.exch r6, y, 6 ;"""),
    "an atomic behind two others": (104973, True, """P0@cta 0,gpu 0 | P1@cta 0,gpu 0 | P2@cta 0,gpu 0 ;
atom.release.cta.add r1, x, 1 | atom.relaxed.sys.add r3, x, 3 | st.release.gpu x, 5 ;
atom.relaxed.cta.add r2, y, 2 | ld.weak r4, x | ld.acquire.gpu r6, y ;"""),
    "a release before a store behind a fence": (707803, False, """P0@cta 0,gpu 0 | P1@cta 0,gpu 0 | P2@cta 0,gpu 0 ;
ld.weak r1, x | ld.relaxed.cta r2, x | atom.acquire.sys.or r4, y, 4 ;
st.release.cta x, 257 | fence.acq_rel.gpu | st.weak y, 1542 ;
| atom.release.sys.max r3, y, 2 | red.relaxed.gpu.max x, 1285 ;
| st.relaxed.cta y, 771 | ;"""),
    "a store behind that of another thread": (4, True, """P0@cta 0,gpu 0 | P1@cta 0,gpu 0 | P2@cta 0,gpu 0 ;
ld.relaxed.gpu r1, x | st.release.sys x, 3 | ld.acquire.sys r3, y ;
ld.weak r2, x | st.release.cta y, 4 | st.relaxed.cta x, 7 ;"""),
    "a store that two atomics have passed on": (33, False, """P0@cta 1,gpu 0 | P1@cta 1,gpu 0 | P2@cta 0,gpu 0 ;
atom.relaxed.sys.add r1, y, 1 | atom.relaxed.gpu.add r2, y, 2 | st.relaxed.gpu y, 6 ;
| st.relaxed.cta y, 8 | ;"""),
}  # fmt: skip


@rows("name", list(CHAINS))
def test_what_stands_before_other_writes(name):
    seed, racing, table = CHAINS[name]
    text = f"PTX chain\n{{ x=0; y=0; }}\n{table}\n"
    allowed = run(read(text))
    (state,), result = Kernel(read(text)).run(seed, allowed.names, 1, engine="reference", checks="racecheck")
    assert bool(allowed.racing.get(state, 0)) == bool(result.reports) == racing, result.reports


#: Loops that see one write after another, or one through an atomic, and then access the place weakly (8.9.2, 8.9.4).
POLLS = {
    "two threads' stores": (("st.relaxed.gpu x, 1",),
                            ("L: ld.relaxed.gpu r0, x", "beq r0, 0, L", "st.relaxed.gpu z, 1",
                             "M: ld.relaxed.gpu r1, x", "beq r1, 1, M", "ld.weak r2, x"),
                            ("N: ld.relaxed.gpu r3, z", "beq r3, 0, N", "st.relaxed.gpu x, 2")),
    "one thread's stores": (("st.relaxed.gpu x, 1", "N: ld.relaxed.gpu r3, z", "beq r3, 0, N", "st.relaxed.gpu x, 2"),
                            ("L: ld.relaxed.gpu r0, x", "beq r0, 0, L", "st.relaxed.gpu z, 1",
                             "M: ld.relaxed.gpu r1, x", "beq r1, 1, M", "ld.weak r2, x")),
    "a third thread is told": (("st.relaxed.gpu x, 1",),
                               ("L: ld.relaxed.gpu r0, x", "beq r0, 0, L", "st.relaxed.gpu z, 1",
                                "M: ld.relaxed.gpu r1, x", "beq r1, 1, M", "st.release.gpu y, 1"),
                               ("N: ld.relaxed.gpu r3, z", "beq r3, 0, N", "st.relaxed.gpu x, 2"),
                               ("K: ld.acquire.gpu r4, y", "beq r4, 0, K", "ld.weak r5, x")),
    "a narrow store, through an atomic": (("M: ld.relaxed.gpu r5, x", "bne r5, 11, M", "ld.weak r2, x"),
                                          ("st.relaxed.cta x, 3", "st.release.gpu y, 4"),
                                          ("K: ld.acquire.gpu r3, y", "beq r3, 0, K", "atom.relaxed.gpu.add r7, x, 8")),
    "a narrow store, through two": (("M: ld.acquire.gpu r5, z", "bne r5, 1, M", "ld.weak r2, x"),
                                    ("st.relaxed.cta x, 3", "st.release.gpu y, 4"),
                                    ("K: ld.acquire.gpu r3, y", "beq r3, 0, K", "atom.relaxed.gpu.add r7, x, 8"),
                                    ("N: ld.relaxed.gpu r8, x", "bne r8, 11, N", "atom.relaxed.gpu.add r7, x, 16",
                                     "st.release.gpu z, 1")),
}  # fmt: skip


@rows("name", list(POLLS))
def test_what_loops_have_seen(name):
    columns, near = POLLS[name], "narrow" in name
    longest = max(map(len, columns))
    text = litmus(*((*column, *["nop"] * (longest - len(column))) for column in columns))
    text = text.replace("y=0;", "y=0; z=0;")
    text = re.sub(r"cta \d", "cta 0", text) if near else text
    allowed = run(read(text))
    for seed in range(4):
        (state,), result = Kernel(read(text)).run(seed, allowed.names, 1, engine="reference", checks="racecheck")
        assert state in allowed.states
        assert not allowed.racing.get(state, 0)
        assert not result.reports, result.reports


def test_who_sees_an_atomic_has_seen_what_that_has_seen():
    text = """PTX chain
{ x=0; y=0; }
P0@cta 0,gpu 0 | P1@cta 1,gpu 0 | P2@cta 2,gpu 0 ;
st.relaxed.gpu x, 1 | atom.relaxed.gpu.add r1, x, 4 | ld.relaxed.gpu r2, x ;
| | st.weak x, 3 ;
"""
    allowed, seen = run(read(text)), set()
    for seed in range(12):
        (state,), result = Kernel(read(text)).run(seed, allowed.names, 1, engine="reference", checks="racecheck")
        assert bool(allowed.racing.get(state, 0)) == bool(result.reports), (seed, state)
        seen.add(bool(result.reports))
    assert seen == {True, False}
