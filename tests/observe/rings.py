"""Random kernels whose warps hand memory over by mbarriers, in rounds, for some of which something is wrong, under
racecheck's closer look and its judge alone. `tools/sweep_rings.py` runs many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

import ptxtools
from ptxtools.sim import trial

from . import guards

HEAD = """.visible .entry k(.param .u64 a){clusters} {{
  .shared .align 8 .b64 full[4], empty[4], other[2];
  .reg .b64 %a, %b, %s; .reg .b32 %i, %w, %l, %k, %o, %v, %x<8>, %r<8>; .reg .pred %p, %q, %z, %first, %mine;
  ld.param.u64 %a, [a]; mov.u32 %i, %tid.x; shr.u32 %w, %i, 5; and.b32 %l, %i, 31; mov.u32 %r0, 1; mov.u32 %r1, 2;
  mov.u32 %x0, full; mov.u32 %x1, empty; mov.u32 %x2, sh; mov.u32 %x6, other; mov.u64 %s, 0; mov.u32 %x7, 0;
  setp.eq.u32 %first, %l, 0; setp.ne.u32 %q, %i, {starter}; @%q bra READY;
  {inits}
READY: {ready}
  mov.u32 %k, 0; setp.lt.u32 %mine, %i, {border};
  mad.lo.u32 %v, %i, 16, %x2; mov.u32 %x3, %ctaid.x; mul.wide.u32 %b, %x3, 2048; add.u64 %b, %b, %a;
  mul.wide.u32 %s, %i, 4; add.u64 %b, %b, %s; mov.u64 %s, 0;
ROUND:
  rem.u32 %x3, %k, {slots}; shl.b32 %x4, %x3, 3; div.u32 %x5, %k, {slots}; and.b32 %x5, %x5, 1;
  mul.lo.u32 %o, %x3, 512; add.u32 %o, %o, %x2; add.u32 %x3, %x0, %x4; add.u32 %x4, %x1, %x4;
  @!%mine bra READ;
"""


def _wait(random: Any, number: str, place: str, parity: str, lanes: str, wrong: str) -> str:
    """Some lanes, or all, wait; some that wait in vain do something else in between."""
    how = str(random.choice(["", ".acquire.cta", ".acquire.cluster"]))
    how = ".relaxed.cta" if wrong == "relaxed wait" else how
    what = str(random.choice(["try_wait", "test_wait"]))
    between = "add.u32 %r6, %r6, 1;" if random.random() < 0.2 else ""
    wait = f"mbarrier.{what}.parity{how}.shared::cta.b64 %p, [{place}], {parity};"
    loop = f"W{number}: {wait}\n{between} @!%p bra W{number};"
    if lanes == "all":
        return loop
    return f"@!%first bra D{number};\n{loop}\nD{number}: {'bar.warp.sync -1;' if random.random() < 0.8 else ''}"


def _arrive(random: Any, place: str, lanes: str, wrong: str) -> str:
    how = str(random.choice(["", ".release.cta", ".release.cluster"]))
    how = ".relaxed.cta" if wrong == "relaxed arrival" else how
    before = str(random.choice(["", "", "bar.warp.sync -1;"])) if lanes == "one" else ""
    guard = "@%first " if lanes == "one" else ""
    return f"{before} {guard}mbarrier.arrive{how}.shared::cta.b64 %s, [{place}];"


WRONG = (
    "no wait", "no arrival", "relaxed wait", "relaxed arrival", "arrival first", "parity", "count", "twice", "touch",
    "late read", "own store", "late init", "no sync",
)  # fmt: skip
#: What may stand between, and harms nobody.
MORE = (
    "bar.sync 0;", "bar.warp.sync -1;", "membar.cta;", "st.volatile.shared.u32 [%x2+2040], 1;",
    "ld.volatile.shared.u32 %r5, [%x2+2040];", "st.release.cta.shared.u32 [%x2+2044], %r0;",
    "ld.acquire.cta.shared.u32 %r5, [%x2+2044];", "ld.relaxed.cta.shared.u32 %r5, [%x2+2044];",
    "atom.acq_rel.cta.shared.add.u32 %r5, [%x2+2044], 1;", "shfl.sync.idx.b32 %r5, %r0, 0, 31, -1;",
    "mbarrier.arrive.shared.b64 %s, [%x6];", "mbarrier.test_wait.parity.shared.b64 %p, [%x6], %x5;",
    "mbarrier.arrive.expect_tx.shared.b64 %s, [%x6], 0;", "ld.shared.u32 %r5, [%x6+8];",
    "bar.sync 1, {threads};", "bar.arrive 2, 1024;", "red.global.add.u32 [%a+16000], 1;", "fence.acq_rel.gpu;",
    "barrier.cluster.arrive; barrier.cluster.wait;", "fence.proxy.async;",
)  # fmt: skip
#: And behind each round.
AFTER = "", "", "", "bar.sync 0;", "bar.sync 0; bar.warp.sync -1;", "barrier.cluster.arrive; barrier.cluster.wait;"


def kernel(seed: int) -> tuple[str, dict[str, Any]]:
    """A program, and how it is launched."""
    random = np.random.default_rng(seed)
    warps, slots = int(random.integers(2, 5)), int(random.integers(1, 4))
    threads = 32 * warps - (int(random.choice([0, 0, 0, 14])) if warps > 2 else 0)
    producers = int(random.integers(1, warps))
    border, wrong = 32 * producers, str(random.choice(WRONG)) if random.random() < 0.5 else ""
    fills, takes = (str(random.choice(["all", "all", "one"])) for _ in range(2))
    waits = [str(random.choice(["all", "all", "one"])) for _ in range(2)]
    counts = [border if fills == "all" else producers, threads - border if takes == "all" else warps - producers]
    if wrong == "count":
        counts[random.integers(2)] += int(random.choice([-1, 1]))
    starter = int(random.choice([0, 0, border]))
    inits = [f"mbarrier.init.shared.b64 [%x{which}+{8 * n}], {max(1, counts[which])};"
             for which in range(2) for n in range(slots)]  # fmt: skip
    inits.append(f"mbarrier.init.shared.b64 [%x6], {random.choice([1, 64, threads])};")
    ready = "" if wrong == "no sync" else str(random.choice(["bar.sync 0;", "bar.sync 0;", "barrier.sync 0;"]))
    if wrong == "late init":
        ready += " @!%q mbarrier.init.shared.b64 [%x0], 1;"
    side = int(random.integers(2))  # that something is wrong on
    own = "%v" if random.random() < 0.5 else "%o"
    place = "mad.lo.u32 %r4, %i, 4, %o;" if own == "%o" else "mov.u32 %r4, %v;"
    write = f"{place} ld.global.u32 %r2, [%b]; add.u32 %r2, %r2, %k; st.shared.u32 [%r4], %r2;"
    base = "%o" if own == "%o" else "%x2"
    step, several = (4 if own == "%o" else 16), random.random() < 0.4
    which = "mov.u32 %r4, 3;" if several else f"rem.u32 %r4, %i, {border};"
    read = f"{which} mad.lo.u32 %r4, %r4, {step}, {base}; ld.shared.u32 %r3, [%r4]; st.global.u32 [%b+8192], %r3;"
    if own != "%o":  # one place for all rounds
        slots = 1
        inits = [one for one in inits if "+8]" not in one and "+16]" not in one]
    if wrong == "own store":
        read += " st.shared.u32 [%r4], 5;"
    parts = []
    for number, (mine, theirs, lanes, waiting, work) in enumerate(
        (("%x3", "%x4", fills, waits[0], write), ("%x4", "%x3", takes, waits[1], read))
    ):
        bad = wrong if number == side else ""
        flip = (number == 0) != (bad == "parity")
        lines = [f"xor.b32 %r7, %x5, {int(flip)};"]
        if bad != "no wait":
            lines.append(_wait(random, f"{number}", theirs, "%r7", waiting, bad))
        if bad == "twice":
            lines.append(_wait(random, f"{number}T", theirs, "%r7", waiting, bad))
        if bad == "touch":
            lines.append(
                "@%first ld.shared.u32 %r5, [%x3];" if random.random() < 0.5 else "@%first st.shared.u32 [%x3+4], 1;"
            )
        arrival = "" if bad == "no arrival" else _arrive(random, mine, lanes, bad)
        lines += [arrival, work] if bad == "arrival first" else [work, arrival]
        if bad == "late read":
            lines.append("ld.shared.u32 %r5, [%r4];")
        while random.random() < 0.25:
            more = str(random.choice(MORE)).replace(
                "{threads}", str(32 * (producers if number == 0 else warps - producers))
            )
            shared_by_all = more.startswith(("bar.sync 0", "barrier.cluster"))
            lines.insert(int(random.integers(1, len(lines) + 1)), "" if shared_by_all else more)
        parts.append("\n  ".join(lines))
    after = str(
        random.choice(
            [
                "",
                "",
                "",
                "bar.sync 0;",
                "bar.sync 0; bar.warp.sync -1;",
                "barrier.cluster.arrive; barrier.cluster.wait;",
            ]
        )
    )
    again = ""
    if random.random() < 0.15:
        again = "bar.sync 0; @%q bra OVER; mbarrier.inval.shared.b64 [%x0]; st.shared.u32 [%x0], 1; OVER: bar.sync 0;"
    cluster = int(random.choice([1, 1, 2]))
    clusters = " .reqnctapercluster 2" if cluster == 2 else ""
    text = HEAD.format(clusters=clusters, starter=starter, inits="\n  ".join(inits), ready=ready, border=border,
                       slots=slots)  # fmt: skip
    text += f"  {parts[0]}\n  bra ON;\nREAD:\n  {parts[1]}\nON: {after}\n"
    text += f"  add.u32 %k, %k, 1; setp.lt.u32 %z, %k, {random.integers(2, 9)}; @%z bra ROUND;\n  {again} ret; }}"
    checks = str(random.choice(["racecheck", "racecheck", "racecheck,synccheck", "all"]))
    return guards.TARGET.replace("8.3", "8.6") + text, {
        "checks": checks, "grid": cluster * int(random.choice([1, 2, 3])), "block": threads, "shared": 2048,
    }  # fmt: skip


def run(text: str, how: dict[str, Any]) -> Any:
    """Launch a kernel: what checkers report, or the trap; and the results."""
    device = ptxtools.Device("sm_90", checks=how["checks"], threads=1, tier="interpreter")
    words = np.zeros(8192, np.uint32)
    try:
        result = device.launch(
            ptxtools.loads(text)["k"],
            how["grid"],
            how["block"],
            [words],
            shared=how["shared"],
            max_instructions=200_000,
        )
    except ptxtools.Trap as trap:
        return ("trap", str(trap).partition(",")[0]) if "timeout" not in str(trap) else ("timeout",)
    reports = {(found.checker, found.line, tuple(site.line for site in found.others)) for found in result.reports}
    return sorted(reports), str(result.verdict), [] if reports else words.tolist()


#: Waits with a time limit make the order of warps another one in each run, and with it what is reported first.
RUNS = 5


def compared(seed: int, kernel: Callable[[int], tuple[str, dict[str, Any]]] = kernel) -> tuple[Any, Any, list[int]]:
    """What the closer look and the judge find, and what the looks were."""
    text, how = kernel(seed)
    runs, attempt, looks = list[int](), trial.attempt, trial.looks

    def counted(device: Any, context: Any, run: Any, *rest: Any) -> Any:
        return attempt(device, context, lambda how: (runs.append(how.trial), run(how))[1], *rest)

    with mock.patch.object(trial, "attempt", counted):
        with mock.patch.object(trial, "looks", lambda *what: [look for look in looks(*what) if look == 2]):
            found = run(text, how)
        closer = runs.copy()
        with mock.patch.object(trial, "looks", lambda *what: []):
            judged = run(text + " // judged", how)
    return found, judged, closer


def differ(found: Any, judged: Any) -> bool:
    """Whether two runs found different things, neither of which has come to the limit of instructions."""
    return bool(found != judged and ("timeout",) not in (found, judged))
