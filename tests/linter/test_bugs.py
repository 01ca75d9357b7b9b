"""What the warning rules see of the seeded bugs in testdata/bugs without a run; of their corrections nothing."""

from __future__ import annotations

from collections import Counter

import pytest

from ptxtools.linter import lint
from ptxtools.syntax import parse
from tests.observe import bugs

FILES = sorted(bugs.FOLDER.glob("*.bugs"))

_MAP = "a tensor map is an argument of the launch"
_HOST = "the host may have written the buffer"
_GRID = "the launch says how many CTAs there are"
_ROLES = "it takes several warps, and what mbarriers tell them of work under way"
_DATA = "data decide it"
_PEERS = "what CTAs of a cluster do at mbarriers of one another is not followed"
_RELAXED = "relaxed operations on mbarriers are taken to tell"
_LANES = "that every lane of a warp does it may be meant"
#: The bugs that no rule sees, and why.
UNSEEN = {
    "one_behind_the_buffer": "that a has 64 words is in the launch alone; thread 63 stores to the next one",
    "atomic_outside": "that a has 64 words is in the launch alone; thread 31 updates the next one",
    "bulk_copy_beyond_the_buffer": "that b has 64 words is in the launch alone; 128 are copied",
    "rest_of_a_row_copied_beyond_the_buffer": "b's 76 words are in the launch alone; thread 19 copies the next 4",
    "loop_to_the_last_element_and_one_more": "b's 64 words are in the launch alone; one thread leaves them",
    "second_part_of_dynamic_memory": "that there are 256 bytes of dynamic shared memory is in the launch alone",
    "discarded_by_the_grid_before": "whether b is filled between two launches, the host decides",
    "freed_by_a_thread_that_does_not_own_it": "the pointer goes through shared memory, which is not kept",
    "local_address_given_to_a_neighbour": "the address goes through shared memory, which is not kept",
    "buffer_not_written": _HOST, "buffer_half_written": _HOST, "buffer_accumulated_without_zero": _HOST,
    "tail_of_a_record_never_set": _HOST, "tensor_store_source_overwritten": "the map says how many bytes are copied",
    "tensor_store_read_back": _MAP, "map_that_is_none": _MAP, "producer_warp_does_not_wait_for_the_grid_before": _MAP,
    "stack_array_indexed_by_data": _DATA,
    "slot_of_the_peer_filled_before_it_is_free": "mbarriers of two CTAs of a cluster are not followed",
    "bulk_store_awaited_behind_an_mbarrier": _ROLES, "product_of_the_last_cta_alone": _GRID,
    "barrier_of_the_warp_for_its_half": "halves of a warp are not told apart", "predicated_barrier": _DATA,
    "compaction_offsets_of_two_warps": _DATA, "three_arrive_where_two_are_counted": _DATA,
    "broadcast_from_outside_of_the_group": _DATA,
    "lock_given_back_by_a_relaxed_exchange": "the order of critical sections is open",
    "copy_to_the_peer_from_a_buffer_in_use": _PEERS, "remote_counter_never_set": _PEERS,
    "commit_of_the_pair_tells_one_cta": _PEERS, "stored_to_the_peer_beyond_its_memory": _PEERS,
    "tensor_reduction_of_what_no_fence_covers": _MAP,
    "test_wait_asked_once": "what is asked for once may be waited for elsewhere",
    "cluster_waited_for_twice": "turns of arrive and wait are not counted",
    "work_asked_for_and_never_expected": "bytes of an answer are not compared with those expected",
    "load_of_the_last_slot_never_waited_for": _ROLES,
    "st_async_without_a_place_in_the_count": _PEERS, "multicast_slot_given_back_to_one_cta": _PEERS,
    "bulk_load_told_by_relaxed_arrival": _RELAXED, "relaxed_wait_for_what_is_told": _RELAXED,
    "fence_before_the_relaxed_wait": _RELAXED,
    "atomics_through_two_sizes": "sizes of atomics to one place are not compared",
    "exchange_under_the_mask_of_the_active": "halves of a warp are not told apart", "release_at_another_word": _GRID,
    "peers_store_asynchronously_to_one_word": _PEERS, "stored_tile_told_of_after_its_read": _GRID,
    "loads_issued_by_every_lane": _LANES, "bytes_expected_by_every_lane": _LANES,
    "products_issued_by_every_lane": _LANES,
    "tensor_store_of_nothing": _MAP,
}  # fmt: skip


def hazards(pair: bugs.Pair, sign: str) -> list[str]:
    size = f".param .u64 b) .reqntid {pair.number('block', 64)} {{"  # what the launch says
    if pair.number("cluster", 1) > 1:
        size = size.replace("{", f".reqnctapercluster {pair.number('cluster', 1)} {{")
    found = parse(pair.text(sign).replace(".param .u64 b) {", size), "k.ptx")
    assert not found.diagnostics
    hazards = [d for d in lint(found.module) if d.code.startswith(("PTX5", "PTX606", "PTX609", "PTX612"))]
    for one in hazards:  # each says how sure it is
        assert [note.partition(":")[0] in ("certain", "possible") for note in one.help].count(True) == 1, one
    return [d.code for d in hazards]


@pytest.mark.share(3)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_bugs_are_seen_and_corrections_are_not(path) -> None:
    unseen, pairs = [], bugs.read(path)
    for pair in pairs:
        bug, correction = hazards(pair, "-"), hazards(pair, "+")
        # The frame's registers; a function that gives back a dead address, which the correction does not use; and code
        # behind a label to which only the bug branches.
        assert set(correction) <= {"PTX520", "PTX500", "PTX510"}, (pair.name, correction)
        if not Counter(bug) - Counter(correction):
            unseen.append(pair.name)
    print(f"{path.stem}: {len(pairs) - len(unseen)} of {len(pairs)} bugs are seen")
    print("".join(f"  {name}: {UNSEEN.get(name, 'not seen')}\n" for name in unseen), end="")
    assert set(unseen) == {pair.name for pair in pairs} & UNSEEN.keys()
