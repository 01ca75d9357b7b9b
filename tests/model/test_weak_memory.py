"""`--memory weak`: the simulator shows what the model allows, and nothing else."""

import numpy as np
import pytest

import ptxtools
from ptxtools.model.executions import run
from tests.model.cycles import cycle_of
from tests.model.launches import FEATURES
from tests.model.simulated import Kernel
from tests.model.suite import FOLDER, loaded, read
from tests.model.test_random import texts
from tests.rows import rows

#: Copies in one launch within which all outcomes of these tests are reached.
COPIES = 100


def outcomes(kernel, names, copies, seed=11):
    return kernel.outcomes(seed, names, copies, memory_model="weak")


@rows("name", ["MP", "SB", "LB", "R+fence.acq_rel", "CoRR+weak-reads", "2+2W", "Atom+max-cta", "CoWR2+weak",
               "Atom+store-weak", "MP+barrier.cluster-relaxed", "LB+add", "LB+narrow-rel-acq", "MP+gpus-gpu",
               "LB+fence.acq_rel-weak", "MP+barrier.cluster-relaxed-load", "Atom+exch-cta"], share=3)  # fmt: skip
def test_every_outcome_is_reached(name):
    """Stale reads, late loads, writes that others order differently, increments that are lost."""
    test = loaded(FOLDER / f"{name}.litmus")
    kernel, allowed = Kernel(test, meet=True), run(test)
    assert set(outcomes(kernel, allowed.names, COPIES)) == set(allowed.states)


@rows("name", ["MP+rel+acq", "SB+fence.sc", "2+2W+fence.sc", "CoRR", "LB+data", "Atom+max-both", "Chain+atom", "MP+bar",
               "WRC+rel+acq", "MP+overwritten-flag"])  # fmt: skip
def test_what_is_forbidden_does_not_happen(name):
    test = loaded(FOLDER / f"{name}.litmus")
    kernel, allowed = Kernel(test, meet=True), run(test)
    assert not allowed.allowed
    assert set(outcomes(kernel, allowed.names, 6)) <= set(allowed.states)


def test_what_a_barrier_ordered_goes_on_through_flags():
    """What a thread knows by a barrier, and not from its own accesses, is what it publishes too."""
    test = loaded(FOLDER / "Bar+then-flag.litmus")
    kernel, allowed = Kernel(test, meet=True), run(test)
    assert set(outcomes(kernel, allowed.names, 8)) <= set(allowed.states)


@rows("name", ["MP+cluster", "SB+cluster"])
def test_scopes_of_the_cluster(name):
    """In one cluster they order; the same kernel in clusters of one CTA may show the outcome."""
    test = loaded(FOLDER / f"{name}.litmus")
    kernel, allowed = Kernel(test, meet=True), run(test)
    assert set(outcomes(kernel, allowed.names, 8)) <= set(allowed.states)
    kernel.cluster = 1
    assert not set(outcomes(kernel, allowed.names, COPIES)) <= set(allowed.states)


@rows("name", ["Acquire+after-atom", "Atom+exch-observed"])
def test_an_acquire_and_an_undecided_read(name):
    """An acquire operation synchronises by what an earlier read of its location observed, whatever it returns itself;
    what observes an atomic operation is behind its read, which may still be undecided."""
    test = loaded(FOLDER / f"{name}.litmus")
    kernel, allowed = Kernel(test, meet=True), run(test)
    assert not allowed.allowed
    assert set(outcomes(kernel, allowed.names, 60)) <= set(allowed.states)


def test_a_cas_that_succeeds_late_releases():
    test = read("""PTX t
{ d = 0; f = 0; g = 0; }
 P0@cta 0,gpu 0 | P1@cta 1,gpu 0 | P2@cta 2,gpu 0 ;
 st.weak d, 1 | ld.acquire.gpu r2, f | st.relaxed.gpu f, 1 ;
 atom.release.gpu.cas.b64 r0, f, 1, 2 | ld.weak r3, d | ;
 add r1, r0, 5 | | ;
 st.relaxed.gpu g, r1 | | ;
~exists (P1:r2 == 2 /\\ P1:r3 == 0)
""")
    kernel, allowed = Kernel(test, meet=True), run(test)
    assert not allowed.allowed
    assert {state for seed in range(6) for state in outcomes(kernel, allowed.names, 200, seed)} == set(allowed.states)


def test_writes_that_race_are_in_no_order():
    """Each thread reads the other's store behind its own, and either is the one that is left."""
    test = read("PTX t\n{ x=0; }\nP0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n"
                "st.weak x, 1 | st.weak x, 2 ;\nld.weak r1, x | ld.weak r2, x ;\n")  # fmt: skip
    kernel, allowed = Kernel(test, meet=True), run(test)
    assert len(allowed.states) == 8
    assert set(outcomes(kernel, allowed.names, 6 * COPIES)) == set(allowed.states)


def test_a_stale_read_is_not_what_a_thread_knows_to_be_old():
    """The second store of a thread follows its first one, whatever races with the two."""
    test = read("PTX t\n{ x=0; f=0; }\nP0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\nst.weak x, 1 | ld.acquire.gpu r1, f ;\n"
                "st.weak x, 2 | st.weak x, 3 ;\nst.release.gpu f, 1 | ld.weak r2, x ;\n")  # fmt: skip
    kernel, allowed = Kernel(test, meet=True), run(test)
    assert set(outcomes(kernel, allowed.names, COPIES)) <= set(allowed.states)


def test_what_observes_a_reduction_is_behind_what_that_has_read():
    """The exchange precedes, by way of the red in between, what the other thread does behind its own (8.9.2, 8.9.5)."""
    test = read("PTX t\n{ x=0; }\nP0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n"
                "atom.release.gpu.exch r1, x, 1 | atom.acq_rel.gpu.exch r3, x, 3 ;\n"
                "red.relaxed.gpu.max x, 2 | atom.acquire.cta.or r4, x, 4 ;\n")  # fmt: skip
    kernel, allowed = Kernel(test, meet=True), run(test)
    seen = set(outcomes(kernel, allowed.names, COPIES))
    assert len(seen) > 2 and seen <= set(allowed.states)


@rows("text", texts(21, 5, 2, 4) + texts(22, 3, 3, 3), ids=[f"random-{at}" for at in range(8)])
def test_random_tests(text):
    """tools/sweep_litmus.py has more seeds and all tests of the test data."""
    test = read(text)
    kernel, allowed = Kernel(test, meet=True), run(test)
    assert set(outcomes(kernel, allowed.names, 4)) <= set(allowed.states), text


@rows("seed", range(12, 36), ids=[f"cycle-{seed}" for seed in range(12, 36)], share=6)
def test_cycles(seed):
    """tools/sweep_weak.py goes on with other seeds; where accesses of different sizes race, memory is strong."""
    cycle = cycle_of(seed)
    kernel, allowed = Kernel(cycle.test, meet=True), run(cycle.test)
    assert set(outcomes(kernel, allowed.names, 6, seed=seed)) <= set(allowed.states), cycle.text


@rows(("text", "copies"), [
    # Each thread's acquire reads what the other adds behind its own, and so synchronises with the third: either way one
    # of the two reads takes effect when its thread has gone on.
    ("""PTX t
{ x = 0; y = 0; }
 P0@cta 0,gpu 0 | P1@cta 1,gpu 0 | P2@cta 2,gpu 0 ;
 ld.acquire.gpu r1, x | ld.acquire.gpu r3, y | st.release.gpu x, 1 ;
 atom.relaxed.gpu.add r2, y, 1 | atom.relaxed.gpu.add r4, x, 1 | st.release.gpu y, 1 ;
exists (P0:r1 == 2 /\\ P0:r2 == 1 /\\ P1:r3 == 2 /\\ P1:r4 == 1)
""", 600),
    # The same with two threads, each of which has released what the other adds to.
    ("""PTX t
{ x = 0; y = 0; }
 P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;
 st.release.gpu y, 1 | st.release.gpu x, 1 ;
 ld.acquire.gpu r1, x | ld.acquire.gpu r3, y ;
 atom.relaxed.gpu.add r2, y, 1 | atom.relaxed.gpu.add r4, x, 1 ;
exists (P0:r1 == 2 /\\ P0:r2 == 1 /\\ P1:r3 == 2 /\\ P1:r4 == 1)
""", 800),
    # A read observes a store in the end that another thread, which has synchronised with its own, has stored over.
    ("""PTX t
{ x = 0; f = 0; g = 0; }
 P0@cta 0,gpu 0 | P1@cta 1,gpu 0 | P2@cta 2,gpu 0 ;
 ld.relaxed.gpu r1, x | ld.acquire.gpu r2, f | ld.relaxed.gpu r3, g ;
 st.release.gpu f, 1 | st.relaxed.gpu x, 1 | add r4, r3, 4 ;
 | st.relaxed.gpu g, 1 | st.relaxed.gpu x, r4 ;
exists (P0:r1 == 5 /\\ P1:r2 == 1 /\\ P2:r3 == 1 /\\ x == 1)
""", 1000),
    # A strong read of a thread that knows of no write returns the oldest one.
    ("""PTX t
{ x = 0; }
 P0@cta 0,gpu 0 | P1@cta 0,gpu 0 ;
 bar.red.popc.u32 r1, 0, 1 | st.relaxed.gpu x, 1 ;
 ld.relaxed.cta r2, x | st.relaxed.gpu x, 2 ;
exists (P0:r2 == 0)
""", 100),
    # An atomic operation that has been read takes effect late; what has read it returns what it writes then.
    ("""PTX t
{ x = 0; y = 0; }
 P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;
 ld.relaxed.gpu r1, y | atom.relaxed.cta.or r3, x, 1 ;
 add r2, r1, 7 | atom.relaxed.cta.add r4, x, 4 ;
 st.relaxed.gpu x, r2 | st.relaxed.gpu y, 1 ;
exists (P1:r3 == 8 /\\ P1:r4 == 9)
""", 600),
])  # fmt: skip
def test_what_threads_learn_in_hindsight(text, copies):
    """What may happen only if a read takes effect long after its thread has gone on."""
    test = read(text)
    kernel, allowed = Kernel(test, meet=True), run(test)
    seen = {state for seed in range(copies // 100) for state in outcomes(kernel, allowed.names, 100, seed)}
    assert allowed.allowed
    assert seen == set(allowed.states)


TWICE = """PTX t
{{ x = 0; y = 0; }}
 P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;
 {} | {} ;
 {} | {} ;
"""


@rows(("first", "second", "reached", "never"), [
    # A cas that fails is no write: it is not what is left in the end, whatever it read.
    (("st.weak x, 4", "st.weak x, 5"), ("atom.relaxed.gpu.cas r0, x, 99, 10", "nop"), {(4, 5), (0, 5), (5, 5)},
     {(4, 4), (0, 0)}),
    # An addition reads a weak store behind its own write, unless someone has read what it wrote.
    (("st.weak x, 4", "nop"), ("atom.relaxed.gpu.add r0, x, 10", "ld.weak r1, x"), {(4, 4), (4, 14), (0, 10)}, set()),
    # A load through the texture cache may miss what its thread has stored, and find what it stores later.
    (("nop", "nop"), ("ld.global.nc.b64 r0, [x]", "st.weak x, 7"), {(0, 7), (7, 7)}, set()),
])  # fmt: skip
def test_what_atomic_operations_and_textures_may_do(first, second, reached, never):
    test = read(TWICE.format(first[0], second[0], first[1], second[1]))
    kernel, allowed = Kernel(test, meet=True), run(test)
    seen = set(outcomes(kernel, allowed.names, 200))
    pairs = {tuple(state[allowed.names.index(name)] for name in ("P1:r0", "x")) for state in seen}
    assert seen == set(allowed.states)
    assert reached <= pairs and not never & pairs


KERNEL = """.version 8.0
.target sm_90
.address_size 64
.visible .entry t(.param .u64 a)
{
    .reg .pred %p; .reg .b32 %r<9>; .reg .b64 %rd<4>;
    .shared .u32 buf[64];
    ld.param.u64 %rd1, [a];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd2, %rd1, %rd2;
    shl.b32 %r2, %r1, 2;
    mov.u32 %r3, buf;
    add.u32 %r3, %r3, %r2;
    st.shared.u32 [%r3], %r1;
    bar.sync 0;
    xor.b32 %r2, %r2, 252;
    mov.u32 %r4, buf;
    add.u32 %r4, %r4, %r2;
    ld.shared.u32 %r5, [%r4];
    st.global.u8 [%rd2+1], 7;
    st.global.u16 [%rd2+2], %r5;
    ld.global.u32 %r6, [%rd2];
    red.global.add.u32 [%rd1+256], %r6;
    ret;
}
"""


def test_a_kernel_with_barriers_and_accesses_of_several_sizes_is_right():
    """A program without races has one outcome, whatever memory may do."""
    module = ptxtools.loads(KERNEL)
    for seed in range(3):
        values = np.zeros(65, np.uint32)
        ptxtools.Device(seed=seed, memory_model="weak").launch(module["t"], 1, 64, [values])
        expected = (63 - np.arange(64, dtype=np.uint32) << 16) + (7 << 8)
        assert (values[:64] == expected).all() and values[64] == expected.sum(dtype=np.uint32), seed


def test_a_missing_fence_fails_for_some_seed_and_a_seed_repeats():
    test = loaded(FOLDER / "MP.litmus")
    kernel, names = Kernel(test), ("P1:r0", "P1:r1")
    first = outcomes(kernel, names, 12)
    assert (1, 0) in first and first == outcomes(kernel, names, 12) != outcomes(kernel, names, 12, seed=12)
    assert (1, 0) not in kernel.outcomes(11, names, 12, engine="reference")


def test_the_option():
    device = ptxtools.Device(memory_model="weak")
    assert device.engine == "reference" and device.seed == 0
    with pytest.raises(ptxtools.LaunchError, match="strange"):
        ptxtools.Device(memory_model="strange")


@rows("mark, at_least", [("copied", 2), ("masked", 3)])
def test_copies_complete_in_any_order_until_they_are_waited_for(mark, at_least, tmp_path):
    """Each as a whole: the model allows more."""
    feature = FEATURES["masked copies"]
    path = feature.write(tmp_path, mark)
    _, states = feature.allowed(path)
    seen = {feature.outcome(path, seed, "weak") for seed in range(30)}
    assert at_least <= len(seen) and seen <= states


@rows("seed, late", [(64, {"P0:r2": 5}), (5005, {"P0:r2": 4, "P1:r4": 257})])
def test_atomic_operations_take_effect_late(seed, late):
    """A cas fails because of a store that follows from a later store of its own thread; an exchange reads what was
    written after its result had been read."""
    cycle = cycle_of(seed)
    kernel, allowed = Kernel(cycle.test, meet=True), run(cycle.test)
    seen = set()
    for part in range(12):
        seen.update(outcomes(kernel, allowed.names, 50, seed=seed + part))
    assert seen <= set(allowed.states)
    assert any(late.items() <= dict(zip(allowed.names, state, strict=True)).items() for state in seen)


@rows("text", [
    "st.volatile x, 1 | ld.relaxed.gpu r3, x ;\natom.relaxed.sys.or r1, x, 2 | red.release.sys.add x, 4 ;\n"
    "atom.release.gpu.add r2, x, 3 | st.relaxed.cta x, 5 ;\n",
    "atom.release.sys.exch r1, x, 1 | red.release.sys.add x, 4 ;\n"
    "atom.release.sys.add r2, x, 2 | red.relaxed.cta.add x, 5 ;\n"
    "red.release.cta.max x, 3 | atom.relaxed.gpu.exch r3, x, 6 ;\n",
    "st.volatile x, 1 | atom.acq_rel.cta.cas r2, x, 0, 3 ;\natom.release.sys.cas r1, x, 0, 2 | st.weak x, 4 ;\n",
    "atom.relaxed.sys.max r1, x, 1 | atom.acquire.gpu.or r3, x, 3 ;\natom.release.gpu.max r2, x, 2 | st.weak x, 4 ;\n",
])  # fmt: skip
def test_what_late_atomic_operations_observe_is_not_behind_them(text):
    test = read(f"PTX t\n{{ x = 0; }}\nP0@cta 0,gpu 0 | P1@cta {int('volatile x, 1 | ld' in text)},gpu 0 ;\n{text}")
    kernel, allowed = Kernel(test, meet=True), run(test)
    seen = set()
    for seed in range(5):
        seen.update(outcomes(kernel, allowed.names, 100, seed=seed))
    assert seen <= set(allowed.states)
