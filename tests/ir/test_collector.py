"""Trees are made without collections and leave nothing to collect."""

import gc

import pytest

from ptxtools.container import decode_all, read, write
from ptxtools.ir import collector
from ptxtools.ir.collector import CollectorOff
from ptxtools.syntax import parse

TEXT = ".version 8.0\n.target sm_80\n.address_size 64\n.entry k(.param .u64 p) { .reg .b64 %rd<3>; " + (
    "ld.param.u64 %rd1, [p]; add.s64 %rd2, %rd1, 8; ret; }\n")  # fmt: skip


def collections():
    return [generation["collections"] for generation in gc.get_stats()]


def test_nothing_is_collected_inside_and_what_was_made_is_old_afterwards(monkeypatch):
    monkeypatch.setattr(CollectorOff, "_unseen", 0)  # other tests have made objects, too
    gc.collect()  # so that none is due before it is off
    before = collections()
    with CollectorOff():
        assert not gc.isenabled()
        made = [[] for _ in range(10_000)]
    assert gc.isenabled() and collections() == before
    assert any(item is made for item in gc.get_objects(generation=2))


def test_a_collector_that_is_off_stays_off():
    gc.disable()
    try:
        with CollectorOff():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_garbage_of_others_is_found_in_the_end(monkeypatch):
    """Old objects are looked through after so many new ones, however they came."""
    monkeypatch.setattr(collector, "_MOST_UNSEEN", 5_000)
    full = collections()[2]
    for _ in range(20):
        with CollectorOff():
            for _ in range(500):
                cycle = []
                cycle.append(cycle)
    assert collections()[2] > full


@pytest.mark.parametrize("make", [lambda: parse(TEXT, "x"), lambda: decode_all(read(write(parse(TEXT, "x").module)))],
                         ids=["parse", "read"])  # fmt: skip
def test_a_tree_is_no_garbage_when_it_is_dropped(make):
    """It holds no cycles: the last reference frees it."""
    make()
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        make()
        gc.collect()
        left = [item for item in gc.garbage if type(item).__module__.startswith("ptxtools")]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
    assert left == []  # other threads and libraries may leave theirs
