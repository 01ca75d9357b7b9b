"""Older and other formats of litmus tests: scope trees, threads without places, declarations and commands."""

import random
import re

import pytest

from ptxtools.diagnostics import PtxError, Source
from ptxtools.model.executions import run
from ptxtools.model.litmus import read_tests
from tests.model.suite import NO_CYCLES, read
from tests.rows import rows

OLD = """GPU_PTX SB
{0:.reg .s32 r0; 0:.reg .b64 r1 = x; 0:.reg .b64 r3 = y; 1:.reg .b64 r1 = y; 1:.reg .b64 r3 = x;}
 T0                 | T1                 ;
 mov.s32 r0, 1      | mov.s32 r0, 1      ;
 st.cg.s32 [r1], r0 | st.cg.s32 [r1], r0 ;
 membar.cta         | membar.cta         ;
 ld.cg.s32 r2, [r3] | ld.cg.s32 r2, [r3] ;
"""
SB = "exists (0:r2=0 /\\ 1:r2=0)\n"

TREES = [
    # what follows the table, whether the CTA's fences are wide enough
    ("ScopeTree(grid(cta(warp T0) (warp T1)))\nx: shared, y: global\n" + SB, True),
    ("ScopeTree(grid(cta(warp T0)) (cta (warp T1)))\n" + SB, False),
    (SB + "(device (kernel (cta (warp P0) (warp P1))))\nx:global; y:global\n", True),
    (SB + "(device (kernel (cta (warp P0)) (cta (warp P1))))\nx:global; y:global\n", False),
    ("scopes: (device (cta P0 P1))\n" + SB, True),
    ("(system (gpu (cta 0)) (gpu (cta 1)))\n" + SB, False),
    ("(gpu (cluster (cta P0)) (cluster (cta P1)))\n" + SB, False),
    ("x: global\n" + SB, False),  # threads without places are in CTAs of their own
    (SB, False),
]


@rows(("end", "together"), TREES)
def test_scope_trees(end, together):
    outcomes = run(read(OLD + end))
    assert outcomes.allowed != together and len({(t.gpu, t.cta) for t in outcomes.test.threads}) == 2 - together


def test_a_tree_has_gpus_and_clusters():
    test = read(OLD.replace("membar.cta", "membar.gl") + "(system (gpu (cta 0)) (gpu (cta 1)))\n" + SB)
    assert [(t.gpu, t.cta) for t in test.threads] == [(0, 0), (1, 1)] and run(test).allowed
    test = read(OLD + "(gpu (cluster (cta P0) (cta P1)))\n" + SB)
    assert [(t.cluster, t.cta) for t in test.threads] == [(0, 0), (0, 1)]


REFUSED = [
    (OLD + "(device (cta P0))\n" + SB, "does not name thread P1"),
    (OLD + "(device (cta P0 P1 P1))\n" + SB, "names thread P1 twice"),
    (OLD + "(device (cta P0 P1 P7))\n" + SB, "no thread P7"),
    (OLD + "(device P0 P1)\n" + SB, "no CTA around thread P0"),
    (OLD + "(device (cta P0 P1)\n" + SB, "expected a level or a thread"),
    (OLD + "(device (cta P0 P1))\n" + SB + "(device (cta P0 P1))\n", "have their places already"),
    (OLD + "ScopeTree" + "(" * 60, "nested too deeply"),
    (OLD + "x: shared\n" + SB, "threads of two CTAs use it"),
    (OLD + "z: global\n" + SB, "no location 'z'"),
    (OLD.replace("T0    ", "T0@cta 0,gpu 0") + SB, "some have none"),
]  # fmt: skip


@rows(("text", "message"), REFUSED)
def test_refused(text, message):
    with pytest.raises(PtxError) as caught:
        read(text)
    assert message in caught.value.diagnostics[0].message, caught.value.diagnostics[0].message


# --- the format of the paper on proxies -------------------------------------------------------------------------------

MP = """.global x;   // data
.surfref s virtually aliases x;
.global flag;
d0.b0.t0 {
  $0, 2;
  $1
  st.release.cta [flag], 1;
}
d0.b0.t1 { ld.acquire.cta r0, [flag] == 1; ld.weak r1, [x]; }
$2(r1 $3 2) as seen;
$$
st   [x] |                      | assert | ==
sust [s] |                      | permit | !=
sust [s] | fence.proxy.surface; | assert | ==
sust [s] | fence.proxy.surface; | permit | !=
"""


def proxy_tests(text):
    return read_tests(Source(text, "folder/mp.test"))


def test_rows_fill_the_template():
    outcomes = [run(test) for test in proxy_tests(MP)]
    assert [each.holds for each in outcomes] == [True, True, True, False]
    assert [each.test.quantifier for each in outcomes] == ["forall", "exists", "forall", "exists"]
    assert {each.test.name for each in outcomes} == {"mp:seen"}


def test_one_test_for_each_command():
    text = ".global x;\nd0.b0.t0 { st.weak [x], 1; }\nd0.b1.t0 { ld.weak r1, [x]; }\nd1.b0.t3 { ld.weak r2, [x]; }\n"
    commands = "permit (r1 == 1 && r2 != 1) as a;\nassert (r1 == 1 || r2 == 0);\ncheck (not r1 == 1) as b;"
    tests = proxy_tests(text + commands)
    assert [(test.name, run(test).holds) for test in tests] == [("mp:a", True), ("mp", False), ("mp:b", True)]
    assert [(thread.gpu, thread.cta) for thread in tests[0].threads] == [(0, 0), (0, 1), (1, 0)]
    assert run(proxy_tests(text)[0]).holds and proxy_tests(text)[0].condition is None


PROXY_REFUSED = [
    (".global x;\nd0.b0.t0 { st.weak [y], 1; }", 2, 21, "no location 'y'"),
    (".global x;\n.global x;", 2, 9, "declared twice"),
    (".surfref s virtually aliases x;", 1, 30, "no location 'x'"),
    (".global x;\n.texref t;", 2, 10, "'virtually aliases'"),
    (".global x;\nd0.b0.t0 { st.weak [x], 1 }", 2, 27, "expected ';'"),
    (".global x;\nd0.b0.t0 { st.weak [x], 1 == 2; }", 2, 30, "returns no value"),
    (".global x;\nd0.b0.t0 { ld r0, [x]; }\nd0.b0.t1 { ld r0, [x]; }\npermit (r0 == 1);", 4, 9, "several threads"),
    (".global x;\nd0.b0.t0 { ld.weak r0, [x]; }\npermit (r9 == 1);", 3, 9, "no location 'r9'"),
    (".global x;\nfoo", 2, 1, "expected a declaration"),
    (".global x;\nd0.b0.t0 { $3 }\n$$\n a | b", 4, 1, "no text for '$3'"),
    (".global x;\n$$\n", 2, 1, "expected 1 to 1000 rows"),
    (".global x;\nd0.b0.t0 { st.weak [x], 1;", 2, 26, "expected an instruction"),
]  # fmt: skip


@rows(("text", "line", "column", "message"), PROXY_REFUSED)
def test_proxy_tests_refused(text, line, column, message):
    with pytest.raises(PtxError) as caught:
        proxy_tests(text)
    found = caught.value.diagnostics[0]
    assert message in found.message and (found.line, found.column) == (line, column), (found, found.line, found.column)


# --- barriers with a count, and threads that are left over ------------------------------------------------------------

COUNT = """PTX t
{{ x=0; y=0; }}
 P0@cta 0,gpu 0        | P1@cta 0,gpu 0      | P2@cta 0,gpu 0      ;
 st.weak x, 1          | barrier.sync 1, {0} | barrier.sync 1, {0} ;
 ld.weak r1, y         | ld.weak r0, x       | st.weak y, 1        ;
 barrier.sync 1, {0}   |                     |                     ;
 {1}                   |                     |                     ;
{2}
"""

LEFT = [
    # count, P0's last instruction, condition, whether it comes true
    (2, "", "exists (P1:r0 == 0)", True),  # P1 and P2 meet, P0 is left over
    (2, "", "exists (P0:r1 == 1)", True),  # read before P0 waits for ever
    (2, "ld.weak r2, y", "exists (P0:r2 == 0 /\\ P1:r0 == 0)", False),  # whoever is left over reads nothing
    (3, "", "exists (P1:r0 == 0)", False),  # all meet
    (4, "", "exists (P0:r1 == 0)", False),  # nobody meets: the test has no outcome
    (2, "bar.sync 3", "exists (P1:r0 == 0)", True),
]


@rows(("count", "last", "condition", "allowed"), LEFT)
def test_threads_left_over_at_a_barrier(count, last, condition, allowed):
    outcomes = run(read(COUNT.format(count, last, condition)))
    assert outcomes.allowed == allowed, outcomes.states
    assert (outcomes.left_over > 0) == (count == 2)


def test_nobody_waits_without_a_count_for_a_thread_that_is_left_over():
    text = COUNT.format(2, "bar.sync 3", "exists (P1:r0 == 0)").replace("| st.weak y, 1   ", "| bar.sync 3      ")
    assert not run(read(text)).allowed


@rows(("initial", "threads", "fence", "message"), [
    (".global x = 0; y = 0;", 1, "shared::cta", "needs the state space of 'y'"),
    ("x = 0; .shared y = 0;", 1, "global", "needs the state space of 'x'"),
    (".global x = 0; .shared y = 0;", 2, "shared::cta", "which CTA's shared memory 'y' is in"),
    (".global x = 0; .shared y = 0;", 2, "shared::cluster", ""),
    (".global x = 0; .shared y = 0;", 2, "global", ""),
])  # fmt: skip
def test_a_fence_of_one_state_space_needs_to_know_them(initial, threads, fence, message):
    head = " | ".join(f"P{n}@cta {n},gpu 0" for n in range(threads))
    rows_ = [" | ".join([f"fence.proxy.async.{fence}"] * threads), " | ".join(["st.weak y, 1"] * threads)]
    test = read(f"PTX t\n{{ {initial} }}\n{head} ;\n" + "".join(row + " ;\n" for row in rows_) + "exists (x == 0)\n")
    if not message:
        assert run(test).holds
        return
    with pytest.raises(PtxError, match=message):
        run(test)


def test_hints_to_caches_order_nothing():
    text = "PTX t\n{ x = 0; }\nP0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n"
    text += "st.relaxed.gpu.global.L1::no_allocate.u32 [x], 1 | ld.acquire.gpu.L1::evict_last.L2::128B.u32 r0, [x] ;\n"
    assert len(run(read(text + "exists (P1:r0 == 1)")).states) == 2
    with pytest.raises(PtxError, match=r"L2::cache_hint.*not modelled \(section 9.7.9.8\)"):
        read(text.replace("L2::128B", "L2::cache_hint") + "exists (P1:r0 == 1)")


def test_words_of_public_suites():
    """A reduction that acquires, which acquires nothing: it is no read operation (8.4); a place in the only system."""
    text = (
        "PTX t\n{ x = 0; f = 0; P0:%r0 = 0; }\nP0@sys 0, gpu 0, cta 0 | P1@cta 1, gpu 0, sys 0 ;\n"
        "st.weak x, 1 | red.acq_rel.gpu.plus f, 1 ;\nred.acq_rel.gpu.plus f, 1 | ld.weak %r0, x ;\n"
    )
    assert run(read(text + "exists (f == 2 /\\ P1:%r0 == 0)")).allowed
    handed_over = text.replace(
        "red.acq_rel.gpu.plus f, 1 | ld.weak", "red.acq_rel.gpu.plus f, 1 | ld.acquire.gpu %r1, f ;\n| ld.weak"
    )
    assert run(read(handed_over + "filter (f == 2) ~exists (P1:%r1 == 2 /\\ P1:%r0 == 0)")).holds
    with pytest.raises(PtxError, match="expected 'cta'"):
        read(text.replace("sys 0 ;", "sys 1 ;") + "exists (f == 2)")


def test_arrays():
    """By their elements in instructions and conditions, or by bytes; what has no initial value is 0."""
    text = (
        "PTX t\n{ .global .u32 a[4] = {1, 2, -3}; b[2]; }\nP0@cta 0,gpu 0 ;\nld.weak.u32 r0, a[1] ;\n"
        "ld.weak.u32 r1, [a+8] ;\nld.weak.u32 r2, [a+12] ;\nst.weak b[1], 7 ;\n"
    )
    condition = "(P0:r0 == 2 /\\ P0:r1 == 0xfffffffd /\\ P0:r2 == 0 /\\ a[0] == 1 /\\ b[0] == 0 /\\ b[1] == 7)"
    assert run(read(text + "forall " + condition)).holds
    for wrong, message in (("a[1] = {1, 2}", "2 initial values for 1 elements"), ("a[9999]", "1 to 1024 bytes"),
                           ("a[] = {}", "1 to 1024 bytes"), ("a[2] = 1", "expected ';'")):  # fmt: skip
        with pytest.raises(PtxError, match=message):
            read(text.replace("a[4] = {1, 2, -3}", wrong) + "exists (a[0] == 1)")


def test_constants_sets_and_comments():
    text = (
        "PTX t\nGenerator=by hand {not values}\n{ constexpr int N = 3; x = N; .reg .u32 P0:r7 = N; }\n"
        "P0@cta 0,gpu 0 ; # one thread\nadd r0, r7, N ;\nst.weak x, r0 ;\n"
    )
    assert run(read(text + "forall (x in {5, 6} /\\ P0:r0 <> N)")).holds
    assert not run(read(text + "exists (x in {5, N})")).allowed
    with pytest.raises(PtxError, match="after 'in'"):
        read(text + "exists (x in 5)")


def test_initial_values_may_be_missing():
    """Then all are 0; braces of vectors are none."""
    rows_ = " P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n st.weak x, 1 | ld.weak.v2.u32 {r0, r1}, x ;\n"
    with_, without = (run(read(f"PTX t\n{braces}{rows_}exists (P1:r0 == 1)\n")) for braces in ("{ }\n", ""))
    assert without.allowed and without.states == with_.states
    with pytest.raises(PtxError, match="initial values after the name"):
        read("PTX t\nexists (x == 1)\n")


# --- variants of the format of herd -----------------------------------------------------------------------------------

VARIANT = """PTX MP
{{ {} }}
{}
st.relaxed.gpu x, 1   | ld.acquire.gpu r0, y  ;
st.release.gpu y, 1   | ld.relaxed.gpu r1, x  ;
{}
"""
PLACES, DECLARED = "P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;", "x = 0; y = 0;"
NEVER = "~exists (P1:r0 == 1 /\\ P1:r1 == 0)"


@rows("declared", ["int x = 0, y = 0;", ".u32 x, y = 0", "volatile int x; global y = 0;", "int *x, *y;",
                   "x = 0x0; y = 0u", "P0:r0 = 0, P1:r1 = 0; x, y", "1:.reg .pred p1; 1:.reg .s32 r0;",
                   "uint64_t x = 0;\n(* y *)", "[x] = 0; [y] = 0", "uint64_t *0:r8 = x; unsigned long 1:r9 = y;",
                   ".reg .b64 0:r8 = x; x; y", "atomic_int x; _Atomic int y; bool z;", "x = -0; y = +0",
                   "t @ texture alias x; y = 0", "P0:$r8 = 0; 1:%r9 = 0;", "size_t x; short y",
                   ".global.u32 x; .shared.b64 y = 0"])  # fmt: skip
def test_declarations(declared):
    assert run(read(VARIANT.format(declared, PLACES, NEVER))).holds


@rows("places", ["P0 @ cta 0, gpu 0|P1 @ cta 1, gpu 0;", "P0@CTA=0,GPU=0 | P1@CTA=1,GPU=0;",
                 "P0@cta0,gpu0 | P1@cta1,gpu0;", "P0@gpu 0,cta 0 | P1@gpu 0,cta 1;", "P0@block 0 | P1@block 1;",
                 "P0@thread 0,warp 0,cta 0,gpu 0 | P1@thread 1,warp 1,cta 0,gpu 0;",
                 "P0@cta 0,device 0,sys 0 | P1@cta 1,device 0,sys 0;", "P0@cta(0),gpu(0) | P1@cta(1),gpu(0);",
                 "P0@(cta 0, gpu 0) | P1@[cta 1, gpu 0];", "P0 @cta 0 @gpu 0 | P1 @cta 1 @gpu 0;",
                 "P0@cta 0 gpu 0 | P1@cta 1 gpu 0;", "p0@cta_0,gpu_0 | p1@cta_1,gpu_0;",
                 "T0@cta 0.gpu 0|T1@cta 1.gpu 0;",
                 "P0@cta 0,cluster 0,gpu 0 | P1@cta 0,cluster 1,gpu 0;"])  # fmt: skip
def test_places(places):
    test = read(VARIANT.format(DECLARED, places, NEVER))
    assert run(test).holds and [thread.gpu for thread in test.threads] == [0, 0]
    assert [thread.warp for thread in test.threads] == [0, int("warp" in places)]


@rows("condition", ["~(exists (1:r0 = 1 /\\ 1:r1 = 0))", "forall (1:r0 = 1 -> 1:r1 = 1)",
                    "~exists (1:r0 = 1UL /\\ 1:r1 = 0x0l)", "not exists (P1:r0 = 1 and P1:r1 = 0)",
                    "forall 1:r0=0 or 1:r1=1", "exists 0==0", "filter (P1:r0 == 1) forall (P1:r1 == 1)",
                    "locations [x; 1:r0;] exists (true);",
                    "forall (r0 == 1 => %r1 == 1)", "exists (P1:$r0 == 1 & P1:%r1 == 1)",
                    "forall (1:r0 = 0 | 1:r1 = 1)",
                    "forall (P1:r0 == 1 => P1:r1 == 1)", "exists (P1:r0 == P1:r1 && [x] = 1)"])  # fmt: skip
def test_conditions(condition):
    assert run(read(VARIANT.format(DECLARED, PLACES, condition))).holds


@rows("head", ["PTX MP", "ptx MP", "PTXv7_5 MP", "GPU_PTX MP", "PTX7.5 MP", "PTX\nMP", 'PTX "MP"'])
def test_headings(head):
    assert run(read(VARIANT.format(DECLARED, PLACES, NEVER).replace("PTX MP", head))).holds


@rows("instruction", ["st.relaxed.gpu *x, 1", "st_relaxed.gpu &x, 1", "atom_add.relaxed.gpu r5, x, 1",
                      "red_plus.relaxed.gpu x, 1", "mov $r5, 1 ;\n st.relaxed.gpu x, $r5"])  # fmt: skip
def test_spellings_of_a_store(instruction):
    assert run(read(VARIANT.replace("st.relaxed.gpu x, 1 ", instruction).format(DECLARED, PLACES, NEVER))).holds


def test_constant_memory_has_a_proxy_of_its_own():
    text = "PTX t\n{ x = 0; c @ constant aliases x; }\n P0@cta 0,gpu 0 ;\n st.weak x, 1 ;\n "
    for fence, allowed in (("", True), ("fence.proxy.constant ;\n ", False)):
        assert run(read(text + fence + "ld.const r0, c ;\nexists (P0:r0 == 0)\n")).allowed == allowed


def test_a_barrier_with_three_operands_has_an_instance():
    rows_ = "st.weak x, 1 | barrier.cta.sync 0, 1, 2 ;\n barrier.cta.sync 0, 1, 2 | ld.weak r0, x ;\n"
    text = f"PTX t\n{{ x = 0; }}\n P0@cta 0,gpu 0 | P1@cta 0,gpu 0 ;\n {rows_}forall (P1:r0 == 1)\n"
    assert run(read(text)).holds and run(read(text.replace("0, 1, 2 |", "1, 1, 2 |"))).executions == 0


@rows("instruction, value", [
    ("mul.hi.s32 r0, -1, 5", 0xFFFFFFFF), ("mul.hi.u32 r0, 0x80000000, 6", 3), ("popc.b32 r0, -1", 32),
    ("mad.wide.u32 r0, 0x80000000, 2, 0x100000001", 0x200000001), ("mad.hi.u32 r0, 0x80000000, 6, 4", 7),
    ("sad.s32 r0, -1, 2, 10", 13), ("sad.u32 r0, 1, 4, 0", 3), ("abs.s32 r0, -7", 7), ("clz.b32 r0, 1", 31),
    ("clz.b64 r0, 0", 64), ("brev.b32 r0, 0xc0000000", 3), ("popc.b64 r0, -1", 64),
])  # fmt: skip
def test_arithmetic(instruction, value):
    """As 9.7.1 has them."""
    assert run(read(f"PTX t\n{{ x = 0; }}\n P0@cta 0,gpu 0 ;\n {instruction} ;\nforall (P0:r0 == {value})\n")).holds


@rows("end, message", [("~(exists (x = 1)", "expected ')' after the condition"),
                       ("exists (x = 1 and)", "expected a register, a location"),
                       ("~(forall (x = 1))", "expected 'exists'")])  # fmt: skip
def test_conditions_without_an_end(end, message):
    with pytest.raises(PtxError) as caught:
        read(VARIANT.format(DECLARED, PLACES, end))
    assert message in caught.value.diagnostics[0].message


# --- endings and places of others -------------------------------------------------------------------------------------

FINAL = "PTX t\n{ x = 0; }\n P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n st.weak x, 1 | ld.weak r0, x ;\n"


@rows(("end", "quantifier", "holds"), [
    ("final (P1:r0 == 1)", "exists", True),
    ("final (P1:r0 == 2)", "exists", False),
    ("final P1:r0 = 1 with tso: exists; PTX: forall;", "forall", False),
    ("final (1:r0 = 2)\nwith power: exists; ptx: ~exists", "~exists", True),
    ("locations [x[0]; 1:r0;]\nfinal (x = 1) with cc: ~exists;\n", "exists", True),
])  # fmt: skip
def test_final(end, quantifier, holds):
    """As others read it: some final state satisfies the condition, unless the test expects something else of PTX."""
    outcomes = run(read(FINAL + end))
    assert (outcomes.test.quantifier, outcomes.holds) == (quantifier, holds)


@rows(("end", "message"), [
    ("final", "a register, a location or a number"), ("final (x = 1) with tso exists", "':' after the name"),
    ("final (x = 1) with tso: final", "'exists', 'forall'"), ("final (x = 1) exists (x = 1)", "the end of the test"),
])  # fmt: skip
def test_final_refused(end, message):
    with pytest.raises(PtxError, match=message):
        read(FINAL + end)


MAPA = """PTX t
{{ {} }}
 P0@cta 0,{} | P1@cta 1,{} ;
 mapa.shared::cluster.u64 r1, x, {} | ld.weak.b64 r0, x ;
 st.weak.b64 [r1], 7 |  ;
"""


def test_mapa_leads_to_the_variable_of_another_cta():
    """A variable in shared memory is one in each CTA, and conditions name each of them."""
    cluster = "cluster 0,gpu 0"
    for rank, final in ((0, (7, 1)), (1, (1, 7))):
        outcomes = run(read(MAPA.format(".shared x = 1;", cluster, cluster, rank) + "locations [x; x@1]"))
        assert outcomes.names == ("x", "x@1") and set(outcomes.states) == {final}


@rows(("initial", "first", "second", "rank", "message"), [
    (".shared x = 0;", "cluster 0,gpu 0", "cluster 0,gpu 0", 2, "no location"),
    (".shared x = 0;", "cluster 0,gpu 0", "cluster 1,gpu 0", 1, "no location"),
    (".global x = 0;", "cluster 0,gpu 0", "cluster 0,gpu 0", 1, "without '.shared' variables"),
    ("x = 0; .shared y aliases x;", "cluster 0,gpu 0", "cluster 0,gpu 0", 1, "shared"),
])  # fmt: skip
def test_mapa_refused(initial, first, second, rank, message):
    """No CTA of the cluster has that rank, or the variable is in no shared memory."""
    with pytest.raises(PtxError, match=message):
        run(read(MAPA.format(initial, first, second, rank) + "exists (x == 7)"))


def test_mapa_needs_places():
    with pytest.raises(PtxError, match="mapa"):
        read("PTX t\n{ .shared x = 0; }\n P0 | P1 ;\n mapa.u64 r1, x, 1 | ld.weak r0, x ;\nexists (x == 1)\n")


def test_comments_may_be_inside_of_comments():
    text = OLD + "(* one (* two *) (* three (* four *) *) five *)\n" + SB
    assert run(read(text)).states == run(read(OLD + SB)).states
    with pytest.raises(PtxError, match="this comment or text has no end"):
        read(OLD + "(* one (* two *)\n" + SB)


STORES = "PTX t\n{ x = 0; y = 0; }\n P0@cta 0,gpu 0 ;\n st.weak x, 1 ;\n st.weak y, 2 ;\n"


@rows(("end", "holds"), [
    ("exists (*x == 1 /\\ *y == 2)", True),
    ("exists (*x=1)", True),
    ("forall ((*x = 1) /\\ ~(*y = 3)) (* a comment *)", True),
    ("~exists (*y=1 /\\ (*x=1 \\/ *x=0))", True),
    ("filter (*x = 1)\nforall (*y = 3)", False),
    ("exists (* a comment *) (*x = 0)", False),
])  # fmt: skip
def test_what_a_name_points_to_is_the_location(end, holds):
    """Behind a parenthesis `*` begins no comment, unless one ends."""
    assert run(read(STORES + end + "\n")).holds == holds


@rows("text", [" " * 5000 + "SB", "(* x *) " * 200 + "SB", "// x\n" * 2000 + "SB", "/* x */" * 200 + "\n\t " * 300,
               "(*" * 3000, "\ufeff" + "\n" * 5000])  # fmt: skip
def test_what_does_not_begin_as_a_test(text):
    with pytest.raises(PtxError, match="begins with 'PTX'"):
        read_tests(Source(text, "x"))


def test_damaged_tests_are_errors_with_a_position():
    """Words of all tests of the test data, left out, exchanged and inserted at random."""
    generator = random.Random(7)
    texts = [path.read_text("utf-8") for path in NO_CYCLES]
    words = [word for text in texts for word in re.findall(r"\s+|[\w.:$%]+|.", text)]
    refused = 0
    for text in texts:
        found = re.findall(r"\s+|[\w.:$%]+|.", text)
        for _ in range(generator.choice((1, 1, 3))):
            at = generator.randrange(len(found))
            found[at : at + generator.choice((0, 1, 1, 2))] = generator.choices(words, k=generator.choice((0, 1)))
        damaged = "".join(found)
        try:
            read(damaged)
        except PtxError as error:
            refused += 1
            for problem in error.diagnostics:
                assert problem.message and problem.span is not None and 0 <= problem.span[0] <= len(damaged)
    assert refused > len(texts) // 4
