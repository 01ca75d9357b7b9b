"""Runs of `--memory weak` that follow an execution of the model: they reach every outcome, and compute what it says."""

import numpy as np
import pytest

import ptxtools
from ptxtools.model.executions import run
from ptxtools.reference.guided import Guided
from tests.model.cycles import cycle_of
from tests.model.drawn import Drawn
from tests.model.handed import Handed
from tests.model.launches import FEATURES
from tests.model.simulated import Kernel
from tests.model.suite import FOLDER, loaded, read
from tests.rows import rows


def reached(test):
    """(what guided runs show, what the model allows); nothing where the axioms do not apply (8.7.2)"""
    kernel, allowed = Kernel(test, meet=True), run(test, unroll=3)
    found = kernel.guided(allowed.names)
    if allowed.mixed_races:
        assert found is None
        return set(), set()
    return set(found), set(allowed.states)


@rows("name", ["MP", "SB", "LB", "LB+data", "2+2W", "IRIW", "WRC", "MP+bar", "Atom+exch-cta", "Chain+cas-failed",
               "Lock+two", "Bar+red-branch", "Size+vector", "MP+gpus-gpu", "NC+MP", "MP+barrier.cluster-relaxed"],
      share=3)  # fmt: skip
def test_each_outcome_has_a_run(name):
    """tools/sweep_litmus.py has all tests."""
    found, allowed = reached(loaded(FOLDER / f"{name}.litmus"))
    assert found == allowed


@rows("seed", range(40, 64), ids=[f"cycle-{seed}" for seed in range(40, 64)], share=6)
def test_cycles(seed):
    """tools/sweep_weak.py goes on with other seeds."""
    found, allowed = reached(cycle_of(seed).test)
    assert found == allowed


@rows("kind", ["plain", "acquire", "one-atomics", "one-cas", "vectors", "barriers", "clusters", "guards", "computed"],
      share=3)  # fmt: skip
def test_random_programs(kind):
    for seed, threads in ((3, 2), (5, 3)):
        found, allowed = reached(read(Drawn(kind, seed, threads, 5 - threads, asks=False).text))
        assert found == allowed, (kind, seed)


@rows("text", [
    # What weak memory by itself has not shown in thousands of runs: too narrow scopes, one of whose operations is read
    # through a later one, ...
    """PTX t
{ x = 0; }
 P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;
 atom.relaxed.cta.add r1, x, 1 | atom.relaxed.gpu.add r3, x, 4 ;
 atom.relaxed.gpu.add r2, x, 2 | ld.relaxed.gpu r4, x ;
""",
    # ... and arithmetic behind a block's last store.
    """PTX t
{ x = 0; y = 0; }
 P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;
 ld.relaxed.gpu r1, x | ld.relaxed.gpu r3, y ;
 @!r1 st.relaxed.gpu y, 1 | st.relaxed.gpu x, 1 ;
 add r2, r1, 1 | ;
""",
])  # fmt: skip
def test_what_is_rare(text):
    found, allowed = reached(read(text))
    assert found == allowed


HANDED = """.version 8.6
.target sm_90
.address_size 64
.visible .entry t(.param .u64 x, .param .u64 out)
{{
    .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
    .shared .align 16 .b32 tile[4];
    .shared .align 8 .b64 bar;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [out];
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra READ;
{}
    ret;
READ:
{}
    ret;
}}
"""
_COPY = """    cp.async.ca.shared.global [tile], [%rd1], 8;
    st.shared.b32 [tile+4], 7;
    {}
    ld.shared.v2.b32 {{%r2, %r3}}, [tile];
    st.global.v2.b32 [%rd2], {{%r2, %r3}};
"""
_TOLD = """    mbarrier.init.shared.b64 [bar], 1;
    bar.sync 0;
    st{0}.b32 [%rd1], 9;
    mbarrier.arrive{1}.shared.b64 %rd3, [bar];
"""
_HEARD = """    bar.sync 0;
    mbarrier.test_wait.parity{0}.shared.b64 %p2, [bar], 0;
    selp.u32 %r2, 1, 0, %p2;
    ld{1}.b32 %r3, [%rd1];
    st.global.b32 [%rd2], %r2;
    st.global.b32 [%rd2+4], %r3;
"""
_BULK = """    mbarrier.init.shared.b64 [bar], 1;
    {}
    mbarrier.arrive.expect_tx.shared.b64 %rd3, [bar], 16;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 16, [bar];
    bar.sync 0;
"""
_WAITED = """    bar.sync 0;
L:
    {}
    ld.shared.b32 %r2, [tile];
    ld.shared.b32 %r3, [tile+8];
    st.global.v2.b32 [%rd2], {{%r2, %r3}};
"""
_REMOTE = """    mbarrier.init.shared.b64 [bar], 1;
    mbarrier.arrive.expect_tx.shared.b64 %rd3, [bar], 4;
    bar.sync 0;
    st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [tile], 5, [bar];
    st.shared.b32 [tile+8], 6;
"""
_POLL = "mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;\n    @!%p2 bra L;"


@rows(("first", "second", "outcomes"), [
    # A copy that is not waited for: each half of what it brings is there or not, or is not stored over.
    (_COPY.format("cp.async.wait_all;"), "", {(1, 2), (1, 7)}),
    (_COPY.format("cp.async.commit_group;"), "", {(0, 7), (0, 2), (1, 7), (1, 2)}),
    # An mbarrier tells of what its arrival releases.
    (_TOLD.format(".global", ""), _HEARD.format("", ".global"), {(0, 1), (0, 9), (1, 9)}),
    (_TOLD.format(".global", ".relaxed.cta"), _HEARD.format(".relaxed.cta", ".global"),
     {(0, 1), (0, 9), (1, 1), (1, 9)}),
    # A bulk copy, with a wait and without.
    (_BULK.format("fence.proxy.async.shared::cta;"), _WAITED.format(_POLL), {(1, 3)}),
    (_BULK.format("fence.proxy.async.shared::cta;"), _WAITED.format(""), {(0, 0), (0, 3), (1, 0), (1, 3)}),
    # A store that an mbarrier tells of, and one behind it that it does not.
    (_REMOTE, _WAITED.format(_POLL), {(5, 0), (5, 6)}),
])  # fmt: skip
def test_copies_and_mbarriers(first, second, outcomes):
    """The machine by itself does a copy as a whole, and an operation on an mbarrier in program order."""
    seen = followed(HANDED.format(first, second), 2 if second else 1, 2)
    assert {out for _, out in seen} == outcomes


def followed(text, threads, results):
    """What all guided runs of a kernel leave in its two arrays, one after the other; None if it has none. Each is
    followed to its end, and no outcome comes twice."""
    module, seen, seed = ptxtools.loads(text), [], 1
    while True:
        x, out = np.array([1, 2, 3, 4], np.uint32), np.zeros(results, np.uint32)
        device = ptxtools.Device("sm_90", seed=seed, memory_model="weak")
        device.launch(module["t"], 1, threads, [x, out])
        if device.guide is None:
            return None
        assert not device.guide.departure, device.guide.departure
        seen.append((tuple(x.tolist()), tuple(out.tolist())))
        seed += 2
        if len(seen) == device.guide.outcomes:
            assert len(set(seen)) == len(seen)
            return seen


@rows("seed", range(40), ids=[f"handed-{seed}" for seed in range(40)], share=5)
def test_random_copies_and_mbarriers(seed):
    """What the model allows of the same kernel when it is asked for it as a litmus test; none if it is undefined, as
    that of an mbarrier that has had too many arrivals."""
    kernel = Handed(seed)
    results = max(kernel.results, 1)
    arrays = [np.array([1, 2, 3, 4], np.uint32), np.zeros(results, np.uint32)]
    condition = " /\\ ".join([f"a[{at}] == 0" for at in range(4)] + [f"out[{at}] == 0" for at in range(results)])
    allowed = ptxtools.litmus_kernel(kernel.text, f"exists ({condition})", args=arrays, block=kernel.threads, unroll=3)
    seen = followed(kernel.text, kernel.threads, results)
    if seen is None:
        assert allowed.undefined or allowed.mixed_races or allowed.incomplete or len(allowed.states) == 1
    elif allowed.incomplete:  # guided runs are looked for a little longer
        assert {x + out for x, out in seen} >= set(allowed.states)
    else:
        assert {x + out for x, out in seen} == set(allowed.states)


def test_an_outcome_for_every_other_seed():
    """In turn, however many seeds there are; the others are the machine's by itself, and a switch leaves only these."""
    test = loaded(FOLDER / "MP.litmus")
    kernel, names = Kernel(test), ("P1:r0", "P1:r1")
    seen = [kernel._run(seed, names, 1, True, memory_model="weak") for seed in range(16)]
    assert [guide is not None for _, _, guide in seen] == [False, True] * 8
    assert seen[1][2].outcomes == 4
    assert [outcome for outcome, _, _ in seen[1:8:2]] == [outcome for outcome, _, _ in seen[9::2]]
    assert len({outcome[0] for outcome, _, _ in seen[1:8:2]}) == 4
    assert kernel._run(1, names, 1, False, memory_model="weak")[2] is None


@rows(("name", "mark"), [("mapa", "arrive")])
def test_launch_files(name, mark, tmp_path):
    feature = FEATURES[name]
    path = feature.write(tmp_path, mark)
    _, states = feature.allowed(path)
    assert {feature.outcome(path, seed, "weak") for seed in range(1, 2 * len(states), 2)} == states


def launched(body, seed=1, **options):
    text = HANDED.format(body, "").replace("@%p1 bra READ;", "@%p1 ret;")
    x, out = np.array([1, 2, 3, 4], np.uint32), np.zeros(2, np.uint32)
    device = ptxtools.Device("sm_90", seed=seed, memory_model="weak", **options)
    device.launch(ptxtools.loads(text)["t"], 1, 2, [x, out])
    return device.guide, out.tolist()


def test_what_is_not_modelled_runs_by_itself():
    guide, out = launched("    clz.b32 %r3, 1;\n    vote.sync.any.pred %p2, 1, 1;\n    st.global.u32 [%rd2], %r3;\n")
    assert guide is None and out == [31, 0]


def test_checkers_see_the_machine_by_itself():
    body = "    ld.global.u32 %r2, [%rd1];\n    st.global.u32 [%rd2], %r2;\n"
    assert launched(body)[0] is not None
    assert launched(body, checks=("racecheck",))[0] is None


def test_a_value_that_differs_ends_the_guided_run(monkeypatch):
    """Memory is as if it had not been, and what differed is known."""

    def five(self, m, op, threads):
        for thread in threads:
            self._step(op, int(thread))
        m.write(op.dst[0], np.full(len(threads), 5, np.uint32), "u32", threads)

    monkeypatch.setattr(Guided, "_load", five)
    guide, out = launched("    ld.global.u32 %r2, [%rd1];\n    add.u32 %r2, %r2, 1;\n    st.global.u32 [%rd2], %r2;\n")
    assert "[6], in the model [2]" in guide.departure
    assert out == [2, 0]


@pytest.mark.parametrize("seed", [1, 2])
def test_many_threads_are_left_to_the_machine(seed):
    test = loaded(FOLDER / "MP.litmus")
    outcomes, _, guide = Kernel(test)._run(seed, ("P1:r0", "P1:r1"), 12, True, memory_model="weak")
    assert guide is None and len(outcomes) == 12
