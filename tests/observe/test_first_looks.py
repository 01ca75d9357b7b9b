"""The first looks at asynchronous work hide nothing: kernels that lack some wait, fence or barrier are reported with
them as without them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools.machine import residents
from ptxtools.native.code.structures import MARKED
from ptxtools.native.loop import events
from ptxtools.observe import async_knowledge, async_planes

from . import bugs
from .test_race_trial import _judged, _looks

FILES = ("wgmma", "tcgen05", "copies", "maps_and_proxies")
#: What makes threads, or asynchronous work, wait.
SYNCHRONISES = re.compile(
    r"(?:@!?%\w+ )?(?:bar\.sync|fence\.proxy|wgmma\.(?:fence|wait|commit)|cp\.async\.(?:bulk\.)?(?:wait|commit)"
    r"|tcgen05\.(?:wait|commit)|mbarrier\.(?:arrive|expect_tx))[^;]*;"
)
#: What waits for an mbarrier, which passes at once instead.
WAITS = re.compile(r"mbarrier\.(?:try|test)_wait[^;]* (%p\d+), [^;]*;")


def _without(pair: bugs.Pair) -> list[bugs.Pair]:
    """The corrected kernel, without each of the statements that synchronise."""
    lines = [(" ", text) for sign, text in pair.lines if sign in " +"]
    outer = [(sign, text) for sign, text in pair.lines if sign == "^"]
    found = []
    for number, (_, text) in enumerate(lines):
        for match in SYNCHRONISES.finditer(text):
            found.append((number, text[: match.start()] + text[match.end() :]))
        for match in WAITS.finditer(text):
            found.append((number, f"{text[: match.start()]}setp.eq.u32 {match[1]}, 0, 0;{text[match.end() :]}"))
    return [
        replace(
            pair, name=f"{pair.name} {number} {new}", lines=[*outer, *lines[:number], (" ", new), *lines[number + 1 :]]
        )
        for number, new in found
    ]


def _found(pairs: list[bugs.Pair], checks: str) -> list[str]:
    return [bugs.shown(bugs.run(pair, "+", checks, seed=None)) for pair in pairs]


PAIRS = [pair for name in FILES for pair in bugs.read(bugs.FOLDER / f"{name}.bugs")]


@pytest.mark.share(12)
@pytest.mark.parametrize("checks", ["asynccheck", "racecheck", "asynccheck,racecheck"])
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_what_lacks_synchronisation_is_reported_alike(
    pair: bugs.Pair, checks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = _without(pair)
    found = _found(changed, checks)
    _judged(monkeypatch)
    assert found == _found(changed, checks)


def test_who_frees_tensor_memory_has_to_know_that_others_have_waited() -> None:
    """A warp has stored and waited; another one frees the memory, with no barrier between, and comes later."""
    (pair,) = (pair for pair in PAIRS if pair.name == "two_warps_store_one_lane")
    found = {pair.name: _found([pair], "asynccheck")[0] for pair in [pair, *_without(pair)]}
    (bug,) = (text for name, text in found.items() if "bar.sync" not in name and "tcgen05.dealloc" in name)
    assert "asynccheck: tcgen05.dealloc writes memory" in bug and found[pair.name] == "nothing was found"


@pytest.mark.share(3)
@pytest.mark.parametrize("name", FILES)
def test_seeded_bugs_are_reported_alike(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, pairs = _looks(monkeypatch), [pair for pair in PAIRS if pair in bugs.read(bugs.FOLDER / f"{name}.bugs")]
    found = [bugs.shown(bugs.run(pair, sign, "asynccheck")) for pair in pairs for sign in "-+"]
    assert 1 in looks and found
    _judged(monkeypatch)
    assert found == [bugs.shown(bugs.run(pair, sign, "asynccheck")) for pair in pairs for sign in "-+"]


def test_python_knows_where_native_code_keeps_its_clocks() -> None:
    assert MARKED.size == residents.MARKS_HEAD
    words = {name: MARKED.offset(name) // 4 for name in ("clock", "began", "fenced", "last", "before", "copy")}
    planes = async_planes
    assert list(words.values()) == [
        planes._CLOCK, planes._BEGAN, planes._FENCED, planes._LAST, planes._BEFORE, planes._COPIES
    ]  # fmt: skip
    assert (
        MARKED.offset("pipe") == async_knowledge._KNOWN * 4 and MARKED.offset("pipe_some") == async_knowledge._SOME * 4
    )


def _pair(name: str) -> bugs.Pair:
    return next(pair for pair in PAIRS if pair.name == name)


@pytest.mark.parametrize("checks", ["asynccheck", "racecheck", "all"])
def test_products_of_warpgroups_are_looked_at_natively(checks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the second launch on, Python is told of none."""
    looks, told, found = _looks(monkeypatch), list[str](), events.find

    def find(launch: Any, kind: str) -> Any:
        told.append(kind)
        return found(launch, kind)

    monkeypatch.setattr(events, "find", find)
    device = ptxtools.Device("sm_90a", checks=checks)
    kernel = ptxtools.loads(_pair("wait_for_one_group_too_few").text("+"))["k"]
    words = [device.upload(np.zeros(128, np.uint32)) for _ in range(2)]
    for number in range(2):
        told.clear()
        assert not device.launch(kernel, 1, 128, words).reports
        assert ("observe.together" in told) == (number == 0)
    assert looks == [1, 1]


def test_registers_that_a_path_touches_in_flight_need_the_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = _looks(monkeypatch)
    for name in ("accumulator_read_in_flight", "a_registers_in_a_loop", "no_fence_behind_loads_of_a", "not_committed"):
        assert bugs.run(_pair(name), "-", "asynccheck")
        assert not looks
        assert not bugs.run(_pair(name), "+", "asynccheck")
        assert looks == [1]
        looks.clear()


#: Single lanes wait, or all of them; kernels with more synchronisation than the look knows of are judged.
SILENT = {"bulk_load_not_waited": True, "tensor_load_not_waited": True, "load_not_waited": True,
          "product_never_committed": True, "factor_without_proxy_fence": True, "bulk_store_without_fence": True,
          "bulk_store_read_back": False}  # fmt: skip


@pytest.mark.parametrize("name", SILENT)
def test_what_is_right_passes_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = _looks(monkeypatch)
    assert not bugs.run(_pair(name), "+", "asynccheck")
    assert looks == ([1] if SILENT[name] else [1, 0])


#: The CTA's bytes in shared memory are added to b, or stored there.
REDUCTION = """shl.b32 %r0, %i, 2; add.u32 %r0, %r0, %s; st.shared.u32 [%r0], %i; fence.proxy.async; bar.sync 0;
  setp.ne.u32 %p0, %i, 0; @%p0 bra END; cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%b], [%s], 128;
  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; END:"""


def test_reductions_come_beside_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of other CTAs to the same place may be under way, which no CTA is told of."""
    looks = _looks(monkeypatch)
    stored = REDUCTION.replace("cp.reduce.async", "cp.async").replace(".add.u32", "")
    added, copied = (
        bugs.run(bugs.Pair("k", "asynccheck", {"target": "sm_90", "block": "32", "grid": "3"}, [(" ", body)]), "+",
                 "asynccheck")
        for body in (REDUCTION, stored)
    )  # fmt: skip
    assert not added
    assert "was not told of the wait" in copied[0].message
    assert looks == [1, 1, 0]


#: The second warp stores, the first copies it to b.
HANDED = """shl.b32 %r0, %i, 2; add.u32 %r0, %r0, %s; setp.eq.u32 %p1, %w, 0; setp.ne.u32 %p0, %i, 0; @%p1 bra COPY;
  st.shared.u32 [%r0+-128], %i; {0} bra END; COPY: {1} @%p0 bra END;
  cp.async.bulk.global.shared::cta.bulk_group [%b], [%s], 128; cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0; END:"""


@pytest.mark.parametrize(("handed", "taken", "seen"), [
    ("fence.proxy.async; bar.arrive 1, 64;", "bar.sync 1, 64;", [1]),
    ("bar.arrive 1, 64;", "bar.sync 1, 64; fence.proxy.async;", [1, 0]),
    ("bar.arrive 1, 64; fence.proxy.async;", "bar.sync 1, 64;", [1, 0]),
    ("fence.proxy.async; setp.ne.u32 %p2, %l, 0; bar.sync 2, 32; @%p2 bra END; "
     "st.relaxed.gpu.global.u32 [%a], 1;",
     "W: ld.relaxed.gpu.global.u32 %r1, [%a]; setp.eq.u32 %p3, %r1, 0; @%p3 bra W;", [1, 0]),
])  # fmt: skip
def test_fences_are_told_of_at_named_barriers(
    handed: str, taken: str, seen: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = _looks(monkeypatch)
    body = HANDED.format(handed, taken)
    pair = bugs.Pair("k", "asynccheck", {"target": "sm_90", "block": "64"}, [(" ", body)])
    found = bugs.shown(bugs.run(pair, "+", "asynccheck"))
    assert looks == seen
    _judged(monkeypatch)
    assert found == bugs.shown(bugs.run(pair, "+", "asynccheck"))


#: Two warps: the first waits for a copy, the second reads it, with or without having waited, or met the first.
TWO = """setp.ne.u32 %p0, %i, 0; @%p0 bra READY; mbarrier.init.shared.b64 [sh+960], 1;
  fence.mbarrier_init.release.cluster; READY: bar.sync 0; add.u32 %r60, %s, 960; setp.ne.u32 %p1, %w, 0;
  @%p0 bra GO; mbarrier.arrive.expect_tx.shared.b64 _, [%r60], 128;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%b], 128, [%r60];
  GO: """
WAIT = "L{0}: mbarrier.try_wait.parity.shared.b64 %p6, [%r60], 0; @!%p6 bra L{0};"
READ = "ld.shared.u32 %r1, [%s]; mad.wide.u32 %d1, %i, 4, %a; st.global.u32 [%d1], %r1;"


@pytest.mark.parametrize(("body", "seen"), [
    (f"{WAIT.format(1)} {READ}", [1]),
    (f"@%p1 bra A; {WAIT.format(1)} A: bar.sync 0; {READ}", [1]),
    (f"@%p1 bra A; {WAIT.format(1)} A: bar.sync 1, 64; {READ}", [1]),
    (f"@%p1 bra A; {WAIT.format(1)} bar.arrive 1, 64; bra R; A: bar.sync 1, 64; R: {READ}", [1]),
    (f"@%p1 bra A; bar.arrive 1, 64; {WAIT.format(1)} bra R; A: bar.sync 1, 64; R: {READ}", [1, 0]),
    (f"@%p1 bra A; {WAIT.format(1)} A: nanosleep.u32 2000; {READ}", [1, 0]),
    (f"{READ} {WAIT.format(1)}", [1, 0]),
    (f"@!%p1 bra A; {WAIT.format(1)} A: {READ} {WAIT.format(2)}", [1, 0]),
])  # fmt: skip
def test_who_reads_a_copy_must_know_that_it_is_there(
    body: str, seen: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = _looks(monkeypatch)
    pair = bugs.Pair("k", "asynccheck", {"target": "sm_90", "block": "64"}, [(" ", TWO + body)])
    found = bugs.run(pair, "+", "asynccheck")
    assert looks == seen and bool(found) == (len(seen) > 1)
