"""Parts of a grid, of which each worker begins with its own."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools.diagnostics import Trap
from ptxtools.native.code.structures import PART
from ptxtools.native.loop import driver, pool, spare, team
from ptxtools.native.loop.parts import Parts

pytestmark = pytest.mark.skipif(not pool.possible(), reason="one processor, or no futexes")

HEAD = """.version 8.0
.target sm_80
.address_size 64
"""
#: Each CTA adds 1 to its word, in n rounds, if it is below `end`; others write out of bounds.
ADD = (
    HEAD
    + """.visible .entry k(.param .u64 out, .param .u32 n, .param .u32 end) {
    .reg .b32 %i, %n, %e, %v; .reg .b64 %o, %a; .reg .pred %p;
    mov.u32 %i, %ctaid.x; ld.param.u64 %o, [out]; ld.param.u32 %n, [n]; ld.param.u32 %e, [end];
    mul.wide.u32 %a, %i, 4; add.u64 %a, %a, %o; setp.ge.u32 %p, %i, %e; @%p mov.u64 %a, 8;
AGAIN:
    ld.global.u32 %v, [%a]; add.u32 %v, %v, 1; st.global.u32 [%a], %v;
    sub.u32 %n, %n, 1; setp.ne.u32 %p, %n, 0; @%p bra AGAIN;
    ret;
}"""
)
#: Each CTA waits for the one before it, which leaves its number plus the round in a word.
CHAIN = (
    HEAD
    + """.visible .entry k(.param .u64 out, .param .u32 round) {
    .reg .b32 %i, %r, %v, %w; .reg .b64 %o, %a; .reg .pred %p;
    mov.u32 %i, %ctaid.x; ld.param.u64 %o, [out]; ld.param.u32 %r, [round];
    mul.wide.u32 %a, %i, 4; add.u64 %a, %a, %o; add.u32 %w, %r, %i;
AGAIN:
    ld.acquire.gpu.global.u32 %v, [%a]; setp.ne.u32 %p, %v, %w; @%p bra AGAIN;
    add.u32 %w, %w, 1; st.release.gpu.global.u32 [%a+4], %w; ret;
}"""
)
#: Each CTA of a group waits until so many in all have come.
GROUPS = (
    HEAD
    + """.visible .entry k(.param .u64 out, .param .u32 size, .param .u32 all) {
    .reg .b32 %i, %s, %g, %v, %w; .reg .b64 %o, %a; .reg .pred %p;
    mov.u32 %i, %ctaid.x; ld.param.u64 %o, [out]; ld.param.u32 %s, [size]; ld.param.u32 %w, [all];
    div.u32 %g, %i, %s; mul.wide.u32 %a, %g, 4; add.u64 %a, %a, %o; red.release.gpu.global.add.u32 [%a], 1;
AGAIN:
    ld.acquire.gpu.global.u32 %v, [%a]; setp.lt.u32 %p, %v, %w; @%p bra AGAIN;
    ret;
}"""
)


@pytest.fixture(autouse=True)
def counts(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[int]]:
    """In how many parts grids are claimed; all launches but the first of a kernel are shared at once."""
    found, parts_of = set[int](), driver._parts

    def noted(*about: Any) -> int:
        found.add(parts_of(*about))
        return parts_of(*about)

    monkeypatch.setattr(team, "_idle", [])
    monkeypatch.setattr(spare, "_spare", [])
    monkeypatch.setattr(driver, "_LONG", 0)
    monkeypatch.setattr(driver, "_parts", noted)
    pool.functions()  # from the first launch on
    yield found


class Known:
    """A kernel on a device of several workers, and the words that it writes."""

    def __init__(self, text: str, words: int, threads: int = 2, **options: Any) -> None:
        self.device, self.kernel = ptxtools.Device("sm_80", threads=threads, **options), ptxtools.loads(text)["k"]
        self.out = self.device.upload(np.zeros(words, np.uint32))

    def run(self, ctas: int, *args: int) -> np.ndarray[Any, Any]:
        self.device.launch(self.kernel, ctas, 1, [self.out, *args])
        return self.out.download()


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
@pytest.mark.parametrize("ctas", [1, 2, 3, 7, 64, 1000])
def test_each_cta_runs_once(ctas: int, threads: int, counts: set[int]) -> None:
    known = Known(ADD + f"// {threads}", ctas, threads)
    for n in range(1, 12):
        found = known.run(ctas, 3, ctas)
        np.testing.assert_array_equal(found, 3 * n)
    assert counts == ({min(ctas, threads)} if min(ctas, threads) > 1 else set())


def test_one_does_what_another_has_not_begun(monkeypatch: pytest.MonkeyPatch, counts: set[int]) -> None:
    """The launching thread takes the parts of those that never begin, too."""
    known = Known(ADD, 100)
    known.run(100, 1, 100)
    monkeypatch.setattr(pool.Seat, "_serve", lambda seat: None)
    monkeypatch.setattr(pool, "_free", [])
    for n in range(2, 6):
        np.testing.assert_array_equal(known.run(100, 1, 100), n)
    assert counts == {2}


@pytest.mark.parametrize("clusters, count", [(1, 1), (10, 3), (1000, 4), (1 << 40, 1)])
def test_the_rows_are_the_grid(clusters: int, count: int) -> None:
    parts = Parts(clusters, count)
    assert parts.address % PART.size == 0 and parts.taken == 0
    row = [[PART.at_address(parts.address + n * PART.size, name) for name in PART.fields] for n in range(count)]
    assert [begin for _, _, begin, _ in row] == [next_ for next_, _, _, _ in row]
    assert [begin for _, _, begin, _ in row] + [clusters] == [0] + [end for _, end, _, _ in row]
    taken = 0
    for number, (begin, end, _, piece) in enumerate(row):
        assert 1 <= piece <= max(1, (end - begin) // 32)
        ctypes.c_uint64.from_address(parts.address + number * PART.size).value = end + 3  # all, and some in vain
        taken += end - begin
        assert parts.taken == taken


def test_where_ctas_may_wait_the_grid_is_one(counts: set[int]) -> None:
    ctas = 2000
    known = Known(CHAIN, ctas + 1, sms=1)
    for round_ in (0, 5, 9, 12):
        known.out.upload(np.full(ctas + 1, round_, np.uint32))
        np.testing.assert_array_equal(known.run(ctas, round_), round_ + np.arange(ctas + 1))
    assert counts == {1}


def test_as_many_as_can_be_resident_may_wait_for_each_other(counts: set[int]) -> None:
    known = Known(GROUPS, 200, sms=1)
    resident = known.device.limits.ctas
    for n in range(1, 5):
        assert (known.run(20 * resident, resident, n * resident)[:20] == n * resident).all()
    assert counts == {1}


@pytest.mark.parametrize("end", [0, 1, 40, 63, 64, 99])
def test_the_first_cta_that_traps_is_told_of(end: int) -> None:
    known = Known(ADD + f"// traps from {end} on", 100)
    known.run(100, 50, 100)
    for _ in range(3):
        known.run(100, 50, 100)
        with pytest.raises(Trap) as caught:
            known.run(100, 50, end)
        assert caught.value.cta is not None
        assert caught.value.cta[0] >= end
        if end < 50:  # of the part that the launching thread begins with
            assert caught.value.cta[0] == end
