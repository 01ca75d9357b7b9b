"""tcgen05: what files of tests may say. The verdicts are those of testdata/litmus: Tcgen+."""

import pytest

from ptxtools.diagnostics import PtxError
from ptxtools.model.executions import run
from ptxtools.model.tensor_loads import REGISTERS, cells, reduced
from ptxtools.sim.tensor.transfer import places
from tests.model.suite import read
from tests.rows import rows

TEST = "PTX t\n{{ {} }}\nP0@cta 0,gpu 0 ;\n{} ;\n{}"
MEMORY = "tmem d = 7; .u32 tmem t[4] = {1, 2, 3, 4}; .shared a = 2; .shared b = 3; mbarrier m = 1"
MMA = "tcgen05.mma.cta_group::1.kind::f16 "
LD, ST = "tcgen05.ld.sync.aligned.32x32b.x2.b32 ", "tcgen05.st.sync.aligned.32x32b.x2.b32 "


@rows("instruction, message", [
    ("ld.weak r1, d", "only tcgen05 instructions may access tensor memory"),
    ("cp.async.ca.shared.global [d], [a], 8", "only tcgen05 instructions may access tensor memory"),
    (LD + "r1, [a]", "'a' is not in tensor memory"),
    (LD + "{r1, r2, r3}, [t]", "has at most 2 registers"),
    ("tcgen05.ld.sync.aligned.16x256b.x1.b32 {r1, r2, r3, r4}, [t]", None),
    ("tcgen05.ld.sync.aligned.16x64b.x1.b32 {r1, r2}, [t]", "has at most 1 registers"),
    ("tcgen05.st.red.sync.aligned.32x32b.x2.min.u32 [t], {r1, r2}", "is not modelled (section 9.7.16"),
    ("tcgen05.ld.red.sync.aligned.32x32b.x2.add.u32 {r1, r2}, r3, [t]", "is not modelled (section 9.7.16"),
    (LD + "{r1, r2}, [t+12]", "the offset leads out of the location"),
    (ST + "[t], {r1 r2}", "expected ','"),
    ("tcgen05.ld.sync.aligned.7x7b.x1.b32 r1, [t]", "is not modelled (section 9.7.16"),
    ("tcgen05.wait::mma.sync.aligned", "is not modelled (section 9.7.16"),
    ("tcgen05", "is not modelled"),
    (MMA + "[d], [a], b, 0, 1", None),
    (MMA + "[a], a, b, 0, 1", "'a' is not in tensor memory"),
    (MMA + "[d], a, d, 0, 1", "'d' is in tensor memory"),
    (MMA + "[d], a, b, 0", "needs an instruction descriptor and a predicate"),
    (MMA.replace("::1.", "::3.") + "[d], a, b, 0, 1", "is not modelled (section 9.7.16"),
    (MMA + "[d], a, b, 0, {0, 0, 0, 0}, 1", None),
    ("ld.weak r1, a ;\n" + MMA + "[d], a, b, 0, r1", "a predicate that depends on a read"),
    ("tcgen05.commit.cta_group::1.mbarrier::arrive::one.multicast::cluster.b64 [m], 3", "the cluster has no CTAs"),
    ("tcgen05.alloc.cta_group::1.sync.aligned.b32 [a], 32", "is not modelled (section 9.7.16.7.1)"),
])  # fmt: skip
def test_refused(instruction, message):
    if message is None:
        assert run(read(TEST.format(MEMORY, instruction, ""))).executions
        return
    with pytest.raises(PtxError) as caught:
        run(read(TEST.format(MEMORY, instruction, "")))
    assert message in caught.value.diagnostics[0].message


def outcome(condition, *instructions, initial=MEMORY):
    return run(read(TEST.format(initial, " ;\n".join(instructions), condition)))


def test_elements():
    """Registers are consecutive elements; a copy fills a location from a place on; a shift moves its rows down."""
    found = outcome("forall (P0:r1 == 9 /\\ P0:r2 == 4)", ST + "[t+4], {8, 9}", "tcgen05.wait::st.sync.aligned",
                    LD + "{r1, r2}, [t+8]")  # fmt: skip
    assert found.holds and found.executions == 1
    assert outcome("forall (t == 1 /\\ t[1] == 2 /\\ t[2] == 5 /\\ t[3] == 6)",
                   "tcgen05.cp.cta_group::1.128x256b [t+8], s",
                   initial=MEMORY + "; .u32 .shared s[4] = {5, 6, 7, 8}").holds  # fmt: skip
    assert outcome("forall (t == 2 /\\ t[1] == 3 /\\ t[2] == 4 /\\ t[3] == 4)",
                   "tcgen05.shift.cta_group::1.down [t]").holds  # fmt: skip


def test_scales_and_metadata_are_read_in_tensor_memory():
    """So they need what the factors need: here a wait for the store."""
    stored, product = ST.replace("x2", "x1") + "[t], 5", MMA + "[d], a, b, 0, [t], [t+4], 0"
    assert outcome("", stored, product).races
    assert not outcome("", stored, "tcgen05.wait::st.sync.aligned", product).races


@rows("shape, count", [(shape, count) for shape in REGISTERS if shape != "16x32bx2" for count in (1, 2, 8)])
def test_registers_are_the_cells_that_the_simulator_has(shape, count):
    count *= REGISTERS[shape]
    lanes, columns = places(shape, count)
    for thread in range(32):
        expected = list(zip(lanes[:, thread].tolist(), columns[:, thread].tolist(), strict=True))
        assert cells(shape, thread, count) == expected


@rows("rule, values, found", [
    ("min.u32", (3, 0x80000000, 5), 3), ("max.u32", (3, 0x80000000, 5), 0x80000000),
    ("min.s32", (3, 0x80000000, 5), 0x80000000), ("max.s32", (0xFFFFFFFF, 0x80000000), 0xFFFFFFFF),
    ("min.f32", (0, 0x80000000), 0x80000000), ("max.f32", (0xC0000000, 0xBF800000), 0xBF800000),
    ("max.abs.f32", (0xC0000000, 0x3F800000), 0x40000000), ("min.f32", (0x7FC00000, 0x3F800000), 0x3F800000),
    ("min.NaN.f32", (0x7FC00000, 0x3F800000), 0x7FFFFFFF), ("max.abs.NaN.f32", (0xFFC00000,), 0x7FFFFFFF),
])  # fmt: skip
def test_reduced(rule, values, found):
    """9.7.16.8.3; -0 is less than +0."""
    assert reduced(rule, values) == found


def test_a_load_with_a_reduction():
    """The reduced value depends on all that is read: here an element may be old."""
    test = TEST.format(MEMORY, "tcgen05.st.sync.aligned.32x32b.x1.b32 [t+4], 9 ;\n"
                       "tcgen05.ld.red.sync.aligned.32x32b.x4.max.u32 {r1, r2, r3, r4}, {r5}, [t]",
                       "exists (P0:r5 == 4)\n")  # fmt: skip
    found = run(read(test))
    at = found.names.index("P0:r5")
    assert found.allowed and {state[at] for state in found.states} <= {4, 9}
    assert not run(read(test.replace("9 ;\n", "9 ;\ntcgen05.wait::st.sync.aligned ;\n"))).allowed
