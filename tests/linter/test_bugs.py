"""What the warning rules see of the seeded bugs in testdata/bugs without a run; of their corrections nothing."""

from __future__ import annotations

from collections import Counter

import pytest

from ptxtools.linter import lint
from ptxtools.syntax import parse
from tests.observe import bugs

FILES = sorted(bugs.FOLDER.glob("*.bugs"))

#: The bugs that no rule sees, and why.
UNSEEN = {
    "one_behind_the_buffer": "that a has 64 words is in the launch alone; thread 63 stores to the next one",
    "atomic_outside": "that a has 64 words is in the launch alone; thread 31 updates the next one",
    "bulk_copy_beyond_the_buffer": "that b has 64 words is in the launch alone; 128 are copied",
    "rest_of_a_row_copied_beyond_the_buffer": "b's 76 words are in the launch alone; thread 19 copies the next 4",
    "loop_to_the_last_element_and_one_more": "b's 64 words are in the launch alone; one thread leaves them",
    "second_part_of_dynamic_memory": "that there are 256 bytes of dynamic shared memory is in the launch alone",
    "discarded_by_the_grid_before": "whether b is filled between two launches, the host decides",
    "buffer_not_written": "the host may have filled b, which the kernel only reads",
    "buffer_half_written": "the host may have filled words 60 to 63 of b, which the kernel leaves as they are",
    "buffer_accumulated_without_zero": "the host may have set the word of b to zero",
    "tail_of_a_record_never_set": "the host may have set words 2 and 3 of each record of b",
    "tensor_store_source_overwritten": "the map says how many bytes are copied",
    "tensor_store_read_back": "the map may be over another buffer than a",
    "map_that_is_none": "b may point to a map that the host has put into global memory",
    "producer_warp_does_not_wait_for_the_grid_before":
    "the map may be over a buffer that the grid before does not write",
    "stack_array_indexed_by_data": "the words of b are indices: where they are 0, all accesses are inside of the array",
    "tensor_store_of_nothing": "the map says whether words 24 to 31 of sh are copied",
    "structure_of_a_buffer_taken_apart":
    "the host may have set bytes 4 to 7 of each record of b; only byte 0 is stored",
    "byte_of_a_field_kept_by_lop3": "the host may have set byte 1 of each record of b; only byte 0 is stored",
    "sum_of_a_half_written_word": "the host may have set bytes 1 to 3 of each record of b; only byte 0 is stored",
    "gathered_rows_are_four_and_expected_are_three": "the map says how long the rows are",
    "only_the_first_cta_acquires":
    "libraries acquire a map only where they have changed it: who changes it for others is not known",
    "generic_store_behind_dynamic_shared_memory": "that dynamic shared memory has 256 bytes is in the launch alone",
    "reduction_of_bytes_behind_the_buffer": "that a has 64 words is in the launch alone",
    "node_used_after_another_function_freed_it":
    "the pointer goes through global memory, where other CTAs may have stored theirs",
    "vector_of_which_half_is_fresh": "the host may have set words 2 and 3 of each vector of b",
    "size_of_a_bulk_copy_from_a_count_of_elements": "a word of b says how long the copy is",
    "tensor_tile_expected_without_its_edge": "the map says how large the box is",
    "last_thread_reads_its_right_neighbour": "that b has 64 words is in the launch alone",
    "dynamic_shared_memory_larger_than_given": "that dynamic shared memory has 512 bytes is in the launch alone",
    "every_second_word_of_the_output_summed": "the host may have set the odd words of b",
    "wmma_tile_over_the_end": "that b has 128 words is in the launch alone",
    "source_of_a_partial_copy_nobody_wrote": "the host may have filled b, which the kernel only reads",
    "bytes_that_the_mask_leaves_out_are_read": "the host may have set the bytes of b that the copy leaves out",
    "bytes_behind_the_mask_are_stored_too": "a word of b says which bytes are copied",
    "zfill_size_kept_for_the_row_behind_the_buffer": "that a has 64 words is in the launch alone",
    "zfill_of_part_reaches_behind": "that a has 64 words is in the launch alone",
    "ignored_for_the_wrong_lanes": "that a has 64 words is in the launch alone",
    "reduction_into_a_fresh_buffer": "the host may have set the word of b",
    "bulk_reduction_into_a_fresh_buffer": "the host may have set the words of b",
    "prefetched_bulk_store_behind_the_end": "that a has 64 words is in the launch alone",
    "bulk_load_of_a_buffer_half_filled": "the host may have set words 16 to 31 of b",
    "padding_of_a_bulk_load_is_not_used": "the host may have set words 16 to 31 of b",
}  # fmt: skip

#: Rules about hazards whose numbers begin otherwise.
OTHERS = ("PTX606", "PTX609", "PTX612", "PTX614", "PTX615", "PTX616", "PTX617")


def hazards(pair: bugs.Pair, sign: str) -> list[str]:
    size = f".reqntid {pair.number('block', 64)} "  # what the launch says
    if pair.number("cluster", 1) > 1:
        size += f".reqnctapercluster {pair.number('cluster', 1)} "
    text = pair.text(sign)
    for last in (".param .u64 b) ", ".param .align 64 .b8 m[128]) "):
        text = text.replace(last + "{", last + size + "{")
    found = parse(text, "k.ptx")
    assert not found.diagnostics
    hazards = [d for d in lint(found.module) if d.code.startswith(("PTX5", *OTHERS))]
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
