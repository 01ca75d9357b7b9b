"""A lane that is not in its own member mask: the manual leaves open what happens, here it is a trap on both engines."""

from __future__ import annotations

import pytest

from ptxtools.diagnostics import Trap
from tests.rows import rows

from .harness import both, output

HEAD = """.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out) {
    .reg .pred %p<8>; .reg .b32 %r<24>; .reg .b64 %d<24>; .reg .f32 %f<4>; .reg .u32 %t, %m; .reg .u64 %out;
    mov.u32 %t, %tid.x; ld.param.u64 %out, [out]; setp.lt.u32 %p1, %t, 40; mov.b32 %f1, %t; mov.b64 %d1, {%t, %t};
"""
#: Every operation of a warp that takes a member mask (9.7.9.6, 9.7.13).
OPERATIONS = [
    "bar.warp.sync %m;",
    "shfl.sync.idx.b32 %r1, %t, 0, 31, %m;",
    "shfl.sync.bfly.b32 %r1|%p2, %t, 1, 31, %m;",
    "vote.sync.all.pred %p2, %p1, %m;",
    "vote.sync.ballot.b32 %r1, %p1, %m;",
    "match.any.sync.b32 %r1, %t, %m;",
    "match.any.sync.b64 %r1, %d1, %m;",
    "match.all.sync.b32 %r1|%p2, %t, %m;",
    "redux.sync.max.s32 %r1, %t, %m;",
    "redux.sync.and.b32 %r1, %t, %m;",
    "redux.sync.min.f32 %f2, %f1, %m;",
    "elect.sync %r1|%p2, %m;",
    "elect.sync _|%p2, %m;",
]
#: How the mask is made, the lane that is not in it, and what the mask is then.
MASKS = [
    ("mov.u32 %m, 0;", 0, 0),
    ("mov.u32 %m, 0xfff7;", 3, 0xFFF7),
    ("mov.u32 %m, 0x7fffffff;", 31, 0x7FFFFFFF),
    ("shl.b32 %m, 1, %t; setp.eq.u32 %p3, %t, 9; @%p3 mov.u32 %m, 0x100;", 9, 0x100),
]


@pytest.mark.share(3)
@both
@pytest.mark.parametrize(("mask", "lane", "value"), MASKS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_lane_outside_its_mask_is_a_trap(engine, operation, mask, lane, value):
    with pytest.raises(Trap) as failure:
        output(engine, f"{HEAD} {mask} {operation} ret; }}", 32)
    trap = failure.value
    assert (trap.kind, trap.reason) == ("trap", f"lane {lane} is not in its own member mask {value:#x}")
    assert trap.thread == (lane, 0, 0) and trap.text.strip().rstrip(";") == operation.rstrip(";")


@both
@rows("operation", OPERATIONS)
def test_lanes_that_do_not_run_it_need_no_place_in_the_mask(engine, operation):
    """A guard, a branch, and lanes that have left: only who executes the operation has to be a member."""
    body = f"""mov.u32 %m, 0xfff; setp.lt.u32 %p4, %t, 12; mov.u32 %r3, 0;
    setp.gt.u32 %p5, %t, 27; @%p5 ret;
    @%p4 {operation} mov.u32 %r3, 7;
    setp.ge.u32 %p6, %t, 12; @%p6 bra END; {operation} add.u32 %r3, %r3, 1;
    END: mul.wide.u32 %d3, %t, 4; add.u64 %out, %out, %d3; st.global.u32 [%out], %r3; ret; }}"""
    assert output(engine, HEAD + body, 32) == [8] * 12 + [7] * 16 + [0] * 4


@both
@rows("operation", OPERATIONS)
def test_a_mask_may_name_lanes_that_have_left(engine, operation):
    body = f"""mov.u32 %m, -1; setp.gt.u32 %p5, %t, 27; @%p5 ret; {operation}
    mul.wide.u32 %d3, %t, 4; add.u64 %out, %out, %d3; st.global.u32 [%out], 5; ret; }}"""
    assert output(engine, HEAD + body, 32) == [5] * 28 + [0] * 4
