"""The timeline: what Perfetto is given, on both engines."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools.machine.observers import Listeners
from ptxtools.observe.timeline import Timeline
from tests.rows import rows

HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n"
ENGINES = pytest.mark.parametrize("engine", ["native", "reference"])
BARRIER = """.shared .b8 room[1024];
    bar.sync 0;
    @%p bar.sync 1, 32;
"""


def timeline(body: str, *, engine: str, block: int = 96, grid: int = 3, trap: bool = False, **how: Any) -> list[Any]:
    text = f"""{HEAD}.visible .entry k(.param .u64 out) {{
    .reg .u64 %a, %w; .reg .u32 %t, %r<9>; .reg .pred %p, %q;
    ld.param.u64 %a, [out]; mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, 32;
    {body}
    ret;
}}"""
    pieces: list[str] = []
    line = Timeline(pieces.append)
    device = ptxtools.Device(engine=engine, sms=2, observers=[line], **how)
    try:
        device.launch(ptxtools.loads(text)["k"], grid, block, [np.zeros(4096, np.uint8)])
    except ptxtools.Trap:
        assert trap
    line.close()
    events = json.loads("".join(pieces))["traceEvents"]
    well_formed(events)
    return list(events)


def well_formed(events: list[dict[str, Any]]) -> None:
    """Slices of a track nest, arrows have two ends, tracks have names, and what is in use ends at nothing."""
    tracks: dict[tuple[int, int], list[tuple[int, int]]] = {}
    ends = Counter[tuple[int, str]]()
    names = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M"}
    last: dict[tuple[int, str], float] = {}
    for e in events:
        if e["ph"] == "X":
            begun = round(1000 * e["ts"])
            tracks.setdefault((e["pid"], e["tid"]), []).append((begun, begun + round(1000 * e["dur"])))
            assert e["dur"] > 0 and (e["pid"], e["tid"]) in names, e
        elif e["ph"] in "sf":
            ends[e["id"], e["ph"]] += 1
        elif e["ph"] == "C":
            last[e["pid"], e["name"]] = sum(e["args"].values())
    assert set(ends.values()) <= {1} and len(ends) == 2 * len({number for number, _ in ends})
    assert set(last.values()) == {0}
    for track, slices in tracks.items():
        open_: list[int] = []
        for begun, ended in sorted(slices, key=lambda one: (one[0], -one[1])):
            while open_ and open_[-1] <= begun:
                open_.pop()
            assert not open_ or ended <= open_[-1], (track, begun, ended)
            open_.append(ended)


def slices(events: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [e for e in events if e["ph"] == "X" and e["name"] == name]


@ENGINES
def test_warps_and_barriers(engine: str) -> None:
    events = timeline(BARRIER, engine=engine)
    assert sorted((e["args"]["cta"], e["args"]["warp"]) for e in slices(events, "k")) == [
        (f"{cta},0,0", warp) for cta in range(3) for warp in range(3)
    ]
    waits = slices(events, "wait: bar.sync")
    assert len(waits) == 3 * (3 + 1)
    opened = Counter(e["args"].get("opened by") for e in waits)
    assert opened == {None: 3 + 3} | {f"CTA ({cta},0,0) warp 2": 2 for cta in range(3)}
    assert sum(e["ph"] == "s" and e["name"] == "opens" for e in events) == 6
    used = [e["args"]["bytes"] for e in events if e["name"] == "shared memory in use"]
    assert max(used) >= 1024 and used[-1] == 0
    assert {e["args"]["name"] for e in events if e["name"] == "process_name"} == {"SM 0", "SM 1"}


@ENGINES
def test_copies_are_arrows_to_their_completion(engine: str) -> None:
    body = """.shared .align 16 .b8 room[64]; .shared .align 8 .b64 done;
    mov.u32 %r1, room; mov.u32 %r2, done; setp.eq.u32 %q, %t, 0;
    @%q mbarrier.init.shared.b64 [%r2], 1;
    bar.sync 0;
    @%q mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 64;
    @%q cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%a], 64, [%r2];
W:  mbarrier.try_wait.parity.shared.b64 %p, [%r2], 0;
    @!%p bra W;
"""
    events = timeline(body, engine=engine, grid=1)
    arrows = [e for e in events if e["name"] == "completes"]
    assert [e["ph"] for e in arrows] == ["s", "f"]
    works = [e for e in events if e["ph"] == "X" and e["tid"] >= 1 << 20]
    assert len(works) == 1 and works[0]["args"]["bytes"] == 64 and "bulk copy" in works[0]["name"]
    assert len(slices(events, "mbarrier arrive.expect_tx")) == 1
    assert len(slices(events, "wait: mbarrier try_wait.parity")) >= 3


@ENGINES
def test_a_trap_ends_what_runs(engine: str) -> None:
    events = timeline("bar.sync 0; @%p trap; bar.sync 0;", engine=engine, trap=True, grid=1)
    assert any(e["ph"] == "i" and e["name"].startswith("trap: ") for e in events)
    assert len(slices(events, "k")) == 3


@ENGINES
def test_lanes_that_wait_apart_have_tracks_of_their_own(engine: str) -> None:
    """The two halves of a warp meet the two halves of another at two barriers."""
    body = """and.b32 %r1, %t, 16; setp.eq.u32 %q, %r1, 0;
    @%q bra LOW; barrier.sync 2, 64; bra END;
LOW: barrier.sync 1, 64;
END:"""
    events = timeline(body, engine=engine, block=64, grid=1, trap=True)
    waits = slices(events, "wait: barrier.sync") or slices(events, "wait: bar.sync")
    assert {e["args"]["lanes"] for e in waits} == {"0-15", "16-31"}
    assert len({e["tid"] for e in waits}) == 4
    assert sum("other lanes" in str(e["args"].get("name")) for e in events if e["ph"] == "M") == 2


@rows("name", ["cu_pdl_sm90", "gluon_pair_f16_m256n64_sm100", "cu_cluster_dsmem_sm90", "cu_cpasync_pipe_sm80"], share=3)
def test_cases(name: str) -> None:
    from pathlib import Path

    from ptxtools.api import run_job
    from ptxtools.cli.common import read_input
    from ptxtools.launch.file import read_launch_file

    folder = Path(__file__).parents[2] / "testdata" / "cases" / name
    job, pieces = read_launch_file(str(folder / "case.toml"), ""), list[str]()
    line = Timeline(pieces.append)
    job.device.observers = (line,)
    assert run_job(job, read_input).passed
    line.close()
    events = json.loads("".join(pieces))["traceEvents"]
    well_formed(events)
    if name.startswith("gluon_pair"):
        assert any(e["name"] == "tensor memory in use" and e["args"]["columns"] for e in events)
        openers = {str(e["args"].get("opened by", "")).partition(" of ")[0] for e in events if e["ph"] == "X"}
        assert {"a copy", "a commit"} <= openers


def test_nothing_ran() -> None:
    pieces: list[str] = []
    Timeline(pieces.append).close()
    assert json.loads("".join(pieces)) == {"traceEvents": []}


# --- logged and told --------------------------------------------------------------------------------------------------

COPY = """.shared .align 16 .b8 tile[512]; .shared .align 8 .b64 full; .reg .u32 %b; .reg .pred %d;
    setp.eq.u32 %q, %t, 0; mov.u32 %b, full;
    @%q mbarrier.init.shared.b64 [%b], 1;
    bar.sync 0;
    @%q mbarrier.arrive.expect_tx.shared.b64 _, [%b], 512;
    mov.u32 %r1, tile;
    @%q cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%a], 512, [%b];
L:  mbarrier.try_wait.parity.shared.b64 %d, [%b], 0;
    @!%d bra L;
"""
PARTS = "@%p exit; bar.sync 0, 64; bar.arrive 1, 64; barrier.sync 2, 64;"


@rows(
    "body, how",
    [(BARRIER, {}), (COPY, {}), (COPY, {"seed": 3}), ("@%p exit;" + "bar.sync 0;" * 3, {"block": 70}), ("", {})],
)
def test_what_is_logged_is_what_would_be_told(body: str, how: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's rows give the same events, at the same times, as telling each of them in Python."""
    logged = timeline(body, engine="native", **how)
    with monkeypatch.context() as patch:
        patch.setattr(Listeners, "_log", lambda self: (None, None))
        assert timeline(body, engine="native", **how) == logged


@ENGINES
def test_further_events_are_left_out_and_counted(engine: str) -> None:
    """9 warps begin, end, and come to and leave two barriers: 54 events."""
    pieces: list[str] = []
    line = Timeline(pieces.append, most=20)
    text = f"{HEAD}.visible .entry k() {{ {'bar.sync 0;' * 2} ret; }}"
    device = ptxtools.Device(engine=engine, sms=2, observers=[line])
    kernel = ptxtools.loads(text)["k"]
    device.launch(kernel, 3, 96, [])
    device.launch(kernel, 1, 32, [])
    line.close()
    events = json.loads("".join(pieces))["traceEvents"]
    well_formed(events)
    assert line.left_out == {"k": 3 * 3 * (2 + 2 * 2) - 20}
    assert len(slices(events, "k")) == 9 + 1 or engine == "native"
    assert [e["name"] for e in events if e["ph"] == "i"] == ["34 further events of k are left out"]


def test_who_else_listens_is_told_of_everything() -> None:
    """Two timelines, of which each would log: both are told, and have the same."""
    text = f"{HEAD}.visible .entry k() {{ bar.sync 0; ret; }}"
    both: list[list[str]] = [[], []]
    lines = [Timeline(pieces.append) for pieces in both]
    ptxtools.Device(observers=lines).launch(ptxtools.loads(text)["k"], 2, 64, [])
    for line in lines:
        line.close()
    assert both[0] == both[1] and "wait: bar.sync" in "".join(both[0])
