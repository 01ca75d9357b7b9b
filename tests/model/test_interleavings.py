"""Executions that are interleavings: counted at once, they are those that the search goes through."""

import random

import pytest

from ptxtools.model import MODELS, interleavings
from ptxtools.model.executions import run
from ptxtools.model.nearest import nearest
from ptxtools.model.search import Search
from tests.model.suite import read
from tests.rows import rows

LOADS = ("ld.relaxed.gpu {r}, x", "ld.acquire.gpu {r}, x", "ld.relaxed.sys {r}, x")
STORES = ("st.relaxed.gpu x, {v}", "st.release.gpu x, {v}", "st.relaxed.sys x, {r}")
ATOMS = ("atom.relaxed.gpu.add {r}, x, 1", "atom.acq_rel.gpu.exch {r}, x, {v}", "atom.relaxed.gpu.cas {r}, x, 0, {v}",
         "red.relaxed.gpu.add x, 2", "fence.acq_rel.gpu")  # fmt: skip


def texts(count):
    """Strong accesses of one location by two and three threads, some with a condition on the way."""
    generator = random.Random(31)
    for _ in range(count):
        threads = generator.choice((2, 2, 3))
        columns = [
            [
                generator.choice(generator.choice((LOADS, STORES, ATOMS))).format(r=f"r{at % 2}", v=10 * thread + at)
                for at in range(4 - threads + thread % 2)
            ]
            for thread in range(threads)
        ]
        head = " | ".join(f"P{thread}@cta {thread},gpu 0" for thread in range(threads))
        columns = [column + ["nop"] * (3 - len(column)) for column in columns]
        table = "".join(" | ".join(row) + " ;\n" for row in zip(*columns, strict=True))
        branch = " | ".join(["beq r0, 1, L"] + ["nop"] * (threads - 1)) + " ;\n"
        last = " | ".join(["st.relaxed.gpu x, 7"] * threads) + " ;\n" + " | ".join(["L:"] * threads) + " ;\n"
        end = generator.choice(("", "exists (x == 10)", "~exists (P0:r0 == 1 /\\ x == 7)", "forall (P1:r1 < 3)"))
        yield f"PTX strong\n{{ x=0; }}\n{head} ;\n{table}{branch}{last}{end}\n"


def summary(outcomes):
    return outcomes.executions, outcomes.states, outcomes.races, outcomes.matching


@rows("text", list(texts(24)), ids=[f"strong-{at}" for at in range(24)], share=3)
def test_what_the_search_goes_through(text, monkeypatch):
    for version in MODELS:
        counted = run(read(text), version)
        with monkeypatch.context() as patch:
            patch.setattr(interleavings, "MOST_PREFIXES", 0)
            searched = run(read(text), version)
        assert summary(counted) == summary(searched) and not searched.incomplete, (version, text)
        assert counted.witness is None or not counted.witness.broken, (version, text)
        assert (counted.witness is None) == (searched.witness is None), (version, text)


CAS = ("atom.relaxed.gpu.cas {r}, x, 0, {v}", "atom.acq_rel.gpu.cas {r}, x, 2, {v}",
       "atom.relaxed.gpu.cas {r}, x, {r}, 2", "atom.relaxed.sys.cas {r}, x, 1, 0",
       "st.relaxed.gpu x, {r}", "ld.relaxed.gpu {r}, x", "fence.sc.gpu", "beq {r}, 1, L")  # fmt: skip


@rows("seed", range(24), ids=[f"cas-{seed}" for seed in range(24)], share=3)
def test_paths_that_no_interleaving_leads_to(seed, monkeypatch):
    """The same as if all paths of the threads are combined."""
    generator = random.Random(seed)
    columns = [
        [generator.choice(CAS).format(r=f"r{generator.choice((0, 0, 1))}", v=at % 3) for at in range(3)] + ["L:"]
        for _ in range(2 + seed % 2)
    ]
    head = " | ".join(f"P{thread}@cta {thread},gpu 0" for thread in range(len(columns)))
    table = "".join(" | ".join(row) + " ;\n" for row in zip(*columns, strict=True))
    text = f"PTX cas\n{{ x=0; }}\n{head} ;\n{table}exists (x == 1 /\\ P0:r0 == 2)\n"
    monkeypatch.setattr("ptxtools.model.executions.WORTH", 1)
    met = run(read(text))
    monkeypatch.setattr("ptxtools.model.meetings._MOST", -1)
    assert summary(met) == summary(run(read(text))) and not met.incomplete, text


@rows("scope, end, executions", [
    ("gpu", "x == 9", 12870), ("gpu", "x == 8", 12870),
    ("cta", "x == 9", None),  # these race: too many to count, but nobody writes a 9
])  # fmt: skip
def test_sixteen_cas(scope, end, executions):
    """Each thread has 256 paths, of which few meet."""
    cas = "".join(" | ".join([f"atom.relaxed.{scope}.cas r{at}, x, {at}, {at + 1}"] * 2) + " ;\n" for at in range(8))
    outcomes = run(read(f"PTX t\n{{ x=0; }}\nP0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n{cas}exists ({end})"))
    assert outcomes.conclusive and outcomes.holds == (end == "x == 8")
    assert executions in (None, outcomes.executions)


@pytest.mark.parametrize("reads", [("ld.weak r0, x", "ld.relaxed.gpu r1, x"),
                                   ("ld.relaxed.gpu r0, x", "ld.relaxed.gpu r1, y"),
                                   ("ld.relaxed.gpu r0, x", "suld.weak r1, s")])  # fmt: skip
def test_what_is_not_morally_strong_is_searched(reads):
    """A weak access, another location or an alias: more than the interleavings is allowed."""
    text = (
        "PTX t\n{ x=0; y=0; s @ surface aliases x; }\nP0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n"
        f"st.relaxed.gpu x, 1 | {reads[0]} ;\nst.relaxed.gpu y, 1 | {reads[1]} ;\n"
        "exists (P1:r0 == 1 /\\ P1:r1 == 0)\n"
    )
    assert run(read(text)).allowed


def test_sixteen_increments_are_counted():
    """C(16, 8) interleavings of two threads with eight each; the last value is always their number."""
    adds = "atom.relaxed.gpu.add r0, x, 1 | atom.relaxed.gpu.add r0, x, 1 ;\n" * 8
    text = f"PTX t\n{{ x=0; }}\nP0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n{adds}"
    outcomes = run(read(text + "forall (x == 16)"))
    assert outcomes.executions == 12870 and outcomes.holds and not outcomes.incomplete


def test_the_search_for_a_reason_ends(monkeypatch):
    """No choice of reads gives this value; the search for one does not try them all."""
    adds = "atom.relaxed.gpu.add r0, x, 1 | atom.relaxed.gpu.add r0, x, 1 ;\n" * 8
    test = read(f"PTX t\n{{ x=0; }}\nP0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n{adds}~exists (x == 99)")
    checks = []
    allowed = Search._allowed
    monkeypatch.setattr(Search, "_allowed", lambda search: checks.append(0) or allowed(search))
    monkeypatch.setattr("ptxtools.model.nearest.MOST_CHECKS", 300)
    assert run(test).holds and nearest(test) is None
    assert 300 <= len(checks) < 2000
