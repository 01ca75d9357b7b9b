"""What the warning rules see of the seeded bugs in testdata/bugs without a run; of their corrections nothing."""

from __future__ import annotations

from collections import Counter

import pytest

from ptxtools.linter import lint
from ptxtools.syntax import parse
from tests.observe import bugs

FILES = sorted(bugs.FOLDER.glob("*.bugs"))

_SIZE = "the launch says how large a buffer is"
_CALLS = "what functions are given and give back is not followed"
_FACTORS = "what products read is not compared with what was written"
_DISCARD = "what discard leaves is not followed"
_TABLES = "warps are not walked through tables of branches and functions"
#: The bugs that no rule sees, and why.
UNSEEN = {
    "buffer_not_written": "the host may have filled b, which the kernel only reads",
    "buffer_half_written": "the host may have filled words 60 to 63 of b, which the kernel leaves as they are",
    "buffer_accumulated_without_zero": "the host may have set the word of b to zero",
    "tail_of_a_record_never_set": "the host may have set words 2 and 3 of each record of b",
    "tensor_store_source_overwritten": "the map says whether byte 16 of sh is copied: of a box of four words it is not",
    "tensor_store_read_back": "the map may be over another buffer than a",
    "map_that_is_none": "b may point to a map that the host has put into global memory",
    "producer_warp_does_not_wait_for_the_grid_before":
    "the map may be over a buffer that the grid before does not write",
    "tensor_store_of_nothing": "the map says whether words 24 to 31 of sh are copied",
    "stack_array_indexed_by_data": "the words of b are indices: where they are 0, all accesses are inside of the array",
    "three_arrive_where_two_are_counted":
    "two warps are walked, and it takes a third one: any two of them complete the phase",
    "one_behind_the_buffer": _SIZE, "one_before_the_second_buffer": _SIZE, "a_row_before_the_second_buffer": _SIZE,
    "atomic_outside": _SIZE, "bulk_copy_beyond_the_buffer": _SIZE, "rest_of_a_row_copied_beyond_the_buffer": _SIZE,
    "loop_to_the_last_element_and_one_more": _SIZE, "second_part_of_dynamic_memory": _SIZE,
    "called_by_a_table": _TABLES, "table_uni": _TABLES,
    "result_of_a_function_never_set": _CALLS, "result_in_memory_never_set": _CALLS,
    "register_of_a_function_never_set": _CALLS, "argument_half_set": _CALLS, "guarded_call_uni": _CALLS,
    "memory_given_back_on_the_stack": "the stack is not followed",
    "predicate_of_a_select": "a predicate that one guard sets is taken to be set",
    "bytes_of_one_word_by_two_warps": "parts of words are not followed",
    "wgmma_part_of_b_not_written": _FACTORS, "tcgen05_a_not_written": _FACTORS, "scales_copied_from_nowhere": _FACTORS,
    "second_stage_of_b_not_written": _FACTORS,
    "discarded_before_it_is_read": _DISCARD, "discarded_and_half_written_anew": _DISCARD,
    "discarded_by_the_grid_before": _DISCARD, "discard_of_half_a_line": _DISCARD,
    "discarded_beside_a_reader": _DISCARD,
    "stack_array_used_before_it_is_filled": "the stack is not followed",
    "cp_async_of_sixteen_to_eight": _SIZE,
    "map_built_by_lanes_and_changed_by_one": "changes of a map in shared memory are no stores for the walk",
    "copied_factor_without_a_proxy_fence": "copies of cp.async are no stores for the fence of a product",
    "scales_overwritten_before_they_are_copied": "what tcgen05.cp reads is not followed",
    "freed_by_a_thread_that_does_not_own_it": "pointers in shared memory are not followed",
    "high_word_of_an_address_never_set": "halves of a register pair are not told apart",
    "map_in_shared_memory_copied_before_its_fields": "changes of a map in shared memory are no stores for the walk",
    "fill_of_padding_columns_left_out": "of what long loops store not all is followed",
    "local_address_given_to_a_neighbour": "pointers in shared memory are not followed",
    "memory_of_a_barrier_that_lives": "what a copy writes is not compared with mbarriers",
    "store_by_a_copy_of_nothing": "what copies read is not compared with what was written",
}  # fmt: skip


def hazards(pair: bugs.Pair, sign: str) -> list[str]:
    size = f".param .u64 b) .reqntid {pair.number('block', 64)} {{"  # what the launch says
    if pair.number("cluster", 1) > 1:
        size = size.replace("{", f".reqnctapercluster {pair.number('cluster', 1)} {{")
    found = parse(pair.text(sign).replace(".param .u64 b) {", size), "k.ptx")
    assert not found.diagnostics
    hazards = [d for d in lint(found.module) if d.code.startswith(("PTX5", "PTX606", "PTX609"))]
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
