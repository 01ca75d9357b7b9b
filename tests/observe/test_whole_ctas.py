"""CTAs that run as a whole under checkers (`native.handlers.lockstep`): what is reported, computed and counted is what
the interpreter says, wherever an access leaves what it may touch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools.diagnostics import Trap
from ptxtools.native.code.encode import Encoded, encode
from ptxtools.native.loop import driver
from tests.native.harness import body_kernel, short_slices
from tests.native.test_lockstep import BLOCKS, Writer, as_a_whole, loop_kernel
from tests.rows import rows

_HEAD = ".version 8.3\n.target sm_80\n.address_size 64\n"
#: Most words that random kernels read of their input, and sizes that end in the middle of that.
_ALL, _SOME = 4096, (4096, 4096, 700, 150, 97, 40)


def _outcome(
    text: str, block: tuple[int, ...], tier: str, *, checks: str = "memcheck", words: int = _ALL, out: int = 2048
) -> tuple[object, ...]:
    """What a launch of three CTAs leaves and reports."""
    device = ptxtools.Device(checks=checks, tier=tier, threads=1)
    source = np.arange(words, dtype=np.uint32) * np.uint32(2654435761)
    result = np.zeros(out, np.uint32)
    kernel = ptxtools.loads(_HEAD + text)["k"]
    try:
        done = device.launch(kernel, 3, block, [result, source])
    except Trap as trap:
        return (str(trap),)
    return result.tolist(), source.tolist(), _said(done), done.instructions


def _said(done: Any) -> list[tuple[object, ...]]:
    return [(one.checker, one.line, one.message, one.details, one.thread, one.count) for one in done.reports]


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> list[Encoded]:
    """The programs that are encoded."""
    found: list[Encoded] = []
    monkeypatch.setattr(driver, "encode", lambda *a, **k: found.append(encode(*a, **k)) or found[-1])
    return found


def _whole(programs: list[Encoded]) -> list[tuple[bool, int]]:
    """Of each program in unison, whether CTAs can run as a whole, and what their misses were."""
    return [as_a_whole(one) for one in programs if one.unison]


def _agree(seed: int, checks: str = "memcheck") -> None:
    text, block = Writer(seed).kernel(), BLOCKS[seed % len(BLOCKS)]
    sizes = {"words": _SOME[seed % len(_SOME)], "out": (2048, 2048, 300)[seed % 3]}
    expected = _outcome(text, block, "interpreter", checks=checks, **sizes)
    assert _outcome(text, block, "regions", checks=checks, **sizes) == expected, f"{block}\n{text}"


@rows("seed", [*range(9000, 9120)], share=12)
def test_random_kernels(seed: int) -> None:
    _agree(seed)


@rows("seed", [*range(9200, 9260)], share=6)
def test_random_kernels_of_several_checkers(seed: int) -> None:
    _agree(seed, ("initcheck", "memcheck,synccheck", "memcheck,initcheck")[seed % 3])


@rows("seed", [*range(9300, 9360)], share=6)
def test_random_kernels_in_short_slices(seed: int) -> None:
    with short_slices(seed):
        _agree(seed)


def test_many_of_them_run_as_a_whole(programs: list[Encoded]) -> None:
    for seed in range(9400, 9412):
        _outcome(Writer(seed).kernel(), BLOCKS[seed % len(BLOCKS)], "regions")
    assert sum(could and not missed for could, missed in _whole(programs)) >= 3


@rows("seed", [*range(9500, 9580)], share=12)
def test_loops(seed: int) -> None:
    text, block, words = loop_kernel(seed), BLOCKS[seed % 7], _SOME[seed % len(_SOME)]
    expected = _outcome(text, block, "interpreter", words=words)
    assert _outcome(text, block, "regions", words=words) == expected, f"{block}\n{text}"


#: Each thread reads and writes at a distance: in out, in its own CTA's part of in, in shared memory, in rounds.
_START = "mov.u32 %r13, %ntid.x; mad.lo.u32 %r0, %n, %r13, %t; mul.wide.u32 %d1, %r0, 4; add.u64 %d1, %d1, %in;"
_DISTANCES = [-4, 4, 128, 2, 1 << 20]
_BODIES = {
    "loads": "ld.global.u32 %r1, [%d1+{at}]; st.global.u32 [%out], %r1;",
    "stores": "ld.global.u32 %r1, [%d1]; st.global.u32 [%d1+{at}], %r1;",
    "some lanes": "setp.lt.u32 %p1, %t, 20; @%p1 ld.global.u32 %r1, [%d1+{at}]; st.global.u32 [%out], %r1;",
    "last lanes": "setp.ge.u32 %p1, %t, 50; @%p1 bra ON; bra END; ON: st.global.u32 [%d1+{at}], %t;"
    + "add.u32 %r2, %r2, %t; xor.b32 %r2, %r2, 7;" * 5 + " END:",
    "one word": "ld.param.u64 %d2, [in]; ld.global.u32 %r1, [%d2+{at}]; st.global.u32 [%out], %r1;",
    "backwards": "mul.lo.u32 %r3, %t, -4; cvt.s64.s32 %d2, %r3; add.s64 %d2, %d2, %in; ld.global.u32 %r1, [%d2+{at}];"
    " st.global.u32 [%out], %r1;",
    "shared": "mad.lo.u32 %r1, %t, 4, %r7; st.shared.u32 [%r1], %t; bar.sync 0; ld.shared.u32 %r2, [%r1+{at}];"
    " st.global.u32 [%out], %r2;",
    "next array": "mad.lo.u32 %r1, %t, 4, %r8; bar.sync 0; st.shared.u32 [%r1+{at}], %t; st.global.u32 [%out], %t;",
    "rounds": "mov.u32 %r5, 0; mov.u32 %r1, 7; ld.param.u64 %d2, [in]; mad.wide.u32 %d2, %t, 4, %d2; AGAIN:"
    " ld.global.u32 %r3, [%d2]; add.u32 %r1, %r1, %r3; add.s64 %d2, %d2, {at}; add.s32 %r5, %r5, 1;"
    " setp.lt.s32 %p1, %r5, 9; @%p1 bra AGAIN; st.global.u32 [%out], %r1;",
    "turns": "mov.u32 %r5, 3; AGAIN: bar.sync 0; ld.global.u32 %r3, [%d1]; st.global.u32 [%d1], %t;"
    " add.s64 %d1, %d1, {at}; bar.sync 0; shr.u32 %r5, %r5, 1; setp.ne.u32 %p1, %r5, 0; @%p1 bra AGAIN;",
}  # fmt: skip
_ARRAYS = ".shared .align 4 .b8 first[256]; .shared .align 4 .b8 second[256];"


def _kernel(name: str, at: int) -> str:
    body = f"mov.u32 %r7, first; mov.u32 %r8, second; {_START} {_BODIES[name].format(at=at)} ret;"
    return body_kernel(body, 4, _ARRAYS)


@rows("name", _BODIES, share=1)
def test_accesses_at_a_distance(name: str) -> None:
    """The first lane or the last one leaves its buffer, in the first CTA or the last one; into what is between two
    buffers, into another one, or far away."""
    for at in _DISTANCES:
        expected = _outcome(_kernel(name, at), (64, 1, 1), "interpreter", words=192, out=192)
        assert _outcome(_kernel(name, at), (64, 1, 1), "regions", words=192, out=192) == expected, at


#: Those whose addresses are words in a row, or one word.
_IN_A_ROW = [name for name in _BODIES if name != "backwards"]


@rows("name", _IN_A_ROW, share=1)
def test_without_a_distance_they_run_as_a_whole(name: str) -> None:
    programs: list[Encoded] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "encode", lambda *a, **k: programs.append(encode(*a, **k)) or programs[-1])
        text = _kernel(name, 0).replace("ret;", "mov.u32 %r9, 1; ret;")
        found = _outcome(text, (64, 1, 1), "regions", words=192, out=192)
    assert found[2] == []
    assert _whole(programs) == [(True, 0)]


def test_the_one_cta_that_leaves_its_buffer(programs: list[Encoded]) -> None:
    """The others still run as a whole."""
    text = _kernel("loads", 64)
    expected = _outcome(text, (64, 1, 1), "interpreter", words=192, out=192)
    assert [one[-1] for one in expected[2]] == [1]  # type: ignore[attr-defined]
    programs.clear()
    assert _outcome(text, (64, 1, 1), "regions", words=192, out=192) == expected
    ((could, missed),) = _whole(programs)
    assert could
    assert missed > 0


@pytest.mark.parametrize("how", ["loads", "stores", "rounds"])
def test_freed_buffers_and_what_is_between_others(how: str) -> None:
    """Buffers of a device that lie one behind the other, of which the middle one is freed."""

    def found(tier: str) -> list[object]:
        device = ptxtools.Device(checks="memcheck", tier=tier, threads=1)
        first, middle, last = (device.alloc(4 * 192) for _ in range(3))
        for one in (first, middle, last):
            one.upload(np.arange(192, dtype=np.uint32))
        kernel = ptxtools.loads(_HEAD + _kernel(how, 4))["k"]
        said: list[object] = [_said(device.launch(kernel, 3, 64, [last, middle]))]
        where = middle.address
        middle.free()
        said.append(_said(device.launch(kernel, 3, 64, [last, where])))
        said.append(_said(device.launch(kernel, 3, 64, [last, first])))
        said.append([one.download().tolist() for one in (first, last)])
        return said

    expected = found("interpreter")
    assert found("regions") == expected
    assert "freed" in str(expected[1])


def test_buffers_that_move_between_launches() -> None:
    """What is known of one launch's buffers is not what holds in the next one."""

    def found(tier: str) -> list[object]:
        device = ptxtools.Device(checks="memcheck", tier=tier, threads=1)
        kernel = ptxtools.loads(_HEAD + _kernel("loads", 0))["k"]
        said: list[object] = []
        for words in (192, 100, 192, 64, 1000):
            out = np.zeros(192, np.uint32)
            done = device.launch(kernel, 3, 64, [out, np.arange(words, dtype=np.uint32)])
            said.append([_said(done), out.tolist()])
        return said

    assert found("regions") == found("interpreter")


#: Stores to shared memory, of which not all must come, a barrier, and loads behind it; each CTA has 128 words.
_PUT = "mad.lo.u32 %r1, %t, 4, %r7; mov.u32 %r2, 5; st.shared.u32 [%r1], %t; bar.sync 0; "
_GET = " st.global.u32 [%out], %r3;"
_WRITTEN = {
    "all words": (f"{_PUT} ld.shared.u32 %r3, [%r1];{_GET}", 0),
    "the next word": (f"{_PUT} ld.shared.u32 %r3, [%r1+4];{_GET}", 3),
    "words behind all": (f"{_PUT} ld.shared.u32 %r3, [%r1+256];{_GET}", 192),
    "one word": (f"{_PUT} ld.shared.u32 %r3, [%r7+252];{_GET}", 0),
    "one word behind all": (f"{_PUT} ld.shared.u32 %r3, [%r7+256];{_GET}", 192),
    "stored by some lanes": (
        "mad.lo.u32 %r1, %t, 4, %r7; setp.lt.u32 %p1, %t, 40; @%p1 st.shared.u32 [%r1], %t; bar.sync 0;"
        f" ld.shared.u32 %r3, [%r1];{_GET}", 72,
    ),
    "loaded by those": (
        "mad.lo.u32 %r1, %t, 4, %r7; mov.u32 %r3, 0; setp.lt.u32 %p1, %t, 40; @%p1 st.shared.u32 [%r1], %t; bar.sync 0;"
        f" setp.lt.u32 %p1, %t, 40; @%p1 ld.shared.u32 %r3, [%r1];{_GET}", 0,
    ),
    "stored to one word": (
        f"st.shared.u32 [%r7+8], %t; bar.sync 0; ld.shared.u32 %r3, [%r7+8];{_GET}", 0,
    ),
    "stored beside one word": (
        f"st.shared.u32 [%r7+8], %t; bar.sync 0; ld.shared.u32 %r3, [%r7+12];{_GET}", 192,
    ),
    "not in the last CTA": (
        "mad.lo.u32 %r1, %t, 4, %r7; setp.eq.u32 %p1, %n, 2; @%p1 bra OVER; st.shared.u32 [%r1], %t; OVER: bar.sync 0;"
        f" ld.shared.u32 %r3, [%r1]; bar.sync 0; ld.shared.u32 %r4, [%r1]; add.u32 %r3, %r3, %r4;{_GET}", 64,
    ),
    "not in the first CTA": (
        "mad.lo.u32 %r1, %t, 4, %r7; setp.eq.u32 %p1, %n, 0; @%p1 bra OVER; st.shared.u32 [%r1], %t; OVER: bar.sync 0;"
        f" ld.shared.u32 %r3, [%r1]; bar.sync 0; ld.shared.u32 %r4, [%r1]; add.u32 %r3, %r3, %r4;{_GET}", 64,
    ),
    "four words at once": (
        f"{_PUT} st.shared.u32 [%r1+256], %t; bar.sync 0; ld.shared.u32 %r3, [%r1]; ld.shared.u32 %r4, [%r1+256];"
        f" ld.shared.u32 %r5, [%r7+128]; add.u32 %r3, %r3, %r4; add.u32 %r3, %r3, %r5;{_GET}", 0,
    ),
    "several, one too far": (
        f"{_PUT} ld.shared.u32 %r3, [%r1]; ld.shared.u32 %r4, [%r7+16]; ld.shared.u32 %r5, [%r7+128];"
        f" ld.shared.u32 %r6, [%r7+300]; add.u32 %r3, %r3, %r4; add.u32 %r3, %r3, %r5; add.u32 %r3, %r3, %r6;{_GET}",
        192,
    ),
    "in a later turn": (
        "mad.lo.u32 %r1, %t, 4, %r7; mov.u32 %r3, 0; st.shared.u32 [%r1], %t; mov.u32 %r5, 3; AGAIN: bar.sync 0;"
        " ld.shared.u32 %r4, [%r1]; add.u32 %r3, %r3, %r4; add.u32 %r1, %r1, 128; bar.sync 0; shr.u32 %r5, %r5, 1;"
        f" setp.ne.u32 %p1, %r5, 0; @%p1 bra AGAIN;{_GET}", 96,
    ),
    "what it has stored": (f"{_START} st.global.u32 [%d1], %t; bar.sync 0; ld.global.u32 %r3, [%d1];{_GET}", 0),
    "what nobody has": (f"{_START} st.global.u32 [%d1], %t; bar.sync 0; ld.global.u32 %r3, [%d1+768];{_GET}", 192),
}  # fmt: skip


#: Bytes of shared memory, where those are all that is stored.
_SIZES = {"not in the last CTA": 256, "not in the first CTA": 256, "all words": 256}


def _unwritten(name: str, tier: str, checks: str) -> tuple[object, ...]:
    """What is reported of a launch of three CTAs whose buffers nobody has written, and of another one."""
    body = f"mov.u32 %r7, first; {_WRITTEN[name][0]} mov.u32 %r9, 1; ret;"
    device = ptxtools.Device("sm_80", checks=checks, tier=tier, threads=1)
    array = f".shared .align 4 .b8 first[{_SIZES.get(name, 512)}];"
    kernel = ptxtools.loads(_HEAD + body_kernel(body, 4, array))["k"]
    out, other = device.alloc(4 * 192), device.alloc(8 * 192)
    said = [_said(device.launch(kernel, 3, 64, [out, other])) for _ in range(2)]
    return said, out.download().tolist(), sum(int(one[-1]) for one in said[0])  # type: ignore[call-overload]


@pytest.mark.parametrize("checks", ["initcheck", "memcheck,initcheck"])
@rows("name", _WRITTEN, share=2)
def test_what_nobody_has_written(name: str, checks: str, programs: list[Encoded]) -> None:
    """In shared memory of each CTA, and in buffers; where nothing is to be reported, CTAs run as a whole."""
    expected = _unwritten(name, "interpreter", checks)
    programs.clear()
    assert _unwritten(name, "regions", checks) == expected
    assert bool(expected[0][0]) == bool(_WRITTEN[name][1])  # type: ignore[index]
    if not expected[0][0]:  # type: ignore[index]
        assert (True, 0) in _whole(programs)


@pytest.mark.parametrize("missing", [None, (64, 128), (127, 128), (0, 1), (191, 192)])
def test_rounds_over_what_somebody_has_written_in_part(missing: tuple[int, int] | None) -> None:
    """The first round and the last one load what is written; those between may not."""
    rounds = (
        "mov.u32 %r5, 0; mov.u32 %r1, 7; ld.param.u64 %d2, [in]; mad.wide.u32 %d2, %t, 4, %d2; AGAIN:"
        " ld.global.u32 %r3, [%d2]; add.u32 %r1, %r1, %r3; add.s64 %d2, %d2, 128; add.s32 %r5, %r5, 1;"
        " setp.lt.s32 %p1, %r5, 5; @%p1 bra AGAIN; st.global.u32 [%out], %r1; mov.u32 %r9, 2; ret;"
    )
    fill = (
        f"{_START} setp.lt.u32 %p1, %r0, {missing[0] if missing else 192};"
        f" setp.ge.u32 %p2, %r0, {missing[1] if missing else 192}; or.pred %p1, %p1, %p2;"
        " @!%p1 bra END; st.global.u32 [%d1], %t; END: ret;"
    )

    def found(tier: str) -> tuple[object, ...]:
        device = ptxtools.Device("sm_80", checks="initcheck", tier=tier, threads=1)
        first, second = (ptxtools.loads(_HEAD + body_kernel(body, 4))["k"] for body in (fill, rounds))
        out, other = device.alloc(4 * 192), device.alloc(4 * 192)
        assert not device.launch(first, 3, 64, [out, other]).reports
        return _said(device.launch(second, 3, 64, [out, other])), out.download().tolist()

    expected = found("interpreter")
    assert bool(expected[0]) == (missing is not None)
    assert found("regions") == expected
