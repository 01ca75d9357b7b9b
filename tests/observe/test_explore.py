"""`explore`: the launch in further schedules, which reverse what the first one decided."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools.cli.common import exit_status
from ptxtools.cli.run import command
from ptxtools.diagnostics.findings import Exploration

from ..rows import rows
from .programs import HEAD, module

ONE = "setp.eq.u32 %p, %l, 0; @!%p bra DONE;\n"  # a thread of each warp
LOCK = f"""{ONE}TAKE: atom.acquire.gpu.global.cas.b32 %r1, [%a], 0, 1; setp.ne.u32 %q, %r1, 0; @%q bra TAKE;
  ld.global.u32 %r2, [%a+4]; add.u32 %r2, %r2, 1; st.global.u32 [%a+4], %r2;
  st.release.gpu.global.u32 [%a], 0; DONE:"""
#: Tests and sets with two instructions: both may find it free.
NO_LOCK = LOCK.replace(
    "atom.acquire.gpu.global.cas.b32 %r1, [%a], 0, 1;",
    "ld.acquire.gpu.global.u32 %r1, [%a]; setp.ne.u32 %q, %r1, 0; @%q bra TAKE;"
    "st.release.gpu.global.u32 [%a], 1; mov.u32 %r1, 0;",
)
LOST = f"""{ONE}ld.relaxed.gpu.global.u32 %r2, [%a+4]; add.u32 %r2, %r2, 1;
  st.relaxed.gpu.global.u32 [%a+4], %r2; DONE:"""
#: Two locks, which the warps take in different turns.
DEADLOCK = f"""{ONE}shl.b32 %r3, %w, 2; cvt.u64.u32 %b, %r3; add.u64 %b, %a, %b;
  xor.b32 %r4, %r3, 4; cvt.u64.u32 %c, %r4; add.u64 %c, %a, %c;
  A: atom.acquire.gpu.global.cas.b32 %r1, [%b], 0, 1; setp.ne.u32 %q, %r1, 0; @%q bra A;
  B: atom.acquire.gpu.global.cas.b32 %r1, [%c], 0, 1; setp.ne.u32 %q, %r1, 0; @%q bra B;
  st.release.gpu.global.u32 [%c], 0; st.release.gpu.global.u32 [%b], 0; DONE:"""
#: Sends data to the second warp, which does not wait: only if it comes late it reads them.
FLAG = """setp.eq.u32 %p, %i, 0; @!%p bra OTHER;
  st.global.u32 [%a+4], 5; st.release.gpu.global.u32 [%a], 1; bra DONE;
  OTHER: setp.eq.u32 %p, %i, 32; @!%p bra DONE; ld.LOOK.gpu.global.u32 %r1, [%a]; setp.eq.u32 %q, %r1, 0;
  @%q bra DONE; ld.global.u32 %r2, [%a+4]; DONE:"""
TRAP = f"""{ONE}atom.global.add.u32 %r1, [%a], 1; setp.eq.u32 %q, %w, 1; setp.eq.and.u32 %q, %r1, 0, %q;
  @%q trap; DONE:"""
SHARED = f"""setp.eq.u32 %p, %i, 0; @%p st.shared.u32 [0], 0; bar.sync 0; {ONE}mov.u32 %r0, sh;
  atom.shared.add.u32 %r1, [%r0], 1; shl.b32 %r2, %r1, 2; cvt.u64.u32 %b, %r2; add.u64 %b, %a, %b;
  st.global.u32 [%b], %w; DONE:"""
BARRIER = f"{ONE}atom.global.exch.b32 %r1, [%a], %w; st.global.u32 [%a+8], 3; DONE: bar.sync 0;"


def explored(body: str, most: int = 100, *, grid: int = 1, threads: int = 64, checks: str = "racecheck") -> Any:
    device = ptxtools.Device(checks=checks)
    return device.launch(module(body)["k"], grid, threads, [np.zeros(64, np.uint32)], shared=64, explore=most)


#: Body, CTAs, orders, what schedules fail with, whether results differ, whether there are reports.
TABLE = {
    "a lock": (LOCK, 1, 4, "", False, False),
    "a lock between CTAs": (LOCK.replace("%l, 0", "%i, 0"), 2, 4, "", False, False),
    "a lock without acquire": (LOCK.replace("acquire", "relaxed"), 1, 4, "", False, True),
    "no lock": (NO_LOCK, 1, None, "", True, True),
    "a lost update": (LOST, 1, 4, "", True, False),
    "a plain lost update": (LOST.replace(".relaxed.gpu", ""), 1, 4, "", True, True),
    "a deadlock": (DEADLOCK, 1, None, "deadlock", False, True),
    "a flag": (FLAG.replace("LOOK", "acquire"), 1, 2, "", False, False),
    "a flag without acquire": (FLAG.replace("LOOK", "relaxed"), 1, 2, "", False, True),
    "a trap": (TRAP, 1, 2, "trap", False, True),
    "tickets in shared memory": (SHARED, 1, 2, "", True, False),
    "no choice": ("st.global.u32 [%a], 1;", 1, 1, "", False, False),
    "sums": (f"{ONE}red.global.add.u32 [%a], 1; ld.relaxed.gpu.global.u32 %r1, [%a+4]; DONE:", 1, 1, "", False, False),
}


@rows("name", TABLE)
def test_orders_and_what_they_lead_to(name: str) -> None:
    body, grid, orders, failure, differs, reports = TABLE[name]
    result = explored(body, grid=grid)
    found = result.explored
    assert found.complete
    assert orders is None or found.orders == orders
    assert {text.partition(":")[0] for _, text in found.failed} == ({failure} if failure else set())
    assert bool(found.differs) == differs
    assert bool(result.reports) == reports, result.reports


def test_results_are_those_of_the_first_run() -> None:
    data = np.zeros(64, np.uint32)
    device = ptxtools.Device(checks="racecheck")
    device.launch(module(LOST)["k"], 1, 64, [data], explore=10)
    assert data[1] == 2
    again = np.zeros(64, np.uint32)
    device.launch(module(LOST)["k"], 1, 64, [again])
    assert again[1] == 2


def test_a_schedule_has_the_same_number_each_time() -> None:
    first, second = explored(DEADLOCK).explored, explored(DEADLOCK).explored
    assert first == second
    ((number, _),) = first.failed
    assert not explored(DEADLOCK, number - 1).explored.failed
    short = explored(DEADLOCK, number).explored
    assert short.failed == first.failed and not short.complete


def test_a_report_names_its_schedule_and_who_waits() -> None:
    (report,) = explored(DEADLOCK).reports
    assert report.checker == "racecheck" and report.kind == "deadlock"
    assert any("wait for memory to change" in line for line in report.details)
    assert report.details[-1].startswith("in schedule ")


def test_what_cannot_be_reversed_leaves_others() -> None:
    result = explored("mov.u32 %r1, %clock; and.b32 %r1, %r1, 1; st.global.u32 [%a], 1;")
    assert not result.explored.complete
    assert str(result.explored) == "1 further schedule: at least 1 order"


def test_several_launches_are_explored_one_at_a_time() -> None:
    one = Exploration(4, 4, True, ((2, "deadlock: no thread can go on"),), ((3, "1 byte, the first in x"),))
    found = Exploration.joined([one, Exploration(), Exploration(2, 3, False, (), ((1, "2 bytes, the first in y"),))])
    assert str(found).splitlines() == [
        "6 further schedules: at least 6 orders",
        "    schedule 2 ends with deadlock: no thread can go on",
        "    schedule 3 has another result: 1 byte, the first in x",
        "    schedule 5 has another result: 2 bytes, the first in y",
    ]
    assert str(Exploration.joined([Exploration()] * 3)) == "0 further schedules: 1 order, and there are no others"


def test_three_warps_take_a_ticket_in_six_orders() -> None:
    body = f"{ONE}atom.global.add.u32 %r1, [%a], 1; setp.eq.u32 %q, %r1, 7; @%q trap; DONE:"
    assert str(explored(body, threads=96).explored) == "6 further schedules: 6 orders, and there are no others"
    assert str(explored(body, 3, threads=96).explored) == "3 further schedules: at least 3 orders"


@pytest.mark.parametrize(
    ("options", "body", "message"),
    [
        ({"checks": "memcheck"}, "", "--check racecheck is needed"),
        ({"checks": "racecheck", "engine": "reference"}, "", "only the native engine"),
        ({"checks": "racecheck", "observers": [ptxtools.Observer()]}, "", "no trace, profile, debugger"),
    ],
)
def test_what_cannot_be_explored(options: dict[str, Any], body: str, message: str) -> None:
    device = ptxtools.Device(**options)
    with pytest.raises(ptxtools.LaunchError, match=message):
        device.launch(module(body)["k"], 1, 64, [np.zeros(64, np.uint32)], explore=10)


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = DEADLOCK.replace("%a", "%ga")
    (tmp_path / "k.ptx").write_text(
        f"""{HEAD}.visible .entry k(.param .u64 a) {{ .reg .b64 %ga, %b, %c; .reg .b32 %i, %w, %l, %r<8>;
        .reg .pred %p, %q; ld.param.u64 %ga, [a]; mov.u32 %i, %tid.x; shr.u32 %w, %i, 5; and.b32 %l, %i, 31;
        {body} ret; }}"""
    )
    report = tmp_path / "r.json"
    line = [str(tmp_path / "k.ptx"), "--grid", "1", "--block", "64", "--arg", "zeros:u32[64]", "--check", "racecheck"]
    status = exit_status(command, "ptx-run", [*line, "--explore", "100", "--check-report", str(report)])
    shown = capsys.readouterr().out
    assert status == 1, capsys.readouterr().err
    assert "and there are no others\n    schedule " in shown and "ends with deadlock: no thread can go on" in shown
    explored_ = json.loads(report.read_text())["explored"]
    assert explored_["complete"] and explored_["schedules"] >= explored_["orders"] > 1
    assert [set(one) for one in explored_["failed"]] == [{"schedule", "reason"}]


def test_what_memory_has_in_the_end_has_orders_too() -> None:
    """Nobody in the launch reads what comes out of two kinds of reductions: the verdict stays, the results differ."""
    body = f"""{ONE}setp.eq.u32 %q, %w, 0; @%q red.relaxed.gpu.global.add.u32 [%a], 3;
      @!%q red.relaxed.gpu.global.or.b32 [%a], 2; DONE:"""
    result = explored(body)
    assert str(result.verdict) == "race-free in every schedule of this launch" and result.reports == []
    assert (result.explored.orders, result.explored.complete, len(result.explored.differs)) == (2, True, 1)
    same = explored(body.replace("or.b32", "add.u32"))
    assert (same.explored.orders, same.explored.schedules, same.explored.differs) == (1, 0, ())


def test_an_atomic_that_another_one_of_its_warp_stands_before() -> None:
    """What the first atomic finds depends on the store, too."""
    body = f"""{ONE}setp.eq.u32 %q, %w, 0; @%q bra FIRST; st.relaxed.gpu.global.u32 [%a], 9; bra DONE;
      FIRST: atom.relaxed.gpu.global.add.u32 %r1, [%a], 3; red.relaxed.gpu.global.add.u32 [%a], 1;
      st.global.u32 [%a+8], %r1; DONE:"""
    result = explored(body)
    assert "an atomic" in {what for *_, what in result.verdict.decided_by}
    assert (result.explored.orders, result.explored.complete) == (3, True)


def test_a_reduction_hides_none_of_another_warp_before_it() -> None:
    """The store may come before what the other warp adds."""
    body = f"""{ONE}setp.eq.u32 %q, %w, 0; @%q bra FIRST; red.relaxed.gpu.global.or.b32 [%a], 1;
      st.relaxed.gpu.global.u32 [%a], 1; bra DONE; FIRST: red.relaxed.gpu.global.or.b32 [%a], 3; DONE:"""
    result = explored(body)
    assert (result.explored.orders, result.explored.complete, len(result.explored.differs)) == (2, True, 1)


def test_a_plain_read_that_came_behind_all_reductions_by_chance() -> None:
    """In the other order it races with the one that comes behind it."""
    body = f"""{ONE}red.relaxed.gpu.global.add.u32 [%a], 1; setp.eq.u32 %q, %w, 1; @!%q bra DONE;
      ld.global.u32 %r1, [%a]; st.global.u32 [%a+8], %r1; DONE:"""
    result = explored(body)
    assert result.explored.complete and result.explored.orders == 2
    assert [one.checker for one in result.reports] == ["racecheck"] and "in schedule" in str(result.reports[0])


def test_reductions_of_copies_leave_other_orders() -> None:
    """What decides is asynchronous work, of which no schedule reverses anything."""
    body = f"""st.shared.v4.u32 [sh], {{1, 1, 1, 1}}; fence.proxy.async; bar.sync 0; {ONE}mov.b32 %r2, sh;
      cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%a], [%r2], 16; cp.async.bulk.commit_group;
      cp.async.bulk.wait_group 0; mov.u32 %r3, %ctaid.x; setp.eq.u32 %q, %r3, 1; @!%q bra DONE;
      ld.global.u32 %r1, [%a]; DONE:"""
    kernel = module(body, head=HEAD.replace("8.0", "8.6").replace("sm_80", "sm_90"))["k"]
    device = ptxtools.Device("sm_90", checks="racecheck")
    result = device.launch(kernel, 2, 32, [np.zeros(64, np.uint32)], shared=512, explore=20)
    assert {what for *_, what in result.verdict.decided_by} == {"asynchronous work"}
    assert not result.explored.complete
