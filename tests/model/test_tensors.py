"""Tensor maps, tensor copies and one-sided fences: what files of tests may say. The verdicts are those of
testdata/litmus: Tensor+, OneSided+ and Restrict+."""

import pytest

from ptxtools.diagnostics import PtxError
from ptxtools.model.executions import run
from tests.model.suite import read
from tests.rows import rows

TEST = "PTX t\n{{ {} }}\nP0@cta 0,gpu 0 ;\n{} ;\n"
LOAD = "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [b], [{}, {{{}}}], [m]"
STORE = "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [t, {0}], [b]"
MAPS = ".u32 x[8] = {1, 2, 3, 4, 5}; .u32 b[8] = {0}; tensormap t = x; mbarrier m = 1"

REFUSED = [
    (MAPS, LOAD.format("x", 0), "'x' is no tensor map"),
    (MAPS, LOAD.format("t", "r1"), None),
    (MAPS, "ld.weak r1, x ;\n" + LOAD.format("t", "r1"), "a coordinate that depends on a read"),
    (MAPS, LOAD.format("t", 5), None),
    (MAPS, LOAD.format("t", 10**20), None),
    (MAPS.replace("t = x", "t(shape = {8}, box = {8}) = x").replace("b[8]", "b[4]"), LOAD.format("t", 0),
     "the box leads out of 'b'"),
    (MAPS, LOAD.format("t", 0).replace("1d", "2d"), "expected 2 coordinates"),
    (MAPS, LOAD.format("t", "0, 0").replace("1d", "2d"), "a tensor map of 1 dimensions in an instruction for 2"),
    (MAPS, LOAD.format("t", 0).replace("1d", "6d"), "is not modelled (section 9.7.9.25.5.2)"),
    (MAPS, LOAD.format("t", 0).replace("global", "global.multicast::cluster"), "expected ','"),
    (MAPS, LOAD.format("t", 0).replace("global", "global.multicast::cluster") + ", 3", "the cluster has no CTAs for"),
    (MAPS, LOAD.format("t", 0).replace("global", "global.im2col") + ", {0}", "a tensor map for tile copies"),
    (MAPS, STORE.replace(".bulk_group", ".tile::scatter4.bulk_group").replace("1d", "2d"), "expected 5 coordinates"),
    (MAPS.replace("t = x", "t(shape = {2, 4}, box = {4, 1}) = x"), LOAD.format("t", 0), "the tensor map 't': strides"),
    (MAPS.replace("t = x", "t(form = 3) = x"), LOAD.format("t", 0), "a tensor map has no field 'form'"),
    (MAPS.replace("t = x", "t(shape = 3) = x"), LOAD.format("t", 0), "the tensor map 't'"),
    (MAPS.replace("t = x", "t[8 = x"), LOAD.format("t", 0), "expected ']'"),
    (MAPS.replace("t = x", "t = 3"), LOAD.format("t", 0), "expected a location, the tensor that the map describes"),
    (MAPS, "tensormap.replace.tile.global_dim.global.b1024.b32 [t], 5, 1", "a tensor has at most 5 dimensions"),
    (MAPS, "ld.weak r1, x ;\ntensormap.replace.tile.rank.global.b1024.b32 [t], r1 ;\n" + LOAD.format("t", 0),
     "a rank that depends on a read"),
    (MAPS, STORE.replace("bulk_group", "add.bulk_group"), "'.add' of"),
    (MAPS, STORE.replace("cp.", "cp.reduce."), "is not modelled (section 9.7.9.25.5.3)"),
    (MAPS, "fence.proxy.tensormap::generic.acquire.gpu [t], 64", "expected the size of a tensor map"),
    (MAPS, "fence.proxy.tensormap::generic.acquire.gpu [x], 128", "leads out of the location"),
    (MAPS, "fence.proxy.tensormap::generic.acq_rel.gpu", "is not modelled (section 9.7.13.4)"),
    (MAPS, "fence.proxy.tensormap::generic.release", "is not modelled (section 9.7.13.4)"),
    (MAPS, "fence.proxy.async::generic.release.cluster", "is not modelled (section 9.7.13.4)"),
    (MAPS, "fence.release.sync_restrict::shared::cluster.cluster", "is not modelled (section 9.7.13.4)"),
    (MAPS, "fence.release.sync_restrict::shared::cta.cluster", "this fence needs the state space of 'x'"),
    (MAPS, "tensormap.replace.tile.rank.global.b1024.b32 [t], 1 ;\n" + LOAD.format("t", 0), None),
    ("tensormap t", "mov r1, 0", "the tensor that the map describes"),
    (".shared @cta x = 1", "mov r1, 0", "expected the number of a CTA"),
    (".shared @gpu 0 x = 1", "mov r1, 0", "expected 'cta'"),
]  # fmt: skip


@rows("initial, instruction, message", REFUSED)
def test_refused(initial, instruction, message):
    if message is None:
        assert run(read(TEST.format(initial, instruction))).executions
        return
    with pytest.raises(PtxError) as caught:
        run(read(TEST.format(initial, instruction)))
    assert message in caught.value.diagnostics[0].message


BOX = """PTX t
{ .u32 x[8] = {1, 2, 3, 4, 5}; .u32 b[8] = {7, 8}; tensormap t = x; }
P0@cta 0,gpu 0 ;
cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [t, {2}], [b] ;
cp.async.bulk.commit_group ;
cp.async.bulk.wait_group 0 ;
forall (x[1] == 2 /\\ x[2] == 7 /\\ x[3] == 8 /\\ x[4] == 0 /\\ x[5] == 0 /\\ x[6] == 0)"""
OTHER = """PTX t
{ .u32 x[8] = {1}; .u32 y[4] = {9}; .u32 b[8] = {0}; tensormap t = x; mbarrier m = 1; }
P0@cta 0,gpu 0 ;
tensormap.replace.tile.global_address.b1024.b64 [t], PLACE ;
fence.proxy.tensormap::generic.release.cta ;
fence.proxy.tensormap::generic.acquire.cta [t], 128 ;
cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [b], [t, {0}], [m] ;
exists (b == 9)"""


def test_a_box_is_where_the_coordinate_says():
    found = run(read(BOX))
    assert found.holds and found.executions == 1


def test_a_map_may_describe_other_tensors_later():
    """What the map holds when it is read is what is copied; no tensor is where a number points to."""
    found = run(read(OTHER.replace("PLACE", "y")))
    assert {state[0] for state in found.states} == {9}
    assert not run(read(OTHER.replace("PLACE", "12345"))).executions
