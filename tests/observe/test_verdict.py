"""racecheck's verdict: free of races in every schedule, or in this one, and then what decides the order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ptxtools
from ptxtools.cli.common import exit_status
from ptxtools.cli.run import command
from ptxtools.diagnostics.findings import Verdict

from .programs import HEAD, module, run

ENGINES = ("native", "reference")
SM_90 = HEAD.replace("sm_80", "sm_90")
STORE = "shl.b32 %r0, %i, 2; st.shared.u32 [%r0], %i;"
READ = "xor.b32 %r1, %r0, 128; ld.shared.u32 %r2, [%r1];"
INIT = "setp.eq.u32 %p, %i, 0; @%p mbarrier.init.shared.b64 [sh+256], 64; bar.sync 0; add.u32 %r3, %s, 256;"
ARRIVE = "mbarrier.arrive.shared.b64 _, [%r3];"
TRY = "mbarrier.try_wait.parity.shared.b64 %p, [%r3], 0; selp.b32 %r4, 1, 0, %p;"
AGAIN = """setp.ne.u32 %p, %r4, 0; @%p bra GO; WAIT: mbarrier.try_wait.parity.shared.b64 %p, [%r3], 0, %r5;
    @%p bra WAITED; bra WAIT; WAITED: GO:"""
#: Bodies whose threads synchronise alike in every schedule.
FIXED = {
    "nothing shared": "st.global.u32 [%a], 1;",
    "a barrier": f"{STORE} bar.sync 0; {READ}",
    "a named barrier": """setp.eq.u32 %p, %w, 0; @!%p bra TAKE;
        shl.b32 %r0, %l, 2; st.shared.u32 [%r0], %i; bar.arrive 1, 64; bra DONE;
        TAKE: bar.sync 1, 64; shl.b32 %r0, %l, 2; ld.shared.u32 %r1, [%r0]; DONE:""",
    "a reduction": "red.global.add.u32 [%a], 1;",
    "an atomic without a result": "atom.global.add.u32 _, [%a], 1;",
    "an atomic without a use": "atom.global.add.u32 %r1, [%a], 1; mov.u32 %r1, 0; st.global.u32 [%a+4], 0;",
    "an atomic of one thread": "setp.eq.u32 %p, %i, 0; @!%p bra DONE; atom.global.add.u32 %r1, [%a], 1;"
    "st.global.u32 [%a+4], %r1; DONE:",
    "atomics that a barrier separates": "setp.eq.u32 %p, %i, 0; @%p atom.global.add.u32 %r1, [%a], 1; bar.sync 0;"
    "setp.eq.u32 %p, %i, 32; @%p atom.global.add.u32 %r1, [%a], 1; @%p st.global.u32 [%a+4], %r1;",
    "a float reduction that nobody reads": "red.global.add.f32 [%a], 0f3F800000;",
    "a result that is kept, and waited for if it was false": f"""mov.u32 %s, sh; {INIT} {STORE}
        {ARRIVE} {TRY} {AGAIN} {READ}""",
    "a result that is kept, beside a branch that another value decides": f"""mov.u32 %s, sh; {INIT} {STORE}
        {ARRIVE} {TRY} setp.lt.u32 %q, %i, 4096; @%q bra ON; brkpt; ON: {AGAIN} {READ}""",
    "a test whose result is kept": f"""mov.u32 %s, sh; {INIT} {STORE} {ARRIVE}
        mbarrier.test_wait.parity.shared.b64 %p, [%r3], 0; @%p bra GO;
        WAIT: mbarrier.try_wait.parity.shared.b64 %p, [%r3], 0; @!%p bra WAIT; GO: {READ}""",
    "a state that is moved, kept in local memory, and waited for": f""".local .align 8 .b8 kept[8]; mov.u32 %s, sh;
        {INIT} {STORE} mbarrier.arrive.shared.b64 %b, [%r3]; mov.b64 %c, %b; st.local.u64 [kept], %c; mov.b64 %b, 0;
        ld.local.u64 %b, [kept]; WAIT: mbarrier.test_wait.shared.b64 %p, [%r3], %b; @!%p bra WAIT; {READ}""",
    "a loop that waits": f"""mov.u32 %s, sh; {INIT} {STORE} {ARRIVE}
        WAIT: mbarrier.try_wait.parity.shared.b64 %p, [%r3], 0; @!%p bra WAIT; {READ}""",
    "a loop that waits, as inlined": f"""mov.u32 %s, sh; {INIT} {STORE} {ARRIVE}
        WAIT: mbarrier.try_wait.parity.shared.b64 %p, [%r3], 0; @%p bra DONE; bra WAIT; DONE: {READ}""",
    "a loop that tests": f"""mov.u32 %s, sh; {INIT} {STORE} {ARRIVE}
        WAIT: mbarrier.test_wait.parity.shared.b64 %p, [%r3], 0; selp.b32 %r4, 1, 0, %p; setp.eq.u32 %q, %r4, 0;
        @%q bra WAIT; {READ}""",
    "a loop that sleeps": f"""mov.u32 %s, sh; {INIT} {STORE} {ARRIVE}
        WAIT: mbarrier.try_wait.parity.shared.b64 %p, [%r3], 0; @%p bra DONE; nanosleep.u32 20; bra WAIT;
        DONE: {READ}""",
    "phases in turn": f"""mov.u32 %s, sh; {INIT} mov.u32 %r4, 0;
        LOOP: {ARRIVE} and.b32 %r5, %r4, 1;
        WAIT: mbarrier.try_wait.parity.shared.b64 %p, [%r3], %r5; @!%p bra WAIT;
        add.u32 %r4, %r4, 1; setp.lt.u32 %q, %r4, 4; @%q bra LOOP;""",
}
#: Bodies in which a line decides something, marked with `//!`, and what sort of line it is.
OPEN = {
    "a float sum of the lanes of a warp": (
        "a write",
        """.reg .f32 %f; st.shared.u32 [sh], 0; bar.sync 0; cvt.rn.f32.u32 %f, %l; setp.lt.u32 %p, %i, 32;
        @%p red.shared.add.f32 [sh], %f; //!
        bar.sync 0; ld.shared.u32 %r1, [sh];""",
    ),
    "lanes that exchange, whose results nobody reads": (
        "a write",
        """st.shared.u32 [sh], 0; bar.sync 0; setp.lt.u32 %p, %i, 32;
        @%p atom.shared.exch.b32 %r2, [sh], %i; //!
        mov.u32 %r2, 0; bar.sync 0; ld.shared.u32 %r1, [sh];""",
    ),
    "a guess that is used, too": (
        "a read",
        """setp.eq.u32 %p, %l, 0; @!%p bra DONE;
        ld.global.u32 %r1, [%a]; //!
        add.u32 %r2, %r1, 1; atom.global.cas.b32 %r3, [%a], %r1, %r2; st.local.u32 [x], %r1; DONE:""",
    ),
    "how many have not arrived": (
        "mbarrier.pending_count",
        f"""mov.u32 %s, sh; {INIT} mbarrier.arrive.shared.b64 %b, [%r3];
        mbarrier.pending_count.b64 %r1, %b; //!
        st.local.u32 [x], %r1;""",
    ),
    "a ticket": ("an atomic", "atom.global.add.u32 %r1, [%a], 1; //!\nst.local.u32 [x], %r1;"),
    "a ticket used as an address": (
        "an atomic",
        """atom.global.add.u32 %r1, [%a], 1; //!
        mul.wide.u32 %b, %r1, 4; add.u64 %b, %a, %b; st.global.u32 [%b+256], %i;""",
    ),
    "the last one": (
        "an atomic",
        """setp.eq.u32 %p, %l, 0; @!%p bra DONE;
        atom.acq_rel.gpu.global.add.u32 %r1, [%a], 1; //!
        setp.ne.u32 %q, %r1, 1; @%q bra DONE; st.global.u32 [%a+4], 7; DONE:""",
    ),
    "a lock": (
        "an atomic",
        """setp.eq.u32 %p, %l, 0; @!%p bra DONE;
        TAKE: atom.acquire.gpu.global.cas.b32 %r1, [%a], 0, 1; //!
        setp.ne.u32 %q, %r1, 0; @%q bra TAKE;
        ld.global.u32 %r2, [%a+4]; add.u32 %r2, %r2, 1; st.global.u32 [%a+4], %r2;
        st.release.gpu.global.u32 [%a], 0; DONE:""",
    ),
    "a flag": (
        "a read",
        """setp.eq.u32 %p, %i, 0; @!%p bra OTHER; st.global.u32 [%a+4], 5; st.release.gpu.global.u32 [%a], 1; bra DONE;
        OTHER: setp.eq.u32 %q, %i, 32; @!%q bra DONE;
        WAIT: ld.acquire.gpu.global.u32 %r1, [%a]; //!
        setp.eq.u32 %q, %r1, 0; @%q bra WAIT; ld.global.u32 %r2, [%a+4]; st.global.u32 [%a+8], %r2; DONE:""",
    ),
    "a float reduction that is read": (
        "a write",
        """red.global.add.f32 [%a], 0f3F800000; //!
        bar.sync 0; ld.global.u32 %r1, [%a]; st.global.u32 [%a+4], 1;""",
    ),
    "a plain read behind reductions": (
        "a read",
        """setp.eq.u32 %p, %l, 0; @!%p bra DONE; red.global.add.u32 [%a], 1; setp.eq.u32 %q, %w, 1; @!%q bra DONE;
        ld.global.u32 %r1, [%a]; //!
        st.global.u32 [%a+4], %r1; DONE:""",
    ),
    "a plain write behind reductions": (
        "a write",
        """setp.eq.u32 %p, %l, 0; @!%p bra DONE; red.global.add.u32 [%a], 1; setp.eq.u32 %q, %w, 1; @!%q bra DONE;
        st.global.u32 [%a], 7; //!
        DONE:""",
    ),
    "a wait that gives up": (
        "a wait whose result is used",
        f"""mov.u32 %s, sh; {INIT} {STORE} {ARRIVE} mov.u32 %r4, 0;
        WAIT: mbarrier.try_wait.parity.shared.b64 %p, [%r3], 0; //!
        @%p bra DONE; add.u32 %r4, %r4, 1; setp.lt.u32 %q, %r4, 1000; @%q bra WAIT; trap; DONE: {READ}""",
    ),
    "a result that is kept, and read behind the wait": (
        "a wait whose result is used",
        f"""mov.u32 %s, sh; {INIT} {STORE} {ARRIVE}
        {TRY} //!
        {AGAIN} {READ} st.global.u32 [%a], %r4;""",
    ),
    "a result that is kept while something is read": (
        "a wait whose result is used",
        f"""mov.u32 %s, sh; {INIT} {STORE} bar.sync 0; {ARRIVE}
        {TRY} //!
        {READ} {AGAIN}""",
    ),
    "a result that is kept, and a wait for another phase": (
        "a wait whose result is used",
        f"""mov.u32 %s, sh; {INIT} {STORE} {ARRIVE}
        mbarrier.try_wait.parity.shared.b64 %p, [%r3], 1; selp.b32 %r4, 1, 0, %p; //!
        {AGAIN} WAIT2: mbarrier.try_wait.parity.shared.b64 %p, [%r3], 0; @!%p bra WAIT2; {READ}""",
    ),
    "a result that is kept, and a wait that does something first": (
        "a wait whose result is used",
        f"""mov.u32 %s, sh; {INIT} {STORE} {ARRIVE}
        {TRY} //!
        setp.ne.u32 %p, %r4, 0; @%p bra GO; red.global.add.u32 [%a], 1;
        WAIT: mbarrier.try_wait.parity.shared.b64 %p, [%r3], 0; @!%p bra WAIT; GO: {READ}""",
    ),
    "a result that is kept, and a wait of a narrower scope": (
        "a wait whose result is used",
        f"""mov.u32 %s, sh; {INIT} {STORE} bar.sync 0; {ARRIVE}
        {TRY} //!
        setp.ne.u32 %p, %r4, 0; @%p bra GO;
        WAIT: mbarrier.try_wait.parity.acquire.cta.shared.b64 %p, [%r3], 0; @!%p bra WAIT; GO: {READ}""",
    ),
    "a test that does other work": (
        "a wait whose result is used",
        f"""mov.u32 %s, sh; {INIT} {STORE} {ARRIVE}
        WAIT: mbarrier.test_wait.parity.shared.b64 %p, [%r3], 0; //!
        @%p bra DONE; red.global.add.u32 [%a], 1; bra WAIT; DONE: {READ}""",
    ),
    "a loop that ends when the test fails": (
        "a wait whose result is used",
        f"""mov.u32 %s, sh; {INIT} WAIT: mbarrier.test_wait.parity.shared.b64 %p, [%r3], 0; //!
        @%p bra WAIT; {ARRIVE}""",
    ),
    "a state that is stored": (
        "an arrival whose state is used",
        f"""mov.u32 %s, sh; {INIT} mbarrier.arrive.shared.b64 %b, [%r3]; //!
        mul.wide.u32 %c, %i, 8; add.u64 %a, %a, %c; mov.b64 %c, %b; st.global.u64 [%a], %c;""",
    ),
    "a state that decides": (
        "an arrival whose state is used",
        f"""mov.u32 %s, sh; {INIT} mbarrier.arrive.shared.b64 %b, [%r3]; //!
        and.b64 %b, %b, 255; setp.eq.u64 %q, %b, 1; @%q st.global.u32 [%a], 1;""",
    ),
    "the clock": ("%clock", "mov.u32 %r1, %clock; //!\nadd.u32 %r2, %r1, 1; st.local.u32 [x], %r2;"),
    "the SM": ("%smid", "mov.u32 %r1, %smid; //!\nst.local.u32 [x], %r1;"),
    "a barrier for any two of three warps": (
        "a barrier",
        """setp.eq.u32 %p, %w, 2; @%p bra LAST; setp.eq.u32 %q, %w, 0; @%q bra TWICE;
        bar.sync 1, 64; //!
        bra DONE; TWICE: bar.sync 1, 64; //!
        bar.sync 1, 64; //!
        bra DONE; LAST: bar.sync 1, 64; //!
        DONE:""",
    ),
}  # fmt: skip


def _run(body: str, engine: str = "native", threads: int = 64) -> Any:
    local = ".local .align 4 .b8 x[4]; " if "[x]" in body else ""
    body = f".reg .b32 %s; {local}{body}"
    return run(body, "racecheck", shared=512, engine=engine, threads=threads, head=SM_90, words=256)


@pytest.mark.share(3)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", FIXED)
def test_in_every_schedule(name: str, engine: str) -> None:
    result = _run(FIXED[name], engine)
    assert (result.reports, str(result.verdict)) == ([], "race-free in every schedule of this launch")


@pytest.mark.share(3)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", OPEN)
def test_in_this_schedule(name: str, engine: str) -> None:
    what, body = OPEN[name]
    result = _run(body, engine, threads=96 if "three warps" in name else 64)
    assert result.reports == []
    source = module(f".reg .b32 %s; {'.local .align 4 .b8 x[4]; ' if '[x]' in body else ''}{body}", head=SM_90)
    text = source.loadable.source().text
    marked = [number for number, line in enumerate(text.splitlines(), 1) if line.endswith("//!")]
    found = [(line, sort) for _, line, sort in result.verdict.decided_by]
    assert found and {line for line, _ in found} <= set(marked) and {sort for _, sort in found} == {what}, found
    assert "race-free in this schedule; line" in str(result.verdict)


def test_a_race_leaves_no_verdict() -> None:
    result = _run(f"{STORE} {READ}")
    assert result.reports and result.verdict is None
    assert run(STORE, "memcheck", shared=512).verdict is None


def test_texts() -> None:
    one = Verdict((("k.ptx", 12, "an atomic"),))
    assert str(one) == "race-free in this schedule; line 12 (an atomic) decides the order"
    two = Verdict.joined([one, Verdict((("k.ptx", 7, "a read"),))])
    assert str(two) == "race-free in this schedule; line 7 (a read), line 12 (an atomic) decide the order"
    assert two is not None and two.to_json() == {"verdict": "this-schedule", "decided_by": [7, 12]}
    assert Verdict.joined([one, None]) is Verdict.joined([]) is None


def test_the_command_prints_it_and_the_report_has_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ptx, report = tmp_path / "k.ptx", tmp_path / "report.json"
    ptx.write_text(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n")
    checks = ["--check", "racecheck", "--check-report", str(report)]
    status = exit_status(command, "ptx-run", [str(ptx), "--grid", "1", "--block", "1", *checks])
    assert status == 0 and "racecheck: race-free in every schedule of this launch" in capsys.readouterr().out
    assert json.loads(report.read_text())["racecheck"] == {"verdict": "every-schedule", "decided_by": []}
    assert ptxtools.Device("sm_80").checks == frozenset()
